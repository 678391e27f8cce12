"""Numbers by query and document: ranx's JSON, MTEB's predictions; and requests to re-rankers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from weir.errors import BadValue
from weir.plugins.importing.contents import Contents
from weir.plugins.importing.formats.engines import members
from weir.plugins.importing.found import (
    Document,
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


def _is_nested(value: object) -> bool:
    """Whether it is {query: {document: number}}."""
    return (
        isinstance(value, dict)
        and bool(value)
        and all(
            isinstance(row, dict) and all(isinstance(v, (int, float)) for v in row.values())
            for row in value.values()
        )
        and any(value.values())
    )


def _nested(contents: Contents) -> str:
    return "{query: {document: number}}" if _is_nested(contents.value) else ""


def _is_run(contents: Contents) -> bool:
    """Whether nested numbers are scores; raises BadValue where whole numbers leave it open."""
    if contents.says("qrels", "qrel"):
        return False
    if any(
        isinstance(v, float) and not v.is_integer() for row in contents.value.values() for v in row.values()
    ):
        return True
    raise BadValue(
        f"{contents.path}: whole numbers by query and document, which may be grades or scores; "
        "say which with --as nested-qrels or --as nested-run"
    )


@reader("nested", "{query: {document: number}} as ranx and pytrec_eval hold it", _nested, general=True)
def read_nested(contents: Contents, asked: ReadRequest) -> Iterator[Item]:
    """Judgments where the file's name says so, else a run where a number is a fraction; else asked."""
    yield from (read_nested_run if _is_run(contents) else read_nested_qrels)(contents, asked)


def _only_by_name(_: Contents) -> str:
    return ""


@reader("nested-run", "a run as {query: {document: score}}", _only_by_name)
def read_nested_run(contents: Contents, _: ReadRequest) -> Iterator[Item]:
    """Rankings by score."""
    yield from _rankings(_checked(contents), "")


@reader("nested-qrels", "judgments as {query: {document: grade}}", _only_by_name)
def read_nested_qrels(contents: Contents, _: ReadRequest) -> Iterator[Item]:
    """Judgments."""
    for query, row in _checked(contents).items():
        for doc, grade in row.items():
            yield Judgment(ItemKey(query), ItemKey(doc), grade, f"query {query}")


def _checked(contents: Contents) -> Mapping[str, Mapping[str, float]]:
    if not _is_nested(contents.value):
        raise BadValue(
            f"{contents.path}: found no object of objects; expected {{query: {{document: number}}}}"
        )
    nested: Mapping[str, Mapping[str, float]] = contents.value
    return nested


def _rankings(nested: Mapping[str, Mapping[str, float]], run: str) -> Iterator[Item]:
    for query, row in nested.items():
        odd = [doc for doc, score in row.items() if number(score) is None]
        for doc in odd:
            yield Refused(f"query {query}", f"the score of document '{doc}' is no finite number")
        kept = {doc: float(score) for doc, score in row.items() if doc not in odd}
        docs = tuple(ItemKey(doc) for doc in kept)
        yield Ranking(ItemKey(query), docs, f"query {query}", tuple(kept.values()), run, ordered=False)


def _predictions(contents: Contents) -> str:
    return (
        "mteb_model_meta" if isinstance(contents.value, dict) and "mteb_model_meta" in contents.value else ""
    )


@reader("mteb-predictions", "predictions of MTEB", _predictions)
def read_predictions(contents: Contents, _: ReadRequest) -> Iterator[Item]:
    """A run for each subset and split, by score: the file is not sorted."""
    model = contents.value["mteb_model_meta"]
    name = plain(model.get("model_name")).replace("/", "__") if isinstance(model, dict) else ""
    parts = _parts({k: v for k, v in contents.value.items() if k != "mteb_model_meta"})
    if len(parts) > 1:
        yield FileRemark("a run for each subset and split: " + ", ".join(path for path, _ in parts))
    for path, nested in parts:
        alone = len(parts) == 1
        yield from _rankings(nested, (name or contents.stem) + ("" if alone else f".{path}"))


def _parts(value: Mapping[str, Any], path: str = "") -> list[tuple[str, Mapping[str, Mapping[str, float]]]]:
    if _is_nested(value):
        return [(path, value)]
    inner = [(f"{path}.{name}".strip("."), one) for name, one in value.items() if isinstance(one, dict)]
    return [part for name, one in inner for part in _parts(one, name)]


def _requests(contents: Contents) -> str:
    first = contents.rows[0].fields if contents.rows else {}
    known = isinstance(first.get("query"), dict) and bool(members(first, "candidates"))
    return "query and candidates" if known else ""


@reader("rerank-requests", "requests to Anserini's re-rankers", _requests)
def read_requests(contents: Contents, _: ReadRequest) -> Iterator[Item]:
    """Queries, documents, and the first stage's run."""
    for row in contents.rows:
        query = row.fields.get("query")
        key = (
            ItemKey(plain(query.get("qid")), plain(query.get("text")))
            if isinstance(query, dict)
            else ItemKey()
        )
        if not key.id and not key.text:
            yield Refused(row.where, "no query")
            continue
        yield FoundQuery(key, row.where)
        found = members(row.fields, "candidates")
        docs = tuple(ItemKey(plain(one.get("docid")), _text(one.get("doc"))) for one in found)
        yield from (Document(doc, row.where) for doc in docs if doc.text)
        scores = tuple(score for one in found if (score := number(one.get("score"))) is not None)
        yield Ranking(key, docs, row.where, scores if len(scores) == len(docs) else ())


def _text(document: object) -> str:
    if not isinstance(document, dict):
        return plain(document)
    return next(
        (plain(document[name]) for name in ("contents", "text", "segment") if plain(document.get(name))), ""
    )
