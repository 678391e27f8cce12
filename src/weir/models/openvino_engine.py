"""Compute models on the processor with OpenVINO, in fp32, bf16 or static int8."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass
from importlib.resources import files
from io import StringIO
from typing import Any

import numpy as np

from weir.core.strings import Float32, Int64
from weir.errors import BadValue, FormatError, StoreError, require
from weir.files.atomic import atomic_dir
from weir.files.integrity import checksums_of, checksums_read, verify_files
from weir.files.json_record import read_json
from weir.models.checkpoints import Checkpoint, checkpoint_fingerprint
from weir.models.hardware import ComputePlace
from weir.models.heads import AnyHead, ClassHead, Layer, OwnHead, TermHead, TokenHead, Transform, VectorHead
from weir.models.term_maxima import TermMaxima
from weir.models.tokens import Text, Tokens, load_tokenizer
from weir.models.weights import Array, Weights, distance_bias, read_weights, supported
from weir.settings import require_addresses, settings

HINTS = {"fp32": "f32", "bf16": "bf16", "fp16": "f16", "int8": "f32"}
UNSEEN = 1e9
"""Subtracted from the attention scores of padding tokens."""
NORM_FLOOR = 1e-12
"""Smallest length by which a vector is divided."""
ERF = np.frompyfunc(math.erf, 1, 1)
LAYER_NORM_EPS = 1e-5
"""torch's default, used by layers after pooling."""
GRAPH = 1
"""Version of `_encoder_graph`; graphs quantised from another version are made again."""
SUMS = "checksums.json"
INPUTS = ("input_ids", "attention_mask", "token_type_ids")
"""Known inputs of a graph."""
STATE_OUTPUTS = ("last_hidden_state", "token_embeddings", "hidden_states")
VECTOR_OUTPUTS = ("sentence_embedding", "sentence_embeddings", "pooler_output")
"""Outputs of ONNX files, in order of preference."""
CALIBRATION_TEXTS = 64
"""Texts that determine the ranges of static int8."""


WEIGHTS = (".safetensors", ".bin", ".onnx")
ADDRESSES, WEIGHT_TIMES = 1_000_000_000, 4
"""Bytes of address space for the runtime and a batch, and copies of the weights, to reserve under `ulimit -v`."""


def joined_rows(parts: Sequence[Float32]) -> Float32:
    """Return the rows of several batches as one array; raises ValueError without batches."""
    return np.concatenate(parts)


def values_above(rows: Float32, threshold: float) -> tuple[Int64, Int64, Float32]:
    """Return (rows, columns, values) of entries above a threshold or NaN, in row order: int64, int64, float32."""
    there = ~(rows <= threshold)
    row, column = np.nonzero(there)
    return row, column, rows[there]


@dataclass(frozen=True, eq=False)
class OpenVino:
    """A model compiled by OpenVINO, which takes padded tables of tokens."""

    request: Any
    names: tuple[str, ...]
    """Names of its inputs, in order."""
    fill: int
    head: AnyHead
    maxima: TermMaxima | None = None
    """Turns the graph's token states into term weights; None if the graph itself computes them."""
    padded: bool = True
    batch_independent: bool = False

    def rows(self, batch: Tokens) -> Float32:
        tables = _padded_tables(batch, self.fill, self.names)
        outputs = self.request.infer([tables[name] for name in self.names], share_inputs=True)
        rows: Float32 = np.array(outputs[0], np.float32)  # a copy: the next batch is written over the outputs
        if isinstance(self.head, OwnHead) and self.head.kind == "classes":
            return rows
        if self.maxima is not None:
            mask = batch.attended()
            rows = self.maxima.of_texts(rows[:, : mask.shape[1]][mask], mask.sum(1))
        if isinstance(self.head, TermHead | OwnHead):
            return _activated(rows, self.head.activation) if self.head.pooling == "max" else rows
        if isinstance(self.head, TokenHead):
            mask = batch.mask()
            rows = rows[:, : mask.shape[1]][mask]
        for layer in self.head.layers:
            rows = layered(rows, layer)
        if not isinstance(self.head, ClassHead) and self.head.normalise:
            rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), NORM_FLOOR)
        return rows

    array = staticmethod(joined_rows)
    above = staticmethod(values_above)


