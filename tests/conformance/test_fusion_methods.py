"""What every registered fusion method and normalisation keeps to: a new one is tested by being registered."""

from __future__ import annotations

import inspect
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from weir.core.run import Run
from weir.systems import SYSTEMS, parse_system
from weir.systems.fusion import METHODS, NORMS, Fusion, ScoreLists, candidates, fuse, parse_fusion

RANDOM = np.random.default_rng(11)
RUNS = [
    {
        f"q{q}": {
            f"d{d}": float(s)
            for d, s in zip(RANDOM.permutation(12)[:size], RANDOM.random(size) * 9, strict=True)
        }
        for q in range(first, first + 4)
    }
    for size, first in ((7, 0), (10, 1), (4, 2))
]


def fused(runs: list[dict[str, dict[str, float]]], text: str, k: int | None = None) -> Run:
    return fuse([Run.of(run) for run in runs], text, k)


@pytest.mark.parametrize("name", METHODS.names())
class TestMethod:
    def test_it_stands_by_its_bare_name(self, name):
        assert str(parse_fusion(name)) == name
        assert parse_fusion(name) == Fusion(name)

    def test_its_defaults_spelled_out_are_the_default(self, name):
        assert Fusion(name).with_settings(METHODS.get(name).defaults()) == Fusion(name)

    def test_it_says_what_it_is_and_where_it_comes_from(self, name):
        text = inspect.getdoc(METHODS.get(name).function) or ""
        assert text.partition("\n")[0].endswith(".")
        assert "Source: " in text

    def test_it_returns_the_union_in_the_order_of_results(self, name):
        run = fused(RUNS, name)
        assert {q: set(r) for q, r in run.to_dict().items()} == {
            q: {d for r in RUNS for d in r.get(q, {})} for r in RUNS for q in r
        }
        again = Run.from_columns(
            run.queries, run.docs, run.query_of_row()[::-1], run.doc[::-1], run.score[::-1]
        )
        assert again.doc.tolist() == run.doc.tolist()

    def test_one_query_alone_is_fused_as_among_others(self, name):
        whole = fused(RUNS, name).to_dict()
        for query in whole:
            alone = [{query: r[query]} if query in r else {} for r in RUNS]
            if sum(map(bool, alone)) > 1:
                assert fused(alone, name).to_dict() == {query: whole[query]}

    def test_the_order_of_the_runs_does_not_show(self, name):
        assert fused(RUNS, name).score.tobytes() == fused(RUNS[::-1], name).score.tobytes()

    def test_agreement_is_kept(self, name):
        run = RUNS[0]
        found = fused([run, run, run], name).to_dict()
        assert [list(r) for r in found.values()] == [sorted(r, key=lambda d: -r[d]) for r in run.values()]

    def test_what_a_fit_tries_can_be_fused(self, name):
        if METHODS.get(name).defaults().keys():
            for how in candidates(name, 3, 0.5):
                assert parse_fusion(str(how)) == how
                assert np.isfinite(fused(RUNS, how).score).all()

    def test_it_is_a_system(self, name):
        system = parse_system(f"{name}(bm25, rm3)")
        assert str(system) == f"{name}(bm25, rm3)"
        assert parse_system(str(system)) == system
        assert inspect.getdoc(SYSTEMS.get(name)) == inspect.getdoc(METHODS.get(name).function)


@pytest.mark.parametrize("name", NORMS.names())
class TestNorm:
    def test_order_is_kept_and_all_is_finite(self, name):
        for scores in (
            [9.0, 4.0, 3.5, 3.5, 1.0],
            [2.0],
            [1.0, 1.0],
            [0.0, 0.0],
            [3.0, 0.0, -8.0],
            [-1.0, -2.0],
        ):
            found = NORMS.get(name)(ScoreLists(np.array(scores), np.array([0, len(scores)])))
            assert found.shape == (len(scores),)
            assert np.isfinite(found).all()
            assert (found[1:] <= found[:-1]).all()

    def test_each_list_is_its_own_and_empty_ones_do_no_harm(self, name):
        rule = NORMS.get(name)
        one, two = np.array([5.0, 4.0, 1.0]), np.array([7.0, -3.0])
        with np.errstate(invalid="ignore", divide="ignore"):
            found = rule(ScoreLists(np.concatenate([one, two]), np.array([0, 0, 3, 3, 5, 5])))
        expected = [rule(ScoreLists(one, np.array([0, 3]))), rule(ScoreLists(two, np.array([0, 2])))]
        assert found.tolist() == np.concatenate(expected).tolist()

    def test_it_says_what_it_is(self, name):
        assert (inspect.getdoc(NORMS.get(name)) or "").partition("\n")[0].endswith(".")


def test_the_page_names_every_method_and_norm_and_its_example_runs():
    page = (Path(__file__).resolve().parents[2] / "docs" / "fusion.md").read_text(encoding="utf-8")
    for name in (*METHODS, *NORMS):
        assert f"`{name}`" in page
    code = textwrap.dedent(page.split("and a system:\n\n")[1].split("\n\nA distribution")[0])
    tail = """
import weir
from weir.systems import parse_system
print(weir.fuse([{"q": {"a": 2.0, "b": 1.0}}, {"q": {"b": 1.0}}], "first").to_dict(), parse_system("first(bm25, rm3)"))
"""
    done = subprocess.run([sys.executable, "-c", code + tail], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "{'q': {'b': 1.0, 'a': 1.0}} first(bm25, rm3)"
