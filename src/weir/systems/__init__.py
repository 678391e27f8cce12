"""Systems: from a corpus and queries to a run. Importing this package registers them."""

from weir.systems.bm25 import BM25
from weir.systems.chunked import Chunked
from weir.systems.cross import PairReranker
from weir.systems.deepct import DeepCT
from weir.systems.dense import Dense
from weir.systems.doc2query import Doc2Query
from weir.systems.expression import parse_system
from weir.systems.fused import Fused
from weir.systems.late import ColBERT
from weir.systems.pipeline import Pipeline
from weir.systems.recipe import PRESETS, Recipe
from weir.systems.rescore import Score
from weir.systems.rm3 import RM3
from weir.systems.sparse import Sparse
from weir.systems.system import (
    RERANKERS,
    SYSTEMS,
    Reranker,
    Retriever,
    Scorer,
    Searcher,
    usage,
)

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
