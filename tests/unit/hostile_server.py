"""A server that means harm: it stands before a right one, and sends what a row of MISDEEDS makes of the right answer.

Bytes are written as they are, so that heads, lengths and chunks may be wrong too. A misdeed may go on for as long as the
client listens; `sent` says how much the client took.
"""

from __future__ import annotations

import contextlib
import gzip
import http.client
import json
import socketserver
import threading
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from urllib.parse import urlsplit

MOST_SENT = 1 << 28
PIECE = 1 << 16


@dataclass
class HostileManners:
    """How it behaves.

    right: the address of the server behind it; misdeed: what it sends, None for the right answer; fits: of which
    requests, by method and path; key: what it echoes; elsewhere: an address that it sends on to; heads: of all requests;
    exchanges: (method, path, right answer) of those that have one; sent: the most bytes that one client took; released: set when the test is
    over.
    """

    right: str
    key: str = ""
    elsewhere: str = ""
    misdeed: Misdeed | None = None
    fits: Callable[[str, str], bool] = lambda _method, _path: True
    heads: list[str] = field(default_factory=list)
    exchanges: list[tuple[str, str, bytes]] = field(default_factory=list)
    sent: int = 0
    released: threading.Event = field(default_factory=threading.Event)


@dataclass
class Line:
    """The connection to a client, and the right answer to what it asked."""

    manners: HostileManners
    write: Callable[[bytes], object]
    right: bytes
    size: int = 0

    def send(self, data: bytes) -> bool:
        """Send bytes; False once the test is over or the client took as many as any may."""
        self.write(data)
        self.size += len(data)
        self.manners.sent = max(self.manners.sent, self.size)
        return self.size < MOST_SENT and not self.manners.released.is_set()

    def forever(self, head: bytes, piece: bytes) -> None:
        """Send a beginning and then the same for as long as the client listens."""
        self.send(head)
        while self.send(piece):
            pass

    def trickle(self, head: bytes, piece: bytes) -> None:
        """As forever, one piece in a twentieth of a second."""
        self.send(head)
        while not self.manners.released.wait(0.05) and self.send(piece):
            pass


Misdeed = Callable[[Line], object]
MISDEEDS: dict[str, Misdeed] = {}
OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


def misdeed(name: str) -> Callable[[Misdeed], Misdeed]:
    return lambda function: MISDEEDS.setdefault(name, function)


def answered(body: bytes, *headers: str, status: str = "200 OK", length: int | None = None) -> bytes:
    """A whole answer; length: that is promised, if not the body's."""
    head = "".join(f"{header}\r\n" for header in headers)
    size = len(body) if length is None else length
    return f"HTTP/1.1 {status}\r\n{head}Content-Length: {size}\r\n\r\n".encode("latin-1") + body


def plain(name: str, make: Callable[[bytes], bytes]) -> None:
    """A misdeed that is a few bytes, made of the right answer."""
    MISDEEDS[name] = lambda line: line.send(make(line.right))


# Endless

MISDEEDS["endless body"] = lambda line: line.forever(OK + b"\r\n", b"[" * PIECE)
MISDEEDS["endless chunks"] = lambda line: line.forever(
    OK + b"Transfer-Encoding: chunked\r\n\r\n", b"10000\r\n" + b"[" * PIECE + b"\r\n"
)
MISDEEDS["endless body of an error"] = lambda line: line.forever(b"HTTP/1.1 500 no\r\n\r\n", b"[" * PIECE)
MISDEEDS["endless body of a redirect"] = lambda line: line.forever(
    b"HTTP/1.1 302 Go\r\nLocation: /there\r\n\r\n", b"[" * PIECE
)
MISDEEDS["endless header"] = lambda line: line.forever(OK + b"X: ", b"x" * PIECE)
MISDEEDS["endless headers"] = lambda line: line.forever(OK, b"X: x\r\n" * 1000)
MISDEEDS["endless 100 Continue"] = lambda line: line.trickle(b"", b"HTTP/1.1 100 Continue\r\n\r\n")
MISDEEDS["endless status line"] = lambda line: line.forever(b"HTTP/1.1 200 ", b"x" * PIECE)
MISDEEDS["endless trailers"] = lambda line: line.trickle(
    OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"X: x\r\n"
)
MISDEEDS["a byte at a time"] = lambda line: line.trickle(OK + b"\r\n", b" ")
MISDEEDS["a byte at a time of the head"] = lambda line: line.trickle(OK + b"X: ", b" ")
MISDEEDS["silence"] = lambda line: line.manners.released.wait(300)
MISDEEDS["silence after the head"] = lambda line: (line.send(OK + b"\r\n"), line.manners.released.wait(300))

# Wrong lengths

