"""Golden sets and tables: rows with named fields, of no tool's own format."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from weir.errors import BadValue
from weir.plugins.importing.contents import Contents, TableRow, fold, names, roles_of
from weir.plugins.importing.formats.lines import listed_document, qrels_lines, rank_lines, run_lines
from weir.plugins.importing.items import (
    ByWords,
    Choices,
    Document,
    FileRemark,
    FoundQuery,
    Item,
    ItemKey,
    Judgment,
    Ranking,
    Refused,
    Used,
    at,
    is_identifier,
    listed,
    lost_columns,
    number,
    plain,
    ranking,
    text_of,
)
from weir.plugins.importing.readers import reader

# ----------
# Rows of a file, and the roles of their fields.


_LONGEST_NAME = 20  # words of an identifier: titles and names stay below
_NOTHING = {"", "n/a", "na", "none", "null", "nan", "~"}
_PLACEHOLDER = re.compile(r"(REPLACE|TODO|FIXME|CHANGE_?ME|PLACEHOLDER)(_[A-Z_0-9]*)?|TBD|\.\.\.")
_SEVERAL = re.compile(r"\s[|;]\s|^[^\s:/?]+([|;][^\s:/?]+)+$")


@dataclass(frozen=True)
class _Layout:
    """Which fields play which role; texts_are_ids: no query text has a blank, so that they serve as identifiers."""

    roles: Mapping[str, str]
    words: Mapping[str, str] = field(default_factory=dict)
    texts_are_ids: bool = False

    def of(self, row: TableRow, role: str) -> Any:  # noqa: ANN401  a field holds anything
        """The value of a role in a row; None where there is none."""
        return row.fields.get(self.roles[role]) if role in self.roles else None

    def text(self, row: TableRow, role: str) -> str:
        """The text of a role in a row; "" where there is none."""
        return plain(self.of(row, role))

    def query(self, row: TableRow) -> ItemKey:
        """The query of a row."""
        text = self.text(row, "query")
        return ItemKey(text if self.texts_are_ids else self.text(row, "query_id"), text)

    def doc(self, row: TableRow) -> str:
        """The document of a row of one document."""
        return plain(self.of(row, "doc") or self.of(row, "relevant"))

    def source(self, row: TableRow) -> tuple[str, str]:
        """Split and origin of a row's judgments."""
        return self.text(row, "split") or "test", self.text(row, "origin")

    def document(self, row: TableRow) -> Iterator[Document]:
        """The document of a row whose text stands beside it."""
        if text := self.text(row, "text"):
            yield Document(ItemKey(self.doc(row), text), row.where, self.text(row, "title"))


def _records(contents: Contents) -> list[TableRow]:
    """The rows of a file, also of a list under a name or by identifier in an object; raises BadValue."""
    value = contents.value
    if contents.shape == "rows":
        if len(contents.rows) != 1:
            return list(contents.rows)
        fields = dict(contents.rows[0].fields)
        lists = [n for n, one in fields.items() if fold(n) in names().containers and isinstance(one, list)]
        if len(lists) == 1 and all(isinstance(one, dict) for one in fields[lists[0]]):
            return [TableRow(f"{lists[0]} {n}", one) for n, one in enumerate(fields[lists[0]], 1)]
        return list(contents.rows)
    if not isinstance(value, dict):
        return []
    containers = [
        name
        for name, one in value.items()
        if isinstance(one, list)
        and any(isinstance(v, dict) for v in one)
        and fold(name) in names().containers
    ]
    if len(containers) > 1:
        raise BadValue(
            f"{contents.path}: {' and '.join(containers)} could each be the list of queries; keep one of them"
        )
    if containers:
        members = enumerate(value[containers[0]], 1)
        return [TableRow(f"{containers[0]} {n}", one) for n, one in members if isinstance(one, dict)]
    if value and all(isinstance(one, dict) and _has_role(one, "query") for one in value.values()):
        return [
            TableRow(f"'{name}'", {"query_id": name, **one})
            for name, one in value.items()
            if "query_id" not in one
        ]
    return [TableRow("the object", value)] if _has_role(value, "query", "query_id") else []


def _has_role(fields: Mapping[str, Any], *roles: str) -> bool:
    role_names = {name for role in roles for tier in names().roles[role] for name in tier}
    return any(fold(name) in role_names for name in fields)


