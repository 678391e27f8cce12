"""Lists of documents by query: rankings, or what is relevant, as identifiers, pairs or objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from weir.errors import BadValue
from weir.io.storage.safe_pickle import is_pickle
from weir.plugins.importing.contents import Contents
from weir.plugins.importing.found import Item, ItemKey, Judgment, Ranking, Refused, number, plain
from weir.plugins.importing.names import fold, names
from weir.plugins.importing.readers import ReadRequest, reader

__all__ = ["ListedDocument", "listed_document"]


@dataclass(frozen=True)
class ListedDocument:
    """A member of a list: its identifier, and the number beside it, None where there is none."""

    id: str
    number: float | None = None


def listed_document(one: object) -> ListedDocument | None:
    """The document that a member of a list names: as identifier, [identifier, number] or an object; None for none."""
    if isinstance(one, dict):
        return _object(one)
    if isinstance(one, list):
        value = number(one[1]) if len(one) == 2 and isinstance(one[1], (int, float)) else None
        return ListedDocument(plain(one[0]), value) if value is not None and plain(one[0]) else None
    return ListedDocument(plain(one)) if plain(one) else None


def _object(one: Mapping[str, Any]) -> ListedDocument | None:
    roles = names().roles
    docs = {name for tier in roles["doc"] for name in tier} | {"id", "corpusid"}
    numbers = {name for role in ("score", "grade") for tier in roles[role] for name in tier}
    found = next((plain(value) for name, value in one.items() if fold(name) in docs and plain(value)), "")
    value = next((number(value) for name, value in one.items() if fold(name) in numbers), None)
    return ListedDocument(found, value) if found else None


def _is_lists(value: object) -> bool:
    """Whether it is {query: [document, ...]}, and no list under a name that says what it holds."""
    if not isinstance(value, dict) or not any(value.values()):
        return False
    known = names().containers | {name for tiers in names().roles.values() for tier in tiers for name in tier}
    return all(
        isinstance(row, list) and fold(query) not in known and all(map(listed_document, row))
        for query, row in value.items()
    )


def _lists(contents: Contents) -> str:
    return "{query: [document, ...]}" if contents.shape == "json" and _is_lists(contents.value) else ""


@reader("lists", "lists of documents by query", _lists, general=True)
def read_lists(contents: Contents, asked: ReadRequest) -> Iterator[Item]:
    """A run where a number is a fraction or the file's name says so, or a pickle; judgments where its name says that.

    Raises BadValue where neither is so.
    """
    numbers = [one.number for row in contents.value.values() for one in map(listed_document, row) if one]
    named = contents.says("run", "runs", "rank", "ranks") or is_pickle(contents.path)
    if named or any(n is not None and not n.is_integer() for n in numbers):
        yield from read_list_run(contents, asked)
    elif contents.says("qrels", "qrel", "judgments"):
        yield from read_list_qrels(contents, asked)
    else:
        raise BadValue(
            f"{contents.path}: lists of documents by query, which may be relevant or returned; "
            "say which with --as list-qrels or --as list-run"
        )


def _only_by_name(_: Contents) -> str:
    return ""


@reader("list-run", "rankings as lists by query", _only_by_name)
def read_list_run(contents: Contents, _: ReadRequest) -> Iterator[Item]:
    """Rankings in the order of the lists."""
    for query, row in _checked(contents).items():
        found = [one for one in map(listed_document, row) if one]
        scores = tuple(one.number for one in found if one.number is not None)
        docs = tuple(ItemKey(one.id) for one in found)
        yield Ranking(ItemKey(query), docs, f"query {query}", scores if len(scores) == len(docs) else ())


@reader("list-qrels", "relevant documents as lists by query", _only_by_name)
def read_list_qrels(contents: Contents, _: ReadRequest) -> Iterator[Item]:
    """Judgments: the number beside a document is its grade, and 1 where there is none."""
    for query, row in _checked(contents).items():
        for one in filter(None, map(listed_document, row)):
            grade = 1 if one.number is None else one.number
            yield Judgment(ItemKey(query), ItemKey(one.id), grade, f"query {query}")
        if not row:
            yield Refused(f"query {query}", "no relevant document")


def _checked(contents: Contents) -> Mapping[str, list[Any]]:
    if not _is_lists(contents.value):
        raise BadValue(f"{contents.path}: found no lists by query; expected {{query: [document, ...]}}")
    lists: Mapping[str, list[Any]] = contents.value
    return lists
