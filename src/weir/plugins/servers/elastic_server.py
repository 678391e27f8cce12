"""One connection to an Elasticsearch or OpenSearch server: calls of its API, and what its refusals come to."""

from __future__ import annotations

import http.client
import json
from base64 import b64encode
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any

from weir.errors import ServiceError
from weir.plugins.servers.elastic_settings import ElasticSettings
from weir.services.asking import Retried
from weir.services.attempts import AttemptError, broken, refusal, until_answered
from weir.services.http import AnswerTooLargeError, HttpReply, HttpRequest, KeptConnection, NotSentError
from weir.services.keys import Key
from weir.services.limits import Clock, Limits
from weir.settings import secret

__all__ = ["ElasticCall", "ElasticServer", "TooLargeError", "elastic_connected"]

MOST_BYTES = 256 << 20
"""Of one answer."""
HTTP_NOT_FOUND, HTTP_TOO_LARGE = 404, 413


class TooLargeError(Exception):
    """The server takes no request of that size."""


@dataclass(frozen=True)
class ElasticCall:
    """A call: method, path with its parameters, and a body: JSON, lines of it, or none. missing: whether 404 is an
    answer, None."""

    method: str
    path: str
    body: Any = None
    lines: Iterable[Any] | None = None
    missing: bool = False


@dataclass(eq=False)
class ElasticServer:
    """A server over a connection of its own, for one thread. retried: told each attempt that another follows."""

    settings: ElasticSettings
    retried: Retried = lambda _: None
    clock: Clock = field(default_factory=Clock)
    connection: KeptConnection = field(default_factory=KeptConnection)

    def __post_init__(self) -> None:
        variable = self.settings.key or None
        self.key = Key(variable, secret(variable) if variable else None)
        self.limits = Limits(timeout=self.settings.timeout_s, attempts=8)

    def call(self, call: ElasticCall) -> Any:  # noqa: ANN401  whatever the server says
        """What the server answers, as JSON; asked again where that may help.

        Raises AttemptError where no attempt is answered, TooLargeError for 413, ServiceError for a refused key.
        """
        body, kind = None, "application/json"
        if call.lines is not None:
            kind = "application/x-ndjson"
            body = b"".join(json.dumps(line).encode("ascii") + b"\n" for line in call.lines)
        elif call.body is not None:
            body = json.dumps(call.body).encode("ascii")
        headers = {
            "Accept": "application/json",
            "User-Agent": "weir",
            "Content-Type": kind,
            **self._authorised(),
        }
        url = self.settings.url.rstrip("/") + call.path
        request = HttpRequest(call.method, url, headers, body, (self.key,))
        reply = until_answered(
            lambda: self._once(request, call), self.limits, self.clock, lambda error, _: self.retried(error)
        )
        if reply is None:
            return None
        try:
            return json.loads(reply.body)
        except (ValueError, RecursionError):
            raise AttemptError("malformed", "the answer is not JSON, or was cut", again=False) from None

    def said(self, error: AttemptError) -> ServiceError:
        """What failed, for whoever asked for something that cannot be left out."""
        return ServiceError(f"{self.settings.url}: {error}")

    def _authorised(self) -> dict[str, str]:
        if self.key.variable is None:
            return {}
        value = self.key.checked()
        sent = b64encode(value.encode()).decode() if self.settings.scheme == "Basic" else value
        return {"Authorization": f"{self.settings.scheme} {sent}"}

    def _once(self, request: HttpRequest, call: ElasticCall) -> HttpReply | None:
        try:
            reply = self.connection.send(request, MOST_BYTES, (self.limits.timeout, self.limits.whole))
        except AnswerTooLargeError as error:
            raise AttemptError("malformed", str(error), again=False) from None
        except NotSentError as error:
            raise broken(error.reason, self.key.masked) from None
        except (http.client.HTTPException, OSError) as error:
            raise broken(error, self.key.masked) from None
        if reply.status == HTTP_NOT_FOUND and call.missing:
            return None
        if reply.status // 100 == 2:
            return reply
        refused = refusal(reply, self.key.masked, self.clock)
        if reply.status == HTTP_TOO_LARGE:
            raise TooLargeError(str(refused))
        if reply.status in (401, 403):
            raise ServiceError(f"{self.settings.url}: {refused}; {self.key.hint()}")
        raise refused


@contextmanager
def elastic_connected(settings: ElasticSettings) -> Iterator[ElasticServer]:
    """A server as long as the block; raises ServiceError, naming it, for what no attempt brought."""
    server = ElasticServer(settings)
    with closing(server.connection):
        try:
            yield server
        except AttemptError as error:
            raise server.said(error) from None
