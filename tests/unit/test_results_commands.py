"""Tables of weir eval, run and results: grids, labels, filters, formats, widths, colours, the judged rate."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import weir
from tests.unit.brooklet import write_collection, written_files
from tests.unit.cells import changed, write_cell
from weir.api.results_folder import results as folder_rows
from weir.api.rows import grid_tables
from weir.cli import main
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.core.tables import display_width
from weir.errors import BadValue, FormatError, LossWarning, RankingWarning, UnknownName
from weir.experiment.experiment import Experiment
from weir.experiment.results import ORDER, GridOrder, current_cells, finished_cells, keep_order, of_systems
from weir.measures import score_run
from weir.stats.resampling import MEAN_INTERVALS
from weir.stats.score_rows import BEST, result_rows, row_notes

TUNED = "bm25(k1=1.2, b=0.75)"
SYSTEMS = ("rm3", TUNED, "bm25")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Two collections of the same documents, named against the alphabet, and three systems likewise."""
    folder = tmp_path_factory.mktemp("grid")
    data = tuple(str(write_collection(folder / n, mark=m)) for n, m in (("zebra", ""), ("aardvark", "?")))
    Experiment(data, SYSTEMS, ("nDCG@10", "AP")).execute(folder / "results")
    return folder / "results"


@pytest.fixture
def runs(tmp_path):
    (tmp_path / "qrels").write_text("".join(f"q{n} 0 d{n} 1\n" for n in range(8)))
    names = []
    for name, other in (("good", 1.0), ("poor", 3.0)):
        lines = [f"q{n} Q0 {d} 0 {s} t\n" for n in range(8) for d, s in ((f"d{n}", 2.0), ("x", other))]
        (tmp_path / f"{name}.trec").write_text("".join(lines))
        names.append(str(tmp_path / f"{name}.trec"))
    return str(tmp_path / "qrels"), *names


def shown(capsys, *arguments: str) -> str:
    assert main(list(map(str, arguments))) == 0
    return capsys.readouterr().out


def test_results_are_a_grid_in_the_order_of_the_experiment(results, capsys):
    out = shown(capsys, "results", results)
    tables = out.split("\n\n")
    assert [tables[i] for i in (0, 2, 4)] == ["nDCG@10", "AP", "Judged@10"]
    lines = tables[1].split("\n")
    assert lines[0].split() == ["system", "zebra", "aardvark", "mean", "of", "2", "datasets"]
    assert [line.split("  ")[0] for line in lines[2:]] == list(SYSTEMS)
    assert "4 queries are too few for a test" in tables[-1]  # so no letters tell them apart
    means = {(r.dataset, r.system): r.mean for r in folder_rows(results) if r.measure == "nDCG@10"}
    for line, system in zip(lines[2:], SYSTEMS, strict=True):
        assert f"{means['zebra', system]:.4f}" in line


def test_long_form_has_the_intervals_and_the_judged_rate(results, capsys):
    lines = shown(capsys, "results", results, "--long").split("\n")
    assert lines[0].split() == ["dataset", "system", "nDCG@10", "AP", "Judged@10", "answered"]
    assert [line.split("  ")[0] for line in lines[2:8]] == ["zebra"] * 3 + ["aardvark"] * 3
    assert all("[" in line for line in lines[2:8])


def test_results_are_filtered_by_measure_dataset_and_system(results, capsys):
    out = shown(
        capsys,
        "results",
        results,
        "-m",
        "ap",
        "-d",
        "zebra",
        "-s",
        "bm25(b=0.75, k1=1.2)",
        "-s",
        "rm3",
        "--json",
    )
    found = [json.loads(line) for line in out.splitlines()]
    assert {(r["measure"], r["dataset"]) for r in found} == {("AP", "zebra")}
    assert [r["system"] for r in found] == ["rm3", TUNED]
    for option, name in (("-m", "RR"), ("-d", "zbra"), ("-s", "bm26")):
        assert main(["results", str(results), option, name]) == 2
        assert "no " in capsys.readouterr().err


