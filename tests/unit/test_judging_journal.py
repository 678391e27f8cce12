"""The journal of judgments: only appended, read back by every command, whole after kills and full disks."""

import os
import re
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from dataclasses import replace

import pytest

from tests.unit.judge_place import RUN
from weir.cli import main
from weir.core.qrels import Qrels
from weir.errors import FormatError, RankingWarning, StoreError
from weir.files.label_files import read_labels, read_raters
from weir.files.runs import read_qrels
from weir.plugins.app.judging.journal import Event, Journal


def graded(judge, document, grade, query="q1", **more):
    return Event(judge, "graded", query, document, grade=grade, **more)


@pytest.fixture
def journal(tmp_path):
    opened = Journal.open(tmp_path / "judgments.sqlite")
    yield opened
    opened.close()


def test_an_answer_that_is_sent_again_counts_once(journal):
    first, again = (journal.append(graded("ann", "d1", 2, key="k"))[0] for _ in range(2))
    assert first == again
    assert len(journal.events()) == 1


def test_undo_goes_back_step_by_step_and_leaves_others_alone(journal):
    journal.append(graded("ann", "d1", 2), graded("ben", "d1", 0), graded("ann", "d1", 3))
    with journal.reading() as standing:
        assert standing.judged["q1", "d1"]["ann"].grade == 3
    assert journal.undo("ann", "k1").grade == 3
    assert journal.undo("ann", "k1").grade == 3  # the same request again
    with journal.reading() as standing:
        assert {name: one.grade for name, one in standing.judged["q1", "d1"].items()} == {"ann": 2, "ben": 0}
    assert journal.undo("ann").grade == 2
    assert journal.undo("ann") is None
    assert len(journal.events()) == 5


def test_events_cannot_be_changed_by_anybody(journal):
    journal.append(graded("ann", "d1", 2))
    with sqlite3.connect(journal.path) as other:
        for change in ("UPDATE events SET grade = 0", "DELETE FROM events"):
            with pytest.raises(sqlite3.IntegrityError, match="only appended"):
                other.execute(change)
    other.close()


@pytest.mark.parametrize(
    "other",
    [
        {"grade": 7},
        {"grade": 1.5},
        {"grade": "two"},
        {"grade": None},
        {"kind": "rated"},
        {"task": "Judge"},
        {"kind": "preferred", "task": "rankings", "grade": 2},
    ],
    ids=str,
)
def test_an_event_that_weir_does_not_write_is_refused_by_its_number(journal, other):
    """The file edited by hand: neither is a grade beyond the scale counted, nor an unknown event dropped."""
    journal.declare({"grades": [0, 1, 2, 3]})
    journal.append(graded("ann", "d1", 2), graded("ben", "d2", 3))
    read_qrels(journal.path)
    journal.append(replace(graded("ann", "d1", 2), **other))
    for read in (read_qrels, read_raters):
        with pytest.raises(FormatError, match=r"event 3: .* with grades of"):
            read(journal.path)


def test_two_processes_and_many_threads_write_to_one_journal(journal):
    other = Journal.open(journal.path)
    numbers = range(40)
    names = [f"{name}{n}" for name in ("ann", "ben") for n in range(2)]
    writers = [
        threading.Thread(target=lambda n=n, j=j: [j.append(graded(n, f"d{i}", i % 4)) for i in numbers])
        for n, j in zip(names, (journal, other, journal, other), strict=True)
    ]
    for one in writers:
        one.start()
    for one in writers:
        one.join()
    with journal.reading() as mine, other.reading() as theirs:
        assert mine.labels == theirs.labels
        assert {(e.judge, e.document, e.grade) for e in mine.current()} == {
            (name, f"d{i}", i % 4) for name in names for i in numbers
        }
    other.close()


def test_every_command_reads_what_people_judged(journal):
    journal.append(
        *(graded("ann", d, g) for d, g in (("d1", 2), ("d2", 0), ("d3", 1), ("d4", 3))),
        *(graded("ben", d, g) for d, g in (("d1", 2), ("d2", 1), ("d3", 3))),
        graded("cyd", "d3", 2, task="decide"),
        graded("ann", "d1", 0, task="again"),
        Event("ben", "unable", "q1", "d4", text="in Dutch"),
        Event("ann", "noted", "q1", "d4", text="the very page"),
        replace(graded("ann", "d5", 1, suggested=1), kind="accepted"),
    )
    with pytest.warns(RankingWarning, match="differ on 1 pairs"):
        found = read_qrels(journal.path)
    assert found.to_dict() == {"q1": {"d1": 2, "d2": 0, "d3": 2, "d4": 3, "d5": 1}}
    assert found.origin.counts() == {"human": 4, "human (suggested)": 1}
    assert read_raters(journal.path)["ben"].to_dict() == {"q1": {"d1": 2, "d2": 1, "d3": 3}}
    assert read_labels(f"{journal.path}#ben").to_dict() == {"q1": {"d1": 2, "d2": 1, "d3": 3}}
    with pytest.raises(FormatError, match="no judge 'dan'; expected one of ann, ben"):
        read_labels(f"{journal.path}#dan")


