"""The tokenizer of T5 checkpoints: from tokenizer.json, or from the SentencePiece model that the older ones bring."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from weir.encode.tokens import Tokenizer, load_tokenizer
from weir.errors import BadValue, StoreError, require

__all__ = ["load_pieces"]

FILE = "spiece.model"
UNIGRAM, UNKNOWN, CONTROL = 1, 2, 3
END = "</s>"

Field = tuple[int, int | bytes]


def load_pieces(folder: Path, limit: int) -> Tokenizer:
    """The tokenizer of a T5 checkpoint, which puts </s> behind each text and cuts at `limit`.

    spiece.model is read here, as transformers would read it with two more packages. Raises StoreError for one that
    cannot be read, BadValue for a model that is not Unigram.
    """
    path = folder / FILE
    if (folder / "tokenizer.json").exists() or not path.exists():
        return load_tokenizer(folder, limit)
    try:
        inner = _made(path.read_bytes(), path)
    except (OSError, ValueError, IndexError, KeyError, struct.error) as error:
        raise StoreError(f"{path}: cannot be read ({error}); fetch the checkpoint again") from None
    inner.enable_truncation(limit)
    return Tokenizer(inner, limit)


def _made(data: bytes, path: Path) -> Any:  # noqa: ANN401 - a tokenizers.Tokenizer
    """A SentencePiece model (sentencepiece_model.proto) as the tokenizer that does the same."""
    tk = require("tokenizers", extra="neural")
    pieces: list[tuple[str, float]] = []
    special, kinds, charsmap, unknown = list[str](), 1, b"", 0
    for number, value in _fields(data):
        if number == 1:
            facts = dict(_fields(_message(value)))
            name, kind = _message(facts[1]).decode("utf-8"), facts.get(3, 1)
            if kind == UNKNOWN:
                unknown = len(pieces)
            special += [name] if kind in (UNKNOWN, CONTROL) else []
            pieces.append((name, struct.unpack("<f", _message(facts.get(2, bytes(4))))[0]))
        elif number == 2:
            kinds = next((int(v) for n, v in _fields(_message(value)) if n == 3), UNIGRAM)
        elif number == 3:
            charsmap = next((_message(v) for n, v in _fields(_message(value)) if n == 2), b"")
    if kinds != UNIGRAM:
        raise BadValue(f"{path}: a SentencePiece model of the kind {kinds}; expected Unigram, as T5's")
    if END not in dict(pieces):
        raise ValueError(f"no piece {END}")
    inner = tk.Tokenizer(tk.models.Unigram(pieces, unk_id=unknown, byte_fallback=False))
    blanks = [tk.normalizers.Strip(left=False), tk.normalizers.Replace(tk.Regex(" {2,}"), "▁")]
    mapped = [tk.normalizers.Precompiled(charsmap)] if charsmap else []
    inner.normalizer = tk.normalizers.Sequence([*mapped, *blanks])
    inner.pre_tokenizer = tk.pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
    inner.decoder = tk.decoders.Metaspace(replacement="▁", prepend_scheme="always")
    inner.add_special_tokens(special)
    end = (END, inner.token_to_id(END))
    inner.post_processor = tk.processors.TemplateProcessing(
        single=f"$A {END}", pair=f"$A {END} $B {END}", special_tokens=[end]
    )
    return inner


def _fields(data: bytes) -> Iterator[Field]:
    """The fields of a protobuf message: (number, a whole number, or the bytes of anything else)."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(data, at)
            yield key >> 3, value
            continue
        size = {1: 8, 5: 4}.get(kind, 0)
        if kind == 2:
            size, at = _varint(data, at)
        elif not size:
            raise ValueError(f"a field of the unknown kind {kind}")
        if at + size > len(data):
            raise ValueError("it ends too early")
        yield key >> 3, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """(number, where it ends): seven bits a byte, the lowest first."""
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def _message(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ValueError("a number where bytes were expected")
    return value
