"""Short names of systems: what tells them apart, without what they share."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Mapping, Sequence

from weir.core.expressions import syntax_tree

_LONGEST = 1000  # characters of a name that is looked into


def short_names(names: Sequence[str], chosen: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """A short name for each system, all different: `dense("minilm", dtype="bf16")` is minilm.

    Settings are dropped, and the kind of a system that is named after a model; where two would be called the same,
    the settings in which they differ come back, then the kind, then the whole name. What is no expression, such as
    the name of a run file, stays. chosen: labels by name, which win.
    """
    chosen = chosen or {}
    trees = [None if name in chosen else _tree(name) for name in names]
    labels = [
        chosen.get(n, n) if t is None else _label(t, (), False) for n, t in zip(names, trees, strict=True)
    ]
    for heads in (False, True):
        repeated = _repeated(labels)
        groups: dict[str, list[int]] = {}
        for i, label in enumerate(labels):
            if label in repeated and trees[i] is not None:
                groups.setdefault(label, []).append(i)
        for members in groups.values():
            parsed = {i: tree for i in members if (tree := trees[i]) is not None}
            keys = _differing(list(parsed.values()))
            for i, tree in parsed.items():
                labels[i] = _label(tree, keys, heads)
    repeated = _repeated(labels)
    return tuple(
        name if label in repeated and name not in chosen else label
        for name, label in zip(names, labels, strict=True)
    )


def _repeated(labels: Sequence[str]) -> set[str]:
    return {label for label, count in Counter(labels).items() if count > 1}


def _tree(name: str) -> ast.expr | None:
    """The expression that a name is; None where it is none, or has a mark such as '#key' behind it."""
    if len(name) > _LONGEST or "#" in name or not name.isprintable():
        return None
    try:
        tree = syntax_tree(name)
        _label(tree, (), False)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    piped = isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.RShift)
    return tree if piped or isinstance(tree, (ast.Call, ast.Name)) else None


def _label(node: ast.expr, keys: Sequence[str], heads: bool) -> str:
    """An expression with the settings of these names alone; heads: with the kind of what is named after a model."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.RShift):
        return f"{_label(node.left, keys, heads)} >> {_label(node.right, keys, heads)}"
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
        return ast.unparse(node)
    inside = [f"{k.arg}={ast.unparse(k.value)}" for k in node.keywords if k.arg in keys]
    match node.args:
        case [ast.Constant(value=str(model))]:
            name = model.rstrip("/").rpartition("/")[2] or model
            if not heads:
                return f"{name}({', '.join(inside)})" if inside else name
            parts = [name, *inside]
        case args:
            parts = [*(_label(arg, keys, heads) for arg in args), *inside]
    return f"{node.func.id}({', '.join(parts)})" if parts else node.func.id


def _differing(trees: Sequence[ast.expr]) -> list[str]:
    """The names of the settings that not all of the expressions have alike."""
    settings = [
        {(k.arg, ast.unparse(k.value)) for k in ast.walk(tree) if isinstance(k, ast.keyword) and k.arg}
        for tree in trees
    ]
    shared = set.intersection(*settings) if settings else set()
    return sorted({name for one in settings for name, _ in one - shared})
