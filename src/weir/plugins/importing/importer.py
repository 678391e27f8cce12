"""weir.import_files: files of other tools in, a collection in Weir's own layout out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

from weir.core.qrels import Origins, Qrels, shown_number
from weir.core.run import Run
from weir.errors import BadValue, FormatError, WeirError, printable
from weir.files.atomic import atomic_dir, write_text
from weir.files.layouts import ABOUT, CollectionPart, find_layout
from weir.files.records import read_documents
from weir.files.text_files import Watch, unwatched
from weir.files.write import write_qrels, write_run
from weir.plugins.importing.contents import Contents, read_contents, refuse_other_roles, row_batches
from weir.plugins.importing.items import (
    ByWords,
    Choices,
    Document,
    FileRemark,
    Item,
    ItemKey,
    Judgment,
    Ranking,
    Refused,
    Used,
)
from weir.plugins.importing.merge import (
    DocumentSpill,
    FileCounts,
    FileFound,
    Imported,
    document_spill,
    keep_document,
    merged,
)
from weir.plugins.importing.readers import READERS, Reader, ReadRequest, chosen

# ----------
# Reading one file: its reader, its items, its documents into the spill.


_TOLD_ROWS = 100_000  # documents between two words to who watches


@dataclass(frozen=True)
class FileAsked:
    """A file to import.

    columns: role -> column; kind: its reader, "" where its content says it; split: of its judgments.
    """

    path: Path
    columns: Mapping[str, str] = field(default_factory=dict)
    kind: str = ""
    split: str = ""


@dataclass(frozen=True)
class ImportRequest:
    """Files to import together.

    corpus: a collection or a file of documents beside them; keep_corpus: whether its documents are written too, or
    only looked into where judgments go by words or texts; about: what collection.toml says of the collection.
    """

    files: tuple[FileAsked, ...]
    corpus: Path | None = None
    choices: Choices = field(default_factory=Choices)
    keep_corpus: bool = True
    about: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class FileRead:
    """A file that was read: what was found, and what the report says of it."""

    found: FileFound
    record: dict[str, Any]


def read_file(
    asked: FileAsked, spill: DocumentSpill, choices: Choices, watch: Watch = unwatched
) -> FileRead | WeirError:
    """What a reader found, its documents in the spill; or why the file is refused, the spill as before."""
    path, counts = asked.path, FileCounts()
    try:
        with spill.all_or_none():
            known, evidence, parts = _parts(asked)
            first = next(parts)
            request = ReadRequest(choices=choices)
            read = chain.from_iterable(known.read(part, request) for part in chain([first], parts))
            items = tuple(_items(path, shelved(read, path.name, (counts, spill), watch), counts))
    except WeirError as error:
        return error
    except RecursionError:
        return FormatError(path, "data nested too deeply", "some 200 levels")
    record: dict[str, Any] = {
        "file": str(path),
        "kind": known.name,
        "what": known.title,
        "evidence": evidence,
        "columns": {item.role: item.field for item in items if isinstance(item, Used)},
        "notes": list(dict.fromkeys(item.text for item in items if isinstance(item, FileRemark))),
    }
    split = asked.split or _split(first.stem)
    if split != "test" and not asked.split:
        record["notes"].append(f"the split {split}, by the file's name")
    return FileRead(FileFound(str(path), first.stem, items, counts, split), record)


def _parts(asked: FileAsked) -> tuple[Reader, str, Iterator[Contents]]:
    """The reader of a file, the evidence, and what it holds: in batches where it is large and rows stand alone."""
    batches = row_batches(asked.path, asked.columns)
    if batches is not None:
        head = next(batches)
        known, evidence = chosen(head, asked.kind)
        if known.by_row:
            return known, evidence, chain([head], batches)
    contents = read_contents(asked.path, asked.columns)
    return *chosen(contents, asked.kind), iter([contents])


def shelved(
    found: Iterable[Item], name: str, into: tuple[FileCounts, DocumentSpill], watch: Watch
) -> Iterator[Item]:
    """What was found but for documents with an identifier, which go in the spill; name: of the file, for the watch."""
    counts, spill = into
    count = 0
    for item in found:
        if not isinstance(item, Document) or not item.key.id:
            yield item
            continue
        keep_document(item, item.key.id, counts, spill)
        count += 1
        if count % _TOLD_ROWS == 0:
            watch(f"{name}: {count:,} documents", 0, 1)


def _split(stem: str) -> str:
    """The split that a file's name is: "train" of train.tsv and train-00000-of-00001.parquet; "test" for others."""
    named = re.fullmatch(r"(train|dev|valid|validation|val|test)(-\d+-of-\d+)?", stem.lower())
    return named[1] if named else "test"


