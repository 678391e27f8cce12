"""Read documents and queries from frames, lists of records and labelled series."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal

from weir.core.corpus import ID, RECORDS, TEXT, TITLE
from weir.core.frames import columns_of
from weir.core.input_shapes import Labelled
from weir.errors import BadValue
from weir.files.column_names import fold, of_role
from weir.files.frames import Columns, frame_columns

_TEXTS = {"documents": ("text",), "queries": ("text", "query")}
_IDS = {"documents": ("doc", "query_id"), "queries": ("query_id", "query", "doc")}
"""{content: roles of its columns, the best first}; documents may be queries, as in duplicate questions."""
_JSON = (str, int, float, bool, list, tuple, dict)


def _records_of(value: object, what: Literal["documents", "queries"]) -> Mapping[str, object] | None:
    if isinstance(value, Labelled) and not hasattr(value, "columns"):
        return _by_identifier(*zip(*value.items(), strict=True)) if len(value.to_numpy()) else {}
    columns = _columns(value)
    if columns is None:
        return None
    names = list(columns)
    title = (_named(names, "title", what, ("title",)) if what == "documents" else None) or ""
    text = _named([name for name in names if name != title], "text", what, _TEXTS[what])
    rest = [name for name in names if name not in (title, text)]
    own = [name for name in rest if fold(name) == "id"]
    key = own[0] if len(own) == 1 else _named(rest, "identifier", what, _IDS[what])
    for found, role in ((key, "identifier"), (text, "text")):
        if found is None:
            example = {"identifier": {"documents": "doc_id", "queries": "query_id"}[what], "text": "text"}[
                role
            ]
            raise BadValue(
                f"columns: {', '.join(names) or 'none'}; none of them is the {role} of {what}; expected one called "
                f"'{example}'"
            )
    called = {title: TITLE, text: TEXT}
    cells = {called.get(name, name): columns[name]() for name in names if name != key}
    rows = [
        {name: _plain(cell) for name, cell in zip(cells, row, strict=True) if not _missing(cell)}
        for row in zip(*cells.values(), strict=True)
    ]
    return _by_identifier(columns[str(key)](), rows)


def _columns(value: object) -> Columns | None:
    frame: Any = value
    if isinstance(frame, Sequence) and not isinstance(frame, (str, bytes)):
        if not frame or not all(isinstance(row, Mapping) for row in frame):
            return None
        return {str(name): partial(list, cells) for name, cells in columns_of(frame).items()}
    if not hasattr(frame, "columns") and not hasattr(frame, "column_names"):
        return None
    return frame_columns(frame)


def _named(names: Sequence[str], role: str, what: str, roles: Sequence[str]) -> str | None:
    for one in roles:
        found = of_role(names, one)
        if len(found) > 1:
            raise BadValue(
                f"columns: {', '.join(names)}; {' and '.join(found)} could each be the {role} of {what}; call one of "
                f"them '{ID if role == 'identifier' else role}'"
            )
        if found:
            return found[0]
    return None


def _by_identifier(identifiers: Sequence[object], rows: Sequence[object]) -> dict[str, object]:
    held: dict[str, object] = {}
    for number, (one, row) in enumerate(zip(identifiers, rows, strict=True), 1):
        whole = hasattr(one, "__index__") and not isinstance(one, bool)
        if not whole and (not isinstance(one, str) or not one):
            raise BadValue(f"row {number} has the identifier {one!r}; expected a text or a whole number")
        if str(one) in held:
            raise BadValue(f"row {number} has the identifier '{one}' again; remove the duplicates first")
        held[str(one)] = "" if _missing(row) else row
    return held


def _missing(cell: object) -> bool:
    return cell is None or cell != cell or type(cell).__name__ in ("NAType", "NaTType")  # noqa: PLR0124  NaN alone


def _plain(cell: object) -> object:
    value: Any = cell.item() if hasattr(cell, "dtype") and hasattr(cell, "item") else cell
    return value if isinstance(value, _JSON) else str(value)


RECORDS.register(_records_of)
