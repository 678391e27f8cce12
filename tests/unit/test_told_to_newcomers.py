"""What a user of BEIR or MTEB is told: of unanswered queries, empty texts, other splits and lone results."""

import json

import pytest

import weir
from weir.api.results_folder import results_beside
from weir.cli.main import main
from weir.errors import BadValue
from weir.experiment.mteb_files import mteb_scores

QRELS = {f"q{n:03}": {"a": 1} for n in range(60)}


def system(answered, place):
    return {q: {f"d{k}": 9.0 - k for k in range(place)} | {"a": 1.0} for q in list(QRELS)[:answered]}


@pytest.mark.parametrize(("answered", "said"), [(40, True), (60, False)])
def test_a_verdict_says_how_many_queries_a_system_answered_if_that_may_explain_it(answered, said):
    runs = {"full": system(60, 1), "part": system(answered, 1)}
    assert ("; part answered 40 of 60 queries" in str(weir.compare(QRELS, runs, ["RR"]))) == said


def test_queries_that_both_systems_left_unanswered_explain_nothing():
    assert "; part answered" not in str(
        weir.compare(QRELS, {"a": system(40, 1), "part": system(40, 2)}, ["RR"])
    )


def test_few_unanswered_queries_beside_a_large_difference_are_left_to_the_notes():
    text = str(weir.compare(QRELS, {"full": system(60, 0), "part": system(58, 4)}, ["RR"]))
    assert "worse" in text
    assert "; part answered" not in text


def test_collections_say_how_many_documents_and_queries_have_no_text():
    documents = {f"d{n}": {"title": "", "text": "a b" if n > 2 else " " * n} for n in range(9)} | {
        "t": {"title": "c"}
    }
    queries = {f"q{n}": "b" * (n > 0) for n in range(7)}
    judged = {q: {"d5": 1} for q in queries}
    notes = str(weir.benchmark({"mine": (documents, queries, judged)}, ["bm25"], ["RR"]))
    assert "mine: 3 of 10 documents have no text" in notes
    assert "mine: 1 of 7 queries has no text" in notes
    assert "no text" not in str(weir.benchmark("brook-news", ["bm25"], ["RR"]))


def test_a_triple_of_frames_or_lists_is_a_collection():
    documents = [{"_id": f"d{n}", "text": f"a{n}"} for n in range(7)]
    queries = [{"_id": f"q{n}", "text": f"a{n}"} for n in range(7)]
    judged = {f"q{n}": {f"d{n}": 1} for n in range(7)}
    plain = (
        {one["_id"]: one["text"] for one in documents},
        {one["_id"]: one["text"] for one in queries},
        judged,
    )
    expected = weir.benchmark({"mine": plain}, ["bm25"], ["RR"]).to_dict()
    assert weir.benchmark({"mine": (documents, queries, judged)}, ["bm25"], ["RR"]).to_dict() == expected
    pandas = pytest.importorskip("pandas", reason="frames of pandas take pandas")
    framed = (pandas.DataFrame(documents), pandas.DataFrame(queries), judged)
    assert weir.benchmark({"mine": framed}, ["bm25"], ["RR"]).to_dict() == expected


def test_a_run_of_another_split_is_told_which_one(tmp_path, capsys):
    data = tmp_path / "mine"
    (data / "qrels").mkdir(parents=True)
    (data / "corpus.jsonl").write_text('{"_id": "d", "text": "a"}\n')
    (data / "queries.jsonl").write_text('{"_id": "q1", "text": "a"}\n{"_id": "q2", "text": "a"}\n')
    for split, query in (("test", "q1"), ("train", "q2")):
        (data / "qrels" / f"{split}.tsv").write_text(f"query-id\tcorpus-id\tscore\n{query}\td\t1\n")
    (tmp_path / "run.trec").write_text("q1 Q0 d 1 2.5 x\n")
    assert main(["eval", f"{data}:train", str(tmp_path / "run.trec")]) == 2
    assert "; 1 of them are judged in the split test: mine:test" in capsys.readouterr().err
    assert main(["eval", str(data), str(tmp_path / "run.trec")]) == 0
    for run in (str(tmp_path / "run.trec"), {"q1": {"d": 2.5}}):
        with pytest.raises(BadValue, match="; 1 of them are judged in the split test: mine:test"):
            weir.evaluate(f"{data}:train", run, ["RR"])


def test_a_result_of_mteb_alone_is_named_after_its_file(tmp_path):
    result = {"task_name": "SciFact", "scores": {"test": [{"hf_subset": "default", "ndcg_at_10": 0.5}]}}
    for name, model in (("a-model.SciFact.v1.json", "a-model"), ("SciFact.json", tmp_path.name)):
        (tmp_path / name).write_text(json.dumps(result))
        assert {one.model for one in mteb_scores(tmp_path / name)} == {model}


def test_a_result_of_mteb_without_a_shared_measure_is_said(tmp_path):
    weir.benchmark("brook-news", ["bm25"], ["RR"], out=tmp_path / "r")
    result = {"task_name": "X", "scores": {"test": [{"hf_subset": "default", "p-MRR": 0.5}]}}
    (tmp_path / "x.json").write_text(json.dumps(result))
    with pytest.raises(BadValue, match=r"x.json: found no mean of nDCG@k"):
        results_beside(tmp_path / "r", tmp_path / "x.json")
