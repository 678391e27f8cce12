"""Tables as values: cells with marks, sentences below, and how each format writes them.

A table knows what it holds; text for a terminal, CSV, Markdown, LaTeX and HTML are each written here once.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias
from unicodedata import category, east_asian_width

from weir.errors import UnknownName, printable, printable_text

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
.weir-note{font-size:90%;opacity:.8;margin:2px 0;max-width:60em;overflow-wrap:anywhere}
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
class Cell:
    """A cell as it is shown: its text, and what is marked.

    best, second: of its dataset; letters: of its tie groups; verdict: better or worse than the baseline, "" for none;
    more: what stands behind the marks, such as an interval; style: a name in STYLES for a text without marks; value:
    the number that the text rounds, which CSV holds.
    """

    text: str
    best: bool = False
    letters: str = ""
    verdict: str = ""
    more: str = ""
    style: str = ""
    second: bool = False
    value: float | None = None


@dataclass(frozen=True)
class Table:
    """A title, a header, rows, and sentences directly above and below; without a header sentences alone.

    keys: how many of the first columns are names; right: how many columns are flush right, None for all others; tail:
    text columns behind these; folded: what a reader of HTML clicks to see it, "" where it is seen at once; commands:
    lines to paste into a terminal, above the body. For a terminal alone: narrow: columns that stand in a first table
    beside the keys, the others in a second, where the width is too small for all; indent: blanks before each line of
    the body; hang: blanks before further lines of a sentence; follows: no blank line stands before the table.
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    keys: int = 1
    above: tuple[str, ...] = ()
    right: int | None = None
    tail: int = 0
    narrow: tuple[int, ...] = ()
    indent: int = 0
    hang: int | None = None
    follows: bool = False
    folded: str = ""
    commands: tuple[str, ...] = ()

    @property
    def numbers(self) -> range:
        """The places of the columns that are flush right."""
        end = len(self.header) - self.tail
        return range(self.keys if self.right is None else end - self.right, end)

    def lines(self, colour: bool = False) -> list[list[str | Styled]]:
        """The cells as a terminal shows them: * behind the best, triangles for verdicts, letters, then what is more."""
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
        """The table for a terminal of so many columns; None is boundless."""
        parts = [paragraph(self.title, width)] if self.title else []
        body = [paragraph(line, width, self.hang) for line in self.above] if self.above else []
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
            parts.append("\n".join([paragraph(note, width, self.hang) for note in self.notes]))
        return "\n\n".join(parts)

    def csv(self) -> str:
        """Comma-separated values: the numbers or texts of the cells alone, under the header."""
        lines = [
            [c.value if c.value is not None else _number(c.text) if i in self.numbers else c.text
             for i, c in enumerate(row)] for row in self.rows
        ]  # fmt: skip
        return csv_text([self.header, *lines])

    def markdown(self) -> str:
        """A Markdown table: the best in bold, triangles for verdicts, letters behind; sentences are paragraphs."""
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
        """A LaTeX tabular for the booktabs package, and amssymb where there are verdicts.

        The best is bold, the second underlined, superscript letters are tie groups, triangles verdicts. Sentences are
        comments.
        """
        above, notes = ([f"% {latex_escaped(line.strip())}" for line in part if line]
                        for part in ((self.title, *self.above, *self.commands), map(_in_bold, self.notes)))  # fmt: skip
        if not self.header:
            return "\n".join([*above, *notes])
        head = _latex_row(latex_escaped(name[:1].upper() + name[1:] if i < self.keys else name)
                          for i, name in enumerate(self.header))  # fmt: skip
        shape = "".join("r" if i in self.numbers else "l" for i in range(len(self.header)))
        lines = [*above, rf"\begin{{tabular}}{{{shape}}}", r"\toprule", head, r"\midrule"]
        lines += [_latex_row(map(_latex, row)) for row in self.rows]
        return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", *notes])

    def html(self) -> str:
        """A table of HTML with its own style, for a notebook or a page; it takes its ink from the page around it."""
        return f"{_STYLE}\n{self.html_body()}"

    def html_body(self) -> str:
        """The table and the sentences without a style."""
        above = [notes_html(line for line in self.above if line)] if any(self.above) else []
        title = [f"<p><strong>{html_escaped(self.title)}</strong></p>"] if self.title else []
        if self.commands:  # the title stands above what is pasted
            lines = "\n".join(map(html_escaped, self.commands))
            above = [*title, *above, f'<pre class="weir-frame">{lines}</pre>']
        if not self.header:
            return "\n".join([*title, *above, notes_html(_in_bold(note) for note in self.notes if note)])
        wide = [any(map(_beside, column)) for column in zip(*self.rows, strict=True)] or [False] * len(
            self.header
        )
        head = "".join(
            f"<th{_class(i in self.numbers)}{_SPAN * spans}><bdi>{html_escaped(name)}</bdi></th>"
            for i, (name, spans) in enumerate(zip(self.header, wide, strict=True))
        )
        rows = [
            "<tr>"
            + "".join(_html(c, i in self.numbers, w) for i, (c, w) in enumerate(zip(row, wide, strict=True)))
            + "</tr>"
            for row in self.rows
        ]
        caption = f"<caption>{html_escaped(self.title)}</caption>" if self.title and not self.commands else ""
        table = f'<table class="weir-table">{caption}<thead><tr>{head}</tr></thead><tbody>'
        body = ['<div class="weir-frame">' + table, *rows, "</tbody></table></div>"]
        whole = "\n".join([*above, *body, notes_html(map(_in_bold, self.notes))])
        return folded_html(self.folded, whole) if self.folded else whole


