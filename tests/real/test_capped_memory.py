"""weir run and weir audit on NFCorpus under a cap on memory that the system enforces."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.real,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="ulimit -v is Linux's"),
]
GROUPS = Path("/sys/fs/cgroup/memory")
CAP_BYTES = 1 << 30


def weir(home: Path, enter, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "weir", *arguments],
        env={name: value for name, value in os.environ.items() if name != "WEIR_MAX_RAM"}
        | {"WEIR_HOME": str(home)},
        preexec_fn=enter,
        capture_output=True,
        text=True,
        check=False,
    )


def commands(collection: Path, results: Path) -> list[list[str]]:
    run = ["run", "-d", str(collection), "-s", "bm25", "-m", "nDCG@10", "-o", str(results), "-q"]
    return [run, ["audit", str(collection)]]


def test_run_and_audit_under_ulimit(shared, tmp_path):
    def enter() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (4 * CAP_BYTES, 4 * CAP_BYTES))

    for arguments in commands(shared / "data" / "nfcorpus", tmp_path / "r"):
        done = weir(tmp_path / "home", enter, *arguments)
        assert done.returncode == 0, done.stderr
        assert "nfcorpus" in done.stdout


def test_run_and_audit_in_a_cgroup(shared, tmp_path):
    group = GROUPS / f"weir-test-{os.getpid()}"
    try:
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text(str(CAP_BYTES), encoding="ascii")
    except OSError:
        pytest.skip("memory cgroups of version 1 cannot be made here")

    def enter() -> None:
        (group / "cgroup.procs").write_text("0", encoding="ascii")

    try:
        assert "half of the cgroup's memory" in weir(tmp_path / "home", enter, "doctor").stdout
        for arguments in commands(shared / "data" / "nfcorpus", tmp_path / "r"):
            done = weir(tmp_path / "home", enter, *arguments)
            assert done.returncode == 0, done.stderr
            assert "nfcorpus" in done.stdout
        peak = int((group / "memory.max_usage_in_bytes").read_text(encoding="ascii"))
        assert peak > 1 << 26, "the commands did not run in the group"
    finally:
        group.rmdir()
