"""Filters of a system and of queries: the answer is the whole ranking without what does not fit, cut at k."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("numba", reason="needs the `run` extra (numba)")

import weir
from weir.core.corpus import Corpus, Queries
from weir.core.filters import DocumentMasks, parse_filter
from weir.core.strings import Ids
from weir.datasets.load import Dataset, filtered
from weir.errors import BadValue, FormatError, UnknownName
from weir.systems import Filtered, Retriever, parse_system, restricted
from weir.systems.composite import rankings

# A system that is not asked for free says for how many queries fewer came; here that is how it matches.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*of the documents that may be ranked:weir.errors.RankingWarning",
    "ignore:.*its vectors are compared by cosine:weir.errors.RankingWarning",
)

WORDS = ("weir", "dam", "river")
texts = st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join)
FILTERS = ("lang == 'en'", "year >= 3", "lang != 'en' and year < 5", "not lang", "year > 99")
documents = st.lists(
    st.fixed_dictionaries(
        {"text": texts, "year": st.integers(0, 8), "lang": st.sampled_from(["en", "de", ""])}
    ),
    min_size=1,
    max_size=20,
).map(lambda rows: {f"d{n}": row for n, row in enumerate([*rows, {"text": "dam", "year": 1, "lang": "en"}])})
asked = st.lists(st.tuples(texts, st.sampled_from(["", *FILTERS])), min_size=1, max_size=5)


def vectors(given: list[str]) -> np.ndarray:
    return np.array([[1.0 + text.split().count(word) for word in WORDS] for text in given])


def longest(queries: dict[str, str], k: int) -> dict[str, list[str]]:
    return {query: [f"d{n}" for n in range(2)][:k] for query in queries}


SYSTEMS: Mapping[str, Retriever] = {
    "bm25": parse_system("bm25"),
    "bm25f": parse_system('bm25f(fields=["text"])'),
    "elastic": parse_system('bm25("elastic")'),
    "chunked": parse_system("chunked(bm25, words=2, overlap=1)"),
    "dense": weir.Dense(vectors),
    "function": weir.system(longest),
}


@pytest.mark.parametrize("name", SYSTEMS)
@settings(max_examples=60)
@given(made=documents, rows=asked, wanted=st.sampled_from(FILTERS), k=st.integers(1, 25))
def test_what_fits_is_ranked_as_if_everything_had_been(name, made, rows, wanted, k):
    corpus, system = Corpus.of(made), SYSTEMS[name]
    queries = {f"q{n}": {"text": text, "filter": own} for n, (text, own) in enumerate(rows)}
    plain = Queries.of({name: row["text"] for name, row in queries.items()})
    with pytest.MonkeyPatch.context() as patched:  # so that a few documents take several steps and blocks
        patched.setattr(restricted, "CANDIDATE_DEPTH", 1)
        patched.setattr(restricted, "GROWTH_FACTOR", 2)
        patched.setattr(restricted, "BLOCK_ROWS", 8)
        everything = system.index(corpus).search(plain, len(corpus)).to_dict()
        both = Filtered(system, wanted)
        found = rankings(both.index(corpus), filtered(Queries.of(queries), corpus), k, both).to_dict()
    names = corpus.ids.tolist()
    fits = {text: dict(zip(names, parse_filter(text).mask(corpus), strict=True)) for text in FILTERS}
    for query, row in queries.items():
        left = [
            (document, score)
            for document, score in everything[query].items()
            if fits[wanted][document] and (not row["filter"] or fits[row["filter"]][document])
        ]
        assert list(found[query].items()) == left[:k]


@given(st.lists(st.booleans(), max_size=40), st.lists(st.booleans(), max_size=40), st.data())
def test_masks_hold_what_they_were_made_of(first, second, data):
    count = min(len(first), len(second))
    docs, first, second = (
        Ids.of([f"d{n}" for n in range(count)]),
        np.array(first[:count], bool),
        np.array(second[:count], bool),
    )
    masks = DocumentMasks.every(docs, 3).restricted_to(first)
    assert masks.lengths().tolist() == [first.sum()] * 3
    both = masks.restricted_to(second)
    assert both.allow(np.zeros(count, int), np.arange(count)).tolist() == (first & second).tolist()
    assert DocumentMasks.every(docs, 3).allow(np.ones(count, int), np.arange(count)).all()
    some = data.draw(st.lists(st.integers(0, 2)))
    assert len(both.take(np.array(some, int))) == len(some)


DOCUMENTS = {
    f"d{n}": {"text": "river " * (n % 3 + 1), "lang": ["en", "de"][n % 2], "year": 2000 + n} for n in range(9)
}


def collection(wanted: str = 'lang=="en"', **other: object) -> Dataset:
    queries = {"q": {"text": "river", "filter": wanted}, "r": "river"}
    return Dataset.of(DOCUMENTS | other, queries, {"q": {"d1": 1}, "r": {"d2": 1}})


def test_a_query_brings_its_filter_from_the_collection(tmp_path):
    dataset = collection()
    rows = weir.Experiment([dataset], ["bm25", 'filtered(bm25, "year >= 2006")'], ("NumRet",), k=10).execute(
        tmp_path
    )
    assert [row.mean for row in rows] == [(5 + 9) / 2, (2 + 3) / 2]
    assert len(list((tmp_path / "dataset" / "indexes").iterdir())) == 1  # one index serves both
    again = weir.Experiment(
        [dataset], ["bm25 >> score(bm25)", 'filtered(bm25 >> score(bm25), "year >= 2006")'], ("NumRet",)
    )
    assert [row.mean for row in again.execute(tmp_path)] == [(5 + 9) / 2, (2 + 3) / 2]


def test_filters_and_what_they_read_are_in_the_key_of_rankings():
    plain = collection("")
    assert plain.queries_fingerprint == collection("").queries_fingerprint
    keys = {one.queries_fingerprint for one in (plain, collection(), collection('lang=="de"'))}
    assert len(keys) == 3
    assert (
        collection("lang == 'en'").queries_fingerprint == collection().queries_fingerprint
    )  # however it is written
    changed = collection(d0={"text": "river", "lang": "de", "year": 1999})
    assert changed.queries_fingerprint != collection().queries_fingerprint


def test_a_filter_is_read_with_the_documents():
    queries, searcher = (
        Queries.of({"q": {"text": "river", "filter": "lang == 'en'"}}),
        parse_system("bm25").index(Corpus.of(DOCUMENTS)),
    )
    with pytest.raises(BadValue, match="take them from a Dataset"):
        rankings(searcher, queries, 3, "bm25")
    with pytest.raises(UnknownName, match=r"'langue'; did you mean lang\? known: lang, text, year"):
        collection("langue == 'en'").queries  # noqa: B018 - the attribute is what is asked
    with pytest.raises((BadValue, FormatError), match=r"filter .*cannot be read"):
        collection("lang = 'en'")
    with pytest.raises(BadValue, match="filtered takes a system"):
        parse_system("filtered('bm25', 'lang')")
    assert str(parse_system("filtered(bm25, \"lang=='en'\")")) == "filtered(bm25, \"lang == 'en'\")"
