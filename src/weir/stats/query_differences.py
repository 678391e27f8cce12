"""Queries that a run wins and loses against another, and relevant documents that moved."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress

import numpy as np

from weir.core.corpus import Corpus, Queries
from weir.core.qrels import Qrels, plain_grades
from weir.core.results import ResultKind, member_html, member_text
from weir.core.rounding import change, count, score
from weir.core.run import Run
from weir.core.scores import Note, Scores, averaged
from weir.core.strings import Int64
from weir.core.tables import Cell, Table, sentences, table_of
from weir.errors import BadValue
from weir.measures.measure import direction
from weir.stats.compare import refuse_apart
from weir.stats.score_rows import system_notes
from weir.stats.significance import exact_mean

SHOWN_DOCUMENTS = 3  # documents of a query
EXCERPT_LETTERS = 200  # characters of a document


@dataclass(frozen=True)
class Shift:
    """A relevant document whose rank changed between two runs."""

    document: str
    grade: float
    before: int | None
    """Rank in the first run, `after` in the second; None if not returned."""
    after: int | None
    title: str = ""
    text: str = ""


@dataclass(frozen=True)
class QueryDifference:
    """A query's values in two runs, and the relevant documents whose ranks changed most."""

    query: str
    first: float
    second: float
    text: str = ""
    documents: tuple[Shift, ...] = ()

    @property
    def difference(self) -> float:
        """Second value minus the first."""
        return self.second - self.first


@dataclass(frozen=True)
class QueryValues:
    """A query's values in two runs."""

    query: str
    before: float
    after: float
    difference: float
    outcome: str
    """"won", "lost" or "tied"; by a measure without a direction "higher", "lower" or "equal"."""


@dataclass(frozen=True, repr=False)
class QueryDifferences:
    """A second run compared with a first, query by query, where both have a value."""

    measure: str
    first: str
    second: str
    first_mean: float
    second_mean: float
    won: tuple[str, ...]
    """Queries on which the second is better, or higher for a measure without a direction; `lost` and `tied`
    accordingly."""
    lost: tuple[str, ...]
    tied: tuple[str, ...]
    up: tuple[QueryDifference, ...]
    """Largest gains; `down` has the largest losses."""
    down: tuple[QueryDifference, ...]
    unanswered: tuple[tuple[str, ...], tuple[str, ...]]
    """Unanswered queries of the first and of the second run."""
    left_out: int = 0
    """Number of queries without a value in at least one run."""
    notes: tuple[Note, ...] = ()
    queries: tuple[QueryValues, ...] = ()
    """Every query with a value in both runs, by identifier."""
    texts: Mapping[str, str] = field(default_factory=dict, compare=False)
    """{query: text}, for queries of a known collection."""

    __repr__ = member_text
    _repr_html_ = member_html


def query_differences(
    measure: str, names: tuple[str, str], first: Scores, second: Scores, top: int = 10
) -> QueryDifferences:
    """Return a second run's comparison with a first, query by query.

    top: number of largest gains, and of largest losses, to list.

    Raises BadValue if no query has a value in both, a run answers none, or judgments or conventions differ;
    UnknownName for an uncomputed measure.
    """
    for name, scores in zip(names, (first, second), strict=True):
        if not scores.answered.any():
            raise BadValue(f"{name} answers none of the {len(scores.queries)} judged queries")
    refuse_apart(measure, dict(zip(names, (first, second), strict=True)))
    order = first.id_order()[::-1]
    at = second.queries.codes(first.queries.strings.take(order))
    a, b = first.of(measure)[order], np.where(at >= 0, second.of(measure)[at], np.nan)
    defined = ~(np.isnan(a) | np.isnan(b))
    if not defined.any():
        raise BadValue(f"{names[0]} and {names[1]} share no query with a value of {measure}")
    queries = [first.queries[q] for q in order[defined].tolist()]
    a, b = a[defined], b[defined]
    gains = (b - a) * (direction(measure) or 1)
    others = int(np.count_nonzero(first.queries.codes(second.queries.strings) < 0))
    won, lost, tied = (tuple(compress(queries, rows.tolist())) for rows in (gains > 0, gains < 0, a == b))
    largest = []  # gains, then losses
    for gain in (gains, -gains):
        rows = np.argsort(-gain, kind="stable")[:top]
        moved = rows[gain[rows] > 0].tolist()
        largest.append(tuple(QueryDifference(queries[q], float(a[q]), float(b[q])) for q in moved))
    unanswered = [
        tuple(sorted(one.queries[q] for q in np.flatnonzero(~one.answered).tolist()))
        for one in (first, second)
    ]
    words = WORDS[bool(direction(measure))][3:6]
    outcomes = [words[0 if gain > 0 else 1 if gain < 0 else 2] for gain in gains.tolist()]
    every = zip(queries, a.tolist(), b.tolist(), (b - a).tolist(), outcomes, strict=True)
    return QueryDifferences(
        measure,
        names[0],
        names[1],
        averaged(exact_mean(a), measure in first.geometric),
        averaged(exact_mean(b), measure in second.geometric),
        *(won, lost, tied),
        *(largest[0], largest[1]),
        (unanswered[0], unanswered[1]),
        int(np.count_nonzero(~defined)) + others,
        tuple(system_notes(dict(zip(names, (first, second), strict=True)))),
        tuple(QueryValues(*one) for one in every),
    )


