"""Results as MTEB keeps them: a file for each model and task, which `mteb.ResultCache` and `TaskResult` read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from weir.errors import BadValue
from weir.experiment.costs import stages_of
from weir.experiment.finished import Finished
from weir.io.storage.atomic import storing, write_json
from weir.plugins.bridges.benchmark_tasks import cells_in, main_row, task_of
from weir.stages.stage import Stage, slug

__all__ = ["mteb_names", "system_revision", "write_mteb_results"]

# Weir's measure and MTEB's, where both are one number; MTEB's others are cut or averaged otherwise.
KEYS = {
    "nDCG": "ndcg",
    "AP": "map",
    "R": "recall",
    "P": "precision",
    "RR": "mrr",
    "Success": "hit_rate",
}
LANGUAGES = ["eng-Latn"]
NO_FACTS = (
    *("loader", "release_date", "n_parameters", "n_embedding_parameters", "memory_usage_mb", "max_tokens"),
    *("embed_dim", "license", "open_weights", "public_training_code", "public_training_data", "languages"),
    *("similarity_fn_name", "use_instructions", "training_datasets"),
)
"""What MTEB's record of a model has to have, though Weir does not know it."""


def write_mteb_results(
    results: Path | str | Sequence[Finished], folder: Path | str, model: str = ""
) -> list[Path]:
    """Write results as MTEB's: results/<model>/<revision>/<task>.json, with a record of each model.

    Scores are the means of measures that MTEB has under another name, ndcg_at_10 first; others keep Weir's names. The
    revision of the data is Weir's fingerprint of it, that of a model a hash of the system's settings. results: a
    results folder, or finished cells of it; model: its name in MTEB, such as intfloat/e5-small, for cells of one
    system; by default weir/<system>. Raises BadValue for cells without nDCG@10, and for a name with several systems;
    StoreError where the disk refuses.
    """
    cells = cells_in(results)
    systems = {cell.label or cell.system for cell in cells}
    if model and len(systems) > 1:
        raise BadValue(f"{len(systems)} systems cannot all be {model}; choose one with -s")
    found = [_result(cell) for cell in cells]
    written = []
    for cell, result in zip(cells, found, strict=True):
        name = model or f"weir/{slug(cell.label or cell.system)}"
        revision = system_revision(cell.system, cell.ranked.declared["system"])
        place = Path(folder) / "results" / name.replace("/", "__").replace(" ", "_") / revision
        with storing(place):
            place.mkdir(parents=True, exist_ok=True)
        path = place / f"{slug(task_of(cell.dataset).name)}.json"
        write_json(path, result)
        write_json(place / "model_meta.json", _model(name, revision))
        written.append(path)
    return written


def mteb_names(cell: Finished) -> dict[str, float]:
    """The means of a cell under MTEB's names, where it has one, else under Weir's."""
    found = {}
    for row in cell.rows:
        match = re.fullmatch(r"(\w+)@(\d+)", row.measure)
        ours = f"{KEYS[match[1]]}_at_{match[2]}" if match and match[1] in KEYS else row.measure
        found[ours] = row.mean
    return found


def system_revision(name: str, description: object) -> str:
    """A hash of all that decides a system's rankings but the collection, by its `describe()`."""
    return Stage("run", name, {"system": description}).key


def _result(cell: Finished) -> dict[str, object]:
    settings = dict(cell.settings)
    scores = {
        "hf_subset": "default",
        "languages": LANGUAGES,
        "main_score": main_row(cell).mean,
        **mteb_names(cell),
    }
    return {
        "dataset_revision": settings["fingerprint"],
        "task_name": task_of(cell.dataset).name,
        "mteb_version": None,
        "scores": {cell.split: [scores]},
        "evaluation_time": sum(record.cost["seconds"] for _, record in stages_of(cell)),
        "kg_co2_emissions": None,
        "date": cell.ranked.made["when"],
    }


def _model(name: str, revision: str) -> dict[str, object]:
    facts: dict[str, object] = dict.fromkeys(NO_FACTS)
    return {"name": name, "revision": revision, "framework": [], **facts}
