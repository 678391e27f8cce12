"""Find the documents that texts without an identifier quote."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from weir.plugins.importing.items import ItemKey

_WORDS, _CHARACTERS = 3, 20  # of names and labels; the latter where there are no blanks
_HOP = re.compile(r"<\d+-hop>\s+")


def folded(text: str) -> str:
    """Return a text in folded case, with one blank for each run of white space and none around it."""
    return " ".join(text.casefold().split())


def _is_passage(text: str) -> bool:
    words = len(text.split())
    return words > _WORDS or (words == 1 and len(text) > _CHARACTERS)


def without_hop(text: str) -> str:
    """Return a reference text without the mark, such as <1-hop>, by which Ragas numbers the hops of a question."""
    return _HOP.sub("", text, count=1) if _HOP.match(text) else text


@dataclass
class Quotation:
    """The documents that a text quotes."""

    text: str
    """The text, folded."""
    holders: list[ItemKey] = field(default_factory=list)
    """The documents that hold the text whole."""
    _parts: list[tuple[int, int, ItemKey]] = field(default_factory=list)

    def sources(self) -> list[ItemKey]:
        """Return the documents that hold the text; without one, the documents of which it consists, in its order.

        [] if a part is from no document, or from several equal ones.
        """
        if self.holders:
            return self.holders
        end, found, last = 0, list[ItemKey](), (0, 0)
        for start, stop, key in sorted(self._parts, key=lambda part: (part[0], -part[1])):
            if (start, stop) == last or self.text[end:start].strip():
                return []
            if stop > end:  # else within the others
                found.append(key)
                end, last = stop, (start, stop)
        return [] if self.text[end:].strip() else found


def quotations(
    texts: Sequence[str], documents: Iterable[Sequence[tuple[ItemKey, str, str]]]
) -> dict[str, Quotation]:
    """Return {text: its quotation}; case and white space do not count.

    A text of up to three words, such as a label, is held by no document: others may have its words by chance.

    documents: batches of (key, title, text).
    """
    found = {text: Quotation(folded(text)) for text in texts}
    quotes = list(found.values())
    needles = [quote.text for quote in quotes]
    passages = [needle if _is_passage(needle) else "" for needle in needles]
    for batch in documents:
        keys = [key for key, _, _ in batch]
        for n, at, _ in _occurrences(passages, [folded(f"{title} {text}") for _, title, text in batch]):
            quotes[n].holders.append(keys[at])
        parts = [folded(text) for _, _, text in batch]
        for n, at, start in _occurrences(parts, needles):
            quotes[at]._parts.append((start, start + len(parts[n]), keys[n]))
    return found


def _occurrences(needles: Sequence[str], texts: Sequence[str]) -> Iterator[tuple[int, int, int]]:
    """Yield (needle, text, position) of the first occurrence of each needle in each folded text."""
    joined = "\n".join(texts)  # no folded text has a line end
    starts = [0, *accumulate(len(text) + 1 for text in texts)]
    for n, needle in enumerate(needles):
        at = joined.find(needle) if needle else -1
        while at >= 0:
            text = bisect_right(starts, at) - 1
            yield n, text, at - starts[text]
            at = joined.find(needle, starts[text + 1])
