"""Readers of golden sets and tables, of no particular tool."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from weir.core.rounding import counted
from weir.errors import BadValue
from weir.files.column_names import field_names, fold, identifier_names, is_label, of_role, usual
from weir.files.formats import MISSING
from weir.files.one_system import REMEDIES, orders_apart
from weir.plugins.importing.cells import (
    MEANT,
    Cells,
    grade_value,
    has_value,
    identifier,
    is_grade,
    is_identifier,
    is_rounded,
    listed,
    number,
    one_of,
    plain_text,
    refuse_no_identifier,
    take_whole,
)
from weir.plugins.importing.contents import (
    NUMBERED,
    Contents,
    TableRow,
    is_text,
    kind_of_values,
    names_texts,
    numbers_rows,
    part_columns,
    refuse_collections,
    roles_of,
    with_identifiers,
)
from weir.plugins.importing.formats.lines import qrels_lines, rank_lines, run_lines
from weir.plugins.importing.items import (
    ByWords,
    Choices,
    Document,
    FileRemark,
    FoundQuery,
    Item,
    ItemKey,
    Judgment,
    LeftOut,
    Member,
    Ranking,
    Refused,
    Used,
    failure_of,
    member_of,
    names_document,
    nothing_answers,
    places_of,
    ranking_item,
    read_whole,
    value_at,
)
from weir.plugins.importing.readers import reader

# ----------
# Rows of a file, and the roles of their fields.


_NOTHING = MISSING | {"~"}
_PLACEHOLDER = re.compile(r"(REPLACE|TODO|FIXME|CHANGE_?ME|PLACEHOLDER)(_[A-Z_0-9]*)?|TBD|\.\.\.")
_SEVERAL = re.compile(r"\s[|;/•]\s|\n|<br ?/?>|^[^\s:/?]+\s*([|;,]\s*[^\s:/?]+)+$")
_FILE_NAME = re.compile(r".+\.[A-Za-z]\w{0,4}")
_JOINING = re.compile(r"\band\b|[,;|+&，；•]")
_BETWEEN = re.compile(r"\s*(?:\band\b|[\s,;|/+&、，；•])\s*")


def _looks_like_several(name: str) -> bool:
    """Return True if a cell seems to hold several identifiers: separated, alike but for numbers or
    suffixes, or names of files."""
    parts = [part for part in _BETWEEN.split(name) if part]
    words = [word for word in re.split(r"[\s,;|]+", name) if word]
    shapes = (
        [re.sub(r"\d+", "#", part) for part in parts],
        [re.sub(r"(?<=[-_])[^-_]+$", "#", word) for word in words],
        [re.sub(r"^\w+://.*|^.*(?=\.\w+$)", "#", word) for word in words],
    )
    alike = any(len(shape) > 1 and len(set(shape)) == 1 and "#" in shape[0] for shape in shapes)
    joined = [part.strip() for part in _JOINING.split(name)]
    files = len(joined) > 1 and all(map(_FILE_NAME.fullmatch, joined))
    return bool(_SEVERAL.search(name)) or alike or files


def _members(rows: list[TableRow], column: str, between: str) -> Iterator[object]:
    for row in rows:
        value = row.fields.seen(column)
        with suppress(ValueError):  # refused where it is read
            value = value if (members := listed(value)) is None else members
        yield value.split(between) if between and isinstance(value, str) else value


_MARKS = ("|", ";", "•", "；", "，", "、", ",", "&", "+", " and ", " / ")


def _several_in_cell(value: object) -> str:
    told = plain_text(value)
    shown = " ".join(told.split())[:60]
    mark = next((mark for mark in _MARKS if mark in told), "")
    named = f"name the mark between them, as in `choices={{'between': {mark!r}}}`, or " if mark else ""
    return f"'{shown}' looks like several documents in one cell; {named}write them as a JSON list"


def _are_lists(cells: list[str], between: str) -> bool:
    """Return True if cells hold several identifiers: with the mark `between` them, else if half of them look so."""
    if between:
        return any(between in cell for cell in cells)
    return 2 * sum(map(_looks_like_several, cells)) > len(cells)


@dataclass(frozen=True)
class _Layout:
    roles: Mapping[str, str]
    words: Mapping[str, str] = field(default_factory=dict)
    """Field of words -> the part of a document that is searched."""
    texts_are_ids: bool = False
    """Query texts have no blanks and serve as identifiers."""
    by_text: bool = False
    """Documents are known by their texts."""
    returned_by_text: bool = False
    """Documents of `retrieved` are."""
    chosen: Mapping[str, str] = field(default_factory=dict)
    """Role -> field, as the user chose."""
    between: str = ""

    def documents(self, row: TableRow, role: str) -> Any:  # noqa: ANN401  a field holds anything
        value = row.fields.opened(self.roles.get(role, ""))
        if not self.between or not isinstance(value, str) or self.between not in value:
            return value
        return [name for one in value.split(self.between) if (name := one.strip())]

    def of(self, row: TableRow, role: str) -> Any:  # noqa: ANN401  a field holds anything
        return row.fields.get(self.roles[role]) if role in self.roles else None

    def text_of_role(self, row: TableRow, role: str) -> str:
        return row.fields.text(self.roles[role]) if role in self.roles else ""

    def number_of_role(self, row: TableRow, role: str) -> float | None:
        return row.fields.number(self.roles[role]) if role in self.roles else None

    def query(self, row: TableRow) -> ItemKey:
        text = self.text_of_role(row, "query")
        return ItemKey(text if self.texts_are_ids else identifier(self.of(row, "query_id")), text)

    def doc(self, row: TableRow) -> ItemKey:
        name = identifier(self.of(row, "doc")) or identifier(self.of(row, "relevant"))
        return ItemKey("", name.strip()) if self.by_text else ItemKey(name)

    def source(self, row: TableRow) -> tuple[str, str]:
        return self.text_of_role(row, "split") or "test", self.text_of_role(row, "origin")

    def document(self, row: TableRow) -> Iterator[Document]:
        key = self.doc(row)
        if text := key.text or self.text_of_role(row, "text"):
            yield Document(ItemKey(key.id, text), row.where, self.text_of_role(row, "title"))


def _records(contents: Contents) -> list[TableRow]:
    value = contents.value
    if contents.shape == "rows":
        if len(contents.rows) != 1:
            return list(contents.rows)
        fields = dict(contents.rows[0].fields)
        lists = [
            n for n, one in fields.items() if fold(n) in field_names().containers and isinstance(one, list)
        ]
        if len(lists) == 1 and all(isinstance(one, dict) for one in fields[lists[0]]):
            contents.rows[0].fields.take(lists[0])
            return [TableRow.of(f"{lists[0]} {n}", one) for n, one in enumerate(fields[lists[0]], 1)]
        return list(contents.rows)
    if not isinstance(value, dict):
        return []
    containers = [
        name
        for name, one in value.items()
        if isinstance(one, list)
        and any(isinstance(v, dict) for v in one)
        and fold(name) in field_names().containers
    ]
    if len(containers) > 1:
        raise BadValue(
            f"{contents.path}: {' and '.join(containers)} could each be the list of queries; keep one of them"
        )
    if containers:
        members = enumerate(value[containers[0]], 1)
        return [TableRow.of(f"{containers[0]} {n}", one) for n, one in members if isinstance(one, dict)]
    if value and all(isinstance(one, dict) and _has_role(one, "query", "query_id") for one in value.values()):
        rows = [TableRow.of(f"'{name}'", {"query_id": name, **one}) for name, one in value.items()]
        texts = of_role([name for row in rows for name in row.fields], "query")
        numbered = all(map(str.isdecimal, value)) and any(
            numbers_rows("query_id", text, rows) for text in texts
        )
        for n, (row, (name, one)) in enumerate(zip(rows, value.items(), strict=True)):
            own = [plain_text(dict.get(one, column)) for column in of_role(one, "query_id")]
            if own or numbered:  # as pandas numbers rows
                row.fields.pop("query_id", None)
                row.fields.update({} if name in (str(n), *own) else {"index": name}, **one)
            contents.rows[0].fields.take(name)
            one.track_with(row.fields)
        return rows
    asks = _has_role(value, "query", "query_id") or value.keys() & {*contents.roles.values()}
    return [TableRow.of("the object", value)] if asks else []


def _has_role(fields: Mapping[str, Any], *roles: str) -> bool:
    role_names = {name for role in roles for tier in field_names().roles[role] for name in tier}
    return any(fold(name) in role_names for name in fields)


def _flattened(chosen: Collection[str], row: TableRow) -> TableRow:
    fields, groups, renamed = Cells(), dict[str, Cells](), list[str]()
    for name in row.fields:
        if fold(name) in field_names().inner and plain_text(dict.get(row.fields, name))[:1] == "{":
            with suppress(ValueError):  # a text that only begins so
                row.fields.opened(name)
    for name, value in row.fields.items():
        is_group = isinstance(value, Cells) and fold(name) in field_names().inner
        if is_group and not (value and all(number(one) is not None for one in value.values())):
            groups[name] = value
            for inner, one in value.items():
                # `chunks` within `gold` are relevant, as `gold_chunks` are.
                relevant = fold(f"{name}.{inner}") in field_names().every("relevant") and inner not in chosen
                whole = relevant or inner in row.fields or inner in fields
                fields[f"{name}.{inner}" if whole else inner] = one
                renamed += [inner] * (whole and inner not in row.fields)
        else:
            fields[name] = value
    if not groups:
        return row
    row.fields.take(*groups)
    row.fields.track_with(fields, *groups.values())
    row.fields.take(*(inner for inner in renamed if inner not in fields))
    return TableRow(row.where, fields)


def _with_lists(contents: Contents, rows: list[TableRow]) -> list[TableRow]:
    """Return the rows with numbered columns of documents, such as doc_1 and doc_2, joined to a column of lists.

    A column without a number is the first; empty cells are left out. Raises BadValue for numbered grades, scores or
    ranks beside documents, and for several columns of grades.
    """
    columns = dict.fromkeys(name for row in rows for name in row.fields)
    families: dict[str, dict[int, str]] = {}
    for column in columns:
        if numbered := NUMBERED.fullmatch(column):
            families.setdefault(numbered[1], {})[int(numbered[2])] = column
    chosen = set(contents.roles.values())
    for name, members in families.items():
        unnumbered = [column for column in columns if fold(column) == fold(name)]
        members |= {at - len(unnumbered): column for at, column in enumerate(unnumbered)}
    several = [name for name, members in families.items() if len(members) > 1]
    named = {
        name
        for name in usual(several, "relevant")
        if kind_of_values(dict.get(row.fields, one) for row in rows for one in families[name].values())
        != "grade"
    }
    numbers = [name for name in usual(several, "grade", "score", "rank") if name not in named]
    documents = {
        name: families[name]
        for name in usual(several, "relevant", "doc", "retrieved")
        if name not in numbers and chosen.isdisjoint(set(families[name].values()) - {name})
    }
    if not documents:
        grades = [one for name in usual(numbers, "grade") for _, one in sorted(families[name].items())]
        if len(grades) > 1 and chosen.isdisjoint(grades):
            one_of("grade", grades)  # as of several judges
        return rows
    if numbers:
        raise BadValue(
            f"{contents.path}: numbered columns of documents ({next(iter(documents))} ...) and of {numbers[0]}; give a "
            "row for each document"
        )
    joined = []
    for row in rows:
        fields = Cells(row.fields)
        row.fields.track_with(fields)
        for name, members in documents.items():
            listing = [fields.pop(members[n], None) for n in sorted(members)]
            fields[name] = [one for one in listing if has_value(one)]
            fields.take(*members.values())
        joined.append(TableRow(row.where, fields))
    return joined


def _word_fields(columns: list[str], used: Collection[str]) -> dict[str, str]:
    return {
        column: within
        for column in columns
        if column not in used
        for within in ("text", "title", "id")
        if fold(column) in field_names().words[within]
    }


def _refuse_grades_alone(contents: Contents, column: str, rows: list[TableRow]) -> None:
    for row in rows:
        with suppress(ValueError):  # refused where it is read
            members = listed(dict.get(row.fields, column)) or []
            numbers = [number(grade_value(one)) for one in members]
            if None not in numbers and (len(set(numbers)) < len(numbers) or 0.0 in numbers):
                raise BadValue(
                    f"{contents.path}, {row.where}: '{column}' holds lists of grades, and no list of as many documents "
                    f"is beside it; say `columns='relevant=NAME,grade={column}'`, or `columns='relevant={column}'` if "
                    "its numbers are documents"
                )


def _layout(contents: Contents, between: str = "") -> tuple[_Layout, list[TableRow]]:
    chosen = contents.roles.values()
    rows = _with_lists(contents, [_flattened(chosen, row) for row in _records(contents)])
    columns = list(dict.fromkeys(name for row in rows for name in row.fields))
    roles = roles_of(columns, contents.roles, contents.path, rows)

    def kind(role: str) -> str:
        return kind_of_values(dict.get(row.fields, roles[role]) for row in rows) if role in roles else ""

    if kind("grade") == "list" and "doc" not in roles and "relevant" not in roles:
        _refuse_grades_alone(contents, roles["grade"], rows)
        roles["relevant"] = roles.pop("grade")
    elif "doc" in roles:
        # Documents of an open name are relevant where the user named them, or grades stand beside lists of them.
        by_user = "doc" in contents.roles
        if (kind("doc") == "list" and ("grade" in roles or by_user)) or (
            by_user and not {"grade", "score", "rank"} & set(roles)
        ):
            roles["relevant"] = roles.pop("doc")
    elif "query" in roles and "text" in roles and not {"relevant", "retrieved", "answer"} & set(roles):
        roles["doc"] = roles.pop("text")  # a query beside the text of a document
    if (
        "retrieved" in contents.roles
        and kind("retrieved") == "name"
        and not {"doc", "relevant"} & set(roles)
        and not _are_lists([plain_text(row.fields.seen(roles["retrieved"])) for row in rows], between)
    ):
        roles["doc"] = roles.pop("retrieved")  # a row for each document
    if "score" in roles:
        roles.pop("distance", None)
    elif "distance" in roles:
        roles["score"] = roles.pop("distance")
    texts = [plain_text(dict.get(row.fields, roles["query"])) for row in rows] if "query" in roles else []
    texts_are_ids = bool(texts) and "query_id" not in roles and all(map(is_identifier, filter(None, texts)))
    named = roles.get("doc", roles.get("relevant", ""))
    by_text = bool(named) and names_texts(named, _members(rows, named, between))
    words = _word_fields(columns, roles.values())
    returned = roles.get("retrieved", "")
    returned_by_text = bool(returned) and names_texts(returned, _members(rows, returned, between))
    return _Layout(roles, words, texts_are_ids, by_text, returned_by_text, contents.roles, between), rows


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
def read_records(contents: Contents, choices: Choices) -> Iterator[Item]:
    """Yield queries, judgments and rankings from rows, by the names of their fields."""
    yield from _rows(contents, _meaning, choices.between)


@reader("qrels", "judgments, a row for each")
def read_qrels_rows(contents: Contents, _: Choices) -> Iterator[Item]:
    """Yield judgments from rows with named fields, or from lines of two to four columns."""
    if contents.shape == "lines":
        yield from qrels_lines(contents)
    else:
        yield from _rows(contents, lambda *_: _judged)


@reader("run", "rankings, a row for each document")
def read_run_rows(contents: Contents, _: Choices) -> Iterator[Item]:
    """Yield rankings from rows with named fields, or from lines in TREC's format."""
    if contents.shape == "lines":
        yield from run_lines(contents)
    else:
        yield from _rows(contents, lambda *_: _returned)


