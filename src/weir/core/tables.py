"""Tables as values, output for terminals, CSV, Markdown, LaTeX and HTML."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias
from unicodedata import category, east_asian_width

from weir.core.colours import ANY_PAGE, INKS, STYLES
from weir.core.rounding import NO_INTERVAL, counted, typeset
from weir.errors import UnknownName, printable, printable_text

SIGNS = {"better": "▲", "worse": "▼"}
_TRIANGLE = r"\blacktriangle"
_LATEX_SIGNS = {"better": _TRIANGLE, "worse": rf"{_TRIANGLE}down"}

# Both themes: ink, lines and grounds come from the page. The class twice outweighs what notebooks say of all tables.
_STYLE = """\
<style>
.weir-table{border-collapse:collapse;font-variant-numeric:tabular-nums;margin:8px 0 4px}
.weir-table caption{text-align:left;font-weight:650;padding:4px 0;white-space:nowrap}
table.weir-table.weir-table :is(th,td){padding:4px 12px 4px 0;border:0;border-bottom:1px solid rgba(128,128,128,.35);\
background:none;text-align:left;font-weight:400;vertical-align:top}
table.weir-table.weir-table thead :is(th,td){border-bottom:1.5px solid rgba(128,128,128,.9);\
vertical-align:bottom;font-weight:600}
table.weir-table.weir-table .weir-number{text-align:right}
table.weir-table.weir-table td.weir-number{white-space:nowrap}
table.weir-table.weir-table td.weir-number:has(+.weir-marks){padding-right:4px}
.weir-table .weir-marks{font-size:85%;white-space:nowrap;opacity:.85}
table.weir-table.weir-table .weir-best{font-weight:700}
.weir-table .weir-better{color:BETTER}
.weir-table .weir-worse{color:WORSE}
.weir-note.weir-note{font-size:90%;opacity:.8;margin:2px 0;max-width:60em;overflow-wrap:anywhere}
.weir-note.weir-under{margin-left:1.5em}
@media screen{
.weir-frame{overflow-x:auto}
.weir-frame::-webkit-scrollbar{height:10px}
.weir-frame::-webkit-scrollbar-thumb{background:rgba(128,128,128,.6);border-radius:5px}
}
@media print{
table.weir-table.weir-table{font-size:85%}
table.weir-table.weir-table :is(th,td){padding:2px 8px 2px 0}
table.weir-small-print.weir-small-print.weir-small-print{font-size:62%}
table.weir-small-print.weir-small-print.weir-small-print :is(th,td){padding-right:6px}
table.weir-small-print.weir-small-print .weir-number{white-space:normal}
.weir-table caption{white-space:normal}
}
</style>""".replace("BETTER", ANY_PAGE["better"]).replace("WORSE", ANY_PAGE["worse"])
_UNDER_VALUES = "<td></td>"  # above marks and intervals, so that the name stands above the values
_PAGE = (
    "<style>\n:root{color-scheme:light dark}\nbody{font:15px/1.5 Inter,system-ui,sans-serif;margin:24px;"
    f"background:{INKS['paper'][0]};color:{INKS['ink'][0]}}}\n@media (prefers-color-scheme:dark){{"
    f"body{{background:{INKS['paper'][1]};color:{INKS['ink'][1]}}}}}\n</style>"
)


@dataclass(frozen=True)
class Cell:
    """A cell of a table."""

    text: str
    best: bool = False
    """The best of its dataset, marked; `second` the second best."""
    letters: str = ""
    """Letters of the groups of inseparable systems that it is in."""
    verdict: str = ""
    """"better" or "worse" than the baseline, else ""."""
    more: str = ""
    """Text after the marks, such as an interval."""
    style: str = ""
    """A name in STYLES, for a text without marks."""
    second: bool = False
    value: float | None = None
    """The unrounded number, for CSV."""
    inside: tuple[str, ...] = ()
    """Lines that a reader of HTML sees by clicking on the text."""


@dataclass(frozen=True, repr=False)
class Table:
    """A table between sentences; without a header only sentences."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    """Sentences below the rows."""
    keys: int = 1
    """Number of first columns that hold names."""
    above: tuple[str, ...] = ()
    """Sentences above the rows."""
    right: int | None = None
    """Number of right-aligned columns; None for all after the keys."""
    tail: int = 0
    """Number of text columns after the right-aligned ones."""
    narrow: tuple[int, ...] = ()
    """Columns for the first of two tables if a terminal is too narrow for all; the others go to the second."""
    indent: int = 0
    """Blanks before each line of the body, in terminals."""
    hang: int | None = None
    """Blanks before the further lines of a sentence, in terminals."""
    follows: bool = False
    """Omit the blank line before the table, in terminals."""
    folded: str = ""
    """Summary to click on in HTML; "" shows the table at once."""
    commands: tuple[str, ...] = ()
    """Lines to paste into a terminal, above the body."""
    leading: int | None = None
    """Column that HTML shows right after the keys, such as a mean over the others, where no screen cuts it off."""
    turned: Table | None = None
    """The table with rows and columns exchanged, used in a terminal if that makes fewer tables."""
    own: tuple[str, ...] | None = None
    """Of `notes` that stand below the last of several tables, the sentences of this table, as LaTeX sets them; None
    for all.
    """

    @property
    def numbers(self) -> range:
        """Positions of the right-aligned columns."""
        end = len(self.header) - self.tail
        return range(self.keys if self.right is None else end - self.right, end)

    def lines(self, colour: bool = False) -> list[list[str | Styled]]:
        """Return header and rows as terminal cells: text, * for the best, ▲ or ▼ for the verdict, group letters,
        `more`; styled if `colour`.
        """
        ends, widths = list[list[tuple[str, str, str]]](), [[0, 0, 0] for _ in self.header]
        for row in self.rows:
            ends.append([])
            for cell, of_column in zip(row, widths, strict=True):
                marks = ("*" if cell.best else "") + SIGNS.get(cell.verdict, "")
                end = marks, f" {cell.letters}" if cell.letters else "", f" {cell.more}" if cell.more else ""
                ends[-1].append(end)
                of_column[:] = map(max, of_column, map(display_width, end))
        lines: list[list[str | Styled]] = [list(self.header)]
        for row, of_row in zip(self.rows, ends, strict=True):
            lines.append([])
            for i, (cell, end) in enumerate(zip(row, of_row, strict=True)):
                text = cell.text
                if i >= self.keys:
                    marks, letters, more = map(str.ljust, end, widths[i])
                    text += (marks + letters).replace(" ", JOINED) + more
                style = "best" if cell.best else cell.verdict if cell.verdict in SIGNS else cell.style
                lines[-1].append(Styled(text, style) if colour else text)
        return lines

    def text(self, width: int | None = None, colour: bool = False) -> str:
        """Return the table as text for a terminal of `width` columns (None: unbounded); wide tables are split."""
        if self.turned is not None and self.turned.block_count(width) < self.block_count(width):
            return replace(self.turned, notes=self.notes).text(width, colour)
        parts = [_paragraph(self.title, width)] if self.title else []
        body = [_paragraph(line, width, self.hang) for line in self.above] if self.above else []
        body += [*(f"    {printable(line)}" for line in self.commands), *([""] if self.commands else [])]
        if self.header:
            lines, indent = self.lines(colour), " " * self.indent
            room = None if width is None else width - self.indent
            if not self.narrow or fits(lines, room):
                table = columns(lines, len(self.numbers), room, self.keys, self.tail)
            else:
                rest = [i for i in range(self.keys, len(self.header)) if i not in self.narrow]
                tables = []
                for places in (self.narrow, rest):
                    cells = [[line[i] for i in (*range(self.keys), *places)] for line in lines]
                    flush = sum(i in self.numbers for i in places)
                    tables.append(columns(cells, flush, room, self.keys, len(places) - flush))
                table = "\n\n".join(tables)
            body.append(indent + table.replace("\n", "\n" + indent))
        if body:
            parts.append("\n".join(body))
        if self.notes:
            parts.append("\n".join([_paragraph(note, width, self.hang) for note in self.notes]))
        return "\n\n".join(parts)

    def block_count(self, width: int | None) -> int:
        """Return the number of tables that a terminal of `width` columns (None: unbounded) needs."""
        if width is None:
            return 1
        room = max(width, _NARROWEST)
        least = _least_widths(_printable_cells(self.lines())[0], self.keys, room)
        return len(_blocks(least, self.keys, room))

    def csv(self) -> str:
        """Return the table as CSV with unrounded numbers; missing numbers are empty, and text like a formula begins
        with an apostrophe.
        """
        lines = [
            [c.value if c.value is not None else _number(c.text) if i in self.numbers else c.text
             for i, c in enumerate(row)] for row in self.rows
        ]  # fmt: skip
        return csv_text([self.header, *lines])

    def markdown(self) -> str:
        """Return the table and its sentences as Markdown, the best in bold."""
        head = [markdown_escaped(name) for name in self.header]
        rule = ["---:" if i in self.numbers else "---" for i in range(len(head))]
        lines = [_piped(head), "|" + "|".join(rule) + "|"] if head else []
        lines += [_piped([_markdown(cell) for cell in row]) for row in self.rows]
        title = [f"**{markdown_escaped(self.title)}**"] if self.title else []
        above = [markdown_escaped(line.strip()) for line in self.above if line]
        above += ["\n".join(f"    {printable(line)}" for line in self.commands)] if self.commands else []
        notes = [markdown_escaped(_in_bold(note.strip())) for note in self.notes if note]
        return "\n\n".join([*title, *above, *(["\n".join(lines)] if lines else []), *notes])

    def latex(self) -> str:
        """Return a LaTeX tabular, shrunk to the text's width; its first line names the packages needed.

        The best value is bold, the second underlined; verdicts and group letters are superscripts.
        """
        second = any(cell.second for row in self.rows for cell in row)
        notes = self.notes if self.own is None else self.own
        sentences = [*self.above, *map(_in_bold, notes), *["underlined: the second best"] * second]
        lines = [rf"\noindent\textbf{{{_latex_escaped(self.title)}}}\par\smallskip"] if self.title else []
        if self.header:
            head = _latex_row(_latex_escaped(name[:1].upper() + name[1:] if i < self.keys else name)
                              for i, name in enumerate(self.header))  # fmt: skip
            cells = [
                [f"{row[i].text} {row[i].more}".strip() for row in self.rows] for i in range(len(self.header))
            ]
            longest = [max(map(len, column), default=0) for column in cells]
            widths = [max(len(name), n) for name, n in zip(self.header, longest, strict=True)]
            wide = sum(min(n, _PROSE) + 2 for n in widths) > _TEXT_WIDTH
            share = 0.5 / max(1, sum(n > _PROSE for n in longest))
            rooms = [rf"{share:.2f}\linewidth" if n > _PROSE else "" for n in longest]
            if wide:  # in two lines, if words allow
                words = [
                    max((len(w) for cell in column for w in cell.split()), default=0) for column in cells
                ]
                rooms = [
                    f"{0.55 * max(w, n / 2):.0f}em" if n > _BROKEN and w < n else ""
                    for w, n in zip(words, longest, strict=True)
                ]
            left = [rf">{{\raggedright\arraybackslash}}p{{{room}}}" if room else "l" for room in rooms]
            shape = "".join("r" if i in self.numbers else one for i, one in enumerate(left))
            rows = [_latex_row(_latex(c, i in self.numbers) for i, c in enumerate(row)) for row in self.rows]
            table = [rf"\begin{{tabular}}{{{shape}}}", r"\toprule", head, r"\midrule", *rows, r"\bottomrule"]
            before, after = (r"\resizebox{\linewidth}{!}{%" + "\n", "}") if wide else ("", "")
            lines += [rf"\noindent{before}" + "\n".join(table), rf"\end{{tabular}}{after}"]
        if small := [rf"{_latex_escaped(one.strip())}\par" for one in sentences if one]:
            lines += [r"{\par\smallskip\footnotesize\raggedright", *small, r"}\medskip"]
        whole = "\n".join(lines)
        needed = {"amssymb": _TRIANGLE, "array": r"\arraybackslash", "graphicx": r"\resizebox"}
        packages = ", ".join(
            ["% packages: booktabs", *(name for name, sign in needed.items() if sign in whole)]
        )
        commands = [f"% {printable(line)}" for line in self.commands]
        return "\n".join([*commands, *[packages] * bool(self.header), whole])

    def __repr__(self) -> str:
        return self.text()

    def without(self, key: int) -> Table:
        """Return the table without its key column `key`."""
        rows = tuple((*row[:key], *row[key + 1 :]) for row in self.rows)
        return replace(
            self, header=(*self.header[:key], *self.header[key + 1 :]), rows=rows, keys=self.keys - 1
        )

    def _repr_html_(self) -> str:
        return self.html()

    def html(self) -> str:
        """Return the table as HTML with style sheet."""
        return f"{_STYLE}\n{self.html_body()}"

    def html_body(self) -> str:
        """Return the table and its sentences as HTML without style sheet."""
        if self.leading is not None:
            others = [i for i in range(self.keys, len(self.header)) if i != self.leading]
            order = [*range(self.keys), self.leading, *others]
            cells = tuple(tuple(row[i] for i in order) for row in self.rows)
            names = tuple(self.header[i] for i in order)
            return replace(self, header=names, rows=cells, leading=None).html_body()
        above = [_notes_html(line for line in self.above if line)] if any(self.above) else []
        title = [f"<p><strong>{html_escaped(self.title)}</strong></p>"] if self.title else []
        if self.commands:  # the title goes above the commands
            lines = "\n".join(map(html_escaped, self.commands))
            above = [*title, *above, f'<pre class="weir-frame">{lines}</pre>']
        if not self.header:
            below = (
                _aligned_html(self.notes, self.hang)
                if self.hang
                else _notes_html(map(_in_bold, filter(None, self.notes)))
            )
            lines = "\n".join([*title, *above, below])
            return folded_html(self.folded, lines) if self.folded else lines
        wide = [any(map(_beside, column)) for column in zip(*self.rows, strict=True)] or [False] * len(
            self.header
        )
        numbers = [i for i in self.numbers if not _are_prose(row[i].text for row in self.rows)]
        head = "".join(
            f"<th{_class(i in numbers)}><bdi>{html_escaped(name)}</bdi></th>{_UNDER_VALUES * spans}"
            for i, (name, spans) in enumerate(zip(self.header, wide, strict=True))
        )
        rows = [
            "<tr>"
            + "".join(_html(c, i in numbers, w) for i, (c, w) in enumerate(zip(row, wide, strict=True)))
            + "</tr>"
            for row in self.rows
        ]
        caption = f"<caption>{html_escaped(self.title)}</caption>" if self.title and not self.commands else ""
        texts = zip(self.header, *([c.text + c.more for c in row] for row in self.rows), strict=True)
        characters = sum(2 + max(map(len, column)) for column in texts)
        kind = "weir-table weir-small-print" if characters > _ON_PAPER else "weir-table"
        table = f'<table class="{kind}">{caption}<thead><tr>{head}</tr></thead><tbody>'
        body = ['<div class="weir-frame">' + table, *rows, "</tbody></table></div>"]
        whole = "\n".join([*above, *body, _notes_html(map(_in_bold, self.notes))])
        return folded_html(self.folded, whole) if self.folded else whole


_PROSE = 60
"""Characters of a text above which LaTeX breaks the lines of its column."""
_BROKEN = 24
"""Likewise, in tables wider than the text."""
_TEXT_WIDTH = 72
"""Characters of a row, blanks between columns included, that fit a page of LaTeX's article class."""
_ON_PAPER = 90
"""Characters of a row that a sheet holds; longer rows have smaller letters in print."""
FIRST, _EXCERPT = 10, 80
"""Rows shown of a longer table, and characters of a text in them."""


