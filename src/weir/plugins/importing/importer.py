"""Import files of other tools as a collection in Weir's layout."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from functools import reduce
from itertools import chain
from operator import add
from pathlib import Path
from typing import Any

from weir.argument_types import checked
from weir.core.qrels import Origins, Qrels, shown_number
from weir.core.rank_order import OrderCounts
from weir.core.run import Run
from weir.datasets.load import load
from weir.errors import BadValue, FormatError, WeirError, printable
from weir.files.atomic import atomic_dir, check_replaceable, write_text
from weir.files.column_names import identifier_names, usual
from weir.files.import_report import REPORT, not_imported
from weir.files.layouts import ABOUT, SAVED, CollectionPart, find_layout
from weir.files.paths import path_of
from weir.files.records import read_documents
from weir.files.runs import refuse_misplaced_ranks
from weir.files.text_files import Watch, unwatched
from weir.files.write import write_qrels, write_run
from weir.plugins.importing.cells import Cells, each_record, left_out, trimmed
from weir.plugins.importing.contents import (
    BEYOND,
    TOTALS,
    Contents,
    check_roles,
    held_roles,
    is_record,
    parse_columns,
    read_contents,
    row_batches,
)
from weir.plugins.importing.items import (
    ByWords,
    Choices,
    Document,
    FileRemark,
    FoundQuery,
    Item,
    ItemKey,
    LeftOut,
    Refused,
    Used,
)
from weir.plugins.importing.merge import (
    SPLITS,
    DocumentSpill,
    FileCounts,
    ImportedFile,
    Merged,
    docs_of,
    document_spill,
    keep_document,
    merge_files,
    order_of,
    reasons,
)
from weir.plugins.importing.readers import READERS, Reader, choose_reader

# ----------
# Reading one file: its reader, its items, its documents into the spill.


_PROGRESS_ROWS = 100_000  # documents between two reports of progress


@dataclass(frozen=True)
class InputFile:
    """A file to import."""

    path: Path
    columns: Mapping[str, str] = field(default_factory=dict)
    """Role -> column."""
    kind: str = ""
    """The name of its reader; "" to recognise it."""
    split: str = ""
    """The split of its judgments; "" to take it from the file's name."""


@dataclass(frozen=True)
class ImportRequest:
    """Files to import together into one new collection."""

    files: tuple[InputFile, ...]
    corpus: Path | None = None
    """A collection, or a file of documents, that judgments refer to."""
    choices: Choices = field(default_factory=Choices)
    keep_corpus: bool = True
    """Write its documents too; False only resolves judgments by words or texts with them."""
    about: Mapping[str, str] = field(default_factory=dict)
    """Entries of collection.toml."""


