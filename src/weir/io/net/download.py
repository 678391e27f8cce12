"""Fetches a file over HTTP: resumed after a cut, checked against its hash, there whole or not at all."""

from __future__ import annotations

import hashlib
import http.client
import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from weir.errors import BadValue, DownloadError
from weir.io.storage.atomic import locked, storing, write_text

__all__ = ["Address", "Patience", "Progress", "checksum_of", "download"]

Progress: TypeAlias = Callable[[int, int | None], None]

_CHUNK = 1 << 16
_WORTH = 1 << 20  # bytes after which a connection that was cut counts as a good one
_LATER = {408, 425, 429, 500, 502, 503, 504}


@dataclass(frozen=True)
class Address:
    """Where a file is; token: what opens it, sent to that host alone and not to where it may send on to."""

    url: str
    token: str = field(default="", repr=False)

    def masked(self, text: str) -> str:
        """What the server said, without the token."""
        return text.replace(self.token, "***") if self.token else text

    def __str__(self) -> str:
        return self.url


@dataclass(frozen=True)
class Patience:
    """When to give up on a server.

    timeout: seconds without any byte; slowest: bytes a second, less over `window` seconds is a stall;
    attempts: connections in a row that bring next to nothing; pause: seconds before the second, then doubled.
    """

    timeout: float = 30.0
    slowest: float = 1024.0
    window: float = 60.0
    attempts: int = 5
    pause: float = 1.0


class _TryAgainError(Exception):
    """This connection failed; the next may not."""


class _HopelessError(Exception):
    """This address will not give the file."""


