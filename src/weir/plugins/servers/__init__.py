"""Search that others run: HTTP endpoints, Elasticsearch, PostgreSQL, re-ranking services. Begin with `endpoint.py`.

- `endpoint.py` is `http("search.toml")`; the servers that it knows are in `templates/`.
- `elasticsearch.py` and `postgres.py` index a collection on a server and search it there; `vectors.py` is their
  search by vectors.
- `live_index.py` and `live_solr.py` ask an existing index for its fields and scores; `why_engine.py` explains a
  difference by them (`weir why`).
- `service_reranker.py` is `rerank(...)`.
"""
