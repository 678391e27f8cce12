"""Comparisons: from scores to verdicts and tables."""

from __future__ import annotations

import csv
import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ttest_rel

from tests.shown import shown
from weir.api.comparison_tables import COMPARISONS
from weir.api.result_set import ResultSet
from weir.cli import main
from weir.core.rounding import change, effect, probability
from weir.core.scores import Scores
from weir.core.strings import Ids
from weir.errors import BadValue, UnknownName
from weir.stats.compare import (
    ComparisonMethod,
    ScoreTable,
    across,
    compare_scores,
    compared,
    compared_together,
    table,
    verdict,
)
from weir.stats.power import Family, detectable, equivalence, excess_kurtosis
from weir.stats.resampling import Draws, fewest, intervals
from weir.stats.significance import adjusted, p_values


def scores(*rows, names=("m",), queries=None) -> Scores:
    values = np.array(rows, np.float64)
    ids = Ids.of(queries if queries is not None else [f"q{n:03}" for n in range(values.shape[1])])
    return Scores(names, ids, values, np.ones(values.shape[1], bool))


def made(count: int = 4, n: int = 60, step: float = 0.05) -> ScoreTable:
    """Systems s0, s1 ... each better than the one before."""
    draw = np.random.default_rng(1)
    base = draw.beta(1, 2, n)
    rows = [base + draw.normal(0, 0.08, n) + step * k for k in range(count)]
    return ScoreTable("data", "m", tuple(f"s{k}" for k in range(count)), np.stack(rows))


FAST = ComparisonMethod(draws=2_000)


def test_a_comparison_says_what_its_parts_say():
    given = made(3)
    found = compared(given, method=FAST)
    assert [(s.system, s.best, s.worst) for s in found.standings] == [
        ("s2", 1, 1),
        ("s1", 2, 2),
        ("s0", 3, 3),
    ]
    values = given.values[::-1]
    p = p_values("permutation", values, draws=Draws(2_000))
    assert [x.p for x in found.pairs] == p.tolist()
    assert [x.adjusted for x in found.pairs] == adjusted(p, "holm").tolist()
    first = found.pairs[0]
    d = values[0] - values[1]
    assert (first.first, first.second, first.comparisons) == ("s1", "s2", 3)
    assert first.difference == pytest.approx(d.mean(), rel=1e-12)
    assert (first.won, first.lost, first.tied) == (int((d > 0).sum()), int((d < 0).sum()), 0)
    every = values[[0, 0, 1]] - values[[1, 2, 2]]
    assert first.detectable == pytest.approx(
        detectable(float(d.std(ddof=1)), 60, family=Family(3, 2), kurtosis=excess_kurtosis(every))
    )
    assert first.effect == pytest.approx(d.mean() / d.std(ddof=1) * (1 - 3 / (4 * 59 - 1)))
    assert first.low < first.difference < first.high
    assert first.equivalence is None
    means = intervals(scores(*given.values, names=given.systems))
    by_name = {s.system: s for s in found.standings}
    # As `weir eval` shows them; tables sort queries by descending identifier, so these are given so too.
    backwards = compared(replace(given, values=given.values[:, ::-1]), method=FAST)
    for name, expected in zip(given.systems, means, strict=True):
        assert by_name[name].mean == expected.mean
        shown = next(s for s in backwards.standings if s.system == name)
        assert (shown.low, shown.high) == (expected.low, expected.high)


def test_verdicts():
    whole = compared(made(2, step=0.2), method=FAST)
    assert (whole.pairs[0].verdict, verdict(whole.pairs[0], whole)) == ("better", "better")
    found = compared(made(2, step=0.2), "s1", FAST).pairs[0]
    assert (found.first, found.second, found.verdict) == ("s1", "s0", "worse")
    whole = compared(made(2, step=0.001), method=FAST)
    effect_ = whole.pairs[0].detectable
    assert verdict(whole.pairs[0], whole) == f"not separable (minimum detectable effect {effect_:.4f})"
    found = compared(made(2, step=0.001), method=replace(FAST, margin=0.1)).pairs[0]
    assert (found.verdict, found.equivalence < 0.05) == ("equivalent", True)
    row = np.linspace(0, 1, 20)
    whole = compared(ScoreTable("d", "m", ("a", "b"), np.stack([row, row])), method=FAST)
    found = whole.pairs[0]
    assert verdict(found, whole) == "not separable (equal throughout)"
    assert (found.low, found.high, found.p, found.tied) == (None, None, 1, 20)
    assert found.effect is None


