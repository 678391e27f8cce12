"""The formats of rankings and judgments: how a file's is known, and what each can hold."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePath

from weir.io.delimited import SEPARATORS, first_cells
from weir.io.lines import read_bytes
from weir.io.names import Kind, is_header
from weir.io.packed import unpacked_name

__all__ = ["FORMATS", "Format", "format_of", "named_format"]


@dataclass(frozen=True)
class Format:
    """A way of writing rankings and judgments.

    suffixes: the endings of its files, the one that Weir writes first; packs: whether .gz or .zst may follow;
    blanks: whether identifiers may have white space; library: what reading it needs beside numpy.
    """

    name: str
    suffixes: tuple[str, ...]
    packs: bool = True
    blanks: bool = True
    library: str | None = None


FORMATS = (
    Format("trec", (".trec", ".txt", ".run", ".res", ".qrels", ".qrel"), blanks=False),
    Format("json", (".json",)),
    Format("csv", (".csv",)),
    Format("tsv", (".tsv",)),
    Format("parquet", (".parquet", ".pq"), packs=False, library="pyarrow"),
    Format("arrow", (".arrow", ".feather", ".ipc"), packs=False, library="pyarrow"),
)
_CERTAIN = {suffix: f for f in FORMATS for suffix in f.suffixes[: 1 if f.name == "trec" else None]}
_MAGIC = ((b"PAR1", "parquet"), (b"ARROW1", "arrow"), (b"FEA1", "arrow"))
_BY_NAME = {f.name: f for f in FORMATS}


def named_format(path: Path) -> Format | None:
    """The format that a file's name says, None where it says none."""
    suffix = PurePath(unpacked_name(path).lower()).suffix
    return next((f for f in FORMATS if suffix in f.suffixes), None)


def format_of(path: Path, kind: Kind) -> Format:
    """The format of an existing file: by its name, else by how it begins.

    Raises FormatError when it cannot be read.
    """
    suffix = PurePath(unpacked_name(path).lower()).suffix
    certain = _CERTAIN.get(suffix)
    if certain is None:
        return _BY_NAME[_sniffed(path, kind)]
    if certain.name == "tsv" and _like_trec(first_cells(path, "\t"), kind):
        return _BY_NAME["trec"]
    return certain


def _sniffed(path: Path, kind: Kind) -> str:
    head = read_bytes(path, 64)
    if head.lstrip().startswith(b"{"):
        return "json"
    for magic, name in _MAGIC:
        if head.startswith(magic):
            return name
    for name, separator in SEPARATORS.items():
        cells = first_cells(path, separator)
        if len(cells) > 2 and is_header(cells, kind):
            return name
    return "trec"


def _like_trec(cells: list[str], kind: Kind) -> bool:
    """Whether a first line between tabs has no header but TREC's columns, or those of BEIR without their names."""
    return not is_header(cells, kind) and (kind == "qrels" or len(cells) in (5, 6))
