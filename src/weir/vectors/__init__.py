"""Vectors: the stores they are kept in, and exact search over them."""

from __future__ import annotations

from weir.vectors.exact import Array, Found, Rows, search
from weir.vectors.ragged import GatheredRagged, RaggedStore, stored_ragged
from weir.vectors.store import Store
from weir.vectors.stored import Cut, Gathered, Texts, stored

__all__ = [
    "Array",
    "Cut",
    "Found",
    "Gathered",
    "GatheredRagged",
    "RaggedStore",
    "Rows",
    "Store",
    "Texts",
    "search",
    "stored",
    "stored_ragged",
]
