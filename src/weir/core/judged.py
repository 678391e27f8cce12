"""The join of a run with judgments: made once, measured many times."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weir.core.ids import Ids
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.core.strings import Float64, Int16, Int32, Int64

__all__ = ["Judged"]

_ABSENT = np.iinfo(np.int16).min  # no grade: those of Qrels lie within ±2**14
_TABLE = 1 << 22  # cells of the look-up table of a join, 2 bytes each


@dataclass(frozen=True, eq=False)
class Judged:
    """Where the judged documents stand in each ranking, and what an ideal ranking would hold.

    It covers every judged query, whether the run answered it or not. Only judged documents are kept:
    whatever else stands in a ranking is unjudged, and `retrieved` says how much that is.

    queries: Ids[Q] the judged queries; retrieved: int32[Q] documents returned; tied: int32[Q] returned
    documents whose score is another's too; query: int32[n], rank: int32[n] from 1, grade: int16[n]: the
    judged documents returned, by query then rank; ideal_ptr: int64[Q + 1], ideal: int16[m]: all grades
    of each query, descending; ignored: queries of the run without judgments.
    """

    queries: Ids
    retrieved: Int32
    tied: Int32
    query: Int32
    rank: Int32
    grade: Int16
    ideal_ptr: Int64
    ideal: Int16
    ignored: int = 0

    @staticmethod
    def of(run: Run, qrels: Qrels) -> Judged:
        """Join a run with judgments."""
        count = len(qrels.queries)
        same = run.queries is qrels.queries
        to_query = np.arange(count, dtype=np.int32) if same else qrels.queries.codes(run.queries.strings)
        to_doc = None if run.docs is qrels.docs else _translation(run.docs, qrels.docs)
        query, rank, grade = _judged_rows(run, qrels, to_query, to_doc)
        known = to_query >= 0
        retrieved, tied = np.zeros(count, np.int32), np.zeros(count, np.int32)
        retrieved[to_query[known]] = np.diff(run.ptr)[known]
        tied[to_query[known]] = run.tied()[known]
        of_row = qrels.query_of_row()
        ideal = qrels.grade[np.lexsort((-qrels.grade, of_row))]
        ignored = int(np.count_nonzero(~known))
        return Judged(qrels.queries, retrieved, tied, query, rank, grade, qrels.ptr, ideal, ignored)

    def __len__(self) -> int:
        return len(self.queries)

    @property
    def answered(self) -> NDArray[np.bool_]:
        """bool[Q]: the run returned something for the query."""
        return self.retrieved > 0

    def relevant(self, rel: int = 1) -> Int64:
        """How many documents of each query are judged `rel` or better."""
        return self.per_query(self.ideal_query(), self.ideal >= rel)

    def found(self, k: int | None = None, rel: int = 1) -> NDArray[np.bool_]:
        """bool[n]: rows within the first k whose grade is `rel` or better."""
        hit = self.grade >= rel
        return hit if k is None else hit & (self.rank <= k)

    def ideal_query(self) -> Int32:
        """The query number of each row of `ideal`."""
        return np.repeat(np.arange(len(self), dtype=np.int32), np.diff(self.ideal_ptr))

    def ideal_rank(self) -> Int64:
        """The rank, from 1, of each row of `ideal`."""
        return np.arange(len(self.ideal)) - np.repeat(self.ideal_ptr[:-1], np.diff(self.ideal_ptr)) + 1

    def per_query(self, query: Int32, rows: NDArray[np.bool_]) -> Int64:
        """How many of these rows belong to each query."""
        return np.bincount(query[rows], minlength=len(self))

    def total(self, query: Int32, weight: Float64) -> Float64:
        """The sum of weights of each query, added in rank order in double, as trec_eval adds."""
        sums = np.bincount(query, weight, minlength=len(self))
        return sums.astype(np.float64, copy=False)


def _translation(here: Ids, there: Ids) -> Int32:
    """For each identifier of one table its number in the other, -1 where it is not there."""
    if here.index is None:
        return there.codes(here.strings)
    # A stored index of the larger table: look the few up in it instead of hashing the many.
    found = here.codes(there.strings)
    numbers = np.full(len(here), -1, np.int32)
    numbers[found[found >= 0]] = np.flatnonzero(found >= 0)
    return numbers


def _judged_rows(run: Run, qrels: Qrels, to_query: Int32, to_doc: Int32 | None) -> tuple[Int32, Int32, Int16]:
    """Query, rank and grade of the rows of the run that are judged, by query then rank.

    Some queries at a time share a table with a cell for every judged document: a row's grade is one look-up.
    """
    width = len(qrels.docs)
    cells = min(max(_TABLE, len(run) * width // 1000), 8 * _TABLE)
    step = max(1, min(len(run), cells // max(width, 1)))
    table = np.full((step, width), _ABSENT, np.int16)
    none = np.empty(0, np.int32)
    found = [(none, none, np.empty(0, np.int16))]
    for first in range(0, len(run), step):
        codes = to_query[first : first + step]
        known = np.flatnonzero(codes >= 0)
        lengths = np.diff(qrels.ptr)[codes[known]]
        if lengths.sum() == 0 or len(run.docs) == 0:
            continue
        judged = qrels.only(codes[known])
        cell = np.repeat(known, lengths), judged.doc
        table[cell] = judged.grade
        found.append(_looked_up(run, first, codes, to_doc, table))
        table[cell] = _ABSENT
    query, rank, grade = (np.concatenate(column) for column in zip(*found, strict=True))
    order = np.argsort(query, kind="stable")
    return query[order], rank[order], grade[order]


def _looked_up(
    run: Run, first: int, codes: Int32, to_doc: Int32 | None, table: Int16
) -> tuple[Int32, Int32, Int16]:
    """Query, rank and grade of the rows of queries first, first + 1, ... whose cell holds a grade."""
    ptr = run.ptr[first : first + len(codes) + 1]
    doc = run.doc[ptr[0] : ptr[-1]]
    if to_doc is not None:
        doc = np.where(doc < 0, -1, to_doc[doc])
    rows = np.flatnonzero(doc >= 0)
    local = np.repeat(np.arange(len(codes)), np.diff(ptr))[rows]
    grade = table[local, doc[rows]]
    hit = grade != _ABSENT
    rows, local = rows[hit], local[hit]
    return codes[local], (rows - (ptr - ptr[0])[local] + 1).astype(np.int32), grade[hit]
