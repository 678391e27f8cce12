"""Files of evaluators, traces and research tools, as weir data import reads them."""

from __future__ import annotations

import json

import pytest

from tests.unit.imports import RANKED, Q, R, imported, lines, written
from weir.plugins.importing.merge import made_id

OTLP = {
    "resourceSpans": [
        {
            "scopeSpans": [
                {
                    "spans": [
                        {
                            "spanId": "1",
                            "attributes": [
                                {"key": "gen_ai.operation.name", "value": {"stringValue": "retrieval"}},
                                {"key": "gen_ai.retrieval.query.text", "value": {"stringValue": "red shoes"}},
                                {
                                    "key": "gen_ai.retrieval.documents",
                                    "value": {
                                        "arrayValue": {
                                            "values": [
                                                {
                                                    "kvlistValue": {
                                                        "values": [
                                                            {"key": "id", "value": {"stringValue": d}},
                                                            {"key": "score", "value": {"doubleValue": s}},
                                                        ]
                                                    }
                                                }
                                                for d, s in (("a", 3.5), ("b", 1.5))
                                            ]
                                        }
                                    },
                                },
                            ],
                        },
                        {
                            "spanId": "2",
                            "attributes": [
                                {"key": "openinference.span.kind", "value": {"stringValue": "LLM"}}
                            ],
                        },
                    ]
                }
            ]
        }
    ]
}
SPAN = {
    "name": "R",
    "attributes": {
        "openinference.span.kind": "RETRIEVER",
        "input.value": "red shoes",
        "retrieval.documents.1.document.id": "b",
        "retrieval.documents.0.document.id": "a",
        "retrieval.documents.0.document.score": 0.5,
        "retrieval.documents.1.document.score": 0.5,
    },
}