def test_without_judgments_and_with_another_file_it_says_so(journal, tmp_path):
    with pytest.raises(FormatError, match="no grade yet"):
        read_qrels(journal.path)
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE t (x)")
    connection.close()
    with pytest.raises(StoreError, match="no journal of judgments"):
        Journal.open(other)
    with pytest.raises(FormatError, match="an SQLite database"):
        read_qrels(other)
    text = tmp_path / "text.sqlite"
    text.write_text("query document " * 40)
    with pytest.raises(StoreError, match="not a database"):
        Journal.open(text)


FULL = """
import resource, signal, sys
from pathlib import Path
from weir.errors import StoreError
from weir.plugins.app.judging.journal import Event, Journal
journal = Journal.open(Path(sys.argv[1]))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
stored = 0
try:
    while True:
        journal.append(Event("ann", "graded", "q", f"d{stored}", grade=1, text="x" * 500))
        stored += 1
except StoreError as error:
    print(error, file=sys.stderr)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
journal.append(Event("ann", "graded", "q", f"d{stored}", grade=1))
print(stored + 1)
"""


def test_a_full_disk_is_one_message_and_the_next_answer_is_stored(tmp_path):
    path = tmp_path / "judgments.sqlite"
    ended = subprocess.run(
        [sys.executable, "-c", FULL, str(path)], capture_output=True, text=True, check=True
    )
    assert f"cannot write {path}" in ended.stderr
    assert len(ended.stderr.strip().splitlines()) == 1
    reopened = Journal.open(path)
    assert len(reopened.events()) == int(ended.stdout)
    reopened.close()


KILLED = """
import sys
from pathlib import Path
from weir.plugins.app.judging.journal import Event, Journal
journal = Journal.open(Path(sys.argv[1]))
for n in range(100_000):
    journal.append(Event("ann", "graded", "q", f"{sys.argv[2]} {n}", grade=1))
    print(n, flush=True)
"""


def test_what_was_answered_survives_kill(tmp_path):
    path, expected = tmp_path / "judgments.sqlite", set()
    for turn in range(5):
        process = subprocess.Popen(
            [sys.executable, "-c", KILLED, str(path), str(turn)], stdout=subprocess.PIPE, text=True
        )
        answered = [next(process.stdout) for _ in range(7 * turn + 1)]
        os.kill(process.pid, signal.SIGKILL)
        answered += list(process.stdout)
        process.wait()
        process.stdout.close()
        expected |= {f"{turn} {line.strip()}" for line in answered}
    reopened = Journal.open(path)
    found = [event.document for event in reopened.events()]
    assert len(found) == len(set(found))
    assert expected <= set(found)
    assert len(found) - len(expected) <= 5  # stored, and killed before it was said
    reopened.close()


def test_every_command_on_labels_reads_the_journal_as_it_reads_a_file_of_the_same(
    judge_server, judged_place, judge_pool, tmp_path, monkeypatch, capsys
):
    model, _ = judge_server
    monkeypatch.chdir(tmp_path)
    place, run = str(judged_place / "mine"), str(judged_place / "ranker.trec")
    people = {q: {d: (n + len(d)) % 3 for n, d in enumerate(of)} for q, of in RUN.items()}
    Qrels.of(people).save("people.tsv")
    Qrels.of({q: dict.fromkeys(of, 1) for q, of in RUN.items() if q != "q5"}).save("model.tsv")
    with closing(Journal.open(tmp_path / "people.sqlite")) as journal:
        journal.append(*(graded("ann", d, g, q) for q, of in people.items() for d, g in of.items()))
    few = {q: people[q] for q in ("q0", "q1", "q2")}
    Qrels.of(few).save("few.tsv")
    with closing(Journal.open(tmp_path / "few.sqlite")) as journal:
        journal.append(*(graded("ann", d, g, q) for q, of in few.items() for d, g in of.items()))
    old = str(judged_place / "people.tsv")
    commands = [
        ["eval", "people", run],
        ["labels", "agree", "people", "model.tsv"],
        ["labels", "relabel", "people", old, run, "--collection", place],
        ["labels", "holes", old, run, "--human-labels", "people"],
        ["labels", "estimate", "few", "model.tsv", run, "-m", "P@5"],
        ["labels", "estimate", "few", "model.tsv", run, "-m", "P@5", "--sheet", "people", "--pairs"],
        ["judge", str(judge_pool), "--qrels", "people", "--model", model, "--probes", "0"],
    ]
    for command in commands:
        said = []
        for end in ("tsv", "sqlite"):
            given = [f"{one}.{end}" if one in ("people", "few") else one for one in command]
            out = ["-o", f"labels-{end}"] if command[0] == "judge" else []
            assert main([*given, *out, "--json"]) == 0, capsys.readouterr().err
            said.append(re.sub(r"[.-](tsv|sqlite)\b", "", capsys.readouterr().out))
        assert said[0] == said[1], command
        assert said[0], command
    assert '"people": {' in said[0]  # was compared with them
