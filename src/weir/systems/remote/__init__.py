"""Systems that run elsewhere.

`command.py` a program in any language, `program.py` its process; `endpoint.py` a search server behind HTTP,
`search_template.py` what its TOML file says, `placeholders.py` how a request is filled in, `templates/` files for
known servers; `postgres.py` a PostgreSQL server, `postgres_settings.py` what its TOML file says, `postgres_server.py`
a connection, `postgres_table.py` a table of Weir's own there, `postgres_search.py` the statements of a search;
`elasticsearch.py` an Elasticsearch or OpenSearch server, with `elastic_settings.py`, `elastic_server.py` and
`elastic_index.py`, an index of Weir's own there. `settings_file.py` is how settings are read, `corpus_content.py` what
stands for a collection that is copied to a server. `remote_searcher.py` asks all of them, keeps what they answer and
says what failed; `result_list.py` what is kept of an answer.
"""
