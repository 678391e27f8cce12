"""CSV, TSV, Parquet, Arrow and packed files: what is read, and what is refused in which words."""

from __future__ import annotations

import json
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

import weir
from tests.unit.brooklet import written_files
from tests.unit.test_cli import refused
from weir.core.judged import Judged
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.core.tables import table_of
from weir.errors import BadRanking, BadValue, FormatError, LossWarning, MissingExtra, WeirError
from weir.files import frames, tables
from weir.files import text_files as packed
from weir.files.frames import judged_from, qrels_from, run_from
from weir.files.runs import join_run_file, read_qrels, read_run, read_run_against
from weir.files.write import write_run

ROWS = {"query_id": ["q2", "q2", "q1", "q1"], "doc_id": ["a", "b", "a", "c"], "score": [1.5, 2.5, 0.25, 0.25]}
RUN = {"q2": {"b": 2.5, "a": 1.5}, "q1": {"c": 0.25, "a": 0.25}}
QRELS = "q1 0 a 1\nq2 0 b 0\n"
WRITE = {
    "parquet": lambda table, path: pq.write_table(table, path, row_group_size=3),
    "arrow": lambda table, path: feather.write_feather(table, path, chunksize=3),
    "feather": lambda table, path: feather.write_feather(table, path, compression="zstd"),
    "ipc": lambda table, path: stream(table, path),  # noqa: PLW0108 - defined below
}
each_table = pytest.mark.parametrize("ending", WRITE)


def stream(table, path):
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)


def stored(columns, tmp_path, ending="parquet"):
    path = tmp_path / f"r.{ending}"
    WRITE[ending](columns if isinstance(columns, pa.Table) else pa.table(columns), path)
    return path


def text(tmp_path, content, name="r.csv"):
    path = tmp_path / name
    path.write_bytes(content.encode())
    return path


@each_table
@pytest.mark.parametrize(
    "kind",
    ["string", "large_string", "string_view", "binary", "dictionary", "big dictionary"],
)
def test_every_type_of_text(ending, kind, tmp_path):
    of = {"string": pa.string(), "large_string": pa.large_string(), "binary": pa.binary()}
    table = pa.table(ROWS)
    for i, name in enumerate(("query_id", "doc_id")):
        column = pa.array(ROWS[name])
        if kind in of:
            column = column.cast(of[kind])
        elif kind == "string_view":
            column = column.cast(pa.string_view())
        else:  # values that repeat, and more of them than rows
            words = ["a", "c", "b", "q1", "q2", "q2"] + ["unused"] * (9 if kind == "big dictionary" else 0)
            column = pa.DictionaryArray.from_arrays([words.index(v) for v in ROWS[name]], words)
        table = table.set_column(i, name, column)
    if ending == "parquet" and kind == "string_view":
        table = table.cast(
            pa.schema([("query_id", pa.string()), ("doc_id", pa.string()), ("score", pa.float64())])
        )
    assert read_run(stored(table, tmp_path, ending)).to_dict() == RUN


@each_table
def test_whole_numbers_name_and_floats_are_exact(ending, tmp_path):
    score = np.array([0.1, 1 / 3, 16777216.0, 1e-40], np.float32)
    rows = {"qid": np.array([7, 7, 10, 10], np.int64), "docno": np.array([1, 2**63, 0, 5], np.uint64)}
    path = stored(pa.table(rows | {"score": score}), tmp_path, ending)
    run = read_run(path).to_dict()
    assert run == {"7": {"9223372036854775808": float(score[1]), "1": float(score[0])},
                   "10": {"0": 16777216.0, "5": float(score[3])}}  # fmt: skip
    halves = pa.table({"qid": [1], "docno": [1], "score": pa.array([np.float16(0.1)])})
    assert read_run(stored(halves, tmp_path, ending)).to_dict() == {"1": {"1": float(np.float16(0.1))}}
    wholes = pa.table({"qid": [1], "docno": [1], "score": [3]})
    assert read_run(stored(wholes, tmp_path, ending)).to_dict() == {"1": {"1": 3.0}}


