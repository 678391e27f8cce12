"""Results of retrieval tools and search engines are imported as rankings; scores never become grades."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import weir
from weir.cli.main import main
from weir.errors import BadValue, RankingWarning, WeirError
from weir.files.runs import read_run

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
    notes = " ".join(json.loads((tmp_path / "out" / "import.json").read_text())["files"][0]["notes"])
    assert "has_answer" in notes


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
        with pytest.warns(RankingWarning, match="no grades: each of 2 documents counts as relevant, grade 1"):
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
