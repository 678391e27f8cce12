"""One run scored in the other ways that people score: what can be told about a gap without running anything again."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from weir.core.corpus import Corpus
from weir.core.hashing import hash_strings
from weir.core.judged import Judged
from weir.core.order import Ties, compared, ranked
from weir.core.qrels import Qrels, plain_grades
from weir.core.run import Run
from weir.core.scores import averaged
from weir.core.strings import Float64
from weir.errors import BadValue
from weir.experiment.published.anserini_ties import lowered
from weir.measures import MEASURES, Measure, condensed
from weir.measures.measure import Definition, Setting
from weir.measures.ties.over_orders import Tied, expected_values, extreme_values

__all__ = [
    "CUTOFFS",
    "TIE_RULES",
    "Alternative",
    "Scoring",
    "mean",
    "other_measures",
    "other_rules",
    "rescored",
]

TieRule: TypeAlias = Literal["trec", "trec9", "ascending", "anserini", "expected", "best", "worst"]
Counted: TypeAlias = Literal["zero", "answered-only", "relevant-only"]
CUTOFFS = (10, 100, 1000)
_MOST_LEVELS = 20  # different grades with fractions that are tried as levels of relevance
TIE_RULES: dict[str, str] = {
    "trec": "descending ids",
    "trec9": "descending ids, scores as floats",
    "ascending": "ascending ids",
    "anserini": "ascending ids, each 1e-6 lower in floats",
}
"""What decides between equal scores, as settings print it."""
ANSERINI = "ascending ids, 1e-6 apart in floats, as Anserini"


@dataclass(frozen=True)
class Scoring:
    """One way from a run and judgments to a number; but for the measure the defaults are Weir's.

    ties: "trec" and "trec9" see core/order.py; "ascending" the smaller identifier first, as Lucene; "anserini" as
    trec_eval 9 reads what Anserini writes, see `lowered`; "expected" the exact mean over all orders of equal scores,
    "best" and "worst" the extremes among them. self_match: "drop" leaves out a document with the query's own id.
    missing: "zero" counts every judged query, "answered-only" those answered, "relevant-only" those with a document
    of grade 1. depth: rankings are cut there first. binary: every grade above 0 is 1.
    """

    measure: Measure
    ties: TieRule = "trec"
    self_match: Literal["keep", "drop"] = "keep"
    missing: Counted = "zero"
    depth: int | None = None
    binary: bool = False


@dataclass(frozen=True)
class Alternative:
    """A scoring that differs from the usual one in one respect: of which kind, and what is changed."""

    kind: str
    change: str
    scoring: Scoring


def rescored(run: Run, qrels: Qrels, scoring: Scoring) -> Float64:
    """The value of each judged query, float64[Q]; NaN for a query that does not count.

    All are NaN where a mean or an extreme over orders of ties is asked for that the measure does not have.
    """
    judgments = replace(qrels, grade=np.where(qrels.grade > 0, 1, qrels.grade)) if scoring.binary else qrels
    ordered = _ordered(run, scoring.ties)
    if scoring.self_match == "drop":
        ordered = ordered.without_self()
    if scoring.depth is not None:
        ordered = ordered.top(scoring.depth)
    judged = Judged.of(ordered, judgments)
    values = _over_ties(scoring.measure, judged, scoring.ties)
    if scoring.missing == "answered-only":
        return np.where(judged.answered, values, np.nan)
    if scoring.missing == "relevant-only":
        return np.where(judged.relevant() > 0, values, np.nan)
    return values


def mean(values: Float64, measure: Measure) -> float:
    """The mean over the queries that count, as Scores has it; NaN where none does."""
    counted = values[~np.isnan(values)]
    found = math.fsum(counted.tolist()) / len(counted) if len(counted) else math.nan
    return averaged(found, measure.geometric)


def other_rules(
    measure: Measure, dropped: bool = False, depths: tuple[int, ...] = CUTOFFS
) -> Iterator[Alternative]:
    """The other rules by which people apply a measure, each of which differs from Weir's in one respect.

    dropped: whether self-matches are gone already; depths: where rankings may be cut.
    """
    usual = Scoring(measure)
    yield Alternative("tie rule", "ascending ids, as Lucene", replace(usual, ties="ascending"))
    yield Alternative("tie rule", ANSERINI, replace(usual, ties="anserini"))
    yield Alternative("tie rule", "scores as floats, as trec_eval 9", replace(usual, ties="trec9"))
    yield Alternative("tie rule", "mean over all orders", replace(usual, ties="expected"))
    yield Alternative("tie rule", "best order", replace(usual, ties="best"))
    yield Alternative("tie rule", "worst order", replace(usual, ties="worst"))
    if not dropped:
        yield Alternative("self-match", "dropped", replace(usual, self_match="drop"))
    yield Alternative("missing queries", "left out of the mean", replace(usual, missing="answered-only"))
    yield Alternative(
        "queries without a relevant document", "left out of the mean", replace(usual, missing="relevant-only")
    )
    for depth in depths:
        yield Alternative("depth", f"rankings cut at {depth}", replace(usual, depth=depth))
    if not measure.condensed:
        yield Alternative("unjudged documents", "left out", replace(usual, measure=condensed(measure)))


def other_measures(measure: Measure, qrels: Qrels) -> Iterator[Alternative]:
    """What goes by the same name elsewhere: other cut-offs, capped recall, relevance levels, gains, binary grades.

    qrels: the judgments, whose grades say which levels there are.
    """
    usual = Scoring(measure)
    definition = MEASURES.get(measure.name)
    settings = definition.defaults() | dict(measure.settings)
    for kind, other in (*_cut(measure, definition), *_levelled(measure, qrels, settings)):
        yield Alternative(kind, str(other), replace(usual, measure=other))
    for key, values in definition.choices:
        for value in values:
            if value != settings[key]:
                other = measure(**{key: value})
                yield Alternative(
                    "gains" if key == "gain" else key, str(other), replace(usual, measure=other)
                )
    if ((qrels.grade > 0) & (qrels.grade != 1)).any():
        yield Alternative("grades", "relevant or not", replace(usual, binary=True))


def without_copies(run: Run, corpus: Corpus) -> Run:
    """The run without documents whose title and text a better ranked document of the same query has too.

    Documents outside the corpus stay. Texts are compared by 64-bit hashes of title and text.
    """
    run.refuse_nameless()
    at = corpus.ids.codes(run.docs.strings)
    known = np.flatnonzero(at >= 0)
    keys = np.zeros((len(run.docs), 3), np.uint64)
    keys[:, 0] = np.where(at < 0, np.arange(1, len(run.docs) + 1), 0)
    for column, strings in enumerate((corpus.text, corpus.title), 1):
        if strings is not None:
            texts = strings.take(at[known])
            keys[known, column] = hash_strings(texts.data, texts.ptr[:-1], texts.lengths())
    _, same = np.unique(keys, axis=0, return_inverse=True)
    query = run.query_of_row()
    _, first = np.unique(query * np.int64(len(run.docs)) + same.reshape(-1)[run.doc], return_index=True)
    kept = np.sort(first)
    ptr = np.searchsorted(query[kept], np.arange(len(run.queries) + 1)).astype(np.int64)
    return replace(run, ptr=ptr, doc=run.doc[kept], score=run.score[kept])


def _cut(measure: Measure, definition: Definition) -> Iterator[tuple[str, Measure]]:
    """The measure cut elsewhere or not at all, and recall with the other divisor."""
    if measure.cutoff is None:
        return
    for cut in CUTOFFS:
        if cut != measure.cutoff:
            yield "cut-off", measure @ cut
    if definition.cutoff == "optional":
        yield "cut-off", replace(measure, cutoff=None)
    other = {"R": "R_cap", "R_cap": "R"}.get(measure.name)
    if other is not None:
        yield "capped recall", replace(measure, name=other)


def _levelled(
    measure: Measure, qrels: Qrels, settings: Mapping[str, Setting]
) -> Iterator[tuple[str, Measure]]:
    """The measure with other grades counting as relevant."""
    if "rel" not in settings:
        return
    levels = np.unique(qrels.grade[qrels.grade > 0])
    for level in sorted(
        {1, *plain_grades(levels)} if not qrels.fractional or len(levels) <= _MOST_LEVELS else {1}
    ):
        if level != settings["rel"]:
            yield "relevance level", measure(rel=level)


def _ordered(run: Run, ties: TieRule) -> Run:
    """The run with ties in another order; whatever else, core/order.py decides."""
    if ties not in {"trec9", "ascending", "anserini"}:
        return run
    run.refuse_nameless()
    if ties == "anserini":
        run = _ordered(replace(run, score=compared(run.score, "trec9")), "ascending")
        run = replace(run, score=lowered(run.ptr, run.score))
    precise: Ties = "trec" if ties == "ascending" else "trec9"
    descending = run.docs.tie_ranks[run.doc].astype(np.int64)
    order = ranked(
        run.query_of_row(), compared(run.score, precise), -descending if ties == "ascending" else descending
    )
    return replace(run, doc=run.doc[order], score=run.score[order], ties=precise)


def _over_ties(measure: Measure, judged: Judged, ties: TieRule) -> Float64:
    """The values in the order of the join, or their mean or extremes over the orders of equal scores."""
    values = measure.per_query(judged)
    try:
        if ties == "expected":
            return expected_values(measure, Tied.of(judged), values)
        if ties in {"best", "worst"}:
            low, high = extreme_values(measure, Tied.of(judged), values, strict=False)
            asked = high if ties == "best" else low
            return (
                asked if np.array_equal(np.isnan(asked), np.isnan(values)) else np.full_like(values, np.nan)
            )
    except BadValue:  # a measure without a formula, and too many orders to try
        return np.full_like(values, np.nan)
    return values
