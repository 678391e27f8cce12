"""Run texts through a model in batches of similar length, with results in text order."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from weir.core.strings import Int64, offsets
from weir.errors import BadValue
from weir.models.tokens import Text, Tokens
from weir.settings import NO_MEMORY

R = TypeVar("R")
T = TypeVar("T")

CHUNK_TEXTS = 256
"""Texts tokenised at once."""


@dataclass(frozen=True)
class BatchPlan:
    """How texts are grouped into batches."""

    tokens: int
    """Approximate tokens of a batch."""
    padded: bool = False
    """Count the tokens of a batch as its number of texts times the length of the longest."""
    window: int = 4096
    """Number of texts that are sorted by length together."""
    characters: int = 1 << 24
    """Most characters of a window, to bound memory."""


@dataclass(frozen=True, eq=False)
class Ragged:
    """Arrays of several texts in one: text i has values[ptr[i]:ptr[i + 1]]."""

    ptr: Int64
    """int64[texts + 1], from 0."""
    values: NDArray[Any]

    @staticmethod
    def joined(blocks: Sequence[Ragged], nothing: NDArray[Any]) -> Ragged:
        """Return several blocks as one; without blocks, no texts, with the empty array `nothing` as values."""
        lengths = [np.zeros(0, np.int64), *(block.lengths for block in blocks)]
        values = np.concatenate([nothing, *(block.values for block in blocks)])
        return Ragged(offsets(np.concatenate(lengths)), values)

    def __len__(self) -> int:
        return len(self.ptr) - 1

    @cached_property
    def lengths(self) -> Int64:
        return np.diff(self.ptr)

    @property
    def dimensions(self) -> int:
        return int(self.values.shape[1])

    @property
    def all_rows(self) -> Ragged:
        return self

    def of(self, i: int) -> NDArray[Any]:
        """Return the values of text i, as a view."""
        return self.values[self.ptr[i] : self.ptr[i + 1]]

    def rows(self, start: int, stop: int) -> Ragged:
        low, high = self.ptr[start], self.ptr[stop]
        return Ragged(self.ptr[start : stop + 1] - low, self.values[low:high])

    def rows_of(self, numbers: NDArray[np.integer]) -> Ragged:
        lengths = self.lengths[numbers]
        ptr = offsets(lengths)
        return Ragged(ptr, self.values[np.repeat(self.ptr[numbers] - ptr[:-1], lengths) + np.arange(ptr[-1])])

    def release(self) -> None: ...


def batches(lengths: Int64, budget: int, padded: bool) -> list[Int64]:
    """Return batches of text positions, longest texts first, of at most `budget` tokens; a longer text is its
    own batch.

    lengths: tokens of each text.
    padded: count each text as long as the longest of its batch.
    """
    order = np.argsort(-lengths, kind="stable")
    ordered = np.maximum(lengths[order], 1)
    ends = np.cumsum(ordered)
    cuts, start = [], 0
    while start < len(order):
        if padded:
            stop = start + max(1, budget // int(ordered[start]))
        else:
            base = int(ends[start] - ordered[start])
            stop = max(start + 1, int(np.searchsorted(ends, base + budget, side="right")))
        cuts.append(order[start:stop])
        start = stop
    return cuts


def gather_rows(
    array: Callable[[Sequence[Any]], NDArray[np.float32]],
) -> Callable[[Sequence[tuple[Int64, Any]], int], NDArray[np.float32]]:
    """Return a function that joins batches, [(text positions, rows)], of `count` texts to float32[count, ...]
    in text order.

    array: joins an engine's rows to a float32 array.
    """

    def gather(parts: Sequence[tuple[Int64, Any]], count: int) -> NDArray[np.float32]:
        rows = array([rows for _, rows in parts])
        whole = np.empty((count, *rows.shape[1:]), np.float32)
        whole[np.concatenate([positions for positions, _ in parts])] = rows
        return whole

    return gather


def gather_ragged(parts: Sequence[tuple[Int64, Ragged]], count: int) -> Ragged:
    """Return the values of `count` texts in text order.

    parts: (text positions, their values) of each batch, at least one.
    """
    lengths = np.empty(count, np.int64)
    for positions, part in parts:
        lengths[positions] = np.diff(part.ptr)
    ptr = offsets(lengths)
    first = parts[0][1].values
    whole = np.empty((int(ptr[-1]), *first.shape[1:]), first.dtype)
    for positions, part in parts:
        sizes = lengths[positions]
        where = np.repeat(ptr[positions] - part.ptr[:-1], sizes) + np.arange(part.ptr[-1])
        whole[where] = part.values
    return Ragged(ptr, whole)


def results(
    texts: Iterable[Text],
    tokenize: Callable[[Sequence[Text]], Tokens],
    run: Callable[[Tokens], R],
    gather: Callable[[Sequence[tuple[Int64, R]], int], R],
    plan: BatchPlan,
    done: Callable[[int], None] | None = None,
) -> Iterator[R]:
    """Yield a model's results for texts in order, joined for each window of many batches.

    run: maps a batch to results; a batch too large for memory is halved, and later ones stay smaller.
    gather: joins a window's [(text positions, results)], given the number of its texts.
    done: called with the number of finished texts.

    Raises BadValue for a single text too large for memory.
    """
    budget, finished = plan.tokens, 0
    with closing(_ahead(_windows(texts, tokenize, plan))) as windows:
        for window in windows:
            parts: list[tuple[Int64, R]] = []
            waiting = batches(window.lengths, budget, plan.padded)[::-1]
            while waiting:
                positions = waiting.pop()
                try:
                    parts.append((positions, run(window.take(positions))))
                except Exception as error:
                    if not out_of_memory(error):
                        raise
                    if len(positions) == 1:
                        length = int(window.lengths[positions[0]])
                        raise BadValue(f"a text of {length} tokens does not fit into memory") from error
                    budget = max(1, min(budget, int(window.lengths[positions].sum())) // 2)
                    half = (len(positions) + 1) // 2
                    waiting += [positions[half:], positions[:half]]
                    continue
                finished += len(positions)
                if done is not None:
                    done(finished)
            yield gather(parts, len(window))


def out_of_memory(error: BaseException) -> bool:
    """Return True if an exception means that memory ran out."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    return isinstance(error, RuntimeError) and bool(NO_MEMORY.search(str(error)))


