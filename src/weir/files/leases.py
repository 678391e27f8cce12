"""Locks and leases between processes of one machine or several."""

from __future__ import annotations

import errno
import json
import os
import platform
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from threading import Event, Thread
from typing import IO, Protocol

from weir.errors import WeirError
from weir.files.atomic import storing, too_long
from weir.settings import settings

RENEWALS = 4
"""Renewals within the seconds after which a lease is abandoned."""
VANISHED_TIMES, VANISHED_SECONDS = 1000, 0.01
"""Retries for a file that others remove while it is opened, and the seconds between."""


# A lease is a small object beside the work: its owner, and the seconds without renewal after which it is abandoned. A
# thread of the owner renews it. Waiters compare its time of writing with that of an object they write themselves, so
# only the store's clock counts. Leases of a place are numbered; taking over an abandoned one creates the next number,
# which only one process can. An owner that was merely slow does no harm, as both produce equal results.
class LeaseStore(Protocol):
    """A store of leases, which are small objects under path-like names."""

    def create(self, name: str, data: bytes) -> bool:
        """Write a new object and return True; return False if the name exists."""

    def renew(self, name: str, data: bytes) -> None:
        """Write a lease again, to show that its owner still runs."""

    def read(self, name: str) -> bytes | None:
        """Return the bytes of an object; None if missing."""

    def age(self, name: str) -> float | None:
        """Return the seconds since an object was written, by the store's clock; None if missing."""

    def names_in(self, folder: str) -> list[str]:
        """Return the names of the objects in a folder; [] if missing."""

    def delete(self, name: str) -> None:
        """Delete an object, if it exists."""


@dataclass(frozen=True)
class Owner:
    """The process that owns a lease."""

    host: str
    machine: str
    """Identifies the machine, also between equal host names."""
    process: int
    seconds: float
    """Time without renewal after which the lease is abandoned."""

    @staticmethod
    def here() -> Owner:
        """Return this process as an owner."""
        return Owner(platform.node(), _machine(), os.getpid(), settings().lease)

    def to_bytes(self) -> bytes:
        """Return the owner as JSON."""
        return json.dumps(asdict(self)).encode()

    @staticmethod
    def read(data: bytes | None) -> Owner:
        """Return the owner in a lease; an unknown owner for None or damaged data."""
        try:
            entries = json.loads(data or b"")
            return Owner(
                str(entries["host"]),
                str(entries["machine"]),
                int(entries["process"]),
                float(entries["seconds"]),
            )
        except (ValueError, KeyError, TypeError):
            return Owner("", "", 0, settings().lease)


@cache
def _machine() -> str:
    # Two containers may each mount a network folder, so that kernel locks do not reach between them.
    with suppress(OSError):
        started = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{started} {Path('/proc/self/ns/mnt').readlink()}"
    return f"{platform.node()} {uuid.getnode():x}"


Rule = Callable[[Owner | None], bool | None]
"""Returns whether a lease of this owner (None: no lease) may be taken; None lets its age decide."""


def taken(store: LeaseStore, place: str, rule: Rule = lambda owner: None) -> int | None:
    """Try once to acquire the lease of `place`; return its number, None if it is not free.

    rule: gets the newest lease's owner, None without one; returns True to take the lease, False not to, None to let
        its age decide.
    """
    numbers = sorted(int(name) for name in store.names_in(place) if name.isdecimal())
    newest = numbers[-1] if numbers else 0
    owner = Owner.read(store.read(f"{place}/{newest}")) if numbers else None
    free = rule(owner)
    if free is None and owner is not None:
        age = store.age(f"{place}/{newest}")
        free = age is not None and age > owner.seconds
    if free is False or not store.create(f"{place}/{newest + 1}", Owner.here().to_bytes()):
        return None
    return newest + 1


