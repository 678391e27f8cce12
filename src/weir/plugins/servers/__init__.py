"""Search servers as systems: PostgreSQL (`postgres.py`), Elasticsearch and OpenSearch (`elasticsearch.py`).

`postgres_table.py` and `elastic_index.py` hold the settings, the connection, and the table or index of Weir's own.
"""
