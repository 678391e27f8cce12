"""What re-rankings did to their first stage: each statistic against plain counting, and what failures look like."""

from __future__ import annotations

import json
import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau

import weir
from weir.audit.rankings import ranking_hashes
from weir.cli import main
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.errors import BadRanking, BadValue
from weir.measures import parse_measure
from weir.plugins.llm.reordering import (
    ReorderRules,
    WindowShape,
    ideal_chances,
    order_changes,
    rank_bands,
    reach,
    reorderings,
)
from weir.plugins.llm.study_tables import REORDERINGS
from weir.stats.resampling import SEED, interval, ratio_interval

NDCG = parse_measure("nDCG@10")


def run_of(orders):
    """A run in which each query has its documents in the order given."""
    return Run.of({f"q{q:02}": [f"d{d:03}" for d in order] for q, order in enumerate(orders)})


def windowed(order, decide, window=20, step=10):
    """A listwise pass over an order: decide(documents) gives each window's documents anew."""
    order = list(order)
    stop = len(order)
    while True:
        start = max(0, stop - window)
        order[start:stop] = decide(order[start:stop])
        if start == 0:
            return order
        stop -= step


@st.composite
def orders(draw):
    n = draw(st.integers(1, 14))
    before = list(range(n))
    after = draw(st.permutations(list(range(n + 2))))[: draw(st.integers(0, n + 2))]
    return before, after


@settings(max_examples=40)
@given(st.lists(orders(), min_size=1, max_size=3), st.integers(1, 4), st.integers(2, 6), st.integers(1, 6))
def test_every_column_is_what_plain_counting_says(pairs, k, window, step):
    rules = ReorderRules(k=k, shape=WindowShape(max(window, step), step))
    first, second = run_of([a for a, _ in pairs]), run_of([b for _, b in pairs])
    found = order_changes(first, second, rules, 14)
    for q, (before, deeper) in enumerate(pairs):
        after = deeper[: len(before)]
        both = [d for d in before if d in after]
        assert found.queries[q] == f"q{q:02}"
        assert found.answered[q] == bool(after)
        assert found.lost[q] == len(before) - len(both)
        if not after:
            continue
        assert found.new[q] == sum(d not in before for d in after)
        assert found.kept[q] == (before == after)
        assert found.kept_first[q] == (before[:k] == after[:k])
        apart = [i for i in range(len(before)) if i >= len(after) or after[i] != before[i]]
        assert found.last_moved[q] == (max(apart) + 1 if apart else 0)
        if both:
            moves = [abs(before.index(d) - after.index(d)) for d in both]
            assert found.moved[q] == pytest.approx(sum(moves) / len(moves))
        if len(both) > 1:
            tau = kendalltau([before.index(d) for d in both], [after.index(d) for d in both]).statistic
            assert found.tau[q] == pytest.approx(tau)
        places = [before.index(d) + 1 if d in before else 0 for d in after[:k]]
        assert found.sources[q].tolist() == places + [0] * (k - len(places))
        closed = [set(before[:b]) == set(after[:b]) for b in range(len(before) + 1)]
        half, n = step // 2, len(before)
        borders = [n - step * i for i in range(1, n) if half and n - step * i > half]
        each = [closed[b] - (closed[b - half] + closed[b + half]) / 2 for b in borders if b + half < n]
        assert math.isnan(found.sealed[q]) if not each else found.sealed[q] == pytest.approx(np.mean(each))


@pytest.mark.parametrize(
    ("count", "window", "step"), [(100, 20, 10), (37, 20, 10), (9, 4, 3), (5, 8, 2), (1, 2, 1)]
)
def test_no_order_of_windows_puts_a_document_deeper_than_is_said(count, window, step):
    shape, deepest = WindowShape(window, step), np.zeros(count, int)
    for document in range(count):
        sunk = windowed(
            range(count), lambda w, d=document: [x for x in w if x != d] + [d] * (d in w), window, step
        )
        deepest[document] = sunk.index(document) + 1
    assert shape.deepest(count).tolist() == deepest.tolist()
    bottom = run_of([list(range(count))])
    turned = run_of([windowed(range(count), lambda w: w[::-1], window, step)])
    assert order_changes(bottom, turned, ReorderRules(shape=shape), count).beyond.sum() == 0
    if count > window:
        whole = run_of([list(range(count))[::-1]])
        assert order_changes(bottom, whole, ReorderRules(shape=shape), count).beyond.sum() > 0


