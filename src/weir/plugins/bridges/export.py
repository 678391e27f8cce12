"""Write results in the formats of MTEB, the Hugging Face hub and ir_metadata."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from typing import Any

from weir.core.run import Run
from weir.core.scores import Row
from weir.datasets import catalogue
from weir.errors import BadValue, FormatError, require, warn_of_ranking
from weir.experiment.mteb_files import MTEB_MEASURES
from weir.experiment.published import toml_facts
from weir.experiment.results import (
    ResultCell,
    as_weir_writes_it,
    current_cells,
    finished_cells,
    not_as_published,
    total_seconds,
)
from weir.experiment.stages import Stage, slug
from weir.files.atomic import make_folder, own_file, write_json, write_text
from weir.files.runs import read_run
from weir.files.text_files import read_bytes
from weir.files.write import write_run

# ----------
# The names of a collection elsewhere: its task in MTEB, its data set on the Hugging Face hub; the score both report.


MAIN_MEASURE = "nDCG@10"
"""The measure that MTEB reports for retrieval tasks."""


@dataclass(frozen=True)
class BenchmarkTask:
    """A collection's task in MTEB, and its data set on the Hugging Face hub."""

    name: str
    hub: str = ""
    """"" if it is not known."""


def _cells_in(results: Path | str | Sequence[ResultCell]) -> Sequence[ResultCell]:
    return finished_cells(results) if isinstance(results, (str, Path)) else results


def _counting_cells(results: Path | str | Sequence[ResultCell]) -> Sequence[ResultCell]:
    cells, outdated = current_cells(_cells_in(results))
    for sentence in outdated:
        warn_of_ranking(sentence)
    return cells


def task_of(collection: str) -> BenchmarkTask:
    """Return a collection's task in MTEB; one of the collection's own name if MTEB has none."""
    names = toml_facts("benchmark_tasks.toml").get(collection)
    return BenchmarkTask(collection) if names is None else BenchmarkTask(names["task"], names["hub"])


def _refuse_other_data(cells: Sequence[ResultCell]) -> None:
    for cell in cells:
        if other := not_as_published(cell):
            raise BadValue(
                f"{other}; its scores are not of {task_of(catalogue.original(cell.collection)).name}: run it on the "
                "whole collection, or under another name (rename the folder of the collection)"
            )


def _main_row(cell: ResultCell) -> Row:
    row = next((row for row in cell.rows if row.measure == MAIN_MEASURE), None)
    if row is None:
        raise BadValue(
            f"{cell.dataset}, {cell.label or cell.system}: no {MAIN_MEASURE} among its measures, which MTEB and "
            f"the hub report; the same weir run with -m {MAIN_MEASURE} adds it"
        )
    return row


def _file_names(cells: Sequence[ResultCell]) -> list[str]:
    names = [slug(cell.label or cell.system) for cell in cells]
    places = [(_set_name(cell).casefold(), name.casefold()) for cell, name in zip(cells, names, strict=True)]
    return [
        name if places.count(place) == 1 else f"{name}-{cell.ranked.stage.key}"
        for cell, name, place in zip(cells, names, places, strict=True)
    ]


def _set_name(cell: ResultCell) -> str:
    return slug(cell.collection if cell.split == "test" else f"{cell.collection}-{cell.split}")


def _folder(*parts: Path | str) -> Path:
    folder = Path(*parts)
    make_folder(folder)
    return folder


# ----------
# Results as a model's page on the Hugging Face hub shows them: files in its folder .eval_results/.


HUNDREDTHS = 100
"""The hub shows scores in percent, as MTEB sends them."""


