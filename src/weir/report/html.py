"""Tables as notebooks show them: plain HTML without colours, so that light and dark pages keep their own."""

from __future__ import annotations

import html
from collections.abc import Sequence

from weir.errors import printable

__all__ = ["html_table", "html_text"]

_ALIGNED = ("left", "right")


def html_table(lines: Sequence[Sequence[str]], right: int = 0, caption: str = "") -> str:
    """Cells under a header as an HTML table; the last `right` columns are flush right."""
    flush = len(lines[0]) - right

    def row(cells: Sequence[str], tag: str) -> str:
        found = (
            f'<{tag} style="text-align:{_ALIGNED[at >= flush]}">{escaped_html(cell)}</{tag}>'
            for at, cell in enumerate(cells)
        )
        return f"<tr>{''.join(found)}</tr>"

    head = f"<thead>{row(lines[0], 'th')}</thead>"
    body = "".join(row(cells, "td") for cells in lines[1:])
    title = f"<caption>{escaped_html(caption)}</caption>" if caption else ""
    return f"<table>{title}{head}<tbody>{body}</tbody></table>"


def html_text(text: str) -> str:
    """A text of several lines in a fixed-width font."""
    return f'<pre style="line-height:1.3">{escaped_html(text)}</pre>'


def escaped_html(text: str) -> str:
    """Text as HTML takes it; nothing in it is markup."""
    return html.escape("\n".join(map(printable, text.split("\n"))))
