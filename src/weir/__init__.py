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
    from weir.api.auditing import align, audits, judging_pool, relabel, subset
    from weir.api.benchmark import Benchmark, benchmark
    from weir.api.comparisons import abstention, compare, diff, power, threshold, why
    from weir.api.estimating import estimate, next_queries
    from weir.api.evaluation import evaluate
    from weir.api.fusing import fit_fusion, fuse
    from weir.api.gating import gate, save_baseline
    from weir.api.judges import judge
    from weir.api.labelling import agree, holes, orders, raters
    from weir.api.official import official
    from weir.api.paired_queries import p_mrr, within_groups
    from weir.api.result_set import ResultSet
    from weir.api.results_folder import (
        describe,
        efficiency,
        llm_trace,
        llm_use,
        plan,
        reproduce,
        results,
        verify,
    )
    from weir.core.corpus import Corpus, Queries
    from weir.core.intents import IntentQrels
    from weir.core.judged import Judged
    from weir.core.layers import layered
    from weir.core.qrels import Qrels
    from weir.core.query_groups import QueryGroups
    from weir.core.result_row import Row
    from weir.core.run import Run
    from weir.core.scores import GroupedScores, MeasureScores, Scores
    from weir.datasets.fetching import fetch
    from weir.datasets.load import Dataset, load, load_group
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
        ContextPrecision,
        F,
        G,
        Hole,
        IPrec,
        Judged_at,
        Measure,
        NuggetRecall,
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
    from weir.systems import (
        BM25,
        BM25F,
        RM3,
        ColBERT,
        Cross,
        Dense,
        Filtered,
        MonoT5,
        Score,
        Sparse,
        factorial,
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
    "AP",
    "AP_IA",
    "BM25",
    "BM25F",
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
    "ContextPrecision",
    "Conventions",
    "Corpus",
    "Cross",
    "Dataset",
    "Dense",
    "Experiment",
    "F",
    "Filtered",
    "G",
    "GroupedScores",
    "Hole",
    "IPrec",
    "IntentQrels",
    "JudgeSettings",
    "Judged",
    "Judged_at",
    "Measure",
    "MeasureScores",
    "MonoT5",
    "NuggetRecall",
    "NumNonrelRet",
    "NumRel",
    "NumRelRet",
    "NumRet",
    "P",
    "Q",
    "Qrels",
    "Queries",
    "QueryGroups",
    "R",
    "RBP_residual",
    "R_cap",
    "ReorderRules",
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
    "StudyRules",
    "Success",
    "Utility",
    "WeirError",
    "__version__",
    "abstention",
    "agree",
    "align",
    "alpha_DCG",
    "alpha_nDCG",
    "audits",
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
    "estimate",
    "evaluate",
    "factorial",
    "fetch",
    "fit_fusion",
    "fuse",
    "gate",
    "gmAP",
    "gmbpref",
    "holes",
    "import_files",
    "infAP",
    "isr",
    "judge",
    "judging_pool",
    "layered",
    "llm_trace",
    "llm_use",
    "load",
    "load_group",
    "logisr",
    "measure",
    "nDCG",
    "nDCG_rel",
    "nERR",
    "nERR_IA",
    "nNRBP",
    "next_queries",
    "official",
    "orders",
    "p_mrr",
    "parse_conventions",
    "parse_measure",
    "parse_system",
    "plan",
    "power",
    "published",
    "raters",
    "rbc",
    "relabel",
    "reproduce",
    "reranker",
    "reranking",
    "results",
    "rows",
    "rrf",
    "save_baseline",
    "sensitivity_of",
    "subset",
    "system",
    "threshold",
    "verify",
    "why",
    "within_groups",
    "wsum",
]

# The public names of each module, "name=its name there" where that is another.
_MODULES = {
    "api.benchmark": "Benchmark benchmark",
    "api.comparisons": "abstention compare diff power threshold why",
    "api.evaluation": "evaluate",
    "api.fusing": "fit_fusion fuse",
    "api.gating": "gate save_baseline",
    "api.judges": "judge",
    "api.labelling": "agree holes orders raters",
    "api.official": "official",
    "api.paired_queries": "p_mrr within_groups",
    "api.result_set": "ResultSet",
    "api.results_folder": "describe efficiency llm_trace llm_use plan reproduce results verify",
    "api.auditing": "align audits judging_pool relabel subset",
    "api.estimating": "estimate next_queries",
    "core.corpus": "Corpus Queries",
    "core.intents": "IntentQrels",
    "core.judged": "Judged",
    "core.layers": "layered",
    "core.qrels": "Qrels",
    "core.query_groups": "QueryGroups",
    "core.result_row": "Row",
    "core.run": "Run",
    "core.scores": "GroupedScores MeasureScores Scores",
    "datasets.fetching": "fetch",
    "datasets.load": "Dataset load load_group",
    "encode.object_encoder": "encoder=as_encoder",
    "errors": "WeirError",
    "experiment": "Experiment",
    "experiment.published.published_scores": "published",
    "judging.panel": "JudgeSettings",
    "measures": (
        "AP AP_IA Accuracy BPM Compat ContextPrecision DCG ERR ERR_IA F G Hole IAP IDCG INSQ INST IPrec Judged_at "
        "Measure NCG NERR10 NERR11 NERR8 NERR9 NRBP NuggetRecall NumNonrelRet NumRel NumRelRet NumRet P P_IA Q R RBP "
        "RBP_residual RR R_cap RnDCG Rprec SDCG SetAP SetF SetP SetR SetR_cap StRecall Success Utility "
        "alpha_DCG alpha_nDCG binG bpref condensed gmAP gmbpref infAP measure nDCG nDCG_rel nERR nERR_IA "
        "nNRBP parse_measure"
    ),
    "measures.conventions": "Conventions parse_conventions",
    "stats.comparison": "ComparisonMethod",
    "stats.score_rows": "rows",
    "systems": (
        "BM25 BM25F ColBERT Cross Dense Filtered MonoT5 RM3 Score Sparse factorial parse_system "
        "reranker=as_reranker system"
    ),
    "systems.fused": "borda combanz combmax combmed combmin combmnz combsum condorcet isr logisr rbc rrf wsum",
}
_HOMES = {
    name.partition("=")[0]: (module, name.partition("=")[2] or name)
    for module, names in _MODULES.items()
    for name in names.split()
}

_OF_PLUGINS = {"ReorderRules", "StudyRules", "import_files", "reranking", "sensitivity_of"}
"""Names that plug-ins bring by an entry point in the group `weir.functions`."""


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version  # it takes longer to import than the rest

        return version("weir-ir")
    if name in _OF_PLUGINS:
        from weir.registry import Registry

        value: object = Registry[object]("function").get(name)
        globals()[name] = value
        return value
    if name not in _HOMES:
        raise AttributeError(f"module 'weir' has no attribute '{name}'")
    module, attribute = _HOMES[name]
    value = getattr(importlib.import_module(f"weir.{module}"), attribute)
    globals()[name] = value  # found at once from here on
    return value


def __dir__() -> list[str]:
    return __all__
