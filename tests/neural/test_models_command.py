"""weir list models NAME: what an encoder comes to, and what was measured of it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from tests.neural.conftest import sentence_transformer
from weir.cli import main


def test_what_decides_the_vectors_is_shown_and_measured(checkpoint_of, tmp_path, capsys):
    folder = Path(shutil.copytree(checkpoint_of("bert"), tmp_path / "bert"))
    sentence_transformer(folder, pooling="cls", prompts={"query": "ask: "})
    assert main(["list", "models", str(folder), "--device", "cpu"]) == 0
    shown = capsys.readouterr().out
    assert "ask: {text}" in shown
    assert "cls" in shown
    assert "the fastest on a processor" in shown
    assert main(["list", "models", str(folder), "--device", "cpu", "--probe", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["engine"].startswith("openvino cpu fp32, tokenizers ")
    assert facts["documents_per_second"]["as declared"] > 0
    assert facts["documents_per_second"]["torch"] > 0
    assert facts["documents_per_second"]["transformers"] > 0
    assert "within" in facts["stability"]
