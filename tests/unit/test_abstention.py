"""Abstention: the worked example, MTEB's meaning of it in plain loops, and what is refused."""

from __future__ import annotations

import json
import math
import random
import statistics

import numpy as np
import pytest

from weir.cli import main
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.core.scores import Scores
from weir.core.strings import Ids
from weir.errors import BadValue, UnknownName
from weir.measures import score_run
from weir.stats.threshold import ABSTENTION_RATES as RATES
from weir.stats.threshold import CONFIDENCES, abstention, confidence_of, curve, nauc

WORKED = np.array([0.9, 0.8, 0.7, 0.6, 0.5]), np.array([1.0, 1.0, 0.0, 1.0, 0.0])


def area(sure, values, ties="mean"):
    return nauc(curve(sure, values, ties), curve(values, values, ties))


def test_the_worked_example():
    sure, values = WORKED
    own, oracle = curve(sure, values), curve(values, values)
    trapezoids = [float(np.sum((c[1:] + c[:-1]) / 20)) for c in (own, oracle)]
    assert trapezoids == pytest.approx([0.715, 0.815], abs=1e-12)
    assert own[0] * 0.9 == pytest.approx(0.54)
    assert area(sure, values) == pytest.approx(0.63636, abs=5e-6)
    assert area(values, values) == pytest.approx(1.0)
    assert area(-values, values) < 0


def plain_curve(sure, values, ties):
    """As MTEB: sort by confidence, leave out the lowest, average; tied confidences share their mean."""
    order = sorted(range(len(sure)), key=lambda i: sure[i])
    row = [values[i] for i in order]
    if ties == "mean":
        row = [statistics.fmean(values[j] for j in order if sure[j] == sure[i]) for i in order]
    found = []
    for rate in np.linspace(0, 1, 11)[:-1]:
        left_out = min(round(float(rate) * len(row)), len(row) - 1)
        found.append(statistics.fmean(row[left_out:]))
    return found


def plain_nauc(sure, values, ties):
    def trapezoids(row):
        return math.fsum(
            (b - a) * (x + y) / 2 for a, b, x, y in zip(RATES, RATES[1:], row, row[1:], strict=False)
        )

    own, oracle = plain_curve(sure, values, ties), plain_curve(values, values, ties)
    flat = oracle[0] * 0.9
    return (trapezoids(own) - flat) / (trapezoids(oracle) - flat)


@pytest.mark.parametrize("ties", ["mean", "order"])
def test_random_values_against_plain_loops(ties):
    draw = random.Random(1)
    for _ in range(40):
        n = draw.randint(2, 60)
        sure = np.array([draw.choice((draw.random(), draw.randint(0, 3))) for _ in range(n)])
        values = np.array([0.0, 1.0, *(draw.choice((0.0, 1.0, draw.random())) for _ in range(n - 2))])
        assert curve(sure, values, ties).tolist() == pytest.approx(plain_curve(sure, values, ties))
        assert area(sure, values, ties) == pytest.approx(plain_nauc(sure, values, ties), abs=1e-9)


def test_halves_are_rounded_to_even_and_one_query_is_always_left():
    sure, values = np.arange(5.0), np.arange(5.0)
    # Of 5 queries rates .1 to .9 leave out 0 (half of one), 1, 2 (1.5), 2, 2 (2.5), 3, 4 (3.5), 4 and 4 (4.5).
    assert curve(sure, values).tolist() == [2.0, 2.0, 2.5, 3.0, 3.0, 3.0, 3.5, 4.0, 4.0, 4.0]
    assert curve(np.zeros(1), np.ones(1)).tolist() == [1.0] * 10


def test_queries_of_one_confidence_count_alike_whatever_their_order():
    sure, values = np.array([0.5, 0.5, 0.5, 0.9]), np.array([1.0, 0.0, 0.0, 0.5])
    backwards = np.array([0.0, 0.0, 1.0, 0.5])
    assert curve(sure, values).tolist() == curve(sure, backwards).tolist()
    assert curve(sure, values, "order").tolist() != curve(sure, backwards, "order").tolist()


def test_equal_values_leave_nothing_to_gain():
    assert math.isnan(area(np.arange(7.0), np.full(7, 0.3)))
    assert math.isnan(area(np.arange(7.0), np.zeros(7)))


@pytest.mark.parametrize("arguments", [([], []), ([1.0], [1.0, 2.0])])
def test_other_numbers_of_values_are_refused(arguments):
    with pytest.raises(BadValue, match="expected one each"):
        curve(*map(np.array, arguments))
    with pytest.raises(BadValue, match="'mean' or 'order'"):
        curve(np.ones(2), np.ones(2), "random")


