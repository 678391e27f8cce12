"""PostgreSQL as a system: full-text search and pgvector, on Weir's own table or an existing one."""

from __future__ import annotations

import hashlib
import json
import math
import re
import struct
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from weir.argument_types import checked
from weir.core.corpus import Corpus, Queries, check_view
from weir.core.run import Run
from weir.errors import BadValue, ServiceError, StoreError, StoreWarning, give_warning, require
from weir.files.atomic import atomic_dir
from weir.files.integrity import open_folder, seal_folder
from weir.files.text_files import read_toml
from weir.models.hosted import LoadedEncoder
from weir.plugins.servers.vectors import MOST_CANDIDATES, VectorSearch, encoder_given, lost, vectors_of
from weir.registry import SESSION, check_whole, declared_version
from weir.services.answers import Outcome, Request, RequestPolicy, Retried, ServiceUsage
from weir.services.requests import AttemptError, Clock, Key, Limits, retry
from weir.settings import secret, settings
from weir.systems.compose import system_text, then
from weir.systems.composite import check_unknown, described_unknown, open_anew
from weir.systems.dense_search import DenseRetriever
from weir.systems.protocol import (
    ANSWERS,
    IN_MEMORY,
    Context,
    Costs,
    Progress,
    called,
    folder_of,
    index_repr,
    no_parts,
)
from weir.systems.remote.remote_searcher import (
    RemoteSearcher,
    RemoteService,
    check_choice,
    check_number,
    check_on_failure,
    check_text,
    content_of,
    kept_ranking,
    settings_value,
)
from weir.systems.restricted import permitted_only
from weir.systems.vectors.approximate import Loss
from weir.systems.vectors.store import StoredRows

if TYPE_CHECKING:
    import psycopg

# ----------
# Settings: what the TOML file says.


EXPECTED = "the settings of a PostgreSQL server, see docs/retrievers.md"
ADDRESS_VARIABLE = "(PG|POSTGRES|DATABASE_|WEIR_KEY_)[A-Z0-9_]*"
"""Pattern of environment variables that may hold the server's address."""
QUERIES = ("websearch", "plain", "phrase", "or")
RANKS = ("ts_rank", "ts_rank_cd")
DISTANCES = {"inner": "<#>", "cosine": "<=>", "l2": "<->"}
"""Name -> pgvector's operator; smaller is nearer."""


@dataclass(frozen=True)
class _TextSearch:
    """Settings of PostgreSQL's full-text search; raises BadValue for a value out of range."""

    config: str = "english"
    """PostgreSQL's text search configuration."""
    query: str = "websearch"
    """How a text becomes a tsquery: websearch, plain (all words), phrase or or (any word)."""
    rank: str = "ts_rank"
    """ts_rank or ts_rank_cd."""
    normalization: int = 0
    """The rank function's bit mask."""
    view: str = "title text"
    """The fields of a document that are indexed."""

    def __post_init__(self) -> None:
        check_choice("query", self.query, QUERIES)
        check_choice("rank", self.rank, RANKS)
        check_view(self.view)
        check_text("config", self.config)
        check_whole("normalization", self.normalization, 0, 63)

    def facts(self) -> dict[str, object]:
        return {"kind": "full text"} | {f.name: getattr(self, f.name) for f in fields(self)}


@dataclass(frozen=True)
class _UserTable:
    """An existing table of a PostgreSQL server, which Weir only reads, and its columns.

    Raises BadValue for wrong names, nothing to search, or both `text` and `tsvector`.
    """

    name: str
    """With its schema, such as shop.products."""
    id: str
    """The column of identifiers."""
    text: tuple[str, ...] = ()
    """Columns whose texts are searched; () with `tsvector` or for vectors alone."""
    tsvector: str = ""
    """A column of type tsvector."""
    vector: str = ""
    """The column of vectors; "" for none."""

    def __post_init__(self) -> None:
        for key in ("name", "id"):
            check_text(key, getattr(self, key))
        if not all(isinstance(column, str) and column for column in self.text):
            raise BadValue(f"text is {list(self.text)!r}; expected names of columns")
        if bool(self.text) + bool(self.tsvector) + bool(self.vector) == 0 or (self.text and self.tsvector):
            raise BadValue(
                "a table names text = [columns] or tsvector, or vector, or one of the first and vector"
            )

    def facts(self) -> dict[str, object]:
        columns = {"text": list(self.text), "tsvector": self.tsvector, "vector": self.vector}
        return {"name": self.name, "id": self.id} | {k: v for k, v in columns.items() if v}