def table_of(
    lines: Sequence[Sequence[str | Cell]],
    right: int | None = 0,
    keys: int = 1,
    tail: int = 0,
    title: str = "",
    notes: Iterable[str] = (),
    above: Iterable[str] = (),
) -> Table:
    """A table of cells, the first line being the header; arguments as in `Table`."""
    header, *rest = lines
    rows = tuple(tuple(c if isinstance(c, Cell) else Cell(c) for c in line) for line in rest)
    names = tuple(str(name) for name in header)
    return Table(title, names, rows, tuple(notes), keys, tuple(above), right, tail)


def first_rows(columns: Mapping[str, Sequence[object]], keys: int, title: str) -> Table:
    """The first ten rows of aligned columns, as notebooks show a value."""
    rows = zip(*(column[:10] for column in columns.values()), strict=True)
    lines = [[f"{cell:.4f}" if isinstance(cell, float) else str(cell) for cell in row] for row in rows]
    return table_of([list(columns), *lines], right=None, keys=keys, title=title)


def folded_html(summary: str, inside: str) -> str:
    """What a reader of HTML sees by clicking on the summary."""
    return f"<details><summary>{html_escaped(summary)}</summary>\n{inside}\n</details>"


def excerpt(text: str, most: int) -> str:
    """The text, or its beginning in at most so many characters, which ends at a word where there are blanks."""
    if len(text) <= most:
        return text
    words = text[:most].rpartition(" ")[0].rstrip()
    return (words if len(words) > most // 2 else text[: most - 1]) + "…"


def _in_bold(note: str) -> str:
    """A note on the star, which only a terminal has, for formats that have bold letters."""
    return f"bold: {note[2:]}" if note.startswith("* ") else note


def sentences(*lines: str) -> Table:
    """Sentences as a table without columns."""
    return Table("", (), (), lines)


def written(
    tables: Sequence[Table],
    form: str,
    width: int | None = None,
    colour: bool = False,
    title: str = "results",
    notes: Sequence[object] = (),
) -> str:
    """Tables below one another as text, markdown, latex, csv or a whole page of html.

    width, colour: of the terminal, for text; title: of the page; notes: lines below a text. Raises UnknownName for
    another form.
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
            return "\n\n".join(one.markdown() for one in tables)
        case "latex":
            return "\n\n".join(one.latex() for one in tables)
        case "csv":
            return "\n\n".join(one.csv() for one in tables if one.header)
        case "html":
            return html_page(title, tables)
    raise UnknownName("form of tables", form, {"text", "markdown", "latex", "csv", "html"})


def notes_html(notes: Iterable[str]) -> str:
    """Sentences as HTML, each a paragraph."""
    return "\n".join(f'<p class="weir-note">{html_escaped(note)}</p>' for note in notes)


def notebook_html(tables: Sequence[Table], notes: Sequence[object] = ()) -> str:
    """Tables and the notes below them as HTML with one style, as notebooks show a result."""
    parts = [table.html_body() for table in tables]
    return "\n".join(part for part in (_STYLE, *parts, notes_html(map(str, notes))) if part)


def html_page(title: str, tables: Sequence[Table]) -> str:
    """A whole page of HTML with these tables, for light and dark screens; it asks for nothing from elsewhere."""
    head = f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>{html_escaped(title)}</title>'
    return "\n".join([head, _PAGE, _STYLE, *(table.html_body() for table in tables), "</html>"])


def _number(text: str) -> float | str:
    """The number that a text is: as such it is no formula where it begins with a sign."""
    try:
        return float(text)
    except ValueError:
        return text


def _piped(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _markdown(cell: Cell) -> str:
    text = markdown_escaped(cell.text)
    text = f"**{text}**" if cell.best and text else text
    ends = f"{SIGNS.get(cell.verdict, '')} {markdown_escaped(cell.letters)}".rstrip()
    return f"{text}{ends} {markdown_escaped(cell.more)}".rstrip()


def _latex_row(cells: Iterable[str]) -> str:
    """A row of a tabular; behind {} where the line or rule above it would take its first character as an argument."""
    row = " & ".join(cells) + r" \\"
    return "{}" + row if row.lstrip().startswith(("[", "*")) else row


def _latex(cell: Cell) -> str:
    text = latex_escaped(cell.text)
    text = rf"\textbf{{{text}}}" if cell.best and text else rf"\underline{{{text}}}" if cell.second else text
    letters = rf"\mathrm{{{cell.letters}}}" if cell.letters else ""
    above = _LATEX_SIGNS.get(cell.verdict, "") + letters
    text = rf"{text}$^{{{above}}}$" if above else text
    return f"{text} {latex_escaped(cell.more)}".rstrip()


def _html(cell: Cell, number: bool, wide: bool) -> str:
    """A cell; where its column has marks they stand in a cell of their own behind it, so that digits stay aligned."""
    number_cell = f"<td{_class(number, cell.best)}><bdi>{html_escaped(cell.text)}</bdi></td>"
    return f'{number_cell}<td class="weir-marks">{_beside(cell)}</td>' if wide else number_cell


def _class(number: bool, best: bool = False) -> str:
    kinds = ["weir-number"] * number + ["weir-best"] * best
    return f' class="{" ".join(kinds)}"' if kinds else ""


def _beside(cell: Cell) -> str:
    """Verdict, letters and what is more, as HTML."""
    sign = ""
    if cell.verdict in SIGNS:
        sign = f'<span class="weir-{cell.verdict}" title="{cell.verdict}">{SIGNS[cell.verdict]}</span>'
    more = html_escaped(cell.more)
    return sign + html_escaped(cell.letters) + (" " if more and cell.letters else "") + more


# Escaping: a cell is escaped where it is written.

_LATEX = {
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
}
_TO_QUOTE = frozenset(',"\n\r')
_MARKDOWN = frozenset("\\`*_[]<>|#&~$")
_LINK = re.compile(
    r"(?<=:)//|(?<=www)\.|(?<!\w)@(?=\w)", re.IGNORECASE
)  # what makes an address a link, or calls somebody
_FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n", "\N{FULLWIDTH EQUALS SIGN}", "\N{FULLWIDTH PLUS SIGN}",
             "\N{FULLWIDTH HYPHEN-MINUS}", "\N{FULLWIDTH COMMERCIAL AT}")  # fmt: skip


def csv_cell(value: object) -> object:
    """A value as a cell: a text that a spreadsheet would run as a formula stands behind an apostrophe.

    These begin with = + - @, of any width, a tab or a line end; numbers stay as they are, None is empty. A text that
    has such an apostrophe already gets one more, so that `cell_text` gives every text back.
    """
    if isinstance(value, str):
        return f"'{value}" if value.lstrip("'").startswith(_FORMULAS) else value
    return "" if value is None else value


def cell_text(cell: str) -> str:
    """The text that `csv_cell` made into a cell."""
    return cell[1:] if cell[:1] == "'" and cell.lstrip("'").startswith(_FORMULAS) else cell


def csv_text(lines: Iterable[Iterable[object]]) -> str:
    """Lines of cells as comma-separated values, each cell as `csv_cell` has it.

    Unlike the standard library's writer it quotes a lone carriage return too, at which readers would end the line.
    """
    return "\n".join(",".join(_quoted(str(csv_cell(cell))) for cell in line) for line in lines)


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if _TO_QUOTE.intersection(text) else text


def latex_escaped(text: str) -> str:
    """Text as LaTeX takes it."""
    return "".join("\\" + c if c in "&%$#_{}" else _LATEX.get(c, c) for c in printable(text))


def markdown_escaped(text: str) -> str:
    """Text as a cell of a Markdown table takes it: no character of it formats, links or ends the cell."""
    text = "".join("\\" + c if c in _MARKDOWN else c for c in printable(text))
    return _LINK.sub(lambda match: "".join("\\" + c for c in match[0]), text)


def html_escaped(text: str, lines: bool = False) -> str:
    """Text as HTML takes it, between tags and within quotes; lines: its line breaks stay, as `<pre>` shows them."""
    return html.escape(printable_text(text) if lines else printable(text))


# The layout of a terminal: wrapped, and set below one another, where columns do not fit its width.

STYLES = {"best": "1", "better": "38;5;30", "worse": "38;5;130", "faint": "2"}
"""SGR parameters of each style: bold, teal, rust, faint; both colours keep 4:1 on black and on white."""

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
    """The text of a cell and how a terminal with colours shows it: a name in STYLES, "" for plain."""

    text: str
    style: str = ""


TextCell: TypeAlias = "str | Styled"


def display_width(text: str) -> int:
    """How many columns of a terminal a printable text takes: two for wide East Asian characters, none for accents."""
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
    """Cells in aligned columns under a header; the last `right` columns are flush right, but for a `tail` behind them.

    width: of the terminal, in columns; None is boundless. What does not fit is wrapped within its column, at blanks
    first; what still does not fit stands in further tables below, each with the first `keys` columns again.
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


def layout_blocks(lines: Sequence[Sequence[TextCell]], width: int | None, keys: int = 1) -> int:
    """How many tables, one below another, `columns` makes of these cells within the width."""
    if width is None:
        return 1
    room = max(width, _NARROWEST)
    return len(_blocks(_least_widths(_printable_cells(lines)[0], keys, room), keys, room))


def fits(lines: Sequence[Sequence[TextCell]], width: int | None) -> bool:
    """Whether the cells stand side by side in the width without being wrapped."""
    widths = _printable_cells(lines)[1]
    return width is None or sum(widths) + _GAP * (len(widths) - 1) <= width


def paragraph(text: str, width: int | None, hang: int | None = None) -> str:
    """A sentence in lines of at most `width` columns, further lines indented by two more than the first.

    hang: by so many instead.
    """
    if width is None:
        return printable(text)
    indent = len(text) - len(text.lstrip(" ")) + _GAP if hang is None else hang
    return "\n".join(_wrapped(printable(text), max(width, _NARROWEST), indent))


def _printable_cells(lines: Sequence[Sequence[TextCell]]) -> tuple[list[list[Styled]], list[int]]:
    """The cells without control characters, and how wide each column is."""
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
    """The narrowest that each column can be, so that the key columns and any other one fit the room."""
    most = min(_UNBROKEN, (room - _GAP * keys) // (keys + 1))
    head = min(most, _UNBROKEN_HEAD)
    return [
        max(_least(line[i].text, most if number else head) for number, line in enumerate(lines))
        for i in range(len(lines[0]))
    ]


def _blocks(least: Sequence[int], keys: int, room: int) -> list[list[int]]:
    """The columns of each table: as many as fit beside the key columns, at least one."""
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
    """Widths between the least and the natural ones that fill the room: the widest columns give way first."""
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
    """Lines of cells in columns of at most these widths; those at the places `flush` are flush right."""
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
    """The narrowest column that the text wraps into without cutting a word of up to `most` columns."""
    words = _BLANK.split(text)
    pieces = [piece for word in words for piece in (_pieces(word) if display_width(word) > most else [word])]
    longest = min(max(map(display_width, pieces), default=0), most)
    return min(longest + _GAP, max(most, 1)) if len(pieces) > 1 else longest


def _pieces(word: str) -> list[str]:
    """The parts between which a word may be broken; a number is one."""
    return [word] if _NUMBER.match(word) else _SOFT.findall(word) or [word]


def _wrapped(text: str, width: int, indent: int) -> list[str]:
    """Lines of at most `width` columns, all but the first indented; broken at blanks, else within words."""
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
    """Parts of at most `width` columns; of wide characters a column of one holds one all the same."""
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
