"""Readers of collections in the layouts of the Hugging Face hub, ESCI and BIRCO."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from weir.errors import BadValue
from weir.files.column_names import field_names, fold, of_role, usual
from weir.files.json_files import is_birco_set
from weir.plugins.importing.cells import (
    Cells,
    has_value,
    identifier,
    listed,
    one_of,
    plain_text,
    refuse_no_identifier,
    spelled,
    take_whole,
)
from weir.plugins.importing.contents import (
    Contents,
    TableRow,
    identifier_column,
    roles_of,
    text_column,
    with_identifiers,
)
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
    id_of,
    members_at,
    read_whole,
    text_of,
    value_at,
)
from weir.plugins.importing.readers import has_columns, reader, when

# ----------
# Layouts of the hub, in JSON lines or Parquet (BEIR, MTEB, NanoBEIR, BRIGHT), and ESCI.


_QUERIES = ("queries", "query", "topics", "topic", "questions")
_DOCUMENTS = ("corpus", "docs", "documents", "document", "collection", "passages", "chunks", "nodes")
_OF_OTHERS = {
    "query",
    "question",
    "userinput",
    "input",
    "score",
    "grade",
    "rating",
    "corpusid",
    "attributes",
    "nuggets",
}
"""Folded names of columns that rows of queries or documents never have."""
_LETTERS = {"E": 3, "S": 2, "C": 1, "I": 0}


def _which(contents: Contents) -> tuple[str, str]:
    columns = set(contents.columns)
    queries, documents = contents.says(*_QUERIES), contents.says(*_DOCUMENTS)
    if queries and not documents and "contents" not in columns:
        return "queries", f"'{queries}' in its name"
    if documents:
        return "corpus", f"'{documents}' in its name"
    signs = (
        "title",
        *(set(map(fold, columns)) & (field_names().every("text") | field_names().ids("doc")) - {"text"}),
    )
    sign = next((name for name in contents.columns if fold(name) in signs), "")
    if sign and not queries:
        return "corpus", f"the field {sign}"
    raise BadValue(
        f"{contents.path}: identifiers and texts may be queries or documents; add `as_kind='queries'` or "
        "`as_kind='corpus'`"
    )


def _texts_by_id(contents: Contents) -> str:
    folded = _folded(contents).keys()
    ids = folded & {"id", *field_names().ids("doc", "query_id"), "pagecontent"}
    fits = ids and folded & {*field_names().every("text"), "title"} and not folded & _OF_OTHERS
    names = field_names()
    judged = folded & names.every("grade", "relevant", "score", "distance", "rank")
    pairs = (
        folded & names.ids("query_id") and folded & names.every("doc") and (judged or "text" not in folded)
    )
    # Of a schema, names begin with a $.
    fits = fits and not pairs and not any(str(name).startswith("$") for name in contents.columns)
    queries = folded & names.every("query", "query_id")
    if fits and judged and queries and not contents.says(*_QUERIES, *_DOCUMENTS):
        raise BadValue(
            f"{contents.path}: rows with {min(queries)} and {min(judged)} may be documents, or judgments or rankings; "
            "add `as_kind='corpus'` or `as_kind='records'`"
        )
    return ": ".join(_which(contents)) if fits else ""


@reader("beir", "queries or documents with identifiers and texts", _texts_by_id, by_row=True)
def read_texts_by_id(contents: Contents, choices: Choices) -> Iterator[Item]:
    """Yield queries or documents with identifiers and texts; fields or the file's name say which."""
    yield from (read_queries if _which(contents)[0] == "queries" else read_corpus)(contents, choices)


def _dumped(contents: Contents) -> list[TableRow]:
    nodes = members_at(contents.value, "docstore/data")
    wrapped = [(f"node {name}", one.get("__data__")) for name, one in nodes if isinstance(one, dict)]
    for _, node in nodes:
        value_at(node, "__type__")  # says that it is a node
    wrapped += [(row.where, row.fields.get("kwargs")) for row in contents.rows if "lc" in row.fields]
    opened = [(where, _unpacked(data)) for where, data in wrapped]
    return [
        TableRow(where, data)
        for where, data in opened
        if data is not None and ("page_content" in data or "text" in data)
    ]


