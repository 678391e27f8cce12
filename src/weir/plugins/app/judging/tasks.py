"""The pairs of a pool to judge, with texts and guidelines."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from weir.core.qrels import Qrels
from weir.core.strings import Ids
from weir.core.subject import Subject
from weir.errors import BadValue
from weir.files.atomic import write_text
from weir.files.journal_labels import SHEET
from weir.files.text_files import read_text
from weir.plugins.app.judging.journal import Event, Pair
from weir.plugins.labels.pools import (
    POOL_SEED,
    JudgingPool,
    about_sheet,
    open_sheet,
    sheet_lines,
    sheet_text,
    write_pool,
)

QUERIES = "queries.jsonl"
"""File of a golden set's queries, in its pool's folder."""
GUIDELINES = "guidelines.md"
"""File of guidelines in a pool's folder; by default the one beside this module."""
MEANINGS = {
    2: ("does not answer, though it may have the same words or subject", "answers, at least in part"),
    3: (
        "does not help, though it may have the same words or subject",
        "touches what is wanted, or answers in part; the person must search on",
        "answers; the person can stop here",
    ),
    4: (
        "does not help, though it may have the same words or subject",
        "touches what is wanted, but the person must search on",
        "answers in part, or the answer must be looked for",
        "answers; the person can stop here",
    ),
}
"""{number of grades: their meanings, lowest first} in the default guidelines."""


def content_hash(title: str, text: str) -> str:
    """Return a hash of title and text as 16 hex digits, indifferent to white space."""
    return _digest(f"{sheet_text(title)}\n{sheet_text(text)}")


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).hexdigest()


@dataclass(frozen=True)
class JudgingPair:
    """A (query, document) pair to judge, with the document's texts."""

    number: int
    """Position in the pool, its name in pages."""
    query: str
    document: str
    title: str
    text: str
    content: str
    """`content_hash` of title and text."""

    @property
    def pair(self) -> Pair:
        """(query, document)."""
        return self.query, self.document

    @property
    def shown(self) -> str:
        """Hash of query, document and texts: of all that judges see."""
        return _digest("\x1f".join((self.query, self.document, self.content)))


@dataclass(frozen=True, eq=False)
class Tasks:
    """A pool's pairs without a grade, in order, with all that judges are shown."""

    name: str
    """Name of the collection."""
    queries: Mapping[str, str]
    """Text of each query, "" if unknown."""
    pairs: tuple[JudgingPair, ...]
    guidelines: str = ""
    """Markdown; `{grades}` stands for the meanings of the grades."""
    suggestions: Mapping[Pair, float] = field(default_factory=dict)
    """A model's grades that are suggested."""
    systems: tuple[str, ...] = ()
    """Systems whose documents these are; judges do not see them."""
    graded: int = 0
    """Pairs of the sheet left out because they had a grade."""
    grades: tuple[int, ...] = ()
    """Scale of the earlier judgments; () without any, or for fractions."""
    golden: str = ""
    """Name of the pool's collection file; "" for none."""
    removed: frozenset[str] = frozenset()
    """Removed queries; their pairs keep their numbers."""

    @cached_property
    def of_query(self) -> dict[str, tuple[JudgingPair, ...]]:
        """{query: its pairs}, in the pool's order, without removed queries."""
        found: dict[str, list[JudgingPair]] = {}
        for pair in self.by_pair.values():
            found.setdefault(pair.query, []).append(pair)
        return {query: tuple(pairs) for query, pairs in found.items()}

    @cached_property
    def by_pair(self) -> dict[Pair, JudgingPair]:
        """{(query, document): pair}, without removed queries."""
        return {one.pair: one for one in self.pairs if one.query not in self.removed}

    @property
    def asked(self) -> dict[str, str]:
        """{query: text}, without removed queries."""
        return {query: text for query, text in self.queries.items() if query not in self.removed}

    def query_text(self, query: str) -> str:
        """Return a query's text; its identifier if the text is unknown."""
        return self.queries.get(query) or query

    def has_changed(self, label: Event) -> bool:
        """Return True if the document's text has changed since this label was given."""
        pair = self.by_pair.get((label.query, label.document))
        return bool(label.content) and pair is not None and pair.content != label.content

    def guidelines_for(self, grades: Sequence[int]) -> str:
        """Return the guidelines as Markdown, with meanings of these grades filled in."""
        said = MEANINGS.get(len(grades), ())
        ordered = sorted(grades)
        lines = [f"- **{grade}**: {text}" for grade, text in zip(ordered, said, strict=True)] if said else [
            f"- **{ordered[0]}**: does not help", f"- **{ordered[-1]}**: answers; the more, the higher between"
        ]  # fmt: skip
        return self.guidelines.replace("{grades}", "\n".join(lines))

    def version(self, grades: Sequence[int]) -> str:
        """Return a hash of the guidelines for these grades; "" without guidelines."""
        return _digest(f"\n{self.guidelines_for(grades)}") if self.guidelines else ""


