"""A results folder says which of the results that were asked for it lacks, whoever reads it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("numba", reason="needs the `run` extra (numba)")

from weir.cli.main import main
from weir.experiment.results import GridOrder, finished_cells, keep_order, missing_results

SYSTEMS = ("bm25", "rm3", "rrf(bm25, rm3)")
DATASETS = ("brook-news", "brook-facts")


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """Two grids in one folder: not every system was asked for on every collection."""
    out = tmp_path_factory.mktemp("made") / "results"
    for dataset, systems in zip(DATASETS, (SYSTEMS, SYSTEMS[:2]), strict=True):
        asked = [word for system in systems for word in ("-s", system)]
        assert main(["run", "-d", dataset, *asked, "-m", "nDCG@10", "-q", "-o", str(out)]) == 0
    return out


def thinned(made: Path, to: Path, cells) -> Path:
    shutil.copytree(made, to)
    for cell in cells:
        shutil.rmtree(to / cell.folder.relative_to(made))
    return to


def test_a_folder_with_all_that_was_asked_for_lacks_nothing(made):
    assert missing_results(made) == []


@settings(max_examples=20)
@given(st.sets(st.integers(0, 4), min_size=1, max_size=4))
def test_what_is_taken_away_is_named_and_counted(made, tmp_path_factory, numbers):
    """And of a choice of collections or systems only what belongs to it."""
    cells = finished_cells(made)
    gone = [cells[number] for number in numbers]
    place = thinned(made, tmp_path_factory.mktemp("thinned") / "results", gone)
    [said] = missing_results(place)
    assert said.startswith(f"{len(gone)} of 5 results asked for ")
    for dataset in DATASETS:
        of = [cell for cell in gone if cell.dataset == dataset]
        assert len(missing_results(place, [dataset])) == bool(of)
    for cell in cells:
        said = missing_results(place, [cell.dataset], [cell.system])
        assert bool(said) == any(
            one.system.startswith(cell.system) for one in gone if one.dataset == cell.dataset
        )
    if len(gone) <= 4:
        [said] = missing_results(place)
        assert all(f"{cell.system} on {cell.dataset}:test" in said for cell in gone)


@pytest.mark.parametrize(
    "command",
    [
        ["results", "FOLDER"],
        ["compare", "FOLDER"],
        ["verify", "FOLDER"],
        ["study", "efficiency", "FOLDER"],
        ["submit", "pack", "FOLDER", "-o", "PACK"],
        ["report", "FOLDER", "-o", "PAGE"],
    ],
    ids=lambda command: command[0],
)
def test_every_command_that_reads_it_says_so(command, made, tmp_path, capsys):
    [gone] = [c for c in finished_cells(made) if (c.dataset, c.system) == ("brook-news", "rm3")]
    place = thinned(made, tmp_path / "results", [gone])
    names = {"FOLDER": place, "PACK": tmp_path / "pack.zip", "PAGE": tmp_path / "page.html"}
    assert main([str(names.get(word, word)) for word in command]) == 0
    said = (
        "1 of 5 results asked for is missing: rm3 on brook-news:test; the same weir run makes what is missing"
    )
    told = capsys.readouterr()
    assert said in " ".join((told.out + told.err).split())
    if command[0] == "report":
        assert said in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_record_of_before_asks_for_nothing(tmp_path):
    keep_order(tmp_path, ["a"], ["bm25"])
    assert GridOrder.read(tmp_path).asked == {}
    keep_order(tmp_path, asked=[("a:test", "bm25"), ("a:dev", "bm25"), ("a:test", "rm3")])
    keep_order(tmp_path, asked=[("a:test", "bm25")])
    assert GridOrder.read(tmp_path).asked == {"a:test": ("bm25", "rm3"), "a:dev": ("bm25",)}
    assert json.loads((tmp_path / "grid.json").read_text())["datasets"] == ["a"]


def test_a_chosen_system_is_that_one_by_its_name_or_label(made, tmp_path):
    """And not every system whose name it begins."""
    place = thinned(made, tmp_path / "results", [])
    keep_order(
        place, labels={"rm3": "feedback"}, asked=[("brook-news:test", "bm25(k1=1.2)"), ("c:test", "rm3")]
    )
    assert missing_results(place, [], ["bm25"]) == []
    for text in ("rm3", "feedback"):
        [said] = missing_results(place, [], [text])
        assert said.startswith("1 of 3 results asked for is missing: feedback on c:test; ")
    [said] = missing_results(place, [], ["bm25(k1"])
    assert "bm25(k1=1.2) on brook-news:test" in said


def test_a_damaged_order_is_named_by_whoever_reads_or_verifies_it(made, tmp_path, capsys):
    place = thinned(made, tmp_path / "results", [])
    damaged = (place / "grid.json").read_text().replace("rm3", "rm4", 1)
    (place / "grid.json").write_text(damaged)
    for command, code in (("results", 0), ("verify", 1)):
        assert main([command, str(place)]) == code
        told = capsys.readouterr()
        assert f"{place / 'grid.json'}: changed since it was written" in told.out + told.err
    keep_order(place, DATASETS)
    assert main(["verify", str(place)]) == 0