@dataclass(frozen=True)
class PostgresSettings:
    """The address of a PostgreSQL server, and how Weir searches it.

    Raises BadValue for a value out of range, and a password in the address.
    """

    dsn: str = field(repr=False)
    """The address as libpq takes it, without a password, or ${NAME} of an environment variable that holds it."""
    schema: str = "weir"
    """The schema of Weir's own tables."""
    table: _UserTable | None = None
    """An existing table; None for one that Weir fills."""
    text: _TextSearch = field(default_factory=_TextSearch)
    vector: VectorSearch = field(default_factory=VectorSearch)
    concurrency: int = 8
    """Connections that search at a time."""
    timeout_s: float = 60.0
    """Time limit of a statement."""
    on_failure: str = "refuse"
    """How queries without an answer are treated: "refuse" or "missing"."""
    unknown: str = "refuse"
    """How documents of `table` that the collection lacks are treated: "refuse" or "drop"."""
    name: str = ""
    """The system's name in tables; "" takes the name of its file."""

    def __post_init__(self) -> None:
        check_text("dsn", self.dsn)
        check_text("schema", self.schema)
        check_on_failure("postgres", self.on_failure)
        check_unknown("postgres", self.unknown)
        check_whole("concurrency", self.concurrency, 1, 256)
        check_number("timeout_s", self.timeout_s, 1e6)
        variable = re.fullmatch(r"\$\{(.*)\}", self.dsn)
        if variable and not re.fullmatch(ADDRESS_VARIABLE, variable[1]):
            raise BadValue(
                f"dsn names the environment variable {variable[1]}; expected PG..., DATABASE_... or WEIR_KEY_..."
            )
        if variable is None and (
            re.search(r"(password|passfile)\s*=", self.dsn) or re.search(r"//[^/?@]*:[^/?@]+@", self.dsn)
        ):
            raise BadValue(
                "dsn holds a password, which belongs into the environment: PGPASSWORD, or the whole dsn as "
                '"${PGURL}"'
            )

    def connection_string(self) -> str:
        """Return the dsn, or the environment variable that it names; raises ServiceError if that is not set."""
        variable = re.fullmatch(r"\$\{(.*)\}", self.dsn)
        if variable is None:
            return self.dsn
        value = secret(variable[1])
        if value is None:
            raise ServiceError(
                f"this needs the address of the server in the environment variable {variable[1]}"
            )
        return value

    def server_facts(self) -> dict[str, str]:
        """Return host, port and database of the server, "" if unknown.

        Raises ServiceError for a malformed dsn or a variable that is not set.
        """
        psycopg, address = require("psycopg", "servers"), self.connection_string()
        with _failing_as(self):
            entries = psycopg.conninfo.conninfo_to_dict(address)
        names = {"host": "PGHOST", "port": "PGPORT", "dbname": "PGDATABASE"}
        return {name: str(entries.get(name) or secret(other) or "") for name, other in names.items()}


def read_postgres_settings(path: Path) -> PostgresSettings:
    """Return the settings in a TOML file; raises UnknownName for an unknown key, FormatError for any other
    fault."""
    entries = dict(read_toml(path, EXPECTED))
    table = entries.get("table")
    if isinstance(table, Mapping) and isinstance(table.get("text"), list):
        entries["table"] = {**table, "text": tuple(table["text"])}
    for name, kind in {"table": _UserTable, "text": _TextSearch, "vector": VectorSearch}.items():
        if name in entries:
            entries[name] = settings_value(kind, path, f"[{name}]", entries[name])
    return settings_value(PostgresSettings, path, "the file", entries)


# ----------
# The connection, and errors in one line.


CONNECT_SECONDS = 30
SHOWN_CHARACTERS = 300


@contextmanager
def _connected(settings: PostgresSettings, read_only: bool) -> Iterator[psycopg.Connection[Any]]:
    connection = _new_connection(settings, read_only)
    try:
        yield connection
    finally:
        connection.close()


def _new_connection(settings: PostgresSettings, read_only: bool) -> psycopg.Connection[Any]:
    connect = require("psycopg", "servers").connect
    with _failing_as(settings):
        connection: psycopg.Connection[Any] = connect(
            settings.connection_string(),
            autocommit=True,
            connect_timeout=CONNECT_SECONDS,
            application_name="weir",
        )
        milliseconds = int(1000 * settings.timeout_s)
        connection.execute("SELECT set_config('statement_timeout', %s, false)", [str(milliseconds)])
        if read_only:
            connection.execute("SET default_transaction_read_only = on")
    return connection


@contextmanager
def _failing_as(settings: PostgresSettings) -> Iterator[None]:
    psycopg = require("psycopg", "servers")
    try:
        yield
    except psycopg.Error as error:
        raise ServiceError(f"PostgreSQL: {_error_line(error, settings)}") from None


def _error_line(error: Exception, settings: PostgresSettings) -> str:
    secrets = [""]  # the address itself where it comes from the environment, and the password in it
    if settings.dsn.startswith("${"):
        psycopg = require("psycopg", "servers")
        with suppress(ServiceError, psycopg.Error):
            secrets.append(settings.connection_string())
            secrets.append(str(psycopg.conninfo.conninfo_to_dict(secrets[1]).get("password") or ""))
    text = str(error)
    for value in secrets:
        text = Key(None, value).masked(text)
    return text[:SHOWN_CHARACTERS] or type(error).__name__


