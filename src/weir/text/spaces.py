"""White space in UTF-8 as str.split sees it, for many texts at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from weir.core.strings import Bytes

__all__ = ["WHITE_SPACE", "spaces"]

WHITE_SPACE = (
    "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
"""The characters at which str.split() cuts."""

_ENCODED = [c.encode("utf-8") for c in WHITE_SPACE]
_ONE_BYTE = np.isin(np.arange(256), [c[0] for c in _ENCODED if len(c) == 1])
_FIRST_BYTES = np.isin(np.arange(256), [c[0] for c in _ENCODED if len(c) > 1])
_CHARACTERS_BY_WIDTH = {
    width: [int.from_bytes(c, "big") for c in _ENCODED if len(c) == width] for width in (2, 3)
}


def spaces(data: Bytes) -> NDArray[np.bool_]:
    """Which bytes of well-formed UTF-8, uint8[n], are part of white space."""
    found = _ONE_BYTE[data]
    leads = np.flatnonzero(_FIRST_BYTES[data])
    for width, characters in _CHARACTERS_BY_WIDTH.items():
        leads = leads[leads <= len(data) - width]
        value = np.zeros(len(leads), np.int64)
        for byte in range(width):
            value = value << 8 | data[leads + byte]
        at = leads[np.isin(value, characters)]
        for byte in range(width):
            found[at + byte] = True
    return found
