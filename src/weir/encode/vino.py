"""OpenVINO as an engine: Intel's compiler for inference on processors, in fp32, bf16 or static int8."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from weir.datasets import catalogue
from weir.encode.checkpoint import Checkpoint
from weir.encode.reference import inputs, load_model, quiet
from weir.encode.tokens import Tokens, load_tokenizer
from weir.encode.weights import Tensor
from weir.errors import BadValue, StoreError, require
from weir.io.atomic import atomic_dir
from weir.settings import settings

__all__ = ["Vino", "openvino_engine"]

HINTS = {"fp32": "f32", "bf16": "bf16", "fp16": "f16", "int8": "f32"}
CALIBRATION = 64
"""Texts from which static int8 takes the ranges of what flows between layers."""


@dataclass(frozen=True, eq=False)
class Vino:
    """An engine around a compiled model; padded tables in, padded tables out."""

    request: Any
    dtype: str
    fill: int
    padded: bool = True

    @property
    def name(self) -> str:
        """What the engine is called in manifests."""
        return "openvino"

    def describe(self) -> dict[str, object]:
        """What can move a number."""
        found: dict[str, object] = {
            "engine": self.name,
            "computes in": self.dtype,
            "openvino": str(require("openvino", extra="openvino").__version__),
        }
        if self.dtype == "int8":
            found["nncf"] = str(require("nncf", extra="openvino").__version__)
            found["calibrated on"] = f"{CALIBRATION} texts of brook"
        return found

    def hidden(self, batch: Tokens) -> Tensor:
        """The last hidden states [T, H] of the tokens of a batch."""
        torch = require("torch", extra="neural")
        tables = inputs(batch, self.fill, segments=False)
        found = self.request.infer([tables["input_ids"], tables["attention_mask"]], share_inputs=True)
        states = np.asarray(found[0], np.float32)
        return torch.from_numpy(states[tables["attention_mask"].astype(bool)])


def openvino_engine(checkpoint: Checkpoint, device: str, dtype: str) -> Vino:
    """The engine, compiled for this processor; static int8 is made once and kept in Weir's home.

    Raises BadValue for another device than cpu, MissingExtra where openvino (or nncf, for int8) is missing.
    """
    if device != "cpu":
        raise BadValue(f"the engine 'openvino' runs on cpu here, not on {device}")
    library = require("openvino", extra="openvino")
    core = library.Core()
    model = _quantised(checkpoint, core) if dtype == "int8" else _converted(checkpoint)
    facts = {
        "INFERENCE_PRECISION_HINT": HINTS[dtype],
        "INFERENCE_NUM_THREADS": settings().threads,
        "NUM_STREAMS": "1",
        "ENABLE_CPU_PINNING": False,
    }
    request = core.compile_model(model, "CPU", facts).create_infer_request()
    return Vino(request, dtype, int(checkpoint.config.get("pad_token_id") or 0))


def _converted(checkpoint: Checkpoint) -> Any:  # noqa: ANN401 - an openvino.Model
    torch, library = require("torch", extra="neural"), require("openvino", extra="openvino")
    model = load_model(checkpoint, torch.float32, attn_implementation="eager")
    forward = model.forward
    # The traced module returns one table; transformers' own return value is an object.
    model.forward = lambda input_ids, attention_mask: (
        forward(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
    )
    example = {
        "input_ids": torch.ones(2, 16, dtype=torch.int64),
        "attention_mask": torch.ones(2, 16, dtype=torch.int64),
    }
    with torch.inference_mode(), quiet(require("transformers", extra="neural")):
        converted = library.convert_model(model, example_input=example)
    converted.reshape({name: library.PartialShape([-1, -1]) for name in example})
    return converted


def _quantised(checkpoint: Checkpoint, core: Any) -> Any:  # noqa: ANN401 - an openvino.Core and its Model
    """The model with int8 matrices and int8 between the layers, calibrated on texts that come with Weir."""
    library, nncf = require("openvino", extra="openvino"), require("nncf", extra="openvino")
    facts = f"{checkpoint.revision()} {library.__version__} {nncf.__version__} {CALIBRATION}"
    name = hashlib.blake2b(facts.encode("utf-8"), digest_size=8).hexdigest()
    at = settings().home / "openvino" / name
    if (at / "model.xml").exists():
        with suppress(RuntimeError):  # damaged: made again
            return core.read_model(at / "model.xml")
    tokens = load_tokenizer(checkpoint.folder, min(checkpoint.limit, 256))(_texts(CALIBRATION))
    fill = int(checkpoint.config.get("pad_token_id") or 0)
    order = np.argsort(-tokens.lengths, kind="stable")
    tables = [inputs(tokens.take(order[i : i + 4]), fill, segments=False) for i in range(0, len(order), 4)]
    nncf.set_log_level(40)
    model = nncf.quantize(
        _converted(checkpoint),
        nncf.Dataset(tables, lambda item: item),
        model_type=nncf.ModelType.TRANSFORMER,
        subset_size=len(tables),
    )
    with suppress(StoreError), atomic_dir(at) as folder:
        library.save_model(model, Path(folder) / "model.xml", compress_to_fp16=False)
    return model


def _texts(count: int) -> list[str]:
    """Texts of many kinds, the same everywhere: evenly from the collections that come with Weir."""
    found: list[str] = []
    for entry in catalogue.entries():
        if entry.embedded:
            lines = (entry.path / "corpus.jsonl").read_text(encoding="utf-8").rstrip("\n").split("\n")
            documents = (json.loads(line) for line in lines)
            found += [f"{d.get('title') or ''} {d['text']}".strip() for d in documents]
    return found[:: max(1, len(found) // count)][:count]
