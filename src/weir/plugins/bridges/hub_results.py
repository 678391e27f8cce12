"""Results as a model's page on the Hugging Face hub shows them: files in its folder .eval_results/."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from weir.errors import BadValue, require
from weir.experiment.finished import Finished
from weir.io.storage.atomic import storing, write_text
from weir.plugins.bridges.benchmark_tasks import BenchmarkTask, cells_in, main_row, task_of
from weir.stages.stage import slug

__all__ = ["write_hub_results"]

HUNDREDTHS = 100
"""The hub shows scores in percent, as MTEB sends them."""


def write_hub_results(
    results: Path | str | Sequence[Finished], folder: Path | str, dataset: str = ""
) -> list[Path]:
    """Write results as <folder>/<system>/.eval_results/<collection>.yaml: what stands below a system goes to its model.

    Each holds nDCG@10 in percent under the data set on the hub and MTEB's task, with its interval and the number of
    queries in the notes. dataset: the data set on the hub as ORG/NAME:TASK, for cells of one collection; by default
    MTEB's of the catalogue's collections. Raises BadValue for a collection of which no data set is known, for a dataset
    with several collections, and for cells without nDCG@10; MissingExtra without PyYAML; StoreError.
    """
    yaml = require("yaml", "yaml")
    cells = cells_in(results)
    collections = {cell.dataset for cell in cells}
    if dataset and len(collections) > 1:
        raise BadValue(f"{len(collections)} collections cannot all be {dataset}; choose one with -d")
    entries = [_entry(cell, _named(dataset) if dataset else task_of(cell.dataset)) for cell in cells]
    written = []
    for cell, entry in zip(cells, entries, strict=True):
        place = Path(folder) / slug(cell.label or cell.system) / ".eval_results"
        with storing(place):
            place.mkdir(parents=True, exist_ok=True)
        path = place / f"{slug(cell.dataset)}.yaml"
        write_text(path, yaml.safe_dump([entry], sort_keys=False, allow_unicode=True))
        written.append(path)
    return written


def _named(dataset: str) -> BenchmarkTask:
    hub, _, task = dataset.partition(":")
    if hub.count("/") != 1 or not task:
        raise BadValue(f"the data set is '{dataset}'; expected ORG/NAME:TASK, such as mteb/scifact:SciFact")
    return BenchmarkTask(task, hub)


def _entry(cell: Finished, task: BenchmarkTask) -> dict[str, object]:
    if not task.hub:
        raise BadValue(
            f"{cell.dataset}: no data set on the hub is known to hold it; name the one that does, as ORG/NAME:TASK"
        )
    row = main_row(cell)
    mean, low, high = (HUNDREDTHS * value for value in (row.mean, row.low, row.high))
    notes = f"{row.measure} over {row.queries} queries, 95% interval {low:.2f} to {high:.2f}; {cell.system}"
    return {
        "dataset": {"id": task.hub, "task_id": task.name},
        "value": round(mean, 5),
        "date": str(cell.scored[-1][1].made["when"])[: len("2026-11-22")],
        "notes": f"{notes}; weir {cell.ranked.made['weir']}",
    }
