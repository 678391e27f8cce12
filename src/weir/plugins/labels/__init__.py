"""Choose documents to judge, and measure how good labels are: `api.py` is `weir.labels`."""
