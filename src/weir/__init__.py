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
    from weir.api.benchmark import Benchmark, benchmark
    from weir.api.comparisons import abstention, compare, diff, gate, power, why
    from weir.api.evaluation import evaluate
    from weir.api.fusing import fit_fusion, fuse
    from weir.api.result_set import ResultSet
    from weir.api.results_folder import describe, efficiency, plan, reproduce, results, verify
    from weir.core.corpus import Corpus, Queries
    from weir.core.intents import IntentQrels
    from weir.core.judged import Judged
    from weir.core.qrels import Qrels
    from weir.core.result_row import Row
    from weir.core.run import Run
    from weir.core.scores import MeasureScores, Scores
    from weir.datasets.load import Dataset, fetch, load, load_group
    from weir.encode.object_encoder import as_encoder as encoder
    from weir.errors import WeirError
    from weir.experiment import Experiment
    from weir.experiment.published.published_scores import published
    from weir.measures import (
        AP,
        AP_IA,
        BPM,
        DCG,
        ERR,
        ERR_IA,
        IAP,
        IDCG,
        INSQ,
        INST,
        NCG,
        NERR8,
        NERR9,
        NERR10,
        NERR11,
        NRBP,
        P_IA,
        RBP,
        RR,
        SDCG,
        Accuracy,
        Compat,
        F,
        G,
        Hole,
        IPrec,
        Judged_at,
        Measure,
        NumNonrelRet,
        NumRel,
        NumRelRet,
        NumRet,
        P,
        Q,
        R,
        R_cap,
        RBP_residual,
        RnDCG,
        Rprec,
        SetAP,
        SetF,
        SetP,
        SetR,
        SetR_cap,
        StRecall,
        Success,
        Utility,
        alpha_DCG,
        alpha_nDCG,
        binG,
        bpref,
        condensed,
        gmAP,
        gmbpref,
        infAP,
        measure,
        nDCG,
        nDCG_rel,
        nERR,
        nERR_IA,
        nNRBP,
        parse_measure,
    )
    from weir.measures.conventions import Conventions, parse_conventions
    from weir.stats.comparison import ComparisonMethod
    from weir.stats.score_rows import rows
    from weir.systems import BM25, RM3, ColBERT, Cross, Dense, MonoT5, Score, Sparse, parse_system, system
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
    "AP",
    "AP_IA",
    "BM25",
    "BPM",
    "DCG",
    "ERR",
    "ERR_IA",
    "IAP",
    "IDCG",
    "INSQ",
    "INST",
    "NCG",
    "NERR8",
    "NERR9",
    "NERR10",
    "NERR11",
    "NRBP",
    "P_IA",
    "RBP",
    "RM3",
    "RR",
    "SDCG",
    "Accuracy",
    "Benchmark",
    "ColBERT",
    "ComparisonMethod",
    "Compat",
    "Conventions",
    "Corpus",
    "Cross",
    "Dataset",
    "Dense",
    "Experiment",
    "F",
    "G",
    "Hole",
    "IPrec",
    "IntentQrels",
    "Judged",
    "Judged_at",
    "Measure",
    "MeasureScores",
    "MonoT5",
    "NumNonrelRet",
    "NumRel",
    "NumRelRet",
    "NumRet",
    "P",
    "Q",
    "Qrels",
    "Queries",
    "R",
    "RBP_residual",
    "R_cap",
    "ResultSet",
    "RnDCG",
    "Row",
    "Rprec",
    "Run",
    "Score",
    "Scores",
    "SetAP",
    "SetF",
    "SetP",
    "SetR",
    "SetR_cap",
    "Sparse",
    "StRecall",
    "Success",
    "Utility",
    "WeirError",
    "__version__",
    "abstention",
    "alpha_DCG",
    "alpha_nDCG",
    "benchmark",
    "binG",
    "borda",
    "bpref",
    "combanz",
    "combmax",
    "combmed",
    "combmin",
    "combmnz",
    "combsum",
    "compare",
    "condensed",
    "condorcet",
    "describe",
    "diff",
    "efficiency",
    "encoder",
    "evaluate",
    "fetch",
    "fit_fusion",
    "fuse",
    "gate",
    "gmAP",
    "gmbpref",
    "infAP",
    "isr",
    "load",
    "load_group",
    "logisr",
    "measure",
    "nDCG",
    "nDCG_rel",
    "nERR",
    "nERR_IA",
    "nNRBP",
    "parse_conventions",
    "parse_measure",
    "parse_system",
    "plan",
    "power",
    "published",
    "rbc",
    "reproduce",
    "reranker",
    "results",
    "rows",
    "rrf",
    "system",
    "verify",
    "why",
    "wsum",
]

