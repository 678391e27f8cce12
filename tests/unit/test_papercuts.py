"""Papercuts that people found, one test for each that no other file holds.

Held elsewhere: the walk-throughs of CONTRIBUTING (conformance/test_walkthroughs.py); bare `weir`, SIGTERM, terminals
(test_cli.py, test_hostile_terminal.py); the judged rate beside whatever is asked (test_results_commands.py); an explained
difference is no miss (test_reproduce.py); steps and rate of progress (test_dense_kills.py, test_efficiency.py); packed and
foreign files (test_trec.py, test_hostile_input.py); gates (test_gate.py); other tools' files (test_import*.py).
"""

from __future__ import annotations

import json
import typing
from pathlib import Path

import pytest

import weir
from tests.unit.brooklet import write_collection
from weir.api.progress import Progress
from weir.cli import main
from weir.core.frames import FRAMES
from weir.core.intents import IntentQrels
from weir.core.scores import MeasureScores, Scores
from weir.errors import BadValue, FormatError, UnknownName, WeirError
from weir.experiment.results import ORDER, GridOrder, finished_cells, keep_order
from weir.files.formats import kind_of_file
from weir.files.runs import read_qrels, read_run
from weir.measures import parse_measure
from weir.systems import parse_system

QRELS = "q1 0 d1 1\nq2 0 d3 2\n"
TREC = "q1 Q0 d1 1 2.5 x\nq1 Q0 d9 2 1.5 x\nq2 Q0 d3 1 1.0 x\n"


def written(folder: Path, **files: str) -> list[Path]:
    paths = [folder / name.replace("__", ".") for name in files]
    for path, text in zip(paths, files.values(), strict=True):
        path.write_text(text)
    return paths


def test_weir_says_its_version_and_lists_systems_without_numba(monkeypatch, capsys):
    assert weir.__version__[0].isdigit()
    monkeypatch.setitem(__import__("sys").modules, "numba", None)
    assert main(["list", "systems"]) == 0
    assert "bm25(" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("asked", "means"),
    [
        ("Recall@10", "R@10"),
        ("MAP", "AP"),
        ("precision@5", "P@5"),
        ("recip_rank", "RR"),
        ("ndcg_cut_10", "nDCG@10"),
    ],
)
def test_other_names_of_measures_are_understood(asked, means):
    assert str(weir.parse_measure(asked)) == means


def test_a_measure_is_described_by_its_name(capsys):
    assert main(["list", "measures", "nDCG"]) == 0
    assert "Discounted cumulative gain" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("system", "said"),
    [
        ("dense(mybert)", 'stands in quotes: model="mybert"'),
        ('dense("./no-folder")', "no checkpoint there; expected a folder"),
        ("bm26", "did you mean bm25"),
    ],
)
def test_a_model_that_is_not_there_is_said_so(system, said):
    with pytest.raises(WeirError, match=said):
        parse_system(system).describe()


def test_models_takes_an_expression(capsys):
    assert main(["list", "models", 'dense("minilm")']) == 0
    assert capsys.readouterr().out.startswith("model ")


def test_a_measure_comes_back_under_the_name_that_was_asked_for():
    scores = weir.evaluate({"q": {"a": 1}}, {"q": {"a": 1.0}}, ["AP(rel=1)"])
    assert scores["AP(rel=1)"].mean == scores["AP"].mean == 1.0


@pytest.mark.filterwarnings("ignore::weir.errors.RankingWarning")
def test_eval_and_compare_call_a_run_alike(tmp_path, capsys):
    qrels, run = written(tmp_path, q__txt=QRELS, BM25__trec=TREC)
    other = tmp_path / "other.trec"
    other.write_text(TREC.replace("2.5", "0.5"))
    assert main(["eval", str(qrels), str(run), "-m", "RR", "--json"]) == 0
    assert json.loads(capsys.readouterr().out.split("\n")[0])["system"] == "BM25"
    assert main(["compare", str(qrels), str(run), str(other), "-m", "RR"]) == 0
    assert "BM25 " in capsys.readouterr().out


