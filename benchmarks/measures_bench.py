"""Scoring rankings that are in memory with eight measures, per query: Weir beside ranx and pytrec_eval.

    python benchmarks/measures_bench.py [--peers FOLDER] [--core 1] [--repeat 5] [--queries 6980] [--tools weir,ranx]

6,980 queries x 1,000 documents of 8,841,823 and 7,437 judgments, as MS MARCO dev; about 1% of neighbouring scores tie.
Weir starts from arrays (query, document and score of each row, and the identifiers), the peers from dicts of dicts,
which is what they take. `make` turns that into what is measured: Weir's Run and Qrels, ranx's Run and Qrels,
pytrec_eval's evaluator. `join` looks the judged documents up, which in the peers is part of `measure`: eight measures
with their values for each query. Weir's also says which of them ties could change. ranx compiles on a few queries
first. Each tool runs in a process of its own with one thread; its peak memory is that of all it does, its input
included. pytrec_eval compares scores as floats, so Weir does too: the values must be the same to 1e-12. ranx breaks
ties in another way: how many values differ is recorded.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import common
from common import memory_mb, say, summary, versions

DEPTH, DOCUMENTS, JUDGMENTS, QUERIES = 1000, 8_841_823, 7_437, 6_980
MEASURES = {  # Weir, pytrec_eval, ranx
    "nDCG@10": ("ndcg_cut_10", "ndcg@10"),
    "nDCG@100": ("ndcg_cut_100", "ndcg@100"),
    "AP@1000": ("map_cut_1000", "map@1000"),
    "R@100": ("recall_100", "recall@100"),
    "R@1000": ("recall_1000", "recall@1000"),
    "P@10": ("P_10", "precision@10"),
    "RR": ("recip_rank", "mrr"),
    "Success@10": ("success_10", "hit_rate@10"),
}
TOOLS = ("weir", "ranx", "pytrec_eval")
Arrays = dict[str, np.ndarray]


def arrays(queries: int) -> Arrays:
    """Rankings and judgments as columns, always the same: doc[queries, depth], score, and judged (query, document)."""
    rng = np.random.default_rng(7)
    start, step = rng.integers(0, DOCUMENTS, queries), 2 * rng.integers(1, DOCUMENTS // 4, queries) + 1
    doc = (start[:, None] + step[:, None] * np.arange(DEPTH)) % DOCUMENTS
    score = np.round(np.sort(rng.gamma(3.0, 2.2, (queries, DEPTH)), axis=1)[:, ::-1] + 4.0, 6)
    tie = rng.random((queries, DEPTH)) < 0.01
    for rank in range(1, DEPTH):
        score[:, rank] = np.where(
            tie[:, rank], score[:, rank - 1], np.minimum(score[:, rank - 1], score[:, rank])
        )
    query = np.repeat(np.arange(queries), 1 + rng.multinomial(JUDGMENTS * queries // QUERIES - queries,
                                                               np.full(queries, 1 / queries)))  # fmt: skip
    place = np.minimum((DEPTH ** rng.random(len(query))).astype(int), DEPTH) - 1
    found = rng.random(len(query)) < 0.5  # half of the judged documents are ranked, more of them near the top
    pair = np.unique(
        query * DOCUMENTS + np.where(found, doc[query, place], rng.integers(0, DOCUMENTS, len(query)))
    )
    return {"doc": doc, "score": score, "judged_query": pair // DOCUMENTS, "judged_doc": pair % DOCUMENTS}


def as_dicts(data: Arrays) -> tuple[dict[str, Any], dict[str, Any]]:
    """The same as {query: {document: score}} and {query: {document: grade}}."""
    run = {
        f"q{q}": dict(zip((f"{d:07d}" for d in doc), score, strict=True))
        for q, (doc, score) in enumerate(zip(data["doc"].tolist(), data["score"].tolist(), strict=True))
    }
    qrels: dict[str, Any] = {}
    for q, d in zip(data["judged_query"].tolist(), data["judged_doc"].tolist(), strict=True):
        qrels.setdefault(f"q{q}", {})[f"{d:07d}"] = 1
    return run, qrels


class Steps:
    """Times of the steps of a tool, repetition by repetition."""

    def __init__(self) -> None:
        self.wall: dict[str, list[float]] = {}
        self.cpu: dict[str, list[float]] = {}

    def __call__(self, name: str, action: Any) -> Any:
        """What the action returns, its times noted."""
        wall, cpu = time.perf_counter(), time.process_time()
        value = action()
        self.cpu.setdefault(name, []).append(time.process_time() - cpu)
        self.wall.setdefault(name, []).append(time.perf_counter() - wall)
        return value

    def summary(self) -> dict[str, Any]:
        """Medians of each step."""
        return {name: summary(self.wall[name], self.cpu[name]) for name in self.wall}


def weir(data: Arrays, steps: Steps, repeat: int) -> np.ndarray:
    """Weir from arrays; documents are numbered as in the collection, whose table of identifiers is indexed.

    So it is after a search in a store. `join unindexed`: with the table as it is after reading another format.
    """
    from weir.core.ids import HashIndex, Ids
    from weir.core.judged import Judged
    from weir.core.qrels import Qrels
    from weir.core.run import Named, Run
    from weir.core.strings import Strings
    from weir.measures import measures_of, scores_of

    count = len(data["doc"])
    queries = Ids(Strings.of(f"q{q}" for q in range(count)))
    digits = np.arange(DOCUMENTS)[:, None] // 10 ** np.arange(6, -1, -1) % 10 + ord("0")
    names = Strings(digits.astype(np.uint8).ravel(), np.arange(DOCUMENTS + 1) * 7)
    del digits
    index = HashIndex.of(names)
    docs, unindexed = Ids(names, lambda: index), Ids(names)
    judged_codes, judged_doc = np.unique(data["judged_doc"], return_inverse=True)
    judged_docs = Ids(names.take(judged_codes))
    query, doc = np.repeat(np.arange(count, dtype=np.int32), DEPTH), data["doc"].ravel().astype(np.int32)
    score, grade, wanted = data["score"].ravel(), np.ones(len(judged_doc), np.int64), measures_of(MEASURES)
    for turn in range(repeat + 1):
        note = Steps() if turn == 0 else steps
        run = note("make", lambda: Run.from_columns(queries, docs, query, doc, score, Named(ties="trec9")))
        qrels = note(
            "make judgments",
            lambda: Qrels.from_columns(queries, judged_docs, data["judged_query"], judged_doc, grade),
        )
        judged = note("join", lambda run=run, qrels=qrels: Judged.of(run, qrels))
        other = replace(run, docs=unindexed)
        note("join unindexed", lambda run=other, qrels=qrels: Judged.of(run, qrels))
        note("measures alone", lambda judged=judged: [m(judged) for m in wanted])
        scores = note("measure", lambda judged=judged: scores_of(judged, wanted))
    return scores.values


def ranx(data: Arrays, steps: Steps, repeat: int) -> np.ndarray:
    """Ranx from dicts; it compiles first, on 20 queries."""
    from ranx import Qrels, Run, evaluate

    run, qrels = as_dicts(data)
    names = [name for _, name in MEASURES.values()]
    few = list(qrels)[:20]
    evaluate(Qrels({q: qrels[q] for q in few}), Run({q: run[q] for q in few}), names, return_mean=False)
    for _ in range(repeat):
        made = steps("make", lambda: Run(run))
        judged = steps("make judgments", lambda: Qrels(qrels))
        found = steps("measure", lambda a=judged, b=made: evaluate(a, b, names, return_mean=False))
    order = np.argsort(np.argsort(list(qrels)))  # it sorts the queries by name
    return np.stack([np.asarray(found[name])[order] for name in names])


def pytrec_eval(data: Arrays, steps: Steps, repeat: int) -> np.ndarray:
    """pytrec_eval from dicts."""
    import pytrec_eval as tool

    run, qrels = as_dicts(data)
    wanted = {"ndcg_cut.10,100", "map_cut.1000", "recall.100,1000", "P.10", "recip_rank", "success.10"}
    for _ in range(repeat):
        evaluator = steps("make judgments", lambda: tool.RelevanceEvaluator(qrels, wanted))
        found = steps("measure", lambda e=evaluator: e.evaluate(run))
    return np.array([[found[q][name] for q in qrels] for name, _ in MEASURES.values()])


def child(spec: dict[str, Any]) -> None:
    """One tool: its times, its peak memory, its values to a file."""
    steps = Steps()
    values = globals()[spec["tool"]](arrays(spec["queries"]), steps, spec["repeat"])
    np.save(spec["values"], values)
    common.emit(
        {"seconds": steps.summary(), "peak_mb": memory_mb("VmHWM")}
        | {"versions": versions("weir-ir", "numpy", "ranx", "numba", "pytrec_eval-terrier")}
    )


def compared(record: dict[str, Any], values: dict[str, np.ndarray]) -> None:
    """Ratios of times, by the processor's seconds, and differences of values, into the record."""
    mine = {name: step["cpu_median"] for name, step in record["weir"]["seconds"].items()}
    for tool, found in values.items():
        if tool == "weir":
            continue
        theirs = sum(step["cpu_median"] for step in record[tool]["seconds"].values())
        away = np.abs(found - values["weir"])
        record[tool] |= {
            "weir_faster": theirs / (mine["join"] + mine["measure"]),
            "weir_faster_unindexed": theirs / (mine["join unindexed"] + mine["measure"]),
            "weir_faster_with_make": theirs
            / (mine["make"] + mine["make judgments"] + mine["join"] + mine["measure"]),
            "largest_difference": float(away.max()),
            "values_that_differ": int((away > 1e-12).sum()),
        }
        assert tool != "pytrec_eval" or record[tool]["largest_difference"] <= 1e-12


