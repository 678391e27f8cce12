"""Audits in Python: findings, what to judge next, and every system before and after new judgments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, overload

from weir.api.result_set import ResultSet
from weir.argument_types import checked
from weir.datasets.load import Dataset
from weir.errors import BadValue
from weir.files.paths import path_of

if TYPE_CHECKING:
    from weir.audit import Audit
    from weir.audit.subsets import SubsetProof
    from weir.core.qrels import Qrels
    from weir.core.subject import Subject
    from weir.experiment.alignment import Alignment
    from weir.labels.pools import JudgingPool, Relabelled


Places: TypeAlias = "str | Path | Sequence[str | Path] | Mapping[str, str | Path] | None"
"""A collection by name or path, several, or where each of a results folder lies now, by its name there."""


@overload
def places_of(collection: Places) -> tuple[str | Path, ...]: ...
@overload
def places_of(collection: Places | Dataset) -> tuple[str | Path | Dataset, ...]: ...
def places_of(collection: Places | Dataset) -> tuple[str | Path | Dataset, ...]:
    """Collections as --collection takes them: names or paths, or NAME=PATH."""
    if isinstance(collection, Mapping):
        return tuple(f"{name}={place}" for name, place in collection.items())
    if collection is None:
        return ()
    return (collection,) if isinstance(collection, (str, Path, Dataset)) else tuple(collection)


def place_of(collection: Places | Dataset) -> str | Path | Dataset | None:
    """The collection that run files are about; raises BadValue for several."""
    several = places_of(collection)
    if len(several) > 1:
        raise BadValue(f"found {len(several)} collections; run files are about one")
    return several[0] if several else None


@checked
def align(
    dataset: str | Path,
    *others: str | Path,
    task: str | None = None,
    measure: str = "nDCG@10",
    results: str | Path | None = None,
) -> ResultSet[Alignment]:
    """Which benchmark collections look like this one, and scores averaged by that: `weir data align`.

    dataset: a collection by name or path; others: collections whose texts are read, none: those of the catalogue with
    published lengths and many scores; task: of the collection, as the catalogue words it; results: a folder whose
    systems are set beside.
    Raises BadValue for an unknown task, too few collections or no scores, and the WeirErrors of reading.
    """
    from weir.experiment.alignment import align as alignment

    return ResultSet("align", (alignment(dataset, others, task, measure, results),))


@checked
def audits(
    *targets: str | Path,
    only: Iterable[str] = (),
    collection: Places = None,
    training: Iterable[str | Path] = (),
    encoder: str | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> ResultSet[Audit]:
    """What is wrong with collections, judgments and runs, and what that does to scores: `weir audit`, the worst first.

    targets: collections by name or path, a results folder, or judgments and run files; only: checks by name, by
    default all that can run; collection: what run files are about, or where those
    of a results folder lie now, {name: path}; training: collections that systems may have been
    trained on; encoder: a model, as `weir.Dense` takes it, that tells what queries mean; progress: is called with what
    is being done, the checks done, and all of them. Raises UnknownName for another check, BadValue where none can run,
    and the WeirErrors of reading.
    """
    from weir.audit import audited_all
    from weir.experiment.audit_subjects import subjects_of

    subjects = subjects_of(targets, places_of(collection), tuple(training), encoder)
    return ResultSet("audit", tuple(audited_all(subjects, tuple(only), progress)))


@checked
def judging_pool(
    *targets: str | Path,
    out: str | Path | None = None,
    k: int = 10,
    limit: int | None = None,
    collection: Places = None,
) -> ResultSet[JudgingPool]:
    """What to judge next, a pool for each collection: `weir labels pool`.

    out: the folder of the sheets, None to write none; k: ranks of each system that are looked at; limit: pairs at most.
    Raises BadValue where nothing is unjudged or the folder is there, and the WeirErrors of reading.
    """
    from weir.core.scores import Note
    from weir.experiment.audit_subjects import subjects_of
    from weir.labels.pools import pool_notes, pools_of

    subjects = subjects_of(targets, places_of(collection))
    pools = pools_of(subjects, None if out is None else path_of(out), k, limit)
    return ResultSet("pool", tuple(pools), tuple(map(Note, pool_notes(subjects))))


def expand_judgments(*targets: str | Path, out: str | Path, collection: Places = None) -> tuple[int, int]:
    """Write the judgments of one collection with those that copies of a judged document share: `weir audit --expand`.

    Returns (judgments added, judgments before). Raises BadValue for several collections, and the WeirErrors of reading.
    """
    from weir.audit.duplicates import copies, expanded
    from weir.datasets.card import normalised, title_and_text
    from weir.files.write import write_qrels

    subject = _one_subject(targets, collection)
    corpus, qrels = subject.need_corpus(), subject.need_qrels()
    wider, added = expanded(qrels, corpus, copies(title_and_text(corpus), normalised))
    write_qrels(wider, path_of(out))
    return added, len(qrels.grade)


def regression_queries(*targets: str | Path, out: str | Path, collection: Places = None) -> int:
    """Write some queries that stand for all as a file of groups for `by`, and return how many.

    targets: as `audits` takes them, one collection with runs. Raises BadValue for several collections, and the
    WeirErrors of reading.
    """
    from weir.audit import subsets

    queries = subsets.regression_queries(_one_subject(targets, collection))
    subsets.write_regression_queries(queries, path_of(out))
    return len(queries)


def _one_subject(targets: Sequence[str | Path], collection: Places) -> Subject:
    from weir.experiment.audit_subjects import subjects_of

    subjects = subjects_of(targets, places_of(collection))
    if len(subjects) != 1:
        raise BadValue(f"files are written of one collection; found {len(subjects)}")
    return subjects[0]


@checked
def relabel(
    judged: str | Path | Qrels,
    *targets: str | Path,
    measure: str = "nDCG@10",
    origin: str = "new",
    collection: Places = None,
    out: str | Path | None = None,
) -> ResultSet[Relabelled]:
    """Every system before and after new judgments: `weir labels relabel`.

    judged: a sheet of `judging_pool` with grades filled in, or judgments; where both judge a pair, the new one
    counts. A sheet is of the collection that the file beside it names. origin: what they are called; out: a file for
    the judgments together, with their origins. Raises BadValue where no query is known and for `out` beside several
    collections, and the WeirErrors of reading.
    """
    from weir.core.dangling import dangling_notes
    from weir.core.qrels import Qrels
    from weir.core.rounding import counted
    from weir.core.scores import Note
    from weir.experiment.audit_subjects import subjects_of
    from weir.files.write import write_qrels
    from weir.labels.pools import about_sheet, judged_anew, labels_of_new_queries, relabelled
    from weir.measures.measure import parse_measure

    new, ungraded = _new_judgments(judged)
    subjects = subjects_of(targets, places_of(collection))
    name = None if isinstance(judged, Qrels) else about_sheet(path_of(judged)).get("subject")
    subjects = judged_anew([one for one in subjects if one.name == name] or subjects, new)
    if out is not None and len(subjects) != 1:
        raise BadValue(f"judgments are written of one collection; found {len(subjects)}")
    rows: list[Relabelled] = []
    notes: list[Note] = []
    if ungraded:
        notes.append(Note(f"{judged}: {counted(ungraded, 'line')} without a grade yet: unjudged"))
    for subject in subjects:
        changes, together = relabelled(subject, new, parse_measure(measure), origin)
        rows += changes
        if subject.corpus is not None:
            notes += dangling_notes(new, subject.corpus.ids, f"{subject.name}, judged anew")
        uncounted = labels_of_new_queries(together, subject.need_qrels())
        if uncounted:
            where = "in no mean here" if out is None else f"in {out}, and in no mean here"
            labels = counted(uncounted, "label")
            notes.append(Note(f"{subject.name}: {labels} of queries that had no judgment before: {where}"))
        if out is not None:
            write_qrels(together, path_of(out))
    return ResultSet("relabel", tuple(rows), tuple(notes))


def _new_judgments(judged: str | Path | Qrels) -> tuple[Qrels, int]:
    """(new judgments, how many lines of their sheet have none yet), of what names a collection its judgments."""
    from weir.datasets.scoring_rules import judged_by
    from weir.files.frames import qrels_from
    from weir.labels.pools import read_sheet

    given = judged_by(judged)[0]
    return read_sheet(given) if isinstance(given, Path) else (qrels_from(given), 0)


@checked
def subset(
    dataset: str | Path,
    docs: int,
    out: str | Path,
    systems: Iterable[str] = (),
    seed: int = 1,
    measure: str = "nDCG@10",
    progress: Callable[[str], None] | None = None,
) -> ResultSet[SubsetProof]:
    """A mini collection in the folder `out`, and how far it ranks systems as the whole does: `weir data subset`.

    docs: how many documents; systems: those to prove it by, by default seven lexical ones; seed: of what is drawn;
    measure: what systems are ordered by; progress: is called with a sentence on what is being done.
    Raises BadValue for a size that does not suit, fewer than three systems, or a folder that is there, and the
    WeirErrors of reading.
    """
    from weir.audit.subsets import SYSTEMS_COMPARED, chosen, proof, write_subset
    from weir.datasets.load import load
    from weir.measures.measure import parse_measure
    from weir.systems.expression import parse_system

    whole = load(dataset)
    compared_systems = [parse_system(one) for one in tuple(systems) or SYSTEMS_COMPARED]
    ordered_by = parse_measure(measure)
    part = write_subset(whole, chosen(whole, docs, seed), path_of(out))
    return ResultSet(
        "subset", (proof(whole, part, compared_systems, ordered_by, progress or (lambda sentence: None)),)
    )
