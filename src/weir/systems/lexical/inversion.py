"""Indexes larger than memory: sorted blocks of postings on disk, merged into memory-mapped files.

A killed process resumes at its last commit, with the same result.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from weir.core.corpus import Corpus
from weir.core.strings import Float32, Int32, Int64, Strings, offsets
from weir.errors import FormatError, StoreError
from weir.files.atomic import storing, write_json
from weir.files.json_record import read_json
from weir.kernels.inverted import postings
from weir.kernels.inverted.packed import ARRAYS, layout, stored
from weir.kernels.inverted.postings import Pairs
from weir.kernels.inverted.search import Impacts
from weir.settings import memory_budget, require_memory
from weir.systems.lexical.inverted_index import FORMAT, ForwardIndex, ImpactIndex, work_folder
from weir.systems.lexical.terms import TermTable
from weir.systems.protocol import Progress

T = TypeVar("T", bound=np.generic)

BATCH_BYTES = 1 << 21
"""Bytes of text analysed at once, to fit into the processor's cache."""

PAIR_BYTES = 16
"""Memory per (term, document) pair while inverting or merging."""
BYTES_OF_TEXT_PER_PAIR = 5
"""Below the mean length of a word with its space, so that blocks stay within the memory planned."""
INDEX_BYTES_PER_BYTE_OF_TEXT = 3
"""Memory for terms, postings and bounds when indexing in memory, about 17 bytes per word."""
BUDGET_SHARE = 3
"""A block takes one third of the memory; data of documents and terms take the rest."""
COMMIT_SECONDS = 30.0
"""Most seconds of work that a killed process loses, besides a block or group."""
HEADER_BYTES = 128
"""Header of a .npy file of up to three dimensions."""

# ----------
# Files that grow.


STATE = "state.json"


