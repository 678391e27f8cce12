"""Turn texts into token numbers with a model's tokenizer."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.core.strings import Int32, Int64, offsets
from weir.errors import BadValue, StoreError, require
from weir.models.checkpoints import read_object

# ----------
# transformers without its messages, bars and warnings.


@contextmanager
def quiet(transformers: Any) -> Iterator[None]:  # noqa: ANN401 - the module
    """Silence transformers' messages, progress bars and warnings within the block."""
    logging = transformers.utils.logging
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


# ----------
# Tokens of many texts as one array and offsets, without padding.


Text: TypeAlias = str | tuple[str, str]
"""A text, or a pair for a cross-encoder."""

Bool: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Tokens:
    """Texts' tokens without padding: text i has ids[ptr[i]:ptr[i + 1]]."""

    ids: Int32
    """int32[tokens]."""
    ptr: Int64
    """int64[n + 1] from 0."""
    segment: NDArray[np.uint8] | None = None
    """uint8[tokens], 1 in the second text of a pair; None without pairs."""
    visible: Int64 | None = None
    """int64[n]: number of leading tokens of each text that are attended to; None for all."""

    def __len__(self) -> int:
        return len(self.ptr) - 1

    @property
    def lengths(self) -> Int64:
        return np.diff(self.ptr)

    @property
    def positions(self) -> Int64:
        """Each token's position in its text, from 0, int64[tokens]."""
        return np.arange(self.ptr[-1]) - np.repeat(self.ptr[:-1], self.lengths)

    def take(self, codes: NDArray[np.integer]) -> Tokens:
        lengths = self.lengths[codes]
        ptr = offsets(lengths)
        where = np.repeat(self.ptr[:-1][codes] - ptr[:-1], lengths) + np.arange(ptr[-1])
        segment = None if self.segment is None else self.segment[where]
        return Tokens(self.ids[where], ptr, segment, None if self.visible is None else self.visible[codes])

    def mask(self) -> Bool:
        """Return bool[n, longest]: True where a text has a token."""
        longest = int(self.lengths.max(initial=0))
        return np.asarray(np.arange(longest) < self.lengths[:, None])

    def attended(self) -> Bool:
        """Return bool[n, longest]: True at tokens that attention sees."""
        mask = self.mask()
        return mask if self.visible is None else mask & (np.arange(mask.shape[1]) < self.visible[:, None])

    def padded(self, values: NDArray[np.integer], fill: int) -> Int64:
        """Return `values`, one per token, as a table padded with `fill`, int64[n, longest]."""
        mask = self.mask()
        table = np.full(mask.shape, fill, np.int64)
        table[mask] = values
        return table


def packed(rows: Sequence[Sequence[int]]) -> Tokens:
    """Return lists of token numbers, one per text, as Tokens."""
    ptr = offsets(np.fromiter(map(len, rows), np.int64, len(rows)))
    return Tokens(np.fromiter(chain.from_iterable(rows), np.int32, int(ptr[-1])), ptr)


