"""Whether two scores were made by the same judgments of the same queries, or on which queries they were."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from weir.core.notes import Note
from weir.core.scores import Scores
from weir.core.system_scores import JudgedScores
from weir.errors import BadValue

__all__ = ["on_same_queries"]

_NAMED = 3  # queries of a message


def on_same_queries(
    dataset: str, before: JudgedScores, after: JudgedScores, common: bool
) -> tuple[Scores, Scores, list[Note]]:
    """(both scores on the same queries, what has to be said of it).

    common: keep the queries that both have with the same judgments. Raises BadValue, naming the queries, where queries,
    judgments or conventions differ and common was not asked for, and where no query is left.
    """
    one, other = before.scores, after.scores
    if one.conventions != other.conventions:
        raise BadValue(
            f"{dataset}: the baseline was scored with the conventions {one.conventions}, the candidate with "
            f"{other.conventions}"
        )
    ours, theirs = one.queries.tolist(), other.queries.tolist()
    shared = set(ours) & set(theirs)
    marked = bool(before.marks and after.marks)
    anew = sorted(q for q in shared if before.marks[q] != after.marks[q]) if marked else []
    found = [
        *_told("only in the baseline", [q for q in ours if q not in shared]),
        *_told("only in the candidate", [q for q in theirs if q not in shared]),
        *_told("judged otherwise since", anew),
    ]
    unknown = not marked and not (before.judgments and before.judgments == after.judgments)
    if unknown:
        found.append("whether the judgments are the same cannot be seen, as the collection is not here")
    if not found:
        return one, other, []
    if not common:
        raise BadValue(
            f"{dataset}: baseline and candidate are not of the same judgments: {'; '.join(found)}; save the baseline "
            "anew, or compare on the queries that both have (--common)"
        )
    kept = [q for q in ours if q in shared and q not in set(anew)]
    if not kept:
        raise BadValue(f"{dataset}: baseline and candidate share no query with the same judgments")
    note = Note(f"{dataset}: {len(kept)} queries are compared; {'; '.join(found)}")
    return _only(one, kept), _only(other, kept), [note]


def _only(scores: Scores, queries: Sequence[str]) -> Scores:
    return scores.take(scores.queries.codes(queries).astype(np.int64))


def _told(what: str, queries: Sequence[str]) -> list[str]:
    if not queries:
        return []
    named = ", ".join(queries[:_NAMED]) + (", ..." if len(queries) > _NAMED else "")
    return [f"{len(queries)} {'queries are' if len(queries) > 1 else 'query is'} {what} ({named})"]
