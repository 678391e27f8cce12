"""Documents encoded on several devices, a process for each: here the processor, twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs torch: pip install 'weir-ir[neural]'")

from tests.unit.brooklet import write_collection
from weir.errors import BadValue
from weir.models import Encoder
from weir.models.multi_device import devices, on_several


@pytest.fixture
def loaded(checkpoint_of):
    return Encoder(str(checkpoint_of("bert")), pooling="mean", engine="torch").load("cpu,cpu")


def test_vectors_are_those_of_one_device_in_the_order_of_the_texts(loaded, words):
    texts = words * 3
    with on_several(loaded, ["cpu", "cpu", "cpu"], 10) as encode:
        found = encode(texts)
        assert np.array_equal(found, loaded.encode(texts))
        assert encode(texts[:1]).shape == (1, 48)


def test_a_process_that_ends_is_named_in_one_line(loaded, words, monkeypatch):
    started = []
    real = subprocess.Popen

    def noted(*args, **kwargs):
        started.append(real(*args, **kwargs))
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", noted)
    with on_several(loaded, ["cpu", "cpu"], 10) as encode:
        os.kill(started[1].pid, signal.SIGKILL)
        started[1].wait()
        with pytest.raises(BadValue, match=r"process that encodes on cpu ended with code -9"):
            encode(words)
    assert all(p.poll() is not None for p in started)  # none is left behind


def test_what_goes_wrong_there_is_said_here(checkpoint_of, words):
    loaded = Encoder(str(checkpoint_of("bert")), pooling="mean", engine="torch").load("cpu")
    with (
        on_several(loaded, ["cpu", "cuda:77"], 10) as encode,
        pytest.raises(BadValue, match=r"cuda:77.*not find"),
    ):
        encode(words * 10)


def test_a_setting_names_several_devices():
    assert devices("cuda:0, cuda:1") == ["cuda:0", "cuda:1"]
    assert devices("auto") == ["auto"]
    with pytest.raises(BadValue, match="such as cuda:0,cuda:1"):
        devices("cpu,")


def test_weir_run_on_two_devices_equals_one(checkpoint_of, tmp_path):
    collection = write_collection(tmp_path / "brooklet")
    system = f'dense("{checkpoint_of("bert")}", pooling="mean", engine="torch")'
    outputs = []
    for setting in ("cpu", "cpu,cpu"):
        command = [sys.executable, "-m", "weir", "run", "-d", str(collection), "-s", system, "--json", "-q"]
        command += ["-m", "nDCG@10", "-o", str(tmp_path / setting), "--device", setting]
        env = os.environ | {"WEIR_HOME": str(tmp_path / f"home-{setting}")}
        outputs.append(subprocess.run(command, check=True, capture_output=True, env=env).stdout)
    assert outputs[0] == outputs[1]
