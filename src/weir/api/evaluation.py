"""Scores of rankings in Python: evaluation, official programs, fusion."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from weir.api.given import all_rankings, one_ranking
from weir.api.result_set import ResultSet
from weir.argument_types import checked
from weir.core.intents import IntentQrels, joined
from weir.core.judged import Judged
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.core.scores import Note, Scores
from weir.errors import BadRanking, BadValue, FormatError, RankingWarning, UnknownName, WeirError
from weir.files.dict_join import join_dicts
from weir.files.frames import judged_from, qrels_from, refuse_mismatched, run_from
from weir.files.intents import intents_from
from weir.files.paths import path_of
from weir.measures import DEFAULT_MEASURES, Measure, measures_of, scores_of
from weir.measures.evaluate import (
    DEFAULT,
    Conventions,
    check_shared_queries,
    join_run,
    named_measures,
    parse_conventions,
    ranked_by,
)
from weir.stats.score_rows import noted, scored

if TYPE_CHECKING:
    from weir.datasets.load import Dataset
    from weir.stats.birco import BircoScore
    from weir.stats.calibration import GatedLabels
    from weir.systems.fusion import Fusion
    from weir.systems.fusion.fit import Fit


@checked
def evaluate(
    qrels: object,
    run: object,
    measures: Measure | str | Iterable[Measure | str] = DEFAULT_MEASURES,
    conventions: Conventions | str = DEFAULT,
    *,
    labels: object = None,
    least: str = "binary kappa 0.4",
    collection: str | Path | Dataset | None = None,
) -> Scores:
    """Score a ranking against judgments: one value for each measure and judged query.

    qrels, run: in the order of `weir eval`. Judgments are Qrels, {query: {document: grade}}, {query: relevant
    documents}, a frame (pandas, polars, Arrow), the path of a file or the folder of a collection; rankings are a Run,
    {query: {document: score}}, {query: documents in rank order}, a frame or a path. measures: values such as nDCG @
    10, or names, those of other tools too. Every judged query counts; one that the run does not answer scores 0.
    conventions: other rules for ties, missing and empty queries and self-matches, such as "ties=expected,
    missing=answered-only". A measure of diversity needs judgments for each intent: IntentQrels, {query: {intent:
    {document: grade}}}, or a path. A measure is found in the result by the name it prints and by the name asked for.
    labels: those of a model, as `weir.labels.agree` takes them, which count where people judged nothing and their
    calibration on pairs judged by both passes `least`: a statistic and what the lower end of its interval must reach.
    `scores.labels` says what became of them. collection: of the ranking, by name, path or itself, whose rules hold
    whatever the conventions say: self-matches, candidates, queries without an answer.
    Raises BadValue for arguments the wrong way round and identifiers of two types (see `refuse_mismatched`) and for a
    run without a judged query, and the WeirErrors of the parts.
    """
    by_name = named_measures(measures)
    requested = tuple(dict.fromkeys(by_name.values()))
    rules = conventions_of(conventions)
    run = one_ranking(run)
    if not isinstance(qrels, (Mapping, Qrels, IntentQrels)):
        from weir.datasets.scoring_rules import judged_by

        qrels, collection = judged_by(qrels, collection)
    needs_run = rules.order != "trec" or rules.self_matches == "drop" or any(m.by_intent for m in requested)
    judged = None if needs_run or labels is not None or collection is not None else join_dicts(qrels, run)
    if judged is None:
        refuse_mismatched(qrels, run)
        gate = None if labels is None else (labels, least)
        scores = _scores_of_any(qrels, run, requested, rules, gate, collection)
    else:
        check_shared_queries(judged)
        scores = scores_of(judged, requested, rules)
        fractions = qrels_from(qrels) if judged.ideal.dtype.kind == "f" else None
        scores = noted(scores, judged, fractions, requested)
    other_names = tuple((name, str(measure)) for name, measure in by_name.items() if name != str(measure))
    return replace(scores, asked=other_names) if other_names else scores


def _scores_of_any(
    qrels: object,
    run: object,
    measures: tuple[Measure, ...],
    rules: Conventions,
    labels: tuple[object, str] | None,
    collection: str | Path | Dataset | None = None,
) -> Scores:
    """The scores of whatever holds a run, with a model's labels and what they have to reach."""
    if isinstance(run, Run) and run.ties == "trec9" and rules.ties == "trec":
        rules = replace(rules, ties="trec9")
    judgments = judgments_from(qrels, measures)
    remarks: tuple[Note, ...] = ()
    if collection is not None:
        from weir.datasets.scoring_rules import ScoringRules

        scoring = ScoringRules.of(collection, rules)
        run = scoring.ranked(run_from(run)) if scoring.remove_documents else run
        judgments, rules = scoring.counted(judgments), scoring.conventions
        remarks = tuple(scoring.dangling_notes(judgments))
    gate = None if labels is None else gated_by(judgments, *labels)
    used = judgments if gate is None else gate.qrels
    scores = scored(used, partial(_judged, run), measures, rules, gate)
    return scores.remarked(remarks)


