"""A file of unknown format as a value, rows or lines, with roles of columns."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, TypeAlias

from weir.core.strings import first_repeated
from weir.errors import BadValue, FormatError, UnknownName, require
from weir.files.column_names import Part, field_names, fold, identifier_names, is_header, of_role, usual
from weir.files.formats import (
    ARROW_TABLES,
    HEADER_AGAIN,
    MISSING,
    SEMICOLON,
    cells_of,
    csv_separator,
    decimal_points,
    head_of,
    named_separator,
    say_remarks,
)
from weir.files.json_files import read_blocks
from weir.files.json_record import require_held, require_values
from weir.files.layouts import naming_path
from weir.files.one_system import REMEDIES, mixed_row
from weir.files.pickles import is_pickle, read_pickle
from weir.files.records import holds_text
from weir.files.tables import table_batches, table_columns, table_errors, unpacked_bytes
from weir.files.text_files import DAMAGE, damaged, decoded, open_bytes, read_bytes, read_text, unpacked_name
from weir.plugins.importing.cells import (
    Cells,
    RepeatedNameError,
    SingleFloat,
    Spelled,
    each_record,
    grade_value,
    has_value,
    is_grade,
    is_identifier,
    listed,
    number,
    one_of,
    plain_text,
    refuse_no_identifier,
    spelled,
    unique_cells,
)
from weir.settings import IMPORT_BYTES

# ----------
# Roles of fields, by their names or as the user says.


ROLES = (
    "query_id",
    "query",
    "relevant",
    "doc",
    "retrieved",
    "grade",
    "score",
    "rank",
    "text",
    "title",
    "split",
    "system",
    "origin",
    "excluded",
    "candidates",
    "answer",
    "clicks",
    "impressions",
    "clicked",
)


@dataclass(frozen=True)
class TableRow:
    """A record of an imported file."""

    where: str
    """Its place in the file, such as "line 3" or "entry 2"."""
    fields: Cells

    @staticmethod
    def of(where: str, fields: Mapping[str, Any]) -> TableRow:
        """Return a record whose fields remember whether they were used."""
        return TableRow(where, fields if isinstance(fields, Cells) else Cells(fields))


def parse_columns(text: str) -> dict[str, str]:
    """Return {role: column} from text such as `query=q,doc=url,grade=3`; a column is a name, or a number from 1.

    Raises BadValue for another form, and for two columns of a role; roles are not looked up.
    """
    roles: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        role, _, column = (piece.strip() for piece in part.partition("="))
        if not role or not column:
            raise BadValue(
                f"`columns`: found '{part}'; expected role=column, as in query=q,doc=url,grade=ctr"
            )
        if roles.get(role, column) != column:
            raise BadValue(
                f"`columns`: found {role} as {roles[role]} and as {column}; expected each role once"
            )
        roles[role] = column
    return roles


def check_roles(roles: Iterable[str]) -> None:
    """Raise UnknownName for a role that is not in ROLES."""
    for role in roles:
        if role not in ROLES:
            raise UnknownName("role of a column", role, ROLES)


def click_columns(columns: Iterable[str], chosen: Mapping[str, str]) -> dict[str, str]:
    """Return {role: column} for clicks, impressions and clicked; raises BadValue if several columns fit a role.

    chosen: the user's {role: column}, which goes first.
    """
    listed, click_names = list(columns), field_names().clicks
    roles = {role: column for role, column in chosen.items() if role in click_names and column in listed}
    for role in click_names.keys() - roles.keys():
        found = [column for column in listed if fold(column) in click_names[role]]
        if len(found) > 1:
            one_of(role, found)
        roles |= dict.fromkeys([role], found[0]) if found else {}
    return roles


# ----------
# Roles by names and by evidence: where a name fits two roles, or two columns one role, the values decide, or the user.


_SCALE_GRADES = 12  # different grades of a scale
_KIND_SHARE = 0.8  # of the values of a column that are of its kind: single odd ones are refused by their line
ValueKind: TypeAlias = Literal["", "list", "grade", "text", "name"]
""""name" is identifiers and titles; "" is no values."""


def kind_of_values(values: Iterable[object]) -> ValueKind:
    """Return the kind of a column's values: "list" if any is a list, "grade" or "text" if 80% are, else "name".

    Many different whole numbers are names. Missing values do not count; "" without values.
    """
    given = [
        value
        for value in values
        if has_value(value) and plain_text(value).casefold() not in MISSING - {""} | {"-"}
    ]
    if not given:
        return ""
    if any(isinstance(value, (list, dict)) or _begins_list(value) for value in given):
        return "list"
    grades = [value for value in given if is_grade(value)]
    if len(grades) >= _KIND_SHARE * len(given):
        few = len(set(map(plain_text, grades))) <= _SCALE_GRADES
        fractions = any(not (number(value) or 0.0).is_integer() for value in grades)
        return "grade" if few or fractions else "name"
    texts = sum(is_text(value) for value in given)
    return "text" if texts >= _KIND_SHARE * len(given) else "name"


def is_text(value: object) -> bool:
    """Return True for a scalar of more than 20 words."""
    return holds_text(plain_text(value))


def names_texts(column: str, values: Iterable[object]) -> bool:
    """Return True if a column of documents holds their texts, not identifiers, by its name and values."""
    members = [
        one for value in values for one in (value if isinstance(value, list) else [value]) if plain_text(one)
    ]
    if kind_of_values(members) == "text":
        return True
    sentences = sum(len(plain_text(one).split()) > 3 for one in members)
    called = fold(column) in field_names().every("text") or fold(column).endswith(
        ("passages", "chunks", "contexts")
    )
    return bool(members) and called and sentences >= _KIND_SHARE * len(members)


def _begins_list(value: object) -> bool:
    try:
        return isinstance(value, str) and spelled(value) is not None
    except ValueError:
        return True


def roles_of(
    columns: Iterable[str], chosen: Mapping[str, str], path: object, rows: Sequence[TableRow] = ()
) -> dict[str, str]:
    """Return {role, such as "query": column} by the names of columns, and by values where names do not decide.

    chosen: the user's {role: column}, which goes first; absent columns are ignored.

    Raises BadValue if several columns fit a role.
    """
    listed = list(columns)
    roles = {role: column for role, column in chosen.items() if column in listed}
    free = [column for column in listed if column not in roles.values() and not str(column).startswith("__")]
    kinds = {column: kind_of_values(dict.get(row.fields, column) for row in rows) for column in free if rows}
    graded = _beside_grades([*free, *roles.values()], roles.get("grade", ""), rows)
    for role in field_names().roles:
        if role == "id" or role in roles or (role == "doc" and "relevant" in roles):
            continue
        candidates = of_role(free, role)
        if role == "relevant":
            if "doc" in roles:
                continue
            # Few numbers beside a column of documents are grades.
            beside = of_role(free, "doc")
            candidates = [
                one for one in candidates if one not in graded and not (beside and kinds.get(one) == "grade")
            ]
            told = [
                value for row in rows for one in candidates if has_value(value := dict.get(row.fields, one))
            ]
            if candidates and not beside and kinds.get(candidates[0]) == "grade" and _are_flags(told):
                raise BadValue(
                    f"{path}: '{candidates[0]}' holds grades, and no known column names documents; say which, as in "
                    f"`columns='doc=NAME,grade={candidates[0]}'`, or `columns='relevant={candidates[0]}'` if it does"
                )
            open_names = field_names().every("grade").intersection(map(fold, candidates))
            if open_names and beside and kinds.get(candidates[0]) in ("name", "text"):
                words = not all(map(is_grade, told))
                what = "grades in words without a number; write numbers, or " if words else "grades; "
                raise BadValue(
                    f"{path}: '{candidates[0]}' beside '{beside[0]}' may hold documents, or {what}say "
                    f"`columns='doc={beside[0]},grade={candidates[0]}'`, or `columns='relevant={candidates[0]}'`"
                )
        elif role == "grade":
            also_documents = field_names().every("relevant")
            candidates = [
                one
                for one in candidates
                if fold(one) not in also_documents or kinds.get(one) == "grade" or one in graded
            ]
        if len(candidates) > 1:
            candidates = _by_evidence(role, candidates, kinds)
        if len(candidates) > 1:
            one_of("doc" if role == "relevant" else role, candidates)
        if candidates:
            roles[role] = candidates[0]
            free.remove(candidates[0])
    documents = graded.get(roles.get("grade", ""), [])
    if documents and not {"relevant", "doc"} & set(roles):
        if len(documents) > 1:
            one_of("doc", documents)
        roles["relevant"] = documents[0]
    ids = [column for column in free if fold(column) == "id"]
    if len(ids) > 1 and any(len({plain_text(dict.get(row.fields, one)) for one in ids}) > 1 for row in rows):
        one_of("query_id", ids)
    if ids and (role := _role_of_id(ids[0], roles, chosen, kinds, rows, path)):
        roles[role] = ids[0]
    return roles


def _beside_grades(columns: Sequence[str], chosen: str, rows: Sequence[TableRow]) -> dict[str, list[str]]:
    """Return {column of lists of grades: columns whose lists name as many documents in each row}.

    chosen: the user's column of grades, whatever its name; "" for none.
    """

    def lists(column: str) -> list[list[Any] | None]:
        found: list[list[Any] | None] = []
        for row in rows:
            with suppress(ValueError):  # refused where it is read
                found.append(listed(dict.get(row.fields, column)))
                continue
            found.append(None)
        return found

    def name_documents(column: str, members: list[Any] | None) -> bool:
        names = [plain_text(one) for one in members or ()]
        objects = all(isinstance(one, dict) for one in members or ())
        words = fold(column) in documents or all(map(is_identifier, names))
        return bool(members) and (objects or (words and all(names) and len(set(names)) == len(names)))

    known = field_names()
    documents, numbers = known.every("relevant", "doc", "retrieved"), known.every("grade", "score", "rank")
    found: dict[str, list[str]] = {}
    for column in columns:
        if not column or (column != chosen and fold(column) not in known.every("grade")):
            continue
        grades = lists(column)
        told = [one for one in grades if one]
        if kind_of_values(one for row in told for one in row) != "grade":
            continue
        beside = []
        for other in columns:
            if other == column or fold(other) in numbers | known.every("distance"):
                continue
            pairs = [(one, of) for one, of in zip(grades, lists(other), strict=True) if one]
            fit = sum(len(one) == len(of or ()) and name_documents(other, of) for one, of in pairs)
            beside += [other] * (fit >= _KIND_SHARE * len(pairs))
        if beside:
            found[column] = usual(beside, "relevant", "doc", "retrieved") or beside
    return found


def _role_of_id(
    own: str,
    roles: Mapping[str, str],
    chosen: Mapping[str, str],
    kinds: Mapping[str, str],
    rows: Sequence[TableRow],
    path: object,
) -> str:
    if "query" not in roles:
        return "id" if "doc" not in roles and "query_id" not in chosen else ""
    if "query_id" in roles:
        return ""
    named = roles.get("doc", "")
    if "doc" not in chosen and names_texts(named, (row.fields.seen(named) for row in rows)):
        raise BadValue(
            f"{path}: {own} could be the identifier of the query or of the document; choose one, as in "
            f"`columns='query_id={own}'` or `columns='doc={own},text={roles['doc']}'`"
        )
    if not numbers_rows(own, roles["query"], rows):
        return "query_id"
    if {"doc", "relevant"} & set(roles):
        return "query_id" if kinds.get(roles.get("relevant", named), "name") == "list" else ""
    if {"grade", "score", "distance", "rank"} & set(roles):
        raise BadValue(
            f"{path}: {own} could be the identifier of the query or of the document, as one query has several; "
            f"choose one, as in `columns='doc={own}'` or `columns='query_id={own}'`"
        )
    return "query_id"


def numbers_rows(column: str, query: str, rows: Sequence[TableRow]) -> bool:
    """Return True if a column only numbers rows: its values never repeat, and rows of one query differ.

    query: the column with the text of queries.
    """
    names, of_text, differ = set[str](), dict[str, str](), False
    for row in rows:
        if not (name := plain_text(dict.get(row.fields, column))):
            continue
        if name in names:
            return False
        names.add(name)
        text = plain_text(dict.get(row.fields, query))
        differ |= bool(text) and of_text.setdefault(text, name) != name
    return differ


def _are_flags(values: Sequence[object]) -> bool:
    numbers = {number(grade_value(value)) for value in values}
    return numbers <= {0.0, 1.0} and (
        len(numbers) == 2
        or not any(number(value) is not None and not isinstance(value, bool) for value in values)
    )


def _by_evidence(role: str, candidates: list[str], kinds: Mapping[str, ValueKind]) -> list[str]:
    filled = [one for one in candidates if kinds.get(one, "name")] or candidates
    kind = {"grade": ("grade",), "doc": ("name", "list", "grade"), "text": ("text",)}.get(role)
    fitting = [one for one in filled if kind is not None and kinds.get(one, "name") in kind]
    return fitting or filled


def part_columns(rows: Sequence[TableRow], part: Part, used: Collection[str]) -> list[str]:
    """Return the unused columns, known by their names, that tell rows of several systems or collections apart.

    part: "system" or "collection".
    """
    names = dict.fromkeys(name for row in rows for name in row.fields)
    return [name for name in names if fold(name) in field_names().parts[part] and name not in used]


def refuse_collections(path: object, rows: Sequence[TableRow], roles: Mapping[str, str]) -> None:
    """Raise BadValue if rows of one query belong to several collections.

    roles: {role: column}.
    """

    def cell(row: TableRow, role: str) -> str:
        return plain_text(row.fields.seen(roles.get(role, "")))

    for name in part_columns(rows, "collection", set(roles.values())):
        parts = [
            (
                row.where,
                cell(row, "query_id") or cell(row, "query"),
                plain_text(dict.get(row.fields, name)),
                cell(row, "rank"),
            )
            for row in rows
        ]
        if found := mixed_row(parts):
            (where, query, other, _), first = found
            raise BadValue(
                f"{path}, {where}: a row of {name} '{other[:40]}' for query '{query[:40]}', which began with {name} "
                f"'{first[:40]}'; expected {REMEDIES['collection']}"
            )


def with_identifiers(
    rows: Sequence[TableRow], columns: Iterable[str]
) -> tuple[list[TableRow], dict[str, str]]:
    """Return (rows whose values in these columns can be identifiers, {place: reason} of the other rows)."""
    names, odd = list(columns), dict[str, str]()
    for row in rows:
        try:
            for name in names:
                refuse_no_identifier(name, dict.get(row.fields, name))
        except ValueError as error:
            odd[row.where] = str(error)
    return [row for row in rows if row.where not in odd], odd


def identifier_column(contents: Contents, *roles: str, role: str = "doc") -> tuple[str, list[str]]:
    """Return (column of identifiers or "", other candidates, whose values repeat).

    roles: roles whose usual names may be identifiers, too.
    role: the role that the user may have given.

    Raises BadValue if several columns are possible.
    """
    if role in contents.roles:
        return contents.roles[role], []
    found = [name for name in contents.columns if name == "_id"] or [
        *of_role(contents.columns, "id"),
        *identifier_names(contents.columns, *roles),
    ]
    values = {name: [plain_text(dict.get(row.fields, name)) for row in contents.rows] for name in found}
    found = [name for name in found if any(values[name])] or found[:1]
    if len(found) < 2:
        return next(iter(found), ""), []
    apart = [name for name in found if all(values[name]) and len(set(values[name])) == len(values[name])]
    if len(apart) > 1 and all(values[name] == values[apart[0]] for name in apart):
        apart = apart[:1]
    if len(apart) != 1:
        one_of(role, apart or found)
    return apart[0], sorted(name for name in found if name != apart[0])


def text_column(contents: Contents, used: str) -> str:
    """Return the name of the column of texts, "" for none; raises BadValue for several.

    used: the column of identifiers, which is not considered.
    """
    if "text" in contents.roles:
        return contents.roles["text"]
    found = of_role([name for name in contents.columns if name != used], "text")
    if len(found) > 1:
        found = [
            n for n in found if any(has_value(dict.get(row.fields, n)) for row in contents.rows)
        ] or found[:1]
    if len(found) > 1:
        one_of("text", found)
    return next(iter(found), "")


def held_roles(contents: Contents) -> dict[str, str]:
    """Return the user's {role: column} of which the file has the column, also as a field of objects within it; a role
    whose column stands in other files alone is left to the file's own names."""
    if contents.shape == "lines":
        return dict(contents.roles)
    names = set(contents.columns)
    if set(contents.roles.values()) - names:
        records = list(each_record([row.fields for row in contents.rows] or contents.value))
        names.update(name for one in records for name in one)
        names.update(numbered[1] for name in names.copy() if (numbered := NUMBERED.fullmatch(name)))
    if absent := set(contents.roles.values()) - names:
        within = re.compile(rf"""\\*['"]({"|".join(map(re.escape, sorted(absent)))})\\*['"]\s*:""")
        cells = (value for one in records for value in one.values() if isinstance(value, str))
        names.update(name for cell in cells if cell[:1] in ("[", "{") for name in within.findall(cell))
    return {
        role: column
        for role, column in contents.roles.items()
        if column in names or column.rpartition(".")[2] in names
    }


