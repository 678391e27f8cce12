"""What a notebook shows, in a real kernel: progress, and results as tables."""

from __future__ import annotations

import copy
import pickle
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import weir
from tests.shown import drawings
from tests.unit.brooklet import write_collection
from weir.api import progress
from weir.api.charts import system_numbers
from weir.api.comparison_tables import COMPARISONS
from weir.core.colours import LIGHT
from weir.core.strings import Ids
from weir.core.tables import sentences, table_of
from weir.stats.compare import compared, table

SOURCE = Path(weir.__file__).parent
nbformat = pytest.importorskip("nbformat", reason="needs the `slow` extra (nbclient)")
nbclient = pytest.importorskip("nbclient", reason="needs the `slow` extra (nbclient)")


@pytest.fixture(scope="module")
def outputs(tmp_path_factory) -> list[list[Any]]:
    """The outputs of each cell of a notebook: a benchmark of two systems, and results of several kinds."""
    folder = tmp_path_factory.mktemp("notebook")
    write_collection(folder / "c")
    cells = [
        "import weir\ndone = weir.benchmark('c', ['bm25', 'rm3'], ['nDCG@10', 'RR'], out='results')",
        "done",
        "weir.efficiency('results')",
        "done.compare()",
        "weir.audits('results')",
        "ds = weir.load('c')\nfirst, second = (weir.Run.load(p) for p in sorted(__import__('pathlib').Path('results').rglob('run.trec')))\n"
        "weir.power(ds.qrels, first, second)",
        "def tried():\n    weir.benchmark('c', ['bm52'], ['nDCG@10'])\ntried()",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(one) for one in cells])
    nbclient.NotebookClient(
        notebook, timeout=120, allow_errors=True, resources={"metadata": {"path": str(folder)}}
    ).execute()
    return [cell.outputs for cell in notebook.cells]


def html(outputs: list[Any]) -> str:
    return next(one.data["text/html"] for one in outputs if one.output_type == "execute_result")


def test_a_benchmark_shows_its_progress_as_a_bar(outputs):
    assert "index" not in "".join(one.text for one in outputs[0] if one.output_type == "stream")
    shown = [one.data["text/html"] for one in outputs[0] if one.output_type == "display_data"]
    assert shown == [""]  # one bar, cleared at the end


def test_a_bar_is_drawn_in_its_place(monkeypatch):
    shown = []
    monkeypatch.setattr(progress, "_in_notebook", lambda: True)
    display = SimpleNamespace(update=lambda text: shown.append(text.data))
    monkeypatch.setattr(
        "IPython.display.display", lambda text, display_id: shown.append(text.data) or display
    )
    bar = progress.Progress()
    bar("search <b>", 1, 4)
    bar("search <b>", 4, 4)
    bar.close()
    assert shown[0].startswith('<progress max="4" value="1"></progress>')
    assert "search &lt;b&gt;  1/4" in shown[0]
    assert 'value="4"' in shown[1]
    assert shown[2:] == [""]


def test_results_are_tables(outputs):
    assert "<table" in html(outputs[1])
    efficiency = html(outputs[2])
    assert efficiency.count("<tr>") == 3
    assert "queries/s" in efficiency
    comparison, audit, power = (html(one) for one in outputs[3:6])
    for column in ("difference", "adjusted", "won/lost/tied", "verdict"):
        assert f"<bdi>{column}</bdi>" in comparison
    assert "<bdi>severity</bdi>" in audit
    assert audit.count("<tr>") > 3
    assert "6 queries could bring it below 0.05" in power
    assert all("<pre" not in one for one in (efficiency, comparison, audit, power))


def test_a_mistake_shows_the_lines_of_the_cell_and_one_sentence(outputs):
    [error] = outputs[6]
    lines = error.traceback
    assert lines[-1] == "UnknownName: no system named 'bm52'; did you mean bm25 or bm25f?"
    assert [line.strip() for line in lines if "weir.benchmark" in line or line.strip() == "tried()"] == [
        "tried()",
        "weir.benchmark('c', ['bm52'], ['nDCG@10'])",
    ]
    assert len(lines) < 10
    assert {line.split('"')[1] for line in lines if line.startswith("  File")} == {
        "Cell In[7]"
    }  # the same in every session
    assert not any("weir/" in line for line in lines)


