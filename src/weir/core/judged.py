"""Runs matched with judgments, from which all measures are computed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.core.intents import IntentQrels
from weir.core.order import compared, cut_in_ties, tie_groups, tied, tied_at_end
from weir.core.origin import Grades as AnyGrades
from weir.core.qrels import Qrels
from weir.core.rounding import counted
from weir.core.run import Run
from weir.core.strings import Bytes, Float64, Grades, Ids, Int32, Int64, Strings, equal_at, stretches

Groups: TypeAlias = tuple[Int64, Int64]
_Placed: TypeAlias = tuple[Int32, Int32, Grades, Int32, Int32]

_ABSENT = np.iinfo(np.int16).min  # no grade: grades of Qrels lie within ±2**14
_TABLE = 1 << 22  # cells of the look-up table of a join, 2 bytes each; of doubles a quarter as many


def barred_said(documents: int, rankings: int) -> str:
    """Return a sentence on documents removed from rankings by candidates, exclusions or filters."""
    return (
        f"removed: {counted(documents, 'document')} of {counted(rankings, 'ranking')}, which the query's candidates, "
        "exclusions or filter bar; a tool that scores rankings as they are, as MTEB does, has another number"
    )


@dataclass(frozen=True, eq=False, repr=False)
class Judged:
    """A run matched with judgments: rank and grade of each returned, judged document of all judged queries.

    Unjudged documents only count in `retrieved`, unjudged queries in `ignored`.
    """

    queries: Ids
    """The Q judged queries."""
    retrieved: Int32
    """int32[Q]: documents returned."""
    tied: Int32
    """int32[Q]: returned documents that share their score with another."""
    query: Int32
    """int32[n]: query of each judged document returned, sorted by query then rank."""
    rank: Int32
    """int32[n]: rank of each, from 1."""
    grade: Grades
    """int16[n] or float64[n]: grade of each."""
    first: Int32
    """int32[n]: best rank that an order of tied documents can give each; `last` is the worst."""
    last: Int32
    ideal_ptr: Int64
    """int64[Q + 1]: offsets into `ideal`."""
    ideal: Grades
    """Grades of all judgments of each query, descending."""
    ignored: int = 0
    """Number of queries in the run without judgments."""
    stranger: str = ""
    """An example of an ignored query, or ""."""
    float_rank: Int32 | None = None
    """int32[n]: ranks when scores are rounded to 32-bit floats; None if they are the same."""
    intents: JudgedIntents | None = None
    """Ranks for each intent; None for judgments without intents."""
    judgments: AnyGrades | None = None
    tied_end: NDArray[np.bool_] | None = None
    """bool[Q]: True if a ranking ends among documents of equal score; None if not known."""
    own_first: int = 0
    """Number of rankings whose first document bears the identifier of their query."""
    own_near: int = 0
    """Number of rankings with this document among the first 10; identifiers that are plain numbers do not
    count."""
    beside: object = None
    """The result of `Qrels.beside.join`; None for judgments without rules of documents."""
    barred: tuple[int, int] = (0, 0)
    """As in `Run`."""
    doubts: tuple[str, ...] = ()
    """As in `Run`."""

    @staticmethod
    def of(run: Run, qrels: Qrels) -> Judged:
        """Return a run matched with judgments, for every judged query."""
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
        docs = run.docs.strings
        at = (docs.data, docs.ptr[:-1], docs.lengths(), run.doc, run.ptr)
        own_first, own_near = own_documents(*at, run.queries.strings)
        counts = (len(others), stranger, float_rank)
        return Judged(
            *(qrels.queries, retrieved, shared, *columns, qrels.ptr, ideal, *counts),
            judgments=qrels,
            tied_end=tied_end,
            own_first=own_first,
            own_near=own_near,
            beside=None if qrels.beside is None else qrels.beside.join(run, qrels.queries),
            barred=run.barred,
            doubts=run.doubts,
        )

    def __len__(self) -> int:
        return len(self.retrieved)

    def __repr__(self) -> str:
        answered = int(np.count_nonzero(self.answered))
        return f"<Judged: {len(self):,} judged queries, {answered:,} answered, {len(self.rank):,} documents>"

    @property
    def answered(self) -> NDArray[np.bool_]:
        """bool[Q]: True if the run returned a document."""
        return self.retrieved > 0

    def take(self, codes: NDArray[np.integer]) -> Judged:
        """Return the queries at these positions, which may repeat, without `intents` and `beside`; `ignored` and
        other counts of the whole run stay.
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
            beside=None,
        )

    def by_floats(self) -> Judged:
        """Return the judged run ranked by scores rounded to 32-bit floats, ties by identifier; itself if no rank
        changes.
        """
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
        """Return (k, number of rankings cut at rank k among equal scores); (0, 0) if none or unknown."""
        return (0, 0) if self.tied_end is None else cut_in_ties(self.retrieved, self.tied_end)

    def relevant(self, rel: float = 1) -> Int64:
        """Return each query's number of judgments of grade `rel` or better, int64[Q]."""
        return self._count(self.ideal >= rel)

    def found(self, k: int | None = None, rel: float = 1) -> NDArray[np.bool_]:
        """Return True for each returned, judged document of grade `rel` or better in the top k (None: all), bool[n]."""
        hit = self.grade >= rel
        return hit if k is None else hit & (self.rank <= k)

    def above_zero(self) -> Int64:
        """Return each query's number of judgments with a grade above 0, int64[Q]."""
        return self._count(self.ideal > 0)

    @property
    def without_relevant(self) -> int:
        """Number of queries without a grade above 0."""
        return int(np.count_nonzero(self.above_zero() == 0))

    def found_above_zero(self, k: int | None = None) -> NDArray[np.bool_]:
        """Return True for each returned, judged document with a grade above 0 in the top k (None: all), bool[n]."""
        hit = self.grade > 0
        return hit if k is None else hit & (self.rank <= k)

    def _count(self, ideal: NDArray[np.bool_]) -> Int64:
        cuts = ideal.nonzero()[0].searchsorted(self.ideal_ptr)
        counts: Int64 = cuts[1:] - cuts[:-1]
        return counts

    def ideal_query(self) -> Int32:
        """Return the query number of each entry of `ideal`, int32[m]."""
        return np.arange(len(self), dtype=np.int32).repeat(self._judgments)

    def ideal_rank(self) -> Int64:
        """Return the rank, from 1, of each entry of `ideal` in its query, int64[m]."""
        return np.arange(1, len(self.ideal) + 1) - self.ideal_ptr[:-1].repeat(self._judgments)

    @property
    def _judgments(self) -> Int64:
        judgments: Int64 = self.ideal_ptr[1:] - self.ideal_ptr[:-1]
        return judgments

    def per_query(self, query: Int32, rows: NDArray[np.bool_]) -> Int64:
        """Return the number of True `rows` of each query, int64[Q]; `query` is each row's query number."""
        return np.bincount(query[rows], minlength=len(self))

    def total(self, query: Int32, weight: Float64) -> Float64:
        """Return the sum of each query's weights, float64[Q]; `query` is each weight's query number."""
        # Added in row order, as in trec_eval.
        sums = np.bincount(query, weight, minlength=len(self))
        return sums.astype(np.float64, copy=False)


