"""Rankings of several systems side by side, with texts, grades and each other's ranks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from markupsafe import Markup

from weir.audit.duplicates import near_copies
from weir.core.corpus import Corpus
from weir.core.filters import LIST_SEPARATOR
from weir.core.qrels import Qrels, plain_grades
from weir.core.tables import excerpt
from weir.datasets.load import Dataset
from weir.plugins.app.choices import System
from weir.plugins.app.judging.rooms import Rooms
from weir.plugins.app.marking import Marked, Words

EXCERPT_CHARACTERS = 280
MOST_FIELDS, FIELD_CHARACTERS = 12, 120
"""Most metadata fields of a document that are shown, and most characters of a value."""


@dataclass(frozen=True)
class Judgment:
    """A document's relevance grade for a query, and who gave it."""

    grade: float
    origin: str
    """"" if not known."""
    pool: str = ""
    """Pool whose judges gave it; "" for the collection's own."""

    @property
    def relevant(self) -> bool:
        """True for a grade above 0."""
        return self.grade > 0


@dataclass(frozen=True)
class Answer:
    """A retrieved document as a query's page shows it: rank, score, text, grade."""

    rank: int
    document: str
    score: float
    title: str
    excerpt: Marked
    judgment: Judgment | None
    """The judgment that the page's numbers count; None if not judged."""
    aside: Judgment | None
    """A pool's judgment that the numbers leave out; None without one."""
    ranks: tuple[int | None, ...]
    """Its rank in each ranking; None if it is not returned there."""
    copy_of: str
    """An earlier document of this ranking with nearly the same text; "" for none."""


@dataclass(frozen=True)
class Column:
    """A system's ranking for one query, as a column of the page."""

    system: System
    value: float
    """The measure's value; NaN without one."""
    answers: tuple[Answer, ...]
    returned: int
    """Number of documents in the ranking."""
    milliseconds: float | None = None
    """Time of a search that ran just now."""
    failure: str = ""
    """Why there is no ranking; "" if there is one."""


Rankings: TypeAlias = Sequence[Sequence[tuple[str, float]]]
"""(document, score) pairs of each system, in order."""


def ranks_in(rankings: Rankings) -> Callable[[str], tuple[int | None, ...]]:
    """Return a function: document -> its rank (from 1) in each ranking, None where it is missing."""
    places = [{document: rank for rank, (document, _) in enumerate(one, 1)} for one in rankings]
    return lambda document: tuple(of.get(document) for of in places)


def columns_of(
    systems: Sequence[System],
    rankings: Rankings,
    depth: int,
    dataset: Dataset | None,
    judged: Mapping[str, Judgment],
    words: Words,
    values: Sequence[float],
    aside: Mapping[str, Judgment],
) -> tuple[Column, ...]:
    """Return a column of the first `depth` documents of a query for each system, in the given order.

    dataset: source of titles and texts; without it they are "".
    values: the measure's value for each system.
    judged: {document: judgment that the values count}.
    aside: {document: judgment that the values leave out}.
    words: the query's terms, to be marked in excerpts.
    """
    ranks_of = ranks_in(rankings)
    shown = list(dict.fromkeys(document for one in rankings for document, _ in one[:depth]))
    texts = texts_of(dataset, shown)
    leaders = _leaders(texts)
    columns = []
    for system, value, ranking in zip(systems, values, rankings, strict=True):
        answers, seen = list[Answer](), dict[str, str]()
        for rank, (document, score) in enumerate(ranking[:depth], 1):
            title, text = texts.get(document, ("", ""))
            leader = leaders.get(document, document)
            answers.append(
                Answer(
                    rank,
                    document,
                    score,
                    title,
                    words.excerpt(text, EXCERPT_CHARACTERS),
                    judged.get(document),
                    aside.get(document),
                    ranks_of(document),
                    seen.get(leader, ""),
                )
            )
            seen.setdefault(leader, document)
        columns.append(Column(system, value, tuple(answers), len(ranking)))
    return tuple(columns)


def shown_documents(columns: Sequence[Column], unjudged: bool = False) -> list[str]:
    """Return the documents of all columns, column by column, without repeats.

    unjudged: only documents without any judgment.
    """
    answers = [one for column in columns for one in column.answers]
    judged = {one.document for one in answers if unjudged and (one.judgment or one.aside)}
    return list(dict.fromkeys(one.document for one in answers if one.document not in judged))


