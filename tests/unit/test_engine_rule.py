"""Which engine encodes: a rule over what is installed, the device and the instruction set."""

from __future__ import annotations

import pytest

from weir.errors import BadValue
from weir.models import engine as module
from weir.models import hardware
from weir.models.checkpoints import Checkpoint
from weir.models.engine import check_engine, declare
from weir.models.hardware import declared_device

ALL = {
    "torch": "2",
    "safetensors": "0",
    "tokenizers": "0.23",
    "transformers": "5",
    "openvino": "2026",
    "nncf": "3",
}


def checkpoint(tmp_path, kind="bert"):
    return Checkpoint(tmp_path, tmp_path, {"model_type": kind}, 512, 512)


@pytest.fixture
def machine(monkeypatch):
    """A function: pretend that these packages are installed and that the processor has these instructions."""

    def pretend(installed=ALL, units=("bf16", "int8")):
        monkeypatch.setattr(module, "package_version", lambda name: dict(installed).get(name))
        monkeypatch.setattr(module, "instructions", lambda: frozenset(units))

    pretend()
    return pretend


@pytest.mark.parametrize(
    ("engine", "dtype", "kind", "units", "label"),
    [
        ("auto", "fp32", "bert", ("bf16", "int8"), "openvino cpu fp32, tokenizers 0.23"),
        ("auto", "bf16", "bert", ("bf16",), "openvino cpu bf16, tokenizers 0.23"),
        ("auto", "bf16", "bert", (), "openvino cpu fp32, tokenizers 0.23"),
        ("auto", "fp16", "bert", ("bf16",), "openvino cpu fp32, tokenizers 0.23"),
        ("auto", "int8", "bert", ("int8",), "openvino cpu int8, tokenizers 0.23, openvino 2026, nncf 3"),
        ("auto", "int8", "bert", ("bf16",), "openvino cpu bf16, tokenizers 0.23"),
        ("auto", "fp32", "albert", ("int8",), "transformers cpu fp32, tokenizers 0.23"),
        ("auto", "int8", "albert", ("int8",), "transformers cpu fp32, tokenizers 0.23"),
        ("torch", "bf16", "bert", (), "torch cpu bf16, tokenizers 0.23"),
        ("openvino", "fp32", "bert", (), "openvino cpu fp32, tokenizers 0.23"),
    ],
)
def test_the_rule_on_a_processor(tmp_path, machine, engine, dtype, kind, units, label):
    machine(units=units)
    found = declare(checkpoint(tmp_path, kind), engine, dtype, "cpu")
    assert found.label == label
    assert found.why


def test_the_rule_on_a_gpu(tmp_path, machine):
    assert declare(checkpoint(tmp_path), "auto", "bf16", "cuda:1").label == "torch cuda bf16, tokenizers 0.23"
    found = declare(checkpoint(tmp_path, "albert"), "auto", "fp16", "cuda")
    assert (found.label, found.place.device) == ("transformers cuda fp16, tokenizers 0.23", "cuda")
    for engine, dtype in (("auto", "int8"), ("openvino", "fp32")):
        with pytest.raises(BadValue, match="are for the processor"):
            declare(checkpoint(tmp_path), engine, dtype, "cuda")


def test_without_what_it_needs_there_is_no_label_and_int8_falls_to_more(tmp_path, machine):
    for name in ("safetensors", "tokenizers"):
        machine({k: v for k, v in ALL.items() if k != name})
        assert declare(checkpoint(tmp_path), "auto", "fp32", "cpu").label is None
    for installed, engine, label in (
        ({"torch", "openvino"}, "openvino", None),  # neither: the light one is what to install
        ({"openvino"}, "torch", "torch cpu fp32, tokenizers 0.23"),
        ({"torch", "transformers"}, "openvino", "openvino cpu fp32, tokenizers 0.23"),
    ):
        machine({k: v for k, v in ALL.items() if k not in installed})
        found = declare(checkpoint(tmp_path), "auto", "fp32", "cpu")
        assert (found.engine, found.label) == (engine, label)
    machine({k: v for k, v in ALL.items() if k != "nncf"})
    found = declare(checkpoint(tmp_path), "auto", "int8", "cpu")
    assert (found.engine, found.place.dtype, found.why) == (
        "openvino",
        "bf16",
        "nncf is not installed; the fastest on a processor",
    )
    assert declare(checkpoint(tmp_path), "openvino", "int8", "cpu").label is None


def test_settings_that_do_not_go_together():
    check_engine("openvino", "int8")
    for engine, dtype, said in [
        ("torch", "int8", "does not compute in int8; take 'openvino'"),
        ("onnx", "fp32", "expected auto, openvino, torch, transformers"),
        ("auto", "fp8", "expected fp32, bf16, fp16, int8"),
    ]:
        with pytest.raises(BadValue, match=said):
            check_engine(engine, dtype)


@pytest.mark.parametrize(
    ("driver", "visible", "build", "device"),
    [
        (True, None, "cuda: Optional[str] = '12.8'", "cuda"),
        (True, "1,0", "cuda = '12.8'", "cuda"),
        (True, "", "cuda: Optional[str] = '12.8'", "cpu"),
        (True, "-1", "cuda: Optional[str] = '12.8'", "cpu"),
        (True, None, "cuda: Optional[str] = None", "cpu"),
        (False, None, "cuda: Optional[str] = '12.8'", "cpu"),
    ],
)
def test_a_gpu_is_told_from_files(tmp_path, monkeypatch, driver, visible, build, device):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("raise AssertionError('torch was imported')")
    (tmp_path / "torch" / "version.py").write_text(f"__version__ = '2.13.0'\ndebug = False\n{build}\n")
    monkeypatch.setattr(hardware, "DRIVERS", (tmp_path if driver else tmp_path / "nothing",))
    monkeypatch.setattr(
        hardware, "find_spec", lambda _: type("Spec", (), {"origin": str(tmp_path / "torch/x")})()
    )
    if visible is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert declared_device("auto") == device
    assert declared_device("cuda:1, cpu") == "cuda:1"
    with pytest.raises(BadValue, match="expected auto, cpu, cuda"):
        declared_device("tpu")
