"""How the inputs of the golden vectors are written down."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from weir.plugins.conform.oracle import Case, OracleConventions
from weir.plugins.conform.vectors import Vector

Pairs = Sequence[tuple[str, Any]]
Judged = str | Mapping[str, Any]
Ranked = str | Mapping[str, Any]


def down(documents: str) -> Pairs:
    """Documents apart by blanks, best first, with the scores n, n - 1, ..., 1."""
    names = documents.split()
    return [(d, float(len(names) - n)) for n, d in enumerate(names)]


def tied(documents: str, score: float = 1.0) -> Pairs:
    """Documents apart by blanks, in this order, all with one score."""
    return [(d, score) for d in documents.split()]


def judged(text: str) -> Pairs:
    """Judgments such as "a:2 b:0 c:0.5"; "a" alone is a:1."""
    parts = [word.partition(":") for word in text.split()]
    return [(d, (float(grade) if "." in grade else int(grade)) if colon else 1) for d, colon, grade in parts]


def case(
    name: str,
    shows: str,
    qrels: Judged,
    run: Ranked,
    measures: str,
    source: str = "",
    **conventions: Any,  # noqa: ANN401 - the fields of Conventions
) -> Vector:
    """A vector without its answers; text stands for the judgments or the ranking of one query, q1.

    measures: names apart by blanks, written without blanks; source: the threads where the trouble was seen.
    """
    judgments = {"q1": qrels} if isinstance(qrels, str) else qrels
    rankings = {"q1": run} if isinstance(run, str) else run
    held = Case(
        {q: list(judged(row) if isinstance(row, str) else row) for q, row in judgments.items()},
        {q: list(down(row) if isinstance(row, str) else row) for q, row in rankings.items()},
        OracleConventions(**conventions),
    )
    names = tuple(re.sub(r",(?=[a-z])", ", ", word) for word in measures.split())
    return Vector(name, "", shows, held, names, source=tuple(source.split()))
