from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import weir.kernels.jit as jit_module
from weir.errors import install_command
from weir.kernels.jit import CodeCache, jit, source_files

CALLER = """
from weir.kernels.callee import inner
from weir.kernels.jit import jit

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
APART = """
from weir.kernels.jit import jit

@jit
def apart(x):
    return x - 1
"""
PROGRAM = """
import json, sys
from weir.kernels.apart import apart
from weir.kernels.caller import outer
from weir.kernels.jit import listening
made = []
with listening(made.append):
    answers = outer(10), apart(10)
print(json.dumps([answers, sorted(made), "numba" in sys.modules]))
"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory) -> tuple[Path, list[object]]:
    """A copy of what kernels stand on, with three kernels, one calling another and one apart; what its first run says."""
    source = Path(jit_module.__file__).parents[1]
    folder = tmp_path_factory.mktemp("compiled") / "code" / "weir" / "kernels"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").write_text("")
    for name in ("errors.py", "settings.py", "lazy_names.py"):
        shutil.copy(source / name, folder.parent / name)
    for name in ("__init__.py", "__init__.pyi", "jit.py", "compiler.py"):
        shutil.copy(source / "kernels" / name, folder / name)
    (folder / "caller.py").write_text(CALLER)
    (folder / "callee.py").write_text(CALLEE.format(factor=2))
    (folder / "apart.py").write_text(APART)
    return folder, ran(folder)


@pytest.fixture
def package(compiled, tmp_path) -> Path:
    """A copy of that package as its first run left it."""
    shutil.copytree(compiled[0].parents[1], tmp_path / "code")
    return tmp_path / "code" / "weir" / "kernels"


def forget(package: Path) -> None:
    """Put a file in the place of the folder of compiled code."""
    shutil.rmtree(package / "__pycache__")
    (package / "__pycache__").write_text("")


def ran(package: Path, **variables: str) -> list[object]:
    """[answers, kernels compiled, whether numba was imported] of a process that runs the copy."""
    code = package.parents[1]
    # Python keeps its own compiled files by size and second: an edit within one would not be seen.
    environment = {"PYTHONPATH": str(code), "PATH": "", "PYTHONDONTWRITEBYTECODE": "1"}
    environment |= {"WEIR_HOME": str(code.parent / "home"), **variables}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, cwd=code, env=environment
    )
    return json.loads(done.stdout)


def test_an_edited_kernel_is_compiled_again_and_those_that_call_it_and_no_other(compiled, package):
    assert compiled[1] == [[21, 9], ["apart", "outer"], True]
    assert ran(package) == [[21, 9], [], False]
    (package / "callee.py").write_text(CALLEE.format(factor=3))
    assert ran(package) == [[31, 9], ["outer"], True]
    (package / "apart.py").write_text(APART.replace("- 1", "- 2"))
    assert ran(package) == [[31, 8], ["apart"], True]
    assert len(list((package / "__pycache__").glob("*.kernel"))) == 2, "what is of no use any more goes"


def test_where_the_package_is_read_only_code_is_kept_in_the_home_of_the_user(package, tmp_path):
    forget(package)  # a file in its place: not even the superuser writes beside it
    assert ran(package)[1] == ["apart", "outer"]
    assert len(list((tmp_path / "home" / "kernels").glob("*.kernel"))) == 2
    assert ran(package) == [[21, 9], [], False]


def test_where_nothing_can_be_written_kernels_still_run(package):
    forget(package)
    for _ in range(2):
        assert ran(package, WEIR_HOME="/dev/null")[:2] == [[21, 9], ["apart", "outer"]]


def test_damaged_code_is_made_again(package):
    for path in (package / "__pycache__").glob("*.kernel"):
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
    assert ran(package) == [[21, 9], ["apart", "outer"], True]
    next((package / "__pycache__").glob("apart*.kernel")).write_bytes(b"")
    assert ran(package)[1] == ["apart"]


def test_another_processor_and_other_settings_of_the_compiler_have_code_of_their_own(package):
    assert ran(package, NUMBA_CPU_NAME="generic")[1] == ["apart", "outer"]
    assert ran(package, NUMBA_BOUNDSCHECK="1")[1] == ["apart", "outer"]
    assert ran(package) == [[21, 9], [], False]


@jit
def total(values, times):
    found = 0.0
    for i in range(len(values)):
        found += values[i]
    return found * times