CASES = {
    "ragas by identifier": (
        "ragas.jsonl",
        lines(
            {
                "user_input": "red shoes",
                "reference_context_ids": ["a"],
                "retrieved_context_ids": ["a", "b", "a"],
                "reference": "x",
            },
            {"user_input": "wool socks", "reference_context_ids": ["b"], "retrieved_context_ids": []},
        ),
        {},
        (
            {Q: "red shoes", R: "wool socks"},
            {Q: {"a": 1}, R: {"b": 1}},
            {"ragas": {Q: {"a": 3.0, "b": 2.0}, R: {}}},
        ),
    ),
    "ragas by text, its first names": (
        "ragas.jsonl",
        lines({"question": "red shoes", "contexts": ["t1", "t2"], "ground_truth": "x"}),
        {},
        (
            {Q: "red shoes"},
            {},
            {"ragas": {Q: {made_id("t1", "document"): 2.0, made_id("t2", "document"): 1.0}}},
        ),
    ),
    "deepeval": (
        "d.csv",
        "input,expected_output,context,retrieval_context\nred shoes,x,t1|t2,t1\n",
        {},
        (
            {Q: "red shoes"},
            {Q: {made_id(t, "document"): 1 for t in ("t1", "t2")}},
            {"d": {Q: {made_id("t1", "document"): 1.0}}},
        ),
    ),
    "deepeval trace": (
        "t.json",
        json.dumps(
            {
                "retrieverSpans": [
                    {
                        "input": "red shoes",
                        "output": [
                            {"id": "a", "score": 0.9, "text": "x"},
                            {"id": "b", "score": 0.1, "text": "y"},
                        ],
                    },
                    {"input": "no", "output": ["[object Object]"]},
                ]
            }
        ),
        {},
        ({Q: "red shoes"}, {}, {"t": {Q: {"a": 0.9, "b": 0.1}}}),
    ),
    "promptfoo": (
        "p.csv",
        'query,correct_chunks,__expected\nred shoes,"[""a"",""b""]",python:x\n',
        {},
        ({Q: "red shoes"}, {Q: {"a": 1, "b": 1}}, {}),
    ),
    "promptfoo in YAML": (
        "p.yaml",
        "prompts: [x]\ntests:\n- vars: {query: red shoes, relevant_ids: [a]}\n  assert: []\n",
        {},
        ({Q: "red shoes"}, {Q: {"a": 1}}, {}),
    ),
    "trulens": (
        "t.json",
        json.dumps(
            {
                "record_attributes": {
                    "ai.observability.span_type": "retrieval",
                    "ai.observability.retrieval.query_text": "red shoes",
                    "ai.observability.retrieval.retrieved_contexts": ["t1"],
                }
            }
        ),
        {},
        ({Q: "red shoes"}, {}, {"t": {Q: {made_id("t1", "document"): 1.0}}}),
    ),
    "llama-index pairs": (
        "l.json",
        json.dumps(
            {
                "queries": {"q1": "red shoes"},
                "corpus": {"a": "t"},
                "relevant_docs": {"q1": ["a"]},
                "mode": "text",
            }
        ),
        {},
        ({"q1": "red shoes"}, {"q1": {"a": 1}}, {}),
    ),
    "llama-index examples": (
        "l.json",
        json.dumps(
            {"examples": [{"query": "red shoes", "reference_contexts": ["t1"], "reference_answer": "x"}]}
        ),
        {},
        ({Q: "red shoes"}, {Q: {made_id("t1", "document"): 1}}, {}),
    ),
    "spans of GenAI": (
        "spans.json",
        json.dumps(OTLP),
        {},
        ({Q: "red shoes"}, {}, {"spans": {Q: {"a": 3.5, "b": 1.5}}}),
    ),
    "spans of OpenInference: ranks in the names, ties": (
        "spans.jsonl",
        lines(SPAN, {"name": "c", "attributes": {}}),
        {},
        ({Q: "red shoes"}, {}, {"spans": {Q: RANKED}}),
    ),
    "frame of Phoenix": (
        "p.csv",
        "context.span_id,document_position,input,reference,document_score\ns,1,red shoes,t2,0.2\ns,0,red shoes,t1,0.9\n",
        {},
        ({Q: "red shoes"}, {}, {"p": {Q: {made_id("t1", "document"): 0.9, made_id("t2", "document"): 0.2}}}),
    ),
    "nested run": (
        "bm25.json",
        json.dumps({"q1": {"b": 1.5, "a": 2.5}}),
        {},
        ({}, {}, {"bm25": {"q1": {"a": 2.5, "b": 1.5}}}),
    ),
    "nested qrels by name": ("qrels.json", json.dumps({"q1": {"a": 1}}), {}, ({}, {"q1": {"a": 1}}, {})),
    "nested, told": (
        "x.json",
        json.dumps({"q1": {"a": 1}}),
        {"as_kind": "nested-qrels"},
        ({}, {"q1": {"a": 1}}, {}),
    ),
    "MTEB predictions": (
        "p.json",
        json.dumps(
            {"mteb_model_meta": {"model_name": "o/m"}, "default": {"test": {"q1": {"b": 1.0, "a": 2.0}}}}
        ),
        {},
        ({}, {}, {"o__m": {"q1": RANKED}}),
    ),
    "MTEB predictions of two subsets": (
        "p.json",
        json.dumps(
            {
                "mteb_model_meta": {"model_name": "m"},
                "de": {"test": {"q1": {"a": 2.0}}},
                "en": {"test": {"q1": {"a": 1.0}}},
            }
        ),
        {},
        ({}, {}, {"m.de.test": {"q1": {"a": 2.0}}, "m.en.test": {"q1": {"a": 1.0}}}),
    ),
    "TREC run behind a header": (
        "run.txt",
        "# ir_metadata.start\n# tag: x \nq1 Q0 a 9 2.5 t\nq1 Q0 b 1 1.5 t\n",
        {},
        ({}, {}, {"run": {"q1": {"a": 2.5, "b": 1.5}}}),
    ),
    "TREC qrels with tabs": (
        "q.tsv",
        "1\tQ0\t12#4\t1\n1\tQ0\t12#5\t0\n",
        {},
        ({}, {"1": {"12#4": 1, "12#5": 0}}, {}),
    ),
    "ColBERT": (
        "c.tsv",
        "1\ta\t1\t9.5\n1\tb\t2\t8.5\n1\tc\t3\t8.0\n",
        {},
        ({}, {}, {"c": {"1": {"a": 9.5, "b": 8.5, "c": 8.0}}}),
    ),
    "ranks from 0 with gaps": (
        "r.tsv",
        "1\tb\t4\n1\ta\t0\n",
        {"as_kind": "run-ranks"},
        ({}, {}, {"r": {"1": RANKED}}),
    ),
    "three columns as grades": ("r.tsv", "1\ta\t2\n", {"as_kind": "qrels"}, ({}, {"1": {"a": 2}}, {})),
    "three columns as scores": (
        "r.tsv",
        "1\ta\t2.5\n",
        {"as_kind": "run-scores"},
        ({}, {}, {"r": {"1": {"a": 2.5}}}),
    ),
    "topics in tags": (
        "t.sgml",
        "<top>\n<num> Number: 7\n<title> Topic: red shoes\n<desc> Description:\nmore\n</top>\n",
        {},
        ({"7": "red shoes"}, {}, {}),
    ),
    "topics in XML": (
        "t.xml",
        '<topics>\n<topic number="1">\n<query>red &amp; shoes</query></topic></topics>',
        {},
        ({"1": "red & shoes"}, {}, {}),
    ),
    "topics by name": ("topics.dl.tsv", "1\tred shoes\n", {}, ({"1": "red shoes"}, {}, {})),
    "LETOR": (
        "l.txt",
        "# qid:1: red shoes*1\n\n3\tqid:1\t1:0.5 # 77 red\n0 qid:1 # docno=78\n",
        {},
        ({"1": "red shoes"}, {"1": {"77": 3, "78": 0}}, {}),
    ),
    "hub judgments without grades": (
        "q.jsonl",
        lines({"query-id": "q1", "corpus-id": "a"}),
        {},
        ({}, {"q1": {"a": 1}}, {}),
    ),
    "a table called qrels": ("qrels.tsv", "qid\tpid\tscore\nq1\ta\t1\n", {}, ({}, {"q1": {"a": 1}}, {})),
    "ESCI": (
        "e.csv",
        "query,query_id,product_id,product_locale,esci_label,split\nred shoes,1,a,us,E,test\nred shoes,1,b,us,I,test\n",
        {},
        ({"1": "red shoes"}, {"1": {"a": 3, "b": 0}}, {}),
    ),
    "queries with metadata": (
        "queries.jsonl",
        lines({"_id": "q1", "text": "red shoes", "metadata": {"a": 1}}),
        {},
        ({"q1": "red shoes"}, {}, {}),
    ),
    "objects one after the other": (
        "queries.json",
        '{"_id": "q1",\n"text": "red shoes"}\n{"_id": "q2",\n"text": "wool socks"}\n',
        {},
        ({"q1": "red shoes", "q2": "wool socks"}, {}, {}),
    ),
    "requests to a re-ranker": (
        "r.jsonl",
        lines(
            {
                "query": {"qid": "q1", "text": "red shoes"},
                "candidates": [
                    {"docid": "a", "score": 2.5, "doc": {"contents": "x"}},
                    {"docid": "b", "score": 1.5, "doc": {"contents": "y"}},
                ],
            }
        ),
        {},
        ({"q1": "red shoes"}, {}, {"r": {"q1": {"a": 2.5, "b": 1.5}}}),
    ),
    "what was returned": (
        "r.json",
        json.dumps({"items": [{"query": "red shoes", "top_files": ["a", "b"]}]}),
        {},
        ({Q: "red shoes"}, {}, {"r": {Q: RANKED}}),
    ),
    "UTF-16, as spreadsheets save it": (
        "j.csv",
        "query,doc_id,grade\nred shoes,a,2\n".encode("utf-16"),
        {},
        ({Q: "red shoes"}, {Q: {"a": 2}}, {}),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_formats(tmp_path, case):
    name, content, options, expected = CASES[case]
    report = imported(tmp_path, name, content, **options)
    assert written(tmp_path / "out") == expected
    assert not report.refused
