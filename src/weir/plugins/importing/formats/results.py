"""Readers of results of retrieval tools and search engines: documents returned for each query, with scores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from weir.files.column_names import field_names, fold
from weir.plugins.importing.cells import identifier, is_grade, number, plain_text
from weir.plugins.importing.contents import Contents
from weir.plugins.importing.formats.engines import document_key, sources
from weir.plugins.importing.formats.lines import is_nested, nested_rankings
from weir.plugins.importing.items import (
    Choices,
    FileRemark,
    FoundQuery,
    Item,
    ItemKey,
    LeftOut,
    Refused,
    Used,
    member_of,
    names_document,
    objects,
    ranking_item,
    table_at,
    text_of,
    value_at,
)
from weir.plugins.importing.readers import reader, when

# ----------
# A list of documents under each query: DPR, Pyserini, Atlas, FiD, RankGPT, Patapsco.


_LISTS = ("ctxs", "contexts", "hits", "results", "retrieved", "passages", "positive_ctxs")
_QUERY_IDS = ("qid", "query_id", "q_id", "topic_id", "id", "_id")
_QUERY_TEXTS = ("question", "query", "query_text", "text")
_ANSWERS = "answers"


@dataclass(frozen=True)
class _Answered:
    where: str
    name: str
    """The query's key in the file, or ""."""
    fields: Mapping[str, Any]
    field: str

    @property
    def listed(self) -> list[dict[str, Any]]:
        return objects(self.fields, self.field)

    def key(self) -> ItemKey:
        found = _query_key(self.name, self.fields)
        own = {plain_text(one.get("qid")) for one in self.listed} - {""}
        return ItemKey(found.id or (own.pop() if len(own) == 1 else ""), found.text)


def _query_key(name: str, fields: Mapping[str, Any]) -> ItemKey:
    inner = table_at(fields, "query")
    text = text_of(inner, "text", "query") if inner else text_of(fields, *_QUERY_TEXTS)
    return ItemKey(name or text_of(fields, *_QUERY_IDS) or text_of(inner, *_QUERY_IDS), text)


def _by_query(contents: Contents, *own: str) -> list[tuple[str, str, dict[str, Any]]]:
    value = contents.value
    by_name = isinstance(value, dict) and value and all(isinstance(one, dict) for one in value.values())
    if by_name and value.keys().isdisjoint(own):
        return [(f"query {name}", name, value[name]) for name in value]
    return [(row.where, "", row.fields) for row in contents.rows]


def _is_returned(member: object) -> bool:
    if not isinstance(member, dict) or not names_document(member):
        return False
    return any(number(member.get(name)) is not None for name in ("score", "rank"))


def _answered(contents: Contents) -> list[_Answered]:
    answered = []
    judged, grades = field_names().every("relevant", "grade"), field_names().every("grade")
    for where, name, fields in _by_query(contents):
        field = next((name for name in _LISTS if isinstance(fields.get(name), list)), "")
        if not field or not judged.isdisjoint(map(fold, fields)) or not all(map(_is_returned, fields[field])):
            return []
        if any(fold(n) in grades and is_grade(one) for member in fields[field] for n, one in member.items()):
            return []  # golden sets hold judgments beside what was returned
        answered.append(_Answered(where, name, fields, field))
    return answered if any(one.listed for one in answered) else []


def _answers(contents: Contents) -> str:
    answered = _answered(contents) if contents.roles.keys() <= {"doc", "text"} else []
    return f"{answered[0].field} of documents with scores or ranks" if answered else ""


@reader("retrieved", "what was retrieved for each query (DPR, Pyserini, Atlas, RankGPT, Patapsco)", _answers)
def read_retrieved(contents: Contents, _: Choices) -> Iterator[Item]:
    """Yield queries with answers, documents that have texts, and rankings, by rank if all have ranks, else as
    listed."""
    answered = _answered(contents)
    yield from (Used("retrieved", name) for name in dict.fromkeys(one.field for one in answered))
    yield from (Used(role, name) for role, name in contents.roles.items())
    for one in answered:
        key = one.key()
        if key == ItemKey():
            yield Refused(one.where, "no identifier and no text of the query")
            continue
        answers = one.fields.get(_ANSWERS)
        yield FoundQuery(key, one.where, {_ANSWERS: answers} if isinstance(answers, list) and answers else {})
        documents = one.listed
        places = [number(member.get("rank")) for member in documents]
        ranks = tuple(sorted(place for place in places if place is not None))
        if len(ranks) == len(documents):
            order = sorted(range(len(documents)), key=lambda n: places[n] or 0.0)
            documents = [documents[n] for n in order]
        else:
            ranks = ()
        members = [found for member in documents if (found := member_of(member, contents.roles))]
        for member in members:
            yield from member.document(one.where)
        docs = [ItemKey(member.key.id, "" if member.key.id else member.key.text) for member in members]
        yield ranking_item(key, docs, one.where, [member.score for member in members], ranks=ranks)


# ----------
# FlagEmbedding's search results.


_FLAG = "search_results"


@reader(
    "flag-embedding",
    "search results of FlagEmbedding",
    when(
        f"{_FLAG} by query and document", lambda contents: is_nested(value_at(_one_object(contents), _FLAG))
    ),
)
def read_flag_embedding(contents: Contents, _: Choices) -> Iterator[Item]:
    """Yield a ranking for each query of FlagEmbedding's results, by score."""
    yield from nested_rankings(table_at(_one_object(contents), _FLAG), "")


