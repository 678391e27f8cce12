"""The processes that encode on several devices, where nobody waits for them any longer."""

from __future__ import annotations

import subprocess
import sys

import pytest

INTERRUPTED = """
import signal, subprocess, sys
from types import SimpleNamespace
from weir.models import Encoder
from weir.models.multi_device import on_several

started, real = [], subprocess.Popen

def silent(_, **options):
    assert options["start_new_session"]  # else the terminal interrupts it too, while it imports
    started.append(real([sys.executable, "-c", "import time; time.sleep(600)"], **options))
    return started[-1]

subprocess.Popen = silent
signal.signal(signal.SIGALRM, signal.default_int_handler)
try:
    with on_several(SimpleNamespace(encoder=Encoder("none")), ["cpu", "cpu"], 1) as encode:
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        encode(["a", "b", "c"])
except KeyboardInterrupt:
    print(*(process.returncode for process in started))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_an_interrupt_ends_the_processes_and_waits_for_no_answer():
    ended = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=300, check=False
    )
    assert ended.stdout.split() == ["-9", "-9"], ended.stderr
