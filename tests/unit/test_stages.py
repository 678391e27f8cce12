"""Stages: each is made once, whoever needs it; its record is written once; what no setting decides is shared."""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import subprocess
import sys
import time
import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import weir.systems
from tests.unit.brooklet import write_collection
from tests.unit.results import contents, finished_files
from weir.api.results_folder import results as folder_rows
from weir.errors import RankingWarning
from weir.experiment import stage_store
from weir.experiment.experiment import Experiment
from weir.experiment.results import ResultCell, finished_cells, index_cost, search_cost
from weir.experiment.stage_store import StageCache
from weir.experiment.stages import Making
from weir.experiment.verify import verified
from weir.measures import DEFAULT_MEASURES
from weir.settings import settings
from weir.systems import BM25, RERANKERS, SYSTEMS
from weir.systems.lexical.bm25 import BM25Searcher
from weir.systems.protocol import Costs

FIRST = ("score(rm3)", "score(rm3(docs=3))", "score(rm3(terms=5), depth=50)")
SECOND = ("score(rm3(weight=0.2), depth=3)", "score(bm25(k1=1.2))", "score(bm25(k1=1.2), depth=2)")
ASKED = 4
"""Queries of the collection."""

pytestmark = pytest.mark.filterwarnings("ignore::weir.errors.RankingWarning")


@pytest.fixture
def collection(tmp_path) -> str:
    return str(write_collection(tmp_path / "brooklet"))


@pytest.fixture
def made(monkeypatch) -> Counter:
    """How often each BM25 was indexed (and with the documents' terms, as RM3 needs them), and searched for all."""
    counts, indexed, search = Counter(), BM25.indexed, BM25Searcher.search

    def indexing(self, corpus, context, keep_terms):
        counts[f"index {self}{' with terms' * keep_terms}"] += 1
        return indexed(self, corpus, context, keep_terms)

    def searching(self, queries, k, context):
        counts[f"search {self.system}"] += len(queries) == ASKED
        return search(self, queries, k, context)

    monkeypatch.setattr(BM25, "indexed", indexing)
    monkeypatch.setattr(BM25Searcher, "search", searching)
    return counts


LATER = """
import sys
from weir.experiment.experiment import Experiment
from weir.systems import BM25
from weir.systems.lexical.bm25 import BM25Searcher
search = BM25Searcher.search
def once(self, queries, k, context):
    assert len(queries) == 1, "searched again"
    return search(self, queries, k, context)
def never(*given):
    raise AssertionError("indexed again")
BM25.indexed, BM25Searcher.search = never, once
rows = Experiment((sys.argv[1],), tuple(sys.argv[3:])).execute(sys.argv[2])
print(len(rows))
"""


def test_six_re_rankers_index_and_search_their_first_stage_once(tmp_path, collection, made):
    """In one grid, in a later grid on the same folder, and in a later process."""
    results, once = tmp_path / "results", {"index bm25": 1, "index bm25 with terms": 1, "search bm25": 1}
    Experiment((collection,), ("bm25", *(f"bm25 >> {r}" for r in FIRST))).execute(results)
    assert +made == once
    files = finished_files(results)
    Experiment((collection,), tuple(f"bm25 >> {r}" for r in SECOND)).execute(results)
    assert +made == once | {"index bm25(k1=1.2)": 1}
    Experiment((collection,), ("rrf(bm25, bm25 >> score(rm3))", "bm25 >> score(bm25) >> score(rm3)")).execute(
        results
    )
    assert +made == once | {"index bm25(k1=1.2)": 1}
    assert files.items() <= finished_files(results).items()
    later = [f"bm25 >> score(rm3(docs={n}))" for n in range(4, 10)]
    told = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", LATER, collection, str(results), *later],
        check=True,
        capture_output=True,
        text=True,
    )
    assert int(told.stdout) == 6 * len(DEFAULT_MEASURES)


def test_shared_and_alone_the_numbers_are_the_same(tmp_path, collection):
    systems = tuple(f"bm25 >> {r}" for r in (*FIRST, *SECOND))
    together = Experiment((collection,), systems).execute(tmp_path / "together")
    alone = [Experiment((collection,), (s,)).execute(tmp_path / f"{n}") for n, s in enumerate(systems)]
    assert together == [row for rows in alone for row in rows]


