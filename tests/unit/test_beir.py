"""Collections on disk in every accepted shape, and what each kind of damage is called."""

from __future__ import annotations

import gzip
import json
import sys
import zipfile
from pathlib import Path

import pytest

from weir.core.strings import Strings
from weir.datasets.load import load, load_group
from weir.datasets.names import named_split
from weir.errors import FormatError, UnknownName
from weir.files.json_files import BLOCK_BYTES, read_blocks, read_records
from weir.files.layouts import CollectionPart, find_layout
from weir.files.records import read_documents, read_judgments, read_queries

DOCUMENTS = [
    {"_id": "d1", "title": "One", "text": "first text"},
    {"_id": "d 2", "title": "", "text": "second\u0085text\u2028on one line"},
    {"_id": "é", "title": "Three", "text": "", "metadata": {"url": "http://x"}},
]
QUERIES = [
    {"_id": "q1", "text": "one?"},
    {"_id": "q2", "text": "two?"},
    {"_id": "unjudged", "text": "three?"},
]
QRELS = "query-id\tcorpus-id\tscore\nq2\td 2\t0\nq1\td1\t2\nq1\té\t-1\n"


def lines(rows: list[dict]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


@pytest.fixture
def parts() -> dict[str, bytes]:
    return {
        "corpus.jsonl": lines(DOCUMENTS),
        "queries.jsonl": lines(QUERIES),
        "qrels/test.tsv": QRELS.encode(),
    }


def place(root: Path, parts: dict[str, bytes]) -> Path:
    for name, data in parts.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return root


def check(path: Path) -> None:
    """Whatever the shape, the same collection is read."""
    dataset = load(path)
    assert dataset.corpus.ids.tolist() == ["d1", "d 2", "é"]
    assert dataset.corpus.text.tolist() == [d["text"] for d in DOCUMENTS]
    assert dataset.corpus.title is not None
    assert dataset.corpus.title.tolist() == ["One", "", "Three"]
    assert dataset.queries.ids.tolist() == ["q1", "q2"]
    assert dataset.queries.text.tolist() == ["one?", "two?"]
    assert dataset.all_queries.ids.tolist() == ["q1", "q2", "unjudged"]
    assert dataset.qrels.to_dict() == {"q2": {"d 2": 0}, "q1": {"d1": 2, "é": -1}}
    assert dataset.corpus.ids.codes(["é", "none", "d1"]).tolist() == [2, -1, 0]


def test_a_folder(tmp_path: Path, parts: dict[str, bytes]):
    check(place(tmp_path, parts))


def test_packed_files(tmp_path: Path, parts: dict[str, bytes]):
    check(place(tmp_path, {name + ".gz": gzip.compress(data) for name, data in parts.items()}))


@pytest.mark.parametrize("prefix", ["", "set/", "deep/er/"])
def test_a_zip_is_read_in_place(tmp_path: Path, parts: dict[str, bytes], prefix: str):
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            archive.writestr(prefix + name, data)
        archive.writestr("README", "not a part")
    check(tmp_path / "a.zip")
    assert load(tmp_path / "a.zip").name == "a"


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_zip_with_two_files_of_one_name_is_refused(tmp_path: Path, parts: dict[str, bytes]):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for name, data in [*parts.items(), list(parts.items())[-1]]:
            archive.writestr(name, data)
    with pytest.raises(FormatError, match=f"two files named '{list(parts)[-1]}'"):
        load(tmp_path / "a.zip")


def test_a_folder_of_one_letter_has_splits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    assert named_split("C:test") == ("C:test", None)  # a drive
    (tmp_path / "C").mkdir()
    assert named_split("C:test") == ("C", "test")


def test_a_zip_of_several_gives_the_one_that_is_named(tmp_path: Path, parts: dict[str, bytes]):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for name, data in parts.items():
            archive.writestr(f"all/two/{name}", data)
            archive.writestr(f"all/one/{name}", data.replace(b"first", b"other"))
    with pytest.raises(FormatError, match=r"2 collections \(all/one, all/two\)"):
        find_layout(tmp_path / "a.zip")
    for name, text in (("all/one", "other text"), ("two", "first text")):
        layout = find_layout(tmp_path / "a.zip", name)
        assert [b.texts[0] for b in read_documents(layout.need_documents())] == [text]


def test_other_names_and_tables(tmp_path: Path):
    tables = {
        "docs.tsv": (
            "id\ttitle\ttext\nd1\tOne\tfirst text\nd 2\t\tsecond\u0085text\u2028on one line\r\né\tThree\t\n"
        ),
        "queries.tsv": "q1\tone?\nq2\ttwo?\nunjudged\tthree?\n",
        "qrels.txt": "q2\t0\td 2\t0\r\nq1\t0\td1\t2\r\nq1\t0\té\t-1",
    }
    check(place(tmp_path, {name: text.encode() for name, text in tables.items()}))


def test_a_toml_file_names_the_parts(tmp_path: Path, parts: dict[str, bytes]):
    place(tmp_path / "data", parts)
    toml = tmp_path / "mine.toml"
    toml.write_text(
        'name = "mine"\ndocuments = "data/corpus.jsonl"\nqueries = "data/queries.jsonl"\n'
        '[qrels]\ndev = "data/qrels/test.tsv"\n',
        encoding="utf-8",
    )
    check(toml)
    dataset = load(toml)
    assert (dataset.name, dataset.split, dataset.self_match) == ("mine", "dev", "keep")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("documents = 5", "a value that is not text"),
        ("docs = 'x'", "the key 'docs'"),
        ("documents", "not TOML"),
        ("split = 'test'", "no part of a collection"),
    ],
)
def test_a_toml_file_that_says_nothing_useful(tmp_path: Path, text: str, found: str):
    (tmp_path / "mine.toml").write_text(text, encoding="utf-8")
    with pytest.raises(FormatError, match=found):
        load(tmp_path / "mine.toml")