@dataclass(frozen=True, eq=False)
class ModelTokenizer:
    """A thread-safe tokenizer that adds special tokens and truncates to `limit`."""

    inner: Any
    limit: int
    lower: bool = False
    pad: int = 0
    """Number of the padding token."""

    def __call__(self, texts: Sequence[Text]) -> Tokens:
        """Return the tokens of texts, truncated and with special tokens."""
        inputs = list(texts)
        if self.lower:
            inputs = [t.lower() if isinstance(t, str) else (t[0].lower(), t[1].lower()) for t in texts]
        encodings = self.inner.encode_batch_fast(inputs)
        tokens = packed([e.ids for e in encodings])
        if not any(isinstance(t, tuple) for t in texts):
            return tokens
        segment = np.concatenate([np.array(e.type_ids, np.uint8) for e in encodings])
        return Tokens(tokens.ids, tokens.ptr, segment)

    def without_special(self, texts: Sequence[Text]) -> Tokens:
        """Return the tokens of texts, truncated and without special tokens."""
        inputs = [str(t).lower() for t in texts] if self.lower else list(texts)
        return packed([e.ids for e in self.inner.encode_batch_fast(inputs, add_special_tokens=False)])

    def extents(self, texts: Sequence[str]) -> tuple[Int64, Int64]:
        """Return, for each text, (tokens before truncation, characters within the limit), int64[n] each."""
        inputs = [t.lower() for t in texts] if self.lower else list(texts)
        whole = type(self.inner).from_str(self.inner.to_str())
        whole.no_truncation()
        tokens = np.array([len(e) for e in whole.encode_batch_fast(inputs)], np.int64)
        characters = np.array([len(t) for t in inputs], np.int64)
        cut = np.flatnonzero(tokens > self.limit)
        for at, encoding in zip(cut, self.inner.encode_batch([inputs[i] for i in cut]), strict=True):
            characters[at] = max((stop for _, stop in encoding.offsets), default=0)
        return tokens, characters

    def with_limit(self, limit: int) -> ModelTokenizer:
        """Return the tokenizer with another limit of tokens."""
        inner = type(self.inner).from_str(self.inner.to_str())
        inner.enable_truncation(limit)
        return ModelTokenizer(inner, limit, self.lower, self.pad)


PADDING = ("[PAD]", "<pad>")
"""Usual names of an undeclared padding token."""
VOCABULARIES = ("vocab.txt", "vocab.json", "*.model", "*.tiktoken")
"""Files of which transformers needs one; without any it would make an empty tokenizer."""


def declared_tokenizer(folder: Path) -> Any:  # noqa: ANN401 - a tokenizer of transformers
    """Return a checkpoint's tokenizer, made by transformers; raises StoreError for unreadable files."""
    transformers = require("transformers", extra="torch")
    try:
        # Code that a checkpoint brings is never run, and nobody is asked whether it may be.
        with quiet(transformers):
            return transformers.AutoTokenizer.from_pretrained(
                str(folder), local_files_only=True, trust_remote_code=False
            )
    except Exception as error:  # noqa: BLE001 - the library raises errors of many families for a damaged file
        reason = " ".join(str(error).split())[:200]
        raise StoreError(f"{folder}: the tokenizer cannot be read: {reason}") from None


def load_tokenizer(folder: Path, limit: int, special: bool = True) -> ModelTokenizer:
    """Return a checkpoint's tokenizer, from `tokenizer.json` or its vocabulary.

    limit: maximum tokens of a text.
    special: add special tokens.

    Raises StoreError for an unreadable tokenizer, BadValue for one without a fast form.
    """
    if (folder / "tokenizer.json").exists():
        tokenizers = require("tokenizers", extra="neural")
        try:
            inner = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        except Exception as error:  # noqa: BLE001 - the library raises plain Exception for a damaged file
            raise StoreError(f"{folder / 'tokenizer.json'}: the tokenizer cannot be read: {error}") from None
    else:
        if not any(found for name in VOCABULARIES for found in folder.glob(name)):
            raise StoreError(
                f"{folder}: no tokenizer there; expected tokenizer.json, or a file of its vocabulary"
            )
        if any(folder.glob("*.model")):
            for name in ("sentencepiece", "google.protobuf"):
                require(name, extra="torch")
        inner = getattr(declared_tokenizer(folder), "backend_tokenizer", None)
        if inner is None:
            raise BadValue(f"{folder}: its tokenizer has no fast form, which Weir needs")
        inner = type(inner).from_str(inner.to_str())
    if not special:
        inner = type(inner).from_str(json.dumps(json.loads(inner.to_str()) | {"post_processor": None}))
    padding = inner.padding or {}
    pad = next((i for i in map(inner.token_to_id, PADDING) if i is not None), 0)
    inner.no_padding()
    inner.enable_truncation(limit)
    # sentence-transformers' settings may ask for lower case before the tokenizer.
    settings = [read_object(path) for path in sorted(folder.glob("sentence_*_config.json"))]
    lower = any(facts.get("do_lower_case") is True for facts in settings)
    return ModelTokenizer(inner, limit, lower, padding.get("pad_id", pad))
