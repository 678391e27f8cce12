"""The public API of `import weir`. Functions take paths, dicts, frames or Weir's values, and return results that print
themselves.

`evaluation` scores a run, `comparisons` compares runs, `benchmark` runs systems on collections,
`results_folder` reads and checks results, and `result_set` is the type that most of them return. A module is
imported when it is first used: `from weir import api`, then `api.comparisons.compare`.
"""

from weir.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
