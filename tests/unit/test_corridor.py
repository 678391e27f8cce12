"""Corridors against every filling of small cases; overlap of words against plain counting."""

from __future__ import annotations

import math
import re
from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import weir
from weir.audit import Subject, audited, audited_all
from weir.audit.corridor import RISING, corridors, turning_pairs
from weir.audit.overlap import weighted_jaccard, word_counts
from weir.core.corpus import Corpus
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.errors import BadValue
from weir.measures import evaluate, parse_measure

DOCS = "abcdefgh"
RANKINGS = st.permutations(DOCS).flatmap(lambda docs: st.integers(1, len(docs)).map(lambda n: docs[:n]))
GRADES = st.dictionaries(st.sampled_from(DOCS + "xy"), st.integers(0, 2), min_size=1)


@settings(max_examples=60, deadline=None)
@given(RANKINGS, GRADES, st.sampled_from(sorted(RISING)), st.integers(1, 5))
def test_the_corridor_is_the_range_over_all_fillings(ranking, grades, name, k):
    measure = parse_measure(f"{name}@{k}")
    run, qrels = Run.of({"q": ranking}), Qrels.of({"q": grades})
    unjudged = [doc for doc in ranking[:k] if doc not in grades]
    best = max(1, *grades.values())
    values = []
    for filling in product((0, best), repeat=len(unjudged)):
        filled = grades | dict(zip(unjudged, filling, strict=True))
        values.append(evaluate(Qrels.of({"q": filled}), run, [measure]).means()[str(measure)])
    found = corridors({"run": run}, qrels, measure)["run"]
    assert found.low[0] == pytest.approx(min(values), abs=1e-12)
    assert found.high[0] == pytest.approx(max(values), abs=1e-12)
    assert found.score[0] == evaluate(qrels, run, [measure]).means()[str(measure)]
    if unjudged and min(grades.values()) > 0:  # all that is judged is relevant: no share to expect by
        assert np.isnan(found.expected[0])
    else:
        assert found.low[0] - 1e-12 <= found.expected[0] <= found.high[0] + 1e-12


@settings(max_examples=40, deadline=None, phases=(Phase.generate,))
@given(st.lists(st.tuples(RANKINGS, RANKINGS, GRADES), min_size=1, max_size=2), st.integers(0, 2**32))
def test_an_order_called_safe_never_turns(queries, seed):
    runs = [Run.of({f"q{i}": given[which] for i, given in enumerate(queries)}) for which in (0, 1)]
    grades = {f"q{i}": given[2] for i, given in enumerate(queries)}
    measure, rng = parse_measure("nDCG@5"), np.random.default_rng(seed)
    names = corridors(dict(zip("AB", runs, strict=True)), Qrels.of(grades), measure)
    before = [float(one.score.mean()) for one in names.values()]
    safe = before[0] != before[1] and not turning_pairs(names)
    best = max(1, *(grade for some in grades.values() for grade in some.values()))
    pool = {query: {doc for run in runs for doc in run.top(5).to_dict()[query]} for query in grades}
    for _ in range(20):
        filled = {
            query: {doc: best for doc in pool[query] if doc not in some and rng.random() < 0.5} | some
            for query, some in grades.items()
        }
        after = [evaluate(Qrels.of(filled), run, [measure])["nDCG@5"] for run in runs]
        for values, one in zip(after, names.values(), strict=True):
            for code, query in enumerate(Qrels.of(grades).queries):
                assert one.low[code] - 1e-12 <= values[query] <= one.high[code] + 1e-12
        means = [sum(values.values()) / len(grades) for values in after]
        assert not safe or (means[0] > means[1]) == (before[0] > before[1])


def test_what_has_no_corridor_is_refused_and_a_wide_one_is_said():
    run, qrels = Run.of({"q": ["a", "b", "c"]}), Qrels.of({"q": {"a": 1, "z": 1}})
    for name in ("AP", "Judged@10", "bpref", "nDCG@1000"):
        with pytest.raises(BadValue, match="has no corridor"):
            corridors({"run": run}, qrels, parse_measure(name))
    other = Run.of({"q": ["x", "y", "w"]})
    subject = Subject("mine", qrels=qrels, runs={"one": run, "two": other})
    said = {f.severity: f for f in audited(subject, ["corridor"]).findings}
    assert said["serious"].check == "corridor"
    [wide] = [f for f in audited(subject, ["corridor"]).findings if f.system == "one"]
    views = weir.evaluate(qrels, run, ["condensed(nDCG@10)", "RBP_residual"]).means()
    assert {name: dict(wide.numbers)[name] for name in views} == views
    assert any("1 of 1 pairs" in f.statement for f in audited(subject, ["corridor"]).findings)


TEXTS = st.lists(st.text("abc XYZ.,", max_size=20), min_size=1, max_size=6)


@settings(deadline=None)
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
