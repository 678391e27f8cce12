"""The views that a dict has, for values with identifiers as keys."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, KeysView, ValuesView
from typing import Protocol, TypeVar

__all__ = ["items", "keys", "values"]

V_co = TypeVar("V_co", covariant=True)


class _Keyed(Protocol[V_co]):
    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[str]: ...

    def __contains__(self, key: object) -> bool: ...

    def __getitem__(self, key: str, /) -> V_co: ...


def keys(keyed: _Keyed[object]) -> KeysView[str]:
    """Return the identifiers, as `dict.keys`."""
    return KeysView(keyed)


def values(keyed: _Keyed[V_co]) -> ValuesView[V_co]:
    """Return a view of all entries, as `dict.values`; each entry is made on access."""
    return ValuesView(keyed)


def items(keyed: _Keyed[V_co]) -> ItemsView[str, V_co]:
    """Return a view of all (identifier, entry) pairs, as `dict.items`; each entry is made on access."""
    return ItemsView(keyed)
