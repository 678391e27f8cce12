"""Search servers as systems: PostgreSQL with pgvector, Elasticsearch and OpenSearch.

`postgres.py` a PostgreSQL server, `postgres_settings.py` what its TOML file says, `postgres_server.py` a connection,
`postgres_table.py` a table of Weir's own there, `postgres_search.py` the statements of a search; `elasticsearch.py` an
Elasticsearch or OpenSearch server, with `elastic_settings.py`, `elastic_server.py` and `elastic_index.py`, an index of
Weir's own there.
"""
