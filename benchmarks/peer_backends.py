"""sentence-transformers' models with each of its backends and precisions, on one thread, for what encodes and re-ranks.

Its own functions export and quantise: ONNX with dynamic int8 for AVX512 VNNI, OpenVINO with static int8 calibrated on
texts of the collection that is measured.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

PEER = "sentence-transformers"
BACKENDS = {
    f"{PEER} torch fp32": ("torch", "fp32"),
    f"{PEER} onnx fp32": ("onnx", "fp32"),
    f"{PEER} openvino fp32": ("openvino", "fp32"),
    f"{PEER} torch bf16": ("torch", "bf16"),
    f"{PEER} openvino bf16": ("openvino", "bf16"),
    f"{PEER} onnx int8": ("onnx", "int8"),
    f"{PEER} openvino int8": ("openvino", "int8"),
}
"""Rows of a benchmark: (backend, precision)."""
CALIBRATION_TEXTS = 64
"""As many as Weir takes."""


def best_peer(records: dict[str, dict[str, Any]], name: str, rate: str) -> str | None:
    """The fastest row of sentence-transformers in the precision that an engine's name ends with; None without one."""
    precision = name.rsplit(" ", 1)[-1]
    peers = [one for one, (_, own) in BACKENDS.items() if own == precision and rate in records.get(one, {})]
    return max(peers, key=lambda one: records[one][rate], default=None)


def peer_model(
    kind: Callable[..., Any], folder: Path, name: str, texts: Iterable[str], options: dict[str, Any]
) -> Any:
    """A model of sentence-transformers (`kind`: its class) over a checkpoint with the backend of a row of BACKENDS.

    texts: what static int8 is calibrated on; options: further arguments of the class. Graphs are exported into a
    temporary copy of the folder.
    """
    import torch

    torch.set_num_threads(1)
    backend, precision = BACKENDS[name]
    if backend == "torch":
        model = kind(str(folder), device="cpu", **options)
        return model.to(torch.bfloat16) if precision == "bf16" else model
    copy = Path(tempfile.mkdtemp(prefix="peer-")) / "model"
    shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("onnx", "openvino"))
    if backend == "onnx":
        import onnxruntime
        from sentence_transformers import export_dynamic_quantized_onnx_model

        session = onnxruntime.SessionOptions()
        session.intra_op_num_threads = session.inter_op_num_threads = 1
        facts: dict[str, Any] = {"provider": "CPUExecutionProvider", "session_options": session}
        model = kind(
            str(copy), device="cpu", backend="onnx", model_kwargs=facts | {"export": True}, **options
        )
        if precision == "fp32":
            return model
        model.save_pretrained(str(copy))
        export_dynamic_quantized_onnx_model(model, "avx512_vnni", str(copy))
        file = next(copy.rglob("*qint8*.onnx")).name
        return kind(
            str(copy), device="cpu", backend="onnx", model_kwargs=facts | {"file_name": file}, **options
        )
    from sentence_transformers import export_static_quantized_openvino_model

    hint = "bf16" if precision == "bf16" else "f32"
    facts = {
        "ov_config": {
            "INFERENCE_PRECISION_HINT": hint,
            "INFERENCE_NUM_THREADS": 1,
            "NUM_STREAMS": "1",
            "ENABLE_CPU_PINNING": False,
        }
    }
    model = kind(
        str(copy), device="cpu", backend="openvino", model_kwargs=facts | {"export": True}, **options
    )
    if precision != "int8":
        return model
    from optimum.intel.openvino import OVQuantizationConfig

    model.save_pretrained(str(copy))
    calibration = copy.parent / "texts"
    calibration.mkdir()
    lines = [json.dumps({"text": text}) for _, text in zip(range(CALIBRATION_TEXTS), texts, strict=False)]
    (calibration / "train.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    rules = OVQuantizationConfig(num_samples=len(lines))
    export_static_quantized_openvino_model(
        model, rules, str(copy), str(calibration), "default", "train", "text"
    )
    file = next(copy.rglob("*qint8*.xml")).name
    return kind(
        str(copy), device="cpu", backend="openvino", model_kwargs=facts | {"file_name": file}, **options
    )
