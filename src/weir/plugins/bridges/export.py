"""Results as MTEB, the Hugging Face hub and ir_metadata keep them."""

from __future__ import annotations

import json
import math
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from itertools import takewhile
from pathlib import Path
from typing import Any

from weir.core.run import Run
from weir.core.scores import Row
from weir.errors import BadValue, FormatError, RankingWarning, require
from weir.experiment.results import (
    ResultCell,
    as_weir_writes_it,
    current_cells,
    finished_cells,
    whole_seconds,
)
from weir.experiment.stages import Stage, slug
from weir.files.atomic import make_folder, own_file, write_json, write_text
from weir.files.runs import read_run
from weir.files.text_files import read_bytes, read_toml
from weir.files.write import write_run

# ----------
# The names of a collection elsewhere: its task in MTEB, its data set on the Hugging Face hub; the score both report.


MAIN_MEASURE = "nDCG@10"
"""The measure that MTEB's retrieval tasks are reported by."""


@dataclass(frozen=True)
class BenchmarkTask:
    """A collection's name as MTEB's task, and its data set on the hub, "" where it is not known there."""

    name: str
    hub: str = ""


def cells_in(results: Path | str | Sequence[ResultCell]) -> Sequence[ResultCell]:
    """The finished cells of a results folder, or these; raises FormatError for a folder that holds none."""
    return finished_cells(results) if isinstance(results, (str, Path)) else results


def counting_cells(results: Path | str | Sequence[ResultCell]) -> Sequence[ResultCell]:
    """As `cells_in`, those that were scored by the judgments that count; warns (RankingWarning) of each other one."""
    cells, outdated = current_cells(cells_in(results))
    for sentence in outdated:
        warnings.warn(RankingWarning(sentence), stacklevel=3)
    return cells


def task_of(collection: str) -> BenchmarkTask:
    """The task of a collection; one of its own name where it is none of the catalogue's that MTEB has."""
    names = _task_names().get(collection)
    return BenchmarkTask(collection) if names is None else BenchmarkTask(names["task"], names["hub"])


def main_row(cell: ResultCell) -> Row:
    """The row of the measure that is reported; raises BadValue, saying how to get it, for a cell without."""
    row = next((row for row in cell.rows if row.measure == MAIN_MEASURE), None)
    if row is None:
        raise BadValue(
            f"{cell.dataset}, {cell.label or cell.system}: no {MAIN_MEASURE} among its measures, which MTEB and "
            f"the hub report; the same weir run with -m {MAIN_MEASURE} adds it"
        )
    return row


def _file_names(cells: Sequence[ResultCell]) -> list[str]:
    """A name for each cell, with its key where another system of the collection has the same, also but for case."""
    names = [slug(cell.label or cell.system) for cell in cells]
    places = [(_set_name(cell).casefold(), name.casefold()) for cell, name in zip(cells, names, strict=True)]
    return [
        name if places.count(place) == 1 else f"{name}-{cell.ranked.stage.key}"
        for cell, name, place in zip(cells, names, places, strict=True)
    ]


def _set_name(cell: ResultCell) -> str:
    """What files call a collection: with its split unless that is test, so that splits stand side by side."""
    return slug(cell.collection if cell.split == "test" else f"{cell.collection}-{cell.split}")


def _folder(*parts: Path | str) -> Path:
    """A folder, made where it is missing; raises StoreError."""
    folder = Path(*parts)
    make_folder(folder)
    return folder


@cache
def _task_names() -> dict[str, dict[str, Any]]:
    return read_toml(Path(str(files("weir.plugins.bridges") / "benchmark_tasks.toml")), "names of tasks")


# ----------
# Results as a model's page on the Hugging Face hub shows them: files in its folder .eval_results/.


HUNDREDTHS = 100
"""The hub shows scores in percent, as MTEB sends them."""


def write_hub_results(
    results: Path | str | Sequence[ResultCell], folder: Path | str, dataset: str = ""
) -> list[Path]:
    """Write results as <folder>/<system>/.eval_results/<collection>.yaml; the files of a system go to its model.

    The file of another split than test is called <collection>-<split>.yaml.

    Each holds nDCG@10 in percent under the data set on the hub and MTEB's task, with its interval and the number of
    queries in the notes. dataset: the data set on the hub as ORG/NAME:TASK, for cells of one collection; by default
    MTEB's of the catalogue's collections. Raises BadValue for a collection without a known data set, for a dataset with
    several collections, and for cells without nDCG@10; MissingExtra without PyYAML; StoreError.
    """
    yaml = require("yaml", "yaml")
    cells = counting_cells(results)
    collections = {cell.collection for cell in cells}
    if dataset and len(collections) > 1:
        raise BadValue(f"{len(collections)} collections cannot all be {dataset}; choose one with -d")
    hub, _, task = dataset.partition(":")
    if dataset and (hub.count("/") != 1 or not task):
        raise BadValue(f"the data set is '{dataset}'; expected ORG/NAME:TASK, such as mteb/scifact:SciFact")
    tasks = [BenchmarkTask(task, hub) if dataset else task_of(cell.collection) for cell in cells]
    entries = []
    for cell, task_there in zip(cells, tasks, strict=True):
        with as_weir_writes_it(cell):
            entries.append(_entry(cell, task_there))
    paths = []
    for cell, name, entry in zip(cells, _file_names(cells), entries, strict=True):
        place = _folder(folder, name, ".eval_results")
        paths.append(place / f"{_set_name(cell)}.yaml")
        write_text(own_file(paths[-1]), yaml.safe_dump([entry], sort_keys=False, allow_unicode=True))
    return paths