def _server_versions(connection: psycopg.Connection[Any], vectors: bool) -> dict[str, str]:
    versions = {"PostgreSQL": str(connection.execute("SHOW server_version").fetchone()[0])}  # type: ignore[index]  # SHOW answers with one row
    if vectors:
        row = connection.execute("SELECT extversion FROM pg_extension WHERE extname = 'vector'").fetchone()
        if row is None:
            raise BadValue("PostgreSQL: pgvector is not installed in this database: CREATE EXTENSION vector")
        versions["pgvector"] = str(row[0])
    return versions


# ----------
# The tables of Weir's own:
#
# <schema>.indexes   a row for each table: name, about (what decides it), documents, versions, when it was complete
# <schema>.<name>    doc, place, id, and content with its tsvector, or the embedding
#
# Batches are committed in the order of documents: a killed process loses one of them at most, and the next process
# continues after the last. The row in `indexes` is completed last.


TEXT_CHARACTERS = 250_000
"""Characters of a document that are indexed: a tsvector may have one megabyte."""
BATCH_DOCUMENTS, BATCH_BYTES = 2_000, 4 << 20
"""Size of one transaction, the most that a killed process loses."""
OPERATORS = {"inner": "vector_ip_ops", "cosine": "vector_cosine_ops", "l2": "vector_l2_ops"}
_HEAD = b"PGCOPY\n\xff\r\n\x00" + struct.pack("!ii", 0, 0)
_END = struct.pack("!h", -1)

Fields = Callable[[int, int], Iterator[tuple[bytes, ...]]]


@dataclass(frozen=True, eq=False)
class _ServerTable:
    """The table that Weir makes for a collection's texts or vectors."""

    settings: PostgresSettings
    search: _TextSearch | VectorSearch
    corpus: Corpus
    about: dict[str, object]
    """Everything that decides the table; its hash is part of the name."""
    vectors: StoredRows | None = None
    """Vectors of the documents; None for a table of texts."""

    @property
    def table_name(self) -> str:
        text = json.dumps(self.about, sort_keys=True, default=str)
        kind = "text" if self.vectors is None else "vectors"
        return f"{kind}_{hashlib.blake2b(text.encode('utf-8'), digest_size=10).hexdigest()}"


@dataclass(frozen=True)
class _TableState:
    """The facts of a complete table of a collection on the server."""

    documents: int
    bytes: int
    """Size with its index."""
    versions: dict[str, str]
    """Versions of the server and pgvector that made it."""
    identity: str
    """The table's oid and the sum of the ids of the transactions that wrote its rows."""
    reused: int = 0
    """Documents that were there before it was filled."""


def _filled_table(table: _ServerTable, progress: Progress | None) -> _TableState:
    with _connected(table.settings, read_only=False) as connection, _failing_as(table.settings):
        connection.execute("SET statement_timeout = 0")  # an index of vectors takes its time
        sql = require("psycopg", "servers").sql
        schema = table.settings.schema
        with connection.transaction():  # of several processes one at a time
            connection.execute("SELECT pg_advisory_xact_lock(hashtext('weir'), 0)")
            if table.vectors is not None:
                connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
            if not _exists(connection, schema, "indexes"):
                connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(schema)))
                create = sql.SQL(
                    "CREATE TABLE IF NOT EXISTS {} "
                    "(name text PRIMARY KEY, about jsonb, documents bigint, versions jsonb, complete timestamptz)"
                )
                connection.execute(create.format(_named(table, "indexes")))
        with _alone(connection, table):
            state = _table_state(connection, table.settings, table.table_name)
            if state is not None and state.documents != len(table.corpus):
                here, total = state.documents, len(table.corpus)
                changed = f"{table.table_name} has {here:,} rows for {total:,} documents; it is made again"
                give_warning(StoreWarning(f"schema {table.settings.schema}: {changed}"))
                with connection.transaction():
                    connection.execute(sql.SQL("DROP TABLE {}").format(_named(table, table.table_name)))
                    forget = sql.SQL("DELETE FROM {} WHERE name = %s").format(_named(table, "indexes"))
                    connection.execute(forget, [table.table_name])
                state = None
            if state is None:
                if isinstance(table.search, _TextSearch):
                    own = sql.SQL(
                        "content text NOT NULL, tsv tsvector NOT NULL "
                        "GENERATED ALWAYS AS (to_tsvector({}::regconfig, left(content, {}))) STORED"
                    ).format(sql.Literal(table.search.config), sql.Literal(TEXT_CHARACTERS))
                else:
                    assert table.vectors is not None
                    own = sql.SQL("embedding vector({}) NOT NULL").format(
                        sql.Literal(table.vectors.dimensions)
                    )
                create_table = sql.SQL(
                    "CREATE TABLE IF NOT EXISTS {} (doc int PRIMARY KEY, place int NOT NULL, id text NOT NULL, {})"
                )
                with connection.transaction():
                    connection.execute(create_table.format(_named(table, table.table_name), own))
                    say = sql.SQL(
                        "INSERT INTO {} (name, about) VALUES (%s, %s::jsonb) ON CONFLICT DO NOTHING"
                    )
                    about = json.dumps(table.about, default=str).replace("\\u0000", " ")
                    connection.execute(say.format(_named(table, "indexes")), [table.table_name, about])
                _copy(connection, table, progress)
                _complete(connection, table)
                state = _table_state(connection, table.settings, table.table_name)
            else:
                state = replace(state, reused=state.documents)
    assert state is not None  # it was just completed, while nobody else could touch it
    return state


