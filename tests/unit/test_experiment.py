from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.kills import killed_later_each_time
from tests.unit.brooklet import write_collection
from tests.unit.results import contents, finished_files
from weir.api.results_folder import results as folder_rows
from weir.cli.main import main
from weir.errors import BadValue, FormatError, LossWarning, StoreError, UnknownName
from weir.experiment.experiment import Experiment
from weir.experiment.results import finished_cells, mixed_provenance
from weir.systems.lexical.bm25 import BM25Searcher


@pytest.fixture
def collection(tmp_path):
    return str(write_collection(tmp_path / "brooklet"))


def test_a_grid_gives_a_row_for_each_cell_and_measure(tmp_path, collection):
    grid = Experiment((collection,), ("bm25", "bm25(b=0.75)"), ("nDCG@10", "R@100"), k=10)
    rows = grid.execute(tmp_path / "results")
    assert [(r.dataset, r.system, r.measure) for r in rows] == [
        ("brooklet", s, m) for s in ("bm25", "bm25(b=0.75)") for m in ("nDCG@10", "R@100")
    ]
    assert all(r.queries == 4 and r.answered == 3 for r in rows)  # nothing in the collection says xylophone
    assert all(0 <= r.mean <= 1 and np.isnan([r.low, r.high]).all() for r in rows)  # of four queries
    assert list(folder_rows(tmp_path / "results")) == rows


def test_two_spellings_of_one_system_run_once_and_it_is_said(tmp_path, collection):
    grid = Experiment((collection,), ("bm25", "bm25(b={0.4, 0.75})", "bm25"), ("nDCG@10",))
    with pytest.warns(LossWarning) as told:
        rows = grid.execute(tmp_path / "results")
    assert [row.system for row in rows] == ["bm25", "bm25(b=0.75)"]
    [said] = {str(one.message) for one in told}
    assert said == "bm25(b={0.4, 0.75}) and bm25 are one system, bm25: it runs once"


def test_finished_cells_are_read_and_not_repeated(tmp_path, collection):
    grid = Experiment((collection,), ("bm25",), ("nDCG@10",))
    first = grid.execute(tmp_path / "results")
    stamps = {p: p.stat().st_mtime_ns for p in (tmp_path / "results").rglob("*") if p.is_file()}
    stages: list[str] = []
    assert grid.execute(tmp_path / "results", lambda stage, done, total: stages.append(stage)) == first
    assert stages == []
    assert {p: p.stat().st_mtime_ns for p in (tmp_path / "results").rglob("*") if p.is_file()} == stamps


def test_a_new_measure_is_computed_from_the_stored_run(tmp_path, collection):
    Experiment((collection,), ("bm25",), ("nDCG@10",)).execute(tmp_path / "results")
    run = next((tmp_path / "results").rglob("run.trec"))
    before = run.stat().st_mtime_ns
    stages: list[str] = []
    grid = Experiment((collection,), ("bm25",), ("AP", "nDCG@10"))
    rows = grid.execute(tmp_path / "results", lambda stage, done, total: stages.append(stage))
    assert [r.measure for r in rows] == ["AP", "nDCG@10"]
    assert stages == []
    assert run.stat().st_mtime_ns == before
    assert {r.measure for r in folder_rows(tmp_path / "results")} == {"AP", "nDCG@10"}


def test_another_collection_of_the_same_name_is_another_cell(tmp_path):
    grid = ("bm25",), ("nDCG@10",)
    one = str(write_collection(tmp_path / "a" / "same"))
    two = str(write_collection(tmp_path / "b" / "same", {"d1": ("", "a river"), "d4": ("", "a dam")}))
    Experiment((one,), *grid).execute(tmp_path / "results")
    Experiment((two,), *grid).execute(tmp_path / "results")
    assert len(list((tmp_path / "results").rglob("scores-*.json"))) == 2
    rows = folder_rows(tmp_path / "results")
    assert {r.system for r in rows} == {"bm25"}
    assert len({r.dataset for r in rows}) == 2
    assert all(r.dataset.startswith("same [") for r in rows)
    with pytest.raises(BadValue, match="two different datasets are named 'same'"):
        Experiment((one, two), *grid).execute(tmp_path / "other")
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(
    ("grid", "error"),
    [
        (Experiment(("scifcat",), ("bm25",)), UnknownName),
        (Experiment(("{}",), ("bm26",)), UnknownName),
        (Experiment(("{}",), ("bm25",), ("nDGC@10",)), UnknownName),
        (Experiment(("{}",), ("bm25",), k=0), BadValue),
        (Experiment((), ("bm25",)), BadValue),
        (Experiment(("{}",), ()), BadValue),
    ],
)
def test_names_are_checked_before_anything_starts(tmp_path, collection, grid, error):
    asked = Experiment(
        tuple(d.format(collection) for d in grid.datasets), grid.systems, grid.measures, grid.k
    )
    with pytest.raises(error):
        asked.execute(tmp_path / "results")
    assert not (tmp_path / "results").exists()


