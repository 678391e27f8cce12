"""Whatever is done to a file, weir data import reads it or says in one line why not; it never ends in a traceback."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.unit.test_import_formats import CASES

from weir.cli.main import main
from weir.errors import WeirError
from weir.plugins.importing import Choices, contents, import_files
from weir.plugins.importing.readers import READERS

FILES = [
    (name, content if isinstance(content, bytes) else content.encode())
    for name, content, *_ in CASES.values()
]
QUIET = settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])


def reads_or_refuses(tmp_path, name, data, **options):
    """Import the bytes: a whole folder, or one printable line and nothing."""
    path = tmp_path / name
    path.write_bytes(data)
    out = tmp_path / "out"
    try:
        report = import_files([path], out, **options)
    except WeirError as error:
        said = str(error)
    else:
        json.loads((out / "import.json").read_text())
        said = "\n".join(report.lines())
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202e\ud800-\udfff]", said)
    assert not [one for one in tmp_path.iterdir() if one.name.startswith(".")]
    return said


@QUIET
@given(file=st.sampled_from(FILES), at=st.floats(0, 1))
def test_truncated(tmp_path, file, at):
    name, data = file
    reads_or_refuses(tmp_path, name, data[: int(len(data) * at)])


@QUIET
@given(
    file=st.sampled_from(FILES),
    at=st.floats(0, 1),
    junk=st.binary(min_size=1, max_size=6),
    length=st.integers(0, 4),
)
def test_bytes_exchanged(tmp_path, file, at, junk, length):
    name, data = file
    place = int(len(data) * at)
    reads_or_refuses(tmp_path, name, data[:place] + junk + data[place + length :])


VALUES = st.sampled_from(
    [None, True, -1, 0.5, float("nan"), float("inf"), 1e308, 10**30, "", " ", "\u0000", "\ud800", "x" * 5000, "\u202e", [], {}, [[]],
     [None], {"a": None}, {"": 1}, ["a", "a"], {"x": {"y": []}}, "a\tb\nc", "../..", "#", [{"id": []}], "nan", "1e400"]
)  # fmt: skip
STRUCTURED = [
    (name, json.loads(data)) for name, data in FILES if name.endswith(".json") and data.count(b"\n") < 2
]


def exchanged(value, path, new):
    """A copy of a JSON value with the member at a path of numbers exchanged; each number is taken modulo what is there."""
    if not path or not isinstance(value, (dict, list)) or not value:
        return new
    keys = list(value) if isinstance(value, dict) else range(len(value))
    key = keys[path[0] % len(keys)]
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[key] = exchanged(value[key], path[1:], new)
    return copy


GRADES_OF_NO_COLUMN = (
    "g.json",
    [{"query": "red shoes", "relevant_ids": ["a", "b"], "grade": {"a": 2, "b": 0}, "": 1}],
)


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(file=GRADES_OF_NO_COLUMN, path=[0, 3], new=1)
@example(file=("g.json", [{"": 1}]), path=[0, 0], new=1)
@given(file=st.sampled_from(STRUCTURED), path=st.lists(st.integers(0, 5), max_size=9), new=VALUES)
def test_members_of_another_kind(tmp_path, file, path, new):
    name, value = file
    reads_or_refuses(
        tmp_path, name, json.dumps(exchanged(value, path, new)).encode(), choices=Choices(grades="round")
    )


@pytest.mark.filterwarnings("ignore:.*that begins? with #")
@QUIET
@given(
    file=st.sampled_from([one for one in FILES if one[0].endswith((".csv", ".tsv", ".jsonl", ".txt"))]),
    column=st.integers(0, 6),
    new=VALUES,
)
def test_cells_of_another_kind(tmp_path, file, column, new):
    name, data = file
    rows = data.decode("utf-8", "ignore").split("\n")
    mark = "\t" if "\t" in rows[-2] else "," if name.endswith(".csv") else " "
    cells = rows[-2].split(mark)
    cells[column % len(cells)] = str(new)
    rows[-2] = mark.join(cells)
    reads_or_refuses(tmp_path, name, "\n".join(rows).encode("utf-8", "surrogatepass"))


NAMES = ["query", "queries", "qrel", "corpus", "docs", "details", "requests", "relevant", "retrieved", "results", "hits", "ratings",
         "query-id", "corpus-id", "score", "grade", "attributes", "record_attributes", "clicks", "impressions", "doc_id"]  # fmt: skip
VALUES_OF_JSON = st.recursive(
    VALUES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4), max_leaves=9
)  # fmt: skip
ROWS_OF_JSON = st.lists(st.dictionaries(st.sampled_from(NAMES), VALUES_OF_JSON, max_size=4), max_size=3)
CELLS = st.sampled_from(
    ["", "a", "1", "0.5", "-1", "[]", "['a', 1]", "[{1: 2}]", "{'a': 1}", "[[]]", "(1,)", "a b", '{"id": []}']
)
TABLES = st.tuples(
    st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True), st.lists(CELLS, min_size=4, max_size=12)
)  # fmt: skip


def as_tsv(table):
    header, cells = table
    rows = [cells[at : at + len(header)] for at in range(0, len(cells), len(header))]
    return "\n".join("\t".join(row) for row in [header, *rows])


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    data=st.binary(max_size=200)
    | st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass"))
    | VALUES_OF_JSON.map(lambda value: json.dumps(value).encode())
    | ROWS_OF_JSON.map(lambda rows: "\n".join(map(json.dumps, rows)).encode())
    | TABLES.map(lambda table: as_tsv(table).encode())
    | st.sampled_from(FILES).map(lambda file: file[1]),
    name=st.sampled_from(["x.json", "x.jsonl", "x.csv", "x.tsv", "x.txt", "x.yaml", "x.parquet", "x.gz", "qrels.txt", "x"]),
    kind=st.sampled_from(["", *READERS.names()]),
)  # fmt: skip
@example(data=b"\x01", name="x.csv", kind="vespa")
@example(data=b"\x01", name="x.csv", kind="search-response")
@example(data=b'{" ":null,"":true}', name="x.json", kind="trec-qrels")
def test_any_value_under_any_kind(tmp_path, data, name, kind):
    reads_or_refuses(tmp_path, name, data, as_kind=kind)


BOMBS = {
    "deep JSON": ("x.json", b"[" * 100_000 + b"]" * 100_000, "nested too deeply"),
    "deep JSON below the parser's bound": ("x.json", b'{"a":' * 500 + b"1" + b"}" * 500, "nested too deeply"),
    "deep YAML": ("x.yaml", b"[" * 5000 + b"]" * 5000, "nested too deeply|no valid YAML"),
    "YAML that grows": (
        "x.yaml",
        b"a: &a [x, x, x, x, x, x, x, x, x, x]\n" + b"".join(b"%c: &%c [%s]\n" % (98 + n, 98 + n, b", ".join([b"*%c" % (97 + n)] * 10)) for n in range(9)),
        "nested too deeply or too often",
    ),
    "10 MB in a cell": ("x.csv", b"query,doc_id,grade\nred shoes," + b"a" * 10_000_000 + b",1\n", "a cell of more than 131,072 characters"),
    "10 MB in an identifier": ("x.jsonl", b'{"query": "x y", "relevant": ["' + b"a" * 10_000_000 + b'"]}\n', "more than 4,096 bytes"),
    "a number of a million digits": ("x.json", b'{"q": {"a": ' + b"9" * 1_000_000 + b"}}", "no valid JSON|numbers of usual size"),
    "a name twice": ("x.json", b'{"q": {"a": 1}, "q": {"b": 1}}', "'q' twice in one JSON object"),
    "half a JSON": ("x.json", b'{"requests": [{"id": "q1", "ratings": [', r"no valid JSON \(Expecting value\)"),
    "half of JSON lines": ("x.jsonl", b'{"query": "a b", "relevant": ["d"]}\n{"query": "c', r"line 2: found no valid JSON"),
    "Latin-1": ("x.csv", "query,doc_id,grade\nsmörgås,a,1\n".encode("latin-1"), r"line 2: found bytes that are not UTF-8 \(0xf6\)"),
    "binary": ("x.csv", b"query,doc\0_id,grade\n1,a,1\n", "binary data"),
    "nothing": ("x.csv", b"  \n\n", "an empty file"),
    "a header alone": ("x.csv", b"query,doc_id,grade\n", "and no row below it"),
    "a column twice": ("x.csv", b"query,doc_id,doc_id\nx y,a,b\n", "two columns named 'doc_id'"),
    "bad quoting": ("x.csv", b'query,doc_id,grade\n"x y,a,1\n', "cells quoted as a whole"),
    "half a gzip": ("x.json.gz", b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03abc", "damaged"),
    "half a Parquet file": ("x.parquet", b"PAR1xxxx", "a damaged table"),
    "NaN as a grade": ("x.json", b'{"judgmentRatings": [{"query": "x", "ratings": [{"docId": "a", "rating": NaN}, {"docId": "b", "rating": 1}]}]}', "the grade 'nan' is no finite number"),
    "half a surrogate": ("x.jsonl", b'{"query": "x \\ud800", "relevant": ["\\ud800", "b"]}\n', ""),
}  # fmt: skip


@pytest.mark.parametrize("case", BOMBS)
def test_bombs_and_damage_are_one_line(tmp_path, case, monkeypatch):
    monkeypatch.setattr(contents, "_MAX_NODES", 100_000)
    name, data, said = BOMBS[case]
    found = reads_or_refuses(tmp_path, name, data)
    assert re.search(said, found), found[:300]
    assert len(found) < 1500


@pytest.mark.parametrize("case", ["deep JSON", "Latin-1", "10 MB in a cell"])
def test_the_command_prints_one_line(tmp_path, case, capsys):
    name, data, said = BOMBS[case]
    (tmp_path / name).write_bytes(data)
    assert main(["data", "import", str(tmp_path / name), "-o", str(tmp_path / "out")]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("\n") == 1
    assert re.search(said, shown.err)
    assert "bug in Weir" not in shown.err
