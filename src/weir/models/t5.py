"""T5 and mT5: monoT5 as a re-ranker, docT5query as a writer of questions."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from weir.algorithms import algorithm
from weir.core.strings import Float32, Float64, Int64
from weir.errors import BadValue, require
from weir.models.batching import BatchPlan, gather_rows, results
from weir.models.checkpoints import (
    Checkpoint,
    check_least,
    check_model,
    fetch,
    find_card,
    fingerprint,
    model_arguments,
    open_checkpoint,
)
from weir.models.engine import Declared, declare, prepare
from weir.models.hardware import ComputePlace
from weir.models.tokens import ModelTokenizer, Text, Tokens, load_tokenizer, packed
from weir.models.torch_engine import Tensor, tensors_as_array, to_device
from weir.models.transformers_engine import inputs, load_model

# ----------
# T5 and mT5 through transformers.


DTYPES = ("fp32", "bf16")
"""The states of T5 leave the range of fp16."""


@dataclass(frozen=True, eq=False)
class T5:
    """An encoder and decoder in memory; start, end: the tokens that an answer begins and ends with."""

    module: Any
    place: ComputePlace
    start: int
    end: int

    def encoded(self, batch: Tokens) -> tuple[Any, Tensor]:
        """(what the encoder makes of a batch, where its padded table holds a token: int64[n, longest])."""
        torch = require("torch", extra="torch")
        device = torch.device(self.place.device)
        padded = inputs(batch, 0, segments=False)
        tables = {name: to_device(torch, table, device) for name, table in padded.items()}
        return self.module.get_encoder()(**tables), tables["attention_mask"]

    def first_words(self, batch: Tokens, words: list[int]) -> Tensor:
        """The scores of these words to begin each text's answer: float32[n, words]."""
        torch = require("torch", extra="torch")
        with torch.inference_mode():
            states, mask = self.encoded(batch)
            starts = torch.full((len(batch), 1), self.start, device=mask.device)
            output = self.module(encoder_outputs=states, attention_mask=mask, decoder_input_ids=starts)
            return output.logits[:, 0, words].float()


def read_t5(model: str) -> Checkpoint:
    """The files of a T5; raises BadValue for a checkpoint of another kind, DownloadError for one that is not here."""
    checkpoint = open_checkpoint(model)
    writes = checkpoint.trained.endswith("ForConditionalGeneration")
    if checkpoint.architecture not in ("t5", "mt5") or not writes:
        kind = checkpoint.trained or checkpoint.architecture or "model of an unknown kind"
        raise BadValue(
            f"'{model}' is a {kind}; expected a T5 or mT5 that writes (T5ForConditionalGeneration)"
        )
    return checkpoint


def declare_t5(checkpoint: Checkpoint, dtype: str, device: str) -> Declared:
    """The engine that a T5 runs on: transformers, on a device."""
    return declare(checkpoint, "auto", dtype, device, own=False)


def load_t5(checkpoint: Checkpoint, place: ComputePlace) -> T5:
    """A T5 or mT5 in memory, computing in fp32 or bf16.

    Raises BadValue for another dtype, StoreError where a weight is missing.
    """
    torch = require("torch", extra="torch")
    if place.dtype not in DTYPES:
        raise BadValue(f"T5 computes in {' or '.join(DTYPES)} here, not in {place.dtype}")
    prepare(place.device)
    kind = {"fp32": torch.float32, "bf16": torch.bfloat16}[place.dtype]
    module = load_model(checkpoint, kind, "AutoModelForSeq2SeqLM").to(torch.device(place.device))
    config = checkpoint.config
    end = np.ravel(config.get("eos_token_id", 1))
    return T5(module, place, int(config.get("decoder_start_token_id") or 0), int(end[0]))


# ----------
# monoT5: scores of pairs.


