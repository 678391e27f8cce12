"""Systems: from a corpus and queries to a run. The names stand in `__init__.pyi`; each is imported when it is used."""

from weir.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
