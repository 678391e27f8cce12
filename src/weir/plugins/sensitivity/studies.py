"""What re-ranking by a language model depends on: the order of its candidates, chance, places in prompts, depth.

<folder>/
    orders.json      candidates in other orders, and places in their prompts
    samples.json     the same prompts asked again, and pairs in both orders
    depths.json      what more candidates cost and bring

Each holds what it was declared from and what was found, sealed; one of the same declaration is read, not made again.
The answers are kept in Weir's home, so a study that was interrupted asks for nothing twice.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import TypeVar

import numpy as np

from weir.algorithms import algorithm
from weir.core.plain_values import plain, rebuilt
from weir.core.strings import Float64
from weir.datasets.load import Dataset
from weir.errors import BadValue, StoreError
from weir.io.storage.atomic import storing
from weir.io.storage.sealed import read_sealed, write_sealed
from weir.measures.measure import Measure
from weir.plugins.sensitivity.answer_log import AskedTotals
from weir.plugins.sensitivity.order_changes import ReorderRules, order_changes
from weir.plugins.sensitivity.reranked_candidates import RerankedOnce, StudiedCandidates, candidates_of
from weir.plugins.sensitivity.verdict_stability import (
    OrderFlips,
    PromptPlaces,
    SameVerdicts,
    order_flips,
    prompt_places,
    same_verdicts,
)
from weir.stats.bootstrap import SEED, interval
from weir.systems.protocol import Retriever
from weir.systems.rerank.llm_methods import METHODS

__all__ = ["DepthStudy", "OrderStudy", "SampleStudy", "Sensitivity", "Spread", "StudyRules", "sensitivity"]

T = TypeVar("T")
Watch = Callable[[str, int, int], None]
"""Told (what is done, how much of it, of how much)."""


@dataclass(frozen=True)
class StudyRules:
    """What is studied. orders, samples: how many, 0 leaves the study out; depths: () leaves it out; queries: judged
    queries at most, None for all. Raises BadValue for numbers out of range."""

    orders: int = 5
    samples: int = 5
    depths: tuple[int, ...] = (5, 10, 20, 50)
    queries: int | None = None

    def __post_init__(self) -> None:
        for name in ("orders", "samples"):
            value = getattr(self, name)
            if type(value) is not int or value < 0 or value == 1:
                raise BadValue(f"{name} is {value!r}; expected a whole number from 2, or 0 for none")
        if not all(type(depth) is int and depth >= 1 for depth in self.depths):
            raise BadValue(f"depths are {self.depths!r}; expected whole numbers from 1")
        if self.queries is not None and (type(self.queries) is not int or self.queries < 1):
            raise BadValue(f"queries is {self.queries!r}; expected a whole number from 1")


@dataclass(frozen=True)
class Spread:
    """A measure over several re-rankings of the same candidates for the same queries.

    mean: over re-rankings and queries; low, high: its 95% interval over queries; means: of each re-ranking; deviation:
    the standard deviation of such a mean with the queries held fixed, estimated from that of each query, which knows
    it better than `means` do; error: the standard error of `mean` by the queries alone; tau, rbo: mean agreement of two
    of the re-rankings on the documents that were re-ranked, over pairs and queries.
    """

    measure: str
    queries: int
    mean: float
    low: float
    high: float
    means: tuple[float, ...]
    deviation: float
    error: float
    tau: float
    rbo: float


@dataclass(frozen=True)
class OrderStudy:
    """Candidates in several random orders. own: the mean of the measure in the first stage's order; lead: own less the
    mean over orders, with its 95% interval over queries: what the first stage's order is worth to the model; places:
    what is put first in prompts of each size."""

    spread: Spread
    own: float
    lead: float
    low: float
    high: float
    places: tuple[PromptPlaces, ...]
    totals: AskedTotals


@dataclass(frozen=True)
class SampleStudy:
    """The same candidates in the same order, every prompt asked several times; flips: of pairs, in the first sample."""

    spread: Spread
    verdicts: SameVerdicts
    flips: OrderFlips | None
    totals: AskedTotals


@dataclass(frozen=True)
class DepthStudy:
    """The first `depth` candidates re-ranked. efficient: no other depth of the study is as good for as few tokens
    (prompts, where tokens are not counted) and better in one of both."""

    depth: int
    mean: float
    low: float
    high: float
    totals: AskedTotals
    efficient: bool


@dataclass(frozen=True)
class Sensitivity:
    """What was studied of a system on a collection; None and () for what was left out. notes: why, where the system and
    not the rules left it out."""

    dataset: str
    system: str
    measure: str
    orders: OrderStudy | None
    samples: SampleStudy | None
    depths: tuple[DepthStudy, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Depths:
    """As the file of a study holds it."""

    depths: tuple[DepthStudy, ...]


def sensitivity(
    dataset: Dataset,
    system: Retriever,
    measure: Measure,
    rules: StudyRules,
    out: Path | None,
    watch: Watch = lambda what, done, total: None,
) -> Sensitivity:
    """Study a system such as bm25 >> llm("listwise", ...), whose records go to the folder `out`; None keeps none.

    Raises BadValue for another system, ServiceError where the budget ends or a prompt stays without an answer (the
    same call continues), StoreError where the folder cannot be written, and the WeirErrors of searching.
    """
    depths = tuple(sorted(set(rules.depths)))
    found = candidates_of(dataset, system, measure, depths, rules.queries)
    study = _Studies(found, _declared(dataset, found, rules), out, watch)
    notes = []
    orders = None
    if rules.orders and "order" in METHODS[found.reranker.method].takes:
        orders = study.kept(
            "orders", OrderStudy, {"orders": rules.orders}, lambda: study.orders(rules.orders)
        )
    elif rules.orders:
        notes.append(_without_orders(found.reranker.method))
    samples = None
    if rules.samples:
        samples = study.kept(
            "samples", SampleStudy, {"samples": rules.samples}, lambda: study.samples(rules.samples)
        )
    deep: tuple[DepthStudy, ...] = ()
    if depths:
        deep = study.kept("depths", _Depths, {"depths": list(depths)}, lambda: study.depths(depths)).depths
    return Sensitivity(dataset.name, str(system), str(measure), orders, samples, deep, tuple(notes))


def _without_orders(method: str) -> str:
    shown = "every two documents in both orders" if method == "pairwise" else "one document at a time"
    return f'"{method}" shows {shown}: the order of candidates decides nothing but what no answer decides'


def _declared(dataset: Dataset, found: StudiedCandidates, rules: StudyRules) -> dict[str, object]:
    return {
        "system": found.pipeline.describe(),
        "collection": dataset.fingerprint,
        "measure": str(found.measure),
        "queries": rules.queries,
        "seed": SEED,
        "algorithms": [algorithm("measures"), algorithm("bootstrap interval")],
    }


@dataclass(frozen=True, eq=False)
class _Studies:
    """The studies of some candidates. out: the folder of their records."""

    candidates: StudiedCandidates
    declared: dict[str, object]
    out: Path | None
    watch: Watch

    def kept(self, name: str, kind: type[T], own: dict[str, object], make: Callable[[], T]) -> T:
        """What the record of that name holds, where it was declared so; else it is made and written."""
        declared = json.loads(json.dumps({**self.declared, **own}, default=str))
        path = None if self.out is None else self.out / f"{name}.json"
        if path is not None and path.exists():
            try:
                record = read_sealed(path)
                if record.get("declared") == declared:
                    return rebuilt(kind, record["found"])
            except (StoreError, BadValue, KeyError) as error:
                self.watch(f"{name}: made again ({error})", 0, 0)
        made = make()
        if path is not None:
            with storing(path):
                path.parent.mkdir(parents=True, exist_ok=True)
            write_sealed(path, {"study": name, "declared": declared, "found": plain(made)})
        return made

    def orders(self, count: int) -> OrderStudy:
        """The candidates in the first stage's order, and in `count` others by the seeds 1, 2, ..."""
        own = replace(self.candidates.reranker.ordering, order="first stage", seed=0)
        given = [own, *(replace(own, order="shuffled", seed=seed) for seed in range(1, count + 1))]
        rerankers = [replace(self.candidates.reranker, ordering=one) for one in given]
        first, *runs = [
            self.candidates.reranked(one, told=self._told("orders", number, len(rerankers)))
            for number, one in enumerate(rerankers)
        ]
        spread = self._spread(runs)
        lead = first.values - np.mean([one.values for one in runs], axis=0)
        return OrderStudy(
            spread,
            _mean(first.values),
            _mean(lead),
            *interval(lead, np.random.default_rng(SEED)),
            prompt_places([one.answers for one in runs]),
            _together([first, *runs]),
        )

    def samples(self, count: int) -> SampleStudy:
        """Each prompt asked `count` times."""
        reranker = self.candidates.reranker
        runs = [
            self.candidates.reranked(reranker, sample, self._told("samples", sample, count))
            for sample in range(count)
        ]
        verdicts = same_verdicts([one.answers for one in runs])
        return SampleStudy(self._spread(runs), verdicts, order_flips(runs[0].answers), _together(runs))

    def depths(self, depths: Sequence[int]) -> _Depths:
        """The candidates to several depths."""
        runs = []
        for number, depth in enumerate(depths):
            reranker = replace(self.candidates.reranker, depth=depth)
            runs.append(self.candidates.reranked(reranker, told=self._told("depths", number, len(depths))))
        worth = [(_mean(run.values), -(run.totals.tokens or run.totals.prompts)) for run in runs]
        rows = []
        for depth, run, own in zip(depths, runs, worth, strict=True):
            beaten = any(other != own and other[0] >= own[0] and other[1] >= own[1] for other in worth)
            bounds = interval(run.values, np.random.default_rng(SEED))
            rows.append(DepthStudy(depth, own[0], *bounds, run.totals, not beaten))
        return _Depths(tuple(rows))

    def _told(self, what: str, number: int, count: int) -> Callable[[int, int], None]:
        return lambda done, total: self.watch(f"{what} {number + 1}/{count}", done, total)

    def _spread(self, runs: Sequence[RerankedOnce]) -> Spread:
        values = np.array([one.values for one in runs])
        known = values[:, ~np.isnan(values).any(axis=0)]
        count = known.shape[1]
        if count == 0:
            raise BadValue(f"{self.candidates.measure} is defined for no query of all re-rankings")
        by_query = known.mean(axis=0)
        rules, depth = ReorderRules(), self.candidates.shown
        pairs = [order_changes(a.run, b.run, rules, depth) for a, b in combinations(runs, 2)]
        return Spread(
            str(self.candidates.measure),
            count,
            _mean(by_query),
            *interval(by_query, np.random.default_rng(SEED)),
            tuple(_mean(row) for row in known),
            math.sqrt(float(known.var(axis=0, ddof=1).sum())) / count,
            float(by_query.std(ddof=1)) / math.sqrt(count) if count > 1 else math.nan,
            _mean(np.concatenate([one.tau for one in pairs])),
            _mean(np.concatenate([one.rbo for one in pairs])),
        )


def _mean(values: Float64) -> float:
    """The mean of those that are defined."""
    known = values[~np.isnan(values)].tolist()
    return math.fsum(known) / len(known) if known else math.nan


def _together(runs: Sequence[RerankedOnce]) -> AskedTotals:
    """What several re-rankings took together, each as if it were asked alone."""
    parts = [one.totals for one in runs]
    return AskedTotals(
        sum(one.prompts for one in parts),
        sum(one.tokens for one in parts),
        sum(one.answer_tokens for one in parts),
        math.fsum(one.dollars for one in parts),
        math.fsum(one.seconds for one in parts),
        sum(one.unclear for one in parts),
    )
