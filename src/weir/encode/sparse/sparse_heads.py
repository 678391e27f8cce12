"""From hidden states to weighted terms: what stands behind the last layer of models that weigh words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.core.strings import Int64
from weir.encode.batching import Ragged
from weir.encode.models.bert_weights import ACTIVATIONS, Tensor, read_state
from weir.encode.models.linear import filled_up, linear
from weir.encode.models.tokens import Tokens
from weir.encode.recipes.checkpoint import Checkpoint
from weir.errors import BadValue, StoreError, require

__all__ = [
    "ACTIVATED",
    "MLM",
    "POOLED",
    "TERM",
    "Keep",
    "TokenHead",
    "VocabularyHead",
    "merged",
    "mlm_head",
    "pooled",
    "rows_of",
    "token_head",
    "word_head",
]

TERM = np.dtype([("term", "<i4"), ("weight", "<f4")])
"""A term and what it weighs: a row of eight bytes."""
POOLED = ("max", "sum")
ACTIVATED = ("relu", "log1p_relu")
BLOCK_TOKENS = 256
"""Tokens whose numbers for the whole vocabulary are held at once: thirty megabytes for thirty thousand terms."""
Terms: TypeAlias = NDArray[np.void]


@dataclass(frozen=True)
class Keep:
    """Which terms of a text are kept: those above the threshold, and of these at most `top`, the heaviest."""

    top: int | None = None
    threshold: float = 0.0


@dataclass(frozen=True)
class _Names:
    """What an architecture calls the parts of its head for masked words."""

    dense: str
    norm: str
    decoder: str
    bias: tuple[str, ...]
    activation: str = ""


_ROBERTA = _Names(
    "lm_head.dense", "lm_head.layer_norm", "lm_head.decoder", ("lm_head.bias", "lm_head.decoder.bias")
)
MLM = {
    "bert": _Names(
        "cls.predictions.transform.dense",
        "cls.predictions.transform.LayerNorm",
        "cls.predictions.decoder",
        ("cls.predictions.bias", "cls.predictions.decoder.bias"),
        "hidden_act",
    ),
    "distilbert": _Names(
        "vocab_transform", "vocab_layer_norm", "vocab_projector", ("vocab_projector.bias",), "activation"
    ),
    "roberta": _ROBERTA,
    "xlm-roberta": _ROBERTA,
    "camembert": _ROBERTA,
    "mpnet": _ROBERTA,
    "electra": _Names(
        "generator_predictions.dense",
        "generator_predictions.LayerNorm",
        "generator_lm_head",
        ("generator_lm_head.bias",),
    ),
}
"""Heads for masked words that are computed here; activation: where the configuration names it, else it is GELU."""


@dataclass(frozen=True, eq=False)
class Transform:
    """What a head for masked words does before its last product: a product, GELU, a norm."""

    weight: Tensor
    bias: Tensor
    approximate: str
    norm: Tensor
    norm_bias: Tensor
    eps: float

    def __call__(self, h: Tensor) -> Tensor:
        """States [T, E] of the width of the vocabulary's own vectors."""
        f = require("torch", extra="neural").nn.functional
        x = f.gelu(linear(h, self.weight, self.bias), approximate=self.approximate)
        return f.layer_norm(x, (x.shape[1],), self.norm, self.norm_bias, self.eps)


