"""Which parser reads a block of a ranking file: numpy alone, or compiled; both give the same rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.core.hashing import hash_strings
from weir.core.strings import Bytes, Float64, Int64
from weir.errors import BadValue
from weir.io.runs.numpy_parser import cells_plain, rank_plain, scan_plain
from weir.io.runs.parsed_rows import Lookup, ParsedRows, RankedRows
from weir.io.runs.whitespace_columns import (
    ColumnLayout,
)
from weir.io.storage.lines import LineBuffer
from weir.kernels.jit import available, check_available
from weir.kernels.jit.code_cache import kept

__all__ = ["ENGINES", "EngineName", "Parser", "choose_engine"]

EngineName: TypeAlias = Literal["auto", "numpy", "numba"]
ENGINES: tuple[EngineName, ...] = ("auto", "numpy", "numba")
# Compiling the kernels takes some seconds, loading what was compiled a tenth of one; below these sizes of a file,
# in bytes, numpy is done by then.
_WORTH_COMPILING = 128 << 20
_WORTH_LOADING = 4 << 20


@dataclass(frozen=True)
class Parser:
    """One way of doing it; block: bytes of text worked on at a time.

    scan: lines of TREC's columns; cells: lines of a layout; rank: order, duplicates, documents; hashes: of texts
    in a block that ends in eight bytes of padding.
    """

    name: str
    block: int
    scan: Callable[[LineBuffer, int], ParsedRows]
    cells: Callable[[LineBuffer, int, ColumnLayout], ParsedRows]
    rank: Callable[[Bytes, ParsedRows, Int64, Float64, Lookup], RankedRows]
    hashes: Callable[[Bytes, Int64, Int64], NDArray[np.uint64]]


def choose_engine(name: EngineName, size: int) -> Parser:
    """The engine of that name; for "auto" the faster one for `size` bytes of text that is installed.

    Raises BadValue for an unknown name, MissingExtra for "numba" without the `run` extra.
    """
    if name not in ENGINES:
        raise BadValue(f"engine is '{name}'; expected one of {', '.join(ENGINES)}")
    if name == "auto":
        worth = _WORTH_LOADING if kept("parse.rank_order") else _WORTH_COMPILING
        name = "numba" if size >= worth and available() else "numpy"
    if name == "numba":
        check_available()
        from weir.io.runs.numba_parser import cells_compiled, hashes_compiled, rank_compiled, scan_compiled

        return Parser(name, 2 << 20, scan_compiled, cells_compiled, rank_compiled, hashes_compiled)
    return Parser(name, 2 << 20, scan_plain, cells_plain, rank_plain, hash_strings)
