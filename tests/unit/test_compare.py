"""Comparisons: from scores and files to verdicts, tables and exit codes."""

from __future__ import annotations

import csv
import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest

import weir
from tests.unit.brooklet import write_collection
from tests.unit.test_imports import HEAVY, modules_after
from weir.cli import main
from weir.core.ids import Ids
from weir.core.run import Run
from weir.core.scores import Scores
from weir.errors import BadValue, UnknownName
from weir.measures.files import distinct_names
from weir.report.compare import (
    answer_notes,
    compare_csv,
    compare_json,
    compare_latex,
    compare_markdown,
    compare_text,
    verdict,
)
from weir.report.format import change, effect, probability
from weir.stats.across import across
from weir.stats.bootstrap import intervals
from weir.stats.compare import Method, Table, compare_scores, compared, table
from weir.stats.multiple import adjusted
from weir.stats.power import detectable
from weir.stats.significance import Draws, p_values


def scores(*rows, names=("m",), queries=None) -> Scores:
    values = np.array(rows, np.float64)
    ids = Ids.of(queries if queries is not None else [f"q{n:03}" for n in range(values.shape[1])])
    return Scores(names, ids, values, np.ones(values.shape[1], bool))


def made(count: int = 4, n: int = 60, step: float = 0.05) -> Table:
    """Systems s0, s1 ... each better than the one before."""
    draw = np.random.default_rng(1)
    base = draw.beta(1, 2, n)
    rows = [base + draw.normal(0, 0.08, n) + step * k for k in range(count)]
    return Table("data", "m", tuple(f"s{k}" for k in range(count)), np.stack(rows))


FAST = Method(draws=2_000)


def test_a_comparison_says_what_its_parts_say():
    given = made(3)
    found = compared(given, method=FAST)
    assert [s.system for s in found.standings] == ["s2", "s1", "s0"]
    values = given.values[::-1]
    p = p_values("permutation", values, draws=Draws(2_000))
    assert [x.p for x in found.pairs] == p.tolist()
    assert [x.adjusted for x in found.pairs] == adjusted(p, "holm").tolist()
    first = found.pairs[0]
    d = values[0] - values[1]
    assert (first.first, first.second) == ("s2", "s1")
    assert first.difference == pytest.approx(d.mean(), rel=1e-12)
    assert (first.won, first.lost, first.tied) == (int((d > 0).sum()), int((d < 0).sum()), 0)
    assert first.detectable == pytest.approx(detectable(float(d.std(ddof=1)), 60, alpha=0.05 / 3))
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
    found = compared(made(2, step=0.2), method=FAST).pairs[0]
    assert (found.verdict, verdict(found)) == ("better", "better")
    found = compared(made(2, step=0.2), "s1", FAST).pairs[0]
    assert (found.first, found.verdict) == ("s0", "worse")
    found = compared(made(2, step=0.001), method=FAST).pairs[0]
    assert verdict(found) == f"not separable (minimum detectable effect {found.detectable:.4f})"
    found = compared(made(2, step=0.001), method=replace(FAST, margin=0.1)).pairs[0]
    assert (found.verdict, found.equivalence < 0.05) == ("equivalent", True)
    row = np.linspace(0, 1, 20)
    found = compared(Table("d", "m", ("a", "b"), np.stack([row, row])), method=FAST).pairs[0]
    assert verdict(found) == "not separable (equal throughout)"
    assert (found.low, found.high, found.p, found.tied) == (0, 0, 1, 20)
    assert found.effect is None


def test_with_a_baseline_only_its_pairs_are_tested_and_counted():
    given = made(4, step=0.012)
    every, against = compared(given, method=FAST), compared(given, "s0", FAST)
    assert [p.second for p in against.pairs] == ["s0"] * 3
    of_all = {p.first: p for p in every.pairs if p.second == "s0"}
    assert all(p.p == of_all[p.first].p for p in against.pairs)
    expected = adjusted(np.array([p.p for p in against.pairs]), "holm")
    assert [p.adjusted for p in against.pairs] == expected.tolist()
    assert against.standings == every.standings
    assert against.pairs[0].detectable < of_all[against.pairs[0].first].detectable
    with pytest.raises(UnknownName, match="s0"):
        compared(given, "s00", FAST)


def test_letters_and_verdicts_agree():
    found = compared(made(5, step=0.02), method=FAST)
    by_name = {s.system: set(s.letters) for s in found.standings}
    assert any(p.verdict == "better" for p in found.pairs)
    assert any(p.verdict == "not separable" for p in found.pairs)
    for pair in found.pairs:
        assert bool(by_name[pair.first] & by_name[pair.second]) == (pair.verdict == "not separable")


def test_tukeys_test_is_not_corrected_once_more():
    found = compared(made(3), method=Method("tukey", "holm", draws=500))
    assert [p.adjusted for p in found.pairs] == [p.p for p in found.pairs]
    assert "holds for all pairs together" in compare_text([found])


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
        Method(**settings)


