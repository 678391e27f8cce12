"""A key of a service: where it comes from, how it is sent, and how nothing that a server says ever shows it.

A server may send a key back: in an error, in an answer, as the name of its model, as an identifier. What is masked is
the key as it stands, with its characters written as JSON, an address or HTML may write them, in hexadecimal digits and
in base 64, alone or within a longer text; and, of one of more than PIECE_CHARACTERS, every piece of so many of its
characters as it stands. What cannot be seen: a key in another encoding, encrypted, turned around, or cut into shorter
pieces; and one of fewer than KEY_CHARACTERS within an answer, where it may be a word like any other.
"""

from __future__ import annotations

import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from urllib.parse import quote

from weir.errors import ServiceError

KEY_CHARACTERS = 8
"""Of a key that is looked for in answers."""
PIECE_CHARACTERS = 16
"""Of a piece of a key that is masked wherever it stands."""
_SEED = PIECE_CHARACTERS // 2  # of a piece that long, one such part begins at a multiple of its length
_MASK = b"***"


@dataclass(frozen=True)
class Key:
    """A key and the environment variable it comes from; both None where none is sent."""

    variable: str | None
    value: str | None = field(repr=False)

    def checked(self) -> str:
        """The key; raises ServiceError where it is missing or cannot be one."""
        if not self.value:
            raise ServiceError(f"this needs a key: put it into the environment variable {self.variable}")
        if not re.fullmatch(r"[\x21-\x7e]+", self.value):
            raise ServiceError(f"the key in {self.variable} holds characters that no key has")
        return self.value

    def header(self) -> dict[str, str]:
        """The header that carries it as a bearer, none where there is no key; raises ServiceError as `checked`."""
        return {} if self.variable is None else {"Authorization": f"Bearer {self.checked()}"}

    def masked(self, text: object) -> str:
        """What a server said, without the key, in one line."""
        shown = str(text)
        for written in {self.value or "", quote(self.value or "", safe="")} - {""}:
            shown = shown.replace(written, "***")
        shown = self.masked_answer(shown.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")
        return " ".join(shown.split())

    def masked_answer(self, data: bytes) -> bytes:
        """The bytes of an answer without the key, whatever is made of them."""
        if self.value is None or len(self.value) < KEY_CHARACTERS:
            return data
        secrets = [
            self.value,
            *(part for part in self.value.split(":", 1)[1:] if len(part) >= KEY_CHARACTERS),
        ]
        for secret in secrets:  # of user:password the password alone, too
            if any(sign in data for sign in (b"\\", b"%", b"&#")):
                data = _escaped(secret).sub(_MASK, data)
            for form in _forms(secret):
                data = data.replace(form, _MASK)
            if len(secret) > PIECE_CHARACTERS:
                data = _without_pieces(data, secret.encode("utf-8"))
        return data

    def hint(self) -> str:
        """Where it comes from, or how to give one."""
        if self.variable is None:
            return "no key was sent: key='NAME' names the environment variable that holds one"
        return f"the key was taken from {self.variable}"


@lru_cache(maxsize=64)
def _forms(secret: str) -> tuple[bytes, ...]:
    """The ways in which a secret may be written as it stands."""
    raw = secret.encode("utf-8")
    found = [
        raw,
        quote(secret, safe="").encode("ascii"),
        raw.hex().encode("ascii"),
        raw.hex().upper().encode("ascii"),
    ]
    return tuple(dict.fromkeys([*found, *_base64_forms(raw)]))


def _base64_forms(raw: bytes) -> Iterator[bytes]:
    """What stands in base 64 for a secret wherever it begins, without the letters that others share."""
    for before in range(3):
        for encode in (b64encode, urlsafe_b64encode):
            shared = -(-before * 8 // 6)
            whole = encode(b"\0" * before + raw).rstrip(b"=")
            yield whole[shared : len(whole) - ((before + len(raw)) % 3 != 0)]


@lru_cache(maxsize=64)
def _escaped(secret: str) -> re.Pattern[bytes]:
    """A secret, each character as it is or as JSON, an address or HTML may write it."""
    each = []
    for letter in secret:
        code, plain = ord(letter), re.escape(letter)
        ways = (plain, rf"\\u{code:04x}", rf"\\{plain}", f"%{code:02x}", f"&#0*{code};", f"&#x0*{code:x};")
        each.append(f"(?:{plain}|(?i:{'|'.join(ways[1:])}))")
    return re.compile("".join(each).encode("ascii"))


def _without_pieces(data: bytes, secret: bytes) -> bytes:
    """The data without the longer pieces of a secret."""
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
