"""Published scores beside those of a results folder, in one table."""

from __future__ import annotations

import json
import math
import re
import shutil

import pytest

import weir
from tests.unit.brooklet import write_collection
from tests.unit.cells import MANIFEST, QRELS, RUN, write_cell
from tests.unit.test_cli import refused
from weir.cli import main
from weir.errors import BadValue, FormatError, UnknownName
from weir.experiment.beside import MOST_SOURCES
from weir.experiment.mteb_files import mteb_scores
from weir.experiment.published import known_as, published
from weir.models.checkpoints import find_card
from weir.plugins.bridges.export import write_mteb_results


@pytest.fixture
def folder(tmp_path):
    """A cell of SciFact, one of its training queries, and one of a collection that nobody published."""
    for name, split in (("scifact", "test"), ("scifact", "train"), ("shop", "test")):
        about = {"dataset": name, "split": split}
        write_cell(tmp_path / f"{name}-{split}" / "a", RUN, MANIFEST | about, ("nDCG@10", "R@100"), QRELS)
    return tmp_path


def test_every_published_score_of_a_publisher_stands_below_ones_own(folder):
    found = weir.results_beside(folder, "BEIR paper", datasets=["scifact:test"])
    there = [one for one in published("scifact", measure="nDCG@10") if one.model.endswith("[BEIR paper]")]
    of_measure = [one for one in found if one.measure == "nDCG@10"]
    assert [of_measure[0].system, of_measure[0].source] == ["bm25", ""]
    assert {(one.system, one.printed) for one in of_measure[1:]} == {
        (one.model, one.printed) for one in there
    }
    values = [one.value for one in of_measure[1:]]
    assert values == sorted(values, reverse=True)


def test_a_split_of_a_collection_is_known_by_the_name_that_it_has(folder):
    for split in ("test", "train"):
        assert known_as(f"scifact:{split}", "scifact") == known_as("scifact", "scifact") == ""
    assert "scifact:test is " not in str(weir.results_beside(folder, "BEIR paper", datasets=["scifact:test"]))
    assert known_as("hf:mteb/scifact:test", "scifact") == known_as("hf:mteb/scifact", "scifact").replace(
        "mteb/scifact", "mteb/scifact:test"
    )


def test_a_score_of_other_data_is_marked_in_its_row(folder, monkeypatch):
    """The counts of these two documents are not SciFact's; of the published ones they would be."""
    for differs in (True, False):
        if not differs:
            monkeypatch.setattr("weir.experiment.published.not_as_published", lambda cell, called: "")
        found = weir.results_beside(folder, "BEIR paper", "nDCG@10", ["scifact:test"])
        [table] = found.tables()
        marked = {row[0].text for row in table.rows if row[1].more == "other data"}
        assert marked == {one.system for one in found if one.other_data} == ({"bm25"} if differs else set())


def test_other_data_are_told_beside_results_of_mteb_as_reproduce_tells_them(folder, tmp_path_factory):
    file = tmp_path_factory.mktemp("mres") / "SciFact.json"
    file.write_text(json.dumps({"scores": {"test": [{"hf_subset": "default", "ndcg_at_10": 0.64508}]}}))
    found = weir.results_beside(folder, file, "nDCG@10", ["scifact:test"])
    told = {
        one.because
        for one in weir.reproduce(folder, datasets=["scifact:test"])
        if one.outcome == "other data"
    }
    assert {one.other_data for one in found if not one.source} == told != set()


def test_what_would_run_a_published_model_is_named(folder):
    found = weir.results_beside(folder, "BEIR paper", "nDCG@10", ["scifact:test"])
    runs_as = {one.system: one.runs_as for one in found}
    assert runs_as["TAS-B [BEIR paper]"] == 'dense("tas-b")'
    assert runs_as["GenQ [BEIR paper]"] == runs_as["bm25"] == ""


