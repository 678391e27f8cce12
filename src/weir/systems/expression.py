"""Parse names of systems and grids, without evaluating them."""

from __future__ import annotations

import ast
import copy
import inspect
import io
import itertools
import json
import math
import os
import tokenize
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar, overload

from weir.argument_types import checked
from weir.core.expressions import syntax_tree
from weir.errors import BadValue, UnknownName, WeirError
from weir.registry import Registry
from weir.systems.compose import Pipeline, as_system
from weir.systems.protocol import RERANKERS, SYSTEMS, Retriever

# ----------
# Names of systems.


MOST_CHARACTERS = 16_384  # of a text that names a system
MOST_LEVELS = 64  # of systems within systems, or of re-rankers in a row
MOST_PARTS = 256  # systems and re-rankers that one text names
_LARGEST = 1 << 63  # no whole number of a setting reaches it
_SHOWN = 80  # characters of a text in a message
_PLAIN = {"int": "a whole number", "float": "a number", "bool": "True or False"}
_NESTING = (ast.Call, ast.BinOp, ast.UnaryOp, ast.List, ast.Tuple, ast.Dict, ast.Set)

T = TypeVar("T")


@checked
def parse_system(text: str) -> Retriever:
    """Return the system of a text such as `bm25(k1=1.2, b=0.75)` or `bm25 >> score(rm3)`.

    Raises UnknownName for an unknown system or setting; BadValue for malformed text, a grid, and a repeated
    or bad setting.
    """
    tree = expression_tree(text)
    if any(isinstance(node, ast.Set) for node in ast.walk(tree)):
        raise BadValue(
            f"'{_cut(text.strip())}' is a grid of systems, as {{...}} stands for several values; expected one system"
        )
    return _system(tree, text.strip())


_SYNTAX = {"never closed": "; a bracket is never closed", "comma": "; a comma may be missing"}
"""{phrase in an error of Python's parser: hint for the message}."""


def expression_tree(text: str) -> ast.expr:
    """Return the syntax tree of a system or grid; raises BadValue for malformed, long or deep text, too many
    systems, or a comment."""
    if not isinstance(text, str):
        raise BadValue(f"{text!r} is not a system; expected a text such as 'bm25(k1=1.2, b=0.75)'")
    if len(text) > MOST_CHARACTERS:
        raise BadValue(f"a system of {len(text):,} characters; expected at most {MOST_CHARACTERS:,}")
    stripped = text.strip()
    try:
        tree = syntax_tree(stripped)
        tokens = tokenize.generate_tokens(io.StringIO(stripped).readline) if "#" in stripped else ()
        comment = any(token.type == tokenize.COMMENT for token in tokens)
    except (SyntaxError, ValueError, RecursionError, MemoryError, tokenize.TokenError) as error:
        told = next((hint for part, hint in _SYNTAX.items() if part in str(error)), "")
        raise _malformed(stripped, told) from None
    if comment:  # which Python leaves out
        mark = "a # outside quotes, which marks a cell of results"
        raise BadValue(f"'{_cut(stripped)}' has {mark}; expected a system such as bm25(k1=1.2, b=0.75)")
    waiting, parts = [(tree, 1)], 0
    while waiting:
        node, level = waiting.pop()
        if level > MOST_LEVELS:
            raise BadValue(f"'{_cut(stripped)}' has more than {MOST_LEVELS} levels, one in another")
        parts += isinstance(node, ast.Name)
        deeper = level + isinstance(node, _NESTING)
        for child in ast.iter_child_nodes(node):
            inner = child.value if isinstance(child, ast.keyword) else child
            if isinstance(inner, ast.expr):
                waiting.append((inner, deeper))
    if parts > MOST_PARTS:
        raise BadValue(f"'{_cut(stripped)}' names {parts:,} systems; expected at most {MOST_PARTS}")
    return tree


@checked
def system(given: object, name: str | None = None, version: str | None = None) -> Retriever:
    """Return a system given as text, as a system, or as a function, object or encoder.

    given: functions take (queries, k); objects have search(queries, k) and maybe index(documents). Queries
        are {id: text}, documents {id: title and text}, answers {query id: {document id: score}} or {query id:
        [document ids, best first]}. Encoders of texts become `dense`. Objects of BEIR have search(corpus,
        queries, top_k) or retrieve(corpus, queries), with documents as {id: {"title": ..., "text": ...}}.
    name: printed name of a function or object, by default its own or its class's. A lambda needs a name.
    version: identifies a function or object for stored results. Without it, each process computes them again.

    Raises UnknownName for an unknown system or setting, BadValue for malformed text, other values, and a bad
    or registered name.
    """
    if isinstance(given, str) and name is None and version is None:
        return parse_system(given)
    return as_system(given, name, version)


def _system(node: ast.expr, text: str) -> Retriever:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.RShift):
        return Pipeline(_system(node.left, text), _built(RERANKERS, node.right, text))
    return _built(SYSTEMS, node, text)


