"""The store of texts with several rows each: nothing twice, nothing lost but a batch, damage named."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from weir.core.strings import Strings, offsets
from weir.errors import BadValue, StoreWarning
from weir.models.batching import Ragged
from weir.systems.vectors.store import RAW, EncodingBlocks, RowStore, TextSource, encoded_rows

WIDTH = 6


def rows_of(text: str) -> np.ndarray:
    """A row for each letter of a text; none for an empty one."""
    letters = np.frombuffer(text.encode(), np.uint8)
    return (letters[:, None] * np.arange(1, WIDTH + 1)).astype(np.uint8)


def block_of(given: list[str]):
    parts = [rows_of(t) for t in given]
    ptr = np.concatenate([[0], np.cumsum([len(p) for p in parts])]).astype(np.int64)
    return Ragged(ptr, np.concatenate([np.zeros((0, WIDTH), np.uint8), *parts]))


def counted(seen: list[str]):
    def encode(given: list[str]):
        seen.extend(given)
        return block_of(given)

    return encode


def texts(*values: str) -> TextSource:
    return TextSource.of(Strings.of(values))


def store(folder: Path, width: int = WIDTH) -> RowStore:
    return RowStore.of(folder, {"model": "some/model", "kind": "late"}, RAW, width)


def check(found, expected):
    wanted = block_of(list(expected))
    np.testing.assert_array_equal(found.ptr, wanted.ptr)
    np.testing.assert_array_equal(found.values, wanted.values)


def test_a_text_is_never_encoded_twice_and_may_have_no_rows(tmp_path):
    seen: list[str] = []
    names = ("ab", "", "cde", "ab", "f")
    first = encoded_rows(store(tmp_path), texts(*names), counted(seen), cut=EncodingBlocks(2, whole=False))
    assert seen == ["ab", "", "cde", "f"]
    check(first.rows(0, 5), names)
    check(first.rows(1, 3), names[1:3])
    check(first.rows(2, 2), [])
    check(first.rows_of(np.array([4, 1, 0])), ["f", "", "ab"])
    assert first.lengths.tolist() == [2, 0, 3, 2, 1]
    assert len(first) == 5
    other = encoded_rows(store(tmp_path), texts("xyz", "cde"), counted(seen), cut=EncodingBlocks(whole=False))
    assert seen == ["ab", "", "cde", "f", "xyz"]
    check(other.rows(0, 2), ["xyz", "cde"])
    again = encoded_rows(store(tmp_path), texts("cde", "f", "xyz"), counted(seen))
    assert len(seen) == 5
    assert not again.rows(0, 3).values.flags.owndata  # rows that follow each other are not copied
    again.release()
    check(again.rows(0, 3), ["cde", "f", "xyz"])


def test_blocks_of_about_so_many_rows_cover_all_texts_in_order(tmp_path):
    names = ["a" * n for n in (3, 0, 1, 9, 2, 2, 0)]
    found = encoded_rows(store(tmp_path), texts(*names), block_of)
    for size in (1, 4, 100):
        at = 0
        for start, stop, block in found.blocks(size):
            assert start == at < stop
            check(block, names[start:stop])
            assert block.ptr[-1] <= size or stop == start + 1
            at = stop
        assert at == len(names)


def test_texts_without_any_rows_and_no_texts(tmp_path):
    assert len(encoded_rows(store(tmp_path), texts(), block_of)) == 0
    found = encoded_rows(store(tmp_path), texts(""), block_of)
    check(found.rows(0, 1), [""])
    seen: list[str] = []
    check(encoded_rows(store(tmp_path), texts("", "a"), counted(seen)).rows(0, 2), ["", "a"])
    assert seen == ["", "a"]  # the block as a whole, of which the new one is added
    assert len(store(tmp_path).snapshot().texts) == 2


def test_blocks_that_an_encoder_yields_are_kept_one_by_one(tmp_path):
    def stopped(given: list[str]):
        yield block_of(given[:2])
        raise OSError("the power went")

    with pytest.raises(OSError, match="the power went"):
        encoded_rows(store(tmp_path), texts(*"abcd"), stopped)
    seen: list[str] = []
    encoded_rows(store(tmp_path), texts(*"abcd"), counted(seen), cut=EncodingBlocks(whole=False))
    assert seen == ["c", "d"]


def test_what_an_encoder_must_not_give(tmp_path):
    named = TextSource(2, Strings.of(["ab", "c"]).slice, lambda i: f"doc-{i}")
    for given in (lambda texts: block_of(texts[:1]), lambda texts: iter([block_of(texts[:1])])):
        with pytest.raises(BadValue, match="text 'doc-0': 2 texts gave the rows of 1"):
            encoded_rows(store(tmp_path / str(given)), named, given)
    with pytest.raises(BadValue, match=r"2 texts with 3 rows came as a table of \(3, 5\)"):
        encoded_rows(
            store(tmp_path),
            named,
            lambda given: replace(block_of(given), values=block_of(given).values[:, :5]),
        )


def test_rows_of_numbers_must_be_finite(tmp_path):
    kept = RowStore.of(tmp_path, {"model": "m"}, "fp16", 4)
    named = TextSource(3, Strings.of(["ab", "", "c"]).slice, lambda i: f"doc-{i}")

    def numbers(given: list[str]):
        rows = [[1, 70_000 if letter == "c" else 2] for text in given for letter in text]
        return Ragged(offsets(np.array([len(text) for text in given])), np.array(rows, np.float32))

    with pytest.raises(BadValue, match="text 'doc-2': its vector is not finite, or beyond the range of fp16"):
        encoded_rows(kept, named, numbers)
    assert len(encoded_rows(kept, texts("ab", ""), numbers)) == 2


def test_damage_is_named_and_only_what_is_damaged_is_made_again(tmp_path):
    here = store(tmp_path)
    for part in ("abc", "d", "efgh"):
        encoded_rows(here, texts(part, part[::-1] * 2), block_of)
    files = ("rows.bin", "texts.bin", "journal.bin", "store.json")
    rows, table, journal, facts = whole = [(here.folder / name).read_bytes() for name in files]
    every = ("abc", "cbacba", "d", "dd", "efgh", "hgfehgfe")
    for name, data, said, again in (
        ("rows.bin", rows[:-1], r"rows\.bin: 143 bytes, expected 144", every[4:]),
        ("rows.bin", rows[:60] + b"!" + rows[61:], r"rows\.bin: rows 9 to 11 are damaged", every[2:4]),
        ("texts.bin", table[:17] + b"!" + table[18:], r"texts\.bin: rows 0 to 1 are damaged", every[:2]),
        ("journal.bin", b"!" + journal[1:], r"journal\.bin: record 1 is damaged", every[:4]),
        (
            "journal.bin",
            journal[:-1] + bytes([journal[-1] ^ 1]),
            r"journal\.bin: record 3 is damaged",
            every[4:],
        ),
        ("store.json", b"{", r"store\.json: changed since it was written", ()),
        ("store.json", facts.replace(b'"size": 6', b'"size": 7'), r"store\.json: changed since", ()),
    ):
        assert data != whole[files.index(name)]
        (here.folder / name).write_bytes(data)
        seen: list[str] = []
        with pytest.warns(StoreWarning, match=said + f".*; {6 - len(again)} texts are kept") as lines:
            found = encoded_rows(here, texts(*every), counted(seen), cut=EncodingBlocks(whole=False))
        assert len(lines) == 1
        check(found.rows(0, 6), every)
        assert seen == list(again)
        assert here.snapshot() is not None
        for file, kept in zip(files, whole, strict=True):
            (here.folder / file).write_bytes(kept)


SCRIPT = """
import os, signal, sys
import numpy as np
from pathlib import Path
from weir.core.strings import Strings, offsets
from weir.models.batching import Ragged
from weir.systems.vectors import journal
from weir.systems.vectors.store import RAW, EncodingBlocks, RowStore, TextSource, encoded_rows

