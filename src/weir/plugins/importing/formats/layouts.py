"""Collections as the hub and BIRCO lay them out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from weir.errors import BadValue
from weir.files.json_runs import is_birco_set
from weir.plugins.importing.contents import Contents, TableRow, fold
from weir.plugins.importing.formats.evaluators import listed
from weir.plugins.importing.formats.lines import two_columns
from weir.plugins.importing.items import (
    Document,
    FileRemark,
    FoundQuery,
    Item,
    ItemKey,
    Judgment,
    Refused,
    Used,
    plain,
)
from weir.plugins.importing.readers import ReadRequest, reader

# ----------
# Layouts of the hub, in JSON lines or Parquet (BEIR, MTEB, NanoBEIR, BRIGHT), and ESCI.


_IDS = ("_id", "id", "docid", "doc_id", "docno", "pid", "query-id", "query_id", "qid")
_TEXTS = ("text", "contents", "default_text", "segment", "content")
_QUERIES = ("queries", "query", "topics", "topic", "questions")
_DOCUMENTS = ("corpus", "docs", "documents", "document", "collection", "passages")
_OF_OTHERS = frozenset(
    [
        "query",
        "question",
        "user_input",
        "input",
        "score",
        "grade",
        "rating",
        "corpus-id",
        "attributes",
        "nuggets",
    ]
)
"""Columns that rows of queries or documents alone do not have."""


def _named(row: TableRow, names: tuple[str, ...]) -> str:
    return next((plain(row.fields[name]) for name in names if plain(row.fields.get(name))), "")


def _which(contents: Contents) -> tuple[str, str]:
    """ "queries" or "corpus", and the evidence; raises BadValue where nothing says which."""
    columns = set(contents.columns)
    named = contents.says(*_QUERIES), contents.says(*_DOCUMENTS)
    if named[0] and not named[1] and "contents" not in columns:
        return "queries", f"'{named[0]}' in its name"
    if named[1]:
        return "corpus", f"'{named[1]}' in its name"
    signs = [
        name for name in ("title", "contents", "default_text", "docid", "doc_id", "docno") if name in columns
    ]
    if signs and not named[0]:
        return "corpus", f"the field {signs[0]}"
    raise BadValue(
        f"{contents.path}: identifiers and texts may be queries or documents; say --as queries or --as corpus"
    )


def _layout(contents: Contents) -> str:
    columns = set(contents.columns)
    known = columns & set(_IDS) and columns & {*_TEXTS, "title"} and not columns & _OF_OTHERS
    return ": ".join(_which(contents)) if known else ""


@reader("beir", "queries or documents with identifiers and texts", _layout, by_row=True)
def read_layout(contents: Contents, asked: ReadRequest) -> Iterator[Item]:
    """Queries or documents, as the fields or the file's name say."""
    yield from (read_queries if _which(contents)[0] == "queries" else read_corpus)(contents, asked)


@reader("queries", "queries", by_row=True)
def read_queries(contents: Contents, _: ReadRequest) -> Iterator[Item]:
    """Queries with their metadata."""
    if contents.shape == "lines":
        yield from two_columns(contents, documents=False)
        return
    named = contents.given
    ids, texts = (
        _first(named, "query_id", _IDS),
        _first(named, "query", (*_TEXTS, "query", "question", "title")),
    )
    taken = {*ids, *_TEXTS, *_first(named, "query", ()), *named.values()}
    yield from _used(named, ("query_id", "query"))
    for row in contents.rows:
        key = ItemKey(_named(row, ids), _named(row, texts))
        if not key.id and not key.text:
            yield Refused(row.where, "neither identifier nor text")
        else:
            yield FoundQuery(key, row.where, _metadata(row, taken))


@reader("corpus", "documents", by_row=True)
def read_corpus(contents: Contents, _: ReadRequest) -> Iterator[Item]:
    """Documents with their metadata; one without an identifier gets one made from its text, and vectors are dropped."""
    if contents.shape == "lines":
        yield from two_columns(contents, documents=True)
        return
    if "vector" in contents.columns:
        yield FileRemark("the field vector was dropped: documents are their texts here")
    named = contents.given
    ids, texts, titles = (
        _first(named, role, names) for role, names in (("doc", _IDS), ("text", _TEXTS), ("title", ("title",)))
    )
    taken = {*ids, *texts, *titles}
    yield from _used(named, ("doc", "text", "title"))
    for row in contents.rows:
        key = ItemKey(_named(row, ids), _named(row, texts))
        if not key.id and not key.text:
            yield Refused(row.where, "neither identifier nor text")
        else:
            yield Document(key, row.where, _named(row, titles), _metadata(row, taken))


