"""A stored ranking as a system."""

from __future__ import annotations

import json
import warnings

import pytest

pytest.importorskip("numba", reason="needs the `run` extra (numba)")

import weir
from tests.unit.brooklet import QRELS, write_collection
from weir.cli.main import main
from weir.errors import BadRanking, BadValue, FormatError, RankingWarning
from weir.experiment.experiment import Experiment
from weir.experiment.plan import planned
from weir.experiment.results import finished_cells
from weir.systems import StoredRun

RANKINGS = {
    "q1": {"d4": 2.0, "d1": 1.0, "d2": 1.0},
    "q2": {"d3": 7.5},
    "q3": {"d5": 1.0},
    "d4": {"d4": 3, "d1": 2},
}


@pytest.fixture
def first(tmp_path):
    return weir_file(tmp_path / "first.trec", RANKINGS)


def weir_file(path, rankings):
    weir.Run.of(rankings).save(path)
    return path


def rows(results):
    return {(row.dataset, row.system, row.measure): row.mean for row in results}


def test_it_scores_as_the_file_does_and_its_key_is_its_content(tmp_path, first):
    folder = write_collection(tmp_path / "mine")
    name = f'run("{first.as_posix()}")'
    assert str(weir.parse_system(name)) == name
    found = rows(Experiment([folder], [name], ["nDCG@10", "AP"]).execute(tmp_path / "out"))
    plain = weir.evaluate(QRELS, first, ["nDCG@10", "AP"])
    assert [found["mine", name, m] for m in ("nDCG@10", "AP")] == list(plain.means().values())
    key = weir.parse_system(name).describe()
    copy = weir_file(tmp_path / "copy.json", RANKINGS)
    assert weir.parse_system(f'run("{copy.as_posix()}")').describe() != key  # other bytes
    weir_file(first, RANKINGS | {"q2": {"d3": 1.0}})
    assert weir.parse_system(name).describe() != key


@pytest.mark.filterwarnings("default:.*known by their texts")
def test_queries_may_go_by_their_texts_wherever_a_collection_is_known(tmp_path, first, capsys):
    """As in a table that was judged before it was imported; an identifier among them, or two equal texts, say no."""
    folder = write_collection(tmp_path / "mine")
    texts = weir.load(folder).queries.to_dict()
    named = {
        f" {texts[query]}" if query == "q2" else texts[query]: ranking
        for query, ranking in RANKINGS.items()
        if query in texts
    }
    by_text = weir_file(tmp_path / "by-text.json", named)
    expected = weir.evaluate(folder, first, ["nDCG@10", "AP"]).means()
    with pytest.warns(RankingWarning, match=f"{len(named)} of {len(named)} queries are known by their texts"):
        assert weir.evaluate(folder, by_text, ["nDCG@10", "AP"]).means() == expected
    for command in (
        ["eval", folder, by_text],
        ["compare", folder, first, by_text],
        ["why", folder, first, by_text],
    ):
        assert main(list(map(str, [*command, "-m", "nDCG@10"]))) == 0
        assert f"{expected['nDCG@10']:.4f}" in capsys.readouterr().out
    with pytest.warns(RankingWarning, match="known by their texts"):
        found = Experiment([folder], [f'run("{by_text.as_posix()}")'], ["nDCG@10"]).execute(tmp_path / "out")
    assert next(iter(rows(found).values())) == expected["nDCG@10"]
    weir_file(by_text, named | {"q1": {"d1": 1.0}})
    assert weir.evaluate(folder, by_text, ["nDCG@10"]).means() != expected
    ids, run = weir.Queries.of({"a": "same", "b": "same"}), weir.Run.of({"same": {"d1": 1.0}})
    assert run.by_identifier(ids) is run
    ids, run = weir.Queries.of({"a": "one", "b": "two"}), weir.Run.of({"c": {"d1": 1.0}})
    assert run.by_identifier(ids) is run


@pytest.mark.parametrize("suffix", [".trec", ".json", ".csv", ".trec.gz"])
def test_every_format_is_a_first_stage_and_a_part(tmp_path, suffix):
    path = weir_file(tmp_path / f"first{suffix}", RANKINGS)
    stored = weir.system(f'run("{path.as_posix()}")')
    dataset = weir.load(write_collection(tmp_path / "mine"))
    best = stored.index(dataset.corpus).search(dataset.queries, 2).to_dict()
    assert best == {
        "q1": {"d4": 2.0, "d2": 1.0},
        "q2": {"d3": 7.5},
        "q3": {"d5": 1.0},
        "d4": {"d4": 3.0, "d1": 2.0},
    }
    fused = weir.rrf(stored, weir.BM25()).index(dataset.corpus).search(dataset.queries, 3)
    assert fused.to_dict()["q3"].keys() == {"d5"}  # which no word of the query finds
    again = (stored >> weir.Score(weir.BM25())).index(dataset.corpus).search(dataset.queries, 3)
    by_words = weir.BM25().index(dataset.corpus).search(dataset.queries, 9).to_dict()["q1"]
    assert again.to_dict()["q1"]["d1"] == by_words["d1"]


