"""Conversion between the objects of Weir and of other tools. Begin with `export.py` (`weir data export`);
importing this package imports none of these tools."""

from weir.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
