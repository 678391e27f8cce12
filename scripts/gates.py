"""The gates that no linter knows: layers, import cycles, exceptions with their reason, what docstrings must say.

Run by `make check`; prints every breach with its place and exits with 1 if there is one.
"""

from __future__ import annotations

import ast
import functools
import gc
import re
import sys
from collections.abc import Container, Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "weir"
BARE_EXCEPTION = re.compile(r"#\s*(noqa(: [A-Z0-9, ]+)?|type: ignore(\[[a-z, -]+\])?)\s*$")

# A package imports only from rows above its own; packages of one row do not import each other.
LAYERS = [
    {"errors", "registry", "settings", "algorithms", "argument_types", "lazy_names", "values", "kernels"},
    {"core"},
    {"files"},
    {"measures", "services"},
    {"datasets", "models", "stats"},
    {"systems"},
    {"audit", "experiment", "labels"},
    {"api"},
    {"cli"},
    {"plugins"},
]
# Words that say neither a quantity nor a unit.
VAGUE = {
    *(
        "AT_ONCE",
        "ASKED",
        "BLOCK",
        "DEEP",
        "DEEPEST",
        "ENOUGH",
        "FEW",
        "HELD",
        "LEAST",
        "MANY",
        "MOST",
        "MUCH",
    ),
    *("OFTEN", "OTHER", "OWN", "PIECE", "SAME", "SMALL", "TOGETHER"),
}
# Nothing outside `plugins` imports it, `weir/__init__.py` included; a plug-in imports another only as this says.
PLUGIN_IMPORTS = {
    "bridges": {"conform"},  # its objects of peers are the measures of the kit's adapters
    "submissions": {"report"},  # a leaderboard is dressed as the report
    "llm": {
        "encoders",
        "labels",
        "questions",
    },  # models in torch; judges read sheets, and end when it is decided
    "training": {"encoders", "llm"},  # questions are written by doc2query or by a language model
    "app": {"labels", "llm", "questions", "report"},  # pools, prompts, whether it is decided, one style sheet
    "questions": {"labels", "report"},  # sheets of documents to label, a section of the report
    "report": {"llm"},  # a section says what language models were asked
}
# What opens files for writing beside `files/atomic.py`, through which everything goes that somebody named.
WRITERS = {
    # logs and stores that grow, leases, downloads that are resumed
    *("services/answers.py", "files/leases.py", "files/downloads.py", "systems/lexical/inversion.py"),
    *("systems/vectors/journal.py", "kernels/jit.py"),
    # what stands in a temporary folder or file, which takes its name when it is whole
    *(
        "files/write.py",
        "files/records.py",
        "files/corpus_store.py",
        "plugins/llm/judge.py",
        "experiment/plan.py",
    ),
    *("models/openvino_engine.py", "plugins/importing/importer.py", "plugins/submissions/site.py"),
    "plugins/submissions/packs.py",
    *("plugins/conform/adapters/birco.py", "systems/warm.py"),
    # the null device, a counter of the process, the ends of pipes
    *("cli/terminal.py", "experiment/stages.py", "models/multi_device.py", "plugins/conform/run_adapter.py"),
}
ROW = {name: row for row, names in enumerate(LAYERS) for name in names}
# Rules within the first row.
FIRST_ROW = {
    "errors": set(),
    "algorithms": set(),
    "values": set(),
    "argument_types": {"errors", "registry", "values"},
    "lazy_names": {"errors"},
    "registry": {"errors", "values"},
    "settings": {"errors", "values"},
    "kernels": {"errors", "settings", "lazy_names", "values"},
}


@functools.cache
def nodes(tree: ast.AST) -> list[ast.AST]:
    """Every node of a tree, which is walked once for all gates."""
    return list(ast.walk(tree))


