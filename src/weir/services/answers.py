"""Answers of services, kept as they arrive; many requests side by side."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import threading
import time
import warnings
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
from weir.errors import StoreError, StoreWarning
from weir.files.atomic import storing, write_json
from weir.files.leases import locked
from weir.registry import session_only
from weir.services.requests import AttemptError, FailureKind, KeptConnection
from weir.settings import settings

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
"""A power cut loses the answers of so much time at most; a killed process loses none."""
RECENT_ANSWERS = 1 << 15
"""Answers whose places are kept in a dict before they are sorted among the others."""
_CRC_AT, _VALUE_AT = 49, 67  # where a line has its checksum and its value

AnswerKey = tuple[int, int]
"""The two halves of the hash of what was asked."""


def answer_key(request: object) -> AnswerKey:
    """The 128-bit hash of what is asked, any value that JSON can write."""
    text = json.dumps(request, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    return int.from_bytes(digest[:8]), int.from_bytes(digest[8:])


@contextmanager
def answer_store(name: str, about: Mapping[str, object]) -> Iterator[AnswerStore]:
    """The answers to whatever `about` describes entirely, open for asking as long as the block.

    name: how its folder begins. What declares no version (see Identity in registry.py) is kept for the block alone, in
    a file that goes with the process. Waits for a process that asks the same. Raises StoreError where nothing can be
    written; warns (StoreWarning) of answers that were damaged.
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
            store.read_places()
            try:
                yield store
            finally:
                store.sync()


@contextmanager
def kept_answers(name: str, about: Mapping[str, object]) -> Iterator[AnswerStore | None]:
    """The answers that are kept of what `answer_store` names so, for reading alone; None where there are none.

    Does not wait: what another process writes meanwhile may be missing.
    """
    path = _folder(name, about)[0] / ANSWERS
    if session_only(about) or not path.is_file():
        yield None
        return
    with storing(path):
        file = path.open("rb", buffering=0)
    with file:
        store = AnswerStore(path, file)
        store.read_places(mend=False)
        yield store


def _folder(name: str, about: Mapping[str, object]) -> tuple[Path, str]:
    """(the folder of some answers, what they are about as JSON)."""
    text = json.dumps(about, sort_keys=True, default=str)
    key = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    slug = "".join(c if c.isalnum() or c in "._-" else "-" for c in name).strip("-.")[:60]
    return settings().home / "answers" / f"{slug}-{key}", text


def _whole(line: bytes | bytearray) -> bool:
    """Whether a line is as it was written."""
    name, value = line[8:40], line[_VALUE_AT:-2]
    begins = line[:8] == b'{"key":"' and line[57:_VALUE_AT] == b'","value":' and line.endswith(b"}\n")
    return begins and line[_CRC_AT:57] == b"%08x" % zlib.crc32(value, zlib.crc32(name))


@dataclass
class _Places:
    """Where answers stand in the file, by key: sorted columns, and what was added since they were sorted."""

    first: NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, np.uint64))
    second: NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, np.uint64))
    at: Int64 = field(default_factory=lambda: np.empty(0, np.int64))
    recent: dict[AnswerKey, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.at) + len(self.recent)

    def add(self, key: AnswerKey, at: int) -> None:
        """A later answer to the same question takes the place of the first."""
        self.recent[key] = at
        if len(self.recent) >= RECENT_ANSWERS:
            self._sort()

    def find(self, key: AnswerKey) -> int:
        """The place of an answer, -1 where there is none."""
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
    """An open file of answers; threads may share it."""

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

    def get(self, key: AnswerKey) -> Any:  # noqa: ANN401  whatever was added
        """What was added under a key, None where nothing was; raises StoreError where it was damaged meanwhile."""
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
        """Write a value, anything that JSON can write, under a key that is not there yet; it is kept once this returns.

        Raises StoreError when the disk refuses; the file is then as it was.
        """
        data = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(
            "utf-8", "backslashreplace"
        )
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
        """Force what was added to the disk."""
        os.fsync(self.file.fileno())
        self._synced = time.monotonic()

    def read_places(self, mend: bool = True) -> None:
        """Find the answers that are there, forget what is damaged; mend: cut off half a line at the end, and warn."""
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
            warnings.warn(StoreWarning(f"{self.path}: {lost}"), stacklevel=4)


# ----------
# Many requests to one service, side by side: each answer is stored before it is used.


REPORT_SECONDS = 0.1


@dataclass(frozen=True)
class Request:
    """body: what is sent, as JSON; number: which request it is; key: that of its answer."""

    number: int
    key: AnswerKey
    body: Any


@dataclass(frozen=True)
class Outcome:
    """The answer to a request as JSON, or the error that ended it; seconds: from sending to answer."""

    request: Request
    answer: Any = None
    seconds: float = 0.0
    error: AttemptError | None = None


Retried: TypeAlias = Callable[[AttemptError], None]
"""Called after each failed attempt that is retried."""


class Worker(Protocol):
    """Sends the requests of one thread, over a connection or to a process."""

    def ask(self, requests: Sequence[Request]) -> Iterator[Outcome]:
        """One outcome for each request, in any order, as they come."""
        ...

    def close(self) -> None:
        """Close the connection, at once and from any thread; requests under way then fail."""
        ...


