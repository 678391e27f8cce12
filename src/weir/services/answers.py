"""Store answers of services, and send requests concurrently."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import threading
import time
import zlib
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.core.strings import Int64
from weir.errors import StoreError, StoreWarning, give_warning
from weir.files.atomic import storing, write_json
from weir.files.leases import locked
from weir.files.network import KeptConnection
from weir.registry import session_only
from weir.services.requests import AttemptError, FailureKind
from weir.settings import settings

SCORED_KINDS = ("ok", "repaired", "unsigned")
"""Kinds of language models' answers that contain a verdict."""

# ----------
# The store of answers: each is written with a checksum before it is used, under the hash of its request.
#
# <home>/answers/<name>-<key>/ about.json everything that decides an answer, for the reader answers.jsonl a line for
# each answer: {"key": of what was asked, "crc": of key and value, "value": {...}}
#
# The file only grows, and any tool reads it. A killed process loses the line it was writing and nothing else: half a
# line at the end is cut off when the file is opened again, a damaged one is forgotten and its question asked again.
# Memory holds 32 bytes for each answer: where it stands. Of several processes one asks at a time, the others wait and
# then find what it was answered.


ANSWERS, ABOUT = "answers.jsonl", "about.json"
SYNC_SECONDS = 1.0
"""Most seconds of answers lost by a power cut; a killed process loses none."""
RECENT_ANSWERS = 1 << 15
"""Answers held in a dict before they are sorted into columns."""
_CRC_AT, _VALUE_AT = 49, 67  # where a line has its checksum and its value

_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_SORTED = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True)

AnswerKey = tuple[int, int]
"""The two halves of a request's hash."""


def answer_key(request: object) -> AnswerKey:
    """Return the 128-bit hash of a request (any JSON value) as two integers; objects' member order does not
    matter."""
    text = _SORTED.encode(request)
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    return int.from_bytes(digest[:8]), int.from_bytes(digest[8:])


@contextmanager
def answer_store(name: str, about: Mapping[str, object]) -> Iterator[AnswerStore]:
    """Yield a store of a service's answers for the block; waits while another process has it.

    name: begins its folder's name.
    about: everything that decides an answer. Without a version the store is a temporary file.

    Raises StoreError if it cannot be written; warns (StoreWarning) of damaged answers.
    """
    if session_only(about):
        with tempfile.TemporaryFile(buffering=0) as file:
            yield AnswerStore(Path("answers of this process"), file)
        return
    folder, text = _folder(name, about)
    path = folder / ANSWERS
    with locked(folder.with_name(f".{folder.name}.lock")):
        with storing(path):
            folder.mkdir(parents=True, exist_ok=True)
            if not path.exists():
                write_json(folder / ABOUT, json.loads(text))
            file = path.open("a+b", buffering=0)
        with file:
            store = AnswerStore(path, file)
            store._read_places()
            try:
                yield store
            finally:
                store.sync()


@contextmanager
def kept_answers(name: str, about: Mapping[str, object]) -> Iterator[AnswerStore | None]:
    """Yield the store of `answer_store` for reading only; None if there is none, or its answers hold for one process
    only. Other processes' latest answers may be missing."""
    path = _folder(name, about)[0] / ANSWERS
    if session_only(about) or not path.is_file():
        yield None
        return
    with storing(path):
        file = path.open("rb", buffering=0)
    with file:
        store = AnswerStore(path, file)
        store._read_places(mend=False)
        yield store


def _folder(name: str, about: Mapping[str, object]) -> tuple[Path, str]:
    text = json.dumps(about, sort_keys=True, default=str)
    key = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    slug = "".join(c if c.isalnum() or c in "._-" else "-" for c in name).strip("-.")[:60]
    return settings().home / "answers" / f"{slug}-{key}", text


def _whole(line: bytes | bytearray) -> bool:
    name, value = line[8:40], line[_VALUE_AT:-2]
    begins = line[:8] == b'{"key":"' and line[57:_VALUE_AT] == b'","value":' and line.endswith(b"}\n")
    return begins and line[_CRC_AT:57] == b"%08x" % zlib.crc32(value, zlib.crc32(name))


