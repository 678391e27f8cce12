"""Read single rankings of a run file that Weir wrote."""

from __future__ import annotations

import mmap
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice, pairwise
from pathlib import Path
from typing import BinaryIO

import numpy as np

from weir.core.run import Run
from weir.core.strings import Ids, Int64, Strings
from weir.errors import FormatError

EXPECTED = "a run file as weir run writes it"
MAPPED_BYTES = 1 << 24
"""Bytes of a file that are mapped at a time, in a multiple of every page size."""


@dataclass(frozen=True, eq=False)
class RankingFile:
    """A run file that Weir wrote, from which single rankings are read.

    Methods raise FormatError for a missing, changed or other file.
    """

    path: Path
    expected: Mapping[str, int] = field(default_factory=dict)
    """Queries in the order that the file probably has: a single ranking is then found faster."""
    size: int | None = None
    """Bytes of the unchanged file; None if not known."""

    def ranking(self, query: str, k: int | None = None) -> tuple[tuple[str, float], ...]:
        """Return ((document, score), ...) of a query's first k documents, None for all; () without a ranking."""
        with self._opened() as file:
            place, stop = self._sought(file, query), None
            if place is None:
                names, starts = self.places
                at = int(names.codes([query])[0])
                if at < 0:
                    return ()
                place, stop = starts[at : at + 2].tolist()
            return tuple(self._answers(file, query, k, place, stop))

    def top(self, k: int) -> Run:
        """Return the run of the first k documents of every query."""
        names, starts = self.places
        with self._opened() as file:
            ends = zip(names, pairwise(starts.tolist()), strict=True)
            return Run.of({name: dict(self._answers(file, name, k, *of)) for name, of in ends})

    @cached_property
    def places(self) -> tuple[Ids, Int64]:
        """Return (queries in file order; offsets of their first lines and of the end, int64[queries + 1]).

        Raises FormatError if the file changed, or a query's lines are apart.
        """
        with self._opened() as file:
            if not self.path.stat().st_size:
                return Ids.of([]), np.zeros(1, np.int64)
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                names, starts = _places(data, self.path)
        if len(set(names)) < len(names):
            raise FormatError(self.path, "lines of one query in several places", EXPECTED)
        return Ids(Strings.packed(names)), np.array(starts, np.int64)

    def _opened(self) -> BinaryIO:
        try:
            found = self.path.stat()
            if not stat.S_ISREG(found.st_mode) or self.size not in (None, found.st_size):
                raise FormatError(self.path, "a file that has changed", EXPECTED)
            return self.path.open("rb")
        except OSError as error:
            raise FormatError(self.path, error.strerror or str(error), EXPECTED) from None

    def _sought(self, file: BinaryIO, query: str) -> int | None:
        wanted = self.expected.get(query, -1)
        low, high = 0, self.path.stat().st_size
        while wanted >= 0 and low < high:
            middle = (low + high) // 2
            at, line = _line_from(file, middle)
            code = self.expected.get(_query_of(line), -1) if line else wanted
            if code < 0:
                return None
            low, high = (at + len(line), high) if code < wanted else (low, middle)
        at, line = _line_from(file, low)
        return at if wanted >= 0 and line and _query_of(line) == query else None

    def _answers(
        self, file: BinaryIO, name: str, k: int | None, place: int, stop: int | None
    ) -> Iterator[tuple[str, float]]:
        file.seek(place)
        for line in islice(file, k):
            if place == stop:
                return
            place += len(line)
            try:
                query, _, document, _, score, *_ = line.split(b" ")
                if query.decode("utf-8", "replace") != name:
                    if stop is None:
                        return
                    raise ValueError
                yield document.decode("utf-8", "replace"), float(score)
            except ValueError:
                shown = line[:60].decode("utf-8", "replace").strip()
                raise FormatError(self.path, f"'{shown}'", EXPECTED) from None


def _line_from(file: BinaryIO, place: int) -> tuple[int, bytes]:
    file.seek(max(0, place - 1))
    skipped = len(file.readline()) - 1 if place else 0
    return place + max(0, skipped), file.readline()


def _query_of(line: bytes) -> str:
    return line.partition(b" ")[0].decode("utf-8", "replace")


def _places(data: mmap.mmap, path: Path) -> tuple[Sequence[bytes], Sequence[int]]:
    names, starts, at, size, length, mapped = list[bytes](), list[int](), 0, len(data), 1 << 12, 0
    while at < size:
        if at - mapped > MAPPED_BYTES and hasattr(data, "madvise"):  # not on Windows
            end = at - at % MAPPED_BYTES
            data.madvise(mmap.MADV_DONTNEED, mapped, end - mapped)
            mapped = end
        blank = data.find(b" ", at)
        if blank < 0 or data.find(b"\n", at, blank) >= 0:
            raise FormatError(path, f"'{data[at : at + 60].decode('utf-8', 'replace')}'", EXPECTED)
        begin = data[at : blank + 1]
        names.append(begin[:-1])
        starts.append(at)
        length, at = (end := _end(data, begin, at, length)) - at, end
    return names, [*starts, size]


def _end(data: mmap.mmap, begin: bytes, at: int, guess: int) -> int:
    low, high, step = at, len(data), guess * 7 // 8
    later = guess // 8 + 64
    while low < high:
        # Growing steps until a line of another query is met, halves from then on.
        middle = min(low + step, (low + high) // 2) if high < len(data) else min(low + step, high - 1)
        line = data.rfind(b"\n", at, middle) + 1 or at
        if data[line : line + len(begin)] == begin:
            low = data.find(b"\n", middle) + 1 or len(data)
            step, later = later, 2 * later
        else:
            high = line
    return low
