"""Systems, which make a run from a corpus and queries.

Every system and re-ranker, such as dense in `dense("minilm")`, is an attribute, imported on first use.
"""

import importlib.util

from weir.errors import UnknownAttribute
from weir.lazy_names import lazy_names

_named, __dir__ = lazy_names(__name__)


def __getattr__(name: str) -> object:
    if name == "__all__" or name in __dir__():
        return _named(name)
    # `from weir.systems import lexical` asks for the attribute before it imports the module.
    if name.startswith("_") or importlib.util.find_spec(f"{__name__}.{name}"):
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    from weir.systems.protocol import RERANKERS, SYSTEMS

    for registry in (SYSTEMS, RERANKERS):
        if name in registry.names():
            return registry.get(name)
    raise UnknownAttribute(__name__, name, {*__dir__(), *SYSTEMS.names(), *RERANKERS.names()})
