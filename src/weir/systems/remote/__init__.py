"""Systems that run elsewhere.

`command.py` a program in any language, `program.py` its process; `endpoint.py` a search server behind HTTP,
`search_template.py` what its TOML file says, `placeholders.py` how a request is filled in, `templates/` files for
known servers. What asks PostgreSQL and Elasticsearch is a plug-in that uses the same parts: `settings_file.py` reads
settings, `corpus_content.py` is what stands for a collection that is copied to a server. `remote_searcher.py` asks all
of them, keeps what they answer and says what failed; `result_list.py` is what is kept of an answer.
"""
