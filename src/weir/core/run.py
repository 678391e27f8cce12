"""Runs: the rankings that a system returned."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from weir.argument_types import checked, named_arguments
from weir.core import frames, mapping_views
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
from weir.core.strings import Float64, Ids, Int32, Int64, offsets
from weir.core.tables import first_rows
from weir.errors import BadRanking, BadValue, conversion, warn_of_ranking

if TYPE_CHECKING:
    from weir.core.corpus import Queries
    from weir.core.filters import DocumentLists, DocumentMasks

READ_RUN: Hook[[str | os.PathLike[str], Ties], Run] = Hook("reading a run")
WRITE_RUN: Hook[[Run, str | os.PathLike[str]], None] = Hook("writing a run")


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """A system's ranking for each query: descending score, then descending document id."""

    queries: Ids
    """All queries searched; a ranking may be empty."""
    docs: Ids
    ptr: Int64
    """int64[Q + 1]: row offsets of each query."""
    doc: Int32
    """int32[n]: codes into `docs`; -1 for a document that was read without its identifier."""
    score: Float64
    """float64[n]."""
    name: str = "run"
    ties: Ties = "trec"
    """The rule by which scores are compared."""
    float_rank: Int32 | None = None
    """int32[n]: ranks by "trec9", if they differ and identifiers of documents were not read; else None."""
    doubts: tuple[str, ...] = ()
    """Sentences on signs that another order was meant, such as ranks that contradict scores (core/rank_order.py)."""
    barred: tuple[int, int] = (0, 0)
    """(documents, rankings) removed because the queries do not allow them."""

    @staticmethod
    @named_arguments
    def of(rankings: Mapping[Any, Any], name: str = "run", ties: Ties = "trec") -> Run:
        """Return a run from {query: {document: score}}, the form of pytrec_eval, ranx and BEIR.

        A ranking may also be n documents in rank order (scores n to 1), (document, score) pairs, an array or a pandas
        Series.

        ties: "trec9" compares scores as 32-bit floats.

        Raises BadRanking for a score that is not a finite number, a repeated document, and any other form.
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
        score = _numbers(rankings)
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
        """Return a run from each row's query number, document number and score, in any order.

        Raises BadRanking for a repeated document or a score that is not finite.
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
        """Return the run in a file of any format (docs/formats.md), or of a results folder's only system.

        ties: "trec9" compares scores as 32-bit floats.

        Warns (RankingWarning) if ranks contradict scores, which decide. Raises FormatError for a missing file or
        invalid line, BadValue for a folder of several systems, BadRanking for a repeated document.
        """
        return READ_RUN(path, ties)

    @checked
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the run in the format of the file name's ending, by default TREC.

        Raises BadValue for an identifier that the format cannot hold.
        """
        WRITE_RUN(self, path)

    def __len__(self) -> int:
        return len(self.queries)

    def __getitem__(self, query: str) -> dict[str, float]:
        self.refuse_nameless()
        code = self.queries.code(query, "query of this run")
        rows = slice(*self.ptr[code : code + 2].tolist())
        return dict(zip(self.docs.take(self.doc[rows]).tolist(), self.score[rows].tolist(), strict=True))

    def __iter__(self) -> Iterator[str]:
        return iter(self.queries)

    def __contains__(self, query: object) -> bool:
        return isinstance(query, str) and bool(self.queries.codes([query])[0] >= 0)

    keys, values, items = mapping_views.keys, mapping_views.values, mapping_views.items
    get = mapping_views.get

    def __repr__(self) -> str:
        return f"<Run {self.name}: {len(self.queries):,} queries, {len(self.doc):,} documents returned>"

    def _repr_html_(self) -> str:
        columns = self.top(5).columns() if len(self.doc) and self.doc.min() >= 0 else {}
        return first_rows(columns, repr(self)[1:-1], len(self.doc) if columns else 0).html()

    to_frame = frames.to_frame

    def columns(self) -> dict[str, Any]:
        """Return {"query", "doc", "rank", "score": a value for each row}. Raises BadValue without document
        identifiers.
        """
        self.refuse_nameless()
        names = self.queries.tolist()
        return {
            "query": [names[code] for code in self.query_of_row().tolist()],
            "doc": self.docs.take(self.doc).tolist(),
            "rank": self.ranks(),
            "score": self.score,
        }

    def query_of_row(self) -> Int32:
        """Return the query number of each row, int32[n]."""
        return np.repeat(np.arange(len(self.queries), dtype=np.int32), np.diff(self.ptr))

    def to_dict(self) -> dict[str, dict[str, float]]:
        """Return {query: {document: score}}, in rank order. Raises BadValue without document identifiers."""
        self.refuse_nameless()
        docs, scores, cuts = self.docs.take(self.doc).tolist(), self.score.tolist(), self.ptr.tolist()
        return {
            name: dict(zip(docs[a:b], scores[a:b], strict=True))
            for name, a, b in zip(self.queries.tolist(), cuts[:-1], cuts[1:], strict=True)
        }

    def top(self, k: int) -> Run:
        """Return the run cut at rank k. Raises BadValue for k below 1."""
        if k < 1:
            raise BadValue(f"k is {k}; expected a whole number from 1")
        return self._keep(self.ranks() <= k)

    def ranks(self) -> Int64:
        """Return each row's rank, from 1, int64[n]."""
        return ranks(self.ptr)

    def without_self(self) -> Run:
        """Return the run without documents that bear their query's identifier. Raises BadValue without document
        identifiers.
        """
        self.refuse_nameless()
        own = self.docs.codes(self.queries.strings)
        return self._keep(self.doc != own[self.query_of_row()])

    def collapsed(self, parents: Mapping[str, str] | str) -> Run:
        """Return the run of whole documents, each with the score of its best passage.

        parents: {passage: document}, or the separator before a passage number ("#" in "d1#3"); identifiers without it
            stay.

        Raises BadValue for a passage without a document, a separator in no identifier, and without identifiers.
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

    def by_identifier(self, queries: Queries) -> Run:
        """Return the run with query identifiers in place of query texts, with a RankingWarning.

        Unchanged if a query is known by identifier, no text is known, or texts are ambiguous.
        """
        if not len(self.queries) or (queries.ids.codes(self.queries.strings) >= 0).any():
            return self
        texts = dict(zip(map(str.strip, queries.text.tolist()), queries.ids.tolist(), strict=True))
        names = [texts.get(name.strip(), name) for name in self.queries]
        found = [texts[name.strip()] for name in self.queries if name.strip() in texts]
        if len(texts) < len(queries) or not found or len(set(names)) < len(names):
            return self
        known = f"{len(found):,} of {len(names):,} queries are known by their texts, not by identifiers"
        warn_of_ranking(f"{self.name}: {known} such as '{found[0]}'")
        return replace(self, queries=Ids.of(names))

    def allowed(self, queries: Queries) -> Run:
        """Return the run with only the documents that candidates, exclusions and filters of `queries` allow.

        Rankings of other queries stay. Raises BadValue before filters are evaluated.
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
        """Return the run without the documents listed for each of its queries. Raises BadValue without document
        identifiers.
        """
        return self._keep(~self._listed(excluded))

    def among(self, candidates: DocumentLists) -> Run:
        """Return the run with only the documents listed for each query; an empty list allows all. Raises BadValue
        without document identifiers.
        """
        return self._keep(self._listed(candidates) | (candidates.lengths() == 0)[self.query_of_row()])

    def permitted(self, masks: DocumentMasks) -> Run:
        """Return the run with only the documents that the masks permit.

        masks: in the order of the run's queries; an unknown document passes only without a filter.

        Raises BadValue without document identifiers.
        """
        self.refuse_nameless()
        doc = self.doc if self.docs is masks.docs else masks.docs.codes(self.docs.strings)[self.doc]
        return self._keep(masks.allow(self.query_of_row(), doc))

    def tied_beyond(self, k: int) -> NDArray[np.bool_]:
        """Return True for each query whose ranks k and k + 1 are tied, bool[Q]."""
        return tied_beyond(self.ptr, compared(self.score, self.ties), k)

    def tied(self) -> Int32:
        """Return each query's number of documents with another's score, int32[Q]."""
        return tied(self.ptr, tie_groups(self.ptr, compared(self.score, self.ties)))

    def float_ranks(self) -> Int32 | None:
        """Return each row's rank by scores as 32-bit floats, int32[n]; None if unchanged or unknown."""
        if self.ties == "trec9" or int(self.doc.min(initial=0)) < 0:
            return self.float_rank
        close = close_as_floats(self.ptr, self.score)
        if len(close[0]) == 0:
            return None
        return float_ranks(self.ptr, close, self.docs.take(self.doc[close[0]]).strings)

    def refuse_nameless(self) -> None:
        """Raise BadValue if document identifiers were not read."""
        if len(self.doc) and int(self.doc.min()) < 0:
            raise BadValue(
                f"{self.name}: only the judged documents were read with their identifiers; read the whole run"
            )

    def _listed(self, lists: DocumentLists) -> NDArray[np.bool_]:
        self.refuse_nameless()
        code, width = lists.codes_in(self.docs), max(len(self.docs), 1)
        present = code >= 0
        pairs = lists.query_of_row()[present].astype(np.int64) * width + code[present]
        return np.isin(self.query_of_row().astype(np.int64) * width + self.doc, pairs)

    def _keep(self, rows: NDArray[np.bool_]) -> Run:
        if rows.all():
            return self
        ptr = offsets(rows)[self.ptr]
        return replace(self, ptr=ptr, doc=self.doc[rows], score=self.score[rows], float_rank=None)