kind, at, log, kills = sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
names = Strings.of(f"text {i % 300}" for i in range(333))

def noted(texts):
    with open(log, "a") as file:
        file.write("".join(t + "\\n" for t in texts))

def vectors(texts):
    noted(texts)
    rows = np.array([[len(t), int(t[5:])] for t in texts], np.float32)
    return rows + rows.mean()  # what a text becomes depends on its batch, as rounding does in a real encoder

def tokens(texts):
    rows = vectors(texts).view(np.uint8)
    lengths = np.array([int(t[5:]) % 5 for t in texts])
    return Ragged(offsets(lengths), np.repeat(rows, lengths, axis=0))

def work():
    if kind == "ragged":
        encoded_rows(RowStore.of(at, {"model": "m"}, RAW, 8), TextSource.of(names), tokens, cut=EncodingBlocks(16))
    else:
        encoded_rows(RowStore.of(at, {"model": "m"}), TextSource.of(names), vectors, cut=EncodingBlocks(16))

def die_while_adding():
    store = RowStore.of(at, {"model": "m"}, RAW, 8) if kind == "ragged" else RowStore.of(at, {"model": "m"})
    with journal.locked_store(store.folder):
        os.kill(os.getpid(), signal.SIGKILL)

def die_in_write(number):
    # As a kill in the middle of a write leaves it: half of the bytes are there.
    real, calls = journal._put, [0]
    def half(path, place, data, durable=True):
        calls[0] += 1
        if calls[0] == number:
            with path.open("r+b" if path.exists() else "w+b") as file:
                file.seek(place)
                file.write(bytes(data)[: len(data) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        real(path, place, data)
    journal._put = half

if kills == -2:
    die_while_adding()
for number in range(1, kills + 1):
    child = os.fork()
    if child == 0:
        die_in_write(number)
        work()
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
work()
"""


def process(kind: str, folder: Path, kills: int = -1) -> subprocess.Popen[bytes]:
    log = folder.with_suffix(".log")
    return subprocess.Popen([sys.executable, "-c", SCRIPT, kind, str(folder), str(log), str(kills)])


def contents(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize("kind", ["ragged", "plain"])
def test_killed_in_any_write_it_continues_and_ends_the_same(tmp_path, kind):
    if not hasattr(os, "fork"):
        pytest.skip("needs fork")
    assert process(kind, tmp_path / "whole", 0).wait() == 0
    assert process(kind, tmp_path / "killed", 8).wait() == 0  # each time in another of a batch's three writes
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")
    encoded = (tmp_path / "killed.log").read_text().count("\n")
    assert 300 < encoded <= 300 + 8 * 16  # a kill costs its batch and no more


@pytest.mark.parametrize("kind", ["ragged", "plain"])
def test_the_lock_of_a_killed_process_goes_when_nothing_is_missing(tmp_path, kind):
    for name in ("whole", "killed"):
        assert process(kind, tmp_path / name, 0).wait() == 0
    assert process(kind, tmp_path / "killed", -2).wait() == -signal.SIGKILL
    assert [p.suffix for p in (tmp_path / "killed").iterdir() if p.is_file()] == [".lock"]
    assert process(kind, tmp_path / "killed", 0).wait() == 0
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")


def test_a_lock_that_cannot_be_cleared_is_no_error(tmp_path):
    """As in a folder that is read-only, which whoever runs the tests as root could not make."""
    here, seen = store(tmp_path), list[str]()
    encoded_rows(here, texts("ab"), counted(seen))
    (tmp_path / f".{here.folder.name}.lock").mkdir()
    check(encoded_rows(here, texts("ab"), counted(seen)).rows(0, 1), ["ab"])
    assert seen == ["ab"]


def test_two_processes_share_the_work(tmp_path):
    both = [process("ragged", tmp_path / "both") for _ in range(2)]
    assert [p.wait() for p in both] == [0, 0]
    assert process("ragged", tmp_path / "alone").wait() == 0
    assert contents(tmp_path / "both") == contents(tmp_path / "alone")
    assert (tmp_path / "both.log").read_text().count("\n") == 300
