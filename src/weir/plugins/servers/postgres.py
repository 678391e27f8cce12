"""PostgreSQL as a system: full-text search and pgvector, on a table of Weir's own or on one that is there."""

from __future__ import annotations

import hashlib
import json
import re
import struct
import time
import warnings
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
from weir.errors import BadValue, ServiceError, StoreError, StoreWarning, require
from weir.files.atomic import atomic_dir
from weir.files.integrity import open_folder, seal_folder
from weir.files.text_files import read_toml
from weir.models.hosted import LoadedEncoder
from weir.plugins.servers.vectors import VectorSearch, encoder_given, lost, vectors_of
from weir.registry import SESSION, check_whole, declared_version
from weir.services.answers import Outcome, Request, RequestPolicy, Retried, ServiceUsage
from weir.services.requests import AttemptError, Clock, Key, Limits, retry
from weir.settings import secret, settings
from weir.systems.compose import shown, then
from weir.systems.composite import check_unknown, described_unknown
from weir.systems.dense_search import DenseRetriever
from weir.systems.protocol import IN_MEMORY, Component, Context, Costs, Progress, called, folder_of
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
from weir.systems.vectors.ann import Loss
from weir.systems.vectors.store import StoredVectors

if TYPE_CHECKING:
    import psycopg

# ----------
# Settings: what the TOML file says.


EXPECTED = "the settings of a PostgreSQL server, see docs/retrievers.md"
ADDRESS_VARIABLE = "(PG|POSTGRES|DATABASE_|WEIR_KEY_)[A-Z0-9_]*"
"""What an environment variable is called that a file may name as the address of a server."""
QUERIES = ("websearch", "plain", "phrase", "or")
RANKS = ("ts_rank", "ts_rank_cd")
DISTANCES = {"inner": "<#>", "cosine": "<=>", "l2": "<->"}
"""Name -> pgvector's operator, smaller is nearer."""


@dataclass(frozen=True)
class TextSearch:
    """Full-text search.

    config: PostgreSQL's text search configuration; query: how a text becomes a tsquery, websearch, plain (all words),
    phrase, or or (any word); rank: ts_rank or ts_rank_cd; normalization: their bit mask; view: what of a document is
    indexed.
    """

    config: str = "english"
    query: str = "websearch"
    rank: str = "ts_rank"
    normalization: int = 0
    view: str = "title text"

    def __post_init__(self) -> None:
        check_choice("query", self.query, QUERIES)
        check_choice("rank", self.rank, RANKS)
        check_view(self.view)
        check_text("config", self.config)
        check_whole("normalization", self.normalization, 0, 63)

    def facts(self) -> dict[str, object]:
        """Everything that decides its rankings on a given server."""
        return {"kind": "full text"} | {f.name: getattr(self, f.name) for f in fields(self)}


@dataclass(frozen=True)
class UserTable:
    """A table that is there already and is only read.

    name: with its schema, such as shop.products; id: the column of identifiers; text: columns whose texts are searched,
    or tsvector: one that is ready; vector: the column of vectors, "" for none.
    """

    name: str
    id: str
    text: tuple[str, ...] = ()
    tsvector: str = ""
    vector: str = ""

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
        """The table and the columns that are read."""
        columns = {"text": list(self.text), "tsvector": self.tsvector, "vector": self.vector}
        return {"name": self.name, "id": self.id} | {k: v for k, v in columns.items() if v}


@dataclass(frozen=True)
class PostgresSettings:
    """A server and what is searched there.

    dsn: its address as libpq takes it, without a password, or ${NAME} for the environment variable that holds it;
    schema: where Weir makes tables of its own; table: one that is there already, None for Weir's own; concurrency:
    connections that search side by side; timeout_s: seconds that a statement may take; on_failure: "refuse" or
    "missing", what becomes of queries without an answer; unknown: "refuse" or "drop", what becomes of documents of
    `table` that the collection does not have; name: what tables call it, "" for its file.
    """

    dsn: str = field(repr=False)
    schema: str = "weir"
    table: UserTable | None = None
    text: TextSearch = field(default_factory=TextSearch)
    vector: VectorSearch = field(default_factory=VectorSearch)
    concurrency: int = 8
    timeout_s: float = 60.0
    on_failure: str = "refuse"
    unknown: str = "refuse"
    name: str = ""

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

    def address(self) -> str:
        """The dsn, read from the environment where the file says so; raises ServiceError where it is not there."""
        variable = re.fullmatch(r"\$\{(.*)\}", self.dsn)
        if variable is None:
            return self.dsn
        value = secret(variable[1])
        if value is None:
            raise ServiceError(
                f"this needs the address of the server in the environment variable {variable[1]}"
            )
        return value

    def place(self) -> dict[str, str]:
        """Which server and which database are asked, for keys: nothing of a user or a password.

        Raises ServiceError as `address`, and for what is none; MissingExtra where psycopg is not installed.
        """
        psycopg, address = require("psycopg", "postgres"), self.address()
        with failing_as(self):
            entries = psycopg.conninfo.conninfo_to_dict(address)
        names = {"host": "PGHOST", "port": "PGPORT", "dbname": "PGDATABASE"}
        return {name: str(entries.get(name) or secret(other) or "") for name, other in names.items()}