RUN = {
    "a": {"x": 3.0, "y": 1.0},
    "b": {"x": 2.5},
    "c": {},
    "other": {"x": 9.0},
    "e": {"y": -1.0, "z": -2.0, "x": -4.0},
}
QRELS = {"a": {"x": 1}, "b": {"y": 1}, "c": {"x": 1}, "d": {"x": 1}, "e": {"y": 1, "x": 1}}


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("max", [3.0, 2.5, -math.inf, -math.inf, -1.0]),
        ("std", [1.0, 0.0, -math.inf, -math.inf, statistics.pstdev([-1, -2, -4])]),
        ("diff1", [2.0, 0.0, -math.inf, -math.inf, 1.0]),
    ],
)
def test_confidences(how, expected):
    for ties in ("trec", "trec9"):
        scores = score_run(Qrels.of(QRELS), Run.of(RUN, ties=ties), "P@1")
        assert confidence_of(Run.of(RUN, ties=ties), scores.queries, how).tolist() == pytest.approx(expected)
    assert CONFIDENCES.names() == ["diff1", "max", "std"]


def test_scores_that_only_floats_confuse_keep_their_difference():
    run = Run.of({"q": {"a": 1.0, "z": 1.0 + 1e-12}}, ties="trec9")
    scores = score_run(Qrels.of({"q": {"a": 1}}), run, "P@1")
    assert confidence_of(run, scores.queries, "max")[0] == 1.0 + 1e-12
    assert confidence_of(run, scores.queries, "diff1")[0] == pytest.approx(1e-12, rel=1e-3)


def test_each_measure_has_its_curve():
    run, scores = Run.of(RUN), score_run(Qrels.of(QRELS), Run.of(RUN), ["P@1", "AP", "gmAP"])
    found = abstention(run, scores, "std")
    assert [one.measure for one in found] == ["P@1", "AP", "gmAP"]
    for one in found:
        sure = confidence_of(run, scores.queries, "std")
        assert one.nauc == area(sure, scores.of(one.measure))
        assert one.rates == pytest.approx([i / 10 for i in range(10)])
    assert found[0].curve[0] == scores.mean_values()[0]
    assert found[2].curve[0] == pytest.approx(scores.mean_values()[2])  # a geometric mean
    assert found[1].oracle == tuple(curve(scores.of("AP"), scores.of("AP")))
    with pytest.raises(UnknownName, match=r"'maximum'.*max"):
        abstention(run, scores, "maximum")


def test_less_is_better_gains_as_more_is_better_of_the_complement_and_neither_gains_nothing():
    values = np.array([0.1, 0.9, 0.4, 0.4, 1.0, 0.0])
    run = Run.of({f"q{n}": {"d": float(n)} for n in range(6)})
    areas = [
        abstention(run, Scores((name,), Ids.of(list(run.queries)), row[None], np.ones(6, bool)))[0].nauc
        for name, row in (("Hole@10", values), ("P@10", 1 - values), ("Judged@10", values))
    ]
    assert areas[0] == pytest.approx(areas[1], abs=1e-12)
    assert math.isnan(areas[2])


def test_undefined_values_are_left_out():
    run, scores = Run.of(RUN), score_run(Qrels.of(QRELS), Run.of(RUN), ["P@1", "AP"])
    values = scores.values.copy()
    values[0, :] = np.nan
    values[1, 1] = np.nan
    holes = type(scores)(scores.measures, scores.queries, values, scores.answered)
    none, some = abstention(run, holes)
    assert math.isnan(none.nauc)
    assert none.to_dict()["nauc"] is None
    kept = [0, 2, 3, 4]
    assert some.nauc == area(confidence_of(run, scores.queries, "max")[kept], values[1][kept])


def test_the_command_line_shows_it(tmp_path, capsys):
    qrels = "".join(f"{i} 0 {'a' if i in (1, 2, 4) else 'b'} 1\n" for i in range(1, 6))
    (tmp_path / "qrels").write_text(qrels)
    (tmp_path / "run").write_text("".join(f"{i} Q0 a 1 {1 - i / 10} x\n" for i in range(1, 6)))
    files = [str(tmp_path / "qrels"), str(tmp_path / "run"), "-m", "P@1"]
    assert main(["eval", *files, "--abstention", "max"]) == 0
    shown = capsys.readouterr().out
    assert "confidence max    nAUC  0.0% left out  30.0% left out" in shown
    assert "P@1             0.6364         0.6000          0.6667          1.0000          1.0000" in shown
    assert main(["eval", *files, "--abstention", "diff1", "--json"]) == 0
    line = json.loads(capsys.readouterr().out.strip().split("\n")[-1])
    assert line["confidence"] == "diff1"
    assert line["nauc"] == pytest.approx(0.0)
    assert main(["eval", *files, "--abstention", "sure"]) == 2
    assert "'sure'" in capsys.readouterr().err
