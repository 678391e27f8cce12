"""PostgreSQL as a system: full-text search and pgvector."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from weir.core.corpus import Corpus, Queries
from weir.core.run import Run
from weir.errors import BadValue, ServiceError, StoreError, require
from weir.files.atomic import atomic_dir
from weir.files.integrity import open_folder, seal_folder
from weir.models.hosted import LoadedEncoder
from weir.plugins.servers.postgres_table import (
    DISTANCES,
    PostgresSettings,
    ServerTable,
    TableState,
    TextSearch,
    UserTable,
    VectorSearch,
    connected,
    dropped_tables,
    error_line,
    failing_as,
    filled_table,
    new_connection,
    read_postgres_settings,
    server_versions,
    table_state,
)
from weir.registry import SESSION, declared_version
from weir.services.answers import Outcome, Request, RequestPolicy, Retried, ServiceUsage
from weir.services.requests import AttemptError, Clock, Limits, retry
from weir.settings import settings
from weir.systems.compose import shown, then
from weir.systems.dense import DenseRetriever, encoder_of, query_vectors
from weir.systems.protocol import IN_MEMORY, Component, Context, Costs, called, folder_of
from weir.systems.remote.remote_searcher import RemoteSearcher, RemoteService, content_of, kept_ranking
from weir.systems.vectors.ann import Loss

if TYPE_CHECKING:
    import psycopg

# ----------
# The statement of a search, and the connection that executes it.


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
        statement: psycopg.sql.Composed = sql.SQL(
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
        return statement

    def _by_vector(self, sql: Any, user: UserTable | None, parts: dict[str, Any]) -> psycopg.sql.Composed:  # noqa: ANN401  psycopg.sql, imported when used
        search = self.search
        assert isinstance(search, VectorSearch)
        column = sql.Identifier("embedding" if user is None else user.vector)
        far = sql.SQL("{} {} %(vector)s::vector").format(column, sql.SQL(DISTANCES[search.distance]))
        score = {"inner": "-far", "cosine": "1 - far", "l2": "-far"}[search.distance]
        # An index finds the nearest by distance alone, and ties are settled among them; without one they decide, too.
        nearest = sql.SQL(" ORDER BY {} LIMIT %(k)s" if search.index == "hnsw" else "").format(far)
        statement: psycopg.sql.Composed = sql.SQL(
            "SELECT doc, {score} AS score FROM ("
            "SELECT {doc} AS doc, {far} AS far{place} FROM {table}{nearest}"
            ") AS found ORDER BY far, {tie} LIMIT %(k)s"
        ).format(**parts, score=sql.SQL(score), far=far, nearest=nearest)
        return statement

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
        """Close the connection."""
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
            rows, seconds = retry(lambda: self._rows(parameters), self.limits, self.clock, again)
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
            if self._connection is None:
                self._connection = new_connection(self.table.settings, read_only=True)
                self.table.prepare(self._connection, parameters["k"])
            connection = self._connection
            start = time.perf_counter()
            rows = connection.execute(self._statement, parameters, prepare=True, binary=True).fetchall()
            return rows, time.perf_counter() - start
        except (psycopg.Error, ServiceError) as error:
            self.close()
            raise _attempt(error, self.table.settings) from None


def _attempt(error: Exception, settings: PostgresSettings) -> AttemptError:
    """What an error of the server means: whether asking again may help."""
    psycopg = require("psycopg", "postgres")
    text = str(error) if isinstance(error, ServiceError) else error_line(error, settings)
    if isinstance(error, psycopg.errors.QueryCanceled):
        return AttemptError("timed out", text, again=False)
    passing = isinstance(error, (psycopg.OperationalError, ServiceError))
    return AttemptError("failed" if passing else "refused", text, again=passing)


# ----------
# Searching for all queries, by text or by the vectors of an encoder.


@dataclass(frozen=True, eq=False)
class PostgresSearcher:
    """A table on a server, ready to answer.

    name: of the system, in messages; about: everything that decides an answer; dense: what makes vectors of queries,
    None for full text; use: what was asked.
    """

    name: str
    table: SearchedTable
    corpus: Corpus
    about: Mapping[str, object]
    dense: DenseRetriever | None = None
    use: ServiceUsage = field(default_factory=lambda: ServiceUsage(""))

    @cached_property
    def loaded(self) -> LoadedEncoder:
        """The encoder, loaded when it is first needed."""
        assert self.dense is not None
        return self.dense.encoder.load(settings().device)

    def search(self, queries: Queries, k: int, context: Context = IN_MEMORY) -> Run:
        """The k best documents for each query, none for one without text; raises as RemoteSearcher."""
        service = RemoteService(
            self.name,
            self.about,
            partial(PostgresAsker, self.table, self._vectors(queries)),
            RequestPolicy(self.table.settings.concurrency),
            self.table.settings.on_failure,
        )
        return RemoteSearcher(service, self.corpus, self.use).search(queries, k, context)

    def loss(self, queries: Queries, k: int) -> Loss:
        """What HNSW loses of the exact k best of these queries, which are asked exactly too, for nothing else.

        Raises BadValue where it searches exactly, ServiceError as `search`.
        """
        search = self.table.search
        if isinstance(search, TextSearch) or search.index == "exact":
            raise BadValue(f"{self.name} searches exactly; only an approximate index loses anything")
        table = replace(self.table, search=replace(search, index="exact"))
        about = {**self.about, SESSION: "asked exactly"}
        exact = replace(self, table=table, about=about, use=ServiceUsage("")).search(queries, k)
        near = replace(self, use=ServiceUsage("")).search(queries, k)
        pairs = [np.stack([run.query_of_row(), run.doc]) for run in (exact, near)]
        missed = {*map(tuple, pairs[0].T.tolist())} - {*map(tuple, pairs[1].T.tolist())}
        return Loss(0.0, len(missed) / max(1, len(exact.doc)))

    def costs(self) -> Costs:
        """The table on the server, what was asked of it and how long that took."""
        services = (self.use.named(self.name),)
        return Costs(self.table.bytes, self.table.reused, services=services)

    def _vectors(self, queries: Queries) -> NDArray[np.float32] | None:
        """The queries' vectors, zeros for one without text, which is not asked."""
        numbers = np.array([i for i, text in enumerate(queries.text.tolist()) if text.strip()], np.int64)
        if self.dense is None or not len(numbers):
            return None
        encoded = query_vectors(self.dense.encoder, self.loaded, queries.take(numbers))
        vectors = np.zeros((len(queries), encoded.shape[1]), np.float32)
        vectors[numbers] = encoded
        return vectors


