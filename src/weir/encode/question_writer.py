"""docT5query: a T5 writes questions that a text answers, drawn at random and yet always the same."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from weir.algorithms import algorithm
from weir.core.strings import Float64, Int64
from weir.encode.batching import BatchPlan, results
from weir.encode.models.bert_weights import Tensor
from weir.encode.models.t5 import DTYPES, T5, declare_t5, load_t5, read_t5
from weir.encode.models.tokens import ModelTokenizer, Text, Tokens, load_tokenizer
from weir.encode.recipes.checkpoint import Checkpoint
from weir.encode.recipes.fingerprint import fingerprint
from weir.encode.recipes.hub import fetch
from weir.encode.recipes.model_settings import check_least, check_model
from weir.errors import BadValue, require

__all__ = ["LoadedWriter", "QuestionWriter"]

BATCH_TOKENS = {"cpu": 1, "cuda": 8192}
"""Tokens of texts that are written about together: on a processor one text alone, its questions are work enough."""
WINDOW_TEXTS = {"cpu": 16, "cuda": 256}
"""Texts whose questions come back together."""


@dataclass(frozen=True)
class QuestionWriter:
    """How texts become questions: a T5 that was taught to write them, and how words are drawn.

    model: a name of `weir models`, a name on the Hugging Face hub, or a folder; n: questions for each text; top_k:
    the likeliest words among which each is drawn; seed: of all draws; max_length: tokens of a text at most;
    max_words: tokens of a question at most; dtype: fp32 or bf16; batch_tokens: 0 takes what suits the device. The
    draws belong to the text, not to its place or its company: on a processor, where each text is by itself, the same
    text gets the same questions, always; on a GPU those beside it can turn a draw that falls within rounding of the
    border between two words. Raises BadValue for settings out of range.
    """

    model: str = "doc2query"
    n: int = 40
    top_k: int = 10
    seed: int = 0
    max_length: int = 512
    max_words: int = 64
    dtype: str = "fp32"
    batch_tokens: int = 0

    def __post_init__(self) -> None:
        check_model(self.model, "t5", "and no T5 such as doc2query")
        if self.dtype not in DTYPES:
            raise BadValue(f"dtype is {self.dtype!r}; expected {', '.join(DTYPES)}")
        least = {"n": (self.n, 1), "top_k": (self.top_k, 1), "seed": (self.seed, 0)}
        least |= {"max_length": (self.max_length, 2), "max_words": (self.max_words, 1)}
        check_least(least | {"batch_tokens": (self.batch_tokens, 0)}, optional=False)

    def describe(self, device: str = "auto") -> dict[str, object]:
        """What decides the words, and under "engine" what computes them on a device, None where it is not installed.

        Reads the checkpoint's files and nothing else. Raises DownloadError where the checkpoint is not here.
        """
        checkpoint = self.checkpoint()
        names = ("n", "top_k", "seed", "max_length", "max_words", "dtype")
        return {name: getattr(self, name) for name in names} | {
            "questions": algorithm("questions"),
            "revision": fingerprint(checkpoint),
            "architecture": checkpoint.architecture,
            "engine": declare_t5(checkpoint, self.dtype, device).label,
        }

    def fetch(self) -> None:
        """Download the checkpoint where it is not here; raises DownloadError where that fails."""
        fetch(self.model)

    def checkpoint(self) -> Checkpoint:
        """The checkpoint's files; raises BadValue for one that is no T5 with a decoder."""
        return read_t5(self.model)

    def load(self, device: str = "auto") -> LoadedWriter:
        """The model in memory, on auto (a GPU where there is one), cpu, cuda, or cuda:1; downloads what is not here.

        Raises DownloadError, StoreError or BadValue for a checkpoint that is not here, damaged, or of a kind
        that Weir cannot use.
        """
        self.fetch()
        checkpoint = self.checkpoint()
        place = declare_t5(checkpoint, self.dtype, device).place
        tokenizer = load_tokenizer(checkpoint.folder, self.max_length)
        budget = self.batch_tokens or BATCH_TOKENS[place.kind]
        return LoadedWriter(self, load_t5(checkpoint, place), tokenizer, budget)


