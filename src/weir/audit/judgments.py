"""Check for incomplete and defective judgments, collections and pools."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from weir.audit.check import Finding, check
from weir.audit.duplicates import copies
from weir.core import rounding
from weir.core.dangling import dangling as dangling_judgments
from weir.core.judged import Judged
from weir.core.qrels import Qrels
from weir.core.roles import MANY_QUERIES
from weir.core.rounding import counted, one_or_more, part_of
from weir.core.run import Run
from weir.core.strings import Grades, Int64
from weir.core.subject import Subject
from weir.datasets import catalogue
from weir.datasets.card import normalised, without_judgment
from weir.datasets.load import SELF_MATCHES
from weir.measures.evaluate import score_run, scores_of
from weir.measures.measure import parse_measure
from weir.stats.score_bounds import MEASURE, score_bounds, turning_pairs

SPARSE = 1.5
"""Mean relevant documents of a query below which judgments are sparse."""
GRADES_SHOWN = 8
CEILINGS = ("P@10", "R@10", "R@100")


def relevant_per_query(qrels: Qrels) -> Int64:
    """Return the number of documents with a grade above 0 for each judged query, int64[queries]."""
    return np.bincount(qrels.query_of_row()[qrels.grade > 0], minlength=len(qrels))


def ceilings(subject: Subject) -> dict[str, float]:
    """Return {measure: mean of the best possible rankings over all judged queries} for CEILINGS.

    Raises BadValue without judgments.
    """
    return score_run(subject.need_qrels(), subject.best, CEILINGS).means()


@check("dangling judgments", needs=["qrels", "corpus", "queries"])
def dangling(subject: Subject) -> Iterator[Finding]:
    """Judgments that name documents or queries which the collection does not have."""
    qrels = subject.all_qrels or subject.need_qrels()
    absent = dangling_judgments(qrels, subject.need_corpus().ids)
    if absent is not None:
        asked, known = subject.need_queries().ids, subject.need_corpus().ids
        crossed = (asked.codes(absent.documents) >= 0).all() and (
            known.codes(qrels.queries.strings) >= 0
        ).all()
        why = "they are its queries: the columns of the judgments are exchanged" if crossed else absent.cause
        cause = f"; {why}" if why else ""
        yield Finding(
            "wrong" if absent.relevant else "caution",
            f"{counted(absent.judgments, 'judgment names', 'judgments name')} "
            f"{counted(len(absent.documents), 'document that is', 'documents that are')} "
            f"not in the collection, {absent.relevant:,} of them relevant, which nothing can find{cause}",
            "recall and nDCG cannot reach 1: take the collection and judgments of one version, or drop these",
            (("judgments", float(absent.judgments)), ("relevant", float(absent.relevant))),
            absent.documents[:5],
        )
    missing_query = np.flatnonzero(subject.need_queries().ids.codes(qrels.queries.strings) < 0)
    if len(missing_query):
        yield Finding(
            "caution",
            f"{part_of(len(missing_query), len(qrels), 'judged queries', 'is', 'are')} not among the queries "
            f"and {one_or_more(len(missing_query), 'is', 'are')} never asked",
            "they count in no mean: take queries and judgments of one version",
            (("queries", float(len(missing_query))),),
            tuple(qrels.queries.take(missing_query[:5]).tolist()),
        )


@check("labels", needs=["qrels"])
def labels(subject: Subject) -> Iterator[Finding]:
    """Queries without a relevant document, sparse judgments, grades below 1, and the highest possible means.

    Source of the warning on sparse judgments: Arabzadeh et al. 2021 and Thakur et al. 2021, section 6, on MS
    MARCO.
    """
    qrels = subject.need_qrels()
    grade, relevant = qrels.grade, relevant_per_query(qrels)
    nothing = np.flatnonzero(relevant == 0)
    if len(nothing):
        every = len(nothing) == len(qrels) >= MANY_QUERIES
        yield Finding(
            "wrong" if every else "caution",
            f"{len(nothing):,} of {len(qrels):,} judged queries "
            f"{one_or_more(len(nothing), 'has no relevant document and scores', 'have no relevant document and score')}"
            " 0 whatever is returned",
            "see whether the grades stand in another column of the judgments"
            if every
            else "say so beside the mean; weir eval --empty left-out leaves them out of the means of run files",
            (("queries", float(len(nothing))), ("share", len(nothing) / len(qrels))),
            tuple(qrels.queries.take(nothing[:5]).tolist()),
        )
    if float(relevant.mean()) < SPARSE and not (grade <= 0).any():
        yield Finding(
            "serious",
            f"sparse judgments: {rounding.count(float(relevant.mean()), 2)} relevant documents a query and none judged "
            "not relevant; unjudged documents count as not relevant, even if they are relevant",
            "differences of systems that find other relevant documents are not seen: judge the first 10 of each",
            (("relevant per query", float(relevant.mean())), ("judged not relevant", 0.0)),
        )
    yield from _odd_grades(grade)
    yield _judged_counts(qrels)
    best, total = ceilings(subject), int(relevant.sum())
    lost = total - int(np.count_nonzero(subject.best.score > 0))
    low = {name: value for name, value in best.items() if value < 0.99}
    if low:
        yield Finding(
            "note",
            "the best possible ranking reaches "
            + ", ".join(f"{name} {rounding.score(value)}" for name, value in low.items())
            + f"; {part_of(lost, total, 'relevant judgments', 'is', 'are')} out of its reach: of documents that are "
            "not in the collection or may not be ranked, or of queries that are never asked" * bool(lost),
            "compare means with this ceiling"
            + ", or take R_cap@k instead of R@k"
            * any(f"R@{k}" in low for k in (10, 100) if relevant.max() > k),
            (*best.items(), ("out of reach", float(lost))),
        )


def _odd_grades(grade: Grades) -> Iterator[Finding]:
    total, reaching = len(grade), int(np.count_nonzero(grade >= 1))
    between = int(np.count_nonzero((grade > 0) & (grade < 1)))
    if between:
        yield Finding(
            "note" if reaching else "caution",
            f"{between:,} of {total:,} judgments {one_or_more(between, 'is', 'are')} above 0 and below 1, "
            f"{reaching:,} {one_or_more(reaching, 'reaches', 'reach')} 1",
            "nDCG gains by them; measures of relevance begin at 1 by default; to change it: AP(rel=0.5)",
            (("between 0 and 1", float(between)), ("from 1", float(reaching))),
        )
    below = int(np.count_nonzero(grade < 0))
    if below:
        least = float(grade.min())
        yield Finding(
            "note",
            f"{part_of(below, total, 'judgments', 'is', 'are')} below 0, down to {least:g}; "
            "they count as judged and not relevant",
            "see what the collection means by them: some tools count them as unjudged, or subtract them",
            (("below 0", float(below)), ("least", least)),
        )


def _judged_counts(qrels: Qrels) -> Finding:
    judged = np.bincount(qrels.query_of_row(), minlength=len(qrels))
    quartiles = np.quantile(judged, [0, 0.25, 0.5, 0.75, 1]).tolist()
    counts = [
        (value, int(count)) for value, count in zip(*np.unique(qrels.grade, return_counts=True), strict=True)
    ]
    few = "; grades " + ", ".join(f"{value:g}: {count:,}" for value, count in counts)
    names = ("fewest", "first quartile", "median", "third quartile", "most")
    return Finding(
        "note",
        f"{counted(round(quartiles[2]), 'judged document')} a query at the median, "
        f"{rounding.count(quartiles[0])} to {rounding.count(quartiles[4])}"
        + (few if len(counts) <= GRADES_SHOWN else ""),
        numbers=(
            *((f"judged per query, {name}", value) for name, value in zip(names, quartiles, strict=True)),
            *((f"grade {value:g}", float(count)) for value, count in counts),
        ),
    )


@check("copied query labels", needs=["queries", "qrels"])
def copied_query_labels(subject: Subject) -> Iterator[Finding]:
    """Agreement of the judgments of queries with the same text."""
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
        agreement = (
            f"of {counted(both, 'document')} that both judge, {alike:,} "
            f"{one_or_more(alike, 'is', 'are')} judged alike"
            if both
            else "none both judge"
        )
        yield Finding(
            "serious" if alike < both else "caution",
            f"{counted(pairs, 'pair of judged queries has', 'pairs of judged queries have')} the same text; "
            f"{agreement}, {alone:,} {one_or_more(alone, 'is', 'are')} relevant to one and unjudged for the other",
            "join the judgments of such queries, or use one of them: the same ranking scores differently for each",
            (
                ("pairs", float(pairs)),
                ("judged by both", float(both)),
                ("alike", float(alike)),
                ("relevant to one", float(alone)),
            ),
        )


# Completeness of judgments, collections and pools.

BATCH_BYTES = 1 << 22


@check("unjudged queries", needs=["queries"])
def unjudged_queries(subject: Subject) -> Iterator[Finding]:
    """Queries without a judgment in any split."""
    queries = subject.need_queries()
    splits = [subject.qrels, *(training.qrels for training in subject.training)]
    unjudged = without_judgment(queries, [qrels for qrels in splits if qrels is not None])
    numbers = (("queries", float(len(unjudged))),)
    if not unjudged or all(qrels is None for qrels in splits):
        return
    if len(unjudged) == len(queries):
        yield Finding(
            "serious",
            f"none of {counted(len(queries), 'query', 'queries')} has a judgment, so that nothing can be scored",
            "judge what systems return (weir labels pool), or take the judgments that belong to these queries",
            numbers,
            tuple(unjudged),
        )
    else:
        yield Finding(
            "note",
            f"{part_of(len(unjudged), len(queries), 'queries', 'has', 'have')} no judgment in any split "
            "and are left out of every mean",
            "the collection has fewer queries to measure with than it seems to have",
            numbers,
            tuple(unjudged),
        )


@check("published counts", needs=["qrels"])
def published_counts(subject: Subject) -> Iterator[Finding]:
    """Numbers of documents, queries and judgments by grade that differ from the published collection of the name."""
    qrels = subject.all_qrels or subject.need_qrels()
    documents = None if subject.corpus is None else len(subject.corpus)
    differences = catalogue.other_counts(subject.name, len(qrels), documents, qrels.grade_counts())
    if differences:
        serious = any(catalogue.changes_scores(what) for what, _, _ in differences)
        yield Finding(
            "serious" if serious else "caution",
            catalogue.not_as_published(subject.name, differences),
            "do not set its scores beside published ones: take the whole collection, or name this one otherwise",
            tuple((what, float(here)) for what, here, _ in differences),
        )


@check("queries that are documents", needs=["corpus", "queries"])
def self_matching(subject: Subject) -> Iterator[Finding]:
    """Queries whose text a document repeats: a system finds the query itself before any answer.

    Source: Wachsmuth, Syed and Stein 2018 (ArguAna), whose queries are arguments of the collection.
    """
    queries, corpus = subject.judged_queries, subject.need_corpus()
    texts, queries_of = queries.to_dict(), dict[str, list[str]]()  # the queries of each normalised text
    for name, text in texts.items():
        if text.strip():
            queries_of.setdefault(normalised(text), []).append(name)
    document_of: dict[str, str] = {}  # the first document of the same text, alone or behind its title
    for fields in ("text", "title text"):
        for first, batch in corpus.batches(fields, BATCH_BYTES):
            for place, text in enumerate(batch):
                for name in queries_of.get(normalised(text), ()):
                    document_of.setdefault(name, corpus.ids[first + place])
    pairs = list(document_of.items())
    if not pairs:
        return
    same_name = sum(query == document for query, document in pairs)
    at = corpus.ids.codes([document for _, document in pairs])
    written = sum(
        texts[query] in (corpus.text[int(row)], corpus.view("title text", int(row), int(row) + 1)[0])
        for (query, _), row in zip(pairs, at.tolist(), strict=True)
    )
    dropped = subject.self_match == "drop"
    often = len(pairs) >= SELF_MATCHES * len(queries)
    yield Finding(
        "serious" if often and not dropped else "note",
        f"{part_of(len(pairs), len(queries), subject.queries_called, 'is', 'are')} the text of a document: {written:,} "
        f"as it is written, {len(pairs) - written:,} only after normalising; {same_name:,} under the same identifier"
        + (", which leave the rankings, as the collection says" if dropped else ""),
        ""
        if dropped
        else "leave out what a query finds of itself (weir eval --drop-self), if the document is no answer to it",
        (
            ("queries", float(len(pairs))),
            ("as written", float(written)),
            ("same identifier", float(same_name)),
        ),
        tuple(f"{query} = {document}" for query, document in pairs),
    )


@check("whole pools", needs=["runs"])
def whole_pools(subject: Subject) -> Iterator[Finding]:
    """Systems that leave out candidates of a query, or leave them unscored: a pool is ranked whole.

    Source: Wang et al. 2024 (BIRCO), whose program refuses a ranking of part of a pool.
    """
    queries, corpus = subject.asked, subject.corpus
    if queries is None or queries.metadata is None:
        return
    lists, excluded = queries.metadata.candidates, queries.metadata.excluded
    if lists is None or not lists.listed():
        return
    names = queries.ids.tolist()
    not_allowed: Sequence[Sequence[str]] = [[]] * len(names) if excluded is None else excluded.tolist()
    documents = set(lists.docs)
    if corpus is not None:
        documents = set(lists.docs.take(np.flatnonzero(corpus.ids.codes(lists.docs.strings) >= 0)))
    pools = {  # documents, neither excluded nor the query itself
        query: (set(pool) & documents) - set(without) - {query}
        for query, pool, without in zip(names, lists.tolist(), not_allowed, strict=True)
        if pool
    }
    total, longest = sum(map(len, pools.values())), max(map(len, pools.values()), default=0)
    for name, run in subject.runs.items():
        ranked = run.to_dict()
        missing = {query: len(pool - ranked.get(query, {}).keys()) for query, pool in pools.items()}
        short = [query for query, count in missing.items() if count]
        if short:
            left_out = sum(missing.values())
            yield Finding(
                "caution",
                f"leaves out {left_out:,} of {total:,} candidates, those of {len(short):,} of {len(pools):,} queries",
                f"rank each pool whole: let it re-rank pool, and keep {longest:,} documents of each query "
                "(weir run -k)",
                (("left out", float(left_out)), ("queries", float(len(short)))),
                tuple(short),
                system=name,
            )
        # Unscored candidates keep the order of the first stage.
        unscored, candidates = subject.unscored.get(name, (0, 0))
        if unscored:
            yield Finding(
                "caution",
                f"leaves {unscored:,} of {candidates:,} candidates unscored, beyond its depth",
                "name no depth: candidates are re-ranked whole",
                (("unscored", float(unscored)),),
                system=name,
            )


# Holes: how many of the returned documents are judged, and whether systems differ in that.

CUTOFF = 10
JUDGED, HOLE = parse_measure(f"Judged@{CUTOFF}"), parse_measure(f"Hole@{CUTOFF}")
BESIDE = (parse_measure(f"condensed(nDCG@{CUTOFF})"), parse_measure("RBP_residual"))
"""Other views of holes: nDCG of judged documents only, and the weight that RBP gives to unjudged documents."""
BEIR_HOLE = f"BEIR's {HOLE}"
FULLY_JUDGED = 0.9
"""Judged share of the first 10 below which holes are reported."""
UNEQUAL = 0.05
"""Difference of two systems' judged shares that is reported."""


