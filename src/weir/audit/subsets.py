"""Mini collections: fewer documents and queries, with the proof of how far they rank systems as the whole does."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from weir.core.corpus import Corpus, Queries
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.core.strings import Float64, Int64
from weir.datasets.load import Dataset, load
from weir.errors import BadValue
from weir.io.collections.write_collection import write_collection
from weir.io.storage.atomic import atomic_dir
from weir.measures.evaluate import evaluate
from weir.measures.measure import Measure, parse_measure
from weir.stats.rank_stability import kendall_tau, order_interval
from weir.systems.expression import parse_system
from weir.systems.protocol import Retriever

__all__ = ["SYSTEMS_COMPARED", "Subset", "SubsetProof", "chosen", "proof", "write_subset"]

SYSTEMS_COMPARED = (
    "bm25",
    "bm25(b=0.0)",
    "bm25(b=1.0)",
    "bm25(k1=0.1)",
    "bm25(k1=3.0, b=0.2)",
    'bm25("bm25s")',
    "rm3(bm25)",
)
"""Cheap systems that differ, by which a subset is proved unless others are named."""
NDCG_AT_10 = parse_measure("nDCG@10")
JUDGED_PART = 0.5
"""Share of the documents that judged ones may take; queries are drawn as long as theirs fit."""
HARD_NEGATIVES = 10
"""First documents of BM25 that are taken for each query, as far as there is room."""
RESAMPLES = 1000
LEAST_TAU = 0.8
"""Lower bound of Kendall's tau from which a subset is called valid."""
Tell = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class Subset:
    """Numbers of the documents and of the judged queries of a collection that are taken, ascending."""

    docs: Int64
    queries: Int64


@dataclass(frozen=True)
class SubsetProof:
    """How a subset ranks systems, beside the whole collection.

    whole, part: mean of the measure of each system; tau: Kendall's tau-b of both orders; low, high: its 95% percentile
    interval over resamples of the subset's queries; NaN where all are equal.
    """

    measure: str
    systems: tuple[str, ...]
    whole: tuple[float, ...]
    part: tuple[float, ...]
    documents: int
    queries: int
    tau: float
    low: float
    high: float

    @property
    def valid(self) -> bool:
        """Whether the interval lies above LEAST_TAU: systems are ranked as the whole ranks them."""
        return self.low >= LEAST_TAU


def chosen(dataset: Dataset, documents: int, seed: int = 1) -> Subset:
    """Draw a subset: queries with all their judged documents, then BM25's first answers, then documents at random.

    Raises BadValue where the collection has no more documents, or not even one query's judgments fit.
    """
    corpus, queries = dataset.corpus, dataset.queries
    if not 0 < documents < len(corpus):
        raise BadValue(f"{dataset.name} has {len(corpus):,} documents; a subset of {documents:,} is none")
    rng = np.random.default_rng(seed)
    asked, kept = _queries_that_fit(dataset, rng.permutation(len(queries)).tolist(), JUDGED_PART * documents)
    if not asked:
        raise BadValue(
            f"{documents:,} documents hold the judged ones of no query of {dataset.name}; take more"
        )
    taken = np.sort(np.array(asked, np.int64))
    near = parse_system("bm25").index(corpus).search(queries.take(taken), HARD_NEGATIVES)
    hard = near.doc[np.argsort(near.ranks(), kind="stable")]
    wanted = dict.fromkeys([*kept, *hard.tolist(), *rng.permutation(len(corpus)).tolist()])
    return Subset(np.sort(np.array(list(wanted)[:documents], np.int64)), taken)


def _queries_that_fit(dataset: Dataset, order: Sequence[int], most: float) -> tuple[list[int], list[int]]:
    """(queries, in this order, whose judged documents have room together, those documents)."""
    qrels = dataset.qrels
    at = dataset.corpus.ids.codes(qrels.docs.strings)
    of_query = qrels.queries.codes(dataset.queries.ids.strings)
    taken: list[int] = []
    kept: dict[int, None] = {}
    for query in order:
        row = int(of_query[query])
        judged = at[qrels.doc[qrels.ptr[row] : qrels.ptr[row + 1]]]
        wider = kept | dict.fromkeys(judged[judged >= 0].tolist())
        if len(wider) <= most:
            kept = wider
            taken.append(query)
    return taken, list(kept)


def write_subset(dataset: Dataset, subset: Subset, folder: Path) -> Dataset:
    """Write the subset in Weir's layout, whole or not at all; raises BadValue for a folder that is there."""
    if folder.exists():
        raise BadValue(f"{folder} is there already; give another folder")
    corpus = dataset.corpus
    title = None if corpus.title is None else corpus.title.take(subset.docs)
    part = Corpus(corpus.ids.take(subset.docs), corpus.text.take(subset.docs), title)
    queries = dataset.queries.take(subset.queries)
    with atomic_dir(folder) as temporary:
        write_collection(temporary, part, queries, _judgments(dataset.qrels, queries, part))
    return load(folder)


def _judgments(qrels: Qrels, queries: Queries, corpus: Corpus) -> Qrels:
    """The judgments of these queries on these documents."""
    mine = qrels.only(qrels.queries.codes(queries.ids.strings))
    rows = corpus.ids.codes(mine.docs.strings)[mine.doc] >= 0
    return Qrels.from_columns(
        mine.queries, mine.docs, mine.query_of_row()[rows], mine.doc[rows], mine.grade[rows]
    )


def proof(
    whole: Dataset,
    part: Dataset,
    systems: Sequence[str | Retriever] = SYSTEMS_COMPARED,
    measure: Measure = NDCG_AT_10,
    tell: Tell = lambda said: None,
) -> SubsetProof:
    """Run systems on both and compare the orders; raises BadValue for fewer than three systems."""
    named = [parse_system(one) if isinstance(one, str) else one for one in systems]
    if len(named) < 3:
        raise BadValue(f"{len(named)} systems have no order worth comparing; name three at least, better six")
    values: list[Float64] = []
    for dataset in (whole, part):
        rows = []
        for system in named:
            tell(f"{system} on {dataset.name}")
            rows.append(_values(dataset, system, measure))
        values.append(np.array(rows))
    rng = np.random.default_rng(1)
    few = values[1].shape[1]
    drawn = [_tau(values[0], values[1][:, rng.integers(0, few, few)]) for _ in range(RESAMPLES)]
    tau = _tau(*values)
    low, high = order_interval(tau, drawn, few, math.comb(len(named), 2))
    return SubsetProof(
        str(measure),
        tuple(map(str, named)),
        tuple(values[0].mean(axis=1).tolist()),
        tuple(values[1].mean(axis=1).tolist()),
        len(part.corpus),
        len(part.queries),
        tau,
        low,
        high,
    )


def _tau(one: Float64, other: Float64) -> float:
    return kendall_tau(one.mean(axis=1), other.mean(axis=1))


def _values(dataset: Dataset, system: Retriever, measure: Measure) -> Float64:
    depth = measure.cutoff or 1000
    run: Run = system.index(dataset.corpus).search(dataset.queries, depth + 1)
    if dataset.self_match == "drop":
        run = run.without_self()
    return evaluate(dataset.qrels, run.top(depth), [measure]).in_id_order(str(measure))
