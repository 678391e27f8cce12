"""A machine as a newcomer has it: a copy of the project with nothing built, and a shell that knows of nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import GUARD_FOLDER, SOURCE

ROOT = Path(__file__).resolve().parents[2]
TAKEN = ("Makefile", "README.md", "LICENSE", "pyproject.toml", "src", "scripts")
MADE = shutil.ignore_patterns("__pycache__", "*.egg-info")


@pytest.fixture(scope="module")
def checkout(tmp_path_factory) -> Path:
    """A copy of the project with none of what was built here."""
    folder = tmp_path_factory.mktemp("newcomer") / "weir"
    folder.mkdir()
    for name in TAKEN:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=MADE)
        else:
            shutil.copy(ROOT / name, folder / name)
    return folder


@pytest.fixture(scope="module")
def run(checkout):
    """A function: a command line as a shell of the newcomer runs it; network: whether another machine is reached."""
    (checkout.parent / "bin").mkdir()
    (checkout.parent / "bin" / "python3").symlink_to(sys.executable)
    left_out = {"PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "VIRTUAL_ENV"}
    env = {name: value for name, value in os.environ.items() if name not in left_out and "WEIR" not in name}
    env["WEIR_HOME"] = str(checkout.parent / "home")
    env["WEIR_SHARED"] = str(SOURCE)
    env["PIP_NO_COMPILE"] = "1"  # modules that are imported are compiled then
    env["NUMBA_CACHE_DIR"] = str(
        checkout.parent / "kernels"
    )  # compiled once for all of a module's environments

    def shell(line: str, network: bool = False, path: str = "bin") -> subprocess.CompletedProcess[str]:
        own = {"PATH": os.pathsep.join([str(checkout.parent / path), env["PATH"]])}
        own |= {} if network else {"PYTHONPATH": GUARD_FOLDER}
        return subprocess.run(
            line, shell=True, cwd=checkout, env=env | own, capture_output=True, text=True, check=False
        )

    if shell(f"{sys.executable} -m pip download -q --no-deps -d ../reached click", network=True).returncode:
        pytest.skip("pip reaches no package index")
    return shell
