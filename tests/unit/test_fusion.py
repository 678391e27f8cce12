from __future__ import annotations

import sys

import numpy as np
import pytest

import weir
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.core.strings import MIX, SEED, Ids, Strings
from weir.errors import BadValue, UnknownName, WeirError
from weir.measures import score_run
from weir.systems.fusion import METHODS, Fusion, candidates, fit, fuse, parse_fusion
from weir.systems.fusion.fit import cross_validated, fold_of, fused_by, trials
from weir.systems.fusion.fuse import Pool
from weir.systems.fusion.methods import united

A = {"q1": {"a": 4.0, "b": 2.0, "c": 0.0}, "q2": {"a": 1.0}}
B = {"q1": {"b": 9.0, "d": 1.0}, "q3": {"e": 5.0}}

NAMES = [
    "rrf",
    "rrf(k=10)",
    "wsum(weights=[0.3, 0.7])",
    'wsum(weights=[0.3, 0.7, 0.0], norm="zscore")',
    'combmnz(norm="none")',
    "rbc(p=0.95)",
    "logisr(sigma=0.01)",
]


@pytest.mark.parametrize("text", NAMES)
def test_a_fusion_prints_and_parses_back(text):
    how = parse_fusion(text)
    assert str(how) == text
    assert parse_fusion(str(how)) == how
    assert hash(parse_fusion(text)) == hash(how)


def test_settings_equal_to_the_default_are_the_default():
    assert parse_fusion('combsum(norm="minmax")') == Fusion("combsum")
    assert parse_fusion("rrf( k = 60 )") == parse_fusion("rrf()") == Fusion("rrf")
    assert parse_fusion("wsum(weights=(1, 2))") == parse_fusion("wsum(weights=[1.0, 2.0])")
    assert parse_fusion("rbc(p=1)") == Fusion("rbc", (("p", 1.0),))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rff", "no fusion named 'rff'; did you mean rrf"),
        ("rrf(kk=1)", "did you mean k"),
        ("rrf(norm='minmax')", "no setting of rrf named 'norm'"),
        ("combsum(norm='minmx')", "no normalisation named 'minmx'; did you mean minmax"),
        ("combsum(norm=1)", "expected one of max, minmax"),
        ("rrf(k=0.5)", "a whole number"),
        ("rrf(k=True)", "a whole number"),
        ("rrf(k=-1)", "within 0..1000000"),
        ("rbc(p='x')", "a number"),
        ("rbc(p=1.5)", "within 0..1"),
        ("rbc(p=1e999)", "within 0..1"),
        ("wsum(weights=[1e999, 1])", "expected numbers from 0"),
        ("wsum(weights=[-1, 1])", "expected numbers from 0"),
        ("wsum(weights=[0, 0])", "not all of them 0"),
        ("wsum(weights=0.5)", "a list of numbers"),
        ("wsum(weights=['a'])", "a list of numbers"),
        ("rrf(10)", "is not a fusion"),
        ("rrf(**{})", "is not a fusion"),
        ("rrf(k=rrf)", "is not a fusion"),
        ("rrf(", "is not a fusion"),
        ("a.b()", "is not a fusion"),
        ("rrf(k=" + "(" * 300, "is not a fusion"),
        ("x" * 1000, "is not a fusion"),
        ("", "is not a fusion"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(text, message):
    with pytest.raises((BadValue, UnknownName)) as error:
        parse_fusion(text)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_reciprocal_ranks_by_hand():
    found = weir.fuse([A, B], "rrf").to_dict()
    assert found == {
        "q1": {"b": 1 / 61 + 1 / 62, "a": 1 / 61, "d": 1 / 62, "c": 1 / 63},
        "q2": {"a": 1 / 61},
        "q3": {"e": 1 / 61},
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("combsum", {"b": 1.5, "a": 1.0, "d": 0.0, "c": 0.0}),
        ("combmnz", {"b": 3.0, "a": 1.0, "d": 0.0, "c": 0.0}),
        ("combanz", {"a": 1.0, "b": 0.75, "d": 0.0, "c": 0.0}),
        ("combmin", {"a": 1.0, "b": 0.5, "d": 0.0, "c": 0.0}),
        ("combmax", {"b": 1.0, "a": 1.0, "d": 0.0, "c": 0.0}),
        ("combmed", {"a": 1.0, "b": 0.75, "d": 0.0, "c": 0.0}),
        ("wsum", {"b": 0.75, "a": 0.5, "d": 0.0, "c": 0.0}),
        ("wsum(weights=[2, 1])", {"b": 2.0, "a": 2.0, "d": 0.0, "c": 0.0}),
        ('combsum(norm="none")', {"b": 11.0, "a": 4.0, "d": 1.0, "c": 0.0}),
        ('combsum(norm="max")', {"b": 1.5, "a": 1.0, "d": 1 / 9, "c": 0.0}),
        ('combsum(norm="rank")', {"b": 1 + 2 / 3, "a": 1.0, "d": 0.5, "c": 1 - 2 / 3}),
        ('combsum(norm="sum")', {"b": 1 + 2 / 6, "a": 4 / 6, "d": 0.0, "c": 0.0}),
        # Of four documents the first run leaves out d (1 point), the second a and c (1.5 points each).
        ("borda", {"b": 7.0, "a": 5.5, "d": 4.0, "c": 3.5}),
        # b is above all others in one run and below none but a, so it beats c and d, and ties with a.
        ("condorcet", {"b": 2.5, "a": 2.0, "d": 1.0, "c": 0.5}),
        ("isr", {"b": 2.5, "a": 1.0, "d": 0.25, "c": 1 / 9}),
        ("rbc(p=0.5)", {"b": 0.75, "a": 0.5, "d": 0.25, "c": 0.125}),
    ],
)
def test_methods_by_hand(text, expected):
    found = weir.fuse([A, B], text).to_dict()["q1"]
    assert list(found) == list(expected)
    assert found == pytest.approx(expected)


