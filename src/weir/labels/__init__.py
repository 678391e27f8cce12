"""Labels: what to judge next, how far judges agree, joining judgments, and scores estimated from few of them."""

from weir.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
