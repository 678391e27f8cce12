"""Turn texts into vectors with a model's checkpoint or a Python object."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar, Literal, TypeAlias, TypeVar

import numpy as np

from weir.algorithms import algorithm
from weir.argument_types import checked, shown_value
from weir.core.strings import Float32, Int64, Strings
from weir.errors import BadValue, UnusableText, give_warning, warn_of_ranking
from weir.models.batching import BatchPlan, gather_rows, results
from weir.models.checkpoints import (
    POOLINGS,
    STATIC,
    Checkpoint,
    ModelCard,
    check_least,
    check_model,
    checkpoint_fingerprint,
    fetch,
    find_card,
    model_arguments,
    open_checkpoint,
    text_limit,
    without_prompts_note,
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
from weir.models.protocols import (
    BeirEncoder,
    DeclaredSimilarity,
    QueryDocumentEncoder,
    TextsEncoder,
    missing_method,
)
from weir.models.tokens import ModelTokenizer, Text, load_tokenizer
from weir.registry import Identity

Kind: TypeAlias = Literal["query", "document"]
Progress: TypeAlias = Callable[[int, int], None]

SIMILARITIES = ("dot", "cosine")
BATCH_TOKENS = {"cpu": 1000, "cuda": 32768}
"""Tokens of a batch: they fit into a processor's caches, and keep a GPU busy."""

T = TypeVar("T")

# ----------
# Recipes of encoders: their own settings come first, then the checkpoint's files, then the card.


GENERAL = "Given a web search query, retrieve relevant passages that answer the query"
"""Default instruction of models that follow instructions; theirs for MS MARCO (Wang et al. 2024)."""
TASK = "{task}"
"""Placeholder of the instruction in a prompt; as the instruction itself, each query's own replaces it."""
KINDS = (("query", "query_prompt"), ("document", "document_prompt"), ("passage", "document_prompt"))


@dataclass(frozen=True, eq=False)
class EncoderRecipe:
    """An encoder's settings, completed from its checkpoint and card."""

    model: str
    document: Checkpoint
    query: Checkpoint
    """Usually the same checkpoint as `document`."""
    pooling: str
    similarity: str
    normalise: bool
    query_prompt: str
    document_prompt: str
    max_query: int
    max_document: int
    notes: tuple[str, ...]
    """Warnings for the user about prompts."""

    def describe(self) -> dict[str, object]:
        about: dict[str, object] = {
            "encoding": algorithm("encoding"),
            "revision": checkpoint_fingerprint(self.document),
            "architecture": self.document.architecture,
            "pooling": self.pooling,
            "behind pooling": [f"{h.kind} {h.activation}".strip() for h in self.document.heads],
            "similarity": self.similarity,
            "normalised": self.normalise,
            "query": self.query_prompt + "{text}",
            "document": self.document_prompt + "{text}",
            "max_query": self.max_query,
            "max_length": self.max_document,
        }
        about |= self.document.graph_name
        if self.query is not self.document:
            about["query revision"] = checkpoint_fingerprint(self.query)
        return about


