"""Find the files of a collection on disk."""

from __future__ import annotations

import gzip
import os
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath, PurePosixPath
from typing import Any, BinaryIO, cast

from weir.errors import FormatError, is_shortage
from weir.files.import_report import import_losses
from weir.files.runs import RESULT_RECORD
from weir.files.text_files import (
    check_members,
    check_regular,
    check_unpacked,
    known_bytes,
    named_file,
    open_bytes,
    read_toml,
    refuse_pack,
)

# Parts of a collection: documents, queries and judgments in a folder, a zip or a TOML file.
#
# A folder or a zip holds `corpus.jsonl` (or `docs.jsonl`, `corpus.tsv`, `docs.tsv`), `queries.jsonl` (or
# `queries.tsv`) and `qrels/<split>.tsv` (or a single `qrels.tsv` or `qrels.txt`), each possibly as .gz. A TOML file
# names them: `documents`, `queries`, and `qrels` as a path or as a table of splits; `instruction` is for embedding
# models that follow instructions; `self_match` is "drop" if queries are documents and no answers to themselves;
# `candidates` is "judged" if only the judged documents of a query may be ranked, "all" if every document may. A folder
# may also hold one, `collection.toml`, with any of these keys.

DOCUMENTS = ("corpus.jsonl", "docs.jsonl", "corpus.tsv", "docs.tsv")
QUERIES = ("queries.jsonl", "queries.tsv")
QRELS = ("qrels.tsv", "qrels.txt", "qrels.trec")
ABOUT = "collection.toml"
CHOICES = {"self_match": ("keep", "drop"), "candidates": ("judged", "all")}
"""Keys of a TOML file with their allowed words."""
_SHOWN = 12  # names in a message
_QRELS_ENDINGS = (".tsv", ".txt", ".trec", ".qrels")


@dataclass(frozen=True)
class CollectionPart:
    """A file of a collection, on disk or in a zip."""

    path: Path
    member: str | None = None
    """Name in the zip `path`; None for a file on disk."""
    within: Path | None = field(default=None, compare=False)
    """Folder that contains the file or the TOML file that names it."""

    def __str__(self) -> str:
        return f"{self.path}/{self.member}" if self.member else str(self.path)

    @property
    def name(self) -> str:
        """Return the file's name without folder and .gz."""
        return PurePosixPath(self.member or self.path.name).name.removesuffix(".gz")

    def open(self) -> BinaryIO:
        """Return a stream of the file's decompressed bytes; raises FormatError for a missing file, a pipe or device,
        or a damaged zip.
        """
        try:
            check_regular(self.path)
            if self.member:
                with zipfile.ZipFile(self.path) as archive:
                    check_unpacked(self.path, archive.getinfo(self.member).file_size)
                    # The member stays readable: zipfile counts the users of its file.
                    stream = cast(BinaryIO, archive.open(self.member))
            else:
                return open_bytes(self.path)
        except FileNotFoundError:
            raise FormatError(self.path, "no such file", "a file of the collection") from None
        except (zipfile.BadZipFile, KeyError, NotImplementedError, RuntimeError) as error:
            raise FormatError(self, f"a damaged zip ({error})", "a readable one; fetch it again") from None
        if str(self).endswith(".gz"):
            unpacked = gzip.GzipFile(fileobj=stream)
            unpacked.myfileobj = cast(Any, stream)  # closed together
            stream = cast(BinaryIO, unpacked)
        return known_bytes(stream, self)


