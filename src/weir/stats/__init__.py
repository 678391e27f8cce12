"""From per-query scores to inference: intervals, tests and corrections; values for those who compare with settings."""

from weir.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
