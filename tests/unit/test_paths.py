"""A path is a path: whatever its spelling it means one thing to every command and function, and a name another."""

from __future__ import annotations

import inspect
import json
import random
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import weir
from tests.unit.brooklet import write_collection
from weir.api.auditing import expand_judgments
from weir.cli.main import main
from weir.core.frames import json_value
from weir.datasets.load import load
from weir.datasets.names import names_collection
from weir.errors import BadValue, DownloadError, FormatError, NameNote, WeirError
from weir.plugins.importing.references.hub import parts_of
from weir.plugins.labels.api import (
    agree,
    estimate,
    holes,
    judging_pool,
    next_queries,
    rank_agreement,
    relabel,
)
from weir.plugins.llm.rerankings import reranking

NAME = "brook-arguments"
"""Of a collection of the catalogue that comes with Weir, and of a folder that has nothing to do with it."""
MEASURES = ("RR", "nDCG@10")


def write_own(folder: Path, first: int = 0) -> None:
    """A collection whose queries are documents, so that its rules decide: each answer is the next document."""
    docs = [f"d{n:02}" for n in range(first, first + 16)]
    (folder / "qrels").mkdir(parents=True)
    texts = [json.dumps({"_id": doc, "text": f"text of {doc}"}) for doc in docs]
    for part in ("corpus", "queries"):
        (folder / f"{part}.jsonl").write_text("\n".join(texts) + "\n", encoding="utf-8")
    rows = [f"{q}\t{d}\t{int(n < 8)}" for n, (q, d) in enumerate(zip(docs, docs[1:], strict=False))]
    lines = "\n".join(["query-id\tcorpus-id\tscore", *rows])
    (folder / "qrels" / "test.tsv").write_text(lines + "\n", encoding="utf-8")
    (folder / "collection.toml").write_text('self_match = "drop"\n', encoding="utf-8")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("paths")
    write_own(folder / NAME)
    (folder / "other").mkdir()
    (folder / "other" / NAME).symlink_to(folder / NAME)
    docs, drawn = [f"d{n:02}" for n in range(16)], random.Random(5)
    for name in ("one", "two"):
        ranked = {q: {q: 9.0, **{d: drawn.random() for d in drawn.sample(docs, 4)}} for q in docs[:15]}
        weir.Run.of(ranked, name).save(folder / f"{name}.trec")
    labels = {q: {d: drawn.randrange(2) for d in docs} for q in docs[:15]}
    weir.Qrels.of(labels).save(folder / "labels.tsv")
    few = {q: row for q, row in labels.items() if int(q[1:]) < 6}
    weir.Qrels.of(few).save(folder / "few.tsv")
    return folder


SPELLINGS: dict[str, Callable[[Path], object]] = {
    "./": lambda _: f"./{NAME}",
    "/": lambda _: f"{NAME}/",
    "absolute": lambda at: str(at / NAME),
    "..": lambda _: f"other/../{NAME}",
    "link": lambda _: f"other/{NAME}",
    "Path": lambda _: Path(NAME),
    "split": lambda _: f"./{NAME}:test",
}

