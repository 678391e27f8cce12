"""Columns as a data frame of the library that people use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

from numpy.typing import NDArray

from weir.errors import UnknownName, require

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

__all__ = ["FRAMES", "ArrowTable", "FrameLibrary", "PandasFrame", "PolarsFrame", "frame_of"]

FrameLibrary: TypeAlias = Literal["pandas", "polars", "arrow"]
PandasFrame: TypeAlias = "pandas.DataFrame"
PolarsFrame: TypeAlias = "polars.DataFrame"
ArrowTable: TypeAlias = "pyarrow.Table"
Columns: TypeAlias = Mapping[str, "Sequence[Any] | NDArray[Any]"]
FRAMES = {"pandas": ("pandas", "DataFrame"), "polars": ("polars", "DataFrame"), "arrow": ("pyarrow", "table")}


@overload
def frame_of(columns: Columns, library: Literal["pandas"] = "pandas") -> PandasFrame: ...
@overload
def frame_of(columns: Columns, library: Literal["polars"]) -> PolarsFrame: ...
@overload
def frame_of(columns: Columns, library: Literal["arrow"]) -> ArrowTable: ...
@overload
def frame_of(columns: Columns, library: FrameLibrary) -> PandasFrame | PolarsFrame | ArrowTable: ...
def frame_of(columns: Columns, library: FrameLibrary = "pandas") -> PandasFrame | PolarsFrame | ArrowTable:
    """A pandas or polars DataFrame, or an Arrow table, of aligned columns.

    Raises UnknownName for another library, MissingExtra where it is not installed.
    """
    if library not in FRAMES:
        raise UnknownName("library of frames", str(library), FRAMES)
    module, make = FRAMES[library]
    return getattr(require(module, extra="frames"), make)(dict(columns))
