"""What a service may cost, how fast it is asked, and when to give up on it."""

from __future__ import annotations

import math
import random
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

from weir.errors import BadValue, ServiceError
from weir.settings import Settings

__all__ = ["CONTINUES", "Bucket", "Clock", "Limits", "Spent", "estimated", "paid"]

CONTINUES = "everything answered so far is kept, and the same command continues from here"
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?(?:[eE]\+?\d+)?)\s+(requests|tokens|dollars)")

_PRICE = re.compile(r"(\d+(?:\.\d+)?)(?: in, *(\d+(?:\.\d+)?) out)?")


@dataclass(frozen=True)
class Clock:
    """Time as the client sees it: seconds since some moment and since 1970, waiting, and chance in [0, 1)."""

    now: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep
    chance: Callable[[], float] = random.random


@dataclass
class Spent:
    """What was asked of a service so far: requests (retries among them), texts and tokens, those of answers
    among them; seconds waited."""

    requests: int = 0
    retries: int = 0
    texts: int = 0
    tokens: int = 0
    answer_tokens: int = 0
    waited: float = 0.0


@cache
def paid() -> Spent:
    """What this process asked of services that want to be paid: one budget, whoever of it asks."""
    return Spent()


@dataclass(frozen=True)
class Limits:
    """What may be spent by one process, how fast, and how patiently.

    requests, tokens, dollars: the budget, None for no bound; dollars need a price, in dollars for a million tokens;
    answer_price: that of tokens which a model says, None for the same. requests_per_minute, tokens_per_minute: None for
    as fast as answers come. timeout: seconds without any byte; whole: seconds that one answer may take in all;
    attempts: of one request; pause: seconds before the second attempt, doubled for each further one; longest: seconds
    to wait at most, a server that asks for more ends the command.
    """

    requests: int | None = None
    tokens: int | None = None
    dollars: float | None = None
    price: float | None = None
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    timeout: float = 60.0
    whole: float = 600.0
    attempts: int = 6
    pause: float = 1.0
    longest: float = 300.0
    answer_price: float | None = None

    def __post_init__(self) -> None:
        if self.dollars is not None and self.price is None:
            raise BadValue(
                "a budget in dollars needs the price: WEIR_API_PRICE, in dollars for a million tokens"
            )

    @staticmethod
    def of(settings: Settings) -> Limits:
        """The limits that the environment sets; raises BadValue for what cannot be read."""
        budget = _amounts("WEIR_API_BUDGET", settings.api_budget, ("requests", "tokens", "dollars"))
        rate = _amounts("WEIR_API_RATE", settings.api_rate, ("requests", "tokens"))
        price, answer_price = _prices(settings.api_price)
        return Limits(
            requests=None if (r := budget.get("requests")) is None else int(r),
            tokens=None if (t := budget.get("tokens")) is None else int(t),
            dollars=budget.get("dollars"),
            price=price,
            answer_price=answer_price,
            requests_per_minute=rate.get("requests"),
            tokens_per_minute=rate.get("tokens"),
        )

    def cost(self, tokens: int, answers: int = 0) -> float | None:
        """Dollars for so many tokens, of which so many are a model's answers; None where no price is stated."""
        if self.price is None:
            return None
        dearer = 0.0 if self.answer_price is None else self.answer_price - self.price
        return (tokens * self.price + answers * dearer) / 1e6

    def left(self, spent: Spent) -> int | None:
        """Tokens that the budget still allows, None for any number."""
        bounds = [] if self.tokens is None else [self.tokens - spent.tokens]
        if self.dollars is not None and self.price:
            bounds.append(self._left_by_price(self.dollars, self.price, spent))
        return min(bounds, default=None)

    def _left_by_price(self, dollars: float, price: float, spent: Spent) -> int:
        """Tokens that dollars still pay, whichever they are."""
        if self.answer_price is None:
            return int(dollars / price * 1e6 + 1e-6) - spent.tokens
        left = dollars - (self.cost(spent.tokens, spent.answer_tokens) or 0.0)
        return math.floor(left / max(price, self.answer_price) * 1e6 + 1e-6)

    def check(self, spent: Spent, tokens: int) -> None:
        """Raise ServiceError, saying what was spent, where a request of so many tokens goes beyond the budget."""
        left = self.left(spent)
        if (self.requests is None or spent.requests < self.requests) and (left is None or tokens <= left):
            return
        raise ServiceError(
            f"the budget of {self.budget()} ends here: spent {self.described(spent)}, the next request takes about "
            f"{tokens:,} tokens; {CONTINUES} (WEIR_API_BUDGET sets what one run may spend)"
        )

    def budget(self) -> str:
        """The budget in words."""
        named = [
            (self.requests, "{:,} requests"),
            (self.tokens, "{:,} tokens"),
            (self.dollars, "{:g} dollars"),
        ]
        return " and ".join(text.format(value) for value, text in named if value is not None) or "no bound"

    def described(self, spent: Spent) -> str:
        """What was spent, in words."""
        text = f"{spent.tokens:,} tokens in {spent.requests:,} requests"
        cost = self.cost(spent.tokens, spent.answer_tokens)
        said = "" if self.answer_price is None else f", {self.answer_price:g} a million of answers"
        return (
            text if cost is None else f"{text}, {cost:.4g} dollars at {self.price:g} a million tokens{said}"
        )


