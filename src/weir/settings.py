"""Read settings from environment variables, which no other module reads."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from weir.errors import BadValue

KEY_VARIABLE = "WEIR_KEY_[A-Z0-9_]+"
"""Pattern of environment variables that an experiment may name as the key of a service."""


@dataclass(frozen=True)
class Settings:
    """Settings of the process, from WEIR_ environment variables."""

    home: Path
    """Folder of downloaded collections and their stores (WEIR_HOME, else ~/.cache/weir)."""
    threads: int
    """Worker threads of search and indexing (WEIR_THREADS, else the cores this process may use)."""
    mirror: str | None
    """Address of a copy with the published layout, tried first (WEIR_MIRROR)."""
    api_budget: str | None = None
    """Most requests, tokens or dollars of APIs in one run, such as "5 dollars, 1000 requests" (WEIR_API_BUDGET)."""
    api_price: str | None = None
    """Dollars for a million tokens, such as "0.15 in, 0.6 out" (WEIR_API_PRICE)."""
    api_rate: str | None = None
    """Most requests or tokens a minute, such as "60 requests" (WEIR_API_RATE)."""
    llm: str | None = None
    """Default language model (WEIR_LLM)."""
    device: str = "auto"
    """auto, cpu, cuda, cuda:1, or several with commas, among which documents are divided (WEIR_DEVICE). auto
    takes a GPU if there is one."""
    lease: float = 60.0
    """Seconds without renewal after which another machine may take over a stage from this process (WEIR_LEASE)."""


@cache
def settings() -> Settings:
    """Return the process's settings, read from the environment once; raises BadValue for an invalid
    WEIR_THREADS or WEIR_LEASE."""
    home = os.environ.get("WEIR_HOME")
    threads, lease = _whole_number("WEIR_THREADS"), _whole_number("WEIR_LEASE")
    return Settings(
        home=Path(home) if home else Path.home() / ".cache" / "weir",
        threads=threads or available_cores(),
        mirror=os.environ.get("WEIR_MIRROR") or None,
        api_budget=os.environ.get("WEIR_API_BUDGET") or None,
        api_price=os.environ.get("WEIR_API_PRICE") or None,
        api_rate=os.environ.get("WEIR_API_RATE") or None,
        llm=os.environ.get("WEIR_LLM") or None,
        device=os.environ.get("WEIR_DEVICE") or "auto",
        lease=float(lease or 60),
    )


def _whole_number(variable: str) -> int | None:
    given = os.environ.get(variable)
    if given is not None and not (given.isdecimal() and len(given) < 10 and int(given) > 0):
        raise BadValue(f"{variable} is '{given[:40]}'; expected a whole number from 1 to 999999999")
    return None if given is None else int(given)


@contextmanager
def in_environment(variable: str, value: str) -> Iterator[None]:
    """Set an environment variable during the block, also for child processes."""
    before = os.environ.get(variable)
    os.environ[variable] = value
    settings.cache_clear()
    try:
        yield
    finally:
        if before is None:
            del os.environ[variable]
        else:
            os.environ[variable] = before
        settings.cache_clear()


def secret(variable: str) -> str | None:
    """Return the API key in an environment variable, stripped; None if unset or blank. Never store it."""
    return os.environ.get(variable, "").strip() or None


SECRETS = re.compile(r"KEY|SECRET|TOKEN|PASSWORD|CONNECTION_STRING")
"""Parts of the names of environment variables whose values are masked in messages."""
SECRET_CHARACTERS = 8
"""Least length of a masked value, since shorter ones may be words."""


def secret_values() -> list[str]:
    """Return values of environment variables named like secrets (KEY, TOKEN, ...), to mask them in messages,
    longest first; none below 8 characters."""
    values = {v.strip() for name, v in os.environ.items() if SECRETS.search(name.upper())}
    return sorted((value for value in values if len(value) >= SECRET_CHARACTERS), key=len, reverse=True)


# Bounds of input; anything beyond is refused with the bound in the message. docs/security.md lists them.

IDENTIFIER_BYTES = 4096
"""Longest identifier; identifiers that are addresses stay below 2,100 bytes."""
LINE_BYTES = 1 << 20
"""Longest line of rankings and judgments."""
RECORD_BYTES = 1 << 26
"""Longest line of documents or queries, and largest JSON record."""
PICKLE_BYTES = 1 << 26
"""Largest unpacked pickle, some fifteen times the largest of BIRCO."""
TOML_BYTES = 1 << 24
"""Largest TOML file."""
IMPORT_BYTES = 1 << 30
"""Largest file of another tool that is held whole."""
HARMLESS_BYTES = 1 << 27
"""Unpacked size that any file may have."""
UNPACKED_TIMES = 200
"""Largest ratio of unpacked to packed size; rankings reach 10, judgments 20. WEIR_MAX_UNPACKED raises it."""
ARCHIVE_MEMBERS = 10_000
"""Files in a zip."""
NUMBER_DIGITS = 100
"""Digits of a whole number in a server's answer; four times as many exceed a float."""
DESCRIPTION_BYTES, DESCRIPTION_SECONDS = 64 << 20, 300.0
"""Maximal size and time of the Hugging Face hub's description of a data set."""


def unpacked_times() -> int:
    """Return the largest permitted ratio of unpacked to packed size: WEIR_MAX_UNPACKED, else 200; raises
    BadValue for an invalid value."""
    return _whole_number("WEIR_MAX_UNPACKED") or UNPACKED_TIMES


