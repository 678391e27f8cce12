"""Fusions as systems: rrf(bm25, rm3) answers with the fused answers of its parts."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from weir.algorithms import algorithm
from weir.core.corpus import Corpus, Queries
from weir.core.run import Run
from weir.errors import BadValue
from weir.fusion.fuse import fused
from weir.fusion.method import METHODS, Fusion
from weir.fusion.pool import Pool
from weir.systems.composite import Folder, folder_name, shifted
from weir.systems.plugins import rankings
from weir.systems.protocol import (
    SYSTEMS,
    ExternalStorage,
    Progress,
    Retriever,
    Searcher,
    Shelf,
    called,
    fresh,
    watched,
)
from weir.systems.rerank.pipeline import check_depth

__all__ = ["DEPTH", "Fused", "FusedSearcher", "as_system"]

DEPTH = 1000
"""Answers taken from each part, or k where that is more, unless a depth is named."""


@dataclass(frozen=True)
class Fused:
    """Two or more systems whose answers are fused.

    fusion: the method with its settings; parts: the systems; depth: how many answers are taken from each for a query,
    None for 1000, or k where that is more. Raises BadValue for fewer than two parts, for another number of weights
    than parts, and for a depth below 1.
    """

    fusion: Fusion
    parts: tuple[Retriever, ...]
    depth: int | None = None

    def __post_init__(self) -> None:
        name = self.fusion.name
        for part in self.parts:
            if not isinstance(part, Retriever):
                raise BadValue(f"{name} fuses systems, such as {name}(bm25, rm3); {part!r} is none")
        if len(self.parts) < 2:
            raise BadValue(
                f"{name} fuses two or more systems, such as {name}(bm25, rm3); found {len(self.parts)}"
            )
        self.fusion.refuse_other_than(len(self.parts))
        if self.depth is not None:
            check_depth(name, self.depth)

    def __str__(self) -> str:
        depth = {} if self.depth is None else {"depth": self.depth}
        given: dict[str, object] = {**dict(self.fusion.settings), **depth}
        return called(self.fusion.name, list(self.parts), given)

    def describe(self) -> dict[str, object]:
        """Everything that can move a number."""
        settings: dict[str, object] = {"method": self.fusion.name, **self.fusion.all_settings()}
        settings["depth"] = f"the larger of {DEPTH} and k" if self.depth is None else self.depth
        settings["algorithm"] = algorithm("fusion")
        return {"system": str(self), "fusion": settings, "parts": [part.describe() for part in self.parts]}

    @cached_property
    def distinct(self) -> dict[str, Retriever]:
        """The different parts, each with the name of its folder."""
        return {folder_name(part): part for part in self.parts}

    def over(self, corpus: Corpus, shelf: Shelf, progress: Progress | None = None) -> FusedSearcher:
        """The answers of the parts; equal parts share one searcher."""
        made: dict[str, Searcher] = {}
        for number, (name, part) in enumerate(self.distinct.items()):
            shown = None if progress is None else shifted(progress, number, len(self.distinct))
            made[name] = shelf.answers(part, corpus, shown)
        return FusedSearcher(self, corpus, tuple(made[folder_name(part)] for part in self.parts))

    def index(
        self, corpus: Corpus, at: Path | None = None, progress: Progress | None = None
    ) -> FusedSearcher:
        """Index a corpus for each distinct part, in memory or each into a folder of its own in `at`."""
        return self.over(corpus, Folder(at), progress)

    def open(self, at: Path, corpus: Corpus) -> FusedSearcher:
        """Open what `index` wrote for the same corpus; raises StoreError where a part is missing or damaged."""
        return self.over(corpus, Folder(at, build=False))


@dataclass(frozen=True, eq=False)
class FusedSearcher:
    """The searchers of the parts, in their order; equal parts share one."""

    system: Fused
    corpus: Corpus
    searchers: tuple[Searcher, ...]

    def search(self, queries: Queries, k: int) -> Run:
        """The k best documents by fusion of each part's answers; raises BadValue for k below 1."""
        if k < 1:
            raise BadValue(f"k is {k}; expected a whole number from 1")
        depth = max(DEPTH, k) if self.system.depth is None else self.system.depth
        named = dict(zip(self.searchers, self.system.parts, strict=True))
        runs = {searcher: rankings(searcher, queries, depth, part) for searcher, part in named.items()}
        pool = Pool.of([runs[searcher] for searcher in self.searchers])
        return fused(pool, self.system.fusion, k, str(self.system))

    def outside(self) -> ExternalStorage:
        """What the parts keep outside the index."""
        return ExternalStorage.of(*dict.fromkeys(self.searchers))

    def watched(self, progress: Progress) -> FusedSearcher:
        """The same, telling how far its parts are."""
        told = {searcher: watched(searcher, progress) for searcher in dict.fromkeys(self.searchers)}
        return replace(self, searchers=tuple(told[searcher] for searcher in self.searchers))

    def fresh(self) -> FusedSearcher | None:
        """The same, computing anew what its parts keep; None where a part may not be asked again."""
        anew = {searcher: fresh(searcher) for searcher in dict.fromkeys(self.searchers)}
        found = [one for one in (anew[searcher] for searcher in self.searchers) if one is not None]
        return replace(self, searchers=tuple(found)) if len(found) == len(self.searchers) else None


def as_system(name: str) -> Callable[..., Retriever]:
    """Make the fusion method of that name a system: `name(system, system, ..., setting=value, depth=None)`.

    The methods that are known when this package is imported are systems already.
    """
    method = METHODS.get(name)
    keyword, many = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_POSITIONAL
    defaults: dict[str, object] = {**method.defaults(), "depth": None}
    settings = [inspect.Parameter(key, keyword, default=value) for key, value in defaults.items()]

    def build(*systems: Retriever, depth: int | None = None, **settings: object) -> Retriever:
        return Fused(Fusion(name).with_settings(settings), systems, depth)

    build.__doc__ = inspect.getdoc(method.function)
    signature = inspect.Signature([inspect.Parameter("system", many), *settings])
    build.__dict__["__signature__"] = signature  # what parse_system checks names against
    return SYSTEMS.add(name, build)


for _name in METHODS:
    as_system(_name)
