"""Items that readers find in a file, the vocabulary in which readers are written, and the choices of the user."""

from __future__ import annotations

import ast
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from weir.core.qrels import LARGEST, grade_of, shown_number
from weir.errors import BadValue, UnknownName
from weir.plugins.importing.click_models import ClickShare, parse_click_model

# ----------
# Items of a file.


@dataclass(frozen=True)
class ItemKey:
    """How a file names a query or a document: by identifier, by text, or by both; never by neither."""

    id: str = ""
    text: str = ""


@dataclass(frozen=True)
class FoundQuery:
    """A query; metadata: its other fields; unanswerable: the file says that nothing answers it."""

    key: ItemKey
    where: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    unanswerable: bool = False


@dataclass(frozen=True)
class Document:
    """A document; the key's text is its text."""

    key: ItemKey
    where: str
    title: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Judgment:
    """A grade of one document for one query, as the file writes it.

    split: the qrels file it belongs to; origin: where it comes from, "" where the file does not say; clicks: what the
    grade was made of, where a model of clicks made it.
    """

    query: ItemKey
    doc: ItemKey
    grade: object
    where: str
    split: str = "test"
    origin: str = ""
    clicks: ClickShare | None = None


@dataclass(frozen=True)
class ByWords:
    """A judgment of every document whose field holds the words.

    how: "all" or "any" of them where the format says so, else "": asked. within: "text", "title" or "id" of a document.
    field: what the file calls them. tokens: whether they are matched as whole tokens of the text alone, as DPR does, or
    as characters.
    """

    query: ItemKey
    words: tuple[str, ...]
    field: str
    where: str
    how: str = ""
    within: str = "text"
    grade: object = 1
    tokens: bool = False


@dataclass(frozen=True)
class Ranking:
    """What a system returned for one query.

    scores: one for each document, or () where the file has none; ordered: the order of docs is the ranking, whatever
    the scores say; else the scores are; ranks: those that the file gives its documents, or ().
    """

    query: ItemKey
    docs: tuple[ItemKey, ...]
    where: str
    scores: tuple[float, ...] = ()
    run: str = ""
    ordered: bool = True
    ranks: tuple[float, ...] = ()


@dataclass(frozen=True)
class Refused:
    """A row that was left out, and why."""

    where: str
    reason: str


@dataclass(frozen=True)
class FileRemark:
    """A sentence about the whole file, for the report."""

    text: str


@dataclass(frozen=True)
class Used:
    """Which field of the file was taken for what."""

    role: str
    field: str


Item: TypeAlias = FoundQuery | Document | Judgment | ByWords | Ranking | Refused | FileRemark | Used


# ----------
# The vocabulary of readers: paths in a file's value, keys of queries and documents, a query with its documents.


def at(value: object, *path: str) -> Any:  # noqa: ANN401  JSON holds anything
    """The value at a path of names; None where there is none."""
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def table_at(value: object, *path: str) -> dict[str, Any]:
    """The object at a path; {} where there is none."""
    table = at(value, *path)
    return table if isinstance(table, dict) else {}


def objects(value: object, *path: str) -> list[dict[str, Any]]:
    """The objects in the list at a path; [] where there is none."""
    members = at(value, *path)
    return [one for one in members if isinstance(one, dict)] if isinstance(members, list) else []


def listed(value: object) -> list[Any] | None:
    """A list, also one that a cell holds as JSON or as Python writes it; None for anything else."""
    if isinstance(value, list):
        return value
    if not isinstance(value, str) or not value.strip().startswith(("[", "(")):
        return None
    try:
        members = json.loads(value)
    except (ValueError, RecursionError):
        members = python_value(value)
    return list(members) if isinstance(members, (list, tuple)) else None


