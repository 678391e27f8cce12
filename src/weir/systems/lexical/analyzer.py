"""Analyzers, which turn texts into the terms of an index."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from importlib.resources import files
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from weir.algorithms import algorithm
from weir.argument_types import checked
from weir.core.strings import Bytes
from weir.errors import BadValue, UnknownName, require
from weir.files.text_files import decoded, read_bytes
from weir.registry import Registry

# ----------
# White space in UTF-8, as str.split sees it.


WHITE_SPACE = (
    "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
"""The characters at which str.split() splits."""

_ENCODED = [c.encode("utf-8") for c in WHITE_SPACE]
_ONE_BYTE = np.isin(np.arange(256), [c[0] for c in _ENCODED if len(c) == 1])
_FIRST_BYTES = np.isin(np.arange(256), [c[0] for c in _ENCODED if len(c) > 1])
_CHARACTERS_BY_WIDTH = {
    width: [int.from_bytes(c, "big") for c in _ENCODED if len(c) == width] for width in (2, 3)
}


def spaces(data: Bytes) -> NDArray[np.bool_]:
    """Return bool[n]: True for each byte of UTF-8 white space, as str.split defines it."""
    white = _ONE_BYTE[data]
    leads = np.flatnonzero(_FIRST_BYTES[data])
    for width, characters in _CHARACTERS_BY_WIDTH.items():
        leads = leads[leads <= len(data) - width]
        value = np.zeros(len(leads), np.int64)
        for byte in range(width):
            value = value << 8 | data[leads + byte]
        at = leads[np.isin(value, characters)]
        for byte in range(width):
            white[at + byte] = True
    return white


# ----------
# Stemmers: Snowball through PyStemmer, and the Porter stemmer as Lucene has it.


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
    """Return the stem of each word.

    stemmer: LUCENE_PORTER, or a language of PyStemmer such as "english".

    Raises BadValue for another language, MissingExtra without PyStemmer.
    """
    if stemmer == LUCENE_PORTER:
        return _lucene_porter(words)
    return list(_snowball(stemmer)(words))


def _snowball(language: str) -> Callable[[list[str]], list[str]]:
    library = require("Stemmer", extra="run")
    try:
        # Every word comes once: PyStemmer's own cache would only cost.
        stem: Callable[[list[str]], list[str]] = library.Stemmer(language, 0).stemWords
    except KeyError:
        message = f"the installed PyStemmer {library.version()} has no stemmer '{language}'; a newer one may"
        raise BadValue(message) from None
    return stem


def _lucene_porter(words: list[str]) -> list[str]:
    # Snowball's "porter" follows his paper more closely. Four differences are repaired afterwards, since Snowball
    # leaves unknown endings: words of one or two UTF-16 units stay; after -ed and -ing any double consonant but ll,
    # ss, zz loses one; "bli" -> "ble" in place of "abli" -> "able"; "logi" -> "log".
    stem = _snowball("porter")
    stems = list(stem(words))
    raw = np.frombuffer("\n".join([*stems, ""]).encode(), np.uint8)
    ends = np.flatnonzero(raw == ord("\n"))
    last, before = (raw.take(ends - back, mode="wrap") for back in (1, 2))  # of a short one, anything
    endings = np.array([int.from_bytes(s.encode(), "big") for s in SUSPECT_ENDINGS], np.uint16)
    listed = np.zeros(1 << 16, np.bool_)
    listed[endings] = True
    short = np.diff(ends, prepend=-1) <= 3
    suspects: list[int] = np.flatnonzero(
        short | (last > ord("z")) | listed[before * np.uint16(256) + last]
    ).tolist()
    for i in suspects:
        stems[i] = _repaired(words[i], stems[i], stem)
    return stems


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
    for suffix in ("ed", "eds", "ing", "ings"):
        if word.endswith(suffix):
            base = word.removesuffix(suffix)
            last = base[-1:]
            double = last == base[-2:-1] and last not in NOT_UNDOUBLED_HERE and last <= "\uffff"
            vowels = _vowels(base)
            return base[:-1] if double and any(vowels) and not vowels[-1] else ""
    return ""


def _vowels(part: str) -> list[bool]:
    vowels: list[bool] = []
    for letter in part:
        vowels.append(letter in "aeiou" or (letter == "y" and bool(vowels) and not vowels[-1]))
    return vowels


def _has_measure(part: str) -> bool:
    vowels = _vowels(part)
    return any(vowels) and not all(vowels[vowels.index(True) :])


# ----------
# Tokenizers as automata over classes of characters: the longest match is the next word, and what begins no word is
# skipped. The compiled kernel and the plain Python path use the same tables.


NO_LIMIT = 2**31 - 1
LUCENE_LIMIT = 255
UAX29_TABLES = ("uax29-automaton.txt", "uax29-classes.txt")
CODE_POINTS = 0x110000
NEWLINE = 0x0A


@dataclass(frozen=True, eq=False)
class WordTokenizer:
    """A tokenizer as an automaton over classes of characters; the longest match is the next word."""

    classes: Bytes
    """uint8[0x110000]: class of each code point; class 0 is in no word."""
    table: NDArray[np.uint16]
    """uint16[states, classes]: next state; 0 is dead, 1 the start."""
    accept: NDArray[np.bool_]
    """bool[states]: True if a word may end in the state."""
    limit: int = NO_LIMIT
    """Longest word in UTF-16 units; longer ones are split."""

    def words(self, text: str) -> list[str]:
        """Return a text's words in order, as written."""
        return [text[a:b] for a, b in self.spans(text)]

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield (start, stop) of each word in code points, in order."""
        kinds = self.classes[[ord(c) for c in text]].tolist()
        table, accept = self.table.tolist(), self.accept.tolist()
        start = 0
        while start < len(text):
            state, at, end, units = 1, start, start, 0
            while at < len(text) and state:
                units += 1 + (text[at] > "\uffff")
                state = table[state][kinds[at]] if units <= self.limit else 0
                at += 1
                if accept[state]:
                    end = at
            if end > start:
                yield start, end
            start = max(end, start + 1)


TOKENIZERS = ("lines", "uax29", "whitespace", "words")


@cache
def tokenizer(name: str) -> WordTokenizer:
    """Return the tokenizer of a name in TOKENIZERS; raises UnknownName for another."""
    if name == "uax29":
        rows = [[int(x) for x in line.split()] for line in _lines(UAX29_TABLES[0])]
        states = np.array(rows, np.uint16)
        classes = np.zeros(CODE_POINTS, np.uint8)
        for line in _lines(UAX29_TABLES[1]):
            first, last, kind = line.split()
            classes[int(first, 16) : int(last, 16) + 1] = int(kind)
        # UAX #29 words and UTS #51 emoji of Unicode 12.1 as Lucene 9 cuts them, at most 255 UTF-16 units
        table, accept = np.ascontiguousarray(states[:, 1:]), states[:, 0].astype(np.bool_)
        return WordTokenizer(classes, table, accept, LUCENE_LIMIT)
    if name == "whitespace":
        return _runs(~_matching(r"\s+"), 1)  # as str.split cuts them
    if name == "words":
        return _runs(_matching(r"\w+"), 2)  # the regular expression (?u)\b\w\w+\b on lowercased text
    if name == "lines":
        return _runs(np.arange(CODE_POINTS) != NEWLINE, 1)
    raise UnknownName("tokenizer", name, TOKENIZERS)


@cache
def _tokenizer_tables(name: str) -> str:
    if name != "uax29":
        return name
    texts = [files("weir.systems.lexical").joinpath("data", table).read_bytes() for table in UAX29_TABLES]
    return f"{name}, tables {hashlib.blake2b(b''.join(texts), digest_size=8).hexdigest()}"


def _lines(name: str) -> list[str]:
    text = files("weir.systems.lexical").joinpath("data", name).read_text(encoding="utf-8")
    return [line for line in text.split("\n") if line and not line.startswith("#")]


def _runs(member: NDArray[np.bool_], at_least: int) -> WordTokenizer:
    states = at_least + 2
    table = np.zeros((states, 2), np.uint16)
    table[1:, 1] = np.minimum(np.arange(2, states + 1), states - 1)
    accept = np.zeros(states, np.bool_)
    accept[-1] = True
    return WordTokenizer(member.astype(np.uint8), table, accept)


def _matching(pattern: str) -> NDArray[np.bool_]:
    member = np.zeros(CODE_POINTS, np.bool_)
    codes = np.arange(0x40000, dtype=np.uint32)
    every = codes.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")
    for match in re.finditer(pattern, every):
        member[match.start() : match.end()] = True
    return member


# ----------
# Scripts that leave no space between words: overlapping pairs of characters.


CJK_LETTERS = (
    "\u1100-\u11ff\u2e80-\u2e99\u2e9b-\u2ef3\u2f00-\u2fd5\u3005\u3007\u3021-\u3029\u3031-\u3035\u3038-\u303b"
    "\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3131-\u318e\u31f0-\u31ff\u3400-\u4db5\u4e00-\u9fef"
    "\ua960-\ua97c\uac00-\ud7a3\ud7b0-\ud7c6\ud7cb-\ud7fb\uf900-\ufa6d\ufa70-\ufad9\uff66-\uff9d"
    "\U00020000-\U0002a6d6\U0002a700-\U0002b734\U0002b740-\U0002b81d\U0002b820-\U0002cea1\U0002ceb0-\U0002ebe0"
    "\U0002f800-\U0002fa1d"
)
"""Han, kana and Hangul, as a character class of `re`."""
THAI_LETTERS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u19e0-\u19ff\ua9e0-\ua9fe\uaa60-\uaa7f"
"""Thai, Lao, Burmese and Khmer, as a character class of `re`."""
_WIDE = re.compile("[\uff01-\uff5e\uff61-\uff9f]+")
_CJK = re.compile(f"(?:[{CJK_LETTERS}][\u0300-\u036f\u3099\u309a\ufe00-\ufe0f\uff9e\uff9f]*)+")
# What stands in no word; a full-width comma may stand between digits.
_CJK_BREAK = re.compile(
    "[\\s\u3000-\u3003\u3008-\u3011\u3014-\u301f\uff01\uff08\uff09\uff1f\u2026]+|(?<=[\u3041-\u3096\u30a1-\u30fa\u30fc-\u9fff])\uff0c"
)
_THAI = re.compile(f"[{THAI_LETTERS}]+")
# A letter with the signs above and below it, and letters stacked under it (Khmer, Burmese).
_CLUSTER = re.compile(
    ".[{0}]*(?:[\u1039\u17d2].[{0}]*)*".format(
        "\u0e30-\u0e3a\u0e45\u0e47-\u0e4e\u0eb0-\u0ebc\u0ec8-\u0ece\u102b-\u1038\u103a-\u103e\u1056-\u1059\u17b4-\u17d1\u17d3"
    )
)


def _pairs(units: list[str]) -> list[str]:
    return [a + b for a, b in pairwise(units)] or units


def cjk_bigrams(text: str) -> list[str]:
    """Return a text's words by Lucene's StandardTokenizer; Han, kana and Hangul become overlapping pairs,
    with normalised widths."""
    terms: list[str] = []
    for part in _CJK_BREAK.split(text):
        terms += _pairs([*_usual_width(part)]) if _CJK.fullmatch(part) else _cjk_words(part)
    return terms


def _cjk_words(text: str) -> list[str]:
    terms: list[str] = []
    units: list[str] = []
    last = 0
    for start, end in tokenizer("uax29").spans(text):
        word = _usual_width(text[start:end])
        cjk = _CJK.fullmatch(word) is not None
        if units and not (cjk and start == last):
            terms += _pairs(units)
            units = []
        if cjk:
            units += word
        else:
            terms.append(word)
        last = end
    return terms + _pairs(units)


def _usual_width(text: str) -> str:
    return _WIDE.sub(lambda match: unicodedata.normalize("NFKC", match[0]), text)


def thai_bigrams(text: str) -> list[str]:
    """Return a text's words by UAX #29; Thai, Lao, Khmer and Burmese words become overlapping pairs of letters."""
    terms: list[str] = []
    for word in tokenizer("uax29").words(text):
        terms += _pairs(_CLUSTER.findall(word)) if _THAI.fullmatch(word) else [word]
    return terms