def test_stages_kept_elsewhere_serve_other_results_at_another_depth_of_folders(tmp_path, collection, made):
    """What they cost is found from each results folder."""
    places, costs = (tmp_path / "one", tmp_path / "deep" / "er" / "two"), []
    for place in places:
        grid = Experiment((collection,), ("bm25", "bm25 >> score(rm3)"), stages=tmp_path / "shared")
        grid.execute(place)
        costs.append([(index_cost(c), search_cost(c)) for c in finished_cells(place)])
    assert +made == {"index bm25": 1, "index bm25 with terms": 1, "search bm25": 1}
    assert all(index["seconds"] > 0 and search["seconds"] > 0 for one in costs for index, search in one)
    assert costs[0] == costs[1]
    assert not [one for place in places for one in verified(place) if not one.sound]


def test_rankings_damaged_beside_their_scores_are_copied_again_and_the_scores_stay(tmp_path, collection):
    grid = (collection,), ("bm25",)
    Experiment(*grid, ("AP",), stages=tmp_path / "shared").execute(tmp_path / "results")
    [cell] = finished_cells(tmp_path / "results")
    whole = contents(cell.folder)
    cell.run.write_text("")
    Experiment(*grid, ("RR",), stages=tmp_path / "shared").execute(tmp_path / "results")
    assert whole.items() <= contents(cell.folder).items()


@dataclass
class Clock:
    """Time that passes where a part says so."""

    now: float = 0.0

    def perf_counter(self) -> float:
        return self.now

    def passes(self, seconds: float) -> None:
        self.now += seconds


@dataclass(frozen=True)
class Slow:
    """BM25 that takes 100 s to index, 5 s to open and 10 s to search."""

    clock: Clock
    system: BM25 = BM25()  # noqa: RUF009 - a frozen value

    def __str__(self):
        return f"slow {self.system}"

    def describe(self):
        return {"system": "slow", "of": self.system.describe()}

    def index(self, corpus, context):
        self.clock.passes(100)
        return SlowSearcher(self.clock, self.system.index(corpus, context))

    def open(self, corpus, context):
        self.clock.passes(5)
        return SlowSearcher(self.clock, self.system.open(corpus, context))


@dataclass(frozen=True, eq=False)
class SlowSearcher:
    clock: Clock
    inner: BM25Searcher

    def search(self, queries, k, context):
        self.clock.passes(10)
        return self.inner.search(queries, k, context)

    def costs(self):
        return Costs()


@dataclass(frozen=True)
class Reader:
    """A re-ranker that takes 7 s to load and 1 s to score; a document scores by its place."""

    clock: Clock
    depth: int = 100

    def __str__(self):
        return f"reader(depth={self.depth})"

    def describe(self):
        return {"reranker": "reader", "depth": self.depth}

    def ready(self, corpus, context):
        self.clock.passes(7)
        return self

    def costs(self):
        return Costs()

    def scores(self, queries, candidates, context):
        self.clock.passes(1)
        return candidates.ranks().astype(np.float64)


@pytest.fixture
def clock(monkeypatch):
    """A clock of which each stage takes its seconds; `slow`, `slower` and `reader` let it pass."""
    clock = Clock()
    monkeypatch.setattr("weir.experiment.stages.time", clock)
    monkeypatch.setitem(SYSTEMS._known, "slow", lambda: Slow(clock))
    monkeypatch.setitem(SYSTEMS._known, "slower", lambda: Slow(clock, BM25(b=0.1)))
    monkeypatch.setitem(RERANKERS._known, "reader", lambda depth=100: Reader(clock, depth))
    return clock


def cell_of(results: Path, system: str) -> ResultCell:
    [found] = [c for c in finished_cells(results) if c.ranked.declared["system"]["system"] == system]
    return found


