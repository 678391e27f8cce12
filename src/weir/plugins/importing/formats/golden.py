"""Golden sets: rows with named fields of nobody's format."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from weir.errors import BadValue
from weir.plugins.importing.contents import Contents, TableRow, fold, names, roles_of
from weir.plugins.importing.formats.evaluators import listed
from weir.plugins.importing.formats.lines import listed_document, qrels_lines, run_lines
from weir.plugins.importing.items import (
    ByWords,
    Document,
    FileRemark,
    FoundQuery,
    Item,
    ItemKey,
    Judgment,
    Ranking,
    Refused,
    Used,
    lost_columns,
    number,
    plain,
    ranking,
)
from weir.plugins.importing.readers import ReadRequest, reader

# ----------
# The ways in which a row names relevant documents.


_PLACEHOLDER = re.compile(r"(REPLACE|TODO|FIXME|CHANGE_?ME|PLACEHOLDER)(_[A-Z_0-9]*)?|TBD|\.\.\.")
_WORDS = 20  # of an identifier, at most: titles and names stay below
_NONE = {"", "n/a", "na", "none", "null", "nan", "~"}


def records_of(contents: Contents) -> list[TableRow]:
    """The rows of a file, also of a list under a name or by identifier in an object; raises BadValue."""
    if contents.shape == "rows":
        if len(contents.rows) != 1:
            return list(contents.rows)
        alone = dict(contents.rows[0].fields)
        inside = [
            name for name, one in alone.items() if fold(name) in names().containers and isinstance(one, list)
        ]
        if len(inside) == 1 and all(isinstance(one, dict) for one in alone[inside[0]]):
            return [TableRow(f"{inside[0]} {n}", one) for n, one in enumerate(alone[inside[0]], 1)]
        return list(contents.rows)
    value = contents.value
    if not isinstance(value, dict):
        return []
    lists = {
        name: one
        for name, one in value.items()
        if isinstance(one, list) and any(isinstance(v, dict) for v in one)
    }
    known = [name for name in lists if fold(str(name)) in names().containers]
    if len(known) > 1:
        raise BadValue(
            f"{contents.path}: {' and '.join(known)} could both be the list of queries; keep one of them"
        )
    if known:
        return [
            TableRow(f"{known[0]} {n}", one)
            for n, one in enumerate(lists[known[0]], 1)
            if isinstance(one, dict)
        ]
    if value and all(isinstance(one, dict) and _has_query(one) for one in value.values()):
        return [
            TableRow(f"'{name}'", {"query_id": name, **one})
            for name, one in value.items()
            if "query_id" not in one
        ]
    return [TableRow("the object", value)] if _has_query(value, "query", "query_id") else []


def _has_query(fields: Mapping[str, Any], *roles: str) -> bool:
    known = {name for role in roles or ("query",) for tier in names().roles[role] for name in tier}
    return any(fold(str(name)) in known for name in fields)


def flattened(row: TableRow) -> TableRow:
    """The row with the members of `expected`, `vars` and alike as fields of its own."""
    fields: dict[str, Any] = {}
    for name, value in row.fields.items():
        if (
            isinstance(value, dict)
            and fold(name) in names().inner
            and not (bool(value) and all(number(one) is not None for one in value.values()))
        ):
            fields |= {inner: one for inner, one in value.items() if inner not in row.fields}
        else:
            fields[name] = value
    return TableRow(row.where, fields)


def word_fields(columns: list[str], taken: Collection[str]) -> dict[str, str]:
    """Column -> the part of a document in which its words are looked for."""
    listed_words = names().words
    return {
        column: within
        for column in columns
        if column not in taken
        for within in ("text", "title", "id")
        if fold(column) in listed_words[within]
    }


def is_unanswerable(row: TableRow, relevant: object) -> bool:
    """Whether a row says that nothing answers its query: by a flag, or by an empty list."""
    for name, value in row.fields.items():
        values = names().unanswerable.get(fold(name))
        if values and plain(value).casefold() in values:
            return True
    documents = listed(relevant)
    return documents is not None and not documents


def excluded(left_out: object, candidates: object) -> dict[str, list[str]]:
    """Documents that must leave the ranking, and those that alone are ranked, as metadata of a query."""
    lists = {"excluded": _names(left_out), "candidates": _names(candidates)}
    return {name: listed_names for name, listed_names in lists.items() if listed_names}


def _names(value: object) -> list[str]:
    return [name for one in listed(value) or [] if (name := plain(one)).casefold() not in _NONE]


def judgments(
    key: ItemKey, row: TableRow, value: object, grade: object, words: Mapping[str, str]
) -> Iterator[Item]:
    """What a row says about its query.

    value: of the field of relevant documents: a document, a list of them, objects with a grade, or grades by
    document; grade: a number for all, or grades by document; words: fields of words that documents must hold.
    """
    documents = listed(value)
    if documents is not None:
        for one in documents:
            if isinstance(one, dict):
                yield from _object(key, row, one)
            elif isinstance(one, list):
                yield Refused(row.where, "a list within the list of relevant documents; expected identifiers")
            elif isinstance(grade, dict):
                yield from _one(key, row, one, grade.get(plain(one), 1))
            else:
                yield from _one(key, row, one, 1 if grade is None else grade)
    elif isinstance(value, dict):
        for doc, doc_grade in value.items():
            yield from _one(key, row, doc, doc_grade)
    elif plain(value).casefold() not in _NONE:
        if re.search(r"\s[|;]\s|^[^\s:/?]+([|;][^\s:/?]+)+$", doc := plain(value)):
            several = f"'{doc[:60]}' looks like several documents in one cell; write them as a JSON list"
            yield Refused(row.where, several)
        else:
            yield from _one(key, row, doc, 1 if grade is None else grade)
    for column, within in words.items():
        texts = listed(row.fields.get(column))
        held_words = tuple(filter(None, map(plain, texts if texts is not None else [row.fields.get(column)])))
        if held_words:
            yield ByWords(key, held_words, column, row.where, _how(column), within)


def _how(column: str) -> str:
    return next((how for how in ("all", "any") if fold(column) in names().words[how]), "")


def _object(key: ItemKey, row: TableRow, one: Mapping[str, Any]) -> Iterator[Item]:
    grade = next((one[name] for name in one if fold(name) in names().roles["grade"][0] | {"score"}), 1)
    doc_names = {name for tier in names().roles["doc"] for name in tier} | {"id", "path", "corpusid"}
    doc = next((one[name] for name in one if fold(name) in doc_names and plain(one[name])), None)
    text, title = _field(one, "text"), _field(one, "title")
    if doc is not None:
        yield from _one(key, row, doc, grade)
        if text and plain(doc):
            yield Document(ItemKey(plain(doc), text), row.where, title)
        return
    words = word_fields(list(one), ())
    for column, within in words.items():
        texts = listed(one[column])
        held = tuple(filter(None, map(plain, texts if texts is not None else [one[column]])))
        yield ByWords(key, held, column, row.where, _how(column), within, grade)
    if text and not words:
        yield Judgment(key, ItemKey("", text), grade, row.where)
        yield Document(ItemKey("", text), row.where, title)
    elif not words:
        yield Refused(
            row.where, f"an object without a document's identifier ({', '.join(map(str, one))[:60]})"
        )


def _field(one: Mapping[str, Any], role: str) -> str:
    """The text of a role in an object, "" where it has none."""
    tiers = names().roles[role]
    return next((plain(one[name]) for tier in tiers for name in one if fold(name) in tier), "")


def _one(key: ItemKey, row: TableRow, doc: object, grade: object) -> Iterator[Item]:
    name = plain(doc)
    if name.casefold() in _NONE:
        return
    if len(name.split()) > _WORDS:
        yield Refused(row.where, f"'{name[:40]}...' is a text and no identifier of a document")
    elif _PLACEHOLDER.fullmatch(name):
        yield Refused(row.where, f"'{name[:60]}' is a placeholder that nobody filled")
    else:
        yield Judgment(key, ItemKey(name), grade, row.where)


# ----------
# Rows with named fields: golden sets, judgments, rankings, queries.


@dataclass(frozen=True)
class _Layout:
    """Which fields play which role; texts_are_ids: no query text has a blank, so that they serve as identifiers."""

    roles: Mapping[str, str]
    words: Mapping[str, str] = field(default_factory=dict)
    texts_are_ids: bool = False

    def of(self, row: TableRow, role: str) -> Any:  # noqa: ANN401  a field holds anything
        """The value of a role in a row; None where there is none."""
        return row.fields.get(self.roles[role]) if role in self.roles else None


def _layout(contents: Contents) -> tuple[_Layout, list[TableRow]]:
    rows = [flattened(row) for row in records_of(contents)]
    columns = list(dict.fromkeys(name for row in rows for name in row.fields))
    roles = roles_of(columns, contents.given, contents.path)
    held = {role: [row.fields.get(roles[role]) for row in rows] for role in ("grade", "doc") if role in roles}
    if "grade" in held and "doc" not in roles and "relevant" not in roles and any(map(_many, held["grade"])):
        roles["relevant"] = roles.pop("grade")
    elif "doc" in held:
        # Documents of an open name are relevant where the user named them, or grades stand beside lists of them.
        named = "doc" in contents.given
        lists = ("grade" in roles or named) and any(map(_many, held["doc"]))
        if lists or (named and not {"grade", "score", "rank"} & set(roles)):
            roles["relevant"] = roles.pop("doc")
    texts = [plain(row.fields.get(roles["query"])) for row in rows] if "query" in roles else []
    short = bool(texts) and all(len(text.split()) == 1 and len(text) <= 64 for text in texts if text)
    words = word_fields(columns, roles.values())
    return _Layout(roles, words, short and "query_id" not in roles), rows


def _many(value: object) -> bool:
    return isinstance(value, dict) or listed(value) is not None


def _known(contents: Contents) -> str:
    if contents.shape == "lines":
        return ""
    layout, _ = _layout(contents)
    if "query" not in layout.roles and "query_id" not in layout.roles:
        return ""
    if set(layout.roles) <= {"query_id", "title", "text", "split", "answer"} and not layout.words:
        return ""
    shown_roles = ("query_id", "query", "relevant", "doc", "retrieved", "grade", "score", "rank")
    return ", ".join(f"{role}={layout.roles[role]}" for role in shown_roles if role in layout.roles)


@reader("records", "rows with named fields", _known, general=True)
def read_records(contents: Contents, asked: ReadRequest) -> Iterator[Item]:
    """Queries, judgments and rankings, by the names of the fields."""
    layout, rows = _layout(contents)
    read = _meaning(contents, layout, rows, asked.kind)
    yield from (Used(role, column) for role, column in layout.roles.items())
    yield from (Used(f"words in the {within}", column) for column, within in layout.words.items())
    if not layout.words and not {"relevant", "doc", "retrieved"} & set(layout.roles):
        others = dict.fromkeys(
            name for row in rows for name in row.fields if name not in layout.roles.values()
        )
        open_names = ", ".join(list(others)[:8]) or "none besides"
        yield FileRemark(
            f"queries alone: no field is known to name documents ({open_names}); --columns relevant=NAME says one"
        )
    queries = list(_queries(layout, rows))
    yield from queries
    metadata = {name for one in queries if isinstance(one, FoundQuery) for name in one.metadata}
    taken = {*layout.roles.values(), *layout.words, "", *metadata}
    held = dict.fromkeys(name for row in rows for name, value in row.fields.items() if plain(value))
    yield from lost_columns([name for name in held if name not in taken])
    yield from read(layout, [row for row in rows if _key(layout, row) != ItemKey()])


def _promptfoo(contents: Contents) -> str:
    if "__expected" in contents.columns:
        return "__expected"
    value = contents.value
    known = (
        isinstance(value, dict) and {"prompts", "tests"} <= set(value) and isinstance(value["tests"], list)
    )
    return "prompts and tests" if known else ""


@reader("promptfoo", "tests of promptfoo", _promptfoo)
def read_promptfoo(contents: Contents, asked: ReadRequest) -> Iterator[Item]:
    """Queries by their variables, and judgments where a variable names the documents; assertions are passed over."""
    yield FileRemark("assertions are about answers, and were passed over")
    yield from read_records(contents, asked)


@reader("qrels", "judgments, a row for each")
def read_qrels_rows(contents: Contents, _: ReadRequest) -> Iterator[Item]:
    """Judgments of rows with named fields, or of lines of three or four columns."""
    if contents.shape == "lines":
        yield from qrels_lines(contents)
    else:
        yield from read_records(contents, ReadRequest("qrels"))


@reader("run", "rankings, a row for each document")
def read_run_rows(contents: Contents, _: ReadRequest) -> Iterator[Item]:
    """Rankings of rows with named fields, or of TREC's lines."""
    if contents.shape == "lines":
        yield from run_lines(contents)
    else:
        yield from read_records(contents, ReadRequest("run"))


