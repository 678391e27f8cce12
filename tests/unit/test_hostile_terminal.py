"""What reaches a terminal, and how a command ends when nobody expected it."""

from __future__ import annotations

import csv
import errno
import io
import json
import os
import pty
import resource
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import weir as library
from tests.unit.brooklet import write_collection
from weir.api.result_set import ResultSet
from weir.api.rows import ROWS
from weir.cli import main
from weir.core.scores import Row
from weir.core.tables import cell_text, csv_cell, csv_text, markdown_escaped
from weir.errors import BadValue, FormatError, UnknownName, printable
from weir.stats.score_rows import long_table

QRELS = "q1 0 d1 1\nq1 0 d2 0\nq2 0 d3 2\n"
RUN = "q1 Q0 d1 1 2.5 x\nq1 Q0 d9 2 1.5 x\n"


def one_line(capsys, *arguments: str) -> str:
    """The one line in which a command refuses, with exit code 2 and no word of a bug in Weir."""
    assert main(list(arguments)) == 2
    out, err = capsys.readouterr()
    found = [line for line in err.split("\n") if line]
    assert (out, len(found)) == ("", 1)
    assert found[0].startswith("weir: ")
    assert "bug in Weir" not in found[0]
    assert found[0].isprintable()
    return found[0]


def weir(*arguments: str, **more: object) -> subprocess.CompletedProcess[str]:
    """The command line in a process of its own."""
    command = [sys.executable, "-m", "weir", *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=300, **more)


# What reaches a terminal

EVIL = "\x1b[31mred\x07\x9b\u202etxt\x7f\r\n\udcff"


def test_control_characters_are_escaped_in_messages_and_tables():
    assert printable("plain täxt \u3000 語") == "plain täxt \u3000 語"
    shown = printable(EVIL)
    assert shown == r"\x1b[31mred\x07\u009b\u202etxt\u007f\r\n\udcff"
    for error in (BadValue(EVIL), FormatError(EVIL, EVIL, EVIL), UnknownName("system", EVIL, [EVIL])):
        assert str(error).isprintable()
    row = Row("d" + EVIL, "=cmd|' /C calc'!A0<b>\\", "nDCG@10", -0.5, -0.6, -0.4, 2, 1)
    table = long_table([row]).text()
    assert r"\x1b[31mred" in table
    assert all(line.isprintable() for line in table.split("\n"))
    latex = long_table([row]).latex()
    assert r"\textless{}b\textgreater{}\textbackslash{}" in latex
    assert "\x1b" not in latex
    cells = ResultSet(ROWS, (row,)).shown("csv").split("\n")[-1]
    assert ",'=cmd|" in cells
    assert "-0.5" in cells.split(",")


@pytest.mark.parametrize("begin", ["=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠"], ids=ascii)
def test_no_cell_of_csv_is_a_formula(begin):
    cells = csv_text([[begin + "1+1", "-1.5", -1.5, None, "a" + begin]])
    assert next(csv.reader(io.StringIO(cells, newline=""))) == [
        "'" + begin + "1+1",
        "'-1.5",
        "-1.5",
        "",
        "a" + begin,
    ]


@given(st.text(st.sampled_from("'=+-@a1\t\r\n＝＋－＠"), max_size=6))
def test_every_text_comes_back_from_its_cell(text):
    cell = str(csv_cell(text))
    assert cell_text(cell) == text
    assert cell[:1] not in {*"=+-@\t\r\n＝＋－＠"}


@pytest.mark.parametrize(
    ("text", "markdown"),
    [
        ("~~a~~ $b$", r"\~\~a\~\~ \$b\$"),
        ("https://evil.org www.evil.org @somebody", r"https:\/\/evil.org www\.evil.org \@somebody"),
        ("![a](b) <c> `d` |", r"!\[a\](b) \<c\> \`d\` \|"),
        ("nDCG@10", "nDCG@10"),
    ],
)
def test_no_text_in_markdown_formats_links_or_calls_somebody(text, markdown):
    assert markdown_escaped(text) == markdown


ODD = "q\x1b[31m\x07\x9b\u202e\x7f\U000e0041\u200d"
"""An identifier that recolours a terminal, turns text around, and hides what no eye sees."""


