"""The public API of `import weir`; its functions take paths, dicts, frames or Weir's values.

`evaluation` scores a run, `comparisons` compares runs, `benchmark` runs systems on collections,
`results_folder` reads and checks results, and `result_set` is the type that most of them return. Modules are
imported when first used.
"""

from weir.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