@contextmanager
def renewed(store: LeaseStore, place: str, number: int) -> Iterator[None]:
    """Renew a lease regularly during the block, then delete it and earlier leases of `place`."""
    owner, done = Owner.here(), Event()

    def renew() -> None:
        while not done.wait(owner.seconds / RENEWALS):
            with suppress(OSError, WeirError):  # the next may succeed; where none does, another takes over
                store.renew(f"{place}/{number}", owner.to_bytes())

    thread = Thread(target=renew, name=f"lease of {place}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()  # a renewal that arrived after the deletion would write the lease anew
        with suppress(WeirError):  # a store out of reach: the lease runs out
            for older in sorted(int(name) for name in store.names_in(place) if name.isdecimal()):
                if older <= number:
                    store.delete(f"{place}/{older}")


@contextmanager
def leased(store: LeaseStore, place: str, waiting: Callable[[Owner], None]) -> Iterator[None]:
    """Wait for the lease of `place`, and hold it during the block.

    waiting: called once, with the owner, if another process holds it.
    """
    told, pause = False, 0.05
    while (number := taken(store, place)) is None:
        held = [name for name in store.names_in(place) if name.isdecimal()]
        if held and not told:
            told = True
            waiting(Owner.read(store.read(f"{place}/{max(held, key=int)}")))
        time.sleep(pause)
        pause = min(1.5 * pause, settings().lease / (5 * RENEWALS))
    with renewed(store, place, number):
        yield


# ----------
# Locks of files: the kernel's lock between processes of one machine, and a lease for other machines.
#
# On one machine the kernel decides, at once and exactly: the holder of its lock knows that no other process of the
# machine is inside. Between machines that share a folder, kernel locks depend on the file system and its mount
# options; there the lease decides.


@dataclass(frozen=True)
class LeaseFolder:
    """Leases as files in a folder, which is removed with the last lease."""

    root: Path

    def create(self, name: str, data: bytes) -> bool:
        path = self.root / name
        with storing(path):
            try:
                descriptor = _opened(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
            except FileExistsError:
                return False
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
            return True

    def renew(self, name: str, data: bytes) -> None:
        os.utime(self.root / name)

    def read(self, name: str) -> bytes | None:
        with suppress(OSError):
            return (self.root / name).read_bytes()
        return None

    def age(self, name: str) -> float | None:
        folder = (self.root / name).parent
        # Times of open files: a network folder may have kept those of names for a minute.
        try:
            with (self.root / name).open("rb") as lease, tempfile.TemporaryFile(dir=folder) as now:
                now.write(b"now")
                now.flush()
                os.fsync(now.fileno())
                return os.fstat(now.fileno()).st_mtime - os.fstat(lease.fileno()).st_mtime
        except OSError:
            return None
        finally:
            with suppress(OSError):
                folder.rmdir()  # where the lease went meanwhile

    def names_in(self, folder: str) -> list[str]:
        with suppress(OSError):
            return [path.name for path in (self.root / folder).iterdir()]
        return []

    def delete(self, name: str) -> None:
        path = self.root / name
        with suppress(OSError):
            path.unlink()
        with suppress(OSError):
            path.parent.rmdir()


@contextmanager
def locked(path: Path, wait: bool = True) -> Iterator[bool]:
    """Hold a lock file during the block, against processes of all machines; yield True if it is held.

    wait: False yields False at once if another process holds it.

    A killed process's lock is free at once on its machine, elsewhere when its lease expires.
    """
    store, place, pause = LeaseFolder(path.parent), f"{path.name}.lease", 0.001
    while True:
        file, kernel = _kernel_lock(path)
        here = _machine()

        def rule(owner: Owner | None, kernel: bool | None = kernel, here: str = here) -> bool | None:
            if kernel is None:  # the file system knows no locks
                return None
            if owner is None or owner.machine == here:
                return kernel
            return None

        try:
            number = taken(store, place, rule)
        except BaseException:
            file.close()
            raise
        if number is not None:
            break
        file.close()
        if not wait:
            yield False
            return
        time.sleep(pause)
        pause = min(1.5 * pause, 0.25)
    with file:
        try:
            with renewed(store, place, number):
                yield True
        finally:
            if sys.platform == "win32":  # where no open file goes, so that one that goes is nobody's lock
                file.close()
            with suppress(
                OSError
            ):  # elsewhere before it is let go: whoever opens it later opens another file
                path.unlink()


def clear_lock(path: Path) -> None:
    """Remove the lock file that a killed process left; a lock in use stays."""
    if path.exists():
        with locked(path, wait=False):
            pass


def _kernel_lock(path: Path) -> tuple[IO[bytes], bool | None]:
    while True:
        with storing(path):
            file = os.fdopen(_opened(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY), "ab")
        held: bool | None = True
        try:
            _hold(file.fileno())
        except OSError as error:
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES, errno.EDEADLK, errno.ESTALE):
                return file, False
            if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL):
                file.close()
                raise
            held = None
        with suppress(OSError):
            if path.stat().st_ino == os.fstat(file.fileno()).st_ino:
                return file, held
        file.close()


def _opened(path: Path, flags: int) -> int:
    for left in reversed(range(VANISHED_TIMES)):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except (
            FileExistsError,
            FileNotFoundError,
        ) as error:  # it went again; opening says it where it is a file
            if path.parent.is_symlink():
                raise NotADirectoryError(errno.ENOTDIR, "a link to nowhere", str(path.parent)) from error
        try:
            return os.open(path, flags, 0o666)
        except OSError as error:
            gone = error.errno in (errno.ENOENT, errno.ESTALE) and not too_long(error, os.name)
            if not gone or not left:
                raise
        time.sleep(VANISHED_SECONDS)  # this machine's cache of the folder may be a second old
    raise AssertionError


def _hold(descriptor: int) -> None:
    if sys.platform == "win32":
        import msvcrt

        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