def test_a_system_goes_by_the_beginning_of_its_name_where_that_is_one(results, capsys):
    out = shown(capsys, "results", results, "-s", "bm25(k", "--csv")
    assert {row["system"] for row in csv.DictReader(io.StringIO(out))} == {TUNED}
    assert {
        row["system"]
        for row in csv.DictReader(io.StringIO(shown(capsys, "results", results, "-s", "BM25", "--csv")))
    } == {"bm25"}
    for command in (["results", results], ["compare", results], ["gate", results, results]):
        assert main([*map(str, command), "-s", "bm"]) == 2
        assert f"bm is the beginning of 2 systems: bm25, {TUNED}; name one" in capsys.readouterr().err
    assert (
        main(["gate", str(results), str(results), "-s", "r", "-m", "nDCG@10"]) == 3
    )  # few queries, and one system


def test_the_name_of_a_cell_in_tables_chooses_that_cell_alone(tmp_path):
    for name, k1 in (("one", 0.9), ("other", 1.2)):
        write_cell(tmp_path / "mine" / name, manifest=changed("system.k1", k1))
    cells = finished_cells(tmp_path)
    assert {cell.label for cell in cells} == {f"bm25 #{cell.ranked.stage.key}" for cell in cells}
    for cell in cells:
        assert of_systems(cells, [cell.label]) == [cell]
    assert of_systems(cells, ["BM25"]) == cells
    with pytest.raises(UnknownName, match="bm25 #0"):
        of_systems(cells, ["bm25 #0"])


def test_labels_are_shown_and_are_in_no_key(results, capsys):
    before = sorted(p.name for p in results.rglob("*"))
    labels = ["--label", f"tuned={TUNED}", "--label", "base=bm25"]
    out = shown(capsys, "results", results, *labels)
    assert "\ntuned " in out
    assert f"tuned: {TUNED}" in out
    assert "\nbase " in out
    long = shown(capsys, "results", results, "--long", *labels)
    assert long.count("tuned ") == 2
    data = [str(results.parent / name) for name in ("zebra", "aardvark")]
    run = ["run", *(a for d in data for a in ("-d", d)), *(a for s in SYSTEMS for a in ("-s", s))]
    assert "\ntuned " in shown(capsys, *run, "-m", "AP", "-o", results, "-q", *labels)
    assert sorted(p.name for p in results.rglob("*")) == before
    found = shown(capsys, "compare", results, "-m", "AP", "--baseline", "base", *labels)
    assert "tuned - base" in found
    assert [
        json.loads(line)["system"]
        for line in shown(capsys, "results", results, "--json", *labels).splitlines()[:1]
    ] == ["rm3"]


