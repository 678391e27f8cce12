"""Items that readers find in a file, and the user's choices."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from weir.argument_types import checked_fields
from weir.core.qrels import LARGEST, grade_of, shown_number
from weir.errors import BadValue, UnknownName
from weir.files.column_names import field_names, fold, of_role, usual
from weir.files.formats import MISSING
from weir.plugins.importing.cells import (
    KEYED,
    Cells,
    grade_word,
    has_value,
    identifier,
    is_grade,
    is_identifier,
    number,
    one_of,
    plain_text,
)
from weir.plugins.importing.click_models import ClickShare, parse_click_model
from weir.plugins.importing.contents import TableRow

# ----------
# Items of a file.


@dataclass(frozen=True)
class ItemKey:
    """The identifier and the text of a query or document; "" if the file does not give it."""

    id: str = ""
    text: str = ""


@dataclass(frozen=True)
class FoundQuery:
    """A query of an imported file."""

    key: ItemKey
    where: str
    """Its place in the file, for messages."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """All other fields."""
    unanswerable: bool = False
    """True if the file says that no document answers it."""
    rows: Mapping[str, int] = field(default_factory=dict)
    """Other field -> number of rows that give it, where several do."""


@dataclass(frozen=True)
class Document:
    """A document of an imported file; its identifier and text are the key."""

    key: ItemKey
    where: str
    title: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Judgment:
    """A document's grade for a query, as the file has it."""

    query: ItemKey
    doc: ItemKey
    grade: object
    where: str
    split: str = "test"
    """The qrels file that it goes to."""
    origin: str = ""
    """The source of the judgment; "" if the file does not say."""
    clicks: ClickShare | None = None
    """Clicks that the grade was made of; None for other grades."""


@dataclass(frozen=True)
class ByWords:
    """A judgment by words: documents that contain all or any of them (`how`) get the grade, once the corpus is
    known."""

    query: ItemKey
    words: tuple[str, ...]
    field: str
    """The file's name for the words."""
    where: str
    how: str = ""
    """"all" or "any" of the words must match; "" if the user has to say."""
    within: str = "text"
    """The part of a document that is searched: "text", "title" or "id"."""
    grade: object = 1
    tokens: bool = False
    """Match whole tokens of the text alone, as DPR does, not characters."""


@dataclass(frozen=True)
class Ranking:
    """A system's ranking for one query of an imported file."""

    query: ItemKey
    docs: tuple[ItemKey, ...]
    where: str
    scores: tuple[float, ...] = ()
    """One for each document, or ()."""
    run: str = ""
    """Name of the run; "" for the file's."""
    ordered: bool = True
    """True if the order of `docs` is the ranking, whatever the scores; False if scores decide."""
    ranks: tuple[float, ...] = ()
    """One for each document, or ()."""
    unused: int = 0
    """Number of scores in the file that are not used, as other documents have none."""


@dataclass(frozen=True)
class Refused:
    """A row left out, and the reason."""

    where: str
    reason: str


@dataclass(frozen=True)
class FileRemark:
    """A remark on the whole file, for the report."""

    text: str


@dataclass(frozen=True)
class Used:
    """The field of a file that was read in a role such as query."""

    role: str
    field: str


@dataclass(frozen=True)
class LeftOut:
    """A field or kind of record of a file that is not imported, with its count."""

    field: str
    """Its name, or what it is."""
    count: int
    """Number of records with a value."""


Item: TypeAlias = FoundQuery | Document | Judgment | ByWords | Ranking | Refused | FileRemark | Used | LeftOut


# ----------
# The vocabulary of readers: paths in a file's value, keys of queries and documents, a query with its documents.


def value_at(value: object, *path: str) -> Any:  # noqa: ANN401  JSON holds anything
    """Return the value at a path of names within nested objects; None if there is none."""
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def table_at(value: object, *path: str) -> dict[str, Any]:
    """Return the object at a path of names; {} if there is no object."""
    table = value_at(value, *path)
    return table if isinstance(table, dict) else {}


def members_at(value: object, *path: str) -> list[tuple[str, Any]]:
    """Return the (name, value) pairs of the object at a path of names, all marked as used; [] if there is none."""
    table = table_at(value, *path)
    if isinstance(table, Cells):
        table.take(KEYED, *table)
    return list(table.items())


def objects(value: object, *path: str) -> list[dict[str, Any]]:
    """Return the objects in the list at a path of names; [] without a list.

    Other members are left out; a list with any is not marked as used.
    """
    parent = value_at(value, *path[:-1])
    members = dict.get(parent, path[-1]) if isinstance(parent, dict) else None
    if not isinstance(members, list):
        return []
    found = [one for one in members if isinstance(one, dict)]
    if isinstance(parent, Cells) and len(found) == len(members):
        parent.take(path[-1])
    return found


