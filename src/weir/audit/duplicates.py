"""Documents and queries of the same text, and what they do to judgments and scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from weir.audit.check import Finding, check
from weir.core import rounding
from weir.core.corpus import Corpus
from weir.core.judged import Judged
from weir.core.layers import merge_qrels
from weir.core.qrels import Qrels
from weir.core.rounding import one_or_more, times
from weir.core.strings import Int32, StringColumn
from weir.core.subject import Subject
from weir.datasets.same_text import DuplicateGroups, duplicate_groups, normalised, title_and_text
from weir.measures.evaluate import scores_of
from weir.measures.measure import parse_measure
from weir.stats.bootstrap import SEED, interval

__all__ = ["conflicts", "copies", "expanded"]

MEASURE = "nDCG@10"


def expanded(qrels: Qrels, corpus: Corpus, groups: DuplicateGroups) -> tuple[Qrels, int]:
    """(judgments with each grade given to the unjudged duplicates of its document too, how many were added).

    Where judged duplicates disagree, an unjudged one gets the highest of their grades; judged pairs stay as they
    are. The origin of those added is "duplicate".
    """
    at = corpus.ids.codes(qrels.docs.strings)
    row_query, row_doc, row_grade = qrels.query_of_row(), at[qrels.doc], qrels.grade
    group = np.where(row_doc >= 0, groups.number[row_doc], -1)
    members = groups.members()
    judged = set(zip(row_query[group >= 0].tolist(), row_doc[group >= 0].tolist(), strict=True))
    best: dict[tuple[int, int], float] = {}
    for query, number, grade in zip(
        row_query[group >= 0].tolist(),
        group[group >= 0].tolist(),
        row_grade[group >= 0].tolist(),
        strict=True,
    ):
        best[query, number] = max(grade, best.get((query, number), grade))
    added = [
        (query, int(doc), grade)
        for (query, number), grade in best.items()
        for doc in members[number]
        if (query, int(doc)) not in judged
    ]
    if not added:
        return qrels, 0
    query, doc, grade = (np.array(column) for column in zip(*added, strict=True))
    shared = Qrels.from_columns(qrels.queries, corpus.ids, query, doc, grade)
    return merge_qrels(qrels, shared.labelled("duplicate")), len(added)


def _with_text(groups: DuplicateGroups, columns: Sequence[StringColumn]) -> DuplicateGroups:
    """The groups without that of the rows that hold nothing but white space: those are no copies of anything."""
    firsts = [int(rows[0]) for rows in groups.members()]
    empty = [n for n, row in enumerate(firsts) if not any(column[row].strip() for column in columns)]
    left = np.setdiff1d(np.unique(groups.number[groups.number >= 0]), empty)
    renumbered = np.full(len(firsts) + 1, -1, np.int64)
    renumbered[left] = np.arange(len(left))
    return DuplicateGroups(renumbered[groups.number])


def copies(columns: Sequence[StringColumn], form: Callable[[str], str] | None = None) -> DuplicateGroups:
    """Rows that share a text, rows without any text left out; arguments as `duplicate_groups`."""
    return _with_text(duplicate_groups(columns, form), columns)


@check("duplicates", needs=["corpus"])
def duplicates(subject: Subject) -> Iterator[Finding]:
    """Documents of the same text, as it is and after normalising, by text alone and by title and text.

    Where judgments are there: groups whose members one query judges differently, and relevant documents with copies
    that nobody judged; with rankings, too, the scores with judgments given to copies beside those without.
    """
    corpus = subject.need_corpus()
    both = title_and_text(corpus)
    counts = {
        "by title and text": copies(both),
        "by text": copies((corpus.text,)),
        "by title and text, normalised": copies(both, normalised),
        "by text, normalised": copies((corpus.text,), normalised),
    }
    numbers = [(f"documents {name}", float(g.rows)) for name, g in counts.items()]
    numbers += [(f"surplus {name}", float(g.surplus)) for name, g in counts.items()]
    widest = counts["by text, normalised"]
    if not widest.rows:
        return
    said = "; ".join(f"{name} {g.rows:,} ({g.surplus:,} surplus)" for name, g in counts.items())
    examples = tuple(" = ".join(corpus.ids[int(row)] for row in group[:4]) for group in widest.members()[:5])
    yield Finding(
        "caution",
        f"{widest.rows:,} of {len(corpus):,} documents share their text with another: {said}",
        "a ranking that returns copies is scored for each of them; see what judging copies alike changes",
        tuple(numbers),
        examples,
    )
    if subject.qrels is not None:
        yield from _judged_copies(subject, counts["by title and text, normalised"])


def _judged_copies(subject: Subject, groups: DuplicateGroups) -> Iterator[Finding]:
    corpus, qrels = subject.need_corpus(), subject.need_qrels()
    clashes = conflicts(qrels, corpus, groups)
    if clashes:
        query, names = clashes[0]
        yield Finding(
            "serious",
            f"{times(len(clashes))} one query judges documents of the same title and text differently, such as "
            f"{' and '.join(names)} for query {query}",
            "one of the labels is wrong: judge these pairs again",
            (("pairs of query and group", float(len(clashes))),),
            tuple(f"{q}: {', '.join(n)}" for q, n in clashes),
        )
    wider, added = expanded(qrels, corpus, groups)
    if not added:
        return
    effects = _effects(subject, wider)
    said = "".join(f"; {text}" for text, _ in effects)
    yield Finding(
        "serious" if any(abs(change) >= 0.005 for _, change in effects) else "caution",
        f"{added:,} {one_or_more(added, 'copy of a judged document is', 'copies of judged documents are')} "
        f"unjudged for the same query and {one_or_more(added, 'counts', 'count')} as not relevant{said}",
        "give copies the grade of their document before comparing systems (weir audit --expand)",
        (
            ("unjudged copies", float(added)),
            *((f"{MEASURE} change, {t.split(':')[0]}", c) for t, c in effects),
        ),
    )


def conflicts(qrels: Qrels, corpus: Corpus, groups: DuplicateGroups) -> list[tuple[str, list[str]]]:
    """(query, documents) of each group that one query judges with more than one grade."""
    at = corpus.ids.codes(qrels.docs.strings)[qrels.doc]
    group = np.where(at >= 0, groups.number[at], -1)
    rows = np.flatnonzero(group >= 0)
    query: Int32 = qrels.query_of_row()[rows]
    order = np.lexsort((group[rows], query))
    rows, query = rows[order], query[order]
    number, grade = group[rows], qrels.grade[rows]
    cuts = np.flatnonzero((np.diff(query) != 0) | (np.diff(number) != 0)) + 1
    found = []
    for part in np.split(np.arange(len(rows)), cuts) if len(rows) else []:
        grades = grade[part]
        if grades.min() != grades.max():
            found.append(
                (qrels.queries[int(query[part[0]])], [qrels.docs[int(qrels.doc[r])] for r in rows[part]])
            )
    return found


def _effects(subject: Subject, wider: Qrels) -> list[tuple[str, float]]:
    """For each system what judging copies alike does to its mean, with the interval of the difference."""
    measure = parse_measure(MEASURE)
    found = []
    for name, run in subject.runs.items():
        before = scores_of(subject.joins[name], (measure,))
        after = scores_of(Judged.of(run, wider), (measure,))
        difference = after.in_id_order(MEASURE) - before.in_id_order(MEASURE)
        low, high = interval(difference, np.random.default_rng(SEED))
        change = float(difference.mean())
        found.append(
            (
                f"{name}: {MEASURE} {rounding.change(change)} [{rounding.change(low)}, {rounding.change(high)}]",
                change,
            )
        )
    return found


@check("duplicate queries", needs=["queries"])
def duplicate_queries(subject: Subject) -> Iterator[Finding]:
    """Queries of the split that is evaluated with the same text, as it is written or after normalising."""
    queries = subject.judged_queries
    groups, written = copies((queries.text,), normalised), copies((queries.text,)).rows
    if not groups.rows:
        return
    members = groups.members()
    examples = tuple(" = ".join(queries.ids[int(row)] for row in group[:4]) for group in members[:5])
    yield Finding(
        "caution",
        f"{groups.rows:,} of {len(queries):,} {subject.queries_called} share their text with another: {written:,} as "
        f"it is written, {groups.rows - written:,} only after normalising ({groups.surplus:,} surplus)",
        "intervals and tests take queries as independent: count copies once, or resample groups",
        (("queries", float(groups.rows)), ("as written", float(written)), ("surplus", float(groups.surplus))),
        examples,
    )
