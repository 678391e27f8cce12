from __future__ import annotations

import math
import random
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import pytest

from weir.errors import BadValue, FormatError, UnknownName, WeirError
from weir.plugins.conform.certificate import (
    DEVIATIONS,
    NO_NUMBER,
    UNEXPLAINED,
    Question,
    causes,
    grade,
    summarised,
    worst,
)
from weir.plugins.conform.oracle import (
    Case,
    MeasureName,
    OracleConventions,
    discounted,
    exact_answer,
    exact_text,
    fraction_mean,
    in_base,
    orders,
    parse_name,
    quotient,
    ratio,
    refusal,
    sorted_documents,
    total,
    value,
)
from weir.plugins.conform.tools import Answers, ToolValue, VectorReply
from weir.plugins.conform.vectors import Vector, as_questions, read, vectors, with_answers

# 1 / log2(3), from tables of logarithms.
INVERSE_LOG2_OF_3 = "0.630929753571457437099527114342760854299585640131880"
ALL = vectors()
TIED = Case({"q1": [("d1", 1)]}, {"q1": [("d1", 1.0), ("d2", 1.0), ("d10", 1.0)]})


def one(qrels, run, measures=("nDCG@10",), **conventions) -> Vector:
    case = Case(
        {q: list(row.items()) for q, row in qrels.items()},
        {q: list(row.items()) for q, row in run.items()},
        OracleConventions(**conventions),
    )
    return with_answers(Vector("one", "ties", "It is one.", case, tuple(measures)))


def told(vector: Vector, **replies: ToolValue) -> Answers:
    return Answers("tool", "tool", "1", {vector.id: VectorReply(replies)})


# Exact numbers


def test_a_logarithm_has_fifty_digits():
    assert str(value(discounted([0, 1])))[: len(INVERSE_LOG2_OF_3)] == INVERSE_LOG2_OF_3


def test_logarithms_to_powers_of_two_are_fractions():
    assert value(discounted([3, 0, 1])) == Fraction(7, 2)
    assert value(discounted([0, 0, 0, 0, 0, 0, 5])) == Fraction(5, 3)


def test_multiples_of_one_sum_are_seen_to_be():
    assert quotient(discounted([0, 2, 0, 4]), discounted([0, 3, 0, 6])) == Fraction(2, 3)
    assert quotient(discounted([0, 0, 0, 0, 0, 0, 0, 2]), discounted([0, 1])) == 1  # log2(9) is twice log2(3)
    assert isinstance(quotient(discounted([1]), discounted([1, 1])), Decimal)
    assert quotient(discounted([]), discounted([1])) == quotient(discounted([1]), discounted([])) == 0


def test_other_bases_and_mixed_sums():
    assert math.isclose(float(in_base(Fraction(1), Fraction(10))), math.log2(10), rel_tol=1e-15)
    assert in_base(Fraction(3), Fraction(2)) == 3
    mixed = total([Fraction(1, 2), Decimal("0.25")])
    assert mixed == Decimal("0.75")
    assert fraction_mean([Fraction(1), Fraction(0)]) == Fraction(1, 2)
    assert ratio(Decimal(1), Fraction(0)) == 0


def test_numbers_are_written_with_thirty_digits_and_a_short_fraction():
    assert exact_text(Fraction(2, 3)) == {"decimal": "0.666666666666666666666666666667", "fraction": "2/3"}
    assert set(exact_text(Fraction(1, 7**200))) == {"decimal"}
    assert exact_text(value(discounted([0, 1]))) == {"decimal": INVERSE_LOG2_OF_3[:31] + "3"}


# The oracle


def test_names_are_taken_apart():
    assert parse_name("nDCG@10") == MeasureName("nDCG", 10)
    assert parse_name("condensed(RBP(gain='scaled', p=0.8))") == MeasureName(
        "RBP", None, (("gain", "scaled"), ("p", Fraction(4, 5))), True
    )
    assert parse_name("NCG(gain='1=1,2=3')@2").settings == (("gain", "1=1,2=3"),)
    for wrong in ("", "nDCG@0", "nDCG@", "n-DCG", "nDCG(gain='exp'@1"):
        with pytest.raises(BadValue, match="is not a measure"):
            parse_name(wrong)
    with pytest.raises(UnknownName, match="nDCG"):
        parse_name("nDGC@10")


