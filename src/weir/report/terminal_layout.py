"""Cells in aligned columns of a terminal: wrapped, and set below one another, where they do not fit its width."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias
from unicodedata import category, east_asian_width

from weir.errors import printable

__all__ = ["JOINED", "STYLES", "Styled", "columns", "display_width", "fits", "layout_blocks", "paragraph"]

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


Cell: TypeAlias = "str | Styled"


def display_width(text: str) -> int:
    """How many columns of a terminal a printable text takes: two for wide East Asian characters, none for accents."""
    if text.isascii():
        return len(text)
    return sum(_columns_of(c) for c in text)


def columns(
    lines: Sequence[Sequence[Cell]], right: int = 0, width: int | None = None, keys: int = 1, tail: int = 0
) -> str:
    """Cells in aligned columns under a header; the last `right` columns are flush right, but for a `tail` behind them.

    width: of the terminal, in columns; None is boundless. What does not fit is wrapped within its column, at blanks
    first; what still does not fit stands in further tables below, each with the first `keys` columns again.
    """
    plain = [[_styled(cell) for cell in line] for line in lines]
    count = len(plain[0])
    flush = range(count - right - tail, count - tail)
    natural = [max(display_width(line[i].text) for line in plain) for i in range(count)]
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


def layout_blocks(lines: Sequence[Sequence[Cell]], width: int | None, keys: int = 1) -> int:
    """How many tables, one below another, `columns` makes of these cells within the width."""
    if width is None:
        return 1
    room = max(width, _NARROWEST)
    least = _least_widths([[_styled(cell) for cell in line] for line in lines], keys, room)
    return len(_blocks(least, keys, room))


def fits(lines: Sequence[Sequence[Cell]], width: int | None) -> bool:
    """Whether the cells stand side by side in the width without being wrapped."""
    cells = [[display_width(_styled(cell).text) for cell in line] for line in lines]
    widths = [max(column) for column in zip(*cells, strict=True)]
    return width is None or sum(widths) + _GAP * (len(widths) - 1) <= width


def paragraph(text: str, width: int | None) -> str:
    """A sentence in lines of at most `width` columns, further lines indented by two more than the first."""
    if width is None:
        return printable(text)
    indent = len(text) - len(text.lstrip(" ")) + _GAP
    return "\n".join(_wrapped(printable(text), max(width, _NARROWEST), indent))


def _styled(cell: Cell) -> Styled:
    if isinstance(cell, Styled):
        return Styled(printable(cell.text), cell.style)
    return Styled(printable(cell))


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
    taken = sum(least[i] + _GAP for i in head)
    found: list[list[int]] = []
    used = 0
    for i in range(len(head), len(least)):
        if not found or used + _GAP + least[i] > room:
            found.append([*head])
            used = taken - _GAP
        found[-1].append(i)
        used += _GAP + least[i]
    return found or [head]


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
    wrapped = [
        [
            _wrapped(c.text, w, 0 if i in flush else _GAP)
            for i, (c, w) in enumerate(zip(line, widths, strict=True))
        ]
        for line in lines
    ]
    fitted = [max(display_width(piece) for line in wrapped for piece in line[i]) for i in range(len(widths))]
    found = []
    for number, (line, pieces) in enumerate(zip(lines, wrapped, strict=True)):
        height = max(map(len, pieces))
        # A header stands on the rule, a cell hangs from the first line of its row.
        full = [
            [*[""] * (height - len(p)), *p] if number == 0 else [*p, *[""] * (height - len(p))]
            for p in pieces
        ]
        for row in zip(*full, strict=True):
            found.append(_placed([Styled(p, c.style) for p, c in zip(row, line, strict=True)], fitted, flush))
    rule = (" " * _GAP).join("-" * w for w in fitted)
    header = max(map(len, wrapped[0]))
    return "\n".join([*found[:header], rule, *found[header:]])


def _placed(row: Sequence[Styled], widths: Sequence[int], flush: Sequence[int]) -> str:
    shown, cells = 0, []
    for i, (cell, width) in enumerate(zip(row, widths, strict=True)):
        shown_text = cell.text.replace(JOINED, " ")
        blanks = " " * (width - display_width(cell.text))
        text = f"\x1b[{STYLES[cell.style]}m{shown_text}\x1b[0m" if cell.style and cell.text else shown_text
        cells.append(blanks + text if i in flush else text + blanks)
        shown = i + 1 if cell.text else shown
    return (" " * _GAP).join(cells[:shown]).rstrip(" ")


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
    parts, part, taken = [], "", 0
    for c in piece:
        if part and taken + _columns_of(c) > width:
            parts.append(part)
            part, taken = "", 0
        part += c
        taken += _columns_of(c)
    return [*parts, part]
