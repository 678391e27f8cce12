"""weir.import_files: files of other tools in, a collection in Weir's own layout out, and a report of both."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weir.errors import BadValue, FormatError, WeirError, printable
from weir.importing.contents import Contents, read_contents
from weir.importing.found import Item, Note, Refused, Used
from weir.importing.merge import FileFound, Imported, merged
from weir.importing.names import refuse_other_roles
from weir.importing.policies import Choices
from weir.importing.readers import READERS, ReadRequest, chosen
from weir.importing.write_folder import Written, refuse_foreign, write_collection
from weir.io.collections.layout import find_layout
from weir.io.collections.records import read_documents

__all__ = ["Choices", "ImportReport", "import_files"]


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
class _Read:
    """A file that was read."""

    found: FileFound
    record: dict[str, Any]


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
    folder, given, choices = Path(out), dict(columns or {}), choices or Choices()
    refuse_other_roles(given)
    refuse_foreign(folder)
    listed = [Path(paths)] if isinstance(paths, (str, Path)) else [Path(path) for path in paths]
    if not listed:
        raise BadValue("no file to import; expected at least one")
    kinds = _kinds(as_kind, listed)
    held = dict(_corpus(Path(corpus))) if corpus is not None else {}
    read: list[_Read] = []
    failed: dict[str, WeirError] = {}
    for path in listed:
        one = _read_file(path, given, kinds[path])
        if isinstance(one, _Read):
            read.append(one)
        else:
            failed[str(path)] = one
    _refuse_unused(given, read, failed)
    if failed and (not read or choices.strict):
        raise _none_written(failed, len(listed))
    whole = merged([one.found for one in read], held, choices)
    _refuse_nothing(whole, listed)
    records = {one.record["file"]: _told(one, told) for one, told in zip(read, whole.files, strict=True)}
    records |= {name: {"file": name, "refused": _reason(name, error)} for name, error in failed.items()}
    files = [records[str(path)] for path in listed]
    written = write_collection(folder, whole, files)
    refused = tuple(one["refused"] for one in files if "refused" in one)
    return ImportReport(folder, _summary(whole, written), tuple(files), refused)


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


def _read_file(path: Path, given: Mapping[str, str], kind: str) -> _Read | WeirError:
    """What a reader found, or why the file is refused."""
    try:
        contents = read_contents(path, given)
        known, evidence = chosen(contents, kind)
        items = tuple(_items(contents, known.read(contents, ReadRequest())))
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
        "notes": list(dict.fromkeys(item.text for item in items if isinstance(item, Note))),
    }
    split = _split(contents.stem)
    if split != "test":
        record["notes"].append(f"the split {split}, by the file's name")
    return _Read(FileFound(str(path), contents.stem, items, split), record)


def _split(stem: str) -> str:
    """The split that a file's name is: "train" of train.tsv and train-00000-of-00001.parquet; "test" for others."""
    named = re.fullmatch(r"(train|dev|valid|validation|val|test)(-\d+-of-\d+)?", stem.lower())
    return named[1] if named else "test"


def _items(contents: Contents, items: Iterator[Item]) -> Iterator[Item]:
    """The items; raises FormatError where there is nothing among them but notes and refusals."""
    something, first = False, ""
    for item in items:
        something = something or not isinstance(item, (Note, Used, Refused))
        if not first and isinstance(item, (Note, Refused)):
            first = item.text if isinstance(item, Note) else f"{item.where}: {item.reason}"
        yield item
    if not something:
        raise FormatError(
            contents.path, f"nothing to import ({first or 'no row'})", "queries, judgments or rankings"
        )


def _refuse_unused(given: Mapping[str, str], read: list[_Read], failed: Mapping[str, WeirError]) -> None:
    """Raise BadValue for a column that no file has: a slip of the pen would change what everything means."""
    used = {column for one in read for column in one.record["columns"].values()}
    missing = [
        f"{role}={column}" for role, column in given.items() if not column.isdigit() and column not in used
    ]
    if missing and read and not failed:
        raise BadValue(f"--columns {missing[0]}: no file has such a column where columns are asked for")


def _refuse_nothing(whole: Imported, listed: list[Path]) -> None:
    if not (whole.queries or whole.documents or whole.qrels or whole.runs):
        first = next((told.refused[0] for told in whole.files if told.refused), None)
        reason = f" ({first.where}: {first.reason})" if first else ""
        if any(whole.metadata.values()):
            reason = "; what it says of queries takes the queries themselves: give their file too"
        raise BadValue(f"{listed[0]}: nothing is left to import{reason}")


def _corpus(path: Path) -> Iterator[tuple[str, tuple[str, str]]]:
    """The documents of a collection: id, title and text."""
    for batch in read_documents(find_layout(path).need_documents()):
        for name, title, text in zip(
            batch.ids.tolist(), batch.titles.tolist(), batch.texts.tolist(), strict=True
        ):
            yield name, (title, text)


def _told(one: _Read, told: Any) -> dict[str, Any]:  # noqa: ANN401  FileCounts, whose fields are copied
    early = [item for item in one.found.items if isinstance(item, Refused)]
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