def _read_file(
    file: InputFile, spill: DocumentSpill, choices: Choices, watch: Watch = unwatched
) -> ImportedFile | WeirError:
    path, counts = file.path, FileCounts()
    try:
        with spill.all_or_none():
            batches = row_batches(path, file.columns)
            if batches is not None:
                first = next(batches)
                chosen, evidence = choose_reader(first, file.kind)
            if batches is None or not chosen.by_row:
                first, batches = read_contents(path, file.columns), iter(())
                chosen, evidence = choose_reader(first, file.kind)
            read = _accounted(chosen, chain([first], batches), choices, counts)
            items = tuple(spill_documents(read, path.name, counts, spill, watch))
            kept = dict.fromkeys(
                name for item in items if isinstance(item, FoundQuery) for name in item.metadata
            )
            role, unread = "relevant", usual(kept, "relevant")
            if not unread and usual(kept, "grade"):
                role, unread = "doc", identifier_names(kept, "doc")
            if unread and not (file.kind or chosen.general):
                raise BadValue(
                    f"'{unread[0]}' names judged documents, which {chosen.title} has in other columns: choose, as in "
                    f"`columns='{role}={unread[0]}'`, or `as_kind='{chosen.name}'`, which keeps it as metadata"
                )
            refuse_misplaced_ranks(path, reduce(add, map(order_of, items), OrderCounts()))
            remarks = [item for item in items if isinstance(item, (FileRemark, Used, Refused))]
            if len(remarks) == len(items) and not counts.counts and not counts.left_out:
                reasons = [
                    one.text if isinstance(one, FileRemark) else f"{one.where}: {one.reason}"
                    for one in sorted(remarks, key=lambda one: not isinstance(one, Refused))
                    if not isinstance(one, Used)
                ]
                reason = next(
                    chain(reasons, (f"{name}: {n:,}" for name, n in counts.cells_left.items())), "no row"
                )
                raise FormatError(path, f"nothing to import ({reason})", "queries, judgments or rankings")
    except BadValue as error:
        return error if str(path) in str(error) else BadValue(f"{path}: {error}")
    except WeirError as error:
        return error
    except RecursionError:
        return FormatError(path, "data nested too deeply", "some 200 levels")
    split = file.split or split_of(first.stem)
    notes = dict.fromkeys(item.text for item in items if isinstance(item, FileRemark))
    record: dict[str, Any] = {
        "file": str(path),
        "kind": chosen.name,
        "what": chosen.title,
        "evidence": evidence,
        "columns": {item.role: item.field for item in items if isinstance(item, Used)},
        "notes": [
            *notes,
            *([f"rows whose texts lost blanks around them: {counts.trimmed:,}"] if counts.trimmed else []),
            *([f"the split {split}, by its name"] if split not in ("test", file.split) else []),
        ],
    }
    return ImportedFile(str(path), first.stem, items, counts, record, split)


def _accounted(
    chosen: Reader, parts: Iterable[Contents], choices: Choices, counts: FileCounts
) -> Iterator[Item]:
    roles: dict[str, str] = {}
    for part in parts:
        whole = replace(part, roles={**held_roles(part), **roles})  # as the first part was read
        rows = [] if whole.shape == "lines" else [row.fields for row in whole.rows]
        source = rows if whole.value is None else whole.value
        for record in each_record(source):
            record.forget()
        counts.rows += whole.count
        for row in (
            whole.rows if whole.shape != "lines" else ()
        ):  # readers of lines look at their columns themselves
            if BEYOND in row.fields:
                yield Refused(row.where, row.fields[BEYOND])
            elif TOTALS in row.fields:
                yield FileRemark(row.fields[TOTALS])
        if whole.short:
            yield FileRemark(f"rows with fewer cells than columns, blank in the others: {whole.short:,}")
        for item in chosen.read(whole.sound(), choices):
            if isinstance(item, LeftOut):
                counts.cells_left[item.field] += item.count
            else:
                if isinstance(item, Used):
                    roles[item.role] = item.field
                yield item
        records = [
            one for one in ([source] if isinstance(source, Cells) else source) if isinstance(one, Cells)
        ]
        counts.cells_left.update(left_out(filter(is_record, records)))
        counts.trimmed += trimmed(each_record(source))


def split_of(stem: str) -> str:
    """Return the split that a file's name states, such as dev-00000-of-00001 or qrels.dev.small; "test" by
    default."""
    whole = re.fullmatch(rf"({'|'.join(SPLITS)})(-\d+-of-\d+)?", stem.lower())
    pieces = set(re.split(r"[-_. ]", stem.lower()))
    named = [split for split in SPLITS if split in pieces] if pieces & {"qrels", "qrel", "judgments"} else []
    return whole[1] if whole else named[0] if len(named) == 1 else "test"


def spill_documents(
    items: Iterable[Item], name: str, counts: FileCounts, spill: DocumentSpill, watch: Watch
) -> Iterator[Item]:
    """Yield all items but documents with an identifier, which are added to the temporary database `spill`.

    name: the file's name for progress.
    """
    count = 0
    for item in items:
        if not isinstance(item, Document) or not item.key.id:
            yield item
            continue
        keep_document(item, item.key.id, counts, spill)
        count += 1
        if count % _PROGRESS_ROWS == 0:
            watch(f"{name}: {count:,} documents", 0, 1)


