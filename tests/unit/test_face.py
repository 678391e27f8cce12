"""The Python face: every command has its equal, with values that print, save and become frames."""

from __future__ import annotations

import ast
import gc
import inspect
import json
import math
import re
import subprocess
import sys
from pathlib import Path

import pytest

import weir
from tests.unit.brooklet import write_collection
from weir import AP, nDCG
from weir.cli import main
from weir.cli.main import all_commands
from weir.core.frames import json_value, rebuilt
from weir.core.scores import Note, SystemScores
from weir.core.tables import Table, html_escaped, tables_as_text
from weir.errors import BadValue, FormatError, UnknownName
from weir.systems.fusion.fit import Fit

ROOT = Path(__file__).resolve().parents[2]
QRELS = {f"q{n}": {"abcd"[n % 4]: 1} for n in range(12)}
ONE = {q: ["a", "b", "c", "d"] for q in QRELS}
OTHER = {q: ["d", "c", "a", "b"][n % 3 :] for n, q in enumerate(QRELS)}
DOCUMENTS = {
    "d1": "red wine of France",
    "d2": {"title": "Bread", "text": "with butter"},
    "d3": "a third text",
}
QUERIES = {"q1": "french wine", "q2": "butter", "q3": "not judged"}
JUDGED = {"q1": ["d1"], "q2": {"d2"}}


