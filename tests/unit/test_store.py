"""The corpus store: whole, quick to open, and never the user's problem."""

from __future__ import annotations

import errno
import gzip
import itertools
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import weir
from weir.core.strings import HashIndex, Strings
from weir.errors import FormatError, StoreError, WeirError
from weir.files import corpus_store
from weir.files.corpus_store import ColumnWriter, open_store, source_fingerprint, store_paths
from weir.files.layouts import CollectionPart

ROWS = [
    {"_id": "d1", "title": "One", "text": "first text", "metadata": {}},
    {"_id": "d2", "title": "", "text": "two ß 二", "metadata": {"url": "http://x", "n": [1]}},
    {"_id": "d3", "title": "Three", "text": None, "metadata": {}},
]


def written(path: Path, rows: list[dict] = ROWS) -> CollectionPart:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes("".join(json.dumps(row) + "\n" for row in rows).encode())
    return CollectionPart(path)


@pytest.fixture
def part(tmp_path: Path) -> CollectionPart:
    return written(tmp_path / "set" / "corpus.jsonl")


def beside(part: CollectionPart) -> Path:
    return part.path.with_name(part.path.name + ".weir")


def test_what_was_written_is_read(part: CollectionPart):
    for _ in range(2):
        store = open_store(part)
        assert store.path == beside(part)
        corpus = store.corpus
        assert corpus.ids.tolist() == ["d1", "d2", "d3"]
        assert corpus.title is not None
        assert corpus.title.tolist() == ["One", "", "Three"]
        assert corpus.text.tolist() == ["first text", "two ß 二", ""]
        assert store.metadata is not None
        assert store.metadata.tolist() == ["", '{"url": "http://x", "n": [1]}', ""]
        assert store.null_texts == 1
        assert corpus.ids.codes(["d3", "x", "d1"]).tolist() == [2, -1, 0]
        assert corpus.fingerprint == source_fingerprint(part)


def test_columns_are_read_only_views_of_the_file(part: CollectionPart):
    corpus = open_store(part).corpus
    text, index = corpus.text.slice(0, 3), corpus.ids.index()
    for values in (text.data, text.ptr, index.hashes, index.positions):
        assert not values.flags.writeable
        assert not values.flags.owndata
    assert text.ptr.dtype == np.int64


def test_columns_nobody_has_are_not_kept(tmp_path: Path):
    store = open_store(
        written(tmp_path / "corpus.jsonl", [{"_id": "a", "text": "x"}, {"_id": "b", "text": "y"}])
    )
    assert store.corpus.title is None
    assert store.metadata is None
    assert sorted(p.name for p in store.path.iterdir()) == [
        "_id.offsets", "_id.utf8", "ids.code.npy", "ids.hash.npy", "store.json", "text.offsets", "text.utf8",
    ]  # fmt: skip


def test_numpy_alone_reads_the_columns(part: CollectionPart):
    """What docs/datasets.md says of the files: bytes, and little-endian int64 offsets."""
    store = open_store(part)
    for name, texts in (("_id", ["d1", "d2", "d3"]), ("text", ["first text", "two ß 二", ""])):
        data, ends = (
            (store.path / f"{name}.utf8").read_bytes(),
            np.fromfile(store.path / f"{name}.offsets", "<i8"),
        )
        assert [data[a:b].decode() for a, b in itertools.pairwise(ends)] == texts
        assert ends[0] == 0
        assert ends[-1] == len(data)


@given(batches=st.lists(st.lists(st.text(max_size=5), max_size=8), max_size=5))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_column_does_not_depend_on_its_batches(batches: list[list[str]], tmp_path: Path):
    given = [Strings.of([text.encode("utf-8", "replace").decode() for text in batch]) for batch in batches]
    whole = Strings.concatenated(given) if given else Strings.of([])
    found = []
    for name, parts in (
        ("pieces", [Strings.concatenated([Strings.of(["x"]), p]).slice(1, 1 + len(p)) for p in given]),
        ("whole", [whole]),
    ):
        column = ColumnWriter(tmp_path, name)
        for one in parts:
            column.append(one)
        column.close()
        found.append(
            (
                column.hash.rows,
                column.hash.bytes,
                column.hash.digest(),
                *((tmp_path / f"{name}.{end}").read_bytes() for end in ("utf8", "offsets")),
            )
        )
    assert found[0] == found[1]
    assert found[0][0] == len(whole)
    assert found[0][3:] == (whole.data.tobytes(), whole.ptr.tobytes())


def test_the_index_is_that_of_the_ids(tmp_path: Path):
    corpus = open_store(
        written(tmp_path / "corpus.jsonl", [{"_id": f"id{i * 7}", "text": "x"} for i in range(999)])
    ).corpus
    expected = HashIndex.of(corpus.ids.strings)
    assert np.array_equal(corpus.ids.index().hashes, expected.hashes)
    assert np.array_equal(corpus.ids.index().positions, expected.positions)


