"""The processes that encode on several devices, where nobody waits for them any longer."""

from __future__ import annotations

import signal
import subprocess
import sys
from types import SimpleNamespace
from typing import Any, cast

import pytest

from weir.models import Encoder
from weir.models.multi_device import on_several


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_an_interrupt_ends_the_processes_and_waits_for_no_answer(monkeypatch):
    started: list[subprocess.Popen[bytes]] = []
    real = subprocess.Popen

    def silent(_: object, **options: Any) -> subprocess.Popen[bytes]:
        assert options["start_new_session"]  # else the terminal interrupts it too, while it imports
        started.append(real([sys.executable, "-c", "import time; time.sleep(20)"], **options))
        return started[-1]

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess, "Popen", silent)
    before = signal.signal(signal.SIGALRM, interrupted)
    loaded = cast(Any, SimpleNamespace(encoder=Encoder("none")))
    try:
        with on_several(loaded, ["cpu", "cpu"], 1) as encode:
            signal.setitimer(signal.ITIMER_REAL, 0.5)
            with pytest.raises(KeyboardInterrupt):
                encode(["a", "b", "c"])
    finally:
        signal.signal(signal.SIGALRM, before)
    assert [process.returncode for process in started] == [-signal.SIGKILL] * 2
