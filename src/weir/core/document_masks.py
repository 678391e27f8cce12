"""For each query which of all documents may be ranked, where many documents may and many queries agree."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from weir.core.document_filter import FieldSource, parse_filter
from weir.core.ids import Ids
from weir.core.strings import Bytes, Int32, Int64

__all__ = ["DocumentMasks", "filter_fields"]


def filter_fields(filters: Iterable[str]) -> tuple[str, ...]:
    """The fields that some filters read, sorted; "" is no filter. Raises BadValue for what is none."""
    return tuple(sorted({name for text in set(filters) if text for name in parse_filter(text).fields}))


@dataclass(frozen=True, eq=False, repr=False)
class DocumentMasks:
    """Documents as bits, a row for each different rule, and the row of each query.

    docs: the N documents; bits: uint8[N / 8] for each rule, as np.packbits makes them; of_query: int32[Q], the rule of
    each query, -1 where all documents may be ranked.
    """

    docs: Ids
    bits: tuple[Bytes, ...]
    of_query: Int32

    @staticmethod
    def every(docs: Ids, queries: int) -> DocumentMasks:
        """All documents for so many queries."""
        return DocumentMasks(docs, (), np.full(queries, -1, np.int32))

    @staticmethod
    def of(filters: Sequence[str], documents: FieldSource) -> DocumentMasks:
        """The documents that fit the filter of each query, all for "".

        Raises what `parse_filter` and `DocumentFilter.mask` raise.
        """
        texts = [str(parse_filter(text)) if text else "" for text in filters]
        number = {text: at for at, text in enumerate(dict.fromkeys(filter(None, texts)))}
        bits = tuple(np.packbits(parse_filter(text).mask(documents)) for text in number)
        return DocumentMasks(documents.ids, bits, np.array([number.get(t, -1) for t in texts], np.int32))

    def __len__(self) -> int:
        return len(self.of_query)

    def __repr__(self) -> str:
        return (
            f"<DocumentMasks: {len(self.bits)} over {len(self.docs):,} documents for {len(self):,} queries>"
        )

    def lengths(self) -> Int64:
        """How many documents may be ranked for each query."""
        every = [int(np.unpackbits(row).sum(dtype=np.int64)) for row in self.bits]
        return np.array([*every, len(self.docs)], np.int64)[self.of_query]

    def take(self, codes: NDArray[np.integer]) -> DocumentMasks:
        """Those of these queries, in this order; of -1, all documents."""
        return replace(self, of_query=np.append(self.of_query, np.int32(-1))[codes])

    def within(self, mask: NDArray[np.bool_]) -> DocumentMasks:
        """Those of the documents that fit a mask too, bool[N]."""
        bits = np.packbits(mask)
        of_query = np.where(self.of_query < 0, len(self.bits), self.of_query).astype(np.int32)
        return replace(self, bits=(*(row & bits for row in self.bits), bits), of_query=of_query)

    def allow(self, query: NDArray[np.integer], doc: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Whether each document may be ranked for the query beside it; doc: numbers in docs, -1 fits no rule."""
        found = np.ones(len(doc), np.bool_)
        rule = self.of_query[query]
        for number, row in enumerate(self.bits):
            at = np.flatnonzero(rule == number)
            found[at] = (row[doc[at] >> 3] >> (7 - (doc[at] & 7)) & 1).astype(np.bool_) & (doc[at] >= 0)
        return found
