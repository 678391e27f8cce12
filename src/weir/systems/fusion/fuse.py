"""Fuse several runs into one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from weir.core.dangling import two_compositions
from weir.core.order import arranged
from weir.core.run import Run
from weir.core.strings import Float64, Ids, Int32, Int64
from weir.errors import BadValue, warn_of_ranking
from weir.systems.fusion.methods import (
    METHODS,
    NORMS,
    Candidates,
    Fusion,
    ScoreLists,
    parse_fusion,
    united,
    united_sorted,
)

# ----------
# Runs in terms of the same queries and documents.


BLOCK_ROWS = 1 << 18
"""Rows of all runs processed together, to fit into the processor's cache."""


@dataclass(frozen=True, eq=False)
class CandidateBlock:
    """The documents that any run returns for some consecutive queries, with their ranks and scores in each run."""

    first: int
    """Number of the first query in the pool."""
    query: Int64
    """int64[n], ascending, counted from the block's first query."""
    doc: Int32
    """int32[n], ascending within a query."""
    rank: Int32
    """int32[R, n] from 1; 0 if the run lacks the document."""
    lists: tuple[ScoreLists, ...]
    """Scores of each run."""
    place: tuple[Int64, ...]
    """int64 for each run: the position of each of its scores in `doc`."""

    def __len__(self) -> int:
        return len(self.lists[0].ptr) - 1

    def candidates(self, norm: str | None) -> Candidates:
        """Return these documents as input of a fusion method.

        norm: a normalisation in NORMS; None for methods that use ranks.
        """
        sizes = np.stack([lists.list_lengths for lists in self.lists])
        score = np.zeros((len(self.lists), 0 if norm is None else len(self.query)))
        if norm is not None:
            # Scores near the largest double overflow: what comes of it is refused where it is not a number.
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                for row, lists, place in zip(score, self.lists, self.place, strict=True):
                    row[place] = NORMS.get(norm)(lists)
        return Candidates(self.query, self.rank, score, sizes)


@dataclass(frozen=True, eq=False)
class Pool:
    """Runs to be fused, with queries and documents numbered alike."""

    queries: Ids
    """Queries of all runs, sorted by identifier; in their own order if all runs share a table."""
    docs: Ids
    runs: tuple[Run, ...]
    start: Int64
    """int64[R, Q]: offset of each query's ranking in each run."""
    length: Int64
    """int64[R, Q]: number of results."""
    number: tuple[Int32 | None, ...]
    """For each run, the number in `docs` of each of its documents; None if they are numbered alike."""

    @staticmethod
    def of(runs: Sequence[Run]) -> Pool:
        """Return the pool of runs; raises BadValue for a run that was read without all identifiers."""
        for run in runs:
            run.refuse_nameless()
        queries, codes = united_sorted([run.queries for run in runs])
        docs, number = united([run.docs for run in runs])
        start, length = np.zeros((2, len(runs), len(queries)), np.int64)
        for row, (run, code) in enumerate(zip(runs, codes, strict=True)):
            at = slice(None) if code is None else code
            start[row, at], length[row, at] = run.ptr[:-1], np.diff(run.ptr)
        return Pool(queries, docs, tuple(runs), start, length, tuple(number))

    def answered(self) -> Int64:
        """Return for each query the number of runs with results, int64[queries]."""
        times: Int64 = np.count_nonzero(self.length, axis=0)
        return times

    def only(self, queries: Int64) -> Pool:
        """Return the pool of the queries with these numbers, in this order."""
        picked = self.queries.take(queries)
        return replace(self, queries=picked, start=self.start[:, queries], length=self.length[:, queries])

    def blocks(self) -> Iterator[CandidateBlock]:
        """Yield the documents of all queries, in blocks of consecutive queries."""
        rows = np.concatenate([[0], np.cumsum(self.length.sum(axis=0))])
        cuts, last = [0], len(self.queries)
        while cuts[-1] < last:
            stop = int(np.searchsorted(rows, rows[cuts[-1]] + BLOCK_ROWS, side="right")) - 1
            cuts.append(max(cuts[-1] + 1, stop))
        return (self._block(a, b) for a, b in pairwise(cuts))

    def _block(self, first: int, stop: int) -> CandidateBlock:
        lists, keys, ranks = [], [], []
        width = max(len(self.docs), 1)
        for row, (run, number) in enumerate(zip(self.runs, self.number, strict=True)):
            length = self.length[row, first:stop]
            ptr = np.concatenate([[0], np.cumsum(length)])
            rank = np.arange(ptr[-1]) - np.repeat(ptr[:-1], length)
            rows = rank + np.repeat(self.start[row, first:stop], length)
            doc = run.doc[rows].astype(np.int64)
            key = np.repeat(np.arange(0, (stop - first) * width, width), length)
            key += doc if number is None else number[doc]
            keys.append(key)
            ranks.append(rank + 1)
            lists.append(ScoreLists(run.score[rows], ptr))
        # The distinct keys of all runs, ascending, and where each key of each run stands among them.
        every = np.concatenate(keys)
        order = np.argsort(every)
        ordered = every[order]
        fresh = np.ones(len(every), np.bool_)
        np.not_equal(ordered[1:], ordered[:-1], out=fresh[1:])
        number_of_key = np.empty(len(every), np.int64)
        number_of_key[order] = np.cumsum(fresh) - 1
        pair, places = ordered[fresh], np.split(number_of_key, np.cumsum([len(key) for key in keys])[:-1])
        query, doc = np.divmod(pair, width)
        rank = np.zeros((len(lists), len(pair)), np.int32)
        for row, place, values in zip(rank, places, ranks, strict=True):
            row[place] = values
        return CandidateBlock(first, query, doc.astype(np.int32), rank, tuple(lists), tuple(places))