def main() -> None:
    """Measure, print and append to results/measures.jsonl."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument(
        "--peers", help="folder of virtual environments; a peer that is not there is left out"
    )
    parser.add_argument("--tools", default=",".join(TOOLS))
    parser.add_argument("--queries", type=int, default=QUERIES)
    parser.add_argument("--core", type=int)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--no-record", action="store_true")
    options = parser.parse_args()
    if options.child:
        child(json.loads(options.child))
        return
    common.pin(options.core)
    record: dict[str, Any] = {
        "queries": options.queries,
        "machine": common.machine(),
        "measures": list(MEASURES),
    }
    values = {}
    with tempfile.TemporaryDirectory() as folder:
        for tool in options.tools.split(","):
            python = common.interpreter(options.peers, tool) or sys.executable
            file = Path(folder) / f"{tool}.npy"
            spec = {"tool": tool, "queries": options.queries, "repeat": options.repeat, "values": str(file)}
            record[tool] = common.run_child(__file__, spec, python, timeout=1800)
            if "error" in record[tool]:
                say(tool, record[tool]["error"])
                continue
            values[tool] = np.load(file)
            times = {name: round(s["cpu_median"], 4) for name, s in record[tool]["seconds"].items()}
            say(f"{tool:12s} {record[tool]['peak_mb']:6.0f} MB  {times}")
    if "weir" in values:
        compared(record, values)
    for tool in values:
        say(
            tool,
            {k: v for k, v in record[tool].items() if k.startswith(("weir_faster", "largest", "values_"))},
        )
    if not options.no_record:
        common.append("measures", record)


if __name__ == "__main__":
    main()
