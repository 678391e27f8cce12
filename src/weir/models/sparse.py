"""Learned sparse encoders: texts to weighted terms."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.algorithms import algorithm
from weir.core.strings import Int64, Strings
from weir.errors import BadValue, StoreError, require
from weir.models.batching import BatchPlan, Ragged, gather_ragged, results
from weir.models.checkpoints import (
    Checkpoint,
    bare_checkpoint,
    check_kind,
    check_least,
    declared_prompts,
    fetch,
    fingerprint,
    inner_folder,
    known,
    locate,
    read_object,
)
from weir.models.encoder import BATCH_TOKENS, Kind
from weir.models.engine import Declared, Engine, build, check_engine, declare, prepare
from weir.models.hardware import ComputePlace
from weir.models.tokens import ModelTokenizer, Tokens, load_tokenizer
from weir.models.torch_engine import ACTIVATIONS, Tensor, filled_up, linear, read_state, supported, to_device
from weir.models.transformers_engine import Padded, inputs, transformers_engine

# ----------
# From hidden states to weighted terms: what stands behind the last layer of models that weigh words.


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


# ----------
# How a checkpoint of a sparse encoder is laid out: what encodes its documents, and what its queries.
#
# Plain checkpoints of transformers hold one model for both. Those of sentence-transformers say in modules.json how a
# text goes through them, and through a Router another way for queries: often only a table of weights, so that no
# model reads a query (SparseStaticEmbedding, first called IDF).


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


# ----------
# Models that weigh words: a batch of tokens to weights, by an engine and the head behind it.


Weigh: TypeAlias = Callable[[Tokens], Any]
"""A batch to weights [n, V] (SPLADE, SPARTA: a tensor) or [T] (uniCOIL, DeepCT: an array)."""


@dataclass(frozen=True, eq=False)
class TermEncoder:
    """What encodes one kind of text: a model, or a table of the weights of tokens."""

    tokenizer: ModelTokenizer
    engine: Engine | None
    weigh: Weigh | None
    table: Any


def model(
    family: str,
    name: str,
    checkpoint: Checkpoint,
    how: tuple[ComputePlace, str],
    pooling: tuple[str, str],
    tokenizer: ModelTokenizer,
) -> tuple[Weigh, Engine]:
    """(batch to weights, the engine behind it) of a checkpoint.

    name: of the model, for messages; how: where, and by which engine; pooling: and activation, of SPLADE. Raises
    BadValue for a checkpoint without the family's head, StoreError where the head's weights are missing.
    """
    torch = require("torch", extra="neural")
    place, engine_name = how
    if family == "splade":
        _refuse_without_head(checkpoint, name)
        if engine_name == "transformers":
            return _whole(checkpoint, place, *pooling)
        if checkpoint.architecture not in MLM:
            raise BadValue(
                f"the engine '{engine_name}' has no head for '{checkpoint.architecture}'; take 'transformers'"
            )
    dtype = _head_dtype(torch, place, engine_name)
    if family in ("unicoil", "deepct"):
        layer = "tok_proj" if family == "unicoil" else "classifier"
        numbers = token_head(checkpoint, place.device, dtype, layer)
        engine = build(checkpoint, place, engine_name)
        return partial(_tokens, engine, numbers), engine
    head = (
        mlm_head(checkpoint, place.device, dtype, *pooling)
        if family == "splade"
        else word_head(checkpoint, place.device, dtype, special_tokens(tokenizer))
    )
    engine = build(checkpoint, place, engine_name)
    return partial(_headed, engine, head), engine


def special_tokens(tokenizer: ModelTokenizer) -> list[int]:
    """The numbers of special tokens, such as [CLS] and [MASK]."""
    return sorted(n for n, token in tokenizer.inner.get_added_tokens_decoder().items() if token.special)


def without_special(tokenizer: ModelTokenizer, texts: Sequence[Any]) -> Tokens:
    """The tokens of texts without those that a model wants around them."""
    found = tokenizer.inner.encode_batch_fast(
        [t.lower() for t in texts] if tokenizer.lower else list(texts), add_special_tokens=False
    )
    ptr = np.zeros(len(found) + 1, np.int64)
    np.cumsum(np.fromiter((len(e) for e in found), np.int64, len(found)), out=ptr[1:])
    ids = np.fromiter((i for e in found for i in e.ids), np.int32, int(ptr[-1]))
    return Tokens(ids, ptr)


def _headed(engine: Engine, head: VocabularyHead, batch: Tokens) -> Tensor:
    return head(engine.hidden(batch).to(head.weight.dtype), batch.ptr)


def _tokens(engine: Engine, head: TokenHead, batch: Tokens) -> Any:  # noqa: ANN401 - float32
    return head(engine.hidden(batch).to(head.weight.dtype))


def _head_dtype(torch: Any, place: ComputePlace, engine: str) -> Any:  # noqa: ANN401 - torch's
    """What the head computes in: as the engine where that multiplies such numbers, else float32."""
    if engine == "openvino":
        return torch.float32
    return {"bf16": torch.bfloat16, "fp16": torch.float16}.get(place.dtype, torch.float32)


def _whole(
    checkpoint: Checkpoint, place: ComputePlace, pooling: str, activation: str
) -> tuple[Weigh, Engine]:
    """transformers' own model with its own head."""
    engine = transformers_engine(checkpoint, place.device, place.dtype, "AutoModelForMaskedLM")
    return partial(_logits, engine, pooling, activation), engine


