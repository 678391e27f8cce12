"""Learned sparse encoders: texts to weighted terms, by SPLADE, SPARTA, uniCOIL and DeepCT."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.algorithms import algorithm
from weir.core.strings import Float32, Int64, Strings, offsets
from weir.errors import BadValue, StoreError, UnusableText
from weir.models.batching import BatchPlan, Ragged, gather_ragged, results
from weir.models.checkpoints import (
    Checkpoint,
    bare_checkpoint,
    check_kind,
    check_least,
    checkpoint_fingerprint,
    fetch,
    find_card,
    inner_folder,
    locate,
    read_modules,
    read_object,
    split_variant,
    step_kind,
    text_limit,
    with_declared_prompts,
)
from weir.models.encoder import BATCH_TOKENS, Kind
from weir.models.engine import Declared, Engine, build, check_engine, declare
from weir.models.hardware import ComputePlace
from weir.models.heads import Layer, OwnHead, TermHead, TokenHead, Transform
from weir.models.tokens import ModelTokenizer, Tokens, load_tokenizer
from weir.models.weights import ACTIVATIONS, ModelState, read_state, supported

# ----------
# Heads: hidden states to weighted terms.


TERM = np.dtype([("term", "<i4"), ("weight", "<f4")])
"""A term with its weight, in eight bytes."""
POOLED = ("max", "sum")
ACTIVATED = ("relu", "log1p_relu")
Terms: TypeAlias = NDArray[np.void]


@dataclass(frozen=True)
class _Names:
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
"""Masked-word heads computed here; `activation` is its entry in the configuration, GELU if ""."""


def _pooled(found: tuple[Int64, Int64, Float32], count: int, top: int | None) -> Ragged:
    text, term, weight = found
    rows = np.empty(len(text), TERM)
    rows["term"], rows["weight"] = term, weight
    return _rows_by_text(text, rows, count, top)


def merged(
    batch: Tokens,
    weights: NDArray[np.float32],
    add: bool,
    top: int | None,
    threshold: float,
    left_out: Sequence[int] = (),
) -> Ragged:
    """Return the terms of each text (rows of TERM, ascending), each with its largest weight over the tokens, if
    above 0.

    add: sum the weights instead.
    top, threshold: keep the `top` heaviest terms, None for all, above the threshold.
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
    enough = ~(rows["weight"] <= threshold)
    return _rows_by_text(text[at][enough], rows[enough], len(batch), top)


def _rows_by_text(text: Int64, rows: Terms, count: int, top: int | None = None) -> Ragged:
    ptr = offsets(np.bincount(text, minlength=count))
    if top is None or int(np.diff(ptr).max(initial=0)) <= top:
        return Ragged(ptr, rows)
    order = np.lexsort((rows["term"], -rows["weight"], text))
    heaviest = np.sort(order[np.arange(len(rows)) - ptr[text[order]] < top])
    return _rows_by_text(text[heaviest], rows[heaviest], count)


# ----------
# Layouts of sparse checkpoints: the encoders of documents and of queries.
#
# Plain checkpoints of transformers hold one model for both. Those of sentence-transformers say in modules.json how a
# text goes through them, and through a Router another way for queries: often only a table of weights, so that no
# model reads a query (SparseStaticEmbedding, first called IDF).


MODELS = ("Transformer", "MLMTransformer")
TABLES = ("SparseStaticEmbedding", "IDF")
KINDS = (*MODELS, *TABLES, "SpladePooling", "Router")


@dataclass(frozen=True, eq=False)
class SparseModel:
    """A checkpoint with the pooling and activation that its files declare, None if undeclared."""

    checkpoint: Checkpoint
    pooling: str | None = None
    activation: str | None = None


@dataclass(frozen=True, eq=False)
class TokenWeights:
    """Fixed weights of tokens, from idf.json or a tensor file; without a file every token weighs 1."""

    tokenizer: Checkpoint
    file: Path | None


@dataclass(frozen=True, eq=False)
class SparseCheckpoint:
    """A checkpoint's encoders of documents and of queries; for queries perhaps a table of weights alone."""

    document: SparseModel
    query: SparseModel | TokenWeights


