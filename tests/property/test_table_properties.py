"""Whatever identifiers, labels and values a table holds, it stays one."""

from __future__ import annotations

import csv
import io
import re
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from shutil import which
from unicodedata import category

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weir.api.result_set import ResultSet
from weir.api.rows import ROWS, grid_tables, grids_marked
from weir.core.rounding import score
from weir.core.scores import Row
from weir.core.short_names import short_names
from weir.core.tables import Cell, columns, display_width, sentences, table_of, tables_as_text
from weir.measures.measure import is_best
from weir.plugins.report.paper import PaperScore, paper_table

TEXTS = st.text(max_size=30) | st.sampled_from(
    ["a|b", "</td><script>", "50% & $x_1$", "\x1b[31m", "x\ny", "漢字漢字漢字", "é" * 9, "\u202eabc", 'dense("m", dtype="bf16")',
     "bm25(k1=1.2)", "a >> b(c)", "=1+1", "x" * 200, "", " ", "\ud800"]
)  # fmt: skip
VALUES = st.floats(0, 1) | st.just(float("nan"))


class Cells(HTMLParser):
    """How many cells each row has, and how deep the tags are open."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[int] = []
        self.open: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        if tag != "meta":
            self.open.append(tag)
        if tag == "tr":
            self.rows.append(0)
        if tag in ("td", "th"):
            self.rows[-1] += int(dict(attrs).get("colspan") or 1)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@st.composite
def grids(draw: st.DrawFn) -> list[Row]:
    datasets = draw(st.lists(TEXTS, min_size=2, max_size=4, unique=True))
    systems = draw(st.lists(TEXTS, min_size=2, max_size=4, unique=True))
    return [
        Row(d, s, "AP", draw(VALUES), 0.1, 0.9, 5, 5, judged_at_10=0.5)
        for d in datasets
        for s in systems
        if (d, s) == (datasets[0], systems[0]) or draw(st.integers(0, 5))
    ]


def unescaped_bars(line: str) -> int:
    return line.replace("\\\\", "").replace("\\|", "").count("|")


@given(
    st.lists(st.lists(TEXTS, min_size=3, max_size=3), min_size=2, max_size=5),
    st.integers(20, 90),
    st.integers(0, 2),
)
def test_no_line_is_wider_than_asked_and_nothing_is_lost(lines, width, right):
    text = columns(lines, right, width)
    assert all(display_width(line) <= width for line in text.split("\n"))
    shown = "".join(
        c for c in text if c != "\n" and category(c) != "Zs"
    )  # blanks of every width stay as they are
    assert shown.isprintable()
    whole = columns(lines, right, None)
    assert len(whole.split("\n")) == len(lines) + 1


@given(grids(), st.sampled_from([20, 40, 80, 200]))
def test_any_names_and_values_leave_a_table_in_every_format(rows, width):
    grid = grid_tables(rows)[0]
    table, count = grids_marked([grid])[0], len(grid.datasets) + 1
    text = tables_as_text(grids_marked([grid]), "text", width)
    assert all(display_width(line) <= width for line in text.split("\n"))
    assert not set(text) & set("\x1b\r\t")
    marked = [line for line in table.markdown().split("\n") if line.startswith("|")]
    assert len(marked) == len(grid.systems) + 2
    assert {unescaped_bars(line) for line in marked} == {count + 1}
    body = table.latex().split("\\midrule\n")[1].split("\n\\bottomrule")[0].split("\n")
    assert {line.replace("\\&", "").count("&") for line in body} == {count - 1}
    lines = csv.reader(io.StringIO(table.csv(), newline=""))
    assert [len(line) for line in lines] == [count] * (len(grid.systems) + 1)
    for page in (
        table.html(),
        ResultSet(ROWS, tuple(rows)).shown("html"),
        ResultSet(ROWS, tuple(rows)).shown("html", options={"long": True}),
    ):
        found = Cells()
        found.feed(page)
        assert not found.open
        assert "script" not in found.seen
        assert len(found.rows) > len(set(found.rows))


def test_no_row_of_latex_begins_with_an_argument_of_the_line_above():
    lines = (
        table_of([["[a]", "b"], ["[5pt]", "1"], ["*", "2"], [" [x", "3"], ["x[1]*", "4"]]).latex().split("\n")
    )
    rows = [line for line in lines if line.endswith(r"\\")]
    assert rows == [r"{}[a] & b \\", r"{}[5pt] & 1 \\", r"{}* & 2 \\", r"{} [x & 3 \\", r"x[1]* & 4 \\"]


@given(st.lists(st.floats(0, 1).map(lambda value: round(value, 2) + value / 1e4), min_size=2, max_size=6))
def test_numbers_that_look_equal_bear_equal_marks(means):
    marks = {(score(mean), is_best("nDCG@10", mean, means)) for mean in means}
    assert len(marks) == len({text for text, _ in marks})
    assert any(best for _, best in marks)
    table = paper_table({("d", str(n)): PaperScore(mean) for n, mean in enumerate(means)}, "nDCG@10", "0")
    shown = {(cell.text, cell.best, cell.second) for cell in table.rows[0][1:]}
    assert len(shown) == len({text for text, *_ in shown})


@given(TEXTS, TEXTS, TEXTS)
def test_what_latex_sets_has_no_shorthand_and_its_sentences(cell, title, note):
    rows = ((Cell(cell, best=True, verdict="worse"), Cell(cell, second=True)),)
    table = replace(table_of([["a", "b"]], title=title, notes=[note, "* the best"], above=[note]), rows=rows)
    shown = [line for line in table.latex().split("\n") if not line.startswith("%")]
    assert '"' not in "\n".join(shown)
    assert {r"bold: the best\par", r"underlined: the second best\par"} <= {*shown}
    assert not re.search(r"--|''|,,", "\n".join(shown))


def test_latex_of_a_name_with_quotes_and_signs():
    table = table_of([["a"], ['dense("m") --x |y| ‡']], notes=["▲ better, ▼ worse"])
    assert r"dense(\texttt{\char34}m\texttt{\char34}) -{}-x \textbar{}y\textbar{} \ddag{}" in table.latex()
    assert r"$\blacktriangle$ better, $\blacktriangledown$ worse\par" in table.latex()
    assert "% packages: booktabs, amssymb" in table.latex()


@pytest.mark.skipif(which("pdflatex") is None, reason="needs pdflatex")
def test_latex_compiles(tmp_path):
    signs = "".join(chr(number) for number in range(33, 127)) + "▲▼‡−±×≤≥→–…"
    marked = Cell(signs, best=True, letters="ab", verdict="better", more="[1]")
    table = table_of(
        [["system", "x"], [signs, marked], ["[b]", Cell("1", second=True)]], title=signs, notes=[signs]
    )
    text = "\n".join([r"\documentclass{article}\usepackage{booktabs,amssymb,array,graphicx}\begin{document}",
                      tables_as_text([table, sentences(signs), table], "latex"), r"\end{document}"])  # fmt: skip
    (tmp_path / "x.tex").write_text(text, encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "x.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout.decode(errors="replace")


@given(st.lists(TEXTS, min_size=1, max_size=6, unique=True), st.data())
def test_short_names_are_all_different(names, data):
    chosen = data.draw(st.dictionaries(st.sampled_from(names), st.sampled_from(["one", "two"]), max_size=1))
    found = short_names(names, chosen)
    assert len(found) == len(names)
    assert len(set(found)) == len(set(found) | set(chosen.values()))
    if not set(chosen.values()) & set(names):
        assert len(set(found)) == len(names)
