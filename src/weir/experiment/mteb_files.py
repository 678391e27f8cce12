"""Read results of MTEB as published scores."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from weir.errors import FormatError
from weir.experiment.published import PublishedScore, reported, task_collection
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
_OLD_TASK = "mteb_dataset_name"
"""The task's name in results of MTEB before 1.11, whose splits stand beside it: {"test": {...}}."""
_META, _PREDICTIONS = "model_meta.json", "_predictions.json"


def mteb_scores(path: Path) -> tuple[PublishedScore, ...]:
    """Return the scores in a result file of MTEB, or in all such files below a folder.

    Several revisions are named MODEL@REVISION or MODEL@PATH, subsets TASK#SUBSET. Raises FormatError for
    other files, no result, or means outside 0..1.
    """
    files = [path] if path.is_file() else sorted(path.rglob("*.json"))
    files = [file for file in files if not file.name.endswith((_META, _PREDICTIONS))]
    found = [(file, read_json(file, "a result of MTEB")) for file in files]
    results = [(file, value) for file, value in found if path.is_file() or _is_result(value)]
    if not results:
        raise FormatError(
            path, "no result of MTEB", "a file with scores by split for each task, as MTEB writes them"
        )
    scores = [score for file, value in results for score in _scores_of(file, value)]
    means: dict[str, dict[Path, set[tuple[str, str, str]]]] = {}
    for one in scores:
        place = one.dataset, one.split, one.measure
        means.setdefault(one.model, {}).setdefault(Path(one.source), set()).add(place)
    told = {model: _told_apart(files, path) for model, files in means.items()}
    return tuple(replace(one, model=one.model + told[one.model][Path(one.source)]) for one in scores)


def _told_apart(files: Mapping[Path, set[tuple[str, str, str]]], root: Path) -> dict[Path, str]:
    revisions = {file: _revision_of(file) for file in files}
    if len(set(revisions.values())) == 1:
        revisions = dict.fromkeys(files, "")
    for revision in set(revisions.values()):
        own = [means for file, means in files.items() if revisions[file] == revision]
        if sum(map(len, own)) > len(set[tuple[str, str, str]]().union(*own)):
            return {file: f"@{file.relative_to(root).as_posix()}" for file in files}
    return {file: f"@{revision}" if revision else "" for file, revision in revisions.items()}


def _revision_of(file: Path) -> str:
    meta = file.parent / _META
    value = read_json(meta, "a model of MTEB") if meta.is_file() else {}
    recorded = value.get("revision") if isinstance(value, dict) else None
    return str(recorded or (file.parent.name if "__" in file.resolve().parent.parent.name else ""))


def _is_result(value: object) -> bool:
    return isinstance(value, dict) and (isinstance(value.get("scores"), dict) or _OLD_TASK in value)


def _splits(value: dict[str, Any]) -> dict[str, Any]:
    if "scores" in value:
        return dict(value["scores"])
    found = {}
    for split, scores in value.items():
        if isinstance(scores, dict):
            subsets = {name: one for name, one in scores.items() if isinstance(one, dict)}
            found[split] = [{"hf_subset": name, **one} for name, one in subsets.items()] or [scores]
    return found


def _scores_of(file: Path, value: Any) -> Iterator[PublishedScore]:  # noqa: ANN401  JSON holds anything
    if not _is_result(value):
        raise FormatError(file, "no scores by split", "a result of MTEB, as mteb.evaluate writes it")
    task = str(value.get("task_name") or value.get(_OLD_TASK) or file.stem)
    model, named_by = _model_of(file, task)
    about = (
        f"mteb {value.get('mteb_version') or 'of an unknown version'}"
        + f"; no model_meta.json: the model is the {named_by}'s name" * (named_by != _META)
    )
    for split, subsets in _splits(value).items():
        if not isinstance(subsets, list) or not all(isinstance(scores, dict) for scores in subsets):
            raise FormatError(
                file, f"no list of subsets as '{split}'", "scores of each subset, as MTEB writes them"
            )
        named = [str(scores.get("hf_subset", "default")) for scores in subsets]
        if len(set(named)) < len(named):
            several = f"{len(named)} subsets as '{split}', two of one name ({', '.join(named)})"
            raise FormatError(file, several, "a name for each, as hf_subset, which tells their means apart")
        for subset, scores in zip(named, subsets, strict=True):
            of = reported(task_collection(task, subset), split).dataset
            for name, mean in scores.items():
                match = re.fullmatch(r"([a-z_]+)_at_(\d+)", name)
                known = match and match[1] in _MEASURE_OF
                if match and known and type(mean) in (int, float) and math.isfinite(mean):
                    if not 0 <= mean <= 1:
                        wanted = "a mean from 0 to 1" + ", not per cent" * (mean > 1)
                        raise FormatError(file, f"{mean} as {name}", wanted)
                    measure = f"{_MEASURE_OF[match[1]]}@{match[2]}"
                    yield PublishedScore(model, "", of, split, measure, repr(mean), str(file), about)


def _model_of(file: Path, task: str) -> tuple[str, str]:
    # The model, and what names it.
    meta = file.parent / _META
    value = read_json(meta, "a model of MTEB") if meta.is_file() else {}
    if isinstance(value, dict) and value.get("name"):
        return str(value["name"]), _META
    folders = [folder.name for folder in file.resolve().parents]
    called = next((folder for folder in folders[:2] if "__" in folder), "")
    own = file.name.partition(f".{task}.")[0]
    if not called and own != file.name:
        return own.replace("__", "/"), "file"
    return (called or folders[0]).replace("__", "/"), "folder"
