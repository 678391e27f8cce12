"""Public functions refuse arguments of a wrong type by name, whatever the function and whatever was given."""

from __future__ import annotations

import inspect
import socket
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest
from numpy.typing import NDArray
from typing_extensions import TypeAliasType

import weir
import weir.labels
import weir.measures
import weir.stats
import weir.systems
from weir.argument_types import CONVERSIONS, checked
from weir.core.frames import rebuilt
from weir.errors import BadValue, WeirError

QRELS = {f"q{n}": {"abcd"[n % 4]: 1} for n in range(12)}
RUN = {q: ["a", "b", "c", "d"] for q in QRELS}
SCORES = weir.evaluate(QRELS, RUN, ["nDCG@10"])
DOCUMENTS = {"d1": "red wine", "d2": {"title": "bread", "text": "butter and wine"}}


class Stranger:
    """An object of no type that anything takes."""


PLACES = (weir, weir.labels, weir.stats, weir.systems)
FUNCTIONS = {
    f"{place.__name__}.{name}": value
    for place in PLACES
    for name in dir(place)
    if not name.startswith("_")
    and inspect.isfunction(value := getattr(place, name))
    and hasattr(value, "__wrapped__")
}
CLASSES = {
    f"{owner.__name__}.{name}": getattr(owner, name)
    for owner in (weir.Run, weir.Qrels, weir.Scores, weir.ResultSet, weir.labels.IntentQrels)
    for name in ("load",)
} | {one.__name__: one for one in (weir.Experiment, weir.Crops, weir.Measure, weir.stats.ComparisonMethod)}
# For each word of an annotation, values of other types.
WRONG = {
    "str": [None, 0, 2.5, True, {"a": 1}, [], b"x", Stranger(), np.int64(3), SCORES],
    "int": ["0.01", 2.5, True, {"a": 1}, [1], b"x", Stranger(), SCORES],
    "float": ["0.01", True, {"a": 1}, [1], b"x", Stranger(), SCORES],
    "bool": ["yes", 2.5, {"a": 1}, [1], Stranger(), SCORES],
    "Scores": [None, 0, "x", QRELS, [1], Stranger()],
}
PARAMETERS = [
    (label, name, word)
    for label, function in (FUNCTIONS | CLASSES).items()
    for name, parameter in inspect.signature(function).parameters.items()
    for word in WRONG
    if str(parameter.annotation) == word or str(parameter.annotation) == f"Sequence[{word}]"
]


NAMED = (
    *(
        weir.BM25,
        weir.BM25F,
        weir.RM3,
        weir.ColBERT,
        weir.Score,
        weir.Filtered,
        weir.Experiment,
        weir.AdaptRules,
    ),
    *(
        weir.Crops,
        weir.GivenPairs,
        weir.WrittenQuestions,
        weir.ReorderRules,
        weir.StudyRules,
        weir.systems.Chunked,
    ),
    *(weir.stats.ComparisonMethod, weir.measures.Conventions, weir.systems.StoredRun),
)
MAKERS = (
    weir.Dataset.of,
    weir.Dataset.load,
    weir.Run.of,
    weir.Qrels.of,
    weir.Corpus.of,
    weir.Queries.of,
    SCORES.to_frame,
)


