"""What columns are called: the one home of the names by which rankings and judgments are recognised."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Literal, TypeAlias

from weir.errors import BadValue, FormatError, WeirError

Kind: TypeAlias = Literal["run", "qrels"]
Tiers: TypeAlias = tuple[frozenset[str], ...]


@dataclass(frozen=True)
class FieldNames:
    """Hold the names of column_names.toml, folded; the file says of what each table is."""

    roles: Mapping[str, Tiers]
    """{role: tiers of names, the best first}."""
    labels: Mapping[bool, frozenset[str]]
    """{whether a column of such a name holds labels: names}."""
    words: Mapping[str, frozenset[str]]
    """{part of a document in which words are looked for: names}."""
    runs: frozenset[str]
    clicks: Mapping[str, frozenset[str]]
    containers: frozenset[str]
    inner: frozenset[str]
    unanswerable: Mapping[str, frozenset[str]]

    def every(self, *roles: str) -> frozenset[str]:
        """All names of some roles, by default of every role."""
        return frozenset(name for role in roles or self.roles for tier in self.roles[role] for name in tier)


@lru_cache(4096)
def fold(name: object) -> str:
    """A name as it is compared: without case, blanks, hyphens and underscores."""
    return re.sub(r"[\W_]+", "", str(name).casefold())


@cache
def names() -> FieldNames:
    """The names, read once."""
    table = tomllib.loads(files("weir.files").joinpath("column_names.toml").read_text(encoding="utf-8"))

    def folded(words: Iterable[str]) -> frozenset[str]:
        return frozenset(map(fold, words))

    return FieldNames(
        {role: tuple(map(folded, tiers)) for role, tiers in table["roles"].items()},
        {True: folded(table["labels"]["yes"]), False: folded(table["labels"]["no"])},
        {within: folded(words) for within, words in table["words"].items()},
        folded(table["runs"]["names"]),
        {role: folded(words) for role, words in table["clicks"].items()},
        folded(table["containers"]["names"]),
        folded(table["containers"]["inner"]),
        {fold(name): frozenset(values) for name, values in table["unanswerable"].items()},
    )


def of_role(columns: Iterable[str], role: str) -> list[str]:
    """The columns that are called as is usual for a role, those of the best tier; [] for none.

    PyTerrier's `docid`, a number of its own beside `docno`, is none of the documents' names then.
    """
    folded = [(column, fold(column)) for column in columns]
    if any(name == "docno" for _, name in folded):
        folded = [(column, name) for column, name in folded if column != "docid"]
    tiers = ([column for column, name in folded if name in tier] for tier in names().roles[role])
    return next((fitting for fitting in tiers if fitting), [])


def usual(columns: Iterable[str], *roles: str) -> list[str]:
    """The columns that have a usual name of one of some roles, whatever its tier, but for PyTerrier's `docid`."""
    known = names().every(*roles)
    found = [column for column in columns if fold(column) in known]
    return [one for one in found if one != "docid" or "docno" not in map(fold, found)]


# Where a judgment comes from: a column that judgments may have besides.
ORIGIN = "origin"

_ROLES = {
    "query": ("query_id", "query"),
    "document": ("doc",),
    "score": ("score",),
    "grade": ("grade", "score"),
}
"""What a column holds -> the roles that it may play, the best first."""

# What Weir itself writes; BEIR's own header is kept for tab-separated judgments.
WRITTEN: dict[Kind, tuple[str, str, str]] = {
    "run": ("query_id", "doc_id", "score"),
    "qrels": ("query_id", "doc_id", "relevance"),
}
BEIR_HEAD = ("query-id", "corpus-id", "score")
SHEET_HEAD = ("query-id", "corpus-id", "grade", "query", "title", "text")
"""The columns of a sheet on which people judge."""


@dataclass(frozen=True)
class ColumnLayout:
    """What the lines of a table with a header hold: names of the cells, the byte between them, where to look.

    query, doc, number: which cells hold the query, the document, and the score or grade; rank: which holds the rank of
    a run's rows, None where no cell does.
    """

    separator: str
    names: tuple[str, ...]
    query: int
    doc: int
    number: int
    rank: int | None = None


def three_columns(columns: Sequence[str], kind: Kind, path: object = None) -> tuple[int, int, int]:
    """Which columns hold the query, the document and the score (of a run) or grade (of judgments).

    Raises BadValue, or for the file at `path` FormatError, where one of them is missing, naming the column that is
    probably meant, or could be either of two, and where judgments have a rank and a score, as runs do.
    """
    query, doc, value = (
        _chosen(columns, what, path) for what in ("query", "document", "score" if kind == "run" else "grade")
    )
    if kind == "qrels" and has_ranks(columns) and fold(columns[value]) == "score":
        raise _refused(
            columns, "rank and score are a run's", "judgments, which come first, then the run", path
        )
    return query, doc, value


