"""weir plan: what a grid will take, from small runs of it."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weir
from tests.shown import shown
from tests.unit import model_servers as es
from tests.unit.brooklet import write_collection
from weir.cli import main
from weir.core.rounding import bytes_text, duration
from weir.errors import BadValue
from weir.experiment.experiment import Experiment
from weir.experiment.plan import (
    Planned,
    _asks_an_api,
    _between,
    _extended,
    _extended_plan,
    _Probe,
    _Subject,
    plan_notes,
    planned,
    planned_total,
)
from weir.systems.expression import parse_system


def silent(stage, done, total):
    pass


def test_a_line_through_two_probes_is_extended():
    assert _extended(1000, (10, 1.0), (20, 2.0)) == pytest.approx(100.0)
    assert _extended(1000, (10, 5.0), (20, 5.0)) == 5.0
    assert _extended(20, (20, 3.0), (20, 3.0)) == 3.0
    assert _extended(1000, (10, 5.0), (20, 2.0)) == 100.0  # the first was disturbed: the second in proportion


def test_noise_is_not_extended_to_millions(monkeypatch, small):
    """Two probes whose memory and query times differ a little, as any two runs do."""
    probes = [_Probe(16, 5.0, 1e4, 0.010, 700.0), _Probe(50, 8.0, 3e4, 0.012, 712.0)]
    monkeypatch.setattr("weir.experiment.plan._probes", lambda *_: probes)
    (one,) = planned(Experiment(("nq",), ("bm25",)), silent, precise=True)
    assert one.peak_mb == 712.0
    assert one.search_seconds == pytest.approx(0.012 * one.queries)
    assert one.index_seconds == pytest.approx(8.0 + 3.0 / 34 * (one.documents - 50))
    assert sum("at least" in note for note in one.notes) == 2
    probes[1] = _Probe(50_000, 8.0, 3e4, 0.040, 1700.0)
    (one,) = planned(Experiment(("nq",), ("bm25",)), silent, precise=True)
    assert one.peak_mb > 10_000
    assert one.search_seconds > 0.040 * one.queries
    assert not any("at least" in note for note in one.notes)


@pytest.mark.parametrize(
    ("name", "asks"),
    [
        ("bm25", False),
        ("dense", False),
        ('dense("openai:m")', True),
        ('bm25 >> score(dense("cohere:m"))', True),
        ('rrf(bm25, chunked(dense("voyage:m")))', True),
        ("rrf(bm25, rm3)", False),
    ],
)
def test_what_asks_a_paid_service_is_known_wherever_it_stands(name, asks):
    assert _asks_an_api(parse_system(name)) is asks


@pytest.fixture(autouse=True)
def _patient(monkeypatch):
    """A probe may take as long as a busy machine needs."""
    monkeypatch.setattr("weir.experiment.plan.PROBING_SECONDS", 900.0)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A collection whose systems have run here: no probe spends its time on compiling kernels."""
    documents = {f"d{i}": ("", f"word{i % 7} word{i % 11} river {i}") for i in range(100)}
    place = tmp_path_factory.mktemp("plan")
    run = write_collection(place / "run", documents)
    Experiment((str(run),), ("bm25", "bm25 >> score(rm3)", "rrf(bm25, rm3)"), ("P@1",)).execute(
        place / "results"
    )
    return write_collection(place / "small", documents)


@pytest.mark.parametrize("precise", [False, True])
def test_a_plan_comes_from_runs_and_leaves_nothing_behind(small, home, tmp_path, monkeypatch, precise):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    (one,) = planned(Experiment((str(small),), ("bm25",)), silent, precise)
    assert (one.dataset, one.system, one.documents, one.queries) == ("small", "bm25", 100, 4)
    assert one.probed is not None
    assert one.probed[1] == 100
    assert 0 < one.index_seconds < 600
    assert 0 < one.search_seconds < 600
    assert 20 < one.peak_mb < 5000
    assert one.disk_bytes > 100 * 4
    assert list(tmp_path.iterdir()) == []
    assert not (home / "vectors").exists()
    for value, ends in (
        (one.index_seconds, one.index_range),
        (one.search_seconds, one.search_range),
        (one.disk_bytes, one.disk_range),
        (one.peak_mb, one.peak_range),
    ):
        assert 0 <= ends[0] <= value <= ends[1]


def test_each_part_is_probed_once_and_all_systems_together(small, monkeypatch):
    """A few runs, whatever the grid, each of all systems on all collections."""
    commands, run = [], subprocess.run

    def counted(command, **settings):
        commands.append(command)
        assert 0 < settings["timeout"] < 900
        return run(command, **settings)

    monkeypatch.setattr(subprocess, "run", counted)
    systems = ("bm25", "bm25 >> score(rm3, depth=5)", "rrf(bm25, rm3)", "bm25(b=0.5)")
    found = planned(Experiment((str(small), "brook-news"), systems), silent)
    assert 1 <= len(commands) <= 3
    assert all((command.count("-s"), command.count("-d")) == (4, 2) for command in commands)
    assert all(one.probed is not None and one.index_range is not None for one in found)
    assert [(one.dataset, one.system) for one in found] == [
        (d, s) for d in ("small", "brook-news") for s in systems
    ]