def _unpacked(data: object) -> Cells | None:
    if isinstance(data, str):
        with suppress(ValueError):
            data = spelled(data)
    return data if isinstance(data, Cells) else None


@reader("chunks", "documents that LangChain or LlamaIndex dumped", when("kwargs or docstore/data", _dumped))
def read_dumped(contents: Contents, choices: Choices) -> Iterator[Item]:
    """Yield documents that LangChain or LlamaIndex dumped, with metadata; a missing identifier is made from the
    text."""
    rows = tuple(_dumped(contents))
    columns = tuple(dict.fromkeys(name for row in rows for name in row.fields))
    yield from read_corpus(replace(contents, shape="rows", rows=rows, columns=columns), choices)


@reader("queries", "queries", by_row=True)
def read_queries(contents: Contents, _: Choices) -> Iterator[Item]:
    """Yield queries, with their other fields as metadata; a Refused for a query without text."""
    if contents.shape == "lines":
        yield from two_columns(contents, documents=False)
        return
    name, _others = identifier_column(contents, "query_id", role="query_id")
    text = next(
        (found for role in ("query", "text", "title") if (found := _column(contents, role, name))), ""
    )
    yield from (Used(role, column) for role, column in (("query_id", name), ("query", text)) if column)
    for row in contents.rows:
        try:
            refuse_no_identifier(name, row.fields.get(name))
            key = ItemKey(id_of(row.fields, name), _text(row, text))
        except ValueError as error:
            yield Refused(row.where, str(error))
            continue
        if not key.text:
            yield Refused(row.where, "no text of the query" if key.id else "neither identifier nor text")
        else:
            yield FoundQuery(key, row.where, _metadata(row))


@reader("corpus", "documents", by_row=True)
def read_corpus(contents: Contents, _: Choices) -> Iterator[Item]:
    """Yield the documents of a table, with other fields except vectors as metadata; a missing identifier is made from
    the text.

    A row with neither identifier nor text, or with a malformed value, gives a Refused.
    """
    if contents.shape == "lines":
        yield from two_columns(contents, documents=True)
        return
    name, others = identifier_column(contents, "doc")
    ids: list[Any] = [dict.get(row.fields, name) for row in contents.rows]
    if not any(map(has_value, ids)):
        name, others, ids = _identifiers_within(contents, name)
    if others:
        yield FileRemark(
            f"{name} identifies the documents; kept as metadata, since values repeat: {', '.join(others)}"
        )
    text = text_column(contents, name)
    title = _column(contents, "title", name)
    if not any(map(has_value, ids)):
        yield from _possible_identifiers(contents, {text, title})
    found = (("doc", name), ("text", text), ("title", title))
    yield from (Used(role, column) for role, column in found if column)
    texts = [] if "text" in contents.roles else usual(contents.columns, "text")
    others_of_text = [one for one in texts if one not in (text, name, title)]
    joined = 0
    for row, own in zip(contents.rows, ids, strict=True):
        joined += any(isinstance(row.fields.get(column), list) for column in (text, title))
        try:
            row.fields.take(name)
            refuse_no_identifier(name, own)
            body, head = _text(row, text), _text(row, title)
        except ValueError as error:
            yield Refused(row.where, str(error))
            continue
        key = ItemKey(identifier(own), body)
        other = next((one for one in others_of_text if has_value(dict.get(row.fields, one))), "")
        if key == ItemKey():
            yield Refused(row.where, "neither identifier nor text")
        elif other and not key.text:
            yield Refused(
                row.where, f"no '{text}', but '{other}'; say which is the text with `columns='text=NAME'`"
            )
        else:
            yield Document(key, row.where, head, _metadata(row))
    if joined:
        yield FileRemark(f"texts that are lists: {joined:,}, their paragraphs joined by blank lines")


