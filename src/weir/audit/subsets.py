"""Choose regression queries and subsets of collections, and check what differences they can detect."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, compress
from pathlib import Path

import numpy as np

from weir.audit.bias import topics
from weir.audit.check import Finding, check
from weir.core import rounding
from weir.core.corpus import Corpus
from weir.core.filters import HeldFields, records
from weir.core.frames import json_value
from weir.core.qrels import Qrels
from weir.core.results import ResultKind
from weir.core.rounding import change, count, score
from weir.core.run import Run
from weir.core.strings import Float64, Int64
from weir.core.subject import Subject
from weir.core.tables import Table, table_of
from weir.datasets.load import Dataset, load
from weir.errors import BadValue
from weir.files.atomic import atomic_dir, write_text
from weir.files.records import write_collection
from weir.measures.evaluate import score_run, scores_of
from weir.measures.measure import Measure, direction, parse_measure
from weir.stats.order_agreement import kendall_tau, order_interval
from weir.stats.power import POWER, detectable, excess_kurtosis, queries_needed
from weir.systems.expression import parse_system
from weir.systems.protocol import Retriever

MEASURE = parse_measure("nDCG@10")
GROUP = "regression"


def regression_queries(subject: Subject, count: int = 30) -> list[str]:
    """Return `count` judged queries, or all if fewer, spread over topics and difficulty (mean nDCG@10),
    sorted by identifier.

    Raises BadValue for a count below 1, and without rankings.
    """
    if count < 1 or not subject.runs:
        counts = f"count {count} and {len(subject.runs)} rankings"
        raise BadValue(f"regression queries: found {counts}; expected one of each at least")
    judged = next(iter(subject.joins.values())).queries.tolist()
    values = [scores_of(join, (MEASURE,)).values[0] for join in subject.joins.values()]
    mean = np.nan_to_num(np.mean(values, axis=0))
    topic_of: dict[str, str] = {}
    if subject.queries is not None:
        groups = topics(subject)
        pairs = zip(groups.queries.tolist(), groups.group.tolist(), strict=True)
        topic_of = {query: groups.labels[number] for query, number in pairs if number >= 0}
    by_topic: dict[str, list[int]] = {}
    for row in np.lexsort((np.array(judged), mean)).tolist():
        by_topic.setdefault(topic_of.get(judged[row], ""), []).append(row)
    share = min(1.0, count / len(judged))
    quota = {topic: share * len(rows) for topic, rows in by_topic.items()}
    number_of = {topic: int(n) for topic, n in quota.items()}
    rest = min(count, len(judged)) - sum(number_of.values())
    for topic in sorted(quota, key=lambda t: (number_of[t] - quota[t], t))[:rest]:
        number_of[topic] += 1
    return sorted(
        judged[rows[round((step + 0.5) * len(rows) / number_of[topic] - 0.5)]]
        for topic, rows in by_topic.items()
        for step in range(number_of[topic])
    )


def write_regression_queries(queries: list[str], path: Path) -> None:
    """Write query identifiers to a tab-separated file of query groups, for the parameter `by`."""
    write_text(path, "".join(f"{query}\t{GROUP}\n" for query in queries))


# Subsets: fewer documents and queries, and how far they rank systems as the whole collection does.

SYSTEMS_COMPARED = (
    "bm25",
    "bm25(b=0.0)",
    "bm25(b=1.0)",
    "bm25(k1=0.1)",
    "bm25(k1=3.0, b=0.2)",
    'bm25("bm25s")',
    "rm3(bm25)",
)
"""Default systems for comparing a subset with the whole: cheap and different."""
JUDGED_PART = 0.5
"""Largest share of judged documents in a subset; queries are drawn while their judged documents fit."""
HARD_NEGATIVES = 10
"""Most of BM25's first documents taken for each query."""
RESAMPLES = 1000
LEAST_TAU = 0.8
"""Lower bound of Kendall's tau from which a subset is valid."""
Tell = Callable[[str], None]


@dataclass(frozen=True)
class SubsetProof:
    """The scores of systems on a subset and on the whole collection, and the agreement of their orders."""

    measure: str
    systems: tuple[str, ...]
    whole: tuple[float, ...]
    """Mean of each system on the whole, `part` on the subset."""
    part: tuple[float, ...]
    documents: int
    queries: int
    tau: float
    """Kendall's tau-b of the two orders; NaN if all means are equal."""
    low: float
    """`low` to `high` is the 95% interval over resampled queries of the subset."""
    high: float

    @property
    def valid(self) -> bool:
        """True if the lower end of the interval reaches LEAST_TAU."""
        return self.low >= LEAST_TAU


