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
from weir.files.atomic import locked, storing, write_json
from weir.registry import session_only
from weir.services.requests import AttemptError, FailureKind
from weir.settings import settings

# ----------
# Answers of services, kept by what was asked: written and checksummed before they are used, asked for once.
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


def answer_key(asked: object) -> AnswerKey:
    """The 128-bit hash of what is asked, any value that JSON can write."""
    text = json.dumps(asked, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
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

    Waits for nobody: what another process writes meanwhile may be there or not.
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


def _whole(line: bytes) -> bool:
    """Whether a line is as it was written."""
    name, said = line[8:40], line[_VALUE_AT:-2]
    begins = line[:8] == b'{"key":"' and line[57:_VALUE_AT] == b'","value":' and line.endswith(b"}\n")
    return begins and line[_CRC_AT:57] == b"%08x" % zlib.crc32(said, zlib.crc32(name))


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
        found = self.recent.get(key)
        if found is not None:
            return found
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
            with storing(self.path):
                line = self._line(at)
        if not _whole(line):
            raise StoreError(
                f"{self.path}: the answer at byte {at} is damaged; ask again, and it is made anew"
            )
        return json.loads(line[_VALUE_AT:-2])

    def add(self, key: AnswerKey, value: object) -> None:
        """Write a value, anything that JSON can write, under a key that is not there yet; it is kept once this returns.

        Raises StoreError when the disk refuses; the file is then as it was.
        """
        said = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(
            "utf-8", "backslashreplace"
        )
        name = b"%016x%016x" % key
        line = b'{"key":"%b","crc":"%08x","value":%b}\n' % (name, zlib.crc32(said, zlib.crc32(name)), said)
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

    def _line(self, at: int) -> bytes:
        """The line that begins at a byte."""
        self.file.seek(at)
        found = bytearray()
        while not found.endswith(b"\n") and (piece := self.file.read(1 << 14)):
            end = piece.find(b"\n")
            found += piece if end < 0 else piece[: end + 1]
        return bytes(found)


# ----------
# Many requests to one service, side by side: each answer is kept before it is used, and whatever fails is counted.


REPORT_SECONDS = 0.1


@dataclass(frozen=True)
class Request:
    """What is asked, as JSON; number: which one it is; key: that of its answer."""

    number: int
    key: AnswerKey
    asked: Any


@dataclass(frozen=True)
class Outcome:
    """What became of a request: an answer as JSON, or the error that ended it.

    seconds: from sending to answer, of the attempt that was answered.
    """

    request: Request
    answer: Any = None
    seconds: float = 0.0
    error: AttemptError | None = None


Retried: TypeAlias = Callable[[AttemptError], None]
"""Told each attempt that failed and is followed by another."""


class Asker(Protocol):
    """Asks for one thread: a connection, a process."""

    def ask(self, requests: Sequence[Request]) -> Iterator[Outcome]:
        """One outcome for each request, in any order, as they come."""
        ...

    def close(self) -> None:
        """Hang up, at once and from any thread; what is being asked then fails."""
        ...


class KeptAnswers(Protocol):
    """Where answers go, such as an AnswerStore; threads share it."""

    def __contains__(self, key: AnswerKey) -> bool:
        """Whether a request is answered already."""
        ...

    def add(self, key: AnswerKey, value: object) -> None:
        """Keep an answer; the next is not counted before this returns."""
        ...


@dataclass(frozen=True)
class Terms:
    """How a service is asked.

    concurrency: requests, or batches of them, at a time; batch: requests that are handed over together; failures:
    unanswered requests in a row after which no further one is asked; together: requests of those handed over that are
    answered at a time, 0 for all.
    """

    concurrency: int = 8
    batch: int = 1
    failures: int = 20
    together: int = 0


@dataclass
class Tally:
    """What became of some requests.

    stored: answered before; answered: now; retried: attempts that were followed by another, faults: those by kind, the
    last of a request among them; unanswered: requests without an answer, by what their last attempt met; first: the
    request that failed first, and why; stopped: whether others were not asked, since too many in a row had failed.
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

    def add(self, other: Tally) -> None:
        """Count those of another time, too."""
        self.stored += other.stored
        self.answered += other.answered
        self.retried += other.retried
        self.faults.update(other.faults)
        self.unanswered.update(other.unanswered)


@dataclass
class ServiceUse:
    """What a service was asked in making a result, for its record.

    name: of the service; versions: of what answers, as it says itself; empty: answers that hold nothing; milliseconds:
    of each answer, those that were stored before among them, by how many requests were out at a time; tokens, dollars:
    what it took, 0 and None where that is not counted; answer_tokens: those of the tokens that were answers;
    verdicts: of a language model's answers, by what became of them; cut: those without a verdict that were cut;
    flagged: documents that speak to the model that judges them; prompts: the keys of all that a language model
    was asked; those of equal keys were asked exactly the same.
    """

    name: str
    versions: Mapping[str, str] = field(default_factory=dict)
    tally: Tally = field(default_factory=Tally)
    empty: int = 0
    milliseconds: dict[int, array[float]] = field(default_factory=dict)
    tokens: int = 0
    answer_tokens: int = 0
    dollars: float | None = None
    verdicts: Counter[str] = field(default_factory=Counter)
    cut: int = 0
    flagged: int = 0
    prompts: set[AnswerKey] = field(default_factory=set)

    def named(self, name: str) -> ServiceUse:
        """The same under a name."""
        return replace(self, name=name)

    def answered(self, kept: Mapping[str, Any]) -> None:
        """An answer was read, as it is kept."""
        self.milliseconds.setdefault(kept["at"], array("d")).append(kept["ms"])

    def facts(self) -> dict[str, object]:
        """Counts, and percentiles of the milliseconds of an answer at each concurrency."""
        tally = self.tally
        counts = {
            "stored": tally.stored,
            "answered": tally.answered,
            "empty": self.empty,
            "retried": tally.retried,
        }
        found: dict[str, object] = {"service": self.name, **counts}
        found |= {"versions": dict(self.versions)} if self.versions else {}
        found |= {"tokens": self.tokens, "dollars": self.dollars} if self.tokens else {}
        found |= {"answer_tokens": self.answer_tokens} if self.answer_tokens else {}
        found |= {"verdicts": dict(sorted(self.verdicts.items()))} if self.verdicts else {}
        found |= {"cut": self.cut} if self.cut else {}
        found |= {"flagged": self.flagged} if self.flagged else {}
        found |= {"prompts": _digest(self.prompts)} if self.prompts else {}
        found |= {
            "faults": dict(sorted(tally.faults.items())),
            "unanswered": dict(sorted(tally.unanswered.items())),
        }
        return found | {"latency": [_latency(at, taken) for at, taken in sorted(self.milliseconds.items())]}


def _digest(keys: set[AnswerKey]) -> str:
    """What stands for a set of keys, in whatever order they came."""
    return f"{sum(high << 64 | low for high, low in keys) % (1 << 128):032x}"


def _latency(at: int, taken: array[float]) -> dict[str, float]:
    values = np.frombuffer(taken, np.float64)
    found = {f"p{p}": float(np.percentile(values, p)) for p in (50, 95, 99)}
    return {"concurrency": at, "answers": len(values), **found, "mean": float(values.mean())}


def ask_each(
    requests: Iterable[Request],
    opened: Callable[[Retried], Asker],
    store: KeptAnswers,
    terms: Terms,
    progress: Callable[[int], None] | None = None,
) -> Tally:
    """Ask what has no answer in the store yet, and keep each answer there as it comes.

    opened: makes what asks, one for each thread. progress: told how many requests are done, from the caller's thread.
    Kept is {"asked", "answer", "ms", "at", "time"}: milliseconds, how many requests were out at a time, and when the
    answer came, UTC in ISO's form. A batch for each thread is in memory. Raises whatever an asker raises besides the
    outcomes that it reports.
    """
    work = _Work(iter(requests), store, terms)
    askers = [opened(work.retried) for _ in range(terms.concurrency)]
    threads = [threading.Thread(target=work.run, args=(asker,), daemon=True) for asker in askers]
    try:
        for thread in threads:
            thread.start()
        _wait(threads, lambda: None if progress is None else progress(work.done))
    finally:
        work.ended = work.closed = True
        for asker in askers:
            asker.close()
        for thread in [thread for thread in threads if thread.ident is not None]:
            thread.join(1.0)
    if work.error is not None:
        raise work.error
    return work.tally


def _wait(threads: list[threading.Thread], report: Callable[[], None]) -> None:
    for thread in threads:
        while thread.is_alive():
            thread.join(REPORT_SECONDS)
            report()


@dataclass(eq=False)
class _Work:
    """What the threads share."""

    requests: Iterator[Request]
    store: KeptAnswers
    terms: Terms
    tally: Tally = field(default_factory=Tally)
    done: int = 0
    ended: bool = False
    closed: bool = False
    error: BaseException | None = None
    asked_now: set[AnswerKey] = field(default_factory=set)
    in_a_row: int = 0
    turn: threading.Lock = field(default_factory=threading.Lock)

    def run(self, asker: Asker) -> None:
        """Ask batch after batch until none is left."""
        try:
            while not self.ended and (batch := self.batch()):
                for outcome in asker.ask(batch):
                    self.keep(outcome)
        except BaseException as error:  # noqa: BLE001  raised again by the thread that asked
            with self.turn:
                if self.error is None and not self.closed:
                    self.error = error
                self.ended = True

    def batch(self) -> list[Request]:
        """The next requests without an answer; a request that another thread is asking is not asked twice."""
        found: list[Request] = []
        with self.turn:
            for request in self.requests:
                if request.key in self.asked_now:
                    continue
                if request.key in self.store:
                    self.tally.stored += 1
                    self.done += 1
                    continue
                self.asked_now.add(request.key)
                found.append(request)
                if len(found) == self.terms.batch:
                    break
        return found

    def retried(self, error: AttemptError) -> None:
        """An attempt failed, and another follows."""
        with self.turn:
            self.tally.retried += 1
            self.tally.faults[error.kind] += 1

    def keep(self, outcome: Outcome) -> None:
        """Store an answer, or count a failure."""
        request, error = outcome.request, outcome.error
        if self.closed:
            return
        if error is None:
            kept = {"asked": request.asked, "answer": outcome.answer}
            milliseconds = round(1000 * outcome.seconds, 3)
            at = self.terms.concurrency * (self.terms.together or self.terms.batch)
            now = datetime.now(UTC).isoformat(timespec="seconds")
            self.store.add(request.key, kept | {"ms": milliseconds, "at": at, "time": now})
        with self.turn:
            self.asked_now.discard(request.key)
            self.done += 1
            if error is None:
                self.tally.answered += 1
                self.in_a_row = 0
            else:
                self._failed(request, error)

    def _failed(self, request: Request, error: AttemptError) -> None:
        tally = self.tally
        tally.faults[error.kind] += 1
        tally.unanswered[error.kind] += 1
        tally.first = tally.first or (request, str(error))
        self.in_a_row += 1
        if self.in_a_row >= self.terms.failures and not self.ended:
            self.ended = tally.stopped = True
