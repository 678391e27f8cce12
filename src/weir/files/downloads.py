"""Downloads from elsewhere, never trusted: files over HTTP, archives, data sets of the Hugging Face hub."""

from __future__ import annotations

import hashlib
import http.client
import json
import math
import os
import re
import shutil
import stat
import threading
import time
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from socket import SHUT_RDWR
from socket import socket as Socket
from string import punctuation
from typing import Any, TypeAlias
from urllib.parse import quote, urljoin

from weir.errors import BadValue, DownloadError, FormatError, StoreError
from weir.files.atomic import UNPORTABLE, atomic_dir, storing, temporary_folder, write_text
from weir.files.json_record import parse_json
from weir.files.leases import locked
from weir.files.masks import without_secret
from weir.files.retry_after import seconds_asked
from weir.files.text_files import check_members, check_unpacked
from weir.settings import (
    DESCRIPTION_BYTES,
    DESCRIPTION_SECONDS,
    IMPORT_BYTES,
    hub_endpoint,
    hub_offline,
    secret,
)

# Unpacks a zip from elsewhere without trusting it.

_SHOWN = 80  # characters of a member's name in a message
_LEVELS = 32  # folders that a member may lie in, one in another


def extract(archive: Path, to: Path) -> None:
    """Unpack a zip into a folder that appears whole or not at all.

    When all members lie in one folder, as in BEIR's archives, that folder becomes `to`.
    Raises FormatError for a damaged zip and for members that lead outside (absolute, `..`, links), lie more than
    32 folders deep, occur twice, are encrypted, are more than 10,000, or would unpack to more than 200 times the
    archive; StoreError when the disk refuses or has too little room.
    """
    try:
        with zipfile.ZipFile(archive) as source:
            members = [m for m in source.infolist() if not m.is_dir()]
            check_members(archive, len(members))
            for member in members:
                if reason := _refusal(member):
                    shown = f"the member '{member.orig_filename[:_SHOWN]}', {reason}"
                    expected = "plain files inside the archive's own folder; nothing was unpacked"
                    raise FormatError(archive, shown, expected)
            targets = [PurePosixPath(m.filename) for m in members]
            if len({str(t).casefold() for t in targets}) != len(targets):
                raise FormatError(archive, "two members of one name", "each file once; nothing was unpacked")
            if len({t.parts[0] for t in targets}) == 1 and all(len(t.parts) > 1 for t in targets):
                targets = [PurePosixPath(*t.parts[1:]) for t in targets]
            unpacked = sum(m.file_size for m in members)
            check_unpacked(archive, unpacked)
            _require_disk(unpacked, to, f"unpack {archive.name} into {to}")
            with atomic_dir(to) as folder:
                for member, target in zip(members, targets, strict=True):
                    path = folder / target
                    path.parent.mkdir(parents=True, exist_ok=True)
                    with source.open(member) as stream, path.open("wb") as file:
                        shutil.copyfileobj(stream, file, 1 << 20)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, UnicodeDecodeError) as error:
        raise FormatError(archive, f"a damaged zip ({error})", "a whole one; fetch it again") from None


def _require_disk(size: int, to: Path, doing: str) -> None:
    """Raise StoreError where a disk has less room than what is to be written there."""
    free = shutil.disk_usage(next(p for p in (to, *to.parents) if p.exists())).free
    if size > free:
        raise StoreError(f"cannot {doing}: needs {size:,} bytes, {free:,} are free")


def _refusal(member: zipfile.ZipInfo) -> str:
    """Why a member is not unpacked, "" where it is."""
    name = member.orig_filename.replace("\\", "/")
    if name.startswith("/") or name[1:2] == ":":
        return "an absolute path"
    if ".." in name.split("/"):
        return "which leads outside"
    if name.count("/") > _LEVELS:
        return f"which lies more than {_LEVELS} folders deep"
    if stat.S_IFMT(member.external_attr >> 16) not in (0, stat.S_IFREG):
        return "a link or a special file"
    if os.name != "posix" and any(map(UNPORTABLE.search, name.split("/"))):
        return "a name that Windows does not take"
    return "which is encrypted" if member.flag_bits & 1 else ""


# Fetches a file over HTTP: resumed after a cut, checked against its hash, there whole or not at all.

Progress: TypeAlias = Callable[[int, int | None], None]

