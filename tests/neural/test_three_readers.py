"""The same checkpoint read as safetensors without PyTorch, as an ONNX file, and by PyTorch: all four kinds."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the `torch` extra")
transformers = pytest.importorskip("transformers", reason="needs the `torch` extra (transformers)")
pytest.importorskip("onnx", reason="PyTorch writes ONNX with the package onnx")
pytest.importorskip("numba", reason="needs the `run` extra (numba)")

from tests.neural.conftest import configs, sentence_transformer  # noqa: E402 - behind the skip
from tests.neural.late_checkpoint import colbert, made  # noqa: E402, F401 - behind the skip; fixtures
from tests.neural.test_cross import written  # noqa: E402 - behind the skip
from tests.neural.test_sparse import mlm  # noqa: E402 - behind the skip
from weir.models import Encoder  # noqa: E402 - behind the skip
from weir.models.cross_encoder import CrossEncoder  # noqa: E402 - behind the skip
from weir.plugins.encoders.late import LateEncoder  # noqa: E402 - behind the skip
from weir.plugins.encoders.sparse import SparseEncoder  # noqa: E402 - behind the skip

pytestmark = pytest.mark.filterwarnings("default")  # what torch and transformers deprecate is theirs to mend
ARCHITECTURES = ["bert", "roberta", "mpnet", "distilbert"]
CLOSE = 2e-5


class Exported(torch.nn.Module):
    """A model whose one output is a tensor."""

    def __init__(self, model, output, matrix=None):
        super().__init__()
        self.model, self.output, self.matrix = model.eval(), output, matrix

    def forward(self, input_ids, attention_mask):
        rows = getattr(self.model(input_ids=input_ids, attention_mask=attention_mask), self.output)
        return rows if self.matrix is None else rows @ self.matrix.T


def onnx_folder(folder, to, model, output, name, matrix=None):
    """The checkpoint's folder with an ONNX file in the place of its safetensors."""
    shutil.copytree(folder, to, ignore=shutil.ignore_patterns("*.safetensors"))
    (to / "onnx").mkdir()
    ids = torch.ones(2, 5, dtype=torch.long)
    names = ["input_ids", "attention_mask"]
    axes = {one: {0: "n", 1: "longest"} for one in [*names, name]} | (
        {name: {0: "n"}} if output == "logits" and name == "scores" else {}
    )
    torch.onnx.export(
        Exported(model, output, matrix), (ids, ids), str(to / "onnx" / "model.onnx"), input_names=names,
        output_names=[name], dynamic_axes=axes, dynamo=False,
    )  # fmt: skip
    return to


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_vectors(name, checkpoint_of, words, tmp_path):
    folder = shutil.copytree(checkpoint_of(name), tmp_path / "own")
    model = transformers.AutoModel.from_pretrained(folder)
    other = onnx_folder(folder, tmp_path / "onnx", model, "last_hidden_state", "last_hidden_state")
    for one in (folder, other):
        sentence_transformer(one)
    rows = {
        "light": Encoder(str(folder)).load("cpu").encode(words),
        "torch": Encoder(str(folder), engine="torch").load("cpu").encode(words),
        "onnx": Encoder(str(other)).load("cpu").encode(words),
    }
    for found in rows.values():
        np.testing.assert_allclose(found, rows["light"], atol=CLOSE)


@pytest.mark.parametrize("name", ["roberta", "distilbert"])
def test_scores_of_pairs(name, words, tmp_path):
    folder = written(tmp_path / "own", configs()[name])
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder)
    other = onnx_folder(folder, tmp_path / "onnx", model, "logits", "scores")
    pairs = list(zip(words, reversed(words), strict=True))
    light, by_torch, onnx = (
        np.concatenate(list(CrossEncoder(str(one), engine=engine).load("cpu").scores(iter(pairs))))
        for one, engine in ((folder, "auto"), (folder, "torch"), (other, "auto"))
    )
    np.testing.assert_allclose(by_torch, light, atol=CLOSE)
    np.testing.assert_allclose(onnx, light, atol=CLOSE)


@pytest.mark.parametrize("name", ["bert", "mpnet"])
def test_weights_of_terms(name, words, tmp_path):
    folder = mlm(tmp_path / "own", configs()[name])
    model = transformers.AutoModelForMaskedLM.from_pretrained(folder)
    other = onnx_folder(folder, tmp_path / "onnx", model, "logits", "logits")
    light, by_torch, onnx = (
        SparseEncoder("splade", str(one), engine=engine).load("cpu").encode(words)
        for one, engine in ((folder, "auto"), (folder, "torch"), (other, "auto"))
    )
    for found in (by_torch, onnx):
        np.testing.assert_array_equal(found.ptr, light.ptr)
        np.testing.assert_array_equal(found.values["term"], light.values["term"])
        np.testing.assert_allclose(found.values["weight"], light.values["weight"], atol=5e-5)


def test_token_vectors(colbert, tmp_path):  # noqa: F811 - a fixture
    folder, model, matrix = colbert()
    other = onnx_folder(folder, tmp_path / "onnx", model, "last_hidden_state", "contextual", matrix)
    assert json.loads((other / "config.json").read_text())["architectures"] == ["HF_ColBERT"]
    texts = ["the red fish", "a weir, over stone"]
    light, by_torch, onnx = (
        LateEncoder(str(one), engine=engine).load("cpu").encode(texts)
        for one, engine in ((folder, "auto"), (folder, "torch"), (other, "auto"))
    )
    for found in (by_torch, onnx):
        np.testing.assert_array_equal(found.ptr, light.ptr)
        np.testing.assert_allclose(found.values, light.values, atol=CLOSE)
