"""A results folder as a page, as tables and figures of a paper, and as Markdown; begin with `report.py`."""

from weir.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