@pytest.fixture(autouse=True)
def nothing_is_reached(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(socket.socket, "connect", lambda *_: pytest.fail("the network was asked"))


MISSPELT = [
    (label, called, name)
    for label, called in (FUNCTIONS | CLASSES).items()
    for name, parameter in inspect.signature(called).parameters.items()
    if parameter.kind in (parameter.KEYWORD_ONLY, parameter.POSITIONAL_OR_KEYWORD)
]
MISSPELT += [(f"{one.__name__}.{f}", one, f) for one in NAMED for f in one.__dataclass_fields__]
MISSPELT += [
    (f"{one.__qualname__}.{name}", one, name)
    for one in MAKERS
    for name in inspect.signature(one).parameters
    if name != "values"
]


@pytest.mark.parametrize(("label", "called", "name"), MISSPELT)
def test_a_misspelt_argument_is_named_with_the_nearest(label, called, name):
    """An error of Python's kind that is Weir's too: one line in a notebook."""
    with pytest.raises(TypeError, match=f"named '{name}s'; did you mean .*{name}") as caught:
        called(**{f"{name}s": 1})
    assert isinstance(caught.value, WeirError)


@pytest.mark.parametrize("place", PLACES)
def test_a_misspelt_name_of_a_module_is_named_with_the_nearest(place):
    for name in dir(place):
        with pytest.raises(
            AttributeError, match=f"no attribute of {place.__name__} named .* did you mean .*{name}"
        ) as caught:
            getattr(place, f"{name}_")
        assert isinstance(caught.value, WeirError)
    assert not hasattr(place, "__wrapped__")


def test_what_is_missing_is_named():
    with pytest.raises(TypeError, match=r"^gate lacks the arguments first and second$"):
        weir.gate()
    with pytest.raises(TypeError, match=r"^subset lacks the argument out$"):
        weir.subset("brook-news", docs=3)
    with pytest.raises(TypeError, match="no argument of evaluate named 'nothing'; known: "):
        weir.evaluate(QRELS, RUN, nothing=1)


def test_a_benchmark_in_memory_says_how_it_becomes_a_folder():
    """Whatever function it is given to."""
    table = weir.benchmark("brook-news", "bm25", "RR")
    taken = {"weir.compare"}
    for label, function in FUNCTIONS.items():
        if label not in taken and any(
            p.kind != p.KEYWORD_ONLY for p in inspect.signature(function).parameters.values()
        ):
            with pytest.raises(WeirError) as caught:
                function(table)
            assert "Benchmark" not in str(caught.value) or 'out="results/"' in str(caught.value), label
    for asked in (weir.power, weir.report, weir.results, weir.gate, weir.diff, weir.why):
        with pytest.raises(WeirError, match='out="results/"'):
            asked(table)


def test_every_function_of_the_face_checks_its_arguments():
    without = {
        name
        for place in PLACES
        for name in dir(place)
        if not name.startswith("_")
        and inspect.isfunction(value := getattr(place, name))
        and value.__module__ != "weir.systems.fused"  # fusions check their settings as the parser does
        and not hasattr(value, "__wrapped__")
    }
    assert without == set()
    assert len(FUNCTIONS) > 50
    assert len(PARAMETERS) > 80


@pytest.mark.parametrize(("label", "name", "word"), PARAMETERS)
def test_a_wrong_type_is_refused_by_the_name_of_its_parameter(label, name, word):
    function = (FUNCTIONS | CLASSES)[label]
    parameters = inspect.signature(function).parameters.values()
    for value in WRONG[word]:
        places, named = list[object](), dict[str, object]()
        for one in parameters:
            given = value if one.name == name else None
            if str(one.annotation).startswith("Sequence[") and one.name == name:
                given = [value]
            if one.kind is one.VAR_POSITIONAL and one.name == name:
                places.append(given)
            elif one.name == name or (one.default is one.empty and one.kind is not one.VAR_POSITIONAL):
                if one.kind is one.KEYWORD_ONLY or not any(p.kind is p.VAR_POSITIONAL for p in parameters):
                    named[one.name] = given
                else:
                    places.append(given)
        # The parameter is looked at first, so that nothing else is refused before it.
        others = {key: given for key, given in named.items() if key != name}
        with pytest.raises(BadValue) as refused:
            function(*places, **({name: named[name]} if name in named else {}), **others)
        text = str(refused.value)
        assert text.count("\n") == 0
        assert f"{name} is " in text or f"{name} holds " in text or " is None" in text, text
        assert "expected " in text


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: weir.evaluate(SCORES, RUN), "judgments cannot be made from Scores"),
        (lambda: weir.evaluate(QRELS, SCORES), "a run cannot be made from Scores"),
        (lambda: weir.labels.holes(SCORES, RUN, human=QRELS), "judgments cannot be made from Scores"),
        (lambda: weir.fuse([RUN, SCORES]), "a run cannot be made from Scores"),
        (lambda: weir.compare(SCORES, RUN, RUN), "found Scores beside dict"),
        (
            lambda: weir.evaluate(QRELS, RUN, conventions=3),
            "conventions is 3 (int); expected a Conventions",
        ),
        (
            lambda: weir.evaluate(QRELS, RUN, [3]),
            "measures holds 3 (int); expected a list (each a Measure or a text)",
        ),
        (
            lambda: weir.compare(QRELS, RUN, RUN, method=3),
            "method is 3 (int); expected a ComparisonMethod",
        ),
        (lambda: weir.compare(QRELS, {"a": RUN, "b": RUN}, baseline=0), "baseline is 0 (int)"),
        (lambda: weir.gate(QRELS, RUN, RUN, max_drop="0.01"), "max_drop is '0.01' (str)"),
        (lambda: weir.gate(QRELS, RUN, RUN, max_drop={"nDCG@10": "0.01"}), "max_drop holds '0.01' (str)"),
        (
            lambda: weir.power(QRELS, RUN, RUN, effects=0.02),
            "effects is 0.02 (float); expected a list (each a number)",
        ),
        (lambda: weir.fuse([RUN, RUN], k=2.5), "k is 2.5 (float); expected a whole number or None"),
        (lambda: weir.parse_measure(None), "text is None; expected a text"),
        (lambda: weir.parse_measure({}), "text is {} (dict); expected a text"),
        (lambda: weir.Run.load(None), "path is None; expected a text or a path"),
        (lambda: SCORES.save(3), "path is 3 (int); expected a text or a path"),
        (
            lambda: weir.results("x", datasets="scifact"),
            "datasets is 'scifact' (str); expected a list (each a text)",
        ),
        (
            lambda: weir.BM25().index([1]),
            "corpus is [1] (list); expected a Corpus, {identifier: text}, a frame",
        ),
        (
            lambda: weir.diff(QRELS, RUN, RUN, "AP"),
            "diff takes first, second, third by place; by name: measure=",
        ),
        (
            lambda: weir.evaluate(QRELS, RUN, qrels=QRELS),
            "evaluate is given qrels twice: by its place, and by its name",
        ),
        (
            lambda: weir.Run.of(RUN, "a", "trec", 1),
            "Run.of takes rankings, name, ties by place; 1 (int) has none",
        ),
        (
            lambda: weir.BM25().index(DOCUMENTS).search("wine", k=3),
            "queries is 'wine' (str); expected a Queries",
        ),
        (lambda: weir.nDCG @ "ten", "cutoff is 'ten' (str); expected a whole number"),
        (lambda: weir.nDCG @ True, "cutoff is True (bool); expected a whole number"),
    ],
)
def test_what_was_given_and_what_is_expected_are_named(call, says):
    with pytest.raises(WeirError) as refused:
        call()
    assert says in str(refused.value)


