"""What an embedding API may cost, how fast it is asked, and when to give up on it."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from weir.errors import BadValue, ServiceError
from weir.settings import Settings

__all__ = ["Bucket", "Clock", "Limits", "Spent", "estimated"]

CONTINUES = "everything answered so far is kept, and the same command continues from here"
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?(?:[eE]\+?\d+)?)\s+(requests|tokens|dollars)")


@dataclass(frozen=True)
class Clock:
    """Time as the client sees it: seconds since some moment and since 1970, waiting, and chance in [0, 1)."""

    now: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep
    chance: Callable[[], float] = random.random


@dataclass
class Spent:
    """What was asked of an API so far: requests (retries among them), texts and tokens; seconds waited."""

    requests: int = 0
    retries: int = 0
    texts: int = 0
    tokens: int = 0
    waited: float = 0.0


@dataclass(frozen=True)
class Limits:
    """What may be spent by one process, how fast, and how patiently.

    requests, tokens, dollars: the budget, None for no bound; dollars need a price, in dollars for a million
    tokens. requests_per_minute, tokens_per_minute: None for as fast as answers come. timeout: seconds without
    any byte; whole: seconds that one answer may take in all; attempts: of one request; pause: seconds before the
    second attempt, doubled for each further one;
    longest: seconds to wait at most, a server that asks for more ends the command.
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
        return Limits(
            requests=None if (r := budget.get("requests")) is None else int(r),
            tokens=None if (t := budget.get("tokens")) is None else int(t),
            dollars=budget.get("dollars"),
            price=_price(settings.api_price),
            requests_per_minute=rate.get("requests"),
            tokens_per_minute=rate.get("tokens"),
        )

    def cost(self, tokens: int) -> float | None:
        """Dollars for so many tokens, None where no price is stated."""
        return None if self.price is None else tokens * self.price / 1e6

    def left(self, spent: Spent) -> int | None:
        """Tokens that the budget still allows, None for any number."""
        bounds = [] if self.tokens is None else [self.tokens - spent.tokens]
        if self.dollars is not None and self.price:
            bounds.append(int(self.dollars / self.price * 1e6 + 1e-6) - spent.tokens)
        return min(bounds, default=None)

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
        cost = self.cost(spent.tokens)
        return text if cost is None else f"{text}, {cost:.4g} dollars at {self.price:g} a million tokens"


@dataclass
class Bucket:
    """A token bucket: `rate` a minute, of which ten seconds' worth may come at once; None lets all through."""

    rate: float | None
    clock: Clock
    _level: float = field(init=False, default=0.0)
    _since: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        self._level = (self.rate or 0.0) / 6
        self._since = self.clock.now()

    def take(self, amount: float) -> float:
        """Wait until so much may go, and take it; returns the seconds waited.

        An amount above what the bucket holds goes when it is full, and is paid back afterwards.
        """
        if self.rate is None:
            return 0.0
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


def _price(text: str | None) -> float | None:
    if text is None:
        return None
    if not re.fullmatch(r"\d+(\.\d+)?", text) or float(text) <= 0:
        raise BadValue(f"WEIR_API_PRICE is '{text}'; expected dollars for a million tokens, such as 0.02")
    return float(text)
