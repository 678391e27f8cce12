"""Completeness: queries that nobody judged, collections that are not as published, queries that are documents, pools of
candidates that are not ranked whole."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from weir.audit.check import Finding, check
from weir.core import rounding
from weir.core.corpus import Corpus, Queries
from weir.core.document_lists import DocumentLists
from weir.core.rounding import counted, part_of
from weir.core.subject import Subject
from weir.datasets import catalogue
from weir.datasets.same_text import normalised
from weir.datasets.self_match import SELF_MATCHES

__all__ = ["published_differences", "queries_that_are_documents"]

BATCH_BYTES = 1 << 22
COUNTS = ("documents", "judged queries")
NOTHING_GAINED = (" -2", " -1", " 0")
"""How counts of judgments end that no measure gains by."""


@check("unjudged queries", needs=["queries"])
def unjudged_queries(subject: Subject) -> Iterator[Finding]:
    """Queries that no split has a judgment of, and judgments that hold no query at all."""
    queries = subject.need_queries()
    layers = [subject.qrels, *(training.qrels for training in subject.training)]
    there = [layer for layer in layers if layer is not None]
    if not there:
        return
    judged = {name for layer in there for name in layer.queries.tolist()}
    lacking = [name for name in queries.ids.tolist() if name not in judged]
    numbers = (("queries", float(len(lacking))),)
    if lacking and len(lacking) == len(queries):
        yield Finding(
            "serious",
            f"none of {counted(len(queries), 'query', 'queries')} has a judgment, so that nothing can "
            f"be scored",
            "judge what systems return (weir pool), or take the judgments that belong to these queries",
            numbers,
            tuple(lacking),
        )
    elif lacking:
        yield Finding(
            "note",
            f"{part_of(len(lacking), len(queries), 'queries', 'has', 'have')} no judgment in any split "
            "and are left out of every mean",
            "the collection has fewer queries to measure with than it seems to have",
            numbers,
            tuple(lacking),
        )


def published_differences(subject: Subject) -> list[tuple[str, float, float]]:
    """(what, number here, number published) of each count that is not as the catalogue has it, by the subject's name.

    Documents, judged queries and judgments by grade, as far as both are there. Empty for a name it does not know.
    """
    if subject.name not in catalogue.names():
        return []
    entry = catalogue.get(subject.name)
    pairs: list[tuple[str, float, float]] = []
    if subject.corpus is not None:
        pairs.append(("documents", len(subject.corpus), entry.documents))
    if subject.qrels is not None:
        pairs.append(("judged queries", len(subject.qrels), entry.queries))
        grades = subject.qrels.grade
        found = {grade: int(np.count_nonzero(grades == grade)) for grade in np.unique(grades).tolist()}
        known = sorted({*found, *entry.grades}) if entry.grades else []
        pairs += [
            (f"judgments of grade {grade:g}", found.get(grade, 0), entry.grades.get(grade, 0))
            for grade in known
        ]
    return [(what, float(here), float(there)) for what, here, there in pairs if here != there]


@check("published counts", needs=["qrels"])
def published_counts(subject: Subject) -> Iterator[Finding]:
    """Whether a collection that bears the name of a published one has its documents, queries and judgments."""
    found = published_differences(subject)
    if found:
        said = "; ".join(
            f"{what}: {rounding.count(here)}, published {rounding.count(there)}"
            for what, here, there in found
        )
        counts = any(what in COUNTS or not what.endswith(NOTHING_GAINED) for what, _, _ in found)
        yield Finding(
            "serious" if counts else "caution",
            f"this is not {subject.name} as it was published: {said}",
            "do not set its scores beside published ones: take the whole collection, or name this one "
            "otherwise",
            tuple((what, here) for what, here, _ in found),
        )


def queries_that_are_documents(subject: Subject) -> list[tuple[str, str]]:
    """(query, document) of the same text after normalising, by text alone or by title and text; the first document.

    Queries of the split that is evaluated.
    """
    corpus, wanted = subject.need_corpus(), dict[str, list[str]]()
    for name, text in subject.judged_queries.to_dict().items():
        if text.strip():
            wanted.setdefault(normalised(text), []).append(name)
    found: dict[str, str] = {}
    for fields in ("text", "title text"):
        for first, texts in corpus.batches(fields, BATCH_BYTES):
            for place, text in enumerate(texts):
                for name in wanted.get(normalised(text), ()):
                    found.setdefault(name, corpus.ids[first + place])
    return list(found.items())


@check("queries that are documents", needs=["corpus", "queries"])
def self_matching(subject: Subject) -> Iterator[Finding]:
    """Queries whose text is that of a document: a system finds the query itself before any answer.

    Of the split that is evaluated, as texts are written or after normalising. Source: Wachsmuth, Syed and Stein 2018
    (ArguAna), whose queries are arguments of the collection.
    """
    found = queries_that_are_documents(subject)
    if not found:
        return
    queries, corpus = subject.judged_queries, subject.need_corpus()
    texts = queries.to_dict()
    same_name = sum(query == document for query, document in found)
    at = corpus.ids.codes([document for _, document in found])
    written = sum(
        texts[query] in (corpus.text[int(row)], corpus.view("title text", int(row), int(row) + 1)[0])
        for (query, _), row in zip(found, at.tolist(), strict=True)
    )
    dropped = subject.self_match == "drop"
    often = len(found) >= SELF_MATCHES * len(queries)
    yield Finding(
        "serious" if often and not dropped else "note",
        f"{part_of(len(found), len(queries), subject.queries_called, 'is', 'are')} the text of a document: {written:,} "
        f"as it is written, {len(found) - written:,} only after normalising; {same_name:,} under the same identifier"
        + (", which leave the rankings, as the collection says" if dropped else ""),
        ""
        if dropped
        else "leave out what a query finds of itself (--drop-self), if the document is no answer to it",
        (
            ("queries", float(len(found))),
            ("as written", float(written)),
            ("same identifier", float(same_name)),
        ),
        tuple(f"{query} = {document}" for query, document in found),
    )


@check("whole pools", needs=["runs"])
def whole_pools(subject: Subject) -> Iterator[Finding]:
    """Systems that leave out candidates of a query, or leave them unscored: a pool is ranked whole.

    What is left out scores as if it stood last, which the measures of whole pools do not expect, and what a re-ranker
    left unscored stands in the order of its first stage. Source: Wang et al. 2024 (BIRCO), whose program refuses a
    ranking of part of a pool.
    """
    queries, corpus = subject.asked, subject.corpus
    lists = None if queries is None or queries.metadata is None else queries.metadata.candidates
    if queries is None or lists is None or not lists.listed():
        return
    pools = _rankable(queries, lists, corpus)
    asked, total, longest = (
        len(pools),
        sum(map(len, pools.values())),
        max(map(len, pools.values()), default=0),
    )
    for name, run in subject.runs.items():
        ranked = run.to_dict()
        lacking = {query: len(pool - ranked.get(query, {}).keys()) for query, pool in pools.items()}
        short = [query for query, count in lacking.items() if count]
        if short:
            left_out = sum(lacking.values())
            yield Finding(
                "caution",
                f"{name} leaves out {left_out:,} of {total:,} candidates, those of {len(short):,} of {asked:,} queries",
                f"rank each pool whole: let it re-rank pool, and keep {longest:,} documents of each query (-k)",
                (("left out", float(left_out)), ("queries", float(len(short)))),
                tuple(short),
            )
        unscored, given = subject.unscored.get(name, (0, 0))
        if unscored:
            yield Finding(
                "caution",
                f"{name} leaves {unscored:,} of {given:,} candidates unscored, behind its depth",
                "name no depth: candidates are re-ranked whole",
                (("unscored", float(unscored)),),
            )


def _rankable(queries: Queries, lists: DocumentLists, corpus: Corpus | None) -> dict[str, set[str]]:
    """The candidates of each query that has any: documents, neither excluded nor the query itself."""
    metadata, names = queries.metadata, queries.ids.tolist()
    excluded = metadata.excluded if metadata is not None else None
    left = [[]] * len(names) if excluded is None else excluded.tolist()
    held = None if corpus is None else corpus.ids.codes(lists.docs.strings) >= 0
    known = set(lists.docs if held is None else lists.docs.take(np.flatnonzero(held)))
    pools = zip(names, lists.tolist(), left, strict=True)
    return {query: (set(pool) & known) - set(out) - {query} for query, pool, out in pools if pool}
