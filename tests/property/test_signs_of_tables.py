"""Quotation marks, remarks, thousands, blanks and nothings: read as written by whoever reads, or refused, or told."""

from __future__ import annotations

import bz2
import csv
import io
import json
import lzma
import warnings
from contextlib import nullcontext, suppress

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import feather, orc
from tests.unit.imports import imported, lines, written

from weir.core.qrels import Qrels
from weir.errors import FormatError, LossWarning, WeirError
from weir.files.runs import read_run
from weir.plugins.importing import import_files

EACH = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
ROWS = [{"query_id": "q1", "query": "a b", "doc_id": "d1", "grade": 1}]
TEXT = st.text('ab "\t\n', min_size=1, max_size=6).map(str.strip).filter(bool)


@EACH
@given(texts=st.lists(TEXT, min_size=1, max_size=5))
def test_texts_that_a_writer_quotes_between_tabs_are_those_that_it_was_given(texts, tmp_path):
    table = io.StringIO()
    out = csv.writer(table, delimiter="\t", quoting=csv.QUOTE_ALL, lineterminator="\n")
    out.writerow(["query_id", "query", "doc_id", "grade"])
    out.writerows([f"q{n}", text, "d", 1] for n, text in enumerate(texts))
    head, _, rows = table.getvalue().partition("\n")
    imported(tmp_path, "g.tsv", f"{head.replace(chr(34), '')}\n{rows}")
    assert written(tmp_path / "out")[0] == {f"q{n}": text for n, text in enumerate(texts)}


@EACH
@given(texts=st.lists(st.sampled_from(['5" disk', '"a b', 'c"', "d"]), min_size=1, max_size=5))
def test_a_stray_quotation_mark_between_tabs_is_a_sign_or_refused(texts, tmp_path):
    rows = "".join(f"q{n}\t{text}\td{n}\t1\n" for n, text in enumerate(texts))
    path = tmp_path / "g.tsv"
    imported(tmp_path, path.name, f"query_id\tquery\tdoc_id\tgrade\n{rows}")
    assert written(tmp_path / "out")[0] == {f"q{n}": text for n, text in enumerate(texts)}
    judged = {f"q{n}": {f"d{n}": 1} for n in range(len(texts))}
    closed = '"a b' not in texts
    with warnings.catch_warnings(), nullcontext() if closed else suppress(FormatError):
        warnings.simplefilter("ignore", LossWarning)
        assert Qrels.load(path).to_dict() == judged


