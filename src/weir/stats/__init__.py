"""Statistical inference from scores: intervals, tests, comparisons, gates, agreement of labels."""

from weir.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