def test_stats_takes_judgments_alone(tmp_path, capsys):
    (qrels,) = written(tmp_path, q__txt=QRELS)
    assert main(["data", "stats", str(qrels)]) == 0
    assert "judg" in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore::weir.errors.RankingWarning")
def test_names_of_tests_and_effects_say_what_they_are(tmp_path, capsys):
    assert main(["compare", "--help"]) == 0
    assert "randomised" in capsys.readouterr().out.lower()
    qrels, a, b = written(tmp_path, q__txt=QRELS, a__trec=TREC, b__trec=TREC.replace("2.5", "0.5"))
    assert main(["compare", str(qrels), str(a), str(b), "-m", "RR", "--long", "--explain"]) == 0
    out = capsys.readouterr().out
    assert "Hedges' g" in out
    assert "2 queries can show no difference, however large: permutation" in out


def grid(
    folder: Path, at: Path, systems: list[str], k: int = 1000, measures: tuple[str, ...] = ("nDCG@10",)
) -> None:
    weir.Experiment([folder], systems, measures, k).execute(at)


def test_results_stand_in_the_order_that_was_asked_for(tmp_path):
    folder, at = write_collection(tmp_path / "c"), tmp_path / "results"
    grid(folder, at, ["rm3"])
    grid(folder, at, ["bm25", 'bm25("elastic")', "rm3"])
    assert [cell.system for cell in finished_cells(at)] == ["rm3", "bm25", 'bm25("elastic")']
    (at / ORDER).write_text("{}")  # of a damaged order nothing is lost but itself
    assert {cell.system for cell in finished_cells(at)} == {"rm3", "bm25", 'bm25("elastic")'}
    keep_order(at, ["c"], ["bm25"])
    keep_order(at, ["d"], ["rm3", "bm25"])
    assert GridOrder.read(at) == GridOrder(("c", "d"), ("bm25", "rm3"))
    assert finished_cells(at)[0].system == "bm25"


def test_what_differs_in_k_alone_is_one_system(tmp_path, capsys):
    folder, at = write_collection(tmp_path / "c"), tmp_path / "results"
    for k in (3, 50):
        grid(folder, at, ["bm25", "rm3"], k)
    assert [cell.label for cell in finished_cells(at)] == ["bm25 #k=3", "bm25", "rm3 #k=3", "rm3"]
    assert main(["compare", str(at), "-m", "nDCG@10"]) == 0
    out, err = capsys.readouterr()
    assert "adjusted over 1 comparison" in out
    assert "note: bm25 on c is compared with k=50 alone, not 3" in err
    assert main(["compare", str(at), "-m", "nDCG@10", "-s", "bm25", "-s", "bm25 #k=3"]) == 0
    assert "bm25 #k=3" in capsys.readouterr().out


def test_of_judgments_that_changed_the_last_count_alone(tmp_path, capsys):
    folder, at = write_collection(tmp_path / "c"), tmp_path / "results"
    judged = folder / "qrels" / "test.tsv"
    before, after = judged.read_text(), judged.read_text().replace("q1\td1\t2\n", "")
    for text in (before, after, before):  # the third run finds its scores made already
        judged.write_text(text)
        grid(folder, at, ["bm25", "rm3"])
        run = finished_cells(at)[0].run
        [mean] = weir.evaluate(judged, run, ["nDCG@10"]).means().values()
        assert [row.mean for row in weir.results(at) if row.system == "bm25"] == [mean]
    capsys.readouterr()
    assert main(["compare", str(at)]) == 0
    out, err = capsys.readouterr()
    assert "adjusted over 1 comparison" in out
    assert "note: 2 rankings were scored by other judgments before; the last ones asked for count" in err
    assert main(["verify", "-q", str(at)]) == 0
    assert main(["gate", "--save", str(tmp_path / "b.tsv"), str(at), "-s", "bm25"]) == 0
    assert main(["report", "-q", str(at), "-o", str(tmp_path / "report.html")]) == 0


