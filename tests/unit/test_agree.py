"""weir labels agree, and the order of systems under two sets of labels."""

from __future__ import annotations

import json
import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weir
from weir.cli import main
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.errors import BadValue
from weir.measures import parse_measure
from weir.stats.order_agreement import kendall_tau, order_agreement, tau_ap

NAMES = [f"q{i}" for i in range(12)]
HUMAN = Qrels.of({n: {"a": 2, "b": int(i % 2), "c": 0} for i, n in enumerate(NAMES)})
MODEL = Qrels.of({n: {"a": 2 - int(i % 5 == 0), "b": 1, "c": 0} for i, n in enumerate(NAMES)})
RUNS = {
    s: Run.of({n: list(order) for n in NAMES})
    for s, order in (("one", "abc"), ("two", "bac"), ("three", "cba"))
}


def test_too_many_grades_are_of_named_columns_and_the_others_can_be_chosen(tmp_path, capsys):
    rows = (f"q{n}\td\t{n % 3}\t{n % 70 / 70}\t{n % 90 / 90}\t{n % 2}\n" for n in range(150))
    table = tmp_path / "all.tsv"
    table.write_text("query-id\tcorpus-id\thuman\texam\tnuggets\tbinary\n" + "".join(rows))
    assert main(["labels", "agree", str(table)]) == 2
    said = capsys.readouterr().err
    assert "different grades (nuggets has 90, exam has 70, human has 3, binary has 2)" in said
    assert "FILE#COLUMN" in said
    assert main(["labels", "agree", f"{table}#human", f"{table}#binary"]) == 0


def test_the_ap_correlation_is_the_worked_one():
    """judge-examples.json, tau-ap: 0.5, where Kendall's tau is 0.8."""
    human, model = np.array([0.5, 0.45, 0.4, 0.35, 0.3]), np.array([0.61, 0.63, 0.55, 0.54, 0.4])
    assert tau_ap(human, model) == pytest.approx(0.5, abs=1e-12)
    assert kendall_tau(human, model) == pytest.approx(0.8, abs=1e-12)


@given(st.permutations(range(6)))
def test_the_ap_correlation_is_1_for_the_same_order_and_minus_1_for_the_reverse(order):
    truth = np.array(order, float)
    assert tau_ap(truth, truth * 2) == pytest.approx(1, abs=1e-12)
    assert tau_ap(truth, -truth) == pytest.approx(-1, abs=1e-12)


# Values and correlations of ircor's tests (Urbano and Marrero; MIT licence).
AP_CORRELATIONS = [
    ("897 372 908 898 661 062 177 384 498 992", "820 406 817 953 673 073 364 547 589 988", 0.8519, 0.8333),
    ("266 573 202 945 629 206 687 770 718 380", "263 843 728 928 080 114 467 641 973 644", 0.2504, 0.2880),
    ("9 4 9 9 7 1 2 4 5 10", "8 4 8 10 7 1 4 5 6 10", None, 0.7321),
    ("3 6 2 9 6 2 7 8 7 4", "3 8 7 9 1 1 5 6 10 6", None, 0.2970),
    ("2 6 9 1 5 6 8 4 10 4", "8 3 3 9 6 3 2 9 0 2", None, -0.7047),
]


@pytest.mark.parametrize(("x", "y", "one_way", "both"), AP_CORRELATIONS)
def test_the_ap_correlation_is_that_of_its_authors_with_ties_too(x, y, one_way, both):
    x, y = (np.array(row.split(), float) for row in (x, y))
    assert one_way is None or tau_ap(x, y) == pytest.approx(one_way, abs=5e-5)
    assert (tau_ap(x, y) + tau_ap(y, x)) / 2 == pytest.approx(both, abs=5e-5)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=7))
def test_the_ap_correlation_knows_no_order_of_input(pairs):
    ways = [tau_ap(*np.array(p, float).T) for p in (pairs, pairs[::-1])]
    assert ways[0] == pytest.approx(ways[1], abs=1e-12, nan_ok=True)
    assert math.isnan(ways[0]) == (len({estimate for _, estimate in pairs}) == 1)


