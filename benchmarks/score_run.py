"""Scoring a TREC run file with eight measures, from the files to per-query values: Weir beside pytrec_eval.

    python benchmarks/score_run.py [--shapes b,c,a] [--work FOLDER] [--core 1] [--repeat 5] [--peers FOLDER]

Shapes: a  6,980 queries x 1,000 documents, 7,437 judgments (MS MARCO dev)     b  50 x 1,000, 66,336 judgments
(TREC-COVID)     c  10,000 x 100, 15,675 judgments (Quora). Files are made once in the work folder; about 1% of
neighbouring scores tie. Each tool runs in a process of its own: its peak memory is that of the first scoring,
imports included; `first` is its time, compiled kernels loaded; the medians are of the repetitions after it.
pytrec_eval compares scores as floats, so Weir does too here (ties="trec9"): the values must be the same to 1e-12.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import common
from common import memory_mb, say, timed, versions

# queries, documents each, documents in the collection, judgments, highest grade, identifiers are numbers
SHAPES = {
    "a": (6980, 1000, 8_841_823, 7_437, 1, True),
    "b": (50, 1000, 171_332, 66_336, 2, False),
    "c": (10_000, 100, 522_931, 15_675, 1, True),
    "t": (20, 30, 5_000, 60, 1, True),  # for tests
}
MEASURES = {
    "nDCG@10": "ndcg_cut_10",
    "nDCG@100": "ndcg_cut_100",
    "AP@1000": "map_cut_1000",
    "R@100": "recall_100",
    "R@1000": "recall_1000",
    "P@10": "P_10",
    "RR": "recip_rank",
    "Success@10": "success_10",
}
TOOLS = ("weir-numba", "weir-numpy", "weir-auto", "pytrec_eval")
_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"


def make(shape: str, folder: Path) -> None:
    """Write run.trec and qrels.trec of a shape, always the same."""
    if (folder / "qrels.trec").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    queries, depth, docs, judged, top_grade, numbers = SHAPES[shape]
    rng = np.random.default_rng(ord(shape))
    letters = None if numbers else np.array(list(_LETTERS))[rng.integers(0, 36, (docs, 8))].view("U8")[:, 0]
    names = np.sort(rng.choice(1_200_000, queries, replace=False)).tolist()
    per_query = np.ones(queries, np.int64) + rng.multinomial(judged - queries, np.full(queries, 1 / queries))
    qrels = []
    with (folder / "run.trec").open("w", encoding="utf-8") as run:
        for query, count in zip(names, per_query.tolist(), strict=True):
            ranked = rng.permutation(rng.choice(docs, depth + count // 2 + 1, replace=False))
            # Half of the judged documents are ranked, more of them near the top.
            places = np.minimum((depth ** rng.random(count - count // 2)).astype(int), depth) - 1
            relevant = np.unique(np.concatenate([ranked[places], ranked[depth : depth + count // 2]]))
            grade = rng.integers(0 if top_grade > 1 else 1, top_grade + 1, len(relevant)).tolist()
            score = np.round(np.sort(rng.gamma(3.0, 2.2, depth))[::-1] + 4.0, 6)
            tie = np.flatnonzero(rng.random(depth - 1) < 0.01)
            score[tie + 1] = score[tie]
            score = np.maximum.accumulate(score[::-1])[::-1].tolist()
            text = (letters[ranked] if letters is not None else ranked.astype(str)).tolist()
            run.writelines(
                f"{query} Q0 {d} {i} {s:.6f} bm25\n"
                for i, (d, s) in enumerate(zip(text[:depth], score, strict=True), 1)
            )
            ids = (letters[relevant] if letters is not None else relevant.astype(str)).tolist()
            qrels += [f"{query} 0 {d} {g}\n" for d, g in zip(ids, grade, strict=True)]
    (folder / "qrels.trec").write_text("".join(qrels), encoding="utf-8")


def score_with_weir(folder: Path, engine: str) -> dict[str, Any]:
    """{measure: values} and the queries, by Weir."""
    from weir.files.runs import join_run_file, read_qrels
    from weir.measures import measures_of, scores_of

    judged = join_run_file(folder / "run.trec", read_qrels(folder / "qrels.trec"), "trec9", engine)
    scores = scores_of(judged, measures_of(list(MEASURES)))
    return {"queries": scores.queries.tolist(), "values": scores.values}


def score_with_pytrec_eval(folder: Path) -> dict[str, Any]:
    """The same by pytrec_eval, as its users write it; the arrays are made from its dicts."""
    import pytrec_eval

    with (folder / "qrels.trec").open() as file:
        qrels = pytrec_eval.parse_qrel(file)
    with (folder / "run.trec").open() as file:
        run = pytrec_eval.parse_run(file)
    wanted = {"ndcg_cut.10,100", "map_cut.1000", "recall.100,1000", "P.10", "recip_rank", "success.10"}
    found = pytrec_eval.RelevanceEvaluator(qrels, wanted).evaluate(run)
    rows = [[row[name] for row in found.values()] for name in MEASURES.values()]
    return {"queries": list(found), "values": np.array(rows)}


def child(spec: dict[str, Any]) -> None:
    """One tool on one shape: the first scoring, the repetitions, and the values to a file."""
    folder, tool = Path(spec["folder"]), spec["tool"]
    action = (
        (lambda: score_with_pytrec_eval(folder))
        if tool == "pytrec_eval"
        else (lambda: score_with_weir(folder, tool.removeprefix("weir-")))
    )
    began = time.perf_counter()
    found = action()
    first, peak = time.perf_counter() - began, memory_mb("VmHWM")
    order = np.argsort(found["queries"])
    np.save(spec["values"], found["values"][:, order])
    del found
    seconds = timed(action, spec["repeat"], warm=0, budget=spec["budget"])
    common.emit(
        {"first": first, "seconds": seconds, "peak_mb": peak}
        | {"versions": versions("weir-ir", "numpy", "numba", "pytrec_eval-terrier")}
    )


def measure(shape: str, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """All tools on one shape, and whether they agree."""
    record: dict[str, Any] = {"shape": shape, "machine": common.machine(), "measures": list(MEASURES)}
    values = {}
    for tool in options.tools.split(","):
        python = (tool == "pytrec_eval" and common.interpreter(options.peers, tool)) or sys.executable
        file = folder / f"{tool}.npy"
        spec = {"tool": tool, "folder": str(folder), "values": str(file), "repeat": options.repeat}
        record[tool] = common.run_child(__file__, spec | {"budget": options.budget}, python)
        if "error" in record[tool]:
            say(shape, tool, record[tool]["error"])
            continue
        values[tool] = np.load(file)
        say(
            f"{shape} {tool:12s} {record[tool]['seconds']['median']:8.3f} s  {record[tool]['peak_mb']:6.0f} MB"
        )
    if "pytrec_eval" in values:
        peer = record["pytrec_eval"]
        for tool, found in values.items():
            record[tool] |= {
                "largest_difference": float(np.abs(found - values["pytrec_eval"]).max()),
                "times_faster": peer["seconds"]["median"] / record[tool]["seconds"]["median"],
                "times_faster_cpu": peer["seconds"]["cpu_median"] / record[tool]["seconds"]["cpu_median"],
                "share_of_memory": record[tool]["peak_mb"] / peer["peak_mb"],
            }
            assert record[tool]["largest_difference"] <= 1e-12, (shape, tool)
    return record


def main() -> None:
    """Make the files, measure, print and append to results/score_run.jsonl."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--shapes", default="b,c,a")
    parser.add_argument("--tools", default=",".join(TOOLS))
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "weir-score-run")
    parser.add_argument("--peers", help="folder of virtual environments; without it pytrec_eval is our own")
    parser.add_argument("--core", type=int)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--budget", type=float, default=240.0)
    parser.add_argument("--no-record", action="store_true")
    options = parser.parse_args()
    if options.child:
        child(json.loads(options.child))
        return
    common.pin(options.core)
    for shape in options.shapes.split(","):
        make(shape, options.work / shape)
        record = measure(shape, options.work / shape, options)
        if not options.no_record:
            common.append("score_run", record)
        for tool in options.tools.split(","):
            keys = ("times_faster", "times_faster_cpu", "share_of_memory", "largest_difference")
            say(shape, tool, {k: float(f"{record[tool][k]:.3g}") for k in keys if k in record[tool]})


if __name__ == "__main__":
    main()