def _built(registry: Registry[Callable[..., T]], node: ast.expr, text: str) -> T:
    call = ast.Call(node, [], []) if isinstance(node, ast.Name) else node
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name)):
        # e5-base is a difference in Python
        _refuse_model(ast.unparse(node).replace(" - ", "-"), registry.kind)
        raise _malformed(text)
    name = call.func.id
    if name not in registry and name.lower() in registry:
        name = name.lower()  # `BM25`, as Python's classes are written
    if name not in SYSTEMS and name not in RERANKERS:
        _refuse_model(name, registry.kind)
    if registry.kind == SYSTEMS.kind and name not in SYSTEMS and name in RERANKERS:
        raise BadValue(f"{name} re-ranks what a system finds: write such as bm25 >> {name}(...)")
    if registry.kind == RERANKERS.kind and name not in RERANKERS.names() and name in SYSTEMS.names():
        raise BadValue(f"{name} is a system; to re-rank by its scores write >> score({name})")
    builder = registry.get(name)
    signature = inspect.signature(builder)
    order = [p for p in signature.parameters.values() if p.kind is not p.KEYWORD_ONLY]
    positional: list[object] = []
    for at, argument in enumerate(call.args):
        positional.append(_argument(argument, text, order[min(at, len(order) - 1)] if order else None))
    settings: dict[str, object] = {}
    for keyword in call.keywords:
        if keyword.arg is None:
            raise _malformed(text)
        if keyword.arg not in signature.parameters:
            raise UnknownName(f"setting of {name}", keyword.arg, signature.parameters)
        if keyword.arg in settings:
            raise BadValue(f"{name}: {keyword.arg} is given twice")
        settings[keyword.arg] = _argument(keyword.value, text, signature.parameters[keyword.arg])
    try:
        signature.bind(*positional, **settings)
    except TypeError as error:
        raise BadValue(f"{name}: {error}") from None
    try:
        return builder(*positional, **settings)
    except WeirError:
        raise
    except Exception as error:  # a builder may be of a plug-in
        raise BadValue(f"{name} does not take these settings ({type(error).__name__}: {error})") from error


def _argument(node: ast.expr, text: str, parameter: inspect.Parameter | None) -> object:
    if isinstance(node, ast.Name) and not {node.id, node.id.lower()}.intersection(SYSTEMS.names()):
        if node.id in RERANKERS:
            raise BadValue(f"{node.id} re-ranks what a system finds: write such as bm25 >> {node.id}(...)")
        single = parameter is not None and parameter.kind is not parameter.VAR_POSITIONAL
        if parameter is not None and single and "str" in str(parameter.annotation):
            raise BadValue(
                f'{parameter.name} is a text, which stands in quotes: {parameter.name}="{node.id}"'
            )
        if parameter is not None and single and (expected := _PLAIN.get(_kind(parameter))):
            raise BadValue(f"{parameter.name} is {node.id}; expected {expected}")
        _refuse_model(node.id, SYSTEMS.kind)
        raise UnknownName("system", node.id, SYSTEMS)
    if isinstance(node, (ast.Name, ast.Call, ast.BinOp)):
        return _system(node, text)
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, RecursionError, MemoryError):
        raise _malformed(text) from None
    if isinstance(value, dict):
        once = isinstance(node, ast.Dict) and len(node.keys) == len(value)
        if not once or not all(isinstance(name, str) for name in value):
            raise BadValue(f"'{_cut(ast.unparse(node))}' is no setting; expected each name once, in quotes")
        parts = list(value.values())
    else:
        parts = list(value) if isinstance(value, (list, tuple)) else [value]
    for part in parts:
        if not (part is None or isinstance(part, (str, int, float))):
            raise BadValue(
                f"'{_cut(repr(value))}' is no setting; expected a number, a text, or a list or dict of them"
            )
        infinite = isinstance(part, float) and not math.isfinite(part)
        if infinite or (isinstance(part, int) and abs(part) >= _LARGEST):
            written = ast.get_source_segment(text.strip(), node) or ast.unparse(node)
            raise BadValue(f"'{_cut(written)}' is out of every range; expected a number below 2**63")
    return value


def _kind(parameter: inspect.Parameter) -> str:
    declared = parameter.annotation
    declared = type(parameter.default) if declared is parameter.empty else declared
    return str(getattr(declared, "__name__", declared)).removesuffix(" | None")


def _refuse_model(name: str, kind: str) -> None:
    from weir.models.checkpoints import find_card

    card = find_card(name)
    if card is None:
        return
    system = card.system
    reranker = "monot5" if card.kind == "t5" else card.kind
    if kind == RERANKERS.kind:
        correct = f'score({system}("{name}"))' if system else f'{reranker}("{name}")'
    else:
        correct = f'{system}("{name}")' if system else f'bm25 >> {reranker}("{name}")'
    raise BadValue(f"'{name}' is a model, not a {kind}; write {correct}")


