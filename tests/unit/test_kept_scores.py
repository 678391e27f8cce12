"""Scores of pairs are kept: by any pipeline, at any depth, through any death."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.shown import shown
from tests.unit.pair_place import Hashed, Readers, collection, score
from weir.core.corpus import Corpus, Queries
from weir.errors import BadRanking
from weir.experiment.efficiency import efficiency, efficiency_notes
from weir.experiment.experiment import Experiment
from weir.experiment.results import finished_cells
from weir.settings import settings
from weir.systems import BM25, RERANKERS, Pipeline, parse_system
from weir.systems.protocol import Context, Costs
from weir.systems.rerank.reranking import BLOCK_PAIRS

ROOT = Path(__file__).resolve().parents[2]
CORPUS = Corpus.of(
    {f"d{n}": {"title": "weir" if n % 3 else "", "text": f"river water {n}"} for n in range(60)}
)
QUERIES = Queries.of({"q1": "river", "q2": "water 7", "q3": "xylophone", "q4": "river"})

ANEW = Context(reuse=False)


@pytest.fixture
def model():
    return Readers()


def index(model, depth=20, corpus=CORPUS, **settings):
    return Pipeline(BM25(), Hashed(depth, model=model, **settings)).index(corpus)


def test_every_candidate_has_the_score_of_its_own_pair(model):
    run = index(model).search(QUERIES, 10).to_dict()
    assert [len(ranking) for ranking in run.values()] == [10, 10, 0, 10]
    texts = dict(zip(CORPUS.ids.tolist(), CORPUS.view("title text").tolist(), strict=True))
    for name, ranking in run.items():
        query = QUERIES.text[QUERIES.ids.tolist().index(name)]
        expected = [np.float32(score(query, texts[d])) for d in ranking]
        assert list(ranking.values()) == expected


def test_no_pair_is_scored_twice(model):
    whole = index(model).search(QUERIES, 30).to_dict()
    assert len(model.asked) == len(set(model.asked)) == 40  # q1 and q4 ask the same
    assert index(model).search(QUERIES, 30).to_dict() == whole
    assert len(model.asked) == 40
    index(model, 5).search(QUERIES, 30)
    assert len(model.asked) == 40
    index(model, 30).search(QUERIES, 30)
    assert len(model.asked) == len(set(model.asked)) == 60
    rm3 = parse_system("rm3").index(CORPUS).search(QUERIES, 30)
    Hashed(30, model=model).ready(CORPUS).scores(QUERIES, rm3)
    assert len(model.asked) == len(set(model.asked))
    other = Corpus.of(dict(zip(["a", "b"], CORPUS.view("title text").tolist()[:2], strict=True)))
    index(model, 30, other).search(QUERIES, 30)
    assert len(model.asked) == len(set(model.asked))  # the same texts in another collection


def test_another_model_scores_everything_anew(model):
    index(model).search(QUERIES, 10)
    index(model, name="other").search(QUERIES, 10)
    assert len(model.asked) == 80
    assert len(list((settings().home / "scores").iterdir())) == 2


def test_where_the_query_ends_is_part_of_a_pair(model):
    corpus = Corpus.of({"d1": "dam weir", "d2": "weir"})
    asked = Queries.of({"q1": "river", "q2": "river dam"})
    scorer = Hashed(model=model).ready(corpus)
    run = BM25().index(Corpus.of({"d1": "river", "d2": "river"})).search(asked, 2)
    found = scorer.scores(asked, run)
    assert len(set(found.tolist())) == 4


def test_what_takes_time_is_computed_and_what_counts_is_counted(model):
    searcher = index(model)
    first = searcher.search(QUERIES, 10)
    counted = Costs(requested_pairs=60, computed_pairs=40, candidates=60, repeatable=True)
    assert searcher.costs() == counted
    assert searcher.search(QUERIES, 10, ANEW).to_dict() == first.to_dict()
    assert len(model.asked) == 100
    assert searcher.costs() == counted
    again = index(model)
    again.search(Queries.of({"new": "river 5"}), 10, ANEW)
    assert len(model.asked) == 120
    again.search(Queries.of({"new": "river 5"}), 10)
    assert len(model.asked) == 140  # nothing was kept of what was only timed
    assert BM25().index(CORPUS).costs() == Costs(repeatable=True)


@pytest.mark.parametrize("name", ["bm25 >> hashed", "rrf(bm25 >> hashed, bm25)", "chunked(bm25 >> hashed)"])
def test_progress_reaches_a_re_ranker_wherever_it_is(model, name, monkeypatch):
    told = []
    monkeypatch.setitem(RERANKERS._known, "hashed", lambda: Hashed(20, model=model))
    searcher = parse_system(name).index(CORPUS)
    run = searcher.search(QUERIES, 10, Context(progress=lambda done, total: told.append((done, total))))
    assert told[0] == (20, 60)  # q4 asks what q1 asks
    assert told[-1] == (60, 60)
    assert sorted(told) == told
    assert len(told) >= 3
    assert searcher.search(QUERIES, 10, ANEW).to_dict() == run.to_dict()
    assert searcher.costs().requested_pairs == 60


def test_interrupted_it_keeps_what_is_finished(model, monkeypatch):
    monkeypatch.setitem(BLOCK_PAIRS, "cpu", 16)

    def stop(done, total):
        if done >= 50:
            raise KeyboardInterrupt

    searcher = index(model)
    with pytest.raises(KeyboardInterrupt):
        searcher.search(QUERIES, 10, Context(progress=stop))
    assert len(model.asked) == 32
    searcher.search(QUERIES, 10)
    assert len(model.asked) == 40 + 16  # the window that was cut off


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_score_that_is_none_is_named_and_not_kept(model, bad):
    model.bad = bad
    with pytest.raises(
        BadRanking, match=r"hashed\(depth=20\): the score of query 'q1', document 'd\d+' is (nan|inf)"
    ):
        index(model).search(QUERIES, 10)
    model.bad = None
    index(model).search(QUERIES, 10)
    assert len(model.asked) == 40 + 40


def test_nothing_to_score_is_nothing(model):
    assert index(model).search(Queries.of({"q": "xylophone"}), 10).to_dict() == {"q": {}}
    assert index(model).search(Queries.of({}), 10).to_dict() == {}
    assert not (settings().home / "scores").exists()


def ran(place: Path, results: Path, log: Path, home: Path, dies: int = 0) -> int:
    command = [sys.executable, "-m", "tests.unit.pair_place", place, results, log, str(dies)]
    return subprocess.run(
        command, cwd=ROOT, env=os.environ | {"WEIR_HOME": str(home)}, check=False
    ).returncode


def whole(folder: Path) -> dict[str, bytes]:
    return {
        str(p.relative_to(folder)): p.read_bytes()
        for p in sorted(folder.rglob("*"))
        if p.name in {"run.trec", "vectors.bin", "texts.bin", "journal.bin"} or p.suffix == ".jsonl"
    }


def test_killed_again_and_again_it_ends_as_if_undisturbed(tmp_path):
    place, log = collection(tmp_path / "data"), tmp_path / "killed.log"
    assert ran(place, tmp_path / "whole", tmp_path / "whole.log", tmp_path / "home-whole") == 0
    rng, killed = np.random.default_rng(5), 0
    for _ in range(2):
        killed += ran(place, tmp_path / "killed", log, tmp_path / "home", int(rng.integers(20, 40))) == -9
    assert killed == 2
    assert ran(place, tmp_path / "killed", log, tmp_path / "home") == 0
    assert whole(tmp_path / "killed") == whole(tmp_path / "whole")
    assert whole(tmp_path / "home") == whole(tmp_path / "home-whole")
    [cell] = finished_cells(tmp_path / "killed")
    scores = cell.ranked.facts["scores"]
    assert scores["asked"] == 2000
    assert 0 < scores["computed"] < 1900
    [found] = efficiency(tmp_path / "killed")
    left = 2000 - scores["computed"]
    assert found.search_marks[0].startswith(f"{left} of 2000 scores of pairs were stored before")
    [undisturbed] = efficiency(tmp_path / "whole")
    assert undisturbed.search_marks == ()
    assert undisturbed.p50_ms > 0


def test_latency_is_that_of_scores_computed(tmp_path, model, monkeypatch):
    place = str(collection(tmp_path / "data", 60, 5))
    monkeypatch.setitem(RERANKERS._known, "hashed", lambda: Hashed(20, model=model))
    told = []
    for results in ("first", "second"):
        model.asked.clear()
        grid = Experiment((place,), ("bm25 >> hashed",), ("nDCG@10",))
        grid.execute(tmp_path / results, lambda *said: told.append(said))
        # One query to load what is loaded once, all queries together, and each of them by itself.
        assert len(model.asked) == 20 + 100 * (results == "first") + 100
    assert any(stage.endswith("score") and total == 100 for stage, _, total in told)
    [first], [second] = (efficiency(tmp_path / results) for results in ("first", "second"))
    assert first.search_marks == ()
    assert second.search_marks == (
        "100 of 100 scores of pairs were stored before; single queries compute theirs",
    )
    assert second.singles == 5
    cells = shown("efficiency", [second]).split("\n")[2].split()
    assert [cell.endswith("*") for cell in cells[-5:-1]] == [True, False, False, False]
    assert any("searching: 100 of 100 scores" in str(note) for note in efficiency_notes([second]))