def python_value(text: str) -> Any:  # noqa: ANN401  a literal holds anything
    """The value of a literal as Python writes it; None for any other text."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
        return None


def plain(value: object) -> str:
    """A scalar as an identifier or a text: 7.0 and 7 are "7"; nothing, NaN, lists and objects are ""."""
    if value is None or isinstance(value, (dict, list)):
        return ""
    if isinstance(value, float):
        return "" if math.isnan(value) else str(int(value)) if value.is_integer() else repr(value)
    return str(value).strip()


def is_identifier(text: str) -> bool:
    """Whether a text can serve as an identifier: one word of at most 64 characters."""
    return len(text.split()) == 1 and len(text) <= 64


def number(value: object) -> float | None:
    """A number, also one written as text; None for everything else, NaN and infinity included."""
    if not isinstance(value, (bool, int, float, str)):
        return None
    try:
        parsed = float(value)
    except (ValueError, OverflowError):
        return None
    return parsed if math.isfinite(parsed) else None


def text_of(fields: Mapping[str, Any], *names: str) -> str:
    """The text under the first of these names that has one; "" where none has."""
    return next((text for name in names if (text := plain(fields.get(name)))), "")


def id_key(value: object) -> ItemKey:
    """The key of a query or document known by its identifier."""
    return ItemKey(plain(value))


def text_key(value: object) -> ItemKey:
    """The key of a query or document known by its text."""
    return ItemKey(text=plain(value))


def query_items(
    query: ItemKey,
    where: str,
    missing: str,
    metadata: Mapping[str, Any] | None = None,
    grades: Iterable[tuple[ItemKey, object]] = (),
    docs: Sequence[ItemKey] | None = None,
    scores: Sequence[float | None] = (),
    run: str = "",
) -> Iterator[Item]:
    """A query with its documents that have a text, its judgments and its ranking; or its refusal.

    missing: the reason of the refusal where the query has neither identifier nor text; grades: judged documents with
    their grades; docs: the ranking, None for none; scores: see `ranking`.
    """
    if query == ItemKey():
        yield Refused(where, missing)
        return
    yield FoundQuery(query, where, metadata or {})
    judged = list(grades)
    for doc in [*(doc for doc, _ in judged), *(docs or ())]:
        if doc.text:
            yield Document(doc, where)
    for doc, grade in judged:
        yield Judgment(query, doc, grade, where)
    if docs is not None:
        yield ranking(query, docs, where, scores, run)


def ranking(
    query: ItemKey,
    docs: Sequence[ItemKey],
    where: str,
    scores: Sequence[float | None],
    run: str = "",
    ranks: tuple[float, ...] = (),
) -> Ranking:
    """The documents in their order, with their scores where each document has one."""
    numbers = tuple(score for score in scores if score is not None)
    whole = numbers if len(numbers) == len(docs) else ()
    return Ranking(query, tuple(docs), where, whole, run, ranks=ranks)


def lost_columns(names: Sequence[str]) -> list[FileRemark]:
    """A remark on the columns of a file that are not imported; [] where there are none."""
    more = " ..." if len(names) > 12 else ""
    return [FileRemark(f"columns not imported: {', '.join(names[:12])}{more}")] if names else []


# ----------
# Choices of the user: grades, judges who disagree, several words, clicks.


LEAST_IMPRESSIONS = 10

_JUDGES: dict[str, Callable[[Sequence[float]], float]] = {
    "max": max,
    "min": min,
    "mean": lambda grades: math.fsum(grades) / len(grades),
    "majority": lambda grades: max(Counter(grades).items(), key=lambda one: (one[1], one[0]))[0],
}


@dataclass(frozen=True)
class Choices:
    """What the user decides where files leave it open; "" stands for "ask", by an error of one line.

    grades: "round" (half up), "scale=N" (times N, then rounded) or "threshold=X" (1 from X on, else 0); "" keeps them
    as they are, fractions included; judges: "max", "min", "mean" or "majority" (the higher of equal ones) for a pair
    with several grades, which is left out otherwise; words: "all" or "any" of several words that make a document
    relevant; strict: write nothing where a file is refused; clicks: the model that makes grades of clicks, see
    `parse_click_model`; "" takes "coec" where a log has positions and "ctr" where it has none; impressions: of a pair,
    from which it is judged by clicks; allow_disjoint: write also what cannot belong together. Raises BadValue or
    UnknownName for anything else.
    """

    grades: str = ""
    judges: str = ""
    words: str = ""
    strict: bool = False
    clicks: str = ""
    impressions: int = LEAST_IMPRESSIONS
    allow_disjoint: bool = False

    def __post_init__(self) -> None:
        _regraded(self.grades)
        if self.judges and self.judges not in _JUDGES:
            raise UnknownName("way to join judges", self.judges, _JUDGES)
        if self.clicks:
            parse_click_model(self.clicks)
        if self.impressions < 1:
            raise BadValue(f"a floor of {self.impressions} impressions; expected 1 or more")
        if self.words not in ("", "all", "any"):
            raise UnknownName("way to match words", self.words, ("all", "any"))


def _regraded(grades: str) -> Callable[[float], float]:
    """What the choice does to a grade."""
    name, _, written = grades.partition("=")
    value = number(written)
    if name == "scale" and value is not None and value > 0:
        return lambda grade: math.floor(grade * value + 0.5)
    if name == "threshold" and value is not None:
        return lambda grade: float(grade >= value)
    if grades == "round":
        return lambda grade: math.floor(grade + 0.5)
    if grades:
        raise BadValue(f"--grades: found '{grades}'; expected round, scale=N or threshold=X")
    return lambda grade: grade


def agreed(grades: Sequence[float], choices: Choices) -> float | None:
    """The one grade of a pair; None where judges disagree and nothing was chosen."""
    if len(set(grades)) == 1:
        return grades[0]
    return _JUDGES[choices.judges](grades) if choices.judges else None


def chosen_grade(grade: float, choices: Choices, where: str) -> float:
    """What the choice makes of a grade, an int where it is whole; raises BadValue beyond what judgments hold."""
    regraded = _regraded(choices.grades)(grade)
    if abs(regraded) > LARGEST:
        raise BadValue(
            f"{where}: the grade {shown_number(regraded)} is beyond ±{LARGEST}; say --grades scale=N"
        )
    return grade_of(regraded, where)
