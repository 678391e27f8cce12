"""Fusion methods and normalisations as values."""

from __future__ import annotations

import ast
import inspect
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.core.expressions import syntax_tree
from weir.core.strings import Float64, Ids, Int32, Int64, Strings, hash_strings
from weir.errors import BadValue, UnknownName
from weir.files.parsers import distinct
from weir.registry import Registry, printed

# ----------
# The union of several tables of identifiers.


BLOCK_IDENTIFIERS = 1 << 15
"""Identifiers looked at together: what is made of them stays near the processor."""

Codes = list[Int32 | None]
"""For each table the number that each of its identifiers has in the union; None: the table is the union."""


def united(tables: Sequence[Ids]) -> tuple[Ids, Codes]:
    """The identifiers of all tables, those of the first table first."""
    if all(table is tables[0] for table in tables):
        return tables[0], [None] * len(tables)
    strings = Strings.concatenated([table.strings for table in tables])
    lengths = strings.lengths()
    hashes = hash_strings(strings.data, strings.ptr[:-1], lengths)
    codes, first = distinct(strings.data, strings.ptr[:-1], lengths, hashes)
    cuts = np.cumsum([len(table) for table in tables])[:-1]
    blocks = [
        strings.take(first[at : at + BLOCK_IDENTIFIERS]) for at in range(0, len(first), BLOCK_IDENTIFIERS)
    ]
    return Ids(Strings.concatenated(blocks)), list(np.split(codes.astype(np.int32), cuts))


def united_sorted(tables: Sequence[Ids]) -> tuple[Ids, Codes]:
    """As `united`, by identifier, so that no order of the tables shows; one table for all stays as it is."""
    ids, codes = united(tables)
    if codes[0] is None:
        return ids, codes
    place = len(ids) - 1 - ids.tie_ranks
    return ids.take(np.argsort(place)), [None if code is None else place[code] for code in codes]


# ----------
# The input of a fusion method.


@dataclass(frozen=True, eq=False)
class Candidates:
    """The documents returned for some queries by R runs: n pairs of query and document.

    query: int64[n], ascending numbers below Q; rank: int32[R, n] from 1, 0 where the run does not return the
    document; score: float64[R, n] normalised, 0 where it does not; sizes: int64[R, Q], how many documents each
    run returns for each query. Methods that go by ranks get no scores: float64[R, 0].
    """

    query: Int64
    rank: Int32
    score: Float64
    sizes: Int64

    @property
    def runs(self) -> int:
        """How many runs are fused."""
        return len(self.rank)

    @property
    def returned(self) -> NDArray[np.bool_]:
        """bool[R, n]: whether the run returns the document."""
        return self.rank > 0

    def count(self) -> Int64:
        """int64[n]: how many runs return each document."""
        times: Int64 = np.count_nonzero(self.rank, axis=0)
        return times

    def by_rank(self, worth: Callable[[Float64], Float64]) -> Float64:
        """float64[R, n]: what each place is worth, 0 where a run does not return the document.

        worth: from ranks 1.0, 2.0, ... to values, applied once to each rank.
        """
        table = np.zeros(int(self.rank.max(initial=0)) + 1)
        table[1:] = worth(np.arange(1.0, len(table)))
        return table[self.rank]


def total(values: Float64) -> Float64:
    """float64[n]: the sum over runs, the same bits in whatever order the runs come.

    values: float64[R, n]; the smallest are added first.
    """
    rows = ascending(values)
    sums = rows[0].copy()
    for row in rows[1:]:
        sums += row
    return sums


def ascending(values: Float64) -> list[Float64]:
    """The values of each column in ascending order, as rows."""
    rows = list(values)
    for end in range(len(rows) - 1, 0, -1):  # whole rows at a time: far faster than sorting short columns
        for i in range(end):
            rows[i], rows[i + 1] = np.minimum(rows[i], rows[i + 1]), np.maximum(rows[i], rows[i + 1])
    return rows


# ----------
# Normalisations of scores, for each query by itself.


