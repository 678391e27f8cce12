"""Language models as re-rankers and as judges, and studies of how far to trust both.

Begin with `chat.py`, which asks a model and stores its answers.
"""

from weir.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