def test_with_a_baseline_only_its_pairs_are_tested_and_counted():
    given = made(4, step=0.012)
    every, against = compared(given, method=FAST), compared(given, "s0", FAST)
    assert [p.first for p in against.pairs] == ["s0"] * 3
    of_all = {p.second: p for p in every.pairs if p.first == "s0"}
    assert all(p.p == of_all[p.second].p for p in against.pairs)
    expected = adjusted(np.array([p.p for p in against.pairs]), "holm")
    assert [p.adjusted for p in against.pairs] == expected.tolist()
    assert [(s.mean, s.low, s.high) for s in against.standings] == [
        (s.mean, s.low, s.high) for s in every.standings
    ]
    assert against.pairs[0].detectable < of_all[against.pairs[0].second].detectable
    with pytest.raises(UnknownName, match="s0"):
        compared(given, "s00", FAST)


def test_letters_and_verdicts_agree():
    found = compared(made(5, step=0.02), method=FAST)
    by_name = {s.system: set(s.letters) for s in found.standings}
    assert any(p.verdict == "better" for p in found.pairs)
    assert any(p.verdict == "not separable" for p in found.pairs)
    for pair in found.pairs:
        assert bool(by_name[pair.first] & by_name[pair.second]) == (pair.verdict == "not separable")


@pytest.mark.parametrize("baseline", [None, "s1"])
@pytest.mark.parametrize("step", [0.005, 0.02, 0.05])
def test_ranks_follow_from_the_verdicts(step, baseline):
    found = compared(made(5, step=step), baseline, replace(FAST, margin=0.001))
    worse = [(p.first, p.second) if p.verdict == "better" else (p.second, p.first)
             for p in found.pairs if p.verdict in ("better", "worse")]  # fmt: skip
    if baseline is not None:  # and from what stands on both sides of the baseline
        worse += [(low, high) for low, of in worse for other, high in worse if of == other == baseline]
    for s in found.standings:
        better_than_it = sum(s.system == low for low, _ in worse)
        assert (s.best, s.worst) == (1 + better_than_it, 5 - sum(s.system == high for _, high in worse))
        assert bool(s.letters) == (baseline is None)
    # Whoever shares a letter with another, and so cannot be told from it, shares a rank with it.
    for p in found.pairs:
        a, b = (next(s for s in found.standings if s.system == name) for name in (p.first, p.second))
        if p.verdict == "not separable":
            assert max(a.best, b.best) <= min(a.worst, b.worst)


def test_the_family_of_comparisons_stands_beside_each_verdict():
    every, against = compared(made(4), method=FAST), compared(made(4), "s0", FAST)
    assert ({p.comparisons for p in every.pairs}, {p.comparisons for p in against.pairs}) == ({6}, {3})
    assert "verdict (holm, adjusted over 6 comparisons)" in shown("compare", [every])
    assert "verdict (holm, adjusted over 3 comparisons)" in shown("compare", [against])
    assert "verdict (not adjusted)" in shown(
        "compare", [compared(made(4), method=replace(FAST, correct="none"))]
    )
    assert "verdict (tukey over all 6 pairs)" in shown(
        "compare", [compared(made(4), "s0", replace(FAST, test="tukey"))]
    )
    assert "group" not in shown("compare", [against])  # of pairs that are not compared nothing is said


def test_the_order_given_turns_differences_round_and_moves_nothing_else():
    given = made(3)
    turned = replace(given, systems=given.systems[::-1], values=given.values[::-1])
    for test in ("permutation", "tukey", "wilcoxon"):
        a, b = (compared(t, method=replace(FAST, test=test)) for t in (given, turned))
        assert a.standings == b.standings
        for p, q in zip(a.pairs, b.pairs, strict=True):
            assert (p.first, p.second, p.difference, p.p) == (q.second, q.first, -q.difference, q.p)
            assert (p.low, p.high) == pytest.approx((-q.high, -q.low), abs=1e-12)


