"""ir_metadata: what made a run, as YAML in comments at the head of its file (Breuer, Keller and Schaer 2022)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

from weir.core.run import Run
from weir.errors import FormatError, require
from weir.experiment.costs import stages_of
from weir.experiment.finished import Finished
from weir.io.runs.read import read_run
from weir.io.runs.write import write_run
from weir.io.storage.atomic import storing
from weir.io.storage.text_files import read_bytes
from weir.plugins.bridges.benchmark_tasks import cells_in
from weir.stages.stage import slug

__all__ = ["metadata_of", "read_ir_metadata", "write_annotated_run", "write_annotated_runs"]

START, END = "ir_metadata.start", "ir_metadata.end"
HEAD_BYTES = 1 << 20
EXPECTED = "comments with YAML between '# ir_metadata.start' and '# ir_metadata.end'"


def read_ir_metadata(path: Path | str) -> dict[str, Any]:
    """The metadata at the head of a run file, {} where there is none.

    Raises FormatError for a head that does not end or is no YAML, MissingExtra without PyYAML.
    """
    path = Path(path)
    lines = _head(path)
    if not lines or lines[0].strip() != START:
        return {}
    if END not in (ends := [line.strip() for line in lines]):
        raise FormatError(path, "a head that does not end", EXPECTED)
    yaml = require("yaml", "yaml")
    try:
        found = yaml.safe_load("\n".join(lines[1 : ends.index(END)]))
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise FormatError(path, f"a head that is no YAML ({reason})", EXPECTED) from None
    if not isinstance(found, dict):
        raise FormatError(path, f"a head that holds {type(found).__name__}", EXPECTED)
    return found


def write_annotated_run(run: Run, path: Path | str, metadata: Mapping[str, Any]) -> None:
    """Write a run in TREC's format with metadata at its head, which readers take for comments.

    Raises as `write_run`, BadValue for a name of another format, MissingExtra without PyYAML.
    """
    text = require("yaml", "yaml").safe_dump(dict(metadata), sort_keys=False, allow_unicode=True, width=1000)
    write_run(run, path, comments=[START, *text.splitlines(), END])


def write_annotated_runs(results: Path | str | Sequence[Finished], folder: Path | str) -> list[Path]:
    """Write rankings as <folder>/<collection>/<system>.trec, each with what its records say.

    results: a results folder, or finished cells of it. Raises as `write_annotated_run`, and StoreError when the disk
    refuses.
    """
    written = []
    for cell in cells_in(results):
        place = Path(folder) / slug(cell.dataset)
        with storing(place):
            place.mkdir(parents=True, exist_ok=True)
        path = place / f"{slug(cell.label or cell.system)}.trec"
        write_annotated_run(read_run(cell.run), path, metadata_of(cell))
        written.append(path)
    return written


def metadata_of(cell: Finished) -> dict[str, Any]:
    """What the records of a cell say of it, in ir_metadata's components.

    A run's platform, implementation, method and data are those that made its rankings, whatever runs now.
    """
    made, settings = cell.ranked.made, dict(cell.settings)
    packages = [f"{name}=={version}" for name, version in (made.get("packages") or {}).items()]
    seconds = sum(record.cost["seconds"] for _, record in stages_of(cell))
    return {
        "tag": cell.label or cell.system,
        "platform": {
            "hardware": {"cpu": {"model": made.get("processor"), "number of cores": made.get("cores")}},
            "operating system": {"kernel": made.get("system")},
            "software": {"libraries": {"python": [f"weir-ir=={made.get('weir')}", *packages]}},
        },
        "implementation": {"source": {"lang": "python", "commit": made.get("code")}},
        "method": {
            "automatic": True,
            "retrieval": [{"name": cell.system, "method": dict(cell.ranked.declared["system"])}],
        },
        "data": {
            "test collection": {
                "name": cell.dataset,
                "split": cell.split,
                "fingerprint": settings["fingerprint"],
            }
        },
        "research goal": {"evaluation": {"reported measures": [row.measure for row in cell.rows]}},
        "resources": {"runtime": {"wallclock": f"{seconds:.3f} s"}},
        "when": made.get("when"),
    }


def _head(path: Path) -> list[str]:
    """The comments at the head of a file, without their marks."""
    lines = read_bytes(path, HEAD_BYTES).split(b"\n")
    comments = list(takewhile(lambda line: line.startswith(b"#"), lines))
    try:
        texts = [line.decode("utf-8") for line in comments]
    except UnicodeDecodeError:
        raise FormatError(path, "a comment that is not UTF-8", EXPECTED) from None
    return [text.rstrip().removeprefix("#").removeprefix(" ") for text in texts]