def _logits(engine: Padded, pooling: str, activation: str, batch: Tokens) -> Tensor:
    """As VocabularyHead, of the numbers that transformers' own model gives."""
    torch = require("torch", extra="neural")
    tables = inputs(batch, engine.fill, engine.segments)
    given = {name: to_device(torch, table, engine.device) for name, table in tables.items()}
    x = engine.module(**given).logits.float().clamp_(min=0.0) * given["attention_mask"][:, :, None]
    if x.shape[1] == 0:
        return torch.zeros(len(batch), x.shape[2])
    return activated(x, activation).sum(1) if pooling == "sum" else activated(x.amax(1), activation)


def _refuse_without_head(checkpoint: Checkpoint, model: str) -> None:
    """Raise BadValue for a model that was trained without a head for masked words."""
    named = str((checkpoint.config.get("architectures") or [""])[0])
    if named and not named.endswith(("ForMaskedLM", "ForPreTraining")):
        raise BadValue(f"'{model}' is a {named}, which has no head for masked words, as SPLADE needs")


# ----------
# Encoders that weigh words: texts in, terms with weights out.
#
# SPLADE (Formal et al. 2021, 2024) gives every term of the vocabulary a weight through the model's head for masked
# words; SPARTA (Zhao et al. 2021) through the vectors of the words themselves; uniCOIL (Lin and Ma 2021) and DeepCT
# (Dai and Callan 2020) weigh the words that are there.


FAMILIES = ("splade", "sparta", "unicoil", "deepct")
SPARTA_TOP = 2000
"""Terms of a document that BEIR keeps."""
IMPACT_STEPS, IMPACT_RANGE = 256, 5.0
"""Pyserini's impacts: whole 256ths of 5."""


