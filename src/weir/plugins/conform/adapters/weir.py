"""Weir itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from weir.core.filters import DocumentLists
from weir.core.qrels import Qrels, grade_of
from weir.core.run import Run
from weir.core.scores import Scores
from weir.core.strings import Ids
from weir.measures import score_run
from weir.measures.evaluate import Conventions

PACKAGE = "weir-ir"
FOLLOWS = {
    *(f"ties={rule}" for rule in ("trec9", "expected", "worst", "best")),
    *("missing=answered-only", "empty=left-out", "self_matches=drop", "candidates", "excluded"),
}
HOLDS = {"twice ranked", "twice judged", "unanswered"}

Rows = dict[str, list[tuple[str, Any]]]


def value(vector: dict[str, Any], measure: dict[str, Any]) -> dict[str, Any]:
    """What weir.measures says."""
    asked = dict(vector["conventions"])
    end = asked["ties"] if asked["ties"] in ("worst", "best") else None
    conventions = Conventions(**(asked | {"ties": "bounds"} if end else asked))
    run = _allowed(_run(vector["run"]), vector)
    scores = score_run(_qrels(vector["qrels"]), run, measure["name"], conventions)
    values, mean = scores.values[0], scores.mean_values()[0]
    if end is not None:
        values, mean = _end(scores, end)
    counts = ~np.isnan(scores.values[0])
    named = zip(scores.queries.tolist(), values.tolist(), counts, strict=True)
    return {"mean": mean, "per_query": {q: v for q, v, counted in named if counted}}


def _end(scores: Scores, end: str) -> tuple[Any, Any]:
    values = scores.low if end == "worst" else scores.high
    assert values is not None
    return values[0], scores.tie_bounds()[0, 0 if end == "worst" else 1]


def _allowed(run: Run, vector: dict[str, Any]) -> Run:
    """What may be ranked of a run."""
    candidates, excluded = (
        DocumentLists.of(vector.get(name, {}).get(q, ()) for q in run.queries)
        for name in ("candidates", "excluded")
    )
    return run.among(candidates).without(excluded)


def _run(rows: Rows) -> Run:
    queries, docs, query, doc, score = _columns(rows)
    return Run.from_columns(queries, docs, query, doc, np.array(score, np.float64))


def _qrels(rows: Rows) -> Qrels:
    queries, docs, query, doc, grade = _columns({q: row for q, row in rows.items() if row})
    grades = np.array([grade_of(g, "the judgments") for g in grade])
    return Qrels.from_columns(queries, docs, query, doc, grades)


def _columns(rows: Rows) -> tuple[Ids, Ids, Any, Any, list[Any]]:
    documents: dict[str, int] = {}
    doc = [documents.setdefault(d, len(documents)) for row in rows.values() for d, _ in row]
    query = np.repeat(np.arange(len(rows), dtype=np.int32), [len(row) for row in rows.values()])
    values = [x for row in rows.values() for _, x in row]
    return Ids.of(rows), Ids.of(documents), query, np.array(doc, np.int32), values
