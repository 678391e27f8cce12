"""Archives that mean harm, and those that do not."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

from weir.errors import FormatError, StoreError
from weir.files.downloads import extract


def zipped(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def test_the_archives_own_folder_becomes_the_destination(tmp_path: Path):
    archive = zipped(tmp_path / "a.zip", {"set/corpus.jsonl": b"1", "set/qrels/test.tsv": b"2"})
    extract(archive, tmp_path / "out" / "here")
    assert (tmp_path / "out/here/corpus.jsonl").read_bytes() == b"1"
    assert (tmp_path / "out/here/qrels/test.tsv").read_bytes() == b"2"


def test_files_at_the_top_stay_at_the_top_and_an_old_folder_is_replaced(tmp_path: Path):
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "old").write_text("x", encoding="utf-8")
    extract(zipped(tmp_path / "a.zip", {"corpus.jsonl": b"1", "qrels/test.tsv": b"2"}), tmp_path / "here")
    assert sorted(p.name for p in (tmp_path / "here").iterdir()) == ["corpus.jsonl", "qrels"]


@pytest.mark.parametrize("name", ["../evil", "a/../../evil", "/evil", "C:/evil", "..\\evil", "\\evil"])
def test_a_member_that_leads_outside_is_refused(tmp_path: Path, name: str):
    archive = zipped(tmp_path / "a.zip", {"set/good": b"1", name: b"2"})
    with pytest.raises(FormatError, match="nothing was unpacked") as caught:
        extract(archive, tmp_path / "in" / "here")
    assert name in str(caught.value)
    assert [p.name for p in tmp_path.iterdir()] == ["a.zip"]


def test_a_link_is_refused(tmp_path: Path):
    link = zipfile.ZipInfo("set/link")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(link, "/etc/passwd")
    with pytest.raises(FormatError, match="a link or a special file"):
        extract(tmp_path / "a.zip", tmp_path / "here")


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path: Path):
    zipped(tmp_path / "a.zip", {"zeros": bytes(150 << 20)})
    with pytest.raises(
        FormatError, match=r"more than 134,217,728 bytes packed into it; expected at most 200 times"
    ):
        extract(tmp_path / "a.zip", tmp_path / "here")


def test_two_members_of_one_name_are_refused(tmp_path: Path):
    archive = zipped(tmp_path / "a.zip", {"set/a": b"1", "set/A": b"2"})
    with pytest.raises(FormatError, match="two members of one name"):
        extract(archive, tmp_path / "here")


@pytest.mark.parametrize("keep", [0, 10, 500, 1500])
def test_a_truncated_zip_leaves_nothing(tmp_path: Path, keep: int):
    archive = zipped(tmp_path / "a.zip", {"set/a": os.urandom(1000), "set/b": os.urandom(1000)})
    archive.write_bytes(archive.read_bytes()[:keep])
    with pytest.raises(FormatError, match="a damaged zip"):
        extract(archive, tmp_path / "here")
    assert [p.name for p in tmp_path.iterdir()] == ["a.zip"]


def test_a_member_with_flipped_bits_leaves_nothing(tmp_path: Path):
    archive = zipped(tmp_path / "a.zip", {"set/a": os.urandom(5000)})
    data = bytearray(archive.read_bytes())
    data[2000] ^= 0xFF
    archive.write_bytes(data)
    with pytest.raises(FormatError, match="a damaged zip"):
        extract(archive, tmp_path / "here")
    assert [p.name for p in tmp_path.iterdir()] == ["a.zip"]


def test_too_little_room_is_told_before_unpacking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    import shutil

    archive = zipped(tmp_path / "a.zip", {"set/a": b"x" * 1000})
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10, 10, 0))
    with pytest.raises(StoreError, match="needs 1,000 bytes, 0 are free"):
        extract(archive, tmp_path / "here")


def test_an_archive_of_many_folders_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "deep.zip", "w") as archive:
        archive.writestr("a/" * 1500 + "corpus.jsonl", "{}")
    with pytest.raises(FormatError, match=r"the member 'a/a/.{0,80}', which lies more than 32 folders deep"):
        extract(tmp_path / "deep.zip", tmp_path / "out")
    assert not (tmp_path / "out").exists()
