"""What a name of a collection refers to that is neither in the catalogue nor a folder of Weir's layout."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from weir.errors import FormatError
from weir.io.collections.layout import ABOUT, find_layout
from weir.io.watch import Watch

if TYPE_CHECKING:
    from weir.references.brought import Brought

__all__ = ["SCHEMES", "brought", "is_reference"]

SCHEMES = ("hf:", "irds:")


def is_reference(name: str) -> bool:
    """Whether a name says by its beginning where a collection comes from."""
    return name.startswith(SCHEMES)


def brought(name: str | Path, watch: Watch, again: bool = False, fetch: bool = True) -> Brought | None:
    """The collection that a name refers to, brought here where it is not yet; None for a collection in Weir's layout.

    name: hf:..., irds:..., or the path of a file, a description or a folder as on the hub; again: look up anew what a
    branch of the hub stands for; fetch: whether it may be brought, else nothing is asked of the network and nothing is
    written. Raises the WeirErrors of bringing it, FormatError where nothing is there, DownloadError where it would have
    to be brought and may not.
    """
    text = str(name)
    if is_reference(text):
        return _of_scheme(text, watch, again, fetch)
    plain, _, subset = text.partition("#")
    path = Path(name)
    if path.is_dir() or (subset and not path.exists() and Path(plain).is_dir()):
        return _of_folder(
            path if path.is_dir() else Path(plain), "" if path.is_dir() else subset, watch, fetch
        )
    return _of_file(path, watch, fetch) if path.is_file() and path.suffix != ".zip" else None


# What brings a collection imports the network, databases and readers of all formats: only where it is needed.


def _of_scheme(text: str, watch: Watch, again: bool, fetch: bool) -> Brought:
    if text.startswith("hf:"):
        from weir.references.from_hub import from_hub, hub_name

        return from_hub(hub_name(text), watch, again, fetch)
    from weir.references.from_irds import from_irds, irds_name

    return from_irds(irds_name(text), watch, fetch)


def _of_folder(path: Path, subset: str, watch: Watch, fetch: bool) -> Brought | None:
    if not subset and _has_parts(path):
        return None
    from weir.references.from_hub import from_folder, is_hub_folder

    return from_folder(path, subset, watch, fetch) if is_hub_folder(path) else None


def _of_file(path: Path, watch: Watch, fetch: bool) -> Brought | None:
    if path.suffix == ".toml":
        from weir.references.described import is_description

        if not is_description(path):
            return None
    from weir.references.from_file import from_description, from_file

    return (from_description if path.suffix == ".toml" else from_file)(path, watch, fetch)


def _has_parts(folder: Path) -> bool:
    if (folder / ABOUT).exists():
        return True
    try:
        find_layout(folder)
    except FormatError:
        return False
    return True