@dataclass
class Bucket:
    """A token bucket: `rate` a minute, of which ten seconds' worth may come at once; None lets all through.

    Threads may share it: they wait one behind the other.
    """

    rate: float | None
    clock: Clock
    _level: float = field(init=False, default=0.0)
    _since: float = field(init=False, default=0.0)
    _turn: threading.Lock = field(init=False, default_factory=threading.Lock, repr=False)

    def __post_init__(self) -> None:
        self._level = (self.rate or 0.0) / 6
        self._since = self.clock.now()

    def take(self, amount: float) -> float:
        """Wait until so much may go, and take it; returns the seconds waited.

        An amount above what the bucket holds goes when it is full, and is paid back afterwards.
        """
        if self.rate is None:
            return 0.0
        with self._turn:
            self._fill()
            short = min(amount, self.rate / 6) - self._level
            wait = max(0.0, short * 60 / self.rate)
            if wait:
                self.clock.sleep(wait)
                self._fill()
            self._level -= amount
        return wait

    def give(self, amount: float) -> None:
        """Put back what was taken and not used; a negative amount was used beyond what was taken."""
        with self._turn:
            self._level += amount

    def _fill(self) -> None:
        now, rate = self.clock.now(), self.rate or 0.0
        self._level = min(rate / 6, self._level + (now - self._since) * rate / 60)
        self._since = now


def estimated(text: str) -> int:
    """Tokens of a text without its tokenizer: one for three bytes of UTF-8, more than most tokenizers make."""
    return len(text.encode("utf-8", "surrogatepass")) // 3 + 1


def _amounts(variable: str, text: str | None, units: tuple[str, ...]) -> dict[str, float]:
    """Amounts by unit, from a text such as "5 dollars, 2000000 tokens"."""
    found: dict[str, float] = {}
    for part in text.split(",") if text else ():
        match = _AMOUNT.fullmatch(part.strip())
        if match is None or match[2] not in units:
            kinds = " or ".join(units)
            raise BadValue(f"{variable} is '{text}'; expected numbers of {kinds}, such as '100 {units[0]}'")
        found[match[2]] = float(match[1])
    if not all(value > 0 for value in found.values()):
        raise BadValue(f"{variable} is '{text}'; expected numbers above 0")
    return found


def _prices(text: str | None) -> tuple[float | None, float | None]:
    """(the price of tokens, that of a model's answers where it is another)."""
    if text is None:
        return None, None
    match = _PRICE.fullmatch(text)
    found = None if match is None else [float(one) for one in match.groups() if one is not None]
    if not found or not all(price > 0 for price in found):
        raise BadValue(
            f"WEIR_API_PRICE is '{text}'; expected dollars for a million tokens, such as 0.02, or '0.15 in, 0.6 out'"
        )
    return (found[0], found[1]) if len(found) > 1 else (found[0], None)