def test_results_of_mteb_stand_beside_as_published_ones_do(folder, tmp_path_factory):
    place = tmp_path_factory.mktemp("own")
    weir.benchmark(write_collection(place / "store"), "bm25", "nDCG@10", out=place / "results")
    [written] = write_mteb_results(place / "results", place / "mteb", model="me/model")
    for where in (place / "mteb", written, str(written)):
        own, theirs = weir.results_beside(place / "results", where, "nDCG@10")
        assert (theirs.system, theirs.value, theirs.source) == ("me/model", own.value, str(written))
    scores = {"hf_subset": "default", "ndcg_at_10": 0.64508, "mrr_at_10": 1, "recall_at_100": math.nan}
    written.with_name("SciFact.json").write_text(json.dumps({"scores": {"test": [scores], "train": []}}))
    found = weir.results_beside(folder, place / "mteb", datasets=["scifact:test"])
    assert [(one.measure, one.printed) for one in found if one.source] == [("nDCG@10", "0.64508")]


def test_every_subset_of_a_result_of_mteb_is_a_collection_and_a_guessed_model_is_said(
    folder, tmp_path, capsys
):
    file = tmp_path / "me__model" / "f00d" / "MIRACLRetrieval.json"
    file.parent.mkdir(parents=True)
    parts = [{"hf_subset": name, "ndcg_at_10": value} for name, value in (("de", 0.5), ("ar", 0.25))]
    file.write_text(json.dumps({"mteb_version": "2", "scores": {"dev": parts}}))
    found = mteb_scores(tmp_path)
    assert [(s.model, s.dataset, s.value) for s in found] == [
        ("me/model", "MIRACLRetrieval#de", 0.5),
        ("me/model", "MIRACLRetrieval#ar", 0.25),
    ]
    assert {s.note for s in found} == {"mteb 2; no model_meta.json: the model is the folder's name"}
    with pytest.raises(weir.errors.BadValue, match="there is MIRACLRetrieval#de:dev, MIRACLRetrieval#ar:dev"):
        weir.results_beside(folder, file)
    assert main(["eval", str(file), str(file)]) == 2
    assert "found means of MTEB, without rankings; " in capsys.readouterr().err
    assert main(["data", "import", str(file), "-o", str(tmp_path / "new")]) == 2
    assert "weir results RESULTS --published FILE" in capsys.readouterr().err


def test_a_collection_is_named_as_the_task_that_its_refusal_tells(tmp_path):
    data = write_collection(tmp_path / "store")
    weir.benchmark(data, "bm25", "nDCG@10", out=tmp_path / "results")
    task = tmp_path / "SliceRetrieval.json"
    task.write_text(json.dumps({"scores": {"test": [{"hf_subset": "default", "ndcg_at_10": 0.5}]}}))
    with pytest.raises(weir.errors.BadValue, match=r"by `published_as=\['store=SliceRetrieval'\]`"):
        weir.results_beside(tmp_path / "results", task)
    said = weir.results_beside(tmp_path / "results", task, published_as=["store=SliceRetrieval"])
    assert [one.value for one in said if one.source] == [0.5]
    (data / "collection.toml").write_text('name = "SliceRetrieval"\n')
    weir.benchmark(data, "bm25", "nDCG@10", out=tmp_path / "named")
    assert [one.value for one in weir.results_beside(tmp_path / "named", task) if one.source] == [0.5]


def test_results_of_mteb_before_its_scores_had_a_field_are_read(folder, tmp_path_factory):
    """As of 2022 and 2023: splits stand beside the task's name, and languages inside a split."""
    file = tmp_path_factory.mktemp("old") / "me__model" / "any.json"
    file.parent.mkdir()
    old = {"mteb_dataset_name": "SciFact", "dataset_revision": None}
    file.write_text(json.dumps(old | {"test": {"ndcg_at_10": 0.73368, "evaluation_time": 2.4}}))
    [theirs] = [one for one in weir.results_beside(folder, file, datasets=["scifact:test"]) if one.source]
    assert (theirs.system, theirs.measure, theirs.value) == ("me/model", "nDCG@10", 0.73368)
    languages = {"de": {"ndcg_at_10": 0.5}, "fr": {"ndcg_at_10": 0.25}, "evaluation_time": 2}
    file.write_text(json.dumps({"mteb_dataset_name": "Mint", "mteb_version": "1.1.1", "dev": languages}))
    found = [(one.dataset, one.split, one.value, one.note[:10]) for one in mteb_scores(file)]
    assert found == [("Mint#de", "dev", 0.5, "mteb 1.1.1"), ("Mint#fr", "dev", 0.25, "mteb 1.1.1")]


