"""Weight benchmark collections by similarity to one's own."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

from weir.core.results import ResultKind
from weir.core.rounding import between, count, counted, percent, score
from weir.core.strings import Float64
from weir.core.tables import Table, table_of
from weir.datasets import catalogue
from weir.datasets.load import Dataset, load
from weir.errors import BadValue
from weir.experiment.published import published
from weir.experiment.results import finished_cells
from weir.measures.measure import parse_measure
from weir.stats.order_agreement import kendall_tau
from weir.stats.resampling import RESAMPLES, SEED, percentiles
from weir.systems.lexical.terms import weighted_jaccard, word_counts

BATCH_BYTES = 1 << 22
OTHER_TASK = 0.5
"""Factor of the weight of a collection with another task."""
FEWEST_COLLECTIONS = 3
ENOUGH_SCORES = 0.5
"""Share of the most published scores of any collection; one with fewer is not compared by default."""


@dataclass(frozen=True)
class Likeness:
    """A benchmark collection, with its similarity to the user's own."""

    collection: str
    task: str
    query_words: float
    """Mean length of its queries, in words split at white space."""
    document_words: float
    """Mean length of its documents, likewise."""
    overlap: float
    """Weighted Jaccard index of its documents' words and one's own; NaN if its documents were not read."""
    same_task: bool | None
    """None without a given task."""
    weight: float
    """Share of the weighted averages; all shares sum to 1."""


@dataclass(frozen=True)
class AlignedSystem:
    """A system's mean over collections, plain and weighted by their similarity to the user's."""

    system: str
    mean: float
    aligned: float
    """The mean weighted by likeness."""
    low: float
    """Lower end of the 95% interval of `aligned`."""
    high: float
    rank: int
    """Rank by `mean`, from 1."""
    aligned_rank: int
    """Rank by `aligned`, from 1."""
    own: bool
    """True for a system of the results folder, False for a published score."""


@dataclass(frozen=True)
class Alignment:
    """Benchmark collections by similarity to the user's, and systems by means weighted with it."""

    collection: str
    measure: str
    query_words: float
    document_words: float
    likenesses: tuple[Likeness, ...]
    """Most alike first."""
    systems: tuple[AlignedSystem, ...]
    """Best weighted mean first."""
    effective: float
    """Number of equally weighted collections that the weights are worth (Kish's effective sample size)."""
    tau: float
    """Kendall's tau between the orders by plain and by weighted mean."""


_Rows: TypeAlias = "list[tuple[str, str, float, float, float]]"
"""(name, task, words of a query, words of a document, overlap of words) of collections."""


def _rows_of_texts(own: Dataset, others: Sequence[Dataset]) -> _Rows:
    profile = word_counts([own.corpus, *(one.corpus for one in others)])
    rows = []
    for place, other in enumerate(others, 1):
        task = catalogue.get(other.name).task if other.name in catalogue.collection_names() else ""
        overlap = weighted_jaccard(profile.shares(0), profile.shares(place))
        rows.append((other.name, task, *_words(other), overlap))
    return rows


def _rows_of_catalogue(own: Dataset, measure: str) -> _Rows:
    entries = [
        e for e in catalogue.entries() if e.name != own.name and e.words_per_query and e.words_per_document
    ]
    scored = {e.name: sum(s.split == e.split for s in published(e.name, measure=measure)) for e in entries}
    enough = max(1.0, ENOUGH_SCORES * max(scored.values(), default=0))
    return [
        (e.name, e.task, e.words_per_query or 0.0, e.words_per_document or 0.0, math.nan)
        for e in entries
        if scored[e.name] >= enough
    ]


def _means_on(
    names: Sequence[str], measure: str, results: str | Path | None
) -> dict[tuple[str, bool], dict[str, float]]:
    means: dict[tuple[str, bool], dict[str, float]] = {}
    for name in names:
        split = catalogue.get(name).split if name in catalogue.collection_names() else ""
        for claim in published(name, measure=measure):
            if claim.split == split:
                means.setdefault((claim.model, False), {})[name] = claim.value
    for cell in () if results is None else finished_cells(Path(results)):
        for row in cell.rows:
            if row.measure == measure and not row.group:
                means.setdefault((cell.label, True), {})[cell.dataset] = row.mean
    return means


def align(
    mine: str | Path,
    others: Sequence[str | Path] = (),
    task: str | None = None,
    measure: str = "nDCG@10",
    results: str | Path | None = None,
) -> Alignment:
    """Return the similarity of benchmark collections to one's own, and systems' means weighted by it.

    mine: a collection by name or path.
    others: collections to compare by their words too; by default the catalogue's, by length and task only.
    task: the task of `mine`, as the catalogue names it.
    results: a results folder, whose systems are ranked among the published ones.

    Raises BadValue for an unknown task, fewer than three collections, or no system with scores on all.
    """
    tasks = sorted({entry.task for entry in catalogue.entries()})
    if task is not None and task not in tasks:
        raise BadValue(f"task '{task}': expected one of {', '.join(tasks)}")
    name_of_measure = str(parse_measure(measure))
    own = load(mine)
    words = _words(own)
    rows = (
        _rows_of_texts(own, [load(one) for one in others])
        if others
        else _rows_of_catalogue(own, name_of_measure)
    )
    likenesses = _weighted(rows, words, task)
    if len(likenesses) < FEWEST_COLLECTIONS:
        count = counted(len(likenesses), "collection")
        raise BadValue(f"{count} to compare {own.name} with; name {FEWEST_COLLECTIONS} or more")
    names = [one.collection for one in likenesses]
    means = _means_on(names, name_of_measure, results)
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
    """Return the systems, best weighted mean first, with 95% bootstrap intervals over collections.

    scores: {(system, True for one's own): float64[collections]}.
    weights: of the collections, summing to 1.
    """
    # A resample draws as many collections with replacement and normalises their weights again.
    rng = np.random.default_rng(SEED)
    times = rng.multinomial(len(weights), np.full(len(weights), 1 / len(weights)), RESAMPLES) * weights
    times /= times.sum(axis=1, keepdims=True)
    names = list(scores)
    values = np.stack([scores[name] for name in names])
    plain, weighted = values.mean(axis=1), values @ weights
    low, high = percentiles(times @ values.T).T
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
    queries = [len(text.split()) for text in dataset.queries.text]
    corpus = dataset.corpus
    documents = sum(len(t.split()) for _, texts in corpus.batches("title text", BATCH_BYTES) for t in texts)
    if not queries or not len(corpus):
        raise BadValue(f"{dataset.name} has no judged queries or no documents to compare")
    return float(np.mean(queries)), documents / len(corpus)


def _weighted(
    rows: Sequence[tuple[str, str, float, float, float]], words: tuple[float, float], task: str | None
) -> list[Likeness]:
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


def _align_tables(results: Sequence[Alignment]) -> tuple[Table, ...]:
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
                percent(other.weight),
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
            + (f"; {count(more)} more systems in JSON" if more else "")
        )
        tables += [table_of(lines, right=3 + read), table_of(systems, right=5, notes=[note])]
    return tuple(tables)


ALIGNMENTS = ResultKind("align", Alignment, _align_tables, parts="systems")