@pytest.mark.parametrize(
    "call",
    [
        lambda: weir.evaluate("nowhere.tsv", {"q": ["d"]}),  # from an error of Python
        lambda: weir.BM25(k1=-1),  # in a method that Python wrote
        lambda: weir.diff({"q": ["d"]}, {"q": ["d"]}, {"q": ["d"]}, "AP"),
    ],
)
def test_a_mistake_shows_no_line_but_the_users(call):
    with pytest.raises(weir.WeirError) as refusal:
        call()
    shown = refusal.value._render_traceback_()
    assert {line.split('"')[1] for line in shown if line.startswith("  File")} == {__file__}
    assert shown[-1] == f"{type(refusal.value).__name__}: {refusal.value}"
    assert not any("Error: [Errno" in line for line in shown)


def test_an_error_of_ones_own_system_keeps_its_lines():
    def broken(queries, k):
        raise KeyError("no-such-field")

    with pytest.raises(weir.WeirError) as refusal:
        weir.benchmark("brook-news", [broken], ["nDCG@10"])
    shown = "\n".join(refusal.value._render_traceback_())
    assert 'raise KeyError("no-such-field")' in shown
    assert "src/weir" not in shown


def test_a_comparison_of_many_collections_is_a_grid_and_its_pairs_are_folded():
    grid = {
        (dataset, system): weir.evaluate(
            {f"q{n}": {"d": 1} for n in range(8)},
            {f"q{n}": {"d": 1.0} if n % step else {"x": 1.0} for n in range(8)},
            ["RR"],
        )
        for dataset in ("one", "two", "three")
        for system, step in (("a", 2), ("b", 3))
    }
    tables = [table(d, "RR", {s: grid[d, s] for s in ("a", "b")}) for d in ("one", "two", "three")]
    shown = weir.ResultSet(COMPARISONS, tuple(map(compared, tables)))._repr_html_()
    above, pairs, notes = shown.split("<details>")
    assert above.count("<table") == 1
    assert above.count("<tr>") == 3  # the head, and each system
    assert "bold: the best of its dataset" in above
    assert "systems that share a letter" in above
    assert "<summary>3 pairs, each with its verdict</summary>" in pairs
    assert pairs.count("<tr>") == 4
    assert "<summary>how the numbers were made</summary>" in notes
    assert "rank, by the verdicts" not in shown  # no rank is shown
    against = weir.ResultSet(COMPARISONS, tuple(compared(one, "b") for one in tables))._repr_html_()
    assert "<bdi>b (baseline)</bdi>" in against
    assert "▲ better, ▼ worse than b" in against
    one = weir.ResultSet(COMPARISONS, (compared(tables[0]),))._repr_html_()
    assert one.count("<details>") == 1  # of how the numbers were made


def test_the_mean_stands_beside_the_system_and_notes_are_folded():
    """Of nine collections the last columns may be beyond the screen."""
    rows = weir.benchmark("brook", {"plain": "bm25", "feedback": "rm3"}, ["RR"])
    marked = r"<tr>(?:<t[hd][^>]*>.*?</t[hd]>){2}"
    for shown, mean in ((rows, "brook"), (weir.compare(rows), "mean of 9 datasets")):
        page = shown._repr_html_()
        assert page.count(f"<bdi>{mean}</bdi>") > 0
        heads = re.findall(marked, page.partition("</caption>")[2])
        assert heads[0].endswith(f"<bdi>{mean}</bdi></th>")
        open_text = re.sub(r"(?s)<details>.*?</details>", "", page)
        assert "note: " in page
        assert "note: " not in open_text
        assert "feedback: rm3" not in open_text
    assert "<summary>systems by their full names</summary>" in rows._repr_html_()
    assert rows.tables()[0].header[-1] == "brook"  # in a terminal it ends the line


def test_a_difference_of_two_runs_unfolds_the_documents_that_moved():
    qrels = {f"q{n}": {"d": 1, "e": 2} for n in range(12)}
    runs = [{q: [*others, "d"] for q in qrels} for others in ((), ("x", "y"))]
    moves = weir.diff(qrels, *runs)
    assert moves._repr_html_().count("<details><summary><bdi>q") == 10
    assert "rank 1 -&gt; 3  d (grade 1)" in moves._repr_html_()
    frame = moves.to_frame("pandas")
    assert frame["query"].nunique() == len(frame) == 12
    assert frame["difference"].tolist() == (frame["after"] - frame["before"]).tolist()
    assert set(frame["outcome"]) == {"lost"}


