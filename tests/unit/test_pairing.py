"""Judgments and a run that do not belong together: said, never scored as 0."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import weir
from weir.cli import main
from weir.core.intents import IntentQrels
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.errors import BadValue, FormatError

QRELS = {"q1": {"a": 1, "b": 0}}
RUN = {"q1": {"a": 2.5, "b": 1.0}}


def values(qrels, run, measure="RR") -> list[float]:
    return weir.evaluate(qrels, run, measure).of(measure).tolist()


@pytest.mark.parametrize(
    ("qrels", "run", "message"),
    [
        ({"q1": {"a": 1}}, {1: {"a": 2.0}}, "query identifiers are str ('q1') in the judgments and int (1) in the run"),
        ({1: {"a": 1}}, {"1": {"a": 2.0}}, "query identifiers are int (1) in the judgments and str ('1') in the run"),
        ({"q": {7: 1}}, {"q": {"7": 2.0}}, "document identifiers are int (7) in the judgments and str ('7') in the run"),
        ({"q": {"a": 1}, 2: {"a": 1}}, {"q": {"a": 2.0}}, "int (2) and str ('q') in the judgments and str ('q') in"),
        ({"q1": {"a": 1}}, {"x1": {"a": 2.0}, "x2": {"a": 2.0}},
         "no query in common: of 2 in the run one is 'x1', of 1 judged ones 'q1'"),
        ({1: {7: 1}}, {2: {7: 2.0}}, "no query in common: of 1 in the run one is '2', of 1 judged ones '1'"),
        (QRELS, {}, "the run holds no ranking"),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)  # fmt: skip
def test_identifiers_that_cannot_meet_are_an_error(qrels, run, message):
    with pytest.raises(BadValue) as error:
        weir.evaluate(qrels, run, ["RR"])
    assert message in str(error.value)


def test_identifiers_of_one_type_meet():
    assert values({1: {7: 1}}, {np.int64(1): {np.int32(7): 2.0}}) == [1.0]
    assert values(QRELS, RUN) == [1.0]
    assert values(QRELS, {"q1": {}}) == [0.0]  # asked, and nothing was found
    partial = weir.evaluate(QRELS | {"q2": {"a": 1}}, RUN | {"x": {"a": 1.0}}, ["RR"])
    assert (partial.values.tolist(), partial.ignored) == ([[1.0, 0.0]], 1)


@pytest.mark.parametrize(
    ("qrels", "run", "message"),
    [
        (Run.of(RUN), QRELS, "found a Run as the judgments; judgments come first, then the run"),
        (RUN, Qrels.of(QRELS), "found Qrels as the run"),
        (QRELS, IntentQrels.of({"q1": {"i": {"a": 1}}}), "found IntentQrels as the run"),
        ({"q1": {"a": 2.0, "b": 1.0}}, QRELS, "the judgments hold floats and the run whole numbers only"),
        ({"q1": {"a": 2.5, "b": 1.0}}, QRELS, "if these do stand in that order, give the scores as float"),
    ],
)
def test_swapped_arguments_are_recognised_by_their_types(qrels, run, message):
    with pytest.raises(BadValue, match=message):
        weir.evaluate(qrels, run, ["RR"])


def test_whole_numbers_in_both_are_taken_in_order_and_refused_if_turned_round():
    ranked = {f"q{n}": {f"d{k}": 10 - k for k in range(6)} for n in range(3)}
    judged = {q: {"d1": 1, "d2": 0, "d3": 2} for q in ranked}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert values(judged, ranked) == [0.5] * 3
        assert values(judged, judged) == [1.0] * 3
        assert values(QRELS, {"q1": {"a": 1, "b": 2}}) == [0.5]
    for turned in (ranked, {q: {d: s + 0.5 for d, s in row.items()} for q, row in ranked.items()}):
        as_doubles = {q: {d: float(g) for d, g in row.items()} for q, row in judged.items()}
        with pytest.raises(
            BadValue, match="grades such as 2, and all grades of each query differ in the judgments"
        ):
            values(turned, as_doubles)


def test_floats_in_both_are_taken_in_order():
    assert values({"q1": {"a": 1.0}}, {"q1": {"a": 2.5}}) == [1.0]


def test_the_command_line_says_it_too(tmp_path, capsys):
    (tmp_path / "qrels").write_text("q1 0 a 1\n")
    (tmp_path / "run").write_text("1 Q0 a 1 2.5 x\n2 Q0 a 1 2.5 x\n")
    (tmp_path / "empty").write_text("")
    (tmp_path / "run.json").write_text('{"1": {"a": 2.5}}')
    for run, message in (
        ("run", "no query in common: of 2 in the run one is '1', of 1 judged ones 'q1'"),
        ("run.json", "no query in common: of 1 in the run one is '1'"),
        ("empty", "empty: found no ranking"),
    ):
        assert main(["eval", str(tmp_path / "qrels"), str(tmp_path / run), "-m", "RR"]) == 2
        out, err = capsys.readouterr()
        assert (out, message in err) == ("", True), err
    with pytest.raises(BadValue, match="no query in common"):
        weir.evaluate(tmp_path / "qrels", str(tmp_path / "run"))
    with pytest.raises(FormatError, match="no ranking"):
        weir.evaluate(tmp_path / "qrels", tmp_path / "empty")


def test_a_measure_is_found_by_the_name_it_was_asked_for():
    scores = weir.evaluate(QRELS, RUN, ["AP(rel=1)", "nDCG( gain='linear' )@10", "RR"])
    assert scores.measures == ("AP", "nDCG@10", "RR")
    for name in ("AP(rel=1)", "AP", "nDCG( gain='linear' )@10", "nDCG@10", "RR"):
        assert scores.of(name).tolist() == [1.0]
        assert scores.in_id_order(name).tolist() == [1.0]