@dataclass(frozen=True)
class CollectionLayout:
    """The files of a collection, by role, and what it declares, such as its split."""

    root: Path
    documents: CollectionPart | None
    """None if missing; `queries` is None if missing, too."""
    queries: CollectionPart | None
    qrels: dict[str, CollectionPart]
    """{split: file of its judgments}; {} if missing."""
    name: str | None = None
    split: str | None = None
    instruction: str = ""
    self_match: str = ""
    """"keep" or "drop" documents with the query's identifier; "" if not declared."""
    candidates: str = ""
    """"judged" documents, "all" documents, or "" for documents in the metadata of queries."""
    called: tuple[CollectionPart, ...] = field(default=(), compare=False)
    """Files in `root` with the name of a part, also with other endings or capitals."""
    documents_expected: str = ""
    """How the error for missing documents describes them."""

    def need_documents(self) -> CollectionPart:
        """Return the file of documents; raises FormatError if missing."""
        if self.documents is None and self.documents_expected:
            raise FormatError(self.root, "no documents", self.documents_expected)
        return _needed(self.documents, self.root, "documents", DOCUMENTS)

    def need_queries(self) -> CollectionPart:
        """Return the file of queries; raises FormatError if missing."""
        return _needed(self.queries, self.root, "queries", QUERIES)

    def need_qrels(self, split: str) -> CollectionPart:
        """Return the file of a split's judgments; raises FormatError if missing."""
        if self.qrels and split not in self.qrels:
            raise FormatError(self.root, f"judgments for {', '.join(self.qrels)}", f"the split '{split}'")
        return _needed(self.qrels.get(split), self.root, "judgments", (f"qrels/{split}.tsv", *QRELS))

    def default_split(self) -> str:
        """Return the declared split, else "test" if it exists or nothing is judged, else the only one.

        Raises FormatError for several others.
        """
        if self.split or not self.qrels or "test" in self.qrels:
            return self.split or "test"
        if len(self.qrels) == 1:
            return next(iter(self.qrels))
        expected = f"one of these splits after the name, as in {self.root.name}:{next(iter(self.qrels))}"
        raise FormatError(self.root, f"judgments for {', '.join(self.qrels)}", expected)


def find_layout(path: Path, subset: str = "") -> CollectionLayout:
    """Return the files of a collection in a folder, the topmost folder of a zip, or a TOML file.

    subset: subfolder of one of several collections; files missing there are taken from `path`.

    Raises FormatError for a missing path, no collection, and several.
    """
    if subset and path.is_dir():
        return _shared(find_layout(path / subset), path)
    if not path.exists():
        raise FormatError(path, "no such file or folder", "a folder, zip or TOML file of a collection")
    check_regular(path)
    if path.is_dir():
        within = [p for p in path.iterdir() if p.name.lower() == "qrels" and p.is_dir()]
        files = (p for folder in (path, *within) for p in folder.iterdir() if p.is_file())
        layout = _layout(path, {p.relative_to(path): CollectionPart(p, within=path) for p in files})
        if (path / ABOUT).is_file():
            own = f"files of its own folder; {path / ABOUT} as the collection may name others"
            layout = _from_toml(path / ABOUT, layout, own)
    elif path.suffix == ".toml":
        layout = _from_toml(path, CollectionLayout(path, None, None, {}))
    else:
        try:
            with zipfile.ZipFile(path) as archive:
                members = [name for name in archive.namelist() if not name.endswith("/")]
            check_members(path, members)
        except (zipfile.BadZipFile, OSError) as error:
            if is_shortage(error):
                raise
            expected = "a folder, zip or TOML file of a collection"
            raise FormatError(path, f"not a readable zip ({error})", expected) from None
        layout = _in_zip(path, members, subset)
    if layout.documents is None and layout.queries is None and not layout.qrels:
        if (path / RESULT_RECORD).is_file():
            whole = f"systems of {path.parent.parent} are compared by naming that folder alone"
            raise FormatError(path, "rankings of a system", f"judgments or a collection; {whole}")
        if results := sorted(record.parent for record in path.glob(f"*/*/{RESULT_RECORD}")):
            named = " and ".join(map(str, results[:2]))
            expected = f"judgments or a collection; its results are named by their folders, such as {named}"
            raise FormatError(path, "a results folder of weir run", expected)
        refuse_pack(path)
        names = ", ".join((*DOCUMENTS, *QUERIES, "qrels/*.tsv"))
        near = [str(part.member or part.path.name) for part in layout.called]
        if path.is_dir() and any((path / one).is_file() for one in SAVED):
            tables = sorted(one.relative_to(path).as_posix() for one in path.rglob("*.arrow"))
            expected = (
                "corpus, queries and qrels, each in a folder of its name; weir data import reads its files"
            )
            raise FormatError(path, f"a saved data set, {_listed(tables) or 'without tables'}", expected)
        found = f"no part of a collection{f' but {_listed(near)}' * bool(near)}"
        raise FormatError(path, found, f"any of {names} (or with .gz)")
    return layout


