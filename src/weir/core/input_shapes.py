"""Forms in which users may pass one query's ranking or judgments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from numbers import Real
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from weir.errors import BadRanking, BadValue


@runtime_checkable
class Labelled(Protocol):
    """A labelled series of values, such as a pandas Series."""

    def items(self) -> Iterable[tuple[Any, Any]]:
        """Return (label, value) pairs, in order."""

    def to_numpy(self) -> Any:  # noqa: ANN401  a numpy array of any type
        """Return the values as an array, without labels."""


@runtime_checkable
class _Column(Protocol):
    def to_numpy(self) -> Any:  # noqa: ANN401  a numpy array of any type
        ...


Given: TypeAlias = Mapping[Any, Any]


def scores_of_ranking(where: str, ranking: object) -> Given:
    """Return {document: score} from one query's ranking: a mapping, Series, (document, score) pairs or documents in
    rank order.

    Documents in rank order get the scores n to 1. Raises BadRanking, naming `where`, for another type, rankings of
    several queries and a repeated document.
    """
    several = hasattr(ranking, "columns")
    if isinstance(ranking, Mapping) and not several:
        first = next(iter(ranking.values()), None)
        if isinstance(first, float) or not isinstance(first, (list, Mapping)):
            return ranking
        several = isinstance(next(iter(first), None), (str, tuple))
    if several:
        raise BadRanking(
            f"{where}: found rankings of several queries; expected one ranking; weir.compare, weir.diff, weir.power "
            "and weir.why take {name: rankings} after the judgments"
        )
    if isinstance(ranking, Mapping):
        return ranking
    listed = _listed(ranking)
    if listed is None:
        kind = type(ranking).__name__
        why = ", which has no order" if isinstance(ranking, Set) else ""
        raise BadRanking(
            f"{where}: found {kind}{why}; expected {{document: score}}, or documents in rank order"
        )
    pairs = _pairs(listed)
    if pairs is None:
        pairs = [(document, float(len(listed) - place)) for place, document in enumerate(listed)]
    scores: dict[object, object] = {}
    for document, score in pairs:
        _refuse_other_than_identifiers(where, document, BadRanking)
        if document in scores:
            raise BadRanking(f"{where} ranks document '{document}' twice; remove the duplicates first")
        scores[document] = score
    return scores


def grades_of(where: str, judgments: object) -> Given:
    """Return {document: grade} from one query's judgments: a form of `scores_of_ranking` or a set; without grades
    each is 1.

    Raises BadValue, naming `where`, for another type and a document with two grades.
    """
    if isinstance(judgments, Mapping):
        return judgments
    listed = list(judgments) if isinstance(judgments, Set) else _listed(judgments)
    if listed is None:
        kind = type(judgments).__name__
        raise BadValue(f"{where}: found {kind}; expected {{document: grade}}, or relevant documents")
    pairs = _pairs(listed)
    if pairs is None:
        pairs = [(document, 1) for document in listed]
    grades: dict[object, object] = {}
    for document, grade in pairs:
        _refuse_other_than_identifiers(where, document, BadValue)
        if grades.setdefault(document, grade) != grade:
            raise BadValue(f"{where} judges document '{document}' twice, with two grades")
    return grades


def _listed(values: object) -> list[object] | None:
    if isinstance(values, Labelled):
        return (
            list(values.items())
            if np.asarray(values.to_numpy()).dtype.kind in "iufb"
            else list(values.to_numpy())
        )
    if isinstance(values, (np.ndarray, _Column)):
        values = np.asarray(values).tolist()
        return values if isinstance(values, list) else None
    return list(values) if isinstance(values, Sequence) and not isinstance(values, (str, bytes)) else None


def _pairs(listed: Sequence[object]) -> list[tuple[object, object]] | None:
    pairs: list[tuple[object, object]] = [
        (one[0], one[1])
        for one in listed
        if isinstance(one, (tuple, list)) and len(one) == 2 and isinstance(one[1], (Real, np.number))
    ]
    return pairs if pairs and len(pairs) == len(listed) else None


def _refuse_other_than_identifiers(where: str, document: object, error: type[BadRanking | BadValue]) -> None:
    if not isinstance(document, (str, int, np.integer)) or isinstance(document, bool):
        raise error(
            f"{where}: found {document!r:.80} among the documents; expected identifiers, or "
            "(identifier, number) pairs throughout"
        )
