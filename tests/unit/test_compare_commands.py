"""Comparisons of files and folders, in Python and on the command line: verdicts, exit codes, mistakes."""

from __future__ import annotations

import csv
import json
import re
from itertools import combinations
from pathlib import Path

import pytest

import weir
from tests.unit.brooklet import SMALL_QRELS, SMALL_RUN, write_collection, written_files
from tests.unit.cells import MANIFEST, RUN, write_cell
from tests.unit.test_imports import HEAVY, modules_after
from weir.cli import main
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.errors import BadValue
from weir.experiment.comparing import compare_cells, lacking_notes
from weir.experiment.results import finished_cells
from weir.measures.evaluate import distinct_names

QRELS = {f"q{n}": {"d": 1} for n in range(12)}
GOOD = {f"q{n}": {"d": 2.0, "x": 1.0} for n in range(12)}
POOR = {f"q{n}": {"x": 2.0, "d": 1.0} for n in range(11)}


def write_run(path, run) -> str:
    lines = [f"{q} Q0 {d} 0 {s} t" for q, row in run.items() for d, s in row.items()]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


@pytest.fixture
def files(tmp_path):
    qrels = tmp_path / "qrels.tsv"
    qrels.write_text("\n".join(f"{q} 0 d 1" for q in QRELS) + "\n")
    return str(qrels), write_run(tmp_path / "good.trec", GOOD), write_run(tmp_path / "poor.trec", POOR)


def test_compare_in_python():
    found = weir.compare(QRELS, {"good": GOOD, "poor": POOR}, ["RR", "P@1"])
    assert [c.measure for c in found] == ["RR", "P@1"]
    pair = found[0].pairs[0]
    assert (pair.first, pair.second, pair.verdict, pair.lost) == ("good", "poor", "worse", 12)
    assert pair.p == 2 / 2**12
    assert "poor - good" in str(found)
    runs = [Run.of(GOOD, "good"), Run.of(POOR, "poor")]
    assert weir.compare(QRELS, runs, ["RR", "P@1"]) == found
    by_name = {"good": weir.evaluate(QRELS, GOOD, ["RR"]), "poor": weir.evaluate(QRELS, POOR, ["RR"])}
    assert weir.compare(by_name)[0].pairs == found[0].pairs
    listed = weir.compare(list(by_name.values()))
    assert [s.system for s in listed[0].standings] == ["first", "second"]
    assert (
        weir.compare(*by_name.values())[0].pairs == listed[0].pairs
    )  # two results of evaluate, side by side
    assert weir.compare(QRELS, *runs, ["RR", "P@1"]) == found
    assert weir.compare(QRELS, *runs, measures=["RR", "P@1"]) == found
    assert weir.compare(QRELS, GOOD, POOR, "RR")[0].pairs == listed[0].pairs
    with pytest.raises(
        BadValue, match=r"found one ranking; expected two or more, such as compare\(qrels, one, other\)"
    ):
        weir.compare(QRELS, GOOD)
    against = weir.compare(
        QRELS, runs, "RR", baseline="good", method=weir.stats.ComparisonMethod("t", "none")
    )[0]
    assert (against.pairs[0].verdict, against.method.test) == ("worse", "t")
    with pytest.raises(BadValue, match="found list alone; rankings are compared against judgments"):
        weir.compare(runs)
    with pytest.raises(BadValue, match="judgments come first, then two or more rankings"):
        weir.compare(runs, Qrels.of(QRELS))
    for named in ({"good": GOOD, "poor": POOR}, dict(zip("ab", runs, strict=True))):
        with pytest.raises(BadValue, match="found rankings by name as the judgments"):
            weir.compare(named, QRELS)
    with pytest.raises(BadValue, match="at least two systems; found 1"):
        weir.compare(QRELS, runs[:1])
    assert distinct_names(["a", "b", "a"], ["x/a", "b", "y/a"]) == ["x/a", "b", "y/a"]


def test_a_baseline_is_named_as_those_are_that_can_be_scored(tmp_path, capsys, monkeypatch):
    """One of two runs of a name is of other queries; the other one goes by the name, or by its path."""
    monkeypatch.chdir(tmp_path)
    weir.Qrels.of(QRELS).save("qrels.tsv")
    for place, run in (("old", {"x": ["d1"]}), ("new", GOOD), ("new", POOR)):
        Path(place).mkdir(exist_ok=True)
        weir.Run.of(run).save(f"{place}/{'poor' if run is POOR else 'BM25'}.trec")
    paths = ["old/BM25.trec", "new/BM25.trec", "new/poor.trec"]
    for baseline in ("BM25", "new/BM25.trec", "BM25.trec"):
        assert main(["compare", "qrels.tsv", *paths, "-m", "RR", "--baseline", baseline]) == 2
        out, err = capsys.readouterr()
        assert "poor - BM25" in out
        assert err.count("left out: old/BM25.trec: ") == 1
    assert main(["compare", "qrels.tsv", *paths, "-m", "RR", "--baseline", "old/BM25.trec"]) == 2
    assert "the baseline 'old/BM25.trec' cannot be scored: old/BM25.trec" in capsys.readouterr().err