def test_decimals_and_booleans_are_numbers_where_they_can_be(tmp_path):
    from decimal import Decimal

    columns = {"qid": ["q"], "docno": ["d"]}
    assert read_run(stored(columns | {"score": [Decimal("0.10")]}, tmp_path)).to_dict() == {"q": {"d": 0.1}}
    assert read_qrels(stored(columns | {"rel": [True]}, tmp_path)).to_dict() == {"q": {"d": 1}}
    assert read_qrels(stored(columns | {"rel": [2.0]}, tmp_path)).to_dict() == {"q": {"d": 2}}
    coded = pa.array([1.5]).dictionary_encode()
    assert read_run(stored(columns | {"score": coded}, tmp_path, "arrow")).to_dict() == {"q": {"d": 1.5}}


BAD = [
    ({"query_id": ["q", None], "doc_id": ["a", "b"], "score": [1.0, 2.0]}, "row 2: found no value in column query_id"),
    ({"query_id": ["q"], "doc_id": [None], "score": [1.0]}, "row 1: found no value in column doc_id"),
    ({"query_id": ["q", "q"], "doc_id": ["a", "b"], "score": [1.0, None]}, "row 2: found no value in column score"),
    ({"query_id": ["q"], "doc_id": [""], "score": [1.0]}, "row 1: found an empty doc_id"),
    ({"query_id": [""], "doc_id": ["d"], "score": [1.0]}, "row 1: found an empty query_id"),
    ({"query_id": ["q"] * 3, "doc_id": ["a", "b", "c"], "score": [1, 2, float("nan")]}, "row 3: found nan"),
    ({"query_id": ["q"], "doc_id": ["a"], "score": [float("-inf")]}, "row 1: found -inf in column score"),
    ({"query_id": [1.0], "doc_id": ["a"], "score": [1.0]}, "found column query_id of type double"),
    ({"query_id": ["q"], "doc_id": [True], "score": [1.0]}, "found column doc_id of type bool"),
    ({"query_id": ["q"], "doc_id": ["a"], "score": ["1"]}, "found column score of type string; expected a column of num"),
    ({"query_id": ["q"], "doc_id": ["a"], "score": [True]}, "found column score of type bool"),
    ({"query_id": ["q"], "doc_id": ["a"], "scor": [1.0]}, "none of them is the score; expected one called 'score' (rename 'scor'?)"),
    ({"query_id": ["q"], "docs_id": ["a"], "score": [1.0]}, "none of them is the document; expected one called 'doc_id' (rename 'docs_id'?)"),
    ({"qid": ["q"], "query_id": ["q"], "doc_id": ["a"], "score": [1.0]}, "qid and query_id could both be the query"),
]  # fmt: skip


@each_table
@pytest.mark.parametrize(("columns", "said"), BAD, ids=[said[:40] for _, said in BAD])
def test_bad_tables_are_refused_with_their_row(ending, columns, said, tmp_path):
    path = stored(columns, tmp_path, ending)
    with pytest.raises(FormatError) as caught:
        read_run(path)
    assert str(caught.value).startswith(str(path))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_nulls_in_a_dictionary_are_missing_values(tmp_path):
    column = pa.DictionaryArray.from_arrays([0, 1, 0], ["a", None])
    path = stored(pa.table({"qid": ["q"] * 3, "docno": column, "score": [1.0, 2, 3]}), tmp_path, "arrow")
    with pytest.raises(FormatError, match="row 2: found no value in column docno"):
        read_run(path)


@each_table
def test_judgments_in_tables_and_what_they_may_not_be(ending, tmp_path):
    columns = {"qid": ["q", "q", "p", "q"], "docno": ["a", "b", "a", "a"], "label": [1, -1, 2, 1]}
    assert read_qrels(stored(columns, tmp_path, ending)).to_dict() == {"q": {"a": 1, "b": -1}, "p": {"a": 2}}
    for grade, said in (
        ([1, 0, 0, 2], "row 4: found grade 2 for a pair that row 1 gives grade 1"),
        ([1, 0, -16384.5, 1], "row 3: found the grade '-16384.5'; expected a number within"),
        ([1, 0, 99999, 1], "row 3: found the grade '99999'"),
        (["1", "0", "0", "1"], "found column label of type string"),
    ):
        with pytest.raises(FormatError) as caught:
            read_qrels(stored(columns | {"label": grade}, tmp_path, ending))
        assert said in str(caught.value)


