"""Why two numbers differ: the settings that do, and what scoring again in other ways says of the gap."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from weir.core.corpus import Corpus
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.experiment.explain.setting_diff import SettingDifference, differences
from weir.experiment.explain.what_if import (
    CUTOFFS,
    Alternative,
    Scoring,
    mean,
    other_measures,
    other_rules,
    rescored,
    without_copies,
)
from weir.experiment.published.published_scores import PublishedScore, Publisher
from weir.measures import Measure

__all__ = ["ComparedResult", "Effect", "Why", "explained"]

NEGLIGIBLE = 1e-12
KINDS = {"ties": "tie rule", "self_match": "self-match", "missing": "missing queries", "k": "depth"}
"""Settings whose effect is measured by scoring again, and the kind of change that does it."""
SHOWN_QUERIES = 10


@dataclass(frozen=True, eq=False)
class ComparedResult:
    """One of two numbers: its name, its settings, its mean as stored or printed, its rankings if they are here.

    dropped: whether self-matches were left out of the rankings; score, publisher: for a published number.
    """

    name: str
    settings: tuple[tuple[str, str], ...]
    mean: float = math.nan
    run: Run | None = None
    qrels: Qrels | None = None
    corpus: Corpus | None = None
    dropped: bool = False
    score: PublishedScore | None = None
    publisher: Publisher | None = None


@dataclass(frozen=True)
class Effect:
    """One change of the way of scoring, made to each of the two numbers that can be scored again.

    first, second: the means after it; gap: second minus first; explains: the share of the original gap that is gone,
    NaN where there was none (above 1: it turns round; below 0: it grows); closes: whether the numbers then agree;
    documented: whether the publisher is known to score so.
    """

    kind: str
    change: str
    first: float
    second: float
    gap: float
    explains: float
    closes: bool
    documented: bool = False


@dataclass(frozen=True)
class Why:
    """Why two numbers differ.

    agree: whether the numbers are equal, or equal as printed; settings: those that differ, likeliest first; effects:
    changes of scoring that move a mean, each made alone: first those that close the gap, then what leaves least of it;
    without: changes that move nothing; same_top: how many of the `shared` queries that both answer have the same first
    ten documents in the same order; published: the published score, if one is compared with; notes: what could not be
    done.
    """

    measure: str
    first: str
    second: str
    first_mean: float
    second_mean: float
    agree: bool
    settings: tuple[SettingDifference, ...] = ()
    effects: tuple[Effect, ...] = ()
    without: tuple[str, ...] = ()
    same_top: int = 0
    shared: int = 0
    published: PublishedScore | None = None
    notes: tuple[str, ...] = ()

    @property
    def gap(self) -> float:
        """Second minus first."""
        return self.second_mean - self.first_mean

    @property
    def unexplained(self) -> float:
        """What the one change that leaves least of the gap leaves of it; the gap itself where none helps."""
        return min([self.gap, *(e.gap for e in self.effects)], key=abs)


def explained(
    first: ComparedResult, second: ComparedResult, measure: Measure, notes: Sequence[str] = ()
) -> Why:
    """Why two numbers differ. What has rankings and judgments is scored again, the rest stays as it is.

    Each change of scoring is made alone and to both sides, so that shares need not add up to 1. Two rankings scored
    here have one measure: for them only the rules are changed; what a published number measures may be changed too.
    """
    before = _scored(first, Scoring(measure)), _scored(second, Scoring(measure))
    effects: list[Effect] = []
    without: list[str] = []
    if first.qrels is not None and (second.qrels is not None or second.score is not None):
        for one in _changes(first, second, measure):
            after = _after(first, second, one)
            found = _effect(one, before, after, second)
            if found is not None:
                effects.append(found)
            elif not np.isnan(after).any():
                without.append(f"{one.kind} ({one.change})")
        effects += _copies_once(first, second, measure, before)
        effects += _both_answered(first, second, measure, before)
    effects.sort(key=lambda e: (not e.closes, not (e.closes and e.documented), abs(e.gap)))
    same, shared = _same_top(first.run, second.run)
    return Why(
        str(measure),
        first.name,
        second.name,
        *before,
        _agree(*before, second.score),
        _measured(differences(first.settings, second.settings), effects, without, second.score is not None),
        tuple(effects),
        tuple(without),
        same,
        shared,
        second.score,
        tuple(notes),
    )


def _measured(
    found: tuple[SettingDifference, ...], effects: Sequence[Effect], without: Sequence[str], documented: bool
) -> tuple[SettingDifference, ...]:
    """The settings with what is known of them now: one that closes the gap comes first, one that moves nothing last.

    documented: only changes count that the publisher is known to make.
    """
    known = []
    for one in found:
        kind = KINDS.get(one.setting, "")
        moved = [e for e in effects if e.kind == kind and (e.documented or not documented)]
        if any(e.closes for e in moved):
            known.append(replace(one, weight=100.0, why="scored again: it closes the gap"))
        elif not moved and any(w.startswith(f"{kind} (") for w in without):
            known.append(replace(one, weight=0.0, why="scored again: it moves nothing here"))
        else:
            known.append(one)
    return tuple(sorted(known, key=lambda d: -d.weight))


def _changes(first: ComparedResult, second: ComparedResult, measure: Measure) -> Iterator[Alternative]:
    """Every change of scoring that may explain the gap."""
    depths = {int(np.diff(s.run.ptr).max(initial=0)) for s in (first, second) if s.run is not None}
    dropped = first.dropped and (second.dropped or second.score is not None)
    yield from other_rules(measure, dropped, tuple(sorted({*CUTOFFS, *depths} - {0})))
    if second.score is not None and first.qrels is not None:
        yield from other_measures(measure, first.qrels)
    if second.publisher is not None:
        rules = second.publisher
        together = Scoring(measure, rules.ties or "trec", rules.self_match or "keep", rules.missing or "zero")
        if together != Scoring(measure):
            yield Alternative("all rules", f"as {rules.name} documents them", together)


def _after(first: ComparedResult, second: ComparedResult, one: Alternative) -> tuple[float, float]:
    return _scored(first, one.scoring), _scored(second, one.scoring)


def _effect(
    one: Alternative, before: tuple[float, float], after: tuple[float, float], second: ComparedResult
) -> Effect | None:
    """What a change does to the gap; None where it moves neither mean, or leaves a side without any query."""
    moves = [abs(a - b) for a, b in zip(after, before, strict=True)]
    if max(moves) <= NEGLIGIBLE or np.isnan(moves).any():
        return None
    gap, left = before[1] - before[0], after[1] - after[0]
    explains = (gap - left) / gap if abs(gap) > NEGLIGIBLE else math.nan
    closes = _agree(*after, second.score)
    return Effect(one.kind, one.change, *after, left, explains, closes, _documented(one, second.publisher))


def _documented(one: Alternative, rules: Publisher | None) -> bool:
    """Whether a publisher is known to score in the way in which this differs from Weir's."""
    usual = Scoring(one.scoring.measure)
    pairs = [(n, getattr(one.scoring, n)) for n in ("ties", "self_match", "missing")]
    changed = [(n, v) for n, v in pairs if v != getattr(usual, n)]
    return rules is not None and bool(changed) and all(getattr(rules, n) == v for n, v in changed)


