"""Compiled inner loops on arrays; they import numba, so each is imported on first use."""

from weir.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
