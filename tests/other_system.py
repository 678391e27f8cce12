"""Runs a module or a script as macOS or Windows would run it, as far as that can be had on Linux.

    python tests/other_system.py windows -m weir run -d brook-news -s bm25
    python tests/other_system.py macos scripts/same_bits.py

What these systems lack is taken away: modules, functions of `os`, /proc and /sys. What they refuse is refused: names that
differ in case alone, and on Windows reserved names and characters, long paths, a file that is replaced, renamed or
removed while it is open or mapped, and a folder while a file in it is. On Windows text is written with CRLF, and is cp1252
where no encoding is named. Paths keep their slashes, and the compiled code is that of this system.
"""

from __future__ import annotations

import builtins
import ctypes.util
import errno
import getpass
import importlib.machinery
import io
import mmap
import os
import platform
import re
import runpy
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import types
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

ABSENT_MODULES = {
    "windows": ("fcntl", "grp", "posix", "pty", "pwd", "resource", "termios", "tty"),
    "macos": (),
}
ABSENT_FUNCTIONS = {
    "windows": (
        "chown fchmod fork forkpty getloadavg getpgid getuid geteuid getgid kill killpg mkfifo nice posix_fadvise posix_fallocate "
        "pread preadv pwrite pwritev sched_getaffinity sched_setaffinity setsid sync sysconf sysconf_names uname wait4"
    ),
    "macos": "posix_fadvise posix_fallocate sched_getaffinity sched_setaffinity",
}
PLATFORMS = {"windows": "win32", "macos": "darwin"}
KEEPS_ITS_SYSTEM = ("weir.kernels.jit",)
"""Modules that load this system's compiled code, by its name."""
FORBIDDEN = re.compile(r'[<>:"|?*\\\x00-\x1f]|[. ]$')
RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?", re.IGNORECASE)
LONGEST = 259
"""Characters of a path, without the zero behind it, as long as nobody has switched on long paths."""

_own_look = threading.local()


