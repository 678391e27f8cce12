"""Cross-encoders: models that read a query and a document together and score the pair."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from weir.algorithms import algorithm
from weir.core.strings import Float32
from weir.errors import BadValue, StoreError
from weir.models.batching import BatchPlan, gather_rows, results
from weir.models.checkpoints import (
    Checkpoint,
    check_least,
    check_model,
    checkpoint_fingerprint,
    fetch,
    find_card,
    model_arguments,
    open_checkpoint,
    refuse_own_code,
    text_limit,
)
from weir.models.encoder import BATCH_TOKENS
from weir.models.engine import Declared, Engine, build, check_engine, declare
from weir.models.hardware import ComputePlace
from weir.models.heads import ClassHead, Layer, OwnHead
from weir.models.tokens import ModelTokenizer, Text, load_tokenizer
from weir.models.weights import read_state, supported

HEADS = {
    "bert": ("bert.pooler.dense", "Tanh", "classifier"),
    "roberta": ("classifier.dense", "Tanh", "classifier.out_proj"),
    "xlm-roberta": ("classifier.dense", "Tanh", "classifier.out_proj"),
    "camembert": ("classifier.dense", "Tanh", "classifier.out_proj"),
    "electra": ("classifier.dense", "gelu", "classifier.out_proj"),
    "distilbert": ("pre_classifier", "relu", "classifier"),
}
"""{architecture: (layer, activation, layer of the score)} over the first token's state."""


@dataclass(frozen=True)
class CrossEncoder:
    """A model that scores (query, document) pairs by its output before any activation; for two classes, by
    their difference.

    Raises BadValue for bad settings.
    """

    model: str = "minilm-cross"
    """A name of `weir list models`, a hub name, or a folder."""
    max_length: int | None = None
    """Tokens of a pair at most, cut from the longer text first; None leaves it to the checkpoint."""
    dtype: str = "fp32"
    """Least precision to compute in: fp32, bf16, fp16 or int8."""
    engine: str = "auto"
    """openvino, torch or transformers; auto follows the fixed rule of weir.models.engine."""
    batch_tokens: int = 0
    """Tokens of a batch; 0 suits the device."""

    def __post_init__(self) -> None:
        check_model(self.model, "cross", "which does not score pairs of texts")
        check_engine(self.engine, self.dtype)
        check_least(self, {"max_length": 5, "batch_tokens": 0})

    @property
    def arguments(self) -> tuple[list[object], dict[str, object]]:
        return model_arguments(self, self.model)

    def describe(self, device: str = "auto") -> dict[str, object]:
        checkpoint = self.checkpoint()
        return {
            "encoding": algorithm("encoding"),
            "revision": checkpoint_fingerprint(checkpoint),
            "architecture": checkpoint.architecture,
            "max_length": self._limit(checkpoint),
            "score": "the model's output before any activation",
            "dtype": self.dtype,
            "engine": self._declared(checkpoint, device).label,
        } | checkpoint.graph_name

    def fetch(self) -> None:
        fetch(self.model)

    def checkpoint(self) -> Checkpoint:
        """Return the checkpoint's settings; raises BadValue if it does not score pairs, DownloadError if
        missing.
        """
        checkpoint = open_checkpoint(self.model)
        unknown = checkpoint.graph is not None and not checkpoint.trained
        if not unknown and not checkpoint.trained.endswith("ForSequenceClassification"):
            kind = checkpoint.trained or "model"
            raise BadValue(f"'{self.model}' is a {kind}, which does not score pairs of texts")
        return checkpoint

    def load(self, device: str = "auto") -> LoadedCross:
        self.fetch()
        checkpoint = self.checkpoint()
        declared = self._declared(checkpoint, device)
        place = declared.place
        budget = self.batch_tokens or BATCH_TOKENS[place.kind]
        tokenizer = load_tokenizer(checkpoint.folder, self._limit(checkpoint))
        return LoadedCross(self, place, _engine(checkpoint, declared), tokenizer, budget)

    def _declared(self, checkpoint: Checkpoint, device: str) -> Declared:
        own = supported(checkpoint) and checkpoint.architecture in HEADS
        return declare(checkpoint, self.engine, self.dtype, device, own)

    def _limit(self, checkpoint: Checkpoint) -> int:
        card = find_card(self.model)
        stated = checkpoint.limit if card is None else card.max_document
        return text_limit(self.model, checkpoint, self.max_length, stated)


@dataclass(frozen=True, eq=False)
class LoadedCross:
    """A cross-encoder loaded on a device."""

    encoder: CrossEncoder
    place: ComputePlace
    engine: Engine
    tokenizer: ModelTokenizer
    batch_tokens: int

    @property
    def device(self) -> str:
        return self.place.device

    @property
    def batch_independent(self) -> bool:
        return self.engine.batch_independent

    def scores(self, pairs: Iterable[Text], done: Callable[[int], None] | None = None) -> Iterator[Float32]:
        plan = BatchPlan(self.batch_tokens, padded=self.engine.padded)

        gather = gather_rows(self.engine.array)
        for outputs in results(pairs, self.tokenizer, self.engine.rows, gather, plan, done):
            classes = outputs.shape[1]
            if classes > 2:
                raise BadValue(f"'{self.encoder.model}' has {classes} classes; expected one or two")
            yield outputs[:, 0] if classes == 1 else outputs[:, 1] - outputs[:, 0]


def _class_head(checkpoint: Checkpoint) -> ClassHead:
    hidden, activation, last = HEADS[checkpoint.architecture]
    state = read_state(checkpoint.folder)
    missing = [f"{name}.{kind}" for name in (hidden, last) for kind in ("weight", "bias")
               if f"{name}.{kind}" not in state]  # fmt: skip
    if missing:
        raise StoreError(f"{checkpoint.folder}: the weights have no '{missing[0]}'")
    return ClassHead(
        (
            Layer("Dense", state[f"{hidden}.weight"], state[f"{hidden}.bias"], activation),
            Layer("Dense", state[f"{last}.weight"], state[f"{last}.bias"]),
        )
    )


def _engine(checkpoint: Checkpoint, declared: Declared) -> Engine:
    if declared.engine == "transformers" or checkpoint.graph is not None:
        return build(checkpoint, declared, OwnHead("classes"), segments=True)
    if checkpoint.architecture not in HEADS:
        raise BadValue(
            f"the engines torch and openvino have no head for '{checkpoint.architecture}'; take 'transformers'"
        )
    try:
        return build(checkpoint, declared, _class_head(checkpoint), segments=True)
    except StoreError as error:
        refuse_own_code(checkpoint, str(error))
        raise