def judged_share(judged: Judged) -> float:
    """Return the mean share of judged documents in the top 10, over answered queries; NaN if none is."""
    values = JUDGED.per_query(judged)[judged.answered]
    return float(values.mean()) if len(values) else math.nan


def hole_of_any_query(run: Run, qrels: Qrels, k: int = CUTOFF) -> float:
    """Return BEIR's Hole@k: the share of the top k ranks, over all judged queries, with a document that no
    query judges.

    Ranks beyond a ranking's end are no holes. NaN without judgments.
    """
    # The hole evaluation in BEIR's code.
    top = run.top(k)
    of_judged_query = qrels.queries.codes(top.queries.strings)[top.query_of_row()] >= 0
    judged = np.zeros(len(qrels.docs), np.bool_)
    judged[qrels.doc] = True
    at = qrels.docs.codes(top.docs.strings)[top.doc]
    holes = of_judged_query & ~((at >= 0) & judged[at])
    return int(np.count_nonzero(holes)) / (k * len(qrels)) if len(qrels) else math.nan


@check("holes", needs=["runs", "qrels"])
def holes(subject: Subject) -> Iterator[Finding]:
    """Judged share of the first 10 documents of each system, and differences between systems.

    Source: Thakur et al. 2021, section 6.
    """
    shares = {name: judged_share(judged) for name, judged in subject.joins.items() if judged.answered.any()}
    for name, share in shares.items():
        if share < FULLY_JUDGED:
            judged, ranks = subject.joins[name], []
            for rank in range(1, CUTOFF + 1):  # over the queries that return so many
                returned = int(np.count_nonzero(judged.retrieved >= rank))
                if returned:
                    ranks.append(int(np.count_nonzero(judged.rank == rank)) / returned)
            yield Finding(
                "serious" if share < 0.5 else "caution",
                f"{rounding.percent(share)} of the first {CUTOFF} documents are judged (at rank 1 "
                f"{rounding.percent(ranks[0])}, at rank {len(ranks)} {rounding.percent(ranks[-1])}); the others count "
                "as not relevant",
                "its scores may be too low: judge its unjudged answers, or compare on condensed(...) too",
                (
                    (f"judged share at {CUTOFF}", share),
                    (f"Elastic's judge rate at {CUTOFF}", share),
                    (f"ir-measures' Judged@{CUTOFF}", float(JUDGED.per_query(judged).mean())),
                    (BEIR_HOLE, hole_of_any_query(subject.runs[name], subject.need_qrels())),
                    *((f"at rank {rank}", value) for rank, value in enumerate(ranks, 1)),
                ),
                system=name,
            )
    if len(shares) > 1:
        low, high = min(shares, key=lambda n: shares[n]), max(shares, key=lambda n: shares[n])
        gap = shares[high] - shares[low]
        if gap >= UNEQUAL:
            mean = {name: float(MEASURE.per_query(subject.joins[name]).mean()) for name in (low, high)}
            pair = {name: subject.runs[name] for name in mean}
            settled = mean[low] != mean[high] and not turning_pairs(pair, subject.need_qrels())
            better = max(mean, key=mean.__getitem__)
            order = f"; whatever the unjudged ones are, {better} has the higher {MEASURE}" if settled else ""
            yield Finding(
                "caution" if settled else "serious",
                f"the systems are not judged alike: {rounding.percent(shares[high])} of the first "
                f"{CUTOFF} of {high}, {rounding.percent(shares[low])} of {low}{order}",
                "judge both to the same depth before you say how far they are apart"
                if settled
                else f"a difference of {low} to {high} may be one of judging: judge both to the same depth",
                (("difference of judged shares", gap), *shares.items()),
            )


