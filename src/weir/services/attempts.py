"""Asking again where that may help: which failures pass, how long to wait, when to give up."""

from __future__ import annotations

import http.client
import json
import math
import ssl
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Literal, TypeAlias, TypeVar

from weir.services.http import HttpReply
from weir.services.limits import CONTINUES, Clock, Limits

__all__ = [
    "AttemptError",
    "FailureKind",
    "Masked",
    "asked_to_wait",
    "broken",
    "error_text",
    "refusal",
    "reply_text",
    "until_answered",
]

LATER_STATUSES = frozenset({408, 425, 429, 500, 502, 503, 504, 529})
"""Those after which the same request may be answered."""
SHOWN_CHARACTERS = 300

FailureKind: TypeAlias = Literal["refused", "failed", "timed out", "malformed"]
"""refused: a status of 4xx; failed: 5xx, or a connection or a program that broke; malformed: an answer that is none."""
Masked: TypeAlias = Callable[[object], str]
"""A text in one line, without what is secret in it."""
T = TypeVar("T")


class AttemptError(Exception):
    """A request failed.

    kind: how; wait: seconds the server asks for; again: whether the next attempt may be answered; attempts: how many
    were made, once nobody tries again; status: that of the answer, 0 where there was none.
    """

    def __init__(self, kind: FailureKind, said: str, wait: float = 0.0, again: bool = True) -> None:
        super().__init__(said)
        self.kind = kind
        self.wait = wait
        self.again = again
        self.attempts = 1
        self.status = 0


@dataclass(frozen=True)
class _Patience:
    """How the next attempt is waited for."""

    limits: Limits
    clock: Clock

    def wait(self, attempt: int, error: AttemptError) -> float:
        """Seconds before the next attempt; raises the error, with what ended it, where there is none."""
        error.attempts = attempt
        if not error.again:
            raise error
        if attempt >= self.limits.attempts:
            raise _ended(error, f"{error} ({attempt} attempts)")
        backoff = self.limits.pause * 2.0 ** (attempt - 1) * (0.5 + self.clock.chance())
        wait = max(error.wait, min(backoff, self.limits.longest))
        if wait > self.limits.longest:
            raise _ended(error, f"{error}; the server asks to wait {_duration(wait)}")
        return wait


def until_answered(
    once: Callable[[], T], limits: Limits, clock: Clock, retrying: Callable[[AttemptError, float], None]
) -> T:
    """What `once` gives, asked again after an AttemptError that may pass, as patiently as the limits say.

    retrying: told each failure that is followed by another attempt, and the seconds waited before it. Raises the last
    AttemptError, which says how many attempts were made, and whatever else `once` raises.
    """
    patience, attempt = _Patience(limits, clock), 1
    while True:
        try:
            return once()
        except AttemptError as error:
            wait = patience.wait(attempt, error)
            retrying(error, wait)
        if wait:
            clock.sleep(wait)
        attempt += 1


def _ended(error: AttemptError, said: str) -> AttemptError:
    ended = AttemptError(error.kind, f"{said}; {CONTINUES}", again=False)
    ended.attempts = error.attempts
    return ended


def refusal(reply: HttpReply, masked: Masked, clock: Clock) -> AttemptError:
    """What a status other than 2xx means."""
    said, exhausted = reply_text(reply, masked)
    later = reply.status in LATER_STATUSES and not exhausted
    wait = asked_to_wait(reply.headers.get("Retry-After", ""), clock) if later else 0.0
    if exhausted:
        said = f"{said}; {CONTINUES}"
    elif 300 <= reply.status < 400:
        said = f"{said}; it moved to {masked(reply.headers.get('Location'))[:SHOWN_CHARACTERS]}: give that address"
    error = AttemptError("failed" if reply.status >= 500 else "refused", said, wait, again=later)
    error.status = reply.status
    return error


def broken(reason: Exception, masked: Masked) -> AttemptError:
    """What a connection that broke means."""
    if isinstance(reason, TimeoutError):
        return AttemptError("timed out", "no answer in time")
    if isinstance(reason, http.client.IncompleteRead):
        return AttemptError("malformed", "the answer was cut")
    said = (reason.strerror if isinstance(reason, OSError) else None) or str(reason)
    said = masked(said or type(reason).__name__)[:SHOWN_CHARACTERS]
    return AttemptError("failed", said, again=not isinstance(reason, ssl.SSLCertVerificationError))


def reply_text(reply: HttpReply, masked: Masked) -> tuple[str, bool]:
    """(what the server says of a failure, in one line and without secrets; whether an account is used up)."""
    text = reply.body.decode("utf-8", "replace")
    with suppress(ValueError, RecursionError):
        text = error_text(json.loads(text), text)
    shown = _shortened(masked(text))
    exhausted = reply.status == http.client.TOO_MANY_REQUESTS and "insufficient_quota" in text
    said = f"{reply.status} {masked(reply.reason)[:SHOWN_CHARACTERS]}"
    return said + (f": {shown}" if shown else ""), exhausted


def _shortened(text: str) -> str:
    """A text without its middle: servers quote what was asked first and say last what is wrong with it."""
    if len(text) <= SHOWN_CHARACTERS:
        return text
    half = (SHOWN_CHARACTERS - 5) // 2
    return f"{text[:half]} ... {text[-half:]}"


def asked_to_wait(text: str, clock: Clock) -> float:
    """Seconds that a Retry-After header names, as a number or as a date; 0 for anything else."""
    with suppress(ValueError, OverflowError):
        seconds = float(text)
        return max(0.0, seconds) if math.isfinite(seconds) else 0.0
    with suppress(ValueError, TypeError):
        return max(0.0, parsedate_to_datetime(text).timestamp() - clock.wall())
    return 0.0


def error_text(answer: Any, otherwise: str) -> str:  # noqa: ANN401  (an error's body may be anything)
    """The message within an error, that of its root where it has one, with its code; otherwise: where there is none."""
    if isinstance(answer, dict):
        error = answer.get("error")
        if isinstance(error, dict):
            roots = error.get("root_cause")
            root = roots[0] if isinstance(roots, list) and roots and isinstance(roots[0], dict) else error
            code = root.get("code") or root.get("type")
            message = root.get("message") or root.get("reason") or root.get("msg")
            return f"{message}" + (f" ({code})" if code else "")
        for message in (error, answer.get("message"), answer.get("detail")):
            if message:
                return message if isinstance(message, str) else json.dumps(message)
    return otherwise


def _duration(seconds: float) -> str:
    minutes = round(min(seconds / 60, 60e6))
    return f"{minutes} minutes" if minutes < 120 else f"{minutes / 60:.1f} hours"
