"""What a retrieval system is, and how its name is read.

A system's name is a value: `bm25(k1=1.2, b=0.75)` prints, parses back and compares. Names are read as
syntax trees, never evaluated.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, runtime_checkable

from weir.core.corpus import Corpus, Queries
from weir.core.run import Run
from weir.errors import BadValue, UnknownName
from weir.registry import Registry

__all__ = ["SYSTEMS", "Progress", "Retriever", "Searcher", "called", "parse_system", "usage"]

Progress = Callable[[int, int], None]


class Searcher(Protocol):
    """An index ready to answer: an immutable snapshot."""

    def search(self, queries: Queries, k: int) -> Run:
        """The k best documents for each query, fewer where fewer match."""
        ...


@runtime_checkable
class Retriever(Protocol):
    """A configuration that turns a corpus into a searcher; a frozen dataclass that prints as its name."""

    def describe(self) -> dict[str, object]:
        """Everything that can move a number, for the manifest."""
        ...

    def index(self, corpus: Corpus, at: Path | None = None, progress: Progress | None = None) -> Searcher:
        """Index a corpus, in memory or into the folder `at`, which appears when it is complete."""
        ...

    def open(self, at: Path, corpus: Corpus) -> Searcher:
        """Open an index made before from the same corpus; raises StoreError where it is damaged."""
        ...


SYSTEMS: Registry[Callable[..., Retriever]] = Registry("system")


def parse_system(text: str) -> Retriever:
    """The system that a text such as `bm25(k1=1.2, b=0.75)` names.

    Raises UnknownName for a system or setting that does not exist, BadValue for a malformed text.
    """
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        raise _malformed(text) from None
    return _system(tree, text)


def called(name: str, positional: list[object], settings: dict[str, object]) -> str:
    """How a system with these settings prints: name("first", key=value), or the bare name."""
    inside = [_literal(v) for v in positional] + [f"{k}={_literal(v)}" for k, v in settings.items()]
    return f"{name}({', '.join(inside)})" if inside else name


def usage(name: str) -> str:
    """A system with all its settings at their defaults, as it may be written."""
    parameters = inspect.signature(SYSTEMS.get(name)).parameters.values()
    return f"{name}({', '.join(f'{p.name}={_literal(p.default)}' for p in parameters)})"


def _literal(value: object) -> str:
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return str(value)


def _system(node: ast.expr, text: str) -> Retriever:
    if isinstance(node, ast.Name):
        return _built(node.id, [], {}, text)
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
        raise _malformed(text)
    if any(k.arg is None for k in node.keywords):
        raise _malformed(text)
    positional = [_argument(a, text) for a in node.args]
    named = {str(k.arg): _argument(k.value, text) for k in node.keywords}
    return _built(node.func.id, positional, named, text)


def _argument(node: ast.expr, text: str) -> object:
    """A literal, or a system inside a system."""
    if isinstance(node, (ast.Name, ast.Call)):
        return _system(node, text)
    try:
        return ast.literal_eval(node)
    except ValueError:
        raise _malformed(text) from None


def _built(name: str, positional: list[object], named: dict[str, object], text: str) -> Retriever:
    builder = SYSTEMS.get(name)
    signature = inspect.signature(builder)
    for key in named:
        if key not in signature.parameters:
            raise UnknownName(f"setting of {name}", key, signature.parameters)
    try:
        signature.bind(*positional, **named)
    except TypeError as error:
        raise BadValue(f"{text}: {error}") from None
    return builder(*positional, **named)


def _malformed(text: str) -> BadValue:
    return BadValue(f"'{text}' is not a system; expected such as bm25 or bm25(k1=1.2, b=0.75)")