def tasks_of_pool(folder: Path, collection: Subject | None = None, suggestions: Qrels | None = None) -> Tasks:
    """Return the ungraded pairs in a folder or sheet of `weir labels pool`.

    collection: source of the texts; None takes the sheet's, without line breaks.
    suggestions: grades by a model.

    Raises FormatError for a missing or malformed sheet, BadValue for a repeated pair and if no pair is
    ungraded.
    """
    sheet = folder / SHEET if folder.is_dir() else folder
    lines = list(open_sheet(sheet))
    open_lines = [line for line in lines if not line.grade]
    queries: dict[str, str] = {}
    for line in open_lines:
        queries.setdefault(line.query, line.query_text)
    named = [(line.query, line.doc, line.title, line.text) for line in open_lines]
    if not named:
        raise BadValue(f"{sheet}: none of its {len(lines):,} pairs is without a grade")
    if collection is not None:
        queries, named = _with_texts(collection, queries, named)
    # Numbers follow the sheet, at whose end pairs are added, so that a pair keeps its number.
    pairs = tuple(
        JudgingPair(number, query, document, title, text, content_hash(title, text))
        for number, (query, document, title, text) in enumerate(named)
    )
    if len({one.pair for one in pairs}) < len(pairs):
        raise BadValue(f"{sheet} has a pair of query and document twice; leave one of its lines")
    guidelines = sheet.with_name(GUIDELINES)
    about = about_sheet(sheet)
    grades = about.get("grades")
    return Tasks(
        str(about.get("subject", sheet.parent.name)),
        queries,
        pairs,
        read_text(guidelines if guidelines.is_file() else Path(__file__).with_name(GUIDELINES)),
        {} if suggestions is None else grades_by_pair(suggestions),
        tuple(map(str, about.get("names", ()))),
        len(lines) - len(pairs),
        tuple(grades) if isinstance(grades, list) and all(type(one) is int for one in grades) else (),
        str(about.get("golden", "")),
        frozenset(map(str, about.get("removed", ()))),
    )


def query_key(text: str) -> str:
    """Return a query's text in lower case, with single blanks and composed (NFC) characters."""
    return unicodedata.normalize("NFC", sheet_text(text)).casefold()


def same_query(one: str, other: str) -> bool:
    """Return True if two texts differ at most in case, white space and Unicode composition."""
    return query_key(one) == query_key(other)


def write_queries(folder: Path, queries: Mapping[str, str]) -> None:
    """Write a golden set's queries as JSON lines, if the file differs."""
    rows = [json.dumps({"_id": one, "text": text}, ensure_ascii=False) for one, text in queries.items()]
    path, text = folder / QUERIES, "".join(f"{row}\n" for row in rows)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        write_text(path, text)


def _with_texts(
    collection: Subject, queries: Mapping[str, str], named: Sequence[tuple[str, str, str, str]]
) -> tuple[dict[str, str], list[tuple[str, str, str, str]]]:
    corpus, asked = collection.need_corpus(), collection.need_queries()
    at = asked.ids.codes(list(queries))
    texts = {
        name: asked.text[int(code)] if code >= 0 else text
        for (name, text), code in zip(queries.items(), at, strict=True)
    }
    codes = corpus.ids.codes([document for _, document, _, _ in named])
    found = []
    for (query, document, *on_sheet), code in zip(named, codes, strict=True):
        title, text = on_sheet
        if code >= 0:
            title, text = "" if corpus.title is None else corpus.title[int(code)], corpus.text[int(code)]
        found.append((query, document, title, text))
    return texts, found


def grades_by_pair(qrels: Qrels) -> dict[Pair, float]:
    """Return {(query, document): grade}."""
    columns = qrels.columns()
    return {
        (query, doc): float(grade)
        for query, doc, grade in zip(columns["query"], columns["doc"], columns["grade"], strict=True)
    }


def write_pairs(subject: Subject, pairs: Sequence[Pair], folder: Path, origin: Mapping[str, object]) -> None:
    """Write (query, document) pairs as a new pool, or append missing ones to an existing pool.

    Documents are in random order.

    origin: more entries of a new pool's description.

    Raises BadValue for a new pool without pairs and for an identifier with a tab or line end.
    """
    sheet = folder / SHEET
    if not sheet.exists():
        write_pool(_drawn(subject, pairs), subject, folder, origin=origin)
        return
    there = {(line.query, line.doc) for line in open_sheet(sheet)}
    if new := [pair for pair in pairs if pair not in there]:
        lines = "".join(list(sheet_lines(_drawn(subject, new), subject))[1:])
        write_text(sheet, f"{sheet.read_text(encoding='utf-8').rstrip(chr(10))}\n{lines}")


def _drawn(subject: Subject, pairs: Sequence[Pair]) -> JudgingPool:
    chosen = list(dict.fromkeys(pairs))
    if not chosen:
        raise BadValue("no pair was chosen; choose some that are to be judged")
    queries = Ids.of(dict.fromkeys(query for query, _ in chosen))
    docs = Ids.of(dict.fromkeys(document for _, document in chosen))
    query = queries.codes([query for query, _ in chosen])
    doc = docs.codes([document for _, document in chosen])
    drawn = np.random.default_rng(POOL_SEED).permutation(len(chosen))
    rows = drawn[np.argsort(query[drawn], kind="stable")]
    return JudgingPool(queries, docs, query[rows], doc[rows], np.zeros(len(rows)), 0, len(subject.runs))
