"""How vectors lie on disk: float32 as they are, or in fewer bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.errors import UnknownName

__all__ = ["CODECS", "Codec", "codec"]

Float32: TypeAlias = NDArray[np.float32]
Rows: TypeAlias = NDArray[np.uint8]


@dataclass(frozen=True)
class Codec:
    """A way to store vectors. width: bytes of a vector of d numbers; write, read: vectors to rows and back.

    Scores are always computed from what `read` gives, in full precision.
    """

    name: str
    width: Callable[[int], int]
    write: Callable[[Float32], Rows]
    read: Callable[[Rows, int], Float32]


def codec(name: str) -> Codec:
    """The codec of that name; raises UnknownName, suggesting the nearest."""
    if name not in CODECS:
        raise UnknownName("way to store vectors", str(name), CODECS)
    return CODECS[name]


def _bytes(values: NDArray[Any]) -> Rows:
    return np.ascontiguousarray(values).view(np.uint8).reshape(len(values), -1)


def _fp32_read(rows: Rows, d: int) -> Float32:
    return rows.view(np.float32) if rows.flags.c_contiguous else np.ascontiguousarray(rows).view(np.float32)


def _fp16_write(x: Float32) -> Rows:
    with np.errstate(over="ignore"):  # beyond its range a number becomes infinite, which the store refuses
        return _bytes(x.astype(np.float16))


def _bf16_write(x: Float32) -> Rows:
    bits = np.ascontiguousarray(x).view(np.uint32)
    return _bytes(
        ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    )  # to the nearest, ties to even


def _bf16_read(rows: Rows, d: int) -> Float32:
    return (np.ascontiguousarray(rows).view(np.uint16).astype(np.uint32) << 16).view(np.float32)


def _scaled(x: Float32, scale: Float32, codes: NDArray[Any]) -> Rows:
    return np.concatenate([_bytes(scale.astype(np.float32)[:, None]), _bytes(codes)], axis=1)


def _int8_write(x: Float32) -> Rows:
    scale = np.abs(x).max(axis=1) / np.float32(127)
    inverse = np.divide(1, scale, out=np.zeros_like(scale), where=scale > 0)
    return _scaled(x, scale, np.rint(np.clip(x * inverse[:, None], -127, 127)).astype(np.int8))


def _int8_read(rows: Rows, d: int) -> Float32:
    return rows[:, 4:].view(np.int8).astype(np.float32) * _scale(rows)


def _binary_write(x: Float32) -> Rows:
    scale = np.sqrt((x.astype(np.float64) ** 2).mean(axis=1))  # signs alone would lose the length
    return _scaled(x, scale.astype(np.float32), np.packbits(x > 0, axis=1))


def _binary_read(rows: Rows, d: int) -> Float32:
    signs = np.unpackbits(rows[:, 4:], axis=1, count=d).astype(np.float32)
    return (2 * signs - 1) * _scale(rows)


def _scale(rows: Rows) -> Float32:
    return np.ascontiguousarray(rows[:, :4]).view(np.float32)


CODECS = {
    c.name: c
    for c in (
        Codec("fp32", lambda d: 4 * d, _bytes, _fp32_read),
        Codec("fp16", lambda d: 2 * d, _fp16_write, lambda r, d: _halves(r)),
        Codec("bf16", lambda d: 2 * d, _bf16_write, _bf16_read),
        Codec("int8", lambda d: 4 + d, _int8_write, _int8_read),
        Codec("binary", lambda d: 4 + -(-d // 8), _binary_write, _binary_read),
    )
}


def _halves(rows: Rows) -> Float32:
    return np.ascontiguousarray(rows).view(np.float16).astype(np.float32)
