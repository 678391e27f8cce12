"""What the environment says, read once, in one place."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from weir.errors import BadValue

KEY_VARIABLE = "WEIR_KEY_[A-Z0-9_]+"
"""What an environment variable is called that an experiment may name as the key of a service."""


@dataclass(frozen=True)
class Settings:
    """Where Weir keeps collections, how many threads it takes, where it may download from.

    home: folder of downloaded collections and their stores (WEIR_HOME, else ~/.cache/weir).
    threads: worker threads of search and indexing (WEIR_THREADS, else the cores this process may use).
    mirror: address tried before the published ones, same layout (WEIR_MIRROR, else none).
    api_budget, api_price, api_rate: what APIs may cost in one run, the price in dollars for a million tokens ("0.15 in,
    0.6 out" where a model's answers have another), and how much a minute they are asked (WEIR_API_BUDGET,
    WEIR_API_PRICE, WEIR_API_RATE).
    llm: the language model of whatever asks one and names none (WEIR_LLM, else none).
    device: where neural models run, auto, cpu, cuda, cuda:1 or several with commas, on which documents are encoded
    side by side (WEIR_DEVICE, else auto: a GPU where there is one).
    lease: seconds without a sign of life after which other machines take over what a process was making (WEIR_LEASE,
    else 60).
    """

    home: Path
    threads: int
    mirror: str | None
    api_budget: str | None = None
    api_price: str | None = None
    api_rate: str | None = None
    llm: str | None = None
    device: str = "auto"
    lease: float = 60.0


@cache
def settings() -> Settings:
    """The settings of this process; raises BadValue for a WEIR_THREADS or WEIR_LEASE that is no whole number from 1."""
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
    """What an environment variable holds, None where it is not set; raises BadValue for no whole number from 1."""
    given = os.environ.get(variable)
    if given is not None and not (given.isdecimal() and len(given) < 10 and int(given) > 0):
        raise BadValue(f"{variable} is '{given[:40]}'; expected a whole number from 1 to 999999999")
    return None if given is None else int(given)


def use_device(device: str) -> None:
    """Let neural models of this process, and of those it starts, run on a device: auto, cpu, cuda or cuda:1."""
    os.environ["WEIR_DEVICE"] = device
    settings.cache_clear()


def use_budget(budget: str | None, price: str | None) -> None:
    """Let this process spend so much on services, at such a price; None leaves what is set."""
    for name, value in (("WEIR_API_BUDGET", budget), ("WEIR_API_PRICE", price)):
        if value is not None:
            os.environ[name] = value
    settings.cache_clear()


def secret(variable: str) -> str | None:
    """The key in an environment variable, read anew each time; for whoever sends it, never for what is kept."""
    return os.environ.get(variable, "").strip() or None


SECRETS = re.compile(r"KEY|SECRET|TOKEN|PASSWORD|CONNECTION_STRING")
"""In the names of environment variables whose values appear in no message."""
SECRET_CHARACTERS = 8
"""Length from which a value is masked: a shorter one may be a word."""


def secret_values() -> list[str]:
    """What environment variables hold whose names are those of secrets, the longest first; for masking alone."""
    values = {v.strip() for name, v in os.environ.items() if SECRETS.search(name.upper())}
    return sorted((value for value in values if len(value) >= SECRET_CHARACTERS), key=len, reverse=True)


# Bounds of what is read: whatever is beyond is refused by its number. docs/security.md shows each.

IDENTIFIER_BYTES = 4096
"""The longest identifier that is taken: collections that go by address stay below 2,100 bytes."""
LINE_BYTES = 1 << 20
"""The longest line of rankings and judgments."""
RECORD_BYTES = 1 << 26
"""The longest line of documents or queries, and the largest file of a record, which is JSON that is parsed whole."""
PICKLE_BYTES = 1 << 26
"""The largest pickle, unpacked: some fifteen times the largest of BIRCO's."""
TOML_BYTES = 1 << 24
"""The largest file of settings."""
IMPORT_BYTES = 1 << 30
"""The largest file of another tool that is held as a whole."""
HARMLESS_BYTES = 1 << 27
"""What any file may unpack to."""
UNPACKED_TIMES = 200
"""How many times its size a larger one may unpack to; rankings reach 10, judgments 20. WEIR_MAX_UNPACKED raises it."""
ARCHIVE_MEMBERS = 10_000
"""Files that a zip may hold."""
NUMBER_DIGITS = 100
"""Of a whole number in the answer of a server; four times as many are no float any more."""
DESCRIPTION_BYTES, DESCRIPTION_SECONDS = 64 << 20, 300.0
"""What the hub says of a data set has at most, and takes in all."""


