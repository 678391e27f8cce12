"""Choose documents to judge, and measure how good labels are.

Begin with `api.py`, which is `weir.labels`. `pools.py` writes sheets of documents to judge, `hole_study.py`
studies unjudged documents, `estimates.py` corrects scores by few labels of people, `people.py` measures
judges. Agreement is computed in `weir.stats`.
"""
