"""Single rankings read from a run file that Weir wrote, without reading all of it."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from weir.core.run import Run
from weir.core.strings import Ids, Int64, Strings
from weir.errors import FormatError

EXPECTED = "a run file as weir run writes it"


@dataclass(frozen=True, eq=False)
class RankingFile:
    """The offsets of the rankings in a run file, which is read again for each ranking."""

    path: Path
    queries: Ids
    """Queries with a ranking, in the order of the file."""
    starts: Int64
    """int64[queries + 1]: offsets of their first lines, and of the end."""

    @staticmethod
    def open(path: str | os.PathLike[str]) -> RankingFile:
        """Return the rankings' offsets in a TREC file as `write_run` writes it: a query's lines are
        contiguous.

        Reads a few lines of each ranking. Raises FormatError for a file that cannot be read, or of another
        form.
        """
        path = Path(path)
        try:
            with path.open("rb") as file:
                if not path.stat().st_size:
                    return RankingFile(path, Ids.of([]), np.zeros(1, np.int64))
                with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                    names, starts = _places(data, path)
        except OSError as error:
            raise FormatError(path, error.strerror or str(error), EXPECTED) from None
        if len(set(names)) < len(names):
            raise FormatError(path, "lines of one query in several places", EXPECTED)
        return RankingFile(path, Ids(Strings.packed(names)), np.array(starts, np.int64))

    def ranking(self, query: str, k: int | None = None) -> tuple[tuple[str, float], ...]:
        """Return (document, score) of a query's first k documents, all for None; () without a ranking.

        Raises FormatError for a line of another form.
        """
        at = int(self.queries.codes([query])[0])
        if at < 0:
            return ()
        with self.path.open("rb") as file:
            return tuple(self._answers(file, at, query, k))

    def top(self, k: int) -> Run:
        """Return the first k documents of every ranking; raises as `ranking`."""
        with self.path.open("rb") as file:
            return Run.of(
                {name: dict(self._answers(file, at, name, k)) for at, name in enumerate(self.queries)}
            )

    def _answers(self, file: BinaryIO, at: int, name: str, k: int | None) -> Iterator[tuple[str, float]]:
        place, stop = self.starts[at : at + 2].tolist()
        file.seek(place)
        for _ in range(stop - place if k is None else k):
            if place >= stop:
                return
            line = file.readline()
            place += len(line)
            try:
                query, _, document, _, score, *_ = line.split(b" ")
                if query.decode("utf-8", "replace") != name:
                    raise ValueError
                yield document.decode("utf-8", "replace"), float(score)
            except ValueError:
                shown = line[:60].decode("utf-8", "replace").strip()
                raise FormatError(self.path, f"'{shown}'", EXPECTED) from None


def _places(data: mmap.mmap, path: Path) -> tuple[Sequence[bytes], Sequence[int]]:
    names, starts, at, size, length = list[bytes](), list[int](), 0, len(data), 1 << 12
    while at < size:
        blank = data.find(b" ", at)
        if blank < 0 or data.find(b"\n", at, blank) >= 0:
            raise FormatError(path, f"'{data[at : at + 60].decode('utf-8', 'replace')}'", EXPECTED)
        begin = data[at : blank + 1]
        names.append(begin[:-1])
        starts.append(at)
        length, at = (end := _end(data, begin, at, length)) - at, end
    return names, [*starts, size]


def _end(data: mmap.mmap, begin: bytes, at: int, guess: int) -> int:
    """Return the offset after the contiguous lines from `at` that begin with `begin`.

    guess: expected number of bytes.
    """
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
