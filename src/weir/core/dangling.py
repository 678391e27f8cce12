"""Judgments and document rules on documents or queries that a collection lacks, or has with other texts."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weir.core.qrels import Qrels
from weir.core.rounding import counted, part_of
from weir.core.scores import Note
from weir.core.strings import Ids
from weir.errors import BadValue

COMPOSITION = "the composition of letters (Unicode NFC and NFD)"
CASE = "capital and small letters"
TOP = 10
SAMPLE = 300
"""Number of unjudged identifiers that are compared with judged ones, from the TOP of each query's ranking."""
EXAMPLES = 3
"""Documents that a note names."""
_BEYOND_ASCII = 128
NUMBERED = re.compile(r"\n0|\.0\n")
"""Finds zeros before identifiers, and '.0' at their end, in lines that each begin and end with a line end."""
_NUMBER = re.compile(r"[+-]?\d+([.,]\d+)?E[+-]?\d+")
_MONTH = r"(jan|feb|mar|mrz|mär|apr|may|mai|jun|jul|aug|sep|oct|okt|nov|dec|dez)"
_DATE = re.compile(
    rf"\d{{1,2}}[-. ]+{_MONTH}\w*\.?([-. ]+\d{{2,4}})?|{_MONTH}\w*[-. ]+\d{{2,4}}"
    r"|\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Dangling:
    """Judgments on documents that the collection lacks."""

    judgments: int
    """Number of judgments on missing documents."""
    relevant: int
    """Number of judgments on missing documents with a grade above 0."""
    documents: tuple[str, ...]
    """Identifiers of the missing documents, each once."""
    cause: str = ""
    """The probable cause, "" if no known cause explains half of the documents."""

    def note(self, collection: str, lack: str = "that it does not have") -> Note:
        """Return a note with the counts, some of the documents and the probable cause; `lack` follows the number of
        documents.
        """
        first = ", ".join(map(repr, self.documents[:EXAMPLES]))
        more = ", such as " if len(self.documents) > EXAMPLES else ": "
        name = counted(self.judgments, "judgment names", "judgments name")
        docs = counted(len(self.documents), "document")
        cause = f"; {self.cause}" if self.cause else ""
        return Note(
            f"{collection}: {name} {docs} {lack}{more}{first}{cause}",
            f"{self.relevant:,} of them relevant, which nothing can find",
        )


def dangling(qrels: Qrels, docs: Ids) -> Dangling | None:
    """Return the judgments on documents not in `docs`; None if there are none."""
    missing = docs.codes(qrels.docs.strings) < 0
    pairs = missing[qrels.doc]
    if not pairs.any():
        return None
    names = qrels.docs.take(np.unique(qrels.doc[pairs])).tolist()
    return Dangling(
        int(pairs.sum()), int((pairs & (qrels.grade > 0)).sum()), tuple(names), _probable_cause(names, docs)
    )


def refuse_strangers(qrels: Qrels, queries: Ids | None, docs: Ids | None, collection: str) -> None:
    """Raise BadValue if no judged query is in `queries`, or no judged document in `docs`; None and empty skip the
    check.
    """
    judged_docs = qrels.docs.take(np.unique(qrels.doc))
    kinds = {"query": "queries", "document": "documents"}
    for kind, known, judged, other_kind, other, judged_other in (
        ("query", queries, qrels.queries, "documents", docs, judged_docs),
        ("document", docs, judged_docs, "queries", queries, qrels.queries),
    ):
        if not known or not len(judged) or (known.codes(judged.strings) >= 0).any():
            continue
        exchanged = other is not None and _all_in(judged, other)
        cause = _probable_cause(judged.strings.tolist(), known)
        if exchanged:
            cause = f"all judged ones are its {other_kind}: exchange the columns of the judgments"
            if _all_in(judged_other, known):
                cause += f", or the files of documents and queries, as all judged {other_kind} are its {kinds[kind]}"
        elif _all_in(judged_other, known):
            file = f"the file of its {kinds[kind]} holds {other_kind}"
            cause = f"{file}: all judged {other_kind}, such as {judged_other[0]!r}, are in it"
        elif kind == "document" and all(parts := [_a_part(whole, known) for whole in judged[:EXAMPLES]]):
            mark = next(iter(parts_of_known(parts, judged)), "SEP")
            cause = (
                "the collection has parts of them: judge the parts, or rank without judgments, and score the rankings "
                f"of documents that weir data convert RUN OUT --collapse '{mark}' writes"
            )
        raise BadValue(
            f"{collection}: the collection and its judgments have no {kind} in common: of {len(known):,} in the "
            f"collection one is {known[0]!r}, of {len(judged):,} judged ones {judged[0]!r}{f'; {cause}' * bool(cause)}"
        )


def _all_in(some: Ids, of: Ids) -> bool:
    return len(some) > 0 and bool((of.codes(some.strings) >= 0).all())


def _a_part(name: str, docs: Ids) -> str:
    return next(
        (one for one in docs if one.startswith(name) and one != name and not one[len(name)].isalnum()), ""
    )


def dangling_notes(qrels: Qrels, docs: Ids, collection: str) -> list[Note]:
    """Return notes on judgments and document rules whose documents are not in `docs`."""
    found = dangling(qrels, docs)
    rules = [] if qrels.beside is None else _rule_notes("documents", qrels.beside.docs, docs, collection)
    return [*([] if found is None else [found.note(collection)]), *rules]


def never_asked(judged: Ids, queries: Ids) -> NDArray[np.bool_]:
    """Return True for each judged query that is not in `queries`, bool[n].

    All False if none is in it: the identifiers are then written in another way.
    """
    known = queries.codes(judged.strings) >= 0
    return ~known if known.any() else np.zeros(len(judged), np.bool_)


def textless_notes(qrels: Qrels, queries: Ids, collection: str) -> list[Note]:
    """Return notes on judged queries, and on queries of document rules, that are not in `queries`."""
    rules = [] if qrels.beside is None else _rule_notes("queries", qrels.beside.queries, queries, collection)
    missing = np.flatnonzero(queries.codes(qrels.queries.strings) < 0)
    if not len(missing):
        return rules
    names = qrels.queries.take(missing[:EXAMPLES]).tolist()
    said = part_of(len(missing), len(qrels), "judged queries", "is", "are")
    more = ", such as " if len(missing) > EXAMPLES else ": "
    nowhere = "in no mean, and " * bool(never_asked(qrels.queries, queries).any())
    first = ", ".join(map(repr, names))
    return [
        Note(
            f"{collection}: {said} not among its queries, {nowhere}asked of no system{more}{first}",
            "take queries and judgments of one version; judgments in a file, without the collection, count all",
        ),
        *rules,
    ]


def _rule_notes(kind: str, named: Ids, known: Ids, collection: str) -> list[Note]:
    missing = np.flatnonzero(known.codes(named.strings) < 0)
    if not len(missing):
        return []
    said = part_of(len(missing), len(named), f"{kind} of document rules", "is", "are")
    more = ", such as " if len(missing) > EXAMPLES else ": "
    names = ", ".join(map(repr, named.take(missing[:EXAMPLES]).tolist()))
    return [Note(f"{collection}: {said} not in it, and such rules never fail{more}{names}")]


def other_texts_note(
    kind: str, given: Mapping[str, str], known: Callable[[str], str], labels: str, collection: str
) -> list[Note]:
    """Return at most one note, on texts stored with labels that differ from the collection's.

    kind: "query" or "document"; a document's text may be a passage of the collection's.
    given: {identifier: text}.
    known: returns the collection's text of an identifier, "" if unknown.

    Empty texts, case, blanks and invisible characters are ignored.
    """
    compared, other = 0, list[str]()
    for name, text in given.items():
        one, there = _words(text), _words(known(name))
        if not one or not there:
            continue
        compared += 1
        alike = one == there or (kind == "document" and (one in there or there in one))
        other += [] if alike else [name]
    if not other:
        return []
    share = f"{len(other):,} of {counted(compared, kind, 'queries' if kind == 'query' else '')}"
    texts = f"{given[other[0]].strip()[:60]!r}, and {known(other[0]).strip()[:60]!r} in {collection}"
    said = f"{share} in {labels} {'has' if compared == 1 else 'have'} another text than in {collection}"
    return [Note(f"{said}, such as {other[0]!r} ({texts}): are both of one collection?")]


def _words(text: str) -> str:
    return " ".join(_visible(unicodedata.normalize("NFKC", text)).casefold().split()).rstrip(".…")


def _plain_name(name: str) -> str:
    """Return an identifier in NFC, without outer blanks and invisible characters."""
    return name.strip() if name.isascii() else _visible(unicodedata.normalize("NFC", name)).strip()


def _visible(name: str) -> str:
    return "".join(sign for sign in name if unicodedata.category(sign) != "Cf")


def written_otherwise(names: Ids, known: Ids) -> list[tuple[str, str]]:
    """Return (unknown name, known name) pairs that differ only in Unicode composition, outer blanks or invisible
    characters.
    """
    strange = names.take(np.flatnonzero(known.codes(names.strings) < 0)).tolist()
    looks = {_plain_name(name): name for name in known.tolist()}
    return [(name, looks[plain]) for name in strange if (plain := _plain_name(name)) in looks]


def composed_otherwise(known: Ids) -> Ids:
    """Return the NFC and NFD forms of known identifiers that are not themselves known."""
    strings = known.strings
    if not len(strings) or strings.data.max(initial=0) < _BEYOND_ASCII:
        return Ids.of([])
    names = (name for name in known.tolist() if not name.isascii())
    forms = dict.fromkeys(unicodedata.normalize(kind, name) for name in names for kind in ("NFC", "NFD"))
    return Ids.of([form for form, code in zip(forms, known.codes(list(forms)), strict=True) if code < 0])


def two_compositions(docs: Ids) -> list[str]:
    """Return a sentence, or [], on documents that the rankings name in both NFC and NFD."""
    if docs.strings.data.max(initial=0) < _BEYOND_ASCII:
        return []
    plain = Ids.of([name for name in docs.tolist() if unicodedata.is_normalized("NFC", name)])
    twice = docs.take(np.flatnonzero(composed_otherwise(plain).codes(docs.strings) >= 0)).tolist()
    if not twice:
        return []
    found = counted(len(twice), "document stands", "documents stand")
    return [
        f"{found} in the rankings as two, but for {COMPOSITION}, such as "
        f"{min(twice)!a}; write both in one form"
    ]


_CHANGES: tuple[tuple[str, str, Callable[[str], list[str]]], ...] = (
    ("blanks stand around them", "", lambda name: [name.strip()]),
    (
        "a table made numbers of them and added '.0'",
        "a '.0' at the end",
        lambda name: [re.sub(r"\.0+$", "", name)],
    ),
    ("'.0' is missing at their end", "a '.0' at the end", lambda name: [f"{name}.0"]),
    (
        "zeros at their beginning are lost",
        "zeros before them",
        lambda name: [name.zfill(n) for n in range(len(name) + 1, 13)],
    ),
    ("zeros stand before them", "zeros before them", lambda name: [name.lstrip("0") or "0"]),
    ("they are written in other letters", CASE, lambda name: [name.lower(), name.upper()]),
    (
        "their letters are composed in another way (Unicode NFC and NFD)",
        COMPOSITION,
        lambda name: [unicodedata.normalize(form, name) for form in ("NFC", "NFD")],
    ),
    ("signs that cannot be seen stand in them", "", lambda name: [_visible(name)]),
    ("they are paths of the documents", "", lambda name: [re.split(r"[/\\]", name)[-1]]),
)
"""What may have changed identifiers, the difference in words ("" if it may be meant), and the names before it."""


def _probable_cause(names: list[str], docs: Ids) -> str:
    def known(changed: list[str]) -> bool:
        return bool(changed) and bool((docs.codes(changed) >= 0).any())

    found = [
        (sum(known([one for one in change(name) if one != name]) for name in names), text)
        for text, _, change in _CHANGES
    ]
    spreadsheet = sum(bool(_NUMBER.fullmatch(name) or _DATE.fullmatch(name)) for name in names)
    most, text = max([*found, (spreadsheet, "a spreadsheet may have made numbers or dates of identifiers")])
    return text if 2 * most >= len(names) else ""


PART = re.compile(r"(.+?)(#|::?|\||/|@|[-_])\d+")
"""Matches an identifier of a part, such as a chunk: that of the document, a mark, and a number."""
NUMBERED_PARTS = re.compile(r"[#:|/@_-]\d+\n")
"""Finds a mark and a number at the end of a line."""


def parts_of_known(names: Collection[str], known: Ids) -> dict[str, list[str]]:
    """Return {separator: names} for names of parts of known documents, such as d1#3 of d1; {} if known names have
    such parts too.
    """
    found = {name: match for name in names if (match := PART.fullmatch(name))}
    codes = known.codes([match[1] for match in found.values()])
    marks: dict[str, list[str]] = {}
    for (name, match), code in zip(found.items(), codes, strict=True):
        if code >= 0:
            marks.setdefault(match[2], []).append(name)
    if not marks or any((match := PART.fullmatch(name)) and match[2] in marks for name in known.tolist()):
        return {}
    return marks


def spelled_otherwise(names: Collection[str], known: Ids) -> dict[str, set[str]]:
    """Return {difference: unknown names} for names equal to a known one but for leading zeros, a final '.0' or case."""
    if not names or not len(known) or not _may_differ(names, known):
        return {}
    changed = [
        (words, name, form)
        for _, words, change in _CHANGES
        if words not in ("", COMPOSITION)
        for name in names
        for form in change(name)
    ]
    words = CASE
    data = known.strings.data
    if ((data >= ord("A")) & (data <= ord("Z"))).any():  # perhaps of mixed case
        folded = {name.lower(): name for name in known.tolist()}
        changed += [(words, name, folded[name.lower()]) for name in names if name.lower() in folded]
    found = dict[str, set[str]]()
    unknown = {name for name, code in zip(names, known.codes(list(names)), strict=True) if code < 0}
    for (words, name, _), code in zip(changed, known.codes([form for *_, form in changed]), strict=True):
        if code >= 0 and name in unknown:
            found.setdefault(words, set()).add(name)
    return found


def _may_differ(names: Collection[str], known: Ids) -> bool:
    data, ptr = known.strings.data, known.strings.ptr
    zeros = (data[ptr[:-1][np.diff(ptr) > 0]] == ord("0")).any()
    points = len(data) > 1 and ((data[1:] == ord("0")) & (data[:-1] == ord("."))).any()
    letters = "".join(chr(one) for one in np.flatnonzero(np.bincount(data, minlength=128)[:128]))
    text = "\n".join(["", *names, ""])
    if zeros or points or NUMBERED.search(text):
        return True
    text += letters
    return text.lower() != text and text.upper() != text
