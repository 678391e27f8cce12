"""Conversion between Weir's objects and those of other tools. Importing this package imports none of these tools.

`export.py` writes results for MTEB, the Hugging Face hub and ir_metadata (`weir data export`).
"""

from weir.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