NUMBERED = re.compile(r"(.*[^\W\d_])[\s_.\-\[(]*(\d+)[\])]?")
"""A column of several, such as doc_1 and doc_2: its name and number."""


# ----------
# Tables as text: the separator and the header.


_QUOTED_CELL = re.compile(r'"((?:[^"]|"")*)"')
BEYOND = "\0"
"""The key of the reason why a row is refused: it has more cells than columns."""
TOTALS = "\0totals"
"""The key of a remark on a last row that sums up the others, and is none."""
_NUMBERS = ("grade", "score", "rank", "clicks", "impressions")


def _table(
    path: Path, text: str, suffix: str, chosen: Mapping[str, str]
) -> tuple[tuple[str, ...], list[TableRow]]:
    first, _, rest = text.partition("\n")
    named = named_separator(first)
    text = f"\n{rest}" if named else text
    separator = named or _separator_of(text, suffix, frozenset(chosen.values()))
    if not separator:
        return (), []
    records, literal = _records(path, text, separator)
    if not records:
        raise FormatError(path, "no row", "a table of queries, judgments or rankings")
    cells = [cell.strip().removeprefix("\ufeff") for cell in records[0][1]]
    header: tuple[str, ...] = ()
    columns = tuple(str(n) for n in range(1, max(len(row) for _, row in records) + 1))
    if _is_header(cells, frozenset(chosen.values())):
        header = columns = tuple(name or f"column {n}" for n, name in enumerate(cells, 1))
        if (name := first_repeated(header)) is not None:
            raise FormatError(path, f"two columns named '{name[:60]}'", "each name once", 1)
        lines = text.split("\n")[: records[0][0] - 1]  # before the header
        say_remarks(path, sum(line.startswith("#") for line in lines))
        if len(records) == 1:
            raise FormatError(
                path, f"the header {', '.join(header)[:80]} and no row below it", "a row for each record"
            )
        records = records[1:]
    records = list(decimal_points(path, iter(records), _number_columns(columns, chosen), separator))
    if literal:
        _unquote(records, header)
    rows = []
    width = len(columns) if header else Counter(len(row) for _, row in records).most_common(1)[0][0]
    for line, row in records:
        fields: dict[str, Any] = dict(zip(columns, row, strict=False))
        extra = [cell for cell in row[width:] if cell.strip()]
        if header and [cell.strip().removeprefix("\ufeff") for cell in row] == cells:
            raise FormatError(path, *HEADER_AGAIN, line)
        if extra or (not header and len(row) != width):
            fields[BEYOND] = f"more cells than columns ('{', '.join(extra or row[-1:])[:40]}')"
        rows.append(TableRow.of(f"line {line}", fields))
    return header, rows


