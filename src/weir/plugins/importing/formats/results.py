"""Read results of retrieval tools and search engines: the documents returned for each query, with scores."""

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
    Document,
    FileRemark,
    FoundQuery,
    Item,
    ItemKey,
    Refused,
    Used,
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
_DOC_IDS = ("docid", "doc_id", "document_id", "docno", "pid", "passage_id", "psg_id", "_id", "id")
_TEXTS = ("text", "contents", "content", "passage", "body")
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
        inner = table_at(self.fields, "query")
        name = self.name or text_of(self.fields, *_QUERY_IDS) or text_of(inner, *_QUERY_IDS)
        text = text_of(inner, "text", "query") if inner else text_of(self.fields, *_QUERY_TEXTS)
        own = {plain_text(one.get("qid")) for one in self.listed} - {""}
        return ItemKey(name or (own.pop() if len(own) == 1 else ""), text)


def _is_returned(member: object) -> bool:
    if not isinstance(member, dict) or not text_of(member, *_DOC_IDS):
        return False
    return any(number(member.get(name)) is not None for name in ("score", "rank"))


def _answered(contents: Contents) -> list[_Answered]:
    rows = [(row.where, "", row.fields) for row in contents.rows]
    value = contents.value
    if isinstance(value, dict) and value and all(isinstance(one, dict) for one in value.values()):
        rows = [(f"query {name}", name, value[name]) for name in value]
    answered = []
    judged, grades = field_names().every("relevant", "grade"), field_names().every("grade")
    for where, name, fields in rows:
        field = next((name for name in _LISTS if isinstance(fields.get(name), list)), "")
        if not field or not judged.isdisjoint(map(fold, fields)) or not all(map(_is_returned, fields[field])):
            return []
        if any(fold(n) in grades and is_grade(one) for member in fields[field] for n, one in member.items()):
            return []  # golden sets hold judgments beside what was returned
        answered.append(_Answered(where, name, fields, field))
    return answered if any(one.listed for one in answered) else []


def _answers(contents: Contents) -> str:
    answered = _answered(contents) if not contents.roles else []
    return f"{answered[0].field} of documents with scores or ranks" if answered else ""


@reader("retrieved", "what was retrieved for each query (DPR, Pyserini, Atlas, RankGPT, Patapsco)", _answers)
def read_retrieved(contents: Contents, _: Choices) -> Iterator[Item]:
    """Read queries with answers, documents that have texts, and rankings: by rank if all have ranks, else as listed."""
    answered = _answered(contents)
    yield from (Used("retrieved", name) for name in dict.fromkeys(one.field for one in answered))
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
        keys = [ItemKey(text_of(member, *_DOC_IDS), text_of(member, *_TEXTS)) for member in documents]
        for doc, member in zip(keys, documents, strict=True):
            if doc.text:
                yield Document(doc, one.where, plain_text(member.get("title")))
        scores = [number(member.get("score")) for member in documents]
        yield ranking_item(key, [ItemKey(doc.id) for doc in keys], one.where, scores, ranks=ranks)


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
    """Yield a ranking for each query of FlagEmbedding's results, ordered by score."""
    yield from nested_rankings(table_at(_one_object(contents), _FLAG), "")


def _one_object(contents: Contents) -> Mapping[str, Any]:
    return contents.rows[0].fields if len(contents.rows) == 1 else {}


# ----------
# Responses of Elasticsearch, OpenSearch and Vespa, which do not name their queries.


Response = tuple[str, list[dict[str, Any]]]  # where it stands, and its hits


def _responses(contents: Contents) -> list[Response]:
    """Return the responses of `_search` or `_msearch` in a file; [] if they return OpenSearch's own judgments or query
    sets.
    """
    found: list[Response] = []
    for row in contents.rows:
        several = objects(row.fields, "responses")
        for n, one in enumerate(several or [row.fields], 1):
            hits = value_at(one, "hits", "hits")
            if not isinstance(hits, list) or not all(
                identifier(hit.get("_id")) for hit in objects(one, "hits", "hits")
            ):
                return []
            workbench = {"searchText", "judgmentRatings", "querySetId", "querySetQueries"}
            if any(workbench & set(source) for source in sources(one)):
                return []
            found.append((f"response {n}" if several else row.where, objects(one, "hits", "hits")))
    return found if any(hits for _, hits in found) else []


def _named(contents: Contents, responses: list[Response]) -> Iterator[tuple[ItemKey, Response]]:
    for n, response in enumerate(responses, 1):
        yield ItemKey(contents.stem if len(responses) == 1 else str(n)), response


def _unnamed(contents: Contents, responses: list[Response]) -> FileRemark:
    how = f"'{contents.stem}', as the file is" if len(responses) == 1 else "by number, 1 being the first"
    return FileRemark(f"responses do not name their queries: called {how}")


@reader(
    "search-response",
    "responses of Elasticsearch's or OpenSearch's _search or _msearch",
    when("hits with _id", _responses),
)
def read_search_responses(contents: Contents, _: Choices) -> Iterator[Item]:
    """Read a ranking from each response; a document is `_id`, or `_index/_id` if there are several indexes."""
    responses = _responses(contents)
    yield _unnamed(contents, responses)
    indexes = {plain_text(hit.get("_index")) for _, hits in responses for hit in hits}
    for key, (where, hits) in _named(contents, responses):
        docs = [document_key(hit, indexes) for hit in hits]
        yield ranking_item(key, docs, where, [number(hit.get("_score")) for hit in hits])


def _vespa_responses(contents: Contents) -> list[Response]:
    found = [(row.where, objects(row.fields, "root", "children")) for row in contents.rows]
    has_hits = all(isinstance(row.fields.get("root"), dict) for row in contents.rows)
    hits = [hit for _, hits in found for hit in hits]
    return found if has_hits and hits and all("relevance" in hit and "id" in hit for hit in hits) else []


@reader("vespa", "results of Vespa", when("root.children with relevance", _vespa_responses))
def read_vespa(contents: Contents, _: Choices) -> Iterator[Item]:
    """Read a ranking from each result; a document is the part of its identifier after `::`, if all have the same
    prefix.
    """
    responses = _vespa_responses(contents)
    yield _unnamed(contents, responses)
    own = [
        plain_text(value_at(hit, "fields", "documentid")) or plain_text(hit["id"])
        for _, hits in responses
        for hit in hits
    ]
    heads = {name.partition("::")[0] for name in own}
    short = len(heads) == 1 and all(name.startswith("id:") and name.partition("::")[2] for name in own)
    if short:
        yield FileRemark(f"documents are called by what follows {heads.pop()}::")
    for key, (where, hits) in _named(contents, responses):
        ids = [plain_text(value_at(hit, "fields", "documentid")) or plain_text(hit["id"]) for hit in hits]
        docs = [ItemKey(name.partition("::")[2] if short else name) for name in ids]
        yield ranking_item(key, docs, where, [number(hit.get("relevance")) for hit in hits])
