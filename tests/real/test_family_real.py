"""The family of measures on stored runs: trec_eval to 1e-12 and as printed, and plain loops where it has none."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pytrec_eval")
import pytrec_eval
from tests import certified, reference
from tests.conftest import SHARED

from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.files.runs import read_qrels, read_run
from weir.measures import parse_measure, score_run

pytestmark = pytest.mark.real
GROUPS = {"TREC DL19", "TREC DL20", "TREC DL19, official", "trec_eval's tests", "Vaswani"}
ALL = certified.pairs(SHARED) if (SHARED / "data").is_dir() else []
PAIRS = [pair for pair in ALL if pair.group in GROUPS]
TESTS = SHARED / "data" / "trec_eval-tests"


def test_the_runs_are_there(shared: Path):
    assert {pair.group for pair in PAIRS} == GROUPS
    assert len(PAIRS) > 40


@pytest.mark.parametrize("pair", PAIRS, ids=lambda p: f"{p.group}-{p.run.name}-{p.qrels and p.qrels.name}")
def test_every_query_of_every_measure_of_trec_eval(shared: Path, pair: certified.Pair):
    found = certified.check(pair, certified.FAMILY)
    assert {c.measure for c in found} == set(certified.FAMILY)
    worst = max(found, key=lambda c: c.difference)
    assert worst.queries > 0
    assert worst.difference <= 1e-12, worst


@pytest.mark.parametrize("pair", PAIRS[::9], ids=lambda p: p.run.name)
def test_the_number_of_relevant_documents(shared: Path, pair: certified.Pair):
    run, judged = certified.plain_run(pair.run), certified.plain_qrels(pair.qrels)
    theirs = pytrec_eval.RelevanceEvaluator(judged, {"num_rel"}).evaluate(run)
    scores = score_run(Qrels.of(judged), Run.of(run), ["NumRel"])
    ours = dict(zip(scores.queries.tolist(), scores.values[0].tolist(), strict=True))
    assert {q: ours[q] for q in theirs} == {q: row["num_rel"] for q, row in theirs.items()}
    assert len(theirs) > 0


LOOPED = (
    *("ERR@10", "ERR@20", "ERR(max_grade=5)", "nERR@10", "nERR@20", "RBP", "RBP(p=0.95)", "RBP(rel=2)@20"),
    *("RBP(gain='scaled', p=0.9)", "RBP_residual", "RBP_residual(p=0.95)@20", "NCG@10", "NCG@1000"),
    *("NCG(gain='exp')@100", "Q", "Q@10", "Q(beta=10.0, gain='exp')", "F@10", "F(beta=2.0, rel=2)@100"),
    *("NumRel(rel=2)", "condensed(ERR@10)", "condensed(Q@20)", "condensed(RBP)", "condensed(NCG@20)"),
)
LISTED = ["BM25.trec.gz", "ICT-BERT2.trec.gz", "results.test", "terrier-DPH.txt.gz"]


@pytest.mark.parametrize("name", LISTED)
def test_what_trec_eval_has_not_against_plain_loops(shared: Path, name: str):
    pair = next(pair for pair in PAIRS if pair.run.name == name)
    run, judged = certified.plain_run(pair.run), certified.plain_qrels(pair.qrels)
    some = dict(sorted(judged.items())[:: max(1, len(judged) // 3)])
    scores = score_run(Qrels.of(some), read_run(pair.run), LOOPED)
    assert scores.answered.sum() >= 1
    for measure in scores.measures:
        expected = reference.score_all(measure, run, some)
        for query, value in zip(scores.queries, scores.of(measure).tolist(), strict=True):
            assert value == pytest.approx(expected[query], rel=0, abs=1e-12), (measure, query)


PRINTED = {
    "11pt_avg": "IAP",
    "Rprec": "Rprec",
    "bpref": "bpref",
    "infAP": "infAP",
    "num_rel": "NumRel",
    "num_rel_ret": "NumRelRet",
    "num_ret": "NumRet",
    "rbp": "RBP(gain='scaled', p=0.9)",
    "rbp_resid": "RBP_residual(p=0.9)",
    "set_F": "SetF",
    "set_P": "SetP",
    "set_map": "SetAP",
    "set_recall": "SetR",
}
GRADED = {"rbp", "rbp_resid", "num_ret"}  # trec_eval's option -l changes nothing for them


def weir_name(name: str, version: str, rel: int) -> str | None:
    """What Weir calls a measure that trec_eval prints, or None."""
    stem, _, point = name.rpartition("_")
    settings = [f"rel={rel}"] if rel > 1 and name not in GRADED else []
    if version == "v10.0" and (stem == "iprec_at_recall" or name == "11pt_avg"):
        settings.append("rounding='nearest'")
    if stem == "relative_P":
        return f"R_cap({', '.join(settings)})@{point}" if settings else f"R_cap@{point}"
    if stem == "iprec_at_recall":
        return str(parse_measure(f"IPrec({', '.join([f'recall={float(point)}', *settings])})"))
    if name not in PRINTED:
        return None
    return str(parse_measure(PRINTED[name] + (f"({', '.join(settings)})" if settings else "")))


FILES = [
    ("qrels.test", "results.test", "out.test.a", {}),
    ("qrels.test", "results.test", "out.test.aq", {}),
    ("qrels.test", "results.trunc", "out.test.aqc", {}),
    ("qrels.test", "results.trunc", "out.test.aqcM", {"first": 100}),
    ("qrels.rel_level", "results.test", "out.test.aql", {"rel": 2}),
    ("qrels.test", "results.test", "out.test.meas_params", {}),
]


@pytest.mark.parametrize("version", ["v9.0.8", "v10.0"])
@pytest.mark.parametrize(("judged", "run", "expected", "options"), FILES, ids=str)
def test_what_trec_eval_prints_for_its_own_files(shared: Path, version, judged, run, expected, options):
    folder = TESTS / version
    lines = (folder / expected).read_text(encoding="utf-8").split("\n")
    rows = [line.split() for line in lines if len(line.split()) == 3]
    named = [(query, weir_name(name, version, options.get("rel", 1)), value) for name, query, value in rows]
    found = [(query, name, float(value)) for query, name, value in named if name]
    assert len(found) >= 20 or expected == "out.test.meas_params"
    ours = read_run(folder / run, ties="trec9" if version == "v9.0.8" else "trec")
    ours = ours.top(options["first"]) if "first" in options else ours
    scores = score_run(read_qrels(folder / judged), ours, {name for _, name, _ in found})
    for query, name, value in found:
        row = scores.of(name)
        at = int(scores.queries.codes([query])[0])
        if (
            name.startswith("RBP_residual")
            and not scores.answered.all()
            and not (at >= 0 and scores.answered[at])
        ):
            continue  # for trec_eval nothing is unknown of a query that was not answered
        mean = row.sum() if name.startswith("Num") else row.mean()  # it prints totals of counts
        assert (mean if query == "all" else row[at]) == pytest.approx(value, abs=0.5e-4 + 1e-9), (query, name)
