"""Systems: from a corpus and queries to a run. Each is imported when it is named; see `protocol.py` for where it is."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from weir.systems.protocol import (
    IN_MEMORY,
    RERANKERS,
    SYSTEMS,
    Context,
    Costs,
    Reranker,
    Retriever,
    Scorer,
    Searcher,
    usage,
)

if TYPE_CHECKING:
    from weir.systems.candidate_pool import CandidatePool
    from weir.systems.compose import Pipeline, as_reranker, as_system
    from weir.systems.dense import dense as Dense
    from weir.systems.expression import parse_system, system
    from weir.systems.filtered import Filtered
    from weir.systems.fused import Fused
    from weir.systems.grid_expression import factorial
    from weir.systems.late_interaction import ColBERT
    from weir.systems.learned_sparse import Sparse
    from weir.systems.lexical.bm25 import BM25
    from weir.systems.lexical.bm25_presets import PRESETS, BM25Preset
    from weir.systems.lexical.bm25f import BM25F
    from weir.systems.lexical.chunked import Chunked
    from weir.systems.lexical.deepct import DeepCT
    from weir.systems.lexical.doc2query import Doc2Query
    from weir.systems.lexical.rm3 import RM3
    from weir.systems.rerank.cross import PairReranker
    from weir.systems.rerank.cross import cross as Cross
    from weir.systems.rerank.cross import monot5 as MonoT5
    from weir.systems.rerank.score_reranker import Score
    from weir.systems.stored_run import StoredRun

__all__ = [
    "BM25",
    "BM25F",
    "IN_MEMORY",
    "PRESETS",
    "RERANKERS",
    "RM3",
    "SYSTEMS",
    "BM25Preset",
    "CandidatePool",
    "Chunked",
    "ColBERT",
    "Context",
    "Costs",
    "Cross",
    "DeepCT",
    "Dense",
    "Doc2Query",
    "Filtered",
    "Fused",
    "MonoT5",
    "PairReranker",
    "Pipeline",
    "Reranker",
    "Retriever",
    "Score",
    "Scorer",
    "Searcher",
    "Sparse",
    "StoredRun",
    "as_reranker",
    "as_system",
    "factorial",
    "parse_system",
    "system",
    "usage",
]

_HOMES = {
    "BM25": "lexical.bm25:BM25",
    "BM25F": "lexical.bm25f:BM25F",
    "PRESETS": "lexical.bm25_presets:PRESETS",
    "RM3": "lexical.rm3:RM3",
    "BM25Preset": "lexical.bm25_presets:BM25Preset",
    "CandidatePool": "candidate_pool:CandidatePool",
    "Chunked": "lexical.chunked:Chunked",
    "ColBERT": "late_interaction:ColBERT",
    "Cross": "rerank.cross:cross",
    "DeepCT": "lexical.deepct:DeepCT",
    "Dense": "dense:dense",
    "Doc2Query": "lexical.doc2query:Doc2Query",
    "Filtered": "filtered:Filtered",
    "Fused": "fused:Fused",
    "MonoT5": "rerank.cross:monot5",
    "PairReranker": "rerank.cross:PairReranker",
    "Pipeline": "compose:Pipeline",
    "Score": "rerank.score_reranker:Score",
    "Sparse": "learned_sparse:Sparse",
    "StoredRun": "stored_run:StoredRun",
    "as_reranker": "compose:as_reranker",
    "as_system": "compose:as_system",
    "factorial": "grid_expression:factorial",
    "parse_system": "expression:parse_system",
    "system": "expression:system",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'weir.systems' has no attribute '{name}'")
    module, _, attribute = _HOMES[name].partition(":")
    return getattr(importlib.import_module(f"weir.systems.{module}"), attribute)
