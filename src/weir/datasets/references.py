"""References to collections outside the catalogue and Weir's layout, which plug-ins import."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weir.errors import FormatError, PluginError, UnknownName
from weir.files.layouts import (
    ABOUT,
    CollectionLayout,
    collections_below,
    find_layout,
    several_collections,
    subset_of,
)
from weir.files.paths import path_of
from weir.files.text_files import Watch
from weir.registry import Registry

SCHEMES = ("hf:", "irds:")
INNER = ("birco", "reference")
"""Sources that no name begins with."""
SOURCES: Registry[Callable[..., Any]] = Registry("source")
"""Functions that import collections of other layouts, by entry points of the group `weir.sources`. reference:
called as `materialize`, for paths not in Weir's layout. birco: called with (pickle, folder), writes a
collection. Others: called as `materialize` for names that begin with their own and a colon.
"""


@dataclass(frozen=True)
class Materialized:
    """A collection that is now in Weir's layout."""

    layout: CollectionLayout
    name: str
    """Name in tables."""
    source: str
    """Reference to this exact content: a commit instead of a branch."""
    note: str = ""
    """A line to print when it is first imported; "" for none."""


def is_reference(name: str) -> bool:
    """Return True if the name begins with a source."""
    return name.startswith(SCHEMES) or _other_source(name) is not None


def _other_source(name: str) -> str | None:
    head, colon, _ = name.partition(":")
    other = colon and len(head) > 1 and f"{head}:" not in SCHEMES and head not in INNER
    return head if other and not set("/\\@#") & set(head) and head in SOURCES else None


def named_split(name: str) -> tuple[str, str | None]:
    """Return (name, split) for scifact:dev, mine/:dev or hf:mteb/nfcorpus:dev; split None if there is none."""
    # The colon of a reference's scheme, of a drive or of an existing path separates no split.
    collection, _, split = name.rpartition(":")
    is_kind = f"{collection}:" in SCHEMES or len(collection) < 2 or _other_source(name) == collection
    if is_kind or not split or set("/\\@#") & set(split) or Path(name).exists():
        return name, None
    return collection, split


def source(kind: str, name: object) -> Callable[..., Any]:
    """Return the function that imports collections of a kind; raises PluginError, naming `name`, if no
    plug-in has it.
    """
    try:
        return SOURCES.get(kind)
    except UnknownName:
        reader = "weir-ir's own plug-in 'importing' does"
        raise PluginError(f"{name}: no installed plug-in reads such a collection; {reader}") from None


def materialize(
    name: str | Path, watch: Watch, again: bool = False, fetch: bool = True
) -> Materialized | None:
    """Return the collection that a name refers to, imported if needed; None for Weir's own layout.

    name: hf:..., irds:..., or the path of a file, a description or a folder as on the hub.
    again: look up again which commit a branch names.
    fetch: False: no network access and no writing.

    Raises FormatError if nothing is there, DownloadError if it may not be fetched, PluginError without a
    plug-in for it, and the WeirErrors of importing it.
    """
    if not is_reference(str(name)):
        path, subset = subset_of(path_of(name))
        with suppress(FormatError):
            if subset and (path.is_file() or (path / subset).is_dir()):
                layout, place = find_layout(path, subset), path.resolve()
                called = f"{place.name if place.is_dir() else place.stem}-{subset}"
                return Materialized(layout, layout.name or called, f"{place}#{subset}")
        if path.is_dir() and not subset:
            with suppress(FormatError):
                if (path / ABOUT).exists() or find_layout(path):
                    return None
            if len(several := collections_below(path)) > 1:
                raise several_collections(path, several)
        elif path.suffix == ".zip" if path.is_file() else not subset:
            return None
    kind = _other_source(str(name)) or "reference"
    collection: Materialized | None = source(kind, name)(name, watch, again, fetch)
    return collection
