"""Commands where macOS and Windows are simulated (tests/other_system.py), and names of files that every system takes."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import weir
from weir.experiment.stages import SLUG_LETTERS, slug
from weir.files.atomic import UNPORTABLE

RUNNER = Path(__file__).parents[1] / "other_system.py"
SYSTEMS = ("bm25", 'bm25("elastic") >> score(rm3, depth=20)')


def ran(system: str, *command: object, folder: Path) -> subprocess.CompletedProcess[str]:
    """A command of Weir on another system, or on this one for ""."""
    runner = [str(RUNNER), system] if system else []
    return subprocess.run(
        [sys.executable, *runner, "-m", "weir", *map(str, command)],
        capture_output=True, text=True, check=False, cwd=folder, encoding="cp1252" if system == "windows" else "utf-8",
        env=os.environ | {"PYTHONIOENCODING": "cp1252" if system == "windows" else "utf-8"},
    )  # fmt: skip


def stored(folder: Path) -> dict[str, bytes]:
    """The files of results but for their records, which hold times and the system."""
    paths = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".json"]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("here")
    parts = [part for system in SYSTEMS for part in ("-s", system)]
    assert ran("", "run", "-q", "-d", "brook-news", *parts, "-o", "r", folder=folder).returncode == 0
    return stored(folder / "r")


@pytest.mark.parametrize("system", ["macos", "windows"])
def test_a_grid_is_run_explained_and_reported_with_the_same_bytes(system, here, tmp_path):
    parts = [part for one in SYSTEMS for part in ("-s", one)]
    done = ran(system, "run", "-q", "-d", "brook-news", *parts, "-o", "r", folder=tmp_path)
    assert (done.returncode, "0.6654" in done.stdout) == (0, True), done.stderr
    assert stored(tmp_path / "r") == here
    for command in (
        ("run", "-q", "-d", "brook-news", *parts, "-m", "AP", "-o", "r"),
        ("verify", "r"),
        ("why", *(scores.parent for scores in sorted((tmp_path / "r").rglob("scores-*.jsonl"))[:2])),
        ("compare", "r"),
        ("report", "r", "-o", "page.html"),
    ):
        done = ran(system, *command, folder=tmp_path)
        assert (done.returncode, "Traceback" in done.stderr) == (0, False), (command, done.stderr)
    assert not [*(tmp_path / "r").rglob("*.lock"), *(tmp_path / "r").rglob("*.tmp-*")]


TAKEN_AWAY = """
import json, os, pathlib, sys, weir, weir.settings, weir.files.leases
folder = pathlib.Path(sys.argv[1])
refused = {}
def attempt(name, act):
    try:
        act()
        refused[name] = ""
    except (OSError, AssertionError, ImportError, AttributeError) as error:
        refused[name] = type(error).__name__
(folder / "File").write_text("a\\nb")
for name in ("con", "NUL.txt", "a:b", "a|b", 'a"b', "a.", "b ", "file"):
    attempt(name, (folder / name).mkdir)
with (folder / "File").open() as held:
    attempt("replace", lambda: (folder / "File").replace(folder / "other"))
    attempt("remove", (folder / "File").unlink)
attempt("long", lambda: (folder / ("x" * 200) / ("y" * 200)).write_bytes(b""))
attempt("proc", lambda: open("/proc/self/status"))
attempt("fcntl", lambda: __import__("fcntl"))
attempt("affinity", lambda: weir.settings.os.sched_getaffinity(0))
refused["ends"] = repr((folder / "File").read_bytes())
refused["words"] = weir.parse_system(r"command('C:/a\\\\b.exe one two')").arguments
refused["platform"] = weir.files.leases.sys.platform
print(json.dumps(refused))
"""


def test_the_simulation_refuses_what_windows_refuses(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(TAKEN_AWAY)
    done = subprocess.run(
        [sys.executable, str(RUNNER), "windows", str(script), str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
    )
    refused = json.loads(done.stdout)
    assert (refused.pop("ends"), refused.pop("platform")) == (r"b'a\r\nb'", "win32")
    assert refused.pop("words") == [r"C:/a\b.exe", "one", "two"]  # elsewhere the backslash would be lost
    assert [name for name, reason in refused.items() if not reason] == []


def test_a_damaged_store_is_built_again_by_the_next_process_where_mapped_files_stay(tmp_path):
    (tmp_path / "set" / "qrels").mkdir(parents=True)
    (tmp_path / "set" / "corpus.jsonl").write_text('{"_id": "d1", "text": "a weir across a stream"}\n')
    (tmp_path / "set" / "queries.jsonl").write_text('{"_id": "q1", "text": "weir"}\n')
    (tmp_path / "set" / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\n")
    command = ("run", "-q", "-d", "set", "-s", "bm25", "-o")
    assert ran("windows", *command, "r1", folder=tmp_path).returncode == 0
    text = tmp_path / "set" / "corpus.jsonl.weir" / "text.utf8"
    whole = text.read_bytes()
    text.write_bytes(b"!" + whole[1:])
    done = ran("windows", *command, "r2", folder=tmp_path)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].endswith(
        "in bytes 0 and following; run it again, which builds the store anew"
    )
    assert ran("windows", *command, "r2", folder=tmp_path).returncode == 0
    assert text.read_bytes() == whole


def test_a_path_that_windows_does_not_take_is_named(tmp_path):
    done = ran(
        "windows",
        "run",
        "-q",
        "-d",
        "brook-news",
        "-s",
        "bm25",
        "-o",
        "x" * (240 - len(str(tmp_path))),
        folder=tmp_path,
    )
    assert done.returncode == 2
    assert "characters, and Windows takes 259; name a folder with a shorter path" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "name",
    [
        "con",
        "NUL",
        "aux.v1",
        "com1",
        "x" * (SLUG_LETTERS - 1) + ".y",
        'bm25("a|b", k1=1.2) >> rm3',
        "...",
        "a\\b:c",
    ],
)
def test_names_from_data_are_names_everywhere(name):
    assert not UNPORTABLE.search(slug(name))
    assert len(slug(name)) <= SLUG_LETTERS + 1


def test_every_text_is_written_with_its_own_line_ends():
    """Where no line end is named, Windows writes two bytes for one, and files are others than elsewhere."""
    at = []
    for path in Path(weir.__file__).parent.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if re.search(r"open\b|write_text", text) else ():
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            place = {"open": 0, "fdopen": 1}.get(node.func.attr, len(node.args))
            mode = str(getattr(node.args[place], "value", "")) if place < len(node.args) else "rb"
            texts = node.func.attr == "write_text" or (set(mode) & set("wax") and "b" not in mode)
            if texts and "newline" not in {keyword.arg for keyword in node.keywords}:
                at.append(f"{path.name}:{node.lineno}")
    assert at == []
