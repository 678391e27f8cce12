"""Paired sets: p-MRR by FollowIR's definition, the worst of a group by InstructIR's, and spread within groups."""

from __future__ import annotations

import json

import numpy as np
import pytest

import weir
from weir.cli import main
from weir.core.tables import table_of
from weir.errors import BadValue

QRELS = {
    "1-og": {"a": 1, "b": 1, "c": 0},
    "1-changed": {"a": 1, "b": 0, "c": 0},
    "2-og": {"a": 1, "b": 1},
    "2-changed": {"a": 0},
    "3-og": {"a": 1},
    "3-changed": {"a": 1},
    "alone-og": {"a": 1},
}


def ranking(*documents: str) -> dict[str, float]:
    return {d: -float(n) for n, d in enumerate(documents)}


def test_p_mrr_by_hand():
    """Documents that stop being relevant: b of 1 falls from 1 to 4; of 2 a rises from 4 to 1 and b, from 2, is gone."""
    run = {
        "1-og": ranking("b", "a", "c", "d"),
        "1-changed": ranking("a", "c", "d", "b"),
        "2-og": ranking("c", "b", "d", "a"),
        "2-changed": ranking("a", "c", "d"),
        "3-og": ranking("a"),
        "3-changed": ranking("b", "a"),
    }
    found = weir.p_mrr(QRELS, run)
    assert found["p-MRR"].to_dict() == {"1": 0.75, "2": (-0.75 + 0.5) / 2}
    assert found.means() == {"p-MRR": (0.75 - 0.125) / 2}
    before, after = ({q: r for q, r in run.items() if q.endswith(end)} for end in ("-og", "-changed"))
    assert weir.p_mrr(QRELS, before, after).to_dict() == found.to_dict()
    same = {q: run[q.replace("changed", "og")] for q in run}
    assert weir.p_mrr(QRELS, same).means() == {"p-MRR": 0.0}
    with pytest.raises(BadValue, match="no pair of queries ending in '-old' and '-new'"):
        weir.p_mrr(QRELS, run, signs=("-old", "-new"))


@pytest.mark.parametrize(
    ("original", "changed", "value"), [(4, 4, 0.0), (4, 1, -0.75), (1, 4, 0.75), (1, 2, 0.5)]
)
def test_p_mrr_of_one_document_is_by_reciprocal_ranks(original, changed, value):
    """FollowIR: MRR_og / MRR_new - 1 where R_og > R_new, else 1 - MRR_new / MRR_og."""
    others = list("wxyz")

    def placed(rank):
        return ranking(*others[: rank - 1], "a", *others[rank - 1 :])

    run = {"1-og": placed(original), "1-changed": placed(changed)}
    assert weir.p_mrr({"1-og": {"a": 1}, "1-changed": {"a": 0}}, run).means()["p-MRR"] == value
    first, second = 1 / original, 1 / changed
    assert value == (first / second - 1 if original > changed else 1 - second / first)


def test_worst_best_and_spread_within_groups():
    qrels = {q: {"a": 1} for q in ("7_1", "7_2", "7_3", "8_1", "8_2", "9")}
    places = {"7_1": 1, "7_2": 2, "7_3": 4, "8_1": 1, "8_2": 1, "9": 3}
    run = {q: ranking(*"wxyz"[: p - 1], "a") for q, p in places.items()}
    scores = weir.evaluate(qrels, run, ["RR", "nDCG@10"])
    found = weir.within_groups(scores, "prefix:_")
    rr = found["RR"]
    assert (rr.groups, rr.queries) == (2, 5)
    assert rr.mean == ((1 + 0.5 + 0.25) / 3 + 1) / 2
    assert (rr.worst, rr.best, rr.spread) == ((0.25 + 1) / 2, 1.0, 0.375)
    assert np.isnan(rr.worst_interval).all()  # of two groups
    assert found["nDCG@10"].worst == pytest.approx((1 / np.log2(5) + 1) / 2, rel=1e-15)
    assert "0.6250 [-]" in repr(found)
    with pytest.raises(BadValue, match="RR has no value in any group"):
        weir.within_groups(weir.evaluate(qrels, {"9": run["9"]}, "RR", "missing=answered-only"), "prefix:_")


def test_the_command_line_shows_both(tmp_path, capsys):
    weir.Qrels.of(QRELS).save(tmp_path / "qrels.tsv")
    run = {q: ranking("b", "a") if q.endswith("og") else ranking("a", "b") for q in QRELS}
    weir.Run.of(run).save(tmp_path / "run.trec")
    files = [str(tmp_path / "qrels.tsv"), str(tmp_path / "run.trec")]
    assert main(["eval", *files, "-m", "RR", "--p-mrr", "-og:-changed", "--json"]) == 0
    rows = {r["measure"]: r for r in map(json.loads, capsys.readouterr().out.splitlines())}
    assert rows["p-MRR"]["mean"] == weir.p_mrr(QRELS, run).means()["p-MRR"]
    assert rows["p-MRR"]["queries"] == 2
    assert main(["eval", *files, "-m", "RR", "--by", "stem:-", "--within", "--json"]) == 0
    within = json.loads(capsys.readouterr().out)
    assert (within["measure"], within["groups"], within["system"]) == ("RR", 4, "run")
    assert main(["eval", *files, "-m", "RR", "--by", "stem:-", "--within"]) == 0
    assert "measure  groups  queries" in capsys.readouterr().out
    assert main(["eval", *files, "--by", "stem:-", "--within", "--explain"]) == 0
    assert "interval of a mean: percentiles" in capsys.readouterr().out
    for wrong, said in (
        (["--within"], "--within needs groups"),
        (["--by", "stem:-", "--within", "--long"], "--within has lines of its own; leave out --long"),
        (["--per-query", "--by", "stem:-", "--explain"], "leave out --by and --explain"),
        (["--scorer", "birco", "--long"], "--scorer has lines of its own"),
        (["--p-mrr", "og"], "expected how both identifiers end"),
    ):
        assert main(["eval", *files, *wrong]) == 2
        assert said in capsys.readouterr().err


def test_a_table_that_lacks_intervals_says_why_once():
    for cells in (["a", "0.5000 [-]"], ["a", "[-]"]):
        [note] = table_of([["system", "mean"], cells]).notes
        assert note.startswith("[-]: no interval")
        assert table_of([["system", "mean"], cells], notes=["no interval: too few"]).notes == (
            "no interval: too few",
        )
    assert table_of([["system", "mean"], ["a", "0.5000 [0.4000, 0.6000]"]]).notes == ()
