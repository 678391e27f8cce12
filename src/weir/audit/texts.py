"""Texts: empty ones, and those that were damaged on their way into the collection."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from weir.audit.check import Finding, Severity, check
from weir.core.corpus import Corpus
from weir.core.rounding import part_of
from weir.core.strings import Strings
from weir.core.subject import Subject

__all__ = ["DAMAGE", "damage_of"]

SHORT_WORDS = 3
REPEATED_SHARE = 0.5
BATCH_DOCUMENTS = 1 << 14
# UTF-8 read as Windows-1252 or Latin-1: a lead byte of two or three, as a letter, and what its continuation becomes.
_MOJIBAKE = re.compile("[\u00c2\u00c3][\u0080-\u00bf]|\u00e2(?:\u20ac|\u0080)[\u0080-\u00bf\u0152-\u2122]")
# C1 controls after a letter of _MOJIBAKE are told there; U+0085 and U+2028 end a line for some readers of JSON lines.
_CONTROL = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u2028\u2029]|(?<![\u00c2\u00c3\u00e2])(?<!\u00e2\x80)[\x80-\x9f]"
)
_MARKUP = re.compile(
    r"</?(?:p|br|div|span|b|i|a|table|tr|td|li|ul|h[1-6])(?:\s[^<>]{0,200})?/?>"
    r"|&(?:amp|lt|gt|nbsp|quot|#\d{2,5});",
    re.IGNORECASE,
)
_SMART = re.compile(r"(?:^|\s)\.[TBWX]\s")
DAMAGE = {
    "replacement characters (bytes that were no UTF-8)": re.compile("\ufffd"),
    "UTF-8 read in another encoding, such as Ã© for é": _MOJIBAKE,
    "control characters": _CONTROL,
    "left-over markup, such as <br> or &amp;": _MARKUP,
    "left-over field marks of SMART files, such as .W": _SMART,
}


def damage_of(text: str) -> list[str]:
    """The kinds of damage, of DAMAGE, that a text shows."""
    return [name for name, pattern in DAMAGE.items() if pattern.search(text)]


@dataclass
class _Counts:
    empty: list[str] = field(default_factory=list)
    short: list[str] = field(default_factory=list)
    damaged: dict[str, list[str]] = field(default_factory=dict)

    def add(self, name: str, text: str) -> None:
        words = len(text.split(None, SHORT_WORDS))
        if not words:
            self.empty.append(name)
        elif words < SHORT_WORDS:
            self.short.append(name)
        for kind in damage_of(text):
            self.damaged.setdefault(kind, []).append(name)


def _counted(names: Iterable[str], texts: Iterable[str]) -> _Counts:
    counts = _Counts()
    for name, text in zip(names, texts, strict=True):
        counts.add(name, text)
    return counts


def _texts_of(corpus: Corpus) -> Iterator[str]:
    for start in range(0, len(corpus), BATCH_DOCUMENTS):
        texts: Strings = corpus.view("title text", start, min(start + BATCH_DOCUMENTS, len(corpus)))
        yield from texts


def _findings(counts: _Counts, what: str, total: int, short_matters: bool) -> Iterator[Finding]:
    severity: Severity = "caution"
    if counts.empty:
        yield Finding(
            severity,
            f"{part_of(len(counts.empty), total, what, 'has', 'have')} no text at all",
            "nothing can find them, or by them: take the collection's full version, or leave them out",
            (("empty", float(len(counts.empty))),),
            tuple(counts.empty[:5]),
        )
    if counts.short and short_matters:
        yield Finding(
            "note",
            f"{part_of(len(counts.short), total, what, 'has', 'have')} fewer than {SHORT_WORDS} words",
            "see whether their text was cut",
            (("short", float(len(counts.short))),),
            tuple(counts.short[:5]),
        )
    for kind, names in counts.damaged.items():
        yield Finding(
            "caution" if len(names) > total / 100 else "note",
            f"{part_of(len(names), total, what, 'holds', 'hold')} {kind}",
            "words that are damaged match nothing: mend the texts before indexing",
            ((kind, float(len(names))),),
            tuple(names[:5]),
        )


def _repeated_titles(corpus: Corpus) -> Iterator[Finding]:
    """Texts that begin with their title: what is indexed as title and text holds it twice."""
    if corpus.title is None:
        return
    titled = repeated = 0
    for title, text in zip(corpus.title, corpus.text, strict=True):
        titled += bool(title.strip())
        repeated += bool(title.strip()) and text.startswith(title)
    if repeated >= REPEATED_SHARE * max(1, titled):
        yield Finding(
            "caution",
            f"{part_of(repeated, titled, 'texts', 'begins with its title', 'begin with their title')}, so that "
            "title and text together hold it twice",
            "its words count twice, and documents are longer than they are: index the text alone",
            (("texts", float(repeated)), ("documents with a title", float(titled))),
        )


@check("texts", needs=["corpus"])
def texts(subject: Subject) -> Iterator[Finding]:
    """Documents without text or with fewer than three words, and signs of damage: wrong encodings, markup.

    And texts that begin with their title.
    """
    corpus = subject.need_corpus()
    yield from _findings(
        _counted(corpus.ids, _texts_of(corpus)), "documents", len(corpus), short_matters=True
    )
    yield from _repeated_titles(corpus)


@check("query texts", needs=["queries"])
def query_texts(subject: Subject) -> Iterator[Finding]:
    """Queries of the split that is evaluated without text, and signs of damage in them."""
    queries = subject.judged_queries
    counts = _counted(queries.ids, queries.text)
    yield from _findings(counts, subject.queries_called, len(queries), short_matters=False)
