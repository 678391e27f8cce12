"""Rankings that name documents twice, as carelessly parsed answers of language models leave them: counted."""

from __future__ import annotations

import math
from pathlib import Path

from weir.core.run import Run
from weir.errors import BadRanking, FormatError
from weir.io.runs.formats import format_of
from weir.io.runs.read import read_run, run_name
from weir.io.storage.text_files import read_bytes

__all__ = ["read_repeating_run"]

_SCORE_COLUMN, _FEWEST_COLUMNS = 4, 5


def read_repeating_run(path: Path | str) -> tuple[Run, int]:
    """A run, and how many of its rows name a document that the same ranking names elsewhere, which count no further.

    Of a document's rows the one with the highest score is kept. Only files in TREC's format may repeat documents. For
    what looks into rankings: measures are not defined on such, and `read_run` refuses them. Raises as `read_run`.
    """
    path = Path(path)
    try:
        return read_run(path), 0
    except BadRanking:
        if format_of(path, "run").name != "trec":
            raise
    rankings: dict[str, dict[str, float]] = {}
    repeated = 0
    for number, line in enumerate(read_bytes(path).decode("utf-8", "surrogateescape").split("\n"), 1):
        cells = line.split()
        if not cells or line.startswith("#"):
            continue
        score = _score(cells)
        if score is None:
            raise FormatError(path, f"'{line.strip()[:80]}'", "query Q0 document rank score tag", number)
        ranking, document = rankings.setdefault(cells[0], {}), cells[2]
        repeated += document in ranking
        ranking[document] = max(score, ranking.get(document, -math.inf))
    return Run.of(rankings, run_name(path)), repeated


def _score(cells: list[str]) -> float | None:
    """The score of a row, None where it is none."""
    try:
        found = float(cells[_SCORE_COLUMN]) if len(cells) >= _FEWEST_COLUMNS else math.nan
    except ValueError:
        return None
    return found if math.isfinite(found) else None