@dataclass
class _Places:
    first: NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, np.uint64))
    second: NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, np.uint64))
    at: Int64 = field(default_factory=lambda: np.empty(0, np.int64))
    recent: dict[AnswerKey, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.at) + len(self.recent)

    def add(self, key: AnswerKey, at: int) -> None:
        # It replaces an earlier answer to the same request.
        self.recent[key] = at
        if len(self.recent) >= RECENT_ANSWERS:
            self._sort()

    def find(self, key: AnswerKey) -> int:
        at = self.recent.get(key)
        if at is not None:
            return at
        row = int(np.searchsorted(self.first, np.uint64(key[0])))
        while row < len(self.at) and int(self.first[row]) == key[0]:  # halves of different hashes may agree
            if int(self.second[row]) == key[1]:
                return int(self.at[row])
            row += 1
        return -1

    def _sort(self) -> None:
        keys = np.array(list(self.recent), np.uint64)
        first = np.concatenate([keys[:, 0], self.first])  # the later answer stands first
        order = np.argsort(first, kind="stable")
        self.first = first[order]
        self.second = np.concatenate([keys[:, 1], self.second])[order]
        self.at = np.concatenate([np.fromiter(self.recent.values(), np.int64), self.at])[order]
        self.recent = {}


@dataclass(eq=False)
class AnswerStore:
    """A file of stored answers by request hash; threads may share it."""

    path: Path
    file: BinaryIO = field(repr=False)
    _places: _Places = field(init=False, default_factory=_Places, repr=False)
    _end: int = field(init=False, default=0)
    _synced: float = field(init=False, default_factory=time.monotonic)
    _turn: threading.Lock = field(init=False, default_factory=threading.Lock, repr=False)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, key: AnswerKey) -> bool:
        with self._turn:
            return self._places.find(key) >= 0

    def answer(self, key: AnswerKey) -> Any:  # noqa: ANN401  whatever was added
        """Return a request's stored JSON value; None without one. Raises StoreError if it is damaged."""
        with self._turn:
            at = self._places.find(key)
            if at < 0:
                return None
            line = bytearray()
            with storing(self.path):
                self.file.seek(at)
                while not line.endswith(b"\n") and (piece := self.file.read(1 << 14)):
                    end = piece.find(b"\n")
                    line += piece if end < 0 else piece[: end + 1]
        if not _whole(line):
            raise StoreError(
                f"{self.path}: the answer at byte {at} is damaged; ask again, and it is made anew"
            )
        return json.loads(line[_VALUE_AT:-2])

    def add(self, key: AnswerKey, value: object) -> None:
        """Append a JSON value under a key, replacing an earlier value; it is in the file on return.

        Raises StoreError, leaving the file unchanged, if it cannot be written.
        """
        data = _COMPACT.encode(value).encode("utf-8", "backslashreplace")
        name = b"%016x%016x" % key
        line = b'{"key":"%b","crc":"%08x","value":%b}\n' % (name, zlib.crc32(data, zlib.crc32(name)), data)
        with self._turn, storing(self.path):
            try:
                self.file.seek(self._end)
                written = self.file.write(line)
                if written != len(line):
                    raise OSError(28, "no space left on the disk")
            except OSError:
                self.file.truncate(self._end)
                raise
            self._places.add(key, self._end)
            self._end += len(line)
            if time.monotonic() - self._synced > SYNC_SECONDS:
                self.sync()

    def sync(self) -> None:
        """Flush added answers to the disk."""
        os.fsync(self.file.fileno())
        self._synced = time.monotonic()

    def _read_places(self, mend: bool = True) -> None:
        damaged = 0
        self.file.seek(0)
        with open(self.file.fileno(), "rb", buffering=1 << 20, closefd=False) as lines:
            for line in lines:
                if not line.endswith(b"\n"):
                    break
                if _whole(line):
                    self._places.add((int(line[8:24], 16), int(line[24:40], 16)), self._end)
                else:
                    damaged += 1
                self._end += len(line)
        if not mend:
            return
        self.file.truncate(self._end)
        if damaged:
            lost = (
                f"{damaged:,} answers are damaged and are asked for again"
                if damaged > 1
                else ("an answer is damaged and is asked for again")
            )
            give_warning(StoreWarning(f"{self.path}: {lost}"))


# ----------
# Many requests to one service, side by side: each answer is stored before it is used.


REPORT_SECONDS = 0.1


@dataclass(frozen=True)
class Request:
    """A request to a service, and the key under which its answer is stored."""

    number: int
    key: AnswerKey
    body: Any
    """JSON value to send."""


@dataclass(frozen=True)
class Outcome:
    """The JSON answer to a request, or the error after its last attempt."""

    request: Request
    answer: Any = None
    seconds: float = 0.0
    """Seconds from sending to answer."""
    error: AttemptError | None = None
    """None with an answer."""


Retried: TypeAlias = Callable[[AttemptError], None]
"""Called after each failed attempt that is retried."""


