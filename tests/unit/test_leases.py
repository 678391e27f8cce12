"""Locks and leases: one is inside at a time, a killed process lets go, and no clock of a machine counts."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.kills import until
from weir.errors import BadValue, StoreError
from weir.files import leases
from weir.files.leases import LeaseFolder, Owner, clear_lock, leased, locked, taken
from weir.settings import settings

HOUR = 3600.0


@pytest.fixture
def minute(monkeypatch):
    """Leases run out after a minute."""
    monkeypatch.setenv("WEIR_LEASE", "60")
    settings.cache_clear()
    yield
    monkeypatch.undo()
    settings.cache_clear()


def of_another_machine(path: Path, age: float = 0.0) -> Path:
    """A lease for an hour of a lock that a process of another machine wrote some seconds ago."""
    lease = path.with_name(f"{path.name}.lease") / "1"
    lease.parent.mkdir(parents=True)
    lease.write_text(json.dumps({"host": "elsewhere", "machine": "another", "process": 7, "seconds": HOUR}))
    os.utime(lease, (time.time() - age,) * 2)
    return lease


def test_a_lock_is_held_by_one_and_its_file_goes(tmp_path):
    path = tmp_path / "folder" / "lock"
    with locked(path) as held, locked(path, wait=False) as other:
        assert (held, other) == (True, False)
        assert path.exists()
    assert not path.exists()
    with locked(path, wait=False) as held:
        assert held


def test_many_that_wait_for_a_lock_are_inside_one_at_a_time(tmp_path):
    """The file of the lock goes and comes again under those who wait: no two may hold two files of that name."""
    inside, most, count = [0], [0], [0]

    def work():
        for _ in range(50):
            with locked(tmp_path / "lock"):
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                count[0] += 1
                time.sleep(0.0002)
                inside[0] -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (most[0], count[0]) == (1, 200)
    assert not (tmp_path / "lock").exists()


@pytest.mark.parametrize("moment", ["making", "opening"])
def test_a_folder_that_others_remove_at_any_moment_is_made_again(tmp_path, monkeypatch, moment):
    """Path.mkdir finds a folder there and looks for it once more; opening comes after both."""
    monkeypatch.setattr(leases, "VANISHED_SECONDS", 0)
    going, made, opened = ["lock", "lock.lease"] * 2, os.mkdir, os.open

    def mkdir(path, *arguments):
        if moment == "making" and going:
            going.pop()
            raise FileExistsError(errno.EEXIST, "File exists", str(path))
        made(path, *arguments)

    def open_(path, *arguments, **more):
        if moment == "opening" and going:
            going.pop()
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", str(path))
        return opened(path, *arguments, **more)

    monkeypatch.setattr(os, "mkdir", mkdir)
    monkeypatch.setattr(os, "open", open_)
    with locked(tmp_path / "folder" / "lock") as held:
        assert held
    assert not going


@pytest.mark.parametrize("blocked", ["folder", "folder/lock.lease"])
def test_a_file_or_a_dangling_link_in_place_of_a_folder_is_said_at_once(tmp_path, blocked, monkeypatch):
    monkeypatch.setattr(leases.time, "sleep", lambda _: pytest.fail("it waits"))
    for number, block in enumerate((Path.touch, lambda path: path.symlink_to("nowhere"))):
        place = tmp_path / str(number) / blocked
        place.parent.mkdir(parents=True)
        block(place)
        with (
            pytest.raises(StoreError, match="a part of this path is a file"),
            locked(tmp_path / str(number) / "folder" / "lock"),
        ):
            raise AssertionError


def test_a_killed_process_lets_go_of_its_lock(tmp_path):
    code = f"from weir.files.leases import locked\nfrom pathlib import Path\nwith locked(Path({str(tmp_path / 'lock')!r})):\n    print('in', flush=True)\n    input()"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stdin=subprocess.PIPE)
    assert process.stdout.readline().strip() == b"in"
    with locked(tmp_path / "lock", wait=False) as held:
        assert not held
    process.kill()
    process.wait()
    process.stdout.close()
    process.stdin.close()
    with locked(tmp_path / "lock", wait=False) as held:
        assert held


def test_what_a_killed_process_left_goes(tmp_path):
    code = f"from weir.files.leases import locked\nfrom pathlib import Path\nimport os\nwith locked(Path({str(tmp_path / 'lock')!r})):\n    os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", code], check=False)
    assert {path.name for path in tmp_path.rglob("*")} == {"lock", "lock.lease", "1"}
    clear_lock(tmp_path / "lock")
    assert not list(tmp_path.iterdir())


def test_a_process_of_another_machine_is_inside_until_its_lease_runs_out(tmp_path):
    """The kernel's lock says nothing of it, as on a folder that is mounted without locks."""
    path = tmp_path / "lock"
    lease = of_another_machine(path)
    with locked(path, wait=False) as held:
        assert not held
    clear_lock(path)
    assert lease.exists()
    os.utime(lease, (time.time() + 1 - HOUR,) * 2)
    ends = lease.stat().st_mtime + HOUR
    with locked(path):
        assert time.time() >= ends
    assert not list(tmp_path.iterdir())
    of_another_machine(path, age=HOUR + 1)
    with locked(path, wait=False) as held:
        assert held