_CHUNK = 1 << 16
_WORTH = 1 << 20  # bytes after which a connection that was cut counts as a good one
_LATER = {408, 425, 429, 500, 502, 503, 504}
_DIGITS = 18  # of the length of a file at most
_MOVED = {301, 302, 303, 307, 308}
_REDIRECTS = 10
_REASON = 300  # characters of what is wrong with an address


@dataclass(frozen=True)
class Address:
    """Where a file is; token: what opens it, sent to that host alone and not to where it may send on to."""

    url: str
    token: str = field(default="", repr=False)

    def masked(self, text: str) -> str:
        """What the server said, without the token."""
        return without_secret(text.encode("utf-8", "replace"), self.token).decode("utf-8", "replace")

    def __str__(self) -> str:
        return self.url


@dataclass(frozen=True)
class Patience:
    """When to give up on a server.

    timeout: seconds without any byte; slowest: bytes a second, less over `window` seconds is a stall, and so long may
    it take beyond the timeout until bytes of the file come; attempts: connections in a row that bring next to nothing;
    pause: seconds before the second, then doubled; whole: seconds that one connection may last; most: bytes of a file
    whose size is not published.
    """

    timeout: float = 30.0
    slowest: float = 1024.0
    window: float = 60.0
    attempts: int = 5
    pause: float = 1.0
    whole: float = math.inf
    most: float = IMPORT_BYTES


class _TryAgainError(Exception):
    """This connection failed; the next may not."""


class _HopelessError(Exception):
    """This address will not give the file."""


@dataclass(frozen=True)
class _Job:
    """One file to fetch; what has arrived lies in `part`, where it came from in `note`."""

    to: Path
    checksum: str | None
    size: int | None
    progress: Progress | None
    patience: Patience

    @property
    def part(self) -> Path:
        return self.to.with_name(self.to.name + ".part")

    @property
    def note(self) -> Path:
        return self.to.with_name(self.to.name + ".part.json")

    def have(self) -> int:
        return self.part.stat().st_size if self.part.exists() else 0

    def discard(self) -> None:
        self.part.unlink(missing_ok=True)
        self.note.unlink(missing_ok=True)

    def origin(self) -> dict[str, str]:
        """The url and the version of what has arrived, as far as they are known."""
        with suppress(OSError, ValueError):
            origin = json.loads(self.note.read_text(encoding="utf-8"))
            if isinstance(origin, dict):
                return {str(key): str(value) for key, value in origin.items()}
        return {}

    def refuse_more(self, size: int) -> None:
        """Give an address up that sends more than the file has."""
        most = self.patience.most if self.size is None else self.size
        if size > most:
            self.discard()
            bound = f"{most:,} bytes" if self.size is None else f"the {most:,} bytes that are published"
            raise _HopelessError(f"sends more than {bound}; the file was removed")


def download(
    urls: Sequence[str | Address],
    to: Path,
    checksum: str | None = None,
    size: int | None = None,
    progress: Progress | None = None,
    patience: Patience | None = None,
) -> None:
    """Fetch a file from the first of several addresses that gives it; a file that is there already is kept.

    What has arrived is kept in `<to>.part`, and the next call goes on from there where the server allows it.
    checksum: as `checksum_of` knows; a file with another one is removed. size: bytes expected, as `known_size` takes
    them; an address that sends more, or more than `Patience.most` where that is not known, is given up. progress is
    called with (bytes so far, bytes in all or None). Raises DownloadError, saying for each address what was wrong, and
    StoreError when the disk refuses or has too little room.
    """
    job = _Job(to, checksum, known_size(size), progress, patience or Patience())
    with locked(to.with_name(f".{to.name}.lock")):
        if to.exists() and (checksum is None or checksum_of(to, checksum) == checksum):
            return
        _require_disk((job.size or 0) - job.have(), to, f"fetch {to.name}")
        reasons = []
        for url in urls:
            address = url if isinstance(url, Address) else Address(url)
            try:
                _fetch(address, job)
            except _HopelessError as error:
                reason = " ".join(address.masked(str(error)).split())
                reasons.append(f"{url}: {reason[:_REASON]}")
                continue
            with storing(to):
                job.part.replace(to)
                job.note.unlink(missing_ok=True)
            return
    raise DownloadError(f"could not fetch {to.name}; " + ("; ".join(reasons) or "no address is known"))


