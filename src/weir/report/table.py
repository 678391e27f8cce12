"""Rows of results as text, CSV or LaTeX."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence

from weir.core.result_row import Row
from weir.errors import printable
from weir.report.format import score

__all__ = ["columns", "csv_cell", "csv_table", "escaped", "json_lines", "latex_table", "text_table"]

_LATEX = {
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
}


def text_table(rows: Sequence[Row]) -> str:
    """A table for the terminal: a line for each dataset and system, a column for each measure.

    Each value is a mean with its 95% bootstrap interval, and with ties=bounds the means of the worst and the best
    order of ties; the last column says how many of the judged queries were answered.
    """
    measures = list(dict.fromkeys(r.measure for r in rows))
    lines = [["dataset", "system", *measures, "answered"]]
    for (dataset, system), group in _grouped(rows).items():
        cells = [_cell(group.get(m)) for m in measures]
        any_row = next(iter(group.values()))
        lines.append([dataset, system, *cells, f"{any_row.answered}/{any_row.queries}"])
    return columns(lines, right=len(measures) + 1)


def json_lines(rows: Sequence[Row]) -> str:
    """One JSON object per row at full precision."""
    return "\n".join(json.dumps(r.to_dict(), ensure_ascii=False) for r in rows)


def csv_table(rows: Sequence[Row]) -> str:
    """Comma-separated values at full precision, with a header."""
    out = io.StringIO()
    used = {name for r in rows for name in r.to_dict()}
    names = [name for name in Row.__dataclass_fields__ if name in used]
    writer = csv.DictWriter(out, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows({k: csv_cell(v) for k, v in r.to_dict().items()} for r in rows)
    return out.getvalue().rstrip("\n")


def csv_cell(value: object) -> object:
    """A value as a cell: a text that a spreadsheet would run as a formula stands behind an apostrophe.

    These begin with = + - @, a tab or a carriage return; numbers stay as they are, None is empty.
    """
    if isinstance(value, str):
        return f"'{value}" if value.startswith(("=", "+", "-", "@", "\t", "\r")) else value
    return "" if value is None else value


def latex_table(rows: Sequence[Row]) -> str:
    """A LaTeX tabular for the booktabs package; the best mean of each dataset and measure is bold."""
    measures = list(dict.fromkeys(r.measure for r in rows))
    best: dict[tuple[str, str], float] = {}
    for r in rows:
        best[r.dataset, r.measure] = max(r.mean, best.get((r.dataset, r.measure), r.mean))
    lines = [
        rf"\begin{{tabular}}{{ll{'r' * len(measures)}}}",
        r"\toprule",
        " & ".join(["Dataset", "System", *map(escaped, measures)]) + r" \\",
        r"\midrule",
    ]
    for (dataset, system), group in _grouped(rows).items():
        cells = []
        for m in measures:
            found = group.get(m)
            shown = _cell(found)
            bold = found is not None and found.mean == best[dataset, m]
            cells.append(rf"\textbf{{{shown}}}" if bold else shown)
        lines.append(" & ".join([escaped(dataset), escaped(system), *cells]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"])


def columns(lines: Sequence[Sequence[str]], right: int = 0) -> str:
    """Cells in aligned columns under a header; the last `right` columns are flush right."""
    lines = [[printable(cell) for cell in line] for line in lines]
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    flush = len(widths) - right

    def placed(line: Sequence[str]) -> str:
        cells = [
            c.ljust(w) if i < flush else c.rjust(w) for i, (c, w) in enumerate(zip(line, widths, strict=True))
        ]
        return "  ".join(cells).rstrip()

    rule = "  ".join("-" * w for w in widths)
    return "\n".join([placed(lines[0]), rule, *(placed(line) for line in lines[1:])])


def _grouped(rows: Sequence[Row]) -> dict[tuple[str, str], dict[str, Row]]:
    found: dict[tuple[str, str], dict[str, Row]] = {}
    for r in rows:
        found.setdefault((r.dataset, r.system), {})[r.measure] = r
    return found


def _cell(row: Row | None) -> str:
    if row is None:
        return ""
    shown = f"{score(row.mean)} [{score(row.low)}, {score(row.high)}]"
    if "ties=bounds" not in row.conventions:
        return shown
    lowest, highest = (row.mean if end is None else end for end in (row.lowest, row.highest))
    return f"{shown} ties {score(lowest)}..{score(highest)}"


def escaped(text: str) -> str:
    """Text as LaTeX takes it."""
    return "".join("\\" + c if c in "&%$#_{}" else _LATEX.get(c, c) for c in printable(text))