@pytest.mark.parametrize("before", [False, True])
def test_a_stage_costs_what_it_takes_itself_and_lists_what_it_used(tmp_path, collection, clock, before):
    """Whether its first stage was made within it, or before: the same figures."""
    names = {
        "slow >> reader": (1, 100, 11),
        "slow >> reader >> reader(depth=3)": (1, 100, 12),
        "rrf(slow, slower)": (0, 200, 20),
        "rrf(slow >> reader, slower)": (0, 200, 21),
    }
    results = tmp_path / "results"
    if before:
        Experiment((collection,), ("slow", "slower")).execute(results)
    Experiment((collection,), tuple(names)).execute(results)
    by_folder = {p.parent.name: json.loads(p.read_text()) for p in results.rglob("stage.json")}
    assert {r["cost"]["seconds"] for r in by_folder.values() if r["stage"] == "index"} == {100}
    cells = [c for c in finished_cells(results) if c.system not in ("slow bm25", "slow bm25(b=0.1)")]
    for cell, (own, indexed, searched) in zip(
        sorted(cells, key=lambda c: [*map(str, map(weir.systems.parse_system, names))].index(c.system)),
        names.values(),
        strict=True,
    ):
        assert cell.ranked.cost["seconds"] == own, cell.system
        assert index_cost(cell)["seconds"] == indexed, cell.system
        assert search_cost(cell)["seconds"] == searched, cell.system
        used = [by_folder[Path(folder).name] for kind, folder in cell.ranked.inputs if kind == "run"]
        parts = cell.ranked.declared["system"].get("parts") or [cell.ranked.declared["system"]["first"]]
        assert [one["declared"]["system"] for one in used] == json.loads(json.dumps(parts)), cell.system
    plain = [
        r for r in by_folder.values() if r["declared"]["system"]["system"] == "slow" and r["stage"] == "run"
    ]
    assert [r["cost"]["seconds"] for r in plain] == [10] * len(plain) != []


def test_where_self_matches_are_dropped_the_cost_is_that_of_searching(tmp_path, clock):
    Experiment(("brook-arguments",), ("slow >> reader",), k=10).execute(tmp_path)
    [cell] = finished_cells(tmp_path)
    assert cell.ranked.cost["seconds"] == 0
    assert (index_cost(cell)["seconds"], search_cost(cell)["seconds"]) == (100, 11)


def test_every_searcher_of_weir_says_how_its_time_is_taken():
    """Each declares what it costs: what is not repeatable is not asked single queries."""
    modules = [
        importlib.import_module(m.name) for m in pkgutil.walk_packages(weir.systems.__path__, "weir.systems.")
    ]
    searchers = {
        c
        for module in modules
        for _, c in inspect.getmembers(module, inspect.isclass)
        if c.__module__ == module.__name__ and "search" in vars(c) and not getattr(c, "_is_protocol", False)
    }
    assert len(searchers) >= 8
    assert not [c.__name__ for c in searchers if "costs" not in vars(c)]


KILLED = """
import os, sys
from weir.experiment import experiment, stage_store
from weir.experiment.experiment import Experiment
write, left = stage_store.write_record, [int(sys.argv[3])]
def record(path, made):
    if left[0] == 0:
        os.kill(os.getpid(), 9)
    write(path, made)
    left[0] -= 1
stage_store.write_record = experiment.write_record = record
Experiment((sys.argv[1],), ("rrf(bm25 >> score(rm3), rm3)", "bm25"), ("nDCG@10", "AP")).execute(sys.argv[2])
"""


def test_killed_before_any_record_it_continues_and_writes_no_finished_file_again(tmp_path, collection):
    """Killed again and again, each time before one record more: it ends as if undisturbed."""
    place, files, deaths = tmp_path / "killed", {}, 0
    command = [sys.executable, "-W", "ignore", "-c", KILLED, collection, str(place)]
    for _ in range(12):
        done = subprocess.run([*command, "1"], check=False)
        assert files.items() <= finished_files(place).items()
        files = finished_files(place)
        if done.returncode == 0:
            break
        assert done.returncode == -9
        deaths += 1
    assert deaths == len(list(place.rglob("stage.json"))) + len(list(place.rglob("scores-*.json"))) - 1
    grid = ("rrf(bm25 >> score(rm3), rm3)", "bm25"), ("nDCG@10", "AP")
    Experiment((collection,), *grid).execute(tmp_path / "whole")
    assert contents(place) == contents(tmp_path / "whole")


