"""Data sets of the Hugging Face hub: what a revision holds, and where its files are; without the hub's own library."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from weir.errors import DownloadError
from weir.io.net.download import Address, Patience, download
from weir.settings import hub_endpoint, hub_offline, secret

__all__ = ["HubFile", "HubRevision", "hub_address", "hub_revision"]

_API = Patience(timeout=20.0, window=20.0, attempts=3)
_TOKEN = "HF_TOKEN"
_COMMIT = re.compile(r"[0-9a-f]{40}")
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class HubFile:
    """A file of a revision: its path there, its length in bytes, and its checksum, "sha256:..." or "git:..."."""

    path: str
    bytes: int
    checksum: str


@dataclass(frozen=True)
class HubRevision:
    """What a name such as main stood for: the commit and its files.

    configs: the configurations that the data set's card declares, as it writes them.
    """

    repository: str
    commit: str
    files: tuple[HubFile, ...]
    configs: tuple[Mapping[str, Any], ...] = ()


def hub_revision(repository: str, revision: str = "main") -> HubRevision:
    """Ask the hub which commit a branch, tag or commit is, and what it holds.

    Raises DownloadError in one line: offline, no such data set or revision, no access, an answer that is none.
    """
    shown = f"hf:{repository}" + (f"@{revision}" if revision != "main" else "")
    if hub_offline():
        raise DownloadError(f"{shown} is not on this machine, and HF_HUB_OFFLINE forbids to ask the hub")
    place = (
        f"{hub_endpoint()}/api/datasets/{quote(repository)}/revision/{quote(revision, safe='')}?blobs=true"
    )
    address = _authorised(place)
    with tempfile.TemporaryDirectory(prefix="weir-") as folder:
        answer = Path(folder) / "revision.json"
        try:
            download([address], answer, patience=_API)
            told = json.loads(address.masked(answer.read_text(encoding="utf-8")))
        except DownloadError as error:
            raise DownloadError(f"{shown}: {_reason(str(error))}") from None
        except (ValueError, RecursionError):
            raise DownloadError(
                f"{shown}: {hub_endpoint()} answered with something that is no JSON"
            ) from None
    return _revision(repository, shown, told)


def hub_address(repository: str, commit: str, path: str) -> Address:
    """Where a file of a commit is downloaded from."""
    return _authorised(f"{hub_endpoint()}/datasets/{quote(repository)}/resolve/{commit}/{quote(path)}")


def _authorised(url: str) -> Address:
    return Address(url, secret(_TOKEN) or "")


def _reason(said: str) -> str:
    """What an answer of the hub means for who asked."""
    for status, meaning in (
        ("401", f"the hub knows no such public data set or revision; a private or gated one takes {_TOKEN}"),
        ("403", f"the hub gives no access; accept its terms there, and set {_TOKEN}"),
        ("404", "the hub knows no such data set or revision"),
    ):
        if f": {status} " in said:
            return meaning
    return f"the hub cannot be asked ({said.partition('; ')[2] or said})"


def _revision(repository: str, shown: str, told: Any) -> HubRevision:  # noqa: ANN401  JSON holds anything
    try:
        commit, listed = told["sha"], [_file(one) for one in told["siblings"]]
        card = told.get("cardData") or {}
        configs = tuple(one for one in card.get("configs") or () if isinstance(one, dict))
        if not _COMMIT.fullmatch(commit):
            raise ValueError(commit)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise DownloadError(f"{shown}: {hub_endpoint()} answered with no description of a data set") from None
    return HubRevision(repository, commit, tuple(one for one in listed if one is not None), configs)


def _file(told: Mapping[str, Any]) -> HubFile | None:
    """A file of the description; None for one whose name would lead outside."""
    path, large = str(told["rfilename"]), told.get("lfs")
    if path.startswith("/") or "\\" in path or ".." in path.split("/"):
        return None
    if large:
        digest = str(large["sha256"])
        if not _SHA256.fullmatch(digest):
            raise ValueError(digest)
        return HubFile(path, int(large["size"]), f"sha256:{digest}")
    return HubFile(path, int(told["size"]), f"git:{told['blobId']}")
