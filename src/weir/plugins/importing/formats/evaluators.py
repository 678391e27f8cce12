"""Evaluators of answers that hold retrieval too: ragas, DeepEval, promptfoo, TruLens, LlamaIndex."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping
from typing import Any

from weir.plugins.importing.contents import Contents, TableRow
from weir.plugins.importing.formats.engines import members
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


def listed(value: object) -> list[Any] | None:
    """A list, also one that a cell holds as JSON or as Python's repr; None for anything else."""
    if isinstance(value, list):
        return value
    if not isinstance(value, str) or not value.strip().startswith(("[", "(")):
        return None
    for parse in (json.loads, ast.literal_eval):
        try:
            parsed = parse(value)
        except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
            continue
        if isinstance(parsed, (list, tuple)):
            return list(parsed)
    return None


_ANSWERS = ("reference", "ground_truth", "ground_truths", "expected_answer", "expected_output", "answer")


def _answer(fields: Mapping[str, Any]) -> dict[str, str]:
    answer = next((plain(fields[name]) for name in _ANSWERS if plain(fields.get(name))), "")
    return {"answer": answer} if answer else {}


def _texts(value: object, mark: str = "") -> list[str]:
    """The texts of contexts; mark: what joins several in one cell."""
    contexts = listed(value)
    if contexts is None and isinstance(value, str) and value.strip():
        contexts = value.split(mark) if mark else [value]
    return [one.strip() for one in contexts or [] if isinstance(one, str) and one.strip()]


def _samples(contents: Contents) -> list[TableRow]:
    """The samples of ragas: rows, or the inputs of annotated metrics."""
    if contents.shape == "rows" or {"user_input", "question"} & set(contents.columns):
        return list(contents.rows)
    value = contents.value if isinstance(contents.value, dict) else {}
    inside = [(name, one.get("metric_input")) for name in value for one in members(value, name)]
    return [TableRow(f"{name} {n}", one) for n, (name, one) in enumerate(inside, 1) if isinstance(one, dict)]


_FIRST = {"question", "contexts"}
_IDS = ("reference_context_ids", "retrieved_context_ids")


def _ragas(contents: Contents) -> str:
    rows = _samples(contents)
    columns = {name for row in rows for name in row.fields}
    if "user_input" in columns:
        return "user_input"
    first = columns >= _FIRST and columns & {"ground_truth", "ground_truths", "answer"}
    return "question and contexts, its first names" if first else ""


@reader("ragas", "a dataset of ragas", _ragas)
def read_ragas(contents: Contents, _: ReadRequest) -> Iterator[Item]:
    """Queries with reference answers; judgments and a run by identifiers, else by the texts of contexts.

    A text without an identifier becomes a document whose identifier is made from it.
    """
    rows = _samples(contents)
    with_ids = any(name in row.fields for row in rows for name in _IDS)
    end = "_ids" if with_ids else "s"
    yield Used("relevant", "reference_context" + end)
    yield Used("retrieved", "retrieved_context" + end)
    for row in rows:
        fields = row.fields
        question = fields.get("user_input", fields.get("question"))
        key = ItemKey(text=plain(question))
        if not key.text:
            yield Refused(row.where, "a conversation instead of a question" if question else "no user_input")
            continue
        yield FoundQuery(key, row.where, _answer(fields))
        if with_ids:
            relevant, returned = (fields.get(name) for name in _IDS)
            for doc in listed(relevant) or []:
                yield Judgment(key, ItemKey(plain(doc)), 1, row.where)
            returned_ids = listed(returned)
            if returned_ids is not None:
                yield Ranking(key, tuple(ItemKey(plain(doc)) for doc in returned_ids), row.where)
        else:
            retrieved = fields.get("retrieved_contexts", fields.get("contexts"))
            yield from _by_text(key, row.where, _texts(fields.get("reference_contexts")), _texts(retrieved))


def _by_text(key: ItemKey, where: str, relevant: list[str], returned: list[str] | None) -> Iterator[Item]:
    for text in [*relevant, *(returned or [])]:
        yield Document(ItemKey(text=text), where)
    for text in relevant:
        yield Judgment(key, ItemKey(text=text), 1, where)
    if returned:
        yield Ranking(key, tuple(ItemKey(text=text) for text in returned), where)


def _goldens(contents: Contents) -> str:
    columns = set(contents.columns)
    known = "input" in columns and columns & {"expected_output", "retrieval_context", "context"}
    return "input with expected_output or a context" if known else ""


@reader("deepeval-goldens", "goldens of DeepEval", _goldens)
def read_goldens(contents: Contents, _: ReadRequest) -> Iterator[Item]:
    """Queries and answers; the texts of `context` are relevant, those of `retrieval_context` were returned."""
    yield Used("relevant", "context")
    yield Used("retrieved", "retrieval_context")
    for row in contents.rows:
        key = ItemKey(text=plain(row.fields.get("input")))
        if not key.text:
            yield Refused(row.where, "no input")
            continue
        yield FoundQuery(key, row.where, _answer({"expected_output": row.fields.get("expected_output")}))
        relevant, returned = (_texts(row.fields.get(name), "|") for name in ("context", "retrieval_context"))
        yield from _by_text(key, row.where, relevant, returned)


