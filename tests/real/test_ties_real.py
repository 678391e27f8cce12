"""Orders of ties on stored TREC runs: what half precision did to a dense retriever's scores, and to its figures."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from weir.core.judged import Judged
from weir.core.run import Run
from weir.files.runs import join_run_file, read_qrels, read_run
from weir.measures import measures_of, score_run, scores_of
from weir.measures.evaluate import Conventions

pytestmark = pytest.mark.real

TREC = "data/trec-dl"
WANTED = measures_of(
    ["nDCG@10", "nDCG", "AP(rel=2)", "RR(rel=2)@10", "R(rel=2)@100", "P@10", "bpref", "infAP", "ERR@20", "Q", "RBP",
     "Success@1", "Rprec", "Judged@10", "condensed(nDCG@10)", "SetF@10", "IPrec(recall=0.3)"]
)  # fmt: skip


def test_half_of_the_queries_of_a_run_in_half_precision_hang_on_its_ties(shared):
    judgments = read_qrels(shared / TREC / "qrels" / "qrels.dl19-passage.txt")
    judged = join_run_file(shared / TREC / "runs" / "dl19" / "REP_LLAMA.trec.gz", judgments)
    found = scores_of(judged, measures_of("nDCG@10"))
    assert found.tied > 0.98
    assert found.movable().tolist() == [29]
    assert found.tie_bounds()[0] == pytest.approx([0.734013, 0.750503], abs=1e-6)


@pytest.mark.parametrize("year", ["dl19", "dl20"])
def test_means_lie_between_worst_and_best_on_every_run(shared, year):
    judgments = read_qrels(shared / TREC / "qrels" / f"qrels.{year}-passage.txt")
    files = sorted((shared / TREC / "runs" / year).glob("*.trec.gz"))
    assert files
    moved = 0
    for file in files:
        judged = join_run_file(file, judgments)
        expected = scores_of(judged, WANTED, Conventions("expected"))
        usual = scores_of(judged, WANTED)
        assert (expected.low <= expected.values + 1e-12).all()
        assert (expected.values <= expected.high + 1e-12).all()
        still = usual.low == usual.high
        assert np.abs(usual.values[still] - expected.values[still]).max() <= 1e-12
        moved += int(usual.movable().sum())
    assert moved > 0


def test_the_mean_over_orders_is_that_of_many_shuffles(shared):
    judgments = read_qrels(shared / TREC / "qrels" / "qrels.dl19-passage.txt")
    run = read_run(shared / TREC / "runs" / "dl19" / "REP_LLAMA.trec.gz")
    expected = score_run(judgments, run, WANTED, Conventions("expected"))
    rng, turns = np.random.default_rng(11), 100
    query = run.query_of_row()
    shuffles = np.empty((turns, *expected.values.shape))
    for turn in range(turns):
        order = np.lexsort((rng.random(len(run.doc)), -run.score, query))
        shuffled: Run = replace(run, doc=run.doc[order])
        judged = Judged.of(shuffled, judgments)
        shuffles[turn] = [measure.per_query(judged) for measure in WANTED]
    assert (shuffles.min(axis=0) >= expected.low - 1e-12).all()
    assert (shuffles.max(axis=0) <= expected.high + 1e-12).all()
    error = shuffles.mean(axis=2).std(axis=0) / np.sqrt(turns)
    away = np.abs(shuffles.mean(axis=(0, 2)) - expected.mean_values())
    assert (away <= 4 * error + 1e-12).all(), dict(zip(map(str, WANTED), away / error, strict=True))