# ----------
# The systems: a table that Weir fills, or one that is there.


FORMAT = 1


@dataclass(frozen=True)
class WrittenName:
    """How a system was written: the file of its settings, and what was error_line beside it."""

    file: str
    given: tuple[tuple[str, object], ...] = ()

    def __str__(self) -> str:
        return called("postgres", [self.file], dict(self.given))


@dataclass(frozen=True)
class PostgresCollection:
    """A collection in a table that Weir makes on a server, searched by PostgreSQL itself.

    written: its name; settings: the server and how is searched; dense: what makes vectors, None for full text; version:
    what stands for the server's own version in keys, None where any will do, as the result's record names it.
    """

    written: WrittenName
    settings: PostgresSettings
    dense: DenseRetriever | None = None
    version: str | None = None

    __repr__ = shown
    __rshift__ = then

    def __str__(self) -> str:
        return str(self.written)

    @property
    def search_settings(self) -> TextSearch | VectorSearch:
        """How the table is searched."""
        return self.settings.text if self.dense is None else self.settings.vector

    def title(self) -> tuple[str, str]:
        """The file, and the name that it gives."""
        return self.written.file, self.settings.name

    @property
    def service(self) -> str:
        """The server that the file names."""
        return f"the PostgreSQL server of {self.written.file}"

    def describe(self) -> dict[str, object]:
        """What decides the rankings on a given server; raises DownloadError where a checkpoint is not here."""
        description: dict[str, object] = {"system": "postgres", "search": self.search_settings.facts()}
        description["on_failure"] = self.settings.on_failure
        description |= {} if self.version is None else {"version": self.version}
        return description | ({} if self.dense is None else {"encoder": self.dense.describe()})

    def fields_read(self) -> tuple[str, ...]:
        """The fields of a document that are copied, or encoded."""
        return (self.settings.text.view,) if self.dense is None else self.dense.fields_read()

    def indexed_as(self) -> PostgresCollection:
        """The table and its index, however they are searched."""
        text, vector = self.settings.text, self.settings.vector
        settings = replace(
            self.settings,
            text=TextSearch(config=text.config, view=text.view),
            vector=replace(vector, ef_search=VectorSearch().ef_search),
        )
        return replace(
            self,
            settings=settings,
            written=replace(
                self.written,
                given=tuple(
                    (name, value) for name, value in self.written.given if name in ("encoder", "index")
                ),
            ),
        )

    def fetch(self) -> None:
        """Download the encoder's checkpoint where it is not here; raises DownloadError where that fails."""
        if self.dense is not None:
            self.dense.fetch()

    def index(self, corpus: Corpus, context: Context = IN_MEMORY) -> PostgresSearcher:
        """Copy the collection to the server, all that is not there; the folder notes the table.

        Raises ServiceError where the server refuses or cannot be reached.
        """
        vectors = (
            None if self.dense is None else self.dense.index(corpus, replace(context, folder=None)).vectors
        )
        table = ServerTable(
            self.settings,
            self.search_settings,
            corpus,
            (
                {
                    "format": FORMAT,
                    "corpus": content_of(corpus, self.fields_read()),
                    "system": self.indexed_as().describe(),
                }
            ),
            vectors,
        )
        state = filled_table(table, context.progress)
        if context.folder is not None:
            with atomic_dir(context.folder) as folder:
                facts = {
                    "format": FORMAT,
                    "table": table.name,
                    "documents": len(corpus),
                    "versions": state.versions,
                }
                seal_folder(folder, "index.json", facts)
        return self._searcher(corpus, table.name, state)

    def open(self, corpus: Corpus, context: Context) -> PostgresSearcher:
        """Open the table that `index` made of the same corpus; raises StoreError where it is not there any more."""
        at = folder_of(context)
        facts = open_folder(at, "index.json")
        with connected(self.settings, read_only=True) as connection, failing_as(self.settings):
            state = table_state(connection, self.settings, str(facts.get("table")))
        if state is None or state.documents != len(corpus):
            raise StoreError(f"{at}: the server has no complete table {facts.get('table')}; it is made again")
        return self._searcher(corpus, str(facts["table"]), state)

    def uninstall(self) -> list[str]:
        """Drop every table that Weir made in the schema of this server; their names. Raises ServiceError."""
        return dropped_tables(self.settings)

    def _searcher(self, corpus: Corpus, table: str, state: TableState) -> PostgresSearcher:
        name, versions = (self.settings.schema, table), state.versions
        searched = SearchedTable(
            self.settings, self.search_settings, name, versions, bytes=state.bytes, reused=state.reused
        )
        content = content_of(corpus, self.fields_read())
        about = {
            **self.describe(),
            "corpus": content,
            "versions": versions,
            "answered by": state.identity,
        }
        return PostgresSearcher(str(self), searched, corpus, about, self.dense, ServiceUsage("", versions))