@dataclass(frozen=True, eq=False)
class ScoreLists:
    """The scores of one run: list q is score[ptr[q] : ptr[q + 1]], best first.

    score: float64[n], finite; ptr: int64[Q + 1].
    """

    score: Float64
    ptr: Int64

    @property
    def size(self) -> Int64:
        """int64[Q]: how long each list is."""
        return np.diff(self.ptr)

    def spread(self, values: Float64) -> Float64:
        """float64[n]: the value of its list for each row."""
        return np.repeat(values, self.size)

    def sums(self, values: Float64) -> Float64:
        """float64[Q]: the sum over each list, added from its top."""
        rows = np.repeat(np.arange(len(self.ptr) - 1), self.size)
        return np.bincount(rows, values, len(self.ptr) - 1).astype(np.float64, copy=False)

    def extremes(self) -> tuple[Float64, Float64]:
        """The smallest and the largest score of each list, float64[Q] each, 0 for an empty one."""
        extremes, filled = np.zeros((2, len(self.ptr) - 1)), np.flatnonzero(self.size)
        if len(filled):
            for row, function in zip(extremes, (np.minimum, np.maximum), strict=True):
                row[filled] = function.reduceat(self.score, self.ptr[filled])
        return extremes[0], extremes[1]


NORMS: Registry[Callable[[ScoreLists], Float64]] = Registry("normalisation")


@NORMS.register("none")
def none(lists: ScoreLists) -> Float64:
    """The score as it is."""
    return lists.score


@NORMS.register("minmax")
def minmax(lists: ScoreLists) -> Float64:
    """(score - lowest) / (highest - lowest); 1 where all scores of the list are equal. Source: Lee 1997."""
    low, high = lists.extremes()
    return _ratio(lists.score - lists.spread(low), lists.spread(high - low), 1.0)


@NORMS.register("zscore")
def zscore(lists: ScoreLists) -> Float64:
    """(score - mean) / standard deviation (of the population); 0 where all scores of the list are equal.

    Called ZMUV too. A document that is not returned counts as an average one. Source: Montague and Aslam 2001.
    """
    deviation = lists.score - lists.spread(lists.sums(lists.score) / lists.size)
    spread = np.sqrt(lists.sums(deviation**2) / lists.size)
    low, high = lists.extremes()
    return _ratio(deviation, lists.spread(np.where(high == low, 0.0, spread)), 0.0)


@NORMS.register("rank")
def rank(lists: ScoreLists) -> Float64:
    """1 - (rank - 1) / number of documents in the list. Source: Lee 1997."""
    place = np.arange(len(lists.score)) - np.repeat(lists.ptr[:-1], lists.size)
    return 1.0 - place / np.repeat(lists.size, lists.size)


@NORMS.register("sum")
def summed(lists: ScoreLists) -> Float64:
    """(score - lowest) / sum of these over the list; equal scores share 1 equally. Source: Montague and Aslam 2001."""
    raised = lists.score - lists.spread(lists.extremes()[0])
    flat = lists.spread(1.0 / lists.size)
    return _ratio(raised, lists.spread(lists.sums(raised)), flat)


@NORMS.register("max")
def maximum(lists: ScoreLists) -> Float64:
    """Score / largest absolute score; 0 where all scores are 0. Source: the usual one, made to hold below 0 too."""
    low, high = lists.extremes()
    return _ratio(lists.score, lists.spread(np.maximum(np.abs(high), np.abs(low))), 0.0)


def _ratio(top: Float64, bottom: Float64, otherwise: Float64 | float) -> Float64:
    """top / bottom, and `otherwise` where bottom is 0."""
    ratio = np.empty_like(top)
    ratio[:] = otherwise
    np.divide(top, bottom, out=ratio, where=bottom != 0)
    return ratio


# ----------
# Methods, and fusions: a method with its settings.


Setting: TypeAlias = int | float | str | tuple[float, ...]
"""A setting's value; a tuple has one number for each run."""

NORM = "minmax"
"""The normalisation of methods that go by scores, where none is named."""

_LONGEST = 500  # characters of a fusion's text
_LARGEST_WEIGHT = 1e9
_LARGEST = 1 << 63  # no number of a setting reaches it