def test_forms():
    cs = [compared(made(3, step=0.1), "s0", FAST), compared(replace(made(2), measure="a_b"), "s0", FAST)]
    text = compare_text(cs)
    assert "m on data (60 queries)" in text
    assert "verdicts: against s0" in text
    assert "holm over 1 or 2 comparisons" in text
    assert "2,000 draws, seed 20210427" in text
    lines = [json.loads(line) for line in compare_json(cs).split("\n")]
    assert [len(x["pairs"]) for x in lines] == [2, 1]
    assert lines[0]["pairs"][0]["p"] == cs[0].pairs[0].p
    assert lines[0]["pairs"][0]["equivalence"] is None
    rows = list(csv.DictReader(compare_csv(cs).split("\n")))
    assert [float(r["difference"]) for r in rows] == [p.difference for c in cs for p in c.pairs]
    assert (rows[0]["equivalence"], rows[0]["verdict"]) == ("", "better")
    latex = compare_latex(cs)
    assert r"Dataset & System & m & a\_b \\" in latex
    assert re.search(r"data & s2 & \\textbf\{0\.\d{4}\}\$\^\{\\blacktriangle\\mathrm\{a\}\}\$ &  \\\\", latex)
    assert latex.count("\n% ") == 3
    markdown = compare_markdown(cs)
    assert re.search(r"\| data \| s2 \| \*\*0\.\d{4}\*\*▲ a \|  \|", markdown)
    assert compare_text([]) == "nothing to compare"
    worse = compared(made(2, step=0.2), "s1", FAST)
    assert r"\blacktriangledown" in compare_latex([worse])
    assert "▼" in compare_markdown([worse])


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


QRELS = {f"q{n}": {"d": 1} for n in range(12)}
GOOD = {f"q{n}": {"d": 2.0, "x": 1.0} for n in range(12)}
POOR = {f"q{n}": {"x": 2.0, "d": 1.0} for n in range(11)}


def write_run(path, run) -> str:
    lines = [f"{q} Q0 {d} 0 {s} t" for q, row in run.items() for d, s in row.items()]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


@pytest.fixture
def files(tmp_path):
    qrels = tmp_path / "qrels.tsv"
    qrels.write_text("\n".join(f"{q} 0 d 1" for q in QRELS) + "\n")
    return str(qrels), write_run(tmp_path / "good.trec", GOOD), write_run(tmp_path / "poor.trec", POOR)


def test_compare_in_python():
    found = weir.compare({"good": GOOD, "poor": POOR}, QRELS, ["RR", "P@1"])
    assert [c.measure for c in found.comparisons] == ["RR", "P@1"]
    pair = found.comparisons[0].pairs[0]
    assert (pair.first, pair.second, pair.verdict, pair.won) == ("good", "poor", "better", 12)
    assert pair.p == 2 / 2**12
    assert "good - poor" in str(found)
    runs = [Run.of(GOOD, "good"), Run.of(POOR, "poor")]
    assert weir.compare(runs, QRELS, ["RR", "P@1"]) == found
    by_name = {"good": weir.evaluate(GOOD, QRELS, ["RR"]), "poor": weir.evaluate(POOR, QRELS, ["RR"])}
    assert weir.compare(by_name).comparisons[0].pairs == found.comparisons[0].pairs
    listed = weir.compare(list(by_name.values()))
    assert [s.system for s in listed.comparisons[0].standings] == ["system 1", "system 2"]
    against = weir.compare(runs, QRELS, ["RR"], "good", "t", "none").comparisons[0]
    assert (against.pairs[0].verdict, against.method.test) == ("worse", "t")
    with pytest.raises(BadValue, match="pass them as qrels"):
        weir.compare(runs)
    with pytest.raises(BadValue, match="at least two systems; found 1"):
        weir.compare(runs[:1], QRELS)
    assert distinct_names(["a", "a"], ["x/a", "y/a"]) == ["x/a", "y/a"]


def test_compare_files(files, capsys):
    qrels, good, poor = files
    assert main(["compare", qrels, good, poor, "-m", "RR", "--baseline", "poor"]) == 0
    out, err = capsys.readouterr()
    assert "RR on qrels.tsv (12 queries)" in out
    assert re.search(r"good - poor .* better\n", out)
    assert "note: poor: 1 of 12 judged queries are not answered and score 0" in err
    assert answer_notes({"good": weir.evaluate(GOOD, QRELS)}) == []
    for form in ("--json", "--csv", "--latex", "--markdown"):
        assert main(["compare", qrels, good, poor, "-m", "RR", form]) == 0
        assert "good" in capsys.readouterr().out
    assert main(["compare", qrels, good, poor, "-m", "RR", "--json", "--draws", "50", "--seed", "3"]) == 0
    method = json.loads(capsys.readouterr().out)["method"]
    assert (method["draws"], method["seed"]) == (50, 3)


