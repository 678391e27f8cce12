"""Scores of systems from human judgments of few queries and a model's of many."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from weir.core.judged import Judged
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.core.strings import Float64, Int64, Strings
from weir.errors import BadValue
from weir.measures.measure import MEASURES, Measure
from weir.stats.corrected_precision import corrected_precision
from weir.stats.corrections import adjusted
from weir.stats.label_pairs import LabelPairs, label_pairs
from weir.stats.prediction_powered import Estimate
from weir.stats.sample_design import AT_RANDOM, DrawnQueries, PairedValues, SampleDesign

__all__ = [
    "ESTIMABLE",
    "SUMS",
    "CorrectedDifference",
    "CorrectedScore",
    "LabelledRuns",
    "corrected_score",
    "corrected_scores",
]

ESTIMABLE = ("ContextPrecision", "DCG", "ERR", "P", "RBP", "RR", "SDCG", "Success")
"""Measures that depend on the labels of the documents returned alone. nDCG, AP and recall divide by what the labels say
of all documents: people's labels of few and a model's of many have other ideals, and no mean of both is defined."""
SUMS = ("DCG", "P", "RBP", "SDCG")
"""Those that are sums over documents, so that a part of the documents of a query says something of all of them."""
EVERY_PAIR = 8
"""Systems up to which each two are compared; of more, each with the first."""


@dataclass(frozen=True)
class CorrectedDifference:
    """How far another system is above this one: its mean less this one's, by query.

    human, corrected: as of CorrectedScore, tuned for the difference; model: by the model's labels; p: two-sided, of
    the corrected difference; adjusted: after Holm, over all differences of one estimate.
    """

    other: str
    human: Estimate
    model: float
    corrected: Estimate
    p: float
    adjusted: float


@dataclass(frozen=True)
class CorrectedScore:
    """A system's mean over all queries, as people would give it.

    human: from their judgments alone; model: mean of the model's labels over all queries, with its error; corrected: by
    prediction-powered inference, the model's error measured where people judged too; judged: share of human judgments
    among the first k documents of their queries; drawn: how the judged queries were drawn, in words; left_out: queries
    that people judged and the model did not; rogan_gladen: of P@k, by the model's sensitivity and specificity, None
    where it is not defined or refused; rogan_gladen_refused: why, "" where it is not; least, most: the mean over all
    queries for whatever people have not judged, NaN where unknown; differences: to systems behind it in the list.
    Estimates keep to the limits of the measure.
    """

    system: str
    measure: str
    human_queries: int
    model_queries: int
    judged: float
    human: Estimate
    model: float
    corrected: Estimate
    drawn: str = str(AT_RANDOM)
    left_out: int = 0
    rogan_gladen: Estimate | None = None
    rogan_gladen_refused: str = ""
    least: float = math.nan
    most: float = math.nan
    differences: tuple[CorrectedDifference, ...] = ()


@dataclass(frozen=True, eq=False)
class LabelledRuns:
    """Systems' values by the labels of people and of a model, over the queries that the model judged.

    drawn: which queries people judged; values: of each system by name; pairs: the labels among its first k documents.
    """

    human: Qrels
    model: Qrels
    measure: Measure
    drawn: DrawnQueries
    values: Mapping[str, PairedValues]
    pairs: Mapping[str, LabelPairs]

    @staticmethod
    def of(
        runs: Mapping[str, Run],
        human: Qrels,
        model: Qrels,
        measure: Measure,
        design: SampleDesign = AT_RANDOM,
    ) -> LabelledRuns:
        """Score the runs by both labels; raises BadValue as `corrected_scores`."""
        k = _refused(measure, design)
        runs = {name: run.top(k) for name, run in runs.items()}  # nothing below counts, and runs may be deep
        rows = label_pairs(list(runs.values()), human, model, k)
        pairs = dict(zip(runs, rows, strict=True))
        codes = model.queries.codes(human.queries.strings)
        mine = codes[codes >= 0]
        if design.pairs:
            mine = np.unique(np.concatenate([one.query[one.judged] for one in rows])) if rows else mine[:0]
        drawn = DrawnQueries.of(design, model.queries, mine)
        of = _by_pairs if design.pairs else _by_query
        values = {name: of(run, pairs[name], human, model, measure, drawn) for name, run in runs.items()}
        return LabelledRuns(human, model, measure, drawn, values, pairs)


def corrected_score(
    name: str, run: Run, human: Qrels, model: Qrels, measure: Measure, design: SampleDesign = AT_RANDOM
) -> CorrectedScore:
    """Score one run by both labels and correct the model's; raises as `corrected_scores`."""
    return corrected_scores({name: run}, human, model, measure, design)[0]


def corrected_scores(
    runs: Mapping[str, Run], human: Qrels, model: Qrels, measure: Measure, design: SampleDesign = AT_RANDOM
) -> list[CorrectedScore]:
    """Score runs by both labels and correct the model's, and their differences; the unit that was drawn is the query.

    Queries that people judged must be drawn among those that the model judged, as the design says. Raises BadValue for
    a measure that is not of ESTIMABLE (of SUMS where people judged a part of documents) or has no cut-off, and for too
    few queries judged by both or by the model alone, of a stratum too.
    """
    labelled = LabelledRuns.of(runs, human, model, measure, design)
    drawn, names = labelled.drawn, list(runs)
    most = 1.0 if MEASURES.get(measure.name).bounded else math.inf
    left_out = int((model.queries.codes(human.queries.strings) < 0).sum())
    found = [
        CorrectedScore(
            name,
            str(measure),
            len(drawn.mine),
            len(drawn.mine) + len(drawn.alone),
            _judged_share(runs[name], human, model.queries.strings.take(drawn.mine), measure.cutoff or 1),
            drawn.mean(values, 0.0).estimate().within(0.0, most),
            values.by_model,
            drawn.mean(values).estimate().within(0.0, most),
            str(design),
            left_out,
            *_by_errors(labelled, name),
        )
        for name, values in labelled.values.items()
    ]
    pairs = list(combinations(names, 2)) if len(names) <= EVERY_PAIR else [(names[0], n) for n in names[1:]]
    apart = _differences(labelled, pairs)
    return [
        replace(
            one,
            differences=tuple(d for (first, _), d in zip(pairs, apart, strict=True) if first == one.system),
        )
        for one in found
    ]


