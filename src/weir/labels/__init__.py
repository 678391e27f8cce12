"""Labels: choosing pairs to judge, agreement of judges, merging judgments, scores estimated from few
judgments."""

from weir.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