@reader("run-ranks", "query, document, rank (MS MARCO's run, PyTerrier's minimal)")
def read_ranks(contents: Contents, _: Choices) -> Iterator[Item]:
    """Yield rankings by rank, from named fields, from lines of query, document and rank, or TREC's lines."""
    if contents.shape == "lines":
        yield from rank_lines(contents)
    else:
        yield from _rows(contents, lambda *_: _ranked)


def _promptfoo(contents: Contents) -> str:
    if "__expected" in contents.columns:
        return "__expected"
    is_config = isinstance(value_at(contents.value, "tests"), list) and "prompts" in contents.value
    return "prompts and tests" if is_config else ""


@reader("promptfoo", "tests of promptfoo", _promptfoo)
def read_promptfoo(contents: Contents, _: Choices) -> Iterator[Item]:
    """Yield queries from variables of promptfoo's tests, and judgments if a variable names documents; assertions are
    ignored."""
    yield FileRemark("assertions are about answers, and were ignored")
    yield from _rows(contents, _meaning)


def _rows(
    contents: Contents,
    meaning_of: Callable[[Contents, _Layout, list[TableRow]], Meaning],
    between: str = "",
) -> Iterator[Item]:
    layout, rows = _layout(contents, between)
    read = meaning_of(contents, layout, rows)
    if read is _golden:  # numbers that say nothing of a document are metadata
        judged, ranked = {"relevant"} & set(layout.roles) or layout.words, "retrieved" in layout.roles
        idle = {"rank"} | ({"grade"} if not judged else set()) | ({"score"} if not ranked else set())
        layout = replace(layout, roles={r: name for r, name in layout.roles.items() if r not in idle})
    yield from (Used(role, column) for role, column in layout.roles.items())
    if within := {role: name for role, name in layout.chosen.items() if role not in layout.roles}:
        lists = (value for row in rows for value in row.fields.values() if isinstance(value, list))
        inner = {name for value in lists for one in value if isinstance(one, dict) for name in one}
        yield from (Used(role, name) for role, name in within.items() if name in inner)
    yield from (Used(f"words in the {within}", column) for column, within in layout.words.items())
    if not layout.words and not {"relevant", "doc", "retrieved"} & set(layout.roles):
        yield FileRemark(_queries_alone(layout, rows))
    names = [layout.roles[role] for role in ("query_id", "doc") if role in layout.roles]
    named = [dict.get(row.fields, name) for row in rows for name in names]
    if rounded := sum(map(is_rounded, named)):
        one = next(filter(is_rounded, named))
        yield FileRemark(
            f"identifiers such as {one}, as a spreadsheet rounds long numbers, kept as they are: {rounded:,}"
        )
    if pointed := sum(type(one) is float and one.is_integer() for one in named):
        yield FileRemark(
            f"identifiers that are numbers with a point, such as 7.0, are written as 7: {pointed:,}"
        )
    rows, odd = with_identifiers(rows, names)
    yield from (Refused(where, reason) for where, reason in odd.items())
    known = [row for row in rows if layout.query(row) != ItemKey()]
    by_split = read in (_judged, _golden)  # only judgments are kept apart by split
    told_apart = {role: name for role, name in layout.roles.items() if role != "split" or by_split}
    refuse_collections(contents.path, known, told_apart)
    relevant = layout.roles.get("relevant", "")
    if known and relevant and not any(has_value(dict.get(row.fields, relevant)) for row in known):
        raise BadValue(
            f"'{relevant}' is empty for every query, as in a template; expected relevant documents for some"
        )
    items = list(read(layout, known))  # before the queries: what it leaves is their metadata
    refused = {item.where for item in items if isinstance(item, Refused)}
    refused -= {item.where for item in items if isinstance(item, (Judgment, ByWords, Ranking))}
    sound = [row for row in rows if row.where not in refused]
    found = list(_queries(layout, sound, set() if read is _golden else _of_documents(rows)))
    if read is _golden and "retrieved" not in layout.roles:
        kept = dict.fromkeys(
            name
            for item in found
            if isinstance(item, FoundQuery)
            for name, value in item.metadata.items()
            if isinstance(value, list) and value and all(map(names_document, value))
        )
        yield from map(FileRemark, _lists_kept(usual(kept, "doc", "retrieved")))
    yield from found
    yield from items


