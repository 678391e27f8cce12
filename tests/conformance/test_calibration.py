"""The page of calibration figures is made of the stored ones, and these are within their bounds.

tests/unit/test_inference.py repeats the most important ones with a fixed seed; scripts/make_calibration.py makes all.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from weir.plugins.questions.migration import DECIDING
from weir.stats.gate import GateRules, gates
from weir.stats.resampling import mean_bounds, share_bounds

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))  # of what it imports
spec = importlib.util.spec_from_file_location("make_calibration", ROOT / "scripts" / "make_calibration.py")
assert spec is not None
assert spec.loader is not None
made = importlib.util.module_from_spec(spec)
spec.loader.exec_module(made)

LINES = (ROOT / "docs" / "calibration.jsonl").read_text(encoding="utf-8").splitlines()
STORED = [json.loads(line) for line in LINES]


def rates(kind: str, names: set[str], part: str = "") -> list[float]:
    return [
        r["rate"] for r in STORED if r["kind"] == kind and r["name"] in names and part in r.get("source", "")
    ]


def test_the_page_is_made_of_the_stored_figures():
    page = (ROOT / "docs" / "calibration.md").read_text(encoding="utf-8")
    assert page == made.page(STORED), "run scripts/make_calibration.py --page"


@pytest.mark.parametrize("part", ["simulated, equal systems", "swapped"])
def test_the_default_tests_err_as_often_as_they_say(part):
    found = rates("error", {"t", "permutation"}, part)
    assert len(found) == (8 if "simulated" in part else 16)
    assert all(0.045 <= rate <= 0.055 for rate in found)
    assert min(r["count"] for r in STORED if r["kind"] == "error") >= 10_000


def test_p_values_are_uniform():
    """Kolmogorov's bound at 0.001 for the repetitions behind each figure."""
    for r in STORED:
        fair = r["kind"] == "error" and ("equal" in r["source"] or "swapped" in r["source"])
        if fair and r["name"] in {"t", "permutation"}:
            assert r["distance"] < 1.95 / r["count"] ** 0.5 + 0.003, r
            assert np.abs(np.array(r["tenths"]) - 0.1).max() < 0.012


def test_the_labels_that_a_verdict_may_take_are_those_of_the_page():
    shares = [r["labels, median share"] for r in STORED if r["kind"] == "migration"]
    assert (round(min(shares), 2), round(max(shares), 2)) == DECIDING


def test_tests_of_families_keep_their_level():
    assert all(0.042 <= rate <= 0.056 for rate in rates("family", {"tukey"}))
    assert all(rate <= 0.055 for rate in rates("family", {"t, holm", "t, bonferroni"}))
    assert all(rate > 0.12 for rate in rates("family", {"t, none"}))


def test_intervals_cover_what_they_say():
    for how in ("t", "studentised"):
        assert all(0.925 <= rate <= 0.97 for rate in rates("coverage", {how}))
    large = [r["rate"] for r in STORED if r["kind"] == "coverage" and r["queries"] == 300]
    assert len(large) == 20
    assert all(0.94 <= rate <= 0.96 for rate in large)


def test_printed_effects_are_found_80_times_in_100_and_false_verdicts_keep_their_level():
    found = [r for r in STORED if r["kind"] == "detected"]
    assert {(r["unit"], r["queries"]) for r in found} == {
        *(("datasets", n) for n in (2, 3, 5, 10, 19)),
        *(("queries", n) for n in (10, 25, 50, 100, 300, 1_000)),
    }
    assert {r["name"] for r in found} == {"2 systems", "5 systems", "8 systems"}
    none = [r for r in found if r["rate"] is None]
    assert {(r["queries"], r["name"]) for r in none} == {
        *((n, f"{k} systems") for n in (2, 3, 5) for k in (2, 5, 8)),
        (10, "8 systems"),
    }
    assert all(r["false"] == 0 and r["fewest"] > r["queries"] for r in none)
    for r in found:
        error = (0.05 * 0.95 / r["count"]) ** 0.5
        assert r["false"] <= 0.05 + 2.5 * error, r
        assert r["rate"] is None or 0.78 <= r["rate"] <= 0.82, r


def test_means_over_small_groups_hold_the_truth():
    """Five groups of 2 or 7, where percentiles of resampled means cover 77% and 90%."""
    for n in (2, 7):
        draw = np.random.default_rng([21, n])
        parts = [made.one_system(draw, 400, n)[0] for _ in range(5)]
        unit = np.ones(400, np.bool_)
        low, high = mean_bounds(parts, draw, resamples=200, unit=unit).T
        assert 0.93 <= np.mean((low <= 1 / 3) & (high >= 1 / 3)) <= 0.97


@pytest.mark.parametrize("n", [3, 6])
def test_a_group_whose_values_are_all_equal_does_not_pass_for_one_without_a_variance(n):
    """A share of 0.8 in three groups, one of 3 or 6 queries, often all 1: 88% and 79% held it."""
    draw = np.random.default_rng([24, n])
    parts = [(draw.random((600, size)) < 0.8) * 1.0 for size in (n, 60, 60)]
    low, high = mean_bounds(parts, draw, unit=np.ones(600, np.bool_)).T
    assert np.mean((low <= 0.8) & (high >= 0.8)) >= 0.93


def test_shares_and_values_at_an_end_of_the_scale_have_intervals_that_hold_the_truth():
    """Ten values, most of them 1; percentiles are 1 to 1 where all are, and cover 64% of shares of 0.9."""
    draw = np.random.default_rng(22)
    for values, truth in (((draw.random((600, 10)) < 0.9) * 1.0, 0.9), made.mostly_ones(draw, 600, 10)):
        low, high = mean_bounds([values], draw, unit=np.ones(600, np.bool_)).T
        assert np.mean((low <= truth) & (high >= truth)) >= 0.91
    assert share_bounds(30, 30) == pytest.approx((0.8865, 1), abs=1e-4)


