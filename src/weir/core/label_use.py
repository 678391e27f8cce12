"""What a model's labels have to do with scores: whether they count, why, and what people's labels alone would say."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from weir.core.strings import Float64, Int64

__all__ = ["LabelUse"]


@dataclass(frozen=True, eq=False)
class LabelUse:
    """How scores stand to the labels of a model.

    said: the sentence beside the table; calibrated: whether they count and were held against people's; share: of the
    judged places among the first 10 returned, those that a model judged, NaN where none counts or it is not known;
    people: float64[M, Q], the values by people's labels alone, None where they are the scores themselves or not known.
    """

    said: str
    calibrated: bool
    share: float = math.nan
    people: Float64 | None = None

    def take(self, rows: Int64) -> LabelUse:
        """The same of some queries, whose share is not known."""
        people = None if self.people is None else self.people[:, rows]
        return replace(self, people=people, share=math.nan)