def descending_grades(query: NDArray[np.integer], grade: Grades) -> Grades:
    """Return grades sorted by query, then descending; `query` is each grade's query number, ascending."""
    if grade.dtype.kind == "f":
        return grade[np.lexsort((-grade, query))]
    above = query.astype(np.int64) << 16
    key = above - grade
    key.sort()
    return (above - key).astype(np.int16)


OWN_DEPTH = 10
"""Rank down to which a query's own document is looked for."""
_OWN_QUERIES = 1 << 12  # queries looked at together: few enough that little memory is taken


def own_documents(
    data: Bytes, start: Int64, length: Int64, doc: Int32 | Int64, ptr: Int64, queries: Strings
) -> tuple[int, int]:
    """Return how many rankings have a document with their query's identifier: (at rank 1, in the top OWN_DEPTH).

    The second number ignores identifiers that are plain numbers.

    data, start, length: document i's identifier is data[start[i] : start[i] + length[i]].
    doc: documents of all rankings in rank order; -1 without an identifier.
    ptr: offsets of the rankings in `doc`.
    """
    first, near = 0, np.zeros(len(queries), np.bool_)
    for at in range(0, len(queries), _OWN_QUERIES):
        begin, end = (edges[at : at + _OWN_QUERIES] for edges in (ptr[:-1], ptr[1:]))
        row, query = stretches(begin, np.minimum(end, begin + OWN_DEPTH))
        named = doc[row] >= 0
        row, query = row[named], query[named] + at
        own = equal_at(data, start[doc[row]], length[doc[row]], queries, query)
        near[query[own]] = True
        first += int(np.count_nonzero(row[own] == ptr[query[own]]))
    names = queries.take(np.flatnonzero(near))
    return first, sum(not name.isdecimal() for name in names.tolist())


