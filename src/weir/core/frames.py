"""Values as data frames and plain JSON values, and back."""

from __future__ import annotations

import math
import types
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    Protocol,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)

import numpy as np
from numpy.typing import NDArray

from weir.argument_types import named_arguments
from weir.core.strings import Ids
from weir.errors import BadValue, UnknownName, require

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

# Columns as a data frame of the library that people use.

FrameLibrary: TypeAlias = Literal["pandas", "polars", "arrow"]
PandasFrame: TypeAlias = "pandas.DataFrame"
PolarsFrame: TypeAlias = "polars.DataFrame"
ArrowTable: TypeAlias = "pyarrow.Table"
Columns: TypeAlias = Mapping[str, "Sequence[Any] | NDArray[Any]"]
FRAMES = {"pandas": ("pandas", "DataFrame"), "polars": ("polars", "DataFrame"), "arrow": ("pyarrow", "table")}


class Columned(Protocol):
    """A value with columns of equal length, such as a run."""

    def columns(self) -> Columns:
        """Return {column name: values}."""


@overload
def to_frame(values: Columned, library: Literal["pandas"] = "pandas") -> PandasFrame: ...
@overload
def to_frame(values: Columned, library: Literal["polars"]) -> PolarsFrame: ...
@overload
def to_frame(values: Columned, library: Literal["arrow"]) -> ArrowTable: ...
@named_arguments
def to_frame(values: Columned, library: FrameLibrary = "pandas") -> PandasFrame | PolarsFrame | ArrowTable:
    """Return a value's columns as a data frame of pandas or polars, or an Arrow table.

    Raises UnknownName for another library, MissingExtra if it is not installed.
    """
    if library not in FRAMES:
        raise UnknownName("library of frames", str(library), FRAMES)
    module, make = FRAMES[library]
    return getattr(require(module), make)(dict(values.columns()))


def columns_of(lines: Iterable[Mapping[str, object]]) -> dict[str, list[object]]:
    """Return {name: list of values} from a dict for each row; None where a dict lacks the name."""
    held = list(lines)
    return {
        name: [line.get(name) for line in held] for name in dict.fromkeys(n for line in held for n in line)
    }


# Frozen dataclasses as plain JSON values and back, at full precision.

T = TypeVar("T")


def json_value(value: object) -> Any:  # noqa: ANN401  dicts, lists, texts and numbers
    """Return a dataclass, mapping, list or array as plain dicts, lists and scalars; NaN and infinity become None."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: json_value(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {key: json_value(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_value(one) for one in value]
    if isinstance(value, (np.ndarray, Ids)):
        return json_value(value.tolist())
    plain = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(plain, float) and not math.isfinite(plain) else plain


def rebuilt(kind: type[T], values: object) -> T:
    """Return the dataclass of type `kind` that `json_value` turned into `values`; None becomes NaN in float fields.

    Raises BadValue for other fields and for anything but a dict.
    """
    if not isinstance(values, Mapping):
        raise BadValue(f"found {type(values).__name__}; expected the fields of {kind.__name__}")
    hints = get_type_hints(kind)
    names = {field.name for field in fields(kind)}  # type: ignore[arg-type]  # every caller passes a dataclass
    if not names.issuperset(values):
        raise BadValue(f"found the field '{min(set(values) - names)}'; expected those of {kind.__name__}")
    try:
        return kind(**{name: _rebuilt(hints[name], value) for name, value in values.items()})
    except TypeError as error:
        raise BadValue(f"found other fields than those of {kind.__name__}: {error}") from None


def _rebuilt(hint: Any, value: object) -> object:  # noqa: ANN401  a type, or what typing makes of one
    origin, inner = get_origin(hint), get_args(hint)
    if hasattr(origin, "__value__"):  # a `type` statement, as NDArray is one from NumPy 2.5 on
        return _rebuilt(origin.__value__[inner], value)
    if origin in (Union, types.UnionType):
        if value is None and type(None) in inner:
            return None
        return _rebuilt(next(one for one in inner if one is not type(None)), value)
    if origin is tuple and isinstance(value, list):
        kinds = [inner[0]] * len(value) if inner[1:] == (...,) else inner
        return tuple(_rebuilt(one, part) for one, part in zip(kinds, value, strict=True))
    if origin is dict and isinstance(value, Mapping):
        return {inner[0](key): _rebuilt(inner[1], one) for key, one in value.items()}
    if hint is Ids and isinstance(value, list):
        return Ids.of(value)
    if origin is np.ndarray:
        return np.array(value, get_args(inner[1])[0])
    if is_dataclass(hint) and isinstance(hint, type):
        return rebuilt(hint, value)
    if hint is float:
        return math.nan if value is None else float(value) if isinstance(value, (int, float)) else value
    return value
