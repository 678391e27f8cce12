"""Strings, Ids, Corpus, Queries, Qrels and Run against the plain Python they stand for."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.reference import ranking
from tests.strategies import identifiers, judgments, rankings, texts

from weir.core.corpus import Corpus, Queries
from weir.core.judged import OWN_DEPTH, Judged
from weir.core.order import arranged, best_of, is_ordered, ranked, tie_groups, tied
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.core.strings import HashIndex, Ids, Strings, hash_strings
from weir.errors import BadRanking, BadValue, UnknownName
from weir.files.parsers import number_texts

several = st.lists(texts, max_size=12)
distinct = st.lists(identifiers, max_size=12, unique=True)


@given(several)
def test_strings_hold_what_was_put_in(values):
    strings = Strings.of(values)
    assert len(strings) == len(values)
    assert strings.tolist() == list(strings) == [strings[i] for i in range(len(values))] == values
    assert strings.lengths().tolist() == [len(v.encode()) for v in values]
    assert all(strings[i - len(values)] == values[i] for i in range(len(values)))
    for outside in (len(values), -len(values) - 1):
        with pytest.raises(IndexError):
            strings[outside]


@given(several, st.data())
def test_slices_and_takes_of_strings(values, data):
    start = data.draw(st.integers(0, len(values)))
    stop = data.draw(st.integers(start, len(values)))
    part = Strings.of(values).slice(start, stop)
    assert part.tolist() == values[start:stop]
    assert len(part) == stop - start
    codes = data.draw(st.lists(st.integers(0, max(len(part) - 1, 0)), max_size=20 if len(part) else 0))
    assert part.take(np.array(codes, np.int64)).tolist() == [values[start + c] for c in codes]
    assert part.slice(0, len(part)).tolist() == part.tolist()


def test_half_a_surrogate_pair_is_refused():
    with pytest.raises(BadValue, match="Unicode"):
        Strings.of(["fine", "\ud800"])
    with pytest.raises(BadValue, match="Unicode"):
        Run.of({"q": {"\udfff": 1.0}})


@given(distinct, st.lists(identifiers, max_size=30))
def test_codes_are_those_of_a_dict(names, wanted):
    number = {name: i for i, name in enumerate(names)}
    for ids in (Ids.of(names), Ids(Strings.of(names), lambda: HashIndex.of(Strings.of(names)))):
        assert ids.codes(wanted).tolist() == [number.get(w, -1) for w in wanted]
        assert ids.codes(Strings.of(["pad", *wanted]).slice(1, 1 + len(wanted))).tolist() == [
            number.get(w, -1) for w in wanted
        ]
        assert ids.codes(names).tolist() == list(range(len(names)))


def test_codes_survive_strings_that_share_a_hash(monkeypatch):
    def poor(data, start, length):
        return np.zeros(len(start), np.uint64)

    monkeypatch.setattr("weir.core.strings.hash_strings", poor)
    names = ["a", "b", "aa", "ab", "", "abcdefghi", "abcdefghj"]
    ids = Ids(Strings.of(names))
    assert ids.codes([*names, "zz", "c"]).tolist() == [*range(len(names)), -1, -1]


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=90))
def test_a_string_has_the_same_hash_alone_and_among_others(texts):
    sizes = np.array([*map(len, texts)], np.int64)
    data, start = np.frombuffer(b"".join(texts), np.uint8), np.cumsum(sizes) - sizes
    alone = [int(hash_strings(data, start[n : n + 1], sizes[n : n + 1])[0]) for n in range(len(texts))]
    assert hash_strings(data, start, sizes).tolist() == alone


@given(distinct)
@example(["a", "a\0", "a\0\0"])
@example(["x" * 8, "x" * 9, "x" * 16, "x" * 7])
def test_tie_ranks_are_the_places_in_descending_byte_order(names):
    expected = sorted(names, key=lambda n: n.encode(), reverse=True)
    for order in (names, names[::-1]):
        ids = Ids.of(order)
        assert [expected[rank] for rank in ids.tie_ranks] == order
        assert ids.tie_ranks.dtype == np.int32


@given(distinct)
def test_ids_compare_and_take(names):
    ids = Ids.of(names)
    assert ids == Ids.of(list(names))
    assert (ids == Ids.of(names[::-1])) == (names == names[::-1])
    assert ids != names
    backwards = np.arange(len(names))[::-1]
    assert ids.take(backwards).tolist() == names[::-1]
    assert [ids[i] for i in range(len(ids))] == list(ids) == names


@pytest.mark.parametrize("names", [["a", "a"], [1, "1"], ["", "a"], [None, "None"]])
def test_duplicate_and_empty_identifiers_are_refused(names):
    with pytest.raises(BadValue, match="identifier"):
        Ids.of(names)


def test_anything_but_text_is_written_as_text():
    assert Ids.of([1, 2.5, "a"]).tolist() == ["1", "2.5", "a"]


documents = st.dictionaries(
    identifiers,
    st.one_of(texts, st.fixed_dictionaries({}, optional={"title": texts, "text": texts})),
    max_size=9,
)


def plain_view(document, fields):
    title, text = (
        ("", document) if isinstance(document, str) else (document.get("title", ""), document.get("text", ""))
    )
    joined = f"{title} {text}" if title else text
    return {"title": title, "text": text, "title text": joined}[fields]


@given(documents, st.integers(1, 60), st.sampled_from(["title text", "text", "title"]))
@example({"a": {"title": "", "text": ""}, "b": {"title": "only"}, "c": "x"}, 1, "title text")
def test_views_and_batches_of_a_corpus(made, size, fields):
    corpus = Corpus.of(made)
    expected = [plain_view(document, fields) for document in made.values()]
    assert corpus.view(fields).tolist() == expected
    assert corpus.view(fields, 1, max(len(made) - 1, 1)).tolist() == expected[1 : max(len(made) - 1, 1)]
    seen = []
    for first, part in corpus.batches(fields, size):
        assert first == len(seen)
        assert len(part) > 0
        texts_of = [plain_view(d, "text") for d in list(made.values())[first : first + len(part)]]
        assert len(part) == 1 or sum(len(t.encode()) for t in texts_of) <= size
        seen += part.tolist()
    assert seen == expected


def test_a_corpus_refuses_what_is_no_document_and_no_view():
    with pytest.raises(BadValue, match="document 'a' is int"):
        Corpus.of({"a": 3})
    with pytest.raises(UnknownName, match=r"named 'titletext'; did you mean text.* known: text$"):
        Corpus.of({"a": "x"}).view("titletext")


@given(st.dictionaries(identifiers, texts, max_size=8))
def test_queries_hold_and_take(made):
    queries = Queries.of(made)
    assert dict(zip(queries.ids, queries.text, strict=True)) == made
    backwards = queries.take(np.arange(len(made))[::-1])
    assert list(zip(backwards.ids, backwards.text, strict=True)) == list(made.items())[::-1]


@given(judgments, st.data())
def test_qrels_hold_what_was_put_in(qrels, data):
    made = Qrels.of(qrels)
    assert made.to_dict() == qrels
    assert Qrels.of(made.to_dict()).to_dict() == qrels
    assert len(made) == len(qrels)
    for q in range(len(made)):
        assert (np.diff(made.doc[made.ptr[q] : made.ptr[q + 1]]) > 0).all()
    some = data.draw(st.lists(st.integers(0, len(qrels) - 1), unique=True))
    names = list(qrels)
    kept = made.only(np.array(some, np.int64))
    assert list(kept.to_dict().items()) == [(names[i], qrels[names[i]]) for i in some]


@given(rankings, st.sampled_from(["trec", "trec9"]), st.integers(1, 9))
def test_runs_hold_what_was_put_in_result_order(run, ties, k):
    before = copy.deepcopy(run)
    made = Run.of(run, name="mine", ties=ties)
    assert run == before
    assert made.to_dict() == run
    for query, row in made.to_dict().items():
        assert list(row) == ranking(run[query], ties)
    cut = made.top(k)
    assert {q: list(row) for q, row in cut.to_dict().items()} == {
        q: ranking(row, ties)[:k] for q, row in run.items()
    }
    assert (cut.name, cut.ties, len(cut)) == ("mine", ties, len(run))
    assert made.ranks().tolist() == [r for row in run.values() for r in range(1, len(row) + 1)]
    assert (
        Run.of(made.to_dict(), ties=ties).doc.tolist()
        == Run.of(made.to_dict(), ties=ties).top(99).doc.tolist()
    )


@given(rankings)
def test_without_self_drops_only_the_query_itself(run):
    """needs.md E11."""
    run = {q: row | {q: 7.0} for q, row in run.items()}
    left = Run.of(run).without_self().to_dict()
    assert left == {q: {d: s for d, s in row.items() if d != q} for q, row in run.items()}
    for q, row in left.items():
        assert list(row) == [d for d in ranking(run[q]) if d != q]


@given(rankings, st.data())
def test_a_collapsed_run_has_each_document_once_with_its_best_score(run, data):
    names = sorted({doc for scores in run.values() for doc in scores})
    parents = {name: data.draw(st.sampled_from(["a", "b", "c"])) for name in names}
    expected = {}
    for query, scores in run.items():
        for name, score in scores.items():
            best = expected.setdefault(query, {})
            best[parents[name]] = max(score, best.get(parents[name], score))
    collapsed = Run.of(run).collapsed(parents)
    assert {q: d for q, d in collapsed.to_dict().items() if d} == {q: d for q, d in expected.items() if d}
    if names:
        with pytest.raises(BadValue, match="no document of passage"):
            Run.of(run).collapsed({})


@given(rankings, st.data(), st.sampled_from([1, 3, 1 << 12]))
def test_own_documents_are_counted_as_documents_named_like_their_query(run, data, together):
    for query in run:
        for place in data.draw(st.sets(st.integers(0, 11), max_size=1)):
            docs = [*run[query]][:place]
            docs += [f"x{n}" for n in range(place - len(docs))]
            run[query] = {doc: 20.0 - n for n, doc in enumerate([*docs, query])}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("weir.core.judged._OWN_QUERIES", together)
        made = Run.of(run)
        judged = Judged.of(made, Qrels.of({"q": {"d": 1}}))
    top = {query: [*docs][:OWN_DEPTH] for query, docs in made.to_dict().items()}
    assert judged.own_first == sum(docs[:1] == [query] for query, docs in top.items())
    assert judged.own_near == sum(query in docs for query, docs in top.items() if not query.isdecimal())


@given(rankings, st.sampled_from(["trec", "trec9"]))
def test_ties_are_counted_as_documents_that_share_a_score(run, ties):
    made = Run.of(run, ties=ties)
    expected = []
    for row in run.values():
        with np.errstate(over="ignore"):
            values = [float(np.float32(s)) if ties == "trec9" else s for s in row.values()]
        expected.append(sum(values.count(v) > 1 for v in values))
    assert made.tied().tolist() == expected


@given(st.lists(st.integers(-2, 4).map(float), min_size=1, max_size=30), st.integers(1, 35), st.randoms())
def test_best_of_is_the_head_of_a_full_sort(score, k, rng):
    tie_rank = list(range(len(score)))
    rng.shuffle(tie_rank)
    order = sorted((i for i, s in enumerate(score) if s > 0), key=lambda i: (-score[i], tie_rank[i]))
    found = best_of(np.array(score), np.array(tie_rank, np.int32), k)
    assert found.tolist() == order[:k]


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(-2, 2).map(float)), max_size=40),
    st.randoms(),
    st.booleans(),
)
def test_ranked_is_a_full_sort(rows, rng, presorted):
    if presorted:
        rows.sort(key=lambda row: (row[0], -row[1]))
    tie_rank = list(range(len(rows)))
    rng.shuffle(tie_rank)
    query, score = np.array([q for q, _ in rows], np.int32), np.array([s for _, s in rows])
    expected = sorted(range(len(rows)), key=lambda i: (rows[i][0], -rows[i][1], tie_rank[i]))
    assert ranked(query, score, np.array(tie_rank, np.int32)).tolist() == expected
    keys = [(q, -s) for q, s in rows]
    assert is_ordered(query, score) == (keys == sorted(set(keys)))
    at = np.argsort(query, kind="stable")  # queries whose numbers need more than 16 bits
    order = arranged(query[at] * 2**15, score[at], lambda of: np.array(tie_rank, np.int32)[at][of])
    assert at[order].tolist() == expected
    ptr = np.searchsorted(query[expected], np.arange(5))
    counts = [sum([r for r in rows if r[0] == q].count(r) > 1 for r in rows if r[0] == q) for q in range(4)]
    assert tied(ptr, tie_groups(ptr, score[expected])).tolist() == counts


def test_columns_with_a_duplicate_are_refused_with_names():
    """needs.md E4."""
    queries, docs = Ids.of(["q1", "q2"]), Ids.of(["a", "b"])
    columns = np.array([0, 1, 1], np.int32), np.array([1, 1, 1], np.int32)
    with pytest.raises(BadRanking, match="query 'q2' ranks document 'b' twice"):
        Run.from_columns(queries, docs, *columns, np.array([1.0, 2.0, 3.0]))
    with pytest.raises(BadValue, match="query 'q2' judges document 'b' twice"):
        Qrels.from_columns(queries, docs, *columns, np.array([1, 1, 0]))


def test_a_run_of_judged_documents_only_does_not_pretend_to_know_the_others():
    queries, docs = Ids.of(["q"]), Ids.of(["a"])
    run = Run(queries, docs, np.array([0, 2]), np.array([-1, 0], np.int32), np.array([2.0, 1.0]))
    for use in (run.to_dict, run.without_self):
        with pytest.raises(BadValue, match="read the whole run"):
            use()


@pytest.mark.parametrize("k", [0, -1])
def test_no_first_none_of_a_ranking(k):
    with pytest.raises(BadValue, match="expected a whole number from 1"):
        Run.of({"q": {"a": 1.0}}).top(k)


def test_documents_known_only_by_their_place_are_unjudged_in_any_join():
    queries, docs = Ids.of(["q"]), Ids.of(["a", "b"])
    run = Run(queries, docs, np.array([0, 3]), np.array([-1, 0, -1], np.int32), np.array([3.0, 2.0, 1.0]))
    for qrels in (Qrels.of({"q": {"b": 1, "a": 2}}), Qrels.of({"q": {"a": 2}})):
        joined = Judged.of(run, qrels)
        assert (joined.rank.tolist(), joined.grade.tolist(), joined.retrieved.tolist()) == ([2], [2], [3])
    nameless = Run(queries, Ids.of([]), np.array([0, 1]), np.array([-1], np.int32), np.array([1.0]))
    joined = Judged.of(nameless, Qrels.of({"q": {"a": 2}}))
    assert (joined.rank.tolist(), joined.retrieved.tolist()) == ([], [1])


@given(st.lists(st.floats(allow_nan=True), max_size=30))
def test_numbers_are_written_as_python_writes_them(values):
    assert number_texts(np.array(values, np.float64)) == [repr(value) for value in values]


@given(st.lists(st.binary(max_size=6), min_size=60, max_size=80), st.sampled_from([b"\n", b"x"]))
def test_many_strings_are_decoded_as_each_is_alone(values, other):
    """Also what is no UTF-8, and what holds the byte that stands between strings when all are decoded at once."""
    packed = Strings.packed([value.replace(b"\n", other) for value in values])
    assert packed.tolist() == [packed[i] for i in range(len(packed))]
    assert packed.slice(3, 70).tolist() == packed.tolist()[3:70]