@check("score bounds", needs=["runs", "qrels"])
def score_bounds_check(subject: Subject) -> Iterator[Finding]:
    """Range of nDCG@10 over all judgings of the unjudged documents, and systems that may change places."""
    answering = {name: run for name, run in subject.runs.items() if subject.joins[name].answered.any()}
    if not answering:
        return
    qrels, unjudged = subject.need_qrels(), "its unjudged documents"
    if len(answering) > 1:  # a relevant one that another system returns makes the ideal longer
        unjudged = f"the unjudged documents of these {len(answering)} systems"
    for name, one in score_bounds(answering, qrels).items():
        low, score, high = (float(values.mean()) for values in (one.low, one.score, one.high))
        # Condensed lists: Sakai 2007; RBP's residual: Moffat and Zobel 2008.
        views = scores_of(subject.joins[name], BESIDE).means()
        hole = float(HOLE.per_query(subject.joins[name]).mean())
        shares = ((str(HOLE), hole), (BEIR_HOLE, hole_of_any_query(subject.runs[name], qrels)))
        beside = ", ".join(f"{view} {rounding.score(value)}" for view, value in views.items())
        if high - low >= 0.005:
            yield Finding(
                "caution",
                f"{MEASURE} {rounding.score(score)} may be anything from {rounding.score(low)} "
                f"to {rounding.score(high)} by what {unjudged} are; beside it {beside}",
                "judge what is unjudged among the first 10 of each system (weir labels pool)",
                (("low", low), ("score", score), ("high", high), *views.items(), *shares),
                system=name,
            )
    turning = turning_pairs(answering, qrels)
    total = len(answering) * (len(answering) - 1) // 2
    for large in (True, False):
        pairs = [pair for pair, detected in turning.items() if detected == large]
        if not pairs:
            continue
        yield Finding(
            "serious" if large else "note",
            f"{len(pairs):,} of {total:,} pairs of systems "
            + (
                f"differ by enough for {len(qrels):,} queries to detect, and may change places by what unjudged "
                "documents are"
                if large
                else "may change places by what unjudged documents are, but differ by too little for "
                f"{len(qrels):,} queries to detect"
            ),
            "call the order of such a pair open until their unjudged documents are judged" if large else "",
            (("pairs that may turn", float(len(pairs))), ("pairs", float(total))),
            tuple(f"{better} over {worse}" for better, worse in pairs),
        )