@dataclass(frozen=True, eq=False)
class FusionMethod:
    """How rankings may be fused: a function, whether it goes by scores, the range and the grid of its settings.

    within: the smallest and the largest value of a setting; grid: the values that `fit` tries.
    """

    name: str
    function: Callable[..., Float64]
    scored: bool
    within: Mapping[str, tuple[float, float]]
    grid: Mapping[str, tuple[Setting, ...]]

    @property
    def summary(self) -> str:
        """The first sentence of its documentation."""
        return (inspect.getdoc(self.function) or "").partition("\n")[0]

    def defaults(self) -> dict[str, Setting]:
        """Its settings and their default values."""
        parameters = inspect.signature(self.function).parameters.values()
        own = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
        return own | ({"norm": NORM} if self.scored else {})


METHODS: Registry[FusionMethod] = Registry("fusion")


def fusion(
    name: str,
    *,
    scored: bool = False,
    within: Mapping[str, tuple[float, float]] | None = None,
    grid: Mapping[str, tuple[Setting, ...]] | None = None,
) -> Callable[[Callable[..., Float64]], Fusion]:
    """Register the decorated function of `Candidates` as a fusion method.

    Its keyword parameters are the method's settings, whose type is that of their default; one whose default is ()
    takes a number for each run. scored: it goes by scores, which are normalised first, and so has the setting `norm`.
    """

    def register(function: Callable[..., Float64]) -> Fusion:
        METHODS.add(name, FusionMethod(name, function, scored, within or {}, grid or {}))
        return Fusion(name)

    return register


@dataclass(frozen=True)
class Fusion:
    """A method with its settings, such as rrf(k=10) or wsum(weights=[0.3, 0.7], norm="zscore").

    settings: only those that differ from the default, so equal fusions compare and print equal.
    """

    name: str
    settings: tuple[tuple[str, Setting], ...] = ()

    def __str__(self) -> str:
        inside = ", ".join(f"{key}={printed(value)}" for key, value in self.settings)
        return f"{self.name}({inside})" if inside else self.name

    def with_settings(self, settings: Mapping[str, object]) -> Fusion:
        """The same method with these settings; raises UnknownName for one it does not have, or BadValue."""
        method = METHODS.get(self.name)
        defaults = method.defaults()
        chosen = dict(self.settings)
        for key, value in settings.items():
            if key not in defaults:
                raise UnknownName(f"setting of {self.name}", key, defaults)
            chosen[key] = _setting_value(method, key, value, defaults[key])
        return Fusion(
            self.name, tuple((k, chosen[k]) for k in defaults if chosen.get(k, defaults[k]) != defaults[k])
        )

    @property
    def scored(self) -> bool:
        """Whether it goes by scores."""
        return METHODS.get(self.name).scored

    @property
    def norm(self) -> str:
        """The normalisation of the scores; "none" where ranks alone count."""
        return str(dict(self.settings).get("norm", NORM)) if self.scored else "none"

    def all_settings(self) -> dict[str, Setting]:
        """Every setting with its value, the defaults too."""
        return METHODS.get(self.name).defaults() | dict(self.settings)

    def refuse_other_than(self, runs: int) -> None:
        """Raise BadValue where a setting has another number of values than there are runs."""
        for key, value in self.settings:
            if isinstance(value, tuple) and len(value) != runs:
                raise BadValue(f"{self}: {key} has {len(value)} for {runs} rankings; give one for each")

    def __call__(self, candidates: Candidates) -> Float64:
        """The fused score of each candidate, float64[n]; raises BadValue for another number of weights than runs."""
        self.refuse_other_than(candidates.runs)
        own = {key: value for key, value in self.settings if key != "norm"}
        return METHODS.get(self.name).function(candidates, **own)


def parse_fusion(text: str) -> Fusion:
    """The fusion that a text such as `rrf(k=10)` or `wsum(weights=[0.3, 0.7])` names.

    Raises UnknownName for a method, setting or normalisation that does not exist, BadValue for a malformed text.
    """
    name, settings = call_of(text)
    METHODS.get(name)
    return Fusion(name).with_settings(settings)


def call_of(text: str) -> tuple[str, dict[str, object]]:
    """The name and the settings that a text gives, defaults that it spells out too; raises BadValue."""
    malformed = BadValue(f"'{text[:_LONGEST]}' is not a fusion; expected such as rrf or rrf(k=10)")
    if len(text) > _LONGEST:
        raise malformed
    try:
        node = syntax_tree(text)
        if isinstance(node, ast.Name):
            return node.id, {}
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.args:
            raise malformed
        if any(k.arg is None for k in node.keywords):
            raise malformed
        settings = {str(k.arg): ast.literal_eval(k.value) for k in node.keywords}
        if len(settings) < len(node.keywords):
            raise BadValue(f"{node.func.id}: a setting is given twice")
        return node.func.id, settings
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        raise malformed from None


