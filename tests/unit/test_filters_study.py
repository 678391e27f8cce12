"""weir study filters: exact is exact, and what a filter costs an index is counted query by query."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weir
from tests.unit.remote_place import DOCUMENTS
from tests.unit.search_servers import searching
from tests.unit.test_http_system import described
from weir.cli import main
from weir.errors import BadValue
from weir.plugins.questions.filter_recall import admission_order, exact_first, first_of, recall_of
from weir.plugins.servers.endpoint import Http
from weir.systems.restricted import unrestricted

N, QUERIES, YEARS = 400, 12, 20
DENSE = weir.systems.SYSTEMS.get("dense")


@pytest.fixture(scope="module")
def drawn():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(N, 16))
    vectors = {f"text {n}": row for n, row in enumerate(rows)}
    vectors |= {f"query {n}": rows[n] + 0.3 * rng.normal(size=16) for n in range(QUERIES)}
    dataset = weir.Dataset.of(
        {f"d{n}": {"text": f"text {n}", "year": n % YEARS} for n in range(N)},
        {
            f"q{n}": {"text": f"query {n}", "filter": f"year <= {n % 3}" if n else "year < 0"}
            for n in range(QUERIES)
        },
        {f"q{n}": {f"d{n}": 1, "absent": 1} for n in range(QUERIES)},
    )

    def encode(texts):
        return np.array([vectors[" ".join(text.split())] for text in texts], np.float32)

    return dataset, weir.encoder(encode, name="drawn", version="1", similarity="cosine")


@given(
    st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=1, max_size=40),
    st.integers(1, 12),
    st.data(),
)
def test_the_exact_answer_is_brute_force_and_equal_scores_count(pairs, k, data):
    scores, mask = np.array([s for s, _ in pairs], np.float32), np.array([m for _, m in pairs])
    permitted = [n for n, (_, own) in enumerate(pairs) if own]
    exact = exact_first(scores, mask, k, np.arange(len(pairs)))
    assert exact.tolist() == sorted(permitted, key=lambda n: (-scores[n], n))[:k]
    if permitted:
        some = np.array(
            data.draw(st.lists(st.sampled_from(permitted), unique=True, max_size=len(exact))), int
        )
        right = sum(scores[n] >= scores[exact[-1]] for n in some.tolist())
        assert recall_of(some, scores, exact) == right / len(exact)
        assert recall_of(exact, scores, exact) == 1
        alike = np.array(
            sorted(permitted, key=lambda n: (-scores[n], -n))[:k]
        )  # the same scores, other documents
        assert recall_of(alike, scores, exact) == 1


@given(st.sampled_from(["by lot", "near", "far"]), st.integers(1, 60), st.integers(0, 99))
def test_broader_filters_permit_what_narrower_ones_do(kind, documents, seed):
    rows = np.random.default_rng(seed).normal(size=(documents, 3)).astype(np.float32)
    order = admission_order(kind, rows @ rows[0], lambda n: rows @ rows[n], np.random.default_rng(seed))
    assert sorted(order.tolist()) == list(range(documents))
    masks = [first_of(order, share) for share in (0.01, 0.3, 0.3, 1)]
    assert [mask.sum() for mask in masks] == [
        max(1, round(share * documents)) for share in (0.01, 0.3, 0.3, 1)
    ]
    assert all((narrow <= broad).all() for narrow, broad in zip(masks, masks[1:], strict=False))


def by_group(study):
    return {
        (one.filter, round(one.selectivity, 3), one.applied, one.effort, one.overfetch): one
        for one in study.searches
    }


def test_a_filter_after_an_exact_search_of_everything_is_exact(drawn):
    dataset, encoder = drawn
    rules = weir.FilterRules(k=5, overfetch=(1, N))
    [study] = weir.filters(dataset, DENSE(encoder), rules=rules, filter=["year == 3"])
    found = by_group(study)
    assert {one.filter for one in study.searches} == {"none", "by lot", "near", "far", "year == 3", "own"}
    whole = [one for one in study.searches if one.overfetch == N]
    assert all((one.recall, one.short, one.lost) == (1, 0, 0) or np.isnan(one.lost) for one in whole)
    assert (
        sum(one.queries for one in whole if one.filter == "own") == QUERIES - 1
    )  # of one nothing is permitted
    # What is not asked for is what the filter takes away.
    lot = found["by lot", 0.1, "after", 0, 1]
    assert lot.recall == pytest.approx(lot.correlation)
    assert found["none", 1.0, "after", 0, 1].recall == 1
    given_one = found["year == 3", 0.05, "after", 0, 1]
    searcher = DENSE(encoder).index(dataset.corpus)
    run = searcher.search(unrestricted(dataset.queries), 5).to_dict()
    fits = [sum(int(name[1:]) % YEARS == 3 for name in docs) / 5 for docs in run.values()]
    assert (given_one.recall, given_one.short) == (
        pytest.approx(np.mean(fits)),
        sum(share < 1 for share in fits),
    )
    far, near = (found[kind, 0.1, "after", 0, 1].correlation for kind in ("far", "near"))
    assert far < lot.correlation + 0.1 < near
    assert found["none", 1.0, "after", 0, 1].judged == QUERIES


def test_what_a_query_may_not_have_is_permitted_by_no_filter(drawn):
    dataset, encoder = drawn
    lists = {"candidates": {"q1": ["d1", "d2", "d3", "absent"]}, "excluded": {"q2": ["d2", "d5"]}}
    limited = weir.Dataset.of(
        dataset.corpus, weir.Queries(dataset.queries.ids, dataset.queries.text), dataset.qrels, **lists
    )
    rules = weir.FilterRules(k=5, selectivity=(1, 0.5), overfetch=(N,))
    found = by_group(weir.filters(limited, DENSE(encoder), rules=rules)[0])
    none = found["none", round(1 - (N - 3 + 2) / QUERIES / N, 3), "after", 0, N]
    assert (none.recall, none.short, none.queries) == (1, 0, QUERIES)
    assert all(one.recall == 1 for one in found.values())
    own = weir.Dataset.of(
        dataset.corpus, {"d0": "query 0", "d1": "query 1"}, {"d0": {"d5": 1}, "d1": {"d1": 1}}
    )
    own = replace(own, layout=replace(own.layout, self_match="drop"))
    [study] = weir.filters(own, DENSE(encoder), rules=rules)
    assert (study.searches[0].permitted, study.searches[0].judged) == (N - 1, 1)


@pytest.mark.parametrize("seed", range(8))
def test_rows_are_of_the_queries_that_have_such_a_filter(drawn, seed):
    _, encoder = drawn
    draw, k, times = np.random.default_rng(seed), 5, (1, 3)
    conditions = [None, "", "year <= 2", "year <= 13", "year >= 0", "year < 0"]
    own = {f"q{n}": conditions[draw.integers(len(conditions))] for n in range(QUERIES)}
    asked = {q: {"text": f"query {q[1:]}", **({"filter": own[q]} if own[q] is not None else {})} for q in own}
    fields = {f"d{n}": {"text": f"text {n}", "year": n % YEARS} for n in range(N)}
    qrels = {q: {f"d{(int(q[1:]) * 7 + n) % N}": int(draw.integers(-1, 3)) for n in range(30)} for q in own}
    rules = weir.FilterRules(k=k, overfetch=times, measure="P@5", selectivity=(1, 0.5, 0.1))
    mixed = weir.Dataset.of(fields, asked, qrels)
    [study] = studies = weir.filters(mixed, DENSE(encoder), rules=rules, filter=["year == 3"])
    run = (
        DENSE(encoder)
        .index(mixed.corpus)
        .search(weir.Queries.of({q: one["text"] for q, one in asked.items()}), N)
    )
    ranked = {q: [int(d[1:]) for d in docs] for q, docs in run.to_dict().items()}
    cases = {"none": dict.fromkeys(own, "year >= 0"), "year == 3": dict.fromkeys(own, "year == 3")}
    cases["own"] = {q: text for q, text in own.items() if text}
    for name, filters in cases.items():
        fits = {q: [d for d in ranked[q] if eval(text, {"year": d % YEARS})] for q, text in filters.items()}
        kept = {q: docs for q, docs in fits.items() if docs}
        found = [one for one in study.searches if one.filter == name]
        for overfetch in times:
            of = [one for one in found if one.overfetch == overfetch]
            assert sum(one.queries for one in of) == len(kept)
            shares = [(one.queries, one.recall, one.permitted, one.short, one.lost, one.judged) for one in of]
            answers = {
                q: [d for d in ranked[q][: k * overfetch] if d in docs][:k] for q, docs in kept.items()
            }
            recall = [len(answers[q]) / len(docs[:k]) for q, docs in kept.items()]
            assert sum(n * r for n, r, *_ in shares) == pytest.approx(sum(recall))
            assert sum(n * p for n, _, p, *_ in shares) == pytest.approx(sum(map(len, kept.values())))
            assert sum(one[3] for one in shares) == sum(len(answers[q]) < len(d[:k]) for q, d in kept.items())
            grade = {q: {int(d[1:]): g for d, g in row.items()} for q, row in qrels.items()}
            judged = [q for q, docs in kept.items() if any(grade[q].get(d, 0) > 0 for d in docs)]
            lost = [
                sum(grade[q].get(d, 0) > 0 for d in kept[q][:k]) / 5
                - sum(grade[q].get(d, 0) > 0 for d in answers[q]) / 5
                for q in judged
            ]
            assert sum(one[5] for one in shares) == len(judged)
            assert sum(one[4] * one[5] for one in shares if one[5]) == pytest.approx(sum(lost))
    said = str(studies)
    some = {one.queries for one in study.searches if one.filter == "own"} - {QUERIES}
    assert all(f"own, {n} quer" in said for n in some)


def test_the_loss_of_a_study_is_of_a_measure_with_a_direction_and_no_deeper_than_its_answers(drawn):
    dataset, encoder = drawn
    with pytest.raises(BadValue, match="Judged@10: more is neither better nor worse"):
        weir.FilterRules(measure="Judged@10")
    rules = weir.FilterRules(k=5, selectivity=(0.1,), overfetch=(1,))
    [study] = weir.filters(dataset, DENSE(encoder), rules=rules)
    assert "rankings have at most 5 documents, and nDCG@10 looks no deeper" in study.remarks
    lost = [replace(rules, measure=name) for name in ("P@5", "Hole@5")]
    judged, holes = (weir.filters(dataset, DENSE(encoder), rules=one)[0].searches for one in lost)
    assert all(one.lost * other.lost >= 0 for one, other in zip(judged, holes, strict=True) if one.judged)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_indexes_apply_filters_while_they_search(drawn):
    pytest.importorskip("faiss", reason="needs faiss: pip install 'weir-ir[neural]'")
    dataset, encoder = drawn
    rules = weir.FilterRules(k=5, selectivity=(1, 0.2), overfetch=(1, 8))
    [flat] = weir.filters(dataset, DENSE(encoder, index="Flat"), rules=rules)
    during = [one for one in flat.searches if one.applied == "during"]
    assert all((one.recall, one.short, one.compared) == (1, 0, one.permitted) for one in during)
    [lists] = weir.filters(dataset, DENSE(encoder, index="IVF8,Flat", effort=2), rules=rules)
    found = by_group(lists)
    assert {one.effort for one in lists.searches} == {2, 4, 8}  # of 8 lists
    every = found["by lot", 0.2, "during", 8, 1]
    assert (every.recall, every.short, every.compared) == (1, 0, 8 + 0.2 * N)
    assert found["by lot", 0.2, "during", 2, 1].recall < 1
    graph = weir.filters(dataset, DENSE(encoder, index="HNSW8"), rules=weir.FilterRules(k=5, effort=(N,)))
    found = by_group(graph[0])
    narrow = ("far", 0.01, "during")
    assert found[*narrow, 16, 1].recall < found[*narrow, N, 1].recall == 1
    assert found[*narrow, 16, 1].compared < found[*narrow, N, 1].compared
    assert "applied before it, exact search loses nothing" in str(graph)
    assert "is asked without filters" in str(
        weir.filters(dataset, DENSE(encoder, index="PQ4x4"), rules=rules)
    )
    for index in ("Flat", None):
        with pytest.raises(BadValue, match="`effort` applies to graphs and lists only"):
            weir.filters(dataset, DENSE(encoder, index=index), rules=weir.FilterRules(effort=(4,)))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_searches_are_timed_query_by_query(drawn):
    pytest.importorskip("faiss", reason="needs faiss: pip install 'weir-ir[neural]'")
    dataset, encoder = drawn
    near = weir.filters(dataset, DENSE(encoder, index="HNSW8"), rules=weir.FilterRules(k=5))
    assert all(0 < one.p50_ms < 10_000 for one in near[0].searches)
    assert all(np.isnan(one.p95_ms) for one in near[0].searches)  # of 12 queries
    assert "p50, p95 ms" in str(near)
    [whole] = weir.filters(
        dataset, DENSE(encoder), rules=weir.FilterRules(k=5)
    )  # asked for all queries at once
    assert all(np.isnan(one.p50_ms) for one in whole.searches)


def test_a_server_is_timed_by_its_answers(drawn, tmp_path):
    _, encoder = drawn
    with searching("elasticsearch") as (url, _):
        dataset = weir.Dataset.of(
            {name: f"text {n}" for n, name in enumerate(DOCUMENTS)},
            {f"q{n}": f"text {n}" for n in range(20)},
            {f"q{n}": {"d1": 1} for n in range(20)},
        )
        engine = Http(described(tmp_path, "elasticsearch", url), version="1")
        rules = weir.FilterRules(k=5, selectivity=(1, 0.5), overfetch=(1, 2))
        [study] = weir.filters(dataset, engine, exact=DENSE(encoder), rules=rules)
    assert all(0 < one.p50_ms <= one.p95_ms < 10_000 for one in study.searches)
    for depth in (1, 2):  # the search is the same under every filter
        assert len({one.p95_ms for one in study.searches if one.overfetch == depth}) == 1


def test_what_cannot_be_studied_is_one_line(drawn, tmp_path, capsys):
    dataset, encoder = drawn
    with pytest.raises(BadValue, match="bm25 has no vectors that decide the exact answer"):
        weir.filters(dataset, "bm25")
    with pytest.raises(BadValue, match="no document of dataset fits the filter year > 50"):
        weir.filters(dataset, DENSE(encoder), filter=["year > 50"])
    for wrong in ({"selectivity": (0.0,)}, {"overfetch": ()}, {"target": 2.0}, {"effort": (0,)}, {"k": 0}):
        with pytest.raises(BadValue, match=next(iter(wrong))):
            weir.FilterRules(**wrong)
    assert main(["study", "filters", "-d", "scifact", "-s", "bm25", "--selectivity", "half"]) == 2
    assert "--selectivity: found 'half'; expected numbers" in capsys.readouterr().err


def test_other_systems_are_asked_with_the_vectors_that_are_named(drawn):
    dataset, encoder = drawn
    [study] = weir.filters(dataset, "bm25", exact=DENSE(encoder), rules=weir.FilterRules(selectivity=(1,)))
    assert (
        json.loads(json.dumps(weir.filters(dataset, "bm25", exact=DENSE(encoder)).to_dict()))["weir"]
        == "filters"
    )
    assert {one.filter for one in study.searches} == {"none", "own"}
    assert study.searches[0].recall < 1