def test_few_queries_have_no_interval_and_no_interval_leaves_what_is_possible():
    few = made(2, n=5)
    found = compared(few, method=FAST)
    assert {(s.low, s.high) for s in found.standings} == {(None, None)}
    assert (found.pairs[0].low, found.pairs[0].high) == (None, None)
    assert "too few queries for an interval: 5, at least 6 are needed" in shown("compare", [found])
    assert "holds the median 93.8% of the time" in shown("compare", [found])
    assert fewest(0.9) == 5
    assert compared(made(2, n=6), method=FAST).pairs[0].low is not None
    # Six queries, five at the bound: Student's interval alone runs to -1.26.
    lost = np.stack([np.ones(6), np.array([0, 0, 0, 0, 0, 1.0])])
    bounded = compared(replace(few, values=lost, span=1.0), method=FAST).pairs[0]
    expected = ttest_rel(lost[1], lost[0]).confidence_interval(0.95)
    assert expected.low < -1.2
    assert (bounded.low, bounded.high) == (-1, pytest.approx(expected.high))
    assert bounded.detectable is None or bounded.detectable <= 1
    two = scores([0.1, 0.9]), scores([0.9, 0.2])
    assert table("d", "m", dict(zip("ab", two, strict=True))).span == math.inf
    unit = {n: replace(s, measures=("nDCG@10",)) for n, s in zip("ab", two, strict=True)}
    text = shown("compare", compare_scores(unit, "d"))
    assert "not separable (too few queries)" in text
    assert "6 queries could bring it below 0.05" in text
    by_t = shown("compare", compare_scores(unit, "d", method=replace(FAST, test="t")))
    assert "not even the largest difference would be found" in by_t
    assert not re.search(r"[1-9]\d*\.(?!0000)\d{4}", text.partition("difference: ")[0])


def test_tukeys_test_is_not_corrected_once_more():
    found = compared(made(3), method=ComparisonMethod("tukey", "holm", draws=500))
    assert [p.adjusted for p in found.pairs] == [p.p for p in found.pairs]
    assert "p: tukey (randomised HSD), 500 draws" in shown("compare", [found], explain=True)


def test_equivalence_is_corrected_over_all_pairs_and_tables_whatever_the_test():
    tables = [replace(made(3, n=n), dataset=f"d{n}") for n in (20, 30, 40)]
    for test in ("permutation", "tukey"):
        method = ComparisonMethod(test, "holm", draws=50, margin=0.1)
        single = [compared(one, method=method) for one in tables]
        together = compared_together(tables, method=method)
        for comparisons in (*([one] for one in single), together):
            raw, corrected = [], []
            for one in comparisons:
                of = next(t for t in tables if t.dataset == one.dataset)
                row = dict(zip(of.systems, of.values, strict=True))
                raw += [equivalence(row[p.second] - row[p.first], 0.1) for p in one.pairs]
                corrected += [p.equivalence for p in one.pairs]
            assert corrected == pytest.approx(adjusted(np.array(raw), "holm").tolist())
        assert together[0].pairs[0].equivalence > single[0].pairs[0].equivalence


def test_a_p_value_at_the_level_is_not_below_it():
    values = np.stack([np.zeros(40), np.full(40, 0.5)]) + np.random.default_rng(0).normal(0, 0.01, (2, 40))
    verdicts = {}
    for draws in (19, 20):  # the least p-value is 1 / (draws + 1)
        found = compared(ScoreTable("d", "m", ("a", "b"), values), method=ComparisonMethod(draws=draws))
        verdicts[draws] = (found.pairs[0].p < 0.05, found.pairs[0].verdict != "not separable")
        assert ("; 20 draws could bring it below 0.05" in shown("compare", [found])) == (draws == 19)
    assert verdicts == {19: (False, False), 20: (True, True)}


def test_a_table_pairs_by_query_and_leaves_out_what_is_undefined():
    a = scores([0.1, 0.2, 0.3, 0.4], queries=["x", "y", "z", "w"])
    b = scores([0.4, math.nan, 0.2, 0.9], queries=["w", "z", "y", "other"])
    found = table("d", "m", {"a": a, "b": b})
    assert found.left_out == 3  # z, x and other
    assert found.values.tolist() == [[0.2, 0.4], [0.2, 0.4]]
    for other, message in (
        (scores([1.0], queries=["nothing"]), "the systems share no query"),
        (scores([1.0, 1.0], queries=["x", "nothing"]), "the systems share one query only"),
    ):
        with pytest.raises(BadValue, match=message):
            table("d", "m", {"a": a, "b": other})
    with pytest.raises(BadValue, match="at least two systems; found 1"):
        table("d", "m", {"a": a})
    with pytest.raises(BadValue, match="no measure in common"):
        compare_scores({"a": a, "b": scores([0.1, 0.2], names=("n",))}, "d")