def _one_object(contents: Contents) -> Mapping[str, Any]:
    return contents.rows[0].fields if len(contents.rows) == 1 else {}


# ----------
# Responses of Elasticsearch, OpenSearch and Vespa, which do not name their queries unless whoever kept them did.


# Place in the file, the query if it is known, hits, and all fields.
Response = tuple[str, ItemKey, list[dict[str, Any]], Mapping[str, Any]]


def _responses(contents: Contents) -> list[Response]:
    found: list[Response] = []
    for where, name, fields in _by_query(contents, "hits", "responses"):
        several = objects(fields, "responses")
        for n, one in enumerate(several or [fields], 1):
            hits = [] if "error" in one and "hits" not in one else value_at(one, "hits", "hits")
            if not isinstance(hits, list) or not all(
                identifier(hit.get("_id")) for hit in objects(one, "hits", "hits")
            ):
                return []
            workbench = {"searchText", "judgmentRatings", "querySetId", "querySetQueries"}
            if any(workbench & set(source) for source in sources(one)):
                return []
            key = _query_key("" if several else name, one)
            found.append((f"response {n}" if several else where, key, objects(one, "hits", "hits"), one))
    return found if any(hits for *_, hits, _ in found) else []


def _queries(contents: Contents, responses: list[Response]) -> tuple[list[ItemKey], list[Item]]:
    keys = [key for _, key, *_ in responses]
    if all(key != ItemKey() for key in keys) and len(set(keys)) == len(keys):
        return keys, [FoundQuery(key, where, {}) for where, key, *_ in responses]
    numbers = [contents.stem] if len(keys) == 1 else [str(n) for n in range(1, len(keys) + 1)]
    how = f"'{contents.stem}', as the file is" if len(keys) == 1 else "by number, 1 being the first"
    some = any(key != ItemKey() for key in keys)
    lack = "leave out the query, or name one twice" if some else "do not name their queries"
    return [ItemKey(number) for number in numbers], [FileRemark(f"responses {lack}: called {how}")]


@reader(
    "search-response",
    "responses of Elasticsearch's or OpenSearch's _search or _msearch",
    when("hits with _id", _responses),
)
def read_search_responses(contents: Contents, _: Choices) -> Iterator[Item]:
    """Yield a ranking from each response; a document is `_id`, or `_index/_id` if there are several indexes.

    A response with failed shards or a timeout is refused.
    """
    responses = _responses(contents)
    indexes = {plain_text(hit.get("_index")) for *_, hits, _ in responses for hit in hits}
    keys, said = _queries(contents, responses)
    yield from said
    for key, (where, _own, hits, fields) in zip(keys, responses, strict=True):
        if fault := _fault(fields):
            yield Refused(where, fault)
            continue
        docs = [document_key(hit, indexes) for hit in hits]
        yield ranking_item(key, docs, where, [number(hit.get("_score")) for hit in hits])


def _fault(response: Mapping[str, Any]) -> str:
    failed, error = number(value_at(response, "_shards", "failed")), response.get("error")
    if error and "hits" not in response:
        return f"the engine refused it: {plain_text(value_at(error, 'reason')) or plain_text(error)}"
    if response.get("timed_out") is True:
        return "the search timed out, so that hits may be missing"
    return f"{failed:g} shards failed, so that hits may be missing" if failed else ""


def _vespa_responses(contents: Contents) -> list[Response]:
    rows = _by_query(contents, "root")
    found: list[Response] = [(where, _query_key(name, of), _vespa_hits(of), of) for where, name, of in rows]
    has_hits = all(isinstance(fields.get("root"), dict) for *_, fields in rows)
    hits = [hit for *_, hits, _ in found for hit in hits]
    return found if has_hits and hits and all("relevance" in hit and "id" in hit for hit in hits) else []


def _vespa_hits(fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [one for one in objects(fields, "root", "children") if not _is_group(one)]


def _is_group(child: Mapping[str, Any]) -> bool:
    return plain_text(child.get("id")).startswith("group:")


@reader("vespa", "results of Vespa", when("root.children with relevance", _vespa_responses))
def read_vespa(contents: Contents, _: Choices) -> Iterator[Item]:
    """Yield a ranking from each result; a document is named by the part after `::`, if all have the same
    prefix.

    A result with errors is refused.
    """
    responses = _vespa_responses(contents)
    own = [
        plain_text(value_at(hit, "fields", "documentid")) or plain_text(hit["id"])
        for *_, hits, _ in responses
        for hit in hits
    ]
    heads = {name.partition("::")[0] for name in own}
    short = len(heads) == 1 and all(name.startswith("id:") and name.partition("::")[2] for name in own)
    if short:
        yield FileRemark(f"documents are called by what follows {heads.pop()}::")
    keys, said = _queries(contents, responses)
    yield from said
    if groups := sum(_is_group(child) for *_, of in responses for child in objects(of, "root", "children")):
        yield LeftOut("groups of documents", groups)
    for key, (where, _own, hits, fields) in zip(keys, responses, strict=True):
        if objects(fields, "root", "errors"):
            yield Refused(where, "Vespa reports errors, so that hits may be missing")
            continue
        ids = [plain_text(value_at(hit, "fields", "documentid")) or plain_text(hit["id"]) for hit in hits]
        docs = [ItemKey(name.partition("::")[2] if short else name) for name in ids]
        yield ranking_item(key, docs, where, [number(hit.get("relevance")) for hit in hits])