def read_postgres_settings(path: Path) -> PostgresSettings:
    """The settings in a TOML file; raises FormatError for no such file, UnknownName and FormatError for its values."""
    entries = dict(read_toml(path, EXPECTED))
    table = entries.get("table")
    if isinstance(table, Mapping) and isinstance(table.get("text"), list):
        entries["table"] = {**table, "text": tuple(table["text"])}
    for name, kind in {"table": UserTable, "text": TextSearch, "vector": VectorSearch}.items():
        if name in entries:
            entries[name] = settings_value(kind, path, f"[{name}]", entries[name])
    return settings_value(PostgresSettings, path, "the file", entries)


# ----------
# The connection, and errors in one line.


CONNECT_SECONDS = 30
SHOWN_CHARACTERS = 300


@contextmanager
def connected(settings: PostgresSettings, read_only: bool) -> Iterator[psycopg.Connection[Any]]:
    """A connection on which each statement stands for itself, closed afterwards.

    read_only: refuse to change anything. Raises ServiceError, without any password, where the server cannot be reached;
    MissingExtra where psycopg is not installed.
    """
    connection = new_connection(settings, read_only)
    try:
        yield connection
    finally:
        connection.close()


def new_connection(settings: PostgresSettings, read_only: bool) -> psycopg.Connection[Any]:
    """As `connected`, to be closed by the caller."""
    connect = require("psycopg", "postgres").connect
    with failing_as(settings):
        connection: psycopg.Connection[Any] = connect(
            settings.address(), autocommit=True, connect_timeout=CONNECT_SECONDS, application_name="weir"
        )
        milliseconds = int(1000 * settings.timeout_s)
        connection.execute("SELECT set_config('statement_timeout', %s, false)", [str(milliseconds)])
        if read_only:
            connection.execute("SET default_transaction_read_only = on")
    return connection


@contextmanager
def failing_as(settings: PostgresSettings) -> Iterator[None]:
    """Raise ServiceError, in one line and without the address, for what psycopg raises."""
    psycopg = require("psycopg", "postgres")
    try:
        yield
    except psycopg.Error as error:
        raise ServiceError(f"PostgreSQL: {error_line(error, settings)}") from None


def error_line(error: Exception, settings: PostgresSettings) -> str:
    """What a server or the library says, in one line, without what is secret of the address."""
    secrets = [""]  # the address itself where it comes from the environment, and the password in it
    if settings.dsn.startswith("${"):
        psycopg = require("psycopg", "postgres")
        with suppress(ServiceError, psycopg.Error):
            secrets.append(settings.address())
            secrets.append(str(psycopg.conninfo.conninfo_to_dict(secrets[1]).get("password") or ""))
    text = str(error)
    for value in secrets:
        text = Key(None, value).masked(text)
    return text[:SHOWN_CHARACTERS] or type(error).__name__


def server_versions(connection: psycopg.Connection[Any], vectors: bool) -> dict[str, str]:
    """The versions of the server and, where vectors are searched, of pgvector; raises BadValue without it."""
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
# continues behind the last. The row in `indexes` is completed last.


TEXT_CHARACTERS = 250_000
"""Characters of a document that are indexed: a tsvector may have a megabyte."""
BATCH_DOCUMENTS, BATCH_BYTES = 2_000, 4 << 20
"""What is copied in one transaction: a killed process loses so much."""
OPERATORS = {"inner": "vector_ip_ops", "cosine": "vector_cosine_ops", "l2": "vector_l2_ops"}
_HEAD = b"PGCOPY\n\xff\r\n\x00" + struct.pack("!ii", 0, 0)
_END = struct.pack("!h", -1)

Fields = Callable[[int, int], Iterator[tuple[bytes, ...]]]