def test_the_fingerprint_is_that_of_ids_and_texts(tmp_path: Path):
    def of(rows: list[dict]) -> str:
        return open_store(
            written(tmp_path / str(len(list(tmp_path.iterdir()))) / "corpus.jsonl", rows)
        ).corpus.fingerprint

    first = of(ROWS)
    assert of([dict(reversed(row.items())) for row in ROWS]) == first
    assert of([{**row, "metadata": {}} for row in ROWS]) == first
    assert of(ROWS[::-1]) != first
    assert of(ROWS[:2]) != first
    assert of([{**row, "title": ""} for row in ROWS]) != first
    moved = [{"_id": "ab", "text": "c"}], [{"_id": "a", "text": "bc"}]
    assert of(moved[0]) != of(moved[1])
    assert of([{"_id": "a", "title": "b", "text": ""}]) != of([{"_id": "a", "title": "", "text": "b"}])


def test_a_changed_source_is_read_again(part: CollectionPart):
    old = open_store(part).corpus.fingerprint
    written(part.path, ROWS[:1])
    assert open_store(part).corpus.ids.tolist() == ["d1"]
    same_size = [{**ROWS[0], "text": "other text"}]
    time.sleep(0.01)
    written(part.path, same_size)
    assert open_store(part).corpus.text.tolist() == ["other text"]
    assert open_store(part).corpus.fingerprint != old


def test_an_unchanged_source_is_not_read_again(part: CollectionPart):
    open_store(part)
    before = (beside(part) / "store.json").stat().st_mtime_ns
    open_store(part)
    assert (beside(part) / "store.json").stat().st_mtime_ns == before


def test_no_file_and_no_store(tmp_path: Path):
    with pytest.raises(FormatError, match="no such file"):
        open_store(CollectionPart(tmp_path / "corpus.jsonl"))


def test_a_file_where_the_store_should_be_is_named_and_kept(part: CollectionPart):
    beside(part).write_text("in the way", encoding="utf-8")
    with pytest.raises(StoreError, match="a file is there"):
        open_store(part)
    assert beside(part).read_text(encoding="utf-8") == "in the way"


def test_a_read_only_folder_is_left_alone(part: CollectionPart, home: Path):
    part.path.parent.chmod(0o555)
    try:
        store = open_store(part)
    finally:
        part.path.parent.chmod(0o755)
    assert store.path == store_paths(part)[1]
    assert store.path.is_relative_to(home)
    assert [p.name for p in part.path.parent.iterdir()] == ["corpus.jsonl"]
    assert open_store(part).path == store.path


def test_nowhere_to_write_is_one_line(part: CollectionPart, home: Path):
    part.path.parent.chmod(0o555)
    home.rmdir()
    home.write_text("a file", encoding="utf-8")
    try:
        with pytest.raises(StoreError, match=r"cannot write .*: ") as caught:
            open_store(part)
    finally:
        part.path.parent.chmod(0o755)
        home.unlink()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("after", [0, 1, 5])
@pytest.mark.parametrize("where", [(np, "save"), (ColumnWriter, "append"), (ColumnWriter, "close")])
def test_a_full_disk_leaves_nothing_behind(
    part: CollectionPart, monkeypatch: pytest.MonkeyPatch, where, after: int
):
    calls = 0
    write = getattr(*where)

    def full(*args, **kwargs):
        nonlocal calls
        calls += 1
        if calls > after % (2 if where[0] is np else 4):
            if where[1] == "close":  # the file is closed all the same
                write(*args, **kwargs)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(*args, **kwargs)

    monkeypatch.setattr(*where, full)
    with pytest.raises(WeirError, match=r"cannot write .*corpus.jsonl.weir: no space left on the disk"):
        open_store(part)
    assert [p.name for p in part.path.parent.iterdir()] == ["corpus.jsonl"]


def test_a_bad_line_leaves_nothing_behind(tmp_path: Path):
    (tmp_path / "corpus.jsonl").write_bytes(b'{"_id": "a", "text": "x"}\noops\n')
    with pytest.raises(FormatError, match="line 2"):
        open_store(CollectionPart(tmp_path / "corpus.jsonl"))
    assert [p.name for p in tmp_path.iterdir()] == ["corpus.jsonl"]


@pytest.mark.parametrize("text", ["", "\n \n"])
def test_a_file_without_documents_is_refused(tmp_path: Path, text: str):
    (tmp_path / "corpus.jsonl").write_text(text)
    with pytest.raises(FormatError, match=r"corpus.jsonl: found an empty file; expected at least one record"):
        open_store(CollectionPart(tmp_path / "corpus.jsonl"))