@pytest.fixture
def files(tmp_path):
    weir.Qrels.of(QRELS).save(tmp_path / "qrels.json")
    for name, run in (("one", ONE), ("other", OTHER)):
        weir.Run.of(run, name).save(tmp_path / f"{name}.trec")
    return [str(tmp_path / name) for name in ("qrels.json", "one.trec", "other.trec")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    at = tmp_path_factory.mktemp("face") / "results"
    table = weir.benchmark("brook-news", ["bm25", weir.RM3()], [nDCG @ 10, "map"], out=at, k=20)
    return at, table


def printed(capsys, *arguments) -> str:
    """What a command prints, with its notes below."""
    main(list(map(str, arguments)))
    out, notes = capsys.readouterr()
    return f"{out.strip()}\n\n{notes}".strip()


@pytest.mark.parametrize("command", ["compare", "diff", "why", "power", "gate"])
def test_what_python_prints_is_what_the_command_prints(command, files, capsys):
    found = repr(getattr(weir, command)(*[*files[:1], files[1:]] if command == "compare" else files))
    said = printed(capsys, command, *files)
    found = re.sub(
        r"\((first|second)\); unj", lambda m: f"({dict(first='one', second='other')[m[1]]}); unj", found
    )
    assert found.replace("the judged queries", "qrels.json") == re.sub(r"\n\n\n", "\n\n", said)


def test_values_in_memory_give_what_files_give(files):
    runs = [weir.Run.of(ONE, "one"), weir.Run.of(OTHER, "other")]
    assert repr(weir.diff(QRELS, *runs)) == repr(weir.diff(*files))
    assert repr(weir.why(QRELS, *runs)) == repr(weir.why(*files))
    assert repr(weir.power(QRELS, *runs, AP)) == repr(weir.power(*files, "map"))
    assert weir.power(QRELS, ONE, OTHER, AP)[0].second == "second"
    scores = [weir.evaluate(QRELS, run, [AP]) for run in runs]
    assert repr(weir.gate(None, *scores)) == repr(weir.gate(*files, "AP"))
    assert (
        weir.compare(dict(zip("ab", scores, strict=True)))["AP"].pairs
        == weir.compare(QRELS, {"a": ONE, "b": OTHER}, AP)[0].pairs
    )


def test_a_gate_is_true_where_it_passes():
    assert weir.gate(QRELS, ONE, ONE)
    assert not weir.gate(QRELS, ONE, OTHER)
    found = weir.gate(QRELS, ONE, OTHER, [nDCG @ 10, "AP"], max_drop=0.5, interval="percentile")
    assert [one.verdict for one in found] == ["pass", "pass"]
    assert found["map"].measure == "AP"
    with pytest.raises(UnknownName, match="no measure among these results named 'RR'"):
        found["RR"]


def test_conventions_and_methods_are_values():
    method = weir.stats.ComparisonMethod("t", "none", margin=0.5, level=0.9)
    found = weir.compare(
        QRELS, ONE, OTHER, AP, baseline="first", method=method, conventions="missing=answered-only"
    )
    assert (found[0].method, found[0].baseline) == (method, "first")
    assert found[0].pairs[0].equivalence is not None
    assert weir.power(QRELS, ONE, OTHER, AP, conventions="ties=trec9")[0].queries == 12


def test_results_print_save_and_become_frames(tmp_path):
    found = {
        "compare": weir.compare(QRELS, {"a": ONE, "b": OTHER}, [nDCG @ 10, AP]),
        "gate": weir.gate(QRELS, ONE, OTHER),
        "power": weir.power(QRELS, ONE, OTHER, AP),
        "diff": weir.diff(QRELS, ONE, OTHER),
        "why": weir.why(QRELS, ONE, OTHER),
        "abstention": weir.abstention(
            {q: {"a": float(n)} for n, q in enumerate(QRELS)}, weir.evaluate(QRELS, ONE, AP)
        ),
        "card": weir.describe("brook-facts"),
        "audit": weir.audits("brook-news"),
    }
    for kind, one in found.items():
        one.save(tmp_path / f"{kind}.json")
        again = weir.ResultSet.load(tmp_path / f"{kind}.json")
        assert (repr(again), json_value(again.items), again.kind.name) == (
            repr(one),
            json_value(one.items),
            kind,
        )
        assert "<table" in one._repr_html_()
        assert len(one.to_frame("polars")) >= 1
    assert found["compare"].to_frame("pandas")["verdict"].tolist() == ["not separable"] * 2
    assert found["power"].to_frame("arrow").column_names[4:7] == ["effect", "power", "queries_needed"]
    assert r"\begin{tabular}" in found["compare"].to_latex()
    assert "| a |" in found["compare"].to_markdown()
    assert found["compare"][:1].to_csv().count("\n") >= 1
    for one in found.values():
        assert r"\begin{tabular}" in one.to_latex()
        assert "---" in one.to_markdown()
        assert one.to_csv().count("\n") >= 1
        assert all(table.text(80) and table.html() for table in one.tables())


def test_results_of_a_folder_print_save_and_become_frames(folder, tmp_path):
    at, _ = folder
    for kind, one in (
        ("results", weir.results(at)),
        ("verify", weir.verify(at)),
        ("efficiency", weir.efficiency(at, "ndcg_cut_10")),
        ("reproduce", weir.reproduce(at)),
        ("compare", weir.compare(at)),
    ):
        one.save(tmp_path / "one.json")
        assert json_value(weir.ResultSet.load(tmp_path / "one.json").items) == json_value(one.items)
        assert repr(one)
        assert len(one.to_frame("polars")) >= 1
        assert one.kind.name == kind
    assert weir.verify(at)
    assert "weir-table" in weir.results(at)._repr_html_()
    cells = [path.parent for path in sorted(at.glob("*/*/run.trec"))]
    assert repr(weir.diff(*cells)).startswith("nDCG@10: ")
    assert repr(weir.why(*cells)).startswith("nDCG@10: ")


def test_damaged_files_of_results_are_refused(tmp_path):
    path = tmp_path / "one.json"
    for text in (
        "",
        "[]",
        '{"weir": "nothing", "results": []}',
        '{"weir": "gate", "results": [{"measure": "AP"}]}',
        '{"weir": "gate", "results": [{"x": 1}]}',
    ):
        path.write_text(text)
        with pytest.raises(FormatError, match=r"expected results as ResultSet\.save writes them"):
            weir.ResultSet.load(path)


def test_plain_values_come_back():
    row = weir.stats.Row("d", "s", "m", math.nan, 0.1, 0.2, 3, 2, lowest=None)
    assert json_value(row)["mean"] is None
    assert repr(rebuilt(weir.stats.Row, json_value(row))) == repr(row)
    with pytest.raises(BadValue, match="found the field 'x'; expected those of Row"):
        rebuilt(weir.stats.Row, {"x": 1})


def test_a_benchmark_of_one_query_prints_without_a_comparison():
    one = (DOCUMENTS, {"q1": "french wine"}, {"q1": ["d1"]})
    table = weir.benchmark([one], ["bm25", weir.RM3()], [nDCG @ 10])
    assert re.search(r"^dataset-1  bm25 +1\.0000\* \[-\]", repr(table), re.MULTILINE)


def test_a_benchmark_of_a_collection_in_memory(folder):
    ds = weir.Dataset.of(DOCUMENTS, QUERIES, JUDGED, "tiny")
    assert repr(ds) == "<Dataset tiny test: 3 documents, 2 judged queries, 2 judgments>"
    assert "judged documents per query" in ds._repr_html_()
    table = weir.benchmark([ds, (DOCUMENTS, QUERIES, JUDGED)], ["bm25", weir.RM3()], [nDCG @ 10])
    assert (table.datasets, table.systems, len(table)) == (("tiny", "dataset-2"), ("bm25", "rm3"), 4)
    assert table[ds, weir.RM3()].means() == table["dataset-2", "rm3"].means() == {"nDCG@10": 1.0}
    assert table["dataset-2", "rm3"].mean("ndcg@10") == table["dataset-2", "rm3"].mean(weir.nDCG @ 10) == 1.0
    assert table.folder is None
    assert {c.baseline for c in table.compare(baseline=weir.parse_system("bm25"))} == {"bm25"}
    assert table.to_dict()["nDCG@10"]["tiny"] == {"bm25": 1.0, "rm3": 1.0}
    assert "| bm25 |" in table.to_markdown()
    assert r"\toprule" in table.to_latex()
    assert table.to_frame()["system"].tolist() == ["bm25", "rm3"] * 2
    with pytest.raises(UnknownName, match="no cell of this benchmark named 'bm52 with tiny'"):
        table["tiny", "bm52"]
    place = ds.folder.path
    assert place.is_dir()
    del ds, table
    gc.collect()
    assert not place.exists()


def test_a_benchmark_in_a_folder_is_weir_run(folder, capsys):
    at, table = folder
    assert table.folder == at
    assert repr(table.rows) == repr(weir.results(at))
    assert main(["results", str(at), "--json"]) == 0
    lines = capsys.readouterr().out.strip().split("\n")
    assert [row.to_dict() for row in table.rows] == [json.loads(line) for line in lines]
    again = weir.benchmark(["brook-news"], weir.BM25(), "nDCG@10", out=at, k=20)
    assert (
        again["brook-news", "bm25"].of("nDCG@10").tolist()
        == table["brook-news", "bm25"].of("nDCG@10").tolist()
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (([3], ["bm25"]), "found 3 (int) as a dataset; expected a name, a path"),
        ((weir.BM25(), ({}, QUERIES, JUDGED)), "; the order is datasets, systems"),
        (
            ([weir.BM25()], ["brook-news"]),
            "a value of type BM25 as a dataset; expected a name, a path, a Dataset, or",
        ),
        ((["brook-news"], [3]), "3 is not a system; give one such as weir.BM25()"),
        (([({}, QUERIES, JUDGED)], ["bm25"]), "0 documents and no judged query among 3"[:11]),
        ((["brook-news"], ["bm25"], ["nothing"]), "no measure named 'nothing'"),
    ],
)
def test_what_a_benchmark_cannot_take_is_said(given, said):
    with pytest.raises(weir.WeirError) as found:
        weir.benchmark(*given)
    assert said in str(found.value)


