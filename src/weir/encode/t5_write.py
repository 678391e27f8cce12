"""docT5query: a T5 writes questions that a text answers, drawn at random and yet always the same."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from importlib.metadata import version
from typing import Any

import numpy as np

from weir.core.strings import Float64, Int64
from weir.encode.batching import Plan, results
from weir.encode.cards import known
from weir.encode.checkpoint import Checkpoint, locate, read_checkpoint
from weir.encode.engine import Place, best_device
from weir.encode.recipe import fingerprint
from weir.encode.t5 import DTYPES, T5, Layer, check_t5, load_t5, padded, rms
from weir.encode.t5_pieces import load_pieces
from weir.encode.tokens import Text, Tokenizer, Tokens
from weir.encode.weights import Tensor
from weir.errors import BadValue, require
from weir.settings import settings

__all__ = ["LoadedWriter", "QuestionWriter"]

BATCH_TOKENS = {"cpu": 1, "cuda": 8192}
"""Tokens of texts that are written about together: on a processor one text alone, its questions are work enough."""
WINDOW = {"cpu": 16, "cuda": 256}
"""Texts whose questions come back together."""
NARROWER = 0.75
"""Share of questions still being written at which those that have ended are left out."""


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
        if not isinstance(self.model, str) or not self.model.strip():
            raise BadValue(f"model is {self.model!r}; expected a hub name or a folder")
        if self.dtype not in DTYPES:
            raise BadValue(f"dtype is {self.dtype!r}; expected {', '.join(DTYPES)}")
        least = {"n": 1, "top_k": 1, "seed": 0, "max_length": 2, "max_words": 1, "batch_tokens": 0}
        for name, smallest in least.items():
            value = getattr(self, name)
            if type(value) is not int or value < smallest:
                raise BadValue(f"{name} is {value!r}; expected a whole number from {smallest}")

    @property
    def given(self) -> dict[str, object]:
        """The settings that are not by default."""
        return {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != f.default}

    def describe(self, device: str = "auto") -> dict[str, object]:
        """Everything that can move a word, without loading the model; fetches the checkpoint where needed."""
        checkpoint = self.checkpoint()
        names = ("model", "n", "top_k", "seed", "max_length", "max_words", "dtype")
        return {name: getattr(self, name) for name in names} | {
            "revision": fingerprint(checkpoint),
            "architecture": checkpoint.architecture,
            "engine": "packed t5",
            "device": best_device(device),
            "tokenizers": version("tokenizers"),
        }

    def checkpoint(self) -> Checkpoint:
        """The checkpoint's files; raises BadValue for one that is no T5 with a decoder."""
        card = known(self.model)
        if card is not None and card.kind != "t5":
            raise BadValue(f"'{self.model}' is of the kind '{card.kind}'; expected a T5 such as doc2query")
        checkpoint = read_checkpoint(locate(self.model))
        check_t5(checkpoint, self.model)
        return checkpoint

    def load(self, device: str = "auto") -> LoadedWriter:
        """The model in memory, on auto (a GPU where there is one), cpu, cuda, or cuda:1.

        Raises DownloadError, StoreError or BadValue for a checkpoint that is not here, damaged, or of a kind
        that Weir cannot use.
        """
        torch = require("torch", extra="neural")
        checkpoint = self.checkpoint()
        place = Place(best_device(device), self.dtype)
        if place.device == "cpu":
            torch.set_num_threads(settings().threads)
        tokenizer = load_pieces(checkpoint.folder, self.max_length)
        budget = self.batch_tokens or BATCH_TOKENS[place.device.partition(":")[0]]
        return LoadedWriter(self, place, load_t5(checkpoint, place), tokenizer, budget)


@dataclass(frozen=True, eq=False)
class LoadedWriter:
    """A writer of questions in memory."""

    writer: QuestionWriter
    place: Place
    engine: T5
    tokenizer: Tokenizer
    batch_tokens: int

    def questions(
        self, texts: Iterable[Text], done: Callable[[int], None] | None = None
    ) -> Iterator[list[list[str]]]:
        """The questions of a stream of texts, some texts at a time and in order.

        done: told the number of texts finished so far. Raises BadValue for a text that does not fit into memory.
        """
        plan = Plan(self.batch_tokens, padded=True, window=WINDOW[self.place.device.partition(":")[0]])
        for block in results(texts, self.tokenizer, self._written, _gathered, plan, done):
            flat = [ids for text in block for ids in text]
            found: list[str] = self.tokenizer.inner.decode_batch(flat, skip_special_tokens=True)
            ends = np.cumsum([len(text) for text in block]).tolist()
            yield [found[end - len(text) : end] for text, end in zip(block, ends, strict=True)]

    def _written(self, batch: Tokens) -> list[list[list[int]]]:
        """The tokens of each text's questions."""
        torch, writer, model = require("torch", extra="neural"), self.writer, self.engine
        draws = np.stack([self._draws(batch, i) for i in range(len(batch))])
        with torch.inference_mode():
            decoder = _Decoder.of(model, model.encoded(batch), batch.lengths, writer.max_words)
            shape = (len(batch), writer.n)
            written = np.full((*shape, writer.max_words), model.end, np.int64)
            place = np.tile(np.arange(writer.n), (len(batch), 1))  # which question stands in which column
            last, over = np.full(shape, model.start, np.int64), np.zeros(shape, np.bool_)
            for step in range(writer.max_words):
                words = model.words_of(decoder.step(last, step)).topk(min(writer.top_k, len(model.head)))
                found = _drawn(words, np.take_along_axis(draws[..., step], place, 1))
                last = np.where(over, model.end, found)
                over = last == model.end
                np.put_along_axis(written[..., step], place, last, 1)
                alive = int((~over).sum(1).max())
                if alive == 0:
                    break
                if alive <= NARROWER * last.shape[1]:
                    kept = np.argsort(over, axis=1, kind="stable")[:, :alive]
                    last, over, place = (np.take_along_axis(x, kept, 1) for x in (last, over, place))
                    decoder = decoder.narrowed(kept)
        return [[_until(row, model.end) for row in text] for text in written.tolist()]

    def _draws(self, batch: Tokens, number: int) -> Float64:
        """A text's own draws, [n, max_words] in [0, 1): by its tokens and the seed."""
        ids = batch.ids[batch.ptr[number] : batch.ptr[number + 1]]
        digest = hashlib.blake2b(ids.astype("<i4").tobytes(), digest_size=16).digest()
        key = np.frombuffer(digest, "<u8") ^ np.array([self.writer.seed, 0], np.uint64)
        shape = (self.writer.n, self.writer.max_words)
        return np.random.Generator(np.random.Philox(key=key)).random(shape)


