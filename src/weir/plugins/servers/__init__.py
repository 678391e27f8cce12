"""Search by servers of others: HTTP endpoints, Elasticsearch, PostgreSQL, re-ranking services; begin with
`endpoint.py`."""
