"""One line of a result table."""

from __future__ import annotations

import math
from dataclasses import MISSING, asdict, dataclass
from typing import Any

__all__ = ["Row"]


@dataclass(frozen=True)
class Row:
    """The mean of a measure over the judged queries of a dataset, with its interval.

    queries: judged queries; answered: those for which the system returned anything. Where it is not the plain case:
    conventions: those in force, as they print; counted: how many queries the mean is over, None: all judged ones;
    movable: how many could have another value by the order of tied documents, and lowest, highest: the means that
    worst and best orders give, None where they are not known. judged_at_10: the mean share of the first 10 documents
    returned that were judged, whatever the measure; None where it is not known. group: the group of queries that it is
    about, "" for all; groups: of a macro mean, over how many means of groups it is. labels: a sentence on a model's
    labels, "" where there are none; people: the mean by people's labels alone, where a model's count too; model_share:
    of the judged places among the first 10, those that a model judged. title: the system's name with what files of
    systems call them in the place of the files, "" where they say nothing.
    """

    dataset: str
    system: str
    measure: str
    mean: float
    low: float
    high: float
    queries: int
    answered: int
    conventions: str = "default"
    counted: int | None = None
    movable: int = 0
    lowest: float | None = None
    highest: float | None = None
    judged_at_10: float | None = None
    group: str = ""
    groups: int | None = None
    labels: str = ""
    people: float | None = None
    model_share: float | None = None
    title: str = ""

    @staticmethod
    def of(fields: dict[str, Any]) -> Row:
        """The row that `to_dict` wrote; raises KeyError or TypeError for another dict."""
        known: dict[str, Any] = {}
        for name, field in Row.__dataclass_fields__.items():
            if name in fields or field.default is MISSING:
                known[name] = math.nan if fields[name] is None else fields[name]
                if isinstance(known[name], str) != (field.type == "str") or isinstance(
                    known[name], (dict, list)
                ):
                    raise TypeError(f"{name} of a row is {str(known[name])[:40]!r}")
        return Row(**known)

    def to_dict(self) -> dict[str, object]:
        """The row as a dict, without what is as always; an undefined number is None, as JSON has no NaN."""
        defaults = {name: field.default for name, field in self.__dataclass_fields__.items()}
        shown = {name: value for name, value in asdict(self).items() if value != defaults[name]}
        return {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in shown.items()}
