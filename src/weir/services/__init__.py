"""Asking what somebody else runs: embedding and re-ranking APIs, chat models, search servers, programs.

`http.py` one exchange, bounded in bytes and time; `keys.py` where a secret comes from and how it never shows;
`limits.py` budget, rate, patience; `metered.py` a client that keeps to them; `attempts.py` which failures pass, and
asking again; `answers.py` what was answered, kept before it is used; `asking.py` many requests side by side, and the
count of what became of them.
"""
