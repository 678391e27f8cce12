"""Which pairs of query and document a model judges, with their texts: a sheet of `weir pool`, or what a subject has."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from weir.audit.judging_pool import ABOUT, HEAD, SHEET, judging_pool, read_sheet
from weir.core.corpus import Corpus
from weir.core.ids import Ids
from weir.core.qrels import Qrels
from weir.core.strings import Int32
from weir.core.subject import Subject
from weir.errors import BadValue, FormatError
from weir.systems.rerank.score_cache import VIEW

__all__ = ["MODEL_ORIGIN", "JudgingPairs", "is_sheet", "pairs_of_sheet", "pairs_of_subject"]

MODEL_ORIGIN = "llm:"
"""How the origin of a model's labels begins."""
SEED = 11
"""Of the draw of judged pairs, where not all are asked."""


@dataclass(frozen=True, eq=False)
class JudgingPairs:
    """Pairs of query and document that are to be judged, in the order in which they are asked.

    query, doc: int32[n], numbers in queries and docs; asked, told: the text of each query and what it is told to look
    for, "" for nothing; passage: the text of a row's document; positive: the text of a document that people found
    relevant for a row's query, another than the row's own, None where there is none; people: judgments of people, None
    where there are none; systems: names of those that are measured by these; textless: pairs left out, since the
    collection has not their document.
    """

    name: str
    queries: Ids
    docs: Ids
    query: Int32
    doc: Int32
    asked: tuple[str, ...]
    told: tuple[str, ...]
    passage: Callable[[int], str]
    positive: Callable[[int], str | None]
    people: Qrels | None = None
    systems: tuple[str, ...] = ()
    textless: int = 0

    def __len__(self) -> int:
        return len(self.query)

    def names(self, row: int) -> tuple[str, str]:
        """The identifiers of a row's query and document."""
        return self.queries[int(self.query[row])], self.docs[int(self.doc[row])]

    def beside(self, people: Qrels) -> JudgingPairs:
        """The same pairs beside other judgments of people, for agreement."""
        return replace(self, people=people)


def is_sheet(path: Path) -> bool:
    """Whether a path is a folder of `weir pool`, or a sheet of one; raises BadValue for a folder of several."""
    several = sorted(sheet.parent.name for sheet in path.glob(f"*/{SHEET}")) if path.is_dir() else []
    if several:
        held = f"the sheets of {len(several)} collections ({', '.join(several[:5])})"
        raise BadValue(f"{path} has {held}; judge one at a time, such as {path / several[0]}")
    with suppress(OSError):
        sheet = path / SHEET if path.is_dir() else path
        if sheet.suffix == ".tsv" and sheet.is_file():
            with sheet.open(encoding="utf-8", errors="replace") as file:
                return tuple(file.readline().rstrip("\r\n").split("\t")) == HEAD
    return False


@dataclass(frozen=True)
class _SheetLine:
    """A line of a sheet."""

    query: str
    doc: str
    grade: str
    asked: str
    text: str


def pairs_of_sheet(
    path: Path, collection: Subject | None = None, judged: bool = False, limit: int | None = None
) -> JudgingPairs:
    """The pairs of a sheet of `weir pool` that nobody has graded yet; judged: those that somebody has.

    collection: where the texts are; None for those on the sheet. limit: pairs at most, the first ones. Raises
    FormatError for a line that is no pair, BadValue where no pair is left or a text is nowhere.
    """
    sheet = path / SHEET if path.is_dir() else path
    lines = list(_sheet_lines(sheet))
    kept = [line for line in lines if bool(line.grade) == judged][:limit]
    if not kept:
        which = "with a grade" if judged else "without a grade"
        raise BadValue(f"{sheet}: none of its {len(lines):,} pairs is {which}")
    queries, docs = (
        Ids.of(dict.fromkeys(names)) for names in ([x.query for x in kept], [x.doc for x in kept])
    )
    query, doc = queries.codes([x.query for x in kept]), docs.codes([x.doc for x in kept])
    about = _about(sheet)
    people = read_sheet(sheet)[0] if any(line.grade for line in lines) else None
    found = JudgingPairs(
        str(about.get("subject", sheet.name)),
        queries,
        docs,
        query,
        doc,
        tuple({line.query: line.asked for line in kept}.values()),
        ("",) * len(queries),
        lambda row: kept[row].text,
        lambda _: None,
        people,
        tuple(map(str, about.get("names", ()))),
    )
    if collection is not None:
        placed = _placed(collection, queries, docs, query, doc)
        return replace(placed, people=people or placed.people, systems=found.systems or placed.systems)
    if not all(line.asked and line.text for line in kept):
        raise BadValue(
            f"{sheet} has not all texts of queries and documents; name the collection by --collection"
        )
    return found


def _sheet_lines(sheet: Path) -> Iterator[_SheetLine]:
    try:
        text = sheet.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise FormatError(
            sheet, f"bytes that are not UTF-8 ({error.reason})", "a sheet of weir pool, in UTF-8"
        ) from None
    for number, line in enumerate(text.split("\n")[1:], 2):
        cells = line.rstrip("\r").split("\t")
        if not line.strip():
            continue
        if len(cells) != len(HEAD) or not cells[0] or not cells[1]:
            expected = ", ".join(HEAD) + " with tabs between"
            raise FormatError(sheet, f"{len(cells)} cells", expected, number)
        shown = f"{cells[4]} {cells[5]}".strip()
        yield _SheetLine(cells[0], cells[1], cells[2].strip(), cells[3].strip(), shown)