def _table_state(
    connection: psycopg.Connection[Any], settings: PostgresSettings, name: str
) -> _TableState | None:
    sql = require("psycopg", "servers").sql
    if _exists(connection, settings.schema, "indexes") and _exists(connection, settings.schema, name):
        table = sql.Identifier(settings.schema, name)
        place = sql.SQL("{}::regclass").format(sql.Literal(table.as_string(connection)))
        state_query = sql.SQL(
            "SELECT pg_total_relation_size({}), versions, {}::oid FROM {} WHERE name = %s AND complete IS NOT NULL"
        ).format(place, place, sql.Identifier(settings.schema, "indexes"))
        row = connection.execute(state_query, [name]).fetchone()
        if row is not None:
            counted = sql.SQL("SELECT count(*), sum(xmin::text::numeric) FROM {}").format(table)
            [(documents, writers)] = connection.execute(counted).fetchall()
            return _TableState(documents, int(row[0]), dict(row[1]), f"{row[2]} {writers}")
    return None


def _dropped_tables(settings: PostgresSettings) -> list[str]:
    sql = require("psycopg", "servers").sql
    with _connected(settings, read_only=False) as connection, _failing_as(settings):
        if not _exists(connection, settings.schema, "indexes"):
            return []
        indexes = sql.Identifier(settings.schema, "indexes")
        with connection.transaction():
            rows = connection.execute(sql.SQL("DELETE FROM {} RETURNING name").format(indexes)).fetchall()
            for (name,) in rows:
                drop = sql.SQL("DROP TABLE IF EXISTS {}").format(sql.Identifier(settings.schema, name))
                connection.execute(drop)
            connection.execute(sql.SQL("DROP TABLE {}").format(indexes))
            relations = (
                "SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s"
            )
            if connection.execute(relations, [settings.schema]).fetchone() is None:
                connection.execute(sql.SQL("DROP SCHEMA {}").format(sql.Identifier(settings.schema)))
    return sorted(name for (name,) in rows)


@contextmanager
def _alone(connection: psycopg.Connection[Any], table: _ServerTable) -> Iterator[None]:
    connection.execute("SELECT pg_advisory_lock(hashtext('weir'), hashtext(%s))", [table.table_name])
    try:
        yield
    finally:
        connection.execute("SELECT pg_advisory_unlock(hashtext('weir'), hashtext(%s))", [table.table_name])


def _copy(connection: psycopg.Connection[Any], table: _ServerTable, progress: Progress | None) -> None:
    sql = require("psycopg", "servers").sql
    where = _named(table, table.table_name)
    done = connection.execute(sql.SQL("SELECT coalesce(max(doc) + 1, 0) FROM {}").format(where)).fetchone()[0]  # type: ignore[index]  # an aggregate answers with one row
    column = "content" if table.vectors is None else "embedding"
    into = sql.SQL("COPY {} (doc, place, id, {}) FROM STDIN (FORMAT binary)").format(
        where, sql.Identifier(column)
    )
    total = len(table.corpus)
    while done < total:
        with connection.transaction(), connection.cursor() as cursor, cursor.copy(into) as copy:
            copy.write(_HEAD)
            for row in _batch(table, done):
                copy.write(row)
                done += 1
            copy.write(_END)
        if progress is not None:
            progress(done, total)


def _batch(table: _ServerTable, start: int) -> Iterator[bytes]:
    corpus, size = table.corpus, 0
    stop = min(start + BATCH_DOCUMENTS, len(corpus))
    places = corpus.ids.tie_ranks[start:stop].astype(">i4")
    if table.vectors is None:
        assert isinstance(table.search, _TextSearch)
        texts = corpus.view(table.search.view, start, stop)
        # A zero byte, which no text of PostgreSQL has, becomes a blank.
        contents = (text.encode("utf-8", "replace").replace(b"\0", b" ") for text in texts)
    else:
        block = table.vectors.block(start, stop).astype(">f4")
        contents = (struct.pack("!hh", block.shape[1], 0) + row.tobytes() for row in block)
    for at, content in enumerate(contents):
        name = corpus.ids[start + at].encode("utf-8").replace(b"\0", b" ")
        fields = (struct.pack("!i", start + at), places[at].tobytes(), name, content)
        row = b"".join(part for value in fields for part in (struct.pack("!i", len(value)), value))
        yield struct.pack("!h", len(fields)) + row
        size += len(row)
        if size > BATCH_BYTES:
            return


