"""Search that others run: HTTP endpoints, Elasticsearch, PostgreSQL, re-ranking services.

Begin with `endpoint.py`, which is `http("search.toml")`.
"""
