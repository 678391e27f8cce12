"""Run grids of datasets x systems x measures, and read their results."""

from weir.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
