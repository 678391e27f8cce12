"""Judging by people: assignment, answers, and their quality.

Begin with `journal.py`, an SQLite file to which events are only appended. `pages.py` alone knows the web.
"""
