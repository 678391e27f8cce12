from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

import weir
from tests.unit.brooklet import write_collection
from tests.unit.hub_server import Hub, served
from weir.cli.main import main
from weir.experiment.experiment import Experiment
from weir.experiment.stages import Record, read_record, write_record
from weir.experiment.verify import verified
from weir.measures.library import persistence


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
    from weir.files.integrity import Checksum

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
    from weir.files.integrity import Checksum

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


def mean_edited_by_another_algorithm(place: Path) -> str:
    """Scores of another algorithm are not computed again; their mean is still that of the values beside it."""
    path = scores_record(place)
    record = read_record(path)
    declared = {**record.declared, "measures": dict.fromkeys(record.declared["measures"], 99)}
    rows = [row | {"mean": 0.99} for row in record.facts["rows"]]
    renamed(path, declared=declared, facts={**record.facts, "rows": rows})
    return "the row of nDCG@10 is not what its scores give"


def row_invented(place: Path) -> str:
    path = scores_record(place)
    facts = read_record(path).facts
    rewritten(path, facts={**facts, "rows": [*facts["rows"], facts["rows"][0] | {"measure": "RR@10"}]})
    return "RR@10 was not declared"


def row_and_measure_invented(place: Path) -> str:
    path = scores_record(place)
    record = read_record(path)
    rows = [*record.facts["rows"], record.facts["rows"][0] | {"measure": "RR@10"}]
    declared = {**record.declared, "measures": {**record.declared["measures"], "RR@10": 1}}
    renamed(path, declared=declared, facts={**record.facts, "rows": rows})
    return "the row of RR@10 has no values"


def row_twice(place: Path) -> str:
    path = scores_record(place)
    facts = read_record(path).facts
    rewritten(path, facts={**facts, "rows": [*facts["rows"], facts["rows"][0] | {"mean": 0.9}]})
    return "nDCG@10 has 2 rows"


def scores_without_files(place: Path) -> str:
    rewritten(scores_record(place), files={})
    return f"{scores_record(place).name} speaks of no file"


def rankings_without_files(place: Path) -> str:
    rewritten(cell(place) / "stage.json", files={})
    return "stage.json speaks of no file; expected run.trec or run.json"


def called_rm3(place: Path) -> str:
    """A whole cell under another name: records, rows and folder."""
    return called(place, "rm3", "it is called rm3, and was declared as bm25")


def called_by_another_setting(place: Path) -> str:
    said = "it is called bm25(k1=1.9), with k1 = 1.9, and was made with 0.9"
    return called(place, "bm25(k1=1.9)", said)


def called_a_pipeline(place: Path) -> str:
    name = "bm25 >> score(rm3)"
    return called(place, name, f"it is called {name}, and was declared as bm25")


def called(place: Path, name: str, said: str) -> str:
    folder, path = cell(place), scores_record(place)
    facts = read_record(path).facts
    rewritten(path, name=name, facts={**facts, "rows": [row | {"system": name} for row in facts["rows"]]})
    rewritten(folder / "stage.json", name=name)
    folder.rename(folder.with_name(read_record(folder / "stage.json").stage.folder_name))
    return said


def another_collection_s_name(place: Path) -> str:
    path = scores_record(place)
    facts = read_record(path).facts
    rewritten(path, facts={**facts, "dataset": "scifact"})
    return "is of the collection scifact, and stands among those of data"


def row_of_another_system(place: Path) -> str:
    path = scores_record(place)
    facts = read_record(path).facts
    rewritten(path, facts={**facts, "rows": [row | {"system": "rm3"} for row in facts["rows"]]})
    return "calls the system rm3, which is bm25"


def file_nobody_speaks_of(place: Path) -> str:
    (cell(place) / "run.json").write_text("{}")
    return "run.json: no record speaks of it"


def file_elsewhere(place: Path) -> str:
    """A record that leads out of its folder, to a file that is sound there."""
    from weir.files.integrity import Checksum

    (place / "mine.txt").write_text("of somebody else")
    path = max((place / "results" / "data" / "indexes").glob("bm25-*/stage.json"))
    name = "../../../../mine.txt"
    rewritten(path, files={**read_record(path).files, name: Checksum.of(place / "mine.txt")})
    return f"{name}: it leads out of the folder of its record"


