"""T5 and mT5: the re-ranker `monot5`, and docT5query's writer of questions."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from weir.algorithms import algorithm
from weir.argument_types import checked
from weir.core.strings import Float32, Float64, Int64
from weir.errors import BadValue, require
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
)
from weir.models.engine import Declared, declare, prepare
from weir.models.hardware import ComputePlace
from weir.models.tokens import ModelTokenizer, Text, Tokens, load_tokenizer, packed
from weir.plugins.encoders.torch_engine import Tensor, tensors_as_array, to_device
from weir.plugins.encoders.transformers_engine import inputs, load_model
from weir.systems.protocol import RERANKERS
from weir.systems.rerank.scorers import PairReranker

# ----------
# T5 and mT5 through transformers.


DTYPES = ("fp32", "bf16")
"""fp16 is missing, as T5's states exceed its range."""


@dataclass(frozen=True, eq=False)
class T5:
    """A T5 model on a device, with the tokens that start and end an answer."""

    module: Any
    place: ComputePlace
    start: int
    end: int

    def encoded(self, batch: Tokens) -> tuple[Any, Tensor]:
        """Return (encoder output, attention mask int64[texts, longest])."""
        torch = require("torch", extra="torch")
        device = torch.device(self.place.device)
        padded = inputs(batch, 0, segments=False)
        tables = {name: to_device(torch, table, device) for name, table in padded.items()}
        return self.module.get_encoder()(**tables), tables["attention_mask"]

    def first_words(self, batch: Tokens, words: list[int]) -> Tensor:
        """Return the scores of `words` (token numbers) as the answer's first token, float32[texts, words]."""
        torch = require("torch", extra="torch")
        with torch.inference_mode():
            states, mask = self.encoded(batch)
            starts = torch.full((len(batch), 1), self.start, device=mask.device)
            output = self.module(encoder_outputs=states, attention_mask=mask, decoder_input_ids=starts)
            return output.logits[:, 0, words].float()


def _declared_t5(model: str, dtype: str, device: str) -> tuple[Checkpoint, Declared]:
    checkpoint = open_checkpoint(model)
    writes = checkpoint.trained.endswith("ForConditionalGeneration")
    if checkpoint.architecture not in ("t5", "mt5") or not writes:
        kind = checkpoint.trained or checkpoint.architecture or "model of an unknown kind"
        raise BadValue(
            f"'{model}' is a {kind}; expected a T5 or mT5 that writes (T5ForConditionalGeneration)"
        )
    return checkpoint, declare(checkpoint, "auto", dtype, device, own=False)


def load_t5(checkpoint: Checkpoint, place: ComputePlace) -> T5:
    """Return a T5 in memory, in fp32 or bf16; raises BadValue for another dtype, StoreError for missing
    weights.
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
"""Checkpoints trained with other words for no and yes. Source: castorini/pygaggle, rerank/transformer.py."""
USUAL = ("▁false", "▁true")


@dataclass(frozen=True)
class MonoT5:
    """A T5 trained to answer true or false, as a scorer of pairs; raises BadValue for settings out of range.

    It reads 'Query: {query} Document: {document} Relevant:'. A score is log(p(true) / (p(true) + p(false))).
    """

    model: str = "monot5"
    max_length: int = MAX_TOKENS
    """Tokens of a pair; the document is cut first, then the query, never "Relevant:"."""
    dtype: str = "fp32"
    """"fp32" or "bf16"."""
    token_false: str | None = None
    """With `token_true` the trained words; None takes the known ones of the checkpoint, else "▁false" and "▁true"."""
    token_true: str | None = None
    batch_tokens: int = 0
    """Tokens of a batch; 0 takes the device's default."""

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
        return model_arguments(self, self.model)

    @property
    def words(self) -> tuple[str, str]:
        """The answer words whose scores are compared: (for "not relevant", for "relevant")."""
        if self.token_false is not None and self.token_true is not None:
            return self.token_false, self.token_true
        card = find_card(self.model)
        return WORDS.get((card.hub if card is not None else self.model).lower(), USUAL)

    def describe(self, device: str = "auto") -> dict[str, object]:
        checkpoint, declared = _declared_t5(self.model, self.dtype, device)
        return {
            "encoding": algorithm("encoding"),
            "revision": checkpoint_fingerprint(checkpoint),
            "architecture": checkpoint.architecture,
            "prompt": f"{HEAD} {{query}} {MIDDLE} {{document}} {TAIL}",
            "max_length": self.max_length,
            "score": f"log p({self.words[1]}) among {' and '.join(self.words)}",
            "dtype": self.dtype,
            "engine": declared.label,
        }

    def fetch(self) -> None:
        fetch(self.model)

    def load(self, device: str = "auto") -> LoadedMonoT5:
        """Return the model loaded on a device, downloaded if missing.

        Raises DownloadError, StoreError for damaged files, BadValue for an unsupported checkpoint or a
        vocabulary without an answer word.
        """
        self.fetch()
        checkpoint, declared = _declared_t5(self.model, self.dtype, device)
        place = declared.place
        inner = load_tokenizer(checkpoint.folder, self.max_length).inner
        answers = [inner.token_to_id(word) for word in self.words]
        for word, number in zip(self.words, answers, strict=True):
            if number is None:
                raise BadValue(
                    f"the vocabulary of '{self.model}' has no '{word}'; give the words it was taught as token_false "
                    "and token_true"
                )
        engine = load_t5(checkpoint, place)
        prompts = _Prompts.of(inner, self.max_length, engine.end)
        return LoadedMonoT5(
            self, engine, prompts, answers, self.batch_tokens or RANKER_BATCH_TOKENS[place.kind]
        )


