"""Interpret names of collections: catalogue names, paths, references such as hf:mteb/nfcorpus, and splits."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from weir.datasets import catalogue
from weir.errors import UnknownName, nearest_names
from weir.files.paths import path_of, subset_of
from weir.registry import Registry

SCHEMES = ("hf:", "irds:")
INNER = ("birco", "reference")
"""Registered sources with which no name may begin."""
SOURCES: Registry[Callable[..., Any]] = Registry("source")
"""Functions that import collections of other layouts, called as `materialize` (birco: with (pickle,
folder))."""


def is_reference(name: str) -> bool:
    """Return True if the name begins with a source of collections, such as hf:."""
    return name.startswith(SCHEMES) or other_source(name) is not None


def other_source(name: str) -> str | None:
    """Return a name's source before the colon, such as "zenodo", if a plug-in adds it, else None."""
    head, colon, _ = name.partition(":")
    other = colon and len(head) > 1 and f"{head}:" not in SCHEMES and head not in INNER
    return head if other and not set("/\\@#") & set(head) and head in SOURCES else None


def named_split(name: str) -> tuple[str, str | None]:
    """Return (name, split) for a name such as scifact:dev or hf:mteb/nfcorpus:dev; (name, None) without a split, and
    for an existing path.
    """
    # The colon of a reference's scheme, of a drive or of an existing path separates no split.
    collection, _, split = name.rpartition(":")
    drive = len(collection) < 2 and not Path(collection or ":").is_dir()
    is_kind = f"{collection}:" in SCHEMES or drive or other_source(name) == collection
    if is_kind or not split or set("/\\@#") & set(split) or Path(name).exists():
        return name, None
    return collection, split


def catalogue_name(name: str | Path) -> str:
    """Return a collection's name as in the catalogue; "" for paths and unknown names.

    If a path has the same name, only the exact catalogue name counts, not a form such as birco/relic.
    """
    if not isinstance(name, str):
        return ""
    official = catalogue.catalogued(name)
    return official if official == name or not path_of(name or ".").exists() else ""


def refuse_misspelt(name: str) -> None:
    """Raise UnknownName for a name that is similar to a name in the catalogue."""
    known = [*catalogue.collection_names(), *catalogue.groups()]
    if nearest_names(name.partition(":")[0], known):
        raise UnknownName("file, folder or collection", name, known)


def names_collection(given: str | os.PathLike[str]) -> bool:
    """Return True if a value names a collection, folder, zip or TOML file, False for a file of judgments."""
    # Catalogue names, references, folders, zips and TOML files, also with a split or part appended.
    if isinstance(given, str) and (is_reference(given) or catalogue_name(given) or catalogue.is_group(given)):
        return True
    path = path_of(given)
    if path.exists():
        return path.is_dir() or (path.is_file() and path.suffix in (".zip", ".toml"))
    place, subset = subset_of(path)
    if subset:
        return place.is_dir() or place.suffix == ".zip"
    name, split = named_split(given) if isinstance(given, str) else ("", None)
    return split is not None and names_collection(name)