def test_systems_of_other_judgments_are_not_compared(tmp_path, capsys):
    folder, at = write_collection(tmp_path / "c"), tmp_path / "results"
    grid(folder, at, ["bm25", "rm3", "bm25(b=0.9)"])
    judged = folder / "qrels" / "test.tsv"
    judged.write_text(judged.read_text().replace("q1\td1\t2\n", ""))
    grid(folder, at, ["bm25", "bm25(b=0.9)"])  # of rm3 there are the former judgments alone
    capsys.readouterr()
    assert main(["results", str(at)]) == 0
    other = "rm3 on c was scored by other judgments than the last ones asked for, and does not compare"
    assert f"note: {other}" in capsys.readouterr().err
    assert main(["compare", str(at), "--json"]) == 0
    out, err = capsys.readouterr()
    assert {s["system"] for s in json.loads(out)["standings"]} == {"bm25", "bm25(b=0.9)"}
    assert f"note: {other}: left out; the same weir run scores it again" in err
    assert main(["compare", str(at), "-s", "bm25", "-s", "rm3"]) == 2
    assert other in capsys.readouterr().err
    page = str(tmp_path / "report.html")
    assert main(["report", "-q", "--no-audit", "--markdown", str(at), "-o", page]) == 0
    assert "| rm3 |" not in capsys.readouterr().out
    assert main(["report", "-q", "--no-audit", str(at), "-s", "rm3", "-o", page]) == 2
    assert other in capsys.readouterr().err
    (folder / "corpus.jsonl").unlink()  # else both are scored again by the judgments that are here
    cells = {cell.system: str(cell.folder) for cell in finished_cells(at)}
    assert main(["diff", cells["bm25"], cells["rm3"]]) == 2
    assert "scored by different judgments" in capsys.readouterr().err


def test_systems_on_other_documents_of_one_name_do_not_meet(tmp_path, capsys):
    folder, at = write_collection(tmp_path / "c"), tmp_path / "results"
    grid(folder, at, ["bm25"])
    corpus = folder / "corpus.jsonl"
    corpus.write_text("".join(corpus.read_text().splitlines(keepends=True)[:-1]))
    grid(folder, at, ["rm3"])
    assert main(["results", str(at)]) == 0
    out, err = capsys.readouterr()
    assert "note: c: 2 collections of this name, of other documents or queries" in err
    assert "*" not in out.partition("nDCG")[2]  # neither is the best of anything
    assert main(["compare", str(at)]) == 2
    assert "no dataset has two systems" in capsys.readouterr().err


def test_results_of_one_system_on_each_collection_are_shown(tmp_path, capsys):
    at = tmp_path / "results"
    grid(write_collection(tmp_path / "c"), at, ["bm25"])
    grid(write_collection(tmp_path / "d"), at, ["rm3"])
    assert main(["results", str(at)]) == 0
    assert "bm25" in capsys.readouterr().out


def test_equal_systems_are_one(tmp_path, capsys):
    folder = write_collection(tmp_path / "c")
    arguments = ["-s", "bm25", "-s", "BM25", "-s", "bm25(k1=0.9)", "-m", "nDCG@10", "-o", str(tmp_path / "r")]
    assert main(["run", "-q", "-d", str(folder), *arguments]) == 0
    out, err = capsys.readouterr()
    assert out.count("bm25") == 1
    assert "differ" not in err
    assert "exactly the same" not in err


def test_compare_leaves_out_what_lacks_a_measure_and_names_it(tmp_path, capsys):
    folder, at = write_collection(tmp_path / "c"), tmp_path / "results"
    grid(folder, at, ["bm25", "rm3"], measures=("nDCG@10", "R@5"))
    grid(folder, at, ['bm25("elastic")'])
    assert main(["compare", str(at), "-m", "R@5"]) == 0
    out, err = capsys.readouterr()
    assert "rm3" in out
    assert 'bm25("elastic") on c is left out of R@5' in err


