"""Choose what to judge, and measure labels.

Begin with `api.py`, which is `weir.labels`; `commands.py` has `weir labels ...`. `pools.py` writes sheets of
documents to judge, and scores systems again by filled sheets (`pool`, `relabel`). `hole_study.py` counts relevant
documents among the unjudged (`holes`). `estimates.py` corrects scores of a model's labels by a sample of people's
(`estimate`), with the estimators of `sampling.py`. `people.py` says how sure people are (`people`). Agreement is
computed in `weir.stats`.
"""
