"""Compile or load the kernels of a system before times are measured, by running them on tiny documents."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import numpy as np

from weir.core.strings import Int32, Int64, Strings
from weir.errors import UnknownName
from weir.kernels.inverted.block_bounds import BlockBounds
from weir.kernels.inverted.byte_bounds import ByteBounds
from weir.kernels.inverted.search import Impacts, search
from weir.kernels.jit import check_available, listening
from weir.systems.composite import parts_of
from weir.systems.protocol import Compiled, Reranker, Retriever


def kernels_of(system: Retriever | Reranker, documents: int) -> tuple[str, ...]:
    """The kinds of kernels, of GROUPS, that a system and its parts use on a collection of so many documents.

    A part that is not `Compiled` names none: its kernels are compiled where it first calls them.
    """
    groups: dict[str, None] = {}
    for part in parts_of(system):
        if isinstance(part, Compiled):
            groups.update(dict.fromkeys(part.kernels(documents)))
    return tuple(groups)


def prepare(groups: Iterable[str], report: Callable[[str], None] | None = None) -> float:
    """Compile or load the kernels of these kinds, each once in a process; returns how many seconds that took.

    report: called with one line for each kind of which something must be compiled, before that begins. Raises
    UnknownName for a kind not of GROUPS and, before anything is compiled, MissingExtra without the `run` extra.
    """
    began = time.perf_counter()
    for group in groups:
        if group not in GROUPS:
            raise UnknownName("kind of kernels", group, GROUPS)
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
def _run_once(group: str) -> None:
    GROUPS[group]()


def _index_sparse() -> None:
    from weir.kernels.inverted.postings import added_up
    from weir.kernels.words import regrow
    from weir.systems.lexical.analyzer import analyzers
    from weir.systems.lexical.bm25 import PRESETS, query_terms, weighed
    from weir.systems.lexical.terms import TermTable

    table = TermTable(analyzers.get(PRESETS["lucene"].analyzer))
    texts = Strings.of(["A weir measures a stream.", "über die Brücke — 川と海", ""])
    order = np.arange(len(texts), dtype=np.int32)
    weighed(table, [table.add(texts)], PRESETS["lucene"], order)
    query_terms((table,), texts)
    added_up([(np.array([0, 1]), np.zeros(1, np.int32), np.ones(1))], 1)
    regrow(np.full(8, -1), np.full(16, -1), np.empty(0, np.int64))  # what only longer texts need


def _postings() -> tuple[Int64, Int32, Any]:
    """Three terms in three documents: ptr, doc, impact."""
    doc = np.tile(np.arange(3, dtype=np.int32), 3)
    return np.arange(0, 10, 3, dtype=np.int64), doc, np.linspace(1, 2, 9, dtype=np.float32)


def _search(index: Impacts) -> None:
    search(index, np.array([0, 3, 4]), np.array([0, 1, 2, 1], np.int32), np.ones(4, np.float32), 2)


def _search_few() -> None:
    _search(Impacts(3, *_postings(), None))


def _search_many() -> None:
    _search(Impacts(3, *_postings(), BlockBounds.of(*_postings(), 3)))


def _search_learned() -> None:
    from weir.kernels.inverted.postings import document_frequencies, place

    ptr, doc, impact = _postings()
    columns = ByteBounds.of_terms(np.arange(3), ptr, doc, impact, 3)
    _search(Impacts(3, ptr, doc, impact, BlockBounds.of(ptr, doc, impact, 3), columns))
    document_frequencies(doc, 3)
    place(ptr, doc, impact, 0, ptr[:-1].copy(), np.empty_like(doc), np.empty_like(impact))


def _search_dense() -> None:
    from weir.systems.vectors.exact_search import ArraySource, Similarity, pair_scores
    from weir.systems.vectors.exact_search import search as search_vectors

    rows = np.linspace(-1, 1, 128 * 16, dtype=np.float32).reshape(128, 16)
    similarities: tuple[Similarity, ...] = ("dot", "cosine")
    for similarity in similarities:
        search_vectors(ArraySource(rows), rows[:2], 3, similarity)
        search_vectors(ArraySource(rows), rows[:8], 3, similarity)
        search_vectors(ArraySource(rows), rows[:8], 3, similarity, first_pass="fp32")
    pair_scores(rows, rows[0])


def _search_late() -> None:
    from weir.kernels.maxsim import bounds, can_quantise, centroid_maxsim, decompress, maxsim

    tokens = np.linspace(-1, 1, 12 * 16, dtype=np.float32).reshape(12, 16)
    ptr = np.array([0, 4, 12])
    for values in (tokens, tokens.astype(np.float16)):
        maxsim(tokens[:4], np.array([0, 4]), values, ptr)
        if can_quantise(values):
            bounds(tokens[:4], np.array([0, 4]), values, ptr[:-1], ptr[1:])
    code = np.zeros(12, np.int32)
    table, wide = np.zeros((256, 4), np.float32), np.empty((12, 16), np.float32)
    decompress(code, np.zeros((12, 4), np.uint8), tokens, table, wide)
    centroid_maxsim(tokens, code, ptr[:-1], ptr[1:], np.empty(2, np.float32))


def _read_runs() -> None:
    import tempfile
    from pathlib import Path

    from weir.files.formats import nested_source
    from weir.files.runs import read_run, run_of

    lines = {
        "run.trec": "q Q0 a 1 2.5 run\nq Q0 b 2 1.5 run\n",
        "run.csv": "query,doc,score\nq,a,2.5\nq,b,1.5\n",
        "run.json": '{"q": {"a": 2.5, "b": 1.5}}',
    }
    with tempfile.TemporaryDirectory() as folder:
        for name, text in lines.items():
            path = Path(folder) / name
            path.write_text(text, encoding="utf-8")
            source = nested_source(path, worth=0) if name.endswith(".json") else None
            if source is None:
                read_run(path, engine="numba")
            else:
                run_of(source, "run", engine="numba")


GROUPS: dict[str, Callable[[], None]] = {
    "sparse index": _index_sparse,
    "sparse search": _search_few,
    "sparse search of many": _search_many,
    "learned sparse search": _search_learned,
    "dense search": _search_dense,
    "late search": _search_late,
    "run reading": _read_runs,
}
"""What kernels are for: indexing (analysis included), searching few documents, many, learned weights ..."""
