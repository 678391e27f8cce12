"""Downloads against a local server that misbehaves on purpose; nothing leaves this machine."""

from __future__ import annotations

import contextlib
import hashlib
import http.server
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from tests.kills import MOST_SECONDS, killed_when
from weir.errors import BadValue, DownloadError, DownloadWarning, StoreError
from weir.files.downloads import Patience, download

DATA = os.urandom(3_000_000)
MD5 = "md5:" + hashlib.md5(DATA).hexdigest()
QUICK = Patience(attempts=3, pause=0.01)


@dataclass
class Manners:
    """How the server behaves, and what it was asked."""

    data: bytes = DATA
    ranges: bool = True
    etag: str = '"one"'
    cut: list[int] = field(default_factory=list)  # bytes to send on each connection before cutting it
    fail: list[int] = field(default_factory=list)  # statuses to answer with first
    drip: int = 0  # bytes a tenth of a second
    hold: int = 0  # bytes after which nothing comes until the event
    released: threading.Event = field(default_factory=threading.Event)
    paths: tuple[str, ...] = ("/file.bin",)
    asked: list[tuple[str, str | None]] = field(default_factory=list)


@dataclass
class Server:
    manners: Manners
    url: str


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers as `manners`, a class attribute of the server's own subclass, says."""

    protocol_version = "HTTP/1.1"
    manners: Manners

    def log_message(self, *_):
        pass

    def do_GET(self):
        manners = self.manners
        self.close_connection = True
        manners.asked.append((self.path, self.headers.get("Range")))
        if self.path not in manners.paths:
            self.send_error(404)
        elif manners.fail:
            self.send_error(manners.fail.pop(0))
        else:
            self.answer(self.first_byte(), len(manners.data))

    def answer(self, start: int, size: int) -> None:
        complete = 0 < size == start
        self.send_response(416 if complete else 206 if start else 200)
        if start:
            self.send_header(
                "Content-Range", f"bytes */{size}" if complete else f"bytes {start}-{size - 1}/{size}"
            )
        self.send_header("ETag", self.manners.etag)
        self.send_header("Content-Length", str(size - start))
        self.end_headers()
        with contextlib.suppress(OSError):  # the client may hang up
            self.send(self.manners.data[start:])

    def first_byte(self) -> int:
        asked = self.headers.get("Range")
        unchanged = self.headers.get("If-Range", self.manners.etag) == self.manners.etag
        return (
            int(asked.removeprefix("bytes=").rstrip("-"))
            if asked and self.manners.ranges and unchanged
            else 0
        )

    def send(self, body: bytes) -> None:
        manners = self.manners
        if manners.cut:
            self.wfile.write(body[: manners.cut.pop(0)])
        elif manners.drip:
            for at in range(0, len(body), manners.drip):
                self.wfile.write(body[at : at + manners.drip])
                time.sleep(0.1)
        elif manners.hold:
            self.wfile.write(body[: manners.hold])
            manners.released.wait(MOST_SECONDS)
        else:
            self.wfile.write(body)


@pytest.fixture
def server() -> Iterator[Server]:
    manners = Manners()
    handler = type("Mannered", (Handler,), {"manners": manners})
    httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=httpd.serve_forever, args=(0.02,))
    thread.start()
    yield Server(manners, f"http://127.0.0.1:{httpd.server_port}/file.bin")
    httpd.shutdown()
    httpd.server_close()
    thread.join()


