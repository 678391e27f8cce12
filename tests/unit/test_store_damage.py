"""Damage to a corpus store: noticed before it decides anything, mended from the source, said in one line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.unit.test_store import beside, part, written
from weir.errors import StoreError, StoreWarning
from weir.files.corpus_store import open_store
from weir.files.integrity import read_sealed, write_sealed
from weir.files.layouts import CollectionPart

__all__ = ["part"]  # a fixture


def used(part: CollectionPart) -> list[object]:
    """All that a store can be asked for."""
    store = open_store(part)
    corpus = store.corpus
    columns = [
        c.tolist() for c in (corpus.ids.column, corpus.text, corpus.title, store.metadata) if c is not None
    ]
    return [*columns, corpus.ids.codes(["d3", "x", "d1"]).tolist(), corpus.fingerprint]


def test_a_store_outlives_its_source(part: CollectionPart):
    open_store(part)
    part.path.unlink()
    assert open_store(part).corpus.ids.tolist() == ["d1", "d2", "d3"]
    (beside(part) / "ids.hash.npy").write_bytes(b"")
    with pytest.raises(
        StoreError, match=r"hash\.npy: 0 bytes, 152 were written, and .* is not there to rebuild it"
    ):
        open_store(part)
    (beside(part) / "store.json").write_text('{"format": 1}', encoding="utf-8")
    with pytest.raises(StoreError, match=r"is of another version, and .* is not there to rebuild it"):
        open_store(part)


def test_damage_that_shows_first_when_it_is_used_is_mended_there(part: CollectionPart):
    """One flipped bit anywhere ends in the same documents and one line, whatever is asked for first."""
    expected = used(part)
    written = {file: file.read_bytes() for file in beside(part).iterdir()}
    rng = np.random.default_rng(3)
    for file, data in written.items():
        for at in rng.choice(len(data), min(len(data), 40), replace=False).tolist():
            file.write_bytes(data[:at] + bytes([data[at] ^ (1 << int(rng.integers(8)))]) + data[at + 1 :])
            with pytest.warns(StoreWarning, match="the store is built again") as said:
                assert used(part) == expected
            assert len(said) == 1
            assert {f: f.read_bytes() for f in beside(part).iterdir()} == written


def test_a_few_documents_are_read_without_the_others(tmp_path: Path):
    """Damage in a block that nobody asks for is not noticed; asked for, it is, and what was read before stays valid."""
    rows = [{"_id": f"d{i}", "text": f"{i} " * 500} for i in range(2500)]
    part = written(tmp_path / "corpus.jsonl", rows)
    open_store(part)
    file = beside(part) / "text.utf8"
    data = bytearray(file.read_bytes())
    data[data.rindex(b"2400 2400")] ^= 1
    file.write_bytes(data)
    text = open_store(part).corpus.text
    assert text.take(np.array([3, -2499])).tolist() == [rows[3]["text"], rows[1]["text"]]
    early = text.slice(0, 3)
    with pytest.warns(
        StoreWarning, match=r"text\.utf8: changed since it was written, in bytes 5242880 and foll"
    ):
        assert text[2400] == rows[2400]["text"]
    assert early.tolist() == [row["text"] for row in rows[:3]]
    assert text.take(np.arange(2500)).tolist() == list(text) == [row["text"] for row in rows]
    part.path.unlink()
    file.write_bytes(data)
    with pytest.raises(
        StoreError, match=r"in bytes 5242880 and following, and .* is not there to rebuild it"
    ):
        open_store(part).corpus.text.tolist()


FILES = [
    "_id.utf8",
    "_id.offsets",
    "text.utf8",
    "metadata.offsets",
    "ids.hash.npy",
    "ids.code.npy",
    "store.json",
]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("damage", ["empty", "half", "gone", "noise", "folder", "longer"])
def test_a_damaged_store_is_built_again(part: CollectionPart, name: str, damage: str):
    expected = used(part)
    file = beside(part) / name
    data = file.read_bytes()
    file.unlink()
    if damage == "folder":
        file.mkdir()
    elif damage != "gone":
        noise = np.random.default_rng(1).integers(0, 256, len(data), np.uint8).tobytes()
        file.write_bytes(
            {"empty": b"", "half": data[: len(data) // 2], "noise": noise, "longer": data + b"}x"}[damage]
        )
    with pytest.warns(StoreWarning, match="the store is built again"):
        assert used(part) == expected
    assert file.read_bytes() == data


@pytest.mark.parametrize(
    "change",
    [
        lambda about: about.pop("columns"),
        lambda about: about["columns"].remove("text"),
        lambda about: about.update(columns=[]),
        lambda about: about.update(columns=["_id", "text", "../corpus"]),
        lambda about: about["files"].update({"text.offsets": about["files"]["text.utf8"]}),
        lambda about: about["files"].update({"text.utf8": {"bytes": -1, "crc32": ""}}),
        lambda about: about.update(documents=4),
        lambda about: about.update(documents="x"),
        lambda about: about.update(files={}),
    ],
)
def test_a_record_that_makes_no_sense_is_damage_even_where_its_checksum_fits(part: CollectionPart, change):
    open_store(part)
    path = beside(part) / "store.json"
    about = read_sealed(path)
    change(about)
    write_sealed(path, about)
    with pytest.warns(StoreWarning):
        assert open_store(part).corpus.text.tolist() == ["first text", "two ß 二", ""]
    assert read_sealed(path)["format"] == 3


def test_a_store_of_another_source_is_built_again_without_a_word(part: CollectionPart):
    open_store(part)
    path = beside(part) / "store.json"
    write_sealed(path, {**read_sealed(path), "source": 1})
    assert len(open_store(part).corpus) == 3
    assert read_sealed(path)["source"] != 1


@pytest.mark.parametrize("version", [2, 99, None])
def test_a_store_of_another_version_is_built_again_and_said_in_one_line(part: CollectionPart, version):
    open_store(part)
    path = beside(part) / "store.json"
    write_sealed(path, {**read_sealed(path), "format": version})
    with pytest.warns(StoreWarning, match=r"weir is of another version; the store is built again") as said:
        assert len(open_store(part).corpus) == 3
    assert len(said) == 1
    path.write_text('{"format": 1, "documents": 7}', encoding="utf-8")  # as version 0.1 wrote it
    with pytest.warns(StoreWarning, match=r"is of another version; the store is built again") as said:
        assert len(open_store(part).corpus) == 3
    assert len(said) == 1
    assert read_sealed(path)["format"] == 3
