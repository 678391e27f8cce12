"""Grids of datasets x systems x measures, resumable by content; modules are imported when used."""

from weir.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
