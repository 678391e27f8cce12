"""Systems that run elsewhere.

`command.py` runs a program in any language; `remote_searcher.py` sends queries, stores answers and reports
failures, for programs and for the slice of servers.
"""
