"""Rankings that are those of another system: re-rankings that failed without a word, files given twice."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from weir.audit.check import Finding, check
from weir.core.hashing import hash_strings
from weir.core.run import Run
from weir.core.subject import Subject

__all__ = ["ranking_hashes"]

FIRST_RANKS = 10
FEWEST_DOCUMENTS = 3
"""Documents of a ranking below which two systems may agree by chance."""
KEPT_SHARE = 0.5
"""Share of queries with the same first ranks from which two systems are said to be one in part."""
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


def ranking_hashes(run: Run, k: int = FIRST_RANKS) -> dict[str, int]:
    """A hash of the first k documents in their order by query, of rankings with FEWEST_DOCUMENTS at least."""
    top = run.top(k)
    names = top.docs.strings
    of_doc = hash_strings(names.data, names.ptr[:-1], names.lengths())[top.doc]
    rank = top.ranks()
    whole: NDArray[np.uint64] = np.zeros(len(top), np.uint64)
    query = top.query_of_row()
    for place in range(1, k + 1):
        rows = rank == place
        whole[query[rows]] = (whole[query[rows]] ^ of_doc[rows]) * _MULTIPLIER
    long = np.flatnonzero(np.diff(top.ptr) >= min(FEWEST_DOCUMENTS, k))
    return dict(zip(top.queries.take(long).tolist(), whole[long].tolist(), strict=True))


@check("same rankings", needs=["runs"])
def same_rankings(subject: Subject) -> Iterator[Finding]:
    """Systems whose first ten documents are the same, in the same order, for half of the queries or more.

    So looks a re-ranking that failed and kept the order of its first stage, and a run file given twice.
    """
    hashes = {name: ranking_hashes(run) for name, run in subject.runs.items()}
    for one, other in combinations(hashes, 2):
        common = hashes[one].keys() & hashes[other].keys()
        same = sorted(query for query in common if hashes[one][query] == hashes[other][query])
        if common and len(same) >= KEPT_SHARE * len(common):
            yield Finding(
                "wrong" if len(same) == len(common) else "serious",
                f"{one} and {other} have the same first {FIRST_RANKS} documents in the same order for {len(same):,} of "
                f"{len(common):,} queries",
                "a re-ranking that failed keeps its first stage's order: look at what it was asked and answered",
                (("queries", float(len(same))), ("share", len(same) / len(common))),
                tuple(same),
            )