def test_a_benchmark_shows_which_systems_cannot_be_told_apart(tmp_path):
    few = weir.benchmark(write_collection(tmp_path / "c"), ["bm25", "rm3"], ["nDCG@10"])
    assert "share a letter" not in repr(few)
    assert "4 queries can show no difference, however large" in repr(few)
    table = weir.benchmark("brook-news", ["bm25", "rm3"], ["nDCG@10"])
    assert "share a letter" in repr(table)
    assert "share a letter" in table.to_markdown()
    assert "share a letter" not in repr(weir.benchmark(tmp_path / "c", "bm25", ["nDCG@10"]))


def test_a_benchmark_shows_progress_in_a_terminal_alone(tmp_path, capsys, monkeypatch):
    folder = write_collection(tmp_path / "c")
    weir.benchmark(folder, "bm25", ["nDCG@10"])
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    weir.benchmark(folder, "bm25", ["nDCG@10"])
    assert "search" in capsys.readouterr().err


def test_progress_says_rate_and_time_left(monkeypatch, capsys):
    moments = iter([0.0, 40.0, 80.0])
    monkeypatch.setattr("time.monotonic", lambda: next(moments))
    progress = Progress()
    for done in (0, 50, 100):
        progress("index", done, 200)
    assert capsys.readouterr().err.split("\n")[1] == "index  50/200  1.25/s, 0:02:00 left"


@pytest.mark.parametrize(
    "holder", [weir.Run, weir.Qrels, IntentQrels, Scores, MeasureScores, weir.ResultSet, weir.Benchmark]
)
def test_the_type_of_a_frame_follows_from_the_library_that_is_named(holder):
    stubs = typing.get_overloads(holder.to_frame)
    named = [stub.__annotations__["library"] for stub in stubs]
    assert named == [f"Literal['{library}']" for library in FRAMES]
    assert [stub.__annotations__["return"] for stub in stubs] == ["PandasFrame", "PolarsFrame", "ArrowTable"]


def test_json_lines_are_runs_and_judgments(tmp_path):
    rows = [{"qid": "q1", "docno": "d1", "score": 2.5}, {"qid": "q1", "docno": 9, "score": 1.5}]
    run, bare, qrels = written(
        tmp_path,
        r__jsonl="".join(json.dumps(row) + "\n" for row in rows),
        r="".join(json.dumps(row) + "\n\n" for row in rows),
        q__ndjson='{"query-id": "q1", "corpus-id": "d1", "relevance": 0.5, "origin": "human"}\n',
    )
    assert read_run(run).to_dict() == read_run(bare).to_dict() == {"q1": {"d1": 2.5, "9": 1.5}}
    assert read_qrels(qrels).to_dict() == {"q1": {"d1": 0.5}}
    assert read_qrels(qrels).origin.tolist() == ["human"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"qid": "q1", "score": 1.0}', "line 3: found no 'docno'; expected an identifier"),
        ('{"qid": "", "docno": "d", "score": 1.0}', "line 3: found qid ''"),
        ('{"qid": true, "docno": "d", "score": 1.0}', "line 3: found qid 'True'"),
        ('{"qid": "q", "docno": "d", "score": "1.0"}', "line 3: found score '1.0'; expected a finite number"),
        ('{"qid": "q", "docno": "d", "score": NaN}', "line 3: found score 'nan'"),
        ('{"qid": "q", "docno": "d"}', "line 3: found no 'score'"),
        ('["q", "d", 1.0]', "line 3: found .*one JSON object"),
        ('{"qid": "q1", "docno": "d1", "score": 1}', "line 3: query 'q1' ranks document 'd1' twice"),
    ],
)
def test_a_bad_line_of_json_lines_is_named(tmp_path, line, said):
    first = '{"qid": "q1", "docno": "d1", "score": 2.5}\n\n'
    (path,) = written(tmp_path, r__jsonl=first + line + "\n")
    with pytest.raises(WeirError, match=said):
        read_run(path)