def text_of(fields: Mapping[str, Any], *names: str) -> str:
    """Return the text of the first of these fields that has one; "" if none has."""
    read = fields.text if isinstance(fields, Cells) else lambda name: plain_text(fields.get(name))
    return next((text for name in names if (text := read(name))), "")


def id_of(fields: Mapping[str, Any], name: str) -> str:
    """Return the identifier in a field; "" without one."""
    if not isinstance(fields, Cells):
        return identifier(fields.get(name))
    if found := identifier(dict.get(fields, name)):
        fields.take(name)
    return found


def number_of(fields: Mapping[str, Any], name: str) -> float | None:
    """Return the number in a field; None without one."""
    return fields.number(name) if isinstance(fields, Cells) else number(fields.get(name))


def id_key(value: object) -> ItemKey:
    """Return the ItemKey with a value as identifier; empty for None, blanks, NaN, Booleans, bytes, lists and
    objects."""
    return ItemKey("" if isinstance(value, bool) else identifier(value))


def text_key(fields: Mapping[str, Any], *names: str) -> ItemKey:
    """Return the ItemKey with the text of the first of these fields that has one; else an empty one."""
    return ItemKey(text=text_of(fields, *names))


def read_whole(row: TableRow, read: Callable[[TableRow], Iterator[Item]]) -> list[Item]:
    """Return the items that `read` yields for a row, or one Refused alone if it raises ValueError."""
    try:
        return list(read(row))
    except ValueError as error:
        return [Refused(row.where, str(error))]


def nothing_answers(fields: Mapping[str, Any], *references: object) -> bool:
    """Return True if a row says that no document answers its query: in a field for it, or by empty lists of references.

    references: values of the fields that name relevant documents; one without a value says nothing.
    """
    flags = field_names().unanswerable
    if any(plain_text(value).casefold() in flags.get(fold(name), ()) for name, value in fields.items()):
        return True
    texts = [one.strip() if isinstance(one, str) else one for one in references]
    empty = [one in ([], "[]", "()") for one in texts]
    return any(empty) and not any(has_value(one) for one, no in zip(texts, empty, strict=True) if not no)


def query_items(
    query: ItemKey,
    where: str,
    missing: str,
    metadata: Mapping[str, Any] | None = None,
    grades: Iterable[tuple[ItemKey, object]] = (),
    docs: Sequence[ItemKey] | None = None,
    scores: Sequence[float | None] = (),
    run: str = "",
    unanswerable: bool = False,
) -> Iterator[Item]:
    """Yield a query, its documents with texts, judgments and ranking; for an empty key a Refused alone.

    missing: reason of the refusal.
    grades: (document, grade) pairs.
    docs: the ranking, best first. None for none.
    """
    if query == ItemKey():
        yield Refused(where, missing)
        return
    yield FoundQuery(query, where, metadata or {}, unanswerable)
    judged = list(grades)
    for doc in [*(doc for doc, _ in judged), *(docs or ())]:
        if doc.text:
            yield Document(doc, where)
    for doc, grade in judged:
        yield Judgment(query, doc, grade, where)
    if docs is not None:
        yield ranking_item(query, docs, where, scores, run)


def ranking_item(
    query: ItemKey,
    docs: Sequence[ItemKey],
    where: str,
    scores: Sequence[float | None],
    run: str = "",
    ranks: tuple[float, ...] = (),
) -> Ranking:
    """Return a ranking in the order of `docs`; scores are dropped unless every document has one."""
    numbers = tuple(score for score in scores if score is not None)
    whole = numbers if len(numbers) == len(docs) else ()
    return Ranking(query, tuple(docs), where, whole, run, ranks=ranks, unused=len(numbers) - len(whole))


