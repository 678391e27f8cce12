"""Whether what was given as judgments and what was given as a run can be that, together."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from itertools import chain
from numbers import Real
from typing import Any, TypeAlias, TypeGuard

import numpy as np

from weir.core.given import grades_of, scores_of_ranking
from weir.core.intents import IntentQrels
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.errors import BadValue, RankingWarning
from weir.io.runs.frames import is_columns

__all__ = ["refuse_mismatched", "refuse_rankings"]

Nested: TypeAlias = Mapping[Any, Mapping[Any, Any]]
_GRADES = range(5)  # the scales in use end at 4
_RANK_VALUES = 6  # different whole numbers, which no such scale has


def refuse_mismatched(qrels: object, run: object) -> None:
    """Refuse arguments in the wrong order, and identifiers of two types, where what was given tells.

    Judgments come first, as on the command line. Where both are {query: {document: number}}, floats in the judgments
    beside whole numbers only in the run are refused. Other numbers may be either; the order given then decides, and a
    RankingWarning is given where all grades of each query differ, six or more of them, and all scores are on a scale
    of grades (0 to 4); and where the judgments are lists and the scores are on such a scale. Identifiers of dicts are
    one type in both: 1 is not "1". Raises BadValue, and BadRanking for what is no ranking.
    """
    if isinstance(qrels, Run):
        raise BadValue("found a Run as the judgments; judgments come first, then the run")
    if isinstance(run, (Qrels, IntentQrels)):
        raise BadValue(f"found {type(run).__name__} as the run; judgments come first, then the run")
    listed = _by_query(qrels) and not _is_nested(qrels)
    qrels, run = _grades_by_query(qrels), _scores_by_query(run)
    if _is_nested(qrels) and _is_nested(run):
        if listed and _scores_look_like_grades(run):
            _warn_exchanged("the judgments are lists and the scores of the run look like grades")
        _refuse_other_types("query", qrels, run)
        _refuse_other_types(
            "document", chain.from_iterable(qrels.values()), chain.from_iterable(run.values())
        )
        _refuse_exchanged(qrels, run)


def refuse_rankings(qrels: object) -> None:
    """Raise BadValue for rankings by name in the place of judgments of documents."""
    if isinstance(qrels, Mapping) and any(
        isinstance(one, Run)
        or (isinstance(one, Mapping) and any(isinstance(v, Mapping) for v in one.values()))
        for one in qrels.values()
    ):
        raise BadValue("found rankings by name as the judgments; judgments come first, then the rankings")


def _by_query(value: object) -> TypeGuard[Mapping[Any, Any]]:
    return isinstance(value, Mapping) and not is_columns(value)


def _grades_by_query(given: object) -> object:
    """The same as {query: {document: grade}}, where it is judgments by query."""
    return {q: grades_of(f"query '{q}'", row) for q, row in given.items()} if _by_query(given) else given


def _scores_by_query(given: object) -> object:
    """The same as {query: {document: score}}, where it is rankings by query."""
    return (
        {q: scores_of_ranking(f"query '{q}'", row) for q, row in given.items()} if _by_query(given) else given
    )


def _is_nested(value: object) -> TypeGuard[Nested]:
    """Whether it is {query: {document: number}}."""
    return isinstance(value, Mapping) and all(
        isinstance(row, Mapping) and not any(isinstance(v, Mapping) for v in row.values())
        for row in value.values()
    )


def _refuse_other_types(what: str, judged: Iterable[object], ranked: Iterable[object]) -> None:
    ours, theirs = _examples(judged), _examples(ranked)
    if not ours or not theirs or ours.keys() == theirs.keys():
        return
    first, second = (
        " and ".join(f"{kind} ({example!r})" for kind, example in sorted(found.items()))
        for found in (ours, theirs)
    )
    raise BadValue(
        f"{what} identifiers are {first} in the judgments and {second} in the run; make them one type, such as str"
    )


def _examples(identifiers: Iterable[object]) -> dict[str, object]:
    """The types among identifiers by name, each with one of them; whole numbers are one type."""
    by_type = {type(one): one for one in identifiers}
    return {_type_name(kind): one for kind, one in by_type.items()}


def _type_name(kind: type) -> str:
    return "int" if _whole(kind) else "str" if issubclass(kind, str) else kind.__name__


def _refuse_exchanged(qrels: Nested, run: Nested) -> None:
    grades, scores = ({type(v) for row in given.values() for v in row.values()} for given in (qrels, run))
    floats = bool(grades) and all(issubclass(kind, (float, np.floating)) for kind in grades)
    if floats and scores and all(map(_whole, scores)):
        raise BadValue(
            "the judgments hold floats and the run whole numbers only; judgments come first, then the run "
            "(if that is so, give the scores as float)"
        )
    numbers = all(issubclass(kind, (Real, np.number)) for kind in grades | scores)
    if scores and numbers and _like_scores(qrels) and _like_grades(run):
        _warn_exchanged("the judgments look like scores and the run like grades")


def _warn_exchanged(why: str) -> None:
    warnings.warn(f"{why}; judgments come first, then the run", RankingWarning, stacklevel=5)


def _scores_look_like_grades(run: Nested) -> bool:
    values = [v for row in run.values() for v in row.values()]
    return bool(values) and all(_whole(type(v)) and v in _GRADES for v in values)


def _like_scores(given: Nested) -> bool:
    different = all(len(set(row.values())) == len(row) for row in given.values())
    return different and len(set(chain.from_iterable(row.values() for row in given.values()))) >= _RANK_VALUES


def _like_grades(given: Nested) -> bool:
    return all(v in _GRADES for row in given.values() for v in row.values())


def _whole(kind: type) -> bool:
    return issubclass(kind, (int, np.integer)) and not issubclass(kind, bool)
