"""ranx and ir-measures: their objects here and Weir's there give one score."""

from __future__ import annotations

import pytest

from tests.bridges.conftest import foreign

ranx, ir_measures = foreign("ranx"), foreign("ir_measures")

import weir  # noqa: E402 - behind the skip
from weir.plugins.bridges import to_ir_measures, to_ranx  # noqa: E402 - behind the skip

pytestmark = pytest.mark.filterwarnings("default")  # what these packages deprecate is theirs to mend
MEASURES = ["nDCG@10", "AP", "R@100", "RR", "condensed(nDCG@10)", "Rprec", "R", "AP(rel=2)", "bpref"]
MEASURES += ["nDCG(gain='exp')@10", "nDCG(gain='1=3,2=4')@10", "SetF(beta=2.0)", "IPrec(recall=0.2)"]


@pytest.fixture(scope="module")
def run(brook):
    return weir.BM25().index(brook.corpus).search(brook.queries, 1000)


def test_what_ranx_is_given_scores_as_here(brook, run):
    qrels, theirs = to_ranx(brook.qrels), to_ranx(run)
    assert theirs.name == "bm25"
    expected = weir.evaluate(brook.qrels, run, ["nDCG@10", "AP"]).means()
    found = ranx.evaluate(qrels, theirs, ["ndcg@10", "map"])
    assert list(found.values()) == pytest.approx(list(expected.values()), abs=1e-9)


def test_what_ranx_holds_is_read(brook, run):
    qrels, theirs = to_ranx(brook.qrels), to_ranx(run)
    assert weir.evaluate(qrels, theirs).means() == weir.evaluate(brook.qrels, run).means()
    assert weir.fuse([theirs, run]).to_dict() == weir.fuse([run, run]).to_dict()


def test_what_ir_measures_is_given_scores_as_here(brook, run):
    theirs = {name: to_ir_measures(name) for name in MEASURES}
    assert str(theirs["condensed(nDCG@10)"]) == "nDCG(judged_only=True)@10"
    # One at a time: asked together, ir-measures 0.4.3 may score a plain nDCG by another's gains, as its sets are ordered.
    pair = to_ir_measures(brook.qrels), to_ir_measures(run)
    found = {measure: ir_measures.calc_aggregate([measure], *pair)[measure] for measure in theirs.values()}
    expected = weir.evaluate(brook.qrels, run, MEASURES).means()
    assert weir.evaluate(brook.qrels, run, theirs["nDCG(gain='1=3,2=4')@10"]).measures == (
        "nDCG(gain='1=3,2=4')@10",
    )
    assert [found[theirs[name]] for name in MEASURES] == pytest.approx(list(expected.values()), abs=1e-5)


def test_what_ir_measures_holds_is_read(brook, run):
    qrels, theirs = to_ir_measures(brook.qrels), to_ir_measures(run)
    expected = weir.evaluate(brook.qrels, run, ["nDCG@10", "AP(rel=2)"])
    measures = [ir_measures.nDCG @ 10, ir_measures.AP(rel=2)]
    assert weir.evaluate(iter(qrels), iter(theirs), measures).to_dict() == expected.to_dict()
    assert weir.evaluate(qrels, theirs, ir_measures.nDCG @ 10).means() == {
        "nDCG@10": expected["nDCG@10"].mean
    }
    with pytest.raises(weir.WeirError, match=r"ranks document .* twice"):
        weir.evaluate(qrels, theirs + theirs[:1])
    with pytest.raises(weir.WeirError, match="none of them is the score"):
        weir.evaluate(theirs, qrels)


@pytest.mark.parametrize("give", [to_ranx, to_ir_measures])
def test_what_they_cannot_hold_is_refused(give):
    with pytest.raises(weir.WeirError, match="grades with fractions"):
        give(weir.Qrels.of({"q": {"d": 0.5}}))
    with pytest.raises(weir.WeirError, match=r"found a dict; expected a weir.Run"):
        give({})


def test_a_query_without_a_ranking_and_a_measure_of_ours_alone_are_refused():
    with pytest.raises(weir.WeirError, match="query 'b' has no ranking"):
        to_ranx(weir.Run.of({"a": {"x": 1.0}, "b": {}}))
    for ours in ("alpha_nDCG@10", "nDCG(gain='0.5=2')@10", "nDCG(base=10.0)@10"):
        with pytest.raises(weir.WeirError, match="ir-measures has no such measure"):
            to_ir_measures(ours)
