"""Requests that cost: within the budget, at the rate allowed, asked again where that may help, and counted."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from weir.errors import ServiceError
from weir.services.attempts import AttemptError, broken, refusal, until_answered
from weir.services.http import AnswerTooLargeError, HttpReply, HttpRequest, KeptConnection, NotSentError
from weir.services.keys import Key
from weir.services.limits import Bucket, Clock, Limits, Spent

__all__ = ["MOST_COUNTED", "MeteredClient", "MeteredRequest", "UnusableAnswerError"]

T = TypeVar("T")
NOBODY_STATUSES = {401, 402, 403, 404}
"""What servers answer to whoever may not ask, and to a model that is not there: to any request alike."""
MOST_COUNTED = 100
"""Times the estimate that a service may count; more is no count of these texts."""


class UnusableAnswerError(Exception):
    """An answer does not hold what was asked for; the next may."""


@dataclass(frozen=True)
class MeteredRequest(Generic[T]):
    """tokens: that it takes at most, by estimate, of which answer_tokens are the answer's; answer_bytes: at most; read:
    the answer and the tokens that the service counts, all and the answer's, None where it does not or
    cannot be believed; raises UnusableAnswerError."""

    sent: HttpRequest
    tokens: int
    answer_tokens: int
    answer_bytes: int
    read: Callable[[Any], tuple[T, tuple[int, int] | None]]


@dataclass(eq=False)
class MeteredClient:
    """A service as one process uses it; threads share it, each with a connection of its own.

    spent: what all services of this process took. What is out counts with its estimate, so that requests side by side
    stay within the budget together; one for which there may be room once others are back waits for them. tokens: what
    this one took, as the service counts them, or by estimate.
    """

    key: Key
    limits: Limits
    clock: Clock
    spent: Spent
    tokens: int = 0
    _out: int = 0
    _reserved: int = 0
    _turn: threading.Condition = field(default_factory=threading.Condition, repr=False)

    def __post_init__(self) -> None:
        self._requests = Bucket(self.limits.requests_per_minute, self.clock)
        self._tokens = Bucket(self.limits.tokens_per_minute, self.clock)

    def answered(
        self,
        connection: KeptConnection,
        request: MeteredRequest[T],
        retrying: Callable[[AttemptError], None],
    ) -> T:
        """What the service answers; retrying: told each attempt that is followed by another.

        Raises ServiceError where the budget ends or the service refuses whoever asks, AttemptError where no attempt
        brings a usable answer.
        """

        def once() -> T:
            self._reserve(request.tokens)
            used = (
                request.tokens,
                request.answer_tokens,
            )  # what an answer that never came whole may have cost
            try:
                waited = self._requests.take(1) + self._tokens.take(request.tokens)
                with self._turn:
                    self.spent.waited += waited
                found, used = self._once(connection, request)
                return found
            except _UnpaidError as error:
                used = (0, 0)
                raise error.reason from None
            finally:
                self._settle(request.tokens, used)

        def again(error: AttemptError, wait: float) -> None:
            retrying(error)
            with self._turn:
                self.spent.retries += 1
                self.spent.waited += wait

        return until_answered(once, self.limits, self.clock, again)

    def count_texts(self, count: int) -> None:
        """Note that so many texts were answered for."""
        with self._turn:
            self.spent.texts += count

    def _reserve(self, tokens: int) -> None:
        """Take room in the budget; waits for what is out where that may leave some, raises ServiceError where not."""
        with self._turn:
            while True:
                try:
                    self.limits.check(self.spent, tokens + self._reserved)
                    break
                except ServiceError:
                    if not self._out:
                        raise
                    self._turn.wait()
            self.spent.requests += 1
            self._out += 1
            self._reserved += tokens

    def _settle(self, tokens: int, used: tuple[int, int]) -> None:
        self._tokens.give(tokens - used[0])
        with self._turn:
            self._out -= 1
            self._reserved -= tokens
            self.tokens += used[0]
            self.spent.tokens += used[0]
            self.spent.answer_tokens += used[1]
            self._turn.notify_all()

    def _once(self, connection: KeptConnection, request: MeteredRequest[T]) -> tuple[T, tuple[int, int]]:
        """The answer, and the tokens that it took, all and the answer's."""
        try:
            limits = self.limits
            sent = replace(request.sent, keys=(self.key,))
            reply = connection.send(sent, request.answer_bytes, (limits.timeout, limits.whole))
            if reply.status // 100 != 2:
                raise _UnpaidError(self._refused(reply, request.sent.url))
            found, counted = request.read(json.loads(reply.body))
        except UnusableAnswerError as error:
            raise AttemptError("malformed", self.key.masked(error)) from None
        except AnswerTooLargeError as error:
            raise AttemptError("malformed", str(error)) from None
        except (ValueError, RecursionError):
            raise AttemptError("malformed", "the answer is not JSON, or was cut") from None
        except NotSentError as error:
            raise _UnpaidError(broken(error.reason, self.key.masked)) from None
        except (http.client.HTTPException, OSError) as error:
            raise broken(error, self.key.masked) from None
        return found, (request.tokens, request.answer_tokens) if counted is None else counted

    def _refused(self, reply: HttpReply, url: str) -> AttemptError | ServiceError:
        """What a status other than 2xx means."""
        error = refusal(reply, self.key.masked, self.clock)
        if reply.status in NOBODY_STATUSES:
            return ServiceError(f"{url}: {error}; {self.key.hint()}")
        return error


class _UnpaidError(Exception):
    """A request failed and cost nothing; reason: how."""

    def __init__(self, reason: AttemptError | ServiceError) -> None:
        super().__init__(str(reason))
        self.reason = reason