def test_what_follows_in_any_number_is_not_what_has_a_name_alone():
    """Of `compare(qrels, *systems, measures=...)` the second system stands where the first name does."""
    assert weir.compare(QRELS, RUN, RUN, RUN, measures=["AP"], baseline="system 1")
    assert weir.compare(QRELS, {"a": RUN, "b": RUN}, ["AP"], baseline="a")


def test_numbers_of_numpy_are_numbers():
    assert str(weir.nDCG @ np.int64(10)) == "nDCG@10"
    assert len(weir.fuse([RUN, RUN], k=np.int32(1000))) == len(QRELS)
    assert weir.gate(QRELS, RUN, RUN, max_drop=np.float32(0.5), measures="AP")


@pytest.mark.parametrize(
    "system", ["bm25", "rm3(bm25)", "rrf(bm25, rm3)", "bm25 >> score(bm25)", "chunked(bm25)"]
)
def test_a_system_searches_plain_dicts(system):
    run = weir.system(system).index(DOCUMENTS).search({"q1": "wine"}, k=np.int64(5))
    made = weir.system(system).index(weir.Corpus.of(DOCUMENTS)).search(weir.Queries.of({"q1": "wine"}), k=5)
    assert run.to_dict() == made.to_dict() != {}


def test_identifiers_are_sliced_as_a_list_is():
    ids = weir.Corpus.of({str(n): "x" for n in range(9)}).ids
    for part in (slice(3), slice(-2, None), slice(None, None, -1), slice(4, 100)):
        assert ids[part] == list(ids)[part]


@pytest.mark.parametrize("name", ["dense", "splade", "bm25", "cross", "llm"])
def test_a_name_of_a_system_is_an_attribute(name):
    import weir.systems.dense_search

    assert callable(getattr(weir.systems, name))


T = TypeVar("T", bound=np.generic)
Array = TypeAliasType("Array", np.ndarray[Any, np.dtype[T]], type_params=(T,))
"""An alias as NumPy 2.5 makes NDArray one, by a `type` statement."""


@dataclass(frozen=True, eq=False)
class Numbers:
    values: Array[np.int32]


def test_aliases_of_arrays_are_seen_through():
    @checked
    def of_numbers(values: Array[np.int32], more: NDArray[np.float64] | None = None) -> object:
        return values

    assert of_numbers(np.zeros(2, np.int32), np.zeros(2)).dtype == np.int32
    with pytest.raises(BadValue, match="values is 'a'"):
        of_numbers("a")
    assert rebuilt(Numbers, {"values": [1, 2]}).values.dtype == np.int32


