"""Audit collections and results, and make smaller collections and query sets."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, overload

from weir.api.result_set import ResultSet
from weir.argument_types import checked
from weir.audit import audited_all, subsets
from weir.audit.check import AUDITS
from weir.audit.duplicates import copies, expanded
from weir.audit.subsets import (
    SUBSET_PROOFS,
    SYSTEMS_COMPARED,
    chosen,
    compared,
    proof,
    refuse_existing,
    write_subset,
)
from weir.datasets.card import normalised, title_and_text
from weir.datasets.load import Dataset, load
from weir.errors import BadValue
from weir.experiment import alignment
from weir.experiment.alignment import ALIGNMENTS
from weir.files.paths import path_of
from weir.files.write import write_qrels
from weir.measures.measure import parse_measure

if TYPE_CHECKING:
    from weir.audit import Audit
    from weir.audit.subsets import SubsetProof
    from weir.core.subject import Subject
    from weir.experiment.alignment import Alignment


Places: TypeAlias = "str | Path | Sequence[str | Path] | Mapping[str, str | Path] | None"
"""A collection or several, by name or path, or {recorded name: present place} for a results folder."""


@overload
def places_of(collection: Places) -> tuple[str | Path, ...]: ...
@overload
def places_of(collection: Places | Dataset) -> tuple[str | Path | Dataset, ...]: ...
def places_of(collection: Places | Dataset) -> tuple[str | Path | Dataset, ...]:
    """Return collections (names, paths, Datasets) as a tuple: {name: path} as texts "NAME=PATH", None as ()."""
    if isinstance(collection, Mapping):
        return tuple(f"{name}={place}" for name, place in collection.items())
    if collection is None:
        return ()
    return (collection,) if isinstance(collection, (str, Path, Dataset)) else tuple(collection)


def place_of(collection: Places | Dataset) -> str | Path | Dataset | None:
    """Return the only collection given, None without any; raises BadValue for several."""
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
    """Return the benchmark collections most like this one, and systems' scores averaged over them, weighted by
    likeness.

    dataset: a collection by name or path.
    others: collections whose texts are read; by default all of the catalogue with published lengths and many scores.
    task: the collection's task, as weir list datasets names tasks.
    measure: a measure such as nDCG@10.
    results: a results folder whose systems are ranked among the published ones.

    Raises BadValue for an unknown task, fewer than three collections or no scores.
    """
    return ResultSet(ALIGNMENTS, (alignment.align(dataset, others, task, measure, results),))


@checked
def audits(
    *targets: str | os.PathLike[str] | Dataset,
    only: Iterable[str] = (),
    collection: Places = None,
    training: Iterable[str | Path] = (),
    encoder: str | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> ResultSet[Audit]:
    """Return an audit of each collection with its judgments and runs: findings of checks, most severe first.

    targets: collections (names, paths, Datasets), a results folder, or judgments and run files.
    only: only these checks, by default all that can run.
    collection: documents, queries and rules of run files, by name or path; of a results folder where its collections
        lie now, by name.
    training: collections that systems may have been trained on.
    encoder: a model, as dense takes it, to find queries of the same meaning and documents that it would cut.
    progress: receives (stage, checks done, checks in all).

    Several collections also get an audit that compares them. Raises UnknownName for an unknown check, BadValue if
    none can run.
    """
    from weir.experiment.audit_subjects import subjects_of, titled

    subjects = [titled(one) for one in subjects_of(targets, places_of(collection), tuple(training), encoder)]
    return ResultSet(AUDITS, tuple(audited_all(subjects, tuple(only), progress)))


def expand_judgments(*targets: str | Path, out: str | Path, collection: Places = None) -> tuple[int, int]:
    """Write judgments to the file `out`, with copies of judged documents graded alike; return (number added, number
    before).

    targets: one collection, or judgments of `collection`. Raises BadValue for several collections.
    """
    subject = _one_subject(targets, collection)
    corpus, qrels = subject.need_corpus(), subject.all_qrels or subject.need_qrels()
    wider, added = expanded(qrels, corpus, copies(title_and_text(corpus), normalised))
    write_qrels(wider, path_of(out))
    return added, len(qrels.grade)


def regression_queries(*targets: str | Path, out: str | Path, collection: Places = None) -> int:
    """Write at most 30 judged queries that represent all to `out`, a file of groups; return their number.

    targets: a results folder, or judgments and runs of `collection`. Raises BadValue for several collections, and
        without runs.
    """
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
def subset(
    dataset: str | Path | Dataset,
    docs: int,
    out: str | Path,
    systems: Iterable[str] = (),
    seed: int = 1,
    measure: str = "nDCG@10",
    progress: Callable[[str], None] | None = None,
) -> ResultSet[SubsetProof]:
    """Write a small collection into a folder; return how well it ranks systems as the whole collection does.

    dataset: a collection by name, path or itself.
    docs: documents of the small collection.
    out: the folder to write.
    systems: systems that both collections must rank alike, by default seven lexical ones.
    seed: seed of the random draw.
    measure: the measure that ranks the systems, such as nDCG@10.
    progress: receives a sentence on each step.

    Raises BadValue for an unsuitable size, fewer than three systems and an existing folder.
    """
    whole = dataset if isinstance(dataset, Dataset) else load(dataset)
    named, ordered_by, folder = (
        compared(tuple(systems) or SYSTEMS_COMPARED),
        parse_measure(measure),
        path_of(out),
    )
    refuse_existing(folder)
    part = write_subset(whole, chosen(whole, docs, seed), folder)
    return ResultSet(
        SUBSET_PROOFS,
        (proof(whole, part, named, ordered_by, progress or (lambda sentence: None)),),
    )