def check_shared_queries(pool: Pool) -> None:
    """Raise BadValue unless some query has results in two runs."""
    if (pool.answered() >= 2).any():
        return
    for run in pool.runs:
        if not len(run.doc):
            raise BadValue(f"{run.name} ranks no document; expected at least one for one query")
    raise BadValue("no query is answered by two of the rankings: are they of the same queries?")


def apart_notes(pool: Pool, names: Sequence[str]) -> list[str]:
    """Return a sentence for each run that shares no document with the others, and for identifiers in two
    Unicode compositions.

    names: of the runs, in sentences.
    """
    returned = [
        np.unique(run.doc if n is None else n[run.doc]) for run, n in zip(pool.runs, pool.number, strict=True)
    ]
    together = np.concatenate(returned)
    times = np.bincount(together, minlength=len(pool.docs))
    return [
        f"{name} shares no document with the others: are their identifiers of one collection?"
        for name, docs in zip(names, returned, strict=True)
        if 0 < len(docs) < len(together) and (times[docs] == 1).all()
    ] + two_compositions(pool.docs)


# ----------
# Fusing.


Rankings = tuple[Int64, Int32, Float64]
"""(ptr int64[queries + 1], document int32[n], score float64[n]) of queries."""


def fuse(runs: Sequence[Run], method: Fusion | str = "rrf", k: int | None = None) -> Run:
    """Return runs fused into one, for every query of any run.

    method: a name of `weir.systems.fusion`, such as "rrf" or "wsum(weights=[0.3, 0.7])".
    k: cut-off of each fused ranking; None for none.

    A repeated run counts twice. Raises BadValue for fewer than two runs, no shared query, or bad settings;
    UnknownName for an unknown method. Warns (RankingWarning) of a run that shares no document with the
    others.
    """
    how = method if isinstance(method, Fusion) else parse_fusion(method)
    if len(runs) < 2:
        raise BadValue(f"a fusion takes two or more rankings; found {len(runs)}")
    pool = Pool.of(runs)
    check_shared_queries(pool)
    for said in apart_notes(pool, [f"ranking {n} ({run.name})" for n, run in enumerate(runs, 1)]):
        warn_of_ranking(said)
    return fused(pool, how, k)


def fused(pool: Pool, how: Fusion, k: int | None = None, name: str | None = None) -> Run:
    """Return a pool's runs fused into one, cut at k (None: uncut); queries without results have an empty ranking.

    name: of the run, by default the fusion.

    Raises BadValue for bad settings and fused scores that are not finite.
    """
    how.refuse_other_than(len(pool.runs))
    refuse_depth(k)
    parts = [fused_block(pool, block, how, k) for block in pool.blocks()]
    lengths = [np.zeros(1, np.int64), *(np.diff(ptr) for ptr, _, _ in parts)]
    ptr = np.cumsum(np.concatenate(lengths))
    doc = np.concatenate([np.empty(0, np.int32), *(doc for _, doc, _ in parts)])
    score = np.concatenate([np.empty(0), *(score for _, _, score in parts)])
    return Run(pool.queries, pool.docs, ptr, doc, score, name or str(how))


def depth_note(runs: Sequence[Run], how: Fusion, k: int | None) -> str:
    """Return a sentence if `k` cuts rankings while the method's own constant k is not set; else ""."""
    unset = "k" in METHODS.get(how.name).defaults().keys() - dict(how.settings)
    longest = max(int(np.diff(run.ptr).max(initial=0)) for run in runs)
    if k is None or k >= longest or not unset:
        return ""
    return f"k={k} cuts each fused ranking to {k:,} documents; the constant of {how.name} is set as {how.name}(k={k})"


def refuse_depth(k: int | None) -> None:
    """Raise BadValue unless k is None or from 1 to 2**31 - 1."""
    if k is not None and not 1 <= k < 1 << 31:
        raise BadValue(f"k is {k}; expected a whole number from 1 to 2,147,483,647")


def fused_block(pool: Pool, block: CandidateBlock, how: Fusion, k: int | None = None) -> Rankings:
    """Return a block's fused rankings, cut at k; raises BadValue for a score that is not finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        score = how(block.candidates(how.norm if how.scored else None)) + 0.0  # one zero, not two
    bad = np.flatnonzero(~np.isfinite(score))
    if len(bad):
        query = pool.queries[block.first + int(block.query[bad[0]])]
        raise BadValue(
            f"{how}: a fused score of query '{query}' is not a finite number; the scores are too large"
        )
    order = arranged(block.query, score, lambda rows: pool.docs.tie_ranks[block.doc[rows]])
    ptr = np.searchsorted(block.query, np.arange(len(block) + 1)).astype(np.int64)
    if k is not None:
        length = np.minimum(np.diff(ptr), k)
        starts = np.repeat(ptr[:-1], length)
        ptr = np.concatenate([[0], np.cumsum(length)])
        order = order[starts + np.arange(ptr[-1]) - np.repeat(ptr[:-1], length)]
    return ptr, block.doc[order], score[order]
