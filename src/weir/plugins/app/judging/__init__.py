"""Judging by people: assignment, answers, and their quality.

Begin with `journal.py`, an append-only SQLite file. `pages.py` alone knows the web.
"""