@pytest.fixture
def odd(tmp_path) -> list[str]:
    """Judgments and two runs of odd queries and documents, one run under an odd name."""
    (tmp_path / "q").write_text(f"{ODD} 0 d1 1\n{ODD}2 0 {ODD} 1\nplain 0 d1 1\n", encoding="utf-8")
    names = ["r.trec", "r\x1b[31m\u202e.trec"]
    for name, score in zip(names, (1.5, 0.5), strict=True):
        (best, first), (worse, second) = sorted([(score, ODD), (1.0, "d1")], reverse=True)
        rows = f"{ODD} Q0 {first} 1 {best} x\n{ODD} Q0 {second} 2 {worse} x\n{ODD}2 Q0 d1 1 1.5 x\n"
        rows += f"plain Q0 d1 1 {score} x\n"
        (tmp_path / name).write_text(rows, encoding="utf-8")
    return [str(tmp_path / name) for name in ("q", *names)]


def unprintable(text: str) -> set[str]:
    return {c for c in text if not c.isprintable() and c not in "\n\t"}


FORMS = (
    ["eval", "-m", "RR"], ["eval", "-m", "RR", "--per-query"], ["eval", "-m", "RR", "--per-query", "--json"],
    *(["eval", "-m", "RR", f"--{form}"] for form in ("json", "csv", "latex", "markdown", "html", "long")),
    *(["compare", "-m", "RR", *form] for form in ([], ["--json"], ["--csv"], ["--latex"], ["--markdown"], ["--html"])),
    ["diff", "-m", "RR"], ["diff", "-m", "RR", "--json"], ["gate", "-m", "RR"], ["gate", "-m", "RR", "--json"],
    ["gate", "-m", "RR", "--markdown"], ["audit"], ["audit", "--json"], ["power", "-m", "RR", "--json"],
)  # fmt: skip


@pytest.mark.parametrize("form", FORMS, ids=" ".join)
def test_what_is_printed_into_a_pipe_carries_no_control_characters_from_data(odd, form, capsys):
    assert main([form[0], *odd, *form[1:]]) in (0, 1, 3)
    out, err = capsys.readouterr()
    assert out
    assert unprintable(out) | unprintable(err) == set()
    if "--json" in form:
        said = str([json.loads(line) for line in out.splitlines()])
        assert ODD not in out
        assert "--per-query" not in form or repr(ODD)[1:-1] in said, "JSON says the very identifier"


@pytest.mark.parametrize(
    "form", [["--per-query"], ["--per-query", "--json"], ["--csv"], ["--json"]], ids=" ".join
)
def test_raw_data_is_written_where_it_is_asked_for(odd, form, capsys):
    for arguments in (["--raw", "eval", *odd, "-m", "RR", *form], ["eval", *odd, "-m", "RR", *form, "--raw"]):
        assert main(arguments) == 0
        said = capsys.readouterr().out
        if form != ["--per-query", "--json"]:  # which writes ASCII
            assert "\u202e" in said
        if form == ["--per-query"]:
            assert f"RR\t{ODD}\t" in said
    assert main(["eval", *odd, "-m", "RR", "--per-query"]) == 0
    assert not unprintable(capsys.readouterr().out), "once asked is not for ever"


def test_lines_by_query_read_back_whatever_stands_in_identifiers(tmp_path, capsys):
    """Ordinary identifiers as they are, in any script; a tab or a line end within one makes no other column or line."""
    queries = ["q1", "q-é", "質問 2", "a b", "q\tx", "q\ny"]
    (tmp_path / "q.json").write_text(json.dumps({query: {"d": 1} for query in queries}), encoding="utf-8")
    (tmp_path / "r.json").write_text(json.dumps({query: {"d": 1.5} for query in queries}), encoding="utf-8")
    assert main(["eval", str(tmp_path / "q.json"), str(tmp_path / "r.json"), "-m", "RR", "--per-query"]) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [len(row) for row in rows] == [3] * len(queries)
    assert {row[1] for row in rows} == {*queries[:4], r"q\tx", r"q\ny"}


def test_results_written_by_python_carry_none_either(odd, tmp_path):
    found = library.compare(odd[0], odd[1:], measures="RR")
    found.save(tmp_path / "found.json")
    assert not unprintable((tmp_path / "found.json").read_text(encoding="utf-8"))
    assert library.ResultSet.load(tmp_path / "found.json").to_dict() == found.to_dict()
    assert not unprintable(found.to_csv())
    assert "\u202e" in found.to_csv(raw=True)


def test_a_terminal_gets_no_control_characters_even_where_raw_data_is_asked_for(tmp_path):
    (tmp_path / "q").write_text("q\x07 0 d1 1\n")
    (tmp_path / "r").write_text("q\x07 Q0 d1 1 1.5 x\n")
    command = ["eval", str(tmp_path / "q"), str(tmp_path / "r"), "-m", "RR", "--per-query", "--raw"]
    assert weir(*command).stdout == "RR\tq\x07\t1.0\n"
    ours, theirs = pty.openpty()
    subprocess.run([sys.executable, "-m", "weir", *command], stdout=theirs, check=True)
    os.close(theirs)
    assert os.read(ours, 1 << 12).decode().replace("\r\n", "\n").split() == ["RR", r"q\x07", "1.0"]
    os.close(ours)