def link_elsewhere(place: Path) -> str:
    run = cell(place) / "run.trec"
    run.rename(place / "run.trec")
    run.symlink_to(place / "run.trec")
    return "run.trec: it leads out of the folder of its record"


def device(place: Path) -> str:
    run = cell(place) / "run.trec"
    run.unlink()
    os.mkfifo(run)
    return "run.trec: not a regular file"


def record_is_a_pipe(place: Path) -> str:
    path = cell(place) / "stage.json"
    path.unlink()
    os.mkfifo(path)
    return "stage.json: found a device or a pipe"


def renamed(path: Path, **changes: object) -> None:
    """A record of scores that was edited so that its key is another, under the name of that key."""
    rewritten(path, **changes)
    key = read_record(path).stage.key
    old, new = path.with_suffix(".jsonl"), path.with_name(f"scores-{key}.jsonl")
    old.rename(new)
    rewritten(path, files={new.name: read_record(path).files[old.name]})
    path.rename(new.with_suffix(".json"))


def index_truncated(place: Path) -> str:
    path = max((place / "results" / "data" / "indexes").rglob("*.npy"), key=lambda p: p.stat().st_size)
    path.write_bytes(path.read_bytes()[:-1])
    return f"{path.name}: {path.stat().st_size} bytes, {path.stat().st_size + 1} were written"


def file_gone(place: Path) -> str:
    (cell(place) / "run.trec").unlink()
    return "run.trec: No such file"