@dataclass(frozen=True, eq=False)
class LoadedMonoT5:
    """A monoT5 on a device; `answers` are the tokens for "not relevant" and "relevant"."""

    encoder: MonoT5
    engine: T5
    prompts: _Prompts
    answers: list[int]
    batch_tokens: int
    batch_independent: bool = False

    @property
    def device(self) -> str:
        return self.engine.place.device

    def scores(self, pairs: Iterable[Text], done: Callable[[int], None] | None = None) -> Iterator[Float32]:
        plan = BatchPlan(self.batch_tokens, padded=True)
        torch = require("torch", extra="torch")

        def run(batch: Tokens) -> Tensor:
            words = self.engine.first_words(batch, self.answers)
            # Not log(softmax): this tells apart the very likely ones too, which that rounds to 0.
            return torch.nn.functional.logsigmoid(words[:, 1] - words[:, 0])

        yield from results(pairs, self.prompts, run, gather_rows(tensors_as_array), plan, done)


@dataclass(frozen=True, eq=False)
class _Prompts:
    """A converter of pairs to tokens of 'Query: ... Document: ... Relevant:', cut to `limit` before the last
    word.
    """

    inner: Any
    limit: int
    tail: list[int]

    @staticmethod
    def of(inner: Any, limit: int, end: int) -> _Prompts:  # noqa: ANN401 - a tokenizers.Tokenizer
        inner.no_truncation()
        return _Prompts(inner, limit, [*inner.encode(TAIL, add_special_tokens=False).ids, end])

    def __call__(self, pairs: Sequence[Text]) -> Tokens:
        rendered = [f"{HEAD} {pair[0]} {MIDDLE} {pair[1]}" for pair in pairs]
        room = self.limit - len(self.tail)
        encodings = self.inner.encode_batch_fast(rendered, add_special_tokens=False)
        return packed([[*encoding.ids[:room], *self.tail] for encoding in encodings])


# ----------
# docT5query: questions that a text answers, drawn at random with a fixed seed.


WRITER_BATCH_TOKENS = {"cpu": 1, "cuda": 8192}
"""Tokens of a batch; on a CPU one text fills it with its questions."""
WINDOW_TEXTS = {"cpu": 16, "cuda": 256}
"""Texts whose questions are returned together."""


@dataclass(frozen=True)
class QuestionWriter:
    """Settings of a T5 that writes questions about texts, drawn by text and seed alone; on a GPU rounding may
    change a draw.

    Raises BadValue for an unsuitable model or setting.
    """

    model: str = "doc2query"
    n: int = 40
    """Questions for each text."""
    top_k: int = 10
    """Each word is drawn from the k likeliest."""
    seed: int = 0
    max_length: int = 512
    """Tokens of a text."""
    max_words: int = 64
    """Tokens of a question."""
    dtype: str = "fp32"
    """"fp32" or "bf16"."""
    batch_tokens: int = 0
    """Tokens of a batch; 0 takes the device's default."""

    def __post_init__(self) -> None:
        check_model(self.model, "t5", "and no T5 such as doc2query")
        if self.dtype not in DTYPES:
            raise BadValue(f"dtype is {self.dtype!r}; expected {', '.join(DTYPES)}")
        check_least(self, {"n": 1, "top_k": 1, "seed": 0, "max_length": 2, "max_words": 1, "batch_tokens": 0})

    def describe(self, device: str = "auto") -> dict[str, object]:
        checkpoint, declared = _declared_t5(self.model, self.dtype, device)
        names = ("n", "top_k", "seed", "max_length", "max_words", "dtype")
        return {name: getattr(self, name) for name in names} | {
            "questions": algorithm("questions"),
            "revision": checkpoint_fingerprint(checkpoint),
            "architecture": checkpoint.architecture,
            "engine": declared.label,
        }

    def fetch(self) -> None:
        fetch(self.model)

    def load(self, device: str = "auto") -> LoadedWriter:
        self.fetch()
        checkpoint, declared = _declared_t5(self.model, self.dtype, device)
        place = declared.place
        tokenizer = load_tokenizer(checkpoint.folder, self.max_length)
        budget = self.batch_tokens or WRITER_BATCH_TOKENS[place.kind]
        return LoadedWriter(self, load_t5(checkpoint, place), tokenizer, budget)


