"""Scores as a JSON file that reads back as the same values, bit for bit."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weir.core.ids import Ids
from weir.core.label_use import LabelUse
from weir.core.notes import Note
from weir.core.scores import Scores
from weir.core.strings import Float64
from weir.errors import FormatError
from weir.io.storage.atomic import atomic_file

__all__ = ["read_scores_value", "write_scores_value"]

_EXPECTED = "scores as Scores.save writes them"


def write_scores_value(scores: Scores, path: Path | str) -> None:
    """Write scores with all that is known of them; the file appears when it is complete. Raises StoreError."""
    fields = {
        "weir": "scores",
        "measures": list(scores.measures),
        "queries": scores.queries.tolist(),
        "values": _numbers(scores.values),
        "answered": scores.answered.tolist(),
        "tied": scores.tied,
        "ignored": scores.ignored,
        "geometric": list(scores.geometric),
        "conventions": scores.conventions,
        "low": None if scores.low is None else _numbers(scores.low),
        "high": None if scores.high is None else _numbers(scores.high),
        "asked": [list(pair) for pair in scores.asked],
        "labels": None if scores.labels is None else _use_fields(scores.labels),
        "judged_at_10": None if math.isnan(scores.judged_at_10) else scores.judged_at_10,
        "remarks": [[note.text, note.details] for note in scores.remarks],
    }
    with atomic_file(Path(path)) as temporary:
        temporary.write_text(json.dumps(fields, ensure_ascii=False) + "\n", encoding="utf-8")


def read_scores_value(path: Path | str) -> Scores:
    """Read what `write_scores_value` wrote; raises FormatError for another file."""
    try:
        fields: dict[str, Any] = json.loads(Path(path).read_text(encoding="utf-8"))
        scores = Scores(
            tuple(map(str, fields["measures"])),
            Ids.of(fields["queries"]),
            _array(fields["values"]),
            np.array(fields["answered"], np.bool_),
            float(fields["tied"]),
            int(fields["ignored"]),
            tuple(map(str, fields["geometric"])),
            str(fields["conventions"]),
            None if fields["low"] is None else _array(fields["low"]),
            None if fields["high"] is None else _array(fields["high"]),
            tuple((str(theirs), str(ours)) for theirs, ours in fields["asked"]),
            judged_at_10=math.nan if fields.get("judged_at_10") is None else float(fields["judged_at_10"]),
            labels=_use_of(
                fields.get("labels")
            ),  # none in files of before there were labels, nor what follows
            remarks=tuple(Note(str(text), str(details)) for text, details in fields.get("remarks", ())),
        )
    except FileNotFoundError:
        raise FormatError(path, "no such file", _EXPECTED) from None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise FormatError(path, "something else", _EXPECTED) from None
    shape = (len(scores.measures), len(scores.queries))
    if scores.values.shape != shape or len(scores.answered) != shape[1]:
        raise FormatError(path, "values of another number of measures or queries", _EXPECTED)
    return scores


def _use_fields(use: LabelUse) -> dict[str, object]:
    share = None if math.isnan(use.share) else use.share
    people = None if use.people is None else _numbers(use.people)
    return {"said": use.said, "calibrated": use.calibrated, "share": share, "people": people}


def _use_of(fields: dict[str, Any] | None) -> LabelUse | None:
    if fields is None:
        return None
    share = math.nan if fields["share"] is None else float(fields["share"])
    people = None if fields["people"] is None else _array(fields["people"])
    return LabelUse(str(fields["said"]), bool(fields["calibrated"]), share, people)


def _numbers(values: Float64) -> list[list[float | None]]:
    """The same with None for NaN, which JSON has not."""
    return [[None if value != value else value for value in row] for row in values.tolist()]  # noqa: PLR0124 - NaN alone


def _array(rows: list[list[float | None]]) -> NDArray[np.float64]:
    return np.array([[np.nan if value is None else value for value in row] for row in rows], np.float64)
