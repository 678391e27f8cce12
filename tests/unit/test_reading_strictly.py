"""Readers refuse in one line what they used to pass in silence, and print numbers as they were written."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import weir
from weir.cli.main import main
from weir.errors import BadRanking, BadValue, FormatError, LossWarning
from weir.files.label_files import read_labels
from weir.files.layouts import CollectionPart
from weir.files.records import read_documents, read_queries
from weir.files.runs import join_run_file, read_qrels, read_run, read_run_against
from weir.plugins.importing import Choices
from weir.plugins.labels.pools import open_sheet, read_sheet

QRELS = weir.Qrels.of({"q1": {"a": 1}, "q2": {"a": 1}})


def file(path: Path, *rows: str) -> Path:
    path.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize("engine", ["numpy", "numba"])
@pytest.mark.parametrize("between", [[], ["q1 Q0 a 1 3 t"], ["q2 Q0 a 1 3 t", "q1 Q0 a 1 3 t"]])
@pytest.mark.parametrize("scores", [("2", "1"), ("1", "2"), ("1", "1")])
def test_a_document_twice_for_a_query_that_nobody_judged(tmp_path, engine, between, scores):
    rows = [f"other Q0 b 1 {scores[0]} t", *between, "stranger Q0 b 1 1 t", f"other Q0 b 2 {scores[1]} t"]
    run = file(tmp_path / "run", *rows)
    for read in (
        lambda: join_run_file(run, QRELS, engine=engine),
        lambda: read_run_against(run, QRELS.queries, QRELS.docs, engine=engine),
    ):
        with pytest.raises(BadRanking) as error:
            read()
        assert f"run, line {len(rows)}: query 'other' ranks document 'b' twice" in str(error.value)


@pytest.mark.parametrize("engine", ["numpy", "numba"])
def test_queries_that_nobody_judged_are_ignored_wherever_they_stand(tmp_path, engine):
    rows = ["x Q0 a 1 3 t", "q1 Q0 b 1 3 t", "q1 Q0 a 1 2 t", "y Q0 b 1 1 t", "x Q0 b 1 1 t", "q2 Q0 a 1 3 t"]
    judged = join_run_file(file(tmp_path / "run", *rows), QRELS, engine=engine)
    assert (judged.ignored, judged.stranger, judged.rank.tolist()) == (2, "x", [2, 1])
    run, ignored = read_run_against(tmp_path / "run", QRELS.queries, QRELS.docs, engine=engine)
    assert (run.ptr.tolist(), run.doc.tolist(), ignored) == ([0, 2, 3], [-1, 0, 0], 2)
    none = join_run_file(file(tmp_path / "none", "x Q0 a 1 3 t", "y Q0 a 1 3 t"), QRELS, engine=engine)
    assert (none.ignored, none.retrieved.tolist()) == (2, [0, 0])


def documents(path: Path) -> list[tuple[str, str, str]]:
    return [row for batch in read_documents(CollectionPart(path))
            for row in zip(batch.ids.tolist(), batch.titles.tolist(), batch.texts.tolist(), strict=True)]  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "line", "found", "width"),
    [
        (["a\tone", "b\ttwo\tpieces"], 2, "3 cells", "2 with an id, as in line 1"),
        (["id\ttext", "a\tone", "b\ttwo\tpieces"], 3, "3 cells", "2 with an id, as in line 1"),
        (["a\tt\tone", "b\tt\ttwo\tpieces"], 2, "4 cells", "3 with an id"),
        (["a\tt\tone", "b\ttwo"], 2, "2 cells", "3 with an id"),
        (["a\tone", "\ttwo"], 2, "an empty id", "2 with an id"),
        (["a\tb\tc\td"], 1, "4 cells", "id, text or id, title, text between tabs"),
    ],
)
def test_a_tab_in_a_text_is_no_title(tmp_path, rows, line, found, width):
    path = file(tmp_path / "corpus.tsv", *rows)
    with pytest.raises(FormatError) as error:
        documents(path)
    assert str(error.value).startswith(f"{path}, line {line}: found {found}; expected {width}")
    with pytest.raises(FormatError):
        read_queries(CollectionPart(path))


def test_the_header_of_a_table_says_what_its_columns_hold(tmp_path):
    table = file(tmp_path / "psgs.tsv", "id\ttext\ttitle", "1\tthe text\tthe title")  # as DPR's passages
    assert documents(table) == [("1", "the title", "the text")]
    wide = file(tmp_path / "wide.tsv", "docid\turl\ttitle\ttext", "1\thttp\tthe title\tthe text")
    assert documents(wide) == [("1", "the title", "the text")]
    assert documents(file(tmp_path / "plain.tsv", "1\tthe title\tthe text")) == [
        ("1", "the title", "the text")
    ]


def test_numbers_are_said_as_they_were_written(tmp_path):
    for name, text in (("q.csv", "query,doc,grade\nq,d,99999.141\n"), ("q.txt", "q 0 d 99999.141\n"),
                       ("q.json", '{"q": {"d": 99999.141}}')):  # fmt: skip
        with pytest.raises(FormatError, match=r"(grade '99999\.141'|beyond ±16384)"):
            read_qrels(file(tmp_path / name, text))
    for value in (float("nan"), np.float64("nan")):
        with pytest.raises(BadValue, match="grade nan is not a finite number"):
            weir.Qrels.of({"q": {"d": value}})


def test_a_pipe_without_a_format_in_its_name_is_refused(tmp_path, capsys):
    os.mkfifo(tmp_path / "pipe")
    qrels = file(tmp_path / "qrels", "q 0 a 1")
    for arguments in ([qrels, tmp_path / "pipe"], [tmp_path / "pipe", qrels]):
        assert main(["eval", *map(str, arguments), "-m", "RR"]) == 2
        assert (
            "pipe: found a pipe, whose beginning can be read once; expected a file" in capsys.readouterr().err
        )


SEMICOLONS = {
    "run": ["query_id;doc_id;score", 'q1;"a;1";1,5', "q1;b;,25", "q2;a;2"],
    "qrels": ["query_id;doc_id;relevance;origin", "q1;b;0,5;me, you", "q2;a;1;"],
    "sheet": ["query-id;corpus-id;grade;query;title;text", 'q1;b;0,5;"red; 1,5";;"1,5 ""x"""', "q2;a;1;;;", ";;;;;"],
    "labels": ["question_id;passage_id;rater", "q1;b;0,5", "q2;a;1"],
}  # fmt: skip


