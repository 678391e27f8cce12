"""Check for judgments, documents and groups of queries that favour one kind of system."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from weir.audit.check import EXAMPLES_SHOWN, Finding, check
from weir.audit.leakage import unit_rows
from weir.core import rounding
from weir.core.judged import Judged
from weir.core.pairs import pair_rows
from weir.core.qrels import Qrels
from weir.core.query_metadata import QueryGroups
from weir.core.rounding import counted, one_or_more
from weir.core.strings import Float64, Ids, Int64
from weir.core.subject import Subject
from weir.measures.evaluate import scores_of
from weir.measures.measure import parse_measure
from weir.stats.distributions import student_tail
from weir.stats.significance import adjusted
from weir.systems.lexical.analyzer import analyzers
from weir.systems.lexical.bm25 import BM25
from weir.systems.lexical.terms import TermTable

# Lexical bias of judgments, and hub documents.

DEPTHS = (10, 100)
ANALYZER = "lucene-english"
BIASED_SHARE = 0.95
"""Share of relevant documents among BM25's first 100 from which judgments count as lexical."""
FEWEST_DOCUMENTS = 1_000
"""Size of a collection below which a depth of 100 shows nothing."""
FIRST_RANKS = 10
FEWEST_QUERIES = 50
HUB_SHARE = 0.1
"""Least share of the queries for which a hub is in the top 10; more in a small collection (TIMES_CHANCE)."""
TIMES_CHANCE = 3
"""A hub is in the top 10 for at least this many times as many queries as by chance."""


def found_by_bm25(subject: Subject) -> dict[int, float]:
    """Return {depth: share of relevant (query, document) pairs that BM25 returns} for depths 10 and 100.

    Pairs that are not in the collection do not count; NaN without pairs.
    """
    corpus, qrels = subject.need_corpus(), subject.need_qrels()
    run = BM25().index(corpus).search(subject.judged_queries, DEPTHS[-1])
    judged = Judged.of(run, qrels)
    searched = run.queries.codes(qrels.queries.strings) >= 0
    in_corpus = corpus.ids.codes(qrels.docs.strings) >= 0
    total = int(np.count_nonzero((qrels.grade > 0) & in_corpus[qrels.doc] & searched[qrels.query_of_row()]))
    hits = judged.rank[judged.grade > 0]
    return {depth: int((hits <= depth).sum()) / total if total else float("nan") for depth in DEPTHS}


def term_overlap(subject: Subject, qrels: Qrels) -> Float64:
    """Return the share of the query's distinct terms in each judged document's text, float64[judgments].

    NaN if query or document is missing, or the query has no term.
    """
    corpus, queries = subject.need_corpus(), subject.need_queries()
    table = TermTable(analyzers.get(ANALYZER))
    ptr, term = table.add(queries.text)
    doc_at, query_at = corpus.ids.codes(qrels.docs.strings), queries.ids.codes(qrels.queries.strings)
    used = np.unique(qrels.doc)
    used = used[doc_at[used] >= 0]
    doc_ptr, doc_term = table.lookup(corpus.text.take(doc_at[used]))
    terms_of_doc = {
        doc: set(doc_term[doc_ptr[i] : doc_ptr[i + 1]].tolist()) for i, doc in enumerate(used.tolist())
    }
    if corpus.title is not None:
        title_ptr, title_term = table.lookup(corpus.title.take(doc_at[used]))
        for i, doc in enumerate(used.tolist()):
            terms_of_doc[doc].update(title_term[title_ptr[i] : title_ptr[i + 1]].tolist())
    of_query = [set(term[ptr[at] : ptr[at + 1]].tolist()) if at >= 0 else set() for at in query_at.tolist()]
    shares = [
        len(of_query[q] & terms_of_doc[d]) / len(of_query[q])
        if of_query[q] and d in terms_of_doc
        else math.nan
        for q, d in zip(qrels.query_of_row().tolist(), qrels.doc.tolist(), strict=True)
    ]
    return np.array(shares, np.float64)


