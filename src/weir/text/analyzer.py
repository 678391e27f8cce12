"""Analyzers: what turns a text into the terms an index holds, named by what they reproduce."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from weir.algorithms import algorithm
from weir.registry import Registry
from weir.text.segment import tokenizer, tokenizer_tables
from weir.text.stemming import LUCENE_PORTER, SNOWBALL, stem_all

__all__ = ["Analyzer", "analyzers", "stopword_list"]

APOSTROPHES = ("'", "\u2019", "\uff07")
POSSESSIVE = re.compile(f"[{''.join(APOSTROPHES)}][sS]$", re.MULTILINE)


@dataclass(frozen=True)
class Analyzer:
    """A named way to turn a text into terms; the fields are its steps, in the order they are taken.

    lower_text: lowercase the whole text first, as Python's str.lower does it.
    tokenizer: how the text is cut into words (see `weir.text.segment`).
    possessive: drop a final 's, typewriter, typographic or fullwidth apostrophe.
    lower_words: lowercase each word code point by code point, as Java's Character.toLowerCase.
    stopwords: name of the list of words that are dropped (see `stopword_list`), or None.
    stemmer: "lucene-porter", a Snowball language, or None.
    reproduces: the tool, and the class in it, whose terms these are.
    """

    name: str
    reproduces: str
    tokenizer: str
    lower_text: bool = False
    possessive: bool = False
    lower_words: bool = False
    stopwords: str | None = None
    stemmer: str | None = None

    def tokens(self, text: str) -> list[str]:
        """The terms of a text in order, dropped words left out; the plain path that the compiled one must equal."""
        words = tokenizer(self.tokenizer).words(text.lower() if self.lower_text else text)
        return [term for term in self.normalise(words) if term]

    def normalise(self, words: list[str]) -> list[str]:
        """The term of each word that the tokenizer cut, "" for one that is dropped.

        What a word becomes never depends on its neighbours, so each distinct word need come here only once.
        """
        return self.normalise_lines("\n".join(words)) if words else []

    def normalise_lines(self, words: str) -> list[str]:
        """As `normalise`, of words that stand one a line: no word holds a line end, and one pass takes them all."""
        if self.possessive and any(a in words for a in APOSTROPHES):
            words = POSSESSIVE.sub("", words)
        if self.lower_words:
            words = _lower_code_points(words)
        elif self.lower_text:  # done already on the plain path; the compiled one leaves it to here
            words = words.lower()
        found = words.split("\n")
        if self.stopwords is not None:
            dropped = stopword_list(self.stopwords)
            found = ["" if w in dropped else w for w in found]
        return found if self.stemmer is None else stem_all(self.stemmer, found)

    def describe(self) -> dict[str, object]:
        """Everything that can change a term, step by step: contents of tables, versions, the algorithm's number."""
        says: dict[str, object] = {"analyzer": self.name, "algorithm": algorithm("analysis")}
        if self.lower_text:
            says["lowercase"] = "str.lower of the whole text"
        says["tokenizer"] = tokenizer_tables(self.tokenizer)
        if self.possessive:
            says["possessive"] = "final 's dropped"
        if self.lower_words:
            says["lowercase"] = "each code point by itself"
        says["stopwords"] = "none" if self.stopwords is None else self._stopwords_text()
        says["stemmer"] = "none" if self.stemmer is None else self._stemmer_text()
        # str.lower, str.split and the classes of `re` are those of the running Python.
        says["unicode"] = f"{unicodedata.unidata_version} (Python's tables)"
        return says

    def _stopwords_text(self) -> str:
        return f"{self.stopwords}: {' '.join(sorted(stopword_list(self.stopwords or '')))}"

    def _stemmer_text(self) -> str:
        from importlib.metadata import PackageNotFoundError, version

        try:
            return f"{self.stemmer}, PyStemmer {version('PyStemmer')}"
        except PackageNotFoundError:
            return f"{self.stemmer}, PyStemmer not installed"


def _lower_code_points(text: str) -> str:
    """Lowercase without context: str.lower sees a final sigma and takes U+0130 for two characters."""
    return text.lower() if text.isascii() else text.replace("Σ", "σ").replace("İ", "i").lower()


@cache
def stopword_list(name: str) -> frozenset[str]:
    """The words of a stopword list kept as data."""
    text = files("weir.text").joinpath("data", f"stopwords-{name}.txt").read_text(encoding="utf-8")
    return frozenset(line for line in text.split("\n") if line and not line.startswith("#"))


analyzers: Registry[Analyzer] = Registry("analyzer")


def _register(analyzer: Analyzer) -> None:
    analyzers.add(analyzer.name, analyzer)


_register(
    Analyzer(
        "lucene-english",
        "Lucene 9 EnglishAnalyzer, the default of Anserini and Pyserini",
        "uax29",
        possessive=True,
        lower_words=True,
        stopwords="english-33",
        stemmer=LUCENE_PORTER,
    )
)
_register(Analyzer("lucene-standard", "Lucene 9 StandardAnalyzer", "uax29", lower_words=True))
_register(
    Analyzer(
        "bm25s-english",
        "bm25s 0.3 tokenize with stopwords='en' and PyStemmer's english",
        "words",
        lower_text=True,
        stopwords="english-33",
        stemmer="english",
    )
)
_register(Analyzer("whitespace", "Python's str.split", "whitespace"))
for _language in SNOWBALL:
    _register(
        Analyzer(
            f"snowball-{_language}",
            f"UAX #29 words with the Snowball stemmer for {_language}",
            "uax29",
            lower_words=True,
            stemmer=_language,
        )
    )
