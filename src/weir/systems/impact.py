"""One impact index serves every sparse system: terms, postings with impacts, and who is behind each number."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weir.core.strings import Float64, Int32, Int64, Strings
from weir.errors import StoreError
from weir.io.atomic import atomic_dir
from weir.kernels.bounds import Bounds
from weir.kernels.columns import Columns
from weir.kernels.search import Impacts, search
from weir.settings import settings

__all__ = ["Forward", "Hits", "ImpactIndex", "load_index", "save_index", "top"]

FORMAT = 1
BLOCK = 1 << 24
"""Answers held at once while searching, in places (queries x k)."""

Float32 = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Forward:
    """The terms of each document: pairs (term, count) of document d stand at ptr[d]:ptr[d + 1]."""

    ptr: Int64
    term: Int32
    count: NDArray[np.integer]


@dataclass(frozen=True, eq=False)
class ImpactIndex:
    """Postings with impacts over internal document numbers, which follow the order of ties.

    impacts: the postings; vocabularies: for each field, the terms whose numbers follow those of the
    field before; order: int32[N], the corpus number of each internal number; forward: the documents'
    terms, for systems that expand queries, or None.
    """

    impacts: Impacts
    vocabularies: tuple[Strings, ...]
    order: Int32
    forward: Forward | None = None


@dataclass(frozen=True, eq=False)
class Hits:
    """Answers to many queries: ptr int64[Q + 1], doc int32[n] corpus numbers, score float64[n], in order."""

    ptr: Int64
    doc: Int32
    score: Float64


def top(index: ImpactIndex, query: Int64, term: Int32, weight: Float32, k: int) -> Hits:
    """The k best documents of each query.

    query: int64[Q + 1] where each query's terms start; term: int32, weight: float32, aligned.
    """
    count, block = len(query) - 1, max(1, BLOCK // k)
    if count <= block:
        return _block(index, query, term, weight, k)
    parts = []
    for start in range(0, count, block):
        ptr = query[start : start + block + 1]
        span = slice(int(ptr[0]), int(ptr[-1]))
        parts.append(_block(index, ptr - ptr[0], term[span], weight[span], k))
    starts = np.cumsum([0, *(len(part.doc) for part in parts)])
    ends = [part.ptr[1:] + start for part, start in zip(parts, starts[:-1], strict=True)]
    doc, score = (np.concatenate(column) for column in zip(*((p.doc, p.score) for p in parts), strict=True))
    return Hits(np.concatenate([np.zeros(1, np.int64), *ends]), doc, score)


def _block(index: ImpactIndex, query: Int64, term: Int32, weight: Float32, k: int) -> Hits:
    found, doc, score = search(index.impacts, query, term, weight, k, settings().threads)
    filled = np.arange(k) < found[:, None]
    ptr = np.zeros(len(found) + 1, np.int64)
    found.cumsum(out=ptr[1:])
    return Hits(ptr, index.order[doc[filled]], score[filled].astype(np.float64))


def save_index(indexes: tuple[ImpactIndex, ...], at: Path, facts: dict[str, object]) -> None:
    """Write indexes into the folder `at`, which appears when it is complete, with facts about them.

    Raises StoreError where the disk refuses.
    """
    with atomic_dir(at) as folder:
        for number, index in enumerate(indexes):
            for name, array in _arrays(index).items():
                np.save(folder / f"{number}-{name}.npy", array)
        head = {"format": FORMAT, "parts": len(indexes), "fields": [len(i.vocabularies) for i in indexes]}
        (folder / "index.json").write_text(json.dumps(head | facts, indent=1), encoding="utf-8")


def load_index(at: Path) -> tuple[tuple[ImpactIndex, ...], dict[str, object]]:
    """Open indexes written by `save_index`, memory-mapped, with the facts written beside them.

    Raises StoreError where the folder is damaged or of another format.
    """
    try:
        facts = json.loads((at / "index.json").read_text(encoding="utf-8"))
        if facts["format"] != FORMAT:
            raise StoreError(
                f"{at}: index format {facts['format']}, expected {FORMAT}; delete it to build it again"
            )
        return tuple(_opened(at, n, fields) for n, fields in enumerate(facts["fields"])), facts
    except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{at}: the index is damaged ({error}); delete it to build it again") from None


def _arrays(index: ImpactIndex) -> dict[str, NDArray[np.generic]]:
    arrays: dict[str, NDArray[np.generic]] = {
        "ptr": index.impacts.ptr,
        "doc": index.impacts.doc,
        "impact": index.impacts.impact,
        "order": index.order,
    }
    bounds = index.impacts.bounds
    if bounds is not None:
        arrays |= {f"bounds-{f.name}": np.asarray(getattr(bounds, f.name)) for f in fields(Bounds)}
    if index.impacts.columns is not None:
        arrays |= {f"columns-{f.name}": getattr(index.impacts.columns, f.name) for f in fields(Columns)}
    for number, terms in enumerate(index.vocabularies):
        arrays |= {f"terms{number}-data": terms.data, f"terms{number}-ptr": terms.ptr}
    if index.forward is not None:
        arrays |= {f"forward-{f.name}": getattr(index.forward, f.name) for f in fields(Forward)}
    return arrays


def _opened(at: Path, number: int, vocabularies: int) -> ImpactIndex:
    def mapped(name: str) -> Any:  # noqa: ANN401 - the dtype is what was saved
        # As a plain array: slicing a memmap costs more than searching a short list.
        return np.asarray(np.load(at / f"{number}-{name}.npy", mmap_mode="r", allow_pickle=False))

    order = mapped("order")
    bounds, columns = None, None
    if (at / f"{number}-bounds-listed.npy").exists():
        bounds = Bounds(**{f.name: mapped(f"bounds-{f.name}") for f in fields(Bounds)})
    if (at / f"{number}-columns-number.npy").exists():
        columns = Columns(**{f.name: mapped(f"columns-{f.name}") for f in fields(Columns)})
    impacts = Impacts(len(order), mapped("ptr"), mapped("doc"), mapped("impact"), bounds, columns)
    terms = tuple(Strings(mapped(f"terms{n}-data"), mapped(f"terms{n}-ptr")) for n in range(vocabularies))
    forward = None
    if (at / f"{number}-forward-ptr.npy").exists():
        forward = Forward(**{f.name: mapped(f"forward-{f.name}") for f in fields(Forward)})
    return ImpactIndex(impacts, terms, order, forward)
