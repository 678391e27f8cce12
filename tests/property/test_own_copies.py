"""Objects that keep their first index: each collection gets a copy with an index of its own."""

from __future__ import annotations

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

pytest.importorskip("numba", reason="needs the `run` extra (numba)")

import weir
from weir.errors import RankingWarning
from weir.systems.own_copies import is_shared, own_copy


def shared_words(index, query):
    asked = set(query.split())
    return {doc: float(len(asked & set(text.split()))) for doc, text in index.items()}


def texts_of(corpus):
    return {doc: f"{one['title']} {one['text']}" for doc, one in corpus.items()}


class InAttribute:
    """As BEIR's FAISS classes: the index is made at the first call."""

    def __init__(self):
        self.kept = None
        self.model = object()

    def search(self, corpus, queries, top_k, score_function="dot", **more):
        if self.kept is None:
            self.kept = texts_of(corpus)
        return {q: shared_words(self.kept, text) for q, text in queries.items()}

    def held(self):
        return self.kept


class InDict(InAttribute):
    def __init__(self):
        self.kept = {}

    def search(self, corpus, queries, top_k, score_function="dot", **more):
        if not self.kept:
            self.kept.update(texts_of(corpus))
        return {q: shared_words(self.kept, text) for q, text in queries.items()}


class InList(InAttribute):
    def __init__(self):
        self.kept = []

    def search(self, corpus, queries, top_k, score_function="dot", **more):
        if not self.kept:
            self.kept.extend(texts_of(corpus).items())
        return {q: shared_words(dict(self.kept), text) for q, text in queries.items()}


class InSlots(InAttribute):
    __slots__ = ("kept",)

    def __init__(self):
        self.kept = None


class Delegating(InAttribute):
    """Asks its model for what it lacks, before it has one too."""

    def __getattr__(self, name):
        return getattr(self.model, name)


class Retrieving:
    """As BEIR's EvaluateRetrieval: the index is in the retriever within."""

    def __init__(self):
        self.retriever = InAttribute()

    def retrieve(self, corpus, queries, **more):
        return self.retriever.search(corpus, queries, 1000)

    def held(self):
        return self.retriever.kept


class Indexing:
    """Indexes once, as some classes with `index` do."""

    def __init__(self):
        self.kept = {}

    def index(self, documents):
        if not self.kept:
            self.kept.update(documents)

    def search(self, queries, k):
        return {q: shared_words(self.kept, text) for q, text in queries.items()}

    def held(self):
        return self.kept


class Closing(InAttribute):
    """Has something to close, which a copy would close too."""

    def __del__(self):
        self.model = None


KEEPERS = [InAttribute, InDict, InList, InSlots, Delegating, Retrieving, Indexing]
WORDS = st.lists(st.sampled_from(["dam", "weir", "river", "meadow", "mill"]), min_size=1, max_size=4)
TEXTS = st.lists(WORDS.map(" ".join), min_size=3, max_size=6)


def collection(texts, query):
    documents = {f"d{n}": text for n, text in enumerate(texts)}  # ids that all collections share
    return documents, {"q1": query}, {"q1": {"d0": 1, "d2": 2}}


@pytest.mark.parametrize("kind", KEEPERS)
@settings(max_examples=3, deadline=None, phases=[Phase.generate])
@given(TEXTS, TEXTS)
def test_a_collection_is_searched_alike_alone_and_after_another(kind, first, second):
    queries = {"q1": "weir river"}
    one, other = ({f"d{n}": text for n, text in enumerate(texts)} for texts in (first, second))
    alone = weir.system(kind()).index(other).search(queries, 10).to_dict()
    keeper = weir.system(kind())
    before, after = keeper.index(one), keeper.index(other)
    assert (
        before.search(queries, 10).to_dict() == weir.system(kind()).index(one).search(queries, 10).to_dict()
    )
    assert after.search(queries, 10).to_dict() == alone


@pytest.mark.parametrize("kind", KEEPERS)
def test_a_collection_is_scored_alike_alone_and_beside_another(kind):
    one, other = collection(["weir", "dam", "mill"], "weir"), collection(["dam", "mill", "weir"], "weir")
    keeper = kind()
    alone = weir.benchmark({"b": other}, [kind()], ["nDCG@10"])["b", kind.__name__].means()
    assert weir.benchmark([one, other], [keeper], ["nDCG@10"])["dataset-2", kind.__name__].means() == alone
    assert weir.benchmark({"b": other}, [keeper], ["nDCG@10"])["b", kind.__name__].means() == alone
    assert not keeper.held()


def test_the_object_of_a_method_is_copied():
    keeper = Indexing()
    copied = own_copy(keeper.search)
    assert copied.__self__ is not keeper
    assert copied.__func__ is Indexing.search


@pytest.mark.parametrize("kind", KEEPERS)
def test_models_are_shared(kind):
    keeper = kind()
    assert own_copy(keeper) is not keeper
    assert own_copy(keeper).__class__ is kind
    assert not is_shared(keeper)
    if model := vars(keeper).get("model"):
        assert own_copy(keeper).model is model


def test_an_object_that_cannot_be_copied_is_named_where_it_answers_for_several():
    one, other = collection(["weir", "dam", "mill"], "weir"), collection(["dam", "weir", "mill"], "weir")
    assert is_shared(Closing())
    assert is_shared(Closing().search)
    with pytest.warns(RankingWarning, match="Closing: the object cannot be copied, .* all 2 collections"):
        weir.benchmark({"a": one, "b": other}, [Closing()], ["nDCG@10"])
    weir.benchmark({"a": one}, [Closing()], ["nDCG@10"])  # warnings are errors in these tests


def test_functions_are_themselves():
    def mine(queries, k):
        return {}

    assert own_copy(mine) is mine
    assert own_copy(len) is len
    assert own_copy(Indexing) is Indexing
    assert not is_shared(mine)
    assert not is_shared(len)
