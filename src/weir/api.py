"""The public face: what `import weir` offers, taking what people already hold."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from weir.core.scores import Scores
from weir.errors import BadValue
from weir.io.frames import qrels_from, run_from
from weir.measures import DEFAULT_MEASURES, Measure
from weir.measures import evaluate as evaluate_values

if TYPE_CHECKING:
    from weir.report.compare import Verdicts

__all__ = ["compare", "evaluate"]


def evaluate(run: object, qrels: object, measures: Iterable[Measure | str] = DEFAULT_MEASURES) -> Scores:
    """Score a ranking against judgments: one value for each measure and judged query.

    run, qrels: Run and Qrels, dicts of dicts, pandas, polars or Arrow frames, or paths of files. Every judged
    query counts; one that the run does not answer scores 0. Raises the WeirErrors of the parts.
    """
    return evaluate_values(run_from(run), qrels_from(qrels), measures)


def compare(
    systems: Mapping[str, object] | Sequence[object] | str | os.PathLike[str],
    qrels: object = None,
    measures: Iterable[Measure | str] = (),
    baseline: str | None = None,
    test: str = "permutation",
    correct: str = "holm",
) -> Verdicts:
    """Which system is better, and is that certain? A comparison for each measure, each pair with its verdict.

    systems: rankings by name, or several that are named already (runs, paths); then qrels are their judgments, both
    as `evaluate` takes them. Scores by name need no judgments; nor does the path of a results folder. baseline:
    compare with this one instead of each with each. Print the result, or take its numbers from `.comparisons`.
    Raises BadValue for fewer than two systems and for systems that share no query or one only, UnknownName for a
    baseline, test or correction that does not exist, and the WeirErrors of the parts.
    """
    from weir.report.compare import Verdicts
    from weir.stats.compare import Method, compare_scores

    method = Method(test, correct)
    if isinstance(systems, (str, os.PathLike)):
        from weir.experiment.compare import compare_results

        return Verdicts(tuple(compare_results(Path(systems), measures, baseline, method)))
    scores = _scores_by_name(systems, qrels, tuple(measures) or DEFAULT_MEASURES)
    name = Path(qrels).name if isinstance(qrels, (str, os.PathLike)) else "the judged queries"
    return Verdicts(tuple(compare_scores(scores, name, baseline, method)))


def _scores_by_name(
    systems: Mapping[str, object] | Sequence[object], qrels: object, measures: tuple[Measure | str, ...]
) -> dict[str, Scores]:
    from weir.measures.files import distinct_names

    if isinstance(systems, Mapping):
        names, given = list(systems), list(systems.values())
    else:
        given = [s if isinstance(s, Scores) else run_from(s) for s in systems]
        numbered = [f"system {n}" for n in range(1, len(given) + 1)]
        names = distinct_names(
            [getattr(s, "name", n) for s, n in zip(given, numbered, strict=True)], numbered
        )
    if qrels is None and not all(isinstance(s, Scores) for s in given):
        raise BadValue("rankings are compared against judgments: pass them as qrels")
    judgments = None if qrels is None else qrels_from(qrels)
    return {
        name: s if isinstance(s, Scores) else evaluate(s, judgments, measures)
        for name, s in zip(names, given, strict=True)
    }