def _chosen(columns: Sequence[str], what: str, path: object) -> int:
    """The one column that is called as usual for its purpose."""
    for role in _ROLES[what]:
        matches = of_role(columns, role)
        if len(matches) > 1:
            raise _refused(
                columns, f"{' and '.join(matches)} could both be the {what}", "one of them alone", path
            )
        if matches:
            return list(columns).index(matches[0])
    usual, others = names().every(*_ROLES[what]), names().every("query_id", "query", "doc", "grade", "score")
    near = [
        column
        for column in columns
        if fold(column) not in others and difflib.get_close_matches(fold(column), usual, n=1, cutoff=0.6)
    ]
    hint = f" (rename '{near[0]}'?)" if len(near) == 1 else ""
    if what == "score" and (distances := of_role(columns, "distance")):
        hint = f"; of '{distances[0]}' less is better: weir data import FILE -o DIR makes scores of distances"
    elif what == "score" and has_ranks(columns):
        hint = "; ranks without scores are read by: weir data import FILE -o DIR --as run-ranks"
    elif what in ("score", "grade") and len(columns) == 2:
        role = {"score": "retrieved", "grade": "relevant"}[what]
        doc = columns[_chosen(columns, "document", path)]
        hint = f"; documents alone are read by: weir data import FILE -o DIR --columns {role}={doc}"
    name = dict(
        zip(("query", "document", "score", "grade"), (*WRITTEN["run"], WRITTEN["qrels"][2]), strict=True)
    )
    raise _refused(columns, f"none of them is the {what}", f"one called '{name[what]}'{hint}", path)


def _refused(columns: Sequence[str], reason: str, expected: str, path: object) -> WeirError:
    listed = ", ".join(columns) or "none"
    if path is None:
        return BadValue(f"columns: {listed}; {reason}; expected {expected}")
    return FormatError(path, f"the columns {listed}: {reason}", expected)


def pair_columns(columns: Sequence[str], path: object) -> tuple[int, int] | None:
    """Which columns of a table of labels hold the query and the document; None where no column is called so.

    Raises FormatError where a column could be either of two.
    """
    if not (_have(columns, "query_id", "query") and _have(columns, "doc")):
        return None
    return _chosen(columns, "query", path), _chosen(columns, "document", path)


def is_label(column: str) -> bool | None:
    """Whether a column of a table of labels is one, by its name; None where the name does not say."""
    name = fold(column)
    if name in names().labels[True] | names().every("grade", "score"):
        return True
    return False if name in names().labels[False] else None


def is_header(cells: Sequence[str], kind: Kind) -> bool:
    """Whether the first line of a table names columns: it has a usual name and no number."""
    for cell in cells:
        with suppress(ValueError):
            float(cell)
            return False
    return _have(cells, "query_id", "query", "doc", "score" if kind == "run" else "grade")


def is_named(columns: Sequence[str]) -> bool:
    """Whether one of these is the first choice of a name of a column: then all are columns, else queries, say."""
    return any(
        fold(column) in names().roles[role][0]
        for role in ("query_id", "query", "doc", "grade", "score")
        for column in columns
    )


def _have(columns: Iterable[str], *roles: str) -> bool:
    return not names().every(*roles).isdisjoint(map(fold, columns))


def has_ranks(columns: Sequence[str]) -> bool:
    """Whether a column is called rank, as only runs have one."""
    return "rank" in map(fold, columns)


def rank_column(columns: Sequence[str], kind: Kind) -> int | None:
    """Which column holds the ranks of a run; None where none does, or two may, and for judgments."""
    found = of_role(columns, "rank") if kind == "run" else []
    return list(columns).index(found[0]) if len(found) == 1 else None


def origin_column(columns: Sequence[str], kind: Kind) -> int | None:
    """Which column says where judgments come from; None where none does, and for a run."""
    folded = [fold(column) for column in columns]
    return folded.index(ORIGIN) if kind == "qrels" and ORIGIN in folded else None


def kind_of(columns: Sequence[str], path: object) -> Kind:
    """Whether named columns hold a run or judgments, by the third; raises FormatError for neither."""
    judged = _have(columns, "grade") or sorted(map(fold, columns)) == sorted(map(fold, BEIR_HEAD))
    kind: Kind = "qrels" if judged else "run"
    three_columns(columns, kind, path)
    return kind