def _possible_identifiers(contents: Contents, used: Collection[str]) -> Iterator[FileRemark]:
    for name in usual(contents.columns, "doc"):
        values = [plain_text(dict.get(row.fields, name)) for row in contents.rows]
        if name not in used and all(values) and len(set(values)) == len(values):
            yield FileRemark(f"'{name}' may identify the documents; if so, say `columns='doc={name}'`")


def _identifiers_within(contents: Contents, own: str) -> tuple[str, list[str], list[Any]]:
    """Return (name, rejected names, values) of the entry of each row's `metadata` that identifies the row.

    Rejected are entries whose values repeat; without unique identifiers (`own`, [], None for each row).
    """
    inner = [
        one if isinstance(one := dict.get(row.fields, "metadata"), Cells) else Cells()
        for row in contents.rows
    ]
    rows = tuple(TableRow(row.where, one) for row, one in zip(contents.rows, inner, strict=True))
    columns = tuple(dict.fromkeys(name for one in inner for name in one))
    name, others = identifier_column(replace(contents, rows=rows, columns=columns), "doc")
    ids = [dict.get(one, name) for one in inner]
    known = [text for text in map(identifier, ids) if text]
    return (name, others, ids) if len(set(known)) == len(known) > 0 else (own, [], [None] * len(ids))


def _column(contents: Contents, role: str, used: str) -> str:
    if role in contents.roles:
        return contents.roles[role]
    found = of_role([column for column in contents.columns if column != used], role)
    filled = [one for one in found if any(has_value(dict.get(row.fields, one)) for row in contents.rows)]
    if len(filled) > 1:
        one_of(role, filled)
    return next(iter(filled or found), "")


def _text(row: TableRow, column: str) -> str:
    value = row.fields.get(column)
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return plain_text("\n\n".join(value))
    if isinstance(value, (list, dict)):
        kind = "an object" if isinstance(value, dict) else "a list with other things than texts"
        raise ValueError(f"{kind} as '{column}'; expected a text: say which field with `columns='text=NAME'`")
    return row.fields.text(column)


def _metadata(row: TableRow) -> dict[str, Any]:
    inner = row.fields.get("metadata")
    take_whole(inner)
    own = dict(inner) if isinstance(inner, dict) else {"metadata": inner} if has_value(inner) else {}
    fields = row.fields.rest()
    return fields | {
        f"metadata.{name}" if fields.get(name, value) != value else name: value for name, value in own.items()
    }


def _folded(contents: Contents) -> dict[str, str]:
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
    """Yield judgments with query-id and corpus-id; without a column of grades every pair has grade 1."""
    roles = roles_of(contents.columns, contents.roles, contents.path)
    grade = roles.get("grade", roles.get("score"))
    query_id, document = roles.get("query_id", ""), roles.get("doc", "")
    yield from (
        Used(role, name)
        for role, name in (("query_id", query_id), ("doc", document), ("grade", grade))
        if name
    )
    if grade is None:
        yield FileRemark("no column of grades: every document counts as relevant, grade 1")
    rows, odd = with_identifiers(contents.rows, (query_id, document))
    yield from (Refused(where, reason) for where, reason in odd.items())
    for row in rows:
        query, doc = id_of(row.fields, query_id), id_of(row.fields, document)
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
        f"{contents.path}: corpus-ids may be candidates or relevant documents; for candidates add "
        "`as_kind='candidates'`"
    )


@reader("candidates", "documents to rank, by query", _candidates)
def read_candidates(contents: Contents, _: Choices) -> Iterator[Item]:
    """Yield queries with the documents that may be ranked for each, as metadata."""
    columns = _folded(contents)
    for row in contents.rows:
        yield from read_whole(row, lambda row: _one_pool(row, columns))