def hub_cache() -> Path:
    """Return the Hugging Face hub's cache folder: HF_HUB_CACHE, else "hub" in HF_HOME or ~/.cache/huggingface."""
    folder = os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE")
    if folder:
        return Path(folder).expanduser()
    caches = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(os.environ.get("HF_HOME") or f"{caches}/huggingface").expanduser() / "hub"


def hub_endpoint() -> str:
    """Return the address of the Hugging Face hub or its mirror (HF_ENDPOINT), without final slash."""
    return (os.environ.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/")


def hub_offline() -> bool:
    """Return True if HF_HUB_OFFLINE forbids requests to the Hugging Face hub."""
    return os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE")


def gpus_hidden() -> bool:
    """Return True if CUDA_VISIBLE_DEVICES hides every GPU from this process."""
    devices = os.environ.get("CUDA_VISIBLE_DEVICES")
    return devices is not None and devices.split(",")[0].strip() in ("", "-1")


def available_cores() -> int:
    """Return the number of cores this process may run on, ignoring container quotas."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


NO_MEMORY = re.compile(r"out of memory|(?:can.t|cannot|could not|failed to) alloc|bad_alloc", re.IGNORECASE)
"""Messages of torch, OpenVINO and C++ for lack of memory."""
ASSUMED_MEMORY_BYTES = 8 << 30
"""Memory of a machine that does not report it."""
LEAST_MEMORY_BYTES = 1 << 20
SIZE = re.compile(r"([0-9]{1,20}(?:\.[0-9]+)?) ?([KMGT]?)(?:i?B)?", re.IGNORECASE)
CGROUP_LIMITS = {2: ("", "memory.max"), 1: ("memory", "memory.limit_in_bytes")}
"""By version: folder below /sys/fs/cgroup, and the file with a group's limit."""


@dataclass(frozen=True)
class MemoryBudget:
    """The bytes of memory that a process may use, and the limit's source, such as "WEIR_MAX_RAM"."""

    bytes: int
    source: str


def memory_budget() -> MemoryBudget:
    """Return the process's memory limit: WEIR_MAX_RAM, else `half_of_memory`; raises BadValue for an invalid
    value."""
    given = os.environ.get("WEIR_MAX_RAM")
    if given:
        return MemoryBudget(size_of(given), "WEIR_MAX_RAM")
    return half_of_memory(Path("/"))


def size_of(text: str) -> int:
    """Return the bytes in a size such as 4G, 512M or 1500000 (K = 1,024); raises BadValue for an invalid
    size, or less than 1 MiB."""
    match = SIZE.fullmatch(text.strip())
    size = 0
    if match is not None:
        size = int(float(match[1]) * 1024 ** " KMGT".index(match[2].upper() or " "))
    if size < LEAST_MEMORY_BYTES:
        raise BadValue(f"'{text[:40]}' is no size of memory; expected such as 4G or 512M")
    return size


def require_memory(count: int, what: str, remedy: str = "") -> None:
    """Raise BadValue if `count` bytes for the work `what` exceed the memory limit; less than 1 MiB always passes.

    remedy: how to need less, a clause.
    """
    if count < LEAST_MEMORY_BYTES:
        return
    budget = memory_budget()
    if count > budget.bytes:
        raise BadValue(
            f"{what} needs about {count / 1e9:.1f} GB of memory; {budget.bytes / 1e9:.1f} GB may be taken "
            f"({budget.source}); {remedy + '; ' if remedy else ''}WEIR_MAX_RAM raises that"
        )


def require_addresses(count: int, what: str, remedy: str = "") -> None:
    """Raise BadValue if `ulimit -v` leaves fewer than `count` bytes of address space for the work `what`;
    pass if it cannot be read.

    remedy: how to need less, a clause.
    """
    # C libraries without addresses end the process or search forever.
    with suppress(ImportError, OSError):  # not on Windows, no /proc
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        left = limit - pages * resource.getpagesize()
        if limit != resource.RLIM_INFINITY and left < count:
            raise BadValue(
                f"{what} needs about {count / 1e9:.1f} GB of addresses; ulimit -v leaves {max(0, left) / 1e9:.1f} GB; "
                f"{remedy + ', or ' if remedy else ''}raise it"
            )


def half_of_memory(root: Path) -> MemoryBudget:
    """Return half of the smallest of machine memory, cgroup limits and `ulimit -v`.

    root: parent folder of /proc and /sys.
    """
    limits = [(_machine_memory(root), "the machine's memory"), *_cgroup_limits(root)]
    with suppress(ImportError):  # not on Windows
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit != resource.RLIM_INFINITY:
            limits.append((limit, "ulimit -v"))
    least, source = min(limits)
    return MemoryBudget(least // 2, f"half of {source}")


def _machine_memory(root: Path) -> int:
    with suppress(OSError, ValueError, StopIteration):
        lines = (root / "proc/meminfo").read_text(encoding="ascii").splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("MemTotal:"))
    with suppress(AttributeError, ValueError, OSError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return ASSUMED_MEMORY_BYTES


def _cgroup_limits(root: Path) -> Iterator[tuple[int, str]]:
    try:
        groups = (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    for line in groups:
        number, controllers, path = (*line.split(":", 2), "", "")[:3]
        if number != "0" and "memory" not in controllers.split(","):
            continue
        folder, file = CGROUP_LIMITS[2 if number == "0" else 1]
        top = root / "sys/fs/cgroup" / folder
        inner = top / path.lstrip("/")
        for group in (inner, *inner.parents):
            if not group.is_relative_to(top):
                break
            with suppress(OSError, ValueError):  # "max" is none
                yield int((group / file).read_text(encoding="ascii")), "the cgroup's memory"
