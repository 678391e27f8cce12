"""Compiled inner loops that take and fill arrays, without objects or files.

These modules import numba, which the base install lacks: `from weir import kernels` imports each on first
use.
"""

from weir.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
