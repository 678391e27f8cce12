"""The grid as a table: orientation, marks, means over datasets, short names, and each format."""

from __future__ import annotations

from html.parser import HTMLParser

import numpy as np
import pytest

from weir.api.result_set import ResultSet
from weir.api.rows import ROWS, grid_tables, grids_marked
from weir.core.colours import STYLES
from weir.core.scores import Row
from weir.core.short_names import short_names
from weir.core.tables import columns, display_width, tables_as_text
from weir.stats.compare import ScoreTable, compared

BERT = 'dense("sentence-transformers/all-MiniLM-L6-v2", dtype="bf16")'
SYSTEMS = ("bm25", "bm25(k1=1.2, b=0.75)", BERT, f"rrf(bm25, {BERT})", f"bm25 >> score({BERT}, depth=20)")
DATASETS = ("scifact", "nfcorpus", "trec-covid", "cqadupstack-programmers", "webis-touche2020", "quora")


def rows(datasets=DATASETS, systems=SYSTEMS, measures=("nDCG@10",)):
    found = []
    for d, dataset in enumerate(datasets):
        for s, system in enumerate(systems):
            found += [Row(dataset, system, m, 0.4 + 0.01 * d + 0.001 * s, 0.3, 0.6, 50, 50) for m in measures]
    return found


def shown(grid, form="text", width=None, colour=False):
    return tables_as_text(grids_marked([grid]), form, width, colour)


def widest(text):
    return max(map(display_width, text.split("\n")))


@pytest.mark.parametrize("width", [40, 80, 120, 200])
@pytest.mark.parametrize("systems", [1, 2, 5, 20])
@pytest.mark.parametrize("datasets", [1, 3, 19])
def test_no_line_is_wider_than_the_terminal(width, systems, datasets):
    names = [f"{SYSTEMS[i % 5]} >> cross(depth={i + 1})" for i in range(systems)]
    grid = grid_tables(rows([f"collection-{i}" for i in range(datasets)], names, ("nDCG@10", "R@100")))
    text = tables_as_text(grids_marked(grid), "text", width)
    assert widest(text) <= width
    for one in (f"0.{4000 + 100 * d + 10 * s}" for d in range(datasets) for s in range(systems)):
        assert one in text  # nothing is left out


def test_systems_are_rows_where_that_fits_and_columns_where_only_that_does():
    grid = grid_tables(rows())[0]
    assert shown(grid, width=200).split("\n")[2].startswith("system ")
    many = grid_tables(rows([f"a-rather-long-dataset-{i}" for i in range(12)], ("bm25", "rm3")))[0]
    assert shown(many, width=80).split("\n")[2].startswith("dataset ")
    assert shown(many).split("\n")[2].startswith("system ")


def test_each_grid_in_latex_has_the_legend_of_its_marks():
    grids = grids_marked(grid_tables(rows(measures=("nDCG@10", "R@100"))))
    parts = tables_as_text(grids, "latex").split("\n\n")
    assert ["bold: the best of its dataset" in part for part in parts] == [True, True]
    assert tables_as_text(grids, "text").count("* the best") == 1


def test_lines_of_a_page_call_systems_as_its_grid_does():
    [lines] = ResultSet(ROWS, tuple(rows(["d"]))).tables("latex")
    grid = grid_tables(rows())[0]
    assert [line[1].text for line in lines.rows] == list(grid.labels)
    assert set(grid.legend()) <= set(lines.notes)


def test_the_best_of_each_dataset_is_marked_and_ties_of_it_are_too():
    found = [
        Row("one", "a", "AP", 0.5, 0, 1, 3, 3),
        Row("one", "b", "AP", 0.25, 0, 1, 3, 3),
        Row("two", "a", "AP", 0.75, 0, 1, 3, 3),
        Row("two", "b", "AP", 0.75, 0, 1, 3, 3),
    ]
    grid = grid_tables(found)[0]
    assert [[c.best for c in row] for row in grid.cells] == [[True, True, True], [False, True, False]]
    assert grid.datasets == ("one", "two", "mean of 2 datasets")
    assert [row[2].mean for row in grid.cells] == [0.625, 0.5]
    assert "0.5000*" in shown(grid)
    assert "* the best of its dataset" in shown(grid)


def test_a_hole_is_a_dash_and_leaves_the_mean():
    found = [Row("one", "a", "AP", 0.5, 0, 1, 3, 3), Row("one", "b", "AP", 0.25, 0, 1, 3, 3)]
    grid = grid_tables([*found, Row("two", "a", "AP", 0.75, 0, 1, 3, 3)])[0]
    assert grid.cells[1][1] is None
    assert grid.cells[1][2] is None
    assert shown(grid).split("\n")[5].split() == ["b", "0.2500", "-", "-"]


def test_a_group_that_is_there_as_a_whole_counts_once_in_the_mean():
    members = [f"brook-{name}" for name in ("answers", "arguments", "citations", "entities", "facts")]
    found = [Row(m, "bm25", "AP", 0.2, 0, 1, 3, 3) for m in members]
    whole = grid_tables([*found, Row("brook", "bm25", "AP", 0.2, 0, 1, 15, 15)])[0]
    assert whole.datasets[-1] == "brook"  # its column is the mean already
    with_other = grid_tables(
        [*found, Row("nf", "bm25", "AP", 0.8, 0, 1, 3, 3), Row("brook", "bm25", "AP", 0.2, 0, 1, 15, 15)]
    )
    assert with_other[0].datasets[-1] == "mean of 2 datasets"
    assert with_other[0].cells[0][-1].mean == 0.5


