"""The names that other tools give measures: one canonical measure each, with the other tool's number."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import weir
from weir.cli import main
from weir.errors import BadValue, UnknownName
from weir.measures import AP, MEASURES, RR, SetR, nDCG, parse_measure
from weir.measures.aliases import CUT, VALUE, WHOLE, canonical

pytrec_eval = pytest.importorskip("pytrec_eval")

QRELS = {
    "q1": {"a": 2, "b": 0, "c": 1, "x": 1},
    "q2": {"a": 1, "d": 0, "e": 3},
    "q3": {"b": 1, "f": 0, "g": -1},
}
RUN = {
    "q1": {d: 9.0 - n for n, d in enumerate("bacdefx")},
    "q2": {d: 9.0 - n for n, d in enumerate("defa")},
    "q3": {d: 9.0 - n for n, d in enumerate("gfb")},
}
TREC = {
    "ndcg_cut_5": "nDCG@5", "ndcg": "nDCG", "map": "AP", "map_cut_5": "AP@5", "recip_rank": "RR", "P_5": "P@5",
    "recall_5": "R@5", "Rprec": "Rprec", "bpref": "bpref", "set_P": "SetP", "set_recall": "SetR", "set_F": "SetF",
    "set_map": "SetAP", "set_relative_P": "SetR_cap", "iprec_at_recall_0.20": "IPrec(recall=0.2)", "success_1": "Success@1",
    "num_rel": "NumRel", "num_ret": "NumRet", "num_rel_ret": "NumRelRet", "num_nonrel_judged_ret": "NumNonrelRet",
    "11pt_avg": "IAP", "Rndcg": "RnDCG", "binG": "binG", "G": "G", "relative_P_5": "R_cap@5", "infAP": "infAP",
    "ndcg_rel": "nDCG_rel", "utility": "Utility", "Rprec_mult_0.20": "Rprec(times=0.2)",
}  # fmt: skip


@pytest.mark.parametrize(("theirs", "ours"), TREC.items())
def test_trec_evals_names_give_its_numbers(theirs, ours):
    stem = theirs if theirs in pytrec_eval.supported_measures else theirs.rpartition("_")[0]
    asked = stem if stem == theirs else f"{stem}.{theirs.removeprefix(stem)[1:]}"
    found = pytrec_eval.RelevanceEvaluator(QRELS, {asked}).evaluate(RUN)
    scores = weir.evaluate(QRELS, RUN, theirs, "ties=trec9")
    assert scores.measures == (ours,)
    for query, value in zip(scores.queries, scores.of(theirs).tolist(), strict=True):
        assert found[query][theirs] == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize(
    ("text", "ours"),
    [
        ("MAP", "AP"), ("MRR", "RR"), ("Recall", "R"), ("Precision", "SetP"), ("hit_rate@5", "Success@5"),
        ("NDCG@10", "nDCG@10"), ("Recall@100", "R@100"), ("MRR@10", "RR@10"), ("r-precision", "Rprec"), ("f1", "SetF"),
        ("f1@10", "F@10"), ("ndcg_burges@10", "nDCG(gain='exp')@10"), ("rbp", "RBP"), ("map@100-l2", "AP(rel=2)@100"),
        ("ndcg_at_10", "nDCG@10"), ("hit_rate_at_10", "Success@10"), ("recall_cap_at_10", "R_cap@10"),
        ("cosine_ndcg@10", "nDCG@10"), ("dot-accuracy@1", "Success@1"), ("accuracy@1", "Success@1"),
        ("nDCG(dcg='exp-log2')@10", "nDCG(gain='exp')@10"), ("P(judged_only=True)@5", "condensed(P@5)"),
        ("IPrec@0.3", "IPrec(recall=0.3)"), ("MAP(rel=2)@10", "AP(rel=2)@10"), ("condensed(ndcg_cut_10)", "condensed(nDCG@10)"),
        ("HR@10", "Success@10"), ("hr_5", "Success@5"), ("hit_ratio@10", "Success@10"), ("P.10", "P@10"), ("P10", "P@10"), (" Bpref ", "bpref"),
    ],
)  # fmt: skip
def test_usual_names_are_read_to_one_canonical_name(text, ours):
    assert str(parse_measure(text)) == ours


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("ndgc@10", UnknownName, "did you mean nDCG@10?"),
        ("nCDG@10", UnknownName, "did you mean nDCG@10?"),
        ("precison@5", UnknownName, "did you mean P@5?"),
        ("recip_rnk", UnknownName, "did you mean RR?"),
        ("mapp", UnknownName, "did you mean AP?"),
        ("hit_rate", UnknownName, "did you mean Success@10?"),
        ("hits@10", BadValue, "NumRelRet"),
        ("nauc_ndcg_at_10_max", BadValue, "abstention"),
        ("cosine_map@100", BadValue, "whichever is less; AP@100 divides by all of them"),
        ("num_q", BadValue, "counts queries"),
        ("rbp@95", BadValue, "ranx gains by the grade itself; for binary judgments write RBP(p=0.95)"),
        ("rbp.95", BadValue, "a rank to cut at RBP@95"),
        ("rbp.80", BadValue, "write RBP(p=0.80), a rank to cut at RBP@80"),
        ("rbp.5", BadValue, "write RBP(p=0.5)"),
        ("bpref-l2", BadValue, "bpref(rel=2)"),
    ],
)
def test_what_is_no_name_or_another_number_is_refused_with_what_to_write(text, error, said):
    with pytest.raises(error) as found:
        parse_measure(text)
    assert said in str(found.value)


def test_the_tables_name_our_measures_and_our_names_fold_to_one_each():
    texts = (
        [t.format(5) for t in CUT.values()] + list(WHOLE.values()) + [t.format(0.5) for t in VALUE.values()]
    )
    for text in texts:
        assert str(parse_measure(text)) == text
    folded = [name.replace("_", "").lower() for name in MEASURES.names()]
    assert len(set(folded)) == len(folded)


@given(st.sampled_from(MEASURES.names()), st.integers(1, 10**9 - 1), st.data())
def test_a_name_in_any_case_and_with_any_sign_before_the_rank_is_one_measure(name, cut, data):
    cased = "".join(data.draw(st.sampled_from([c.lower(), c.upper()])) for c in name)
    sign = data.draw(st.sampled_from(["@", "_", "_at_"]))
    ours = {"Accuracy": f"Success@{cut}"}.get(
        name, f"{name}@{cut}"
    )  # sentence-transformers' where it is in lower case
    if name != "RBP":  # ranx's rbp.95
        assert canonical(f"{cased}{sign}{cut}", MEASURES.names()) == ours


def test_a_measure_is_a_value():
    assert repr(nDCG @ 10) == "nDCG@10"
    assert repr([nDCG(gain="exp") @ 10]) == "[nDCG(gain='exp')@10]"
    assert nDCG @ 10 == parse_measure("nDCG@10") == parse_measure("ndcg_cut_10")
    assert AP(rel=1) == AP
    assert AP(rel=2)(rel=1) == AP
    assert {RR @ 10: 1}[parse_measure("MRR@10")] == 1
    assert SetR != AP
    with pytest.raises(UnknownName, match="no setting of nDCG named 'gian'; did you mean gain"):
        nDCG(gian="exp")
    with pytest.raises(BadValue, match="cut-off is 0"):
        nDCG @ 0


PEERS = json.loads((Path(__file__).parents[1] / "golden" / "aliases.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("tool", "name"), [(tool, name) for tool, values in PEERS["values"].items() for name in values]
)
def test_names_of_other_tools_give_their_numbers(tool, name):
    """scripts/make_golden_aliases.py asked ranx, ir-measures and BEIR, which rounds means to five digits."""
    theirs = PEERS["values"][tool][name]
    scores = weir.evaluate(PEERS["qrels"], PEERS["run"], name)
    if tool == "beir":
        assert scores[name].mean == pytest.approx(theirs, abs=6e-6)
    else:
        assert scores[name].to_dict() == pytest.approx(theirs, abs=1e-9)


def test_the_command_line_and_experiment_files_read_them_too(tmp_path, capsys):
    weir.Qrels.of(QRELS).save(tmp_path / "qrels.json")
    weir.Run.of(RUN).save(tmp_path / "run.json")
    asked = ["-m", "ndcg_cut_10", "-m", "MAP", "-m", "mrr_at_10", "--json"]
    assert main(["eval", str(tmp_path / "qrels.json"), str(tmp_path / "run.json"), *asked]) == 0
    shown = [json.loads(line)["measure"] for line in capsys.readouterr().out.strip().split("\n")]
    assert shown == ["nDCG@10", "AP", "RR@10"]
    (tmp_path / "grid.toml").write_text(
        'datasets = ["brook-facts"]\nsystems = ["bm25"]\nmeasures = ["Recall@100", "map_cut_5"]\n'
    )
    rows = weir.Experiment.read(tmp_path / "grid.toml").execute(tmp_path / "results")
    assert [row.measure for row in rows][:2] == ["R@100", "AP@5"]


@pytest.mark.parametrize(
    ("asked", "means"),
    [
        ("Recall@10", "R@10"),
        ("MAP", "AP"),
        ("precision@5", "P@5"),
        ("recip_rank", "RR"),
        ("ndcg_cut_10", "nDCG@10"),
    ],
)
def test_other_names_of_measures_are_understood(asked, means):
    assert str(weir.parse_measure(asked)) == means


def test_a_measure_comes_back_under_the_name_that_was_asked_for():
    scores = weir.evaluate({"q": {"a": 1}}, {"q": {"a": 1.0}}, ["AP(rel=1)"])
    assert scores["AP(rel=1)"].mean == scores["AP"].mean == 1.0