def _mark_totals(rows: Sequence[TableRow]) -> None:
    for at in range(len(rows) - 1, 0, -1):
        cells = {name: value for name, value in rows[at].fields.items() if has_value(value)}
        if not _sums_up(cells, rows[:at]):
            return
        first, *others = (plain_text(value) for value in cells.values())
        told = f"'{first}' with {', '.join(others)[:40]}" if others else first
        rows[at].fields[TOTALS] = f"{rows[at].where}, {told}, is a row of totals, which is left out"


def _sums_up(cells: Mapping[str, object], above: Sequence[TableRow]) -> bool:
    """Return True if numbers stand beside a word such as Total, or alone where all rows above have an identifier and
    each is the sum, mean or count of its column.
    """
    if any(isinstance(value, (list, dict)) for value in cells.values()):
        return False
    first, *others = cells or [""]
    if others and fold(plain_text(cells[first])) in field_names().totals:
        return all(number(cells[name]) is not None for name in others)
    if not cells or any(number(value) is None for value in cells.values()):
        return False
    names = [name for name in above[0].fields if name not in cells]
    filled = any(all(has_value(dict.get(row.fields, name)) for row in above) for name in names)
    return filled and all(_sums(number(cells[name]), name, above) for name in cells)


def _sums(total: float | None, column: str, above: Sequence[TableRow]) -> bool:
    given = [value for row in above if has_value(value := dict.get(row.fields, column))]
    values = [value for value in map(number, given) if value is not None]
    if total is None or not values or len(values) < len(given):
        return total == len(given) > 0
    return total == len(values) or any(
        math.isclose(total, one, rel_tol=1e-3 * of, abs_tol=1e-9)
        for one, of in ((math.fsum(values), 1e-6), (math.fsum(values) / len(values), 1.0))
    )


