"""Check for judged queries that systems may have been trained on, and for overlap of collections."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from weir.audit.check import Finding, check
from weir.core import rounding
from weir.core.corpus import Queries
from weir.core.rounding import one_or_more, part_of
from weir.core.strings import Float64, Int64
from weir.core.subject import Subject, TextEncoder, Training
from weir.datasets.card import normalised
from weir.measures.evaluate import scores_of
from weir.measures.measure import parse_measure
from weir.stats.resampling import interval
from weir.systems.lexical.terms import layout, weighted_jaccard, word_counts

MEASURE = parse_measure("nDCG@10")
GRAM_WORDS = 13
"""Number of consecutive words shared with a training query that make a query known."""
SERIOUS_SHARE = 0.05
"""Share of known queries from which the finding is serious."""
MOVED = 0.005
"""Change of a mean without the known queries from which the finding is serious."""


@dataclass(frozen=True, eq=False)
class Leaks:
    """Which test queries are in training data, by four definitions, bool[queries] each."""

    exact: NDArray[np.bool_]
    """The same text."""
    normalised: NDArray[np.bool_]
    """The same after Unicode, case and white space are normalised."""
    grams: NDArray[np.bool_]
    """GRAM_WORDS consecutive words are shared."""
    pairs: NDArray[np.bool_]
    """A relevant document is also relevant to a training query of the same normalised text."""

    @property
    def any(self) -> NDArray[np.bool_]:
        """True for each query whose text is in the training data by any definition, bool[queries]."""
        by_text: NDArray[np.bool_] = self.exact | self.normalised | self.grams
        return by_text


def leaks(queries: Queries, training: Training, relevant: Mapping[str, set[str]]) -> Leaks:
    """Return which test queries are in training data.

    relevant: {test query: its relevant documents}.
    """
    texts = queries.text.tolist()
    training_texts = training.queries.text.tolist()
    same, grams = set(training_texts), {g for text in training_texts for g in _grams(text)}
    trained = {} if training.qrels is None else training.qrels.to_dict()
    forms: dict[str, set[str]] = {}  # relevant documents by normalised text
    for name, text in training.queries.to_dict().items():
        documents = forms.setdefault(normalised(text), set())
        documents.update(doc for doc, grade in trained.get(name, {}).items() if grade > 0)
    exact = [text in same for text in texts]
    alike = [normalised(text) in forms for text in texts]
    shared = [any(g in grams for g in _grams(text)) for text in texts]
    pairs = [
        bool(relevant.get(name, set()) & forms.get(normalised(text), set()))
        for name, text in zip(queries.ids.tolist(), texts, strict=True)
    ]
    return Leaks(*(np.array(column, np.bool_) for column in (exact, alike, shared, pairs)))


def _grams(text: str) -> Iterator[tuple[str, ...]]:
    words = normalised(text).split()
    return (tuple(words[i : i + GRAM_WORDS]) for i in range(len(words) - GRAM_WORDS + 1))


@check("leakage", needs=["queries", "qrels", "training"])
def leakage(subject: Subject) -> Iterator[Finding]:
    """Judged queries that are among the training queries: the same, the same after normalising, 13 words in a row.

    With rankings, each system's score with and without them. Sources: Brown et al. 2020 for the 13 words; the
    maintainers of MTEB on training sets in tests.
    """
    qrels, queries = subject.need_qrels(), _in_judged_order(subject)
    relevant = {
        name: {doc for doc, grade in judged.items() if grade > 0} for name, judged in qrels.to_dict().items()
    }
    for training in subject.training:
        leaked = leaks(queries, training, relevant)
        rows = np.flatnonzero(leaked.any)
        if not len(rows):
            continue
        names = {queries.ids[int(row)] for row in rows}
        effects, clean_means, moved = "", [], 0.0
        for name, join in subject.joins.items():
            values = scores_of(join, (MEASURE,)).values[0]
            clean = np.array([query not in names for query in join.queries.tolist()]) & ~np.isnan(values)
            if clean.any() and join.answered.any():
                low, high = interval(values[clean], unit=True)
                mean, whole = float(values[clean].mean()), float(np.nanmean(values))
                effects += (
                    f"; {name}: {MEASURE} {rounding.score(mean)} {rounding.between(low, high)} "
                    f"without these {len(rows):,}, {rounding.score(whole)} with"
                )
                clean_means.append((f"{name} without them", mean))
                moved = max(moved, abs(mean - whole))
        numbers = {
            "same": int(leaked.exact.sum()),
            "normalised": int((leaked.normalised & ~leaked.exact).sum()),
            "words in a row": int((leaked.grams & ~leaked.normalised).sum()),
            "pairs": int(leaked.pairs.sum()),
        }
        yield Finding(
            "serious" if len(rows) / len(queries) >= SERIOUS_SHARE or moved >= MOVED else "caution",
            f"{part_of(numbers['same'] + numbers['normalised'], len(queries), 'judged queries', 'is', 'are')} in "
            f"{training.name} ({numbers['same']:,} as written, {numbers['normalised']:,} only after normalising; "
            f"{numbers['pairs']:,} with a relevant document), {numbers['words in a row']:,} more "
            f"{one_or_more(numbers['words in a row'], 'shares', 'share')} {GRAM_WORDS} words in a row with a query of "
            f"it{effects}",
            "a system that was trained on it has seen these: report the score without them too",
            (
                ("queries", float(len(rows))),
                *((name, float(number)) for name, number in numbers.items()),
                *clean_means,
            ),
            tuple(queries.ids[int(row)] for row in rows),
        )


def _in_judged_order(subject: Subject) -> Queries:
    queries = subject.need_queries()
    codes = queries.ids.codes(subject.need_qrels().queries.strings)
    return queries.take(codes[codes >= 0])


QUOTED_WORDS = 6
"""Fewest words of a query that documents do not repeat by chance."""
BATCH_BYTES = 1 << 22
_WORD = re.compile(r"\w+")


def _words(text: str) -> list[str]:
    return _WORD.findall(normalised(text))


@check("quoted queries", needs=["corpus", "queries"])
def quoted_queries(subject: Subject) -> Iterator[Finding]:
    """Documents that quote a query of 6 words or more, word for word, beside other text.

    Case and punctuation are ignored.
    """
    queries, corpus = subject.judged_queries, subject.need_corpus()
    words = ((name, _words(text)) for name, text in queries.to_dict().items())
    long = {name: of for name, of in words if len(of) >= QUOTED_WORDS}
    by_start = dict[tuple[str, ...], list[str]]()
    for name, of in long.items():
        by_start.setdefault(tuple(of[:QUOTED_WORDS]), []).append(name)
    found: dict[str, list[str]] = {}  # documents by query
    for first, batch in corpus.batches("title text", BATCH_BYTES) if long else ():
        for place, text in enumerate(batch):
            here = _words(text)
            starts = zip(*(here[shift:] for shift in range(QUOTED_WORDS)), strict=False)
            quoted = {
                name
                for at, start in enumerate(starts)
                if start in by_start
                for name in by_start[start]
                if here[at : at + len(long[name])] == long[name] != here
            }
            for name in quoted:
                found.setdefault(name, []).append(corpus.ids[first + place])
    if not found:
        return
    qrels = {} if subject.qrels is None else subject.qrels.to_dict()
    relevant = sum(any(qrels.get(name, {}).get(doc, 0) > 0 for doc in docs) for name, docs in found.items())
    called = f"{subject.queries_called} of {QUOTED_WORDS} words or more"
    yield Finding(
        "caution" if len(found) >= SERIOUS_SHARE * len(queries) else "note",
        f"{part_of(len(found), len(long), called, 'is', 'are')} quoted word for word in documents, "
        f"{relevant:,} of them in a relevant one",
        "see whether documents were made with the queries at hand: matching of words finds such documents, whatever "
        "they answer",
        (
            ("queries", float(len(found))),
            ("long queries", float(len(long))),
            ("in a relevant document", float(relevant)),
        ),
        tuple(f"{name} in {found[name][0]}" for name in long if name in found),
    )


NEAR_COSINE = 0.95
"""Cosine of two queries' vectors from which they mean nearly the same."""
BLOCK_QUERIES = 1024


