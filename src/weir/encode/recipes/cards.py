"""The encoders Weir knows by name: facts in `models.toml`, read when they are asked for."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.util import find_spec

from weir.errors import BadValue, UnknownName

__all__ = ["ModelCard", "card", "cards", "check_kind", "known"]


@dataclass(frozen=True)
class ModelCard:
    """What is published about an encoder, and what its published scores were made with.

    hub: the checkpoint's name on the hub; query_hub: the one for queries where that is another; query: what weighs a
    sparse encoder's queries where that is no model, "tokens" or "idf". kind: dense,
    sparse, late (token vectors), cross (scores of pairs) or t5. pooling, similarity, query_prompt,
    document_prompt: as the makers say; None leaves it to the checkpoint's own files. max_query, max_document:
    tokens, special ones included; 0 leaves it to the files. separator: between title and text. dimensions of a
    vector; parameters in millions. package, package_folder: a Python package that carries the checkpoint.
    """

    name: str
    hub: str
    kind: str
    source: str
    query_hub: str = ""
    query: str = ""
    pooling: str | None = None
    similarity: str | None = None
    query_prompt: str | None = None
    document_prompt: str | None = None
    max_query: int = 0
    max_document: int = 0
    separator: str = " "
    dimensions: int = 0
    parameters: float = 0.0
    package: str = ""
    package_folder: str = ""
    notes: str = ""

    @property
    def packaged(self) -> bool:
        """Whether an installed Python package carries the checkpoint."""
        return bool(self.package) and find_spec(self.package) is not None


@cache
def _all() -> dict[str, ModelCard]:
    text = (files("weir.encode") / "models.toml").read_text(encoding="utf-8")
    return {name: ModelCard(name=name, **facts) for name, facts in tomllib.loads(text).items()}


def cards() -> list[ModelCard]:
    """Every card, by name."""
    return sorted(_all().values(), key=lambda c: c.name)


def card(name: str) -> ModelCard:
    """The card of that short name or hub name; raises UnknownName, suggesting the nearest."""
    found = known(name)
    if found is None:
        raise UnknownName("encoder", name, _all())
    return found


def known(name: str) -> ModelCard | None:
    """The card of that short name or hub name, None where Weir has none."""
    by_hub = {c.hub.lower(): c for c in _all().values()}
    return _all().get(name) or by_hub.get(name.lower())


def check_kind(model: str, kind: str, otherwise: str) -> None:
    """Raise BadValue for a model whose card says that it is of another kind; otherwise: what that means."""
    found = known(model)
    if found is not None and found.kind != kind:
        raise BadValue(f"'{model}' is of the kind '{found.kind}', {otherwise}")