def resolve(encoder: Encoder, collection: str = "", instruction: str = "") -> EncoderRecipe:
    """Return the settings in force: the encoder's, else the checkpoint's, else the model card's (for lengths,
    the card comes before the checkpoint).

    collection: name under which a checkpoint may declare prompts.
    instruction: replaces {task} in prompts.

    Raises BadValue for undeclared pooling or a length beyond the architecture's, DownloadError or StoreError
    for a missing or damaged checkpoint.
    """
    card = find_card(encoder.model) or ModelCard(encoder.model, encoder.model, kind="dense", source="")
    document = open_checkpoint(encoder.model)
    query = open_checkpoint(card.query_hub) if card.query_hub else document
    pooling = _first(encoder.pooling, document.pooling, card.pooling)
    if pooling is None:
        raise BadValue(
            f"nothing says how '{encoder.model}' pools; give pooling='mean', 'cls', 'last' or 'max'"
        )
    similarity = _first(encoder.similarity, document.similarity, card.similarity)
    similarity = similarity or ("cosine" if document.normalise else "dot")
    own_prompts = _of_collection(document.prompts, collection)
    prompts = []
    for name in ("query_prompt", "document_prompt"):
        by_files = _first(own_prompts.get(name), getattr(document, name), getattr(card, name))
        prompts.append(filled_prompt(_first(getattr(encoder, name), by_files) or "", instruction))
    query_prompt, document_prompt = prompts
    declared = [p for p in (*document.prompts.values(), card.query_prompt, card.document_prompt) if p]
    own_query = _first(encoder.max_query, encoder.max_length)
    notes = []
    if declared and not (query_prompt or document_prompt):
        texts = ", ".join(sorted({repr(p) for p in declared}))
        notes = [
            f"'{encoder.model}' declares prompts ({texts}) and none is used; its scores may be lower than published"
        ]
    elif not declared and encoder.query_prompt is None and encoder.document_prompt is None:
        notes = [note for note in [without_prompts_note(encoder.model)] if note]
    return EncoderRecipe(
        model=encoder.model,
        document=document,
        query=query,
        pooling=pooling,
        similarity=similarity,
        normalise=similarity == "cosine" or document.normalise,
        query_prompt=query_prompt,
        document_prompt=document_prompt,
        max_query=text_limit(encoder.model, query, own_query, card.max_query or query.limit),
        max_document=text_limit(
            encoder.model, document, encoder.max_length, card.max_document or document.limit
        ),
        notes=tuple(notes),
    )


def filled_prompt(prompt: str, instruction: str) -> str:
    """Return a prompt with {task} replaced by the instruction, or by a general one for ""."""
    return prompt.replace(TASK, instruction or GENERAL)


def _of_collection(prompts: Mapping[str, str], collection: str) -> dict[str, str]:
    by_kind: dict[str, str] = {}
    target = _plain(collection)
    for name, prompt in prompts.items() if target else ():
        for ending, kind in (("", "query_prompt"), *KINDS):
            if _plain(name) in (target + ending, target + "retrieval" + ending):
                by_kind[kind] = prompt
    return by_kind


def _plain(name: str) -> str:
    return "".join(c for c in name.lower() if c.isalnum())


def _first(*values: T | None) -> T | None:
    return next((v for v in values if v is not None), None)


# ----------
# Dense encoders: texts to float32 vectors.