def test_an_experiment_file(tmp_path, collection):
    path = tmp_path / "grid.toml"
    path.write_text(f'datasets = ["{collection}"]\nsystems = "bm25"\nmeasures = ["AP"]\nk = 5\n')
    assert Experiment.read(path) == Experiment((collection,), ("bm25",), ("AP",), 5)
    path.write_text("datasets = [1]\n")
    with pytest.raises(FormatError, match="a list of texts"):
        Experiment.read(path)
    path.write_text("dataset = ['x']\n")
    with pytest.raises(UnknownName, match="did you mean datasets"):
        Experiment.read(path)
    path.write_text("datasets = [\n")
    with pytest.raises(FormatError, match="TOML"):
        Experiment.read(path)
    with pytest.raises(FormatError, match="no such file"):
        Experiment.read(tmp_path / "none.toml")


RECORDS = ("scores-*.json", "stage.json")
DAMAGE = {
    "overwritten": lambda data: b"{ damaged",
    "emptied": lambda data: b"",
    "shortened": lambda data: data[: len(data) // 2],
    "one bit": lambda data: data[:-1] + bytes([data[-1] ^ 1]),
}


@pytest.mark.parametrize("how", [*DAMAGE, "deleted"])
def test_damage_is_repaired(tmp_path, collection, how):
    """Any file of any stage, at a moment when it decides: what is made from it is missing."""
    grid = Experiment((collection,), ("bm25",), ("nDCG@10",))
    rows = grid.execute(tmp_path / "results")
    whole = contents(tmp_path / "results")
    [scored], [ran] = (list((tmp_path / "results" / "brooklet").glob(f"bm25-*/{p}")) for p in RECORDS)
    assert len(whole) > 8
    for name in whole:
        path = tmp_path / "results" / name
        if path.parent.name != ran.parent.name:  # of the index
            ran.unlink()
        if path.suffix != ".jsonl" and path != scored:
            scored.unlink()
        if how == "deleted":
            path.unlink(missing_ok=True)
        elif path.exists() and (data := path.read_bytes()):
            path.write_bytes(DAMAGE[how](data))
        assert grid.execute(tmp_path / "results") == rows, name
        assert contents(tmp_path / "results") == whole, name


def test_a_folder_that_cannot_be_written_is_one_error(tmp_path, collection):
    (tmp_path / "file").write_text("")
    stages: list[str] = []

    def watch(stage: str, done: int, total: int) -> None:
        stages.append(stage)

    with pytest.raises(StoreError, match="cannot write"):
        Experiment((collection,), ("bm25",)).execute(tmp_path / "file" / "results", watch)
    (tmp_path / "sealed").mkdir(mode=0o555)
    with pytest.raises(StoreError, match="cannot write"):
        Experiment((collection,), ("bm25",)).execute(tmp_path / "sealed", watch)
    assert stages == []


def test_results_are_not_written_through_a_link_out_of_their_folder(tmp_path, collection):
    grid = Experiment((collection,), ("bm25",), ("nDCG@10",))
    for folder in ("results", "elsewhere", "moved"):
        (tmp_path / folder).mkdir()
    (tmp_path / "results" / "brooklet").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(
        StoreError, match=r"brooklet is a link to .*elsewhere, and nothing is written through it"
    ):
        grid.execute(tmp_path / "results")
    assert list((tmp_path / "elsewhere").iterdir()) == []
    (tmp_path / "linked").symlink_to(tmp_path / "moved")
    assert grid.execute(tmp_path / "linked")


@pytest.mark.skipif(os.name != "posix", reason="Windows has no pipes in folders")
def test_no_file_or_folder_of_results_that_is_a_way_out_is_written_through(tmp_path, collection):
    grid = Experiment((collection,), ("bm25",), ("nDCG@10",))
    results, mine = tmp_path / "results", tmp_path / "mine"
    grid.execute(results)
    mine.mkdir()
    ours = sorted(path for path in results.rglob("*") if not path.name.endswith(".lock"))
    assert {path.name for path in ours} >= {"run.trec", "stage.json", "grid.json"}
    for path in ours:
        for way_out in (
            lambda path: path.symlink_to(mine / "x"),
            lambda path: path.symlink_to(mine),
            os.mkfifo,
        ):
            path.rename(tmp_path / "aside")
            way_out(path)
            with pytest.raises(
                StoreError, match=r"nothing is written through it; remove it|a folder is there"
            ):
                Experiment((collection,), ("bm25",), ("RR",)).execute(results)
            assert list(mine.iterdir()) == []
            path.unlink()
            (tmp_path / "aside").rename(path)
    assert grid.execute(results)


def test_an_experiment_file_that_starts_a_program_says_so(tmp_path, collection, capsys):
    path = tmp_path / "theirs.toml"
    path.write_text(f"datasets = ['{collection}']\nsystems = ['command(\"false\")']\n", encoding="utf-8")
    assert main(["run", str(path), "-o", str(tmp_path / "results")]) == 2
    assert f'note: {path} starts a program: command("false")' in capsys.readouterr().err


def test_a_full_disk_leaves_nothing_half_written(tmp_path, collection, monkeypatch):
    saved = np.save
    calls = []

    def full(path, *arguments, **named):
        calls.append(path)
        if len(calls) == 5:
            raise OSError(28, "No space left on device")
        return saved(path, *arguments, **named)

    grid = Experiment((collection,), ("bm25",), ("nDCG@10",))
    expected = grid.execute(tmp_path / "other")
    monkeypatch.setattr(np, "save", full)
    with pytest.raises(StoreError, match="no space left on the disk"):
        grid.execute(tmp_path / "results")
    assert [p for p in (tmp_path / "results").rglob("*") if p.is_file()] == []
    monkeypatch.undo()
    assert grid.execute(tmp_path / "results") == expected


def test_an_unordered_grid_of_processes_on_one_folder(tmp_path, collection):
    """Three processes on one folder share its cells: nothing is made twice, nothing is corrupted."""
    command = arguments(collection, tmp_path / "both")
    several = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(3)]
    outputs = [p.communicate() for p in several]
    assert [p.returncode for p in several] == [0, 0, 0], outputs
    assert outputs[0][0] == outputs[1][0] == outputs[2][0]
    subprocess.run(arguments(collection, tmp_path / "alone"), check=True, capture_output=True)
    assert contents(tmp_path / "both") == contents(tmp_path / "alone")