def read_layout(folder: Path, variant: str = "") -> SparseCheckpoint:
    """Return how a checkpoint encodes documents and queries.

    Raises StoreError for missing or damaged files, BadValue for another kind of checkpoint.
    """
    steps = read_modules(folder, KINDS)
    if not steps:
        side = SparseModel(bare_checkpoint(folder, folder, variant))
        return SparseCheckpoint(side, side)
    routes = {"document": steps, "query": steps}
    if any(kind == "Router" for kind, _ in steps):
        if len(steps) > 1:
            raise BadValue(f"{folder / 'modules.json'}: steps beside a Router are not known")
        router = steps[0][1]
        path = router / "router_config.json"
        path = path if path.exists() else router / "config.json"
        facts: dict[str, Any] = read_object(path, needed=True)
        try:
            kinds = {name: step_kind(path, kind, KINDS) for name, kind in facts["types"].items()}
            for route in routes:
                names = facts["structure"][route]
                routes[route] = [(kinds[name], inner_folder(router, name)) for name in names]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise StoreError(f"{path}: damaged ({error}); fetch the checkpoint again") from None
    document = _side(folder, routes["document"])
    if isinstance(document, TokenWeights):
        raise BadValue(f"{folder}: its documents are read by no model")
    same = routes["query"] is routes["document"]
    return SparseCheckpoint(document, document if same else _side(folder, routes["query"]))


def _table_weights(table: TokenWeights, tokenizer: ModelTokenizer) -> Float32:
    size = tokenizer.inner.get_vocab_size(with_added_tokens=True)
    if table.file is None:
        return np.ones(size, np.float32)
    weights = np.zeros(size, np.float32)
    if table.file.suffix == ".json":
        for token, weight in read_object(table.file, needed=True).items():
            number = tokenizer.inner.token_to_id(token)
            if number is not None:
                weights[number] = weight
    else:
        [tensor, *others] = read_state(table.file).values()
        if others or tensor.ndim != 1:
            raise StoreError(f"{table.file}: expected the weights of tokens, one number for each")
        weights = tensor.astype(np.float32)
    if not (np.isfinite(weights) & (weights >= 0)).all():
        raise BadValue(f"{table.file}: a token's weight is negative or not finite")
    return weights


def _side(folder: Path, steps: list[tuple[str, Path]]) -> SparseModel | TokenWeights:
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
    checkpoint = with_declared_prompts(bare_checkpoint(steps[0][1], folder))
    return SparseModel(checkpoint, pooling, activation)


# ----------
# An engine with its head: a batch of tokens to weights.


@dataclass(frozen=True, eq=False)
class TermEncoder:
    """A loaded encoder of documents or of queries."""

    tokenizer: ModelTokenizer
    engine: Engine | None
    table: Any = None
    """float32[tokens], each token's weight; None with an engine."""


def special_tokens(tokenizer: ModelTokenizer) -> list[int]:
    """Return the numbers of special tokens, such as [CLS] and [MASK], ascending."""
    return sorted(n for n, token in tokenizer.inner.get_added_tokens_decoder().items() if token.special)


