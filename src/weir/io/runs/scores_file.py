"""Per-query scores on disk: one JSON object per line at full precision."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np

from weir.core.ids import Ids
from weir.core.scores import Scores
from weir.errors import FormatError
from weir.io.storage.atomic import atomic_file

__all__ = ["read_scores", "score_lines", "write_scores"]


def score_lines(scores: Scores) -> list[str]:
    """JSON objects with the keys query, measure and value, one for each query and measure.

    A measure whose values are logarithms has the key mean, too: "geometric"; and with ties=bounds lowest and highest
    are the values of the worst and the best order of ties.
    """
    queries, ends = scores.queries.tolist(), [scores.values]
    if "ties=bounds" in scores.conventions and scores.low is not None and scores.high is not None:
        ends += [scores.low, scores.high]
    names = ("value", "lowest", "highest")[: len(ends)]
    return [
        json.dumps(
            {"query": query, "measure": measure}
            | {name: None if math.isnan(v) else v for name, v in zip(names, values, strict=True)}
            | ({"mean": "geometric"} if measure in scores.geometric else {})
        )
        for measure, *rows in zip(scores.measures, *(end.tolist() for end in ends), strict=True)
        for query, *values in zip(queries, *rows, strict=True)
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
    geometric: dict[str, None] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").rstrip("\n").split("\n"), 1):
        try:
            one = json.loads(line)
            value = one["value"]
            rows.setdefault(one["measure"], {})[one["query"]] = (
                float("nan") if value is None else float(value)
            )
            if one.get("mean") == "geometric":
                geometric[one["measure"]] = None
        except (ValueError, KeyError, TypeError):
            raise FormatError(
                path, f"'{line[:60]}'", "a score as weir writes it; delete the file", number
            ) from None
    first = next(iter(rows.values()), {})
    queries = Ids.of(first)
    if any(row.keys() != first.keys() for row in rows.values()):
        raise FormatError(path, "measures on different queries", "a file written by weir; delete it")
    values = np.array([list(row.values()) for row in rows.values()])
    answered = np.ones(len(queries), np.bool_)
    return Scores(tuple(rows), queries, values, answered, geometric=tuple(geometric))