def openvino_engine(
    checkpoint: Checkpoint, place: ComputePlace, head: AnyHead, segments: bool = False
) -> OpenVino:
    """Return a checkpoint with its head, compiled for this processor; an int8 graph is made once and stored.

    segments: batches distinguish the two texts of a pair.

    Raises BadValue for another device or an unsupported checkpoint, StoreError for a graph that OpenVINO cannot
    compute.
    """
    if place.kind != "cpu":
        raise BadValue(f"the engine 'openvino' runs on cpu here, not on {place.device}")
    library = require("openvino", extra="neural")
    if checkpoint.graph is None and (isinstance(head, OwnHead) or not supported(checkpoint)):
        raise BadValue(
            f"{checkpoint.folder}: the engine 'openvino' does not know '{checkpoint.architecture}'; take 'transformers'"
        )
    weights = sum(path.stat().st_size for path in checkpoint.folder.rglob("*") if path.suffix in WEIGHTS)
    require_addresses(ADDRESSES + WEIGHT_TIMES * weights, f"{checkpoint.folder.name} on the processor")
    core = library.Core()
    if checkpoint.graph is not None:
        body = _graph_body(core, checkpoint, head)
    else:
        segments = segments and int(checkpoint.config.get("type_vocab_size") or 0) > 1
        body = _body(checkpoint, segments)
    names = tuple(
        next(n for n in INPUTS if n in node.output(0).get_names()) for node in body.get_parameters()
    )
    if place.dtype == "int8":
        body = _quantised(checkpoint, core, names, body)
    facts = {
        "INFERENCE_PRECISION_HINT": HINTS[place.dtype],
        "INFERENCE_NUM_THREADS": settings().threads,
        "NUM_STREAMS": "1",
        "ENABLE_CPU_PINNING": False,
    }
    maxima = None
    if isinstance(head, TermHead) and head.pooling == "max":
        maxima = TermMaxima.of(head.weight, head.bias)
    try:
        model = _with_head(body, head, states=maxima is not None)
        if maxima is not None and model.output(0).get_partial_shape()[2] != maxima.weight.shape[1]:
            raise RuntimeError("the states of tokens and the vectors of terms have other dimensions")
        request = core.compile_model(model, "CPU", facts).create_infer_request()
    except RuntimeError as error:
        reason = " ".join(str(error).split())[-200:]
        raise StoreError(
            f"{checkpoint.graph or checkpoint.folder}: OpenVINO cannot run it ({reason})"
        ) from None
    return OpenVino(request, names, _fill(checkpoint), head, maxima)


def layered(x: Float32, layer: Layer) -> Float32:
    """Return a layer's output, float32[n, d], for inputs [n, h]."""
    weight = layer.weight.astype(np.float32, copy=False)
    if layer.kind == "LayerNorm":
        centred = x - x.mean(1, keepdims=True)
        y = centred / np.sqrt(np.square(centred).mean(1, keepdims=True) + LAYER_NORM_EPS) * weight
        return np.asarray(y if layer.bias is None else y + layer.bias, np.float32)
    y = x @ weight.T
    y = y if layer.bias is None else y + layer.bias
    if layer.activation in ("Tanh", "relu"):
        y = np.tanh(y) if layer.activation == "Tanh" else np.maximum(y, 0)
    elif layer.activation == "gelu":
        y = 0.5 * y * (1 + ERF(y / np.sqrt(2)).astype(np.float32))
    if layer.added is not None:
        y = y + (x @ layer.added.astype(np.float32, copy=False).T if layer.added.size else x)
    return np.asarray(y, np.float32)


def _activated(x: Float32, activation: str) -> Float32:
    np.log1p(x, out=x)
    return np.log1p(x, out=x) if activation == "log1p_relu" else x


def _padded_tables(batch: Tokens, fill: int, names: tuple[str, ...]) -> dict[str, Int64]:
    tables = {
        "input_ids": batch.padded(batch.ids, fill),
        "attention_mask": batch.attended().astype(np.int64),
    }
    if "token_type_ids" in names:
        none = np.zeros(len(batch.ids), np.uint8)
        tables["token_type_ids"] = batch.padded(none if batch.segment is None else batch.segment, 0)
    if tables["input_ids"].shape[1]:
        return tables
    return {name: np.zeros((len(batch), 1), np.int64) for name in tables}


