"""What names a checkpoint: a hash over every file that can move a vector, remembered only while none changes."""

from __future__ import annotations

import json

import pytest

from weir.errors import StoreError
from weir.models import checkpoints as module
from weir.models.checkpoints import checkpoint_fingerprint, read_checkpoint

DECIDING = {
    "config.json": {"model_type": "bert", "max_position_embeddings": 80},
    "modules.json": [{"type": "x.Transformer", "path": ""}, {"type": "x.Pooling", "path": "1_Pooling"},
                     {"type": "x.Dense", "path": "2_Dense"}],
    "1_Pooling/config.json": {"pooling_mode_mean_tokens": True},
    "2_Dense/config.json": {"activation_function": "torch.nn.Tanh"},
    "2_Dense/model.safetensors": b"weights of the head",
    "model.safetensors": b"weights",
    **{name: {"a": 1} for name in (
        "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.json", "added_tokens.json",
        "sentence_bert_config.json", "config_sentence_transformers.json", "idf.json", "router_config.json",
    )},
    **dict.fromkeys(("vocab.txt", "merges.txt", "sentencepiece.bpe.model", "spiece.model", "artifact.metadata"), b"[1]"),
    "a_file_of_next_year.bin2": b"who knows",
}  # fmt: skip
IDLE = ["README.md", ".gitattributes", "LICENSE", "picture.png", "onnx/model.onnx", "onnx/config.json",
        "openvino/openvino_model.xml", "openvino/openvino_model.bin", "tf_model.h5", "modeling_own.py",
        "pytorch_model.bin"]  # fmt: skip


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "SETTLED_SECONDS", -1.0)  # these files are new, and remembered all the same
    for name, value in DECIDING.items():
        path = tmp_path / "model" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(value if isinstance(value, bytes) else json.dumps(value).encode())
    return tmp_path / "model"


def of(folder):
    return checkpoint_fingerprint(read_checkpoint(folder))


@pytest.mark.parametrize("name", DECIDING)
def test_one_byte_of_a_deciding_file_is_another_checkpoint(folder, name):
    before, checkpoint = of(folder), read_checkpoint(folder)
    data = (folder / name).read_bytes()
    (folder / name).write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    changed = checkpoint_fingerprint(checkpoint)
    assert changed != before
    (folder / name).unlink()
    assert checkpoint_fingerprint(checkpoint) not in (before, changed)
    (folder / name).write_bytes(data)
    assert of(folder) == before


def test_what_no_engine_reads_does_not_decide(folder):
    before = of(folder)
    for name in IDLE:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(b"anything")
    assert of(folder) == before
    moved = folder.rename(folder.with_name("elsewhere"))
    assert of(moved) == before
    (moved / "vocab.txt").rename(moved / "1_Pooling" / "vocab.txt")
    assert of(moved) != before


def test_it_is_remembered_while_every_file_is_what_it_was(folder, home, monkeypatch):
    before = of(folder)
    assert len(list((home / "encoders").iterdir())) == 1
    with monkeypatch.context() as patch:
        patch.setattr(module, "write_json", None)  # to remember it again would fail
        assert of(folder) == before
    head = folder / "2_Dense" / "model.safetensors"
    other = head.with_name("new")
    other.write_bytes(b"Weights of the head")
    other.rename(head)  # of the same size, in a sub-folder, put there as a download puts it
    assert of(folder) != before


def test_what_just_changed_is_not_remembered(folder, home, monkeypatch):
    monkeypatch.setattr(module, "SETTLED_SECONDS", 3600.0)
    of(folder)
    assert not (home / "encoders").exists()


@pytest.mark.parametrize("steps", ["../other", "/elsewhere", "1_Pooling/../../other"])
def test_a_checkpoint_that_names_folders_outside_of_it_is_refused(folder, steps):
    (folder / "modules.json").write_text(json.dumps([{"type": "x.Transformer", "path": steps}]))
    with pytest.raises(StoreError, match="leads out of the checkpoint"):
        read_checkpoint(folder)