def _lists_kept(names: list[str]) -> Iterator[str]:
    if names:
        yield (
            f"kept as metadata of queries: {', '.join(names)}; if a system returned these documents, say "
            f"`columns='retrieved={names[0]}'`"
        )


def _of_documents(rows: Iterable[TableRow]) -> set[str]:
    """Return the columns that by their names say something of a row's document, its judgment or place."""
    known = field_names()
    names = known.ids("doc") | known.every("grade", "score", "distance", "rank") | known.raters
    return {name for row in rows for name in row.fields if fold(name) in names}


def _queries_alone(layout: _Layout, rows: list[TableRow]) -> str:
    used = {*layout.roles.values(), *layout.words, ""}
    others = dict.fromkeys(name for row in rows for name in row.fields if name not in used - {""})
    ranked = {
        name
        for row in rows
        for name, value in row.fields.items()
        if isinstance(value, list) and any(isinstance(one, dict) and of_role(one, "score") for one in value)
    }
    if not others:
        return "queries alone"
    open_names, said = (
        ", ".join(list(others)[:8]),
        f"`columns='retrieved={next(iter(sorted(ranked)), 'NAME')}'`",
    )
    if not ranked:
        said = f"`columns='relevant=NAME'`, or {said} where a system returned them"
    return f"queries alone; if one of {open_names} names documents, say so: {said}"


