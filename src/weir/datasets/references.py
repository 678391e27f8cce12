"""Names of collections that are neither in the catalogue nor folders of Weir's layout; a plug-in brings them here."""

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
SOURCES: Registry[Callable[..., Any]] = Registry("source")
"""What brings collections of other shapes, by the entry points of the group `weir.sources`.

reference: called as `materialize`, for what is not in Weir's layout; birco: (pickle, folder) writes a collection.
"""


@dataclass(frozen=True)
class Materialized:
    """A collection that lies in Weir's layout now.

    name: what tables call it; source: names this very content, wherever it is read again: a commit instead of a branch;
    note: what is worth a line when it is first brought, or "".
    """

    layout: CollectionLayout
    name: str
    source: str
    note: str = ""


def is_reference(name: str) -> bool:
    """Whether a name says by its beginning where a collection comes from."""
    return name.startswith(SCHEMES)


def named_split(name: str) -> tuple[str, str | None]:
    """A name without the split behind its last colon, and that split: scifact:dev, mine/:dev, hf:mteb/nfcorpus:dev.

    None where there is none, as the colon belongs to the kind of a reference, to a drive, or to a path that is there.
    """
    collection, _, split = name.rpartition(":")
    is_kind = f"{collection}:" in SCHEMES or len(collection) < 2
    if is_kind or not split or set("/\\@#") & set(split) or Path(name).exists():
        return name, None
    return collection, split


def source(kind: str, name: object) -> Callable[..., Any]:
    """What brings collections of a kind; raises PluginError, naming what was to be read, where no plug-in does."""
    try:
        return SOURCES.get(kind)
    except UnknownName:
        reader = "weir-ir's own plug-in 'importing' does"
        raise PluginError(f"{name}: no installed plug-in reads such a collection; {reader}") from None


def materialize(
    name: str | Path, watch: Watch, again: bool = False, fetch: bool = True
) -> Materialized | None:
    """The collection that a name refers to, brought here where it is not yet; None for a collection in Weir's layout.

    name: hf:..., irds:..., or the path of a file, a description or a folder as on the hub; again: look up anew what a
    branch of the hub stands for; fetch: whether it may be brought, else nothing is asked of the network and nothing is
    written. Raises the WeirErrors of bringing it, FormatError where nothing is there, DownloadError where it would have
    to be brought and may not, PluginError where no plug-in reads it.
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
    collection: Materialized | None = source("reference", name)(name, watch, again, fetch)
    return collection
