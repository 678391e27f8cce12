"""Queries won and lost, as people read it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from weir.core.rounding import change, count, score
from weir.core.tables import paragraph
from weir.stats.query_differences import QueryDifference, QueryDifferences, Shift

LISTED = 20
WIDTH = 100


def diff_text(moves: QueryDifferences, width: int | None = None) -> str:
    """Counts and identifiers of the queries won, lost and tied, and the largest moves each way."""
    queries = len(moves.won) + len(moves.lost) + len(moves.tied)
    lines = [
        f"{moves.measure}: {moves.first} {score(moves.first_mean)} -> {moves.second} {score(moves.second_mean)} "
        f"({change(moves.second_mean - moves.first_mean)}) on {count(queries)} queries",
        f"{moves.second} wins {count(len(moves.won))}, loses {count(len(moves.lost))}, ties {count(len(moves.tied))}",
        *_listed("won", moves.won),
        *_listed("lost", moves.lost),
        *_listed("tied", moves.tied),
    ]
    for title, found in (("largest gains", moves.up), ("largest losses", moves.down)):
        if found:
            lines += ["", f"{title} of {moves.second}"]
            lines += [line for move in found for line in _move(moves, move)]
    return "\n".join(paragraph(line, width) for line in [*lines, "", *_notes(moves)])


def diff_json(moves: QueryDifferences) -> str:
    """One JSON object at full precision."""
    return json.dumps(asdict(moves), ensure_ascii=False)


def _listed(name: str, queries: Sequence[str]) -> list[str]:
    if not queries:
        return []
    more = f" … and {count(len(queries) - LISTED)} more (--json lists all)" if len(queries) > LISTED else ""
    return [f"  {name}: {' '.join(queries[:LISTED])}{more}"]


def _move(moves: QueryDifferences, move: QueryDifference) -> list[str]:
    text = f"  {_excerpt(move.text)}" if move.text else ""
    names = zip((moves.first, moves.second), moves.unanswered, strict=True)
    silent = [name for name, queries in names if move.query in queries]
    flag = f"  (not answered by {' and '.join(silent)})" if silent else ""
    values = f"{score(move.first)} -> {score(move.second)}"
    return [f"  {values}  query {move.query}{text}{flag}", *map(_shift, move.documents)]


def _shift(shift: Shift) -> str:
    before, after = ("-" if rank is None else str(rank) for rank in (shift.before, shift.after))
    text = " | ".join(part for part in (shift.title, shift.text) if part)
    shown = f"  {_excerpt(text)}" if text else ""
    return f"      rank {before} -> {after}  {shift.document} (grade {shift.grade:g}){shown}"


def _notes(moves: QueryDifferences) -> list[str]:
    lines = [
        f"differences: {moves.second} minus {moves.first}",
        "won, lost: by any difference, however small; equal scores: documents by descending identifier, as trec_eval",
    ]
    if moves.left_out:
        lines.append(f"{count(moves.left_out)} queries are left out, as only one side has a value")
    return [*lines, *map(str, moves.notes)]


def _excerpt(text: str) -> str:
    one = " ".join(text.split())
    return one if len(one) <= WIDTH else one[: WIDTH - 1] + "…"