@dataclass(frozen=True)
class Member:
    """A document named by a member of a list."""

    key: ItemKey
    title: str = ""
    grade: object = None
    """None if there is no grade, "" if it is blank."""
    score: float | None = None
    """Its score; a distance is negated."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    has_distance: bool = False
    rank: tuple[str, float] | None = None
    """The field called as a rank, and its number; None without one."""

    @property
    def number(self) -> float | None:
        """Return the score, else the grade, as a number; None without either."""
        return number(self.grade) if self.score is None else self.score

    def relevance(self) -> object:
        """Return the grade of a listed relevant document: its own, else its whole-number score, else 1.

        Raises ValueError if it has no grade, and its score is a distance or no whole number.
        """
        if self.grade is not None:
            return self.grade
        if self.score is not None and (self.has_distance or not self.score.is_integer()):
            what = f"distance {-self.score:g}" if self.has_distance else f"score {self.score:g}"
            raise ValueError(
                f"the {what} beside a relevant document is no grade; for what was retrieved say "
                "`columns='retrieved=NAME'`, for a grade `columns='grade=NAME'`"
            )
        return 1 if self.score is None else self.score

    def document(self, where: str) -> Iterator[Document]:
        """Yield the document, if it has a text."""
        if self.key.text:
            yield Document(self.key, where, self.title, self.metadata)


def failure_of(fields: Mapping[str, Any]) -> str:
    """Return a sentence on the failure that a search's record reports; "" if none."""
    for name, value in fields.items():
        if (
            fold(name) in field_names().failed
            and has_value(value)
            and (value is True or number(value) is None)
        ):
            said = " ".join(str(value).split())
            if said.casefold() not in MISSING | {"false", "no", "ok"}:
                return f"the search failed ('{name}': {said[:60]})"
    return ""


def names_document(one: object) -> bool:
    """Return True if a list's member may be a document: an identifier, [identifier, number], or a fitting object."""
    try:
        return (
            member_of(Cells(one) if isinstance(one, Cells) else one, {}) is not None
        )  # no field is used yet
    except BadValue:
        return True


def member_of(one: object, roles: Mapping[str, str]) -> Member | None:
    """Return the document that a list's member names: an identifier, [identifier, number] or object; None for others.

    roles: the user's {role: field}.

    If two fields could be identifier or text, the one with blanks is the text. Raises BadValue if fields are
    ambiguous.
    """
    if isinstance(one, list):
        pair = len(one) == 2 and isinstance(one[1], (int, float)) and plain_text(one[0])
        return Member(ItemKey(identifier(one[0])), score=number(one[1])) if pair else None
    if not isinstance(one, Cells):
        key = id_key(one)
        return Member(key) if key.id else None
    given = [name for name, value in one.items() if plain_text(value)]
    ids = [roles["doc"]] if roles.get("doc") in given else usual(given, "doc", "id")
    texts = of_role([name for name in given if name not in ids], "text")
    text = one_of("text", texts) if len(texts) > 1 else next(iter(texts), "")
    if len(ids) > 1:
        texts = [n for n in usual(ids, "text") if not is_identifier(plain_text(dict.get(one, n)))]
        if len(texts) == 1 and not text:
            text = texts[0]
        ids = [name for name in ids if name not in texts]
    if len({plain_text(dict.get(one, name)) for name in ids}) > 1:
        one_of("doc", ids)
    if not text and not ids:
        return None
    titles = of_role(given, "title")
    title = one_of("title", titles) if len(titles) > 1 else next(iter(titles), "")
    scalars = [name for name, value in one.items() if not isinstance(value, (dict, list))]
    graded = [name for name in scalars if is_grade(dict.get(one, name))]
    grade = roles.get("grade") or next(iter(of_role(graded, "grade") or of_role(scalars, "grade")), "")
    score = roles.get("score") if roles.get("score") in one else next(iter(of_role(given, "score")), "")
    grade = "" if grade == score else grade
    far = "" if score else next(iter(of_role(scalars, "distance")), "")
    distance = one.number(far) if far else None
    place = next(iter(of_role(scalars, "rank")), "")
    rank = number(one.seen(place))
    one.take(*ids)
    key = ItemKey(identifier(one[ids[0]]) if ids else "", one.text(text) if text else "")
    return Member(
        key,
        one.text(title) if title and text else "",
        ("" if one.get(grade) is None else one[grade]) if grade and grade in one else None,
        one.number(score) if score else None if distance is None else -distance,
        _rest_of(one, *ids, text, title, grade, score, far) if text else {},
        has_distance=distance is not None,
        rank=None if rank is None else (place, rank),
    )


def places_of(listed: Sequence[object], members: Sequence[Member]) -> tuple[list[int], tuple[float, ...]]:
    """Return (positions of the members by rank, the ranks ascending); (positions as listed, ()) without ranks.

    listed: the members as in the file; their rank is marked as used.

    A field is a rank if all members have it, and it is called rank or counts from 0 or 1.
    """
    count, found = len(members), [member.rank for member in members if member.rank is not None]
    ranks = [rank for _, rank in found]
    called = {name for name, _ in found} == {"rank"} or {*ranks} in ({*range(1, count + 1)}, {*range(count)})
    if not count or len(ranks) < count or not called:
        return list(range(count)), ()
    for one, (name, _) in zip(listed, found, strict=True):
        if isinstance(one, Cells):
            one.take(name)
    return sorted(range(count), key=ranks.__getitem__), tuple(sorted(ranks))


