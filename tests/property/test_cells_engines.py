"""Both engines read any CSV or TSV alike, and as Python's csv module does."""

from __future__ import annotations

import csv
import io
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from weir.core.judged import Judged
from weir.core.qrels import Qrels
from weir.errors import BadRanking, FormatError
from weir.files import runs as runfile
from weir.files.runs import join_run_file, read_run

EASY = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)

_ids = st.one_of(
    st.sampled_from(
        ["1", "q1", "a much longer identifier", "sixteen-bytes-it", " é", "a\tb", "#", "d,e", '"', "x\ny"]
    ),
    st.text(st.sampled_from('ab,\t" é\r'), min_size=1, max_size=9),
)
_scores = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.floats(-50, 50).map(lambda x: f"{x:.4f}"),
    st.sampled_from(["1", "-0.0", "2.", ".5", "+3", "1e0", "12345678.12345678", "123456.1"]),
)
_odd = st.sampled_from(["", "nan", "1_0", "high", " 1", "0x1", "1e999"])


@st.composite
def _tables(draw: st.DrawFn) -> tuple[str, str]:
    """A separator, and a table of three to five columns in any order, mostly good."""
    separator = draw(st.sampled_from([",", "\t"]))
    columns = draw(
        st.permutations(["qid", "docno", "score", *draw(st.sampled_from([[], ["tag"], ["rank", "x"]]))])
    )
    queries = draw(st.lists(_ids, min_size=1, max_size=4))
    docs = draw(st.lists(_ids, min_size=1, max_size=30))
    careful = draw(st.booleans())  # no cell that only the csv module can read
    out = io.StringIO()
    quoting = draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
    ending = draw(st.sampled_from(["\n", "\r\n"]))
    writer = csv.writer(out, delimiter=separator, lineterminator=ending, quoting=quoting)
    writer.writerow(columns)
    for _ in range(draw(st.integers(0, 25))):
        cell = {
            "qid": draw(st.sampled_from(queries)),
            "docno": draw(st.sampled_from(docs)),
            "score": draw(_scores),
        }
        if draw(st.integers(0, 60)) == 0:
            cell["score"] = draw(_odd)
        row = [cell.get(column, draw(_ids)) for column in columns]
        if careful:
            row = [re.sub(r'["\r\n]', "_", value) for value in row]
        writer.writerow(row[: None if draw(st.integers(0, 60)) else -1])
        if draw(st.integers(0, 12)) == 0:
            out.write("\n")
    text = out.getvalue()
    return separator, text if draw(st.booleans()) else text.rstrip("\r\n") + "\n"


def slow_reader(separator: str, text: str) -> dict[str, dict[str, float]] | str:
    """{query: {document: score}}, or the kind of the first error.

    A carriage return that is neither quoted nor before a line feed ends a row for the csv module, and for nothing else
    that reads lines: such a file is refused.
    """
    lines: list[str] = []
    rows = csv.reader(
        (lines.append(line) or line for line in io.StringIO(text, newline="")),
        delimiter=separator,
        strict=True,
    )
    names = next(rows)
    found: dict[str, dict[str, float]] = {}
    kind = ""
    for row in rows:
        if lines[-1].endswith("\r"):
            return "FormatError"
        if not row:
            continue
        cell = dict(zip(names, row, strict=False))
        if len(row) != len(names) or not (cell["qid"] and cell["docno"] and _NUMBER.fullmatch(cell["score"])):
            return "FormatError"
        if not math.isfinite(float(cell["score"])):
            return "FormatError"
        ranking = found.setdefault(cell["qid"], {})
        kind = kind or ("BadRanking" if cell["docno"] in ranking else "")
        ranking[cell["docno"]] = float(cell["score"])
    return kind or found


@pytest.mark.filterwarnings("ignore::weir.errors.RankingWarning")  # of ranks that say another order
@EASY
@given(table=_tables(), block=st.sampled_from([64, 200, 1 << 20]), rows=st.sampled_from([2, 7, 1 << 16]))
@example(table=(",", "qid,docno,score,tag\n1,1,0.25,1\n"), block=64, rows=2)  # ends before the eighth byte
@example(table=(",", "qid,docno,score,tag\n1,1,0.25,a\rb\n"), block=64, rows=2)
@example(table=(",", 'qid,docno,score,tag\n1,1,0.25,"a\rb"\n1,2,0.5,x\n'), block=64, rows=2)
@example(table=(",", 'qid,docno,score,tag\n1,"a",0.25,b\r\r\n1,2,0.5,x\n'), block=64, rows=2)
@pytest.mark.filterwarnings("ignore::weir.errors.LossWarning")
def test_engines_agree_with_the_csv_module(table, block, rows, tmp_path, monkeypatch):
    separator, text = table
    path = tmp_path / ("r.csv" if separator == "," else "r.tsv")
    path.write_bytes(text.encode())
    expected = slow_reader(separator, text)
    qrels = Qrels.of({"q1": {"1": 1, "a": 2}, "1": {"1": 1}})
    original, outcomes = runfile.choose_engine, []
    for engine in ("numpy", "numba"):
        with monkeypatch.context() as patch:
            patch.setattr(
                runfile, "choose_engine", lambda name, size: replace(original(name, size), block=block)
            )
            patch.setattr("weir.files.parsers.BLOCK_ROWS", rows)
            patch.setattr("weir.files.formats.BLOCK_ROWS", rows)
            try:
                run = read_run(path, engine=engine)
            except (FormatError, BadRanking) as error:
                outcomes.append(str(error))
                if isinstance(error, FormatError):  # duplicates matter where a query is judged
                    with pytest.raises((FormatError, BadRanking)):
                        join_run_file(path, qrels, engine=engine)
                continue
            outcomes.append(run.to_dict())
            joined, straight = join_run_file(path, qrels, engine=engine), Judged.of(run, qrels)
            assert joined.rank.tolist() == straight.rank.tolist()
            assert np.array_equal(joined.retrieved, straight.retrieved)
            assert joined.ignored == straight.ignored
    # Of several mistakes either may be named: one engine may have had to read the file as a whole.
    assert outcomes[0] == outcomes[1] or all(isinstance(outcome, str) for outcome in outcomes)
    if isinstance(expected, str):
        assert isinstance(outcomes[0], str)
        if expected == "FormatError":
            assert (
                ": found " in outcomes[0] or "twice" in outcomes[0]
            )  # a duplicate of an earlier block comes first
        else:
            assert "twice" in outcomes[0]
    else:
        assert outcomes[0] == expected


def test_bytes_that_are_no_utf_8_are_refused(tmp_path):
    path = tmp_path / "r.csv"
    for cell in (b"\xff", b'"\xff"', b'"a""\xff"'):
        path.write_bytes(b"qid,docno,score\nq,d,1\nq," + cell + b",1\nq,\xfe,2\n")
        with pytest.raises(FormatError, match=r"line 3: found bytes that are not UTF-8 \(0xff"):
            read_run(path)