plain("a length too long", lambda right: answered(right, length=len(right) + 5))
plain("a length too short", lambda right: answered(right, length=max(0, len(right) - 5)))
plain(
    "a length of 5,000 digits",
    lambda right: answered(right).replace(b"-Length: ", b"-Length: " + b"9" * 5000),
)
plain("a length of 10^30", lambda right: answered(right, length=10**30))
plain("a length below 0", lambda right: answered(right[:5], length=-1))
plain("a chunk below 0", lambda right: OK + b"Transfer-Encoding: chunked\r\n\r\n-5\r\n" + right[:-3])
plain(
    "a chunk of 10^30", lambda right: OK + b"Transfer-Encoding: chunked\r\n\r\n" + b"f" * 25 + b"\r\n" + right
)
plain("a chunk without a size", lambda right: OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n" + right)
plain("nothing", lambda _: b"")
plain("a reason of 60,000 letters", lambda _: answered(b"", status="400 " + "x" * 60_000))
plain("a place of 60,000 letters", lambda _: answered(b"", "Location: /" + "x" * 60_000, status="302 Go"))
plain("no body", lambda _: answered(b""))
plain("no HTTP", lambda _: b"SSH-2.0-OpenSSH_9.2\r\n")
plain("status -1", lambda right: answered(right, status="-1 no"))
plain("status 101", lambda _: b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n")
plain("status 204", lambda _: b"HTTP/1.1 204 No Content\r\n\r\n")

# Redirects


@misdeed("a redirect elsewhere")
def elsewhere(line: Line) -> None:
    line.send(answered(b"", f"Location: {line.manners.elsewhere}/", status="307 Go"))


@misdeed("a redirect to itself")
def itself(line: Line) -> None:
    line.send(answered(b"", "Location: ?", status="307 Go"))


for _name, _place in {
    "a file": "file:///etc/passwd",
    "FTP": "ftp://127.0.0.1:1/x",
    "no address": "http://[",
    "no host": "http://a..b/",
    "no port": "http://127.0.0.1:99999/",
    "another line": "http://127.0.0.1/\x1b[2Jx\x0by",
}.items():
    plain(f"a redirect to {_name}", lambda _, to=_place: answered(b"", f"Location: {to}", status="302 Go"))

# Waits

for _name in (
    "1e400",
    "nan",
    "-1",
    "9" * 5000,
    "1000000",
    "Mon, 01 Jan 0001 00:00:00 -0000",
    "Fri, 31 Dec 9999 23:59:59 -2359",
):
    plain(
        f"wait {_name[:20]}", lambda _, text=_name: answered(b"", f"Retry-After: {text}", status="503 Wait")
    )

# Bodies

BOMB = zlib.compressobj(9, zlib.DEFLATED, 31)
BOMB_BYTES = BOMB.compress(bytes(1 << 26)) + BOMB.flush()
plain("a bomb", lambda _: answered(BOMB_BYTES, "Content-Encoding: gzip"))
plain("packed unasked", lambda right: answered(gzip.compress(right), "Content-Encoding: gzip"))
plain("deep lists", lambda _: answered(b"[" * 100_000))
plain("deep lists, closed", lambda _: answered(b"[" * 50_000 + b"]" * 50_000))
plain("a number of 50,000 digits", lambda _: answered(b"9" * 50_000))
plain("a fraction of 50,000 digits", lambda _: answered(b"0." + b"9" * 50_000))
plain("zero bytes", lambda _: answered(bytes(1000)))
plain("no UTF-8", lambda right: answered(right.replace(b'"', b'"\xff', 3)))
plain("UTF-16", lambda right: answered(right.decode().encode("utf-16")))
plain("half a surrogate", lambda right: answered(right.replace(b'"', b'"\\ud800', 1)))
plain("a page", lambda _: answered(b"<html>\x1b[2J\r\nbusy</html>"))
plain("NaN", lambda _: answered(b"NaN"))
for _status in ("400", "401", "403", "404", "413", "429", "500", "999"):
    plain(f"status {_status}", lambda right, code=_status: answered(right, status=f"{code} \x1b[2Jno\x0b"))

# The key

ECHOES: dict[str, Callable[[str], bytes]] = {
    "in a body": lambda key: answered(json.dumps({"error": {"message": f"no {key}", "type": key}}).encode(), status="400 no"),
    "in a body of 401": lambda key: answered(f"no {key}".encode(), status="401 no"),
    "as no JSON": lambda key: answered(key.encode()),
    "in the status line": lambda key: answered(b"", status=f"400 {key}"),
    "as the status line": lambda key: f"{key}\r\n\r\n".encode(),
    "in the place to go": lambda key: answered(b"", f"Location: http://127.0.0.1:1/?{key}", status="302 Go"),
    "in hexadecimal digits": lambda key: answered(key.encode().hex().encode(), status="400 no"),
    "in half": lambda key: answered(key[: len(key) - 4].encode(), status="500 no"),
    "in a name": lambda key: answered(json.dumps({key: key}).encode()),
}  # fmt: skip
for _name, _make in ECHOES.items():
    MISDEEDS[f"the key {_name}"] = lambda line, make=_make: line.send(make(line.manners.key))


class HostileHandler(socketserver.StreamRequestHandler):
    """Answers one request as `manners`, an attribute of the server's own subclass, says, and hangs up."""

    manners: HostileManners

    def handle(self) -> None:
        with contextlib.suppress(OSError, http.client.HTTPException):
            method, path, _ = self.rfile.readline().decode("latin-1").split()
            headers = http.client.parse_headers(self.rfile)
            self.manners.heads.append(f"{method} {path}\n{headers}")
            body = self.rfile.read(int(headers.get("Content-Length") or 0))
            sent = {name: value for name, value in headers.items() if name.lower() not in ("host", "range")}
            connection = http.client.HTTPConnection(urlsplit(self.manners.right).netloc)
            connection.request(method, path, body, sent | {"Connection": "close"})
            with contextlib.closing(connection), connection.getresponse() as response:
                status, right = response.status, response.read()
            self.manners.exchanges.append((method, path, right))
            line = Line(self.manners, self.wfile.write, right)
            if self.manners.misdeed is not None and self.manners.fits(method, path):
                self.manners.misdeed(line)
            else:
                line.send(answered(right, "Connection: close", status=f"{status} so"))


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address, daemon_threads, block_on_close = True, True, False


@contextlib.contextmanager
def hostile(manners: HostileManners) -> Iterator[str]:
    """The address of a server with these manners, as long as the block."""
    with _Server(("127.0.0.1", 0), type("Hostile", (HostileHandler,), {"manners": manners})) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            manners.released.set()
            server.shutdown()
            thread.join()
