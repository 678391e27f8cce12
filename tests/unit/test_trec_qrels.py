"""Judgment files: every layout people have, and each mistake named with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.brooklet import written_files
from weir.errors import FormatError
from weir.files.runs import read_qrels, read_qrels_counted, read_run

EXPECTED = {"q1": {"d1": 2, "d2": 0}, "q2": {"d1": -1}}


def write(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


@pytest.mark.parametrize(
    "text",
    [
        "q1 0 d1 2\nq1 0 d2 0\nq2 0 d1 -1\n",
        "q1 Q0  d1\t2 \r\nq1 0 d2 +0\r\n\r\n# remark\r\nq2 0 d1 -1.0",
        "q2 0 d1 -1\nq1 0 d1 2\nq1 0 d2 0",
        "query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td2\t0\nq2\td1\t-1\n",
        "\ufeffquery-id\tcorpus-id\tscore\r\nq1\td1\t2\r\nq1\td2\t0\r\nq2\td1\t-1\r\n",
        "q1\td1\t2\nq1\td2\t0\n\nq2\td1\t-1",
        "q1\t0\td1\t2\nq1\t0\td2\t0.0\nq2\t0\td1\t-1",
        "# first a remark\nq1\t0\td1\t2\nq1\t0\td2\t0\nq2\t0\td1\t-1",
        '{"q1": {"d1": 2, "d2": 0.0}, "q2": {"d1": -1}}',
    ],
)
def test_every_layout_gives_the_same_judgments(tmp_path: Path, text: str) -> None:
    assert read_qrels(write(tmp_path / "q", text)).to_dict() == EXPECTED


def test_identifiers_between_tabs_may_hold_blanks(tmp_path: Path) -> None:
    rows = "q 1\tthe doc\t1\n q 1 \tthe  doc\t2\n"
    path = write(tmp_path / "q.tsv", rows)
    assert read_qrels(path).to_dict() == {"q 1": {"the doc": 1, "the  doc": 2}}
    path = write(tmp_path / "q.tsv", "query-id\tcorpus-id\tscore\n" + rows)  # with a header: as written
    assert read_qrels(path).to_dict() == {"q 1": {"the doc": 1}, " q 1 ": {"the  doc": 2}}


def test_a_query_called_like_a_header_is_a_query(tmp_path: Path) -> None:
    assert read_qrels(write(tmp_path / "q.tsv", "query\td\t1\n")).to_dict() == {"query": {"d": 1}}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("q 0 d 1\nq 0 e high\n", "line 2: found the grade 'high'; expected a number"),
        (
            "q\td\t1\nq\te\t16384.5\n",
            "line 2: found the grade '16384.5'; expected a number within ±16384; scale",
        ),
        ("q 0 d nan\n", "line 1: found the grade 'nan'"),
        ("q 0 d 99999\n", "line 1: found the grade '99999'"),
        ("q 0 d 1\n\nq 0 e\n", "line 3: found 'q 0 e'; expected 4 columns"),
        ("q 0 d 1 2\n", "line 1: found 'q 0 d 1 2'"),
        ("query-id\tcorpus-id\tscore\nq\td\n", "line 2: found 2 cells in 'q\\td'; expected 3 cells"),
        ("q\td\t1\n\td\t1\n", "line 2: found an empty column"),
        ("q\td\t1\nq\te\t\n", "line 2: found an empty column"),
        ("q1\td\thigh\nq1\te\t1\n", "line 1: found the grade 'high'"),
        ("q 0 d 1\nq 0 e 1\nq 0 d 2\n", "line 3: found grade 2 for a pair that line 1 gives grade 1"),
        ("q d 0 1\nq e 0 0\n", "found the document '0' in every line, beside a second column that varies"),
        ("q d Q0 1\nr e Q0 1\n", "found the document 'Q0' in every line"),
        ('{"q": {"d": 1e5}}', "the grade is beyond ±16384"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, text: str, said: str) -> None:
    path = write(tmp_path / "q", text)
    with pytest.raises(FormatError) as caught:
        read_qrels(path)
    assert str(caught.value).startswith(str(path))
    assert said in str(caught.value)


def test_repeated_judgments_count_once(tmp_path: Path) -> None:
    path = write(tmp_path / "q", "q 0 d 1\nq 0 e 0\nq 0 d 1\np 0 d 1\nq 0 d 1.0\n")
    qrels, repeated = read_qrels_counted(path)
    assert qrels.to_dict() == {"q": {"d": 1, "e": 0}, "p": {"d": 1}}
    assert repeated == 2


def test_an_empty_file_judges_nothing(tmp_path: Path) -> None:
    assert len(read_qrels(write(tmp_path / "q", ""))) == 0
    assert len(read_qrels(write(tmp_path / "r", "query-id\tcorpus-id\tscore\n"))) == 0


def test_ranks_are_no_grades(tmp_path):
    rows = [(query, f"d{n}", n) for query in ("q1", "q2") for n in range(6)]
    ranks, graded = written_files(
        tmp_path,
        ranks="".join(f"{q}\t{d}\t{n}\n" for q, d, n in rows),
        graded="".join(f"{q}\t{d}\t{n % 3}\n" for q, d, n in rows),
    )
    with pytest.raises(FormatError, match=r"count up from 0 for each query, as ranks do.*--as run-ranks"):
        read_qrels(ranks)
    assert read_qrels(graded).to_dict()["q2"]["d5"] == 2


def test_a_word_for_a_grade_needs_no_scaling_and_rows_as_json_an_import(tmp_path):
    words, rows = written_files(
        tmp_path, qrels="qid iter docid rel\n", rows__json='[{"qid": "1", "docno": "d"}]'
    )
    with pytest.raises(FormatError, match=r"found the grade 'rel'; expected a number within ±16384$"):
        read_qrels(words)
    with pytest.raises(FormatError, match="a list of rows is read by: weir data import FILE"):
        read_run(rows)


@pytest.mark.parametrize("reader", [read_qrels, read_run])
def test_files_of_mteb_are_told_from_rankings_and_judgments(tmp_path, reader):
    means, predictions = written_files(
        tmp_path,
        means__json='{"mteb_version": "2", "scores": {"test": [{"ndcg_at_1": NaN}]}}',
        predictions__json='{"mteb_model_meta": {"model_name": "m"}, "default": {"test": {"q1": {"d1": 0.5}}}}',
    )
    with pytest.raises(FormatError, match=r"found means of MTEB, without rankings; .* weir results RESULTS"):
        reader(means)
    with pytest.raises(FormatError, match=r"found predictions of MTEB; .* read by: weir data import FILE"):
        reader(predictions)