def test_rankings_are_lists_and_judgments_are_lists_of_what_is_relevant(tmp_path):
    (path,) = written(tmp_path, r__json='{"q1": ["d2", "d1"], "q2": [["d3", 0.5]]}')
    assert list(read_run(path).to_dict()["q1"]) == ["d2", "d1"]
    assert read_run(path).to_dict()["q2"] == {"d3": 0.5}
    (qrels,) = written(tmp_path, q__json='{"q1": ["d2", "d1"]}')
    assert read_qrels(qrels).to_dict() == {"q1": {"d1": 1, "d2": 1}}
    with pytest.raises(FormatError, match="--kind run, in rank order, or --kind qrels"):
        kind_of_file(qrels)


def test_texts_stand_under_contents_too(tmp_path):
    rows = [{"id": "d1", "contents": "a low dam", "url": "http://x"}, {"id": "d2", "contents": "river"}]
    (path,) = written(tmp_path, corpus__jsonl="".join(json.dumps(row) + "\n" for row in rows))
    write_collection(tmp_path / "c")
    path.replace(tmp_path / "c" / "corpus.jsonl")
    corpus = weir.load(tmp_path / "c").corpus
    assert corpus.text.tolist() == ["a low dam", "river"]
    assert corpus.field_names == ("text", "url")


def test_ranks_are_no_grades(tmp_path):
    rows = [(query, f"d{n}", n) for query in ("q1", "q2") for n in range(6)]
    ranks, graded = written(
        tmp_path,
        ranks="".join(f"{q}\t{d}\t{n}\n" for q, d, n in rows),
        graded="".join(f"{q}\t{d}\t{n % 3}\n" for q, d, n in rows),
    )
    with pytest.raises(FormatError, match=r"count up from 0 for each query, as ranks do.*--as run-ranks"):
        read_qrels(ranks)
    assert read_qrels(graded).to_dict()["q2"]["d5"] == 2


def test_whole_numbers_under_score_are_asked_about(tmp_path):
    open_, run, lines = written(
        tmp_path,
        a__tsv="qid\tpid\tscore\n1\td\t1\n1\te\t0\n",
        b__tsv="qid\tpid\tscore\n1\td\t1.5\n1\te\t0\n",
        c__jsonl='{"qid": "1", "pid": "d", "score": 1}\n',
    )
    for path in (open_, lines):
        with pytest.raises(FormatError, match="whole numbers as scores; expected --kind run or --kind qrels"):
            kind_of_file(path)
    assert kind_of_file(run) == "run"
    arrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    for values, kind in (([1, 0], None), ([1.5, 0.0], "run")):
        table = arrow.table({"q_id": ["1", "1"], "doc_id": ["d", "e"], "score": values})
        pyarrow.parquet.write_table(table, tmp_path / "t.parquet")
        if kind is None:
            with pytest.raises(FormatError, match="whole numbers as scores"):
                kind_of_file(tmp_path / "t.parquet")
        else:
            assert kind_of_file(tmp_path / "t.parquet") == kind


def test_a_system_that_is_not_in_a_folder_is_named(tmp_path, capsys):
    folder, at = write_collection(tmp_path / "c"), tmp_path / "results"
    grid(folder, at, ["bm25"])
    assert main(["results", str(at), "-s", "rm3"]) == 2
    assert "no system among these results named 'rm3'" in capsys.readouterr().err
    with pytest.raises(UnknownName):
        weir.parse_system("bm25x")