@dataclass(frozen=True, eq=False)
class ServerTable:
    """What is copied: the documents as text or as vectors, for one kind of search.

    about: everything that decides the table, what its name is made of; vectors: of the documents, None for text.
    """

    settings: PostgresSettings
    search: TextSearch | VectorSearch
    corpus: Corpus
    about: dict[str, object]
    vectors: StoredVectors | None = None

    @property
    def name(self) -> str:
        """The name of the table: a hash of what decides it."""
        text = json.dumps(self.about, sort_keys=True, default=str)
        kind = "text" if self.vectors is None else "vectors"
        return f"{kind}_{hashlib.blake2b(text.encode('utf-8'), digest_size=10).hexdigest()}"


@dataclass(frozen=True)
class TableState:
    """A complete table: how many documents and bytes it has, its index among them, and the versions that made it.

    identity: of the table and of the transactions that wrote its rows; reused: documents of it that were there before
    it was filled.
    """

    documents: int
    bytes: int
    versions: dict[str, str]
    identity: str
    reused: int = 0


def filled_table(table: ServerTable, progress: Progress | None) -> TableState:
    """Make the table, continue it, or find it complete.

    Another process that makes the same waits. Raises ServiceError where the server refuses, BadValue without pgvector.
    """
    with connected(table.settings, read_only=False) as connection, failing_as(table.settings):
        connection.execute("SET statement_timeout = 0")  # an index of vectors takes its time
        sql = require("psycopg", "postgres").sql
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
            state = table_state(connection, table.settings, table.name)
            if state is not None and state.documents != len(table.corpus):
                here, total = state.documents, len(table.corpus)
                changed = f"{table.name} has {here:,} rows for {total:,} documents; it is made again"
                warnings.warn(StoreWarning(f"schema {table.settings.schema}: {changed}"), stacklevel=2)
                with connection.transaction():
                    connection.execute(sql.SQL("DROP TABLE {}").format(_named(table, table.name)))
                    forget = sql.SQL("DELETE FROM {} WHERE name = %s").format(_named(table, "indexes"))
                    connection.execute(forget, [table.name])
                state = None
            if state is None:
                if isinstance(table.search, TextSearch):
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
                    connection.execute(create_table.format(_named(table, table.name), own))
                    say = sql.SQL(
                        "INSERT INTO {} (name, about) VALUES (%s, %s::jsonb) ON CONFLICT DO NOTHING"
                    )
                    about = json.dumps(table.about, default=str).replace("\\u0000", " ")
                    connection.execute(say.format(_named(table, "indexes")), [table.name, about])
                _copy(connection, table, progress)
                _complete(connection, table)
                state = table_state(connection, table.settings, table.name)
            else:
                state = replace(state, reused=state.documents)
    assert state is not None  # it was just completed, while nobody else could touch it
    return state


def table_state(
    connection: psycopg.Connection[Any], settings: PostgresSettings, name: str
) -> TableState | None:
    """The state of a table in Weir's schema, None where it is not there or not complete."""
    sql = require("psycopg", "postgres").sql
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
            return TableState(documents, int(row[0]), dict(row[1]), f"{row[2]} {writers}")
    return None


def dropped_tables(settings: PostgresSettings) -> list[str]:
    """Drop every table that Weir made in its schema, complete or not, and the schema where it is then empty.

    Returns their names; raises ServiceError where the server refuses.
    """
    sql = require("psycopg", "postgres").sql
    with connected(settings, read_only=False) as connection, failing_as(settings):
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
def _alone(connection: psycopg.Connection[Any], table: ServerTable) -> Iterator[None]:
    """A lock on the table's name: another process waits; the lock of a killed process ends with its connection."""
    connection.execute("SELECT pg_advisory_lock(hashtext('weir'), hashtext(%s))", [table.name])
    try:
        yield
    finally:
        connection.execute("SELECT pg_advisory_unlock(hashtext('weir'), hashtext(%s))", [table.name])


def _copy(connection: psycopg.Connection[Any], table: ServerTable, progress: Progress | None) -> None:
    """Copy the documents behind the last that is there, batch by batch; the server's pace is the copy's."""
    sql = require("psycopg", "postgres").sql
    where = _named(table, table.name)
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


def _batch(table: ServerTable, start: int) -> Iterator[bytes]:
    """The rows of the next documents as COPY's binary format has them."""
    corpus, size = table.corpus, 0
    stop = min(start + BATCH_DOCUMENTS, len(corpus))
    places = corpus.ids.tie_ranks[start:stop].astype(">i4")
    if table.vectors is None:
        assert isinstance(table.search, TextSearch)
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


