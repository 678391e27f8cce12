"""A key of a service: where it comes from, how it is sent, and how no message ever shows it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import quote

from weir.errors import ServiceError

__all__ = ["Key"]


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
        return " ".join(shown.split())

    def hint(self) -> str:
        """Where it comes from, or how to give one."""
        if self.variable is None:
            return "no key was sent: key='NAME' names the environment variable that holds one"
        return f"the key was taken from {self.variable}"
