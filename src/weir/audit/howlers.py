"""Howlers: answers near the top that are not relevant and have nothing in common with the query."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from weir.audit.check import Finding, check
from weir.audit.lexical_bias import term_overlap
from weir.core.qrels import Qrels
from weir.core.rounding import counted, one_or_more
from weir.core.run import Run
from weir.core.subject import Subject

__all__ = ["howlers_of"]

FIRST_RANKS = 3


def howlers_of(subject: Subject, run: Run, k: int = FIRST_RANKS) -> list[tuple[str, str]]:
    """(query, document) among the first k, not judged relevant, without a term of the query, by rank."""
    top, qrels = run.top(k), subject.need_qrels()
    asked = qrels.queries.codes(top.queries.strings)[top.query_of_row()]
    good = {
        (q, d)
        for q, d, g in zip(
            qrels.query_of_row().tolist(), qrels.doc.tolist(), qrels.grade.tolist(), strict=True
        )
        if g > 0
    }
    doc = qrels.docs.codes(top.docs.strings)[top.doc]
    rows = np.array(
        [q >= 0 and (q, d) not in good for q, d in zip(asked.tolist(), doc.tolist(), strict=True)], bool
    )
    pairs = Qrels.from_columns(
        top.queries, top.docs, top.query_of_row()[rows], top.doc[rows], top.ranks()[rows].astype(np.int16)
    )
    bare = np.flatnonzero(term_overlap(subject, pairs) == 0)
    bare = bare[np.argsort(pairs.grade[bare], kind="stable")]
    query = pairs.query_of_row()[bare]
    return [(pairs.queries[int(q)], pairs.docs[int(d)]) for q, d in zip(query, pairs.doc[bare], strict=True)]


@check("howlers", needs=["corpus", "queries", "qrels", "runs"])
def howlers(subject: Subject) -> Iterator[Finding]:
    """Answers at rank 1 to 3 that are not judged relevant and share no term with the query: look at some of them.

    What a system finds by meaning alone looks so too; it is a list for reading, not a mistake by itself.
    """
    for name, run in subject.runs.items():
        found = howlers_of(subject, run)
        if found:
            yield Finding(
                "note",
                f"{counted(len(found), 'answer')} among the first {FIRST_RANKS} "
                f"{one_or_more(len(found), 'shares', 'share')} no term with the query and "
                f"{one_or_more(len(found), 'is', 'are')} not judged relevant",
                "read some: each is a gap of the judgments, a find by meaning, or a mistake to be seen by users",
                (("answers", float(len(found))),),
                tuple(f"{query}: {doc}" for query, doc in found),
                system=name,
            )
