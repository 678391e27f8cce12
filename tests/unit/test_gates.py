from __future__ import annotations

import ast
import importlib.util
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
spec = importlib.util.spec_from_file_location("gates", ROOT / "scripts" / "gates.py")
assert spec is not None
assert spec.loader is not None
gates = importlib.util.module_from_spec(spec)
spec.loader.exec_module(gates)


def test_the_tree_keeps_every_gate():
    assert gates.breaches() == []


def test_an_upward_and_a_sideways_import_are_breaches():
    tree = ast.parse("from weir.cli import main\ndef f():\n    from weir.datasets.load import load\n")
    found = list(gates.layer_breaches(gates.SOURCE / "measures" / "x.py", tree))
    assert [f.split(": ", 1)[1] for f in found] == [
        "measures must not import cli",
        "measures must not import datasets",
    ]
    assert not list(gates.layer_breaches(gates.SOURCE / "cli" / "x.py", tree))


def test_a_cycle_is_a_breach():
    modules = {
        "weir.a": ast.parse("from weir import b\nimport weir.b"),
        "weir.b": ast.parse("from weir.a import x"),
    }
    assert list(gates.cycles(modules)) == ["import cycle: weir.a -> weir.b -> weir.a"]


def test_constants_without_a_quantity_and_silent_raises_are_breaches():
    tree = ast.parse('_BLOCK = 1\nBLOCK_ROWS = 2\n\n\ndef f():\n    """Does."""\n    raise ValueError\n')
    assert len(list(gates.constant_breaches("weir.x", tree))) == 1
    assert list(gates.docstring_breaches("weir.x", tree)) == [
        "weir.x.f raises and its docstring does not say what"
    ]
    assert not list(gates.docstring_breaches("weir.cli.x", tree))


def test_a_method_is_documented_where_it_stands_or_in_a_protocol():
    protocol = ast.parse('class Searcher(Protocol):\n    def search(self): \n        """Return a run."""\n')
    tree = ast.parse(
        "class Mine:\n    def search(self): ...\n    def other(self): ...\n    def _own(self): ...\n"
    )
    known = gates.protocol_methods([protocol, tree])
    assert list(gates.method_breaches("weir.x", tree, known)) == [
        "weir.x.Mine.other has no docstring, nor has it one in a protocol"
    ]


def test_files_are_opened_for_writing_in_one_place():
    source = gates.SOURCE / "api" / "x.py"
    for text in ("path.open('wb')", "open(path, 'a')", "path.write_text('')", "os.fdopen(n, 'r+b')"):
        assert len(list(gates.writer_breaches(source, ast.parse(text)))) == 1
    for text in ("path.open('rb')", "write_text(path, '')", "open(path)"):
        assert not list(gates.writer_breaches(source, ast.parse(text)))


def test_no_pickle_no_eval_no_shell():
    modules = {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve", "joblib"}
    calls = {"eval", "exec", "compile", "__import__"}
    writer = (
        ROOT / "src" / "weir" / "plugins" / "conform" / "adapters" / "birco.py"
    )  # BIRCO's own program reads pickles
    names_one = re.compile(rf"\b({'|'.join(modules)})\b|\b({'|'.join(calls)})\(")
    for path in sorted((ROOT / "src" / "weir").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if names_one.search(text) else ():
            if (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id == "pickle"
            ):
                assert (path, node.attr) == (writer, "dumps")
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                names = {a.name.split(".")[0] for a in node.names} | {
                    str(getattr(node, "module", "")).split(".")[0]
                }
                assert not names & modules or (path, names & modules) == (writer, {"pickle"}), path
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                allowed = {"exec"} if path.name == "values.py" and path.parent.name == "weir" else set[str]()
                assert node.func.id not in calls - allowed, f"{path}:{node.lineno}"  # as in dataclasses
            if isinstance(node, ast.keyword) and node.arg in ("allow_pickle", "shell"):
                assert isinstance(node.value, ast.Constant), path
                assert node.value.value is False, path
