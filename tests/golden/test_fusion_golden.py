"""Fusions equal those of ranx 0.3.21, where its own do not hang on chance (docs/fusion.md lists where they do)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from weir.api.fusing import fuse
from weir.core.run import Run

GOLDEN = json.loads((Path(__file__).parent / "fusion" / "ranx.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("text", GOLDEN["fused"])
def test_fused_scores_are_those_of_ranx(text):
    found, expected = fuse(GOLDEN["runs"], text).to_dict(), GOLDEN["fused"][text]
    assert found.keys() == expected.keys()
    for query, ranking in expected.items():
        assert found[query].keys() == ranking.keys()
        for document, score in ranking.items():
            assert found[query][document] == pytest.approx(score, rel=1e-12, abs=1e-12)


def test_condorcet_orders_as_ranx_where_majorities_agree():
    made = GOLDEN["condorcet"]
    assert list(fuse(made["runs"], "condorcet").to_dict()["q"]) == made["order"]


@pytest.mark.real
@pytest.mark.parametrize("case", sorted(GOLDEN["real"]))
def test_fusions_of_real_runs_score_as_those_of_ranx(shared, case):
    from weir.files.runs import read_qrels, read_run
    from weir.measures import score_run

    golden, folder = GOLDEN["real"][case], shared / "data" / "trec-dl"
    runs: list[Run] = [read_run(folder / "runs" / "dl19" / f"{name}.trec.gz") for name in golden["runs"]]
    qrels = read_qrels(folder / "qrels" / "qrels.dl19-passage.txt")
    digits, different = golden["digits"], {}
    for text, expected in golden["nDCG@10"].items():
        run = fuse(runs, text)
        if digits is not None:  # ranx adds in the order of the runs, Weir the smallest first
            rounded = {q: {d: round(s, digits) for d, s in row.items()} for q, row in run.to_dict().items()}
            run = Run.of(rounded)
        difference = float(score_run(qrels, run, "nDCG@10").mean_values()[0]) - expected
        if abs(difference) > 1e-12:
            different[text] = difference
    assert different == {}
