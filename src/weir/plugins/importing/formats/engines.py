"""Readers of evaluation files of search engines, of Quepid, and of retrieval spans in traces."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from weir.plugins.importing.cells import Cells, number, plain_text
from weir.plugins.importing.contents import Contents
from weir.plugins.importing.items import (
    Choices,
    FileRemark,
    FoundQuery,
    Item,
    ItemKey,
    Judgment,
    LeftOut,
    Ranking,
    Refused,
    Used,
    id_key,
    id_of,
    members_at,
    number_of,
    objects,
    query_items,
    ranking_item,
    table_at,
    text_key,
    text_of,
    value_at,
)
from weir.plugins.importing.readers import has_columns, reader, when

# ----------
# `_rank_eval`, the Search Relevance Workbench, RRE.


_QUERY_NAMES = ("query", "query_string", "text", "model_text", "queryText", "q")


def _all_have(queries: list[dict[str, Any]], kind: type, *names: str) -> bool:
    rated = (isinstance(one.get("ratings"), kind) and set(names) <= set(one) for one in queries)
    return bool(queries) and all(rated)


@reader(
    "rank-eval-request",
    "a request to Elasticsearch's or OpenSearch's _rank_eval",
    when("requests with ratings", lambda contents: _all_have(objects(contents.value, "requests"), list)),
)
def read_rank_eval_request(contents: Contents, _: Choices) -> Iterator[Item]:
    """Yield queries and judgments from a request to _rank_eval, without null ratings; documents as `document_key`
    names them."""
    requests = objects(contents.value, "requests")
    indexes = {text_of(one, "_index") for request in requests for one in objects(request, "ratings")}
    if len(indexes) > 1:
        yield FileRemark(f"documents of {len(indexes)} indexes: identifiers are index/document")
    for n, request in enumerate(requests, 1):
        where, params = f"request {n}", request.get("params")
        if isinstance(params, dict):
            texts = {text_of(params, name) for name in _QUERY_NAMES} - {""}
            texts = texts or {
                plain_text(v) for name, v in params.items() if isinstance(v, str) and name != "field"
            }
        else:
            texts = set(_match_texts(request.get("request")))
        key = ItemKey(id_of(request, "id"), texts.pop() if len(texts) == 1 else "")
        if key.id and not key.text:
            yield FileRemark(f"{where}: no query text found in it")
        rated = [one for one in objects(request, "ratings") if one.get("rating") is not None]
        grades = [(document_key(one, indexes), one["rating"]) for one in rated]
        yield from query_items(key, where, "no id and no query text", grades=grades)


def document_key(hit: Mapping[str, Any], indexes: set[str]) -> ItemKey:
    """Return the key of a hit's document: `_id`, or `_index/_id` if there are several indexes."""
    name = id_of(hit, "_id")
    return ItemKey(f"{text_of(hit, '_index')}/{name}" if len(indexes) > 1 and name else name)