def _rest_of(one: Cells, *read: str | None) -> dict[str, Any]:
    fields = Cells(one)
    fields.take(*filter(None, read))
    rest = fields.rest()
    one.take(*rest)
    return rest


# ----------
# Choices of the user: grades, judges who disagree, several words, clicks.


LEAST_IMPRESSIONS = 10

_JUDGES: dict[str, Callable[[Sequence[float]], float]] = {
    "max": max,
    "min": min,
    "mean": lambda grades: math.fsum(grades) / len(grades),
    "majority": lambda grades: max(Counter(grades).items(), key=lambda one: (one[1], -one[0]))[0],
}


@checked_fields
@dataclass(frozen=True)
class Choices:
    """Decisions on questions that files leave open; raises BadValue or UnknownName for other values."""

    grades: str = ""
    """Make grades whole: round (half up), scale=N (times N, then rounded) or threshold=X (1 from X on, else 0);
    otherwise they are kept as they are. Or the number of each word: Perfect=2,Good=1,Bad=0.
    """
    judges: str = ""
    """The grade of a pair that has several: max, min, mean or majority (the lowest if tied); "" refuses it."""
    words: str = ""
    """Whether a relevant document holds "all" or "any" of several words; "" refuses several."""
    between: str = ""
    """The mark between the documents of one cell, such as | or ;."""
    strict: bool = False
    """Write nothing if any file is refused."""
    clicks: str = ""
    """The model that makes grades of clicks: ctr, coec or pbm; by default coec, or ctr without positions."""
    impressions: int = LEAST_IMPRESSIONS
    """How often a document must have been shown for a query to be judged by clicks."""
    allow_disjoint: bool = False
    """Write what has nothing in common (runs, judgments, queries, documents; of texts that are in none, less than
    half), or stands in two folders under one name."""
    allow_loss: bool = False
    """Write what is left of a file of which more than a tenth of the rows, or of the judgments, are refused."""

    def __post_init__(self) -> None:
        if not self.grade_words():
            _regraded(self.grades)
        if self.judges and self.judges not in _JUDGES:
            raise UnknownName("way to join judges", self.judges, _JUDGES)
        if self.clicks:
            parse_click_model(self.clicks)
        if self.impressions < 1:
            raise BadValue(f"a floor of {self.impressions} impressions; expected 1 or more")
        if self.words not in ("", "all", "any"):
            raise UnknownName("way to match words", self.words, ("all", "any"))

    def grade_words(self) -> dict[str, float]:
        """Return the {word: number} of `grades`, {} for another choice; raises BadValue for malformed text."""
        if not self.grades or self.grades.partition("=")[0] in _MADE_WHOLE:
            return {}
        words: dict[str, float] = {}
        for part in self.grades.split(","):
            name, _, written = part.rpartition("=")
            word, value = grade_word(name), number(written)
            if not word or value is None:
                raise BadValue(
                    f"`grades`: found '{part}'; expected round, scale=N, threshold=X, or the number of each "
                    "word, as in Perfect=2,Good=1,Bad=0"
                )
            if words.setdefault(word, value) != value:
                raise BadValue(f"`grades`: found two numbers for '{name.strip()}'; expected each word once")
        return words


_MADE_WHOLE = ("round", "scale", "threshold")


def _regraded(grades: str) -> Callable[[float], float]:
    name, _, written = grades.partition("=")
    value = number(written)
    if name == "scale" and value is not None and value > 0:
        return lambda grade: math.floor(grade * value + 0.5)
    if name == "threshold" and value is not None:
        return lambda grade: float(grade >= value)
    if grades == "round":
        return lambda grade: math.floor(grade + 0.5)
    if grades:
        raise BadValue(
            f"`grades`: found '{grades}'; expected round, scale=N or threshold=X with numbers above 0"
        )
    return lambda grade: grade


def agreed(grades: Sequence[float], choices: Choices) -> float | None:
    """Return the grade on which all judges agree, else the grade by `choices.judges`; None without that choice."""
    if len(set(grades)) == 1:
        return grades[0]
    return _JUDGES[choices.judges](grades) if choices.judges else None


def chosen_grade(grade: float, choices: Choices, where: str) -> float:
    """Return a grade changed as `choices.grades` says; raises BadValue beyond the range of judgments.

    where: place for messages.
    """
    regraded = grade if choices.grade_words() else _regraded(choices.grades)(grade)
    if abs(regraded) > LARGEST:
        raise BadValue(
            f"{where}: the grade {shown_number(regraded)} is beyond ±{LARGEST}; say `choices={{'grades': 'scale=N'}}`"
        )
    return grade_of(regraded, where)