def _complete(connection: psycopg.Connection[Any], table: _ServerTable) -> None:
    sql = require("psycopg", "servers").sql
    where, search = _named(table, table.table_name), table.search
    index = sql.Identifier(f"{table.table_name}_idx")
    if isinstance(search, _TextSearch):
        make = sql.SQL("CREATE INDEX IF NOT EXISTS {} ON {} USING gin (tsv)").format(index, where)
        connection.execute(make)
    elif search.index == "hnsw":
        build = "CREATE INDEX IF NOT EXISTS {} ON {} USING hnsw (embedding {}) WITH (m = {}, ef_construction = {})"
        make = sql.SQL(build)
        operators = sql.SQL(OPERATORS[search.distance])
        parameters = (sql.Literal(search.m), sql.Literal(search.ef_construction))
        connection.execute(make.format(index, where, operators, *parameters))
    connection.execute(sql.SQL("ANALYZE {}").format(where))
    versions = _server_versions(connection, table.vectors is not None)
    say = sql.SQL("UPDATE {} SET documents = %s, versions = %s::jsonb, complete = now() WHERE name = %s")
    connection.execute(
        say.format(_named(table, "indexes")), [len(table.corpus), json.dumps(versions), table.table_name]
    )


def _named(table: _ServerTable, name: str) -> Any:  # noqa: ANN401  psycopg's
    return require("psycopg", "servers").sql.Identifier(table.settings.schema, name)


def _exists(connection: psycopg.Connection[Any], schema: str, name: str) -> bool:
    query = "SELECT 1 FROM pg_tables WHERE schemaname = %s AND tablename = %s"
    return connection.execute(query, [schema, name]).fetchone() is not None


# ----------
# The statement of a search, and the connection that executes it.


GRAPH_ALONE = "SET enable_sort = off; SET enable_seqscan = off; SET enable_bitmapscan = off"
"""Has the planner search the graph where it would sort the few documents that a filter permits."""
ITERATIVE = (0, 8)
"""First version of pgvector whose HNSW search continues until it has as many results as requested."""
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
    """A table on the server that is searched."""

    settings: PostgresSettings
    search: _TextSearch | VectorSearch
    name: tuple[str, ...]
    """Schema and table."""
    versions: Mapping[str, str]
    """Versions of the server and pgvector that answer."""
    own: bool = True
    """True if Weir made the table."""
    bytes: int = 0
    """Size on the server; 0 if it is not known."""
    reused: int = 0
    """Documents that were there before it was filled."""

    def statement(self, among: bool = False) -> psycopg.sql.Composed:
        """Return the SQL search for (document, score), best first, with the parameters k and text or vector.

        among: only documents whose numbers are in the parameter `permitted`, for vectors in Weir's own table.
        """
        sql = require("psycopg", "servers").sql
        user = None if self.own else self.settings.table
        parts = {
            "table": sql.Identifier(*self.name),
            "doc": sql.SQL("{}::text").format(sql.Identifier("id" if user is None else user.id)),
            "tie": sql.SQL("place") if user is None else sql.SQL('doc COLLATE "C" DESC'),
            "place": sql.SQL(", place") if user is None else sql.SQL(""),
        }
        search = self.search
        if isinstance(search, _TextSearch):
            config = sql.Literal(search.config)
            tsvector = sql.Identifier("tsv" if user is None else user.tsvector)
            if user is not None and user.text:
                # As an index of an expression over these columns would be written, so that it is used.
                columns = [sql.SQL("coalesce({}, '')").format(sql.Identifier(column)) for column in user.text]
                tsvector = sql.SQL("to_tsvector({}::regconfig, {})").format(
                    config, sql.SQL(" || ' ' || ").join(columns)
                )
            text_search: psycopg.sql.Composed = sql.SQL(
                "SELECT doc, score FROM ("
                "SELECT {doc} AS doc, {rank}({tsvector}, asked.query, {mask}) AS score{place} "
                "FROM {table}, (SELECT {query} AS query) AS asked WHERE {tsvector} @@ asked.query"
                ") AS found ORDER BY score DESC, {tie} LIMIT %(k)s"
            ).format(
                **parts,
                rank=sql.SQL(search.rank),
                tsvector=tsvector,
                mask=sql.Literal(search.normalization),
                query=sql.SQL(_TSQUERIES[search.query]).format(config=config),
            )
            return text_search
        column = sql.Identifier("embedding" if user is None else user.vector)
        far = sql.SQL("{} {} %(vector)s::vector").format(column, sql.SQL(DISTANCES[search.distance]))
        score = {"inner": "-far", "cosine": "1 - far", "l2": "-far"}[search.distance]
        # An index finds the nearest by distance alone, and ties are settled among them; without one they decide, too.
        nearest = sql.SQL(" ORDER BY {} LIMIT %(k)s" if search.index == "hnsw" else "").format(far)
        if among:
            nearest = sql.SQL(" WHERE doc = ANY(%(permitted)s)") + nearest
        vector_search: psycopg.sql.Composed = sql.SQL(
            "SELECT doc, {score} AS score FROM ("
            "SELECT {doc} AS doc, {far} AS far{place} FROM {table}{nearest}"
            ") AS found ORDER BY far, {tie} LIMIT %(k)s"
        ).format(**parts, score=sql.SQL(score), far=far, nearest=nearest)
        return vector_search

    def prepare(self, connection: psycopg.Connection[Any], k: int) -> None:
        """Set the connection's planner and HNSW settings for k documents; nothing for full text."""
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


