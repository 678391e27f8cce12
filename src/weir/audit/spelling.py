"""Check for letters that look equal but are encoded differently."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain

import numpy as np

from weir.audit.check import Finding, check
from weir.core.rounding import counted
from weir.core.subject import Subject

BATCH_BYTES = 1 << 22
DECOMPOSED = "letters that are not composed (e and an accent for é)"
_INVISIBLE = "\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff"
# Scripts whose spelling needs joiners, or has zero-width spaces between words.
_JOINING = "\u0600-\u08ff\u0900-\u109f\u1780-\u17ff\ufb50-\ufdff\ufe70-\ufefc"
# Latin, Greek, Cyrillic: no joiner stands between their letters.
_UNJOINED = "[A-Za-z0-9\u00c0-\u024f\u0370-\u052f]"
KINDS = {
    "soft hyphens": re.compile("\u00ad"),
    "zero-width signs": re.compile(
        f"[\u2060-\u2064\ufeff]|(?<![{_JOINING}])\u200b|(?<={_UNJOINED})[\u200c\u200d](?={_UNJOINED})"
    ),
    "signs of writing direction": re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"),
    "ligatures and presentation forms, such as \ufb01": re.compile(
        "[\u0132\u0133\u01c4-\u01cc\u01f1-\u01f3\ufb00-\ufb06\ufb13-\ufb17\ufb50-\ufbb1\ufbd3-\ufd3d\ufd50-\ufdfb\ufe70-\ufefc]"
    ),
    "full-width letters or half-width kana": re.compile(
        "[\uff10-\uff19\uff21-\uff3a\uff41-\uff5a\uff66-\uff9f]"
    ),
}
_ANY = re.compile(  # one class of characters is searched several times faster than the patterns
    f"[{_INVISIBLE}\u0132\u0133\u01c4-\u01cc\u01f1-\u01f3\ufb00-\ufdfb\ufe70-\ufefc\uff10-\uff9f]"
)
# Python's \w leaves out combining marks and invisible characters.
_MARKS = (
    "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0900-\u0dff\u0e31-\u0e4e\u1ab0-\u1aff\u20d0-\u20f0"
    "\u3099\u309a"
)
_WORD = re.compile(rf"(?:\w|[{_INVISIBLE}{_MARKS}])+")
_REMOVED = re.compile(f"[{_INVISIBLE}]")


def spellings_of(text: str) -> list[str]:
    """Return the kinds of unusual character encoding in a text, such as "soft hyphens"."""
    if text.isascii():
        return []
    found = [] if unicodedata.is_normalized("NFC", text) else [DECOMPOSED]
    if _ANY.search(text):
        found += [kind for kind, pattern in KINDS.items() if pattern.search(text)]
    return found


def folded(text: str) -> str:
    """Return the text in Unicode form NFKC, without invisible characters."""
    return unicodedata.normalize("NFKC", _REMOVED.sub("", text))


def _words(text: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(text)}


@dataclass
class _Seen:
    count: Counter[str] = field(default_factory=Counter)
    names: dict[str, list[str]] = field(default_factory=dict)

    def add(self, kinds: Iterable[str], name: str) -> None:
        for kind in kinds:
            self.count[kind] += 1
            if len(self.names.setdefault(kind, [])) < 5:
                self.names[kind].append(name)


@check("spelling", needs=["corpus"])
def spelling(subject: Subject) -> Iterator[Finding]:
    """Texts and identifiers with decomposed letters, invisible signs, ligatures or full-width letters.

    Findings name queries that lose matches by it, and judged identifiers that the collection writes in
    another way.
    """
    corpus = subject.need_corpus()
    queries = subject.judged_queries if subject.queries is not None else None
    asked = [] if queries is None else list(zip(queries.ids, queries.text, strict=True))
    of_queries, of_documents = _Seen(), _Seen()
    for name, text in asked:
        of_queries.add(spellings_of(text), name)
    # Words of the queries, folded; those of queries that show a kind; how documents write them, and relevant ones each.
    wanted = {folded(word) for _, text in asked for word in _words(text)}
    marked = {fold for _, text in asked if spellings_of(text) for fold in map(folded, _words(text))}
    written: dict[str, set[str]] = {}
    judged = subject.qrels is not None and len(subject.qrels) > 0
    relevant = _relevant(subject) if judged else {}
    looked_at = {doc for docs in relevant.values() for doc in docs}
    in_relevant: dict[str, dict[str, set[str]]] = {}
    texts = chain.from_iterable(block for _, block in corpus.batches("title text", BATCH_BYTES))
    for name, text in zip(corpus.ids, texts, strict=True):
        kinds = spellings_of(text)
        of_documents.add(kinds, name)
        for word in _words(text) if kinds or marked else ():
            fold = folded(word) if kinds else word
            if fold in (wanted if kinds else marked):
                written.setdefault(fold, set()).add(word)
                if name in looked_at:
                    in_relevant.setdefault(name, {}).setdefault(fold, set()).add(word)
    lost: dict[str, dict[str, str]] = {}  # kind -> query -> a word of it and how documents write it
    for name, text in asked:
        for word in sorted(_words(text)):
            fold = folded(word)
            everywhere = written.get(fold, set())
            ways = [in_relevant.get(doc, {}).get(fold, set()) for doc in relevant.get(name, ())]
            if not judged or (spellings_of(word) and word not in everywhere):
                ways.append(everywhere - {word})
            for other in sorted({other for way in ways if word not in way for other in way}):
                for kind in {*spellings_of(word), *spellings_of(other)}:
                    shown = f"{name}: {_escaped(word)} is {_escaped(other)} in documents"
                    lost.setdefault(kind, {}).setdefault(name, shown)
    for kind in [DECOMPOSED, *KINDS]:
        docs, asking, losing = of_documents.count[kind], of_queries.count[kind], lost.get(kind, {})
        counts = {"documents": docs, "queries": asking, "queries that lose matches": len(losing)}
        if docs or asking:
            yield Finding(
                "caution" if losing else "note",
                f"{counted(docs, 'document')} and {counted(asking, 'query', 'queries')} hold {kind}"
                + f"; {counted(len(losing), 'query has a word', 'queries have words')} that documents write in another "
                "way, which costs matches" * bool(losing),
                "write documents and queries alike before indexing: Unicode NFKC, invisible signs left out",
                tuple((name, float(count)) for name, count in counts.items()),
                (*losing.values(),) or (*of_documents.names.get(kind, []), *of_queries.names.get(kind, [])),
            )
    yield from _identifier_findings(subject)


def _relevant(subject: Subject) -> dict[str, list[str]]:
    qrels = subject.need_qrels()
    return {query: list(docs) for query, docs in qrels.of_rows(qrels.grade > 0).to_dict().items()}


def _identifier_findings(subject: Subject) -> Iterator[Finding]:
    corpus, qrels = subject.need_corpus(), subject.qrels
    columns = {"documents": corpus.ids}
    if subject.queries is not None:
        columns["queries"] = subject.queries.ids
    if qrels is not None:
        columns |= {"judged documents": qrels.docs, "judged queries": qrels.queries}
    found = {name: [one for one in ids if spellings_of(one)] for name, ids in columns.items()}
    if not any(found.values()):
        return
    apart: list[str] = []
    for judged, known in (("judged documents", "documents"), ("judged queries", "queries")):
        if judged in columns and known in columns:
            meant = {folded(one): one for one in columns[known]}
            unknown = np.flatnonzero(columns[known].codes(columns[judged].strings) < 0)
            for one in columns[judged].take(unknown).tolist():
                if folded(one) in meant:
                    apart.append(f"{_escaped(one)} is {_escaped(meant[folded(one)])} in the collection")
    counts = ", ".join(f"{len(names):,} of {part}" for part, names in found.items() if names)
    named = counted(len(apart), "judged identifier is", "judged identifiers are")
    yield Finding(
        "wrong" if apart else "note",
        f"identifiers hold decomposed letters, invisible signs or other forms of letters: {counts}"
        + f"; {named} spelled otherwise in the collection" * bool(apart),
        "identifiers are compared byte for byte: write those of the collection and of the judgments alike",
        tuple((f"identifiers of {part}", float(len(names))) for part, names in found.items()),
        tuple(apart) or tuple(_escaped(one) for names in found.values() for one in names),
    )


def _escaped(text: str) -> str:
    return text.encode("ascii", "backslashreplace").decode()
