"""Fusion methods and score normalisations."""

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
"""Identifiers copied at once, to fit into the processor's cache."""

Codes = list[Int32 | None]
"""For each table, the numbers of its identifiers in the union; None if the table is the union."""


def united(tables: Sequence[Ids]) -> tuple[Ids, Codes]:
    """Return (distinct identifiers of all tables in order of occurrence, int32 positions in them for each
    table's identifiers).

    If all tables are one object, it is returned, with None for positions.
    """
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
    """Return (sorted distinct identifiers of all tables, int32 positions in them for each table's identifiers).

    If all tables are one object, it is returned unsorted, with None for positions.
    """
    ids, codes = united(tables)
    if codes[0] is None:
        return ids, codes
    place = len(ids) - 1 - ids.tie_ranks
    return ids.take(np.argsort(place)), [None if code is None else place[code] for code in codes]


# ----------
# The input of a fusion method.


@dataclass(frozen=True, eq=False)
class Candidates:
    """The n pairs of query and document that R runs return for Q queries."""

    query: Int64
    """int64[n], ascending."""
    rank: Int32
    """int32[R, n] from 1; 0 if the run lacks the document."""
    score: Float64
    """float64[R, n] after normalisation, 0 if the run lacks the document; float64[R, 0] for methods that use
    ranks."""
    sizes: Int64
    """int64[R, Q]: number of documents that each run returns for each query."""

    @property
    def runs(self) -> int:
        """Number of runs."""
        return len(self.rank)

    @property
    def returned(self) -> NDArray[np.bool_]:
        """bool[R, n]: True if the run returns the document."""
        return self.rank > 0

    def count(self) -> Int64:
        """Return for each pair the number of runs that return it, int64[n]."""
        times: Int64 = np.count_nonzero(self.rank, axis=0)
        return times

    def by_rank(self, worth: Callable[[Float64], Float64]) -> Float64:
        """Return `worth` of each rank, float64[R, n]; 0 if the run lacks the document.

        worth: maps an array of ranks, from 1, to values.
        """
        table = np.zeros(int(self.rank.max(initial=0)) + 1)
        table[1:] = worth(np.arange(1.0, len(table)))
        return table[self.rank]


def _sum_over_runs(values: Float64) -> Float64:
    rows = ascending(values)
    sums = rows[0].copy()
    for row in rows[1:]:
        sums += row
    return sums


def ascending(values: Float64) -> list[Float64]:
    """Return a matrix's rows, float64[n] each, with every column sorted in ascending order."""
    rows = list(values)
    for end in range(len(rows) - 1, 0, -1):  # whole rows at a time: far faster than sorting short columns
        for i in range(end):
            rows[i], rows[i + 1] = np.minimum(rows[i], rows[i + 1]), np.maximum(rows[i], rows[i + 1])
    return rows


# ----------
# Normalisations of scores, for each query by itself.


@dataclass(frozen=True, eq=False)
class ScoreLists:
    """A run's scores, best first; list q is score[ptr[q] : ptr[q + 1]]."""

    score: Float64
    """float64[n], finite."""
    ptr: Int64
    """int64[Q + 1]."""

    @property
    def list_lengths(self) -> Int64:
        """Length of each list, int64[Q]."""
        return np.diff(self.ptr)

    def spread(self, values: Float64) -> Float64:
        """Return a value per list, float64[Q], repeated for each score of the list, float64[n]."""
        return np.repeat(values, self.list_lengths)

    def sums(self, values: Float64) -> Float64:
        """Return the sum of `values`, float64[n], over each list, float64[Q]; 0 for an empty list."""
        rows = np.repeat(np.arange(len(self.ptr) - 1), self.list_lengths)
        return np.bincount(rows, values, len(self.ptr) - 1).astype(np.float64, copy=False)

    def _extremes(self) -> tuple[Float64, Float64]:
        extremes, filled = np.zeros((2, len(self.ptr) - 1)), np.flatnonzero(self.list_lengths)
        if len(filled):
            for row, function in zip(extremes, (np.minimum, np.maximum), strict=True):
                row[filled] = function.reduceat(self.score, self.ptr[filled])
        return extremes[0], extremes[1]


