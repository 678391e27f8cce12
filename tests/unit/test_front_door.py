"""Messages to people who come from BEIR and MTEB."""

import ast
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import weir
from weir.api.result_set import ResultSet
from weir.cli.main import main
from weir.errors import BadValue, RankingWarning, WeirError
from weir.experiment.beside import BESIDE_SCORES, BesideScore

SRC = Path(weir.__file__).parent


@pytest.mark.parametrize("name", ["hole@10", "Hole@10", "hole_at_10"])
def test_holes_by_beirs_name_are_said_to_be_counted_otherwise(name):
    judged = {"q1": {"d1": 1}, "q2": {"d2": 1}}
    scores = weir.evaluate(judged, {"q1": {"d2": 2.0}, "q2": {"d2": 1.0}}, [name])
    assert scores.means()["Hole@10"] == pytest.approx(1 / 20)  # BEIR counts none: d2 is judged for a query
    assert any(note.text.startswith("Hole@10 counts") and "BEIR's" in note.text for note in scores.notes())


@pytest.mark.parametrize(
    ("value", "advice"),
    [("0.5", "; float('0.5') is one"), ("much", ""), ("nan", ""), (b"1", "; float(b'1')")],
)
@pytest.mark.parametrize("score", [True, False])
def test_numbers_in_text_are_refused_with_what_to_do(value, advice, score):
    judged, run = ({"q1": {"d1": 1}}, {"q1": {"d1": value}}) if score else ({"q1": {"d1": value}}, {})
    for made in (
        (lambda: weir.Run.of(run), lambda: weir.evaluate(judged, run))
        if score
        else (
            lambda: weir.Qrels.of(judged),
            lambda: weir.evaluate(judged, {"q1": {"d1": 1.0}}),
        )
    ):
        with pytest.raises(BadValue if not score else WeirError) as refused:
            made()
        assert ("float(" in str(refused.value)) == bool(advice)
        assert advice in str(refused.value)


KILLED = """
import os, signal, weir
def killed(queries, k):
    os.kill(os.getpid(), signal.SIGKILL)
weir.benchmark(["brook-news", "brook-facts"], [killed, "bm25"], ["nDCG@10"], out="results")
"""


