"""Fetch files over HTTP, unpack zips, list data sets of the Hugging Face hub."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import shutil
import stat
import time
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from http.client import HTTPException, IncompleteRead
from pathlib import Path, PurePosixPath
from socket import gaierror
from string import punctuation
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import quote, urljoin

from weir.errors import (
    UNKNOWN_SERVER,
    BadValue,
    DownloadError,
    DownloadWarning,
    FormatError,
    StoreError,
    give_warning,
)
from weir.files.atomic import UNPORTABLE, atomic_dir, storing, temporary_folder, write_text
from weir.files.json_record import parse_json
from weir.files.leases import locked
from weir.files.masks import without_secret
from weir.files.network import (
    PIECE_BYTES,
    RETRYABLE_STATUSES,
    KeptConnection,
    NotSentError,
    seconds_asked,
    seconds_before,
)
from weir.files.text_files import check_members, check_unpacked
from weir.settings import (
    DESCRIPTION_BYTES,
    DESCRIPTION_SECONDS,
    IMPORT_BYTES,
    hub_endpoint,
    hub_offline,
    secret,
)

if TYPE_CHECKING:
    from urllib3.response import BaseHTTPResponse

# Unpacks a zip from elsewhere without trusting it.

_SHOWN = 80  # characters of a member's name in a message
_LEVELS = 32  # folders that a member may lie in, one in another


def extract(archive: Path, to: Path) -> None:
    """Unpack a zip atomically into the folder `to`, without the zip's single top folder if it has one.

    Raises FormatError for a damaged, unsafe or oversized zip, StoreError for a full disk.
    """
    try:
        with zipfile.ZipFile(archive) as source:
            members = [m for m in source.infolist() if not m.is_dir()]
            check_members(archive, [member.filename for member in members])
            for member in members:
                if reason := _refusal_reason(member):
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
    free = shutil.disk_usage(next(p for p in (to, *to.parents) if p.exists())).free
    if size > free:
        raise StoreError(f"cannot {doing}: needs {size:,} bytes, {free:,} are free")


def _refusal_reason(member: zipfile.ZipInfo) -> str:
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
"""Called with (bytes so far, total bytes or None)."""

_WORTH = 1 << 20  # bytes after which a connection that was cut counts as a good one
_DIGITS = 18  # of the length of a file at most
_MOVED = {301, 302, 303, 307, 308}
_REDIRECTS = 10
_REASON = 300  # characters of the fault of an address


@dataclass(frozen=True)
class Address:
    """The URL of a file, with an access token for its server ("" for none)."""

    url: str
    token: str = field(default="", repr=False)
    """Credential, sent to this host only and not after redirects."""

    def masked(self, text: str) -> str:
        """Return a text with the token replaced."""
        return without_secret(text.encode("utf-8", "replace"), self.token).decode("utf-8", "replace")

    def __str__(self) -> str:
        return self.url


@dataclass(frozen=True)
class Patience:
    """Time limits, size limit and number of attempts of a download."""

    timeout: float = 30.0
    """Seconds without any byte."""
    slowest: float = 1024.0
    """Bytes a second; fewer over `window` seconds are a stall."""
    window: float = 60.0
    """Seconds; also the time beyond `timeout` until the first bytes of the file."""
    attempts: int = 5
    """Successive connections with less than 1 MiB each after which the address counts as failed."""
    pause: float = 1.0
    """Seconds before the second attempt, then doubled."""
    whole: float = math.inf
    """Seconds that one connection may last."""
    most: float = IMPORT_BYTES
    """Maximal bytes of a file of unknown size."""


class _TryAgainError(Exception):
    def __init__(self, message: str, wait: float = 0.0) -> None:
        super().__init__(message)
        self.wait = wait


class _HopelessError(Exception):
    pass


@dataclass(frozen=True)
class _Job:
    to: Path
    checksum: str | None
    size: int | None
    progress: Progress | None
    patience: Patience

    @property
    def part_file(self) -> Path:
        return self.to.with_name(self.to.name + ".part")

    @property
    def note(self) -> Path:
        return self.to.with_name(self.to.name + ".part.json")

    def have(self) -> int:
        return self.part_file.stat().st_size if self.part_file.exists() else 0

    def discard(self) -> None:
        self.part_file.unlink(missing_ok=True)
        self.note.unlink(missing_ok=True)

    def origin(self) -> dict[str, str]:
        with suppress(OSError, ValueError):
            origin = json.loads(self.note.read_text(encoding="utf-8"))
            if isinstance(origin, dict):
                return {str(key): str(value) for key, value in origin.items()}
        return {}

    def refuse_more(self, size: int) -> None:
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
    """Fetch a file from the first address that provides it; an existing file with the right checksum is kept.

    checksum: "md5:...", "sha256:..." or "git:...". None keeps any existing file.
    size: expected bytes; None for at most `Patience.most`. An address that sends more fails.

    Resumes from `<to>.part`. Raises DownloadError with a reason for each address, StoreError for a full disk.
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
                job.part_file.replace(to)
                job.note.unlink(missing_ok=True)
            return
    raise DownloadError(f"could not fetch {to.name}; " + ("; ".join(reasons) or "no address is known"))


