"""From a run and judgments to scores: the one home of which queries count.

Every judged query counts, and one that the run does not answer scores 0 and is reported as unanswered, unless
conventions say otherwise; queries of the run that nobody judged are ignored and counted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from weir.core.intents import IntentQrels, joined
from weir.core.judged import Judged
from weir.core.qrels import Qrels
from weir.core.run import Named, Run
from weir.core.scores import Scores
from weir.errors import BadValue
from weir.measures.conventions import DEFAULT, Conventions
from weir.measures.measure import Measure, parse_measure
from weir.measures.ties.over_orders import Tied, expected_values, extreme_values

__all__ = [
    "DEFAULT_MEASURES",
    "evaluate",
    "listed",
    "measures_of",
    "ranked_by",
    "refuse_strangers",
    "scores_of",
]

DEFAULT_MEASURES = ("nDCG@10", "R@100", "Judged@10")


def listed(wanted: Measure | str | Iterable[Measure | str]) -> list[Measure | str]:
    """One measure or several as a list; a measure of another library, such as ir-measures', is one."""
    alone = isinstance(wanted, (str, Measure)) or not isinstance(wanted, Iterable)
    return [wanted] if alone else list(wanted)  # type: ignore[list-item, arg-type]  # told apart by `alone`


def measures_of(wanted: Measure | str | Iterable[Measure | str]) -> tuple[Measure, ...]:
    """Measures from themselves, their names or another library's measures, without repetition.

    Raises UnknownName or BadValue.
    """
    found = [m if isinstance(m, Measure) else parse_measure(str(m)) for m in listed(wanted)]
    if not found:
        raise BadValue("no measure was named; try nDCG@10")
    return tuple(dict.fromkeys(found))


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
    values, low, high = (np.empty((len(measures), len(judged))) for _ in range(3))
    for row, one in enumerate(measures):
        values[row] = one.per_query(judged)
        low[row], high[row] = extreme_values(one, tied, values[row], strict=conventions.ties == "bounds")
        if conventions.ties == "expected":
            values[row] = expected_values(one, tied, values[row])
    left_out = ~_counts(judged, conventions)
    for found in (values, low, high):
        found[:, left_out] = np.nan
    returned = int(judged.retrieved.sum())
    return Scores(
        tuple(map(str, measures)),
        judged.queries,
        values,
        judged.answered,
        float(judged.tied.sum()) / returned if returned else 0.0,
        judged.ignored,
        geometric=tuple(str(m) for m in measures if m.geometric),
        conventions=str(conventions),
        low=low,
        high=high,
        judged_at_10=_judged_at_10(judged, left_out),
    )


def refuse_strangers(judged: Judged) -> None:
    """Raise BadValue for the join of a run all of whose queries are others than the judged ones.

    For what people pass in, where it is a mistake; a system that finds nothing for its queries scores 0.
    """
    if len(judged) and judged.ignored and not judged.answered.any():
        raise BadValue(
            f"the run and the judgments have no query in common: of {judged.ignored} in the run one is "
            f"'{judged.stranger}', of {len(judged)} judged ones '{judged.queries[0]}'"
        )


def _judged_at_10(judged: Judged, left_out: NDArray[np.bool_]) -> float:
    """The mean of Judged@10 over the queries that count."""
    values = parse_measure("Judged@10").per_query(judged)[~left_out]
    return math.fsum(values.tolist()) / len(values)


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
