"""Compile or load the kernels of a system before times are measured, by running them on tiny documents."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

import numpy as np

from weir.core.strings import Strings
from weir.errors import UnknownName
from weir.kernels.inverted.block_bounds import BlockBounds
from weir.kernels.inverted.byte_bounds import ByteBounds
from weir.kernels.inverted.search import Impacts, search
from weir.kernels.jit import check_available, listening
from weir.systems.composite import parts_of
from weir.systems.protocol import Compiled, Reranker, Retriever

GROUPS = (
    "sparse index",
    "sparse index on disk",
    "sparse search",
    "sparse search of many",
    "learned sparse search",
    "dense search",
    "late search",
    "run reading",
)
"""What kernels are for: indexing (analysis included), indexing what memory does not hold, searching few documents,
many, learned weights ..."""


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
def _run_once(kind: str) -> None:
    """Call the kernels of a kind on tiny documents."""
    # Three terms in three documents.
    ptr, doc = np.arange(0, 10, 3, dtype=np.int64), np.tile(np.arange(3, dtype=np.int32), 3)
    impact = np.linspace(1, 2, 9, dtype=np.float32)
    bounds = columns = None
    if kind == "sparse index":
        from weir.kernels.inverted.postings import added_up
        from weir.kernels.words import regrow
        from weir.systems.lexical.analyzer import analyzers
        from weir.systems.lexical.bm25 import PRESETS, query_terms, weighed
        from weir.systems.lexical.terms import TermTable

        table = TermTable(analyzers.get(PRESETS["lucene"].analyzer))
        texts = Strings.of(["A weir measures a stream.", "über die Brücke — 川と海", ""])
        weighed(table, [table.add(texts)], PRESETS["lucene"], np.arange(len(texts), dtype=np.int32))
        query_terms((table,), texts)
        added_up([(np.array([0, 1]), np.zeros(1, np.int32), np.ones(1))], 1)
        regrow(np.full(8, -1), np.full(16, -1), np.empty(0, np.int64))  # what only longer texts need
    elif kind == "sparse index on disk":
        from weir.kernels.inverted.postings import LUCENE, VALUE, append_lists, by_block, invert

        one, value = np.ones(1, np.int32), np.ones(1, np.float32)
        by_block(np.array([0, 1]), one, one, np.zeros(1, np.int32), 1)
        invert(np.array([0, 1]), np.zeros(1, np.int32), value, np.zeros(1, np.int32), value, value, VALUE)
        out = np.zeros(1, np.int32), np.zeros(1, np.float32)
        for some in (value, one.astype(np.uint16)):
            append_lists(one, np.zeros(1, np.int64), out[0], some, 0, value, value, LUCENE, *out)
    elif kind in ("sparse search", "sparse search of many", "learned sparse search"):
        from weir.kernels.inverted.postings import document_frequencies, place

        if kind != "sparse search":
            bounds = BlockBounds.of(ptr, doc, impact, 3)
        if kind == "learned sparse search":
            columns = ByteBounds.of_terms(np.arange(3), ptr, doc, impact, 3)
            document_frequencies(doc, 3)
            place(ptr, doc, impact, 0, ptr[:-1].copy(), np.empty_like(doc), np.empty_like(impact))
        index, query = Impacts(3, ptr, doc, impact, bounds, columns), np.array([0, 3, 4])
        search(index, query, np.array([0, 1, 2, 1], np.int32), np.ones(4, np.float32), 2)
    elif kind == "dense search":
        from weir.systems.vectors.exact_search import ArraySource, Similarity, pair_scores
        from weir.systems.vectors.exact_search import search as search_vectors

        rows = np.linspace(-1, 1, 128 * 16, dtype=np.float32).reshape(128, 16)
        similarities: tuple[Similarity, ...] = ("dot", "cosine")
        for similarity in similarities:
            search_vectors(ArraySource(rows), rows[:2], 3, similarity)
            search_vectors(ArraySource(rows), rows[:8], 3, similarity)
            search_vectors(ArraySource(rows), rows[:8], 3, similarity, first_pass="fp32")
        pair_scores(rows, rows[0])
    elif kind == "late search":
        from weir.kernels.maxsim import bounds as maxsim_bounds
        from weir.kernels.maxsim import can_quantise, centroid_maxsim, decompress, maxsim

        tokens, cuts = np.linspace(-1, 1, 12 * 16, dtype=np.float32).reshape(12, 16), np.array([0, 4, 12])
        for values in (tokens, tokens.astype(np.float16)):
            maxsim(tokens[:4], np.array([0, 4]), values, cuts)
            if can_quantise(values):
                maxsim_bounds(tokens[:4], np.array([0, 4]), values, cuts[:-1], cuts[1:])
        code, wide = np.zeros(12, np.int32), np.empty((12, 16), np.float32)
        decompress(code, np.zeros((12, 4), np.uint8), tokens, np.zeros((256, 4), np.float32), wide)
        centroid_maxsim(tokens, code, cuts[:-1], cuts[1:], np.empty(2, np.float32))
    else:
        from weir.files.json_files import nested_source
        from weir.files.runs import read_run, run_of

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