@dataclass(frozen=True)
class Encoder:
    """A model that turns texts into vectors, with the settings of `weir.Dense`; None takes the checkpoint's.

    Raises BadValue for bad settings.
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
        return model_arguments(self, self.model)

    def describe(self, device: str = "auto") -> dict[str, object]:
        return resolve(self).describe() | {"dtype": self.dtype, "engine": self.declared(device).label}

    def declared(self, device: str = "auto") -> Declared:
        """Return the engine, device and precision that would compute the vectors, without loading.

        Raises DownloadError without the checkpoint, BadValue for an engine that does not fit.
        """
        return declare(open_checkpoint(self.model), self.engine, self.dtype, device)

    def fetch(self) -> None:
        card = find_card(self.model)
        for model in (self.model, "" if card is None else card.query_hub):
            if model:
                fetch(model)

    def adapted_to(self, collection: str, instruction: str) -> Encoder:
        """Return the encoder with a collection's prompts and an instruction; raises DownloadError without the
        checkpoint.
        """
        default, adapted = resolve(self), resolve(self, collection, instruction)
        prompts = {name: getattr(adapted, name) for name in ("query_prompt", "document_prompt")}
        return replace(
            self, **{name: text for name, text in prompts.items() if text != getattr(default, name)}
        )

    def load(self, device: str = "auto") -> Loaded:
        """Return the encoder loaded on a device (auto, cpu, cuda, cuda:1), downloaded if missing.

        Warns if the checkpoint declares prompts and none is used. Raises BadValue for an unsupported
        checkpoint, DownloadError, StoreError for damaged files.
        """
        self.fetch()
        recipe = resolve(self)
        for note in recipe.notes:
            give_warning(note)
        declared = self.declared(device)
        document = _part(recipe, recipe.document, recipe.max_document, declared)
        same = recipe.query is recipe.document
        query = document if same else _part(recipe, recipe.query, recipe.max_query, declared)
        if same and recipe.max_query != recipe.max_document:
            query = TextEncoder(document.engine, document.tokenizer.with_limit(recipe.max_query))
        budget = self.batch_tokens or BATCH_TOKENS[declared.place.kind]
        return Loaded(self, recipe, declared.place, query, document, budget)


@dataclass(frozen=True, eq=False)
class TextEncoder:
    """Engine and tokenizer for queries or for documents."""

    engine: Engine
    tokenizer: ModelTokenizer


@dataclass(frozen=True, eq=False)
class Loaded:
    """An encoder loaded on a device."""

    encoder: Encoder
    recipe: EncoderRecipe
    place: ComputePlace
    query: TextEncoder
    document: TextEncoder
    batch_tokens: int

    def encode(
        self, texts: Strings | Sequence[str], kind: Kind = "document", progress: Progress | None = None
    ) -> Float32:
        """Return a vector per text, float32[texts, d], of length 1 for cosine; [0, d] without texts.

        kind: "query" or "document", which decides prompt and length limit.

        Raises BadValue for a vector that is not finite, and a text too large for memory.
        """
        total = len(texts)
        done = None if progress is None else lambda count: progress(min(count, total), total)
        rows = texts.tolist() if isinstance(texts, Strings) else texts
        return np.concatenate(list(self.stream(rows if total else [""], kind, done)))[:total]

    def stream(
        self, texts: Iterable[str], kind: Kind = "document", done: Callable[[int], None] | None = None
    ) -> Iterator[Float32]:
        """Yield the vectors of `encode` in order, in blocks float32[n, d].

        done: called with the number of finished texts.
        """
        part = self.query if kind == "query" else self.document
        prompt = self.recipe.query_prompt if kind == "query" else self.recipe.document_prompt
        prompted: Iterable[Text] = (prompt + t for t in texts) if prompt else texts
        plan = BatchPlan(self.batch_tokens, padded=part.engine.padded)

        first, gather = 0, gather_rows(part.engine.array)
        for vectors in results(prompted, part.tokenizer, part.engine.rows, gather, plan, done):
            bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
            if len(bad):
                advice = f"(computed in {self.place.dtype}); take dtype='fp32', or look at the checkpoint"
                raise UnusableText("the vector", first + int(bad[0]), f"is not finite {advice}")
            first += len(vectors)
            yield vectors

    def extents(self, texts: Sequence[str]) -> tuple[Int64, Int64]:
        """Return, for each text, (tokens with the prompt before truncation, characters of the text that the
        model reads), int64.
        """
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
"""Maps texts to an array of vectors [n, d]."""


@dataclass(frozen=True)
class ObjectEncoder:
    """An encoder that calls a user's Python object."""

    query: EncodeFunction = field(compare=False)
    document: EncodeFunction = field(compare=False)
    identity: Identity
    similarity: str = "cosine"
    """"dot", or "cosine", which scales vectors to length 1."""
    assumed: bool = False
    """True if neither user nor object named a similarity."""
    separator: str = " "
    """Text between title and text; TITLE_END if the object takes them apart."""
    adapter: ClassVar[str] = "weir.encoder"

    def __str__(self) -> str:
        return self.identity.name

    def __repr__(self) -> str:
        return f"encoder({self.identity.name})"

    @property
    def arguments(self) -> tuple[list[object], dict[str, object]]:
        return [self], {}

    def describe(self, device: str = "auto") -> dict[str, object]:
        return {"object": "encoder", "similarity": self.similarity, **self.identity.describe()}

    def fetch(self) -> None: ...

    def adapted_to(self, collection: str, instruction: str) -> ObjectEncoder:
        return self

    def load(self, device: str = "auto") -> LoadedObject:
        return LoadedObject(self)