def chosen(dataset: Dataset, documents: int, seed: int = 1) -> tuple[Int64, Int64]:
    """Return (document rows, query rows) of a random subset with `documents` documents, int64, ascending.

    It has judged queries with all their judged documents, then BM25's first results for them, then random
    documents. Raises BadValue if the collection has no more documents, or if no query's judged documents fit.
    """
    corpus, queries = dataset.corpus, dataset.queries
    if not 0 < documents < len(corpus):
        raise BadValue(f"{dataset.name} has {len(corpus):,} documents; a subset of {documents:,} is none")
    if seed < 0:
        raise BadValue(f"the seed {seed}; expected a whole number from 0")
    rng = np.random.default_rng(seed)
    qrels = dataset.qrels
    at = corpus.ids.codes(qrels.docs.strings)
    of_query = qrels.queries.codes(queries.ids.strings)
    drawn: list[int] = []
    judged_docs: dict[int, None] = {}
    for query in rng.permutation(len(queries)).tolist():
        row = int(of_query[query])
        judged = at[qrels.doc[qrels.ptr[row] : qrels.ptr[row + 1]]]
        wider = judged_docs | dict.fromkeys(judged[judged >= 0].tolist())
        if len(wider) <= JUDGED_PART * documents:
            judged_docs = wider
            drawn.append(query)
    if not drawn:
        raise BadValue(
            f"{documents:,} documents hold the judged ones of no query of {dataset.name}; take more"
        )
    rows = np.sort(np.array(drawn, np.int64))
    near = parse_system("bm25").index(corpus).search(queries.take(rows), HARD_NEGATIVES)
    hard = near.doc[np.argsort(near.ranks(), kind="stable")]
    documents_in_order = dict.fromkeys([*judged_docs, *hard.tolist(), *rng.permutation(len(corpus)).tolist()])
    return np.sort(np.array(list(documents_in_order)[:documents], np.int64)), rows


def refuse_existing(folder: Path) -> None:
    """Raise BadValue if the folder exists."""
    if folder.exists():
        raise BadValue(f"{folder} is there already; give another folder")


def compared(systems: Sequence[str | Retriever]) -> list[Retriever]:
    """Return the systems to compare; raises BadValue for fewer than three."""
    named = [parse_system(one) if isinstance(one, str) else one for one in systems]
    if len(named) < 3:
        raise BadValue(f"{len(named)} systems have no order worth comparing; name three at least, better six")
    return named


def write_subset(dataset: Dataset, subset: tuple[Int64, Int64], folder: Path) -> Dataset:
    """Write a subset of a collection, with its judgments, to a new folder in Weir's layout, and return it as
    a dataset.

    subset: (document rows, query rows), each ascending, from `chosen`.

    Raises BadValue if the folder exists.
    """
    refuse_existing(folder)
    corpus, (docs, asked) = dataset.corpus, subset
    title = None if corpus.title is None else corpus.title.take(docs)
    chosen_ones = np.isin(np.arange(len(corpus)), docs)
    fields = compress(records(corpus.metadata, len(corpus)), chosen_ones) if corpus.metadata.names() else ()
    metadata = HeldFields.of(list(fields))
    part = Corpus(corpus.ids.take(docs), corpus.text.take(docs), title, metadata=metadata)
    queries = dataset.queries.take(asked)
    qrels = dataset.qrels.only(dataset.qrels.queries.codes(queries.ids.strings))
    rows = part.ids.codes(qrels.docs.strings)[qrels.doc] >= 0
    columns = (qrels.query_of_row()[rows], qrels.doc[rows], qrels.grade[rows])
    origin = None if qrels.origin is None else qrels.origin.take(np.flatnonzero(rows))
    judgments = Qrels.from_columns(qrels.queries, qrels.docs, *columns, origin)
    with atomic_dir(folder) as temporary:
        write_collection(temporary, part, queries, judgments)
    return load(folder)