@each_table
def test_queries_that_come_back_and_chunks_that_cut_them(ending, tmp_path, monkeypatch):
    monkeypatch.setattr("weir.files.parsers.BLOCK_ROWS", 4)
    monkeypatch.setattr("weir.files.tables.BLOCK_ROWS", 3)
    rng = np.random.default_rng(0)
    for order in (np.arange(60), rng.permutation(60)):
        rows = [(f"q{i // 11}", f"document {i % 11}", float(i % 7)) for i in order.tolist()]
        query, doc, score = map(list, zip(*rows, strict=True))
        path = stored({"query_id": query, "doc_id": doc, "score": score}, tmp_path, ending)
        want = Run.of({q: {d: s for p, d, s in rows if p == q} for q in dict.fromkeys(query)})
        got = read_run(path)
        assert got.to_dict() == want.to_dict()
        assert [list(r) for r in got.to_dict().values()] == [list(r) for r in want.to_dict().values()]
        qrels = Qrels.of({"q1": {"document 3": 1}, "q9": {"x": 1}})
        joined, straight = join_run_file(path, qrels), Judged.of(want, qrels)
        assert joined.rank.tolist() == straight.rank.tolist()
        assert joined.ignored == straight.ignored == 5
        run, ignored = read_run_against(path, qrels.queries, qrels.docs)
        assert (run.ptr.tolist(), ignored) == ([0, 11, 11], 5)


