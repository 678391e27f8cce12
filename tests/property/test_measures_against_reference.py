"""The vectorised measures against plain loops and against trec_eval, on whatever hypothesis draws."""

from __future__ import annotations

import copy
import math
import random

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from tests import reference
from tests.strategies import measure_texts, scores, trials

from weir.core.judged import Judged
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.errors import BadValue, UnknownName
from weir.measures import MEASURES, parse_measure, score_run
from weir.stats.resampling import intervals

EVERY = [
    *(
        "AP",
        "AP@2",
        "AP(rel=2)",
        "DCG",
        "DCG@3",
        "DCG(gain='exp')",
        "Hole@1",
        "Hole@4",
        "Judged@1",
        "Judged@4",
    ),
    *("P@1", "P@3", "P(rel=2)@3", "R", "R@2", "R(rel=0)@2", "RR", "RR@2", "RR(rel=2)", "R_cap@1", "R_cap@3"),
    *("Success@1", "Success(rel=3)@5", "nDCG", "nDCG@2", "nDCG@10", "nDCG(gain='exp')@3"),
    *("Rprec", "Rprec(rel=2)@3", "bpref", "bpref(rel=2)@4", "infAP", "infAP(rel=2)@4", "IPrec", "IAP"),
    *(
        "IPrec(recall=0.0)",
        "IPrec(recall=0.5, rel=2)@3",
        "IPrec(recall=1.0)",
        "IAP(rel=2)@4",
        "IAP(rounding='nearest')",
    ),
    *("F@1", "F(beta=2.0)@3", "SetP", "SetP(rel=2)@3", "SetR", "SetF", "SetF(beta=2.0)@3", "SetAP"),
    *("NumRet", "NumRet@2", "NumRel", "NumRel(rel=2)@2", "NumRelRet", "NumRelRet(rel=2)@2"),
    *("ERR(max_grade=5)", "ERR(max_grade=6)@2", "nERR(max_grade=5)", "nERR(max_grade=5)@2"),
    *("RBP", "RBP(gain='scaled', p=0.5)@3", "RBP(p=0.0)", "RBP_residual", "RBP_residual(p=0.95)@2"),
    *("NCG", "NCG@2", "NCG(gain='exp')@3", "Q", "Q@2", "Q(beta=10.0, gain='exp')", "Q(beta=0.0)"),
    *("condensed(AP)", "condensed(nDCG@2)", "condensed(P@2)", "condensed(RBP)", "condensed(infAP)"),
    *("nDCG(gain='1=1,2=3')@3", "nDCG(gain='1=9,2=1')", "nDCG(base=3.0, discount='original')", "IDCG@2"),
    *(
        "DCG(base=10.0)",
        "DCG(discount='original')@3",
        "NCG(gain='2=7')@2",
        "SDCG(max_grade=5)@3",
        "gmAP",
        "gmbpref",
    ),
    *("G", "G@2", "G(gain='exp')", "binG", "binG(rel=2)@3", "RnDCG", "RnDCG@2", "nDCG_rel", "nDCG_rel@2"),
    *(
        "Rprec(times=0.5)",
        "Rprec(times=1.7)",
        "Utility",
        "Utility(hit=2.0, miss=-0.5)@2",
        "SetR_cap",
        "SetR_cap@2",
    ),
    *("NumNonrelRet", "NumNonrelRet(rel=2)@2", "RR(of='best')", "Accuracy", "Accuracy(rel=2)@3", "Compat"),
    *("Compat(over='weights', p=0.5)@2", "BPM(max_grade=5)@3", "INSQ(max_grade=5)@9", "INST(max_grade=6)@9"),
    *("ContextPrecision", "ContextPrecision@2", "ContextPrecision(rel=2)@3"),
    *("NERR8(max_grade=5)@4", "NERR9(max_grade=5)@4", "NERR10(max_grade=5)@9", "NERR11(max_grade=5)@9"),
]
# A measure that is not listed is compared without settings; those of intents: tests/property/test_diversity.py.
OF_DOCUMENTS = [name for name in MEASURES.names() if MEASURES.get(name).of not in ("intents", "rules")]
LISTED = {parse_measure(text).name for text in EVERY}
EVERY += [f"{name}@3" for name in OF_DOCUMENTS if name not in LISTED]
TIES = st.sampled_from(["trec", "trec9"])


def per_query(scores, measure):
    return dict(zip(scores.queries.tolist(), scores.of(measure).tolist(), strict=True))


def test_every_registered_measure_has_a_slow_reference_here():
    assert sorted(reference.VALUES) == OF_DOCUMENTS


