"""A program that answers lines with lines: started, watched, ended."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO

from weir.errors import BadValue
from weir.settings import KEY_VARIABLE

__all__ = ["Program", "TimedOutError"]

TAIL_LINES, TAIL_CHARACTERS = 20, 400
"""Of what a program said on its standard error: lines that are kept, characters that a message shows."""
WATCH_SECONDS = 0.05
PIPE_BYTES = 1 << 12
"""What a pipe takes at once however little the program has read, on every system."""


class TimedOutError(Exception):
    """The program said nothing in time, and was ended."""


@dataclass(eq=False)
class Program:
    """A process with pipes.

    A thread of its own reads its standard error; another ends it when it says nothing for too long.
    """

    process: subprocess.Popen[bytes]
    silence: float
    tail: deque[str] = field(default_factory=lambda: deque(maxlen=TAIL_LINES))
    timed_out: bool = False
    _awaited: float = 0.0  # since when something is awaited, 0 for nothing
    _listening: threading.Thread = field(init=False)

    @staticmethod
    def started(arguments: Sequence[str], silence: float) -> Program:
        """Start a program, without a shell and without the keys of services.

        silence: seconds without a line, where one is awaited, after which it is ended. Raises BadValue where there is
        no program of that name.
        """
        try:
            process = subprocess.Popen(
                list(arguments),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={
                    name: value for name, value in os.environ.items() if not re.fullmatch(KEY_VARIABLE, name)
                },
                start_new_session=True,  # so that what it starts ends with it, and an interrupt is ours to handle
            )
        except OSError as error:
            raise BadValue(f"cannot start '{arguments[0]}': {error.strerror or error}") from None
        return Program(process, silence)

    def __post_init__(self) -> None:
        assert self.process.stderr is not None
        self._listening = threading.Thread(target=self._listen, args=(self.process.stderr,), daemon=True)
        self._listening.start()
        threading.Thread(target=self._watch, daemon=True).start()

    def write(self, data: bytes) -> None:
        """Hand over some lines; a program that does not read them is not waited for."""
        pipe = self.process.stdin
        assert pipe is not None
        self._awaited = time.monotonic()
        if len(data) <= PIPE_BYTES:
            _put(pipe, data)
        else:
            threading.Thread(target=_put, args=(pipe, data), daemon=True).start()

    def line(self, most: int) -> bytes:
        """The next line, b"" where it has ended; one of more than `most` bytes comes without its end.

        Raises TimedOutError.
        """
        assert self.process.stdout is not None
        self._awaited = time.monotonic()
        try:
            found = self.process.stdout.readline(most + 1)
        except ValueError:  # closed: it was ended
            found = b""
        if not found and self.timed_out:
            raise TimedOutError
        return found

    def idle(self) -> None:
        """Nothing is awaited."""
        self._awaited = 0.0

    def end(self, patience: float = 0.0) -> None:
        """End it and what it started; patience: seconds in which it may end by itself, where nothing is awaited."""
        if not self._awaited and self.process.stdin is not None:
            with suppress(OSError):
                self.process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(patience)
        with suppress(OSError):
            if sys.platform == "win32":
                self.process.kill()
            else:
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._listening.join(1.0)
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()

    @property
    def ending(self) -> str:
        """How it ended."""
        code = self.process.returncode
        return f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"

    def last_words(self) -> str:
        """The last that it said on its standard error, in one line, to stand behind a message."""
        said = " ".join(" ".join(self.tail).split())
        return f"; on standard error: {said[-TAIL_CHARACTERS:]}" if said else "; nothing on standard error"

    def _listen(self, errors: IO[bytes]) -> None:
        with errors, suppress(OSError, ValueError):
            while line := errors.readline(1 << 12):
                self.tail.append(line.decode("utf-8", "replace"))

    def _watch(self) -> None:
        while self.process.poll() is None:
            time.sleep(WATCH_SECONDS)
            since = self._awaited
            if since and time.monotonic() - since > self.silence:
                self.timed_out = True
                self.end()


def _put(pipe: IO[bytes], data: bytes) -> None:
    with suppress(OSError, ValueError):  # it has ended, which its next line says
        pipe.write(data)
        pipe.flush()