def _spill_corpus(path: Path, spill: DocumentSpill, watch: Watch = unwatched) -> None:
    is_file = path.is_file() and path.suffix not in (".toml", ".zip")
    part = CollectionPart(path) if is_file else find_layout(path).need_documents()
    count = 0
    for batch in read_documents(part):
        metadata = batch.metadata.tolist() if batch.metadata is not None else [""] * len(batch)
        columns = (batch.ids.tolist(), batch.titles.tolist(), batch.texts.tolist(), metadata)
        for name, title, text, more in zip(*columns, strict=True):
            spill.add(name, Document(ItemKey(name, text), "", title, json.loads(more) if more else {}))
            count += 1
            if count % _PROGRESS_ROWS == 0:
                watch(f"{part.name}: {count:,} documents", 0, 1)


# ----------
# Writing the collection as a folder that appears whole or not at all.


_OWN_FILES = {"queries.jsonl", "corpus.jsonl", "qrels", "clicks", "runs", ABOUT, REPORT}
CLICK_COLUMNS = ("query-id", "corpus-id", "share", "low", "high", "clicks", "impressions", "expected")


AS_JSON = "as JSON; lines of TREC hold no empty ranking, and no identifier with a blank or like a comment"
"""Said of a run that is written to runs/NAME.json."""


def _write_folder(folder: Path, collection: Merged, documents: bool, about: Mapping[str, str]) -> list[str]:
    if collection.queries:
        rows = []
        for name, text in collection.queries.items():
            metadata = dict(collection.metadata.get(name, {}))
            if name in collection.unanswerable:
                metadata["unanswerable"] = True
            rows.append({"_id": name, "text": text, **({"metadata": metadata} if metadata else {})})
        _write_lines(folder / "queries.jsonl", (json.dumps(row, default=str) for row in rows))
    if documents and collection.documents:
        _write_lines(folder / "corpus.jsonl", collection.documents.corpus_lines())
    for split, judgments in collection.qrels.items():
        (folder / "qrels").mkdir(exist_ok=True)
        qrels = Qrels.of(judgments)
        if origins := collection.origins.get(split):
            columns = qrels.columns()
            pairs = zip(columns["query"], columns["doc"], strict=True)
            qrels = replace(qrels, origin=Origins.of(origins.get(pair, "") for pair in pairs))
        write_qrels(qrels, folder / "qrels" / f"{split}.tsv")
    for split, shares in collection.clicks.items():
        (folder / "clicks").mkdir(exist_ok=True)
        cells = ([*pair, *map(shown_number, astuple(share))] for pair, share in shares.items())
        _write_lines(folder / "clicks" / f"{split}.tsv", map("\t".join, [CLICK_COLUMNS, *cells]))
    for name, rankings in collection.runs.items():
        (folder / "runs").mkdir(exist_ok=True)
        # TREC's lines cannot hold identifiers with blanks, comments as queries, and empty rankings.
        ids = [*rankings, *(doc for row in rankings.values() for doc in row)]
        fits = all(len(one.split()) == 1 and one == one.strip() for one in ids) and all(rankings.values())
        fits = fits and not any(query.startswith(("#", "\ufeff")) for query in rankings)
        write_run(Run.of(rankings, name), folder / "runs" / f"{name}{'.trec' if fits else '.json'}")
    if about:
        lines = "".join(f"{key} = {json.dumps(value)}\n" for key, value in about.items())
        write_text(folder / ABOUT, lines)
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)


# ----------
# weir.import_files and its report.


