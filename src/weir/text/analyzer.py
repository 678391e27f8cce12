"""Analyzers: what turns a text into the terms an index holds."""

from __future__ import annotations

import re
from dataclasses import dataclass

from weir.registry import Registry
from weir.errors import require

__all__ = ["Analyzer", "analyzers"]

_LUCENE_STOP = frozenset(
    "a an and are as at be but by for if in into is it no not of on or such that the their then there these they this to was will with".split()
)


@dataclass(frozen=True)
class Analyzer:
    """A named way to turn a text into terms."""

    name: str
    tokenizer: str = "uax29"
    stopwords: str | None = None
    stemmer: str | None = None

    def tokens(self, text: str) -> list[str]:
        """The terms of a text, in order, dropped words left out."""
        if self.tokenizer == "whitespace":
            return text.split()
        if self.tokenizer == "words":
            words = re.findall(r"(?u)\b\w\w+\b", text.lower())
        else:
            words = [w.lower() for w in re.findall(r"\w+(?:['’.]\w+)*", text)]
        words = [w[:-2] if w[-2:] in ("'s", "’s") else w for w in words]
        if self.stopwords:
            words = [w for w in words if w not in _LUCENE_STOP]
        if self.stemmer:
            words = require("Stemmer", extra="run").Stemmer(self.stemmer).stemWords(words)
        return list(words)


analyzers: Registry[Analyzer] = Registry("analyzer")
analyzers.add("lucene-english", Analyzer("lucene-english", "uax29", "lucene-english", "porter"))
analyzers.add("lucene-standard", Analyzer("lucene-standard", "uax29"))
analyzers.add("bm25s-english", Analyzer("bm25s-english", "words", "bm25s-english", "english"))
analyzers.add("whitespace", Analyzer("whitespace", "whitespace"))
