"""Data sets of the package ir_datasets as collections: documents as a stream, queries and judgments by identifier."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from weir.datasets.references import Materialized
from weir.errors import BadValue, DownloadError, UnknownName, WeirError, require
from weir.files.atomic import write_json
from weir.files.layouts import find_layout
from weir.files.text_files import Watch
from weir.plugins.importing.importer import Destination, FileRead, shelved, written_collection
from weir.plugins.importing.items import Choices, Document, FileRemark, FoundQuery, Item, ItemKey, Judgment
from weir.plugins.importing.merge import FileCounts, FileFound, document_spill
from weir.plugins.importing.references.materialize import home, materialized, not_materialized, tell_refused

_NAME = re.compile(r"irds:([\w./-]+)(?:#([\w+]+))?")
_DOCUMENT_TEXTS = ("text", "body", "contents", "abstract", "passage", "segment")
_QUERY_TEXTS = ("text", "title", "query", "question")
_MOST_NAMED = 8


class IrdsRecord(Protocol):
    """A document, query or judgment of ir_datasets: a named tuple."""

    def _asdict(self) -> Mapping[str, Any]:
        """Its fields."""

    def default_text(self) -> str:
        """What the package takes for the text of a document or query."""


@dataclass(frozen=True)
class IrdsName:
    """A data set of ir_datasets as `irds:identifier#fields` names it; fields: of queries, joined by +."""

    identifier: str
    fields: str = ""

    def __str__(self) -> str:
        return f"irds:{self.identifier}{f'#{self.fields}' if self.fields else ''}"


def irds_name(text: str) -> IrdsName:
    """Read `irds:identifier#fields`; raises BadValue for anything else."""
    match = _NAME.fullmatch(text)
    if match is None:
        raise BadValue(
            f"'{text}'; expected irds:identifier, such as irds:beir/scifact/test, or ...#field of queries"
        )
    return IrdsName(match[1], match[2] or "")


def from_irds(name: IrdsName, watch: Watch, fetch: bool = True) -> Materialized:
    """Bring a data set of ir_datasets here, once; documents that several share are brought once for all of them.

    What was brought is read without the package; fetch: see `materialize`. Raises MissingExtra
    without it, UnknownName for a data set that it does not have, BadValue for one without queries or judgments,
    DownloadError where the package cannot give it.
    """
    key = ["irds", name.identifier, name.fields]
    judged = materialized(
        f"irds-{name.identifier}", key, partial(_make_judged, name, watch) if fetch else None
    )
    layout = replace(find_layout(judged), name=str(name))
    parents = _parents()
    if name.identifier not in parents:
        if not fetch:
            raise not_materialized(name)
        package, dataset = require("ir_datasets", extra="irds"), _opened(name.identifier)
        parents = {
            **parents,
            name.identifier: (str(package.docs_parent_id(name.identifier)) if dataset.has_docs() else ""),
        }
        write_json(_parents_file(), parents)
    if parent := parents[name.identifier]:
        key = ["irds", parent, "documents"]
        place = materialized(
            f"irds-{parent}", key, partial(_make_documents, parent, watch) if fetch else None
        )
        layout = replace(layout, documents=find_layout(place).need_documents())
    return Materialized(layout, str(name), str(name))


def _parents_file() -> Path:
    return home() / "irds-documents.json"


def _parents() -> dict[str, str]:
    """Which data set has the documents of another, "" where none does, as far as that was asked before."""
    try:
        parents = json.loads(_parents_file().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {str(one): str(parent) for one, parent in parents.items()} if isinstance(parents, dict) else {}


def _opened(identifier: str) -> Any:  # noqa: ANN401  an object of ir_datasets
    package = require("ir_datasets", extra="irds")
    try:
        return package.load(identifier)
    except KeyError:
        raise UnknownName("data set of ir_datasets", identifier, list(package.registry)) from None


def _make_documents(identifier: str, watch: Watch, to: Path) -> None:
    items = (_document(one, f"document {n}") for n, one in enumerate(_asked(identifier, "docs"), 1))
    _write(f"irds:{identifier}", items, to, watch)


def _make_judged(name: IrdsName, watch: Watch, to: Path) -> None:
    dataset = _opened(name.identifier)
    missing = [
        what
        for what, there in (("queries", dataset.has_queries()), ("judgments", dataset.has_qrels()))
        if not there
    ]
    if missing:
        raise BadValue(f"irds:{name.identifier} has no {' and no '.join(missing)}{_instead(name.identifier)}")
    _write(str(name), _queries_and_judgments(name, watch), to, watch)


def _instead(identifier: str) -> str:
    """The data sets below one that have judgments."""
    package = require("ir_datasets", extra="irds")
    below = [one for one in package.registry if one.startswith(f"{identifier}/")]
    judged = [one for one in below if package.registry[one].has_qrels()]
    return f"; {', '.join(judged[:_MOST_NAMED])} have" if judged else ""


def _write(name: str, items: Iterable[Item], to: Path, watch: Watch) -> None:
    """Write what a data set holds; nothing of it is held but queries and judgments."""
    counts = FileCounts()
    with document_spill() as spill:
        rest = tuple(shelved(items, name, (counts, spill), watch))
        notes = list(dict.fromkeys(item.text for item in rest if isinstance(item, FileRemark)))
        record = {"file": name, "kind": "irds", "what": "a data set of ir_datasets", "evidence": "its name"}
        read = FileRead(FileFound(name, name, rest, counts), {**record, "columns": {}, "notes": notes})
        tell_refused(written_collection([read], {}, [name], Destination(to, spill, Choices())), watch)


def _asked(identifier: str, what: str) -> Iterator[IrdsRecord]:
    """The documents, queries or judgments of a data set; raises DownloadError where the package cannot give them."""
    try:
        yield from getattr(_opened(identifier), f"{what}_iter")()
    except WeirError:
        raise
    except Exception as error:  # noqa: BLE001 - the package and its hundred readers raise errors of many families
        reason = " ".join(str(error).split())[:200]
        raise DownloadError(
            f"irds:{identifier}: ir_datasets cannot give its {what} ({type(error).__name__}: {reason})"
        ) from None


def _document(record: IrdsRecord, where: str) -> Document:
    """A document: title and text by the names of its fields, where none is known all that it says of itself."""
    fields = dict(record._asdict())
    name = str(fields.pop("doc_id"))
    field = next((one for one in _DOCUMENT_TEXTS if isinstance(fields.get(one), str)), "")
    text = fields.pop(field) if field else record.default_text()
    title = fields.pop("title", "") if field else ""
    return Document(ItemKey(name, text), where, title if isinstance(title, str) else "", _metadata(fields))


def _queries_and_judgments(name: IrdsName, watch: Watch) -> Iterator[Item]:
    remarked = False
    for n, record in enumerate(_asked(name.identifier, "queries"), 1):
        fields = dict(record._asdict())
        identifier = str(fields.pop("query_id"))
        wanted = _text_fields(name, fields)
        text = " ".join(str(fields.pop(one)) for one in wanted) if wanted else record.default_text()
        if not remarked:
            sentence = _said(name, wanted, fields)
            yield FileRemark(sentence)
            watch(sentence, 0, 0)
            remarked = True
        yield FoundQuery(ItemKey(identifier, text.strip()), f"query {n}", _metadata(fields))
    for n, record in enumerate(_asked(name.identifier, "qrels"), 1):
        fields = dict(record._asdict())
        if "subtopic_id" in fields:
            raise BadValue(f"{name}: its judgments are by subtopic; weir eval takes them as a file")
        pair = ItemKey(str(fields["query_id"])), ItemKey(str(fields["doc_id"]))
        yield Judgment(*pair, fields.get("relevance", 1), f"judgment {n}")


def _text_fields(name: IrdsName, fields: Mapping[str, Any]) -> list[str]:
    """The fields that make the text of a query; raises UnknownName for one that is not there."""
    if not name.fields:
        return [one for one in _QUERY_TEXTS if isinstance(fields.get(one), str)][:1]
    wanted = name.fields.split("+")
    for one in wanted:
        if one not in fields:
            raise UnknownName(f"field of queries of irds:{name.identifier}", one, list(fields))
    return wanted


def _said(name: IrdsName, wanted: list[str], others: Mapping[str, Any]) -> str:
    """Which field is the text of the queries, and how to take another."""
    sentence = f"{name}: the text of queries is {'+'.join(wanted) or 'what ir_datasets calls their text'}"
    if not others:
        return sentence
    return (
        f"{sentence}; {', '.join(others)} beside it (irds:{name.identifier}#{next(iter(others))} takes that)"
    )


def _metadata(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that JSON holds and that say something."""
    held = {one: list(value) if isinstance(value, tuple) else value for one, value in fields.items()}
    return {one: value for one, value in held.items() if value not in ("", None, []) and _is_plain(value)}


def _is_plain(value: object) -> bool:
    if isinstance(value, list):
        return all(isinstance(one, (str, int, float)) for one in value)
    return isinstance(value, (str, int, float))
