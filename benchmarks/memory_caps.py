"""weir run under caps on memory that the system enforces: whether it finishes, or says in one line what it needs.

    python benchmarks/memory_caps.py [--caps 1G,2G,4G,8G] [--work FOLDER]

Each run is a process of its own with a WEIR_HOME of its own, under `ulimit -v` or in a memory cgroup (root, version 1 or
2), with every thread that the machine has. The collections are SciFact, whole and its first 400 documents (for what runs
a model), and a million synthetic documents (`scale.py`). A record says how the process ended (exit code, or a negative
signal), its last line on standard error where that was not 0, its seconds, and its peak: of its resident memory, in a
cgroup that of the group.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import common
from common import say
from scale import limited, make_collection

MINILM = 'dense("minilm")'
TASKS = {
    "bm25": ["bm25", "rm3(bm25)"],
    "dense": [MINILM],
    "dense-whole": [MINILM],
    "million": ["bm25"],
}
"""Systems of one command each: on SciFact, on its first documents, again on SciFact, on the synthetic collection."""
DENSE_DOCUMENTS = 400


def run_capped(systems: list[str], collection: Path, cap: int, kind: str) -> dict[str, Any]:
    """One command under a cap; kind: "ulimit -v" or "cgroup"."""
    group = limited(cap) if kind == "cgroup" else None
    if kind == "cgroup" and group is None:
        return common.failed("no memory cgroup can be made here")

    def enter() -> None:
        if group is not None:
            (group[0] / "cgroup.procs").write_text("0", encoding="ascii")
        else:
            resource.setrlimit(resource.RLIMIT_AS, (cap, cap))

    with tempfile.TemporaryDirectory(prefix="weir-caps-") as folder:
        options = [part for system in systems for part in ("-s", system)]
        command = [
            sys.executable,
            "-m",
            "weir",
            "run",
            "-q",
            "-d",
            str(collection),
            *options,
            "-m",
            "nDCG@10",
        ]
        environment = {name: value for name, value in os.environ.items() if name != "WEIR_MAX_RAM"}
        environment |= {"WEIR_HOME": f"{folder}/home", "HF_HUB_OFFLINE": "1"}
        start = time.perf_counter()
        with Path(folder, "out").open("w+", encoding="utf-8") as errors:
            process = subprocess.Popen(
                [*command, "-o", f"{folder}/results"],
                env=environment,
                preexec_fn=enter,  # noqa: PLW1509 - no thread runs here
                stdout=subprocess.DEVNULL,
                stderr=errors,
            )
            _, status, usage = os.wait4(process.pid, 0)
            errors.seek(0)
            lines = errors.read().splitlines()
        code = os.waitstatus_to_exitcode(status)
        record: dict[str, Any] = {"code": code, "seconds": round(time.perf_counter() - start, 1)}
        record["peak_mb"] = round(usage.ru_maxrss / 1024)
        if code:
            record |= {"lines": len(lines), "last": lines[-1] if lines else ""}
        if group is not None:
            record["peak_mb"] = int((group[0] / group[1]).read_text(encoding="ascii")) >> 20
            with suppress(OSError):
                group[0].rmdir()
    return record


def main() -> None:
    """Run every task under every cap, the least cap first."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--caps", default="1G,2G,4G,8G")
    parser.add_argument("--kinds", default="ulimit -v,cgroup")
    parser.add_argument("--tasks", default=",".join(TASKS))
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--data")
    parser.add_argument("--work", help="where the synthetic collection is kept for later runs")
    options = parser.parse_args()
    from weir.settings import size_of

    work = Path(options.work or tempfile.mkdtemp(prefix="weir-caps-"))
    data = common.data_folder(options.data)
    places = {
        "bm25": work / "scifact",
        "dense": work / "first",
        "dense-whole": work / "scifact",
        "million": work / str(options.documents),
    }
    tasks: list[str] = options.tasks.split(",")
    for name in ("bm25", "dense"):
        for file in ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv"):  # stores are written beside these
            copy = places[name] / file
            copy.parent.mkdir(parents=True, exist_ok=True)
            lines = (data / "scifact" / file).read_bytes().splitlines(keepends=True)
            first = lines[:DENSE_DOCUMENTS] if (name, file) == ("dense", "corpus.jsonl") else lines
            copy.write_bytes(b"".join(first))
    if "million" in tasks:
        make_collection(options.documents, places["million"], data)
    for name in tasks:
        for kind in options.kinds.split(","):
            for cap in options.caps.split(","):
                for store in places[name].glob("*.weir"):
                    shutil.rmtree(store)
                record = run_capped(TASKS[name], places[name], size_of(cap), kind)
                say(f"{name:8} {kind:10} {cap:4} {record}")
                common.append(
                    "memory_caps", {"task": name, "kind": kind, "cap": cap, **record, **common.machine()}
                )
    if not options.work:
        shutil.rmtree(work)


if __name__ == "__main__":
    main()