def _fill(checkpoint: Checkpoint) -> int:
    if "pad_token_id" in checkpoint.config or checkpoint.graph is None:
        return int(checkpoint.config.get("pad_token_id") or 0)
    return load_tokenizer(checkpoint.folder, checkpoint.limit).pad


def _body(checkpoint: Checkpoint, segments: bool) -> Any:  # noqa: ANN401 - an openvino.Model
    weights = read_weights(checkpoint)
    width = weights.layers[0].out.shape[0] if weights.layers else 0
    try:
        if width % weights.heads:
            raise ValueError(f"{width} numbers do not divide into {weights.heads} heads")
        return _encoder_graph(weights, segments)
    except (RuntimeError, ValueError, TypeError) as error:
        reason = " ".join(str(error).split())[-200:]
        raise StoreError(f"{checkpoint.folder}: its weights do not fit its config.json ({reason})") from None


def _graph_body(core: Any, checkpoint: Checkpoint, head: AnyHead) -> Any:  # noqa: ANN401 - an openvino.Core and its Model
    library, path = require("openvino", extra="neural"), checkpoint.graph
    try:
        model = core.read_model(path)
    except RuntimeError as error:
        reason = " ".join(str(error).split())[-200:]
        raise StoreError(f"{path}: OpenVINO cannot read it ({reason})") from None
    if loop := _loop_of(model):
        raise BadValue(
            f"{path}: a graph with a loop ({loop}), which may have no end; expected one that runs once"
        )
    for node in model.get_parameters():
        if not any(name in node.output(0).get_names() for name in INPUTS):
            names = ", ".join(sorted(node.output(0).get_names()))
            raise BadValue(f"{path}: an input '{names}' is not known; expected {', '.join(INPUTS)}")
    classes = isinstance(head, OwnHead) and head.kind == "classes"
    own = isinstance(head, VectorHead) and head.pooling == "own"
    wanted = ("logits", "scores") if isinstance(head, OwnHead) else VECTOR_OUTPUTS if own else STATE_OUTPUTS
    rank = 2 if classes or own else 3
    fitting = [
        o
        for o in model.outputs
        if o.get_partial_shape().rank.is_dynamic or len(o.get_partial_shape()) == rank
    ]
    fitting.sort(
        key=lambda o: min((wanted.index(n) for n in o.get_names() if n in wanted), default=len(wanted))
    )
    if not fitting:
        shapes = ", ".join(f"{next(iter(o.get_names()), '')} {o.get_partial_shape()}" for o in model.outputs)
        hint = "; take pooling='own'" if isinstance(head, VectorHead) and not own else ""
        raise BadValue(
            f"{path}: no output with {rank} dimensions, as this kind of model needs ({shapes}){hint}"
        )
    body = library.Model([fitting[0]], model.get_parameters())
    _undo_dynamic_quantisation(body)
    return body


def _undo_dynamic_quantisation(model: Any) -> None:  # noqa: ANN401 - an openvino.Model, which is changed
    op = require("openvino.opset13", extra="neural")
    for product in model.get_ordered_ops():
        parts = _quantised_product(product) if product.get_type_name() == "MatMul" else None
        if parts is None:
            continue
        states, matrix, scaled = parts
        new = op.matmul(states, op.constant(matrix), False, False).output(0)
        for user in scaled.output(0).get_target_inputs():
            user.replace_source_output(new)
    model.validate_nodes_and_infer_types()


def _quantised_product(product: Any) -> tuple[Any, Array, Any] | None:  # noqa: ANN401 - nodes of a graph
    node = product
    for name in ("Subtract", "Convert", "Convert", "Clamp", "Add", "Round"):  # back to where bytes are made
        node = _source(node, 0)
        if node.get_type_name() != name:
            return None
    shifted, users = _source(product, 1), product.output(0).get_target_inputs()
    convert = next(iter(users)).get_node() if len(users) == 1 else None
    if shifted.get_type_name() != "Subtract" or convert is None or convert.get_type_name() != "Convert":
        return None
    users = convert.output(0).get_target_inputs()
    scaled = next(iter(users)).get_node() if len(users) == 1 else None
    if scaled is None or scaled.get_type_name() != "Multiply":
        return None
    scales = next((one for one in _sources(scaled) if one.get_type_name() == "Multiply"), None)
    own = [] if scales is None else [one for one in _sources(scales) if one.get_type_name() == "Constant"]
    matrix, zero = (_source(part, 0) for part in _sources(shifted))
    if len(own) != 1 or not matrix.get_type_name() == zero.get_type_name() == "Constant":
        return None
    largest = _below(scales, "ReduceMax", 6)
    if largest is None:
        return None
    values = matrix.data.astype(np.float32) - zero.data.astype(np.float32)
    return largest.input(0).get_source_output(), values * own[0].data.astype(np.float32), scaled


