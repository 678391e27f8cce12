"""A version number for each algorithm whose output a result depends on.

The number is part of the key under which the algorithm's output is stored. It is raised if equal settings now
give different output, so that older stored output is not reused. `tests/golden/test_algorithms.py` fails if
the output on fixed input changes and the number does not.
"""

from __future__ import annotations

ALGORITHMS = {
    "analysis": 1,
    "bm25f": 1,
    "bootstrap interval": 2,
    "candidates": 1,
    "dense search": 1,
    "encoding": 1,
    "fusion": 1,
    "late search": 1,
    "llm sorting": 1,
    "llm verdicts": 2,
    "local chat": 1,
    "measures": 1,
    "passages": 1,
    "pipeline": 1,
    "questions": 1,
    "restricted search": 1,
    "rm3": 1,
    "sparse index": 1,
    "sparse search": 1,
}


def algorithm(name: str) -> int:
    """Return the version number of an algorithm in ALGORITHMS."""
    return ALGORITHMS[name]
