"""Items that readers find in a file, the vocabulary in which readers are written, and the choices of the user."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from weir.core.qrels import LARGEST, grade_of, shown_number
from weir.errors import BadValue, UnknownName
from weir.files.column_names import of_role, usual
from weir.plugins.importing.cells import (
    Cells,
    grade_value,
    identifier,
    is_grade,
    is_identifier,
    number,
    one_of,
    plain,
)
from weir.plugins.importing.click_models import ClickShare, parse_click_model
from weir.plugins.importing.contents import TableRow

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


@dataclass(frozen=True)
class LeftOut:
    """A field that is not imported, and in how many records it has a value."""

    field: str
    count: int


Item: TypeAlias = FoundQuery | Document | Judgment | ByWords | Ranking | Refused | FileRemark | Used | LeftOut


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


def text_of(fields: Mapping[str, Any], *names: str) -> str:
    """The text under the first of these names that has one; "" where none has."""
    return next((text for name in names if (text := plain(fields.get(name)))), "")


def id_key(value: object) -> ItemKey:
    """The key of a query or document known by its identifier."""
    return ItemKey(identifier(value))


def text_key(value: object) -> ItemKey:
    """The key of a query or document known by its text."""
    return ItemKey(text=plain(value))


def read_whole(row: TableRow, read: Callable[[TableRow], Iterator[Item]]) -> list[Item]:
    """The items of a row, or its refusal where reading it raises ValueError: a row is read whole or left out."""
    try:
        return list(read(row))
    except ValueError as error:
        return [Refused(row.where, str(error))]


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


@dataclass(frozen=True)
class Member:
    """A document of a list; grade, score: beside it, as the file has them; a grade that is blank is ""."""

    key: ItemKey
    title: str = ""
    grade: object = None
    score: float | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def number(self) -> float | None:
        """The number beside the document: its score, else its grade; None where there is none."""
        return number(self.grade) if self.score is None else self.score

    def relevance(self) -> object:
        """The grade beside a relevant document, or its score where that is a whole number; 1 where there is neither.

        Raises ValueError for a score with a fraction, which is one of retrieval.
        """
        if self.grade is not None:
            return grade_value(self.grade)
        if self.score is not None and not self.score.is_integer():
            raise ValueError(
                f"the score {self.score:g} beside a relevant document is no grade; for what was retrieved say "
                "--columns retrieved=NAME, for a grade --columns grade=NAME"
            )
        return 1 if self.score is None else self.score

    def document(self, where: str) -> Iterator[Document]:
        """The document, where its text is there."""
        if self.key.text:
            yield Document(self.key, where, self.title, self.metadata)


def names_document(one: object) -> bool:
    """Whether a member of a list is a document, if perhaps one whose identifier is asked for."""
    try:
        return member_of(one, {}) is not None
    except BadValue:
        return True


def member_of(one: object, roles: Mapping[str, str]) -> Member | None:
    """The document that a member of a list is: an identifier, [identifier, number] or an object; None for others.

    roles: role -> field, as the user says. Of fields that may be text or identifier, one with blanks is the text where
    another can be the identifier. Raises BadValue where two could be the identifier.
    """
    if isinstance(one, list):
        pair = len(one) == 2 and isinstance(one[1], (int, float)) and plain(one[0])
        return Member(ItemKey(identifier(one[0])), score=number(one[1])) if pair else None
    if not isinstance(one, Cells):
        name = identifier(one)
        return Member(ItemKey(name)) if name else None
    given = [name for name, value in one.items() if plain(value)]
    ids = [roles["doc"]] if roles.get("doc") in given else usual(given, "doc", "id")
    texts = of_role([name for name in given if name not in ids], "text")
    text = one_of("text", texts) if len(texts) > 1 else next(iter(texts), "")
    if len(ids) > 1:
        texts = [n for n in usual(ids, "text") if not is_identifier(plain(dict.get(one, n)))]
        if len(texts) == 1 and not text:
            text = texts[0]
        ids = [name for name in ids if name not in texts]
    if len({plain(dict.get(one, name)) for name in ids}) > 1:
        one_of("doc", ids)
    if not text and not ids:
        return None
    title = next(iter(of_role(given, "title")), "")
    scalars = [name for name, value in one.items() if not isinstance(value, (dict, list))]
    graded = [name for name in scalars if is_grade(dict.get(one, name))]
    grade = roles.get("grade") or next(iter(of_role(graded, "grade") or of_role(scalars, "grade")), "")
    score = roles.get("score") if roles.get("score") in one else next(iter(of_role(given, "score")), "")
    grade = "" if grade == score else grade
    one.take(*ids)
    key = ItemKey(identifier(one[ids[0]]) if ids else "", plain(one[text]) if text else "")
    return Member(
        key,
        plain(one[title]) if title else "",
        ("" if one.get(grade) is None else one[grade]) if grade in one else None,
        number(one[score]) if score else None,
        one.rest() if text else {},
    )


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
    from which it is judged by clicks; allow_disjoint: write also what cannot belong together; allow_loss: write also
    what is left of a file of which more than a tenth of the rows are refused. Raises BadValue or UnknownName for
    anything else.
    """

    grades: str = ""
    judges: str = ""
    words: str = ""
    strict: bool = False
    clicks: str = ""
    impressions: int = LEAST_IMPRESSIONS
    allow_disjoint: bool = False
    allow_loss: bool = False

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