def _entry(cell: ResultCell, task: BenchmarkTask) -> dict[str, object]:
    if not task.hub:
        raise BadValue(f"{cell.dataset}: no data set on the hub is known for it; name it as ORG/NAME:TASK")
    row = main_row(cell)
    mean, low, high = (HUNDREDTHS * value for value in (row.mean, row.low, row.high))
    interval = f", 95% interval {low:.2f} to {high:.2f}" if not math.isnan(low) else ""
    notes = f"{row.measure} over {row.queries} queries{interval}; {cell.system}"
    return {
        "dataset": {"id": task.hub, "task_id": task.name},
        "value": round(mean, 5),
        "date": str(cell.scored[-1][1].made["when"])[: len("2026-11-22")],
        "notes": f"{notes}; weir {cell.ranked.made['weir']}",
    }


# ----------
# Results as MTEB keeps them: a file for each model and task, which `mteb.ResultCache` and `TaskResult` read.


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
"""Fields that MTEB's record of a model needs and Weir does not know."""


def write_mteb_results(
    results: Path | str | Sequence[ResultCell], folder: Path | str, model: str = ""
) -> list[Path]:
    """Write results as MTEB's: results/<model>/<revision>/<task>.json, with a record of each model.

    Scores are the means of measures that MTEB has under another name, ndcg_at_10 first; others keep Weir's names. A
    file that is there keeps the scores of other splits. The
    revision of the data is Weir's fingerprint of it, that of a model a hash of the system's settings. results: a
    results folder, or finished cells of it; model: its name in MTEB, such as intfloat/e5-small, for cells of one
    system; by default weir/<system>. Raises BadValue for cells without nDCG@10, and for a name with several systems;
    StoreError where the disk refuses.
    """
    cells = counting_cells(results)
    systems = {cell.label or cell.system for cell in cells}
    if model and len(systems) > 1:
        raise BadValue(f"{len(systems)} systems cannot all be {model}; choose one with -s")
    parts = []
    for cell in cells:
        with as_weir_writes_it(cell):
            parts.append((_result(cell), system_revision(cell.system, cell.ranked.declared["system"])))
    paths = []
    for cell, (result, revision) in zip(cells, parts, strict=True):
        name = model or f"weir/{slug(cell.label or cell.system)}"
        place = _folder(folder, "results", name.replace("/", "__").replace(" ", "_"), revision)
        of_name = task_of(cell.collection).name if cell.unit in ("", cell.collection) else cell.unit
        paths.append(place / f"{slug(of_name)}.json")
        write_json(own_file(paths[-1]), _with_other_splits(result, paths[-1]))
        facts: dict[str, object] = dict.fromkeys(NO_FACTS)
        meta = {"name": name, "revision": revision, "framework": [], **facts}
        write_json(own_file(place / "model_meta.json"), meta)
    return paths


def system_revision(name: str, description: object) -> str:
    """A hash of all that decides a system's rankings but the collection, by its `describe()`."""
    return Stage("run", name, {"system": description}).key


def _result(cell: ResultCell) -> dict[str, object]:
    settings = dict(cell.settings)
    scores = {"hf_subset": "default", "languages": LANGUAGES, "main_score": main_row(cell).mean}
    for row in cell.rows:
        match = re.fullmatch(r"(\w+)@(\d+)", row.measure)
        name = f"{KEYS[match[1]]}_at_{match[2]}" if match and match[1] in KEYS else row.measure
        scores[name] = row.mean
    return {
        "dataset_revision": settings["fingerprint"],
        "task_name": task_of(cell.collection).name,
        "mteb_version": None,
        "scores": {cell.split: [scores]},
        "evaluation_time": whole_seconds(cell),
        "kg_co2_emissions": None,
        "date": cell.ranked.made["when"],
    }


