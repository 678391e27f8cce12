"""Import files of other tools, and golden sets of any shape, as a collection; begin with `importer.py`."""

from __future__ import annotations

from weir.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