_HOMES = {
    "Benchmark": "api.benchmark",
    "ComparisonMethod": "stats.comparison",
    "MeasureScores": "core.scores",
    "ResultSet": "api.result_set",
    "abstention": "api.comparisons",
    "benchmark": "api.benchmark",
    "compare": "api.comparisons",
    "describe": "api.results_folder",
    "diff": "api.comparisons",
    "efficiency": "api.results_folder",
    "evaluate": "api.evaluation",
    "fit_fusion": "api.fusing",
    "fuse": "api.fusing",
    "gate": "api.comparisons",
    "load_group": "datasets.load",
    "plan": "api.results_folder",
    "power": "api.comparisons",
    "reproduce": "api.results_folder",
    "results": "api.results_folder",
    "verify": "api.results_folder",
    "why": "api.comparisons",
    "BM25": "systems",
    "Conventions": "measures.conventions",
    "Corpus": "core.corpus",
    "Dataset": "datasets.load",
    "Experiment": "experiment",
    "IntentQrels": "core.intents",
    "Judged": "core.judged",
    "Measure": "measures",
    "Qrels": "core.qrels",
    "Queries": "core.corpus",
    "RM3": "systems",
    "Row": "core.result_row",
    "Run": "core.run",
    "Scores": "core.scores",
    "WeirError": "errors",
    "condensed": "measures",
    "fetch": "datasets.load",
    "load": "datasets.load",
    "measure": "measures",
    "parse_conventions": "measures.conventions",
    "parse_measure": "measures",
    "parse_system": "systems",
    "published": "experiment.published.published_scores",
    "rows": "stats.score_rows",
    "ColBERT": "systems",
    "Cross": "systems",
    "Dense": "systems",
    "MonoT5": "systems",
    "Score": "systems",
    "Sparse": "systems",
    "encoder": "encode.object_encoder:as_encoder",
    "reranker": "systems:as_reranker",
    "system": "systems",
    # every fusion method makes a system of systems, and every measure is a value, by the name it prints
    **dict.fromkeys(
        ("borda combanz combmax combmed combmin combmnz combsum condorcet isr logisr rbc rrf wsum").split(),
        "systems.fused",
    ),
    **dict.fromkeys(
        (
            "AP AP_IA BPM DCG ERR ERR_IA IAP IDCG INSQ INST NCG NERR8 NERR9 NERR10 NERR11 NRBP P_IA RBP RR "
            "SDCG Accuracy Compat F G Hole IPrec Judged_at NumNonrelRet NumRel NumRelRet NumRet P Q R "
            "RBP_residual R_cap RnDCG Rprec SetAP SetF SetP SetR SetR_cap StRecall Success Utility alpha_DCG "
            "alpha_nDCG binG bpref gmAP gmbpref infAP nDCG nDCG_rel nERR nERR_IA nNRBP"
        ).split(),
        "measures",
    ),
}


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version  # it takes longer to import than the rest

        return version("weir-ir")
    if name not in _HOMES:
        raise AttributeError(f"module 'weir' has no attribute '{name}'")
    module, _, attribute = _HOMES[name].partition(":")
    return getattr(importlib.import_module(f"weir.{module}"), attribute or name)


def __dir__() -> list[str]:
    return __all__
