"""Single faults anywhere in a results folder: the same grid ends in the same numbers, whatever was damaged."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from tests.unit.brooklet import write_collection

from weir.experiment import Experiment
from weir.experiment.finished import finished_cells
from weir.experiment.results import rows_with_groups
from weir.experiment.verify import verified

SYSTEMS = ("bm25", "rrf(bm25, rm3)", "bm25 >> score(rm3)")
FAULTS = 60
pytestmark = pytest.mark.filterwarnings("ignore::weir.errors.RankingWarning")


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """A collection in `brooklet`, finished results in `results` and, with one more measure, in `more`."""
    place = tmp_path_factory.mktemp("faults")
    data = str(write_collection(place / "brooklet"))
    for name, measures in (("results", ("nDCG@10",)), ("more", ("nDCG@10", "AP"))):
        Experiment((data,), SYSTEMS, measures).execute(place / name)
    return place


def flipped(rng: np.random.Generator, path: Path, others: list[Path]) -> None:
    data = bytearray(path.read_bytes())
    if data:
        data[rng.integers(len(data))] ^= 1 << int(rng.integers(8))
    path.write_bytes(bytes(data))


def zeroed(rng: np.random.Generator, path: Path, others: list[Path]) -> None:
    data = bytearray(path.read_bytes())
    start = int(rng.integers(len(data) + 1))
    stop = min(start + int(rng.integers(1, 512)), len(data))
    data[start:stop] = bytes(stop - start)
    path.write_bytes(bytes(data))


def shortened(rng: np.random.Generator, path: Path, others: list[Path]) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: int(rng.integers(len(data) + 1))])


def deleted(rng: np.random.Generator, path: Path, others: list[Path]) -> None:
    path.unlink()


def exchanged(rng: np.random.Generator, path: Path, others: list[Path]) -> None:
    """With a file of that kind of another stage."""
    alike = [p for p in others if p.suffix == path.suffix and p != path]
    other = alike[int(rng.integers(len(alike)))] if alike else path
    mine, theirs = path.read_bytes(), other.read_bytes()
    path.write_bytes(theirs)
    other.write_bytes(mine)


KINDS = (flipped, zeroed, shortened, deleted, exchanged)


def values_of(results: Path) -> dict[tuple[str, str], list[float]]:
    """The values of every query, by system and measure."""
    scores = {cell.label: cell.values() for cell in finished_cells(results)}
    return {(name, m): one.of(m).tolist() for name, one in scores.items() for m in one.measures}


@pytest.mark.parametrize("part", range(6))
def test_a_single_fault_moves_no_number(whole, tmp_path, part):
    """Also where what was made from the damaged stage is gone, so that the stage decides."""
    data, results = str(whole / "brooklet"), tmp_path / "results"
    expected = rows_with_groups(Experiment((data,), SYSTEMS, ("nDCG@10", "AP")).finished(whole / "more"))
    for number in range(part, FAULTS, 6):
        rng = np.random.default_rng(number)
        shutil.copytree(whole / "results", results)
        files = sorted(p for p in results.rglob("*") if p.is_file())
        path, fault = files[int(rng.integers(len(files)))], KINDS[int(rng.integers(len(KINDS)))]
        decides = bool(rng.integers(2))
        said = f"{number}: {fault.__name__} {path.relative_to(results)}, decides {decides}"
        fault(rng, path, files)
        if decides:
            for record in results.glob("*/*/stage.json"):
                record.unlink()
        assert Experiment((data,), SYSTEMS, ("nDCG@10", "AP")).execute(results) == expected, said
        unsound = [one.kind for one in verified(results) if not one.sound]
        assert not unsound or (not decides and "cell" not in unsound), said
        assert values_of(results) == values_of(whole / "more"), said
        shutil.rmtree(results)
