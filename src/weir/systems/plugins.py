"""Asking systems and re-rankers, which may be anybody's: what fails is named, what is no answer is refused."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from weir.core.corpus import Corpus, Queries
from weir.core.ids import Ids
from weir.core.run import Named, Run
from weir.core.strings import Float64
from weir.errors import BadRanking, BadValue, PluginError, ServiceError, WeirError
from weir.systems.protocol import IN_MEMORY, Context, Retriever, Scorer, Searcher
from weir.systems.restricted import restricted_search

__all__ = ["indexed", "rankings", "run_of_answer", "scores"]


def indexed(part: Retriever, corpus: Corpus, context: Context = IN_MEMORY) -> Searcher:
    """The index that a system makes of a corpus; raises PluginError, naming it, where it fails with anything but a
    WeirError, or makes something that cannot be searched."""
    with _named(part, "", f"indexing {len(corpus):,} documents"):
        searcher = part.index(corpus, context)
        if not isinstance(searcher, Searcher):
            raise PluginError(
                f"made {_kind(searcher)} of a corpus; expected a searcher, with search(queries, k, context) and costs()"
            )
    return searcher


def rankings(
    searcher: Searcher,
    queries: Queries,
    k: int,
    who: object,
    collection: str = "",
    context: Context = IN_MEMORY,
) -> Run:
    """What a searcher answers of what may be ranked, checked to be a ranking for each query, in their order.

    who: the system's name; collection: where it answers, both for messages. Raises PluginError where it fails with
    anything but a WeirError or answers with something else, naming system, collection and queries; ServiceError and
    BadRanking name them too.
    """
    with _named(who, collection, _asked(queries)):
        run = restricted_search(searcher, queries, k, context)
        if wrong := _wrong(run, queries):
            raise PluginError(wrong)
    return run


def scores(
    scorer: Scorer, queries: Queries, candidates: Run, who: object, context: Context = IN_MEMORY
) -> Float64:
    """What a re-ranker answers: float64, one finite score for each candidate.

    Raises PluginError for what are no numbers, BadRanking, naming query and document, for too few, too many, and scores
    that are not finite; both name the re-ranker, as other errors do, see `rankings`.
    """
    with _named(who, "", _asked(queries)):
        given = scorer.scores(queries, candidates, context)
        try:
            found = np.asarray(given, np.float64)
        except (TypeError, ValueError):
            raise PluginError(f"answered with {_kind(given)}; expected a number for each candidate") from None
        wanted = len(candidates.doc)
        if found.shape != (wanted,):
            raise BadRanking(f"{found.size} scores for {wanted} candidates; expected one for each")
        bad = np.flatnonzero(~np.isfinite(found))
        if len(bad):
            query = candidates.queries[int(candidates.query_of_row()[bad[0]])]
            document = candidates.docs[int(candidates.doc[bad[0]])]
            raise BadRanking(
                f"{len(bad)} of {wanted} scores are not finite, the first that of query '{query}', "
                f"document '{document}': {found[bad[0]]}"
            )
    return found


@contextmanager
def _named(who: object, collection: str, doing: str) -> Iterator[None]:
    """Say in every error that may be another's doing who was asked what, and where."""
    try:
        yield
    except (PluginError, ServiceError, BadRanking) as error:
        raise type(error)(f"{_place(who, collection)}: {error}") from error
    except (WeirError, MemoryError):
        raise
    except Exception as error:
        found = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise PluginError(f"{_place(who, collection)}, {doing}: failed with {found}") from error


def _asked(queries: Queries) -> str:
    count = len(queries)
    return f"asked {count:,} queries, the first '{queries.ids[0]}'" if count else "asked no queries"


def _place(who: object, collection: str) -> str:
    return f"{who} on {collection}" if collection else str(who)


def _kind(given: object) -> str:
    if given is None:
        return "nothing"
    name = type(given).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def _wrong(run: object, queries: Queries) -> str:
    """What makes an answer no run of these queries, "" where nothing does."""
    if not isinstance(run, Run):
        return f"answered with {_kind(run)}; expected a weir.Run"
    if run.queries is not queries.ids and run.queries != queries.ids:
        return f"answered {len(run)} queries of other names or order than the {len(queries)} asked"
    rows, known = len(run.doc), len(run.docs)
    whole = len(run.ptr) == len(queries) + 1 and run.ptr[0] == 0 and run.ptr[-1] == rows == len(run.score)
    if not whole or (np.diff(run.ptr) < 0).any():
        return "answered with a run whose rows do not fit its queries"
    if rows and not (int(run.doc.min()) >= 0 and int(run.doc.max()) < known):
        return f"answered with documents beyond the {known:,} that it names"
    return "" if np.isfinite(run.score).all() else "answered with scores that are not finite"


def run_of_answer(answer: object, queries: Queries, documents: Ids, name: str) -> Run:
    """A run of what a function answered: whatever `weir.evaluate` takes for one but a path, or a list of rankings in
    the queries' order.

    Raises BadRanking, naming the query, for a query that was not asked, a document that is unknown or stands twice, and
    a score that is none; PluginError for something else.
    """
    from weir.io.runs.frames import run_from  # the readers of files come with it

    if isinstance(answer, (list, tuple)):
        if len(answer) != len(queries):
            raise PluginError(f"answered with {len(answer)} rankings for {len(queries)} queries")
        answer = dict(zip(queries.ids, answer, strict=True))
    if answer is None or isinstance(answer, (str, os.PathLike, int, float)):
        raise PluginError(
            f"answered with {_kind(answer)}; expected {{query: {{document: score}}}} or {{query: [documents]}}"
        )
    try:
        given = run_from(answer, name)
    except BadValue as error:
        raise PluginError(f"answered with {_kind(answer)}: {error}") from None
    query, doc = queries.ids.codes(given.queries.strings), documents.codes(given.docs.strings)
    for number in np.flatnonzero(query < 0):
        raise BadRanking(f"answered query '{given.queries[int(number)]}', which was not asked")
    rows, code = query[given.query_of_row()], doc[given.doc].astype(np.int32)
    for row in np.flatnonzero(code < 0):
        found = f"document '{given.docs[int(given.doc[row])]}' is not in the collection"
        raise BadRanking(f"query '{queries.ids[int(rows[row])]}': {found}")
    return Run.from_columns(queries.ids, documents, rows, code, given.score, Named(name, given.ties))