def test_the_split_is_test_or_the_only_one_or_asked_for(tmp_path: Path, parts: dict[str, bytes]):
    root = place(tmp_path / "mine", parts)
    assert load(root).split == "test"
    (root / "qrels" / "dev.tsv").write_bytes(b"q1\td1\t1\n")
    assert load(root).splits == ["dev", "test"]
    assert load(root, "dev").queries.ids.tolist() == ["q1"]
    with pytest.raises(FormatError, match="found judgments for dev, test; expected the split 'train'"):
        load(root, "train")
    (root / "qrels" / "test.tsv").rename(root / "qrels" / "train.tsv")
    splits = "found judgments for dev, train; expected one of these splits after the name, as in mine:dev"
    with pytest.raises(FormatError, match=splits):
        load(root)
    assert load(f"{root}:dev").queries.ids.tolist() == ["q1"]
    assert (load(f"{root}/:train").split, load("brook-facts:test").name) == ("train", "brook-facts")
    assert [one.split for one in load_group("brook:test")] == ["test"] * len(load_group("brook"))
    for name in ("hf:mteb/nfcorpus", "irds:beir/scifact/test", "hf:mteb/x@main#a:b/c", "C:mine"):
        assert named_split(name) == (name, None)
    root.rename(tmp_path / "mine:dev")
    assert load(f"{tmp_path}/mine:dev:train").split == "train"
    with pytest.raises(FormatError, match="found judgments for dev, train"):
        load(f"{tmp_path}/mine:dev")


