"""The family of measures: values worked out by hand, what they are made of, and what they refuse."""

from __future__ import annotations

import math

import numpy as np
import pytest

from weir.core.judged import Judged
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.errors import BadValue, UnknownName
from weir.measures import AP, RBP, Measure, condensed, nDCG, parse_measure, score_run
from weir.measures.library.arithmetic import place_in_query, product_before, sum_until
from weir.measures.measure import without_unjudged


def value(measure, ranking, grades):
    """Of one query; the ranking is a list of documents, best first."""
    run = {"q": {document: float(-rank) for rank, document in enumerate(ranking)}}
    return score_run(Qrels.of({"q": grades}), Run.of(run), measure).values[0, 0]


def drawn(seed, grades=(-1, 0, 0, 1, 2, 3), queries=30):
    rng = np.random.default_rng(seed)
    documents = [f"d{i}" for i in range(40)]
    run = {f"q{q}": {d: float(rng.integers(0, 12)) for d in rng.permutation(documents)[: rng.integers(1, 30)]}
           for q in range(queries)}  # fmt: skip
    qrels = {
        f"q{q}": {d: int(rng.choice(grades)) for d in rng.permutation(documents)[:15]} for q in range(queries)
    }
    return Run.of(run), Qrels.of(qrels)


BY_HAND = [
    ("SetP", "axb", {"a": 1, "b": 1, "c": 1}, 2 / 3),
    ("SetP@2", "axb", {"a": 1, "b": 1, "c": 1}, 1 / 2),
    ("SetP@9", "axb", {"a": 1, "b": 1, "c": 1}, 2 / 3),
    ("P@9", "axb", {"a": 1, "b": 1, "c": 1}, 2 / 9),
    ("SetR@2", "axb", {"a": 1, "b": 1, "c": 1}, 1 / 3),
    ("SetAP", "axyb", {"a": 1, "b": 1, "c": 1}, (2 / 4) * (2 / 3)),
    ("SetF", "axyb", {"a": 1, "b": 1, "c": 1}, 4 / 7),
    ("F@10", "axyb", {"a": 1, "b": 1, "c": 1}, 2 * 0.2 * (2 / 3) / (0.2 + 2 / 3)),
    ("F(beta=2.0)@2", "ax", {"a": 1, "b": 1, "c": 1, "d": 1}, 5 * 0.5 * 0.25 / (4 * 0.5 + 0.25)),
    ("F(beta=0.0)@2", "ax", {"a": 1, "b": 1, "c": 1, "d": 1}, 0.5),
    ("NumRet", "axyb", {"a": 1}, 4),
    ("NumRet@3", "axyb", {"a": 1}, 3),
    ("NumRel", "x", {"a": 1, "b": 2, "c": 0, "d": -1}, 2),
    ("NumRel(rel=2)", "x", {"a": 1, "b": 2, "c": 0, "d": -1}, 1),
    ("NumRelRet", "abx", {"a": 1, "b": 2, "c": 1}, 2),
    ("Rprec", "axb", {"a": 1, "b": 1}, 1 / 2),
    ("Rprec", "a", {"a": 1, "b": 1}, 1 / 2),
    ("Rprec@1", "ab", {"a": 1, "b": 1}, 1 / 2),
    ("IPrec(recall=0.0)", "xab", {"a": 1, "b": 1}, 2 / 3),
    ("IPrec(recall=0.5)", "axyb", {"a": 1, "b": 1}, 1.0),
    ("IPrec(recall=0.6)", "axyb", {"a": 1, "b": 1}, 1 / 2),
    ("IPrec(recall=0.6, rounding='nearest')", "axyb", {"a": 1, "b": 1}, 1.0),  # 1.2 documents are 1
    ("IPrec(recall=0.75, rounding='nearest')", "axyb", {"a": 1, "b": 1}, 1 / 2),  # and 1.5 are 2
    ("IPrec(recall=1.0)", "a", {"a": 1, "b": 1}, 0.0),
    ("IAP", "axb", {"a": 1, "b": 1}, (6 * 1 + 5 * (2 / 3)) / 11),
    ("bpref", "nam", {"a": 1, "b": 1, "n": 0, "m": 0, "o": 0}, (1 - 1 / 2) / 2),
    ("bpref", "nmob", {"b": 1, "n": 0, "m": 0, "o": 0}, 0.0),
    ("bpref(rel=2)", "ab", {"a": 1, "b": 2}, 0.0),
    ("bpref", "pab", {"a": 1, "b": 1, "p": -1, "n": 0}, 1.0),
    ("infAP", "ab", {"a": 1, "b": 1}, (1 + 0.5 + 0.5 * (1 + 1e-5) / (1 + 2e-5)) / 2),
    ("infAP", "xa", {"a": 1}, 0.5),
    ("ERR", "a", {"a": 4}, 15 / 16),
    ("ERR", "xab", {"a": 1, "b": 2}, (1 / 16) / 2 + (15 / 16) * (3 / 16) / 3),
    ("ERR(max_grade=1)@2", "xab", {"a": 1, "b": 1}, 1 / 4),
    ("nERR(max_grade=2)@1", "ba", {"a": 2, "b": 1}, 1 / 3),
    ("nERR", "ab", {"a": 2, "b": 1}, 1.0),
    ("RBP(p=0.5)", "axb", {"a": 1, "b": 3}, 0.5 + 0.125),
    ("RBP(p=0.5, gain='scaled')", "axb", {"a": 1, "b": 2}, 0.25 + 0.125),
    ("RBP(p=0.5, gain='scaled')", "a", {"a": 1, "b": 4}, 0.125),
    ("RBP(p=0.5, rel=2)", "ab", {"a": 1, "b": 2}, 0.25),
    ("RBP(p=0.0)", "ab", {"a": 1, "b": 1}, 1.0),
    ("RBP_residual(p=0.5)", "axb", {"a": 1, "b": 0}, 0.25 + 0.125),
    ("RBP_residual(p=0.5)", "apb", {"a": 1, "b": 0, "p": -1}, 0.25 + 0.125),
    ("RBP_residual(p=0.5)@1", "ab", {"a": 1, "b": 0}, 0.5),
    ("NCG@2", "bca", {"a": 3, "b": 1, "c": 0}, 1 / 4),
    ("NCG(gain='exp')@1", "b", {"a": 3, "b": 1}, 1 / 7),
    ("Q", "a", {"a": 2, "b": 1}, (3 / 3) / 2),
    ("Q", "xba", {"a": 2, "b": 1}, ((1 + 1) / (2 + 3) + (2 + 3) / (3 + 3)) / 2),
    ("Q(beta=2.0, gain='exp')", "xb", {"a": 2, "b": 1}, ((1 + 2) / (2 + 2 * 4)) / 2),
    ("condensed(nDCG@1)", "xa", {"a": 1}, 1.0),
    ("condensed(AP)", "pxab", {"a": 1, "b": 0, "p": -1}, 1.0),
    ("condensed(Judged@2)", "xa", {"a": 1}, 1.0),
    ("condensed(Hole@2)", "xa", {"a": 1}, 0.0),
    ("condensed(NumRet)", "xyab", {"a": 1, "b": 0}, 2),
]