@check("lexical bias", needs=["corpus", "queries", "qrels"])
def lexical_bias(subject: Subject) -> Iterator[Finding]:
    """Share of relevant documents that BM25 finds, and their word overlap with the query against other judged
    documents.

    Source: Thakur et al. 2021, section 5, on lexical bias.
    """
    qrels = subject.need_qrels()
    recall = found_by_bm25(subject)
    if np.isnan(recall[DEPTHS[0]]):
        return
    overlap = term_overlap(subject, qrels)
    shares = {}
    for name, rows in (("relevant", qrels.grade > 0), ("judged not relevant", qrels.grade <= 0)):
        values = overlap[rows & ~np.isnan(overlap)]
        if len(values):
            shares[name] = float(values.mean())
    overlaps = ", ".join(
        f"{name} documents hold {rounding.percent(share)} of the query's terms"
        for name, share in shares.items()
    )
    biased = recall[100] >= BIASED_SHARE and len(subject.need_corpus()) >= FEWEST_DOCUMENTS
    yield Finding(
        "caution" if biased else "note",
        f"BM25 finds {rounding.percent(recall[10])} of the relevant documents among its first 10 and "
        f"{rounding.percent(recall[100])} among 100; {overlaps}",
        "judgments look pooled by words: a system that finds other relevant documents is not rewarded"
        if biased
        else "",
        (
            *((f"found at {depth}", share) for depth, share in recall.items()),
            *((f"terms held by {name}", share) for name, share in shares.items()),
        ),
    )


@check("hub documents", needs=["runs"])
def hub_documents(subject: Subject) -> Iterator[Finding]:
    """Documents among a system's first ten for a tenth of the queries or more, relevant to fewer than half of these.

    In a small collection, a document counts if it is there for three times as many queries as by chance.
    Source: Radovanovic, Nanopoulos and Ivanovic 2010.
    """
    for name, run in subject.runs.items():
        top = run.top(FIRST_RANKS)
        judged = np.ones(len(top), np.bool_)
        if subject.qrels is not None:
            judged = subject.qrels.queries.codes(top.queries.strings) >= 0
        rows = judged[top.query_of_row()] & (top.doc >= 0)
        count = np.bincount(top.doc[rows], minlength=len(top.docs))
        answered = int(np.count_nonzero(np.diff(top.ptr)[judged]))
        documents = len(top.docs) if subject.corpus is None else len(subject.corpus)
        least = max(HUB_SHARE, min(1.0, TIMES_CHANCE * FIRST_RANKS / max(1, documents)))
        relevant = np.zeros_like(count)  # for how many queries each document is returned and relevant
        if subject.qrels is not None:
            qrels = subject.qrels
            row = pair_rows(qrels, top.queries, top.docs, top.query_of_row(), top.doc)
            right = np.append(qrels.grade, 0)[row] > 0
            relevant = np.bincount(top.doc[right], minlength=len(top.docs))
        often = np.flatnonzero((count >= least * answered) & (2 * relevant < np.maximum(count, 1)))
        if answered < FEWEST_QUERIES or not len(often):
            continue
        often = often[np.argsort(relevant[often] - count[often], kind="stable")]
        names = top.docs.take(often).tolist()
        most, relevant_to = int(count[often[0]]), int(relevant[often[0]])
        seldom = "" if subject.qrels is None else " and relevant to fewer than half of these"
        yield Finding(
            "caution",
            f"{counted(len(often), 'document')} {one_or_more(len(often), 'is', 'are')} among the first "
            f"{FIRST_RANKS} of {rounding.percent(least)} of the queries or more{seldom}, {names[0]} for {most:,} of "
            f"{answered:,}" + (f", relevant to {relevant_to:,}" if seldom else ""),
            "look at these texts: what is near to everything is often empty, boilerplate or a list",
            (
                ("hubs", float(len(often))),
                ("queries of the first", float(most)),
                *((("relevant to", float(relevant_to)),) if seldom else ()),
            ),
            tuple(names),
            system=name,
        )


# Groups of queries by length, question word, terms, judgments and topic.