@pytest.mark.filterwarnings("default")
def test_scores_that_rise_with_the_rank_are_warned_of(tmp_path, capsys):
    rows = [(f"d{n}", n) for n in range(1, 7)]
    qrels, near, far = written(
        tmp_path,
        qrels="q1 0 d1 1\n",
        distances__trec="".join(f"q1 Q0 {doc} {n} {0.25 * n} x\n" for doc, n in rows),
        scores__trec="".join(f"q1 Q0 {doc} {n} {2 - 0.25 * n} x\n" for doc, n in rows),
    )
    assert main(["eval", str(qrels), str(near), "-m", "RR"]) == 0
    assert "warning: " in (err := capsys.readouterr().err)
    assert "distances.trec: scores rise from rank to rank" in err
    assert main(["eval", str(qrels), str(far), "-m", "RR"]) == 0
    assert "warning" not in capsys.readouterr().err
    assert main(["data", "import", str(near), "-o", str(tmp_path / "mine"), "--as", "run-ranks"]) == 0
    assert next(iter(read_run(tmp_path / "mine" / "runs" / "distances.trec").to_dict()["q1"])) == "d1"


def test_judged_queries_without_a_relevant_document_are_counted(tmp_path, capsys):
    qrels, run = written(tmp_path, qrels="q1 0 d1 1\nq2 0 d3 0\n", run__trec=TREC)
    note = "note: 1 of 2 judged queries have no relevant document and score 0"
    assert main(["eval", str(qrels), str(run), "-m", "RR"]) == 0
    assert note in capsys.readouterr().err
    assert main(["eval", str(qrels), str(run), "-m", "RR", "--empty", "left-out"]) == 0
    assert note not in capsys.readouterr().err


def test_a_run_that_is_left_out_is_named(tmp_path, capsys):
    names = [str(path) for path in written(tmp_path, qrels=QRELS, a=TREC, b=TREC, c="01 Q0 d1 1 2.5 x\n")]
    assert main(["compare", *names, "-m", "RR"]) == 2
    assert (
        f"left out: {names[-1]}: the run and the judgments have no query in common" in capsys.readouterr().err
    )


def test_a_word_for_a_grade_needs_no_scaling_and_rows_as_json_an_import(tmp_path):
    words, rows = written(tmp_path, qrels="qid iter docid rel\n", rows__json='[{"qid": "1", "docno": "d"}]')
    with pytest.raises(FormatError, match=r"found the grade 'rel'; expected a number within ±16384$"):
        read_qrels(words)
    with pytest.raises(FormatError, match="a list of rows is read by: weir data import FILE"):
        read_run(rows)


def test_the_first_sheet_needs_no_judgments(tmp_path, capsys):
    none, run = written(tmp_path, none__tsv="query-id\tcorpus-id\tscore\n", run__trec=TREC)
    assert main(["labels", "pool", str(none), str(run), "-o", str(tmp_path / "pool")]) == 0
    sheet = tmp_path / "pool" / "to_judge.tsv"
    head, *lines = sheet.read_text().splitlines()
    assert len(lines) == 3
    filled = ["\t".join([*line.split("\t")[:2], "1" if "d1" in line else "", "", "", ""]) for line in lines]
    sheet.write_text("\n".join([head, *filled]) + "\n")
    assert main(["eval", str(sheet), str(run)]) == 2
    assert "weir labels relabel -o FILE makes judgments" in capsys.readouterr().err
    out = tmp_path / "judged.tsv"
    assert main(["labels", "relabel", str(sheet), str(none), str(run), "-o", str(out)]) == 0
    assert read_qrels(out).to_dict() == {"q1": {"d1": 1}}


def test_a_run_with_ties_is_told_from_judgments(tmp_path, capsys):
    rows = "".join(f"q1 Q0 d{n} {n} {9.5 - n // 2 * 2 * (n < 3) - n * (n > 2)} x\n" for n in range(20))
    (run,) = written(tmp_path, run__trec=rows)
    table = tmp_path / "run.csv"
    assert main(["data", "convert", str(run), str(table)]) == 0
    assert main(["eval", str(table), str(run), "-m", "nDCG@10"]) == 0
    assert "nearly all grades of each query differ, as scores do" in capsys.readouterr().err


