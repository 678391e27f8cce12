"""Near copies among many documents: planted ones found, beside datasketch on a part of the same documents.

    python benchmarks/near_copies.py [--documents 1000000] [--peer-documents 50000] [--json out.jsonl]

Synthetic documents of 100 words drawn by Zipf's law; one in a hundred is a copy of an earlier one with one to twelve words
changed. Recall is of planted pairs whose Jaccard index (sets of three consecutive words) is 0.8 or more; a false group
holds a pair below 0.6. Weir groups all documents; datasketch's MinHashLSH (same shingles, same permutations, same
threshold) indexes and asks the first ones. One thread.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from pathlib import Path

import numpy as np

from weir.audit.duplicates import BANDS, NEAR, ROWS_PER_BAND, SHINGLE_TERMS, near_copies
from weir.core.corpus import Corpus
from weir.core.strings import Ids, Strings

WORDS, LENGTH, COPIES = 200_000, 100, 0.01


def documents(count: int, seed: int) -> tuple[list[str], list[tuple[int, int]]]:
    """(texts, planted pairs of original and copy)."""
    rng = np.random.default_rng(seed)
    chance = 1 / np.arange(1, WORDS + 1)
    cumulated = np.cumsum(chance / chance.sum())
    rows = np.searchsorted(cumulated, rng.random((count, LENGTH))).clip(max=WORDS - 1)
    copied = np.flatnonzero(rng.random(count) < COPIES)
    copied = copied[copied > 0]
    pairs = []
    for row in copied.tolist():
        source = int(rng.integers(0, row))
        rows[row] = rows[source]
        places = rng.integers(0, LENGTH, int(rng.integers(1, 13)))
        rows[row, places] = rng.integers(0, WORDS, len(places))
        pairs.append((source, row))
    names = np.array([f"w{i}" for i in range(WORDS)])
    return [" ".join(names[row]) for row in rows], pairs


def shingles(text: str) -> set[tuple[str, ...]]:
    words = text.split()
    return {tuple(words[i : i + SHINGLE_TERMS]) for i in range(len(words) - SHINGLE_TERMS + 1)}


def jaccard(a: str, b: str) -> float:
    one, other = shingles(a), shingles(b)
    return len(one & other) / len(one | other)


def quality(
    texts: list[str], pairs: list[tuple[int, int]], group: np.ndarray, members: list
) -> dict[str, float]:
    wanted = [(a, b) for a, b in pairs if b < len(texts) and jaccard(texts[a], texts[b]) >= NEAR]
    found = sum(group[a] >= 0 and group[a] == group[b] for a, b in wanted)
    least = min(
        (jaccard(texts[a], texts[b]) for rows in members for a in rows for b in rows if a < b), default=1.0
    )
    return {"pairs": len(wanted), "recall": found / len(wanted), "least_jaccard_in_a_group": least}


def weir(texts: list[str], pairs: list[tuple[int, int]]) -> dict[str, object]:
    corpus = Corpus(Ids.of(map(str, range(len(texts)))), Strings.of(texts))
    begun = time.perf_counter()
    groups, _, skipped = near_copies(corpus)
    seconds = time.perf_counter() - begun
    said = quality(texts, pairs, groups.number, [rows.tolist() for rows in groups.members()])
    return {"engine": "weir", "documents": len(texts), "seconds": seconds, "skipped": skipped} | said


def datasketch(texts: list[str], pairs: list[tuple[int, int]]) -> dict[str, object]:
    from datasketch import MinHash, MinHashLSH

    begun = time.perf_counter()
    lsh = MinHashLSH(num_perm=BANDS * ROWS_PER_BAND, params=(BANDS, ROWS_PER_BAND))
    group = np.full(len(texts), -1)
    sets: dict[int, set] = {}
    for row, text in enumerate(texts):
        mine = shingles(text)
        sketch = MinHash(num_perm=BANDS * ROWS_PER_BAND)
        sketch.update_batch([" ".join(one).encode() for one in mine])
        for other in lsh.query(sketch):
            theirs = sets[other]
            if group[row] < 0 and len(mine & theirs) / len(mine | theirs) >= NEAR:
                group[row] = group[other] if group[other] >= 0 else other
                group[other] = group[row]
        lsh.insert(row, sketch, check_duplication=False)
        sets[row] = mine
    seconds = time.perf_counter() - begun
    members: dict[int, list[int]] = {}
    for row in np.flatnonzero(group >= 0).tolist():
        members.setdefault(int(group[row]), []).append(row)
    said = quality(texts, pairs, group, list(members.values()))
    return {"engine": "datasketch", "documents": len(texts), "seconds": seconds} | said


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--peer-documents", type=int, default=50_000)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    weir(*documents(2_000, 1))  # kernels are loaded
    texts, pairs = documents(given.documents, 0)
    made = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    rows = [weir(texts, pairs)]
    rows[0] |= {
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "peak_mb_of_the_texts": made,
    }
    some = texts[: given.peer_documents]
    rows += [weir(some, pairs), datasketch(some, pairs)]
    for row in rows:
        print(json.dumps(row))
    if given.json:
        given.json.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


if __name__ == "__main__":
    main()
