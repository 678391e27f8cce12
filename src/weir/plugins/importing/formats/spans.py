"""Traces: retrieval spans of OpenInference and of OpenTelemetry's GenAI convention."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from weir.plugins.importing.contents import Contents
from weir.plugins.importing.formats.engines import members
from weir.plugins.importing.found import (
    Document,
    FileRemark,
    FoundQuery,
    Item,
    ItemKey,
    Ranking,
    Refused,
    number,
    plain,
)
from weir.plugins.importing.readers import ReadRequest, reader

__all__: list[str] = []

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
    found: list[tuple[str, Attributes]] = []
    for export in exports:
        for resource in members(export, "resourceSpans"):
            for scope in members(resource, "scopeSpans"):
                for span in members(scope, "spans"):
                    found.append(
                        (f"span {plain(span.get('spanId'))}", _attributes(members(span, "attributes")))
                    )
    for row in contents.rows:
        held = row.fields.get("attributes")
        if isinstance(held, dict):
            found.append((row.where, held))
    return found


def _is_retrieval(attributes: Attributes) -> bool:
    return (
        attributes.get("openinference.span.kind") == "RETRIEVER"
        or attributes.get("gen_ai.operation.name") == "retrieval"
    )


def _traced(contents: Contents) -> str:
    found = sum(_is_retrieval(attributes) for _, attributes in _spans(contents))
    if found:
        return f"{found} retrieval spans"
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
        keys = tuple(ItemKey(_id(one), _text(one)) for one in docs)
        if not all(key.id or key.text for key in keys):
            yield Refused(where, "documents with neither identifier nor text")
            continue
        yield FoundQuery(ItemKey(text=text), where)
        yield from (Document(key, where) for key in keys if key.text)
        scores = [_score(one) for one in docs]
        known = tuple(score for score in scores if score is not None)
        yield Ranking(ItemKey(text=text), keys, where, known if len(known) == len(keys) else ())
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
    given = _json(attributes.get("gen_ai.retrieval.documents"))
    if isinstance(given, list):
        return [one if isinstance(one, dict) else {} for one in given]
    found: dict[int, dict[str, Any]] = {}
    for name, value in attributes.items():
        if flat := _FLAT.fullmatch(name):
            found.setdefault(int(flat[1]), {})[flat[2]] = value
    docs = [found[rank] for rank in sorted(found)]
    output = _json(attributes.get("output.value"))
    beside = members(output, "documents") if isinstance(output, dict) else []
    if len(beside) == len(docs):  # the LangChain instrumentor keeps identifiers there alone
        docs = [
            {**other, **{k: v for k, v in doc.items() if v is not None}}
            for doc, other in zip(docs, beside, strict=True)
        ]
    return docs


def _id(document: Attributes) -> str:
    return plain(document.get("id"))


def _text(document: Attributes) -> str:
    return plain(document.get("content", document.get("page_content")))


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
        scores = [number(row.get("document_score")) for row in rows]
        known = tuple(score for score in scores if score is not None)
        yield Ranking(key, docs, where, known if len(known) == len(docs) else ())
