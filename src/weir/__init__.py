"""Weir measures how well retrieval systems find relevant documents.

    ds = weir.load("scifact")
    run = weir.BM25().index(ds.corpus).search(ds.queries, k=1000)
    scores = weir.evaluate(ds.qrels, run, ["nDCG@10", "R@100"])

Names are imported on first use. Every registered measure is an attribute too: `weir.nDCG @ 10`.
"""

from __future__ import annotations

from collections.abc import Iterator

from weir.core.hooks import Hook
from weir.errors import UnknownAttribute
from weir.lazy_names import lazy_names

_named, _names = lazy_names(__name__)


def _rooms() -> Iterator[None]:
    import weir.files.intents
    import weir.files.runs
    import weir.files.score_files
    import weir.files.text_frames
    import weir.files.write

    yield
    import weir.measures.measure

    yield
    import weir.stats.score_rows

    yield
    import weir.datasets.load

    yield
    import weir.api.charts
    import weir.api.given  # noqa: F401  each of these registers functions

    yield


Hook.rooms = staticmethod(_rooms)


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
    if name in _names():
        return _named(name)
    # `from weir import errors` asks for the attribute before it imports the module.
    if name.startswith("_") or importlib.util.find_spec(f"weir.{name}"):
        raise AttributeError(f"module 'weir' has no attribute '{name}'")
    import weir.measures
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
    raise UnknownAttribute("weir", name, {*__dir__(), *weir.measures.MEASURES.names()})
