"""Import collections outside the catalogue by reference, such as hf:mteb/nfcorpus."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weir.datasets.names import SOURCES, is_reference, other_source
from weir.errors import FormatError, PluginError, UnknownName
from weir.files.layouts import (
    ABOUT,
    CollectionLayout,
    collections_below,
    find_layout,
    several_collections,
)
from weir.files.paths import path_of, subset_of
from weir.files.text_files import Watch


@dataclass(frozen=True)
class Materialized:
    """An imported collection, stored in Weir's layout."""

    layout: CollectionLayout
    name: str
    """Name in tables."""
    source: str
    """Reference to this exact content, by commit instead of branch."""


def source(kind: str, name: object) -> Callable[..., Any]:
    """Return the function that imports collections from a source such as "hf"; raises PluginError, naming `name`,
    without one.
    """
    try:
        return SOURCES.get(kind)
    except UnknownName:
        reader = "weir-ir's own plug-in 'importing' does"
        raise PluginError(f"{name}: no installed plug-in reads such a collection; {reader}") from None


def materialize(
    name: str | Path, watch: Watch, again: bool = False, fetch: bool = True
) -> Materialized | None:
    """Return a collection by reference or path, imported if needed; None for a folder in Weir's layout, a zip, and a
    missing path.

    name: hf:..., irds:..., or the path of a file, a description, or a folder laid out as on the Hugging Face hub.
    again: look up again which commit a branch names.
    fetch: False for no network access and no writing.

    Raises FormatError for several collections in a folder, DownloadError if a download is needed but not allowed,
    PluginError without a plug-in for it, and the WeirErrors of importing it.
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
    kind = other_source(str(name)) or "reference"
    collection: Materialized | None = source(kind, name)(name, watch, again, fetch)
    return collection
