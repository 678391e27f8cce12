"""Models: texts to vectors and term weights, pairs to scores."""

from weir.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