def test_a_list_that_was_accepted_once_lets_no_other_elements_in():
    nDCG = weir.nDCG @ 10
    for measures in (["AP"], [nDCG], ["AP", nDCG], (nDCG,), ["AP", nDCG]):
        assert list(weir.evaluate(QRELS, RUN, measures).measures) == [str(one) for one in measures]
        for wrong in (b"AP", 1, None):
            with pytest.raises(BadValue, match="measures holds"):
                weir.evaluate(QRELS, RUN, [*measures, wrong])


def test_a_path_of_any_type_names_a_file(tmp_path):
    weir.Run.of(RUN).save(tmp_path / "run.trec")
    assert len(weir.Run.load(Path(tmp_path / "run.trec"))) == len(weir.Run.load(str(tmp_path / "run.trec")))


CALLS = [
    (weir.audits, ["brook-news"]),
    (weir.compare, [QRELS, RUN, RUN]),
    (weir.diff, [QRELS, RUN, RUN]),
    (weir.evaluate, [QRELS, RUN]),
    (weir.gate, [QRELS, RUN, RUN]),
    (weir.gate_sequentially, ["looks.json", QRELS, RUN, RUN]),
    (weir.save_baseline, ["b.json", SCORES]),
    (weir.threshold, [QRELS, RUN]),
    (weir.p_mrr, [QRELS, RUN]),
    (weir.fuse, [[RUN, RUN]]),
    (weir.fit_fusion, [QRELS, [RUN, RUN], "rrf"]),
    (weir.reranking, [RUN, RUN]),
    (weir.abstention, [RUN, SCORES]),
    (weir.within_groups, [SCORES, {"q1": "a"}]),
    (weir.why, ["nothing"]),
    (weir.migrate, [RUN, RUN]),
    (weir.funnel_of_rankings, [QRELS, RUN]),
    (weir.fitness, ["brook-news"]),
    (weir.results, ["nothing"]),
    (weir.report, ["nothing"]),
    (weir.import_files, ["nothing.json", "out"]),
    (weir.subset, ["brook-news", 5, "subset"]),
    (weir.with_document_rules, [weir.Qrels.of(QRELS), "nothing"]),
    (weir.labels.holes, [QRELS, RUN]),
    (weir.labels.estimate, [QRELS, QRELS, RUN]),
    (weir.labels.agree, [QRELS, QRELS]),
]
NONSENSE = [None, -1, 3, float("nan"), "", "nonsense", b"x", [3], [None], {3: Stranger()}, Stranger()]
ARGUMENTS = [
    (call, args, name)
    for call, args in CALLS
    for name in inspect.signature(call).parameters
    if name != "encoder"
]  # which may be a model of the hub


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("call", "args", "name"), ARGUMENTS)
def test_nonsense_for_one_argument_is_refused_in_words_of_weir(call, args, name):
    """Or is a value that may be passed: no error is Python's own."""
    parameters = list(inspect.signature(call).parameters.values())
    place = next(n for n, one in enumerate(parameters) if one.name == name)
    for value in NONSENSE:
        given, named = list(args), dict[str, object]()
        if parameters[place].kind is inspect.Parameter.VAR_POSITIONAL:
            given.append(value)
        elif place < len(args) and parameters[place].kind is not inspect.Parameter.KEYWORD_ONLY:
            given[place] = value
        else:
            named[name] = value
        with suppress(WeirError):
            repr(call(*given, **named))


class Task:
    """An object of another package, whose plug-in makes collections of it."""

    parts = 1


Task.__module__ = "someones.tasks"


def test_an_object_of_a_package_with_a_conversion_is_what_it_becomes(monkeypatch):
    one = weir.load("brook-facts")
    monkeypatch.setitem(CONVERSIONS._known, "someones.Task", lambda task: [one] * task.parts)
    assert weir.load(Task()) is one
    for given in (Task(), [Task()], ["brook-facts", Task()], {"brook-facts": Task()}):
        assert {row.dataset for row in weir.benchmark(given, "bm25", "nDCG@10").rows} == {"brook-facts"}
    run = {query: list(judged) for query, judged in one.qrels.to_dict().items()}
    assert weir.evaluate(Task(), run, "nDCG@10").to_dict() == weir.evaluate(one, run, "nDCG@10").to_dict()
    with pytest.raises(BadValue, match="measures"):
        weir.benchmark(one, "bm25", Task())
    monkeypatch.setattr(Task, "parts", 2)
    for call in (lambda: weir.load(Task()), lambda: weir.evaluate(Task(), run)):
        with pytest.raises(
            BadValue, match=r"is 2 values \(brook-facts:test, brook-facts:test\); expected one"
        ):
            call()