_REMARK = re.compile(r"#(?!\s*[,;\t])")
"""A line before a table's head that is none of it; # alone may name the column of row numbers."""


def _separator_of(text: str, suffix: str, chosen: frozenset[str]) -> str:
    lines = [line for line in text.split("\n", 50)[:50] if line.strip() and not _REMARK.match(line)]
    first = lines[0].removeprefix("\ufeff").rstrip("\r") if lines else ""
    for separator in (",", SEMICOLON, "\t"):
        if separator in first and _is_header(cells_of(first, separator), chosen, named=True):
            return separator
    if suffix == ".csv":
        return csv_separator(first)
    if (suffix == ".tsv" or "\t" in first) and any("\t" in line for line in lines):
        return "\t"
    cells = cells_of(first, csv_separator(first))
    if len(cells) > 2 and (is_header(cells, "run") or is_header(cells, "qrels")):
        return csv_separator(first)
    return ""


def _number_columns(columns: Sequence[str], chosen: Mapping[str, str]) -> list[int]:
    number_names = {name for role in _NUMBERS for tier in field_names().roles.get(role, ()) for name in tier}
    number_names |= frozenset().union(*field_names().clicks.values())
    number_names -= field_names().every("relevant")  # they may be documents, such as 1,2
    numeric = {column for role, column in chosen.items() if role in _NUMBERS}
    return [n for n, name in enumerate(columns) if {name, str(n + 1)} & numeric or fold(name) in number_names]