@given(st.lists(st.integers(-1, 3), min_size=1, max_size=9), st.integers(1, 6))
def test_chances_of_a_perfect_order_are_those_of_all_orders_of_ties(grades, k):
    """Which of equal grades are inside is counted: a document has as many places left as there are, of as many."""
    found = ideal_chances(np.array(grades, float), k)
    positive = [max(g, 0) for g in grades]
    for g, chance in zip(positive, found, strict=True):
        above, equal = sum(o > g for o in positive), positive.count(g)
        assert chance == pytest.approx(min(1, max(0, k - above) / equal))
    assert found.sum() == pytest.approx(min(k, len(grades)))


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1))
def test_blocks_are_what_plain_counting_says(seed):
    rng = np.random.default_rng(seed)
    count, k = int(rng.integers(3, 30)), int(rng.integers(1, 8))
    befores = [rng.permutation(count).tolist() for _ in range(4)]
    afters = [rng.permutation(order)[: rng.integers(1, count + 1)].tolist() for order in befores]
    qrels = Qrels.of(
        {f"q{q:02}": {f"d{d:03}": int(rng.integers(0, 4)) for d in range(0, count, 2)} for q in range(4)}
    )
    rules = ReorderRules(k=k, block=5, rel=2)
    first, second = run_of(befores), run_of(afters)
    blocks, grades = rank_bands(first, second, qrels, rules, count), qrels.to_dict()
    early, late, _ = reach(first, second, qrels, rules, count)
    for block in blocks:
        rows = [(q, d, p) for q, order in enumerate(befores) for p, d in enumerate(order, 1)
                if block.start <= p <= block.stop]  # fmt: skip
        relevant = [(q, d) for q, d, _ in rows if grades[f"q{q:02}"].get(f"d{d:03}", 0) >= 2]
        top = [(q, d) for q, d, _ in rows if d in afters[q][:k]]
        rises = [p - afters[q].index(d) - 1 for q, d, p in rows if d in afters[q]]
        assert (block.documents, block.reach.relevant) == (len(rows), len(relevant))
        assert block.promoted == pytest.approx(len(top) / len(rows))
        assert block.reach.reached == len(set(relevant) & set(top))
        assert block.raised == pytest.approx(np.mean(rises)) if rises else math.isnan(block.raised)
    assert sum(b.reach.relevant for b in blocks) == early.relevant + late.relevant
    assert sum(b.reach.ideal for b in blocks) == pytest.approx(early.ideal + late.ideal)


def test_intervals_of_ratios_are_those_of_means_where_each_query_counts_one():
    rng = np.random.default_rng(5)
    values, ones = rng.random(60), np.ones(60)  # as many as have percentiles
    generator = [np.random.default_rng(SEED) for _ in range(3)]
    assert ratio_interval((values, ones), generator[0]) == pytest.approx(
        interval(values, generator[1]), abs=1e-12
    )
    assert all(map(math.isnan, ratio_interval((values, ones), generator[2], (values, ones))))  # never varies
    assert all(math.isnan(end) for end in ratio_interval((values, 0 * ones), np.random.default_rng(1)))
    with pytest.raises(BadValue, match="level"):
        ratio_interval((values, ones), np.random.default_rng(1), level=1)
    parts = (values, values + rng.random(60))
    drawn = [rng.integers(0, 60, 60) for _ in range(20_000)]
    plain = np.quantile([parts[0][d].sum() / parts[1][d].sum() for d in drawn], [0.025, 0.975])
    assert ratio_interval(parts, np.random.default_rng(2)) == pytest.approx(plain, abs=0.004)