# ----------
# Analyzers, named by what they reproduce.


APOSTROPHES = ("'", "\u2019", "\uff07")
POSSESSIVE = re.compile(f"[{''.join(APOSTROPHES)}][sS]$", re.MULTILINE)


OWN_VERSION_PREFIX = "own, version "
_installed_version = cache(metadata.version)  # which takes a millisecond


@dataclass(frozen=True)
class Analyzer:
    """A named way to turn a text into terms, with steps in the order of the fields."""

    name: str
    reproduces: str
    """Tool and class that makes the same terms."""
    tokenizer: str
    """One of TOKENIZERS."""
    lower_text: bool = False
    """Lowercase the whole text first, like str.lower."""
    possessive: bool = False
    """Drop a final 's with a typewriter, typographic or full-width apostrophe."""
    lower_words: bool = False
    """Lowercase each code point alone, like Java's Character.toLowerCase."""
    stopwords: str | None = None
    """Name of a `stopword_list`, whose words are dropped."""
    stemmer: str | None = None
    """"lucene-porter" or a Snowball language (both need PyStemmer), or None."""
    cut: Callable[[str], list[str]] | None = None
    """Splits the text instead of the tokenizer."""
    cut_version: str = ""
    """Identifies `cut` in keys."""
    dropped: frozenset[str] = frozenset()
    """Words dropped besides the list's."""

    @property
    def language(self) -> str:
        """Snowball's name of the analyzer's language; "" for any."""
        if self.stemmer in (LUCENE_PORTER, "porter") or self.stopwords == "english-33":
            return "english"
        return (self.stemmer or "").removesuffix("_porter")

    @property
    def own(self) -> bool:
        """True if a user registered it with `add_analyzer`."""
        return self.cut_version.startswith(OWN_VERSION_PREFIX)

    def tokens(self, text: str) -> list[str]:
        """Return a text's terms in order, without stop words."""
        return [term for term in self.normalise(self.words(text)) if term]

    def words(self, text: str) -> list[str]:
        """Return a text's words before `normalise`; raises BadValue if a user's `cut` gives no list of texts, an
        empty word or a line end."""
        if self.cut is None:
            return tokenizer(self.tokenizer).words(text.lower() if self.lower_text else text)
        words = self.cut(text)
        if not isinstance(words, list) or not all(isinstance(word, str) and word for word in words):
            raise BadValue(f"analyzer '{self.name}' gave {words!r:.80}; expected a list of texts, none empty")
        if any("\n" in word for word in words):
            raise BadValue(f"analyzer '{self.name}' gave a term with a line end; leave it out")
        return words

    def normalise(self, words: list[str]) -> list[str]:
        """Return each word's term; "" for a stop word."""
        return self.normalise_lines("\n".join(words)) if words else []

    def normalise_lines(self, words: str) -> list[str]:
        """Return the term of each line of `words`, a word per line; "" for a stop word."""
        if self.possessive and any(a in words for a in APOSTROPHES):
            words = POSSESSIVE.sub("", words)
        if self.lower_words:
            words = words.lower() if words.isascii() else words.replace("Σ", "σ").replace("İ", "i").lower()
        elif self.lower_text:  # done already on the plain path; the compiled one leaves it to here
            words = words.lower()
        terms = words.split("\n")
        if self.stopwords is not None or self.dropped:
            dropped = self.dropped | (stopword_list(self.stopwords) if self.stopwords else frozenset())
            terms = ["" if w in dropped else w for w in terms]
        return terms if self.stemmer is None else stem_all(self.stemmer, terms)

    def describe(self) -> dict[str, object]:
        """Return everything that can change a term: steps, hashes of word lists, versions."""
        described: dict[str, object] = {"analyzer": self.name, "algorithm": algorithm("analysis")}
        if self.lower_text:
            described["lowercase"] = "str.lower of the whole text"
        described["tokenizer"] = self.cut_version if self.cut else _tokenizer_tables(self.tokenizer)
        if self.possessive:
            described["possessive"] = "final 's dropped"
        if self.lower_words:
            described["lowercase"] = "each code point by itself"
        described["stopwords"] = described["stemmer"] = "none"
        if self.stopwords is not None:
            described["stopwords"] = f"{self.stopwords}: {' '.join(sorted(stopword_list(self.stopwords)))}"
        if self.dropped:
            described["dropped"] = " ".join(sorted(self.dropped))
        if self.stemmer is not None:
            try:
                described["stemmer"] = f"{self.stemmer}, PyStemmer {_installed_version('PyStemmer')}"
            except metadata.PackageNotFoundError:
                described["stemmer"] = f"{self.stemmer}, PyStemmer not installed"
        # str.lower, str.split and the classes of `re` are those of the running Python.
        described["unicode"] = f"{unicodedata.unidata_version} (Python's tables)"
        return described