@pytest.mark.parametrize(("measure", "ranking", "grades", "expected"), BY_HAND)
def test_worked_by_hand(measure, ranking, grades, expected):
    assert value(measure, list(ranking), grades) == pytest.approx(expected, rel=1e-15, abs=1e-16)


NOTHING = [m for m, _, _, _ in BY_HAND if not m.startswith(("NumRel", "NumRet", "RBP_residual", "Judged"))]


@pytest.mark.parametrize("measure", NOTHING)
def test_nothing_relevant_or_nothing_returned_is_zero_and_no_error(measure):
    if "Judged" not in measure and "condensed(Num" not in measure:
        assert value(measure, ["a", "x"], {"a": 0, "b": -1}) == 0.0
    assert value(measure, [], {"a": 1}) == 0.0


def test_all_of_rbp_is_unknown_where_nothing_is_returned():
    assert value("RBP_residual", [], {"a": 1}) == 1.0
    assert value("NumRel", [], {"a": 1}) == 1.0


@pytest.mark.parametrize("seed", range(3))
def test_what_they_are_made_of(seed):
    run, qrels = drawn(seed)
    names = ["P@5", "R@5", "F@5", "AP", "Q(beta=0.0)", "R", "SetR", "SetP", "SetAP", "NumRelRet", "NumRet",
             "NumRel", "RBP(p=0.7)", "RBP_residual(p=0.7)", "ERR(max_grade=3)", "nERR(max_grade=3)"]  # fmt: skip
    v = dict(zip(names, score_run(qrels, run, names).values, strict=True))
    both = v["P@5"] + v["R@5"]
    harmonic = np.divide(2 * v["P@5"] * v["R@5"], both, out=np.zeros(len(both)), where=both > 0)
    assert v["F@5"] == pytest.approx(harmonic)
    assert v["Q(beta=0.0)"] == pytest.approx(v["AP"], abs=1e-15)
    assert v["SetR"].tolist() == v["R"].tolist()
    assert v["SetAP"] == pytest.approx(v["SetP"] * v["SetR"], abs=1e-15)
    assert v["SetP"] == pytest.approx(v["NumRelRet"] / v["NumRet"])
    assert (v["NumRelRet"] <= v["NumRel"]).all()
    assert (v["RBP(p=0.7)"] + v["RBP_residual(p=0.7)"] <= 1 + 1e-15).all()
    assert (v["ERR(max_grade=3)"] <= v["nERR(max_grade=3)"]).all()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("k", [1, 5, 20])
def test_with_binary_judgments_grades_change_nothing(seed, k):
    run, qrels = drawn(seed, grades=(0, 0, 1))
    names = [f"NCG@{k}", f"NCG(gain='exp')@{k}", f"R_cap@{k}", f"RBP@{k}", f"RBP(gain='scaled')@{k}"]
    linear, steep, capped, binary, scaled = score_run(qrels, run, names).values
    assert linear.tolist() == steep.tolist() == capped.tolist()
    assert binary.tolist() == scaled.tolist()


