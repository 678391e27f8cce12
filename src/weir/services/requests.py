"""Send HTTP requests with limits on bytes, time and money, retries, and keys masked in messages."""

from __future__ import annotations

import http.client
import json
import math
import random
import re
import ssl
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Generic, Literal, Never, Protocol, TypeAlias, TypeVar
from urllib.parse import quote, urlsplit

from weir.errors import BadValue, ServiceError
from weir.files.json_record import whole_number
from weir.files.masks import without_secret
from weir.files.network import (
    PIECE_BYTES,
    RETRYABLE_STATUSES,
    KeptConnection,
    NotSentError,
    is_this_machine,
    seconds_asked,
    seconds_before,
)
from weir.settings import KEY_VARIABLE, Settings, secret

if TYPE_CHECKING:
    from urllib3.response import BaseHTTPResponse

# ----------
# Keys: where they come from, how they are sent, and how they are masked.


@dataclass(frozen=True)
class Key:
    """A secret key and its environment variable; both None to send no key."""

    # A server may echo a key in an error, an answer or a model name. Masked are: the key itself; its characters
    # escaped for JSON, URLs or HTML; its hexadecimal and base 64 forms; each of these reversed or inside longer
    # text; and every piece of PIECE_CHARACTERS of a longer key. Not found: other encodings, encryption, shorter
    # pieces, and keys of fewer than KEY_CHARACTERS inside an answer, where they may be ordinary words.
    variable: str | None
    value: str | None = field(repr=False)
    """None, like for no key, if the variable is not set."""

    @staticmethod
    def of(variable: str | None) -> Key:
        """Return the key in an environment variable, whose value may be missing; no key for None."""
        return Key(variable or None, secret(variable) if variable else None)

    def checked(self) -> str:
        """Return the key's text; raises ServiceError if it is missing or malformed."""
        if not self.value:
            raise ServiceError(f"this needs a key: put it into the environment variable {self.variable}")
        if not re.fullmatch(r"[\x21-\x7e]+", self.value):
            raise ServiceError(f"the key in {self.variable} holds characters that no key has")
        return self.value

    def header(self) -> dict[str, str]:
        """Return the HTTP Authorization header, {} without a key; raises ServiceError for a missing or
        malformed value."""
        return {} if self.variable is None else {"Authorization": f"Bearer {self.checked()}"}

    def masked(self, text: object) -> str:
        """Return a server's text as one line, with the key replaced by ***."""
        shown = str(text)
        for written in {self.value or "", quote(self.value or "", safe="")} - {""}:
            shown = shown.replace(written, "***")
        shown = self.masked_answer(shown.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")
        return " ".join(shown.split())

    def masked_answer(self, data: bytes) -> bytes:
        """Return a response's body with the key masked."""
        return data if self.value is None else without_secret(data, self.value)

    def hint(self) -> str:
        """Return a clause for messages: the variable that the key was taken from, or how to name one."""
        if self.variable is None:
            return "no key was sent: `key='NAME'` names the environment variable that holds one"
        return f"the key was taken from {self.variable}"


# ----------
# Requests and the addresses that they may go to.


class AnswerTooLargeError(Exception):
    """A response's body exceeds the allowed number of bytes."""


@dataclass(frozen=True)
class HttpRequest:
    """An HTTP request to an absolute URL."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | None = None
    keys: Sequence[Key] = field(default=(), repr=False)
    """Keys sent in the headers, to be masked in the response."""


def check_key(key: object, usual: str, base: str | None) -> None:
    """Raise BadValue unless `key` names an environment variable whose value may be sent to an address.

    usual: the provider's own variable, for its own address only.
    base: another address, which gets keys from WEIR_KEY_... only; None for the provider's own.
    """
    if not isinstance(key, str) or not re.fullmatch(r"[A-Z_][A-Z0-9_]*", key):
        raise BadValue(f"key must name an environment variable, such as {usual}, not be the key itself")
    if key == usual and base is None:
        return
    if not re.fullmatch(KEY_VARIABLE, key):
        reason = f"{usual} goes to the provider's own address"
        if key != usual:
            reason = f"'{key}' is not sent anywhere"
        raise BadValue(f"key: {reason}; put the key for this one into WEIR_KEY_NAME and name that variable")


def check_address(name: str, address: object, plain: bool = False) -> None:
    """Raise BadValue unless `address` is an http(s) URL without user, query and fragment.

    name: setting, for the message.
    plain: permit unencrypted http to another machine.
    """
    try:
        parts = urlsplit(address) if isinstance(address, str) else urlsplit("")
        odd = parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc
        odd = odd or bool(parts.query or parts.fragment) or parts.port == 0
        odd = odd or not re.fullmatch(r"[\x21-\x7e]+", str(address))
    except ValueError:
        odd = True
    if odd:
        raise BadValue(
            f"{name} is not an address such as http://localhost:8080/v1, without user, key or question mark"
        )
    if parts.scheme == "http" and not plain and not is_this_machine(parts.hostname or ""):
        raise BadValue(f"{name} is {address}: http is allowed for localhost only; use https")


# ----------
# Budgets, rates and time limits of services.


CONTINUES = "finished work is kept; run the same command to resume"
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?(?:[eE]\+?\d+)?)\s+(requests|tokens|dollars)")

_PRICE = re.compile(r"(\d+(?:\.\d+)?)(?: in, *(\d+(?:\.\d+)?) out)?")


@dataclass(frozen=True)
class Clock:
    """Functions for time, waiting and random numbers."""

    now: Callable[[], float] = time.monotonic
    """Monotonic seconds."""
    wall: Callable[[], float] = time.time
    """Seconds since 1970."""
    sleep: Callable[[float], None] = time.sleep
    chance: Callable[[], float] = random.random
    """A random number in [0, 1)."""


@dataclass
class Spent:
    """Counts of requests, retries, texts and tokens sent to paid services, and seconds waited."""

    requests: int = 0
    """Requests, including retries."""
    retries: int = 0
    texts: int = 0
    tokens: int = 0
    """Tokens of requests and answers."""
    answer_tokens: int = 0
    waited: float = 0.0
    """Seconds."""


@cache
def paid() -> Spent:
    """Return the process's counter of use of paid services."""
    return Spent()


@dataclass(frozen=True)
class Limits:
    """Budget, rate and time limits of requests; raises BadValue for a budget in dollars without a price."""

    requests: int | None = None
    """Budget; None for no bound, also for tokens and dollars."""
    tokens: int | None = None
    dollars: float | None = None
    """Requires `price`."""
    price: float | None = None
    """Dollars per million tokens."""
    requests_per_minute: float | None = None
    """None for no bound, also for tokens."""
    tokens_per_minute: float | None = None
    timeout: float = 60.0
    """Seconds without any byte."""
    whole: float = 600.0
    """Seconds for a complete answer."""
    attempts: int = 6
    """Most attempts at a request."""
    pause: float = 1.0
    """Seconds before the second attempt, doubled before each later attempt."""
    longest: float = 300.0
    """Longest wait in seconds; a server that demands more ends the command."""
    answer_price: float | None = None
    """Dollars per million tokens of answers; None for `price`."""

    def __post_init__(self) -> None:
        if self.dollars is not None and self.price is None:
            raise BadValue(
                "a budget in dollars needs the price: WEIR_API_PRICE, in dollars for a million tokens"
            )

    @staticmethod
    def of(settings: Settings) -> Limits:
        """Return the limits set in environment variables; raises BadValue for unreadable values."""
        budget = _amounts("WEIR_API_BUDGET", settings.api_budget, ("requests", "tokens", "dollars"))
        rate = _amounts("WEIR_API_RATE", settings.api_rate, ("requests", "tokens"))
        text, prices = settings.api_price, list[float]()
        if text is not None:
            match = _PRICE.fullmatch(text)
            prices = [] if match is None else [float(price) for price in match.groups() if price is not None]
            if not prices or not all(price > 0 for price in prices):
                raise BadValue(
                    f"WEIR_API_PRICE is '{text}'; expected dollars for a million tokens, such as 0.02, or "
                    "'0.15 in, 0.6 out'"
                )
        return Limits(
            requests=None if (r := budget.get("requests")) is None else int(r),
            tokens=None if (t := budget.get("tokens")) is None else int(t),
            dollars=budget.get("dollars"),
            price=prices[0] if prices else None,
            answer_price=prices[1] if len(prices) > 1 else None,
            requests_per_minute=rate.get("requests"),
            tokens_per_minute=rate.get("tokens"),
        )

    def cost(self, tokens: int, answers: int = 0) -> float | None:
        """Return the dollars for `tokens`, including `answers` generated tokens; None without a price."""
        if self.price is None:
            return None
        dearer = 0.0 if self.answer_price is None else self.answer_price - self.price
        return (tokens * self.price + answers * dearer) / 1e6

    def remaining(self, spent: Spent) -> int | None:
        """Return the tokens left in the budgets of tokens and dollars; None without a bound."""
        bounds = [] if self.tokens is None else [self.tokens - spent.tokens]
        if self.dollars is not None and self.price:
            if self.answer_price is None:
                bounds.append(int(self.dollars / self.price * 1e6 + 1e-6) - spent.tokens)
            else:  # whichever tokens the next request takes
                dollars = self.dollars - (self.cost(spent.tokens, spent.answer_tokens) or 0.0)
                bounds.append(math.floor(dollars / max(self.price, self.answer_price) * 1e6 + 1e-6))
        return min(bounds, default=None)

    def check(self, spent: Spent, tokens: int) -> None:
        """Raise ServiceError, naming the amounts spent, if a request of `tokens` tokens would exceed the budget."""
        tokens_left = self.remaining(spent)
        if (self.requests is None or spent.requests < self.requests) and (
            tokens_left is None or tokens <= tokens_left
        ):
            return
        raise ServiceError(
            f"the budget of {self.budget()} ends here: spent {self.described(spent)}, the next request takes about "
            f"{tokens:,} tokens; {CONTINUES} (WEIR_API_BUDGET sets what one run may spend)"
        )

    def budget(self) -> str:
        """Return the budget in words, such as "100 requests and 5 dollars" or "no bound"."""
        amounts = [
            (self.requests, "{:,} requests"),
            (self.tokens, "{:,} tokens"),
            (self.dollars, "{:g} dollars"),
        ]
        return " and ".join(text.format(value) for value, text in amounts if value is not None) or "no bound"

    def described(self, spent: Spent) -> str:
        """Return the amounts spent in words, with their cost if a price is known."""
        text = f"{spent.tokens:,} tokens in {spent.requests:,} requests"
        cost = self.cost(spent.tokens, spent.answer_tokens)
        if cost is not None:
            text += f", {cost:.4g} dollars at {self.price:g} a million tokens"
            text += "" if self.answer_price is None else f", {self.answer_price:g} a million of answers"
        return text


@dataclass
class Bucket:
    """A token bucket shared by threads: `rate` per minute (None: unlimited), in bursts of up to a sixth of it."""

    rate: float | None
    clock: Clock
    _level: float = field(init=False, default=0.0)
    _since: float = field(init=False, default=0.0)
    _turn: threading.Lock = field(init=False, default_factory=threading.Lock, repr=False)

    def __post_init__(self) -> None:
        self._level = (self.rate or 0.0) / 6
        self._since = self.clock.now()

    def take(self, amount: float) -> float:
        """Wait until `amount` is available, take it, and return the seconds waited; 0.0 without a rate.

        More than the capacity waits for a full bucket, and delays later callers.
        """
        if self.rate is None:
            return 0.0
        with self._turn:
            self._fill()
            short = min(amount, self.rate / 6) - self._level
            wait = max(0.0, short * 60 / self.rate)
            if wait:
                self.clock.sleep(wait)
                self._fill()
            self._level -= amount
        return wait

    def give(self, amount: float) -> None:
        """Put back an unused amount; a negative amount is taken."""
        with self._turn:
            self._level += amount

    def _fill(self) -> None:
        now, rate = self.clock.now(), self.rate or 0.0
        self._level = min(rate / 6, self._level + (now - self._since) * rate / 60)
        self._since = now


def estimated(text: str) -> int:
    """Return an upper estimate of a text's tokens: a third of its UTF-8 bytes, plus 1."""
    return len(text.encode("utf-8", "surrogatepass")) // 3 + 1


def shortened(passage: str, max_length: int | None) -> str:
    """Return the beginning of a text with at most `max_length` estimated tokens; all of it for None."""
    if max_length is None or estimated(passage) <= max_length:
        return passage
    return passage.encode("utf-8", "replace")[: 3 * max_length - 1].decode("utf-8", "ignore")


def _amounts(variable: str, text: str | None, units: tuple[str, ...]) -> dict[str, float]:
    amounts: dict[str, float] = {}
    for part in text.split(",") if text else ():
        match = _AMOUNT.fullmatch(part.strip())
        if match is None or match[2] not in units:
            kinds = " or ".join(units)
            raise BadValue(f"{variable} is '{text}'; expected numbers of {kinds}, such as '100 {units[0]}'")
        amounts[match[2]] = float(match[1])
    if not all(value > 0 for value in amounts.values()):
        raise BadValue(f"{variable} is '{text}'; expected numbers above 0")
    return amounts


# ----------
# Retries: after which failures, after how long, how often.


SHOWN_CHARACTERS = 300

FailureKind: TypeAlias = Literal["refused", "failed", "timed out", "malformed"]
"""refused: status 4xx; failed: 5xx, or a broken connection or program; malformed: an unusable answer."""
Redactor: TypeAlias = Callable[[object], str]
"""Returns a text in one line with secrets masked."""
T = TypeVar("T")


@dataclass(eq=False)
class AttemptError(Exception):
    """A failed attempt at a request, and whether and when to try again."""

    kind: FailureKind
    message: str
    wait: float = 0.0
    """Seconds the server asks to wait."""
    again: bool = True
    """True if the next attempt may succeed."""
    status: int = 0
    """The HTTP status, 0 without an answer."""
    free: bool = False
    """True if the service cannot have charged for it."""
    absent: bool = False
    """True if nothing listens at the address, and it never answered this process."""
    attempts: int = field(default=1, init=False)
    """Number of attempts; set when the last one has failed."""

    def __str__(self) -> str:
        return self.message


ABSENT_ATTEMPTS = 3
"""Attempts at a server that refuses connections and never answered; it may be starting."""


@cache
def _present() -> set[str]:
    return set()


def retry(
    attempt: Callable[[], T], limits: Limits, clock: Clock, retried: Callable[[AttemptError, float], None]
) -> T:
    """Return the result of `attempt`, called again after each temporary AttemptError.

    retried: called with each such error and the seconds before the next attempt.

    Raises the last AttemptError at the limits, ServiceError for a server that refuses connections, and other
    errors of `attempt`.
    """
    number = 0
    while True:
        number += 1
        try:
            return attempt()
        except AttemptError as error:
            error.attempts = number
            if not error.again:
                raise
            if error.absent and number >= min(ABSENT_ATTEMPTS, limits.attempts):
                raise ServiceError(str(error)) from None
            wait = seconds_before(number + 1, limits.pause, limits.longest, error.wait, clock.chance())
            reason = ""
            if number >= limits.attempts:
                reason = f" ({number} attempts)"
            elif wait > limits.longest:
                minutes = round(min(wait / 60, 60e6))
                duration = f"{minutes} minutes" if minutes < 120 else f"{minutes / 60:.1f} hours"
                reason = f"; the server asks to wait {duration}"
            if reason:
                last = AttemptError(error.kind, f"{error}{reason}; {CONTINUES}", again=False)
                last.attempts = number
                raise last from error
            retried(error, wait)
        if wait:
            clock.sleep(wait)


def exchange(
    connection: KeptConnection,
    request: HttpRequest,
    max_bytes: int,
    time_limits: tuple[float, float],
    masked: Redactor,
    clock: Clock,
) -> bytes:
    """Return the body of a response with status 2xx, keys masked; redirects are not followed.

    max_bytes: most bytes of the body.
    time_limits: seconds without any byte, seconds for the whole exchange.
    masked: masks secrets in messages.

    Raises AttemptError for a broken connection or another status, AnswerTooLargeError beyond `max_bytes`.
    """
    silence, whole = time_limits
    try:
        with connection.open(
            request.method, request.url, request.headers, request.body, silence=silence, whole=whole
        ) as response:
            good, data = response.status // 100 == 2, bytearray()
            while (good or len(data) < PIECE_BYTES) and (piece := response.read1(PIECE_BYTES)):
                data += piece
                if good and len(data) > max_bytes:
                    raise AnswerTooLargeError(f"the answer has more than {max_bytes:,} bytes")
    except NotSentError as error:
        parts = urlsplit(request.url)
        if isinstance(error.reason, ConnectionRefusedError) and parts.netloc not in _present():
            message = f"{parts.scheme}://{parts.netloc}: Connection refused, nothing listens there"
            message += "; start the server, or correct the address"
            raise AttemptError("failed", message, free=True, absent=True) from None
        raise _broken(error.reason, masked, free=True) from None
    except (http.client.HTTPException, OSError) as error:
        raise _broken(error, masked, free=False) from None
    _present().add(urlsplit(request.url).netloc)
    body = bytes(data)
    for key in request.keys:
        body = key.masked_answer(body)
    return body if good else _refused(response, body, masked, clock)


def _refused(response: BaseHTTPResponse, body: bytes, masked: Redactor, clock: Clock) -> Never:
    status, text = response.status, body.decode("utf-8", "replace")
    with suppress(ValueError, RecursionError):
        text = error_text(parsed_answer(text), text)
    exhausted = status == http.client.TOO_MANY_REQUESTS and "insufficient_quota" in text
    shown = masked(text)
    if len(shown) > SHOWN_CHARACTERS:  # servers quote the request first and say last what is wrong with it
        half = (SHOWN_CHARACTERS - 5) // 2
        shown = f"{shown[:half]} ... {shown[-half:]}"
    message = f"{status} {masked(response.reason)[:SHOWN_CHARACTERS]}" + (f": {shown}" if shown else "")
    if exhausted:
        message = f"{message}; {CONTINUES}"
    elif 300 <= status < 400:
        location = masked(response.headers.get("Location"))[:SHOWN_CHARACTERS]
        message = f"{message}; it moved to {location}: give that address"
    again = status in RETRYABLE_STATUSES and not exhausted
    wait = seconds_asked(response.headers.get("Retry-After"), clock.wall()) if again else 0.0
    raise AttemptError("failed" if status >= 500 else "refused", message, wait, again, status, free=True)


def parsed_answer(data: bytes | str) -> Any:  # noqa: ANN401  whatever a server says
    """Return a response parsed as JSON; raises ValueError for bad JSON, a repeated name in an object, or too
    many digits."""
    return json.loads(data, parse_int=whole_number, object_pairs_hook=_members)


def _members(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a name twice in one object")
    return members


def _broken(reason: Exception, masked: Redactor, free: bool) -> AttemptError:
    if isinstance(reason, TimeoutError):
        return AttemptError("timed out", "no answer in time", free=free)
    if isinstance(reason, http.client.IncompleteRead):
        return AttemptError("malformed", "the answer was cut", free=free)
    message = (reason.strerror if isinstance(reason, OSError) else None) or str(reason)
    message = masked(message or type(reason).__name__)[:SHOWN_CHARACTERS]
    again = not isinstance(reason, ssl.SSLCertVerificationError)
    return AttemptError("failed", message, again=again, free=free)


def error_text(answer: Any, otherwise: str) -> str:  # noqa: ANN401  (an error's body may be anything)
    """Return the message and code in an error's JSON body, preferably the root cause's; else `otherwise`."""
    if isinstance(answer, dict):
        error = answer.get("error")
        if isinstance(error, dict):
            roots = error.get("root_cause")
            root = roots[0] if isinstance(roots, list) and roots and isinstance(roots[0], dict) else error
            while root.get("reason") == "" and isinstance(root.get("caused_by"), dict):
                root = root["caused_by"]
            code = root.get("code") or root.get("type")
            message = root.get("message") or root.get("reason") or root.get("msg")
            return f"{message}" + (f" ({code})" if code else "")
        for message in (error, answer.get("message"), answer.get("detail")):
            if message:
                return message if isinstance(message, str) else json.dumps(message)
    return otherwise


# ----------
# Requests that cost: within the budget, at the rate allowed, retried and counted.


MAYBE_SMALLER = {400, 413, 422}
"""Statuses of servers that get more texts or tokens than they take at once."""
NOBODY_STATUSES = {401, 402, 403, 404}
"""Statuses that every request would get, as for a bad key or a missing model."""
MOST_COUNTED = 100
"""Largest believed ratio of a service's token count to our estimate."""


def is_believed(counted: int | None, tokens: int) -> bool:
    """Return True if a service's token count is above 0 and at most 100 times our estimate."""
    return counted is not None and 0 < counted <= MOST_COUNTED * tokens


class UnusableAnswerError(Exception):
    """A response lacks the requested content; another attempt may succeed."""

    def __init__(self, message: str, text: int | None = None) -> None:
        super().__init__(message)
        # Number of the text with a wrong value.
        self.text = text


@dataclass(frozen=True)
class MeteredRequest(Generic[T]):
    """A request with upper estimates of the tokens that it costs."""

    http: HttpRequest
    tokens: int
    """Tokens of request and answer."""
    answer_tokens: int
    answer_bytes: int
    read: Callable[[Any], tuple[T, tuple[int, int] | None]]
    """Returns (parsed answer, (all tokens, tokens of the answer) as the service counts them); the counts are
    None if missing or implausible. Raises UnusableAnswerError."""


class BudgetLedger(Protocol):
    """Reserves budget for requests before they are sent, for a process or a cluster."""

    def reserve(self, service: str, limits: Limits, tokens: int) -> tuple[int, float]:
        """Reserve budget and rate for a request, and return (reservation number, seconds waited).

        service: name of the server, whose requests share a rate.
        tokens: upper estimate for request and answer.

        Raises ServiceError if the budget is exhausted.
        """

    def settle(self, number: int, used: tuple[int, int]) -> None:
        """Replace a reservation by the tokens used: (all tokens, tokens of the answer)."""


LEDGER: ContextVar[BudgetLedger | None] = ContextVar("LEDGER", default=None)
"""The cluster's ledger; None if each process has its own budget and rate."""


@dataclass(frozen=True)
class _Reservation:
    service: str
    tokens: int
    ends: float


@dataclass(eq=False)
class Ledger:
    """Budgets and rates in memory, shared by the threads of a process; in a cluster by one actor."""

    # Requests under way count with their estimate, so that together they stay within the budget; a request that
    # may fit once others return waits for them. A reservation never settled (its process was killed) counts as
    # used once its request must have ended.
    spent: Spent
    clock: Clock
    _open: dict[int, _Reservation] = field(default_factory=dict)
    _buckets: dict[str, tuple[Bucket, Bucket]] = field(default_factory=dict)
    _number: int = 0
    _turn: threading.Condition = field(default_factory=threading.Condition, repr=False)

    def reserve(self, service: str, limits: Limits, tokens: int) -> tuple[int, float]:
        with self._turn:
            while True:
                self._close_abandoned()
                try:
                    reserved = sum(one.tokens for one in self._open.values())
                    limits.check(self.spent, tokens + reserved)
                    break
                except ServiceError:
                    if not self._open:
                        raise
                    self._turn.wait(SETTLED_SECONDS)
            self._number += 1
            number = self._number
            self.spent.requests += 1
            self._open[number] = _Reservation(service, tokens, math.inf)
            if service not in self._buckets:
                self._buckets[service] = (
                    Bucket(limits.requests_per_minute, self.clock),
                    Bucket(limits.tokens_per_minute, self.clock),
                )
            requests, rate = self._buckets[service]
        try:
            waited = requests.take(1) + rate.take(tokens)
        except BaseException:
            self.settle(number, (tokens, 0))
            raise
        with self._turn:
            ends = self.clock.now() + ABANDONED_FACTOR * limits.whole
            self._open[number] = _Reservation(service, tokens, ends)
        return number, waited

    def settle(self, number: int, used: tuple[int, int]) -> None:
        """Replace a reservation by the tokens used, (all, of the answer); ignore an abandoned reservation."""
        with self._turn:
            one = self._open.pop(number, None)
            if one is None:
                return
            self.spent.tokens += used[0]
            self.spent.answer_tokens += used[1]
            self._buckets[one.service][1].give(one.tokens - used[0])
            self._turn.notify_all()

    def _close_abandoned(self) -> None:
        for number, one in list(self._open.items()):
            if self.clock.now() > one.ends:
                del self._open[number]
                self.spent.tokens += one.tokens


SETTLED_SECONDS = 30.0
"""Interval at which waiting requests look for abandoned reservations."""
ABANDONED_FACTOR = 2.0
"""A reservation is abandoned after this multiple of the time limit of an answer."""


@dataclass(eq=False)
class MeteredClient:
    """A client of a paid service; threads share it, each with its own connection."""

    key: Key
    limits: Limits
    clock: Clock
    spent: Spent
    """Use of all services by this process."""
    tokens: int = 0
    """Tokens spent on this service, by its count or by estimate."""
    ledger: BudgetLedger = field(init=False)
    _turn: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def __post_init__(self) -> None:
        self.ledger = LEDGER.get() or Ledger(self.spent, self.clock)

    def answered(
        self, connection: KeptConnection, request: MeteredRequest[T], retried: Callable[[AttemptError], None]
    ) -> T:
        """Return the service's parsed answer, after retries.

        Raises ServiceError for an exhausted budget, a refused key or model, or an unreachable server;
        AttemptError if no attempt brings a usable answer.
        """

        masked, time_limits = self.key.masked, (self.limits.timeout, self.limits.whole)
        sent = replace(request.http, keys=(self.key,))
        service = urlsplit(request.http.url).netloc

        def attempt() -> T:
            number, waited = self.ledger.reserve(service, self.limits, request.tokens)
            # What an answer that never came whole may have cost.
            used = (request.tokens, request.answer_tokens)
            try:
                with self._turn:
                    self.spent.waited += waited
                body = exchange(connection, sent, request.answer_bytes, time_limits, masked, self.clock)
                answer, counted = request.read(parsed_answer(body))
                used = used if counted is None else counted
                return answer
            except AttemptError as error:
                used = (0, 0) if error.free else used
                if error.status in NOBODY_STATUSES:
                    raise ServiceError(f"{request.http.url}: {error}; {self.key.hint()}") from None
                raise
            except UnusableAnswerError as error:
                raise AttemptError("malformed", masked(error)) from None
            except AnswerTooLargeError as error:
                raise AttemptError("malformed", str(error)) from None
            except (ValueError, RecursionError):
                raise AttemptError("malformed", "the answer is not JSON, or was cut") from None
            finally:
                self.ledger.settle(number, used)
                with self._turn:
                    self.tokens += used[0]

        def count_retry(error: AttemptError, wait: float) -> None:
            retried(error)
            with self._turn:
                self.spent.retries += 1
                self.spent.waited += wait

        return retry(attempt, self.limits, self.clock, count_retry)

    def count_texts(self, count: int) -> None:
        """Add to the number of answered texts."""
        with self._turn:
            self.spent.texts += count
