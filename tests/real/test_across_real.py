"""The BEIR paper's counts of datasets on which systems are better, from its published table."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from weir.stats.compare import ComparisonMethod, ScoreTable, compared

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def published(shared) -> ScoreTable:
    """nDCG@10 of Table 2 of Thakur et al. 2021 without MS MARCO: 10 systems, 18 datasets, no value for each query."""
    with (shared / "facts" / "results-beir.csv").open(encoding="utf-8", newline="") as file:
        rows = [r for r in csv.DictReader(file) if r["source"].startswith("BEIR paper Table 2")]
    cells = {
        (r["model"].removesuffix(" [BEIR paper]"), r["dataset"]): float(r["value"])
        for r in rows
        if r["metric"] == "nDCG@10" and r["dataset"] != "msmarco"
    }
    systems = sorted({system for system, _ in cells})
    datasets = sorted({dataset for _, dataset in cells})
    values = np.array([[cells[s, d] for d in datasets] for s in systems])
    assert values.shape == (10, 18)
    return ScoreTable("18 datasets", "nDCG@10", tuple(systems), values, unit="datasets")


@pytest.mark.parametrize(
    ("system", "baseline", "won"),
    [("ColBERT", "BM25", 9), ("BM25+CE", "BM25", 16), ("TAS-B", "ANCE", 14), ("TAS-B", "DPR", 17)],
)
def test_datasets_won_as_the_beir_paper_counts_them(published, system, baseline, won):
    found = {p.second: p for p in compared(published, baseline, ComparisonMethod("t")).pairs}[system]
    assert found.won == won
    assert found.won + found.lost + found.tied == 18


def test_with_datasets_as_the_random_factor_only_reranking_beats_bm25(published):
    """What the paper says in words, tested: of nine systems one is better than BM25 across datasets."""
    found = compared(published, "BM25", ComparisonMethod("permutation"))
    assert [p.second for p in found.pairs if p.verdict == "better"] == ["BM25+CE"]
    assert {p.second for p in found.pairs if p.verdict == "worse"} >= {"DPR", "DeepCT"}
