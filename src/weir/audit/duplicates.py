"""Documents and queries of the same text, and what they do to judgments and scores."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from weir.audit.check import Finding, check
from weir.audit.subject import Subject
from weir.core.corpus import Corpus
from weir.core.ids import Ids
from weir.core.qrels import Qrels
from weir.core.strings import Int16, Int32, Int64, StringColumn, Strings
from weir.measures.evaluate import scores_of
from weir.measures.measure import parse_measure
from weir.stats.bootstrap import SEED, interval

__all__ = ["DuplicateGroups", "duplicate_groups", "expanded", "normalised", "title_and_text"]

DIGEST_BYTES = 16
BATCH_DOCUMENTS = 1 << 14
MEASURE = "nDCG@10"


@dataclass(frozen=True, eq=False)
class DuplicateGroups:
    """Rows that share a text: number: int64[n], the group of each row, -1 where no other row has its text."""

    number: Int64

    @property
    def rows(self) -> int:
        """Rows that share their text with another."""
        return int(np.count_nonzero(self.number >= 0))

    @property
    def surplus(self) -> int:
        """Rows beyond the first of each group."""
        return self.rows - int(self.number.max(initial=-1) + 1)

    def members(self) -> list[Int64]:
        """The rows of each group, ascending."""
        rows = np.flatnonzero(self.number >= 0)
        order = rows[np.argsort(self.number[rows], kind="stable")]
        cuts = np.flatnonzero(np.diff(self.number[order])) + 1
        return np.split(order, cuts) if len(order) else []


def normalised(text: str) -> str:
    """A text without differences of form: Unicode NFKC, lower case, each run of white space one blank."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def as_it_is(text: str) -> str:
    """The text itself."""
    return text