def collection(rng, queries=40, count=100):
    """First stages in which relevance falls with place, and their judgments."""
    befores = [rng.permutation(200)[:count].tolist() for _ in range(queries)]
    grades = {
        f"q{q:02}": {f"d{d:03}": int(rng.random() < 0.5 * 0.97**p) for p, d in enumerate(order)}
        for q, order in enumerate(befores)
    }
    return befores, grades


def test_what_re_rankings_did_is_found():
    rng = np.random.default_rng(7)
    befores, grades = collection(rng)
    qrels = Qrels.of(grades)

    def judged(q, noise):
        return lambda window: sorted(
            window, key=lambda d: -(grades[f"q{q:02}"][f"d{d:03}"] + noise * rng.random())
        )

    def failing(q):
        return lambda window: window if rng.random() < 0.5 else judged(q, 0.5)(window)

    def placed(window):
        return [window[9], *window[:9], *window[10:]] if len(window) > 9 else window

    afters = {
        "good": [windowed(o, judged(q, 0.5)) for q, o in enumerate(befores)],
        "whole": [judged(q, 0.5)(o) for q, o in enumerate(befores)],
        "kept": befores,
        "fixed": [windowed(o, placed) for o in befores],
        "failing": [windowed(o, failing(q)) for q, o in enumerate(befores)],
        "cut": [[*o[:90], 999] for o in befores],
    }
    runs = {name: run_of(orders) for name, orders in afters.items()}
    found = {one.system: one for one in reorderings(run_of(befores), runs, qrels, NDCG)}
    assert found["good"].beyond == 0 < found["whole"].beyond
    assert (found["kept"].mean_of("kept").mean, found["kept"].gain.p, found["kept"].repeated) == (1, 1, 0)
    assert (found["fixed"].repeated, found["fixed"].pattern[0]) == (40, 10)
    assert found["failing"].mean_of("sealed").low > 0.1
    assert (
        found["whole"].mean_of("sealed").mean == 0
    )  # no query has another value, so that there is no interval
    assert math.isnan(found["whole"].mean_of("sealed").low)
    assert (found["cut"].lost, found["cut"].new, found["cut"].depth) == (40, 40, 91)
    assert found["whole"].gain.adjusted < 0.01 < found["fixed"].gain.adjusted
    assert found["whole"].gain.adjusted >= found["whole"].gain.p
    # Judgments decide where a re-ranker reads, places where it does not.
    assert found["whole"].bias.low < 0 < found["whole"].bias.high
    for name in ("kept", "fixed", "failing"):
        assert found[name].bias.high < 0, name
    gain = found["good"].gain
    before, after = (weir.evaluate(grades, one, NDCG)[NDCG].array for one in (run_of(befores), runs["good"]))
    assert (gain.before, gain.change) == (
        pytest.approx(before.mean()),
        pytest.approx((after - before).mean()),
    )
    assert (gain.hurt, gain.helped) == (np.mean(after < before), np.mean(after > before))


def test_the_same_first_ranks_are_those_of_the_audit():
    befores, _ = collection(np.random.default_rng(1), 20, 15)
    afters = [o if q % 3 else o[::-1] for q, o in enumerate(befores)]
    hashes = [ranking_hashes(run_of(orders)) for orders in (befores, afters)]
    [found] = reorderings(run_of(befores), {"x": run_of(afters)}, None, NDCG)
    same = sum(hashes[0][q] == hashes[1][q] for q in hashes[0])
    assert found.mean_of("kept first").mean * 20 == pytest.approx(same)
    assert (found.gain, found.bias, found.blocks) == (None, None, ())


