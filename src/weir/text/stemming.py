"""Stemmers: Snowball's through PyStemmer, and the Porter stemmer as Lucene has it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from weir.errors import BadValue, require

__all__ = ["LUCENE_PORTER", "SNOWBALL", "stem_all"]

LUCENE_PORTER = "lucene-porter"
# fmt: off
SNOWBALL = (
    "arabic", "armenian", "basque", "catalan", "czech", "danish", "dutch", "dutch_porter", "english",
    "esperanto", "estonian", "finnish", "french", "german", "greek", "hindi", "hungarian", "indonesian",
    "irish", "italian", "lithuanian", "nepali", "norwegian", "persian", "polish", "porter", "portuguese",
    "romanian", "russian", "serbian", "sesotho", "spanish", "swedish", "tamil", "turkish", "yiddish",
)
# fmt: on

# How a stem of Snowball's may end that Lucene's stemmer makes differently.
SUSPECT_ENDINGS = ("li", "gi", "yi", "cc", "hh", "jj", "kk", "qq", "vv", "ww", "xx", "yy")
# What may follow "...bl" and "...log" in a word that Porter's first step turns into "...bli" and "...logi".
FIRST_STEP_ENDINGS = frozenset(
    ("i", "is", "ies", "y", "ys", "ying", "yings", "iing", "iings", "yed", "yeds", "ied", "ieds")
)
NOT_UNDOUBLED_HERE = "aeiou" + "lsz" + "bdfgmnprt"  # vowels; what Porter leaves double; what Snowball sees to


def stem_all(stemmer: str, words: list[str]) -> list[str]:
    """The stem of each word, in order.

    Raises MissingExtra without the `run` extra, BadValue for a stemmer the installed PyStemmer does not have.
    """
    if stemmer == LUCENE_PORTER:
        return _lucene_porter(words)
    return list(_snowball(stemmer)(words))


def _snowball(language: str) -> Callable[[list[str]], list[str]]:
    library = require("Stemmer", extra="run")
    try:
        made = library.Stemmer(language, 0)  # every word comes once: PyStemmer's own cache would only cost
    except KeyError:
        message = f"the installed PyStemmer {library.version()} has no stemmer '{language}'; a newer one may"
        raise BadValue(message) from None
    stem: Callable[[list[str]], list[str]] = made.stemWords
    return stem


def _lucene_porter(words: list[str]) -> list[str]:
    """Porter as Lucene has it: his own later program, where Snowball's "porter" follows his paper more closely.

    Four differences, each repaired after the fact, since Snowball leaves what it does not know as it is: words of
    one or two UTF-16 units stay; after -ed and -ing any double consonant but ll, ss, zz loses one; "bli" -> "ble"
    where Snowball has "abli" -> "able"; "logi" -> "log".
    """
    stem = _snowball("porter")
    stems = list(stem(words))
    for i in _suspects(stems):
        stems[i] = _repaired(words[i], stems[i], stem)
    return stems


def _suspects(stems: list[str]) -> list[int]:
    """Which stems are short, end in SUSPECT_ENDINGS, or end beyond ASCII."""
    raw = np.frombuffer("\n".join([*stems, ""]).encode(), np.uint8)
    ends = np.flatnonzero(raw == ord("\n"))
    last, before = (raw.take(ends - back, mode="wrap") for back in (1, 2))  # of a short one, anything
    endings = np.array([int.from_bytes(s.encode(), "big") for s in SUSPECT_ENDINGS], np.uint16)
    listed = np.zeros(1 << 16, np.bool_)
    listed[endings] = True
    short = np.diff(ends, prepend=-1) <= 3
    found: list[int] = np.flatnonzero(
        short | (last > ord("z")) | listed[before * np.uint16(256) + last]
    ).tolist()
    return found


def _repaired(word: str, stemmed: str, stem: Callable[[list[str]], list[str]]) -> str:
    if len(word) + sum(letter > "\uffff" for letter in word) < 3:
        return word
    undoubled = _undoubled(word)
    if undoubled:
        return _lucene_porter([undoubled])[0]
    if word[len(stemmed) - 1 :] not in FIRST_STEP_ENDINGS:
        return stemmed  # the ending appeared in a later step
    if stemmed.endswith("logi") and _has_measure(stemmed[:-4]):
        return stemmed[:-1]
    if stemmed.endswith("bli") and _has_measure(stemmed[:-3]):
        return stem([stemmed[:-1] + "e"])[0]
    return stemmed


def _undoubled(word: str) -> str:
    """A word without -ed(s), -ing(s) and one of the two consonants before it; "" if that is not its form."""
    for suffix in ("ed", "eds", "ing", "ings"):
        if word.endswith(suffix):
            base = word.removesuffix(suffix)
            last = base[-1:]
            double = last == base[-2:-1] and last not in NOT_UNDOUBLED_HERE and last <= "\uffff"
            vowels = _vowels(base)
            return base[:-1] if double and any(vowels) and not vowels[-1] else ""
    return ""


def _vowels(part: str) -> list[bool]:
    """Which letters are vowels to Porter; y is one after a consonant."""
    vowels: list[bool] = []
    for letter in part:
        vowels.append(letter in "aeiou" or (letter == "y" and bool(vowels) and not vowels[-1]))
    return vowels


def _has_measure(part: str) -> bool:
    """Whether Porter's m is above 0: a vowel somewhere before a consonant."""
    vowels = _vowels(part)
    return any(vowels) and not all(vowels[vowels.index(True) :])
