"""Short names of systems, with only the settings that tell them apart."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from unicodedata import normalize

from weir.core.expressions import syntax_tree
from weir.registry import printed

_LONGEST = 1000  # characters of a name that is looked into


def short_names(names: Sequence[str], chosen: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Return a distinct short label for each system, such as minilm for `dense("minilm", dtype="bf16")`.

    Equal labels get the settings in which they differ, else the full name.

    chosen: {name: label} of systems with a fixed label.
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


def short_legend(short: Mapping[str, str]) -> list[str]:
    """Return a line "label: name" for each shortened name, from {name: label}."""
    return [f"{label}: {name}" for name, label in short.items() if label != name]


def run_titles(names: Sequence[str]) -> dict[str, str]:
    """Return {name: title}: bm25 for `run("runs/bm25.trec")` if distinct, else the name."""
    short = dict(zip(names, short_names(names), strict=True))
    trees = {name: _tree(name) for name in names}
    files = {n for n, t in trees.items() if isinstance(t, ast.Call) and ast.unparse(t.func) == "run"}
    return {name: short[name] if name in files else name for name in names}


def look_alike_notes(names: Iterable[str]) -> list[str]:
    """Return a sentence for each set of names that differ only in blanks or Unicode composition."""
    looks: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        looks.setdefault(" ".join(normalize("NFC", name).split()), []).append(ascii(name))
    return [f"{', '.join(of)} look alike, and are different names" for of in looks.values() if len(of) > 1]


def systems_called(text: str, titles: Mapping[str, str]) -> set[str]:
    """Return the systems that a text means: by name, else title, short name, or end of a run file's path; `titles` is
    {name: title}.
    """
    names, parts = tuple(titles), PurePath(text).parts
    short = dict(zip(names, short_names(names), strict=True))
    files = {name: PurePath(path).parts for name in names if (path := _stored_path(name))}
    ways = (
        {name for name in names if name == text},
        {name for name in names if titles[name] == text},
        {name for name in names if short[name] == text},
        {name for name, whole in files.items() if parts and whole[-len(parts) :] == parts},
    )
    return next((found for found in ways if found), set())


def _stored_path(name: str) -> str:
    match _tree(name):
        case ast.Call(func=ast.Name(id="run"), args=[ast.Constant(value=str(path)), *_]):
            return path
    return ""


_ENDINGS = "trec|run|res|qrels?|txt|csv|tsv|jsonl?|ndjson|parquet|pq|arrow|feather|ipc|pickle|pkl"
_RUN_ENDING = re.compile(rf"(?i)(\.({_ENDINGS}))*(\.(gz|zst))?$")
_OF_DATASET = "{dataset}"


def run_file_name(name: str) -> str:
    """Return a run file's name without format endings and "{dataset}"."""
    short = _RUN_ENDING.sub("", name)
    if _OF_DATASET in short:
        short = short.replace(_OF_DATASET, "").strip("._- ")
    return short or name


def _repeated(labels: Sequence[str]) -> set[str]:
    return {label for label, count in Counter(labels).items() if count > 1}


def _tree(name: str) -> ast.expr | None:
    if len(name) > _LONGEST or "#" in name or not name.isprintable():
        return None
    try:
        tree = syntax_tree(name)
        _label(tree, (), False)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if any(isinstance(node, ast.BinOp) and not isinstance(node.op, ast.RShift) for node in ast.walk(tree)):
        return None  # dense(folder/model), an object's name, is no expression
    return tree if isinstance(tree, (ast.BinOp, ast.Call, ast.Name)) else None


def _label(node: ast.expr, keys: Sequence[str], heads: bool) -> str:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.RShift):
        return f"{_label(node.left, keys, heads)} >> {_label(node.right, keys, heads)}"
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
        return _written(node)
    inside = [f"{k.arg}={_written(k.value)}" for k in node.keywords if k.arg in keys]
    match node.args:
        case [ast.Constant(value=str(model))]:
            name = model.rstrip("/").rpartition("/")[2] or model
            if node.func.id == "run":
                name = run_file_name(name)
            if not heads:
                return f"{name}({', '.join(inside)})" if inside else name
            parts = [name, *inside]
        case args:
            parts = [*(_label(arg, keys, heads) for arg in args), *inside]
    return f"{node.func.id}({', '.join(parts)})" if parts else node.func.id


def _written(node: ast.expr) -> str:
    try:
        return printed(ast.literal_eval(node))
    except ValueError:  # a name, a system
        return ast.unparse(node)


def _differing(trees: Sequence[ast.expr]) -> list[str]:
    settings = [
        {(k.arg, ast.unparse(k.value)) for k in ast.walk(tree) if isinstance(k, ast.keyword) and k.arg}
        for tree in trees
    ]
    shared = set.intersection(*settings) if settings else set()
    return sorted({name for one in settings for name, _ in one - shared})
