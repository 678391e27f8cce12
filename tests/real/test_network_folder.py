"""A folder that two machines have mounted, whose kernel locks do not hold between them: two mounts by bindfs, and
processes with mounts of their own. Needs root, bindfs and FUSE."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.real.test_shared_stages import GRID, SLOWLY, stages, values

from weir.cli.main import main
from weir.experiment.verify import verified
from weir.settings import settings

pytest.importorskip("numba", reason="needs the `run` extra (numba)")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (
            shutil.which("bindfs")
            and shutil.which("unshare")
            and Path("/dev/fuse").exists()
            and os.geteuid() == 0
        ),
        reason="needs bindfs, FUSE and root",
    ),
]
COUNT = """
import sys, time
from pathlib import Path
from weir.files.leases import locked
folder = Path(sys.argv[1])
for _ in range(int(sys.argv[2])):
    with locked(folder / "lock"):
        count = int((folder / "count").read_text())
        time.sleep(0.005)
        (folder / "count").write_text(str(count + 1))
"""
HOLD = """
import sys
from pathlib import Path
from weir.files.leases import locked
with locked(Path(sys.argv[1]) / "lock"):
    print("in", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def mounts(tmp_path, monkeypatch):
    """The two places at which the folder is mounted."""
    monkeypatch.setenv("WEIR_LEASE", "4")
    settings.cache_clear()
    places = [tmp_path / "one", tmp_path / "two"]
    for place in (tmp_path / "server", *places):
        place.mkdir()
    for place in places:
        subprocess.run(["bindfs", tmp_path / "server", place], check=True)
    yield places
    for place in places:
        subprocess.run(["fusermount", "-u", "-z", place], check=True)


def process(code: str, *arguments: object, **more) -> subprocess.Popen:
    command = ["unshare", "--mount", sys.executable, "-W", "ignore", "-c", code, *map(str, arguments)]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more
    )


def test_kernel_locks_do_not_hold_between_the_mounts(mounts):
    """Else the tests below would show nothing."""
    with (mounts[0] / "lock").open("ab") as one, (mounts[1] / "lock").open("ab") as other:
        fcntl.flock(one, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_one_is_inside_at_a_time(mounts, tmp_path):
    (tmp_path / "server" / "count").write_text("0")
    several = [process(COUNT, place, 30) for place in (*mounts, *mounts)]
    assert [one.communicate(timeout=600)[1] for one in several] == [""] * 4
    assert (tmp_path / "server" / "count").read_text() == "120"
    assert [path.name for path in (tmp_path / "server").iterdir()] == ["count"]


def test_a_killed_process_of_the_other_machine_is_waited_for_and_replaced(mounts, tmp_path):
    holder = process(HOLD, mounts[0])
    assert holder.stdout.readline() == "in\n"
    time.sleep(6)  # its lease is renewed meanwhile
    other = process(HOLD, mounts[1])
    time.sleep(1.5)
    assert other.poll() is None
    assert len(list((tmp_path / "server" / "lock.lease").iterdir())) == 1
    holder.send_signal(signal.SIGKILL)
    holder.communicate()
    begun = time.monotonic()
    assert other.stdout.readline() == "in\n"
    assert time.monotonic() - begun > 0.5
    other.communicate("")
    assert not list((tmp_path / "server").iterdir())


def test_a_grid_in_a_folder_of_two_machines(mounts, tmp_path):
    """Each stage is made once; of a machine that dies in the middle of one the other makes it."""

    def started(place, seconds):
        return process(SLOWLY, seconds, "run", *GRID, "-q", "-o", place / "results")

    dead = started(mounts[0], 600)
    assert dead.stdout.readline().startswith("building bm25")
    several = [started(place, 6) for place in mounts]
    time.sleep(1)
    dead.send_signal(signal.SIGKILL)
    dead.communicate()
    ends = [one.communicate(timeout=600) for one in several]
    assert [one.returncode for one in several] == [0, 0], ends
    lines = [line for out, _ in ends for line in out.splitlines() if line.startswith("building ")]
    assert sorted(lines) == ["building bm25", "building rm3", "building rrf(bm25, rm3)"]
    assert main(["run", *GRID, "-q", "-o", str(tmp_path / "alone")]) == 0
    results = tmp_path / "server" / "results"
    assert values(results) == values(tmp_path / "alone")
    assert stages(results).keys() == stages(tmp_path / "alone").keys()
    assert not [path for path in results.rglob("*") if "lock" in path.name]


def test_a_machine_that_was_suspended_goes_on(mounts, tmp_path):
    """Another took over and finished in the same folder meanwhile: results are sound and those of one machine."""

    def started(place, seconds):
        return process(SLOWLY, seconds, "run", *GRID, "-q", "-o", place / "results")

    slow = started(mounts[0], 2)
    assert slow.stdout.readline().startswith("building bm25")
    slow.send_signal(signal.SIGSTOP)
    other = started(mounts[1], 0)
    out = other.communicate(timeout=600)
    assert other.returncode == 0, out
    slow.send_signal(signal.SIGCONT)
    out = slow.communicate(timeout=600)
    assert slow.returncode == 0, out
    assert main(["run", *GRID, "-q", "-o", str(tmp_path / "alone")]) == 0
    results = tmp_path / "server" / "results"
    assert values(results) == values(tmp_path / "alone")
    assert all(one.status == "sound" for one in verified(results))
    assert not [path for path in results.rglob("*") if "lock" in path.name]
