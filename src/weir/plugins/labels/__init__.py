"""Choose documents to judge, and measure how good labels are; begin with `api.py`, which is `weir.labels`."""
