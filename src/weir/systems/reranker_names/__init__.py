"""The re-rankers by name; `__init__.pyi` lists them, each is imported on use."""

from weir.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