@cache
def stopword_list(name: str) -> frozenset[str]:
    """Return the words of a built-in stop word list, such as "english-33"; FileNotFoundError for another name."""
    return frozenset(_lines(f"stopwords-{name}.txt"))


analyzers: Registry[Analyzer] = Registry("analyzer")


for _analyzer in (
    Analyzer(
        "lucene-english",
        "Lucene 9 EnglishAnalyzer, the default of Anserini and Pyserini",
        "uax29",
        possessive=True,
        lower_words=True,
        stopwords="english-33",
        stemmer=LUCENE_PORTER,
    ),
    Analyzer("lucene-standard", "Lucene 9 StandardAnalyzer", "uax29", lower_words=True),
    Analyzer(
        "bm25s-english",
        "bm25s 0.3 tokenize with stopwords='en' and PyStemmer's english",
        "words",
        lower_text=True,
        stopwords="english-33",
        stemmer="english",
    ),
    Analyzer("whitespace", "Python's str.split", "whitespace"),
    Analyzer(
        "cjk-bigrams",
        "Lucene 9 CJKAnalyzer by its rules, without its English stop words",
        "lines",
        lower_words=True,
        cut=cjk_bigrams,
        cut_version=f"pairs of Han, kana and Hangul characters, {_tokenizer_tables('uax29')}",
    ),
    Analyzer(
        "thai-bigrams",
        "UAX #29 words, Thai, Lao, Khmer and Burmese in pairs of letters with their signs",
        "lines",
        lower_words=True,
        cut=thai_bigrams,
        cut_version=f"pairs of letters with their signs, {_tokenizer_tables('uax29')}",
    ),
    *(
        Analyzer(
            f"snowball-{language}",
            f"UAX #29 words with the Snowball stemmer for {language}",
            "uax29",
            lower_words=True,
            stemmer=language,
        )
        for language in SNOWBALL
    ),
):
    analyzers.add(_analyzer.name, _analyzer)