def _one_pool(row: TableRow, columns: Mapping[str, str]) -> Iterator[Item]:
    query = id_key(row.fields.get(columns.get("queryid", "")))
    docs = listed(row.fields.get(columns.get("corpusids", "")))
    ids = list(map(identifier, docs or []))
    if not query.id or docs is None or "" in ids:
        raise ValueError("no query-id, or no list of corpus-ids")
    yield FoundQuery(query, row.where, {"candidates": ids})


@reader(
    "instructions",
    "instructions, by query",
    when("query-id and instruction", lambda contents: set(_folded(contents)) == {"queryid", "instruction"}),
)
def read_instructions(contents: Contents, _: Choices) -> Iterator[Item]:
    """Yield queries with the instruction of each, as metadata."""
    columns = _folded(contents)
    for row in contents.rows:
        query, instruction = (row.fields.get(columns.get(name, "")) for name in ("queryid", "instruction"))
        if plain_text(query):
            yield FoundQuery(id_key(query), row.where, {"instruction": plain_text(instruction)})
        else:
            yield Refused(row.where, "no query-id")


@reader("esci", "the shopping queries of ESCI", has_columns("query", "product_id", "esci_label"))
def read_esci(contents: Contents, _: Choices) -> Iterator[Item]:
    """Yield queries with locale, and judgments by split, from ESCI (E, S, C, I are grades 3, 2, 1, 0).

    A document is the product, or locale/product if there are several locales.
    """
    yield FileRemark(
        "the letters E, S, C and I (exact, substitute, complement, irrelevant) are the grades 3, 2, 1 and 0"
    )
    locales = {text_of(row.fields, "product_locale") for row in contents.rows} - {""}
    for row in contents.rows:
        fields: Mapping[str, Any] = row.fields
        key = ItemKey(id_of(fields, "query_id"), text_of(fields, "query"))
        locale, letter = text_of(fields, "product_locale"), text_of(fields, "esci_label")
        if letter not in _LETTERS or not key.text:
            yield Refused(row.where, f"the label '{letter[:20]}'; expected E, S, C or I, and a query")
            continue
        product = id_of(fields, "product_id")
        doc = f"{locale}/{product}" if len(locales) > 1 else product
        yield FoundQuery(key, row.where, {"locale": locale} if locale else {})
        yield Judgment(key, ItemKey(doc), _LETTERS[letter], row.where, text_of(fields, "split") or "test")


# ----------
# Test sets of BIRCO: queries, documents and a pool of graded candidates for each query.


@reader(
    "birco",
    "a test set of BIRCO",
    when("query, corpus, qrel", lambda contents: contents.shape == "json" and is_birco_set(contents.value)),
)
def read_birco(contents: Contents, _: Choices) -> Iterator[Item]:
    """Yield queries, documents and judgments of BIRCO; a query's candidates are its judged documents, by descending
    identifier."""
    pools = dict(members_at(contents.value, "qrel"))
    yield FileRemark("the judged documents of a query are its candidates")
    for query, text in members_at(contents.value, "query"):
        pool = pools.get(query)
        # By descending identifier: the order of the file gives grades away. In RELIC the relevant document of 63 of
        # 100 queries is the last of its pool.
        candidates = sorted((doc.strip() for doc in pool), reverse=True) if isinstance(pool, dict) else None
        metadata = {} if candidates is None else {"candidates": candidates}
        yield FoundQuery(ItemKey(query.strip(), plain_text(text)), f"query {query}", metadata)
    for doc, text in members_at(contents.value, "corpus"):
        yield Document(ItemKey(doc.strip(), plain_text(text)), f"document {doc}")
    for query, grades in pools.items():
        if not isinstance(grades, dict):
            yield Refused(f"query {query}", "no grades by document")
            continue
        for doc, grade in members_at(grades):
            where = f"query {query}, document {doc}"
            yield Judgment(ItemKey(query.strip()), ItemKey(doc.strip()), grade, where)