def test_the_command_and_its_equal_say_the_same(tmp_path, capsys):
    befores, grades = collection(np.random.default_rng(2), 12, 30)
    afters = [befores[0][::-1], *befores[1:11]]
    paths = [str(tmp_path / name) for name in ("first.trec", "again.trec", "qrels.tsv")]
    values = (run_of(befores), run_of(afters), Qrels.of(grades))
    for value, path in zip(values, paths, strict=True):
        value.save(path)
    assert main(["study", "reranking", *paths[:2], "--qrels", paths[2], "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    found = weir.reranking(values[0], values[1], qrels=grades)
    assert said["gain"] == found.to_dict()["results"][0]["gain"]
    found.save(tmp_path / "kept.json")
    assert weir.ResultSet.load(tmp_path / "kept.json")[0].bias == found[0].bias
    assert main(["study", "reranking", *paths[:2]]) == 0
    text = capsys.readouterr().out
    assert "leaves the first 10 of 10 of 11 queries" in text
    assert "answers 1 of 12 queries not at all" in text
    assert "lacks 30 of 360 candidates" in text
    assert main(["study", "reranking", *paths[:2], "--qrels", paths[2], "--markdown"]) == 0
    assert capsys.readouterr().out.count("\n|---|") == 4
    assert len(found.to_frame()) == 7


@pytest.mark.parametrize("others", [1, 2])
def test_every_column_of_the_tables_is_explained_below_them(others):
    """But for names of measures, intervals and places."""
    run, qrels = run_of([range(30)] * 3), Qrels.of({f"q{q:02}": {"d001": 1, "d012": 1} for q in range(3)})
    runs = {f"r{n}": run_of([range(30)[::-1]] * 3) for n in range(others)}
    for table in REORDERINGS.page(reorderings(run, runs, qrels, NDCG)):
        for name in table.header[1:]:
            known = name in ("nDCG@10", "95% interval") or name.startswith(("from", "relevant from"))
            assert known or name in "\n".join(table.notes), name
        assert table.notes


def test_what_cannot_be_compared_is_one_line(tmp_path, capsys):
    one = run_of([[1, 2, 3]])
    with pytest.raises(BadValue, match="answers no query of"):
        weir.reranking(one, {"other": {"d1": 1.0}})
    with pytest.raises(BadValue, match="no query of the first stage is judged"):
        weir.reranking(one, one, qrels={"other": {"d1": 1}})
    for wrong in ({"k": 0}, {"depth": 0}, {"block": 0}, {"rel": 0}):
        with pytest.raises(BadValue, match=next(iter(wrong))):
            ReorderRules(**wrong)
    for shape in ((1, 1), (4, 5), (4, 0)):
        with pytest.raises(BadValue, match="a window has 2 documents"):
            WindowShape(*shape)
    path = tmp_path / "bad.trec"
    path.write_text("q00 Q0 d001 1 3 x\nq00 Q0 d001 2 2 x\nq00 Q0 d002 3 high x\n")
    one.save(tmp_path / "one.trec")
    assert main(["study", "reranking", str(tmp_path / "one.trec"), str(path)]) == 2
    said = capsys.readouterr().err
    assert "bad.trec, line 3: found 'q00 Q0 d002 3 high x'" in said
    assert said.count("\n") == 1


def test_documents_that_stand_twice_are_counted_and_their_better_place_counts(tmp_path, capsys):
    first, path = tmp_path / "one.trec", tmp_path / "twice.trec"
    run_of([[1, 2, 3], [4, 5, 6]]).save(first)
    rows = [
        "# made by hand",
        "q00 Q0 d002 1 5 x",
        "q00 Q0 d001 2 4 x",
        "q00 Q0 d002 3 3 x",
        "",
        "q01 Q0 d004 1 2.5 x",
    ]
    path.write_text("\n".join([*rows, "q01 Q0 d004 2 2 x", "q01 Q0 d004 3 1 x"]) + "\n")
    [found] = weir.reranking(first, path)
    assert (found.depth, found.duplicates, found.lost, found.new) == (2, 3, 1, 0)
    assert found.mean_of("kept first").mean == 0
    with pytest.raises(BadRanking, match="twice"):
        weir.Run.load(path)
    assert main(["study", "reranking", str(first), str(path)]) == 0
    assert "twice names 3 documents again" in capsys.readouterr().out
    assert weir.reranking(first, first)[0].duplicates == 0


def test_borders_are_where_windows_end():
    for count in (7, 20, 45, 100):
        stops = [b for a, b in pairwise([count, *(count - 10 * i for i in range(1, 11))]) if b > 5]
        assert WindowShape(20, 10).borders(count).tolist() == sorted(stops)