QUESTION_WORDS = set(
    ["what", "who", "when", "where", "why", "how", "which", "is", "are", "do", "does", "can", "did"]
)
NEGATION = re.compile(
    r"\b(?:no|not|never|without|neither|nor|cannot|except|excluding)\b|n't\b", re.IGNORECASE
)
CAPITALISED = re.compile(r"(?<=\S )[A-Z][\w-]+")

QUERIES_PER_TOPIC = 25
MOST_TOPICS = 8
ROUNDS = 20
WORDS_SHOWN = 3
SEED = 5


def feature_groups(subject: Subject) -> Iterator[QueryGroups]:
    """Yield groupings of the judged queries: by length, question word, topic and so on, and by the
    collection's columns.

    Without groupings of fewer than two groups, or mostly of one query each. Raises BadValue without queries.
    """
    queries = subject.judged_queries
    names, texts = queries.ids.tolist(), queries.text.tolist()
    words = np.array([len(text.split()) for text in texts])

    def grouping(name: str, labels: Iterable[str], of: Sequence[str] = names) -> QueryGroups:
        return QueryGroups.of(dict(zip(of, labels, strict=True)), name)

    openings = [text.split(None, 1)[0].lower().strip("'\"") if text.strip() else "" for text in texts]
    groupings = [
        grouping("length", _thirds(words, "words")),
        grouping("question word", [w if w in QUESTION_WORDS else "no question word" for w in openings]),
        grouping("number", ["has a number" if any(map(str.isdigit, t)) else "has none" for t in texts]),
        grouping("negation", ["has a negation" if NEGATION.search(t) else "has none" for t in texts]),
        grouping("entity", ["names something" if CAPITALISED.search(t) else "names nothing" for t in texts]),
        topics(subject),
    ]
    if subject.qrels is not None:
        qrels = subject.qrels
        judged = qrels.queries.tolist()
        relevant = np.bincount(qrels.query_of_row()[qrels.grade > 0], minlength=len(qrels))
        kinds = [
            "1 relevant"
            if n == 1
            else "2 to 5 relevant"
            if 2 <= n <= 5
            else "6 or more relevant"
            if n
            else ""
            for n in relevant
        ]
        groupings.append(grouping("relevant documents", kinds, judged))
        if subject.corpus is not None:
            overlap = term_overlap(subject, qrels)
            rows = (qrels.grade > 0) & ~np.isnan(overlap)
            query = qrels.query_of_row()[rows]
            total = np.bincount(query, overlap[rows], minlength=len(qrels))
            count = np.bincount(query, minlength=len(qrels))
            mean = np.divide(total, count, out=np.full(len(qrels), np.nan), where=count > 0)
            labels = _thirds(mean, "of the terms in relevant documents")
            groupings.append(grouping("words shared", labels, judged))
    if queries.metadata is not None:
        columns = (grouping(name, column.tolist()) for name, column in queries.metadata.groups.items())
        groupings += [groups for groups in columns if not _of_single_queries(groups)]
    return (groups for groups in groupings if len(groups) > 1)


def _of_single_queries(groups: QueryGroups) -> bool:
    sizes = np.bincount(groups.group[groups.group >= 0], minlength=len(groups))
    return 2 * int(np.count_nonzero(sizes == 1)) > len(groups)


def _thirds(values: Float64 | Int64, unit: str) -> list[str]:
    defined = values[~np.isnan(values)]
    if not len(defined):
        return [""] * len(values)
    low, high = np.quantile(defined, [1 / 3, 2 / 3], method="lower").tolist()
    labels = [
        f"up to {low:.4g} {unit.removesuffix('s') if low == 1 else unit}",
        f"over {low:.4g} up to {high:.4g} {unit}",
        f"over {high:.4g} {unit}",
    ]
    return ["" if np.isnan(v) else labels[int(v > low) + int(v > high)] for v in values.tolist()]


