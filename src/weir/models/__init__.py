"""Models: texts to vectors, to weighted terms, pairs to scores, prompts to answers."""

from weir.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