def _items(path: Path, items: Iterator[Item], told: FileCounts) -> Iterator[Item]:
    """The items; raises FormatError where there is nothing among them but notes and refusals, and no document."""
    something, first = False, ""
    for item in items:
        something = something or not isinstance(item, (FileRemark, Used, Refused))
        if not first and isinstance(item, (FileRemark, Refused)):
            first = item.text if isinstance(item, FileRemark) else f"{item.where}: {item.reason}"
        yield item
    if not something and not told.counts and not told.left_out:
        raise FormatError(path, f"nothing to import ({first or 'no row'})", "queries, judgments or rankings")


def spill_corpus(path: Path, spill: DocumentSpill, watch: Watch = unwatched) -> None:
    """Put the documents of a collection, or of one file of them, in the spill; raises FormatError."""
    single = path.is_file() and path.suffix not in (".toml", ".zip")
    part = CollectionPart(path) if single else find_layout(path).need_documents()
    for count, item in enumerate(_documents(part), 1):
        spill.add(item.key.id, item)
        if count % _TOLD_ROWS == 0:
            watch(f"{part.name}: {count:,} documents", 0, 1)


def _documents(part: CollectionPart) -> Iterator[Document]:
    for batch in read_documents(part):
        metadata = batch.metadata.tolist() if batch.metadata is not None else [""] * len(batch)
        columns = (batch.ids.tolist(), batch.titles.tolist(), batch.texts.tolist(), metadata)
        for name, title, text, more in zip(*columns, strict=True):
            yield Document(ItemKey(name, text), "", title, json.loads(more) if more else {})


# ----------
# Writing the collection as a folder that appears whole or not at all.


REPORT = "import.json"
_OURS = {"queries.jsonl", "corpus.jsonl", "qrels", "clicks", "runs", ABOUT, REPORT}
CLICK_COLUMNS = ("query-id", "corpus-id", "share", "low", "high", "clicks", "impressions", "expected")


@dataclass(frozen=True)
class Written:
    """The files of the folder, sorted."""

    names: tuple[str, ...]


def refuse_foreign(folder: Path) -> None:
    """Raise BadValue for a folder that holds anything that weir data import did not write: it would be replaced."""
    if folder.exists() and not folder.is_dir():
        raise BadValue(f"{folder} is a file; give a folder to write")
    if not folder.exists():
        return
    held = {path.name for path in folder.iterdir() if not path.name.startswith(f".{folder.name}.tmp-")}
    if held and (REPORT not in held or held - _OURS):
        other = sorted(held - _OURS or held)[0]
        raise BadValue(f"{folder} holds '{other}', which weir data import did not write; give another folder")


