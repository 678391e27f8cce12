"""A file is written where it was asked: by rename, through a link, into a pipe, a device or standard output."""

from __future__ import annotations

import os
import socket
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest

import weir
from weir.api.result_set import ResultSet
from weir.cli.main import all_commands, load_command, main
from weir.cli.options import OUTPUT
from weir.errors import BadValue, StoreError
from weir.experiment.plan import PLANS
from weir.files.atomic import atomic_dir, make_folder, write_bytes

CONTENT = b"one\ntwo\n"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Judgments, two runs, and a results folder of two systems."""
    folder = tmp_path_factory.mktemp("outputs")
    queries = [f"q{n}" for n in range(8)]
    weir.Qrels.of({query: {"d1": 1} for query in queries}).save(folder / "qrels.txt")
    weir.Run.of({query: {"d1": 2.0, "d2": 1.0} for query in queries}, "one").save(folder / "a.trec")
    weir.Run.of({query: {"d2": 2.0, "d1": 1.0} for query in queries}, "two").save(folder / "b.trec")
    argv = [
        "run",
        "-d",
        "brook-questions",
        "-s",
        "bm25",
        "-s",
        "bm25(k1=2.0)",
        "-o",
        str(folder / "results"),
        "-q",
    ]
    assert main(argv) == 0
    assert main(["study", "conform", "--group", "ideal-and-cut", "--save", str(folder / "answers.json")]) == 0
    return folder


WRITERS = {
    "fuse --out": "fuse rrf a.trec b.trec -o {}",
    "data convert target": "data convert a.trec {} --kind run -q",
    "gate --save": "gate qrels.txt a.trec --save {}",
    "gate --junit": "gate qrels.txt a.trec a.trec --junit {}",
    "labels relabel --out": "labels relabel qrels.txt qrels.txt a.trec -o {}",
    "audit --out": "audit brook-questions --expand -o {}",
    "audit --regression-queries": "audit results --regression-queries {}",
    "report --out": "report results --no-audit -q -o {}",
    "study cite --out": "study cite results -o {}",
    "audit --save-noise": "audit brook-news --fit -s bm25 --repeats 5 --save-noise {}",
    "study canary --out": "study canary -s bm25 -d brook-news -o {}",
    "study reproduce --page": "study reproduce results --page {}",
    "submit pack --out": "submit pack results -o {}",
    "study conform --save": "study conform --group ideal-and-cut --answers answers.json --save {}",
}
"""A command line for each option and argument that names a file to write."""


def options_of(kind: object) -> Iterator[str]:
    for name in all_commands():
        for option in load_command(name).params:
            if option.type is kind:
                yield f"{name} {option.opts[-1]}"


def test_every_option_that_names_a_file_to_write_stands_in_the_table():
    assert set(options_of(OUTPUT)) == set(WRITERS)


def test_no_option_takes_a_path_of_clicks_own_which_reads_an_empty_one_as_the_current_folder():
    own = [
        f"{name} {option.opts[-1]}"
        for name in all_commands()
        for option in load_command(name).params
        if isinstance(option.type, click.Path) and not option.type.exists
    ]
    assert own == []


# What is written to a path of each kind, read as whoever waits there reads it.


def plain(at: Path) -> tuple[str, Callable[[], bytes]]:
    at.write_bytes(b"old")
    at.chmod(0o640)

    def read() -> bytes:
        assert stat.S_IMODE(at.stat().st_mode) == 0o640
        return at.read_bytes()

    return str(at), read


def missing(at: Path) -> tuple[str, Callable[[], bytes]]:
    return str(at), at.read_bytes


def link(at: Path) -> tuple[str, Callable[[], bytes]]:
    target = at.with_name("target")
    target.write_bytes(b"old")
    return dangling(at)


def dangling(at: Path) -> tuple[str, Callable[[], bytes]]:
    target = at.with_name("target")
    at.symlink_to(target.name)

    def read() -> bytes:
        assert at.is_symlink()
        assert target.is_file()
        assert not target.is_symlink()
        return target.read_bytes()

    return str(at), read


def pipe(at: Path) -> tuple[str, Callable[[], bytes]]:
    os.mkfifo(at)
    got = list[bytes]()
    reader = threading.Thread(target=lambda: got.append(at.read_bytes()), daemon=True)
    reader.start()

    def read() -> bytes:
        reader.join(10)
        assert at.is_fifo()
        return b"".join(got)

    return str(at), read


def pipe_behind_a_link(at: Path) -> tuple[str, Callable[[], bytes]]:
    _, read = pipe(at.with_name("pipe"))
    at.symlink_to("pipe")
    return str(at), read


def listening_socket(at: Path) -> tuple[str, Callable[[], bytes]]:
    server = socket.socket(socket.AF_UNIX)
    server.bind(os.path.relpath(at))  # a name of 108 bytes at most
    server.listen()
    got = list[bytes]()

    def listen() -> None:
        peer, _ = server.accept()
        with server, peer, peer.makefile("rb") as file:
            got.append(file.read())

    reader = threading.Thread(target=listen, daemon=True)
    reader.start()

    def read() -> bytes:
        reader.join(10)
        assert at.is_socket()
        return b"".join(got)

    return os.path.relpath(at), read


KINDS = [plain, missing, link, dangling, pipe, pipe_behind_a_link, listening_socket]


@pytest.mark.skipif(os.name != "posix", reason="Windows has neither pipes nor devices in folders")
@pytest.mark.parametrize("kind", KINDS)
def test_a_file_is_written_where_it_was_asked(
    kind: Callable[[Path], tuple[str, Callable[[], bytes]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    path, read = kind(tmp_path / "out")
    write_bytes(Path(path), CONTENT)
    assert read() == CONTENT
    assert {p.name for p in tmp_path.iterdir()} <= {"out", "target", "pipe"}


@pytest.mark.skipif(os.name != "posix", reason="Windows has no devices in folders")
def test_a_device_stays_one(tmp_path: Path):
    node = tmp_path / "null"
    try:
        os.mknod(node, 0o600 | stat.S_IFCHR, os.makedev(1, 3))
        node.write_bytes(b"")
    except OSError:
        pytest.skip("devices cannot be made or opened here")
    write_bytes(node, CONTENT)
    assert node.is_char_device()
    assert [p.name for p in tmp_path.iterdir()] == ["null"]


@pytest.mark.skipif(os.name != "posix", reason="the table names pipes")
@pytest.mark.parametrize("kind", [link, pipe, None], ids=["link", "pipe", "-"])
@pytest.mark.parametrize("writer", WRITERS)
def test_every_writer_writes_through(
    writer: str,
    kind: Callable[[Path], tuple[str, Callable[[], bytes]]] | None,
    place: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
):
    monkeypatch.chdir(place)
    words = WRITERS[writer].split()
    usual = tmp_path / ("usual.trec" if writer.startswith("data convert") else "usual")
    monkeypatch.setattr("weir.api.results_folder.plan", lambda *_: ResultSet(PLANS, ()))  # it takes seconds
    code = int("--fit" in words)  # a small collection is unfit, which is exit code 1
    assert main([word.format(usual) for word in words]) == code
    notes = capfdbinary.readouterr()
    expected = usual.read_bytes()
    assert expected
    at = tmp_path / f"out{usual.suffix}"
    path, read = ("-", lambda: shown.out) if kind is None else kind(at)
    assert main([word.format(path) for word in words]) == code
    shown = capfdbinary.readouterr()
    written = read()
    assert written == expected
    if kind is None:
        for line in notes.out.splitlines():
            assert line.replace(os.fsencode(usual), b"-") in shown.err


def test_what_stands_in_the_way_is_refused_and_stays(
    tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(place)
    (tmp_path / "folder").mkdir()
    (tmp_path / "to-folder").symlink_to("folder")
    (tmp_path / "circle").symlink_to("circle")
    for name in ("folder", "to-folder", "circle"):
        assert main(["fuse", "rrf", "a.trec", "b.trec", "-o", str(tmp_path / name)]) == 2
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    for write in (make_folder, lambda path: atomic_dir(path).__enter__()):
        for name in ("file", "circle"):
            with pytest.raises(StoreError, match="cannot write"):
                write(tmp_path / name)
    assert (tmp_path / "file").read_text(encoding="utf-8") == "mine"
    assert {p.name for p in tmp_path.iterdir()} == {"folder", "to-folder", "circle", "file"}
    assert list((tmp_path / "folder").iterdir()) == []


def test_a_link_to_a_folder_is_followed_be_it_there_or_not(tmp_path: Path):
    for name, write in (("a", make_folder), ("b", _filled)):
        (tmp_path / name).symlink_to(f"{name}-target")
        write(tmp_path / name)
        assert (tmp_path / name).is_symlink()
        assert (tmp_path / f"{name}-target").is_dir()


def _filled(path: Path) -> None:
    with atomic_dir(path) as folder:
        (folder / "x").write_text("", encoding="utf-8")


@pytest.mark.skipif(os.name != "posix", reason="Windows has no pipes in folders")
def test_a_reader_that_goes_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    fifo = tmp_path / "pipe"
    os.mkfifo(fifo)

    def read_a_little() -> None:
        with fifo.open("rb") as file:
            file.read(1)

    reader = threading.Thread(target=read_a_little, daemon=True)
    reader.start()
    with pytest.raises(StoreError, match="whoever reads it has gone"):
        write_bytes(fifo, b"x" * (1 << 22))
    reader.join(10)


def test_an_empty_name_is_refused_by_every_option_that_takes_a_path(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(place)
    for line in WRITERS.values():
        assert main([word.format("") for word in line.split()]) == 2
        assert "empty name; is a variable unset?" in capsys.readouterr().err
    run = weir.Run.of({"q": {"d": 1.0}})
    for write in (run.save, weir.Qrels.of({"q": {"d": 1}}).save, weir.evaluate({"q": ["d"]}, run).save):
        with pytest.raises(BadValue, match="empty name"):
            write("")


def test_a_dash_with_a_folder_before_it_is_a_file(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    assert main(["fuse", "rrf", str(place / "a.trec"), str(place / "b.trec"), "-o", "./-"]) == 0
    assert (tmp_path / "-").is_file()
