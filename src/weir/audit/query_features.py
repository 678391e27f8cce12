"""Groups of queries by what can be told from them: length, question word, rare words, judgments, topic."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.audit.lexical_bias import term_overlap
from weir.audit.near_questions import unit_rows
from weir.core.corpus import Queries
from weir.core.query_groups import QueryGroups
from weir.core.strings import Float64, Int64
from weir.core.subject import Subject

Float32: TypeAlias = NDArray[np.float32]

__all__ = ["feature_groups", "topics"]

QUESTION_WORDS = (
    "what",
    "who",
    "when",
    "where",
    "why",
    "how",
    "which",
    "is",
    "are",
    "do",
    "does",
    "can",
    "did",
)
NEGATION = re.compile(
    r"\b(?:no|not|never|without|neither|nor|cannot|except|excluding)\b|n't\b", re.IGNORECASE
)
CAPITALISED = re.compile(r"(?<=\S )[A-Z][\w-]+")
ANALYZER = "lucene-english"
QUERIES_PER_TOPIC = 25
MOST_TOPICS = 8
ROUNDS = 20
WORDS_SHOWN = 3
SEED = 5


def feature_groups(subject: Subject) -> Iterator[QueryGroups]:
    """Groupings of the queries, one for each feature that can be told and tells queries apart.

    What a collection says of its queries itself comes last. Raises BadValue without queries.
    """
    queries = subject.judged_queries
    names, texts = queries.ids.tolist(), queries.text.tolist()
    words = np.array([len(text.split()) for text in texts])
    found = [
        QueryGroups.of(dict(zip(names, _thirds(words, "words"), strict=True)), "length"),
        QueryGroups.of({n: _question_word(t) for n, t in zip(names, texts, strict=True)}, "question word"),
        _flag("number", "has a number", names, [any(c.isdigit() for c in text) for text in texts]),
        _flag("negation", "has a negation", names, [bool(NEGATION.search(text)) for text in texts]),
        _flag("entity", "names something", names, [bool(CAPITALISED.search(text)) for text in texts]),
        topics(subject),
    ]
    if subject.qrels is not None:
        qrels = subject.qrels
        relevant = np.bincount(qrels.query_of_row()[qrels.grade > 0], minlength=len(qrels))
        kinds = [
            "1 relevant" if n == 1 else "2 to 5 relevant" if 2 <= n <= 5 else "more" if n else ""
            for n in relevant
        ]
        found.append(
            QueryGroups.of(dict(zip(qrels.queries.tolist(), kinds, strict=True)), "relevant documents")
        )
    if subject.qrels is not None and subject.corpus is not None:
        found.append(_overlap_thirds(subject))
    if queries.metadata is not None:
        found += [
            QueryGroups.of(dict(zip(names, labels.tolist(), strict=True)), name)
            for name, labels in queries.metadata.groups.items()
        ]
    return (groups for groups in found if len(groups) > 1)


def _thirds(values: Float64 | Int64, unit: str) -> list[str]:
    """The label of each value: which third of the values it is in; "" for one that is not defined."""
    known = values[~np.isnan(values)]
    if not len(known):
        return [""] * len(values)
    low, high = np.quantile(known, [1 / 3, 2 / 3], method="lower").tolist()
    labels = [f"up to {low:.4g} {unit}", f"over {low:.4g} up to {high:.4g} {unit}", f"over {high:.4g} {unit}"]
    return ["" if np.isnan(v) else labels[int(v > low) + int(v > high)] for v in values.tolist()]


def _question_word(text: str) -> str:
    first = text.split(None, 1)[0].lower().strip("'\"") if text.strip() else ""
    return first if first in QUESTION_WORDS else "no question word"


def _flag(name: str, label: str, names: Sequence[str], here: Sequence[bool]) -> QueryGroups:
    return QueryGroups.of({n: label if yes else "none" for n, yes in zip(names, here, strict=True)}, name)


def _overlap_thirds(subject: Subject) -> QueryGroups:
    qrels = subject.need_qrels()
    good = qrels.grade > 0
    share = np.where(good, term_overlap(subject, qrels), np.nan)
    rows = good & ~np.isnan(share)
    query = qrels.query_of_row()[rows]
    total = np.bincount(query, share[rows], minlength=len(qrels))
    count = np.bincount(query, minlength=len(qrels))
    mean = np.divide(total, count, out=np.full(len(qrels), np.nan), where=count > 0)
    labels = _thirds(mean, "of the terms in relevant documents")
    return QueryGroups.of(dict(zip(qrels.queries.tolist(), labels, strict=True)), "words shared")


def topics(subject: Subject) -> QueryGroups:
    """Clusters of the queries, by meaning where there is an encoder, else by their terms; named by their chief words.

    Spherical k-means of the encoder's vectors, or of tf-idf.
    """
    queries = subject.judged_queries
    weights, words = _tf_idf(queries)
    count = min(MOST_TOPICS, len(queries) // QUERIES_PER_TOPIC)
    if count < 2 or not len(words):
        return QueryGroups.of({}, "topic")
    points = weights if subject.encoder is None else unit_rows(subject.encoder(queries))
    member = _clusters(points, count)
    labels = []
    for number in range(count):
        total = weights[member == number].sum(axis=0)
        best = np.argsort(-total, kind="stable")[:WORDS_SHOWN]
        labels.append(" ".join(words[int(i)] for i in best if total[i] > 0))
    known = np.abs(points).sum(axis=1) > 0
    rows = zip(queries.ids.tolist(), member.tolist(), known.tolist(), strict=True)
    return QueryGroups.of({name: labels[which] if here else "" for name, which, here in rows}, "topic")


def _tf_idf(queries: Queries) -> tuple[Float32, list[str]]:
    """(unit rows float32[Q, words], zeros for a query without any, the words that two queries at least have)."""
    from weir.text import TermTable, analyzers

    table = TermTable(analyzers.get(ANALYZER))
    ptr, term = table.add(queries.text)
    row, terms = np.repeat(np.arange(len(queries)), np.diff(ptr)), max(1, len(table))
    frequency = np.bincount(np.unique(row * terms + term) % terms, minlength=len(table))
    kept = np.flatnonzero(frequency >= 2)
    place = np.full(len(table) + 1, -1)
    place[kept] = np.arange(len(kept))
    weights = np.zeros((len(queries), len(kept)), np.float32)
    here = place[term] >= 0
    np.add.at(weights, (row[here], place[term[here]]), 1.0)
    weights *= np.log(len(queries) / frequency[kept]).astype(np.float32)
    return unit_rows(weights), table.terms().take(kept).tolist()


def _clusters(vectors: Float32, count: int) -> Int64:
    """The number of the cluster of each row, from rows that lie far apart as first centres."""
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
