"""Files that a file of somebody else names: nothing hangs, nothing is read or shown from elsewhere, nothing fills memory."""

from __future__ import annotations

import json
import os
import shutil
import signal
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

pytest.importorskip("numba", reason="needs the `run` extra (numba)")

import weir
from weir.cli.main import main
from weir.errors import BadValue, DownloadError, FormatError, WeirError
from weir.files.downloads import Patience, _hub_file, download, known_size
from weir.files.json_record import parse_json, read_json
from weir.settings import settings

SECRET = "alice:x:0:0: a line that is nobody's business\n"
SECONDS = 120


@contextmanager
def in_time() -> Iterator[None]:
    """Fail where something waits for a pipe that nobody writes to."""

    def late(*_: object) -> None:
        raise AssertionError("it hangs")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture
def place(tmp_path, monkeypatch) -> Path:
    """A folder with a collection, a pipe, a TOML file that is a pipe, and a secret beside it."""
    folder = tmp_path / "mine"
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_text('{"_id": "d1", "text": "a river"}\n{"_id": "d2", "text": "a dam"}\n')
    (folder / "queries.jsonl").write_text('{"_id": "q1", "text": "river"}\n')
    (folder / "qrels" / "test.tsv").write_text("q1\td1\t1\n")
    (tmp_path / "secret").write_text(SECRET)
    for name in ("pipe", "pipe.toml"):
        os.mkfifo(folder / name)
    monkeypatch.chdir(tmp_path)
    return folder


def said(capsys: pytest.CaptureFixture[str], *command: str) -> tuple[int, str]:
    """(exit code, what was printed) of a command that ends in time and shows no secret."""
    with in_time():
        code = main(list(command))
    out = capsys.readouterr()
    assert "nobody's business" not in out.out + out.err
    assert "unexpected" not in out.err
    return code, out.out + out.err


COMMANDS = (["run", "-s", "bm25", "-o", "out", "-q", "-d"], ["data", "stats"], ["audit"])


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: c[0])
@pytest.mark.parametrize("key", ["documents", "queries", "qrels"])
@pytest.mark.parametrize("name", ["pipe", "../secret", "SECRET", "link", "a\\u0000b", "qrels/../../secret"])
def test_a_file_that_a_collection_names_lies_in_its_folder(place, capsys, command, key, name):
    (place / "link").symlink_to(place.parent / "secret")
    name = name.replace("SECRET", str(place.parent / "secret"))
    (place / "collection.toml").write_text(f'{key} = "{name}"\n')
    code, text = said(capsys, *command, "mine")
    assert code == 2
    assert "lies elsewhere" in text or "pipe" in text or "no path has" in text


@pytest.mark.parametrize("key", ["documents", "queries", "qrels"])
def test_a_description_may_name_files_elsewhere_whose_text_is_not_shown(place, capsys, key):
    parts = {"documents": "corpus.jsonl", "queries": "queries.jsonl", "qrels": "qrels/test.tsv"}
    lines = [f'{k} = "{"../secret" if k == key else part}"' for k, part in parts.items()]
    (place / "shop.toml").write_text("\n".join(lines))
    code, text = said(capsys, "run", "-d", "mine/shop.toml", "-s", "bm25", "-o", "out", "-q")
    assert code == 2
    assert "secret, line 1: found something else; expected" in text


@pytest.mark.parametrize("part", ["corpus.jsonl", "queries.jsonl", "qrels/test.tsv"])
def test_a_part_that_is_a_link_to_elsewhere_is_read_and_not_shown(place, capsys, part):
    (place / part).unlink()
    (place / part).symlink_to(place.parent / "secret")
    assert said(capsys, "run", "-d", "mine", "-s", "bm25", "-o", "out", "-q")[0] == 2
    name = "d1" if "corpus" in part else "q1"
    (place.parent / "secret").write_text(
        "q1\td1\t1\n" if "qrels" in part else f'{{"_id": "{name}", "text": "dam"}}\n'
    )
    assert said(capsys, "run", "-d", "mine", "-s", "bm25", "-o", "out", "-q")[0] == 0


@pytest.mark.parametrize(
    "system",
    [*(f'{kind}("mine/pipe{end}")' for kind, end in
       (("run", ""), ("http", ".toml"), ("elasticsearch", ".toml"), ("postgres", ".toml"))),
     'bm25 >> llm("gpt-4o-mini", prompt="mine/pipe.toml")', 'doc2query("mine/pipe")', 'run("secret")',
     'run("../secret")'],
)  # fmt: skip
def test_a_file_that_an_experiment_names_is_a_file(place, capsys, system):
    Path("own.toml").write_text(f"datasets = ['mine']\nsystems = ['{system}']\n")
    if ".." in system:
        os.chdir(place)
        shutil.copy("../own.toml", "own.toml")
        Path("own.toml").write_text(Path("own.toml").read_text().replace("'mine'", "'.'"))
    with in_time():
        code = main(["run", "own.toml", "-o", "out", "-q"])
    text = capsys.readouterr().err
    assert code == 2
    assert "unexpected" not in text
    assert ("nobody's business" in text) == (system == 'run("secret")')  # of this folder


def test_what_a_user_types_may_be_a_pipe(place, capsys):
    """As the shell's process substitution makes one."""
    for name, text in (
        ("run.trec", "q1 Q0 d1 1 2.0 t\n"),
        ("exp", "datasets = ['mine']\nsystems = ['bm25']\n"),
    ):
        os.mkfifo(name)
        threading.Thread(target=Path(name).write_text, args=(text,), daemon=True).start()
    assert said(capsys, "eval", "mine/qrels/test.tsv", "run.trec", "-m", "RR")[0] == 0
    assert said(capsys, "run", "exp", "-o", "out", "-q")[0] == 0


