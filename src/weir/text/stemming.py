"""Stemmers: Snowball's through PyStemmer, and the Porter stemmer as Lucene has it."""

from __future__ import annotations

from collections.abc import Callable

from weir.errors import BadValue, require

__all__ = ["LUCENE_PORTER", "SNOWBALL", "stem_all"]

LUCENE_PORTER = "lucene-porter"
SNOWBALL = (
    "arabic armenian basque catalan czech danish dutch dutch_porter english esperanto estonian finnish french german"
    " greek hindi hungarian indonesian irish italian lithuanian nepali norwegian persian polish porter portuguese"
    " romanian russian serbian sesotho spanish swedish tamil turkish yiddish"
).split()

# What may follow "...bl" and "...log" in a word that Porter's first step turns into "...bli" and "...logi".
SECOND_STEP = ("bli", "ogi")
FIRST_STEP_ENDINGS = frozenset("i is ies y ys ying yings iing iings yed yeds ied ieds".split())


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
    """Porter's own program rather than his paper: "bli" -> "ble" for "abli" -> "able", and "logi" -> "log".

    Lucene also leaves words of one or two UTF-16 units alone. Both rules belong to his second step, and Snowball's "porter" leaves such a word as the first step left it, so the
    rest of the work can be done afterwards.
    """
    stem = _snowball("porter")
    stems = list(stem(words))
    for i, stemmed in enumerate(stems):
        if len(stemmed) < 3:
            if len(words[i]) < 3 and _units(words[i]) < 3:
                stems[i] = words[i]
        elif stemmed[-3:] in SECOND_STEP:
            stems[i] = _second_step(words[i], stemmed, stem)
    return stems


def _units(word: str) -> int:
    """UTF-16 units, Java's measure of length."""
    return len(word) + sum(letter > "\uffff" for letter in word)


def _second_step(word: str, stemmed: str, stem: Callable[[list[str]], list[str]]) -> str:
    if word[len(stemmed) - 1 :] not in FIRST_STEP_ENDINGS:
        return stemmed  # the ending appeared in a later step
    if stemmed.endswith("logi") and _has_measure(stemmed[:-4]):
        return stemmed[:-1]
    if stemmed.endswith("bli") and _has_measure(stemmed[:-3]):
        return stem([stemmed[:-1] + "e"])[0]
    return stemmed


def _has_measure(part: str) -> bool:
    """Whether Porter's m is above 0: a vowel somewhere before a consonant."""
    vowel = seen = False
    for i, letter in enumerate(part):
        vowel = letter in "aeiou" or (letter == "y" and i > 0 and not vowel)
        if seen and not vowel:
            return True
        seen = seen or vowel
    return False
