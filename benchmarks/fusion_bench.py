"""Fusing three runs: Weir beside ranx, the same numbers.

    python benchmarks/fusion_bench.py [--queries 700] [--peers FOLDER] [--core 1] [--repeat 5]

Three runs of `--queries` queries x 1,000 documents out of 8.8 million, which share about a sixth of their documents.
Each tool holds its own runs in memory; what is timed is runs to fused run. Weir is asked twice: with a table of identifiers
for each run, as three files give them (`files`), and with one for all, as the systems of a grid have (`grid`).
Making the runs from dicts, which every user of ranx does first, is timed beside it. With 700 queries ranx's process takes
1.6 GB, so give it memory for more, or leave it out (`--tools weir-files,weir-grid`). Fused scores must agree to 1e-12;
the order of equal ones is not compared, since ranx's is chance.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any

import numpy as np

import common
from common import memory_mb, say, timed, versions

DEPTH, DOCUMENTS, POOL = 1000, 8_841_823, 2500
METHODS = {
    "rrf": ("rrf", None, {}),
    "combmnz": ("mnz", "min-max", {}),
    "wsum(weights=[0.5, 0.3, 0.2])": ("wsum", "min-max", {"weights": [0.5, 0.3, 0.2]}),
    'combsum(norm="zscore")': ("sum", "zmuv", {}),
    "isr": ("isr", None, {}),
}
SAMPLE = 10


def columns(number: int, queries: int) -> tuple[np.ndarray, np.ndarray]:
    """Documents and scores of a run, int64 and float64[queries, DEPTH], best first and always the same."""
    shared, own = np.random.default_rng(99), np.random.default_rng(number)
    docs = np.empty((queries, DEPTH), np.int64)
    for q in range(queries):
        docs[q] = own.permutation(np.unique(shared.integers(0, DOCUMENTS, POOL)))[:DEPTH]
    steps = own.integers(1, 1000, (queries, DEPTH))
    return docs, steps[:, ::-1].cumsum(axis=1)[:, ::-1] / 64


def weirs(spec: dict[str, Any]) -> dict[str, Any]:
    """Times of Weir."""
    from weir.core.run import Run
    from weir.core.strings import Ids, Strings
    from weir.systems.fusion import fuse

    queries, one = spec["queries"], None
    if spec["tool"] == "weir-grid":
        one = Ids(Strings.of(map(str, range(DOCUMENTS))))
        one.tie_ranks  # noqa: B018 - an index has them already
    asked, runs = Ids.of([f"{q:05}" for q in range(queries)]), []
    for number in range(3):
        docs, scores = columns(number, queries)
        names, code = np.unique(docs, return_inverse=True)
        ids = one or Ids(Strings.of(map(str, names.tolist())))
        code = docs if one else code
        ptr = np.arange(0, queries * DEPTH + 1, DEPTH)
        own = asked if one else Ids(asked.strings)
        runs.append(Run(own, ids, ptr, code.ravel().astype(np.int32), scores.ravel()))
    found = {}
    for text in METHODS:
        kept: list[Run] = []

        def action(text: str = text, kept: list[Run] = kept) -> None:
            kept[:] = [fuse(runs, text)]

        found[text] = timed(action, spec["repeat"], budget=spec["budget"])
        found[text]["sample"] = _sample(kept[0])
    return {"times": found, "peak_mb": memory_mb("VmHWM"), "versions": versions("weir-ir", "numpy")}


def _sample(run: Any) -> dict[str, dict[str, float]]:
    names, found = run.queries.tolist(), {}
    for q in range(SAMPLE):
        rows = slice(int(run.ptr[q]), int(run.ptr[q + 1]))
        found[names[q]] = dict(
            zip(run.docs.strings.take(run.doc[rows]).tolist(), run.score[rows].tolist(), strict=True)
        )
    return found


def ranxs(spec: dict[str, Any]) -> dict[str, Any]:
    """Times of ranx."""
    from ranx import Run, fuse

    tiny = [Run.from_dict({"a": {"x": 1.0, "y": 0.5}}) for _ in range(3)]
    dicts = []
    for number in range(3):
        docs, scores = columns(number, spec["queries"])
        dicts.append(
            {
                f"{q:05}": dict(zip(map(str, d.tolist()), s.tolist(), strict=True))
                for q, (d, s) in enumerate(zip(docs, scores, strict=True))
            }
        )
    start = time.process_time()
    runs = [Run.from_dict(d) for d in dicts]
    made = time.process_time() - start
    del dicts
    found = {}
    for text, (method, norm, parameters) in METHODS.items():
        fuse(tiny, norm, method, parameters)  # compiles
        kept: list[Run] = []

        def action(how: Any = (norm, method, parameters), kept: list[Run] = kept) -> None:
            kept[:] = [fuse(runs, *how)]

        found[text] = timed(action, spec["repeat"], warm=0, budget=spec["budget"])
        found[text]["sample"] = {
            str(q): {str(d): float(s) for d, s in kept[0].run[q].items()}
            for q in (f"{n:05}" for n in range(SAMPLE))
        }
    return {
        "times": found,
        "make_cpu_seconds": made,
        "peak_mb": memory_mb("VmHWM"),
        "versions": versions("ranx", "numba"),
    }


def compared(record: dict[str, Any]) -> None:
    """Put how many times faster Weir is beside its times, and make sure that the scores agree."""
    peer = record.get("ranx", {}).get("times")
    for tool, found in record.items():
        if not isinstance(found, dict) or "times" not in found:
            continue
        for text, times in found["times"].items():
            sample = times.pop("sample") if tool != "ranx" else times["sample"]
            say(f"{tool:11s} {text:30s} {times['cpu_median']:8.3f} s cpu")
            if peer and tool != "ranx":
                worst = 0.0
                for query, ranking in peer[text]["sample"].items():
                    assert ranking.keys() == sample[query].keys(), (text, query)
                    worst = max(worst, *(abs(sample[query][d] - s) for d, s in ranking.items()))
                assert worst <= 1e-12, (text, worst)
                times |= {
                    "largest_difference": worst,
                    "times_faster_cpu": peer[text]["cpu_median"] / times["cpu_median"],
                }
                say(f"{times['times_faster_cpu']:.1f} times as fast as ranx")
    for times in (peer or {}).values():
        times.pop("sample")


def main() -> None:
    """Measure, print and append to results/fusion.jsonl."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--queries", type=int, default=700)
    parser.add_argument("--tools", default="weir-files,weir-grid,ranx")
    parser.add_argument("--peers", help="folder of virtual environments; ranx is PEERS/ranx")
    parser.add_argument("--core", type=int)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--budget", type=float, default=120.0)
    parser.add_argument("--no-record", action="store_true")
    options = parser.parse_args()
    if options.child:
        spec = json.loads(options.child)
        common.emit((ranxs if spec["tool"] == "ranx" else weirs)(spec))
        return
    common.pin(options.core)
    record: dict[str, Any] = {"machine": common.machine(), "queries": options.queries, "depth": DEPTH}
    for tool in options.tools.split(","):
        python = common.interpreter(options.peers, "ranx") if tool == "ranx" else sys.executable
        if python is None:
            say("ranx is not there: left out")
            continue
        spec = {
            "tool": tool,
            "queries": options.queries,
            "repeat": options.repeat,
            "budget": options.budget,
        }
        record[tool] = common.run_child(__file__, spec, python, timeout=1800)
        if "error" in record[tool]:
            say(tool, record[tool]["error"])
    compared(record)
    if not options.no_record:
        common.append("fusion", record)


if __name__ == "__main__":
    main()