NORMS: Registry[Callable[[ScoreLists], Float64]] = Registry("normalisation")


@NORMS.register("none")
def none(lists: ScoreLists) -> Float64:
    """Return the scores unchanged."""
    return lists.score


@NORMS.register("minmax")
def minmax(lists: ScoreLists) -> Float64:
    """Return (score - lowest) / (highest - lowest); 1 if all scores of the list are equal."""
    # Lee 1997.
    low, high = lists._extremes()
    return _ratio(lists.score - lists.spread(low), lists.spread(high - low), 1.0)


@NORMS.register("zscore")
def zscore(lists: ScoreLists) -> Float64:
    """Return (score - mean) / population standard deviation (ZMUV); 0 if all scores are equal.

    Documents that are not returned count as average, 0.
    """
    # Montague and Aslam 2001.
    deviation = lists.score - lists.spread(lists.sums(lists.score) / lists.list_lengths)
    spread = np.sqrt(lists.sums(deviation**2) / lists.list_lengths)
    low, high = lists._extremes()
    return _ratio(deviation, lists.spread(np.where(high == low, 0.0, spread)), 0.0)


@NORMS.register("rank")
def rank(lists: ScoreLists) -> Float64:
    """Return 1 - (rank - 1) / number of documents in the list."""
    # Lee 1997.
    place = np.arange(len(lists.score)) - np.repeat(lists.ptr[:-1], lists.list_lengths)
    return 1.0 - place / np.repeat(lists.list_lengths, lists.list_lengths)


@NORMS.register("sum")
def summed(lists: ScoreLists) -> Float64:
    """Return (score - lowest) / the list's sum of (score - lowest); 1 / length if all scores are equal."""
    # Montague and Aslam 2001.
    raised = lists.score - lists.spread(lists._extremes()[0])
    flat = lists.spread(1.0 / lists.list_lengths)
    return _ratio(raised, lists.spread(lists.sums(raised)), flat)


@NORMS.register("max")
def maximum(lists: ScoreLists) -> Float64:
    """Return score / largest absolute score; 0 if all scores are 0."""
    low, high = lists._extremes()
    return _ratio(lists.score, lists.spread(np.maximum(np.abs(high), np.abs(low))), 0.0)


def _ratio(top: Float64, bottom: Float64, otherwise: Float64 | float) -> Float64:
    ratio = np.empty_like(top)
    ratio[:] = otherwise
    np.divide(top, bottom, out=ratio, where=bottom != 0)
    return ratio


# ----------
# Methods, and fusions: a method with its settings.


Setting: TypeAlias = int | float | str | tuple[float, ...]
"""Value of a setting; a tuple has a number for each run."""

NORM = "minmax"
"""Default normalisation of methods that use scores."""

_LONGEST = 500  # characters of a fusion's text
_LARGEST_WEIGHT = 1e9
_LARGEST = 1 << 63  # no number of a setting reaches it


@dataclass(frozen=True, eq=False)
class FusionMethod:
    """A registered fusion method."""

    name: str
    function: Callable[..., Float64]
    scored: bool
    """True if it uses normalised scores, False for ranks."""
    within: Mapping[str, tuple[float, float]]
    """Smallest and largest value of a setting."""
    grid: Mapping[str, tuple[Setting, ...]]
    """Values that `fit` tries."""

    @property
    def summary(self) -> str:
        """First line of the method's docstring."""
        return (inspect.getdoc(self.function) or "").partition("\n")[0]

    def defaults(self) -> dict[str, Setting]:
        """Return {setting: default value}."""
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
    """Return a decorator that registers a function of `Candidates` as a fusion method and returns its Fusion.

    scored: the function uses normalised scores, which adds the setting `norm`.
    within: {setting: (smallest value, largest value)}.
    grid: {setting: values that `fit` tries}.

    Keyword parameters become settings, typed by their defaults; () takes a number for each run. Raises
    BadValue for a registered name.
    """

    def add_method(function: Callable[..., Float64]) -> Fusion:
        METHODS.add(name, FusionMethod(name, function, scored, within or {}, grid or {}))
        return Fusion(name)

    return add_method