def _setting_value(method: FusionMethod, key: str, value: object, default: Setting) -> Setting:
    """A setting as it is kept; raises BadValue, or UnknownName for a normalisation that does not exist."""
    where = f"{method.name}({key}={printed(value)})"
    if key == "norm":
        if not isinstance(value, str):
            raise BadValue(f"{where}: expected one of {', '.join(NORMS)}")
        NORMS.get(value)
        return value
    if isinstance(default, tuple):
        if not isinstance(value, (list, tuple)) or not all(type(w) in {int, float} for w in value):
            raise BadValue(f"{where}: expected a list of numbers, one for each ranking")
        if value and not (all(0 <= w <= _LARGEST_WEIGHT for w in value) and any(value)):
            raise BadValue(f"{where}: expected numbers from 0 to {_LARGEST_WEIGHT:g}, not all of them 0")
        return tuple(float(w) for w in value)
    low, high = method.within.get(key, (-math.inf, math.inf))
    if isinstance(default, float) and type(value) is int:
        value = float(value)
    if type(value) is not type(default) or not isinstance(value, (int, float)):
        raise BadValue(f"{where}: expected {'a whole number' if isinstance(default, int) else 'a number'}")
    if not (low <= value <= high and abs(value) < _LARGEST):
        raise BadValue(f"{where}: expected within {low}..{high}")
    return value


# ----------
# Methods that use ranks.


CELLS = 1 << 17
"""Pairs of documents compared at once: they stay near the processor."""

LARGEST = 1_000_000


@fusion(
    "rrf", within={"k": (0, LARGEST)}, grid={"k": (60, 1, 2, 5, 10, 20, 30, 40, 80, 100, 150, 200, 300, 500)}
)
def rrf(candidates: Candidates, *, k: int = 60) -> Float64:
    """Reciprocal rank fusion: the sum of 1 / (k + rank) over the runs that return the document.

    Source: Cormack, Clarke and Büttcher 2009.
    """
    return total(candidates.by_rank(lambda rank: 1 / (k + rank)))


@fusion("isr")
def isr(candidates: Candidates) -> Float64:
    """Inverse square rank: the sum of 1 / rank², times the number of runs that return the document.

    Source: Mourão, Martins and Magalhães 2014.
    """
    return total(candidates.by_rank(lambda rank: 1 / rank**2)) * candidates.count()


@fusion("logisr", within={"sigma": (0, 1)}, grid={"sigma": (0.0, 0.01, 0.1, 1.0)})
def logisr(candidates: Candidates, *, sigma: float = 0.0) -> Float64:
    """Log inverse square rank: the sum of 1 / rank², times ln(sigma + the number of runs that return the document).

    With sigma = 0 every document that one run alone returns scores 0. Source: Mourão, Martins and Magalhães 2014.
    """
    factor: Float64 = np.array([0.0] + [math.log(sigma + n) for n in range(1, candidates.runs + 1)])
    return total(candidates.by_rank(lambda rank: 1 / rank**2)) * factor[candidates.count()]


@fusion("rbc", within={"p": (0, 1)}, grid={"p": (0.8, 0.5, 0.6, 0.7, 0.9, 0.95, 0.98, 0.99, 0.995)})
def rbc(candidates: Candidates, *, p: float = 0.8) -> Float64:
    """Rank-biased centroid: the sum of (1 - p) p^(rank - 1) over the runs that return the document.

    p: how likely a reader goes on to the next document. Source: Bailey, Moffat, Scholer and Thomas 2017.
    """
    return total(candidates.by_rank(lambda rank: (1 - p) * p ** (rank - 1)))


@fusion("borda")
def borda(candidates: Candidates) -> Float64:
    """Borda count: of c documents that the runs return, a run gives its first c points, its next c - 1, and so on.

    c counts the documents of one query. Those that a run does not return share what is left of its points equally.
    Source: Aslam and Montague 2001.
    """
    pooled = np.bincount(candidates.query, minlength=candidates.sizes.shape[1])
    shared = (pooled - candidates.sizes + 1) / 2
    points = pooled[candidates.query] - candidates.rank + 1
    return total(np.where(candidates.returned, points, shared[:, candidates.query]))


