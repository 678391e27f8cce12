"""Judging by people: assignment, answers, and their quality.

Begin with `journal.py`: an SQLite file of events that are only appended, and the state that follows from
them. `tasks.py` has the pairs to judge (a pool of `weir labels pool`, or pairs of a filter), `assignment.py`
chooses the next pair of a judge, `supervision.py` reports agreement, speed and drift of judges,
`preferences.py` compares documents and rankings side by side, `exports.py` writes files. None of these knows
the web.
"""
