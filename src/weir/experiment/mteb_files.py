"""Results that MTEB wrote, as published scores: means of a model for each task, split and measure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from weir.errors import FormatError
from weir.experiment.published import PublishedScore, toml_facts
from weir.files.json_record import read_json

MTEB_MEASURES = {
    "nDCG": "ndcg",
    "AP": "map",
    "R": "recall",
    "P": "precision",
    "RR": "mrr",
    "Success": "hit_rate",
}
"""Weir's measure and MTEB's, where both are one number; MTEB's others are cut or averaged otherwise."""
_MEASURE_OF = {name: measure for measure, name in MTEB_MEASURES.items()}
_META, _PREDICTIONS = "model_meta.json", "_predictions.json"


def mteb_scores(path: Path) -> tuple[PublishedScore, ...]:
    """Return the scores in a result of MTEB, or in all results of a folder, named by model and file.

    The model is that of the `model_meta.json` beside a file, else the name of its folder. Scores of one subset
    of several are left out, as they are of other collections.

    Raises FormatError for a file that is no result of MTEB's, and a folder without any.
    """
    files = [path] if path.is_file() else sorted(path.rglob("*.json"))
    files = [file for file in files if not file.name.endswith((_META, _PREDICTIONS))]
    found = [(file, read_json(file, "a result of MTEB")) for file in files]
    results = [(file, value) for file, value in found if path.is_file() or _is_result(value)]
    if not results:
        raise FormatError(
            path, "no result of MTEB", "a file with scores by split for each task, as MTEB writes them"
        )
    return tuple(score for file, value in results for score in _scores_of(file, value))


def _is_result(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("scores"), dict)


def _scores_of(file: Path, value: Any) -> Iterator[PublishedScore]:  # noqa: ANN401  JSON holds anything
    if not _is_result(value):
        raise FormatError(file, "no scores by split", "a result of MTEB, as mteb.evaluate writes it")
    task = str(value.get("task_name") or file.stem)
    collections = {facts["task"]: name for name, facts in toml_facts("benchmark_tasks.toml").items()}
    about = f"mteb {value.get('mteb_version')}"
    for split, subsets in value["scores"].items():
        for scores in subsets if isinstance(subsets, list) else []:
            if not isinstance(scores, dict) or scores.get("hf_subset", "default") != "default":
                continue
            for name, mean in scores.items():
                match = re.fullmatch(r"([a-z_]+)_at_(\d+)", name)
                known = match and match[1] in _MEASURE_OF
                if match and known and type(mean) in (int, float) and math.isfinite(mean):
                    measure = f"{_MEASURE_OF[match[1]]}@{match[2]}"
                    place = (collections.get(task, task), split, measure)
                    yield PublishedScore(_model_of(file), "", *place, repr(mean), str(file), about)


def _model_of(file: Path) -> str:
    meta = file.parent / _META
    value = read_json(meta, "a model of MTEB") if meta.is_file() else {}
    name = value.get("name") if isinstance(value, dict) else None
    return str(name or file.resolve().parent.name.replace("__", "/"))