MAX_TOKENS = 512
RANKER_BATCH_TOKENS = {"cpu": 2000, "cuda": 65536}
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

    max_length: tokens of a pair at most, of which the document loses first, then the query, never the word that asks;
    dtype: fp32 or bf16; token_false, token_true: the words the checkpoint was taught, None takes what its makers say,
    else "▁false" and "▁true"; model, batch_tokens: see Encoder. The T5 reads
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
        check_least(self, {"max_length": 16, "batch_tokens": 0})
        words = (self.token_false, self.token_true)
        if words != (None, None) and not all(isinstance(t, str) and t for t in words):
            raise BadValue(f"token_false, token_true are {words}; expected two words, or neither")

    @property
    def arguments(self) -> tuple[list[object], dict[str, object]]:
        """How a re-ranker that takes these settings prints them."""
        return model_arguments(self, self.model)

    @property
    def words(self) -> tuple[str, str]:
        """The words for no and yes."""
        if self.token_false is not None and self.token_true is not None:
            return self.token_false, self.token_true
        card = find_card(self.model)
        return WORDS.get((card.hub if card is not None else self.model).lower(), USUAL)

    def describe(self, device: str = "auto") -> dict[str, object]:
        """What decides a score, and what computes it on a device; reads and raises as `Encoder.describe`."""
        checkpoint = read_t5(self.model)
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

    def load(self, device: str = "auto") -> LoadedMonoT5:
        """The model in memory on a device; downloads what is not here, and raises, as `Encoder.load`.

        Raises BadValue for a vocabulary without the words for no and yes, too.
        """
        self.fetch()
        checkpoint = read_t5(self.model)
        place = declare_t5(checkpoint, self.dtype, device).place
        inner = load_tokenizer(checkpoint.folder, self.max_length).inner
        answers = [inner.token_to_id(word) for word in self.words]
        for word, number in zip(self.words, answers, strict=True):
            if number is None:
                raise BadValue(
                    f"the vocabulary of '{self.model}' has no '{word}'; give the words it was taught as token_false "
                    "and token_true"
                )
        engine = load_t5(checkpoint, place)
        prompts = Prompts.of(inner, self.max_length, engine.end)
        return LoadedMonoT5(
            self, engine, prompts, answers, self.batch_tokens or RANKER_BATCH_TOKENS[place.kind]
        )


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

        done: called with the number of pairs finished so far. Raises BadValue for a pair that does not fit into memory.
        """
        plan = BatchPlan(self.batch_tokens, padded=True)
        torch = require("torch", extra="torch")

        def run(batch: Tokens) -> Tensor:
            words = self.engine.first_words(batch, self.answers)
            # Not log(softmax): this tells apart the very likely ones too, which that rounds to 0.
            return torch.nn.functional.logsigmoid(words[:, 1] - words[:, 0])

        yield from results(pairs, self.prompts, run, gather_rows(tensors_as_array), plan, done)


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
        room = self.limit - len(self.tail)
        encodings = self.inner.encode_batch_fast(rendered, add_special_tokens=False)
        return packed([[*encoding.ids[:room], *self.tail] for encoding in encodings])


# ----------
# docT5query: questions that a text answers, drawn at random with a fixed seed.


WRITER_BATCH_TOKENS = {"cpu": 1, "cuda": 8192}
"""Tokens of texts that are written about together: on a processor one text alone, its questions are work enough."""
WINDOW_TEXTS = {"cpu": 16, "cuda": 256}
"""Texts whose questions come back together."""


@dataclass(frozen=True)
class QuestionWriter:
    """How texts become questions: a T5 that was taught to write them, and how words are drawn.

    n: questions for each text; top_k: the likeliest words among which each is drawn; seed: of all draws; max_length:
    tokens of a text at most; max_words: tokens of a question at most; dtype: fp32 or bf16; model, batch_tokens: see
    Encoder. The draws belong to the text, not to its place or its batch: on a processor, where each text is by
    itself, the same text gets the same questions, always; on a GPU those beside it can turn a draw that falls within
    rounding of the border between two words. Raises BadValue for settings out of range.
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
        check_least(self, {"n": 1, "top_k": 1, "seed": 0, "max_length": 2, "max_words": 1, "batch_tokens": 0})

    def describe(self, device: str = "auto") -> dict[str, object]:
        """What decides the words, and what computes them on a device; reads and raises as `Encoder.describe`."""
        checkpoint = read_t5(self.model)
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

    def load(self, device: str = "auto") -> LoadedWriter:
        """The model in memory on a device; downloads what is not here, and raises, as `Encoder.load`."""
        self.fetch()
        checkpoint = read_t5(self.model)
        place = declare_t5(checkpoint, self.dtype, device).place
        tokenizer = load_tokenizer(checkpoint.folder, self.max_length)
        budget = self.batch_tokens or WRITER_BATCH_TOKENS[place.kind]
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

        done: called with the number of texts finished so far. Raises BadValue for a text that does not fit into memory.
        """
        plan = BatchPlan(self.batch_tokens, padded=True, window=WINDOW_TEXTS[self.engine.place.kind])

        def gather(parts: Sequence[tuple[Int64, Any]], count: int) -> Any:  # noqa: ANN401 - lists of lists
            whole: list[Any] = [None] * count
            for positions, written in parts:
                for place, questions in zip(positions.tolist(), written, strict=True):
                    whole[place] = questions
            return whole

        for block in results(texts, self.tokenizer, self._written, gather, plan, done):
            flat = [ids for text in block for ids in text]
            decoded: list[str] = self.tokenizer.inner.decode_batch(flat, skip_special_tokens=True)
            ends = np.cumsum([len(text) for text in block]).tolist()
            yield [decoded[end - len(text) : end] for text, end in zip(block, ends, strict=True)]

    def _written(self, batch: Tokens) -> list[list[list[int]]]:
        """The tokens of each text's questions."""
        torch, writer, model = require("torch", extra="torch"), self.writer, self.engine
        texts, n = len(batch), writer.n
        draws = np.empty((texts * n, writer.max_words))  # in [0, 1), by a text's tokens and the seed
        for i in range(texts):
            ids = batch.ids[batch.ptr[i] : batch.ptr[i + 1]]
            digest = hashlib.blake2b(ids.astype("<i4").tobytes(), digest_size=16).digest()
            key = np.frombuffer(digest, "<u8") ^ np.array([writer.seed, 0], np.uint64)
            generator = np.random.Generator(np.random.Philox(key=key))
            draws[i * n : (i + 1) * n] = generator.random((n, writer.max_words))
        written = np.full((texts * n, writer.max_words), model.end, np.int64)
        alive = np.arange(texts * n)  # the questions that still go on, in the order of the decoder's rows
        with torch.inference_mode():
            decoder = _Decoder.of(model, batch)
            words = decoder.step(np.full(texts, model.start, np.int64))
            words, decoder = words.repeat_interleave(n, 0), decoder.widened(n)
            for step in range(writer.max_words):
                best = words.float().topk(min(writer.top_k, words.shape[-1]))
                last = _drawn(best, draws[alive, step])
                written[alive, step] = last
                going = last != model.end
                if not going.any() or step + 1 == writer.max_words:
                    break
                if not going.all():
                    decoder, alive, last = decoder.with_rows(np.flatnonzero(going)), alive[going], last[going]
                words = decoder.step(last)
        rows = [row[: row.index(model.end)] if model.end in row else row for row in written.tolist()]
        return [rows[i * n : (i + 1) * n] for i in range(texts)]


