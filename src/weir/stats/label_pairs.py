"""Pairs of query and document among the first of rankings, with the labels of people and of a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weir.core.ids import Ids
from weir.core.judged import Judged
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.core.strings import Float64, Int32, Int64
from weir.measures.measure import Measure

__all__ = ["LabelPairs", "label_pairs"]


@dataclass(frozen=True, eq=False)
class LabelPairs:
    """The pairs among the first k of one ranking that the model labelled.

    query: int32[n], numbers in the model's queries; rank: int64[n]; row: int64[n], the model's judgment; model:
    float64[n], its grades; human: float64[n] people's, NaN where they judged nothing; drawn: float64[n], one over the
    share that people judged of the pairs of its query among the first k of any of the rankings, infinite where they
    judged none.
    """

    query: Int32
    rank: Int64
    row: Int64
    model: Float64
    human: Float64
    drawn: Float64

    @property
    def judged(self) -> Int64:
        """The pairs that people judged."""
        return np.flatnonzero(~np.isnan(self.human))

    def worth(self, measure: Measure, grades: Float64, queries: Ids) -> Float64:
        """What each pair alone adds to a measure that is a sum over the documents returned, by these grades."""
        count = len(grades)
        one, each = np.ones(count, np.int32), np.arange(count, dtype=np.int32)
        rank = self.rank.astype(np.int32)
        return measure.per_query(
            Judged(
                queries.take(self.query),
                rank,
                np.zeros(count, np.int32),
                each,
                rank,
                grades,
                one * rank,
                one * rank,
                np.arange(count + 1, dtype=np.int64),
                grades,
            )
        )


def label_pairs(runs: Sequence[Run], human: Qrels, model: Qrels, k: int) -> list[LabelPairs]:
    """The pairs of each ranking, in its order."""
    both = _rows(model, human.queries, human.docs, human.query_of_row(), human.doc)
    grade = np.full(len(model.doc), np.nan)
    grade[both[both >= 0]] = human.grade[both >= 0]
    query_of_row = model.query_of_row()
    found, pooled = [], np.zeros(len(model.doc), np.bool_)
    for run in runs:
        top = run.top(k)
        row = _rows(model, top.queries, top.docs, top.query_of_row(), top.doc)
        found.append((row[row >= 0], top.ranks()[row >= 0]))
        pooled[row[row >= 0]] = True
    here, judged = (
        np.bincount(query_of_row[rows], minlength=len(model)) for rows in (pooled, pooled & ~np.isnan(grade))
    )
    drawn = np.divide(here, judged, out=np.full(len(model), np.inf), where=judged > 0)
    return [
        LabelPairs(
            query_of_row[row],
            rank,
            row,
            model.grade[row].astype(np.float64),
            grade[row],
            drawn[query_of_row[row]],
        )
        for row, rank in found
    ]


def _rows(qrels: Qrels, queries: Ids, docs: Ids, query: Int32, doc: Int32) -> Int64:
    """The row of the judgments of each pair, -1 for a pair without one."""
    width = max(1, len(qrels.docs))
    q = qrels.queries.codes(queries.strings)[query].astype(np.int64) if len(query) else np.zeros(0, np.int64)
    d = qrels.docs.codes(docs.strings)[doc].astype(np.int64) if len(doc) else np.zeros(0, np.int64)
    wanted = np.where((q >= 0) & (d >= 0), q * width + d, -1)
    known = qrels.query_of_row().astype(np.int64) * width + qrels.doc
    at = np.minimum(np.searchsorted(known, wanted), max(0, len(known) - 1))
    return np.where(known[at] == wanted, at, -1) if len(known) else np.full(len(wanted), -1)