def write_collection(
    folder: Path,
    whole: Imported,
    files: list[dict[str, Any]],
    documents: bool = True,
    about: Mapping[str, str] | None = None,
) -> Written:
    """Write the folder.

    files: the record of each file given; documents: whether they are written too; about: keys of collection.toml.

    Raises StoreError when the disk refuses.
    """
    with atomic_dir(folder) as temporary:
        if whole.queries:
            _write_lines(temporary / "queries.jsonl", map(json.dumps, _queries(whole)))
        if documents and whole.documents:
            _write_lines(temporary / "corpus.jsonl", whole.documents.lines())
        for split, judged in whole.qrels.items():
            (temporary / "qrels").mkdir(exist_ok=True)
            qrels = _named(Qrels.of(judged), whole.origins.get(split, {}))
            write_qrels(qrels, temporary / "qrels" / f"{split}.tsv")
        for split, shares in whole.clicks.items():
            (temporary / "clicks").mkdir(exist_ok=True)
            rows = ([*pair, *map(shown_number, astuple(share))] for pair, share in shares.items())
            _write_lines(temporary / "clicks" / f"{split}.tsv", map("\t".join, [CLICK_COLUMNS, *rows]))
        for name, rankings in whole.runs.items():
            (temporary / "runs").mkdir(exist_ok=True)
            write_run(Run.of(rankings, name), temporary / "runs" / f"{name}{_ending(rankings)}")
        if about:
            lines = "".join(f"{key} = {json.dumps(value)}\n" for key, value in about.items())
            write_text(temporary / ABOUT, lines)
        names = sorted(
            path.relative_to(temporary).as_posix() for path in temporary.rglob("*") if path.is_file()
        )
        from importlib.metadata import version

        report = {
            "weir": version("weir-ir"),
            "queries": len(whole.queries),
            "unanswerable": len(whole.unanswerable),
            "documents": len(whole.documents),
            "judgments": {split: sum(map(len, rows.values())) for split, rows in whole.qrels.items()},
            "runs": {name: len(rows) for name, rows in whole.runs.items()},
            "notes": whole.notes,
            "written": [*names, REPORT],
            "files": files,
        }
        write_text(
            temporary / REPORT, json.dumps(report, indent=1) + "\n"
        )  # ASCII: half a surrogate is no UTF-8
    return Written((*names, REPORT))


def _named(qrels: Qrels, origins: Mapping[tuple[str, str], str]) -> Qrels:
    """The judgments with where they come from, where anything says it."""
    if not origins:
        return qrels
    columns = qrels.columns()
    pairs = zip(columns["query"], columns["doc"], strict=True)
    return replace(qrels, origin=Origins.of(origins.get(pair, "") for pair in pairs))


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)


def _queries(whole: Imported) -> Iterable[dict[str, Any]]:
    for name, text in whole.queries.items():
        more = dict(whole.metadata.get(name, {}))
        if name in whole.unanswerable:
            more["unanswerable"] = True
        yield {"_id": name, "text": text, **({"metadata": more} if more else {})}


def _ending(rankings: Mapping[str, Mapping[str, float]]) -> str:
    """`.trec`, or `.json` for what TREC's lines cannot hold: identifiers with blanks, and empty rankings."""
    names = [*rankings, *(doc for row in rankings.values() for doc in row)]
    odd = any(len(name.split()) != 1 or name != name.strip() for name in names)
    comments = any(query.startswith(("#", "\ufeff")) for query in rankings)
    return ".json" if odd or comments or not all(rankings.values()) else ".trec"


# ----------
# weir.import_files and its report.


@dataclass(frozen=True)
class ImportReport:
    """What was read, what was refused and why.

    folder: where it was written; whole: counts of the collection, its notes and its files; files: a record for each
    file given, in order; refused: the one-line reason of each file that was not read.
    """

    folder: Path
    whole: Mapping[str, Any]
    files: tuple[Mapping[str, Any], ...]
    refused: tuple[str, ...]

    def lines(self) -> list[str]:
        """The report in a few lines, as `weir import` prints it."""
        parts = [_counted(self.whole["queries"], "queries")] if self.whole["queries"] else []
        parts += (
            [f"{self.whole['unanswerable']:,} of them without an answer"]
            if self.whole["unanswerable"]
            else []
        )
        parts += [
            f"{_counted(count, 'judgments')} ({split})" for split, count in self.whole["judgments"].items()
        ]
        parts += [_counted(self.whole["documents"], "documents")] if self.whole["documents"] else []
        parts += [_counted(len(self.whole["runs"]), "runs")] if self.whole["runs"] else []
        return [
            printable(line)
            for line in [
                *map(_file_line, self.files),
                *[f"{self.folder}: {', '.join(parts)}", *(f"  {note}" for note in self.whole["notes"])],
            ]
        ]