@dataclass(frozen=True, eq=False)
class LoadedWriter:
    """A writer of questions in memory."""

    writer: QuestionWriter
    engine: T5
    tokenizer: ModelTokenizer
    batch_tokens: int

    def questions(
        self, texts: Iterable[Text], done: Callable[[int], None] | None = None
    ) -> Iterator[list[list[str]]]:
        """The questions of a stream of texts, some texts at a time and in order.

        done: told the number of texts finished so far. Raises BadValue for a text that does not fit into memory.
        """
        plan = BatchPlan(self.batch_tokens, padded=True, window=WINDOW_TEXTS[self.engine.place.kind])
        for block in results(texts, self.tokenizer, self._written, _gathered, plan, done):
            flat = [ids for text in block for ids in text]
            found: list[str] = self.tokenizer.inner.decode_batch(flat, skip_special_tokens=True)
            ends = np.cumsum([len(text) for text in block]).tolist()
            yield [found[end - len(text) : end] for text, end in zip(block, ends, strict=True)]

    def _written(self, batch: Tokens) -> list[list[list[int]]]:
        """The tokens of each text's questions."""
        torch, writer, model = require("torch", extra="neural"), self.writer, self.engine
        texts, n = len(batch), writer.n
        draws = np.concatenate([self._draws(batch, i) for i in range(texts)])
        written = np.full((texts * n, writer.max_words), model.end, np.int64)
        alive = np.arange(texts * n)  # the questions that still go on, in the order of the decoder's rows
        with torch.inference_mode():
            decoder = _Decoder.of(model, batch)
            words = decoder.step(np.full(texts, model.start, np.int64))
            words, decoder = words.repeat_interleave(n, 0), decoder.widened(n)
            for step in range(writer.max_words):
                best = words.float().topk(min(writer.top_k, words.shape[-1]))
                found = _drawn(best, draws[alive, step])
                written[alive, step] = found
                going = found != model.end
                if not going.any() or step + 1 == writer.max_words:
                    break
                if not going.all():
                    decoder, alive, found = decoder.taken(np.flatnonzero(going)), alive[going], found[going]
                words = decoder.step(found)
        rows = [_until(row, model.end) for row in written.tolist()]
        return [rows[i * n : (i + 1) * n] for i in range(texts)]

    def _draws(self, batch: Tokens, number: int) -> Float64:
        """A text's own draws, [n, max_words] in [0, 1): by its tokens and the seed."""
        ids = batch.ids[batch.ptr[number] : batch.ptr[number + 1]]
        digest = hashlib.blake2b(ids.astype("<i4").tobytes(), digest_size=16).digest()
        key = np.frombuffer(digest, "<u8") ^ np.array([self.writer.seed, 0], np.uint64)
        shape = (self.writer.n, self.writer.max_words)
        return np.random.Generator(np.random.Philox(key=key)).random(shape)


@dataclass(frozen=True, eq=False)
class _Decoder:
    """The decoder of a T5 at work: rows of words, each with what it has read of its text and written so far.

    states, mask: of the texts; kept: transformers' keys and values. The first word of all questions of a text follows
    from one row; where one text stands alone its keys and values are then shared by all of them, never copied.
    """

    model: T5
    states: Any
    mask: Tensor
    kept: Any

    @staticmethod
    def of(model: T5, batch: Tokens) -> _Decoder:
        """A decoder before the first word, a row for each text."""
        library = require("transformers", extra="neural")
        kept = library.EncoderDecoderCache(library.DynamicCache(), library.DynamicCache())
        return _Decoder(model, *model.encoded(batch), kept)

    def step(self, last: Int64) -> Tensor:
        """The scores of the words to follow these, [rows, V]."""
        torch = require("torch", extra="neural")
        given = torch.from_numpy(last[:, None]).to(self.mask.device)
        found = self.model.module(
            encoder_outputs=self.states,
            attention_mask=self.mask,
            decoder_input_ids=given,
            past_key_values=self.kept,
            use_cache=True,
        )
        return found.logits[:, -1]

    def widened(self, n: int) -> _Decoder:
        """The same with n rows for each one."""

        def wide(table: Tensor) -> Tensor:
            return table[:, None].expand(-1, n, *table.shape[1:]).flatten(0, 1)

        return self._each(wide, wide)

    def taken(self, rows: Int64) -> _Decoder:
        """The same for these rows alone."""
        torch = require("torch", extra="neural")
        chosen = torch.from_numpy(rows).to(self.mask.device)
        if self.mask.shape[0] == 1 or self.mask.stride(0) == 0:  # one text, which all rows share
            return self._each(lambda table: table[chosen], lambda table: table[: len(rows)])
        return self._each(lambda table: table[chosen], lambda table: table[chosen])

    def _each(self, own: Callable[[Tensor], Tensor], read: Callable[[Tensor], Tensor]) -> _Decoder:
        """The same after changes of what rows wrote, and of what they read."""
        for kept, change in (
            (self.kept.self_attention_cache, own),
            (self.kept.cross_attention_cache, read),
        ):
            for layer in kept.layers:
                layer.keys, layer.values = change(layer.keys), change(layer.values)
        self.states.last_hidden_state = read(self.states.last_hidden_state)
        return replace(self, mask=read(self.mask))


def _drawn(best: Any, draws: Float64) -> Int64:  # noqa: ANN401 - what torch's topk gives
    """One of the words [..., k] for each draw [...], in proportion to exp(score)."""
    scores, words = (part.cpu().numpy() for part in (best.values, best.indices))
    ends = np.cumsum(np.exp(scores.astype(np.float64) - scores[..., :1]), axis=-1)
    place = (ends[..., :-1] <= draws[..., None] * ends[..., -1:]).sum(-1)
    found: Int64 = np.take_along_axis(words, place[..., None], -1)[..., 0].astype(np.int64)
    return found


def _until(row: list[int], end: int) -> list[int]:
    return row[: row.index(end)] if end in row else row


def _gathered(parts: Sequence[tuple[Int64, Any]], count: int) -> Any:  # noqa: ANN401 - lists of lists
    """The questions of batches in the order of the texts."""
    whole: list[Any] = [None] * count
    for positions, found in parts:
        for place, questions in zip(positions.tolist(), found, strict=True):
            whole[place] = questions
    return whole