@pytest.mark.parametrize("engine", ["numpy", "numba"])
def test_between_semicolons_numbers_may_have_decimal_commas(tmp_path, engine):
    paths = {name: file(tmp_path / f"{name}.csv", *rows) for name, rows in SEMICOLONS.items()}
    assert read_run(paths["run"], engine=engine).to_dict() == {
        "q1": {"a;1": 1.5, "b": 0.25},
        "q2": {"a": 2.0},
    }
    judged = {"q1": {"b": 0.5}, "q2": {"a": 1.0}}
    assert read_qrels(paths["qrels"]).columns()["origin"] == ["me, you", ""]
    sheet = next(open_sheet(paths["sheet"]))
    assert (sheet.query_text, sheet.text) == ("red; 1,5", '1,5 "x"')
    readers = (read_qrels(paths["qrels"]), read_sheet(paths["sheet"])[0], read_labels(paths["labels"]))
    assert [one.to_dict() for one in readers] == [judged] * 3
    weir.import_files([paths["qrels"], paths["run"]], tmp_path / "mine")
    assert read_qrels(tmp_path / "mine" / "qrels" / "test.tsv").to_dict() == judged
    assert read_run(tmp_path / "mine" / "runs" / "run.trec").to_dict()["q1"] == {"a;1": 1.5, "b": 0.25}
    numbered = file(tmp_path / "odd.csv", "wer;was;wie", "q1;b;0,5", "q2;a;1")
    columns, choices = (
        {"query_id": "1", "doc": "2", "grade": "3"},
        Choices(allow_loss=True),
    )  # the header is no row
    weir.import_files(numbered, tmp_path / "odd", columns, choices=choices)
    with pytest.warns(LossWarning, match="rows left out: 1, the first: line 1"):
        assert read_qrels(tmp_path / "odd" / "qrels" / "test.tsv").to_dict() == judged


def test_a_golden_set_among_judgments_is_told_what_reads_it(tmp_path):
    with pytest.raises(
        FormatError, match="relevant documents, as in 'relevant_docs', are read by: weir data import"
    ):
        read_qrels(file(tmp_path / "g.csv", "question,relevant_docs", "what is it,d1"))


def test_a_run_between_commas_is_told_where_its_columns_stand(tmp_path):
    for name in ("r.trec", "r.csv"):
        with pytest.raises(FormatError, match="between blanks or tabs"):
            read_run(file(tmp_path / name, "q1,Q0,d1,1,0.9,t"))


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (["query_id;doc_id;score", "q;a;0,5", "q;b;1.500"],
         "line 3: found '1.500' below numbers with ','; expected one decimal mark, a point or a comma"),
        (["query_id;doc_id;score", "q;a;1.500,5"], "line 2: found '1.500,5'; expected a finite number"),
        (["wer;was;wie", "q;a;1"], "found 'wer;was;wie'; expected a header that names the columns, such as query_id;"),
        (["query_id,doc_id,score", 'q,a;b,"1,500"'], "line 2: found '1,500', where the comma may group thousands"),
        (["query_id,doc_id,score", 'q,a,"1,500.5"'], "column score, in digits with one decimal mark"),
        (["query_id,doc_id,score", 'q,a,0.5', 'q,b,"0,7"'], "line 3: found '0,7' below numbers with '.'"),
    ],
)  # fmt: skip
def test_decimal_commas_are_never_guessed(tmp_path, rows, expected):
    with pytest.raises(FormatError) as error:
        read_run(file(tmp_path / "run.csv", *rows))
    assert expected in str(error.value)