@dataclass(frozen=True, eq=False)
class LoadedObject:
    """A user's Python encoder, ready for texts."""

    encoder: ObjectEncoder

    def encode(self, texts: Strings | Sequence[str], kind: Kind = "document") -> Float32:
        """Return a vector per text, float32[texts, d], of length 1 for cosine; [0, 0] without texts.

        Warns (RankingWarning) if vectors differ in length while cosine is assumed, not declared. Raises
        BadValue if the object returns anything but finite vectors.
        """
        function = self.encoder.query if kind == "query" else self.encoder.document
        rows = texts.tolist() if isinstance(texts, Strings) else list(texts)
        if not rows:
            return np.zeros((0, 0), np.float32)
        try:
            vectors = np.asarray(function(rows), np.float32)
        except (TypeError, ValueError) as error:
            raise BadValue(f"{self.encoder}, asked for {len(rows)} vectors: {error}") from error
        if vectors.ndim != 2 or len(vectors) != len(rows) or vectors.shape[1] == 0:
            raise BadValue(
                f"{self.encoder}: {len(rows)} texts gave vectors of shape {vectors.shape}; expected a vector for each, "
                "where equal texts are encoded once"
            )
        bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
        if len(bad):
            words = rows[int(bad[0])][:60].replace(TITLE_END, " ")
            raise UnusableText(f"{self.encoder}: the vector", int(bad[0]), "is not finite", words)
        if self.encoder.similarity == "dot":
            return vectors
        length = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
        if self.encoder.assumed and (length > LONGER * length.min(initial=np.inf, where=length > 0)).any():
            warn_of_ranking(
                f"{self.encoder}: its vectors are compared by cosine, as it declares no similarity, and their "
                "lengths differ; weir.encoder(model, similarity='dot') compares by dot product (BEIR's "
                "score_function='dot')"
            )
        return (vectors / np.where(length > 0, length, 1.0)).astype(np.float32)


LONGER = 1.01
"""Ratio of the longest to the shortest vector above which cosine and dot product rank differently."""
TITLE_END = "\ufdd0"
"""A Unicode noncharacter, which no text has; it separates title and text until a model of BEIR's gets them
apart."""
BEIR_ARGUMENTS = {"batch_size": 128, "show_progress_bar": False, "convert_to_tensor": False}
"""Arguments that BEIR passes to encode_queries and encode_corpus, but for arrays and without progress
bars."""


def _as_beir_calls(encode: Callable[..., object], optional: bool = False) -> Callable[..., object]:
    try:
        parameters = inspect.signature(encode).parameters
    except (TypeError, ValueError):  # of a built-in function
        return encode
    takes_all = optional and any(one.kind is one.VAR_KEYWORD for one in parameters.values())
    taken = {name for name, one in parameters.items() if optional or one.default is one.empty}
    given = {name: value for name, value in BEIR_ARGUMENTS.items() if takes_all or name in taken}
    texts, *further = [*(n for n, one in parameters.items() if one.kind is not one.VAR_KEYWORD), ""]
    if needed := [n for n in further if n in taken and n not in given and _required(parameters[n])]:
        raise BadValue(
            f"{getattr(encode, '__qualname__', encode)} takes {', '.join(needed)} beside {texts}, as models of MTEB "
            "do; give weir.plugins.bridges.from_mteb(model), or weir.Dense(function) with a function of texts alone"
        )
    return partial(encode, **given)


def _required(parameter: inspect.Parameter) -> bool:
    return parameter.default is parameter.empty and parameter.kind is not parameter.VAR_POSITIONAL


def _encoded_as_corpus(encode: Callable[[list[dict[str, str]]], object], texts: list[str]) -> object:
    parts = [text.rpartition(TITLE_END) for text in texts]
    return encode([{"title": title, "text": text} for title, _, text in parts])