def _unquote(records: Sequence[tuple[int, list[str]]], header: Sequence[str]) -> None:
    known = field_names().every("text", "title", "query", "answer")
    quoted = [n for n, name in enumerate(header) if fold(name) not in known]
    wrapped = [(n, one) for _, row in records for n, one in enumerate(row) if _QUOTED_CELL.fullmatch(one)]
    if any(
        '""' in one[1:-1] or n in quoted for n, one in wrapped
    ):  # by a writer of tables, who quotes texts too
        quoted = list(range(len(header)))
    for _, row in records:
        whole = cells_of("\t".join(row), "\t") if len(row) > len(header) > 0 else []
        if len(whole) == len(header) > 0:
            row[:] = whole
            continue
        for n in quoted:
            if n < len(row) and (cell := _QUOTED_CELL.fullmatch(row[n])):
                row[n] = cell[1].replace('""', '"')


# First cells of tables that are no collection, and are refused by name.
_OTHER_TABLES = frozenset(
    map(fold, ("measure", "input", "scenario", "document_position", "_id", "id", "value", "event_id"))
)


def _is_header(cells: list[str], chosen: frozenset[str], named: bool = False) -> bool:
    if chosen and chosen <= set(cells):
        return True
    if not any(number(cell) is not None for cell in cells) and chosen & set(cells):
        return True  # some of the columns, where others stand in other files
    if named:
        return False
    usual = {name for tiers in field_names().roles.values() for tier in tiers for name in tier}.union(
        *field_names().words.values(), _OTHER_TABLES
    )
    if any(cell[:1] in ("[", "{") or len(cell) > 80 or number(cell) is not None for cell in cells):
        return False
    return any(fold(cell) in usual for cell in cells)


def _read_records(path: Path, text: str, separator: str, quoted: bool) -> list[tuple[int, list[str]]]:
    lines = io.StringIO(text, newline="")
    if quoted:
        reader = csv.reader(lines, delimiter=separator, strict=True)
    else:
        reader = csv.reader(lines, delimiter=separator, quoting=csv.QUOTE_NONE)
    records: list[tuple[int, list[str]]] = []
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                records.append((reader.line_num, [cell.strip("\r") for cell in cells]))
    except csv.Error as error:
        if "field limit" in str(error):
            what = f"a cell of more than {csv.field_size_limit():,} characters"
            raise FormatError(
                path, what, "shorter cells, or the rows as JSON lines", reader.line_num
            ) from None
        raise FormatError(path, str(error), "cells quoted as a whole", reader.line_num) from None
    return records


def _records(path: Path, text: str, separator: str) -> tuple[list[tuple[int, list[str]]], bool]:
    """Return (records of a table with line numbers, True if quotation marks are plain characters), without comment
    lines before the first row."""
    literal = separator == "\t" and '"' not in text.partition("\n")[0]
    records = _read_records(path, text, separator, not literal)
    if literal and '"' in text and len({len(row) for _, row in records}) > 1:
        with suppress(FormatError):  # they quote cells if rows are whole by that alone
            quoted = _read_records(path, text, separator, True)
            literal = len({len(row) for _, row in quoted}) > 1
            records = records if literal else quoted
    # A line of as many cells as the others is a row, whatever it begins with.
    width = Counter(len(row) for _, row in records).most_common(1)[0][0] if records else 0
    first = next(
        (n for n, (_, row) in enumerate(records) if not _REMARK.match(separator.join(row))), len(records)
    )
    return [one for n, one in enumerate(records) if n >= first or len(one[1]) == width > 1], literal


# ----------
# A file as a JSON value, as rows with named fields, or as lines.


_MAX_LEVELS = 200
_MAX_NODES = 20_000_000
_BATCH_ROWS = 2048


def is_record(fields: Mapping[str, object]) -> bool:
    """Return False for a row with more cells than columns, and for one of totals."""
    return BEYOND not in fields and TOTALS not in fields