def nearest_training(queries: Queries, training: Training, encode: TextEncoder) -> tuple[Float64, Int64]:
    """Return (cosine, row) of each query's nearest training query, float64[queries] and int64[queries]; both -1
    without training queries.

    encode: returns the vectors of queries, float32[n, d].
    """
    mine, theirs = unit_rows(encode(queries)), unit_rows(encode(training.queries))
    cosine, at = np.full(len(mine), -1.0), np.full(len(mine), -1, np.int64)
    for start in range(0, len(mine) if len(theirs) else 0, BLOCK_QUERIES):
        product = mine[start : start + BLOCK_QUERIES] @ theirs.T
        best = product.argmax(axis=1)
        at[start : start + len(best)] = best
        cosine[start : start + len(best)] = product[np.arange(len(best)), best]
    return cosine, at


def unit_rows(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the rows scaled to Euclidean length 1, float32[n, d]; zero rows stay zero."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(np.divide(vectors, length, out=np.zeros_like(vectors), where=length > 0), np.float32)


@check("leakage by meaning", needs=["queries", "qrels", "training", "encoder"])
def leakage_by_meaning(subject: Subject) -> Iterator[Finding]:
    """Judged queries that an encoder puts next to a training query, by a cosine of 0.95 or more, whether or not
    `leakage` finds them by their words.

    The meaning of such a cosine depends on the encoder.
    """
    encode, queries = subject.need_encoder(), _in_judged_order(subject)
    for training in subject.training:
        cosine, at = nearest_training(queries, training, encode)
        near = np.flatnonzero(cosine >= NEAR_COSINE)
        near = near[np.argsort(-cosine[near], kind="stable")]
        if len(near):
            yield Finding(
                "caution",
                f"{rounding.count(len(near))} of {rounding.count(len(queries))} judged queries mean nearly the "
                f"same as one in {training.name}, by a cosine of {NEAR_COSINE} or more",
                "read them: a system answers training queries better than new ones",
                (("queries", float(len(near))), ("largest cosine", float(cosine[near[0]]))),
                tuple(f"{queries.ids[int(q)]} ~ {training.queries.ids[int(at[q])]}" for q in near),
            )


@check("overlap", needs=["corpus"], comparing=True)
def overlap(subjects: Sequence[Subject]) -> Iterator[Finding]:
    """Overlap of the collections' words: the weighted Jaccard index of their shares of words.

    Source: Thakur et al. 2021, appendix F.
    """
    profile = word_counts([subject.need_corpus() for subject in subjects])
    shares = [profile.shares(which) for which in range(len(subjects))]
    pairs = list(combinations(range(len(subjects)), 2))
    values = {pair: weighted_jaccard(shares[pair[0]], shares[pair[1]]) for pair in pairs}
    names = [subject.name for subject in subjects]
    alike = np.eye(len(subjects))
    for (one, other), value in values.items():
        alike[one, other] = alike[other, one] = np.nan_to_num(value)
    # Collections as points in a plane, by these indices.
    places = layout(alike).tolist()
    most, least = max(pairs, key=values.__getitem__), min(pairs, key=values.__getitem__)
    statement = (
        f"{names[most[0]]} and {names[most[1]]} have a weighted Jaccard index of words of "
        f"{rounding.score(values[most])}"
    )
    if len(pairs) > 1:
        statement = (
            f"of {len(names)} collections {statement}, the most alike; the least are {names[least[0]]} and "
            f"{names[least[1]]} with {rounding.score(values[least])}"
        )
    yield Finding(
        "note",
        statement,
        "expect systems to keep their order between collections that are alike, not between others",
        (
            *((f"{names[a]} and {names[b]}", value) for (a, b), value in values.items()),
            *((f"x of {name}", x) for name, (x, _) in zip(names, places, strict=True)),
            *((f"y of {name}", y) for name, (_, y) in zip(names, places, strict=True)),
        ),
        tuple(
            f"typical of {names[one]}: {', '.join(profile.typical(one, other))}"
            for one, other in (least, least[::-1])
        ),
    )
