"""Names of systems, and systems of others, that mean harm: each is refused in one line, and quickly."""

from __future__ import annotations

import contextlib
import inspect
import itertools
import time
from pathlib import Path

import numpy as np
import pytest

from weir.core.corpus import Corpus, Queries
from weir.core.run import Run
from weir.core.strings import Ids
from weir.errors import BadValue, PluginError, UnknownName, WeirError
from weir.systems import BM25, RERANKERS, RM3, SYSTEMS, Chunked, Fused, Pipeline, Score, parse_system
from weir.systems.composite import rankings
from weir.systems.expression import MOST_CHARACTERS, MOST_LEVELS, MOST_PARTS
from weir.systems.fusion import parse_fusion
from weir.systems.lexical.bm25 import LARGEST_K1
from weir.systems.protocol import Costs

# Names of systems


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("bm25(k1=1.2, k1=1.3)", "bm25: k1 is given twice"),
        ("bm25(k1=1e39)", f"k1 is 1e\\+39; expected a number from 0 to {LARGEST_K1:g}".replace("+06", r"\+06")),
        ("bm25(k1=1e999)", "out of every range"),
        ("bm25(k1=nan)", "k1 is nan; expected a number"),
        ("bm25(k1=-1e999)", "out of every range"),
        ("bm25(b=1.1)", "expected a number from 0 to 1"),
        ("bm25(k1=10000000000000000000000)", "out of every range"),
        ("bm25({})", "no BM25 preset named"),
        ("bm25([1])", "no BM25 preset named"),
        ("bm25({1, 2})", "is a grid of systems"),
        ("bm25({[]: 1})", "is not a system"),
        ("bm25(b'x')", "is no setting"),
        ("bm25(2j)", "is no setting"),
        ("bm25(3)", "no BM25 preset named '3'"),
        ("bm25(analyzer=3)", "3 names no analyzer"),
        ("bm25(analyzer=[1])", "names no analyzer"),
        ("bm25(lengths=['a'])", "expected 'byte' or 'exact'"),
        ("dense(mybert)", 'model is a text, which stands in quotes: model="mybert"'),
        ("bm25(lucene)", 'preset is a text, which stands in quotes: preset="lucene"'),
        ("bm25 >> cross(minilm)", 'in quotes: model="minilm"'),
        ("chunked(bm52)", "no system named 'bm52'; did you mean bm25"),
        ("rm3(docs=1000000000)", "expected whole numbers from 1 to 10,000"),
        ("chunked(bm25, words=1000000000)", "expected a whole number from 1 to 1,000,000"),
        ("bm25 >> score(rm3, depth=100000000000)", "depth is 100000000000; expected a whole number from 1 to"),
        ("rrf(bm25, rm3, depth=100000000000)", "depth is 100000000000; expected a whole number from 1 to"),
        ("wsum(bm25, rm3, weights=[1e300, 1])", "expected numbers from 0 to 1e"),
        ("wsum(bm25, rm3, weights=[1, nan])", "is not a system"),
        ("rrf(bm25, rm3, k=1e999)", "out of every range"),
        ("bm25(k1=" + "9" * 5000 + ")", "is not a system"),
        ("bm25(k1=" + "-" * 5000 + "1)", f"is not a system|more than {MOST_LEVELS} levels"),
        ("bm25(k1=" + "(" * 5000 + "1" + ")" * 5000 + ")", "is not a system"),
        ("bm25(\x00)", "is not a system"),
        ("bm25" + " >> score(rm3)" * 500, f"more than {MOST_LEVELS} levels"),
        ("rrf(" * 90 + "bm25" + ")" * 90, f"more than {MOST_LEVELS} levels"),
        ("bm25(k1=" + "[" * 90 + "]" * 90 + ")", f"more than {MOST_LEVELS} levels"),
        ("rrf(" + "bm25," * 3000 + "rm3)", f"names 3,002 systems; expected at most {MOST_PARTS}"),
        ("rrf(" + "bm25," * 5000 + "rm3)", f"expected at most {MOST_CHARACTERS:,}"),
        ("b" * 10_000, "no system named 'bbb.*\\.\\.\\.'"),
        ("bm25 #73c344eb8c", "'bm25 #73c344eb8c' has a # outside quotes"),
        ("bm25(\n# k1=2\n)", "has a # outside quotes"),
        ("bm25(k1=abc)", "k1 is abc; expected a number"),
        ("bm25('lucene', abc)", "k1 is abc; expected a number"),
        ("rrf(bm25, rm3, k=x)", "k is x; expected a whole number"),
        ("splade('x', quantised=true)", "quantised is true; expected True or False"),
        ("rm3(bm26)", "no system named 'bm26'"),
        (3, r"text is 3 \(int\); expected a text"),
        (None, "text is None; expected a text"),
    ],
    ids=lambda value: str(value)[:40],
)  # fmt: skip
def test_names_of_systems_are_read_within_bounds(text, said):
    began = time.process_time()
    with pytest.raises((BadValue, UnknownName), match=said) as caught:
        parse_system(text)
    assert len(str(caught.value)) < 1000
    assert time.process_time() - began < 20.0


@pytest.mark.parametrize(
    "build",
    [
        lambda: BM25(k1=1e39), lambda: BM25(k1=float("nan")), lambda: BM25(k1=float("inf")), lambda: BM25(k1=10**400),
        lambda: BM25(b=float("nan")), lambda: BM25({}), lambda: BM25(analyzer=7), lambda: RM3(terms=10**12),
        lambda: RM3(weight=float("nan")), lambda: Chunked(words=10**12), lambda: Score(BM25(), depth=10**12),
        lambda: parse_fusion("rrf(k=10, k=20)"), lambda: parse_fusion("rbc(p=1e999)"),
        lambda: parse_fusion("wsum(weights=[" + "9" * 400 + "])"), lambda: SYSTEMS.get(["bm25"]),
    ],
)  # fmt: skip
def test_settings_out_of_range_are_refused_in_python_too(build):
    with pytest.raises((BadValue, UnknownName)):
        build()


