"""Recognise rankings and judgments by names of columns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Literal, TypeAlias

from weir.core.rounding import counted
from weir.errors import (
    BadValue,
    FormatError,
    LossWarning,
    WeirError,
    give_warning,
    nearest_names,
    warn_of_ranking,
)
from weir.files.text_files import read_toml

Kind: TypeAlias = Literal["run", "qrels"]
Part: TypeAlias = Literal["system", "collection"]
Tiers: TypeAlias = tuple[frozenset[str], ...]


@dataclass(frozen=True, eq=False)
class FieldNames:
    """Known names of columns and fields, and words in them, of rankings, judgments and logs, folded (see `fold`)."""

    roles: Mapping[str, Tiers]
    """{role: tiers of names, the best first}."""
    labels: Mapping[bool, frozenset[str]]
    """{True if a column of this name holds labels: names}."""
    words: Mapping[str, frozenset[str]]
    """{part of a document to search for words: names}."""
    parts: Mapping[Part, frozenset[str]]
    """{what a table may hold several of: names of columns that tell their rows apart}."""
    raters: frozenset[str]
    """Names of columns that say who judged a row."""
    clicks: Mapping[str, frozenset[str]]
    """{role of a column in a log of clicks: names}."""
    events: frozenset[str]
    """Words by which a log names what a user did with a result."""
    containers: frozenset[str]
    """Fields around a list of queries."""
    inner: frozenset[str]
    """Fields whose members belong to the query itself."""
    unanswerable: Mapping[str, frozenset[str]]
    """{field: values that say that a question has no answer}."""
    totals: frozenset[str]
    """Names of a last row that sums up the rows above."""
    pages: frozenset[str]
    """Names of columns that hold numbers of pages."""
    failed: frozenset[str]
    """Names of fields that say why a search failed."""

    @cache  # noqa: B019  `field_names` makes one
    def every(self, *roles: str) -> frozenset[str]:
        """Return all names of these roles, such as "query" and "doc"; of every role if none is passed."""
        return frozenset(name for role in roles or self.roles for tier in self.roles[role] for name in tier)

    def ids(self, *roles: str) -> frozenset[str]:
        """Return the names of these roles that can mean nothing but an identifier."""
        return frozenset().union(
            *(tier for role in roles for tier in self.roles[role][: 1 + (role == "doc")])
        )


@lru_cache(4096)
def fold(name: object) -> str:
    """Return a column's name in lower case, with letters and digits only."""
    return re.sub(r"[\W_]+", "", str(name).casefold())


@cache
def field_names() -> FieldNames:
    """Return the names of columns, and the words in them, that column_names.toml lists, as `fold` writes them."""
    table = read_toml(Path(__file__).with_suffix(".toml"), "names of fields")

    def folded(words: Iterable[str]) -> frozenset[str]:
        return frozenset(map(fold, words))

    return FieldNames(
        {role: tuple(map(folded, tiers)) for role, tiers in table["roles"].items()},
        {True: folded(table["labels"]["yes"]), False: folded(table["labels"]["no"])},
        {within: folded(words) for within, words in table["words"].items()},
        {"system": folded(table["runs"]["names"]), "collection": folded(table["collections"]["names"])},
        folded(table["raters"]["names"]),
        {role: folded(words) for role, words in table["clicks"].items()},
        folded(table["events"]["words"]),
        folded(table["containers"]["names"]),
        folded(table["containers"]["inner"]),
        {fold(name): frozenset(values) for name, values in table["unanswerable"].items()},
        folded(table["totals"]["names"]),
        folded(table["pages"]["names"]),
        folded(table["failed"]["names"]),
    )


def _called(columns: Iterable[str]) -> list[tuple[str, str]]:
    listed, known = list(columns), field_names().every()
    bare = [fold(re.sub(r"(?<=\S)\s*\([^()]*\)\s*$", "", str(column))) for column in listed]
    return [
        (column, name if name in known and bare.count(name) == 1 else fold(column))
        for column, name in zip(listed, bare, strict=True)
    ]


