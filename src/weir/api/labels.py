"""Labels of people and models in Python: judges, agreement, estimates from few labels, what to judge next."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from weir.api.auditing import Places, places_of
from weir.api.given import all_rankings, ranking
from weir.api.result_set import ResultSet
from weir.argument_types import checked
from weir.core.qrels import MODEL
from weir.errors import BadValue
from weir.files.paths import path_of

if TYPE_CHECKING:
    from weir.core.qrels import Qrels
    from weir.core.query_metadata import QueryGroups, QueryWeights
    from weir.core.run import Run
    from weir.core.subject import Subject
    from weir.datasets.load import Dataset
    from weir.datasets.scoring_rules import ScoringRules
    from weir.labels.estimates import CorrectedScore, QueryPlan
    from weir.labels.hole_study import HoleStudy
    from weir.labels.judge_report import JudgeReport
    from weir.labels.panel import JudgeSettings, JudgingPairs
    from weir.measures.measure import Measure
    from weir.models.chat import ChatModel
    from weir.stats.label_agreement import Agreement, ManyRaters
    from weir.stats.order_agreement import OrderAgreement


@checked
def agree(first: object, *others: object, words: Sequence[str] = ()) -> ResultSet[Agreement]:
    """How well other labels agree with the first: `weir labels agree`.

    first, others: judgments as `weir.evaluate` takes them, folders of `weir judge`, or tables of other judges, such as
    "labels.csv" or "labels.csv#gpt" where several columns are labels; of one file alone, its raters, by their origin or
    column. words: what labels mean that are no numbers, such as "partly relevant=1". Each query stands in `by_query`.
    Raises BadValue where no pair is judged by both or there is one rater alone, and the WeirErrors of reading.
    """
    from weir.stats.label_agreement import agreement

    (name, labels), *rest = labels_by_name((first, *others), words).items()
    if not rest:
        raise BadValue(f"{name} has the labels of one rater alone; name other labels of the same pairs")
    return ResultSet("agree", tuple(agreement(labels, other, (name, beside)) for beside, other in rest))


@checked
def rater_agreement(first: object, *others: object, words: Sequence[str] = ()) -> ResultSet[ManyRaters]:
    """Krippendorff's alpha of all raters together, of whom each may have left pairs out; arguments as `agree`.

    Raises BadValue for one rater and where no pair has two labels, and the WeirErrors of reading.
    """
    from weir.stats.label_agreement import many_raters

    return ResultSet("raters", (many_raters(labels_by_name((first, *others), words)),))


@checked
def rank_agreement(
    first: object,
    *others: object,
    runs: Mapping[str, object] | Sequence[object],
    measure: Measure | str = "nDCG@10",
    words: Sequence[str] = (),
) -> ResultSet[OrderAgreement]:
    """Whether other labels order systems as the first do: `weir labels agree --run`; labels as `agree` takes them.

    runs: rankings by name, or several, as `weir.evaluate` takes them. Raises BadValue for fewer than two systems or
    queries in common, and the WeirErrors of reading.
    """
    from weir.measures.measure import parse_measure
    from weir.stats.order_agreement import order_agreement

    systems = _systems(runs)
    (name, labels), *rest = labels_by_name((first, *others), words).items()
    parsed = parse_measure(str(measure))
    agreements = [
        replace(order_agreement(systems, labels, other, parsed, (name, beside)), alike=_alike(systems, other))
        for beside, other in rest
    ]
    return ResultSet("orders", tuple(agreements))


@checked
def holes(
    qrels: object,
    *runs: object,
    human: object = None,
    model: object = None,
    measure: Measure | str = "nDCG@10",
    rel: float = 1,
    collection: str | Path | Dataset | None = None,
) -> ResultSet[HoleStudy]:
    """What people, a model, or both find among the unjudged documents of runs: `weir labels holes`.

    qrels, runs: as `weir.evaluate` takes them; human, model: labels as `agree` takes them, one of which may be None;
    rel: the grade from which a document is relevant; collection: of the runs, whose rules hold, such as that of
    self-matches. Raises BadValue without labels, where nothing is unjudged or no hole is judged by all of them, and for
    a measure without score bounds, and the WeirErrors of reading.
    """
    from weir.core.scores import Note
    from weir.datasets.scoring_rules import ScoringRules, judged_by
    from weir.files.frames import qrels_from
    from weir.files.label_files import labels_from
    from weir.labels.hole_study import hole_study
    from weir.measures.measure import parse_measure

    people, by_model = (None if labels is None else labels_from(_named(labels)) for labels in (human, model))
    qrels, collection = judged_by(qrels, collection)
    scoring = ScoringRules.of(collection)
    systems = {name: scoring.ranked(run) for name, run in _systems(runs).items()}
    judgments = scoring.counted(qrels_from(qrels))
    study = hole_study(systems, judgments, people, by_model, parse_measure(str(measure)), rel)
    notes = (*scoring.notes, *scoring.dangling_notes(judgments, people, by_model))
    alone = "a model alone labelled the unjudged documents: see how far it agrees with people by weir judge --judged"
    return ResultSet("holes", (study,), notes if human is not None else (*notes, Note(alone)))


def _systems(runs: Mapping[str, object] | Sequence[object]) -> dict[str, Run]:
    """Rankings by name: the given ones, or those of the runs, or their paths where these repeat."""
    from weir.files.frames import run_from
    from weir.measures.evaluate import distinct_names

    if isinstance(runs, Mapping):
        return {str(name): ranking(run) for name, run in runs.items()}
    runs = all_rankings(runs)
    rankings = [run_from(run) for run in runs]
    long = [
        str(run) if isinstance(run, (str, os.PathLike)) else f"system {n}" for n, run in enumerate(runs, 1)
    ]
    return dict(zip(distinct_names([run.name for run in rankings], long), rankings, strict=True))


def _alike(systems: Iterable[str], labels: Qrels) -> tuple[tuple[str, str], ...]:
    """Systems that are called like a model of the family that made labels, with that family."""
    from weir.labels.judge import families_of

    models = [] if labels.origin is None else [name for name in labels.origin.names if name.startswith(MODEL)]
    # model:prompt, of which the prompt may be missing
    model_names = [name.removeprefix(MODEL) for name in models]
    judges = frozenset[str]().union(*(families_of(name.rpartition(":")[0] or name) for name in model_names))
    return tuple((name, family) for name in systems for family in sorted(families_of(name) & judges))


def labels_by_name(sources: Sequence[object], words: Sequence[str] = ()) -> dict[str, Qrels]:
    """Labels by the name of their rater, of one file alone those of each of its raters; raises as `read_labels`."""
    from weir.files.label_files import labels_from, parse_words, rater_name, read_labels, read_raters
    from weir.measures.evaluate import distinct_names

    meaning = parse_words(words)
    given = [_named(one) for one in sources]
    if len(given) == 1 and isinstance(given[0], (str, os.PathLike)):
        return read_raters(path_of(given[0]), meaning)
    short = [
        rater_name(Path(one)) if isinstance(one, (str, os.PathLike)) else f"labels {n}"
        for n, one in enumerate(sources, 1)
    ]
    long = [
        str(one) if isinstance(one, (str, os.PathLike)) else name
        for one, name in zip(sources, short, strict=True)
    ]
    labels = [
        read_labels(one, meaning) if isinstance(one, (str, os.PathLike)) else labels_from(one)
        for one in given
    ]
    return dict(zip(distinct_names(short, long), labels, strict=True))


def _named(labels: object) -> object:
    """Labels as they are given, of what names a collection its judgments; a folder of labels is none."""
    from weir.datasets.scoring_rules import judged_by
    from weir.files.layouts import holds_collection

    folder = path_of(labels) if isinstance(labels, (str, os.PathLike)) else None
    if folder is not None and folder.is_dir() and not holds_collection(folder):
        return labels
    return judged_by(labels)[0]


@checked
def judge(
    *targets: str | Path,
    out: str | Path,
    model: str | ChatModel | None = None,
    prompt: str | Path = "umbrela",
    budget: str | None = None,
    price: str | None = None,
    collection: Places = None,
    people: object = None,
    judged: bool = False,
    k: int = 10,
    limit: int | None = None,
    settings: JudgeSettings | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> ResultSet[JudgeReport]:
    """Let a language model judge pairs of query and document, and write its labels to a folder: `weir judge`.

    targets: a folder or sheet of `judging_pool`, a results folder, judgments and run files, or a collection; out: the
    folder of the labels, which the same call continues; model: such as "http://localhost:8000/v1#name" or
    "openai:gpt-4o", or a ChatModel, None for that of WEIR_LLM; prompt: a name, or a path of a TOML file; budget, price:
    as WEIR_API_BUDGET and WEIR_API_PRICE; collection: the documents and queries; people: judgments of people to compare
    with, where the targets have none; judged: judge what people judged instead of what nobody did; k: ranks of each
    system that are looked at; limit: pairs at most; progress: told what is being done, how much of it, of how much.
    Raises ServiceError where the budget ends or answers are missing, after writing the labels that are there; BadValue
    for settings, and for a folder that holds other labels; and the WeirErrors of reading.
    """
    from weir.files.frames import qrels_from
    from weir.labels.judge import Judge, judge_pairs
    from weir.labels.panel import JudgeSettings, judge_prompt
    from weir.models.chat import ChatModel, default_model
    from weir.services.requests import Limits
    from weir.settings import settings as environment

    chosen = default_model() if model is None else model
    chat = ChatModel(chosen) if isinstance(chosen, str) else chosen
    set_limits = environment()
    limits = Limits.of(
        replace(
            set_limits, api_budget=budget or set_limits.api_budget, api_price=price or set_limits.api_price
        )
    )
    judge = Judge(chat, judge_prompt(str(prompt)), settings or JudgeSettings(), limits)
    people_labels = None if people is None else qrels_from(_named(people))
    pairs = _pairs(targets, collection, people_labels, judged, (k, limit))
    return ResultSet("judge", (judge_pairs(pairs, judge, path_of(out), progress),))


def _pairs(
    targets: Sequence[str | Path],
    collection: Places,
    people: Qrels | None,
    judged: bool,
    ranks: tuple[int, int | None],
) -> JudgingPairs:
    """The pairs that targets name; ranks: how many are looked at, and pairs at most.

    Raises BadValue for targets of several collections.
    """
    from weir.experiment.audit_subjects import subjects_of
    from weir.labels.panel import is_sheet, pairs_of_sheet, pairs_of_subject

    k, limit = ranks
    if limit is not None and limit < 1:
        raise BadValue(f"limit is {limit}; expected a whole number from 1")
    if len(targets) == 1 and is_sheet(path_of(targets[0])):
        about = None if not (places := places_of(collection)) else _only(subjects_of(places))
        about = replace(about, qrels=people) if about is not None and people is not None else about
        pairs = pairs_of_sheet(path_of(targets[0]), about, judged, limit)
    else:
        pairs = pairs_of_subject(_only(subjects_of(targets, places_of(collection))), judged, k, limit)
    return pairs if people is None else replace(pairs, people=people)


def _only(subjects: Sequence[Subject]) -> Subject:
    if len(subjects) != 1:
        names = ", ".join(one.name for one in subjects[:5])
        raise BadValue(
            f"found {len(subjects)} collections ({names}); judge one at a time, each into a folder of its own"
        )
    return subjects[0]


@checked
def estimate(
    human: object,
    model: object,
    *runs: object,
    measure: Measure | str = "P@10",
    strata: object = None,
    weights: object = None,
    pairs: bool = False,
    sheets: Iterable[str | Path] = (),
    collection: str | Path | Dataset | None = None,
) -> ResultSet[CorrectedScore]:
    """Scores of runs from few human judgments and many of a model: `weir labels estimate`.

    human, model, runs: as `weir.evaluate` takes them, labels as `weir.labels.agree`, too; strata: within which the
    queries that people judged were drawn: groups as `scores.by` takes them, or a column of the collection; weights:
    {query: weight} or a file, one over the probability with which each was drawn; pairs: people judged a random part
    of the first documents of each query; sheets: of `next_queries` or `judging_pool`, filled in, beside human;
    collection: of the runs, whose rules hold, such as that of self-matches.
    Raises BadValue for a measure that cannot be estimated so, and for too few queries.
    """
    from weir.datasets.scoring_rules import ScoringRules, judged_by
    from weir.labels.estimates import estimated_scores, unanswered_notes
    from weir.labels.sampling import SampleDesign
    from weir.measures.measure import parse_measure

    human, collection = judged_by(human, collection)
    by_people, by_model = _people(human, sheets), _labels(model)
    design = SampleDesign(_strata(strata, by_model, collection), _weights(weights), pairs)
    rules = ScoringRules.of(collection)
    rankings = _rankings_by_name(runs, rules)
    estimates = estimated_scores(rankings, by_people, by_model, parse_measure(str(measure)), design)
    notes = unanswered_notes(rankings, by_people, by_model)
    return ResultSet(
        "estimate", tuple(estimates), (*rules.notes, *rules.dangling_notes(by_people, by_model), *notes)
    )


@checked
def next_queries(
    human: object,
    model: object,
    *runs: object,
    measure: Measure | str = "P@10",
    count: int | None = None,
    width: float | None = None,
    strata: object = None,
    sheets: Iterable[str | Path] = (),
    out: str | Path | None = None,
    collection: str | Path | Dataset | None = None,
) -> ResultSet[QueryPlan]:
    """Which queries people should judge next, so that estimates become narrower: `weir labels estimate --next`.

    human, model, runs, measure, strata, sheets: as `estimate`; count: how many queries; width: half an interval that is
    asked for; out: the folder of the sheet, None to write none; collection: whose texts stand on it, and
    whose rules hold. Raises BadValue
    where nothing is left to judge and for a folder that is there, and as `estimate`.
    """
    from weir.core.subject import Subject
    from weir.datasets.scoring_rules import ScoringRules, judged_by
    from weir.labels.estimates import next_queries as drawn_queries
    from weir.labels.estimates import write_plan
    from weir.measures.measure import parse_measure

    human, collection = judged_by(human, collection)
    labels, rules = (_people(human, sheets), _labels(model)), ScoringRules.of(collection)
    groups = _strata(strata, labels[1], collection)
    drawn = drawn_queries(
        _rankings_by_name(runs, rules),
        labels,
        parse_measure(str(measure)),
        count,
        width,
        groups,
    )
    if out is not None:
        dataset = _dataset(collection)
        texts = (None, None) if dataset is None else (dataset.corpus, dataset.all_queries)
        write_plan(drawn, Subject("estimate", *texts), path_of(out))
    return ResultSet("next queries", (drawn.plan,), tuple(rules.dangling_notes(*labels)))


def _labels(value: object) -> Qrels:
    from weir.files.label_files import labels_from

    return labels_from(_named(value))


def _people(human: object, sheets: Iterable[str | Path]) -> Qrels:
    """The judgments of people with those of filled sheets, of which the last counts first."""
    from weir.core.qrels import merge_qrels
    from weir.labels.pools import read_sheet

    labels = _labels(human)
    for sheet in sheets:
        labels = merge_qrels(read_sheet(path_of(sheet))[0], labels)
    return labels


def _rankings_by_name(runs: Sequence[object], rules: ScoringRules) -> dict[str, Run]:
    """Runs by name, as the rules of their collection have them."""
    from weir.files.frames import run_from
    from weir.measures.evaluate import names_of_runs

    runs = all_rankings(runs)
    paths = [Path(one) for one in runs if isinstance(one, (str, Path))]
    names = names_of_runs(paths) if len(paths) == len(runs) else [f"run {n}" for n in range(1, len(runs) + 1)]
    return {name: rules.ranked(run_from(run)) for name, run in zip(names, runs, strict=True)}


def _strata(strata: object, model: Qrels, collection: str | Path | Dataset | None) -> QueryGroups | None:
    from weir.datasets.load import query_groups

    return None if strata is None else query_groups(strata, model.queries, _dataset(collection))


def _dataset(collection: str | Path | Dataset | None) -> Dataset | None:
    from weir.datasets.load import Dataset, load

    return collection if collection is None or isinstance(collection, Dataset) else load(collection)


def _weights(weights: object) -> QueryWeights | None:
    from weir.core.query_metadata import QueryWeights
    from weir.files.query_files import read_weights

    if weights is None or isinstance(weights, QueryWeights):
        return weights
    if isinstance(weights, Mapping):
        return QueryWeights.of(weights)
    return read_weights(Path(str(weights)))