def arguments(collection: str, results: Path) -> list[str]:
    systems = [part for system in ("bm25", "bm25(b=0.7)", "rm3") for part in ("-s", system)]
    return [
        sys.executable,
        "-m",
        "weir",
        "run",
        "-d",
        collection,
        *systems,
        "-m",
        "nDCG@10",
        "--json",
        "-o",
        str(results),
    ]


def test_killed_at_any_change_it_continues_and_ends_the_same(tmp_path, collection):
    """Killed again and again, each time later, the folder ends equal to an undisturbed one but for times."""
    undisturbed, disturbed = tmp_path / "undisturbed", tmp_path / "disturbed"
    whole = subprocess.run(arguments(collection, undisturbed), check=True, capture_output=True)
    stamps: dict[Path, int] = {}
    outputs = []
    for done in killed_later_each_time(arguments(collection, disturbed), disturbed):
        outputs.append(done.stdout)
        for path, stamp in stamps.items():
            assert path.stat().st_mtime_ns == stamp, f"{path} was finished and has been written again"
        stamps = finished_files(disturbed)
    assert outputs[-1] == whole.stdout
    assert contents(disturbed) == contents(undisturbed)


@pytest.mark.parametrize("scored", [False, True])
def test_the_lock_of_a_process_killed_behind_its_rankings_goes(tmp_path, collection, scored):
    """Killed between the record of the rankings and letting go of their lock, before the scores or after them."""
    grid = Experiment((collection,), ("bm25",), ("nDCG@10",))
    grid.execute(tmp_path / "results")
    folder = next((tmp_path / "results").rglob("run.trec")).parent
    lock = folder.parent / f".{folder.name}.lock"
    lock.touch()
    for path in [] if scored else folder.glob("scores-*"):
        path.unlink()
    grid.execute(tmp_path / "results")
    assert not lock.exists()