def test_frames_begin_with_what_is_compared(tmp_path):
    out = tmp_path / "results"
    table = weir.benchmark("brook-news", ["bm25", "rm3"], ["nDCG@10"], out=out)
    pairs = table.compare(baseline="bm25").to_frame("pandas")
    first = ["dataset", "group", "measure", "first", "second", "difference", "low", "high", "p", "adjusted"]
    assert list(pairs)[:11] == [*first, "verdict"]
    assert list(pairs)[-3:] == ["test", "correction", "level"]
    assert (pairs["first"][0], pairs["second"][0], pairs["verdict"][0]) == ("bm25", "rm3", "better")
    assert list(weir.verify(out).to_frame("pandas")) == ["folder", "kind", "name", "status"]
    assert set(weir.verify(out).to_frame("pandas")["status"]) == {"sound"}
    rows = weir.results(out).to_frame("pandas")
    assert list(rows)[:6] == ["dataset", "measure", "system", "mean", "low", "high"]
    assert not rows.isna().all().any()


def test_what_differences_could_be_found_names_the_runs():
    news = weir.load("brook-news")
    runs = [system.index(news.corpus).search(news.queries, 100) for system in (weir.BM25(), weir.RM3())]
    plans = weir.power(news.qrels, *runs, effects=[0.1])
    assert [one.measure for one in plans] == ["nDCG@10", "R@100"]
    assert "rm3 minus bm25" in repr(plans)
    assert list(plans.to_frame("pandas"))[:6] == [
        "measure",
        "first",
        "second",
        "difference",
        "effect",
        "power",
    ]


def test_large_values_print_ten_lines_at_most():
    scores = weir.published("scifact")
    assert len(scores) > 200
    assert len(repr(scores).splitlines()) <= 10
    assert f"and {len(scores) - 6:,} more" in repr(scores)
    assert scores._repr_html_().count("<tr>") == 7
    assert len(scores.to_csv().splitlines()) == len(scores) + 1
    ids = Ids.of(f"document-{n}" for n in range(10_000))
    assert repr(ids).startswith("<Ids: 10,000: 'document-0', 'document-1', ")
    assert max(len(repr(ids)), len(repr(ids.column)), len(repr(Ids.of(["x" * 400])))) < 200


def test_a_ranking_shows_four_digits():
    run = weir.Run.of({"q": {"d": 0.4564799368, "e": 12.0}})
    assert re.findall(r"<bdi>([\d.]+)</bdi>", run._repr_html_()) == ["1", "12.0000", "2", "0.4565"]


def test_a_benchmark_is_compared_and_drawn():
    table = weir.benchmark("brook-news", ["bm25", "rm3"], ["nDCG@10"])
    assert weir.compare(table, baseline="bm25") == table.compare(baseline="bm25")
    assert repr(table.charts()).count("<Intervals: ") == len(table.charts()) == 2
    assert drawings(table.plot()._repr_html_())
    assert repr(table.tables()[0]) == table.tables()[0].text()
    assert table.tables()[0]._repr_html_() == table.tables()[0].html()
    with pytest.raises(weir.WeirError, match='out="results/"'):
        weir.diff(table, table)
    with pytest.raises(weir.WeirError, match='out="results/"'):
        weir.compare(table, by="topic")


def test_a_comparison_of_one_collection_shows_what_its_text_does():
    """Means with their intervals of each measure, and ranks of all pairs; the best and verdicts are marked."""
    table = weir.benchmark("brook-news", ["bm25", "rm3", "bm25(k1=2)"], ["nDCG@10", "RR"])
    for baseline in (None, "bm25"):
        compared = weir.compare(table, baseline=baseline)
        shown = compared._repr_html_()
        for one in compared:
            for standing in one.standings:
                numbers = [f"{value:.4f}" for value in (standing.mean, standing.low, standing.high)]
                assert all(number in shown for number in numbers)
        assert ("<bdi>1-2</bdi>" in shown or "<bdi>2-3</bdi>" in shown) == (baseline is None)
        assert shown.count('class="weir-number weir-best"') + shown.count('class="weir-best"') >= 2
        assert shown.count('weir-best"><b>') == shown.count("<b>")
    assert "] ▲" in re.sub("<[^>]*>", "", shown)


def test_words_stand_left_and_numbers_right():
    lines = [
        ["name", "what", "document", "value", "n"],
        ["a", "a long sentence", "q-1", "0.5000 [0.4, 0.6]", "3"],
    ]
    shown = table_of([*lines, ["b", "and one more", "q-2", "0.25", "-"]], right=None).html()
    assert re.findall(r"<td( class=\"weir-number\")?><bdi>(.*?)</bdi>", shown)[:5] == [
        ("", "a"),
        ("", "a long sentence"),
        ("", "q-1"),
        (' class="weir-number"', "0.5000 [0.4, 0.6]"),
        (' class="weir-number"', "3"),
    ]