def _flattened(row: TableRow) -> TableRow:
    """The row with the members of `expected`, `vars` and alike as fields of its own."""
    fields: dict[str, Any] = {}
    for name, value in row.fields.items():
        is_group = isinstance(value, dict) and fold(name) in names().inner
        if is_group and not (value and all(number(one) is not None for one in value.values())):
            fields |= {inner: one for inner, one in value.items() if inner not in row.fields}
        else:
            fields[name] = value
    return TableRow(row.where, fields)


def _word_fields(columns: list[str], used: Collection[str]) -> dict[str, str]:
    """Column -> the part of a document in which its words are looked for."""
    return {
        column: within
        for column in columns
        if column not in used
        for within in ("text", "title", "id")
        if fold(column) in names().words[within]
    }


def _layout(contents: Contents) -> tuple[_Layout, list[TableRow]]:
    rows = [_flattened(row) for row in _records(contents)]
    columns = list(dict.fromkeys(name for row in rows for name in row.fields))
    roles = roles_of(columns, contents.roles, contents.path)
    lists = {
        role: role in roles and any(map(_is_several, (row.fields.get(roles[role]) for row in rows)))
        for role in ("grade", "doc")
    }
    if lists["grade"] and "doc" not in roles and "relevant" not in roles:
        roles["relevant"] = roles.pop("grade")
    elif "doc" in roles:
        # Documents of an open name are relevant where the user named them, or grades stand beside lists of them.
        by_user = "doc" in contents.roles
        if (lists["doc"] and ("grade" in roles or by_user)) or (
            by_user and not {"grade", "score", "rank"} & set(roles)
        ):
            roles["relevant"] = roles.pop("doc")
    texts = [plain(row.fields.get(roles["query"])) for row in rows] if "query" in roles else []
    texts_are_ids = bool(texts) and "query_id" not in roles and all(map(is_identifier, filter(None, texts)))
    return _Layout(roles, _word_fields(columns, roles.values()), texts_are_ids), rows


def _is_several(value: object) -> bool:
    return isinstance(value, dict) or listed(value) is not None


def _evidence(contents: Contents) -> str:
    if contents.shape == "lines":
        return ""
    layout, _ = _layout(contents)
    if "query" not in layout.roles and "query_id" not in layout.roles:
        return ""
    if set(layout.roles) <= {"query_id", "title", "text", "split", "answer"} and not layout.words:
        return ""
    roles = ("query_id", "query", "relevant", "doc", "retrieved", "grade", "score", "rank")
    return ", ".join(f"{role}={layout.roles[role]}" for role in roles if role in layout.roles)


# ----------
# Readers of rows: golden sets, judgments, rankings, queries.


Meaning = Callable[[_Layout, list[TableRow]], Iterator[Item]]


@reader("records", "rows with named fields", _evidence, general=True)
def read_records(contents: Contents, _: Choices) -> Iterator[Item]:
    """Queries, judgments and rankings, by the names of the fields."""
    yield from _rows(contents, _meaning)


@reader("qrels", "judgments, a row for each")
def read_qrels_rows(contents: Contents, _: Choices) -> Iterator[Item]:
    """Judgments of rows with named fields, or of lines of three or four columns."""
    if contents.shape == "lines":
        yield from qrels_lines(contents)
    else:
        yield from _rows(contents, lambda *_: _judged)


@reader("run", "rankings, a row for each document")
def read_run_rows(contents: Contents, _: Choices) -> Iterator[Item]:
    """Rankings of rows with named fields, or of TREC's lines."""
    if contents.shape == "lines":
        yield from run_lines(contents)
    else:
        yield from _rows(contents, lambda *_: _returned)


@reader("run-ranks", "query, document, rank (MS MARCO's run, PyTerrier's minimal)")
def read_ranks(contents: Contents, _: Choices) -> Iterator[Item]:
    """Rankings by rank, of rows with named fields, of lines of three columns, or of TREC's."""
    if contents.shape == "lines":
        yield from rank_lines(contents)
    else:
        yield from _rows(contents, lambda *_: _ranked)


def _promptfoo(contents: Contents) -> str:
    if "__expected" in contents.columns:
        return "__expected"
    is_config = isinstance(at(contents.value, "tests"), list) and "prompts" in contents.value
    return "prompts and tests" if is_config else ""


