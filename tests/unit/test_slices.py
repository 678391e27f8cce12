"""Slices, leakage and off-topic results: what is planted is found and named, and nothing else at the rate that is promised."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ttest_ind

from weir.audit import Subject, audited
from weir.audit.bias import FALSE_DISCOVERY_RATE, equal_means_p, feature_groups, slices_of, topics
from weir.audit.leakage import leaks
from weir.audit.rankings import off_topic_results
from weir.core.corpus import Corpus, Queries
from weir.core.qrels import Qrels
from weir.core.query_metadata import QueryGroups
from weir.core.run import Run
from weir.core.strings import Ids
from weir.core.subject import Training

NAMES = [f"q{i}" for i in range(200)]


@pytest.mark.filterwarnings("ignore:Precision loss:RuntimeWarning")
@given(st.lists(st.floats(-1, 1), min_size=2, max_size=9), st.lists(st.floats(-1, 1), min_size=2, max_size=9))
def test_the_tests_are_welchs_and_students(a, b):
    a, b = (np.round(np.array(x), 3) for x in (a, b))
    for pooled in (False, True):
        if a.var() + b.var() == 0:
            assert equal_means_p(a, b, pooled) == float(a.mean() == b.mean())
        else:
            expected = ttest_ind(a, b, equal_var=pooled).pvalue
            assert equal_means_p(a, b, pooled) == pytest.approx(expected, abs=1e-9)


def test_where_nothing_differs_a_slice_is_found_as_seldom_as_promised():
    """600 collections of 200 queries in 20 overlapping slices: any finding is a false one."""
    rng, false = np.random.default_rng(3), 0
    queries = Ids.of(NAMES)
    for _ in range(600):
        groupings = [
            QueryGroups("g", queries, ("a", "b", "c", "d"), rng.integers(0, 4, 200).astype(np.int32))
            for _ in range(5)
        ]
        differences = rng.normal(0, 0.2, 200) * (rng.random(200) < 0.6)
        false += any(s.p <= FALSE_DISCOVERY_RATE for s in slices_of(queries, differences, groupings))
    assert false / 600 <= FALSE_DISCOVERY_RATE + 3 * (0.05 * 0.95 / 600) ** 0.5


def collection():
    texts = {n: f"how deep is the {('river', 'lake')[i % 2]} number {i}" if i < 60 else f"dough of type {i} rises"
             for i, n in enumerate(NAMES)}  # fmt: skip
    corpus = Corpus.of(
        {f"d{i}": f"answer {texts[n]}" for i, n in enumerate(NAMES)} | {"x": "unrelated words"}
    )
    qrels = Qrels.of({n: {f"d{i}": 1} for i, n in enumerate(NAMES)})
    right = {n: [f"d{i}", "x"] for i, n in enumerate(NAMES)}
    wrong = {n: ["x", f"d{i}"] if i < 60 and i % 5 else [f"d{i}", "x"] for i, n in enumerate(NAMES)}
    return Subject("mine", corpus, Queries.of(texts), qrels, {"one": Run.of(right), "two": Run.of(wrong)})


def test_a_planted_difference_is_found_and_named():
    found = audited(collection(), ["slices"]).findings
    [named] = [f for f in found if "question word 'how'" in f.statement]
    assert named.statement.startswith("one to two: nDCG@10 changes by -0.2953 on the 60 queries")
    assert dict(named.numbers)["outside"] == 0
    assert not any("has a negation" in f.statement for f in found)


def test_features_tell_queries_apart_and_each_query_is_in_one_group():
    for groups in feature_groups(collection()):
        assert len(groups) > 1
        assert sum(map(len, groups.rows(groups.queries).values())) <= len(groups.queries)
    names = {groups.name for groups in feature_groups(collection())}
    assert names >= {"question word", "length", "topic"}


@given(st.integers(6, 40), st.integers(1, 40), st.randoms(use_true_random=False))
def test_a_column_with_nearly_as_many_values_as_queries_groups_nothing(queries, values, random):
    column = [n % values for n in range(queries)]
    random.shuffle(column)
    texts = {f"q{n}": {"text": f"boots {n % 3}", "searches": one} for n, one in enumerate(column)}
    subject = Subject("shop", None, Queries.of(texts), Qrels.of({name: {"d": 1} for name in texts}))
    found = {groups.name: groups for groups in feature_groups(subject)}
    singles = sum(column.count(one) == 1 for one in set(column))
    assert ("searches" in found) == (len(set(column)) >= 2 and 2 * singles <= len(set(column)))
    if "searches" in found:
        assert len(found["searches"]) == len(set(column))


def test_planted_leaks_are_found_by_the_way_in_which_they_were_planted():
    long = " ".join(f"word{i}" for i in range(20))
    queries = Queries.of({"a": "What is a weir?", "b": " what is  A WEIR?", "c": f"new {long}", "d": "clean"})
    training = Training(
        "train", Queries.of({"t": "What is a weir?", "u": f"{long} old"}), Qrels.of({"t": {"doc": 1}})
    )
    found = leaks(queries, training, {"a": {"doc"}, "b": {"other"}})
    assert found.exact.tolist() == [True, False, False, False]
    assert found.normalised.tolist() == [True, True, False, False]
    assert found.grams.tolist() == [False, False, True, False]
    assert found.pairs.tolist() == [True, False, False, False]
    subject = Subject("mine", queries=queries, qrels=Qrels.of({n: {"doc": 1} for n in "abcd"}),
                      runs={"one": Run.of({"a": ["doc"], "b": ["doc"], "c": ["doc"]})}, training=(training,))  # fmt: skip
    [finding] = audited(subject, ["leakage"]).findings
    assert (finding.severity, finding.examples) == ("serious", ("a", "b", "c"))
    assert finding.statement.startswith(
        "2 of 4 judged queries are in train (1 as written, 1 only after normalising; 2 with a relevant document), "
        "1 more shares 13 words in a row with a query of it; "
    )
    assert sum(dict(finding.numbers)[name] for name in ("same", "normalised", "words in a row")) == 3
    assert "one: nDCG@10 0.0000 [-] without these 3, 0.7500 with" in finding.statement


def test_off_topic_results_share_no_word_and_are_not_relevant():
    subject = collection()
    wrong = subject.runs["two"]
    expected = [(n, "x") for i, n in enumerate(NAMES) if i < 60 and i % 5]
    found = off_topic_results(subject, wrong)
    assert found[: len(expected)] == expected
    assert len(found) == len(NAMES)
    assert not [pair for pair in found if pair[1] != "x"]


def test_a_few_queries_that_happen_not_to_differ_are_no_slice():
    """Differences of two near systems are mostly 0: a dozen queries without any is chance, of which Welch is too sure."""
    differences = np.where(np.arange(200) % 6 == 0, 0.1, 0.0) * np.where(np.arange(200) % 4, 1, 0.3)
    differences[:12] = 0
    groups = QueryGroups.of({n: "few" if i < 12 else "rest" for i, n in enumerate(NAMES)})
    [found] = slices_of(Ids.of(NAMES), differences, [groups])  # the rest says the same and is left out
    members = {NAMES[row] for row in groups.rows(Ids.of(NAMES))[found.label]}
    assert 0 < len(found.names) <= 5
    assert set(found.names) <= members
    assert (found.label, found.queries, found.inside) == ("few", 12, 0.0)
    welch = equal_means_p(differences[:12], differences[12:], pooled=False)
    assert welch < FALSE_DISCOVERY_RATE / 20 < FALSE_DISCOVERY_RATE < found.p


def test_topics_follow_meaning_where_there_is_an_encoder():
    subject = collection()
    words = {"river": (1, 0), "lake": (0, 1)}

    def encode(queries):
        found = (
            next((v for w, v in words.items() if w in text), (0.7, 0.7)) for text in queries.text.tolist()
        )
        return np.array(list(found), np.float32)

    groups = topics(replace(subject, encoder=encode))
    label = dict(zip(groups.queries.tolist(), groups.group.tolist(), strict=True))
    assert len({label[n] for i, n in enumerate(NAMES) if i < 60 and i % 2 == 0}) == 1
    assert label[NAMES[0]] != label[NAMES[1]]
