"""Search by others' servers: HTTP endpoints, Elasticsearch, PostgreSQL, re-ranking services."""