def imported(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, package of weir) of every import, those inside functions too."""
    for node in nodes(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "weir":
            parts = node.module.split(".")
            names = [parts[1]] if len(parts) > 1 else [alias.name for alias in node.names]
            yield from ((node.lineno, name) for name in names)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                parts = alias.name.split(".")
                if parts[0] == "weir" and len(parts) > 1:
                    yield node.lineno, parts[1]


def layer_breaches(path: Path, tree: ast.AST) -> Iterator[str]:
    """Imports that point upwards or sideways."""
    package = path.relative_to(SOURCE).parts[0].partition(".")[0]
    if package in {"__init__", "__main__"} or path.name == "__init__.pyi":
        return  # a stub lists names for users of the package; nothing inside imports them from there
    if package not in ROW:
        yield f"{path}: package '{package}' stands in no layer of scripts/gates.py"
        return
    for line, name in imported(tree):
        allowed = name in FIRST_ROW[package] if package in FIRST_ROW else ROW.get(name, 99) < ROW[package]
        if name != package and name in ROW and not allowed:
            yield f"{path}:{line}: {package} must not import {name}"


def plugin_breaches(path: Path, tree: ast.AST) -> Iterator[str]:
    """Imports of the outer ring from the house, and of one plug-in from another."""
    parts = path.relative_to(SOURCE).parts
    own = parts[1] if parts[0] == "plugins" else ""
    for node in nodes(tree):
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        if isinstance(node, ast.ImportFrom) and node.module == "weir.plugins":
            names = [f"weir.plugins.{alias.name}" for alias in node.names]
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        for name in names:
            if name != "weir.plugins" and not name.startswith("weir.plugins."):
                continue
            other = (*name.split("."), "")[2]
            if not own:
                yield f"{path}:{node.lineno}: the house must not import {name}"
            elif other not in {own, *PLUGIN_IMPORTS.get(own, ())}:
                yield f"{path}:{node.lineno}: the plug-in {own} must not import {name}"


def exception_breaches(path: Path, text: str) -> Iterator[str]:
    """Exceptions to a rule without their reason beside them."""
    for number, line in enumerate(text.split("\n"), 1):
        if BARE_EXCEPTION.search(line):
            yield f"{path}:{number}: an exception to a rule carries its reason after it"


def module_name(path: Path) -> str:
    """The dotted name of a source file."""
    return ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts)


def cycles(modules: dict[str, ast.AST]) -> Iterator[str]:
    """Import cycles among modules, imports inside functions included."""
    graph = {name: sorted(_leaf_imports(tree, modules)) for name, tree in modules.items()}
    done: set[str] = set()

    def visit(name: str, path: list[str]) -> Iterator[str]:
        if name in path:
            yield "import cycle: " + " -> ".join([*path[path.index(name) :], name])
        elif name not in done:
            for other in graph[name]:
                yield from visit(other, [*path, name])
            done.add(name)

    for name in sorted(graph):
        yield from visit(name, [])


def _leaf_imports(tree: ast.AST, modules: dict[str, ast.AST]) -> set[str]:
    found = set()
    unseen = {
        inner  # what only a type checker reads
        for node in nodes(tree)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in nodes(tree):
        if node in unseen:
            continue
        if isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
    return {name for name in found if name in modules and not name.endswith("__init__")}


def _is_command(name: str) -> bool:
    return name.startswith("weir.cli.") or (
        name.startswith("weir.plugins.") and name.endswith(("command", "commands"))
    )


def docstring_breaches(name: str, tree: ast.AST) -> Iterator[str]:
    """Public functions that raise and do not say what."""
    for node in getattr(tree, "body", []):
        if not isinstance(node, ast.FunctionDef) or node.name.startswith("_") or _is_command(name):
            continue  # the documentation of a command is its help
        raises = any(isinstance(n, ast.Raise) and n.exc is not None for n in ast.walk(node))
        if raises and "raise" not in (ast.get_docstring(node) or "").lower():
            yield f"{name}.{node.name} raises and its docstring does not say what"


def protocol_methods(trees: Iterable[ast.AST]) -> set[str]:
    """Names of methods that some protocol documents, so that what implements them need not."""
    return {
        method.name
        for tree in trees
        for node in nodes(tree)
        if isinstance(node, ast.ClassDef) and any("Protocol" in ast.unparse(base) for base in node.bases)
        for method in node.body
        if isinstance(method, ast.FunctionDef) and ast.get_docstring(method)
    }


def method_breaches(name: str, tree: ast.AST, known: Container[str]) -> Iterator[str]:
    """Public methods of public classes that neither they nor a protocol documents."""
    for node in getattr(tree, "body", []):
        if not isinstance(node, ast.ClassDef) or node.name.startswith("_"):
            continue
        methods = [one for one in node.body if isinstance(one, ast.FunctionDef)]
        for method in methods:
            needs_none = method.name.startswith("_") or method.name in known
            if not needs_none and not ast.get_docstring(method):
                yield f"{name}.{node.name}.{method.name} has no docstring, nor has it one in a protocol"


def constant_breaches(name: str, tree: ast.AST) -> Iterator[str]:
    """Constants of the module that say neither quantity nor unit."""
    for node in getattr(tree, "body", []):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            constant = node.targets[0].id
            if constant.lstrip("_") in VAGUE:
                yield f"{name}.{constant}: a constant says its quantity and unit, such as BLOCK_ROWS"


def writer_breaches(path: Path, tree: ast.AST) -> Iterator[str]:
    """Files opened for writing outside the one writer, which would replace a pipe, a device or a link."""
    name = path.relative_to(SOURCE).as_posix()
    if name == "files/atomic.py" or name in WRITERS:
        return
    for node in nodes(tree):
        if not isinstance(node, ast.Call):
            continue
        method = isinstance(node.func, ast.Attribute)
        called = node.func.attr if method else getattr(node.func, "id", "")
        modes = [
            one.value for one in node.args if isinstance(one, ast.Constant) and isinstance(one.value, str)
        ]
        opened = called in ("open", "fdopen") and any(len(m) < 4 and set("wax+") & set(m) for m in modes)
        if opened or (method and called in ("write_text", "write_bytes")):
            yield f"{path}:{node.lineno}: files are written by weir.files.atomic (or name the reason in WRITERS)"


def breaches() -> list[str]:
    """Every breach of every gate."""
    found: list[str] = []
    modules: dict[str, ast.AST] = {}
    gc.disable()  # nothing of a million nodes is garbage, and looking for it took four fifths of the time
    for path in sorted(
        [*SOURCE.rglob("*.py"), *(ROOT / "tests").rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py")]
    ):
        text = path.read_text(encoding="utf-8")
        found.extend(exception_breaches(path, text))
        if SOURCE in path.parents:
            tree = ast.parse(text)
            found.extend(layer_breaches(path, tree))
            found.extend(plugin_breaches(path, tree))
            found.extend(writer_breaches(path, tree))
            modules[module_name(path)] = tree
    for stub in sorted(SOURCE.rglob("*.pyi")):
        text = stub.read_text(encoding="utf-8")
        found.extend([*layer_breaches(stub, ast.parse(text)), *exception_breaches(stub, text)])
    found.extend(cycles(modules))
    known = protocol_methods(modules.values())
    for name, tree in modules.items():
        found.extend(method_breaches(name, tree, known))
        found.extend([*docstring_breaches(name, tree), *constant_breaches(name, tree)])
    gc.enable()
    return found


if __name__ == "__main__":
    problems = breaches()
    print("\n".join(problems) or "gates: layers, cycles and exceptions hold")
    sys.exit(1 if problems else 0)
