"""Judgments for each intent (subtopic) of a query, and the join of a run with them.

One join serves all: documents are looked up once, and what was found is spread over the intents.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weir.argument_types import checked
from weir.core import frames
from weir.core.hooks import Hook
from weir.core.input_shapes import grades_of
from weir.core.judged import Judged
from weir.core.qrels import Qrels, grade_column, grade_of, plain_grades
from weir.core.run import Run
from weir.core.strings import Float64, Grades, Ids, Int32, Int64
from weir.core.tables import first_rows
from weir.errors import BadValue

_MOST_JUDGED = 2**15 - 1  # judged documents of a query: they are numbered by 16-bit grades


READ_INTENTS: Hook[[str | os.PathLike[str]], IntentQrels] = Hook("reading judgments for each intent")
WRITE_INTENTS: Hook[[IntentQrels, str | os.PathLike[str]], None] = Hook("writing judgments for each intent")


@dataclass(frozen=True, eq=False, repr=False)
class IntentQrels:
    """Who judged what for which intent: one grade for each judged (query, intent, document).

    numbered: the judged documents of each query, whose grade is their place among them, from 0; query: int32[P]
    the query of each (query, intent), ascending; intent: int32[n], row: int32[n], grade: [n] as of Qrels: the number
    of the (query, intent), the row of `numbered` and the grade of each judgment, by intent then row; names: P texts,
    what each (query, intent) is called within its query; weight: float64[P], how much each counts to measures that ask
    (1 a vital nugget, 0.5 one that is okay), None where all count alike.
    """

    numbered: Qrels
    query: Int32
    intent: Int32
    row: Int32
    grade: Grades
    names: tuple[str, ...]
    weight: Float64 | None = None

    @staticmethod
    def of(judgments: Mapping[Any, Any]) -> IntentQrels:
        """Judgments from {query: {intent: {document: grade}}}; a query without any is left out.

        The documents of an intent may be a list or a set of relevant ones, too, as `Qrels.of` takes them.

        Raises BadValue for a grade that is no finite number, naming query, intent and document.
        """
        judged = [
            (str(q), str(i), str(d), grade_of(grade, f"query '{q}', intent '{i}', document '{d}'"))
            for q, intents in judgments.items()
            for i, grades in _mapping(intents, f"query '{q}'").items()
            for d, grade in grades_of(f"query '{q}', intent '{i}'", grades).items()
        ]
        queries, intents, docs, grades = map(list, zip(*judged, strict=True)) if judged else ([], [], [], [])
        return IntentQrels.from_rows(queries, intents, docs, grades)

    @staticmethod
    def from_rows(
        queries: list[str],
        intents: list[str],
        docs: list[str],
        grades: Sequence[float],
        bank: Mapping[tuple[str, str], float] | None = None,
    ) -> IntentQrels:
        """Judgments from aligned lists; queries and documents are numbered as they appear.

        bank: the weight of (query, intent), also of those for which no document is judged, as far as one is for another
        intent of the query; one that is left out counts 1.

        Raises BadValue for a document judged twice for one intent, a grade beyond ±16384, and a query with more
        than 32,767 judged documents.
        """
        query_ids, query = _numbers(queries)
        doc_ids, doc = _numbers(docs)
        here = set(queries)
        alone = [key for key in bank or () if key[0] in here]
        every = [*queries, *(q for q, _ in alone)], [*intents, *(i for _, i in alone)]
        _, name = _numbers(every[1])
        pair = query.astype(np.int64) * len(doc_ids) + doc
        rows, row = np.unique(pair, return_inverse=True)
        of_row, doc_of_row = np.divmod(rows, max(len(doc_ids), 1))
        ptr = np.searchsorted(of_row, np.arange(len(query_ids) + 1)).astype(np.int64)
        if len(rows) and int(np.diff(ptr).max()) > _MOST_JUDGED:
            most = int(np.argmax(np.diff(ptr)))
            raise BadValue(f"query '{query_ids[most]}' has more than {_MOST_JUDGED:,} judged documents")
        place = (np.arange(len(rows)) - ptr[of_row]).astype(np.int16)
        numbered = Qrels(query_ids, doc_ids, ptr, doc_of_row.astype(np.int32), place)
        query_of_pair = query_ids.codes(every[0]) if alone else query
        _, first, intent = np.unique(
            query_of_pair.astype(np.int64) * (int(name.max(initial=0)) + 1) + name,
            return_index=True,
            return_inverse=True,
        )
        intent = intent[: len(row)]
        order = np.lexsort((row, intent))
        intent, row = intent[order].astype(np.int32), row[order].astype(np.int32)
        twice = np.flatnonzero((intent[1:] == intent[:-1]) & (row[1:] == row[:-1]))
        if len(twice):
            at = int(order[twice[0]])
            raise BadValue(
                f"query '{queries[at]}', intent '{intents[at]}' judges document '{docs[at]}' twice"
            )
        return IntentQrels(
            numbered,
            query_of_pair[first].astype(np.int32),
            intent,
            row,
            grade_column(np.array(grades))[order],
            tuple(every[1][at] for at in first.tolist()),
            None
            if bank is None
            else np.array([bank.get((every[0][at], every[1][at]), 1.0) for at in first.tolist()]),
        )

    @staticmethod
    @checked
    def load(path: str | os.PathLike[str]) -> IntentQrels:
        """The judgments in TREC's four columns, the intent in the second; raises as `read_intents`."""
        return READ_INTENTS(path)

    @checked
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write TREC's four columns; raises BadValue for an identifier with white space."""
        WRITE_INTENTS(self, path)

    def __repr__(self) -> str:
        return f"<IntentQrels: {len(self):,} queries, {len(self.query):,} intents, {len(self.grade):,} judgments>"

    def _repr_html_(self) -> str:
        """The first rows, as notebooks show them."""
        columns = self.columns()
        return first_rows(columns, 3, repr(self)[1:-1]).html()

    def to_dict(self) -> dict[str, dict[str, dict[str, float]]]:
        """{query: {intent: {document: grade}}}; a whole grade is an int."""
        by_query: dict[str, dict[str, dict[str, float]]] = {}
        columns = self.columns() | {"grade": plain_grades(self.grade)}
        for query, intent, document, grade in zip(*columns.values(), strict=True):
            by_query.setdefault(query, {}).setdefault(intent, {})[document] = grade
        return by_query

    to_frame = frames.to_frame

    def columns(self) -> dict[str, Any]:
        """Query, intent, doc and grade."""
        queries = self.numbered.queries.tolist()
        return {
            "query": [queries[code] for code in self.query[self.intent].tolist()],
            "intent": [self.names[number] for number in self.intent.tolist()],
            "doc": self.numbered.docs.take(self.numbered.doc[self.row]).tolist(),
            "grade": self.grade,
        }

    def __len__(self) -> int:
        return len(self.numbered)

    def best(self) -> Grades:
        """[rows] as `grade`: the best grade of each judged document for any intent of its query."""
        best: Grades = np.full(len(self.numbered.doc), np.iinfo(np.int16).min, self.grade.dtype)
        np.maximum.at(best, self.row, self.grade)
        return best

    def only(self, queries: NDArray[np.integer]) -> IntentQrels:
        """The judgments of these queries, by ascending number, renumbered from 0."""
        before, numbered = self.numbered.ptr, self.numbered.only(queries)
        number = np.full(len(self.numbered), -1, np.int32)
        number[queries] = np.arange(len(queries), dtype=np.int32)
        intents = np.flatnonzero(number[self.query] >= 0)
        place = np.full(len(self.query), -1, np.int32)
        place[intents] = np.arange(len(intents), dtype=np.int32)
        judged = np.flatnonzero(place[self.intent] >= 0)
        old = self.query[self.intent[judged]]
        row = self.row[judged] - before[old] + numbered.ptr[number[old]]
        return IntentQrels(
            numbered,
            number[self.query[intents]],
            place[self.intent[judged]],
            row.astype(np.int32),
            self.grade[judged],
            tuple(self.names[at] for at in intents.tolist()),
            None if self.weight is None else self.weight[intents],
        )

    def several(self) -> bool:
        """Whether any query has several intents."""
        return len(self.query) > len(self)


