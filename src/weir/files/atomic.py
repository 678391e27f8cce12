"""Write files and folders completely or not at all."""

from __future__ import annotations

import errno
import gc
import json
import math
import os
import platform
import re
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO, cast

from weir.errors import BadValue, StoreError
from weir.files.paths import STANDARD_OUTPUT

_MARK = ".tmp-"
_ABANDONED = 3600.0  # seconds without a write after which nobody is still working in a temporary
_PATIENCE = 2.0  # seconds for which a move is tried again where a scanner of viruses may have the file open
_WINDOWS_FOLDER = 247  # characters of a folder's path that Windows takes; of a file's 259

UNPORTABLE = re.compile(
    r'[<>:"|?*\\\x00-\x1f]|[. ]$|^(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|$)', re.IGNORECASE
)
"""Names that Windows refuses: some characters, a final blank or dot, device names."""

_REASONS = {
    errno.ENOSPC: "no space left on the disk",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "a file larger than is allowed here (ulimit -f)",
    errno.EROFS: "the file system is read-only",
    errno.EACCES: "no permission to write there",
    errno.EPERM: "no permission to write there",
    errno.ENOTDIR: "a part of this path is a file, not a folder",
    errno.EEXIST: "a part of this path is a file, not a folder",
    errno.EPIPE: "whoever reads it has gone",
    errno.ECONNREFUSED: "nobody listens there",
}


@contextmanager
def storing(path: Path) -> Iterator[None]:
    """Raise StoreError, naming `path`, in place of an OSError within the block."""
    try:
        yield
    except OSError as error:
        raise StoreError(f"cannot write {path}: {_reason(error, os.name)}") from error


def too_long(error: OSError, system: str) -> int:
    """Return the length of a path that Windows refused as too long, 0 for other errors and systems."""
    letters = len(str(Path(error.filename).absolute())) if isinstance(error.filename, str) else 0
    return letters if system == "nt" and error.errno == errno.ENOENT and letters > _WINDOWS_FOLDER else 0


def _reason(error: OSError, system: str) -> str:
    if letters := too_long(error, system):
        return (
            f"a path of {letters} characters, and Windows takes {_WINDOWS_FOLDER + 12}; "
            "name a folder with a shorter path, or switch on long paths in Windows"
        )
    if system == "nt" and error.errno in (errno.EACCES, errno.EPERM):
        return (
            "no permission to write there, or a program has it open, which Windows lets nobody replace; end that "
            "program, or restart the notebook, and run it again"
        )
    return _REASONS.get(error.errno or 0, error.strerror or str(error))


@contextmanager
def atomic_file(path: Path, durable: bool = True) -> Iterator[Path]:
    """Yield a temporary path; the file written there replaces `path` when the block succeeds, else it is removed.

    `-` is standard output; pipes and devices are written directly. Links are followed, permissions kept, parent
    folders made. Raises StoreError.
    """
    if is_stream(path):
        with _written_through(path) as temporary:
            yield temporary
        return
    with storing(path):
        target = _target(path)
        if target.is_dir():
            raise StoreError(f"cannot write {path}: a folder is there; name a file")
        target.parent.mkdir(parents=True, exist_ok=True)
        sweep(target)
        temporary, mode = _temporary(target), _permissions(target)
        try:
            if mode is not None:
                temporary.touch(mode | stat.S_IWUSR)  # nobody else may read it meanwhile
            yield temporary
            if mode is not None:
                temporary.chmod(mode)
            if durable:
                _sync(temporary)
            _moved(partial(temporary.replace, target))
            if durable:
                _sync_folder(target.parent)
        except BaseException:
            with suppress(OSError):
                temporary.unlink()
            raise


def _target(path: Path) -> Path:
    if not path.is_symlink():
        return path
    target = Path(os.path.realpath(path))
    if target.is_symlink():
        raise StoreError(f"cannot write {path}: a link that leads back to itself")
    return target


def _permissions(path: Path) -> int | None:
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        return None


def is_stream(path: Path) -> bool:
    """Return True for `-`, standard output's file, a pipe, device or socket, or a link to one; False for a missing
    path.
    """
    if path == STANDARD_OUTPUT:
        return True
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)) or is_standard_output(path)


