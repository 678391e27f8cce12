"""The compiled reader of plain documents agrees with the general one, or leaves the block to it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from weir.core.strings import Strings
from weir.errors import FormatError
from weir.files import records as beir
from weir.files.json_files import PlainReader, read_blocks
from weir.files.layouts import CollectionPart
from weir.files.records import read_documents

READER = PlainReader()
Columns = tuple[list[str], list[str], list[str]]


def compiled(block: bytes) -> Columns | None:
    READER._refused = 0
    columns = READER.read(block)
    if columns is None:
        return None
    ids, titles, texts = (column.tolist() for column in columns)
    return ids, titles, texts


def general(block: bytes, folder: Path) -> Columns | None:
    (folder / "corpus.jsonl").write_bytes(block)
    try:
        batches = list(read_documents(CollectionPart(folder / "corpus.jsonl")))
    except FormatError:
        return None
    columns = ([b.ids for b in batches], [b.titles for b in batches], [b.texts for b in batches])
    ids, titles, texts = (Strings.concatenated(column).tolist() for column in columns)
    return ids, titles, texts


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("plain")


texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=30)
documents = st.lists(
    st.fixed_dictionaries(
        {"_id": texts.filter(bool), "text": texts},
        optional={"title": texts, "metadata": st.just({})},
    ),
    min_size=1,
    max_size=5,
)


@given(
    documents,
    st.booleans(),
    st.sampled_from([(",", ":"), (", ", ": "), (" ,\t", " :  ")]),
    st.sampled_from("\r "),
)
@settings(max_examples=150)
def test_plain_documents_are_read_as_they_are(rows, escaped, separators, end):
    lines = [json.dumps(row, ensure_ascii=escaped, separators=separators) + end + "\n" for row in rows]
    expected = (
        [row["_id"] for row in rows],
        [row.get("title", "") for row in rows],
        [row["text"] for row in rows],
    )
    assert compiled("".join(lines).encode()) == expected


@given(documents, st.integers(0, 10**6), st.binary(max_size=3), st.integers(0, 3))
@settings(max_examples=300)
@example([{"_id": "a", "text": "x"}], 0, b"\xef", 0)
def test_damage_is_never_read_as_something_else(folder, rows, at, bytes_in, cut):
    block = "".join(json.dumps(row, ensure_ascii=bool(at % 2)) + "\n" for row in rows).encode()
    at %= len(block)
    block = block[:at] + bytes_in + block[at + cut :]
    found = compiled(block)
    if found is not None:
        assert found == general(block, folder)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{}",
        b"[]",
        b'{"_id": "", "text": "x"}',
        b'{"_id": 1, "text": "x"}',
        b'{"_id": "a"}',
        b'{"text": "x"}',
        b'{"_id": "a", "text": null}',
        b'{"_id": "a", "text": "x", "text": "y"}',
        b'{"_id": "a", "text": "x", "n": 1}',
        b'{"_id": "a", "text": "x", "lang": "en"}',
        b'{"_id": "a", "text": "x", "id": "b"}',
        b'{"_id": "a", "text": "x", "metadata": {"u": 1}}',
        b'{"_id": "a", "text": "x",}',
        b'{"_id": "a" "text": "x"}',
        b'{"_id": "a", "text": "x"} x',
        b'{"_id": "a", "text": "x"',
        b'{"_id": "a", "text": "x',
        b'{"_id": "a", "text": "\\',
        b'{"_id": "a", "text": "\\u12',
        b'{"_id": "a", "text": "\\ud800\\u12',
        b'{"_id": "a", "text": "\\ud800"}',
        b'{"_id": "a", "text": "\\udc00"}',
        b'{"_id": "a", "text": "\\ud800\\ud800"}',
        b'{"_id": "a", "text": "\\x41"}',
        b'{"_id": "a", "text": "a\tb"}',
        b'{"_id": "a", "text": "\xc0\x80"}',
        b'{"_id": "a", "text": "\xed\xa0\x80"}',
        b'{"_id": "a", "text": "\xf4\x90\x80\x80"}',
        b'{"_id": "a", "text": "\xe2\x82"}',
        b'{"_id": "a", "text": "\xff"}',
        b'{"_\\u0069d": "a", "text": "x"}',
        b'{"_id": "a", "text": "x", "\xc3\xa9": "y"}',
    ],
)
def test_anything_unusual_is_left_to_the_general_reader(line: bytes):
    good = b'{"_id": "g", "text": "fine"}\n'
    assert compiled(line + b"\n") is None
    assert compiled(good + line + b"\n" + good) is None
    assert compiled(good) == (["g"], [""], ["fine"])
    assert compiled(good[:-1]) is None  # the last line end may be missing: not plain


def test_a_large_file_is_read_the_same_from_the_first_to_the_last_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    lines = [json.dumps({"_id": f"d{i}", "title": "t", "text": f"é {i} " * (i % 90)}) for i in range(4000)]
    lines[1500] = '{"_id": 1500, "text": null}'
    path = tmp_path / "corpus.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    slow = general(path.read_bytes(), tmp_path)
    monkeypatch.setattr(beir, "_WORTH_COMPILING", 200_000)
    assert general(path.read_bytes(), tmp_path) == slow
    assert slow is not None
    assert slow[0][1499:1502] == ["d1499", "1500", "d1501"]
    with path.open("rb") as stream:
        assert sum(READER.read(block) is not None for block in read_blocks(stream)) > 3


def test_a_file_of_unusual_lines_is_not_tried_for_ever():
    reader = PlainReader()
    for _ in range(8):
        assert reader.read(b"[]\n") is None
    assert reader.read(b'{"_id": "g", "text": "fine"}\n') is None
