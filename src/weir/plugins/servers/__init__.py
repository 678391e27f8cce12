"""Search that others run: HTTP endpoints, Elasticsearch, PostgreSQL, re-ranking services.

Begin with `endpoint.py`, which is `http("search.toml")`. `elasticsearch.py` and `postgres.py` index a
collection on a server. `live_index.py` and `why_engine.py` explain the scores of an existing index (`weir
why`).
"""
