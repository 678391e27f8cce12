"""Some documents for each query: those that alone may be ranked, or those that may not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weir.core.ids import Ids
from weir.core.strings import Int32, Int64

__all__ = ["DocumentLists"]


@dataclass(frozen=True, eq=False, repr=False)
class DocumentLists:
    """Documents listed for each query, ragged, each once and in the order in which they were given.

    docs: all that are listed; ptr: int64[Q + 1]; doc: int32[n], numbers in docs. A query without any has an empty list.
    """

    docs: Ids
    ptr: Int64
    doc: Int32

    @staticmethod
    def of(lists: Iterable[Iterable[object]]) -> DocumentLists:
        """The lists of identifiers of all queries, in the queries' order; what stands again in a list is left out.

        Raises BadValue for an identifier that is empty or too long.
        """
        number: dict[str, int] = {}
        doc: list[int] = []
        ends = [0]
        for listed in lists:
            doc += [number.setdefault(name, len(number)) for name in dict.fromkeys(map(str, listed))]
            ends.append(len(doc))
        return DocumentLists(Ids.of(number), np.array(ends, np.int64), np.array(doc, np.int32))

    def __len__(self) -> int:
        return len(self.ptr) - 1

    def __repr__(self) -> str:
        return f"<DocumentLists: {len(self.doc):,} documents listed for {self.listed():,} of {len(self):,} queries>"

    def listed(self) -> int:
        """How many queries have a list that is not empty."""
        return int(np.count_nonzero(np.diff(self.ptr)))

    def lengths(self) -> Int64:
        """How many documents are listed for each query."""
        return np.diff(self.ptr)

    def query_of_row(self) -> Int32:
        """The query number of each row."""
        return np.repeat(np.arange(len(self), dtype=np.int32), np.diff(self.ptr))

    def tolist(self) -> list[list[str]]:
        """The identifiers for each query."""
        names = self.docs.tolist()
        return [[names[code] for code in self.doc[a:b].tolist()] for a, b in pairwise(self.ptr.tolist())]

    def take(self, codes: NDArray[np.integer]) -> DocumentLists:
        """The lists of these queries, in this order; of -1, an empty one."""
        starts, lengths = np.append(self.ptr[:-1], 0)[codes], np.append(np.diff(self.ptr), 0)[codes]
        ptr = np.zeros(len(lengths) + 1, np.int64)
        np.cumsum(lengths, out=ptr[1:])
        rows = np.repeat(starts - ptr[:-1], lengths) + np.arange(ptr[-1])
        return DocumentLists(self.docs, ptr, self.doc[rows])

    def codes_in(self, ids: Ids) -> Int32:
        """The number of each row's document among other identifiers, -1 for one that is not there."""
        codes: Any = ids.codes(self.docs.strings)
        return codes[self.doc] if len(self.doc) else np.zeros(0, np.int32)
