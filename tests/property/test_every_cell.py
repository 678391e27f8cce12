"""Every cell of a run or of judgments is read as Python's own readers read it, or its line is refused."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import warnings
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from weir.core.qrels import Qrels
from weir.errors import LossWarning, RankingWarning, WeirError
from weir.files.formats import trec_fault
from weir.files.runs import read_qrels, read_run
from weir.files.write import convert
from weir.plugins.importing.importer import import_files

EASY = settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_ids = st.sampled_from(["1", "2", "10", "q1", "d-1", "a b", "é", "x,y", 'say "a"', "7"])
_words = st.sampled_from(["1", "2", "10", "q1", "d-1", "é", "x,y", "7"])
_cells = st.sampled_from(["", "", "0", "1", "3", "2.5", "-1", "nan", "yes", "1,5", " 2"])
_notes = st.sampled_from(["", "", "fine", "unsure, ask", "two\nlines", "old\rline", "5"])


def _number(text: str) -> float | None:
    value = float(text) if _NUMBER.fullmatch(text) else math.nan
    return value if math.isfinite(value) else None


def _outcome(read, path: Path) -> dict[str, dict[str, float]] | str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RankingWarning)
        warnings.simplefilter("ignore", LossWarning)
        try:
            return read(path).to_dict()
        except WeirError as error:
            return str(error)


@st.composite
def _rows(draw: st.DrawFn) -> list[tuple[str, str, str, str]]:
    """Rows of query, document, number and note, each pair once, some numbers blank or none."""
    pairs = draw(st.lists(st.tuples(_ids, _ids), min_size=1, max_size=8, unique=True))
    few = draw(st.booleans())
    number = st.sampled_from(["0", "1", "2", "3"]) if few else st.one_of(_cells, st.sampled_from(["1", "2"]))
    blanks = draw(st.sets(st.integers(0, 7), max_size=1))
    return [
        (query, doc, "" if n in blanks else draw(number), draw(_notes))
        for n, (query, doc) in enumerate(pairs)
    ]


def _expected(rows: list[list[str]]) -> dict[str, dict[str, float]] | None:
    """What rows of four cells say; None where a row is none."""
    found: dict[str, dict[str, float]] = {}
    for row in rows:
        value = _number(row[2]) if len(row) == 4 else None
        if value is None or not row[0] or not row[1] or row[1] in found.get(row[0], {}):
            return None
        found.setdefault(row[0], {})[row[1]] = value
    return found


@EASY
@given(
    rows=_rows(),
    kind=st.sampled_from(["run", "qrels"]),
    separator=st.sampled_from([",", "\t", ";"]),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    ending=st.sampled_from(["\n", "\r\n", "\r"]),
    named=st.booleans(),
    damage=st.sampled_from(["", "", "", "extra", "missing", "joined"]),
)
def test_tables_are_read_as_the_csv_module_reads_them_or_refused(
    rows, kind, separator, quoting, ending, named, damage, tmp_path
):
    out = io.StringIO()
    writer = csv.writer(out, delimiter=separator, lineterminator=ending, quoting=quoting)
    head = ["query_id", "doc_id", "score" if kind == "run" else "relevance", "note"]
    cells = [list(row) for row in rows]
    if damage == "extra":
        cells[-1].append("more")
    elif damage == "missing":
        cells[-1].pop()
    for row in [head, *cells]:
        writer.writerow(row)
    text = out.getvalue()
    if damage == "joined" and len(cells) > 1:  # as files joined without a last line end
        end = text.rindex(ending, 0, -len(ending))
        text = text[:end] + text[end + len(ending) :]
    if named and separator == ";":
        text = f"sep=;{ending}{text}"
    path = tmp_path / ("t.tsv" if separator == "\t" else "t.csv")
    path.write_text(text, encoding="utf-8", newline="")
    outcome = _outcome(read_run if kind == "run" else read_qrels, path)
    decimal = "," if separator == ";" else "."  # between semicolons commas are decimal
    said = _expected([[*row[:2], row[2].replace(decimal, "."), *row[3:]] for row in cells])
    marks = {mark for row in cells for mark in ".," if mark in row[2]}
    said = None if separator == ";" and len(marks) > 1 else said
    if isinstance(outcome, str):
        bare = quoting == csv.QUOTE_MINIMAL and ending == "\n" and any("\r" in row[-1] for row in cells)
        sound = said is not None and ending != "\r" and not bare
        sound = sound and not (damage == "joined" and len(cells) > 1)
        assert not sound, outcome
        assert "t.tsv, line " in outcome or "t.csv, line " in outcome
    else:
        assert outcome == said


@EASY
@given(rows=_rows(), kind=st.sampled_from(["run", "qrels"]), null=st.booleans())
def test_json_lines_are_read_as_the_json_module_reads_them_or_refused(rows, kind, null, tmp_path):
    name = "score" if kind == "run" else "relevance"
    objects = []
    for query, doc, text, note in rows:
        value = _number(text)
        objects.append({"query_id": query, "doc_id": doc, name: value if null else text, "note": note})
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join(map(json.dumps, objects)))
    outcome = _outcome(read_run if kind == "run" else read_qrels, path)
    sound = null and all(one[name] is not None for one in objects)
    assert isinstance(outcome, str) != sound
    if sound:
        said: dict[str, dict[str, float]] = {}
        for one in map(json.loads, path.read_text().split("\n")):
            said.setdefault(one["query_id"], {})[one["doc_id"]] = one[name]
        assert outcome == said


_lines = st.lists(
    st.tuples(
        _words,
        st.sampled_from(["Q0", "Q0", "Q0", "0", "d9"]),
        _words,
        st.sampled_from(["1", "2", "30", "-", "x"]),
        st.sampled_from(["1", "2.5", "-3e-2", "1.5D+01", "nan"]),
        st.sampled_from(["t", "t", "", "t # a remark 1 2", "two words"]),
    ).map(lambda cells: " ".join(filter(None, cells))),
    min_size=1,
    max_size=8,
)


@EASY
@given(lines=_lines, ends=st.sampled_from(["\n", "\r\n", "\r", ""]), tabs=st.booleans())
def test_lines_of_trec_are_read_alike_by_eval_and_import_or_refused(lines, ends, tabs, tmp_path):
    text = ends.join(lines) if ends else "".join(lines)
    text = text.replace(" ", "\t") if tabs else text
    path = tmp_path / "run.trec"
    path.write_text(text, newline="")
    outcome = _outcome(read_run, path)
    rows = [line.split() for line in text.split("\n") if line.split()]
    sound = all(not trec_fault(row) for row in rows)
    pairs = {(row[0], row[2]) for row in rows if len(row) > 2}
    if sound and len(pairs) == len(rows):
        said: dict[str, dict[str, float]] = {}
        for row in rows:
            said.setdefault(row[0], {})[row[2]] = float(row[4])
        swapped = isinstance(outcome, str) and "in the place of ranks" in outcome
        assert swapped or outcome == said
    else:
        assert isinstance(outcome, str)
    if isinstance(outcome, dict):
        report = import_files(path, tmp_path / "out", as_kind="trec-run")
        assert not report.refused
        assert read_run(tmp_path / "out" / "runs" / "run.trec").to_dict() == outcome
        tags = {row[5] for row in rows if len(row) > 5} - {"run"}
        assert all(tag in report.lines()[0] for tag in tags)


@EASY
@given(
    second=st.lists(st.sampled_from(["0", "Q0", "1", "2", "intent-7"]), min_size=1, max_size=12),
    tabs=st.booleans(),
)
def test_the_second_column_of_judgments_is_alike_in_all_rows_or_told_by_whatever_reads_it(
    second, tabs, tmp_path
):
    text = "".join(f"q{n % 2} {one} d{n} {n % 3}\n" for n, one in enumerate(second))
    path = tmp_path / "j.qrels"
    path.write_text(text.replace(" ", "\t") if tabs else text)
    values = {"0" if one == "Q0" else one for one in second}
    names = f"column 2, of {len(values)} intents or rounds ({', '.join(sorted(values))})"
    expected = [] if len(values) == 1 else [names]
    for read in (read_qrels, lambda path: convert(path, tmp_path / "j.json")):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            read(path)
        said = [str(one.message) for one in caught if issubclass(one.category, LossWarning)]
        assert said == [f"{path}: not read: {one}" for one in expected]
    report = import_files(path, tmp_path / "out", as_kind="qrels")
    assert list(report.files[0]["left_out"]) == expected


@pytest.mark.parametrize("name", ["j.csv", "j.tsv", "j.jsonl"])
@pytest.mark.filterwarnings("ignore::weir.errors.LossWarning")
def test_a_blank_grade_never_takes_the_one_of_the_next_row(name, tmp_path):
    """One quoted cell, or none: the blank grade of d1 is refused, its line named."""
    path = tmp_path / name
    for note in ('"unsure, ask"', "unsure"):
        if name.endswith("jsonl"):
            path.write_text('{"query_id": "q1", "doc_id": "d1", "grade": null}\n')
            expected = "line 1"
        else:
            rows = f"query_id,doc_id,grade,note\nq1,d1,,{note}\nq1,d2,3,\nq2,d1,0,\n"
            path.write_text(
                rows if name == "j.csv" else rows.replace('"unsure, ask"', "x").replace(",", "\t")
            )
            expected = "line 2"
        with pytest.raises(WeirError, match=expected):
            Qrels.load(path)
