"""Encoders as values: texts to float32 vectors."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np

from weir.argument_types import checked
from weir.core.strings import Float32, Int64, Strings
from weir.errors import BadValue
from weir.models.batching import BatchPlan, gather_rows, results
from weir.models.checkpoints import (
    POOLINGS,
    STATIC,
    Checkpoint,
    EncoderRecipe,
    check_least,
    check_model,
    fetch_encoder,
    model_arguments,
    resolve,
)
from weir.models.engine import (
    Declared,
    Engine,
    build,
    check_engine,
    declare,
)
from weir.models.hardware import ComputePlace
from weir.models.heads import VectorHead, read_layer
from weir.models.tokens import ModelTokenizer, Text, load_tokenizer
from weir.registry import Identity

# ----------
# Dense encoders: texts to float32 vectors.


Kind: TypeAlias = Literal["query", "document"]
Progress: TypeAlias = Callable[[int, int], None]

SIMILARITIES = ("dot", "cosine")
BATCH_TOKENS = {"cpu": 1000, "cuda": 32768}
"""Tokens of a batch: on a processor what its caches hold, on a GPU what keeps it busy."""


@dataclass(frozen=True)
class Encoder:
    """How texts become vectors: a checkpoint, and whatever should differ from what it and its card say.

    model: a name of `weir list models`, a name on the Hugging Face hub, or a folder. pooling: mean, cls, last or max,
    or own where an ONNX graph gives one vector for each text;
    similarity: dot, or cosine (then vectors have length 1); query_prompt, document_prompt: put before a text, ""
    for nothing, {task} in them is the collection's instruction; max_length, max_query: tokens of a document and a
    query at most; None leaves each to the checkpoint. dtype: fp32, bf16, fp16 or int8, the least precision to
    compute in; vectors are float32 always. engine: auto takes one by a fixed rule, see weir.models.engine; or
    openvino, torch, transformers. batch_tokens: 0 takes what suits the device.
    Raises BadValue for settings out of range.
    """

    model: str = "minilm"
    pooling: str | None = None
    similarity: str | None = None
    query_prompt: str | None = None
    document_prompt: str | None = None
    max_length: int | None = None
    max_query: int | None = None
    dtype: str = "fp32"
    engine: str = "auto"
    batch_tokens: int = 0

    def __post_init__(self) -> None:
        check_model(self.model, "dense", "which gives no single vector for a text")
        for name, allowed in (("pooling", (*POOLINGS.values(), "own")), ("similarity", SIMILARITIES)):
            if getattr(self, name) not in (None, *allowed):
                raise BadValue(f"{name} is {getattr(self, name)!r}; expected {', '.join(allowed)}")
        check_engine(self.engine, self.dtype)
        for name in ("query_prompt", "document_prompt"):
            if not isinstance(getattr(self, name), (str, type(None))):
                raise BadValue(f"{name} is {getattr(self, name)!r}; expected a text")
        check_least(self, {"max_length": 3, "max_query": 3, "batch_tokens": 0})

    @property
    def arguments(self) -> tuple[list[object], dict[str, object]]:
        """How a system that takes these settings prints them."""
        return model_arguments(self, self.model)

    def describe(self, device: str = "auto") -> dict[str, object]:
        """What decides the vectors, and under "engine" what computes them on a device, None where it is not installed.

        Reads the checkpoint's files and nothing else. Raises DownloadError where the checkpoint is not here.
        """
        recipe = resolve(self)
        return recipe.describe() | {"dtype": self.dtype, "engine": self.declared(recipe, device).label}

    def declared(self, recipe: EncoderRecipe, device: str = "auto") -> Declared:
        """The engine that encodes on a device."""
        return declare(recipe.document, self.engine, self.dtype, device)

    def fetch(self) -> None:
        """Download the checkpoint where it is not here; raises DownloadError where that fails."""
        fetch_encoder(self.model)

    def adapted_to(self, collection: str, instruction: str) -> Encoder:
        """The encoder with the prompts it uses on a collection: those declared for it, {task} in them filled in.

        collection: its name; instruction: what to look for there, "" where nothing says so. Raises DownloadError where
        the checkpoint is not here.
        """
        default, adapted = resolve(self), resolve(self, collection, instruction)
        prompts = {name: getattr(adapted, name) for name in ("query_prompt", "document_prompt")}
        return replace(
            self, **{name: text for name, text in prompts.items() if text != getattr(default, name)}
        )

    def load(self, device: str = "auto") -> Loaded:
        """The encoder in memory, on auto (a GPU where there is one), cpu, cuda, or cuda:1; downloads what is not here.

        Warns when the checkpoint declares prompts and none is used. Raises DownloadError, StoreError or
        BadValue for a checkpoint that is not here, damaged, or of a kind Weir cannot use.
        """
        self.fetch()
        recipe = resolve(self)
        for note in recipe.notes:
            warnings.warn(note, stacklevel=2)
        declared = self.declared(recipe, device)
        document = _part(recipe, recipe.document, recipe.max_document, declared)
        same = recipe.query is recipe.document
        query = document if same else _part(recipe, recipe.query, recipe.max_query, declared)
        if same and recipe.max_query != recipe.max_document:
            query = TextEncoder(document.engine, document.tokenizer.with_limit(recipe.max_query))
        budget = self.batch_tokens or BATCH_TOKENS[declared.place.kind]
        return Loaded(self, recipe, declared.place, query, document, budget)


@dataclass(frozen=True, eq=False)
class TextEncoder:
    """What encodes one kind of text."""

    engine: Engine
    tokenizer: ModelTokenizer


@dataclass(frozen=True, eq=False)
class Loaded:
    """An encoder in memory; `encode` is all it does."""

    encoder: Encoder
    recipe: EncoderRecipe
    place: ComputePlace
    query: TextEncoder
    document: TextEncoder
    batch_tokens: int

    def encode(
        self, texts: Strings | Sequence[str], kind: Kind = "document", progress: Progress | None = None
    ) -> Float32:
        """One vector for each text, in their order: float32[N, d], of length 1 where similarity is cosine.

        Raises BadValue for a vector that is not finite and for a text that does not fit into memory.
        """
        total = len(texts)
        done = None if progress is None else lambda count: progress(min(count, total), total)
        rows = texts.tolist() if isinstance(texts, Strings) else texts
        return np.concatenate(list(self.stream(rows if total else [""], kind, done)))[:total]

    def stream(
        self, texts: Iterable[str], kind: Kind = "document", done: Callable[[int], None] | None = None
    ) -> Iterator[Float32]:
        """The vectors of a stream of texts, some thousand at a time and in order, in bounded memory.

        done: called with the number of texts finished so far. Raises as `encode` does.
        """
        part = self.query if kind == "query" else self.document
        prompt = self.recipe.query_prompt if kind == "query" else self.recipe.document_prompt
        prompted: Iterable[Text] = (prompt + t for t in texts) if prompt else texts
        plan = BatchPlan(self.batch_tokens, padded=part.engine.padded)

        first, gather = 0, gather_rows(part.engine.array)
        for vectors in results(prompted, part.tokenizer, part.engine.rows, gather, plan, done):
            bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
            if len(bad):
                raise BadValue(
                    f"the vector of text {first + int(bad[0]) + 1} is not finite (computed in "
                    f"{self.place.dtype}); take dtype='fp32', or look at the checkpoint"
                )
            first += len(vectors)
            yield vectors

    def extents(self, texts: Sequence[str]) -> tuple[Int64, Int64]:
        """(tokens of each document if none were cut, its prompt's among them; characters of it that are read)."""
        prompt = self.recipe.document_prompt
        tokens, characters = self.document.tokenizer.extents([prompt + text for text in texts])
        return tokens, np.maximum(characters - len(prompt), 0)


def _part(recipe: EncoderRecipe, checkpoint: Checkpoint, limit: int, declared: Declared) -> TextEncoder:
    layers = tuple(read_layer(head) for head in checkpoint.heads)
    engine = build(checkpoint, declared, VectorHead(recipe.pooling, layers, recipe.normalise))
    return TextEncoder(engine, load_tokenizer(checkpoint.folder, limit, checkpoint.architecture != STATIC))


# ----------
# Objects with encode(texts), such as a SentenceTransformer, and functions as encoders.


EncodeFunction: TypeAlias = Callable[[list[str]], object]
"""Texts to an array of vectors [n, d]."""


@runtime_checkable
class TextsEncoder(Protocol):
    """An object that encodes texts."""

    def encode(self, texts: list[str]) -> object:
        """An array of vectors [n, d]."""
        ...


@runtime_checkable
class QueryDocumentEncoder(Protocol):
    """An object that encodes queries and documents each in its own way, as with prompts of their own."""

    def encode_query(self, texts: list[str]) -> object:
        """Vectors of queries [n, d]."""
        ...

    def encode_document(self, texts: list[str]) -> object:
        """Vectors of documents [n, d]."""
        ...


@runtime_checkable
class BeirEncoder(Protocol):
    """A model of BEIR's dense search."""

    def encode_queries(self, queries: list[str]) -> object:
        """Vectors of queries [n, d]."""
        ...

    def encode_corpus(self, corpus: list[dict[str, str]]) -> object:
        """Vectors of documents [n, d]; of each a title and a text."""
        ...


@runtime_checkable
class DeclaredSimilarity(Protocol):
    """A model that says how its vectors are compared, as sentence-transformers' do."""

    @property
    def similarity_fn_name(self) -> str | None:
        """cosine, dot, ..."""
        ...


@dataclass(frozen=True)
class ObjectEncoder:
    """An object in memory that turns texts into vectors.

    query, document: what encodes each kind of text; similarity: cosine (vectors are brought to length 1) or dot.
    """

    query: EncodeFunction
    document: EncodeFunction
    identity: Identity
    similarity: str = "cosine"
    adapter: ClassVar[str] = "weir.encoder"

    def __str__(self) -> str:
        return self.identity.name

    def __repr__(self) -> str:
        return f"encoder({self.identity.name})"

    @property
    def arguments(self) -> tuple[list[object], dict[str, object]]:
        """How a system prints it: by its name without quotes, which names nothing that could be loaded."""
        return [self], {}

    def describe(self, device: str = "auto") -> dict[str, object]:
        """Its name and version, or a session; the device is its own affair."""
        return {"object": "encoder", "similarity": self.similarity, **self.identity.describe()}

    def fetch(self) -> None:
        """Nothing: it is here."""

    def adapted_to(self, collection: str, instruction: str) -> ObjectEncoder:
        """The same on every collection."""
        return self

    def load(self, device: str = "auto") -> LoadedObject:
        """The object, ready."""
        return LoadedObject(self)


@dataclass(frozen=True, eq=False)
class LoadedObject:
    """An object that encodes."""

    encoder: ObjectEncoder

    def encode(self, texts: Strings | Sequence[str], kind: Kind = "document") -> Float32:
        """One vector for each text, in their order: float32[N, d]; raises BadValue for anything else."""
        function = self.encoder.query if kind == "query" else self.encoder.document
        rows = texts.tolist() if isinstance(texts, Strings) else list(texts)
        try:
            vectors = np.asarray(function(rows), np.float32)
        except (TypeError, ValueError) as error:
            raise BadValue(f"{self.encoder}, asked for {len(rows)} vectors: {error}") from error
        if vectors.ndim != 2 or len(vectors) != len(rows) or vectors.shape[1] == 0:
            raise BadValue(f"{self.encoder}: {len(rows)} texts gave vectors of shape {vectors.shape}")
        bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
        if len(bad):
            raise BadValue(f"{self.encoder}: the vector of {rows[int(bad[0])][:60]!r} is not finite")
        if self.encoder.similarity == "dot":
            return vectors
        length = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
        return (vectors / np.where(length > 0, length, 1.0)).astype(np.float32)


def _encoded_as_corpus(model: BeirEncoder, texts: list[str]) -> object:
    return model.encode_corpus([{"title": "", "text": text} for text in texts])


@checked
def as_encoder(
    model: object, similarity: str | None = None, name: str | None = None, version: str | None = None
) -> ObjectEncoder:
    """An object with encode(texts), with encode_query(texts) and encode_document(texts), or a function, as an encoder.

    Each takes a list of texts and gives an array of vectors [n, d]; so do BEIR's encode_queries, and encode_corpus of
    {"title": "", "text": text}, as the text has the title already. similarity: None takes what the object declares
    (similarity_fn_name), else cosine; name: how it prints, by default that of its class or function; version: what
    stands for it in keys; vectors by one without a version are made again in each process. Raises BadValue for what
    encodes nothing, and for a similarity other than cosine and dot.
    """
    if isinstance(model, type):
        raise BadValue(f"{model.__name__} is a class; give a value of it")
    query: EncodeFunction
    document: EncodeFunction
    if isinstance(model, QueryDocumentEncoder):
        query, document = model.encode_query, model.encode_document
    elif isinstance(model, BeirEncoder):  # which may have a plain `encode` too, without its prompts
        query, document = model.encode_queries, partial(_encoded_as_corpus, model)
    elif isinstance(model, TextsEncoder):
        query = document = model.encode
    elif callable(model):
        query = document = model
    else:
        raise BadValue(
            f"model is {model!r}; expected a name of `weir list models`, a hub name, a folder, or an object with "
            "encode(texts)"
        )
    declared = model.similarity_fn_name if isinstance(model, DeclaredSimilarity) else None
    chosen = similarity or declared or "cosine"
    if chosen not in SIMILARITIES:
        raise BadValue(f"similarity is {chosen!r}; expected cosine or dot")
    return ObjectEncoder(query, document, Identity.of(model, name, version, ObjectEncoder.adapter), chosen)


# ----------
# Measuring how far a vector depends on the other texts of its batch.


TOLERANCE = {"fp32": 1e-5, "fp16": 5e-3, "bf16": 3e-2, "int8": 1e-2}
"""Largest difference in a coordinate of unit vectors that may come from the other texts of a batch.

Products over more rows may be summed in another order; in half precision that shows at its last bit, which
grows through the layers. int8 sums whole numbers, but what is near the middle of two steps may fall either way.
"""


@dataclass(frozen=True)
class Stability:
    """How far vectors move: difference, the largest in any coordinate of the unit vectors, between a text
    alone and in a batch with others; cosine, the smallest between the two; tolerance, what is promised.
    """

    texts: int
    difference: float
    cosine: float
    tolerance: float

    @property
    def holds(self) -> bool:
        """Whether the promise is kept."""
        return self.difference <= self.tolerance

    def __str__(self) -> str:
        verdict = "within" if self.holds else "BEYOND"
        return (
            f"{self.texts} texts alone and in batches: vectors differ by {self.difference:.1e} at most, "
            f"{verdict} {self.tolerance:.0e}; cosine {self.cosine:.7f} at least"
        )


def stability(loaded: Loaded, texts: Sequence[str]) -> Stability:
    """Encode texts alone and together, and compare."""
    together = loaded.encode(texts)
    alone = np.concatenate([loaded.encode([text]) for text in texts])
    a, b = (x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12) for x in (together, alone))
    return Stability(
        len(texts), float(np.abs(a - b).max()), float((a * b).sum(1).min()), TOLERANCE[loaded.place.dtype]
    )
