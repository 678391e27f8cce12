"""Agreement of all raters of the same pairs, of which each may have left some out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import get_args

import numpy as np

from weir.core.ids import Ids
from weir.core.qrels import Qrels
from weir.core.strings import Float64, Int64, Strings
from weir.errors import BadValue
from weir.io.runs.distinct_ids import distinct_strings
from weir.stats.label_agreement import MOST_LABELS, Level, alpha_of, bounds, coincidences, drawn_tables

__all__ = ["ManyRaters", "RaterBase", "many_raters"]


@dataclass(frozen=True)
class RaterBase:
    """How a rater labels, whoever else labelled the same: the mean grade, and the share of grades from 1 on."""

    name: str
    labels: int
    queries: int
    mean: float
    relevant: float


@dataclass(frozen=True)
class ManyRaters:
    """Krippendorff's alpha of all raters together, with 95% intervals by resampling queries.

    pairs: with two labels or more, of `queries`; missing: share of their labels that are not there; alone: pairs that
    one rater alone labelled, which say nothing of agreement; values: (level, alpha, low, high).
    """

    raters: tuple[RaterBase, ...]
    pairs: int
    queries: int
    missing: float
    alone: int
    values: tuple[tuple[str, float, float, float], ...]


def many_raters(labels: Mapping[str, Qrels]) -> ManyRaters:
    """How well raters agree as a group.

    Raises BadValue for fewer than two raters, where no pair has two labels, and for more than MOST_LABELS grades.
    """
    if len(labels) < 2:
        raise BadValue(f"{len(labels)} rater has nobody to agree with; name two or more")
    query, ratings = _ratings(list(labels.values()))
    several = np.count_nonzero(~np.isnan(ratings), axis=0) > 1
    if not several.any():
        raise BadValue("no pair of query and document has two labels")
    query, shared = query[several], ratings[:, several]
    grades = np.unique(shared[~np.isnan(shared)])
    if len(grades) > MOST_LABELS:
        raise BadValue(
            f"{len(grades):,} different grades; agreement is of at most {MOST_LABELS}: round them first"
        )
    asked, at = np.unique(query, return_inverse=True)
    order = np.argsort(at, kind="stable")
    cuts = np.searchsorted(at[order], np.arange(1, len(asked)))
    by_query: Float64 = np.array(
        [coincidences(part, grades) for part in np.split(shared[:, order], cuts, axis=1)]
    )
    drawn = list(drawn_tables(by_query))
    whole = by_query.sum(axis=0)
    levels: tuple[Level, ...] = get_args(Level)
    return ManyRaters(
        tuple(_base(name, one) for name, one in labels.items()),
        int(several.sum()),
        len(asked),
        float(np.isnan(shared).mean()),
        int((~several).sum()),
        tuple(
            (level, alpha_of(whole, grades, level), *bounds([alpha_of(one, grades, level) for one in drawn]))
            for level in levels
        ),
    )


def _ratings(labels: list[Qrels]) -> tuple[Int64, Float64]:
    """(the place of each pair's query by identifier, float64[raters, pairs] with NaN where a rater left a pair out)."""
    of_query, queries = distinct_strings(Strings.concatenated([one.queries.strings for one in labels]))
    place = Ids(queries).tie_ranks  # resampling draws the same in whatever order files list queries
    of_doc, docs = distinct_strings(Strings.concatenated([one.docs.strings for one in labels]))
    pairs, queries_before, docs_before = [], 0, 0
    for one in labels:
        query = place[of_query[queries_before + one.query_of_row().astype(np.int64)]].astype(np.int64)
        pairs.append(query * len(docs) + of_doc[docs_before + one.doc.astype(np.int64)])
        queries_before, docs_before = queries_before + len(one.queries), docs_before + len(one.docs)
    known, at = np.unique(np.concatenate(pairs), return_inverse=True)
    ratings = np.full((len(labels), len(known)), np.nan)
    ends = np.cumsum([len(one) for one in pairs])[:-1]
    for number, (one, columns) in enumerate(zip(labels, np.split(at, ends), strict=True)):
        ratings[number, columns] = one.grade
    return known // max(1, len(docs)), ratings


def _base(name: str, labels: Qrels) -> RaterBase:
    grade = labels.grade.astype(np.float64)
    mean, relevant = (float(v.mean()) if len(v) else float("nan") for v in (grade, grade >= 1))
    return RaterBase(name, len(grade), len(labels), mean, relevant)
