"""Exchange HTTP messages through urllib3, each within a time limit."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from ipaddress import IPv4Address, ip_address
from socket import SHUT_RDWR
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from weir.errors import ServiceError, require

if TYPE_CHECKING:
    from urllib3 import PoolManager
    from urllib3.response import BaseHTTPResponse

RETRYABLE_STATUSES = frozenset({408, 425, 429, 500, 502, 503, 504, 529})
"""Statuses after which the same request may succeed."""
PIECE_BYTES = 1 << 16
"""Bytes that are read at a time."""
CONNECT_SECONDS = 60.0
"""Upper bound of the connect timeout, however long the request may take."""
_WATCH_SECONDS = 0.1


class NotSentError(Exception):
    """Raised if the connection failed before a request was sent."""

    def __init__(self, reason: OSError | HTTPException) -> None:
        super().__init__(str(reason))
        self.reason = reason


def is_this_machine(host: str) -> bool:
    """Return True for localhost, 127.0.0.0/8 and ::1, without resolving names."""
    with suppress(ValueError):
        address = ip_address(host)
        return address.is_loopback if isinstance(address, IPv4Address) else str(address) == "::1"
    return host.lower() == "localhost"


def seconds_asked(retry_after: str | None, now: float) -> float:
    """Return the seconds that a Retry-After header, a number or date, asks to wait; 0 for anything else.

    now: seconds since 1970.
    """
    wait = 0.0
    with suppress(ValueError, TypeError):
        wait = parsedate_to_datetime(retry_after or "").timestamp() - now
    with suppress(ValueError, TypeError):
        wait = float(retry_after or "")
    return max(0.0, wait) if math.isfinite(wait) else 0.0


def seconds_before(
    attempt: int, pause: float, longest: float, asked: float = 0.0, chance: float = 0.5
) -> float:
    """Return the seconds to wait before an attempt, counted from 1: `pause` before the second, then doubled each
    time.

    longest: upper bound, unless the server asks for more (`asked`).
    chance: random number in [0, 1), varies the wait by up to a half.
    """
    return max(asked, min(longest, pause * 2.0 ** (attempt - 2) * (0.5 + chance)))


@dataclass(eq=False)
class KeptConnection:
    """An HTTP connection kept open between requests; follows no redirects, repeats no request."""

    # urllib3 bounds each read, not all of them: a watcher thread ends an exchange whose time is over.
    proxied: tuple[str, ...] = ("https",)
    """Schemes for which the environment's proxy is used, except to this machine."""
    _to: tuple[str, str] = ("", "")
    _pools: PoolManager | None = None
    _connection: Any = None  # of urllib3
    _response: BaseHTTPResponse | None = None
    _ends: float = math.inf  # when the exchange has to be over
    _late: bool = False
    _closed: threading.Event = field(default_factory=threading.Event)
    _watcher: threading.Thread | None = None

    @contextmanager
    def open(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
        *,
        silence: float,
        whole: float,
    ) -> Iterator[BaseHTTPResponse]:
        """Send a request and yield the response, not decompressed, once its headers are read.

        silence: seconds without a byte.
        whole: seconds until the end of the block; `extend` changes it.

        Raises NotSentError if nothing was sent, TimeoutError, OSError or HTTPException for a broken exchange,
        ValueError for an invalid URL.
        """
        urllib3 = require("urllib3", "run")
        self._response, self._late = None, False
        timeout = urllib3.Timeout(connect=min(silence, CONNECT_SECONDS), read=silence)
        settings = {"retries": False, "redirect": False, "preload_content": False, "decode_content": False}
        try:
            pools = self._pools_to(url)
            self.extend(whole)
            response: BaseHTTPResponse = pools.urlopen(
                method, url, body=body, headers={"User-Agent": "weir", **headers}, timeout=timeout, **settings
            )
            self._response = response
            try:
                yield response
            finally:
                response.close()  # the connection is kept if all was read
            if self._late:
                raise TimeoutError
        except (urllib3.exceptions.HTTPError, OSError, HTTPException) as error:
            if isinstance(error, ValueError):  # of urllib3, of addresses
                raise ValueError(str(error)) from None
            reason = _root(error)
            if self._late or isinstance(reason, TimeoutError):
                reason = TimeoutError()
            exceptions = urllib3.exceptions
            unsent = (exceptions.NewConnectionError, exceptions.ConnectTimeoutError, exceptions.ProxyError)
            if self._response is None and isinstance(error, (*unsent, exceptions.SSLError)):
                raise NotSentError(reason) from None
            raise reason from None
        finally:
            self._ends, self._response = math.inf, None

    def extend(self, seconds: float) -> None:
        """Let the current exchange last `seconds` from now."""
        self._ends = time.monotonic() + seconds
        if self._watcher is None:
            self._watcher = threading.Thread(target=self._keep_watch, daemon=True)
            self._watcher.start()

    def close(self) -> None:
        """Close the connection; an exchange in another thread then fails."""
        self._closed.set()
        if self._ends != math.inf:
            self._shut_down()
        elif self._pools is not None:
            self._pools.clear()

    def _pools_to(self, url: str) -> PoolManager:
        urllib3, parts = require("urllib3", "run"), urlsplit(url)
        if self._pools is not None and self._to == (parts.scheme, parts.netloc):
            return self._pools
        if self._pools is not None:
            self._pools.clear()
        host, proxy = parts.hostname or "", None
        if parts.scheme in self.proxied and not is_this_machine(host) and not proxy_bypass(host):
            proxy = getproxies().get(parts.scheme)
        pools: PoolManager = urllib3.PoolManager(num_pools=1)
        if proxy:
            try:
                via = urllib3.util.parse_url(proxy)
                user = urllib3.make_headers(proxy_basic_auth=unquote(via.auth) if via.auth else None)
                pools = urllib3.ProxyManager(f"{via.scheme or 'http'}://{via.netloc}", 1, proxy_headers=user)
            except ValueError:
                text = f"the proxy of the environment for {parts.scheme} is no http address"
                raise ServiceError(text) from None
        pool: Any = pools.connection_from_url(url)
        kind = pool.ConnectionCls

        def held(**settings: Any) -> Any:  # noqa: ANN401  as urllib3 makes connections
            self._connection = kind(**settings)
            return self._connection

        pool.ConnectionCls = held
        self._to, self._pools = (parts.scheme, parts.netloc), pools
        return pools

    def _keep_watch(self) -> None:
        while not self._closed.wait(_WATCH_SECONDS):
            if time.monotonic() > self._ends:
                self._late = True
                self._shut_down()

    def _shut_down(self) -> None:
        connection, response = self._connection, self._response
        with suppress(OSError, ValueError, RuntimeError):  # it is closed already
            if response is not None:
                response.shutdown()
            elif connection is not None and connection.sock is not None:
                connection.sock.shutdown(SHUT_RDWR)


def _root(error: Exception) -> OSError | HTTPException:
    if isinstance(error, (OSError, HTTPException)):
        return error
    inner = [one for one in (error.__cause__, *error.args) if isinstance(one, Exception)]
    return _root(inner[-1]) if inner else HTTPException(str(error))
