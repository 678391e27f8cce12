"""Test collections: catalogue, loading, fetching, and cards, each imported when it is first used."""

from weir.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
