"""Golden sets: the many ways in which a query says what is relevant to it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from weir.errors import BadValue
from weir.plugins.importing.contents import Contents
from weir.plugins.importing.formats.evaluators import listed
from weir.plugins.importing.found import ByWords, Document, Item, ItemKey, Judgment, Refused, number, plain
from weir.plugins.importing.names import fold, names
from weir.plugins.importing.read_tables import TableRow

__all__ = ["excluded", "flattened", "is_unanswerable", "judgments", "records_of", "word_fields"]

_PLACEHOLDER = re.compile(r"(REPLACE|TODO|FIXME|CHANGE_?ME|PLACEHOLDER)(_[A-Z_0-9]*)?|TBD|\.\.\.")
_WORDS = 20  # of an identifier, at most: titles and names stay below
_NONE = {"", "n/a", "na", "none", "null", "nan", "~"}


def records_of(contents: Contents) -> list[TableRow]:
    """The rows of a file, also of a list under a name or by identifier in an object; raises BadValue."""
    if contents.shape == "rows":
        return _inside_single(contents)
    value = contents.value
    if not isinstance(value, dict):
        return []
    lists = {
        name: one
        for name, one in value.items()
        if isinstance(one, list) and any(isinstance(v, dict) for v in one)
    }
    known = [name for name in lists if fold(str(name)) in names().containers]
    if len(known) > 1:
        raise BadValue(
            f"{contents.path}: {' and '.join(known)} could both be the list of queries; keep one of them"
        )
    if known:
        return [
            TableRow(f"{known[0]} {n}", one)
            for n, one in enumerate(lists[known[0]], 1)
            if isinstance(one, dict)
        ]
    if value and all(isinstance(one, dict) and _has_query(one) for one in value.values()):
        return [
            TableRow(f"'{name}'", {"query_id": name, **one})
            for name, one in value.items()
            if "query_id" not in one
        ]
    return [TableRow("the object", value)] if _has_query(value, "query", "query_id") else []


def _has_query(fields: Mapping[str, Any], *roles: str) -> bool:
    known = {name for role in roles or ("query",) for tier in names().roles[role] for name in tier}
    return any(fold(str(name)) in known for name in fields)


def _inside_single(contents: Contents) -> list[TableRow]:
    """The rows; one object with a list of queries in it is that list."""
    if len(contents.rows) != 1:
        return list(contents.rows)
    alone = dict(contents.rows[0].fields)
    inside = [
        name for name, one in alone.items() if fold(name) in names().containers and isinstance(one, list)
    ]
    if len(inside) == 1 and all(isinstance(one, dict) for one in alone[inside[0]]):
        return [TableRow(f"{inside[0]} {n}", one) for n, one in enumerate(alone[inside[0]], 1)]
    return list(contents.rows)


def flattened(row: TableRow) -> TableRow:
    """The row with the members of `expected`, `vars` and alike as fields of its own."""
    fields: dict[str, Any] = {}
    for name, value in row.fields.items():
        if isinstance(value, dict) and fold(name) in names().inner and not _grades(value):
            fields |= {inner: one for inner, one in value.items() if inner not in row.fields}
        else:
            fields[name] = value
    return TableRow(row.where, fields)


def _grades(value: Mapping[str, Any]) -> bool:
    return bool(value) and all(number(one) is not None for one in value.values())


def word_fields(columns: list[str], taken: Collection[str]) -> dict[str, str]:
    """Column -> the part of a document in which its words are looked for."""
    listed_words = names().words
    return {
        column: within
        for column in columns
        if column not in taken
        for within in ("text", "title", "id")
        if fold(column) in listed_words[within]
    }


def is_unanswerable(row: TableRow, relevant: object) -> bool:
    """Whether a row says that nothing answers its query: by a flag, or by an empty list."""
    for name, value in row.fields.items():
        said = names().unanswerable.get(fold(name))
        if said and plain(value).casefold() in said:
            return True
    found = listed(relevant)
    return found is not None and not found


def excluded(left_out: object, candidates: object) -> dict[str, list[str]]:
    """Documents that must leave the ranking, and those that alone are ranked, as metadata of a query."""
    found = {"excluded": _names(left_out), "candidates": _names(candidates)}
    return {name: listed_names for name, listed_names in found.items() if listed_names}


def _names(value: object) -> list[str]:
    return [name for one in listed(value) or [] if (name := plain(one)).casefold() not in _NONE]


def judgments(
    key: ItemKey, row: TableRow, value: object, grade: object, words: Mapping[str, str]
) -> Iterator[Item]:
    """What a row says about its query.

    value: of the field of relevant documents: a document, a list of them, objects with a grade, or grades by
    document; grade: a number for all, or grades by document; words: fields of words that documents must hold.
    """
    found = listed(value)
    if found is not None:
        for one in found:
            yield from _member(key, row, one, grade)
    elif isinstance(value, dict):
        for doc, given in value.items():
            yield from _one(key, row, doc, given)
    elif plain(value).casefold() not in _NONE:
        yield from _cell(key, row, plain(value), grade)
    for column, within in words.items():
        texts = listed(row.fields.get(column))
        given = tuple(filter(None, map(plain, texts if texts is not None else [row.fields.get(column)])))
        if given:
            yield ByWords(key, given, column, row.where, _how(column), within)


def _how(column: str) -> str:
    return next((how for how in ("all", "any") if fold(column) in names().words[how]), "")


def _cell(key: ItemKey, row: TableRow, doc: str, grade: object) -> Iterator[Item]:
    if re.search(r"\s[|;]\s|^[^\s:/?]+([|;][^\s:/?]+)+$", doc):
        yield Refused(
            row.where, f"'{doc[:60]}' looks like several documents in one cell; write them as a JSON list"
        )
    else:
        yield from _one(key, row, doc, 1 if grade is None else grade)


def _member(key: ItemKey, row: TableRow, one: object, grade: object) -> Iterator[Item]:
    """The judgment in a member of the list: a document, or an object with document (or words) and grade."""
    if isinstance(one, dict):
        yield from _object(key, row, one)
    elif isinstance(one, list):
        yield Refused(row.where, "a list within the list of relevant documents; expected identifiers")
    elif isinstance(grade, dict):
        yield from _one(key, row, one, grade.get(plain(one), 1))
    else:
        yield from _one(key, row, one, 1 if grade is None else grade)


def _object(key: ItemKey, row: TableRow, one: Mapping[str, Any]) -> Iterator[Item]:
    given = next((one[name] for name in one if fold(name) in names().roles["grade"][0] | {"score"}), 1)
    doc = next((one[name] for name in one if fold(name) in _doc_names() and plain(one[name])), None)
    text, title = _field(one, "text"), _field(one, "title")
    if doc is not None:
        yield from _one(key, row, doc, given)
        if text and plain(doc):
            yield Document(ItemKey(plain(doc), text), row.where, title)
        return
    words = word_fields(list(one), ())
    for column, within in words.items():
        texts = listed(one[column])
        held = tuple(filter(None, map(plain, texts if texts is not None else [one[column]])))
        yield ByWords(key, held, column, row.where, _how(column), within, given)
    if text and not words:
        yield Judgment(key, ItemKey("", text), given, row.where)
        yield Document(ItemKey("", text), row.where, title)
    elif not words:
        yield Refused(
            row.where, f"an object without a document's identifier ({', '.join(map(str, one))[:60]})"
        )


def _field(one: Mapping[str, Any], role: str) -> str:
    """The text of a role in an object, "" where it has none."""
    tiers = names().roles[role]
    return next((plain(one[name]) for tier in tiers for name in one if fold(name) in tier), "")


def _doc_names() -> frozenset[str]:
    tiers = names().roles["doc"]
    return frozenset({name for tier in tiers for name in tier} | {"id", "path", "corpusid"})


def _one(key: ItemKey, row: TableRow, doc: object, grade: object) -> Iterator[Item]:
    name = plain(doc)
    if name.casefold() in _NONE:
        return
    if len(name.split()) > _WORDS:
        yield Refused(row.where, f"'{name[:40]}...' is a text and no identifier of a document")
    elif _PLACEHOLDER.fullmatch(name):
        yield Refused(row.where, f"'{name[:60]}' is a placeholder that nobody filled")
    else:
        yield Judgment(key, ItemKey(name), grade, row.where)