@dataclass(frozen=True, eq=False)
class JudgedIntents:
    """Where the documents judged for each intent stand in each ranking.

    joined: the join with the numbered documents of `qrels`: its grades say which document stands there.
    """

    qrels: IntentQrels
    joined: Judged

    def found(self, k: int | None, rel: float) -> tuple[Int32, Int32]:
        """Intent and rank of each document found within the first k that is relevant to the intent, in order."""
        rows = self.qrels.numbered.ptr[self.joined.query] + self.joined.grade
        rank = np.zeros(len(self.qrels.numbered.doc), np.int32)
        rank[rows] = self.joined.rank
        return self._spread(rank, k, rel)

    def ideal(self, k: int | None, rel: float, alpha: float) -> tuple[Int32, Int32]:
        """As `found` for the ranking that takes whatever adds most, a document wanted before counting less.

        Each document for an intent leaves 1 - alpha of what the next one for it adds; of equal ones the larger
        identifier stands first. The best ranking is too hard to find; this one is ndeval's.
        """
        numbered, relevant = self.qrels.numbered, self.qrels.grade >= rel
        rank = np.zeros(len(numbered.doc), np.int32)
        ends = np.searchsorted(self.qrels.query[self.qrels.intent], np.arange(len(numbered) + 1))
        for q in range(len(numbered)):
            mine = np.arange(ends[q], ends[q + 1])[relevant[ends[q] : ends[q + 1]]]
            if len(mine):
                rows, row = np.unique(self.qrels.row[mine], return_inverse=True)
                tie = numbered.docs.tie_ranks[numbered.doc[rows]]
                intents, intent = np.unique(self.qrels.intent[mine], return_inverse=True)
                wants = np.zeros((len(intents), len(rows)), np.bool_)
                wants[intent, row] = True
                rank[rows] = _greedy(wants, tie, alpha, k)
        return self._spread(rank, k, rel)

    def _spread(self, rank_of_row: Int32, k: int | None, rel: float) -> tuple[Int32, Int32]:
        """Intent and rank of the relevant documents that have a rank, in order."""
        rank = rank_of_row[self.qrels.row]
        ranked = (self.qrels.grade >= rel) & (rank > 0) & ((rank <= k) if k is not None else True)
        intent, rank = self.qrels.intent[ranked], rank[ranked]
        order = np.lexsort((rank, intent))
        return intent[order], rank[order]

    def relevant(self, rel: float) -> Int64:
        """How many documents are relevant to each intent, int64[P]."""
        return np.bincount(self.qrels.intent[self.qrels.grade >= rel], minlength=len(self.qrels.query))

    def intents(self, rel: float) -> Int64:
        """How many intents of each query have a relevant document at all, int64[Q]: the others do not count."""
        return np.bincount(self.qrels.query[self.relevant(rel) > 0], minlength=len(self.qrels))

    def total(self, of_intent: Float64) -> Float64:
        """The sum over the intents of each query, float64[Q]."""
        sums = np.bincount(self.qrels.query, of_intent, minlength=len(self.qrels))
        return sums.astype(np.float64, copy=False)