@dataclass(frozen=True)
class _Job:
    """One file to fetch; what has arrived lies in `part`, where it came from in `origin`."""

    to: Path
    checksum: str | None
    size: int | None
    progress: Progress | None
    patience: Patience

    @property
    def part(self) -> Path:
        return self.to.with_name(self.to.name + ".part")

    @property
    def origin(self) -> Path:
        return self.to.with_name(self.to.name + ".part.json")

    def have(self) -> int:
        return self.part.stat().st_size if self.part.exists() else 0

    def discard(self) -> None:
        self.part.unlink(missing_ok=True)
        self.origin.unlink(missing_ok=True)


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
    checksum: as `checksum_of` knows; a file with another one is removed. size: bytes expected; an address that
    sends more is given up. progress is called with (bytes so far, bytes in all or None). Raises DownloadError,
    saying for each address what was wrong, and StoreError when the disk refuses.
    """
    job = _Job(to, checksum, size, progress, patience or Patience())
    with locked(to.with_name(f".{to.name}.lock")):
        if to.exists() and (checksum is None or checksum_of(to, checksum) == checksum):
            return
        reasons = []
        for url in urls:
            address = url if isinstance(url, Address) else Address(url)
            try:
                _fetch(address, job)
            except _HopelessError as error:
                reasons.append(f"{url}: {address.masked(str(error))}")
                continue
            with storing(to):
                job.part.replace(to)
                job.origin.unlink(missing_ok=True)
            return
    raise DownloadError(f"could not fetch {to.name}; " + ("; ".join(reasons) or "no address is known"))


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
    if job.checksum is None and _origin(job).get("url") != url:
        job.discard()  # nothing would tell whether two servers' halves fit together
    failures, resumed = 0, job.have() > 0
    while True:
        before = job.have()
        try:
            _transfer(address, job)
            if _verified(job, resumed):
                return
            resumed = False
        except _TryAgainError as error:
            gained = job.have() - before
            failures = 1 if gained >= _WORTH else failures + 1
            resumed = job.have() > 0
            if failures >= job.patience.attempts:
                raise _HopelessError(f"{error} ({failures} attempts)") from None
            time.sleep(min(30.0, job.patience.pause * 2 ** (failures - 1)))


def _verified(job: _Job, resumed: bool) -> bool:
    """Whether the file is the published one; False asks for another go, from the start."""
    if job.checksum is None or (found := checksum_of(job.part, job.checksum)) == job.checksum:
        return True
    job.discard()
    if resumed:
        return False
    raise _HopelessError(f"has {found}, published is {job.checksum}; the file was removed")


def _transfer(address: Address, job: _Job) -> None:
    """One connection: append to the part, or write it anew where the server does not resume."""
    url, have = address.url, job.have()
    request = urllib.request.Request(url, headers=_headers(url, have, job))
    if address.token:
        request.add_unredirected_header("Authorization", f"Bearer {address.token}")
    try:
        with urllib.request.urlopen(request, timeout=job.patience.timeout) as response:
            start = _start(response, have)
            if start == 0:
                _note_origin(address, response, job)
            _receive(response, start, job)
    except urllib.error.HTTPError as error:
        _refusal(error, have, job)
    except urllib.error.URLError as error:
        raise _TryAgainError(_said(error.reason)) from None
    except (http.client.HTTPException, OSError) as error:
        raise _TryAgainError(_said(error)) from None


def _headers(url: str, have: int, job: _Job) -> dict[str, str]:
    headers = {"User-Agent": "weir", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
        origin = _origin(job)
        if origin.get("url") == url and origin.get("version"):
            headers["If-Range"] = origin["version"]
    return headers


def _start(response: Any, have: int) -> int:  # noqa: ANN401  (urllib names no type for its responses)
    """The byte the response begins with."""
    if response.status != http.client.PARTIAL_CONTENT:
        return 0
    given = str(response.headers.get("Content-Range", ""))
    if not given.startswith(f"bytes {have}-"):
        raise _TryAgainError(f"asked for bytes from {have}, got '{given}'")
    return have


def _receive(response: Any, start: int, job: _Job) -> None:  # noqa: ANN401  (urllib names no type for its responses)
    length = response.headers.get("Content-Length")
    whole = start + int(length) if length and length.isdecimal() else None
    _refuse_more(whole or start, job)
    have, since, mark = start, time.monotonic(), start
    with storing(job.part):
        file = job.part.open("ab" if start else "wb", buffering=0)
    with file:
        while data := response.read1(_CHUNK):
            _refuse_more(have + len(data), job)
            with storing(job.part):
                file.write(data)
            have += len(data)
            if job.progress:
                job.progress(have, whole or job.size)
            now = time.monotonic()
            if now - since >= job.patience.window:
                if (have - mark) / (now - since) < job.patience.slowest:
                    raise _TryAgainError(f"stalled at {(have - mark) / (now - since):.0f} bytes/s")
                since, mark = now, have
    if whole is not None and have < whole:
        raise _TryAgainError(f"the connection was cut after {have:,} of {whole:,} bytes")


def _refuse_more(size: int, job: _Job) -> None:
    """Give an address up that sends more than the file has."""
    if job.size and size > job.size:  # 0 where it is not known
        job.discard()
        raise _HopelessError(
            f"sends more than the {job.size:,} bytes that are published; the file was removed"
        )


def _refusal(error: urllib.error.HTTPError, have: int, job: _Job) -> None:
    """Decide what an HTTP error means; returns only when the part turns out to be complete."""
    with error:
        if error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE and have:
            if str(error.headers.get("Content-Range", "")) == f"bytes */{have}":
                return
            job.discard()
            raise _TryAgainError("the server has another file than before")
        said = f"{error.code} {error.reason}"
        if error.code not in _LATER:
            raise _HopelessError(said)
        wait = error.headers.get("Retry-After", "")
        if wait.isdecimal():
            time.sleep(min(60.0, float(wait)))
        raise _TryAgainError(said)


def _origin(job: _Job) -> dict[str, str]:
    with suppress(OSError, ValueError):
        origin = json.loads(job.origin.read_text(encoding="utf-8"))
        if isinstance(origin, dict):
            return {str(key): str(value) for key, value in origin.items()}
    return {}


def _note_origin(address: Address, response: Any, job: _Job) -> None:  # noqa: ANN401  (urllib names no type for its responses)
    tag = response.headers.get("ETag", "")
    version = response.headers.get("Last-Modified", "") if not tag or tag.startswith("W/") else tag
    write_text(
        job.origin, json.dumps({"url": address.url, "version": address.masked(version)}), durable=False
    )


def _said(error: object) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    text = str(error)
    return text if not isinstance(error, OSError) else (error.strerror or text)
