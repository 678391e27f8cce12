"""Data sets of the package ir_datasets as collections."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from weir.datasets.references import Materialized
from weir.errors import BadValue, DownloadError, FormatError, UnknownName, WeirError, require
from weir.files.atomic import write_json
from weir.files.column_names import of_role
from weir.files.json_record import read_json
from weir.files.layouts import find_layout
from weir.files.text_files import Watch
from weir.plugins.importing.importer import ImportReport, spill_documents, write_collection
from weir.plugins.importing.items import Document, FileRemark, FoundQuery, Item, ItemKey, Judgment
from weir.plugins.importing.merge import FileCounts, ImportedFile, document_spill
from weir.plugins.importing.references.materialize import home, materialized, not_materialized

_NAME = re.compile(r"irds:([\w./-]+)(?:#([\w+]+))?")
_QUERY_TEXTS = ("text", "title", "query", "question")
_MAX_SUGGESTIONS = 8


class IrdsRecord(Protocol):
    """A document, query or judgment of ir_datasets."""

    def _asdict(self) -> Mapping[str, Any]: ...

    def default_text(self) -> str:
        """Return the text that ir_datasets makes of this record's fields."""


@dataclass(frozen=True)
class IrdsName:
    """A data set of ir_datasets, named by `irds:identifier#fields`."""

    identifier: str
    fields: str = ""
    """Fields of queries that make their text, joined by +; "" for the usual one."""

    def __str__(self) -> str:
        return f"irds:{self.identifier}{f'#{self.fields}' if self.fields else ''}"


def irds_name(text: str) -> IrdsName:
    """Parse `irds:identifier#fields`; raises BadValue for other text."""
    match = _NAME.fullmatch(text)
    if match is None:
        raise BadValue(
            f"'{text}'; expected irds:identifier, such as irds:beir/scifact/test, or ...#field of queries"
        )
    return IrdsName(match[1], match[2] or "")


def from_irds(name: IrdsName, watch: Watch, fetch: bool = True) -> Materialized:
    """Return a data set of ir_datasets as a collection, imported once.

    fetch: False raises DownloadError unless it was imported before.

    Raises UnknownName for a data set or field, BadValue without queries or judgments and for judgments by subtopic,
    MissingExtra, DownloadError if the package fails.
    """

    def imported_folder(identifier: str, key: list[str], make: Callable[[Path], ImportReport]) -> Path:
        return materialized(f"irds-{identifier}", ["irds", *key], make if fetch else None)

    judged = imported_folder(
        name.identifier, [name.identifier, name.fields], partial(_write_judged, name, watch)
    )
    layout = replace(find_layout(judged), name=str(name))
    parents = _document_parents()
    if name.identifier not in parents:
        if not fetch:
            raise not_materialized(name)
        package, dataset = require("ir_datasets", extra="import-sources"), _dataset(name.identifier)
        parent = str(package.docs_parent_id(name.identifier)) if dataset.has_docs() else ""
        parents = {**parents, name.identifier: parent}
        write_json(home() / "irds-documents.json", parents)
    if parent := parents[name.identifier]:
        documents = imported_folder(parent, [parent, "documents"], partial(_write_documents, parent, watch))
        layout = replace(layout, documents=find_layout(documents).need_documents())
    return Materialized(layout, str(name), str(name))


def _document_parents() -> dict[str, str]:
    try:
        parents = read_json(home() / "irds-documents.json")
    except (OSError, FormatError):
        return {}
    return {str(one): str(parent) for one, parent in parents.items()} if isinstance(parents, dict) else {}


def _dataset(identifier: str) -> Any:  # noqa: ANN401  an object of ir_datasets
    package = require("ir_datasets", extra="import-sources")
    try:
        return package.load(identifier)
    except KeyError:
        raise UnknownName("data set of ir_datasets", identifier, list(package.registry)) from None


def _write_documents(identifier: str, watch: Watch, to: Path) -> ImportReport:
    items = (_document(one, f"document {n}") for n, one in enumerate(_records(identifier, "docs"), 1))
    return _write(f"irds:{identifier}", items, to, watch)


