"""PostgreSQL as a system: full-text search and pgvector, on a table that Weir fills, or on one that is there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from weir.core.corpus import Corpus
from weir.errors import BadValue, StoreError
from weir.io.storage.atomic import atomic_dir
from weir.io.storage.sealed import open_folder, seal_folder
from weir.plugins.servers.postgres_search import SearchedTable
from weir.plugins.servers.postgres_searcher import PostgresSearcher
from weir.plugins.servers.postgres_server import connected, failing_as, server_versions
from weir.plugins.servers.postgres_settings import (
    PostgresSettings,
    TextSearch,
    VectorSearch,
    read_postgres_settings,
)
from weir.plugins.servers.postgres_table import (
    ServerTable,
    TableState,
    dropped_tables,
    filled_table,
    table_state,
)
from weir.registry import declared_version
from weir.services.asking import ServiceUse
from weir.systems.compose import shown, then
from weir.systems.dense import DenseRetriever, encoder_of
from weir.systems.protocol import IN_MEMORY, Component, Context, called, folder_of
from weir.systems.remote.corpus_content import content_of

__all__ = ["PostgresCollection", "PostgresTable", "WrittenName", "postgres"]

FORMAT = 1


@dataclass(frozen=True)
class WrittenName:
    """How a system was written: the file of its settings, and what was said beside it."""

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
        found: dict[str, object] = {"system": "postgres", "search": self.search_settings.facts()}
        found["on_failure"] = self.settings.on_failure
        found |= {} if self.version is None else {"version": self.version}
        return found | ({} if self.dense is None else {"encoder": self.dense.describe()})

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
        return replace(self, settings=settings, written=replace(self.written, given=self._of_index()))

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
        table = ServerTable(self.settings, self.search_settings, corpus, self._about(corpus), vectors)
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
        return PostgresSearcher(str(self), searched, corpus, about, self.dense, ServiceUse("", versions))

    def _about(self, corpus: Corpus) -> dict[str, object]:
        """What decides the table."""
        return {
            "format": FORMAT,
            "corpus": content_of(corpus, self.fields_read()),
            "system": self.indexed_as().describe(),
        }

    def _of_index(self) -> tuple[tuple[str, object], ...]:
        return tuple((name, value) for name, value in self.written.given if name in ("encoder", "index"))


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
        found: dict[str, object] = {"system": "postgres", "search": search.facts()}
        found |= {"on_failure": self.settings.on_failure, "table": self.settings.table.facts()}
        found |= declared_version(self.version)
        return found | ({} if self.dense is None else {"encoder": self.dense.describe()})

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
        return PostgresSearcher(str(self), searched, corpus, about, self.dense, ServiceUse("", versions))

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
    given = {"query": query, "rank": rank, "encoder": encoder, "index": index, "version": version}
    written = WrittenName(file, tuple((name, value) for name, value in given.items() if value is not None))
    _refuse_idle(given)
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
        raise BadValue(f"{written}: [table] names no vector, so that an encoder means nothing")
    return PostgresTable(written, settings, made, version)


def _refuse_idle(given: Mapping[str, object]) -> None:
    """Raise BadValue for settings of the other kind of search."""
    for name in ("query", "rank") if given["encoder"] is not None else ("index",):
        if given[name] is not None:
            other = "full text" if given["encoder"] is None else "vectors"
            raise BadValue(f"postgres: {name} means nothing for a search of {other}")