@dataclass(frozen=True, eq=False)
class VocabularyHead:
    """A number for each token and each term of a vocabulary, pooled over the tokens of a text.

    weight: [V, E]; bias: [V]; transform: what comes before, or None; pooling: max or sum over tokens; activation:
    relu gives log(1 + relu(x)), log1p_relu the logarithm of one and that.
    """

    transform: Transform | None
    weight: Tensor
    bias: Tensor
    pooling: str
    activation: str

    def __call__(self, h: Tensor, ptr: Int64) -> Tensor:
        """What each term weighs in each text: float32[n, V], from the states [T, H] of its tokens, ptr[i]:ptr[i + 1].

        Never more than BLOCK_TOKENS tokens' numbers are held, whatever the batch.
        """
        torch = require("torch", extra="neural")
        x = filled_up(h if self.transform is None else self.transform(h))
        found = torch.zeros(len(ptr) - 1, self.weight.shape[0], dtype=torch.float32, device=h.device)
        space = h.new_empty(min(BLOCK_TOKENS, len(x)), self.weight.shape[0])
        for start in range(0, len(h), BLOCK_TOKENS):
            stop = min(start + BLOCK_TOKENS, len(x))
            numbers = torch.addmm(self.bias, x[start:stop], self.weight.t(), out=space[: stop - start])
            self._pool(torch, found, numbers[: len(h) - start], ptr, start)
        return found if self.pooling == "sum" else activated(found, self.activation)

    def _pool(self, torch: Any, found: Tensor, numbers: Tensor, ptr: Int64, start: int) -> None:  # noqa: ANN401  torch, imported when used
        """Take the numbers of some tokens, the first of them `start`, into those of their texts."""
        stop = start + len(numbers)
        first = int(np.searchsorted(ptr, start, side="right")) - 1
        last = int(np.searchsorted(ptr, stop, side="left"))
        for text in range(first, last):
            own = numbers[max(int(ptr[text]) - start, 0) : int(ptr[text + 1]) - start]
            if len(own) == 0:
                continue
            if self.pooling == "sum":
                found[text] += activated(own.float().clamp_(min=0.0), self.activation).sum(0)
            else:  # from 0, so that this is the relu; what follows rises with it and can wait
                torch.maximum(found[text], own.amax(0).float(), out=found[text])


def activated(x: Tensor, activation: str) -> Tensor:
    """log(1 + x), and the same again for log1p_relu; x is not negative and is written over."""
    return x.log1p_().log1p_() if activation == "log1p_relu" else x.log1p_()


@dataclass(frozen=True, eq=False)
class TokenHead:
    """A number for each token: weight [1, H], bias [1]."""

    weight: Tensor
    bias: Tensor

    def __call__(self, h: Tensor) -> NDArray[np.float32]:
        """float32[T] from states [T, H]."""
        found: NDArray[np.float32] = linear(h, self.weight, self.bias)[:, 0].float().cpu().numpy()
        return found


def mlm_head(
    checkpoint: Checkpoint, device: str, dtype: Tensor, pooling: str, activation: str
) -> VocabularyHead:
    """The head for masked words that a checkpoint's files hold, as SPLADE uses it.

    Raises BadValue for a model that has none, StoreError where its weights are missing.
    """
    names, config = MLM[checkpoint.architecture], checkpoint.config
    state = _State(checkpoint, device, dtype)
    form = ACTIVATIONS[str(config.get(names.activation, "gelu"))]
    eps = 1e-12 if checkpoint.architecture == "distilbert" else float(config.get("layer_norm_eps", 1e-12))
    transform = Transform(
        state(f"{names.dense}.weight"),
        state(f"{names.dense}.bias"),
        form,
        state(f"{names.norm}.weight", f"{names.norm}.gamma"),
        state(f"{names.norm}.bias", f"{names.norm}.beta"),
        eps,
    )
    words = "embeddings.word_embeddings.weight"
    tied = bool(config.get("tie_word_embeddings", True))
    weight = state(words) if tied else state(f"{names.decoder}.weight")
    return VocabularyHead(transform, weight, state(*names.bias), pooling, activation)


def word_head(checkpoint: Checkpoint, device: str, dtype: Tensor, special: Sequence[int]) -> VocabularyHead:
    """SPARTA's head: a state against the model's own vectors of words; special tokens weigh nothing."""
    torch = require("torch", extra="neural")
    state = _State(checkpoint, device, dtype)
    weight = state("embeddings.word_embeddings.weight").clone()
    weight[[i for i in special if i < len(weight)]] = 0
    bias = torch.zeros(len(weight), dtype=dtype, device=weight.device)
    return VocabularyHead(None, weight, bias, "max", "relu")