def of_role(columns: Iterable[str], role: str) -> list[str]:
    """Return the columns with the most usual name found for a role, such as "query"; [] without any.

    `docid` is ignored beside `docno`.
    """
    folded = _called(columns)
    if any(name == "docno" for _, name in folded):
        folded = [(column, name) for column, name in folded if column != "docid"]
    tiers = ([column for column, name in folded if name in tier] for tier in field_names().roles[role])
    return next((fitting for fitting in tiers if fitting), [])


def identifier_names(columns: Iterable[str], *roles: str) -> list[str]:
    """Return the columns that surely hold identifiers, role by role; for each role under its most usual name only."""
    listed = list(columns)
    called = dict(_called(listed))
    return [one for role in roles for one in of_role(listed, role) if called[one] in field_names().ids(role)]


def usual(columns: Iterable[str], *roles: str) -> list[str]:
    """Return the columns with any known name of these roles, without `docid` beside `docno`."""
    known = field_names().every(*roles)
    found = [column for column, name in _called(columns) if name in known]
    return [one for one in found if one != "docid" or "docno" not in map(fold, found)]


# Where a judgment comes from: a column that judgments may have besides.
ORIGIN = "origin"

_ROLES = {
    "query": ("query_id", "query"),
    "document": ("doc",),
    "score": ("score",),
    "grade": ("grade", "score"),
}
"""{content of a column: roles it may play, the best first}."""

# Headers that Weir writes; BEIR's own header is kept for tab-separated judgments.
WRITTEN: dict[Kind, tuple[str, str, str]] = {
    "run": ("query_id", "doc_id", "score"),
    "qrels": ("query_id", "doc_id", "relevance"),
}
BEIR_HEAD = ("query-id", "corpus-id", "score")
SHEET_HEAD = ("query-id", "corpus-id", "grade", "query", "title", "text")
"""Columns of a sheet on which people judge."""


@dataclass(frozen=True)
class ColumnLayout:
    """The layout of a table of rankings or judgments: separator, header lines, positions of columns."""

    separator: str
    names: tuple[str, ...]
    query: int
    """Position of the query column; `doc` and `number` are positions of document and score or grade."""
    doc: int
    number: int
    """-1 for judgments without grades."""
    rank: int | None = None
    """Position of the rank column of a run; None without one."""
    head_lines: int = 1
    """Lines before the rows."""


def row_columns(columns: Sequence[str], kind: Kind, path: object = None) -> tuple[int, ...]:
    """Return the positions, from 0, of query, document and score (of a run) or grade (of judgments).

    Judgments with columns for query and document alone have no grade: two positions; see `say_no_grades`.

    Raises FormatError, or BadValue without a `path`, for a missing or ambiguous column, and for judgments with ranks
    and `score`.
    """
    query, doc = (_chosen(columns, what, path) for what in ("query", "document"))
    if kind == "qrels" and {query, doc} == {*range(len(columns))}:
        return query, doc
    value = _chosen(columns, "score" if kind == "run" else "grade", path)
    if kind == "qrels" and has_ranks(columns) and fold(columns[value]) == "score":
        raise _refused(
            columns, "rank and score are a run's", "judgments, which come first, then the run", path
        )
    return query, doc, value