def test_more_judged_is_not_better():
    grid = grid_tables(rows(measures=("Judged@10",)))[0]
    assert not any(cell.best for row in grid.cells for cell in row)


def test_letters_and_verdicts_come_from_comparisons():
    rng = np.random.default_rng(3)
    low = rng.random(40) / 2
    values = np.stack([low, low + rng.random(40) * 0.01 - 0.005, low + 0.4])
    table = ScoreTable("one", "AP", ("a", "b", "c"), values)
    found = [Row("one", s, "AP", float(v.mean()), 0, 1, 40, 40) for s, v in zip("abc", values, strict=True)]
    each = grid_tables(found, [compared(table, None, None)])[0]
    assert [row[0].letters for row in each.cells] == ["b", "b", "a"]
    for form, marked in (
        ("text", "* a\n"),
        ("markdown", "** a |"),
        ("latex", r"}$^{\mathrm{a}}$"),
        ("html", ">a</td>"),
    ):
        assert marked in shown(each, form)
        assert "share a letter" in shown(each, form)
    against = grid_tables(found, [compared(table, "a", None)])[0]
    assert [row[0].verdict for row in against.cells][2] == "better"
    assert "▲" in shown(against)
    assert "better, ▼ worse than a" in shown(against)
    assert r"$^{\blacktriangle}$" in shown(against, "latex")
    assert 'class="weir-better"' in shown(against, "html")
    assert f"\x1b[{STYLES['best']}m" in shown(each, width=80, colour=True)
    assert "\x1b" not in shown(each, width=80)


def test_short_names_are_what_differs():
    assert short_names(SYSTEMS) == (
        "bm25",
        "bm25(k1=1.2, b=0.75)",
        "all-MiniLM-L6-v2",
        "rrf(bm25, all-MiniLM-L6-v2)",
        "bm25 >> score(all-MiniLM-L6-v2)",
    )
    assert short_names(["bm25(k1=1.2)", "rm3(bm25)"]) == ("bm25", "rm3(bm25)")
    assert short_names(['dense("m", dtype="fp32", store="int8")', 'dense("m", dtype="fp32")']) == (
        'm(store="int8")',
        "m",
    )
    assert short_names(['dense("m")', 'colbert("m")']) == ("dense(m)", "colbert(m)")
    assert short_names(["bm25 #1a2b", "bm25 #3c4d", "run.v2", "a b", "1"]) == (
        "bm25 #1a2b",
        "bm25 #3c4d",
        "run.v2",
        "a b",
        "1",
    )
    assert short_names(["dense(folder/model)", "bm25"]) == ("dense(folder/model)", "bm25")
    assert short_names(SYSTEMS[:2], {SYSTEMS[1]: "tuned"}) == ("bm25", "tuned")


def test_full_names_stand_below_once():
    text = tables_as_text(grids_marked(grid_tables(rows(measures=("nDCG@10", "AP")))), "text")
    assert text.count(f"all-MiniLM-L6-v2: {BERT}") == 1


class Tables(HTMLParser):
    """The cells of each row."""

    def __init__(self):
        super().__init__()
        self.rows, self.open = [], []

    def handle_starttag(self, tag, attrs):
        self.open += [tag] if tag not in ("meta", "br") else []
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        if tag != "p":
            assert self.open.pop() == tag
        else:
            self.open.pop()

    def handle_data(self, data):
        if self.rows and "table" in self.open and self.rows[-1]:
            self.rows[-1][-1] += data


def test_markdown_latex_and_html_escape_names():
    evil = ["a|b", "<script>x</script>", "50% & $x_1$", "**bold** `code`", "x\x1b[31m\n"]
    grid = grid_tables(rows(["one|two", "three"], evil))[0]
    lines = shown(grid, "markdown").split("\n")
    assert r"a\|b" in lines[4]
    assert lines[2].count("|") - lines[2].count(r"\|") == 5
    assert all(line.count("|") - line.count(r"\|") == 5 for line in lines[2:9])
    assert r"50\% \& \$x\_1\$" in shown(grid, "latex")
    assert r"\textless{}script\textgreater{}" in shown(grid, "latex")
    assert "<script>" not in shown(grid, "html")
    assert "&lt;script&gt;" in shown(grid, "html")
    for text in (
        shown(grid, "markdown"),
        shown(grid, "latex"),
        shown(grid, "html"),
        shown(grid),
        shown(grid, width=80, colour=True),
    ):
        assert "\x1b[31m" not in text
    page = Tables()
    page.feed(tables_as_text(grids_marked(grid_tables(rows(["one|two", "three"], evil))), "html"))
    assert [row[0] for row in page.rows[1:]] == [*evil[:4], r"x\x1b[31m\n"]


def test_columns_wrap_at_blanks_and_set_the_rest_below():
    lines = [["name", "first value", "second"], ["a system of many words", "0.5000 [0.1, 0.9]", "1"]]
    assert columns(lines, 2, 34).split("\n") == [
        "name          first value  second",
        "------------  -----------  ------",
        "a system of        0.5000       1",
        "  many words   [0.1, 0.9]",
    ]
    narrow = columns(lines, 2, 20)
    assert widest(narrow) <= 20
    assert narrow.count("name") == 2
    assert "\n\n" in narrow
    assert columns(lines, 2, None).count("\n") == 2
