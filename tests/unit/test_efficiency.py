from __future__ import annotations

import csv
import io
import json
import math
import time
import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weir
from tests.shown import shown
from tests.unit.brooklet import write_collection
from tests.unit.cells import MANIFEST, RUN, changed, write_cell
from tests.unit.test_pipelines import By
from weir.api.charts import cost_charts
from weir.cli.main import main
from weir.core.charts import Spread, svg
from weir.errors import FormatError, UnknownName
from weir.experiment import stage_store
from weir.experiment.efficiency import efficiency, efficiency_notes
from weir.experiment.experiment import Experiment
from weir.experiment.results import finished_cells, total_seconds
from weir.experiment.stages import read_record, write_record
from weir.systems.lexical.bm25 import BM25, BM25Searcher
from weir.systems.protocol import RERANKERS, SYSTEMS, Costs

COST = {
    "index": {"seconds": 4.0, "peak_mb": 300.0, "bytes": 2_000_000, "documents": 1000},
    "search": {
        "seconds": 0.5,
        "peak_mb": 200.0,
        "single_query_ms": {"p50": 1.0, "p95": 2.0, "p99": 4.0, "mean": 1.25, "queries": 100.0},
    },
}


def cell(root, name, cost=COST, run=RUN, dataset="mine", k=1000):
    manifest = changed("system.system", name) | {"dataset": dataset, "cost": cost, "k": k}
    return write_cell(root / dataset / f"{name.replace(' ', '-')}-{k}", run, manifest)


def with_search(**facts):
    return COST | {"search": COST["search"] | facts}


def with_index(**facts):
    return COST | {"index": COST["index"] | facts}


def test_figures_are_those_of_the_records(tmp_path):
    cell(tmp_path, "bm25")
    [found] = efficiency(tmp_path)
    assert found.quality.measure == "nDCG@10"
    assert found.documents_per_second == 250.0
    assert found.bytes_per_million == 2e9
    assert (found.queries, found.queries_per_second) == (4, 8.0)
    assert (found.p50_ms, found.p95_ms, found.p99_ms, found.singles) == (1.0, 2.0, 4.0, 100)
    assert found.peak_mb == 300.0
    assert found.hardware == "some, 2 cores, 2 threads"
    assert found.best


@given(queries=st.integers(1, 100))
@settings(max_examples=20)
def test_a_percentile_is_given_of_as_many_queries_as_have_one_beyond_it(tmp_path_factory, queries):
    root = tmp_path_factory.mktemp("percentiles")
    times = {"p50": 1.0, "p95": 2.0, "p99": 4.0, "mean": 1.25}
    cell(root, "bm25", with_search(single_query_ms={**times, "queries": float(queries)}))
    served = {"stored": 0, "retried": 0, "faults": {}, "unanswered": {}, "empty": 0}
    latency = [{**times, "concurrency": 2, "answers": queries}]
    cell(root, "http", with_search(single_query_ms={}, services=[{**served, "latency": latency}]))
    given = [None if queries < 20 else 2.0, None if queries < 100 else 4.0]
    found = efficiency(root)
    assert [[one.p50_ms, one.p95_ms, one.p99_ms] for one in found] == [[1.0, *given]] * 2
    columns = ["1.00", *("-" if n is None else f"{n:.2f}" for n in given)]
    lines = shown("efficiency", found).split("\n")
    assert [line.split()[-4:-1] for line in lines[2:4]] == [columns] * 2
    assert "timed" not in lines[0].split()  # one number, in the note
    assert any(f"are of {queries} queries" in str(note) for note in efficiency_notes(found))
    cell(root, "other", with_search(single_query_ms={**times, "queries": 101.0}))
    head, _, *lines = shown("efficiency", efficiency(root)).split("\n")[:5]
    assert "timed" in head.split()
    assert [line.split()[-5] for line in lines] == [str(queries), "-", "101"]
    [said] = [mark for one in found for mark in one.search_marks if "answers" in mark]
    assert ("p95" in said, "p99" in said) == (queries >= 20, queries >= 100)
    spread = [chart.values for chart in cost_charts(found) if isinstance(chart, Spread)]
    assert spread == [((1.0, *filter(None, given)),) * 2] * (queries >= 20)


