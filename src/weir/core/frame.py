"""Columns as a data frame of the library that people use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from numpy.typing import NDArray

from weir.errors import UnknownName, require

__all__ = ["FRAMES", "FrameLibrary", "frame_of"]

FrameLibrary: TypeAlias = Literal["pandas", "polars", "arrow"]
FRAMES = {"pandas": ("pandas", "DataFrame"), "polars": ("polars", "DataFrame"), "arrow": ("pyarrow", "table")}


def frame_of(columns: Mapping[str, Sequence[Any] | NDArray[Any]], library: FrameLibrary = "pandas") -> Any:  # noqa: ANN401  any library's
    """A pandas or polars DataFrame, or an Arrow table, of aligned columns.

    Raises UnknownName for another library, MissingExtra where it is not installed.
    """
    if library not in FRAMES:
        raise UnknownName("library of frames", str(library), FRAMES)
    module, make = FRAMES[library]
    return getattr(require(module, extra="frames"), make)(dict(columns))
