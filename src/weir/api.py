"""The public face: what `import weir` offers, taking what people already hold."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from weir.core.intents import IntentQrels
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.core.scores import Scores
from weir.errors import BadValue
from weir.io.frames import judged_from, qrels_from, run_from
from weir.io.intents import intents_from
from weir.measures import DEFAULT_MEASURES, Measure, measures_of, scores_of
from weir.measures import evaluate as evaluate_values
from weir.measures.conventions import DEFAULT, Conventions, parse_conventions

if TYPE_CHECKING:
    from weir.fusion import Fusion
    from weir.report.compare import Verdicts

__all__ = ["compare", "evaluate", "fuse"]


def evaluate(
    run: object,
    qrels: object,
    measures: Iterable[Measure | str] = DEFAULT_MEASURES,
    conventions: Conventions | str = DEFAULT,
) -> Scores:
    """Score a ranking against judgments: one value for each measure and judged query.

    run, qrels: Run and Qrels, dicts of dicts, pandas, polars or Arrow frames, or paths of files. Every judged
    query counts; one that the run does not answer scores 0. conventions: other rules for ties, missing and empty
    queries and self-matches, such as "ties=expected, missing=answered-only". A measure of diversity needs judgments
    for each intent: IntentQrels, {query: {intent: {document: grade}}}, or a path. Raises the WeirErrors of the parts.
    """
    wanted = measures_of(measures)
    rules = parse_conventions(conventions) if isinstance(conventions, str) else conventions
    judgments = _judgments(qrels, wanted)
    if isinstance(judgments, Qrels) and not isinstance(run, Run) and rules.self_matches == "keep":
        # A file or a frame is joined while it is read, and never held.
        return scores_of(judged_from(run, judgments, rules.order), wanted, rules)
    return evaluate_values(run_from(run), judgments, wanted, rules)


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


def fuse(runs: Iterable[object], method: Fusion | str = "rrf", k: int | None = None) -> Run:
    """Fuse rankings into one, such as fuse([a, b], "rrf(k=10)"): every document that one of them returns.

    runs: two or more rankings, each as `evaluate` takes it; method: see docs/fusion.md; k: documents kept for each
    query. Raises BadValue for fewer than two rankings and for rankings that share no query, UnknownName for an unknown
    method or setting, and the WeirErrors of the parts.
    """
    from weir.fusion import fuse as fuse_runs

    return fuse_runs([run_from(run) for run in runs], method, k)


def _judgments(qrels: object, measures: Iterable[Measure | str]) -> Qrels | IntentQrels:
    if isinstance(qrels, IntentQrels) or any(m.by_intent for m in measures_of(measures)):
        return intents_from(qrels)
    return qrels_from(qrels)


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
    judgments = None if qrels is None else _judgments(qrels, measures)
    return {
        name: s if isinstance(s, Scores) else evaluate(s, judgments, measures)
        for name, s in zip(names, given, strict=True)
    }
