"""Scoring rankings that are in memory, per query: Weir beside ranx, pytrec_eval and ir_measures.

    python benchmarks/measures_bench.py [--peers FOLDER] [--core 1] [--repeat 5] [--queries 6980] [--tools weir,ranx]
    python benchmarks/measures_bench.py --dicts 2x10 300x100 1000x1000 [--peers FOLDER] [--core 1] [--repeat 5]

`--dicts` (queries x documents): every tool starts from the same dicts of dicts and gives the values of three measures
for each query, all it makes of them included, as whoever calls it in a training loop sees it; 20 judgments a query,
half of them of returned documents, about 1% of neighbouring scores tie. Weir and pytrec_eval must agree to 1e-12 where
scores as floats and as doubles order alike; `weir lists` and `weir frames` are the same rankings in rank order and in a
pandas frame. One process for each tool and size; medians of `--repeat` times some calls. Without `--dicts`:

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
    from weir.core.judged import Judged
    from weir.core.qrels import Qrels
    from weir.core.run import Named, Run
    from weir.core.strings import HashIndex, Ids, Strings
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
    score, grade, wanted = (
        data["score"].ravel(),
        np.ones(len(judged_doc), np.int64),
        measures_of(list(MEASURES)),
    )
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
        note("measures alone", lambda judged=judged: [m.per_query(judged) for m in wanted])
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


DICT_MEASURES = {  # Weir and ir_measures, pytrec_eval, ranx
    "nDCG@10": ("ndcg_cut_10", "ndcg@10"),
    "R@100": ("recall_100", "recall@100"),
    "AP@1000": ("map_cut_1000", "map@1000"),
}
DICT_TOOLS = ("weir", "weir lists", "weir frames", "pytrec_eval", "ranx", "ir_measures")


def small_dicts(queries: int, depth: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Rankings and judgments as dicts, always the same: 20 judgments a query, half of them of returned documents."""
    rng = np.random.default_rng(11)
    run, qrels = {}, {}
    for q in range(queries):
        names = [f"{d:07d}" for d in rng.choice(DOCUMENTS, depth + 10, replace=False)]
        score = np.float32(np.sort(rng.gamma(3.0, 2.2, depth))[::-1] + 4.0).astype(float)
        tie = np.flatnonzero(rng.random(depth - 1) < 0.01)
        score[tie + 1] = score[tie]
        ranked = dict(zip(names, np.sort(score)[::-1].tolist(), strict=False))
        judged = [*rng.choice(names[:depth], min(10, depth), replace=False), *names[depth:]]
        run[f"q{q}"] = ranked
        qrels[f"q{q}"] = {
            str(name): int(g) for name, g in zip(judged, rng.integers(0, 4, len(judged)), strict=True)
        }
    return run, qrels


def dict_call(tool: str, run: dict[str, Any], qrels: dict[str, Any]) -> Any:
    """A function that scores the dicts from the beginning and gives the values of each measure by query."""
    if tool.startswith("weir"):
        import weir as library

        wanted = list(DICT_MEASURES)
        if tool == "weir lists":
            run = {query: list(ranking) for query, ranking in run.items()}
        if tool == "weir frames":
            import pandas as pd

            rows = [(q, d, v) for q, row in run.items() for d, v in row.items()]
            judged = [(q, d, v) for q, row in qrels.items() for d, v in row.items()]
            run = pd.DataFrame(rows, columns=["query", "doc", "score"])
            qrels = pd.DataFrame(judged, columns=["query", "doc", "grade"])
        return lambda: library.evaluate(qrels, run, wanted).values
    if tool == "pytrec_eval":
        import pytrec_eval as library

        names = {"ndcg_cut.10", "recall.100", "map_cut.1000"}

        def by_pytrec_eval() -> Any:
            found = library.RelevanceEvaluator(qrels, names).evaluate(run)
            return [[found[q][name] for q in qrels] for name, _ in DICT_MEASURES.values()]

        return by_pytrec_eval
    if tool == "ranx":
        from ranx import Qrels, Run, evaluate

        names = [name for _, name in DICT_MEASURES.values()]
        order = np.argsort(np.argsort(list(qrels)))  # it sorts the queries by name

        def by_ranx() -> Any:
            found = evaluate(Qrels(qrels), Run(run), names, return_mean=False)
            return [np.asarray(found[name])[order] for name in names]

        return by_ranx
    import ir_measures as library

    measures = [library.parse_measure(name) for name in DICT_MEASURES]

    def by_ir_measures() -> Any:
        found = {(m.query_id, m.measure): m.value for m in library.iter_calc(measures, qrels, run)}
        return [[found[q, measure] for q in qrels] for measure in measures]

    return by_ir_measures


