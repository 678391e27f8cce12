"""Faults of judgments, rankings and query classes that make scores mean something else."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from weir.audit.bias import term_overlap
from weir.core.dangling import dangling
from weir.core.judged import Judged
from weir.core.qrels import Qrels
from weir.core.query_metadata import QueryGroups
from weir.core.rounding import count, counted, part_of, percent, score
from weir.core.run import Run
from weir.core.strings import Float64
from weir.core.subject import Subject
from weir.stats.distributions import binomial_tail, student_tail
from weir.stats.sequential import by_lot


@dataclass(frozen=True)
class Fault:
    """A reason why queries and judgments are unfit to measure."""

    kind: str
    """few queries, equal systems, saturated, noisy, chosen by a system, not in the index, other documents, or
    contradicted classes."""
    statement: str
    remedy: str
    examples: tuple[str, ...] = ()
    """A few documents, queries or classes."""


EXAMPLES = 5
ALPHA = 0.01
"""Probability of a false alarm."""

# ----------
# Relevant documents that one of the systems has chosen.

AGREEMENT = 0.95
"""Share of the relevant documents within a system's first documents from which it may have chosen them."""
DEEPEST_RANK = 100
"""Depth down to which a system may have chosen documents."""
HONEST_TAIL = 0.15
"""Smallest share of relevant documents beyond a depth, against the half above it, in a ranking that did not choose."""
FIRST_EXCESS = 0.2
"""Smallest excess of a system's share of relevant documents among the first ones over every other system's."""


def chosen_by_system(joins: Mapping[str, Judged], qrels: Qrels) -> Iterator[Fault]:
    """Yield a fault for each system whose first documents seem to be the source of the relevant ones."""
    total = int(np.count_nonzero(qrels.grade > 0))
    wanted = math.ceil(AGREEMENT * total)
    ranks = {name: np.sort(joined.rank[joined.grade > 0]) for name, joined in joins.items()}
    for name, own in ranks.items():
        if not wanted or len(own) < wanted or own[wanted - 1] > DEEPEST_RANK:
            continue
        depth = int(own[wanted - 1])
        shares = {other: int(np.count_nonzero(of <= depth)) / total for other, of in ranks.items()}
        most = max((share for other, share in shares.items() if other != name), default=0.0)
        within = int(np.count_nonzero(own <= depth))
        end, below = int(np.count_nonzero(own[:within] > depth / 2)), total - within
        # Alone, the first document may be right for all queries; further ones do not end at one depth by themselves.
        ends = depth > 1 and 1 - binomial_tail(below + 1, below + end, HONEST_TAIL) < ALPHA
        if (ends and most < AGREEMENT) or (len(ranks) > 1 and shares[name] - most >= FIRST_EXCESS):
            first = "first document" if depth == 1 else f"first {depth} documents"
            beside = (
                f"; each other system has {percent(most)} of them there at most" if len(ranks) > 1 else ""
            )
            yield Fault(
                "chosen by a system",
                f"{percent(shares[name])} of the relevant documents are among the {first} of {name} for their query, "
                f"and {below:,} of {total:,} elsewhere{beside}",
                f"if {name} chose what was judged, let people judge what others find too (weir labels pool)",
                (name,),
            )


# ----------
# Relevant documents that cannot be found.

PROBES, PROBE_WORDS, PROBE_DEPTH = 100, 32, 100
"""Number of relevant documents searched by their own first words, number of these words, and depth of the search."""


def absent_documents(subject: Subject) -> Iterator[Fault]:
    """Yield a fault if the collection lacks relevant documents; nothing without documents or judgments."""
    if subject.corpus is None or subject.qrels is None:
        return
    absent = dangling(subject.qrels, subject.corpus.ids)
    if absent is not None and absent.relevant:
        total = int(np.count_nonzero(subject.qrels.grade > 0))
        yield Fault(
            "not in the index",
            f"{part_of(absent.relevant, total, 'relevant judgments', 'names a document', 'name documents')} that the "
            "collection does not have" + (f"; {absent.cause}" if absent.cause else ""),
            "take documents and judgments of one version",
            absent.documents[:EXAMPLES],
        )


def probes(subject: Subject) -> dict[str, str]:
    """Return {document: first words of its title and text} for up to PROBES random relevant documents, without empty
    ones. Raises BadValue without documents or judgments."""
    corpus, qrels = subject.need_corpus(), subject.need_qrels()
    names = qrels.docs.take(np.unique(qrels.doc[qrels.grade > 0])).tolist()
    codes = corpus.ids.codes(names)
    there = {name: int(code) for name, code in zip(names, codes, strict=True) if code >= 0}
    texts = dict[str, str]()
    for name in by_lot(there)[:PROBES]:
        title = "" if corpus.title is None else corpus.title[there[name]]
        words = f"{title} {corpus.text[there[name]]}".split()
        if words:
            texts[name] = " ".join(words[:PROBE_WORDS])
    return texts


