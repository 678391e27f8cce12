"""Counting the words of many documents: how fast overlap of collections streams, and how much memory it takes.

    python benchmarks/overlap_bench.py [--documents 5000000] [--json out.jsonl]

Synthetic documents of 30 to 90 words drawn by Zipf's law from 200,000, written once to a memory-mapped file as a
collection's store keeps them; then the weighted Jaccard index of all of them and of a second collection of a hundredth
of that. One thread. growth_mb: the most memory held above what was held before counting, pages of the mapped file left
out; error_of_the_first: how far the index is from that of a plain counter, on the first 20,000 documents of both.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import numpy as np

from weir.core.corpus import Corpus
from weir.core.strings import Ids, Strings
from weir.systems.lexical.terms import weighted_jaccard, word_counts

VOCABULARY, SHORTEST, LONGEST, BATCH, CHECKED = 200_000, 30, 90, 50_000, 20_000


def written(folder: Path, count: int, seed: int) -> Corpus:
    """A collection whose text is mapped from a file."""
    rng = np.random.default_rng(seed)
    chance = 1 / np.arange(1, VOCABULARY + 1)
    cumulated = np.cumsum(chance / chance.sum())
    words = np.array([f"w{(i * 7919 + seed * 31) % VOCABULARY:x}" for i in range(VOCABULARY)], object)
    ptr = np.zeros(count + 1, np.int64)
    path = folder / f"text{seed}"
    with path.open("wb") as out:
        for start in range(0, count, BATCH):
            lengths = rng.integers(SHORTEST, LONGEST + 1, min(BATCH, count - start))
            drawn = words[np.searchsorted(cumulated, rng.random(int(lengths.sum()))).clip(max=VOCABULARY - 1)]
            cuts = np.cumsum(lengths)[:-1]
            for place, part in enumerate(np.split(drawn, cuts), start):
                ptr[place + 1] = ptr[place] + out.write(" ".join(part).encode())
    text = Strings(np.memmap(path, np.uint8, "r"), ptr)
    return Corpus(Ids(Strings.of(map(str, range(count)))), text)


def own_memory_mb() -> float:
    """Memory that is this process's own: what is mapped from a file and shared is left out."""
    with Path("/proc/self/status").open() as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) / 1024


class Watch(threading.Thread):
    """Looks at the memory held ten times a second; most: in MB."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.most, self._stopped = own_memory_mb(), threading.Event()

    def run(self) -> None:
        while not self._stopped.wait(0.1):
            self.most = max(self.most, own_memory_mb())

    def stop(self) -> float:
        self._stopped.set()
        self.join()
        return self.most


def plainly(corpora: list[Corpus]) -> float:
    """The index by Python's counter."""
    counts = [Counter(word for text in corpus.text for word in text.split()) for corpus in corpora]
    sums = [sum(count.values()) for count in counts]
    shares = [
        (counts[0][word] / sums[0], counts[1][word] / sums[1]) for word in counts[0].keys() | counts[1].keys()
    ]
    return sum(map(min, shares)) / sum(map(max, shares))


def index(corpora: list[Corpus]) -> float:
    profile = word_counts(corpora)
    return weighted_jaccard(profile.shares(0), profile.shares(1))


def first(corpus: Corpus, count: int) -> Corpus:
    return Corpus(Ids.of(map(str, range(count))), Strings.of(corpus.text[i] for i in range(count)))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--documents", type=int, default=5_000_000)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        corpora = [
            written(Path(folder), n, seed) for seed, n in enumerate((given.documents, given.documents // 100))
        ]
        parts = [first(corpus, min(CHECKED, len(corpus))) for corpus in corpora]
        error = abs(index(parts) - plainly(parts))
        megabytes = sum(float(corpus.text.ptr[-1]) for corpus in corpora) / 1e6
        held, watch = own_memory_mb(), Watch()
        watch.start()
        begun = time.perf_counter()
        value = index(corpora)
        seconds = time.perf_counter() - begun
        row = {
            "documents": sum(map(len, corpora)),
            "megabytes": round(megabytes),
            "seconds": round(seconds, 1),
            "mb_per_second": round(megabytes / seconds, 1),
            "growth_mb": round(watch.stop() - held),
            "index": value,
            "error_of_the_first": error,
        }
    print(json.dumps(row))
    if given.json:
        given.json.write_text(json.dumps(row) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
