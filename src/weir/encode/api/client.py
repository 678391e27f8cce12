"""Asks an embedding API over HTTP: again where that may help, never beyond the budget."""

from __future__ import annotations

import http.client
import json
import math
import re
import ssl
from contextlib import suppress
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any, NoReturn
from urllib.parse import quote

from weir.encode.api.http import AnswerTooLargeError, HttpReply, NotSentError, post
from weir.encode.api.limits import CONTINUES, Bucket, Clock, Limits, Spent, estimated
from weir.encode.api.providers import Ask, Provider, UnusableError, rows
from weir.encode.encoder import Float32
from weir.errors import ServiceError

__all__ = ["Client", "Key", "TooMuchError"]

_MOST_DENSE = 100  # times the estimate that a provider may count; more is no count of these texts
_LATER = {408, 425, 429, 500, 502, 503, 504, 529}
_MAYBE_SMALLER = {400, 413, 422}  # what servers answer to more texts or tokens at once than they take
_SHOWN = 300  # characters of a provider's message
_MOST_DIMENSIONS = 16_384  # of a vector whose dimension is not known yet
_NUMBER_BYTES = 64  # a number of an answer takes at most, its place on an indented line included
_TEXT_BYTES = 1 << 12  # an answer has at most for each text, beside its numbers
_REST_BYTES = 1 << 16  # an answer has at most beside what it has for each text


class TooMuchError(Exception):
    """The provider refuses these texts: perhaps too many at once, perhaps one of them; says its message."""


class _TryAgainError(Exception):
    """This request failed; the next may not. wait: seconds the server asks for."""

    def __init__(self, said: str, wait: float = 0.0) -> None:
        super().__init__(said)
        self.wait = wait


@dataclass(frozen=True)
class Key:
    """A key and the environment variable it comes from; both None where none is sent."""

    variable: str | None
    value: str | None = field(repr=False)

    def header(self) -> dict[str, str]:
        """The header that carries it; raises ServiceError where it is missing or cannot be a key."""
        if self.variable is None:
            return {}
        if not self.value:
            raise ServiceError(f"this needs a key: put it into the environment variable {self.variable}")
        if not re.fullmatch(r"[\x21-\x7e]+", self.value):
            raise ServiceError(f"the key in {self.variable} holds characters that no key has")
        return {"Authorization": f"Bearer {self.value}"}

    def masked(self, text: object) -> str:
        """What a server said, without the key, in one line."""
        shown = str(text)
        for written in {self.value or "", quote(self.value or "", safe="")} - {""}:
            shown = shown.replace(written, "***")
        return " ".join(shown.split())

    def hint(self) -> str:
        """Where it comes from, or how to give one."""
        if self.variable is None:
            return "no key was sent: key='NAME' names the environment variable that holds one"
        return f"the key was taken from {self.variable}"