def _below(node: Any, name: str, depth: int) -> Any:  # noqa: ANN401 - nodes of a graph
    if node.get_type_name() == name or not depth:
        return node if node.get_type_name() == name else None
    parts = (_below(part, name, depth - 1) for part in _sources(node))
    return next((part for part in parts if part is not None), None)


def _source(node: Any, place: int) -> Any:  # noqa: ANN401 - nodes of a graph
    return node.input(place).get_source_output().get_node()


def _sources(node: Any) -> list[Any]:  # noqa: ANN401 - nodes of a graph
    return [port.get_source_output().get_node() for port in node.inputs()]


@dataclass(frozen=True)
class _Operators:
    op: Any

    def constant(self, array: Array) -> Any:  # noqa: ANN401 - a node of the graph
        return self.op.constant(
            np.ascontiguousarray(array, np.float32 if array.dtype.kind == "f" else np.int64)
        )

    def integer_node(self, *numbers: int) -> Any:  # noqa: ANN401 - a node of the graph
        return self.op.constant(np.array(numbers, np.int64))

    def float_node(self, value: float) -> Any:  # noqa: ANN401 - a node of the graph
        return self.op.constant(np.float32(value))

    def linear(self, x: Any, matrix: Array, bias: Array | None = None) -> Any:  # noqa: ANN401 - nodes of the graph
        product = self.op.matmul(x, self.constant(matrix), False, True)
        return product if bias is None else self.op.add(product, self.constant(bias))

    def norm(self, x: Any, weight: Array, bias: Array, eps: float) -> Any:  # noqa: ANN401 - nodes of the graph
        y = self.op.mvn(x, self.integer_node(-1), True, eps, "inside_sqrt")
        return self.op.add(self.op.multiply(y, self.constant(weight)), self.constant(bias))


TERM_BLOCK = 1024
"""Terms of a vocabulary whose logits are computed together, few enough to stay in the processor's cache."""


def _with_head(body: Any, head: AnyHead, states: bool = False) -> Any:  # noqa: ANN401 - an openvino.Model
    library = require("openvino", extra="neural")
    op = require("openvino.opset13", extra="neural")
    ops = _Operators(op)
    x = body.get_results()[0].input_value(0)
    mask = next(node for node in body.get_parameters() if "attention_mask" in node.output(0).get_names())
    seen = op.unsqueeze(op.convert(mask, np.float32), ops.integer_node(2))  # [n, longest, 1]
    if isinstance(head, TermHead):
        x = _transformed(ops, x, head.transform) if states else _term_weights(ops, x, seen, head)
    elif isinstance(head, OwnHead) and head.kind == "terms":
        x = _pooled_logits(ops, x, seen, head)
    elif isinstance(head, ClassHead):
        x = op.squeeze(op.gather(x, ops.integer_node(0), ops.integer_node(1)), ops.integer_node(1))
    elif isinstance(head, VectorHead) and head.pooling != "own":
        x = _pooled(ops, x, seen, head.pooling)
    return library.Model([x], body.get_parameters())


def _term_weights(ops: _Operators, x: Any, seen: Any, head: TermHead) -> Any:  # noqa: ANN401 - nodes of the graph
    op, by_max = ops.op, head.pooling == "max"
    if by_max:  # padding becomes the first token once more: a mask of the logits would cost a pass over them
        first = op.gather(x, ops.integer_node(0), ops.integer_node(1))
        x = op.add(op.multiply(x, seen), op.multiply(first, op.subtract(ops.float_node(1), seen)))
    x, parts = _transformed(ops, x, head.transform), []
    for a in range(0, len(head.weight), TERM_BLOCK):
        weight, bias = head.weight[a : a + TERM_BLOCK], head.bias[a : a + TERM_BLOCK]
        if by_max:
            parts.append(op.reduce_max(ops.linear(x, weight), ops.integer_node(1)))
        else:
            parts.append(_pooled_logits(ops, ops.linear(x, weight, bias), seen, head))
    y = op.concat(parts, 1)
    if by_max:  # the bias of a term is the same at each token, so that it may come after the maximum
        y = op.multiply(op.relu(op.add(y, ops.constant(head.bias))), op.reduce_max(seen, ops.integer_node(1)))
    return y


