"""Texts to term numbers."""

from __future__ import annotations

import numpy as np

from weir.core.strings import Int32, Int64, Strings
from weir.text.analyzer import Analyzer

__all__ = ["TermTable"]


class TermTable:
    """Turns texts into term numbers; each distinct word is normalised and stemmed once."""

    def __init__(self, analyzer: Analyzer, terms: Strings | None = None) -> None:
        self.analyzer = analyzer
        self._numbers = {t: i for i, t in enumerate(terms.tolist())} if terms is not None else {}

    def add(self, texts: Strings) -> tuple[Int64, Int32]:
        """ptr int64[n + 1], term int32[]: term numbers of each text in order; new terms get the next numbers.

        Dropped words (stopwords) are left out.
        """
        return self._run(texts, grow=True)

    def lookup(self, texts: Strings) -> tuple[Int64, Int32]:
        """As `add` without growing: a term that is not in the vocabulary is -1."""
        return self._run(texts, grow=False)

    def terms(self) -> Strings:
        """Term number -> term."""
        return Strings.of(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    def _run(self, texts: Strings, grow: bool) -> tuple[Int64, Int32]:
        ptr, out, numbers = [0], [], self._numbers
        for text in texts.tolist():
            for t in self.analyzer.tokens(text):
                out.append(numbers.setdefault(t, len(numbers)) if grow else numbers.get(t, -1))
            ptr.append(len(out))
        return np.array(ptr, np.int64), np.array(out, np.int32)
