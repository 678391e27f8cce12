"""Systems that run elsewhere: programs in any language (`command.py`).

`remote_searcher.py` sends queries, stores answers and reports failures, for programs and for the slice of
servers.
"""
