"""Test vectors: inputs with exact answers, or with the reason why they must be refused.

They are JSON files in the folder `vectors`, whose README.md describes the fields.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from fractions import Fraction
from importlib import resources
from typing import Any

from weir.errors import BadValue, FormatError, UnknownName
from weir.plugins.conform.oracle import Case, Exact, OracleConventions, exact_answer, exact_text, parse_name

SCHEMA = "weir-conform-1"
_NOT_FINITE = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}


@dataclass(frozen=True)
class Number:
    """A number as text: a decimal of 30 digits, and an exact fraction if short."""

    decimal: str
    fraction: str | None = None
    """None for an irrational number and a longer fraction."""

    @staticmethod
    def of(exact: Exact) -> Number:
        """Return an exact number as text."""
        return Number(**exact_text(exact))

    def __float__(self) -> float:
        return float(Decimal(self.decimal))


@dataclass(frozen=True)
class Expected:
    """The exact values that a tool should give for a measure on a test vector."""

    name: str
    mean: Number
    per_query: Mapping[str, Number]


@dataclass(frozen=True)
class Vector:
    """A small test input for tools, with its expected values."""

    id: str
    group: str
    shows: str
    """The subject in one sentence."""
    case: Case
    measures: tuple[str, ...]
    """Names of the measures to ask."""
    expected: tuple[Expected, ...] = ()
    error: str | None = None
    """Why the input must be refused."""
    tags: tuple[str, ...] = ()
    source: tuple[str, ...] = ()
    """Where the problem was seen."""


def with_answers(vector: Vector) -> Vector:
    """Return the test vector with exact answers, or with the reason why it must be refused."""
    try:
        answers = [(name, exact_answer(vector.case, name)) for name in vector.measures]
    except BadValue as reason:
        return replace(vector, expected=(), error=str(reason))
    expected = tuple(
        Expected(name, Number.of(a.mean), {q: Number.of(v) for q, v in a.per_query.items()})
        for name, a in answers
    )
    return replace(vector, expected=expected, error=None)


def groups() -> tuple[str, ...]:
    """Return the names of the groups of test vectors."""
    return tuple(name.removesuffix(".json") for name in files() if name.endswith(".json"))


def files() -> dict[str, str]:
    """Return {file name: text} of the test vectors' JSON files and their README."""
    folder = resources.files("weir.plugins.conform") / "vectors"
    named = sorted(path.name for path in folder.iterdir() if path.name.endswith((".json", ".md")))
    return {name: (folder / name).read_text(encoding="utf-8") for name in named}


def vectors(names: Iterable[str] = ()) -> tuple[Vector, ...]:
    """Return the test vectors of these groups, by default of all; raises UnknownName for another group."""
    texts, chosen = files(), tuple(names) or groups()
    for group in chosen:
        if group not in groups():
            raise UnknownName("group of vectors", group, groups())
    return tuple(v for group in chosen for v in read(texts[f"{group}.json"], group))


def read(content: str, where: object) -> list[Vector]:
    """Return the test vectors in the text of a file; raises FormatError for another schema.

    where: the file's name for messages.
    """
    data = json.loads(content)
    if data.get("schema") != SCHEMA:
        raise FormatError(where, f"schema {data.get('schema')!r}", f"'{SCHEMA}'")
    return [_vector(raw, data["group"]) for raw in data["vectors"]]


def _vector(raw: Mapping[str, Any], group: str) -> Vector:
    qrels, run = (
        {q: [(d, _NOT_FINITE.get(x, x)) for d, x in pairs] for q, pairs in raw[name].items()}
        for name in ("qrels", "run")
    )
    case = Case(
        qrels,
        run,
        OracleConventions(**raw["conventions"]),
        raw.get("candidates", {}),
        raw.get("excluded", {}),
    )
    expected = tuple(
        Expected(m["name"], Number(**m["mean"]), {q: Number(**v) for q, v in m["per_query"].items()})
        for m in raw["measures"]
        if "mean" in m
    )
    names = tuple(m["name"] for m in raw["measures"])
    tags, source = tuple(raw["tags"]), tuple(raw["source"])
    return Vector(raw["id"], group, raw["shows"], case, names, expected, raw.get("error"), tags, source)


def to_text(group: str, about: str, members: Sequence[Vector]) -> str:
    """Return the text of a group's file, a test vector on each line."""
    head = json.dumps({"schema": SCHEMA, "group": group, "about": about})[:-1]
    rows = []
    for vector, row in zip(members, as_questions(members), strict=True):
        for measure, expected in zip(row["measures"], vector.expected, strict=False):
            measure["mean"] = _short(expected.mean)
            measure["per_query"] = {q: _short(n) for q, n in expected.per_query.items()}
        rows.append(json.dumps(row if vector.error is None else row | {"error": vector.error}))
    lines = ",\n".join(rows)
    return f'{head}, "vectors": [\n{lines}\n]}}\n'


def _short(number: Number) -> dict[str, str]:
    return {key: value for key, value in asdict(number).items() if value is not None}


def as_questions(members: Iterable[Vector]) -> list[dict[str, Any]]:
    """Return test vectors as JSON objects without their answers."""
    rows = []
    for v in members:
        both = (("candidates", v.case.candidates), ("excluded", v.case.excluded))
        row: dict[str, Any] = {
            "id": v.id,
            "shows": v.shows,
            "tags": list(v.tags),
            "source": list(v.source),
            "conventions": asdict(v.case.conventions),
            "qrels": {q: [[d, _json_number(g)] for d, g in pairs] for q, pairs in v.case.qrels.items()},
            "run": {q: [[d, _json_number(s)] for d, s in pairs] for q, pairs in v.case.run.items()},
            **{name: {q: list(ids) for q, ids in lists.items()} for name, lists in both if lists},
            "measures": [],
        }
        for name in v.measures:
            parts = parse_name(name)
            settings = {key: s if isinstance(s, str) else _json_setting(s) for key, s in parts.settings}
            measure = {"name": name, "measure": parts.measure, "k": parts.k}
            row["measures"].append(measure | {"settings": settings, "condensed": parts.condensed})
        rows.append(row)
    return rows


def _json_setting(number: Fraction) -> int | float:
    return int(number) if number.denominator == 1 else float(number)


def _json_number(number: float) -> float | str:
    return number if number - number == 0 else str(number)
