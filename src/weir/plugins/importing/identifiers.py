"""Identifiers of queries and documents that several files name by identifier, by text, or by both."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from weir.core.ids import IDENTIFIER_BYTES
from weir.errors import BadValue
from weir.plugins.importing.document_shelf import DocumentShelf
from weir.plugins.importing.found import ItemKey

__all__ = ["MadeNames", "made_id"]


class MadeNames:
    """Identifiers of queries or documents; what is known by its text alone gets that of the same text, or a new one.

    keys: what names them, and where; shelf: documents that have identifiers.
    """

    def __init__(
        self, what: str, keys: Iterable[tuple[ItemKey, str]], shelf: DocumentShelf | None = None
    ) -> None:
        self._what, self._shelf = what, shelf
        self._of_text: dict[str, set[str]] = {}
        self._text: dict[str, str] = {}
        self._place: dict[str, str] = {}
        self.made: set[str] = set()
        self.joined: set[str] = set()
        for key, place in keys:
            self._learn(key, place)

    def _learn(self, key: ItemKey, place: str) -> None:
        if not key.id:
            return
        known = self._text.get(key.id, "")
        if (
            self._what == "query"
            and key.text
            and known
            and " ".join(known.split()) != " ".join(key.text.split())
        ):
            raise BadValue(
                f"query '{key.id[:60]}' is '{known[:60]}' in {self._place[key.id]} and '{key.text[:60]}' in {place}; "
                "go by the text alone (leave out query_id), or import different query sets into different folders"
            )
        if key.text:
            self._text.setdefault(key.id, key.text)
            self._place.setdefault(key.id, place)
            self._of_text.setdefault(key.text, set()).add(key.id)
        else:
            self._text.setdefault(key.id, "")

    def of(self, key: ItemKey) -> str:
        """The identifier of a query or document; raises ValueError, with the reason, where there is none."""
        if key.id:
            name = key.id
        elif not key.text:
            raise ValueError(f"no {self._what}")
        else:
            name = self._by_text(key.text)
        if len(name.encode("utf-8", "surrogatepass")) > IDENTIFIER_BYTES:
            raise ValueError(f"an identifier of the {self._what} of more than {IDENTIFIER_BYTES:,} bytes")
        return name

    def _by_text(self, text: str) -> str:
        same = self._of_text.get(text, set())
        if self._shelf is not None:
            same = same | self._shelf.ids_of(text)
        if len(same) > 1:
            raise ValueError(
                f"its text is that of {len(same)} {self._what} identifiers, {' and '.join(sorted(same)[:2])}"
            )
        if same:
            self.joined.add(text)
            return next(iter(same))
        if text in self._text or (self._shelf is not None and text in self._shelf):
            return text
        name = made_id(text, self._what)
        self.made.add(name)
        return name

    def notes(self) -> list[str]:
        """What was done for want of identifiers."""
        several = {"query": "queries", "document": "documents"}[self._what]
        told = []
        if self.made:
            told.append(
                f"{several} without an identifier, which got one made from a hash of their text: {len(self.made)}"
            )
        if self.joined:
            told.append(
                f"{several} known by their text, which got the identifier of the same text: {len(self.joined)}"
            )
        return told


def made_id(text: str, what: str) -> str:
    """An identifier made from a text: its first words and a hash of the whole, the same wherever the text is."""
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    words = re.findall(r"[a-z0-9]+", text.casefold()) if what == "query" else []
    slug = "-".join(words)[:32].rstrip("-") or ("q" if what == "query" else "text")
    return f"{slug}-{digest}"
