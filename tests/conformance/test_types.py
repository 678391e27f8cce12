"""Types: the stub has every public name, and what the pages show passes a type checker in a user's file."""

from __future__ import annotations

import ast
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conformance.test_examples import examples

import weir
from weir.measures import MEASURES
from weir.systems import RERANKERS, SYSTEMS

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_the_stub_has_every_name_that_is_there_when_a_program_runs():
    tree = ast.parse(Path(weir.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    named = {
        alias.asname
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname == alias.name
    }
    named |= {target.id for node in ast.walk(tree) if isinstance(node, ast.Assign) for target in node.targets}
    assert set(dir(weir)) - named - set(MEASURES.names()) == set()
    assert named - set(dir(weir)) == set()


@pytest.mark.slow
def test_a_type_checker_knows_every_name_of_every_room(tmp_path):
    if not importlib.util.find_spec("mypy"):
        pytest.skip("mypy is in the extra dev")
    rooms = {
        room: getattr(weir, room).__all__ for room in ("labels", "listings", "measures", "stats", "systems")
    }
    rooms["systems"] = [*rooms["systems"], *SYSTEMS.names(), *RERANKERS.names()]
    names = [f"weir.{name}" for name in weir.__all__]
    names += [f"weir.{room}.{name}" for room, found in rooms.items() for name in found]
    assert len(names) > 200
    (tmp_path / "names.py").write_text("import weir\n" + "\n".join(names) + "\n", encoding="utf-8")
    done = checked(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def checked(folder: Path) -> subprocess.CompletedProcess[str]:
    """What mypy says of the files in a folder, as of a user's."""
    command = [sys.executable, "-m", "mypy", "--strict", "--ignore-missing-imports", "--no-error-summary"]
    command += ["--hide-error-context", "--cache-dir", str(ROOT / ".mypy_cache"), str(folder)]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)


@pytest.mark.slow
def test_what_the_pages_show_passes_a_type_checker(tmp_path):
    if not importlib.util.find_spec("mypy"):
        pytest.skip("mypy is in the extra dev")
    shown: dict[str, set[int]] = {}  # which lines a reader sees, of each file
    for page in PAGES:
        if not any(part.kind == "python" for part in examples.parts_of(page.read_text(encoding="utf-8"))):
            continue
        lines: list[str] = []
        file = f"page_{page.stem.replace('-', '_')}.py"
        shown[file] = set()
        for part in examples.parts_of(page.read_text(encoding="utf-8")):
            if part.kind == "python":
                shown[file] |= set(range(len(lines) + 1, len(lines) + 1 + part.text.count("\n")))
            if part.kind in ("python", "<setup>"):
                code = part.text if part.kind == "python" else examples.setup_code(part.text)
                lines += code.removesuffix("\n").split("\n")
        (tmp_path / file).write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert sum(map(len, shown.values())) > 300
    done = checked(tmp_path)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found = re.findall(r"^(\S+\.py):(\d+): error: .*$", done.stdout, re.MULTILINE)
    wrong = [f"{file}:{line}" for file, line in found if int(line) in shown[Path(file).name]]
    assert not wrong, f"{wrong}\n{done.stdout}"
