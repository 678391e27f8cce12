"""From a run and judgments to scores: the one home of which queries count.

Every judged query counts, and one that the run does not answer scores 0 and is reported as unanswered, unless
conventions say otherwise; queries of the run that nobody judged are ignored and counted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from weir.core.intents import IntentQrels, joined
from weir.core.judged import Judged
from weir.core.qrels import Qrels
from weir.core.run import Named, Run
from weir.core.scores import Scores
from weir.core.strings import Float64
from weir.errors import BadValue
from weir.measures.conventions import DEFAULT, Conventions
from weir.measures.measure import Measure, all_within_unit, parse_measure
from weir.measures.ties.over_orders import Tied, expected_values, extreme_values

__all__ = [
    "DEFAULT_MEASURES",
    "evaluate",
    "listed",
    "measures_of",
    "parsed",
    "ranked_by",
    "refuse_strangers",
    "scores_of",
]

DEFAULT_MEASURES = ("nDCG@10", "R@100", "Judged@10")
_JUDGED_AT_10 = Measure("Judged", cutoff=10)


def listed(wanted: Measure | str | Iterable[Measure | str]) -> list[Measure | str]:
    """One measure or several as a list; a measure of another library, such as ir-measures', is one."""
    if isinstance(wanted, (list, tuple)):
        return list(wanted)
    alone = isinstance(wanted, (str, Measure)) or not isinstance(wanted, Iterable)
    return [wanted] if alone else list(wanted)  # type: ignore[list-item, arg-type]  # told apart by `alone`


def measures_of(wanted: Measure | str | Iterable[Measure | str]) -> tuple[Measure, ...]:
    """Measures from themselves, their names or another library's measures, without repetition; raises as `parsed`."""
    return tuple(dict.fromkeys(parsed(listed(wanted))))


def parsed(wanted: Sequence[Measure | str]) -> list[Measure]:
    """A measure for each that is wanted; raises UnknownName, or BadValue where none is."""
    if not wanted:
        raise BadValue("no measure was named; try nDCG@10")
    return [one if isinstance(one, Measure) else parse_measure(str(one)) for one in wanted]


def evaluate(
    qrels: Qrels | IntentQrels,
    run: Run,
    measures: Measure | str | Iterable[Measure | str] = DEFAULT_MEASURES,
    conventions: Conventions = DEFAULT,
) -> Scores:
    """Score a run against judgments: one value for each measure and judged query.

    conventions: what ties, missing and empty queries and self-matches do; a run that was read with ties="trec9"
    stays in that order. Raises BadValue where the judgments are empty, UnknownName for an unknown measure.
    """
    if run.ties == "trec9" and conventions.ties == "trec":
        conventions = replace(conventions, ties="trec9")
    return scores_of(joined(ranked_by(run, conventions), qrels), measures_of(measures), conventions)


def ranked_by(run: Run, conventions: Conventions) -> Run:
    """The run without self-matches where they are to be dropped, and in the order that the conventions ask for.

    Raises BadValue for a run that was read without the identifiers of all its documents, if they matter.
    """
    if conventions.self_matches == "drop":
        run = run.without_self()
    if conventions.order == "trec9" and run.ties != "trec9":
        run.refuse_nameless()
        columns = (run.query_of_row(), run.doc, run.score)
        return Run.from_columns(run.queries, run.docs, *columns, Named(run.name, "trec9"))
    return run


def scores_of(judged: Judged, measures: tuple[Measure, ...], conventions: Conventions = DEFAULT) -> Scores:
    """Apply measures to a join, whose order and self-matches are settled already.

    Which queries could score otherwise by the order of tied documents is always found out. Raises BadValue where
    no query counts, and where a measure's mean or extremes over orders of ties are asked for and not known.
    """
    if len(judged) == 0:
        raise BadValue("the judgments hold no query, so there is nothing to score")
    tied = Tied.of(judged)
    values = np.array([one.computed(judged) for one in measures], np.float64)
    if not all_within_unit(values):
        for one, row in zip(measures, values, strict=True):
            one.asserted(row)
    at_10 = (
        values[measures.index(_JUDGED_AT_10)] if _JUDGED_AT_10 in measures else _JUDGED_AT_10.computed(judged)
    )
    low = high = values
    if tied.parts:
        values, low, high = _over_orders(measures, tied, values, conventions.ties)
    if conventions.missing != "zero" or conventions.empty != "zero":
        counts = _counts(judged, conventions)
        at_10 = at_10[counts]
        values, low, high = (np.where(counts, of_all, np.nan) for of_all in (values, low, high))
    shared = int(judged.tied.sum()) if judged.tied.any() else 0
    return Scores(
        tuple(map(str, measures)),
        judged.queries,
        values,
        judged.answered,
        shared / int(judged.retrieved.sum()) if shared else 0.0,
        judged.ignored,
        geometric=tuple(str(m) for m in measures if m.geometric),
        conventions=str(conventions),
        low=low,
        high=high,
        judged_at_10=math.fsum(at_10.tolist()) / len(at_10),
    )


def _over_orders(
    measures: tuple[Measure, ...], tied: Tied, values: Float64, ties: str
) -> tuple[Float64, Float64, Float64]:
    """The values by the convention for ties, and the least and the greatest that an order of ties gives each."""
    values, low, high = values.copy(), np.empty_like(values), np.empty_like(values)
    for row, one in enumerate(measures):
        low[row], high[row] = extreme_values(one, tied, values[row], strict=ties == "bounds")
        if ties == "expected":
            values[row] = expected_values(one, tied, values[row])
    return values, low, high


def refuse_strangers(judged: Judged) -> None:
    """Raise BadValue for the join of a run all of whose queries are others than the judged ones.

    For what people pass in, where it is a mistake; a system that finds nothing for its queries scores 0.
    """
    if len(judged) and judged.ignored and not judged.answered.any():
        raise BadValue(
            f"the run and the judgments have no query in common: of {judged.ignored} in the run one is "
            f"'{judged.stranger}', of {len(judged)} judged ones '{judged.queries[0]}'"
        )


def _counts(judged: Judged, conventions: Conventions) -> NDArray[np.bool_]:
    """bool[Q]: the query counts; raises BadValue where none does."""
    kept = np.ones(len(judged), np.bool_)
    if conventions.missing == "answered-only":
        kept &= judged.answered
    if conventions.empty == "left-out":
        kept &= judged.relevant() > 0
    if not kept.any():
        raise BadValue(f"no query counts: none of {len(judged)} is left by {conventions}")
    return kept