def _first(given: Mapping[str, str], role: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """The names under which a row holds a role: the one that the user says, alone, or the usual ones."""
    return (given[role],) if role in given else names


def _used(given: Mapping[str, str], roles: tuple[str, ...]) -> Iterator[Item]:
    yield from (Used(role, given[role]) for role in roles if role in given)


def _metadata(row: TableRow, taken: set[str]) -> dict[str, Any]:
    """The other fields of a row, and what it calls metadata; numbers by the dozen are vectors, and left out."""
    held = row.fields.get("metadata")
    more = dict(held) if isinstance(held, dict) else {}
    rest = {name: value for name, value in row.fields.items() if name not in taken and name not in _DROPPED}
    return more | {name: value for name, value in rest.items() if _kept(value)}


_DROPPED = {"metadata", "vector", ""}


def _kept(value: object) -> bool:
    """Whether a value can stand in metadata: a text, a number, or some of them."""
    if isinstance(value, str):
        return bool(value.strip())
    if isinstance(value, list):
        return bool(value) and all(isinstance(one, str) for one in value)
    return isinstance(value, (bool, int)) or (isinstance(value, float) and math.isfinite(value))


def _folded(contents: Contents) -> set[str]:
    return {fold(name) for name in contents.columns}


def _hub_qrels(contents: Contents) -> str:
    known = {"queryid", "corpusid"} <= _folded(contents) and not _folded(contents) & {
        "query",
        "grade",
        "rating",
    }
    return "query-id and corpus-id" if known else ""


@reader("hub-qrels", "judgments of BEIR, MTEB or NanoBEIR", _hub_qrels, by_row=True)
def read_hub_qrels(contents: Contents, _: ReadRequest) -> Iterator[Item]:
    """Judgments; without a column of grades every pair is relevant."""
    by_role = {fold(name): name for name in contents.columns}
    score = by_role.get("score")
    if score is None:
        yield FileRemark("no column of grades: every document counts as relevant, grade 1")
    for row in contents.rows:
        query, doc = (plain(row.fields.get(by_role[name])) for name in ("queryid", "corpusid"))
        if not query or not doc:
            yield Refused(row.where, "no query-id or no corpus-id")
        else:
            yield Judgment(ItemKey(query), ItemKey(doc), row.fields.get(score) if score else 1, row.where)


def _candidates(contents: Contents) -> str:
    if _folded(contents) != {"queryid", "corpusids"} or contents.says("diff", "qrel_diff"):
        return ""
    if contents.says("ranked", "top_ranked", "candidates"):
        return "query-id and corpus-ids, and 'ranked' or 'candidates' in its name"
    raise BadValue(
        f"{contents.path}: corpus-ids may be candidates or relevant documents; say --as candidates"
    )


@reader("candidates", "documents to rank, by query", _candidates)
def read_candidates(contents: Contents, _: ReadRequest) -> Iterator[Item]:
    """Candidates, as metadata of the queries."""
    by_role = {fold(name): name for name in contents.columns}
    for row in contents.rows:
        query = plain(row.fields.get(by_role.get("queryid", "")))
        docs = listed(row.fields.get(by_role.get("corpusids", "")))
        if not query or docs is None:
            yield Refused(row.where, "no query-id, or no list of corpus-ids")
        else:
            yield FoundQuery(ItemKey(query), row.where, {"candidates": [plain(doc) for doc in docs]})


@reader(
    "instructions",
    "instructions, by query",
    lambda contents: "query-id and instruction" if _folded(contents) == {"queryid", "instruction"} else "",
)
def read_instructions(contents: Contents, _: ReadRequest) -> Iterator[Item]:
    """Instructions, as metadata of the queries."""
    by_role = {fold(name): name for name in contents.columns}
    for row in contents.rows:
        query = plain(row.fields.get(by_role["queryid"]))
        if query:
            yield FoundQuery(
                ItemKey(query), row.where, {"instruction": plain(row.fields.get(by_role["instruction"]))}
            )
        else:
            yield Refused(row.where, "no query-id")


_LETTERS = {"E": 3, "S": 2, "C": 1, "I": 0}


@reader(
    "esci",
    "the shopping queries of ESCI",
    lambda contents: "esci_label" if {"query", "product_id", "esci_label"} <= set(contents.columns) else "",
)
def read_esci(contents: Contents, _: ReadRequest) -> Iterator[Item]:
    """Queries with locale, and judgments by split; a product is locale/identifier where there is more than one."""
    yield FileRemark(
        "the letters E, S, C and I (exact, substitute, complement, irrelevant) are the grades 3, 2, 1 and 0"
    )
    locales = {plain(row.fields.get("product_locale")) for row in contents.rows} - {""}
    for row in contents.rows:
        fields: Mapping[str, Any] = row.fields
        key = ItemKey(plain(fields.get("query_id")), plain(fields.get("query")))
        locale, letter = plain(fields.get("product_locale")), plain(fields.get("esci_label"))
        if letter not in _LETTERS or not key.text:
            yield Refused(row.where, f"the label '{letter[:20]}'; expected E, S, C or I, and a query")
            continue
        product = plain(fields.get("product_id"))
        doc = f"{locale}/{product}" if len(locales) > 1 else product
        yield FoundQuery(key, row.where, {"locale": locale} if locale else {})
        yield Judgment(key, ItemKey(doc), _LETTERS[letter], row.where, plain(fields.get("split")) or "test")


# ----------
# Test sets of BIRCO: queries, documents and a pool of graded candidates for each query.


@reader(
    "birco",
    "a test set of BIRCO",
    lambda contents: (
        "query, corpus, qrel" if contents.shape == "json" and is_birco_set(contents.value) else ""
    ),
)
def read_birco(contents: Contents, _: ReadRequest) -> Iterator[Item]:
    """Queries with the documents of their grades, 0 included, as candidates; documents; judgments."""
    pools = contents.value["qrel"]
    yield FileRemark("the judged documents of a query are its candidates")
    for query, text in contents.value["query"].items():
        pool = pools.get(query)
        # By descending identifier: the order of the file gives grades away. In RELIC the relevant document of 63 of
        # 100 queries is the last of its pool.
        candidates = sorted((doc.strip() for doc in pool), reverse=True) if isinstance(pool, dict) else None
        metadata = {} if candidates is None else {"candidates": candidates}
        yield FoundQuery(ItemKey(query.strip(), plain(text)), f"query {query}", metadata)
    for doc, text in contents.value["corpus"].items():
        yield Document(ItemKey(doc.strip(), plain(text)), f"document {doc}")
    for query, grades in pools.items():
        if not isinstance(grades, dict):
            yield Refused(f"query {query}", "no grades by document")
            continue
        for doc, grade in grades.items():
            yield Judgment(
                ItemKey(query.strip()), ItemKey(doc.strip()), grade, f"query {query}, document {doc}"
            )