def test_files_that_are_no_results_of_mteb_are_named(folder, tmp_path):
    other = tmp_path / "other.json"
    other.write_text('{"scores": 1}')
    for where in (other, tmp_path / "none.json"):
        with pytest.raises((FormatError, OSError), match=re.escape(str(where))):
            weir.results_beside(folder, where)
    (tmp_path / "empty").mkdir()
    with pytest.raises(FormatError, match="no result of MTEB"):
        weir.results_beside(folder, tmp_path / "empty")


def test_a_split_has_the_scores_of_that_split_alone(folder):
    places = {(one.dataset, bool(one.source)) for one in weir.results_beside(folder, "MTEB")}
    assert places == {
        ("scifact:test", False),
        ("scifact:test", True),
        ("scifact:train", False),
        ("shop", False),
    }


def test_the_table_names_what_is_claimed_and_where_it_stands(folder, capsys):
    assert main(["results", str(folder), "--published", "anserini bm25 flat", "-m", "nDCG@10"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^BM25 flat \[Anserini\] +0\.6789 \[\d\] +- +-$", out, re.MULTILINE)
    assert "bm25 claims to be BM25 flat [Anserini]" in out
    assert "[1] castorini/anserini" in out.split("\n\n")[-1]
    assert "no interval, and no test of a difference" in out
    assert main(["results", str(folder), "--published", "MTEB", "-m", "nDCG@10", "--long"]) == 0
    out = capsys.readouterr().out
    assert "sentence-transformers/all-mpnet-base-v2 [MTEB]" in out
    count = len({one.source for one in weir.results_beside(folder, "MTEB", "nDCG@10") if one.source})
    assert count > MOST_SOURCES
    assert f"{count} sources in embeddings-benchmark/results@" in out


def test_every_form_has_the_scores(folder, capsys):
    command = ["results", str(folder), "--published", "BEIR paper", "-d", "scifact:test"]
    assert main([*command, "--json"]) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.rstrip("\n").split("\n")]
    assert {"system": "DPR [BEIR paper]", "printed": "0.318"}.items() <= records[-2].items() or any(
        {"system": "DPR [BEIR paper]", "printed": "0.318"}.items() <= one.items() for one in records
    )
    for form, text in (
        ("--markdown", "| DPR \\[BEIR paper\\]"),
        ("--csv", "DPR [BEIR paper]"),
        ("--latex", "DPR"),
    ):
        assert main([*command, form]) == 0
        assert text in capsys.readouterr().out


def test_mistakes_are_one_line(folder, capsys):
    assert "no publisher named 'BIER paper'; did you mean BEIR paper" in refused(
        capsys, "results", str(folder), "--published", "BIER paper"
    )
    told = refused(capsys, "results", str(folder), "--published", "BIRCO", "-d", "scifact:test")
    assert "nothing of 'BIRCO' is published for nDCG@10 on scifact:test" in told
    assert "there is Anserini, " in told
    assert "leave out the rest" in refused(
        capsys, "results", str(folder), "--published", "MTEB", "--per-query"
    )


@pytest.mark.parametrize("subsets", [{"ndcg_at_10": 0.5}, [0.5], None])
def test_a_result_of_another_layout_is_refused_and_not_read_in_part(subsets, tmp_path):
    path = tmp_path / "SciFact.json"
    path.write_text(
        json.dumps({"task_name": "SciFact", "scores": {"train": [{"ndcg_at_10": 0.5}], "test": subsets}})
    )
    with pytest.raises(FormatError, match="no list of subsets as 'test'"):
        mteb_scores(path)


def test_a_task_is_matched_by_its_name_also_where_the_judgments_are_a_known_collections(tmp_path):
    """And a collection of the catalogue, which bears its own name, is told no other."""
    known = weir.load("brook-facts").layout.root
    shutil.copytree(known, tmp_path / "mine", ignore=shutil.ignore_patterns("*.weir"))
    (tmp_path / "mine" / "collection.toml").write_text('name = "MyFacts"\n')
    scores = {
        "test": [{"hf_subset": "default", "ndcg_at_10": 0.5, "map_at_100": 0.25, "nauc_map_at_100_std": 1.0}]
    }
    for n in range(6):
        file = tmp_path / "mteb" / f"T{n}.json"
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps({"task_name": f"T{n}" if n else "MyFacts", "scores": scores}))
    for place, out in ((tmp_path / "mine", "own"), ("brook-facts", "known")):
        weir.benchmark(place, "bm25", ["nDCG@10", "AP@100", "AP"], out=tmp_path / out)
    found = weir.results_beside(tmp_path / "own", tmp_path / "mteb")
    assert [(one.measure, one.value) for one in found if one.source] == [("nDCG@10", 0.5), ("AP@100", 0.25)]
    assert "none of these is published by AP\n" in str(found)
    assert "MTEB scores by: " in str(found)
    assert "nothing checks that they scored these data" in str(found)
    for called in ("MyFacts", "T1"):
        said = weir.results_beside(tmp_path / "own", tmp_path / "mteb", published_as=[f"MyFacts={called}"])
        assert {one.reported_as for one in said if one.source} == {called}
    with pytest.raises(BadValue) as refused:
        weir.results_beside(tmp_path / "known", tmp_path / "mteb")
    assert "and 3 more" in str(refused.value)
    assert "collection.toml" not in str(refused.value)