def _meaning(contents: Contents, layout: _Layout, rows: list[TableRow]) -> Meaning:
    roles = layout.roles
    if "doc" not in roles or "relevant" in roles:
        return _golden
    if roles["doc"] == layout.chosen.get("retrieved"):
        return _returned
    if not {"grade", "score"} & set(roles):
        _refuse_events(contents, layout, rows)
    if "grade" in roles and "rank" in roles and "score" not in roles and "grade" not in layout.chosen:
        grades = [layout.number_of_role(row, "grade") for row in rows]
        if any(grade is not None and not grade.is_integer() for grade in grades):
            name = roles["grade"]
            raise BadValue(
                f"{contents.path}: fractions in '{name}' beside ranks may be scores or grades; add "
                f"`columns='score={name}'` or `columns='grade={name}'`"
            )
    if "grade" in roles:
        return _judged_and_returned if {"rank", "score"} & set(roles) else _judged
    if "rank" in roles:
        return _returned
    if "score" not in roles:
        if _names_pairs(contents, roles):
            return _judged
        name = _likely_documents(layout, rows)
        if graded := _like_grades(contents, layout, rows):
            said, first = ", ".join(graded[:6]) + ", ..." * (len(graded) > 6), graded[0]
            first = f"grade={first}" if name == roles["doc"] else f"doc={name},grade={first}"
            raise BadValue(
                f"{contents.path}: {said} beside '{name}' may be grades; add `columns='{first}'`"
                + ", or one of the others (weir labels people and weir labels agree compare them; to join them, write "
                "a row for each grade and say `choices={'judges': 'majority'}`)"
                * (len(graded) > 1)
                + f"; if they are none, `columns='relevant={name}'` or `columns='retrieved={name}'`"
            )
        raise BadValue(
            f"{contents.path}: the documents in '{name}' may be relevant or returned; add `columns='relevant={name}'`, "
            f"`columns='retrieved={name}'`, or the column of grades"
        )
    # The file's name says whether a score is a grade, else fractions do.
    if contents.says("qrels", "qrel", "judgments"):
        return _judged
    values = [layout.number_of_role(row, "score") for row in rows]
    given = [value for value in values if value is not None]
    distances = of_role([roles["score"]], "distance")
    if (
        distances
        or contents.says("run", "runs")
        or not all(value.is_integer() for value in given)
        or not given
    ):
        return _returned
    name = roles["score"]
    raise BadValue(
        f"{contents.path}: the whole numbers in '{name}' may be grades or scores; add "
        f"`as_kind={ {contents.path.name: 'qrels'} }` or `as_kind={ {contents.path.name: 'run'} }`"
    )