def _about(sheet: Path) -> dict[str, Any]:
    """What stands beside a sheet of what it was made from, nothing where nothing does."""
    with suppress(OSError, ValueError, RecursionError):
        found = json.loads((sheet.parent / ABOUT).read_text(encoding="utf-8"))
        return found if isinstance(found, dict) else {}
    return {}


def pairs_of_subject(
    subject: Subject, judged: bool = False, k: int = 10, limit: int | None = None
) -> JudgingPairs:
    """The unjudged documents among the first k of any run, as `weir pool` finds them; judged: the judged pairs instead.

    limit: pairs at most, unjudged ones those that narrow scores most, judged ones drawn from all alike. Raises BadValue
    where there is nothing to judge, and for texts that are not there.
    """
    if not judged:
        pool = judging_pool(subject.runs, subject.need_qrels(), k, limit)
        return _placed(subject, pool.queries, pool.docs, pool.query, pool.doc)
    qrels = _of_people(subject.need_qrels())
    if qrels is None:
        raise BadValue(f"{subject.name}: every judgment is a model's; people judged nothing")
    rows = np.random.default_rng(SEED).permutation(len(qrels.doc))[:limit]
    if not len(rows):
        raise BadValue(f"{subject.name}: no pair is judged")
    return _placed(subject, qrels.queries, qrels.docs, qrels.query_of_row()[rows], qrels.doc[rows])


def _placed(subject: Subject, queries: Ids, docs: Ids, query: Int32, doc: Int32) -> JudgingPairs:
    """Pairs with the texts of a collection; those whose document it has not are left out.

    Raises BadValue for a query without a text, and where no document is there.
    """
    asked, corpus = subject.need_queries(), subject.need_corpus()
    at = asked.ids.codes(queries.strings)
    needed = np.unique(query)
    if lacking := [queries[int(q)] for q in needed if at[q] < 0]:
        raise BadValue(f"{subject.name}: the query '{lacking[0]}' has no text in the collection")
    here = corpus.ids.codes(docs.strings)
    rows = np.flatnonzero(here[doc] >= 0)
    if not len(rows):
        raise BadValue(f"{subject.name}: none of the documents to judge is in the collection")
    own = None if asked.metadata is None else asked.metadata.instruction
    texts = [asked.text[int(q)] if q >= 0 else "" for q in at]
    told = [(own[int(q)] if own is not None and q >= 0 else "") or subject.instruction for q in at]
    codes = here[doc[rows]]
    passages = lambda row: _text(corpus, int(codes[row]))  # noqa: E731  a value of the pairs
    found = JudgingPairs(
        subject.name,
        queries,
        docs,
        query[rows].astype(np.int32),
        doc[rows].astype(np.int32),
        tuple(texts),
        tuple(told),
        passages,
        lambda _: None,
        None if subject.qrels is None else _of_people(subject.qrels),
        tuple(subject.runs),
        len(query) - len(rows),
    )
    return replace(found, positive=_positives(found, corpus))


def _of_people(qrels: Qrels) -> Qrels | None:
    """The judgments that are not a model's, None where all are."""
    if qrels.origin is None or not any(name.startswith(MODEL_ORIGIN) for name in qrels.origin.names):
        return qrels
    found: dict[str, dict[str, float]] = {}
    columns = qrels.columns()
    for query, doc, grade, origin in zip(
        *(columns[name] for name in ("query", "doc", "grade", "origin")), strict=True
    ):
        if not origin.startswith(MODEL_ORIGIN):
            found.setdefault(query, {})[doc] = float(grade)
    return Qrels.of(found) if found else None


def _text(corpus: Corpus, code: int) -> str:
    [text] = corpus.view_of(VIEW, np.array([code])).tolist()
    return str(text)


def _positives(pairs: JudgingPairs, corpus: Corpus) -> Callable[[int], str | None]:
    """The best document of a row's query by its judgments, another than the row's; the first by identifier."""
    if pairs.people is None:
        return lambda _: None
    people = pairs.people
    at = people.queries.codes(pairs.queries.strings)
    here = corpus.ids.codes(people.docs.strings)
    best: dict[int, list[tuple[str, int]]] = {}
    for number in np.unique(pairs.query).tolist():
        rows = range(*people.ptr[at[number] : at[number] + 2].tolist()) if at[number] >= 0 else range(0)
        known = [r for r in rows if people.grade[r] > 0 and here[people.doc[r]] >= 0]
        ranked = sorted(known, key=lambda r: (-float(people.grade[r]), people.docs[int(people.doc[r])]))
        best[number] = [(people.docs[int(people.doc[r])], int(here[people.doc[r]])) for r in ranked[:2]]

    def positive(row: int) -> str | None:
        own = pairs.names(row)[1]
        return next((_text(corpus, at) for name, at in best[int(pairs.query[row])] if name != own), None)

    return positive
