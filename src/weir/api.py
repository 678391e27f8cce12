"""The public face: what `import weir` offers, taking what people already hold."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from weir.core.intents import IntentQrels, joined
from weir.core.judged import Judged
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.core.scores import Scores
from weir.errors import BadValue
from weir.io.runs.frames import judged_from, qrels_from, run_from
from weir.io.runs.intent_file import intents_from
from weir.io.runs.pairing import refuse_mismatched, refuse_rankings
from weir.measures import DEFAULT_MEASURES, Measure, measures_of, scores_of
from weir.measures.conventions import DEFAULT, Conventions, parse_conventions
from weir.measures.evaluate import ranked_by, refuse_strangers
from weir.measures.files import judge

if TYPE_CHECKING:
    from weir.core.result_row import Row
    from weir.fusion import Fusion
    from weir.report.compare import Verdicts

__all__ = ["compare", "evaluate", "fuse", "read_results"]


def evaluate(
    qrels: object,
    run: object,
    measures: Iterable[Measure | str] = DEFAULT_MEASURES,
    conventions: Conventions | str = DEFAULT,
) -> Scores:
    """Score a ranking against judgments: one value for each measure and judged query.

    qrels, run: Qrels and Run, dicts of dicts, pandas, polars or Arrow frames, or paths of files, in the order of
    `weir eval`. Every judged query counts; one that the run does not answer scores 0. conventions: other rules for
    ties, missing and empty queries and self-matches, such as "ties=expected, missing=answered-only". A measure of
    diversity needs judgments for each intent: IntentQrels, {query: {intent: {document: grade}}}, or a path. A measure
    is found in the result by the name it prints and by the name asked for. Raises BadValue for arguments the wrong way
    round and identifiers of two types (see `refuse_mismatched`) and for a run without a judged query, and the
    WeirErrors of the parts.
    """
    refuse_mismatched(qrels, run)
    measures = [measures] if isinstance(measures, (str, Measure)) else list(measures)
    wanted = measures_of(measures)
    rules = parse_conventions(conventions) if isinstance(conventions, str) else conventions
    if isinstance(run, Run) and run.ties == "trec9" and rules.ties == "trec":
        rules = replace(rules, ties="trec9")
    judged = _judged(run, _judgments(qrels, wanted), rules)
    refuse_strangers(judged)
    found = scores_of(judged, wanted, rules)
    names = [(str(m), str(one)) for m in measures for one in measures_of(m)]
    return replace(found, asked=tuple(pair for pair in names if pair[0] != pair[1]))


def compare(
    qrels: object,
    systems: Mapping[str, object] | Sequence[object] | None = None,
    measures: Iterable[Measure | str] = (),
    baseline: str | None = None,
    test: str = "permutation",
    correct: str = "holm",
) -> Verdicts:
    """Which system is better, and is that certain? A comparison for each measure, each pair with its verdict.

    qrels: judgments; systems: rankings by name, or several that are named already (runs, paths), both as `evaluate`
    takes them. What holds scores already stands alone, in the place of the judgments: the path of a results folder,
    Scores by name or several Scores. baseline: compare with this one instead of each with each. Differences are the
    second system minus the first, as in `weir diff`, `weir gate` and `weir power`: the later given minus the earlier,
    or each minus the baseline. Print the result, or take its numbers from `.comparisons`.
    Raises BadValue for fewer than two systems and for systems that share no query or one only, UnknownName for a
    baseline, test or correction that does not exist, and the WeirErrors of the parts.
    """
    from weir.report.compare import Verdicts
    from weir.stats.compare import compare_scores
    from weir.stats.comparison import ComparisonMethod

    method = ComparisonMethod(test, correct)
    wanted = (measures,) if isinstance(measures, (str, Measure)) else tuple(measures)
    name = Path(qrels).name if isinstance(qrels, (str, os.PathLike)) else "the judged queries"
    if systems is None and isinstance(qrels, (str, os.PathLike)):
        from weir.experiment.compare import compare_results

        return Verdicts(tuple(compare_results(Path(qrels), wanted, baseline, method)))
    scores = (
        _scored(qrels) if systems is None else _scores_by_name(qrels, systems, wanted or DEFAULT_MEASURES)
    )
    return Verdicts(tuple(compare_scores(scores, name, baseline, method)))


def fuse(runs: Iterable[object], method: Fusion | str = "rrf", k: int | None = None) -> Run:
    """Fuse rankings into one, such as fuse([a, b], "rrf(k=10)"): every document that one of them returns.

    runs: two or more rankings, each as `evaluate` takes it; method: see docs/fusion.md; k: documents kept for each
    query. Raises BadValue for fewer than two rankings and for rankings that share no query, UnknownName for an unknown
    method or setting, and the WeirErrors of the parts.
    """
    from weir.fusion import fuse as fuse_runs

    return fuse_runs([run_from(run) for run in runs], method, k)


def read_results(folder: str | os.PathLike[str]) -> list[Row]:
    """The rows of every finished cell of a results folder, groups of datasets after their members.

    Raises FormatError where the folder holds no finished cell.
    """
    from weir.experiment.results import read_results as read

    return read(Path(folder))


def _judged(run: object, judgments: Qrels | IntentQrels, rules: Conventions) -> Judged:
    """The join of a run with judgments; files and frames are joined while they are read, and never held."""
    if isinstance(run, (str, os.PathLike)):
        return judge(Path(run), judgments, rules)
    if isinstance(judgments, Qrels) and not isinstance(run, (Run, Mapping)) and rules.self_matches == "keep":
        return judged_from(run, judgments, rules.order)
    ranked = run_from(run)
    if not len(ranked):
        raise BadValue("the run holds no ranking; expected at least one document for one query")
    return joined(ranked_by(ranked, rules), judgments)


def _judgments(qrels: object, measures: Iterable[Measure | str]) -> Qrels | IntentQrels:
    if isinstance(qrels, IntentQrels) or any(m.by_intent for m in measures_of(measures)):
        return intents_from(qrels)
    return qrels_from(qrels)


def _scored(given: object) -> dict[str, Scores]:
    """Scores by name, from such or from several; raises BadValue for anything else."""
    if isinstance(given, Mapping) and all(isinstance(one, Scores) for one in given.values()):
        return dict(given)
    if isinstance(given, Sequence) and all(isinstance(one, Scores) for one in given):
        return {f"system {n}": one for n, one in enumerate(given, 1)}
    raise BadValue(
        f"found {type(given).__name__} alone; rankings are compared against judgments: compare(qrels, systems)"
    )


def _scores_by_name(
    qrels: object, systems: Mapping[str, object] | Sequence[object], measures: tuple[Measure | str, ...]
) -> dict[str, Scores]:
    from weir.measures.files import distinct_names

    if isinstance(systems, (str, os.PathLike, Qrels, IntentQrels)):
        found = type(systems).__name__
        raise BadValue(f"found {found} as the systems; judgments come first, then several rankings")
    if isinstance(systems, Mapping):
        names, given = list(systems), list(systems.values())
    else:
        runs = [run_from(one) for one in systems]
        names = distinct_names([one.name for one in runs], [f"system {n}" for n in range(1, len(runs) + 1)])
        given = list(runs)
    if not any(m.by_intent for m in measures_of(measures)):
        refuse_rankings(qrels)
    judgments = _judgments(qrels, measures)
    return {name: evaluate(judgments, one, measures) for name, one in zip(names, given, strict=True)}