@given(trials(), TIES)
@example(({}, {"q": {"d": 1}}), "trec")
@example(({"q": {}}, {"q": {"d": 0}}), "trec")
@example(({"q": {"a": 1e300, "b": 1e299}}, {"q": {"a": 1}}), "trec9")
def test_values_are_those_of_plain_loops(trial, ties):
    run, qrels = trial
    found = score_run(Qrels.of(qrels), Run.of(run, ties=ties), EVERY)
    assert found.queries.tolist() == list(qrels)
    assert found.answered.tolist() == [bool(run.get(q)) for q in qrels]
    assert found.ignored == len(run.keys() - qrels.keys())
    for measure in found.measures:
        expected = reference.score_all(measure, run, qrels, ties)
        assert per_query(found, measure) == pytest.approx(expected, rel=1e-14, abs=1e-15)


@given(trials(), measure_texts(), TIES)
def test_any_settings_and_cutoffs(trial, text, ties):
    run, qrels = trial
    measure = str(parse_measure(text))
    found = score_run(Qrels.of(qrels), Run.of(run, ties=ties), [measure])
    expected = reference.score_all(measure, run, qrels, ties)
    assert per_query(found, measure) == pytest.approx(expected, rel=1e-14, abs=1e-15)
    if MEASURES.get(parse_measure(text).name).bounded:
        assert all(0 <= v <= 1 + 1e-12 for v in found.of(measure).tolist())


# Exact in a double, and so are their sums: whether the wanted gain is reached is then no matter of rounding.
dyadic = st.one_of(st.integers(-2, 5), st.sampled_from([0.5, 0.25, 1.75, 2.125, -0.5]))
EVERY_FRACTION = [text for text in EVERY if parse_measure(text).name != "RnDCG"]


@settings(max_examples=50)
@given(trials(dyadic), TIES)
def test_fractions_are_those_of_plain_loops_and_within_the_orders_of_ties(trial, ties):
    run, qrels = trial
    judgments, ranked = Qrels.of(qrels), Run.of(run, ties=ties)
    found = score_run(judgments, ranked, EVERY_FRACTION)
    for measure in found.measures:
        expected = reference.score_all(measure, run, qrels, ties)
        assert per_query(found, measure) == pytest.approx(expected, rel=1e-13, abs=1e-14)
    assert not np.any(found.low > found.values)
    assert not np.any(found.values > found.high)


def with_a_zero(trial):
    """Judgments all below 0 have trec_eval 9 read memory it never wrote: each query gets a judged zero."""
    run, qrels = trial
    return run, {q: row if max(row.values()) >= 0 else row | {next(iter(row)): 0} for q, row in qrels.items()}


# Within the range of a float.
moderate = trials(st.integers(-1, 4), scores.filter(lambda s: abs(s) < 1e30)).map(with_a_zero)


@given(moderate)
def test_values_are_those_of_trec_eval(trial):
    run, qrels = trial
    peers = pytest.importorskip("tests.peers")
    measures = [text for text in EVERY if peers.has_peer(text) and "rel=0" not in text]
    theirs = peers.by_trec_eval(qrels, run, measures)
    ours = score_run(Qrels.of(qrels), Run.of(run, ties="trec9"), measures)
    for measure in measures:
        values = per_query(ours, measure)
        assert values == pytest.approx({q: theirs[measure].get(q, 0.0) for q in values}, rel=0, abs=1e-12)


def shuffled(table, seed):
    rng = random.Random(seed)
    outer = list(table.items())
    rng.shuffle(outer)
    return {q: dict(rng.sample(list(row.items()), len(row))) for q, row in outer}


@settings(max_examples=40)
@given(trials(), TIES, st.integers(0, 2**31))
def test_shuffling_rows_and_queries_changes_no_bit(trial, ties, seed):
    """needs.md E1."""
    run, qrels = trial
    first = score_run(Qrels.of(qrels), Run.of(run, ties=ties), EVERY)
    again = score_run(Qrels.of(shuffled(qrels, seed + 1)), Run.of(shuffled(run, seed), ties=ties), EVERY)
    for measure in first.measures:
        assert per_query(first, measure) == per_query(again, measure)
    assert first.mean_values().tolist() == again.mean_values().tolist()
    assert (first.tied, first.ignored) == (again.tied, again.ignored)


@settings(max_examples=40)
@given(trials(), st.integers(0, 2**31))
def test_shuffling_changes_no_bit_of_an_interval(trial, seed):
    """needs.md E1."""
    run, qrels = trial
    measures = ["nDCG@10", "AP"]
    first = score_run(Qrels.of(qrels), Run.of(run), measures)
    again = score_run(Qrels.of(shuffled(qrels, seed)), Run.of(shuffled(run, seed)), measures)
    assert str(intervals(first)) == str(intervals(again))  # NaN is not NaN