DAMAGES = [
    one_byte,
    score_edited,
    score_edited_with_its_checksum,
    mean_edited_with_its_checksum,
    mean_edited_by_another_algorithm,
    row_invented,
    row_and_measure_invented,
    row_twice,
    run_edited_with_its_checksum,
    record_edited,
    setting_edited,
    index_truncated,
    file_gone,
    scores_without_files,
    rankings_without_files,
    called_rm3,
    called_by_another_setting,
    called_a_pipeline,
    another_collection_s_name,
    row_of_another_system,
    file_nobody_speaks_of,
    file_elsewhere,
    link_elsewhere,
    device,
    record_is_a_pipe,
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_does_not_match_is_named_and_nothing_else(place, damage, capsys):
    said = damage(place)
    bad = [one for one in verified(place / "results") if not one.sound]
    assert len(bad) == 1
    assert said in "; ".join(bad[0].problems)
    assert main(["verify", str(place / "results"), "-q"]) == 1
    assert sum(said in line for line in capsys.readouterr().out.splitlines()) == 1


def test_other_judgments_documents_and_queries_are_noticed(made, place):
    """The collection is opened where it was measured: what lies there now is compared, whatever its times say."""
    for path, said in (
        (made / "data" / "qrels" / "test.tsv", "judgments"),
        (made / "data" / "corpus.jsonl", "documents"),
        (made / "data" / "queries.jsonl", "queries"),
    ):
        kept, stat = path.read_text(), path.stat()
        try:
            path.write_text(
                kept.replace("\t2\n", "\t1\n").replace("Knead", "Baked").replace("rising", "rotten")
            )
            os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
            assert path.stat().st_size == stat.st_size
            found = [one for one in verified(place / "results") if one.kind == "cell"]
            assert all(said in one.problems[0] for one in found), said
        finally:
            path.write_text(kept)
            os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def test_an_untouched_folder_is_sound(made, capsys):
    found = verified(made / "results")
    assert sorted(one.kind for one in found) == ["cell"] * 3 + ["index"] * 2
    assert all(one.sound and not one.unchecked for one in found)
    assert main(["verify", str(made / "results"), "-q"]) == 0
    assert capsys.readouterr().out.count(": sound\n") == 3


@pytest.mark.parametrize(("factor", "sound"), [(1 + 4e-16, True), (1 + 1e-9, False)])
def test_the_arithmetic_of_another_processor_is_no_fault(factor, sound, made, tmp_path, monkeypatch):
    """Its powers and logarithms differ in their last bits; what differs by more was written by somebody else."""
    Experiment((str(made / "data"),), ("bm25",), ("RBP",)).execute(tmp_path / "results")
    ours = persistence.powers
    monkeypatch.setattr(persistence, "powers", lambda base, exponent: ours(base, exponent) * factor)
    assert all(one.sound for one in verified(tmp_path / "results")) == sound


def test_a_collection_that_is_gone_is_said_and_no_fault(made, place, capsys):
    (made / "data").rename(made / "elsewhere")
    try:
        cells = [one for one in verified(place / "results") if one.kind == "cell"]
        assert main(["verify", str(place / "results"), "-q"]) == 3, "a folder that was not checked whole"
        assert not weir.verify(place / "results")
    finally:
        (made / "elsewhere").rename(made / "data")
    assert all(one.sound and "not scored again" in one.unchecked[0] for one in cells)
    assert "5 sound, 0 not; 3 could not be checked whole" in capsys.readouterr().out


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


# Folders of somebody else: nothing is asked of the network, nothing is written, nothing but files is read.

COMMANDS = (
    ["verify", "-q"],
    ["results", "--by", "topic"],
    ["gate", "--by", "topic"],
    ["results", "--scorer", "birco"],
)


def everything_in(*places: Path) -> dict[str, tuple[int, int]]:
    return {
        str(p): (p.lstat().st_size, p.lstat().st_mtime_ns)
        for place in places
        for p in [place, *place.rglob("*")]
    }


def points_at(place: Path, where: str) -> None:
    """Let all records of scores name a collection that the attacker chose."""
    for path in (place / "results").rglob("scores-*.json"):
        rewritten(path, facts={**read_record(path).facts, "collection": where})


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("where", ["hf:them/set", "hf:them/set@" + "a" * 40, "irds:vaswani", "//host/share", "golden.csv",
                                   "/dev/zero", "pipe", "documents.toml", "judgments.toml", "queries.toml", "data"])  # fmt: skip
def test_a_folder_of_somebody_else_reaches_nothing(place, where, command, monkeypatch, home, capsys):
    (place / "data").mkdir()
    os.mkfifo(place / "pipe")
    write_collection(place / "data" / "deep")
    (place / "golden.csv").write_text("question,answer,context\nwhat,this,that\n")
    for part in ("documents", "queries"):
        (place / f"{part}.toml").write_text(f'{part} = "/dev/zero"\nqrels = "data/deep/qrels/test.tsv"\n')
    (place / "judgments.toml").write_text('documents = "data/deep/corpus.jsonl"\nqrels = "pipe"\n')
    at = (
        where
        if ":" in where or where.startswith("/")
        else str(place / where / ("deep" if where == "data" else ""))
    )
    points_at(place, at)
    with served(Hub()) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        monkeypatch.setenv("HF_TOKEN", "hf_mine")
        monkeypatch.setenv("IR_DATASETS_HOME", str(home / "irds"))
        before = everything_in(place, home)
        paths = [str(place / "results")] * (2 if command[0] == "gate" else 1)
        assert main([*command, *paths, *(["-s", "bm25"] if command[0] == "gate" else [])]) in (0, 1, 2, 3)
        assert everything_in(place, home) == before
        assert hub.asked == []
    said = capsys.readouterr()
    assert "unexpected" not in said.err
    if command[0] == "verify" and where != "data":
        assert said.out.count("not scored again: ") == 3


def test_what_its_records_name_is_fetched_where_that_is_asked_for(place, monkeypatch, capsys):
    points_at(place, "hf:them/set")
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    with served(Hub()) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        assert main(["verify", str(place / "results"), "-q", "--fetch"]) == 3
        assert any("them/set" in path for path in hub.paths())
        del hub.asked[:]
        assert main(["gate", *[str(place / "results")] * 2, "-s", "bm25", "--fetch"]) in (0, 3)
        assert main(["results", str(place / "results"), "--by", "topic", "--fetch"]) == 2
        assert len(hub.paths()) >= 2


@pytest.mark.parametrize("damage", [row_invented, scores_without_files])
@pytest.mark.parametrize("command", [["compare"], ["gate", "-m", "nDCG@10"], ["results"]], ids=" ".join)
def test_invented_records_are_one_line_for_whoever_reads_them(place, damage, command, capsys):
    damage(place)
    folders = [str(place / "results")] * (2 if command[0] == "gate" else 1)
    assert main([*command, *folders]) in ((0, 2) if command[0] == "results" else (2,))
    assert "unexpected" not in (said := capsys.readouterr().err)
    assert command[0] == "results" or scores_record(place).name in said
