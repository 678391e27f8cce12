"""Judgments by words: a document counts where it holds them, as characters or as whole tokens."""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache

from weir.errors import BadValue
from weir.plugins.importing.found import ByWords, Item, ItemKey, Judgment

__all__ = ["MatchCounts", "Matcher", "as_judgments"]

LARGEST_SEARCH = 10**12
"""Characters looked at in all, words times texts: some ten minutes."""


@dataclass
class MatchCounts:
    """What came of the judgments by words of a file. asked, answered: queries; documents: those that hold the words of
    any; tokens: how many of `asked` were matched by whole tokens."""

    asked: int = 0
    answered: int = 0
    tokens: int = 0
    documents: set[str] = field(default_factory=set)

    def sentence(self) -> str:
        """What was matched, how, and with what success."""
        by_characters = "as characters, whatever their case and white space"
        by_tokens = "as whole tokens of the text, after Unicode's NFD and in lower case, as DPR does"
        ways = [by_characters] * (self.asked > self.tokens) + [by_tokens] * (self.tokens > 0)
        return (
            f"words: {len(self.documents):,} documents hold those of {self.answered:,} of {self.asked:,} judgments by "
            f"words, {' or '.join(ways)}"
        )


class Matcher:
    """Looks words up in documents.

    As characters, case and runs of white space do not count. As tokens, the words are a run of whole tokens of the
    text, title aside: letters, digits and marks in a row or any other character alone, after NFD and in lower case
    (Karpukhin et al. 2020, whose code takes the answers of DPR's topics so). documents: id -> (title, text); how: "all"
    or "any" of several words, "" where the user did not say.
    """

    def __init__(self, documents: Mapping[str, tuple[str, str]], how: str) -> None:
        self._documents, self._how = documents, how
        self._folded: dict[tuple[str, bool], list[tuple[str, str]]] = {}

    def refuse_endless(self, items: Iterable[Item]) -> None:
        """Raise BadValue for more words and texts than can be looked through."""
        words = sum(len(item.words) for item in items if isinstance(item, ByWords))
        held = sum(len(title) + len(text) for title, text in self._documents.values())
        if words * held > LARGEST_SEARCH:
            raise BadValue(
                f"{words:,} words to be looked for in {held:,} characters of documents, which takes hours; give fewer "
                "queries at a time, or a smaller --corpus"
            )

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
        fold = _tokens if by.tokens else _characters
        words = [folded for word in by.words if (folded := fold(word)).strip()]
        if not words:
            raise ValueError(f"no word in '{by.field}'")
        names = [
            name for name, text in self._texts(by.within, by.tokens) if test(word in text for word in words)
        ]
        if not names:
            raise ValueError(f"no document holds the words in '{by.field}' ({by.words[0][:40]})")
        return names

    def _texts(self, within: str, tokens: bool) -> list[tuple[str, str]]:
        if (within, tokens) not in self._folded:
            chosen: dict[str, Callable[[str, str, str], str]] = {
                "id": lambda name, _title, _text: name,
                "title": lambda _name, title, _text: title,
                "text": lambda _name, title, text: text if tokens else f"{title} {text}",
            }
            part, fold = chosen[within], _tokens if tokens else _characters
            self._folded[within, tokens] = [
                (name, fold(part(name, *held))) for name, held in self._documents.items()
            ]
        return self._folded[within, tokens]


def _characters(text: str) -> str:
    return " ".join(text.casefold().split())


def _tokens(text: str) -> str:
    """The tokens with a blank before and behind each, so that a run of them is a part of the text."""
    given = unicodedata.normalize("NFD", text)
    found = (token for token in _token_pattern().findall(given) if not _is_blank(token))
    return f" {' '.join(found)} ".lower()


@cache
def _token_pattern() -> re.Pattern[str]:
    """Letters, digits and marks in a row, or one other character; `\\w` alone has no marks."""
    marks = [chr(c) for c in range(sys.maxunicode + 1) if unicodedata.category(chr(c))[0] == "M"]
    return re.compile(rf"(?:[^\W_]|[{''.join(marks)}])+|\S")


def _is_blank(token: str) -> bool:
    """Whether it is a separator or a control character, which are no tokens."""
    return len(token) == 1 and unicodedata.category(token)[0] in "ZC"


def as_judgments(
    items: Iterable[Item], match: Matcher, refuse: Callable[[str, str], None], counts: MatchCounts
) -> Iterator[Judgment]:
    """The judgments among items, those by words resolved and counted; refuse: told place and reason where they cannot
    be."""
    for item in items:
        if isinstance(item, Judgment):
            yield item
        elif isinstance(item, ByWords):
            counts.asked += 1
            counts.tokens += item.tokens
            try:
                names = match.found(item)
            except ValueError as error:
                refuse(item.where, str(error))
                continue
            counts.answered += 1
            counts.documents.update(names)
            for name in names:
                yield Judgment(item.query, ItemKey(name), item.grade, item.where)