def is_standard_output(path: Path) -> bool:
    """Return True for `-` and for a name of standard output's file, such as /dev/stdout."""
    if path == STANDARD_OUTPUT:
        return True
    with suppress(OSError, ValueError, AttributeError):  # it may be closed, or a buffer in memory
        return os.path.samestat(path.stat(), os.fstat(sys.stdout.fileno()))
    return False


@contextmanager
def _written_through(path: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="weir-") as folder:
        temporary = Path(folder) / "content"
        with storing(path):
            yield temporary
        with temporary.open("rb") as content:
            if is_standard_output(path):
                sys.stdout.flush()
                shutil.copyfileobj(content, sys.stdout.buffer)
                sys.stdout.flush()
                return
            with storing(path), _stream(path) as out:
                shutil.copyfileobj(content, out)


@contextmanager
def _stream(path: Path) -> Iterator[BinaryIO]:
    if not path.is_socket():
        with os.fdopen(os.open(path, os.O_WRONLY), "wb") as file:
            yield file
        return
    import socket

    with socket.socket(socket.AF_UNIX) as there:
        there.connect(os.fspath(path))
        with there.makefile("wb") as file:
            yield cast(BinaryIO, file)


@contextmanager
def atomic_dir(path: Path) -> Iterator[Path]:
    """Yield a temporary folder, which replaces `path` when the block succeeds, else is removed.

    Links are followed. Raises StoreError, also if `path` is a file.
    """
    with storing(path):
        target = _target_folder(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        sweep(target)
        temporary = _temporary(target)
        temporary.mkdir()
        try:
            yield temporary
            _sync_all(temporary)
            _move_into_place(temporary, target)
            _sync_folder(target.parent)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise


def check_replaceable(folder: Path, record: str, own: Collection[str], writer: str) -> bool:
    """Return True if the folder holds what the command `writer` wrote, False if missing or empty; raises BadValue for a
    file, and for a folder with anything else.

    record: file that every folder of this command has.
    own: names that the command writes; stores (.weir) are accepted too.
    """
    if not folder.exists():
        return False
    if not folder.is_dir():
        raise BadValue(f"{folder} is a file; give a folder to write")
    names = {path.name for path in folder.iterdir() if not path.name.startswith(f".{folder.name}.tmp-")}
    names = {name for name in names if ".weir" not in name}  # stores that were made of its documents
    if names and (not (folder / record).is_file() or names.difference(own)):
        other = sorted(names.difference(own) or names)[0]
        raise BadValue(f"{folder} holds '{other}', which {writer} did not write; give another folder")
    return bool(names)


def make_folder(path: Path) -> None:
    """Create a folder and its parents if missing, following links; raises StoreError if that fails."""
    with storing(path):
        _target_folder(path).mkdir(parents=True, exist_ok=True)


def _target_folder(path: Path) -> Path:
    target = _target(path)
    if path == STANDARD_OUTPUT or (target.exists() and not target.is_dir()):
        there = "standard output" if path == STANDARD_OUTPUT else "a file is there"
        raise StoreError(f"cannot write {path}: {there}; name a folder")
    return target


def refuse_ways_out(root: Path, folders: Collection[str]) -> None:
    """Raise StoreError if a folder contains a pipe, socket, device, or a link that leads out of it.

    folders: names of direct subfolders to search; others are skipped.
    """
    inside = root.resolve()
    for above, names, files in os.walk(root):
        if above == str(root):
            names[:] = [name for name in names if name in folders]
        for path in (Path(above) / name for name in (*names, *files)):
            try:
                mode = path.lstat().st_mode
            except FileNotFoundError:  # another process took it away
                continue
            if stat.S_ISLNK(mode) and not path.resolve().is_relative_to(inside):
                found = f"a link to {path.resolve()}"
            elif not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)):
                found = "a pipe, a socket or a device"
            else:
                continue
            raise StoreError(
                f"{path} is {found}, and nothing is written through it; remove it, or write to another folder"
            )


def own_file(path: Path) -> Path:
    """Return `path`, after deleting a link, pipe, socket or device there."""
    with storing(path), suppress(FileNotFoundError):
        mode = path.lstat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            path.unlink()
    return path


