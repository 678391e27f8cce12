"""Choose the settings of a fusion on judged queries, by cross-validation."""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from weir.core import frames, results
from weir.core.qrels import Qrels
from weir.core.roles import judged_run
from weir.core.rounding import count, score
from weir.core.run import Named, Run
from weir.core.scores import Note, Scores, averaged
from weir.core.strings import Float64, Ids, Int64
from weir.core.tables import Table, sentences, table_of
from weir.errors import BadValue
from weir.measures import Measure, measures_of, scores_of
from weir.measures.measure import direction, no_direction_note
from weir.stats.compare import compare_scores, compare_tables
from weir.stats.significance import defined_mean
from weir.systems.fusion.fuse import Pool, fused, fused_block
from weir.systems.fusion.methods import METHODS, NORMS, Fusion, Setting, call_of, parse_fusion
from weir.systems.protocol import Progress

# ----------
# The settings that are tried.


STEP = 0.1
"""Step between tried weights."""

MOST_SETTINGS = 2_000
"""Largest number of settings that a fit tries."""


def candidates(method: str | Fusion, runs: int, step: float = STEP) -> tuple[Fusion, ...]:
    """Return the fusions that a fit tries, defaults first: all combinations of the settings that `method`
    leaves open.

    runs: number of fused runs.
    step: distance between tried weights, which sum to 1.

    Raises UnknownName for an unknown method or setting; BadValue without an open setting, above 2,000
    combinations, and for a step that does not divide 1.
    """
    how = method if isinstance(method, Fusion) else parse_fusion(method)
    fixed: Mapping[str, object] = dict(how.settings) if isinstance(method, Fusion) else call_of(method)[1]
    how.refuse_other_than(runs)
    definition = METHODS.get(how.name)
    values = dict[str, list[Setting]]()
    for key, default in definition.defaults().items():
        if key in fixed:
            continue
        grid: Iterable[Setting] = definition.grid.get(key, ())
        if key == "norm":
            grid = NORMS
        elif isinstance(default, tuple):
            grid = _simplex(runs, step)
        values[key] = [default, *(value for value in grid if value != default)]
    count = math.prod(map(len, values.values()))
    if count < 2:
        raise BadValue(f"{how}: no setting is left to fit; try rrf, rbc, wsum or a method with norms")
    if count > MOST_SETTINGS:
        raise BadValue(
            f"{how}: {count:,} settings to try, more than {MOST_SETTINGS:,}; take a larger step or fix the norm"
        )
    combinations = itertools.product(*values.values())
    return tuple(how.with_settings(dict(zip(values, chosen, strict=True))) for chosen in combinations)


def _simplex(runs: int, step: float) -> Iterator[tuple[float, ...]]:
    parts = round(1 / step) if 0 < step <= 1 else 0
    if parts == 0 or abs(parts * step - 1) > 1e-9:
        raise BadValue(f"the step of the weights is {step}; expected one that divides 1, such as 0.1 or 0.05")
    if math.comb(parts + runs - 1, runs - 1) > 100 * MOST_SETTINGS:
        raise BadValue(
            f"{runs} rankings with a step of {step} are too many weights to try; take a larger step"
        )
    for bars in itertools.combinations(range(parts + runs - 1), runs - 1):
        edges = [-1, *bars, parts + runs - 1]
        shares = [b - a - 1 for a, b in itertools.pairwise(edges)]
        if len(set(shares)) > 1:
            yield tuple(share / parts for share in shares)


# ----------
# The choice of settings by cross-validation.


FOLDS = 5
SEED = 20_210_427


@dataclass(frozen=True, eq=False)
class Trials:
    """A measure's value for every tried fusion and judged query."""

    tried: tuple[Fusion, ...]
    """S fusions."""
    measure: Measure
    queries: Ids
    """All Q judged queries."""
    values: Float64
    """float64[S, Q], NaN if undefined."""


@dataclass(frozen=True)
class Fold:
    """A fold of the queries, the settings chosen on all other folds, and the means with them."""

    number: int
    """From 1."""
    queries: int
    chosen: Fusion
    fitted: float
    """Mean over the queries of the other folds."""
    held_out: float
    """Mean over the queries of this fold."""


