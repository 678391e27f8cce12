"""Find (query, document) pairs in rankings or judgments that number them differently."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from weir.core.strings import Ids, Int32, Int64


class HoldsPairs(Protocol):
    """Distinct (query, document) pairs: a Run or a Qrels."""

    @property
    def queries(self) -> Ids:
        """Identifiers of the queries."""

    @property
    def docs(self) -> Ids:
        """Identifiers of the documents."""

    @property
    def doc(self) -> Int32:
        """Position in `docs` of each row's document, int32[n]; -1 if unknown."""

    def query_of_row(self) -> Int32:
        """Return the position in `queries` of each row's query, int32[n]."""


def pair_rows(
    held: HoldsPairs, queries: Ids, docs: Ids, query: NDArray[np.integer], doc: NDArray[np.integer]
) -> Int64:
    """Return each (query, document) pair's row in `held`, int64[pairs]; -1 if absent.

    query, doc: positions in `queries` and `docs`; -1 for an unknown identifier.
    """
    width = max(1, len(held.docs))
    rows = _keys(held.query_of_row(), held.doc, width)
    wanted = _keys(_numbers(held.queries, queries, query), _numbers(held.docs, docs, doc), width)
    order = np.argsort(rows, kind="stable")
    at = np.append(order, -1)[np.searchsorted(rows, wanted, sorter=order)]
    return np.where((wanted >= 0) & (np.append(rows, -1)[at] == wanted), at, -1)


def _numbers(held: Ids, names: Ids, code: NDArray[np.integer]) -> Int64:
    numbers: Int64 = np.append(held.codes(names.strings), -1).astype(np.int64)[code]
    return numbers


def _keys(query: NDArray[np.integer], doc: NDArray[np.integer], width: int) -> Int64:
    return np.where((query >= 0) & (doc >= 0), query.astype(np.int64) * width + doc, -1)
