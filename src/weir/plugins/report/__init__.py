"""Reports: a results folder as one page, as tables and figures of a paper, and as a short text.

Begin with `report.py`, which is `weir.report`. `study.py` has the data of a page, `sections.py` its sections,
and `paper.py` makes published tables.
"""

from weir.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