def _chosen(columns: Sequence[str], what: str, path: object) -> int:
    for role in _ROLES[what]:
        matches = of_role(columns, role)
        if len(matches) > 1:
            raise _refused(
                columns, f"{' and '.join(matches)} could both be the {what}", "one of them alone", path
            )
        if matches:
            return list(columns).index(matches[0])
    usual, known = field_names().every(*_ROLES[what]), field_names().every()
    near = [one for one in columns if fold(one) not in known and nearest_names(fold(one), usual, 1)]
    hint = f" (rename '{near[0]}'?)" if len(near) == 1 else ""
    if what == "score" and (distances := of_role(columns, "distance")):
        hint = f"; of '{distances[0]}' less is better: weir data import FILE -o DIR makes scores of distances"
    elif what == "score" and of_role(columns, "grade"):
        hint = "; grades are judgments', which come first, then the run"
    elif what == "score" and of_role(columns, "rank") and path is None:
        hint = "; ranks without scores are given as {query: documents in rank order}"
    elif what == "score" and of_role(columns, "rank"):
        hint = "; ranks without scores are read by: weir data import FILE -o DIR --as run-ranks"
    elif what == "score" and len(columns) == 2:
        doc = columns[_chosen(columns, "document", path)]
        hint = f"; documents alone are read by: weir data import FILE -o DIR --columns retrieved={doc}"
    elif what == "document" and path is not None and (relevant := of_role(columns, "relevant")):
        hint = f"; relevant documents, as in '{relevant[0]}', are read by: weir data import FILE -o DIR"
    elif not hint and path is not None:
        role = {"document": "doc"}.get(what, what)
        hint = f"; names of your own are read by: weir data import FILE -o DIR --columns {role}=NAME,..."
    name = dict(
        zip(("query", "document", "score", "grade"), (*WRITTEN["run"], WRITTEN["qrels"][2]), strict=True)
    )
    raise _refused(columns, f"none of them is the {what}", f"one called '{name[what]}'{hint}", path)


def _refused(columns: Sequence[str], reason: str, expected: str, path: object) -> WeirError:
    listed = ", ".join(columns) or "none"
    if path is None:
        return BadValue(f"columns: {listed}; {reason}; expected {expected}")
    return FormatError(path, f"the columns {listed}: {reason}", expected)


def say_no_grades(path: object) -> None:
    """Warn (RankingWarning) that the documents of judgments without grades count as relevant."""
    warn_of_ranking(f"{path}: no grades: each document counts as relevant, grade 1")


def pair_columns(columns: Sequence[str], path: object) -> tuple[int, int] | None:
    """Return the positions, from 0, of the query and document columns; None if one is missing.

    Raises FormatError if several columns could be either.
    """
    if not (_have(columns, "query_id", "query") and _have(columns, "doc")):
        return None
    return _chosen(columns, "query", path), _chosen(columns, "document", path)


def is_label(column: str) -> bool | None:
    """Return True if a column of this name holds relevance labels, False if not, None for an unknown name."""
    name = fold(column)
    if name in field_names().labels[True] | field_names().every("grade", "score"):
        return True
    return False if name in field_names().labels[False] else None


def is_header(cells: Sequence[str], kind: Kind) -> bool:
    """Return True if a table's first line is a header: no cell is a number, and some cell is a known column name."""
    for cell in cells:
        with suppress(ValueError):
            float(cell)
            return False
    return _have(cells, "query_id", "query", "doc", "score" if kind == "run" else "grade")


def is_named(columns: Sequence[str]) -> bool:
    """Return True if some cell can only be the name of a column."""
    return any(
        name in field_names().ids(role)
        for role in ("query_id", "query", "doc", "grade", "score")
        for _, name in _called(columns)
    )


def _have(columns: Iterable[str], *roles: str) -> bool:
    return not field_names().every(*roles).isdisjoint(name for _, name in _called(columns))


def names_rows(columns: Sequence[str]) -> bool:
    """Return True if some column names the query and another the document."""
    return all(any(of_role(columns, role) for role in _ROLES[what]) for what in ("query", "document"))


def has_ranks(columns: Sequence[str]) -> bool:
    """Return True if a column is named "rank"."""
    return "rank" in map(fold, columns)


def rank_column(columns: Sequence[str], kind: Kind) -> int | None:
    """Return the position, from 0, of a run's rank column; None if missing or ambiguous, and for judgments."""
    found = of_role(columns, "rank") if kind == "run" else []
    return list(columns).index(found[0]) if len(found) == 1 else None


