"""Compiled loops over arrays; they import numba, so import them only on use."""

from weir.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