def _literal(vector: NDArray[np.float32]) -> str:
    return "[" + ",".join(map(str, vector.tolist())) + "]"


@dataclass(eq=False)
class PostgresAsker:
    """A connection that answers searches in order and reconnects when it breaks."""

    table: SearchedTable
    vectors: NDArray[np.float32] | None
    """Vectors by the number of the request; None for text."""
    retried: Retried
    limits: Limits = field(default_factory=Limits)
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self._statement = self.table.statement()
        self._connection: psycopg.Connection[Any] | None = None

    def ask(self, requests: Sequence[Request]) -> Iterator[Outcome]:
        for request in requests:
            text, k = request.body["text"], request.body["k"]
            if not text.strip():
                yield Outcome(request, kept_ranking([]))
                continue
            parameters: dict[str, Any] = {"k": k, "text": text.replace("\0", " ")}
            if self.vectors is not None:
                parameters["vector"] = _literal(self.vectors[request.number])
            attempt = partial(self._rows, parameters)
            try:
                rows, seconds = retry(attempt, self.limits, self.clock, lambda error, _: self.retried(error))
                yield Outcome(request, kept_ranking(rows), seconds)
            except AttemptError as error:
                yield Outcome(request, error=error)
            except ValueError as error:
                yield Outcome(request, error=AttemptError("malformed", str(error), again=False))

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _rows(self, parameters: dict[str, Any]) -> tuple[list[tuple[Any, float]], float]:
        psycopg = require("psycopg", "servers")
        try:
            if self._connection is None:
                self._connection = _new_connection(self.table.settings, read_only=True)
                self.table.prepare(self._connection, parameters["k"])
            connection = self._connection
            start = time.perf_counter()
            rows = connection.execute(self._statement, parameters, prepare=True, binary=True).fetchall()
            return rows, time.perf_counter() - start
        except (psycopg.Error, ServiceError) as error:
            self.close()
            text = str(error) if isinstance(error, ServiceError) else _error_line(error, self.table.settings)
            if isinstance(error, psycopg.errors.QueryCanceled):
                raise AttemptError("timed out", text, again=False) from None
            again = isinstance(error, (psycopg.OperationalError, ServiceError))
            raise AttemptError("failed" if again else "refused", text, again=again) from None


# ----------
# Searching for all queries, by text or by the vectors of an encoder.


@dataclass(frozen=True, eq=False)
class _PostgresSearcher:
    """A searcher of a table on a server, with the encoder of queries if it has vectors."""

    name: str
    table: SearchedTable
    corpus: Corpus
    about: Mapping[str, object]
    """Everything that decides an answer; the key of stored answers."""
    dense: DenseRetriever | None = None
    """The encoder of queries; None for full text."""
    use: ServiceUsage = field(default_factory=lambda: ServiceUsage(""))
    """Counts of requests, for costs."""

    __repr__ = index_repr

    @cached_property
    def query_encoder(self) -> LoadedEncoder:
        assert self.dense is not None
        return self.dense.encoder.load(settings().device)

    @checked
    @permitted_only
    def search(self, queries: Queries, k: int = ANSWERS, context: Context = IN_MEMORY) -> Run:
        vectors = None if self.dense is None else vectors_of(self.dense, self.query_encoder, queries)
        service = RemoteService(
            self.name,
            self.about,
            partial(PostgresAsker, self.table, vectors),
            RequestPolicy(self.table.settings.concurrency),
            self.table.settings.on_failure,
            unknown=self.table.settings.unknown,
        )
        return RemoteSearcher(service, self.corpus, self.use).search(queries, k, context)

    def loss(self, queries: Queries, k: int) -> Loss:
        search = self.table.search
        if isinstance(search, _TextSearch) or search.index == "exact":
            raise BadValue(f"{self.name} searches exactly; only an approximate index loses anything")
        table = replace(self.table, search=replace(search, index="exact"))
        about = {**self.about, SESSION: "asked exactly"}
        exact = replace(self, table=table, about=about, use=ServiceUsage("")).search(queries, k)
        near = replace(self, use=ServiceUsage("")).search(queries, k)
        return lost(exact, near)

    def can_filter(self) -> bool:
        search = self.table.search
        return isinstance(search, VectorSearch) and search.index == "hnsw" and self.table.own

    def efforts(self) -> tuple[int, int]:
        search = self.table.search
        return (search.ef_search, MOST_CANDIDATES) if isinstance(search, VectorSearch) else (0, 0)

    def near_among(
        self, query: NDArray[np.float32], k: int, effort: int, permitted: NDArray[np.bool_] | None
    ) -> tuple[NDArray[np.int64], float]:
        search = self.table.search
        assert isinstance(search, VectorSearch)
        table = replace(self.table, search=replace(search, ef_search=effort))
        parameters: dict[str, object] = {"k": k, "vector": _literal(query)}
        if permitted is not None:
            parameters["permitted"] = np.flatnonzero(permitted).tolist()
        with _connected(table.settings, read_only=True) as connection, _failing_as(table.settings):
            table.prepare(connection, k)
            connection.execute(GRAPH_ALONE)
            rows = connection.execute(table.statement(permitted is not None), parameters).fetchall()
        return self.corpus.ids.codes([name for name, _ in rows]).astype(np.int64), math.nan

    def costs(self) -> Costs:
        services = (self.use.named(self.name),)
        return Costs(self.table.bytes, self.table.reused, services=services)


