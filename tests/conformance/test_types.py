"""Types: the stub has every public name, and what the pages show passes a type checker in a user's file."""

from __future__ import annotations

import ast
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

import weir
from weir.measures import MEASURES

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
# What a reader's own code is: untyped functions, and names that a page leaves to the reader.
READERS = [
    "--allow-untyped-defs",
    "--allow-untyped-calls",
    "--no-check-untyped-defs",
    "--disable-error-code=name-defined",
]


def test_the_stub_has_every_name_that_is_there_when_a_program_runs():
    tree = ast.parse(Path(weir.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    named = {
        alias.asname
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname == alias.name
    }
    named |= {target.id for node in tree.body if isinstance(node, ast.Assign) for target in node.targets}
    assert set(dir(weir)) - named - set(MEASURES.names()) == set()
    assert named - set(dir(weir)) == set()


@pytest.mark.slow
def test_what_the_pages_show_passes_a_type_checker(tmp_path):
    if not importlib.util.find_spec("mypy"):
        pytest.skip("mypy is in the extra dev")
    blocks = 0
    for page in PAGES:
        found = [
            block
            for block in BLOCK.findall(page.read_text(encoding="utf-8"))
            if "import weir" in block or page == PAGES[0]
        ]
        blocks += len(found)
        for number, block in enumerate(found):
            text = block if "import weir" in block else f"import weir\n{block}"
            (tmp_path / f"{page.stem.replace('-', '_')}_{number}.py").write_text(text, encoding="utf-8")
    assert blocks > 10
    command = [sys.executable, "-m", "mypy", "--strict", *READERS, "--ignore-missing-imports", "--cache-dir",
               str(ROOT / ".mypy_cache"), str(tmp_path)]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
