"""Judgments: what they name that is not there, how many there are, and what they let a measure reach."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from weir.audit.check import Finding, check
from weir.audit.duplicates import copies
from weir.core import rounding
from weir.core.qrels import Qrels
from weir.core.rounding import counted, one_or_more, part_of
from weir.core.run import Run
from weir.core.strings import Int64
from weir.core.subject import Subject
from weir.datasets.same_text import normalised
from weir.measures.evaluate import evaluate

__all__ = ["ceilings", "relevant_per_query"]

SHALLOW = 1.5
"""Mean relevant documents of a query below which markup is called shallow."""
GRADES_SHOWN = 8
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
            f"{counted(int(pairs.sum()), 'judgment names', 'judgments name')} "
            f"{counted(int(lost_doc[np.unique(qrels.doc)].sum()), 'document that is', 'documents that are')} "
            f"not in the collection, {relevant:,} of them relevant, which nothing can find",
            "recall and nDCG cannot reach 1: take the collection and judgments of one version, or drop these",
            (("judgments", float(pairs.sum())), ("relevant", float(relevant))),
            tuple(names),
        )
    lost_query = np.flatnonzero(subject.need_queries().ids.codes(qrels.queries.strings) < 0)
    if len(lost_query):
        yield Finding(
            "caution",
            f"{part_of(len(lost_query), len(qrels), 'judged queries', 'is', 'are')} not among the queries "
            f"and {one_or_more(len(lost_query), 'is', 'are')} never asked",
            "they are left out of the grid; take queries and judgments of one version",
            (("queries", float(len(lost_query))),),
            tuple(qrels.queries.take(lost_query[:5]).tolist()),
        )


def _between(qrels: Qrels) -> Iterator[Finding]:
    """What to say of grades above 0 that do not reach 1, the level at which relevance begins."""
    between = int(np.count_nonzero((qrels.grade > 0) & (qrels.grade < 1)))
    reaching = int(np.count_nonzero(qrels.grade >= 1))
    if between:
        yield Finding(
            "note" if reaching else "caution",
            f"{between:,} of {len(qrels.grade):,} judgments {one_or_more(between, 'is', 'are')} above 0 "
            f"and below 1, "
            f"{reaching:,} {one_or_more(reaching, 'reaches', 'reach')} 1",
            "nDCG gains by them; measures of relevance begin at 1 unless told: AP(rel=0.5)",
            (("between 0 and 1", float(between)), ("from 1", float(reaching))),
        )


def _below(qrels: Qrels) -> Iterator[Finding]:
    """What to say of grades below 0."""
    below = int(np.count_nonzero(qrels.grade < 0))
    if below:
        least = float(qrels.grade.min())
        yield Finding(
            "note",
            f"{part_of(below, len(qrels.grade), 'judgments', 'is', 'are')} below 0, down to {least:g}; "
            "they count as judged and not relevant",
            "see what the collection means by them: some tools count them as unjudged, or subtract them",
            (("below 0", float(below)), ("least", least)),
        )


def _distribution(qrels: Qrels) -> Finding:
    """How many documents are judged for a query, and how many judgments each grade has."""
    judged = np.bincount(qrels.query_of_row(), minlength=len(qrels))
    quartiles = np.quantile(judged, [0, 0.25, 0.5, 0.75, 1]).tolist()
    grades, counts = np.unique(qrels.grade, return_counts=True)
    few = "; grades " + ", ".join(
        f"{grade:g}: {count:,}" for grade, count in zip(grades.tolist(), counts.tolist(), strict=True)
    )
    names = ("fewest", "first quartile", "median", "third quartile", "most")
    return Finding(
        "note",
        f"{counted(round(quartiles[2]), 'judged document')} a query at the median, "
        f"{rounding.count(quartiles[0])} to "
        f"{rounding.count(quartiles[4])}" + (few if len(grades) <= GRADES_SHOWN else ""),
        numbers=(
            *((f"judged per query, {name}", value) for name, value in zip(names, quartiles, strict=True)),
            *((f"grade {g:g}", float(c)) for g, c in zip(grades.tolist(), counts.tolist(), strict=True)),
        ),
    )


@check("labels", needs=["qrels"])
def labels(subject: Subject) -> Iterator[Finding]:
    """Queries without a relevant document, shallow markup, grades below 1, and the highest mean there can be.

    Source of the warning on shallow markup: Arabzadeh et al. 2021 and Thakur et al. 2021, section 6, on MS MARCO.
    """
    qrels = subject.need_qrels()
    relevant = relevant_per_query(qrels)
    nothing = np.flatnonzero(relevant == 0)
    if len(nothing):
        yield Finding(
            "caution",
            f"{len(nothing):,} of {len(qrels):,} judged queries "
            f"{one_or_more(len(nothing), 'has no relevant document and scores', 'have no relevant document and score')}"
            " 0 whatever is returned",
            "say so beside the mean, or leave them out by empty=left-out in every system alike",
            (("queries", float(len(nothing))), ("share", len(nothing) / len(qrels))),
            tuple(qrels.queries.take(nothing[:5]).tolist()),
        )
    zeros = int(np.count_nonzero(qrels.grade <= 0))
    if float(relevant.mean()) < SHALLOW and not zeros:
        yield Finding(
            "serious",
            f"shallow markup: {rounding.count(float(relevant.mean()), 2)} relevant documents a query "
            f"and none judged not relevant; "
            "what else is relevant counts as not relevant",
            "differences of systems that find other relevant documents are not seen: judge the first 10 "
            "of each",
            (("relevant per query", float(relevant.mean())), ("judged not relevant", float(zeros))),
        )
    yield from _between(qrels)
    yield from _below(qrels)
    yield _distribution(qrels)
    reached = ceilings(qrels)
    low = {name: value for name, value in reached.items() if value < 0.99}
    if low:
        said = ", ".join(f"{name} {rounding.score(value)}" for name, value in low.items())
        yield Finding(
            "note",
            f"the best ranking there could be reaches {said}",
            "read these means against that"
            + (", or take R_cap@k in the place of R@k" if any(n.startswith("R@") for n in low) else ""),
            tuple(reached.items()),
        )


@check("copied query labels", needs=["queries", "qrels"])
def copied_query_labels(subject: Subject) -> Iterator[Finding]:
    """How far the judgments of queries with the same text agree: what one judge calls relevant, another does not.

    Of pairs of copies, the documents that both judge; and relevant documents of one that the other does not judge.
    """
    queries, qrels = subject.need_queries(), subject.need_qrels()
    judged = qrels.to_dict()
    both = alike = alone = pairs = 0
    for rows in copies((queries.text,), normalised).members():
        names = [name for name in queries.ids.take(rows).tolist() if name in judged]
        for one, other in combinations(names, 2):
            pairs += 1
            common = judged[one].keys() & judged[other].keys()
            both += len(common)
            alike += sum((judged[one][doc] > 0) == (judged[other][doc] > 0) for doc in common)
            for a, b in ((one, other), (other, one)):
                alone += sum(grade > 0 and doc not in judged[b] for doc, grade in judged[a].items())
    if pairs and (alone or alike < both):
        said = (
            f"of {counted(both, 'document')} that both judge, {alike:,} "
            f"{one_or_more(alike, 'is', 'are')} judged alike"
            if both
            else "none both judge"
        )
        yield Finding(
            "serious" if alike < both else "caution",
            f"{counted(pairs, 'pair of judged queries has', 'pairs of judged queries have')} the same text; "
            f"{said}, {alone:,} {one_or_more(alone, 'is', 'are')} relevant to one and unjudged for the other",
            "join the judgments of such queries, or ask one of them: the same ranking scores "
            "differently for each",
            (
                ("pairs", float(pairs)),
                ("judged by both", float(both)),
                ("alike", float(alike)),
                ("relevant to one", float(alone)),
            ),
        )
