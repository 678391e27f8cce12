from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.unit.brooklet import write_collection
from weir.cli.main import main
from weir.experiment import Experiment
from weir.experiment.verify import verified
from weir.stages.stage import Record, read_record, write_record


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A collection in `data` and results of three systems, one made of the others, in `results`."""
    place = tmp_path_factory.mktemp("verify")
    collection = write_collection(place / "data")
    systems = ("bm25", "rm3", "rrf(bm25, rm3)")
    Experiment((str(collection),), systems, ("nDCG@10", "AP")).execute(place / "results")
    return place


@pytest.fixture
def place(made, tmp_path, monkeypatch) -> Path:
    """A copy to damage; the collection stays where it was measured, and is put back afterwards."""
    shutil.copytree(made / "results", tmp_path / "results")
    return tmp_path


def cell(place: Path, name: str = "bm25") -> Path:
    return next(p for p in (place / "results" / "data").iterdir() if p.name.rpartition("-")[0] == name)


def scores_record(place: Path) -> Path:
    return next(cell(place).glob("scores-*.json"))


def rewritten(path: Path, **changes: object) -> None:
    """A record that was edited by somebody who also made its checksum new."""
    record = read_record(path)
    said = {name: getattr(record, name) for name in Record.__dataclass_fields__}
    write_record(path, Record(**(said | changes)))


def one_byte(place: Path) -> str:
    path = cell(place) / "run.trec"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))
    return "run.trec: changed since it was written"


def score_edited(place: Path) -> str:
    path = next(cell(place).glob("scores-*.jsonl"))
    path.write_text(path.read_text().replace('"value": 1.0', '"value": 0.9', 1))
    return "changed since it was written"


def score_edited_with_its_checksum(place: Path) -> str:
    from weir.io.storage.checksums import Checksum

    path = next(cell(place).glob("scores-*.jsonl"))
    path.write_text(path.read_text().replace('"value": 1.0', '"value": 0.9', 1))
    rewritten(path.with_suffix(".json"), files={path.name: Checksum.of(path)})
    return "of its queries is not what the rankings score"


def mean_edited_with_its_checksum(place: Path) -> str:
    path = scores_record(place)
    rows = [row | {"mean": 0.99} for row in read_record(path).facts["rows"]]
    rewritten(path, facts={**read_record(path).facts, "rows": rows})
    return "the row of nDCG@10 is not what its scores give"


def run_edited_with_its_checksum(place: Path) -> str:
    from weir.io.storage.checksums import Checksum

    path = cell(place) / "run.trec"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[1:]))
    rewritten(path.with_name("stage.json"), files={path.name: Checksum.of(path)})
    return "is not what the rankings score"


def record_edited(place: Path) -> str:
    path = scores_record(place)
    path.write_text(path.read_text().replace('"mean": 0.', '"mean": 0.1', 1))
    return "changed since it was written"


def setting_edited(place: Path) -> str:
    path = cell(place) / "stage.json"
    declared = json.loads(json.dumps(read_record(path).declared).replace('"k1": 0.9', '"k1": 1.9'))
    value = json.loads(path.read_text())
    path.write_text(json.dumps(value | {"declared": declared}))
    return "stage.json: changed since it was written"


def index_truncated(place: Path) -> str:
    path = max((place / "results" / "data" / "indexes").rglob("*.npy"), key=lambda p: p.stat().st_size)
    path.write_bytes(path.read_bytes()[:-1])
    return f"{path.name}: {path.stat().st_size} bytes, {path.stat().st_size + 1} were written"


def file_gone(place: Path) -> str:
    (cell(place) / "run.trec").unlink()
    return "run.trec: No such file"


@pytest.mark.parametrize(
    "damage",
    [
        one_byte,
        score_edited,
        score_edited_with_its_checksum,
        mean_edited_with_its_checksum,
        run_edited_with_its_checksum,
        record_edited,
        setting_edited,
        index_truncated,
        file_gone,
    ],
)
def test_what_does_not_match_is_named_and_nothing_else(place, damage, capsys):
    said = damage(place)
    bad = [one for one in verified(place / "results") if not one.sound]
    assert len(bad) == 1
    assert said in "; ".join(bad[0].problems)
    assert main(["verify", str(place / "results"), "-q"]) == 1
    assert sum(said in line for line in capsys.readouterr().out.splitlines()) == 1


def test_other_judgments_and_other_documents_are_noticed(made, place):
    """The collection is opened where it was measured: what lies there now is compared."""
    for path, said in (
        (made / "data" / "qrels" / "test.tsv", "judgments"),
        (made / "data" / "corpus.jsonl", "documents"),
    ):
        kept = path.read_text()
        try:
            path.write_text(kept.replace("\t2\n", "\t1\n").replace("Knead", "Bake"))
            found = [one for one in verified(place / "results") if one.kind == "cell"]
            assert all(said in one.problems[0] for one in found), said
        finally:
            path.write_text(kept)


def test_an_untouched_folder_is_sound(made, capsys):
    found = verified(made / "results")
    assert sorted(one.kind for one in found) == ["cell"] * 3 + ["index"] * 2
    assert all(one.sound and not one.unchecked for one in found)
    assert main(["verify", str(made / "results"), "-q"]) == 0
    assert capsys.readouterr().out.count(": sound\n") == 3


def test_a_collection_that_is_gone_is_said_and_no_fault(made, place):
    (made / "data").rename(made / "elsewhere")
    try:
        cells = [one for one in verified(place / "results") if one.kind == "cell"]
    finally:
        (made / "elsewhere").rename(made / "data")
    assert all(one.sound and "not scored again" in one.unchecked[0] for one in cells)


def test_what_a_kill_left_unfinished_is_said(place):
    (cell(place) / "stage.json").unlink()
    (one,) = [v for v in verified(place / "results") if not v.sound]
    assert one.problems == ("stage.json is missing: it was not finished",)


def test_damage_is_mended_by_the_same_command(made, place, capsys):
    command = ["run", "-d", str(made / "data"), "-s", "bm25", "-s", "rm3", "-s", "rrf(bm25, rm3)", "-q"]
    command += ["-m", "nDCG@10", "-m", "AP", "-m", "R@5", "-o", str(place / "results"), "--json"]
    one_byte(place)
    score_edited(place)
    index_truncated(place)
    assert main(command) == 0
    assert all(one.sound for one in verified(place / "results"))
    again = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    Experiment((str(made / "data"),), ("bm25", "rm3", "rrf(bm25, rm3)"), ("nDCG@10", "AP", "R@5")).execute(
        place / "new"
    )
    assert main(["results", str(place / "new"), "--json"]) == 0
    fresh = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert sorted(map(str, again)) == sorted(map(str, fresh))


def test_results_of_another_version_are_refused_in_one_line(tmp_path, capsys):
    (tmp_path / "scifact" / "bm25-0123456789").mkdir(parents=True)
    (tmp_path / "scifact" / "bm25-0123456789" / "manifest.json").write_text('{"format": 1}')
    assert main(["results", str(tmp_path)]) == 2
    assert "written by Weir 0.1" in capsys.readouterr().err
