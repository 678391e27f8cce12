"""A name that stands twice in one JSON object is refused wherever lines of JSON are read."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import weir
from tests.unit.brooklet import write_collection
from weir.errors import FormatError, WeirError
from weir.files.json_files import parse_block


def read(folder):
    dataset = weir.load(folder)
    return dataset.corpus, dataset.all_queries


@pytest.mark.parametrize(
    "repeated", ['"text": "y"', '"_id": "b"', '"text": "x: y"', '"more": {"a": 1, "a": 2}']
)
@pytest.mark.parametrize("count", [1, 30_000], ids=["few", "many"])  # many are read by a compiled parser
@pytest.mark.parametrize("file", ["corpus.jsonl", "queries.jsonl"])
def test_a_name_twice_in_an_object_is_refused_with_its_line(tmp_path, file, count, repeated):
    folder = write_collection(tmp_path / "mine")
    lines = [json.dumps({"_id": f"x{n}", "text": f"a text: {n}"}) for n in range(count)]
    lines[count // 2] = f'{{"_id": "a", "text": "x", {repeated}}}'
    path = folder / file
    before = path.read_text().splitlines()
    path.write_text("\n".join([*before, *lines]) + "\n")
    with pytest.raises(
        WeirError, match=rf"line {len(before) + count // 2 + 1}: found '\w+' twice in one object"
    ):
        read(folder)


def test_colons_in_texts_and_escapes_are_no_names():
    rows = [
        {"_id": "a:b", "text": "x: y", "n:m": {"of:": [":", {"c": ":::"}]}},
        {"_id": "c", "text": ":" * 9},
    ]
    block = "\n".join(map(json.dumps, rows)).encode() + b"\n" + rb'{"_id": "d", "text": "\u003a and \u003A"}'
    assert parse_block(block, 1, "f").rows[:2] == rows
    for twice in (
        rb'"text": "\u003a", "text": ""',
        rb'"text": "", "text": "\u003a"',
        rb'"text" : "", "text"	: ""',
    ):
        for before in (b"", block + b"\n"):
            with pytest.raises(
                FormatError, match=f"f, line {len(before.splitlines()) + 1}: found 'text' twice in one object"
            ):
                parse_block(before + b'{"_id": "d", ' + twice + b"}", 1, "f")


NAMES = st.sampled_from(["a", "b:", 'c"', "d {", "", "\t:"])


def pairs(values):
    """Objects as lists of (name, value), which may have a name twice."""
    return st.lists(st.tuples(NAMES, values), max_size=4).map(tuple)


VALUES = st.recursive(NAMES, lambda inner: st.lists(inner, max_size=2) | pairs(inner), max_leaves=6)


def spelled(value, blanks) -> str:
    if not isinstance(value, tuple):
        inner = (
            ", ".join(spelled(one, blanks) for one in value) if isinstance(value, list) else json.dumps(value)
        )
        return f"[{inner}]" if isinstance(value, list) else inner
    return "{" + ",".join(f"{json.dumps(k)}{blanks}:{spelled(v, blanks)}" for k, v in value) + "}"


def is_repeated(value) -> bool:
    if isinstance(value, tuple):
        return len(dict(value)) < len(value) or any(is_repeated(one) for _, one in value)
    return isinstance(value, list) and any(map(is_repeated, value))


@given(st.lists(pairs(VALUES), max_size=3), st.sampled_from(["", " ", "\t", "  "]), st.booleans())
def test_exactly_the_lines_with_a_name_twice_are_refused(rows, blanks, escaped):
    lines = [spelled(row, blanks) for row in rows]
    block = "\n".join(line.replace("b:", r"b\u003a") if escaped else line for line in lines).encode()
    wrong = next((n for n, row in enumerate(rows, 1) if is_repeated(row)), None)
    if wrong is None:
        assert parse_block(block, 1, "f").rows == [json.loads(line) for line in lines]
    else:
        with pytest.raises(FormatError, match=f"f, line {wrong}: found '.*' twice in one object"):
            parse_block(block, 1, "f")
