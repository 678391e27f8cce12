"""From a run and judgments to scores: the one home of which queries count.

Every judged query counts. One that the run does not answer scores 0 and is reported as unanswered;
queries of the run that nobody judged are ignored and counted.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from weir.core.judged import Judged
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.core.scores import Scores
from weir.errors import BadValue
from weir.measures.measure import Measure, parse_measure

__all__ = ["DEFAULT_MEASURES", "evaluate", "measures_of", "scores_of"]

DEFAULT_MEASURES = ("nDCG@10", "R@100", "Judged@10")


def measures_of(wanted: Measure | str | Iterable[Measure | str]) -> tuple[Measure, ...]:
    """Measures from their names, or one name, without repetition; raises UnknownName or BadValue."""
    several = [wanted] if isinstance(wanted, (str, Measure)) else wanted
    found = [m if isinstance(m, Measure) else parse_measure(str(m)) for m in several]
    if not found:
        raise BadValue("no measure was named; try nDCG@10")
    return tuple(dict.fromkeys(found))


def evaluate(
    run: Run, qrels: Qrels, measures: Measure | str | Iterable[Measure | str] = DEFAULT_MEASURES
) -> Scores:
    """Score a run against judgments: one value for each measure and judged query.

    Raises BadValue where the judgments are empty, UnknownName for an unknown measure.
    """
    return scores_of(Judged.of(run, qrels), measures_of(measures))


def scores_of(judged: Judged, measures: tuple[Measure, ...]) -> Scores:
    """Apply measures to a join; raises BadValue where there is no judged query."""
    if len(judged) == 0:
        raise BadValue("the judgments hold no query, so there is nothing to score")
    values = np.stack([m(judged) for m in measures])
    returned = int(judged.retrieved.sum())
    share = float(judged.tied.sum()) / returned if returned else 0.0
    return Scores(tuple(map(str, measures)), judged.queries, values, judged.answered, share, judged.ignored)
