"""Evaluation that search engines, Quepid and traces bring along."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from weir.plugins.importing.contents import Contents
from weir.plugins.importing.items import (
    Document,
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
    ranking,
)
from weir.plugins.importing.readers import ReadRequest, reader

# ----------
# `_rank_eval`, the Search Relevance Workbench, RRE.


def members(value: object, name: str) -> list[dict[str, Any]]:
    """The objects in a list under a name; [] where there is none."""
    listed = value.get(name) if isinstance(value, Mapping) else None
    return [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []


def sources(value: object) -> list[dict[str, Any]]:
    """What a search response returned: the `_source` of each hit."""
    hits = members(value.get("hits"), "hits") if isinstance(value, Mapping) else []
    return [hit["_source"] for hit in hits if isinstance(hit.get("_source"), dict)]


def _requests(contents: Contents) -> str:
    requests = members(contents.value, "requests")
    rated = requests and all(isinstance(one.get("ratings"), list) for one in requests)
    return "requests with ratings" if rated else ""


@reader("rank-eval-request", "a request to Elasticsearch's or OpenSearch's _rank_eval", _requests)
def read_request(contents: Contents, _: ReadRequest) -> Iterator[Item]:
    """Queries and judgments; a document is `_id`, or `_index/_id` where the request rates more than one index."""
    requests = members(contents.value, "requests")
    indexes = {plain(one.get("_index")) for request in requests for one in members(request, "ratings")}
    several = len(indexes) > 1
    if several:
        yield FileRemark(f"documents of {len(indexes)} indexes: identifiers are index/document")
    for n, request in enumerate(requests, 1):
        where = f"request {n}"
        params = request.get("params")
        if isinstance(params, dict):
            named = {plain(params.get(name)) for name in _TEXTS} - {""}
            texts = named or {
                plain(v) for name, v in params.items() if isinstance(v, str) and name != "field"
            }
        else:
            texts = set(_matched(request.get("request")))
        text = texts.pop() if len(texts) == 1 else ""
        key = ItemKey(plain(request.get("id")), text)
        if not key.id and not key.text:
            yield Refused(where, "no id and no query text")
            continue
        if not text:
            yield FileRemark(f"{where}: no query text found in it")
        yield FoundQuery(key, where)
        for rated in members(request, "ratings"):
            yield Judgment(key, ItemKey(_document(rated, several)), rated.get("rating"), where)


def _inside(hit: Mapping[str, Any]) -> Mapping[str, Any]:
    held = hit.get("hit")
    return held if isinstance(held, dict) else {}


def _document(hit: Mapping[str, Any], several: bool) -> str:
    name = plain(hit.get("_id"))
    return f"{plain(hit.get('_index'))}/{name}" if several and name else name


_TEXTS = ("query", "query_string", "text", "model_text", "queryText", "q")


def _matched(value: object, field: str = "") -> Iterator[str]:
    """Texts of match, multi_match and alike, wherever they stand."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if isinstance(inner, str) and (name in _TEXTS or field in ("match", "match_phrase")):
                yield inner
            elif isinstance(inner, (dict, list)) and name not in ("_source", "aggs", "fields"):
                yield from _matched(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from _matched(inner, field)


def _response(contents: Contents) -> str:
    value = contents.value
    known = isinstance(value, dict) and "metric_score" in value and isinstance(value.get("details"), dict)
    return "metric_score and details" if known else ""


@reader("rank-eval-response", "a response of _rank_eval", _response)
def read_response(contents: Contents, _: ReadRequest) -> Iterator[Item]:
    """The top of a run; hits without a rating are unjudged, those with one are judgments."""
    details = contents.value["details"]
    every = [hit for one in details.values() for hit in members(one, "hits")]
    several = len({plain(_inside(hit).get("_index")) for hit in every}) > 1
    failures = contents.value.get("failures")
    for name, error in failures.items() if isinstance(failures, dict) else ():
        inner = error.get("error") if isinstance(error, dict) else error
        reason = inner.get("reason") if isinstance(inner, dict) else inner
        yield Refused(f"request {name}", f"the engine refused it: {plain(reason)[:200] or 'no reason given'}")
    for name, detail in details.items():
        where, key, hits = f"request {name}", ItemKey(plain(name)), members(detail, "hits")
        docs = tuple(ItemKey(_document(_inside(hit), several)) for hit in hits)
        yield ranking(key, docs, where, [number(_inside(hit).get("_score")) for hit in hits])
        for doc, hit in zip(docs, hits, strict=True):
            if hit.get("rating") is not None:
                yield Judgment(key, doc, hit["rating"], where)


def _judged_queries(contents: Contents) -> list[dict[str, Any]]:
    value = contents.value
    if isinstance(value, list):
        listed = [one for one in value if isinstance(one, dict)]
    else:
        inside = [value, *sources(value)]
        listed = [one for part in inside for one in members(part, "judgmentRatings")]
    return [
        judged
        for judged in listed
        if "query" in judged and any("docId" in one and "rating" in one for one in members(judged, "ratings"))
    ]


def _workbench(contents: Contents) -> str:
    judged = _judged_queries(contents)
    return f"{len(judged)} queries with ratings of docId" if judged else ""


@reader("srw-judgments", "judgments of the Search Relevance Workbench", _workbench)
def read_workbench(contents: Contents, _: ReadRequest) -> Iterator[Item]:
    """Queries by their text, and judgments; ratings are text there, often fractions."""
    for n, judged in enumerate(_judged_queries(contents), 1):
        where, key = f"query {n}", ItemKey(text=plain(judged["query"]))
        if not key.text:
            yield Refused(where, "no query text")
            continue
        yield FoundQuery(key, where)
        for rated in members(judged, "ratings"):
            yield Judgment(key, ItemKey(plain(rated.get("docId"))), rated.get("rating"), where)


def _query_set(contents: Contents) -> str:
    if members(contents.value, "querySetQueries"):
        return "querySetQueries"
    return "queryText on each line" if contents.columns[:1] == ("queryText",) else ""


@reader("srw-queries", "a query set of the Search Relevance Workbench", _query_set)
def read_query_set(contents: Contents, _: ReadRequest) -> Iterator[Item]:
    """Queries by their text."""
    listed = members(contents.value, "querySetQueries") or [dict(row.fields) for row in contents.rows]
    for n, one in enumerate(listed, 1):
        text = plain(one.get("queryText"))
        answer = plain(one.get("referenceAnswer"))
        if text:
            yield FoundQuery(ItemKey(text=text), f"query {n}", {"answer": answer} if answer else {})
        else:
            yield Refused(f"query {n}", "no queryText")


def _evaluations(contents: Contents) -> str:
    evaluations = [one for one in sources(contents.value) if "searchText" in one and "documentIds" in one]
    return "hits with searchText and documentIds" if evaluations else ""


@reader("srw-evaluation", "evaluation results of the Search Relevance Workbench", _evaluations)
def read_evaluation(contents: Contents, _: ReadRequest) -> Iterator[Item]:
    """Rankings without scores, a run for each search configuration."""
    for one in sources(contents.value):
        key, where = ItemKey(text=plain(one.get("searchText"))), f"evaluation {plain(one.get('id'))}"
        listed = one.get("documentIds")
        if not key.text or not isinstance(listed, list):
            yield Refused(where, "no searchText, or no list of documentIds")
            continue
        yield FoundQuery(key, where)
        docs = tuple(ItemKey(plain(doc)) for doc in listed)
        yield Ranking(key, docs, where, run=plain(one.get("searchConfigurationId")))


def _rre_groups(contents: Contents) -> list[tuple[str, str, dict[str, Any]]]:
    """(topic, name, group) of every group of queries, wherever topics and groups are left out."""
    value = contents.value
    topics = members(value, "topics") or ([value] if isinstance(value, dict) else [])
    all_groups = []
    for topic in topics:
        groups = members(topic, "query_groups") or [
            one for one in [topic, *members(topic, "queries")] if "relevant_documents" in one
        ]
        all_groups += [(plain(topic.get("description")), plain(group.get("name")), group) for group in groups]
    return [one for one in all_groups if isinstance(one[2].get("relevant_documents"), dict)]


@reader(
    "rre",
    "ratings of the Rated Ranking Evaluator",
    lambda contents: "relevant_documents of groups of queries" if _rre_groups(contents) else "",
)
def read_rre(contents: Contents, _: ReadRequest) -> Iterator[Item]:
    """Queries with topic and group; the judgments of a group are those of each of its queries."""
    for n, (topic, name, group) in enumerate(_rre_groups(contents), 1):
        queries = members(group, "queries") or [group]
        about = {key: value for key, value in (("topic", topic), ("group", name)) if value}
        for at, query in enumerate(queries, 1):
            where = f"group {n}, query {at}"
            holders = query.get("placeholders", group.get("placeholders"))
            texts = [plain(v) for v in holders.values()] if isinstance(holders, dict) else []
            text = plain(holders.get("$query")) if isinstance(holders, dict) else ""
            text = text or (texts[0] if len(texts) == 1 else "")
            if not text:
                yield Refused(where, "no placeholder $query, and not exactly one other")
                continue
            yield FoundQuery(ItemKey(text=text), where, about)
            for doc, inner in group[
                "relevant_documents"
            ].items():  # {"3": ["doc", ...]} or {"doc": {"gain": 3}}
                pairs = (
                    [(plain(one), doc) for one in inner] if isinstance(inner, list) else [(plain(doc), inner)]
                )
                for one, gain in pairs:
                    grade = gain.get("gain") if isinstance(gain, dict) else gain
                    yield Judgment(ItemKey(text=text), ItemKey(one), grade, where)


# ----------
# Quepid: cases, ratings, books, snapshots, information needs.


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
    queries = members(contents.value, "queries")
    known = queries and all("query" in one and isinstance(one.get("ratings"), dict) for one in queries)
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
        ratings = query.get("ratings")
        for doc, grade in ratings.items() if isinstance(ratings, dict) else ():
            yield Judgment(key, ItemKey(doc), grade, f"query {n}")
    for query_id, listed in value["docs"].items():
        docs = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
        shown = tuple(ItemKey(plain(one.get("id"))) for one in docs if not one.get("rated_only"))
        yield Ranking(ItemKey(query_id, texts.get(query_id, "")), shown, f"docs of {query_id}", run=name)


@reader(
    "quepid-needs",
    "information needs of a case of Quepid",
    lambda contents: (
        "query and information_need" if contents.columns == ("query", "information_need") else ""
    ),
)
def read_needs(contents: Contents, _: ReadRequest) -> Iterator[Item]:
    """Queries by their text, with information needs."""
    for row in contents.rows:
        if text := plain(row.fields.get("query")):
            yield FoundQuery(ItemKey(text=text), row.where, _about(row.fields))
        else:
            yield Refused(row.where, "no query")


# ----------
# Retrieval spans of OpenInference and of the GenAI convention of OpenTelemetry.


Attributes = Mapping[str, Any]


def _value(given: object) -> Any:  # noqa: ANN401  an attribute holds anything
    """A value as OTLP/JSON writes it, unwrapped."""
    if not isinstance(given, dict):
        return given
    if "arrayValue" in given:
        return [_value(one) for one in members(given["arrayValue"], "values")]
    if "kvlistValue" in given:
        return _attributes(members(given["kvlistValue"], "values"))
    for name in ("stringValue", "intValue", "doubleValue", "boolValue", "bytesValue"):
        if name in given:
            return given[name]
    return None


def _attributes(listed: list[dict[str, Any]]) -> dict[str, Any]:
    return {plain(one.get("key")): _value(one.get("value")) for one in listed}


def _spans(contents: Contents) -> list[tuple[str, Attributes]]:
    """The attributes of every span, with what the span is called."""
    exports = [row.fields for row in contents.rows]
    spans: list[tuple[str, Attributes]] = []
    for export in exports:
        for resource in members(export, "resourceSpans"):
            for scope in members(resource, "scopeSpans"):
                for span in members(scope, "spans"):
                    spans.append(
                        (f"span {plain(span.get('spanId'))}", _attributes(members(span, "attributes")))
                    )
    for row in contents.rows:
        held = row.fields.get("attributes")
        if isinstance(held, dict):
            spans.append((row.where, held))
    return spans


def _is_retrieval(attributes: Attributes) -> bool:
    return (
        attributes.get("openinference.span.kind") == "RETRIEVER"
        or attributes.get("gen_ai.operation.name") == "retrieval"
    )


def _traced(contents: Contents) -> str:
    retrievals = sum(_is_retrieval(attributes) for _, attributes in _spans(contents))
    if retrievals:
        return f"{retrievals} retrieval spans"
    return "resourceSpans" if "resourceSpans" in contents.columns else ""


@reader("spans", "retrieval spans of OpenInference or OpenTelemetry GenAI", _traced)
def read_spans(contents: Contents, _: ReadRequest) -> Iterator[Item]:
    """A ranking for each retrieval span, in the order of its documents; other spans are passed over.

    A document without an identifier is known by its text.
    """
    others: Counter[str] = Counter()
    for where, attributes in _spans(contents):
        if not _is_retrieval(attributes):
            others[plain(attributes.get("openinference.span.kind")) or "other"] += 1
            continue
        text = plain(attributes.get("gen_ai.retrieval.query.text")) or _input(attributes.get("input.value"))
        if not text:
            yield Refused(where, "no text of the query; have the instrumentation record it")
            continue
        docs = _retrieved(attributes)
        keys = tuple(
            ItemKey(plain(one.get("id")), plain(one.get("content", one.get("page_content")))) for one in docs
        )
        if not all(key.id or key.text for key in keys):
            yield Refused(where, "documents with neither identifier nor text")
            continue
        yield FoundQuery(ItemKey(text=text), where)
        yield from (Document(key, where) for key in keys if key.text)
        yield ranking(ItemKey(text=text), keys, where, [_score(one) for one in docs])
    if others:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(others.items()))
        yield FileRemark(f"spans that are no retrieval were passed over: {kinds}")


