"""Services that others run: embedding and re-ranking APIs, chat models, search servers, programs.

`requests.py`: one exchange, bounded in bytes, time and money, and retried; keys, which no message shows. `answers.py`:
many requests side by side, and the store of their answers.
"""
