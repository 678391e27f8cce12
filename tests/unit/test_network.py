"""The one client of the network against local servers: kept connections, proxies, waits, and what it says without urllib3."""

from __future__ import annotations

import base64
import contextlib
import email.utils
import socket
import sys
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from weir.errors import DownloadError, DownloadWarning, MissingExtra, ServiceError
from weir.files.downloads import Patience, download
from weir.files.network import KeptConnection, NotSentError, seconds_asked, seconds_before

BODY = b"x" * 100_000
LIMITS = {"silence": 5.0, "whole": 5.0}


@dataclass
class Seen:
    """What a server was asked: request lines, headers, and how many connections came."""

    lines: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    connections: int = 0
    statuses: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    """(status, headers) of the next answers; afterwards 200."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    seen: Seen

    def setup(self):
        self.seen.connections += 1
        super().setup()

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.seen.lines.append(self.requestline)
        self.seen.headers.append({name.lower(): value for name, value in self.headers.items()})
        status, headers = self.seen.statuses.pop(0) if self.seen.statuses else (200, {})
        body = BODY if status == 200 else b""
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(body)

    do_CONNECT = do_GET


@pytest.fixture
def server():
    seen = Seen()
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), type("Told", (Handler,), {"seen": seen}))
    thread = threading.Thread(target=httpd.serve_forever, args=(0.02,))
    thread.start()
    yield f"http://127.0.0.1:{httpd.server_port}", seen
    httpd.shutdown()
    httpd.server_close()
    thread.join()


@pytest.fixture
def connection():
    with contextlib.closing(KeptConnection()) as kept:
        yield kept


def read(connection: KeptConnection, url: str, some: int | None = None) -> bytes:
    with connection.open("GET", url, {}, **LIMITS) as response:
        return response.read1(some) if some else b"".join(iter(lambda: response.read1(1 << 16), b""))


def test_a_connection_is_kept_after_a_whole_answer_and_closed_after_half_a_one(server, connection):
    url, seen = server
    assert read(connection, url) == read(connection, url) == BODY
    assert seen.connections == 1
    read(connection, url, some=10)
    assert read(connection, url) == BODY
    assert seen.connections == 2
    assert {headers["user-agent"] for headers in seen.headers} == {"weir"}


@pytest.mark.slow
def test_an_exchange_ends_when_another_thread_closes_the_connection(server, connection):
    url, _ = server
    with pytest.raises((OSError, TimeoutError)), connection.open("GET", url, {}, **LIMITS) as response:  # noqa: PT012 - the error comes while the answer is read
        response.read1(10)
        threading.Thread(target=connection.close).start()
        while response.read1(10):
            time.sleep(0.001)
        raise OSError("the end of the answer, cut")


def test_who_is_not_there_got_nothing(connection):
    with pytest.raises(NotSentError) as caught, connection.open("GET", "http://127.0.0.1:9/", {}, **LIMITS):
        pass
    assert isinstance(caught.value.reason, ConnectionRefusedError)


def test_a_proxy_of_the_environment_gets_its_password_and_says_no(server, monkeypatch, connection):
    """The proxy stands before a host that nobody resolves; what it refuses is a line without the password."""
    url, seen = server
    proxy = url.replace("http://", "http://me:s%3Acret@")
    for name in ("http_proxy", "https_proxy"):
        monkeypatch.setenv(name, proxy)
    monkeypatch.delenv("no_proxy", raising=False)
    seen.statuses = [(403, {})]
    with (
        pytest.raises(NotSentError) as caught,
        connection.open("GET", "https://weir.invalid/v1", {}, **LIMITS),
    ):
        pass
    assert [line.rpartition(" ")[0] for line in seen.lines] == ["CONNECT weir.invalid:443"]
    assert "403" in str(caught.value)
    assert "cret" not in repr(caught.value)
    known = {f"Basic {base64.b64encode(b'me:s:cret').decode()}"}
    assert {headers["proxy-authorization"] for headers in seen.headers} == known
    monkeypatch.setenv("https_proxy", "gopher://127.0.0.1:1")
    with pytest.raises(ServiceError, match="the proxy of the environment for https is no http address"):
        read(KeptConnection(), "https://other.invalid/")


def test_downloads_of_http_go_through_the_proxy_and_services_on_http_do_not(
    server, connection, monkeypatch, tmp_path
):
    url, seen = server
    monkeypatch.setenv("http_proxy", url)
    monkeypatch.delenv("no_proxy", raising=False)
    download(["http://weir.invalid/file"], tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == BODY
    assert seen.lines == ["GET http://weir.invalid/file HTTP/1.1"]
    download([f"{url}/here"], tmp_path / "here")  # this machine is asked itself
    assert seen.lines[1:] == ["GET /here HTTP/1.1"]
    resolved: list[str] = []

    def unknown(host, *_, **__):
        resolved.append(host)
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(NotSentError):
        read(connection, "http://weir.invalid/v1")
    assert resolved == ["weir.invalid"]


@pytest.mark.parametrize("asked", ["7", lambda: email.utils.formatdate(time.time() + 7, usegmt=True)])
def test_a_download_waits_as_the_server_asks_in_seconds_or_by_a_date(server, monkeypatch, tmp_path, asked):
    url, seen = server
    slept: list[float] = []
    monkeypatch.setattr("weir.files.downloads.time.sleep", slept.append)
    seen.statuses = [(503, {"Retry-After": asked if isinstance(asked, str) else asked()})]
    with pytest.warns(DownloadWarning, match="503 Service Unavailable; attempt 2 of 5"):
        download([f"{url}/file"], tmp_path / "file", patience=Patience(pause=0.01))
    assert len(slept) == 1
    assert 5 < slept[0] <= 7


def test_waits_double_and_a_server_that_asks_for_more_gets_it():
    assert [seconds_before(n, 1.0, 30.0) for n in range(2, 8)] == [1, 2, 4, 8, 16, 30]
    assert seconds_before(2, 1.0, 30.0, asked=40.0) == 40
    assert [seconds_before(3, 1.0, 30.0, chance=c) for c in (0.0, 1.0)] == [1, 3]


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("3", 3), ("1.5", 1.5), ("Thu, 01 Jan 1970 00:01:40 GMT", 90), ("Thu, 01 Jan 1970 00:00:01 GMT", 0),
     (None, 0), ("", 0), ("soon", 0), ("nan", 0), ("1e999", 0), ("-4", 0)],
)  # fmt: skip
def test_retry_after_in_every_form(header, seconds):
    assert seconds_asked(header, 10.0) == seconds


def test_without_urllib3_a_fetch_names_the_extra(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "urllib3", None)
    with pytest.raises(MissingExtra, match=r"needs 'urllib3'.*\[run\]"):
        download(["http://127.0.0.1:9/file"], tmp_path / "file")


def test_redirects_lead_on_without_the_token_and_no_further_than_ten(server, tmp_path):
    url, seen = server
    seen.statuses = [(302, {"Location": f"/{n}"}) for n in range(9)]
    download([f"{url}/file"], tmp_path / "file")
    assert [line.split()[1] for line in seen.lines] == ["/file", *(f"/{n}" for n in range(9))]
    seen.statuses = [(302, {"Location": "/on"})] * 10
    with pytest.raises(DownloadError, match="sends on more than 10 times"):
        download([f"{url}/file"], tmp_path / "other")