def duplicate_groups(
    columns: tuple[StringColumn, ...], form: Callable[[str], str] = as_it_is
) -> DuplicateGroups:
    """Rows whose texts are the same in every column, after `form`; rows without any text are in no group.

    Texts are compared by 128-bit BLAKE2b digests. Memory: 24 bytes for each row.
    """
    count = len(columns[0])
    digests = np.zeros((count, 2), np.uint64)
    empty = np.zeros(count, np.bool_)
    for start in range(0, count, BATCH_DOCUMENTS):
        stop = min(start + BATCH_DOCUMENTS, count)
        texts = [column.slice(start, stop).tolist() for column in columns]
        for row, parts in enumerate(zip(*texts, strict=True), start):
            shaped = [form(part).encode("utf-8", "surrogatepass") for part in parts]
            empty[row] = not any(part.strip() for part in shaped)
            whole = hashlib.blake2b(digest_size=DIGEST_BYTES)
            for part in shaped:
                whole.update(len(part).to_bytes(8, "little") + part)
            digests[row] = np.frombuffer(whole.digest(), np.uint64)
    _, first, group, size = np.unique(
        digests, axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    group = group.reshape(-1)
    shared = (size[group] > 1) & ~empty
    # DuplicateGroups are numbered in the order of their first rows.
    order = np.unique(first[group[shared]], return_inverse=True)[1] if shared.any() else np.zeros(0, np.int64)
    number = np.full(count, -1, np.int64)
    number[shared] = order.reshape(-1)
    return DuplicateGroups(number)


def expanded(qrels: Qrels, corpus: Corpus, groups: DuplicateGroups) -> tuple[Qrels, int]:
    """(judgments with each grade given to the unjudged duplicates of its document too, how many were added).

    Where judged duplicates disagree, an unjudged one gets the highest of their grades; judged pairs stay as they are.
    """
    at = corpus.ids.codes(qrels.docs.strings)
    row_query, row_doc, row_grade = qrels.query_of_row(), at[qrels.doc], qrels.grade
    group = np.where(row_doc >= 0, groups.number[row_doc], -1)
    members = groups.members()
    judged = set(zip(row_query[group >= 0].tolist(), row_doc[group >= 0].tolist(), strict=True))
    best: dict[tuple[int, int], int] = {}
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
    names = Strings.concatenated([qrels.docs.strings, corpus.ids.strings.take(doc)])
    docs, codes = _distinct(names)
    known = len(qrels.docs)
    return (
        Qrels.from_columns(
            qrels.queries,
            docs,
            np.concatenate([row_query, query.astype(np.int32)]),
            np.concatenate([codes[qrels.doc], codes[known:]]),
            np.concatenate([row_grade.astype(np.int64), grade]),
        ),
        len(added),
    )


def _distinct(names: Strings) -> tuple[Ids, Int32]:
    numbers: dict[str, int] = {}
    codes = [numbers.setdefault(name, len(numbers)) for name in names]
    return Ids.of(numbers), np.array(codes, np.int32)


def title_and_text(corpus: Corpus) -> tuple[StringColumn, ...]:
    """The columns of title and text, or of text alone where there are no titles."""
    return (corpus.text,) if corpus.title is None else (corpus.title, corpus.text)


@check("duplicates", needs=["corpus"])
def duplicates(subject: Subject) -> Iterator[Finding]:
    """Documents of the same text, as it is and after normalising, by text alone and by title and text.

    Where judgments are there: groups whose members one query judges differently, and relevant documents with copies
    that nobody judged; with rankings, too, the scores with judgments given to copies beside those without.
    """
    corpus = subject.need_corpus()
    both = title_and_text(corpus)
    counts = {
        "by title and text": duplicate_groups(both),
        "by text": duplicate_groups((corpus.text,)),
        "by title and text, normalised": duplicate_groups(both, normalised),
        "by text, normalised": duplicate_groups((corpus.text,), normalised),
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
    conflicts = _conflicts(qrels, corpus, groups)
    if conflicts:
        query, names = conflicts[0]
        yield Finding(
            "serious",
            f"{len(conflicts):,} times one query judges documents of the same title and text differently, such as "
            f"{' and '.join(names)} for query {query}",
            "one of the labels is wrong: judge these pairs again",
            (("pairs of query and group", float(len(conflicts))),),
            tuple(f"{q}: {', '.join(n)}" for q, n in conflicts),
        )
    wider, added = expanded(qrels, corpus, groups)
    if not added:
        return
    effects = _effects(subject, wider)
    said = "".join(f"; {text}" for text, _ in effects)
    yield Finding(
        "serious" if any(abs(change) >= 0.005 for _, change in effects) else "caution",
        f"{added:,} copies of judged documents are unjudged for the same query and count as not relevant{said}",
        "give copies the grade of their document before comparing systems (weir audit --expand)",
        (
            ("unjudged copies", float(added)),
            *((f"{MEASURE} change, {t.split(':')[0]}", c) for t, c in effects),
        ),
    )


def _conflicts(qrels: Qrels, corpus: Corpus, groups: DuplicateGroups) -> list[tuple[str, list[str]]]:
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
        grades: Int16 = grade[part]
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
        after = scores_of(type(subject.joins[name]).of(run, wider), (measure,))
        difference = after.in_id_order(MEASURE) - before.in_id_order(MEASURE)
        low, high = interval(difference, np.random.default_rng(SEED))
        change = float(difference.mean())
        found.append((f"{name}: {MEASURE} {change:+.4f} [{low:+.4f}, {high:+.4f}]", change))
    return found


@check("duplicate queries", needs=["queries"])
def duplicate_queries(subject: Subject) -> Iterator[Finding]:
    """Queries of the same text after normalising."""
    queries = subject.need_queries()
    groups = duplicate_groups((queries.text,), normalised)
    if not groups.rows:
        return
    members = groups.members()
    examples = tuple(" = ".join(queries.ids[int(row)] for row in group[:4]) for group in members[:5])
    yield Finding(
        "caution",
        f"{groups.rows:,} of {len(queries):,} queries share their text with another ({groups.surplus:,} surplus)",
        "intervals and tests take queries as independent: count copies once, or resample groups",
        (("queries", float(groups.rows)), ("surplus", float(groups.surplus))),
        examples,
    )