ONE, TWO, LABELS = "one.trec", "two.trec", "labels.tsv"
TAKERS: dict[str, Callable[[object], object]] = {
    "evaluate": lambda q: weir.evaluate(q, ONE, MEASURES).values,
    "evaluate collection": lambda q: (
        weir.evaluate(f"{NAME}/qrels/test.tsv", ONE, MEASURES, collection=q).values
    ),
    "compare": lambda q: weir.compare(q, ONE, TWO, measures="RR"),
    "diff": lambda q: weir.diff(q, ONE, TWO, measure="RR"),
    "why": lambda q: weir.why(q, ONE, TWO, measure="RR"),
    "power": lambda q: weir.power(q, ONE, TWO, "RR"),
    "gate": lambda q: weir.gate(q, ONE, TWO, "RR"),
    "save_baseline": lambda q: (
        weir.save_baseline("saved.json", q, ONE, "RR").datasets.popitem()[1].scores.values
    ),
    "threshold": lambda q: weir.threshold(q, ONE, "RR", max_false=0.9),
    "fit_fusion": lambda q: weir.fit_fusion(q, [ONE, TWO], "wsum", "RR", folds=2).held_out,
    "holes": lambda q: holes(q, ONE, TWO, human=LABELS),
    "agree": lambda q: agree(q, LABELS),
    "rank_agreement": lambda q: rank_agreement(q, LABELS, runs=[ONE, TWO]),
    "estimate": lambda q: estimate("few.tsv", LABELS, ONE, measure="P@5", collection=q),
    "next_queries": lambda q: next_queries("few.tsv", LABELS, ONE, measure="P@5", count=2, collection=q),
    "reranking": lambda q: reranking(ONE, ONE, qrels=q),
    "migrate": lambda q: weir.migrate(ONE, TWO, collection=q, rules=weir.MigrationRules("P@5")),
    "funnel_of_rankings": lambda q: weir.funnel_of_rankings(q, ONE, TWO),
    "relabel": lambda q: relabel(LABELS, q, ONE),
    "relabel judged": lambda q: relabel(q, q, ONE),
    "judging_pool": lambda q: judging_pool(q, ONE),
    "audits": lambda q: weir.audits(q, ONE, only=["dangling judgments"]),
    "load": lambda q: load(q).fingerprint if not str(q).endswith(":test") else load(str(q)).fingerprint,
    "expand_judgments": lambda q: expand_judgments(q, out="expanded.tsv"),
    "describe": weir.describe,
}
"""Every function that takes judgments or a collection."""
ALIKE = {"audits", "estimate", "evaluate collection", "next_queries"}
"""Functions that say the same of both collections, whose self-matches count alike."""
WITHOUT_RULES = {"agree", "rank_agreement", "relabel judged", "expand_judgments", "load", "describe"}


def test_the_table_holds_every_function_that_takes_judgments():
    names = {name for name in dir(weir) if not name.startswith("_")}
    takers = {
        name for name in names
        if inspect.isfunction(of := getattr(weir, name)) and {"qrels", "collection"} & set(inspect.signature(of).parameters)
    }  # fmt: skip
    elsewhere = {
        "official_scores",
        "fitness",
        "verify",
        "reproduce",
        "p_mrr",
        "judge",
        "results",
        "report",
        "align",
        "audits",
        "benchmark",
        "gate_sequentially",
        "with_document_rules",
    }
    assert takers - elsewhere <= set(TAKERS)


def values(result: object) -> str:
    if isinstance(result, np.ndarray):
        return repr(result.tolist())
    return (
        json.dumps(json_value(result), default=str) if not isinstance(result, (str, tuple)) else repr(result)
    )