def _write_judged(name: IrdsName, watch: Watch, to: Path) -> ImportReport:
    dataset = _dataset(name.identifier)
    parts = (("queries", dataset.has_queries()), ("judgments", dataset.has_qrels()))
    if missing := [what for what, exists in parts if not exists]:
        registry = require("ir_datasets", extra="import-sources").registry
        below = [
            one for one in registry if one.startswith(f"{name.identifier}/") and registry[one].has_qrels()
        ]
        suggestion = f"; {', '.join(below[:_MAX_SUGGESTIONS])} have" if below else ""
        raise BadValue(f"irds:{name.identifier} has no {' and no '.join(missing)}{suggestion}")
    return _write(str(name), _queries_and_judgments(name, watch), to, watch)


def _write(name: str, items: Iterable[Item], to: Path, watch: Watch) -> ImportReport:
    counts = FileCounts()
    with document_spill() as spill:
        rest = tuple(spill_documents(items, name, counts, spill, watch))
        notes = list(dict.fromkeys(item.text for item in rest if isinstance(item, FileRemark)))
        record = {"file": name, "kind": "irds", "what": "a data set of ir_datasets", "evidence": "its name"}
        file = ImportedFile(name, name, rest, counts, {**record, "columns": {}, "notes": notes})
        return write_collection([file], [name], to, spill)


def _records(identifier: str, what: str) -> Iterator[IrdsRecord]:
    try:
        yield from getattr(_dataset(identifier), f"{what}_iter")()
    except WeirError:
        raise
    except Exception as error:  # noqa: BLE001 - the package and its hundred readers raise errors of many families
        reason = " ".join(str(error).split())[:200]
        raise DownloadError(
            f"irds:{identifier}: ir_datasets cannot give its {what} ({type(error).__name__}: {reason})"
        ) from None


def _document(record: IrdsRecord, where: str) -> Document:
    fields = dict(record._asdict())
    name = str(fields.pop("doc_id"))
    text_field = next(
        iter(of_role([one for one, value in fields.items() if isinstance(value, str)], "text")), ""
    )
    text = fields.pop(text_field) if text_field else record.default_text()
    title = fields.pop("title", "") if text_field else ""
    return Document(ItemKey(name, text), where, title if isinstance(title, str) else "", _metadata(fields))


def _queries_and_judgments(name: IrdsName, watch: Watch) -> Iterator[Item]:
    for n, record in enumerate(_records(name.identifier, "queries"), 1):
        fields = dict(record._asdict())
        identifier = str(fields.pop("query_id"))
        text_fields = name.fields.split("+") if name.fields else []
        for one in text_fields:
            if one not in fields:
                raise UnknownName(f"field of queries of irds:{name.identifier}", one, list(fields))
        text_fields = text_fields or [one for one in _QUERY_TEXTS if isinstance(fields.get(one), str)][:1]
        texts = [str(fields.pop(one)) for one in text_fields]
        text = " ".join(texts) if texts else record.default_text()
        if n == 1:
            sentence = f"{name}: the text of queries is {'+'.join(text_fields) or 'what ir_datasets calls their text'}"
            if fields:
                other = f"irds:{name.identifier}#{next(iter(fields))}"
                sentence += f"; other fields: {', '.join(fields)} ({other} takes the first of them)"
            yield FileRemark(sentence)
            watch(sentence, 0, 0)
        yield FoundQuery(ItemKey(identifier, text.strip()), f"query {n}", _metadata(fields))
    for n, record in enumerate(_records(name.identifier, "qrels"), 1):
        fields = dict(record._asdict())
        if "subtopic_id" in fields:
            raise BadValue(f"{name}: its judgments are by subtopic; weir eval takes them as a file")
        pair = ItemKey(str(fields["query_id"])), ItemKey(str(fields["doc_id"]))
        yield Judgment(*pair, fields.get("relevance", 1), f"judgment {n}")


def _metadata(fields: Mapping[str, Any]) -> dict[str, Any]:
    values = {one: list(value) if isinstance(value, tuple) else value for one, value in fields.items()}
    return {
        name: value
        for name, value in values.items()
        if value not in ("", None, [])
        and all(isinstance(one, (str, int, float)) for one in (value if isinstance(value, list) else [value]))
    }