@dataclass(frozen=True, eq=False)
class _Decoder:
    """The decoder of a T5 at work: rows of words, each with what it has read of its text and written so far.

    states, mask: of the texts; cache: transformers' keys and values. The first word of all questions of a text follows
    from one row; where one text stands alone its keys and values are then shared by all of them, never copied.
    """

    model: T5
    states: Any
    mask: Tensor
    cache: Any

    @staticmethod
    def of(model: T5, batch: Tokens) -> _Decoder:
        """A decoder before the first word, a row for each text."""
        library = require("transformers", extra="torch")
        cache = library.EncoderDecoderCache(library.DynamicCache(), library.DynamicCache())
        return _Decoder(model, *model.encoded(batch), cache)

    def step(self, last: Int64) -> Tensor:
        """The scores of the words to follow these, [rows, V]."""
        torch = require("torch", extra="torch")
        output = self.model.module(
            encoder_outputs=self.states,
            attention_mask=self.mask,
            decoder_input_ids=torch.from_numpy(last[:, None]).to(self.mask.device),
            past_key_values=self.cache,
            use_cache=True,
        )
        return output.logits[:, -1]

    def widened(self, n: int) -> _Decoder:
        """The same with n rows for each one."""

        def wide(table: Tensor) -> Tensor:
            return table[:, None].expand(-1, n, *table.shape[1:]).flatten(0, 1)

        return self._each(wide, wide)

    def with_rows(self, rows: Int64) -> _Decoder:
        """The same for these rows alone."""
        torch = require("torch", extra="torch")
        places = torch.from_numpy(rows).to(self.mask.device)
        if self.mask.shape[0] == 1 or self.mask.stride(0) == 0:  # one text, which all rows share
            return self._each(lambda table: table[places], lambda table: table[: len(rows)])
        return self._each(lambda table: table[places], lambda table: table[places])

    def _each(self, own: Callable[[Tensor], Tensor], read: Callable[[Tensor], Tensor]) -> _Decoder:
        """The same after changes of what rows wrote, and of what they read."""
        caches = self.cache.self_attention_cache, self.cache.cross_attention_cache
        for cache, change in zip(caches, (own, read), strict=True):
            for layer in cache.layers:
                layer.keys, layer.values = change(layer.keys), change(layer.values)
        self.states.last_hidden_state = read(self.states.last_hidden_state)
        return replace(self, mask=read(self.mask))


def _drawn(best: Any, draws: Float64) -> Int64:  # noqa: ANN401 - what torch's topk gives
    """One of the words [..., k] for each draw [...], in proportion to exp(score)."""
    scores, words = (part.cpu().numpy() for part in (best.values, best.indices))
    ends = np.cumsum(np.exp(scores.astype(np.float64) - scores[..., :1]), axis=-1)
    place = (ends[..., :-1] <= draws[..., None] * ends[..., -1:]).sum(-1)
    drawn: Int64 = np.take_along_axis(words, place[..., None], -1)[..., 0].astype(np.int64)
    return drawn
