"""Many requests to one service, side by side: each answer is kept before it is used, and whatever fails is counted."""

from __future__ import annotations

import threading
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Protocol, TypeAlias

import numpy as np

from weir.services.answers import AnswerKey
from weir.services.attempts import AttemptError, FailureKind

__all__ = ["Asker", "Outcome", "Request", "Retried", "ServiceUse", "Tally", "Terms", "ask_each"]

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