def part_columns(columns: Sequence[str], kind: Kind) -> list[tuple[int, Part]]:
    """Return (position, "system" or "collection") of the columns that name each row's collection or, in a run,
    system.
    """
    parts = field_names().parts
    of_kind: tuple[Part, ...] = ("system", "collection") if kind == "run" else ("collection",)
    return [(at, part) for part in of_kind for at, name in enumerate(columns) if fold(name) in parts[part]]


def other_columns(columns: Sequence[str]) -> tuple[int, int, list[int]]:
    """Return the positions of query and score of a run, and of all columns that no reader uses.

    Raises BadValue for a missing or ambiguous column.
    """
    query, doc, score = row_columns(columns, "run")
    used = {query, doc, score, rank_column(columns, "run"), *(at for at, _ in part_columns(columns, "run"))}
    return query, score, [at for at in range(len(columns)) if at not in used]


def origin_column(columns: Sequence[str], kind: Kind) -> int | None:
    """Return the position of the column with the origins of judgments; None without one, and for a run."""
    folded = [fold(column) for column in columns]
    return folded.index(ORIGIN) if kind == "qrels" and ORIGIN in folded else None


def rater_columns(columns: Sequence[str]) -> list[int]:
    """Return the positions of the columns that may say who judged each row: of raters, then of origins."""
    called = [name for _, name in _called(columns)]
    names = (field_names().raters, field_names().every("origin"))
    return [at for known in names for at, name in enumerate(called) if name in known]


_OF_TREC = {"q0", "iter", "iteration", "tag"}
"""Columns of TREC's formats that say nothing of the ranking."""


def say_unread(path: object, columns: Sequence[str], kind: Kind) -> None:
    """Warn (LossWarning) of columns that are not read, except TREC's, such as `tag`.

    Warns (RankingWarning) of judgments without grades, and of columns read whose names have remarks, as in `score
    (bm25)`. Raises the errors of `row_columns`.
    """
    found = rank_column(columns, kind), origin_column(columns, kind)
    systems = (at for at, part in part_columns(columns, kind) if part == "system")
    positions = row_columns(columns, kind, path)
    used = {*positions, *found, *systems}
    if len(positions) == 2:
        say_no_grades(path)
    remarked = {
        columns[at]: what for at, what in zip(positions, WRITTEN[kind], strict=False) if "(" in columns[at]
    }
    if remarked:
        said = ", ".join(f"'{column}' as {what}" for column, what in remarked.items())
        warn_of_ranking(f"{path}: read without its remark: {said}")
    # The first column without a name is pandas' index.
    named = (name if name.strip() or not n else f"column {n + 1}" for n, name in enumerate(columns))
    others = (name for n, name in enumerate(named) if n not in used and fold(name) not in _OF_TREC)
    say_left_out(path, others, kind == "qrels" and is_sheet(columns))


def say_left_out(path: object, names: Iterable[str], sheet: bool = False) -> None:
    """Warn (LossWarning) that the named columns are not read; blank names are skipped.

    sheet: skip the usual columns of a judging sheet too.
    """
    known = {fold(name) for name in SHEET_HEAD} if sheet else set[str]()
    if unread := [name for name in names if name.strip() and fold(name) not in known]:
        said = f"{path}: not read: {counted(len(unread), 'column')}, {', '.join(unread)}"
        give_warning(LossWarning(said))


def is_sheet(columns: Sequence[str]) -> bool:
    """Return True if the first three columns are named as in a judging sheet."""
    return tuple(columns[:3]) == SHEET_HEAD[:3]


def kind_of(columns: Sequence[str], path: object) -> Kind:
    """Return "run" or "qrels", by column names; raises FormatError for a missing or ambiguous column."""
    judged = _have(columns, "grade") or sorted(map(fold, columns)) == sorted(map(fold, BEIR_HEAD))
    kind: Kind = "qrels" if judged else "run"
    row_columns(columns, kind, path)
    return kind