def _likely_documents(layout: _Layout, rows: list[TableRow]) -> str:
    """Return the column that most likely names documents: that of the role, unless it has page numbers, or a value
    for several rows where another of the usual names has more."""
    names = dict.fromkeys(name for row in rows for name in row.fields)
    cells = {name: [dict.get(row.fields, name) for row in rows] for name in names}
    told = {name: {str(value) for value in values if has_value(value)} for name, values in cells.items()}

    def are_pages(name: str) -> bool:
        return fold(name) in field_names().pages and all(number(one) is not None for one in told[name])

    own, known = layout.roles["doc"], field_names().every("relevant", "doc")
    if not are_pages(own) and 2 * len(told[own]) > len(rows):
        return own
    others = [
        name
        for name, values in cells.items()
        if name not in layout.roles.values()
        and (fold(name) in known or (are_pages(own) and any(word in fold(name) for word in _NAMES)))
        and not are_pages(name)
        and (are_pages(own) or len(told[name]) > len(told[own]))
        and kind_of_values(values) in ("name", "list")
    ]
    return max(others, key=lambda name: (fold(name) in known, len(told[name])), default=own)


_NAMES = ("doc", "file", "source", "url", "passage", "chunk")


_LARGE_GRADE = 10


def _like_grades(contents: Contents, layout: _Layout, rows: list[TableRow]) -> list[str]:
    """Return the columns without a role that hold several small whole numbers, or words such as yes and no."""
    found = []
    for name in contents.columns:
        values = [dict.get(row.fields, name) for row in rows]
        numbers = {number(grade_value(value)) for value in values} - {None}
        whole = all(one.is_integer() and 0 <= one <= _LARGE_GRADE for one in numbers if one is not None)
        free = name not in layout.roles.values() and is_label(name) is not False
        if free and whole and len(numbers) > 1 and kind_of_values(values) == "grade":
            found.append(name)
    return found


def _names_pairs(contents: Contents, roles: Mapping[str, str]) -> bool:
    """Return True if two columns name queries and documents unmistakably, in a file that is not called results."""
    named = identifier_names(contents.columns, "query_id", "query", "doc")
    called = contents.says("run", "runs", "result", "results", "ranking", "rankings", "retrieved")
    return len(contents.columns) == 2 == len({*named} & {*roles.values()}) and not called


def _refuse_events(contents: Contents, layout: _Layout, rows: list[TableRow]) -> None:
    words: dict[str, dict[str, None]] = {}
    for row in rows:
        for name, value in row.fields.items():
            if has_value(value) and name not in layout.roles.values():
                words.setdefault(name, {})[plain_text(value)] = None
    for name, told in words.items():
        if set(map(fold, told)) <= field_names().events:
            shown, doc = ", ".join(list(told)[:3]), layout.roles["doc"]
            raise BadValue(
                f"{contents.path}: the rows are events ({shown} in '{name}'), no ranking; count them by query and "
                "document, as columns called clicks and impressions; or, if they are a ranking, say "
                f"`columns='retrieved={doc}'`, if relevant documents, `columns='relevant={doc}'`"
            )


