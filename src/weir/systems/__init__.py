"""Systems: from a corpus and queries to a run. Each is imported when it is named; see `system.py` for where it is."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from weir.systems.expression import parse_system
from weir.systems.protocol import (
    RERANKERS,
    SYSTEMS,
    Reranker,
    Retriever,
    Scorer,
    Searcher,
    usage,
)

if TYPE_CHECKING:
    from weir.systems.dense import Dense
    from weir.systems.fused import Fused
    from weir.systems.late_interaction import ColBERT
    from weir.systems.learned_sparse import Sparse
    from weir.systems.lexical.bm25 import BM25
    from weir.systems.lexical.bm25_presets import PRESETS, BM25Preset
    from weir.systems.lexical.chunked import Chunked
    from weir.systems.lexical.deepct import DeepCT
    from weir.systems.lexical.doc2query import Doc2Query
    from weir.systems.lexical.rm3 import RM3
    from weir.systems.rerank.cross import PairReranker
    from weir.systems.rerank.pipeline import Pipeline
    from weir.systems.rerank.score_reranker import Score

__all__ = [
    "BM25",
    "PRESETS",
    "RERANKERS",
    "RM3",
    "SYSTEMS",
    "BM25Preset",
    "Chunked",
    "ColBERT",
    "DeepCT",
    "Dense",
    "Doc2Query",
    "Fused",
    "PairReranker",
    "Pipeline",
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
    "BM25": "lexical.bm25",
    "PRESETS": "lexical.bm25_presets",
    "RM3": "lexical.rm3",
    "Chunked": "lexical.chunked",
    "ColBERT": "late_interaction",
    "DeepCT": "lexical.deepct",
    "Dense": "dense",
    "Doc2Query": "lexical.doc2query",
    "Fused": "fused",
    "PairReranker": "rerank.cross",
    "Pipeline": "rerank.pipeline",
    "BM25Preset": "lexical.bm25_presets",
    "Score": "rerank.score_reranker",
    "Sparse": "learned_sparse",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'weir.systems' has no attribute '{name}'")
    return getattr(importlib.import_module(f"weir.systems.{_HOMES[name]}"), name)
