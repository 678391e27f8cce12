"""Choose documents to judge, and measure how good labels are.

Begin with `api.py`, which is `weir.labels`.
"""
