"""What a service returns for a query, as it is kept."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

__all__ = ["SHOWN_CHARACTERS", "brief", "kept_columns", "kept_ranking"]

SHOWN_CHARACTERS = 120


def kept_ranking(results: Sequence[tuple[object, object]]) -> dict[str, object]:
    """As `kept_columns`, of (identifier, score) pairs, of which all have a score or none; raises ValueError."""
    names, scores = [name for name, _ in results], [score for _, score in results]
    bare = scores.count(None)
    if 0 < bare < len(scores):
        raise ValueError(f"{bare} of {len(scores)} results have no score; expected all or none")
    return kept_columns(names, None if bare else scores)


def kept_columns(names: Sequence[object], scores: Sequence[object] | None) -> dict[str, object]:
    """Identifiers, best first, and their scores as {"docs": [...], "scores": [...]}; scores: None for rank order.

    Identifiers may be whole numbers, scores texts. Raises ValueError for what is no identifier or no finite number, and
    for a document that stands twice.
    """
    if not set(map(type, names)) <= {str, int} or "" in names:
        wrong = next(name for name in names if type(name) not in (str, int) or name == "")
        raise ValueError(f"found {brief(wrong)} as a document's identifier; expected a text")
    docs = list(map(str, names))
    if len(set(docs)) < len(docs):
        raise ValueError("a document stands twice among the results")
    if scores is None:
        return {"docs": docs, "scores": None}
    plain = set(map(type, scores)) <= {float, int} and all(map(_finite, scores))
    found = scores if plain else [_number(score, name) for score, name in zip(scores, docs, strict=True)]
    return {"docs": docs, "scores": found}


def brief(value: object) -> str:
    """A value in a message."""
    return json.dumps(value, ensure_ascii=False, default=str)[:SHOWN_CHARACTERS]


def _number(score: object, name: str) -> float:
    """A score; some servers write it as a text."""
    number = math.nan
    if isinstance(score, (int, float, str)) and not isinstance(score, bool):
        with suppress(ValueError, OverflowError):
            number = float(score)
    if not math.isfinite(number):
        raise ValueError(f"the score of '{name}' is {brief(score)}; expected a finite number")
    return number


def _finite(score: Any) -> bool:  # noqa: ANN401  a number
    try:
        return math.isfinite(score)
    except OverflowError:  # a whole number beyond any float
        return False