@pytest.mark.parametrize("taker", TAKERS)
def test_one_path_means_the_same_however_it_is_spelled(
    taker: str, place: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(place)
    dataset = load(place / NAME)
    if taker in ("evaluate", "evaluate collection"):
        expected = values(weir.evaluate(dataset.qrels, ONE, MEASURES, collection=dataset).values)
    else:
        expected = values(TAKERS[taker](place / NAME))
    for spelling, of in SPELLINGS.items():
        if spelling == "split" and taker == "expand_judgments":
            continue
        assert values(TAKERS[taker](of(place))).replace("brook-arguments:test", NAME) == expected, spelling


@pytest.mark.filterwarnings("default")
def test_files_beside_those_that_are_read_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    write_own(tmp_path / "c")
    for name in ("queries.tsv", "corpus.jsonl.gz", "qrels/test.txt", "qrels/test.md"):
        (tmp_path / "c" / name).write_bytes(b"d00 0 d09 1\n")
    assert main(["data", "stats", str(tmp_path / "c")]) == 0
    said = [line.rpartition("/")[2] for line in capsys.readouterr().err.splitlines() if "is not read" in line]
    assert sorted(said) == ["corpus.jsonl is", "queries.jsonl is", "test.tsv is"]


def test_the_rules_of_a_folder_decide_and_not_those_of_a_name(place: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(place)
    dropped = weir.evaluate(f"{NAME}/qrels/test.tsv", ONE, "RR", "self_matches=drop").values
    kept = weir.evaluate(f"{NAME}/qrels/test.tsv", ONE, "RR").values
    assert (weir.evaluate(f"./{NAME}", ONE, "RR").values == dropped).all()
    assert (dropped > kept).any()


@pytest.mark.parametrize("taker", sorted(TAKERS.keys() - WITHOUT_RULES))
def test_a_bare_name_never_reads_a_folder(taker: str, place: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(place)
    of_folder = values(TAKERS[taker](f"./{NAME}"))
    with pytest.warns(NameNote, match=f"{NAME} is the catalogue's; the folder is ./{NAME}"):
        of_name = _answer(TAKERS[taker], NAME)
    assert taker in ALIKE or of_name != of_folder


def _answer(taker: Callable[[object], object], name: str) -> str:
    try:
        return values(taker(name))
    except WeirError as error:  # the rankings are of another collection
        return str(error)


@pytest.mark.parametrize("taker", TAKERS)
def test_an_empty_name_is_refused(taker: str, place: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(place)
    with pytest.raises(BadValue, match="empty name; is a variable unset"):
        TAKERS[taker]("")


def test_a_name_of_the_catalogue_that_is_not_here_says_so_and_the_folder_is_read_by_its_path(
    place: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(place)
    shutil.copytree(NAME, "scifact", dirs_exist_ok=True)
    monkeypatch.setenv("WEIR_HOME", str(place / "home"))
    with (
        pytest.warns(NameNote),
        pytest.raises(DownloadError, match=r"the folder of that name here is \./scifact"),
    ):
        load("scifact")
    expected = weir.evaluate(f"./{NAME}", ONE, "RR").values
    assert (weir.evaluate("./scifact", ONE, "RR").values == expected).all()
    assert main(["eval", "./scifact", ONE]) == main(["diff", "scifact/", ONE, TWO]) == 0
    shutil.rmtree("scifact")


def test_the_home_folder_is_meant_by_a_leading_tilde(place: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", str(place))
    assert load(f"~/{NAME}").name == NAME
    assert names_collection(f"~/{NAME}")
    assert weir.Run.load("~/one.trec").queries.tolist()


# Folders of results wherever rankings stand.


@pytest.fixture(scope="module")
def results(place: Path) -> Path:
    folder = place / "results"
    argv = ["run", "-d", str(place / NAME), "-s", "bm25", "-s", "bm25(k1=2.0)", "-o", str(folder), "-q"]
    assert main(argv) == 0
    return folder


def test_a_folder_of_a_system_is_its_ranking(results: Path, place: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(place)
    cells = sorted(path.parent for path in results.glob("*/*/scores-*.jsonl"))
    of_runs: dict[str, Callable[[object, object], object]] = {
        "evaluate": lambda a, _: weir.evaluate(NAME + "/", a).values,
        "power": lambda a, b: weir.power(NAME + "/", a, b, "RR"),
        "fuse": lambda a, b: weir.fuse([a, b]).to_dict(),
        "fit_fusion": lambda a, b: weir.fit_fusion(NAME + "/", [a, b], "wsum", "RR", folds=2).held_out,
        "threshold": lambda a, _: weir.threshold(NAME + "/", a, "RR", max_false=0.9),
        "gate": lambda a, b: weir.gate(NAME + "/", a, b, "RR"),
        "why": lambda a, b: weir.why(NAME + "/", a, b, measure="RR"),
        "diff": lambda a, b: weir.diff(NAME + "/", a, b, measure="RR"),
        "holes": lambda a, b: holes(NAME + "/", a, b, human=LABELS),
        "reranking": lambda a, _: reranking(a, a, qrels=NAME + "/"),
        "judging_pool": lambda a, b: judging_pool(NAME + "/", a, b),
    }
    assert len(cells) == 2
    for name, of in of_runs.items():
        files = values(of(*(cell / "run.trec" for cell in cells)))
        assert values(of(*map(str, cells))) == files, name


def test_a_results_folder_is_all_its_rankings(results: Path, place: Path, monkeypatch, capsys):
    monkeypatch.chdir(place)
    for folder in (results, results / NAME):
        compared = weir.compare(NAME + "/", folder, measures="RR")
        assert [len(one.standings) for one in compared] == [2]
        assert main(["eval", f"./{NAME}", str(folder), "-m", "RR"]) == 0
        assert capsys.readouterr().out.count("bm25-") == 2
        with pytest.raises(BadValue, match="holds 2 rankings; name the folder of one: bm25-"):
            weir.evaluate(NAME + "/", folder)
    with pytest.raises(FormatError, match="no result of weir run"):
        weir.evaluate(NAME + "/", place / "other")


# Several collections in one folder or zip.


def several(at: Path, *names: str) -> Path:
    for number, name in enumerate(names):
        write_own(at / name, 20 * number)
    return at


def zipped(folder: Path) -> Path:
    target = folder.with_suffix(".zip")
    with zipfile.ZipFile(target, "w") as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                archive.write(path, path.relative_to(folder.parent).as_posix())
    return target


@pytest.mark.filterwarnings("ignore:no document that was returned is judged")
@pytest.mark.parametrize("kind", ["folder", "zip", "above"])
def test_of_several_collections_one_must_be_chosen(kind: str, tmp_path: Path):
    top = several(tmp_path / "cqadupstack", "android", "english")
    source = {"folder": top, "zip": zipped(top), "above": tmp_path / "above"}[kind]
    if kind == "above":
        shutil.move(top, source / "cqadupstack")
    run = {"d20": {"d21": 1.0}, "d00": {"d02": 1.0}}
    for name in (str(source), source):
        with pytest.raises(
            FormatError, match=r"found 2 collections \(.*android, .*english\); expected one of them"
        ):
            weir.evaluate(name, run, "RR")
    prefix = {"folder": "", "zip": "cqadupstack/", "above": "cqadupstack/"}[kind]
    for name, first, score in (("android", "d00", 0.0), ("english", "d20", 1.0)):
        dataset = load(f"{source}#{prefix}{name}")
        assert dataset.corpus.ids.tolist()[0] == dataset.qrels.queries.tolist()[0] == first
        assert len(dataset.qrels) == 15
        assert weir.evaluate(f"{source}#{prefix}{name}", run, "RR").values[0][0] == score
    with pytest.raises(WeirError, match="french"):
        load(f"{source}#french")


def test_one_collection_of_a_zip_stands_however_deep(tmp_path: Path):
    top = several(tmp_path / "top", "only")
    assert len(load(zipped(top)).qrels) == 15
    write_own(top / "only" / "old")  # within it, and so none beside it
    assert len(load(zipped(top)).qrels) == 15


def test_zips_within_a_zip_are_named(tmp_path: Path):
    for name in ("android", "english"):
        several(tmp_path / name, "x")
        zipped(tmp_path / name)
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        for name in ("android", "english"):
            archive.write(tmp_path / f"{name}.zip", f"{name}.zip")
    with pytest.raises(
        FormatError, match=r"zips within it \(android.zip, english.zip\); expected it unpacked"
    ):
        load(tmp_path / "all.zip")


def test_a_part_of_a_folder_shares_what_lies_above_it(tmp_path: Path):
    top = several(tmp_path / "shared", "fr", "de")
    shutil.copy(top / "fr" / "corpus.jsonl", top / "corpus.jsonl")
    for name in ("fr", "de"):
        (top / name / "corpus.jsonl").unlink()
    dataset = load(f"{top}#de")
    assert dataset.qrels.queries.tolist()[0] == "d20"
    assert dataset.corpus.ids.tolist()[0] == "d00"


def test_languages_side_by_side_in_the_hubs_layout_are_several_collections(tmp_path: Path):
    for number, name in enumerate(("fr", "de")):
        own = tmp_path / "own" / name
        write_own(own, 20 * number)
        for part in ("corpus", "queries"):
            (tmp_path / "miracl" / name / part).mkdir(parents=True)
            shutil.copy(own / f"{part}.jsonl", tmp_path / "miracl" / name / part / "test.jsonl")
        shutil.copytree(own / "qrels", tmp_path / "miracl" / name / "qrels")
    with pytest.raises(WeirError, match=r"de, fr"):
        load(tmp_path / "miracl")
    assert load(f"{tmp_path}/miracl#de").qrels.queries.tolist()[0] == "d20"
    assert len(load(f"{tmp_path}/miracl#fr").qrels) == 15


def test_the_folders_of_a_file_say_its_collection():
    paths = {
        "corpus/test-00000-of-00001.parquet": ("documents", "", "test"),
        "corpus.jsonl": ("documents", "", ""),
        "data/corpus.jsonl": ("documents", "", ""),
        "data/test-00000-of-00001.parquet": ("judgments", "", "test"),
        "android/corpus.jsonl": ("documents", "android", ""),
        "android/qrels/test.tsv": ("judgments", "android", "test"),
        "top/android/qrels/dev.tsv": ("judgments", "top/android", "dev"),
        "fr/queries/dev.jsonl": ("queries", "fr", "dev"),
        "fr-corpus/test-00000-of-00001.parquet": ("documents", "fr", "test"),
        "qrels/de/test.tsv": ("judgments", "de", "test"),
        "corpus/biology/0000.parquet": ("documents", "", "biology"),
    }
    for path, expected in paths.items():
        [part] = parts_of([path])
        assert (part.role, part.subset, part.split) == expected, path


# Folders within TOML files, and golden sets.


def test_a_description_may_name_the_folder_of_a_collection(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    write_own(tmp_path / "kb")
    (tmp_path / "shop.toml").write_text(
        'documents = "kb"\nqueries = "kb/queries.jsonl"\nqrels = "kb"\n', encoding="utf-8"
    )
    dataset = load(tmp_path / "shop.toml")
    assert len(dataset.corpus) == 16
    assert len(dataset.qrels) == 15
    (tmp_path / "empty").mkdir()
    (tmp_path / "shop.toml").write_text(
        'documents = "empty"\nqueries = "kb"\nqrels = "kb"\n', encoding="utf-8"
    )
    assert main(["data", "stats", str(tmp_path / "shop.toml")]) == 2
    assert "no part of a collection" in capsys.readouterr().err


def test_a_golden_set_that_leaves_a_column_open_names_the_command_that_takes_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    golden = tmp_path / "golden.csv"
    golden.write_text("question,docs\nwhy,d1\n", encoding="utf-8")
    assert main(["run", "-d", str(golden), "-s", "bm25", "-o", str(tmp_path / "r")]) == 2
    assert f"weir data import {golden} -o FOLDER" in capsys.readouterr().err


def test_what_is_no_file_to_import_is_told_from_what_is(tmp_path, capsys):
    """A collection, results and other folders, each with what to do; rankings alone are no collection."""
    one = write_collection(tmp_path / "one")
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a.csv").write_text("query,doc,score\nq1,d1,2\n", encoding="utf-8")
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "grid.json").write_text("{}", encoding="utf-8")
    for folder, said in (
        (one, "a folder of a collection, which needs no import: weir run -d"),
        (tmp_path / "results", "a folder of results, which need no import"),
        (tmp_path / "files", f"name the files that are imported: {tmp_path}/files/a.csv"),
    ):
        assert main(["data", "import", str(folder), "-o", str(tmp_path / "out")]) == 2
        assert said in capsys.readouterr().err
    (tmp_path / "r.trec").write_text("q1 Q0 d1 1 2.0 r\n", encoding="utf-8")
    assert main(["run", "-d", str(tmp_path / "r.trec"), "-s", "bm25", "-o", str(tmp_path / "o")]) == 2
    assert f"{tmp_path}/r.trec: found rankings and no part of a collection" in capsys.readouterr().err


def test_a_folder_of_several_systems_is_several_runs_to_compare(tmp_path, capsys):
    one = write_collection(tmp_path / "one")
    argv = [
        "run",
        "-d",
        str(one),
        "-s",
        "bm25",
        "-s",
        "bm25(b=0.0)",
        "-m",
        "RR",
        "-o",
        str(tmp_path / "res"),
        "-q",
    ]
    assert main(argv) == 0
    capsys.readouterr()
    assert main(["compare", str(one), str(tmp_path / "res"), "-m", "RR"]) == 0
    assert capsys.readouterr().out.count("bm25") > 2
    cell, _ = sorted(path.parent for path in tmp_path.glob("res/*/*/run.trec"))
    assert main(["compare", str(one), str(cell), "-m", "RR"]) == 2
    assert "found one ranking" in capsys.readouterr().err


def test_a_folder_is_no_file_to_write(place: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["fuse", "rrf", str(place / ONE), str(place / TWO), "-o", f"{place}/new/"]) == 2
    assert capsys.readouterr().err.endswith("/new/, a folder; expected a file\n")
    assert not (place / "new").exists()