Meaning = Callable[[_Layout, list[TableRow]], Iterator[Item]]


def _meaning(contents: Contents, layout: _Layout, rows: list[TableRow], kind: str) -> Meaning:
    """How the documents of rows are read; raises BadValue where the names leave it open."""
    roles = layout.roles
    if kind:
        return _judged if kind == "qrels" else _returned
    if "doc" not in roles or "relevant" in roles:
        return _golden
    if "grade" in roles:
        return _judged_and_returned if {"rank", "score"} & set(roles) else _judged
    if "rank" in roles:
        return _returned
    if "score" in roles:
        return _scored(contents, layout, rows)
    name = roles["doc"]
    raise BadValue(
        f"{contents.path}: the documents in '{name}' may be relevant or returned; say --columns relevant={name}, "
        f"--columns retrieved={name}, or which column is the grade"
    )


def _scored(contents: Contents, layout: _Layout, rows: list[TableRow]) -> Meaning:
    """Whether `score` is a grade or a score: the file's name may say it, and fractions are scores otherwise."""
    if contents.says("qrels", "qrel", "judgments"):
        return _judged
    values = [number(layout.of(row, "score")) for row in rows]
    if contents.says("run", "runs") or any(value is not None and not value.is_integer() for value in values):
        return _returned
    name = layout.roles["score"]
    raise BadValue(
        f"{contents.path}: the whole numbers in '{name}' may be grades or scores; say --columns grade={name}, or "
        "--as run"
    )


