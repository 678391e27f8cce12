"""Score a ranking."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weir.api.given import one_ranking
from weir.argument_types import checked
from weir.core.intents import IntentQrels
from weir.core.judged import Judged, joined
from weir.core.qrels import Qrels
from weir.core.rank_order import ORDER_COUNTS
from weir.core.roles import MANY_QUERIES
from weir.core.run import Run
from weir.core.scores import Note, Scores
from weir.datasets.scoring_rules import ScoringRules, judged_by
from weir.errors import BadValue, held_warnings, warn_of_ranking
from weir.files.dict_join import join_dicts
from weir.files.frames import judged_from, qrels_from, refuse_mismatched, run_from
from weir.files.intents import intents_from
from weir.files.runs import say_spelled_otherwise
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
from weir.stats.score_rows import NOTHING_JUDGED, noted, scored

if TYPE_CHECKING:
    from weir.core.corpus import Queries
    from weir.datasets.load import Dataset
    from weir.stats.calibration import GatedLabels


@checked
def evaluate(
    qrels: object,
    run: object,
    measures: Measure | str | Iterable[Measure | str] = DEFAULT_MEASURES,
    conventions: Conventions | str | Mapping[str, str] = DEFAULT,
    *,
    labels: object = None,
    least: str = "binary kappa 0.4",
    collection: str | Path | Dataset | None = None,
) -> Scores:
    """Return the scores of a ranking: a value for each measure and judged query.

    qrels: Qrels, {query: {document: grade}}, {query: relevant documents}, a frame (pandas, polars, Arrow), the path
        of a file or of a collection's folder. For measures of diversity IntentQrels, {query: {intent: {document:
        grade}}}, or a path.
    run: a Run, {query: {document: score}}, {query: documents in rank order}, a frame or a path.
    measures: a measure such as nDCG@10, also by the name of another tool. In Python the result is indexed by either.
    conventions: rules for ties, missing and empty queries and self-matches, such as "ties=expected,
        missing=answered-only".
    labels: a model's judgments, used for pairs without a person's judgment if they agree with people's as `least`
        demands. `scores.labels` has the outcome.
    least: the agreement with people that their interval must reach, on pairs judged by both, such as "quadratic kappa
        0.6" or "binary kappa from 2 0.5".
    collection: the ranking's collection, by name or path. Its rules (self-matches, candidates, queries without an
        answer) override the conventions.

    Every judged query counts; an unanswered one scores 0. Raises BadValue for exchanged arguments, identifiers of two
    types and a run without a judged query. Warns (RankingWarning) if no returned document is judged.
    """
    by_name = named_measures(measures)
    requested = tuple(dict.fromkeys(by_name.values()))
    rules = conventions_of(conventions)
    if not isinstance(qrels, (Mapping, Qrels, IntentQrels)):
        qrels, collection = judged_by(qrels, collection)
    run = one_ranking(run, collection)
    needs_run = rules.order != "trec" or rules.self_matches == "drop" or any(m.by_intent for m in requested)
    judged = None if needs_run or labels is not None or collection is not None else join_dicts(qrels, run)
    if judged is None:
        refuse_mismatched(qrels, run)
        gate = None if labels is None else (labels, least)
        scores = _scores_of_any(qrels, run, requested, rules, gate, collection)
    else:
        check_shared_queries(judged, lambda: run_from(run), lambda: qrels_from(qrels))
        scores = scores_of(judged, requested, rules)
        fractions = qrels_from(qrels) if judged.ideal.dtype.kind == "f" else None
        scores = noted(scores, judged, fractions, requested)
    if NOTHING_JUDGED in scores.remarks and int(scores.answered.sum()) >= MANY_QUERIES:
        warn_of_ranking(NOTHING_JUDGED.text)
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
    if isinstance(run, Run) and run.ties == "trec9" and rules.ties == "trec":
        rules = replace(rules, ties="trec9")
    judgments = judgments_from(qrels, measures)
    remarks = list[Note]()
    queries, scoring = None, ScoringRules.of(collection, rules)
    if collection is not None:
        run = scoring.ranked(run_from(run)) if scoring.remove_documents else run
        remarks, queries = scoring.dangling_notes(judgments), scoring.queries
        judgments, rules = scoring.counted(judgments), scoring.conventions
    if scoring.dataset is not None or labels is not None:
        from weir.datasets.label_texts import text_notes

        remarks += text_notes(scoring.dataset or qrels, qrels, None if labels is None else labels[0])
    gate = None if labels is None else gated_by(judgments, *labels)
    used = judgments if gate is None else gate.qrels
    try:
        with held_warnings() as warned:
            scores = scored(used, partial(_judged, run, queries), measures, rules, gate)
    except BadValue as error:
        with held_warnings():  # the run is read again, and the error says more
            if scoring.dataset is not None and (other := scoring.split_answered(run_from(run), judgments)):
                raise BadValue(f"{error}; {other}") from None
            raise
    told = [Note(one) for one in warned if ORDER_COUNTS not in one]  # which `noted` says of any run
    return scores.remarked([*remarks, *told])  # a printed result outlives what was warned


def gated_by(judgments: Qrels | IntentQrels, labels: object, least: str) -> GatedLabels:
    """Return judgments with a model's labels added, if these agree well enough with people's, else unchanged.

    labels: the labels, or the path of their file.
    least: the agreement needed, such as "binary kappa 0.4".

    Raises BadValue for judgments by intent.
    """
    from weir.files.label_files import labels_from, rater_name
    from weir.stats.calibration import gated, parse_least

    if isinstance(judgments, IntentQrels):
        raise BadValue("a model's labels are of documents, not of intents; take measures without intents")
    name = rater_name(Path(labels)) if isinstance(labels, (str, os.PathLike)) else "the model"
    return gated(judgments, labels_from(labels), parse_least(least), name)


def _judged(
    run: object, queries: Queries | None, judgments: Qrels | IntentQrels, rules: Conventions
) -> Judged:
    if isinstance(run, (str, os.PathLike)):
        return join_run(Path(run), judgments, rules, queries)
    with held_warnings():
        return _joined(run, queries, judgments, rules)


def _joined(
    run: object, queries: Queries | None, judgments: Qrels | IntentQrels, rules: Conventions
) -> Judged:
    if queries is not None:
        run = run_from(run).by_identifier(queries)
    if isinstance(judgments, Qrels) and not isinstance(run, (Run, Mapping)) and rules.self_matches == "keep":
        judged = judged_from(run, judgments, rules.order)
    else:
        ranked = run_from(run)
        if isinstance(judgments, Qrels):
            say_spelled_otherwise("the run", ranked, judgments)
        judged = joined(ranked_by(ranked, rules), judgments)
    check_shared_queries(judged, lambda: run_from(run), lambda: judgments)
    return judged


def judgments_from(qrels: object, measures: Iterable[Measure | str]) -> Qrels | IntentQrels:
    """Return judgments in any form of `evaluate` as Qrels, or IntentQrels if a measure needs intents.

    Raises the errors of `qrels_from` and `intents_from`.
    """
    if isinstance(qrels, IntentQrels) or any(m.by_intent for m in measures_of(measures)):
        return intents_from(qrels)
    return qrels_from(qrels)


def conventions_of(conventions: Conventions | str | Mapping[str, Any]) -> Conventions:
    """Return Conventions from a value, a text such as "ties=expected", or {name: word}.

    Raises UnknownName for an unknown name or word, BadValue for other text.
    """
    if isinstance(conventions, str):
        return parse_conventions(conventions)
    return Conventions(**conventions) if isinstance(conventions, Mapping) else conventions