# ----------
# Sparse encoders: texts to terms with weights.
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
    """An encoder of texts to weighted terms, with the settings of `splade`; None takes the model's own.

    Raises BadValue for an unsuitable model or setting.
    """

    family: str
    """"splade", "sparta", "unicoil" or "deepct"."""
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
        choices: dict[str, tuple[object, ...]] = {
            "pooling": (None, *POOLED),
            "activation": (None, *ACTIVATED),
            "family": FAMILIES,
            "quantised": (False, True),
        }
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                expected = ", ".join(str(a) for a in allowed if a is not None)
                raise BadValue(f"{who}: {name} is {getattr(self, name)!r}; expected {expected}")
        check_engine(self.engine, self.dtype)
        check_least(self, {"top": 1, "top_query": 1, "max_length": 3, "max_query": 3, "batch_tokens": 0})
        if isinstance(self.threshold, bool) or not 0 <= self.threshold < float("inf"):
            raise BadValue(f"{who}: threshold is {self.threshold!r}; expected a number from 0")

    def describe(self, device: str = "auto") -> dict[str, object]:
        return self._resolved().describe(device)

    def fetch(self) -> None:
        fetch(self.model)
        other = self._query_side()
        if other is not None and other not in ("model", "tokens", "idf"):
            fetch(other)

    def load(self, device: str = "auto") -> LoadedSparse:
        self.fetch()
        recipe = self._resolved()
        place = recipe.declared(recipe.layout.document.checkpoint, device).place
        budget = self.batch_tokens or BATCH_TOKENS[place.kind]
        document = recipe._term_encoder("document", device)
        query = recipe._term_encoder("query", device, document)
        return LoadedSparse(recipe, place, query, document, budget)

    def _resolved(self) -> SparseRecipe:
        card = find_card(self.model)
        layout = read_layout(locate(self.model), split_variant(self.model)[1])
        limits = {"document": self.max_length, "query": self.max_query or self.max_length}
        stated = {} if card is None else {"document": card.max_document, "query": card.max_query}
        own, query = layout.document.checkpoint, self._query_side()
        if query == "model":
            layout = replace(layout, query=layout.document)
        elif query == "tokens":
            layout = replace(layout, query=TokenWeights(own, None))
        elif query == "idf" and not isinstance(layout.query, TokenWeights):
            if not (own.folder / "idf.json").exists():
                raise BadValue(f"{own.folder}: no idf.json there; give query='tokens', or another checkpoint")
            layout = replace(layout, query=TokenWeights(own, own.folder / "idf.json"))
        elif query is not None and query != "idf":
            layout = replace(layout, query=read_layout(locate(query), split_variant(query)[1]).query)
        return SparseRecipe(self, layout, limits, stated)

    def _query_side(self) -> str | None:
        card = find_card(self.model)
        return self.query or (None if card is None else card.query or card.query_hub) or None