def _transformed(ops: _Operators, x: Any, step: Transform | None) -> Any:  # noqa: ANN401 - nodes of the graph
    if step is None:
        return x
    y = ops.op.gelu(ops.linear(x, step.weight, step.bias), "tanh" if step.approximate == "tanh" else "erf")
    return ops.norm(y, step.norm, step.norm_bias, step.eps)


def _pooled_logits(ops: _Operators, x: Any, seen: Any, head: TermHead | OwnHead) -> Any:  # noqa: ANN401 - nodes of the graph
    op = ops.op
    x = op.multiply(op.relu(x), seen)
    if head.pooling == "max":
        return op.reduce_max(x, ops.integer_node(1))
    for _ in range(2 if head.activation == "log1p_relu" else 1):
        x = op.log(op.add(x, ops.float_node(1)))
    return op.reduce_sum(x, ops.integer_node(1))


def _pooled(ops: _Operators, x: Any, seen: Any, pooling: str) -> Any:  # noqa: ANN401 - nodes of the graph
    op = ops.op
    count = op.reduce_sum(seen, ops.integer_node(1))  # [n, 1]
    one, zero = ops.float_node(1), ops.float_node(0)
    if pooling == "mean":
        return op.divide(op.reduce_sum(op.multiply(x, seen), ops.integer_node(1)), op.maximum(count, one))
    if pooling == "max":
        low = op.multiply(op.subtract(seen, one), ops.float_node(UNSEEN))
        y = op.reduce_max(op.add(op.multiply(x, seen), low), ops.integer_node(1))
    elif pooling == "cls":
        y = op.squeeze(op.gather(x, ops.integer_node(0), ops.integer_node(1)), ops.integer_node(1))
    else:
        last = op.convert(op.maximum(op.subtract(count, one), zero), np.int64)  # [n, 1]
        y = op.squeeze(op.gather(x, last, ops.integer_node(1), 1), ops.integer_node(1))
    return op.multiply(y, op.minimum(count, one))


