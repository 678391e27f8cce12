from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import weir.kernels.jit as jit_module

CALLER = """
from weir.kernels.jit import jit
from weir.kernels.callee import inner

@jit
def outer(x):
    return inner(x) + 1
"""
CALLEE = """
from weir.kernels.jit import jit

@jit
def inner(x):
    return x * {factor}
"""


def test_a_kernel_is_compiled_again_when_another_file_that_it_calls_changes(tmp_path):
    """numba's own cache would go on with the old code: it looks at the caller's file only."""
    package = tmp_path / "weir" / "kernels"
    package.mkdir(parents=True)
    source = Path(jit_module.__file__).parents[1]
    for name in ("__init__.py", "errors.py"):
        shutil.copy(source / name, package.parent / name)
    shutil.copy(source / "kernels" / "jit.py", package / "jit.py")
    (package / "__init__.py").write_text("")
    (package / "caller.py").write_text(CALLER)
    program = "from weir.kernels.caller import outer; from weir.kernels.jit import compiled_before; print(outer(10), compiled_before())"
    for factor, expected in ((2, "21 True"), (3, "31 True")):
        (package / "callee.py").write_text(CALLEE.format(factor=factor))
        done = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=True,
            cwd=tmp_path,
            env={"PYTHONPATH": str(tmp_path), "PATH": ""},
        )
        assert done.stdout.strip() == expected