@dataclass(frozen=True)
class ImportReport:
    """The report of an import: the new collection's folder and counts, and a record of each file."""

    folder: Path
    """The new collection."""
    whole: Mapping[str, Any]
    """Counts of the collection, its notes and its files."""
    files: tuple[Mapping[str, Any], ...]
    """One record for each given file, in order."""
    refused: tuple[str, ...]
    """One line for each file that was refused."""
    replaced: bool = False
    """True if an older import in the folder was replaced."""

    def lines(self) -> list[str]:
        """Return the lines that `weir data import` prints."""
        whole = self.whole
        counts = [
            (whole["queries"], "queries", ""),
            (whole["unanswerable"], "", " of them without an answer"),
        ]
        counts += [(count, "judgments", f" ({split})") for split, count in whole["judgments"].items()]
        counts += [(whole["documents"], "documents", ""), (len(whole["runs"]), "runs", "")]
        parts = [f"{_counted(count, name)}{rest}" for count, name, rest in counts if count]
        notes = [f"  {note}" for note in whole["notes"]]
        notes += [
            f"  {one}: {AS_JSON}"
            for one in whole["written"]
            if one.startswith("runs/") and one.endswith(".json")
        ]
        older = ", in place of an older import" * self.replaced
        lines = [*map(_file_line, self.files), f"{self.folder}: {', '.join(parts)}{older}", *notes]
        return [printable(line) for line in lines]


@checked
def import_files(
    paths: str | Path | Iterable[str | Path],
    out: str | Path,
    columns: str | Mapping[str, str] | None = None,
    as_kind: str | Mapping[str, str] = "",
    corpus: str | Path | None = None,
    choices: Choices | Mapping[str, Any] | None = None,
) -> ImportReport:
    """Import files of other tools, and golden sets of any shape, into a new collection; return the report.

    out: folder, which appears whole or not at all, in place of an older import. It has queries.jsonl, corpus.jsonl,
        qrels/SPLIT.tsv, runs/NAME.trec (or .json) and import.json, as far as files give them.
    columns: role -> column (a name, or a number from 1), such as {"query": "q", "doc": "url", "grade": "ctr"}, or
        "query=q,doc=url,grade=ctr".
    as_kind: the reader of all files, or {file name: reader}, "" to recognise each.
    corpus: a collection, or a file of documents, which resolve judgments by words or texts and are written too.
    choices: decisions for cases that files leave open, such as {"judges": "max"}.

    Refused files are named in the report. Raises BadValue or FormatError if no file can be read (with strict choices,
    if one cannot), if files leave a question open, and for a folder with other content.
    """
    return import_request(request_for(paths, columns, as_kind, corpus, choices), path_of(out))


def request_for(
    paths: str | Path | Iterable[str | Path],
    columns: str | Mapping[str, str] | None = None,
    as_kind: str | Mapping[str, str] = "",
    corpus: str | Path | None = None,
    choices: Choices | Mapping[str, Any] | None = None,
) -> ImportRequest:
    """Return the import request of these arguments of `import_files`.

    Raises UnknownName for a role or reader, CallError for an unknown choice, BadValue for malformed `columns`, a
    folder, or a file not among `paths`.
    """
    roles = parse_columns(columns) if isinstance(columns, str) else dict(columns or {})
    check_roles(roles)
    listed = [path_of(paths)] if isinstance(paths, (str, Path)) else [path_of(path) for path in paths]
    for path in listed:
        if path.is_dir():
            raise BadValue(_no_file(path))
    if isinstance(as_kind, str):
        kinds = dict.fromkeys(listed, as_kind)
    else:
        kinds = {path: as_kind.get(str(path), as_kind.get(path.name, as_kind.get("", ""))) for path in listed}
        names = {str(path) for path in listed} | {path.name for path in listed} | {""}
        if unknown := sorted(set(as_kind) - names):
            raise BadValue(f"`as_kind` names '{unknown[0]}', which is not among the files")
    for kind in filter(None, kinds.values()):
        READERS.get(kind)
    files = tuple(InputFile(path, roles, kinds[path]) for path in listed)
    if not isinstance(choices, Choices):
        choices = Choices(**{str(name): value for name, value in (choices or {}).items()})
    return ImportRequest(files, Path(corpus) if corpus is not None else None, choices)