# ----------
# The systems: a table that Weir fills, or one that is there.


FORMAT = 1


@dataclass(frozen=True)
class PostgresCollection:
    """A system that copies a collection to a PostgreSQL table and searches it there."""

    file: str
    options: tuple[tuple[str, object], ...]
    """Named arguments of the written name."""
    settings: PostgresSettings
    dense: DenseRetriever | None = None
    """The encoder of vectors; None for full text."""
    version: str | None = None
    """The user's label for the server in keys; None leaves the versions of server and pgvector to the result's
    record.
    """

    __repr__ = system_text
    __rshift__ = then

    def __str__(self) -> str:
        return called("postgres", [self.file], dict(self.options))

    @property
    def search_settings(self) -> _TextSearch | VectorSearch:
        """The settings of the search by vectors or by text."""
        return self.settings.text if self.dense is None else self.settings.vector

    def title(self) -> tuple[str, str]:
        return self.file, self.settings.name

    @property
    def service(self) -> str:
        return f"the PostgreSQL server of {self.file}"

    def describe(self) -> dict[str, object]:
        place = {**self.settings.server_facts(), "schema": self.settings.schema}
        return {**self._described(), "place": place}

    def _described(self) -> dict[str, object]:
        description: dict[str, object] = {"system": "postgres", "search": self.search_settings.facts()}
        description["on_failure"] = self.settings.on_failure
        description |= {} if self.version is None else {"version": self.version}
        return description | ({} if self.dense is None else {"encoder": self.dense.describe()})

    def fields_read(self) -> tuple[str, ...]:
        return (self.settings.text.view,) if self.dense is None else self.dense.fields_read()

    def indexed_as(self) -> PostgresCollection:
        text, vector = self.settings.text, self.settings.vector
        settings = replace(
            self.settings,
            text=_TextSearch(config=text.config, view=text.view),
            vector=replace(vector, ef_search=VectorSearch().ef_search),
        )
        options = tuple((name, value) for name, value in self.options if name in ("encoder", "index"))
        return replace(self, settings=settings, options=options)

    def fetch(self) -> None:
        if self.dense is not None:
            self.dense.fetch()

    @checked
    def index(self, corpus: Corpus, context: Context = IN_MEMORY) -> _PostgresSearcher:
        """Copy the documents, with vectors if searched, that the server lacks, and return the searcher;
        raises ServiceError if the server fails."""
        vectors = None
        if self.dense is not None:
            vectors = self.dense.index(corpus, replace(context, folder=None)).documents.stored
        content = content_of(corpus, self.fields_read())
        about = {"format": FORMAT, "corpus": content, "system": self.indexed_as()._described()}
        table = _ServerTable(self.settings, self.search_settings, corpus, about, vectors)
        state = _filled_table(table, context.progress)
        if context.folder is not None:
            with atomic_dir(context.folder) as folder:
                facts = {"format": FORMAT, "table": table.table_name}
                facts |= {"documents": len(corpus), "versions": state.versions}
                seal_folder(folder, "index.json", facts)
        return self._searcher(corpus, table.table_name, state)

    def open(self, corpus: Corpus, context: Context) -> _PostgresSearcher:
        """Return the searcher; raises StoreError if the server has no complete table, ServiceError if it fails."""
        at = folder_of(context)
        facts = open_folder(at, "index.json")
        with _connected(self.settings, read_only=True) as connection, _failing_as(self.settings):
            state = _table_state(connection, self.settings, str(facts.get("table")))
        if state is None or state.documents != len(corpus):
            raise StoreError(f"{at}: the server has no complete table {facts.get('table')}; it is made again")
        return self._searcher(corpus, str(facts["table"]), state)

    def uninstall(self) -> list[str]:
        return _dropped_tables(self.settings)

    def _searcher(self, corpus: Corpus, table: str, state: _TableState) -> _PostgresSearcher:
        name, versions = (self.settings.schema, table), state.versions
        searched = SearchedTable(
            self.settings, self.search_settings, name, versions, bytes=state.bytes, reused=state.reused
        )
        content = content_of(corpus, self.fields_read())
        about = {**self.describe(), "corpus": content, "versions": versions, "answered by": state.identity}
        return _PostgresSearcher(str(self), searched, corpus, about, self.dense, ServiceUsage("", versions))