@dataclass(frozen=True, eq=False)
class SparseRecipe:
    """A sparse encoder's settings and its checkpoint's layout, before anything is loaded."""

    encoder: SparseEncoder
    layout: SparseCheckpoint
    limits: dict[str, int | None]
    """"query" or "document" -> tokens at which a text is to be cut; None for the model's own limit."""
    stated: dict[str, int]
    """"query" or "document" -> the limit on the model's card."""

    def side(self, kind: Kind) -> SparseModel | TokenWeights:
        """Return the encoder of queries or documents: a model, or a table of token weights."""
        document = self.layout.document
        if kind == "query" and self.encoder.family == "sparta" and self.encoder.query is None:
            return TokenWeights(document.checkpoint, None)
        return self.layout.query if kind == "query" else document

    def limit(self, kind: Kind) -> int:
        """Return the number of tokens at which a text is cut."""
        side = self.side(kind)
        checkpoint = side.checkpoint if isinstance(side, SparseModel) else side.tokenizer
        stated = self.stated.get(kind) or checkpoint.limit
        return text_limit(self.encoder.model, checkpoint, self.limits[kind], stated)

    def _most_terms(self, kind: Kind) -> int | None:
        if kind == "query":
            return self.encoder.top_query
        return (
            SPARTA_TOP if self.encoder.top is None and self.encoder.family == "sparta" else self.encoder.top
        )

    def prompt(self, kind: Kind) -> str:
        """Return the prefix of each text of this kind; "" for none."""
        side = self.side(kind)
        if isinstance(side, TokenWeights):
            return ""
        prompt = side.checkpoint.query_prompt if kind == "query" else side.checkpoint.document_prompt
        return prompt or ""

    def _pooled_by(self, side: SparseModel) -> tuple[str, str]:
        """Return (pooling, activation) over the tokens of a text."""
        encoder = self.encoder
        return encoder.pooling or side.pooling or "max", encoder.activation or side.activation or "relu"

    def describe(self, device: str) -> dict[str, object]:
        document = self.layout.document.checkpoint
        return {
            "encoding": algorithm("encoding"),
            "family": self.encoder.family,
            "revision": checkpoint_fingerprint(document),
            "architecture": document.architecture,
            "dtype": self.encoder.dtype,
            "quantised": self.encoder.quantised,
            "document": self._described("document"),
            "query": self._described("query"),
            "engine": self.declared(document, device).label,
        } | document.graph_name

    def _described(self, kind: Kind) -> dict[str, object]:
        side = self.side(kind)
        about: dict[str, object] = {
            "max_length": self.limit(kind),
            "top": self._most_terms(kind),
            "threshold": self.encoder.threshold,
        }
        if isinstance(side, TokenWeights):
            counted = "each time" if self.encoder.family == "sparta" else "once"
            source = "1" if side.file is None else side.file.name
            about |= {"weighed by": "token", "weights": source, "counted": counted}
            return about | {"revision": checkpoint_fingerprint(side.tokenizer)}
        about |= {
            "weighed by": "model",
            "revision": checkpoint_fingerprint(side.checkpoint),
            "prompt": self.prompt(kind),
        }
        if self.encoder.family == "splade":
            about |= dict(zip(("pooling", "activation"), self._pooled_by(side), strict=True))
        return about

    def declared(self, checkpoint: Checkpoint, device: str) -> Declared:
        """Return the engine, precision and device that would compute a checkpoint, without loading it."""
        headed = self.encoder.family != "splade" or checkpoint.architecture in MLM
        own = headed and supported(checkpoint)
        return declare(checkpoint, self.encoder.engine, self.encoder.dtype, device, own)

    def _term_encoder(self, kind: Kind, device: str, document: TermEncoder | None = None) -> TermEncoder:
        side, limit = self.side(kind), self.limit(kind)
        if isinstance(side, TokenWeights):
            tokenizer = load_tokenizer(side.tokenizer.folder, limit)
            return TermEncoder(tokenizer, None, _table_weights(side, tokenizer))
        if document is not None and side is self.layout.document:
            return replace(document, tokenizer=document.tokenizer.with_limit(limit))
        tokenizer = load_tokenizer(side.checkpoint.folder, limit)
        return TermEncoder(tokenizer, self._engine(side, self.declared(side.checkpoint, device), tokenizer))

    def _engine(self, side: SparseModel, declared: Declared, tokenizer: ModelTokenizer) -> Engine:
        family, checkpoint = self.encoder.family, side.checkpoint
        pooling, activation = self._pooled_by(side)
        architecture, trained = checkpoint.architecture, checkpoint.trained
        if family == "splade":
            if trained and not trained.endswith(("ForMaskedLM", "ForPreTraining")):
                raise BadValue(
                    f"'{self.encoder.model}' is a {trained}, which has no head for masked words, as SPLADE needs"
                )
            if declared.engine == "transformers" or checkpoint.graph is not None:
                return build(checkpoint, declared, OwnHead("terms", pooling, activation))
            if architecture not in MLM:
                raise BadValue(
                    f"the engine '{declared.engine}' has no head for '{architecture}'; take 'transformers'"
                )
        if checkpoint.graph is not None:
            raise BadValue(f"{checkpoint.graph}: '{family}' reads no ONNX; take safetensors")
        state = ModelState(checkpoint.folder)
        if family in ("unicoil", "deepct"):
            name = "tok_proj" if family == "unicoil" else "classifier"
            weight, bias = state[f"{name}.weight"], state[f"{name}.bias"]
            if weight.shape[0] != 1:
                raise BadValue(
                    f"{checkpoint.folder}: '{name}' gives a token {weight.shape[0]} numbers; expected one"
                )
            head = TokenHead((Layer("Dense", weight, bias),), precise=False)
            return build(checkpoint, declared, head)
        words = "embeddings.word_embeddings.weight"
        if family == "splade":
            names, config = MLM[architecture], checkpoint.config
            distilbert = architecture == "distilbert"
            transform = Transform(
                state[f"{names.dense}.weight"],
                state[f"{names.dense}.bias"],
                ACTIVATIONS[str(config.get(names.activation, "gelu"))],
                state[f"{names.norm}.weight", f"{names.norm}.gamma"],
                state[f"{names.norm}.bias", f"{names.norm}.beta"],
                1e-12 if distilbert else float(config.get("layer_norm_eps", 1e-12)),
            )
            tied = bool(config.get("tie_word_embeddings", True))
            weight = state[words] if tied else state[f"{names.decoder}.weight"]
            return build(
                checkpoint, declared, TermHead(transform, weight, state[names.bias], pooling, activation)
            )
        # SPARTA: a state against the model's own vectors of words; special tokens weigh nothing
        weight = state[words].copy()
        weight[[i for i in special_tokens(tokenizer) if i < len(weight)]] = 0
        return build(
            checkpoint, declared, TermHead(None, weight, np.zeros(len(weight), np.float32), "max", "relu")
        )


