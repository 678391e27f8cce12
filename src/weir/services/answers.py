"""Answers of services, kept by what was asked: written and checksummed before they are used, asked for once.

<home>/answers/<name>-<key>/
    about.json       everything that decides an answer, for the reader
    answers.jsonl    a line for each answer: {"key": of what was asked, "crc": of key and value, "value": {...}}

The file only grows, and any tool reads it. A killed process loses the line it was writing and nothing else: half a
line at the end is cut off when the file is opened again, a damaged one is forgotten and its question asked again.
Memory holds 32 bytes for each answer: where it stands. Of several processes one asks at a time, the others wait and
then find what it was answered.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import threading
import time
import warnings
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from weir.core.strings import Int64
from weir.errors import StoreError, StoreWarning
from weir.io.storage.atomic import locked, storing, write_json
from weir.registry import session_only
from weir.settings import settings

__all__ = ["AnswerKey", "AnswerStore", "answer_key", "answer_store", "kept_answers"]

ANSWERS, ABOUT = "answers.jsonl", "about.json"
SYNC_SECONDS = 1.0
"""A power cut loses the answers of so much time at most; a killed process loses none."""
RECENT_ANSWERS = 1 << 15
"""Answers whose places are kept in a dict before they are sorted among the others."""
_CRC_AT, _VALUE_AT = 49, 67  # where a line has its checksum and its value

AnswerKey = tuple[int, int]
"""The two halves of the hash of what was asked."""


def answer_key(asked: object) -> AnswerKey:
    """The 128-bit hash of what is asked, any value that JSON can write."""
    text = json.dumps(asked, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    return int.from_bytes(digest[:8]), int.from_bytes(digest[8:])


@contextmanager
def answer_store(name: str, about: Mapping[str, object]) -> Iterator[AnswerStore]:
    """The answers to whatever `about` describes entirely, open for asking as long as the block.

    name: how its folder begins. What declares no version (see Identity in registry.py) is kept for the block alone, in
    a file that goes with the process. Waits for a process that asks the same. Raises StoreError where nothing can be
    written; warns (StoreWarning) of answers that were damaged.
    """
    if session_only(about):
        with tempfile.TemporaryFile(buffering=0) as file:
            yield AnswerStore(Path("answers of this process"), file)
        return
    folder, text = _folder(name, about)
    path = folder / ANSWERS
    with locked(folder.with_name(f".{folder.name}.lock")):
        with storing(path):
            folder.mkdir(parents=True, exist_ok=True)
            if not path.exists():
                write_json(folder / ABOUT, json.loads(text))
            file = path.open("a+b", buffering=0)
        with file:
            store = AnswerStore(path, file)
            store.read_places()
            try:
                yield store
            finally:
                store.sync()


@contextmanager
def kept_answers(name: str, about: Mapping[str, object]) -> Iterator[AnswerStore | None]:
    """The answers that are kept of what `answer_store` names so, for reading alone; None where there are none.

    Waits for nobody: what another process writes meanwhile may be there or not.
    """
    path = _folder(name, about)[0] / ANSWERS
    if session_only(about) or not path.is_file():
        yield None
        return
    with storing(path):
        file = path.open("rb", buffering=0)
    with file:
        store = AnswerStore(path, file)
        store.read_places(mend=False)
        yield store


def _folder(name: str, about: Mapping[str, object]) -> tuple[Path, str]:
    """(the folder of some answers, what they are about as JSON)."""
    text = json.dumps(about, sort_keys=True, default=str)
    key = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    slug = "".join(c if c.isalnum() or c in "._-" else "-" for c in name).strip("-.")[:60]
    return settings().home / "answers" / f"{slug}-{key}", text


def _whole(line: bytes) -> bool:
    """Whether a line is as it was written."""
    name, said = line[8:40], line[_VALUE_AT:-2]
    begins = line[:8] == b'{"key":"' and line[57:_VALUE_AT] == b'","value":' and line.endswith(b"}\n")
    return begins and line[_CRC_AT:57] == b"%08x" % zlib.crc32(said, zlib.crc32(name))


@dataclass
class _Places:
    """Where answers stand in the file, by key: sorted columns, and what was added since they were sorted."""

    first: NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, np.uint64))
    second: NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, np.uint64))
    at: Int64 = field(default_factory=lambda: np.empty(0, np.int64))
    recent: dict[AnswerKey, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.at) + len(self.recent)

    def add(self, key: AnswerKey, at: int) -> None:
        """A later answer to the same question takes the place of the first."""
        self.recent[key] = at
        if len(self.recent) >= RECENT_ANSWERS:
            self._sort()

    def find(self, key: AnswerKey) -> int:
        """The place of an answer, -1 where there is none."""
        found = self.recent.get(key)
        if found is not None:
            return found
        row = int(np.searchsorted(self.first, np.uint64(key[0])))
        while row < len(self.at) and int(self.first[row]) == key[0]:  # halves of different hashes may agree
            if int(self.second[row]) == key[1]:
                return int(self.at[row])
            row += 1
        return -1

    def _sort(self) -> None:
        keys = np.array(list(self.recent), np.uint64)
        first = np.concatenate([keys[:, 0], self.first])  # the later answer stands first
        order = np.argsort(first, kind="stable")
        self.first = first[order]
        self.second = np.concatenate([keys[:, 1], self.second])[order]
        self.at = np.concatenate([np.fromiter(self.recent.values(), np.int64), self.at])[order]
        self.recent = {}


@dataclass(eq=False)
class AnswerStore:
    """An open file of answers; threads may share it."""

    path: Path
    file: BinaryIO = field(repr=False)
    _places: _Places = field(init=False, default_factory=_Places, repr=False)
    _end: int = field(init=False, default=0)
    _synced: float = field(init=False, default_factory=time.monotonic)
    _turn: threading.Lock = field(init=False, default_factory=threading.Lock, repr=False)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, key: AnswerKey) -> bool:
        with self._turn:
            return self._places.find(key) >= 0

    def get(self, key: AnswerKey) -> Any:  # noqa: ANN401  whatever was added
        """What was added under a key, None where nothing was; raises StoreError where it was damaged meanwhile."""
        with self._turn:
            at = self._places.find(key)
            if at < 0:
                return None
            with storing(self.path):
                line = self._line(at)
        if not _whole(line):
            raise StoreError(
                f"{self.path}: the answer at byte {at} is damaged; ask again, and it is made anew"
            )
        return json.loads(line[_VALUE_AT:-2])

    def add(self, key: AnswerKey, value: object) -> None:
        """Write a value, anything that JSON can write, under a key that is not there yet; it is kept once this returns.

        Raises StoreError when the disk refuses; the file is then as it was.
        """
        said = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(
            "utf-8", "backslashreplace"
        )
        name = b"%016x%016x" % key
        line = b'{"key":"%b","crc":"%08x","value":%b}\n' % (name, zlib.crc32(said, zlib.crc32(name)), said)
        with self._turn, storing(self.path):
            try:
                self.file.seek(self._end)
                written = self.file.write(line)
                if written != len(line):
                    raise OSError(28, "no space left on the disk")
            except OSError:
                self.file.truncate(self._end)
                raise
            self._places.add(key, self._end)
            self._end += len(line)
            if time.monotonic() - self._synced > SYNC_SECONDS:
                self.sync()

    def sync(self) -> None:
        """Force what was added to the disk."""
        os.fsync(self.file.fileno())
        self._synced = time.monotonic()

    def read_places(self, mend: bool = True) -> None:
        """Find the answers that are there, forget what is damaged; mend: cut off half a line at the end, and warn."""
        damaged = 0
        self.file.seek(0)
        with open(self.file.fileno(), "rb", buffering=1 << 20, closefd=False) as lines:
            for line in lines:
                if not line.endswith(b"\n"):
                    break
                if _whole(line):
                    self._places.add((int(line[8:24], 16), int(line[24:40], 16)), self._end)
                else:
                    damaged += 1
                self._end += len(line)
        if not mend:
            return
        self.file.truncate(self._end)
        if damaged:
            lost = (
                f"{damaged:,} answers are damaged and are asked for again"
                if damaged > 1
                else ("an answer is damaged and is asked for again")
            )
            warnings.warn(StoreWarning(f"{self.path}: {lost}"), stacklevel=4)

    def _line(self, at: int) -> bytes:
        """The line that begins at a byte."""
        self.file.seek(at)
        found = bytearray()
        while not found.endswith(b"\n") and (piece := self.file.read(1 << 14)):
            end = piece.find(b"\n")
            found += piece if end < 0 else piece[: end + 1]
        return bytes(found)