def _with_other_splits(result: dict[str, Any], path: Path) -> dict[str, Any]:
    """A result with the scores of the splits that a file of the same task holds beside its own.

    The revision of the data then names that of each split, as in `dev:0123 test:4567`. Raises FormatError for a file
    that is none of MTEB's.
    """
    if not path.exists():
        return result
    try:
        before = json.loads(path.read_text(encoding="utf-8"))
        scores, revision = before["scores"], before["dataset_revision"]
        seconds = before["evaluation_time"] or 0.0
        several = ":" in revision
        revisions = (
            dict(one.split(":") for one in revision.split()) if several else dict.fromkeys(scores, revision)
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        raise FormatError(path, "another file", "a result of MTEB's, or no file of that name") from None
    others = {split: of for split, of in scores.items() if split not in result["scores"]}
    if not others:
        return result
    (split,) = result["scores"]
    revisions |= {split: result["dataset_revision"]}
    return result | {
        "dataset_revision": " ".join(f"{name}:{of}" for name, of in sorted(revisions.items())),
        "scores": dict(sorted((others | result["scores"]).items())),
        "evaluation_time": seconds if split in scores else seconds + result["evaluation_time"],
    }


# ----------
# ir_metadata: the origin of a run, as YAML in comments at the head of its file (Breuer, Keller and Schaer 2022).


START, END = "ir_metadata.start", "ir_metadata.end"
HEAD_BYTES = 1 << 20
EXPECTED = "comments with YAML between '# ir_metadata.start' and '# ir_metadata.end'"


def read_ir_metadata(path: Path | str) -> dict[str, Any]:
    """The metadata at the head of a run file, {} where there is none.

    Raises FormatError for a head that does not end or is no YAML, MissingExtra without PyYAML.
    """
    path = Path(path)
    head = read_bytes(path, HEAD_BYTES).split(b"\n")
    comments = list(takewhile(lambda line: line.startswith(b"#"), head))
    try:
        texts = b"\n".join(comments).decode("utf-8").split("\n")
    except UnicodeDecodeError:
        raise FormatError(path, "a comment that is not UTF-8", EXPECTED) from None
    lines = [text.rstrip().removeprefix("#").removeprefix(" ") for text in texts]
    if lines[0].strip() != START:
        return {}
    if END not in (ends := [line.strip() for line in lines]):
        raise FormatError(path, "a head that does not end", EXPECTED)
    yaml = require("yaml", "yaml")
    try:
        metadata = yaml.safe_load("\n".join(lines[1 : ends.index(END)]))
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise FormatError(path, f"a head that is no YAML ({reason})", EXPECTED) from None
    if not isinstance(metadata, dict):
        raise FormatError(path, f"a head that holds {type(metadata).__name__}", EXPECTED)
    return metadata


def write_annotated_run(run: Run, path: Path | str, metadata: Mapping[str, Any]) -> None:
    """Write a run in TREC's format with metadata at its head, which readers take for comments.

    Raises as `write_run`, BadValue for a name of another format, MissingExtra without PyYAML.
    """
    text = require("yaml", "yaml").safe_dump(dict(metadata), sort_keys=False, allow_unicode=True, width=1000)
    write_run(run, path, comments=[START, *text.splitlines(), END])


def write_annotated_runs(results: Path | str | Sequence[ResultCell], folder: Path | str) -> list[Path]:
    """Write rankings as <folder>/<collection>/<system>.trec, each with the content of its records.

    The folder of another split than test is called <collection>-<split>. results: a results folder, or finished cells
    of it. Raises as `write_annotated_run`, and StoreError when the disk refuses.
    """
    paths = []
    cells = cells_in(results)
    for cell, name in zip(cells, _file_names(cells), strict=True):
        paths.append(_folder(folder, _set_name(cell)) / f"{name}.trec")
        run = replace(read_run(cell.run), name=cell.label or cell.system)
        with as_weir_writes_it(cell):
            metadata = metadata_of(cell)
        write_annotated_run(run, own_file(paths[-1]), metadata)
    return paths


def metadata_of(cell: ResultCell) -> dict[str, Any]:
    """The records of a cell in ir_metadata's components.

    Platform, implementation, method and data are those that made the rankings, not those of this process.
    """
    origin, settings = cell.ranked.made, dict(cell.settings)
    packages = [f"{name}=={version}" for name, version in (origin.get("packages") or {}).items()]
    seconds = whole_seconds(cell)
    return {
        "tag": cell.label or cell.system,
        "platform": {
            "hardware": {"cpu": {"model": origin.get("processor"), "number of cores": origin.get("cores")}},
            "operating system": {"kernel": origin.get("system")},
            "software": {"libraries": {"python": [f"weir-ir=={origin.get('weir')}", *packages]}},
        },
        "implementation": {"source": {"lang": "python", "commit": origin.get("code")}},
        "method": {
            "automatic": True,
            "retrieval": [{"name": cell.system, "method": dict(cell.ranked.declared["system"])}],
        },
        "data": {
            "test collection": {
                "name": cell.collection,
                "split": cell.split,
                "fingerprint": settings["fingerprint"],
            }
        },
        "research goal": {"evaluation": {"reported measures": [row.measure for row in cell.rows]}},
        "resources": {} if seconds is None else {"runtime": {"wallclock": f"{seconds:.3f} s"}},
        "when": origin.get("when"),
    }
