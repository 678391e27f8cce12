"""What a re-ranking did to its first stage: order, lost documents, places, and what that did to scores."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.core.scores import Scores
from weir.errors import BadValue
from weir.measures.evaluate import evaluate
from weir.measures.measure import Measure, parse_measure
from weir.plugins.sensitivity.order_changes import OrderChanges, ReorderRules, order_changes
from weir.plugins.sensitivity.place_blocks import PlaceBlock, ReachedDocuments, place_blocks, reach
from weir.stats import permutation  # noqa: F401 - registers the test
from weir.stats.bootstrap import SEED, interval
from weir.stats.corrections import adjusted
from weir.stats.significance import p_values

__all__ = ["Bias", "Gain", "MeanOverQueries", "Reordering", "reorderings"]

HURT_BELOW = -1e-9
"""A change of a score that is a loss, and no rounding."""


@dataclass(frozen=True)
class MeanOverQueries:
    """The mean of a statistic over `queries` queries for which it is defined, and its 95% interval over them."""

    name: str
    mean: float
    low: float
    high: float
    queries: int


@dataclass(frozen=True)
class Gain:
    """A measure before and after, on the judged queries.

    change: after less before, with its 95% interval over queries; p: of the paired permutation test; adjusted: the
    same corrected for all re-rankings of one call (Holm); hurt, helped: shares of queries that lost and gained;
    judged_before, judged_after: mean share of the first k documents that are judged, as Judged@k has it.
    """

    measure: str
    queries: int
    before: float
    after: float
    change: float
    low: float
    high: float
    p: float
    adjusted: float
    hurt: float
    helped: float
    judged_before: float
    judged_after: float


@dataclass(frozen=True)
class Bias:
    """Relevant documents from the first k places, from behind them, and the difference of the ratios with its interval.

    A negative difference: documents from behind reach the first k more rarely than their judgments let expect.
    """

    early: ReachedDocuments
    late: ReachedDocuments
    difference: float
    low: float
    high: float


@dataclass(frozen=True)
class Reordering:
    """A re-ranking beside its first stage.

    first, system: what both are called; k, depth: first ranks, and candidates of each query; queries: that the first
    stage answers; unanswered: those of them that the re-ranking does not; tied: share of the re-ranking's documents
    whose score is another's of the query too, so that identifiers and not the re-ranker order them; beyond: documents
    deeper than one pass of windows can put them, of `candidates`; repeated: queries whose first k came from the places
    `pattern`, the commonest order that is not the first stage's; duplicates: rows that named a document again, of which
    the one of the highest score counts; means: see MEANS; gain, bias, blocks: None and () without judgments.
    """

    first: str
    system: str
    k: int
    depth: int
    queries: int
    unanswered: int
    candidates: int
    tied: float
    lost: int
    new: int
    beyond: int
    repeated: int
    pattern: tuple[int, ...]
    means: tuple[MeanOverQueries, ...]
    gain: Gain | None = None
    bias: Bias | None = None
    blocks: tuple[PlaceBlock, ...] = ()
    duplicates: int = 0

    def mean(self, name: str) -> MeanOverQueries:
        """One of the means by its name in MEANS; raises BadValue for another."""
        found = next((one for one in self.means if one.name == name), None)
        if found is None:
            raise BadValue(f"'{name}' is no statistic of a re-ranking; expected {', '.join(MEANS)}")
        return found


MEANS = {
    "kept first": lambda changes: changes.kept_first,
    "kept": lambda changes: changes.kept,
    "moved": lambda changes: changes.moved,
    "tau": lambda changes: changes.tau,
    "rbo": lambda changes: changes.rbo,
    "last moved": lambda changes: changes.last_moved,
    "sealed": lambda changes: changes.sealed,
}
"""Statistics of queries that are averaged: see OrderChanges."""


def reorderings(
    first: Run,
    others: Mapping[str, Run],
    qrels: Qrels | None,
    measure: Measure,
    rules: ReorderRules | None = None,
    repeated_rows: Mapping[str, int] | None = None,
) -> list[Reordering]:
    """Each re-ranking beside the first stage whose candidates it ordered.

    others: re-rankings by name; qrels: None leaves out what needs judgments; measure: of the gain;
    repeated_rows: of each re-ranking, as it was read (io/runs/repeated_documents.py). Raises BadValue
    where a re-ranking answers no query of the first stage, where no query is judged, and for rules out of range.
    """
    rules = rules or ReorderRules()
    twice = repeated_rows or {}
    found = [
        replace(_reordering(first, name, run, rules), duplicates=twice.get(name, 0))
        for name, run in others.items()
    ]
    if qrels is None:
        return found
    judged = [
        _judged(first, run, qrels, measure, replace(rules, depth=one.depth))
        for one, run in zip(found, others.values(), strict=True)
    ]
    holm = adjusted(np.array([gain.p for gain, _, _ in judged])).tolist()
    return [
        replace(one, gain=replace(gain, adjusted=p), bias=bias, blocks=blocks)
        for one, (gain, bias, blocks), p in zip(found, judged, holm, strict=True)
    ]


def _reordering(first: Run, name: str, second: Run, rules: ReorderRules) -> Reordering:
    lengths = np.diff(second.ptr)
    depth = rules.depth or int(lengths.max(initial=0))
    if depth == 0 or not (second.queries.codes(first.queries.strings) >= 0).any():
        raise BadValue(f"{name} answers no query of {first.name}; is it a re-ranking of it?")
    changes = order_changes(first, second, rules, depth)
    pattern, repeated = changes.commonest()
    cut = second.top(depth)
    return Reordering(
        first.name,
        name,
        rules.k,
        depth,
        len(changes.queries),
        int((~changes.answered).sum()),
        int(changes.candidates.sum()),
        float(cut.tied().sum()) / max(1, len(cut.doc)),
        int(changes.lost.sum()),
        int(changes.new.sum()),
        int(changes.beyond.sum()),
        repeated,
        pattern,
        tuple(_mean(statistic, changes) for statistic in MEANS),
    )


def _mean(name: str, changes: OrderChanges) -> MeanOverQueries:
    values = np.asarray(MEANS[name](changes), np.float64)
    values = np.where(changes.answered, values, np.nan)
    known = values[~np.isnan(values)]
    mean = math.fsum(known.tolist()) / len(known) if len(known) else math.nan
    return MeanOverQueries(name, mean, *interval(values, np.random.default_rng(SEED)), len(known))


def _judged(
    first: Run, second: Run, qrels: Qrels, measure: Measure, rules: ReorderRules
) -> tuple[Gain, Bias, tuple[PlaceBlock, ...]]:
    common = np.flatnonzero(qrels.queries.codes(first.queries.strings) >= 0)
    if not len(common):
        raise BadValue("no query of the first stage is judged; are these judgments of other queries?")
    asked = first.queries.take(common)
    judgments = qrels.only(qrels.queries.codes(asked.strings))
    depth = rules.depth or 1
    holes = parse_measure(f"Judged@{rules.k}")
    scores = [evaluate(judgments, run, [measure, holes]) for run in (first, second)]
    early, late, gap = reach(first, second, judgments, rules, depth)
    blocks = place_blocks(first, second, judgments, rules, depth)
    return _gain(measure, holes, scores), Bias(early, late, *gap), blocks


def _gain(measure: Measure, holes: Measure, scores: Sequence[Scores]) -> Gain:
    before, after = (one.in_id_order(str(measure)) for one in scores)
    judged = [float(one.mean_values()[one.measures.index(str(holes))]) for one in scores]
    known = ~(np.isnan(before) | np.isnan(after))
    before, after = before[known], after[known]
    count = len(before)
    if not count:
        raise BadValue(f"{measure} is defined for no query that both answer")
    change = after - before
    p = float(p_values("permutation", np.stack([after, before]))[0]) if count > 1 else math.nan
    return Gain(
        str(measure),
        count,
        math.fsum(before.tolist()) / count,
        math.fsum(after.tolist()) / count,
        math.fsum(change.tolist()) / count,
        *interval(change, np.random.default_rng(SEED)),
        p,
        p,
        float((change < HURT_BELOW).mean()),
        float((change > -HURT_BELOW).mean()),
        *judged,
    )