@dataclass(frozen=True, eq=False, repr=False)
class Fit:
    """The best settings of a fusion on all judged queries, with cross-validation."""

    measure: Measure
    tried: int
    chosen: Fusion
    """The best settings on all judged queries."""
    fitted: float
    """Mean of the chosen settings over the judged queries on which they were chosen; biased."""
    folds: tuple[Fold, ...]
    queries: Ids
    fold: Int64
    """int64[queries]: the fold of each query, from 0."""
    held_out: Float64
    """float64[queries]: each query's value with the settings chosen without its fold; unbiased."""
    remarks: tuple[Note, ...] = ()
    """Notes on the judgments."""

    __repr__ = results.result_text
    _repr_html_ = results.result_html

    def tables(self) -> tuple[Table, ...]:
        lines = [
            ["settings chosen without the fold", "fold", "queries", f"{self.measure} there", "on the fold"]
        ]
        for fold in self.folds:
            numbers = [str(fold.number), str(fold.queries), score(fold.fitted), score(fold.held_out)]
            lines.append([str(fold.chosen), *numbers])
        lines.append([str(self.chosen), "all", str(len(self.queries)), score(self.fitted), ""])
        note = f"{count(self.tried)} settings tried; a mean where the settings were chosen says little of other queries"
        return table_of(lines, right=4), replace(sentences(note), follows=True)

    to_frame = frames.to_frame

    def columns(self) -> dict[str, list[object]]:
        """Return {"number", "queries", "chosen", "fitted", "held_out": values}, a value for each fold."""
        lines = [{name: getattr(fold, name) for name in Fold.__dataclass_fields__} for fold in self.folds]
        return frames.columns_of(line | {"chosen": str(line["chosen"])} for line in lines)

    def notes(self) -> tuple[Note, ...]:
        text = "each judged query is fused with settings that other folds chose: scoring the result on them is fair"
        return Note(text), *self.remarks


def fit(
    method: str | Fusion | Sequence[Fusion],
    runs: Sequence[Run],
    qrels: Qrels,
    measure: Measure | str = "nDCG@10",
    folds: int = FOLDS,
    seed: int = SEED,
) -> Fit:
    """Return a fusion's best settings on all judged queries, and for each fold the best on the other folds.

    method: a method, with settings to fix, or the fusions to choose from.
    seed: assigns queries to folds.

    Raises UnknownName for an unknown name; BadValue without an open setting, for fewer than 2 folds or more
    than judged queries, a measure without a direction, and if no judged query has results in two runs.
    """
    tried = candidates(method, len(runs)) if isinstance(method, (str, Fusion)) else tuple(method)
    return cross_validated(trials(tried, Pool.of(runs), qrels, measure), folds, seed)


def trials(
    tried: Sequence[Fusion], pool: Pool, qrels: Qrels, measure: Measure | str, watch: Progress | None = None
) -> Trials:
    """Return a measure's value for every fusion and judged query; a missing ranking counts as empty.

    watch: called with (measured so far, all) in fusions times queries.

    Raises UnknownName for an unknown measure; BadValue without a fusion, for several measures or one without
    a direction, and if no judged query has results in two runs.
    """
    measures = measures_of(measure)
    if len(measures) != 1 or not tried:
        raise BadValue("a fit takes one measure and at least one fusion")
    if problem := no_direction_note(map(str, measures)):
        raise BadValue(f"{problem[0]}, and no settings are the best; fit by another measure")
    codes = qrels.queries.codes(pool.queries.strings)
    shared = np.flatnonzero((codes >= 0) & (pool.answered() > 0))
    if not (pool.answered()[shared] > 1).any():
        raise BadValue("no judged query is answered by two of the rankings: there is nothing to fit on")
    values = np.empty((len(tried), len(qrels)))
    ptr, doc, score = np.zeros(len(qrels) + 1, np.int64), np.empty(0, np.int32), np.empty(0)
    values[:] = _measured(measures[0], Run(qrels.queries, qrels.docs, ptr, doc, score), qrels)
    number = qrels.docs.codes(pool.docs.strings)
    judged, codes = pool.only(shared), codes[shared]
    for block in judged.blocks():
        at = codes[block.first : block.first + len(block)]
        judgments = qrels.only(at)
        for row, how in enumerate(tried):
            ptr, doc, score = fused_block(judged, block, how)
            run = Run(judgments.queries, judgments.docs, ptr, number[doc], score)
            values[row, at] = _measured(measures[0], run, judgments)
            if watch is not None:
                watch(block.first * len(tried) + (row + 1) * len(block), len(shared) * len(tried))
    return Trials(tuple(tried), measures[0], qrels.queries, values)