def with_documents(differences: QueryDifferences, qrels: Qrels, first: Run, second: Run) -> QueryDifferences:
    """Return the differences, each listed query with its relevant documents whose ranks changed most."""
    return _each(differences, lambda one: replace(one, documents=shifts(one.query, qrels, first, second)))


def shifts(query: str, qrels: Qrels, first: Run, second: Run) -> tuple[Shift, ...]:
    """Return up to three relevant documents of a query by change of 1 / log2(rank + 1) between runs, largest
    first.

    An unranked document counts 0; () for a query without judgments.
    """
    q = int(qrels.queries.codes([query])[0])
    if q < 0:
        return ()
    rows = np.arange(qrels.ptr[q], qrels.ptr[q + 1])
    rows = rows[qrels.grade[rows] > 0]
    names = [qrels.docs[int(d)] for d in qrels.doc[rows]]
    before, after = ranks_of(first, query, names), ranks_of(second, query, names)
    grades = plain_grades(qrels.grade[rows])
    # A move is measured as the change of 1 / log2(rank + 1): from 1 to 5 is farther than from 500 to 900.
    weights = [np.where(rank > 0, 1 / np.log2(np.maximum(rank, 1) + 1.0), 0.0) for rank in (before, after)]
    far = np.abs(weights[0] - weights[1])
    order = np.lexsort((-qrels.grade[rows].astype(np.float64), -far))
    return tuple(
        Shift(names[i], grades[i], int(before[i]) or None, int(after[i]) or None)
        for i in order[:SHOWN_DOCUMENTS].tolist()
        if before[i] != after[i]
    )


def with_texts(
    differences: QueryDifferences, queries: Queries | None, corpus: Corpus | None
) -> QueryDifferences:
    """Return the differences with the collection's texts of queries and documents; None leaves them out.

    Raises BadValue if the collection has none of the queries.
    """
    if (
        queries is not None
        and not (queries.ids.codes([*differences.won, *differences.lost, *differences.tied]) >= 0).any()
    ):
        raise BadValue("the collection holds none of these queries; is it another one?")

    if queries is not None:
        names = [one.query for one in differences.queries]
        known = [(q, int(row)) for q, row in zip(names, queries.ids.codes(names), strict=True) if row >= 0]
        differences = replace(differences, texts={q: queries.text[row] for q, row in known})

    def with_text(one: QueryDifference) -> QueryDifference:
        q = -1 if queries is None else int(queries.ids.codes([one.query])[0])
        documents = one.documents if corpus is None else described(one.documents, corpus)
        return replace(one, text="" if queries is None or q < 0 else queries.text[q], documents=documents)

    return _each(differences, with_text)


def described(moved: Sequence[Shift], corpus: Corpus) -> tuple[Shift, ...]:
    """Return the documents with titles and shortened texts, where the corpus has them."""
    codes = corpus.ids.codes([shift.document for shift in moved]).tolist()
    return tuple(
        replace(
            shift,
            title="" if corpus.title is None else corpus.title[d],
            text=" ".join(corpus.text[d].split())[:EXCERPT_LETTERS],
        )
        if d >= 0
        else shift
        for shift, d in zip(moved, codes, strict=True)
    )


def _each(
    differences: QueryDifferences, change: Callable[[QueryDifference], QueryDifference]
) -> QueryDifferences:
    return replace(
        differences, up=tuple(map(change, differences.up)), down=tuple(map(change, differences.down))
    )


