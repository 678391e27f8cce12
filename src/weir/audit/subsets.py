"""Smaller collections and fewer queries: what they still show."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

from weir.audit.bias import topics
from weir.audit.check import Finding, check
from weir.core import rounding
from weir.core.corpus import Corpus, Queries
from weir.core.frames import plain
from weir.core.qrels import Qrels
from weir.core.results import result
from weir.core.rounding import change, count, score
from weir.core.run import Run
from weir.core.strings import Float64, Int64
from weir.core.subject import Subject
from weir.core.tables import Table, table_of
from weir.datasets.load import Dataset, load
from weir.errors import BadValue
from weir.files.atomic import atomic_dir, write_text
from weir.files.records import write_collection
from weir.measures.evaluate import evaluate, scores_of
from weir.measures.measure import Measure, parse_measure
from weir.stats.power import POWER, detectable, excess_kurtosis, queries_needed
from weir.stats.rank_stability import kendall_tau, order_interval
from weir.systems.expression import parse_system
from weir.systems.protocol import Retriever

# ----------
# Regression queries: a few that stand for all, saved as a group that a gate looks at on every change.


MEASURE = parse_measure("nDCG@10")
GROUP = "regression"


def regression_queries(subject: Subject, count: int = 30) -> list[str]:
    """So many judged queries: from each topic by its share, from its easiest to its hardest at even steps.

    How hard a query is tells the mean nDCG@10 of all systems. The same subject gives the same queries. Raises BadValue
    for a count below 1, and without rankings.
    """
    if count < 1 or not subject.runs:
        found = f"count {count} and {len(subject.runs)} rankings"
        raise BadValue(f"regression queries: found {found}; expected one of each at least")
    judged = next(iter(subject.joins.values())).queries.tolist()
    hard = _mean_scores(subject)
    label = _topic_of_each(subject)
    by_topic: dict[str, list[int]] = {}
    for row in np.lexsort((np.array(judged), hard)).tolist():
        by_topic.setdefault(label.get(judged[row], ""), []).append(row)
    share = min(1.0, count / len(judged))
    wanted = {topic: share * len(rows) for topic, rows in by_topic.items()}
    taken = {topic: int(n) for topic, n in wanted.items()}
    left = min(count, len(judged)) - sum(taken.values())
    for topic in sorted(wanted, key=lambda t: (taken[t] - wanted[t], t))[:left]:
        taken[topic] += 1
    chosen = [
        rows[round((place + 0.5) * len(rows) / taken[topic] - 0.5)]
        for topic, rows in by_topic.items()
        for place in range(taken[topic])
    ]
    return sorted(judged[row] for row in chosen)


def _topic_of_each(subject: Subject) -> dict[str, str]:
    """The topic of each query that has one; none where their texts are not there."""
    if subject.queries is None:
        return {}
    groups = topics(subject)
    pairs = zip(groups.queries.tolist(), groups.group.tolist(), strict=True)
    return {query: groups.labels[number] for query, number in pairs if number >= 0}


def _mean_scores(subject: Subject) -> Float64:
    values = [scores_of(join, (MEASURE,)).values[0] for join in subject.joins.values()]
    return np.asarray(np.nan_to_num(np.mean(values, axis=0)), np.float64)


def write_regression_queries(queries: list[str], path: Path) -> None:
    """Write them as a file of groups, as --by reads it; raises StoreError when the disk refuses."""
    write_text(path, "".join(f"{query}\t{GROUP}\n" for query in queries))


# ----------
# Mini collections: fewer documents and queries, with the proof of how far they rank systems as the whole does.


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


# ----------
# Power: what differences the queries at hand can show, and what ties at the cut-off leave open.


WANTED_DIFFERENCE = 0.01
"""Of two means, the one that papers and releases argue about."""
TIE_BAND = 0.001
"""Width of the range of means over orders of tied documents from which it is said."""


@check("power", needs=["qrels", "runs"])
def power(subject: Subject) -> Iterator[Finding]:
    """The smallest difference of nDCG@10 that a permutation test would find with a probability of 80%, by pairs.

    From the spread of their differences between queries; and how many queries a difference of 0.01 would take.
    """
    scores = {n: scores_of(j, (MEASURE,)).values[0] for n, j in subject.joins.items() if j.answered.any()}
    found = {}
    for one, other in combinations(scores, 2):
        differences = scores[other] - scores[one]
        differences = differences[~np.isnan(differences)]
        deviation = float(differences.std(ddof=1)) if len(differences) > 1 else 0.0
        if deviation > 0:
            kurtosis = excess_kurtosis(differences[None])
            least = detectable(deviation, len(differences), kurtosis=kurtosis)
            found[one, other] = (least, deviation, len(differences), kurtosis)
    if not found:
        return
    pairs = sorted(found, key=lambda pair: found[pair][0])
    middle = pairs[len(pairs) // 2]
    least, deviation, queries, kurtosis = found[middle]
    needed = queries_needed(WANTED_DIFFERENCE, deviation, kurtosis=kurtosis)
    enough = least <= WANTED_DIFFERENCE
    take = "more than ten million" if needed is None else f"{needed:,}"
    shown = (
        f"show no difference of {MEASURE}, however large,"
        if least > 1
        else f"show a difference of {MEASURE} of {rounding.score(least)}"
    )
    yield Finding(
        "note" if enough else "caution",
        f"{queries:,} queries {shown} between systems such as {middle[0]} and {middle[1]} "
        f"with a probability of {rounding.share(POWER, 0)}; one of {WANTED_DIFFERENCE} takes {take} queries",
        "" if enough else "call smaller differences undecided, or add queries: weir power says how many",
        (
            ("queries", float(queries)),
            ("detectable", least if math.isfinite(least) else math.nan),
            ("queries needed", float("nan") if needed is None else float(needed)),
            ("pairs", float(len(found))),
        ),
    )


@check("tied scores", needs=["qrels", "runs"])
def tied_scores(subject: Subject) -> Iterator[Finding]:
    """How far nDCG@10 of a system depends on the order in which documents of equal score are put."""
    for name, join in subject.joins.items():
        if not join.answered.any():
            continue
        low, high = scores_of(join, (MEASURE,)).tie_bounds()[0].tolist()
        if high - low >= TIE_BAND:
            yield Finding(
                "caution",
                f"{MEASURE} is {rounding.score(low)} to {rounding.score(high)} by the order of "
                f"documents with equal scores",
                "write scores with more digits, or report the expected value: weir eval --ties expected",
                (("low", low), ("high", high)),
                system=name,
            )


@result("subset", SubsetProof, records=lambda one: [plain(one) | {"valid": one.valid}])
def subset_tables(proofs: Sequence[SubsetProof]) -> tuple[Table, ...]:
    """Each system on the whole and on the part, the order's agreement with its interval, and the verdict."""
    tables = []
    for one in proofs:
        lines = [["system", f"{one.measure} whole", "subset", "shift"]]
        rows = sorted(zip(one.systems, one.whole, one.part, strict=True), key=lambda row: -row[1])
        lines += [[name, score(whole), score(part), change(part - whole)] for name, whole, part in rows]
        verdict = "the subset ranks these systems as the whole does"
        if not one.valid:
            verdict = (
                "the subset is not shown to rank systems as the whole does (the lower bound is below "
                f"{LEAST_TAU}); take more documents, or do not compare systems on it"
            )
        note = (
            f"{count(one.documents)} documents, {count(one.queries)} queries; "
            f"Kendall's tau {one.tau:.2f} [{one.low:.2f}, {one.high:.2f}]: {verdict}"
        )
        tables.append(table_of(lines, notes=[note]))
    return tuple(tables)
