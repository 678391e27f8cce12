"""Systems: from a corpus and queries to a run. Each is imported when it is named; see `system.py` for where it is."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from weir.systems.expression import parse_system
from weir.systems.system import (
    RERANKERS,
    SYSTEMS,
    Reranker,
    Retriever,
    Scorer,
    Searcher,
    usage,
)

if TYPE_CHECKING:
    from weir.systems.bm25 import BM25
    from weir.systems.chunked import Chunked
    from weir.systems.cross import PairReranker
    from weir.systems.deepct import DeepCT
    from weir.systems.dense import Dense
    from weir.systems.doc2query import Doc2Query
    from weir.systems.fused import Fused
    from weir.systems.late import ColBERT
    from weir.systems.pipeline import Pipeline
    from weir.systems.recipe import PRESETS, Recipe
    from weir.systems.rescore import Score
    from weir.systems.rm3 import RM3
    from weir.systems.sparse import Sparse

__all__ = [
    "BM25",
    "PRESETS",
    "RERANKERS",
    "RM3",
    "SYSTEMS",
    "Chunked",
    "ColBERT",
    "DeepCT",
    "Dense",
    "Doc2Query",
    "Fused",
    "PairReranker",
    "Pipeline",
    "Recipe",
    "Reranker",
    "Retriever",
    "Score",
    "Scorer",
    "Searcher",
    "Sparse",
    "parse_system",
    "usage",
]

_HOMES = {
    "BM25": "bm25",
    "PRESETS": "recipe",
    "RM3": "rm3",
    "Chunked": "chunked",
    "ColBERT": "late",
    "DeepCT": "deepct",
    "Dense": "dense",
    "Doc2Query": "doc2query",
    "Fused": "fused",
    "PairReranker": "cross",
    "Pipeline": "pipeline",
    "Recipe": "recipe",
    "Score": "rescore",
    "Sparse": "sparse",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'weir.systems' has no attribute '{name}'")
    return getattr(importlib.import_module(f"weir.systems.{_HOMES[name]}"), name)
