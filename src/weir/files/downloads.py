"""Downloads from elsewhere, never trusted: files over HTTP, archives, data sets of the Hugging Face hub."""

from __future__ import annotations

import hashlib
import http.client
import json
import re
import shutil
import stat
import tempfile
import time
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, TypeAlias
from urllib.parse import quote

from weir.errors import BadValue, DownloadError, FormatError, StoreError
from weir.files.atomic import atomic_dir, locked, storing, write_text
from weir.settings import hub_endpoint, hub_offline, secret

# Unpacks a zip from elsewhere without trusting it.

_ALWAYS_FINE = 1 << 27  # bytes: nothing so small is a bomb
_RATIO = 200  # unpacked to packed; collections of texts reach 10, their judgments 20
_SHOWN = 80  # characters of a member's name in a message
_LEVELS = 32  # folders that a member may lie in, one in another


def extract(archive: Path, to: Path) -> None:
    """Unpack a zip into a folder that appears whole or not at all.

    When all members lie in one folder, as in BEIR's archives, that folder becomes `to`.
    Raises FormatError for a damaged zip and for members that lead outside (absolute, `..`, links), lie more than
    32 folders deep, occur twice, are encrypted, or would unpack to more than 200 times the archive; StoreError when
    the disk refuses or has too little room.
    """
    try:
        with zipfile.ZipFile(archive) as source:
            members = [m for m in source.infolist() if not m.is_dir()]
            targets = _checked(members, archive)
            _check_size(sum(m.file_size for m in members), archive, to)
            with atomic_dir(to) as folder:
                for member, target in zip(members, targets, strict=True):
                    path = folder / target
                    path.parent.mkdir(parents=True, exist_ok=True)
                    with source.open(member) as packed, path.open("wb") as unpacked:
                        shutil.copyfileobj(packed, unpacked, 1 << 20)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, UnicodeDecodeError) as error:
        raise FormatError(archive, f"a damaged zip ({error})", "a whole one; fetch it again") from None


def _checked(members: list[zipfile.ZipInfo], archive: Path) -> list[PurePosixPath]:
    """Where each member goes, relative to the destination."""
    for member in members:
        if reason := _refused(member):
            found = f"the member '{member.orig_filename[:_SHOWN]}', {reason}"
            raise FormatError(
                archive, found, "plain files inside the archive's own folder; nothing was unpacked"
            )
    targets = [PurePosixPath(m.filename) for m in members]
    if len({str(t).casefold() for t in targets}) != len(targets):
        raise FormatError(archive, "two members of one name", "each file once; nothing was unpacked")
    tops = {t.parts[0] for t in targets}
    if len(tops) == 1 and all(len(t.parts) > 1 for t in targets):
        return [PurePosixPath(*t.parts[1:]) for t in targets]
    return targets


def _refused(member: zipfile.ZipInfo) -> str:
    name = member.orig_filename.replace("\\", "/")
    mode = member.external_attr >> 16
    if name.startswith("/") or name[1:2] == ":":
        return "an absolute path"
    if ".." in name.split("/"):
        return "which leads outside"
    if name.count("/") > _LEVELS:
        return f"which lies more than {_LEVELS} folders deep"
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
        return "a link or a special file"
    if member.flag_bits & 1:
        return "which is encrypted"
    return ""


def _check_size(unpacked: int, archive: Path, to: Path) -> None:
    packed = archive.stat().st_size
    if unpacked > max(_ALWAYS_FINE, _RATIO * packed):
        raise FormatError(
            archive, f"{packed:,} bytes that unpack to {unpacked:,}", f"at most {_RATIO} times as many"
        )
    near = next(p for p in (to, *to.parents) if p.exists())
    free = shutil.disk_usage(near).free
    if unpacked > free:
        raise StoreError(
            f"cannot unpack {archive.name} into {to}: needs {unpacked:,} bytes, {free:,} are free"
        )


# Fetches a file over HTTP: resumed after a cut, checked against its hash, there whole or not at all.

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


# Data sets of the Hugging Face hub: what a revision holds, and where its files are; without the hub's own library.

_API = Patience(timeout=20.0, window=20.0, attempts=3)
_TOKEN = "HF_TOKEN"
_COMMIT = re.compile(r"[0-9a-f]{40}")
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class HubFile:
    """A file of a revision: its path there, its length in bytes, and its checksum, "sha256:..." or "git:..."."""

    path: str
    bytes: int
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
        raise DownloadError(f"{shown} is not on this machine, and HF_HUB_OFFLINE forbids to ask the hub")
    place = (
        f"{hub_endpoint()}/api/datasets/{quote(repository)}/revision/{quote(revision, safe='')}?blobs=true"
    )
    address = _authorised(place)
    with tempfile.TemporaryDirectory(prefix="weir-") as folder:
        answer = Path(folder) / "revision.json"
        try:
            download([address], answer, patience=_API)
            told = json.loads(address.masked(answer.read_text(encoding="utf-8")))
        except DownloadError as error:
            raise DownloadError(f"{shown}: {_reason(str(error))}") from None
        except (ValueError, RecursionError):
            raise DownloadError(
                f"{shown}: {hub_endpoint()} answered with something that is no JSON"
            ) from None
    return _revision(repository, shown, told)


def hub_address(repository: str, commit: str, path: str) -> Address:
    """Where a file of a commit is downloaded from."""
    return _authorised(f"{hub_endpoint()}/datasets/{quote(repository)}/resolve/{commit}/{quote(path)}")


def _authorised(url: str) -> Address:
    return Address(url, secret(_TOKEN) or "")


def _reason(said: str) -> str:
    """What an answer of the hub means for who asked."""
    for status, meaning in (
        ("401", f"the hub knows no such public data set or revision; a private or gated one takes {_TOKEN}"),
        ("403", f"the hub gives no access; accept its terms there, and set {_TOKEN}"),
        ("404", "the hub knows no such data set or revision"),
    ):
        if f": {status} " in said:
            return meaning
    return f"the hub cannot be asked ({said.partition('; ')[2] or said})"


def _revision(repository: str, shown: str, told: Any) -> HubRevision:  # noqa: ANN401  JSON holds anything
    try:
        commit, listed = told["sha"], [_file(one) for one in told["siblings"]]
        card = told.get("cardData") or {}
        configs = tuple(one for one in card.get("configs") or () if isinstance(one, dict))
        if not _COMMIT.fullmatch(commit):
            raise ValueError(commit)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise DownloadError(f"{shown}: {hub_endpoint()} answered with no description of a data set") from None
    return HubRevision(repository, commit, tuple(one for one in listed if one is not None), configs)


def _file(told: Mapping[str, Any]) -> HubFile | None:
    """A file of the description; None for one whose name would lead outside."""
    path, large = str(told["rfilename"]), told.get("lfs")
    if path.startswith("/") or "\\" in path or ".." in path.split("/"):
        return None
    if large:
        digest = str(large["sha256"])
        if not _SHA256.fullmatch(digest):
            raise ValueError(digest)
        return HubFile(path, int(large["size"]), f"sha256:{digest}")
    return HubFile(path, int(told["size"]), f"git:{told['blobId']}")