def proof(
    whole: Dataset,
    part: Dataset,
    systems: Sequence[str | Retriever] = SYSTEMS_COMPARED,
    measure: Measure = MEASURE,
    tell: Tell = lambda step: None,
) -> SubsetProof:
    """Return how well a subset and its whole collection agree on the order of systems, which are run on both.

    tell: called with the name of each step.

    Raises BadValue for fewer than three systems.
    """
    named = compared(systems)
    values: list[Float64] = []
    for dataset in (whole, part):
        rows = []
        for system in named:
            tell(f"{system} on {dataset.name}")
            depth = measure.cutoff or 1000
            run: Run = system.index(dataset.corpus).search(dataset.queries, depth + 1)
            if dataset.self_match == "drop":
                run = run.without_self()
            scores = score_run(dataset.qrels, run.top(depth), [measure])
            rows.append(scores.in_id_order(str(measure)))
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


# Power of the queries, and ties.

WANTED_DIFFERENCE = 0.01
"""Difference of two means that papers and releases argue about."""
TIE_BAND = 0.001
"""Smallest range of means over orders of tied documents that is reported."""


@check("power", needs=["qrels", "runs"])
def power(subject: Subject) -> Iterator[Finding]:
    """The smallest difference of nDCG@10 that a permutation test would find with a probability of 80%, by pairs.

    Also the number of queries that a difference of 0.01 would take.
    """
    scores = {n: scores_of(j, (MEASURE,)).values[0] for n, j in subject.joins.items() if j.answered.any()}
    power_of = {}
    for one, other in combinations(scores, 2):
        differences = scores[other] - scores[one]
        differences = differences[~np.isnan(differences)]
        deviation = float(differences.std(ddof=1)) if len(differences) > 1 else 0.0
        if deviation > 0:
            kurtosis = excess_kurtosis(differences[None])
            least = detectable(deviation, len(differences), kurtosis=kurtosis)
            power_of[one, other] = (least, deviation, len(differences), kurtosis)
    if not power_of:
        return
    pairs = sorted(power_of, key=lambda pair: power_of[pair][0])
    middle = pairs[len(pairs) // 2]
    least, deviation, queries, kurtosis = power_of[middle]
    needed = queries_needed(WANTED_DIFFERENCE, deviation, kurtosis=kurtosis, pilot=queries)
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
        f"with a probability of {rounding.percent(POWER, 0)} by one test; one of {WANTED_DIFFERENCE} takes {take} "
        "queries",
        "" if enough else "call smaller differences undecided, or add queries: weir power says how many",
        (
            ("queries", float(queries)),
            ("detectable", least if math.isfinite(least) else math.nan),
            ("queries needed", float("nan") if needed is None else float(needed)),
            ("pairs", float(len(pairs))),
        ),
    )


@check("tied scores", needs=["qrels", "runs"])
def tied_scores(subject: Subject) -> Iterator[Finding]:
    """Range of a system's nDCG@10 over the orders of documents of equal score."""
    for name, join in subject.joins.items():
        if not join.answered.any():
            continue
        low, high = scores_of(join, (MEASURE,)).tie_bounds()[0].tolist()
        if high - low >= TIE_BAND:
            yield Finding(
                "caution",
                f"{MEASURE} is {rounding.score(low)} to {rounding.score(high)} by the order of "
                f"documents with equal scores",
                "ranks tie exactly: fuse with another k or weights, or more of each ranking, or report the expected "
                "value: weir eval --ties expected"
                if name in subject.fused_by_ranks
                else "documents of one text always tie; of others, write scores with more digits, or report the "
                "expected value: weir eval --ties expected",
                (("low", low), ("high", high)),
                system=name,
            )
        k, cut = join.cut_in_ties()
        if cut:
            yield Finding(
                "note",
                f"the last document, at rank {k:,}, is tied in {rounding.counted(cut, 'query', 'queries')}: measures "
                "that look so deep depend on where the ranking was cut",
                f"search deeper, such as to rank {2 * k:,}",
                (("k", float(k)), ("queries", float(cut))),
                system=name,
            )


def _subset_tables(proofs: Sequence[SubsetProof]) -> tuple[Table, ...]:
    tables = []
    for one in proofs:
        lines = [["system", f"{one.measure} whole", "subset", "shift"]]
        way, means = direction(one.measure) or 1, zip(one.systems, one.whole, one.part, strict=True)
        rows = sorted(means, key=lambda row: -way * row[1])
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


SUBSET_PROOFS = ResultKind(
    "subset", SubsetProof, _subset_tables, records=lambda one: [json_value(one) | {"valid": one.valid}]
)