def _key(layout: _Layout, row: TableRow) -> ItemKey:
    text = plain(layout.of(row, "query"))
    return ItemKey(text if layout.texts_are_ids else plain(layout.of(row, "query_id")), text)


def _queries(layout: _Layout, rows: list[TableRow]) -> Iterator[Item]:
    """Each query once, with the fields that have one value in all its rows."""
    held: dict[ItemKey, tuple[str, dict[str, Any], bool]] = {}
    taken = {*layout.roles.values(), *layout.words, ""}
    no_lists = 0
    for row in rows:
        key = _key(layout, row)
        if not key.id and not key.text:
            yield Refused(row.where, "neither an identifier nor a text of the query")
            continue
        more = {name: value for name, value in row.fields.items() if name not in taken and _small(value)}
        more |= {role: plain(layout.of(row, role)) for role in ("answer",) if plain(layout.of(row, role))}
        more |= excluded(layout.of(row, "excluded"), layout.of(row, "candidates"))
        where, before, silent = held.get(
            key, (row.where, more, is_unanswerable(row, layout.of(row, "relevant")))
        )
        held[key] = (where, {k: v for k, v in before.items() if more.get(k) == v}, silent)
        no_lists += silent
    if held and no_lists == len(rows) and "relevant" in layout.roles:
        name = layout.roles["relevant"]
        raise BadValue(
            f"'{name}' is empty for every query, as in a template; expected relevant documents for some"
        )
    for key, (where, more, silent) in held.items():
        yield FoundQuery(key, where, more, silent)


