"""Judging by people: assignment, answers, and their quality; begin with `journal.py`."""
