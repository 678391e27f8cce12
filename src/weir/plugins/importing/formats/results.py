"""Readers of results of retrieval tools, engines and vector stores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from weir.errors import BadValue
from weir.files.column_names import field_names, fold, identifier_names
from weir.plugins.importing.cells import (
    Cells,
    each_record,
    has_value,
    identifier,
    is_grade,
    one_of,
    plain_text,
)
from weir.plugins.importing.contents import Contents, TableRow, text_column
from weir.plugins.importing.formats.engines import document_key
from weir.plugins.importing.formats.layouts import read_corpus
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
    failure_of,
    id_of,
    member_of,
    members_at,
    names_document,
    number_of,
    objects,
    places_of,
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
        own = {text_of(one, "qid") for one in self.listed} - {""}
        return ItemKey(found.id or (own.pop() if len(own) == 1 else ""), found.text)


def _query_key(name: str, fields: Mapping[str, Any]) -> ItemKey:
    inner = table_at(fields, "query")
    text = text_of(inner, "text", "query") if inner else text_of(fields, *_QUERY_TEXTS)
    return ItemKey(name or text_of(fields, *_QUERY_IDS) or text_of(inner, *_QUERY_IDS), text)


def _by_query(contents: Contents, *own: str) -> list[tuple[str, str, dict[str, Any]]]:
    value = contents.value
    by_name = isinstance(value, dict) and value and all(isinstance(one, dict) for one in value.values())
    if by_name and value.keys().isdisjoint(own):
        return [(f"query {name}", name, one) for name, one in members_at(value)]
    return [(row.where, "", row.fields) for row in contents.rows]


def _is_returned(member: object) -> bool:
    if not isinstance(member, dict) or not names_document(member):
        return False
    return any(number_of(member, name) is not None for name in ("score", "rank"))


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
    """Yield queries with answers, documents with texts, and rankings, as DPR, Pyserini and others write them.

    Rankings go by rank if all documents have one, else as listed. A failed search gives a Refused.
    """
    answered = _answered(contents)
    yield from (Used("retrieved", name) for name in dict.fromkeys(one.field for one in answered))
    yield from (Used(role, name) for role, name in contents.roles.items())
    for one in answered:
        key = one.key()
        if key == ItemKey():
            yield Refused(one.where, "no identifier and no text of the query")
            continue
        if failure := failure_of(one.fields):
            yield Refused(one.where, failure)
            continue
        answers = one.fields.get(_ANSWERS)
        yield FoundQuery(key, one.where, {_ANSWERS: answers} if isinstance(answers, list) and answers else {})
        found = [(given, member) for given in one.listed if (member := member_of(given, contents.roles))]
        order, ranks = places_of([given for given, _ in found], [member for _, member in found])
        members = [found[n][1] for n in order]
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
    """Yield rankings, to be ordered by score, from search results of FlagEmbedding."""
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
            hits = [] if "error" in one and "hits" not in one else dict.get(table_at(one, "hits"), "hits")
            if not isinstance(hits, list) or not all(
                id_of(hit, "_id") for hit in objects(one, "hits", "hits")
            ):
                return []
            workbench = {"searchText", "judgmentRatings", "querySetId", "querySetQueries"}
            if any(workbench & set(dict.get(hit, "_source") or ()) for hit in objects(one, "hits", "hits")):
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
    """Yield a ranking from each response of _search or _msearch; documents as `document_key` names them.

    Failed shards or a timeout give a Refused. Unless each response names a different query, queries are numbered; a
    single one has the file's name.
    """
    responses = _responses(contents)
    indexes = {text_of(hit, "_index") for *_, hits, _ in responses for hit in hits}
    keys, said = _queries(contents, responses)
    yield from said
    for key, (where, _own, hits, fields) in zip(keys, responses, strict=True):
        if fault := _fault(fields):
            yield Refused(where, fault)
            continue
        docs = [document_key(hit, indexes) for hit in hits]
        yield ranking_item(key, docs, where, [number_of(hit, "_score") for hit in hits])


def _fault(response: Mapping[str, Any]) -> str:
    failed, error = value_at(response, "_shards", "failed"), response.get("error")
    if error and "hits" not in response:
        return f"the engine refused it: {plain_text(value_at(error, 'reason')) or plain_text(error)}"
    if response.get("timed_out") not in (None, False):
        return "the search timed out, so that hits may be missing"
    return f"{failed} shards failed, so that hits may be missing" if failed not in (None, 0) else ""


def _vespa_responses(contents: Contents) -> list[Response]:
    rows = _by_query(contents, "root")
    found: list[Response] = [(where, _query_key(name, of), _vespa_hits(of), of) for where, name, of in rows]
    has_hits = all(isinstance(fields.get("root"), dict) for *_, fields in rows)
    hits = [hit for *_, hits, _ in found for hit in hits]
    return found if has_hits and hits and all("relevance" in hit and "id" in hit for hit in hits) else []


def _vespa_hits(fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [one for one in objects(fields, "root", "children") if not _is_group(one)]


def _is_group(child: dict[str, Any]) -> bool:
    return plain_text(dict.get(child, "id")).startswith("group:")


def _vespa_id(hit: dict[str, Any]) -> str:
    own = text_of(table_at(hit, "fields"), "documentid")
    return own if own and own != plain_text(dict.get(hit, "id")) else text_of(hit, "id")


@reader("vespa", "results of Vespa", when("root.children with relevance", _vespa_responses))
def read_vespa(contents: Contents, _: Choices) -> Iterator[Item]:
    """Yield a ranking from each result of Vespa; a Refused if it has errors or no full coverage.

    Documents are named by the part after `::` if all have the same prefix, queries as by `read_search_responses`.
    Groups are left out and counted.
    """
    responses = _vespa_responses(contents)
    own = [_vespa_id(hit) for *_, hits, _ in responses for hit in hits]
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
        if value_at(fields, "root", "coverage", "full") not in (None, True):
            yield Refused(where, "Vespa did not search all documents (coverage), so that hits may be missing")
            continue
        ids = list(map(_vespa_id, hits))
        if "" in ids:
            yield Refused(where, "a hit without an identifier")
            continue
        docs = [ItemKey(name.partition("::")[2] if short else name) for name in ids]
        yield ranking_item(key, docs, where, [number_of(hit, "relevance") for hit in hits])


# ----------
# Responses of vector stores: points with a payload, of which those with scores are a ranking.


_LISTS_OF_CHROMA = {"documents": "document", "metadatas": "metadata", "distances": "distance", "uris": "uri"}
_POINTS = ("result", "points", "matches")
_PAYLOADS = ("payload", "metadata")
_MORE = "next_page_offset"


def _chroma(fields: dict[str, Any]) -> list[list[Any]]:
    """Return the points (records) of each query in Chroma's answer to `query`, or one list of all in its answer to
    `get`; [] for other fields.

    Raises BadValue for a list that is not as long as the list of identifiers.
    """
    given = {name: dict.get(fields, name) for name in ("ids", *_LISTS_OF_CHROMA)}
    lists = {name: one for name, one in given.items() if isinstance(one, list)}
    if "ids" not in lists or len(lists) < 2:
        return []
    if not all(isinstance(one, list) for one in lists["ids"]):
        lists = {name: [one] for name, one in lists.items()}
    found = []
    for n, ids in enumerate(lists["ids"]):
        columns = {name: one[n] if n < len(one) else [] for name, one in lists.items()}
        if odd := next((name for name, one in columns.items() if len(one or ids) != len(ids)), ""):
            raise BadValue(f"{len(ids)} ids and {len(columns[odd])} {odd}; expected as many")
        rows = zip(*(one or [None] * len(ids) for one in columns.values()), strict=True)
        names = ["id", *(_LISTS_OF_CHROMA[name] for name in columns if name != "ids")]
        found.append([Cells(zip(names, row, strict=True)) for row in rows])
    return found


def _is_point(one: object, named: bool) -> bool:
    if not isinstance(one, dict) or not identifier(dict.get(one, "id")):
        return False
    return "payload" in one or (named and ("score" in one or isinstance(dict.get(one, "metadata"), dict)))


def _point_lists(value: object, named: bool = False) -> list[list[Any]]:
    """Return the points of each query in a vector store's response; [] if there are none.

    named: True for a value whose name says that it holds points.

    Raises BadValue for groups of points, and for lists of Chroma with other lengths than its identifiers.
    """
    if isinstance(value, dict):
        if named and "groups" in value:
            raise BadValue("groups of points (Qdrant) are no ranking of points; search without groups")
        name = next((name for name in _POINTS if name in value), "")
        return _point_lists(dict.get(value, name), True) if name else _chroma(value)
    if not isinstance(value, list) or not value:
        return []
    if all(_is_point(one, named) for one in value):
        return [value]
    return [points for one in value for points in _point_lists(one, named)]


@dataclass(frozen=True)
class _Points:
    query: ItemKey
    points: list[Any]
    ranked: bool


def _stored(contents: Contents) -> list[_Points]:
    whole: object = [row.fields for row in contents.rows] if contents.shape == "rows" else contents.value
    one_list = isinstance(whole, list) and not all(
        isinstance(one, dict) and not _is_point(one, False) for one in whole
    )
    responses: list[tuple[str, Any]] = (
        [("", whole)] if one_list else [(name, of) for _, name, of in _by_query(contents, "ids", *_POINTS)]
    )
    found = []
    for name, response in responses:
        lists, fields = _point_lists(response), response if isinstance(response, dict) else {}
        key = _query_key(name, fields) if len(lists) == 1 else ItemKey()
        nested = any(isinstance(one, list) for one in dict.get(fields, "ids") or ())
        for points in lists:
            scored = any(has_value(dict.get(one, name)) for one in points for name in ("score", "distance"))
            found.append(_Points(key, points, nested or scored))
    return found


def _identifier_of_points(rows: Sequence[TableRow]) -> str:
    columns = dict.fromkeys(name for row in rows for name in row.fields)
    ids = [identifier(dict.get(row.fields, "id")) for row in rows]
    for name in identifier_names([one for one in columns if one != "id"], "doc"):
        others = [identifier(dict.get(row.fields, name)) for row in rows]
        if all(others) and others != ids and len(set(others)) == len(set(zip(ids, others, strict=True))):
            one_of("doc", ["id", name])
    return "id"


@reader(
    "vector-store", "what a vector store returned (Chroma, Qdrant, Pinecone)", when("points by id", _stored)
)
def read_points(contents: Contents, choices: Choices) -> Iterator[Item]:
    """Yield documents with their payload as metadata, and rankings, from a vector store's response.

    Each list of points with scores or distances is a ranking; numbers that rise in each list are taken for distances
    and negated. Queries are named as by `read_search_responses`.
    """
    stored, others = _stored(contents), Counter[str]()
    lists = [
        [TableRow(f"list {n}", _with_payload(one, others)) for one in of.points]
        for n, of in enumerate(stored, 1)
    ]
    rows = tuple(row for of in lists for row in of)
    columns = tuple(dict.fromkeys(name for row in rows for name in row.fields))
    whole = replace(contents, shape="rows", value=None, rows=rows, columns=columns)
    doc = contents.roles.get("doc") or _identifier_of_points(rows)
    text = "document" if "document" in columns and "text" not in contents.roles else text_column(whole, doc)
    with_text = tuple(row for row in rows if has_value(dict.get(row.fields, text)))
    if with_text:
        roles = {**contents.roles, "doc": doc, "text": text}
        yield from read_corpus(replace(whole, rows=with_text, roles=roles), choices)
    elif rows:
        yield FileRemark(
            f"no documents, as none of {', '.join(columns)} is a text; `columns='text=NAME'` names it"
        )
    records = list(each_record([row.fields for row in contents.rows] or contents.value))
    for one in records:
        one.take(*(name for name in ("ids", _MORE, *_LISTS_OF_CHROMA, *_POINTS) if name in one))
    if (pages := [dict.get(one, _MORE) for one in records if _MORE in one]) and all(map(has_value, pages)):
        yield FileRemark(f"{_MORE} stands in it: these are the first points of more")
    ranked = [n for n, of in enumerate(stored) if of.ranked]
    scores = [[_score_of(one) for one in of.points] for of in stored]
    numbers = [[one for one in scores[n] if one is not None] for n in ranked]
    rising = any(of[0] < of[-1] for of in numbers if of) and all(
        a <= b for of in numbers for a, b in pairwise(of)
    )
    if rising:
        yield FileRemark(
            "scores rise from the first point to the last, as distances do: kept as their negative"
        )
    keys, said = _queries(contents, [("", stored[n].query, [], {}) for n in ranked])
    yield from said if ranked else ()
    for key, n in zip(keys, ranked, strict=True):
        docs = [ItemKey(id_of(row.fields, doc)) for row in lists[n]]
        if ItemKey() in docs:
            yield Refused(f"list {n + 1}", f"a point without '{doc}'")
            continue
        own = [-one if rising and one is not None else one for one in scores[n]]
        yield ranking_item(key, docs, f"list {n + 1}", own)
    others.update(name for row in rows for name in row.fields.left())
    yield from (LeftOut(name, count) for name, count in others.items())


def _score_of(point: Cells) -> float | None:
    far = point.number("distance")
    return point.number("score") if far is None else -far


def _with_payload(point: Cells, others: Counter[str]) -> Cells:
    """Return a point's identifier, text and payload as one record, and count its other fields in `others`.

    A field NAME of both is payload.NAME for the payload's.
    """
    payload = next((one for name in _PAYLOADS if isinstance(one := point.get(name), Cells)), Cells())
    fields = Cells({name: point[name] for name in ("id", "document", "uri") if name in point})
    for name, value in payload.items():
        fields[f"payload.{name}" if name in fields else name] = value
    point.take("score", "distance")
    others.update(point.left())
    payload.take(*payload)
    point.take(*point)
    return fields