def write_bytes(path: Path, data: bytes, durable: bool = True) -> None:
    """Write bytes to a file atomically.

    durable: sync to disk.
    """
    with atomic_file(path, durable) as temporary:
        temporary.write_bytes(data)


def write_text(path: Path, text: str, durable: bool = True) -> None:
    """Write text to a UTF-8 file atomically; raises UnicodeEncodeError for a lone surrogate."""
    write_bytes(path, text.encode("utf-8"), durable)


def write_json(path: Path, value: object, durable: bool = True) -> None:
    """Write a value atomically as indented JSON."""
    write_text(path, json.dumps(value, indent=1, ensure_ascii=False) + "\n", durable)


def writable(folder: Path) -> bool:
    """Return True if files can be created in a folder, or in its nearest existing ancestor.

    On POSIX, a folder without write permission bits is read-only, even for root.
    """
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    marked = os.name == "posix" and not folder.stat().st_mode & 0o222
    return folder.is_dir() and os.access(folder, os.W_OK) and not marked


def sweep(path: Path) -> None:
    """Remove temporary files for `path` that dead processes left or nobody wrote to for an hour."""
    _sweep(path.parent, f".{path.name}{_MARK}")


def sweep_inside(folder: Path) -> None:
    """Remove all temporary files directly in a folder that dead processes left or nobody wrote to for an hour."""
    _sweep(folder, ".")


@contextmanager
def temporary_folder(name: str) -> Iterator[Path]:
    """Yield a new temporary folder weir-NAME..., removed after the block, and remove such folders of dead
    processes.
    """
    begins = f"weir-{name}{_MARK}"
    _sweep(Path(tempfile.gettempdir()), begins, abandoned=math.inf)
    prefix = f"{begins}{_host()}-{os.getpid()}-"
    with tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def _sweep(folder: Path, begins: str, abandoned: float = _ABANDONED) -> None:
    with suppress(OSError):
        for left in list(folder.iterdir()):
            if not (left.name.startswith(begins) and _MARK in left.name):
                continue
            host, process, _ = (*left.name.rpartition(_MARK)[2].split("-"), "", "", "")[:3]
            dead = host == _host() and process.isdecimal() and not _alive(int(process))
            if dead or (abandoned < math.inf and time.time() - _last_write(left) > abandoned):
                _remove(left)


def _host() -> str:
    return "".join(c for c in platform.node() if c.isalnum()) or "here"


def _alive(process: int) -> bool:
    if os.name != "posix":
        return True  # asking would end it there
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _temporary(path: Path) -> Path:
    return path.with_name(f".{path.name}{_MARK}{_host()}-{os.getpid()}-{os.urandom(4).hex()}")


def _move_into_place(new: Path, path: Path) -> None:
    # A folder cannot be renamed onto one with files in it: the old one steps aside first. Another process
    # may put its own there in between, hence the loop; a reader that has the old files open keeps them.
    for _ in range(100):
        try:
            _moved(partial(new.rename, path), unless=path)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.EACCES, errno.EPERM, errno.ENOTDIR):
                raise
            if not path.exists():
                raise
        else:
            return
        aside = _temporary(path)
        with suppress(FileNotFoundError):
            _moved(partial(path.rename, aside))
        _remove(aside)
    raise StoreError(f"cannot write {path}: other processes keep replacing it")


def _moved(move: Callable[[], object], unless: Path | None = None) -> None:
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            move()
        except PermissionError:
            if os.name == "posix" or time.monotonic() > until or (unless is not None and unless.exists()):
                raise
            gc.collect()  # what nothing holds any more may still be mapped
            time.sleep(0.05)
        else:
            return


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _last_write(path: Path) -> float:
    return max([path.stat().st_mtime, *(p.stat().st_mtime for p in path.rglob("*"))])


def _sync(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def _sync_all(folder: Path) -> None:
    for inside, _, names in os.walk(folder, topdown=False):
        for name in names:
            _sync(Path(inside) / name)
        _sync_folder(Path(inside))


def _sync_folder(folder: Path) -> None:
    if os.name != "posix":
        return
    try:
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EACCES, errno.EBADF):
            raise