def _encoder_graph(weights: Weights, segments: bool) -> Any:  # noqa: ANN401 - an openvino.Model
    library = require("openvino", extra="neural")
    op = require("openvino.opset13", extra="neural")
    ops, embedding, heads = _Operators(op), weights.embedding, weights.heads

    def table(name: str) -> Any:  # noqa: ANN401 - a node of the graph
        parameter = op.parameter([-1, -1], np.int64)
        parameter.set_friendly_name(name)
        parameter.output(0).get_tensor().set_names({name})
        return parameter

    ids, mask = table("input_ids"), table("attention_mask")
    inputs, first, step = [ids, mask], ops.integer_node(0), ops.integer_node(1)
    longest = op.gather(op.shape_of(ids), step, first)
    places = op.slice(ops.constant(embedding.positions[embedding.offset :]), first, longest, step, first)
    x = op.add(op.gather(ops.constant(embedding.words), ids, first), places)
    if segments and embedding.segments is not None:
        inputs.append(table("token_type_ids"))
        x = op.add(x, op.gather(ops.constant(embedding.segments), inputs[-1], first))
    elif embedding.segments is not None:
        x = op.add(x, ops.constant(embedding.segments[0]))
    x = ops.norm(x, embedding.norm, embedding.norm_bias, weights.eps)
    if embedding.project is not None:
        x = ops.linear(x, embedding.project, embedding.project_bias)
    # What is added to the scores of tokens that nothing attends to, [n, 1, 1, longest].
    seen = op.convert(op.unsqueeze(mask, ops.integer_node(1, 2)), np.float32)
    added = op.multiply(op.subtract(seen, ops.float_node(1)), ops.float_node(UNSEEN))
    if weights.relative is not None:
        size = len(embedding.positions) - embedding.offset
        by_distance = ops.constant(distance_bias(weights.relative, size)[None])
        corner = op.concat([longest, longest], 0)
        added = op.add(
            added,
            op.slice(
                by_distance, ops.integer_node(0, 0), corner, ops.integer_node(1, 1), ops.integer_node(2, 3)
            ),
        )
    width = weights.layers[0].out.shape[0] if weights.layers else 0

    def split(x: Any) -> Any:  # noqa: ANN401 - a node of the graph
        return op.transpose(
            op.reshape(x, ops.integer_node(0, 0, heads, width // heads), True), ops.integer_node(0, 2, 1, 3)
        )

    for layer in weights.layers:
        thirds = zip(np.split(layer.qkv, 3), np.split(layer.qkv_bias, 3), strict=True)
        query, key, value = (split(ops.linear(x, matrix, bias)) for matrix, bias in thirds)
        context = op.scaled_dot_product_attention(query, key, value, added)
        context = op.reshape(
            op.transpose(context, ops.integer_node(0, 2, 1, 3)), ops.integer_node(0, 0, width), True
        )
        y = op.add(ops.linear(context, layer.out, layer.out_bias), x)
        x = ops.norm(y, layer.norm1, layer.norm1_bias, weights.eps)
        up = op.gelu(
            ops.linear(x, layer.up, layer.up_bias), "tanh" if weights.approximate == "tanh" else "erf"
        )
        y = op.add(ops.linear(up, layer.down, layer.down_bias), x)
        x = ops.norm(y, layer.norm2, layer.norm2_bias, weights.eps)
    return library.Model([x], inputs)


def _loop_of(model: Any) -> str:  # noqa: ANN401  an openvino.Model
    for node in model.get_ops():
        kind = str(node.get_type_name())
        if kind in ("Loop", "TensorIterator"):
            return kind
        if kind == "If" and (
            inner := next(filter(None, map(_loop_of, map(node.get_function, range(2)))), "")
        ):
            return inner
    return ""


def _quantised(checkpoint: Checkpoint, core: Any, names: tuple[str, ...], body: Any) -> Any:  # noqa: ANN401 - an openvino.Core and its Model
    library, nncf = require("openvino", extra="neural"), require("nncf", extra="torch")
    versions = f"{library.__version__} {nncf.__version__}"
    facts = f"{checkpoint_fingerprint(checkpoint)} graph {GRAPH} {names} {versions} {CALIBRATION_TEXTS}"
    name = hashlib.blake2b(facts.encode("utf-8"), digest_size=16).hexdigest()
    at = settings().home / "openvino" / name
    with suppress(OSError, FormatError, StoreError, RuntimeError):  # not there, or damaged: made again
        verify_files(at, checksums_read(read_json(at / SUMS)))
        return core.read_model(at / "model.xml")
    texts: list[Text] = list(_texts(CALIBRATION_TEXTS))
    if "token_type_ids" in names:  # pairs of a short text and a long one, as models of pairs read
        texts = [(str(text)[:60], str(text)) for text in texts]
    tokens = load_tokenizer(checkpoint.folder, min(checkpoint.limit, 256))(texts)
    order = np.argsort(-tokens.lengths, kind="stable")
    parts = (tokens.take(order[i : i + 4]) for i in range(0, len(order), 4))
    tables = [_padded_tables(part, _fill(checkpoint), names) for part in parts]
    nncf.set_log_level(40)
    with redirect_stdout(StringIO()):  # its bars of progress would stand among Weir's tables
        model = nncf.quantize(
            body,
            nncf.Dataset(tables, lambda item: item),
            model_type=nncf.ModelType.TRANSFORMER,
            subset_size=len(tables),
        )
    with suppress(StoreError), atomic_dir(at) as folder:
        library.save_model(model, folder / "model.xml", compress_to_fp16=False)
        sums = {name: checksum.to_json() for name, checksum in checksums_of(folder).items()}
        (folder / SUMS).write_text(json.dumps(sums), encoding="utf-8", newline="\n")
    return model


def _texts(count: int) -> list[str]:
    texts: list[str] = []
    for folder in sorted((files("weir") / "datasets" / "brook").iterdir(), key=lambda one: one.name):
        lines = (folder / "corpus.jsonl").read_text(encoding="utf-8").rstrip("\n").split("\n")
        documents = (json.loads(line) for line in lines)
        texts += [f"{d.get('title') or ''} {d['text']}".strip() for d in documents]
    return texts[:: max(1, len(texts) // count)][:count]