def _small(value: object) -> bool:
    """Whether a field is worth keeping beside a query: a scalar, or a few of them."""
    if isinstance(value, list):
        return len(value) <= 50 and all(isinstance(one, (str, int, float)) for one in value) and bool(value)
    return isinstance(value, (bool, int)) or bool(plain(value))


def _golden(layout: _Layout, rows: list[TableRow]) -> Iterator[Item]:
    """Rows of one query each with its relevant documents, or words that they hold, and perhaps what was returned."""
    nothing = 0
    for row in rows:
        key = _key(layout, row)
        items = list(judgments(key, row, layout.of(row, "relevant"), layout.of(row, "grade"), layout.words))
        split, origin = plain(layout.of(row, "split")) or "test", plain(layout.of(row, "origin"))
        yield from (
            replace(one, split=split, origin=origin) if isinstance(one, Judgment) else one for one in items
        )
        nothing += not items
        if "retrieved" in layout.roles:
            yield from _list_returned(layout, row, key)
    if nothing and "relevant" in layout.roles:
        yield FileRemark(f"{nothing} rows name no relevant document")


def _list_returned(layout: _Layout, row: TableRow, key: ItemKey) -> Iterator[Item]:
    returned = listed(layout.of(row, "retrieved"))
    if returned is None:
        yield Refused(row.where, f"no list in '{layout.roles['retrieved']}'")
        return
    documents = [listed_document(one) for one in returned]
    if not all(documents):
        yield Refused(row.where, f"'{layout.roles['retrieved']}' lists what names no document")
        return
    named = [one for one in documents if one]
    yield ranking(key, [ItemKey(one.id) for one in named], row.where, [one.number for one in named])


