"""Methods of a dict for classes whose keys are identifiers."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, KeysView, ValuesView
from typing import Protocol, TypeVar

V_co = TypeVar("V_co", covariant=True)


class _Keyed(Protocol[V_co]):
    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[str]: ...

    def __contains__(self, key: object) -> bool: ...

    def __getitem__(self, key: str, /) -> V_co: ...


def keys(keyed: _Keyed[object]) -> KeysView[str]:
    """Return a view of the identifiers, like `dict.keys`."""
    return KeysView(keyed)


def values(keyed: _Keyed[V_co]) -> ValuesView[V_co]:
    """Return a view of the entries, like `dict.values`, each made on access."""
    return ValuesView(keyed)


def items(keyed: _Keyed[V_co]) -> ItemsView[str, V_co]:
    """Return a view of (identifier, entry) pairs, like `dict.items`, each made on access."""
    return ItemsView(keyed)


def get(keyed: _Keyed[V_co], key: str) -> V_co | None:
    """Return an identifier's entry; None if absent."""
    return keyed[key] if key in keyed else None  # noqa: SIM401  this is that method
