"""Compile or load a system's kernels on tiny documents, before times are measured."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

from weir.core.strings import Strings
from weir.errors import UnknownName
from weir.files.json_files import nested_source
from weir.files.runs import read_run, run_of
from weir.kernels.inverted.block_bounds import EXHAUSTIVE_DOCUMENTS
from weir.kernels.inverted.byte_bounds import ByteBounds
from weir.kernels.inverted.packed import PlainLists, flaw, stored
from weir.kernels.inverted.postings import (
    LUCENE,
    VALUE,
    TermWeights,
    added_up,
    append_lists,
    by_block,
    document_frequencies,
    invert,
    write_postings,
)
from weir.kernels.inverted.search import Impacts, search
from weir.kernels.jit import check_available, listening
from weir.kernels.words import regrow
from weir.models.term_maxima import TermMaxima
from weir.registry import Registry
from weir.systems.composite import parts_of
from weir.systems.lexical.analyzer import analyzers
from weir.systems.lexical.bm25 import PRESETS, query_terms, weighed
from weir.systems.lexical.terms import TermTable
from weir.systems.protocol import Compiled, Reranker, Retriever
from weir.systems.vectors.exact_search import ArraySource, Similarity, query_dot_products
from weir.systems.vectors.exact_search import search as search_vectors

KERNELS = Registry[Callable[[], None]]("kernel")
"""Functions of slices that run a group of compiled kernels."""


def kernel_kinds() -> tuple[str, ...]:
    """Return the names of all groups of compiled kernels, including optional packages'."""
    return (*OWN, *KERNELS.names())


def kernels_of(system: Retriever | Reranker, documents: int) -> tuple[str, ...]:
    """Return the groups of compiled kernels that a system and its parts call for `documents` documents."""
    groups: dict[str, None] = {}
    for part in parts_of(system):
        if isinstance(part, Compiled):
            groups.update(dict.fromkeys(part.kernels(documents)))
    return tuple(groups)


def prepare(groups: Iterable[str], report: Callable[[str], None] | None = None) -> float:
    """Compile or load groups of kernels, once in a process; return the seconds taken.

    report: called with a line before a group is compiled.

    Raises UnknownName for an unknown group, MissingExtra without the `run` extra.
    """
    began = time.perf_counter()
    for group in groups:
        if group not in kernel_kinds():
            raise UnknownName("kind of kernels", group, kernel_kinds())
        check_available()
        compiled: list[str] = []

        def announce(kernel: str, group: str = group, compiled: list[str] = compiled) -> None:
            if report is not None and not compiled:
                report(f"compiling kernels of {group}: only this once, some seconds")
            compiled.append(kernel)

        with listening(announce):
            _run_once(group)
    return time.perf_counter() - began


@cache
def _run_once(kind: str) -> None:
    (OWN.get(kind) or KERNELS.get(kind))()


# Three terms in three documents.
_PTR, _DOC = np.arange(0, 10, 3, dtype=np.int64), np.tile(np.arange(3, dtype=np.int32), 3)
_IMPACT = np.linspace(1, 2, 9, dtype=np.float32)
_MANY_DOCUMENTS = EXHAUSTIVE_DOCUMENTS + 1


def _index_in_memory() -> None:
    table = TermTable(analyzers.get(PRESETS["lucene"].analyzer))
    texts = Strings.of(["A weir measures a stream.", "über die Brücke — 川と海", ""])
    weighed(table, [table.add(texts)], PRESETS["lucene"], np.arange(len(texts), dtype=np.int32))
    query_terms((table,), texts)
    added_up([(np.array([0, 1]), np.zeros(1, np.int32), np.ones(1))], 1)
    regrow(np.full(8, -1), np.full(16, -1), np.empty(0, np.int64))  # what only longer texts need


def _index_on_disk() -> None:
    one, value = np.ones(1, np.int32), np.ones(1, np.float32)
    by_block(np.array([0, 1]), one, one, np.zeros(1, np.int32), 1)
    invert((np.array([0, 1]), np.zeros(1, np.int32), value), np.zeros(1, np.int32), (value, value), VALUE)
    out = np.zeros(1, np.int32), np.zeros(1, np.float32)
    for some in (value, one.astype(np.uint16)):
        append_lists(one, np.zeros(1, np.int64), out[0], some, 0, TermWeights(value, value, LUCENE), *out)


def _search(index: Impacts) -> None:
    query = np.array([0, 3, 4])
    search(index, query, np.array([0, 1, 2, 1], np.int32), np.ones(4, np.float32), 2)


def _search_packed() -> Impacts:
    index = Impacts(_MANY_DOCUMENTS, _PTR, stored(_PTR, _DOC, _IMPACT, _MANY_DOCUMENTS))
    _search(index)
    index.list_of(0)
    index.impacts_in(0, _DOC)
    flaw(index.arrays[0], index.arrays[1], _MANY_DOCUMENTS)
    return index


def _learned_search() -> None:
    document_frequencies(_DOC, 3)
    write_postings(_PTR, _DOC, _IMPACT, 0, _PTR[:-1].copy(), np.empty_like(_DOC), np.empty_like(_IMPACT))
    index = _search_packed()
    _search(
        replace(
            index,
            columns=ByteBounds.of_terms(
                np.empty(0, np.int64), index.arrays[0], index.arrays[1], _MANY_DOCUMENTS
            ),
        )
    )


def _term_weights() -> None:
    rows = np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4)
    maxima = TermMaxima.of(rows, rows[0])
    if maxima is not None:
        maxima.of_texts(rows, np.array([1, 3]))


def _dense_search() -> None:
    rows = np.linspace(-1, 1, 128 * 16, dtype=np.float32).reshape(128, 16)
    similarities: tuple[Similarity, ...] = ("dot", "cosine")
    for similarity in similarities:
        search_vectors(ArraySource(rows), rows[:2], 3, similarity)
        search_vectors(ArraySource(rows), rows[:8], 3, similarity)
        search_vectors(ArraySource(rows), rows[:8], 3, similarity, first_pass="fp32")
    query_dot_products(rows, rows[0])


def _read_runs() -> None:
    with tempfile.TemporaryDirectory() as folder:
        trec, csv, nested = (Path(folder) / name for name in ("run.trec", "run.csv", "run.json"))
        trec.write_text("q Q0 a 1 2.5 run\nq Q0 b 2 1.5 run\n", encoding="utf-8", newline="\n")
        csv.write_text("query,doc,score\nq,a,2.5\nq,b,1.5\n", encoding="utf-8", newline="\n")
        nested.write_text('{"q": {"a": 2.5, "b": 1.5}}', encoding="utf-8", newline="\n")
        read_run(trec, engine="numba")
        read_run(csv, engine="numba")
        source = nested_source(nested, worth=0)
        if source is not None:
            run_of(source, "run", engine="numba")


OWN: dict[str, Callable[[], None]] = {
    "sparse index": _index_in_memory,
    "sparse index on disk": _index_on_disk,
    "sparse search": lambda: _search(Impacts(3, _PTR, PlainLists(_DOC, _IMPACT))),
    "sparse search of many": lambda: (_search_packed(), None)[1],
    "learned sparse search": _learned_search,
    "term weights": _term_weights,
    "dense search": _dense_search,
    "run reading": _read_runs,
}
"""{group: function that runs its kernels}."""
