"""A ranking is of one system and a file is one file, in every format: what was put together is refused or said."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from itertools import groupby, pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import weir
from weir.errors import BadRanking, BadValue, FormatError, RankingWarning
from weir.files import parsers
from weir.files.frames import run_from
from weir.files.runs import read_qrels, read_run

pa = pytest.importorskip("pyarrow", reason="Parquet and Arrow files take pyarrow")

LONG = "a-tag-of-more-than-two-words-of-eight-bytes-"
HEAD = ("query", "doc", "score", "system", "rank")
ROWS = st.lists(
    st.tuples(
        st.sampled_from("pqr"), st.sampled_from(["a", "b", "b c", LONG + "1", LONG + "2"]), st.integers(1, 4)
    ),
    min_size=1,
    max_size=9,
)
MARK = "\ufeff"


def write(folder, form, rows):
    """Write (query, document, score, system, rank) in a format and return what `run_from` takes; rank may lack."""
    columns = {name: list(cells) for name, cells in zip(HEAD, zip(*rows, strict=True), strict=False)}
    path = folder / f"run.{form.removeprefix('quoted.')}"
    if form == "frame":
        return pa.table(columns)
    if form == "parquet":
        from pyarrow import parquet

        parquet.write_table(pa.table(columns), path)
    elif form == "arrow":
        from pyarrow import feather

        feather.write_feather(pa.table(columns), str(path))
    elif form == "jsonl":
        path.write_text("".join(json.dumps(dict(zip(HEAD, row, strict=False))) + "\n" for row in rows))
    elif form == "trec":
        path.write_text("".join(f"{q} Q0 {d} {r} {s} {t}\n" for q, d, s, t, r in rows))
    else:
        mark = '"' if form.startswith("quoted") else ""
        sign = "\t" if form.endswith("tsv") else ","
        lines = [HEAD[: len(rows[0])], *([f"{mark}{cell}{mark}" for cell in row] for row in rows)]
        path.write_text("".join(sign.join(line) + "\n" for line in lines))
    return path


def outcome(read, value, small_blocks, engine="numpy"):
    """Return what is read by an engine, or the error; small_blocks: in blocks of a line or two."""
    parser = parsers.choose_engine(engine, 0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parsers, "NUMPY_PARSER", replace(parser, block=64) if small_blocks else parser)
        try:
            return read(value)
        except (FormatError, BadRanking) as error:
            return error


def is_mixed(rows):
    """Rows of several systems stand in a ranking in which a rank lacks or stands twice."""
    by_query = groupby(sorted(rows), key=lambda row: row[0])
    for ranking in (list(ranking) for _, ranking in by_query):
        ranks = {row[4] for row in ranking if len(row) > 4}
        if len({row[3] for row in ranking}) > 1 and len(ranks) < len(ranking):
            return True
    return False


@pytest.mark.parametrize("form", ["trec", "csv", "tsv", "quoted.csv", "jsonl", "parquet", "arrow", "frame"])
@given(rows=ROWS, ranked=st.booleans(), blocks=st.booleans(), engine=st.sampled_from(["numpy", "numba"]))
@example(rows=[("q", "a", 1), ("q", "b", 2)], ranked=True, blocks=False, engine="numba")
@example(rows=[("q", "a", 1), ("p", "b", 1)], ranked=False, blocks=True, engine="numba")
@example(rows=[("q", LONG + "1", 1), ("q", LONG + "2", 2)], ranked=True, blocks=False, engine="numba")
def test_a_ranking_of_several_systems_is_refused_and_else_said(
    tmp_path_factory, form, rows, ranked, blocks, engine
):
    tag = {"b c": "b_c"} if form == "trec" else {}
    wide = [(q, f"d{n}", 9.5 - n, tag.get(t, t), r) for n, (q, t, r) in enumerate(rows)]
    wide = wide if ranked or form == "trec" else [row[:4] for row in wide]
    given_run = write(tmp_path_factory.mktemp("form"), form, wide)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RankingWarning)
        found = outcome(run_from, given_run, blocks, engine)
    if is_mixed(wide):
        assert isinstance(found, FormatError)
        assert "a row of system '" in str(found)
        assert ("give the rows of one" in str(found)) == (form == "frame")
        return
    assert {(q, d) for q, docs in found.to_dict().items() for d in docs} == {row[:2] for row in wide}
    said = [str(one.message) for one in caught if "which do not overlap" in str(one.message)]
    assert bool(said) == (len({row[3] for row in wide}) > 1)


@given(ROWS)
def test_an_import_makes_a_run_of_each_system(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("cat")
    wide = [(q, f"d{n}", 9.5 - n, t.replace(" ", "_"), r) for n, (q, t, r) in enumerate(rows)]
    weir.import_files(write(folder, "trec", wide), folder / "out")
    runs = {path.stem: read_run(path).to_dict() for path in (folder / "out" / "runs").iterdir()}
    whole = {"run": wide}
    by_tag = {tag: [row for row in wide if row[3] == tag] for tag in {row[3] for row in wide}}
    expected = by_tag if is_mixed(wide) else whole
    assert {name: {(q, d) for q, docs in run.items() for d in docs} for name, run in runs.items()} == {
        name: {row[:2] for row in of} for name, of in expected.items()
    }


@pytest.mark.parametrize("form", ["trec", "csv", "tsv", "quoted.csv", "jsonl", "qrels"])
@given(sizes=st.lists(st.integers(1, 4), min_size=1, max_size=3), ended=st.booleans(), blocks=st.booleans())
def test_files_with_marks_that_were_joined_are_told_or_read_rightly(
    tmp_path_factory, form, sizes, ended, blocks
):
    folder, pieces, expected = tmp_path_factory.mktemp("joined"), [], set()
    for number, size in enumerate(sizes):
        rows = [(f"q{number}", f"d{n}", 9.5 - n, "t", n) for n in range(size)]
        if form == "qrels":
            text = "".join(f"{row[0]} 0 {row[1]} 1\n" for row in rows)
        else:
            text = write(folder, form, rows).read_text()
        pieces.append(MARK + (text if ended else text.removesuffix("\n")))
        expected |= {row[:2] for row in rows}
    path = folder / f"all.{'txt' if form == 'qrels' else form.removeprefix('quoted.')}"
    path.write_text("".join(pieces), encoding="utf-8")
    found = outcome(read_qrels if form == "qrels" else read_run, path, blocks)
    if isinstance(found, Exception):
        assert len(sizes) > 1
        assert not ended or "a byte order mark, with which another file begins" in str(found)
        return
    assert {(q, d) for q, docs in found.to_dict().items() for d in docs} == expected


ORDERS = st.lists(
    st.lists(st.integers(0, 10**6), min_size=4, max_size=7, unique=True), min_size=6, max_size=6
)


def table_of(orders, put_together):
    """Rows (query, document, score, value) of three queries, with two rankings of each."""
    rows = []
    for number, pair in enumerate(zip(orders[::2], orders[1::2], strict=True)):
        parts = [
            [
                (f"q{number}", f"{value}{n}", score, value)
                for n, score in enumerate(sorted(scores, reverse=True))
            ]
            for value, scores in zip("xy", pair, strict=True)
        ]
        rows += put_together(parts)
    return rows


def written_with(folder, form, rows, name):
    head = ("query", "doc", "score", name)
    columns = {one: list(cells) for one, cells in zip(head, zip(*rows, strict=True), strict=True)}
    if form in ("frame", "dict"):
        return pa.table(columns) if form == "frame" else columns
    path = folder / f"run.{form}"
    if form == "parquet":
        from pyarrow import parquet

        parquet.write_table(pa.table(columns), path)
    elif form == "jsonl":
        path.write_text("".join(json.dumps(dict(zip(head, row, strict=True))) + "\n" for row in rows))
    else:
        path.write_text("".join(",".join(map(str, row)) + "\n" for row in (head, *rows)))
    return path


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet", "frame", "dict"])
@settings(max_examples=10)
@given(orders=ORDERS, name=st.sampled_from(["embedding", "iteration", "arm", "Version 2", "notes"]))
def test_rankings_put_together_by_a_column_of_any_name_are_refused(form, orders, name, tmp_path_factory):
    folder = tmp_path_factory.mktemp("apart")
    apart = table_of(orders, lambda parts: parts[0] + parts[1])
    whole = table_of(orders, lambda parts: sorted(parts[0] + parts[1], key=lambda row: -row[2]))
    rising = sum(a[2] < b[2] and a[0] == b[0] for a, b in pairwise(apart))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if rising >= 2:  # of three queries
            with pytest.raises(
                FormatError, match=f"rows of {name} 'x' and 'y' for query 'q.', each in an order of its own"
            ):
                run_from(written_with(folder, form, apart, name))
            if form in ("csv", "jsonl"):
                with pytest.raises(BadValue, match="--columns system=NAME makes a run of each"):
                    weir.import_files(folder / f"run.{form}", folder / "refused")
                weir.import_files(folder / f"run.{form}", folder / "out", columns={"system": name})
                assert {path.name for path in (folder / "out/runs").iterdir()} == {"x.trec", "y.trec"}
        run = run_from(written_with(folder, form, whole, name))  # a column of the documents
        assert len(run.score) == len(whole)