def test_what_a_killed_process_left_half_written_is_removed(tmp_path, collection):
    """Killed while any file or folder is being written: what a dead process left goes, a living one's stays."""
    from weir.files.atomic import _host

    grid = Experiment((collection,), ("bm25",), ("nDCG@10",))
    grid.execute(tmp_path / "whole")
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    collection_folder = tmp_path / "whole" / "brooklet"
    written = [*collection_folder.glob("bm25-*/*"), *(collection_folder / "indexes").iterdir()]
    assert len(written) == 5  # run, its record, scores, their record; an index
    for path in written:
        beside = tmp_path / "results" / path.relative_to(tmp_path / "whole").parent
        left = beside / f".{path.name}.tmp-{_host()}-{dead.pid}-00"
        left.mkdir(parents=True)
        (left / "half").write_text("half")
    living = left.with_name(left.name.replace(f"-{dead.pid}-", f"-{os.getpid()}-"))
    living.mkdir()
    grid.execute(tmp_path / "results")
    living.rmdir()
    assert contents(tmp_path / "results") == contents(tmp_path / "whole")


def test_where_queries_are_documents_k_others_remain(tmp_path):
    """ArguAna's case: the query's own document is dropped before the cut, so ten others are there."""
    rows = Experiment(("brook-arguments",), ("bm25",), ("nDCG@10",), k=10).execute(tmp_path)
    [cell] = finished_cells(tmp_path)
    run = cell.run.read_text(encoding="utf-8")
    answers: dict[str, list[str]] = {}
    for line in run.rstrip("\n").split("\n"):
        query, _, document = line.split(" ")[:3]
        answers.setdefault(query, []).append(document)
    assert len(answers) == rows[0].queries == rows[0].answered
    assert all(len(found) == 10 and query not in found for query, found in answers.items())


def test_what_a_collection_opened_is_let_go_before_the_next(tmp_path):
    collections = tuple(str(write_collection(tmp_path / name)) for name in ("one", "two", "three"))
    held: dict[str, int] = {}

    def watch(stage: str, done: int, total: int) -> None:
        """Count the searchers in memory when a collection is first heard of."""
        if stage.split(maxsplit=1)[0] not in held:
            gc.collect()
            held[stage.split(maxsplit=1)[0]] = sum(isinstance(one, BM25Searcher) for one in gc.get_objects())

    gc.collect()
    before = sum(isinstance(one, BM25Searcher) for one in gc.get_objects())
    Experiment(collections, ("bm25",), ("nDCG@10",)).execute(tmp_path / "results", watch)
    assert held == {"one": before, "two": before, "three": before}


def test_a_group_is_the_unweighted_mean_of_its_members(tmp_path, capsys):
    from weir.cli import main

    assert (
        main(["run", "-d", "brook", "-s", "bm25", "-m", "RR", "-k", "5", "-o", str(tmp_path), "--json", "-q"])
        == 0
    )
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    members, whole = rows[:-1], rows[-1]
    assert len(members) == 9
    assert whole["dataset"] == "brook"
    assert whole["mean"] == pytest.approx(np.mean([r["mean"] for r in members]), abs=1e-15)
    assert whole["low"] < whole["mean"] < whole["high"]
    assert (whole["queries"], whole["answered"]) == tuple(
        sum(r[k] for r in members) for k in ("queries", "answered")
    )
    assert [r.to_dict() for r in folder_rows(tmp_path)][-1] == whole


def test_a_group_never_mixes_depths(tmp_path):
    """A folder that holds two depths of a system: the group has a row of each, and of none that mixes them."""
    grid = ("brook",), ("bm25",), ("R@100",)
    shallow = Experiment(*grid, k=1).execute(tmp_path)[-1]
    deep = Experiment(*grid, k=100).execute(tmp_path)[-1]
    assert shallow.dataset == deep.dataset == "brook"
    assert shallow.mean < deep.mean
    assert Experiment(*grid, k=1).execute(tmp_path)[-1] == shallow
    means = {r.system: r.mean for r in folder_rows(tmp_path) if r.dataset == "brook"}
    assert means == {"bm25 #k=1": shallow.mean, "bm25": deep.mean}
    Experiment(("brook-news",), ("bm25",), ("R@100",), k=200).execute(tmp_path)
    systems = {r.system for r in folder_rows(tmp_path) if r.dataset == "brook"}
    assert systems == {"bm25 #k=1"}  # one member is deeper than the others of bm25
    assert "bm25 answered with different k: 100 on brook-medical, 200 on brook-news" in mixed_provenance(
        finished_cells(tmp_path)
    )