def test_empty_lists_are_queries_without_an_answer_to_a_threshold():
    answers = {f"q{n}": [f"d{n}"] if n < 20 else [] for n in range(40)}
    run = {f"q{n}": {f"d{n}": 3.0 + n % 5 if n < 20 else 1.0 + n % 3} for n in range(40)}
    graded = {query: dict.fromkeys(docs, 1) or {"none": 0} for query, docs in answers.items()}
    assert weir.threshold(answers, run)[0] == weir.threshold(graded, run)[0]


@pytest.mark.parametrize("documents", [[{"id": "d1", "text": "a"}], "d1"])
def test_documents_and_queries_of_another_shape_are_one_line(documents):
    with pytest.raises(WeirError, match=r"found (list|str) as the documents; expected \{identifier: text"):
        weir.Dataset.of(corpus=documents, queries={"q": "a"}, qrels={"q": ["d1"]}, name="mine")
    with pytest.raises(WeirError, match="as the queries; expected"):
        weir.Dataset.of(corpus={"d1": "a"}, queries=documents, qrels={"q": ["d1"]}, name="mine")


def test_a_missing_identifier_has_its_row():
    frame = pytest.importorskip("pandas").DataFrame(
        {"query_id": ["q1", None], "doc_id": ["a", "b"], "relevance": [1, 1]}
    )
    with pytest.raises(
        WeirError, match=r"column query_id holds \w+, first (nan|None) in row 2; expected text"
    ):
        weir.evaluate(frame, {"q1": {"a": 1.0}})


def test_a_name_in_a_fusion_of_objects_is_told_where_to_go():
    with pytest.raises(WeirError, match=r"'bm25' is not a system; a name goes into weir\.system"):
        weir.rrf("bm25", weir.RM3())
    assert str(weir.rrf(weir.system("bm25"), weir.RM3())) == "rrf(bm25, rm3)"


def test_a_frame_is_no_dict_of_rankings():
    frame = pytest.importorskip("pandas").DataFrame({"query_id": ["q1"], "doc_id": ["d1"], "score": [1.0]})
    with pytest.raises(WeirError, match=r"found DataFrame as the rankings; expected \{query: "):
        weir.Run.of(frame)
    with pytest.raises(WeirError, match="found DataFrame as the judgments"):
        weir.Qrels.of(frame)
    with pytest.raises(WeirError, match="scores is of type Run; expected a Scores"):
        weir.abstention({"q1": {"d1": 1}}, weir.Run.of({"q1": {"d1": 1.0}}))


def test_judgments_of_documents_and_answers_of_chunks_are_noted(tmp_path):
    chunks = {f"d{n}#{part}": f"word{n} part{part}" for n in range(4) for part in range(2)}
    mine = weir.Dataset.of(
        corpus=chunks, queries={"q1": "word1", "q2": "word2"}, qrels={"q1": ["d1"], "q2": ["d2"]}, name="mine"
    )
    notes = [note.text for note in weir.benchmark(mine, ["bm25"], ["nDCG@10"]).notes()]
    assert any(note.startswith("none of the first 10 documents is judged (bm25 on mine)") for note in notes)


def test_what_is_missing_of_a_grid_is_named(tmp_path, capsys):
    for arguments, missing in (
        (["-d", "brook-news"], "system (-s)"),
        ([], "dataset (-d) and no system (-s)"),
    ):
        for command in (["run", "-o", str(tmp_path / "out")], ["plan"]):
            assert main([*command, *arguments, "-q"]) == 2
            assert f"found no {missing}; expected one or more" in capsys.readouterr().err


@pytest.mark.parametrize(
    "text", ["nDCG@10,RR", "RR,nDCG@10", "nDCG(gain='exp')@10, P(rel=2)@5", "condensed(AP,RR)"]
)
def test_measures_in_one_text_are_told_apart(text):
    with pytest.raises(
        BadValue, match="is not a measure; expected such as nDCG@10, each by itself: -m nDCG@10 -m RR"
    ):
        parse_measure(text)
