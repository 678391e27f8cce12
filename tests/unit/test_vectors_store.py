"""The embedding store: nothing twice, nothing lost but a batch, damage named. The encoder is a plain function."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.kills import killed_later_each_time
from weir.core.strings import Strings
from weir.errors import BadValue, StoreError, StoreWarning, UnknownName
from weir.systems.vectors import journal
from weir.systems.vectors.exact_search import ArraySource, search
from weir.systems.vectors.store import CODECS, EncodingBlocks, RowStore, TextSource, codec, encoded_rows

D = 24


def vector_of(text: str) -> np.ndarray:
    """A vector that only the text decides."""
    digest = hashlib.blake2b(text.encode("utf-8"), digest_size=D).digest()
    return (np.frombuffer(digest, np.uint8).astype(np.float32) - 127.5) / np.float32(63.7)


def counted(seen: list[str]):
    def encode(texts: list[str]) -> np.ndarray:
        seen.extend(texts)
        return np.stack([vector_of(t) for t in texts])

    return encode


def texts(*values: str) -> TextSource:
    return TextSource.of(Strings.of(values))


def store(folder: Path, dtype: str = "fp32") -> RowStore:
    return RowStore.of(folder, {"model": "some/model", "max_length": 8}, dtype)


def test_what_is_paid_for_is_never_encoded_twice(tmp_path):
    seen: list[str] = []
    missing = EncodingBlocks(2, whole=False)
    first = encoded_rows(store(tmp_path), texts("a", "b", "a", "", "c"), counted(seen), cut=missing)
    assert seen == ["a", "b", "", "c"]
    np.testing.assert_array_equal(first.values, np.stack([vector_of(t) for t in ("a", "b", "a", "", "c")]))
    other = encoded_rows(store(tmp_path), texts("c", "d", "a"), counted(seen), cut=missing)
    assert seen == ["a", "b", "", "c", "d"]
    np.testing.assert_array_equal(other.values, np.stack([vector_of(t) for t in "cda"]))
    again = encoded_rows(store(tmp_path), texts("a", "b"), counted(seen))
    assert len(seen) == 5
    assert isinstance(again.values.base, np.ndarray)  # rows that follow each other are not copied


def test_a_block_is_encoded_whole_whatever_of_it_is_there(tmp_path):
    """Company moves bits here, as in a real encoder; whatever the store held before, the bytes are those of a fresh one."""

    def encode(given: list[str]) -> np.ndarray:
        seen.append(given)
        rows = np.stack([vector_of(t) for t in given])
        return rows + rows.mean()

    names, seen = [*"abcdefgaghij"], list[list[str]]()
    whole = encoded_rows(store(tmp_path / "whole"), texts(*names), encode, cut=EncodingBlocks(3))
    assert seen == [[*"abc"], [*"def"], [*"ghi"], ["j"]]
    for step in (2, 3, 5):
        at = store(tmp_path / str(step))
        some = [t for i, t in enumerate(sorted(set(names))) if i % step == 1]
        of_whole = whole.snapshot.texts.find(texts(*some).hashes())
        with journal.locked_store(at.folder):
            at.add(texts(*some).hashes(), whole.snapshot.vectors(of_whole))
        found = encoded_rows(at, texts(*names), encode, cut=EncodingBlocks(3))
        np.testing.assert_array_equal(found.values, whole.values)
    seen.clear()
    encoded_rows(store(tmp_path / "2"), texts(*names, "k"), encode, cut=EncodingBlocks(3))
    assert seen == [["j", "k"]]  # blocks in which nothing is missing stay


def test_blocks_end_where_a_group_ends():
    once, lacking = np.array([0, 1, 3, 4, 5, 6]), np.array([1, 0, 0, 0, 0, 0, 1], np.bool_)
    group = np.array([7, 7, 7, 7, 8, 8, 8])
    assert [b.tolist() for b in EncodingBlocks(2, group=group).blocks(once, lacking)] == [[0, 1], [6]]
    assert [b.tolist() for b in EncodingBlocks(2).blocks(once, lacking)] == [[0, 1], [5, 6]]
    assert [b.tolist() for b in EncodingBlocks(9, whole=False, group=group).blocks(once, lacking)] == [[0, 6]]


def test_another_encoder_has_another_store(tmp_path):
    seen: list[str] = []
    encoded_rows(store(tmp_path), texts("a"), counted(seen))
    encoded_rows(RowStore.of(tmp_path, {"model": "some/model", "max_length": 9}), texts("a"), counted(seen))
    encoded_rows(store(tmp_path, "int8"), texts("a"), counted(seen))
    assert seen == ["a", "a", "a"]
    assert json.loads((store(tmp_path).folder / "store.json").read_text())["about"]["model"] == "some/model"


@pytest.mark.parametrize(
    ("dtype", "width", "error"),
    [("fp32", 96, 0), ("fp16", 48, 1e-3), ("bf16", 48, 8e-3), ("int8", 28, 9e-3), ("binary", 7, 1.2)],
)
def test_what_each_way_to_store_costs_and_loses(tmp_path, dtype, width, error):
    names = [f"text {i}" for i in range(300)]
    found = encoded_rows(store(tmp_path, dtype), texts(*names), counted([]))
    exact = np.stack([vector_of(t) for t in names])
    assert found.snapshot.raw.shape == (300, width)
    assert found.values.dtype == np.float32
    assert np.abs(found.values - exact).max() <= error * 2
    length = np.linalg.norm(exact, axis=1)
    if dtype != "fp32":
        assert np.abs(found.values - exact).max() > 0
    np.testing.assert_allclose(np.linalg.norm(found.values, axis=1), length, rtol=5e-3)
    queries = exact[:7]
    a, b = search(found, queries, 5), search(ArraySource(found.values), queries, 5)
    np.testing.assert_array_equal(a.doc, b.doc)
    np.testing.assert_array_equal(a.score, b.score)
    if dtype != "binary":
        assert a.doc[::5].tolist() == list(range(7))


@pytest.mark.parametrize("dtype", sorted(CODECS))
def test_another_way_to_store_takes_its_vectors_from_full_precision(tmp_path, dtype):
    """The bytes are those of encoding; what is not there, and what fp16 cannot hold, is left to encode."""
    names, seen = [f"text {i}" for i in range(40)], list[str]()
    encoded_rows(store(tmp_path), texts(*names), counted(seen))
    with journal.locked_store(store(tmp_path).folder):
        store(tmp_path).add(texts("huge").hashes(), np.full((1, 24), 1e30, np.float32))
    seen.clear()
    some = texts("text 3", "new", "text 3", "text 11", "huge")
    for _ in range(2):
        store(tmp_path, dtype).convert(store(tmp_path), some)
    one = store(tmp_path, dtype).snapshot()
    assert len(one.texts) == {"fp32": 41, "fp16": 2}.get(dtype, 3)
    fresh = encoded_rows(store(tmp_path / "fresh", dtype), texts("text 3", "text 11"), counted([]))
    rows = one.texts.find(texts("text 3", "text 11").hashes())
    np.testing.assert_array_equal(one.raw[rows], fresh.snapshot.raw[fresh.numbers])
    assert seen == []


@pytest.mark.parametrize("dtype", sorted(CODECS))
def test_zeros_and_signs_survive(dtype):
    kind = codec(dtype)
    rows = np.array([[0, 0, 0, 0, 0], [1, -1, 1, -1, -1]], np.float32)
    np.testing.assert_array_equal(kind.read(kind.write(rows), 5), rows)
    assert kind.write(rows).shape == (2, kind.width(5))


def test_progress_counts_what_has_its_vector(tmp_path):
    told: list[tuple[int, int]] = []
    encoded_rows(store(tmp_path), texts("a", "b"), counted([]))
    encoded_rows(
        store(tmp_path),
        texts(*"abcdef"),
        counted([]),
        lambda done, total: told.append((done, total)),
        EncodingBlocks(2),
    )
    assert told == [(2, 6), (4, 6)]


def test_bad_vectors_are_refused_by_the_name_of_their_text(tmp_path):
    named = TextSource(3, Strings.of("abc").slice, lambda i: f"doc-{i}")

    def nan(given: list[str]) -> np.ndarray:
        return np.stack([vector_of(t) * (np.nan if t == "b" else 1) for t in given])

    with pytest.raises(BadValue, match="text 'doc-1': its vector is not finite"):
        encoded_rows(store(tmp_path), named, nan)
    for given, said in ((np.ones((2, D)), "the rows of 2"), (np.ones(3), r"vectors of shape \(3,\)")):
        with pytest.raises(BadValue, match=f"text 'doc-0': 3 texts gave {said}"):
            encoded_rows(store(tmp_path), named, lambda _, given=given: given)
    with pytest.raises(BadValue, match="beyond the range of fp16"):
        encoded_rows(store(tmp_path, "fp16"), named, lambda given: np.full((3, D), 1e6))
    encoded_rows(store(tmp_path), texts("z"), counted([]))
    with pytest.raises(BadValue, match=r"gave vectors of 5 dimensions; those in .* have 24"):
        encoded_rows(store(tmp_path), named, lambda given: np.ones((len(given), 5)))
    assert len(encoded_rows(store(tmp_path), named, counted([]))) == 3
    with pytest.raises(UnknownName, match="fp32"):
        store(tmp_path, "fp23")


def test_no_texts_need_no_store(tmp_path):
    assert len(encoded_rows(store(tmp_path), texts(), counted([]))) == 0


def test_damage_is_named_and_only_what_is_damaged_is_made_again(tmp_path):
    here = store(tmp_path)
    for part in ("abc", "def", "ghi"):
        encoded_rows(here, texts(*part), counted([]))
    files = ("vectors.bin", "texts.bin", "journal.bin", "store.json")
    v, t, j, facts = whole = [(here.folder / name).read_bytes() for name in files]
    exact = np.stack([vector_of(x) for x in "abcdefghi"])
    for name, data, said, again in (
        ("vectors.bin", v[:-1], r"vectors\.bin: 863 bytes, expected 864", "ghi"),
        ("vectors.bin", v[:400] + b"!" + v[401:], r"vectors\.bin: rows 3 to 5 are damaged", "def"),
        ("vectors.bin", v[: -(1 << 9)] + bytes(1 << 9), r"vectors\.bin: rows 3 to 5 are damaged", "defghi"),
        ("texts.bin", b"!" + t[1:], r"texts\.bin: rows 0 to 2 are damaged", "abc"),
        ("texts.bin", None, r"texts\.bin: 0 bytes", "abcdefghi"),
        ("journal.bin", b"!" + j[1:], r"journal\.bin: record 1 is damaged", "abcdef"),
        ("journal.bin", j[:48] + bytes(24), r"journal\.bin: record 3 is damaged", "ghi"),
        ("store.json", b"{", r"store\.json: changed since it was written", ""),
        ("store.json", facts.replace(b"some/model", b"some/other"), r"store\.json: changed since", ""),
        ("store.json", None, r"store\.json: changed since", ""),
    ):
        (here.folder / name).unlink() if data is None else (here.folder / name).write_bytes(data)
        seen: list[str] = []
        with pytest.warns(StoreWarning, match=said + f".*; {9 - len(again)} texts are kept") as lines:
            found = encoded_rows(here, texts(*"abcdefghi"), counted(seen), cut=EncodingBlocks(whole=False))
        assert len(lines) == 1
        assert "".join(seen) == again
        np.testing.assert_array_equal(found.values, exact)
        assert here.snapshot() is not None
        for file, kept in zip(files, whole, strict=True):
            (here.folder / file).write_bytes(kept)
    assert [p.name for p in tmp_path.iterdir()] == [here.folder.name]


def test_contents_are_compared_once_while_nothing_changes(tmp_path):
    here = store(tmp_path)
    encoded_rows(here, texts(*"abc"), counted([]))
    before = journal._sound.cache_info().misses
    for _ in range(3):
        assert here.snapshot() is not None
    assert journal._sound.cache_info().misses == before + 2  # the vectors and the texts


def test_where_nothing_may_be_written_damage_is_one_line(tmp_path):
    here = store(tmp_path)
    encoded_rows(here, texts(*"abc"), counted([]))
    (here.folder / "vectors.bin").write_bytes(b"")
    tmp_path.chmod(0o555)
    try:
        if os.access(tmp_path, os.W_OK):
            pytest.skip("who runs this may write everywhere")
        with pytest.raises(StoreError, match="no permission to write there"):
            here.snapshot()
    finally:
        tmp_path.chmod(0o755)


def test_what_lies_behind_the_last_whole_record_does_not_count(tmp_path):
    here = store(tmp_path)
    encoded_rows(here, texts(*"abc"), counted([]))
    for name in ("vectors.bin", "texts.bin"):
        with (here.folder / name).open("ab") as file:
            file.write(b"half a batch, and more of it than the next one will have" * 40)
    with (here.folder / "journal.bin").open("ab") as file:
        file.write(b"half a rec")
    seen: list[str] = []
    encoded_rows(here, texts(*"abcd"), counted(seen), cut=EncodingBlocks(whole=False))
    assert seen == ["d"]
    clean = store(tmp_path / "clean")
    encoded_rows(clean, texts(*"abc"), counted([]))
    encoded_rows(clean, texts(*"abcd"), counted([]))
    for name in ("vectors.bin", "texts.bin", "journal.bin"):
        assert (here.folder / name).read_bytes() == (clean.folder / name).read_bytes()
    last = (here.folder / "journal.bin").read_bytes()
    (here.folder / "journal.bin").write_bytes(last[:-8] + bytes(8))  # as a power cut may leave a record
    with pytest.warns(StoreWarning, match=r"record 2 is damaged; 3 texts are kept"):
        encoded_rows(here, texts(*"abcd"), counted(seen), cut=EncodingBlocks(whole=False))
    assert seen == ["d", "d"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_one_error_and_loses_nothing(tmp_path):
    here = store(tmp_path)
    encoded_rows(here, texts(*"abc"), counted([]))
    kept = here.folder / "vectors.kept"
    (here.folder / "vectors.bin").rename(kept)
    (here.folder / "vectors.bin").symlink_to("/dev/full")
    with pytest.raises(StoreError, match="no space left on the disk"), journal.locked_store(here.folder):
        here.add(np.ones((1, 2), np.uint64), np.ones((1, D), np.float32))
    (here.folder / "vectors.bin").unlink()
    kept.rename(here.folder / "vectors.bin")
    snapshot = here.snapshot()
    assert snapshot is not None
    assert len(snapshot.texts) == 3


SCRIPT = """
import hashlib, sys
import numpy as np
from pathlib import Path
from weir.core.strings import Strings
from weir.systems.vectors.store import EncodingBlocks, RowStore, TextSource, encoded_rows