def _queries(layout: _Layout, rows: list[TableRow], others: set[str]) -> Iterator[Item]:
    queries: dict[ItemKey, list[tuple[TableRow, dict[str, Any], bool]]] = {}
    unused: Counter[str] = Counter()
    apart = {*layout.roles.values(), *layout.words, "", *others}
    for row in rows:
        key = layout.query(row)
        if key == ItemKey():
            yield Refused(row.where, "neither an identifier nor a text of the query")
            continue
        relevant = layout.of(row, "relevant")
        blank = bool(layout.between) and isinstance(relevant, str) and not relevant.strip()
        unanswerable = nothing_answers(row.fields, [] if blank else relevant)
        answer = layout.of(row, "answer")
        more = row.fields.rest({*apart, "answer"} if has_value(answer) else apart)
        if has_value(answer):
            more["answer"] = answer if isinstance(answer, (list, dict)) else plain_text(answer)
        try:
            lists = {role: _pool(layout, row, role) for role in ("excluded", "candidates")}
        except ValueError as error:
            yield Refused(row.where, str(error))
            continue
        for role, docs in lists.items():
            more |= {role: [doc.key.id for doc in docs]} if docs else {}
            unused[role] += sum(doc.number is not None or doc.rank is not None for doc in docs)
            for doc in docs:
                yield from doc.document(row.where)
        queries.setdefault(key, []).append((row, more, unanswerable))
    differing: Counter[str] = Counter()
    of_rows = _fields_of_rows([more for _, more, _ in told] for told in queries.values())
    for key, told in queries.items():
        first = told[0][1]
        kept = {
            name: value
            for name, value in first.items()
            if name not in of_rows and all(more.get(name) == value for _, more, _ in told)
        }
        differing.update(name for _, more, _ in told for name in more if name not in kept)
        unanswerable, several = all(no for _, _, no in told), dict.fromkeys(kept, len(told))
        yield FoundQuery(key, told[0][0].where, kept, unanswerable, several)
    yield from (LeftOut(name, count) for name, count in differing.items())
    for role, count in (+unused).items():
        name = layout.roles[role]
        yield LeftOut(f"scores, grades and ranks of {role} ('retrieved={name}' makes '{name}' a run)", count)
    with_text = {key.id for key in queries if key.text}
    silent = {key.id for key in queries} - with_text
    if silent and with_text:
        yield FileRemark(f"queries without a text, which are not written: {len(silent):,}")


def _fields_of_rows(queries: Iterable[list[dict[str, Any]]]) -> set[str]:
    """Return the fields with two values in some query, which therefore describe rows and no query.

    queries: other fields of the rows of each query.

    Fields with a fixed meaning for queries, such as filter, are left to each query.
    """
    found = set[str]()
    for rows in queries:
        values: dict[str, Any] = {}
        for more in rows:
            found.update(name for name, value in more.items() if values.setdefault(name, value) != value)
    return found - MEANT - {"answer"}


def _pool(layout: _Layout, row: TableRow, role: str) -> list[Member]:
    value = layout.documents(row, role)
    listing = value if isinstance(value, list) else [value] if has_value(value) else []
    docs = [one for one in listing if isinstance(one, (dict, list)) or not _names_nothing(one)]
    found = [member for member in (member_of(one, layout.chosen) for one in docs) if member and member.key.id]
    several = listing == [value] and found and _looks_like_several(found[0].key.id)
    if len(found) < len(docs) or several:
        raise ValueError(f"'{str(value)[:60]}' in '{layout.roles[role]}' is no list of documents")
    return found


def _golden(layout: _Layout, rows: list[TableRow]) -> Iterator[Item]:
    silent_rows, systems = 0, _system_columns(layout, rows) if "retrieved" in layout.roles else []
    for row in rows:
        items = read_whole(row, partial(_relevant, layout)) + read_whole(
            row, partial(_by_words_of_row, layout)
        )
        silent_rows += not any(isinstance(item, (Judgment, ByWords, Refused)) for item in items)
        if "retrieved" in layout.roles:
            run = " ".join(row.fields.text(name) for name in systems)
            items += read_whole(row, partial(_listed_ranking, layout, run))
        judged = any(isinstance(item, Judgment) for item in items)
        split, origin = layout.source(row) if judged else ("", "")
        for item in items:
            yield replace(item, split=split, origin=origin) if isinstance(item, Judgment) else item
    if silent_rows and "relevant" in layout.roles:
        yield FileRemark(f"{counted(silent_rows, 'row names', 'rows name')} no relevant document")


def _listed_ranking(layout: _Layout, run: str, row: TableRow) -> Iterator[Item]:
    name = layout.roles["retrieved"]
    members = layout.documents(row, "retrieved")
    if failure := failure_of(row.fields):
        raise ValueError(failure)
    if isinstance(members, str) and _looks_like_several(members):
        raise ValueError(_several_in_cell(members))
    if isinstance(members, str) and layout.between:
        members = [members.strip()] if has_value(members) else []
    if not isinstance(members, list):
        raise ValueError(f"no list in '{name}'")
    docs = [member_of(one, layout.chosen) for one in members]
    ranked = [one for one in docs if one is not None]
    if layout.returned_by_text:
        keys = [one.key if one.key.text else ItemKey("", one.key.id.strip()) for one in ranked]
        ranked = [replace(one, key=key) for one, key in zip(ranked, keys, strict=True)]
    if len(ranked) < len(docs):
        raise ValueError(f"a member of the list '{name}' names no document")
    told = [one.grade for one in ranked if one.grade not in (None, "")]
    judged = any(map(is_grade, told))
    if told and not judged:
        yield LeftOut(f"words beside documents in {name}, which are no grades", len(told))
    numbers = [number(one.grade) for one in ranked if one.score is None]
    if judged and "grade" not in layout.chosen and any(n is not None and not n.is_integer() for n in numbers):
        raise ValueError(
            f"fractions beside the documents returned in '{name}' may be scores or grades; add `columns='score=NAME'` "
            "or `columns='grade=NAME'`"
        )
    for one in ranked:
        yield from one.document(row.where)
        if judged and one.grade not in (None, ""):
            yield Judgment(layout.query(row), one.key, one.grade, row.where)
    scores = [one.score for one in ranked]
    beside = listed(row.fields.seen(layout.roles.get("score", "")))
    if beside is not None and len(beside) == len(ranked):
        row.fields.take(layout.roles["score"])
        numbers = list(map(number, beside))
        yield from _of_distances(layout.roles["score"])
        sign = _sign(layout.roles["score"])
        scores = [None if value is None else sign * value for value in numbers]
    order, ranks = places_of(members, ranked)
    keys, scores = [ranked[n].key for n in order], [scores[n] for n in order]
    yield ranking_item(layout.query(row), keys, row.where, scores, run, ranks)


