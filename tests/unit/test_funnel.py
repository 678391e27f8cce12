"""weir study funnel: what each stage loses, from systems, from run files and with gold passages."""

from __future__ import annotations

import csv
import io
import json
import math
import shutil
from pathlib import Path

import pytest

import weir
from tests.unit.brooklet import QRELS, write_collection
from weir.cli import main
from weir.errors import BadValue, FormatError
from weir.measures import score_run

LONG = {"d1": "one two three four five six seven eight", "d2": "nine ten eleven twelve"}


@pytest.fixture
def folder(tmp_path):
    return write_collection(tmp_path / "mine")


def test_the_stages_of_a_system_are_its_searches_cuts_and_rerankers(folder):
    system = "rrf(bm25, rm3, depth=3) >> score(bm25, depth=2)"
    [funnel] = weir.funnel(folder, system, weir.FunnelRules(k=1))
    assert [(one.branch, one.name) for one in funnel.stages] == [
        ("1", "bm25"),
        ("1", "first 3"),
        ("2", "rm3"),
        ("2", "first 3"),
        ("", "rrf of 2"),
        ("", "first 2"),
        ("", "score(bm25, depth=2)"),
        ("", "first 1"),
    ]
    assert (funnel.dataset, funnel.system, funnel.relevant) == ("mine", system, 5)
    dataset = weir.load(folder)
    run = weir.systems.parse_system(system).index(dataset.corpus).search(dataset.queries, 1)
    scores = score_run(dataset.qrels, run, ["R", "nDCG@10"]).mean_values()
    assert (funnel.whole[-1].share, funnel.whole[-1].value) == pytest.approx(tuple(scores))
    lost = {(one.query, one.document): one for stage in funnel.whole for one in stage.losses}
    assert lost["q3", "d5"].ranks == ()
    assert lost["q3", "d5"].asked == "xylophone"
    assert lost["q1", "d1"].text.startswith("The weir | A weir is") or lost["q1", "d4"].text.startswith(
        "Dam | The dam"
    )


def test_a_results_folder_gives_the_same_and_is_used_again(folder, tmp_path):
    rules, system = weir.FunnelRules(k=2), "rrf(bm25, rm3) >> score(bm25, depth=2)"
    first = weir.funnel(folder, system, rules, results=tmp_path / "out")
    kept = sorted(path for path in (tmp_path / "out").rglob("*") if path.is_file())
    assert kept
    again = weir.funnel(folder, system, rules, results=tmp_path / "out")
    assert first.to_dict() == again.to_dict() == weir.funnel(folder, system, rules).to_dict()
    assert kept == sorted(path for path in (tmp_path / "out").rglob("*") if path.is_file())


def test_what_cannot_be_ranked_is_lost_before_the_search(tmp_path):
    documents = {"d1": {"text": "river", "lang": "en"}, "d2": {"text": "river", "lang": "de"}, "q1": "river"}
    qrels = {"q1": {"d1": 1, "d2": 1, "gone": 1}, "q2": {"d1": 1, "d2": 1}}
    queries = {"q1": "river", "q2": {"text": "river", "excluded": ["d1"]}}
    dataset = weir.Dataset.of(documents, queries, qrels)
    [funnel] = weir.funnel(dataset, weir.Filtered(weir.BM25(), 'lang == "en"'))
    assert [(one.name, one.kind, one.left, one.lost) for one in funnel.stages] == [
        ("documents of the collection", "documents", 4, 1),
        ("documents that the queries permit", "documents", 3, 1),
        ("filter lang == 'en'", "filter", 1, 2),
        ("bm25", "search", 1, 0),
        ("first 10", "cut", 1, 0),
    ]


def spans_file(folder, *lines: object):
    path = folder / "spans.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in lines) + "\n")
    return path


def test_a_gold_passage_that_is_cut_in_two_is_lost_at_the_chunker(tmp_path):
    dataset = weir.Dataset.of(
        LONG, {"q": "five nine", "r": "five"}, {"q": {"d1": 1, "d2": 1}, "r": {"d1": 1}}
    )
    chunked = weir.systems.parse_system("chunked(bm25, words=4, overlap=0)")
    path = spans_file(
        tmp_path,
        {"query": "q", "document": "d1", "text": "four  five"},  # words 4 and 5 of passages of 4
        {"query": "q", "document": "d2", "text": "ten eleven"},
        {"query": "five", "document": "d1", "text": "four five"},  # the text of r
        {"query": "r", "document": "d1", "start": 19, "end": 23},  # five, whole: one passage is enough
    )
    [funnel] = weir.funnel(dataset, chunked, spans=path)
    chunker, search, cut = funnel.stages
    assert (chunker.name, chunker.kind, chunker.left) == ("passages of 4 words", "chunker", 2)
    assert [(one.query, one.document) for one in chunker.losses] == [("q", "d1")]
    assert (search.left, cut.left) == (2, 2)  # although bm25 ranks it
    assert (
        search.value == cut.value == pytest.approx((1 / (1 + math.log(2, 3)) + 1) / 2)
    )  # d1 of q counts as lost
    assert search.value <= search.ceiling
    assert weir.funnel(dataset, chunked)[0].whole[-1].left == 3


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ({"query": "q", "document": "d9", "text": "x"}, "line 2: found document 'd9'"),
        ({"query": "who", "document": "d1", "text": "five"}, "line 2: found query 'who'"),
        (
            {"query": "q", "document": "d1", "text": "six four"},
            "line 2: found a passage outside its document",
        ),
        (
            {"query": "q", "document": "d1", "start": 3, "end": 900},
            "line 2: found a passage outside its document",
        ),
        ({"query": "q", "document": "d1"}, "line 2: found {'query': 'q', 'document': 'd1'}"),
        (["q"], "line 2: found ['q']"),
    ],
)
def test_hostile_passages_are_refused_with_their_line(tmp_path, line, found):
    dataset = weir.Dataset.of(LONG, {"q": "five"}, {"q": {"d1": 1}})
    path = spans_file(tmp_path, {"query": "q", "document": "d1", "text": "five"}, line)
    with pytest.raises(FormatError) as error:
        weir.funnel(dataset, "chunked", spans=path)
    assert found in str(error.value)