@dataclass(frozen=True, eq=False)
class _Decoder:
    """The decoder of a T5 at work on several questions for each of several texts.

    read: for each layer keys and values of the texts [texts, heads, L, D]; closed: what is added to attention where a
    text has ended; written: for each layer keys and values [texts, columns, heads, words, D] of what stands already;
    bias: [heads, words], what distance adds.
    """

    model: T5
    read: list[tuple[Tensor, Tensor]]
    closed: Tensor
    written: list[Tensor]
    bias: Tensor

    @staticmethod
    def of(model: T5, states: Tensor, lengths: Int64, words: int) -> _Decoder:
        """A decoder before the first word."""
        torch = require("torch", extra="neural")
        table, closed = padded(torch, states.to(model.dtype), lengths)
        read = [
            tuple(torch.einsum("nlk,hdk->nhld", table, m) for m in (part.key, part.value))
            for part in model.reading
        ]
        shut = torch.zeros(closed.shape, dtype=model.dtype, device=closed.device)
        shut = shut.masked_fill_(closed, float("-inf"))[:, None]
        bias = model.past[_buckets(model.past.shape[0], words)].t().contiguous()
        return _Decoder(model, read, shut, [None] * len(read), bias)

    def step(self, last: Int64, step: int) -> Tensor:
        """The states from which the next words of all questions are drawn, [texts, columns, H]."""
        torch, model = require("torch", extra="neural"), self.model
        attention = torch.nn.functional.scaled_dot_product_attention
        texts, columns = last.shape
        h = model.words[torch.from_numpy(last.ravel()).to(model.device)].float()
        for number, (layer, part) in enumerate(zip(model.decoder, model.reading, strict=True)):
            model.add(h, self._own(attention, h, layer, number, (texts, columns, step)), layer.out)
            x = model.normed(h, part.norm).view(texts, columns, -1)
            asked = torch.einsum("nck,hdk->nhcd", x, part.query)
            found = attention(asked, *self.read[number], attn_mask=self.closed, scale=1.0)
            model.add(h, found.transpose(1, 2).reshape(texts * columns, -1), part.out)
            model.widen(h, layer)
        return (rms(torch, h, model.last, model.eps) * model.scale).view(texts, columns, -1)

    def _own(
        self, attention: Callable[..., Tensor], h: Tensor, layer: Layer, number: int, at: tuple[int, int, int]
    ) -> Tensor:
        """Attention of the last words to those before them in the same question."""
        model, (texts, columns, step) = self.model, at
        qkv = model.product(model.normed(h, layer.norm), layer.qkv, "own")
        query, key, value = qkv.view(texts * columns, 3, model.heads, 1, -1).unbind(1)
        kept = self.written[number]
        if kept is None:
            shape = (2, texts * columns, model.heads, self.bias.shape[1], key.shape[-1])
            kept = self.written[number] = qkv.new_empty(shape)
        kept[0, :, :, step : step + 1], kept[1, :, :, step : step + 1] = key, value
        before = kept[:, :, :, : step + 1]
        bias = self.bias[:, : step + 1].flip(1)[:, None]
        return attention(query, before[0], before[1], attn_mask=bias).reshape(texts * columns, -1)

    def narrowed(self, kept: Int64) -> _Decoder:
        """The same for these columns of each text."""
        torch = require("torch", extra="neural")
        columns = self.written[0].shape[1] // len(kept)
        rows = torch.from_numpy((kept + columns * np.arange(len(kept))[:, None]).ravel()).to(
            self.model.device
        )
        written = [w[:, rows] for w in self.written]
        return _Decoder(self.model, self.read, self.closed, written, self.bias)


def _buckets(count: int, words: int) -> Int64:
    """The bucket of each distance back, 0 to words - 1, of `count` that widen with it. Source: Raffel et al. 2020."""
    distance, near = np.arange(words), count // 2
    far = np.log(np.maximum(distance, 1).astype(np.float32) / np.float32(near)) / np.log(128 / near)
    wide = near + (far * (count - near)).astype(np.int64)
    found: Int64 = np.where(distance < near, distance, np.minimum(wide, count - 1))
    return found


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