def test_an_order_of_two_systems_that_are_equal_in_truth_is_an_error_of_the_ap_correlation():
    assert tau_ap(np.array([3.0, 2, 2, 1]), np.array([4.0, 3, 2, 1])) == pytest.approx(2 / 3, abs=1e-12)


def test_orders_and_decisions_of_the_same_labels_agree():
    measure = parse_measure("nDCG@10")
    same = order_agreement(RUNS, HUMAN, HUMAN, measure)
    assert (same.tau, same.tau_ap, same.top, same.decisions, same.turned) == (1, 1, 1, 1, 0)
    means = [weir.evaluate(HUMAN, run, [measure]).means()["nDCG@10"] for run in RUNS.values()]
    assert same.first == pytest.approx(means, abs=1e-12)
    turned = Qrels.of({n: {"a": 0, "b": 0, "c": 2} for n in NAMES})
    assert order_agreement(RUNS, HUMAN, turned, measure).turned >= 1
    with pytest.raises(BadValue, match="two or more"):
        order_agreement({"one": RUNS["one"]}, HUMAN, MODEL, measure)


def test_the_command_and_its_equal_say_the_same(tmp_path, capsys):
    HUMAN.save(tmp_path / "people.tsv")
    MODEL.save(tmp_path / "model.tsv")
    RUNS["one"].save(tmp_path / "one.trec")
    RUNS["two"].save(tmp_path / "two.trec")
    labels = [str(tmp_path / name) for name in ("people.tsv", "model.tsv")]
    runs = [part for name in ("one", "two") for part in ("--run", str(tmp_path / f"{name}.trec"))]
    assert main(["labels", "agree", *labels]) == 0
    text = capsys.readouterr().out
    assert text.strip() == repr(weir.labels.agree(*labels))
    assert "36 pairs of 12 queries are labelled by both" in text
    assert main(["labels", "agree", *labels, *runs, "--json"]) == 0
    one, orders = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert (one["pairs"], orders["systems"]) == (36, ["one", "two"])
    Qrels.of({"other": {"x": 1}}).save(tmp_path / "strange.tsv")
    assert main(["labels", "agree", labels[0], str(tmp_path / "strange.tsv")]) == 2
    assert "no pair of query and document is judged by both" in capsys.readouterr().err


def test_one_query_has_no_interval():
    agreed = weir.labels.agree({"q": {"a": 1, "b": 0, "c": 2}}, {"q": {"a": 1, "b": 1, "c": 2}})
    [one] = agreed
    assert one.value("accuracy") == pytest.approx(2 / 3)
    assert all(math.isnan(low) and math.isnan(high) for _, _, low, high in one.values)
    assert re.search(r"accuracy +0.6667 +-", str(agreed))


@pytest.mark.parametrize("queries", [1, 2, 5, 6])
def test_few_queries_have_no_interval_and_it_says_why(queries):
    labels = [{f"q{n}": {f"d{d}": (d + n * i) % 2 for d in range(6)} for n in range(queries)} for i in (0, 1)]
    pair = weir.labels.agree(*labels)
    bounds = [bound for _, _, *ends in pair[0].values for bound in ends]
    assert all(map(math.isnan, bounds)) == (queries < 6)
    assert ("no interval: fewer than 6 queries" in str(pair)) == (queries < 6)


def test_means_of_several_raters_are_shown_by_whole_grades(tmp_path, capsys):
    paths = [tmp_path / "one.tsv", tmp_path / "means.tsv"]
    for path, part in zip(paths, (1, 7), strict=True):
        rows = (f"q{n % 7} 0 d{n} {n % 4 if part == 1 else n % 22 / part:.3f}\n" for n in range(154))
        path.write_text("".join(rows))
    assert main(["labels", "agree", *map(str, paths)]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) < 120
    assert len(out.splitlines()) < 40
    assert "25 distinct grades, rounded to whole ones in this table alone" in out or "22 distinct" in out