def write_hub_results(
    results: Path | str | Sequence[ResultCell], folder: Path | str, dataset: str = ""
) -> list[Path]:
    """Write results as <folder>/<system>/.eval_results/<collection>.yaml, for a model's repository; return
    the paths.

    Splits other than test are named <collection>-<split>.yaml. A file holds nDCG@10 in percent, its interval
    and the number of queries.

    results: a results folder, or finished results.
    dataset: the data set on the Hugging Face hub, ORG/NAME:TASK, if all results are of one collection; by
        default each collection's data set of MTEB.

    Raises BadValue for an unknown data set, one given for several collections, and results without nDCG@10;
    without `dataset` also for a collection whose counts differ from the published ones. Raises MissingExtra
    without PyYAML, FormatError for damaged results, StoreError if a file cannot be written.
    """
    yaml = require("yaml", "import-sources")
    cells = _counting_cells(results)
    collections = {cell.collection for cell in cells}
    if dataset and len(collections) > 1:
        raise BadValue(
            f"{len(collections)} collections cannot all be {dataset}; choose one (weir data export -d)"
        )
    hub, _, task = dataset.partition(":")
    if dataset and (hub.count("/") != 1 or not task):
        raise BadValue(f"the data set is '{dataset}'; expected ORG/NAME:TASK, such as mteb/scifact:SciFact")
    if not dataset:
        _refuse_other_data(cells)
    tasks = [BenchmarkTask(task, hub) if dataset else task_of(cell.collection) for cell in cells]
    entries = []
    for cell, task_there in zip(cells, tasks, strict=True):
        with as_weir_writes_it(cell.folder):
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
    row = _main_row(cell)
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


LANGUAGES = ["eng-Latn"]
NO_FACTS = (
    *("loader", "release_date", "n_parameters", "n_embedding_parameters", "memory_usage_mb", "max_tokens"),
    *("embed_dim", "license", "open_weights", "public_training_code", "public_training_data", "languages"),
    *("similarity_fn_name", "use_instructions", "training_datasets"),
)
"""Fields that MTEB requires of a model and Weir does not know."""


def write_mteb_results(
    results: Path | str | Sequence[ResultCell], folder: Path | str, model: str = ""
) -> list[Path]:
    """Write results as MTEB does, results/<model>/<revision>/<task>.json with model_meta.json; return the
    paths.

    results: a results folder, or finished results.
    model: the name in MTEB, such as intfloat/e5-small, for results of one system, by default weir/<system>.

    Scores are means under MTEB's names; other splits in an existing file are kept; a revision is a hash of
    the system's settings. Raises BadValue for results without nDCG@10, one model for several systems, two
    results with the same path, and a collection whose counts differ from the published ones; StoreError if a
    file cannot be written.
    """
    cells = _counting_cells(results)
    systems = {cell.label or cell.system for cell in cells}
    if model and len(systems) > 1:
        raise BadValue(f"{len(systems)} systems cannot all be {model}; choose one (weir data export -s)")
    _refuse_other_data(cells)
    parts = []
    for cell in cells:
        with as_weir_writes_it(cell.folder):
            parts.append((_result(cell), system_revision(cell.system, cell.ranked.declared["system"])))
    places, of_place = list[tuple[str, str]](), dict[tuple[str, str, str], ResultCell]()
    for cell, (_, revision) in zip(cells, parts, strict=True):
        name = model or f"weir/{slug(cell.label or cell.system)}"
        own = task_of(cell.collection).name if cell.unit in ("", cell.collection) else cell.unit
        inside = f"{name.replace('/', '__').replace(' ', '_')}/{revision}/{slug(own)}.json"
        other = of_place.setdefault((name, inside, cell.split), cell)
        if other is not cell:
            raise BadValue(
                f"{cell.called} on {other.dataset} and on {cell.dataset} would be one result of MTEB's; choose one "
                "(weir data export -d)"
            )
        places.append((name, inside))
    paths = []
    for (name, inside), (result, revision) in zip(places, parts, strict=True):
        paths.append(Path(folder, "results", inside))
        place = _folder(paths[-1].parent)
        write_json(own_file(paths[-1]), _with_other_splits(result, paths[-1]))
        facts: dict[str, object] = dict.fromkeys(NO_FACTS)
        meta = {"name": name, "revision": revision, "framework": [], **facts}
        write_json(own_file(place / "model_meta.json"), meta)
    return paths


