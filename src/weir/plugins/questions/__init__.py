"""Questions beside scores: where relevant documents are lost, whether queries can measure a change, and more.

Begin with `funnel.py` (`weir study funnel`).
"""