def _complete(connection: psycopg.Connection[Any], table: ServerTable) -> None:
    """Build what finds rows quickly, and say that the table is complete."""
    sql = require("psycopg", "postgres").sql
    where, search = _named(table, table.name), table.search
    index = sql.Identifier(f"{table.name}_idx")
    if isinstance(search, TextSearch):
        make = sql.SQL("CREATE INDEX IF NOT EXISTS {} ON {} USING gin (tsv)").format(index, where)
        connection.execute(make)
    elif search.index == "hnsw":
        build = "CREATE INDEX IF NOT EXISTS {} ON {} USING hnsw (embedding {}) WITH (m = {}, ef_construction = {})"
        make = sql.SQL(build)
        operators = sql.SQL(OPERATORS[search.distance])
        parameters = (sql.Literal(search.m), sql.Literal(search.ef_construction))
        connection.execute(make.format(index, where, operators, *parameters))
    connection.execute(sql.SQL("ANALYZE {}").format(where))
    versions = server_versions(connection, table.vectors is not None)
    say = sql.SQL("UPDATE {} SET documents = %s, versions = %s::jsonb, complete = now() WHERE name = %s")
    connection.execute(
        say.format(_named(table, "indexes")), [len(table.corpus), json.dumps(versions), table.name]
    )


def _named(table: ServerTable, name: str) -> Any:  # noqa: ANN401  psycopg's
    return require("psycopg", "postgres").sql.Identifier(table.settings.schema, name)


def _exists(connection: psycopg.Connection[Any], schema: str, name: str) -> bool:
    query = "SELECT 1 FROM pg_tables WHERE schemaname = %s AND tablename = %s"
    return connection.execute(query, [schema, name]).fetchone() is not None


# ----------
# The statement of a search, and the connection that executes it.


MOST_CANDIDATES = 1000
"""What pgvector takes for hnsw.ef_search."""
ITERATIVE = (0, 8)
"""The version of pgvector from which HNSW searches on until it has as many results as requested."""
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
        search = self.search
        if isinstance(search, TextSearch):
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
        vector_search: psycopg.sql.Composed = sql.SQL(
            "SELECT doc, {score} AS score FROM ("
            "SELECT {doc} AS doc, {far} AS far{place} FROM {table}{nearest}"
            ") AS found ORDER BY far, {tie} LIMIT %(k)s"
        ).format(**parts, score=sql.SQL(score), far=far, nearest=nearest)
        return vector_search

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
            text, k = request.body["text"], request.body["k"]
            if not text.strip():
                yield Outcome(request, kept_ranking([]))
                continue
            parameters: dict[str, Any] = {"k": k, "text": text.replace("\0", " ")}
            if self.vectors is not None:
                parameters["vector"] = "[" + ",".join(map(str, self.vectors[request.number].tolist())) + "]"
            attempt = partial(self._rows, parameters)
            try:
                rows, seconds = retry(attempt, self.limits, self.clock, lambda error, _: self.retried(error))
                yield Outcome(request, kept_ranking(rows), seconds)
            except AttemptError as error:
                yield Outcome(request, error=error)
            except ValueError as error:
                yield Outcome(request, error=AttemptError("malformed", str(error), again=False))

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

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
            text = str(error) if isinstance(error, ServiceError) else error_line(error, self.table.settings)
            if isinstance(error, psycopg.errors.QueryCanceled):
                raise AttemptError("timed out", text, again=False) from None
            again = isinstance(error, (psycopg.OperationalError, ServiceError))
            raise AttemptError("failed" if again else "refused", text, again=again) from None


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

    @checked
    def search(self, queries: Queries, k: int, context: Context = IN_MEMORY) -> Run:
        """The k best documents for each query, none for one without text; raises as RemoteSearcher."""
        vectors = None if self.dense is None else vectors_of(self.dense, self.loaded, queries)
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
        return lost(exact, near)

    def costs(self) -> Costs:
        """The table on the server, what was asked of it and how long that took."""
        services = (self.use.named(self.name),)
        return Costs(self.table.bytes, self.table.reused, services=services)


# ----------
# The systems: a table that Weir fills, or one that is there.


FORMAT = 1