@fusion("condorcet")
def condorcet(candidates: Candidates) -> Float64:
    """Majority of the runs, pair by pair: how many documents of the query a document beats, ties counted half.

    One document beats another where more runs place it above than below; a run places what it returns above what
    it does not, and says nothing of two that it does not return. The count (Copeland's) puts the strongly
    connected parts of the majority graph in order as Condorcet-fuse does; where majorities go in circles that
    algorithm's order depends on where its sort began, this one does not. Takes time in the square of the number of
    documents. Source: Montague and Aslam 2002.
    """
    score = np.zeros(len(candidates.query))
    cuts = np.searchsorted(candidates.query, np.arange(candidates.sizes.shape[1] + 1)).tolist()
    for start, stop in itertools.pairwise(cuts):
        if stop > start:
            score[start:stop] = _beaten(candidates.rank[:, start:stop])
    return score


def _beaten(rank: Int32) -> Float64:
    """How many columns each column beats by majority of the rows, ties counted half; rank: int32[R, n], 0 last."""
    count, last = rank.shape[1], int(rank.max()) + 1
    places = np.where(rank > 0, rank, last).astype(np.int16 if last < 2**15 else np.int32)
    votes = np.int8 if len(rank) < 2**7 else np.int32
    step = max(1, CELLS // count)
    beaten = np.empty(count)
    for start in range(0, count, step):
        own = places[:, start : start + step, None]
        margin = np.zeros((own.shape[1], count), votes)
        for mine, other in zip(own, places, strict=True):
            margin += mine < other
            margin -= (mine > other).view(np.int8)
        wins, losses = np.count_nonzero(margin > 0, axis=1), np.count_nonzero(margin < 0, axis=1)
        beaten[start : start + step] = (count - 1 + wins - losses) / 2
    return beaten


# ----------
# Methods that use normalised scores.


@fusion("combsum", scored=True)
def combsum(candidates: Candidates) -> Float64:
    """The sum of the scores; a run that does not return the document adds nothing.

    Source: Fox and Shaw 1994.
    """
    return total(candidates.score)


@fusion("combmnz", scored=True)
def combmnz(candidates: Candidates) -> Float64:
    """The sum of the scores, times the number of runs that return the document.

    Source: Fox and Shaw 1994.
    """
    return total(candidates.score) * candidates.count()


@fusion("combanz", scored=True)
def combanz(candidates: Candidates) -> Float64:
    """The mean of the scores over the runs that return the document.

    Source: Fox and Shaw 1994.
    """
    return total(candidates.score) / candidates.count()


@fusion("combmin", scored=True)
def combmin(candidates: Candidates) -> Float64:
    """The least of the scores that runs give the document.

    Source: Fox and Shaw 1994.
    """
    least: Float64 = np.where(candidates.returned, candidates.score, np.inf).min(axis=0)
    return least


@fusion("combmax", scored=True)
def combmax(candidates: Candidates) -> Float64:
    """The greatest of the scores that runs give the document.

    Source: Fox and Shaw 1994.
    """
    greatest: Float64 = np.where(candidates.returned, candidates.score, -np.inf).max(axis=0)
    return greatest


@fusion("combmed", scored=True)
def combmed(candidates: Candidates) -> Float64:
    """The median of the scores that runs give the document, or the mean of the two middle ones.

    Source: Fox and Shaw 1994.
    """
    rows = np.stack(ascending(np.where(candidates.returned, candidates.score, np.inf)))
    count, column = candidates.count(), np.arange(rows.shape[1])
    return (rows[(count - 1) // 2, column] + rows[count // 2, column]) / 2


@fusion("wsum", scored=True)
def wsum(candidates: Candidates, *, weights: tuple[float, ...] = ()) -> Float64:
    """The weighted sum of the scores; a run that does not return the document adds nothing.

    weights: one for each run in their order, from 0; by default all are 1 / number of runs. Called linear
    combination or interpolation too. Source: Vogt and Cottrell 1999.
    """
    weight = np.array(weights) if weights else np.full(candidates.runs, 1 / candidates.runs)
    return total(weight[:, None] * candidates.score)
