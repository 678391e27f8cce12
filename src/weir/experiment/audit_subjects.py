"""What `weir audit` is given, as subjects: collections, results folders, or judgments with run files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from weir.audit import Subject
from weir.core.run import Run
from weir.datasets import catalogue
from weir.datasets.load import Dataset, load_group
from weir.errors import BadValue
from weir.experiment.finished import Finished, dataset_of, finished_cells
from weir.io.runs.read import read_qrels, read_run
from weir.measures.files import names_of_runs

__all__ = ["subjects_of"]


def subjects_of(targets: Sequence[str | Path], collection: str | Path | None = None) -> list[Subject]:
    """Subjects from a results folder, from judgments and run files, or from collections by name or path.

    collection: the documents and queries that run files, or a results folder of a collection that is not here, are
    about. Raises BadValue for nothing at all, and the WeirErrors of reading.
    """
    if not targets:
        raise BadValue("nothing to audit; name a collection, a results folder, or judgments and run files")
    first = Path(targets[0])
    if len(targets) == 1 and str(targets[0]) not in catalogue.names() and _is_results(first):
        return _of_results(first, collection)
    if len(targets) > 1 and first.is_file() and all(Path(one).is_file() for one in targets[1:]):
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
        found.append(_of_dataset(dataset, {cell.label: read_run(cell.run) for cell in cells}))
    return found


def _of_files(qrels: Path, runs: list[Path], collection: str | Path | None) -> Subject:
    rankings = {name: read_run(path) for name, path in zip(names_of_runs(runs), runs, strict=True)}
    if collection is None:
        return Subject(qrels.name, qrels=read_qrels(qrels), runs=rankings)
    [dataset] = load_group(collection)
    return Subject(qrels.name, dataset.corpus, dataset.all_queries, read_qrels(qrels), rankings)


def _of_dataset(dataset: Dataset, runs: dict[str, Run]) -> Subject:
    layout = dataset.layout
    return Subject(
        dataset.name,
        None if layout.documents is None else dataset.corpus,
        None if layout.queries is None else dataset.all_queries,
        None if not layout.qrels else dataset.qrels,
        runs,
    )
