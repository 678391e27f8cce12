"""Scoring a run in every format with eight measures, from the file to per-query values: Weir beside what people do.

    python benchmarks/formats_bench.py [--shape a] [--work FOLDER] [--core 1] [--repeat 5] [--jobs PART,PART] [--quick]

The runs are those of score_run.py (shape a: 6,980 queries x 1,000 documents, seven million rows), written by Weir in each
format. Beside it, as their users write it: pytrec_eval's own readers (TREC), json and pytrec_eval (JSON), polars to dicts
to pytrec_eval (Parquet, CSV). Each job runs in a process of its own with one thread; peak memory is that of the first
scoring, imports included; seconds are medians after it. Every value must equal those from TREC to 1e-12.
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
import score_run
from common import memory_mb, say, timed, versions

JOBS = (
    *(
        f"weir {ending}"
        for ending in ("trec", "csv", "tsv", "json", "parquet", "arrow", "trec.gz", "trec.zst")
    ),
    *(f"weir-numpy {ending}" for ending in ("trec", "csv", "parquet", "arrow")),
    "pytrec_eval trec",
    "json+pytrec_eval json",
    "polars+pytrec_eval parquet",
    "polars+pytrec_eval csv",
)


def make(shape: str, folder: Path) -> None:
    """The run of a shape in every format."""
    from weir.files.runs import read_run
    from weir.files.write import write_run

    score_run.make(shape, folder)
    endings = {job.split()[1] for job in JOBS} - {"trec"}
    missing = [ending for ending in sorted(endings) if not (folder / f"run.{ending}").exists()]
    if missing:
        run = read_run(folder / "run.trec")
        for ending in missing:
            began = time.process_time()
            write_run(run, folder / f"run.{ending}")
            say(f"wrote run.{ending} in {time.process_time() - began:.1f} s")


def by_weir(path: Path, engine: str) -> dict[str, Any]:
    """{measure: values} and the queries, by Weir."""
    from weir.files.runs import join_run_file, read_qrels
    from weir.measures import measures_of, scores_of

    judged = join_run_file(path, read_qrels(path.with_name("qrels.trec")), "trec9", engine)
    scores = scores_of(judged, measures_of(list(score_run.MEASURES)))
    return {"queries": scores.queries.tolist(), "values": scores.values}


def by_pytrec_eval(path: Path, reader: str) -> dict[str, Any]:
    """The same by pytrec_eval, on the dicts it needs."""
    import pytrec_eval

    with path.with_name("qrels.trec").open() as file:
        qrels = pytrec_eval.parse_qrel(file)
    if reader == "polars":
        import polars as pl

        ids = {"query_id": pl.String, "doc_id": pl.String}
        frame = (
            pl.read_parquet(path) if path.suffix == ".parquet" else pl.read_csv(path, schema_overrides=ids)
        )
        run: dict[str, dict[str, float]] = {}
        for (query,), rows in frame.group_by(["query_id"], maintain_order=True):
            run[query] = dict(zip(rows["doc_id"].to_list(), rows["score"].to_list(), strict=True))
    else:
        with path.open() as file:
            run = json.load(file) if reader == "json" else pytrec_eval.parse_run(file)
    wanted = {"ndcg_cut.10,100", "map_cut.1000", "recall.100,1000", "P.10", "recip_rank", "success.10"}
    found = pytrec_eval.RelevanceEvaluator(qrels, wanted).evaluate(run)
    rows = [[row[name] for row in found.values()] for name in score_run.MEASURES.values()]
    return {"queries": list(found), "values": np.array(rows)}


def child(spec: dict[str, Any]) -> None:
    """One job: the first scoring, the repetitions, and the values to a file."""
    tool, ending = spec["job"].split()
    path = Path(spec["folder"]) / f"run.{ending}"

    def action() -> dict[str, Any]:
        if tool.startswith("weir"):
            return by_weir(path, "numpy" if tool.endswith("numpy") else "auto")
        return by_pytrec_eval(path, tool.partition("+")[0])

    began = time.perf_counter()
    found = action()
    first, peak = time.perf_counter() - began, memory_mb("VmHWM")
    np.save(spec["values"], found["values"][:, np.argsort(found["queries"])])
    del found
    seconds = timed(action, spec["repeat"], warm=0, budget=spec["budget"])
    common.emit(
        {"first": first, "seconds": seconds, "peak_mb": peak, "file_mb": path.stat().st_size / 2**20}
        | {"versions": versions("weir-ir", "numpy", "numba", "pyarrow", "polars", "pytrec_eval-terrier")}
    )


def main() -> None:
    """Make the files, measure, print and append to results/formats.jsonl."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--shape", default="a")
    parser.add_argument("--jobs", help="some of the jobs, by a part of their names, with commas")
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "weir-score-run")
    parser.add_argument("--core", type=int)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--budget", type=float, default=240.0)
    parser.add_argument("--quick", action="store_true", help="shape c, twice, nothing recorded")
    options = parser.parse_args()
    if options.child:
        child(json.loads(options.child))
        return
    common.pin(options.core)
    shape, repeat = ("c", 2) if options.quick else (options.shape, options.repeat)
    folder = options.work / shape
    make(shape, folder)
    wanted = [job for job in JOBS if not options.jobs or any(part in job for part in options.jobs.split(","))]
    record: dict[str, Any] = {
        "shape": shape,
        "machine": common.machine(),
        "measures": list(score_run.MEASURES),
    }
    truth = None
    for job in wanted:
        values = folder / "formats.npy"
        spec = {"job": job, "folder": str(folder), "values": str(values), "repeat": repeat}
        found = record[job] = common.run_child(__file__, spec | {"budget": options.budget}, sys.executable)
        if "error" in found:
            say(job, found["error"])
            continue
        truth = np.load(values) if truth is None else truth
        found["largest_difference"] = float(np.abs(np.load(values) - truth).max())
        assert found["largest_difference"] <= 1e-12, job
        seconds = found["seconds"]
        say(
            f"{job:28s} {seconds['cpu_median']:7.2f} s of the processor  {seconds['median']:7.2f} s wall"
            f"  {found['peak_mb']:6.0f} MB  file {found['file_mb']:5.0f} MB"
        )
    if not options.quick:
        common.append("formats", record)


if __name__ == "__main__":
    main()
