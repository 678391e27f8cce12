"""Reports: a results folder as one page, as tables and figures of a paper, and as a short text.

Begin with `report.py`, which is `weir.report`.
"""

from weir.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
