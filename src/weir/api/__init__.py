"""Public API of `import weir`; its functions take paths, dicts, frames or Weir's values."""

from weir.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
