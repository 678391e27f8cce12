"""weir data convert: between all formats, in full, or not at all."""

from __future__ import annotations

import json

import pytest

from tests.unit.brooklet import written_files
from tests.unit.test_cli import refused
from weir.cli import main
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.errors import FormatError
from weir.files.formats import FORMATS, kind_of_file
from weir.files.runs import read_qrels, read_run
from weir.files.write import convert, write_qrels, write_run

ENDINGS = [form.suffixes[0] for form in FORMATS] + [".trec.gz", ".tsv.zst"]
RUN = {"q1": {"b": 1 / 3, "a": 0.1}, "q2": {"c": -2.5e-30}}
QRELS = {"q1": {"a": 1, "b": 0}, "q2": {"c": -1}}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("into", ENDINGS)
@pytest.mark.parametrize("out_of", ENDINGS)
def test_every_format_becomes_every_other(out_of, into, here, capsys):
    write_run(Run.of(RUN), f"a{out_of}")
    write_qrels(Qrels.of(QRELS), f"b{out_of}")
    kind = ["--kind", "qrels"] if out_of in (".json", ".pickle") else []
    assert main(["data", "convert", f"a{out_of}", f"run{into}"]) == 0
    assert main(["data", "convert", f"b{out_of}", f"qrels{into}", "--quiet", *kind]) == 0
    assert read_run(f"run{into}").to_dict() == RUN
    assert read_qrels(f"qrels{into}").to_dict() == QRELS
    out, err = capsys.readouterr()
    assert out == (
        f"run{into}: a run of 2 queries and 3 documents returned\nqrels{into}: 3 judgments of 2 queries\n"
    )
    assert f"reading a{out_of}" in err
    assert "qrels" not in err


def test_what_is_repeated_is_said(here, capsys):
    (here / "q.trec").write_text("q 0 a 1\nq 0 a 1\n")
    assert main(["data", "convert", "q.trec", "q.csv"]) == 0
    assert "1 judgments of 1 queries; 1 repeated judgments left out" in capsys.readouterr().out
    assert (here / "q.csv").read_text() == "query_id,doc_id,relevance\nq,a,1\n"


@pytest.mark.parametrize(
    ("columns", "row", "kind"),
    [
        ("qid,docno,score", "q,d,1.5", "run"),
        ("qid,docno,rank,sim", "q,d,1,2", "run"),
        ("query-id,corpus-id,score", "q,d,1", "qrels"),  # BEIR's judgments
        ("qid,docno,label", "q,d,1", "qrels"),
        ("qid,docno,score,relevance", "q,d,0.5,1", "qrels"),
    ],
)
@pytest.mark.parametrize("ending", [".csv", ".tsv", ".parquet", ".txt"])
def test_columns_say_what_a_table_holds(columns, row, kind, ending, here):
    import polars as pl

    (here / "in.csv").write_text(f"{columns}\n{row}\n")
    if ending == ".parquet":
        pl.read_csv("in.csv", schema_overrides={"score": pl.Float64}).write_parquet("in.parquet")
    else:
        text = (here / "in.csv").read_text()
        (here / f"in{ending}").write_text(text.replace(",", "\t") if ending == ".tsv" else text)
    assert main(["data", "convert", f"in{ending}", "out.trec"]) == 0
    assert len((here / "out.trec").read_text().split()) == (6 if kind == "run" else 4)


def test_what_is_refused_leaves_nothing(here, capsys):
    write_run(Run.of({"q 1": {"d": 1.0}}), "a.csv")
    (here / "whole.json").write_text(json.dumps({"q": {"d": 1}}))
    (here / "three.trec").write_text("q d 1\n")
    (here / "plain.csv").write_text("q,d,1\n")
    (here / "cut.parquet").write_bytes(b"PAR1")
    write_run(Run.of(RUN), "run.trec")
    before = sorted(here.iterdir())
    for arguments, said in (
        (["a.csv", "b.trec"], "query identifier 'q 1' has white space"),
        (["a.csv", "a.csv"], "a.csv is also the input"),
        (["a.csv", "b.parqet"], "no format named '.parqet'; did you mean .parquet"),
        (["a.csv", "b"], "no format named 'b'; known: .arrow, .csv"),
        (["a.csv", "b.parquet.gz"], "parquet files are packed inside"),
        (["whole.json", "b.csv"], "found whole numbers only; expected --kind run or --kind qrels"),
        (["three.trec", "b.csv"], "found 'q d 1'; expected 6 columns (a run) or 4 (judgments)"),
        (["plain.csv", "b.trec"], "found 'q,d,1'; expected a header"),
        (["cut.parquet", "b.csv"], "damaged"),
        (["absent.csv", "b.trec"], "absent.csv: found no such file"),
        (["run.trec", "b.csv", "--kind", "qrels"], "expected 4 columns"),
    ):
        assert said in refused(capsys, "data", "convert", *arguments)
        assert sorted(here.iterdir()) == before


