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
from weir.models.tokens import Text, Tokens, load_tokenizer, quiet
from weir.models.torch_engine import Tensor
from weir.models.transformers_engine import inputs, last_states, load_model
from weir.settings import settings

HINTS = {"fp32": "f32", "bf16": "bf16", "fp16": "f16", "int8": "f32"}
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
    model = _quantised(checkpoint, core, names) if place.dtype == "int8" else _converted(checkpoint, names)
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


def _fill(checkpoint: Checkpoint) -> int:
    return int(checkpoint.config.get("pad_token_id") or 0)


def _converted(checkpoint: Checkpoint, names: tuple[str, ...]) -> Any:  # noqa: ANN401 - an openvino.Model
    torch, library = require("torch", extra="neural"), require("openvino", extra="openvino")
    model = load_model(checkpoint, torch.float32, attention="eager")
    forward = model.forward

    # The traced module returns one table; transformers' own return value is an object.
    def one_table(input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None) -> Tensor:
        tables = {"input_ids": input_ids, "attention_mask": attention_mask}
        tables |= {} if token_type_ids is None else {"token_type_ids": token_type_ids}
        return last_states(forward, tables)

    model.forward = one_table
    example = {name: torch.ones(2, 16, dtype=torch.int64) for name in names}
    with torch.inference_mode(), quiet(require("transformers", extra="neural")):
        converted = library.convert_model(model, example_input=example)
    converted.reshape({name: library.PartialShape([-1, -1]) for name in names})
    return converted


def _quantised(checkpoint: Checkpoint, core: Any, names: tuple[str, ...]) -> Any:  # noqa: ANN401 - an openvino.Core and its Model
    """The model with int8 matrices and int8 between the layers, calibrated on texts that come with Weir."""
    library, nncf = require("openvino", extra="openvino"), require("nncf", extra="openvino")
    facts = f"{fingerprint(checkpoint)} {names} {library.__version__} {nncf.__version__} {CALIBRATION_TEXTS}"
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
        _converted(checkpoint, names),
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