def main() -> None:
    """Become the system, then run what is named."""
    system, *command = sys.argv[1:]
    become(system)
    if command[0] == "-m":
        sys.argv[:] = command[1:]
        sys.path[0] = ""
        runpy.run_module(command[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv[:] = command
        sys.path[0] = str(Path(command[0]).parent)
        runpy.run_path(command[0], run_name="__main__")


def become(system: str) -> None:
    """Take away what the system lacks, and refuse what it refuses, until this process ends."""
    for module in (ctypes.util, getpass, platform, select, shutil, subprocess, tempfile, uuid):
        assert module  # the standard library has looked for its own system already
    platform.uname()
    tempfile.gettempdir()
    hold = _kernel_lock()
    for name in ABSENT_MODULES[system]:
        sys.modules[name] = None
    shown = _View(os)
    for name in ABSENT_FUNCTIONS[system].split():
        vars(shown)[name] = None
    replacements = {"os": shown, "sys": _View(sys)}
    vars(replacements["sys"])["platform"] = PLATFORMS[system]
    if system == "windows":
        vars(shown)["name"] = "nt"
        replacements |= {"mmap": _View(mmap), "signal": _View(signal)}
        for name in ("MADV_DONTNEED", "MADV_WILLNEED", "MADV_SEQUENTIAL", "MADV_RANDOM"):
            vars(replacements["mmap"])[name] = None
        for name in ("SIGKILL", "SIGHUP", "SIGPIPE", "SIGUSR1", "SIGALRM", "SIGSTOP"):
            vars(replacements["signal"])[name] = None
        sys.modules["msvcrt"] = hold
        _write_as_windows()
    sys.meta_path.insert(0, _Finder(replacements))
    sys.addaudithook(lambda event, given: _refuse(system, event, given))


class _View(types.ModuleType):
    """A module as Weir's own modules see it: what is set to None is absent, everything else is the module's."""

    def __init__(self, real: types.ModuleType) -> None:
        super().__init__(real.__name__)
        vars(self)["_real"] = real

    def __getattribute__(self, name: str) -> Any:
        own = types.ModuleType.__getattribute__(self, "__dict__")
        if name in own and not name.startswith("__") and name != "_real":
            if own[name] is None:
                raise AttributeError(f"module '{own['_real'].__name__}' has no attribute '{name}'")
            return own[name]
        return own if name == "__dict__" else getattr(own["_real"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(types.ModuleType.__getattribute__(self, "__dict__")["_real"], name, value)


class _Finder:
    """Finds Weir's modules, which see other modules of the standard library."""

    def __init__(self, replacements: dict[str, types.ModuleType]) -> None:
        self.replacements = replacements

    def find_spec(self, name: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if name.partition(".")[0] != "weir" or name in KEEPS_ITS_SYSTEM:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            spec.loader = _Loader(name, spec.loader.path, self.replacements)
        return spec


class _Loader(importlib.machinery.SourceFileLoader):
    def __init__(self, name: str, path: str, replacements: dict[str, types.ModuleType]) -> None:
        super().__init__(name, path)
        self.replacements = replacements

    def exec_module(self, module: types.ModuleType) -> None:
        super().exec_module(module)
        for name, view in self.replacements.items():
            if vars(module).get(name) is vars(view)["_real"]:
                setattr(module, name, view)


def _kernel_lock() -> types.ModuleType:
    """msvcrt, with the one function that locks: another handle, also of this process, is refused."""
    from fcntl import LOCK_EX, LOCK_NB, flock

    module: Any = types.ModuleType("msvcrt")

    def locking(descriptor: int, mode: int, count: int) -> None:
        try:
            flock(descriptor, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            raise PermissionError(errno.EACCES, "Permission denied") from None

    module.LK_NBLCK, module.locking = 2, locking
    return module


def _write_as_windows() -> None:
    """Line ends and the encoding of text that names neither, and what renaming means there."""
    opened, rename, replace = io.open, os.rename, os.replace

    def windows_open(
        file: Any, mode: str = "r", buffering: int = -1, encoding: str | None = None, errors: str | None = None,
        newline: str | None = None, closefd: bool = True, opener: Callable[..., int] | None = None,
    ) -> Any:  # fmt: skip
        if "b" not in mode:
            encoding = "cp1252" if encoding is None or encoding == "locale" else encoding
            newline = "\r\n" if newline is None and set(mode) & set("wax") else newline
        return opened(file, mode, buffering, encoding, errors, newline, closefd, opener)

    def windows_rename(source: Any, to: Any, **dir_fds: Any) -> None:
        if os.path.lexists(to):
            raise FileExistsError(errno.EEXIST, "Cannot create a file when that file already exists", str(to))
        rename(source, to, **dir_fds)

    def windows_replace(source: Any, to: Any, **dir_fds: Any) -> None:
        if Path(to).is_dir():
            raise PermissionError(errno.EACCES, "Access is denied", str(to))
        replace(source, to, **dir_fds)

    builtins.open = io.open = windows_open
    os.rename, os.replace = windows_rename, windows_replace


def _refuse(system: str, event: str, given: tuple[Any, ...]) -> None:
    """Raise what the system would raise where a file is opened, made, renamed or removed."""
    if getattr(_own_look, "inside", False):
        return
    _own_look.inside = True
    try:
        if event == "open":
            path, _, flags = given
            if isinstance(path, (str, bytes, os.PathLike)):
                _opened(system, os.fsdecode(path), flags)
        elif event in ("os.mkdir", "os.link", "os.symlink", "os.rename"):
            if event == "os.rename":
                _in_use(system, _whole(given[0], given[2]))
                if (onto := _whole(given[1], given[3])) and os.path.lexists(onto):
                    _in_use(system, onto)
            made = _whole(given[0], given[2]) if event == "os.mkdir" else _whole(given[1], -1)
            _made(system, made, folder=event == "os.mkdir")
        elif event == "os.remove":
            _in_use(system, _whole(given[0], given[1]))
    finally:
        _own_look.inside = False


def _opened(system: str, path: str, flags: int) -> None:
    if path.startswith(("/proc/", "/sys/")):
        raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
    if flags & os.O_CREAT and not os.path.lexists(path):
        _made(system, _whole(path, -1), folder=False)


def _whole(path: Any, folder: int) -> str:
    """An absolute path, of one that may be relative to an open folder."""
    inside = isinstance(folder, int) and folder >= 0
    base = Path(f"/proc/self/fd/{folder}").readlink() if inside else Path.cwd()
    return os.path.normpath(base / os.fsdecode(path))


def _made(system: str, path: str, folder: bool) -> None:
    parent, name = os.path.split(path)
    if parent in ("/dev", "/dev/fd", "/dev/pts", "/dev/shm"):
        return
    if Path(parent).is_dir() and not os.path.lexists(path):
        twins = [other.name for other in Path(parent).iterdir() if other.name.casefold() == name.casefold()]
        if twins:
            raise AssertionError(f"{path} and {twins[0]} are one file where case does not count")
    if system != "windows":
        return
    if FORBIDDEN.search(name) or RESERVED.fullmatch(name):
        raise OSError(errno.EINVAL, "The filename, directory name, or volume label syntax is incorrect", path)
    if len(path) > (LONGEST - 12 if folder else LONGEST):
        raise FileNotFoundError(errno.ENOENT, "The system cannot find the path specified", path)


def _in_use(system: str, path: str) -> None:
    if system == "windows" and any(one == path or one.startswith(path + "/") for one in _open_files()):
        raise PermissionError(
            errno.EACCES,
            "The process cannot access the file because it is being used by another process",
            path,
        )


def _open_files() -> set[str]:
    """The files that this process has open or mapped."""
    lines = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    names = {line.split(maxsplit=5)[-1] for line in lines if "/" in line}
    for link in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # one that was closed meanwhile
            if link.is_file():
                names.add(str(link.readlink()))
    return names


if __name__ == "__main__":
    main()
