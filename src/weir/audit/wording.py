"""Numbers in sentences: one document is, two documents are."""

from __future__ import annotations

__all__ = ["counted", "one_or_more", "part_of", "times"]


def one_or_more(count: int, one: str, more: str) -> str:
    """The form of a word that goes with a count: `one` with 1, `more` with any other."""
    return one if count == 1 else more


def counted(count: int, one: str, more: str = "") -> str:
    """A count and its noun; more: the plural, by default the noun with an s."""
    return f"{count:,} {one_or_more(count, one, more or one + 's')}"


def times(count: int) -> str:
    """How often: once, 2 times."""
    return one_or_more(count, "once", f"{count:,} times")


def part_of(count: int, total: int, nouns: str, one: str, more: str) -> str:
    """How many of all, and the verb: 1 of 5 documents is, 2 of 5 documents are."""
    return f"{count:,} of {total:,} {nouns} {one_or_more(count, one, more)}"