@dataclass(frozen=True)
class Fusion:
    """A fusion method with settings, such as rrf(k=10); a call with `Candidates` returns their scores,
    float64[n]."""

    name: str
    settings: tuple[tuple[str, Setting], ...] = ()
    """Only settings that differ from the defaults."""

    def __str__(self) -> str:
        inside = ", ".join(f"{key}={printed(value)}" for key, value in self.settings)
        return f"{self.name}({inside})" if inside else self.name

    def with_settings(self, settings: Mapping[str, object]) -> Fusion:
        """Return the fusion with these settings changed; raises UnknownName for an unknown setting, BadValue
        for a bad value."""
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
        """True if the method uses scores, False if ranks."""
        return METHODS.get(self.name).scored

    @property
    def norm(self) -> str:
        """Name of the score normalisation; "none" for methods that use ranks."""
        return str(dict(self.settings).get("norm", NORM)) if self.scored else "none"

    def all_settings(self) -> dict[str, Setting]:
        """Return {setting: value}, defaults included."""
        return METHODS.get(self.name).defaults() | dict(self.settings)

    def refuse_other_than(self, runs: int) -> None:
        """Raise BadValue if a setting with a value for each run, such as weights, lacks `runs` values."""
        for key, value in self.settings:
            if isinstance(value, tuple) and len(value) != runs:
                raise BadValue(f"{self}: {key} has {len(value)} for {runs} rankings; give one for each")

    def __call__(self, candidates: Candidates) -> Float64:
        self.refuse_other_than(candidates.runs)
        own = {key: value for key, value in self.settings if key != "norm"}
        return METHODS.get(self.name).function(candidates, **own)


def parse_fusion(text: str) -> Fusion:
    """Return the fusion of a text such as `rrf(k=10)`; raises UnknownName for an unknown method or setting,
    BadValue for malformed text or a bad value."""
    name, settings = call_of(text)
    METHODS.get(name)
    return Fusion(name).with_settings(settings)


def call_of(text: str) -> tuple[str, dict[str, object]]:
    """Return (name, settings) in a fusion's text, unchecked; raises BadValue for malformed text."""
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
"""Pairs of documents compared at once, to fit into the processor's cache."""

LARGEST = 1_000_000


@fusion(
    "rrf", within={"k": (0, LARGEST)}, grid={"k": (60, 1, 2, 5, 10, 20, 30, 40, 80, 100, 150, 200, 300, 500)}
)
def rrf(candidates: Candidates, *, k: int = 60) -> Float64:
    """Sum 1 / (k + rank) over the runs that return the document (reciprocal rank fusion).

    Source: Cormack, Clarke and Büttcher 2009.
    """
    return _sum_over_runs(candidates.by_rank(lambda rank: 1 / (k + rank)))


@fusion("isr")
def isr(candidates: Candidates) -> Float64:
    """Sum 1 / rank² and multiply by the number of runs that return the document (inverse square rank).

    Source: Mourão, Martins and Magalhães 2014.
    """
    return _sum_over_runs(candidates.by_rank(lambda rank: 1 / rank**2)) * candidates.count()


@fusion("logisr", within={"sigma": (0, 1)}, grid={"sigma": (0.0, 0.01, 0.1, 1.0)})
def logisr(candidates: Candidates, *, sigma: float = 0.0) -> Float64:
    """Sum 1 / rank² and multiply by ln(sigma + number of runs that return the document) (log inverse square rank).

    With sigma = 0 a document that a single run returns scores 0. Source: Mourão, Martins and Magalhães 2014.
    """
    factor: Float64 = np.array([0.0] + [math.log(sigma + n) for n in range(1, candidates.runs + 1)])
    return _sum_over_runs(candidates.by_rank(lambda rank: 1 / rank**2)) * factor[candidates.count()]


