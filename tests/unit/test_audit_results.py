"""An audit of a results folder: each run with the collection that its record names, wherever that lies now."""

from __future__ import annotations

import json
import shutil

import pytest

pytest.importorskip("numba", reason="needs the `run` extra (numba)")

import weir
from tests.unit.brooklet import DOCUMENTS, write_collection
from weir.cli import main
from weir.errors import BadValue, RankingWarning, UnknownName
from weir.experiment.audit_subjects import subjects_of
from weir.experiment.results import finished_cells
from weir.measures import score_run
from weir.plugins.submissions.packs import pack_results, verify_pack

TWO = {name: (title, text) for name, (title, text) in DOCUMENTS.items() if name != "d6"}


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Results of one system on three collections: of the catalogue, and two by path."""
    monkeypatch.chdir(tmp_path)
    write_collection(tmp_path / "one")
    write_collection(tmp_path / "two", TWO)
    (tmp_path / "two" / "qrels" / "dev.tsv").write_text("query-id\tcorpus-id\tscore\nq2\td1\t1\n")
    weir.benchmark(["brook-news", "one", "two"], ["bm25"], ["nDCG@10", "P@1"], tmp_path / "out")
    return tmp_path


def audited(subjects):
    """The mean of each subject's run by its own judgments."""
    return {
        s.name: score_run(s.need_qrels(), next(iter(s.runs.values())), "nDCG@10").means()["nDCG@10"]
        for s in subjects
    }


def stored(place):
    return {cell.dataset: cell.mean("nDCG@10") for cell in finished_cells(place / "out")}


@pytest.mark.parametrize(
    "collections", [(), ("one",), ("two", "one=one"), ("brook-news",), ("one=one", "two=two")]
)
def test_every_run_is_judged_by_its_own_collection_whichever_is_named(place, collections):
    assert audited(subjects_of(["out"], collections)) == stored(place)


@pytest.mark.filterwarnings("always::weir.errors.RankingWarning")
def test_a_collection_that_was_moved_is_named_and_left_out_or_found_where_it_is_said_to_be(place, capsys):
    shutil.move(place / "two", place / "elsewhere")
    wanted = stored(place)
    with pytest.warns(
        RankingWarning, match=r"left out: two: .*two, or not as it was measured.*`collection={'two': 'PATH'}`"
    ):
        found = subjects_of(["out"])
    assert audited(found) == {name: wanted[name] for name in ("brook-news", "one")}
    for collections in (["elsewhere"], ["two=elsewhere"], ["two=elsewhere", "one"]):
        assert audited(subjects_of(["out"], collections)) == wanted
    assert {
        one.subject for one in weir.audits("out", only=["holes"], collection={"two": "elsewhere"})
    } == set(wanted)
    assert main(["audit", "out", "--only", "holes", "--json"]) == 0
    told = capsys.readouterr()
    assert {json.loads(line)["subject"] for line in told.out.splitlines()} == {"brook-news", "one"}
    assert "warning: left out: two: " in told.err


def test_a_report_says_which_collection_its_audit_lacks_and_finds_it_where_it_is_said_to_be(tmp_path):
    write_collection(tmp_path / "mine")
    weir.benchmark(str(tmp_path / "mine"), ["bm25"], ["nDCG@10"], tmp_path / "out")
    shutil.move(tmp_path / "mine", tmp_path / "moved")
    made = weir.report(tmp_path / "out")
    assert not made.audits
    assert [one.text[:31] for one in made.lacking] == ["the audit is left out: mine: th"]
    assert "`collection={'mine': 'PATH'}`" in made.notes()[-1].text
    found = weir.report(tmp_path / "out", collection={"mine": tmp_path / "moved"})
    assert len(found.audits) == 1
    assert not found.lacking
    with pytest.raises(UnknownName, match="known: mine"):
        weir.report(tmp_path / "out", collection={"other": tmp_path / "moved"})