@dataclass(frozen=True)
class PostgresTable:
    """A table that is there already and is only read; arguments as PostgresCollection.

    Its rows may change, so that a version stands for them; without one, what is found is made again in each process.
    """

    written: WrittenName
    settings: PostgresSettings
    dense: DenseRetriever | None = None
    version: str | None = None

    __repr__ = shown
    __rshift__ = then

    def __str__(self) -> str:
        return str(self.written)

    def title(self) -> tuple[str, str]:
        """The file, and the name that it gives."""
        return self.written.file, self.settings.name

    @property
    def service(self) -> str:
        """The server that the file names."""
        return f"the PostgreSQL server of {self.written.file}"

    def describe(self) -> dict[str, object]:
        """The table, how it is searched, and its version, or a session."""
        assert self.settings.table is not None
        search = self.settings.text if self.dense is None else self.settings.vector
        description: dict[str, object] = {"system": "postgres", "search": search.facts()}
        description |= {"on_failure": self.settings.on_failure, "table": self.settings.table.facts()}
        description |= declared_version(self.version)
        return description | ({} if self.dense is None else {"encoder": self.dense.describe()})

    def fetch(self) -> None:
        """Download the encoder's checkpoint where it is not here; raises DownloadError where that fails."""
        if self.dense is not None:
            self.dense.fetch()

    def components(self) -> tuple[Component, ...]:
        """None: nothing is kept here."""
        return ()

    def index(self, corpus: Corpus, context: Context = IN_MEMORY) -> PostgresSearcher:
        """Nothing is indexed; raises ServiceError where the server cannot be reached, BadValue without pgvector."""
        assert self.settings.table is not None
        with connected(self.settings, read_only=True) as connection, failing_as(self.settings):
            versions = server_versions(connection, self.dense is not None)
        search = self.settings.text if self.dense is None else self.settings.vector
        name = tuple(self.settings.table.name.split("."))
        searched = SearchedTable(self.settings, search, name, versions, own=False)
        about = {**self.describe(), "versions": versions}
        return PostgresSearcher(str(self), searched, corpus, about, self.dense, ServiceUsage("", versions))

    def open(self, corpus: Corpus, context: Context) -> PostgresSearcher:
        """As `index`: nothing is kept."""
        return self.index(corpus, context)