def known_size(described: object) -> int | None:
    """A length in bytes that somebody describes; None where it is no positive whole number, or that of no file."""
    return described if type(described) is int and 0 < described < 1 << 53 else None


def checksum_of(path: Path, like: str) -> str:
    """The hash of a file, of the kind and in the form of `like`: "md5:...", "sha256:..." or "git:..."; raises BadValue.

    git: what git calls the file, the SHA-1 of a line with its length and of its bytes.
    """
    kind = like.partition(":")[0]
    if kind not in ("md5", "sha256", "git"):
        raise BadValue(f"the checksum '{like}' is neither md5:..., sha256:... nor git:...")
    name = "sha1" if kind == "git" else kind
    begun = hashlib.new(name, usedforsecurity=False)
    if kind == "git":
        begun.update(b"blob %d\0" % path.stat().st_size)
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, lambda: begun)
    return f"{kind}:{digest.hexdigest()}"


def _fetch(address: Address, job: _Job) -> None:
    """Bring the whole file into `job.part`, checked; raises _HopelessError when this address cannot."""
    url = address.url
    if not url.startswith(("http://", "https://")):
        raise _HopelessError("not an http address")
    if job.checksum is None and job.origin().get("url") != url:
        job.discard()  # nothing would tell whether two servers' halves fit together
    failures, resumed = 0, job.have() > 0
    while True:
        before = job.have()
        try:
            _transfer(address, job)
            if job.checksum is None or (checksum := checksum_of(job.part, job.checksum)) == job.checksum:
                return
            job.discard()
            if not resumed:
                raise _HopelessError(f"has {checksum}, published is {job.checksum}; the file was removed")
            resumed = False
        except _TryAgainError as error:
            gained = job.have() - before
            failures = 1 if gained >= _WORTH else failures + 1
            resumed = job.have() > 0
            if failures >= job.patience.attempts:
                raise _HopelessError(f"{error} ({failures} attempts)") from None
            time.sleep(min(30.0, job.patience.pause * 2 ** (failures - 1)))


