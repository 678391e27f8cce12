"""What the servers of tests share: a real HTTP server for the length of a block, and replies that it may cut short."""

from __future__ import annotations

import contextlib
import http.server
import json
import threading
from collections.abc import Iterator


@contextlib.contextmanager
def running(
    handler: type[http.server.BaseHTTPRequestHandler], daemon: bool = True, **told: object
) -> Iterator[str]:
    """The address of a server on this machine; told: attributes of its handlers; daemon: no request is waited for."""
    httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("Mannered", (handler,), told))
    httpd.daemon_threads = daemon
    thread = threading.Thread(target=httpd.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{httpd.server_port}"
    finally:
        httpd.shutdown()
        httpd.server_close()
        thread.join()


def reply(
    self: http.server.BaseHTTPRequestHandler,
    status: int,
    body: object,
    headers: dict[str, str] | None = None,
    cut: int = 0,
) -> None:
    """Answer with bytes, or what is written as JSON; cut: bytes that are promised and not sent."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    self.send_response(status)
    for name, value in (headers or {}).items():
        self.send_header(name, value)
    self.send_header("Content-Length", str(len(data)))
    if self.close_connection and not cut:
        self.send_header("Connection", "close")  # else the next request may leave before the end is seen
    self.end_headers()
    self.wfile.write(data[: len(data) - cut])
    self.close_connection = self.close_connection or cut > 0