@dataclass(frozen=True, eq=False)
class LoadedSparse:
    """A learned sparse encoder loaded on a device."""

    recipe: SparseRecipe
    place: ComputePlace
    query: TermEncoder
    document: TermEncoder
    batch_tokens: int

    @property
    def vocabulary(self) -> int:
        """The size of the vocabulary; every term number is below it."""
        sizes = [int(self.recipe.layout.document.checkpoint.config.get("vocab_size") or 0)]
        for part in (self.query, self.document):
            sizes.append(int(part.tokenizer.inner.get_vocab_size(with_added_tokens=True)))
        return max(sizes)

    def encode(self, texts: Strings | Sequence[str], kind: Kind = "document") -> Ragged:
        """Return the terms of each text in order: rows of TERM, ascending by term (DeepCT: token by token).

        Raises BadValue for a weight that is not finite, and a text too large for memory.
        """
        blocks = self.stream(texts.tolist() if isinstance(texts, Strings) else texts, kind)
        return Ragged.joined(list(blocks), np.zeros(0, TERM))

    def stream(
        self, texts: Iterable[str], kind: Kind = "document", done: Callable[[int], None] | None = None
    ) -> Iterator[Ragged]:
        """Yield the terms of texts as `encode` returns them, some thousand texts at a time, with its errors.

        done: called with the number of finished texts.
        """
        part = self.query if kind == "query" else self.document
        encoder, top, prompt = self.recipe.encoder, self.recipe._most_terms(kind), self.recipe.prompt(kind)
        family, threshold = encoder.family, encoder.threshold
        prompted = (prompt + t for t in texts) if prompt else texts

        def rows(batch: Tokens) -> Ragged:
            if part.engine is None:
                # A token counts each time for SPARTA, as in BEIR, else once.
                return merged(batch, part.table[batch.ids], family == "sparta", top, threshold)
            numbers = part.engine.rows(batch)
            if family in ("splade", "sparta"):
                return _pooled(part.engine.above(numbers, threshold), len(batch), top)
            weights = part.engine.array([numbers])[:, 0]
            if family == "deepct":
                terms = np.empty(len(batch.ids), TERM)
                terms["term"], terms["weight"] = batch.ids, weights
                return Ragged(batch.ptr, terms)
            first = batch.ids[batch.ptr[:-1][batch.lengths > 0]][:1]
            return merged(batch, np.maximum(weights, 0), kind == "query", top, threshold, first.tolist())

        tokenize = part.tokenizer if part.engine is not None else part.tokenizer.without_special
        plan = BatchPlan(self.batch_tokens, padded=part.engine is not None and part.engine.padded)
        first = 0
        for block in results(prompted, tokenize, rows, gather_ragged, plan, done):
            bad = np.flatnonzero(~np.isfinite(block.values["weight"]))
            if len(bad):
                text = first + int(np.searchsorted(block.ptr, bad[0], side="right")) - 1
                advice = f"(computed in {self.place.dtype}); take dtype='fp32', or look at the checkpoint"
                raise UnusableText("a weight", text, f"is not finite {advice}")
            first += len(block)
            if not encoder.quantised:
                yield block
                continue
            impacts = block.values.copy()  # whole numbers; what becomes 0 is left out
            impacts["weight"] = np.rint(impacts["weight"].astype(np.float64) / IMPACT_RANGE * IMPACT_STEPS)
            owner = np.repeat(np.arange(len(block)), block.lengths)
            above = impacts["weight"] > 0
            yield _rows_by_text(owner[above], impacts[above], len(block))
