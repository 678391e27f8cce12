"""What the environment says, read once, in one place."""

from __future__ import annotations

import os
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
    """

    home: Path
    threads: int
    mirror: str | None
    api_budget: str | None = None
    api_price: str | None = None
    api_rate: str | None = None
    llm: str | None = None
    device: str = "auto"


@cache
def settings() -> Settings:
    """The settings of this process; raises BadValue for a WEIR_THREADS that is no whole number from 1."""
    home = os.environ.get("WEIR_HOME")
    threads = os.environ.get("WEIR_THREADS")
    if threads is not None and not (threads.isdecimal() and int(threads) > 0):
        raise BadValue(f"WEIR_THREADS is '{threads}'; expected a whole number from 1")
    return Settings(
        home=Path(home) if home else Path.home() / ".cache" / "weir",
        threads=int(threads) if threads else available_cores(),
        mirror=os.environ.get("WEIR_MIRROR") or None,
        api_budget=os.environ.get("WEIR_API_BUDGET") or None,
        api_price=os.environ.get("WEIR_API_PRICE") or None,
        api_rate=os.environ.get("WEIR_API_RATE") or None,
        llm=os.environ.get("WEIR_LLM") or None,
        device=os.environ.get("WEIR_DEVICE") or "auto",
    )


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


def memory_budget() -> int:
    """Bytes of memory that this process may take."""
    given = os.environ.get("WEIR_MAX_RAM")
    if given:
        return int(given)
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