def collections_below(folder: Path) -> list[str]:
    """Return the sorted relative paths of subfolders, at any depth, that are collections; none within another."""
    found = []
    for inside, names, _ in os.walk(folder):
        here = Path(inside)
        names[:] = sorted(name for name in names if not name.startswith(".") and ".weir" not in name)
        if here != folder and _is_collection(here):
            found.append(here.relative_to(folder).as_posix())
            names.clear()
    return found


def holds_collection(folder: Path) -> bool:
    """Return True if a folder, or a subfolder at any depth, is a collection."""
    try:
        return bool(find_layout(folder))
    except FormatError:
        return bool(collections_below(folder))


def _is_collection(folder: Path) -> bool:
    try:
        layout = find_layout(folder)
    except FormatError:
        return False
    return sum(map(bool, (layout.documents, layout.queries, layout.qrels))) > 1


def _shared(own: CollectionLayout, folder: Path) -> CollectionLayout:
    try:
        outer = find_layout(folder)
    except FormatError:
        return own
    return replace(
        own,
        documents=own.documents or outer.documents,
        queries=own.queries or outer.queries,
        qrels=own.qrels or outer.qrels,
    )


def _in_zip(path: Path, members: list[str], subset: str) -> CollectionLayout:
    usual = {name + end for name in (*DOCUMENTS, *QUERIES, *QRELS) for end in ("", ".gz")}
    parts = {PurePosixPath(member): CollectionPart(path, member) for member in members}
    folders = {p.parent for p in parts if p.name.lower() in usual}
    folders |= {p.parents[1] for p in parts if p.parent.name.lower() == "qrels" and p.suffix != ".zip"}
    folders = {one for one in folders if one.name.lower() != "qrels" or one.parent not in folders}
    tops = sorted((one for one in folders if not folders & set(one.parents)), key=str)
    if subset:
        tops = [one for one in folders if subset in (str(one), one.name)]
    if not tops and (zips := [str(p) for p in parts if p.suffix == ".zip"]):
        raise FormatError(path, f"zips within it ({_listed(zips)})", "it unpacked, and one of them")
    layouts = [
        _layout(
            path, {p.relative_to(top): of for p, of in parts.items() if p.parent == top or _of_qrels(p, top)}
        )
        for top in tops
    ]
    if subset and len(tops) != 1:
        raise FormatError(
            path, f"no one collection '{subset}'", f"one of {_listed(map(str, sorted(folders)))}"
        )
    for part in ("documents", "queries", "qrels"):
        if sum(bool(getattr(one, part)) for one in layouts) > 1:
            raise several_collections(path, map(str, tops))
    return CollectionLayout(
        path,
        next((one.documents for one in layouts if one.documents), None),
        next((one.queries for one in layouts if one.queries), None),
        next((one.qrels for one in layouts if one.qrels), {}),
        called=tuple(part for one in layouts for part in one.called),
    )


def _of_qrels(path: PurePath, top: PurePath) -> bool:
    return path.parent.parent == top and path.parent.name.lower() == "qrels"


def several_collections(path: Path, names: Iterable[str]) -> FormatError:
    """Return the FormatError for several collections in a folder or zip."""
    listed = list(names)
    return FormatError(
        path, f"{len(listed)} collections ({_listed(listed)})", f"one of them, as in {path}#{listed[0]}"
    )


def _listed(names: Iterable[str]) -> str:
    listed = list(names)
    return ", ".join(listed[:_SHOWN]) + ("" if len(listed) <= _SHOWN else ", ...")


def left_out(layout: CollectionLayout) -> Iterator[str]:
    """Yield a sentence on each file that seems to be a part but is not read, then on losses of an import."""
    parts = [part for part in (layout.documents, layout.queries, *layout.qrels.values()) if part is not None]
    for part in layout.called:
        if part not in parts:
            kind = _kind_of(part)
            read = next(
                (one for one in parts if kind in (_kind_of(one), _kind_of(one).partition("/")[0])), None
            )
            usual = part.name in (*DOCUMENTS, *QUERIES, *QRELS) or Path(part.name).suffix in _QRELS_ENDINGS
            unpacked = "unpacked, " * (part.member is not None)
            why = f": {read} is" if read and usual else f"; {unpacked}weir data import reads it"
            yield f"{part} is not read{why}"
    yield from import_losses(part.path for part in parts)