BUILD = """
import sys
from pathlib import Path
from weir.files.corpus_store import open_store
from weir.files.layouts import CollectionPart
from weir.files.corpus_store import ColumnWriter
from weir.files.integrity import read_sealed, write_sealed
print("imported", flush=True)
sys.stdin.read(1)
print(open_store(CollectionPart(Path(sys.argv[1]))).corpus.fingerprint)
"""


def test_processes_that_build_at_the_same_time_all_succeed(tmp_path: Path, home: Path):
    rows = [{"_id": f"d{i}", "title": "t", "text": f"word{i} " * 20} for i in range(20_000)]
    part = written(tmp_path / "corpus.jsonl", rows)
    running = [
        subprocess.Popen(
            [sys.executable, "-c", BUILD, str(part.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"WEIR_HOME": str(home)},
        )
        for _ in range(3)
    ]
    assert [process.stdout.readline() for process in running] == ["imported\n"] * 3
    for process in running:
        process.stdin.write("!")
        process.stdin.flush()
    results = [process.communicate() for process in running]
    assert [process.returncode for process in running] == [0, 0, 0], results
    assert {out.strip() for out, _ in results} == {open_store(part).corpus.fingerprint}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["corpus.jsonl", "corpus.jsonl.weir"]


def test_opening_needs_neither_arrow_nor_numba(part: CollectionPart, home: Path):
    open_store(part)
    code = BUILD + "print(sorted({'pyarrow', 'numba', 'orjson', 'pandas'} & set(sys.modules)))"
    out = subprocess.run(
        [sys.executable, "-c", code, str(part.path)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"WEIR_HOME": str(home)},
    ).stdout
    assert out.splitlines()[2] == "[]"


def test_nothing_is_written_beside_documents_that_a_description_names_elsewhere(tmp_path, part, home):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "collection.toml").write_text('documents = "../set/corpus.jsonl"\n')
    assert len(weir.load(tmp_path / "mine/collection.toml").corpus) == 3
    assert [path.name for path in part.path.parent.iterdir()] == ["corpus.jsonl"]
    assert len(list(home.glob("stores/*-corpus.jsonl.weir"))) == 1


@pytest.mark.parametrize("ending", [".jsonl", ".jsonl.gz"])
def test_documents_that_were_changed_with_size_and_time_kept_are_noticed(tmp_path, ending):
    """What no program can keep is the time at which it did so."""
    path = tmp_path / f"corpus{ending}"
    write = (
        (lambda data: path.write_bytes(gzip.compress(data, 0))) if ending.endswith("gz") else path.write_bytes
    )
    write(b'{"_id": "d1", "text": "old"}\n')
    old, stat = open_store(CollectionPart(path)).corpus, path.stat()
    write(b'{"_id": "d1", "text": "new"}\n')
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (stat.st_size, stat.st_mtime_ns)
    new = open_store(CollectionPart(path)).corpus
    assert new.text.tolist() == ["new"]
    assert new.fingerprint != old.fingerprint


def test_a_copy_of_documents_and_their_store_is_read_once_and_not_built_again(tmp_path, part, monkeypatch):
    first = open_store(part).corpus.fingerprint
    shutil.copytree(part.path.parent, tmp_path / "copy")
    copied = CollectionPart(tmp_path / "copy" / part.path.name)
    monkeypatch.setattr(corpus_store, "_build", pytest.fail)
    assert open_store(copied).corpus.fingerprint == first
    monkeypatch.setattr(corpus_store, "content_hash_of", pytest.fail)
    assert open_store(copied).corpus.fingerprint == first


def test_where_nothing_may_be_written_documents_are_the_same_in_memory(tmp_path, home):
    path = tmp_path / "corpus.jsonl"
    rows = [
        {"_id": f"d{n}", "title": "t" * (n % 2), "text": f"ü {n}", "metadata": {"year": n, "of": ["a", "b"]}}
        for n in range(9)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    held = open_store(CollectionPart(path), read_only=True).corpus
    digests = held.metadata_digests(["year", "of"])
    assert [p.name for p in tmp_path.iterdir()] == ["corpus.jsonl"]
    assert not list(home.rglob("*"))
    stored = open_store(CollectionPart(path)).corpus
    assert (held.fingerprint, digests) == (stored.fingerprint, stored.metadata_digests(["year", "of"]))
    assert corpus_store.source_fingerprint(CollectionPart(path)) == stored.fingerprint
    assert held.field("year").number.tolist() == list(range(9))
    before = {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*")}
    again = open_store(CollectionPart(path), read_only=True)
    assert again.path.name == "corpus.jsonl.weir"
    assert again.corpus.metadata_digests(["year", "of"]) == digests
    assert {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*")} == before