def test_order_of_ties():
    assert sorted_documents(TIED.run["q1"], OracleConventions()) == ["d2", "d10", "d1"]
    assert len(list(orders(TIED.run["q1"], OracleConventions(ties="expected")))) == 6
    with pytest.raises(BadValue, match="orders"):
        list(orders([(str(n), 1.0) for n in range(9)], OracleConventions()))


def test_each_convention_of_ties_by_hand():
    found = {
        t: exact_answer(replace(TIED, conventions=OracleConventions(ties=t)), "RR").mean
        for t in ("trec", "expected", "worst", "best")
    }
    assert found == {"trec": Fraction(1, 3), "expected": Fraction(11, 18), "worst": Fraction(1, 3), "best": 1}


@pytest.mark.parametrize(
    ("qrels", "run", "reason"),
    [
        ({}, {}, "the judgments are empty"),
        ({"q1": []}, {}, "the judgments are empty"),
        ({"q1": [("a", 1), ("a", 2)]}, {}, "a document is judged twice (query q1)"),
        ({"q1": [("a", math.inf)]}, {}, "a grade is not a finite number (query q1)"),
        (
            {"q1": [("a", 1)]},
            {"q2": [("a", 1.0), ("a", 2.0)]},
            "a document stands twice in a ranking (query q2)",
        ),
        ({"q1": [("a", 1)]}, {"q1": [("a", math.nan)]}, "a score is not a finite number (query q1)"),
        ({"q1": [("a", 0.5)]}, {"q1": [("a", 1.0)]}, None),
    ],
)
def test_what_must_be_refused(qrels, run, reason):
    assert refusal(Case(qrels, run)) == reason
    if reason is not None:
        with pytest.raises(BadValue, match=r"query|judgments"):
            exact_answer(Case(qrels, run), "AP")


def test_no_query_that_counts_has_no_mean():
    case = Case({"q1": [("a", 1)]}, {}, OracleConventions(missing="answered-only"))
    with pytest.raises(BadValue, match="no query counts"):
        exact_answer(case, "AP")


# Vectors


def test_vectors_survive_a_round_trip():
    from weir.plugins.conform.vectors import to_text

    for name in ("refused", "identifiers"):
        members = vectors([name])
        again = read(to_text(name, "about", members), name)
        assert list(map(repr, again)) == list(map(repr, members))  # NaN is not equal to itself


def test_unknown_groups_and_schemas_are_refused():
    with pytest.raises(UnknownName, match="did you mean ties"):
        vectors(["tie"])
    with pytest.raises(FormatError, match="weir-conform-1"):
        read('{"schema": "other", "group": "g", "vectors": []}', "file.json")


def test_questions_hold_no_answers():
    for question in as_questions(vectors(["examples", "refused"])):
        assert "error" not in question
        assert all(set(m) == {"name", "measure", "k", "settings", "condensed"} for m in question["measures"])


# Grades


def test_values_are_exact_or_differ():
    vector = one({"q1": {"a": 1}, "q2": {"b": 1}}, {"q1": {"a": 1.0}})
    cases = [
        (ToolValue(0.5, (("q1", 1.0), ("q2", 0.0))), "passed", 0),
        (ToolValue(0.5 + 1e-10), "passed", 0),
        (ToolValue(0.5 + 1e-8), "differs", 1),
        (ToolValue(0.50001, decimals=5), "passed", 0),
        (ToolValue(0.50003, decimals=5), "differs", 1),
        (ToolValue(None, (("q1", 1.0),)), "differs", 1),  # q2 is missing, and no mean says whether it counts
        (ToolValue(0.5, (("q1", 1.0), ("other", 7.0))), "passed", 0),
        (ToolValue(math.nan), "differs", 1),
        (ToolValue(refused="KeyError: q2"), "refused", 0),
    ]
    for said, outcome, differences in cases:
        (found,) = grade(told(vector, **{"nDCG@10": said}), [vector])
        assert (found.outcome, len(found.differences)) == (outcome, differences), said


