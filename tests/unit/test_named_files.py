"""Files that a file of somebody else names: nothing hangs, nothing is read or shown from elsewhere, nothing fills memory."""

from __future__ import annotations

import json
import os
import shutil
import signal
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("numba", reason="needs the `run` extra (numba)")

import weir
from tests.unit.hub_server import Hub, served
from weir.cli.main import main
from weir.errors import BadValue, FormatError, WeirError
from weir.files.downloads import Patience, download, known_size
from weir.files.json_record import parse_json, read_json
from weir.settings import settings

SECRET = "alice:x:0:0: a line that is nobody's business\n"
SECONDS = 20


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
    (place.parent / "secret").write_text("q1\td1\t1\n" if "qrels" in part else '{"_id": "q1", "text": "dam"}\n')
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
    for name, text in (("run", "q1 Q0 d1 1 2.0 t\n"), ("exp", "datasets = ['mine']\nsystems = ['bm25']\n")):
        os.mkfifo(name)
        if os.fork() == 0:
            Path(name).write_text(text)
            os._exit(0)
    assert said(capsys, "eval", "mine/qrels/test.tsv", "run", "-m", "RR")[0] == 0
    assert said(capsys, "run", "exp", "-o", "out", "-q")[0] == 0


READERS = ("report {0} -o page.html", "audit {0}", "labels pool {0} -o pool", "diff {1} {2}", "compare {0}", "eval mine {1}",
           "results {0} --per-query", "verify {0}", "submit pack {0} -o p.zip", "why {1} {2}", "gate {0} {0} -s bm25",
           "data export {0} --to mteb -o exported", "run -d mine -s bm25 -o {0} -q")  # fmt: skip


@pytest.mark.parametrize("file", ["run.trec", "stage.json", "scores-*.json", "scores-*.jsonl"])
@pytest.mark.parametrize("is_pipe", [True, False])
def test_a_results_folder_is_read_and_nothing_beside_it(place, capsys, file, is_pipe):
    assert main(["run", "-d", "mine", "-s", "bm25", "-s", "rm3", "-o", "results", "-q"]) == 0
    path = next(Path("results/mine").glob(f"bm25-*/{file}"))
    path.unlink()
    if is_pipe:
        os.mkfifo(path)
    else:
        path.symlink_to(place.parent / "secret")
    other = next(Path("results/mine").glob("rm3-*"))
    for command in READERS:
        said(capsys, *command.format("results", path.parent, other).split())


# ----------
# What is parsed whole is held against memory, and downloads have an end.

MANY = b"[" + b"[]," * 2_000_000 + b"[]]"


def test_the_values_of_a_record_are_counted_before_they_are_made(tmp_path, monkeypatch):
    monkeypatch.setenv("WEIR_MAX_RAM", "100M")
    (tmp_path / "stage.json").write_bytes(MANY)
    with pytest.raises(BadValue, match="stage.json whole needs about 0.8 GB"):
        read_json(tmp_path / "stage.json")


def test_a_pack_whose_manifest_holds_millions_of_values_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("WEIR_MAX_RAM", "100M")
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as pack:
        pack.writestr("manifest.json", MANY)
    assert said(capsys, "submit", "verify", str(tmp_path / "a.zip"))[0] == 2


@pytest.mark.parametrize("size", [0, -1, 0.5, 2.0, True, None, "7", float("nan"), 1 << 60, [], {}])
def test_a_size_that_is_no_positive_whole_number_is_not_known(size):
    assert known_size(size) is None


@pytest.mark.parametrize("size", [0, 0.5, -1, 1 << 60, "7", None])
@pytest.mark.parametrize("large", [True, False])
def test_a_download_has_an_end_whatever_size_is_described(size, large, tmp_path, monkeypatch):
    """A hub that describes no size, and sends without end."""
    data = b"x" * 300_000
    with served(Hub()) as hub:
        url = f"{hub.url}/resolve"
        with pytest.raises(WeirError, match="more than 100,000 bytes"):
            _ = download_of(url, data, size, tmp_path)


def download_of(url: str, data: bytes, size: object, folder: Path) -> None:
    """Download what a server on this machine sends."""
    import http.server
    import threading

    class Endless(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = http.server.HTTPServer(("127.0.0.1", 0), Endless)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        address = f"http://127.0.0.1:{server.server_port}/file"
        patience = Patience(attempts=1, most=100_000)
        download([address], folder / "file", size=size, patience=patience)  # type: ignore[arg-type]
    finally:
        server.shutdown()


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
def test_an_environment_variable_of_no_number_is_refused_in_one_line(name, value, monkeypatch, capsys):
    monkeypatch.setenv(name, value)
    settings.cache_clear()
    try:
        assert main(["run", "-d", "brook-facts", "-s", "bm25", "-o", "never", "--max-ram", "1G"] if name != "WEIR_MAX_RAM" else ["doctor"]) in (0, 2)
        assert "unexpected" not in capsys.readouterr().err
    finally:
        monkeypatch.undo()
        settings.cache_clear()


@pytest.mark.parametrize("number", ["0x" + "f" * 4000, "9" * 4299, "-" + "9" * 4299, "9" * 9000, "1e999"])
def test_a_number_of_thousands_of_digits_is_no_setting(number):
    for read in (weir.system, weir.parse_measure, weir.fuse):
        text = {"system": f"bm25(k1={number})", "parse_measure": f"nDCG(rel={number})", "fuse": f"rrf(k={number})"}[read.__name__]
        with pytest.raises(WeirError) as caught:
            read(text) if read is not weir.fuse else read(text, [{"q": {"d": 1.0}}, {"q": {"d": 1.0}}])
        assert "\n" not in str(caught.value)