def test_compare_files(files, capsys):
    qrels, good, poor = files
    assert main(["compare", qrels, good, poor, "-m", "RR", "--baseline", "poor"]) == 0
    out, err = capsys.readouterr()
    assert "RR on qrels.tsv (12 queries)" in out
    assert re.search(r"good - poor .* better\n", out)
    assert "note: poor: 1 of 12 judged queries are not answered and score 0" in err
    for form in ("--json", "--csv", "--latex", "--markdown"):
        assert main(["compare", qrels, good, poor, "-m", "RR", form]) == 0
        assert "good" in capsys.readouterr().out
    assert main(["compare", qrels, good, poor, "-m", "RR", "--json", "--draws", "50", "--seed", "3"]) == 0
    method = json.loads(capsys.readouterr().out)["method"]
    assert (method["draws"], method["seed"]) == (50, 3)
    assert main(["compare", qrels, good, poor, "-m", "RR", "--csv"]) == 0
    [pair] = csv.DictReader(capsys.readouterr().out.splitlines())
    means = float(pair["second_mean"]) - float(pair["first_mean"])
    assert means == pytest.approx(float(pair["difference"]))


def test_compare_a_results_folder(tmp_path, capsys):
    collections = [str(write_collection(tmp_path / n, mark=m)) for n, m in (("first", ""), ("second", "?"))]
    results = str(tmp_path / "results")
    run = [
        "run",
        *(a for c in collections for a in ("-d", c)),
        "-s",
        "bm25",
        "-s",
        "rm3",
        "-m",
        "AP",
        "-o",
        results,
    ]
    assert main([*run, "-q"]) == 0
    capsys.readouterr()
    assert main(["compare", results, "--json"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(c["dataset"], c["count"], c["unit"]) for c in found] == [
        ("first", 4, "queries"),
        ("second", 4, "queries"),
        ("2 datasets", 2, "datasets"),
    ]
    means = {s["system"]: s["mean"] for s in found[0]["standings"]}
    assert {s["system"]: s["mean"] for s in found[2]["standings"]} == means
    assert weir.compare(results) == weir.compare(tmp_path / "results")
    assert weir.compare(results)[0].dataset == "first"
    assert weir.results(results) == weir.results(tmp_path / "results")
    fewer = [c for c in finished_cells(Path(results)) if (c.dataset, c.system) != ("first", "rm3")]
    assert lacking_notes(fewer) == ["first is left out: it has bm25 alone"]
    report = ["report", results, "-o", str(tmp_path / "report.html")]
    for command in ["compare", results], ["results", results], ["study", "efficiency", results], report:
        assert main([*command, "-m", "RR"]) == 2
        said = "no measure among these results named 'RR' (the same weir run with this measure adds it)"
        assert said in capsys.readouterr().err
    again = ["run", "-d", collections[1], "-s", "bm25", "-s", "rm3", "-m", "RR", "-o", results, "-q"]
    assert main(again) == 0
    capsys.readouterr()
    assert main(["compare", results, "-m", "RR"]) == 0
    out, err = capsys.readouterr()
    assert "RR on second (4 queries)" in out
    assert "RR on first" not in out
    assert "note: bm25 on first and 1 more are left out of RR" in err
    assert main(["compare", results, "--baseline", "bm26"]) == 2
    assert "did you mean bm25" in capsys.readouterr().err
    assert (
        main(["run", "-d", collections[0], "-s", "bm25", "-m", "AP", "-o", str(tmp_path / "one"), "-q"]) == 0
    )
    capsys.readouterr()
    assert main(["compare", str(tmp_path / "one")]) == 2
    assert "no dataset has two systems" in capsys.readouterr().err


def test_power(files, capsys):
    qrels, good, poor = files
    write = ["power", qrels, good, poor, "-m", "RR", "-m", "P@1"]
    assert main([*write, "--effect", "0.05"]) == 0
    out = capsys.readouterr().out
    assert "RR: 12 queries, poor minus good -0.5417, standard deviation 0.1443" in out
    assert re.search(r"0\.05 +\d+\.\d% +\d+\n", out)
    assert main([*write, "--json"]) == 0
    plans = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [p["measure"] for p in plans] == ["RR", "P@1"]
    assert [n["effect"] for n in plans[0]["needs"]] == [0.01, 0.02, 0.05]
    assert main([*write, "--effect", "0.00000001"]) == 0
    assert "more than 10,000,000" in capsys.readouterr().out


def test_gate_exits_with_its_verdict(files, capsys):
    qrels, good, poor = files
    assert main(["gate", qrels, poor, good, "-m", "RR"]) == 0
    assert capsys.readouterr().out.startswith("pass  RR: candidate - baseline +0.5417, lower bound +")
    assert main(["gate", qrels, good, poor, "-m", "RR", "-m", "R@10"]) == 1
    out = capsys.readouterr().out.splitlines()
    assert [li.split(":")[0] for li in out if li[:1].strip()] == ["FAIL  RR", "UNDECIDED  R@10", "FAIL"]
    assert main(["gate", qrels, good, poor, "-m", "RR", "--max-drop", "0.9", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["passed"] is True


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["compare", "Q", "A"], "expected judgments and two or more runs, or one results folder"),
        (["compare", "Q", "A", "A"], "two of the systems are named"),
        (
            ["compare", "Q", "A", "B", "--baseline", "goof"],
            "no system to be the baseline named 'goof'; did you mean",
        ),
        (["compare", "Q", "A", "B", "--test", "fisher"], "no test named 'fisher'"),
        (["compare", "Q", "A", "B", "--level", "95"], "the level is 95"),
        (["compare", "Q", "A", "B", "--level", "0.05"], "for tests at 0.05 the level is 0.95"),
        (["compare", "Q", "A", "B", "-m", "RRR"], "no measure named"),
        (["compare", "missing", "A", "B"], "missing"),
        (["power", "Q", "A", "B", "--effect", "0"], "the difference to find is 0"),
        (["power", "Q", "A", "B", "--alpha", "2"], "alpha is 2"),
        (["gate", "Q", "A", "B", "--max-drop", "-1"], "the allowed drop is -1"),
        (["gate", "Q", "A", "missing"], "missing"),
        (["gate", "Q", "A", "B", "--interval", "x"], "no interval named 'x'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_a_mistake_is_one_line(files, tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    named = dict(zip("QAB", files, strict=True))
    assert main([named.get(a, a) for a in arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[-1].startswith("weir: ")
    assert message in err.splitlines()[-1]


@pytest.mark.parametrize("command", ["compare", "power", "gate"])
def test_comparing_needs_numpy_alone_and_its_help_not_even_that(files, command):
    assert not modules_after(f"from weir.cli import main\nassert main(['{command}', '--help']) == 0") & (
        HEAVY | {"numpy"}
    )
    arguments = [command, *files, "-m", "RR"]
    assert not modules_after(f"from weir.cli import main\nassert main({arguments!r}) < 2") & HEAVY


def test_a_dataset_of_one_query_counts_across_datasets_and_stops_nothing(tmp_path):
    """A grid with a collection of a single query is shown, compared across, ranked on a site and reported."""
    relevant, names = {"one": ["d1"], "two": ["d2", "d3"], "six": ["d1", "d2", "d3", "d4", "d5", "d6"]}, []
    documents = {f"d{n}": f"weir number{n}" for n in range(9)}
    for name, of in relevant.items():
        queries = {f"q{n}": f"number{doc[1:]}" for n, doc in enumerate(of)}
        judged = {f"q{n}": {doc: 1} for n, doc in enumerate(of)}
        names.append(weir.Dataset.of(documents, queries, judged, name=name))
    made = weir.benchmark(names, ["bm25", "rm3"], "RR", out=tmp_path / "r")
    assert "mean of 3 datasets" in str(made)
    for baseline in (None, "bm25"):
        comparisons = weir.compare(tmp_path / "r", measures="RR", baseline=baseline)
        assert [(c.dataset, c.count) for c in comparisons] == [("two", 2), ("six", 6), ("3 datasets", 3)]
        assert any("one has one judged query" in str(note) for note in comparisons.notes())
    [tally] = comparisons[-1].tallies
    assert (tally.better, tally.worse, tally.not_separable) == (0, 0, 3)
    assert main(["results", str(tmp_path / "r")]) == 0
    assert main(["report", str(tmp_path / "r"), "-q", "--no-audit", "-o", str(tmp_path / "p.html")]) == 0
    with pytest.raises(BadValue, match="no dataset has two queries"):
        weir.compare(tmp_path / "r", datasets=["one"])


def test_one_judged_query_is_not_enough(tmp_path, capsys):
    (tmp_path / "q").write_text("q1 0 d 1\n")
    runs = [write_run(tmp_path / name, {"q1": {"d": 1.0}}) for name in ("a", "b")]
    for command in ("compare", "power", "gate"):
        assert main([command, str(tmp_path / "q"), *runs, "-m", "RR"]) == 2
        said = "q has one query with a value" if command == "gate" else "the systems share one query only"
        assert said in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore::weir.errors.RankingWarning")
def test_eval_and_compare_call_a_run_alike(tmp_path, capsys):
    qrels, run = written_files(tmp_path, q__txt=SMALL_QRELS, BM25__trec=SMALL_RUN)
    other = tmp_path / "other.trec"
    other.write_text(SMALL_RUN.replace("2.5", "0.5"))
    assert main(["eval", str(qrels), str(run), "-m", "RR", "--json"]) == 0
    assert json.loads(capsys.readouterr().out.split("\n")[0])["system"] == "BM25"
    assert main(["compare", str(qrels), str(run), str(other), "-m", "RR"]) == 0
    assert "BM25 " in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore::weir.errors.RankingWarning")
def test_names_of_tests_and_effects_say_what_they_are(tmp_path, capsys):
    assert main(["compare", "--help"]) == 0
    assert "randomised" in capsys.readouterr().out.lower()
    qrels, a, b = written_files(
        tmp_path, q__txt=SMALL_QRELS, a__trec=SMALL_RUN, b__trec=SMALL_RUN.replace("2.5", "0.5")
    )
    assert main(["compare", str(qrels), str(a), str(b), "-m", "RR", "--long", "--explain"]) == 0
    out = capsys.readouterr().out
    assert "Hedges' g" in out
    assert "2 queries are too few for a test: however large the difference, p (permutation)" in out


def test_a_run_that_is_left_out_is_named(tmp_path, capsys):
    names = [
        str(path)
        for path in written_files(
            tmp_path, qrels=SMALL_QRELS, a=SMALL_RUN, b=SMALL_RUN, c="01 Q0 d1 1 2.5 x\n"
        )
    ]
    assert main(["compare", *names, "-m", "RR"]) == 2
    assert (
        f"left out: {names[-1]}: the run and the judgments have no query in common" in capsys.readouterr().err
    )


def test_judgments_are_called_as_their_collection_or_file(tmp_path):
    news = weir.load("brook-news")
    runs = {
        name: {q: list(news.corpus.ids)[:n] for q in news.qrels.queries} for name, n in (("a", 9), ("b", 5))
    }
    scores = {name: weir.evaluate(news.qrels, run, "RR") for name, run in runs.items()}
    news.qrels.save(tmp_path / "mine.tsv")
    rows = [("system", "measure", "query", "value")]
    rows += [
        (name, "RR", q, value) for name, one in scores.items() for q, value in one["RR"].to_dict().items()
    ]
    (tmp_path / "values.csv").write_text("".join(",".join(map(str, row)) + "\n" for row in rows))
    for judged, name in (
        *((news.qrels, "brook-news"), (news, "brook-news"), ("brook-news", "brook-news")),
        *((weir.Qrels.load(tmp_path / "mine.tsv"), "mine.tsv"), (news.qrels.to_dict(), "the judged queries")),
    ):
        assert f"RR on {name} (16 queries)" in str(weir.compare(judged, runs, "RR"))
        assert weir.gate(judged, runs["a"], runs["b"], "RR", max_drop=0.9)[0].dataset == name
    assert "RR on brook-news" in str(weir.compare(scores))
    assert "RR on values.csv" in str(weir.compare(tmp_path / "values.csv"))


def test_who_is_not_ranked_across_datasets_is_named(tmp_path):
    """For every pair of holes in a grid of 3 systems on 3 datasets: a note names who has no rank, and nobody else."""
    grid = [(dataset, system) for dataset in ("one", "two", "six") for system in ("bm25", "mine", "rm3")]
    for dataset, system in grid:
        run = {query: {"d1": 3.0, "d3": 2.0} if system == "rm3" else ranked for query, ranked in RUN.items()}
        manifest = {**MANIFEST, "dataset": dataset, "system": {"system": system}}
        write_cell(tmp_path / dataset / system, run, manifest, ("nDCG@10",))
    cells = finished_cells(tmp_path)
    for left in combinations(grid, 2):
        there = [cell for cell in cells if (cell.dataset, cell.system) not in left]
        ranked = [one for one in compare_cells(there) if one.unit == "datasets"]
        standing = {one.system for whole in ranked for one in whole.standings}
        said = [one for one in lacking_notes(there) if one.startswith("left out across datasets")]
        named = {name for name in ("bm25", "mine", "rm3") if any(f" {name} (on " in one for one in said)}
        datasets = [d for d in ("one", "two", "six") if sum(cell.dataset == d for cell in there) > 1]
        compared = {cell.system for cell in there if cell.dataset in datasets}
        assert named == compared - standing or not ranked, (left, said)