@pytest.mark.parametrize("precise", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_pool_is_probed_with_candidates(small, tmp_path, precise):
    pools = shutil.copytree(small, tmp_path / "pools")
    lines = [json.loads(line) for line in (pools / "queries.jsonl").read_text().splitlines()]
    rows = [json.dumps(line | {"metadata": {"candidates": ["d1", "d2", "d3"]}}) for line in lines]
    (pools / "queries.jsonl").write_text("\n".join(rows) + "\n")
    found = planned(Experiment((str(pools),), ("pool", "pool >> score(bm25)")), silent, precise)
    assert all(one.probed is not None and one.search_seconds > 0 for one in found)


def test_without_time_nothing_is_probed_and_that_is_said(small, monkeypatch, capsys):
    monkeypatch.setattr("weir.experiment.plan.PROBING_SECONDS", 0.5)
    (one,) = planned(Experiment((str(small),), ("bm25",)), silent)
    assert (one.probed, one.index_seconds, one.peak_mb) == (None, None, None)
    assert "no probe ended within" in one.notes[0]
    assert "`precise=True`" in one.notes[0]
    assert main(["plan", "-d", str(small), "-s", "bm25", "-q", "--precise"]) == 0
    assert "extended along a line" in capsys.readouterr().err


@given(
    st.integers(1, 50),
    st.integers(0, 5000),
    st.integers(0, 10**7),
    st.floats(0, 100),
    st.floats(0, 3),
    st.floats(0, 50),
)
def test_a_range_holds_what_a_line_within_the_noise_comes_to(first, step, more, start, each, wobble):
    last, documents, off = first + step, first + step + more, 1 + 0.2 * np.sin(wobble)
    took, whole = {n: start + each * n for n in (first, last)}, start + each * documents
    probes = [_Probe(n, took[n] * by, 1.0, 1.0, 1.0) for n, by in ((first, off), (last, 1 / off))]
    low, high = _between(documents, probes[-1:] if not step else probes, "index")
    assert 0 <= low <= whole * (1 + 1e-9)
    assert whole <= high * (1 + 1e-9)


@given(
    st.lists(st.floats(0.98, 1.02), min_size=1, max_size=2),
    st.floats(50, 2000),
    st.integers(17, 10**6),
    st.sampled_from([255, 500, 20_000]),
)
def test_memory_of_probes_that_do_not_differ_is_not_multiplied(noise, base, documents, second):
    """Most of the memory is the process's own, so one probe tells no upper end, and equal ones a narrow range."""
    sizes = [16, min(second, documents)][: len(noise)]
    probes = [_Probe(n, 1.0, 1e4, 0.01, base * off) for n, off in zip(sizes, noise, strict=True)]
    plan = Planned("c", "bm25", documents, 4)
    one = _extended_plan(
        _Subject("c", documents, 4, (9.0, 9.0), None),
        plan,
        parse_system("bm25"),
        10,
        probes,
        [],
        precise=False,
    )
    assert (one.peak_range is None) == (len(probes) == 1)
    assert (one.peak_range is None) == any("memory is that of 16 documents" in note for note in one.notes)
    if one.peak_range is not None:
        low, high = one.peak_range
        assert low <= one.peak_mb <= high
        assert high <= base * (1.1 + 0.11 * documents / (sizes[1] - sizes[0]))


def test_seconds_in_all_have_a_range():
    cells = [
        Planned("c", "bm25", 9, 4, (2, 4), 3.0, 1.0, index_range=(2.0, 9.0), search_range=(0.5, 51.0)),
        Planned("d", "bm25", 9, 4, (2, 4), 3.0, None, index_range=(2.0, 9.0)),
    ]
    assert "7.0 s in all (4.5 s to 69 s), less what systems share" in " ".join(map(str, plan_notes(cells)))


def test_a_collection_that_is_not_here_is_stood_in_for(monkeypatch):
    monkeypatch.setattr("weir.experiment.plan.MAX_PROBE_DOCUMENTS", 32)
    (one,) = planned(Experiment(("nq",), ("bm25",)), silent, precise=True)
    assert one.documents == 2_681_468
    assert one.probed is not None
    assert one.probed[1] == 32
    assert any("not on this machine" in note for note in one.notes)


def test_an_api_is_estimated_and_not_asked(small, monkeypatch):
    monkeypatch.setenv("WEIR_API_PRICE", "0.02")
    from weir.settings import settings

    settings.cache_clear()
    with es.embedding_serving() as (url, manners):
        system = f'dense("openai:m", base="{url}/v1")'
        here, gone = planned(Experiment((str(small), "nq"), (system,)), silent)
        assert manners.asked == []
    assert 100 * 5 < here.tokens < 100 * 15
    assert here.dollars == pytest.approx(int(here.tokens) * 0.02 / 1e6)
    assert gone.tokens > 1e8
    assert here.index_seconds is here.probed is None


def test_a_system_that_cannot_be_probed_is_named_and_the_others_are_planned(small):
    absent, found = planned(Experiment((str(small),), ('dense("/no-such-model")', "bm25")), silent)
    assert absent.index_seconds is None
    assert "no-such-model" in absent.notes[0]
    assert found.index_seconds is not None


def test_a_probe_that_fails_says_why_in_one_line(small, capsys):
    with pytest.raises(BadValue, match=r"probe on 16 documents of small failed: .*no-such-model"):
        planned(Experiment((str(small),), ('dense("/no-such-model")',)), silent)
    assert main(["plan", "-d", str(small), "-s", "no"]) == 2
    assert main(["plan", "-s", "bm25"]) == 2
    assert all("Traceback" not in line for line in capsys.readouterr().err.split("\n"))


def test_what_is_printed():
    one = Planned("nq", "bm25", 2_681_468, 3_452, (16, 4096), 7300.0, 30.0, 1.5e9, 812.0, notes=("so it is",))
    other = Planned("nq", "api", 10, 2, None, None, None, None, None, tokens=1234.5, dollars=0.5)
    ranged = replace(one, index_range=(3600.0, 14000.0), search_range=(30.0, 30.1))
    asks = [replace(other, system=f"llm {n}", prompts=n, asks=((key, n, 10.0 * n, 0.1 * n),))
            for n, key in ((3, "a"), (5, "a"), (7, "b"))]  # fmt: skip
    prompts, tokens, dollars = planned_total(asks)
    assert (prompts, tokens, round(dollars, 9)) == (
        5 + 7,
        120.0,
        1.2,
    )  # three are among the five
    assert planned_total([one, other]) is None

    def rows(found):
        return [" ".join(line.split()) for line in shown("plan", found).split("\n")]

    assert rows([ranged])[2] == "nq bm25 2,681,468 3,452 60 min to 3.9 h 30 s 1.5 GB 812 MB"
    assert rows([one, other])[2:] == [
        "nq bm25 2,681,468 3,452 2.0 h 30 s 1.5 GB 812 MB - - -",
        "nq api 10 2 - - - - - 1,234 0.50",
    ]
    assert rows(asks)[0] == "dataset system documents queries prompts tokens dollars"
    assert rows(asks)[-2:] == ["nq llm 7 10 2 7 1,234 0.50", "in all, what is shared once 12 120 1.20"]
    notes = list(map(str, plan_notes([one, other])))
    assert any("16 to 4,096 documents" in note for note in notes)
    assert any("so it is" in note for note in notes)
    assert sum("so it is" in str(note) for note in plan_notes([one, one])) == 1
    assert json.loads(shown("plan", [one], "json").split("\n")[0])["index_seconds"] == 7300.0


def test_times_and_sizes_have_two_digits():
    assert [duration(s) for s in (0.04, 9.99, 119.0, 121.0, 7199.0, 7201.0, 2e5, None)] == [
        "0.0 s", "10 s", "119 s", "2.0 min", "120 min", "2.0 h", "2.3 days", "-"
    ]  # fmt: skip
    assert [bytes_text(b) for b in (10.0, 1.5e6, 2.2e10, 3e12, None)] == [
        "0.0 kB",
        "1.5 MB",
        "22 GB",
        "3.0 TB",
        "-",
    ]


def test_what_cannot_be_handed_to_a_process_is_not_probed():
    def mine(queries, k):
        return {}

    with pytest.raises(BadValue, match=r"rrf\(bm25, mine\) holds a function or object"):
        planned(Experiment(("brook-news",), (weir.rrf(weir.BM25(), mine),)), lambda *said: None)


def test_a_plan_refuses_two_collections_of_one_name_as_a_run_does_and_counts_one_once(tmp_path):
    first, second = (
        write_collection(tmp_path / "a" / "mine"),
        write_collection(tmp_path / "b" / "mine", mark="?"),
    )
    for at in (planned, lambda grid, watch: grid.loaded_datasets(watch)):
        with pytest.raises(BadValue, match="two different datasets are named 'mine'"):
            at(Experiment([str(first), str(second)], ["bm25"], ["nDCG@10"]), silent)
    assert len(planned(Experiment([str(first), str(first)], ["bm25"], ["nDCG@10"]), silent)) == 1
