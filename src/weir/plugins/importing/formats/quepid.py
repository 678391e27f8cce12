"""Quepid's exports: cases, ratings, books, snapshots, and what it keeps beside judgments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from weir.plugins.importing.contents import Contents
from weir.plugins.importing.formats.engines import members
from weir.plugins.importing.found import (
    FileRemark,
    FoundQuery,
    Item,
    ItemKey,
    Judgment,
    Ranking,
    Refused,
    Used,
    number,
    plain,
)
from weir.plugins.importing.readers import ReadRequest, reader

__all__: list[str] = []


def _case(contents: Contents) -> str:
    value = contents.value
    named = isinstance(value, dict) and "case_name" in value
    return "case_name, and queries with ratings" if named and members(value, "queries") else ""


@reader("quepid-case", "a case of Quepid", _case)
def read_case(contents: Contents, _: ReadRequest) -> Iterator[Item]:
    """Queries by their text, with information need and notes, and judgments."""
    for n, query in enumerate(members(contents.value, "queries"), 1):
        where, key = f"query {n}", ItemKey(text=plain(query.get("query_text")))
        if not key.text:
            yield Refused(where, "no query_text")
            continue
        yield FoundQuery(key, where, _about(query))
        for rated in members(query, "ratings"):
            yield Judgment(key, ItemKey(plain(rated.get("doc_id"))), rated.get("rating"), where)


def _about(query: Mapping[str, Any]) -> dict[str, str]:
    return {name: plain(query[name]) for name in ("information_need", "notes") if plain(query.get(name))}


def _ratings(contents: Contents) -> str:
    found = members(contents.value, "queries")
    known = found and all("query" in one and isinstance(one.get("ratings"), dict) for one in found)
    return "queries with ratings by document" if known else ""


@reader("quepid-ratings", "ratings of a case of Quepid", _ratings)
def read_ratings(contents: Contents, _: ReadRequest) -> Iterator[Item]:
    """Queries by their text, and judgments."""
    for n, query in enumerate(members(contents.value, "queries"), 1):
        where, key = f"query {n}", ItemKey(text=plain(query["query"]))
        if not key.text:
            yield Refused(where, "no query text")
            continue
        yield FoundQuery(key, where)
        for doc, grade in query["ratings"].items():
            yield Judgment(key, ItemKey(doc), grade, where)


def _book(contents: Contents) -> str:
    pairs = members(contents.value, "query_doc_pairs")
    return "query_doc_pairs" if pairs and "query_text" in pairs[0] else ""


@reader("quepid-book", "a book of Quepid", _book)
def read_book(contents: Contents, _: ReadRequest) -> Iterator[Item]:
    """Queries by their text, and every judge's judgment; pairs that nobody could rate are counted."""
    unrateable = 0
    for n, pair in enumerate(members(contents.value, "query_doc_pairs"), 1):
        where, key = f"pair {n}", ItemKey(text=plain(pair.get("query_text")))
        if not key.text:
            yield Refused(where, "no query_text")
            continue
        yield FoundQuery(key, where, _about(pair))
        for judged in members(pair, "judgements"):
            if judged.get("rating") is None:
                unrateable += 1
            else:
                yield Judgment(key, ItemKey(plain(pair.get("doc_id"))), judged["rating"], where)
    if unrateable:
        yield FileRemark(f"{unrateable} judgments say 'unrateable' or 'later', and are none")


def _book_table(contents: Contents) -> str:
    columns = contents.columns
    judges = columns[2:]
    values = [number(row.fields.get(name)) for row in contents.rows[:200] for name in judges]
    scale = all(value is None or 0 <= value <= 100 for value in values)
    known = (
        columns[:2] == ("query", "docid") and len(judges) > 1 and scale and any(v is not None for v in values)
    )
    known = known and not {"grade", "rating", "score", "rank"} & {name.lower() for name in judges}
    return f"query, docid, and a column for each of {len(judges)} judges" if known else ""


@reader("quepid-book-csv", "judgments of a book of Quepid as CSV", _book_table)
def read_book_table(contents: Contents, _: ReadRequest) -> Iterator[Item]:
    """Every judge's judgment; empty cells are none."""
    yield Used("judges", ", ".join(contents.columns[2:]))
    for row in contents.rows:
        key, doc = ItemKey(text=plain(row.fields.get("query"))), ItemKey(plain(row.fields.get("docid")))
        if not key.text:
            yield Refused(row.where, "no query")
            continue
        yield FoundQuery(key, row.where)
        for judge in contents.columns[2:]:
            if plain(row.fields.get(judge)):
                yield Judgment(key, doc, row.fields[judge], row.where)


def _snapshot(contents: Contents) -> str:
    value = contents.value
    docs = value.get("docs") if isinstance(value, dict) else None
    known = isinstance(docs, dict) and bool(members(value, "queries")) and "scores" in value
    return "docs by query, queries and scores" if known else ""


@reader("quepid-snapshot", "a snapshot of Quepid", _snapshot)
def read_snapshot(contents: Contents, _: ReadRequest) -> Iterator[Item]:
    """Queries with Quepid's identifiers, their rankings without scores, and ratings where it holds some."""
    value = contents.value
    name = plain(value.get("name"))
    texts: dict[str, str] = {}
    for n, query in enumerate(members(value, "queries"), 1):
        key = ItemKey(plain(query.get("query_id")), plain(query.get("query_text")))
        texts[key.id] = key.text
        yield FoundQuery(key, f"query {n}", _about(query))
        for doc, grade in (
            (query.get("ratings") or {}).items() if isinstance(query.get("ratings"), dict) else ()
        ):
            yield Judgment(key, ItemKey(doc), grade, f"query {n}")
    for query_id, listed in value["docs"].items():
        docs = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
        shown = tuple(ItemKey(plain(one.get("id"))) for one in docs if not one.get("rated_only"))
        yield Ranking(ItemKey(query_id, texts.get(query_id, "")), shown, f"docs of {query_id}", run=name)


def _needs(contents: Contents) -> str:
    return "query and information_need" if contents.columns == ("query", "information_need") else ""


@reader("quepid-needs", "information needs of a case of Quepid", _needs)
def read_needs(contents: Contents, _: ReadRequest) -> Iterator[Item]:
    """Queries by their text, with information needs."""
    for row in contents.rows:
        if text := plain(row.fields.get("query")):
            yield FoundQuery(ItemKey(text=text), row.where, _about(row.fields))
        else:
            yield Refused(row.where, "no query")