def test_a_refusal_is_right_where_there_is_no_answer():
    vector = one({"q1": {"a": 1}}, {"q1": {"a": math.nan}})
    assert vector.error == "a score is not a finite number (query q1)"
    (good,) = grade(told(vector, **{"nDCG@10": ToolValue(refused="ValueError")}), [vector])
    (bad,) = grade(told(vector, **{"nDCG@10": ToolValue(1.63)}), [vector])
    assert (good.outcome, bad.outcome) == ("passed", "differs")
    assert bad.why == "accepts what must be refused: a score is not a finite number"
    found = summarised(told(vector), [bad])
    assert (found.causes[0].found, found.clean, found.asked) == ("1.63", 0, 1)


def test_what_was_not_said_does_not_apply():
    vector = one({"q1": {"a": 1}}, {"q1": {"a": 1.0}})
    for replies in ({}, {"one": VectorReply({})}, {"one": VectorReply({}, "it cannot")}):
        (found,) = grade(Answers("tool", "tool", "1", replies), [vector])
        assert found.outcome == "not applicable"
    (found,) = grade(Answers("tool", "tool", "1", {"one": VectorReply({}, died="signal 11")}), [vector])
    assert (found.outcome, found.note) == ("refused", "signal 11")


def test_the_worst_come_first():
    vector = one({"q1": {"a": 1}}, {"q1": {"a": 1.0}}, ("AP", "RR", "P@1"))
    said = {"AP": ToolValue(0.9), "RR": ToolValue(0.2), "P@1": ToolValue(math.nan)}
    found = worst(grade(told(vector, **said), [vector]))
    assert [g.measure for g, _ in found] == ["P@1", "RR", "AP"]


# Explanations


def says(case: Case, measure: str) -> ToolValue:
    found = exact_answer(case, measure)
    return ToolValue(float(found.mean), tuple((q, float(v)) for q, v in found.per_query.items()))


@pytest.mark.parametrize("reading", DEVIATIONS, ids=lambda d: d.name)
def test_a_tool_that_keeps_another_convention_is_found_out(reading):
    """A tool with this reading, asked everything: where it differs, it is this reading that explains it."""
    different = []
    for vector in random.Random(4).sample(ALL, len(ALL)):  # of every group, not of the first alone
        for expected in vector.expected:
            changed = reading.change(Question(vector.case, expected.name))
            if changed is None or len(different) >= 10:
                continue
            try:
                said = says(changed.case, changed.measure)
            except WeirError:
                continue
            if not said.agrees(said.mean or 0.0, float(expected.mean)):
                different.append((vector.case, expected.name, said))
    assert different
    found = causes(different)
    assert found.count(reading.name) > len(found) / 2
    assert UNEXPLAINED not in found


def test_what_nothing_explains_is_said_to_be_so():
    assert causes([(TIED, "RR", ToolValue(0.123)), (TIED, "RR", ToolValue(math.nan))]) == [
        UNEXPLAINED,
        NO_NUMBER,
    ]


def test_two_conventions_at_once_are_found():
    qrels = {"q1": [("a", 3), ("b", 1), ("c", 2)], "q2": [("a", 1)]}
    case = Case(qrels, {"q1": [("a", 1.0), ("b", 1.0), ("c", 1.0)]})
    both = Case({"q1": qrels["q1"]}, {"q1": [("a", 3.0), ("b", 2.0), ("c", 1.0)]})
    found = causes([(case, "nDCG@2", ToolValue(float(exact_answer(both, "nDCG@2").mean)))])
    assert found == ["ties in the order of the input + unanswered queries leave the mean"]
