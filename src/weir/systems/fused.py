"""Fusions as systems: rrf(bm25, rm3) fuses the rankings of bm25 and rm3."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import cast

from weir.algorithms import algorithm
from weir.argument_types import checked, named_arguments
from weir.core.corpus import Corpus, Queries
from weir.core.run import Run
from weir.errors import BadValue, UnknownName
from weir.systems.compose import as_system, system_text, then
from weir.systems.composite import folder_name, open_parts, rankings, shelf_of
from weir.systems.fusion.fuse import Pool, fused
from weir.systems.fusion.methods import METHODS, Fusion
from weir.systems.protocol import (
    ANSWERS,
    IN_MEMORY,
    SYSTEMS,
    Component,
    Context,
    Costs,
    DocumentKeeper,
    Retriever,
    Searcher,
    called,
    check_depth,
    check_k,
    index_repr,
    searches_once_indexed,
)

DEPTH = 1000
"""Default number of results taken from each part, or k if larger."""


@searches_once_indexed
@named_arguments
@dataclass(frozen=True)
class Fused:
    """Two or more systems whose rankings are fused.

    Raises BadValue for fewer, a wrong number of weights, and a depth below 1.
    """

    fusion: Fusion
    parts: tuple[Retriever, ...]
    depth: int | None = None
    """Results taken from each part; None for the larger of 1000 and k."""

    def __post_init__(self) -> None:
        if not isinstance(self.fusion, Fusion) or not isinstance(self.parts, tuple):
            raise BadValue(
                f"found {self.fusion!r:.80} and {self.parts!r:.80}; weir.rrf(bm25, rm3) makes a fusion"
            )
        name = self.fusion.name
        for part in self.parts:
            if not isinstance(part, Retriever):
                raise BadValue(
                    f"{name} fuses systems, such as {name}(bm25, rm3); {part!r} is not a system; a name goes into "
                    "weir.system(...)"
                )
        if len(self.parts) < 2:
            raise BadValue(
                f"{name} fuses two or more systems, such as {name}(bm25, rm3); found {len(self.parts)}"
            )
        self.fusion.refuse_other_than(len(self.parts))
        check_depth(name, self.depth)

    __repr__ = system_text
    __rshift__ = then

    def __str__(self) -> str:
        depth = {} if self.depth is None else {"depth": self.depth}
        return called(self.fusion.name, list(self.parts), {**dict(self.fusion.settings), **depth})

    def describe(self) -> dict[str, object]:
        settings: dict[str, object] = {"method": self.fusion.name, **self.fusion.all_settings()}
        settings["depth"] = f"the larger of {DEPTH} and k" if self.depth is None else self.depth
        settings["algorithm"] = algorithm("fusion")
        return {"system": str(self), "fusion": settings, "parts": [part.describe() for part in self.parts]}

    @cached_property
    def distinct(self) -> dict[str, Retriever]:
        """{folder name: system} of the distinct systems."""
        return {folder_name(part): part for part in self.parts}

    def pool_depth(self, k: int, documents: int) -> int:
        return max(k, DEPTH if self.depth is None else min(self.depth * len(self.parts), documents))

    def is_drawn(self) -> bool:
        return False

    def keeps_documents(self) -> bool:
        return all(isinstance(part, DocumentKeeper) and part.keeps_documents() for part in self.parts)

    def components(self) -> tuple[Component, ...]:
        return tuple(
            Component(part, "run", depth=lambda queries, k, corpus: self.part_depth(k))
            for part in self.distinct.values()
        )

    def part_depth(self, k: int) -> int:
        """Return the number of results taken from each part for k fused results: `depth`, else the larger of
        1000 and k."""
        return max(DEPTH, k) if self.depth is None else self.depth

    @checked
    def index(self, corpus: Corpus, context: Context = IN_MEMORY) -> FusedSearcher:
        shelf, count = shelf_of(context), len(self.distinct)
        searchers = {
            name: shelf.answers(part, corpus, context.for_part(number, count))
            for number, (name, part) in enumerate(self.distinct.items())
        }
        return FusedSearcher(self, corpus, tuple(searchers[folder_name(part)] for part in self.parts))

    open = open_parts


@dataclass(frozen=True, eq=False)
class FusedSearcher:
    """Searches by each distinct part and fuses the rankings."""

    system: Fused
    corpus: Corpus
    searchers: tuple[Searcher, ...]

    __repr__ = index_repr

    @checked
    def search(self, queries: Queries, k: int = ANSWERS, context: Context = IN_MEMORY) -> Run:
        check_k(k)
        depth = self.system.part_depth(k)
        runs = {
            searcher: rankings(searcher, queries, depth, part, context=context)
            for searcher, part in dict(zip(self.searchers, self.system.parts, strict=True)).items()
        }
        pool = Pool.of([runs[searcher] for searcher in self.searchers])
        return fused(pool, self.system.fusion, k, str(self.system))

    search_restricted = search

    def nested(self, queries: Queries, k: int) -> bool:
        return self.system.part_depth(k + 1) == self.system.part_depth(k)

    def costs(self) -> Costs:
        return Costs.of(dict.fromkeys(self.searchers))


def _fusion_system(name: str) -> Callable[..., Fused]:
    method = METHODS.get(name)
    keyword, many = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_POSITIONAL
    defaults: dict[str, object] = {**method.defaults(), "depth": None}
    settings = [inspect.Parameter(key, keyword, default=value) for key, value in defaults.items()]

    def build(*systems: object, depth: int | None = None, **settings: object) -> Fused:
        if unknown := settings.keys() - defaults.keys():
            raise UnknownName(f"setting of {name}", min(unknown), defaults)
        # A literal, as a text may hold, stays what it is, and the fusion refuses it.
        literal = (str, int, float, list, type(None))
        parts = tuple(cast(Retriever, one) if isinstance(one, literal) else as_system(one) for one in systems)
        return Fused(Fusion(name).with_settings(settings), parts, depth)

    build.__doc__ = inspect.getdoc(method.function)
    signature = inspect.Signature([inspect.Parameter("system", many), *settings])
    build.__dict__["__signature__"] = signature  # what parse_system checks names against
    SYSTEMS.add(name, build)
    return build


borda = _fusion_system("borda")
combanz = _fusion_system("combanz")
combmax = _fusion_system("combmax")
combmed = _fusion_system("combmed")
combmin = _fusion_system("combmin")
combmnz = _fusion_system("combmnz")
combsum = _fusion_system("combsum")
condorcet = _fusion_system("condorcet")
isr = _fusion_system("isr")
logisr = _fusion_system("logisr")
rbc = _fusion_system("rbc")
rrf: Callable[..., Fused] = _fusion_system("rrf")
wsum = _fusion_system("wsum")
for _name in METHODS:
    if _name not in SYSTEMS:  # of another distribution
        _fusion_system(_name)
