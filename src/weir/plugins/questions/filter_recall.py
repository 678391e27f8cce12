"""Recall of approximate vector search under filters, against brute force."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.argument_types import named_arguments
from weir.core.results import ResultKind
from weir.core.rounding import between, count, counted, figure, percent, score
from weir.core.strings import Float32, Float64, Int64
from weir.core.tables import Table, sentences, table_of
from weir.errors import BadValue
from weir.measures.measure import direction, no_direction_note, parse_measure
from weir.registry import check_whole
from weir.stats.resampling import has_percentile, mean_bounds, or_nan

Mask: TypeAlias = NDArray[np.bool_]
Kind: TypeAlias = Literal["by lot", "near", "far"]
KINDS: tuple[Kind, ...] = ("by lot", "near", "far")
"""Filters that are made: independent of the query, the query's own topic, and another topic."""
Applied: TypeAlias = tuple[str, int, int]
"""When a filter is applied, effort, overfetch."""
UNFILTERED = "none"
"""The name of a filter that permits all."""
EFFORTS = (1, 2, 4, 8, 16, 32, 64)
"""Efforts that are tried, times the index's own."""


@named_arguments
@dataclass(frozen=True)
class FilterRules:
    """Settings of a study of filtered vector search; raises BadValue for numbers out of range, UnknownName
    for a measure."""

    k: int = 10
    """Documents of an answer."""
    selectivity: tuple[float, ...] = (1.0, 0.5, 0.1, 0.01)
    """Shares of the documents that the made filters permit; a query's own filters are grouped by them."""
    overfetch: tuple[int, ...] = (1, 4, 16, 64)
    """Multiples of k that a search is asked for if the filter is applied after it."""
    effort: tuple[int, ...] = ()
    """Lists (IVF) or candidates (HNSW) that a query visits; by default the index's own, and up to 64 times it."""
    target: float = 0.95
    """The recall that is to be reached again."""
    measure: str = "nDCG@10"
    """The measure whose loss is reported if there are judgments."""
    seed: int = 17
    """Seed of the random filters."""

    def __post_init__(self) -> None:
        check_whole("k", self.k)
        check_whole("seed", self.seed, 0)
        object.__setattr__(self, "measure", str(parse_measure(self.measure)))
        if not direction(self.measure):
            raise BadValue(f"{no_direction_note([self.measure])[0]}; take a measure of quality")
        for name, least in (("selectivity", 1), ("overfetch", 1), ("effort", 0)):
            values = tuple(getattr(self, name))
            object.__setattr__(self, name, values)
            most = 1 if name == "selectivity" else math.inf
            if len(values) < least or not all(0 < value <= most for value in values):
                kind = "shares above 0, up to 1" if most == 1 else "whole numbers from 1"
                raise BadValue(f"{name} is {list(values)}; expected {kind}")
        if not 0 < self.target <= 1:
            raise BadValue(f"target is {self.target}; expected a recall above 0, up to 1")


# ----------
# Filters, and the exact answer among the documents that they permit: of one query, whose scores with all documents are
# float32[N].