def test_across_datasets_the_columns_are_datasets():
    parts = [replace(made(2, n=9 + k, step=0.3), dataset=f"d{k}") for k in range(4)]
    joined = across({"d0": parts[:1], "d1": parts[1:2], "group": parts[2:]}, "3 datasets")
    assert joined.values.shape == (2, 3)
    assert joined.values[:, 0] == pytest.approx(parts[0].values.mean(axis=1))
    assert joined.values[:, 2] == pytest.approx(
        (parts[2].values.mean(axis=1) + parts[3].values.mean(axis=1)) / 2
    )
    found = compared(joined, method=FAST)
    assert (found.unit, found.count, found.pairs[0].won) == ("datasets", 3, 3)
    assert found.pairs[0].p == 0.25
    with pytest.raises(BadValue, match="at least two; found 1"):
        across({"d0": parts[:1]}, "x")
    with pytest.raises(BadValue, match="same systems"):
        across({"d0": parts[:1], "d1": [replace(parts[1], measure="n")]}, "x")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"test": "permutatoin"}, "did you mean permutation"),
        ({"correct": "hom"}, "did you mean holm"),
        ({"interval": "bcas"}, "did you mean bca"),
        ({"level": 95}, "level"),
        ({"level": math.nan}, "level"),
        ({"power": 0.01}, "power"),
        ({"draws": 0}, "draws"),
        ({"margin": -1.0}, "margin"),
    ],
)
def test_a_method_that_cannot_be_is_refused(settings, message):
    with pytest.raises((BadValue, UnknownName), match=message):
        ComparisonMethod(**settings)


def test_forms():
    cs = [compared(made(3, step=0.1), "s0", FAST), compared(replace(made(2), measure="a_b"), "s0", FAST)]
    text = shown("compare", cs, explain=True)
    assert "m on data (60 queries)" in text
    assert "difference: each minus the baseline" in text
    assert (
        "interval of a mean: percentiles of 10,000 bootstrap means; Student's for fewer than 50 values"
        in text
    )
    assert "holm, adjusted over 2 comparisons" in text
    assert "holm, adjusted over 1 comparison)" in text
    assert "2,000 draws, seed 20210427" in text
    lines = [json.loads(line) for line in shown("compare", cs, "json").split("\n")]
    assert [len(x["pairs"]) for x in lines] == [2, 1]
    assert lines[0]["pairs"][0]["p"] == cs[0].pairs[0].p
    assert lines[0]["pairs"][0]["equivalence"] is None
    rows = list(csv.DictReader(shown("compare", cs, "csv").split("\n")))
    assert [float(r["difference"]) for r in rows] == [p.difference for c in cs for p in c.pairs]
    assert (rows[0]["equivalence"], rows[0]["verdict"]) == ("", "better")
    latex = shown("compare", cs, "latex")
    assert latex.startswith("% packages: booktabs, amssymb\n\\noindent\\textbf{data}\\par")
    assert r"System & m & a\_b \\" in latex
    assert re.search(
        r"s2 & \\textbf\{0\.\d{4}\}\$\^\{\\blacktriangle\}\$ \[0\.\d{4}, 0\.\d{4}\] &  \\\\", latex
    )
    assert r"\mathrm{a}}$" in shown("compare", [compared(made(3, step=0.1), method=FAST)], "latex")
    assert latex.count("\\par\n") == 8
    markdown = shown("compare", cs, "markdown")
    assert re.search(r"\| s2 \| \*\*0\.\d{4}\*\*▲ \\\[0\.\d{4}, 0\.\d{4}\\\] \|  \|", markdown)
    for form, cell in (("latex", "{} & "), ("markdown", "| {} |"), ("html", "<bdi>{}</bdi>")):
        page = shown("compare", cs, form)
        assert page.index(cell.format("s2")) < page.index(cell.format("s2 - s0"))  # means, then pairs
        assert len(re.findall(r"(?:& |\| |<bdi>)better(?: \\\\| \||</bdi>)", page)) == 3
    worse = compared(made(2, step=0.2), "s1", FAST)
    assert r"\blacktriangledown" in shown("compare", [worse], "latex")
    assert "▼" in shown("compare", [worse], "markdown")


