"""Scripts run each in a fork of one process that has imported the packages already: isolated, and without the imports.

As a script it answers requests, a line of JSON each: {"command": [script, arguments], "env", "cwd", "modules"}.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import runpy
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

Runner = Callable[..., "subprocess.CompletedProcess[str]"]
"""(script and arguments, environment, folder, modules imported before) -> how it ended and what it printed."""


@contextlib.contextmanager
def forking() -> Iterator[Runner]:
    """A function that runs a script in a fork of one process; where forks are not sound, in a process of its own."""
    if sys.platform != "linux":
        yield lambda command, env, cwd, modules=(): subprocess.run(
            [sys.executable, *command], env=env, cwd=cwd, capture_output=True, text=True, check=False
        )
        return
    quiet = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
    process = subprocess.Popen(
        [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env=os.environ | quiet,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None

    def run(
        command: Sequence[str], env: Mapping[str, str], cwd: Path, modules: Sequence[str] = ()
    ) -> subprocess.CompletedProcess[str]:
        request = {"command": [*command], "env": dict(env), "cwd": str(cwd), "modules": [*modules]}
        process.stdin.write(json.dumps(request) + "\n")
        process.stdin.flush()
        code, out, err = json.loads(process.stdout.readline())
        return subprocess.CompletedProcess(command, code, out, err)

    try:
        yield run
    finally:
        process.stdin.close()
        process.wait(300)
        process.stdout.close()


def forked(command: Sequence[str]) -> tuple[int, str, str]:
    """(exit code, output, errors) of a script that runs in a fork of this process."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            os._exit(_run(command, out.fileno(), err.fileno()))
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        out.seek(0)
        err.seek(0)
        return code, out.read().decode(), err.read().decode()


def _run(command: Sequence[str], out: int, err: int) -> int:
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(out, 1)
    os.dup2(err, 2)
    sys.stdout, sys.stderr = (os.fdopen(os.dup(n), "w", encoding="utf-8") for n in (1, 2))
    sys.argv[:] = command
    sys.path[0] = str(Path(command[0]).parent)
    if os.environ.get("PYTHONWARNINGS") == "default":  # read when Python starts, which the fork did not
        warnings.simplefilter("default")
    code: Any = 0
    try:
        runpy.run_path(command[0], run_name="__main__")
    except SystemExit as end:
        code = end.code
        if isinstance(code, str):
            print(code, file=sys.stderr)
    except BaseException:  # noqa: BLE001 - the end of a process, whatever it ended with
        code = 1
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    return code if isinstance(code, int) else int(code is not None)


def _child_of_benchmark(
    script: str, spec: dict[str, Any], python: str, timeout: float = 600
) -> dict[str, Any]:
    """What `run_child` of benchmarks/common.py answers, by a fork."""
    import common

    code, out, err = forked([script, "--child", json.dumps(spec)])
    lines = [line for line in out.split("\n") if line.startswith("{")]
    if code or not lines:
        return common.failed(f"exit code {code}: {err.strip()[-800:]}")
    return json.loads(lines[-1]) | {"process_seconds": 0.0}


def main() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        for name in request["modules"]:
            importlib.import_module(name)
        read, write = os.pipe()
        server = os.fork()
        if server == 0:
            os.environ.clear()
            os.environ.update(request["env"])
            os.chdir(request["cwd"])
            script = Path(request["command"][0])
            if (script.parent / "common.py").exists():
                sys.path[0] = str(script.parent)
                import common

                common.run_child = _child_of_benchmark
            with os.fdopen(write, "w") as answer:
                json.dump(forked(request["command"]), answer)
            os._exit(0)
        os.close(write)
        with os.fdopen(read) as answer:
            text = answer.read()
        os.waitpid(server, 0)
        print(text or json.dumps([1, "", "the fork ended without an answer"]), flush=True)


if __name__ == "__main__":
    main()
