"""What a system answered."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weir.argument_types import checked
from weir.core import frames
from weir.core.corpus import Queries
from weir.core.filters import DocumentLists, DocumentMasks
from weir.core.hooks import Hook
from weir.core.input_shapes import scores_of_ranking
from weir.core.order import (
    Ties,
    by_score,
    close_as_floats,
    compared,
    float_ranks,
    is_ordered,
    ranks,
    settled,
    tie_groups,
    tied,
    tied_beyond,
)
from weir.core.strings import Float64, Ids, Int32, Int64
from weir.core.tables import first_rows
from weir.errors import BadRanking, BadValue

READ_RUN: Hook[[str | os.PathLike[str], Ties], Run] = Hook("reading a run")
WRITE_RUN: Hook[[Run, str | os.PathLike[str]], None] = Hook("writing a run")


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """Rankings, one for each query: in trec order and free of duplicates by construction, read-only.

    queries: the queries asked (some may have an empty ranking); docs: the documents that codes refer
    to; ptr: int64[Q + 1]; doc: int32[n] (-1: a document outside `docs`, of which only the place is known);
    score: float64[n]; name; ties: the rule by which scores were compared (see core/order.py); float_rank: int32[n] the
    rank of each row by "trec9", where whoever read the run knew more identifiers than `docs` holds and it is another;
    doubts: sentences on what makes another order probable, as ranks that contradict scores (see core/rank_order.py).
    """

    queries: Ids
    docs: Ids
    ptr: Int64
    doc: Int32
    score: Float64
    name: str = "run"
    ties: Ties = "trec"
    float_rank: Int32 | None = None
    doubts: tuple[str, ...] = ()

    @staticmethod
    def of(rankings: Mapping[Any, Any], name: str = "run", ties: Ties = "trec") -> Run:
        """A run from {query: {document: score}}, as pytrec_eval, ranx and BEIR hold it; never changes it.

        A ranking may be a list of documents in rank order, too: {"q1": ["d1", "d2"]}; it has no ties. So may a list of
        (document, score) pairs, an array, or a pandas Series of scores by document. Raises BadRanking for a score that
        is not a finite number, for a document twice in a ranking and for what is no ranking.
        """
        if not isinstance(rankings, Mapping):
            raise BadRanking(
                f"found {type(rankings).__name__} as the rankings; expected {{query: {{document: score}}}}; a frame "
                "goes into weir.evaluate and weir.compare as it is"
            )
        rankings = {
            query_id: scores_of_ranking(f"query '{query_id}'", ranking)
            for query_id, ranking in rankings.items()
        }
        queries = Ids.of(rankings)
        documents: dict[str, int] = {}
        doc = [documents.setdefault(str(d), len(documents)) for ranking in rankings.values() for d in ranking]
        query = np.repeat(np.arange(len(queries), dtype=np.int32), [len(r) for r in rankings.values()])
        score = _numbers([s for ranking in rankings.values() for s in ranking.values()])
        return Run.from_columns(
            queries, Ids.of(documents), query, np.array(doc, np.int32), score, Named(name, ties)
        )

    @staticmethod
    def from_columns(
        queries: Ids,
        docs: Ids,
        query: NDArray[np.integer],
        doc: Int32,
        score: Float64,
        named: Named | None = None,
    ) -> Run:
        """A run from aligned columns in any order: query number, document number, score.

        Raises BadRanking for a document twice in one ranking or a score that is not finite.
        """
        named = named or Named()
        query = query.astype(np.int32, copy=False)
        bad = np.flatnonzero(~np.isfinite(score))
        if len(bad):
            at = int(bad[0])
            where = f"query '{queries[int(query[at])]}', document '{docs[int(doc[at])]}'"
            raise BadRanking(f"{where}: the score is {score[at]}; expected a finite number")
        _refuse_duplicates(queries, docs, query, doc)
        key = compared(score, named.ties)
        if not is_ordered(query, key):
            order = settled(by_score(query, key), query, key, lambda rows: docs.tie_ranks[doc[rows]])
            query, doc, score = query[order], doc[order], score[order]
        ptr = np.searchsorted(query, np.arange(len(queries) + 1, dtype=query.dtype)).astype(np.int64)
        return Run(queries, docs, ptr, doc.astype(np.int32), score, named.name, named.ties)

    @staticmethod
    @checked
    def load(path: str | os.PathLike[str], ties: Ties = "trec") -> Run:
        """The run in a file of any format (docs/formats.md); raises as `weir.files.runs.read_run`."""
        return READ_RUN(path, ties)

    @checked
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the run in the format that the file's name says, whole or not at all; raises as `write_run`."""
        WRITE_RUN(self, path)

    def __len__(self) -> int:
        return len(self.queries)

    def __repr__(self) -> str:
        return f"<Run {self.name}: {len(self.queries):,} queries, {len(self.doc):,} documents returned>"

    def _repr_html_(self) -> str:
        """The first rows, as notebooks show them."""
        columns = self.top(5).columns() if len(self.doc) and self.doc.min() >= 0 else {}
        return first_rows(columns, 2, repr(self)[1:-1]).html()

    to_frame = frames.to_frame

    def columns(self) -> dict[str, Any]:
        """Query, doc, rank and score, in rank order; raises BadValue as `to_dict`."""
        self.refuse_nameless()
        names = self.queries.tolist()
        return {
            "query": [names[code] for code in self.query_of_row().tolist()],
            "doc": self.docs.take(self.doc).tolist(),
            "rank": self.ranks(),
            "score": self.score,
        }

    def query_of_row(self) -> Int32:
        """The query number of each row."""
        return np.repeat(np.arange(len(self.queries), dtype=np.int32), np.diff(self.ptr))

    def to_dict(self) -> dict[str, dict[str, float]]:
        """{query: {document: score}}, documents in rank order.

        Raises BadValue for a run that was read without the identifiers of all its documents.
        """
        self.refuse_nameless()
        docs, scores, cuts = self.docs.take(self.doc).tolist(), self.score.tolist(), self.ptr.tolist()
        return {
            name: dict(zip(docs[a:b], scores[a:b], strict=True))
            for name, a, b in zip(self.queries.tolist(), cuts[:-1], cuts[1:], strict=True)
        }

    def top(self, k: int) -> Run:
        """The first k of every ranking; raises BadValue for k below 1."""
        if k < 1:
            raise BadValue(f"k is {k}; expected a whole number from 1")
        return self._keep(self.ranks() <= k)

    def ranks(self) -> Int64:
        """The rank of each row, from 1."""
        return ranks(self.ptr)

    def without_self(self) -> Run:
        """The run without answers whose identifier is the query's own.

        The one home of self-matches (ArguAna, Quora: the query is a document). Fetch one more than
        needed before calling it, so that k other documents remain. Raises BadValue for a run that was
        read without the identifiers of all its documents.
        """
        self.refuse_nameless()
        own = self.docs.codes(self.queries.strings)
        return self._keep(self.doc != own[self.query_of_row()])

    def collapsed(self, parents: Mapping[str, str] | str) -> Run:
        """The run of the documents that passages are of, each at the place and with the score of its best passage.

        parents: the document of each passage; or the separator that stands last between a document and the number of
        its passage, as in "d1#3", and an identifier without it is a document. Raises BadValue for a passage without a
        document, a separator in no identifier, and as `without_self`.
        """
        self.refuse_nameless()
        names = self.docs.tolist()
        if isinstance(parents, str):
            if not parents or (names and not any(name.rpartition(parents)[0] for name in names)):
                example = f", such as '{names[0]}'" if names else ""
                raise BadValue(f"the separator {parents!r} stands in no identifier of a passage{example}")
            parents = {name: name.rpartition(parents)[0] or name for name in names}
        if orphan := next((name for name in names if name not in parents), None):
            raise BadValue(f"parents name no document of passage '{orphan}'")
        documents = Ids.of(dict.fromkeys(parents[name] for name in names))
        doc = documents.codes([parents[name] for name in names])[self.doc]
        query = self.query_of_row()
        best = np.unique(query.astype(np.int64) * max(len(documents), 1) + doc, return_index=True)[1]
        columns = query[best], doc[best].astype(np.int32), self.score[best]
        return Run.from_columns(self.queries, documents, *columns, Named(self.name, self.ties))

    def allowed(self, queries: Queries) -> Run:
        """What may be ranked: for each of the queries, by identifier, its candidates without those excluded for it.

        Likewise what fits its filter. Rankings of other queries stay as they are. Raises as `without_self`, BadValue
        for filters of which nobody has said which documents fit.
        """
        metadata = queries.metadata
        if metadata is None:
            return self
        run, code = self, queries.ids.codes(self.queries.strings)
        for name, lists in metadata.lists():
            aligned = lists.take(code)
            run = run.among(aligned) if name == "candidates" else run.without(aligned)
        fitting = metadata.fitting()
        return run if fitting is None else run.permitted(fitting.take(code))

    def without(self, excluded: DocumentLists) -> Run:
        """The run without the documents listed for each of its queries, aligned with them; raises as `without_self`."""
        return self._keep(~self._listed(excluded))

    def among(self, candidates: DocumentLists) -> Run:
        """The run with no document but those listed for each of its queries, aligned with them.

        A query with an empty list keeps all. Raises as `without_self`.
        """
        return self._keep(self._listed(candidates) | (candidates.lengths() == 0)[self.query_of_row()])

    def permitted(self, masks: DocumentMasks) -> Run:
        """The run without documents that may not be ranked for their query, aligned with its queries.

        Raises as `without_self`.
        """
        self.refuse_nameless()
        doc = self.doc if self.docs is masks.docs else masks.docs.codes(self.docs.strings)[self.doc]
        return self._keep(masks.allow(self.query_of_row(), doc))

    def tied_beyond(self, k: int) -> NDArray[np.bool_]:
        """Whether the k-th score of each ranking goes on beyond k."""
        return tied_beyond(self.ptr, compared(self.score, self.ties), k)

    def tied(self) -> Int32:
        """How many answers of each query share their score with another answer to it."""
        return tied(self.ptr, tie_groups(self.ptr, compared(self.score, self.ties)))

    def float_ranks(self) -> Int32 | None:
        """The rank of each row where scores compare as floats; None where it is the same, or documents are nameless."""
        if self.ties == "trec9" or int(self.doc.min(initial=0)) < 0:
            return self.float_rank
        close = close_as_floats(self.ptr, self.score)
        if len(close[0]) == 0:
            return None
        return float_ranks(self.ptr, close, self.docs.take(self.doc[close[0]]).strings)

    def refuse_nameless(self) -> None:
        """Raise BadValue where some documents are outside `docs`, so that their identifiers are not known."""
        if len(self.doc) and int(self.doc.min()) < 0:
            raise BadValue(
                f"{self.name}: only the judged documents were read with their identifiers; read the whole run"
            )

    def _listed(self, lists: DocumentLists) -> NDArray[np.bool_]:
        """Which rows hold a document that is listed for their query."""
        self.refuse_nameless()
        code, width = lists.codes_in(self.docs), max(len(self.docs), 1)
        present = code >= 0
        pairs = lists.query_of_row()[present].astype(np.int64) * width + code[present]
        return np.isin(self.query_of_row().astype(np.int64) * width + self.doc, pairs)

    def _keep(self, rows: NDArray[np.bool_]) -> Run:
        if rows.all():
            return self
        rows_before = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(rows, out=rows_before[1:])
        return replace(
            self, ptr=rows_before[self.ptr], doc=self.doc[rows], score=self.score[rows], float_rank=None
        )


@dataclass(frozen=True)
class Named:
    """What a run is called and how its scores compare."""

    name: str = "run"
    ties: Ties = "trec"


def _numbers(values: list[float]) -> Float64:
    texts = [t.__name__ for t in set(map(type, values)) if issubclass(t, (str, bytes))]
    if texts:  # numpy would read them, and "nan" and "1_0" with them
        raise BadRanking(f"a score is {texts[0]}; expected a number")
    try:
        numbers = np.array(values, np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise BadRanking(f"a score is not a number: {error}") from None
    if numbers.ndim != 1:
        raise BadRanking("a score is a list; expected a number")
    return numbers


def _refuse_duplicates(queries: Ids, docs: Ids, query: NDArray[np.integer], doc: Int32) -> None:
    pair = query.astype(np.int64)
    pair *= len(docs) + 1
    pair += doc
    pair.sort()
    twice = np.flatnonzero(pair[1:] == pair[:-1])
    if len(twice):
        q, d = divmod(int(pair[twice[0]]), len(docs) + 1)
        raise BadRanking(
            f"query '{queries[q]}' ranks document '{docs[d]}' twice; remove the duplicates first"
        )
