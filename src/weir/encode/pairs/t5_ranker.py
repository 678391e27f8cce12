"""monoT5: a T5 reads a query and a document together and says whether the document answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from weir.algorithms import algorithm
from weir.encode.batching import BatchPlan, results
from weir.encode.encoder import Float32
from weir.encode.models.bert_weights import Tensor
from weir.encode.models.t5 import DTYPES, T5, declare_t5, load_t5, read_t5
from weir.encode.models.tokens import Text, Tokens, load_tokenizer
from weir.encode.pairs.cross_encoder import gathered
from weir.encode.recipes.cards import known
from weir.encode.recipes.checkpoint import Checkpoint
from weir.encode.recipes.fingerprint import fingerprint
from weir.encode.recipes.hub import fetch
from weir.encode.recipes.model_settings import check_least, check_model, model_arguments
from weir.errors import BadValue, require

__all__ = ["LoadedMonoT5", "MonoT5", "Prompts"]

MAX_TOKENS = 512
BATCH_TOKENS = {"cpu": 2000, "cuda": 65536}
HEAD, MIDDLE, TAIL = "Query:", "Document:", "Relevant:"
WORDS = {
    "unicamp-dl/mt5-base-en-msmarco": ("▁no", "▁yes"),
    "unicamp-dl/mt5-base-en-pt-msmarco-v1": ("▁no", "▁yes"),
    "unicamp-dl/mt5-base-en-pt-msmarco-v2": ("▁no", "▁yes"),
    "unicamp-dl/mt5-base-mmarco-v1": ("▁no", "▁yes"),
    "unicamp-dl/mt5-base-mmarco-v2": ("▁no", "▁yes"),
    "unicamp-dl/mt5-3b-mmarco-en-pt": ("▁", "▁true"),
    "unicamp-dl/ptt5-base-en-pt-msmarco-10k-v1": ("▁não", "▁sim"),
    "unicamp-dl/ptt5-base-en-pt-msmarco-100k-v2": ("▁não", "▁sim"),
    "unicamp-dl/ptt5-base-pt-msmarco-10k-v1": ("▁não", "▁sim"),
    "unicamp-dl/ptt5-base-pt-msmarco-10k-v2": ("▁não", "▁sim"),
    "unicamp-dl/ptt5-base-pt-msmarco-100k-v1": ("▁não", "▁sim"),
    "unicamp-dl/ptt5-base-pt-msmarco-100k-v2": ("▁não", "▁sim"),
}
"""Checkpoints that were taught other words for no and yes. Source: castorini/pygaggle, rerank/transformer.py."""
USUAL = ("▁false", "▁true")


@dataclass(frozen=True)
class MonoT5:
    """How pairs of texts become scores by a T5 that was taught to answer true or false.

    model: a name of `weir models`, a name on the Hugging Face hub, or a folder; max_length: tokens of a pair at
    most, of which the document loses first, then the query, never the word that asks; dtype: fp32 or bf16;
    token_false, token_true: the words the checkpoint was taught, None takes what its makers say, else "▁false" and
    "▁true"; batch_tokens: 0 takes what suits the device. The T5 reads
    'Query: {query} Document: {document} Relevant:'; a score is the logarithm of the share that "true" has of both
    words, at most 0. Raises BadValue for settings out of range.
    """

    model: str = "monot5"
    max_length: int = MAX_TOKENS
    dtype: str = "fp32"
    token_false: str | None = None
    token_true: str | None = None
    batch_tokens: int = 0

    def __post_init__(self) -> None:
        check_model(self.model, "t5", "and no T5 such as monot5")
        if self.dtype not in DTYPES:
            raise BadValue(f"dtype is {self.dtype!r}; expected {', '.join(DTYPES)}")
        least = {"max_length": (self.max_length, 16), "batch_tokens": (self.batch_tokens, 0)}
        check_least(least, optional=False)
        given = (self.token_false, self.token_true)
        if given != (None, None) and not all(isinstance(t, str) and t for t in given):
            raise BadValue(f"token_false, token_true are {given}; expected two words, or neither")

    @property
    def arguments(self) -> tuple[list[object], dict[str, object]]:
        """How a re-ranker that takes these settings prints them."""
        return model_arguments(self, self.model)

    @property
    def words(self) -> tuple[str, str]:
        """The words for no and yes."""
        if self.token_false is not None and self.token_true is not None:
            return self.token_false, self.token_true
        card = known(self.model)
        return WORDS.get((card.hub if card is not None else self.model).lower(), USUAL)

    def describe(self, device: str = "auto") -> dict[str, object]:
        """What decides a score, and under "engine" what computes it on a device, None where that is not installed.

        Reads the checkpoint's files and nothing else. Raises DownloadError where the checkpoint is not here.
        """
        checkpoint = self.checkpoint()
        return {
            "encoding": algorithm("encoding"),
            "revision": fingerprint(checkpoint),
            "architecture": checkpoint.architecture,
            "prompt": f"{HEAD} {{query}} {MIDDLE} {{document}} {TAIL}",
            "max_length": self.max_length,
            "score": f"log p({self.words[1]}) among {' and '.join(self.words)}",
            "dtype": self.dtype,
            "engine": declare_t5(checkpoint, self.dtype, device).label,
        }

    def fetch(self) -> None:
        """Download the checkpoint where it is not here; raises DownloadError where that fails."""
        fetch(self.model)

    def checkpoint(self) -> Checkpoint:
        """The checkpoint's files; raises BadValue for one that is no T5 with a decoder."""
        return read_t5(self.model)

    def load(self, device: str = "auto") -> LoadedMonoT5:
        """The model in memory, on auto (a GPU where there is one), cpu, cuda, or cuda:1; downloads what is not here.

        Raises DownloadError, StoreError or BadValue for a checkpoint that is not here, damaged, or of a kind
        that Weir cannot use; BadValue for a vocabulary without the words for no and yes.
        """
        self.fetch()
        checkpoint = self.checkpoint()
        place = declare_t5(checkpoint, self.dtype, device).place
        inner = load_tokenizer(checkpoint.folder, self.max_length).inner
        answers = [_word(inner, word, self.model) for word in self.words]
        engine = load_t5(checkpoint, place)
        prompts = Prompts.of(inner, self.max_length, engine.end)
        return LoadedMonoT5(self, engine, prompts, answers, self.batch_tokens or BATCH_TOKENS[place.kind])