class GrowingFiles:
    """Append-only files of a folder, cut back to the last commit when opened again.

    about: identifies the content; files with other content are removed.
    """

    def __init__(self, folder: Path, about: Mapping[str, object]) -> None:
        self.folder, self.about = folder, json.loads(json.dumps(about, default=str))  # as it is read back
        self.facts: dict[str, Any] = {}
        self._files: dict[str, IO[bytes]] = {}
        with storing(folder):
            folder.mkdir(parents=True, exist_ok=True)
            sizes = self._recorded()
            for path in list(folder.iterdir()):
                if path.name == STATE:
                    continue
                if path.name in sizes:
                    os.truncate(path, sizes[path.name])
                else:
                    path.unlink()

    def _recorded(self) -> dict[str, int]:
        try:
            state = read_json(self.folder / STATE)
            sizes: dict[str, int] = state["sizes"]
            whole = all((self.folder / name).stat().st_size >= size for name, size in sizes.items())
        except (OSError, FormatError, ValueError, KeyError, TypeError, AttributeError):
            return {}
        if not whole or state.get("about") != self.about:
            return {}
        self.facts = state["facts"]
        return sizes

    def append(self, name: str, values: NDArray[Any]) -> None:
        """Append an array's bytes to a file."""
        if name not in self._files:
            self._files[name] = (self.folder / name).open("ab", buffering=1 << 20)
        self._files[name].write(np.ascontiguousarray(values).view(np.uint8).data)

    def append_to_array(self, name: str, values: NDArray[Any]) -> None:
        """Append an array's bytes to a file that `mapped` completes as .npy."""
        if name not in self._files and not (self.folder / name).exists():
            self.append(name, np.zeros(HEADER_BYTES, np.uint8))
        self.append(name, values)

    def commit(self, facts: dict[str, object], done_with: Iterable[str] = ()) -> None:
        """Record all files' sizes durably, with `facts` for a resumed process; then delete the files
        `done_with`."""
        finished = tuple(done_with)
        for name in finished:
            if name in self._files:
                self._files.pop(name).close()
        for file in self._files.values():
            file.flush()
            os.fsync(file.fileno())
        self.facts = self.facts | facts
        names = [path.name for path in self.folder.iterdir() if path.name not in (STATE, *finished)]
        sizes = {name: (self.folder / name).stat().st_size for name in sorted(names)}
        write_json(self.folder / STATE, {"about": self.about, "facts": self.facts, "sizes": sizes})
        for name in finished:
            (self.folder / name).unlink(missing_ok=True)

    def content(self, name: str, dtype: type[T], in_memory: bool = True) -> NDArray[T]:
        """Return a file's content as an array, memory-mapped without `in_memory`; empty without a file."""
        if name in self._files:
            self._files[name].flush()
        path = self.folder / name
        if not path.exists() or path.stat().st_size == 0:
            return np.empty(0, dtype)
        return np.fromfile(path, dtype) if in_memory else np.memmap(path, dtype, "r")

    def mapped(self, name: str, dtype: type[T], shape: tuple[int, ...] = (-1,)) -> NDArray[T]:
        """Complete a file of `append_to_array` as .npy and return it memory-mapped; a first length of -1
        means all rows.

        Raises StoreError if the header exceeds its room.
        """
        path = self.folder / name
        self.append_to_array(name, np.empty(0, dtype))
        self._files.pop(name).close()
        if shape[0] < 0:
            row = np.dtype(dtype).itemsize * math.prod(shape[1:])
            shape = ((path.stat().st_size - HEADER_BYTES) // row, *shape[1:])
        header = {
            "descr": np.lib.format.dtype_to_descr(np.dtype(dtype)),
            "fortran_order": False,
            "shape": shape,
        }
        with path.open("r+b") as file:
            np.lib.format.write_array_header_1_0(file, header)
            if file.tell() != HEADER_BYTES:
                raise StoreError(
                    f"{path}: the header of the array takes {file.tell()} bytes, not {HEADER_BYTES}"
                )
        array: NDArray[T] = np.load(path, mmap_mode="r" if shape[0] else None)
        return array

    def close(self) -> None:
        for file in self._files.values():
            file.close()
        self._files.clear()


def text_bytes(corpus: Corpus) -> int:
    """Return the bytes of all texts and titles."""
    columns = (corpus.text,) if corpus.title is None else (corpus.text, corpus.title)
    return sum(int(column.lengths().sum()) for column in columns)


def count_type(corpus: Corpus, view: str) -> type[np.uint16] | type[np.int32]:
    """Return an integer type that holds the count of any term in a document's view."""
    if not set(view.split()) <= {"title", "text"}:
        return np.int32
    columns = (corpus.text,) if corpus.title is None else (corpus.text, corpus.title)
    longest = sum(int(column.lengths().max(initial=0)) for column in columns)
    return np.uint16 if longest // 2 < np.iinfo(np.uint16).max else np.int32


def fits_into_memory(corpus: Corpus) -> bool:
    """Return True if an index of the corpus should fit into the memory limit."""
    return _index_bytes(corpus) <= memory_budget().bytes


def require_memory_for(corpus: Corpus) -> None:
    """Raise BadValue if an index of the corpus in memory would exceed the memory limit."""
    require_memory(_index_bytes(corpus), f"an index of {len(corpus):,} documents in memory")


def _index_bytes(corpus: Corpus) -> int:
    return INDEX_BYTES_PER_BYTE_OF_TEXT * text_bytes(corpus)


def expected_pairs(corpus: Corpus) -> int:
    """Return an estimate, mostly too high, of a corpus's (term, document) pairs."""
    return text_bytes(corpus) // BYTES_OF_TEXT_PER_PAIR


@contextmanager
def work_files(folder: Path, part: int, about: Mapping[str, object]) -> Iterator[GrowingFiles]:
    """Yield the growing files of part `part` of the index in `folder`; close them after the block.

    about: identifies the content.
    """
    files = GrowingFiles(work_folder(folder, str(part)), {**about, "format": FORMAT})
    try:
        with storing(files.folder):
            yield files
    finally:
        files.close()


# ----------
# Documents: their terms, by blocks of internal numbers.


@dataclass(frozen=True, eq=False)
class Blocks:
    """Documents in blocks of `width` successive internal numbers."""

    order: Int32
    """int32[documents]: corpus number of each internal number."""
    width: int

    @staticmethod
    def planned(files: GrowingFiles, order: Int32, pairs: int) -> Blocks:
        """Return blocks that fit into memory, or an interrupted process's blocks.

        pairs: expected number of (term, document) pairs.
        """
        if "width" not in files.facts:
            width = len(order) * (memory_budget().bytes // BUDGET_SHARE // PAIR_BYTES) // max(1, pairs)
            files.commit({"width": min(max(1, width), max(1, len(order)))})
        return Blocks(order, files.facts["width"])

    def __len__(self) -> int:
        return (len(self.order) + self.width - 1) // self.width

    def documents_of_block(self, number: int) -> Int32:
        """Return the corpus numbers of a block's documents, ascending, int32."""
        return np.sort(self.order[number * self.width : (number + 1) * self.width])

    def _of_each(self) -> Int32:
        block = np.empty(len(self.order), np.int32)
        block[self.order] = np.arange(len(self.order), dtype=np.int32) // self.width
        return block


@dataclass(frozen=True, eq=False)
class Spool:
    """Each document's terms and counts in a field, kept in files until they are inverted."""

    files: GrowingFiles
    name: str
    """Prefix of its files."""
    blocks: Blocks
    vocabulary: str
    """Prefix of its vocabulary's files; fields with a common vocabulary share them."""
    count: type[np.uint16] | type[np.int32]
    """Type of a count, from `count_type`."""

    @property
    def lengths(self) -> Int32:
        return self.files.content(f"{self.name}.length", np.int32)

    @property
    def terms(self) -> Strings:
        """All terms so far, in order of their numbers."""
        ends = self.files.content(f"{self.vocabulary}.term-ends", np.int64)
        return Strings(
            self.files.content(f"{self.vocabulary}.term-bytes", np.uint8),
            np.concatenate([np.zeros(1, np.int64), ends]),
        )

    def frequencies(self) -> Int32:
        """Return the document frequency of each term, int32[terms]."""
        return self.files.content(f"{self.name}.df.{self.files.facts.get(self.name)}", np.int32)

    def fill(
        self, corpus: Corpus, view: str, table: TermTable, progress: Progress | None, keep_terms: bool = False
    ) -> None:
        """Write the terms of documents that are not committed yet.

        keep_terms: also write each document's terms, for query expansion.
        """
        first = int(self.files.facts.get(self.name, 0))
        df = self.frequencies()
        written = len(table)  # terms that are on the disk
        block_of, collected = self.blocks._of_each(), postings.ForwardBuilder()
        committed = time.monotonic()
        for start, texts in corpus.batches(view, BATCH_BYTES, first):
            ptr, terms = table.add(texts)
            lengths = collected.add(ptr, terms, len(table))
            own, term, count = collected.drained()
            if len(table) > len(df):
                df = np.concatenate([df, np.zeros(len(table) + len(table) // 4 - len(df), np.int32)])
            postings.add_frequencies(term, df)
            self.files.append(f"{self.name}.length", lengths.astype(np.int32))
            self.files.append(f"{self.name}.pairs", np.diff(own).astype(np.int32))
            if keep_terms:
                self.files.append_to_array("forward-term.npy", term)
                self.files.append("forward-count", count)
            self._scatter(block_of[start : start + len(texts)], own, term, count)
            stop = start + len(texts)
            if time.monotonic() - committed > COMMIT_SECONDS or stop == len(corpus):
                written = self._commit(table, written, df[: len(table)], stop)
                committed = time.monotonic()
            if progress is not None:
                progress(stop, len(corpus))

    def _scatter(self, block: Int32, ptr: Int64, term: Int32, count: Int32) -> None:
        ends, term, count = postings.by_block(ptr, term, count, block, len(self.blocks))
        for b, (start, stop) in enumerate(pairwise(ends.tolist())):
            if stop > start:
                self.files.append(f"{self.name}.{b}.term", term[start:stop])
                self.files.append(f"{self.name}.{b}.count", count[start:stop].astype(self.count))

    def _commit(self, table: TermTable, written: int, df: Int32, documents: int) -> int:
        terms = table.terms()
        self.files.append(
            f"{self.vocabulary}.term-bytes", terms.data[int(terms.ptr[written]) : int(terms.ptr[-1])]
        )
        self.files.append(f"{self.vocabulary}.term-ends", terms.ptr[written + 1 :])
        before = self.files.facts.get(self.name)
        self.files.append(f"{self.name}.df.{documents}", df)
        done_with = [] if before in (None, documents) else [f"{self.name}.df.{before}"]
        self.files.commit({self.name: documents}, done_with)
        return len(terms)

    def block(self, number: int) -> Pairs:
        pairs = self.files.content(f"{self.name}.pairs", np.int32)[self.blocks.documents_of_block(number)]
        return (
            offsets(pairs),
            self.files.content(f"{self.name}.{number}.term", np.int32),
            self.files.content(f"{self.name}.{number}.count", self.count).astype(np.float32),
        )

    def block_files(self, number: int) -> list[str]:
        """Return the names of a block's two files."""
        return [f"{self.name}.{number}.term", f"{self.name}.{number}.count"]

    def forward(self) -> tuple[Int64, Int32, NDArray[Any]]:
        """Return each document's terms, memory-mapped: (ptr int64[documents + 1], term int32, count), in
        corpus order."""
        ptr = offsets(self.files.content(f"{self.name}.pairs", np.int32))
        dtype = np.int32 if self.lengths.max(initial=0) > np.iinfo(np.uint16).max else np.uint16
        if "forward" not in self.files.facts:
            counts = self.files.content("forward-count", np.int32, in_memory=False)
            for start in range(0, len(counts), BATCH_BYTES):
                self.files.append_to_array(
                    "forward-count.npy", counts[start : start + BATCH_BYTES].astype(dtype)
                )
            self.files.commit({"forward": True}, ["forward-count"])
        return (
            ptr,
            self.files.mapped("forward-term.npy", np.int32),
            self.files.mapped("forward-count.npy", dtype),
        )


# ----------
# Blocks to lists by groups of terms, groups to the index.


Weights: TypeAlias = Callable[[Int32], tuple[Float32, Float32]]
"""Maps document frequencies to (weight of each term, norm of each document by internal number)."""


@dataclass(frozen=True, eq=False)
class BlockSource:
    """The (term, value) pairs of each block of documents, and their temporary files."""

    blocks: Blocks
    frequencies: Int32
    """int32[terms]: document frequency of each term, or an upper bound."""
    pairs: Callable[[int], Pairs]
    files: Callable[[int], list[str]]
    """Returns the names of a block's files, which are removed once it is inverted."""
    value: type[np.uint16] | type[np.int32] | type[np.float32] = np.float32
    """Type of a pair's value."""


def merged(
    files: GrowingFiles,
    name: str,
    source: BlockSource,
    weights: Weights,
    formula: int,
    progress: Progress | None,
) -> Int64:
    """Invert all blocks of documents, append their posting lists to files, and return the terms' offsets,
    int64[terms + 1].

    name: prefix of temporary files.
    formula: of BM25, in `kernels.inverted.postings`.
    """
    blocks, terms = source.blocks, len(source.frequencies)
    room = max(1, memory_budget().bytes // BUDGET_SHARE // PAIR_BYTES)
    cuts = [int(cut) for cut in files.facts.get(f"{name}-cuts", ())]
    cuts = cuts or postings.term_groups(offsets(source.frequencies), room)
    groups = len(cuts) - 1

    def report(steps: int) -> None:
        if progress is not None:
            documents = len(blocks.order)
            progress(documents * steps // (len(blocks) + groups), documents)

    for block in range(int(files.facts.get(f"{name}-blocks", 0)), len(blocks)):
        _invert_block(files, name, source, block, cuts)
        done_with = source.files(block)
        files.commit({f"{name}-blocks": block + 1, f"{name}-cuts": cuts}, done_with)
        report(block + 1)
    counts = files.content(f"{name}.counts", np.int32, in_memory=False).reshape(len(blocks), terms)
    df = counts.sum(axis=0, dtype=np.int64).astype(np.int32)
    ptr = offsets(df)
    weight, norm = weights(df)
    for group in range(int(files.facts.get(f"{name}-groups", 0)), groups):
        first, last = cuts[group], cuts[group + 1]
        runs = [f"{name}.run{group}.doc", f"{name}.run{group}.value"]
        doc, value = files.content(runs[0], np.int32), files.content(runs[1], source.value)
        out = np.empty(len(doc), np.int32), np.empty(len(doc), np.float32)
        own, at = ptr[first : last + 1] - ptr[first], 0
        cursor = own[:-1].copy()
        own_weights = postings.TermWeights(weight[first:last], norm, formula)
        for block in range(len(blocks)):
            at = postings.append_lists(counts[block, first:last], cursor, doc, value, at, own_weights, *out)
        for array, values in stored(own, *out, len(blocks.order))._asdict().items():
            files.append_to_array(f"{array}.npy", values)
        files.commit({f"{name}-groups": group + 1}, runs)
        report(len(blocks) + group + 1)
    return ptr


def _invert_block(files: GrowingFiles, name: str, source: BlockSource, block: int, cuts: list[int]) -> None:
    blocks, terms = source.blocks, len(source.frequencies)
    first = block * blocks.width
    own = blocks.order[first : first + blocks.width]
    ptr, term, value = source.pairs(block)
    order = np.searchsorted(blocks.documents_of_block(block), own).astype(np.int32)
    ones, norm = np.ones(terms, np.float32), np.zeros(len(own), np.float32)
    begins, doc, impact = postings.invert((ptr, term, value), order, (ones, norm), postings.VALUE)
    doc += np.int32(first)
    for group, (a, z) in enumerate(pairwise(cuts)):
        span = slice(int(begins[a]), int(begins[z]))
        files.append(f"{name}.run{group}.doc", doc[span])
        files.append(f"{name}.run{group}.value", impact[span].astype(source.value, copy=False))
    files.append(f"{name}.counts", np.diff(begins).astype(np.int32))


def index_in_files(
    files: GrowingFiles,
    ptr: Int64,
    vocabularies: tuple[Strings, ...],
    order: Int32,
    forward: ForwardIndex | None = None,
    learned: bool = False,
) -> ImpactIndex:
    """Return the index of the postings that `merged` wrote, memory-mapped.

    learned: add the score bounds that a model's weights need.
    """

    def mapped(array: str) -> NDArray[Any]:
        dtype, shape = ARRAYS[array]
        return files.mapped(f"{array}.npy", dtype, shape)

    def columns_on_disk(
        windows: Iterator[NDArray[np.uint8]], shape: tuple[int, int, int]
    ) -> NDArray[np.uint8]:
        for window in windows:
            files.append_to_array("columns.npy", window)
        return files.mapped("columns.npy", np.uint8, shape)

    kind = layout(len(order))
    impacts = Impacts(len(order), ptr, kind(*map(mapped, kind._fields)))
    return ImpactIndex(
        impacts.with_columns(columns_on_disk) if learned else impacts, vocabularies, order, forward
    )
