"""Asks an embedding API over HTTP: again where that may help, never beyond the budget."""

from __future__ import annotations

import http.client
import json
import math
from dataclasses import dataclass
from typing import NoReturn

from weir.encode.api.providers import Ask, Provider, UnusableError, rows
from weir.encode.encoder import Float32
from weir.errors import ServiceError
from weir.services.attempts import AttemptError, broken, refusal, until_answered
from weir.services.http import AnswerTooLargeError, HttpReply, NotSentError, post
from weir.services.keys import Key
from weir.services.limits import Bucket, Clock, Limits, Spent, estimated

__all__ = ["Client", "TooMuchError"]

_MOST_DENSE = 100  # times the estimate that a provider may count; more is no count of these texts
_MAYBE_SMALLER = {400, 413, 422}  # what servers answer to more texts or tokens at once than they take
_MOST_DIMENSIONS = 16_384  # of a vector whose dimension is not known yet
_NUMBER_BYTES = 64  # a number of an answer takes at most, its place on an indented line included
_TEXT_BYTES = 1 << 12  # an answer has at most for each text, beside its numbers
_REST_BYTES = 1 << 16  # an answer has at most beside what it has for each text


class TooMuchError(Exception):
    """The provider refuses these texts: perhaps too many at once, perhaps one of them; says its message."""


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

        def once() -> Float32:
            self.limits.check(self.spent, tokens)
            self.spent.waited += self._requests.take(1) + self._tokens.take(tokens)
            return self._once(ask, tokens, dimensions)

        try:
            return until_answered(once, self.limits, self.clock, self._retrying)
        except AttemptError as error:
            raise ServiceError(f"{self.url}: {error}") from None

    def _retrying(self, _: AttemptError, wait: float) -> None:
        self.spent.retries += 1
        self.spent.waited += wait

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
            raise AttemptError("malformed", f"{self.key.masked(error)}{which}") from None
        except AnswerTooLargeError as error:
            raise AttemptError("malformed", str(error)) from None
        except (ValueError, RecursionError):
            raise AttemptError("malformed", "the answer is not JSON, or was cut") from None
        except NotSentError as error:
            used = 0
            raise broken(error.reason, self.key.masked) from None
        except (http.client.HTTPException, OSError) as error:
            raise broken(error, self.key.masked) from None
        finally:
            self.spent.tokens += used
            self._tokens.give(tokens - used)
        self.spent.texts += len(ask.texts)
        return found

    def _posted(self, ask: Ask, dimensions: int | None) -> HttpReply:
        body = json.dumps(self.provider.body(ask)).encode("ascii")
        numbers = _NUMBER_BYTES * (dimensions or _MOST_DIMENSIONS)
        most = _REST_BYTES + len(ask.texts) * (numbers + _TEXT_BYTES)
        limits = (self.limits.timeout, self.limits.whole)
        return post(self.url, body, self._headers(), most, limits, (self.key,))

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "weir"}
        return headers | self.key.header()

    def _refused(self, reply: HttpReply) -> NoReturn:
        """Raise what a status other than 200 means."""
        error = refusal(reply, self.key.masked, self.clock)
        if reply.status in _MAYBE_SMALLER:
            raise TooMuchError(f"{self.url}: {error}")
        if reply.status in (401, 403):
            raise ServiceError(f"{self.url}: {error}; {self.key.hint()}")
        raise error
