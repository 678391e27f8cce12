"""A 64-bit hash of many byte strings at once: the lookup key of every identifier table."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["MIX", "MIX_TAIL", "SEED", "hash_strings", "load_words"]

# Odd constants. A word is xor-ed in, multiplied, folded: strings of one length up to 8 bytes never collide.
SEED = 0x9E3779B97F4A7C15
MIX = 0xD6E8FEB86659FD93
MIX_TAIL = 0xFF51AFD7ED558CCD

_BLOCK_STRINGS = 1 << 15  # strings hashed together: the intermediate arrays stay in the cache
_MASKS = np.array([(1 << (8 * n)) - 1 for n in range(8)] + [(1 << 64) - 1], np.uint64)


def _windows(data: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """View the eight bytes starting at each position as one little-endian word; needs 8 bytes of data."""
    data = np.ascontiguousarray(data)
    return np.ndarray((len(data) - 7,), dtype="<u8", buffer=data, strides=(1,))


def load_words(
    data: NDArray[np.uint8], start: NDArray[np.int64], length: NDArray[np.int64]
) -> NDArray[np.uint64]:
    """Read up to eight bytes at each start as a little-endian word, zero beyond the length.

    start, length: int64[n]; bytes beyond `length` (or beyond eight) do not enter the word. Returns uint64[n].
    """
    if len(data) < 8:
        data = np.concatenate([data, np.zeros(8, np.uint8)])
    windows = _windows(data)
    at = np.minimum(start, len(windows) - 1)
    word = windows[at]
    # A string near the end of the data is read from an earlier position and shifted down.
    late = np.flatnonzero(at != start)
    if len(late):
        shift = np.minimum(start[late] - at[late], 8).astype(np.uint64) * np.uint64(8)
        word[late] = np.where(shift < 64, word[late] >> np.minimum(shift, np.uint64(63)), np.uint64(0))
    word &= _MASKS[np.clip(length, 0, 8)]
    return word


def _hash_block(
    data: NDArray[np.uint8], start: NDArray[np.int64], length: NDArray[np.int64]
) -> NDArray[np.uint64]:
    state = np.full(len(start), SEED, np.uint64)
    live: NDArray[np.int64] | None = None  # None: every string still has bytes left
    done = 0
    longest = int(length.max(initial=0))
    while done < longest:
        if live is None and int(length.min()) <= done:
            live = np.flatnonzero(length > done)
        elif live is not None:
            live = live[length[live] > done]
        if live is None:
            state ^= load_words(data, start + done, length - done)
            state *= np.uint64(MIX)
            state ^= state >> np.uint64(32)
        else:
            part = state[live] ^ load_words(data, start[live] + done, length[live] - done)
            part *= np.uint64(MIX)
            part ^= part >> np.uint64(32)
            state[live] = part
        done += 8
    state ^= length.astype(np.uint64)
    state *= np.uint64(MIX_TAIL)
    state ^= state >> np.uint64(32)
    return state


def hash_strings(
    data: NDArray[np.uint8], start: NDArray[np.int64], length: NDArray[np.int64]
) -> NDArray[np.uint64]:
    """Hash the byte strings data[start[i] : start[i] + length[i]] to 64 bits each.

    data: uint8[bytes]; start, length: int64[n], within the data. Returns uint64[n], the same on every machine
    and equal to the compiled `weir.kernels.parse.fields.hash_bytes`. Two strings may share a hash: compare their
    bytes before calling them equal.
    """
    start = np.asarray(start, np.int64)
    length = np.asarray(length, np.int64)
    out = np.empty(len(start), np.uint64)
    for at in range(0, len(start), _BLOCK_STRINGS):
        stop = at + _BLOCK_STRINGS
        out[at:stop] = _hash_block(data, start[at:stop], length[at:stop])
    return out
