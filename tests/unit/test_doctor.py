from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np

import weir
from weir.cli.main import main
from weir.errors import install_command


def test_it_says_what_is_here_and_what_to_install_for_more(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("WEIR_KEY_SECRET", "sk-1234")
    monkeypatch.setenv("WEIR_MIRROR", "https://me:sk-1234@mirror.org/")
    assert main(["doctor", "--json"]) == 0
    out = capsys.readouterr().out
    facts = json.loads(out)
    assert "sk-1234" not in out
    assert facts["settings"]["WEIR_KEY_SECRET"] == "set"
    assert facts["settings"]["WEIR_MIRROR"] == "https://***@mirror.org/"
    assert facts["extras"]["run"]["installed"]["numba"]
    assert facts["extras"]["run"]["missing"] == []
    assert facts["extras"]["torch"]["install"] == install_command("torch")
    assert isinstance(facts["machine"]["compiled for"], list)
    assert facts["bounds"]["a packed file"] == "200 times its size, at least 134 MB (WEIR_MAX_UNPACKED)"
    assert facts["engines"]["models in fp32"].startswith("openvino cpu fp32")
    assert main(["doctor"]) == 0
    text = capsys.readouterr().out
    assert "sk-1234" not in text
    assert f"numba {facts['extras']['run']['installed']['numba']}" in text


def test_caches_have_sizes(tmp_path):
    (tmp_path / "vectors" / "one").mkdir(parents=True)
    np.save(tmp_path / "vectors" / "one" / "a.npy", np.zeros(250_000))
    code = "from weir.cli.main import main; main(['doctor', '--json']); import sys; assert 'torch' not in sys.modules"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"WEIR_HOME": str(tmp_path)},
    )
    caches = json.loads(done.stdout)["caches"]
    assert caches["home"] == str(tmp_path)
    assert caches["vectors"] == "2.0 MB"


def test_without_numba_it_says_so():
    code = (
        "import sys; sys.modules['numba'] = None; from weir.cli.main import main; sys.exit(main(['doctor']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "numba is not installed" in done.stdout
    assert weir.__name__ in done.stdout
