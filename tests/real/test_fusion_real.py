"""Fusions of other tools' own fixtures, and of real runs."""

from __future__ import annotations

import numpy as np
import pytest

from weir.api.fusing import fuse
from weir.files.runs import read_qrels, read_run
from weir.measures import score_run
from weir.systems.fusion import METHODS, fit

pytestmark = pytest.mark.real


@pytest.mark.parametrize(
    ("method", "fixture"),
    [
        ("rrf", "simple_trec_run_rrf_verify.txt"),
        ('wsum(norm="none")', "simple_trec_run_average_verify.txt"),
        ('wsum(weights=[0.4, 0.6], norm="none")', "simple_trec_run_interpolation_verify.txt"),
        ("combsum", "simple_fusion_normalize_verify.txt"),
    ],
)
def test_pyserinis_own_fixtures(shared, method, fixture):
    folder = shared / "data" / "eval-fixtures" / "pyserini"
    runs = [folder / f"simple_trec_run_fusion_{n}.txt" for n in (1, 2)]
    found, expected = fuse(runs, method).to_dict(), read_run(folder / fixture).to_dict()
    if method == "rrf":  # pyserini believes the file's rank column, which skips from 1 to 3; Weir counts
        assert expected["1"]["2054tkb7"] == pytest.approx(1 / 62 + 1 / 63, rel=1e-15)
        expected["1"]["2054tkb7"] = 1 / 62 + 1 / 62
    assert found.keys() == expected.keys()
    for query, ranking in expected.items():
        assert list(found[query]) == list(ranking)
        assert found[query] == pytest.approx(ranking, rel=1e-15)


def test_a_fit_on_real_runs_is_sound(shared):
    folder = shared / "data" / "trec-dl"
    names = ("BM25", "D_BERT_KD_TASB", "SPLADE_P_P_ENSEMBLE_DISTIL")
    for year in ("19", "20"):
        runs = [read_run(folder / "runs" / f"dl{year}" / f"{name}.trec.gz") for name in names]
        qrels = read_qrels(folder / "qrels" / f"qrels.dl{year}-passage.txt")
        single = max(float(score_run(qrels, run, "nDCG@10").mean_values()[0]) for run in runs)
        found = fit("wsum", runs, qrels)
        assert found.fitted >= single  # a weight of 1 for one run is among what is tried, but for its ties
        assert np.nanmean(found.held_out) <= found.fitted
        assert {len(fold.chosen.settings) > 0 for fold in found.folds} == {True}


def test_every_method_beats_the_worst_run_on_real_data(shared):
    folder = shared / "data" / "trec-dl"
    runs = [
        read_run(folder / "runs" / "dl19" / f"{name}.trec.gz")
        for name in ("BM25", "D_BERT_KD_TASB", "OPEN_AI_ADA2")
    ]
    qrels = read_qrels(folder / "qrels" / "qrels.dl19-passage.txt")
    worst = min(float(score_run(qrels, run, "nDCG@10").mean_values()[0]) for run in runs)
    for name in METHODS:
        assert float(score_run(qrels, fuse(runs, name), "nDCG@10").mean_values()[0]) > worst, name