def test_a_search_answers_with_a_thousand_unasked():
    corpus = {f"d{n}": "word" for n in range(1200)}
    found = weir.BM25().index(corpus).search({"q": "word"})
    assert len(found["q"]) == 1000


def test_a_benchmark_fetches_what_is_not_here_only_where_it_may(monkeypatch):
    asked = []
    monkeypatch.setattr("weir.api.benchmark.fetch_missing", lambda names, progress: asked.append(list(names)))
    weir.benchmark("brook-news", ["bm25"], ["nDCG@10"])
    assert asked == []
    weir.benchmark("brook-news", ["bm25"], ["nDCG@10"], fetch=True)
    assert asked[0] == ["brook-news"]


@pytest.mark.parametrize(
    "system", ["bm25", "rm3", "rrf(bm25, rm3)", "bm25 >> score(rm3)", "filtered(bm25, 'x')"]
)
def test_an_index_is_one_line(system):
    index = weir.parse_system(system).index({"d": {"text": "word", "x": 1}})
    assert repr(index) == f"<{type(index).__name__} {index.system}: 1 documents>"
    classes = [one for place in ("systems", "plugins") for one in searchers(SOURCE / place)]
    assert len(classes) > 10
    assert [one for one, body in classes if "__repr__ = index_repr" not in body] == []


def searchers(folder):
    for file in folder.rglob("*.py"):
        for name, body in re.findall(
            r"^class (\w+Searcher)[(\w\[\], )]*:\n(.*?)(?=^\S|\Z)", file.read_text(), re.M | re.S
        ):
            if "def search(" in body and "Protocol" not in name and "\n        ...\n" not in body:
                yield name, body


RUNS = {
    name: {f"q{n}": ["d"] * (n % step > 0) + ["e"] for n in range(8)}
    for name, step in (("old", 2), ("new", 3))
}
JUDGED = {f"q{n}": {"d": 1} for n in range(8)}


def test_two_rankings_have_the_names_that_they_are_given_or_first_and_second():
    for function in (weir.compare, weir.diff, weir.power, weir.why):
        named, plain = repr(function(JUDGED, RUNS)), repr(function(JUDGED, *RUNS.values()))
        assert re.search(r"\bnew\b", named), function
        assert re.search(r"\bsecond\b", plain), function
        assert "system 1" not in plain
    assert repr(weir.power(JUDGED, RUNS, "RR")) == repr(weir.power(JUDGED, RUNS, measures=["RR"]))
    assert weir.fuse(RUNS).to_dict() == weir.fuse(list(RUNS.values())).to_dict()
    for one in (RUNS, {name: weir.Run.of(run) for name, run in RUNS.items()}):
        with pytest.raises(
            weir.WeirError, match="query 'old': found rankings of several queries; expected one"
        ):
            weir.evaluate(JUDGED, one)
    with pytest.raises(weir.WeirError, match="found 1 rankings by name; diff compares two"):
        weir.diff(JUDGED, {"old": RUNS["old"]})
    with pytest.raises(weir.WeirError, match="power lacks the argument second"):
        weir.power(JUDGED, RUNS["old"]["q0"])


def test_a_comparison_of_one_collection_says_it_once_and_marks_its_baseline():
    shown = weir.compare(JUDGED, RUNS, "RR", baseline="old")._repr_html_()
    assert "<bdi>dataset</bdi>" not in shown
    assert "old (baseline)" in shown


def test_systems_of_a_benchmark_have_the_names_that_they_are_given(tmp_path):
    named = {"plain": "bm25", "mine": weir.RM3(), "words": 'bm25(analyzer="whitespace")'}
    table = weir.benchmark("brook-news", named, ["nDCG@10"], out=tmp_path)
    assert table["brook-news", "mine"].means() == table["brook-news", "rm3"].means()
    assert {s.system for c in table.compare() for s in c.standings} == set(named)
    report = weir.report(table, audit=False)._repr_html_()
    assert "mine" in report
    assert "rm3" not in report.partition("Reproduce")[0]
    drawn = [marks_in(one) for one in (table.compare().plot()._repr_html_(), report)]
    assert drawn[0] == drawn[1] == {"mine": "1", "plain": "2", "words": "3"}
    unnamed = weir.benchmark("brook-news", list(named.values()), ["nDCG@10"])
    assert "analyzer='" not in repr(weir.compare(unnamed))  # one name in all places
    assert [row.called for row in weir.benchmark("brook-news", {"k1=1.2": "bm25"}, ["nDCG@10"]).rows] == [
        "k1=1.2"
    ]
    with pytest.raises(weir.WeirError, match="a name for each"):
        weir.benchmark("brook-news", {"a": "bm25", "b": "bm25"})


