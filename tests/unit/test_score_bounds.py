"""Score bounds against every judging of small cases; overlap of words against plain counting."""

from __future__ import annotations

import math
import re
from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import weir
from weir.audit import Subject, audited, audited_all
from weir.core.corpus import Corpus
from weir.core.judged import Judged
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.errors import BadValue
from weir.measures import parse_measure, score_run
from weir.stats.score_bounds import RISING, Unjudged, discounted, most_above, score_bounds, turning_pairs
from weir.systems.lexical.terms import weighted_jaccard, word_counts

DOCS = "abcdefgh"
RANKINGS = st.permutations(DOCS).flatmap(lambda docs: st.integers(1, len(docs)).map(lambda n: docs[:n]))
GRADES = st.dictionaries(st.sampled_from(DOCS + "xy"), st.integers(-1, 3), min_size=1)
SETTINGS = ("nDCG", "nDCG(gain='exp')", "nDCG(gain='1=1,2=3')", "nDCG(discount='original',base=3.0)")
MANY = 6_000
"""Judgings of a case that are enumerated."""


def judgings(grades, unjudged, scale):
    """All judgments of a query in which each unjudged document has one of these grades, or as many drawn."""
    ways = product(scale, repeat=len(unjudged))
    if len(scale) ** len(unjudged) > MANY:
        rng = np.random.default_rng(len(unjudged))
        ways = map(tuple, rng.choice(np.array(scale), (MANY, len(unjudged))).tolist())
    return [grades | dict(zip(unjudged, way, strict=True)) for way in ways]


def values_of(measure, many, *rankings):
    """A measure of rankings of one query, by each of many judgments of it: float64[rankings, judgments]."""
    qrels = Qrels.of({f"q{n:05d}": one for n, one in enumerate(many)})
    runs = [Run.of({query: list(ranking) for query in qrels.queries.tolist()}) for ranking in rankings]
    return np.array([measure.per_query(Judged.of(run, qrels)) for run in runs])


def unjudged_of(grades, k, *rankings):
    return sorted({doc for ranking in rankings for doc in ranking[:k]} - grades.keys())


@settings(max_examples=150)
@given(RANKINGS, RANKINGS, GRADES, st.sampled_from(sorted(RISING) + list(SETTINGS)), st.integers(1, 5))
@example("abcd", "abcd", {"a": 1, "x": 2, "y": 2}, "nDCG", 3)  # a middle grade leaves the ideal lower
def test_score_bounds_are_the_range_over_all_judgings(ranking, other, grades, name, k):
    measure = parse_measure(f"{name}@{k}")
    runs = {"one": Run.of({"q": list(ranking)}), "other": Run.of({"q": list(other)})}
    found = score_bounds(runs, Qrels.of({"q": grades}), measure)
    unjudged = unjudged_of(grades, k, ranking, other)
    scale = range(max(1, *grades.values()) + 1)
    values = values_of(measure, judgings(grades, unjudged, scale), ranking, other)
    for one, all_values in zip(found.values(), values, strict=True):
        assert one.low[0] <= one.score[0] <= one.high[0]
        assert one.low[0] <= all_values.min() + 1e-12
        assert all_values.max() - 1e-12 <= one.high[0]
        if len(scale) ** len(unjudged) <= MANY:
            assert (one.low[0], one.high[0]) == pytest.approx((all_values.min(), all_values.max()), abs=1e-12)
    assert (
        found["one"].score[0]
        == score_run(Qrels.of({"q": grades}), runs["one"], [measure]).means()[str(measure)]
    )


def test_grades_with_fractions_do_not_go_beyond_the_bounds():
    grades = {"a": 0.5, "x": 2.5, "y": 1.0}
    found = score_bounds(
        {"one": Run.of({"q": list("abcd")})}, Qrels.of({"q": grades}), parse_measure("nDCG@4")
    )["one"]
    values = values_of(
        parse_measure("nDCG@4"), judgings(grades, ["b", "c", "d"], np.linspace(0, 2.5, 11).tolist()), "abcd"
    )
    assert (found.low[0], found.high[0]) == pytest.approx((values.min(), values.max()), abs=1e-12)
    assert (
        found.high[0]
        > values_of(parse_measure("nDCG@4"), judgings(grades, ["b", "c", "d"], (0, 2.5)), "abcd").max()
    )