def not_found(system: str, answers: Run, found: Run, qrels: Qrels) -> Iterator[Fault]:
    """Yield a fault if a system finds some relevant documents neither by their own words nor for any query.

    answers: rankings for the texts of `probes`, each named as its document.
    found: rankings for the queries.
    """
    tops, returned = answers.to_dict(), {doc for docs in found.to_dict().values() for doc in docs}
    missing = [
        name for name in answers.queries.tolist() if name not in tops.get(name, {}) and name not in returned
    ]
    if missing:
        probed = len(answers.queries)
        yield Fault(
            "not in the index",
            f"{part_of(len(missing), probed, 'relevant documents', 'is not', 'are not')} found by {system}, neither by "
            f"the first {PROBE_WORDS} words of their own text nor for any query",
            "see whether it holds the documents of the judgments, and under these identifiers",
            tuple(missing[:EXAMPLES]),
        )


# ----------
# Rankings of other documents.

STRANGE_SHARE, STRANGERS = 0.01, 3
"""Smallest share and number of first ten documents absent from the collection that are reported."""
SHARED_SHARE = 0.01
"""A ranking is reported if other rankings and judgments have a smaller share of its documents."""
USUAL_COUNT, UNSEEN_DEPTH, UNSEEN = 20, 100, 3
"""A ranking is reported if it lacks UNSEEN documents that every other system ranks within UNSEEN_DEPTH for USUAL_COUNT
queries."""


def other_documents(subject: Subject) -> Iterator[Fault]:
    """Yield a fault for each run whose first 10 documents seem to be of another collection, and for documents
    missing in the index."""
    tops = {name: run.top(10) for name, run in subject.runs.items()}
    for name, top in tops.items():
        used = np.unique(top.doc[top.doc >= 0])
        names = top.docs.take(used)
        if subject.corpus is not None:
            absent = np.flatnonzero(subject.corpus.ids.codes(names.strings) < 0)
            strange = bool(len(absent) >= max(STRANGERS, STRANGE_SHARE * len(used)))
            what = "that it returns among the first 10 are not in the collection"
        else:
            known = set(subject.need_qrels().docs.tolist())
            known.update(doc for other, one in tops.items() if other != name for doc in _documents(one))
            absent = np.array([at for at, doc in enumerate(names.tolist()) if doc not in known], np.int64)
            strange = len(used) - len(absent) < SHARED_SHARE * len(used)
            what = "that it returns among the first 10 are neither judged nor returned by another system"
        if strange:
            yield Fault(
                "other documents",
                f"{name}: {count(len(absent))} of {counted(len(used), 'document')} {what}",
                f"make {name} on these documents, under these identifiers",
                tuple(names.take(absent[:EXAMPLES]).tolist()),
            )
    yield from _unseen_documents(subject)


def _documents(run: Run) -> set[str]:
    return set(run.docs.take(np.unique(run.doc[run.doc >= 0])).tolist())


def _unseen_documents(subject: Subject) -> Iterator[Fault]:
    deep = {
        name: run for name, run in subject.runs.items() if np.diff(run.ptr).max(initial=0) >= UNSEEN_DEPTH
    }
    counts = {name: _counts(run.top(UNSEEN_DEPTH)) for name, run in deep.items()}
    for name, run in deep.items():
        others = [of for other, of in counts.items() if other != name]
        if len(others) < 2:
            continue
        usual = {
            doc for doc, times in others[0].items() if all(of.get(doc, 0) >= USUAL_COUNT for of in others)
        }
        unseen = sorted(usual - _documents(run)) if usual else []
        if len(unseen) >= UNSEEN:
            yield Fault(
                "other documents",
                f"{name} never has {counted(len(unseen), 'document')} that each other system has among its first "
                f"{UNSEEN_DEPTH} for {USUAL_COUNT} queries or more",
                f"make {name} anew: these documents came later, or it was not given them",
                tuple(unseen[:EXAMPLES]),
            )


def _counts(run: Run) -> dict[str, int]:
    times = np.bincount(run.doc[run.doc >= 0], minlength=len(run.docs))
    used = np.flatnonzero(times)
    return dict(zip(run.docs.take(used).tolist(), times[used].tolist(), strict=True))


# ----------
# Classes of queries whose names say something else.

_KINDS = r"[-_ ]?(hops?|doc(ument)?s?|passages?|answers?|relevant|facts?)"
NAMED = {
    "unanswerable": r"un-?answerable|no[-_ ]?answers?|not[-_ ]answerable|out[-_ ]of[-_ ](scope|domain|corpus)",
    "answerable": r"answerable",
    "one document": rf"(single|one|1){_KINDS}",
    "several documents": rf"(multi(ple)?|several|many|two|2){_KINDS}",
    "easy": r"easy|simple",
    "hard": r"hard|difficult|complex",
    "shared words": r"exact([-_ ]match)?|verbatim|lexical|keywords?",
    "other words": r"paraphras(e|es|ed|ing)|semantic|synonyms?|conceptual",
    "short": r"short",
    "long": r"long",
}
"""Patterns of class names that claim a property of their queries."""
_MOST, _FEW_QUERIES = 0.5, 10