def _agree(first: float, second: float, score: PublishedScore | None) -> bool:
    return abs(second - first) <= NEGLIGIBLE if score is None else score.agrees(first)


def _scored(side: ComparedResult, scoring: Scoring) -> float:
    """The mean of a side under a scoring; a side without rankings or judgments keeps its own."""
    if side.run is None or side.qrels is None:
        return side.mean
    return mean(rescored(side.run, side.qrels, scoring), scoring.measure)


def _both_answered(
    first: ComparedResult, second: ComparedResult, measure: Measure, before: tuple[float, float]
) -> list[Effect]:
    """The effect of counting only the queries that both answer; none where that changes nothing or cannot be known."""
    if first.run is None or second.run is None or first.qrels is None or second.qrels is None:
        return []
    if first.qrels.queries != second.qrels.queries:
        return []
    usual = Scoring(measure, missing="answered-only")
    a, b = rescored(first.run, first.qrels, usual), rescored(second.run, second.qrels, usual)
    out = np.isnan(a) | np.isnan(b)
    one = Alternative("missing queries", "only those that both answer", usual)
    after = mean(np.where(out, np.nan, a), measure), mean(np.where(out, np.nan, b), measure)
    found = _effect(one, before, after, second)
    return [] if found is None or np.array_equal(np.isnan(a), np.isnan(b)) else [found]


def _copies_once(
    first: ComparedResult, second: ComparedResult, measure: Measure, before: tuple[float, float]
) -> list[Effect]:
    """The effect of counting copies of a text once; none where there are no copies or the texts are not here."""
    if first.corpus is None or (second.corpus is None and second.score is None):
        return []
    one = Alternative("duplicates", "copies of a text counted once", Scoring(measure))
    sides = [
        s if s.run is None or s.corpus is None else replace(s, run=without_copies(s.run, s.corpus))
        for s in (first, second)
    ]
    found = _effect(one, before, _after(sides[0], sides[1], one), second)
    return [] if found is None else [found]


def _same_top(first: Run | None, second: Run | None) -> tuple[int, int]:
    """How many queries that both answer begin with the same ten documents, and how many those are."""
    if first is None or second is None:
        return 0, 0
    one, other = first.top(SHOWN_QUERIES), second.top(SHOWN_QUERIES)
    at = other.queries.codes(one.queries.strings)
    docs = other.docs.codes(one.docs.strings)[one.doc]
    same = shared = 0
    for q in np.flatnonzero(at >= 0).tolist():
        mine = docs[one.ptr[q] : one.ptr[q + 1]]
        theirs = other.doc[other.ptr[at[q]] : other.ptr[at[q] + 1]]
        if len(mine) and len(theirs):
            shared += 1
            same += np.array_equal(mine, theirs)
    return same, shared
