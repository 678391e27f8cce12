"""Evaluation that search engines bring along: `_rank_eval`, the Search Relevance Workbench, RRE."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from weir.plugins.importing.contents import Contents
from weir.plugins.importing.found import (
    FileRemark,
    FoundQuery,
    Item,
    ItemKey,
    Judgment,
    Ranking,
    Refused,
    number,
    plain,
)
from weir.plugins.importing.readers import ReadRequest, reader

__all__: list[str] = []


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
        text = _query_text(request)
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


def _query_text(request: Mapping[str, Any]) -> str:
    """The one text that the request searches for; "" where there is none, or several."""
    params = request.get("params")
    if isinstance(params, dict):
        named = {plain(params.get(name)) for name in _TEXTS} - {""}
        texts = named or {plain(v) for name, v in params.items() if isinstance(v, str) and name != "field"}
    else:
        texts = set(_matched(request.get("request")))
    return texts.pop() if len(texts) == 1 else ""


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
        scores = tuple(number(_inside(hit).get("_score")) for hit in hits)
        known = tuple(score for score in scores if score is not None)
        yield Ranking(key, docs, where, known if len(known) == len(docs) else ())
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
    return [one for one in listed if "query" in one and _rated(one)]


def _rated(judged: Mapping[str, Any]) -> bool:
    return any("docId" in one and "rating" in one for one in members(judged, "ratings"))


def _workbench(contents: Contents) -> str:
    found = _judged_queries(contents)
    return f"{len(found)} queries with ratings of docId" if found else ""


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
    found = [one for one in sources(contents.value) if "searchText" in one and "documentIds" in one]
    return "hits with searchText and documentIds" if found else ""


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
    found = []
    for topic in topics:
        groups = members(topic, "query_groups") or [
            one for one in [topic, *members(topic, "queries")] if "relevant_documents" in one
        ]
        found += [(plain(topic.get("description")), plain(group.get("name")), group) for group in groups]
    return [one for one in found if isinstance(one[2].get("relevant_documents"), dict)]


def _rre(contents: Contents) -> str:
    return "relevant_documents of groups of queries" if _rre_groups(contents) else ""


@reader("rre", "ratings of the Rated Ranking Evaluator", _rre)
def read_rre(contents: Contents, _: ReadRequest) -> Iterator[Item]:
    """Queries with topic and group; the judgments of a group are those of each of its queries."""
    for n, (topic, name, group) in enumerate(_rre_groups(contents), 1):
        asked = members(group, "queries") or [group]
        about = {key: value for key, value in (("topic", topic), ("group", name)) if value}
        for at, query in enumerate(asked, 1):
            where = f"group {n}, query {at}"
            holders = query.get("placeholders", group.get("placeholders"))
            texts = [plain(v) for v in holders.values()] if isinstance(holders, dict) else []
            text = plain(holders.get("$query")) if isinstance(holders, dict) else ""
            text = text or (texts[0] if len(texts) == 1 else "")
            if not text:
                yield Refused(where, "no placeholder $query, and not exactly one other")
                continue
            yield FoundQuery(ItemKey(text=text), where, about)
            for doc, grade in _rre_grades(group["relevant_documents"]):
                yield Judgment(ItemKey(text=text), ItemKey(doc), grade, where)


def _rre_grades(given: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """Documents and gains, of either layout: {"doc": {"gain": 3}} or {"3": ["doc", ...]}."""
    for name, inner in given.items():
        if isinstance(inner, list):
            yield from ((plain(doc), name) for doc in inner)
        elif isinstance(inner, dict):
            yield plain(name), inner.get("gain")
        else:
            yield plain(name), inner
