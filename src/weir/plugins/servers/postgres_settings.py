"""What a TOML file says of a PostgreSQL server: where it is, what is searched there, and how."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from weir.core.corpus import check_view
from weir.errors import BadValue, ServiceError
from weir.io.storage.toml_file import read_toml
from weir.settings import secret
from weir.systems.remote.remote_searcher import check_on_failure
from weir.systems.remote.settings_file import (
    check_choice,
    check_number,
    check_text,
    check_whole,
    settings_value,
)

__all__ = ["PostgresSettings", "TextSearch", "UserTable", "VectorSearch", "read_postgres_settings"]

EXPECTED = "the settings of a PostgreSQL server, see docs/servers.md"
ADDRESS_VARIABLE = "(PG|POSTGRES|DATABASE_|WEIR_KEY_)[A-Z0-9_]*"
"""What an environment variable is called that a file may name as the address of a server."""
QUERIES = ("websearch", "plain", "phrase", "or")
RANKS = ("ts_rank", "ts_rank_cd")
DISTANCES = {"inner": "<#>", "cosine": "<=>", "l2": "<->"}
"""Name -> pgvector's operator, smaller is nearer."""
INDEXES = ("exact", "hnsw")


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
class VectorSearch:
    """Search by pgvector.

    index: exact, or hnsw; distance: inner, cosine or l2; m, ef_construction, ef_search: HNSW's own settings.
    """

    index: str = "exact"
    distance: str = "inner"
    m: int = 16
    ef_construction: int = 64
    ef_search: int = 100

    def __post_init__(self) -> None:
        check_choice("index", self.index, INDEXES)
        check_choice("distance", self.distance, DISTANCES)
        check_whole("m", self.m, 2, 100)
        check_whole("ef_construction", self.ef_construction, 4, 1000)
        check_whole("ef_search", self.ef_search, 1, 1000)

    def facts(self) -> dict[str, object]:
        """Everything that decides its rankings on a given server, beside the encoder."""
        hnsw = {"m": self.m, "ef_construction": self.ef_construction, "ef_search": self.ef_search}
        own: dict[str, object] = {"kind": "vectors", "index": self.index, "distance": self.distance}
        return own | (hnsw if self.index == "hnsw" else {})


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
    "missing", what becomes of queries without an answer; name: what tables call it, "" for its file.
    """

    dsn: str = field(repr=False)
    schema: str = "weir"
    table: UserTable | None = None
    text: TextSearch = field(default_factory=TextSearch)
    vector: VectorSearch = field(default_factory=VectorSearch)
    concurrency: int = 8
    timeout_s: float = 60.0
    on_failure: str = "refuse"
    name: str = ""

    def __post_init__(self) -> None:
        check_text("dsn", self.dsn)
        check_text("schema", self.schema)
        check_on_failure("postgres", self.on_failure)
        check_whole("concurrency", self.concurrency, 1, 256)
        check_number("timeout_s", self.timeout_s, 1e6)
        named = re.fullmatch(r"\$\{(.*)\}", self.dsn)
        if named and not re.fullmatch(ADDRESS_VARIABLE, named[1]):
            raise BadValue(
                f"dsn names the environment variable {named[1]}; expected PG..., DATABASE_... or WEIR_KEY_..."
            )
        if named is None and (
            re.search(r"(password|passfile)\s*=", self.dsn) or re.search(r"//[^/?@]*:[^/?@]+@", self.dsn)
        ):
            raise BadValue(
                "dsn holds a password, which belongs into the environment: PGPASSWORD, or the whole dsn as "
                '"${PGURL}"'
            )

    def address(self) -> str:
        """The dsn, read from the environment where the file says so; raises ServiceError where it is not there."""
        named = re.fullmatch(r"\$\{(.*)\}", self.dsn)
        if named is None:
            return self.dsn
        found = secret(named[1])
        if found is None:
            raise ServiceError(f"this needs the address of the server in the environment variable {named[1]}")
        return found


def read_postgres_settings(path: Path) -> PostgresSettings:
    """The settings in a TOML file; raises FormatError for no such file, UnknownName and FormatError for its values."""
    given = read_toml(path, EXPECTED)
    parts: dict[str, Callable[[Path, Any], object]] = {
        "table": lambda p, v: settings_value(UserTable, p, "[table]", _tupled(v)),
        "text": lambda p, v: settings_value(TextSearch, p, "[text]", v),
        "vector": lambda p, v: settings_value(VectorSearch, p, "[vector]", v),
    }
    return settings_value(
        PostgresSettings,
        path,
        "the file",
        {key: parts[key](path, value) if key in parts else value for key, value in given.items()},
    )


def _tupled(given: Any) -> Any:  # noqa: ANN401  whatever TOML holds
    if isinstance(given, Mapping) and isinstance(given.get("text"), list):
        return {**given, "text": tuple(given["text"])}
    return given