@jit
def doubled(values):
    for i in range(len(values)):
        values[i] *= 2


@jit
def parts(value, share):
    return value > 3, value + 1, value * share


@jit
def element(values, i):
    return values[i]


@jit
def filled(n):
    return np.ones(n).sum()


def test_a_kernel_takes_arrays_of_every_kind_and_numbers_of_numpy():
    numbers = np.arange(6)
    for kind in (np.int8, np.uint16, np.int32, np.uint64, np.float32, np.float64):
        assert total(numbers.astype(kind), 2) == 30.0
    assert total(numbers[::2], np.int64(1)) == 6.0
    assert total(numbers, np.float64(0.5)) == total(numbers, np.float32(0.5)) == 7.5
    assert total(numbers.view(np.recarray), True) == 15.0
    assert total(numbers.astype(">i4").astype("i4"), 1) == 15.0
    assert total(np.empty(0), 1) == 0.0
    assert filled(5) == 5.0


def test_what_only_reads_takes_arrays_that_may_be_written_to_and_not_the_other_way_round():
    fixed = np.arange(3.0)
    fixed.flags.writeable = False
    assert total(fixed, 1) == 3.0
    assert total(np.arange(3.0), 1) == 3.0
    values = np.arange(3.0)
    doubled(values)
    assert values.tolist() == [0, 2, 4]
    with pytest.raises(Exception, match=r"[Rr]ead-?only|Cannot modify"):
        doubled(fixed)
    assert fixed.tolist() == [0, 1, 2]


def test_several_numbers_come_back_as_they_are():
    assert parts(5, 0.5) == (True, 6, 2.5)
    assert [type(v) for v in parts(1, 0.5)] == [bool, int, float]


def test_what_is_no_array_is_refused():
    for wrong in ([1.0], None, "a"):
        with pytest.raises(TypeError, match="arrays and numbers"):
            total(wrong, 1)
    total(np.arange(3.0), 1)
    with pytest.raises(TypeError, match="arrays and numbers"):
        total([1.0], 1)


class Pair(NamedTuple):
    values: np.ndarray
    step: int


@jit
def added(pair, i):
    pair.values[i] += pair.step


@jit
def stepped(first, factor, second):
    for i in range(len(first.values)):
        added(first, i)
        second.values[i] = factor * second.step
    return first.step


def test_a_named_tuple_holds_arrays_and_numbers():
    first, second = Pair(np.zeros(3), 2), Pair(np.zeros(3, np.int32), 5)
    for _ in range(2):  # as compiled, and as found again
        assert stepped(first, 3, second) == 2
    assert first.values.tolist() == [4.0] * 3
    assert second.values.tolist() == [15] * 3
    assert stepped(second, 2, first) == 5  # other types
    assert (first.values.tolist(), second.values.tolist()) == ([4.0] * 3, [20] * 3)
    with pytest.raises(TypeError, match="arrays and numbers"):
        stepped(Pair([1.0], 2), 3, second)


def test_bounds_are_checked_where_the_environment_says_so(tmp_path):
    program = "import numpy as np; from tests.unit.test_jit import element; element(np.arange(3), 7)"
    for checked in ("0", "1"):
        done = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=False,
            cwd=Path(__file__).parents[2],
            env={**os.environ, "NUMBA_BOUNDSCHECK": checked, "NUMBA_CACHE_DIR": str(tmp_path)},
        )
        assert ("out of bounds" in done.stderr) == (checked == "1"), done.stderr


def test_without_the_compiler_a_kernel_says_which_extra_it_needs():
    program = """
import sys
sys.modules["numba"] = None
from weir.errors import MissingExtra
import numpy as np
from weir.kernels.words import regrow
try:
    regrow(np.zeros(2, int), np.zeros(2, int), np.zeros(0, int))
except MissingExtra as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"this needs 'numba', which is not installed; {install_command('run')}"


def test_every_kernel_file_depends_on_what_it_imports():
    from weir.kernels.inverted import maxscore

    folder = Path(maxscore.__file__).parent
    before = CodeCache.of(maxscore.search_by_postings.py_func, "").sources
    assert before != CodeCache.of(jit_module.jit, "").sources
    names = {path.name for path in source_files(folder / "maxscore.py")}
    assert {"maxscore.py", "query_plan.py", "top_k.py", "block_bounds.py", "compiler.py"} <= names
    assert not names & {"fields.py", "lines.py", "words.py", "scan.py"}