def test_a_lease_holds_as_long_as_its_owner_says(tmp_path, minute):
    path = tmp_path / "lock"
    of_another_machine(path, age=HOUR / 2)
    with locked(path, wait=False) as held:
        assert not held


def test_a_dead_machine_whose_lock_the_server_still_holds(tmp_path):
    """A network file system may never hear of its end: the lease decides. A live process here is waited for."""
    path = tmp_path / "lock"
    with path.open("ab") as file:
        leases._hold(file.fileno())
        with locked(path, wait=False) as held:
            assert not held  # it has not written its lease yet
        lease = of_another_machine(path, age=HOUR + 1)
        with locked(path, wait=False) as held:
            assert held
    with path.open("ab") as file:
        leases._hold(file.fileno())
        lease = of_another_machine(path)
        lease.write_text(json.dumps(Owner.here().__dict__))
        os.utime(lease, (1, 1))
        with locked(path, wait=False) as held:
            assert not held


def test_leases_alone_where_a_file_system_knows_no_locks(tmp_path, minute, monkeypatch):
    def unknown(descriptor):
        raise OSError(errno.ENOTSUP, "no locks")

    monkeypatch.setattr(leases, "_hold", unknown)
    monkeypatch.setattr(leases, "RENEWALS", 600)  # one each tenth of a second
    path = tmp_path / "lock"
    with locked(path) as held:
        lease = tmp_path / "lock.lease" / "1"
        os.utime(lease, (1, 1))
        until(lambda: lease.stat().st_mtime > 1)  # renewed
        with locked(path, wait=False) as other:
            assert (held, other) == (True, False)
    assert not list(tmp_path.iterdir())


def test_of_many_one_takes_over(tmp_path, minute):
    of_another_machine(tmp_path / "lock", age=HOUR + 1)
    store, numbers, barrier = LeaseFolder(tmp_path), [], threading.Barrier(8)

    def work():
        barrier.wait()
        numbers.append(taken(store, "lock.lease"))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(str, numbers)) == ["2", *["None"] * 7]


def test_the_clock_of_a_machine_does_not_count(tmp_path, monkeypatch):
    """Both times are those of the file system; a machine a day ahead takes over nothing that lives."""
    path, now = tmp_path / "lock", time.time
    of_another_machine(path)
    monkeypatch.setattr(time, "time", lambda: now() + 86400)
    with locked(path, wait=False) as held:
        assert not held


def test_whoever_waits_is_told_for_whom(tmp_path):
    lease, told = of_another_machine(tmp_path / "lock"), []

    def waiting(owner):
        told.append(owner)
        os.utime(lease, (1, 1))

    with leased(LeaseFolder(tmp_path), "lock.lease", waiting):
        assert [owner.host for owner in told] == ["elsewhere"]
    assert not list(tmp_path.iterdir())


def test_a_lease_that_is_not_whole_yet_is_held(tmp_path):
    lease = of_another_machine(tmp_path / "lock")
    lease.write_bytes(b"")
    with locked(tmp_path / "lock", wait=False) as held:
        assert not held


@pytest.mark.parametrize("value", ["0", "soon", "-1", "1.5"])
def test_a_lease_of_no_time_is_refused(value, monkeypatch):
    monkeypatch.setenv("WEIR_LEASE", value)
    settings.cache_clear()
    with pytest.raises(BadValue, match="WEIR_LEASE"):
        settings()
    monkeypatch.undo()
    settings.cache_clear()