def test_ones_own_names_are_said_to_be_published_ones_everywhere_alike(tmp_path, monkeypatch):
    """A system, a collection and a model of MTEB's files under names of one's own."""
    root = tmp_path / "results"
    mine = {"system": "bm25(k1=7.0)"}
    write_cell(root / "shop" / "a", RUN, MANIFEST | {"dataset": "shop", "system": mine}, ("nDCG@10",), QRELS)
    file = tmp_path / "mres" / "me__model" / "SciFact.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"scores": {"test": [{"hf_subset": "default", "ndcg_at_10": 0.6451}]}}))
    [theirs] = [
        one for one in published("scifact", "minilm-l6 v2", "nDCG@10") if one.model.endswith("[MTEB]")
    ]
    said = ["bm25(k1=7.0)=all-MiniLM-L6-v2", "shop=scifact", "me/model=minilm-l6 v2"]

    found = {one.system: one for one in weir.results_beside(root, file.parent.parent, published_as=said)}
    assert set(found) == {"bm25(k1=7.0)", theirs.model, "me/model"}
    assert found[theirs.model].claimed_by == ("bm25(k1=7.0)", "me/model")
    assert (found[theirs.model].printed, found["me/model"].value) == (theirs.printed, 0.6451)
    assert found["bm25(k1=7.0)"].other_data.startswith("this is not scifact as it was published")

    for name in ("SciFact", "hf:mteb/scifact"):  # MTEB's task, and a copy
        assert weir.results_beside(
            root, file, published_as=[f"shop={name}", said[0], said[2]]
        ).items == tuple(found.values())
    with pytest.raises(BadValue, match="nothing of"):  # of the files, whatever else is said
        weir.results_beside(root, file, published_as=["shop=nfcorpus", said[0]])

    monkeypatch.chdir(tmp_path)
    with pytest.raises(UnknownName, match=r"no publisher named 'mres'; did you mean \./mres\?"):
        weir.results_beside(root, "mres")

    [check] = weir.reproduce(root, published_as=said[:2])
    assert (check.published, check.outcome, check.because) == (
        theirs,
        "other data",
        found["bm25(k1=7.0)"].other_data,
    )

    minilm = find_card("minilm").published
    assert theirs.model in minilm
    for name in ("minilm", 'dense("minilm")', "sentence-transformers/all-MiniLM-L6-v2"):
        checks = weir.reproduce(root, published_as=[f"bm25(k1=7.0)={name}", "shop=scifact"])
        assert {one.published.model for one in checks} == set(minilm) & {
            s.model for s in published("scifact")
        }

    made = weir.report(root, audit=False, published="mteb all minilm l6 v2", published_as=said[:2])
    [table] = next(one.tables for one in made.sections if one.name == "published")
    assert [row[0].text for row in table.rows] == ["bm25 (here)", theirs.model]
    assert f"bm25(k1=7.0) claims to be {theirs.model}" in table.notes

    options = [word for text in said[:2] for word in ("--published-as", text)]
    page = str(tmp_path / "page.html")
    for command in (
        ["results", str(root), "--published", "MTEB"],
        ["study", "reproduce", str(root), "--page", str(tmp_path / "page.md")],
        ["report", str(root), "--no-audit", "-o", page, "--published", "MTEB"],
        ["report", str(root), "--published", "MTEB"],
    ):
        assert main([*command, *options]) == (3 if "reproduce" in command else 0)  # other data stay open
    assert theirs.model in (tmp_path / "page.md").read_text().replace("\\", "")
    assert theirs.model in (tmp_path / "page.html").read_text()
    assert (
        "--published-as 'bm25(k1=7.0)=all-MiniLM-L6-v2' --published-as shop=scifact"
        in (tmp_path / "page.md").read_text()
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("scifcat=nfcorpus", "did you mean scifact"),
        ("bm25=all-MinLM-L6-v2", "did you mean sentence-transformers/all-MiniLM-L6-v2 [MTEB]"),
        ("bm25=minilm l6", "fits several published models"),
        ("shop=scifct", "did you mean scifact or"),
        ("bm25", "no pair of names"),
        ("bm25=", "no pair of names"),
    ],
)
def test_a_name_that_is_not_there_is_told_with_the_near_ones(folder, text, message):
    for call in (
        lambda: weir.results_beside(folder, "MTEB", published_as=[text]),
        lambda: weir.reproduce(folder, published_as=[text]),
        lambda: weir.report(folder, audit=False, published="MTEB", published_as=[text]),
    ):
        with pytest.raises(weir.WeirError, match=re.escape(message)):
            call()