def test_a_run_killed_before_its_first_result_is_told_by_all_that_read_results(tmp_path, capsys):
    paths = os.pathsep.join([str(SRC.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    ended = subprocess.run(
        [sys.executable, "-c", KILLED], cwd=tmp_path, env=os.environ | {"PYTHONPATH": paths}, check=False
    )
    assert ended.returncode == -signal.SIGKILL
    for command in ("results", "compare", "report", "verify"):
        assert main([command, str(tmp_path / "results")]) == 2
        told = capsys.readouterr().err
        assert "no finished result of weir run" in told
        assert "4 of 4 results asked for are missing: killed on brook-news:test" in told
        assert "the same weir run makes what is missing" in told


def test_what_failed_before_the_first_result_is_not_asked_for(tmp_path):
    def fails(queries, k):
        raise ValueError("no")

    with pytest.raises(WeirError, match="failed with ValueError"):
        weir.benchmark("brook-news", fails, ["nDCG@10"], out=tmp_path / "results")
    assert not (tmp_path / "results" / "grid.json").exists()
    weir.benchmark("brook-news", "bm25", ["nDCG@10"], out=tmp_path / "results")
    before = (tmp_path / "results" / "grid.json").read_bytes()
    with pytest.raises(WeirError, match="failed with ValueError"):
        weir.benchmark("brook-news", fails, ["nDCG@10"], out=tmp_path / "results")
    assert (tmp_path / "results" / "grid.json").read_bytes() == before


def test_a_gate_between_rankings_that_score_nothing_does_not_pass():
    judged = {f"q{n}": {f"d{n}": 1} for n in range(30)}
    strange = {f"q{n}": {f"D-{n}": 1.0} for n in range(30)}
    good = {f"q{n}": {f"d{n}": 1.0} for n in range(30)}
    gates = []
    for pair in ((strange, strange), (strange, good), (good, strange)):
        with pytest.warns(RankingWarning, match="no document that was returned is judged"):
            gates.append(weir.gate(judged, *pair, ["nDCG@10"]))
    both, up, down = gates
    assert both[0].verdict == "undecided"
    assert both[0].needed is None
    assert "both score 0 on every query" in str(both)
    assert (up[0].verdict, down[0].verdict) == ("pass", "fail")


def test_prose_has_one_spelling_of_cut_off():
    found = []
    for path in SRC.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                text = str(node.value.value)
                found += [f"{path}: {text[:60]}"] * bool(re.search(r"(?<![`\w.])cutoffs?\b(?!\s*[:=])", text))
    assert not found


def beside_scores(number):
    own = BesideScore("c", "nDCG@10", "mine", 0.5, "0.5000")
    theirs = [
        BesideScore(
            "c", "nDCG@10", f"model {n}", 1 - n / 100, f"{1 - n / 100:.4f}", "a file", reported_as="c"
        )
        for n in range(number)
    ]
    theirs[-1] = replace(theirs[-1], claimed_by=("mine",))
    return (own, *theirs)


@pytest.mark.parametrize("number", [1, 10, 11, 14, 15, 40])
def test_of_many_published_systems_the_first_and_the_claimed_are_shown_and_the_rest_counted(number):
    results = ResultSet(BESIDE_SCORES, beside_scores(number))
    rows = {options: results.tables("text", {"long": options})[0] for options in (False, True)}
    names = [row[0].text for row in rows[False].rows]
    assert len(rows[True].rows) == number + 1
    assert {"mine", "model 0", f"model {number - 1}"} <= set(names)
    hidden = number + 1 - len(names)
    assert hidden == (0 if number <= 14 else number - 11)
    assert any(note.startswith(f"{hidden} more published") for note in rows[False].notes) == bool(hidden)
    assert len(results.tables("latex")[0].rows) == number + 1


def test_tables_for_papers_say_what_an_effect_is():
    judged = {f"q{n}": {"a": 1} for n in range(12)}
    first = {q: {"a": 1.0, "b": float(n % 3)} for n, q in enumerate(judged)}
    second = {q: {"a": 1.0, "b": float(n % 2)} for n, q in enumerate(judged)}
    assert "Hedges' g: the mean difference over" in weir.compare(judged, first, second).to_latex()


def test_while_an_audit_runs_the_option_without_it_is_named(tmp_path, capsys):
    weir.benchmark("brook-news", "bm25", ["nDCG@10"], out=tmp_path / "results")
    capsys.readouterr()
    assert main(["report", str(tmp_path / "results"), "-o", str(tmp_path / "page.html")]) == 0
    assert "(--no-audit leaves it out)" in capsys.readouterr().err


def test_documents_that_are_no_candidates_are_told_wherever_a_ranking_is_scored(tmp_path):
    documents = {f"d{n}": f"text {n}" for n in range(6)}
    asked, judged = {"q1": "text 1", "q2": "text 2"}, {"q1": {"d1": 1}, "q2": {"d2": 1}}
    candidates = {"q1": ["d1", "d3"], "q2": ["d2", "d3"]}
    task = weir.Dataset.of(documents, asked, judged, "c", candidates=candidates)
    run = {"q1": {"d4": 3.0, "d1": 2.0}, "q2": {"d5": 3.0, "d2": 2.0, "d3": 1.0}}
    weir.Run.of(run).save(tmp_path / "r.trec")
    with pytest.warns(RankingWarning):
        made = weir.benchmark(task, f'run("{tmp_path / "r.trec"}")', "nDCG@10", out=tmp_path / "out")
    for shown in (weir.evaluate(task, run, "nDCG@10"), made, weir.results(tmp_path / "out")):
        [said] = [note.text for note in shown.notes() if "removed: 2 documents of 2 rankings" in note.text]
        assert "as MTEB does, has another number" in said


def test_what_shows_one_collection_names_the_systems_without_results_there(tmp_path):
    """The report's sections and the local page alike; where every system was asked nothing is said."""
    pytest.importorskip("starlette", reason="needs the `app` extra")
    from tests.unit.test_app_pages import client, looked, read

    out = tmp_path / "results"
    weir.benchmark(["brook-news", "brook-facts"], ["bm25", "rrf(bm25, rm3)"], ["nDCG@10"], out=out)
    made = weir.report(out, audit=False)
    assert {"funnel", "open"} <= {section.name for section in made.sections}
    assert "Without results" not in made.to_html()
    largest = made.study.largest
    [other] = {"brook-news", "brook-facts"} - {largest}
    weir.benchmark(other, ["rm3"], ["nDCG@10"], out=out)
    sections = {section.name: section for section in weir.report(out, audit=False).sections}
    said = f"Without results on {largest}: rm3."
    for name in ("cost", "open"):
        assert said in sections[name].notes
    page = client(out)
    assert said in looked(page, "c", largest)["sentences"]
    for names in (["questions"], ["questions", "fitness"]):
        assert read(page, "c", largest, *names)["without"] == [said]
        assert said in page.get(f"/c/{largest}/{'/'.join(names)}").text
        assert read(page, "c", other, *names)["without"] == []
