"""Asking systems and re-rankers, which may be anybody's: what fails is named, what is no answer is refused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from weir.core.corpus import Queries
from weir.core.run import Run
from weir.core.strings import Float64
from weir.errors import BadRanking, PluginError, ServiceError, WeirError
from weir.systems.protocol import Scorer, Searcher

__all__ = ["rankings", "scores"]


def rankings(searcher: Searcher, queries: Queries, k: int, who: object, collection: str = "") -> Run:
    """What a searcher answers, checked to be a ranking, empty or not, for each query in their order.

    who: the system's name; collection: where it answers, both for messages. Raises PluginError where it fails with
    anything but a WeirError or answers with something else, naming system, collection and queries; ServiceError and
    BadRanking name them too.
    """
    with _named(who, collection, queries):
        run = searcher.search(queries, k)
        if wrong := _wrong(run, queries):
            raise PluginError(wrong)
    return run


def scores(scorer: Scorer, queries: Queries, candidates: Run, who: object) -> Float64:
    """What a re-ranker answers: float64, one finite score for each candidate; errors as `rankings`."""
    with _named(who, "", queries):
        given = scorer.scores(queries, candidates)
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
def _named(who: object, collection: str, queries: Queries) -> Iterator[None]:
    """Say in every error that may be another's doing who was asked what, and where."""
    try:
        yield
    except (PluginError, ServiceError, BadRanking) as error:
        raise type(error)(f"{_place(who, collection)}: {error}") from error
    except (WeirError, MemoryError):
        raise
    except Exception as error:
        count = len(queries)
        asked = f"{count:,} queries, the first '{queries.ids[0]}'" if count else "no queries"
        found = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise PluginError(f"{_place(who, collection)}, asked {asked}: failed with {found}") from error


def _place(who: object, collection: str) -> str:
    return f"{who} on {collection}" if collection else str(who)


def _kind(given: object) -> str:
    return "nothing" if given is None else f"a {type(given).__name__}"


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
