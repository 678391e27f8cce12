"""Single faults anywhere in a results folder: the same grid ends in the same numbers, whatever was damaged."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from contextlib import suppress
from functools import reduce
from pathlib import Path

import numpy as np
import pytest
from tests.unit.brooklet import write_collection

from weir.cli.main import main
from weir.experiment.experiment import Experiment
from weir.experiment.results import finished_cells, rows_with_groups
from weir.experiment.stages import Stage
from weir.experiment.verify import verified

SYSTEMS = ("bm25", "rrf(bm25, rm3)", "bm25 >> score(rm3)")
FAULTS = 60
pytestmark = [
    pytest.mark.filterwarnings("ignore::weir.errors.RankingWarning"),
    pytest.mark.filterwarnings("ignore::weir.errors.LossWarning"),  # records that are left out
]


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


ODD = (
    None,
    "",
    "x",
    -1,
    1.5,
    10**30,
    True,
    float("nan"),
    [],
    {},
    [1],
    {"a": 1},
    "/dev/zero",
    "hf:a/b",
    "nDCG@10",
    "\u202e",
)


def places(value: object, at: tuple[object, ...] = ()) -> Iterator[tuple[object, ...]]:
    """Where something stands in a JSON value, at any depth."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield (*at, key)
        yield from places(one, (*at, key))


@pytest.mark.parametrize("seed", range(20))
def test_a_record_that_somebody_wrote_with_its_checksums_is_no_mistake_in_weir(whole, tmp_path, seed, capsys):
    """Any entry of any record another value, or gone: whoever reads the folder says one line, or is right."""
    rng = np.random.default_rng(seed)
    shutil.copytree(whole / "results", tmp_path / "results")
    path = rng.choice(sorted([*tmp_path.rglob("stage.json"), *tmp_path.rglob("scores-*.json")]))
    said = json.loads(path.read_text())
    *way, last = sorted(places({k: v for k, v in said.items() if k not in ("check", "format")}), key=str)[
        rng.integers(sum(1 for _ in places(said)) - 2)
    ]
    inside = reduce(lambda held, key: held[key], way, said)
    if isinstance(inside, dict) and rng.random() < 0.2:
        del inside[last]
    else:
        inside[last] = ODD[rng.integers(len(ODD))]
    with suppress(KeyError, TypeError, ValueError, AttributeError):
        said["key"] = Stage(said["stage"], said["name"], said["declared"]).key
    del said["check"]
    said["check"] = hashlib.blake2b(
        json.dumps(said, sort_keys=True, ensure_ascii=False).encode("utf-8", "surrogatepass"), digest_size=16
    ).hexdigest()
    path.write_text(json.dumps(said))
    folder, sound = str(tmp_path / "results"), str(whole / "results")
    for command in (["verify", "-q", folder], ["results", folder], ["results", "--provenance", folder],
                    ["compare", folder], ["gate", "-s", "bm25", folder, sound], ["study", "efficiency", folder]):  # fmt: skip
        assert main(command) in (0, 1, 2, 3)
        assert "bug in Weir" not in capsys.readouterr().err, (command, path.name, way, last)