@pytest.fixture
def to(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "file.bin"


def left(to: Path) -> list[str]:
    return sorted(p.name for p in to.parent.iterdir() if not p.name.endswith(".lock"))


def test_a_whole_file_arrives_and_progress_is_told(server: Server, to: Path):
    seen: list[tuple[int, int | None]] = []
    download([server.url], to, MD5, progress=lambda done, total: seen.append((done, total)))
    assert to.read_bytes() == DATA
    assert seen[-1] == (len(DATA), len(DATA))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert left(to) == ["file.bin"]


def test_what_is_there_already_is_not_fetched_again(server: Server, to: Path):
    download([server.url], to, MD5)
    download([server.url], to, MD5)
    assert len(server.manners.asked) == 1
    to.write_bytes(b"damaged since")
    download([server.url], to, MD5)
    assert to.read_bytes() == DATA


def test_sha256_is_understood_and_other_sums_are_refused(server: Server, to: Path):
    download([server.url], to, "sha256:" + hashlib.sha256(DATA).hexdigest())
    with pytest.raises(BadValue, match="crc32"):
        download([server.url], to, "crc32:00")


def test_a_cut_connection_is_resumed_where_it_ended(server: Server, to: Path):
    server.manners.cut = [1_000_000, 500_000]
    download([server.url], to, MD5, patience=QUICK)
    assert to.read_bytes() == DATA
    assert [asked for _, asked in server.manners.asked] == [None, "bytes=1000000-", "bytes=1500000-"]
    assert left(to) == ["file.bin"]


def test_the_next_call_goes_on_from_what_an_earlier_one_left(server: Server, to: Path):
    server.manners.cut = [400_000, 0, 0]
    with pytest.raises(DownloadError, match=r"cut after 400,000 of 3,000,000 bytes \(3 attempts\)"):
        download([server.url], to, MD5, patience=QUICK)
    assert not to.exists()
    download([server.url], to, MD5, patience=QUICK)
    assert to.read_bytes() == DATA
    assert server.manners.asked[-1] == ("/file.bin", "bytes=400000-")


def test_a_file_that_changed_on_the_server_is_fetched_anew(server: Server, to: Path):
    server.manners.cut = [400_000, 0, 0]
    with pytest.raises(DownloadError):
        download([server.url], to, patience=QUICK)
    server.manners.data, server.manners.etag = b"new" * 300_000, '"two"'
    download([server.url], to, patience=QUICK)
    assert to.read_bytes() == b"new" * 300_000


def test_a_server_without_ranges_starts_over(server: Server, to: Path):
    server.manners.ranges = False
    server.manners.cut = [1_000_000]
    download([server.url], to, MD5, patience=QUICK)
    assert to.read_bytes() == DATA


def test_a_part_that_was_complete_needs_no_more_bytes(server: Server, to: Path):
    to.parent.mkdir()
    to.with_name("file.bin.part").write_bytes(DATA)
    download([server.url], to, MD5, patience=QUICK)
    assert to.read_bytes() == DATA


def test_a_wrong_part_is_thrown_away_and_fetched_again(server: Server, to: Path):
    to.parent.mkdir()
    to.with_name("file.bin.part").write_bytes(b"x" * 1000)
    download([server.url], to, MD5, patience=QUICK)
    assert to.read_bytes() == DATA
    assert [asked for _, asked in server.manners.asked] == ["bytes=1000-", None]


def test_a_wrong_hash_is_told_and_nothing_stays(server: Server, to: Path):
    server.manners.data = b"something else"
    with pytest.raises(
        DownloadError, match=r"has md5:[0-9a-f]{32}, published is md5:[0-9a-f]{32}; the file was removed"
    ):
        download([server.url], to, MD5, patience=QUICK)
    assert left(to) == []


def test_the_next_mirror_is_tried_after_a_404(server: Server, to: Path):
    missing = server.url.replace("file.bin", "gone.bin")
    download([missing, server.url], to, MD5, patience=QUICK)
    assert to.read_bytes() == DATA
    assert [path for path, _ in server.manners.asked] == ["/gone.bin", "/file.bin"]


def test_every_address_that_failed_is_named_in_one_line(server: Server, to: Path):
    missing = server.url.replace("file.bin", "gone.bin")
    with pytest.raises(DownloadError) as caught:
        download([missing, "ftp://example.invalid/x"], to, MD5, patience=QUICK)
    assert str(caught.value) == (
        f"could not fetch file.bin; {missing}: 404 Not Found; ftp://example.invalid/x: not an http address"
    )


def test_a_mirror_may_go_on_with_the_half_of_another(server: Server, to: Path):
    server.manners.paths = ("/file.bin", "/mirror.bin")
    server.manners.cut = [1_200_000, 0, 0, 0]
    mirror = server.url.replace("file.bin", "mirror.bin")
    download([server.url, mirror], to, MD5, patience=QUICK)
    assert to.read_bytes() == DATA
    assert server.manners.asked[-1] == ("/mirror.bin", "bytes=1200000-")


@pytest.mark.parametrize("ranges", [True, False])
@pytest.mark.parametrize("known", [len(DATA) - 1, 1000])
def test_a_mirror_that_sends_more_than_is_published_is_left(
    server: Server, to: Path, known: int, ranges: bool
):
    server.manners.ranges = ranges
    with pytest.raises(
        DownloadError, match=f"sends more than the {known:,} bytes that are published; the file was"
    ):
        download([server.url], to, None, known, patience=QUICK)
    assert left(to) == []
    assert len(server.manners.asked) == 1  # and not asked again


@pytest.mark.parametrize("status", [500, 503, 429])
def test_an_overloaded_server_is_asked_again(server: Server, to: Path, status: int):
    server.manners.fail = [status, status]
    download([server.url], to, MD5, patience=QUICK)
    assert to.read_bytes() == DATA


def test_a_server_that_stays_broken_is_given_up(server: Server, to: Path):
    server.manners.fail = [503] * 9
    with pytest.raises(DownloadError, match=r"503 Service Unavailable \(3 attempts\)"):
        download([server.url], to, MD5, patience=QUICK)
    assert len(server.manners.asked) == 3


def test_a_stalling_server_is_left_for_the_next(server: Server, to: Path):
    server.manners.drip = 10
    with pytest.raises(DownloadError, match=r"stalled at \d+ bytes/s"):
        download([server.url], to, MD5, patience=replace(QUICK, slowest=1000.0, window=0.3))


def test_a_silent_server_is_left_in_time(to: Path):

    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/file.bin"
        impatient = Patience(timeout=0.2, attempts=2, pause=0.01)
        with pytest.raises(DownloadError, match=r"no answer in time \(2 attempts\)"):
            download([url], to, MD5, patience=impatient)


def test_nobody_listening_is_a_line_too(to: Path):
    with pytest.raises(DownloadError, match=r"refused \(3 attempts\)"):
        download(["http://127.0.0.1:9/file.bin"], to, MD5, patience=QUICK)


def test_a_server_whose_name_is_not_known_is_not_asked_again(to: Path, monkeypatch):
    asked = []

    def unknown(host, *_, **__):
        asked.append(host)
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(DownloadError, match="the name of the server is not known here"):
        download(["http://nowhere.invalid/file.bin"], to, MD5)
    assert asked == ["nowhere.invalid"]


def test_each_further_attempt_is_said(to: Path):
    with (
        pytest.warns(DownloadWarning, match=r"127.0.0.1:9/file.bin: .*refused; attempt 2 of 2"),
        pytest.raises(DownloadError, match=r"\(2 attempts\)"),
    ):
        download(["http://127.0.0.1:9/file.bin"], to, MD5, patience=replace(QUICK, attempts=2))


def test_a_killed_download_is_continued(server: Server, to: Path):
    server.manners.hold = 300_000
    code = (
        "import sys; from pathlib import Path; from weir.files.downloads import download;"
        "download([sys.argv[1]], Path(sys.argv[2]), sys.argv[3])"
    )
    process = subprocess.Popen([sys.executable, "-c", code, server.url, str(to), MD5])
    part = to.with_name("file.bin.part")
    killed_when(process, lambda: part.exists() and part.stat().st_size > 200_000)
    server.manners.released.set()
    assert not to.exists()
    server.manners.hold = 0
    download([server.url], to, MD5, patience=QUICK)
    assert to.read_bytes() == DATA
    assert server.manners.asked[-1][1] is not None


def test_callers_at_the_same_time_share_one_download(server: Server, to: Path):
    threads = [threading.Thread(target=download, args=([server.url], to, MD5)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert to.read_bytes() == DATA
    assert len(server.manners.asked) == 1


def test_a_full_disk_is_one_line(server: Server, to: Path, monkeypatch: pytest.MonkeyPatch):
    import errno

    def full(self, *args, **kwargs):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    to.parent.mkdir()
    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(StoreError, match="no space left on the disk"):
        download([server.url], to, MD5, patience=QUICK)
