"""Locks and leases: one of several processes at a time, on one machine or on many.

A lease is a small object beside what is being made: who makes it, and after how many seconds without a sign of life it
counts as abandoned. Its holder renews it from a thread of its own. Whoever waits compares the time of its last writing
with the time of an object that it writes itself: both are times of the store, so that no clock of a machine counts.
Leases of one place are numbered. An abandoned one is taken over by creating the next number, which only one can. A
holder that was merely slow goes on and does harm to nobody: what it makes is equal to what the other makes.
"""

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
from weir.files.atomic import storing
from weir.settings import settings

RENEWALS = 4
"""How often a lease is renewed within the seconds after which it counts as abandoned."""
VANISHED_TIMES, VANISHED_SECONDS = 1000, 0.01
"""How often a file that others take away while it is opened is tried again, and the seconds between."""


class LeaseStore(Protocol):
    """Where leases stand. Names have the parts of a path, / between them."""

    def create(self, name: str, data: bytes) -> bool:
        """Write a new object; False where there is one of this name."""

    def renew(self, name: str, data: bytes) -> None:
        """Write an object again, or set the time of its writing."""

    def read(self, name: str) -> bytes | None:
        """The bytes of an object, None where there is none."""

    def age(self, name: str) -> float | None:
        """Seconds since an object was written, by the clock of the store; None where there is none."""

    def names(self, folder: str) -> list[str]:
        """The names in a folder."""

    def delete(self, name: str) -> None:
        """Remove an object, if there is one."""


@dataclass(frozen=True)
class Owner:
    """Who holds a lease. machine: see `_machine`; seconds: without a renewal it is abandoned after these."""

    host: str
    machine: str
    process: int
    seconds: float

    @staticmethod
    def here() -> Owner:
        """This process."""
        return Owner(platform.node(), _machine(), os.getpid(), settings().lease)

    def written(self) -> bytes:
        """What stands in the lease."""
        return json.dumps(asdict(self)).encode()

    @staticmethod
    def read(data: bytes | None) -> Owner:
        """Who wrote a lease; nobody that is known where it is not whole yet."""
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
    """What processes have in common that see each other's locks: one start of one system, and its mounted folders.

    Two containers of a machine may have mounted a network folder each, so that no lock of one holds in the other.
    """
    with suppress(OSError):
        started = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{started} {Path('/proc/self/ns/mnt').readlink()}"
    return f"{platform.node()} {uuid.getnode():x}"


Rule = Callable[[Owner | None], bool | None]
"""Whether a lease of this owner (None: there is no lease) may be taken; None: its age decides."""


def taken(store: LeaseStore, place: str, rule: Rule = lambda owner: None) -> int | None:
    """Try once to take the lease of a place; its number, None where another holds it."""
    numbers = sorted(int(name) for name in store.names(place) if name.isdecimal())
    newest = numbers[-1] if numbers else 0
    owner = Owner.read(store.read(f"{place}/{newest}")) if numbers else None
    free = rule(owner)
    if free is None and owner is not None:
        age = store.age(f"{place}/{newest}")
        free = age is not None and age > owner.seconds
    if free is False or not store.create(f"{place}/{newest + 1}", Owner.here().written()):
        return None
    return newest + 1


@contextmanager
def renewed(store: LeaseStore, place: str, number: int) -> Iterator[None]:
    """Renew a lease while the block runs; it and those that it took over go when the block ends."""
    owner, done = Owner.here(), Event()

    def renew() -> None:
        while not done.wait(owner.seconds / RENEWALS):
            with suppress(OSError, WeirError):  # the next may succeed; where none does, another takes over
                store.renew(f"{place}/{number}", owner.written())

    thread = Thread(target=renew, name=f"lease of {place}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()  # a renewal that arrived after the deletion would write the lease anew
        with suppress(WeirError):  # a store out of reach: the lease runs out
            for older in sorted(int(name) for name in store.names(place) if name.isdecimal()):
                if older <= number:
                    store.delete(f"{place}/{older}")


@contextmanager
def leased(store: LeaseStore, place: str, waiting: Callable[[Owner], None]) -> Iterator[None]:
    """Hold the lease of a place while the block runs; waits for it, and tells once whom it waits for."""
    told, pause = False, 0.05
    while (number := taken(store, place)) is None:
        held = [name for name in store.names(place) if name.isdecimal()]
        if held and not told:
            told = True
            waiting(Owner.read(store.read(f"{place}/{max(held, key=int)}")))
        time.sleep(pause)
        pause = min(1.5 * pause, settings().lease / (5 * RENEWALS))
    with renewed(store, place, number):
        yield


# ----------
# Locks of files: the kernel's where it holds between all processes, and a lease beside them for other machines.
#
# On one machine the kernel decides, at once and exactly: whoever holds its lock knows that no other process of the
# machine is inside. Whether it also holds between machines that share a folder depends on the file system and on how it
# is mounted; there the lease decides.


@dataclass(frozen=True)
class LeaseFolder:
    """Leases as files below a folder; a folder of leases goes with the last one."""

    root: Path

    def create(self, name: str, data: bytes) -> bool:
        """As the protocol says; raises StoreError where the disk refuses."""
        path, vanished = self.root / name, 0
        with storing(path):
            while True:
                path.parent.mkdir(parents=True, exist_ok=True)
                try:
                    descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
                except FileExistsError:
                    return False
                except OSError as error:  # another let go of the last lease: the folder went with it
                    vanished += 1
                    if error.errno not in (errno.ENOENT, errno.ESTALE) or vanished == VANISHED_TIMES:
                        raise
                    time.sleep(VANISHED_SECONDS)
                    continue
                with os.fdopen(descriptor, "wb") as file:
                    file.write(data)
                return True

    def renew(self, name: str, data: bytes) -> None:
        """As the protocol says."""
        os.utime(self.root / name)

    def read(self, name: str) -> bytes | None:
        """As the protocol says."""
        with suppress(OSError):
            return (self.root / name).read_bytes()
        return None

    def age(self, name: str) -> float | None:
        """As the protocol says."""
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

    def names(self, folder: str) -> list[str]:
        """As the protocol says."""
        with suppress(OSError):
            return [path.name for path in (self.root / folder).iterdir()]
        return []

    def delete(self, name: str) -> None:
        """As the protocol says."""
        path = self.root / name
        with suppress(OSError):
            path.unlink()
        with suppress(OSError):
            path.parent.rmdir()


@contextmanager
def locked(path: Path, wait: bool = True) -> Iterator[bool]:
    """Hold a file as a lock: of several processes one is inside at a time, also on machines that share the folder.

    A killed process lets go at once on its own machine; on others its lease has to run out. Yields whether it is held:
    always where `wait`, else False when another holds it. The files go when it is let go. Raises StoreError when they
    cannot be made.
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
    """Take away the files of a lock that a killed process left behind; one that is held stays.

    Raises StoreError as `locked`.
    """
    if path.exists():
        with locked(path, wait=False):
            pass


def _kernel_lock(path: Path) -> tuple[IO[bytes], bool | None]:
    """The file of that name at this moment, and whether it is held; None where its file system knows no locks."""
    vanished = 0
    while True:
        with storing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                file = path.open("ab")
            except OSError as error:  # on a network folder another machine took it away at this moment
                vanished += 1
                if error.errno not in (errno.ENOENT, errno.ESTALE) or vanished == VANISHED_TIMES:
                    raise
                time.sleep(VANISHED_SECONDS)  # what this machine remembers of the folder may be a second old
                continue
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


def _hold(descriptor: int) -> None:
    if sys.platform == "win32":
        import msvcrt

        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
