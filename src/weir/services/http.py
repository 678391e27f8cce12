"""Exchanges over HTTP, each bounded in bytes and in time; redirects are not followed."""

from __future__ import annotations

import http.client
import math
import re
import select
import threading
import time
from base64 import b64encode
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Address, ip_address
from socket import SHUT_RDWR
from socket import socket as Socket
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from weir.errors import BadValue
from weir.services.keys import Key
from weir.settings import KEY_VARIABLE

__all__ = [
    "AnswerTooLargeError",
    "HttpReply",
    "HttpRequest",
    "KeptConnection",
    "NotSentError",
    "check_address",
    "check_base",
    "check_key",
    "is_this_machine",
    "post",
]

_PIECE_BYTES = 1 << 16  # bytes read at a time
_WATCH_SECONDS = 0.1


@dataclass(frozen=True)
class HttpReply:
    """What a server answered: status, its reason phrase, headers, and the body as far as it was wanted."""

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

    keys: those among the headers, which the answer is rid of before anybody sees it.
    """

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | None = None
    keys: Sequence[Key] = field(default=(), repr=False)

    def cleaned(self, reply: HttpReply) -> HttpReply:
        """An answer without the keys that were sent; of its headers none is kept, and messages mask what they show."""
        body, reason = reply.body, reply.reason
        for key in self.keys:
            body, reason = key.masked_answer(body), key.masked(reason)
        return replace(reply, body=body, reason=reason)


def post(
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    most: int,
    time_limits: tuple[float, float],
    keys: Sequence[Key] = (),
) -> HttpReply:
    """Send a body over a connection of its own; see KeptConnection.send."""
    with closing(KeptConnection()) as connection:
        return connection.send(HttpRequest("POST", url, headers, body, keys), most, time_limits)


@dataclass(eq=False)
class KeptConnection:
    """A connection that stays open between the exchanges of one thread, as long as both sides are in step.

    A thread of its own hangs up where an answer takes too long, however its bytes trickle.
    """

    _open: http.client.HTTPConnection | None = None
    _to: tuple[str, str] = ("", "")
    _busy: Socket | None = None
    _ends: float = math.inf  # when the exchange has to be over
    _late: bool = False
    _closed: threading.Event = field(default_factory=threading.Event)
    _watcher: threading.Thread | None = None

    def send(self, request: HttpRequest, most: int, time_limits: tuple[float, float]) -> HttpReply:
        """Send and read the answer: whole where the status says that it is one (2xx), else its first 64 KiB.

        The keys that were sent are masked in it. most: bytes that a whole answer may have. time_limits: seconds without
        any byte, and seconds from the last byte sent to the last received. A proxy that the environment names
        (HTTPS_PROXY) carries https; nothing stands between this process and its own machine. Raises NotSentError where
        the body did not leave; AnswerTooLargeError; TimeoutError for either limit; OSError and HTTPException where the
        connection breaks.
        """
        silence, whole = time_limits
        parts = urlsplit(request.url)
        connection, self._open, self._late = self._connected(parts, silence), None, False
        try:
            try:
                path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
                connection.request(request.method, path, request.body, dict(request.headers))
            except OSError as error:
                raise NotSentError(error) from error
            self._watch(connection.sock, whole)
            with connection.getresponse() as response:
                reply = _read(response, most)
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
        return request.cleaned(reply)

    def close(self) -> None:
        """Hang up, also in the middle of an exchange of another thread, which then fails."""
        self._closed.set()
        if self._open is not None:
            self._open.close()
            self._open = None
        elif self._ends != math.inf:
            self._hang_up()

    def _connected(self, parts: SplitResult, silence: float) -> http.client.HTTPConnection:
        """The open connection, where it leads there and nobody hung up; else another."""
        to, known = (parts.scheme, parts.netloc), self._open
        # What arrived before anything was asked is the end of the connection, or nonsense.
        if known is not None and self._to == to and not select.select([known.sock], [], [], 0)[0]:
            return known
        if known is not None:
            known.close()
        self._to = to
        return _connection(parts, silence)

    def _watch(self, socket: Socket, seconds: float) -> None:
        """Let the exchange that begins end after so many seconds."""
        self._busy, self._ends = socket, time.monotonic() + seconds
        if self._watcher is None:
            self._watcher = threading.Thread(target=self._keep_watch, daemon=True)
            self._watcher.start()

    def _keep_watch(self) -> None:
        while not self._closed.wait(_WATCH_SECONDS):
            if time.monotonic() > self._ends:
                self._late = True
                self._hang_up()

    def _hang_up(self) -> None:
        if self._busy is not None:
            with suppress(OSError):  # it is closed already
                self._busy.shutdown(SHUT_RDWR)


def _read(response: http.client.HTTPResponse, most: int) -> HttpReply:
    """The answer, as far as it is wanted."""
    good, pieces, size = response.status // 100 == 2, [], 0
    while (good or size < _PIECE_BYTES) and (piece := response.read1(_PIECE_BYTES)):
        size += len(piece)
        if good and size > most:
            raise AnswerTooLargeError(f"the answer has more than {most:,} bytes")
        pieces.append(piece)
    if good and response.length:  # what was promised and did not come
        raise http.client.IncompleteRead(b"", response.length)
    return HttpReply(response.status, response.reason, response.headers, b"".join(pieces))


def _connection(parts: SplitResult, timeout: float) -> http.client.HTTPConnection:
    host, port = parts.hostname or "", parts.port
    if parts.scheme == "http":
        return http.client.HTTPConnection(host, port, timeout=timeout)
    proxy = None if is_this_machine(host) or proxy_bypass(host) else getproxies().get("https")
    if not proxy:
        return http.client.HTTPSConnection(host, port, timeout=timeout)
    via = urlsplit(proxy if "//" in proxy else f"//{proxy}")
    connection = http.client.HTTPSConnection(via.hostname or "", via.port, timeout=timeout)
    user = f"{unquote(via.username or '')}:{unquote(via.password or '')}".encode()
    known = {"Proxy-Authorization": f"Basic {b64encode(user).decode()}"} if via.username else {}
    connection.set_tunnel(host, port, known)
    return connection


def check_key(key: object, usual: str, base: str | None) -> None:
    """Raise BadValue for an environment variable that is not there to be sent to that address."""
    if not isinstance(key, str) or not re.fullmatch(r"[A-Z_][A-Z0-9_]*", key):
        raise BadValue(f"key must name an environment variable, such as {usual}, not be the key itself")
    if key == usual and base is None:
        return
    if not re.fullmatch(KEY_VARIABLE, key):
        goes = (
            f"{usual} goes to the provider's own address" if key == usual else f"'{key}' is not sent anywhere"
        )
        raise BadValue(f"key: {goes}; put the key for this one into WEIR_KEY_NAME and name that variable")


def check_base(base: object) -> None:
    """Raise BadValue for what is no address, and for plain http to another machine."""
    check_address("base", base)


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
        raise BadValue(
            f"{name} is {address}: plain http reaches this machine only; expected an https address"
        )
