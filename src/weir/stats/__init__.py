"""From scores to inference: intervals, tests, corrections, power, comparisons, gates, agreement of labels."""

from weir.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
