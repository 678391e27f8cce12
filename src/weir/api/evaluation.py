"""Scoring a run against judgments, in whatever shape people hold both."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
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
from weir.io.runs.pairing import refuse_mismatched
from weir.measures import DEFAULT_MEASURES, Measure, measures_of, scores_of
from weir.measures.conventions import DEFAULT, Conventions, parse_conventions
from weir.measures.evaluate import listed, ranked_by, refuse_strangers
from weir.measures.files import judge

if TYPE_CHECKING:
    from weir.core.label_use import LabelUse
    from weir.datasets.load import Dataset
    from weir.stats.calibration import GatedLabels

__all__ = ["conventions_of", "evaluate", "gated_by", "judgments_from"]


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
    documents}, a frame (pandas, polars, Arrow) or the path of a file; rankings are a Run, {query: {document: score}},
    {query: documents in rank order}, a frame or a path. measures: values such as nDCG @ 10, or names, those of other
    tools too. Every judged query counts; one that the run does not answer scores 0. conventions: other rules for
    ties, missing and empty queries and self-matches, such as "ties=expected, missing=answered-only". A measure of
    diversity needs judgments for each intent: IntentQrels, {query: {intent: {document: grade}}}, or a path. A measure
    is found in the result by the name it prints and by the name asked for. labels: those of a model, as `weir.agree`
    takes them, which count where people judged nothing and their calibration on pairs judged by both passes `least`: a
    statistic and what the lower end of its interval must reach. `scores.labels` says what became of them. collection:
    of the ranking, by name, path or itself, whose rules hold whatever the conventions say: self-matches, candidates,
    queries without an answer.
    Raises BadValue for arguments the wrong way round and identifiers of two types (see `refuse_mismatched`) and for a
    run without a judged query, and the WeirErrors of the parts.
    """
    refuse_mismatched(qrels, run)
    asked = listed(measures)
    wanted = measures_of(asked)
    rules = conventions_of(conventions)
    if isinstance(run, Run) and run.ties == "trec9" and rules.ties == "trec":
        rules = replace(rules, ties="trec9")
    judgments = judgments_from(qrels, wanted)
    if collection is not None:
        run, judgments, rules = _by_collection(collection, run, judgments, rules)
    gate = None if labels is None else gated_by(judgments, labels, least)
    used = judgments if gate is None else gate.qrels
    judged = _judged(run, used, rules)
    refuse_strangers(judged)
    found = scores_of(judged, wanted, rules)
    if gate is not None:
        found = gate.marked(found, judged, lambda people: _judged(run, people, rules), wanted, rules)
    elif isinstance(used, Qrels) and used.origin is not None:
        found = replace(found, labels=_uncalibrated(used))
    names = [(str(m), str(one)) for m in asked for one in measures_of(m)]
    return replace(found, asked=tuple(pair for pair in names if pair[0] != pair[1]))


def _by_collection(
    collection: str | Path | Dataset, run: object, judgments: Qrels | IntentQrels, rules: Conventions
) -> tuple[object, Qrels | IntentQrels, Conventions]:
    """The ranking, judgments and conventions as a collection has them; a run stays a file if nothing leaves it."""
    from weir.datasets.scoring_rules import ScoringRules

    scoring = ScoringRules.of(collection, rules)
    kept = scoring.ranked(run_from(run)) if scoring.remove_documents else run
    return kept, scoring.counted(judgments), scoring.conventions


def gated_by(judgments: Qrels | IntentQrels, labels: object, least: str) -> GatedLabels:
    """Judgments with a model's labels under them where their calibration passes; raises BadValue for intents."""
    from weir.io.runs.labels import labels_from, rater_name
    from weir.stats.calibration import gated, parse_least

    if isinstance(judgments, IntentQrels):
        raise BadValue("a model's labels are of documents, not of intents; take measures without intents")
    name = rater_name(Path(labels)) if isinstance(labels, (str, os.PathLike)) else "the model"
    return gated(judgments, labels_from(labels), parse_least(least), name)


def _uncalibrated(qrels: Qrels) -> LabelUse | None:
    from weir.stats.calibration import uncalibrated

    return uncalibrated(qrels)


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


def judgments_from(qrels: object, measures: Iterable[Measure | str]) -> Qrels | IntentQrels:
    """Judgments as `evaluate` takes them, of intents where a measure needs these; raises as `evaluate`."""
    if isinstance(qrels, IntentQrels) or any(m.by_intent for m in measures_of(measures)):
        return intents_from(qrels)
    return qrels_from(qrels)


def conventions_of(given: Conventions | str) -> Conventions:
    """Conventions from themselves or their text; raises as `parse_conventions`."""
    return parse_conventions(given) if isinstance(given, str) else given