def known_size(described: object) -> int | None:
    """Return a size read from JSON if it is an int in 1..2**53-1, else None."""
    return described if type(described) is int and 0 < described < 1 << 53 else None


def checksum_of(path: Path, like: str) -> str:
    """Return a file's hash in the form of `like`: "md5:...", "sha256:..." or "git:..." (a blob's SHA-1); raises
    BadValue for any other form.
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
            if job.checksum is None or (checksum := checksum_of(job.part_file, job.checksum)) == job.checksum:
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
            give_warning(
                DownloadWarning(f"{url}: {error}; attempt {failures + 1} of {job.patience.attempts}")
            )
            time.sleep(seconds_before(failures + 1, job.patience.pause, 30.0, error.wait))


def _transfer(address: Address, job: _Job) -> None:
    have, origin, patience = job.have(), job.origin(), job.patience
    headers = {"Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
        if origin.get("url") == address.url and origin.get("version"):
            headers["If-Range"] = origin["version"]
    try:
        with closing(KeptConnection(("http", "https"))) as connection, ExitStack() as stack:
            response = _followed(address, headers, patience, connection, stack)
            start = _first_byte(response, address, have, job)
            if start is not None:
                _receive(response, start, job, connection)
    except (NotSentError, HTTPException, OSError) as error:
        reason = error.reason if isinstance(error, NotSentError) else error
        said = reason.strerror if isinstance(reason, OSError) else None
        if isinstance(reason, gaierror) and not have:
            raise _HopelessError(f"{UNKNOWN_SERVER} ({said})") from None
        if isinstance(reason, TimeoutError):
            said = "no answer in time"
        elif isinstance(reason, IncompleteRead):
            total = f" of {job.have() + reason.expected:,}" if reason.expected else ""
            said = f"the connection was cut after {job.have():,}{total} bytes"
        raise _TryAgainError(said or str(reason)) from None
    except ValueError:
        raise _HopelessError("sends on to something that is no address") from None


def _followed(
    address: Address,
    headers: Mapping[str, str],
    patience: Patience,
    connection: KeptConnection,
    stack: ExitStack,
) -> BaseHTTPResponse:
    url, token = address.url, {"Authorization": f"Bearer {address.token}"} if address.token else {}
    silence, whole = patience.timeout, patience.timeout + patience.window
    for _ in range(_REDIRECTS):
        answer = connection.open("GET", url, {**headers, **token}, silence=silence, whole=whole)
        response = stack.enter_context(answer)
        location, token = response.headers.get("Location"), {}
        if response.status not in _MOVED or not location:
            return response
        stack.close()
        url = quote(urljoin(url, location), encoding="latin-1", safe=punctuation)
        if not url.startswith(("http://", "https://")):
            raise _HopelessError(f"sends on to {url}, which is no http address")
    raise _HopelessError(f"sends on more than {_REDIRECTS} times")


def _first_byte(response: BaseHTTPResponse, address: Address, have: int, job: _Job) -> int | None:
    status, content = response.status, response.headers.get("Content-Range", "")
    if status == HTTPStatus.PARTIAL_CONTENT:
        if not content.startswith(f"bytes {have}-"):
            raise _TryAgainError(f"asked for bytes from {have}, got '{content}'")
        return have
    if status == HTTPStatus.OK:
        tag = response.headers.get("ETag", "")
        version = response.headers.get("Last-Modified", "") if not tag or tag.startswith("W/") else tag
        note = json.dumps({"url": address.url, "version": address.masked(version)})
        write_text(job.note, note, durable=False)
        return 0
    if status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and have:
        if content == f"bytes */{have}":
            return None
        job.discard()
        raise _TryAgainError("the server has another file than before")
    answer = f"{status} {response.reason}"
    if status not in RETRYABLE_STATUSES:
        raise _HopelessError(answer if status >= HTTPStatus.BAD_REQUEST else f"{answer}, which is no file")
    asked = seconds_asked(response.headers.get("Retry-After"), time.time())
    raise _TryAgainError(answer, min(job.patience.window, asked))


def _receive(response: BaseHTTPResponse, start: int, job: _Job, connection: KeptConnection) -> None:
    length, patience = response.headers.get("Content-Length"), job.patience
    whole = start + int(length) if length and length.isdecimal() and len(length) <= _DIGITS else None
    job.refuse_more(whole or start)
    began = since = time.monotonic()
    have = mark = start
    with storing(job.part_file):
        file = job.part_file.open("ab" if start else "wb", buffering=0)
    with file:
        while data := response.read1(PIECE_BYTES):
            connection.extend(patience.timeout + patience.window)
            job.refuse_more(have + len(data))
            with storing(job.part_file):
                file.write(data)
            have += len(data)
            if job.progress:
                job.progress(have, whole or job.size)
            now = time.monotonic()
            if now - began > patience.whole:
                job.discard()
                raise _HopelessError(f"is not done after {patience.whole:g} seconds; the file was removed")
            if now - since >= patience.window:
                if (have - mark) / (now - since) < patience.slowest:
                    raise _TryAgainError(f"stalled at {(have - mark) / (now - since):.0f} bytes/s")
                since, mark = now, have


# Data sets of the Hugging Face hub: revisions and addresses of files, without the hub's own library.

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
    """A file of a Hugging Face data set, with its size and hash."""

    path: str
    bytes: int | None
    """None if the hub does not state it."""
    checksum: str
    """"sha256:..." or "git:..."."""


@dataclass(frozen=True)
class HubRevision:
    """A commit of a Hugging Face data set, with its files."""

    commit: str
    files: tuple[HubFile, ...]
    configs: tuple[Mapping[str, Any], ...] = ()
    """Configurations as the data set's card declares them."""


def hub_revision(repository: str, revision: str = "main") -> HubRevision:
    """Return a commit and its files of a Hugging Face data set, such as "mteb/nfcorpus".

    revision: a branch, tag or commit.

    Raises DownloadError if offline, unknown or inaccessible.
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
    return HubRevision(commit, tuple(one for one in files if one is not None), configs)


def hub_address(repository: str, commit: str, path: str) -> Address:
    """Return the download address of a file of a Hugging Face data set, with the token from HF_TOKEN if set."""
    return _authorised(f"{hub_endpoint()}/datasets/{quote(repository)}/resolve/{commit}/{quote(path)}")


def _authorised(url: str) -> Address:
    return Address(url, secret(_TOKEN) or "")


def _hub_file(description: Mapping[str, Any]) -> HubFile | None:
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
