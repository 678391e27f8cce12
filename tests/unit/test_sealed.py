"""Records that notice a change, and arrays that are read without trust."""

from __future__ import annotations

import io
import json
import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from weir.errors import StoreError
from weir.experiment.stages import read_record
from weir.files.integrity import open_folder, read_array, read_sealed, seal_folder, write_sealed
from weir.models.checkpoints import read_object
from weir.settings import RECORD_BYTES

FACTS = {"format": 2, "mean": 0.1, "name": "é\ud800", "list": [1, (2, None)], "big": 2**70}


def test_a_record_reads_back_and_every_changed_character_is_noticed(tmp_path: Path):
    path = tmp_path / "r.json"
    write_sealed(path, FACTS | {"name": "é"})
    facts = read_sealed(path)
    assert facts == json.loads(json.dumps(FACTS | {"name": "é"}))
    text = path.read_text(encoding="utf-8")
    for at, old in enumerate(text):
        path.write_text(text[:at] + ("1" if old != "1" else "2") + text[at + 1 :], encoding="utf-8")
        if old.isspace():  # between two entries it says nothing
            with suppress(StoreError):
                assert read_sealed(path) == facts
        else:
            with pytest.raises(StoreError, match=r"r\.json: [^\n]*$"):
                read_sealed(path)
    path.write_text(json.dumps(json.loads(text)), encoding="utf-8")
    assert read_sealed(path) == facts


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"3", b"{}", b"\xff", b"[" * 10**5, b'{"a": ' + b"9" * 5000 + b"}"]
)
def test_what_is_no_record_is_one_line(tmp_path: Path, data: bytes):
    (tmp_path / "r.json").write_bytes(data)
    for path in (tmp_path / "r.json", tmp_path / "absent.json", tmp_path):
        with pytest.raises(StoreError, match=path.name):
            read_sealed(path)


def test_a_folder_is_as_it_was_or_named(tmp_path: Path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a").write_bytes(b"x" * 3_000_000)
    (tmp_path / "b").write_bytes(b"")
    seal_folder(tmp_path, "index.json", {"n": 1})
    assert open_folder(tmp_path, "index.json")["n"] == 1
    (tmp_path / "in" / "a").write_bytes(b"x" * 2_999_999 + b"y")
    with pytest.raises(StoreError, match="in/a: changed since it was written, in bytes 2097152"):
        open_folder(tmp_path, "index.json")
    (tmp_path / "in" / "a").unlink()
    with pytest.raises(StoreError, match="in/a: No such file"):
        open_folder(tmp_path, "index.json")


def written(array: np.ndarray, **how: bool) -> bytes:
    held = io.BytesIO()
    np.save(held, array, **how)
    return held.getvalue()


def test_whatever_an_array_file_holds_it_is_an_array_or_one_line(tmp_path: Path):
    path, whole = tmp_path / "a.npy", written(np.arange(7, dtype=np.int32))
    path.write_bytes(whole)
    assert read_array(path, np.int32, (7,)).tolist() == list(range(7))
    assert read_array(path).flags.writeable is False
    for kind, shape in ((np.int64, (-1,)), (np.int32, (8,)), (np.int32, (-1, -1))):
        with pytest.raises(StoreError, match="it holds int32 of shape"):
            read_array(path, kind, shape)
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("a.npy", whole)
    bad = [
        b"",
        whole[:-1],
        whole[:40],
        archive.getvalue(),
        b"PK\x03\x04",
        written(np.array([None]), allow_pickle=True),
    ]
    bad += [whole.replace(b"(7,)", change) for change in (b"(7,\x00", b"(-7)", b"(((7", b"'9'*", b"(9**")]
    bad += [whole.replace(b"<i4", b"|O8"), whole.replace(b"descr", b"\xff\xfe\xfd\xfc\xfb")]
    bad += [written(np.asfortranarray(np.zeros((3, 2)))), written(np.array(["a"]))]
    for data in bad:
        path.write_bytes(data)
        with pytest.raises(StoreError, match=r"a\.npy: damaged") as caught:
            read_array(path, None, (-1, -1) if b"True" in data else (-1,))
        assert "\n" not in str(caught.value)
    rng = np.random.default_rng(0)
    for _ in range(300):  # any byte of the header, any value
        data = bytearray(whole)
        data[int(rng.integers(128))] = int(rng.integers(256))
        path.write_bytes(data)
        with suppress(StoreError):
            assert read_array(path, np.int32).dtype == np.int32


def test_a_record_that_is_too_large_is_not_parsed(tmp_path):
    path = tmp_path / "record.json"
    with path.open("wb") as file:
        file.truncate(RECORD_BYTES + 1)
    for read in (read_sealed, read_record, read_object):
        with pytest.raises(
            StoreError, match="found 67,108,865 bytes; expected a record, of at most 67,108,864"
        ):
            read(path)