KINDS = {
    "bz2": (bz2.compress, "bzip2 data; expected the file unpacked"),
    "xz": (lzma.compress, "xz data; expected the file unpacked"),
    "xls": (lambda _: b"\xd0\xcf\x11\xe0\xa1\xb1", "an old Excel workbook; expected each sheet saved as CSV"),
    "avro": (lambda _: b"Obj\x01\x04", "an Avro file; expected a table written out of it"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_files_of_other_kinds_are_named_with_the_remedy_by_eval_and_import(kind, tmp_path):
    made, said = KINDS[kind]
    path = tmp_path / f"g.{kind}"
    path.write_bytes(made(b"query_id,doc_id,grade\nq,a,1\n"))
    for read in (Qrels.load, read_run, lambda path: import_files(path, tmp_path / "out")):
        with pytest.raises(FormatError, match=said):
            read(path)


def test_tables_of_arrow_are_read_by_import_as_by_eval_and_those_of_orc_are_named(tmp_path):
    table = pa.Table.from_pylist(ROWS)
    feather.write_feather(table, str(tmp_path / "g.feather"))
    orc.write_table(table, str(tmp_path / "g.orc"))
    import_files(tmp_path / "g.feather", tmp_path / "out")
    with pytest.warns(LossWarning, match="1 column, query"):
        assert (
            written(tmp_path / "out")[1] == Qrels.load(tmp_path / "g.feather").to_dict() == {"q1": {"d1": 1}}
        )
    with pytest.raises(FormatError, match="an ORC table; expected a table written out of it"):
        import_files(tmp_path / "g.orc", tmp_path / "out2")


REMARKED = {
    "run.trec": ("# weir 1\nq1 Q0 d#1 1 2.5 t\n#q2 Q0 d1 1 2 t\n", {"q1": {"d#1": 2.5}}),
    "j.qrels": ("# a b c\nq1 0 d1 1\n#q2 0 d2 1\n", {"q1": {"d1": 1}}),
    "j.tsv": ("#1\td1\t1\n", {}),
}


@pytest.mark.parametrize("name", REMARKED)
def test_a_line_behind_a_remark_sign_that_would_be_a_row_is_told(name, tmp_path):
    text, rows = REMARKED[name]
    (tmp_path / name).write_text(text)
    told = f"{tmp_path / name}: not read: 1 line that begins with #"
    with pytest.warns(LossWarning, match=told):
        assert (read_run if name == "run.trec" else Qrels.load)(tmp_path / name).to_dict() == rows
    if rows:
        with pytest.warns(LossWarning, match=told):
            imported(tmp_path, name, text)
        assert rows in (written(tmp_path / "out")[1], written(tmp_path / "out")[2].get("run"))


@pytest.mark.parametrize(("cell", "mark"), [("1,234", "comma"), ("1.234", "point")])
def test_a_mark_that_may_group_thousands_is_refused_by_eval_and_import(cell, mark, tmp_path):
    text = "query_id;doc_id;score\nq1;d1;{}\nq1;d2;999\n{}"
    (tmp_path / "r.csv").write_text(text.format(cell, ""))
    for read in (read_run, lambda path: import_files(path, tmp_path / "out")):
        with pytest.raises(
            FormatError, match=f"line 2: found '{cell}' among whole .* the {mark} may group thousands"
        ):
            read(tmp_path / "r.csv")
    (tmp_path / "r.csv").write_text(text.format(cell, f"q1;d3;0{cell[1]}5\n"))  # a fraction, by the same mark
    assert read_run(tmp_path / "r.csv").to_dict()["q1"]["d1"] == 1.234


@pytest.mark.parametrize(
    ("name", "text", "count"),
    [
        ("g.csv", 'query,doc_id,grade\n" red  shoes ",d1,1\nblue,d1,1\n', 1),
        ("corpus.jsonl", lines({"_id": "a", "text": "a\n", "title": " t"}, {"_id": "b", "text": "b"}), 1),
        ("g.jsonl", lines({"query": "red shoes", "relevant": ["d1 "]}), 0),
    ],
)
def test_blanks_that_texts_lose_are_told_and_identifiers_keep_theirs(name, text, count, tmp_path):
    report = imported(tmp_path, name, text)
    assert ("texts lost blanks around them: 1" in report.lines()[0]) == bool(count)
    assert name != "g.jsonl" or [*written(tmp_path / "out")[1].values()] == [{"d1 ": 1}]


def test_nothing_in_yaml_is_what_it_is_in_json(tmp_path):
    rows = [
        {"query": None, "relevant": ["d"]},
        {"query": "a b", "relevant": None},
        {"query": "c", "relevant": {"null": 1}},
    ]
    texts = [
        "- query: ~\n  relevant: [d]\n- query: a b\n  relevant:\n- query: c\n  relevant: {null: 1}\n",
        json.dumps(rows),
    ]
    found = []
    for name, text in zip(("g.yaml", "g.json"), texts, strict=True):
        report = imported(tmp_path, name, text)
        assert "1 row refused, the first: entry 1: neither an identifier nor a text" in report.lines()[0]
        found.append(written(tmp_path / "out"))
    assert found[0] == found[1]


@pytest.mark.parametrize("cell", ['{"d1": 1, "d1": 0}', "{'d1': 1, 'd1': 0}", "[{'id': 'a', 'id': 'b'}]"])
def test_a_name_twice_in_a_cell_is_refused(cell, tmp_path):
    table = io.StringIO()
    csv.writer(table).writerows([["query", "relevant"], ["a b", cell]])
    with pytest.raises(WeirError, match=r"line 2: '\w+' twice in"):
        imported(tmp_path, "g.csv", table.getvalue())
