"""Every setting of every registered system, changed once: the list is made of the signatures, so a new one is in it."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from weir.errors import WeirError
from weir.experiment.stages import Stage
from weir.systems import BM25, RERANKERS, RM3, SYSTEMS, Retriever
from weir.systems.compose import Pipeline
from weir.systems.lexical import analyzer

__all__ = ["IDLE", "Setting", "key_of", "settings_of"]

IDLE = frozenset({"batch", "batch_tokens", "concurrency", "key", "timeout_s", "workers"})
"""Settings that cannot move a number: how much is computed or asked at once, which variable holds a password."""
PARTS = (BM25(), RM3())
NOTHING: Mapping[str, object] = MappingProxyType({})
OTHER: dict[str, tuple[object, ...]] = {
    "stopwords": (str(Path(analyzer.__file__).parent / "data" / "stopwords-english-33.txt"),),
    "activation": ("log1p_relu",),
    "analyzer": ("whitespace",),
    "candidates": (500,),
    "collapse": ("sum",),
    "dimensions": (64,),
    "document_prompt": ("passage: ",),
    "dtype": ("bf16",),
    "engine": ("transformers", "packed", "torch"),
    "fields": (["title text", "title"],),
    "filter": ("title",),
    "first": (BM25(b=0.6),),
    "k1": (1.3,),
    "b": (0.55,),
    "bits": (2,),
    "index": ("HNSW32",),
    "lengths": ("exact",),
    "max_length": (32,),
    "max_query": (16,),
    "norm": ("zscore",),
    "pooling": ("cls", "sum"),
    "preset": ("elastic",),
    "quantised": (True,),
    "query_prompt": ("query: ",),
    "separator": (" | ",),
    "similarity": ("dot",),
    "smoothing": ("log", "none"),
    "store": ("fp16", "fp32"),
    "system": (BM25(b=0.6),),
    "token_false": ("▁no",),
    "token_true": ("▁yes",),
    "top": (7,),
    "top_query": (7,),
    "view": ("text",),
    "weights": ((1.0, 2.0),),
    "depth": (7,),
}
"""Values to try for settings that are texts, systems or None by default; numbers and switches need none."""
BESIDE: dict[str, dict[str, object]] = {
    "effort": {"index": "HNSW32"},
    "probes": {"candidates": 50},
    "token_false": {"token_false": "▁false", "token_true": "▁true"},
    "token_true": {"token_false": "▁false", "token_true": "▁true"},
}
"""Settings that mean something only beside others."""


@dataclass(frozen=True)
class Setting:
    """A setting of a system or re-ranker. kind: "system" or "reranker"."""

    kind: str
    name: str
    setting: str

    def pair(
        self, given: Mapping[str, object] = NOTHING, values: tuple[object, ...] = ()
    ) -> tuple[Retriever, ...]:
        """The system as it is and with the setting changed.

        given: other settings, such as the checkpoint; values: to try, none for those that are known of the setting.
        """
        builder: Any = (SYSTEMS if self.kind == "system" else RERANKERS).get(self.name)
        parameters = inspect.signature(builder).parameters
        given = {**given, **BESIDE.get(self.setting, {})} | (
            {"system": PARTS[1]} if self.name in ("score", "filtered") else {}
        )
        given |= {"filter": "text"} if self.name == "filtered" else {}
        parts = PARTS if any(p.kind is p.VAR_POSITIONAL for p in parameters.values()) else ()
        default, said = given.get(self.setting, parameters[self.setting].default), None
        for value in values or _others(self.setting, default):
            try:
                made = [builder(*parts, **one) for one in (given, given | {self.setting: value})]
            except WeirError as error:
                said = error
                continue
            if made[0] != made[1]:
                return tuple(m if self.kind == "system" else Pipeline(BM25(), m) for m in made)
        raise AssertionError(f"{self}: no other value is known, name one in OTHER ({said})")


def settings_of(names: frozenset[str] | None = None) -> Iterator[Setting]:
    """Each setting of each system and re-ranker, those named or all."""
    for registry in (SYSTEMS, RERANKERS):
        for name in registry:
            if names is None or name in names:
                for parameter in inspect.signature(registry.get(name)).parameters.values():
                    if parameter.kind is not parameter.VAR_POSITIONAL:
                        yield Setting(registry.kind, name, parameter.name)


def key_of(system: Retriever) -> tuple[str, tuple[str | None, ...]]:
    """What tells the rankings of a system from others: the key and the engines."""
    stage = Stage("run", str(system), {"corpus": "c", "queries": "q", "k": 10, "system": system.describe()})
    return stage.key, stage.engines


def _others(setting: str, default: object) -> tuple[object, ...]:
    if setting in OTHER:
        return tuple(value for value in OTHER[setting] if value != default)
    if isinstance(default, bool):
        return (not default,)
    if isinstance(default, int):
        return (default + 1,)
    if isinstance(default, float):
        return (0.75 * default + 0.05,)
    return ()
