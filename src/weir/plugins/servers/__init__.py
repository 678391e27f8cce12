"""Search by servers of others: HTTP endpoints, Elasticsearch, PostgreSQL, re-ranking services.

Begin with `endpoint.py`.
"""