def _match_texts(value: object, field: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for name in value:
            inner = dict.get(value, name)
            if isinstance(inner, str) and (name in _QUERY_NAMES or field in ("match", "match_phrase")):
                yield value[name]
            elif isinstance(inner, (dict, list)) and name not in ("_source", "aggs", "fields"):
                for text in _match_texts(inner, name):
                    value.get(name)  # is used
                    yield text
    elif isinstance(value, list):
        for inner in value:
            yield from _match_texts(inner, field)


@reader(
    "rank-eval-response",
    "a response of _rank_eval",
    when(
        "metric_score and details",
        lambda contents: (
            "metric_score" in table_at(contents.value) and isinstance(contents.value.get("details"), dict)
        ),
    ),
)
def read_rank_eval_response(contents: Contents, _: Choices) -> Iterator[Item]:
    """Yield rankings, and judgments of rated hits, from a response of _rank_eval; a Refused for a failed request."""
    details = members_at(contents.value, "details")
    indexes = {
        plain_text(value_at(hit, "hit", "_index")) for _, one in details for hit in objects(one, "hits")
    }
    for name, error in members_at(contents.value, "failures"):
        reason = error
        for inner in ("error", "reason"):
            reason = reason.get(inner) if isinstance(reason, dict) else reason
        yield Refused(
            f"request {name}", f"the engine refused it: {plain_text(reason)[:200] or 'no reason given'}"
        )
    for name, detail in details:
        where, key, hits = f"request {name}", id_key(name), objects(detail, "hits")
        if not isinstance(detail, dict) or not isinstance(dict.get(detail, "hits"), list):
            yield Refused(where, "no list of hits")
            continue
        docs = [document_key(table_at(hit, "hit"), indexes) for hit in hits]
        yield ranking_item(key, docs, where, [number_of(table_at(hit, "hit"), "_score") for hit in hits])
        for doc, hit in zip(docs, hits, strict=True):
            if hit.get("rating") is not None:
                yield Judgment(key, doc, hit["rating"], where)


def sources(value: object) -> list[dict[str, Any]]:
    """Return the `_source` object of each hit in a search response that has one."""
    return [hit["_source"] for hit in objects(value, "hits", "hits") if isinstance(hit.get("_source"), dict)]


def _workbench_queries(contents: Contents) -> list[dict[str, Any]]:
    if isinstance(contents.value, list):
        queries = [one for one in contents.value if isinstance(one, dict)]
    else:
        parts = [contents.value, *sources(contents.value)]
        queries = [one for part in parts for one in objects(part, "judgmentRatings")]
    return [
        query
        for query in queries
        if "query" in query and any("docId" in one and "rating" in one for one in objects(query, "ratings"))
    ]


def _workbench(contents: Contents) -> str:
    count = len(_workbench_queries(contents))
    return f"{count} queries with ratings of docId" if count else ""


@reader("srw-judgments", "judgments of the Search Relevance Workbench", _workbench)
def read_workbench(contents: Contents, _: Choices) -> Iterator[Item]:
    """Yield judgments and queries, identified by text, of the Search Relevance Workbench."""
    for n, query in enumerate(_workbench_queries(contents), 1):
        grades = [(id_key(one.get("docId")), one.get("rating")) for one in objects(query, "ratings")]
        yield from query_items(text_key(query, "query"), f"query {n}", "no query text", grades=grades)


def _query_set(contents: Contents) -> str:
    if objects(contents.value, "querySetQueries"):
        return "querySetQueries"
    return "queryText on each line" if contents.columns[:1] == ("queryText",) else ""


@reader("srw-queries", "a query set of the Search Relevance Workbench", _query_set)
def read_query_set(contents: Contents, _: Choices) -> Iterator[Item]:
    """Yield the queries of a query set of the Search Relevance Workbench, identified by their texts."""
    queries: list[dict[str, Any]] = objects(contents.value, "querySetQueries") or [
        row.fields for row in contents.rows
    ]
    for n, query in enumerate(queries, 1):
        answer = text_of(query, "referenceAnswer")
        metadata = {"answer": answer} if answer else {}
        yield from query_items(text_key(query, "queryText"), f"query {n}", "no queryText", metadata)


@reader(
    "srw-evaluation",
    "evaluation results of the Search Relevance Workbench",
    when(
        "hits with searchText and documentIds",
        lambda contents: any({"searchText", "documentIds"} <= set(one) for one in sources(contents.value)),
    ),
)
def read_evaluation(contents: Contents, _: Choices) -> Iterator[Item]:
    """Yield rankings without scores from evaluation results of the Search Relevance Workbench, a run for each search
    configuration."""
    for one in sources(contents.value):
        where, names = f"evaluation {text_of(one, 'id')}", one.get("documentIds")
        key = text_key(one, "searchText") if isinstance(names, list) else ItemKey()
        docs = [id_key(name) for name in names] if isinstance(names, list) else []
        run = text_of(one, "searchConfigurationId")
        yield from query_items(key, where, "no searchText, or no list of documentIds", docs=docs, run=run)


def _rre_groups(contents: Contents) -> list[tuple[dict[str, str], dict[str, Any]]]:
    topics = objects(contents.value, "topics") or [table_at(contents.value)]
    return [
        ({"topic": text_of(topic, "description"), "group": text_of(group, "name")}, group)
        for topic in topics
        for group in objects(topic, "query_groups")
        or [one for one in [topic, *objects(topic, "queries")] if "relevant_documents" in one]
        if isinstance(group.get("relevant_documents"), dict)
    ]


@reader(
    "rre",
    "ratings of the Rated Ranking Evaluator",
    when("relevant_documents of groups of queries", _rre_groups),
)
def read_rre(contents: Contents, _: Choices) -> Iterator[Item]:
    """Yield queries and judgments of the Rated Ranking Evaluator; a group's judgments hold for each of its
    queries."""
    for n, (names, group) in enumerate(_rre_groups(contents), 1):
        grades: list[tuple[ItemKey, object]] = []
        for name, inner in members_at(group, "relevant_documents"):
            if isinstance(inner, list):  # {"3": ["doc", ...]}
                grades += [(id_key(doc), name) for doc in inner]
            else:  # {"doc": {"gain": 3}}
                grades.append((id_key(name), inner.get("gain") if isinstance(inner, dict) else inner))
        metadata = {name: text for name, text in names.items() if text}
        for number_in_group, query in enumerate(objects(group, "queries") or [group], 1):
            values = table_at(query if "placeholders" in query else group, "placeholders")
            text = text_of(values, "$query", *(values if len(values) == 1 else ()))
            where = f"group {n}, query {number_in_group}"
            missing = "no placeholder $query, and not exactly one other"
            yield from query_items(ItemKey(text=text), where, missing, metadata, grades)


# ----------
# Quepid: cases, ratings, books, snapshots, information needs.


def _about(query: Mapping[str, Any]) -> dict[str, str]:
    return {name: text for name in ("information_need", "notes") if (text := text_of(query, name))}


@reader(
    "quepid-case",
    "a case of Quepid",
    when(
        "case_name, and queries with ratings",
        lambda contents: "case_name" in table_at(contents.value) and objects(contents.value, "queries"),
    ),
)
def read_case(contents: Contents, _: Choices) -> Iterator[Item]:
    """Yield judgments and queries, identified by text, of a Quepid case; needs and notes are metadata."""
    for n, query in enumerate(objects(contents.value, "queries"), 1):
        grades = [(id_key(one.get("doc_id")), one.get("rating")) for one in objects(query, "ratings")]
        key = text_key(query, "query_text")
        yield from query_items(key, f"query {n}", "no query_text", _about(query), grades)


@reader(
    "quepid-ratings",
    "ratings of a case of Quepid",
    when(
        "queries with ratings by document",
        lambda contents: _all_have(objects(contents.value, "queries"), dict, "query"),
    ),
)
def read_ratings(contents: Contents, _: Choices) -> Iterator[Item]:
    """Yield judgments and queries, identified by text, of a Quepid case's ratings."""
    for n, query in enumerate(objects(contents.value, "queries"), 1):
        grades = [(ItemKey(doc), grade) for doc, grade in members_at(query, "ratings")]
        yield from query_items(text_key(query, "query"), f"query {n}", "no query text", grades=grades)


@reader(
    "quepid-book",
    "a book of Quepid",
    when(
        "query_doc_pairs",
        lambda contents: any("query_text" in one for one in objects(contents.value, "query_doc_pairs")[:1]),
    ),
)
def read_book(contents: Contents, _: Choices) -> Iterator[Item]:
    """Yield queries, identified by text, and each judge's judgments of a Quepid book.

    Pairs rated "unrateable" or "later" are left out and counted.
    """
    unrateable = 0
    for n, pair in enumerate(objects(contents.value, "query_doc_pairs"), 1):
        key, judgments = text_key(pair, "query_text"), objects(pair, "judgements")
        ratings = [one["rating"] for one in judgments if one.get("rating") is not None]
        grades = [(id_key(pair.get("doc_id")), rating) for rating in ratings]
        yield from query_items(key, f"pair {n}", "no query_text", _about(pair), grades)
        unrateable += (len(judgments) - len(ratings)) * bool(key.text)
    if unrateable:
        yield LeftOut("judgments that say 'unrateable' or 'later'", unrateable)


def _book_table(contents: Contents) -> str:
    judges = contents.columns[2:]
    values = [number_of(row.fields, name) for row in contents.rows[:200] for name in judges]
    numbers = [value for value in values if value is not None]
    is_book = contents.columns[:2] == ("query", "docid") and len(judges) > 1
    is_book = is_book and bool(numbers) and all(0 <= value <= 100 for value in numbers)
    is_book = is_book and not {"grade", "rating", "score", "rank"} & {name.lower() for name in judges}
    return f"query, docid, and a column for each of {len(judges)} judges" if is_book else ""


@reader("quepid-book-csv", "judgments of a book of Quepid as CSV", _book_table)
def read_book_table(contents: Contents, _: Choices) -> Iterator[Item]:
    """Yield judgments of a Quepid book as CSV, one for each filled cell of a judge's column."""
    judges = contents.columns[2:]
    yield Used("judges", ", ".join(judges))
    for row in contents.rows:
        doc = id_key(row.fields.get("docid"))
        grades = [(doc, row.fields[judge]) for judge in judges if text_of(row.fields, judge)]
        yield from query_items(text_key(row.fields, "query"), row.where, "no query", grades=grades)


@reader(
    "quepid-snapshot",
    "a snapshot of Quepid",
    when(
        "docs by query, queries and scores",
        lambda contents: (
            isinstance(value_at(contents.value, "docs"), dict)
            and objects(contents.value, "queries")
            and "scores" in contents.value
        ),
    ),
)
def read_snapshot(contents: Contents, _: Choices) -> Iterator[Item]:
    """Yield queries, rankings without scores, and ratings, if any, of a Quepid snapshot."""
    texts: dict[str, str] = {}
    for n, query in enumerate(objects(contents.value, "queries"), 1):
        key = ItemKey(id_of(query, "query_id"), text_of(query, "query_text"))
        texts[key.id] = key.text
        yield FoundQuery(key, f"query {n}", _about(query))
        for doc, grade in members_at(query, "ratings"):
            yield Judgment(key, ItemKey(doc), grade, f"query {n}")
    run = text_of(contents.value, "name")
    for query_id, listed in members_at(contents.value, "docs"):
        if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
            yield Refused(f"docs of {query_id}", "no list of documents")
            continue
        returned = [one for one in listed if one.get("rated_only") in (None, False)]
        if rated := len(listed) - len(returned):
            yield LeftOut("documents that are rated and were not returned", rated)
        docs = [id_key(one.get("id")) for one in returned]
        key = ItemKey(query_id, texts.get(query_id, ""))
        yield Ranking(key, tuple(docs), f"docs of {query_id}", run=run)


@reader(
    "quepid-needs",
    "information needs of a case of Quepid",
    when("query and information_need", lambda contents: contents.columns == ("query", "information_need")),
)
def read_needs(contents: Contents, _: Choices) -> Iterator[Item]:
    """Yield queries, identified by text, with the information need as metadata, from a Quepid table."""
    for row in contents.rows:
        yield from query_items(text_key(row.fields, "query"), row.where, "no query", _about(row.fields))


# ----------
# Retrieval spans of OpenInference and of the GenAI convention of OpenTelemetry.


Attributes = Cells

_UNNAMED = "documents with neither identifier nor text"
_FLAT_NAME = re.compile(r"retrieval\.documents\.(\d+)\.document\.(\w+)")


def _otlp_value(value: object) -> Any:  # noqa: ANN401  an attribute holds anything
    if not isinstance(value, dict):
        return value
    if "arrayValue" in value:
        return [_otlp_value(one) for one in objects(value, "arrayValue", "values")]
    if "kvlistValue" in value:
        return _otlp_attributes(objects(value, "kvlistValue", "values"))
    names = ("stringValue", "intValue", "doubleValue", "boolValue", "bytesValue")
    return next((value[name] for name in names if name in value), None)


def _otlp_attributes(pairs: list[dict[str, Any]]) -> Cells:
    return Cells({text_of(one, "key"): _otlp_value(one.get("value")) for one in pairs})


def _spans(contents: Contents) -> list[tuple[str, Attributes]]:
    spans: list[tuple[str, Attributes]] = [
        (f"span {text_of(span, 'spanId')}", _otlp_attributes(objects(span, "attributes")))
        for row in contents.rows
        for resource in objects(row.fields, "resourceSpans")
        for scope in objects(resource, "scopeSpans")
        for span in objects(scope, "spans")
    ]
    flat = [(row.where, row.fields.get("attributes")) for row in contents.rows]
    return spans + [(where, attributes) for where, attributes in flat if isinstance(attributes, Cells)]


def _is_retrieval(attributes: Attributes) -> bool:
    kind, operation = attributes.get("openinference.span.kind"), attributes.get("gen_ai.operation.name")
    return bool(kind == "RETRIEVER" or operation == "retrieval")


def _retrievals(contents: Contents) -> str:
    retrievals = sum(_is_retrieval(attributes) for _, attributes in _spans(contents))
    if retrievals:
        return f"{retrievals} retrieval spans"
    return "resourceSpans" if "resourceSpans" in contents.columns else ""


@reader("spans", "retrieval spans of OpenInference or OpenTelemetry GenAI", _retrievals)
def read_spans(contents: Contents, _: Choices) -> Iterator[Item]:
    """Yield a ranking from each retrieval span of OpenInference or OpenTelemetry; other spans are counted.

    Documents without an identifier go by their text.
    """
    others, unused = Counter[str](), Counter[str]()
    for where, attributes in _spans(contents):
        if not _is_retrieval(attributes):
            others[text_of(attributes, "openinference.span.kind") or "other"] += 1
            continue
        text = text_of(attributes, "gen_ai.retrieval.query.text")
        if not text:  # input.value may be JSON around the query
            value = attributes.get("input.value")
            inner = _json(value) if isinstance(value, str) and value.lstrip().startswith("{") else None
            text = (
                text_of(inner, "query", "question", "input") if isinstance(inner, dict) else plain_text(value)
            )
        docs = _retrieved(attributes)
        keys = [
            ItemKey(
                id_of(one, "id"),
                text_of(one, "content" if "content" in one else "page_content"),
            )
            for one in docs
        ]
        if text and not all(key.id or key.text for key in keys):
            yield Refused(where, _UNNAMED)
            continue
        scores = [
            number(
                value_at(_json(one.get("metadata")), "score") if one.get("score") is None else one["score"]
            )
            for one in docs
        ]
        missing = "no text of the query; let the instrumentation record it"
        yield from query_items(ItemKey(text=text), where, missing, docs=keys, scores=scores)
        if "resourceSpans" in contents.columns:  # pairs of keys and values, now an object
            unused.update(attributes.left("attributes"))
    yield from (LeftOut(f"spans of kind {kind}", count) for kind, count in sorted(others.items()))
    yield from (LeftOut(name, count) for name, count in unused.items())


def _json(value: object) -> Any:  # noqa: ANN401  JSON holds anything
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return None


def _retrieved(attributes: Attributes) -> list[dict[str, Any]]:
    documents = _json(attributes.get("gen_ai.retrieval.documents"))
    if isinstance(documents, list):
        return [one if isinstance(one, dict) else {} for one in documents]
    flat_documents: dict[int, dict[str, Any]] = {}
    for name, value in attributes.items():
        if flat := _FLAT_NAME.fullmatch(name):
            used = flat[2] in ("id", "content", "page_content", "score")
            flat_documents.setdefault(int(flat[1]), {})[flat[2]] = attributes.get(name) if used else value
    docs = [flat_documents[rank] for rank in sorted(flat_documents)]
    beside = objects(_json(attributes.get("output.value")), "documents")
    if len(beside) != len(docs):
        return docs
    return [  # the LangChain instrumentor writes identifiers there alone
        {**other, **{name: value for name, value in doc.items() if value is not None}}
        for doc, other in zip(docs, beside, strict=True)
    ]


@reader(
    "phoenix-documents",
    "retrieved documents as Phoenix writes them",
    has_columns("context.span_id", "document_position"),
)
def read_frame(contents: Contents, _: Choices) -> Iterator[Item]:
    """Yield a ranking for each span of Phoenix, by position; documents without `document_id` go by their text."""
    spans: dict[str, list[Mapping[str, Any]]] = {}
    for row in contents.rows:
        if number_of(row.fields, "document_position") is None or not text_of(row.fields, "input"):
            yield Refused(row.where, "no input, or no number in document_position")
        else:
            spans.setdefault(text_of(row.fields, "context.span_id"), []).append(row.fields)
    for span, rows in spans.items():
        rows.sort(key=lambda row: number(row["document_position"]) or 0.0)
        docs = [ItemKey(id_of(row, "document_id"), text_of(row, "reference")) for row in rows]
        several = len({text_of(row, "input") for row in rows}) > 1
        if several or not all(doc.id or doc.text for doc in docs):
            yield Refused(f"span {span}", "several texts as input" if several else _UNNAMED)
            continue
        scores = [number_of(row, "document_score") for row in rows]
        yield from query_items(
            text_key(rows[0], "input"), f"span {span}", "no input", docs=docs, scores=scores
        )