def _sign(column: str) -> float:
    return -1.0 if of_role([column], "distance") else 1.0


def _of_distances(column: str) -> Iterator[FileRemark]:
    if _sign(column) < 0:
        yield FileRemark(f"'{column}' is a distance, of which less is better: the scores are its negative")


def _relevant(layout: _Layout, row: TableRow) -> Iterator[Item]:
    key, value = layout.query(row), layout.documents(row, "relevant")
    if not has_value(value):
        return
    grade = layout.of(row, "grade") if "grade" in layout.roles else 1
    grade = "" if grade is None else grade  # a blank grade is refused
    name = layout.roles["relevant"]
    if titles := _titles(name, value):
        yield LeftOut(f"numbers of sentences in {name}", 1)
        value = titles
    if isinstance(value, Cells) and not _is_graded(value):
        value = [value]
    if isinstance(value, dict):
        take_whole(value)
        for doc, doc_grade in value.items():
            yield from _one(layout, key, row, doc, doc_grade)
    elif isinstance(value, list):
        if layout.between == "," and len(value) > 1 and "." in plain_text(grade):  # 1,0 is 1.0 by now
            raise ValueError(
                f"'{plain_text(grade)}' beside several documents may be several grades; write a JSON list"
            )
        beside = listed(grade)
        grades = beside if beside is not None and len(beside) == len(value) else [grade] * len(value)
        for one, own in zip(value, grades, strict=True):
            if isinstance(one, dict):
                yield from _object(layout, key, row, one, own)
            elif isinstance(one, list):
                yield Refused(
                    row.where,
                    "a list within the list of relevant documents; expected identifiers, or an object of their grades",
                )
            elif _names_nothing(one):
                yield LeftOut(f"'{plain_text(one)}' in {layout.roles['relevant']}", 1)
            else:
                yield from _one(
                    layout, key, row, one, own.get(identifier(one), "") if isinstance(own, dict) else own
                )
    elif not layout.by_text and _looks_like_several(plain_text(value)):
        yield Refused(row.where, _several_in_cell(value))
    else:
        yield from _one(layout, key, row, value, grade)


def _titles(name: str, value: object) -> list[object]:
    """Return the titles of HotpotQA's supporting facts, pairs of a title and the number of a sentence or two lists of
    them; [] for other fields."""
    if fold(name.rpartition(".")[2]) != "supportingfacts":
        return []
    if isinstance(value, Cells) and isinstance(titles := value.seen("title"), list):
        take_whole(value)
        return list(dict.fromkeys(titles))
    pairs = (
        [one for one in value if isinstance(one, list) and len(one) == 2] if isinstance(value, list) else []
    )
    return list(dict.fromkeys(plain_text(title) for title, _ in pairs)) if pairs == value else []


def _is_graded(value: Cells) -> bool:
    return all(is_grade(one) for one in value.values()) and not usual(value, "doc", "id")


def _by_words_of_row(layout: _Layout, row: TableRow) -> Iterator[Item]:
    if not layout.words:
        return
    grade = layout.of(row, "grade") if "grade" in layout.roles else 1
    found = _by_words(layout.query(row), row.where, row.fields, layout.words, grade)
    yield from (one for one in found if one.words)


def _by_words(
    key: ItemKey, where: str, fields: Mapping[str, Any], words: Mapping[str, str], grade: object = 1
) -> Iterator[ByWords]:
    for column, within in words.items():
        texts = listed(fields.get(column))
        phrases = tuple(filter(None, map(plain_text, [fields.get(column)] if texts is None else texts)))
        how = next((how for how in ("all", "any") if fold(column) in field_names().words[how]), "")
        yield ByWords(key, phrases, column, where, how, within, grade)


def _object(
    layout: _Layout, key: ItemKey, row: TableRow, one: dict[str, Any], beside: object
) -> Iterator[Item]:
    words = _word_fields(list(one), ())
    member = member_of(one, layout.chosen)
    if member is None and not words:
        names_of = ", ".join(map(str, one))[:60]
        yield Refused(row.where, f"an object without a document's identifier ({names_of})")
        return
    if isinstance(beside, dict):
        beside = beside.get(member.key.id, "") if member is not None else ""
    own = member is not None and (member.grade is not None or "grade" not in layout.roles)
    grade = member.relevance() if member is not None and own else beside
    if words and (member is None or not member.key.id):
        yield from _by_words(key, row.where, one, words, grade)
    elif member is not None and member.key.id:
        yield from _one(layout, key, row, member.key.id, grade)
        yield from member.document(row.where)
    elif member is not None:
        yield Judgment(key, member.key, grade, row.where)
        yield from member.document(row.where)


def _names_nothing(doc: object) -> bool:
    return plain_text(doc).casefold() in _NOTHING


def _one(layout: _Layout, key: ItemKey, row: TableRow, doc: object, grade: object) -> Iterator[Item]:
    if _names_nothing(doc):
        return
    refuse_no_identifier(layout.roles["relevant"], doc)
    name = plain_text(doc) if layout.by_text else identifier(doc)
    if layout.by_text:
        yield Document(ItemKey("", name), row.where)
        yield Judgment(key, ItemKey("", name), grade, row.where)
    elif is_text(name):
        yield Refused(row.where, f"'{name[:40]}...' is a text, not the identifier of a document")
    elif _PLACEHOLDER.fullmatch(name.strip()):
        yield Refused(row.where, f"'{name[:60]}' is a placeholder that nobody filled")
    else:
        yield Judgment(key, ItemKey(name), grade, row.where)