def contradicted_classes(
    groups: Sequence[QueryGroups], subject: Subject, values: Mapping[str, Float64]
) -> Iterator[Fault]:
    """Yield a fault for each class of queries whose name, such as "hard" or "unanswerable", contradicts
    judgments or scores.

    values: {system: float64, a value for each judged query in order}.
    """
    qrels = subject.need_qrels()
    relevant = np.bincount(qrels.query_of_row()[qrels.grade > 0], minlength=len(qrels))
    for grouping in groups:
        rows = grouping.rows(qrels.queries)
        said = {
            label: kind
            for label in grouping.labels
            for kind, pattern in NAMED.items()
            if re.fullmatch(pattern, label.strip(), re.IGNORECASE)
        }
        for label, kind in said.items():
            of_class = rows.get(label, np.empty(0, np.int64))
            yield from _by_count(grouping, label, kind, of_class, relevant, qrels)
        for one, other in combinations(said, 2):
            first, second = sorted(
                (one, other), key=lambda label: said[label] in ("hard", "other words", "long")
            )
            both = [rows.get(label, np.empty(0, np.int64)) for label in (first, second)]
            if min(map(len, both)) >= _FEW_QUERIES:
                kinds = said[first], said[second]
                yield from _by_order(grouping.name, (first, second), kinds, both, subject, values)


def _by_count(
    grouping: QueryGroups,
    label: str,
    kind: str,
    rows: NDArray[np.int64],
    relevant: NDArray[np.int64],
    qrels: Qrels,
) -> Iterator[Fault]:
    number = relevant[rows]
    wrong, least, what = {
        "unanswerable": (number > 0, 0.0, "has a relevant document"),
        "answerable": (number == 0, 0.0, "has no relevant document"),
        "one document": (number > 1, _MOST, "has several relevant documents"),
        "several documents": (number < 2, _MOST, "has one relevant document at most"),
    }.get(kind, (np.zeros(len(rows), np.bool_), 0.0, ""))
    if wrong.any() and wrong.mean() > least:
        names = qrels.queries.take(rows[wrong]).tolist()
        found = part_of(len(names), len(rows), "queries", what, what.replace("has", "have", 1))
        yield _contradicted(f"{grouping.name} '{label}': {found}", names)


def _by_order(
    name: str,
    labels: tuple[str, str],
    kinds: tuple[str, str],
    rows: Sequence[NDArray[np.int64]],
    subject: Subject,
    values: Mapping[str, Float64],
) -> Iterator[Fault]:
    if kinds == ("easy", "hard"):
        means = np.mean(list(values.values()), axis=0)
        what, first, second = "mean score", means[rows[0]], means[rows[1]]
    elif (
        kinds == ("shared words", "other words")
        and subject.corpus is not None
        and subject.queries is not None
    ):
        qrels = subject.need_qrels()
        overlap = term_overlap(subject, qrels)
        known = (qrels.grade > 0) & ~np.isnan(overlap)
        of_query = qrels.query_of_row()
        what = "share of the query's words in relevant documents"
        first, second = (overlap[known & np.isin(of_query, part)] for part in rows)
    elif kinds == ("short", "long") and subject.queries is not None:
        qrels = subject.need_qrels()
        codes = subject.queries.ids.codes(qrels.queries.strings)
        words = np.array([len(subject.queries.text[int(c)].split()) if c >= 0 else np.nan for c in codes])
        what, first, second = "number of words", -words[rows[0]], -words[rows[1]]
    else:
        return
    first, second = first[~np.isnan(first)], second[~np.isnan(second)]
    if min(len(first), len(second)) < _FEW_QUERIES:
        return
    # Welch 1947.
    errors = [float(part.var(ddof=1)) / len(part) for part in (second, first)]
    difference, error = float(second.mean() - first.mean()), math.sqrt(sum(errors))
    if difference > 0 and (
        not error or student_tail(difference / error, min(len(first), len(second)) - 1) < ALPHA
    ):
        shown = [score(abs(float(part.mean()))) for part in (first, second)]
        yield _contradicted(
            f"{name}: the {what} of '{labels[0]}' is {shown[0]}, and that of '{labels[1]}' {shown[1]}", labels
        )


def _contradicted(statement: str, examples: Sequence[str]) -> Fault:
    return Fault(
        "contradicted classes",
        statement,
        "name the classes anew, or correct their queries; do not report scores by class before",
        tuple(examples[:EXAMPLES]),
    )
