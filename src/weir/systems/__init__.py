"""Systems: from a corpus and queries to a run. Importing this package registers them."""

from weir.systems.bm25 import BM25
from weir.systems.chunked import Chunked
from weir.systems.cross import Cross
from weir.systems.dense import Dense
from weir.systems.fused import Fused
from weir.systems.pipeline import Pipeline
from weir.systems.recipe import PRESETS, Recipe
from weir.systems.rescore import Score
from weir.systems.rm3 import RM3
from weir.systems.system import (
    RERANKERS,
    SYSTEMS,
    Reranker,
    Retriever,
    Scorer,
    Searcher,
    parse_system,
    usage,
)

__all__ = [
    "BM25",
    "PRESETS",
    "RERANKERS",
    "RM3",
    "SYSTEMS",
    "Chunked",
    "Cross",
    "Dense",
    "Fused",
    "Pipeline",
    "Recipe",
    "Reranker",
    "Retriever",
    "Score",
    "Scorer",
    "Searcher",
    "parse_system",
    "usage",
]