def test_the_mean_latency_times_the_queries_is_the_total(tmp_path, monkeypatch):
    monkeypatch.setattr(stage_store, "LATENCY_SECONDS", math.inf)
    folder = str(write_collection(tmp_path / "brooklet"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        Experiment((folder,), ("bm25", "bm25 >> score(rm3)")).execute(tmp_path / "results")
    for found in efficiency(tmp_path / "results"):
        assert found.queries == 4
        assert found.mean_ms * found.queries == pytest.approx(1000 * found.search_seconds)
        assert found.singles == 4
        assert found.p50_ms <= found.single_mean_ms * found.singles
        assert found.p95_ms is found.p99_ms is None  # of four queries
        assert found.index_bytes > 0
        assert found.index_marks == found.search_marks == ()


def test_the_best_are_those_that_nothing_beats(tmp_path):
    worse = {"q1": RUN["q1"]}
    cell(tmp_path, "plain")
    cell(tmp_path, "equal")
    cell(tmp_path, "poor", run=worse)
    cell(tmp_path, "quick but poor", with_search(single_query_ms={"p50": 0.5}), run=worse)
    cell(tmp_path, "slow", with_search(single_query_ms={"p50": 1.5}))
    cell(tmp_path, "small", with_index(bytes=10))
    cell(tmp_path, "unknown", {"index": None, "search": {"queries": None}})
    cell(tmp_path, "poor", run=worse, dataset="other")
    found = {(e.quality.dataset, e.quality.system): e.best for e in efficiency(tmp_path)}
    assert found == {
        ("mine", "plain"): False,
        ("mine", "equal"): False,
        ("mine", "poor"): False,
        ("mine", "quick but poor"): True,
        ("mine", "slow"): False,
        ("mine", "small"): True,
        ("mine", "unknown"): False,
        ("other", "poor"): True,
    }


def test_equal_systems_are_both_the_best(tmp_path):
    cell(tmp_path, "one")
    cell(tmp_path, "two")
    assert [e.best for e in efficiency(tmp_path)] == [True, True]


def test_times_that_leave_out_earlier_work_are_marked(tmp_path):
    cell(tmp_path, "plain")
    cell(tmp_path, "stored", with_index(reused=600, cached_queries=True))
    found = efficiency(tmp_path)
    assert found[0].index_marks == found[0].search_marks == ()
    assert found[1].index_marks == ("what is made of 600 of 1000 documents was stored before",)
    assert found[1].search_marks
    assert found[0].p50_ms == 1.0
    assert found[1].p50_ms is None  # what a store answers is no time of an API's
    text = shown("efficiency", found).split("\n")
    assert "250 " in text[2]
    assert "8.00 " in text[2]
    assert "250*" in text[3]
    assert "8.00*" in text[3]
    notes = [str(note) for note in efficiency_notes(found)]
    assert "note: *: mine, stored: indexing: what is made of 600 of 1000 documents was stored before" in notes


def test_finding_what_was_there_is_no_speed_of_indexing(tmp_path):
    cell(tmp_path, "whole", with_index(reused=1000))
    [found] = efficiency(tmp_path)
    assert found.documents_per_second is None
    assert found.index_marks == ("what is made of all documents was stored before",)


def test_queries_whose_vectors_are_kept_are_not_timed_one_by_one(tmp_path, monkeypatch):
    class Asking(BM25Searcher):
        """As a searcher whose queries an API encodes, once."""

        def costs(self):
            return Costs(cached_queries=True)

    class Asked(BM25):
        def index(self, corpus, context):
            made = super().index(corpus, context)
            return Asking(made.system, made.corpus, made.parts)

    monkeypatch.setitem(SYSTEMS._known, "asked", Asked)
    folder = str(write_collection(tmp_path / "brooklet"))
    Experiment((folder,), ("asked",)).execute(tmp_path / "results")
    [found] = efficiency(tmp_path / "results")
    assert found.p50_ms is found.singles is None
    assert found.mean_ms > 0
    assert "single queries were not measured" in found.search_marks[0]


def test_what_was_made_for_an_earlier_system_keeps_its_cost(tmp_path):
    folder = str(write_collection(tmp_path / "brooklet"))
    for system in ("rrf(bm25, rm3)", "rrf(bm25, rm3, k=10)"):
        Experiment((folder,), (system,)).execute(tmp_path / "results")
    first, later = efficiency(tmp_path / "results")
    assert later.index_seconds == first.index_seconds > 0
    assert later.index_bytes == first.index_bytes > 0
    assert first.index_marks == later.index_marks == ()


def test_a_re_ranker_that_is_not_timed_has_no_time_of_its_first_stage(tmp_path, monkeypatch):
    """Single queries are asked anew of what says that it is repeatable alone: no other part's times stand in for it."""
    monkeypatch.setitem(RERANKERS._known, "flat", lambda: By(lambda query, place, name: place))
    folder = str(write_collection(tmp_path / "brooklet"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        Experiment((folder,), ("bm25 >> flat",)).execute(tmp_path / "results")
    [found] = efficiency(tmp_path / "results")
    assert found.p50_ms is found.singles is None
    assert found.mean_ms > 0


def test_what_a_record_does_not_hold_is_a_dash(tmp_path):
    cell(tmp_path, "old", {"index": None, "search": {"queries": None, "peak_mb": None}})
    [found] = efficiency(tmp_path)
    assert found.documents_per_second is found.queries_per_second is found.p50_ms is found.peak_mb is None
    line = shown("efficiency", [found]).split("\n")[2]
    assert line.split()[-8:] == ["-"] * 8
    record = json.loads(shown("efficiency", [found], "json"))
    assert record["queries_per_second"] is None
    assert record["search_seconds"] == 1.0


def test_engines_of_encoders_are_hardware(tmp_path):
    engines = "torch cpu fp32", "torch cuda bf16"
    system = {"system": "a >> b", "first": {"encoder": {"engine": engines[0]}}}
    system |= {"parts": [{"engine": engines[0]}, {"engine": engines[1]}]}
    write_cell(tmp_path / "mine" / "x-0123456789", manifest=MANIFEST | {"system": system})
    assert efficiency(tmp_path)[0].hardware.endswith(f"2 threads, {engines[0]}, {engines[1]}")


def test_measures_are_chosen_and_refused(tmp_path):
    cell(tmp_path, "bm25")
    assert efficiency(tmp_path, "AP")[0].quality.measure == "AP"
    with pytest.raises(UnknownName, match="nDCG@10"):
        efficiency(tmp_path, "nDCG@100")
    with pytest.raises(FormatError, match="no such folder"):
        efficiency(tmp_path / "nothing")


def test_the_same_system_twice_is_told_apart(tmp_path):
    for k in (10, 1000):
        cell(tmp_path, "bm25", k=k)
    assert [e.quality.system for e in efficiency(tmp_path)] == ["bm25 #k=10", "bm25"]


def test_every_form_shows_the_same(tmp_path, capsys):
    cell(tmp_path, "bm25 >> score(rm3)")
    cell(tmp_path, "a|b_c", with_index(reused=3))
    outputs = {}
    for form in ("", "--json", "--csv", "--latex", "--markdown"):
        assert main(["study", "efficiency", str(tmp_path), *([form] if form else [])]) == 0
        outputs[form] = capsys.readouterr()
    records = [json.loads(line) for line in outputs["--json"].out.strip().split("\n")]
    rows = list(csv.DictReader(io.StringIO(outputs["--csv"].out)))
    assert [r["system"] for r in rows] == [r["system"] for r in records] == ["a|b_c", "bm25 >> score(rm3)"]
    assert float(rows[0]["documents_per_second"]) == records[0]["documents_per_second"] == 250.0
    assert rows[0]["index_marks"] == "what is made of 3 of 1000 documents was stored before"
    assert r"a\|b\_c + |" in outputs["--markdown"].out
    assert r"a\textbar{}b\_c +" in outputs["--latex"].out
    assert "\n+: no other system" in outputs["--latex"].out
    assert r"\textgreater{}\textgreater{}" in outputs["--latex"].out
    assert outputs[""].out.split("\n")[0].split()[:2] == ["dataset", "system"]
    assert "note: measured on some, 2 cores, 2 threads" in outputs[""].err
    assert main(["study", "efficiency", str(tmp_path), "-m", "AP"]) == 0
    assert " AP " in capsys.readouterr().out
    assert main(["study", "efficiency", str(tmp_path / "none")]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize(
    "odd", [{"seconds": "long"}, {"single_query_ms": {"p50": 1.0, "p95": "x", "queries": 3}}]
)
def test_a_record_of_another_layout_is_one_line(tmp_path, capsys, odd):
    folder = cell(tmp_path, "bm25", with_search(**odd))
    assert main(["study", "efficiency", str(tmp_path)]) == 2
    assert str(folder / "stage.json") in capsys.readouterr().err


@settings(max_examples=30)
@given(cells=st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3), st.sampled_from("xy"), st.booleans()),
                      min_size=1, max_size=6))  # fmt: skip
def test_the_best_are_the_best_of_one_machine_by_one_kind_of_time(tmp_path_factory, cells):
    root = tmp_path_factory.mktemp("machines")
    for number, (p50, size, machine, single) in enumerate(cells):
        times = {"p50": float(p50)} if single else {}
        records = with_search(single_query_ms=times, seconds=0.001 * p50) | {
            "index": with_index(bytes=size)["index"]
        }
        folder = cell(root, f"s{number}", records)
        path = folder / "stage.json"
        record = read_record(path)
        write_record(path, replace(record, made={**record.made, "processor": machine}))
    found = {one.quality.system: one.best for one in efficiency(root)}
    singly = {m for m in "xy" if sum(machine == m and timed for _, _, machine, timed in cells) > 1}
    singly |= {m for m in "xy" if all(timed for _, _, machine, timed in cells if machine == m)}
    marks = {
        n: (machine, p50, size)
        for n, (p50, size, machine, timed) in enumerate(cells)
        if timed or machine not in singly
    }
    for number in range(len(cells)):
        machine, ms, size = marks.get(number, ("", 0, 0))
        beaten = any(
            there == machine and other <= ms and least <= size and (other, least) != (ms, size)
            for there, other, least in marks.values()
        )
        assert found[f"s{number}"] == (number in marks and not beaten)


def _echo(queries, k):
    return {query: ["d1", "d2"] for query in queries}


def _all_or_nothing(texts):
    if len(texts) < 4:
        raise ValueError("expected all queries")
    return [[len(text), 1.0] for text in texts]


def test_single_queries_of_objects_are_timed_as_those_of_systems_by_name(tmp_path, monkeypatch):
    """Those of functions, which may be paid, and of an object that fails on one query are unknown: the chart says why, and
    no sign is given."""
    monkeypatch.setattr(stage_store, "LATENCY_SECONDS", math.inf)
    folder = str(write_collection(tmp_path / "brooklet"))
    encoder = weir.encoder(lambda texts: [[len(text), 1.0] for text in texts], name="lengths", version="1")
    overlap = weir.reranker(lambda queries, documents: [1.0] * len(queries), name="flat", version="1")
    timed = [weir.Dense(encoder), weir.BM25() >> overlap, "bm25"]
    fails = weir.Dense(weir.encoder(_all_or_nothing, name="fails", version="1"))
    untimed = [fails, weir.system(_echo, name="echo")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        Experiment((folder,), (*timed, *untimed), ("nDCG@10",)).execute(tmp_path / "results")
    found = {one.quality.system: one for one in efficiency(tmp_path / "results")}
    assert {name: one.singles for name, one in found.items()} == {
        **{str(one): 4 for one in timed},
        **{str(one): None for one in untimed},
    }
    assert all((one.p50_ms is None) == bool(one.untimed) for one in found.values())
    assert not any(one.best for one in found.values() if one.p50_ms is None or one.index_bytes is None)
    assert "expected all queries" in found[str(fails)].untimed
    chart = cost_charts(list(found.values()))[0]
    assert {point.name for point in chart.points} == {str(one) for one in timed}
    assert ["fails" in line or "echo" in line for line in chart.left_out] == [True, True]
    assert "Without a point" in svg(chart, 700)


def test_signs_are_explained_where_they_stand_and_small_indexes_are_told(tmp_path):
    cell(tmp_path, "bm25")
    marked = [str(note) for note in efficiency_notes(efficiency(tmp_path))]
    assert any("extrapolated from 1,000 documents" in line for line in marked)
    cell(tmp_path / "none", "bm25", {"index": None, "search": {"queries": None}})
    unmarked = [str(note) for note in efficiency_notes(efficiency(tmp_path / "none"))]
    assert not any(line.startswith("note: +") or "extrapolated" in line for line in unmarked)


class Slow:
    """An encoder that takes 2 milliseconds for a text."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def encode(self, texts):
        begun = time.perf_counter()
        time.sleep(0.002 * len(texts))
        angles = np.array([len(text) % 7 for text in texts]) / 7
        made = np.stack([np.cos(angles), np.sin(angles)], 1).astype(np.float32)
        self.seconds += time.perf_counter() - begun
        return made


@pytest.mark.parametrize("version", [None, "1"])
def test_the_cost_of_encoding_is_that_of_any_encoder_with_or_without_a_version(tmp_path, version):
    """In each system that uses it once, however many share the index; only its size needs an index that is kept."""
    slow = weir.encoder(Slow(), name="slow", version=version)
    systems = [slow, weir.rrf(slow, weir.BM25()), weir.rrf(slow, weir.RM3()), "bm25", "rm3"]
    weir.benchmark(["brook-facts", "brook-news"], systems, "RR", out=tmp_path)
    found = {(one.quality.dataset, one.quality.system): one for one in efficiency(tmp_path)}
    cells = {(one.dataset, one.label): one for one in finished_cells(tmp_path)}
    assert len(found) == 10
    for (dataset, system), one in found.items():
        if "slow" in system:
            alone = next(found[key] for key in found if key == (dataset, "dense(slow)"))
            assert alone.index_seconds >= 0.002 * alone.documents
            other = [found[dataset, name].index_seconds for name in ("bm25", "rm3") if name in system]
            assert one.index_seconds == pytest.approx(alone.index_seconds + sum(other))
            assert total_seconds(cells[dataset, system]) >= one.index_seconds
        assert (one.index_bytes is None) == (version is None and "slow" in system)
        assert one.unkept == "no size" * (one.index_bytes is None)
    said = [note.text for note in efficiency_notes([*found.values()]) if "is kept for an object" in note.text]
    assert len(said) == (version is None)
    assert all(system in said[0] for _, system in found if "slow" in system and said)


def test_a_function_that_reads_no_documents_has_no_time_of_indexing(tmp_path):
    def nothing(queries, k):
        return {query: ["n-2031-10"] for query in queries}

    weir.benchmark("brook-news", [nothing], "RR", out=tmp_path)
    [one] = efficiency(tmp_path)
    assert (one.index_seconds, one.index_bytes, one.unkept) == (None, None, "neither size nor time")