@dataclass(eq=False)
class ConnectionWorker:
    """A Worker with a connection of its own; send: the answer to a request as JSON, raises AttemptError."""

    send: Callable[[KeptConnection, Request], Any]
    connection: KeptConnection = field(default_factory=KeptConnection)

    def ask(self, requests: Sequence[Request]) -> Iterator[Outcome]:
        """One outcome for each request, one after the other."""
        for request in requests:
            start = time.perf_counter()
            try:
                answer = self.send(self.connection, request)
                yield Outcome(request, answer, time.perf_counter() - start)
            except AttemptError as error:
                yield Outcome(request, error=error)

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()


class KeptAnswers(Protocol):
    """Where answers go, such as an AnswerStore; threads share it."""

    def __contains__(self, key: AnswerKey) -> bool:
        """Whether a request is answered already."""
        ...

    def add(self, key: AnswerKey, value: object) -> None:
        """Store an answer; the next is not counted before this returns."""
        ...


@dataclass(frozen=True)
class RequestPolicy:
    """How requests to a service are sent.

    concurrency: requests, or batches of them, at a time; batch: requests that are handed over together; failures:
    unanswered requests in a row after which no further one is sent; together: requests of a batch that are
    answered at a time, 0 for all.
    """

    concurrency: int = 8
    batch: int = 1
    failures: int = 20
    together: int = 0


@dataclass
class RequestCounts:
    """How requests ended.

    stored: answered before; answered: now; retried: failed attempts that were followed by another; faults: failed
    attempts by kind, the last of a request among them; unanswered: requests without an answer, by the kind of their
    last fault; first: the request that failed first, and why; stopped: whether requests were left out, since too many
    in a row had failed.
    """

    stored: int = 0
    answered: int = 0
    retried: int = 0
    faults: Counter[FailureKind] = field(default_factory=Counter)
    unanswered: Counter[FailureKind] = field(default_factory=Counter)
    first: tuple[Request, str] | None = None
    stopped: bool = False

    @property
    def failed(self) -> int:
        """Requests without an answer."""
        return sum(self.unanswered.values())

    @property
    def failed_by_kind(self) -> str:
        """The number of requests without an answer by kind, in words."""
        return ", ".join(f"{count} {kind}" for kind, count in sorted(self.unanswered.items()))

    def add(self, other: RequestCounts) -> None:
        """Add the counts of other requests."""
        self.stored += other.stored
        self.answered += other.answered
        self.retried += other.retried
        self.faults.update(other.faults)
        self.unanswered.update(other.unanswered)


@dataclass
class ServiceUsage:
    """The requests that a result took of a service, for its record.

    name: of the service; versions: of what answers, as it names itself; empty: answers without content; milliseconds:
    of each answer, stored ones included, by the number of requests under way; tokens, dollars: used, 0 and None where
    they are not counted; answer_tokens: the tokens of answers among them; verdicts: of a language model's answers by
    kind; cut: answers without a verdict that were cut; flagged: documents with a possible prompt injection; prompts:
    the keys of all prompts to a language model.
    """

    name: str
    versions: Mapping[str, str] = field(default_factory=dict)
    counts: RequestCounts = field(default_factory=RequestCounts)
    empty: int = 0
    milliseconds: dict[int, array[float]] = field(default_factory=dict)
    tokens: int = 0
    answer_tokens: int = 0
    dollars: float | None = None
    verdicts: Counter[str] = field(default_factory=Counter)
    cut: int = 0
    flagged: int = 0
    prompts: set[AnswerKey] = field(default_factory=set)

    def named(self, name: str) -> ServiceUsage:
        """The same under a name."""
        return replace(self, name=name)

    def answered(self, stored: Mapping[str, Any]) -> None:
        """Count an answer, as it is stored."""
        self.milliseconds.setdefault(stored["at"], array("d")).append(stored["ms"])

    def facts(self) -> dict[str, object]:
        """Counts, and percentiles of the milliseconds of an answer at each concurrency."""
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
    """Send the requests without an answer in the store, and store each answer as it comes.

    new_worker: makes a worker for each thread. progress: called with the number of requests done, from the caller's
    thread. Stored is {"asked", "answer", "ms", "at", "time"}: milliseconds, requests under way, and when the answer
    came, UTC in ISO's form. A batch for each thread is in memory. Raises whatever a worker raises besides the outcomes
    that it reports.
    """
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
    """What the threads of `run_requests` share; pending: keys under way; failures: unanswered requests in a row."""

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
    turn: threading.Lock = field(default_factory=threading.Lock)

    def run(self, worker: Worker) -> None:
        """Answer batch after batch until none is left."""
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
        """The next requests without an answer; a request that another thread sends is left to it."""
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
        """Count a failed attempt that another follows."""
        with self.turn:
            self.counts.retried += 1
            self.counts.faults[error.kind] += 1

    def finish(self, outcome: Outcome) -> None:
        """Store an answer, or count a failure."""
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