def token_head(checkpoint: Checkpoint, device: str, dtype: Tensor, name: str = "classifier") -> TokenHead:
    """The layer of that name, which gives a token one number; raises BadValue where it gives several."""
    state = _State(checkpoint, device, dtype)
    weight = state(f"{name}.weight")
    if weight.shape[0] != 1:
        raise BadValue(f"{checkpoint.folder}: '{name}' gives a token {weight.shape[0]} numbers; expected one")
    return TokenHead(weight, state(f"{name}.bias"))


def pooled(weights: Tensor, keep: Keep) -> Ragged:
    """The terms of each text with a weight above the threshold, ascending: rows of TERM, from [n, V].

    What is not a number is kept, so that it is found.
    """
    torch = require("torch", extra="neural")
    there = ~(weights <= keep.threshold)
    text, term = torch.nonzero(there, as_tuple=True)
    rows = np.empty(len(text), TERM)
    rows["term"], rows["weight"] = term.cpu().numpy(), weights[there].cpu().numpy()
    return rows_of(text.cpu().numpy(), rows, len(weights), keep.top)


def merged(
    batch: Tokens, weights: NDArray[np.float32], left_out: Sequence[int], add: bool, keep: Keep
) -> Ragged:
    """The terms of each text with the largest weight that one of their tokens has, or with the sum where `add`.

    left_out: tokens that are no terms.
    """
    text = np.repeat(np.arange(len(batch)), batch.lengths)
    use = ~np.isin(batch.ids, np.array(left_out, np.int32)) & ~(weights <= 0)
    text, term, weights = text[use], batch.ids[use].astype(np.int64), weights[use]
    order = np.lexsort((term, text))
    text, term, weights = text[order], term[order], weights[order]
    fresh = np.ones(len(text), np.bool_)
    fresh[1:] = (text[1:] != text[:-1]) | (term[1:] != term[:-1])
    at = np.flatnonzero(fresh)
    rows = np.empty(len(at), TERM)
    rows["term"] = term[at]
    if len(at):
        rows["weight"] = (np.add if add else np.maximum).reduceat(weights, at)
    enough = ~(rows["weight"] <= keep.threshold)
    return rows_of(text[at][enough], rows[enough], len(batch), keep.top)


def rows_of(text: Int64, rows: Terms, count: int, top: int | None = None) -> Ragged:
    """Rows by the text each belongs to, which ascends; of a text with more than `top` only the heaviest.

    Of equal weights the smaller term comes first.
    """
    ptr = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(text, minlength=count), out=ptr[1:])
    if top is None or int(np.diff(ptr).max(initial=0)) <= top:
        return Ragged(ptr, rows)
    order = np.lexsort((rows["term"], -rows["weight"], text))
    kept = np.sort(order[np.arange(len(rows)) - ptr[text[order]] < top])
    return rows_of(text[kept], rows[kept], count)


class _State:
    """The tensors of a checkpoint by their names, whatever prefix a model with a head puts before them."""

    def __init__(self, checkpoint: Checkpoint, device: str, dtype: Tensor) -> None:
        self._tensors = read_state(checkpoint.folder)
        self._folder = checkpoint.folder
        self._to: Callable[[Tensor], Tensor] = lambda tensor: tensor.to(device, dtype).contiguous()

    def __call__(self, *names: str) -> Tensor:
        """The tensor of the first of these names that is there; raises StoreError where none is."""
        for name in names:
            found = min((n for n in self._tensors if f".{n}".endswith(f".{name}")), key=len, default=None)
            if found is not None:
                return self._to(self._tensors[found])
        raise StoreError(f"{self._folder}: the weights have no '{names[0]}'")
