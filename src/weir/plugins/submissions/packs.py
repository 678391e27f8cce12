"""Packs: rankings, scores, provenance and costs of a results folder in one file, and their verification.

    manifest.json                                     the contents: each file with its SHA-256, and a hash of all
    results/<collection>/<system>-<key>/...           rankings, scores and their records, laid out like the folder
    results/<collection>/indexes/<name>/stage.json    the record of an index, without the index

A verifier needs the collections: a pack holds no texts and no judgments.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from weir.api.result_set import ResultSet
from weir.argument_types import checked
from weir.core import frames
from weir.core.results import result_html, result_text
from weir.core.rounding import bytes_text, counted
from weir.core.scores import Note
from weir.core.tables import Table, sentences, table_of
from weir.errors import BadValue, FormatError, StoreError, WeirError
from weir.experiment.results import (
    ResultCell,
    by_collection,
    by_split,
    check_files,
    chosen_cells,
    current_cells,
    finished_and_lacking,
    finished_cells,
    missing_results,
    newest_cells,
)
from weir.experiment.stages import RECORD, flattened, read_record
from weir.experiment.verify import VERDICTS, Verdict, verified
from weir.files.atomic import atomic_file, temporary_folder
from weir.files.downloads import extract
from weir.files.integrity import content_hash
from weir.files.json_record import parse_json
from weir.files.paths import path_of
from weir.files.text_files import check_record

FORMAT = 1
MANIFEST = "manifest.json"
RESULTS = "results"
_FIRST_TIME = (1980, 1, 1, 0, 0, 0)  # the earliest that a zip can say: the same files make the same bytes
_EXPECTED = "a pack that weir submit pack has written"
_NAMED = 3  # paths of a note


@dataclass(frozen=True, repr=False)
class Pack:
    """Summary of a pack: the results in it, its bytes and hash, results left out, and paths that it reveals."""

    path: str
    digest: str
    """Hash of all files."""
    cells: tuple[tuple[str, str], ...]
    """(collection, with its split if there are several, and system)."""
    bytes: int
    note: str = ""
    left_out: tuple[str, ...] = ()
    """A sentence on each result left out because other judgments scored it or its collection changed, and on results
    that are missing."""
    places: tuple[str, ...] = ()
    """Absolute paths of this machine that the packed records name, such as folders of collections."""

    def tables(self) -> tuple[Table, ...]:
        lines = [["collection", "system"], *map(list, self.cells)]
        end = f"{counted(len(self.cells), 'cell')}, {bytes_text(self.bytes)}, content {self.digest}"
        return (table_of(lines, keys=2, notes=(end,)),)

    to_frame = frames.to_frame

    def columns(self) -> dict[str, list[object]]:
        return frames.columns_of({"dataset": dataset, "system": system} for dataset, system in self.cells)

    def notes(self) -> tuple[Note, ...]:
        """Return notes on facts that a pack cannot prove, on paths that its readers see, and on results left out."""
        more = f" and {len(self.places) - _NAMED} more" * (len(self.places) > _NAMED)
        named = f"readers of the pack see paths of this machine: {', '.join(self.places[:_NAMED])}{more}"
        return (Note(UNPROVED), *[Note(named)] * bool(self.places), *map(Note, self.left_out))

    __repr__ = result_text
    _repr_html_ = result_html


UNPROVED = (
    "rankings, scores, judgments and names are checked; times, memory and versions are claims of who packed"
)


@dataclass(frozen=True, repr=False)
class Verification:
    """The outcome of verifying a pack; true if everything was checked and matches."""

    path: str
    digest: str
    problems: tuple[str, ...]
    """A sentence on each mismatch."""
    unchecked: tuple[str, ...]
    """A sentence on each part that could not be checked."""
    verdicts: tuple[Verdict, ...]
    """One for each folder of rankings; () if files differ from the manifest."""
    cells: tuple[tuple[str, str], ...] = ()
    """Its results, as in `Pack.cells`."""

    @property
    def sound(self) -> bool:
        """True if no mismatch was found, even if parts were not checked."""
        return not self.problems

    def __bool__(self) -> bool:
        return self.sound and not self.unchecked

    def tables(self) -> tuple[Table, ...]:
        end = (
            f"refused: {counted(len(self.problems), 'problem')}"
            if self.problems
            else f"not verified whole: {counted(len(self.unchecked), 'reason')}"
            if self.unchecked
            else f"verified: {counted(len(self.cells), 'cell')}, content {self.digest}"
        )
        return (sentences(*self.problems, *(f"not checked: {one}" for one in self.unchecked), end),)

    to_frame = frames.to_frame

    def columns(self) -> dict[str, list[object]]:
        return ResultSet(VERDICTS, self.verdicts).columns()

    def notes(self) -> tuple[Note, ...]:
        """Return a note on facts that cannot be verified; () after a mismatch."""
        return (Note(UNPROVED),) if self.sound else ()

    __repr__ = result_text
    _repr_html_ = result_html


@checked
def pack_results(
    folder: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    datasets: Sequence[str] = (),
    systems: Sequence[str] = (),
    note: str = "",
) -> Pack:
    """Write rankings, scores and records of a results folder as one file, and return a summary.

    datasets: only these datasets, by default all. A group means its members.
    systems: only these systems, by default all.
    note: a sentence for readers, such as who ran it.

    The same folder gives the same bytes. Results scored by outdated judgments are left out. Raises
    FormatError for a folder without results, UnknownName for an unknown name, StoreError for changed files
    and if the pack cannot be written.
    """
    root = path_of(folder)
    newest, older = newest_cells(chosen_cells(finished_cells(root), datasets, systems))
    cells, outdated = current_cells(newest)
    if not cells:
        raise BadValue("; ".join([*older, *outdated]))
    cells = by_collection(cells)
    files = {name: path for cell in cells for name, path in _files_of(root, cell)}
    hashes = {name: content_hash(path) for name, path in sorted(files.items())}
    digest = _digest(hashes)
    manifest = {
        "weir submission": FORMAT,
        "weir": version("weir-ir"),
        "note": note,
        "cells": [[cell.dataset, cell.label] for cell in cells],
        "files": {name: {"sha256": of, "bytes": files[name].stat().st_size} for name, of in hashes.items()},
        "content": digest,
    }
    with atomic_file(path_of(out)) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        text = json.dumps(manifest, ensure_ascii=False, indent=1).encode()
        archive.writestr(_member(MANIFEST, len(text)), text)
        for name, path in sorted(files.items()):
            with path.open("rb") as file, archive.open(_member(name, path.stat().st_size), "w") as member:
                shutil.copyfileobj(file, member, 1 << 20)
        archive.close()
        size_packed = temporary.stat().st_size
    held = tuple((cell.dataset, cell.label) for cell in by_split(cells))
    left_out = (*older, *outdated, *missing_results(root, datasets, systems))
    return Pack(str(out), digest, held, size_packed, note, left_out, _places_in(cells))


def _places_in(cells: Sequence[ResultCell]) -> tuple[str, ...]:
    records = [record for cell in cells for _, record in (*cell.stages, *cell.scored)]
    values = {value for record in records for _, value in flattened("", record.to_json())}
    return tuple(sorted(value for value in values if Path(value).is_absolute()))


def _digest(hashes: Mapping[str, str]) -> str:
    return hashlib.sha256(
        "".join(f"{h}  {name}\n" for name, h in sorted(hashes.items())).encode()
    ).hexdigest()


def _member(name: str, size: int) -> zipfile.ZipInfo:
    member = zipfile.ZipInfo(name, _FIRST_TIME)
    member.compress_type, member.external_attr, member.file_size = (
        zipfile.ZIP_DEFLATED,
        0o644 << 16,
        size,
    )
    return member


def _files_of(root: Path, cell: ResultCell) -> Iterator[tuple[str, Path]]:
    for stage, record in (*cell.stages, *((cell.folder, record) for _, record in cell.scored)):
        if not stage.resolve().is_relative_to(root.resolve()):
            continue
        if record.kind != "index":
            check_files(record, stage)
            yield from ((_name(root, stage / name), stage / name) for name in record.files)
        if record.kind != "scores":
            yield _name(root, stage / RECORD), stage / RECORD
    for path, _ in cell.scored:
        yield _name(root, path), path


def _name(root: Path, path: Path) -> str:
    return f"{RESULTS}/{path.resolve().relative_to(root.resolve()).as_posix()}"


@checked
def verify_pack(
    path: str | os.PathLike[str],
    *,
    places: Mapping[str, str | Path] | None = None,
    fetch: bool = False,
    progress: Callable[[str, int, int], None] | None = None,
) -> Verification:
    """Return how a pack differs from its manifest, and its scores from the same scores computed again.

    places: {dataset: path of its collection}.
    fetch: download the collections that records of results name. By default the network is not used, and
        results on collections that are not here are not checked.
    progress: called with (folder, number checked, total).

    A mismatch is returned, not raised. Raises FormatError for a missing file, and one that is no pack or is
    unsafe.
    """
    with temporary_folder("pack") as temporary:
        root = unpacked(path_of(path), temporary)
        manifest = _manifest(root, path_of(path))
        problems = list(_file_problems(root, manifest))
        if problems:
            return Verification(str(path), str(manifest["content"]), tuple(problems), (), ())
        try:
            verdicts = verified(root / RESULTS, progress, fetch, places)
        except WeirError as error:
            return Verification(str(path), str(manifest["content"]), (_inside(error, root),), (), ())
        try:
            cells, _ = finished_and_lacking(root / RESULTS)  # damage is among the verdicts
        except WeirError:  # as of records that are all damaged
            cells = []
        named, there = map(Counter, (map(tuple, manifest["cells"]), ((c.dataset, c.label) for c in cells)))
        problems += [
            f"the manifest names {system} on {dataset}, which no whole record holds"
            for dataset, system in named - there
        ]
        problems += [
            f"{system} on {dataset} is not named in the manifest" for dataset, system in there - named
        ]
        if not cells and not problems:
            problems.append("holds no result")
        for one in verdicts:
            own = one.problems if one.kind != "index" else _index_problems(root / RESULTS / one.folder)
            problems += [f"{one.folder}: {problem}" for problem in own]
        unchecked = [f"{v.folder}: {reason}" for v in verdicts if v.kind != "index" for reason in v.unchecked]
        verdicts_shown = tuple(one for one in verdicts if one.kind != "index")
        held = tuple((cell.dataset, cell.label) for cell in by_split(cells))
        return Verification(
            str(path), str(manifest["content"]), tuple(problems), tuple(unchecked), verdicts_shown, held
        )


def may_be_pack(path: Path) -> bool:
    """Return whether a file is a pack by its content, or called as a zip, so that a damaged one is named."""
    if not path.is_file():
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            held = {Path(name).name for name in archive.namelist()}
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        held = set[str]()
    return path.suffix == ".zip" or MANIFEST in held


def unpacked(path: Path, temporary: Path) -> Path:
    """Unpack a pack below `temporary`, and return the folder with its manifest.

    Raises FormatError for a missing file, and one that is no pack or is unsafe.
    """
    if not path.is_file():
        raise FormatError(path, "no plain file" if path.exists() else "no such file", _EXPECTED)
    extract(path, temporary / "pack")
    if (temporary / "pack" / MANIFEST).is_file():
        return temporary / "pack"
    raise FormatError(path, f"no {MANIFEST}", _EXPECTED)


def _manifest(root: Path, path: Path) -> dict[str, Any]:
    try:
        check_record(root / MANIFEST)
        manifest = parse_json((root / MANIFEST).read_bytes(), f"{path}/{MANIFEST}")
        if manifest["weir submission"] != FORMAT:
            raise FormatError(path, f"a pack of format {manifest['weir submission']}", f"format {FORMAT}")
        files, cells = manifest["files"], manifest["cells"]
        if not all(isinstance(one["sha256"], str) for one in files.values()):
            raise TypeError("files")
        if not all(isinstance(cell, list) and [*map(type, cell)] == [str, str] for cell in cells):
            raise TypeError("cells")
        _ = manifest["content"]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise FormatError(path, f"a {MANIFEST} of another layout", _EXPECTED) from None
    return dict(manifest)


def _file_problems(root: Path, manifest: Mapping[str, Any]) -> Iterator[str]:
    files = manifest["files"]
    there = {
        path.relative_to(root).as_posix(): path
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.relative_to(root).as_posix() != MANIFEST
    }
    hashes = {name: content_hash(path) for name, path in there.items()}
    for name in sorted(files.keys() | there.keys()):
        if name not in there:
            yield f"{name} is missing"
        elif name not in files:
            yield f"{name} is not in the manifest"
        elif files[name]["sha256"] != hashes[name]:
            yield f"{name} is not what the manifest says"
    if _digest({name: one["sha256"] for name, one in files.items()}) != manifest["content"]:
        yield "the hash of the content is not that of the files"


def _index_problems(folder: Path) -> list[str]:
    try:
        record = read_record(folder / RECORD)
    except StoreError as error:
        return [_inside(error, folder)]
    named = record.stage.folder_name == folder.name
    return (
        [] if named else [f"its folder is that of another stage; {RECORD} is of {record.stage.folder_name}"]
    )


def _inside(error: Exception, root: Path) -> str:
    return str(error).replace(f"{root}/", "")