def _malformed(text: str, found: str = "") -> BadValue:
    hint = "; in paths write / for \\" if "\\" in text else found
    if os.path.isfile(text):  # noqa: PTH113  Path.is_file raises for a text that is no path
        hint = f"; rankings in a file are run({json.dumps(text, ensure_ascii=False)})"
    if text.startswith(("http://", "https://")):
        hint = '; a server is described in a file: http("search.toml") (docs/retrievers.md)'
    return BadValue(f"'{_cut(text)}' is not a system; expected such as bm25 or bm25(k1=1.2, b=0.75){hint}")


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


# ----------
# Names of grids: braces stand for several values of a setting, or for several systems.


MOST_SYSTEMS = 1024  # that one text stands for


def parse_systems(text: str) -> tuple[Retriever, ...]:
    """Return all systems of a grid such as 'bm25(k1={0.9, 1.2})', the last values in braces varying fastest;
    without braces a single system.

    Raises the errors of `parse_system`, and BadValue for repeated values or systems and above 1,024 systems.
    """
    names = single_names(text)
    if len(names) == 1:
        return (parse_system(names[0]),)
    systems: dict[str, Retriever] = {}
    for name in names:
        try:
            system = parse_system(name)
        except BadValue as error:
            raise BadValue(f"{error}; it is one of the grid: {name}") from None
        if str(system) in systems:
            raise BadValue(f"the grid has {system} twice; expected values in braces that differ")
        systems[str(system)] = system
    return tuple(systems.values())


def single_names(text: str) -> tuple[str, ...]:
    """Return the names of a grid's systems, in the order of `parse_systems`; raises BadValue for malformed
    text and above 1,024 systems."""
    tree = expression_tree(text)
    if not _has_braces(tree):
        return (text,)
    count = _count(tree)
    if count > MOST_SYSTEMS:
        raise BadValue(f"a grid of {count:,} systems; expected at most {MOST_SYSTEMS:,} in one text")
    return tuple(ast.unparse(one) for one in _alternatives(tree))


@overload
def factorial(given: str) -> tuple[Retriever, ...]: ...
@overload
def factorial(given: Callable[..., T], settings: Mapping[str, Iterable[object]]) -> tuple[T, ...]: ...
@checked
def factorial(
    given: str | Callable[..., T], settings: Mapping[str, Iterable[object]] | None = None
) -> tuple[Retriever, ...] | tuple[T, ...]:
    """Return systems with every combination of settings, the last varying fastest.

    given: a text with values in braces, such as 'bm25(k1={0.6, 0.9}, b={0.4, 0.75})', or a function that
        makes a system or re-ranker, such as weir.BM25.
    settings: {name: values} for a function.

    Raises BadValue for a setting without values and above 1,024 combinations, and the errors of making a
    system.
    """
    if isinstance(given, str):
        if settings is not None:
            raise BadValue(
                f"'{given}' is a text, which has its settings in braces; settings are of a function"
            )
        return parse_systems(given)
    values = {name: tuple(several) for name, several in (settings or {}).items()}
    for name, several in values.items():
        if not several:
            raise BadValue(f"{name} has no value; expected one or more")
    if (count := math.prod(map(len, values.values()))) > MOST_SYSTEMS:
        raise BadValue(f"{count:,} combinations of settings; expected at most {MOST_SYSTEMS:,}")
    return tuple(given(**dict(zip(values, one, strict=True))) for one in itertools.product(*values.values()))


def _has_braces(node: ast.AST) -> bool:
    return any(isinstance(one, ast.Set) for one in ast.walk(node))


def _count(node: ast.AST) -> int:
    inside = [_count(child) for child in ast.iter_child_nodes(node)]
    return sum(inside) if isinstance(node, ast.Set) else math.prod(inside)


def _alternatives(node: ast.AST) -> list[ast.AST]:
    children = list(ast.iter_child_nodes(node))
    if isinstance(node, ast.Set):
        texts = [ast.unparse(one) for one in node.elts]
        repeated = next((text for text in texts if texts.count(text) > 1), None)
        if repeated is not None:
            raise BadValue(f"{ast.unparse(node)} has {repeated} twice; expected values that differ")
        return [one for child in children for one in _alternatives(child)]
    if not _has_braces(node):
        return [node]
    alternatives = []
    for combination in itertools.product(*map(_alternatives, children)):
        instead = dict(zip(map(id, children), combination, strict=True))
        copied = copy.copy(node)
        for name, value in ast.iter_fields(node):
            if isinstance(value, list):
                setattr(copied, name, [instead.get(id(child), child) for child in value])
            elif isinstance(value, ast.AST):
                setattr(copied, name, instead.get(id(value), value))
        alternatives.append(copied)
    return alternatives
