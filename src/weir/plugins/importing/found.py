"""What readers find in a file, item by item: queries, documents, judgments, rankings, and what they refuse."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from weir.plugins.importing.click_models import ClickShare

__all__ = [
    "ByWords",
    "Document",
    "FileRemark",
    "FoundQuery",
    "Item",
    "ItemKey",
    "Judgment",
    "Ranking",
    "Refused",
    "Used",
    "number",
    "plain",
]


@dataclass(frozen=True)
class ItemKey:
    """How a file names a query or a document: by identifier, by text, or by both; never by neither."""

    id: str = ""
    text: str = ""


@dataclass(frozen=True)
class FoundQuery:
    """A query; metadata: its other fields; unanswerable: the file says that nothing answers it."""

    key: ItemKey
    where: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    unanswerable: bool = False


@dataclass(frozen=True)
class Document:
    """A document; the key's text is its text."""

    key: ItemKey
    where: str
    title: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Judgment:
    """A grade of one document for one query, as the file writes it.

    split: the qrels file it belongs to; origin: where it comes from, "" where the file does not say; clicks: what the
    grade was made of, where a model of clicks made it.
    """

    query: ItemKey
    doc: ItemKey
    grade: object
    where: str
    split: str = "test"
    origin: str = ""
    clicks: ClickShare | None = None


@dataclass(frozen=True)
class ByWords:
    """A judgment of every document whose field holds the words.

    how: "all" or "any" of them where the format says so, else "": asked. within: "text", "title" or "id" of a document.
    field: what the file calls them. tokens: whether they are matched as whole tokens of the text alone, as DPR does, or
    as characters.
    """

    query: ItemKey
    words: tuple[str, ...]
    field: str
    where: str
    how: str = ""
    within: str = "text"
    grade: object = 1
    tokens: bool = False


@dataclass(frozen=True)
class Ranking:
    """What a system returned for one query.

    scores: one for each document, or () where the file has none; ordered: the order of docs is the ranking, whatever
    the scores say; else the scores are.
    """

    query: ItemKey
    docs: tuple[ItemKey, ...]
    where: str
    scores: tuple[float, ...] = ()
    run: str = ""
    ordered: bool = True


@dataclass(frozen=True)
class Refused:
    """A row that was left out, and why."""

    where: str
    reason: str


@dataclass(frozen=True)
class FileRemark:
    """A sentence about the whole file, for the report."""

    text: str


@dataclass(frozen=True)
class Used:
    """Which field of the file was taken for what."""

    role: str
    field: str


Item: TypeAlias = FoundQuery | Document | Judgment | ByWords | Ranking | Refused | FileRemark | Used


def plain(value: object) -> str:
    """A scalar as an identifier or a text: 7.0 and 7 are "7", nothing and NaN are ""."""
    if value is None or isinstance(value, (dict, list)):
        return ""
    if isinstance(value, float):
        return "" if math.isnan(value) else str(int(value)) if value.is_integer() else repr(value)
    return str(value).strip()


def number(value: object) -> float | None:
    """A number, also one written as text; None for everything else, NaN and infinity included."""
    if not isinstance(value, (bool, int, float, str)):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None
