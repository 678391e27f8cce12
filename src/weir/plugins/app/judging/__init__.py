"""Judging by people: assignment, answers, and their quality.

Begin with `journal.py`: an SQLite file to which events are only appended, and the labels that follow from
them. Only `pages.py` and the modules of rooms know the web.
"""
