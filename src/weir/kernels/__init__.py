"""Compiled inner loops that take and fill arrays, without objects or files.

These modules import numba, which the base install lacks: `from weir import kernels` imports each when it is
first used, as in `kernels.dot_product.norms(...)`.
"""

from weir.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
