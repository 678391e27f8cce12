"""The engine openvino: Intel's compiler for inference on processors, in fp32, bf16 or static int8."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np

from weir.errors import BadValue, StoreError, require
from weir.files.atomic import atomic_dir
from weir.files.integrity import checksums_of, checksums_read, verify_files
from weir.models.checkpoints import Checkpoint, fingerprint
from weir.models.hardware import ComputePlace
from weir.models.tokens import Text, Tokens, load_tokenizer
from weir.models.torch_engine import Tensor
from weir.models.transformers_engine import inputs
from weir.models.weights import Array, Weights, distance_bias, read_weights, supported
from weir.settings import settings

HINTS = {"fp32": "f32", "bf16": "bf16", "fp16": "f16", "int8": "f32"}
UNSEEN = 1e9
"""Subtracted from the scores of tokens that nothing attends to."""
GRAPH = 1
"""The number of the graph that `encoder_graph` builds; what was quantised from another is made again."""
SUMS = "checksums.json"
CALIBRATION_TEXTS = 64
"""Texts from which static int8 takes the ranges of what flows between layers."""


@dataclass(frozen=True, eq=False)
class OpenVino:
    """The engine around a compiled model; padded tables in, padded tables out. names: of its inputs, in their order."""

    request: Any
    names: tuple[str, ...]
    fill: int
    padded: bool = True
    alone: bool = False

    def hidden(self, batch: Tokens) -> Tensor:
        """The last hidden states [T, H] of the tokens of a batch."""
        torch = require("torch", extra="neural")
        tables = _tables(batch, self.fill, self.names)
        outputs = self.request.infer([tables[name] for name in self.names], share_inputs=True)
        states = np.asarray(outputs[0], np.float32)
        return torch.from_numpy(states[batch.mask()])


def openvino_engine(checkpoint: Checkpoint, place: ComputePlace, segments: bool = False) -> OpenVino:
    """The engine, compiled for this processor; static int8 is made once and kept in Weir's home.

    segments: whether tokens of a pair's second text are told apart. Raises BadValue for another device than cpu,
    MissingExtra where openvino (or nncf, for int8) is missing.
    """
    if place.kind != "cpu":
        raise BadValue(f"the engine 'openvino' runs on cpu here, not on {place.device}")
    library = require("openvino", extra="openvino")
    segments = segments and int(checkpoint.config.get("type_vocab_size") or 0) > 1
    names = ("input_ids", "attention_mask", *(["token_type_ids"] if segments else []))
    core = library.Core()
    model = _quantised(checkpoint, core, names) if place.dtype == "int8" else _graph(checkpoint, names)
    facts = {
        "INFERENCE_PRECISION_HINT": HINTS[place.dtype],
        "INFERENCE_NUM_THREADS": settings().threads,
        "NUM_STREAMS": "1",
        "ENABLE_CPU_PINNING": False,
    }
    request = core.compile_model(model, "CPU", facts).create_infer_request()
    return OpenVino(request, names, _fill(checkpoint))


def _tables(batch: Tokens, fill: int, names: tuple[str, ...]) -> dict[str, Any]:
    """The padded tables of these names: int64 [n, longest] each."""
    tables = inputs(batch, fill, segments="token_type_ids" in names)
    if "token_type_ids" in names and batch.segment is None:
        tables["token_type_ids"] = np.zeros_like(tables["input_ids"])
    return tables


def _graph(checkpoint: Checkpoint, names: tuple[str, ...]) -> Any:  # noqa: ANN401 - an openvino.Model
    if not supported(checkpoint):
        raise BadValue(
            f"{checkpoint.folder}: the engine 'openvino' does not know '{checkpoint.architecture}'; take 'transformers'"
        )
    return encoder_graph(read_weights(checkpoint), "token_type_ids" in names)


def _fill(checkpoint: Checkpoint) -> int:
    return int(checkpoint.config.get("pad_token_id") or 0)


def encoder_graph(weights: Weights, segments: bool) -> Any:  # noqa: ANN401 - an openvino.Model
    """The model as a graph of OpenVINO's operators: padded tables in, the last hidden states [n, longest, H] out.

    Its inputs are input_ids, attention_mask and, where `segments`, token_type_ids: int64 [n, longest] each.
    """
    library = require("openvino", extra="openvino")
    op = require("openvino.opset13", extra="openvino")
    embedding, heads = weights.embedding, weights.heads

    def constant(array: Array) -> Any:  # noqa: ANN401 - a node of the graph
        kind = np.float32 if array.dtype.kind == "f" else np.int64
        return op.constant(np.ascontiguousarray(array, kind))

    def whole(*numbers: int) -> Any:  # noqa: ANN401 - nodes of the graph
        return op.constant(np.array(numbers, np.int64))

    def linear(x: Any, matrix: Array, bias: Array | None) -> Any:  # noqa: ANN401 - nodes of the graph
        product = op.matmul(x, constant(matrix), False, True)
        return product if bias is None else op.add(product, constant(bias))

    def norm(x: Any, weight: Array, bias: Array) -> Any:  # noqa: ANN401 - nodes of the graph
        y = op.mvn(x, whole(-1), True, weights.eps, "inside_sqrt")
        return op.add(op.multiply(y, constant(weight)), constant(bias))

    def table(name: str) -> Any:  # noqa: ANN401 - nodes of the graph
        parameter = op.parameter([-1, -1], np.int64)
        parameter.set_friendly_name(name)
        parameter.output(0).get_tensor().set_names({name})
        return parameter

    ids, mask = table("input_ids"), table("attention_mask")
    inputs = [ids, mask]
    longest = op.gather(op.shape_of(ids), whole(1), whole(0))
    places = op.slice(
        constant(embedding.positions[embedding.offset :]), whole(0), longest, whole(1), whole(0)
    )
    x = op.add(op.gather(constant(embedding.words), ids, whole(0)), places)
    if segments and embedding.segments is not None:
        inputs.append(table("token_type_ids"))
        x = op.add(x, op.gather(constant(embedding.segments), inputs[-1], whole(0)))
    elif embedding.segments is not None:
        x = op.add(x, constant(embedding.segments[0]))
    x = norm(x, embedding.norm, embedding.norm_bias)
    if embedding.project is not None:
        x = linear(x, embedding.project, embedding.project_bias)
    # What is added to the scores of tokens that nothing attends to, [n, 1, 1, longest].
    seen = op.convert(op.unsqueeze(mask, whole(1, 2)), np.float32)
    added = op.multiply(op.subtract(seen, op.constant(np.float32(1))), op.constant(np.float32(UNSEEN)))
    if weights.relative is not None:
        size = len(embedding.positions) - embedding.offset
        by_distance = constant(distance_bias(weights.relative, size)[None])
        added = op.add(added, op.slice(by_distance, whole(0, 0), op.concat([longest, longest], 0),
                                       whole(1, 1), whole(2, 3)))  # fmt: skip
    width = weights.layers[0].out.shape[0] if weights.layers else 0

    def split(x: Any) -> Any:  # noqa: ANN401 - nodes of the graph
        return op.transpose(op.reshape(x, whole(0, 0, heads, width // heads), True), whole(0, 2, 1, 3))

    for layer in weights.layers:
        thirds = zip(np.split(layer.qkv, 3), np.split(layer.qkv_bias, 3), strict=True)
        query, key, value = (split(linear(x, matrix, bias)) for matrix, bias in thirds)
        context = op.scaled_dot_product_attention(query, key, value, added)
        context = op.reshape(op.transpose(context, whole(0, 2, 1, 3)), whole(0, 0, width), True)
        x = norm(op.add(linear(context, layer.out, layer.out_bias), x), layer.norm1, layer.norm1_bias)
        up = op.gelu(linear(x, layer.up, layer.up_bias), "tanh" if weights.approximate == "tanh" else "erf")
        x = norm(op.add(linear(up, layer.down, layer.down_bias), x), layer.norm2, layer.norm2_bias)
    return library.Model([x], inputs)


def _quantised(checkpoint: Checkpoint, core: Any, names: tuple[str, ...]) -> Any:  # noqa: ANN401 - an openvino.Core and its Model
    """The model with int8 matrices and int8 between the layers, calibrated on texts that come with Weir."""
    library, nncf = require("openvino", extra="openvino"), require("nncf", extra="openvino")
    versions = f"{library.__version__} {nncf.__version__}"
    facts = f"{fingerprint(checkpoint)} graph {GRAPH} {names} {versions} {CALIBRATION_TEXTS}"
    name = hashlib.blake2b(facts.encode("utf-8"), digest_size=16).hexdigest()
    at = settings().home / "openvino" / name
    with suppress(OSError, ValueError, StoreError, RuntimeError):  # not there, or damaged: made again
        verify_files(at, checksums_read(json.loads((at / SUMS).read_text(encoding="utf-8"))))
        return core.read_model(at / "model.xml")
    texts: list[Text] = list(_texts(CALIBRATION_TEXTS))
    if "token_type_ids" in names:  # pairs of a short text and a long one, as models of pairs read
        texts = [(str(text)[:60], str(text)) for text in texts]
    tokens = load_tokenizer(checkpoint.folder, min(checkpoint.limit, 256))(texts)
    order = np.argsort(-tokens.lengths, kind="stable")
    parts = (tokens.take(order[i : i + 4]) for i in range(0, len(order), 4))
    tables = [_tables(part, _fill(checkpoint), names) for part in parts]
    nncf.set_log_level(40)
    model = nncf.quantize(
        _graph(checkpoint, names),
        nncf.Dataset(tables, lambda item: item),
        model_type=nncf.ModelType.TRANSFORMER,
        subset_size=len(tables),
    )
    with suppress(StoreError), atomic_dir(at) as folder:
        library.save_model(model, folder / "model.xml", compress_to_fp16=False)
        sums = {name: checksum.to_json() for name, checksum in checksums_of(folder).items()}
        (folder / SUMS).write_text(json.dumps(sums), encoding="utf-8")
    return model


def _texts(count: int) -> list[str]:
    """Texts of many kinds, the same everywhere: evenly from the collections that come with Weir."""
    texts: list[str] = []
    for folder in sorted((files("weir") / "datasets" / "brook").iterdir(), key=lambda one: one.name):
        lines = (folder / "corpus.jsonl").read_text(encoding="utf-8").rstrip("\n").split("\n")
        documents = (json.loads(line) for line in lines)
        texts += [f"{d.get('title') or ''} {d['text']}".strip() for d in documents]
    return texts[:: max(1, len(texts) // count)][:count]
