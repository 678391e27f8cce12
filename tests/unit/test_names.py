"""Names of systems and re-rankers: each prints as it is written and parses back, and one line says what is wrong."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys

import pytest

import weir
from weir.errors import BadValue, UnknownName, WeirError
from weir.measures import measures_of, parse_measure
from weir.plugins.encoders.learned_sparse import sparta, splade, unicoil
from weir.plugins.encoders.sparse import SparseEncoder
from weir.systems import (
    BM25,
    RERANKERS,
    RM3,
    SYSTEMS,
    ColBERT,
    DeepCT,
    Dense,
    Sparse,
    parse_system,
    reranker_names,
    system_names,
    usage,
)
from weir.systems.fusion import METHODS

PLAIN = [
    # bm25, rm3 and the grammar
    "bm25",
    "bm25(k1=1.2)",
    "bm25(k1=1.2, b=0.75)",
    'bm25("lucene-multifield")',
    'bm25("elastic", b=0.3)',
    'bm25("bm25s", lengths="byte")',
    'bm25(analyzer="whitespace")',
    "rm3",
    "rm3(docs=5)",
    "rm3(bm25(k1=1.2), terms=20, weight=0.7)",
    # fields of documents
    'bm25(fields=["tags", "title text"])',
    'bm25(fields={"text": 1, "title": 2.5})',
    'bm25("elastic", fields={"text": 1, "title": 3})',
    'bm25f(fields={"text": 1, "title": 3}, k1=1.2, b={"text": 0.75, "title": 0.3}, lengths="exact")',
    "bm25f",
    'rm3(bm25(fields=["tags text"]))',
    # pipelines
    "bm25 >> score(rm3)",
    'bm25(k1=1.2) >> score(bm25("lucene-multifield"), depth=50)',
    "bm25 >> score(rm3, depth=50) >> score(bm25(b=0.0), depth=5)",
    "rrf(bm25, rm3) >> score(bm25)",
    "rrf(bm25 >> score(rm3), rm3, k=10)",
    # fusions
    "rrf(bm25, rm3)",
    'rrf(bm25, bm25("lucene-multifield"), k=10, depth=100)',
    'wsum(bm25, rm3, weights=[0.6, 0.4], norm="zscore")',
    'combmnz(bm25, rrf(rm3, bm25(k1=1.2), k=5), norm="none")',
    "rrf(bm25, bm25)",
    # chunked
    "chunked",
    "chunked(words=20, overlap=5)",
    'chunked(rm3, collapse="first")',
    "chunked(bm25 >> score(rm3))",
]
OF_MODELS = [
    # dense
    'dense("minilm")',
    'dense("facebook/contriever", pooling="mean", similarity="dot", batch_tokens=16384)',
    'dense("minilm", document_prompt="passage: ", max_length=128, dtype="bf16", store="int8", view="text")',
    'dense("openai:text-embedding-3-small", dimensions=256)',
    'dense("minilm", index="HNSW32,SQ8", effort=100)',
    'rrf(bm25, dense("minilm"))',
    'bm25 >> score(dense("minilm"), depth=50)',
    # colbert
    'colbert("colbert")',
    'colbert("answerdotai/answerai-colbert-small-v1", max_length=180, max_query=48, dtype="bf16")',
    'colbert("colbert", engine="torch", batch_tokens=4000, store="fp32", view="text")',
    'colbert("colbert-small", bits=2, candidates=1000, probes=2)',
    'colbert("colbert", candidates=None)',
    'bm25 >> score(colbert("colbert"), depth=50)',
    'rrf(bm25, colbert("colbert"))',
    # splade, sparta, unicoil, deepct
    'splade("splade-v3")',
    'splade("naver/splade-v3-doc", query="tokens", top=200, top_query=30, threshold=0.01)',
    'splade("splade", pooling="sum", activation="log1p_relu", quantised=True, dtype="bf16", view="text")',
    'sparta("sparta", top=500, max_length=256)',
    'unicoil("unicoil", quantised=True, max_query=64, engine="torch", batch_tokens=4000)',
    'deepct("folder")',
    'deepct("folder", bm25(k1=1.2), m=10, smoothing="none", keep=False, max_length=128)',
    'rrf(bm25, splade("splade-v3"))',
    'bm25 >> score(splade("splade-v3"), depth=50)',
    'splade("splade-v3") >> score(unicoil("unicoil"))',
    'splade("splade", view="title text tags")',
    # monot5, doc2query
    'bm25 >> monot5("castorini/monot5-base-msmarco")',
    'bm25 >> monot5("monot5", depth=50, max_length=256, dtype="bf16")',
    'bm25 >> score(rm3) >> monot5("x", token_false="▁no", token_true="▁yes", batch_tokens=4000)',
    "doc2query",
    'doc2query(bm25("lucene-multifield"), n=5, seed=3)',
    'doc2query(rm3(terms=20), model="folder", top_k=25, max_length=64, max_words=32, dtype="bf16")',
    'doc2query(n=20, expansions="train.jsonl.gz") >> monot5("y")',
    "rrf(doc2query, bm25)",
    # cross, llm
    'bm25 >> cross("cross-encoder/ms-marco-MiniLM-L-6-v2")',
    'bm25 >> cross("minilm-cross", depth=50, max_length=256, dtype="int8")',
    'bm25 >> score(rm3) >> cross("folder", engine="torch", batch_tokens=4000)',
    'bm25 >> llm("listwise", model="http://localhost:8000/v1#m", depth=50, window=10, step=5, objective=False, temperature=None, max_length=200, key="WEIR_KEY_A", version="2", concurrency=4)',
]
# What equals a default, in Python or as a name, is the default.
EQUAL = [
    ("bm25(k1=0.9, b=0.4)", BM25()),
    ('bm25("lucene")', BM25()),
    ("bm25(k1=1)", BM25(k1=1.0)),
    ("bm25(b=0)", BM25(b=0.0)),
    ("rm3(bm25, docs=10)", RM3()),
    ("BM25", BM25()),
    ("rrf(bm25, rm3, k=60)", parse_system("rrf(bm25, rm3)")),
    (
        'wsum(bm25, rm3, norm="minmax", weights=[1, 2])',
        parse_system("wsum(bm25(), rm3(bm25), weights=[1.0, 2.0])"),
    ),
    ("dense", Dense("minilm")),
    ("dense", weir.systems.dense("minilm")),
    ("dense", Dense(store="fp32")),
    ("colbert", ColBERT("colbert")),
    ("colbert", ColBERT(candidates="auto")),
    ("splade", splade()),
    ("splade", Sparse(SparseEncoder("splade", "splade"))),
    ("sparta", sparta("sparta")),
    ("unicoil(engine='auto')", unicoil()),
    ('deepct("x", bm25(k1=18, b=0.7))', DeepCT("x")),
    ('doc2query(bm25, "doc2query", 40)', parse_system("doc2query")),
    ('bm25 >> monot5("monot5", None, 512)', parse_system("bm25 >> monot5")),
    ('bm25 >> cross("minilm-cross", None, dtype="fp32")', parse_system("bm25 >> cross")),
]
UNKNOWN = [
    # bm25, rm3 and the grammar
    ("bm52", "did you mean bm25"),
    ("bm25(k2=1)", "did you mean k1"),
    ('bm25("lucene-multi")', "did you mean lucene-multifield"),
    ('bm25(analyzer="lucene-englsh")', "did you mean lucene-english"),
    ("bm25(k1=open('x'))", "no system named 'open'"),
    # pipelines
    ("bm25 >> scor(rm3)", "did you mean score"),
    ("bm25 >> score(rm3, dept=3)", "did you mean depth"),
    # fusions
    ("rrf(bm25, rm3, kk=2)", "did you mean k"),
    ("rrf(bm25, rm3, norm='minmax')", "no setting of rrf named 'norm'"),
    ("wsum(bm25, rm3, norm='minmx')", "did you mean minmax"),
    ("rff(bm25, rm3)", "did you mean rrf"),
    ("rrf(bm25, bm52)", "did you mean bm25"),
    # dense
    ("dense(modell='x')", "did you mean model"),
    ("dense(store='fp31')", "fp32"),
    # colbert
    ("colbert(modell='x')", "did you mean model"),
    ("colbert(store='fp31')", "fp16"),
    # splade, sparta, unicoil, deepct
    ("splade(modell='x')", "did you mean model"),
    ("sparta(query='tokens')", "setting of sparta"),
    # monot5, doc2query
    ('bm25 >> monot5("x", engine="torch")', "no setting of monot5 named 'engine'"),
    # cross, llm
    ('bm25 >> cross("x", batch=3)', "did you mean batch_tokens"),
    ('bm25 >> llm("score", model="antropic:m")', "anthropic"),
]
WRONG = [
    # bm25, rm3 and the grammar
    ("bm25(k1=-1)", "expected a number from 0"),
    ('bm25(k1="big")', "expected a number from 0"),
    ("bm25(b=1.5)", "from 0 to 1"),
    ('bm25(lengths="half")', "'byte' or 'exact'"),
    ("rm3(docs=0)", "whole numbers from 1"),
    ("rm3(weight=2)", "from 0 to 1"),
    ('rm3(bm25("elastic"))', "one field"),
    ("rm3(rm3)", "one field"),
    ("bm25(", "is not a system"),
    ("bm25 + bm25", "is not a system"),
    ("__import__('os').system('true')", "is not a system"),
    ("bm25(**{'k1': 1})", "is not a system"),
    ("bm25(1, 2, 3, 4, 5, 6, 7, 8)", "too many positional"),
    ("", "is not a system"),
    # fields of documents
    ("bm25(fields='title')", "fields is 'title'; expected such as"),
    ("bm25(fields=[])", "fields is"),
    ("bm25f(fields={})", "fields is"),
    ('bm25(fields={"a": 0})', "weighs 0; leave it out"),
    ('bm25(fields={"a": -1})', "gives 'a' -1"),
    ('bm25(fields={"a": "x"})', "gives 'a' 'x'"),
    ('bm25(fields={"a": 1, "a": 2})', "each name once"),
    ("bm25(fields={1: 2})", "each name once"),
    ('bm25(fields=["a", "a"])', "twice"),
    ('bm25(fields=["a", ""])', "view is ''"),
    ('bm25(fields={"a": [1]})', "no setting"),
    ("bm25f(b=2)", "gives 'every field' 2"),
    ('bm25f(b={"text": 1})', "expected each field: text, title"),
    ('bm25f(b="x")', "b is 'x'"),
    ("bm25f(k1=-1)", "bm25f: k1 is"),
    ('dense(view="")', "view is ''"),
    ('deepct("m", bm25(fields=["text"]))', "deepct reads its own view"),
    # pipelines
    ("bm25 >> rm3", "write >> score(rm3)"),
    ("score(rm3)", "write such as bm25 >> score(...)"),
    ("bm25 >> score", "missing a required argument"),
    ("bm25 >> score(3)", "3 is none"),
    ("bm25 >> score(rm3, depth=0)", "whole number from 1"),
    ("bm25 >> score(rm3, depth=True)", "whole number from 1"),
    ("bm25 >> score(rrf(bm25, rm3))", "scores only what it finds"),
    ("bm25 >> (bm25 >> score(rm3))", "is not a system"),
    ("bm25 << score(rm3)", "is not a system"),
    ("bm25 >> 3", "is not a system"),
    # fusions
    ("rrf", "two or more systems, such as rrf"),
    ("rrf(bm25)", "found 1"),
    ("rrf(bm25, 'x')", "'x' is not a system"),
    ("rrf(bm25, 3)", "3 is not a system"),
    ("rrf(bm25, rm3, depth=0)", "expected a whole number from 1"),
    ("rrf(bm25, rm3, depth=1.5)", "expected a whole number from 1"),
    ("rrf(bm25, rm3, k=-2)", "within 0.."),
    ("wsum(bm25, rm3, weights=[1])", "weights has 1 for 2"),
    # chunked
    ("chunked(3)", "3 is not a system"),
    ("chunked(words=0)", "whole number from 1"),
    ("chunked(words=10, overlap=10)", "overlap is 10; expected a whole number from 0 to 9"),
    ("chunked(bm25, words=20)", "overlap is 50, its default; expected an overlap from 0 to 19, such as"),
    ("chunked(overlap=-1)", "expected a whole number from 0 to 149"),
    ('chunked(collapse="mean")', "max, first, sum"),
    # dense
    ("dense(pooling='sum')", "pooling is 'sum'"),
    ("dense(index='HNSW32', effort=-1)", "effort is -1"),
    ("dense(effort=5)", "expected a whole number from 0, beside index"),
    ("dense(index=3)", "index is 3"),
    ("dense(7)", "model is 7"),
    ("dense(max_length=0)", "max_length is 0"),
    ("dense(dimensions=5)", "dimensions does not apply to a checkpoint"),
    ("dense('openai:x', pooling='mean')", "pooling does not apply to an embedding API"),
    # colbert
    ("colbert(bits=3)", "bits is 3; expected 0, 1 or 2"),
    ("colbert(bits=True)", "bits is True"),
    ("colbert(probes=0)", "probes is 0"),
    ("colbert(candidates=0)", "candidates is 0"),
    ("colbert(candidates='all')", "candidates is 'all'"),
    ("colbert(7)", "model is 7"),
    ("colbert(max_length=3)", "max_length is 3"),
    ("colbert(dtype='fp8')", "dtype is 'fp8'"),
    ("colbert(engine='quick')", "engine is 'quick'"),
    # splade, sparta, unicoil, deepct
    ("splade(pooling='mean')", "pooling is 'mean'; expected max, sum"),
    ("splade(activation='gelu')", "expected relu, log1p_relu"),
    ("splade(top=0)", "top is 0; expected a whole number from 1"),
    ("splade(top_query=1.5)", "top_query is 1.5"),
    ("splade(threshold=-1)", "threshold is -1"),
    ("splade(query='')", "query is ''"),
    ("splade(quantised=2)", "quantised is 2"),
    ("sparta(top=True)", "top is True"),
    ("unicoil(7)", "model is 7"),
    ("unicoil(max_length=2)", "max_length is 2"),
    ("unicoil(dtype='fp8')", "dtype is 'fp8'"),
    ("deepct", "missing a required argument: 'model'"),
    ("deepct('x', m=0)", "m is 0"),
    ("deepct('x', smoothing='log')", "expected none, sqrt"),
    ("deepct('x', keep=1)", "keep is 1"),
    ("deepct('x', rm3)", "over one field, not for rm3"),
    ("bm25 >> splade", "write >> score"),
    # monot5, doc2query
    ("monot5", "write such as bm25 >> monot5(...)"),
    ("bm25 >> doc2query", "doc2query is a system"),
    ('bm25 >> monot5("x", depth=0)', "whole number from 1"),
    ('bm25 >> monot5("x", dtype="fp16")', "expected fp32, bf16"),
    ('bm25 >> monot5("x", max_length=15)', "whole number from 16"),
    ('bm25 >> monot5("x", token_true="▁yes")', "expected two words, or neither"),
    ("bm25 >> monot5(3)", "expected a text"),
    ('bm25 >> monot5(" ")', "a hub name or a folder"),
    ("doc2query(dense)", "for bm25 or rm3, not for dense"),
    ("doc2query(3)", "for bm25 or rm3, not for 3"),
    ("doc2query(n=0)", "n is 0; expected a whole number from 1"),
    ("doc2query(top_k=0)", "top_k is 0"),
    ("doc2query(seed=-1)", "seed is -1"),
    ('doc2query(dtype="int8")', "expected fp32, bf16"),
    ('doc2query(model="")', "a hub name or a folder"),
    ('doc2query(expansions="")', "expected a file"),
    ('doc2query(expansions="x", seed=1)', "seed does not apply with expansions"),
    ('doc2query(expansions="x", model="y")', "model does not apply with expansions"),
    # cross, llm
    ("cross", "write such as bm25 >> cross(...)"),
    ('bm25 >> cross("x", depth=0)', "whole number from 1"),
    ('bm25 >> cross("x", dtype="fp8")', "expected fp32, bf16, fp16, int8"),
    ('bm25 >> cross("x", engine="onnx")', "expected auto, openvino, torch, transformers"),
    ('bm25 >> cross("x", max_length=4)', "whole number from 5"),
    ('bm25 >> cross("x", batch_tokens=-1)', "whole number from 0"),
    ("bm25 >> cross(3)", "expected a text"),
    ('bm25 >> cross(" ")', "a hub name or a folder"),
    ('bm25 >> llm("best", model="openai:m")', "method is 'best'; expected score, "),
    ('bm25 >> llm("score", model="gpt")', "model is 'gpt'; expected address#name"),
    (
        'bm25 >> llm("score", model="openai:m", window=30)',
        'window belongs to "listwise", "setwise"; "score" does not',
    ),
    ('bm25 >> llm("listwise", model="openai:m", window=1)', "a window has 2 documents or more"),
    ('bm25 >> llm("listwise", model="openai:m", order="random")', "expected first stage, reversed, shuffled"),
    ('bm25 >> llm("listwise", model="openai:m", seed=3)', 'seed is that of order="shuffled"'),
    ('bm25 >> llm("setwise", model="openai:m", sort="all")', "heapsort, bubblesort or tournament"),
    ('bm25 >> llm("setwise", model="openai:m", sort="quick")', "sort is 'quick'; expected all, heapsort"),
    ('bm25 >> llm("setwise", model="openai:m", top=0)', "top is 0"),
    ('bm25 >> llm("setwise", model="openai:m", order="shuffled", seed=-1)', "seed is -1"),
    ('bm25 >> llm("pairwise", model="openai:m", top=5)', "has a top where it sorts"),
    ('bm25 >> llm("pairwise", model="openai:m", window=4)', '"pairwise" does not take it'),
    ('bm25 >> llm("setwise", model="openai:m", scale=5)', 'scale belongs to "score", "reason", "subtask"'),
    ('bm25 >> llm("score", model="openai:m", scale=0)', "scale is 0; expected a whole number from 1 to 100"),
    ('bm25 >> llm("listwise", model="openai:m", window=5, step=6)', "a step is no longer than the window"),
    ('bm25 >> llm("listwise", model="openai:m", passes=0)', "passes is 0"),
    ('bm25 >> llm("score", model="http://example.org/v1#m")', "http is allowed for localhost only"),
    ('bm25 >> llm("score", model="openai:m", temperature=3)', "temperature is 3"),
    ('bm25 >> llm("score", model="openai:m", max_tokens=0)', "max_tokens is 0"),
    ('bm25 >> llm("score", model="openai:m", concurrency=0)', "concurrency is 0"),
    ('bm25 >> llm("score", model="openai:m", key="OPENAI")', "key: 'OPENAI' is not sent anywhere"),
]


@pytest.mark.parametrize("name", PLAIN + OF_MODELS)
def test_a_name_prints_and_parses_back(name):
    system = parse_system(name)
    assert str(system) == name
    assert parse_system(str(system)) == system
    assert hash(parse_system(name)) == hash(system)


@pytest.mark.parametrize("name", PLAIN)
def test_a_description_begins_with_the_name_and_is_plain(name):
    described = parse_system(name).describe()
    assert described["system"] == name
    json.dumps(described)


@pytest.mark.parametrize(
    "name",
    [  # a system that has a model, a file, a command or a filter names it
        n
        for n in SYSTEMS
        if n not in METHODS
        and not {"model", "path", "command", "file", "filter"}
        & set(inspect.signature(SYSTEMS.get(n)).parameters)
    ],
)
def test_every_registered_system_stands_by_its_bare_name(name):
    assert str(parse_system(name)) == name
    assert parse_system(name).describe()["system"] == name


@pytest.mark.parametrize(("name", "system"), EQUAL, ids=[name for name, _ in EQUAL])
def test_settings_equal_to_the_default_are_the_default(name, system):
    assert parse_system(name) == system


def test_the_order_of_parts_is_part_of_a_name():
    assert parse_system("rrf(bm25, rm3)") != parse_system("rrf(rm3, bm25)")


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("wsum", 'wsum(system, system, ..., weights=[], norm="minmax", depth=None)'),
        ("splade", 'splade(model="splade", query=None, pooling=None'),
        ("monot5", 'monot5(model="monot5", depth=None, max_length=512'),
        ("doc2query", 'doc2query(system=bm25, model="doc2query", n=40, expansions=None'),
        ("cross", 'cross(model="minilm-cross", depth=None, max_length=None'),
    ],
)
def test_usage_shows_every_setting_with_its_default(name, start):
    assert usage(name).startswith(start)


@pytest.mark.parametrize(
    ("name", "message", "kind"),
    [(*row, UnknownName) for row in UNKNOWN] + [(*row, BadValue) for row in WRONG],
)
def test_what_is_wrong_is_one_line_before_anything_starts(name, message, kind):
    with pytest.raises(WeirError) as error:
        parse_system(name)
    assert type(error.value) is kind
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("minilm", 'a model, not a system; write dense("minilm")'),
        ("minilm-cross", 'a model, not a system; write bm25 >> cross("minilm-cross")'),
        ("bm25 >> minilm-cross", 'a model, not a reranker; write cross("minilm-cross")'),
        ("bm25 >> e5-base", 'a model, not a reranker; write score(dense("e5-base"))'),
        ("rrf(bm25, splade-v3)", 'a model, not a system; write splade("splade-v3")'),
    ],
)
def test_a_model_in_the_place_of_a_system_is_told_how_it_is_written(text, message):
    with pytest.raises(BadValue) as error:
        parse_system(text)
    assert message in str(error.value)


def test_a_file_in_the_place_of_a_system_is_told_how_rankings_are_given(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bm25.trec").write_text("q1 Q0 d1 1 2.0 bm25\n")
    with pytest.raises(BadValue, match=r'rankings in a file are run\("bm25\.trec"\)'):
        parse_system("bm25.trec")


def test_a_name_in_other_letters_is_the_system():
    assert (
        str(parse_system("RRF(BM25, Dense('minilm')) >> Score(RM3)"))
        == 'rrf(bm25, dense("minilm")) >> score(rm3)'
    )


def test_a_plug_in_is_a_system_before_it_is_loaded():
    script = """
