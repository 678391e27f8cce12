"""Per-query scores on disk: one JSON object per line at full precision."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np

from weir.core.ids import Ids
from weir.core.scores import Scores
from weir.errors import FormatError
from weir.io.atomic import atomic_file

__all__ = ["read_scores", "score_lines", "write_scores"]


def score_lines(scores: Scores) -> list[str]:
    """JSON objects with the keys query, measure and value, one for each query and measure."""
    queries = scores.queries.tolist()
    return [
        json.dumps({"query": query, "measure": measure, "value": None if math.isnan(value) else value})
        for measure, row in zip(scores.measures, scores.values.tolist(), strict=True)
        for query, value in zip(queries, row, strict=True)
    ]


def write_scores(scores: Scores, path: Path) -> None:
    """Write per-query scores; the file appears when it is complete."""
    with atomic_file(path) as temporary:
        temporary.write_text("\n".join(score_lines(scores)) + "\n", encoding="utf-8")


def read_scores(path: Path) -> Scores:
    """Read what `write_scores` wrote; who answered is not in the file, so `answered` is all true.

    Raises FormatError for a file that is damaged.
    """
    rows: dict[str, dict[str, float]] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").rstrip("\n").split("\n"), 1):
        try:
            one = json.loads(line)
            value = one["value"]
            rows.setdefault(one["measure"], {})[one["query"]] = (
                float("nan") if value is None else float(value)
            )
        except (ValueError, KeyError, TypeError):
            raise FormatError(
                path, f"'{line[:60]}'", "a score as weir writes it; delete the file", number
            ) from None
    first = next(iter(rows.values()), {})
    queries = Ids.of(first)
    if any(row.keys() != first.keys() for row in rows.values()):
        raise FormatError(path, "measures on different queries", "a file written by weir; delete it")
    values = np.array([list(row.values()) for row in rows.values()])
    return Scores(tuple(rows), queries, values, np.ones(len(queries), np.bool_))
