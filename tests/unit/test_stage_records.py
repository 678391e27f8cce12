"""Records of stages are written once; what is damaged or edited is made again, and never believed."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

import weir
from tests.unit.brooklet import write_collection
from weir.api.results_folder import results as folder_rows
from weir.cli import main
from weir.core.corpus import Corpus
from weir.errors import StoreError
from weir.experiment.experiment import Experiment
from weir.experiment.results import finished_cells
from weir.experiment.stages import PACKAGES, RECORD, read_record
from weir.experiment.verify import verified
from weir.systems import BM25, SYSTEMS
from weir.systems.protocol import IN_MEMORY, Context

pytestmark = pytest.mark.filterwarnings("ignore::weir.errors.RankingWarning")


@pytest.fixture
def collection(tmp_path) -> str:
    return str(write_collection(tmp_path / "brooklet"))


def test_a_record_is_never_rewritten(tmp_path, collection, monkeypatch):
    """Not for another measure, another depth, another number of threads, nor by reading the results."""
    results, grid = tmp_path / "results", ("bm25", "bm25 >> score(rm3)")
    before: dict[Path, bytes] = {}
    for more in ((("nDCG@10",), 1000), (("AP", "nDCG@10"), 1000), (("RR",), 1000), (("AP",), 3)):
        Experiment((collection,), grid, *more).execute(results)
        after = {p: p.read_bytes() for p in results.rglob("*") if p.is_file()}
        assert before.items() <= after.items()
        assert len(after) > len(before)
        before = after
    folder_rows(results)
    assert main(["results", str(results)]) == 0
    assert before == {p: p.read_bytes() for p in results.rglob("*") if p.is_file()}


def test_a_record_that_an_earlier_version_wrote_is_sound(tmp_path):
    """Key and checksum are those that 0.2.0 gives it; with others it would be damaged, and made again."""
    record = {"format": 2, "stage": "run", "name": "bm25", "key": "5b1499a9c9",
              "declared": {"k": 10, "system": {"system": "bm25", "b": 0.4}}, "inputs": [["index", "indexes/bm25-0"]],
              "files": {}, "made": {"when": "2026-11-01"}, "cost": {"seconds": 1.5},
              "facts": {"queries": 2, "name": "é"}, "check": "6857373f97fa194bccf14322987929d2"}  # fmt: skip
    (tmp_path / RECORD).write_text(json.dumps(record))
    assert read_record(tmp_path / RECORD).to_json() == record
    (tmp_path / RECORD).write_text(json.dumps(record | {"cost": {"seconds": 1.4}}))
    with pytest.raises(StoreError):
        read_record(tmp_path / RECORD)


def test_measures_stand_in_the_order_in_which_they_were_first_scored(tmp_path, collection):
    for measure in ("nDCG@10", "AP", "RR", "AP", "Judged@10"):
        Experiment((collection,), ("bm25",), (measure,)).execute(tmp_path / "results")
    assert [row.measure for row in folder_rows(tmp_path / "results")] == ["nDCG@10", "AP", "RR", "Judged@10"]


RUN_DAMAGE = {
    "emptied": lambda text: "",
    "cut at a line end": lambda text: "".join(text.splitlines(keepends=True)[:3]),
    "cut within a line": lambda text: text[: len(text) // 2],
    "a score altered": lambda text: text.replace(" 1 0.", " 1 9.", 1),
    "two documents swapped": lambda text: (
        text.replace(" d1 ", " dX ").replace(" d4 ", " d1 ").replace(" dX ", " d4 ")
    ),
}


@pytest.mark.parametrize("how", RUN_DAMAGE)
def test_a_damaged_run_is_searched_again_before_another_measure_is_scored(tmp_path, collection, how, capsys):
    """S1: what was stored keeps its values, byte for byte, and the new measure scores the rankings there were."""
    results, command = tmp_path / "results", ["run", "-d", collection, "-s", "bm25", "-q", "--json", "-o"]
    assert main([*command, str(results), "-m", "nDCG@10"]) == 0
    [cell] = finished_cells(results)
    whole, scored = cell.run.read_text(), {p: p.read_bytes() for p in cell.folder.glob("scores-*")}
    cell.run.write_text(RUN_DAMAGE[how](whole))
    assert cell.run.read_text() != whole
    assert main([*command, str(results), "-m", "nDCG@10", "-m", "AP"]) == 0
    assert cell.run.read_text() == whole
    assert scored.items() <= {p: p.read_bytes() for p in cell.folder.glob("scores-*")}.items()
    capsys.readouterr()
    assert main([*command, str(results), "-m", "nDCG@10", "-m", "AP"]) == 0
    found = capsys.readouterr().out
    assert main([*command, str(tmp_path / "undisturbed"), "-m", "nDCG@10", "-m", "AP"]) == 0
    assert found == capsys.readouterr().out


@pytest.mark.filterwarnings("ignore:left out:weir.errors.LossWarning")
@pytest.mark.parametrize("name", ["scores-*.jsonl", "scores-*.json", "stage.json"])
def test_an_edited_value_is_never_printed(tmp_path, collection, capsys, name):
    """S7: neither a score, nor a mean, nor a setting, by no command; the same weir run makes it again."""
    results = tmp_path / "results"
    command = [
        "run",
        "-d",
        collection,
        "-s",
        "bm25",
        "-s",
        "rm3",
        "-m",
        "AP",
        "-q",
        "--json",
        "-o",
        str(results),
    ]
    assert main(command) == 0
    rows, cell = capsys.readouterr().out, finished_cells(results)[0]
    [path] = cell.folder.glob(name)
    edited = (
        path.read_text()
        .replace(" 1.0", " 0.9876")
        .replace('"mean": 0.', '"mean": 0.9876')
        .replace("lucene", "0.9876")
    )
    assert "0.9876" in edited
    path.write_text(edited)
    for asked in (
        ["results", results],
        ["compare", results],
        ["study", "efficiency", results, "-m", "AP"],
        ["results", results, "--json"],
    ):
        assert main(list(map(str, asked))) in (0, 2)
        said = capsys.readouterr()
        assert "0.9876" not in said.out + said.err
    assert main(command) == 0
    assert capsys.readouterr().out == rows
    assert "0.9876" not in path.read_text()
    assert not [one for one in verified(results) if not one.sound]


def test_a_system_need_not_expect_the_folder_of_a_damaged_index(tmp_path, collection, monkeypatch):
    """As CONTRIBUTING.md's: it makes its folder, which must not be there."""

    @dataclass(frozen=True)
    class Own(BM25):
        def index(self, corpus: Corpus, context: Context = IN_MEMORY):
            if context.folder is not None:
                context.folder.mkdir(parents=True)
                (context.folder / "index").write_text(corpus.fingerprint)
            return BM25().index(corpus)

        def open(self, corpus: Corpus, context: Context):
            return BM25().index(corpus)

    monkeypatch.setitem(SYSTEMS._known, "own", Own)
    grid = Experiment((collection,), ("own",))
    rows = grid.execute(tmp_path / "results")
    [cell] = finished_cells(tmp_path / "results")
    next((tmp_path / "results").rglob("indexes/*/index")).write_text("damaged")
    (cell.folder / "stage.json").unlink()
    [(path, _)] = cell.scored
    path.unlink()
    assert grid.execute(tmp_path / "results") == rows