@settings(max_examples=60)
@given(st.lists(st.tuples(RANKINGS, RANKINGS, GRADES), min_size=1, max_size=2), st.sampled_from(SETTINGS))
def test_the_most_that_one_system_lies_above_another_is_that_of_all_judgings(queries, name):
    measure, k = parse_measure(f"{name}@4"), 4
    runs = [Run.of({f"q{i}": given[which] for i, given in enumerate(queries)}) for which in (0, 1)]
    qrels = Qrels.of({f"q{i}": given[2] for i, given in enumerate(queries)})
    unjudged = Unjudged.of(runs, qrels, k)
    columns = [discounted(run.top(k), unjudged, measure) for run in runs]
    found = most_above(*columns, unjudged, measure)
    best = max(1, *(grade for *_, grades in queries for grade in grades.values()))
    exact = True
    for query, code in zip(qrels.queries, range(len(queries)), strict=True):
        one, other, grades = queries[int(query[1:])]
        names = unjudged_of(grades, k, one, other)
        values = values_of(measure, judgings(grades, names, range(best + 1)), one, other)
        most = (values[0] - values[1]).max()
        exact &= (whole := (best + 1) ** len(names) <= MANY)
        assert found[code] == pytest.approx(most, abs=1e-12) if whole else found[code] >= most - 1e-12
    pairs = turning_pairs(dict(zip("AB", runs, strict=True)), qrels, measure)
    differences = np.subtract(*(score_run(qrels, run, [measure]).means()[str(measure)] for run in runs))
    if exact and abs(differences) > 1e-9:
        turned = most_above(*columns[:: -1 if differences > 0 else 1], unjudged, measure).mean() >= 0
        assert set(pairs) == ({("A", "B") if differences > 0 else ("B", "A")} if turned else set())


def test_what_has_no_bounds_is_refused_and_wide_ones_are_told():
    run, qrels = Run.of({"q": ["a", "b", "c"]}), Qrels.of({"q": {"a": 1, "z": 1}})
    for name in ("AP", "Judged@10", "bpref", "nDCG@1000", "RBP(gain='scaled')@10"):
        with pytest.raises(BadValue, match="has no score bounds"):
            score_bounds({"run": run}, qrels, parse_measure(name))
    other = Run.of({"q": ["x", "y", "w"]})
    subject = Subject("mine", qrels=qrels, runs={"one": run, "two": other})
    findings = audited(subject, ["score bounds"]).findings
    [wide] = [f for f in findings if f.system == "one"]
    views = weir.evaluate(qrels, run, ["condensed(nDCG@10)", "RBP_residual"]).means()
    assert {name: dict(wide.numbers)[name] for name in views} == views
    assert "expected" not in wide.statement


@pytest.mark.parametrize(("queries", "severity"), [(3, "note"), (40, "serious")])
def test_only_a_difference_that_queries_can_detect_makes_a_finding_serious(queries, severity):
    rng = np.random.default_rng(4)
    ranked = {f"q{n}": ["a", *"bcdefgh"] if rng.random() < 0.7 else [*"bcdefgh", "a"] for n in range(queries)}
    runs = {"A": Run.of(ranked), "B": Run.of({query: list("stuvwxyz") for query in ranked})}
    subject = Subject("mine", qrels=Qrels.of({query: {"a": 1} for query in ranked}), runs=runs)
    found = {f.severity: f for f in audited(subject, ["score bounds"]).findings if "pairs" in f.statement}
    assert list(found) == [severity]
    assert found[severity].examples == ("A over B",)
    assert {f.severity for f in audited(subject, ["score bounds"]).findings} <= {"caution", severity}


TEXTS = st.lists(st.text("abc XYZ.,", max_size=20), min_size=1, max_size=6)


@given(TEXTS, TEXTS)
def test_overlap_is_what_plain_counting_gives(one, other):
    corpora = [Corpus.of({f"d{i}": text for i, text in enumerate(texts)}) for texts in (one, other)]
    profile = word_counts(corpora)
    plain = [Counter(re.findall("[a-z]+(?:[.,][a-z]+)*", " ".join(texts).lower())) for texts in (one, other)]
    found = weighted_jaccard(profile.shares(0), profile.shares(1))
    if "." in "".join(one + other) or "," in "".join(one + other):
        return  # where words are cut at points is the analyzer's matter, tested there
    total = [max(1, sum(counts.values())) for counts in plain]
    words = plain[0].keys() | plain[1].keys()
    shares = [[counts[w] / n for counts, n in zip(plain, total, strict=True)] for w in words]
    expected = math.fsum(map(min, shares)) / math.fsum(map(max, shares)) if words else math.nan
    assert found == pytest.approx(expected, abs=1e-12, nan_ok=True)
    assert found == pytest.approx(weighted_jaccard(profile.shares(1), profile.shares(0)), abs=0, nan_ok=True)
    if plain[0]:
        assert weighted_jaccard(profile.shares(0), profile.shares(0)) == 1


def test_collections_are_compared_pair_by_pair_and_one_alone_is_refused():
    subjects = [
        Subject(name, Corpus.of({"d": text}))
        for name, text in (("a", "river dam"), ("b", "river weir"), ("c", "dough"))
    ]
    [audit] = audited_all(subjects, ["overlap"])
    numbers = dict(audit.findings[0].numbers)
    assert {n: v for n, v in numbers.items() if " and " in n} == pytest.approx(
        {"a and b": 1 / 3, "a and c": 0, "b and c": 0}
    )
    at = {name: np.array([numbers[f"{axis} of {name}"] for axis in "xy"]) for name in "abc"}
    apart = [np.linalg.norm(at[one] - at[other]) for one, other in ("ab", "ac", "bc")]
    assert apart == pytest.approx(
        [2 / 3, 1, 1], abs=1e-6
    )  # three can stand exactly as far apart as they are unlike
    with pytest.raises(BadValue, match="name two or more"):
        audited_all(subjects[:1], ["overlap"])
    assert [one.subject for one in audited_all(subjects)] == ["a", "b", "c", "a, b, c"]
