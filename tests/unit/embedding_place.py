"""A server of embeddings, time that passes at once, and encoders that ask that server."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tests.unit import model_servers as es
from weir.models.hosted import Hosted, shared_budget
from weir.services.requests import Clock, Limits, paid
from weir.settings import settings

KEY = "sk-very-secret-0123456789"
QUICK = Limits(attempts=4, timeout=20.0)


def forget_spending() -> None:
    """As a new process: nothing was asked or spent."""
    paid.cache_clear()
    shared_budget.cache_clear()


@dataclass
class Time:
    """Time that passes only when somebody sleeps."""

    at: float = 1_000_000.0
    slept: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.at += seconds

    @property
    def clock(self) -> Clock:
        return Clock(now=lambda: self.at, wall=lambda: self.at, sleep=self.sleep, chance=lambda: 0.5)


@dataclass
class Place:
    """A server, time as the client sees it, and encoders that ask that server."""

    url: str
    manners: es.EmbeddingManners
    time: Time

    def load(self, model: str = "openai:m", limits: Limits = QUICK, **settings: object):
        version = "/v2" if model.startswith("cohere") else "/v1"
        settings = {"base": self.url + version, "key": "WEIR_KEY_TEST", "similarity": "dot"} | settings
        return Hosted(model, **settings).load(limits=limits, clock=self.time.clock)

    def ready(self, *args, **kwargs):
        """As load, with the probe's own request forgotten."""
        loaded = self.load(*args, **kwargs)
        self.manners.asked.clear()
        return loaded


@contextlib.contextmanager
def placed(home: Path, monkeypatch) -> Iterator[Place]:
    """A place with a home of its own, in which nothing was asked or spent before."""
    monkeypatch.setenv("WEIR_HOME", str(home))
    monkeypatch.setenv("WEIR_KEY_TEST", KEY)
    settings.cache_clear()
    forget_spending()
    with es.embedding_serving() as (url, manners):
        yield Place(url, manners, Time())
    settings.cache_clear()
    forget_spending()


def texts(count: int) -> list[str]:
    return [f"text {i}" for i in range(count)]


def expected(given: list[str], kind: str = "document", model: str = "m", size: int = 8) -> np.ndarray:
    return np.array([es.vector_of(t, kind, model, size) for t in given], np.float32)