@fusion("rbc", within={"p": (0, 1)}, grid={"p": (0.8, 0.5, 0.6, 0.7, 0.9, 0.95, 0.98, 0.99, 0.995)})
def rbc(candidates: Candidates, *, p: float = 0.8) -> Float64:
    """Sum (1 - p) p^(rank - 1) over the runs that return the document (rank-biased centroid).

    p: probability that a reader goes on to the next document.
    Source: Bailey, Moffat, Scholer and Thomas 2017.
    """
    return _sum_over_runs(candidates.by_rank(lambda rank: (1 - p) * p ** (rank - 1)))


@fusion("borda")
def borda(candidates: Candidates) -> Float64:
    """Sum Borda points: of the c documents of all runs, a run gives its first c points, its second c - 1, ...

    Documents that a run lacks share its remaining points equally. Source: Aslam and Montague 2001.
    """
    pooled = np.bincount(candidates.query, minlength=candidates.sizes.shape[1])
    shared = (pooled - candidates.sizes + 1) / 2
    points = pooled[candidates.query] - candidates.rank + 1
    return _sum_over_runs(np.where(candidates.returned, points, shared[:, candidates.query]))


@fusion("condorcet")
def condorcet(candidates: Candidates) -> Float64:
    """Count the documents of the query that a document beats by majority of the runs; ties count half.

    A run prefers documents that it returns to all others, which tie. Time is quadratic in documents.
    Source: Montague and Aslam 2002.
    """
    # The count (Copeland's) orders the strongly connected parts of the majority graph as Condorcet-fuse does.
    score = np.zeros(len(candidates.query))
    cuts = np.searchsorted(candidates.query, np.arange(candidates.sizes.shape[1] + 1)).tolist()
    for start, stop in itertools.pairwise(cuts):
        if stop > start:
            score[start:stop] = _beaten(candidates.rank[:, start:stop])
    return score


def _beaten(rank: Int32) -> Float64:
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
    """Sum the normalised scores of the runs that return the document.

    Source: Fox and Shaw 1994.
    """
    return _sum_over_runs(candidates.score)


@fusion("combmnz", scored=True)
def combmnz(candidates: Candidates) -> Float64:
    """Sum the normalised scores and multiply by the number of runs that return the document.

    Source: Fox and Shaw 1994.
    """
    return _sum_over_runs(candidates.score) * candidates.count()


@fusion("combanz", scored=True)
def combanz(candidates: Candidates) -> Float64:
    """Average the normalised scores over the runs that return the document.

    Source: Fox and Shaw 1994.
    """
    return _sum_over_runs(candidates.score) / candidates.count()


@fusion("combmin", scored=True)
def combmin(candidates: Candidates) -> Float64:
    """Take the lowest normalised score among the runs that return the document.

    Source: Fox and Shaw 1994.
    """
    least: Float64 = np.where(candidates.returned, candidates.score, np.inf).min(axis=0)
    return least


@fusion("combmax", scored=True)
def combmax(candidates: Candidates) -> Float64:
    """Take the highest normalised score among the runs that return the document.

    Source: Fox and Shaw 1994.
    """
    greatest: Float64 = np.where(candidates.returned, candidates.score, -np.inf).max(axis=0)
    return greatest


@fusion("combmed", scored=True)
def combmed(candidates: Candidates) -> Float64:
    """Take the median normalised score among the runs that return the document.

    Source: Fox and Shaw 1994.
    """
    rows = np.stack(ascending(np.where(candidates.returned, candidates.score, np.inf)))
    count, column = candidates.count(), np.arange(rows.shape[1])
    return (rows[(count - 1) // 2, column] + rows[count // 2, column]) / 2


@fusion("wsum", scored=True)
def wsum(candidates: Candidates, *, weights: tuple[float, ...] = ()) -> Float64:
    """Sum weight * normalised score over the runs that return the document (linear combination).

    weights: one for each run in order, from 0; by default 1 / number of runs.
    Source: Vogt and Cottrell 1999.
    """
    weight = np.array(weights) if weights else np.full(candidates.runs, 1 / candidates.runs)
    return _sum_over_runs(weight[:, None] * candidates.score)