def admission_order(
    kind: Kind, scores: Float32, similar: Callable[[int], Float32], chance: np.random.Generator
) -> Int64:
    """Return the positions of all documents, int64[N], in the order in which an ever broader filter permits
    them.

    kind: "by lot" is random; "near" begins with the documents most similar to the query's best document,
        "far" with those most similar to a random document of the worse half.
    scores: float32[N], of the documents for the query.
    similar: returns all documents' similarity, float32[N], to one.
    """
    if kind == "by lot":
        return chance.permutation(len(scores))
    centre = int(np.argmax(scores))
    if kind == "far":
        half = max(1, len(scores) // 2)
        centre = int(np.argsort(scores, kind="stable")[chance.integers(half)])
    return np.argsort(-similar(centre), kind="stable")


def first_of(order: Int64, share: float) -> Mask:
    """Return bool[N], True for the first `share` of the documents in an order, for one at least."""
    mask = np.zeros(len(order), np.bool_)
    mask[order[: max(1, round(share * len(order)))]] = True
    return mask


def exact_first(scores: Float32, permitted: Mask, k: int, places: NDArray[np.integer]) -> Int64:
    """Return the positions of the k best permitted documents, best first; fewer if fewer are permitted.

    places: int[N], order of documents with equal scores.
    """
    some = np.flatnonzero(permitted)
    return some[np.lexsort((places[some], -scores[some]))[:k]]


def recall_of(found: Int64, scores: Float32, exact: Int64) -> float:
    """Return the share of the exact best documents that a search found; a document that scores as high as the
    last of them counts, too.

    found: permitted documents, no more than `exact`, which is not empty.
    """
    return np.count_nonzero(scores[found] >= scores[exact[-1]]) / len(exact)


# ----------
# Results.


@dataclass(frozen=True)
class FilteredSearch:
    """Recall, loss and cost of searches with one setting, under one kind of filter."""

    filter: str
    """none; by lot, near or far, as in `admission_order`; own for the filters of the queries; or a given filter."""
    selectivity: float
    """Mean share of the documents that are permitted."""
    permitted: float
    """Mean number of permitted documents."""
    correlation: float
    """Mean share of the exact k best documents without a filter that the filter permits; equals the selectivity
    if unrelated."""
    applied: str
    """during the search, or after it."""
    effort: int
    """Lists or candidates that a query visits; 0 for the system's own."""
    overfetch: int
    """Times k documents that were asked for."""
    queries: int
    recall: float
    """Mean share of the exact k best permitted documents that are found, with its 95% interval over queries."""
    low: float
    high: float
    short: int
    """Number of queries with fewer documents than the smaller of k and the number permitted."""
    compared: float
    """Mean number of vectors compared; NaN if the index does not count them."""
    lost: float
    """Mean loss of the measure against exact search, with its 95% interval over the judged queries; NaN without any."""
    lost_low: float
    lost_high: float
    judged: int
    """Number of queries with a relevant document among the permitted ones."""
    p50_ms: float
    """Median milliseconds of a query, searched alone; NaN if none was timed. The time of a filter applied after
    the search is not counted."""
    p95_ms: float
    """95th percentile of the milliseconds; NaN for fewer than 20."""

    @staticmethod
    def of(
        name: str,
        facts: Mapping[Applied, Float64],
        lost: Float64,
        milliseconds: Sequence[Float64],
        documents: int,
    ) -> Iterator[FilteredSearch]:
        """Yield means over queries under one filter, an object for each setting.

        facts: {setting: float64[5, queries]}, rows are recall, number of documents permitted, share of the
            exact best that is permitted, 1 for a short answer, number of vectors compared.
        lost: float64[settings, judged queries], the exact answer's value of the measure minus the search's.
        milliseconds: times of queries, for each setting.
        documents: number in the collection.
        """
        recalls = np.array([rows[0] for rows in facts.values()])
        known = mean_bounds([recalls], unit=np.ones(len(facts), np.bool_))
        losses = mean_bounds([lost]) if lost.size else np.full((len(facts), 2), np.nan)
        for at, (applied, rows) in enumerate(facts.items()):
            recall, permitted, correlation, short, compared = rows.mean(axis=1).tolist()
            mean = float(lost[at].mean()) if lost.size else math.nan
            ms = milliseconds[at]
            yield FilteredSearch(
                name, permitted / documents, permitted, correlation, *applied, len(rows[0]), recall,
                *or_nan(known[at].tolist()), round(short * len(rows[0])), compared, mean, *or_nan(losses[at].tolist()),
                lost.shape[1], float(np.percentile(ms, 50)) if len(ms) else math.nan,
                float(np.percentile(ms, 95)) if has_percentile(95, len(ms)) else math.nan,
            )  # fmt: skip

    @property
    def setting(self) -> str:
        """The setting, such as "effort 64, overfetch 4"; "" for the system's own."""
        parts = [f"effort {self.effort:,}"] if self.effort else []
        return ", ".join([*parts, *([f"overfetch {self.overfetch:,}"] if self.applied == "after" else [])])


@dataclass(frozen=True)
class FilterStudy:
    """The recall that filters cost a vector search."""

    dataset: str
    system: str
    documents: int
    queries: int
    k: int
    target: float
    measure: str
    seed: int
    exact: str
    """The system whose vectors decide the exact answer."""
    searches: tuple[FilteredSearch, ...]
    """By filter, selectivity, when it is applied, and setting, the usual one first."""
    remarks: tuple[str, ...] = ()


# ----------
# Tables.


def _usual(study: FilterStudy) -> Iterator[tuple[FilteredSearch, FilteredSearch | None]]:

    def cost(one: FilteredSearch) -> tuple[float, int, int]:
        return 0.0 if math.isnan(one.compared) else one.compared, one.overfetch, one.effort

    for _, same in groupby(study.searches, key=lambda one: (one.filter, one.selectivity, one.applied)):
        tried = list(same)
        reaching = [one for one in tried if one.recall >= study.target]
        yield tried[0], tried[0] if tried[0] in reaching else min(reaching, key=cost, default=None)


def _filter_tables(studies: Sequence[FilterStudy]) -> tuple[Table, ...]:
    tables = []
    for one in studies:
        lines = [
            ["filter", "permitted", f"of exact {one.k}", "applied", f"recall@{one.k}", "short", f"{one.measure} lost",
             "compared", "p50, p95 ms", f"{one.target:g} from", "compared"]
        ]  # fmt: skip
        for usual, reached in _usual(one):
            again = ("never", "-") if reached is None else (reached.setting, _compared(reached))
            recall = f"{score(usual.recall)} {between(usual.low, usual.high)}"
            lost = f"{score(usual.lost)} {between(usual.lost_low, usual.lost_high)}" if usual.judged else "-"
            lines.append(
                [
                    usual.filter + _of_some(usual.queries, one.queries),
                    f"{count(usual.permitted)}, {percent(usual.selectivity)}", percent(usual.correlation),
                    usual.applied, recall, count(usual.short), lost, _compared(usual), _times(usual),
                    *(("usual", "") if reached is usual else again),
                ]
            )  # fmt: skip
        asked = counted(one.queries, "query", "queries")
        tables += [
            sentences(f"{one.system} on {one.dataset}: {count(one.documents)} documents, {asked}"),
            table_of(lines, right=8, keys=1, tail=1),
            sentences(*_breaking_sentences(one), *one.remarks),
        ]
    return tuple(tables)


FILTER_STUDIES = ResultKind("filters", FilterStudy, _filter_tables, parts="searches")


def _of_some(queries: int, every: int) -> str:
    return "" if queries == every else f", {counted(queries, 'query', 'queries')}"


def _compared(one: FilteredSearch) -> str:
    return "-" if math.isnan(one.compared) else count(one.compared)


def _times(one: FilteredSearch) -> str:
    return "-" if math.isnan(one.p50_ms) else f"{figure(one.p50_ms)}, {figure(one.p95_ms)}"


def _breaking_sentences(one: FilterStudy) -> tuple[str, ...]:
    found = list(_usual(one))
    lines = [
        f"without a filter recall@{one.k} is {score(usual.recall)}"
        for usual, _ in found[:1]
        if usual.filter == UNFILTERED
    ]
    for applied in dict.fromkeys(usual.applied for usual, _ in found):
        of = [pair for pair in found if pair[0].applied == applied and pair[0].filter != UNFILTERED]
        broken = [usual for usual, _ in of if usual.recall < one.target]
        if not broken:
            lines.append(f"applied {applied} the search, recall is {one.target:g} or more under every filter")
            continue
        first, never = (
            max(broken, key=lambda usual: usual.selectivity),
            sum(reached is None for _, reached in of),
        )
        lines.append(
            f"applied {applied} the search, recall is below {one.target:g} under {count(len(broken))} of "
            f"{counted(len(of), 'filter')}, the broadest {first.filter} at {percent(first.selectivity)}, "
            f"{score(first.recall)}; under {count(never)} with every setting tried"
        )
    during = [(u, again) for u, again in found if u.applied == "during" and not math.isnan(u.compared)]
    narrow = [usual for usual, again in during if again is None or again.compared >= usual.permitted]
    if narrow:
        first = max(narrow, key=lambda usual: usual.selectivity)
        lines.append(
            f"applied before it, exact search loses nothing, and compares no more than {one.target:g} takes under "
            f"{count(len(narrow))} of {count(len(during))}, the broadest {first.filter} at {percent(first.selectivity)}"
        )
    return tuple(lines)