def test_a_benchmark_is_its_results_folder_where_one_is_asked_for(tmp_path):
    table = weir.benchmark("brook-news", ["bm25", "rm3"], ["nDCG@10"], out=tmp_path)
    kept = weir.benchmark("brook-news", ["bm25", "rm3"], ["nDCG@10"])
    for function in (weir.results, weir.report, weir.verify, weir.cite, weir.audits, weir.efficiency):
        assert repr(function(table)) == repr(function(tmp_path)), function
        with pytest.raises(weir.WeirError, match=r"kept no folder; benchmark\(..., out="):
            function(kept)


def test_a_collection_in_memory_is_audited_and_cut(tmp_path):
    news = weir.load("brook-news")
    mine = weir.Dataset.of(news.corpus.to_frame(), news.queries.to_frame(), news.qrels, "brook-news")
    by_name = repr(weir.audits("brook-news", only=["duplicates"]))
    assert repr(weir.audits(mine, only=["duplicates"])) == by_name
    assert len(weir.audits(mine, "brook-facts", only=["duplicates"])) == 1 + len(weir.audits("brook-facts"))
    assert weir.subset(mine, 40, tmp_path / "small")


def test_paper_keeps_a_title_with_its_chart_and_small_tables_readable():
    shown = weir.compare(JUDGED, RUNS, "RR")
    assert ".weir-figure{break-inside:avoid}" in shown.plot()._repr_html_()
    means, pairs = re.findall(r'<table class="([^"]+)">', shown._repr_html_())
    assert (means, pairs) == ("weir-table", "weir-table weir-small-print")


def marks_in(shown):
    """{what the first chart of some HTML says of a system: number of its colour}, in the order of its rows."""
    first = drawings(shown)[0]
    values = re.findall(r"(?:: |; )(\S+) [\d.]+ \[", first.partition("<desc>")[2].partition("</desc>")[0])
    inks = re.findall(
        r'<path transform="translate\([\d. ]+\)" d="[^"]+" fill="[^"]+" stroke="([^"]+)"', first
    )
    colours = [str(LIGHT.index(ink) + 1) for ink in inks[: len(values)]]
    return dict(zip(values, colours, strict=True))


def test_findings_on_one_collection_are_shown_at_once():
    assert "<details>" not in weir.audits("brook-news")._repr_html_()
    assert "<details>" in weir.audits("brook-news", "brook-facts")._repr_html_()


def test_aligned_lines_stay_aligned():
    lines = re.findall("<pre[^>]*>(.*?)</pre>", weir.listings.installation()._repr_html_())
    assert len({line.index(word) for word in ("0.3", "3.1") for line in lines if word in line[:40]}) <= 2
    assert any(line.startswith("  python   ") for line in lines)


def test_queries_are_grouped_by_a_series_and_not_by_a_frame():
    pd = pytest.importorskip("pandas")
    groups = {q: "even" if int(q[1:]) % 2 == 0 else "odd" for q in JUDGED} | {"q0": None}
    by_dict = repr(weir.compare(JUDGED, RUNS, "RR", by=groups))
    assert repr(weir.compare(JUDGED, RUNS, "RR", by=pd.Series(groups))) == by_dict
    assert repr(weir.compare(JUDGED, RUNS, "RR", by=pd.Series(groups).fillna(float("nan")))) == by_dict
    with pytest.raises(weir.WeirError, match="by is of type DataFrame; expected"):
        weir.compare(JUDGED, RUNS, "RR", by=pd.DataFrame({"q": ["q1"]}))
    rows = pd.DataFrame({"query_id": ["q0"], "doc_id": ["d"], "relevance": [1], "rank": [1], "score": [1.0]})
    for ranking, says in (
        (
            rows[["query_id", "doc_id", "rank"]],
            "ranks without scores are given as {query: documents in rank order}",
        ),
        (rows[["query_id", "doc_id", "relevance"]], "grades are judgments', which come first, then the run"),
    ):
        with pytest.raises(weir.WeirError, match=says):
            weir.evaluate(JUDGED, ranking, "RR")
    with pytest.raises(weir.WeirError, match="groupby"):
        weir.compare(JUDGED, rows)


