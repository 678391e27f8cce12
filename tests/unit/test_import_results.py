"""Results of retrieval tools and search engines are imported as rankings; scores never become grades."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import weir
from weir.cli.main import main
from weir.errors import BadValue, RankingWarning, WeirError
from weir.files.runs import read_run
from weir.plugins.importing import import_files

DPR = [
    {"question": "flood", "answers": ["a"], "ctxs": [
        {"id": "d2", "title": "t", "text": "x", "score": "82.1", "has_answer": False},
        {"id": "d1", "title": "t", "text": "a", "score": "81.0", "has_answer": True}]},
    {"question": "x", "answers": ["b"], "ctxs": [{"id": "d3", "title": "t", "text": "b", "score": "80"}]},
]  # fmt: skip
PYSERINI = {str(n): {**row, "contexts": [{**one, "docid": one["id"]} for one in row["ctxs"]]}
            for n, row in enumerate(DPR, 1)}  # fmt: skip
for row in PYSERINI.values():
    del row["ctxs"]
    for one in row["contexts"]:
        del one["id"]
ATLAS = [{"id": str(n), **row} for n, row in enumerate(DPR, 1)]
RANKGPT = [
    {"query": "flood", "hits": [{"content": "x", "qid": 1, "docid": "d2", "rank": 1, "score": 82.1},
                                {"content": "y", "qid": 1, "docid": "d1", "rank": 2, "score": 81}]},
    {"query": "x", "hits": [{"content": "z", "qid": 2, "docid": "d3", "rank": 1, "score": 80}]},
]  # fmt: skip
PATAPSCO = [
    {"query": {"id": "1", "lang": "eng", "text": "Flood"}, "doc_lang": "eng", "system": "P", "results": [
        {"doc_id": "d1", "rank": 1, "score": 81.0}, {"doc_id": "d2", "rank": 0, "score": 82.1}]},
    {"query": {"id": "2", "text": "X"}, "system": "P", "results": [{"doc_id": "d3", "rank": 0, "score": 80}]},
]  # fmt: skip
FLAG = {"model_name": "bge", "search_results": {"1": {"d2": 82.1, "d1": 81.0}, "2": {"d3": 80}}}
HITS = [{"_index": "i", "_id": "d2", "_score": 82.1}, {"_index": "i", "_id": "d1", "_score": 81.0}]
RUN = {"1": {"d2": 82.1, "d1": 81.0}, "2": {"d3": 80.0}}


def imported(folder: Path, value: object, name: str = "r.json") -> dict[str, dict[str, float]]:
    """The one run of a file that holds a value, imported without any option; it holds no judgments."""
    path = folder / name
    lines = isinstance(value, list) and name.endswith("jsonl")
    path.write_text("\n".join(map(json.dumps, value)) if lines else json.dumps(value))
    report = weir.import_files(path, folder / "out")
    assert not report.refused
    assert report.whole["judgments"] == {}
    return read_run(folder / "out" / "runs" / "r.trec").to_dict()


@pytest.mark.parametrize(
    "value",
    [PYSERINI, ATLAS, RANKGPT, PATAPSCO, FLAG],
    ids=["pyserini", "atlas", "rankgpt", "patapsco", "flag"],
)
def test_results_of_tools_are_rankings(tmp_path, value):
    assert imported(tmp_path, value) == RUN
    if isinstance(value, list):
        assert imported(tmp_path, value, "r.jsonl") == RUN


def test_a_query_without_identifier_is_known_by_its_text(tmp_path):
    run = imported(tmp_path, DPR)
    assert list(run.values()) == list(RUN.values())
    queries = [json.loads(line) for line in (tmp_path / "out" / "queries.jsonl").read_text().splitlines()]
    assert [(one["text"], one["metadata"]) for one in queries] == [
        ("flood", {"answers": ["a"]}),
        ("x", {"answers": ["b"]}),
    ]
    documents = [json.loads(line) for line in (tmp_path / "out" / "corpus.jsonl").read_text().splitlines()]
    kept = [one.get("metadata", {}) for one in documents]
    assert kept == [{"has_answer": False}, {"has_answer": True}, {}]


def test_responses_of_engines_are_rankings_of_queries_that_they_do_not_name(tmp_path):
    response = {"took": 1, "hits": {"total": {"value": 2}, "hits": HITS}}
    assert imported(tmp_path, response) == {"r": RUN["1"]}
    several = {"responses": [response, {"hits": {"hits": [{"_index": "i", "_id": "d3", "_score": 80}]}}]}
    assert imported(tmp_path, several) == RUN
    unscored = {"hits": {"hits": [{**hit, "_score": None} for hit in HITS]}}
    assert imported(tmp_path, unscored) == {"r": {"d2": 2.0, "d1": 1.0}}
    children = [{"id": f"id:n:doc::{d}", "relevance": s, "fields": {}} for d, s in RUN["1"].items()]
    vespa = {"root": {"id": "toplevel", "relevance": 1.0, "children": children}}
    assert imported(tmp_path, vespa) == {"r": RUN["1"]}
    mixed = {"root": {"children": [*children, {"id": "index:other/0", "relevance": 1, "fields": {}}]}}
    assert list(imported(tmp_path, mixed)["r"]) == ["id:n:doc::d2", "id:n:doc::d1", "index:other/0"]


def test_responses_are_of_the_queries_that_whoever_kept_them_names(tmp_path):
    answers = [{"hits": {"hits": HITS}}, {"hits": {"hits": [{"_index": "i", "_id": "d3", "_score": 80}]}}]
    named = [{"qid": str(n), **one} for n, one in enumerate(answers, 1)]
    assert imported(tmp_path, named, "r.jsonl") == RUN
    assert imported(tmp_path, {one["qid"]: one for one in named}) == RUN
    children = [{"id": f"id:n:doc::{d}", "relevance": s, "fields": {}} for d, s in RUN["1"].items()]
    assert imported(tmp_path, {"7": {"root": {"children": children}}}) == {"7": RUN["1"]}
    texts = [{"query": text, **one} for text, one in zip(("flood", "x"), answers, strict=True)]
    found = imported(tmp_path, texts, "r.jsonl")
    queries = map(json.loads, (tmp_path / "out" / "queries.jsonl").read_text().splitlines())
    assert [(one["text"], found[one["_id"]]) for one in queries] == [("flood", RUN["1"]), ("x", RUN["2"])]
    assert (
        imported(tmp_path, [named[0], named[0] | answers[1]], "r.jsonl") == RUN
    )  # one name twice: by number


def test_scores_of_retrieval_never_become_grades(tmp_path, capsys):
    path = tmp_path / "atlas.json"
    path.write_text(json.dumps(ATLAS))
    with pytest.raises(BadValue, match=r"columns='retrieved=NAME'"):
        weir.import_files(path, tmp_path / "out", {"relevant": "ctxs"})
    odd = tmp_path / "odd.json"
    odd.write_text(json.dumps([{"question": "flood", "found": [{"id": "d2", "score": 0.5}]}]))
    main(["data", "import", str(odd), "-o", str(tmp_path / "odd")])
    assert "--columns relevant" not in "".join(capsys.readouterr())


def test_two_columns_are_relevant_documents_and_say_so(tmp_path):
    run = tmp_path / "r.txt"
    run.write_text("q1 Q0 d1 1 2 t\n")
    for name, text in (
        ("q.txt", "q1 d1\nq2 d 2\n"),
        ("q.tsv", "q1\td1\nq2\td2\n"),
        ("q.qrels", "q1 d1\nq2 d2\n"),
    ):
        path = tmp_path / name
        path.write_text(text)
        if name == "q.txt":
            with pytest.raises(WeirError, match=r"line 2: .*2 columns as before"):
                weir.evaluate(path, run, ["RR"])
            continue
        with pytest.warns(RankingWarning, match="no grades: each document counts as relevant, grade 1"):
            assert weir.evaluate(path, run, ["RR"])["RR"].mean == 0.5


@pytest.mark.parametrize("which", ["run", "judgments"])
def test_standard_input_is_a_file(tmp_path, monkeypatch, capsys, which):
    import io
    import sys

    from weir.files import text_files

    qrels, run = tmp_path / "q.txt", tmp_path / "r.txt"
    qrels.write_text("q1 0 d1 1\n")
    run.write_text("q1 Q0 d1 1 2 t\n")
    text_files._stream_bytes.cache_clear()
    monkeypatch.setattr(
        sys, "stdin", io.TextIOWrapper(io.BytesIO((run if which == "run" else qrels).read_bytes()))
    )
    arguments = [str(qrels), "-"] if which == "run" else ["-", str(run)]
    assert main(["eval", *arguments, "-m", "RR"]) == 0
    assert "1.0000" in capsys.readouterr().out
    text_files._stream_bytes.cache_clear()


@pytest.mark.parametrize(
    "fault",
    [
        {"timed_out": True, "hits": {"hits": HITS}},
        {"_shards": {"total": 2, "failed": 1}, "hits": {"hits": HITS}},
        {"error": {"type": "x", "reason": "no such index"}, "status": 404},
    ],
    ids=["timed out", "shards", "error"],
)
def test_a_response_that_lacks_hits_is_refused(tmp_path, fault):
    (tmp_path / "r.json").write_text(json.dumps({"responses": [{"hits": {"hits": HITS}}, fault]}))
    with pytest.raises(BadValue, match=r"response 2: .*(missing|no such index)"):
        weir.import_files(tmp_path / "r.json", tmp_path / "out")


def test_groups_of_vespa_are_no_documents_and_its_errors_refuse_a_ranking(tmp_path):
    hit = {"id": "id:a:b::d1", "relevance": 2.5, "fields": {}}
    group = {"id": "group:root:0", "relevance": 9.0, "children": [{"id": "grouplist:x", "relevance": 1.0}]}
    root = {"id": "toplevel", "relevance": 1.0, "children": [group, hit]}
    assert imported(tmp_path, {"root": root}) == {"r": {"d1": 2.5}}
    half = {"coverage": {"coverage": 50, "full": False, "degraded": {"timeout": True}}}
    for faulty in ({"errors": [{"code": 12, "message": "Timeout"}]}, half):
        (tmp_path / "e.json").write_text(json.dumps({"root": root | faulty}))
        with pytest.raises(WeirError, match=r"Vespa (reports errors|did not search all)"):
            weir.import_files(tmp_path / "e.json", tmp_path / "out2")


def test_two_identifiers_beside_a_returned_document_are_asked_about(tmp_path):
    hits = [{"doc_id": "D", "passage_id": f"D#{n}", "score": 3 - n} for n in (1, 2)]
    path = tmp_path / "r.json"
    path.write_text(json.dumps([{"query": "red", "results": hits}]))
    with pytest.raises(BadValue, match="doc_id and passage_id could each be the doc"):
        weir.import_files(path, tmp_path / "out")
    weir.import_files(path, tmp_path / "out", columns={"doc": "passage_id"})
    (row,) = read_run(tmp_path / "out" / "runs" / "r.trec").to_dict().values()
    assert row == {"D#1": 2.0, "D#2": 1.0}


@pytest.mark.parametrize("distances", [[0.1, 0.5], [0.9, 0.5]])
def test_distances_in_a_list_are_held_against_its_order(tmp_path, distances):
    hits = [{"id": f"d{n}", "distance": one} for n, one in enumerate(distances)]
    (tmp_path / "r.json").write_text(json.dumps([{"query": "red", "results": hits}]))
    report = weir.import_files(tmp_path / "r.json", tmp_path / "out")
    (row,) = read_run(tmp_path / "out" / "runs" / "r.trec").to_dict().values()
    assert list(row) == ["d0", "d1"]
    assert ("scores rise from rank to rank" in " ".join(report.lines())) == (distances == [0.9, 0.5])


def test_what_a_document_named_twice_says_otherwise_is_told(tmp_path):
    rows = [
        {
            "question": question,
            "ctxs": [{"id": "d1", "text": "a b", "lang": "en", "has_answer": has, "score": 1.5}],
        }
        for question, has in (("red", True), ("blue", False))
    ]
    (tmp_path / "r.json").write_text(json.dumps(rows))
    report = weir.import_files(tmp_path / "r.json", tmp_path / "out")
    assert "not imported: has_answer (1)" in " ".join(report.lines())
    (line,) = (tmp_path / "out" / "corpus.jsonl").read_text().splitlines()
    assert json.loads(line)["metadata"] == {"lang": "en", "has_answer": True}


def test_what_a_second_file_says_otherwise_of_a_query_is_told(tmp_path):
    for name, kind in (("a", "x"), ("b", "y")):
        (tmp_path / f"{name}.jsonl").write_text(
            json.dumps({"id": "1", "query": "red", "kind": kind, "relevant_ids": [name]}) + "\n"
        )
    report = weir.import_files([tmp_path / "a.jsonl", tmp_path / "b.jsonl"], tmp_path / "out")
    assert [one["left_out"] for one in report.files] == [{}, {"kind": 1}]


def test_grades_in_words_are_no_relevance_in_lists(tmp_path):
    path = tmp_path / "q.json"
    path.write_text(
        json.dumps({"red": [{"id": "a", "grade": "irrelevant"}, {"id": "b", "grade": 2, "score": 9.5}]})
    )
    weir.import_files(path, tmp_path / "out", as_kind="list-qrels")
    assert weir.load(tmp_path / "out").qrels.to_dict() == {"red": {"a": 0, "b": 2}}


def test_answers_in_lists_are_kept(tmp_path):
    row = {"question": "red", "ground_truths": ["a", "b c"], "relevant_ids": ["d1"]}
    (tmp_path / "g.jsonl").write_text(json.dumps(row) + "\n")
    weir.import_files(tmp_path / "g.jsonl", tmp_path / "out")
    (line,) = (tmp_path / "out" / "queries.jsonl").read_text().splitlines()
    assert json.loads(line)["metadata"] == {"answer": ["a", "b c"]}


def test_rows_without_grade_and_rank_are_told(tmp_path):
    table = "query,doc_id,rank,rating\nred,a,1,2\nred,b,,\n"
    (tmp_path / "g.csv").write_text(table)
    report = weir.import_files(tmp_path / "g.csv", tmp_path / "out")
    assert "not imported: rows without a grade and a rank (1)" in " ".join(report.lines())


@pytest.mark.parametrize(
    ("engine", "answer"),
    [
        (
            "Solr",
            {
                "responseHeader": {"status": 0},
                "response": {"numFound": 1, "docs": [{"id": "d1", "score": 1.2}]},
            },
        ),
        ("Milvus", {"code": 0, "cost": 0, "data": [{"distance": 0.9, "id": 1}]}),
        ("Weaviate", {"data": {"Get": {"Article": [{"_additional": {"id": "d1", "distance": 0.1}}]}}}),
        ("Azure AI Search", {"@odata.context": "x", "value": [{"@search.score": 1.9, "HotelId": "d1"}]}),
        ("Typesense", {"found": 1, "hits": [{"document": {"id": "d1"}}], "request_params": {"q": "a"}}),
    ],
)
@pytest.mark.parametrize("kept", ["alone", "lines", "by query"])
def test_answers_that_name_neither_queries_nor_documents_are_refused_by_their_engine(
    engine, answer, kept, tmp_path
):
    path = tmp_path / ("a.jsonl" if kept == "lines" else "a.json")
    whole = {"q1": answer, "q2": answer} if kept == "by query" else answer
    path.write_text((json.dumps(whole) + "\n") * (1 + (kept == "lines")))
    with pytest.raises(BadValue, match=f"an answer of {engine}, .*query_id, doc_id and score"):
        import_files(path, tmp_path / "out")