def test_colours_in_data_reach_no_terminal_in_any_form(odd):
    for form in ("--csv", "--json", "--latex", "--long"):
        ours, theirs = pty.openpty()
        command = [sys.executable, "-m", "weir", "eval", *odd, "-m", "RR", form]
        subprocess.run(
            command, stdout=theirs, check=True, env={**os.environ, "TERM": "xterm", "COLUMNS": "300"}
        )
        os.close(theirs)
        shown = os.read(ours, 1 << 16).decode().replace("\r\n", "\n")
        os.close(ours)
        assert "\x1b[31m" not in shown, form
        assert "31m" in shown, form


@pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")
@pytest.mark.parametrize(
    ("command", "streams", "code"),
    [
        *(
            ("eval q r -m RR", streams, 0)
            for streams in (">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-", "| true")
        ),
        *(("eval q nowhere", streams, 2) for streams in (">&-", "2>&-", ">&- 2>&-", "2>&1 | true")),
        ("--version", "> /dev/full", 2),
    ],
)
def test_streams_that_are_closed_full_or_unread_are_no_mistake(tmp_path, command, streams, code):
    (tmp_path / "q").write_text(QRELS)
    (tmp_path / "r").write_text(RUN)
    script = f"{sys.executable} -m weir {command} {streams}; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, "unexpected" in done.stderr, "Traceback" in done.stderr) == (code, False, False)


# The command line as a whole


UNEXPECTED = (
    ValueError("\x1b[31mx"), RecursionError("deep"), OverflowError("big"), KeyError("k"), TypeError(), BaseException("panic"),
    GeneratorExit(), SystemExit(0),
)  # fmt: skip


@pytest.fixture
def failing(monkeypatch) -> Callable[[BaseException], int]:
    """A function: run a command in which an error arises, which was caused by another."""

    def run(failure: BaseException) -> int:
        def broken(*_: object) -> None:
            raise failure from KeyError("brook-medical, Bearer abc and hidden-in-the-environment")

        monkeypatch.setenv("ANY_API_KEY", "hidden-in-the-environment")
        monkeypatch.setattr("weir.experiment.experiment.Experiment.complete", broken)
        return main(["run", "-d", "brook-medical", "-s", "bm25", "--json", "-q"])

    return run


@pytest.mark.parametrize("failure", UNEXPECTED, ids=lambda failure: type(failure).__name__)
def test_what_nobody_expected_is_one_line_and_a_report_without_secrets(
    home, failing, capsys, failure, monkeypatch
):
    assert failing(failure) == 70
    out, err = capsys.readouterr()
    (report,) = (home / "reports").iterdir()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(f"weir: run: unexpected {type(failure).__name__}: ")
    assert f"this is a bug in Weir, please send {report}, which says how" in err
    text = report.read_text(encoding="utf-8")
    assert "weir run -d -s --json -q\n" in text
    for part in (
        "weir 0.",
        "Python 3.",
        "How to send",
        "in broken",
        "KeyError: '***, Bearer *** and ***'",
        type(failure).__name__,
    ):
        assert part in text
    assert not {part for part in ("brook", "hidden", "abc", "\x1b") if part in text}
    monkeypatch.setenv("WEIR_DEBUG", "1")
    assert failing(failure) == 70
    assert "Traceback" in capsys.readouterr().err


def test_what_nobody_expected_in_a_thread_is_one_line_and_a_report(tmp_path, home, capsys, monkeypatch):
    def broken() -> None:
        raise ValueError("x")

    def formatted(*_: object) -> str:
        thread = threading.Thread(target=broken)
        thread.start()
        thread.join()
        return "the table"

    (tmp_path / "q").write_text(QRELS)
    (tmp_path / "r").write_text(RUN)
    monkeypatch.setattr("weir.api.result_set.ResultSet.shown", formatted)
    hook = threading.excepthook
    assert main(["eval", str(tmp_path / "q"), str(tmp_path / "r"), "-m", "RR"]) == 70
    (report,) = (home / "reports").iterdir()
    out, err = capsys.readouterr()
    assert out == "the table\n"
    *notes, line = err.splitlines()
    assert all(note.startswith("note: ") for note in notes)
    assert f"eval: unexpected ValueError: x; this is a bug in Weir, please send {report}" in line
    assert "in broken" in report.read_text(encoding="utf-8")
    assert threading.excepthook is hook


