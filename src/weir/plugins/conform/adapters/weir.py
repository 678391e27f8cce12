"""Weir itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from weir.core.filters import DocumentLists
from weir.core.qrels import Qrels, grade_of
from weir.core.run import Run
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
    """Return {"per_query": ..., "mean": ...} of a measure on a test vector, by weir.measures."""
    settings = dict(vector["conventions"])
    end = settings["ties"] if settings["ties"] in ("worst", "best") else None
    conventions = Conventions(**(settings | {"ties": "bounds"} if end else settings))
    queries, docs, query, doc, score = _columns(vector["run"])
    run = Run.from_columns(queries, docs, query, doc, np.array(score, np.float64))
    candidates, excluded = (
        DocumentLists.of(vector.get(name, {}).get(q, ()) for q in run.queries)
        for name in ("candidates", "excluded")
    )
    judged = _columns({q: row for q, row in vector["qrels"].items() if row})
    grades = np.array([grade_of(g, "the judgments") for g in judged[4]])
    qrels = Qrels.from_columns(*judged[:4], grades)
    scores = score_run(qrels, run.among(candidates).without(excluded), measure["name"], conventions)
    values, mean = scores.values[0], scores.mean_values()[0]
    if end is not None:
        bounds = scores.low if end == "worst" else scores.high
        assert bounds is not None
        values, mean = bounds[0], scores.tie_bounds()[0, 0 if end == "worst" else 1]
    counts = ~np.isnan(scores.values[0])
    rows = zip(scores.queries.tolist(), values.tolist(), counts, strict=True)
    return {"mean": mean, "per_query": {q: v for q, v, is_counted in rows if is_counted}}


def _columns(rows: Rows) -> tuple[Ids, Ids, Any, Any, list[Any]]:
    documents: dict[str, int] = {}
    doc = [documents.setdefault(d, len(documents)) for row in rows.values() for d, _ in row]
    query = np.repeat(np.arange(len(rows), dtype=np.int32), [len(row) for row in rows.values()])
    values = [x for row in rows.values() for _, x in row]
    return Ids.of(rows), Ids.of(documents), query, np.array(doc, np.int32), values
