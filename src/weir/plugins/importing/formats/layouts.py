"""Collections as the hub and BIRCO lay them out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from weir.errors import BadValue
from weir.files.column_names import fold
from weir.files.json_files import is_birco_set
from weir.plugins.importing.contents import Contents, TableRow, roles_of
from weir.plugins.importing.formats.lines import two_columns
from weir.plugins.importing.items import (
    Choices,
    Document,
    FileRemark,
    FoundQuery,
    Item,
    ItemKey,
    Judgment,
    Refused,
    Used,
    id_key,
    listed,
    plain,
    table_at,
    text_of,
)
from weir.plugins.importing.readers import has_columns, reader, when

# ----------
# Layouts of the hub, in JSON lines or Parquet (BEIR, MTEB, NanoBEIR, BRIGHT), and ESCI.


_IDS = ("_id", "id", "docid", "doc_id", "docno", "pid", "query-id", "query_id", "qid")
_TEXTS = ("text", "contents", "default_text", "segment", "content")
_QUERIES = ("queries", "query", "topics", "topic", "questions")
_DOCUMENTS = ("corpus", "docs", "documents", "document", "collection", "passages")
_OF_OTHERS = {
    "query",
    "question",
    "user_input",
    "input",
    "score",
    "grade",
    "rating",
    "corpus-id",
    "attributes",
}
_OF_OTHERS |= {"nuggets"}
"""Columns that rows of queries or documents alone do not have."""
_NOT_METADATA = {"metadata", "vector", ""}
_LETTERS = {"E": 3, "S": 2, "C": 1, "I": 0}


def _which(contents: Contents) -> tuple[str, str]:
    """("queries" or "corpus", the evidence); raises BadValue where nothing decides."""
    columns = set(contents.columns)
    queries, documents = contents.says(*_QUERIES), contents.says(*_DOCUMENTS)
    if queries and not documents and "contents" not in columns:
        return "queries", f"'{queries}' in its name"
    if documents:
        return "corpus", f"'{documents}' in its name"
    fields = ("title", "contents", "default_text", "docid", "doc_id", "docno")
    sign = next((name for name in fields if name in columns), "")
    if sign and not queries:
        return "corpus", f"the field {sign}"
    raise BadValue(
        f"{contents.path}: identifiers and texts may be queries or documents; add --as queries or --as corpus"
    )


def _texts_by_id(contents: Contents) -> str:
    columns = set(contents.columns)
    fits = columns & set(_IDS) and columns & {*_TEXTS, "title"} and not columns & _OF_OTHERS
    return ": ".join(_which(contents)) if fits else ""


@reader("beir", "queries or documents with identifiers and texts", _texts_by_id, by_row=True)
def read_texts_by_id(contents: Contents, choices: Choices) -> Iterator[Item]:
    """Queries or documents, as the fields or the file's name say."""
    yield from (read_queries if _which(contents)[0] == "queries" else read_corpus)(contents, choices)


@reader("queries", "queries", by_row=True)
def read_queries(contents: Contents, _: Choices) -> Iterator[Item]:
    """Queries with their metadata."""
    if contents.shape == "lines":
        yield from two_columns(contents, documents=False)
        return
    ids = _names_of(contents, "query_id", _IDS)
    texts = _names_of(contents, "query", (*_TEXTS, "query", "question", "title"))
    used = {*ids, *_TEXTS, *_names_of(contents, "query", ()), *contents.roles.values()}
    yield from _used(contents, {"query_id": ids, "query": texts})
    for row in contents.rows:
        key = ItemKey(text_of(row.fields, *ids), text_of(row.fields, *texts))
        if key == ItemKey():
            yield Refused(row.where, "neither identifier nor text")
        else:
            yield FoundQuery(key, row.where, _metadata(row, used))


@reader("corpus", "documents", by_row=True)
def read_corpus(contents: Contents, _: Choices) -> Iterator[Item]:
    """Documents with their metadata; one without an identifier gets one made from its text, and vectors are dropped."""
    if contents.shape == "lines":
        yield from two_columns(contents, documents=True)
        return
    if "vector" in contents.columns:
        yield FileRemark("the field vector was dropped: a document here is its text")
    ids, texts = _names_of(contents, "doc", _IDS), _names_of(contents, "text", _TEXTS)
    titles = _names_of(contents, "title", ("title",))
    yield from _used(contents, {"doc": ids, "text": texts, "title": titles})
    for row in contents.rows:
        key = ItemKey(text_of(row.fields, *ids), text_of(row.fields, *texts))
        if key == ItemKey():
            yield Refused(row.where, "neither identifier nor text")
        else:
            metadata = _metadata(row, {*ids, *texts, *titles})
            yield Document(key, row.where, text_of(row.fields, *titles), metadata)


