"""Learned sparse and late-interaction encoders, T5, approximate indexes."""

from weir.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
