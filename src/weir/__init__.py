"""Weir measures how well retrieval systems find what people need.

    ds = weir.load("scifact")
    run = weir.BM25().index(ds.corpus).search(ds.queries, k=1000)
    scores = weir.evaluate(ds.qrels, run, ["nDCG@10", "R@100"])

Names are imported when they are first used: scoring a run needs numpy alone, and indexing the `run` extra.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weir.api import compare, evaluate, fuse, read_results
    from weir.core.corpus import Corpus, Queries
    from weir.core.intents import IntentQrels
    from weir.core.judged import Judged
    from weir.core.qrels import Qrels
    from weir.core.result_row import Row
    from weir.core.run import Run
    from weir.core.scores import Scores
    from weir.datasets.load import Dataset, fetch, load
    from weir.encode.object_encoder import as_encoder as encoder
    from weir.errors import WeirError
    from weir.experiment import Experiment
    from weir.experiment.published.published_scores import published
    from weir.measures import Measure, measure, parse_measure
    from weir.measures.conventions import Conventions, parse_conventions
    from weir.stats.score_rows import rows
    from weir.systems import (
        BM25,
        RM3,
        ColBERT,
        Cross,
        Dense,
        MonoT5,
        Score,
        Sparse,
        parse_system,
        system,
    )
    from weir.systems import as_reranker as reranker
    from weir.systems.fused import (
        borda,
        combanz,
        combmax,
        combmed,
        combmin,
        combmnz,
        combsum,
        condorcet,
        isr,
        logisr,
        rbc,
        rrf,
        wsum,
    )

__all__ = [
    "BM25",
    "RM3",
    "ColBERT",
    "Conventions",
    "Corpus",
    "Cross",
    "Dataset",
    "Dense",
    "Experiment",
    "IntentQrels",
    "Judged",
    "Measure",
    "MonoT5",
    "Qrels",
    "Queries",
    "Row",
    "Run",
    "Score",
    "Scores",
    "Sparse",
    "WeirError",
    "borda",
    "combanz",
    "combmax",
    "combmed",
    "combmin",
    "combmnz",
    "combsum",
    "compare",
    "condorcet",
    "encoder",
    "evaluate",
    "fetch",
    "fuse",
    "isr",
    "load",
    "logisr",
    "measure",
    "parse_conventions",
    "parse_measure",
    "parse_system",
    "published",
    "rbc",
    "read_results",
    "reranker",
    "rows",
    "rrf",
    "system",
    "wsum",
]

_HOMES = {
    "BM25": "systems",
    "RM3": "systems",
    "Conventions": "measures.conventions",
    "Corpus": "core.corpus",
    "Dataset": "datasets.load",
    "Experiment": "experiment",
    "IntentQrels": "core.intents",
    "Judged": "core.judged",
    "Measure": "measures",
    "Qrels": "core.qrels",
    "Queries": "core.corpus",
    "Row": "core.result_row",
    "Run": "core.run",
    "Scores": "core.scores",
    "WeirError": "errors",
    "compare": "api",
    "evaluate": "api",
    "fetch": "datasets.load",
    "fuse": "api",
    "load": "datasets.load",
    "measure": "measures",
    "parse_conventions": "measures.conventions",
    "parse_measure": "measures",
    "parse_system": "systems",
    "published": "experiment.published.published_scores",
    "read_results": "api",
    "rows": "stats.score_rows",
    "ColBERT": "systems",
    "Cross": "systems",
    "Dense": "systems",
    "MonoT5": "systems",
    "Score": "systems",
    "Sparse": "systems",
    "system": "systems",
    "encoder": "encode.object_encoder:as_encoder",
    "reranker": "systems:as_reranker",
    "borda": "systems.fused",
    "combanz": "systems.fused",
    "combmax": "systems.fused",
    "combmed": "systems.fused",
    "combmin": "systems.fused",
    "combmnz": "systems.fused",
    "combsum": "systems.fused",
    "condorcet": "systems.fused",
    "isr": "systems.fused",
    "logisr": "systems.fused",
    "rbc": "systems.fused",
    "rrf": "systems.fused",
    "wsum": "systems.fused",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'weir' has no attribute '{name}'")
    module, _, attribute = _HOMES[name].partition(":")
    return getattr(importlib.import_module(f"weir.{module}"), attribute or name)


def __dir__() -> list[str]:
    return __all__