@pytest.mark.parametrize(
    ("gone", "message"),
    [
        ("corpus.jsonl", "no documents; expected one of corpus.jsonl, docs.jsonl, corpus.tsv, docs.tsv"),
        ("queries.jsonl", "no queries; expected one of queries.jsonl, queries.tsv"),
        ("qrels/test.tsv", "no judgments; expected one of qrels/test.tsv, qrels.tsv, qrels.txt"),
    ],
)
def test_a_missing_part_is_missed_when_it_is_asked_for(
    tmp_path: Path, parts: dict[str, bytes], gone: str, message: str
):
    dataset = load(place(tmp_path, {name: data for name, data in parts.items() if name != gone}))
    with pytest.raises(FormatError) as caught:
        _ = (dataset.corpus, dataset.all_queries, dataset.qrels)
    assert message in str(caught.value)
    assert str(tmp_path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_nothing_of_that_name(tmp_path: Path):
    with pytest.raises(UnknownName, match="did you mean scifact"):
        load("scifacts")
    with pytest.raises(FormatError, match="no such file or folder"):
        load("./scifacts")
    with pytest.raises(FormatError, match="no part of a collection"):
        load(tmp_path)
    (tmp_path / "x.zip").write_bytes(b"no zip")
    with pytest.raises(FormatError, match="not a readable zip"):
        load(tmp_path / "x.zip")


# Lines


def part(tmp_path: Path, data: bytes, name: str = "corpus.jsonl") -> CollectionPart:
    (tmp_path / name).write_bytes(data)
    return CollectionPart(tmp_path / name)


def everything(source: CollectionPart) -> tuple[list[str], list[str], list[str]]:
    batches = list(read_documents(source))
    columns = ([b.ids for b in batches], [b.titles for b in batches], [b.texts for b in batches])
    ids, titles, texts = (Strings.concatenated(column).tolist() for column in columns)
    return ids, titles, texts


@pytest.mark.parametrize("without_orjson", [False, True])
def test_what_real_files_contain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, without_orjson: bool):
    if without_orjson:
        monkeypatch.setitem(sys.modules, "orjson", None)
    data = (
        b'\xef\xbb\xbf{"_id": "a", "text": "x"}\r\n'
        b"\n"
        b'{"_id": 7, "title": null, "text": NaN}\n'
        b'{"_id": "c", "title": 1984, "text": "half \\ud83d pair"}\n'
        b'   \n{"id": "d", "title": "no text"}\n'
        b'{"_id": "e", "title": "t", "text": "no end of line"}'
    )
    source = part(tmp_path, data)
    ids, titles, texts = everything(source)
    assert ids == ["a", "7", "c", "d", "e"]
    assert titles == ["", "", "1984", "no text", "t"]
    assert texts == ["x", "", "half \ufffd pair", "", "no end of line"]
    assert sum(batch.null_texts for batch in read_documents(source)) == 2


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (b'{"_id": "b", "text": ', 'found {"_id": "b", "text": (Expecting value'),
        (b"not json", "found not json (Expecting value"),
        (b'["_id"]', "found ['_id']"),
        (b"12", "found 12; expected one JSON object on each line"),
        (b'{"text": "x", "doc": 1}', "found no '_id' among the keys 'text', 'doc'"),
        (b'{"_id": "", "text": "x"}', "found the _id ''"),
        (b'{"_id": 1.5, "text": "x"}', "found the _id 1.5"),
        (b'{"_id": true, "text": "x"}', "found the _id True"),
        (b'{"_id": ["x"], "text": "x"}', "found the _id ['x']"),
        (b'{"_id": "b", "text": ["x"]}', "found a list as 'text'"),
        (b'{"_id": "b", "title": {}, "text": "x"}', "found a dict as 'title'"),
        (b'{"_id": "b", "text": "\xff"}', "not UTF-8"),
    ],
)
@pytest.mark.parametrize("blank", [b"", b"\n"])
def test_a_line_that_is_no_document_is_named(tmp_path: Path, line: bytes, found: str, blank: bytes):
    good = b'{"_id": "a", "text": "x"}\n'
    source = part(tmp_path, good + blank + line + b"\n" + good)
    with pytest.raises(FormatError) as caught:
        everything(source)
    message = str(caught.value)
    assert message.startswith(f"{source.path}, line {3 if blank else 2}: found ")
    assert found in message
    assert "\n" not in message


def test_the_line_is_right_far_into_a_file(tmp_path: Path):
    good = b'{"_id": "%d", "text": "some words to fill the blocks"}\n'
    n = 4 * BLOCK_BYTES // len(good)
    rows = [good % i for i in range(n)]
    rows[n - 10] = b"oops\n"
    with pytest.raises(FormatError, match=f", line {n - 9}: found oops"):
        everything(part(tmp_path, b"".join(rows)))


@pytest.mark.parametrize("name", ["corpus.jsonl", "corpus.tsv"])
def test_a_document_twice_names_both_lines(tmp_path: Path, name: str):
    rows = [
        b'{"_id": "%s", "text": "x"}\n' % i if "json" in name else i + b"\tx\n"
        for i in (b"a", b"1", b"b", b"1")
    ]
    place(tmp_path, {name: b"".join(rows)})
    with pytest.raises(FormatError, match=r"line 4: found the id '1' again \(first on line 2\)"):
        _ = load(tmp_path).corpus


def test_a_number_and_its_text_are_the_same_id(tmp_path: Path):
    place(tmp_path, {"corpus.jsonl": b'{"_id": 1, "text": "x"}\n{"_id": "1", "text": "y"}\n'})
    with pytest.raises(FormatError, match="the id '1' again"):
        _ = load(tmp_path).corpus


