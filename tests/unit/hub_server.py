"""A server that speaks the hub's API for data sets and models, on this machine, with the manners a test gives it."""

from __future__ import annotations

import contextlib
import hashlib
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import parse_qs, unquote, urlsplit

from tests.kills import MOST_SECONDS
from tests.unit.model_servers import LocalHandler, running


def commit_of(files: dict[str, bytes]) -> str:
    whole = hashlib.sha1()
    for path, data in sorted(files.items()):
        whole.update(path.encode() + b"\0" + hashlib.sha1(data).digest())
    return whole.hexdigest()


def git_name(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


@dataclass
class Hub:
    """What the hub holds, how it behaves, and what it was asked.

    held: repository -> commit -> path -> bytes; branches: (repository, name) -> commit; cards: repository -> configs;
    large: endings of files that lie in LFS; token: what opens everything, "" where all is public; fail: statuses to
    answer with first; cut: bytes after which each next download breaks off; spoiled: paths whose bytes are other ones;
    drip: seconds between two pieces; hold: bytes of a download after which nothing comes until `released`.
    """

    held: dict[str, dict[str, dict[str, bytes]]] = field(default_factory=dict)
    branches: dict[tuple[str, str], str] = field(default_factory=dict)
    cards: dict[str, list[dict]] = field(default_factory=dict)
    large: tuple[str, ...] = (".parquet",)
    token: str = ""
    fail: list[int] = field(default_factory=list)
    cut: list[int] = field(default_factory=list)
    spoiled: set[str] = field(default_factory=set)
    drip: float = 0.0
    hold: int | None = None
    released: threading.Event = field(default_factory=threading.Event)
    said: bytes | None = None
    asked: list[tuple[str, str, str]] = field(default_factory=list)
    url: str = ""
    store: str = ""  # where large files are sent to

    def put(self, repository: str, files: dict[str, bytes], branch: str = "main") -> str:
        commit = commit_of(files)
        self.held.setdefault(repository, {})[commit] = files
        self.branches[repository, branch] = commit
        return commit

    def paths(self, method: str = "GET") -> list[str]:
        return [path for how, path, _ in self.asked if how == method]


class HubHandler(LocalHandler):
    hub: Hub

    def end_headers(self):
        self.send_header("Connection", "close")
        super().end_headers()

    def do_HEAD(self):
        self.answer(body=False)

    def do_GET(self):
        self.answer(body=True)

    def answer(self, body: bool) -> None:
        self.close_connection = True
        url = urlsplit(self.path)
        path = unquote(url.path)
        authorised = self.headers.get("Authorization", "")
        self.hub.asked.append((self.command, path, authorised))
        if path.startswith("/lfs/"):
            digest = path.removeprefix("/lfs/")
            self.send_data(
                next(d for d in self.all_data() if hashlib.sha256(d).hexdigest() == digest), digest, body
            )
        elif self.hub.token and authorised != f"Bearer {self.hub.token}":
            self.send_error(401)
        elif self.hub.fail:
            self.send_error(self.hub.fail.pop(0))
        elif path.startswith("/api/"):
            rest = path.removeprefix("/api/").partition("/")[2]
            if "/tree/" in rest:
                self.tree(rest, body)
            else:
                self.describe(rest, parse_qs(url.query), body)
        else:
            self.resolve(path.removeprefix("/datasets").removeprefix("/"), body)

    def all_data(self) -> Iterator[bytes]:
        for commits in self.hub.held.values():
            for files in commits.values():
                yield from files.values()

    def describe(self, rest: str, query: dict, body: bool) -> None:
        repository, _, revision = rest.partition("/revision/")
        commit = self.commit(repository, revision or "main")
        if commit is None:
            self.send_error(404)
            return
        siblings = []
        for path, data in self.hub.held[repository][commit].items():
            one = {"rfilename": path}
            if "blobs" in query:
                one |= {"size": len(data), "blobId": git_name(data)}
                if path.endswith(self.hub.large):
                    one["lfs"] = {
                        "sha256": hashlib.sha256(data).hexdigest(),
                        "size": len(data),
                        "pointerSize": 130,
                    }
            siblings.append(one)
        told = {"id": repository, "sha": commit, "siblings": siblings, "private": False, "disabled": False, "gated": False,
                "downloads": 1, "likes": 0, "tags": [], "lastModified": "2026-01-01T00:00:00.000Z"}  # fmt: skip
        if repository in self.hub.cards:
            told["cardData"] = {"configs": self.hub.cards[repository]}
        self.send_whole(
            self.hub.said or json.dumps(told).encode(), {"Content-Type": "application/json"}, body
        )

    def tree(self, rest: str, body: bool) -> None:
        repository, _, revision = rest.partition("/tree/")
        listed = []
        for path, data in self.hub.held[repository][revision].items():
            one = {"type": "file", "path": path, "size": len(data), "oid": git_name(data)}
            if path.endswith(self.hub.large):
                one["lfs"] = {"oid": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 130}
            listed.append(one)
        self.send_whole(json.dumps(listed).encode(), {"Content-Type": "application/json"}, body)

    def commit(self, repository: str, revision: str) -> str | None:
        commits = self.hub.held.get(repository, {})
        return revision if revision in commits else self.hub.branches.get((repository, revision))

    def resolve(self, rest: str, body: bool) -> None:
        repository, _, more = rest.partition("/resolve/")
        revision, _, path = more.partition("/")
        commit = self.commit(repository, revision)
        data = self.hub.held.get(repository, {}).get(commit or "", {}).get(path)
        if data is None:
            self.send_error(404)
        elif path.endswith(self.hub.large):
            digest = hashlib.sha256(data).hexdigest()
            self.send_response(302)
            for name, value in (("Location", f"{self.hub.store or self.hub.url}/lfs/{digest}"), ("X-Repo-Commit", commit),
                                ("X-Linked-Etag", f'"{digest}"'), ("X-Linked-Size", str(len(data))), ("Content-Length", "0")):  # fmt: skip
                self.send_header(name, value)
            self.end_headers()
        else:
            self.send_data(data, git_name(data), body, {"X-Repo-Commit": commit})

    def send_data(self, data: bytes, tag: str, body: bool, more: dict[str, str] | None = None) -> None:
        asked = self.headers.get("Range", "")
        start = int(asked.removeprefix("bytes=").rstrip("-")) if asked.endswith("-") else 0
        if any(name in self.path for name in self.hub.spoiled) or tag in self.hub.spoiled:
            data = bytes(len(data))
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        for name, value in {
            "ETag": f'"{tag}"',
            "Content-Length": str(len(data) - start),
            **(more or {}),
        }.items():
            self.send_header(name, value)
        self.end_headers()
        rest = data[start : start + self.hub.cut.pop(0)] if body and self.hub.cut else data[start:]
        with contextlib.suppress(OSError):
            for at in range(0, len(rest) if body else 0, 1 << 16):
                self.wfile.write(rest[at : at + (1 << 16)])
                self.wfile.flush()
                time.sleep(self.hub.drip)
                if self.hub.hold is not None and at >= self.hub.hold:
                    self.hub.released.wait(MOST_SECONDS)

    def send_whole(self, data: bytes, headers: dict[str, str], body: bool) -> None:
        self.send_response(200)
        for name, value in {"Content-Length": str(len(data)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if body:
            self.wfile.write(data)


@contextlib.contextmanager
def served(hub: Hub) -> Iterator[Hub]:
    with running(HubHandler, hub=hub) as hub.url:
        yield hub