def test_a_list_of_equal_scores_is_full_not_empty():
    flat = [{"q": {"a": 3.0, "b": 3.0}}, {"q": {"a": 1.0}}]
    assert weir.fuse(flat, "combsum").to_dict() == {"q": {"a": 2.0, "b": 1.0}}
    assert weir.fuse(flat, 'combsum(norm="sum")').to_dict() == {"q": {"a": 1.5, "b": 0.5}}
    assert weir.fuse(flat, 'combsum(norm="zscore")').to_dict() == {"q": {"b": 0.0, "a": 0.0}}
    assert weir.fuse([{"q": {"a": 0.0}}] * 2, 'combsum(norm="max")').to_dict() == {"q": {"a": 0.0}}


def test_scores_below_zero_keep_their_order_under_max():
    run = {"q": {"a": -1.0, "b": -4.0}}
    assert weir.fuse([run, run], 'combsum(norm="max")').to_dict() == {"q": {"a": -0.5, "b": -2.0}}


def test_equal_scores_follow_the_one_order_of_results():
    runs = [{"q": {"a": 1.0}, "r": {"a": 1.0}}, {"q": {"b": 1.0}, "r": {"a": 1.0}}]
    assert list(weir.fuse(runs, "rrf").to_dict()["q"]) == ["b", "a"]


def test_condorcet_does_not_end_in_a_circle():
    orders = ("abc", "bca", "cab")
    runs = [{"q": {d: -float(i) for i, d in enumerate(order)}} for order in orders]
    assert weir.fuse(runs, "condorcet").to_dict() == {"q": {"c": 1.0, "b": 1.0, "a": 1.0}}


@pytest.mark.parametrize("count", [500, 40])
def test_condorcet_in_blocks_is_condorcet(monkeypatch, count):
    random = np.random.default_rng(5)
    runs = [{"q": {f"d{d}": float(s) for d, s in enumerate(random.permutation(count))}} for _ in range(3)]
    whole = weir.fuse(runs, "condorcet").to_dict()
    monkeypatch.setattr("weir.systems.fusion.methods.CELLS", 7 * count)
    assert weir.fuse(runs, "condorcet").to_dict() == whole


@pytest.mark.filterwarnings("ignore:k=:weir.errors.RankingWarning")
@pytest.mark.parametrize("rows", [1, 7, 1000])
def test_blocks_of_any_size_give_the_same(monkeypatch, rows):
    random = np.random.default_rng(7)
    runs = [
        {
            f"q{q}": {
                f"d{d}": float(s) for d, s in zip(random.permutation(9)[:5], random.random(5), strict=True)
            }
            for q in range(6)
        }
        for _ in range(3)
    ]
    whole = {name: weir.fuse(runs, name, 4).to_dict() for name in METHODS}
    monkeypatch.setattr(sys.modules[Pool.__module__], "BLOCK_ROWS", rows)
    assert {name: weir.fuse(runs, name, 4).to_dict() for name in METHODS} == whole