class _Opener(urllib.request.HTTPHandler, urllib.request.HTTPSHandler):
    """Opens http and https, and ends what shows no sign of life for so many seconds, however its bytes trickle.

    late: whether it ended something, which may then look like a whole answer.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.late = False
        self._seconds = seconds
        self._connections: list[http.client.HTTPConnection] = []
        self._twin: Socket | None = None
        self._closed = threading.Event()
        self.alive()

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(self._held(http.client.HTTPConnection), req)

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(self._held(http.client.HTTPSConnection), req)

    def _held(self, kind: Callable[..., http.client.HTTPConnection]) -> Any:  # noqa: ANN401  urllib's protocol
        def make(host: str, timeout: float) -> http.client.HTTPConnection:
            self._connections.append(kind(host, timeout=timeout))
            return self._connections[-1]

        return make

    def alive(self) -> None:
        """Note a sign of life."""
        self._since = time.monotonic()

    @contextmanager
    def open(self, request: urllib.request.Request, timeout: float) -> Iterator[http.client.HTTPResponse]:
        """The answer to a request, redirects to http and https followed, watched as long as the block.

        Raises HTTPError for a status that is none of success, OSError and HTTPException where the connection breaks,
        _HopelessError and ValueError for redirects that lead nowhere.
        """
        director = urllib.request.OpenerDirector()
        for handler in (
            urllib.request.ProxyHandler(),
            urllib.request.UnknownHandler(),
            urllib.request.HTTPDefaultErrorHandler(),
            urllib.request.HTTPErrorProcessor(),
            self,
        ):
            director.add_handler(handler)
        threading.Thread(target=self._watch, daemon=True).start()
        try:
            with self._followed(director, request, timeout) as response, ExitStack() as stack:
                if not response.isclosed():  # urllib lets the connection go, and the answer reads on
                    self._twin = stack.enter_context(Socket(fileno=os.dup(response.fileno())))
                yield response
        finally:
            self._closed.set()

    def _followed(
        self, director: urllib.request.OpenerDirector, request: urllib.request.Request, timeout: float
    ) -> http.client.HTTPResponse:
        """The answer behind redirects, whose bodies nobody reads; what opens the first address is sent to no other."""
        for _ in range(_REDIRECTS):
            try:
                response: http.client.HTTPResponse = director.open(request, timeout=timeout)
                return response
            except urllib.error.HTTPError as error:
                location = error.headers.get("Location")
                if error.code not in _MOVED or not location:
                    raise
                error.close()
            location = quote(urljoin(request.full_url, location), encoding="latin-1", safe=punctuation)
            if not location.startswith(("http://", "https://")):
                raise _HopelessError(f"sends on to {location}, which is no http address")
            request = urllib.request.Request(location, headers=request.headers)
        raise _HopelessError(f"sends on more than {_REDIRECTS} times")

    def _watch(self) -> None:
        while not self._closed.wait(min(1.0, self._seconds / 4)):
            if time.monotonic() - self._since > self._seconds:
                self.late = True
                for socket in (*(connection.sock for connection in self._connections), self._twin):
                    if socket is not None:
                        with suppress(OSError):  # it is closed already
                            socket.shutdown(SHUT_RDWR)


def _transfer(address: Address, job: _Job) -> None:
    """One connection: append to the part, or write it anew where the server does not resume."""
    have, origin = job.have(), job.origin()
    request = urllib.request.Request(
        address.url, headers={"User-Agent": "weir", "Accept-Encoding": "identity"}
    )
    if have:
        request.add_header("Range", f"bytes={have}-")
        if origin.get("url") == address.url and origin.get("version"):
            request.add_header("If-Range", origin["version"])
    if address.token:
        request.add_unredirected_header("Authorization", f"Bearer {address.token}")
    opener = _Opener(job.patience.timeout + job.patience.window)
    try:
        with opener.open(request, job.patience.timeout) as response:
            headers, start = response.headers, 0
            if opener.late:
                raise TimeoutError
            if response.status not in (http.client.OK, http.client.PARTIAL_CONTENT):
                raise _HopelessError(f"{response.status} {response.reason}, which is no file")
            if response.status == http.client.PARTIAL_CONTENT:
                start, content = have, str(headers.get("Content-Range", ""))
                if not content.startswith(f"bytes {have}-"):
                    raise _TryAgainError(f"asked for bytes from {have}, got '{content}'")
            if start == 0:
                tag = headers.get("ETag", "")
                version = headers.get("Last-Modified", "") if not tag or tag.startswith("W/") else tag
                note = json.dumps({"url": address.url, "version": address.masked(version)})
                write_text(job.note, note, durable=False)
            _receive(response, start, job, opener)
    except urllib.error.HTTPError as error:
        with error:
            if error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE and have:
                if str(error.headers.get("Content-Range", "")) == f"bytes */{have}":
                    return  # the part is complete
                job.discard()
                raise _TryAgainError("the server has another file than before") from None
            answer = f"{error.code} {error.reason}"
            if error.code not in _LATER:
                raise _HopelessError(answer) from None
            time.sleep(min(job.patience.window, seconds_asked(error.headers.get("Retry-After"), time.time())))
            raise _TryAgainError(answer) from None
    except (http.client.HTTPException, OSError) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        if isinstance(reason, TimeoutError) or opener.late:
            raise _TryAgainError("no answer in time") from None
        system = reason.strerror if isinstance(reason, OSError) else None
        raise _TryAgainError(system or str(reason)) from None
    except ValueError:
        raise _HopelessError("sends on to something that is no address") from None


def _receive(response: http.client.HTTPResponse, start: int, job: _Job, opener: _Opener) -> None:
    length = response.headers.get("Content-Length")
    whole = start + int(length) if length and length.isdecimal() and len(length) <= _DIGITS else None
    job.refuse_more(whole or start)
    began = since = time.monotonic()
    have = mark = start
    with storing(job.part):
        file = job.part.open("ab" if start else "wb", buffering=0)
    with file:
        while data := response.read1(_CHUNK):
            opener.alive()
            job.refuse_more(have + len(data))
            with storing(job.part):
                file.write(data)
            have += len(data)
            if job.progress:
                job.progress(have, whole or job.size)
            now = time.monotonic()
            if now - began > job.patience.whole:
                job.discard()
                raise _HopelessError(
                    f"is not done after {job.patience.whole:g} seconds; the file was removed"
                )
            if now - since >= job.patience.window:
                if (have - mark) / (now - since) < job.patience.slowest:
                    raise _TryAgainError(f"stalled at {(have - mark) / (now - since):.0f} bytes/s")
                since, mark = now, have
    if opener.late:
        raise TimeoutError
    if whole is not None and have < whole:
        raise _TryAgainError(f"the connection was cut after {have:,} of {whole:,} bytes")


# Data sets of the Hugging Face hub: what a revision holds, and where its files are; without the hub's own library.

_API = Patience(timeout=20.0, window=20.0, attempts=3, whole=DESCRIPTION_SECONDS, most=DESCRIPTION_BYTES)
_TOKEN = "HF_TOKEN"
_MEANINGS = {
    "401": f"the hub knows no such public data set or revision; a private or gated one takes {_TOKEN}",
    "403": f"the hub gives no access; accept its terms there, and set {_TOKEN}",
    "404": "the hub knows no such data set or revision",
}
_COMMIT = re.compile(r"[0-9a-f]{40}")
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class HubFile:
    """A file of a revision: its path there, its checksum, "sha256:..." or "git:...", and its length in bytes.

    bytes: as `known_size` has it.
    """

    path: str
    bytes: int | None
    checksum: str


@dataclass(frozen=True)
class HubRevision:
    """What a name such as main stood for: the commit and its files.

    configs: the configurations that the data set's card declares, as it writes them.
    """

    repository: str
    commit: str
    files: tuple[HubFile, ...]
    configs: tuple[Mapping[str, Any], ...] = ()


def hub_revision(repository: str, revision: str = "main") -> HubRevision:
    """Ask the hub which commit a branch, tag or commit is, and what it holds.

    Raises DownloadError in one line: offline, no such data set or revision, no access, an answer that is none.
    """
    shown = f"hf:{repository}" + (f"@{revision}" if revision != "main" else "")
    if hub_offline():
        raise DownloadError(f"{shown} is not on this machine, and HF_HUB_OFFLINE forbids requests to the hub")
    url = f"{hub_endpoint()}/api/datasets/{quote(repository)}/revision/{quote(revision, safe='')}?blobs=true"
    address = _authorised(url)
    with temporary_folder("hub") as folder:
        answer = folder / "revision.json"
        try:
            download([address], answer, patience=_API)
            data = answer.read_text(encoding="utf-8")
            description = parse_json(address.masked(data).encode("utf-8"), "what the hub says of it")
        except DownloadError as error:
            meaning = next((text for status, text in _MEANINGS.items() if f": {status} " in str(error)), "")
            reason = str(error).partition("; ")[2] or str(error)
            raise DownloadError(
                f"{shown}: {meaning or f'the request to the hub failed ({reason})'}"
            ) from None
        except (ValueError, FormatError):
            no_json = f"{hub_endpoint()} answered with something that is no JSON"
            raise DownloadError(f"{shown}: {no_json}") from None
    try:
        commit, files = description["sha"], [_hub_file(one) for one in description["siblings"]]
        card = description.get("cardData") or {}
        configs = tuple(one for one in card.get("configs") or () if isinstance(one, dict))
        if not _COMMIT.fullmatch(commit):
            raise ValueError(commit)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        raise DownloadError(f"{shown}: {hub_endpoint()} answered with no description of a data set") from None
    return HubRevision(repository, commit, tuple(one for one in files if one is not None), configs)


def hub_address(repository: str, commit: str, path: str) -> Address:
    """Where a file of a commit is downloaded from."""
    return _authorised(f"{hub_endpoint()}/datasets/{quote(repository)}/resolve/{commit}/{quote(path)}")


def _authorised(url: str) -> Address:
    return Address(url, secret(_TOKEN) or "")


def _hub_file(description: Mapping[str, Any]) -> HubFile | None:
    """A file of the description; None for one whose name would lead outside."""
    path, large = str(description["rfilename"]), description.get("lfs")
    if "\0" in path:
        raise ValueError(path)
    if path.startswith("/") or path[1:2] == ":" or "\\" in path or ".." in path.split("/"):
        return None
    if large:
        digest = str(large["sha256"])
        if not _SHA256.fullmatch(digest):
            raise ValueError(digest)
        return HubFile(path, known_size(large.get("size")), f"sha256:{digest}")
    return HubFile(path, known_size(description.get("size")), f"git:{description['blobId']}")
