"""Convert objects of Weir and of other tools; begin with `export.py` (`weir data export`)."""

from weir.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