@checked
def as_encoder(
    model: object, similarity: str | None = None, name: str | None = None, version: str | None = None
) -> ObjectEncoder:
    """Return a Python object or function wrapped as an encoder.

    model: a function of texts, or an object with encode, with encode_query and encode_document, or with BEIR's
        encode_queries and encode_corpus. Each maps a list to an array [n, d], encode_corpus of dicts with
        title and text.
    similarity: cosine or dot; None takes the object's similarity_fn_name, else cosine.
    name: printed name, by default of its checkpoint, class or function. A lambda needs one.
    version: identifies it for stored results. Without one, vectors are computed anew in each process.

    Raises BadValue for an object that does not encode, and another similarity.
    """
    if isinstance(model, type):
        raise BadValue(f"{model.__name__} is a class; give a value of it")
    query: EncodeFunction
    document: EncodeFunction
    separator = " "
    if isinstance(model, QueryDocumentEncoder):
        query, document = map(_as_beir_calls, (model.encode_query, model.encode_document))
    elif isinstance(model, BeirEncoder):  # which may have a plain `encode` too, without its prompts
        query, separator = _as_beir_calls(model.encode_queries, optional=True), TITLE_END
        document = partial(_encoded_as_corpus, _as_beir_calls(model.encode_corpus, optional=True))
    elif isinstance(model, TextsEncoder):
        query = document = _as_beir_calls(model.encode)
    elif callable(model):
        query = document = _as_beir_calls(model)
    elif half := missing_method(model):
        raise BadValue(f"model is {shown_value(model)}: {half}")
    else:
        raise BadValue(
            f"model is {shown_value(model)}; expected a name of `weir list models`, a hub name, a folder, or an object "
            "with encode(texts)"
        )
    declared = model.similarity_fn_name if isinstance(model, DeclaredSimilarity) else None
    chosen = similarity or declared or "cosine"
    if chosen not in SIMILARITIES:
        raise BadValue(f"similarity is {chosen!r}; expected cosine or dot")
    identity = Identity.of(model, name, version, ObjectEncoder.adapter)
    return ObjectEncoder(query, document, identity, chosen, not (similarity or declared), separator)


# ----------
# Measuring how far a vector depends on the other texts of its batch.


# Products over more rows may be summed in another order; in half precision that shows at the last bit, which grows
# through the layers. int8 sums whole numbers, but a value midway between two steps may be rounded either way.
TOLERANCE = {"fp32": 1e-5, "fp16": 5e-3, "bf16": 3e-2, "int8": 1e-2}
"""Largest difference in a coordinate of unit vectors that the other texts of a batch may cause, by
precision."""


@dataclass(frozen=True)
class Stability:
    """The largest difference between vectors of texts encoded alone and in a batch, and its tolerance."""

    texts: int
    difference: float
    """Largest difference in a coordinate of the unit vectors."""
    cosine: float
    """Smallest cosine between the two vectors of a text."""
    tolerance: float
    """Largest permitted difference."""

    @property
    def holds(self) -> bool:
        """True if the difference is within the tolerance."""
        return self.difference <= self.tolerance

    def __str__(self) -> str:
        verdict = "within" if self.holds else "BEYOND"
        return (
            f"{self.texts} texts alone and in batches: vectors differ by {self.difference:.1e} at most, "
            f"{verdict} {self.tolerance:.0e}; cosine {self.cosine:.7f} at least"
        )


def stability(loaded: Loaded, texts: Sequence[str]) -> Stability:
    """Return how much unit vectors of texts, at least one, differ if encoded alone and together; errors as of
    `Loaded.encode`.
    """
    together = loaded.encode(texts)
    alone = np.concatenate([loaded.encode([text]) for text in texts])
    a, b = (x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12) for x in (together, alone))
    return Stability(
        len(texts), float(np.abs(a - b).max()), float((a * b).sum(1).min()), TOLERANCE[loaded.place.dtype]
    )
