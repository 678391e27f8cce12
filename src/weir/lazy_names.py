"""Import a package's names, listed in its stub `__init__.pyi`, on first use."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from functools import cache

from weir.errors import UnknownAttribute


def lazy_names(package: str) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return (`__getattr__`, `__dir__`) for a package, which import the names of its stub `__init__.pyi` on
    first use.

    The stub exports names by `from module import name as name`, `from . import module as module`, or `name =
    other`. `__getattr__` raises UnknownAttribute for other names.
    """

    @cache
    def sources() -> dict[str, tuple[str, str]]:
        import ast  # these two take longer to import than the rest
        import pkgutil

        body = ast.parse(pkgutil.get_data(package, "__init__.pyi") or b"").body
        imports = {
            alias.asname or alias.name: (node.module or f"{package}.{alias.name}", alias, node.level)
            for node in body
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        exported = {
            name: (module, "" if level else alias.name)
            for name, (module, alias, level) in imports.items()
            if alias.asname == alias.name
        }
        for node in body:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name):
                module, alias, _ = imports[node.value.id]
                exported |= {ast.unparse(target): (module, alias.name) for target in node.targets}
        return exported

    def __getattr__(name: str) -> object:
        if name == "__all__":
            return sorted(sources())
        if name.startswith("__") or name not in sources():
            raise UnknownAttribute(package, name, sources())
        module, source = sources()[name]
        value: object = importlib.import_module(module)
        value = getattr(value, source) if source else value
        setattr(sys.modules[package], name, value)
        return value

    def __dir__() -> list[str]:
        return sorted(sources())

    return __getattr__, __dir__