def _no_file(folder: Path) -> str:
    if any((folder / name).exists() for name in ("grid.json", "stage.json")):
        return f"{folder} is a folder of results, which need no import: weir results, weir compare and others read them"
    try:
        try:
            find_layout(folder)
        except FormatError:
            load(folder)  # such as one laid out as on the Hugging Face hub
    except WeirError:
        saved = any((folder / name).is_file() for name in SAVED)
        files = (path for path in (folder.rglob("*") if saved else folder.iterdir()) if path.is_file())
        inside = sorted(str(path) for path in files if path.name[0] != "." and path.name not in SAVED)
        shown = ", ".join(inside[:4]) + ", ..." * (len(inside) > 4)
        return f"{folder} is a folder; name the files that are imported" + (f": {shown}" if inside else "")
    return f"{folder} is a folder of a collection, which needs no import: weir run -d {folder}, weir eval {folder} RUN"


_SHARD = re.compile(r"(\d{5})-of-(\d{5})(?!\d)")


def _refuse_missing_shards(paths: Iterable[Path]) -> None:
    shards: dict[tuple[Path, int], set[str]] = {}
    for path in paths:
        if shard := _SHARD.search(path.name):
            whole = path.with_name(path.name.replace(shard[0], f"*-of-{shard[2]}"))
            shards.setdefault((whole, int(shard[2])), set()).add(shard[1])
    for (whole, count), numbers in shards.items():
        if len(numbers) < count:
            raise BadValue(
                f"{whole}: found {len(numbers):,} of {count:,} shards; expected all, or "
                "`choices={'allow_loss': True}`"
            )


def import_request(request: ImportRequest, folder: Path, watch: Watch = unwatched) -> ImportReport:
    """Import a request's files into a folder, in place of an older import; return the report.

    Raises as `import_files` does, and StoreError if files cannot be written.
    """
    if not request.files:
        raise BadValue("no file to import; expected at least one")
    older = check_replaceable(folder, REPORT, _OWN_FILES, "weir data import")
    if not request.choices.allow_loss:
        _refuse_missing_shards(file.path for file in request.files)
    with document_spill() as spill:
        if request.corpus is not None and request.keep_corpus:
            _spill_corpus(request.corpus, spill, watch)
        files: list[ImportedFile] = []
        errors: dict[str, WeirError] = {}
        for file in request.files:
            outcome = _read_file(file, spill, request.choices, watch)
            if isinstance(outcome, ImportedFile):
                files.append(outcome)
            else:
                errors[str(file.path)] = outcome
        used = {column for one in files for column in one.record["columns"].values()}
        requested = {(role, column) for file in request.files for role, column in file.columns.items()}
        missing = [
            f"{role}={column}"
            for role, column in sorted(requested)
            if not column.isdigit() and column not in used
        ]
        if missing and files and not errors:
            raise BadValue(
                f"`columns`: {missing[0]}: no file has such a column, or its kind has no use for it"
            )
        if errors and (not files or request.choices.strict):
            if len(request.files) == 1:
                raise next(iter(errors.values()))
            several = "; ".join(_reason(name, error) for name, error in list(errors.items())[:_REASONS_SHOWN])
            raise BadValue(
                f"{several}; {len(errors)} of {len(request.files)} files are refused; nothing is written"
            )
        own_documents = bool(spill) or request.corpus is None or request.keep_corpus
        if not own_documents and request.corpus is not None and any(map(_needs_documents, files)):
            _spill_corpus(request.corpus, spill, watch)
        names = [str(file.path) for file in request.files]
        written = write_collection(files, names, folder, spill, errors, request, own_documents)
        return replace(written, replaced=older)


_REASONS_SHOWN = 3  # of refused files


def _needs_documents(file: ImportedFile) -> bool:
    return any(isinstance(item, ByWords) or any(not doc.id for doc in docs_of(item)) for item in file.items)


