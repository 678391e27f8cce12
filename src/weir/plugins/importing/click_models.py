"""Click models: clicks of documents over expected clicks, with intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weir.core.strings import Float64, Int64
from weir.errors import BadValue, UnknownName

Z = 1.959963984540054
"""The normal quantile of 95% intervals."""
ROUNDS = 2000
"""Most steps of expectation and maximisation."""
SMALLEST_STEP = 1e-7
"""Iteration stops when no examination changes by more."""
LEAST_EXPOSURE = 1e-9


CLICK_MODELS = ("ctr", "coec", "pbm")


@dataclass(frozen=True, eq=False)
class ClickLog:
    """The columns of a click log."""

    pair: Int64
    """int64[rows]: the number of the pair of query and document, from 0."""
    position: Int64
    """int64[rows], from 1; 0 if it is not known."""
    clicks: Float64
    """float64[rows]."""
    impressions: Float64
    """float64[rows]."""

    @property
    def positioned(self) -> bool:
        """True if the position is known in every row."""
        return bool((self.position > 0).all())


@dataclass(frozen=True)
class ClickShare:
    """A pair's clicks divided by expected clicks, with a 95% interval."""

    value: float
    low: float
    high: float
    clicks: float
    impressions: float
    expected: float
    """Clicks that an always attractive document would get; 0 if next to none."""


@dataclass(frozen=True)
class ClickModel:
    """A click model; its text is such as "pbm=1,0.6,0.4"."""

    name: str
    examination: tuple[float, ...] = ()
    """Probability of each position from 1; () if it is estimated or not used."""

    def __str__(self) -> str:
        return self.name + (
            "=" + ",".join(f"{one:g}" for one in self.examination) if self.examination else ""
        )


def parse_click_model(text: str) -> ClickModel:
    """Return the click model of "ctr", "coec", "pbm" or "pbm=1,0.6,0.4".

    Raises UnknownName for another model, BadValue for numbers outside (0, 1] or given to ctr or coec.
    """
    name, equals, listed = text.partition("=")
    if name not in CLICK_MODELS:
        raise UnknownName("click model", name, CLICK_MODELS)
    try:
        examination = tuple(float(one) for one in listed.split(",")) if equals else ()
    except ValueError:
        examination = (0.0,)
    if not all(0 < one <= 1 for one in examination) or (equals and name != "pbm"):
        raise BadValue(
            f"the click model '{text}'; expected ctr, coec, pbm, or pbm=1,0.6,0.4 with the examination of positions 1, "
            "2, 3, each above 0 and at most 1"
        )
    return ClickModel(name, examination)


def click_shares(log: ClickLog, model: ClickModel) -> list[ClickShare]:
    """Return each pair's clicks divided by its expected clicks, in order of pair numbers; 0 if none are expected.

    Shares are at most 1, except for coec. Raises BadValue if the log lacks positions that the model needs, or
    examination is given for too few.
    """
    # The interval holds each share that the clicks are within 1.96 standard errors of, for independent clicks with
    # probability share * exposure and known exposures; for exposure 1 it is Wilson's (Wilson 1927).
    if model.name != "ctr" and not log.positioned:
        raise BadValue(
            f"{model.name} takes the position of each impression, which the log lacks; give a column of positions, or "
            "take the click-through rate with `choices={'clicks': 'ctr'}`, which favours what stood at the top"
        )
    if model.name == "ctr":  # each document shown is examined, wherever it stands
        exposure = np.ones(len(log.pair))
    elif model.name == "coec":  # an impression is worth the mean click-through rate of its position
        clicks, shown = (np.bincount(log.position, column) for column in (log.clicks, log.impressions))
        rates = np.divide(clicks, shown, out=np.zeros(len(clicks)), where=shown > 0)
        exposure = rates[log.position]
    elif model.examination:  # an impression is worth the chance that its position is examined
        last = int(log.position.max(initial=0))
        if last > len(model.examination):
            raise BadValue(
                f"the log goes down to position {last}, and examination is given for {len(model.examination)}; give "
                "one number for each position"
            )
        exposure = np.array((0.0, *model.examination))[log.position]
    else:
        exposure = _estimated_examination(log)[log.position]
    count = int(log.pair.max(initial=-1)) + 1
    clicks, shown, expected, squared = (
        np.bincount(log.pair, column, minlength=count)
        for column in (
            log.clicks, log.impressions, log.impressions * exposure, log.impressions * exposure**2
        )
    )  # fmt: skip
    clickable = expected > LEAST_EXPOSURE
    whole = np.where(clickable, expected, 1.0)
    value = clicks / whole
    square = whole**2 + Z**2 * squared
    middle = (2 * clicks * whole + Z**2 * whole) / (2 * square)
    half = np.sqrt(np.maximum(middle**2 - clicks**2 / square, 0.0))
    low, high = np.minimum(middle - half, value), np.maximum(middle + half, value)
    if model.name != "coec":  # shares of people; over a mean rate more than 1 is possible
        value, low, high = (np.minimum(column, 1.0) for column in (value, low, high))
    columns = (value, np.maximum(low, 0.0), high, clicks, shown, np.where(clickable, expected, 0.0))
    return [ClickShare(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]


def _estimated_examination(log: ClickLog) -> Float64:
    # Craswell, Zoeter, Taylor and Ramsey 2008; Chuklin, Markov and de Rijke 2015, section 4.2.
    apart = _unlinked(log)
    if apart:
        raise BadValue(
            f"no document was shown at position {apart} and elsewhere for one query, so that examination cannot be "
            "estimated; give it, as in `choices={'clicks': 'pbm=1,0.6,0.4'}`, or take `choices={'clicks': 'coec'}`"
        )
    pairs, last = int(log.pair.max()) + 1, int(log.position.max())
    shown_of = np.bincount(log.pair, log.impressions, minlength=pairs)
    shown_at = np.bincount(log.position, log.impressions, minlength=last + 1)
    passed = log.impressions - log.clicks
    attractive = np.full(pairs, 0.5)
    examined = np.append(0.0, 1 / np.arange(1, last + 1))
    for _ in range(ROUNDS):
        one, other = attractive[log.pair], examined[log.position]
        silent = passed / np.maximum(1 - one * other, 1e-12)
        attractive = (
            np.bincount(log.pair, log.clicks + silent * one * (1 - other), minlength=pairs) / shown_of
        )
        estimate = np.bincount(log.position, log.clicks + silent * other * (1 - one), minlength=last + 1)
        estimate = np.divide(estimate, shown_at, out=np.zeros(last + 1), where=shown_at > 0)
        moved, examined = float(np.abs(estimate - examined).max()), estimate
        if moved < SMALLEST_STEP:
            break
    return examined / max(float(examined.max()), LEAST_EXPOSURE)


def _unlinked(log: ClickLog) -> int:
    positions = np.unique(log.position)
    group = np.arange(int(positions[-1]) + 1)
    clicked = np.isin(
        log.pair, log.pair[log.clicks > 0]
    )  # a pair never clicked says nothing of its positions
    order = np.lexsort((log.position[clicked], log.pair[clicked]))
    pair, position = log.pair[clicked][order], log.position[clicked][order]
    links = np.unique(np.stack([position[:-1], position[1:]])[:, pair[:-1] == pair[1:]], axis=1)
    for _ in range(len(positions)):
        least = np.minimum(group[links[0]], group[links[1]])
        before = group.copy()
        np.minimum.at(group, links[0], least)
        np.minimum.at(group, links[1], least)
        if (group == before).all():
            break
    apart = positions[group[positions] != group[positions[0]]]
    return int(apart[0]) if len(apart) else 0
