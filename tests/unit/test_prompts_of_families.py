"""A model whose family is trained with prompts says so when it runs without them."""

from __future__ import annotations

import json
import warnings

import pytest

from tests.unit.embedding_place import placed
from weir.models.checkpoints import find_card, of_family, without_prompts_note
from weir.models.encoder import Encoder, resolve

NAMES = {
    "intfloat/e5-small-v2": "query: ",
    "intfloat/multilingual-e5-base@onnx": "query: ",
    "./runs/e5-tuned/checkpoint-500": "query: ",
    "intfloat/multilingual-e5-large-instruct": "Instruct: ",
    "nomic-ai/nomic-embed-text-v1.5": "search_query: ",
    "nomic-embed-text:latest": "search_query: ",
    "/models/my_bge_large": "Represent this sentence",
    "e5-base": "query: ",
    "BAAI/bge-m3": "",
    "minilm": "",
    "sentence-transformers/all-MiniLM-L6-v2": "",
    "/home/e5/models/minilm": "",
    "face5": "",
}


@pytest.mark.parametrize(("name", "prompt"), NAMES.items())
def test_the_family_is_read_from_the_name(name, prompt):
    note = without_prompts_note(name)
    assert (f"query_prompt={prompt!r}"[:-1] in note) if prompt else not note
    assert not prompt or find_card(name) or of_family(name)


@pytest.mark.parametrize(
    ("name", "declared", "given", "said"),
    [
        ("e5-tuned", None, {}, True),
        ("e5-tuned", {"query": "query: "}, {}, False),
        ("e5-tuned", None, {"query_prompt": "query: "}, False),
        ("e5-tuned", None, {"query_prompt": "", "document_prompt": ""}, False),
        ("tuned", None, {}, False),
    ],
)
def test_a_checkpoint_of_the_family_without_prompts_says_it(tmp_path, name, declared, given, said):
    folder = tmp_path / name
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"model_type": "bert", "max_position_embeddings": 512}))
    if declared:
        (folder / "config_sentence_transformers.json").write_text(json.dumps({"prompts": declared}))
    notes = resolve(Encoder(str(folder), pooling="mean", **given)).notes
    assert [("runs without prompts" in note) for note in notes] == [True] * said


@pytest.mark.parametrize(
    ("model", "given", "said"),
    [
        ("openai:nomic-embed-text", {}, True),
        ("openai:nomic-embed-text", {"query_prompt": "search_query: "}, False),
        ("openai:text-embedding-3-small", {}, False),
        ("cohere:e5", {}, False),  # it sends the kind of each text
    ],
)
def test_a_service_of_such_a_model_says_it_once(tmp_path, monkeypatch, model, given, said):
    with placed(tmp_path / "home", monkeypatch) as place, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for _ in range(2):
            place.load(model, None, **given)  # the bounds of the environment: one client for all
    assert [("runs without prompts" in str(one.message)) for one in told] == [True] * said