def test_what_runs_share_is_not_translated():
    a, b = Run.of(A), Run.of(A)
    pool = Pool.of([a, Run(a.queries, a.docs, b.ptr, b.doc, b.score)])
    assert pool.docs is a.docs
    assert pool.queries is a.queries
    assert pool.number == (None, None)


def test_two_identifiers_of_one_hash_stay_two():
    def fold(word: int) -> int:
        state = (SEED ^ word) * MIX % 2**64
        return state ^ state >> 32

    first, second = int.from_bytes(b"identify", "little"), int.from_bytes(b"document", "little")
    other = (fold(first) ^ fold(second) ^ int.from_bytes(b"12345678", "little")).to_bytes(8, "little")
    names = [b"identify12345678", b"document" + other]
    assert len(set(Ids(Strings.packed(names))._index.hashes.tolist())) == 1
    ids, codes = united([Ids(Strings.packed([names[0], b"x"])), Ids(Strings.packed([names[1], b"x"]))])
    assert len(ids) == 3
    assert [code.tolist() for code in codes] == [[0, 1], [2, 1]]


@pytest.mark.parametrize(
    ("runs", "method", "message"),
    [
        ([A], "rrf", "two or more rankings; found 1"),
        ([A, {"q9": {"a": 1.0}}], "rrf", "no query is answered by two"),
        ([{}, {}], "rrf", "run ranks no document"),
        ([A, {}], "rrf", "run ranks no document"),
        ([A, B], "wsum(weights=[1])", "weights has 1 for 2 rankings"),
    ],
)
def test_what_cannot_be_fused_is_refused(runs, method, message):
    with pytest.raises(BadValue, match=message.replace("[", r"\[")):
        weir.fuse(runs, method)


@pytest.mark.filterwarnings("ignore:k=:weir.errors.RankingWarning")
def test_k_must_be_a_depth():
    with pytest.raises(BadValue, match="k is 0"):
        weir.fuse([A, B], k=0)


def test_a_run_without_its_documents_names_is_refused():
    ids = Ids.of(["q"])
    run = Run(ids, Ids.of(["d"]), np.array([0, 1]), np.array([-1], np.int32), np.array([1.0]))
    with pytest.raises(BadValue, match="read the whole run"):
        fuse([run, run])


def graded(queries: int) -> tuple[list[Run], Qrels]:
    """Two runs of which the second is right, and judgments."""
    right = {f"q{i}": {"good": 3.0, "fair": 2.0, "bad": 1.0} for i in range(queries)}
    wrong = {f"q{i}": {"bad": 3.0, "worse": 2.5, "good": 0.5} for i in range(queries)}
    return [Run.of(wrong, "wrong"), Run.of(right, "right")], Qrels.of(
        {q: {"good": 2, "fair": 1} for q in right}
    )


def test_a_fit_finds_the_weights_that_do_best():
    runs, qrels = graded(12)
    found = fit("wsum", runs, qrels, "nDCG@3", folds=4)
    assert found.fitted == 1.0
    assert found.held_out.tolist() == [1.0] * 12
    assert dict(found.chosen.settings)["weights"][0] < 0.5
    assert [fold.queries for fold in found.folds] == [3, 3, 3, 3]
    assert found.tried == len(candidates("wsum", 2)) == 11 * 6


def test_held_out_values_are_those_of_the_run_that_is_written():
    random = np.random.default_rng(3)
    runs = [
        Run.of({f"q{q}": {f"d{d}": float(random.random()) for d in range(8)} for q in range(20)}, f"run {r}")
        for r in range(3)
    ]
    qrels = Qrels.of(
        {f"q{q}": {f"d{d}": int(d) % 3 for d in random.permutation(8)[:3]} for q in range(3, 24)}
    )
    found = fit("wsum", runs, qrels, "nDCG@5", folds=3, seed=1)
    run = fused_by(found, Pool.of(runs))
    assert sorted(run.queries.tolist()) == sorted(f"q{q}" for q in range(20))
    assert score_run(qrels, run, "nDCG@5").values[0].tolist() == found.held_out.tolist()
    assert len({fold.chosen for fold in found.folds}) > 1
    # No query is fused with settings that its own judgments chose.
    names = found.queries.tolist()
    for number, fold in enumerate(found.folds):
        inside = [i for i in range(len(names)) if found.fold[i] == number]
        others = Qrels.of(
            {q: grades for q, grades in qrels.to_dict().items() if q not in {names[i] for i in inside}}
        )
        made = trials(candidates("wsum", 3), Pool.of(runs), others, "nDCG@5")
        best = max(range(len(made.tried)), key=lambda i: made.values[i].mean())
        assert made.values[best].mean() == pytest.approx(fold.fitted)
        assert fold.chosen == made.tried[best] or made.values[best].mean() == pytest.approx(
            made.values[made.tried.index(fold.chosen)].mean()
        )
        whole = score_run(qrels, fuse(runs, fold.chosen), "nDCG@5").values[0]
        assert whole[inside].tolist() == found.held_out[inside].tolist()
    # Unjudged queries have the settings chosen on all judged ones.
    alone = fuse(runs, found.chosen).to_dict()
    assert {q: run.to_dict()[q] for q in ("q0", "q1", "q2")} == {q: alone[q] for q in ("q0", "q1", "q2")}


