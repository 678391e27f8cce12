"""Whether another processor, Python or numpy gives the same bits: digests of what Weir computes from what it brings.

    python scripts/same_bits.py > here.jsonl                     a line for each task, with its digest
    python scripts/same_bits.py --against here.jsonl             exit code 1 where a digest is another
    qemu-aarch64-static -L ROOT ROOT/usr/bin/python3 scripts/same_bits.py --against here.jsonl

Tasks use the embedded collections and numbers drawn from a fixed seed. What is compared: every value of every measure,
rankings with their scores, files of indexes, p-values and intervals, near copies. Needs the extra `run`; without numba
the tasks that need it are left out, and say so.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import weir
from weir.core.corpus import Corpus
from weir.measures import MEASURES, Measure
from weir.systems.protocol import Context

COLLECTIONS = ("brook-news", "brook-facts", "brook-medical")
SYSTEMS = (
    "bm25",
    'bm25("elastic")',
    "rm3",
    "bm25f",
    "borda(bm25, rm3)",
    "rrf(bm25, rm3)",
    "bm25 >> score(rm3, depth=20)",
)


def digest(parts: Iterator[bytes]) -> str:
    """The hash of some bytes."""
    state = hashlib.blake2b(digest_size=8)
    for part in parts:
        state.update(part)
    return state.hexdigest()


def measured(geometric: bool) -> Callable[[], Iterator[bytes]]:
    """Every measure, in plain form and condensed, over drawn runs with ties, by query; geometric: those alone."""

    def task() -> Iterator[bytes]:
        rng = np.random.default_rng(5)
        documents = [f"d{n}" for n in range(60)]
        qrels = {
            f"q{q}": {d: int(g) for d, g in zip(documents, rng.integers(-1, 4, 60), strict=True)} | {"d0": 2}
            for q in range(40)
        }
        runs = {
            q: {d: float(s) for d, s in zip(documents, np.round(rng.standard_normal(60), 1), strict=True)}
            for q in qrels
        }
        for name in sorted(MEASURES):
            if Measure(name).geometric != geometric:
                continue
            for text in (f"{name}@10", name, f"condensed({name})"):
                try:
                    scores = weir.evaluate(qrels, runs, [text])
                except weir.WeirError as error:
                    yield str(error).encode()
                    continue
                yield from (scores.values.tobytes(), scores.low.tobytes(), scores.high.tobytes())
        for conventions in () if geometric else ("ties=expected", "ties=bounds", "ties=trec9"):
            yield weir.evaluate(qrels, runs, ["nDCG@10", "AP", "RR"], conventions).values.tobytes()

    return task


def searched(system: str) -> Callable[[], Iterator[bytes]]:
    """Rankings of a system, and the bytes of its index."""

    def task() -> Iterator[bytes]:
        for name in COLLECTIONS:
            dataset = weir.load(name)
            with tempfile.TemporaryDirectory(
                ignore_cleanup_errors=True
            ) as folder:  # Windows keeps mapped files
                searcher = weir.system(system).index(dataset.corpus, Context(Path(folder) / "index"))
                run = searcher.search(dataset.queries, 100)
                yield from (run.ptr.tobytes(), run.doc.tobytes(), run.score.tobytes())
                for path in sorted((Path(folder) / "index").rglob("*.npy")):
                    yield path.read_bytes()

    return task


def vectors() -> Iterator[bytes]:
    """Exact search of drawn vectors, float32 and bytes, and MaxSim."""
    from weir.models.batching import Ragged
    from weir.plugins.encoders.maxsim_search import search_tokens
    from weir.systems.vectors.exact_search import ArraySource, search
    from weir.systems.vectors.store import codec

    rng = np.random.default_rng(1)
    rows, queries = (rng.standard_normal((n, 96)).astype(np.float32) for n in (5000, 40))
    for name in ("fp32", "fp16", "bf16", "int8", "binary"):
        kind = codec(name)
        hits = search(ArraySource(kind.read(kind.write(rows), 96)), queries, 50)
        yield from (hits.doc.tobytes(), hits.score.tobytes())
    tokens = Ragged(np.arange(0, 5001, 10), rows)
    asked = Ragged(np.arange(0, 41, 8), queries)
    hits = search_tokens(tokens, asked, 50, np.arange(500, dtype=np.int32))
    yield from (hits.doc.tobytes(), hits.score.tobytes())


def compared(detectable: bool) -> Callable[[], Iterator[bytes]]:
    """Three systems compared: means, intervals, p-values with their corrections; or the detectable effects alone."""

    def task() -> Iterator[bytes]:
        rng = np.random.default_rng(2)
        qrels = {
            f"q{q}": {f"d{d}": int(rng.integers(0, 3)) for d in range(20)} | {"d0": 1} for q in range(60)
        }
        runs = {s: {q: {f"d{d}": float(rng.random()) for d in range(20)} for q in qrels} for s in "abc"}
        for result in weir.compare(qrels, runs, ["nDCG@10", "AP"]).to_dict()["results"]:
            effects = [pair.pop("detectable") for pair in result["pairs"]]
            yield json.dumps(effects if detectable else result).encode()

    return task


def audited() -> Iterator[bytes]:
    """Duplicates and near copies of drawn texts."""
    from weir.audit.duplicates import near_copies

    rng = np.random.default_rng(3)
    words = [f"word{n}" for n in range(300)]
    texts = [" ".join(rng.choice(words, 60)) for _ in range(300)]
    texts += [text.replace("word7 ", "word8 ") for text in texts[:100]]
    groups, leader, _ = near_copies(Corpus.of({f"d{n}": text for n, text in enumerate(texts)}))
    yield from (groups.number.tobytes(), leader.tobytes())


TASKS: dict[str, tuple[Callable[[], Iterator[bytes]], bool]] = {
    "measures": (measured(geometric=False), False),
    "geometric means": (measured(geometric=True), False),
    **{system: (searched(system), True) for system in SYSTEMS},
    "vectors": (vectors, True),
    "comparison": (compared(detectable=False), False),
    "detectable effects": (compared(detectable=True), False),
    "near copies": (audited, True),
}
"""By name: the task, and whether it needs numba."""


def main() -> int:
    """Print digests, and compare them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--against", type=Path, help="Lines that another processor printed.")
    given = parser.parse_args()
    compiled = importlib.util.find_spec("numba") is not None
    known = {}
    if given.against is not None:
        known = {line["task"]: line["digest"] for line in map(json.loads, given.against.open())}
    where = f"{platform.machine()}, Python {platform.python_version()}, numpy {np.__version__}"
    others = 0
    for name, (task, needs_numba) in TASKS.items():
        if needs_numba and not compiled:
            print(json.dumps({"task": name, "left out": "needs numba"}), flush=True)
            continue
        begun = time.perf_counter()
        line = {"task": name, "digest": digest(task()), "where": where}
        line["seconds"] = round(time.perf_counter() - begun, 1)
        if name in known:
            line["same"] = line["digest"] == known[name]
            others += not line["same"]
        print(json.dumps(line), flush=True)
    return 1 if others else 0


if __name__ == "__main__":
    sys.exit(main())
