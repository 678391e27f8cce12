"""Processes of Weir that tests kill in the middle of their work."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable

MOST_SECONDS = 300
"""A slow machine compiles kernels first."""


def killed_when(
    process: subprocess.Popen[bytes] | subprocess.Popen[str], reached: Callable[[], bool]
) -> None:
    """Kill -9 as soon as that is so; a process that ends before, or never gets there, fails the test."""
    until = time.monotonic() + MOST_SECONDS
    while not reached():
        assert process.poll() is None, f"it ended too early, with {process.returncode}"
        assert time.monotonic() < until
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.wait()