def cross_validated(trials: Trials, folds: int = FOLDS, seed: int = SEED) -> Fit:
    """Return the best settings on all queries, and for each fold the best on the other folds; the first tried
    wins ties.

    Raises BadValue for fewer than two folds or more than queries.
    """
    fold = fold_of(trials.queries, folds, seed)
    measure, tried, values = trials.measure, trials.tried, trials.values
    held_out, results = np.empty(len(trials.queries)), list[Fold]()
    for number in range(folds):
        inside = fold == number
        best, mean = _best(values[:, ~inside], measure)
        held_out[inside] = values[best, inside]
        means = [averaged(m, measure.geometric) for m in (mean, defined_mean(held_out[inside]))]
        results.append(Fold(number + 1, int(inside.sum()), tried[best], *means))
    best, mean = _best(values, measure)
    fitted = averaged(mean, measure.geometric)
    return Fit(measure, len(tried), tried[best], fitted, tuple(results), trials.queries, fold, held_out)


def fold_of(queries: Ids, folds: int = FOLDS, seed: int = SEED) -> Int64:
    """Return each query's fold, int64[queries] from 0, by a hash of seed and identifier; sizes differ by at most 1.

    Raises BadValue for fewer than two folds or more than queries.
    """
    if not 2 <= folds <= len(queries):
        raise BadValue(
            f"{folds} folds of {len(queries)} judged queries; expected from 2 to as many as there are queries"
        )
    key = str(seed).encode("ascii")
    names = [name.encode("utf-8") for name in queries]
    keyed = [(hashlib.blake2b(name, digest_size=8, key=key).digest(), name) for name in names]
    order = sorted(range(len(names)), key=keyed.__getitem__)
    fold = np.empty(len(names), np.int64)
    fold[order] = np.arange(len(names)) % folds
    return fold


def fused_by(fitted: Fit, pool: Pool, k: int | None = None) -> Run:
    """Return the fused run, cut at k (None: uncut): judged queries with the settings chosen without their
    fold, others with the settings chosen on all."""
    codes = fitted.queries.codes(pool.queries.strings)
    fold = np.where(codes >= 0, fitted.fold[codes], len(fitted.folds))
    chosen = [*(f.chosen for f in fitted.folds), fitted.chosen]
    parts = []
    for how in dict.fromkeys(chosen):
        which = np.flatnonzero(np.isin(fold, [i for i, other in enumerate(chosen) if other == how]))
        parts.append((which, fused(pool.only(which), how, k)))
    query, doc, score = (
        np.concatenate(column)
        for column in zip(*((w[run.query_of_row()], run.doc, run.score) for w, run in parts), strict=True)
    )
    name = f"{fitted.chosen.name} fitted on {fitted.measure} by cross-validation"
    return Run.from_columns(pool.queries, pool.docs, query, doc, score, Named(name))


def _measured(measure: Measure, run: Run, qrels: Qrels) -> Float64:
    values: Float64 = scores_of(judged_run(run, qrels), (measure,)).values[0]
    return values


def _best(values: Float64, measure: Measure) -> tuple[int, float]:
    means, way = [defined_mean(row) for row in values], direction(str(measure))
    best = max(range(len(means)), key=lambda i: -math.inf if math.isnan(means[i]) else way * means[i])
    return best, means[best]


# ----------
# Tables.


def held_out_tables(held_out: Scores, single: Mapping[str, Scores], dataset: str) -> tuple[Table, ...]:
    """Return tables that compare the cross-validated fusion with the best single run, noting that this run
    was picked on the same queries.

    single: scores of each run, at least one; the first measure's mean decides.
    """
    way = direction(held_out.measures[0])
    best = max(single, key=lambda name: way * float(single[name].mean_values()[0]))
    comparisons = compare_scores({"fused, held out": held_out, best: single[best]}, dataset, best)
    note = f"{best}: the best of {len(single)} runs, picked on these queries, which favours it"
    return (*compare_tables(comparisons), replace(sentences(note), follows=True))
