"""Files and folders that appear whole or not at all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from weir.files.atomic import (
    atomic_dir,
    atomic_file,
    own_file,
    sweep,
    sweep_inside,
    temporary_folder,
    writable,
    write_json,
    write_text,
)


def test_a_file_appears_only_when_it_is_whole(tmp_path: Path):
    write_text(tmp_path / "a" / "x.txt", "one\r\n\u0085two")
    assert (tmp_path / "a" / "x.txt").read_bytes() == "one\r\n\u0085two".encode()

    def fail() -> None:
        with atomic_file(tmp_path / "a" / "x.txt") as temporary:
            temporary.write_text("half", encoding="utf-8")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert [p.name for p in (tmp_path / "a").iterdir()] == ["x.txt"]
    assert (tmp_path / "a" / "x.txt").read_bytes().startswith(b"one")
    write_json(tmp_path / "j", {"é": 1.5})
    assert json.loads((tmp_path / "j").read_text(encoding="utf-8")) == {"é": 1.5}


def test_a_folder_replaces_another_whole(tmp_path: Path):
    for name in ("first", "second"):
        with atomic_dir(tmp_path / "d") as folder:
            (folder / name).write_text("x", encoding="utf-8")
    assert [p.name for p in (tmp_path / "d").iterdir()] == ["second"]
    assert [p.name for p in tmp_path.iterdir()] == ["d"]


def test_what_a_killed_process_left_is_swept(tmp_path: Path):
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait()
    here = temporary_name(tmp_path / "d").rpartition(f"-{os.getpid()}-")[0]
    names = (
        (".d.tmp-elsewhere-1-a", 7200),
        (".d.tmp-elsewhere-1-b", 10),
        (".d.tmp-old", 7200),
        (f"{here}-{done.pid}-c", 10),
        (f"{here}-{os.getpid()}-d", 10),
        (".other.tmp-elsewhere-1-a", 7200),
    )
    for name, age in names:
        (tmp_path / name).mkdir()
        (tmp_path / name / "spool").write_text("x", encoding="utf-8")
        for path in (tmp_path / name / "spool", tmp_path / name):
            os.utime(path, (time.time() - age,) * 2)
    sweep(tmp_path / "d")
    kept = {".d.tmp-elsewhere-1-b", f"{here}-{os.getpid()}-d", ".other.tmp-elsewhere-1-a"}
    assert {p.name for p in tmp_path.iterdir()} == kept


def temporary_name(path: Path) -> str:
    with atomic_file(path, durable=False) as temporary:
        temporary.touch()
    path.unlink()
    return temporary.name


def test_room_is_made_for_a_file_of_ones_own(tmp_path: Path):
    kept, link = tmp_path / "kept", tmp_path / "link"
    kept.write_text("x")
    link.symlink_to(kept)
    os.mkfifo(tmp_path / "pipe")
    for path in (kept, link, tmp_path / "pipe", tmp_path / "missing", tmp_path, Path("-")):
        assert own_file(path) == path
    assert kept.read_text() == "x"
    assert list(tmp_path.iterdir()) == [kept]


def test_writable_asks_the_nearest_folder_there_is(tmp_path: Path):
    assert writable(tmp_path / "not" / "there")
    (tmp_path / "file").write_text("x", encoding="utf-8")
    assert not writable(tmp_path / "file" / "below")
    tmp_path.chmod(0o555)
    assert not writable(tmp_path / "not" / "there")
    tmp_path.chmod(0o755)


def test_files_and_names_are_on_the_disk_before_what_they_replace_is_gone(tmp_path: Path, monkeypatch):
    """The order in which a power cut at any moment leaves a whole old or a whole new folder."""
    steps: list[object] = []
    sync, rename = os.fsync, Path.rename

    def synced(descriptor: int) -> None:
        steps.append(os.fstat(descriptor).st_ino)
        sync(descriptor)

    def renamed(old: Path, new: Path) -> Path:
        steps.append("rename")
        return rename(old, new)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "rename", renamed)
    with atomic_dir(tmp_path / "d") as folder:
        (folder / "inner").mkdir()
        for name in ("one", "inner/two"):
            (folder / name).write_text("x", encoding="utf-8")
    here = tmp_path / "d"
    inside = [p.stat().st_ino for p in (here / "one", here / "inner" / "two", here / "inner", here)]
    assert sorted(steps[: steps.index("rename")]) == sorted(inside)
    assert steps[-1] == tmp_path.stat().st_ino
    steps.clear()
    write_text(tmp_path / "f", "x")
    assert steps == [(tmp_path / "f").stat().st_ino, tmp_path.stat().st_ino]


def test_leftovers_within_a_folder_and_of_single_files_are_swept(tmp_path: Path):
    left = [tmp_path / f".{name}.tmp-elsewhere-1-a" for name in ("checked.json", "store.json")]
    for path in left:
        path.write_text("x", encoding="utf-8")
        os.utime(path, (time.time() - 7200,) * 2)
    write_json(tmp_path / "store.json", {})
    assert [path.exists() for path in left] == [True, False]
    sweep_inside(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["store.json"]


def test_a_temporary_folder_that_a_kill_left_goes_with_the_next_of_its_name(tmp_path: Path, monkeypatch):
    code = (
        "import os, signal\nfrom weir.files.atomic import temporary_folder\n"
        "with temporary_folder('pack') as folder:\n"
        "    (folder / 'x').write_text('x')\n    os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", code], env=os.environ | {"TMPDIR": str(tmp_path)}, check=False)
    assert len(list(tmp_path.iterdir())) == 1
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "weir-pack-mine").mkdir()
    with temporary_folder("pack") as first, temporary_folder("pack") as second:
        assert {one.name for one in tmp_path.iterdir()} == {"weir-pack-mine", first.name, second.name}
    assert [one.name for one in tmp_path.iterdir()] == ["weir-pack-mine"]


@pytest.mark.skipif(os.name != "posix", reason="ulimit is POSIX's")
def test_a_limit_of_file_sizes_is_no_damage(tmp_path: Path):
    done = subprocess.run(
        ["bash", "-c", f"ulimit -f 1; {sys.executable} -m weir run -d brook-facts -s bm25 -o {tmp_path / 'r'} -q"],
        capture_output=True, text=True, check=False,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},  # Python would leave modules cut at the limit
    )  # fmt: skip
    assert done.returncode == 2
    assert "a file larger than is allowed here (ulimit -f)" in done.stderr
    assert "damaged" not in done.stderr
