"""BIRCO's rank2metric, figure by figure: ../shared/data/birco/expected_metrics.json, recomputed by its NOTES.md."""

from __future__ import annotations

import json

import pytest

from weir.cli import main
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.errors import BadValue
from weir.stats.birco import BIRCO_MEASURES, birco_scores

pytestmark = pytest.mark.real


@pytest.mark.parametrize("name", ["relic", "wtb"])
def test_every_figure_of_every_rank_file_is_the_official_one(shared, name):
    data = shared / "data" / "birco"
    expected = json.loads((data / "expected_metrics.json").read_text())[name]
    qrels = Qrels.load(data / "beir" / name / "qrels" / "test.tsv")
    assert len(expected) >= 30
    for system, figures in expected.items():
        ranking = json.loads((data / "ranks" / name / f"{system}.json").read_text())
        found = {one.measure: one for one in birco_scores(qrels, Run.of(ranking, system))}
        for measure, figure in figures.items():
            one = found[measure]
            assert (one.queries, one.mean) == (figure["n"], pytest.approx(figure["mean"], abs=1e-15)), (
                system,
                measure,
            )
            assert one.printed == pytest.approx(figure["boot_mean"], abs=1e-15), (system, measure)
            assert one.deviation == pytest.approx(figure["boot_std"], abs=1e-15), (system, measure)


def test_the_traps_of_the_official_scorer():
    qrels = Qrels.of(
        {"a": {"x": 2, "y": 1, "z": 0}, "b": {"x": 0.5, "y": 0.25, "z": 0}, "c": {"x": 1, "y": 1, "z": 0}}
    )
    run = Run.of({"a": ["y", "x", "z"], "b": ["y", "x", "z"], "c": ["z", "x", "y"]}, "mine")
    found = {one.measure: one for one in birco_scores(qrels, run)}
    assert found.keys() == BIRCO_MEASURES.keys()
    assert (found["R@5"].queries, found["MAP"].queries, found["nDCG@10"].queries) == (2, 2, 3)
    assert found["MRR@10"].mean == pytest.approx(
        (1 / 2 + 1 / 2 + 1 / 2) / 3
    )  # the best grade alone counts, not 1 or more
    assert found["MAP"].mean == pytest.approx((1 + (1 / 2 + 2 / 3) / 2) / 2)
    for bad, said in (
        ({"a": ["x", "y"]}, "leaves out 'z'"),
        ({"a": ["x", "y", "z", "w"]}, "holds 'w', which is no candidate"),
        ({}, "no ranking of query 'a'"),
    ):
        with pytest.raises(BadValue, match=said):
            birco_scores(qrels, Run.of({"b": list("xyz"), "c": list("xyz")} | bad))


def test_the_command_prints_them_beside_the_plain_means(shared, capsys):
    data = shared / "data" / "birco"
    files = [str(data / part) for part in ("beir/relic/qrels/test.tsv", "ranks/relic/GPT-4_reason_O.json")]
    assert main(["eval", *files, "--scorer", "birco"]) == 0
    assert "50.975 ± 4.998" in capsys.readouterr().out
    assert main(["eval", *files, "--scorer", "birco", "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[0])["printed"] == 0.50975
    assert main(["eval", *files, "--scorer", "birco", "--latex"]) == 2
