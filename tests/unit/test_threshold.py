"""Answer or stay silent: the score is chosen on one half and holds on the other."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import weir
from weir.cli import main
from weir.errors import BadValue
from weir.stats.resampling import share_bounds

ANSWERED = [f"a{n:03}" for n in range(200)]
SILENT = [f"u{n:03}" for n in range(120)]


def world(gap: float, seed: int = 5) -> tuple[dict, dict]:
    """Judgments, and a run whose best scores are higher by a gap, in standard deviations, where there is an answer."""
    draw = np.random.default_rng(seed)
    qrels = {q: {"x": 1} for q in ANSWERED} | {q: {"x": 0} for q in SILENT}
    run = {q: {"x": float(draw.normal(gap)), "y": -9.0} for q in ANSWERED}
    return qrels, run | {q: {"x": float(draw.normal()), "y": -9.0} for q in SILENT}


def test_the_score_is_the_least_that_keeps_false_answers_within_the_share_where_it_was_chosen():
    qrels, run = world(2.0)
    found = weir.threshold(qrels, run, max_false=0.1)[0]
    assert (found.answerable, found.unanswerable, found.chosen_on) == (100, 60, (100, 60))
    assert found.chosen.false_answers == 0.1  # six of 60, the seventh is below
    assert found.reported.score == found.chosen.score
    assert found.false_interval[0] <= found.reported.false_answers <= found.false_interval[1]
    assert found.kept_interval[0] < found.reported.kept == found.reported.answered < found.kept_interval[1]
    assert found.silent_never == 1.0
    assert found.separation == pytest.approx(0.5 * math.erfc(-1.0), abs=0.03)  # the normal model's
    assert [c.false_answers for c in found.curve] == sorted(
        (c.false_answers for c in found.curve), reverse=True
    )
    assert found.curve[0].false_answers > 0.95
    assert weir.threshold(qrels, run, max_false=0.1).to_dict() == weir.threshold(qrels, run).to_dict()
    assert weir.threshold(qrels, run, seed=1)[0].chosen.score != found.chosen.score


def test_on_the_other_half_false_answers_are_on_average_those_that_were_allowed():
    """Where the halves are alike, 10% chosen on 60 is 10% on the others, on average over 60 splits."""
    qrels, run = world(1.0)
    found = [weir.threshold(qrels, run, max_false=0.1, seed=seed)[0] for seed in range(60)]
    assert np.mean([f.reported.false_answers for f in found]) == pytest.approx(0.1, abs=0.03)


def test_queries_without_an_answer_are_flagged_or_have_no_positive_grade():
    qrels, run = world(3.0)
    only = {q: grades for q, grades in qrels.items() if q in set(ANSWERED)}
    flagged = weir.threshold(only, run, unanswerable=[*SILENT, "a000"])
    assert flagged.to_dict() == weir.threshold(qrels, run).to_dict()  # a000 has a relevant document


@pytest.mark.parametrize("shift", [0.0, 100.0, -100.0])
def test_nothing_returned_is_no_answer_and_scores_may_have_any_sign(shift):
    qrels, run = world(3.0)
    moved = {
        q: {d: s + shift for d, s in docs.items()} for q, docs in run.items() if q in set(ANSWERED[:150])
    }
    found = weir.threshold(qrels, moved, max_false=0)[0]
    assert (found.chosen.false_answers, found.reported.false_answers) == (0.0, 0.0)
    assert {cut.false_answers for cut in found.curve} == {0.0}
    assert found.reported.answered == pytest.approx(0.75, abs=0.1)  # 50 of 200 have no document
    assert found.separation == 150 / 200 + 0.5 * 50 / 200  # nothing against nothing is even


def test_a_system_that_knows_nothing_is_told_so(tmp_path, capsys):
    qrels, run = world(0.0)
    silent = {q: {"x": 7.0} for q in run}
    weir.Qrels.of(qrels).save(tmp_path / "qrels.tsv")
    weir.Run.of(silent).save(tmp_path / "run.trec")
    arguments = ["study", "threshold", str(tmp_path / "qrels.tsv"), str(tmp_path / "run.trec")]
    assert main(arguments) == 0
    out = capsys.readouterr().out
    assert out.startswith("no score keeps at most 10.0% false answers: nothing would be answered\n")
    assert "a query with an answer has the higher confidence 50.0% of the time" in out
    assert main([*arguments, "--json", "--max-false", "1"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["reported"]["answered"], found["reported"]["score"]) == (1.0, 7.0)
    for wrong, said in (
        (["--max-false", "2"], "the share of false answers is 2"),
        (["-m", "nope"], "no measure"),
    ):
        assert main([*arguments, *wrong]) == 2
        assert said in capsys.readouterr().err
    with pytest.raises(BadValue, match="found 0 queries without an answer"):
        weir.threshold({q: {"x": 1} for q in qrels}, run)


def test_wilson_intervals():
    """As printed for 1 of 10 in Brown, Cai and DasGupta's notation: (x + z²/2 ± ...) / (n + z²)."""
    assert share_bounds(1, 10) == pytest.approx((0.017876213095072924, 0.4041500267952385), abs=1e-12)
    assert share_bounds(0, 5)[0] == 0.0
    assert share_bounds(5, 5)[1] == 1.0


def test_empty_lists_are_queries_without_an_answer_to_a_threshold():
    answers = {f"q{n}": [f"d{n}"] if n < 20 else [] for n in range(40)}
    run = {f"q{n}": {f"d{n}": 3.0 + n % 5 if n < 20 else 1.0 + n % 3} for n in range(40)}
    graded = {query: dict.fromkeys(docs, 1) or {"none": 0} for query, docs in answers.items()}
    assert weir.threshold(answers, run)[0] == weir.threshold(graded, run)[0]