def system_revision(name: str, description: object) -> str:
    """Return a hash of a system's name and description, the same on every collection."""
    return Stage("run", name, {"system": description}).key


def _result(cell: ResultCell) -> dict[str, object]:
    settings = dict(cell.settings)
    scores = {"hf_subset": "default", "languages": LANGUAGES, "main_score": _main_row(cell).mean}
    for row in cell.rows:
        match = re.fullmatch(r"(\w+)@(\d+)", row.measure)
        name = (
            f"{MTEB_MEASURES[match[1]]}_at_{match[2]}" if match and match[1] in MTEB_MEASURES else row.measure
        )
        scores[name] = row.mean
    return {
        "dataset_revision": settings["fingerprint"],
        "task_name": task_of(cell.collection).name,
        "mteb_version": None,
        "scores": {cell.split: [scores]},
        "evaluation_time": total_seconds(cell),
        "kg_co2_emissions": None,
        "date": cell.ranked.made["when"],
    }


def _with_other_splits(result: dict[str, Any], path: Path) -> dict[str, Any]:
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
    """Return the ir_metadata in the comments at the head of a run file; {} without any.

    Raises FormatError for malformed metadata, MissingExtra without PyYAML.
    """
    path = Path(path)
    head = read_bytes(path, HEAD_BYTES).split(b"\n")
    comments = list(takewhile(lambda line: line.startswith(b"#"), head))
    if not comments or comments[0][1:].strip() != START.encode():
        return {}
    try:
        texts = b"\n".join(comments).decode("utf-8").split("\n")
    except UnicodeDecodeError:
        raise FormatError(path, "a comment that is not UTF-8", EXPECTED) from None
    lines = [text.rstrip().removeprefix("#").removeprefix(" ") for text in texts]
    if END not in (ends := [line.strip() for line in lines]):
        raise FormatError(path, "a head that does not end", EXPECTED)
    yaml = require("yaml", "import-sources")
    try:
        metadata = yaml.safe_load("\n".join(lines[1 : ends.index(END)]))
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise FormatError(path, f"a head that is no YAML ({reason})", EXPECTED) from None
    if not isinstance(metadata, dict):
        raise FormatError(path, f"a head that holds {type(metadata).__name__}", EXPECTED)
    return metadata


def write_annotated_run(run: Run, path: Path | str, metadata: Mapping[str, Any]) -> None:
    """Write a run in TREC's format, with metadata as YAML in comments at its head.

    Raises BadValue for a file name of another format and white space in an identifier, MissingExtra without
    PyYAML, StoreError if the file cannot be written.
    """
    text = require("yaml", "import-sources").safe_dump(
        dict(metadata), sort_keys=False, allow_unicode=True, width=1000
    )
    write_run(run, path, comments=[START, *text.splitlines(), END])


def write_annotated_runs(results: Path | str | Sequence[ResultCell], folder: Path | str) -> list[Path]:
    """Write rankings with their metadata as <folder>/<collection>/<system>.trec; return the paths.

    Splits other than test go to <collection>-<split>.

    results: a results folder, or finished results.

    Raises FormatError for damaged results, MissingExtra without PyYAML, StoreError if a file cannot be
    written.
    """
    paths = []
    cells = _cells_in(results)
    for cell, name in zip(cells, _file_names(cells), strict=True):
        paths.append(_folder(folder, _set_name(cell)) / f"{name}.trec")
        run = replace(read_run(cell.run), name=cell.label or cell.system)
        with as_weir_writes_it(cell.folder):
            metadata = _metadata_of(cell)
        write_annotated_run(run, own_file(paths[-1]), metadata)
    return paths


def _metadata_of(cell: ResultCell) -> dict[str, Any]:
    origin, settings = cell.ranked.made, dict(cell.settings)
    packages = [f"{name}=={version}" for name, version in (origin.get("packages") or {}).items()]
    seconds = total_seconds(cell)
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
