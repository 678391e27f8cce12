"""Reports: a results folder as one page, as tables and figures of a paper, and as a short text.

Begin with `report.py`, which is `weir.report`; `command.py` is `weir report` and `weir study cite`. `study.py` has what
a page is about, `sections.py` writes its sections, `page.py` the page; `paper.py` makes published tables, `cite.py`
citations.
"""

from weir.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
