"""Judgments: what they name that is not there, how many there are, and what they let a measure reach."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from weir.audit.check import Finding, check
from weir.audit.subject import Subject
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.core.strings import Int64
from weir.measures.evaluate import evaluate

__all__ = ["ceilings", "relevant_per_query"]

SHALLOW = 1.5
"""Mean relevant documents of a query below which markup is called shallow."""
CEILINGS = ("P@10", "R@10", "R@100")


def relevant_per_query(qrels: Qrels) -> Int64:
    """How many documents of each judged query have a grade above 0, int64[Q]."""
    return np.bincount(qrels.query_of_row()[qrels.grade > 0], minlength=len(qrels))


def ceilings(qrels: Qrels) -> dict[str, float]:
    """What the best ranking there could be scores: the judged documents by falling grade."""
    query, score = qrels.query_of_row(), qrels.grade.astype(np.float64)
    best = Run.from_columns(qrels.queries, qrels.docs, query, qrels.doc, score)
    return evaluate(qrels, best, CEILINGS).means()


@check("dangling judgments", needs=["qrels", "corpus", "queries"])
def dangling(subject: Subject) -> Iterator[Finding]:
    """Judgments that name documents or queries which the collection does not have."""
    qrels = subject.need_qrels()
    lost_doc = subject.need_corpus().ids.codes(qrels.docs.strings) < 0
    pairs = lost_doc[qrels.doc]
    relevant = int(np.count_nonzero(pairs & (qrels.grade > 0)))
    if pairs.any():
        names = qrels.docs.take(np.flatnonzero(lost_doc)[:5]).tolist()
        yield Finding(
            "wrong" if relevant else "caution",
            f"{int(pairs.sum()):,} judgments name {int(lost_doc[np.unique(qrels.doc)].sum()):,} documents that are not "
            f"in the collection, {relevant:,} of them relevant, which nothing can find",
            "recall and nDCG cannot reach 1: take the collection and judgments of one version, or drop these",
            (("judgments", float(pairs.sum())), ("relevant", float(relevant))),
            tuple(names),
        )
    lost_query = np.flatnonzero(subject.need_queries().ids.codes(qrels.queries.strings) < 0)
    if len(lost_query):
        yield Finding(
            "caution",
            f"{len(lost_query):,} of {len(qrels):,} judged queries are not among the queries and are never asked",
            "they are left out of the grid; take queries and judgments of one version",
            (("queries", float(len(lost_query))),),
            tuple(qrels.queries.take(lost_query[:5]).tolist()),
        )


@check("labels", needs=["qrels"])
def labels(subject: Subject) -> Iterator[Finding]:
    """Queries without a relevant document, shallow markup, and the highest mean that measures can reach.

    Source of the warning on shallow markup: Arabzadeh et al. 2021 and Thakur et al. 2021, section 6, on MS MARCO.
    """
    qrels = subject.need_qrels()
    relevant = relevant_per_query(qrels)
    nothing = np.flatnonzero(relevant == 0)
    if len(nothing):
        yield Finding(
            "caution",
            f"{len(nothing):,} of {len(qrels):,} judged queries have no relevant document and "
            "score 0 whatever is returned",
            "say so beside the mean, or leave them out by empty=left-out in every system alike",
            (("queries", float(len(nothing))), ("share", len(nothing) / len(qrels))),
            tuple(qrels.queries.take(nothing[:5]).tolist()),
        )
    zeros = int(np.count_nonzero(qrels.grade <= 0))
    if float(relevant.mean()) < SHALLOW and not zeros:
        yield Finding(
            "serious",
            f"shallow markup: {float(relevant.mean()):.2f} relevant documents a query and none judged not relevant; "
            "what else is relevant counts as not relevant",
            "differences of systems that find other relevant documents are not seen: judge the first 10 of each",
            (("relevant per query", float(relevant.mean())), ("judged not relevant", float(zeros))),
        )
    reached = ceilings(qrels)
    low = {name: value for name, value in reached.items() if value < 0.99}
    if low:
        said = ", ".join(f"{name} {value:.4f}" for name, value in low.items())
        yield Finding(
            "note",
            f"the best ranking there could be reaches {said}",
            "read these means against that, or take R_cap@k in the place of R@k",
            tuple(reached.items()),
        )