@dataclass(frozen=True)
class Destination:
    """Where a collection goes: the folder, the documents, what was chosen, and whether the documents are written.

    about: what its collection.toml says, nothing where it is empty.
    """

    folder: Path
    spill: DocumentSpill
    choices: Choices
    documents: bool = True
    about: Mapping[str, str] = field(default_factory=dict)


def import_files(
    paths: str | Path | Iterable[str | Path],
    out: str | Path,
    columns: Mapping[str, str] | None = None,
    as_kind: str | Mapping[str, str] = "",
    corpus: str | Path | None = None,
    choices: Choices | None = None,
) -> ImportReport:
    """Read files of other tools and golden sets of any shape, and write the collection that they hold together.

    columns: role -> column, such as {"query": "q", "doc": "url", "grade": "ctr"}, a column by name or by number from
    1; as_kind: what the files are, one reader's name for all or {file name: reader}; corpus: a collection whose
    documents resolve judgments by words or texts, and are written too; choices: see `Choices`.
    Written are queries.jsonl, corpus.jsonl, qrels/SPLIT.tsv, runs/NAME.trec (or .json) and import.json, as far as the
    files hold them; the folder appears whole or not at all. A file that is refused is left out and told in the
    report. Raises BadValue or FormatError where no file can be read, or one cannot and choices are strict, where what
    the files say together leaves something open, and for a folder that holds something else.
    """
    return import_request(requested(paths, columns, as_kind, corpus, choices), Path(out))


def requested(
    paths: str | Path | Iterable[str | Path],
    columns: Mapping[str, str] | None = None,
    as_kind: str | Mapping[str, str] = "",
    corpus: str | Path | None = None,
    choices: Choices | None = None,
) -> ImportRequest:
    """What `import_files` is asked for; raises UnknownName or BadValue for roles, readers and files that are none."""
    roles = dict(columns or {})
    refuse_other_roles(roles)
    listed = [Path(paths)] if isinstance(paths, (str, Path)) else [Path(path) for path in paths]
    if isinstance(as_kind, str):
        kinds = dict.fromkeys(listed, as_kind)
    else:
        kinds = {path: as_kind.get(str(path), as_kind.get(path.name, as_kind.get("", ""))) for path in listed}
        known = {str(path) for path in listed} | {path.name for path in listed} | {""}
        if odd := sorted(set(as_kind) - known):
            raise BadValue(f"--as names '{odd[0]}', which is not among the files")
    for kind in filter(None, kinds.values()):
        READERS.get(kind)
    files = tuple(FileAsked(path, roles, kinds[path]) for path in listed)
    beside = Path(corpus) if corpus is not None else None
    return ImportRequest(files, beside, choices or Choices())


def import_request(request: ImportRequest, folder: Path, watch: Watch = unwatched) -> ImportReport:
    """Read the files of a request and write the collection into a folder, which is replaced; see `import_files`.

    watch: told (what is read, how much of it, of how much). Raises as `import_files`.
    """
    if not request.files:
        raise BadValue("no file to import; expected at least one")
    refuse_foreign(folder)
    with document_spill() as spill:
        if request.corpus is not None and request.keep_corpus:
            spill_corpus(request.corpus, spill, watch)
        read: list[FileRead] = []
        failed: dict[str, WeirError] = {}
        for file in request.files:
            one = read_file(file, spill, request.choices, watch)
            if isinstance(one, FileRead):
                read.append(one)
            else:
                failed[str(file.path)] = one
        used = {column for one in read for column in one.record["columns"].values()}
        wanted = {(role, column) for file in request.files for role, column in file.columns.items()}
        missing = [
            f"{r}={column}" for r, column in sorted(wanted) if not column.isdigit() and column not in used
        ]
        if missing and read and not failed:
            raise BadValue(f"--columns {missing[0]}: no file has such a column where columns are asked for")
        if failed and (not read or request.choices.strict):
            raise _none_written(failed, len(request.files))
        own = bool(spill) or request.corpus is None or request.keep_corpus
        if not own and request.corpus is not None and any(map(_by_text, read)):
            spill_corpus(request.corpus, spill, watch)
        names = [str(file.path) for file in request.files]
        return written_collection(
            read, failed, names, Destination(folder, spill, request.choices, own, request.about)
        )