def test_names_without_published_scores_are_refused(folder, capsys):
    for command in ("results", "report"):
        told = refused(capsys, command, str(folder), "--published-as", "bm25=minilm-l6 v2")
        assert told == "weir: --published-as names what --published lays beside; give both"
    told = refused(capsys, "report", "--published", "MTEB", "--published-as", "bm25=minilm-l6 v2")
    assert told == "weir: --published-as names results, and no results folder is given"


def test_results_and_report_tell_alike_why_scores_are_of_other_data_and_who_named_the_collection(tmp_path):
    about = {"dataset": "mini", "split": "test"}
    write_cell(tmp_path / "mini" / "a", RUN, MANIFEST | about, ("nDCG@10",), QRELS)
    asked = {"published_as": ["mini=scifact"]}
    [table] = weir.results_beside(tmp_path, "BEIR paper", **asked).tables()
    made = weir.report(tmp_path, audit=False, published="BEIR paper", **asked)
    [shown, *_] = next(one.tables for one in made.sections if one.name == "published")
    told = [note for note in table.notes if note.startswith(("other data: ", "mini is ", "own systems: "))]
    assert [note.partition(":")[0] for note in told[:2]] == ["own systems", "other data"]
    assert told[2:] == ["mini is scifact, as `published_as` says"]
    assert {note.replace("own systems", "(here)") for note in told} <= set(shown.notes)


@pytest.mark.parametrize(
    ("files", "rows"),
    [
        ({"me__m/a/mine": ("a", 0.1), "me__m/b/mine": ("b", 0.9)}, {"me/m@a": 0.1, "me/m@b": 0.9}),
        ({"me__m/a/mine": ("a", 0.1), "me__m/b/other": ("b", 0.9)}, {"me/m@a": 0.1}),
        ({"me__m/a/mine": ("a", 0.1), "me__m/a/other": ("a", 0.9)}, {"me/m": 0.1}),
        ({"x/mine": ("", 0.1), "y/other": ("", 0.9)}, {"me/m": 0.1}),
        ({"x": ("a", 0.1), "y": ("a", 0.9)}, {"me/m@x.json": 0.1, "me/m@y.json": 0.9}),
        (
            {"1/me__m/r/mine": ("r", 0.1), "2/me__m/r/mine": ("r", 0.9)},
            {"me/m@1/me__m/r/mine.json": 0.1, "me/m@2/me__m/r/mine.json": 0.9},
        ),
    ],
)
def test_no_mean_of_a_model_in_results_of_mteb_hides_another(files, rows, tmp_path):
    weir.benchmark(write_collection(tmp_path / "mine"), "bm25", "nDCG@10", out=tmp_path / "own")
    for name, (revision, mean) in files.items():
        file = tmp_path / "mteb" / f"{name}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        task = "other" if name.endswith("other") else "mine"
        scores = {"test": [{"hf_subset": "default", "ndcg_at_10": mean}]}
        file.write_text(json.dumps({"task_name": task, "scores": scores}))
        meta = {"name": "me/m"} | ({"revision": revision} if revision else {})
        file.with_name("model_meta.json").write_text(json.dumps(meta))
    found = weir.results_beside(tmp_path / "own", tmp_path / "mteb")
    assert {one.system: one.value for one in found if one.source} == rows
    [table] = found.tables()
    assert len(table.rows) == 1 + len(rows)