@dataclass(frozen=True)
class PostgresCollection:
    """A collection in a table that Weir makes on a server, searched by PostgreSQL itself.

    file, options: how it was written; settings: the server and how it is searched; dense: what makes vectors, None for
    full text; version: your label for the server in keys, None where any will do, as the result's record names it.
    """

    file: str
    options: tuple[tuple[str, object], ...]
    settings: PostgresSettings
    dense: DenseRetriever | None = None
    version: str | None = None

    __repr__ = shown
    __rshift__ = then

    def __str__(self) -> str:
        return called("postgres", [self.file], dict(self.options))

    @property
    def search_settings(self) -> TextSearch | VectorSearch:
        """How the table is searched."""
        return self.settings.text if self.dense is None else self.settings.vector

    def title(self) -> tuple[str, str]:
        """The file, and the name that it gives."""
        return self.file, self.settings.name

    @property
    def service(self) -> str:
        """The server that the file names."""
        return f"the PostgreSQL server of {self.file}"

    def describe(self) -> dict[str, object]:
        """What decides the rankings, and where; raises DownloadError where a checkpoint is not here, ServiceError where
        the address is not in the environment."""
        place = {**self.settings.place(), "schema": self.settings.schema}
        return {**self._described(), "place": place}

    def _described(self) -> dict[str, object]:
        """What decides the rankings on a given server."""
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
        options = tuple((name, value) for name, value in self.options if name in ("encoder", "index"))
        return replace(self, settings=settings, options=options)

    def fetch(self) -> None:
        """Download the encoder's checkpoint where it is not here; raises DownloadError where that fails."""
        if self.dense is not None:
            self.dense.fetch()

    @checked
    def index(self, corpus: Corpus, context: Context = IN_MEMORY) -> PostgresSearcher:
        """Copy the collection to the server, all that is not there; the folder notes the table.

        Raises ServiceError where the server refuses or cannot be reached.
        """
        vectors = None
        if self.dense is not None:
            vectors = self.dense.index(corpus, replace(context, folder=None)).vectors
        content = content_of(corpus, self.fields_read())
        about = {"format": FORMAT, "corpus": content, "system": self.indexed_as()._described()}
        table = ServerTable(self.settings, self.search_settings, corpus, about, vectors)
        state = filled_table(table, context.progress)
        if context.folder is not None:
            with atomic_dir(context.folder) as folder:
                facts = {"format": FORMAT, "table": table.name}
                facts |= {"documents": len(corpus), "versions": state.versions}
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
        about = {**self.describe(), "corpus": content, "versions": versions, "answered by": state.identity}
        return PostgresSearcher(str(self), searched, corpus, about, self.dense, ServiceUsage("", versions))


@dataclass(frozen=True)
class PostgresTable:
    """A table that is there already and is only read; arguments as PostgresCollection.

    Its rows may change, so that a version stands for them; without one, what is found is made again in each process.
    """

    file: str
    options: tuple[tuple[str, object], ...]
    settings: PostgresSettings
    dense: DenseRetriever | None = None
    version: str | None = None

    __repr__ = shown
    __rshift__ = then

    def __str__(self) -> str:
        return called("postgres", [self.file], dict(self.options))

    def title(self) -> tuple[str, str]:
        """The file, and the name that it gives."""
        return self.file, self.settings.name

    @property
    def service(self) -> str:
        """The server that the file names."""
        return f"the PostgreSQL server of {self.file}"

    def describe(self) -> dict[str, object]:
        """The table and where it is, how it is searched, and its version, or a session; raises ServiceError where the
        address is not in the environment."""
        assert self.settings.table is not None
        search = self.settings.text if self.dense is None else self.settings.vector
        description: dict[str, object] = {"system": "postgres", "search": search.facts()}
        description |= {"on_failure": self.settings.on_failure, "table": self.settings.table.facts()}
        description["place"] = self.settings.place()
        description |= declared_version(self.version) | described_unknown(self.settings.unknown)
        return description | ({} if self.dense is None else {"encoder": self.dense.describe()})

    def fetch(self) -> None:
        """Download the encoder's checkpoint where it is not here; raises DownloadError where that fails."""
        if self.dense is not None:
            self.dense.fetch()

    def components(self) -> tuple[Component, ...]:
        """None: nothing is kept here."""
        return ()

    @checked
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
    ef_search: int | None = None,
) -> PostgresCollection | PostgresTable:
    """PostgreSQL: its full-text search, or pgvector, on a table that Weir makes there or on one of one's own.

    file: TOML that names the server and what is searched, see docs/retrievers.md; query: websearch, plain, phrase or
    or; rank: ts_rank or ts_rank_cd; encoder: a model as dense takes it, or a dense(...), whose vectors pgvector
    searches instead of texts; index: exact or hnsw; version: what stands for the table, or the server, in keys;
    ef_search: how many candidates hnsw looks at. What is None is taken from the file. Raises FormatError for the file,
    BadValue and UnknownName for settings.
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
