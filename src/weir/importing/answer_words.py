"""Judgments by words: a document counts where it holds them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from weir.importing.found import ByWords, Item, ItemKey, Judgment

__all__ = ["Matcher", "as_judgments"]


class Matcher:
    """Looks words up in documents: case and runs of white space do not count.

    documents: id -> (title, text); how: "all" or "any" of several words, "" where the user did not say.
    """

    def __init__(self, documents: Mapping[str, tuple[str, str]], how: str) -> None:
        self._documents, self._how = documents, how
        self._folded: dict[str, list[tuple[str, str]]] = {}

    def found(self, by: ByWords) -> list[str]:
        """The identifiers of documents that hold the words; raises ValueError, with the reason, where that is open."""
        if not self._documents:
            raise ValueError(
                f"judged by words ({by.field}), which takes documents: give them, or --corpus FOLDER"
            )
        how = by.how or self._how
        if len(by.words) > 1 and not how:
            raise ValueError(f"{len(by.words)} words in '{by.field}': say --words all or --words any")
        test = any if how == "any" else all
        words = [_folded(word) for word in by.words]
        names = [name for name, text in self._texts(by.within) if test(word in text for word in words)]
        if not names:
            raise ValueError(f"no document holds the words in '{by.field}' ({by.words[0][:40]})")
        return names

    def _texts(self, within: str) -> list[tuple[str, str]]:
        if within not in self._folded:
            chosen: dict[str, Callable[[str, str, str], str]] = {
                "id": lambda name, _title, _text: name,
                "title": lambda _name, title, _text: title,
                "text": lambda _name, title, text: f"{title} {text}",
            }
            part = chosen[within]
            self._folded[within] = [
                (name, _folded(part(name, *held))) for name, held in self._documents.items()
            ]
        return self._folded[within]


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


def as_judgments(
    items: Iterable[Item], match: Matcher, refuse: Callable[[str, str], None]
) -> Iterator[Judgment]:
    """The judgments among items, those by words resolved; refuse: told place and reason where they cannot be."""
    for item in items:
        if isinstance(item, Judgment):
            yield item
        elif isinstance(item, ByWords):
            try:
                names = match.found(item)
            except ValueError as error:
                refuse(item.where, str(error))
                continue
            for name in names:
                yield Judgment(item.query, ItemKey(name), item.grade, item.where)