def test_compare_a_results_folder(tmp_path, capsys):
    collections = [str(write_collection(tmp_path / name)) for name in ("first", "second")]
    results = str(tmp_path / "results")
    run = [
        "run",
        *(a for c in collections for a in ("-d", c)),
        "-s",
        "bm25",
        "-s",
        "rm3",
        "-m",
        "AP",
        "-o",
        results,
    ]
    assert main([*run, "-q"]) == 0
    capsys.readouterr()
    assert main(["compare", results, "--json"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(c["dataset"], c["count"], c["unit"]) for c in found] == [
        ("first", 4, "queries"),
        ("second", 4, "queries"),
        ("2 datasets", 2, "datasets"),
    ]
    means = {s["system"]: s["mean"] for s in found[0]["standings"]}
    assert {s["system"]: s["mean"] for s in found[2]["standings"]} == means
    assert weir.compare(results).comparisons[0].dataset == "first"
    assert main(["compare", results, "-m", "RR"]) == 2
    assert "no measure among these scores named 'RR'" in capsys.readouterr().err
    assert main(["compare", results, "--baseline", "bm26"]) == 2
    assert "did you mean bm25" in capsys.readouterr().err
    assert (
        main(["run", "-d", collections[0], "-s", "bm25", "-m", "AP", "-o", str(tmp_path / "one"), "-q"]) == 0
    )
    capsys.readouterr()
    assert main(["compare", str(tmp_path / "one")]) == 2
    assert "no dataset has two systems" in capsys.readouterr().err


def test_power(files, capsys):
    qrels, good, poor = files
    write = ["power", qrels, good, poor, "-m", "RR", "-m", "P@1"]
    assert main([*write, "--effect", "0.05"]) == 0
    out = capsys.readouterr().out
    assert "RR: 12 queries, difference +0.5417, standard deviation 0.1443" in out
    assert re.search(r"0\.05 +\d+\.\d% +\d+\n", out)
    assert main([*write, "--json"]) == 0
    plans = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [p["measure"] for p in plans] == ["RR", "P@1"]
    assert [n["effect"] for n in plans[0]["needs"]] == [0.01, 0.02, 0.05]
    assert main([*write, "--effect", "0.00000001"]) == 0
    assert "more than 10,000,000" in capsys.readouterr().out


def test_gate_exits_with_its_verdict(files, capsys):
    qrels, good, poor = files
    assert main(["gate", qrels, poor, good, "-m", "RR"]) == 0
    assert capsys.readouterr().out.startswith("pass  RR: candidate - baseline +0.5417, at least +")
    assert main(["gate", qrels, good, poor, "-m", "RR", "-m", "R@10"]) == 1
    out = capsys.readouterr().out.splitlines()
    assert [line[:8] for line in out] == ["FAIL  RR", "FAIL  R@"]
    assert main(["gate", qrels, good, poor, "-m", "RR", "--max-drop", "0.9", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["passed"] is True


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["compare", "Q", "A"], "expected judgments and two or more runs, or one results folder"),
        (["compare", "Q", "A", "A"], "two of the systems are named"),
        (
            ["compare", "Q", "A", "B", "--baseline", "goof"],
            "no system to be the baseline named 'goof'; did you mean",
        ),
        (["compare", "Q", "A", "B", "--test", "fisher"], "no test named 'fisher'"),
        (["compare", "Q", "A", "B", "--level", "95"], "the level is 95"),
        (["compare", "Q", "A", "B", "-m", "RRR"], "no measure named"),
        (["compare", "missing", "A", "B"], "missing"),
        (["power", "Q", "A", "B", "--effect", "0"], "the difference to find is 0"),
        (["power", "Q", "A", "B", "--alpha", "2"], "alpha is 2"),
        (["gate", "Q", "A", "B", "--max-drop", "-1"], "the allowed drop is -1"),
        (["gate", "Q", "A", "missing"], "missing"),
        (["gate", "Q", "A", "B", "--interval", "x"], "no interval named 'x'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_a_mistake_is_one_line(files, tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    named = dict(zip("QAB", files, strict=True))
    assert main([named.get(a, a) for a in arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[-1].startswith("weir: ")
    assert message in err.splitlines()[-1]


@pytest.mark.parametrize("command", ["compare", "power", "gate"])
def test_comparing_needs_numpy_alone_and_its_help_not_even_that(files, command):
    assert not modules_after(f"from weir.cli import main\nassert main(['{command}', '--help']) == 0") & (
        HEAVY | {"numpy"}
    )
    arguments = [command, *files, "-m", "RR"]
    assert not modules_after(f"from weir.cli import main\nassert main({arguments!r}) < 2") & HEAVY


def test_one_judged_query_is_not_enough(tmp_path, capsys):
    (tmp_path / "q").write_text("q1 0 d 1\n")
    runs = [write_run(tmp_path / name, {"q1": {"d": 1.0}}) for name in ("a", "b")]
    for command in ("compare", "power", "gate"):
        assert main([command, str(tmp_path / "q"), *runs, "-m", "RR"]) == 2
        assert "the systems share one query only" in capsys.readouterr().err