READERS = ("report {0} -o page.html", "audit {0}", "labels pool {0} -o pool", "diff {1} {2}", "compare {0}", "eval brook-facts {1}",
           "results {0} --per-query", "verify {0}", "submit pack {0} -o p.zip", "why {1} {2}", "gate {0} {0} -s bm25",
           "data export {0} --to mteb -o exported", "run -d brook-facts -s bm25 -o {0} -q")  # fmt: skip


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> Path:
    """A results folder of brook-facts."""
    folder = tmp_path_factory.mktemp("mine") / "results"
    weir.benchmark(["brook-facts"], ["bm25", "rm3"], ["nDCG@10"], out=folder)
    return folder


@pytest.mark.parametrize(
    ("file", "readers"),
    [
        ("run.trec", READERS),
        *((name, READERS[4:8]) for name in ("stage.json", "scores-*.json", "scores-*.jsonl")),
    ],
)
@pytest.mark.parametrize("is_pipe", [True, False])
def test_a_results_folder_is_read_and_nothing_beside_it(results, place, capsys, file, readers, is_pipe):
    shutil.copytree(results, "results")
    path = next(Path("results/brook-facts").glob(f"bm25-*/{file}"))
    path.unlink()
    if is_pipe:
        os.mkfifo(path)
    else:
        path.symlink_to(place.parent / "secret")
    other = next(Path("results/brook-facts").glob("rm3-*"))
    for command in readers:
        said(capsys, *command.format("results", path.parent, other).split())


# ----------
# What is parsed whole is held against memory, and downloads have an end.

MANY = b"[" + b"[]," * 2_000_000 + b"[]]"


def test_the_values_of_a_record_are_counted_before_they_are_made(tmp_path, monkeypatch):
    monkeypatch.setenv("WEIR_MAX_RAM", "100M")
    (tmp_path / "stage.json").write_bytes(MANY)
    with pytest.raises(BadValue, match=r"stage\.json whole needs about 0\.8 GB"):
        read_json(tmp_path / "stage.json")


def test_a_pack_whose_manifest_holds_millions_of_values_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("WEIR_MAX_RAM", "100M")
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as pack:
        pack.writestr("manifest.json", MANY)
    assert said(capsys, "submit", "verify", str(tmp_path / "a.zip"))[0] == 2


@pytest.mark.parametrize("size", [0, -1, 0.5, 2.0, True, None, "7", float("nan"), 1 << 60, [], {}])
def test_a_size_that_is_no_positive_whole_number_is_not_known(size):
    assert known_size(size) is None


class Endless(BaseHTTPRequestHandler):
    """Sends more than anybody asked for, and no length."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"x" * 300_000)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.mark.parametrize("description", [{"size": 0}, {"size": 0.5}, {}, {"size": 7, "lfs": {"size": 0}}])
def test_a_download_has_an_end_whatever_size_is_described(description, tmp_path):
    if "lfs" in description:
        description["lfs"] |= {"sha256": "a" * 64}
    file = _hub_file({"rfilename": "x", "blobId": "b", **description})
    with HTTPServer(("127.0.0.1", 0), Endless) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/x"
        with pytest.raises(DownloadError, match="more than 100,000 bytes"):
            download([url], tmp_path / "x", size=file.bytes, patience=Patience(attempts=1, most=100_000))
    assert not list(tmp_path.glob("x*"))
    assert Patience().most < 2 << 30


@pytest.mark.parametrize(
    "text", ['{"a": "\\ud800"}', '{"\\udfff": 1}', '{"a": 1e', '{"a": %s}' % ("9" * 5000), "[" * 100_000]
)
def test_what_no_record_holds_is_refused_in_one_line(text):
    with pytest.raises(FormatError) as caught:
        parse_json(text.encode(), "stage.json")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


def test_a_pair_of_surrogates_is_a_character():
    assert parse_json(json.dumps({"a": "😀"}).encode(), "x") == {"a": "😀"}


@pytest.mark.parametrize("name", ["WEIR_THREADS", "WEIR_LEASE", "WEIR_MAX_UNPACKED", "WEIR_MAX_RAM"])
@pytest.mark.parametrize("value", ["9" * 5000, "0", "-1", "x", "1e400"])
def test_an_environment_variable_of_no_number_is_refused_in_one_line(
    name, value, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(name, value)
    settings.cache_clear()
    try:
        assert main(
            ["run", "-d", "brook-facts", "-s", "bm25", "-o", "never", "--max-ram", "1G"]
            if name != "WEIR_MAX_RAM"
            else ["doctor"]
        ) in (0, 2)
        assert "unexpected" not in capsys.readouterr().err
    finally:
        monkeypatch.undo()
        settings.cache_clear()


@pytest.mark.parametrize("number", ["0x" + "f" * 4000, "9" * 4299, "-" + "9" * 4299, "9" * 9000, "1e999"])
def test_a_number_of_thousands_of_digits_is_no_setting(number):
    for read in (weir.system, weir.parse_measure, weir.fuse):
        text = {
            "system": f"bm25(k1={number})",
            "parse_measure": f"nDCG(rel={number})",
            "fuse": f"rrf(k={number})",
        }[read.__name__]
        with pytest.raises(WeirError) as caught:
            read(text) if read is not weir.fuse else read(text, [{"q": {"d": 1.0}}, {"q": {"d": 1.0}}])
        assert "\n" not in str(caught.value)