@dataclass(frozen=True)
class SparseEncoder:
    """How texts become weighted terms: a checkpoint, and whatever should differ from what it and its card say.

    family: splade, sparta, unicoil or deepct; model: a name of `weir list models`, a name on the Hugging Face hub, or a
    folder. query: what weighs the terms of queries, None leaves it to checkpoint and card: "model", "tokens" (each
    token once, with weight 1), "idf" (the weights in the checkpoint's idf.json), or another checkpoint. pooling: max
    or sum over tokens; activation: relu for log(1 + relu(x)), log1p_relu for the logarithm of one and that (both of
    SPLADE only; None leaves them to the checkpoint, else max and relu). top, top_query: the heaviest terms of a
    document and a query that are kept; threshold: a weight that kept terms exceed; quantised: weights are rounded to
    256ths of 5, as whole numbers. max_length, max_query: tokens at most; dtype, engine, batch_tokens: see Encoder.
    Raises BadValue for settings out of range.
    """

    family: str
    model: str
    query: str | None = None
    pooling: str | None = None
    activation: str | None = None
    top: int | None = None
    top_query: int | None = None
    threshold: float = 0.0
    quantised: bool = False
    max_length: int | None = None
    max_query: int | None = None
    dtype: str = "fp32"
    engine: str = "auto"
    batch_tokens: int = 0

    def __post_init__(self) -> None:
        who = self.family
        for name in ("model", "query"):
            value = getattr(self, name)
            if not (isinstance(value, str) and value.strip()) and not (name == "query" and value is None):
                raise BadValue(f"{who}: {name} is {value!r}; expected a hub name or a folder")
        check_kind(self.model, "sparse", "which gives no weights of terms")
        among: dict[str, tuple[object, ...]] = {
            "pooling": (None, *POOLED),
            "activation": (None, *ACTIVATED),
            "family": FAMILIES,
        }
        among |= {"quantised": (False, True)}
        for name, allowed in among.items():
            if getattr(self, name) not in allowed:
                shown = ", ".join(str(a) for a in allowed if a is not None)
                raise BadValue(f"{who}: {name} is {getattr(self, name)!r}; expected {shown}")
        check_engine(self.engine, self.dtype)
        check_least({"top": (self.top, 1), "top_query": (self.top_query, 1)})
        check_least({"max_length": (self.max_length, 3), "max_query": (self.max_query, 3)})
        check_least({"batch_tokens": (self.batch_tokens, 0)}, optional=False)
        if isinstance(self.threshold, bool) or not 0 <= self.threshold < float("inf"):
            raise BadValue(f"{who}: threshold is {self.threshold!r}; expected a number from 0")

    def describe(self, device: str = "auto") -> dict[str, object]:
        """What decides the weights, and under "engine" what computes them on a device, None where it is not installed.

        Reads the checkpoint's files and nothing else. Raises DownloadError where the checkpoint is not here.
        """
        return self._resolved().describe(device)

    def fetch(self) -> None:
        """Download the checkpoints that are not here, of documents and of queries."""
        fetch(self.model)
        other = self._asked()
        if other is not None and other not in ("model", "tokens", "idf"):
            fetch(other)

    def load(self, device: str = "auto") -> LoadedSparse:
        """The encoder in memory, on auto (a GPU where there is one), cpu, cuda, or cuda:1; downloads what is not here.

        Raises DownloadError, StoreError or BadValue for a checkpoint that is not here, damaged, or of another kind.
        """
        self.fetch()
        recipe = self._resolved()
        place = recipe.declared(recipe.layout.document.checkpoint, device).place
        prepare(place.device)
        budget = self.batch_tokens or BATCH_TOKENS[place.kind]
        document = recipe.part("document", device)
        query = recipe.part("query", device, document)
        return LoadedSparse(recipe, place, query, document, budget)

    def _resolved(self) -> SparseRecipe:
        card = known(self.model)
        layout = read_layout(locate(self.model))
        limits = {"document": self.max_length, "query": self.max_query or self.max_length}
        stated = {} if card is None else {"document": card.max_document, "query": card.max_query}
        return SparseRecipe(self, _with_query(layout, self._asked()), limits, stated)

    def _asked(self) -> str | None:
        """What weighs queries: what was given, else what the card says."""
        card = known(self.model)
        return self.query or (None if card is None else card.query or card.query_hub) or None


def _with_query(layout: SparseCheckpoint, asked: str | None) -> SparseCheckpoint:
    """The layout with the queries' side that was asked for."""
    own = layout.document.checkpoint
    if asked is None:
        return layout
    if asked == "model":
        return replace(layout, query=layout.document)
    if asked == "tokens":
        return replace(layout, query=TokenWeights(own, None))
    if asked == "idf":
        if isinstance(layout.query, TokenWeights):
            return layout
        if not (own.folder / "idf.json").exists():
            raise BadValue(f"{own.folder}: no idf.json there; give query='tokens', or another checkpoint")
        return replace(layout, query=TokenWeights(own, own.folder / "idf.json"))
    return replace(layout, query=read_layout(locate(asked)).query)