def joined(run: Run, qrels: Qrels | IntentQrels) -> Judged:
    """Join a run with judgments of documents, or of documents for each intent."""
    if isinstance(qrels, IntentQrels):
        return with_intents(Judged.of(run, qrels.numbered), qrels)
    return Judged.of(run, qrels)


def with_intents(joined: Judged, qrels: IntentQrels) -> Judged:
    """The join with judgments of documents, whatever the intent, that knows the intents too.

    joined: a run joined with `qrels.numbered`. The grade of a document is the best it has for any intent.
    """
    best, numbered = qrels.best(), qrels.numbered
    ideal = best[np.lexsort((-best, numbered.query_of_row()))]
    grade = best[numbered.ptr[joined.query] + joined.grade]
    intents = JudgedIntents(qrels, joined)
    return replace(joined, grade=grade, ideal=ideal, intents=intents, judgments=qrels)


def _greedy(wants: NDArray[np.bool_], tie: Int32, alpha: float, k: int | None) -> Int32:
    """The rank of each document, int32[D]; wants: bool[intents, D]; those beyond rank k have 0."""
    order = np.argsort(tie)
    wants = wants[:, order]
    remaining, open_ = np.ones(len(wants)), np.ones(wants.shape[1], np.bool_)
    rank = np.zeros(wants.shape[1], np.int32)
    for number in range(1, min(wants.shape[1], k or wants.shape[1]) + 1):
        # Added intent after intent, as a matrix product need not: rounding decides between near ties.
        gain = np.add.reduce(np.where(wants, remaining[:, None], 0.0), axis=0)
        gain[~open_] = -1.0
        chosen = int(np.argmax(gain))
        open_[chosen], rank[order[chosen]] = False, number
        remaining[wants[:, chosen]] *= 1.0 - alpha
    return rank


def _numbers(names: list[str]) -> tuple[Ids, Int32]:
    """The distinct names in the order of their first use, and the number of each."""
    number_of: dict[str, int] = {}
    numbers = np.array([number_of.setdefault(name, len(number_of)) for name in names], np.int32)
    return Ids.of(number_of), numbers


def _mapping(value: object, where: str) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise BadValue(f"{where}: found {type(value).__name__}; expected {{intent: {{document: grade}}}}")
    return value
