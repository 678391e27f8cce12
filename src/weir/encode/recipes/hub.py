"""Where a checkpoint lies: a folder, an installed package, or the cache of the Hugging Face hub.

What is here is found without the hub's library and without the network; `fetch` downloads what is not.
"""

from __future__ import annotations

import json
import re
from importlib.util import find_spec
from pathlib import Path

from weir.encode.recipes.cards import ModelCard, known
from weir.errors import DownloadError, StoreError, require
from weir.settings import hub_cache

__all__ = ["fetch", "locate"]

WANTED = ("*.json", "*.jinja", "*.txt", "artifact.metadata", "*.model", "*.safetensors")
BINARY = ("pytorch_model*.bin", "*/pytorch_model*.bin")
"""Weights in the older format, downloaded only where there are no others."""
NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")


def locate(model: str) -> Path:
    """The folder of a checkpoint that is on this machine.

    model: a short name of `weir models`, a name on the hub, or a folder. Raises DownloadError for one of the hub that
    is not here, StoreError for a folder without a checkpoint.
    """
    folder = Path(model).expanduser()
    if _begins_one(folder):
        return folder
    if folder.is_absolute() or folder.is_dir() or model.startswith((".", "~")):
        raise StoreError(f"{folder}: no checkpoint there; expected a folder with config.json or modules.json")
    card = known(model)
    if card is not None and card.packaged:
        return _of_package(card)
    found = _snapshot(card.hub if card is not None else model)
    if found is None:
        raise DownloadError(
            f"the checkpoint '{model}' is not here; `weir models {model}` downloads it, or give a folder that holds one"
        )
    return found


def fetch(model: str) -> None:
    """Download a checkpoint of the hub that is not here; nothing is asked of the network for one that is.

    Raises DownloadError where it cannot be downloaded, MissingExtra without the hub's library, StoreError for a folder
    without a checkpoint.
    """
    try:
        locate(model)
    except DownloadError:
        card = known(model)
        _download(card.hub if card is not None else model)


def _begins_one(folder: Path) -> bool:
    return any((folder / name).is_file() for name in ("config.json", "modules.json"))


def _of_package(card: ModelCard) -> Path:
    spec = find_spec(card.package)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / card.package_folder


def _snapshot(hub: str) -> Path | None:
    """The whole checkpoint that the hub's cache holds under its main revision; None where it has none."""
    if not NAME.fullmatch(hub):
        return None
    place = hub_cache() / f"models--{hub.replace('/', '--')}"
    try:
        revision = (place / "refs" / "main").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return None
    folder = place / "snapshots" / Path(revision).name
    return folder if _begins_one(folder) and _has_weights(folder) else None


def _has_weights(folder: Path) -> bool:
    """Whether weights are there, and every part of those that an index names: a download may have broken off."""
    kind = "*.safetensors" if next(folder.rglob("*.safetensors"), None) else "pytorch_model*.bin"
    if next(folder.rglob(kind), None) is None:
        return False
    for index in folder.rglob(f"{kind}.index.json"):
        try:
            parts = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return False
        if not all((index.parent / str(part)).is_file() for part in parts):
            return False
    return True


def _download(hub: str) -> None:
    library = require("huggingface_hub", extra="neural")
    try:
        folder = Path(library.snapshot_download(hub, allow_patterns=list(WANTED)))
        routed = (folder / "router_config.json").exists()  # its query route has weights of its own
        if not any(folder.glob("*.safetensors")) and (routed or not any(folder.glob("*/*.safetensors"))):
            library.snapshot_download(hub, allow_patterns=[*WANTED, *BINARY])
    except Exception as error:  # noqa: BLE001 - the library and its transports raise errors of many families
        reason = " ".join(str(error).split())[:200]
        raise DownloadError(
            f"the checkpoint '{hub}' is not here and could not be downloaded ({type(error).__name__}: {reason}); "
            "see `weir models`, or give a folder that holds one"
        ) from None
    if _snapshot(hub) is None:
        raise DownloadError(f"'{hub}' on the hub holds no checkpoint with weights that Weir can read")
