"""A re-ranker that needs no model, and a process that re-ranks with it and kills itself on the way.

    python -m tests.unit.pair_place COLLECTION RESULTS LOG WINDOWS

The log gets a line for each pair scored; after so many windows of pairs the process kills itself (0: never).
"""

from __future__ import annotations

import json
import os
import signal
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np

from weir.systems.protocol import RERANKERS
from weir.systems.rerank.reranking import PairScorer

WINDOW = 16


@dataclass(eq=False)
class Readers:
    """A model of pairs whose score is a hash of both texts; it notes what it was asked."""

    log: Path | None = None
    dies: int = 0
    asked: list[tuple[str, str]] = field(default_factory=list)
    windows: int = 0
    bad: float | None = None
    batch_independent: bool = True
    device: str = "cpu"

    def scores(self, pairs, done=None) -> Iterator[np.ndarray]:
        source, finished = iter(pairs), 0
        while window := list(islice(source, WINDOW)):
            if self.windows == self.dies - 1:
                os.kill(os.getpid(), signal.SIGKILL)
            self.windows += 1
            self.asked += window
            found = np.array([score(*pair) for pair in window], np.float32)
            if self.bad is not None:
                found[-1] = self.bad
            finished += len(window)
            if self.log is not None:
                with self.log.open("a", encoding="utf-8") as file:
                    file.write("".join(f"{json.dumps(pair)}\n" for pair in window))
            if done is not None:
                done(finished)
            yield found


def score(query: str, document: str) -> float:
    return zlib.crc32(f"{query}|{document}".encode()) / 2**32


@dataclass(frozen=True)
class Hashed:
    """The re-ranker."""

    depth: int = 100
    name: str = "hashed"
    model: Readers = field(default_factory=Readers, compare=False)

    def __str__(self) -> str:
        return f"hashed(depth={self.depth})"

    def describe(self):
        return {"reranker": str(self), "depth": self.depth}

    def ready(self, corpus, context=None):
        return PairScorer(str(self), self.model, {"model": self.name, "device": "cpu"}, corpus)


def collection(folder: Path, documents: int = 300, queries: int = 40) -> Path:
    """A collection in which every query matches most documents."""
    rng = np.random.default_rng(1)
    words = ["river", "dam", "weir", "bread", "meadow", "oven", "flood", "copy"]
    (folder / "qrels").mkdir(parents=True)
    texts = [
        {"_id": f"d{n}", "title": "", "text": " ".join(rng.choice(words, 9)) + f" {n}"}
        for n in range(documents)
    ]
    asked = [
        {"_id": f"q{n}", "text": " ".join(rng.choice(words, 3, False)) + f" {n}"} for n in range(queries)
    ]
    for name, rows in (("corpus", texts), ("queries", asked)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    rows = [f"q{n}\td{rng.integers(documents)}\t1\n" for n in range(queries)]
    (folder / "qrels" / "test.tsv").write_text(
        "query-id\tcorpus-id\tscore\n" + "".join(rows), encoding="utf-8"
    )
    return folder


def main() -> None:
    from weir.experiment.experiment import Experiment

    place, results, log, dies = sys.argv[1:]
    model = Readers(Path(log), int(dies))
    RERANKERS.add("hashed", lambda depth=50: Hashed(depth, model=model))
    Experiment((place,), ("bm25 >> hashed(depth=50)",), ("nDCG@10",)).execute(results)


if __name__ == "__main__":
    main()