class Worker(Protocol):
    """Sends the requests of one thread."""

    def ask(self, requests: Sequence[Request]) -> Iterator[Outcome]:
        """Yield an outcome for each request as it arrives, in any order."""

    def close(self) -> None:
        """Close the connection at once, from any thread; unanswered requests then fail."""


@dataclass(eq=False)
class ConnectionWorker:
    """A Worker that sends its requests over its own connection."""

    send: Callable[[KeptConnection, Request], Any]
    """Returns the JSON answer to a request; raises AttemptError."""
    connection: KeptConnection = field(default_factory=KeptConnection)

    def ask(self, requests: Sequence[Request]) -> Iterator[Outcome]:
        for request in requests:
            start = time.perf_counter()
            try:
                answer = self.send(self.connection, request)
                yield Outcome(request, answer, time.perf_counter() - start)
            except AttemptError as error:
                yield Outcome(request, error=error)

    def close(self) -> None:
        self.connection.close()


class KeptAnswers(Protocol):
    """A thread-safe, lasting store of answers, which says whether it has a key; answers are not read from it."""

    def __contains__(self, key: AnswerKey) -> bool: ...

    def add(self, key: AnswerKey, value: object) -> None:
        """Store an answer; it survives a killed process."""


@dataclass(frozen=True)
class RequestPolicy:
    """Concurrency and failure limits of requests to a service."""

    concurrency: int = 8
    """Concurrent requests, or concurrent batches."""
    batch: int = 1
    """Requests passed to a worker together."""
    failures: int = 20
    """Number of consecutive requests without an answer after which no more are sent."""
    together: int = 0
    """Requests of a batch that are answered at the same time; 0 for all."""


@dataclass
class RequestCounts:
    """Numbers of requests that were answered, sent again or failed."""

    stored: int = 0
    """Answered in an earlier run."""
    answered: int = 0
    """Answered in this run."""
    retried: int = 0
    """Failed attempts that were followed by another."""
    faults: Counter[FailureKind] = field(default_factory=Counter)
    """Failed attempts by kind, including last attempts."""
    unanswered: Counter[FailureKind] = field(default_factory=Counter)
    """Requests without an answer, by the kind of their last failure."""
    first: tuple[Request, str] | None = None
    """First failed request, and its error."""
    stopped: bool = False
    """True if too many in a row failed, so that the rest was not sent."""

    @property
    def failed(self) -> int:
        """Number of requests without an answer."""
        return sum(self.unanswered.values())

    @property
    def failed_by_kind(self) -> str:
        """Numbers of unanswered requests by kind, such as "2 refused, 1 timed out"; "" for none."""
        return ", ".join(f"{count} {kind}" for kind, count in sorted(self.unanswered.items()))

    def add(self, other: RequestCounts) -> None:
        """Add other counts to these, except `first` and `stopped`."""
        self.stored += other.stored
        self.answered += other.answered
        self.retried += other.retried
        self.faults.update(other.faults)
        self.unanswered.update(other.unanswered)


@dataclass
class ServiceUsage:
    """Use of a service for a result, recorded with it."""

    name: str
    versions: Mapping[str, str] = field(default_factory=dict)
    """Versions that the service reports."""
    counts: RequestCounts = field(default_factory=RequestCounts)
    empty: int = 0
    """Answers without content."""
    milliseconds: dict[int, array[float]] = field(default_factory=dict)
    """Duration of each answer, also of stored ones, by the number of concurrent requests."""
    tokens: int = 0
    """0 if not counted."""
    answer_tokens: int = 0
    """Tokens of answers, part of `tokens`."""
    dollars: float | None = None
    """None if not counted."""
    verdicts: Counter[str] = field(default_factory=Counter)
    """A language model's answers by kind of verdict."""
    cut: int = 0
    """Truncated answers without a verdict."""
    flagged: int = 0
    """Documents with a possible prompt injection."""
    prompts: set[AnswerKey] = field(default_factory=set)
    """Keys of all prompts to a language model."""

    def named(self, name: str) -> ServiceUsage:
        """Return a copy with another name that shares the counters."""
        return replace(self, name=name)

    def answered(self, stored: Mapping[str, Any]) -> None:
        """Record the duration of an answer, given as it is stored."""
        self.milliseconds.setdefault(stored["at"], array("d")).append(stored["ms"])

    def facts(self) -> dict[str, object]:
        """Return counts of answers, tokens, verdicts and failures, and latencies in milliseconds by
        concurrency, as JSON; some only if not 0."""
        counts = self.counts
        facts: dict[str, object] = {
            "service": self.name,
            "stored": counts.stored,
            "answered": counts.answered,
            "empty": self.empty,
            "retried": counts.retried,
        }
        facts |= {"versions": dict(self.versions)} if self.versions else {}
        facts |= {"tokens": self.tokens, "dollars": self.dollars} if self.tokens else {}
        verdicts = dict(sorted(self.verdicts.items()))
        more = {"answer_tokens": self.answer_tokens, "verdicts": verdicts, "cut": self.cut}
        facts |= {name: value for name, value in {**more, "flagged": self.flagged}.items() if value}
        if self.prompts:  # one number for the set, whatever the order in which its keys came
            total = sum(high << 64 | low for high, low in self.prompts) % (1 << 128)
            facts |= {"prompts": f"{total:032x}"}
        for name, kinds in (("faults", counts.faults), ("unanswered", counts.unanswered)):
            facts[name] = dict(sorted(kinds.items()))
        latencies: list[dict[str, float]] = []
        for at, times in sorted(self.milliseconds.items()):
            values = np.frombuffer(times, np.float64)
            percentiles = {f"p{p}": float(np.percentile(values, p)) for p in (50, 95, 99)}
            mean = float(values.mean())
            latencies.append({"concurrency": at, "answers": len(values), **percentiles, "mean": mean})
        return facts | {"latency": latencies}


