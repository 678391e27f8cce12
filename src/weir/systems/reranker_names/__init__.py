"""The re-rankers by their names. `__init__.pyi` lists them; each is imported when it is used."""

from weir.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
