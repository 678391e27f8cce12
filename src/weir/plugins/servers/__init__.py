"""Search servers as systems: PostgreSQL (`postgres.py`), Elasticsearch and OpenSearch (`elasticsearch.py`)."""