def test_a_gate_just_beyond_the_allowed_drop_asks_for_enough_queries():
    """Of a drop of 0.011, where 0.01 is allowed, a test against no drop alone asks for far too few."""
    draw = np.random.default_rng(23)
    seen = draw.normal(0, 1, 300)
    seen = (seen - seen.mean()) / seen.std(ddof=1) * 0.2 - 0.011
    [one] = gates([("", made._gate_table(seen))], GateRules(0.01))
    assert one.verdict == "undecided"
    rows = draw.normal(-0.011, 0.2, (400, one.needed))
    found = [gates([("", made._gate_table(row))], GateRules(0.01))[0].verdict for row in rows]
    assert np.mean([verdict == "fail" for verdict in found]) == pytest.approx(0.8, abs=0.04)


def test_pilots_of_eight_with_heavy_tails_ask_for_enough_queries():
    source = made.standard(lambda draw, shape: draw.laplace(0, 0.5**0.5, shape))
    rates_of = {r["queries"]: r["rate"] for r in made.plans("heavy tails", source, 600)}
    assert 0.755 <= rates_of[8] <= 0.82


def test_the_page_says_what_its_sources_do():
    """Each source of values has the truth it names, so that the figures mean what they say."""
    draw = np.random.default_rng(1)
    matrix = draw.beta(1, 2, (6, 30))
    sources = [made.alike, made.skewed, made.one_system]
    sources += [made.real(matrix, how) for how in ("swapped", "recentred", "as they are")]
    for source in sources:
        rows, truth = source(np.random.default_rng(2), 400, 500)
        assert rows.shape == (400, 500)
        error = rows.std() / np.sqrt(500)
        assert np.abs(rows.mean(axis=1) - truth).max() < 5 * error
        assert rows.mean() - truth.mean() == pytest.approx(0, abs=5 * error / 20)


def test_a_small_measurement_has_every_figure(tmp_path, monkeypatch):
    """The measuring itself, with a tenth of the smallest numbers."""
    for name in made.MATRICES.values():
        rows = np.random.default_rng(3).beta(1, 2, (50, 8))
        np.savetxt(tmp_path / f"{name}.csv", rows, delimiter=",", header=",".join("abcdefgh"), comments="")
    monkeypatch.setattr(made, "SIZES", (25,))
    monkeypatch.setattr(made, "TOGETHER", 20)
    monkeypatch.setattr(made, "FAMILY_SIZES", {"datasets": (3, 10), "queries": (10,)})
    monkeypatch.setattr(made, "FAMILY_DRAWS", {2: 1_000, 5: 1_000, 8: 1_000})
    found = made.measured(tmp_path, 20)
    own = {*made.simulate_migration.KINDS, *made.simulate_questions.KINDS}
    kinds = {(r["kind"], r.get("source", ""), r["name"]) for r in STORED if r["kind"] not in own}
    assert {(r["kind"], r.get("source", ""), r["name"]) for r in found} == kinds
    assert made.page(found).count("\n| ") > 20


def test_verdicts_looked_at_after_each_query_hold_their_level():
    of_bets = rates("looks", {"bets"})
    assert of_bets
    assert max(of_bets + rates("best by looks", {"2", "4", "8"})) <= 0.05
    assert min(rates("looks", {"t, each look"})) > 0.3  # a test of one look does not
    costs = [r for r in STORED if r["kind"] == "cost of looks"]
    assert all(r["by"][-1] > 0.98 and r["wrong"] <= 0.025 and r["mean"] < 2 * r["queries"] for r in costs)


def test_what_is_planted_is_found_and_verdicts_are_those_of_all_labels():
    assert all(r["same verdict"] >= 0.95 for r in STORED if r["kind"] == "migration")
    losses = {r["source"]: r["rate"] for r in STORED if r["kind"] == "planted losses"}
    assert losses.pop("others named") == 0
    assert set(losses.values()) == {1.0}
    defects = [r for r in STORED if r["kind"] == "planted defects"]
    assert len(defects) > 10
    assert all((r["rate"], r["false"]) == (1, 0) for r in defects)
    assert all(
        abs(r["mean"] - r["true"]) < 3 * r["error"] for r in STORED if r["kind"] == "variance components"
    )
    assert all(r["low"] <= r["true"] <= r["high"] for r in STORED if r["kind"] == "filters by lot")


@pytest.mark.parametrize("part", ["_funnels", "_components", "_filters"])
def test_a_small_planting_has_every_figure(part, monkeypatch):
    planting = made.simulate_questions
    for name in ("FUNNELS", "COMPONENTS"):
        monkeypatch.setattr(planting, name, 4)
    found = list(getattr(planting, part)())
    stored = [r for r in STORED if r["kind"] == found[0]["kind"]]
    assert [(r["kind"], r["source"], r.get("name")) for r in found] == [
        (r["kind"], r["source"], r.get("name")) for r in stored
    ]


def test_the_bound_of_leaks_holds():
    assert min(rates("leaks", {"exact"})) >= 0.95


def test_gates_that_allow_for_noise_hold_their_level():
    found = [r for r in STORED if r["kind"] == "noisy gates"]
    assert max(r["rate"] for r in found if r["name"] == "with") < 0.05 + 0.006
    assert max(r["rate"] for r in found if r["name"] == "without") > 0.2