def ranks_of(run: Run, query: str, documents: Sequence[str]) -> Int64:
    """Return each document's rank for a query, int64[documents]; 0 if not ranked."""
    q = int(run.queries.codes([query])[0])
    if q < 0:
        return np.zeros(len(documents), np.int64)
    ranked = run.doc[run.ptr[q] : run.ptr[q + 1]]
    codes = run.docs.codes(documents)
    at = [np.flatnonzero(ranked == code)[:1] if code >= 0 else np.empty(0) for code in codes.tolist()]
    return np.array([int(place[0]) + 1 if len(place) else 0 for place in at], np.int64)


# Tables.

LISTED = 20
"""Largest number of queries listed by id."""
EXCERPT_CHARACTERS = 100
WORDS = {
    True: ("wins", "loses", "ties", "won", "lost", "tied", "largest gains", "largest losses"),
    False: (
        *("is higher on", "lower on", "equal on"),
        *("higher", "lower", "equal"),
        "largest rises",
        "largest falls",
    ),
}
"""Words for won, lost and tied queries, by measures with and without a direction."""


def _page(results: Sequence[QueryDifferences]) -> tuple[Table, ...]:
    tables = []
    for one in results:
        lines: list[list[str | Cell]] = [["query", one.first, one.second, "difference"]]
        for move in (*one.up, *one.down):
            head, *documents = (line.strip() for line in _move_lines(one, move))
            text = head.partition("query ")[2]
            values = score(move.first), score(move.second), change(move.difference)
            lines.append([Cell(text, inside=tuple(documents)), *values])
        first, *_, notes = _diff_tables([one])
        tables.append(table_of(lines, right=3, above=first.notes, notes=notes.notes))
    return tuple(tables)


def _diff_tables(results: Sequence[QueryDifferences]) -> tuple[Table, ...]:
    tables = []
    for moves in results:
        queries = len(moves.won) + len(moves.lost) + len(moves.tied)
        words = WORDS[bool(direction(moves.measure))]
        lines = [
            f"{moves.measure}: {moves.first} {score(moves.first_mean)} -> {moves.second} {score(moves.second_mean)} "
            f"({change(moves.second_mean - moves.first_mean)}) on {count(queries)} queries",
            f"{moves.second} {words[0]} {count(len(moves.won))}, {words[1]} {count(len(moves.lost))}, "
            f"{words[2]} {count(len(moves.tied))}",
            *(str(note) for note in moves.notes if note.decisive),
        ]
        for name, listed in zip(words[3:6], (moves.won, moves.lost, moves.tied), strict=True):
            more = f" … and {count(len(listed) - LISTED)} more"
            more = more if len(listed) > LISTED else ""
            lines += [f"  {name}: {' '.join(listed[:LISTED])}{more}"] if listed else []
        tables.append(sentences(*lines))
        for title, largest in zip(words[6:], (moves.up, moves.down), strict=True):
            if largest:
                lines = [line for move in largest for line in _move_lines(moves, move)]
                tables.append(sentences(f"{title} of {moves.second}", *lines))
        left_out = f"{count(moves.left_out)} queries are left out, as only one side has a value"
        tables.append(
            sentences(
                f"differences: {moves.second} minus {moves.first}",
                f"{words[3]}, {words[4]}: by any difference, however small; equal scores: documents by descending "
                "identifier, as trec_eval",
                *([left_out] if moves.left_out else []),
                *(str(note) for note in moves.notes if not note.decisive),
            )
        )
    return tuple(tables)


DIFFERENCES = ResultKind("diff", QueryDifferences, _diff_tables, page=_page, parts="queries")


def _move_lines(moves: QueryDifferences, move: QueryDifference) -> list[str]:
    text = f"  {shown(move.text)}" if move.text else ""
    names = zip((moves.first, moves.second), moves.unanswered, strict=True)
    silent = [name for name, queries in names if move.query in queries]
    flag = f"  (not answered by {' and '.join(silent)})" if silent else ""
    lines = [f"  {score(move.first)} -> {score(move.second)}  query {move.query}{text}{flag}"]
    for shift in move.documents:
        before, after = ("-" if rank is None else str(rank) for rank in (shift.before, shift.after))
        content = " | ".join(part for part in (shift.title, shift.text) if part)
        words = f"  {shown(content)}" if content else ""
        lines.append(f"      rank {before} -> {after}  {shift.document} (grade {shift.grade:g}){words}")
    return lines


def shown(text: str) -> str:
    """Return a text as one line of at most EXCERPT_CHARACTERS characters, cut with "…"."""
    line = " ".join(text.split())
    return line if len(line) <= EXCERPT_CHARACTERS else line[: EXCERPT_CHARACTERS - 1] + "…"
