"""Mask secrets in texts from other programs."""

from __future__ import annotations

import re
from base64 import b64encode, urlsafe_b64encode
from functools import lru_cache
from urllib.parse import quote

from weir.settings import secret_values

KEY_CHARACTERS = 8
"""Least length of a key that is searched for."""
PIECE_CHARACTERS = 12
"""Least length of a part of a key that is masked."""
_SEED = PIECE_CHARACTERS // 2  # any piece holds a part of this length that begins at a multiple of it
_MASK = b"***"


def without_secret(data: bytes, secret: str) -> bytes:
    """Return bytes with a secret masked in every form that a server may repeat; secrets under 8 characters are not
    masked.
    """
    if len(secret) < KEY_CHARACTERS:
        return data
    # Of user:password the password alone, too.
    wholes = [secret, *(part for part in secret.split(":", 1)[1:] if len(part) >= KEY_CHARACTERS)]
    for whole in [*wholes, *(one[::-1] for one in wholes)]:
        if any(sign in data for sign in (b"\\", b"%", b"&#")):
            data = _escaped(whole).sub(_MASK, data)
        for form in _forms(whole):
            data = data.replace(form, _MASK)
        if len(whole) > PIECE_CHARACTERS:
            data = _without_pieces(data, whole.encode("utf-8"))
    return data


def without_secrets(text: str) -> str:
    """Return a text with the values of secret environment variables masked."""
    data = text.encode("utf-8", "surrogatepass")
    for secret in secret_values():
        data = without_secret(data, secret)
    return data.decode("utf-8", "surrogatepass")


@lru_cache(maxsize=64)
def _forms(secret: str) -> tuple[bytes, ...]:
    raw = secret.encode("utf-8")
    digits = raw.hex().encode("ascii")
    forms = [raw, quote(secret, safe="").encode("ascii"), digits, digits.upper()]
    for before in range(3):
        for encode in (b64encode, urlsafe_b64encode):
            shared = -(-before * 8 // 6)  # letters that depend on the bytes before
            whole = encode(b"\0" * before + raw).rstrip(b"=")
            forms.append(whole[shared : len(whole) - ((before + len(raw)) % 3 != 0)])
    return tuple(dict.fromkeys(forms))


@lru_cache(maxsize=64)
def _escaped(secret: str) -> re.Pattern[bytes]:
    each = []
    for letter in secret:
        code, plain = ord(letter), re.escape(letter)
        ways = (plain, rf"\\u{code:04x}", rf"\\{plain}", f"%{code:02x}", f"&#0*{code};", f"&#x0*{code:x};")
        each.append(f"(?:{plain}|(?i:{'|'.join(ways[1:])}))")
    return re.compile("".join(each).encode("ascii"))


def _without_pieces(data: bytes, secret: bytes) -> bytes:
    for begin in range(0, len(secret) - _SEED + 1, _SEED):
        seed, at = secret[begin : begin + _SEED], 0
        while (at := data.find(seed, at)) >= 0:
            start, stop = at, at + _SEED
            while start and begin - (at - start) > 0 and data[start - 1] == secret[begin - (at - start) - 1]:
                start -= 1
            while (
                stop < len(data)
                and begin + stop - at < len(secret)
                and data[stop] == secret[begin + stop - at]
            ):
                stop += 1
            if stop - start >= PIECE_CHARACTERS:
                data, at = data[:start] + _MASK + data[stop:], start + len(_MASK)
            else:
                at += 1
    return data