def run_requests(
    requests: Iterable[Request],
    new_worker: Callable[[Retried], Worker],
    store: KeptAnswers,
    policy: RequestPolicy,
    progress: Callable[[int], None] | None = None,
) -> RequestCounts:
    """Send the requests without a stored answer, store each answer as it arrives, and return the counts.

    new_worker: returns a worker for a thread.
    progress: called in the caller's thread with the number of requests done.

    A failed request is counted; any other error of a worker is raised.
    """
    # Stored is {"asked", "answer", "ms", "at", "time"}: "at" is the number of concurrent requests, "time" ISO
    # UTC.
    queue = _RequestQueue(iter(requests), store, policy)
    workers = [new_worker(queue.retried) for _ in range(policy.concurrency)]
    threads = [threading.Thread(target=queue.run, args=(worker,), daemon=True) for worker in workers]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                thread.join(REPORT_SECONDS)
                if progress is not None:
                    progress(queue.done)
    finally:
        queue.ended = queue.closed = True
        for worker in workers:
            worker.close()
        for thread in [thread for thread in threads if thread.ident is not None]:
            thread.join(1.0)
    if queue.error is not None:
        raise queue.error
    return queue.counts


@dataclass(eq=False)
class _RequestQueue:
    requests: Iterator[Request]
    store: KeptAnswers
    policy: RequestPolicy
    counts: RequestCounts = field(default_factory=RequestCounts)
    done: int = 0
    ended: bool = False
    closed: bool = False
    error: BaseException | None = None
    pending: set[AnswerKey] = field(default_factory=set)
    failures: int = 0
    """Consecutive unanswered requests."""
    turn: threading.Lock = field(default_factory=threading.Lock)

    def run(self, worker: Worker) -> None:
        try:
            while not self.ended and (batch := self.batch()):
                for outcome in worker.ask(batch):
                    self.finish(outcome)
        except BaseException as error:  # noqa: BLE001  raised again by the thread that asked
            with self.turn:
                if self.error is None and not self.closed:
                    self.error = error
                self.ended = True

    def batch(self) -> list[Request]:
        batch: list[Request] = []
        with self.turn:
            for request in self.requests:
                if request.key in self.pending:
                    continue
                if request.key in self.store:
                    self.counts.stored += 1
                    self.done += 1
                    continue
                self.pending.add(request.key)
                batch.append(request)
                if len(batch) == self.policy.batch:
                    break
        return batch

    def retried(self, error: AttemptError) -> None:
        with self.turn:
            self.counts.retried += 1
            self.counts.faults[error.kind] += 1

    def finish(self, outcome: Outcome) -> None:
        request, error, counts = outcome.request, outcome.error, self.counts
        if self.closed:
            return
        if error is None:
            milliseconds = round(1000 * outcome.seconds, 3)
            at = self.policy.concurrency * (self.policy.together or self.policy.batch)
            now = datetime.now(UTC).isoformat(timespec="seconds")
            answer = {"asked": request.body, "answer": outcome.answer}
            self.store.add(request.key, answer | {"ms": milliseconds, "at": at, "time": now})
        with self.turn:
            self.pending.discard(request.key)
            self.done += 1
            if error is None:
                counts.answered += 1
                self.failures = 0
                return
            counts.faults[error.kind] += 1
            counts.unanswered[error.kind] += 1
            counts.first = counts.first or (request, str(error))
            self.failures += 1
            if self.failures >= self.policy.failures and not self.ended:
                self.ended = counts.stopped = True