def unpacked_times() -> int:
    """WEIR_MAX_UNPACKED, else UNPACKED_TIMES; raises BadValue for no whole number from 1."""
    return _whole_number("WEIR_MAX_UNPACKED") or UNPACKED_TIMES


def hub_cache() -> Path:
    """Where the Hugging Face hub's library keeps what it downloaded: HF_HUB_CACHE, or below HF_HOME."""
    folder = os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE")
    if folder:
        return Path(folder).expanduser()
    caches = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(os.environ.get("HF_HOME") or f"{caches}/huggingface").expanduser() / "hub"


def hub_endpoint() -> str:
    """Where the Hugging Face hub is: HF_ENDPOINT, for a mirror of it, else its own address."""
    return (os.environ.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/")


def hub_offline() -> bool:
    """Whether HF_HUB_OFFLINE forbids to ask the hub."""
    return os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE")


def gpus_hidden() -> bool:
    """Whether CUDA_VISIBLE_DEVICES takes all GPUs away from this process."""
    devices = os.environ.get("CUDA_VISIBLE_DEVICES")
    return devices is not None and devices.split(",")[0].strip() in ("", "-1")


def available_cores() -> int:
    """Cores this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


NO_MEMORY = re.compile(r"out of memory|(?:can.t|cannot|could not|failed to) alloc|bad_alloc", re.IGNORECASE)
"""How torch, OpenVINO and C++ say in an error of Python that there is no memory."""
ASSUMED_MEMORY_BYTES = 8 << 30
"""Of a machine that does not say how much memory it has."""
LEAST_MEMORY_BYTES = 1 << 20
"""No budget of memory is less."""
SIZE = re.compile(r"([0-9]{1,20}(?:\.[0-9]+)?) ?([KMGT]?)(?:i?B)?", re.IGNORECASE)
CGROUP_LIMITS = {2: ("", "memory.max"), 1: ("memory", "memory.limit_in_bytes")}
"""By version: where its groups stand below /sys/fs/cgroup, and the file with the limit of one."""


@dataclass(frozen=True)
class MemoryBudget:
    """How many bytes of memory a process may take, and what says so."""

    bytes: int
    source: str


def memory_budget() -> MemoryBudget:
    """WEIR_MAX_RAM, else half of the least of the machine's memory, its cgroup's limit and `ulimit -v`.

    Raises BadValue for a WEIR_MAX_RAM that is no size.
    """
    given = os.environ.get("WEIR_MAX_RAM")
    if given:
        return MemoryBudget(size_of(given), "WEIR_MAX_RAM")
    return half_of_memory(Path("/"))


def size_of(text: str) -> int:
    """The bytes that a size names, such as 4G, 512M or 1500000; K, M, G and T are powers of 1,024.

    Raises BadValue for no such size, and for less than a megabyte.
    """
    match = SIZE.fullmatch(text.strip())
    size = 0
    if match is not None:
        size = int(float(match[1]) * 1024 ** " KMGT".index(match[2].upper() or " "))
    if size < LEAST_MEMORY_BYTES:
        raise BadValue(f"'{text[:40]}' is no size of memory; expected such as 4G or 512M")
    return size


def use_memory(size: str) -> None:
    """Let this process, and those it starts, take so much memory; raises BadValue for what is no size."""
    size_of(size)
    os.environ["WEIR_MAX_RAM"] = size


def require_memory(count: int, what: str, remedy: str = "") -> None:
    """Raise BadValue, before it starts, where what needs about so many bytes of memory is more than may be taken.

    remedy: a clause that says how it needs less. Less than LEAST_MEMORY_BYTES is never refused, and costs no look at
    the machine.
    """
    if count < LEAST_MEMORY_BYTES:
        return
    budget = memory_budget()
    if count > budget.bytes:
        raise BadValue(
            f"{what} needs about {count / 1e9:.1f} GB of memory; {budget.bytes / 1e9:.1f} GB may be taken "
            f"({budget.source}); {remedy + '; ' if remedy else ''}WEIR_MAX_RAM raises that "
            "(--max-ram of weir run, plan and audit)"
        )


def require_addresses(count: int, what: str, remedy: str = "") -> None:
    """Raise BadValue where `ulimit -v` leaves fewer bytes of addresses than something needs.

    Libraries of C that lack them end the process, or look for them for ever. remedy: what helps, beside a higher limit.
    """
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
    """Half of what this process could take; root: where /proc and /sys are read."""
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
    """The limits of this process's groups and of those around them."""
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
