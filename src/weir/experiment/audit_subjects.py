"""What `weir audit` is given, as subjects: collections, results folders, or judgments with run files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from weir.audit import Subject
from weir.audit.subject import TextEncoder, TokenLimit, Training
from weir.core.corpus import Queries
from weir.core.run import Run
from weir.datasets import catalogue
from weir.datasets.load import Dataset, load_group
from weir.encode.encoder import Loaded
from weir.errors import BadValue
from weir.experiment.costs import unscored_candidates
from weir.experiment.finished import Finished, dataset_of, finished_cells
from weir.io.runs.read import read_qrels, read_run
from weir.measures.files import names_of_runs
from weir.settings import settings
from weir.systems.dense import encoder_of, query_vectors

__all__ = ["subjects_of"]

OWN_INSTRUCTIONS = "{task}"
"""What `Dataset.instruction` is where queries have their own."""
TRAINING_SPLITS = ("train", "dev", "validation", "valid")


def subjects_of(
    targets: Sequence[str | Path],
    collection: str | Path | None = None,
    training: Sequence[str | Path] = (),
    encoder: str | None = None,
) -> list[Subject]:
    """Subjects from a results folder, from judgments and run files, or from collections by name or path.

    collection: the documents and queries that run files, or a results folder of a collection that is not here, are
    about; training: collections whose judged queries systems may have been trained on; encoder: a model as `dense`
    takes it, which tells what queries mean and where it cuts documents. Raises BadValue for nothing at all, and the
    WeirErrors of reading.
    """
    if not targets:
        raise BadValue("nothing to audit; name a collection, a results folder, or judgments and run files")
    trained = tuple(
        Training(f"{one.name} {one.split}", one.queries, one.qrels)
        for name in training
        for one in load_group(name)
    )
    encode, limit = (None, None) if encoder is None else _asked_of(encoder)
    return [
        replace(one, training=(*one.training, *trained), encoder=encode, limit=limit)
        for one in _subjects(targets, collection)
    ]


def _asked_of(model: str) -> tuple[TextEncoder, TokenLimit | None]:
    """(what encodes queries by a model's name, where it cuts documents); raises as `dense` does.

    How an embedding service or an object of one's own cuts is not known.
    """
    encoder = encoder_of(model)
    loaded = encoder.load(settings().device)
    limit = None
    if isinstance(loaded, Loaded):
        limit = TokenLimit(model, loaded.document.tokenizer.limit, loaded.extents)
    return lambda queries: query_vectors(encoder, loaded, queries), limit


def _subjects(targets: Sequence[str | Path], collection: str | Path | None) -> list[Subject]:
    first = Path(targets[0])
    if len(targets) == 1 and str(targets[0]) not in catalogue.names() and _is_results(first):
        return _of_results(first, collection)
    if (
        (len(targets) > 1 or collection)
        and first.is_file()
        and all(Path(one).is_file() for one in targets[1:])
    ):
        return [_of_files(first, [Path(one) for one in targets[1:]], collection)]
    return [_of_dataset(one, {}) for target in targets for one in load_group(target)]


def _is_results(folder: Path) -> bool:
    return folder.is_dir() and any(folder.glob("*/*/stage.json"))


def _of_results(folder: Path, collection: str | Path | None) -> list[Subject]:
    by_dataset: dict[str, list[Finished]] = {}
    for cell in finished_cells(folder):
        by_dataset.setdefault(cell.dataset, []).append(cell)
    found = []
    for name, cells in by_dataset.items():
        dataset = dataset_of(cells[0], collection)
        if dataset is None:
            raise BadValue(
                f"the collection {name} is not here, or not as it was measured; name it by --collection"
            )
        left = {cell.label: unscored_candidates(cell) for cell in cells}
        runs = {cell.label: read_run(cell.run) for cell in cells}
        found.append(replace(_of_dataset(dataset, runs), unscored=left))
    return found


def _of_files(qrels: Path, runs: list[Path], collection: str | Path | None) -> Subject:
    rankings = {name: read_run(path) for name, path in zip(names_of_runs(runs), runs, strict=True)}
    if collection is None:
        return Subject(qrels.name, qrels=read_qrels(qrels), runs=rankings)
    [dataset] = load_group(collection)
    judged, every = read_qrels(qrels), dataset.all_queries
    asked = [judged.queries.strings, *(run.queries.strings for run in rankings.values())]
    here = np.unique(np.concatenate([every.ids.codes(names) for names in asked]))
    asked_of = every.take(here[here >= 0])
    found = Subject(qrels.name, dataset.corpus, asked_of, judged, rankings, instruction=_instruction(dataset))
    return replace(found, asked=_restricted_queries(dataset))


def _of_dataset(dataset: Dataset, runs: dict[str, Run]) -> Subject:
    layout = dataset.layout
    return Subject(
        dataset.name,
        None if layout.documents is None else dataset.corpus,
        None if layout.queries is None else dataset.all_queries,
        None if not layout.qrels else dataset.qrels,
        runs,
        tuple(_other_splits(dataset)),
        instruction=_instruction(dataset),
        asked=_restricted_queries(dataset) if runs else None,
    )


def _restricted_queries(dataset: Dataset) -> Queries | None:
    """The queries of the split with what may be ranked for them, None where nothing says it."""
    known = dataset.layout.queries is not None and dataset.layout.qrels
    return dataset.queries if known else None


def _instruction(dataset: Dataset) -> str:
    """What queries without an instruction of their own look for; those with one have it in their metadata."""
    return "" if dataset.instruction == OWN_INSTRUCTIONS else dataset.instruction


def _other_splits(dataset: Dataset) -> list[Training]:
    """The other splits that have judgments, as data that a system may have been trained on.

    One that judges just the same queries is another layer of judgments, unless it is called a split for training.
    """
    if dataset.layout.queries is None or not dataset.layout.qrels:
        return []
    mine = set(dataset.qrels.queries.tolist())
    others = [replace(dataset, split=split) for split in dataset.splits if split != dataset.split]
    return [
        Training(f"{dataset.name} {one.split}", one.queries, one.qrels)
        for one in others
        if one.split in TRAINING_SPLITS or set(one.qrels.queries.tolist()) != mine
    ]
