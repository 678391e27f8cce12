"""What cannot be compared is said in a sentence, and no table prints a number that is none."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import weir
from tests.shown import shown
from tests.unit.brooklet import write_collection
from tests.unit.cells import changed, write_cell
from weir.api.result_set import ResultSet
from weir.api.rows import ROWS
from weir.cli import main
from weir.core.scores import Row, Scores
from weir.core.strings import Ids
from weir.errors import BadValue, UnknownName
from weir.experiment.stages import records_in, write_record
from weir.files.integrity import Checksum
from weir.files.score_files import read_scores, write_scores
from weir.stats.compare import Comparison, ComparisonMethod, ScoreTable, compare_scores, compared
from weir.stats.resampling import INTERVALS, fewest
from weir.stats.significance import TESTS

NAMES = [f"q{n}" for n in range(6)]
NUMBER = re.compile(r"\b(nan|NaN|inf|Infinity)\b")


def of(values: list[float], queries: list[str] = NAMES) -> Scores:
    return Scores(("m",), Ids.of(queries), np.array([values], np.float64), np.ones(len(values), bool))


GOOD = of([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (of([0.5, 0.5], ["x", "y"]), "data, m: the systems share no query; a comparison needs at least two"),
        (of([], []), "the systems share no query"),
        (of([0.5, 0.5], ["q1", "y"]), "the systems share one query only; a comparison needs at least two"),
        (of([math.nan] * 6), "no query has a value of every system; a comparison needs at least two"),
        (of([math.nan] * 5 + [0.3]), "only one query has a value of every system"),
        (of([math.inf] * 6), "some are undefined or infinite"),
    ],
)
def test_systems_that_cannot_be_compared(other, message):
    for pair in ({"a": GOOD, "b": other}, {"b": other, "a": GOOD}):
        with pytest.raises(BadValue, match=message):
            compare_scores(pair, "data")
        with pytest.raises(BadValue, match=message.removeprefix("data, ")):
            weir.compare(pair)


def test_values_that_are_undefined_for_some_queries_are_left_out_and_counted():
    other = of([math.nan, 0.1, 0.1, 0.1, math.nan, 0.1])
    text = str(weir.compare({"a": GOOD, "b": other}))
    assert "(4 queries, 2 left out that not all systems have)" in text
    assert not NUMBER.search(text)


def test_a_baseline_that_is_not_there():
    with pytest.raises(UnknownName, match="no system to be the baseline named 'goof'; did you mean good"):
        weir.compare({"good": GOOD, "b": GOOD}, baseline="goof")


@cache
def edges() -> list[Comparison]:
    """Every test and interval on equal, constant, opposite and tiny values, and on two queries."""
    row = np.linspace(0, 1, 12)
    pairs = {
        "equal": (row, row),
        "constant": (np.full(12, 0.25), np.full(12, 0.5)),
        "zero": (np.zeros(12), np.zeros(12)),
        "shifted": (row, row + 0.1),
        "opposite": (row, row[::-1]),
        "tiny": (row * 1e-300, row[::-1] * 1e-300),
        "one differs": (row, np.append(row[:-1], 0.9)),
        "two queries": (np.array([0.1, 0.2]), np.array([0.3, 0.1])),
    }
    methods = [ComparisonMethod(test, draws=50, margin=0.01) for test in sorted(TESTS)]
    methods += [ComparisonMethod("t", interval=interval) for interval in sorted(INTERVALS)]
    return [
        compared(ScoreTable(name, "m", ("a", "b"), np.stack(values)), baseline, method)
        for name, values in pairs.items()
        for method in methods
        for baseline in (None, "a")[: 1 + (method.test == "t")]
    ]


def test_no_number_of_a_comparison_is_none_in_silence():
    for c in edges():
        for s in c.standings:
            assert math.isfinite(s.mean)
            assert (s.low is None) == (s.high is None)
            assert s.low is None or c.count >= fewest()
            assert s.low is None or np.isfinite([s.low, s.high]).all(), c
        for p in c.pairs:
            alike = 0 in (p.won + p.lost, p.won + p.tied, p.lost + p.tied)  # equal, if all changed so
            assert (p.low is None) == (p.high is None)
            assert c.count < fewest() if p.low is None and not alike else p.low is None or c.count >= fewest()
            assert p.low is None or np.isfinite([p.low, p.high]).all(), c
            assert np.isfinite([p.difference, p.p, p.adjusted]).all(), c
            assert p.detectable is None or math.isfinite(p.detectable)
            assert 0 <= p.p <= 1
            assert p.effect is None or math.isfinite(p.effect)
            assert p.equivalence is None or 0 <= p.equivalence <= 1


@pytest.mark.parametrize("form", ["text", "csv", "json", "latex", "markdown"])
def test_no_table_of_a_comparison_prints_nan(form):
    text = shown("compare", edges(), form)
    assert len(text) > 500
    assert not NUMBER.search(text), NUMBER.search(text)


@pytest.mark.parametrize("form", ["text", "csv", "json", "latex", "markdown"])
def test_even_numbers_that_are_none_are_shown_as_missing(form):
    one = compared(
        ScoreTable("d", "m", ("a", "b"), np.stack([np.arange(5.0), np.arange(5.0) * 2])),
        method=ComparisonMethod("t"),
    )
    none = math.nan
    pair = replace(
        one.pairs[0], low=none, high=none, p=none, adjusted=none, detectable=none, equivalence=none
    )
    standing = replace(one.standings[0], mean=none, low=none, high=none)
    standings = (standing, *one.standings[1:])
    assert not NUMBER.search(shown("compare", [replace(one, pairs=(pair,), standings=standings)], form))


@pytest.mark.parametrize("form", ["text", "csv", "json", "latex"])
def test_a_mean_that_is_undefined_is_shown_as_missing(form):
    rows = (Row("d", "s", "m", math.nan, math.nan, math.nan, 3, 0), Row("d", "t", "m", 0.5, 0.4, 0.6, 3, 3))
    text = ResultSet(ROWS, rows).shown(form, options={"long": True})
    assert not NUMBER.search(text)
    assert "0.5" in text


def write(folder, queries: list[str], runs: dict[str, dict[str, list[str]]]) -> list[str]:
    """Judgments and runs: documents in order for each query, `r` being the relevant one."""
    (folder / "qrels").write_text("".join(f"{q} 0 r 1\n" for q in queries), encoding="utf-8")
    for name, run in runs.items():
        lines = [f"{q} Q0 {d} 0 {-n} x\n" for q, docs in run.items() for n, d in enumerate(docs)]
        (folder / name).write_text("".join(lines), encoding="utf-8")
    return [str(folder / name) for name in ("qrels", *runs)]


def test_all_scores_equal_on_the_command_line(tmp_path, capsys):
    run = {q: ["r", "x"] for q in NAMES}
    files = write(tmp_path, NAMES, {"a": run, "b": run})
    assert main(["compare", *files, "-m", "RR"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"b - a .* 0/0/6 .* not separable \(equal throughout\)", out)
    assert main(["gate", *files, "-m", "RR"]) == 0
    assert main(["power", *files, "-m", "RR"]) == 0
    assert not NUMBER.search(out + capsys.readouterr().out)


def test_runs_that_answer_no_judged_query_on_the_command_line(tmp_path, capsys):
    files = write(tmp_path, NAMES, {"a": {"other": ["r"]}, "b": {"another": ["r"]}})
    assert main(["compare", *files, "-m", "RR"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "no query in common: of 1 in the run one is 'other', of 6 judged ones 'q0'" in err


ONE_QUERY = "qrels, RR: the systems share one query only; a comparison needs at least two"
GATED = "qrels has one query with a value of RR (q1), which tells nothing of others; a gate needs two queries"


@pytest.mark.parametrize(("command", "said"), [("compare", ONE_QUERY), ("power", ONE_QUERY), ("gate", GATED)])
def test_one_query_on_the_command_line(tmp_path, capsys, command, said):
    files = write(tmp_path, ["q1"], {"a": {"q1": ["r"]}, "b": {"q1": ["x", "r"]}})
    assert main([command, *files, "-m", "RR"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[-1].startswith(f"weir: {said}")


@pytest.mark.parametrize("baseline", ["bm26", ""])
def test_a_baseline_that_is_not_there_on_the_command_line(tmp_path, capsys, baseline):
    files = write(tmp_path, NAMES, {"bm25": {}, "b": {}})
    for name in ("bm25", "b"):
        (tmp_path / name).write_text("q1 Q0 r 0 1 x\n", encoding="utf-8")
    assert main(["compare", *files, "-m", "RR", "--baseline", baseline]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert f"no system to be the baseline named '{baseline}'" in err.splitlines()[-1]


def test_a_results_folder_whose_systems_share_no_query(tmp_path, capsys):
    """As when a split was edited between two runs: each system's scores are of other queries."""
    collection, results = write_collection(tmp_path / "data"), tmp_path / "results"
    wanted = ["run", "-d", str(collection), "-m", "AP", "-o", str(results), "-q", "-s"]
    assert main([*wanted, "bm25"]) == 0
    for path, before in (
        (collection / "queries.jsonl", '"_id": "'),
        (collection / "qrels" / "test.tsv", "\n"),
    ):
        head, *rest = path.read_text(encoding="utf-8").rstrip("\n").split(before)
        path.write_text(head + "".join(f"{before}other {one}" for one in rest) + "\n", encoding="utf-8")
    assert main([*wanted, "rm3"]) == 0
    capsys.readouterr()
    assert main(["compare", str(results)]) == 2
    assert (
        "bm25 on data was scored by other judgments than the last ones asked for" in capsys.readouterr().err
    )


def test_a_results_folder_whose_systems_have_no_value_of_one_query(tmp_path, capsys):
    for name, value in (("bm25", 0.5), ("rm3", math.nan)):
        folder = write_cell(
            tmp_path / "mine" / name, manifest=changed("system.system", name), measures=("AP",)
        )
        [(path, record)] = records_in(folder, "scores-*.json")
        scores = read_scores(path.with_suffix(".jsonl"))
        write_scores(replace(scores, values=np.full_like(scores.values, value)), path.with_suffix(".jsonl"))
        write_record(
            path, replace(record, files=dict.fromkeys(record.files, Checksum.of(path.with_suffix(".jsonl"))))
        )
    assert main(["compare", str(tmp_path)]) == 2
    assert "no dataset has two queries with a value of two systems" in capsys.readouterr().err