class Whole:
    """Ranks all documents for each query, in one order."""

    def search(self, queries, k):
        return {query: ["d1", "d2"][:k] for query in queries}


def test_a_record_names_the_packages_that_took_part_and_the_classes_of_objects(
    tmp_path, collection, monkeypatch
):
    """Not those that another system of the process loaded; of an object's distribution its requirements too."""
    monkeypatch.setitem(sys.modules, "torch", ModuleType("torch"))
    monkeypatch.setattr(Whole, "__module__", "click.testing")  # as if that were of the distribution click
    own = weir.system(Whole(), name="own", version="1")
    other = weir.system(lambda queries, k: {}, name="other", version="1")
    Experiment((collection,), ("bm25", own, weir.rrf(own, weir.BM25()), other)).execute(tmp_path / "results")
    made = {cell.system: cell.ranked.made for cell in finished_cells(tmp_path / "results")}
    packages = {system: set(one["packages"]) for system, one in made.items()}
    assert {name for name, of in packages.items() if "torch" in of} == {"other"}  # it is of no distribution
    assert {name for name, of in packages.items() if "click" in of} == {"own", "rrf(own, bm25)"}
    assert made["own"]["objects"] == {"own": {"class": "click.testing.Whole"}}
    assert "objects" not in made["bm25"]
    for cell in finished_cells(tmp_path / "results"):
        assert "torch" not in cell.scored[-1][1].made["packages"]


def test_only_packages_that_weir_imports_are_recorded_whatever_they_load():
    """Numba loads SciPy where it compiles: of two equal runs one record named it."""
    sources = "".join(path.read_text() for path in Path(weir.__file__).parent.rglob("*.py"))
    imported = set(re.findall(r'(?:^ *(?:import|from) |require\(")(\w+)', sources, re.MULTILINE))
    assert set(PACKAGES) <= imported