def _json(value: object) -> Any:  # noqa: ANN401  JSON holds anything
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return None


def _input(value: object) -> str:
    """The query in input.value, which may be JSON around it."""
    held = _json(value) if isinstance(value, str) and value.lstrip().startswith("{") else None
    if isinstance(held, dict):
        return next(
            (plain(held[name]) for name in ("query", "question", "input") if plain(held.get(name))), ""
        )
    return plain(value)


_FLAT = re.compile(r"retrieval\.documents\.(\d+)\.document\.(\w+)")


def _retrieved(attributes: Attributes) -> list[dict[str, Any]]:
    """The documents of a span in order: those of GenAI, or OpenInference's flattened ones."""
    documents = _json(attributes.get("gen_ai.retrieval.documents"))
    if isinstance(documents, list):
        return [one if isinstance(one, dict) else {} for one in documents]
    flat_documents: dict[int, dict[str, Any]] = {}
    for name, value in attributes.items():
        if flat := _FLAT.fullmatch(name):
            flat_documents.setdefault(int(flat[1]), {})[flat[2]] = value
    docs = [flat_documents[rank] for rank in sorted(flat_documents)]
    output = _json(attributes.get("output.value"))
    beside = members(output, "documents") if isinstance(output, dict) else []
    if len(beside) == len(docs):  # the LangChain instrumentor keeps identifiers there alone
        docs = [
            {**other, **{k: v for k, v in doc.items() if v is not None}}
            for doc, other in zip(docs, beside, strict=True)
        ]
    return docs


