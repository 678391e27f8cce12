"""Every registered system and re-ranker keeps to the protocol: one shape of calls, costs, and `>>`."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from pathlib import Path

import pytest

pytest.importorskip("numba", reason="needs the `run` extra (numba)")

import weir.systems
from weir.systems import BM25, RERANKERS, RM3, SYSTEMS, Reranker, Retriever, Score, parse_system
from weir.systems.compose import Pipeline
from weir.systems.fusion import METHODS

CALLS = {
    "index": ("self", "corpus", "context"),
    "open": ("self", "corpus", "context"),
    "ready": ("self", "corpus", "context"),
    "search": ("self", "queries", "k", "context"),
    "scores": ("self", "queries", "candidates", "context"),
    "costs": ("self",),
    "components": ("self",),
}
NEEDED = {
    "deepct": {"model": "a/b"},
    "filtered": {"system": BM25(), "filter": "text"},
    "run": {"path": "first.trec"},
    "command": {"command": "node search.mjs"},
    "elasticsearch": {"url": "http://localhost:9200"},
    "http": {"file": "search.toml"},
    "llm": {"method": "listwise", "model": "openai:gpt-4o-mini"},
    "postgres": {"file": str(Path(__file__).with_name("shop.toml"))},
    "rerank": {"model": "cohere:rerank-v3.5"},
}


def made(registry, name):
    parts = (BM25(), RM3()) if name in METHODS else (BM25(),) if name == "score" else ()
    return registry.get(name)(*parts, **NEEDED.get(name, {}))


@pytest.mark.parametrize("name", list(SYSTEMS))
def test_a_system_composes(name):
    system = made(SYSTEMS, name)
    assert isinstance(system, Retriever)
    assert repr(system) == str(system)
    pipeline = system >> Score(RM3())
    assert isinstance(pipeline, Pipeline)
    assert parse_system(str(pipeline)) == pipeline


@pytest.mark.parametrize("name", list(RERANKERS))
def test_a_re_ranker_composes_with_a_function(name):
    def mine(queries, k):
        return {}

    reranker = made(RERANKERS, name)
    assert isinstance(reranker, Reranker)
    assert repr(reranker) == str(reranker)
    assert str(mine >> reranker) == f"mine >> {reranker}"


def test_every_method_of_the_protocol_has_its_shape():
    modules = [
        importlib.import_module(m.name)
        for m in pkgutil.walk_packages(weir.systems.__path__, "weir.systems.")
        if not m.name.startswith("weir.systems.vectors.")  # indexes of vectors, which are no systems
    ]
    seen = set()
    for module in modules:
        for _, kind in inspect.getmembers(module, inspect.isclass):
            answers = kind.__module__ == module.__name__ and not getattr(kind, "_is_protocol", False)
            if not (answers and {"search", "describe", "ready", "costs"} & set(vars(kind))):
                continue
            for call, parameters in CALLS.items():
                if call in vars(kind) and kind.__name__ != "FolderShelf":
                    names = tuple(inspect.signature(vars(kind)[call]).parameters)[1:]
                    assert names == parameters[1:], f"{kind}.{call}"
                    seen.add(call)
            if {"search", "scores"} & set(vars(kind)):
                assert "costs" in vars(kind), kind
    assert seen == set(CALLS)


def test_nothing_is_found_by_its_name():
    """Optional parts are protocols that are asked for by isinstance; names are looked up in fields and modules alone."""
    root = importlib.import_module("weir").__path__[0]
    for module in pkgutil.walk_packages([root], "weir."):
        if module.name.startswith(("weir.systems", "weir.experiment", "weir.models")):
            source = inspect.getsource(importlib.import_module(module.name))
            for of_the_platform in ('os, "sysconf"', 'mmap, "MADV_DONTNEED"', 'mmap, "MADV_WILLNEED"'):
                source = source.replace(f"hasattr({of_the_platform})", "")
            assert "hasattr(" not in source, module.name
