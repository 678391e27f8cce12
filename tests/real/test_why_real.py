"""Our BM25 against the published scores, and why NFCorpus differs from them in the third decimal."""

from __future__ import annotations

import pytest

from weir.cli import main
from weir.datasets.scoring_rules import ScoringRules
from weir.experiment.comparing import diff_cells, diff_files
from weir.experiment.experiment import Experiment
from weir.experiment.reproduce import reproduce
from weir.experiment.results import finished_cells
from weir.experiment.why import Judgments, explain_cells, explain_published
from weir.settings import settings

pytestmark = pytest.mark.real

MULTI = 'bm25("lucene-multifield")'


@pytest.fixture(scope="module")
def results(shared, tmp_path_factory):
    """BM25 of both kinds on SciFact and NFCorpus, with measures that are published."""
    root = tmp_path_factory.mktemp("results")
    data = tuple(str(shared / "data" / name) for name in ("scifact", "nfcorpus"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WEIR_HOME", str(tmp_path_factory.mktemp("home")))
        Experiment(data, ("bm25", MULTI), ("nDCG@10", "R@100")).execute(root)
    return {(c.dataset, c.system): c.folder for c in finished_cells(root)} | {"root": root}


def data(shared, name):
    return Judgments(collection=str(shared / "data" / name))


@pytest.mark.parametrize("system", ["bm25", MULTI])
@pytest.mark.parametrize("publisher", ["Anserini", "Pyserini 2CR"])
def test_the_gap_on_nfcorpus_is_the_tie_rule(shared, results, system, publisher):
    model = f"BM25 {'flat' if system == 'bm25' else 'multifield'} [{publisher}]"
    found = explain_published(results["nfcorpus", system], model, "nDCG@10", data(shared, "nfcorpus"))
    assert not found.agree
    assert 0.0005 < found.gap < 0.0015
    first = found.effects[0]
    assert (first.kind, first.change) == ("tie rule", "ascending ids, 1e-6 apart in floats, as Anserini")
    assert (first.closes, first.documented) == (True, True)
    assert first.explains == pytest.approx(1, abs=0.1)
    assert abs(found.unexplained) <= 0.5e-4
    assert found.settings[0].setting == "ties"
    assert [d.weight for d in found.settings[1:]] == [0.0] * len(found.settings[1:])


def test_nothing_else_that_can_be_scored_again_gives_the_number(shared, results):
    found = explain_published(results["nfcorpus", "bm25"], None, "nDCG@10", data(shared, "nfcorpus"))
    closing = {e.kind for e in found.effects if e.closes}
    assert closing == {"tie rule", "all rules"}


def test_what_is_reproduced_has_no_gap(shared, results):
    found = explain_published(results["scifact", "bm25"], None, "nDCG@10", data(shared, "scifact"))
    assert found.agree
    assert abs(found.gap) < 0.5e-4


def test_the_wrong_index_is_named_first(shared, results):
    found = explain_published(
        results["nfcorpus", "bm25"], "beir paper bm25", "nDCG@10", data(shared, "nfcorpus")
    )
    assert found.settings[0].setting == "system.fields"  # the paper's BM25 has titles apart


def test_two_systems_differ_by_their_fields_and_no_scoring_closes_the_gap(shared, results):
    found = explain_cells(
        results["nfcorpus", "bm25"], results["nfcorpus", MULTI], "nDCG@10", data(shared, "nfcorpus")
    )
    assert [d.setting for d in found.settings] == ["system.fields"]
    assert not any(e.closes for e in found.effects)
    assert found.shared == 308
    assert 0 < found.same_top < 308


def test_reproduce_says_what_is_equal_and_what_is_not(results):
    found = {(c.dataset, c.system, c.measure, c.published.model): c for c in reproduce(results["root"])}
    assert {c.outcome for (d, *_), c in found.items() if d == "scifact"} == {"reproduced"}
    explained = [c for c in found.values() if c.outcome == "explained"]  # by Anserini's order of ties
    assert {(c.dataset, c.measure) for c in explained} == {("nfcorpus", "nDCG@10"), ("nfcorpus", "R@100")}
    assert {c.published.printed for c in explained if c.measure == "R@100"} == {"0.2500"}
    assert all(abs(c.difference) < 0.0015 for c in explained)
    assert not [c for c in found.values() if c.outcome == "off"]
    assert main(["study", "reproduce", str(results["root"])]) == 0


def test_what_the_tie_rule_explains_is_no_miss(shared, results, tmp_path, monkeypatch, capsys):
    (tmp_path / "datasets").mkdir()
    (tmp_path / "datasets" / "nfcorpus").symlink_to(shared / "data" / "nfcorpus")
    monkeypatch.setenv("WEIR_HOME", str(tmp_path))
    settings.cache_clear()
    found = [c for c in reproduce(results["root"]) if (c.dataset, c.measure) == ("nfcorpus", "nDCG@10")]
    settings.cache_clear()
    papers = "BM25 [BEIR paper]"
    assert {c.because for c in found if c.published.model != papers} == {"ties"}
    assert {c.outcome for c in found} <= {"explained", "reproduced"}


def test_diff_of_files_and_of_cells_is_the_same(shared, results):
    one, other = results["scifact", "bm25"], results["scifact", MULTI]
    where = str(shared / "data" / "scifact")
    qrels = shared / "data" / "scifact" / "qrels" / "test.tsv"
    cells = diff_cells(one, other, "nDCG@10", where)
    files = diff_files(qrels, (one / "run.trec", other / "run.trec"), "nDCG@10", ScoringRules.of(where))
    for name in ("won", "lost", "tied", "up", "down", "first_mean", "second_mean"):
        assert getattr(cells, name) == getattr(files, name)
    assert len(cells.won) + len(cells.lost) + len(cells.tied) == 300
    assert len(cells.up) == len(cells.down) == 10
    for move in (*cells.up, *cells.down):
        assert move.text
        assert move.documents[0].title
