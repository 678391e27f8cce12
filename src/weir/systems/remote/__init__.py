"""Systems that run elsewhere.

`command.py`: a program in any language. `endpoint.py`: a search server behind HTTP, described by a TOML file;
`templates/` has files for known servers. `remote_searcher.py`: sends queries, stores the answers and reports failures,
for these and for the plug-ins of PostgreSQL and Elasticsearch.
"""
