"""weir.import_files: files of other tools in, a collection in Weir's own layout out, and a report of both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from weir.errors import BadValue, WeirError, printable
from weir.io.watch import Watch, unwatched
from weir.plugins.importing.document_shelf import DocumentShelf, document_shelf
from weir.plugins.importing.found import ByWords, Judgment, Ranking, Refused
from weir.plugins.importing.merge import Imported, merged
from weir.plugins.importing.names import refuse_other_roles
from weir.plugins.importing.policies import Choices
from weir.plugins.importing.read_file import (
    FileAsked,
    FileRead,
    ImportRequest,
    read_file,
    shelve_corpus,
)
from weir.plugins.importing.readers import READERS
from weir.plugins.importing.write_folder import Written, refuse_foreign, write_collection

__all__ = [
    "Choices",
    "Destination",
    "ImportReport",
    "import_files",
    "import_request",
    "requested",
    "written_collection",
]


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
        return [
            printable(line) for line in [*map(_file_line, self.files), *_whole_lines(self.folder, self.whole)]
        ]


@dataclass(frozen=True)
class Destination:
    """Where a collection goes: the folder, the documents, what was chosen, and whether the documents are written.

    about: what its collection.toml says, nothing where it is empty.
    """

    folder: Path
    shelf: DocumentShelf
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
    given = dict(columns or {})
    refuse_other_roles(given)
    listed = [Path(paths)] if isinstance(paths, (str, Path)) else [Path(path) for path in paths]
    kinds = _kinds(as_kind, listed)
    files = tuple(FileAsked(path, given, kinds[path]) for path in listed)
    beside = Path(corpus) if corpus is not None else None
    return ImportRequest(files, beside, choices or Choices())


def import_request(request: ImportRequest, folder: Path, watch: Watch = unwatched) -> ImportReport:
    """Read the files of a request and write the collection into a folder, which is replaced; see `import_files`.

    watch: told (what is read, how much of it, of how much). Raises as `import_files`.
    """
    if not request.files:
        raise BadValue("no file to import; expected at least one")
    refuse_foreign(folder)
    with document_shelf() as shelf:
        if request.corpus is not None and request.keep_corpus:
            shelve_corpus(request.corpus, shelf, watch)
        read: list[FileRead] = []
        failed: dict[str, WeirError] = {}
        for asked in request.files:
            one = read_file(asked, shelf, request.choices, watch)
            if isinstance(one, FileRead):
                read.append(one)
            else:
                failed[str(asked.path)] = one
        _refuse_unused(request.files, read, failed)
        if failed and (not read or request.choices.strict):
            raise _none_written(failed, len(request.files))
        own = bool(shelf) or request.corpus is None or request.keep_corpus
        if not own and request.corpus is not None and any(map(_by_text, read)):
            shelve_corpus(request.corpus, shelf, watch)
        names = [str(asked.path) for asked in request.files]
        return written_collection(
            read, failed, names, Destination(folder, shelf, request.choices, own, request.about)
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
    whole = merged([one.found for one in read], into.shelf, into.choices)
    _refuse_nothing(whole, names)
    records = {one.record["file"]: _told(one) for one in read}
    records |= {name: {"file": name, "refused": _reason(name, error)} for name, error in failed.items()}
    files = [records[name] for name in names]
    written = write_collection(into.folder, whole, files, into.documents, into.about)
    refused = tuple(one["refused"] for one in files if "refused" in one)
    return ImportReport(into.folder, _summary(whole, written), tuple(files), refused)


def _kinds(as_kind: str | Mapping[str, str], listed: list[Path]) -> dict[Path, str]:
    """The reader that was asked for, by file; raises UnknownName, or BadValue for a file that is not given."""
    if isinstance(as_kind, str):
        given = dict.fromkeys(listed, as_kind)
    else:
        given = {path: as_kind.get(str(path), as_kind.get(path.name, as_kind.get("", ""))) for path in listed}
        known = {str(path) for path in listed} | {path.name for path in listed} | {""}
        if odd := sorted(set(as_kind) - known):
            raise BadValue(f"--as names '{odd[0]}', which is not among the files")
    for kind in filter(None, given.values()):
        READERS.get(kind)
    return given


def _none_written(failed: Mapping[str, WeirError], count: int) -> WeirError:
    """The error of an import that wrote nothing: that of the first file, as it is where that is the only one."""
    name, error = next(iter(failed.items()))
    if count == 1:
        return error
    return BadValue(
        f"{_reason(name, error)}; {len(failed)} of {count} files are refused, and nothing is written"
    )


def _reason(name: str, error: WeirError) -> str:
    said = str(error)
    return said if said.startswith(name) else f"{name}: {said}"


def _refuse_unused(
    files: Sequence[FileAsked], read: Sequence[FileRead], failed: Mapping[str, WeirError]
) -> None:
    """Raise BadValue for a column that no file has: a slip of the pen would change what everything means."""
    used = {column for one in read for column in one.record["columns"].values()}
    given = {(role, column) for asked in files for role, column in asked.columns.items()}
    missing = [f"{r}={column}" for r, column in sorted(given) if not column.isdigit() and column not in used]
    if missing and read and not failed:
        raise BadValue(f"--columns {missing[0]}: no file has such a column where columns are asked for")


def _refuse_nothing(whole: Imported, names: Sequence[str]) -> None:
    if not (whole.queries or whole.documents or whole.qrels or whole.runs):
        first = next((told.refused[0] for told in whole.files if told.refused), None)
        reason = f" ({first.where}: {first.reason})" if first else ""
        if any(whole.metadata.values()):
            reason = "; what it says of queries takes the queries themselves: give their file too"
        raise BadValue(f"{names[0]}: nothing is left to import{reason}")


def _told(one: FileRead) -> dict[str, Any]:
    early, told = [item for item in one.found.items if isinstance(item, Refused)], one.found.counts
    rows = [*early, *told.refused]
    return {
        **one.record,
        "counts": {name: count for name, count in told.counts.items() if count},
        "rows_refused": len(early) + told.left_out,
        "refused_rows": [{"where": row.where, "reason": row.reason} for row in rows[:100]],
    }


def _summary(whole: Imported, written: Written) -> dict[str, Any]:
    return {
        "queries": len(whole.queries),
        "unanswerable": len(whole.unanswerable),
        "documents": len(whole.documents),
        "judgments": {split: sum(map(len, rows.values())) for split, rows in whole.qrels.items()},
        "runs": {name: len(rows) for name, rows in whole.runs.items()},
        "notes": whole.notes,
        "written": list(written.names),
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


def _whole_lines(folder: Path, whole: Mapping[str, Any]) -> list[str]:
    parts = [_counted(whole["queries"], "queries")] if whole["queries"] else []
    parts += [f"{whole['unanswerable']:,} of them without an answer"] if whole["unanswerable"] else []
    parts += [f"{_counted(count, 'judgments')} ({split})" for split, count in whole["judgments"].items()]
    parts += [_counted(whole["documents"], "documents")] if whole["documents"] else []
    parts += [_counted(len(whole["runs"]), "runs")] if whole["runs"] else []
    return [f"{folder}: {', '.join(parts)}", *(f"  {note}" for note in whole["notes"])]


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
