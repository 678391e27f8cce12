"""Searching a table on a PostgreSQL server: the statement of a search, composed and never pasted, and who asks it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from weir.errors import ServiceError, require
from weir.plugins.servers.postgres_server import opened, said
from weir.plugins.servers.postgres_settings import (
    DISTANCES,
    PostgresSettings,
    TextSearch,
    UserTable,
    VectorSearch,
)
from weir.services.asking import Outcome, Request, Retried
from weir.services.attempts import AttemptError, until_answered
from weir.services.limits import Clock, Limits
from weir.systems.remote.result_list import kept_ranking

if TYPE_CHECKING:
    import psycopg

__all__ = ["PostgresAsker", "SearchedTable"]

MOST_CANDIDATES = 1000
"""What pgvector takes for hnsw.ef_search."""
ITERATIVE = (0, 8)
"""The version of pgvector from which HNSW goes on searching until it has found as many as are asked for."""
_TSQUERIES = {
    "websearch": "websearch_to_tsquery({config}::regconfig, %(text)s)",
    "plain": "plainto_tsquery({config}::regconfig, %(text)s)",
    "phrase": "phraseto_tsquery({config}::regconfig, %(text)s)",
    # Any of the words: each lexeme quoted as a tsquery wants it.
    "or": (
        "(SELECT string_agg('''' || replace(replace(lexeme, '\\', '\\\\'), '''', '''''') || '''', ' | ')"
        " FROM unnest(to_tsvector({config}::regconfig, %(text)s)))::tsquery"
    ),
}


@dataclass(frozen=True)
class SearchedTable:
    """A table and how it is searched.

    settings: where it is; search: how; name: its schema and name; versions: of what answers; own: whether Weir made it;
    bytes: on the server, 0 where that is not known; reused: documents that were there before it was filled.
    """

    settings: PostgresSettings
    search: TextSearch | VectorSearch
    name: tuple[str, ...]
    versions: Mapping[str, str]
    own: bool = True
    bytes: int = 0
    reused: int = 0

    def statement(self) -> psycopg.sql.Composed:
        """The search, with the parameters text or vector, and k: rows of (document, score), best first.

        Equal scores stand in Weir's order of ties, by identifier in descending order of bytes.
        """
        sql = require("psycopg", "postgres").sql
        user = None if self.own else self.settings.table
        parts = {
            "table": sql.Identifier(*self.name),
            "doc": sql.SQL("{}::text").format(sql.Identifier("id" if user is None else user.id)),
            "tie": sql.SQL("place") if user is None else sql.SQL('doc COLLATE "C" DESC'),
            "place": sql.SQL(", place") if user is None else sql.SQL(""),
        }
        composed = self._by_text if isinstance(self.search, TextSearch) else self._by_vector
        return composed(sql, user, parts)

    def _by_text(self, sql: Any, user: UserTable | None, parts: dict[str, Any]) -> psycopg.sql.Composed:  # noqa: ANN401  psycopg.sql, imported when used
        search = self.search
        assert isinstance(search, TextSearch)
        config = sql.Literal(search.config)
        tsvector = sql.Identifier("tsv" if user is None else user.tsvector)
        if user is not None and user.text:
            # As an index of an expression over these columns would be written, so that it is used.
            columns = [sql.SQL("coalesce({}, '')").format(sql.Identifier(column)) for column in user.text]
            tsvector = sql.SQL("to_tsvector({}::regconfig, {})").format(
                config, sql.SQL(" || ' ' || ").join(columns)
            )
        query = sql.SQL(_TSQUERIES[search.query]).format(config=config)
        found: psycopg.sql.Composed = sql.SQL(
            "SELECT doc, score FROM ("
            "SELECT {doc} AS doc, {rank}({tsvector}, asked.query, {mask}) AS score{place} "
            "FROM {table}, (SELECT {query} AS query) AS asked WHERE {tsvector} @@ asked.query"
            ") AS found ORDER BY score DESC, {tie} LIMIT %(k)s"
        ).format(
            **parts,
            rank=sql.SQL(search.rank),
            tsvector=tsvector,
            mask=sql.Literal(search.normalization),
            query=query,
        )
        return found

    def _by_vector(self, sql: Any, user: UserTable | None, parts: dict[str, Any]) -> psycopg.sql.Composed:  # noqa: ANN401  psycopg.sql, imported when used
        search = self.search
        assert isinstance(search, VectorSearch)
        column = sql.Identifier("embedding" if user is None else user.vector)
        far = sql.SQL("{} {} %(vector)s::vector").format(column, sql.SQL(DISTANCES[search.distance]))
        score = {"inner": "-far", "cosine": "1 - far", "l2": "-far"}[search.distance]
        # An index finds the nearest by distance alone, and ties are settled among them; without one they decide, too.
        nearest = sql.SQL(" ORDER BY {} LIMIT %(k)s" if search.index == "hnsw" else "").format(far)
        found: psycopg.sql.Composed = sql.SQL(
            "SELECT doc, {score} AS score FROM ("
            "SELECT {doc} AS doc, {far} AS far{place} FROM {table}{nearest}"
            ") AS found ORDER BY far, {tie} LIMIT %(k)s"
        ).format(**parts, score=sql.SQL(score), far=far, nearest=nearest)
        return found

    def prepare(self, connection: psycopg.Connection[Any], k: int) -> None:
        """Settings of a connection that decide how vectors are searched."""
        search = self.search
        if not isinstance(search, VectorSearch):
            return
        if search.index == "exact":
            connection.execute("SET enable_indexscan = off")
            return
        candidates = str(min(max(search.ef_search, k), MOST_CANDIDATES))
        connection.execute("SELECT set_config('hnsw.ef_search', %s, false)", [candidates])
        if tuple(map(int, self.versions["pgvector"].split(".")[:2])) >= ITERATIVE:
            connection.execute("SET hnsw.iterative_scan = strict_order")


@dataclass(eq=False)
class PostgresAsker:
    """One connection that answers a request after the other.

    vectors: of the requests by number, None for text. Asks again, over another connection, where one breaks.
    """

    table: SearchedTable
    vectors: NDArray[np.float32] | None
    retried: Retried
    limits: Limits = field(default_factory=Limits)
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self._statement = self.table.statement()
        self._connection: psycopg.Connection[Any] | None = None

    def ask(self, requests: Sequence[Request]) -> Iterator[Outcome]:
        """One outcome for each request: its ranking."""
        for request in requests:
            yield self._outcome(request)

    def close(self) -> None:
        """Hang up."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _outcome(self, request: Request) -> Outcome:
        text, k = request.asked["text"], request.asked["k"]
        if not text.strip():
            return Outcome(request, kept_ranking([]))
        parameters: dict[str, Any] = {"k": k, "text": text.replace("\0", " ")}
        if self.vectors is not None:
            parameters["vector"] = "[" + ",".join(map(str, self.vectors[request.number].tolist())) + "]"
        again: Callable[[AttemptError, float], None] = lambda error, _: self.retried(error)  # noqa: E731  named for its type
        try:
            rows, seconds = until_answered(lambda: self._rows(parameters), self.limits, self.clock, again)
            answer = kept_ranking(rows)
        except AttemptError as error:
            return Outcome(request, error=error)
        except ValueError as error:
            return Outcome(request, error=AttemptError("malformed", str(error), again=False))
        return Outcome(request, answer, seconds)

    def _rows(self, parameters: dict[str, Any]) -> tuple[list[tuple[Any, float]], float]:
        """(rows of an answer, seconds it took); raises AttemptError."""
        psycopg = require("psycopg", "postgres")
        try:
            connection = self._opened(parameters["k"])
            start = time.perf_counter()
            rows = connection.execute(self._statement, parameters, prepare=True, binary=True).fetchall()
            return rows, time.perf_counter() - start
        except (psycopg.Error, ServiceError) as error:
            self.close()
            raise _attempt(error, self.table.settings) from None

    def _opened(self, k: int) -> psycopg.Connection[Any]:
        if self._connection is None:
            self._connection = opened(self.table.settings, read_only=True)
            self.table.prepare(self._connection, k)
        return self._connection


def _attempt(error: Exception, settings: PostgresSettings) -> AttemptError:
    """What an error of the server means: whether asking again may help."""
    psycopg = require("psycopg", "postgres")
    text = str(error) if isinstance(error, ServiceError) else said(error, settings)
    if isinstance(error, psycopg.errors.QueryCanceled):
        return AttemptError("timed out", text, again=False)
    passing = isinstance(error, (psycopg.OperationalError, ServiceError))
    return AttemptError("failed" if passing else "refused", text, again=passing)