def test_the_revisions_of_a_plain_name_are_named(tmp_path):
    weir.benchmark(write_collection(tmp_path / "mine"), "bm25", "nDCG@10", out=tmp_path / "own")
    for revision in "abcde":
        file = tmp_path / "mteb" / "me__m" / revision / "mine.json"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps({"scores": {"test": [{"ndcg_at_10": 0.5}]}}))
    named = "'me/m' is in these results in 5 revisions: me/m@a, me/m@b, me/m@c, me/m@d, me/m@e; name"
    with pytest.raises(BadValue, match=named):
        weir.results_beside(tmp_path / "own", tmp_path / "mteb", published_as=["me/m=all-MiniLM-L6-v2"])


@pytest.mark.parametrize("names", [("de", "de"), (None, "default"), (None, None)])
def test_two_subsets_of_one_name_are_refused(names, tmp_path):
    named = [{"hf_subset": name} if name else {} for name in names]
    file = tmp_path / "mine.json"
    file.write_text(json.dumps({"scores": {"test": [one | {"ndcg_at_10": 0.5} for one in named]}}))
    with pytest.raises(FormatError, match="found 2 subsets as 'test', two of one name"):
        mteb_scores(file)


def test_per_cent_in_results_of_mteb_are_refused(tmp_path):
    file = tmp_path / "mine.json"
    file.write_text(json.dumps({"task_name": "mine", "scores": {"test": [{"ndcg_at_10": 30.2}]}}))
    with pytest.raises(FormatError, match=r"found 30.2 as ndcg_at_10; expected a mean from 0 to 1"):
        mteb_scores(file)


def test_a_subset_and_split_of_a_task_are_named_as_results_of_mteb_are_read(tmp_path, capsys):
    data = write_collection(tmp_path / "store")
    weir.benchmark(data, "bm25", "nDCG@10", out=tmp_path / "results")
    task = tmp_path / "TASK.json"
    splits = {name: [{"hf_subset": one, "ndcg_at_10": mean} for one, mean in of.items()]
              for name, of in {"dev": {"de": 0.5, "default": 0.25}, "test": {"de": 0.125}}.items()}  # fmt: skip
    task.write_text(json.dumps({"task_name": "TASK", "scores": splits}))
    means = {"TASK#de": 0.125, "TASK#de:test": 0.125, "TASK#de:dev": 0.5, "TASK:dev": 0.25}
    for called, mean in means.items():
        said = weir.results_beside(tmp_path / "results", task, published_as=[f"store={called}"])
        assert [one.value for one in said if one.source] == [mean]
        assert f"store is {called}, " in str(said)
    for called in ("TASK#de:train", "TASK#fr:dev"):
        with pytest.raises(UnknownName, match="TASK#de:dev"):
            weir.results_beside(tmp_path / "results", task, published_as=[f"store={called}"])


def test_a_collection_of_the_name_of_a_task_is_known_as_published(folder, tmp_path_factory):
    place = tmp_path_factory.mktemp("named")
    data = write_collection(place / "SciFact")
    weir.benchmark(data, "bm25", "nDCG@10", out=place / "results")
    file = place / "SciFact.json"
    file.write_text(json.dumps({"scores": {"test": [{"hf_subset": "default", "ndcg_at_10": 0.5}]}}))
    found = weir.results_beside(place / "results", file)
    assert [one.value for one in found if one.source] == [0.5]
    assert "documents" in found[0].other_data
