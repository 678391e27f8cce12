"""What has to be said beside a result."""

from __future__ import annotations

from dataclasses import dataclass, replace

__all__ = ["Note"]


@dataclass(frozen=True)
class Note:
    """A sentence beside a result, and what explains it.

    text: the sentence, on one line; details: what `--notes` adds behind it, "" for nothing.
    """

    text: str
    details: str = ""

    def __str__(self) -> str:
        return f"note: {self.text}"

    @property
    def whole(self) -> str:
        """The sentence with its details."""
        return f"{self}; {self.details}" if self.details else str(self)

    def about(self, name: str) -> Note:
        """The same, said of a system or a collection by its name."""
        return replace(self, text=f"{name}: {self.text}")
