"""Recognise the language of texts, to check that an analyzer suits it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from string import ascii_lowercase

from weir.core.corpus import Corpus
from weir.core.rounding import percent
from weir.systems.lexical.analyzer import CJK_LETTERS, THAI_LETTERS, Analyzer, analyzers

SCRIPTS = {
    "cjk": CJK_LETTERS,
    "thai": THAI_LETTERS,
    "russian": "\u0400-\u052f",
    "arabic": "\u0600-\u077f\u08a0-\u08ff",
    "greek": "\u0370-\u03ff\u1f00-\u1fff",
    "hindi": "\u0900-\u097f",
    "armenian": "\u0531-\u058f",
    "tamil": "\u0b80-\u0bff",
    "another script": "\u0590-\u05ff\u0700-\u08ff\u0980-\u0b7f\u0c00-\u0dff\u0f00-\u0fff\u10a0-\u10ff\u1200-\u139f",
}
"""{language: letters of its script}; the language's analyzer suits most texts in the script."""
WORDS = {
    "english": "the of and to in is that for it with was are as this from by",
    "german": "der die und das ist nicht den von mit ein eine zu im auf für dem des sich werden sind",
    "french": "le la les des et est une du dans que pour qui sur pas au par sont ou",
    "spanish": "el la los las de que en un una por con para del es se como más",
    "italian": "il di che la è un una per non con del della sono gli dei nel le",
    "portuguese": "que de do da em um para com não uma os no na por dos das mais ao",
    "catalan": "el la els les de que en un una per amb és del no dels ha",
    "dutch": "de het een van en is dat niet op te zijn met voor die aan wordt",
    "swedish": "och att det som en är på för av med den till inte har ett kan",
    "norwegian": "og det er på til som en av for at med ikke har den et kan",
    "danish": "og det er at en til af på for som med den ikke har de et",
    "finnish": "ja on ei se että oli mutta kuin hän ovat tai joka myös ole",
    "polish": "w na z nie się do że jest to jak od po za oraz przez są",
    "czech": "na se je že do ve jako pro by ale jsou od byl při",
    "romanian": "și în de la cu nu este din care un pentru mai sunt sau",
    "hungarian": "az és hogy nem is egy volt meg ez csak de mint vagy van",
    "turkish": "ve bir bu için de da ile çok olarak daha ne gibi olan ya",
    "indonesian": "yang dan di dengan untuk dari ini itu pada tidak dalam adalah ke akan",
}
"""Common words of languages with a Snowball stemmer."""
MOST_LETTERS = 0.5
"""Share of letters in a script above which the script decides."""
FEWEST_WORDS = 30
"""Number of words below which no language is recognised."""
COMMON_SHARE = 0.08
"""Smallest share of a language's common words in texts of the language."""
TIMES_MORE = 1.5
"""Ratio to English common words that another language needs."""
SAMPLED, PIECES, TEXT_LETTERS = 30, 10, 400
"""Texts read, places in the collection they come from, and characters of each."""
_LETTERS = {name: re.compile(f"[{letters}]") for name, letters in SCRIPTS.items()}
_COMMON = {name: frozenset(words.split()) for name, words in WORDS.items()}
_BEYOND_ASCII = re.compile("[^\x00-\x7f]+")
_ACCENTED = re.compile("[\u00df-\u024f\u1e00-\u1eff]")
_WORD = re.compile(r"[^\W\d_]+")


@dataclass(frozen=True)
class Language:
    """A recognised language; languages of one script may be confused."""

    name: str
    """Such as "german", "cjk" or "another script"."""
    evidence: str
    """The reason, in words."""
    analyzer: str
    """An analyzer that suits it."""

    @property
    def written_name(self) -> str:
        """Name of the language in a sentence, such as "German"."""
        titles = {"cjk": "Chinese, Japanese or Korean", "another script": "another script"}
        return titles.get(self.name, self.name.title())

    def suits(self, analyzer: Analyzer) -> bool:
        """Return True if an analyzer is for this language or for any; a language cut into bigrams needs its
        bigram analyzer or a user's."""
        if self.analyzer.endswith("-bigrams"):  # one's own functions are trusted
            return analyzer.cut is not None and (analyzer.name == self.analyzer or analyzer.own)
        return analyzer.language in ("", self.name)


def language_of(texts: Iterable[str]) -> Language | None:
    """Return the language of texts, by script or common words; None if neither decides."""
    joined = " ".join(texts).lower()
    beyond = "".join(_BEYOND_ASCII.findall(joined))
    by_script = {name: len(pattern.findall(beyond)) for name, pattern in _LETTERS.items()}
    foreign = sum(by_script.values())
    letters = foreign + len(_ACCENTED.findall(beyond)) + sum(map(joined.count, ascii_lowercase))
    script = max(by_script, key=lambda name: by_script[name])
    if letters and by_script[script] > MOST_LETTERS * letters:
        if script == "arabic" and re.search("[\u067e\u0686\u0698\u06a9\u06af\u06cc]", joined):
            script = (
                "persian" if not re.search("[\u0679\u0688\u0691\u06ba\u06d2]", joined) else "another script"
            )
        if script == "russian" and re.search("[\u0456\u0457\u0454\u0491\u045e]", joined):
            script = "another script"  # Ukrainian, Belarusian
        analyzer = f"{script}-bigrams" if script in ("cjk", "thai") else f"snowball-{script}"
        analyzer = analyzer if analyzer in analyzers else "lucene-standard"
        return Language(script, f"{percent(foreign / letters, 0)} of the letters are not Latin", analyzer)
    words = Counter(_WORD.findall(joined))
    total = words.total()
    counts = {name: sum(words[word] for word in common) for name, common in _COMMON.items()}
    best = max(counts, key=lambda name: counts[name])
    if total < FEWEST_WORDS or counts[best] < COMMON_SHARE * total:
        return None
    if best != "english" and counts[best] < TIMES_MORE * counts["english"]:
        return None
    evidence = f"{percent(counts[best] / total, 0)} of the words are common {best.title()} ones"
    return Language(best, evidence, f"snowball-{best}")


def language_of_corpus(corpus: Corpus) -> Language | None:
    """Return the language of a sample from all over a collection; None as for `language_of`."""
    step = max(1, len(corpus) // PIECES)
    texts: list[str] = []
    for start in range(0, len(corpus), step):
        views = corpus.view("title text", start, min(start + SAMPLED // PIECES, len(corpus)))
        texts += [text[:TEXT_LETTERS] for text in views.tolist()]
    return language_of(texts)
