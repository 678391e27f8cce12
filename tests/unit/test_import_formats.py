"""Golden sets, tables and search engines' own files, as weir data import reads them; and what it refuses by name."""

from __future__ import annotations

import json
import warnings

import pytest

from tests.unit.imports import RANKED, Q, R, imported, lines, written
from weir.core.rounding import counted
from weir.errors import BadValue, WeirError
from weir.plugins.importing import Choices, import_files
from weir.plugins.importing.contents import read_contents
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


TOOLS = {
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

CASES = TOOLS | {
    "golden list": (
        "g.jsonl",
        lines(
            {"id": "q1", "question": "red shoes", "expected_sources": ["a", "b"], "category": "x"},
            {"id": "q2", "question": "wool socks", "expected_sources": []},
        ),
        {},
        ({"q1": "red shoes", "q2": "wool socks"}, {"q1": {"a": 1, "b": 1}}, {}),
    ),
    "golden with comments, one document, no identifier": (
        "g.jsonl",
        "# a comment\n" + lines({"query": "red shoes", "expected_doc_id": "a"}),
        {},
        ({Q: "red shoes"}, {Q: {"a": 1}}, {}),
    ),
    "golden with grades by document": (
        "g.json",
        json.dumps(
            {
                "queries": [
                    {"qid": "q1", "query": "red shoes", "relevant_ids": ["a", "b"], "grade": {"a": 2, "b": 0}}
                ]
            }
        ),
        {},
        ({"q1": "red shoes"}, {"q1": {"a": 2, "b": 0}}, {}),
    ),
    "golden with objects": (
        "g.json",
        json.dumps(
            [
                {"query": "red shoes", "relevance": [{"doc_id": "a", "gain": 3}]},
                {"query": "wool socks", "relevance": {"b": 1}},
            ]
        ),
        {},
        ({Q: "red shoes", R: "wool socks"}, {Q: {"a": 3}, R: {"b": 1}}, {}),
    ),
    "golden with texts beside identifiers": (
        "g.json",
        json.dumps(
            [{"query": "red shoes", "relevant": [{"id": "a", "text": "shoe"}, {"id": "b", "score": 2}]}]
        ),
        {},
        ({Q: "red shoes"}, {Q: {"a": 1, "b": 2}}, {}),
    ),
    "rankings as lists": (
        "run.json",
        json.dumps({"q1": ["a", "b"], "q2": []}),
        {},
        ({}, {}, {"run": {"q1": {"a": 2.0, "b": 1.0}, "q2": {}}}),
    ),
    "rankings as pairs": (
        "x.json",
        json.dumps({"q1": [["b", 0.5], ["a", 2.5]]}),
        {},
        ({}, {}, {"x": {"q1": {"b": 2.0, "a": 1.0}}}),
    ),
    "rankings as objects": (
        "x.json",
        json.dumps({"q1": [{"id": "a", "score": 2.5}, {"docno": "b", "score": 1}]}),
        {},
        ({}, {}, {"x": {"q1": {"a": 2.5, "b": 1.0}}}),
    ),
    "relevant documents as lists": (
        "qrels.json",
        json.dumps({"q1": ["a", {"doc_id": "b", "grade": 2}]}),
        {},
        ({}, {"q1": {"a": 1, "b": 2}}, {}),
    ),
    "one ranking of objects": (
        "x.jsonl",
        lines({"qid": "q1", "results": [{"docid": "a", "score": 2.5}, {"docid": "b", "score": 0.5}]}),
        {},
        ({}, {}, {"x": {"q1": {"a": 2.5, "b": 0.5}}}),
    ),
    "golden by identifier": (
        "g.json",
        json.dumps(
            {
                "q1": {"query": "red shoes", "relevant": ["a"]},
                "q2": {"query": "wool socks", "relevant": ["b"]},
            }
        ),
        {},
        ({"q1": "red shoes", "q2": "wool socks"}, {"q1": {"a": 1}, "q2": {"b": 1}}, {}),
    ),
    "golden in YAML: no is an identifier": (
        "g.yaml",
        "cases:\n- id: no\n  query: red shoes\n  expected: {relevant_messages: [1.10]}\n- id: 007\n  query: wool socks\n  expected: {relevant_messages: []}\n",
        {},
        ({"no": "red shoes", "007": "wool socks"}, {"no": {"1.10": 1}}, {}),
    ),
    "golden as CSV with Python's lists": (
        "g.csv",
        "question,relevant_ids\nred shoes,\"['a', 'b']\"\n",
        {},
        ({Q: "red shoes"}, {Q: {"a": 1, "b": 1}}, {}),
    ),
    "columns by name": (
        "j.csv",
        "q,url,ctr,shop\nred shoes,a,2,x\nred shoes,b,0,x\n",
        {"columns": {"query": "q", "doc": "url", "grade": "ctr"}},
        ({Q: "red shoes"}, {Q: {"a": 2, "b": 0}}, {}),
    ),
    "columns by number, semicolons": (
        "j.csv",
        "q1;red shoes;a;2\n",
        {"columns": {"query_id": "1", "query": "2", "doc": "3", "grade": "4"}},
        ({"q1": "red shoes"}, {"q1": {"a": 2}}, {}),
    ),
    "judgments whose texts are identifiers": (
        "j.csv",
        "query,docid,rating\nshoes,a,3.0\nsocks,b,0.0\nboots,,\n",
        {},
        ({"shoes": "shoes", "socks": "socks", "boots": "boots"}, {"shoes": {"a": 3}, "socks": {"b": 0}}, {}),
    ),
    "rated ranking": (
        "detailed.csv",
        "Query Text,Doc ID,Doc Position,Rating\nred shoes,b,2,0.0\nred shoes,a,1,3.0\n",
        {},
        ({Q: "red shoes"}, {Q: {"a": 3, "b": 0}}, {"detailed": {Q: RANKED}}),
    ),
    "a frame of PyTerrier": (
        "frame.csv",
        ",qid,docid,docno,rank,score,query\n0,1,17,b,1,1.5,red shoes\n1,1,18,a,0,2.5,red shoes\n",
        {},
        ({"1": "red shoes"}, {}, {"frame": {"1": {"a": 2.5, "b": 1.5}}}),
    ),
    "rank-eval request": (
        "r.json",
        json.dumps(
            {
                "requests": [
                    {
                        "id": "q1",
                        "request": {"query": {"multi_match": {"query": "red shoes", "fields": ["t"]}}},
                        "ratings": [{"_index": "i", "_id": "a", "rating": 2}],
                    }
                ],
                "metric": {},
            }
        ),
        {},
        ({"q1": "red shoes"}, {"q1": {"a": 2}}, {}),
    ),
    "rank-eval template, two indexes": (
        "r.json",
        json.dumps(
            {
                "requests": [
                    {
                        "id": "q1",
                        "template_id": "t",
                        "params": {"query_string": "red shoes", "field": "t"},
                        "ratings": [
                            {"_index": "i", "_id": "a", "rating": 1},
                            {"_index": "j", "_id": "a", "rating": 0},
                        ],
                    }
                ]
            }
        ),
        {},
        ({"q1": "red shoes"}, {"q1": {"i/a": 1, "j/a": 0}}, {}),
    ),
    "rank-eval response: null is unjudged, order is rank": (
        "resp.json",
        json.dumps(
            {
                "metric_score": 0.5,
                "failures": {"q2": {"error": {"reason": "no"}}},
                "details": {
                    "q1": {
                        "hits": [
                            {"hit": {"_id": "a", "_score": 0.4}, "rating": None},
                            {"hit": {"_id": "b", "_score": 0.4}, "rating": 1},
                        ]
                    }
                },
            }
        ),
        {},
        ({}, {"q1": {"b": 1}}, {"resp": {"q1": RANKED}}),
    ),
    "workbench judgments": (
        "w.json",
        json.dumps(
            {
                "judgmentRatings": [
                    {
                        "query": "red shoes",
                        "ratings": [{"docId": "a", "rating": "3.000"}, {"docId": "b", "rating": "0.000"}],
                    }
                ]
            }
        ),
        {},
        ({Q: "red shoes"}, {Q: {"a": 3, "b": 0}}, {}),
    ),
    "workbench queries": (
        "w.ndjson",
        lines({"queryText": "red shoes", "referenceAnswer": "yes"}),
        {},
        ({Q: "red shoes"}, {}, {}),
    ),
    "workbench results": (
        "w.json",
        json.dumps(
            {
                "hits": {
                    "hits": [
                        {
                            "_source": {
                                "searchText": "red shoes",
                                "searchConfigurationId": "cfg",
                                "documentIds": ["a", "b"],
                            }
                        }
                    ]
                }
            }
        ),
        {},
        ({Q: "red shoes"}, {}, {"cfg": {Q: RANKED}}),
    ),
    "quepid case": (
        "c.json",
        json.dumps(
            {
                "case_name": "c",
                "queries": [
                    {
                        "query_text": "red shoes",
                        "information_need": "n",
                        "ratings": [{"doc_id": "a", "rating": 2.0}],
                    }
                ],
            }
        ),
        {},
        ({Q: "red shoes"}, {Q: {"a": 2}}, {}),
    ),
    "quepid ratings": (
        "c.json",
        json.dumps({"queries": [{"query": "red shoes", "ratings": {"a": 3.0}}]}),
        {},
        ({Q: "red shoes"}, {Q: {"a": 3}}, {}),
    ),
    "quepid book, the higher judge": (
        "b.json",
        json.dumps(
            {
                "query_doc_pairs": [
                    {
                        "query_text": "red shoes",
                        "doc_id": "a",
                        "judgements": [
                            {"rating": 1.0},
                            {"rating": 3.0},
                            {"rating": None, "unrateable": True},
                        ],
                    }
                ]
            }
        ),
        {"choices": Choices(judges="max")},
        ({Q: "red shoes"}, {Q: {"a": 3}}, {}),
    ),
    "quepid book as CSV": (
        "b.csv",
        "query,docid,Ann,Bob\nred shoes,a,2.0,2.0\nred shoes,b,,1.0\n",
        {},
        ({Q: "red shoes"}, {Q: {"a": 2, "b": 1}}, {}),
    ),
    "quepid snapshot": (
        "s.json",
        json.dumps(
            {
                "name": "snap",
                "docs": {"7": [{"id": "a"}, {"id": "b"}, {"id": "c", "rated_only": True}]},
                "queries": [{"query_id": 7, "query_text": "red shoes"}],
                "scores": [],
            }
        ),
        {},
        ({"7": "red shoes"}, {}, {"snap": {"7": RANKED}}),
    ),
    "quepid needs": ("n.csv", "query,information_need\nred shoes,to run\n", {}, ({Q: "red shoes"}, {}, {})),
    "RRE, a group of two queries": (
        "rre.json",
        json.dumps(
            {
                "topics": [
                    {
                        "description": "t",
                        "query_groups": [
                            {
                                "name": "g",
                                "queries": [
                                    {"placeholders": {"$query": "red shoes"}},
                                    {"placeholders": {"$query": "wool socks"}},
                                ],
                                "relevant_documents": {"a": {"gain": 3}},
                            }
                        ],
                    }
                ]
            }
        ),
        {},
        ({Q: "red shoes", R: "wool socks"}, {Q: {"a": 3}, R: {"a": 3}}, {}),
    ),
    "RRE by gain": (
        "rre.json",
        json.dumps(
            {
                "queries": [
                    {"placeholders": {"$query": "red shoes"}, "relevant_documents": {"2": ["a"], "1": ["b"]}}
                ]
            }
        ),
        {},
        ({Q: "red shoes"}, {Q: {"a": 2, "b": 1}}, {}),
    ),
}


@pytest.mark.filterwarnings("ignore:.*that begins? with #")
@pytest.mark.parametrize("case", CASES)
def test_formats(tmp_path, case):
    name, content, options, expected = CASES[case]
    report = imported(tmp_path, name, content, **options)
    assert written(tmp_path / "out") == expected
    assert not report.refused


@pytest.mark.parametrize(
    ("name", "text", "options", "rows", "remarks"),
    [
        ("p.tsv", "#1 hits\td7\nwool\td3\n", {"columns": {"query": "1", "doc": "2"}}, 2, 0),
        ("p.csv", "#1 hits,d7\n", {"columns": {"query": "1", "doc": "2"}}, 1, 0),
        ("g.csv", "# made by x\nquery,doc,grade\n#1 hits,d1,1\n", {}, 1, 1),
        ("g.csv", "#,query,doc,grade\n1,#1 hits,d1,1\n", {}, 1, 0),
        ("g.jsonl", '# a\n{"query": "a b", "relevant_id": "d1"}\n# c\n', {}, 1, 2),
    ],
)
def test_rows_may_begin_with_a_number_sign_and_remarks_are_counted(
    tmp_path, name, text, options, rows, remarks
):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        imported(tmp_path, name, text, **options)
    assert len(written(tmp_path / "out")[1]) == rows
    told = [f"not read: {counted(remarks, 'line that begins', 'lines that begin')} with #"] * bool(remarks)
    assert [str(one.message).partition(": ")[2] for one in said] == told


@pytest.mark.parametrize("distances", [[0.9, 0.1], [0.1, 0.9]])
def test_less_of_a_distance_is_better_in_lists_as_in_rows(tmp_path, distances):
    rows = [{"query": "red shoes", "retrieved_ids": ["d1", "d2"], "distances": distances}]
    table = [
        {"query": "red shoes", "doc": doc, "distance": far}
        for doc, far in zip(["d1", "d2"], distances, strict=True)
    ]
    rising = distances[0] < distances[1]
    for name, content, best in (("lists", rows, "d1"), ("rows", table, "d1" if rising else "d2")):
        report = imported(tmp_path, f"{name}.jsonl", lines(*content))
        assert "is a distance, of which less is better" in str(report)
        [run] = written(tmp_path / "out")[2].values()
        assert [max(ranking, key=ranking.get) for ranking in run.values()] == [best]
        if name == "lists" and not rising:  # a list has an order of its own
            assert "the order of the file is kept, as scores that fall by 1 (" in str(report)


REFUSED = {
    "ubi-events": ("ubi.jsonl", lines({"action_name": "click", "query_id": "1", "user_query": "x"}, {"action_name": "click", "query_id": "2"}), r"need impressions and clicks; this log has 2 click; without impressions"),
    "measures": ("m.txt", "nDCG@10\t0.49\nAP\t0.2\n", "values of measures"),
    "measures of trec_eval": ("e.txt", "runid    \tall\tx\nmap      \tall\t0.5\nP_10\tq1\t0.5\n", "values of measures"),
    "measures by query": ("m.csv", "name,qid,measure,value\nb,1,map,0.1\n", "values of measures"),
    "MTEB results": ("r.json", json.dumps({"task_name": "x", "mteb_version": "2", "scores": {}}), "MTEB: the predictions"),
    "lz4": ("r.lz4", b"\x04\x22\x4d\x18xx", "found lz4 data"),
    "xlsx": ("r.xlsx", b"PK\x03\x04xx", "an Excel workbook; expected each sheet saved as CSV"),
    "sizes": ("g.query", "12\n19\n", "sizes of groups"),
    "lightgbm": ("g.test", "2 1:0.7 6:0.8 7:1 8:2\n", "write qid:QUERY"),
    "nuggets": ("n.jsonl", lines({"qid": "1", "query": "x", "nuggets": []}), "nuggets"),
    "schema": ("s.json", json.dumps({"$schema": "x"}), "a JSON schema"),
    "facts": ("f.jsonl", lines({"question": "x", "documents": ["a"], "facts": []}), "`columns={'relevant': 'documents'}`"),
    "a score or a grade": ("r.csv", "query_id,doc_id,score\n1,a,1\n", "add `as_kind={'r.csv': 'qrels'}` or `as_kind={'r.csv': 'run'}`"),
    "rank, grade or score": ("r.tsv", "1\ta\t0\n1\tb\t1\n1\tc\t2\n", "rises within each query .* add `as_kind='run-ranks'`, `as_kind='qrels'` or `as_kind='run-scores'`"),
    "grades or scores": ("x.json", json.dumps({"q": {"a": 1}}), "add `as_kind='nested-qrels'` or `as_kind='nested-run'`"),
    "lists of either": ("x.json", json.dumps({"q1": ["a"]}), "add `as_kind='list-qrels'` or `as_kind='list-run'`"),
    "relevant or returned": ("r.jsonl", lines({"query": "x y", "documents": ["a"]}), "add `columns='relevant=documents'`, `columns='retrieved=documents'`"),
    "two columns of documents": ("r.jsonl", lines({"query": "x y", "gold_ids": ["a"], "expected_sources": ["b"]}), "expected_sources and gold_ids could each be the doc; choose one, as in `columns={'doc': 'expected_sources'}`"),
    "queries or documents": ("x.jsonl", lines({"_id": "1", "text": "x"}), "add `as_kind='queries'` or `as_kind='corpus'`"),
    "queries or documents in columns": ("x.tsv", "1\tred shoes\n", "add `as_kind='queries'` or `as_kind='corpus'`"),
    "columns without names": ("x.csv", "VESPA_1,red shoes,/a,2\n", "4 columns without usual names; say which is which, by these names if they are names, as in `columns='query=NAME,doc=NAME,grade=NAME'`, else by number, as in `columns='query=1,doc=2,grade=3'` .query_id=1 for identifiers of queries."),
    "nobody's": ("x.json", json.dumps({"a": 1, "b": 2}), "no known format has the fields a, b;"),
    "a template": ("x.jsonl", lines({"query": "x y", "expected_ids": []}), "'expected_ids' is empty for every query, as in a template"),
    "a grade beyond all scales": ("x.csv", "query,doc_id,grade\nred shoes,a,99999.5\n", "the grade 99999.5 is beyond ±16384; say `choices={'grades': 'scale=N'}`"),
    "columns of different lengths": ("x.json", json.dumps({"query_id": ["q", "q"], "doc_id": ["a"]}), "columns of different lengths .2 in query_id, 1 in doc_id."),
    "excluded alone": ("exclude.txt", "1 a\n", "give the file of queries too"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refused_by_name(tmp_path, case):
    name, content, said = REFUSED[case]
    with pytest.raises(WeirError, match=said):
        imported(tmp_path, name, content)
    assert not (tmp_path / "out").exists()


NAMED = {
    "candidates": ("x.jsonl", lines({"query-id": "1", "corpus-ids": ["a", "b"]}), {"candidates": ["a", "b"]}),
    "exclude": ("x.tsv", "1\ta\n", {"excluded": ["a"]}),
    "instructions": (
        "x.jsonl",
        lines({"query-id": "1", "instruction": "none", "n": 2}),
        {"instruction": "none"},
    ),
}


@pytest.mark.parametrize("kind", NAMED)
def test_a_kind_that_the_user_names_is_read_whatever_the_file_is_called(kind, tmp_path):
    name, content, metadata = NAMED[kind]
    files = [tmp_path / name, tmp_path / "queries.jsonl"]
    for path, text in zip(files, (content, lines({"_id": "1", "text": "red shoes"})), strict=True):
        path.write_text(text)
    import_files(files, tmp_path / "out", as_kind={name: kind})
    assert json.loads((tmp_path / "out" / "queries.jsonl").read_text())["metadata"] == metadata


def test_json_is_imported_in_linear_time_and_where_memory_holds_its_values(tmp_path, monkeypatch):
    """The rest of the file is not copied for each of the objects that follow each other, which would take minutes."""
    objects = " ".join(f'{{"query": "q{n // 10}", "doc": "d{n}", "score": {n}}}' for n in range(60_000))
    path = tmp_path / "golden.json"
    path.write_text(objects)
    assert len(read_contents(path, {}).rows) == 60_000
    monkeypatch.setenv("WEIR_MAX_RAM", "10M")
    with pytest.raises(
        BadValue, match=r"reading .*golden\.json whole needs about 0\.1 GB .* cut it into parts"
    ):
        read_contents(path, {})


@pytest.mark.parametrize(
    ("ranking", "ending"),
    [({"q1": {"a": 2.5}}, "trec"), ({"q1": {"a": 2.5}, "q2": {}}, "json"), ({"q1": {"a b": 2.5}}, "json")],
)
def test_a_run_that_lines_of_trec_cannot_hold_is_said_to_be_json(tmp_path, ranking, ending):
    (tmp_path / "mine.json").write_text(json.dumps(ranking))
    report = import_files([tmp_path / "mine.json"], tmp_path / "out", as_kind="nested-run")
    assert (tmp_path / "out" / "runs" / f"mine.{ending}").is_file()
    assert any("runs/mine.json: as JSON" in line for line in report.lines()) == (ending == "json")


@pytest.mark.parametrize("rank", ["0.9", "-1", "0.5", "2.25"])
@pytest.mark.parametrize("kind", [{"as_kind": "run-ranks"}, {}])
def test_no_score_passes_as_a_rank(tmp_path, rank, kind):
    """Ranks decide the order, the lowest first: scores in their place would turn a ranking round."""
    path = tmp_path / ("r.tsv" if kind else "r.csv")
    head = [] if kind else [("query", "doc", "rank")]
    rows = [*head, ("q1", "a", "1"), ("q1", "b", rank)]
    path.write_text("".join(("\t" if kind else ",").join(row) + "\n" for row in rows))
    with pytest.raises(BadValue, match=r"the rank .*expected whole numbers from 0"):
        import_files([path], tmp_path / "out", **kind)
    assert not (tmp_path / "out").exists()


def test_scores_beside_candidates_are_told(tmp_path):
    docs = [{"docid": "d2", "score": 10.2}, {"docid": "d3", "score": 9}, "d4"]
    (tmp_path / "c.json").write_text(json.dumps([{"query": "flood", "candidates": docs}]))
    report = import_files([tmp_path / "c.json"], tmp_path / "out")
    [left] = [
        count for name, count in report.files[0]["left_out"].items() if name.startswith("scores, grades")
    ]
    assert left == 2
