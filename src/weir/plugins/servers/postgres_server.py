"""A connection to a PostgreSQL server, and what its errors come to in one line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from weir.errors import BadValue, ServiceError, require
from weir.plugins.servers.postgres_settings import PostgresSettings
from weir.services.keys import Key

if TYPE_CHECKING:
    import psycopg

__all__ = ["connected", "failing_as", "server_versions"]

CONNECT_SECONDS = 30
SHOWN_CHARACTERS = 300


@contextmanager
def connected(settings: PostgresSettings, read_only: bool) -> Iterator[psycopg.Connection[Any]]:
    """A connection on which each statement stands for itself, closed afterwards.

    read_only: refuse to change anything. Raises ServiceError, without any password, where the server cannot be reached;
    MissingExtra where psycopg is not installed.
    """
    connection = opened(settings, read_only)
    try:
        yield connection
    finally:
        connection.close()


def opened(settings: PostgresSettings, read_only: bool) -> psycopg.Connection[Any]:
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
        raise ServiceError(f"PostgreSQL: {said(error, settings)}") from None


def said(error: Exception, settings: PostgresSettings) -> str:
    """What a server or the library says, in one line, without what is secret of the address."""
    text = str(error)
    for secret_part in ("", *_secrets(settings)):
        text = Key(None, secret_part).masked(text)
    return text[:SHOWN_CHARACTERS] or type(error).__name__


def _secrets(settings: PostgresSettings) -> list[str]:
    """The address itself where it comes from the environment, and the password in it."""
    if not settings.dsn.startswith("${"):
        return []
    with suppress(ServiceError):
        address = settings.address()
        found = [address]
        psycopg = require("psycopg", "postgres")
        with suppress(psycopg.Error):
            found.append(str(psycopg.conninfo.conninfo_to_dict(address).get("password") or ""))
        return [part for part in found if part]
    return []


def server_versions(connection: psycopg.Connection[Any], vectors: bool) -> dict[str, str]:
    """The versions of the server and, where vectors are searched, of pgvector; raises BadValue without it."""
    found = {"PostgreSQL": str(connection.execute("SHOW server_version").fetchone()[0])}  # type: ignore[index]  # SHOW answers with one row
    if vectors:
        row = connection.execute("SELECT extversion FROM pg_extension WHERE extname = 'vector'").fetchone()
        if row is None:
            raise BadValue("PostgreSQL: pgvector is not installed in this database: CREATE EXTENSION vector")
        found["pgvector"] = str(row[0])
    return found
