"""A table of numbers with marks (best, tie groups, verdicts) in each format that Weir writes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from weir.report.escaping import csv_text, html_escaped, latex_escaped, markdown_escaped
from weir.report.terminal_layout import JOINED, Styled, columns, display_width, paragraph

__all__ = ["SIGNS", "MarkedCell", "MarkedTable", "html_page", "notes_html"]

SIGNS = {"better": "▲", "worse": "▼"}
_LATEX_SIGNS = {"better": r"\blacktriangle", "worse": r"\blacktriangledown"}

# Both themes: ink, lines and grounds come from the page, teal and rust keep 4:1 on white and on near-black.
_STYLE = """\
<style>
.weir-table{border-collapse:collapse;font-variant-numeric:tabular-nums;margin:8px 0 4px}
.weir-table caption{text-align:left;font-weight:650;padding:4px 0}
.weir-table th,.weir-table td{padding:4px 12px 4px 0;border:0;border-bottom:1px solid rgba(128,128,128,.35);\
background:none;text-align:left;font-weight:400;vertical-align:top}
.weir-table thead th[colspan="2"]{text-align:center}
.weir-table thead th{border-bottom:1.5px solid rgba(128,128,128,.9);vertical-align:bottom;font-weight:600}
.weir-table .weir-number{text-align:right;white-space:nowrap}
.weir-table td.weir-number:has(+.weir-marks){padding-right:4px}
.weir-table .weir-marks{font-size:85%;white-space:nowrap;opacity:.85}
.weir-table .weir-best{font-weight:700}
.weir-table .weir-better{color:#16857a}
.weir-table .weir-worse{color:#b8621b}
.weir-note{font-size:90%;opacity:.8;margin:2px 0;max-width:60em}
</style>"""
_SPAN = ' colspan="2"'
_PAGE = """\
<style>
:root{color-scheme:light dark}
body{font:15px/1.5 Inter,system-ui,sans-serif;margin:24px;background:#fff;color:#1a1e23}
@media (prefers-color-scheme:dark){body{background:#15181c;color:#e8ebee}}
.weir-frame{overflow-x:auto}
</style>"""


@dataclass(frozen=True)
class MarkedCell:
    """A cell as it is shown: its text, and what is marked.

    best: of its dataset; letters: of its tie groups; verdict: better or worse than the baseline, "" for neither;
    more: what stands behind the marks, such as an interval.
    """

    text: str
    best: bool = False
    letters: str = ""
    verdict: str = ""
    more: str = ""


@dataclass(frozen=True)
class MarkedTable:
    """A title, a header, rows and sentences below.

    keys: how many of the first columns are names; the others are numbers.
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[MarkedCell, ...], ...]
    notes: tuple[str, ...] = ()
    keys: int = 1

    def lines(self, colour: bool = False) -> list[list[str | Styled]]:
        """The cells as a terminal shows them: * behind the best, triangles for verdicts, letters, then what is more."""
        columns_of_ends = list(zip(*([_ends(cell) for cell in row] for row in self.rows), strict=True))
        widths = [
            [max(map(display_width, part)) for part in zip(*ends, strict=True)] for ends in columns_of_ends
        ]
        found: list[list[str | Styled]] = [list(self.header)]
        for row in self.rows:
            line: list[str | Styled] = []
            for i, cell in enumerate(row):
                text = cell.text
                if i >= self.keys:
                    *marks, more = (e.ljust(w) for e, w in zip(_ends(cell), widths[i], strict=True))
                    text += "".join(marks).replace(" ", JOINED) + more
                line.append(Styled(text, _style(cell)) if colour else text)
            found.append(line)
        return found

    def text(self, width: int | None = None, colour: bool = False) -> str:
        """The table for a terminal of so many columns; None is boundless."""
        body = columns(self.lines(colour), len(self.header) - self.keys, width, self.keys)
        parts = [paragraph(self.title, width)] if self.title else []
        notes = "\n".join(paragraph(note, width) for note in self.notes)
        return "\n\n".join([*parts, body, *([notes] if notes else [])])

    def csv(self) -> str:
        """Comma-separated values: the texts of the cells alone, under the header."""
        lines = [
            [c.text if i < self.keys else _number(c.text) for i, c in enumerate(row)] for row in self.rows
        ]
        return csv_text([self.header, *lines])

    def markdown(self) -> str:
        """A Markdown table: the best in bold, triangles for verdicts, letters behind."""
        head = [markdown_escaped(name) for name in self.header]
        rule = ["---"] * self.keys + ["---:"] * (len(head) - self.keys)
        lines = [_piped(head), "|" + "|".join(rule) + "|"]
        lines += [_piped([_markdown(cell) for cell in row]) for row in self.rows]
        title = [f"**{markdown_escaped(self.title)}**", ""] if self.title else []
        notes = [f"\n{markdown_escaped(note)}" for note in self.notes]
        return "\n".join([*title, *lines, *notes])

    def latex(self) -> str:
        """A LaTeX tabular for the booktabs package, and amssymb where there are verdicts.

        The best is bold, superscript letters are tie groups, triangles verdicts. Sentences are comments below.
        """
        head = " & ".join(latex_escaped(name[:1].upper() + name[1:] if i < self.keys else name)
                          for i, name in enumerate(self.header))  # fmt: skip
        shape = "l" * self.keys + "r" * (len(self.header) - self.keys)
        title = [f"% {latex_escaped(self.title)}"] if self.title else []
        lines = [*title, rf"\begin{{tabular}}{{{shape}}}", r"\toprule", rf"{head} \\", r"\midrule"]
        lines += [" & ".join(map(_latex, row)) + r" \\" for row in self.rows]
        notes = [f"% {latex_escaped(note)}" for note in self.notes]
        return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", *notes])

    def html(self) -> str:
        """A table of HTML with its own style, for a notebook or a page; it takes its ink from the page around it."""
        return f"{_STYLE}\n{self.html_body()}"

    def html_body(self) -> str:
        """The table and the sentences without a style."""
        wide = [any(map(_beside, column)) for column in zip(*self.rows, strict=True)] or [False] * len(
            self.header
        )
        head = "".join(
            f"<th{_class(i >= self.keys)}{_SPAN * spans}><bdi>{html_escaped(name)}</bdi></th>"
            for i, (name, spans) in enumerate(zip(self.header, wide, strict=True))
        )
        rows = [
            "<tr>"
            + "".join(_html(c, i >= self.keys, w) for i, (c, w) in enumerate(zip(row, wide, strict=True)))
            + "</tr>"
            for row in self.rows
        ]
        caption = f"<caption>{html_escaped(self.title)}</caption>" if self.title else ""
        table = f'<table class="weir-table">{caption}<thead><tr>{head}</tr></thead><tbody>'
        return "\n".join(
            ['<div class="weir-frame">' + table, *rows, "</tbody></table></div>", notes_html(self.notes)]
        )


def notes_html(notes: Iterable[str]) -> str:
    """Sentences as HTML, each a paragraph."""
    return "\n".join(f'<p class="weir-note">{html_escaped(note)}</p>' for note in notes)


def html_page(title: str, tables: Sequence[MarkedTable]) -> str:
    """A whole page of HTML with these tables, for light and dark screens; it asks for nothing from elsewhere."""
    head = f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>{html_escaped(title)}</title>'
    return "\n".join([head, _PAGE, _STYLE, *(table.html_body() for table in tables), "</html>"])


def _number(text: str) -> float | str:
    """The number that a text is: as such it is no formula where it begins with a sign."""
    try:
        return float(text)
    except ValueError:
        return text


def _ends(cell: MarkedCell) -> tuple[str, str, str]:
    """What stands behind a number in a terminal: its marks, its letters, and what is more."""
    marks = ("*" if cell.best else "") + SIGNS.get(cell.verdict, "")
    return marks, f" {cell.letters}" if cell.letters else "", f" {cell.more}" if cell.more else ""


def _style(cell: MarkedCell) -> str:
    return "best" if cell.best else cell.verdict if cell.verdict in SIGNS else ""


def _piped(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _markdown(cell: MarkedCell) -> str:
    shown = markdown_escaped(cell.text)
    shown = f"**{shown}**" if cell.best and shown else shown
    ends = f"{SIGNS.get(cell.verdict, '')} {markdown_escaped(cell.letters)}".rstrip()
    return f"{shown}{ends} {markdown_escaped(cell.more)}".rstrip()


def _latex(cell: MarkedCell) -> str:
    shown = latex_escaped(cell.text)
    shown = rf"\textbf{{{shown}}}" if cell.best and shown else shown
    letters = rf"\mathrm{{{cell.letters}}}" if cell.letters else ""
    above = _LATEX_SIGNS.get(cell.verdict, "") + letters
    shown = rf"{shown}$^{{{above}}}$" if above else shown
    return f"{shown} {latex_escaped(cell.more)}".rstrip()


def _html(cell: MarkedCell, number: bool, wide: bool) -> str:
    """A cell; where its column has marks they stand in a cell of their own behind it, so that digits stay aligned."""
    shown = f"<td{_class(number, cell.best)}><bdi>{html_escaped(cell.text)}</bdi></td>"
    return f'{shown}<td class="weir-marks">{_beside(cell)}</td>' if wide else shown


def _class(number: bool, best: bool = False) -> str:
    kinds = ["weir-number"] * number + ["weir-best"] * best
    return f' class="{" ".join(kinds)}"' if kinds else ""


def _beside(cell: MarkedCell) -> str:
    """Verdict, letters and what is more, as HTML."""
    sign = ""
    if cell.verdict in SIGNS:
        sign = f'<span class="weir-{cell.verdict}" title="{cell.verdict}">{SIGNS[cell.verdict]}</span>'
    more = html_escaped(cell.more)
    return sign + html_escaped(cell.letters) + (" " if more and cell.letters else "") + more