GIVEN = {
    "elasticsearch": 'url="http://localhost:9200", ',
    "filtered": "bm25, ",
    "llm": '"listwise", "openai:gpt-4o-mini", ',
    "postgres": f'"{Path(__file__).parents[1] / "conformance" / "shop.toml"}", ',
    "rerank": '"cohere:rerank-v3.5", ',
}
"""What has to be given besides."""
VALUES = [
    "None",
    "5",
    "-1",
    "1e300",
    "4611686018427387904",
    '""',
    '"x"',
    '"\\x00"',
    "[1]",
    "[]",
    "True",
    "(1, 2)",
    "bm25",
]


@pytest.mark.parametrize("name", [*SYSTEMS, *RERANKERS])
def test_any_value_of_any_setting_makes_a_system_that_prints_and_parses_back_or_one_line(name):
    known = inspect.signature((RERANKERS if name in RERANKERS else SYSTEMS).get(name)).parameters.values()
    before = "bm25 >> " if name in RERANKERS else ""
    parts = "bm25, rm3, " if any(p.kind is p.VAR_POSITIONAL for p in known) else GIVEN.get(name, "")
    taken = 0
    for setting, value in itertools.product(
        [p.name for p in known if p.kind is not p.VAR_POSITIONAL], VALUES
    ):
        found = None
        with contextlib.suppress(WeirError):
            found = parse_system(f"{before}{name}({parts}{setting}={value})")
        if found is not None:
            taken += 1
            assert parse_system(str(found)) == found
    assert taken or not known


def test_what_fits_is_still_taken():
    assert parse_system("bm25(k1=0, b=1)") == BM25(k1=0.0, b=1.0)
    assert parse_system(f"bm25(k1={LARGEST_K1})").k1 == LARGEST_K1
    many = parse_system("rrf(" + "bm25, " * (MOST_PARTS - 2) + "rm3)")
    assert isinstance(many, Fused)
    assert len(many.parts) == MOST_PARTS - 1
    deep = "bm25" + " >> score(rm3)" * (MOST_LEVELS - 2)
    assert str(parse_system(deep)) == deep


# Plug-ins


class Odd:
    """A searcher and scorer that does what it is told to."""

    def __init__(self, answer: object) -> None:
        self.answer = answer

    def search(self, queries: Queries, k: int, context: object = None) -> Run:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer  # type: ignore[return-value]  # whatever the test gives it

    def scores(self, *_: object) -> object:
        return self.search(*_)  # type: ignore[arg-type]  # the same

    def costs(self) -> Costs:
        return Costs()


ASKED = Queries.of({"q1": "a", "q2": "b"})
DOCS = Ids.of(["d1"])


def answered(ptr: list[int], doc: list[int], score: list[float], queries: Ids = ASKED.ids) -> Run:
    return Run(queries, DOCS, np.array(ptr, np.int64), np.array(doc, np.int32), np.array(score))


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (KeyError("x"), "asked 2 queries, the first 'q1': failed with KeyError: 'x'"),
        (RecursionError(), "failed with RecursionError"),
        ({"q1": {"d1": 1.0}}, "answered with a dict; expected a weir.Run"),
        (None, "answered with nothing"),
        (
            answered([0, 1], [0], [1.0], Ids.of(["q1"])),
            "answered 1 queries of other names or order than the 2",
        ),
        (answered([0, 1, 2], [0, 5], [1.0, 1.0]), "documents beyond the 1 that it names"),
        (answered([0, 1, 2], [0, -1], [1.0, 1.0]), "documents beyond the 1"),
        (answered([0, 1, 1], [0], [float("nan")]), "scores that are not finite"),
        (answered([0, 2, 1], [0], [1.0]), "rows do not fit its queries"),
    ],
)
def test_what_another_system_does_wrong_names_system_collection_and_queries(answer, said):
    with pytest.raises(PluginError, match=f"odd on brook.*{said}"):
        rankings(Odd(answer), ASKED, 10, "odd", "brook")


def test_partial_answers_are_answers():
    run = answered([0, 1, 1], [0], [1.0])
    assert rankings(Odd(run), ASKED, 10, "odd") is run


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (ZeroDivisionError("by zero"), r"odd, asked 2 queries.*ZeroDivisionError: by zero"),
        ({"d1": 1.0}, "odd: answered with a dict; expected a number for each candidate"),
        ([], "odd: 0 scores for 2 candidates"),
        (["a", "b"], "odd: answered with a list"),
        (
            [1.0, float("nan")],
            "odd: 1 of 2 scores are not finite, the first that of query 'q2', document 'd1'",
        ),
    ],
)
def test_what_another_re_ranker_does_wrong_is_named(answer, said):
    class Named:
        depth = 10

        def __str__(self) -> str:
            return "odd"

        def describe(self) -> dict[str, object]:
            return {}

        def ready(self, *_: object) -> Odd:
            return Odd(answer)

    class First(Named):
        index = open = Named.ready

    corpus = Corpus.of({"d1": "a"})
    pipeline = Pipeline(First(), Named())
    searcher = pipeline.index(corpus)
    object.__setattr__(searcher, "first", Odd(answered([0, 1, 2], [0, 0], [1.0, 1.0])))
    with pytest.raises(WeirError, match=said):
        searcher.search(ASKED, 10)