@dataclass(frozen=True)
class Contents:
    """An imported file, parsed into one of three shapes.

    - "json": a JSON value, also from YAML or a pickle; a lone object is a table of one row, too.
    - "rows": JSON lines, a list of objects, a table with a header, Parquet.
    - "lines": text without a header; if lines have tabs or commas, rows hold the cells as "1", "2" ...
    """

    path: Path
    shape: Literal["json", "rows", "lines"]
    value: Any = None
    rows: tuple[TableRow, ...] = ()
    columns: tuple[str, ...] = ()
    """All field names of the rows."""
    text: str = ""
    """Text of the shape "lines"."""
    roles: Mapping[str, str] = field(default_factory=dict)
    """Role -> column, as the user chose."""
    short: int = 0
    """Number of rows with fewer cells than columns; the missing ones are blank."""

    @property
    def stem(self) -> str:
        """The file name without its endings, such as .tsv.gz; of a numbered table the folder's."""
        name = unpacked_name(naming_path(self.path))
        return Path(name).stem or name

    @property
    def count(self) -> int:
        """The number of rows; for the shape "lines", of lines with text."""
        if self.shape == "lines":
            return sum(bool(line.strip()) for line in self.text.split("\n"))
        return len(self.rows)

    def sound(self) -> Contents:
        """Return the contents without rows that are no records, such as totals."""
        rows = tuple(row for row in self.rows if is_record(row.fields))
        return self if len(rows) == len(self.rows) else replace(self, rows=rows)

    def says(self, *words: str) -> str:
        """Return the first of these words that is part of the file's or the folder's name; "" for none."""
        named = naming_path(self.path)
        pieces = {*re.split(r"[-_ .]", named.name.lower()), named.parent.name.lower()}
        return next((word for word in words if word in pieces), "")


def _of_rows(path: Path, rows: list[TableRow], value: object = None) -> Contents:
    return Contents(path, "rows", value, tuple(rows), _columns(rows))


def _columns(rows: Iterable[TableRow]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(name) for row in rows for name in row.fields))


def read_contents(path: Path, roles: Mapping[str, str]) -> Contents:
    """Read and parse a file; last rows of totals are marked.

    roles: the user's {role: column}, by name or number from 1.

    Raises FormatError for an unreadable, empty or too large file, MissingExtra for a missing package, BadValue if
    memory may not hold the values.
    """
    contents = _parsed(path, roles)
    if contents.shape == "rows":
        _mark_totals(contents.rows)
    return contents


def _parsed(path: Path, roles: Mapping[str, str]) -> Contents:
    begins = head_of(path)
    is_table = begins.startswith(ARROW_TABLES)
    if not is_table and is_pickle(path):
        return replace(_of_value(path, _as_cells(read_pickle(path))), roles=roles)
    if path.stat().st_size > IMPORT_BYTES:
        raise FormatError(
            path, f"{path.stat().st_size:,} bytes", f"at most {IMPORT_BYTES:,}; cut it into parts"
        )
    if is_table:
        batches = list(_arrow_rows(path, held=True))
        rows = tuple(row for _, batch in batches for row in batch)
        return Contents(path, "rows", rows=rows, columns=batches[0][0], roles=roles)
    text = read_text(path)
    if "\0" in text[:4096]:
        raise FormatError(path, "binary data", "text, JSON, YAML, a table or Parquet")
    if not text.strip():
        raise FormatError(path, "an empty file", "queries, documents, judgments or rankings")
    suffix = Path(unpacked_name(path)).suffix.lower()
    if suffix in (".yaml", ".yml"):
        return replace(_yaml(path, text), roles=roles)
    if suffix not in (".csv", ".tsv") and _begins_json(text):
        return replace(_json(path, text), roles=roles)
    require_held(path, sum(map(text.count, ",;\t\n")), 2 * len(text), "cut it into parts")
    header, table = _table(path, text, suffix, roles)
    if header:
        by_number = {str(n): name for n, name in enumerate(header, 1) if str(n) not in header}
        roles = {role: by_number.get(column, column) for role, column in roles.items()}
        short = sum(len(row.fields) < len(header) for row in table)
        return Contents(path, "rows", rows=tuple(table), columns=header, roles=roles, short=short)
    if roles and set(roles.values()) <= set(_columns(table)):
        return replace(_of_rows(path, table), roles=roles)
    return Contents(path, "lines", rows=tuple(table), text=text)


def _begins_json(text: str) -> bool:
    lines = (line.strip() for line in io.StringIO(text))
    return next((line for line in lines if line and not line.startswith("#")), "")[:1] in ("{", "[")


_YAML_NULLS = ("", "~", "null", "Null", "NULL")


