"""`weir.migrate`: an old and a new system compared without judgments."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from weir.api.given import two_rankings
from weir.api.result_set import ResultSet
from weir.argument_types import checked
from weir.core.qrels import Qrels, merge_qrels
from weir.core.rounding import part_of
from weir.core.run import Run
from weir.core.scores import Note
from weir.core.strings import Ids
from weir.core.subject import Subject
from weir.datasets.label_texts import labels_given
from weir.datasets.load import Dataset, judged_or_not, load, query_groups, without_documents
from weir.datasets.scoring_rules import ScoringRules
from weir.files.frames import run_from
from weir.files.label_files import labels_from
from weir.files.paths import path_of
from weir.measures.evaluate import distinct_names
from weir.plugins.labels.pools import JudgingPool, write_pool
from weir.plugins.questions.migration import (
    MIGRATIONS,
    Migration,
    MigrationRules,
    contested_pairs,
    migration_of,
)
from weir.registry import check_whole
from weir.stats.score_rows import depth_notes


@checked
def migrate(
    old: object,
    new: object,
    rules: MigrationRules | None = None,
    labelled: Sequence[object] = (),
    thresholds: Sequence[float] = (),
    labels: int = 50,
    out: str | os.PathLike[str] | None = None,
    by: object = None,
    collection: str | Path | Dataset | None = None,
) -> ResultSet[Migration]:
    """Return the changes from an old to a new system, without judgments, and a verdict by few labels (`weir
    study migrate`).

    old, new: rankings, as `weir.evaluate` takes a run.
    rules: weir.MigrationRules.
    labelled: labels so far, as filled sheets, journals of `weir open` or judgments. Of a pair the first label
        counts.
    thresholds: scores of the old system, to be mapped to scores of the new one.
    labels: number of documents on the sheet, at most.
    out: a folder for a sheet of the documents to label next, by default none; not written once it is decided.
    by: groups of queries, as `Scores.by` takes them, by default by length.
    collection: the rankings' collection, by name or path. Its rules hold, and its texts are shown.

    The result has one Migration. Raises BadValue for rankings without a common query, or if `out` exists.
    """
    rules = rules or MigrationRules()
    check_whole("labels", labels)
    dataset = (
        without_documents(judged_or_not(load(collection)))
        if isinstance(collection, (str, Path))
        else collection
    )
    scoring, known = ScoringRules.of(dataset), _labels_of(labelled)
    runs = [scoring.ranked(run_from(one)) for one in two_rankings(old, new, dataset)]
    given = [
        str(one) if isinstance(one, (str, os.PathLike)) else name
        for one, name in ((old, "old"), (new, "new"))
    ]
    names = distinct_names([run.name for run in runs], given)
    before, after = (replace(run, name=name) for run, name in zip(runs, names, strict=True))
    queries = None if dataset is None else dataset.queries
    asked = Ids.of(dict.fromkeys([*before.queries.tolist(), *after.queries.tolist()]))
    groups = None if by is None else query_groups(by, asked, dataset)
    found = migration_of(before, after, rules, known, queries, groups, thresholds)
    found = replace(found, dataset="" if dataset is None else dataset.name)
    depths = {run.name: int(np.diff(run.ptr).max()) for run in (before, after)}
    notes = [
        *scoring.notes,
        *_answered_by_one(before, after),
        *depth_notes(depths, {rules.measure: tuple(depths)}),
    ]
    if (before.docs.codes(after.docs.strings) < 0).all():
        notes.append(
            Note(
                f"{before.name} and {after.name} share no document: are their identifiers of one collection?"
            )
        )
    notes += [] if groups is None else map(Note, groups.lacking(asked))
    if out is not None and found.labels.verdict != "undecided":
        notes.append(Note(f"nothing is left to label: {out} is not written"))
    elif out is not None:
        pool = _next_pairs(before, after, rules, known, labels)
        corpus = None if dataset is None or dataset.undocumented else dataset.corpus
        name = found.dataset or "rankings"
        subject = Subject(name, corpus, queries, runs={run.name: run for run in (before, after)})
        write_pool(pool, subject, path_of(out))
    used = found.labels.labels + found.labels.ahead
    if known is not None and len(known.doc) > used:
        unasked = (before.queries.codes(known.queries.strings) < 0) & (
            after.queries.codes(known.queries.strings) < 0
        )
        strange = int(unasked[known.query_of_row()].sum())
        if strange:
            of_others = part_of(strange, len(known.doc), "labels", "is", "are")
            notes.append(Note(f"{of_others} of queries that neither ranking answers"))
        if (idle := len(known.doc) - used - strange) > 0:
            same = part_of(idle, len(known.doc), "labels", "is", "are")
            said = f"{same} of documents that weigh the same in both rankings by {found.measure}: not needed"
            notes.append(Note(said))
    return ResultSet(MIGRATIONS, (found,), tuple(notes))


def _answered_by_one(old: Run, new: Run) -> Iterator[Note]:
    answering = [run.queries.take(np.flatnonzero(np.diff(run.ptr))) for run in (old, new)]
    every = len(answering[0]) + int((answering[0].codes(answering[1].strings) < 0).sum())
    for run, queries in zip((old, new), answering, strict=True):
        if len(queries) < every:
            answers = part_of(len(queries), every, "queries", "is", "are")
            yield Note(
                f"{run.name}: {answers} answered, and all documents of the others count as gone or new"
            )


def _next_pairs(old: Run, new: Run, rules: MigrationRules, known: Qrels | None, most: int) -> JudgingPool:
    pairs = contested_pairs(old, new, rules)
    unjudged = (
        np.arange(len(pairs)) if known is None else np.flatnonzero(np.isnan(pairs.labels(known, rules.rel)))
    )
    rows = unjudged[:most]
    weight = np.abs(pairs.gain[rows])
    return JudgingPool(pairs.queries, pairs.docs, pairs.query[rows], pairs.doc[rows], weight, rules.k, 2)


def _labels_of(sources: Sequence[object]) -> Qrels | None:
    """Return the labels of all sources, the first source's for a repeated (query, document); None without
    sources."""
    merged: Qrels | None = None
    for source in sources:
        labels = labels_from(labels_given(source))
        merged = labels if merged is None else merge_qrels(merged, labels)
    return merged