@dataclass(frozen=True, eq=False)
class LoadedMonoT5:
    """A monoT5 in memory; answers: the tokens for no and yes."""

    encoder: MonoT5
    engine: T5
    prompts: Prompts
    answers: list[int]
    batch_tokens: int
    alone: bool = False

    @property
    def device(self) -> str:
        """Where it computes."""
        return self.engine.place.device

    def scores(self, pairs: Iterable[Text], done: Callable[[int], None] | None = None) -> Iterator[Float32]:
        """The scores of a stream of (query, document), some thousand at a time and in order, in bounded memory.

        done: told the number of pairs finished so far. Raises BadValue for a pair that does not fit into memory.
        """
        plan = BatchPlan(self.batch_tokens, padded=True)
        yield from results(pairs, self.prompts, self._scored, gathered, plan, done)

    def _scored(self, batch: Tokens) -> Tensor:
        torch = require("torch", extra="neural")
        words = self.engine.first_words(batch, self.answers)
        # Not log(softmax): this tells apart the very likely ones too, which that rounds to 0.
        return torch.nn.functional.logsigmoid(words[:, 1] - words[:, 0])


@dataclass(frozen=True, eq=False)
class Prompts:
    """Pairs to the tokens of 'Query: ... Document: ... Relevant:', at most `limit`, the word that asks kept.

    Cutting the text where it is too long, as PyGaggle and BEIR do, takes that word away, and with it the question.
    """

    inner: Any
    limit: int
    tail: list[int]

    @staticmethod
    def of(inner: Any, limit: int, end: int) -> Prompts:  # noqa: ANN401 - a tokenizers.Tokenizer
        """The prompts of a tokenizer; end: the token behind each text."""
        inner.no_truncation()
        return Prompts(inner, limit, [*inner.encode(TAIL, add_special_tokens=False).ids, end])

    def __call__(self, pairs: Sequence[Text]) -> Tokens:
        """The tokens of these pairs."""
        rendered = [f"{HEAD} {pair[0]} {MIDDLE} {pair[1]}" for pair in pairs]
        found = self.inner.encode_batch_fast(rendered, add_special_tokens=False)
        room = self.limit - len(self.tail)
        rows = [np.array([*encoding.ids[:room], *self.tail], np.int32) for encoding in found]
        ptr = np.zeros(len(rows) + 1, np.int64)
        np.cumsum([len(row) for row in rows], out=ptr[1:])
        return Tokens(np.concatenate(rows), ptr)


def _word(inner: Any, word: str, model: str) -> int:  # noqa: ANN401 - a tokenizers.Tokenizer
    found = inner.token_to_id(word)
    if found is None:
        raise BadValue(
            f"the vocabulary of '{model}' has no '{word}'; give the words it was taught as token_false and token_true"
        )
    return int(found)
