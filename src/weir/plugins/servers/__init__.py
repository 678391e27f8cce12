"""Search that others run: HTTP endpoints, Elasticsearch, PostgreSQL, re-ranking services; begin with
`endpoint.py`."""