def texts_of(dataset: Dataset | None, documents: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return {document: (title, text)} without unknown documents; {} if the collection's documents are not on
    this machine."""
    if dataset is None or dataset.layout.documents is None or not documents:
        return {}
    corpus = dataset.corpus
    codes = corpus.ids.codes(documents)
    here = np.flatnonzero(codes >= 0)
    names = [documents[n] for n in here.tolist()]
    fields = [
        [""] * len(names) if column is None else column.take(codes[here]).tolist()
        for column in (corpus.title, corpus.text)
    ]
    return dict(zip(names, zip(*fields, strict=True), strict=True))


Fields: TypeAlias = tuple[tuple[str, str], ...]
"""(name, value) of a document's metadata."""


def fields_of(corpus: Corpus | None, documents: Sequence[str]) -> dict[str, Fields]:
    """Return {document: ((metadata field, value), ...)} of the first 12 fields, long values cut; empty values
    and unknown documents are left out."""
    found: dict[str, Fields] = {}
    if corpus is None or not documents:
        return found
    codes = corpus.ids.codes(documents)
    here = np.flatnonzero(codes >= 0)
    names = [documents[n] for n in here.tolist()]
    for field in corpus.metadata.names()[:MOST_FIELDS]:
        values = corpus.metadata.column(field).text.take(codes[here]).tolist()
        for name, value in zip(names, values, strict=True):
            if value:
                shown = excerpt(value.replace(LIST_SEPARATOR, ", "), FIELD_CHARACTERS)
                found[name] = (*found.get(name, ()), (field, shown))
    return found


def judgments_of(qrels: Qrels | None, query: str) -> dict[str, Judgment]:
    """Return {document: judgment} for a query; {} if it has none."""
    at = -1 if qrels is None else int(qrels.queries.codes([query])[0])
    if qrels is None or at < 0:
        return {}
    rows = slice(*qrels.ptr[at : at + 2].tolist())
    documents = qrels.docs.take(qrels.doc[rows]).tolist()
    origin = qrels.origin
    origins = (
        [""] * len(documents) if origin is None else [origin.names[n] for n in origin.code[rows].tolist()]
    )
    judgments = map(Judgment, plain_grades(qrels.grade[rows]), origins)
    return dict(zip(documents, judgments, strict=True))


def pool_judgments(rooms: Rooms | None, collection: str, query: str, text: str) -> dict[str, Judgment]:
    """Return {document: judgment by people} of a query, from the pools that are open for judging.

    query: its identifier; "" finds it by `text`.
    """
    of_pools = {} if rooms is None else rooms.grades_of(collection, query, text)
    return {document: Judgment(grade, "", pool) for document, (grade, pool) in of_pools.items()}


def news(judged: Mapping[str, Judgment], pools: Mapping[str, Judgment]) -> dict[str, Judgment]:
    """Return a query's judgments in `pools` that `judged` lacks or grades differently."""
    return {
        document: one
        for document, one in pools.items()
        if document not in judged or judged[document].grade != one.grade
    }


def _leaders(texts: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    if len(texts) < 2:
        return {}
    names = list(texts)
    documents = {name: {"title": title, "text": text} for name, (title, text) in texts.items()}
    _, leader, _ = near_copies(Corpus.of(documents))
    return {name: names[n] for name, n in zip(names, leader.tolist(), strict=True)}


# ----------
# The rankings as lines.

ROW_PX = 16
RADIUS_PX = 5


def lines_svg(columns: Sequence[Column], here: bool) -> Markup:
    """Return an SVG with a line from each document's rank in one column to its rank in the next; empty for
    fewer than two columns.

    here: True colours documents without a judgment as unjudged.
    """
    depth = max((len(column.answers) for column in columns), default=0)
    if len(columns) < 2 or not depth:
        return Markup()
    height = ROW_PX * (depth + 1)
    at = [f"{100 * (2 * n + 1) / (2 * len(columns)):.3f}%" for n in range(len(columns))]
    drawn, dots = list[str](), list[str]()
    for n, column in enumerate(columns):
        for answer in column.answers:
            y = ROW_PX * answer.rank - ROW_PX // 2
            if answer.judgment is None:
                kind = "unjudged" if here else "other"
            else:
                kind = "relevant" if answer.judgment.relevant else "other"
            if n + 1 < len(columns):
                rank = min(answer.ranks[n + 1] or depth + 1, depth + 1)
                drawn.append(
                    f'<line x1="{at[n]}" y1="{y}" x2="{at[n + 1]}" y2="{ROW_PX * rank - ROW_PX // 2}" '
                    f'class="weir-line-{kind}{" weir-below" * (rank > depth)}"/>'
                )
            dots.append(
                f'<a href="#a-{n}-{answer.rank}" tabindex="-1"><circle cx="{at[n]}" cy="{y}" r="{RADIUS_PX}" '
                f'class="weir-dot-{kind}"/></a>'
            )
    return Markup(
        f'<svg class="weir-lines" width="100%" height="{height}" aria-hidden="true">{"".join(drawn + dots)}</svg>'
    )