@dataclass(frozen=True, eq=False)
class LoadedWriter:
    """A T5 that writes questions, loaded on a device."""

    writer: QuestionWriter
    engine: T5
    tokenizer: ModelTokenizer
    batch_tokens: int

    def questions(
        self, texts: Iterable[Text], done: Callable[[int], None] | None = None
    ) -> Iterator[list[list[str]]]:
        """Yield, for some texts at a time in order, each text's list of questions.

        done: called with the number of finished texts.
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
    """The state of a T5 while it writes: a row for each text, later for each question."""

    model: T5
    states: Any
    """Encoder output; shared by all rows of a single text, never copied."""
    mask: Tensor
    cache: Any
    """transformers' keys and values."""

    @staticmethod
    def of(model: T5, batch: Tokens) -> _Decoder:
        library = require("transformers", extra="torch")
        cache = library.EncoderDecoderCache(library.DynamicCache(), library.DynamicCache())
        return _Decoder(model, *model.encoded(batch), cache)

    def step(self, last: Int64) -> Tensor:
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
        def wide(table: Tensor) -> Tensor:
            return table[:, None].expand(-1, n, *table.shape[1:]).flatten(0, 1)

        return self._each(wide, wide)

    def with_rows(self, rows: Int64) -> _Decoder:
        torch = require("torch", extra="torch")
        places = torch.from_numpy(rows).to(self.mask.device)
        if self.mask.shape[0] == 1 or self.mask.stride(0) == 0:  # one text, which all rows share
            return self._each(lambda table: table[places], lambda table: table[: len(rows)])
        return self._each(lambda table: table[places], lambda table: table[places])

    def _each(self, own: Callable[[Tensor], Tensor], read: Callable[[Tensor], Tensor]) -> _Decoder:
        caches = self.cache.self_attention_cache, self.cache.cross_attention_cache
        for cache, change in zip(caches, (own, read), strict=True):
            for layer in cache.layers:
                layer.keys, layer.values = change(layer.keys), change(layer.values)
        self.states.last_hidden_state = read(self.states.last_hidden_state)
        return replace(self, mask=read(self.mask))


def _drawn(best: Any, draws: Float64) -> Int64:  # noqa: ANN401 - what torch's topk gives
    scores, words = (part.cpu().numpy() for part in (best.values, best.indices))
    ends = np.cumsum(np.exp(scores.astype(np.float64) - scores[..., :1]), axis=-1)
    place = (ends[..., :-1] <= draws[..., None] * ends[..., -1:]).sum(-1)
    drawn: Int64 = np.take_along_axis(words, place[..., None], -1)[..., 0].astype(np.int64)
    return drawn


# ----------
# monoT5 as a re-ranker.


@RERANKERS.register("monot5")
@checked
def monot5(
    model: str = "monot5",
    depth: int | None = None,
    max_length: int = MAX_TOKENS,
    dtype: str = "fp32",
    token_false: str | None = None,
    token_true: str | None = None,
    batch_tokens: int = 0,
) -> PairReranker:
    """Re-rank by a T5 that answers whether a document is relevant; a pair's score is stored and reused.

    A score is log(p(true) / (p(true) + p(false))). Raises BadValue for settings out of range.

    model: a name of `weir list models`, a name on the Hugging Face hub, or a folder.
    depth: documents re-ranked for each query, before the others in their order. None is 100, or all given
        candidates.
    max_length: most tokens of a pair. The document is cut first.
    dtype: fp32 or bf16.
    token_false, token_true: words that the checkpoint was trained to answer. None takes the usual ones.
    batch_tokens: tokens of a batch. 0 takes the device's default.

    Source: Nogueira et al. 2020.
    """
    if not isinstance(model, str):
        raise BadValue(f"monot5: model is {model!r}; expected a hub name or a folder")
    return PairReranker(
        "monot5", MonoT5(model, max_length, dtype, token_false, token_true, batch_tokens), depth
    )
