"""Whatever identifiers, labels and values a table holds, it stays one."""

from __future__ import annotations

import csv
import io
from html.parser import HTMLParser
from unicodedata import category

from hypothesis import given
from hypothesis import strategies as st

from weir.api.result_set import ResultSet
from weir.api.rows import ROWS, grid_tables, grids_marked
from weir.core.scores import Row
from weir.core.short_names import short_names
from weir.core.tables import columns, display_width, table_of, tables_as_text

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


@given(st.lists(TEXTS, min_size=1, max_size=6, unique=True), st.data())
def test_short_names_are_all_different(names, data):
    chosen = data.draw(st.dictionaries(st.sampled_from(names), st.sampled_from(["one", "two"]), max_size=1))
    found = short_names(names, chosen)
    assert len(found) == len(names)
    assert len(set(found)) == len(set(found) | set(chosen.values()))
    if not set(chosen.values()) & set(names):
        assert len(set(found)) == len(names)