def test_notes_call_systems_as_tables_do(results, tmp_path, capsys):
    labels = ["--label", f"tuned={TUNED}", "--label", "base=bm25", "--label", "more=rm3"]
    data = [str(results.parent / name) for name in ("zebra", "aardvark")]
    run = ["run", *(a for d in data for a in ("-d", d)), *(a for s in SYSTEMS for a in ("-s", s)), "-q"]
    for command in (
        ["results", str(results)],
        [*run, "-m", "AP", "-o", str(results)],
        ["compare", str(results)],
    ):
        assert main([*command, *labels, "--notes"]) == 0
        said = capsys.readouterr().err
        assert not [system for system in SYSTEMS if system in said]
    qrels, whole, part = written_files(
        tmp_path,
        qrels="q1 0 d1 1\nq2 0 d1 1\n",
        whole="q1 Q0 d1 1 2 x\nq2 Q0 d1 1 2 x\n",
        part="q1 Q0 d1 1 2 x\n",
    )
    for command in ("eval", "compare"):
        assert main([command, *map(str, (qrels, whole, part)), "-m", "RR", "--label", "ours=part"]) == 0
        assert "note: ours: 1 of 2 judged queries are not answered" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ("tuned", "expected NAME=SYSTEM"),
        ("x=bm26", "no system to be labelled named 'bm26'"),
        ("rm3=bm25", "another system goes by 'rm3'"),
    ],
)
def test_a_label_that_cannot_be_is_one_line(results, capsys, label, message):
    assert main(["results", str(results), "--label", label]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("width", ["60", "80", "120", "200"])
def test_nothing_is_wider_than_the_terminal(results, runs, capsys, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", width)
    qrels, good, poor = runs
    for command in (
        ["results", results], ["results", results, "--long"], ["compare", results], ["compare", results, "--long"],
        ["compare", qrels, good, poor], ["eval", qrels, good, poor, "-m", "nDCG@10", "-m", "AP", "-m", "RR"],
        ["study", "efficiency", results], ["power", qrels, good, poor], ["list", "datasets"], ["list", "models"],
        ["study", "reproduce", results], ["data", "stats", qrels], ["gate", qrels, good, poor], ["diff", qrels, good, poor], ["verify", results], ["results", results, "--provenance"],
    ):  # fmt: skip
        main(list(map(str, command)))
        out = capsys.readouterr().out
        assert out, command
        assert max(map(display_width, out.split("\n"))) <= int(width), command


def test_a_pipe_gets_whole_rows_unless_columns_is_set(results, capsys, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    assert max(map(len, shown(capsys, "results", results, "--long").split("\n"))) > 80


def test_eval_takes_several_runs_and_every_format(runs, capsys):
    out = shown(capsys, "eval", *runs, "-m", "RR")
    lines = out.split("\n")
    assert lines[0].split() == ["dataset", "system", "RR", "Judged@10", "answered"]
    assert lines[2].split()[:3] == ["qrels", "good", "1.0000*"]
    assert any(line.startswith(BEST) for line in lines)  # a star often means significance
    assert lines[3].split()[:3] == ["qrels", "poor", "0.5000"]
    found = list(csv.DictReader(io.StringIO(shown(capsys, "eval", *runs, "-m", "RR", "--csv"))))
    assert [(r["system"], float(r["mean"]), float(r["judged_at_10"])) for r in found] == [
        ("good", 1, 0.5),
        ("poor", 0.5, 0.5),
    ]
    latex = shown(capsys, "eval", *runs, "-m", "RR", "--latex")
    assert r"\textbf{1.0000}" in latex
    assert "Student's for fewer than" in latex
    assert "interval of a mean" not in out
    assert MEAN_INTERVALS in shown(capsys, "eval", *runs, "-m", "RR", "--explain")
    with pytest.raises(BadValue, match=r"found 2 rankings; expected one \(weir.compare"):
        weir.evaluate(runs[0], list(runs[1:]))
    assert "| qrels | good | **1.0000** \\[0.6756, 1.0000\\] |" in shown(
        capsys, "eval", *runs, "-m", "RR", "--markdown"
    )
    page = shown(capsys, "eval", *runs, "-m", "RR", "--html", "--label", "<best>=good")
    assert page.startswith("<!doctype html>")
    assert "<bdi>&lt;best&gt;</bdi>" in page
    per_query = shown(capsys, "eval", *runs, "-m", "RR", "--per-query").splitlines()
    assert (per_query[0], per_query[-1]) == ("good\tRR\tq0\t1.0", "poor\tRR\tq7\t0.5")
    assert main(["eval", *runs, "--per-query", "--latex"]) == 2
    assert "--per-query" in capsys.readouterr().err


def test_the_judged_rate_stands_beside_whatever_is_asked(runs, capsys):
    qrels, good, _ = runs
    assert main(["eval", qrels, good, "-m", "RR"]) == 0
    out, err = capsys.readouterr()
    assert "Judged@10" in out
    assert "note: 50.0% of the first 10 documents are judged; unjudged ones count as not relevant\n" in err
    assert shown(capsys, "eval", qrels, good, "-m", "Judged@10").count("Judged@10") == 1


def test_the_judged_rate_of_rows_is_the_measure():
    qrels = Qrels.of({"q1": {"a": 1, "b": 0}, "q2": {"c": 1}})
    run = Run.of({"q1": {"a": 2.0, "x": 1.0}, "q2": {"c": 1.0}})
    asked, other = score_run(qrels, run, ["Judged@10"]), score_run(qrels, run, ["AP"])
    assert result_rows(other, "d", "s")[0].judged_at_10 == result_rows(asked, "d", "s")[0].mean == 0.75
    (note,) = row_notes(result_rows(other, "d", "s"))
    assert str(note).startswith("note: 75.0% of the first 10 documents are judged;")
    assert str(note) in note.with_details
    assert "condensed(nDCG@10)" in note.with_details
    # The note is of what is returned, as an audit counts.
    half = score_run(qrels, Run.of({"q1": {"a": 2.0, "x": 1.0}}), ["AP"])
    assert half.judged_at_10 == 0.25
    for notes in (row_notes(result_rows(half, "d", "s")), half.notes()):
        assert any(
            str(note).startswith("note: 50.0% of the first 10 documents of answered queries are judged;")
            for note in notes
        )
    whole = Run.of({"q1": {"a": 2.0}, "q2": {"c": 1.0}})
    assert row_notes(result_rows(score_run(qrels, whole, ["AP"]), "d", "s")) == []


def in_a_terminal(*arguments: str, **environment: str) -> str:
    """What the command writes to a terminal of 80 columns."""
    master, slave = pty.openpty()
    given = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR")}
    try:
        running = subprocess.Popen(
            [sys.executable, "-m", "weir", *arguments], stdout=slave, stderr=subprocess.DEVNULL,
            env={**given, "TERM": "xterm-256color", **environment},
        )  # fmt: skip
        os.close(slave)
        found = b""
        while True:
            try:
                piece = os.read(master, 65536)
            except OSError:
                break
            if not piece:
                break
            found += piece
        assert running.wait(300) == 0
    finally:
        os.close(master)
    return found.decode().replace("\r\n", "\n")


def test_colours_only_in_a_terminal_and_never_with_no_color(runs, tmp_path, capsys):
    evil = tmp_path / "\x1b[31mred.trec"
    evil.write_bytes(Path(runs[1]).read_bytes())
    arguments = ["eval", runs[0], str(evil), runs[2], "-m", "RR"]
    coloured = in_a_terminal(*arguments)
    assert "\x1b[1m1.0000*" in coloured
    assert "\x1b[31m" not in coloured
    assert r"\x1b[31mred" in coloured
    for setting in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        assert "\x1b" not in in_a_terminal(*arguments, **setting)
    assert "\x1b" not in shown(capsys, *arguments)


def test_judged_rates_that_are_apart_are_said_beside_a_verdict(runs, tmp_path, capsys):
    qrels, good, poor = runs
    whole = tmp_path / "whole.trec"
    whole.write_text("".join(f"q{n} Q0 d{n} 0 2 t\n" for n in range(8)))
    for command in ("compare", "gate", "power"):
        assert main([command, qrels, good, str(whole), "-m", "RR"]) == 0
        sides = ("baseline", "candidate") if command == "gate" else ("good", "whole")
        rates = f"as few as 50.0% of the first 10 documents are judged ({sides[0]}), 100.0% of {sides[1]}'s"
        assert rates in capsys.readouterr().err
        main([command, qrels, good, poor, "-m", "RR", "--notes"])
        err = capsys.readouterr().err
        assert "as few as 50.0% of the first 10 documents are judged" in err
        assert "'s" not in err
        assert "can decide between two systems" in err


def test_a_grid_says_which_queries_were_not_answered(tmp_path, capsys):
    """A full-text search that answers few queries looks like a bad ranking where only means are shown."""
    data = [str(write_collection(tmp_path / name)) for name in ("one", "other")]
    first = weir.Run.of({"q1": {"d1": 1.0}})
    first.save(tmp_path / "first.trec")
    systems = ["bm25", f'run("{tmp_path}/first.trec")']
    with pytest.warns(RankingWarning, match="3 of 4 queries are not in the file"):
        done = weir.benchmark(data, systems, ["nDCG@10"], out=tmp_path / "results")
    note = "note: queries that were not answered score 0: 3 of 4 (first on one), 3 of 4 (first on other)"
    for command in ("results", "compare"):
        assert main([command, str(tmp_path / "results")]) == 0
        assert note in capsys.readouterr().err
    for result in (done, weir.results(tmp_path / "results"), weir.compare(tmp_path / "results")):
        assert note in repr(result)
    main(["gate", str(tmp_path / "results"), str(tmp_path / "results"), "-s", systems[1]])
    assert "note: 3 of 4 judged queries are not answered and score 0" in capsys.readouterr().err


def grid(
    folder: Path, at: Path, systems: list[str], k: int = 1000, measures: tuple[str, ...] = ("nDCG@10",)
) -> None:
    weir.Experiment([folder], systems, measures, k).execute(at)


def test_results_stand_in_the_order_that_was_asked_for(tmp_path):
    folder, at = write_collection(tmp_path / "c"), tmp_path / "results"
    grid(folder, at, ["rm3"])
    grid(folder, at, ["bm25", 'bm25("elastic")', "rm3"])
    assert [cell.system for cell in finished_cells(at)] == ["rm3", "bm25", 'bm25("elastic")']
    (at / ORDER).write_text("{}")  # of a damaged order nothing is lost but itself
    with pytest.warns(LossWarning, match=r"grid\.json: changed"):
        assert {cell.system for cell in finished_cells(at)} == {"rm3", "bm25", 'bm25("elastic")'}
    keep_order(at, ["c"], ["bm25"])
    keep_order(at, ["d"], ["rm3", "bm25"])
    assert GridOrder.read(at) == GridOrder(("c", "d"), ("bm25", "rm3"))
    assert finished_cells(at)[0].system == "bm25"


def test_names_given_to_systems_are_kept_with_their_results(tmp_path):
    """A label names one system of the folder: the last that was given it."""
    folder, at = write_collection(tmp_path / "c"), tmp_path / "results"
    weir.benchmark(folder, {"mine": "rm3", "bm25": "bm25"}, "nDCG@10", out=at)
    assert [one.called for one in current_cells(finished_cells(at))[0]] == ["mine", "bm25"]
    compared = weir.compare(at)
    assert {pair.first for pair in compared[0].pairs} | {pair.second for pair in compared[0].pairs} == {
        "mine",
        "bm25",
    }
    assert "mine is rm3" in [note.text for note in compared.notes()]
    assert [row.called for row in weir.results(at, systems=["mine"])] == ["mine"]
    weir.benchmark(folder, {"mine": 'bm25("elastic")'}, "nDCG@10", out=at)
    assert [one.called for one in current_cells(finished_cells(at))[0]] == ["rm3", "bm25", "mine"]
    assert {row.called for row in weir.results(at, labels=["old=rm3"])} == {"old", "bm25", "mine"}
    keep_order(at, labels={"rm3": "bm25"})  # the name of another system of the folder
    assert [one.called for one in current_cells(finished_cells(at))[0]] == ["rm3", "bm25", "mine"]


class LengthModel:
    """An encoder without a version."""

    def __init__(self, most):
        self.most = most

    def encode(self, texts):
        angles = np.array([len(text) % self.most for text in texts]) / self.most
        return np.stack([np.cos(angles), np.sin(angles)], 1).astype(np.float32)


def test_results_of_two_objects_of_one_name_are_told(tmp_path):
    """Without a version nothing else tells models apart: a mean would mix them in silence."""
    first, other, at = (
        write_collection(tmp_path / "c"),
        write_collection(tmp_path / "d"),
        tmp_path / "results",
    )
    whole = weir.benchmark([first, other], {"mine": LengthModel(7)}, "nDCG@10", out=at)
    assert not any("version" in note.text for note in whole.notes())
    weir.benchmark(other, {"mine": LengthModel(5)}, "nDCG@10", out=at)
    told = [note.text for note in weir.results(at).notes()]
    assert any(
        text.startswith("mine has no version, and 2 objects of that name answered (c, d)") for text in told
    )
    assert any("its rankings replaced earlier ones of this name" in text for text in told)


def test_a_run_is_loaded_from_the_folder_of_its_system(tmp_path):
    at = tmp_path / "results"
    grid(write_collection(tmp_path / "c"), at, ["bm25", "rm3"])
    for cell in finished_cells(at):
        assert weir.Run.load(cell.run.parent).to_dict() == weir.Run.load(cell.run).to_dict()
    with pytest.raises(BadValue, match="holds 2 rankings; name the folder of one"):
        weir.Run.load(at)
    with pytest.raises(FormatError):
        weir.Run.load(tmp_path / "c")


def test_what_differs_in_k_alone_is_one_system(tmp_path, capsys):
    folder, at = write_collection(tmp_path / "c"), tmp_path / "results"
    for k in (3, 50):
        grid(folder, at, ["bm25", "rm3"], k)
    assert [cell.label for cell in finished_cells(at)] == ["bm25 #k=3", "bm25", "rm3 #k=3", "rm3"]
    assert main(["compare", str(at), "-m", "nDCG@10"]) == 0
    out, err = capsys.readouterr()
    assert "adjusted over 1 comparison" in out
    assert "note: bm25 on c is compared with k=50 alone, not 3" in err
    assert main(["compare", str(at), "-m", "nDCG@10", "-s", "bm25", "-s", "bm25 #k=3"]) == 0
    assert "bm25 #k=3" in capsys.readouterr().out


def test_of_judgments_that_changed_the_last_count_alone(tmp_path, capsys):
    folder, at = write_collection(tmp_path / "c"), tmp_path / "results"
    judged = folder / "qrels" / "test.tsv"
    before, after = judged.read_text(), judged.read_text().replace("q1\td1\t2\n", "")
    for text in (before, after, before):  # the third run finds its scores made already
        judged.write_text(text)
        grid(folder, at, ["bm25", "rm3"])
        run = finished_cells(at)[0].run
        [mean] = weir.evaluate(judged, run, ["nDCG@10"]).means().values()
        assert [row.mean for row in weir.results(at) if row.system == "bm25"] == [mean]
    capsys.readouterr()
    assert main(["compare", str(at)]) == 0
    out, err = capsys.readouterr()
    assert "adjusted over 1 comparison" in out
    assert "note: 2 rankings were scored by other judgments before; the last ones asked for count" in err
    assert main(["verify", "-q", str(at)]) == 0
    assert main(["gate", "--save", str(tmp_path / "b.tsv"), str(at), "-s", "bm25"]) == 0
    assert main(["report", "-q", str(at), "-o", str(tmp_path / "report.html")]) == 0


def test_systems_of_other_judgments_are_not_compared(tmp_path, capsys):
    folder, at = write_collection(tmp_path / "c"), tmp_path / "results"
    grid(folder, at, ["bm25", "rm3", "bm25(b=0.9)"])
    judged = folder / "qrels" / "test.tsv"
    judged.write_text(judged.read_text().replace("q1\td1\t2\n", ""))
    grid(folder, at, ["bm25", "bm25(b=0.9)"])  # of rm3 there are the former judgments alone
    capsys.readouterr()
    assert main(["results", str(at)]) == 0
    other = "rm3 on c was scored by other judgments than the last ones asked for, and does not compare"
    assert f"note: {other}" in capsys.readouterr().err
    assert main(["compare", str(at), "--json"]) == 0
    out, err = capsys.readouterr()
    assert {s["system"] for s in json.loads(out)["standings"]} == {"bm25", "bm25(b=0.9)"}
    assert f"note: {other}: left out; the same weir run scores it again" in err
    assert main(["compare", str(at), "-s", "bm25", "-s", "rm3"]) == 2
    assert other in capsys.readouterr().err
    page = str(tmp_path / "report.html")
    assert main(["report", "-q", "--no-audit", "--markdown", str(at), "-o", page]) == 0
    assert "| rm3 |" not in capsys.readouterr().out
    assert main(["report", "-q", "--no-audit", str(at), "-s", "rm3", "-o", page]) == 2
    assert other in capsys.readouterr().err
    (folder / "corpus.jsonl").unlink()  # else both are scored again by the judgments that are here
    cells = {cell.system: str(cell.folder) for cell in finished_cells(at)}
    assert main(["diff", cells["bm25"], cells["rm3"]]) == 2
    assert "scored by different judgments" in capsys.readouterr().err


def test_systems_on_other_documents_of_one_name_do_not_meet(tmp_path, capsys):
    folder, at = write_collection(tmp_path / "c"), tmp_path / "results"
    grid(folder, at, ["bm25"])
    corpus = folder / "corpus.jsonl"
    corpus.write_text("".join(corpus.read_text().splitlines(keepends=True)[:-1]))
    grid(folder, at, ["rm3"])
    assert main(["results", str(at)]) == 0
    out, err = capsys.readouterr()
    assert "note: c [older " in err
    assert "*" not in out.partition("nDCG")[2]  # neither is the best of anything
    assert main(["compare", str(at)]) == 2
    assert "no dataset has two systems" in capsys.readouterr().err


@pytest.mark.parametrize("part", ["corpus.jsonl", "queries.jsonl", "qrels/test.tsv"])
def test_means_over_datasets_are_of_the_newest_version_of_each(tmp_path, part):
    """As of a folder that was changed and run again; a version that is put back counts again."""
    at = tmp_path / "results"
    changing, steady = (write_collection(tmp_path / name) for name in ("c", "d"))
    judged = steady / "qrels" / "test.tsv"  # else both would count once
    judged.write_text(
        "".join(line for line in judged.read_text().splitlines(keepends=True) if "q1" not in line)
    )
    first = (changing / part).read_text()
    fewer = "".join(first.splitlines(keepends=True)[:-1])
    for turn, (text, systems) in enumerate(
        ((first, ("bm25", "rm3")), (fewer, ("bm25",)), (first, ("bm25",)))
    ):
        (changing / part).write_text(text)
        alone = tmp_path / f"alone-{turn}"
        for to, of in ((at, systems), (alone, ("bm25",))):
            for folder in (changing, steady):
                grid(folder, to, list(of))
        shown, expected = (weir.results(one, systems=["bm25"], measures=["nDCG@10"]) for one in (at, alone))
        assert [row.mean for row in shown if not row.repeats] == [row.mean for row in expected]
        assert all(("[older " in row.dataset) == bool(row.repeats) for row in shown)
        means = grid_tables(weir.results(at, measures=["nDCG@10"]))[0].cells[0]
        assert means[-1].mean == pytest.approx(np.mean([row.mean for row in expected]))
        assert all(row.difference == 0 for row in weir.gate(alone, at, systems=["bm25"]))


def test_an_older_version_counts_in_no_mean_also_where_the_newest_lacks_the_result(tmp_path):
    """Neither for a measure nor for a system that the newest version was not run with."""
    at, places = tmp_path / "results", [write_collection(tmp_path / name) for name in "cde"]
    for number, folder in enumerate(places):  # else all would count once
        judged = folder / "qrels" / "test.tsv"
        judged.write_text(judged.read_text() + f"q2\td{number}\t2\n")
        weir.benchmark(str(folder), ["bm25", "rm3", "bm25(b=0.0)"], ["nDCG@10", "AP"], out=at)
    corpus = places[0] / "corpus.jsonl"
    corpus.write_text("".join(corpus.read_text().splitlines(keepends=True)[:-1]))
    weir.benchmark(str(places[0]), ["rm3", "bm25(b=0.0)"], ["nDCG@10"], out=at)
    [ndcg, ap, *_] = grid_tables(weir.results(at))
    assert [grid.datasets[-1] for grid in (ndcg, ap)] == ["mean of 3 datasets", "mean of 2 datasets"]
    assert [row[-1] is None for row in ndcg.cells] == [system == "bm25" for system in ndcg.systems]
    [bm25, *_] = grid_tables(weir.results(at, "nDCG@10", systems=["bm25"]))
    assert bm25.datasets[-1] == "mean of 2 datasets"
    compared = list(weir.compare(at, measures=["nDCG@10"], baseline="bm25"))
    assert [one.count for one in compared if one.unit == "datasets"] == [2]
    rows = [row for row in weir.results(at) if row.older]
    assert {row.dataset.partition(" ")[0] for row in rows} == {"c"}
    assert any(
        "does not count" in str(note) or "alone counts" in str(note) for note in weir.results(at).notes()
    )


def test_results_of_one_system_on_each_collection_are_shown(tmp_path, capsys):
    at = tmp_path / "results"
    grid(write_collection(tmp_path / "c"), at, ["bm25"])
    grid(write_collection(tmp_path / "d"), at, ["rm3"])
    assert main(["results", str(at)]) == 0
    assert "bm25" in capsys.readouterr().out


def test_compare_leaves_out_what_lacks_a_measure_and_names_it(tmp_path, capsys):
    folder, at = write_collection(tmp_path / "c"), tmp_path / "results"
    grid(folder, at, ["bm25", "rm3"], measures=("nDCG@10", "R@5"))
    grid(folder, at, ['bm25("elastic")'])
    assert main(["compare", str(at), "-m", "R@5"]) == 0
    out, err = capsys.readouterr()
    assert "rm3" in out
    assert 'bm25("elastic") on c is left out of R@5' in err


def test_a_system_that_is_not_in_a_folder_is_named(tmp_path, capsys):
    folder, at = write_collection(tmp_path / "c"), tmp_path / "results"
    grid(folder, at, ["bm25"])
    assert main(["results", str(at), "-s", "rm3"]) == 2
    assert "no system among these results named 'rm3'" in capsys.readouterr().err
    with pytest.raises(UnknownName):
        weir.parse_system("bm25x")