@reader("promptfoo", "tests of promptfoo", _promptfoo)
def read_promptfoo(contents: Contents, _: Choices) -> Iterator[Item]:
    """Queries by their variables, and judgments where a variable names the documents; assertions are ignored."""
    yield FileRemark("assertions are about answers, and were ignored")
    yield from _rows(contents, _meaning)


def _rows(
    contents: Contents, meaning_of: Callable[[Contents, _Layout, list[TableRow]], Meaning]
) -> Iterator[Item]:
    layout, rows = _layout(contents)
    read = meaning_of(contents, layout, rows)
    yield from (Used(role, column) for role, column in layout.roles.items())
    yield from (Used(f"words in the {within}", column) for column, within in layout.words.items())
    used = {*layout.roles.values(), *layout.words, ""}
    if not layout.words and not {"relevant", "doc", "retrieved"} & set(layout.roles):
        others = dict.fromkeys(name for row in rows for name in row.fields if name not in used - {""})
        open_names = ", ".join(list(others)[:8]) or "none besides"
        yield FileRemark(
            f"queries alone: no known field names documents ({open_names}); --columns relevant=NAME says which does"
        )
    queries = list(_queries(layout, rows))
    yield from queries
    used |= {name for one in queries if isinstance(one, FoundQuery) for name in one.metadata}
    with_values = dict.fromkeys(name for row in rows for name, value in row.fields.items() if plain(value))
    yield from lost_columns([name for name in with_values if name not in used])
    yield from read(layout, [row for row in rows if layout.query(row) != ItemKey()])


def _meaning(contents: Contents, layout: _Layout, rows: list[TableRow]) -> Meaning:
    """How the documents of rows are read; raises BadValue where the names leave it open."""
    roles = layout.roles
    if "doc" not in roles or "relevant" in roles:
        return _golden
    if "grade" in roles:
        return _judged_and_returned if {"rank", "score"} & set(roles) else _judged
    if "rank" in roles:
        return _returned
    if "score" not in roles:
        name = roles["doc"]
        raise BadValue(
            f"{contents.path}: the documents in '{name}' may be relevant or returned; add --columns relevant={name}, "
            f"--columns retrieved={name}, or the column of grades"
        )
    # The file's name says whether a score is a grade, else fractions do.
    if contents.says("qrels", "qrel", "judgments"):
        return _judged
    values = [number(layout.of(row, "score")) for row in rows]
    if contents.says("run", "runs") or any(value is not None and not value.is_integer() for value in values):
        return _returned
    name = roles["score"]
    raise BadValue(
        f"{contents.path}: the whole numbers in '{name}' may be grades or scores; add "
        f"--as {contents.path.name}=qrels or --as {contents.path.name}=run"
    )


def _queries(layout: _Layout, rows: list[TableRow]) -> Iterator[Item]:
    """Each query once, with the fields that have one value in all its rows."""
    queries: dict[ItemKey, tuple[str, dict[str, Any], bool]] = {}
    used = {*layout.roles.values(), *layout.words, ""}
    unanswerable_rows = 0
    for row in rows:
        key = layout.query(row)
        if key == ItemKey():
            yield Refused(row.where, "neither an identifier nor a text of the query")
            continue
        more = {name: value for name, value in row.fields.items() if name not in used and _is_metadata(value)}
        if answer := layout.text(row, "answer"):
            more["answer"] = answer
        for role in ("excluded", "candidates"):
            docs = [plain(one) for one in listed(layout.of(row, role)) or []]
            if docs := [doc for doc in docs if doc.casefold() not in _NOTHING]:
                more[role] = docs
        where, before, unanswerable = queries.get(key, (row.where, more, _is_unanswerable(layout, row)))
        queries[key] = (where, {k: v for k, v in before.items() if more.get(k) == v}, unanswerable)
        unanswerable_rows += unanswerable
    if queries and unanswerable_rows == len(rows) and "relevant" in layout.roles:
        name = layout.roles["relevant"]
        raise BadValue(
            f"'{name}' is empty for every query, as in a template; expected relevant documents for some"
        )
    for key, (where, more, unanswerable) in queries.items():
        yield FoundQuery(key, where, more, unanswerable)


