from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace

import pytest

import weir
from tests.unit.brooklet import write_collection
from tests.unit.results import contents, finished_files
from weir.algorithms import algorithm
from weir.datasets.load import load
from weir.errors import BadValue, StoreError, StoreWarning, WeirError
from weir.experiment.experiment import Experiment
from weir.systems import SYSTEMS, Fused, parse_system
from weir.systems.fusion import fuse
from weir.systems.protocol import Context

NAMES = [
    "rrf(bm25, rm3)",
    'rrf(bm25, bm25("lucene-multifield"), k=10, depth=100)',
    'wsum(bm25, rm3, weights=[0.6, 0.4], norm="zscore")',
    'combmnz(bm25, rrf(rm3, bm25(k1=1.2), k=5), norm="none")',
    "rrf(bm25, bm25)",
]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    return load(str(write_collection(tmp_path_factory.mktemp("data") / "brooklet")))


def test_describe_holds_all_that_moves_a_number():
    described = parse_system("wsum(bm25, rm3, weights=[1, 2], depth=7)").describe()
    settings = {"method": "wsum", "weights": (1.0, 2.0), "norm": "minmax", "depth": 7}
    assert described["fusion"] == settings | {"algorithm": algorithm("fusion")}
    assert [part["system"] for part in described["parts"]] == ["bm25", "rm3"]
    assert parse_system("rrf(bm25, rm3)").describe()["fusion"]["k"] == 60


@pytest.mark.parametrize("name", NAMES)
def test_answers_are_the_fused_answers_of_the_parts(dataset, name):
    system = parse_system(name)
    depth = system.depth or 1000
    runs = [part.index(dataset.corpus).search(dataset.queries, depth) for part in system.parts]
    found = system.index(dataset.corpus).search(dataset.queries, 3)
    expected = fuse(runs, system.fusion, 3)
    assert found.to_dict() == expected.to_dict()
    assert found.name == name
    assert found.queries is dataset.queries.ids


def test_depth_is_what_each_part_is_asked(dataset):
    shallow = parse_system("rrf(bm25, rm3, depth=1)").index(dataset.corpus).search(dataset.queries, 10)
    assert all(len(r) <= 2 for r in shallow.to_dict().values())
    assert [len(r) for r in shallow.top(1).to_dict().values()] == [1, 1, 0, 1]  # nothing says xylophone


def test_one_query_alone_is_answered_as_among_others(dataset):
    searcher = parse_system("combsum(bm25, rm3)").index(dataset.corpus)
    whole = searcher.search(dataset.queries, 5).to_dict()
    for number, query in enumerate(dataset.queries.ids):
        assert searcher.search(dataset.queries.take([number]), 5).to_dict() == {query: whole[query]}


def test_equal_parts_are_built_once_and_opened_again(dataset, tmp_path):
    system = parse_system("rrf(bm25, rm3, bm25)")
    made = system.index(dataset.corpus, Context(tmp_path / "index"))
    assert len([p for p in (tmp_path / "index").iterdir() if p.is_dir()]) == 2
    assert made.searchers[0] is made.searchers[2]
    opened = system.open(dataset.corpus, Context(tmp_path / "index"))
    assert opened.search(dataset.queries, 5).to_dict() == made.search(dataset.queries, 5).to_dict()


def test_an_index_that_is_not_complete_is_refused_and_completed(dataset, tmp_path):
    system, at = parse_system("rrf(bm25, rm3)"), tmp_path / "index"
    system.index(dataset.corpus, Context(at))
    damaged, other = (next(p for p in at.iterdir() if p.name.startswith(n)) for n in ("rm3", "bm25"))
    shutil.rmtree(damaged)
    with pytest.raises(StoreError, match="the index is damaged"):
        system.open(dataset.corpus, Context(at))
    kept = {p: p.stat().st_mtime_ns for p in other.iterdir()}
    system.index(dataset.corpus, Context(at))
    assert {p: p.stat().st_mtime_ns for p in other.iterdir()} == kept  # parts that were complete stay
    (damaged / "index.json").write_text("{")
    with pytest.raises(StoreError, match="damaged"):
        system.open(dataset.corpus, Context(at))
    with pytest.warns(StoreWarning, match="rm3 is indexed again"):
        system.index(dataset.corpus, Context(at))
    system.open(dataset.corpus, Context(at))
    with pytest.raises(StoreError, match="the index is damaged"):
        parse_system("rrf(bm25, bm25(k1=2))").open(dataset.corpus, Context(at))


def test_another_corpus_is_indexed_anew(dataset, tmp_path):
    other = load(str(write_collection(tmp_path / "other", {"d1": ("", "a river"), "d4": ("", "a dam")})))
    system = parse_system("rrf(bm25, rm3)")
    system.index(dataset.corpus, Context(tmp_path / "index"))
    with pytest.warns(StoreWarning, match="made from another corpus"):
        found = system.index(other.corpus, Context(tmp_path / "index")).search(other.queries, 5)
    assert set(found.docs.tolist()) == {"d1", "d4"}


def test_progress_runs_once_over_all_parts(dataset):
    told: list[tuple[int, int]] = []
    parse_system("rrf(bm25, rm3)").index(dataset.corpus, Context(progress=lambda *at: told.append(at)))
    assert told[-1] == (12, 12)
    assert told == sorted(told)


def test_k_must_be_a_depth(dataset):
    with pytest.raises(BadValue, match="k is 0"):
        parse_system("rrf(bm25, rm3)").index(dataset.corpus).search(dataset.queries, 0)


def test_a_fusion_is_a_frozen_value():
    system = parse_system("rrf(bm25, rm3)")
    assert isinstance(system, Fused)
    assert str(replace(system, depth=5)) == "rrf(bm25, rm3, depth=5)"
    assert "rrf" in SYSTEMS


KILLED = """
import os, signal, sys
from weir.experiment.experiment import Experiment
from weir.systems import RM3
RM3.index = lambda *given: os.kill(os.getpid(), signal.SIGKILL)
Experiment((sys.argv[1],), ("rrf(bm25, rm3)",), ("nDCG@10",)).execute(sys.argv[2])
"""


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_killed_between_parts_the_same_command_continues(tmp_path):
    collection = str(write_collection(tmp_path / "brooklet"))
    done = subprocess.run([sys.executable, "-c", KILLED, collection, str(tmp_path / "a")], check=False)
    assert done.returncode == -9
    stamps = finished_files(tmp_path / "a")
    assert len({p.parent for p in stamps}) == 1
    grid = Experiment((collection,), ("rrf(bm25, rm3)",), ("nDCG@10",))
    rows = grid.execute(tmp_path / "a")
    assert stamps.items() <= finished_files(tmp_path / "a").items()
    assert rows == grid.execute(tmp_path / "b")
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


def test_a_name_in_a_fusion_of_objects_is_told_where_to_go():
    with pytest.raises(WeirError, match=r"'bm25' is not a system; a name goes into weir\.system"):
        weir.rrf("bm25", weir.RM3())
    assert str(weir.rrf(weir.system("bm25"), weir.RM3())) == "rrf(bm25, rm3)"


@pytest.mark.parametrize(
    "given", [((weir.BM25(), weir.BM25()), 3), (3, (weir.BM25(), weir.BM25())), ("rrf", "bm25")]
)
def test_a_fusion_of_wrong_values_is_refused(given):
    with pytest.raises(BadValue, match=r"weir.rrf\(bm25, rm3\) makes a fusion"):
        Fused(*given)