@dataclass(frozen=True)
class PostgresTable:
    """A system that searches an existing PostgreSQL table and never writes.

    Its rows may change, so rankings without a version are reused in this process alone.
    """

    file: str
    options: tuple[tuple[str, object], ...]
    settings: PostgresSettings
    dense: DenseRetriever | None = None
    version: str | None = None

    __repr__ = system_text
    __rshift__ = then

    def __str__(self) -> str:
        return called("postgres", [self.file], dict(self.options))

    def title(self) -> tuple[str, str]:
        return self.file, self.settings.name

    @property
    def service(self) -> str:
        return f"the PostgreSQL server of {self.file}"

    def describe(self) -> dict[str, object]:
        assert self.settings.table is not None
        search = self.settings.text if self.dense is None else self.settings.vector
        description: dict[str, object] = {"system": "postgres", "search": search.facts()}
        description |= {"on_failure": self.settings.on_failure, "table": self.settings.table.facts()}
        description["place"] = self.settings.server_facts()
        description |= declared_version(self.version) | described_unknown(self.settings.unknown)
        return description | ({} if self.dense is None else {"encoder": self.dense.describe()})

    def fetch(self) -> None:
        if self.dense is not None:
            self.dense.fetch()

    def keeps_documents(self) -> bool:
        return True

    @checked
    def index(self, corpus: Corpus, context: Context = IN_MEMORY) -> _PostgresSearcher:
        """Return a searcher; raises ServiceError if the server cannot be reached, BadValue without pgvector."""
        assert self.settings.table is not None
        with _connected(self.settings, read_only=True) as connection, _failing_as(self.settings):
            versions = _server_versions(connection, self.dense is not None)
        search = self.settings.text if self.dense is None else self.settings.vector
        name = tuple(self.settings.table.name.split("."))
        searched = SearchedTable(self.settings, search, name, versions, own=False)
        about = {**self.describe(), "versions": versions}
        return _PostgresSearcher(str(self), searched, corpus, about, self.dense, ServiceUsage("", versions))

    components = no_parts
    open = open_anew


def postgres(
    file: str,
    query: str | None = None,
    rank: str | None = None,
    encoder: str | DenseRetriever | None = None,
    index: str | None = None,
    version: str | None = None,
    ef_search: int | None = None,
) -> PostgresCollection | PostgresTable:
    """Search by PostgreSQL: its full-text search, or pgvector, on a table that Weir fills or an existing one.

    Returns a PostgresTable if the file names a table, else a PostgresCollection.
    file: TOML file that names the server and how it is searched, see docs/retrievers.md.
    query: websearch, plain, phrase or or, by default the file's, as `rank`, `index` and `ef_search`.
    rank: ts_rank or ts_rank_cd.
    encoder: a model as dense takes it, or a dense(...), to search its vectors by pgvector instead of texts.
    index: exact or hnsw, for vectors.
    version: your label that identifies the table or the server for stored results; without it rankings of an existing
        table are reused in this process alone.
    ef_search: number of candidates that hnsw considers.
    Raises FormatError for the file, UnknownName for an unknown setting, BadValue for one that does not apply, and for a
    table without the column searched.
    """
    if not isinstance(file, str) or not file:
        raise BadValue(f"postgres: file is {file!r}; expected a TOML file")
    declared_version(version)
    settings = read_postgres_settings(Path(file))
    arguments: dict[str, object] = {"query": query, "rank": rank, "encoder": encoder, "index": index}
    arguments |= {"version": version, "ef_search": ef_search}
    options = tuple((name, value) for name, value in arguments.items() if value is not None)
    for name in ("query", "rank") if arguments["encoder"] is not None else ("index", "ef_search"):
        if arguments[name] is not None:
            other = "full text" if arguments["encoder"] is None else "vectors"
            raise BadValue(f"postgres: {name} does not apply to a search of {other}")
    text, vector = settings.text, settings.vector
    settings = replace(
        settings,
        text=replace(text, query=query or text.query, rank=rank or text.rank),
        vector=vector.overridden(index, ef_search),
    )
    retriever = encoder_given("postgres", encoder)
    if settings.table is None:
        return PostgresCollection(file, options, settings, retriever, version)
    system = PostgresTable(file, options, settings, retriever, version)
    if retriever is None and not (settings.table.text or settings.table.tsvector):
        raise BadValue(f'{system}: [table] names a vector alone; say which encoder asks it: encoder="minilm"')
    if retriever is not None and not settings.table.vector:
        raise BadValue(f"{system}: [table] names no vector column, which an encoder needs")
    return system