def _is_unanswerable(layout: _Layout, row: TableRow) -> bool:
    """Whether a row says that nothing answers its query: by a flag, or by an empty list."""
    for name, value in row.fields.items():
        if plain(value).casefold() in names().unanswerable.get(fold(name), ()):
            return True
    return listed(layout.of(row, "relevant")) == []


def _is_metadata(value: object) -> bool:
    """Whether a field is worth keeping beside a query: a scalar, or a few of them."""
    if isinstance(value, list):
        return 0 < len(value) <= 50 and all(isinstance(one, (str, int, float)) for one in value)
    return isinstance(value, (bool, int)) or bool(plain(value))


def _golden(layout: _Layout, rows: list[TableRow]) -> Iterator[Item]:
    """Rows of one query each with its relevant documents, or words that they hold, and perhaps what was returned."""
    silent_rows = 0
    for row in rows:
        key = layout.query(row)
        items = list(_relevant(layout, row, key))
        items += [one for one in _by_words(key, row.where, row.fields, layout.words) if one.words]
        silent_rows += not items
        split, origin = layout.source(row)
        for item in items:
            yield replace(item, split=split, origin=origin) if isinstance(item, Judgment) else item
        if "retrieved" in layout.roles:
            field_name = layout.roles["retrieved"]
            members = listed(layout.of(row, "retrieved"))
            docs = [listed_document(one) for one in members or []]
            ranked = [one for one in docs if one]
            if members is None:
                yield Refused(row.where, f"no list in '{field_name}'")
            elif len(ranked) < len(docs):
                yield Refused(row.where, f"a member of the list '{field_name}' names no document")
            else:
                numbers = [one.number for one in ranked]
                yield ranking(key, [ItemKey(one.id) for one in ranked], row.where, numbers)
    if silent_rows and "relevant" in layout.roles:
        yield FileRemark(f"{silent_rows} rows name no relevant document")


def _relevant(layout: _Layout, row: TableRow, key: ItemKey) -> Iterator[Item]:
    """The judgments of a row's relevant documents: one, a list, objects with a grade, or grades by document.

    The row's own grade is a number for all, or grades by document.
    """
    value, grade = layout.of(row, "relevant"), layout.of(row, "grade")
    docs = listed(value)
    if docs is not None:
        for one in docs:
            if isinstance(one, dict):
                yield from _object(key, row, one)
            elif isinstance(one, list):
                yield Refused(row.where, "a list within the list of relevant documents; expected identifiers")
            else:
                shared = 1 if grade is None else grade
                own = grade.get(plain(one), 1) if isinstance(grade, dict) else shared
                yield from _one(key, row, one, own)
    elif isinstance(value, dict):
        for doc, doc_grade in value.items():
            yield from _one(key, row, doc, doc_grade)
    elif _SEVERAL.search(name := plain(value)):
        yield Refused(
            row.where, f"'{name[:60]}' looks like several documents in one cell; write them as a JSON list"
        )
    else:
        yield from _one(key, row, name, 1 if grade is None else grade)


def _by_words(
    key: ItemKey, where: str, fields: Mapping[str, Any], words: Mapping[str, str], grade: object = 1
) -> Iterator[ByWords]:
    """The judgments by words of some fields; words: field -> the part of a document that holds them."""
    for column, within in words.items():
        texts = listed(fields.get(column))
        phrases = tuple(filter(None, map(plain, [fields.get(column)] if texts is None else texts)))
        how = next((how for how in ("all", "any") if fold(column) in names().words[how]), "")
        yield ByWords(key, phrases, column, where, how, within, grade)


def _object(key: ItemKey, row: TableRow, one: Mapping[str, Any]) -> Iterator[Item]:
    """The judgment of an object: by its identifier, by words, or by its text."""
    roles = names().roles
    grade = next((one[name] for name in one if fold(name) in roles["grade"][0] | {"score"}), 1)
    doc_names = {name for tier in roles["doc"] for name in tier} | {"id", "path", "corpusid"}
    doc = text_of(one, *(name for name in one if fold(name) in doc_names))
    text, title = (
        next((plain(one[name]) for tier in roles[role] for name in one if fold(name) in tier), "")
        for role in ("text", "title")
    )
    words = _word_fields(list(one), ())
    if doc:
        yield from _one(key, row, doc, grade)
        if text:
            yield Document(ItemKey(doc, text), row.where, title)
    elif words:
        yield from _by_words(key, row.where, one, words, grade)
    elif text:
        yield Judgment(key, ItemKey("", text), grade, row.where)
        yield Document(ItemKey("", text), row.where, title)
    else:
        yield Refused(
            row.where, f"an object without a document's identifier ({', '.join(map(str, one))[:60]})"
        )