def test_numbers_as_they_are_shown():
    assert [probability(v) for v in (0.00001, 0.00005, 0.05, 1.0, math.nan)] == [
        "<0.0001",
        "0.0001",
        "0.0500",
        "1.0000",
        "-",
    ]
    assert [change(v) for v in (0.01, -0.01, math.nan)] == ["+0.0100", "-0.0100", "-"]
    assert [effect(v) for v in (0.5, None)] == ["+0.50", "-"]


def test_a_correction_of_a_test_of_all_pairs_is_refused_but_of_equivalence(capsys, tmp_path):
    for correct in ("bonferroni", "bh"):
        with pytest.raises(BadValue, match="tukey holds for all pairs together"):
            ComparisonMethod("tukey", correct)
    assert ComparisonMethod("tukey", "bonferroni", margin=0.1).correct == "bonferroni"
    assert main(["compare", "a", "b", "c", "--test", "tukey", "--correct", "holm"]) == 2
    assert "leave the correction out" in capsys.readouterr().err


@given(st.lists(st.sampled_from([-1, 0, 1]), min_size=1, max_size=6))
def test_ranks_against_a_baseline_hold_whatever_is_not_compared(outcomes):
    """What is better than the baseline stands before what is worse than it, and no order agrees that is narrower."""
    noise = np.random.default_rng(3).normal(0, 0.01, (len(outcomes) + 1, 40))
    rows = noise + 0.3 * np.array([0, *outcomes])[:, None]
    names = ("base", *(f"s{n}" for n in range(len(outcomes))))
    found = compared(ScoreTable("data", "m", names, rows), "base", ComparisonMethod("t", "none"))
    verdicts = {pair.second: pair.verdict for pair in found.pairs}
    above, below, count = (*(list(verdicts.values()).count(v) for v in ("better", "worse")), len(names))
    ranks = {
        "better": (1, count - below - 1),
        "worse": (above + 2, count),
        "not separable": (1, count),
    }
    for one in found.standings:
        expected = ranks[verdicts[one.system]] if one.system != "base" else (above + 1, count - below)
        assert (one.best, one.worst) == expected


def test_papers_tables_say_the_correction_and_what_marks_mean():
    every = [compared(replace(made(3), measure=m), method=FAST) for m in ("m", "n")]
    against = [compared(made(3), "s0", FAST)]
    for form in ("latex", "markdown", "html"):
        text = ResultSet(COMPARISONS, tuple(every)).shown(form)
        assert "verdicts: holm, adjusted over 3 comparisons" in text
        assert "each measure is corrected alone, not all of them together" in text
        assert "systems that share a letter cannot be told apart" in text
        assert "rank, by the verdicts" not in text
        text = ResultSet(COMPARISONS, tuple(against)).shown(form)
        assert "verdicts: holm, adjusted over 2 comparisons" in text
        assert ("worse than s0 (" if form == "html" else "triangles: better or worse than s0") in text
        assert "corrected alone" not in text
    text = ResultSet(COMPARISONS, tuple(against)).to_latex()
    assert text.startswith("% packages: booktabs, amssymb\n\\noindent\\textbf{data}\\par")
    assert "amssymb" not in ResultSet(COMPARISONS, tuple(every)).to_latex()
    assert "each measure is corrected alone" in shown("compare", every)


def test_papers_tables_of_several_collections_are_grids_and_of_one_do_not_repeat_its_name():
    one, other = (compared(replace(made(3), dataset=name), "s0", FAST) for name in ("north", "south"))
    for form, head, row in (
        (
            "latex",
            r"System & north & south \\",
            r"^s2 & \S+\\blacktriangle\}\$ & \S+\\blacktriangle\}\$ \\\\$",
        ),
        ("markdown", "| system | north | south |", r"^\| s2 \| \S+▲ \| \S+▲ \|$"),
    ):
        text = ResultSet(COMPARISONS, (one, other)).shown(form)
        assert head in text
        assert len(re.findall(row, text, re.MULTILINE)) == 1
        assert text.count("s2 - s0") == 2
        assert ResultSet(COMPARISONS, (one,)).shown(form).count("north") == 1


def test_minus_signs_of_latex_are_no_hyphens():
    down = replace(made(2), values=made(2).values[::-1])
    text = ResultSet(COMPARISONS, (compared(down, method=FAST),)).to_latex()
    [line] = [line for line in text.split("\n") if " - " in line]
    pair, difference = line.split(" & ")[:2]
    assert pair == "s1 - s0"
    assert re.fullmatch(r"\$-\$\d\.\d{4} \[\$-\$\d\.\d{4}, \$-\$\d\.\d{4}\]", difference)
