"""Gains by table, discounts, readers who stop, agreement: values worked out by hand or printed in papers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.errors import BadValue
from weir.measures import parse_measure, score_run
from weir.measures.library.arithmetic import gain_table, sum_within


def value(measure, ranking, grades):
    """Of one query; the ranking is a list of documents, best first."""
    run = {"q": {document: float(-rank) for rank, document in enumerate(ranking)}}
    return score_run(Qrels.of({"q": grades}), Run.of(run), measure).values[0, 0]


# Järvelin and Kekäläinen 2002, section 2: the gains of their example, and its discounted sums for base 2.
GAINS = [3, 2, 3, 0, 0, 1, 2, 2, 3, 0]
DISCOUNTED = [3, 5, 6.89, 6.89, 6.89, 7.28, 7.99, 8.66, 9.61, 9.61]
ONES = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]


@pytest.mark.parametrize(("k", "printed"), list(zip(ONES, DISCOUNTED, strict=True)))
def test_the_example_of_the_paper(k, printed):
    documents = [f"d{i}" for i in range(10)]
    grades = dict(zip(documents, GAINS, strict=True))
    assert value(f"DCG(discount='original')@{k}", documents, grades) == pytest.approx(printed, abs=0.0051)


BY_HAND = [
    ("DCG(base=10.0)@2", "ab", {"a": 1, "b": 1}, 1 / math.log10(2) + 1 / math.log10(3)),
    ("DCG(base=10.0, discount='original')", "ab", {"a": 1, "b": 1}, 2.0),
    ("DCG(base=3.0, discount='original')", "xyza", {"a": 1}, math.log(3) / math.log(4)),
    (
        "nDCG(base=7.0)@3",
        "xab",
        {"a": 1, "b": 1},
        (1 / 2 + math.log(2) / math.log(3)) / (1 + math.log(2) / math.log(3)),
    ),
    ("nDCG(gain='1=1,2=3')", "ba", {"a": 2, "b": 1}, (1 + 3 / math.log2(3)) / (3 + 1 / math.log2(3))),
    ("nDCG(gain='1=3,2=1')@1", "a", {"a": 2, "b": 1}, 1 / 3),
    ("nDCG(gain='0=1')@1", "a", {"a": 0, "b": 1}, 1.0),
    ("nDCG(gain='1=0')", "ab", {"a": 1, "b": 2}, 1 / math.log2(3)),
    ("DCG(gain='2=0.25')@1", "a", {"a": 2}, 0.25),
    ("IDCG@1", "x", {"a": 2, "b": 3, "c": -1}, 3.0),
    ("IDCG", "", {"a": 2, "b": 1}, 2 + 1 / math.log2(3)),
    ("NCG(gain='1=5')@1", "b", {"a": 2, "b": 1}, 1.0),
    ("SDCG(max_grade=2)@2", "ab", {"a": 2, "b": 1}, (1 + 0.5 / math.log2(3)) / (1 + 1 / math.log2(3))),
    ("RR(of='best')", "axb", {"a": 1, "b": 2}, 1 / 3),
    ("RR(of='best', rel=3)", "ab", {"a": 1, "b": 2}, 0.0),
    ("RR(of='best')@2", "axb", {"a": 1, "b": 2}, 0.0),
    ("Rprec(times=2.0)", "axyb", {"a": 1, "b": 1}, 2 / 4),
    ("Rprec(times=0.2)", "ax", {"a": 1, "b": 1}, 1.0),  # 1.3 documents are one
    ("SetR_cap", "axy", {"a": 1, "b": 1}, 1 / 2),
    ("SetR_cap", "a", {"a": 1, "b": 1}, 1.0),
    ("SetR_cap@2", "xyab", {"a": 1, "b": 1, "c": 1}, 0.0),
    ("NumNonrelRet", "anpx", {"a": 1, "n": 0, "p": -1}, 1.0),
    ("NumNonrelRet(rel=2)", "anb", {"a": 1, "n": 0, "b": 2}, 2.0),
    ("Utility", "axy", {"a": 1, "b": 1}, 1 - 2),
    ("Utility(hit=2.0, noise=-0.5, miss=-3.0)@2", "axy", {"a": 1, "b": 1}, 2 - 0.5 - 3),
    ("binG", "xa", {"a": 1, "b": 1}, (1 / math.log2(3)) / 2),
    ("binG", "ab", {"a": 1, "b": 1}, 1.0),
    ("G", "xa", {"a": 2}, 2 / math.log2(2 + 3 - 2) / 2),
    ("nDCG_rel", "xa", {"a": 1}, 1 / math.log2(3)),
    ("RnDCG", "ba", {"a": 2, "b": 1}, (1 / 2 + (1 + 2 / math.log2(3)) / (2 + 1 / math.log2(3))) / 2),
    ("RnDCG", "xya", {"a": 1}, (0 + 1 / 2) / 2),
    ("RnDCG", "xa", {"a": 1}, 0.0),  # trec_eval looks at the end of the list from two ranks beyond on
    ("gmAP", "a", {"a": 1, "b": 1}, math.log(0.5)),
    ("gmAP", "x", {"a": 1}, math.log(0.00001)),
    ("gmbpref", "na", {"a": 1, "n": 0}, math.log(0.00001)),
    ("Accuracy", "axby", {"a": 1, "b": 1}, 3 / 4),
    ("Accuracy@2", "axby", {"a": 1, "b": 1}, 1.0),
    ("Accuracy", "ab", {"a": 1, "b": 1}, 1.0),
    ("Accuracy", "xy", {"a": 1}, 0.0),
    ("Compat(p=0.5)", "ab", {"a": 2, "b": 1}, 1.0),
    ("Compat(p=0.5)", "ba", {"a": 2, "b": 1}, (0.5 * 2 / 2) / (1 + 0.5)),
    ("Compat(p=0.5)", "ba", {"a": 1, "b": 1}, 1.0),
    ("Compat(p=0.5, over='weights')", "xa", {"a": 1}, (0.5 / 2) / 1.5),
    ("BPM(max_grade=1)@4", "axyz", {"a": 1}, 1.0),
    ("BPM(max_grade=2)@4", "axyz", {"a": 1}, (1 / 2) / 4),
    ("BPM(T=0.5, max_grade=2)@4", "xayz", {"a": 1}, (1 / 2) / 2),
    ("NERR8(max_grade=1)@4", "a", {"a": 1}, 1.0),
    ("NERR8(max_grade=2)@2", "ab", {"a": 1, "b": 2}, (1 / 2 + 1 / 2) / (1 + 1 / 2)),
    ("NERR9(max_grade=2)@2", "ab", {"a": 1, "b": 2}, (1 / 2 + 1 / 4) / (1 + 1 / 4)),
    ("NERR10(max_grade=2, p=0.5)@2", "ab", {"a": 1, "b": 2}, (1 / 2 + 1 / 4) / (1 + 1 / 4)),
    ("INSQ(max_grade=1)@2", "a", {"a": 1}, 1 / (1 + (2 / 3) ** 2)),
    ("INST(max_grade=1)@2", "a", {"a": 1}, 1 / (1 + (1 / 2) ** 2)),
    ("NERR11(max_grade=2)@2", "ab", {"a": 1, "b": 2}, (1 / 2 + 2 / 9) / (1 + 2 / 9)),
]


@pytest.mark.parametrize(("measure", "ranking", "grades", "expected"), BY_HAND)
def test_worked_by_hand(measure, ranking, grades, expected):
    assert value(measure, list(ranking), grades) == pytest.approx(expected, rel=1e-14, abs=1e-15)


def test_without_a_cutoff_a_reader_may_go_on_to_rank_1000():
    weights = [((2 * 1.0) / (rank - 1 + 2 * 1.0)) ** 2 for rank in range(1, 1001)]
    assert value("INSQ(max_grade=1)", ["a"], {"a": 1}) == pytest.approx(1 / math.fsum(weights), rel=1e-13)
    assert value("INSQ(max_grade=1)@1000", ["a"], {"a": 1}) == value("INSQ(max_grade=1)", ["a"], {"a": 1})
    with pytest.raises(BadValue, match="the cut-off is 10001; expected at most 10,000"):
        value("INSQ@10001", ["a"], {"a": 1})


@pytest.mark.parametrize(
    "name", ["BPM@5", "INSQ", "INST", "NERR8@5", "NERR9@5", "NERR10", "NERR11", "SDCG@5"]
)
def test_a_grade_beyond_the_scale_is_refused_whether_found_or_not(name):
    for ranking in (["a"], ["x"], []):
        with pytest.raises(BadValue, match="a grade of 5 with max_grade=4; write max_grade=5"):
            value(name, ranking, {"a": 5})


@pytest.mark.parametrize("name", ["INST", "NERR10", "BPM@7", "INSQ@9"])
def test_many_queries_are_looked_at_in_parts_and_each_on_its_own(name, monkeypatch):
    monkeypatch.setattr("weir.measures.library.cwl._CELLS", 3000)
    draw = np.random.default_rng(3)
    documents = [f"d{i}" for i in range(30)]
    run = {f"q{q}": {d: float(s) for d, s in zip(documents, draw.random(30), strict=True)} for q in range(17)}
    qrels = {
        f"q{q}": {d: int(g) for d, g in zip(documents, draw.integers(-1, 5, 30), strict=True)}
        for q in range(17)
    }
    together = score_run(Qrels.of(qrels), Run.of(run), name).values[0].tolist()
    alone = [score_run(Qrels.of({q: qrels[q]}), Run.of({q: run[q]}), name).values[0, 0] for q in run]
    assert together == pytest.approx(alone, rel=1e-13)
    assert len(set(together)) > 5


@pytest.mark.parametrize(
    ("written", "table"),
    [
        ("1=1,2=3", "1=1,2=3"),
        (" 2 = 3.0 , 1=1 ", "1=1,2=3"),
        ("0=.5", "0=0.5"),
        ("3=1e3", "3=1000"),
        ("1=0", "1=0"),
    ],
)
def test_a_table_has_one_way_of_being_written(written, table):
    assert gain_table(written) == table
    measure = parse_measure(f"nDCG(gain='{written}')@10")
    assert str(measure) == f"nDCG(gain='{table}')@10"
    assert parse_measure(str(measure)) == measure


@pytest.mark.parametrize(
    "written",
    [
        "",
        "1",
        "1=",
        "=1",
        "1=x",
        "1=1,1=2",
        "-1=1",
        "1=-1",
        "1=1,",
        "1.5.1=1",
        "1=nan",
        "1=inf",
        "1=1e10",
        "²=1",
    ],
)
def test_other_texts_are_refused_with_an_example(written):
    with pytest.raises(
        BadValue, match="expected one of 'linear', 'exp', or grades and their gains, such as '1=1,2=3'"
    ):
        parse_measure(f"nDCG(gain='{written}')@10")


@pytest.mark.parametrize(
    "text", ["nDCG(base=1.0)", "DCG(discount='none')", "Q(gain='1=2')", "INST(T=0.0)", "RR(of='all')"]
)
def test_settings_out_of_range_are_refused(text):
    with pytest.raises(BadValue, match="expected"):
        parse_measure(text)


def test_a_base_changes_no_ratio_and_a_linear_table_no_value():
    draw = np.random.default_rng(8)
    documents = [f"d{i}" for i in range(12)]
    grades = {d: int(draw.integers(0, 4)) for d in documents}
    ranking = [str(d) for d in draw.permutation(documents)]
    plain = value("nDCG@7", ranking, grades)
    assert value("nDCG(base=10.0)@7", ranking, grades) == pytest.approx(plain, rel=1e-14)
    assert value("nDCG(gain='1=1,2=2')@7", ranking, grades) == plain
    assert value("nDCG(gain='1=1,2=3,3=7')@7", ranking, grades) == value(
        "nDCG(gain='exp')@7", ranking, grades
    )
    assert value("nDCG(discount='original')@7", ranking, grades) != plain


def test_sums_down_to_a_rank_stay_within_their_query():
    query, rank = np.array([0, 0, 2, 2, 2], np.int32), np.array([1, 4, 1, 2, 9])
    values = np.array([1.0, 2.0, 10.0, 20.0, 30.0])
    of, until = np.array([0, 0, 0, 1, 2, 2, 3], np.int32), np.array([0, 3, 4, 5, 2, 100, 7])
    assert sum_within(query, rank, values, of, until).tolist() == [0.0, 1.0, 3.0, 0.0, 30.0, 60.0, 0.0]