def _judged_rows(run: Run, qrels: Qrels, to_query: Int32, groups: Groups) -> _Placed:
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
        row, column = columns.columns_of(run.doc[ptr[0] : ptr[-1]])
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
    # The column -1 falls on the last, empty cell of the query before, or of the table.
    cell = np.repeat(np.arange(0, len(lengths) * width, width, dtype=np.int32), lengths)
    cell += column
    grade = table[cell]
    hit = np.flatnonzero(grade != _ABSENT)
    return hit, grade[hit]


def _placed(row: Int64, grade: Grades, codes: Int32, ptr: Int64, groups: Groups) -> _Placed:
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
    width: int
    of_doc: Int32 | None
    """int32[D + 1]: column of each document of the run, -1 if unjudged; None if codes are columns."""
    judged: Int32
    """int32[n]: column of each judgment."""
    perhaps: NDArray[np.bool_] | None
    """True for the low bits of judged document numbers; None if most are judged."""

    @staticmethod
    def of(run: Run, qrels: Qrels) -> _Columns:
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

    def columns_of(self, doc: Int32) -> tuple[Int64 | None, Int32]:
        if self.of_doc is None:
            return None, doc
        if self.perhaps is None:
            return None, self.of_doc[doc]
        # The few that may be judged are found in a table that stays in the cache, where that of all does not.
        row = np.flatnonzero(self.perhaps[doc & np.int32(len(self.perhaps) - 1)])
        return row, self.of_doc[doc[row]]


def _translation(here: Ids, there: Ids) -> Int32:
    numbers = np.full(len(here) + 1, -1, np.int32)
    if here.index is None:
        numbers[:-1] = there.codes(here.strings)
    else:  # a stored index of the larger table: look the few up in it instead of hashing the many
        codes = here.codes(there.strings)
        numbers[codes[codes >= 0]] = np.flatnonzero(codes >= 0)
    return numbers


# Ranks for each intent, where judgments are of intents.