def _traces(contents: Contents) -> list[dict[str, Any]]:
    value = contents.value
    cases = members(value, "testCases")
    inside = [value, *cases, *(case["trace"] for case in cases if isinstance(case.get("trace"), dict))]
    return [span for one in inside for span in members(one, "retrieverSpans")]


@reader(
    "deepeval-trace",
    "a trace or test run of DeepEval",
    lambda contents: "retrieverSpans" if _traces(contents) else "",
)
def read_deepeval_traces(contents: Contents, _: ReadRequest) -> Iterator[Item]:
    """A ranking for each retriever span; a span whose output is no document is refused."""
    for n, span in enumerate(_traces(contents), 1):
        where, key = f"retriever span {n}", ItemKey(text=plain(span.get("input")))
        output = span.get("output")
        output = output if isinstance(output, list) else []
        docs = [_span_document(one) for one in output]
        if not key.text or not docs or not all(doc.id or doc.text for doc in docs):
            yield Refused(where, "its output holds no documents" if key.text else "no input text")
            continue
        yield FoundQuery(key, where)
        yield from (Document(doc, where) for doc in docs if doc.text)
        yield ranking(key, docs, where, [number(one.get("score")) for one in output if isinstance(one, dict)])


def _span_document(one: object) -> ItemKey:
    if isinstance(one, dict):
        named = next(
            (plain(one[name]) for name in ("id", "doc_id", "document_id") if plain(one.get(name))), ""
        )
        return ItemKey(named, plain(one.get("text", one.get("content"))))
    text = plain(one)
    return ItemKey(text="" if text == "[object Object]" else text)


_PATH = "ai.observability."


def _events(contents: Contents) -> list[tuple[str, dict[str, Any]]]:
    """The attributes of TruLens' events: in JSON, or in the cells of a table as Python's dictionaries."""
    events = []
    for row in contents.rows:
        held = row.fields.get("record_attributes")
        if isinstance(held, str):
            try:
                held = ast.literal_eval(held)
            except (ValueError, SyntaxError, RecursionError, MemoryError):
                held = None
        if isinstance(held, dict):
            events.append((row.where, held))
    return events


def _trulens(contents: Contents) -> str:
    events = _events(contents)
    return (
        "record_attributes of ai.observability"
        if any(_PATH in name for _, one in events for name in one)
        else ""
    )


@reader("trulens", "events of TruLens", _trulens)
def read_trulens(contents: Contents, _: ReadRequest) -> Iterator[Item]:
    """A ranking for each retrieval event; contexts are texts, whose identifiers are made from them."""
    others = 0
    for where, event in _events(contents):
        text = plain(event.get(f"{_PATH}retrieval.query_text"))
        contexts = _texts(event.get(f"{_PATH}retrieval.retrieved_contexts"))
        if event.get(f"{_PATH}span_type") != "retrieval" or not text:
            others += 1
            continue
        yield FoundQuery(ItemKey(text=text), where)
        yield from _by_text(ItemKey(text=text), where, [], contexts)
    if others:
        yield FileRemark(f"events that are no retrieval were passed over: {others}")


def _pairs(contents: Contents) -> str:
    value = contents.value
    parts = ("queries", "corpus", "relevant_docs")
    known = isinstance(value, dict) and all(isinstance(value.get(part), dict) for part in parts)
    return "queries, corpus and relevant_docs by identifier" if known else ""


@reader("llama-index-pairs", "LlamaIndex's EmbeddingQAFinetuneDataset", _pairs)
def read_pairs(contents: Contents, _: ReadRequest) -> Iterator[Item]:
    """Queries, documents, and judgments without grades."""
    value = contents.value
    for name, text in value["corpus"].items():
        yield Document(ItemKey(name, plain(text)), f"corpus {name}")
    for name, text in value["queries"].items():
        yield FoundQuery(ItemKey(name, plain(text)), f"query {name}")
    for name, docs in value["relevant_docs"].items():
        for doc in docs if isinstance(docs, list) else []:
            yield Judgment(ItemKey(name), ItemKey(plain(doc)), 1, f"query {name}")


def _labelled(contents: Contents) -> list[dict[str, Any]]:
    return [
        one for one in members(contents.value, "examples") if "reference_contexts" in one and "query" in one
    ]


@reader(
    "llama-index-rag",
    "LlamaIndex's LabelledRagDataset",
    lambda contents: "examples with reference_contexts" if _labelled(contents) else "",
)
def read_rag_dataset(contents: Contents, _: ReadRequest) -> Iterator[Item]:
    """Queries with reference answers, and judgments by the texts of reference contexts."""
    for n, one in enumerate(_labelled(contents), 1):
        where, key = f"example {n}", ItemKey(text=plain(one["query"]))
        if not key.text:
            yield Refused(where, "no query")
            continue
        answer = plain(one.get("reference_answer"))
        yield FoundQuery(key, where, {"answer": answer} if answer else {})
        yield from _by_text(key, where, _texts(one["reference_contexts"]), [])