def _score(document: Attributes) -> float | None:
    if document.get("score") is not None:
        return number(document["score"])
    metadata = _json(document.get("metadata"))
    return number(metadata.get("score")) if isinstance(metadata, dict) else None


def _frame(contents: Contents) -> str:
    known = {"context.span_id", "document_position"} <= set(contents.columns)
    return "context.span_id and document_position" if known else ""


@reader("phoenix-documents", "retrieved documents as Phoenix writes them", _frame)
def read_frame(contents: Contents, _: ReadRequest) -> Iterator[Item]:
    """A ranking for each span, by position; documents are known by their text (`reference`)."""
    spans: dict[str, list[Mapping[str, Any]]] = {}
    for row in contents.rows:
        if number(row.fields.get("document_position")) is None or not plain(row.fields.get("input")):
            yield Refused(row.where, "no input, or no number in document_position")
        else:
            spans.setdefault(plain(row.fields.get("context.span_id")), []).append(row.fields)
    for span, rows in spans.items():
        rows.sort(key=lambda row: number(row["document_position"]) or 0.0)
        where, key = f"span {span}", ItemKey(text=plain(rows[0]["input"]))
        docs = tuple(ItemKey(plain(row.get("document_id")), plain(row.get("reference"))) for row in rows)
        if not all(doc.id or doc.text for doc in docs):
            yield Refused(where, "documents with neither identifier nor text")
            continue
        yield FoundQuery(key, where)
        yield from (Document(doc, where) for doc in docs if doc.text)
        yield ranking(key, docs, where, [number(row.get("document_score")) for row in rows])