def _whole_row(layout: _Layout, row: TableRow) -> str:
    """Why a row of one document is none; "" where nothing is wrong."""
    if "" in row.fields:
        return f"more cells than columns ('{row.fields[''][0][:40]}')"
    return "" if plain(layout.of(row, "doc") or layout.of(row, "relevant")) else "no document"


def _judged(layout: _Layout, rows: list[TableRow]) -> Iterator[Item]:
    """A judgment in each row; a row with neither document nor grade is a query without judgments."""
    without = 0
    name = next((role for role in ("grade", "score") if role in layout.roles), "")
    for row in rows:
        doc = plain(layout.of(row, "doc") or layout.of(row, "relevant"))
        grade = layout.of(row, name) if name else 1
        if not doc and not plain(grade) and "" not in row.fields:
            without += 1
            continue
        if reason := _whole_row(layout, row):
            yield Refused(row.where, reason)
            continue
        split, origin = plain(layout.of(row, "split")) or "test", plain(layout.of(row, "origin"))
        yield Judgment(_key(layout, row), ItemKey(doc), grade, row.where, split, origin)
        if text := plain(layout.of(row, "text")):
            yield Document(ItemKey(doc, text), row.where, plain(layout.of(row, "title")))
    if not name:
        yield FileRemark("no column of grades: every document counts as relevant, grade 1")
    if without:
        yield FileRemark(f"{without} rows hold a query and no judgment")


def _returned(layout: _Layout, rows: list[TableRow]) -> Iterator[Item]:
    """A document of a ranking in each row: by score where there is one, else by rank."""
    if not {"score", "rank"} & set(layout.roles):
        yield FileRemark("neither scores nor ranks: the order of rows is taken for the ranking")
    held: dict[ItemKey, list[tuple[float, TableRow]]] = {}
    name = "score" if "score" in layout.roles else "rank" if "rank" in layout.roles else ""
    for at, row in enumerate(rows):
        value = number(layout.of(row, name)) if name else float(at)
        reason = _whole_row(layout, row) or (
            "" if value is not None else f"no number in '{layout.roles[name]}'"
        )
        if reason or value is None:
            yield Refused(row.where, reason)
        else:
            held.setdefault(_key(layout, row), []).append((value, row))
            if text := plain(layout.of(row, "text")):
                doc = plain(layout.of(row, "doc"))
                yield Document(ItemKey(doc, text), row.where, plain(layout.of(row, "title")))
    for key, ranked in held.items():
        ordered = ranked if name == "score" else sorted(ranked, key=lambda one: one[0])
        docs = tuple(
            ItemKey(plain(layout.of(row, "doc") or layout.of(row, "relevant"))) for _, row in ordered
        )
        scores = tuple(value for value, _ in ordered) if name == "score" else ()
        yield Ranking(key, docs, ordered[0][1].where, scores, ordered=name != "score")


def _judged_and_returned(layout: _Layout, rows: list[TableRow]) -> Iterator[Item]:
    """Rows with a grade and a rank or score: judgments, and the ranking that was judged."""
    yield from _judged(layout, [row for row in rows if plain(layout.of(row, "grade"))])
    number_of = "score" if "score" in layout.roles else "rank"
    yield from _returned(layout, [row for row in rows if plain(layout.of(row, number_of))])
