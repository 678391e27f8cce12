"""The join of a run with judgments: made once, measured many times."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.core.order import compared, cut_in_ties, tie_groups, tied, tied_at_end
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.core.strings import Float64, Grades, Ids, Int32, Int64, stretches

if TYPE_CHECKING:
    from weir.core.intents import JudgedIntents
    from weir.core.origin import Grades as AnyGrades


Groups: TypeAlias = tuple[Int64, Int64]
_Placed: TypeAlias = tuple[Int32, Int32, Grades, Int32, Int32]

_ABSENT = np.iinfo(np.int16).min  # no grade, whole or not: those of Qrels lie within ±2**14
_TABLE = 1 << 22  # cells of the look-up table of a join, 2 bytes each; of doubles a quarter as many


@dataclass(frozen=True, eq=False, repr=False)
class Judged:
    """Where the judged documents stand in each ranking, and what an ideal ranking would hold.

    It covers every judged query, whether the run answered it or not. Only judged documents are kept:
    whatever else stands in a ranking is unjudged, and `retrieved` says how much that is.

    queries: Ids[Q] the judged queries; retrieved: int32[Q] documents returned; tied: int32[Q] returned
    documents whose score is another's too; query: int32[n], rank: int32[n] from 1, grade: int16[n] or float64[n]: the
    judged documents returned, by query then rank; first, last: int32[n] the places of all documents of
    that score, so those that another order of ties could give it; ideal_ptr: int64[Q + 1], ideal:
    [m] as `grade`: all grades of each query, descending; ignored: queries of the run without judgments; stranger: one
    of them, "" where there is none; float_rank: int32[n] the ranks where scores compare as floats, None where they
    are the same; intents: the same for each intent of a query, where judgments are of intents; judgments: what it was
    joined with; tied_end: bool[Q] whether the last documents returned share their score, None where that is not known.
    """

    queries: Ids
    retrieved: Int32
    tied: Int32
    query: Int32
    rank: Int32
    grade: Grades
    first: Int32
    last: Int32
    ideal_ptr: Int64
    ideal: Grades
    ignored: int = 0
    stranger: str = ""
    float_rank: Int32 | None = None
    intents: JudgedIntents | None = None
    judgments: AnyGrades | None = None
    tied_end: NDArray[np.bool_] | None = None

    @staticmethod
    def of(run: Run, qrels: Qrels) -> Judged:
        """Join a run with judgments."""
        count = len(qrels.queries)
        same = run.queries is qrels.queries
        to_query = np.arange(count, dtype=np.int32) if same else qrels.queries.codes(run.queries.strings)
        groups = tie_groups(run.ptr, compared(run.score, run.ties))
        judged = to_query >= 0
        retrieved, shared = np.zeros(count, np.int32), np.zeros(count, np.int32)
        retrieved[to_query[judged]] = np.diff(run.ptr)[judged]
        shared[to_query[judged]] = tied(run.ptr, groups)[judged]
        tied_end = np.zeros(count, np.bool_)
        tied_end[to_query[judged]] = tied_at_end(run.ptr, groups)[judged]
        columns = _judged_rows(run, qrels, to_query, groups)
        float_rank = run.float_ranks()
        if float_rank is not None:
            begin = np.zeros(count, np.int64)
            begin[to_query[judged]] = run.ptr[:-1][judged]
            query, rank = columns[:2]
            float_rank = float_rank[begin[query] + rank - 1]
            float_rank = None if (float_rank == rank).all() else float_rank
        others = np.flatnonzero(~judged)
        stranger = min(run.queries.take(others).tolist(), default="")
        ideal = descending_grades(qrels.query_of_row(), qrels.grade)
        counts = (len(others), stranger, float_rank)
        return Judged(
            *(qrels.queries, retrieved, shared, *columns, qrels.ptr, ideal, *counts),
            judgments=qrels,
            tied_end=tied_end,
        )

    def __len__(self) -> int:
        return len(self.retrieved)

    def __repr__(self) -> str:
        answered = int(np.count_nonzero(self.answered))
        return f"<Judged: {len(self):,} judged queries, {answered:,} answered, {len(self.rank):,} documents>"

    @property
    def answered(self) -> NDArray[np.bool_]:
        """bool[Q]: the run returned something for the query."""
        return self.retrieved > 0

    def take(self, codes: NDArray[np.integer]) -> Judged:
        """The join of these queries alone, renumbered from 0 in the given order; a query may come again.

        Intents are left out.
        """
        ptr = np.searchsorted(self.query, np.arange(len(self) + 1))
        row, at = stretches(ptr[codes], ptr[codes + 1])
        ideal, of_ideal = stretches(self.ideal_ptr[codes], self.ideal_ptr[codes + 1])
        return replace(
            self,
            queries=self.queries.take(codes),
            retrieved=self.retrieved[codes],
            tied=self.tied[codes],
            query=at.astype(np.int32),
            rank=self.rank[row],
            grade=self.grade[row],
            first=self.first[row],
            last=self.last[row],
            ideal_ptr=np.searchsorted(of_ideal, np.arange(len(codes) + 1)),
            ideal=self.ideal[ideal],
            float_rank=None if self.float_rank is None else self.float_rank[row],
            intents=None,
            tied_end=None if self.tied_end is None else self.tied_end[codes],
        )

    def by_floats(self) -> Judged:
        """The same where scores compare as floats, as in trec_eval 9, without its ties: a document has its one rank."""
        if self.float_rank is None:
            return self
        order = np.lexsort((self.float_rank, self.query))
        rank = self.float_rank[order]
        intents = self.intents
        if intents is not None:
            intents = replace(intents, joined=intents.joined.by_floats())
        return replace(
            self,
            tied=np.zeros_like(self.tied),
            rank=rank,
            grade=self.grade[order],
            first=rank,
            last=rank,
            float_rank=None,
            intents=intents,
            tied_end=None,
        )

    def cut_in_ties(self) -> tuple[int, int]:
        """As `order.cut_in_ties` of all rankings; (0, 0) where the ends of rankings were not looked at."""
        return (0, 0) if self.tied_end is None else cut_in_ties(self.retrieved, self.tied_end)

    def relevant(self, rel: float = 1) -> Int64:
        """How many documents of each query are judged `rel` or better."""
        return self._count(self.ideal >= rel)

    def found(self, k: int | None = None, rel: float = 1) -> NDArray[np.bool_]:
        """bool[n]: rows within the first k whose grade is `rel` or better."""
        hit = self.grade >= rel
        return hit if k is None else hit & (self.rank <= k)

    def above_zero(self) -> Int64:
        """How many documents of each query have a grade above 0: of whole grades, those that `relevant` counts."""
        return self._count(self.ideal > 0)

    def found_above_zero(self, k: int | None = None) -> NDArray[np.bool_]:
        """bool[n]: rows within the first k whose grade is above 0."""
        hit = self.grade > 0
        return hit if k is None else hit & (self.rank <= k)

    def _count(self, ideal: NDArray[np.bool_]) -> Int64:
        cuts = ideal.nonzero()[0].searchsorted(self.ideal_ptr)
        counts: Int64 = cuts[1:] - cuts[:-1]
        return counts

    def ideal_query(self) -> Int32:
        """The query number of each row of `ideal`."""
        return np.arange(len(self), dtype=np.int32).repeat(self._judgments)

    def ideal_rank(self) -> Int64:
        """The rank, from 1, of each row of `ideal`."""
        return np.arange(1, len(self.ideal) + 1) - self.ideal_ptr[:-1].repeat(self._judgments)

    @property
    def _judgments(self) -> Int64:
        """How many documents of each query are judged."""
        judgments: Int64 = self.ideal_ptr[1:] - self.ideal_ptr[:-1]
        return judgments

    def per_query(self, query: Int32, rows: NDArray[np.bool_]) -> Int64:
        """How many of these rows belong to each query."""
        return np.bincount(query[rows], minlength=len(self))

    def total(self, query: Int32, weight: Float64) -> Float64:
        """The sum of weights of each query, added in rank order in double, as trec_eval adds."""
        sums = np.bincount(query, weight, minlength=len(self))
        return sums.astype(np.float64, copy=False)


def descending_grades(query: NDArray[np.integer], grade: Grades) -> Grades:
    """The grades of each query, descending; query: of each grade, ascending."""
    if grade.dtype.kind == "f":
        return grade[np.lexsort((-grade, query))]
    above = query.astype(np.int64) << 16
    key = above - grade
    key.sort()
    return (above - key).astype(np.int16)


def _judged_rows(run: Run, qrels: Qrels, to_query: Int32, groups: Groups) -> _Placed:
    """Query, rank, grade, first and last place of the rows of the run that are judged, by query then rank.

    Some queries at a time share a table with a cell for every judged document: a row's grade is one look-up.
    """
    columns = _Columns.of(run, qrels)
    width = (
        columns.width + 1
    )  # the last cell of a query stays empty: it is that of documents without a column
    cells = min(max(_TABLE, len(run) * width // 1000), 8 * _TABLE) * 2 // qrels.grade.itemsize
    step = max(1, min(len(run), cells // width))
    table: Grades = np.full(step * width, _ABSENT, qrels.grade.dtype)
    none = np.empty(0, np.int32)
    parts_of_blocks: list[_Placed] = [(none, none, np.empty(0, qrels.grade.dtype), none, none)]
    for start in range(0, len(run), step):
        codes = to_query[start : start + step]
        judged_queries = np.flatnonzero(codes >= 0)
        judged, of = stretches(qrels.ptr[codes[judged_queries]], qrels.ptr[codes[judged_queries] + 1])
        if len(judged) == 0 or len(run.docs) == 0:
            continue
        cell = judged_queries[of] * width + columns.judged[judged]
        table[cell] = qrels.grade[judged]
        ptr = run.ptr[start : start + len(codes) + 1]
        row, column = columns.within(run.doc[ptr[0] : ptr[-1]])
        lengths = np.diff(ptr if row is None else np.searchsorted(row, ptr - ptr[0]))
        hit, grade = _looked_up(lengths, column, table, width)
        table[cell] = _ABSENT
        parts_of_blocks.append(
            _placed((hit if row is None else row[hit]) + ptr[0], grade, codes, ptr, groups)
        )
    parts = [np.concatenate(column) for column in zip(*parts_of_blocks, strict=True)]
    if (parts[0][1:] < parts[0][:-1]).any():
        order = np.argsort(parts[0], kind="stable")
        parts = [part[order] for part in parts]
    query, rank, grade, first, last = parts
    return query, rank, grade, first, last


def _looked_up(lengths: Int64, column: Int32, table: Grades, width: int) -> tuple[Int64, Grades]:
    """The rows whose cell holds a grade, and that grade; lengths: the rows of each query."""
    # The column -1 falls on the last, empty cell of the query before, or of the table.
    cell = np.repeat(np.arange(0, len(lengths) * width, width, dtype=np.int32), lengths)
    cell += column
    grade = table[cell]
    hit = np.flatnonzero(grade != _ABSENT)
    return hit, grade[hit]


def _placed(row: Int64, grade: Grades, codes: Int32, ptr: Int64, groups: Groups) -> _Placed:
    """The columns of some rows of a run, ascending; codes, ptr: of its queries; groups: see tie_groups."""
    begin, end = (edge[slice(*np.searchsorted(groups[0], ptr[[0, -1]]))] for edge in groups)
    cuts = np.searchsorted(row, ptr)
    before = np.repeat(ptr[:-1] - 1, np.diff(cuts))
    rank = (row - before).astype(np.int32)
    first, last = rank.copy(), rank.copy()
    at, group = stretches(np.searchsorted(row, begin), np.searchsorted(row, end))
    first[at], last[at] = begin[group] - before[at], end[group] - 1 - before[at]
    return np.repeat(codes, np.diff(cuts)), rank, grade, first, last


@dataclass(frozen=True, eq=False)
class _Columns:
    """The columns of a table of judged documents.

    width: how many; of_doc: int32[D + 1] the column of each document of the run, -1 for one that nobody judged and
    for the document -1; None: the documents are the columns; judged: int32[n] the column of each judgment;
    perhaps: bool, whether the number of a judged document ends in so many bits; None: where most are judged.
    """

    width: int
    of_doc: Int32 | None
    judged: Int32
    perhaps: NDArray[np.bool_] | None

    @staticmethod
    def of(run: Run, qrels: Qrels) -> _Columns:
        """Number the judged documents."""
        width, column = len(qrels.docs), qrels.doc
        of_doc: Int32 | None = None
        if width > len(column):  # a table of the whole collection: keep to the judged
            of_doc = np.full(width + 1, -1, np.int32)
            of_doc[column] = 0
            judged = np.flatnonzero(of_doc[:-1] == 0)
            width = len(judged)
            of_doc[judged] = np.arange(width, dtype=np.int32)
            column = of_doc[column]
        if run.docs is not qrels.docs:
            translated = _translation(run.docs, qrels.docs)
            of_doc = translated if of_doc is None else of_doc[translated]
        if of_doc is None or len(of_doc) < 16 * width:
            return _Columns(width, of_doc, column, None)
        perhaps = np.zeros(1 << min(width.bit_length() + 5, 20), np.bool_)
        perhaps[np.flatnonzero(of_doc >= 0) & (len(perhaps) - 1)] = True
        return _Columns(width, of_doc, column, perhaps)

    def within(self, doc: Int32) -> tuple[Int64 | None, Int32]:
        """The columns of some documents, and which they are of these; None: all of them."""
        if self.of_doc is None:
            return None, doc
        if self.perhaps is None:
            return None, self.of_doc[doc]
        # The few that may be judged are found in a table that stays in the cache, where that of all does not.
        row = np.flatnonzero(self.perhaps[doc & np.int32(len(self.perhaps) - 1)])
        return row, self.of_doc[doc[row]]


def _translation(here: Ids, there: Ids) -> Int32:
    """For each identifier of one table its number in the other, -1 where it is not there, and -1 at the end."""
    numbers = np.full(len(here) + 1, -1, np.int32)
    if here.index is None:
        numbers[:-1] = there.codes(here.strings)
    else:  # a stored index of the larger table: look the few up in it instead of hashing the many
        codes = here.codes(there.strings)
        numbers[codes[codes >= 0]] = np.flatnonzero(codes >= 0)
    return numbers