def test_folds_do_not_hang_on_the_order_of_queries():
    names = [f"q{i}" for i in range(23)]
    fold = dict(zip(names, fold_of(Ids.of(names), 4, 9).tolist(), strict=True))
    turned = dict(zip(names[::-1], fold_of(Ids.of(names[::-1]), 4, 9).tolist(), strict=True))
    assert fold == turned
    assert sorted(np.bincount(list(fold.values()))) == [5, 6, 6, 6]
    assert fold != dict(zip(names, fold_of(Ids.of(names), 4, 10).tolist(), strict=True))


def test_settings_that_are_given_stay():
    assert {how.norm for how in candidates('wsum(norm="minmax")', 2)} == {"minmax"}
    assert len(candidates('wsum(norm="minmax")', 3, 0.5)) == 7
    assert {dict(how.settings)["weights"] for how in candidates("wsum(weights=[1, 3])", 2)} == {(1.0, 3.0)}
    assert candidates("rrf", 2)[0] == Fusion("rrf")
    assert all(
        how == parse_fusion(str(how))
        for name in ("rrf", "rbc", "logisr", "combmnz")
        for how in candidates(name, 2)
    )


def test_weights_are_on_the_simplex_and_each_once():
    tried = [
        dict(how.settings).get("weights", (1 / 3,) * 3) for how in candidates('wsum(norm="none")', 3, 0.2)
    ]
    assert len(tried) == len(set(tried)) == 22
    assert all(abs(sum(weights) - 1) < 1e-12 for weights in tried)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda r, q: fit("borda", r, q), "no setting is left to fit"),
        (lambda r, q: fit("rrf(k=60)", r, q), "no setting is left to fit"),
        (lambda r, q: fit("rrf", r, q, folds=1), "1 folds of 4"),
        (lambda r, q: fit("rrf", r, q, folds=5), "5 folds of 4"),
        (lambda r, q: fit("rrf", r, q, "nDCQ@10"), "did you mean nDCG"),
        (lambda r, q: fit("rrf", r, Qrels.of({"x": {"good": 1}})), "no judged query"),
        (lambda r, q: fit([], r, q), "at least one fusion"),
        (lambda r, q: candidates("wsum", 2, 0.3), "divides 1"),
        (lambda r, q: candidates("wsum", 2, -1), "divides 1"),
        (lambda r, q: candidates("wsum", 6), "take a larger step"),
        (lambda r, q: candidates("wsum", 60), "take a larger step"),
        (lambda r, q: candidates("wsum(weights=[1])", 2), "weights has 1 for 2"),
    ],
)
def test_a_fit_that_cannot_be_is_refused(call, message):
    with pytest.raises(WeirError, match=message):
        call(*graded(4))


def test_of_equal_settings_the_default_is_chosen_and_progress_is_told():
    runs, qrels = graded(4)
    told: list[tuple[int, int]] = []
    made = trials(
        candidates("rrf", 2), Pool.of([runs[1], runs[1]]), qrels, "nDCG@3", lambda *at: told.append(at)
    )
    assert cross_validated(made, 2).chosen == Fusion("rrf")
    assert told[-1] == (4 * 14, 4 * 14)
    assert [done for done, _ in told] == sorted(done for done, _ in told)


def test_geometric_means_are_shown_as_such():
    runs, qrels = graded(6)
    assert 0 < fit("rrf", runs, qrels, "gmAP", folds=2).fitted <= 1