def write_collection(
    files: Sequence[ImportedFile],
    names: Sequence[str],
    folder: Path,
    spill: DocumentSpill,
    errors: Mapping[str, WeirError] | None = None,
    request: ImportRequest = ImportRequest(()),
    documents: bool = True,
) -> ImportReport:
    """Merge files, write the collection as a new folder, and return the report.

    names: all given files in order; each is in `files` or in `errors`.
    documents: write corpus.jsonl too.

    Raises BadValue for nothing to write, an open question, or a file without texts or with more than a tenth of its
    rows lost; StoreError if files cannot be written.
    """
    collection = merge_files(files, spill, request.choices)
    for file in files:
        file.refuse_silence()
        if not request.choices.allow_loss:
            file.refuse_loss()
    if not (collection.queries or collection.documents or collection.qrels or collection.runs):
        first = next((file.counts.refused[0] for file in files if file.counts.refused), None)
        reason = f" ({first.where}: {first.reason})" if first else ""
        if any(collection.metadata.values()):
            reason = "; it holds facts about queries without their texts: give the file of queries too"
        raise BadValue(f"{names[0]}: nothing is left to import{reason}")
    records: dict[str, dict[str, Any]] = {
        name: {"file": name, "refused": _reason(name, error)} for name, error in (errors or {}).items()
    }
    for file in files:
        counts = file.counts
        refused_rows = [{"where": row.where, "reason": row.reason} for row in file.refused()[:100]]
        records[file.name] = {
            **file.record,
            "left_out": dict(counts.cells_left),
            "counts": {name: count for name, count in counts.counts.items() if count},
            "rows_refused": len(file.refused()) - len(counts.refused) + counts.left_out,
            "refused_rows": refused_rows,
        }
    ordered = [records[name] for name in names]
    whole = {
        "queries": len(collection.queries),
        "unanswerable": len(collection.unanswerable & collection.queries.keys()),
        "documents": len(collection.documents),
        "judgments": {split: sum(map(len, rows.values())) for split, rows in collection.qrels.items()},
        "runs": {name: len(rows) for name, rows in collection.runs.items()},
        "notes": collection.notes,
    }
    with atomic_dir(folder) as temporary:
        from importlib.metadata import version

        whole["written"] = [*_write_folder(temporary, collection, documents, request.about), REPORT]
        report = json.dumps({"weir": version("weir-ir"), **whole, "files": ordered}, indent=1)
        write_text(temporary / REPORT, report + "\n")  # ASCII: half a surrogate is no UTF-8
    return ImportReport(
        folder, whole, tuple(ordered), tuple(one["refused"] for one in ordered if "refused" in one)
    )


def _reason(name: str, error: WeirError) -> str:
    text = str(error)
    return text if text.startswith(name) else f"{name}: {text}"


def _file_line(record: Mapping[str, Any]) -> str:
    if "refused" in record:
        return f"refused: {record['refused']}"
    counts = (
        ", ".join(_counted(count, name) for name, count in record["counts"].items()) or "nothing imported"
    )
    columns = [f"{role}={column}" for role, column in record["columns"].items()]
    evidence = dict.fromkeys([*record["evidence"].split(", "), *columns])
    line = f"{record['file']}: {record['what']} ({', '.join(evidence)}): {counts}"
    if record["rows_refused"]:
        why = reasons((one["where"], one["reason"]) for one in record["refused_rows"])
        line += f"; {_counted(record['rows_refused'], 'rows')} refused, the first: {why}"
    return "; ".join([line, *record["notes"], *not_imported(record)])


def _counted(count: int, name: str) -> str:
    if count == 1:
        singular = {
            "queries": "query",
            "judgments": "judgment",
            "documents": "document",
            "rankings": "ranking",
        }
        singular |= {"runs": "run", "rows": "row"}
        name = " ".join(singular.get(word, word) for word in name.split(" "))
    return f"{count:,} {name}".rstrip()