@dataclass(frozen=True)
class Named:
    """The name of a run, and its rule for ties."""

    name: str = "run"
    ties: Ties = "trec"


def score_array(values: Sequence[Any], where: Callable[[int], str]) -> Float64:
    """Return scores as float64[rows]. Raises BadRanking, with the row named by `where`, for a value that is no
    number.
    """
    with suppress(TypeError, ValueError, OverflowError):
        numbers = np.array(values, np.float64)
        if numbers.ndim == 1:
            return numbers
    for row, value in enumerate(values):
        try:
            float(value)
        except (TypeError, ValueError, OverflowError):
            said = f"the score {repr(value)[:60]} is {type(value).__name__}"
            raise BadRanking(
                f"{where(row)}: {said}; expected a number of double precision{conversion(value)}"
            ) from None
    raise BadRanking("a score is a list; expected a number")


def _numbers(rankings: Mapping[Any, Mapping[Any, Any]]) -> Float64:
    values = [score for ranking in rankings.values() for score in ranking.values()]
    odd = str, bytes, bool, np.bool_
    if any(issubclass(t, odd) for t in set(map(type, values))):
        # numpy would read them, and "nan" and "1_0" with them
        places = ((q, d, s) for q, ranking in rankings.items() for d, s in ranking.items())
        query, doc, score = next(place for place in places if isinstance(place[2], odd))
        where = f"query '{query}', document '{doc}'"
        raise BadRanking(
            f"{where}: the score {score!r} is {type(score).__name__}; expected a number{conversion(score)}"
        )

    def where_of(row: int) -> str:
        places = ((q, d) for q, ranking in rankings.items() for d in ranking)
        query, doc = next(islice(places, row, None))
        return f"query '{query}', document '{doc}'"

    return score_array(values, where_of)


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
