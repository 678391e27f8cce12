"""What is wrong with a grid is found before anything starts; what fails later loses nothing that was finished."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass

import pytest

import weir
from tests.unit.brooklet import write_collection
from weir.api.results_folder import results as folder_rows
from weir.cli.main import main
from weir.errors import BadValue, FormatError, MissingExtra
from weir.experiment.experiment import Experiment
from weir.systems.protocol import RERANKERS, Costs

ASKED: list[int] = []


@dataclass(frozen=True)
class Counting:
    """A re-ranker of somebody else, who pays for each pair; `broken` raises instead."""

    depth: int = 100
    broken: bool = False

    def __str__(self) -> str:
        return "broken" if self.broken else "counting"

    def describe(self):
        return {"reranker": str(self), "version": 1}

    def ready(self, corpus, context=None):
        return self

    def costs(self):
        return Costs()

    def scores(self, queries, candidates, context=None):
        if self.broken:
            raise RuntimeError("the other party hung up")
        ASKED.append(len(candidates.doc))
        return candidates.score[::-1].copy() + candidates.doc


@pytest.fixture(autouse=True)
def registered():
    ASKED.clear()
    known = dict(RERANKERS._known)
    RERANKERS.add("counting", Counting)
    RERANKERS.add("broken", lambda: Counting(broken=True))
    yield
    RERANKERS._known.clear()
    RERANKERS._known.update(known)


def test_judgments_of_a_later_collection_are_read_before_the_first_index(tmp_path):
    good, bad = write_collection(tmp_path / "good"), write_collection(tmp_path / "bad")
    (bad / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\tmuch\n")
    stages: list[str] = []
    grid = Experiment((str(good), str(bad)), ("bm25",))
    with pytest.raises(FormatError, match=r"test\.tsv, line 2"):
        grid.execute(tmp_path / "results", lambda stage, done, total: stages.append(stage))
    assert stages == []
    assert not (tmp_path / "results").exists()


def test_what_is_not_installed_is_said_before_the_first_index(tmp_path, monkeypatch):
    collection, stages = write_collection(tmp_path / "data"), []
    from weir.systems.dense_search import DenseRetriever

    monkeypatch.setattr(DenseRetriever, "describe", lambda self: {"system": str(self), "engine": None})
    monkeypatch.setitem(sys.modules, "openvino", None)
    with pytest.raises(MissingExtra, match="neural"):
        Experiment((str(collection),), ("bm25", "dense")).execute(
            tmp_path / "results", lambda stage, done, total: stages.append(stage)
        )
    assert stages == []


@pytest.mark.parametrize("line", ["q1 Q0 elsewhere 1 2.0 x", "q9 Q0 d1 1 2.0 x"])
@pytest.mark.parametrize("system", ['run("{path}")', 'rrf(bm25, run("{path}"))'])
def test_a_run_file_of_another_collection_is_said_before_the_first_cell(tmp_path, capsys, line, system):
    grid = ["-d", str(write_collection(tmp_path / "data")), "-s", "bm25"]
    (tmp_path / "x.trec").write_text(line + "\n")
    grid += ["-s", system.format(path=tmp_path / "x.trec")]
    for command in (["run", *grid, "-o", str(tmp_path / "results")], ["plan", *grid]):
        assert main(command) == 2
        shown = capsys.readouterr()
        assert "x.trec" in shown.err
        assert "index" not in shown.err
    assert not (tmp_path / "results").exists()


def test_a_failure_in_the_middle_shows_what_is_finished(tmp_path, capsys):
    collection = write_collection(tmp_path / "data")
    command = [
        "run",
        "-d",
        str(collection),
        "-s",
        "bm25",
        "-s",
        "bm25 >> broken()",
        "-m",
        "AP",
        "--json",
        "-q",
    ]
    assert main([*command, "-o", str(tmp_path / "results")]) == 2
    shown = capsys.readouterr()
    assert [json.loads(line)["system"] for line in shown.out.splitlines()] == ["bm25"]
    missing, error = shown.err.strip().splitlines()
    assert "1 of 2 results asked for is missing: bm25 >> broken on data:test" in missing
    assert "hung up" in error


def test_anothers_re_ranker_is_asked_once_for_each_pair(tmp_path):
    """Times of single queries are not taken of what may cost whoever made it."""
    collection = write_collection(tmp_path / "data")
    for measures in (("AP",), ("AP", "RR")):
        Experiment((str(collection),), ("bm25 >> counting()",), measures).execute(tmp_path / "results")
    assert len(ASKED) == 1


def test_systems_and_collections_may_be_objects(tmp_path):
    dataset = weir.load(write_collection(tmp_path / "data"))
    rows = Experiment((dataset,), (weir.BM25(), "rm3"), (weir.parse_measure("AP"),)).execute(
        tmp_path / "results"
    )
    assert [r.system for r in rows] == ["bm25", "rm3"]
    assert sorted(map(str, folder_rows(str(tmp_path / "results")))) == sorted(map(str, rows))
    with pytest.raises(BadValue, match="is not a system"):
        Experiment((dataset,), (1,)).execute(tmp_path / "results")  # type: ignore[arg-type]  # a wrong type is what is tried
