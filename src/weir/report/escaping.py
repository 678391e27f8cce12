"""Text as each format takes it: a cell of CSV, LaTeX, Markdown or HTML is escaped where it is written."""

from __future__ import annotations

import html
from collections.abc import Iterable

from weir.errors import printable

__all__ = ["csv_cell", "csv_text", "html_escaped", "latex_escaped", "markdown_escaped"]

_LATEX = {
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
}
_TO_QUOTE = frozenset(',"\n\r')
_MARKDOWN = frozenset("\\`*_[]<>|#&")


def csv_cell(value: object) -> object:
    """A value as a cell: a text that a spreadsheet would run as a formula stands behind an apostrophe.

    These begin with = + - @, a tab or a carriage return; numbers stay as they are, None is empty.
    """
    if isinstance(value, str):
        return f"'{value}" if value.startswith(("=", "+", "-", "@", "\t", "\r")) else value
    return "" if value is None else value


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
    return "".join("\\" + c if c in _MARKDOWN else c for c in printable(text))


def html_escaped(text: str) -> str:
    """Text as HTML takes it, between tags and within quotes."""
    return html.escape(printable(text))
