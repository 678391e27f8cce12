"""Which field of a file plays which role, by the names in names.toml or as the user says."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.resources import files

from weir.errors import BadValue, UnknownName

__all__ = ["ROLES", "FieldNames", "click_columns", "fold", "names", "parse_columns", "roles_of"]

ROLES = (
    "query_id",
    "query",
    "relevant",
    "doc",
    "retrieved",
    "grade",
    "score",
    "rank",
    "text",
    "title",
    "split",
    "origin",
    "excluded",
    "candidates",
    "answer",
    "clicks",
    "impressions",
    "clicked",
)


@dataclass(frozen=True)
class FieldNames:
    """The names of names.toml, folded: roles: tiers of names; words: within -> names; and the rest likewise."""

    roles: Mapping[str, tuple[frozenset[str], ...]]
    words: Mapping[str, frozenset[str]]
    containers: frozenset[str]
    inner: frozenset[str]
    clicks: Mapping[str, frozenset[str]]
    unanswerable: Mapping[str, frozenset[str]] = field(default_factory=dict)


@lru_cache(4096)
def fold(name: str) -> str:
    """A name as it is compared: without case, blanks and marks."""
    return re.sub(r"[\W_]+", "", name.casefold())


@cache
def names() -> FieldNames:
    """The names, read once."""
    given = tomllib.loads(files("weir.plugins.importing").joinpath("names.toml").read_text(encoding="utf-8"))
    return FieldNames(
        {role: tuple(_folded(tier) for tier in tiers) for role, tiers in given["roles"].items()},
        {within: _folded(listed) for within, listed in given["words"].items()},
        _folded(given["containers"]["names"]),
        _folded(given["containers"]["inner"]),
        {role: _folded(listed) for role, listed in given["clicks"].items()},
        {fold(name): frozenset(values) for name, values in given["unanswerable"].items()},
    )


def click_columns(columns: Iterable[str], given: Mapping[str, str]) -> dict[str, str]:
    """Role -> column of what a log of clicks counts: clicks, impressions, or whether one was clicked.

    given: what the user said, which goes first.
    """
    listed, known = list(columns), names().clicks
    named = {role: [column for column in listed if fold(column) in known[role]] for role in known}
    found = {role: columns[0] for role, columns in named.items() if columns}
    return found | {role: column for role, column in given.items() if role in known and column in listed}


def _folded(listed: Iterable[str]) -> frozenset[str]:
    return frozenset(map(fold, listed))


def parse_columns(text: str) -> dict[str, str]:
    """Roles and columns from `query=q,doc=url,grade=ctr`; a column may be a number from 1.

    Raises BadValue for what is written otherwise, UnknownName for another role.
    """
    given: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        role, equals, column = (piece.strip() for piece in part.partition("="))
        if not equals or not column:
            raise BadValue(
                f"--columns: found '{part}'; expected role=column, as in query=q,doc=url,grade=ctr"
            )
        given[role] = column
    refuse_other_roles(given)
    return given


def refuse_other_roles(given: Mapping[str, str]) -> None:
    """Raise UnknownName for a role that there is not."""
    for role in given:
        if role not in ROLES:
            raise UnknownName("role of a column", role, ROLES)


def roles_of(columns: Iterable[str], given: Mapping[str, str], path: object) -> dict[str, str]:
    """Role -> column, for the roles that the columns play.

    given: what the user said, which goes first; a column that is not here is left out. Raises BadValue where two
    columns could play one role.
    """
    listed = list(columns)
    found = {role: column for role, column in given.items() if column in listed}
    free = [column for column in listed if column not in found.values() and not column.startswith("__")]
    for role, tiers in names().roles.items():
        if role in found or (role in ("relevant", "doc") and ("relevant" in found or "doc" in found)):
            continue
        for tier in tiers:
            played = [column for column in free if fold(column) in tier]
            if len(played) > 1:
                raise BadValue(_two(path, role, played))
            if played:
                found[role] = played[0]
                free.remove(played[0])
                break
    return _with_id(found, free, given)


def _two(path: object, role: str, played: list[str]) -> str:
    said = {"relevant": "doc", "query_id": "query_id"}.get(role, role)
    return f"{path}: {' and '.join(played[:4])} could each be the {said}; say which: --columns {said}={played[0]}"


def _with_id(found: dict[str, str], free: list[str], given: Mapping[str, str]) -> dict[str, str]:
    """`id` and `_id` are the query's where there is a query, the document's where there is a text alone."""
    own = next((column for column in free if fold(column) == "id"), None)
    if own is not None and "query" in found and "query_id" not in found:
        found["query_id"] = own
    elif own is not None and "query" not in found and "doc" not in found and "query_id" not in given:
        found["id"] = own
    return found