@given(trials(), st.randoms(use_true_random=False))
def test_the_order_of_columns_changes_nothing(trial, rng):
    run, qrels = trial
    made = Run.of(run)
    rows = list(range(len(made.doc)))
    rng.shuffle(rows)
    again = Run.from_columns(
        made.queries, made.docs, made.query_of_row()[rows], made.doc[rows], made.score[rows]
    )
    assert again.doc.tolist() == made.doc.tolist()
    assert again.ptr.tolist() == made.ptr.tolist()
    assert again.score.tolist() == made.score.tolist()
    judged, shuffled_judged = Judged.of(made, Qrels.of(qrels)), Judged.of(again, Qrels.of(qrels))
    assert judged.rank.tolist() == shuffled_judged.rank.tolist()


@settings(max_examples=25)
@given(trials(), TIES)
def test_nothing_of_the_callers_is_changed(trial, ties):
    """needs.md E11."""
    run, qrels = trial
    run_before, qrels_before = copy.deepcopy(run), copy.deepcopy(qrels)
    made, judged = Run.of(run, ties=ties), Qrels.of(qrels)
    score, doc, grade = made.score.copy(), made.doc.copy(), judged.grade.copy()
    score_run(judged, made.without_self().top(3), EVERY)
    assert (run, qrels) == (run_before, qrels_before)
    assert [list(row) for row in run.values()] == [list(row) for row in run_before.values()]
    assert (made.score == score).all()
    assert (made.doc == doc).all()
    assert (judged.grade == grade).all()


@given(trials())
def test_the_size_of_the_look_up_table_changes_nothing(trial):
    """Few cells: one query at a time; the joins of long runs take many steps."""
    run, qrels = Run.of(trial[0]), Qrels.of(trial[1])
    whole = Judged.of(run, qrels)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("weir.core.judged._TABLE", 1)
        parts = Judged.of(run, qrels)
    for column in ("query", "rank", "grade", "retrieved", "tied"):
        assert getattr(parts, column).tolist() == getattr(whole, column).tolist()


@given(measure_texts(10**6))
def test_a_measure_parses_back_to_itself(text):
    measure = parse_measure(text)
    assert parse_measure(str(measure)) == measure
    assert hash(parse_measure(str(measure))) == hash(measure)
    assert str(parse_measure(str(measure))) == str(measure)


@given(
    st.one_of(
        st.text(max_size=40),
        st.text(st.sampled_from("nDCGRP@10(gain='exp'rel=), {}[]-+*#\\\n\0"), max_size=30),
        st.from_regex(r"(nDCG|P|RR)\((rel|gain|k)=.{0,12}\)@[0-9.-]{0,6}", fullmatch=True),
    )
)
@example("nDCG()()")
@example("P(rel={[]: 1})@3")
@example("P(rel=" + "-" * 50_000 + "1)@3")
@example("P(rel=0x" + "f" * 5000 + ")@3")
@example("P(rel=2, rel=3)@3")
@example("P(rel=\ud800)@3")
@example("(" * 3000)
@example("condensed(" * 3000)
@example("condensed(nDCG)@10")
@example("condensed(" * 15 + "AP")
def test_a_bad_text_is_refused_with_a_message_and_nothing_else(text):
    message = ""
    try:
        measure = parse_measure(text)
    except (BadValue, UnknownName) as refusal:
        message = str(refusal)
    else:
        assert parse_measure(str(measure)) == measure
    assert len(message) < 500


@settings(max_examples=25)
@given(trials())
def test_values_do_not_depend_on_what_else_is_measured(trial):
    run, qrels = trial
    together = score_run(Qrels.of(qrels), Run.of(run), EVERY)
    for measure in EVERY[::5]:
        alone = score_run(Qrels.of(qrels), Run.of(run), measure)
        assert alone.of(measure).tolist() == together.of(measure).tolist()


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40), st.randoms(use_true_random=False))
def test_means_are_exact_whatever_the_order(values, rng):
    from weir.core.scores import Scores
    from weir.core.strings import Ids

    queries = Ids.of(range(len(values)))
    mean = Scores(("m",), queries, np.array([values]), np.ones(len(values), bool)).mean_values()[0]
    assert mean == math.fsum(values) / len(values)
    rng.shuffle(values)
    assert Scores(("m",), queries, np.array([values]), np.ones(len(values), bool)).mean_values()[0] == mean


@settings(max_examples=25)
@given(trials())
def test_a_query_without_a_judgment_is_not_judged(trial):
    run, qrels = trial
    assume("nobody" not in qrels)
    first = score_run(Qrels.of(qrels), Run.of(run), EVERY)
    again = score_run(Qrels.of({"nobody": {}, **qrels}), Run.of(run), EVERY)
    assert again.mean_values().tolist() == first.mean_values().tolist()
    assert again.queries == first.queries
