"""One line of a result table."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["Row"]


@dataclass(frozen=True)
class Row:
    """The mean of a measure over the judged queries of a dataset, with its interval.

    queries: judged queries, all of which count; answered: those for which the system returned anything.
    """

    dataset: str
    system: str
    measure: str
    mean: float
    low: float
    high: float
    queries: int
    answered: int

    @staticmethod
    def of(fields: dict[str, Any]) -> Row:
        """The row that `to_dict` wrote; raises KeyError or TypeError for another dict."""
        known: dict[str, Any] = {}
        for name in Row.__dataclass_fields__:
            known[name] = math.nan if fields[name] is None else fields[name]
        return Row(**known)

    def to_dict(self) -> dict[str, object]:
        """The row as a dict; an undefined number is None, as JSON has no NaN."""
        return {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in asdict(self).items()}