def test_what_is_none_of_the_folders_collections_is_refused(place, capsys):
    with pytest.raises(
        BadValue,
        match=r"brook-facts is none of brook-news, one, two .*`collection={'brook-news': 'brook-facts'}`",
    ):
        subjects_of(["out"], ["brook-facts"])
    with pytest.raises(UnknownName, match="named 'three'; known: brook-news, one, two"):
        subjects_of(["out"], ["three=one"])
    with pytest.warns(
        RankingWarning, match="left out: two: the documents of one are not those that were searched"
    ):
        assert set(audited(subjects_of(["out"], ["two=one"]))) == {"brook-news", "one"}
    shutil.rmtree(place / "out" / "brook-news")
    shutil.rmtree(place / "one")
    shutil.rmtree(place / "two")
    assert main(["audit", "out"]) == 2
    said = capsys.readouterr().err
    assert "--collection one=PATH" in said
    assert "--collection two=PATH" in said
    with pytest.raises(UnknownName, match="named 'three'; known: one, two"):
        subjects_of(["out"], ["three=one"])


def test_new_judgments_score_the_collection_again_whose_queries_they_are_of(place, capsys):
    query = weir.load("brook-news").qrels.queries[0]
    (place / "new.trec").write_text(f"{query} 0 never-returned 1\n")
    assert main(["labels", "relabel", "new.trec", "out", "-o", "both.tsv", "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["subject"] for row in rows] == ["brook-news"]
    assert rows[0]["after"] < rows[0]["before"] == stored(place)["brook-news"]
    assert {row.subject for row in weir.labels.relabel(weir.Qrels.of({"q1": {"d5": 1}}), "out")} == {
        "one",
        "two",
    }
    (place / "none.trec").write_text("nobody 0 d1 1\n")
    assert main(["labels", "relabel", "none.trec", "out"]) == 2
    assert "none of the 1 queries judged anew is a query of brook-news, one, two" in capsys.readouterr().err


def test_splits_of_one_collection_are_judged_apart(place, capsys):
    dataset = weir.load(place / "two", "dev")
    weir.benchmark([dataset], ["bm25"], ["nDCG@10"], place / "dev")
    weir.benchmark(["two"], ["bm25"], ["nDCG@10"], place / "dev")
    cells = {f"two:{cell.split}": cell.mean("nDCG@10") for cell in finished_cells(place / "dev")}
    assert audited(subjects_of(["dev"])) == audited(subjects_of(["dev"], ["two=two"])) == cells
    assert cells["two:dev"] != cells["two:test"]


@pytest.mark.parametrize(
    "asked", [("q1", "q2"), ("q1", "q2", "q3", "d4")], ids=["others", "the same queries"]
)
def test_splits_of_one_collection_are_shown_compared_and_packed_apart(place, capsys, asked):
    lines = [f"{query}\td1\t1\n" for query in asked]
    (place / "two" / "qrels" / "dev.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(lines))
    dev, test = (weir.load(place / "two", split) for split in ("dev", "test"))
    for dataset in (dev, test):
        weir.benchmark([dataset], ["bm25", "bm25(b=0.0)"], ["nDCG@10"], place / "both")
    names = {"two:dev": len(dev.qrels), "two:test": len(test.qrels)}
    assert {row.dataset: row.queries for row in weir.results("both")} == names
    systems = ("bm25", "bm25(b=0.0)")
    means = {
        (f"two:{dataset.split}", row.system): row.mean
        for dataset in (dev, test)
        for row in weir.benchmark([dataset], systems, ["nDCG@10"]).rows
    }
    assert {
        (row.dataset, row.system): row.mean for row in weir.results("both") if row.measure == "nDCG@10"
    } == means
    for name, chosen in (("two", set(names)), ("two:dev", {"two:dev"}), ("two:test", {"two:test"})):
        assert {row.dataset for row in weir.results("both", datasets=[name])} == chosen
    assert {row.dataset for row in weir.results("out", datasets=["two:test"])} == {"two"}
    assert {one.dataset for one in weir.compare("both") if one.unit == "queries"} == set(names)
    weir.labels.judging_pool("both", out="pools")
    assert {one.name for one in (place / "pools").iterdir()} == {"two dev", "two test"}
    pack_results("both", "part.zip", datasets=["two:dev"])
    assert not verify_pack("part.zip").problems
    for dataset, system in ((dev, "bm25"), (test, "rm3")):
        weir.benchmark([dataset], [system], ["nDCG@10"], place / "apart")
    with pytest.raises(BadValue, match=r"no dataset has two systems.*two:dev has bm25; two:test has rm3"):
        weir.compare("apart")


@pytest.mark.parametrize(
    "asked", [("q1", "q2"), ("q1", "q2", "q3", "d4")], ids=["others", "the same queries"]
)
def test_splits_in_one_run_are_those_of_a_run_of_each(place, capsys, asked):
    """They may be judged alike, too."""
    judged = (place / "two" / "qrels" / "test.tsv").read_text().splitlines(keepends=True)
    lines = [line for line in judged[1:] if line.split("\t")[0] in asked]
    (place / "two" / "qrels" / "dev.tsv").write_text(judged[0] + "".join(lines))
    splits = [weir.load(place / "two", split) for split in ("dev", "test")]
    for one in splits:
        weir.benchmark([one], ["bm25", "rm3"], ["nDCG@10"], place / "apart")
    both = weir.benchmark([*splits, splits[0]], ["bm25", "rm3"], ["nDCG@10"], place / "both")
    means = [(row.dataset, row.system, row.mean, row.queries) for row in weir.results("apart")]
    assert [(row.dataset, row.system, row.mean, row.queries) for row in both.rows] == means
    assert both.datasets == ("two:dev", "two:test")
    assert [both[one, "bm25"] for one in splits] == [both[f"two:{one.split}", "bm25"] for one in splits]
    assert sorted(one.name for one in (place / "both" / "two").iterdir()) == sorted(
        one.name for one in (place / "apart" / "two").iterdir()
    )
    assert main(["run", "-d", "two:dev", "-d", "two", "-s", "bm25", "-o", "both", "-q", "--notes"]) == 0
    assert "the split dev counts" not in capsys.readouterr().err
    assert main(["plan", "-d", "two:dev", "-d", "two", "-s", "bm25", "-q", "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [one["dataset"] for one in lines if "dataset" in one] == ["two:dev", "two:test"]


def test_a_run_takes_the_split_behind_the_name_and_notes_it(place, capsys):
    arguments = ["run", "-s", "bm25", "-o", str(place / "dev"), "-q", "-d", "two:dev"]
    assert main(arguments) == 0
    assert "note: two: the split dev counts, not test" in capsys.readouterr().err
    assert [cell.split for cell in finished_cells(place / "dev")] == ["dev"]
    assert main(["plan", "-d", "two:dev", "-s", "bm25", "-q"]) == 0


def test_why_and_diff_find_a_collection_that_was_given_by_path(place, capsys):
    weir.benchmark(["one"], ["bm25(b=0.0)"], ["nDCG@10"], place / "out")
    cells = [str(cell.folder) for cell in finished_cells(place / "out") if cell.dataset == "one"]
    assert main(["why", *cells, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["notes"] == []
    assert found["effects"] or found["without"]  # they were scored again
    assert main(["diff", *cells, "--json"]) == 0
    moves = json.loads(capsys.readouterr().out)
    assert [moves["first_mean"], moves["second_mean"]] == [found["first_mean"], found["second_mean"]]
    shutil.move(place / "one", place / "elsewhere")
    assert main(["why", *cells]) == 0
    assert "the judgments of one are not on this machine" in " ".join(capsys.readouterr().out.split())
    assert main(["why", *cells, "--collection", "elsewhere", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["notes"] == []
