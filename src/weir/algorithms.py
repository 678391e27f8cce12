"""Version numbers of algorithms, part of the keys of stored results.

A number is raised when equal settings give different output, so that older output is not reused.
"""

from __future__ import annotations

# tests/golden/test_algorithms.py fails if the output on fixed input changes and the number does not.
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
    """Return an algorithm's version number; raises KeyError for an unknown name."""
    return ALGORITHMS[name]
