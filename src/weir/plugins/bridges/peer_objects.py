"""Convert judgments, rankings and measures to objects of ranx and ir-measures."""

from __future__ import annotations

from typing import Any

from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.errors import BadValue, require
from weir.measures import Measure, parse_measure


def to_ranx(value: Run | Qrels) -> Any:  # noqa: ANN401  its Run or Qrels
    """Return a run as ranx's Run, or judgments as its Qrels.

    Raises BadValue for other values, empty rankings and fractional grades, MissingExtra without ranx.
    """
    if not isinstance(value, (Run, Qrels)):
        raise BadValue(f"found a {type(value).__name__}; expected a weir.Run or weir.Qrels")
    library = require("ranx", "bridges")
    if isinstance(value, Qrels):
        _refuse_fractions(value, "ranx")
        return library.Qrels(value.to_dict())
    rankings = value.to_dict()
    empty = next((query for query, ranking in rankings.items() if not ranking), None)
    if empty is not None:
        raise BadValue(f"query '{empty}' has no ranking, which ranx's Run cannot hold; leave the query out")
    return library.Run(rankings, name=value.name)


def to_ir_measures(value: Run | Qrels | Measure | str) -> Any:  # noqa: ANN401  its named tuples or measure
    """Return a run as a list of ir-measures' ScoredDoc, judgments as its Qrel, or a measure as its measure.

    Raises BadValue for other values, fractional grades and a measure that it lacks or defines differently,
    MissingExtra without ir-measures.
    """
    library = require("ir_measures", "bridges")
    if isinstance(value, (Run, Qrels)):
        columns = value.columns()
        ranked = isinstance(value, Run)
        if isinstance(value, Qrels):
            _refuse_fractions(value, "ir-measures")
        row_type = library.ScoredDoc if ranked else library.Qrel
        number = columns["score" if ranked else "grade"].tolist()
        return [row_type(*row) for row in zip(columns["query"], columns["doc"], number, strict=True)]
    if not isinstance(value, (Measure, str)):
        raise BadValue(f"found a {type(value).__name__}; expected a weir.Run, weir.Qrels or a measure")
    from weir.plugins.conform.adapters.ir_measures import measure_object  # it imports the library itself

    measure = parse_measure(value) if isinstance(value, str) else value
    parts = {"measure": measure.name, "settings": dict(measure.settings), "k": measure.cutoff}
    theirs = measure_object({**parts, "condensed": measure.condensed})
    if theirs is None:
        raise BadValue(f"{measure}: ir-measures has no such measure, or defines it otherwise")
    return theirs


def _refuse_fractions(qrels: Qrels, tool: str) -> None:
    if qrels.fractional:
        raise BadValue(
            f"the judgments have grades with fractions; {tool} takes whole ones: scale or round them first"
        )
