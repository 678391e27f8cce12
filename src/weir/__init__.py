"""Weir measures how well retrieval systems find what people need.

    ds = weir.load("scifact")
    run = weir.BM25().index(ds.corpus).search(ds.queries, k=1000)
    scores = weir.evaluate(ds.qrels, run, ["nDCG@10", "R@100"])

The names stand in `__init__.pyi` and are imported when they are first used: scoring a run needs numpy alone, and
indexing the `run` extra. Every registered measure is an attribute too: `weir.nDCG @ 10`.
"""

from __future__ import annotations

from collections.abc import Iterator

from weir.core.hooks import Hook
from weir.lazy_names import lazy_names

_named, _names = lazy_names(__name__)


def _rooms() -> Iterator[None]:
    """Import, floor by floor, the modules that say how values of `core` are read, written and shown."""
    import weir.files.intents
    import weir.files.runs
    import weir.files.score_files
    import weir.files.write

    yield
    import weir.measures.measure

    yield
    import weir.stats.score_rows

    yield
    import weir.datasets.load  # noqa: F401  each of these registers functions

    yield


Hook.rooms = staticmethod(_rooms)

_RENAMED = {
    "layered": "merge_qrels",
    "official": "official_scores",
    "orders": "rank_agreement",
    "raters": "rater_agreement",
    "rows": "result_rows",
}
"""Names of 0.2, and what each is called now."""


def __dir__() -> list[str]:
    from weir.registry import Registry

    return sorted({*_names(), *Registry[object]("function").names()})


def __getattr__(name: str) -> object:
    import importlib.util

    if name == "__all__":
        return __dir__()
    if name == "__version__":
        from importlib.metadata import version  # it takes longer to import than the rest

        return version("weir-ir")
    try:
        return _named(name)
    except AttributeError:
        # `from weir import errors` asks for the attribute before it imports the module.
        if name.startswith("_") or importlib.util.find_spec(f"weir.{name}"):
            raise
    import warnings

    import weir.labels
    import weir.measures
    import weir.stats
    import weir.systems
    from weir.registry import Registry

    registered = getattr(weir.measures, name, None)
    if isinstance(registered, weir.measures.Measure):
        return registered
    if name in weir.measures.MEASURES:
        return weir.measures.Measure(name)
    functions = Registry[object]("function")  # those of plug-ins, by their entry points
    if name in functions.names():
        globals()[name] = functions.get(name)
        return globals()[name]
    new_name = _RENAMED.get(name, name)
    for place in (weir, weir.labels, weir.measures, weir.stats, weir.systems):
        if new_name in place.__all__:
            text = f"weir.{name} is {place.__name__}.{new_name} since 0.3; the old name goes in 0.5"
            warnings.warn(text, DeprecationWarning, stacklevel=2)
            return getattr(place, new_name)
    raise AttributeError(f"module 'weir' has no attribute '{name}'")
