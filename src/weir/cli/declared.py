"""Read parameters and fields from source, without importing its module."""

from __future__ import annotations

import ast
import pkgutil
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True)
class Setting:
    """A parameter of a function, or a field of a dataclass."""

    type: str
    """Its annotation, with type aliases written out."""
    default: object
    """Its default if that is a literal or a constant, else None."""
    about: str
    """Its documentation; "" if there is none."""
    required: bool
    """True without a default."""


@cache
def settings_of(path: str) -> dict[str, Setting]:
    """Return {name: Setting} for the documented parameters of a function, or fields of a dataclass.

    path: full name, such as "weir.api.comparisons.power"; its module is read, not imported.
    """
    module, _, name = path.rpartition(".")
    start = (
        rf"^(?:def|class) {name}\b.*\n(?:(?:[ )].*)?\n)*"  # to the next line that begins with something else
    )
    (definition,) = ast.parse(
        re.findall(start, _source(module), re.MULTILINE)[-1]
    ).body  # the last one, after its overloads
    fields = _fields(definition) if isinstance(definition, ast.ClassDef) else _parameters(definition)
    return {
        name: Setting(
            _written_out(ast.unparse(kind), module),
            _value(default, module),
            " ".join(about.split()),
            default is None,
        )
        for name, kind, default, about in fields
    }


def _fields(definition: ast.ClassDef) -> Iterator[tuple[str, ast.expr, ast.expr | None, str]]:
    for line, below in zip(definition.body, [*definition.body[1:], ast.Pass()], strict=True):
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
            match below:
                case ast.Expr(value=ast.Constant(value=str(about))):
                    yield line.target.id, line.annotation, line.value, about
                case _:
                    yield line.target.id, line.annotation, line.value, ""


def _parameters(definition: ast.FunctionDef) -> Iterator[tuple[str, ast.expr, ast.expr | None, str]]:
    known = definition.args
    ordered = [*known.posonlyargs, *known.args]
    defaults = [*[None] * (len(ordered) - len(known.defaults)), *known.defaults, *known.kw_defaults]
    lines = re.findall(r"^([\w, ]+): (.*(?:\n    .*)*)", ast.get_docstring(definition) or "", re.MULTILINE)
    about = {name: text for names, text in lines for name in names.split(", ")}
    for parameter, default in zip([*ordered, *known.kwonlyargs], defaults, strict=True):
        if parameter.annotation is not None:
            yield parameter.arg, parameter.annotation, default, about.get(parameter.arg, "")


@cache
def _source(module: str) -> str:
    package, _, rest = module.partition(".")
    for file in (f"{rest.replace('.', '/')}.py", f"{rest.replace('.', '/')}/__init__.py"):
        with suppress(FileNotFoundError):
            return (pkgutil.get_data(package, file) or b"").decode()
    raise FileNotFoundError(module)


@cache
def _assignments(module: str) -> dict[str, tuple[str, str]]:
    lines = re.findall(r"^(\w+)(?:: ([^=\n]*?))? *= *(.+)$", _source(module), re.MULTILINE)
    return {name: (kind, value) for name, kind, value in reversed(lines)}  # the first one counts


@cache
def _homes(module: str) -> dict[str, str]:
    lines = re.findall(r"^ *from (weir\.\S+) import (\([^)]*|[^\n(]*)", _source(module), re.MULTILINE)
    return {name: home for home, names in reversed(lines) for name in re.findall(r"\w+", names)}


def _assigned(name: str, module: str, alias: bool = False) -> tuple[str, str] | None:
    kind, value = _assignments(module).get(name, ("", ""))
    if value and (kind == "TypeAlias" or not alias):
        return value, module
    home = _homes(module).get(name)
    return _assigned(name, home, alias) if home else None


def _value(default: ast.expr | None, module: str) -> object:
    with suppress(ValueError):
        return None if default is None else ast.literal_eval(default)
    found = _assigned(default.id, module) if isinstance(default, ast.Name) else None
    return _value(ast.parse(found[0], mode="eval").body, found[1]) if found else None


def _written_out(annotation: str, module: str) -> str:
    def alias(match: re.Match[str]) -> str:
        found = _assigned(match[0], module, alias=True)
        return _written_out(found[0].strip("\"'"), found[1]) if found else match[0]

    return re.sub(r"\b[A-Z][a-z]\w+", alias, annotation)