@pytest.mark.parametrize(
    "measure", ["AP", "nDCG@5", "RR", "bpref", "RBP", "ERR@5", "Q", "IAP", "Judged@5", "infAP"]
)
def test_a_condensed_list_is_the_run_without_unjudged_documents(measure):
    run, qrels = drawn(7)
    judged = qrels.to_dict()
    shorter = {
        q: {d: s for d, s in row.items() if judged[q].get(d, -1) >= 0} for q, row in run.to_dict().items()
    }
    expected = score_run(qrels, Run.of(shorter), measure).values
    found = score_run(qrels, run, f"condensed({measure})")
    assert found.values.tolist() == expected.tolist()
    assert found.measures == (f"condensed({measure})",)
    assert found.tied == score_run(qrels, run, measure).tied


def test_condensing_keeps_the_join_whole_and_can_be_repeated():
    run, qrels = drawn(8)
    judged = Judged.of(run, qrels)
    once = without_unjudged(judged)
    twice = without_unjudged(once)
    for column in ("query", "rank", "grade", "retrieved", "tied", "ideal", "ideal_ptr"):
        assert getattr(once, column).tolist() == getattr(twice, column).tolist()
        assert getattr(once, column).dtype == getattr(judged, column).dtype
    assert (judged.grade < 0).any()
    assert not (once.grade < 0).any()
    assert once.retrieved.tolist() == np.bincount(once.query, minlength=len(judged)).tolist()
    assert (once.tied <= once.retrieved).all()


def test_condensed_measures_are_values():
    made = condensed(nDCG(gain="exp") @ 10)
    assert str(made) == "condensed(nDCG(gain='exp')@10)"
    assert parse_measure(str(made)) == made
    assert hash(parse_measure(" condensed( nDCG(gain='exp')@10 ) ")) == hash(made)
    assert made != nDCG(gain="exp") @ 10
    assert condensed(made) == made == parse_measure("condensed(condensed(nDCG(gain='exp')@10))")
    assert condensed(RBP) @ 5 == condensed(RBP @ 5)
    assert condensed(AP)(rel=2) == parse_measure("condensed(AP(rel=2))")
    assert condensed(AP) == Measure("AP", condensed=True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("condensed(nDCG)@10", r"inside, as in condensed\(nDCG@10\)"),
        ("condensed(nDCG@10", "inside"),
        ("condensed(P)", "P needs a cut-off"),
        ("condensed()", "is not a measure"),
        ("condensed(nDCG@10, AP)", "is not a measure"),
        ("RBP(p=1.0)", r"RBP\(p=1.0\): expected within 0.0..0.9999"),
        ("RBP(p=-0.1)", "expected within"),
        ("RBP(p=1e999)", "expected within"),
        ("F(beta=-1.0)@5", "expected within"),
        ("IPrec(recall=1.1)", "expected within 0.0..1.0"),
        ("IPrec(rounding='down')", "expected one of 'up', 'nearest'"),
        ("ERR(max_grade=0)", "expected within 1"),
        ("ERR(max_grade=4.0)", "expected int"),
        ("RBP(gain='exp')", "expected one of 'binary', 'scaled'"),
    ],
)
def test_refused_with_the_reason(text, message):
    with pytest.raises(BadValue, match=message):
        parse_measure(text)


def test_condensed_is_no_measure_of_its_own():
    for text in ("condensed", "condensed@10", "condensed(nDGC@10)"):
        with pytest.raises(UnknownName):
            parse_measure(text)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_settings_that_are_no_numbers_are_refused_in_python(number):
    with pytest.raises(BadValue, match="expected within"):
        RBP(p=number)


@pytest.mark.parametrize("name", ["ERR", "nERR"])
def test_a_grade_beyond_the_scale_is_refused_whether_found_or_not(name):
    for ranking in (["a"], ["x"], []):
        with pytest.raises(BadValue, match=r"grade of 5 with max_grade=4.*max_grade=5"):
            value(name, ranking, {"a": 5})
    assert value(f"{name}(max_grade=5)", ["a"], {"a": 5}) == pytest.approx(1.0 if name == "nERR" else 31 / 32)


def test_sums_and_products_stay_within_their_query():
    query = np.array([0, 0, 0, 2, 2, 5], np.int32)
    values = np.array([1e300, 1.0, 2.0, 3.0, 4.0, 0.5])
    assert place_in_query(query).tolist() == [0, 1, 2, 0, 1, 0]
    assert sum_until(query, values).tolist() == [1e300, 1e300, 1e300, 3.0, 7.0, 0.5]
    assert product_before(query, values).tolist() == [1.0, 1e300, 1e300, 1.0, 3.0, 1.0]
    assert values.tolist() == [1e300, 1.0, 2.0, 3.0, 4.0, 0.5]
    nothing = np.empty(0, np.int32), np.empty(0)
    assert sum_until(*nothing).tolist() == product_before(*nothing).tolist() == []