@pytest.mark.parametrize(
    ("method", "lacking", "whose"),
    [
        ("encode_queries", "encode_corpus", "BEIR's"),
        ("encode_corpus", "encode_queries", "BEIR's"),
        ("encode_query", "encode_document", "sentence-transformers'"),
    ],
)
def test_half_a_pair_of_encoding_methods_names_what_is_missing(method, lacking, whose):
    half = type("Half", (), {method: lambda self, texts: [[1.0]] * len(texts)})()
    said = f"found {method} without {lacking}; expected both, {whose} pair, or encode"
    for taken in (lambda one: weir.benchmark("brook-facts", one), weir.system, weir.Dense, weir.encoder):
        with pytest.raises(weir.WeirError, match=re.escape(said)):
            taken(half)


@pytest.mark.parametrize("argument", ["name", "version"])
def test_names_and_versions_of_objects_go_into_the_encoder(argument):
    with pytest.raises(
        TypeError, match=rf"of dense named .*did you mean weir\.encoder\(model, {argument}=\.\.\.\)"
    ):
        weir.Dense(str.split, **{argument: "mine"})
    weir.encoder(str.split, **{argument: "mine"})


def test_plans_and_fitted_fusions():
    plan = weir.plan("brook-facts", "bm25")
    assert (plan[0].dataset, plan[0].system) == ("brook-facts", "bm25")
    fit = weir.fit_fusion(QRELS, [ONE, OTHER], "wsum", "RR", folds=3)
    assert (fit.chosen.name, len(fit.folds)) == ("wsum", 3)
    assert len(weir.fuse([ONE, OTHER], fit.chosen)) == 12


# What functions of the face return that is no result but something to go on with: they print and save themselves.
VALUES = {
    "Run",
    "Qrels",
    "Dataset",
    "list[Dataset]",
    "Path",
    "Encoder",
    "Retriever",
    "Reranker",
    "JudgingPool",
}
RESULTS = {
    "ResultSet": weir.ResultSet,
    "Scores": weir.Scores,
    "Benchmark": weir.Benchmark,
    "Fit": Fit,
    "SystemScores": SystemScores,
}


