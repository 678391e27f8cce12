"""One POST of JSON over HTTP, bounded in bytes and in time; redirects are not followed."""

from __future__ import annotations

import http.client
import re
import threading
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from ipaddress import IPv4Address, ip_address
from socket import SHUT_RDWR
from socket import socket as Socket
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from weir.errors import BadValue
from weir.settings import KEY_VARIABLE

__all__ = [
    "AnswerTooLargeError",
    "HttpReply",
    "NotSentError",
    "check_base",
    "check_key",
    "is_this_machine",
    "post",
]

_PIECE_BYTES = 1 << 16  # bytes read at a time


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


def post(
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    most: int,
    time_limits: tuple[float, float],
) -> HttpReply:
    """Send a body and read the answer: whole where the status says that it is one (2xx), else its first 64 KiB.

    most: bytes that a whole answer may have. time_limits: seconds without any byte, and seconds from the last
    byte sent to the last received. A proxy that the environment names (HTTPS_PROXY) carries https; nothing stands
    between this process and its own machine. Raises NotSentError where the body did not leave; AnswerTooLargeError;
    TimeoutError for either limit; OSError and HTTPException where the connection breaks.
    """
    silence, whole = time_limits
    parts = urlsplit(url)
    connection = _connection(parts, silence)
    with closing(connection):
        try:
            connection.request("POST", parts.path, body, dict(headers))
        except OSError as error:
            raise NotSentError(error) from error
        with _ending(connection.sock, whole), connection.getresponse() as response:
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


@contextmanager
def _ending(socket: Socket, seconds: float) -> Iterator[None]:
    """Hang up after so many seconds, however the bytes trickle; raises TimeoutError where that happened."""
    ended = threading.Event()

    def hang_up() -> None:
        ended.set()
        with suppress(OSError):  # it is closed already
            socket.shutdown(SHUT_RDWR)

    timer = threading.Timer(seconds, hang_up)
    timer.daemon = True
    timer.start()
    try:
        yield
    except (OSError, http.client.HTTPException, ValueError):
        if ended.is_set():
            raise TimeoutError from None
        raise
    finally:
        timer.cancel()


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
    try:
        parts = urlsplit(base) if isinstance(base, str) else urlsplit("")
        odd = parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc
        odd = odd or bool(parts.query or parts.fragment) or parts.port == 0
        odd = odd or not re.fullmatch(r"[\x21-\x7e]+", str(base))
    except ValueError:
        odd = True
    if odd:
        raise BadValue(
            "base is not an address such as http://localhost:8080/v1, without user, key or question mark"
        )
    if parts.scheme == "http" and not is_this_machine(parts.hostname or ""):
        raise BadValue(f"base is {base}: plain http reaches this machine only; expected an https address")