def postgres(
    file: str,
    query: str | None = None,
    rank: str | None = None,
    encoder: str | DenseRetriever | None = None,
    index: str | None = None,
    version: str | None = None,
) -> PostgresCollection | PostgresTable:
    """PostgreSQL: its full-text search, or pgvector, on a table that Weir makes there or on one of one's own.

    file: TOML that names the server and what is searched, see docs/servers.md; query: websearch, plain, phrase or
    or; rank: ts_rank or ts_rank_cd; encoder: a model as dense takes it, or a dense(...), whose vectors pgvector
    searches instead of texts; index: exact or hnsw; version: what stands for the table, or the server, in keys. What is
    None is taken from the file. Raises FormatError for the file, BadValue and UnknownName for settings.
    """
    if not isinstance(file, str) or not file:
        raise BadValue(f"postgres: file is {file!r}; expected a TOML file")
    declared_version(version)
    settings = read_postgres_settings(Path(file))
    arguments = {"query": query, "rank": rank, "encoder": encoder, "index": index, "version": version}
    written = WrittenName(
        file, tuple((name, value) for name, value in arguments.items() if value is not None)
    )
    for name in ("query", "rank") if arguments["encoder"] is not None else ("index",):
        if arguments[name] is not None:
            other = "full text" if arguments["encoder"] is None else "vectors"
            raise BadValue(f"postgres: {name} does not apply to a search of {other}")
    text, vector = settings.text, settings.vector
    settings = replace(
        settings,
        text=replace(text, query=query or text.query, rank=rank or text.rank),
        vector=replace(vector, index=index or vector.index),
    )
    made = DenseRetriever(encoder_of(encoder)) if isinstance(encoder, str) else encoder
    if not isinstance(made, (DenseRetriever, type(None))):
        raise BadValue(
            f'postgres: encoder is {encoder!r}; expected a model, such as "minilm", or a dense(...)'
        )
    if settings.table is None:
        return PostgresCollection(written, settings, made, version)
    if made is None and not (settings.table.text or settings.table.tsvector):
        raise BadValue(
            f'{written}: [table] names a vector alone; say which encoder asks it: encoder="minilm"'
        )
    if made is not None and not settings.table.vector:
        raise BadValue(f"{written}: [table] names no vector column, which an encoder needs")
    return PostgresTable(written, settings, made, version)
