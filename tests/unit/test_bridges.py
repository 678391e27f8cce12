"""Bridges without the other packages: what is imported, exports of a results folder, heads of run files."""

from __future__ import annotations

import gzip
import json
import sys
from collections import namedtuple
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import yaml

import weir
from tests.unit.test_imports import modules_after
from weir.cli import main
from weir.errors import BadValue, FormatError, MissingExtra
from weir.experiment.results import finished_cells
from weir.plugins import bridges

OTHERS = ("ranx", "ir_measures", "mteb", "pyterrier", "sentence_transformers", "datasets", "numpy")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    weir.benchmark(["brook-facts", "brook-news"], [weir.BM25(), weir.RM3()], ["nDCG@10", "AP"], folder)
    return folder


def test_importing_bridges_imports_nothing_else():
    assert not modules_after("import weir.plugins.bridges; dir(weir.plugins.bridges)") & set(OTHERS)


def test_every_name_leads_somewhere():
    for name in set(bridges.__all__) - {"SentenceTransformersEvaluator"}:
        assert callable(getattr(bridges, name))
    with pytest.raises(AttributeError, match="named 'from_lucene'"):
        bridges.from_lucene  # noqa: B018 - the attribute is what is asked


@pytest.mark.parametrize("package", ["ranx", "ir_measures"])
def test_a_missing_package_names_its_extra(monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    give = getattr(bridges, f"to_{package}")
    with pytest.raises(MissingExtra, match=rf"needs '{package}'.*pip install .*\[bridges\]"):
        give(weir.Run.of({"q": {"d": 1.0}}))


def test_named_tuples_and_objects_by_query_are_read():
    Scored, Judged = (
        namedtuple("Scored", "query_id doc_id score"),
        namedtuple("Judged", "qid docno relevance iteration"),
    )

    class ByQuery:
        def to_dict(self):
            return {"q1": {"a": 2.0, "b": 1.0}}

    rows = [Scored("q1", "b", 1.0), Scored("q1", "a", 2.0)]
    assert (
        weir.evaluate([Judged("q1", "a", 1, "0")], rows).means()
        == weir.evaluate({"q1": ["a"]}, ByQuery()).means()
    )
    with pytest.raises(
        BadValue, match="columns: qid, docno, relevance, iteration; none of them is the score"
    ):
        weir.evaluate(rows, [Judged("q1", "a", 1, "0")])
    with pytest.raises(BadValue, match="cannot be made from list"):
        weir.evaluate([("q1", "a", 1)], rows)


class Broken:
    def __iter__(self):
        raise RuntimeError("no rows")


class Frame:
    columns = ("query_id", "doc_id", "score")

    def __getitem__(self, name):
        return 1


NO_FRAMES = {
    "an iteration that ends in an error": (Broken(), "Broken whose iteration ends in RuntimeError: no rows"),
    "columns without cells": (Frame(), "the column 'query_id' is int; expected its cells"),
    "named tuples of two kinds": (
        [namedtuple("A", "query_id doc_id score")("q1", "a", 1.0), namedtuple("B", "qid docno")("q1", "a")],
        "named tuples of query_id, doc_id, score and qid, docno; expected the same fields in all",
    ),
}


@pytest.mark.parametrize("case", NO_FRAMES)
def test_what_only_looks_like_rows_is_refused_in_one_line(case):
    value, said = NO_FRAMES[case]
    judged = {"q1": {"a": 1}}
    for ask in (
        lambda: weir.evaluate(judged, value),
        lambda: weir.compare(judged, value, {"q1": {"a": 1.0}}),
        lambda: weir.fuse([value, value]),
    ):
        with pytest.raises(BadValue, match=said):
            ask()


def test_a_transformer_is_anything_with_transform():
    class Titles:
        def transform(self, frame):
            assert list(frame.columns) == ["qid", "query"]
            found = [{"qid": qid, "docno": "d2", "score": len(query)} for qid, query in frame.to_numpy()]
            return pd.DataFrame(found)

    system = bridges.from_pyterrier(Titles())
    corpus, queries = weir.Corpus.of({"d1": "a weir", "d2": "a river"}), weir.Queries.of({"7": "weir"})
    assert system.index(corpus).search(queries, 3).to_dict() == {"7": {"d2": 4.0}}


def test_a_model_of_mteb_is_told_by_what_it_has():
    with pytest.raises(BadValue, match="expected a model of MTEB"):
        bridges.from_mteb(weir.BM25())


def test_results_are_exported_for_mteb(results, tmp_path, capsys):
    assert main(["data", "export", str(results), "--to", "mteb", "-o", str(tmp_path), "-s", "bm25"]) == 0
    paths = capsys.readouterr().out.split()
    assert [path.rpartition("/")[2] for path in paths] == ["brook-facts.json", "brook-news.json"]
    found = json.loads(Path(paths[0]).read_text(encoding="utf-8"))
    row = next(
        r
        for r in weir.results(results)
        if (r.system, r.dataset, r.measure) == ("bm25", "brook-facts", "nDCG@10")
    )
    assert found["scores"]["test"][0] | {"AP": 0} == {
        "hf_subset": "default",
        "languages": ["eng-Latn"],
        "main_score": row.mean,
        "ndcg_at_10": row.mean,
        "AP": 0,
    }
    assert found["dataset_revision"] == weir.load("brook-facts").fingerprint


def test_results_are_exported_for_the_hub(results, tmp_path, capsys):
    asked = ["data", "export", str(results), "--to", "hub", "-o", str(tmp_path)]
    assert main([*asked, "-d", "brook-facts", "--hub-dataset", "mteb/facts:Facts"]) == 0
    (entry,) = yaml.safe_load((tmp_path / "rm3" / ".eval_results" / "brook-facts.yaml").read_text())
    row = next(
        r
        for r in weir.results(results)
        if (r.system, r.dataset, r.measure) == ("rm3", "brook-facts", "nDCG@10")
    )
    assert entry["dataset"] == {"id": "mteb/facts", "task_id": "Facts"}
    assert entry["value"] == round(100 * row.mean, 5)
    assert f"21 queries, 95% interval {100 * row.low:.2f} to {100 * row.high:.2f}; rm3" in entry["notes"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--to", "hub"], "brook-facts: no data set on the hub is known for it; name it as ORG"),
        (
            ["--to", "hub", "--hub-dataset", "a/b:c"],
            "2 collections cannot all be a/b:c; choose one (weir data export -d)",
        ),
        (
            ["--to", "hub", "--hub-dataset", "facts", "-d", "brook-news"],
            "the data set is 'facts'; expected ORG/NAME",
        ),
        (["--to", "hub", "--mteb-name", "a/b"], "--mteb-name says what a system is called in MTEB"),
        (["--to", "mteb", "--hub-dataset", "a/b:c"], "--hub-dataset names a data set of the hub"),
        (
            ["--to", "mteb", "--mteb-name", "a/b"],
            "2 systems cannot all be a/b; choose one (weir data export -s)",
        ),
        (["--to", "mteb", "-s", "bm26"], "no system among these results named 'bm26'; did you mean bm25?"),
    ],
)
def test_what_cannot_be_exported_is_one_line_and_writes_nothing(results, tmp_path, capsys, options, said):
    assert main(["data", "export", str(results), *options, "-o", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err.startswith(f"weir: {said}")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("form", ["mteb", "hub"])
def test_results_without_the_reported_measure_say_how_to_get_it(tmp_path, capsys, form):
    weir.benchmark(["brook-facts"], [weir.BM25()], ["AP"], tmp_path / "r")
    options = ["--hub-dataset", "a/b:c"] if form == "hub" else []
    assert (
        main(["data", "export", str(tmp_path / "r"), "--to", form, "-o", str(tmp_path / "out"), *options])
        == 2
    )
    assert "no nDCG@10 among its measures" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_exported_runs_say_what_made_them_and_score_the_same(results, tmp_path):
    assert main(["data", "export", str(results), "--to", "ir-metadata", "-o", str(tmp_path)]) == 0
    path = tmp_path / "brook-facts" / "bm25.trec"
    assert path.read_text().startswith("# ir_metadata.start\n# tag: bm25\n# platform:\n#   hardware:\n")
    said = bridges.read_ir_metadata(path)
    assert said["method"]["retrieval"][0]["method"]["k1"] == 0.9
    assert said["data"]["test collection"]["fingerprint"] == weir.load("brook-facts").fingerprint
    assert f"weir-ir=={weir.__version__}" in said["platform"]["software"]["libraries"]["python"]
    (stored,) = results.glob("brook-facts/bm25-*/run.trec")
    assert weir.Run.load(path).to_dict() == weir.Run.load(stored).to_dict()
    assert bridges.read_ir_metadata(stored) == {}
    assert {line.split()[-1] for line in path.read_text().splitlines() if line[0] != "#"} == {"bm25"}


def test_the_hub_hears_no_interval_of_fewer_queries_than_have_one(tmp_path):
    texts = {f"d{n}": f"river {n}" for n in range(5)}
    for queries in (5, 6):
        data = weir.Dataset.of(
            texts,
            {f"q{n}": "river" for n in range(queries)},
            {f"q{n}": {f"d{n % 2}": 1} for n in range(queries)},
        )
        weir.benchmark(data, "bm25", "nDCG@10", out=tmp_path / f"{queries}")
        [path] = bridges.write_hub_results(tmp_path / f"{queries}", tmp_path / "hub", "a/b:c")
        assert ("interval" in path.read_text()) == (queries == 6)


def test_metadata_of_any_kind_stands_at_the_head_of_a_run(tmp_path):
    run, odd = weir.Run.of({"q": {"d": 1.0}}), {"tag": "ä\n# x", "when": "2026-11-22", "n": [1, {"a": None}]}
    path = tmp_path / "run.trec.gz"
    bridges.write_annotated_run(run, path, odd)
    assert bridges.read_ir_metadata(path) == odd
    assert all(line.startswith(b"# ") for line in gzip.decompress(path.read_bytes()).split(b"\n")[:-2])
    assert weir.Run.load(path).to_dict() == run.to_dict()
    with pytest.raises(BadValue, match="json files have no comments"):
        bridges.write_annotated_run(run, tmp_path / "run.json", odd)
    assert not (tmp_path / "run.json").exists()


@pytest.mark.parametrize(
    ("head", "said"),
    [
        (b"# ir_metadata.start\n# tag: a\nq Q0 d 1 1 x\n", "a head that does not end"),
        (b"# ir_metadata.start\n# a: [\n# ir_metadata.end\n", "a head that is no YAML"),
        (b"# ir_metadata.start\n# - a\n# ir_metadata.end\n", "a head that holds list"),
        (
            b"# ir_metadata.start\n# !!python/object/apply:os.getcwd []\n# ir_metadata.end\n",
            "a head that is no YAML",
        ),
        (b"# ir_metadata.start\n# \xff\n# ir_metadata.end\n", "a comment that is not UTF-8"),
    ],
)
def test_a_broken_head_is_one_line(tmp_path, head, said):
    (tmp_path / "run.trec").write_bytes(head)
    with pytest.raises(FormatError, match=f"run.trec: found {said}"):
        bridges.read_ir_metadata(tmp_path / "run.trec")


def test_systems_whose_names_make_one_file_name_are_written_to_two(results, tmp_path):
    cells = [cell for cell in finished_cells(results) if cell.dataset == "brook-facts"]
    paths = bridges.write_annotated_runs(
        [replace(cell, label=label) for cell, label in zip(cells, ("A b", "a-b"), strict=True)], tmp_path
    )
    assert [path.name.rpartition("-")[0] for path in paths] == ["A-b", "a-b"]
    assert [path.read_text().splitlines()[-1].split()[-1] for path in paths] == ["A-b", "a-b"]
    assert len({path.name.casefold() for path in paths}) == 2