def test_rankings_of_any_pipeline_are_stages(tmp_path, capsys):
    qrels, first, second = (tmp_path / name for name in ("qrels", "first.trec", "second.trec"))
    qrels.write_text("q1 0 a 1\nq1 0 b 1\nq1 0 c 2\nq2 0 a 1\n")
    first.write_text(
        "".join(
            f"q{q} Q0 {d} {n} {9 - n} x\n" for q, ds in ((1, "bcx"), (2, "xa")) for n, d in enumerate(ds, 1)
        )
    )
    second.write_text("q1 Q0 x 1 9 y\nq1 Q0 b 2 8 y\nq2 Q0 a 1 2 y\n")
    assert main(["study", "funnel", str(qrels), str(first), str(second), "-k", "1", "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["system"] == "first > second"
    assert [(one["name"], one["left"], one["lost"]) for one in made["stages"]] == [
        ("first", 3, 1), ("second", 2, 1), ("first 1", 1, 1),
    ]  # fmt: skip
    assert [one["document"] for stage in made["stages"] for one in stage["losses"]] == ["a", "c", "b"]
    assert made["stages"][2]["losses"][0]["ranks"] == [1, 2]


def test_the_command_prints_tables_csv_and_markdown(folder, capsys):
    asked = ["study", "funnel", "-d", str(folder), "-s", "bm25 >> score(bm25, depth=1)", "-k", "1", "-q"]
    assert main(asked) == 0
    shown = capsys.readouterr().out
    assert "are left; the largest loss is at" in shown
    assert "A weir is a low dam" in shown or "The dam holds" in shown
    assert main([*asked, "--show", "0"]) == 0
    assert "ranks before" not in capsys.readouterr().out
    assert main([*asked, "--csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    [funnel] = weir.funnel(folder, "bm25 >> score(bm25, depth=1)", weir.FunnelRules(k=1))
    assert [int(row["left"]) for row in rows] == [one.left for one in funnel.stages]
    assert main([*asked, "--markdown"]) == 0
    assert "| bm25 |" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [[], ["-d", "brook"], ["-s", "bm25"], ["qrels"], ["qrels", "run", "-s", "bm25"], ["-d", "brook", "-s", "bm25", "-m", "Judged@10"],
     ["-d", "brook", "-s", "bm25", "--rel", "9"], ["-d", "brook", "-s", "bm25", "-k", "0"]],
)  # fmt: skip
def test_what_cannot_be_followed_is_one_line(arguments, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["study", "funnel", "-q", *arguments]) == 2
    assert len(capsys.readouterr().err.strip().split("\n")) == 1


def test_a_collection_without_judgments_has_no_funnel(tmp_path):
    folder = write_collection(tmp_path / "mine")
    (folder / "qrels" / "test.tsv").unlink()
    (folder / "qrels").rmdir()
    with pytest.raises(BadValue, match="no judgments"):
        weir.funnel(folder, "bm25")


def test_saved_funnels_are_read_again(folder, tmp_path):
    made = weir.funnel(folder, "bm25")
    made.save(tmp_path / "funnel.json")
    assert weir.ResultSet.load(tmp_path / "funnel.json").to_dict() == made.to_dict()
    assert made[0].relevant == sum(grade > 0 for grades in QRELS.values() for grade in grades.values())


def test_a_report_has_the_funnels_of_rankings_that_are_kept(tmp_path):
    folder, out = write_collection(tmp_path / "mine"), tmp_path / "out"
    systems = [
        "bm25",
        "rrf(bm25, rm3) >> score(bm25, depth=2)",
        "filtered(bm25, \"title != 'Bread'\") >> score(rm3)",
    ]
    weir.benchmark([folder], systems, ["nDCG@3"], out=out)
    kept = sorted((path, path.stat().st_mtime_ns) for path in out.rglob("*"))
    made = weir.report(out, audit=False)
    section = next(one for one in made.sections if one.name == "funnel")
    assert "Where relevant documents are lost" in made.to_html()
    again = [weir.funnel(folder, one, weir.FunnelRules(k=3, measure="nDCG@3"))[0] for one in systems[1:]]
    assert {repr(one.stages) for one in section.records[0]} == {repr(one.stages) for one in again}
    assert kept == sorted((path, path.stat().st_mtime_ns) for path in out.rglob("*"))
    for path in out.rglob("bm25-*/run.trec"):
        path.unlink()
    assert "funnel" not in {one.name for one in weir.report(out, audit=False, systems=[systems[1]]).sections}


def test_a_collection_of_links_in_the_folder_where_one_works_is_followed(tmp_path, monkeypatch):
    place, source = tmp_path / "mine", tmp_path / "elsewhere"
    (source / "qrels").mkdir(parents=True)
    (source / "corpus.jsonl").write_text(
        '{"_id": "d1", "text": "a river"}\n{"_id": "d2", "text": "a weir"}\n'
    )
    (source / "queries.jsonl").write_text('{"_id": "q1", "text": "river"}\n')
    (source / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\n")
    shutil.copytree(source, place, copy_function=lambda path, to: Path(to).symlink_to(path))
    monkeypatch.chdir(tmp_path)  # nothing is stored in it
    [found] = weir.funnel("mine", "bm25 >> score(bm25, depth=1)")
    assert found.stages[-1].left == 1