def test_a_pipe_that_breaks_elsewhere_is_no_output_that_nobody_reads(failing, capsys):
    assert failing(BrokenPipeError(errno.EPIPE, "Broken pipe")) == 2
    assert (
        "weir: a program or a server ended while it was written to (broken pipe)" in capsys.readouterr().err
    )


def test_the_newest_reports_stay_and_one_that_cannot_be_written_is_told(home, failing, capsys):
    for _ in range(23):
        assert failing(ValueError("x")) == 70
    newest = capsys.readouterr().err.rpartition("please send ")[2].partition(",")[0]
    reports = sorted((home / "reports").iterdir())
    assert (len(reports), str(reports[-1])) == (20, newest)
    shutil.rmtree(home / "reports")
    (home / "reports").write_text("a file where a folder should be")
    assert failing(ValueError("x")) == 70
    err = capsys.readouterr().err
    assert (
        "unexpected ValueError: x; this is a bug in Weir, please report it; the report could not be written"
        in err
    )
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "failure",
    [
        MemoryError(),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        RuntimeError("can't start new thread"),
        RuntimeError("[CPU] FullyConnected node with name 'x' can't alloc"),
    ],
    ids=str,
)
def test_memory_that_ran_out_is_neither_a_mistake_nor_a_bug(home, failing, capsys, failure):
    assert failing(failure) == 71
    err = capsys.readouterr().err
    lacking = "no further thread can be started" if "thread" in str(failure) else "there is not enough memory"
    assert err.startswith(f"weir: run: {lacking}; finished work is kept; let it take less (--max-ram")
    assert (err.count("\n"), (home / "reports").exists()) == (1, False)


def test_sigterm_ends_with_one_line(tmp_path):
    program = "import time, weir.experiment.experiment\nweir.experiment.experiment.Experiment.complete = lambda *_: (print('up', flush=True), time.sleep(60))\n"
    program += "from weir.cli import main\nraise SystemExit(main(['run', '-d', 'brook-medical', '-s', 'bm25', '-q']))"
    running = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert running.stdout is not None
    assert running.stdout.readline() == "up\n"
    running.send_signal(signal.SIGTERM)
    _, err = running.communicate(timeout=300)
    assert running.returncode == 143
    assert err.strip() == "weir: terminated; finished work is kept, run the same command to resume"


@pytest.mark.parametrize(
    "arguments",
    [["eval", b"\xff", "r"], ["run", "-d", b"\xff", "-s", "bm25"], ["run", "-d", "brook", "-s", b"bm25(\xff)"],
     ["list", "systems", b"\xff"], ["list", "measures", b"\xff"], [b"\xff"], ["eval", "q", "r", "-m", b"\xff"]],
)  # fmt: skip
def test_arguments_that_are_not_utf_8_are_one_line(tmp_path, arguments):
    given = [a if isinstance(a, bytes) else a.encode() for a in arguments]
    done = subprocess.run(
        [sys.executable, "-m", "weir", *given], capture_output=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 2
    assert b"bug in Weir" not in done.stderr
    assert done.stderr.count(b"\n") <= 1 + (b"Usage" in done.stderr)
    assert list(tmp_path.iterdir()) == []


def test_a_file_whose_name_is_not_utf_8_is_scored(tmp_path, capsys):
    name = os.fsencode(tmp_path) + b"/r\xff.trec"
    Path(os.fsdecode(name)).write_text(RUN)
    (tmp_path / "q").write_text(QRELS)
    assert main(["eval", str(tmp_path / "q"), os.fsdecode(name), "-m", "RR"]) == 0
    assert r"r\udcff" in capsys.readouterr().out


def test_a_shortage_of_open_files_is_no_damaged_index(tmp_path):
    collection, results = str(write_collection(tmp_path / "brooklet")), str(tmp_path / "results")
    command = ["run", "-d", collection, "-s", "rm3", "-o", results, "-q", "--json"]
    assert weir(*command, "-m", "AP").returncode == 0
    kept = sorted(p for p in (tmp_path / "results").rglob("*") if p.is_file())

    def few() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (12, 12))

    short = weir(*command, "-m", "RR", "-k", "7", preexec_fn=few)
    assert short.returncode == 2
    assert "Too many open files" in short.stderr
    assert "damaged" not in short.stderr
    assert [p for p in kept if not p.is_file()] == []
    assert weir(*command, "-m", "RR", "-k", "7").returncode == 0