@pytest.mark.parametrize("ending", [".json", ".pickle", ".pickle.gz"])
def test_lists_in_rank_order_are_what_birco_reads(ending, here, capsys):
    write_run(Run.of(RUN), "a.trec")
    assert main(["data", "convert", "a.trec", f"b{ending}", "--lists"]) == 0
    assert "without their scores" in capsys.readouterr().out
    again = read_run(f"b{ending}").to_dict()
    assert {query: list(row) for query, row in again.items()} == {"q1": ["b", "a"], "q2": ["c"]}
    assert "a.csv: lists of documents need JSON or a pickle" in refused(
        capsys, "data", "convert", "a.trec", "a.csv", "--lists"
    )
    write_qrels(Qrels.of(QRELS), "q.tsv")
    assert "--lists is about runs" in refused(capsys, "data", "convert", "q.tsv", "c.json", "--lists")


def test_columns_that_no_run_or_judgments_have_are_named_as_left_out(here, capsys):
    (here / "r.csv").write_text("query_id,doc_id,rank,score,note,\nq,a,1,0.5,x,\n")
    (here / "q.jsonl").write_text(
        '{"query_id": "q", "doc_id": "a", "grade": 1, "origin": "human", "who": "Ann"}\n'
    )
    for source, kind, left in (("r.csv", "run", "note"), ("q.jsonl", "qrels", "who")):
        assert main(["data", "convert", source, f"{source}.tsv", "--kind", kind]) == 0
        assert capsys.readouterr().out.rstrip().endswith(f"; columns left out: {left}")
        assert main(["data", "convert", f"{source}.tsv", "again.csv", "--kind", kind]) == 0
        assert "left out" not in capsys.readouterr().out


def test_rankings_are_lists_and_judgments_are_lists_of_what_is_relevant(tmp_path):
    (path,) = written_files(tmp_path, r__json='{"q1": ["d2", "d1"], "q2": [["d3", 0.5]]}')
    assert list(read_run(path).to_dict()["q1"]) == ["d2", "d1"]
    assert read_run(path).to_dict()["q2"] == {"d3": 0.5}
    (qrels,) = written_files(tmp_path, q__json='{"q1": ["d2", "d1"]}')
    assert read_qrels(qrels).to_dict() == {"q1": {"d1": 1, "d2": 1}}
    with pytest.raises(FormatError, match="`kind='run'`, in rank order, or `kind='qrels'`"):
        kind_of_file(qrels)


def test_whole_numbers_under_score_are_asked_about(tmp_path):
    open_, run, lines = written_files(
        tmp_path,
        a__tsv="qid\tpid\tscore\n1\td\t1\n1\te\t0\n",
        b__tsv="qid\tpid\tscore\n1\td\t1.5\n1\te\t0\n",
        c__jsonl='{"qid": "1", "pid": "d", "score": 1}\n',
    )
    for path in (open_, lines):
        with pytest.raises(
            FormatError, match="whole numbers as scores; expected `kind='run'` or `kind='qrels'`"
        ):
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


@pytest.mark.parametrize("suffix", ["trec", "csv", "tsv", "jsonl", "json", "pickle"])
def test_queries_without_a_document_are_kept_or_counted(tmp_path, suffix):
    source = tmp_path / "source.json"
    source.write_text(json.dumps({"q1": {}, "q2": {"d": 1.5}, "q3": {}}))
    done = convert(source, tmp_path / f"target.{suffix}")
    assert len(read_run(tmp_path / f"target.{suffix}").to_dict()) + done.without_rows == 3
    assert (f"left out: {done.without_rows}" in str(done)) == (done.without_rows > 0)


def test_fields_that_only_later_lines_have_are_named_as_left_out(tmp_path):
    rows = [{"query_id": "q", "doc_id": d, "score": 2.5} for d in "ab"]
    rows[1]["note"] = "x"
    (tmp_path / "r.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert "columns left out: note" in str(convert(tmp_path / "r.jsonl", tmp_path / "r.trec"))