def _names_of(contents: Contents, role: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """The names under which a row holds a role: the one of --columns alone, or the usual ones."""
    return (contents.roles[role],) if role in contents.roles else names


def _used(contents: Contents, roles: Mapping[str, tuple[str, ...]]) -> Iterator[Item]:
    """The column of each role; roles: role -> the names under which a row may hold it, the first first."""
    for role, names in roles.items():
        yield from (Used(role, name) for name in [name for name in names if name in contents.columns][:1])


def _metadata(row: TableRow, used: set[str]) -> dict[str, Any]:
    """The other fields of a row, and its own metadata; lists of numbers are vectors, and left out."""
    metadata = table_at(row.fields, "metadata").copy()
    for name, value in row.fields.items():
        if name not in used and name not in _NOT_METADATA and _is_metadata(value):
            metadata[name] = value
    return metadata


def _is_metadata(value: object) -> bool:
    """Whether a value can stand in metadata: a text, a number, or a list of texts."""
    if isinstance(value, str):
        return bool(value.strip())
    if isinstance(value, list):
        return bool(value) and all(isinstance(one, str) for one in value)
    return isinstance(value, (bool, int)) or (isinstance(value, float) and math.isfinite(value))


def _folded(contents: Contents) -> dict[str, str]:
    """Name without case and marks -> column."""
    return {fold(name): name for name in contents.columns}


@reader(
    "hub-qrels",
    "judgments of BEIR, MTEB or NanoBEIR",
    when(
        "query-id and corpus-id",
        lambda contents: (
            {"queryid", "corpusid"} <= _folded(contents).keys()
            and not {"query", "grade", "rating"} & _folded(contents).keys()
        ),
    ),
    by_row=True,
)
def read_hub_qrels(contents: Contents, _: Choices) -> Iterator[Item]:
    """Judgments; without a column of grades every pair is relevant."""
    roles = roles_of(contents.columns, contents.roles, contents.path)
    grade = roles.get("grade", roles.get("score"))
    used = {"query_id": roles["query_id"], "doc": roles["doc"], "grade": grade}
    yield from (Used(role, name) for role, name in used.items() if name is not None)
    if grade is None:
        yield FileRemark("no column of grades: every document counts as relevant, grade 1")
    for row in contents.rows:
        query, doc = plain(row.fields.get(roles["query_id"])), plain(row.fields.get(roles["doc"]))
        if not query or not doc:
            yield Refused(row.where, "no query-id or no corpus-id")
        else:
            value = 1 if grade is None else row.fields.get(grade)
            yield Judgment(ItemKey(query), ItemKey(doc), value, row.where)


def _candidates(contents: Contents) -> str:
    if set(_folded(contents)) != {"queryid", "corpusids"} or contents.says("diff", "qrel_diff"):
        return ""
    if contents.says("ranked", "top_ranked", "candidates"):
        return "query-id and corpus-ids, and 'ranked' or 'candidates' in its name"
    raise BadValue(
        f"{contents.path}: corpus-ids may be candidates or relevant documents; for candidates add --as candidates"
    )


@reader("candidates", "documents to rank, by query", _candidates)
def read_candidates(contents: Contents, _: Choices) -> Iterator[Item]:
    """Candidates, as metadata of the queries."""
    columns = _folded(contents)
    for row in contents.rows:
        query = id_key(row.fields.get(columns.get("queryid", "")))
        docs = listed(row.fields.get(columns.get("corpusids", "")))
        if not query.id or docs is None:
            yield Refused(row.where, "no query-id, or no list of corpus-ids")
        else:
            yield FoundQuery(query, row.where, {"candidates": [plain(doc) for doc in docs]})


@reader(
    "instructions",
    "instructions, by query",
    when("query-id and instruction", lambda contents: set(_folded(contents)) == {"queryid", "instruction"}),
)
def read_instructions(contents: Contents, _: Choices) -> Iterator[Item]:
    """Instructions, as metadata of the queries."""
    columns = _folded(contents)
    for row in contents.rows:
        query, instruction = (row.fields.get(columns.get(name, "")) for name in ("queryid", "instruction"))
        if plain(query):
            yield FoundQuery(id_key(query), row.where, {"instruction": plain(instruction)})
        else:
            yield Refused(row.where, "no query-id")


@reader("esci", "the shopping queries of ESCI", has_columns("query", "product_id", "esci_label"))
def read_esci(contents: Contents, _: Choices) -> Iterator[Item]:
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
    when("query, corpus, qrel", lambda contents: contents.shape == "json" and is_birco_set(contents.value)),
)
def read_birco(contents: Contents, _: Choices) -> Iterator[Item]:
    """Queries with the documents of their grades, 0 included, as candidates; documents; judgments."""
    pools = table_at(contents.value, "qrel")
    yield FileRemark("the judged documents of a query are its candidates")
    for query, text in table_at(contents.value, "query").items():
        pool = pools.get(query)
        # By descending identifier: the order of the file gives grades away. In RELIC the relevant document of 63 of
        # 100 queries is the last of its pool.
        candidates = sorted((doc.strip() for doc in pool), reverse=True) if isinstance(pool, dict) else None
        metadata = {} if candidates is None else {"candidates": candidates}
        yield FoundQuery(ItemKey(query.strip(), plain(text)), f"query {query}", metadata)
    for doc, text in table_at(contents.value, "corpus").items():
        yield Document(ItemKey(doc.strip(), plain(text)), f"document {doc}")
    for query, grades in pools.items():
        if not isinstance(grades, dict):
            yield Refused(f"query {query}", "no grades by document")
            continue
        for doc, grade in grades.items():
            where = f"query {query}, document {doc}"
            yield Judgment(ItemKey(query.strip()), ItemKey(doc.strip()), grade, where)