import sys, weir
from weir.errors import BadValue
from weir.systems import SYSTEMS, as_system, parse_system

def elasticsearch(queries, k):
    return {}

assert "elasticsearch" in list(SYSTEMS)
for attempt in (lambda: as_system(elasticsearch), lambda: parse_system("bm25 >> elasticsearch(url='http://localhost')")):
    try:
        attempt()
    except BadValue as error:
        print(error)
assert "weir.plugins.servers.elasticsearch" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "'elasticsearch' is the name of a registered system; give the object another: weir.system(..., name='mine')",
        "elasticsearch is a system; to re-rank by its scores write >> score(elasticsearch)",
    ]


def test_every_registered_name_stands_in_the_lists_of_names():
    for registry, names in ((SYSTEMS, system_names), (RERANKERS, reranker_names)):
        assert [name for name in dir(names) if registry.get(name) is not getattr(names, name)] == []


def test_braces_name_a_measure_of_each_cutoff():
    named = ("condensed(nDCG(gain='exp')@{1, 10})", "R@{5}", "RR", "nDCG@{3,1,3}")
    expected = [
        "condensed(nDCG(gain='exp')@1)",
        "condensed(nDCG(gain='exp')@10)",
        "R@5",
        "RR",
        "nDCG@3",
        "nDCG@1",
    ]
    assert [str(one) for one in measures_of(named)] == expected
    assert weir.evaluate({"q": {"d": 1}}, {"q": {"d": 1.0}}, "nDCG@{1,3}").measures == ("nDCG@1", "nDCG@3")
    for text in ("nDCG@{}", "nDCG@{1,}", "nDCG@{1,x}", "nDCG@{0}"):
        with pytest.raises(BadValue, match=r"the cut-off is|not a measure"):
            measures_of(text)


@pytest.mark.parametrize(
    "text", ["nDCG@10,RR", "RR,nDCG@10", "nDCG(gain='exp')@10, P(rel=2)@5", "condensed(AP,RR)"]
)
def test_measures_in_one_text_are_told_apart(text):
    with pytest.raises(
        BadValue,
        match="is not a measure; expected such as nDCG@10, each by itself: `measures=\\['nDCG@10', 'RR'\\]`",
    ):
        parse_measure(text)
