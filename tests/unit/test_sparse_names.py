"""The learned sparse systems as names: everything that needs no model."""

from __future__ import annotations

import json

import pytest

from weir.encode.recipes.cards import card
from weir.encode.sparse.sparse_checkpoint import SparseModel, TokenWeights, read_layout
from weir.encode.sparse.sparse_encoder import SparseEncoder
from weir.errors import BadValue, StoreError, UnknownName, WeirError
from weir.systems import DeepCT, Sparse, parse_system, usage
from weir.systems.learned_sparse import sparta, splade, unicoil

NAMES = [
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
]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_prints_and_parses_back(name):
    system = parse_system(name)
    assert str(system) == name
    assert parse_system(str(system)) == system
    assert hash(parse_system(name)) == hash(system)


def test_settings_equal_to_the_default_are_the_default():
    assert parse_system("splade") == splade() == Sparse(SparseEncoder("splade", "splade"))
    assert parse_system("sparta") == sparta("sparta")
    assert parse_system("unicoil(engine='auto')") == unicoil()
    assert parse_system('deepct("x", bm25(k1=18, b=0.7))') == DeepCT("x")
    assert usage("splade").startswith('splade(model="splade", query=None, pooling=None')


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("splade(modell='x')", UnknownName, "did you mean model"),
        ("splade(pooling='mean')", BadValue, "pooling is 'mean'; expected max, sum"),
        ("splade(activation='gelu')", BadValue, "expected relu, log1p_relu"),
        ("splade(top=0)", BadValue, "top is 0; expected a whole number from 1"),
        ("splade(top_query=1.5)", BadValue, "top_query is 1.5"),
        ("splade(threshold=-1)", BadValue, "threshold is -1"),
        ("splade(query='')", BadValue, "query is ''"),
        ("splade(quantised=2)", BadValue, "quantised is 2"),
        ("sparta(top=True)", BadValue, "top is True"),
        ("sparta(query='tokens')", UnknownName, "setting of sparta"),
        ("unicoil(7)", BadValue, "model is 7"),
        ("unicoil(max_length=2)", BadValue, "max_length is 2"),
        ("unicoil(dtype='fp8')", BadValue, "dtype is 'fp8'"),
        ("deepct", BadValue, "missing a required argument: 'model'"),
        ("deepct('x', m=0)", BadValue, "m is 0"),
        ("deepct('x', smoothing='log')", BadValue, "expected none, sqrt"),
        ("deepct('x', keep=1)", BadValue, "keep is 1"),
        ("deepct('x', rm3)", BadValue, "over one field, not for rm3"),
        ("bm25 >> splade", BadValue, "write >> score"),
    ],
)
def test_wrong_settings_are_one_error(text, error, said):
    with pytest.raises(error, match=said) as found:
        parse_system(text)
    assert isinstance(found.value, WeirError)
    assert "\n" not in str(found.value)


def written(folder, **files):
    """A folder with JSON files; __ in a name is a slash."""
    for name, value in files.items():
        path = folder / (name.replace("__", "/") + ".json")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value))
    return folder


BERT = {"model_type": "bert", "max_position_embeddings": 512}
POOLING = {"pooling_strategy": "max", "activation_function": "log1p_relu"}


def steps(*kinds):
    return [
        {"idx": i, "path": path, "type": f"sentence_transformers.models.{k}"}
        for i, (k, path) in enumerate(kinds)
    ]


def test_a_plain_checkpoint_reads_documents_and_queries(tmp_path):
    layout = read_layout(written(tmp_path, config=BERT))
    assert layout.query is layout.document
    assert (layout.document.pooling, layout.document.activation) == (None, None)


def test_steps_of_sentence_transformers(tmp_path):
    modules = steps(("MLMTransformer", ""), ("SpladePooling", "1_SpladePooling"))
    prompts = {"prompts": {"query": "q: ", "document": "d: "}}
    written(tmp_path, config=BERT, modules=modules, config_sentence_transformers=prompts)
    written(tmp_path, **{"1_SpladePooling__config": POOLING})
    layout = read_layout(tmp_path)
    assert layout.query is layout.document
    assert (layout.document.pooling, layout.document.activation) == ("max", "log1p_relu")
    assert layout.document.checkpoint.query_prompt == "q: "


def routed(folder, query):
    names = {"": "MLMTransformer", "document_1_SpladePooling": "SpladePooling", **query}
    types = {name: f"sentence_transformers.sparse_encoder.models.{kind}" for name, kind in names.items()}
    structure = {"query": list(query), "document": ["", "document_1_SpladePooling"]}
    written(folder, config=BERT, modules=steps(("Router", "")))
    written(folder, router_config={"types": types, "structure": structure, "parameters": {}})
    return written(folder, document_1_SpladePooling__config=POOLING)


@pytest.mark.parametrize("kind", ["IDF", "SparseStaticEmbedding"])
def test_a_router_whose_queries_are_weighed_by_a_table(tmp_path, kind):
    routed(tmp_path, {f"query_0_{kind}": kind})
    written(tmp_path, **{f"query_0_{kind}__config": {"frozen": True}})
    layout = read_layout(tmp_path)
    assert isinstance(layout.document, SparseModel)
    assert isinstance(layout.query, TokenWeights)
    assert layout.query.file == tmp_path / f"query_0_{kind}"


def test_a_router_with_two_models(tmp_path):
    routed(tmp_path, {"query_0_MLMTransformer": "MLMTransformer", "query_1_SpladePooling": "SpladePooling"})
    written(tmp_path, query_0_MLMTransformer__config=BERT, query_1_SpladePooling__config={})
    layout = read_layout(tmp_path)
    assert isinstance(layout.query, SparseModel)
    assert layout.query.checkpoint.folder.name == "query_0_MLMTransformer"
    assert (layout.query.pooling, layout.query.activation) == ("max", "relu")


def test_layouts_that_are_not_known(tmp_path):
    dense = steps(("Transformer", ""), ("Pooling", "1_Pooling"))
    with pytest.raises(BadValue, match="a step 'Pooling' is not known"):
        read_layout(written(tmp_path / "dense", config=BERT, modules=dense))
    with pytest.raises(BadValue, match="goes through MLMTransformer; expected"):
        read_layout(written(tmp_path / "short", config=BERT, modules=steps(("MLMTransformer", ""))))
    with pytest.raises(BadValue, match="its documents are read by no model"):
        read_layout(written(tmp_path / "table", config=BERT, modules=steps(("IDF", ""))))
    with pytest.raises(StoreError, match="damaged"):
        read_layout(written(tmp_path / "broken", config=BERT, modules=[{"path": ""}]))
    routed(tmp_path / "odd", {"query_0_IDF": "IDF"})
    with pytest.raises(StoreError, match="damaged"):
        read_layout(written(tmp_path / "odd", router_config={"types": {}}))
    pooled = steps(("MLMTransformer", ""), ("SpladePooling", "1"))
    written(tmp_path / "mean", config=BERT, modules=pooled)
    with pytest.raises(BadValue, match="pooling by mean"):
        read_layout(written(tmp_path / "mean", **{"1__config": {"pooling_strategy": "mean"}}))


def test_cards_say_what_weighs_queries():
    assert card("splade-v3-doc").query == "tokens"
    assert card("opensearch-doc").query == "idf"
    assert card("splade-efficient").query_hub.endswith("-query")