def _judged(layout: _Layout, rows: list[TableRow]) -> Iterator[Item]:
    queries_alone = unjudged = 0
    role = next((role for role in ("grade", "score") if role in layout.roles), "")
    for row in rows:
        grade, doc = layout.of(row, role) if role else 1, layout.doc(row)
        missing = not isinstance(grade, (dict, list)) and plain_text(grade).casefold() in MISSING
        if doc == ItemKey() and missing:
            queries_alone += 1
        elif doc == ItemKey():
            yield Refused(row.where, "no document")
        elif role and missing and layout.query(row) != ItemKey():
            unjudged += 1
            yield from layout.document(row)
        else:
            yield Judgment(layout.query(row), doc, grade, row.where, *layout.source(row))
            yield from layout.document(row)
    if not role:
        yield FileRemark("no column of grades: every document counts as relevant, grade 1")
    if queries_alone:
        yield FileRemark(f"{queries_alone} rows hold a query and no judgment")
    if unjudged:
        yield FileRemark(f"rows without a grade, which are unjudged: {unjudged:,}")


def _ranked(layout: _Layout, rows: list[TableRow]) -> Iterator[Item]:
    if "rank" not in layout.roles:
        raise BadValue("no column of ranks; name it, as in `columns='rank=NAME'`")
    yield from _returned(layout, rows, "rank")


def _returned(layout: _Layout, rows: list[TableRow], by: str = "") -> Iterator[Item]:
    role = by or next((role for role in ("score", "rank") if role in layout.roles), "")
    if not role:
        yield FileRemark("neither scores nor ranks: the order of the rows is the ranking")
    scored = role == "score"
    sign = _sign(layout.roles[role]) if scored else 1.0
    if sign < 0:
        yield from _of_distances(layout.roles[role])
        role = "rank" if "rank" in layout.roles else role  # some engines call a similarity so
    at_ranks = {
        (layout.query(row), plain_text(row.fields.seen(layout.roles.get("rank", "")))) for row in rows
    }
    # Rows of several systems, unless ranks go on from one to the other, with other documents.
    pairs = {(layout.query(row), layout.doc(row)) for row in rows}
    several = not ("rank" in layout.roles and len(at_ranks) == len(pairs) == len(rows))
    systems = _system_columns(layout, rows) if several else []
    if several and role and not systems:
        _refuse_orders_apart(layout, rows, role)
    rankings: dict[tuple[str, ItemKey], list[tuple[float, TableRow]]] = {}
    for position, row in enumerate(rows):
        value = layout.number_of_role(row, role) if role else float(position)
        if layout.doc(row) == ItemKey():
            yield Refused(row.where, "no document")
        elif value is None:
            shown = plain_text(dict.get(row.fields, layout.roles[role]))[:40]
            yield Refused(row.where, f"'{shown}' in '{layout.roles[role]}' is no number")
        else:
            run = " ".join(row.fields.text(name) for name in systems)
            rankings.setdefault((run, layout.query(row)), []).append((value, row))
            yield from layout.document(row)
    for (run, key), ranked in rankings.items():
        if role != "score":
            ranked.sort(key=lambda one: one[0])
        docs = tuple(layout.doc(row) for _, row in ranked)
        numbers = [layout.number_of_role(row, "score") for _, row in ranked] if scored else [None]
        scores = tuple(sign * value for value in numbers if value is not None) if None not in numbers else ()
        places = [layout.number_of_role(row, "rank") for _, row in ranked]
        ranks = (
            tuple(math.nan if place is None else place for place in places) if "rank" in layout.roles else ()
        )
        unused = sum(value is not None for value in numbers) - len(scores)
        ordered = role != "score"
        yield Ranking(key, docs, ranked[0][1].where, scores, run, ordered=ordered, ranks=ranks, unused=unused)


def _system_columns(layout: _Layout, rows: list[TableRow]) -> list[str]:
    if "system" in layout.roles:
        return [layout.roles["system"]]
    return [
        name
        for name in part_columns(rows, "system", {*layout.roles.values(), *layout.words})
        if len({plain_text(dict.get(row.fields, name)) for row in rows}) > 1
    ]


def _refuse_orders_apart(layout: _Layout, rows: list[TableRow], role: str) -> None:
    names = dict.fromkeys(name for row in rows for name in row.fields)
    for name in (name for name in names if name not in {*layout.roles.values(), *layout.words}):
        cells = (
            (layout.query(row), plain_text(dict.get(row.fields, name)), layout.number_of_role(row, role))
            for row in rows
        )
        shown = ((query.id or query.text, value, score) for query, value, score in cells)
        if found := orders_apart(name, shown):
            raise BadValue(f"found {found}; expected {REMEDIES['order']}")


def _judged_and_returned(layout: _Layout, rows: list[TableRow]) -> Iterator[Item]:
    role = "score" if "score" in layout.roles else "rank"

    def having(one: str) -> list[TableRow]:
        return [row for row in rows if plain_text(dict.get(row.fields, layout.roles[one]))]

    judged, returned = having("grade"), having(role)
    yield from _judged(layout, judged)
    yield from _returned(layout, returned)
    places = {row.where for row in (*judged, *returned)}
    if count := sum(row.where not in places and layout.doc(row) != ItemKey() for row in rows):
        yield LeftOut(f"rows without a grade and a {role}", count)