@each_table
def test_cut_and_foreign_tables_are_damaged(ending, tmp_path, capsys):
    path = stored(ROWS, tmp_path, ending)
    qrels = text(tmp_path, QRELS, "qrels.trec")
    whole = path.read_bytes()
    for damaged in (whole[:-20], whole[: len(whole) // 2], b"", b"q Q0 d 1 2 t\n" * 9):
        path.write_bytes(damaged)
        said = refused(capsys, "eval", str(qrels), str(path))
        assert said.startswith(f"weir: {path}")
        assert "damaged" in said or "found" in said
    path.unlink()
    assert "no such file" in refused(capsys, "eval", str(qrels), str(path))


def test_offsets_that_lead_nowhere_are_damage(tmp_path):
    path = tmp_path / "r.arrow"
    feather.write_feather(pa.table(ROWS), path, compression="uncompressed")
    offsets = np.arange(5, dtype="<i4").tobytes()
    assert path.read_bytes().count(offsets) == 1
    path.write_bytes(path.read_bytes().replace(offsets, np.array([0, 1, 1 << 30, 3, 4], "<i4").tobytes()))
    with pytest.raises(FormatError, match="damaged"):
        read_run(path)


@pytest.mark.parametrize("new", [pa.ipc.new_file, pa.ipc.new_stream])
def test_an_arrow_batch_takes_the_memory_that_may_be_taken(tmp_path, monkeypatch, new):
    """Not packed it is mapped, and takes none; packed it is unpacked whole, and its sizes are known before."""
    monkeypatch.setattr(tables, "HARMLESS_BYTES", 1 << 18)
    monkeypatch.setenv("WEIR_MAX_RAM", "1M")
    count = 50_000  # of documents, in 1.2 MB
    coded = pa.array(["q"] * count).dictionary_encode()
    batch = pa.record_batch(
        [coded, [f"d{n:07}" for n in range(count)], np.arange(count, 0.0, -1.0)],
        names=["query_id", "doc_id", "score"],
    )
    path = tmp_path / "r.arrow"
    for codec in (None, "lz4", "zstd"):
        with new(path, batch.schema, options=pa.ipc.IpcWriteOptions(compression=codec)) as writer:
            writer.write_batch(batch)
        if codec is not None:
            message = r"unpacking the largest record batch of .*r\.arrow needs about 0\.0 GB .* write it in smaller batches"
            with pytest.raises(BadValue, match=message):
                read_run(path)
            monkeypatch.setenv("WEIR_MAX_RAM", "2M")
        assert len(read_run(path).doc) == count
        monkeypatch.setenv("WEIR_MAX_RAM", "1M")


def test_memory_that_is_not_there_is_no_damage(tmp_path):
    for size, error in ((1 << 20, pa.ArrowMemoryError), (1 << 60, FormatError)):
        with (
            pytest.raises(error, match=f"malloc of size {size} failed"),
            tables.table_errors(tmp_path / "r"),
        ):
            raise pa.ArrowMemoryError(f"malloc of size {size} failed")


def test_feather_of_version_1_and_packed_tables_are_refused(tmp_path):
    (tmp_path / "old.feather").write_bytes(b"FEA1" + bytes(64) + b"FEA1")
    with pytest.raises(FormatError, match="Feather of version 1"):
        read_run(tmp_path / "old.feather")
    (tmp_path / "r.parquet.gz").write_bytes(b"")
    with pytest.raises(FormatError, match="packed"):
        read_run(tmp_path / "r.parquet.gz")


def test_without_pyarrow_the_extra_is_named(tmp_path, monkeypatch):
    path = stored(ROWS, tmp_path)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    for use in (lambda: read_run(path), lambda: write_run(Run.of(RUN), tmp_path / "new.parquet")):
        with pytest.raises(MissingExtra, match=r"'pyarrow', which is not installed; pip install .*\[run\]'"):
            use()
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


CSV = [
    ("qid,docno,score\nq,a,2\nq,b,1\n", {"q": {"a": 2.0, "b": 1.0}}),
    ("\ufeffQID , DocNo,Score\r\nq,a,2\r\n\r\nq,b,1", {"q": {"a": 2.0, "b": 1.0}}),
    ("rank,score,docno,tag,qid\n1,2e0,a,,q\n2,+1.,b,x,q\n", {"q": {"a": 2.0, "b": 1.0}}),
    ('"qid","docno","score"\n"q","a","2"\n"q","b","1"\n', {"q": {"a": 2.0, "b": 1.0}}),
    ('qid,docno,score\nq,"a, ""b""\nc",2\n\nq,b,1\n', {"q": {'a, "b"\nc': 2.0, "b": 1.0}}),
    ("qid,docno,score\nq,a b,2\nq, a,1\n#q,a,1\n", {"q": {"a b": 2.0, " a": 1.0}, "#q": {"a": 1.0}}),
    ("qid,docno,score\n", {}),
]


@pytest.mark.parametrize("engine", ["numpy", "numba"])
@pytest.mark.parametrize(("content", "run"), CSV, ids=range(len(CSV)))
def test_csv_and_tsv_as_people_write_them(content, run, engine, tmp_path):
    assert read_run(text(tmp_path, content), engine=engine).to_dict() == run
    if "a, " not in content and ", a" not in content:
        assert read_run(text(tmp_path, content.replace(",", "\t"), "r.tsv"), engine=engine).to_dict() == run


BAD_CSV = [
    ("q1,d1,2.5\nq1,d2,1.5\n", "line 1: found 'q1,d1,2.5'; expected a header that names the columns, such as query_id,doc_id,score"),
    ("", "line 1: found no header"),
    ("\nqid,docno,score\nq,d,1\n", "line 1: found a blank line in the place of the header; expected a header"),
    ("qid,docno,scored\nq,d,1\n", "found the columns qid, docno, scored: none of them is the score; expected one called 'score' (rename 'scored'?)"),
    ("qid,title,score\nq,d,1\n", "none of them is the document; expected one called 'doc_id'; names of your own are read by: weir data import FILE -o DIR --columns doc=NAME,..."),
    ("qid,docno,score\nq,d,1\nq,e\n", "line 3: found 2 cells in 'q,e'; expected 3 cells: qid, docno, score"),
    ("qid,docno,score\nq,d,1\n\nq,e,2,x\n", "line 4: found 4 cells in 'q,e,2,x'; expected 3 cells"),
    ("qid,docno,score\nq,d,1\n,e,2\n", "line 3: found an empty qid"),
    ("qid,docno,score\nq,,2\n", "line 2: found an empty docno"),
    ("qid,docno,score\nq,d,high\n", "line 2: found 'high'; expected a finite number as the score, in column score"),
    ("qid,docno,score\nq,d, 3.5\n", "in column score, without blanks around it"),
    ("qid,docno,score\nq,d, 2\n", "line 2: found ' 2'"),
    ("qid,docno,score\nq,d,\n", "line 2: found ''"),
    ("qid,docno,score\nq,d,nan\n", "line 2: found 'nan'"),
    ('qid,docno,score\nq,"d",1\nq,"e\n\n",x\n', "line 5: found 'x'"),
    ('qid,docno,score\nq,"d",1\nq,e\n', "line 3: found 2 cells"),
    ('qid,docno,score\nq,"d\n', "found bad quoting (unexpected end of data)"),
    ('qid,docno,score\nq,"d"e,1\n', "line 2: found bad quoting"),
    ('qid,docno,score\nq,"d",1\n"",e,1\n', "line 3: found an empty qid"),
]  # fmt: skip


@pytest.mark.parametrize("engine", ["numpy", "numba"])
@pytest.mark.parametrize(("content", "said"), BAD_CSV, ids=[said[:50] for _, said in BAD_CSV])
def test_bad_lines_of_a_csv_are_named(content, said, engine, tmp_path):
    path = text(tmp_path, content)
    with pytest.raises(FormatError) as caught:
        read_run(path, engine=engine)
    assert str(caught.value).startswith(str(path))
    assert said in str(caught.value)


@pytest.mark.parametrize("cell", ["d", '"d"'])
def test_a_duplicate_in_a_csv_names_its_line(cell, tmp_path):
    path = text(tmp_path, f"qid,docno,score\np,d,1\nq,{cell},2\n\nq,e,1\nq,d,3\n")
    with pytest.raises(BadRanking, match="line 6: query 'q' ranks document 'd' twice"):
        read_run(path)


def test_judgments_in_csv(tmp_path):
    for content in ("qid,docno,rel\nq,a,1\nq,b,0\nq,a,1\n", 'qid,docno,iter,label\nq,"a",0,1\nq,b,0,0.0\n'):
        assert read_qrels(text(tmp_path, content)).to_dict() == {"q": {"a": 1, "b": 0}}
    for content, said in (
        (
            "qid,docno,rel\nq,a,high\n",
            "line 2: found 'high'; expected a finite number as the grade, in column rel",
        ),
        ("qid,docno,rel\nq,a,2e4\n", "line 2: found the grade '20000'"),
        ("qid,docno,rel\nq,a,1\nq,a,2\n", "line 3: found grade 2 for a pair that line 2 gives grade 1"),
        ("qid,docno,rank\nq,a,1\n", "none of them is the grade; expected one called 'relevance'"),
        ("q,a,1\n", "expected a header that names the columns, such as query_id,doc_id,relevance"),
    ):
        with pytest.raises(FormatError) as caught:
            read_qrels(text(tmp_path, content))
        assert said in str(caught.value)


def test_a_tsv_without_header_is_trecs_or_refused(tmp_path):
    assert read_run(text(tmp_path, "q\tQ0\td\t1\t2.5\tt\n", "r.tsv")).to_dict() == {"q": {"d": 2.5}}
    assert read_qrels(text(tmp_path, "q\td\t1\n", "q.tsv")).to_dict() == {"q": {"d": 1}}
    assert read_run(text(tmp_path, "q Q0 d 1 2.5 t\n", "r.tsv")).to_dict() == {"q": {"d": 2.5}}
    for name in ("r.tsv", "r.txt", "r.csv"):  # MS MARCO's: a rank and no score
        row = "q,d,1\n" if name == "r.csv" else "q\td\t1\n"
        with pytest.raises(
            FormatError, match=r"line 1: .*weir data import --as run-scores, or --as run-ranks"
        ):
            read_run(text(tmp_path, row, name))
    with pytest.raises(FormatError, match="expected a header"):
        read_run(text(tmp_path, "who\twhat\thow\n", "r.tsv"))


FRAMES = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "lazy": lambda rows: pl.DataFrame(rows).lazy(),
    "arrow": pa.table,
}


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_large_frames_go_through_arrow_and_come_to_the_same(frame, monkeypatch):
    monkeypatch.setattr(frames, "_STREAM_ROWS", 1)
    used = []
    real = frames.frame_source
    monkeypatch.setattr(frames, "frame_source", lambda *a: used.append(a) or real(*a))
    qrels = Qrels.of({"q1": {"a": 1}, "q3": {"a": 1}})
    run = run_from(frame(ROWS), name="mine", ties="trec9")
    assert (run.to_dict(), run.name, run.ties) == (RUN, "mine", "trec9")
    joined, straight = judged_from(frame(ROWS), qrels), Judged.of(Run.of(RUN), qrels)
    assert joined.rank.tolist() == straight.rank.tolist() == [2]
    judged = {"qid": ["q1", "q1"], "docno": [1, 2], "rel": [1, 0]}
    assert qrels_from(frame(judged)).to_dict() == {"q1": {"1": 1, "2": 0}}
    assert len(used) == 3
    shuffled = {name: [column[i] for i in (0, 2, 1, 3)] for name, column in ROWS.items()}
    assert run_from(frame(shuffled)).to_dict() == RUN
    scores = weir.evaluate({"q1": {"a": 1}}, frame(ROWS), ["RR"])
    assert scores.mean_values().tolist() == [0.5]
    with pytest.raises(weir.errors.BadValue, match="column qid holds float"):
        run_from(frame({"qid": [1.5], "docno": ["a"], "score": [1.0]}))
    with pytest.raises(BadRanking, match="'q' ranks document 'a' twice"):
        run_from(frame({"qid": ["q", "q"], "docno": ["a", "a"], "score": [1.0, 2.0]}))
    with pytest.raises(weir.errors.BadValue, match="judges document 'a' twice"):
        qrels_from(frame({"qid": ["q", "q"], "docno": ["a", "a"], "rel": [1, 1]}))


@pytest.mark.parametrize("ending", [".csv", ".tsv.gz", ".json.zst", ".parquet", ".arrow"])
def test_evaluate_and_compare_take_the_paths_of_all_formats(ending, tmp_path):
    from weir.files.write import write_qrels

    first, second, qrels = (tmp_path / f"{name}{ending}" for name in ("a", "b", "q"))
    write_run(Run.of(RUN), first)
    write_run(Run.of({"q2": {"a": 9.0, "b": 2.0}, "q1": {"a": 1.0}}), second)
    write_qrels(Qrels.of({"q2": {"a": 1}, "q1": {"a": 1}}), qrels)
    assert weir.evaluate(qrels, str(first), ["RR"]).mean_values().tolist() == [0.5]
    verdicts = weir.compare(qrels, [first, second], ["RR"])
    assert {s.system for s in verdicts[0].standings} == {"a", "b"}


@pytest.mark.parametrize("module", ["compression.zstd", "zstandard", "pyarrow"])
def test_zstandard_by_each_of_its_modules(module, tmp_path, monkeypatch):
    pytest.importorskip(module)
    monkeypatch.setattr(packed, "_ZSTD", (module,))
    run = Run.of({f"q{q}": {f"d{d}": float(d) for d in range(500)} for q in range(60)})
    path = tmp_path / "r.trec.zst"
    write_run(run, path)
    assert read_run(path).to_dict() == run.to_dict()
    whole = path.read_bytes()
    path.write_bytes(whole + whole)
    with pytest.raises(BadRanking, match="twice"):  # two frames are one text, in which all comes again
        read_run(path)
    for damaged in (whole[:-20], b"q Q0 d 1 2 t\n", whole[:50] + bytes(20) + whole[70:]):
        path.write_bytes(damaged)
        with pytest.raises(FormatError, match=r"r\.trec\.zst"):
            read_run(path)


def test_without_zstandard_it_is_asked_for(tmp_path, monkeypatch):
    monkeypatch.setattr(packed, "_ZSTD", ())
    (tmp_path / "r.csv.zst").write_bytes(b"anything")
    with pytest.raises(FormatError, match=r"found a .zst file.*pip install zstandard"):
        read_run(tmp_path / "r.csv.zst")
    with pytest.raises(MissingExtra):
        write_run(Run.of(RUN), tmp_path / "new.csv.zst")
    assert [p.name for p in tmp_path.iterdir()] == ["r.csv.zst"]


def test_json_lines_are_runs_and_judgments(tmp_path):
    rows = [{"qid": "q1", "docno": "d1", "score": 2.5}, {"qid": "q1", "docno": 9, "score": 1.5}]
    run, bare, qrels = written_files(
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
    (path,) = written_files(tmp_path, r__jsonl=first + line + "\n")
    with pytest.raises(WeirError, match=said):
        read_run(path)


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.jsonl", "t.parquet", "t.arrow"])
@pytest.mark.parametrize(("kind", "number"), [("run", "score"), ("qrels", "relevance")])
def test_columns_that_are_not_read_are_named(tmp_path, name, kind, number):
    row = {"query_id": "q", "doc_id": "d", number: 1, "title": "t", "iter": 0, "Annotator": "a"}
    path, joined = tmp_path / name, "\t" if name.endswith("tsv") else ","
    if name.endswith("jsonl"):
        path.write_text(json.dumps(row) + "\n")
    elif name.endswith("sv"):
        path.write_text(f"{joined.join(row)}\n{joined.join(map(str, row.values()))}\n")
    else:
        table = pa.Table.from_pylist([row])
        pq.write_table(table, path) if name.endswith("parquet") else feather.write_feather(table, path)
    with pytest.warns(LossWarning, match=rf"{name}: not read: 2 columns, title, Annotator$"):
        (read_run if kind == "run" else read_qrels)(path)


def test_numbers_of_html_have_the_signs_of_charts_and_texts_keep_theirs():
    table = table_of(
        [["query", "difference"], ["q-1 -2", "-0.0374"], ["q2", "+0.5000 [-0.1000, +0.9000]"]], right=1
    )
    html = table.html()
    assert "−0.0374" in html
    assert "[−0.1000, +0.9000]" in html
    assert "q-1 -2" in html
    assert "-0.0374" in table.csv()


@pytest.mark.parametrize("first", ["doc_id", "title", "text"])
def test_a_batch_of_a_large_file_holds_its_rows_alone_whichever_column_comes_first(
    first, tmp_path, monkeypatch
):
    monkeypatch.setattr(tables, "_CODED_BYTES", 0)
    columns = {name: [f"{name} {n} " * 20 for n in range(4096)] for name in ("doc_id", "title", "text")}
    columns = {first: columns.pop(first), **columns}
    pq.write_table(pa.table(columns), path := tmp_path / "documents.parquet")
    batches = list(tables.table_batches(path, True, 64))
    assert max(batch.nbytes for batch in batches) < 2 * pa.table(columns).nbytes / len(batches)
    assert pa.Table.from_batches(batches).to_pydict() == columns


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".json", ".parquet"])
@pytest.mark.parametrize("name", ["\ufeffq", '\ufeff"q"', "\ufeffa,b\tc"])
def test_an_identifier_that_begins_with_a_byte_order_mark_is_read_as_it_was_written(name, ending, tmp_path):
    rows = {"q": {name: 2.0, "a": 1.0}, name: {"a": 2.0, name: 1.0}}
    Run.of(rows).save(path := tmp_path / f"r{ending}")
    assert read_run(path).to_dict() == rows
    Qrels.of({query: dict.fromkeys(row, 1) for query, row in rows.items()}).save(path)
    assert sorted(read_qrels(path)) == sorted(rows)