def gated_by(judgments: Qrels | IntentQrels, labels: object, least: str) -> GatedLabels:
    """Judgments with a model's labels under them where their calibration passes; raises BadValue for intents."""
    from weir.files.label_files import labels_from, rater_name
    from weir.stats.calibration import gated, parse_least

    if isinstance(judgments, IntentQrels):
        raise BadValue("a model's labels are of documents, not of intents; take measures without intents")
    name = rater_name(Path(labels)) if isinstance(labels, (str, os.PathLike)) else "the model"
    return gated(judgments, labels_from(labels), parse_least(least), name)


def _judged(run: object, judgments: Qrels | IntentQrels, rules: Conventions) -> Judged:
    """The join of a run with judgments; files and frames are joined while they are read, and never held."""
    if isinstance(run, (str, os.PathLike)):
        return join_run(Path(run), judgments, rules)
    if isinstance(judgments, Qrels) and not isinstance(run, (Run, Mapping)) and rules.self_matches == "keep":
        judged = judged_from(run, judgments, rules.order)
    else:
        ranked = run_from(run)
        if not len(ranked):
            raise BadValue("the run holds no ranking; expected at least one document for one query")
        judged = joined(ranked_by(ranked, rules), judgments)
    check_shared_queries(judged)
    return judged


def judgments_from(qrels: object, measures: Iterable[Measure | str]) -> Qrels | IntentQrels:
    """Judgments as `evaluate` takes them, of intents where a measure needs these; raises as `evaluate`."""
    if isinstance(qrels, IntentQrels) or any(m.by_intent for m in measures_of(measures)):
        return intents_from(qrels)
    return qrels_from(qrels)


def conventions_of(conventions: Conventions | str) -> Conventions:
    """Conventions from themselves or their text; raises as `parse_conventions`."""
    return parse_conventions(conventions) if isinstance(conventions, str) else conventions


@checked
def official_scores(
    qrels: object, *runs: object, scorer: str = "birco", collection: str | Path | None = None
) -> ResultSet[BircoScore]:
    """The official figures of runs, or of every cell of a results folder: `weir eval --scorer`, `weir results` with it.

    qrels, runs: as `evaluate` takes them; without runs a folder that `weir run` wrote, and collection: whose judgments
    it is scored by, where its own are not here. What the program does not take as it should is a RankingWarning, and so
    is one of several runs that cannot be scored, which is left out. Raises UnknownName for another scorer than "birco",
    BadValue for rankings of less or more than whole candidate pools, and the WeirErrors of reading.
    """
    from weir.datasets.scoring_rules import judged_by
    from weir.experiment.reproduce import birco_of_cells
    from weir.experiment.results import finished_cells
    from weir.stats.birco import BircoScore, birco_remarks, birco_scores

    if scorer != "birco":
        raise UnknownName("scorer", scorer, ["birco"])
    if runs:
        dataset = Path(qrels).name if isinstance(qrels, (str, Path)) else ""
        judgments, scores, refused = qrels_from(judged_by(qrels)[0]), list[BircoScore](), list[WeirError]()
        for run in all_rankings(runs):
            try:
                scores += birco_scores(judgments, run_from(run), dataset)
            except (BadRanking, BadValue, FormatError) as error:
                refused.append(error)
        if refused and not scores:
            raise refused[0]
        remarks = [*(f"left out: {error}" for error in refused), *birco_remarks(judgments)]
    else:
        places = () if collection is None else (collection,)
        scores, remarks = birco_of_cells(finished_cells(path_of(str(qrels))), places)
    for one in remarks:
        warnings.warn(RankingWarning(one), stacklevel=2)
    return ResultSet("official", tuple(scores))


@checked
def fuse(runs: Iterable[object], method: Fusion | str = "rrf", k: int | None = None) -> Run:
    """Fuse rankings into one, such as fuse([a, b], "rrf(k=10)"): every document that one of them returns.

    runs: two or more rankings, each as `evaluate` takes it; method: see docs/fusion.md; k: documents kept for each
    query. Raises BadValue for fewer than two rankings and for rankings that share no query, UnknownName for an unknown
    method or setting, and the WeirErrors of the parts.
    """
    from weir.systems.fusion import fuse as fuse_runs

    return fuse_runs([run_from(run) for run in all_rankings(tuple(runs))], method, k)


@checked
def fit_fusion(
    qrels: object,
    runs: Iterable[object],
    method: Fusion | str,
    measure: Measure | str = "nDCG@10",
    folds: int = 5,
) -> Fit:
    """Choose the settings of a fusion that do best on judged queries, with cross-validation, as `weir fuse --fit`.

    qrels, runs: as `evaluate` takes them; method: settings that it gives stay as they are. `.chosen` is the fusion to
    use on other queries, `.held_out` what each judged query scores under settings that were not chosen on it. Raises
    BadValue where nothing is left to choose and for fewer judged queries than folds, and the WeirErrors of the parts.
    """
    from weir.datasets.scoring_rules import ScoringRules, judged_by
    from weir.systems.fusion.fit import fit

    judgments, collection = judged_by(qrels)
    rules = ScoringRules.of(collection)
    ranked = [rules.ranked(run_from(run)) for run in all_rankings(tuple(runs))]
    judged = rules.counted(qrels_from(judgments))
    fitted = fit(method, ranked, judged, measure, folds)
    return replace(fitted, remarks=tuple(rules.dangling_notes(judged)))