def dict_child(spec: dict[str, Any]) -> None:
    """One tool from dicts of one size: its times, its values to a file."""
    run, qrels = small_dicts(*spec["size"])
    call = dict_call(spec["tool"], run, qrels)
    values, begun = np.asarray(call()), time.process_time()  # the first call may compile
    call()
    calls = max(1, min(200, int(0.05 / max(time.process_time() - begun, 1e-6))))
    times = common.timed(lambda: [call() for _ in range(calls)], spec["repeat"], budget=120.0)
    np.save(spec["values"], values)
    each = {key: value / calls for key, value in times.items() if key != "n"} | {
        "n": times["n"],
        "calls": calls,
    }
    common.emit(
        {
            "seconds": each,
            "versions": versions("weir-ir", "numpy", "ranx", "ir_measures", "pytrec_eval-terrier"),
        }
    )


def from_dicts(options: argparse.Namespace) -> None:
    """Every tool on dicts of every size; a line for each size."""
    for size in options.dicts:
        record: dict[str, Any] = {"dicts": size, "machine": common.machine(), "measures": list(DICT_MEASURES)}
        values = {}
        with tempfile.TemporaryDirectory() as folder:
            for tool in DICT_TOOLS if options.tools is None else options.tools.split(","):
                python = common.interpreter(options.peers, tool) or sys.executable
                file = Path(folder) / f"{tool.replace(' ', '-')}.npy"
                spec = {"tool": tool, "size": list(map(int, size.split("x"))), "repeat": options.repeat}
                record[tool] = common.run_child(__file__, spec | {"values": str(file), "dicts": True}, python)
                if "error" in record[tool]:
                    say(tool, record[tool]["error"])
                    continue
                values[tool] = np.load(file)
                say(f"{size:10s} {tool:12s} {record[tool]['seconds']['cpu_median'] * 1e3:9.3f} ms")
        for tool in {"weir frames", "pytrec_eval"} & set(values) if "weir" in values else ():
            record[tool]["largest_difference"] = float(np.abs(values[tool] - values["weir"]).max())
            assert record[tool]["largest_difference"] <= 1e-12, f"{tool} has other values than weir"
        if not options.no_record:
            common.append("measures", record)


def child(spec: dict[str, Any]) -> None:
    """One tool: its times, its peak memory, its values to a file."""
    if "dicts" in spec:
        dict_child(spec)
        return
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
    parser.add_argument("--tools", help="which, comma-separated; by default all")
    parser.add_argument("--dicts", nargs="*", default=[], metavar="QUERIESxDOCUMENTS", help="from dicts")
    parser.add_argument("--queries", type=int, default=QUERIES)
    parser.add_argument("--core", type=int)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--no-record", action="store_true")
    options = parser.parse_args()
    if options.child:
        child(json.loads(options.child))
        return
    common.pin(options.core)
    if options.dicts:
        from_dicts(options)
        return
    record: dict[str, Any] = {
        "queries": options.queries,
        "machine": common.machine(),
        "measures": list(MEASURES),
    }
    values = {}
    with tempfile.TemporaryDirectory() as folder:
        for tool in TOOLS if options.tools is None else options.tools.split(","):
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
