"""Alignment: which benchmark collections look like mine, and what published scores come to when those count most."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from weir.core.results import result
from weir.core.rounding import between, count, counted, score, share
from weir.core.strings import Float64
from weir.core.tables import Table, table_of
from weir.datasets import catalogue
from weir.datasets.load import Dataset, load
from weir.errors import BadValue
from weir.experiment.published import published
from weir.experiment.results import finished_cells
from weir.measures.measure import parse_measure
from weir.stats.order_agreement import kendall_tau
from weir.stats.resampling import LEVEL, RESAMPLES, SEED
from weir.systems.lexical.terms import weighted_jaccard, word_counts

BATCH_BYTES = 1 << 22
OTHER_TASK = 0.5
"""What a collection of another task counts beside one of the same, all else alike."""
FEWEST_COLLECTIONS = 3
ENOUGH_SCORES = 0.5
"""Of the published scores that the most measured collection has, from which a collection is compared with unasked."""


@dataclass(frozen=True)
class Likeness:
    """How far a benchmark collection looks like mine.

    query_words, document_words: mean length, by white space; overlap: weighted Jaccard index of words, NaN where its
    documents were not read; same_task: None where no task was said; weight: share of the averages, 1 over all.
    """

    collection: str
    task: str
    query_words: float
    document_words: float
    overlap: float
    same_task: bool | None
    weight: float


@dataclass(frozen=True)
class AlignedSystem:
    """A system's mean over the compared collections, plain and by weight, with the interval of the latter.

    rank, aligned_rank: places by both, from 1; own: whether the scores are of a results folder.
    """

    system: str
    mean: float
    aligned: float
    low: float
    high: float
    rank: int
    aligned_rank: int
    own: bool


@dataclass(frozen=True)
class Alignment:
    """Which collections look like one, the most alike first, and the systems by their scores on those.

    effective: how many equally weighted collections the weights come to (Kish); tau: Kendall's, of both orders.
    """

    collection: str
    measure: str
    query_words: float
    document_words: float
    likenesses: tuple[Likeness, ...]
    systems: tuple[AlignedSystem, ...]
    effective: float
    tau: float


def align(
    mine: str | Path,
    others: Sequence[str | Path] = (),
    task: str | None = None,
    measure: str = "nDCG@10",
    results: str | Path | None = None,
) -> Alignment:
    """Compare a collection with benchmark collections, and average scores on those by likeness.

    others: collections whose texts are read, so that words count too; none: those of the catalogue with published
    lengths and scores, by length and task alone. task: of mine, as the catalogue words it. results: a results folder
    whose systems are set beside published ones. Raises BadValue for an unknown task, for fewer than three collections
    and where no system has scores on all of them, and the WeirErrors of reading.
    """
    tasks = sorted({entry.task for entry in catalogue.entries()})
    if task is not None and task not in tasks:
        raise BadValue(f"task '{task}': expected one of {', '.join(tasks)}")
    name_of_measure = str(parse_measure(measure))
    own = load(mine)
    words = _words(own)
    rows: list[
        tuple[str, str, float, float, float]
    ] = []  # name, task, words of a query and a document, overlap
    if others:
        loaded = [load(one) for one in others]
        profile = word_counts([own.corpus, *(one.corpus for one in loaded)])
        for place, other in enumerate(loaded, 1):
            own_task = catalogue.get(other.name).task if other.name in catalogue.names() else ""
            overlap = weighted_jaccard(profile.shares(0), profile.shares(place))
            rows.append((other.name, own_task, *_words(other), overlap))
    else:
        entries = [
            e
            for e in catalogue.entries()
            if e.name != own.name and e.words_per_query and e.words_per_document
        ]
        scored = {
            e.name: sum(s.split == e.split for s in published(e.name, measure=name_of_measure))
            for e in entries
        }
        enough = max(1.0, ENOUGH_SCORES * max(scored.values(), default=0))
        rows += [
            (e.name, e.task, e.words_per_query or 0.0, e.words_per_document or 0.0, math.nan)
            for e in entries
            if scored[e.name] >= enough
        ]
    likenesses = _weighted(rows, words, task)
    if len(likenesses) < FEWEST_COLLECTIONS:
        count = counted(len(likenesses), "collection")
        raise BadValue(f"{count} to compare {own.name} with; name {FEWEST_COLLECTIONS} or more")
    names = [one.collection for one in likenesses]
    means: dict[tuple[str, bool], dict[str, float]] = {}  # by (system, whether it is own), then by collection
    for name in names:
        split = catalogue.get(name).split if name in catalogue.names() else ""
        for claim in published(name, measure=name_of_measure):
            if claim.split == split:
                means.setdefault((claim.model, False), {})[name] = claim.value
    for cell in () if results is None else finished_cells(Path(results)):
        for row in cell.rows:
            if row.measure == name_of_measure and not row.group:
                means.setdefault((cell.label, True), {})[cell.dataset] = row.mean
    scores = {
        system: np.array([of[name] for name in names])
        for system, of in means.items()
        if set(names) <= set(of)
    }
    if not scores:
        raise BadValue(
            f"no system has {name_of_measure} on each of {', '.join(names)}; name fewer collections"
        )
    weights = np.array([one.weight for one in likenesses])
    ranked = aligned(scores, weights)
    tau = kendall_tau(np.array([s.mean for s in ranked]), np.array([s.aligned for s in ranked]))
    order = tuple(sorted(likenesses, key=lambda one: -one.weight))
    return Alignment(own.name, name_of_measure, *words, order, ranked, float(1 / (weights**2).sum()), tau)


def aligned(scores: Mapping[tuple[str, bool], Float64], weights: Float64) -> tuple[AlignedSystem, ...]:
    """The systems by their weighted means, the best first, each with its interval over resamples of the collections.

    scores: float64[collections] by (system, whether it is own); weights: of the collections, 1 in all. A resample draws
    as many collections, each as often as chance has it, and weighs them anew.
    """
    rng = np.random.default_rng(SEED)
    times = rng.multinomial(len(weights), np.full(len(weights), 1 / len(weights)), RESAMPLES) * weights
    times /= times.sum(axis=1, keepdims=True)
    names = list(scores)
    values = np.stack([scores[name] for name in names])
    plain, weighted = values.mean(axis=1), values @ weights
    low, high = np.quantile(times @ values.T, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    before, after = _ranks(plain), _ranks(weighted)
    return tuple(
        AlignedSystem(
            names[i][0], float(plain[i]), float(weighted[i]), float(low[i]), float(high[i]), before[i], after[i],
            names[i][1],
        )
        for i in np.argsort(-weighted, kind="stable").tolist()
    )  # fmt: skip


def _ranks(values: Float64) -> list[int]:
    return [1 + int(np.count_nonzero(values > value)) for value in values.tolist()]


def _words(dataset: Dataset) -> tuple[float, float]:
    """Mean words of a judged query and of a document, by white space."""
    queries = [len(text.split()) for text in dataset.queries.text]
    corpus = dataset.corpus
    documents = sum(len(t.split()) for _, texts in corpus.batches("title text", BATCH_BYTES) for t in texts)
    if not queries or not len(corpus):
        raise BadValue(f"{dataset.name} has no judged queries or no documents to compare")
    return float(np.mean(queries)), documents / len(corpus)


def _weighted(
    rows: Sequence[tuple[str, str, float, float, float]], words: tuple[float, float], task: str | None
) -> list[Likeness]:
    """The rows with weights: the product of ratios of lengths, of overlap where known for all, and of task if said."""
    words_known = not any(math.isnan(row[4]) for row in rows)
    alike = []
    for _, own_task, query, document, overlap in rows:
        parts = [min(a, b) / max(a, b) for a, b in zip(words, (query, document), strict=True)]
        parts += [overlap] if words_known else []
        parts += [1.0 if own_task == task else OTHER_TASK] if task is not None else []
        alike.append(math.prod(parts))
    total = math.fsum(alike)
    return [
        Likeness(
            name, own_task, query, document, overlap, None if task is None else own_task == task, one / total
        )
        for (name, own_task, query, document, overlap), one in zip(rows, alike, strict=True)
        if total
    ]


# ----------
# Tables.

SYSTEMS_SHOWN = 15


@result("align", Alignment, parts="systems")
def align_tables(results: Sequence[Alignment]) -> tuple[Table, ...]:
    """Collections by likeness, systems by their weighted means, and what they come to."""
    tables = []
    for one in results:
        read = not any(math.isnan(other.overlap) for other in one.likenesses)
        lines = [["collection", "task", "words a query", "words a document", *["overlap"] * read, "weight"]]
        own = [one.collection, "", count(one.query_words, 1), count(one.document_words, 1)]
        lines.append([*own, *[""] * read, ""])
        lines += [
            [
                other.collection,
                other.task,
                count(other.query_words, 1),
                count(other.document_words, 1),
                *[score(other.overlap)] * read,
                share(other.weight),
            ]
            for other in one.likenesses
        ]
        listed = [s for n, s in enumerate(one.systems) if n < SYSTEMS_SHOWN or s.own]
        systems = [["system", f"mean {one.measure}", "place", "by likeness", "95% interval", "place"]]
        systems += [
            [
                s.system + (" (own)" if s.own else ""),
                score(s.mean),
                count(s.rank),
                score(s.aligned),
                between(s.low, s.high),
                count(s.aligned_rank),
            ]
            for s in listed
        ]
        more = len(one.systems) - len(listed)
        note = (
            f"weights come to {count(one.effective, 1)} equal collections of {len(one.likenesses)}; Kendall's tau of "
            f"both orders is {score(one.tau)}; intervals over resamples of the collections"
            + (f"; {count(more)} more systems in --json" if more else "")
        )
        tables += [table_of(lines, right=3 + read), table_of(systems, right=5, notes=[note])]
    return tuple(tables)