def table_of(
    lines: Sequence[Sequence[str | Cell]],
    right: int | None = 0,
    keys: int = 1,
    tail: int = 0,
    title: str = "",
    notes: Iterable[str] = (),
    above: Iterable[str] = (),
) -> Table:
    """Return a table from lines of texts or cells, the header first; other arguments are fields of `Table`.

    A note explains missing intervals, unless `notes` do.
    """
    header, *rest = lines
    rows = tuple(tuple(c if isinstance(c, Cell) else Cell(c) for c in line) for line in rest)
    names, said = tuple(str(name) for name in header), tuple(notes)
    lacking = any(f" {cell.text}".endswith(f" {NO_INTERVAL}") for row in rows for cell in row)
    if lacking and not any("no interval" in note for note in said):
        said += (f"{NO_INTERVAL}: no interval, as there are too few values or all are equal",)
    return Table(title, names, rows, said, keys, tuple(above), right, tail)


def first_rows(columns: Mapping[str, Sequence[object]], title: str, count: int) -> Table:
    """Return a table of the first ten rows of `columns`, long texts cut, under `title`; `count` is the number of all
    rows.
    """
    rows = list(zip(*(column[:FIRST] for column in columns.values()), strict=True))
    lines = [
        [f"{c:.4f}" if isinstance(c, float) else excerpt(" ".join(str(c).split()), _EXCERPT) for c in row]
        for row in rows
    ]
    numbers = [i for i, one in enumerate(rows[0]) if not isinstance(one, str)] if rows else []
    tail = len(columns) - 1 - numbers[-1] if numbers else 0
    more = [f"and {count - len(rows):,} more"] if count > len(rows) else []
    head = list(columns)
    return table_of(
        [head, *lines], len(numbers), len(head) - len(numbers) - tail, tail, above=[title], notes=more
    )