@dataclass(eq=False)
class Client:
    """One API as one process uses it: its address, its key, and what was spent.

    dense: tokens the provider counts for one that is estimated, the most of any answer so far, at least 1.
    """

    provider: Provider
    url: str
    key: Key
    limits: Limits
    clock: Clock
    spent: Spent
    dense: float = 1.0

    def __post_init__(self) -> None:
        self._requests = Bucket(self.limits.requests_per_minute, self.clock)
        self._tokens = Bucket(self.limits.tokens_per_minute, self.clock)

    def room(self) -> int:
        """Estimated tokens the next request may have: what the provider takes and what the budget allows."""
        most, left = self.provider.tokens, self.limits.left(self.spent)
        return int((most if left is None else min(most, left)) / self.dense)

    def ask(self, ask: Ask, dimensions: int | None) -> Float32:
        """Vectors of the texts, float32[n, d], in their order.

        dimensions: what they must have, None where that is not known. Raises ServiceError where the budget
        ends, the provider refuses, or no attempt brings a usable answer; TooMuchError where it refuses these
        texts for what they are.
        """
        tokens = math.ceil(sum(map(estimated, ask.texts)) * self.dense)
        attempt = 1
        while True:
            self.limits.check(self.spent, tokens)
            self.spent.waited += self._requests.take(1) + self._tokens.take(tokens)
            try:
                return self._once(ask, tokens, dimensions)
            except _TryAgainError as error:
                self._pause(attempt, error)
                attempt += 1

    def _once(self, ask: Ask, tokens: int, dimensions: int | None) -> Float32:
        self.spent.requests += 1
        used = tokens  # what an answer that never came whole may have cost
        try:
            reply = self._posted(ask, dimensions)
            if reply.status // 100 != 2:
                used = 0
                self._refused(reply)
            answer = self.provider.read(json.loads(reply.body))
            if answer.tokens is not None and 0 < answer.tokens <= _MOST_DENSE * tokens:
                used = answer.tokens
                self.dense = max(self.dense, self.dense * used / tokens)
            found = rows(answer.vectors, len(ask.texts), dimensions)
        except UnusableError as error:
            which = "" if error.row is None else f"; its text begins {ask.texts[error.row][:60]!r}"
            raise _TryAgainError(f"{self.key.masked(error)}{which}") from None
        except AnswerTooLargeError as error:
            raise _TryAgainError(str(error)) from None
        except (ValueError, RecursionError):
            raise _TryAgainError("the answer is not JSON, or was cut") from None
        except NotSentError as error:
            used = 0
            self._failed(error.reason)
        except (http.client.HTTPException, OSError) as error:
            self._failed(error)
        finally:
            self.spent.tokens += used
            self._tokens.give(tokens - used)
        self.spent.texts += len(ask.texts)
        return found

    def _posted(self, ask: Ask, dimensions: int | None) -> HttpReply:
        body = json.dumps(self.provider.body(ask)).encode("ascii")
        numbers = _NUMBER_BYTES * (dimensions or _MOST_DIMENSIONS)
        most = _REST_BYTES + len(ask.texts) * (numbers + _TEXT_BYTES)
        return post(self.url, body, self._headers(), most, (self.limits.timeout, self.limits.whole))

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "weir"}
        return headers | self.key.header()

    def _pause(self, attempt: int, error: _TryAgainError) -> None:
        """Wait before the next attempt, or give up."""
        if attempt >= self.limits.attempts:
            raise ServiceError(f"{self.url}: {error} ({attempt} attempts); {CONTINUES}") from None
        backoff = self.limits.pause * 2.0 ** (attempt - 1) * (0.5 + self.clock.chance())
        wait = max(error.wait, min(backoff, self.limits.longest))
        if wait > self.limits.longest:
            raise ServiceError(
                f"{self.url}: {error}; the server asks to wait {_duration(wait)}; {CONTINUES}"
            ) from None
        self.spent.retries += 1
        self.spent.waited += wait
        self.clock.sleep(wait)

    def _refused(self, reply: HttpReply) -> NoReturn:
        """Raise what a status other than 200 means."""
        said, exhausted = self._message(reply)
        if reply.status in _LATER and not exhausted:
            raise _TryAgainError(said, self._asked_to_wait(reply.headers.get("Retry-After", "")))
        if reply.status in _MAYBE_SMALLER:
            raise TooMuchError(f"{self.url}: {said}")
        why = ""
        if reply.status in (401, 403):
            why = f"; {self.key.hint()}"
        elif 300 <= reply.status < 400:
            moved = self.key.masked(reply.headers.get("Location"))[:_SHOWN]
            why = f"; it moved to {moved}: give that address as base"
        elif exhausted:
            why = f"; {CONTINUES}"
        raise ServiceError(f"{self.url}: {said}{why}")

    def _failed(self, reason: Exception) -> NoReturn:
        """Raise what a connection that broke means."""
        if isinstance(reason, TimeoutError):
            raise _TryAgainError("no answer in time") from None
        if isinstance(reason, http.client.IncompleteRead):
            raise _TryAgainError("the answer was cut") from None
        said = (reason.strerror if isinstance(reason, OSError) else None) or str(reason)
        said = self.key.masked(said or type(reason).__name__)[:_SHOWN]
        if isinstance(reason, ssl.SSLCertVerificationError):
            raise ServiceError(f"{self.url}: {said}") from None
        raise _TryAgainError(said) from None

    def _message(self, reply: HttpReply) -> tuple[str, bool]:
        """(what the provider says, in one line and without the key; whether an account is used up)."""
        text = reply.body.decode("utf-8", "replace")
        with suppress(ValueError, RecursionError):
            text = _said(json.loads(text), text)
        shown = self.key.masked(text)[:_SHOWN]
        exhausted = reply.status == http.client.TOO_MANY_REQUESTS and "insufficient_quota" in text
        said = f"{reply.status} {self.key.masked(reply.reason)[:_SHOWN]}"
        return said + (f": {shown}" if shown else ""), exhausted

    def _asked_to_wait(self, text: str) -> float:
        """Seconds that a Retry-After header names, as a number or as a date; 0 for anything else."""
        with suppress(ValueError, OverflowError):
            seconds = float(text)
            return max(0.0, seconds) if math.isfinite(seconds) else 0.0
        with suppress(ValueError, TypeError):
            return max(0.0, parsedate_to_datetime(text).timestamp() - self.clock.wall())
        return 0.0


def _said(answer: Any, text: str) -> str:  # noqa: ANN401  (an error's body may be anything)
    """The message within a provider's error, with its code where there is one."""
    if isinstance(answer, dict):
        error = answer.get("error")
        if isinstance(error, dict):
            code = error.get("code") or error.get("type")
            return f"{error.get('message')}" + (f" ({code})" if code else "")
        for said in (error, answer.get("message"), answer.get("detail")):
            if said:
                return said if isinstance(said, str) else json.dumps(said)
    return text


def _duration(seconds: float) -> str:
    minutes = round(min(seconds / 60, 60e6))
    return f"{minutes} minutes" if minutes < 120 else f"{minutes / 60:.1f} hours"
