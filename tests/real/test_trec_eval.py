"""Every stored run, every measure that trec_eval has, every query: the same number to 1e-12."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pytrec_eval")
from tests import certified
from tests.conftest import SHARED
from tests.peers import by_trec_eval, differences

from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.files.runs import read_qrels, read_run
from weir.measures import score_run

pytestmark = pytest.mark.real
PAIRS = certified.pairs(SHARED) if (SHARED / "data").is_dir() else []
TESTS = SHARED / "data" / "trec_eval-tests"


def test_the_runs_are_there(shared: Path):
    assert len(PAIRS) > 60
    assert all(pair.run.is_file() and (pair.qrels is None or pair.qrels.is_file()) for pair in PAIRS)


@pytest.mark.parametrize("pair", PAIRS, ids=lambda p: f"{p.group}-{p.run.name}-{p.qrels and p.qrels.name}")
def test_every_query_of_every_measure(shared: Path, pair: certified.Pair):
    found = certified.check(pair)
    left_out = set(certified.MEASURES) - {c.measure for c in found}
    assert left_out == ({"nDCG(gain='exp')@10"} if pair.run.name == "compat.run" else set())
    assert all(c.queries > 0 for c in found)
    worst = max(found, key=lambda c: c.difference)
    assert worst.difference <= 1e-12, worst


def test_scores_that_only_floats_confuse(shared: Path):
    """No stored run has such ties, so one is squeezed until a third of its scores are equal as floats."""
    path = next(pair.run for pair in PAIRS if pair.run.name == "BM25.trec.gz")
    run = {q: {d: 1 + s * 1e-7 for d, s in row.items()} for q, row in certified.plain_run(path).items()}
    judged = certified.plain_qrels(next(pair.qrels for pair in PAIRS if pair.run == path))
    theirs = by_trec_eval(judged, run, certified.MEASURES)
    scores = score_run(Qrels.of(judged), Run.of(run, ties="trec9"), certified.MEASURES)
    assert scores.tied > 0.3
    for measure in certified.MEASURES:
        ours = dict(zip(scores.queries.tolist(), scores.of(measure).tolist(), strict=True))
        assert differences(ours, theirs[measure])[1] <= 1e-12, measure
    plain = score_run(Qrels.of(judged), Run.of(run), ["AP"])
    assert plain.tied < 0.3
    assert plain.mean_values()[0] != scores.mean_values()[list(scores.measures).index("AP")]


# Expected files of trec_eval's own test suite: judgments, run, options, expected output.
PRINTED = [
    ("qrels.test", "results.test", "out.test", {}),
    ("qrels.test", "results.test", "out.test.a", {}),
    ("qrels.test", "results.test", "out.test.aq", {}),
    ("qrels.test", "results.trunc", "out.test.aqc", {}),
    ("qrels.test", "results.trunc", "out.test.aqcM", {"first": 100}),
    ("qrels.rel_level", "results.test", "out.test.aql", {"rel": 2}),
    ("qrels.test", "results.test", "out.test.meas_params", {}),
]


@pytest.mark.parametrize("version", ["v9.0.8", "v10.0"])
@pytest.mark.parametrize(("judged", "run", "expected", "options"), PRINTED, ids=str)
def test_what_trec_eval_prints_for_its_own_files(shared: Path, version, judged, run, expected, options):
    _compare(TESTS / version, judged, run, expected, options)


def test_what_trec_eval_10_prints_for_files_with_comments(shared: Path):
    _compare(TESTS / "v10.0", "qrels.comment.test", "results.comment.test", "out.comment.test", {})


def _compare(folder: Path, judged: str, run: str, expected: str, options: dict[str, int]) -> None:
    ours = read_run(folder / run, ties="trec9" if folder.name == "v9.0.8" else "trec")
    ours = ours.top(options["first"]) if "first" in options else ours
    rows = list(certified.printed(folder / expected, options.get("rel", 1)))
    scores = score_run(read_qrels(folder / judged), ours, {name for _, name, _ in rows})
    means = dict(zip(scores.measures, scores.mean_values().tolist(), strict=True))
    assert len(rows) >= 10
    for query, measure, value in rows:
        code = int(scores.queries.codes([query])[0])
        mine = means[measure] if query == "all" else scores.of(measure)[code]
        assert code >= 0 or query == "all"
        assert mine == pytest.approx(value, abs=0.5e-4 + 1e-9), (query, measure)


OFFICIAL = ["ICT-BERT2", "ICT-CKNRM_B", "ICT-CKNRM_B50"]


@pytest.mark.parametrize("ties", ["trec", "trec9"])
@pytest.mark.parametrize("run", OFFICIAL)
def test_the_official_scores_of_trec(shared: Path, run: str, ties):
    folder = shared / "data" / "trec-dl"
    qrels = read_qrels(folder / "qrels" / "qrels.dl19-passage.txt")
    made = read_run(folder / "runs-official-dl19" / f"{run}.trec.gz", ties)
    expected = certified.official(folder / "official-scores" / "dl19.ndcg_cut10.per-topic.csv", run)
    scores = score_run(qrels, made, ["nDCG@10"])
    assert set(expected) == set(scores.queries)
    for query, value in zip(scores.queries, scores.values[0].tolist(), strict=True):
        assert value == pytest.approx(expected[query], abs=0.5e-4 + 1e-9), query
    rows = list(certified.summaries(folder / "official-scores" / "nist.dl19.csv", run))
    assert len(rows) >= 20
    summary = score_run(qrels, made, {measure for measure, _ in rows})
    means = dict(zip(summary.measures, summary.mean_values().tolist(), strict=True))
    for measure, value in rows:
        assert means[measure] == pytest.approx(value, abs=0.5e-4 + 1e-9), measure


def test_the_page_of_certificates_is_about_these_runs(shared: Path):
    page = (Path(__file__).resolve().parents[2] / "docs" / "certificates.md").read_text(encoding="utf-8")
    assert all(f"| {measure} |" in page for measure in certified.MEASURES + certified.FAMILY)
    assert f"| AP | pytrec_eval | {len(PAIRS)} |" in page