@dataclass(frozen=True, eq=False)
class JudgedIntents:
    """A run matched with judgments by intent: ranks of relevant documents in the run and in an ideal ranking."""

    qrels: IntentQrels
    joined: Judged
    """The join with `qrels.numbered`, whose grades number the documents of a query."""

    def found(self, k: int | None, rel: float) -> tuple[Int32, Int32]:
        """Return (intent, rank) of each relevant document in the top k (None: all), int32[n] each, once for each of
        its intents; sorted by intent, then rank.
        """
        rows = self.qrels.numbered.ptr[self.joined.query] + self.joined.grade
        rank = np.zeros(len(self.qrels.numbered.doc), np.int32)
        rank[rows] = self.joined.rank
        return self._spread(rank, k, rel)

    def ideal(self, k: int | None, rel: float, alpha: float) -> tuple[Int32, Int32]:
        """Return (intent, rank) as `found` does, for ndeval's greedy ideal ranking.

        A document multiplies the gain of its intents' later ones by 1 - alpha; equal gains rank the larger identifier
        first.
        """
        numbered, relevant = self.qrels.numbered, self.qrels.grade >= rel
        rank = np.zeros(len(numbered.doc), np.int32)
        ends = np.searchsorted(self.qrels.query[self.qrels.intent], np.arange(len(numbered) + 1))
        for q in range(len(numbered)):
            mine = np.arange(ends[q], ends[q + 1])[relevant[ends[q] : ends[q + 1]]]
            if len(mine):
                rows, row = np.unique(self.qrels.row[mine], return_inverse=True)
                tie = numbered.docs.tie_ranks[numbered.doc[rows]]
                intents, intent = np.unique(self.qrels.intent[mine], return_inverse=True)
                wants = np.zeros((len(intents), len(rows)), np.bool_)
                wants[intent, row] = True
                rank[rows] = _greedy(wants, tie, alpha, k)
        return self._spread(rank, k, rel)

    def _spread(self, rank_of_row: Int32, k: int | None, rel: float) -> tuple[Int32, Int32]:
        rank = rank_of_row[self.qrels.row]
        ranked = (self.qrels.grade >= rel) & (rank > 0) & ((rank <= k) if k is not None else True)
        intent, rank = self.qrels.intent[ranked], rank[ranked]
        order = np.lexsort((rank, intent))
        return intent[order], rank[order]

    def relevant(self, rel: float) -> Int64:
        """Return the number of relevant documents of each intent, int64[P]."""
        return np.bincount(self.qrels.intent[self.qrels.grade >= rel], minlength=len(self.qrels.query))

    def intents(self, rel: float) -> Int64:
        """Return each query's number of intents with a relevant document, int64[Q]."""
        return np.bincount(self.qrels.query[self.relevant(rel) > 0], minlength=len(self.qrels))

    def total(self, of_intent: Float64) -> Float64:
        """Return the sum of each query's values, float64[Q], from a value for each intent, float64[P]."""
        sums = np.bincount(self.qrels.query, of_intent, minlength=len(self.qrels))
        return sums.astype(np.float64, copy=False)


def joined(run: Run, qrels: Qrels | IntentQrels) -> Judged:
    """Return a run matched with judgments, of documents or intents."""
    if isinstance(qrels, IntentQrels):
        return with_intents(Judged.of(run, qrels.numbered), qrels)
    return Judged.of(run, qrels)


def with_intents(joined: Judged, qrels: IntentQrels) -> Judged:
    """Return `joined`, a run matched with `qrels.numbered`, with intents; a document's grade is its best over them."""
    best, numbered = qrels.best(), qrels.numbered
    ideal = best[np.lexsort((-best, numbered.query_of_row()))]
    grade = best[numbered.ptr[joined.query] + joined.grade]
    intents = JudgedIntents(qrels, joined)
    return replace(joined, grade=grade, ideal=ideal, intents=intents, judgments=qrels)


def _greedy(wants: NDArray[np.bool_], tie: Int32, alpha: float, k: int | None) -> Int32:
    order = np.argsort(tie)
    wants = wants[:, order]
    remaining, open_ = np.ones(len(wants)), np.ones(wants.shape[1], np.bool_)
    rank = np.zeros(wants.shape[1], np.int32)
    for number in range(1, min(wants.shape[1], k or wants.shape[1]) + 1):
        # Added intent after intent, as a matrix product need not: rounding decides between near ties.
        gain = np.add.reduce(np.where(wants, remaining[:, None], 0.0), axis=0)
        gain[~open_] = -1.0
        chosen = int(np.argmax(gain))
        open_[chosen], rank[order[chosen]] = False, number
        remaining[wants[:, chosen]] *= 1.0 - alpha
    return rank
