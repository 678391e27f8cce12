"""Dicts, lists and frames in memory are joined without numbering documents: the same values as the way of runs and judgments."""

from __future__ import annotations

import unicodedata
import warnings
from collections import OrderedDict, defaultdict
from dataclasses import fields, replace
from itertools import chain

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.strategies import fractions, grades, scores, trials

import weir
from weir.core.judged import Judged
from weir.core.origin import Origin
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.errors import WeirError
from weir.files.dict_join import join_dicts
from weir.files.frames import refuse_mismatched
from weir.measures import score_run
from weir.measures.evaluate import check_shared_queries, measures_of, parse_conventions

CONVENTIONS = [
    "default",
    "ties=expected",
    "ties=bounds",
    "missing=answered-only",
    "ties=trec9",
    "self_matches=drop",
]


def by_runs(qrels, run) -> Judged:
    """The join as it is made of a run and judgments, after the same checks."""
    refuse_mismatched(qrels, run)
    return Judged.of(Run.of(run), Qrels.of(qrels))


def outcome(action):
    """What an action returns, or the type and text of its error; and its warnings."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            return action(), [str(one.message) for one in heard]
        except (WeirError, TypeError, ValueError) as error:
            return (type(error), str(error)), [str(one.message) for one in heard]


def assert_equal(one: object, other: object, kind: type) -> None:
    """Equal to the bit, field by field; judgments that are kept to tell others apart by what they hold."""
    assert type(one) is type(other), (one, other)
    if not isinstance(one, kind):
        assert one == other
        return
    for name in (field.name for field in fields(kind)):
        mine, theirs = getattr(one, name), getattr(other, name)
        if isinstance(mine, np.ndarray):
            assert mine.dtype == theirs.dtype, name
            np.testing.assert_array_equal(mine, theirs, err_msg=name)
        elif isinstance(mine, Origin):
            assert repr(replace(mine, judgments=None)) == repr(replace(theirs, judgments=None))
            assert mine.marks == theirs.marks
        elif name == "judgments":
            assert mine.to_dict() == theirs.to_dict()
        else:
            assert repr(mine) == repr(theirs), name


CLOSE = st.sampled_from([0.5, 0.5 + 1e-9, 0.5 - 1e-9, 1e8, 1e8 + 1, 1e300, 1e299])
"""Scores of which several are equal as floats only."""


@given(trials(st.one_of(grades, fractions), CLOSE))
def test_the_ranks_by_floats_are_those_of_a_run_in_that_order(trial):
    run, qrels = (Run.of(trial[0]), Qrels.of(trial[1]))
    as_floats = Judged.of(Run.of(trial[0], ties="trec9"), qrels)
    for joined in (Judged.of(run, qrels), join_dicts(trial[1], trial[0])):
        if joined is not None:
            by_floats = joined.by_floats()
            for name in ("query", "rank", "grade", "retrieved", "ideal"):
                np.testing.assert_array_equal(getattr(by_floats, name), getattr(as_floats, name))


@given(
    trials(
        st.one_of(grades, fractions),
        st.one_of(scores, st.integers(-3, 3), st.sampled_from([0.5, 0.25]), CLOSE),
    ),
    st.sampled_from([dict, OrderedDict, lambda rows: defaultdict(dict, rows)]),
    st.booleans(),
)
def test_the_join_of_dicts_is_that_of_a_run_with_judgments(trial, made, whole):
    run, qrels = trial
    if whole:  # identifiers that are whole numbers, which stand as text among equal scores
        numbers = {
            name: at * 7
            for at, name in enumerate(
                {*run, *qrels, *(d for r in (run, qrels) for o in r.values() for d in o)}
            )
        }
        run, qrels = (
            {numbers[q]: {numbers[d]: v for d, v in row.items()} for q, row in of.items()}
            for of in (run, qrels)
        )
    run, qrels = made({q: made(row) for q, row in run.items()}), made(qrels)
    quick, heard = outcome(lambda: join_dicts(qrels, run))
    assert not heard
    if quick is None:  # too odd, or there is nothing to count: what then is said is tested below
        return
    assert_equal(quick, by_runs(qrels, run), Judged)


@given(trials())
def test_lists_are_joined_as_dicts_are(trial):
    run, qrels = trial
    ranked = {q: list(row) for q, row in run.items()}
    relevant = {q: set(row) if len(row) % 2 else tuple(row) for q, row in qrels.items()}
    quick = join_dicts(relevant, ranked)
    names = chain(ranked, relevant, *ranked.values(), *relevant.values())
    if not all(unicodedata.is_normalized("NFC", str(name)) for name in names):
        return  # perhaps the same as another identifier but for the composition of letters, which is said
    if any(ranked.values()) and not any(str(q) == str(row[0]) for q, row in ranked.items() if row):
        assert_equal(quick, by_runs(relevant, ranked), Judged)


def test_usual_dicts_are_joined_without_a_run():
    qrels, run = (
        {"q": {"a": 1, "b": 0}, "r": {"c": 2}, "none": {}},
        {"q": {"a": 0.5, "b": 0.5, "x": 0.5}, "s": {"c": 1.0}},
    )
    for scored in (
        run,
        {q: {d: np.float32(v) for d, v in row.items()} for q, row in run.items()},
        {q: list(row) for q, row in run.items()},
    ):
        assert_equal(join_dicts(qrels, scored), by_runs(qrels, scored), Judged)


odd = st.sampled_from(
    [float("nan"), float("inf"), True, None, "1", "nan", b"1", [1.0], {"a": 1}, 10**400, 2**62, 1 + 2j, np.float64(2), np.int64(1), np.int16(2),
     np.bool_(True), 1e308, -0.0, 20000, 4]
)  # fmt: skip
names = st.sampled_from(
    [
        "a",
        "b",
        "",
        1,
        2,
        1.0,
        True,
        None,
        "\ud800",
        "é" * 3000,
        "x" * 5000,
        ("a", 1.0),
        np.str_("a"),
        np.int64(1),
    ]
)
rows = st.one_of(
    st.dictionaries(names, st.one_of(odd, scores, grades), max_size=3),
    st.lists(names, max_size=3),
    st.lists(names, max_size=3).map(tuple),
    st.sets(names.filter(lambda one: one is not None), max_size=3),
    st.lists(st.tuples(names, st.one_of(scores, odd)), max_size=2),
    st.sampled_from([None, "a", 3, np.array(["a", "b"]), weir]),
)
anything = st.dictionaries(
    st.one_of(st.sampled_from(["q", "doc", "score", "query"]), names), rows, max_size=3
)


@given(
    st.one_of(anything, st.just({"q": {"a": 1, "b": 2}})),
    st.one_of(anything, st.just({"q": {"a": 0.5, "b": 1.5}})),
)
@example(qrels={"q": {"a": 0.5}}, run={"q": {}})
def test_odd_values_are_refused_and_warned_of_as_by_the_way_of_runs(qrels, run):
    def slowly():
        refuse_mismatched(qrels, run)
        ranked = Run.of(run)
        judgments = Qrels.of(qrels)
        joined = Judged.of(ranked, judgments)
        check_shared_queries(joined, lambda: ranked, lambda: judgments)
        return score_run(judgments, ranked, ["AP", "nDCG@10"])

    mine, my_warnings = outcome(lambda: weir.evaluate(qrels, run, ["AP", "nDCG@10"]))
    if isinstance(mine, weir.Scores):
        theirs, their_warnings = outcome(slowly)
        assert_equal(replace(mine, remarks=()), theirs, weir.Scores)
        assert mine.remarks == weir.evaluate(Qrels.of(qrels), Run.of(run), ["AP", "nDCG@10"]).remarks
        assert my_warnings == their_warnings
    else:
        assert join_dicts(qrels, run) is None or "have no query in common" in mine[1]


@given(trials(fractions), st.sampled_from(CONVENTIONS))
def test_scores_of_dicts_are_those_of_a_run_by_every_convention(trial, text):
    run, qrels = trial
    wanted = ["nDCG@3", "AP", "Judged@10", "RBP", "condensed(P@2)", "gmAP"]
    mine, _ = outcome(lambda: weir.evaluate(qrels, run, wanted, text))
    if not isinstance(mine, weir.Scores):
        return
    expected = score_run(Qrels.of(qrels), Run.of(run), measures_of(wanted), parse_conventions(text))
    assert_equal(replace(mine, remarks=()), expected, weir.Scores)
    assert mine.remarks == weir.evaluate(Qrels.of(qrels), Run.of(run), wanted, text).remarks


def test_scores_that_are_equal_as_floats_alone_are_noted_from_dicts_as_from_runs():
    qrels = {f"q{n}": {"a": 1} for n in range(3)}
    run = {f"q{n}": {"a": 0.1 + n * 1e-12, "b": 0.1, "c": 0.05} for n in range(3)}
    notes = weir.evaluate(qrels, run, ["RR", "P@3"]).remarks
    assert [note.text.split(" is ")[0] for note in notes] == ["RR"]
    assert notes == weir.evaluate(Qrels.of(qrels), Run.of(run), ["RR", "P@3"]).remarks


def test_a_straight_path_crosses_few_files():
    from scripts.walk import walked

    qrels, run = {"q1": {"a": 1}, "q2": {"b": 1}}, {"q1": {"a": 2.0, "c": 1.0}, "q2": {"b": 1.5}}
    weir.evaluate(qrels, run, "nDCG@10")
    files, _, functions = walked(lambda: weir.evaluate(qrels, run, "nDCG@10"))
    assert len(files) <= 17
    assert functions <= 72


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_are_joined_without_a_run(library):
    frames = pytest.importorskip(library, reason=f"frames of {library} take {library}")
    qrels = frames.DataFrame({"query": ["q", "q", "r"], "doc": ["a", "b", "c"], "grade": [1, 0, 2]})
    run = frames.DataFrame({"query": ["q", "q", "s"], "doc": ["b", "a", "c"], "score": [0.5, 0.5, 1.0]})
    scores = weir.evaluate(qrels, run, ["AP"])
    assert scores.of("AP").tolist() == [0.5, 0.0]