def test_what_is_missing_and_what_is_unknown_is_said(tmp_path, first):
    dataset = weir.load(write_collection(tmp_path / "mine"))
    partly = weir_file(tmp_path / "partly.trec", {"q1": {"d1": 1.0, "gone": 2.0}, "other": {"d1": 1.0}})
    with pytest.raises(
        BadRanking, match=r"1 of 3 answers .* the first 'gone' to query 'q1'.*unknown=\"drop\""
    ):
        StoredRun(str(partly)).index(dataset.corpus)
    searcher = StoredRun(str(partly), unknown="drop").index(dataset.corpus)
    with pytest.warns(RankingWarning) as said:
        run = searcher.search(dataset.queries, 10)
    assert run.to_dict() == {"q1": {"d1": 1.0}, "q2": {}, "q3": {}, "d4": {}}
    assert ["3 of 4 queries are not in the file, the first 'q2'" in str(w.message) for w in said] == [
        True,
        False,
    ]
    assert "they are left out" in str(said[1].message)
    wrong = weir_file(tmp_path / "wrong.trec", {"a": {"d1": 1.0}})
    with pytest.raises(
        BadRanking, match="answers none of 4 queries, the first 'q1'; its own are such as 'a'"
    ):
        StoredRun(str(wrong)).index(dataset.corpus).search(dataset.queries, 10)


@pytest.mark.parametrize(("k", "lacks"), [(2, False), (3, True)])
def test_that_k_documents_fit_is_asked_of_k_alone(tmp_path, k, lacks):
    """One more is looked at to see ties that cross k, which no warning is about."""
    documents = {f"d{n}": {"text": "weir", "group": "a" if n < 5 else "b"} for n in range(9)}
    dataset = weir.Dataset.of(documents, {"q1": "weir"}, {"q1": {"d1": 1}})
    path = weir_file(tmp_path / "r.trec", {"q1": {"d1": 3.0, "d8": 2.0, "d2": 1.0}})
    system = f'filtered(run("{path.as_posix()}"), "group == \'a\'")'
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", RankingWarning)
        Experiment([dataset], [system], ["RR"], k).execute(tmp_path / "out")
    assert [f"fewer than {k} " in str(one.message) for one in said] == [True] * lacks


def test_the_cell_keeps_what_was_missing(tmp_path):
    folder = write_collection(tmp_path / "mine")
    path = weir_file(tmp_path / "partly.trec", {"q1": {"d1": 1.0}})
    with pytest.warns(RankingWarning):
        Experiment([folder], [f'run("{path.as_posix()}")'], ["AP"]).execute(tmp_path / "out")
    [record] = [json.loads(p.read_text()) for p in (tmp_path / "out").rglob("stage.json")]
    assert "3 of 4 queries are not in the file" in record["facts"]["notes"][0]
    assert len(finished_cells(tmp_path / "out")) == 1


def test_one_name_serves_several_collections(tmp_path):
    found = {}
    for name, top in (("one", "d1"), ("two", "d4")):
        write_collection(tmp_path / name)
        weir_file(tmp_path / f"{name}.trec", RANKINGS | {"q1": {top: 9.0}})
    system = f'run("{tmp_path.as_posix()}/{{dataset}}.trec")'
    grid = Experiment([tmp_path / "one", tmp_path / "two"], [system], ["RR"])
    for row in grid.execute(tmp_path / "out"):
        found[row.dataset] = row.system
    assert found == {"one": system, "two": system}
    with pytest.raises(BadValue, match="stands for the name of a collection"):
        weir.parse_system(system).describe()


def test_a_plan_does_not_probe_what_others_answer(tmp_path, first):
    folder = write_collection(tmp_path / "mine")
    names = [f'run("{first.as_posix()}") >> score(bm25)', 'elasticsearch(url="http://localhost:9200")']
    plans = planned(Experiment([folder], names), lambda *_: None)
    assert [plan.index_seconds for plan in plans] == [None, None]
    assert f"the file {first.as_posix()} is asked 4 queries; it is not probed" in plans[0].notes
    assert "the server http://localhost:9200 is asked 4 queries; it is not probed" in plans[1].notes


def test_a_file_that_is_none_is_one_line(tmp_path):
    with pytest.raises(FormatError, match="no such file"):
        weir.parse_system(f'run("{tmp_path.as_posix()}/gone.trec")').describe()
    with pytest.raises(BadValue, match="path is 5"):
        weir.parse_system("run(5)")
    with pytest.raises(BadValue, match="'refuse' or 'drop'"):
        weir.parse_system('run("a", unknown="keep")')


def test_a_pool_that_k_cuts_is_said():
    corpus = weir.Corpus.of({f"d{n}": "weir" for n in range(8)})
    queries = weir.Queries.of({"q1": {"text": "", "candidates": [f"d{n}" for n in range(7)]}, "q2": "weir"})
    pool = weir.parse_system("pool").index(corpus)
    with pytest.warns(
        RankingWarning, match="pool: 1 of 2 queries have more than 5 candidates, up to 7; `k=7` keeps"
    ):
        assert len(pool.search(queries, 5).to_dict()["q1"]) == 5
    assert len(pool.search(queries, 7).to_dict()["q1"]) == 7