@dataclass(frozen=True, eq=False)
class SparseRecipe:
    """Everything decided, nothing loaded. limits: tokens asked for; stated: those of the card."""

    encoder: SparseEncoder
    layout: SparseCheckpoint
    limits: dict[str, int | None]
    stated: dict[str, int]

    def side(self, kind: Kind) -> SparseModel | TokenWeights:
        """What encodes one kind of text; SPARTA reads no query and DeepCT is asked for none."""
        document = self.layout.document
        if kind == "query" and self.encoder.family == "sparta" and self.encoder.query is None:
            return TokenWeights(document.checkpoint, None)
        return self.layout.query if kind == "query" else document

    def limit(self, kind: Kind) -> int:
        """Tokens of a text at most."""
        side = self.side(kind)
        checkpoint = side.checkpoint if isinstance(side, SparseModel) else side.tokenizer
        own, bound = self.limits[kind], checkpoint.positions
        if own is not None and bound and own > bound:
            raise BadValue(f"'{self.encoder.model}' reads {bound} tokens at most, not {own}")
        stated = self.stated.get(kind) or checkpoint.limit
        return own or (min(stated, bound) if bound else stated)

    def keep(self, kind: Kind) -> Keep:
        """Which terms are kept."""
        given = self.encoder
        top = given.top_query if kind == "query" else given.top
        if top is None and kind == "document" and given.family == "sparta":
            top = SPARTA_TOP
        return Keep(top, given.threshold)

    def how(self, side: SparseModel) -> tuple[str, str]:
        """(pooling, activation) of a vocabulary's weights."""
        given = self.encoder
        return given.pooling or side.pooling or "max", given.activation or side.activation or "relu"

    def describe(self, device: str) -> dict[str, object]:
        """What decides the weights, and the engine on a device."""
        document = self.layout.document.checkpoint
        return {
            "encoding": algorithm("encoding"),
            "family": self.encoder.family,
            "revision": fingerprint(document),
            "architecture": document.architecture,
            "dtype": self.encoder.dtype,
            "quantised": self.encoder.quantised,
            "document": self._described("document"),
            "query": self._described("query"),
            "engine": self.declared(document, device).label,
        }

    def _described(self, kind: Kind) -> dict[str, object]:
        side, keep = self.side(kind), self.keep(kind)
        about: dict[str, object] = {
            "max_length": self.limit(kind),
            "top": keep.top,
            "threshold": keep.threshold,
        }
        if isinstance(side, TokenWeights):
            counted = "each time" if self.encoder.family == "sparta" else "once"
            about |= {"weighed by": "token", "weights": side.weights, "counted": counted}
            return about | {"revision": fingerprint(side.tokenizer)}
        prompt = side.checkpoint.query_prompt if kind == "query" else side.checkpoint.document_prompt
        about |= {"weighed by": "model", "revision": fingerprint(side.checkpoint), "prompt": prompt or ""}
        if self.encoder.family == "splade":
            about |= dict(zip(("pooling", "activation"), self.how(side), strict=True))
        return about

    def declared(self, checkpoint: Checkpoint, device: str) -> Declared:
        """The engine that weighs the texts of a side on a device."""
        headed = self.encoder.family != "splade" or checkpoint.architecture in MLM
        own = headed and supported(checkpoint)
        return declare(checkpoint, self.encoder.engine, self.encoder.dtype, device, own)

    def part(self, kind: Kind, device: str, document: TermEncoder | None = None) -> TermEncoder:
        """What encodes one kind of text, in memory; document: what is loaded for documents already."""
        side, limit = self.side(kind), self.limit(kind)
        if isinstance(side, TokenWeights):
            tokenizer = load_tokenizer(side.tokenizer.folder, limit)
            return TermEncoder(tokenizer, None, None, table_weights(side, tokenizer))
        if document is not None and side is self.layout.document:
            return replace(document, tokenizer=document.tokenizer.with_limit(limit))
        declared = self.declared(side.checkpoint, device)
        tokenizer = load_tokenizer(side.checkpoint.folder, limit)
        how, at = self.how(side), (declared.place, declared.engine)
        weigh, engine = model(self.encoder.family, self.encoder.model, side.checkpoint, at, how, tokenizer)
        return TermEncoder(tokenizer, engine, weigh, None)


