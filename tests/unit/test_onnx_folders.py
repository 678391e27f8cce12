"""Checkpoints as ONNX files: which file is read, what is asked for, and the numbers of all four kinds."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("openvino", reason="needs the `neural` extra (openvino)")
onnx = pytest.importorskip("onnx", reason="needs the `dev` extra (onnx)")

from tests.neural.conftest import SPECIAL, WORDS, write_tokenizer  # noqa: E402 - behind the skip
from tests.unit.hub_server import Hub, served  # noqa: E402 - behind the skip
from weir.errors import BadValue, StoreError  # noqa: E402 - behind the skip
from weir.models import Encoder  # noqa: E402 - behind the skip
from weir.models.checkpoints import graph_patterns, split_variant  # noqa: E402 - behind the skip
from weir.models.cross_encoder import CrossEncoder  # noqa: E402 - behind the skip
from weir.plugins.encoders.late import LateEncoder  # noqa: E402 - behind the skip
from weir.plugins.encoders.sparse import SparseEncoder  # noqa: E402 - behind the skip
from weir.systems import parse_system  # noqa: E402 - behind the skip

V, D = 64, 8
NAMES = {name: number for number, name in enumerate([*SPECIAL, *WORDS])}
TEXTS = ["cat", "red fish", ""]
TABLE = np.random.default_rng(2).normal(0, 1, (V, D)).astype(np.float32)
INPUTS = ("input_ids", "attention_mask", "token_type_ids")


def graph(output="last_hidden_state", table=TABLE, reduced=False, inputs=INPUTS, operator="Gather"):
    """A model that looks tokens up: [n, longest, D], or [n, D] of each text's first token where `reduced`."""
    helper, kinds = onnx.helper, onnx.TensorProto
    nodes = [helper.make_node(operator, ["table", "input_ids"], ["rows"])]
    if reduced:
        nodes.append(helper.make_node("Gather", ["rows", "first"], [output], axis=1))
    else:
        nodes.append(helper.make_node("Identity", ["rows"], [output]))
    shape = ["n", table.shape[1]] if reduced else ["n", "longest", table.shape[1]]
    whole = helper.make_graph(
        nodes,
        "lookup",
        [helper.make_tensor_value_info(name, kinds.INT64, ["n", "longest"]) for name in inputs],
        [helper.make_tensor_value_info(output, kinds.FLOAT, shape)],
        [onnx.numpy_helper.from_array(table, "table"), onnx.numpy_helper.from_array(np.array(0), "first")],
    )
    return helper.make_model(whole, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def folder_of(folder, files, config=None):
    folder.mkdir(parents=True)
    write_tokenizer(folder)
    for name, model in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        onnx.save(model, folder / name)
    if config is not None:
        (folder / "config.json").write_text(json.dumps(config))
    return folder


def rows(text):
    return TABLE[[NAMES[word] for word in ["[CLS]", *text.split(), "[SEP]"]]].astype(np.float64)


def test_vectors_of_a_folder_with_a_graph_and_a_tokenizer_alone(tmp_path):
    folder = folder_of(tmp_path / "own", {"onnx/model.onnx": graph()})
    with pytest.raises(BadValue, match=r"nothing says how .* pools"):
        Encoder(str(folder)).load("cpu")
    found = Encoder(str(folder), pooling="mean").load("cpu").encode(TEXTS)
    np.testing.assert_allclose(found, [rows(text).mean(0) for text in TEXTS], atol=1e-6)
    about = Encoder(str(folder), pooling="mean").describe("cpu")
    assert (about["graph"], about["max_length"]) == ("onnx/model.onnx", 512)
    assert str(about["engine"]).startswith("openvino cpu fp32")
    with pytest.raises(BadValue, match="no output with 2 dimensions"):
        Encoder(str(folder), pooling="own").load("cpu")
    with pytest.raises(BadValue, match="which the engine 'torch' does not read"):
        Encoder(str(folder), pooling="mean", engine="torch").load("cpu")


def test_a_graph_that_gives_one_vector_for_each_text(tmp_path):
    folder = folder_of(tmp_path / "own", {"model.onnx": graph("sentence_embedding", reduced=True)})
    with pytest.raises(BadValue, match="take pooling='own'"):
        Encoder(str(folder), pooling="mean").load("cpu")
    found = Encoder(str(folder), pooling="own").load("cpu").encode(TEXTS)
    np.testing.assert_allclose(found, [rows(text)[0] for text in TEXTS], atol=1e-6)


def test_which_of_several_files_is_read(tmp_path):
    files = {
        f"onnx/model{name}.onnx": graph(table=TABLE * scale) for name, scale in (("", 1), ("_quantized", 2))
    }
    folder = folder_of(tmp_path / "own", files | {"onnx/model_O3.onnx": graph(table=TABLE * 3)})
    first = rows("cat").mean(0)
    for variant, scale in (("", 1), ("#fp32", 1), ("#int8", 2), ("#onnx/model_O3.onnx", 3)):
        encoder = Encoder(f"{folder}{variant}", pooling="mean")
        np.testing.assert_allclose(encoder.load("cpu").encode(["cat"])[0], scale * first, atol=1e-5)
    keys = {Encoder(f"{folder}{v}", pooling="mean").describe("cpu")["revision"] for v in ("", "#int8")}
    assert len(keys) == 2
    system = parse_system(f'dense("{folder}#int8", pooling="mean")')
    assert parse_system(str(system)) == system
    with pytest.raises(
        BadValue, match=r"no variant .fp16. there; found onnx/model\.onnx, onnx/model_O3\.onnx"
    ):
        Encoder(f"{folder}#fp16", pooling="mean").load("cpu")
    (folder / "onnx" / "model.onnx").unlink()
    with pytest.raises(BadValue, match="which of its ONNX files"):
        Encoder(str(folder), pooling="mean").load("cpu")
    shutil.copy(folder / "onnx" / "model_O3.onnx", folder / "model_int8.onnx")
    with pytest.raises(BadValue, match="which of its ONNX files"):
        Encoder(f"{folder}#int8", pooling="mean").load("cpu")


def test_the_other_kinds(tmp_path):
    one = np.ascontiguousarray(TABLE[:, :1])
    pairs = folder_of(tmp_path / "pairs", {"model.onnx": graph("logits", one, reduced=True)})
    [scores] = CrossEncoder(str(pairs)).load("cpu").scores([("cat", "fish"), ("red", "")])
    np.testing.assert_allclose(scores, [one[2, 0]] * 2, atol=1e-6)
    terms = folder_of(
        tmp_path / "terms", {"model.onnx": graph("logits")}, {"architectures": ["BertForMaskedLM"]}
    )
    block = SparseEncoder("splade", str(terms)).load("cpu").encode(TEXTS)
    for number, text in enumerate(TEXTS):
        expected = np.log1p(np.maximum(rows(text), 0)).max(0)
        values = block.values[block.ptr[number] : block.ptr[number + 1]]
        np.testing.assert_allclose(values["weight"], expected[expected > 0], atol=1e-6)
    with pytest.raises(BadValue, match="'unicoil' reads no ONNX"):
        SparseEncoder("unicoil", str(terms)).load("cpu")
    late = folder_of(tmp_path / "late", {"model.onnx": graph("contextual")})
    facts = {"query_token_id": "[UNK]", "doc_token_id": "[UNK]", "mask_punctuation": False}
    (late / "artifact.metadata").write_text(json.dumps(facts))
    loaded = LateEncoder(str(late)).load("cpu")
    assert loaded.dimensions == D
    block = loaded.encode(["cat"])
    expected = TABLE[[2, 1, NAMES["cat"], 3]]
    np.testing.assert_allclose(
        block.values, expected / np.linalg.norm(expected, axis=1, keepdims=True), atol=1e-6
    )


def test_broken_graphs_are_one_line(tmp_path):
    half = folder_of(tmp_path / "half", {"model.onnx": graph()})
    data = (half / "model.onnx").read_bytes()
    (half / "model.onnx").write_bytes(data[: len(data) // 2])
    unknown = folder_of(tmp_path / "operator", {"model.onnx": graph(operator="Fetch")})
    others = folder_of(tmp_path / "inputs", {"model.onnx": graph(inputs=("input_ids", "pixels"))})
    numbers = folder_of(tmp_path / "numbers", {"model.onnx": graph(table=TABLE * np.nan)})
    for folder, message in (
        (half, "OpenVINO cannot read it"), (unknown, "OpenVINO cannot"), (others, "an input 'pixels' is not known"),
        (numbers, "is not finite"),
    ):  # fmt: skip
        with pytest.raises((StoreError, BadValue), match=message) as caught:
            Encoder(str(folder), pooling="mean").load("cpu").encode(["cat"])
        assert "\n" not in str(caught.value)


def test_names_of_variants(tmp_path):
    assert split_variant("Xenova/gte-small#int8") == ("Xenova/gte-small", "int8")
    assert split_variant("minilm") == ("minilm", "")
    (tmp_path / "a#b").mkdir()
    assert split_variant(str(tmp_path / "a#b")) == (str(tmp_path / "a#b"), "")
    assert {"onnx/model_quantized.onnx", "model_int8.onnx", "onnx/model_int8.onnx_data"} <= set(
        graph_patterns("int8")
    )


def test_rows_are_filled_with_the_tokenizer_s_own_token(tmp_path):
    """Graphs of RoBERTa and MPNet number positions by it, and a folder without config.json names it nowhere else."""
    folder = folder_of(tmp_path / "own", {"model.onnx": graph()})
    path = folder / "tokenizer.json"
    facts = json.loads(path.read_text())
    facts["model"]["vocab"] |= {"[PAD]": NAMES["fish"], "fish": NAMES["[PAD]"]}
    facts["added_tokens"] = [one for one in facts["added_tokens"] if one["content"] != "[PAD]"]
    path.write_text(json.dumps(facts))
    loaded = Encoder(str(folder), pooling="mean").load("cpu")
    assert loaded.document.engine.fill == NAMES["fish"]


def test_one_variant_is_brought_from_the_hub(tmp_path):
    folder = folder_of(
        tmp_path / "own", {f"onnx/model{name}.onnx": graph() for name in ("", "_quantized", "_fp16")}
    )
    files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    with served(Hub()) as hub:
        hub.put("weirs/tiny", files | {"model.safetensors": b"never asked for"})
        env = os.environ | {
            "HF_ENDPOINT": hub.url,
            "HF_HUB_CACHE": str(tmp_path / "cache"),
            "HF_HUB_OFFLINE": "0",
        }
        encode = (
            "from weir.models import Encoder; e = Encoder('weirs/tiny#int8', pooling='mean'); e.fetch(); "
            "print(e.describe('cpu')['graph'], e.load('cpu').encode(['cat']).shape)"
        )
        done = subprocess.run(
            [sys.executable, "-c", encode], env=env, capture_output=True, text=True, check=False
        )
        assert (done.stdout.strip(), done.returncode) == ("onnx/model_quantized.onnx (1, 8)", 0), done.stderr
        brought = {path.rpartition("/")[2] for path in hub.paths() if path.startswith("/weirs/")}
    assert brought == {"model_quantized.onnx", "tokenizer.json"} & brought
    assert "model_quantized.onnx" in brought


def quantised_graph(matrix, scale, zero):
    """Rows of tokens times a matrix of bytes, their ranges taken from the batch, as onnxruntime's dynamic quantisation."""
    helper, kinds = onnx.helper, onnx.TensorProto
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["rows"]),
        helper.make_node("DynamicQuantizeLinear", ["rows"], ["bytes", "scale", "zero"]),
        helper.make_node("MatMulInteger", ["bytes", "matrix", "zero", "own_zero"], ["whole"]),
        helper.make_node("Cast", ["whole"], ["product"], to=kinds.FLOAT),
        helper.make_node("Mul", ["scale", "own_scale"], ["scales"]),
        helper.make_node("Mul", ["product", "scales"], ["last_hidden_state"]),
    ]
    arrays = {"table": TABLE, "matrix": matrix, "own_scale": scale, "own_zero": zero}
    whole = helper.make_graph(
        nodes,
        "product",
        [helper.make_tensor_value_info(name, kinds.INT64, ["n", "longest"]) for name in INPUTS],
        [helper.make_tensor_value_info("last_hidden_state", kinds.FLOAT, ["n", "longest", matrix.shape[1]])],
        [onnx.numpy_helper.from_array(array, name) for name, array in arrays.items()],
    )
    return helper.make_model(whole, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


@pytest.mark.parametrize("per_column", [False, True])
def test_bytes_of_states_do_not_depend_on_the_batch(tmp_path, per_column):
    random = np.random.default_rng(4)
    matrix = random.integers(-127, 128, (D, 5)).astype(np.int8)
    columns = 5 if per_column else ()
    scale = random.uniform(0.01, 0.02, columns).astype(np.float32)
    zero = np.zeros(columns, np.int8) if per_column else np.array(3, np.int8)
    folder = folder_of(tmp_path / "own", {"onnx/model_quantized.onnx": quantised_graph(matrix, scale, zero)})
    loaded = Encoder(str(folder), pooling="mean").load("cpu")
    product = (matrix.astype(np.float64) - zero) * scale
    np.testing.assert_allclose(
        loaded.encode(TEXTS), [(rows(text) @ product).mean(0) for text in TEXTS], rtol=1e-5
    )


@pytest.mark.parametrize("branch", [False, True])
def test_a_graph_with_a_loop_is_refused(tmp_path, branch):
    """It may have no end, and cannot be interrupted."""
    helper, kinds = onnx.helper, onnx.TensorProto
    states = ["n", "longest", D]
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["on"]), helper.make_node("Identity", ["old"], ["new"])],
        "body",
        [
            helper.make_tensor_value_info("turn", kinds.INT64, []),
            helper.make_tensor_value_info("go", kinds.BOOL, []),
            helper.make_tensor_value_info("old", kinds.FLOAT, states),
        ],
        [helper.make_tensor_value_info("on", kinds.BOOL, []), helper.make_tensor_value_info("new", kinds.FLOAT, states)],
    )  # fmt: skip
    model = graph("rows_out")
    del model.graph.output[:]
    loop = helper.make_node("Loop", ["", "always", "rows"], ["last_hidden_state"], body=body)
    ways = [
        helper.make_graph([node], name, [], [helper.make_tensor_value_info("last_hidden_state", kinds.FLOAT, states)])
        for name, node in (("loop", loop), ("plain", helper.make_node("Identity", ["rows"], ["last_hidden_state"])))
    ]  # fmt: skip
    either = helper.make_node(
        "If", ["always"], ["last_hidden_state"], then_branch=ways[0], else_branch=ways[1]
    )
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array(True), "always"))
    model.graph.node.append(either if branch else loop)
    model.graph.output.append(helper.make_tensor_value_info("last_hidden_state", kinds.FLOAT, states))
    folder_of(tmp_path / "m", {"model.onnx": model}, {"model_type": "bert"})
    with pytest.raises(BadValue, match="a graph with a loop"):
        Encoder(str(tmp_path / "m"), pooling="mean").load("cpu")