def _by_text(one: FileRead) -> bool:
    """Whether a file names documents by words that they hold, or by their texts."""
    for item in one.found.items:
        docs = (item.doc,) if isinstance(item, Judgment) else item.docs if isinstance(item, Ranking) else ()
        if isinstance(item, ByWords) or any(not doc.id for doc in docs):
            return True
    return False


def written_collection(
    read: Sequence[FileRead],
    failed: Mapping[str, WeirError],
    names: Sequence[str],
    into: Destination,
) -> ImportReport:
    """Join what was read and write it; names: of all files, in order.

    Raises BadValue where nothing is left to write, or where the files leave something open together.
    """
    whole = merged([one.found for one in read], into.spill, into.choices)
    if not (whole.queries or whole.documents or whole.qrels or whole.runs):
        first = next((counts.refused[0] for counts in whole.files if counts.refused), None)
        reason = f" ({first.where}: {first.reason})" if first else ""
        if any(whole.metadata.values()):
            reason = "; what it says of queries takes the queries themselves: give their file too"
        raise BadValue(f"{names[0]}: nothing is left to import{reason}")
    records = {one.record["file"]: _told(one) for one in read}
    records |= {name: {"file": name, "refused": _reason(name, error)} for name, error in failed.items()}
    files = [records[name] for name in names]
    written = write_collection(into.folder, whole, files, into.documents, into.about)
    refused = tuple(one["refused"] for one in files if "refused" in one)
    return ImportReport(
        into.folder,
        {
            "queries": len(whole.queries),
            "unanswerable": len(whole.unanswerable),
            "documents": len(whole.documents),
            "judgments": {split: sum(map(len, rows.values())) for split, rows in whole.qrels.items()},
            "runs": {name: len(rows) for name, rows in whole.runs.items()},
            "notes": whole.notes,
            "written": list(written.names),
        },
        tuple(files),
        refused,
    )


def _none_written(failed: Mapping[str, WeirError], count: int) -> WeirError:
    """The error of an import that wrote nothing: that of the first file, as it is where that is the only one."""
    name, error = next(iter(failed.items()))
    if count == 1:
        return error
    return BadValue(
        f"{_reason(name, error)}; {len(failed)} of {count} files are refused, and nothing is written"
    )


def _reason(name: str, error: WeirError) -> str:
    text = str(error)
    return text if text.startswith(name) else f"{name}: {text}"


def _told(one: FileRead) -> dict[str, Any]:
    early, counts = [item for item in one.found.items if isinstance(item, Refused)], one.found.counts
    rows = [*early, *counts.refused]
    return {
        **one.record,
        "counts": {name: count for name, count in counts.counts.items() if count},
        "rows_refused": len(early) + counts.left_out,
        "refused_rows": [{"where": row.where, "reason": row.reason} for row in rows[:100]],
    }


def _file_line(one: Mapping[str, Any]) -> str:
    if "refused" in one:
        return f"refused: {one['refused']}"
    counts = ", ".join(_counted(count, name) for name, count in one["counts"].items()) or "nothing kept"
    line = f"{one['file']}: {one['what']} ({one['evidence']}): {counts}"
    if one["rows_refused"]:
        first = one["refused_rows"][0]
        line += f"; {_counted(one['rows_refused'], 'rows')} refused, the first: {first['where']}: {first['reason']}"
    return "; ".join([line, *one["notes"]])


def _counted(count: int, name: str) -> str:
    """A count of things, which are named in the plural: 1 query, 2 queries, 3 repeated judgments."""
    first, blank, rest = name.partition(" ")
    if count == 1 and first == "repeated":
        rest = (
            rest.replace("documents", "document", 1).removesuffix("s")
            if "judgments" in rest
            else rest.replace("documents", "document", 1)
        )
    elif count == 1:
        first = "query" if first == "queries" else first.removesuffix("s")
    return f"{count:,} {first}{blank}{rest}"
