"""Rankings side by side: documents with texts, grades and their ranks in the other rankings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from markupsafe import Markup

from weir.audit.duplicates import near_copies
from weir.core.corpus import Corpus
from weir.core.qrels import Qrels, plain_grades
from weir.datasets.load import Dataset
from weir.plugins.app.choices import System
from weir.plugins.app.judging.rooms import Rooms
from weir.plugins.app.marking import Marked, Words

EXCERPT_CHARACTERS = 280


@dataclass(frozen=True)
class Judgment:
    """The grade of a document for a query, with its origin."""

    grade: float
    origin: str
    """"" if not known."""
    pool: str = ""
    """Pool beside the results in which it was given; "" for a judgment of the collection, which scores go by."""

    @property
    def relevant(self) -> bool:
        """True for a grade above 0."""
        return self.grade > 0


@dataclass(frozen=True)
class Answer:
    """A document in a system's ranking, as the page of a query shows it."""

    rank: int
    document: str
    score: float
    title: str
    excerpt: Marked
    judgment: Judgment | None
    """None if not judged."""
    ranks: tuple[int | None, ...]
    """Its rank in each ranking beside; None if it is not returned there."""
    copy_of: str
    """An earlier document of this ranking with nearly the same text; "" for none."""


@dataclass(frozen=True)
class Column:
    """The first documents of one system's ranking, as a column of the page of a query."""

    system: System
    value: float
    """The measure's value; NaN without one."""
    answers: tuple[Answer, ...]
    returned: int
    """Number of documents in the ranking."""
    milliseconds: float | None = None
    """Time of the search, if it ran just now."""
    failure: str = ""
    """Why the system gives no ranking; "" if it does."""


Rankings: TypeAlias = Sequence[Sequence[tuple[str, float]]]
"""(document, score) pairs of each system, in order."""


def ranks_in(rankings: Rankings) -> Callable[[str], tuple[int | None, ...]]:
    """Return a function that maps a document to its ranks in the rankings, None where it is absent."""
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
) -> tuple[Column, ...]:
    """Return the first documents of each ranking; a text that is not on this machine is ""."""
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
                    ranks_of(document),
                    seen.get(leader, ""),
                )
            )
            seen.setdefault(leader, document)
        columns.append(Column(system, value, tuple(answers), len(ranking)))
    return tuple(columns)


def shown_documents(columns: Sequence[Column], unjudged: bool = False) -> list[str]:
    """Return the documents of all columns, each once; with `unjudged` only documents without a judgment."""
    answers = [one for column in columns for one in column.answers]
    return list(dict.fromkeys(one.document for one in answers if not (unjudged and one.judgment)))


def texts_of(dataset: Dataset | None, documents: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return {document: (title, text)} of the documents that are on this machine."""
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


def judgments_of(qrels: Qrels | None, query: str) -> dict[str, Judgment]:
    """Return {document: judgment} of a query; {} without judgments."""
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


def with_pools(
    judged: Mapping[str, Judgment], rooms: Rooms | None, collection: str, query: str, text: str
) -> dict[str, Judgment]:
    """Return the judgments of a query, extended by judgments from pools that contain the query."""
    of_pools = {} if rooms is None else rooms.grades_of(collection, query, text)
    return {document: Judgment(grade, "", pool) for document, (grade, pool) in of_pools.items()} | dict(
        judged
    )


def _leaders(texts: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    """Return {document: the first document with nearly the same text}, for near duplicates."""
    if len(texts) < 2:
        return {}
    names = list(texts)
    documents = {name: {"title": title, "text": text} for name, (title, text) in texts.items()}
    leader = near_copies(Corpus.of(documents)).leader
    return {name: names[n] for name, n in zip(names, leader.tolist(), strict=True)}


# ----------
# The rankings as lines.

ROW_PX = 16
RADIUS_PX = 5


def lines_svg(columns: Sequence[Column], here: bool) -> Markup:
    """Return a drawing that joins the ranks of a document in neighbouring rankings by lines, for above the
    columns.

    here: judgments are on this machine, so a document without one is unjudged.
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
