"""How a checkpoint of a sparse encoder is laid out: what encodes its documents, and what its queries.

Plain checkpoints of transformers hold one model for both. Those of sentence-transformers say in modules.json how a
text goes through them, and through a Router another way for queries: often only a table of weights, so that no model
reads a query (SparseStaticEmbedding, first called IDF).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.encode.models.bert_weights import read_state
from weir.encode.models.tokens import ModelTokenizer
from weir.encode.recipes.checkpoint import (
    Checkpoint,
    bare_checkpoint,
    declared_prompts,
    inner_folder,
    read_object,
)
from weir.encode.sparse.sparse_heads import ACTIVATED, POOLED
from weir.errors import BadValue, StoreError

__all__ = ["SparseCheckpoint", "SparseModel", "TokenWeights", "read_layout", "table_weights"]

Float32: TypeAlias = NDArray[np.float32]

MODELS = ("Transformer", "MLMTransformer")
TABLES = ("SparseStaticEmbedding", "IDF")
KINDS = (*MODELS, *TABLES, "SpladePooling", "Router")
Step: TypeAlias = tuple[str, Path]
"""What a step of a route is called, and the folder with its settings."""


@dataclass(frozen=True, eq=False)
class SparseModel:
    """A model and how its numbers are pooled; None where nothing says so."""

    checkpoint: Checkpoint
    pooling: str | None = None
    activation: str | None = None


@dataclass(frozen=True, eq=False)
class TokenWeights:
    """Weights of tokens that stand in a file: idf.json (by token), or a tensor; None: every token weighs 1.

    tokenizer: the folder of the tokenizer that goes with them.
    """

    tokenizer: Checkpoint
    file: Path | None

    @property
    def weights(self) -> str:
        """Where the weights of tokens are from, in a word; what they are, the checkpoint's fingerprint says."""
        return "1" if self.file is None else self.file.name


@dataclass(frozen=True, eq=False)
class SparseCheckpoint:
    """What encodes documents, and what queries."""

    document: SparseModel
    query: SparseModel | TokenWeights


def read_layout(folder: Path) -> SparseCheckpoint:
    """What the files of a checkpoint say; raises StoreError or BadValue where they are damaged or of another kind."""
    steps = _steps(folder / "modules.json", folder)
    if not steps:
        side = SparseModel(bare_checkpoint(folder, folder))
        return SparseCheckpoint(side, side)
    if steps[0][0] == "Router":
        routes = _routes(steps[0][1])
        document, query = _side(folder, routes["document"]), _side(folder, routes["query"])
        if isinstance(document, TokenWeights):
            raise BadValue(f"{folder}: its documents are read by no model")
        return SparseCheckpoint(document, query)
    side = _side(folder, steps)  # type: ignore[assignment]  # checked next
    if isinstance(side, TokenWeights):
        raise BadValue(f"{folder}: its documents are read by no model")
    return SparseCheckpoint(side, side)


def table_weights(table: TokenWeights, tokenizer: ModelTokenizer) -> Float32:
    """What each token weighs in a query: float32[V].

    Raises StoreError for a table that is damaged, BadValue for weights that are negative or not finite.
    """
    size = tokenizer.inner.get_vocab_size(with_added_tokens=True)
    weights = np.ones(size, np.float32) if table.file is None else _read(table.file, tokenizer, size)
    if not (np.isfinite(weights) & (weights >= 0)).all():
        raise BadValue(f"{table.file}: a token's weight is negative or not finite")
    return weights


def _read(file: Path, tokenizer: ModelTokenizer, size: int) -> Float32:
    if file.suffix != ".json":
        state = read_state(file)
        if len(state) != 1 or next(iter(state.values())).ndim != 1:
            raise StoreError(f"{file}: expected the weights of tokens, one number for each")
        found: Float32 = next(iter(state.values())).float().numpy()
        return found
    weights = np.zeros(size, np.float32)
    for token, weight in read_object(file, needed=True).items():
        number = tokenizer.inner.token_to_id(token)
        if number is not None:
            weights[number] = weight
    return weights


def _side(folder: Path, steps: list[Step]) -> SparseModel | TokenWeights:
    """One route through a checkpoint."""
    kinds = [kind for kind, _ in steps]
    if kinds and kinds[0] in TABLES and len(steps) == 1:
        own = steps[0][1]
        stated = read_object(own / "config.json").get("path")
        try:
            places = () if stated is None else (inner_folder(own, stated), inner_folder(folder, stated))
        except ValueError as error:
            raise StoreError(f"{own / 'config.json'}: {error}") from None
        file = next((place for place in places if place.exists()), own)
        return TokenWeights(
            bare_checkpoint(own if (own / "tokenizer.json").exists() else folder, folder), file
        )
    if len(steps) != 2 or kinds[0] not in MODELS or kinds[1] != "SpladePooling":
        raise BadValue(
            f"{folder}: a text goes through {', '.join(kinds)}; expected a model for masked words and SpladePooling"
        )
    facts = read_object(steps[1][1] / "config.json")
    pooling, activation = facts.get("pooling_strategy", "max"), facts.get("activation_function", "relu")
    if pooling not in POOLED or activation not in ACTIVATED:
        raise BadValue(f"{steps[1][1]}: pooling by {pooling} of {activation} is not known")
    checkpoint = bare_checkpoint(steps[0][1], folder)
    return SparseModel(replace(checkpoint, **declared_prompts(folder)), pooling, activation)


def _steps(path: Path, folder: Path) -> list[Step]:
    """The steps that a modules.json names; none where there is no such file."""
    if not path.exists():
        return []
    try:
        steps = json.loads(path.read_text(encoding="utf-8"))
        found = [(_kind(path, s["type"]), inner_folder(folder, s["path"])) for s in steps]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{path}: damaged ({error}); fetch the checkpoint again") from None
    if any(kind == "Router" for kind, _ in found) and len(found) > 1:
        raise BadValue(f"{path}: steps beside a Router are not known")
    return found


def _routes(folder: Path) -> dict[str, list[Step]]:
    """The ways of queries and documents through a Router."""
    path = folder / "router_config.json"
    path = path if path.exists() else folder / "config.json"
    facts: dict[str, Any] = read_object(path, needed=True)
    try:
        kinds = {name: _kind(path, kind) for name, kind in facts["types"].items()}
        return {
            route: [(kinds[name], inner_folder(folder, name)) for name in facts["structure"][route]]
            for route in ("query", "document")
        }
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise StoreError(f"{path}: damaged ({error}); fetch the checkpoint again") from None


def _kind(path: Path, dotted: object) -> str:
    kind = str(dotted).rpartition(".")[2]
    if kind not in KINDS:
        raise BadValue(f"{path}: a step '{kind}' is not known; expected {', '.join(KINDS)}")
    return kind