@checked
def add_analyzer(name: str, function: Callable[[str], list[str]], version: str) -> Analyzer:
    """Register a function as an analyzer for bm25(analyzer=NAME) in this process, and return it.

    function: returns the terms of a text in order, none empty or with a line end.
    version: identifies the function for stored results; change it whenever terms change.

    A user's analyzer of the same name is replaced. Raises BadValue for a name that Weir uses, and an empty
    name or version.
    """
    if not name or not version:
        raise BadValue(
            "an analyzer needs a name and a version, such as add_analyzer('mine', function, version='1')"
        )
    cut_version = f"{OWN_VERSION_PREFIX}{version}"
    own = Analyzer(name, "a function of one's own", "lines", cut=function, cut_version=cut_version)
    if name in analyzers and not analyzers.get(name).own:
        raise BadValue(f"'{name}' is an analyzer of Weir's; choose another name")
    return analyzers.add(name, own, again=True)


STOPWORDS_BYTES = 1 << 20


def read_stopwords(path: str) -> frozenset[str]:
    """Return a file's words, lowercased; | and # begin comments.

    Raises FormatError for a file that is missing or not UTF-8, BadValue without words or above 1 MiB.
    """
    raw = read_bytes(Path(path).expanduser(), STOPWORDS_BYTES + 1)
    if len(raw) > STOPWORDS_BYTES:
        raise BadValue(f"{path}: more than {STOPWORDS_BYTES:,} bytes; expected stop words, one a line")
    lines = (re.split(r"[|#]", line)[0] for line in decoded(raw, path).splitlines())
    words = frozenset(word.lower() for line in lines for word in line.split())
    if not words:
        raise BadValue(f"{path}: no stop words; expected a word a line")
    return words
