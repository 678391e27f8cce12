"""The page of calibration figures is made of the stored ones, and these are within their bounds.

tests/unit/test_inference.py repeats the most important ones with a fixed seed; scripts/make_calibration.py makes all.
"""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
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
    kinds = {(r["kind"], r.get("source", ""), r["name"]) for r in STORED}
    assert {(r["kind"], r.get("source", ""), r["name"]) for r in found} == kinds
    assert made.page(found).count("\n| ") > 20
