"""Requests over HTTP: bounded in bytes, time and money, and retried; keys, which no message shows."""

from __future__ import annotations

import http.client
import json
import math
import random
import re
import select
import ssl
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cache
from ipaddress import IPv4Address, ip_address
from socket import SHUT_RDWR
from socket import socket as Socket
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar
from urllib.parse import SplitResult, quote, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from weir.errors import BadValue, ServiceError
from weir.files.masks import without_secret
from weir.files.retry_after import seconds_asked
from weir.settings import KEY_VARIABLE, NUMBER_DIGITS, Settings, secret

# ----------
# Keys: where they come from, how they are sent, and how they are masked.


@dataclass(frozen=True)
class Key:
    """A key and the environment variable it comes from; both None where none is sent.

    A server may send a key back: in an error, in an answer, as the name of its model. What is masked is the key as it
    stands, with its characters written as JSON, an address or HTML may write them, in hexadecimal digits and in base
    64, forwards or backwards, alone or within a longer text; and, of a key of more than PIECE_CHARACTERS, every piece
    of so many characters. What is not found: a key in another encoding, encrypted, or cut into shorter pieces; and a
    key of fewer than KEY_CHARACTERS within an answer, where it may be a word like any other.
    """

    variable: str | None
    value: str | None = field(repr=False)

    @staticmethod
    def of(variable: str | None) -> Key:
        """The key that an environment variable holds; None for no key."""
        return Key(variable or None, secret(variable) if variable else None)

    def checked(self) -> str:
        """The key; raises ServiceError where it is missing or cannot be one."""
        if not self.value:
            raise ServiceError(f"this needs a key: put it into the environment variable {self.variable}")
        if not re.fullmatch(r"[\x21-\x7e]+", self.value):
            raise ServiceError(f"the key in {self.variable} holds characters that no key has")
        return self.value

    def header(self) -> dict[str, str]:
        """The header that carries it as a bearer, none where there is no key; raises ServiceError as `checked`."""
        return {} if self.variable is None else {"Authorization": f"Bearer {self.checked()}"}

    def masked(self, text: object) -> str:
        """What a server said, without the key, in one line."""
        shown = str(text)
        for written in {self.value or "", quote(self.value or "", safe="")} - {""}:
            shown = shown.replace(written, "***")
        shown = self.masked_answer(shown.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")
        return " ".join(shown.split())

    def masked_answer(self, data: bytes) -> bytes:
        """The bytes of an answer without the key, whatever is made of them."""
        return data if self.value is None else without_secret(data, self.value)

    def hint(self) -> str:
        """Where it comes from, or how to give one."""
        if self.variable is None:
            return "no key was sent: key='NAME' names the environment variable that holds one"
        return f"the key was taken from {self.variable}"


# ----------
# HTTP exchanges, bounded in bytes and in time; redirects are not followed.


_PIECE_BYTES = 1 << 16  # bytes read at a time
_WATCH_SECONDS = 0.1
CONNECT_SECONDS = 60.0
"""How long a connection may take to open, however patient its requests are."""


@dataclass(frozen=True)
class HttpReply:
    """What a server answered: status, its reason phrase, headers, and the body or its beginning."""

    status: int
    reason: str
    headers: http.client.HTTPMessage
    body: bytes


class NotSentError(Exception):
    """The connection failed before all was sent; reason: how."""

    def __init__(self, reason: OSError) -> None:
        super().__init__(str(reason))
        self.reason = reason


class AnswerTooLargeError(Exception):
    """The body has more bytes than it may have."""


def is_this_machine(host: str) -> bool:
    """Whether a host is this machine by its name alone: localhost, 127.0.0.0/8 or ::1."""
    with suppress(ValueError):
        address = ip_address(host)
        return address.is_loopback if isinstance(address, IPv4Address) else str(address) == "::1"
    return host.lower() == "localhost"


@dataclass(frozen=True)
class HttpRequest:
    """What is sent: method, an absolute address, headers, and a body where there is one.

    keys: those among the headers; they are masked in the answer before anybody sees it.
    """

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | None = None
    keys: Sequence[Key] = field(default=(), repr=False)


@dataclass(eq=False)
class KeptConnection:
    """A connection that stays open between the exchanges of one thread, as long as both sides are in step.

    A thread of its own closes it where an answer takes too long, however its bytes trickle.
    """

    _open: http.client.HTTPConnection | None = None
    _to: tuple[str, str] = ("", "")
    _busy: Socket | None = None
    _ends: float = math.inf  # when the exchange has to be over
    _late: bool = False
    _closed: threading.Event = field(default_factory=threading.Event)
    _watcher: threading.Thread | None = None

    def send(self, request: HttpRequest, max_bytes: int, time_limits: tuple[float, float]) -> HttpReply:
        """Send and read the answer: whole where its status is 2xx, else its first 64 KiB.

        The keys that were sent are masked in it. max_bytes: of a whole answer. time_limits: seconds without any byte
        (to connect, CONNECT_SECONDS at most), and seconds from the last byte sent to the last received. A proxy that
        the environment names (HTTPS_PROXY) carries https, but not to localhost. Raises NotSentError where the body did
        not leave; AnswerTooLargeError; TimeoutError for either limit; OSError and HTTPException where the connection
        breaks.
        """
        silence, whole = time_limits
        parts = urlsplit(request.url)
        opened, connection = self._open, self._connected(parts, silence)
        self._open, self._late = None, False
        try:
            try:
                path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
                if connection is not opened:
                    connection.connect()
                    connection.sock.settimeout(silence)
                connection.request(request.method, path, request.body, dict(request.headers))
            except OSError as error:
                raise NotSentError(error) from error
            self._busy, self._ends = connection.sock, time.monotonic() + whole
            if self._watcher is None:
                self._watcher = threading.Thread(target=self._keep_watch, daemon=True)
                self._watcher.start()
            with connection.getresponse() as response:
                reply = _read(response, max_bytes)
                in_step = (response.isclosed() or response.length == 0) and not response.will_close
        except BaseException as error:
            self._ends = math.inf
            connection.close()
            if self._late and isinstance(error, (OSError, http.client.HTTPException, ValueError)):
                raise TimeoutError from None
            raise
        self._ends = math.inf
        if in_step and not self._late:
            self._open = connection
        else:
            connection.close()
        body, reason = reply.body, reply.reason
        for key in request.keys:
            body, reason = key.masked_answer(body), key.masked(reason)
        return replace(reply, body=body, reason=reason)

    def close(self) -> None:
        """Close the connection, also in the middle of an exchange of another thread, which then fails."""
        self._closed.set()
        if self._open is not None:
            self._open.close()
            self._open = None
        elif self._ends != math.inf:
            self._shut_down()

    def _connected(self, parts: SplitResult, silence: float) -> http.client.HTTPConnection:
        """The open connection, where it leads there and the server did not close it; else another."""
        to, open_connection = (parts.scheme, parts.netloc), self._open
        # What arrived before anything was asked is the end of the connection, or no answer.
        if (
            open_connection is not None
            and self._to == to
            and not select.select([open_connection.sock], [], [], 0)[0]
        ):
            return open_connection
        if open_connection is not None:
            open_connection.close()
        self._to = to
        host, port, patience = parts.hostname or "", parts.port, min(silence, CONNECT_SECONDS)
        if parts.scheme == "http":
            return http.client.HTTPConnection(host, port, timeout=patience)
        proxy = None if is_this_machine(host) or proxy_bypass(host) else getproxies().get("https")
        if not proxy:
            return http.client.HTTPSConnection(host, port, timeout=patience)
        via = urlsplit(proxy if "//" in proxy else f"//{proxy}")
        connection = http.client.HTTPSConnection(via.hostname or "", via.port, timeout=patience)
        user = f"{unquote(via.username or '')}:{unquote(via.password or '')}".encode()
        headers = {"Proxy-Authorization": f"Basic {b64encode(user).decode()}"} if via.username else {}
        connection.set_tunnel(host, port, headers)
        return connection

    def _keep_watch(self) -> None:
        while not self._closed.wait(_WATCH_SECONDS):
            if time.monotonic() > self._ends:
                self._late = True
                self._shut_down()

    def _shut_down(self) -> None:
        if self._busy is not None:
            with suppress(OSError):  # it is closed already
                self._busy.shutdown(SHUT_RDWR)


def _read(response: http.client.HTTPResponse, max_bytes: int) -> HttpReply:
    """The answer: whole where its status is 2xx, else its beginning."""
    good, pieces, size = response.status // 100 == 2, [], 0
    while (good or size < _PIECE_BYTES) and (piece := response.read1(_PIECE_BYTES)):
        size += len(piece)
        if good and size > max_bytes:
            raise AnswerTooLargeError(f"the answer has more than {max_bytes:,} bytes")
        pieces.append(piece)
    if good and response.length:  # what was promised and did not come
        raise http.client.IncompleteRead(b"", response.length)
    return HttpReply(response.status, response.reason, response.headers, b"".join(pieces))


def check_key(key: object, usual: str, base: str | None) -> None:
    """Raise BadValue for an environment variable that is not there to be sent to that address."""
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
    """Raise BadValue for what is no address, and for plain http to another machine unless `plain` allows it.

    name: what messages call it.
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
    """Time as the client sees it: seconds since some moment and since 1970, waiting, and chance in [0, 1)."""

    now: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep
    chance: Callable[[], float] = random.random


@dataclass
class Spent:
    """What was asked of a service so far: requests (retries among them), texts and tokens, those of answers
    among them; seconds waited."""

    requests: int = 0
    retries: int = 0
    texts: int = 0
    tokens: int = 0
    answer_tokens: int = 0
    waited: float = 0.0


@cache
def paid() -> Spent:
    """What this process spent on paid services: one budget for all of them."""
    return Spent()


@dataclass(frozen=True)
class Limits:
    """What may be spent by one process, how fast, and how patiently.

    requests, tokens, dollars: the budget, None for no bound; dollars need a price, in dollars for a million tokens;
    answer_price: that of tokens which a model says, None for the same. requests_per_minute, tokens_per_minute: None for
    as fast as answers come. timeout: seconds without any byte; whole: seconds that one answer may take in all;
    attempts: of one request; pause: seconds before the second attempt, doubled for each further one; longest: seconds
    to wait at most, a server that asks for more ends the command.
    """

    requests: int | None = None
    tokens: int | None = None
    dollars: float | None = None
    price: float | None = None
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    timeout: float = 60.0
    whole: float = 600.0
    attempts: int = 6
    pause: float = 1.0
    longest: float = 300.0
    answer_price: float | None = None

    def __post_init__(self) -> None:
        if self.dollars is not None and self.price is None:
            raise BadValue(
                "a budget in dollars needs the price: WEIR_API_PRICE, in dollars for a million tokens"
            )

    @staticmethod
    def of(settings: Settings) -> Limits:
        """The limits that the environment sets; raises BadValue for what cannot be read."""
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
        """Dollars for so many tokens, of which so many are a model's answers; None where no price is stated."""
        if self.price is None:
            return None
        dearer = 0.0 if self.answer_price is None else self.answer_price - self.price
        return (tokens * self.price + answers * dearer) / 1e6

    def remaining(self, spent: Spent) -> int | None:
        """Tokens that the budget still allows, None for any number."""
        bounds = [] if self.tokens is None else [self.tokens - spent.tokens]
        if self.dollars is not None and self.price:
            if self.answer_price is None:
                bounds.append(int(self.dollars / self.price * 1e6 + 1e-6) - spent.tokens)
            else:  # whichever tokens the next request takes
                dollars = self.dollars - (self.cost(spent.tokens, spent.answer_tokens) or 0.0)
                bounds.append(math.floor(dollars / max(self.price, self.answer_price) * 1e6 + 1e-6))
        return min(bounds, default=None)

    def check(self, spent: Spent, tokens: int) -> None:
        """Raise ServiceError, saying what was spent, where a request of so many tokens goes beyond the budget."""
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
        """The budget in words."""
        amounts = [
            (self.requests, "{:,} requests"),
            (self.tokens, "{:,} tokens"),
            (self.dollars, "{:g} dollars"),
        ]
        return " and ".join(text.format(value) for value, text in amounts if value is not None) or "no bound"

    def described(self, spent: Spent) -> str:
        """What was spent, in words."""
        text = f"{spent.tokens:,} tokens in {spent.requests:,} requests"
        cost = self.cost(spent.tokens, spent.answer_tokens)
        if cost is not None:
            text += f", {cost:.4g} dollars at {self.price:g} a million tokens"
            text += "" if self.answer_price is None else f", {self.answer_price:g} a million of answers"
        return text


@dataclass
class Bucket:
    """A token bucket: `rate` a minute, of which ten seconds' worth may come at once; None lets all through.

    Threads may share it: they wait one behind the other.
    """

    rate: float | None
    clock: Clock
    _level: float = field(init=False, default=0.0)
    _since: float = field(init=False, default=0.0)
    _turn: threading.Lock = field(init=False, default_factory=threading.Lock, repr=False)

    def __post_init__(self) -> None:
        self._level = (self.rate or 0.0) / 6
        self._since = self.clock.now()

    def take(self, amount: float) -> float:
        """Wait until so much may go, and take it; returns the seconds waited.

        An amount above what the bucket holds goes when it is full, and is paid back afterwards.
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
        """Put back what was taken and not used; a negative amount was used beyond what was taken."""
        with self._turn:
            self._level += amount

    def _fill(self) -> None:
        now, rate = self.clock.now(), self.rate or 0.0
        self._level = min(rate / 6, self._level + (now - self._since) * rate / 60)
        self._since = now


def estimated(text: str) -> int:
    """Tokens of a text without its tokenizer: one for three bytes of UTF-8, more than most tokenizers make."""
    return len(text.encode("utf-8", "surrogatepass")) // 3 + 1


def _amounts(variable: str, text: str | None, units: tuple[str, ...]) -> dict[str, float]:
    """Amounts by unit, from a text such as "5 dollars, 2000000 tokens"."""
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


RETRYABLE_STATUSES = frozenset({408, 425, 429, 500, 502, 503, 504, 529})
"""Statuses after which the same request may be answered."""
SHOWN_CHARACTERS = 300

FailureKind: TypeAlias = Literal["refused", "failed", "timed out", "malformed"]
"""refused: a status of 4xx; failed: 5xx, or a connection or a program that broke; malformed: an answer that is none."""
Redactor: TypeAlias = Callable[[object], str]
"""A text in one line, without what is secret in it."""
T = TypeVar("T")


class AttemptError(Exception):
    """A request failed.

    kind: how; wait: seconds the server asks for; again: whether the next attempt may be answered; status: that of the
    answer, 0 where there was none; free: whether the service cannot have charged anything for it; absent: whether
    nothing listens there, and nothing there ever answered this process; attempts: how many were made, known with the
    last of them.
    """

    def __init__(
        self,
        kind: FailureKind,
        message: str,
        wait: float = 0.0,
        again: bool = True,
        status: int = 0,
        free: bool = False,
        absent: bool = False,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.wait = wait
        self.again = again
        self.status = status
        self.free = free
        self.absent = absent
        self.attempts = 1


ABSENT_ATTEMPTS = 3
"""Attempts at a server that never answered, and refuses the connection: it may be starting."""


@cache
def _present() -> set[str]:
    """Servers that answered this process, by host and port."""
    return set()


def retry(
    attempt: Callable[[], T], limits: Limits, clock: Clock, retried: Callable[[AttemptError, float], None]
) -> T:
    """What `attempt` returns, repeated after an AttemptError that may pass, as often as the limits allow.

    retried: called with each failure that another attempt follows, and the seconds waited before it. Raises the last
    AttemptError, which says how many attempts were made, ServiceError for a server that is not there, after a few, and
    whatever else `attempt` raises.
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
            backoff = limits.pause * 2.0 ** (number - 1) * (0.5 + clock.chance())
            wait = max(error.wait, min(backoff, limits.longest))
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
    """The body of an answer with a status of 2xx; max_bytes, time_limits: see KeptConnection.send.

    Raises AttemptError for a connection that breaks and for any other status, with a message of one line without
    secrets; AnswerTooLargeError.
    """
    try:
        reply = connection.send(request, max_bytes, time_limits)
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
    status = reply.status
    if status // 100 == 2:
        return reply.body
    text = reply.body.decode("utf-8", "replace")
    with suppress(ValueError, RecursionError):
        text = error_text(parsed_answer(text), text)
    exhausted = status == http.client.TOO_MANY_REQUESTS and "insufficient_quota" in text
    shown = masked(text)
    if len(shown) > SHOWN_CHARACTERS:  # servers quote the request first and say last what is wrong with it
        half = (SHOWN_CHARACTERS - 5) // 2
        shown = f"{shown[:half]} ... {shown[-half:]}"
    message = f"{status} {masked(reply.reason)[:SHOWN_CHARACTERS]}" + (f": {shown}" if shown else "")
    if exhausted:
        message = f"{message}; {CONTINUES}"
    elif 300 <= status < 400:
        location = masked(reply.headers.get("Location"))[:SHOWN_CHARACTERS]
        message = f"{message}; it moved to {location}: give that address"
    again = status in RETRYABLE_STATUSES and not exhausted
    wait = seconds_asked(reply.headers.get("Retry-After"), clock.wall()) if again else 0.0
    raise AttemptError("failed" if status >= 500 else "refused", message, wait, again, status, free=True)


def parsed_answer(data: bytes | str) -> Any:  # noqa: ANN401  whatever a server says
    """An answer as JSON; raises ValueError for none, a name twice, a whole number of more than NUMBER_DIGITS."""
    return json.loads(data, parse_int=_whole_number, object_pairs_hook=_members)


def _members(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a name twice in one object")
    return members


def _whole_number(digits: str) -> int:
    if len(digits) > NUMBER_DIGITS:
        raise ValueError(f"a number of {len(digits):,} digits")
    return int(digits)


def _broken(reason: Exception, masked: Redactor, free: bool) -> AttemptError:
    """The error that a broken connection means."""
    if isinstance(reason, TimeoutError):
        return AttemptError("timed out", "no answer in time", free=free)
    if isinstance(reason, http.client.IncompleteRead):
        return AttemptError("malformed", "the answer was cut", free=free)
    message = (reason.strerror if isinstance(reason, OSError) else None) or str(reason)
    message = masked(message or type(reason).__name__)[:SHOWN_CHARACTERS]
    again = not isinstance(reason, ssl.SSLCertVerificationError)
    return AttemptError("failed", message, again=again, free=free)


def error_text(answer: Any, otherwise: str) -> str:  # noqa: ANN401  (an error's body may be anything)
    """The message within an error, that of its root where it has one, with its code; otherwise: where there is none."""
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


NOBODY_STATUSES = {401, 402, 403, 404}
"""Statuses that any request would get: the key is refused, or the model is not there."""
MOST_COUNTED = 100
"""Times the estimate that a service may count."""


def is_believed(counted: int | None, tokens: int) -> bool:
    """Whether a service may have counted so many tokens for a request of so many by estimate: none is never free."""
    return counted is not None and 0 < counted <= MOST_COUNTED * tokens


class UnusableAnswerError(Exception):
    """An answer without what was asked for; the next may have it. text: number of the text with a wrong value."""

    def __init__(self, message: str, text: int | None = None) -> None:
        super().__init__(message)
        self.text = text


@dataclass(frozen=True)
class MeteredRequest(Generic[T]):
    """A request and what it may cost.

    tokens: by estimate at most, of which answer_tokens are the answer's; answer_bytes: at most; read: the answer, and
    the tokens that the service counts, all and the answer's, None for counts that are missing or not believed; it
    raises UnusableAnswerError.
    """

    http: HttpRequest
    tokens: int
    answer_tokens: int
    answer_bytes: int
    read: Callable[[Any], tuple[T, tuple[int, int] | None]]


class BudgetLedger(Protocol):
    """Where requests are counted before they are sent: of one process, or of all processes of a cluster."""

    def reserve(self, service: str, limits: Limits, tokens: int) -> tuple[int, float]:
        """Take room in the budget and a place in the rate of a service: (number of the reservation, seconds waited).

        Raises ServiceError where the budget ends.
        """
        ...

    def settle(self, number: int, used: tuple[int, int]) -> None:
        """Count what the request of a reservation used: tokens, and the answer's among them."""
        ...


LEDGER: ContextVar[BudgetLedger | None] = ContextVar("LEDGER", default=None)
"""The ledger of the cluster that a process works for; None: each process has its own budget and rate."""


@dataclass(frozen=True)
class _Reservation:
    service: str
    tokens: int
    ends: float


@dataclass(eq=False)
class Ledger:
    """The ledger of one process, or of a cluster where an actor holds it; threads share it.

    Requests under way count with their estimate, so that together they stay within the budget; one for which there may
    be room once others are back waits for them. A reservation that nobody settles, since its process was killed,
    counts as used once its request must have ended.
    """

    spent: Spent
    clock: Clock
    _open: dict[int, _Reservation] = field(default_factory=dict)
    _buckets: dict[str, tuple[Bucket, Bucket]] = field(default_factory=dict)
    _number: int = 0
    _turn: threading.Condition = field(default_factory=threading.Condition, repr=False)

    def reserve(self, service: str, limits: Limits, tokens: int) -> tuple[int, float]:
        """As the protocol says."""
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
        """As the protocol says; nothing where the reservation was given up."""
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
"""How often those that wait for room look for reservations that nobody will settle."""
ABANDONED_FACTOR = 2.0
"""After how many times the limit of one answer a reservation counts as abandoned."""


@dataclass(eq=False)
class MeteredClient:
    """A service as one process uses it; threads share it, each with a connection of its own.

    spent: on all services of this process. tokens: spent on this service, as it counts them, or by estimate.
    """

    key: Key
    limits: Limits
    clock: Clock
    spent: Spent
    tokens: int = 0
    ledger: BudgetLedger = field(init=False)
    _turn: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def __post_init__(self) -> None:
        self.ledger = LEDGER.get() or Ledger(self.spent, self.clock)

    def answered(
        self, connection: KeptConnection, request: MeteredRequest[T], retried: Callable[[AttemptError], None]
    ) -> T:
        """The answer of the service; retried: called after each failed attempt that is retried.

        Raises ServiceError where the budget ends or the service refuses the key or the model, AttemptError where no
        attempt brings a usable answer.
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
        """Note that so many texts were answered for."""
        with self._turn:
            self.spent.texts += count
