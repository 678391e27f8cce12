"""Use a program in any language as a system, by JSON lines on its pipes."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import IO, Any

from weir.argument_types import checked, named_arguments
from weir.core.corpus import Corpus
from weir.errors import BadValue
from weir.registry import changed_settings, check_whole, declared_version
from weir.services.answers import Outcome, Request, RequestPolicy, Retried
from weir.services.requests import AttemptError, parsed_answer
from weir.settings import KEY_VARIABLE
from weir.systems.compose import system_text, then
from weir.systems.composite import check_unknown, described_unknown, open_anew
from weir.systems.protocol import IN_MEMORY, SYSTEMS, Context, called, no_parts
from weir.systems.remote.remote_searcher import (
    SHOWN_CHARACTERS,
    RemoteSearcher,
    RemoteService,
    brief,
    check_on_failure,
    kept_ranking,
)

# ----------
# The process.


TAIL_LINES, TAIL_CHARACTERS = 20, 400
"""Lines of a program's standard error that are kept, and characters that a message shows."""
WATCH_SECONDS = 0.05
PIPE_BYTES = 1 << 12
"""Bytes that a pipe accepts at once on every operating system, read or not."""


class _TimedOutError(Exception):
    """A program was silent too long and was ended."""


@dataclass(eq=False)
class _Program:
    process: subprocess.Popen[bytes]
    silence: float
    tail: deque[str] = field(default_factory=lambda: deque(maxlen=TAIL_LINES))
    timed_out: bool = False
    _awaited: float = 0.0  # since when something is awaited, 0 for nothing
    _listening: threading.Thread = field(init=False)

    @staticmethod
    def started(arguments: Sequence[str], silence: float) -> _Program:
        """Start a program without shell and API keys; raises BadValue if it cannot start.

        silence: seconds to wait for a line.
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
        return _Program(process, silence)

    def __post_init__(self) -> None:
        assert self.process.stderr is not None
        self._listening = threading.Thread(target=self._listen, args=(self.process.stderr,), daemon=True)
        self._listening.start()
        threading.Thread(target=self._watch, daemon=True).start()

    def send(self, data: bytes) -> None:
        pipe = self.process.stdin
        assert pipe is not None
        self._awaited = time.monotonic()
        if len(data) <= PIPE_BYTES:
            _put(pipe, data)
        else:
            threading.Thread(target=_put, args=(pipe, data), daemon=True).start()

    def read_line(self) -> bytes:
        """Return the next line, cut at LINE_BYTES + 1 bytes; b"" at the end. Raises _TimedOutError after too
        long a silence."""
        assert self.process.stdout is not None
        self._awaited = time.monotonic()
        try:
            data = self.process.stdout.readline(LINE_BYTES + 1)
        except ValueError:  # closed: it was ended
            data = b""
        if not data and self.timed_out:
            raise _TimedOutError
        return data

    def idle(self) -> None:
        self._awaited = 0.0

    def end(self, patience: float = 0.0) -> None:
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
        code = self.process.returncode
        return f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"

    def last_words(self) -> str:
        """Return the end of a message on the program's last lines on standard error."""
        text = " ".join(" ".join(self.tail).split())
        return f"; on standard error: {text[-TAIL_CHARACTERS:]}" if text else "; nothing on standard error"

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


# ----------
# The system. The program reads {"id": "q1", "text": "a dam", "k": 100} and writes {"id": "q1", "results":
# [{"id": "d1", "score": 2.5}, ...]}, one line each, in any order. Results without scores are in rank order. Where it
# cannot answer, it writes {"id": "q1", "error": "why"}.


ATTEMPTS = 3
"""Attempts before a query counts as unanswered."""
LINE_BYTES = 1 << 24
"""Most bytes of an answer."""
RESULTS_TIMES = 10
"""Most results of an answer, as a multiple of k; only the best k count."""
READ_BYTES = 1 << 24
"""Largest program whose content is part of the key; for a larger one its size is."""


@SYSTEMS.register("command")
@named_arguments
@dataclass(frozen=True)
class Command:
    """Search by a program, in any language, that answers JSON lines with JSON lines; raises BadValue for bad
    settings."""

    command: str
    """Split like a shell does, but run without one; {dataset} in it is replaced by the collection's name. The
    contents of the program and of the first file among its arguments are part of the key.
    """
    version: str | None = None
    """Identifies the searched data in keys. With a version answers are stored and never requested twice; without one
    no other process reads them.
    """
    batch: int = 16
    """Queries sent together."""
    timeout_s: float = 60.0
    """Seconds without an answer until the program is restarted."""
    workers: int = 1
    """Parallel processes."""
    on_failure: str = "refuse"
    """"refuse" to score if a query has no answer after three attempts, or count it as "missing"."""
    unknown: str = "refuse"
    """"refuse" documents outside the collection, or "drop" them with a warning."""

    __repr__ = system_text
    __rshift__ = then

    def __post_init__(self) -> None:
        if not isinstance(self.command, str) or not self.arguments:
            raise BadValue(f"command: the command is {self.command!r}; expected such as 'node search.mjs'")
        declared_version(self.version)
        check_on_failure("command", self.on_failure)
        check_unknown("command", self.unknown)
        for name in ("batch", "workers"):
            check_whole(f"command: {name}", getattr(self, name), 1, 1024)
        if not isinstance(self.timeout_s, (int, float)) or not 0 < self.timeout_s < math.inf:
            raise BadValue(f"command: timeout_s is {self.timeout_s!r}; expected seconds above 0")

    def __str__(self) -> str:
        return called("command", [self.command], changed_settings(self, ("command",)))

    @property
    def arguments(self) -> list[str]:
        """The program and its arguments; raises BadValue for unbalanced quotes."""
        words = shlex.shlex(self.command, posix=True)
        words.whitespace_split, words.commenters = True, ""
        if os.name != "posix":
            words.escape = ""  # in Windows' paths a backslash is itself
        try:
            return list(words)
        except ValueError as error:
            raise BadValue(f"command: '{self.command}' cannot be split: {error}") from None

    @property
    def service(self) -> str:
        return self.command

    def describe(self) -> dict[str, object]:
        return {**self._about(), "on_failure": self.on_failure, **described_unknown(self.unknown)}

    def adapted_to(self, collection: str, instruction: str) -> Command:
        return replace(self, command=self.command.replace("{dataset}", shlex.quote(collection)))

    def keeps_documents(self) -> bool:
        return True

    @checked
    def index(self, corpus: Corpus, context: Context = IN_MEMORY) -> RemoteSearcher:
        policy = RequestPolicy(self.workers, self.batch, failures=20)
        opened = partial(_ProgramAsker, self)
        service = RemoteService(
            str(self), self._about(), opened, policy, self.on_failure, unknown=self.unknown
        )
        return RemoteSearcher(service, corpus)

    components = no_parts
    open = open_anew

    def _about(self) -> dict[str, object]:
        first, *others = self.arguments
        script = next((name for name in others if Path(name).is_file()), first)
        files: dict[str, str] = {}  # what stands for the contents of each
        for name in filter(os.path.isfile, (first, script)):
            size = Path(name).stat().st_size
            files[name] = f"{size} bytes"
            if size <= READ_BYTES:
                files[name] = hashlib.blake2b(Path(name).read_bytes(), digest_size=16).hexdigest()
        return {
            "system": "command",
            "command": self.command,
            "files": files,
            **declared_version(self.version),
        }


