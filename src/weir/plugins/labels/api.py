"""`weir.labels`: agreement, unjudged documents, estimates from few labels, documents to judge."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from weir.api.auditing import Places, places_of
from weir.api.given import all_rankings, run_from_given
from weir.api.result_set import ResultSet
from weir.argument_types import checked
from weir.core.dangling import dangling, dangling_notes
from weir.core.judged import Judged
from weir.core.qrels import MODEL, Qrels, merge_qrels
from weir.core.query_metadata import QueryWeights
from weir.core.roles import judged_run
from weir.core.rounding import counted, part_of
from weir.core.scores import Note
from weir.core.strings import Ids
from weir.core.subject import Subject
from weir.datasets.label_texts import labels_given, text_notes
from weir.datasets.load import Dataset, load, query_groups
from weir.datasets.scoring_rules import ScoringRules, judged_by
from weir.errors import BadValue
from weir.experiment.audit_subjects import subjects_of
from weir.files.frames import qrels_from, run_from
from weir.files.journal_labels import is_journal, read_judges, read_preferences
from weir.files.label_files import labels_from, parse_words, rater_name, read_labels, read_raters
from weir.files.paths import path_of
from weir.files.query_files import read_weights
from weir.files.write import write_qrels
from weir.measures.evaluate import distinct_names, names_of_runs, scores_of
from weir.measures.measure import parse_measure
from weir.models.families import families_of
from weir.plugins.labels.estimates import (
    ESTIMATES,
    QUERY_PLANS,
    estimated_scores,
    unanswered_notes,
    write_plan,
)
from weir.plugins.labels.estimates import next_queries as drawn_queries
from weir.plugins.labels.hole_study import HOLE_STUDIES, hole_study
from weir.plugins.labels.people import PEOPLE, people_of
from weir.plugins.labels.pools import (
    POOLS,
    RELABELLINGS,
    about_sheet,
    judged_anew,
    labels_of_new_queries,
    pool_notes,
    pools_of,
    read_sheet,
    relabelled,
    textless_sheets,
)
from weir.plugins.labels.sampling import SampleDesign
from weir.stats.label_agreement import (
    AGREEMENTS,
    AGREEMENTS_BY_QUERY,
    RATERS,
    Agreement,
    ManyRaters,
    agreement,
    many_raters,
)
from weir.stats.order_agreement import ORDERS, order_agreement
from weir.stats.preferences import Preference
from weir.stats.score_rows import deeper_notes, ranked_notes

if TYPE_CHECKING:
    from weir.core.query_metadata import QueryGroups
    from weir.core.run import Run
    from weir.measures.measure import Measure
    from weir.plugins.labels.estimates import CorrectedScore, QueryPlan
    from weir.plugins.labels.hole_study import HoleStudy
    from weir.plugins.labels.people import People
    from weir.plugins.labels.pools import JudgingPool, Relabelled
    from weir.stats.order_agreement import OrderAgreement


@checked
def agree(
    first: object, *others: object, words: Sequence[str] = (), by_query: bool = False
) -> ResultSet[Agreement]:
    """Return Cohen's kappa and other agreement of each of `others` with the first labels (`weir labels agree`).

    first, others: judgments as `weir.evaluate` takes them, folders of `weir judge`, or tables such as "labels.csv",
        with "labels.csv#gpt" for one of several columns. A single file is split by rater.
    words: grades of labels that are no numbers, such as "partly relevant=1".
    by_query: show a line for each query too, the worst kappa first.

    Raises BadValue for a single rater or no common pair.
    """
    (name, labels), *rest = _labels_by_name((first, *others), words).items()
    if not rest:
        raise BadValue(f"{name} has the labels of one rater alone; name other labels of the same pairs")
    pairs = tuple(agreement(labels, other, (name, beside)) for beside, other in rest)
    kind = AGREEMENTS_BY_QUERY if by_query else AGREEMENTS
    lack, notes = f"that {name} did not label", text_notes(first, *others)
    for beside, other in rest:
        notes += _stranger_notes(beside, other, [labels.docs], lack, most=1)  # more pairs of one are usual
    return ResultSet(kind, pairs, tuple(notes))


@checked
def rater_agreement(first: object, *others: object, words: Sequence[str] = ()) -> ResultSet[ManyRaters]:
    """Return Krippendorff's alpha over all raters together, who need not have judged all pairs.

    first, others, words: see `agree`.

    Raises BadValue for one rater and if no pair has two labels.
    """
    return ResultSet(RATERS, (many_raters(_labels_by_name((first, *others), words)),))


@checked
def rank_agreement(
    first: object,
    *others: object,
    runs: Mapping[str, object] | Sequence[object],
    measure: Measure | str = "nDCG@10",
    words: Sequence[str] = (),
) -> ResultSet[OrderAgreement]:
    """Return Kendall's tau between the orders of systems by the first labels and by each of `others`.

    first, others, words: see `agree`.
    runs: rankings, to see whether the order of systems survives. In Python also by name.
    measure: the measure that orders the systems.

    Raises BadValue for fewer than two systems or common queries.
    """
    systems = _systems(runs)
    (name, labels), *rest = _labels_by_name((first, *others), words).items()
    parsed = parse_measure(str(measure))
    agreements = [
        replace(order_agreement(systems, labels, other, parsed, (name, beside)), alike=_alike(systems, other))
        for beside, other in rest
    ]
    return ResultSet(ORDERS, tuple(agreements), tuple(ranked_notes(_joined(systems, labels), (parsed,))))


@checked
def people(
    labels: object,
    *others: object,
    measure: Measure | str = "nDCG@10",
    words: Sequence[str] = (),
) -> ResultSet[People]:
    """Return how far the people who judged agree with each other and with their own second grades (`weir labels
    people`).

    labels, others: a journal of `weir open --judge`, or labels as `agree` takes them.
    measure: the measure for the human ceiling, which scores one person's order by another's labels.
    words: grades of labels that are no numbers, such as "partly relevant=1".

    Raises BadValue for a measure without a mean over the orders of tied documents.
    """
    by_name = _labels_by_name((labels, *others), words)
    again: dict[str, Qrels] = {}
    preferences: list[Preference] = []
    for one in (labels, *others):
        path = path_of(one) if isinstance(one, (str, os.PathLike)) else None
        if path is not None and is_journal(path):
            again |= read_judges(path, "again")
            preferences += [Preference(*row) for row in read_preferences(path)]
    found = people_of(by_name, again, preferences, parse_measure(str(measure)))
    return ResultSet(PEOPLE, (found,))


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
    """Return how many unjudged documents of runs (holes) are relevant by new labels (`weir labels holes`).

    qrels, runs: judgments and rankings, as `weir.evaluate` takes them.
    human: people's labels of unjudged documents: a sheet of weir labels pool, filled in, judgments or a table of
        labels. May be left out.
    model: a model's labels of unjudged documents: a folder of weir judge, judgments or a table of labels. May be left
        out.
    measure: the measure that orders systems. Unjudged documents count down to its cut-off.
    rel: lowest relevant grade.
    collection: the runs' collection, by name or path. Its rules hold (self-matches, candidates, queries without an
        answer).

    Raises BadValue if nothing is unjudged or labelled, people and model labelled no document in common, or the
    measure has no score bounds.
    """
    people, by_model = (
        None if labels is None else labels_from(labels_given(labels)) for labels in (human, model)
    )
    qrels, collection = judged_by(qrels, collection)
    scoring = ScoringRules.of(collection)
    systems = {name: scoring.ranked(run) for name, run in _systems(runs, collection).items()}
    every = qrels_from(qrels)
    judgments = scoring.counted(every)
    parsed = parse_measure(str(measure))
    study = hole_study(systems, judgments, people, by_model, parsed, rel)
    told = ranked_notes(_joined(systems, judgments), (parsed,))
    texts = text_notes(scoring.dataset, human, model)
    notes = [*scoring.notes, *scoring.dangling_notes(every, people, by_model), *texts, *told]
    for labels in (one for one in (people, by_model) if one is not None):
        strange = int((judgments.queries.codes(labels.queries.strings) < 0)[labels.query_of_row()].sum())
        if strange:
            of_others = part_of(strange, len(labels.doc), "labels", "is", "are")
            notes.append(Note(f"{of_others} of queries without judgments here, and left out"))
    alone = "a model alone labelled the unjudged documents: see how far it agrees with people by weir judge --judged"
    return ResultSet(HOLE_STUDIES, (study,), (*notes, *[Note(alone)] * (human is None)))


def _stranger_notes(
    name: str, labels: Qrels, known: Iterable[Ids], lack: str, most: float = 0.5
) -> list[Note]:
    """Return [a note] if more than a share `most` of the labels is of documents not in `known`, or the cause is known
    (such as lost zeros); else []."""
    found = dangling(labels, Ids.of(dict.fromkeys(chain.from_iterable(docs.tolist() for docs in known))))
    told = found is not None and (found.cause or found.judgments > most * len(labels.doc))
    return [found.note(name, lack)] if found is not None and told else []


def _systems(
    runs: Mapping[str, object] | Sequence[object], collection: str | Path | Dataset | None = None
) -> dict[str, Run]:
    if isinstance(runs, Mapping):
        return {str(name): run_from_given(run, collection) for name, run in runs.items()}
    runs = all_rankings(runs, collection)
    rankings = [run_from(run) for run in runs]
    long = [
        str(run) if isinstance(run, (str, os.PathLike)) else f"system {n}" for n, run in enumerate(runs, 1)
    ]
    return dict(zip(distinct_names([run.name for run in rankings], long), rankings, strict=True))


def _joined(systems: Mapping[str, Run], qrels: Qrels) -> dict[str, Judged]:
    return {name: judged_run(run, qrels) for name, run in systems.items()}


def _alike(systems: Iterable[str], labels: Qrels) -> tuple[tuple[str, str], ...]:
    models = [] if labels.origin is None else [name for name in labels.origin.names if name.startswith(MODEL)]
    # model:prompt, or the model alone
    model_names = [name.removeprefix(MODEL) for name in models]
    judges = frozenset[str]().union(*(families_of(name.rpartition(":")[0] or name) for name in model_names))
    return tuple((name, family) for name in systems for family in sorted(families_of(name) & judges))


def _labels_by_name(sources: Sequence[object], words: Sequence[str] = ()) -> dict[str, Qrels]:
    meaning = parse_words(words)
    given = [labels_given(one) for one in sources]
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
    """Return scores of runs, estimated from few labels of people and many of a model (`weir labels estimate`).

    human, model: judgments as in `weir.evaluate`, or labels as in `agree`.
    runs: see `weir.evaluate`.
    measure: P@k, Success@k, RR@k, DCG@k, SDCG@k, ERR@k, RBP@k or ContextPrecision@k.
    strata: groups within which people's queries were drawn: a file of queries and strata, or a column of the
        collection.
    weights: a file of queries and weights (1 / the probability of being drawn). In Python also a dict.
    pairs: people judged a random part of each query's first documents.
    sheets: filled sheets of documents to judge, added to people's judgments.
    collection: the runs' collection, by name or path. Its rules hold, its columns may be strata, and a sheet shows
        its texts.

    Raises BadValue for another measure and for too few queries.
    """
    human, collection = judged_by(human, collection)
    by_people, by_model = _people(human, sheets), _labels(model)
    design = SampleDesign(_strata(strata, by_model, collection), _weights(weights), pairs)
    rules = ScoringRules.of(collection)
    rankings = _rankings_by_name(runs, rules)
    parsed = parse_measure(str(measure))
    estimates = estimated_scores(rankings, by_people, by_model, parsed, design)
    notes = unanswered_notes(rankings, by_people, by_model, design)
    scores = {name: scores_of(joined, (parsed,)) for name, joined in _joined(rankings, by_model).items()}
    notes += deeper_notes(scores)
    notes += text_notes(rules.dataset, human, model)
    lack, docs = "that no ranking has", [run.docs for run in rankings.values()]
    notes += _stranger_notes("people's labels", by_people, [*docs, by_model.docs], f"{lack}, nor the model's")
    notes += _stranger_notes("the model's labels", by_model, [*docs, by_people.docs], f"{lack}, nor people's")
    return ResultSet(
        ESTIMATES, tuple(estimates), (*rules.notes, *rules.dangling_notes(by_people, by_model), *notes)
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
    """Return the queries, drawn at random, that people should judge next (`weir labels estimate --next`).

    human, model, runs, measure, sheets, collection: see `estimate`.
    strata: see `estimate`, by default up to four by the model's scores.
    count: number of queries to draw for people to judge next.
    width: wanted half width of the intervals, from which the number of queries follows.
    out: the folder of the sheet; by default none is written.

    Raises BadValue as `estimate` does, without `count` or `width`, if nothing is left to judge, and for a folder that
    exists.
    """
    human, collection = judged_by(human, collection)
    labels, rules = (_people(human, sheets), _labels(model)), ScoringRules.of(collection)
    groups = _strata(strata, labels[1], collection)
    plan, pool, groups, weights = drawn_queries(
        _rankings_by_name(runs, rules),
        labels,
        parse_measure(str(measure)),
        count,
        width,
        groups,
    )
    notes = rules.dangling_notes(*labels)
    if out is not None:
        dataset = _dataset(collection)
        corpus = None if dataset is None or dataset.layout.documents is None else dataset.corpus
        queries = None if dataset is None or dataset.layout.queries is None else dataset.all_queries
        subject = Subject("estimate", corpus, queries)
        write_plan(pool, groups, weights, subject, path_of(out))
        notes += [Note(note) for note in textless_sheets([subject])]
    return ResultSet(QUERY_PLANS, (plan,), tuple(notes))


def _labels(value: object) -> Qrels:
    return labels_from(labels_given(value))


def _people(human: object, sheets: Iterable[str | Path]) -> Qrels:
    labels = _labels(human)
    for sheet in sheets:
        labels = merge_qrels(read_sheet(path_of(sheet))[0], labels)
    return labels


def _rankings_by_name(runs: Sequence[object], rules: ScoringRules) -> dict[str, Run]:
    runs = all_rankings(runs, rules.dataset)
    paths = [Path(one) for one in runs if isinstance(one, (str, Path))]
    names = names_of_runs(paths) if len(paths) == len(runs) else [f"run {n}" for n in range(1, len(runs) + 1)]
    return {name: rules.ranked(run_from(run)) for name, run in zip(names, runs, strict=True)}


def _strata(strata: object, model: Qrels, collection: str | Path | Dataset | None) -> QueryGroups | None:
    return None if strata is None else query_groups(strata, model.queries, _dataset(collection))


def _dataset(collection: str | Path | Dataset | None) -> Dataset | None:
    return collection if collection is None or isinstance(collection, Dataset) else load(collection)


def _weights(weights: object) -> QueryWeights | None:
    if weights is None or isinstance(weights, QueryWeights):
        return weights
    if isinstance(weights, Mapping):
        return QueryWeights.of(weights)
    return read_weights(Path(str(weights)))


@checked
def judging_pool(
    *targets: str | Path,
    out: str | Path | None = None,
    k: int = 10,
    limit: int | None = None,
    collection: Places = None,
    by_lot: bool = False,
) -> ResultSet[JudgingPool]:
    """Return the documents to judge next, a pool for each collection (`weir labels pool`).

    targets: a results folder, or judgments and run files.
    out: the folder to write, by default none is written.
    k: ranks of each system that are considered.
    limit: number of pairs of a collection at most, chosen to narrow scores most.
    collection: documents, queries and rules of run files, by name or path. For a results folder the paths of
        collections that moved, by name.
    by_lot: order queries at random instead of by how much they narrow scores, so that weir open and weir judge can
        tell early which system is best.

    Raises BadValue if nothing is unjudged, without rankings, and if the folder exists.
    """
    subjects = subjects_of(targets, places_of(collection))
    origin = {"targets": _lasting(targets), "collections": _lasting(places_of(collection))}
    pools = pools_of(subjects, None if out is None else path_of(out), k, limit, origin, by_lot)
    return ResultSet(POOLS, tuple(pools), tuple(map(Note, pool_notes(subjects))))


def _lasting(given: Iterable[str | Path]) -> list[str]:
    return [str(path_of(one).absolute()) if path_of(one).exists() else str(one) for one in given]


def _scale_notes(name: str, new: Qrels, before: Qrels) -> list[Note]:
    now, then = (sorted(g for g in qrels.grade_counts() if g > 0) for qrels in (new, before))
    if not now or not then or (now[-1] <= then[-1] and (now != [1] or then == [1])):
        return []
    grades = (", ".join(f"{grade:g}" for grade in of) for of in (now, then))
    said = "{}: grades above 0 are {} in the new judgments, {} in the earlier ones, and count together as they stand"
    return [Note(said.format(name, *grades))]


@checked
def relabel(
    judged: str | Path | Qrels,
    *targets: str | Path,
    measure: str = "nDCG@10",
    origin: str = "new",
    collection: Places = None,
    out: str | Path | None = None,
) -> ResultSet[Relabelled]:
    """Return each system's score before and after new judgments, which replace old ones (`weir labels relabel`).

    judged: a filled sheet of `judging_pool`, which applies to its own collection only, or judgments.
    targets: a results folder, or judgments and run files.
    measure: a measure such as nDCG@10.
    origin: the name of the new judgments.
    collection: documents, queries and rules of run files, by name or path. For a results folder the paths of
        collections that moved, by name.
    out: file for old and new judgments together, with their origins.

    Raises BadValue if no query is known, and for `out` with several collections.
    """
    given = judged_by(judged)[0]
    new, ungraded = read_sheet(given) if isinstance(given, Path) else (qrels_from(given), 0)
    subjects = subjects_of(targets, places_of(collection))
    about = {} if isinstance(judged, Qrels) else about_sheet(path_of(judged))
    name = about.get("subject")
    subjects = judged_anew([one for one in subjects if one.name == name] or subjects, new)
    if out is not None and len(subjects) != 1:
        raise BadValue(f"judgments are written of one collection; found {len(subjects)}")
    rows: list[Relabelled] = []
    notes: list[Note] = []
    if ungraded:
        notes.append(Note(f"{judged}: {counted(ungraded, 'line')} without a grade yet: unjudged"))
    if (lost := int(about.get("pairs", 0)) - ungraded - len(new.doc)) > 0:
        journal = isinstance(given, Path) and is_journal(given)
        why = "without a grade yet" if journal else "no longer on the sheet"
        notes.append(Note(f"{judged}: {counted(lost, 'pair')} of the pool {why}: unjudged"))
    strange = np.ones(len(new.queries), np.bool_)
    for subject in subjects:
        changes, together = relabelled(subject, new, parse_measure(measure), origin)
        rows += changes
        several = len(subjects) > 1
        before = subject.need_qrels()
        told = ranked_notes(
            _joined(subject.runs, before if len(before) else together), (parse_measure(measure),)
        )
        notes += [note.about(subject.name) for note in told] if several else told
        strange &= together.queries.codes(new.queries.strings) < 0
        notes += [*text_notes(subject, judged), *_scale_notes(subject.name, new, before)]
        if subject.corpus is not None:
            notes += dangling_notes(new, subject.corpus.ids, f"{subject.name}, judged anew")
        else:
            named = [subject.need_qrels().docs, *(run.docs for run in subject.runs.values())]
            shared = subject.need_qrels().queries.codes(new.queries.strings) >= 0
            here = new.only(np.flatnonzero(shared))
            lack = "that no ranking and no earlier judgment has"
            notes += _stranger_notes(f"{subject.name}, judged anew", here, named, lack)
        uncounted = labels_of_new_queries(together, subject.need_qrels())
        if uncounted:
            where = "in no mean here" if out is None else f"in {out}, and in no mean here"
            labels = counted(uncounted, "label")
            notes.append(Note(f"{subject.name}: {labels} of queries that had no judgment before: {where}"))
        if out is not None:
            write_qrels(together, path_of(out))
    if left_out := int(np.count_nonzero(strange[new.query_of_row()])):
        example = new.queries[int(strange.argmax())]
        known = "no ranking and no collection" if len(subjects) > 1 else subjects[0].name
        labels = counted(left_out, "label")
        notes.append(Note(f"{labels} of queries that {known} does not have, such as '{example}': left out"))
    return ResultSet(RELABELLINGS, tuple(rows), tuple(notes))
