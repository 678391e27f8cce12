"""Readers of evaluators of answers: ragas, DeepEval, TruLens, LlamaIndex."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from weir.plugins.importing.cells import has_value, listed, plain_text, spelled
from weir.plugins.importing.contents import Contents, TableRow
from weir.plugins.importing.items import (
    Choices,
    Document,
    FileRemark,
    FoundQuery,
    Item,
    ItemKey,
    Judgment,
    LeftOut,
    Refused,
    Used,
    id_key,
    members_at,
    nothing_answers,
    number_of,
    objects,
    query_items,
    read_whole,
    table_at,
    text_key,
    text_of,
    value_at,
)
from weir.plugins.importing.readers import any_of, reader, when

_ANSWERS = ("reference", "ground_truth", "ground_truths", "expected_answer", "expected_output", "answer")
_BY_ID = ("reference_context_ids", "retrieved_context_ids")
_BY_TEXT = ("reference_contexts", "retrieved_contexts")
_REFERENCES = (_BY_ID[0], _BY_TEXT[0])
_PATH = "ai.observability."


def _answer(text: str) -> dict[str, str]:
    return {"answer": text} if text else {}


def _used(rows: Sequence[TableRow], names: tuple[str, str]) -> Iterator[Used]:
    for role, name in zip(("relevant", "retrieved"), names, strict=True):
        if any(name in row.fields for row in rows):
            yield Used(role, name)


def _context_keys(value: object, mark: str = "") -> list[ItemKey]:
    """Return the keys, by text, of a list of contexts or of a cell's texts; [] without a value.

    mark: separator of texts in a cell; "" for none.

    Raises ValueError for other values, and for a member that is no text.
    """
    contexts = listed(value)
    if contexts is None and isinstance(value, str):
        return [ItemKey(text=one.strip()) for one in (value.split(mark) if mark else [value]) if one.strip()]
    if contexts is None and has_value(value):
        raise ValueError(f"{type(value).__name__} as contexts; expected a list of texts")
    if any(not (isinstance(one, str) and one.strip()) for one in contexts or []):
        raise ValueError("a member of a list of contexts is no text")
    return [ItemKey(text=one.strip()) for one in contexts or []]


def _samples(contents: Contents) -> list[TableRow]:
    if contents.shape == "rows" or {"user_input", "question"} & set(contents.columns):
        return list(contents.rows)
    value = table_at(contents.value)
    names = [name for name, members in value.items() if isinstance(members, list)]
    inputs = [(name, one.get("metric_input")) for name in names for one in objects(value, name)]
    return [
        TableRow.of(f"{name} {n}", one) for n, (name, one) in enumerate(inputs, 1) if isinstance(one, dict)
    ]


def _ragas(contents: Contents) -> str:
    columns = {name for row in _samples(contents) for name in row.fields}
    if "user_input" in columns:
        return "user_input"
    first_names = {"question", "contexts"} <= columns and columns & {
        "ground_truth",
        "ground_truths",
        "answer",
    }
    return "question and contexts, its first names" if first_names else ""


@reader("ragas", "a dataset of ragas", _ragas)
def read_ragas(contents: Contents, _: Choices) -> Iterator[Item]:
    """Yield queries with answers, judgments and a run of a ragas dataset.

    Documents go by identifier if any row gives some, else by text.
    """
    rows = _samples(contents)
    by_id = any(name in row.fields for row in rows for name in _BY_ID)
    yield from _used(rows, _BY_ID if by_id else _BY_TEXT)
    named = _some_named(rows, _REFERENCES)
    for row in rows:
        yield from read_whole(row, partial(_sample_by_id if by_id else _sample_by_text, named))


def _some_named(rows: Iterable[TableRow], names: Sequence[str]) -> bool:
    # Lists that are empty in every row were never filled, and say of no query that nothing answers it.
    return any(has_value(dict.get(row.fields, name)) for row in rows for name in names)


def _question(row: TableRow) -> tuple[ItemKey, str, dict[str, str]]:
    name = "user_input" if "user_input" in row.fields else "question"
    missing = "a conversation instead of a question" if row.fields.get(name) else "no user_input"
    return text_key(row.fields, name), missing, _answer(text_of(row.fields, *_ANSWERS))


def _listed_ids(row: TableRow, name: str) -> list[Any] | None:
    value = row.fields.get(name)
    if (found := listed(value)) is None and has_value(value):
        raise ValueError(f"'{plain_text(value)[:40]}' as {name}; expected a list of identifiers")
    return found


def _sample_by_id(named: bool, row: TableRow) -> Iterator[Item]:
    key, missing, answer = _question(row)
    relevant, returned = (_listed_ids(row, name) for name in _BY_ID)
    grades = [(id_key(doc), 1) for doc in relevant or []]
    docs = None if returned is None else [id_key(doc) for doc in returned]
    metadata = {**row.fields.rest((*_BY_TEXT, *answer)), **answer}
    yield from query_items(
        key, row.where, missing, metadata, grades, docs, unanswerable=named and _nothing_answers(row)
    )


def _sample_by_text(named: bool, row: TableRow) -> Iterator[Item]:
    key, missing, answer = _question(row)
    relevant = _context_keys(row.fields.get("reference_contexts"))
    returned = _context_keys(
        row.fields.get("retrieved_contexts" if "retrieved_contexts" in row.fields else "contexts")
    )
    grades, metadata = [(doc, 1) for doc in relevant], {**row.fields.rest(answer), **answer}
    unanswerable = named and _nothing_answers(row)
    yield from query_items(
        key, row.where, missing, metadata, grades, returned or None, unanswerable=unanswerable
    )


def _nothing_answers(row: TableRow) -> bool:
    return nothing_answers(row.fields, *(dict.get(row.fields, name) for name in _REFERENCES))


def _retriever_spans(contents: Contents) -> list[dict[str, Any]]:
    cases = objects(contents.value, "testCases")
    parts = [contents.value, *cases, *(case.get("trace") for case in cases)]
    return [span for part in parts for span in objects(part, "retrieverSpans")]


def _test_cases(contents: Contents) -> list[dict[str, Any]]:
    if _retriever_spans(contents):
        return []  # a trace has them in order, with scores
    cases = objects(contents.value, "testCases")
    given = (has_value(dict.get(case, name)) for case in cases for name in ("context", "retrievalContext"))
    return cases if any(given) else []


@reader(
    "deepeval-goldens",
    "goldens of DeepEval",
    any_of(
        when(
            "input with expected_output or a context",
            lambda contents: (
                "input" in contents.columns
                and {"expected_output", "retrieval_context", "context"} & set(contents.columns)
            ),
        ),
        when("testCases with context or retrievalContext", _test_cases),
    ),
)
def read_goldens(contents: Contents, choices: Choices) -> Iterator[Item]:
    """Yield queries with answers from goldens and test runs of DeepEval: `context` is relevant, `retrieval_context` a
    ranking."""
    cases, mark = _test_cases(contents), choices.between or "|"
    rows = [TableRow.of(f"test case {n}", case) for n, case in enumerate(cases, 1)] or contents.rows
    names = ("context", "retrievalContext" if cases else "retrieval_context")
    yield from _used(rows, names)
    named = _some_named(rows, names[:1])
    for row in rows:
        yield from read_whole(row, partial(_one_golden, mark, named, names))
    cells = (dict.get(row.fields, name) for row in rows for name in names)
    texts = (one.strip() for one in cells if isinstance(one, str))
    if alone := sum(bool(one) and one[0] != "[" and mark not in one for one in texts):
        yield FileRemark(
            f"cells of one text, without '{mark}' between several (`choices={{'between': ';'}}` names another mark): "
            f"{alone:,}"
        )


def _one_golden(mark: str, named: bool, names: tuple[str, str], row: TableRow) -> Iterator[Item]:
    relevant, returned = (_context_keys(row.fields.get(name), mark) for name in names)
    answer = _answer(text_of(row.fields, "expected_output", "expectedOutput"))
    key = text_key(row.fields, "input")
    grades, metadata = [(doc, 1) for doc in relevant], {**row.fields.rest(answer), **answer}
    unanswerable = named and nothing_answers(row.fields, dict.get(row.fields, "context"))
    yield from query_items(
        key, row.where, "no input", metadata, grades, returned or None, unanswerable=unanswerable
    )


@reader(
    "deepeval-trace",
    "a trace or test run of DeepEval",
    when("retrieverSpans", _retriever_spans),
)
def read_deepeval_traces(contents: Contents, _: Choices) -> Iterator[Item]:
    """Yield a ranking from each retriever span of DeepEval; a Refused for a span whose output has no documents."""
    for n, span in enumerate(_retriever_spans(contents), 1):
        where, key, docs = f"retriever span {n}", text_key(span, "input"), []
        output = span["output"] if isinstance(span.get("output"), list) else []
        for one in output:
            if isinstance(one, dict):
                name = text_of(one, "id", "doc_id", "document_id")
                docs.append(ItemKey(name, text_of(one, "text" if "text" in one else "content")))
            else:
                docs.append(
                    ItemKey() if plain_text(one) == "[object Object]" else ItemKey(text=plain_text(one))
                )
        if key.text and (not docs or ItemKey() in docs):
            yield Refused(where, "its output holds no documents")
            continue
        scores = [number_of(one, "score") for one in output if isinstance(one, dict)]
        yield from query_items(key, where, "no input text", docs=docs, scores=scores)


def _events(contents: Contents) -> list[tuple[str, dict[str, Any]]]:
    events = []
    for row in contents.rows:
        attributes = row.fields.get("record_attributes")
        with suppress(ValueError):
            attributes = spelled(attributes) if isinstance(attributes, str) else attributes
        if isinstance(attributes, dict):
            events.append((row.where, attributes))
    return events


@reader(
    "trulens",
    "events of TruLens",
    when(
        "record_attributes of ai.observability",
        lambda contents: any(_PATH in str(name) for _, event in _events(contents) for name in event),
    ),
)
def read_trulens(contents: Contents, _: Choices) -> Iterator[Item]:
    """Yield a ranking from each retrieval event of TruLens, documents by their text; other events are counted."""
    others = 0
    for where, event in _events(contents):
        key = text_key(event, f"{_PATH}retrieval.query_text")
        if event.get(f"{_PATH}span_type") != "retrieval" or not key.text:
            others += 1
            continue
        try:
            contexts = _context_keys(event.get(f"{_PATH}retrieval.retrieved_contexts"))
        except ValueError as error:
            yield Refused(where, str(error))
            continue
        yield from query_items(key, where, "no query", docs=contexts or None)
    if others:
        yield LeftOut("events that are no retrieval", others)


@reader(
    "llama-index-pairs",
    "LlamaIndex's EmbeddingQAFinetuneDataset",
    when(
        "queries, corpus and relevant_docs by identifier",
        lambda contents: all(
            isinstance(value_at(contents.value, part), dict)
            for part in ("queries", "corpus", "relevant_docs")
        ),
    ),
)
def read_pairs(contents: Contents, _: Choices) -> Iterator[Item]:
    """Yield documents, queries, and judgments of grade 1 from LlamaIndex's EmbeddingQAFinetuneDataset."""
    for name, text in members_at(contents.value, "corpus"):
        if isinstance(text, str):
            yield Document(ItemKey(name, text.strip()), f"corpus {name}")
        else:
            yield Refused(f"corpus {name}", "no text")
    relevant = dict(members_at(contents.value, "relevant_docs"))
    named = any(map(has_value, relevant.values()))
    for name, text in members_at(contents.value, "queries"):
        if isinstance(text, str):
            unanswerable = named and nothing_answers({}, relevant.get(name))
            yield FoundQuery(ItemKey(name, text.strip()), f"query {name}", unanswerable=unanswerable)
        else:
            yield Refused(f"query {name}", "no text")
    for name, docs in relevant.items():
        if not isinstance(docs, list):
            yield Refused(f"query {name}", "no list in relevant_docs")
            continue
        for doc in docs:
            yield Judgment(ItemKey(name), id_key(doc), 1, f"query {name}")


def _examples(contents: Contents) -> list[dict[str, Any]]:
    examples = objects(contents.value, "examples")
    return [one for one in examples if "reference_contexts" in one and "query" in one]


@reader(
    "llama-index-rag",
    "LlamaIndex's LabelledRagDataset",
    when("examples with reference_contexts", _examples),
)
def read_rag_dataset(contents: Contents, _: Choices) -> Iterator[Item]:
    """Yield queries with answers from LlamaIndex's LabelledRagDataset; reference contexts are relevant."""
    rows = [TableRow.of(f"example {n}", one) for n, one in enumerate(_examples(contents), 1)]
    named = _some_named(rows, ("reference_contexts",))
    for row in rows:
        yield from read_whole(row, partial(_rag_example, named))


def _rag_example(named: bool, row: TableRow) -> Iterator[Item]:
    answer = _answer(text_of(row.fields, "reference_answer"))
    grades = [(doc, 1) for doc in _context_keys(row.fields["reference_contexts"])]
    unanswerable = named and nothing_answers(row.fields, dict.get(row.fields, "reference_contexts"))
    key = text_key(row.fields, "query")
    yield from query_items(key, row.where, "no query", answer, grades, unanswerable=unanswerable)