def _windows(
    texts: Iterable[Text], tokenize: Callable[[Sequence[Text]], Tokens], plan: BatchPlan
) -> Iterator[Tokens]:
    source, chunks, count, characters = iter(texts), list[Tokens](), 0, 0
    window = min(CHUNK_TEXTS, plan.window)  # the first ones are small: the model starts soon
    while chunk := list(itertools.islice(source, min(CHUNK_TEXTS, window - count))):
        chunks.append(tokenize(chunk))
        count += len(chunk)
        characters += sum(len(t) if isinstance(t, str) else len(t[0]) + len(t[1]) for t in chunk)
        if count >= window or characters >= plan.characters:
            yield _joined(chunks)
            chunks, count, characters = [], 0, 0
            window = min(2 * window, plan.window)
    if chunks:
        yield _joined(chunks)


def _joined(chunks: list[Tokens]) -> Tokens:
    if len(chunks) == 1:
        return chunks[0]
    ptr = offsets(np.concatenate([c.lengths for c in chunks]))
    ids = np.concatenate([c.ids for c in chunks])
    if all(c.segment is None for c in chunks):
        return Tokens(ids, ptr)
    segments = [np.zeros(len(c.ids), np.uint8) if c.segment is None else c.segment for c in chunks]
    return Tokens(ids, ptr, np.concatenate(segments))


def _ahead(source: Iterator[T]) -> Generator[T, None, None]:
    pool = ThreadPoolExecutor(1, thread_name_prefix="weir-tokenize")
    try:
        futures = deque(pool.submit(next, source, None) for _ in range(2))
        while (item := futures.popleft().result()) is not None:
            futures.append(pool.submit(next, source, None))
            yield item
    finally:
        pool.shutdown(cancel_futures=True)