def encode(texts):
    rows = [np.frombuffer(hashlib.blake2b(t.encode(), digest_size=24).digest(), np.uint8) for t in texts]
    rows = np.stack(rows).astype(np.float32)
    with open(sys.argv[2], "a") as log:
        log.write("".join(t + "\\n" for t in texts))
    return rows + rows.mean()  # a vector depends on its batch, as rounding does in a real encoder

names = Strings.of(f"text {i % 900}" for i in range(1000))
encoded_rows(RowStore.of(Path(sys.argv[1]), {"model": "m"}), TextSource.of(names), encode, cut=EncodingBlocks(16))
"""


def command(folder: Path, log: Path) -> list[str]:
    return [sys.executable, "-c", SCRIPT, str(folder), str(log)]


def contents(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_killed_at_any_change_it_continues_and_ends_the_same(tmp_path):
    subprocess.run(command(tmp_path / "whole", tmp_path / "whole.log"), check=True)
    killed = command(tmp_path / "killed", tmp_path / "killed.log")
    kills = len(list(killed_later_each_time(killed, tmp_path / "killed"))) - 1
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")
    encoded = (tmp_path / "killed.log").read_text().count("\n")
    assert 900 < encoded <= 900 + kills * 16  # a kill costs its batch and no more


def test_two_processes_share_the_work(tmp_path):
    both = [subprocess.Popen(command(tmp_path / "both", tmp_path / f"{i}.log")) for i in range(2)]
    assert [p.wait() for p in both] == [0, 0]
    subprocess.run(command(tmp_path / "alone", tmp_path / "alone.log"), check=True)
    assert contents(tmp_path / "both") == contents(tmp_path / "alone")
    logs = [tmp_path / f"{i}.log" for i in range(2)]
    assert sum(log.read_text().count("\n") for log in logs if log.exists()) == 900


@pytest.mark.parametrize("dtype", ["fp32", "fp16", "bf16"])
def test_scoring_stored_vectors_adds_no_ties(dtype):
    from weir.systems.vectors.exact_search import ArraySource, search
    from weir.systems.vectors.store import codec

    rng = np.random.default_rng(10)
    vectors = rng.standard_normal((2050, 384)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    kept = codec(dtype)
    read = kept.read(kept.write(vectors), 384)
    documents, queries = read[:2000], read[2000:]
    found = search(ArraySource(documents), queries, 100)
    score = found.score.reshape(50, 100)
    exact = np.sort(queries.astype(np.float64) @ documents.astype(np.float64).T)[:, ::-1][:, :100]
    assert np.abs(score - exact).max() < 1e-7
    assert (np.diff(score) == 0).sum() == (np.diff(exact) == 0).sum() == 0
    # What this line of the list is about: products that are summed, or scores that are kept, in half precision.
    assert (np.diff(exact.astype(np.float16)) == 0).sum() > 100