def folded_html(summary: str, inside: str) -> str:
    """Return HTML that shows `summary`, and `inside` after a click."""
    return f"<details><summary>{html_escaped(summary)}</summary>\n{inside}\n</details>"


def excerpt(text: str, most: int) -> str:
    """Return a text cut to `most` characters with "…", if possible after a word."""
    if len(text) <= most:
        return text
    words = text[:most].rpartition(" ")[0].rstrip()
    return (words if len(words) > most // 2 else text[: most - 1]) + "…"


def _in_bold(note: str) -> str:
    return f"bold: {note[2:]}" if note.startswith("* ") else note


def sentences(*lines: str) -> Table:
    """Return a table of sentences only."""
    return Table("", (), (), lines)


def tables_as_text(
    tables: Sequence[Table],
    form: str,
    width: int | None = None,
    colour: bool = False,
    title: str = "results",
    notes: Sequence[object] = (),
) -> str:
    """Return tables as one text, below each other.

    form: "text", "markdown", "latex", "csv" (without sentences) or "html" (a page); raises UnknownName for another.
    width, colour: of the terminal, for "text".
    title: of the HTML page.
    notes: printed below "text" and "markdown", as comments in "latex", else dropped.
    """
    match form:
        case "text":
            text = ""
            for one in tables:
                gap = "" if not text else "\n" if one.follows else "\n\n"
                text += gap + one.text(width, colour)
            gap = "\n\n" if text and notes else ""
            return text + gap + "\n".join(map(str, notes))
        case "markdown":
            return "\n\n".join(
                [*(one.markdown() for one in tables), *(markdown_escaped(str(n)) for n in notes)]
            )
        case "latex":
            parts = [("\n\n" if one.header else "\n") + one.latex() for one in tables]
            return "".join([*parts, *(f"\n% {' '.join(str(note).split())}" for note in notes)]).lstrip("\n")
        case "csv":
            return "\n\n".join(one.csv() for one in tables if one.header)
        case "html":
            head = f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>{html_escaped(title)}</title>'
            return "\n".join([head, _PAGE, _STYLE, *(table.html_body() for table in tables), "</html>"])
    raise UnknownName("form of tables", form, {"text", "markdown", "latex", "csv", "html"})


def _notes_html(notes: Iterable[str]) -> str:
    under = {True: " weir-under", False: ""}  # indented in a terminal
    return "\n".join(
        f'<p class="weir-note{under[note.startswith(" ")]}">{html_escaped(note.strip())}</p>'
        for note in notes
    )


def _aligned_html(lines: Iterable[str], hang: int) -> str:
    look = f"white-space:pre-wrap;margin:0;padding-left:{hang}ch;text-indent:-{hang}ch"
    return "\n".join(f'<pre style="{look}">{html_escaped(line)}</pre>' for line in lines)


def notebook_html(tables: Sequence[Table], notes: Sequence[object] = ()) -> str:
    """Return tables and notes as HTML with one style sheet; notes are folded unless decisive."""
    parts = [table.html_body() for table in tables]
    shown = [note for note in notes if getattr(note, "decisive", False)]
    rest = [note for note in notes if note not in shown]
    below = folded_html(counted(len(rest), "note"), _notes_html(map(str, rest))) if rest else ""
    return "\n".join(part for part in (_STYLE, *parts, _notes_html(map(str, shown)), below) if part)


def _number(text: str) -> float | str:
    if text == "–":
        return ""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _piped(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _markdown(cell: Cell) -> str:
    text = markdown_escaped(cell.text)
    text = f"**{text}**" if cell.best and text else text
    ends = f"{SIGNS.get(cell.verdict, '')} {markdown_escaped(cell.letters)}".rstrip()
    return f"{text}{ends} {markdown_escaped(cell.more)}".rstrip()


def _latex_row(cells: Iterable[str]) -> str:
    row = " & ".join(cells) + r" \\"
    return "{}" + row if row.lstrip().startswith(("[", "*")) else row


_MINUS = re.compile(r"(?<![\w.])-(?=[\d.])")


def _latex(cell: Cell, number: bool) -> str:
    text = _MINUS.sub("$-$", _latex_escaped(cell.text)) if number else _latex_escaped(cell.text)
    text = rf"\textbf{{{text}}}" if cell.best and text else rf"\underline{{{text}}}" if cell.second else text
    letters = rf"\mathrm{{{cell.letters}}}" if cell.letters else ""
    above = _LATEX_SIGNS.get(cell.verdict, "") + letters
    text = rf"{text}$^{{{above}}}$" if above else text
    return f"{text} {_latex_escaped(cell.more)}".rstrip()


def _html(cell: Cell, number: bool, wide: bool) -> str:
    if number:  # signs as charts have them
        cell = replace(cell, text=typeset(cell.text), more=typeset(cell.more))
    text = f"<bdi>{html_escaped(cell.text)}</bdi>"
    if cell.best:  # by an element too: a notebook that is not trusted drops style sheets
        text = f"<b>{text}</b>"
    if cell.inside:
        text = f"<details><summary>{text}</summary>{'<br>'.join(map(html_escaped, cell.inside))}</details>"
    number_cell = f"<td{_class(number, cell.best)}>{text}</td>"
    return f'{number_cell}<td class="weir-marks">{_beside(cell)}</td>' if wide else number_cell


def _are_prose(texts: Iterable[str]) -> bool:
    found = [text[:1].isalpha() or _WORDS.search(text) is not None for text in texts]
    return 2 * sum(found) > len(found)


def _class(number: bool, best: bool = False) -> str:
    kinds = ["weir-number"] * number + ["weir-best"] * best
    return f' class="{" ".join(kinds)}"' if kinds else ""


def _beside(cell: Cell) -> str:
    sign = ""
    if cell.verdict in SIGNS:
        sign = f'<span class="weir-{cell.verdict}" title="{cell.verdict}">{SIGNS[cell.verdict]}</span>'
    more = html_escaped(cell.more)
    return " ".join(part for part in (more, sign + html_escaped(cell.letters)) if part)


# Escaping: a cell is escaped where it is written.

_LATEX = {
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "|": r"\textbar{}",
    "`": r"\`{}",
    '"': r"\texttt{\char34}",  # straight in any encoding, and no shorthand of babel's
    "‡": r"\ddag{}",
    "−": "$-$",
    "±": r"$\pm$",
    "×": r"$\times$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "→": r"$\rightarrow$",
    **{sign: f"${_LATEX_SIGNS[verdict]}$" for verdict, sign in SIGNS.items()},
}
_LIGATURE = re.compile(r"([-',])(?=\1)")  # characters that a font joins with the next of their kind
_WORDS = re.compile(r"[^\W\d_]{3}")
_TO_QUOTE = frozenset(',"\n\r')
_MARKDOWN = frozenset("\\`*_[]<>|#&~$")
_HTML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"})
_LINK = re.compile(
    r"(?<=:)//|(?<=www)\.|(?<!\w)@(?=\w)", re.IGNORECASE
)  # parts that turn text into a link or a mention
_FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n", "\N{FULLWIDTH EQUALS SIGN}", "\N{FULLWIDTH PLUS SIGN}",
             "\N{FULLWIDTH HYPHEN-MINUS}", "\N{FULLWIDTH COMMERCIAL AT}")  # fmt: skip


def csv_cell(value: object) -> object:
    """Return a value for a CSV cell: "" for None, an apostrophe before text that spreadsheets take for a formula."""
    # Formulas begin with = + - @, of any width, a tab or a line end, also after apostrophes: `cell_text`
    # inverts this.
    if isinstance(value, str):
        return f"'{value}" if value.lstrip("'").startswith(_FORMULAS) else value
    return "" if value is None else value


def cell_text(cell: str) -> str:
    """Return the text from which `csv_cell` made a cell."""
    return cell[1:] if cell[:1] == "'" and cell.lstrip("'").startswith(_FORMULAS) else cell


def csv_text(lines: Iterable[Iterable[object]]) -> str:
    """Return rows of values as CSV, by `csv_cell`."""
    return "\n".join(",".join(_quoted(str(csv_cell(cell))) for cell in line) for line in lines)


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if _TO_QUOTE.intersection(text) else text


def _latex_escaped(text: str) -> str:
    escaped = "".join("\\" + c if c in "&%$#_{}" else _LATEX.get(c, c) for c in printable(text))
    return _LIGATURE.sub(r"\1{}", escaped)


def markdown_escaped(text: str) -> str:
    """Return text escaped for a Markdown table cell."""
    text = "".join("\\" + c if c in _MARKDOWN else c for c in printable(text))
    return _LINK.sub(lambda match: "".join("\\" + c for c in match[0]), text)


def html_escaped(text: str, lines: bool = False) -> str:
    """Return text escaped for HTML, control characters made visible; `lines` keeps line breaks and tabs."""
    return (printable_text(text) if lines else printable(text)).translate(_HTML)


# The layout of a terminal: wrapped, and set below one another, where columns do not fit its width.

_GAP = 2  # blanks between two columns
_NARROWEST = 20  # no terminal is taken to be narrower, in columns
_UNBROKEN = 24  # columns of a word that stay together where there is room for less than the whole
_UNBROKEN_HEAD = 12  # the same of a word in a header
_SOFT = re.compile(r"[^-_/.,(:=]*[-_/.,(:=]+|[^-_/.,(:=]+")
_BLANK = re.compile(r" (?![-+.\d]+\])")  # not that of an interval, which stays together
_NUMBER = re.compile(r"[\[(+-]*\d")
JOINED = "\N{NO-BREAK SPACE}"
"""A blank at which no cell is broken; it is shown as a blank."""
_UNSEEN = frozenset({"Mn", "Me"})  # categories of characters that take no column of their own


@dataclass(frozen=True)
class Styled:
    """A terminal cell's text and style: a key of STYLES, "" for plain."""

    text: str
    style: str = ""


TextCell: TypeAlias = "str | Styled"


def display_width(text: str) -> int:
    """Return a text's width in terminal columns: wide characters take two, combining accents none."""
    if text.isascii():
        return len(text)
    return sum(_columns_of(c) for c in text)


def columns(
    lines: Sequence[Sequence[TextCell]],
    right: int = 0,
    width: int | None = None,
    keys: int = 1,
    tail: int = 0,
) -> str:
    """Return rows of cells as text in aligned columns, the header first.

    right, tail: the last `right` columns before the last `tail` are right-aligned.
    width: of the terminal; None for no limit. Columns that do not fit go into tables below, each with the first
        `keys` ones.
    """
    plain, natural = _printable_cells(lines)
    count = len(natural)
    flush = range(count - right - tail, count - tail)
    if width is None:
        return _table(plain, natural, flush)
    room = max(width, _NARROWEST)
    least = _least_widths(plain, keys, room)
    tables = []
    for block in _blocks(least, keys, room):
        fitted = _shrunk([natural[i] for i in block], [least[i] for i in block], room)
        at = [place for place, i in enumerate(block) if i in flush]
        tables.append(_table([[line[i] for i in block] for line in plain], fitted, at))
    return "\n\n".join(tables)


def fits(lines: Sequence[Sequence[TextCell]], width: int | None) -> bool:
    """Return True if the cells fit side by side in `width` terminal columns (None: no limit)."""
    widths = _printable_cells(lines)[1]
    return width is None or sum(widths) + _GAP * (len(widths) - 1) <= width


def _paragraph(text: str, width: int | None, hang: int | None = None) -> str:
    if width is None:
        return printable(text)
    indent = len(text) - len(text.lstrip(" ")) + _GAP if hang is None else hang
    return "\n".join(_wrapped(printable(text), max(width, _NARROWEST), indent))


def _printable_cells(lines: Sequence[Sequence[TextCell]]) -> tuple[list[list[Styled]], list[int]]:
    cells, widths = list[list[Styled]](), [0] * len(lines[0])
    for line in lines:
        cells.append([])
        for i, cell in enumerate(line):
            styled = cell if isinstance(cell, Styled) else Styled(cell)
            text = printable(styled.text)
            widths[i] = max(widths[i], display_width(text))
            cells[-1].append(styled if text == styled.text else replace(styled, text=text))
    return cells, widths


def _columns_of(character: str) -> int:
    if character.isascii():
        return 1
    if category(character) in _UNSEEN:
        return 0
    return 2 if east_asian_width(character) in "WF" else 1


def _least_widths(lines: Sequence[Sequence[Styled]], keys: int, room: int) -> list[int]:
    most = min(_UNBROKEN, (room - _GAP * keys) // (keys + 1))
    head = min(most, _UNBROKEN_HEAD)
    return [
        max(_least(line[i].text, most if number else head) for number, line in enumerate(lines))
        for i in range(len(lines[0]))
    ]


def _blocks(least: Sequence[int], keys: int, room: int) -> list[list[int]]:
    head = list(range(min(keys, len(least))))
    key_width = sum(least[i] + _GAP for i in head)
    blocks: list[list[int]] = []
    used = 0
    for i in range(len(head), len(least)):
        if not blocks or used + _GAP + least[i] > room:
            blocks.append([*head])
            used = key_width - _GAP
        blocks[-1].append(i)
        used += _GAP + least[i]
    return blocks or [head]


def _shrunk(natural: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    room -= _GAP * (len(natural) - 1)
    low, high = 0, max(natural)
    while low < high:
        cap = (low + high + 1) // 2
        if sum(min(n, max(cap, s)) for n, s in zip(natural, least, strict=True)) <= room:
            low = cap
        else:
            high = cap - 1
    return [min(n, max(low, s)) for n, s in zip(natural, least, strict=True)]


def _table(lines: Sequence[Sequence[Styled]], widths: Sequence[int], flush: Sequence[int]) -> str:
    wrapped, fitted = list[list[list[str]]](), [0] * len(widths)
    for line in lines:
        wrapped.append([])
        for i, cell in enumerate(line):
            pieces = _wrapped(cell.text, widths[i], 0 if i in flush else _GAP)
            fitted[i] = max(fitted[i], *map(display_width, pieces))
            wrapped[-1].append(pieces)
    rows = []
    for number, (line, row) in enumerate(zip(lines, wrapped, strict=True)):
        height = max(map(len, row))
        for y in range(height):
            cells = []
            for i, (cell, pieces) in enumerate(zip(line, row, strict=True)):
                # A header stands on the rule, a cell hangs from the first line of its row.
                at = y + len(pieces) - height if number == 0 else y
                piece = pieces[at] if 0 <= at < len(pieces) else ""
                blanks, text = " " * (fitted[i] - display_width(piece)), piece.replace(JOINED, " ")
                if cell.style and piece:
                    text = f"\x1b[{STYLES[cell.style]}m{text}\x1b[0m"
                cells.append(blanks + text if i in flush else text + blanks)
            rows.append((" " * _GAP).join(cells).rstrip(" "))
        if number == 0:
            rows.append((" " * _GAP).join(["-" * w for w in fitted]))
    return "\n".join(rows)


def _least(text: str, most: int) -> int:
    words = _BLANK.split(text)
    pieces = [piece for word in words for piece in (_pieces(word) if display_width(word) > most else [word])]
    longest = min(max(map(display_width, pieces), default=0), most)
    return min(longest + _GAP, max(most, 1)) if len(pieces) > 1 else longest


def _pieces(word: str) -> list[str]:
    return [word] if _NUMBER.match(word) else _SOFT.findall(word) or [word]


def _wrapped(text: str, width: int, indent: int) -> list[str]:
    if display_width(text) <= width:
        return [text]
    indent = indent if width > 2 * indent + 2 else 0
    lines, line, begun = [], "", False
    for word in _BLANK.split(text):
        gap = " " if begun else ""
        begun = True
        if display_width(line + gap + word) <= width:
            line += gap + word
            continue
        if line.strip(" "):
            lines.append(line)
            line = " " * indent
        for piece in _pieces(word):
            for part in _cut(piece, width - indent):
                if display_width(line + part) > width:
                    lines.append(line)
                    line = " " * indent
                line += part
    return [*lines, line]


def _cut(piece: str, width: int) -> list[str]:
    if display_width(piece) <= width:
        return [piece]
    parts, part, columns_used = [], "", 0
    for c in piece:
        if part and columns_used + _columns_of(c) > width:
            parts.append(part)
            part, columns_used = "", 0
        part += c
        columns_used += _columns_of(c)
    return [*parts, part]