def _one(key: ItemKey, row: TableRow, doc: object, grade: object) -> Iterator[Item]:
    name = plain(doc)
    if name.casefold() in _NOTHING:
        return
    if len(name.split()) > _LONGEST_NAME:
        yield Refused(row.where, f"'{name[:40]}...' is a text, not the identifier of a document")
    elif _PLACEHOLDER.fullmatch(name):
        yield Refused(row.where, f"'{name[:60]}' is a placeholder that nobody filled")
    else:
        yield Judgment(key, ItemKey(name), grade, row.where)


def _row_error(layout: _Layout, row: TableRow) -> str:
    """Why a row of one document is refused; "" where nothing is wrong."""
    if "" in row.fields:
        return f"more cells than columns ('{row.fields[''][0][:40]}')"
    return "" if layout.doc(row) else "no document"


def _judged(layout: _Layout, rows: list[TableRow]) -> Iterator[Item]:
    """A judgment in each row; a row with neither document nor grade is a query without judgments."""
    queries_alone = 0
    role = next((role for role in ("grade", "score") if role in layout.roles), "")
    for row in rows:
        grade = layout.of(row, role) if role else 1
        if not layout.doc(row) and not plain(grade) and "" not in row.fields:
            queries_alone += 1
        elif reason := _row_error(layout, row):
            yield Refused(row.where, reason)
        else:
            doc = ItemKey(layout.doc(row))
            yield Judgment(layout.query(row), doc, grade, row.where, *layout.source(row))
            yield from layout.document(row)
    if not role:
        yield FileRemark("no column of grades: every document counts as relevant, grade 1")
    if queries_alone:
        yield FileRemark(f"{queries_alone} rows hold a query and no judgment")


def _ranked(layout: _Layout, rows: list[TableRow]) -> Iterator[Item]:
    """A document of a ranking in each row, by rank."""
    if "rank" not in layout.roles:
        raise BadValue("no column of ranks; name it, as in --columns rank=NAME")
    yield from _returned(layout, rows, "rank")


def _returned(layout: _Layout, rows: list[TableRow], by: str = "") -> Iterator[Item]:
    """A document of a ranking in each row: by the role given, else by score where there is one, else by rank."""
    role = by or next((role for role in ("score", "rank") if role in layout.roles), "")
    if not role:
        yield FileRemark("neither scores nor ranks: the order of the rows is the ranking")
    rankings: dict[ItemKey, list[tuple[float, TableRow]]] = {}
    for position, row in enumerate(rows):
        value = number(layout.of(row, role)) if role else float(position)
        if reason := _row_error(layout, row):
            yield Refused(row.where, reason)
        elif value is None:
            yield Refused(row.where, f"no number in '{layout.roles[role]}'")
        else:
            rankings.setdefault(layout.query(row), []).append((value, row))
            yield from layout.document(row)
    for key, ranked in rankings.items():
        if role != "score":
            ranked.sort(key=lambda one: one[0])
        docs = tuple(ItemKey(layout.doc(row)) for _, row in ranked)
        scores = tuple(value for value, _ in ranked) if role == "score" else ()
        places = [number(layout.of(row, "rank")) for _, row in ranked]
        ranks = (
            tuple(math.nan if place is None else place for place in places) if "rank" in layout.roles else ()
        )
        yield Ranking(key, docs, ranked[0][1].where, scores, ordered=role != "score", ranks=ranks)


def _judged_and_returned(layout: _Layout, rows: list[TableRow]) -> Iterator[Item]:
    """Rows with a grade and a rank or score: judgments, and the ranking that was judged."""
    yield from _judged(layout, [row for row in rows if layout.text(row, "grade")])
    role = "score" if "score" in layout.roles else "rank"
    yield from _returned(layout, [row for row in rows if layout.text(row, role)])