def ran_at_once(collection: str, grids: list[tuple[str, ...]], places: list[Path], *more: str) -> None:
    """A process for each grid, all at the same time."""
    command = [sys.executable, "-W", "ignore", "-m", "weir", "run", "-d", collection, "-m", "AP", "-q", *more]
    several = [
        subprocess.Popen(
            [*command, "-o", str(place), *(part for system in grid for part in ("-s", system))],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        for grid, place in zip(grids, places, strict=True)
    ]
    said = [process.communicate()[1] for process in several]
    assert [process.returncode for process in several] == [0] * len(grids), said


GRIDS = [("bm25", "bm25 >> score(rm3)"), ("rrf(bm25, rm3)", "bm25"), ("bm25 >> score(rm3(docs=3))",)]


def test_what_another_process_made_while_this_one_waited_is_read(tmp_path, collection, made, monkeypatch):
    def cache():
        return StageCache(tmp_path, tmp_path, weir.load(collection), lambda *_: None)

    lock = stage_store.locked

    def waited(path, *more):
        """The lock of the rankings, which another process holds first."""
        monkeypatch.setattr(stage_store, "locked", lock)
        cache().read_or_search(BM25(), 3)
        return lock(path, *more)

    monkeypatch.setattr(stage_store, "locked", waited)
    folder, run = cache().read_or_search(BM25(), 3)
    assert made == {"index bm25": 1, "search bm25": 1}
    assert {q: d for q, d in run.to_dict().items() if d} == weir.Run.load(folder / "run.trec").to_dict()


def test_costs_add_what_was_compiled_before_and_meanwhile_and_latencies_are_within_the_time_taken(
    collection, monkeypatch
):
    making = Making(prepared=2.0, peak_mb=7.0)
    making.own |= {"seconds": 5.0, "compile_seconds": 1.5}
    own = {"seconds": 3.5, "peak_mb": 7.0, "compile_seconds": 3.5}
    assert making.cost() == own
    making.own |= {"requests": 2, "texts": 3, "tokens": 1_000_000}
    api = {"requests": 2, "texts": 3, "tokens": 1_000_000}
    assert making.cost() == {**own, "api": api}
    making.own["answer_tokens"] = 500_000
    monkeypatch.setenv("WEIR_API_PRICE", "2 in, 4 out")
    settings.cache_clear()
    api |= {"answer_tokens": 500_000, "dollars": 3.0}  # half of the million are answers
    assert making.cost() == {**own, "api": api}
    monkeypatch.undo()
    settings.cache_clear()
    dataset = weir.load(collection)
    searcher, begun = weir.system("bm25").index(dataset.corpus), time.perf_counter()
    figures = stage_store.latencies(searcher, dataset.queries, 3)
    assert 0 < figures["queries"] * figures["mean"] <= 1000 * (time.perf_counter() - begun)
    assert figures["p50"] <= figures["p95"] <= figures["p99"]


def test_processes_of_different_grids_share_one_folder(tmp_path, collection):
    """Three processes, one folder: nothing is made twice, nothing is corrupted."""
    ran_at_once(collection, GRIDS, [tmp_path / "both"] * 3)
    for grid in GRIDS:
        ran_at_once(collection, [grid], [tmp_path / "alone"])
    both, alone = contents(tmp_path / "both"), contents(tmp_path / "alone")
    order = [json.loads(found.pop("grid.json"))["systems"] for found in (both, alone)]
    assert both == alone
    assert sorted(order[0]) == sorted(order[1])


def test_processes_of_different_results_share_one_folder_of_stages(tmp_path, collection):
    places, shared = [tmp_path / f"r{n}" for n in range(3)], tmp_path / "shared"
    ran_at_once(collection, GRIDS, places, "--stages", str(shared))
    assert all(one.sound for place in places for one in verified(place))
    keys = Counter(
        (r["stage"], r["key"]) for r in map(json.loads, (p.read_text() for p in shared.rglob("stage.json")))
    )
    assert keys.total() == len(keys) >= 4
    for grid, place in zip(GRIDS, places, strict=True):
        expected = Experiment((collection,), grid, ("AP",)).execute(tmp_path / "alone")
        assert sorted(map(str, folder_rows(place))) == sorted(map(str, expected))


def test_rankings_of_an_object_without_a_version_replace_those_of_an_earlier_one(tmp_path, collection):
    def first(queries, k):
        return {query: {"d1": 1.0} for query in queries}

    for _ in range(2):  # each adaptation is another system of one name
        Experiment((collection,), ("bm25", weir.system(first))).execute(tmp_path / "results")
    assert len(list((tmp_path / "results").glob("*/first-*"))) == 1
    assert len(list((tmp_path / "results").glob("*/bm25-*"))) == 1


def test_a_warning_of_a_stage_within_another_is_issued_once():
    def stage_with_parts(told):
        with stage_store._ranking_warnings(told) as outer:
            for _ in range(2):
                with stage_store._ranking_warnings(told) as inner:
                    warnings.warn(RankingWarning("within"), stacklevel=1)
                assert inner == ["within"]
        assert outer == ["within"]

    with pytest.warns(RankingWarning) as issued:
        stage_with_parts(set())
    assert [str(one.message) for one in issued] == ["within"]