@dataclass(frozen=True, eq=False)
class LoadedSparse:
    """An encoder in memory; `encode` is all it does."""

    recipe: SparseRecipe
    place: ComputePlace
    query: TermEncoder
    document: TermEncoder
    batch_tokens: int

    @property
    def vocabulary(self) -> int:
        """Terms that there are: numbers of terms lie below."""
        sizes = [
            p.tokenizer.inner.get_vocab_size(with_added_tokens=True) for p in (self.query, self.document)
        ]
        found: int = max(*sizes, int(self.recipe.layout.document.checkpoint.config.get("vocab_size") or 0))
        return found

    def encode(self, texts: Strings | Sequence[str], kind: Kind = "document") -> Ragged:
        """The terms of each text, in their order: rows of TERM, ascending by term (DeepCT: token by token).

        Raises BadValue for a weight that is not finite and for a text that does not fit into memory.
        """
        given = texts.tolist() if isinstance(texts, Strings) else list(texts)
        whole = gather_ragged(list(self._numbered(self.stream(given, kind))), len(given)) if given else None
        return whole or Ragged(np.zeros(1, np.int64), np.zeros(0, TERM))

    @staticmethod
    def _numbered(blocks: Iterator[Ragged]) -> Iterator[tuple[Any, Ragged]]:
        at = 0
        for block in blocks:
            yield np.arange(at, at + len(block.ptr) - 1), block
            at += len(block.ptr) - 1

    def stream(
        self, texts: Iterable[str], kind: Kind = "document", done: Callable[[int], None] | None = None
    ) -> Iterator[Ragged]:
        """The terms of a stream of texts, some thousand at a time and in order, in bounded memory.

        done: told the number of texts finished so far. Raises as `encode` does.
        """
        part = self.query if kind == "query" else self.document
        side = self.recipe.side(kind)
        prompt = ""
        if isinstance(side, SparseModel):
            prompt = (
                side.checkpoint.query_prompt if kind == "query" else side.checkpoint.document_prompt
            ) or ""
        given = (prompt + t for t in texts) if prompt else texts
        run, tokenize = partial(self._rows, part, kind), part.tokenizer
        if part.table is not None:
            tokenize = partial(without_special, part.tokenizer)  # type: ignore[assignment]  # a function of texts like the one it takes the place of
        plan = BatchPlan(self.batch_tokens, padded=part.engine is not None and part.engine.padded)
        first = 0
        for block in results(given, tokenize, run, gather_ragged, plan, done):
            bad = np.flatnonzero(~np.isfinite(block.values["weight"]))
            if len(bad):
                text = first + int(np.searchsorted(block.ptr, bad[0], side="right"))
                raise BadValue(
                    f"a weight of text {text} is not finite (computed in {self.place.dtype}); take "
                    "dtype='fp32', or look at the checkpoint"
                )
            first += len(block.ptr) - 1
            yield self._quantised(block) if self.recipe.encoder.quantised else block

    def _rows(self, part: TermEncoder, kind: Kind, batch: Tokens) -> Ragged:
        family, keep = self.recipe.encoder.family, self.recipe.keep(kind)
        if part.table is not None:
            weights = part.table[batch.ids]
            once = _looked_up if family == "sparta" else _once
            return once(batch, weights, keep)
        assert part.weigh is not None
        torch = require("torch", extra="neural")
        with torch.inference_mode():
            weights = part.weigh(batch)
            if family in ("splade", "sparta"):
                return pooled(weights, keep)
        if family == "deepct":
            rows = np.empty(len(batch.ids), TERM)
            rows["term"], rows["weight"] = batch.ids, weights
            return Ragged(batch.ptr, rows)
        first = batch.ids[batch.ptr[:-1][batch.lengths > 0]][:1]
        return merged(batch, np.maximum(weights, 0), first.tolist(), kind == "query", keep)

    @staticmethod
    def _quantised(block: Ragged) -> Ragged:
        """Whole numbers; what becomes 0 is left out."""
        rows = block.values.copy()
        rows["weight"] = np.rint(rows["weight"].astype(np.float64) / IMPACT_RANGE * IMPACT_STEPS)
        text = np.repeat(np.arange(len(block.ptr) - 1), np.diff(block.ptr))
        kept = rows["weight"] > 0
        return rows_of(text[kept], rows[kept], len(block.ptr) - 1)


def _once(batch: Tokens, weights: Any, keep: Keep) -> Ragged:  # noqa: ANN401 - float32
    """A token that is there weighs what the table says, however often it occurs."""
    return merged(batch, weights, [], False, keep)


def _looked_up(batch: Tokens, weights: Any, keep: Keep) -> Ragged:  # noqa: ANN401 - float32
    """As BEIR asks SPARTA's index: a token counts each time."""
    return merged(batch, weights, [], True, keep)