def topics(subject: Subject) -> QueryGroups:
    """Return clusters of the judged queries by topic, labelled with their heaviest words; no groups if
    queries are too few or share no word.

    By spherical k-means of the encoder's vectors, or without an encoder of tf-idf weights.
    """
    queries = subject.judged_queries
    table = TermTable(analyzers.get(ANALYZER))
    ptr, term = table.add(queries.text)
    row, terms = np.repeat(np.arange(len(queries)), np.diff(ptr)), max(1, len(table))
    frequency = np.bincount(np.unique(row * terms + term) % terms, minlength=len(table))
    shared = np.flatnonzero(frequency >= 2)
    column = np.full(len(table) + 1, -1)
    column[shared] = np.arange(len(shared))
    weights = np.zeros((len(queries), len(shared)), np.float32)
    in_column = column[term] >= 0
    np.add.at(weights, (row[in_column], column[term[in_column]]), 1.0)
    weights *= np.log(len(queries) / frequency[shared]).astype(np.float32)
    weights, words = unit_rows(weights), table.terms().take(shared).tolist()
    count = min(MOST_TOPICS, len(queries) // QUERIES_PER_TOPIC)
    if count < 2 or not words:
        return QueryGroups.of({}, "topic")
    points = weights if subject.encoder is None else unit_rows(subject.encoder(queries))
    member = _spherical_k_means(points, count)
    labels = []
    for number in range(count):
        total = weights[member == number].sum(axis=0)
        best = np.argsort(-total, kind="stable")[:WORDS_SHOWN]
        labels.append(" ".join(words[int(i)] for i in best if total[i] > 0))
    nonzero = np.abs(points).sum(axis=1) > 0
    rows = zip(queries.ids.tolist(), member.tolist(), nonzero.tolist(), strict=True)
    return QueryGroups.of(
        {name: labels[which] if has_words else "" for name, which, has_words in rows}, "topic"
    )


def _spherical_k_means(vectors: NDArray[np.float32], count: int) -> Int64:
    rng = np.random.default_rng(SEED)
    chosen = [int(rng.integers(len(vectors)))]
    nearest = vectors @ vectors[chosen[0]]
    while len(chosen) < count:
        chosen.append(int(np.argmin(nearest)))
        nearest = np.maximum(nearest, vectors @ vectors[chosen[-1]])
    centres = vectors[chosen]
    member = np.zeros(len(vectors), np.int64)
    for _ in range(ROUNDS):
        member = np.argmax(vectors @ centres.T, axis=1)
        for number in range(count):
            rows = member == number
            if rows.any():
                centre = vectors[rows].sum(axis=0)
                centres[number] = centre / max(float(np.linalg.norm(centre)), 1e-12)
    return member


# Slices: groups of queries on which the difference of two systems is not that on the rest.

MEASURE = parse_measure("nDCG@10")
FEWEST_SLICE_QUERIES = 10
"""Queries of a slice, and of the rest, below which they are not compared."""
FALSE_DISCOVERY_RATE = 0.05
TURNED = 0.01
"""Size of two differences of opposite sign from which the finding is serious."""
MOST_SYSTEMS = 6
"""Number of systems up to which all pairs are compared; of more, each with the best only."""


@dataclass(frozen=True)
class Slice:
    """A group of queries, and the difference of two systems on it and on all other queries."""

    feature: str
    label: str
    queries: int
    inside: float
    """Mean of second minus first on the group; `outside` on the other queries."""
    outside: float
    p: float
    """The larger p-value of Welch's and Student's test of equal means, adjusted for all groups."""
    names: tuple[str, ...] = ()
    """Queries of the group farthest from the mean of the rest."""


def equal_means_p(a: Float64, b: Float64, pooled: bool) -> float:
    """Return the two-sided p-value of Student's (`pooled`) or Welch's t-test of equal means.

    Samples need two values each; two constant samples give 1 if equal, else 0.
    """
    difference, sizes = float(a.mean() - b.mean()), (len(a), len(b))
    variances = [float(x.var(ddof=1)) for x in (a, b)]
    if pooled:
        freedom = float(sum(sizes) - 2)
        variance = sum(v * (n - 1) for v, n in zip(variances, sizes, strict=True)) / freedom
        error = variance * (1 / sizes[0] + 1 / sizes[1])
    else:
        parts = [v / n for v, n in zip(variances, sizes, strict=True)]
        error = sum(parts)
        below = sum(part**2 / (n - 1) for part, n in zip(parts, sizes, strict=True))
        freedom = error**2 / below if error else 1.0
    if error == 0:
        return 1.0 if difference == 0 else 0.0
    return 2 * student_tail(abs(difference) / math.sqrt(error), freedom)


def slices_of(queries: Ids, differences: Float64, groupings: Sequence[QueryGroups]) -> list[Slice]:
    """Return the difference of two systems inside and outside each group of queries, smallest adjusted p-value first.

    differences: float64[queries], NaN if undefined.

    Without groups of fewer than FEWEST_SLICE_QUERIES inside or outside; of two groups that are all queries
    the larger is left out. p-values are adjusted for all groups (Benjamini and Hochberg).
    """
    defined = ~np.isnan(differences)
    samples: list[tuple[QueryGroups, str, Float64, Float64]] = []
    farthest: list[tuple[str, ...]] = []
    for groups in groupings:
        members = groups.rows(queries)
        if len(members) == 2 and sum(map(len, members.values())) == len(queries):
            smaller = min(members, key=lambda label: len(members[label]))  # the larger is its complement
            members = {smaller: members[smaller]}
        for label, rows in members.items():
            member = np.zeros(len(queries), np.bool_)
            member[rows] = True
            inside, outside = differences[member & defined], differences[~member & defined]
            if min(len(inside), len(outside)) >= FEWEST_SLICE_QUERIES:
                samples.append((groups, label, inside, outside))
                order = np.argsort(-np.abs(inside - outside.mean()), kind="stable")[:EXAMPLES_SHOWN]
                farthest.append(
                    tuple(queries[row] for row in np.flatnonzero(member & defined)[order].tolist())
                )
    if not samples:
        return []
    # Welch's alone is too sure of a few queries that happen not to differ at all, Student's of a few that differ much.
    raw = [
        max(equal_means_p(inside, outside, pooled) for pooled in (False, True))
        for *_, inside, outside in samples
    ]
    p = adjusted(np.array(raw), "bh")
    slices = [
        Slice(
            groups.name, label, len(inside), float(inside.mean()), float(outside.mean()), float(value), names
        )
        for (groups, label, inside, outside), value, names in zip(samples, p, farthest, strict=True)
    ]
    return sorted(slices, key=lambda one: one.p)


@check("slices", needs=["queries", "qrels", "runs"])
def slices(subject: Subject) -> Iterator[Finding]:
    """Kinds of queries on which the difference of two systems deviates from the difference on all other queries."""
    joins = {name: join for name, join in subject.joins.items() if join.answered.any()}
    if len(joins) < 2:
        return
    scores = {name: scores_of(join, (MEASURE,)) for name, join in joins.items()}
    queries = next(iter(joins.values())).queries
    groupings = list(feature_groups(subject))
    best = max(scores, key=lambda name: scores[name].means()[str(MEASURE)])
    pairs = (
        list(combinations(scores, 2))
        if len(scores) <= MOST_SYSTEMS
        else [(one, best) for one in scores if one != best]
    )
    for one, other in pairs:
        for part in slices_of(queries, scores[other].values[0] - scores[one].values[0], groupings):
            # The false-discovery rate is 5% for each pair of systems.
            if part.p > FALSE_DISCOVERY_RATE:
                break
            turns = part.inside * part.outside < 0 and min(abs(part.inside), abs(part.outside)) >= TURNED
            yield Finding(
                "serious" if turns else "caution",
                f"{one} to {other}: {MEASURE} changes by {rounding.change(part.inside)} on the {part.queries:,} "
                f"queries with {part.feature} '{part.label}', by {rounding.change(part.outside)} on the others (p "
                f"{rounding.score(max(part.p, 0.0001))}, adjusted)",
                "one mean hides this: report both, and look at these queries"
                if turns
                else "look at these queries",
                (
                    ("queries", float(part.queries)),
                    ("inside", part.inside),
                    ("outside", part.outside),
                    ("p", part.p),
                ),
                examples=part.names,
            )