_TABLES = {".csv", ".json", ".jsonl", ".tsv", ".parquet", ".arrow", ".feather", ".xlsx", *_QRELS_ENDINGS}
SAVED = ("dataset_info.json", "dataset_dict.json", "state.json")
"""Records in a folder that `save_to_disk` of datasets writes, beside tables in Arrow's format."""
_NUMBERED = re.compile(r"data-\d{5}-of-\d{5}\.arrow|\d{4}\.parquet")


def naming_path(path: Path) -> Path:
    """Return the absolute path of a file; of its folder if the file has only a number, such as train/0000.parquet."""
    whole = path.absolute()
    return whole.parent if _NUMBERED.fullmatch(path.name) else whole


_STEMS = {
    "corpus": "documents",
    "docs": "documents",
    "documents": "documents",
    "queries": "queries",
    "qrels": "qrels",
}


def _kind_of(part: CollectionPart) -> str:
    path = PurePosixPath(part.member or part.path.as_posix())
    name = PurePosixPath(re.sub(r"\.(gz|zst)$", "", path.name.lower()))
    # A store that was made of documents ends in .weir.
    if name.name[0] == "." or ".weir" in name.suffixes or not _TABLES.intersection(name.suffixes):
        return ""
    return f"qrels/{name.stem}" if path.parent.name.lower() == "qrels" else _STEMS.get(name.stem, "")


def _needed(part: CollectionPart | None, root: Path, what: str, names: Iterable[str]) -> CollectionPart:
    if part is None:
        raise FormatError(root, f"no {what}", f"one of {', '.join(names)} (or with .gz)")
    return part


def _layout(root: Path, parts: Mapping[PurePath, CollectionPart]) -> CollectionLayout:
    files, splits = (
        {path.name: part for path, part in sorted(parts.items()) if str(path.parent) == at}
        for at in (".", "qrels")
    )
    qrels = {}
    for stem in dict.fromkeys(PurePosixPath(n.removesuffix(".gz")).stem for n in splits if n[0] != "."):
        if part := _first(splits, [stem + end for end in _QRELS_ENDINGS]):
            qrels[stem] = part
    if not qrels and (single := _first(files, QRELS)):
        qrels["test"] = single
    called = tuple(part for _, part in sorted(parts.items()) if _kind_of(part))
    return CollectionLayout(root, _first(files, DOCUMENTS), _first(files, QUERIES), qrels, called=called)


def _first(files: dict[str, CollectionPart], names: Iterable[str]) -> CollectionPart | None:
    return next((files[n + end] for n in names for end in ("", ".gz") if n + end in files), None)


def _from_toml(path: Path, layout: CollectionLayout, inside: str = "") -> CollectionLayout:
    keys = read_toml(path, "keys documents, queries, qrels")
    qrels = keys.pop("qrels", {})
    if isinstance(qrels, str):
        qrels = {keys.get("split", "test"): qrels}
    valid = {"name", "split", "instruction", "documents", "queries", *CHOICES}
    if unknown := sorted(set(keys) - valid):
        raise FormatError(
            path, f"the key '{unknown[0]}'", f"keys among {', '.join(sorted(valid | {'qrels'}))}"
        )
    texts = [*keys.values(), *(qrels.values() if isinstance(qrels, dict) else [qrels])]
    if not all(isinstance(text, str) for text in texts):
        raise FormatError(path, "a value that is not text", "paths in quotes; qrels may be a table of splits")
    for key, words in CHOICES.items():
        if keys.get(key, "") not in ("", *words):
            expected = " or ".join(f"'{word}'" for word in words)
            raise FormatError(path, f"{key} = '{keys[key]}'", f"{key} = {expected}")

    def declared_part(name: str, kind: str, split: str = "") -> CollectionPart:
        place = named_file(path.parent, name, path, inside)
        if not place.is_dir() and place.suffix != ".zip":
            return CollectionPart(place, within=path.parent)
        of = find_layout(place)
        if kind == "qrels":
            return of.need_qrels(split)
        return of.need_documents() if kind == "documents" else of.need_queries()

    keys |= {key: declared_part(keys[key], key) for key in ("documents", "queries") if key in keys}
    if qrels:
        keys["qrels"] = {split: declared_part(name, "qrels", split) for split, name in qrels.items()}
    return replace(layout, **keys)