def test_every_result_has_tables_and_notes(folder, files, tmp_path):
    returned = set()
    for place in (weir, weir.labels):
        for name in place.__all__:
            function = getattr(place, name)
            if inspect.isfunction(function) and function.__module__.startswith("weir.api"):
                hint = str(inspect.signature(function).return_annotation)
                returned |= {part.strip().partition("[")[0] for part in hint.split("|")}
    assert returned - {"list"} <= VALUES | set(RESULTS)
    at, table = folder
    for one in (
        table,
        weir.results(at),
        weir.verify(at),
        weir.compare(at),
        weir.plan("brook-news", "bm25"),
        weir.describe("brook-news"),
        weir.audits("brook-news"),
        weir.power(QRELS, ONE, OTHER, AP),
        weir.gate(QRELS, ONE, OTHER),
        weir.evaluate(QRELS, ONE),
        weir.evaluate(QRELS, ONE, AP).by("prefix:1"),
        weir.fit_fusion(QRELS, [ONE, OTHER], "wsum", "RR", folds=3),
        weir.save_baseline(tmp_path / "baseline.json", *files[:2]),
    ):
        tables, notes = one.tables(), one.notes()
        assert tables
        assert all(isinstance(part, Table) for part in tables)
        assert all(isinstance(note, Note) for note in notes)
        assert repr(one) == tables_as_text(tables, "text", notes=notes)
        assert all(html_escaped(str(note)) in one._repr_html_() for note in notes)


def test_every_command_has_its_python():
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`weir .*?) \|", page, re.MULTILINE)
    alone = re.findall(r"^(.*) exist as commands only", page, re.MULTILINE)
    named = re.findall(r"`weir ([a-z ]+)`", "\n".join([*rows, *alone]))
    assert sorted(named) == sorted(all_commands())
    members = "".join(
        f"{name}\n" for name in sorted(set(re.findall(r"`[^`\n]*?\b(weir(?:\.[A-Za-z]\w*)+)\(", page)))
    )
    assert members.count("\n") > 50
    run = subprocess.run(
        [sys.executable, "-c", f"import weir\n{members}"], capture_output=True, text=True, check=False
    )
    assert run.stderr == ""  # each is there after `import weir` alone
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        ast.parse(block)


def test_python_chooses_datasets_and_systems_as_the_commands_do(folder, files):
    at, table = folder
    chosen = weir.results(at, "map", ["brook-news"], ["bm25"])
    assert [(row.system, row.measure) for row in chosen] == [("bm25", "AP")]
    with pytest.raises(UnknownName, match="no dataset among these results named 'brook-facts'"):
        weir.results(at, datasets=["brook-facts"])
    [pair] = weir.compare(at, measures="map", only=["bm25", "rm3"])[0].pairs
    assert {pair.first, pair.second} == set(table.systems)
    with pytest.raises(BadValue):
        weir.compare(at, only=["bm25"])


def test_a_run_file_that_cannot_be_scored_leaves_the_comparison_with_a_note(files, tmp_path):
    broken = tmp_path / "broken.json"
    broken.write_text("[1, 2")
    compared = weir.compare(*files, broken)
    assert compared.items == weir.compare(*files).items
    assert any(note.text.startswith(f"left out: {broken}") for note in compared.notes())


def test_a_benchmark_shows_which_systems_cannot_be_told_apart(tmp_path):
    write_collection(tmp_path / "c")
    table = weir.benchmark(["brook-news", tmp_path / "c"], ["bm25", "rm3"], ["nDCG@10"])
    assert "c: 4 queries are too few for a test" in repr(table)
    assert "share a letter" in repr(table)
    assert "share a letter" in table.to_markdown()
    assert "weir compare tells" in repr(weir.benchmark("brook-news", ["bm25", "rm3"], ["nDCG@10"]))


@pytest.mark.parametrize("datasets", [["brook-news"], ["brook-news", "brook-facts"]])
def test_results_print_as_their_commands_do(tmp_path, capsys, datasets):
    table = weir.benchmark(datasets, ["bm25", "rm3"], ["nDCG@10", "RR"], out=tmp_path / "results")
    folder, names = str(tmp_path / "results"), [part for name in datasets for part in ("-d", name)]
    for result, arguments in (
        (table, ["run", *names, "-s", "bm25", "-s", "rm3", "-m", "nDCG@10", "-m", "RR", "-o", folder]),
        (weir.results(folder), ["results", folder]),
        (weir.compare(folder), ["compare", folder]),
        (weir.compare(folder, baseline="rm3"), ["compare", folder, "--baseline", "rm3"]),
    ):
        capsys.readouterr()
        assert main(arguments) == 0
        printed = capsys.readouterr().out.rstrip("\n")
        assert "\n\n".join(t.text() for t in result.tables()) == printed
        assert str(result).startswith(printed)
        assert not re.search("--[a-z]", printed)  # no option of a shell in what Python prints


def test_a_benchmark_shows_progress_in_a_terminal_alone(tmp_path, capsys, monkeypatch):
    folder = write_collection(tmp_path / "c")
    weir.benchmark(folder, "bm25", ["nDCG@10"])
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    weir.benchmark(folder, "bm25", ["nDCG@10"])
    assert "search" in capsys.readouterr().err