def _refused(measure: Measure, design: SampleDesign) -> int:
    """The cut-off; raises BadValue for a measure that cannot be estimated."""
    by_ideal = dict(measure.settings).get("gain") == "scaled"  # RBP by the best grade of the query
    if measure.name not in ESTIMABLE or measure.cutoff is None or measure.condensed or by_ideal:
        takes = ", ".join(f"{one}@k" for one in ESTIMABLE)
        raise BadValue(
            f"{measure} cannot be estimated from two kinds of labels, for its ideal ranking is another by each; "
            f"take one of {takes}"
        )
    if design.pairs and measure.name not in SUMS:
        takes = ", ".join(f"{one}@k" for one in SUMS)
        raise BadValue(
            f"{measure} is no sum over documents, so that a part of a query's documents says nothing of it; take one "
            f"of {takes}, or judge the first {measure.cutoff} documents of fewer queries"
        )
    return measure.cutoff


def _by_query(
    run: Run, pairs: LabelPairs, human: Qrels, model: Qrels, measure: Measure, drawn: DrawnQueries
) -> PairedValues:
    """Values of whole queries; what one of the two did not judge counts as not relevant by it."""
    both = human.queries.codes(model.queries.strings.take(drawn.mine))
    by_human = measure.per_query(Judged.of(run, human))[both]
    by_model = measure.per_query(Judged.of(run, model))
    return PairedValues(by_human, by_model[drawn.mine], by_model[drawn.mine], by_model[drawn.alone])


def _by_pairs(
    run: Run, pairs: LabelPairs, human: Qrels, model: Qrels, measure: Measure, drawn: DrawnQueries
) -> PairedValues:
    """Values from parts of queries' documents, each counted one over its share; what the model left out is left out."""
    whole = pairs.worth(measure, pairs.model, model.queries)
    judged = pairs.judged
    by_human = pairs.worth(measure, np.where(np.isnan(pairs.human), 0.0, pairs.human), model.queries)

    def summed(rows: Int64, worth: Float64) -> Float64:
        return np.bincount(pairs.query[rows], worth, minlength=len(model)).astype(np.float64)

    all_rows = np.arange(len(pairs.query))
    by_model = summed(all_rows, whole)
    return PairedValues(
        summed(judged, by_human[judged] * pairs.drawn[judged])[drawn.mine],
        summed(judged, whole[judged] * pairs.drawn[judged])[drawn.mine],
        by_model[drawn.mine],
        by_model[drawn.alone],
    )


def _by_errors(labelled: LabelledRuns, name: str) -> tuple[Estimate | None, str]:
    """Rogan and Gladen's estimate of precision, where pairs were drawn alike; or why there is none."""
    measure, pairs, drawn = labelled.measure, labelled.pairs[name], labelled.drawn
    if measure.name != "P" or drawn.strata is not None or drawn.weights is not None:
        return None, ""
    queries, judged = len(labelled.model), pairs.judged
    by_model = pairs.worth(measure, pairs.model, labelled.model.queries) > 0
    by_human = (
        pairs.worth(measure, np.where(np.isnan(pairs.human), 0.0, pairs.human), labelled.model.queries) > 0
    )
    confusion = np.zeros((queries, 2, 2))
    np.add.at(
        confusion,
        (pairs.query[judged], by_human[judged].astype(np.intp), by_model[judged].astype(np.intp)),
        1.0,
    )
    counted = (
        np.bincount(pairs.query, minlength=queries).astype(np.float64),
        np.bincount(pairs.query, by_model, minlength=queries).astype(np.float64),
    )
    try:
        return corrected_precision(*counted, confusion, measure.cutoff or 1), ""
    except BadValue as refused:
        return None, str(refused)


def _differences(labelled: LabelledRuns, pairs: list[tuple[str, str]]) -> list[CorrectedDifference]:
    found, drawn = [], labelled.drawn
    most = 1.0 if MEASURES.get(labelled.measure.name).bounded else math.inf
    for one, other in pairs:
        values = labelled.values[other].minus(labelled.values[one])
        corrected = drawn.mean(values)
        found.append(
            CorrectedDifference(
                other,
                drawn.mean(values, 0.0).estimate().within(-most, most),
                values.by_model,
                corrected.estimate().within(-most, most),
                corrected.p,
                math.nan,
            )
        )
    together = adjusted(np.array([one.p for one in found]), "holm").tolist()
    return [replace(one, adjusted=p) for one, p in zip(found, together, strict=True)]


def _judged_share(run: Run, human: Qrels, queries: Strings, k: int) -> float:
    codes = human.queries.codes(queries)
    joined = Judged.of(run, human.only(codes[codes >= 0]))
    returned = int(np.minimum(joined.retrieved, k).sum())
    return int((joined.rank <= k).sum()) / returned if returned else 0.0
