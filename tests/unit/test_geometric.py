"""Geometric means: logarithms for each query, exponentials of their means everywhere else."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from tests.shown import shown
from weir.api.rows import grid_tables
from weir.cli import main
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.core.scores import averaged
from weir.files.score_files import read_scores, score_lines, write_scores
from weir.measures import AP, gmAP, nDCG, parse_measure, score_run
from weir.stats.compare import ComparisonMethod, ScoreTable, across, compare_scores, compared, pooled, table
from weir.stats.resampling import few_bounds
from weir.stats.score_rows import group_row, result_rows

QRELS = {f"q{i}": {"a": 1, "b": 1} for i in range(12)}
RUN = {
    f"q{i}": {"x" * j or "a": -float(j) for j in range(1 + i % 4)} | {"b": -float(i % 5)} for i in range(10)
}


def scored(run=RUN, measures=("gmAP", "AP", "gmbpref(rel=2)")):
    return score_run(Qrels.of(QRELS), Run.of(run), measures)


def test_the_mean_is_that_of_trec_eval():
    scores = scored()
    ap = np.maximum(scores.of("AP"), 0.00001)
    assert scores.geometric == ("gmAP", "gmbpref(rel=2)")
    assert scores.of("gmAP") == pytest.approx(np.log(ap))
    assert scores.mean_values()[0] == pytest.approx(math.prod(ap.tolist()) ** (1 / len(ap)), rel=1e-12)
    assert scores.mean_values()[1] == pytest.approx(scores.of("AP").mean())
    assert scores.mean_values()[2] == pytest.approx(0.00001)
    assert scores.of("gmAP").min() == math.log(0.00001)  # two queries are not answered


def test_pytrec_eval_has_the_same_summary():
    pytrec_eval = pytest.importorskip("pytrec_eval")
    answered = {q: dict(row) for q, row in RUN.items()}
    theirs = pytrec_eval.RelevanceEvaluator(QRELS, {"gm_map"}).evaluate(answered)
    mean = pytrec_eval.compute_aggregated_measure("gm_map", [row["gm_map"] for row in theirs.values()])
    ours = score_run(Qrels.of({q: QRELS[q] for q in RUN}), Run.of(RUN), "gmAP")
    assert ours.mean_values()[0] == pytest.approx(mean, rel=1e-12)


def test_which_measures_are_geometric_is_one_question():
    assert gmAP.geometric
    assert (gmAP @ 10).geometric
    assert parse_measure("condensed(gmbpref)").geometric
    assert not AP.geometric
    assert not nDCG.geometric
    assert averaged(-1.0, True) == math.exp(-1.0)
    assert averaged(-1.0, False) == -1.0
    assert math.isnan(averaged(math.nan, True))


def test_intervals_are_exponentials_of_intervals():
    scores = scored()
    row = result_rows(scores, "d", "s")[0]
    values = scores.of("gmAP")[scores.id_order()]
    expected = np.exp(few_bounds([values]))
    assert [row.low, row.high] == pytest.approx(np.minimum(expected, 1).tolist(), rel=1e-9)
    assert 0 < row.low < row.mean < row.high <= 1
    assert row.mean == scores.mean_values()[0]


def test_a_group_averages_the_geometric_means_of_its_members():
    parts = [scored({q: RUN[q] for q in list(RUN)[:n]}) for n in (6, 10)]
    members = [result_rows(part, f"d{i}", "s")[0] for i, part in enumerate(parts)]
    values = [part.in_id_order("gmAP") for part in parts]
    group = group_row("g", members, values, geometric=True)
    assert group.mean == pytest.approx((members[0].mean + members[1].mean) / 2)
    assert members[0].low < group.mean < members[1].high
    assert 0 <= group.low < group.mean < group.high <= 1


def test_they_survive_the_file_of_scores(tmp_path):
    scores = scored()
    write_scores(scores, tmp_path / "scores.jsonl")
    again = read_scores(tmp_path / "scores.jsonl")
    assert again.geometric == scores.geometric
    assert again.mean_values().tolist() == scores.mean_values().tolist()
    kinds = {json.loads(line)["measure"]: json.loads(line).get("mean") for line in score_lines(scores)}
    assert kinds == {"gmAP": "geometric", "AP": None, "gmbpref(rel=2)": "geometric"}


def test_comparisons_show_geometric_means_and_say_that_differences_are_of_logarithms():
    worse = {q: {"x": 1.0, **{d: s - 1 for d, s in row.items()}} for q, row in RUN.items()}
    named = {"good": scored(), "worse": scored(worse)}
    first, second, *_ = compare_scores(named, "d")
    assert (first.measure, first.geometric, second.geometric) == ("gmAP", True, False)
    means = {name: scores.mean_values()[0] for name, scores in named.items()}
    assert {s.system: s.mean for s in first.standings} == pytest.approx(means)
    several = table("d", "gmAP", named)
    tiled = compared(replace(several, values=np.tile(several.values, (1, 3))))  # enough queries for intervals
    assert all(0 < s.low <= s.mean <= s.high <= 1 for s in tiled.standings)
    assert first.pairs[0].difference == pytest.approx(math.log(means["worse"] / means["good"]))
    assert "gmAP: means are geometric; differences are those of logarithms" in shown(
        "compare", [first, second]
    )
    assert "geometric" not in shown("compare", [second])
    joined = across({name: [table(name, "gmAP", named)] for name in ("d", "e")}, "two")
    assert not compared(joined).geometric  # the columns are datasets, whose geometric means are compared


def test_the_mean_over_datasets_is_that_of_geometric_means_everywhere():
    good, worse = (
        scored(),
        scored({q: {"x": 1.0, **{d: s - 1 for d, s in row.items()}} for q, row in RUN.items()}),
    )
    parts = {f"d{n}": {"good": good.take(rows), "worse": worse.take(rows)}
             for n, rows in enumerate(np.array_split(np.arange(len(good.queries)), [2, 4, 6, 8, 10]))}  # fmt: skip
    rows = [row for d, of in parts.items() for name, one in of.items() for row in result_rows(one, d, name)]
    [grid] = [g for g in grid_tables([row for row in rows if row.measure == "gmAP"]) if g.measure == "gmAP"]
    in_grid = {system: cells[-1].mean for system, cells in zip(grid.systems, grid.cells, strict=True)}
    tables = {d: [table(d, "gmAP", of)] for d, of in parts.items()}
    for interval in ("t", "two-level"):
        found = compared(across(tables, "all"), method=ComparisonMethod(interval=interval))
        assert {s.system: s.mean for s in found.standings} == pytest.approx(in_grid)
        assert all(s.low <= s.mean <= s.high for s in found.standings)
        assert found.pairs[0].difference == pytest.approx(in_grid["worse"] - in_grid["good"])
        assert found.pairs[0].low <= found.pairs[0].difference <= found.pairs[0].high
    of_groups = compared(pooled([of for [of] in tables.values()], "group"))
    assert {s.system: s.mean for s in of_groups.standings} == pytest.approx(in_grid)
    logs = [np.mean([np.mean(t.values[k]) for [t] in tables.values()]) for k in (0, 1)]
    assert of_groups.pairs[0].difference == pytest.approx(logs[1] - logs[0])
    together = across({"group": [t for [t] in tables.values()], "d0": tables["d0"]}, "two")
    expected = {name: (mean + parts["d0"][name].means()["gmAP"]) / 2 for name, mean in in_grid.items()}
    assert {s.system: s.mean for s in compared(together).standings} == pytest.approx(expected)


def test_a_mean_and_a_verdict_that_disagree_are_told_of_groups_and_cannot_of_datasets():
    rows = np.log([[0.9, 0.9, 0.01, 0.02] * 3, [0.5, 0.5, 0.2, 0.3] * 3])
    parts = [
        ScoreTable(f"g{n}", "gmAP", ("a", "b"), rows[:, n::4], geometric=True, group=f"g{n}")
        for n in range(4)
    ]
    of_groups, of_datasets = (
        compared(pooled(parts, "d")),
        compared(across({t.dataset: [t] for t in parts}, "d")),
    )
    for comparison in (of_groups, of_datasets):
        assert [s.system for s in comparison.standings] == ["a", "b"]
    assert of_groups.pairs[0].difference > 0 > of_datasets.pairs[0].difference
    sentence = "a and b are ordered otherwise by their means than by their logarithms"
    assert sentence in shown("compare", [of_groups])
    assert sentence not in shown("compare", [of_datasets])


def test_weir_eval_prints_the_geometric_mean(tmp_path, capsys):
    (tmp_path / "qrels").write_text("1 0 a 1\n2 0 a 1\n")
    (tmp_path / "run").write_text("1 Q0 a 1 1 x\n2 Q0 b 1 2 x\n2 Q0 a 2 1 x\n")
    files = [str(tmp_path / "qrels"), str(tmp_path / "run"), "-m", "gmAP"]
    assert main(["eval", *files]) == 0
    assert "0.7071 [-]" in capsys.readouterr().out
    assert main(["eval", *files, "--per-query"]) == 0
    assert capsys.readouterr().out == f"gmAP\t1\t0.0\ngmAP\t2\t{math.log(0.5)!r}\n"
