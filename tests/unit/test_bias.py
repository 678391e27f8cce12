"""Checks of bias: lengths, words that judgments share with queries, hubs; each against plain counting."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from weir.audit import Subject, audited
from weir.audit.bias import found_by_bm25, term_overlap
from weir.audit.texts import (
    cut_by_words,
    document_lengths,
    length_profile,
    lost_behind_the_cut,
    relevant_by_length,
)
from weir.core.corpus import Corpus, Queries
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.measures import score_run
from weir.stats.order_agreement import spearman
from weir.stats.power import plan as power_plan

CORPUS = Corpus.of(
    {
        "short": "river dam",
        "long": " ".join(["river"] * 30),
        "title": {"title": "Weirs of old", "text": ""},
        "other": {"title": "Dough", "text": "is kneaded slowly"},
    }
)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=2))
def test_the_correlation_is_spearmans(pairs):
    a, b = np.array(pairs).T
    varies = len(set(a)) > 1 and len(set(b)) > 1
    expected = spearmanr(a, b).statistic if varies else np.nan
    assert spearman(a.astype(float), b.astype(float)) == pytest.approx(expected, abs=1e-12, nan_ok=True)


def test_lengths_are_those_of_titles_and_texts_and_a_preference_is_said():
    of_doc = document_lengths(CORPUS)
    assert of_doc.tolist() == [2, 30, 3, 4]
    run = Run.of({"q": ["long", "short"], "r": ["title", "gone"]})
    profile = length_profile(run, CORPUS, of_doc)
    assert profile == ((2.5, 3, 16.5), 1, 1 / 3)
    assert length_profile(Run.of({"q": ["gone"]}), CORPUS, of_doc) is None
    qrels = Qrels.of({"q": {"short": 1, "long": 0}})
    subject = Subject("mine", CORPUS, qrels=qrels, runs={"one": Run.of({"q": ["long"]})})
    assert relevant_by_length(subject, of_doc) == [(2, 1), (30, 0)]
    [caution, note] = audited(subject, ["lengths"]).findings
    assert (caution.severity, "longer documents" in caution.remedy, note.severity) == (
        "caution",
        True,
        "note",
    )
    fair = Subject("mine", CORPUS, qrels=qrels, runs={"one": Run.of({"q": ["short"]})})
    assert {f.severity for f in audited(fair, ["lengths"]).findings} == {"note"}


def test_what_words_find_is_counted_by_pair():
    queries = Queries.of({"q": "the river's dams", "r": "the"})
    qrels = Qrels.of(
        {"q": {"short": 1, "long": 0, "gone": 1, "other": 1}, "r": {"long": 0}, "lost": {"short": 1}}
    )
    subject = Subject("mine", CORPUS, queries, qrels)
    rows = dict(
        zip(qrels.columns()["doc"][: len(qrels.doc)], term_overlap(subject, qrels).tolist(), strict=False)
    )
    assert rows["other"] == 0
    overlap = [v for v in term_overlap(subject, qrels).tolist() if not np.isnan(v)]
    assert sorted(overlap) == [0, 0.5, 1]
    assert found_by_bm25(subject) == {
        10: 0.5,
        100: 0.5,
    }  # "other" is not found; "gone" and "lost" are not there
    assert np.isnan(found_by_bm25(Subject("mine", CORPUS, queries, Qrels.of({"q": {"long": 0}})))[10])


def test_a_hub_is_named_unless_it_is_right():
    run = Run.of({f"q{i}": ["hub", f"d{i}"] for i in range(60)})
    [found] = audited(Subject("mine", runs={"one": run}), ["hub documents"]).findings
    assert (found.severity, found.examples, dict(found.numbers)["queries of the first"]) == (
        "caution",
        ("hub",),
        60,
    )
    right = Qrels.of({f"q{i}": {"hub": 1} for i in range(60)})
    assert not audited(Subject("mine", qrels=right, runs={"one": run}), ["hub documents"]).findings
    few = Run.of({f"q{i}": ["hub"] for i in range(49)})
    assert not audited(Subject("mine", runs={"one": few}), ["hub documents"]).findings


def test_what_an_encoder_cuts_is_counted_and_what_matches_behind_the_cut_alone():
    filler = " ".join(["word"] * 300)
    corpus = Corpus.of({"late": f"{filler} weir", "early": f"weir {filler}", "short": "weir"})
    queries, qrels = Queries.of({"q": "weirs"}), Qrels.of({"q": {"late": 1, "early": 1, "short": 1}})
    subject = Subject("mine", corpus, queries, qrels)
    assert lost_behind_the_cut(subject, cut_by_words(document_lengths(corpus), 256)) == (1, 2)
    [found] = audited(subject, ["truncation"]).findings
    assert (found.severity, dict(found.numbers)["cut at 256"], dict(found.numbers)["cut at 512"]) == (
        "note",
        2 / 3,
        0,
    )
    assert not audited(Subject("s", Corpus.of({"a": "b"})), ["truncation"]).findings


def test_power_and_ties_are_those_of_their_homes():
    rng = np.random.default_rng(4)
    names = [f"q{i}" for i in range(40)]
    qrels = Qrels.of({n: {"a": 1, "b": 0, "c": 0} for n in names})
    runs = {s: Run.of({n: list(rng.permutation(list("abc"))) for n in names}) for s in ("one", "two")}
    [found] = audited(Subject("mine", qrels=qrels, runs=runs), ["power"]).findings
    values = [score_run(qrels, run, ["nDCG@10"]).in_id_order("nDCG@10") for run in runs.values()]
    plan = power_plan("nDCG@10", values[1] - values[0], (0.01,))
    assert dict(found.numbers)["detectable"] == pytest.approx(plan.detectable, abs=1e-12)
    assert dict(found.numbers)["queries needed"] == plan.needs[0].queries
    tied = Run.of({n: {"a": 1.0, "b": 1.0, "c": 1.0} for n in names})
    found = audited(Subject("mine", qrels=qrels, runs={"tied": tied, **runs}), ["tied scores"]).findings
    assert {one.severity: dict(one.numbers) for one in found} == {
        "caution": {"low": 0.5, "high": 1},
        "note": {"k": 3, "queries": 40},
    }
    assert {one.system for one in found} == {"tied"}
    for by_ranks in (False, True):
        names = frozenset({"tied"} if by_ranks else ())
        subject = Subject("mine", qrels=qrels, runs={"tied": tied}, fused_by_ranks=names)
        told = audited(subject, ["tied scores"]).findings[0].remedy
        assert ("ranks tie exactly" in told, "more digits" in told) == (by_ranks, not by_ranks)


def test_copies_of_a_query_that_are_judged_otherwise_are_counted():
    queries = Queries.of({"q": "Weir", "r": " weir", "s": "dam"})
    qrels = Qrels.of({"q": {"a": 1, "b": 0}, "r": {"a": 0, "b": 0, "c": 1}, "s": {"a": 1}})
    [found] = audited(Subject("mine", queries=queries, qrels=qrels), ["copied query labels"]).findings
    assert dict(found.numbers) == {"pairs": 1, "judged by both": 2, "alike": 1, "relevant to one": 1}
    assert found.severity == "serious"
