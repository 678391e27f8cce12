"""Re-rank and judge by language models, and measure how far to trust both; begin with `chat.py`."""

from weir.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