def test_warnings_name_the_line_of_the_user():
    calls = {
        str(file.relative_to(SOURCE)): re.findall(r"warnings\.warn\((.*)\)", text)
        for file in SOURCE.rglob("*.py")
        if "warnings.warn(" in (text := file.read_text())
    }
    assert calls == {
        "errors.py": ["warning, stacklevel=outermost + 1"],
        "datasets/load.py": ["LossWarning(sentence), stacklevel=1"],  # one place: each is said once
    }


def test_scores_and_groups_of_them_are_drawn_as_they_are_printed():
    scores = weir.evaluate(JUDGED, RUNS["old"], ["nDCG@10", "RR"])
    grouped = scores.by({q: q[-1] for q in scores.queries.tolist()})
    for one, charts in ((scores, 1), (grouped, 2)):
        drawn = drawings(one.plot()._repr_html_())
        assert len(drawn) == charts
        assert all(f"{mean:.4f}" in "".join(drawn) for mean in scores.means().values())
        assert all(f">{row[0].text}<" in "".join(drawn) for row in one.tables()[0].rows)


def test_a_group_has_the_judged_share_of_its_own_queries():
    scores = weir.evaluate(JUDGED, RUNS["old"], ["nDCG@10", "Judged@10"])
    plain = weir.evaluate(JUDGED, RUNS["old"], ["nDCG@10"])
    halves = {q: str(n % 2) for n, q in enumerate(scores.queries.tolist())}
    for label, part in scores.by(halves).items():
        assert plain.by(halves)[label].judged_at_10 == part.means()["Judged@10"]


@pytest.mark.parametrize("measure", ["RR", "Judged@10"])
def test_the_chart_of_a_difference_has_every_query_that_differs_in_the_colour_of_the_better(measure):
    [one] = weir.diff(JUDGED, RUNS, measure=measure, top=1)
    [chart] = weir.diff(JUDGED, RUNS, measure=measure, top=1).charts()
    numbers = system_numbers(RUNS)
    drawn = dict(zip(chart.rows, (i.system for i in chart.panels[0].intervals), strict=True))
    assert drawn == {q: numbers.number(one.second) for q in one.won} | {
        q: numbers.number(one.first) for q in one.lost
    }


def test_a_value_that_is_no_system_is_told_what_to_do_instead():
    def of_texts(texts, task_name):
        return [[1.0]] * len(texts)

    for wrong, says in (
        ({"old": {"q": {"d": 1.0}}}, "weir.evaluate"),
        ([{"q": ["d"]}], "weir.compare"),
        (weir.Run.of({"q": ["d"]}), "weir.evaluate"),
        (SimpleNamespace(encode=of_texts), r"takes task_name beside texts.*from_mteb\(model\)"),
    ):
        with pytest.raises(weir.WeirError, match=says) as found:
            weir.benchmark("brook-news", wrong)
        assert "\n" not in str(found.value)


@pytest.mark.parametrize("text", ["bm25", "rm3", "rrf(bm25, rm3)", "bm25 >> score(rm3)"])
def test_a_system_without_documents_says_how_it_gets_them(text):
    system = weir.parse_system(text)
    with pytest.raises(weir.WeirError, match=r"system\.index\(documents\)\.search\(queries, k=10\)"):
        system.search({"q": "text"})
    with pytest.raises(AttributeError, match="no attribute 'serch'"):
        _ = system.serch
    assert not hasattr(system, "search")
    assert copy.deepcopy(system) == pickle.loads(pickle.dumps(system)) == system


def test_a_file_in_place_of_a_results_folder_is_told_what_reads_it(tmp_path):
    (tmp_path / "SciFact.json").write_text("{}")
    for function in (weir.results, weir.report, weir.compare):
        with pytest.raises(weir.WeirError, match=r"found a file; expected .*weir data import reads files"):
            function(tmp_path / "SciFact.json")


@given(st.lists(st.tuples(st.booleans(), st.from_regex(r"[a-z]{1,9}", fullmatch=True)), min_size=1))
def test_a_notebook_indents_the_sentences_that_a_terminal_indents(lines):
    html = sentences(*("  " * under + words for under, words in lines)).html_body()
    found = re.findall(r'<p class="weir-note( weir-under)?">(\w+)</p>', html)
    assert found == [(" weir-under" * under, words) for under, words in lines]