def test_a_query_twice_names_both_lines(tmp_path: Path):
    source = part(tmp_path, lines([*QUERIES, QUERIES[0]]), "queries.jsonl")
    with pytest.raises(FormatError, match=r"line 4: found the id 'q1' again \(first on line 1\)"):
        read_queries(source)


def test_a_file_without_any_text_is_another_format(tmp_path: Path):
    place(tmp_path, {"corpus.jsonl": b'{"_id": "1", "headline": "x"}\n'})
    with pytest.raises(FormatError, match="no document with a 'text'"):
        _ = load(tmp_path).corpus


@pytest.mark.parametrize("cut", [15, 30, -4])
def test_a_damaged_gz_is_one_line(tmp_path: Path, cut: int):
    packed = gzip.compress(lines(DOCUMENTS * 50), mtime=0)
    with pytest.raises(FormatError, match="a damaged file"):
        everything(part(tmp_path, packed[:cut], "corpus.jsonl.gz"))


def test_a_zip_whose_member_is_damaged_is_one_line(tmp_path: Path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("corpus.jsonl", lines(DOCUMENTS))
    data = (tmp_path / "a.zip").read_bytes()
    (tmp_path / "a.zip").write_bytes(data.replace(b"first text", b"worst text"))
    with pytest.raises(FormatError, match="a damaged file"):
        _ = load(tmp_path / "a.zip").corpus


def test_tables_with_too_few_cells_or_other_bytes(tmp_path: Path):
    with pytest.raises(FormatError, match=r"line 2: found 1 cells"):
        everything(part(tmp_path, b"a\tx\nb\n", "corpus.tsv"))
    with pytest.raises(FormatError, match=r"line 1: found bytes that are not UTF-8"):
        everything(part(tmp_path, b"a\t\xff\n", "corpus.tsv"))


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_blocks_are_whole_lines_whatever_their_size(tmp_path: Path, size: int):
    data = b"\xef\xbb\xbfone\n\ntwo two two\nthree"
    path = tmp_path / "x"
    path.write_bytes(data)
    with path.open("rb") as stream:
        blocks = list(read_blocks(stream, max(size, 3)))
    assert b"".join(blocks) == data[3:]
    assert all(block.endswith(b"\n") for block in blocks[:-1])


def test_records_know_their_lines(tmp_path: Path):
    path = tmp_path / "x"
    path.write_bytes(b'{"a": 1}\n\n{"a": 2}\n')
    with path.open("rb") as stream:
        (records,) = read_records(stream, "x")
    assert [row["a"] for row in records.rows] == [1, 2]
    assert [records.line_number(i) for i in range(2)] == [1, 3]


# Judgments


@pytest.mark.parametrize(
    "text",
    [
        "q\td\t1\n",
        "q\td\t1",
        "query-id\tcorpus-id\tscore\r\nq\td\t1\r\n",
        "q 0 d 1\n",
        "q\t0\td\t1.0\n\n",
        "qid\tQ0\tdocid\trel\nq\tQ0\td\t1\n",
        "\ufeffq\td\t1\n",
    ],
)
def test_judgments_in_every_shape(tmp_path: Path, text: str):
    assert read_judgments(part(tmp_path, text.encode(), "test.tsv")).to_dict() == {"q": {"d": 1}}


def test_a_header_alone_is_no_judgment(tmp_path: Path):
    assert len(read_judgments(part(tmp_path, b"query-id\tcorpus-id\tscore\n", "test.tsv"))) == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q\td\thigh\n", "line 1: found the grade 'high'"),
        ("q\td\t1\nq\te\tnan\n", "line 2: found the grade 'nan'"),
        ("q\td\t1\nq\td\t2\n", "line 2: found grade 2 for a pair that line 1 gives grade 1"),
    ],
)
@pytest.mark.parametrize("zipped", [False, True])
def test_judgments_that_are_none(tmp_path: Path, text: str, message: str, zipped: bool):
    if zipped:
        with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
            archive.writestr("set/qrels/test.tsv", text)
        source = find_layout(tmp_path / "a.zip").qrels["test"]
    else:
        source = part(tmp_path, text.encode(), "test.tsv")
    with pytest.raises(FormatError) as caught:
        read_judgments(source)
    assert str(caught.value).startswith(f"{source}, {message}")