@dataclass(eq=False)
class _ProgramAsker:
    command: Command
    retried: Retried
    program: _Program | None = None
    closed: bool = False
    answered: bool = False  # whether it ever answered
    starts: int = 0

    def ask(self, requests: Sequence[Request]) -> Iterator[Outcome]:
        failures = yield from self._together(requests)
        for request, error in failures:
            yield from self._again(request, error)

    def close(self) -> None:
        self.closed = True
        if self.program is not None:
            self.program.end(0.2)

    def _again(self, request: Request, error: AttemptError) -> Iterator[Outcome]:
        for attempt in range(1, ATTEMPTS):
            hopeless = attempt > 1 and not self.answered and self.starts > ATTEMPTS
            if not error.again or self.closed or hopeless:
                break
            self.retried(error)
            failures = yield from self._together([request])
            if not failures:
                return
            error = failures[0][1]
        yield Outcome(request, error=error)

    def _together(
        self, requests: Sequence[Request]
    ) -> Generator[Outcome, None, list[tuple[Request, AttemptError]]]:
        if self.program is None:
            self.starts += 1
            self.program = _Program.started(self.command.arguments, self.command.timeout_s)
        program = self.program
        waiting = {request.body["id"]: request for request in requests}
        failed: list[tuple[Request, AttemptError]] = []
        lines = [json.dumps(request.body, ensure_ascii=False) for request in requests]
        start = time.perf_counter()
        program.send(("\n".join(lines) + "\n").encode("utf-8", "surrogatepass"))
        while waiting:
            try:
                request, answer = _answer(program.read_line(), waiting)
            except (_TimedOutError, AttemptError) as error:
                self.program = None
                gone = isinstance(error, AttemptError) and error.kind == "failed"
                program.end(2.0 if gone else 0.0)
                if isinstance(error, _TimedOutError):
                    within = f"no answer within {self.command.timeout_s:g} seconds (timeout_s)"
                    ended = AttemptError("timed out", within + program.last_words())
                elif gone:
                    ended = AttemptError(
                        "failed", f"the program ended with {program.ending}{program.last_words()}"
                    )
                else:
                    ended = AttemptError("malformed", str(error))
                return failed + [(request, ended) for request in waiting.values()]
            del waiting[request.body["id"]]
            if isinstance(answer, AttemptError):
                failed.append((request, answer))
            else:
                self.answered = True
                yield Outcome(request, answer, time.perf_counter() - start)
        program.idle()
        return failed


def _answer(line: bytes, waiting: dict[str, Request]) -> tuple[Request, Any]:
    if not line:
        raise AttemptError("failed", "")
    if not line.endswith(b"\n") and len(line) > LINE_BYTES:
        raise AttemptError("malformed", f"a line of more than {LINE_BYTES:,} bytes")
    try:
        message = parsed_answer(line)
    except (ValueError, RecursionError):
        message = None
    name = message.get("id") if isinstance(message, dict) else None
    request = waiting.get(name) if isinstance(name, str) else None
    if request is None:
        raise AttemptError(
            "malformed", f"found '{_line(line)}' on standard output; expected an answer to a query"
        )
    reason = message.get("error")
    if reason is not None:
        return request, AttemptError("refused", f"the program says: {_line(str(reason))}", again=False)
    try:
        results = message.get("results")
        if not isinstance(results, list):
            raise ValueError(f"results is {brief(results)}; expected a list")
        if len(results) > RESULTS_TIMES * (k := request.body["k"]):
            raise ValueError(f"{len(results):,} results; expected at most {k:,}")
        pairs = [(r.get("id"), r.get("score")) if isinstance(r, dict) else (r, None) for r in results]
        return request, kept_ranking(pairs)
    except ValueError as error:
        return request, AttemptError("malformed", str(error))


def _line(text: str | bytes) -> str:
    shown_part = text[: 4 * SHOWN_CHARACTERS]
    shown_text = shown_part if isinstance(shown_part, str) else shown_part.decode("utf-8", "replace")
    return " ".join(shown_text.split())[:SHOWN_CHARACTERS]
