"""Whether verdicts depend on what should not matter: on the place in a prompt, on the order of two, on asking again."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from weir.core.strings import Float64
from weir.plugins.sensitivity.answer_log import HeardAnswer
from weir.stats.bootstrap import SEED, ratio_interval
from weir.stats.corrections import adjusted
from weir.stats.distributions import incomplete_beta

__all__ = [
    "FirstPlace",
    "OrderFlips",
    "PromptPlaces",
    "SameVerdicts",
    "order_flips",
    "prompt_places",
    "same_verdicts",
]


@dataclass(frozen=True)
class FirstPlace:
    """How often the document at a place of a prompt, from 1, is put first.

    share: of `times` prompts; low, high: its 95% interval over queries; p: of the exact binomial test that the share is
    that of an even chance, corrected for all places (Holm).
    """

    place: int
    times: int
    share: float
    low: float
    high: float
    p: float


@dataclass(frozen=True)
class PromptPlaces:
    """The first prompts of re-rankings of shuffled candidates: places of what was put first.

    size: documents of a prompt; prompts: with a whole verdict, of `shown`; even: the share of each place, if places do
    not matter; places: see FirstPlace. Candidates stand in random order, so a model that is blind to places puts each
    place first equally often, whatever the documents are.
    """

    size: int
    shown: int
    prompts: int
    even: float
    places: tuple[FirstPlace, ...]


@dataclass(frozen=True)
class OrderFlips:
    """Pairs of documents that were compared in both orders, of those with a whole verdict on both.

    compared: pairs asked about in both orders; pairs: those decided both times; flipped: share of these in which the
    verdict is on the place and not on the document, with its 95% interval over queries; first: share of the flipped
    pairs in which the document named first won both times.
    """

    compared: int
    pairs: int
    flipped: float
    low: float
    high: float
    first: float


@dataclass(frozen=True)
class SameVerdicts:
    """Prompts that were asked several times.

    samples: answers to each; prompts: asked in each sample; others: asked in some only, since what windows and sorts
    ask depends on the answers before; equal: the share of pairs of answers to one prompt that say the same, no
    verdict being one, with its 95% interval over queries; deviation: mean standard deviation (n - 1) of the scores of a
    prompt, NaN where verdicts are no scores.
    """

    samples: int
    prompts: int
    others: int
    equal: float
    low: float
    high: float
    deviation: float


def prompt_places(runs: Sequence[Sequence[HeardAnswer]]) -> tuple[PromptPlaces, ...]:
    """The places of what was put first, for each size of prompt; runs: the answers of each shuffled order.

    The first prompt about each query counts: its documents were drawn without regard to any answer.
    """
    found: dict[int, list[HeardAnswer]] = defaultdict(list)
    for answers in runs:
        seen: set[str] = set()
        for answer in answers:
            if answer.query not in seen and len(answer.shown) > 1:
                found[len(answer.shown)].append(answer)
            seen.add(answer.query)
    return tuple(_places(size, found[size]) for size in sorted(found))


def _places(size: int, answers: Sequence[HeardAnswer]) -> PromptPlaces:
    clear = [answer for answer in answers if answer.first is not None]
    queries = sorted({answer.query for answer in clear})
    number = {query: i for i, query in enumerate(queries)}
    table = np.zeros((size, len(queries)))
    for answer in clear:
        assert answer.first is not None  # those without were left out
        table[answer.first - 1, number[answer.query]] += 1
    total = table.sum(axis=0)
    times = table.sum(axis=1).astype(int).tolist()
    p = adjusted(np.array([_even_p(n, len(clear), 1 / size) for n in times])).tolist()
    bounds = [_interval(row, total) for row in table]
    places = tuple(
        FirstPlace(place, n, n / len(clear) if clear else math.nan, *ends, one)
        for place, (n, ends, one) in enumerate(zip(times, bounds, p, strict=True), 1)
    )
    return PromptPlaces(size, len(answers), len(clear), 1 / size, places)


def _even_p(successes: int, trials: int, chance: float) -> float:
    """Twice the smaller tail of the binomial distribution, at most 1."""
    if trials == 0:
        return 1.0
    above = 1.0 if successes == 0 else incomplete_beta(successes, trials - successes + 1, chance)
    below = 1.0 if successes == trials else incomplete_beta(trials - successes, successes + 1, 1 - chance)
    return min(1.0, 2 * min(above, below))


def _interval(numerator: Float64, denominator: Float64) -> tuple[float, float]:
    if not denominator.any():
        return math.nan, math.nan
    return ratio_interval((numerator, denominator), np.random.default_rng(SEED))


def order_flips(answers: Sequence[HeardAnswer]) -> OrderFlips | None:
    """Verdicts on two documents that were shown in both orders; None where no two were."""
    shown = {(a.query, a.shown): a for a in answers if len(a.shown) == 2 and a.shown[0] != a.shown[1]}
    both = [
        (answer, shown[query, pair[::-1]])
        for (query, pair), answer in shown.items()
        if pair < pair[::-1] and (query, pair[::-1]) in shown
    ]
    if not both:
        return None
    decided = [(a.query, a.first, b.first) for a, b in both if a.first is not None and b.first is not None]
    flips = [(query, one) for query, one, other in decided if one == other]
    pairs, flipped = Counter(query for query, _, _ in decided), Counter(query for query, _ in flips)
    queries = sorted(pairs)
    counts = [np.array([float(counted[query]) for query in queries]) for counted in (flipped, pairs)]
    return OrderFlips(
        len(both),
        len(decided),
        len(flips) / len(decided) if decided else math.nan,
        *(_interval(counts[0], counts[1]) if decided else (math.nan, math.nan)),
        sum(one == 1 for _, one in flips) / len(flips) if flips else math.nan,
    )


def same_verdicts(samples: Sequence[Sequence[HeardAnswer]]) -> SameVerdicts:
    """How far answers to the same prompts agree; samples: the answers of each, two or more."""
    values = [{answer.prompt: answer for answer in answers} for answers in samples]
    common = [prompt for prompt in values[0] if all(prompt in one for one in values)]
    others = len({prompt for one in values for prompt in one}) - len(common)
    pairs, equal, deviations = Counter[str](), Counter[str](), []
    for prompt in common:
        answers = [one[prompt] for one in values]
        said = [answer.value if answer.clear else None for answer in answers]
        agreed = sum(a == b for a, b in combinations(said, 2))
        pairs[answers[0].query] += len(said) * (len(said) - 1) // 2
        equal[answers[0].query] += agreed
        scores = [float(one) for one in said if isinstance(one, (int, float))]
        if len(answers[0].shown) == 1 and len(scores) > 1:
            deviations.append(float(np.std(scores, ddof=1)))
    queries = sorted(pairs)
    counts = [np.array([float(counted[query]) for query in queries]) for counted in (equal, pairs)]
    return SameVerdicts(
        len(samples),
        len(common),
        others,
        sum(equal.values()) / sum(pairs.values()) if pairs else math.nan,
        *(_interval(counts[0], counts[1]) if pairs else (math.nan, math.nan)),
        math.fsum(deviations) / len(deviations) if deviations else math.nan,
    )