def _yaml(path: Path, text: str) -> Contents:
    yaml = require("yaml", "import-sources")

    def mapping(loader: Any, node: Any, deep: bool = False) -> Any:  # noqa: ANN401  PyYAML has no types
        scalars = [key for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        merge = next((key for key in scalars if key.value == "<<" and not key.style), None)
        name = "<<" if merge else first_repeated(key.value for key in scalars)
        if name is not None:
            what = "a merge of mappings (<<)" if merge else f"'{name}' twice in one mapping"
            raise FormatError(path, what, "each name once, written out", node.start_mark.line + 1)
        for key in scalars:
            key.style = "'"  # a name is a text
        return yaml.BaseLoader.construct_mapping(loader, node, deep)

    def scalar(_: Any, node: Any) -> str | None:  # noqa: ANN401  PyYAML has no types
        return None if not node.style and node.value in _YAML_NULLS else node.value

    loader = type("Loader", (yaml.BaseLoader,), {"construct_mapping": mapping, "construct_scalar": scalar})
    try:
        documents = [one for one in yaml.load_all(text, Loader=loader) if one]
    except yaml.YAMLError as error:
        reason = " ".join(str(error).split())[:200]
        raise FormatError(path, f"no valid YAML ({reason})", "a YAML document") from None
    except (RecursionError, ValueError):
        raise FormatError(path, "YAML nested too deeply", f"at most some {_MAX_LEVELS} levels") from None
    _refuse_bombs(path, documents)
    documents = _as_cells(documents)
    return _of_value(path, documents[0] if len(documents) == 1 else documents)


def _as_cells(value: Any, arrow: bool = False) -> Any:  # noqa: ANN401  YAML holds anything
    if arrow and isinstance(value, list) and value and isinstance(value[0], tuple):
        value = dict(value)
    if isinstance(value, dict):
        given = ((name, one) for name, one in value.items() if one is not None or not arrow)
        return Cells((str(_as_cells(name)), _as_cells(one, arrow)) for name, one in given)
    if isinstance(value, bytes):
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            return value  # an image or a vector, which no role takes
    if isinstance(value, Decimal):
        return Spelled.of(str(value))
    return [_as_cells(one, arrow) for one in value] if isinstance(value, (list, tuple)) else value


def _json(path: Path, text: str) -> Contents:
    require_values(path, text, "cut it into parts")
    try:
        return _of_value(path, _strict_json(path, text))
    except json.JSONDecodeError as error:
        whole = error
    rows: list[TableRow] = []
    remarks = 0
    for line, row_text in enumerate(text.split("\n"), 1):
        if not row_text.strip() or row_text.lstrip().startswith("#"):
            remarks += bool(row_text.strip())
            continue
        try:
            value, reason = _strict_json(path, row_text), ""
        except json.JSONDecodeError as error:
            value, reason = None, error.msg
        if not isinstance(value, dict):
            reason = reason or f"a JSON {type(value).__name__} instead of an object"
            break
        rows.append(TableRow.of(f"line {line}", value))
    else:
        say_remarks(path, remarks)
        return _of_rows(path, rows)
    if rows or whole.msg != "Extra data":
        where, what = (line, reason) if rows else (whole.lineno, whole.msg)
        raise FormatError(
            path, f"no valid JSON ({what})", "one JSON value, or one object on each line", where
        )
    members = enumerate(_concatenated(path, text), 1)
    return _of_rows(path, [TableRow.of(f"object {n}", value) for n, value in members])


_BLANKS = re.compile(r"\s*")


def _concatenated(path: Path, text: str) -> Iterator[dict[str, Any]]:
    decoder = json.JSONDecoder(object_pairs_hook=_unique(path), parse_float=Spelled.of)
    at = 0
    while at < len(text):
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            line = text.count("\n", 0, at) + 1
            raise FormatError(
                path, f"no valid JSON ({error})", "JSON objects one after the other", line
            ) from None
        if not isinstance(value, dict):
            raise FormatError(path, f"a JSON {type(value).__name__} among objects", "JSON objects", None)
        yield value
        at = _BLANKS.match(text, end).end()  # type: ignore[union-attr]  # it always matches


def _unique(path: Path) -> Callable[[list[tuple[str, Any]]], Cells]:
    def unique(pairs: list[tuple[str, Any]]) -> Cells:
        try:
            return unique_cells(pairs)
        except RepeatedNameError as error:
            raise FormatError(path, f"'{error}' twice in one JSON object", "each name once") from None

    return unique


def _strict_json(path: Path, text: str) -> Any:  # noqa: ANN401  JSON holds anything
    try:
        value = json.loads(text, object_pairs_hook=_unique(path), parse_float=Spelled.of)
    except json.JSONDecodeError:
        raise
    except RecursionError:
        raise FormatError(path, "JSON nested too deeply", f"at most some {_MAX_LEVELS} levels") from None
    except ValueError as error:  # a whole number of thousands of digits
        raise FormatError(path, f"no valid JSON ({error})", "numbers of usual size") from None
    _refuse_bombs(path, value)
    return value


def _refuse_bombs(path: Path, value: object) -> None:
    level, depth, nodes = [value], 0, 0
    while level:
        nodes += len(level)
        depth += 1
        if depth > _MAX_LEVELS or nodes > _MAX_NODES:
            raise FormatError(path, "data nested too deeply or too often", f"at most {_MAX_LEVELS} levels")
        level = [
            inner
            for one in level
            if isinstance(one, (dict, list))
            for inner in (one.values() if isinstance(one, dict) else one)
            if isinstance(inner, (dict, list))
        ]


def _of_value(path: Path, value: Any) -> Contents:  # noqa: ANN401  JSON holds anything
    if not isinstance(value, (dict, list)) or not value:
        raise FormatError(
            path, f"{json.dumps(value, default=repr)[:60]} and nothing else", "queries, judgments or rankings"
        )
    if isinstance(value, dict):
        if (oriented := _oriented(path, value)) is not None:
            return _of_rows(path, [TableRow.of(f"row {n}", one) for n, one in enumerate(oriented, 1)])
        row = TableRow.of("the object", value)
        return Contents(path, "json", value, (row,), _columns([row]))
    if not all(isinstance(one, dict) for one in value):
        return Contents(path, "json", value)
    rows = [TableRow.of(f"entry {n}", one) for n, one in enumerate(value, 1)]
    return _of_rows(path, rows, [row.fields for row in rows])


def _oriented(path: Path, value: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """Return the rows of a table in a JSON form of pandas (split, tight, columns, list); None for other JSON.

    An index other than row numbers becomes a column. Raises FormatError for a repeated column, a row of another
    length and lists of different lengths.
    """
    names, cells, index = (value.get(name) for name in ("columns", "data", "index"))
    if isinstance(names, list) and isinstance(cells, list) and value.keys() <= _SPLIT:
        if (name := first_repeated(map(str, names))) is not None:
            raise FormatError(path, f"two columns named '{name[:60]}'", "each name once")
        for n, row in enumerate(cells, 1):
            if not isinstance(row, list) or len(row) != len(names):
                what = f"{len(row)} cells" if isinstance(row, list) else f"a {type(row).__name__}"
                raise FormatError(path, f"{what} in row {n} of data", f"{len(names)}, one for each column")
        columns: dict[str, Iterable[Any]] = (
            dict(zip(map(str, names), zip(*cells, strict=True), strict=True)) if cells else {}
        )
        rows = list(map(str, index)) if isinstance(index, list) else []
    elif usual(value, "query", "query_id") and len(usual(value, *field_names().roles)) > 1:
        listed = all(isinstance(one, list) for one in value.values())
        if not listed and not all(isinstance(one, dict) for one in value.values()):
            return None
        sizes = {len(one) if listed else tuple(one) for one in value.values()}
        if listed and len(sizes) > 1:
            cells = ", ".join(f"{len(one):,} in {name[:60]}" for name, one in list(value.items())[:5])
            raise FormatError(
                path, f"columns of different lengths ({cells})", "a cell of each row in every column"
            )
        if len(sizes) > 1 or not any(sizes):
            return None
        rows = [] if listed else list(next(iter(value.values())))
        columns = {name: one if listed else one.values() for name, one in value.items()}
    else:
        return None
    if rows and "index" not in columns and rows != [str(n) for n in range(len(rows))]:
        columns = {"index": rows, **columns}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


_SPLIT = {"columns", "data", "index", "index_names", "column_names"}
_NOT_JSON = re.compile("struct|map|binary|decimal")  # types of Arrow with values that JSON writes otherwise
_WORD_BYTES = 4  # what a value within a list takes in Arrow, at least


def _arrow_rows(path: Path, held: bool = False) -> Iterator[tuple[tuple[str, ...], list[TableRow]]]:
    types, is_parquet = require("pyarrow", "run").types, read_bytes(path, 4) == b"PAR1"
    with table_errors(path):
        columns, count, values, size = tuple(table_columns(path, is_parquet)), 0, 0, 0
        if (name := first_repeated(columns)) is not None:
            raise FormatError(path, f"two columns named '{name[:60]}'", "each name once")
        for batch in table_batches(path, is_parquet, _BATCH_ROWS):
            nested = sum(c.nbytes for c in batch.columns if types.is_nested(c.type))
            values = values * held + batch.num_rows * len(columns) + nested // _WORD_BYTES
            size = size * held + sum(map(unpacked_bytes, batch.columns))
            require_held(path, values, size)
            rows = batch.to_pylist()
            for name in (one.name for one in batch.schema if _NOT_JSON.search(str(one.type))):
                for row in rows:
                    row[name] = _as_cells(row[name], arrow=True)
            for name in (one.name for one in batch.schema if str(one.type) in ("float", "halffloat")):
                for row in rows:
                    row[name] = None if row[name] is None else SingleFloat(row[name])
            yield columns, [TableRow.of(f"row {n}", one) for n, one in enumerate(rows, count + 1)]
            count += len(rows)
        if not count:
            found = f"the columns {', '.join(columns)[:80]} and no row below them"
            raise FormatError(path, found, "a row for each record")


# ----------
# Large files in batches of rows.


HELD_BYTES = 1 << 24
"""Largest file that is held whole; a larger one is read in batches if its format allows."""
_PACKED_BYTES = 1 << 22  # likewise, of a packed one
_BLOCK_BYTES = 1 << 21


def row_batches(path: Path, roles: Mapping[str, str]) -> Iterator[Contents] | None:
    """Return an iterator over batches of rows of an Arrow table or JSON lines of more than HELD_BYTES; None for other
    files.

    roles: given to each batch.

    Raises FormatError, also while batches are read.
    """
    begins = read_bytes(path, 8)
    if begins.startswith(ARROW_TABLES):
        if path.stat().st_size <= HELD_BYTES:
            return None
        return (
            Contents(path, "rows", rows=tuple(rows), columns=columns, roles=roles)
            for columns, rows in _arrow_rows(path)
        )
    limit = _PACKED_BYTES if path.suffix in (".gz", ".zst") else HELD_BYTES
    if path.stat().st_size <= limit or not begins.startswith(b"{"):
        return None
    first, newline, rest = read_bytes(path, _BLOCK_BYTES).partition(b"\n")
    try:
        is_json_lines = bool(newline and rest.strip()) and isinstance(json.loads(first), dict)
    except (ValueError, RecursionError):
        return None
    return _json_batches(path, roles) if is_json_lines else None


def _json_batches(path: Path, roles: Mapping[str, str]) -> Iterator[Contents]:
    line, remarks, columns = 0, 0, tuple[str, ...]()
    with open_bytes(path) as file:
        try:
            for block in read_blocks(file, _BLOCK_BYTES, path):
                rows: list[TableRow] = []
                for data in block.removesuffix(b"\n").split(b"\n"):
                    line += 1
                    if not data.strip() or data.lstrip().startswith(b"#"):
                        remarks += bool(data.strip())
                        continue
                    try:
                        value = _strict_json(path, decoded(data, path, line))
                    except json.JSONDecodeError as error:
                        what = f"no valid JSON ({error.msg})"
                        raise FormatError(path, what, "one object on each line", line) from None
                    if not isinstance(value, dict):
                        what = f"a JSON {type(value).__name__}"
                        raise FormatError(path, what, "one object on each line", line)
                    rows.append(TableRow.of(f"line {line}", value))
                columns = tuple(dict.fromkeys([*columns, *_columns(rows)]))
                yield Contents(path, "rows", rows=tuple(rows), columns=columns, roles=roles)
        except DAMAGE as error:
            raise damaged(path, error) from error
    say_remarks(path, remarks)
