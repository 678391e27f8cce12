"""Processes of Weir that are killed in the middle of their work, at a moment of that work and not of the clock.

The process kills itself before its nth change of a folder or its nth call of a function (`struck`), or the server that it
asks answers so many requests and holds the next ones until the process is dead (`killed_unanswered`).
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.unit.model_servers import Manners

MOST_SECONDS = 300
"""A slow machine compiles kernels first."""


def until(reached: Callable[[], bool], process: subprocess.Popen | None = None) -> None:
    """Wait until that is so; a process that ends before, or a wait without end, fails the test."""
    end = time.monotonic() + MOST_SECONDS
    while not reached():
        assert process is None or process.poll() is None, f"it ended too early, with {process.returncode}"
        assert time.monotonic() < end, f"not so after {MOST_SECONDS} s"
        time.sleep(0.002)


def killed_when(process: subprocess.Popen, reached: Callable[[], bool]) -> None:
    """Kill -9 as soon as that is so; a process that ends before, or never gets there, fails the test."""
    try:
        until(reached, process)
    finally:
        process.kill()
        process.wait()


def killed_unanswered(command: Sequence[str], manners: Manners, answers: int, at_once: int) -> None:
    """Run a command whose server of models gives so many answers, and kill -9 it while it waits for the next ones.

    at_once: how many requests the command sends at once; the server gets `answers + at_once` of them, no more.
    """
    from tests.unit.model_servers import hang

    manners.asked.clear()
    manners.faults = [None] * answers + [hang] * at_once
    process = subprocess.Popen(command, env=os.environ, stdout=subprocess.DEVNULL)
    killed_when(process, lambda: len(manners.asked) >= answers + at_once)


# sys.addaudithook tells of each change before it is made, whichever module makes it.
STRUCK = """
import importlib, os, runpy, signal, sys
number, at, kind, program, *arguments = sys.argv[1:]
left = int(number)
def count():
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
def audit(event, given):
    if event == "open":
        changes = isinstance(given[2], int) and given[2] & (os.O_WRONLY | os.O_RDWR)
    else:
        changes = event in ("os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.truncate")
    if changes and str(given[0]).startswith(at):
        count()
if ":" in at:
    module, _, names = at.partition(":")
    *owners, name = names.split(".")
    owner = importlib.import_module(module)
    for one in owners:
        owner = getattr(owner, one)
    whole = getattr(owner, name)
    setattr(owner, name, lambda *given, **named: (count(), whole(*given, **named))[1])
else:
    sys.addaudithook(audit)
sys.argv = [program, *arguments]
if kind == "-m":
    runpy.run_module(program, run_name="__main__", alter_sys=True)
else:
    exec(program, {"__name__": "__main__"})
"""


ANSWER_KEPT = "weir.services.answers:AnswerStore.add"
"""The function that keeps each answer of a service."""


def struck(command: Sequence[str], at: Path | str, number: int) -> list[str]:
    """The command, `python ... -m` or `-c`, whose process kills itself before the nth of something.

    at: a folder, for its changes of names and files opened to write; or a function, `module:name`, for its calls.
    """
    program = next(n for n, word in enumerate(command) if word in ("-m", "-c"))
    return [*command[:program], "-c", STRUCK, str(number), str(at), *command[program:]]


def killed_later_each_time(
    args: Sequence[str], at: Path, **how: object
) -> Iterator[subprocess.CompletedProcess]:
    """Run a command again and again, killed before its 1st, 2nd, 4th ... change of a folder, until it ends by itself.

    Yields every process that has ended, the last one alone not by a kill; there are four kills at least.
    """
    for kills in count():
        done = subprocess.run(struck(args, at, 1 << kills), capture_output=True, check=False, **how)
        yield done
        if done.returncode != -signal.SIGKILL:
            assert kills > 3
            assert done.returncode == 0, done.stderr
            return
