"""Run files scored by judgments, as every command that reads run files scores them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from weir.core.intents import IntentQrels
from weir.core.qrels import Qrels
from weir.core.scores import Scores
from weir.datasets.scoring_rules import NO_COLLECTION, ScoringRules
from weir.measures import DEFAULT_MEASURES, Measure, measures_of, scores_of
from weir.measures.evaluate import Conventions, each_file, judgments_for, names_of_runs
from weir.stats.score_rows import noted

if TYPE_CHECKING:
    from weir.stats.calibration import GatedLabels


def score_file(
    run: Path,
    judgments: Qrels | IntentQrels,
    measures: tuple[Measure, ...],
    rules: ScoringRules = NO_COLLECTION,
    gate: GatedLabels | None = None,
) -> Scores:
    """The scores of a run file with what was seen while scoring; raises as `ScoringRules.judge`.

    judgments: those that count by the rules; gate: where a model's labels are among them.
    """

    def rescored(conventions: Conventions) -> Scores:
        other = replace(rules, conventions=conventions)
        return scores_of(other.join_run(run, judgments), measures, conventions)

    judged = rules.join_run(run, judgments)
    scores = scores_of(judged, measures, rules.conventions)
    if gate is not None:
        scores = gate.marked(scores, judged, lambda p: rules.join_run(run, p), measures, rules.conventions)
    elif isinstance(judgments, Qrels) and judgments.origin is not None:
        from weir.stats.calibration import uncalibrated

        scores = replace(scores, labels=uncalibrated(judgments))
    return noted(scores, judged, judgments, measures, rescored)


def scores_of_files(
    qrels: Path,
    runs: Sequence[Path],
    measures: Iterable[Measure | str] = (),
    rules: ScoringRules = NO_COLLECTION,
    least: int = 2,
) -> tuple[dict[str, Scores], list[str]]:
    """(the scores of run files by name, a sentence on each file that is no ranking of these judgments).

    A name is the file's, or its path where two files are called the same. measures: by default nDCG@10, R@100 and
    Judged@10. Raises the WeirErrors of reading and measuring, those of a run file where fewer than `least` are left.
    """
    wanted = measures_of(tuple(measures) or DEFAULT_MEASURES)
    judgments = rules.counted(judgments_for(qrels, wanted))
    scored, refused = each_file(runs, lambda run: score_file(run, judgments, wanted, rules), least=least)
    names = zip(names_of_runs(runs), runs, strict=True)
    return {name: scored[run] for name, run in names if run in scored}, refused
