"""Files that nobody writes by mistake alone: each is refused in one line, quickly and in bounded memory."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import math
import os
import pickle
import resource
import subprocess
import sys
import time
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

import weir
from tests.unit.brooklet import write_collection
from weir.cli import main
from weir.core.strings import Ids, Strings
from weir.errors import BadValue, FormatError, WeirError
from weir.files import json_files as jsonl
from weir.files import text_files as lines
from weir.files.layouts import CollectionPart, find_layout
from weir.files.runs import read_qrels, read_run
from weir.files.score_files import read_baseline, read_scores, read_scores_value, write_scores_value
from weir.files.text_files import read_toml
from weir.settings import IDENTIFIER_BYTES

QRELS = "q1 0 d1 1\nq1 0 d2 0\nq2 0 d3 2\n"
RUN = "q1 Q0 d1 1 2.5 x\nq1 Q0 d9 2 1.5 x\n"


def one_line(capsys, *arguments: str) -> str:
    """The one line in which a command refuses, with exit code 2 and no word of a bug in Weir."""
    assert main(list(arguments)) == 2
    out, err = capsys.readouterr()
    found = [line for line in err.split("\n") if line]
    assert (out, len(found)) == ("", 1)
    assert found[0].startswith("weir: ")
    assert "bug in Weir" not in found[0]
    assert found[0].isprintable()
    return found[0]


# Rankings and judgments


@pytest.fixture
def qrels(tmp_path) -> str:
    (tmp_path / "q").write_text(QRELS)
    return str(tmp_path / "q")


def zipped(text: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("run", text)
    return file.getvalue()


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("r", gzip.compress(RUN.encode()), "found gzip data; expected its name to end in .gz"),
        ("r.txt", gzip.compress(RUN.encode()), "found gzip data"),
        ("r.bz2", bz2.compress(RUN.encode()), "found bzip2 data; expected the file unpacked"),
        ("r.xz", lzma.compress(RUN.encode()), "found xz data"),
        ("r.lz4", b"\x04\x22\x4d\x18" + RUN.encode(), "found lz4 data"),
        ("r.zip", zipped(RUN), "found a zip or an Excel workbook; expected each sheet saved as CSV, or one file out of the zip"),
        ("r.pkl", pickle.dumps({"q1": print}), "the name builtins.print, which is not allowed"),
        ("r.json", pickle.dumps({"q1": {"d1": 1.0}}), "found a Python pickle; expected its name to end in .pickle"),
        ("r", RUN.encode("utf-16-le"), "found text in UTF-16"),
        ("r.trec.gz", RUN.encode(), "a damaged file"),
        ("r.npy", b"\x93NUMPY\x01\x00", "a numpy array"),
        ("r.trec", QRELS.encode(), "4 are judgments, which stand before the run"),
        ("r.json", b'{"q1": {"d1": 1.5}}\n{"q2": {"d1": 2.5}}\n', "r.json, line 2: found JSON lines"),
        ("r.json", b'{"q1": {"d1": ' + b"9" * 5000 + b"}}", "no valid JSON (a number of thousands of digits)"),
        ("r.json", b'{"q1": {"d1": ' + b"9" * 400 + b"}}", "score"),
        ("r.json", b'{"q1": {"d1": ' + b"[" * 100_000, "no valid JSON (nested too deeply)"),
        ("r.json", b'{"a":' * 100_000, "no valid JSON"),
        ("r.json", b'{"q1": {"d1": 1}} \xff', "line 1: found bytes that are not UTF-8 (0xff)"),
        ("r.json", b'{"q1": {"\\ud800": 1.5}}', "not valid Unicode"),
        ("r.csv", b"qid,docno,score\nq1,d\r1,x,1.5\nq1,d2,1\n", "line 2"),
        ("r.csv", b"qid,docno,score\nq1,d1,1,2\n" + b"q" * 200_000 + b",d2,1\n", "line 2: found 4 cells"),
        ("r.csv", b"qid,docno,score\nq1," + b"d" * 200_000 + b",x\n", "line 2: found an identifier of 200,000 bytes"),
        ("r.csv", b'qid,docno,score\nq1,"d""' + b"d" * 200_000 + b'",1\n', "line 2: found a cell of more than 131,072"),
        ("r.csv", b'qid,docno,score\nq1,"d""' + b"d" * 9000 + b'",1\n', "line 2: found an identifier of 9,002 bytes"),
        ("r.csv", b'qid,docno,score\nq1,"d"""' + b"d" * (1 << 21), "line 2: found a line of more than 1,048,576 bytes"),
        ("r.csv", b"q" * (1 << 21), "line 1"),
        ("r.trec", b"q1 Q0 " + b"d" * 5000 + b" 1 2.5 x\n", "line 1: found an identifier of 5,000 bytes"),
        ("r.trec", RUN.encode() + b"q" * 5000 + b" Q0 d 1 2.5 x\n", "line 3: found an identifier of 5,000 bytes"),
        ("r.trec", RUN.encode() + b"q1 Q0 " + b"d" * 10_000_000 + b" 1 2.5 x\n", "line 3: found a line of more than"),
        ("r.json", b'{"q1": {"' + b"d" * 5000 + b'": 1.5}}', "an identifier of 5,000 bytes"),
        ("r.parquet", b"PAR1" + bytes(100) + b"PAR1", "a damaged table"),
        ("r.arrow", b"ARROW1\0\0" + bytes(200) + b"ARROW1", "a damaged table"),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else len(value),
)  # fmt: skip
def test_a_file_that_is_no_run_is_named_for_what_it_is(tmp_path, capsys, qrels, name, data, said):
    (tmp_path / name).write_bytes(data)
    began = time.process_time()
    line = one_line(capsys, "eval", qrels, str(tmp_path / name))
    assert said in line
    assert name in line
    assert len(line) < 1000
    assert time.process_time() - began < 30.0


@pytest.mark.parametrize(
    "name",
    ["n" * 5000, "a\0b", "half a surrogate \ud800", "file/within"],
    ids=["long", "zero", "half", "within"],
)
@pytest.mark.parametrize("read", [read_run, read_qrels])
def test_a_path_that_no_file_can_have_is_no_such_file(tmp_path, read, name):
    (tmp_path / "file").write_text(RUN)
    with pytest.raises(FormatError, match="expected the path of"):
        read(tmp_path / name)


@pytest.mark.parametrize(
    ("value", "read"),
    [("0.1", 0.1), ("1e-320", 1e-320), ("null", math.nan), ("NaN", math.nan), ("1e999", math.inf),
     ("123456789012345678901234567890", 123456789012345678901234567890.0)],
)  # fmt: skip
@pytest.mark.parametrize("query", ["q", "\\u00e9", "\\ud800", "q\\t"])
def test_scores_read_alike_whichever_package_parses_them(tmp_path, monkeypatch, value, read, query):
    path = tmp_path / "scores-1.jsonl"
    path.write_text(f'{{"measure": "AP", "query": "{query}", "value": {value}}}\n')

    def outcome() -> object:
        try:
            scores = read_scores(path)
        except WeirError as error:
            return str(error)
        np.testing.assert_array_equal(scores.values, [[read]])
        return scores.queries.tolist()

    monkeypatch.setattr("weir.files.score_files._ORJSON_BYTES", 0)
    found = outcome()
    monkeypatch.setattr("weir.files.score_files.orjson_loads", lambda: None)
    assert outcome() == found


@pytest.mark.parametrize(
    "data",
    [b"\xff", b'{"measure": "AP", "query": "q", "value": 1' + b"0" * 400 + b"}", b"[]", b"1", b"[" * 100_000],
)
@pytest.mark.parametrize("read", [read_scores, read_scores_value, read_baseline])
def test_scores_that_are_none_are_refused(tmp_path, read, data):
    (tmp_path / "s").write_bytes(data)
    with pytest.raises(FormatError, match="/s"):
        read(tmp_path / "s")


def test_a_parquet_file_whose_columns_contradict_its_statistics_ends_no_process(tmp_path, qrels):
    """pyarrow ends the process where it is asked for such a column's description."""
    table = pa.table({"query_id": ["q1", "q1"], "doc_id": ["d1", "d2"], "score": [2.5, 1.0]})
    parquet.write_table(table, tmp_path / "r.parquet", compression="none")
    data = (tmp_path / "r.parquet").read_bytes()
    required = data.replace(b"%\x02\x18\x05score", b"%\x00\x18\x05score")  # it was optional
    assert required != data
    (tmp_path / "r.parquet").write_bytes(required)
    command = [sys.executable, "-m", "weir", "eval", qrels, str(tmp_path / "r.parquet")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 2), done.stderr


def test_an_arrow_file_whose_dictionary_says_that_it_is_longer_ends_no_process(tmp_path, qrels):
    """Arrow reads its offsets where it counts the bytes of a batch."""
    coded = pa.array([f"q{n}" for n in range(977)]).dictionary_encode()
    batch = pa.record_batch([coded, coded, [1.0] * 977], names=["query_id", "doc_id", "score"])
    with pa.ipc.new_file(tmp_path / "r.arrow", batch.schema) as writer:
        writer.write_batch(batch)
    data = (tmp_path / "r.arrow").read_bytes()
    length = (977).to_bytes(8, "little")
    longer = data.replace(
        length, (1 << 48).to_bytes(8, "little"), 2
    )  # of the first dictionary, and of its column
    (tmp_path / "r.arrow").write_bytes(longer)
    command = [sys.executable, "-m", "weir", "eval", qrels, str(tmp_path / "r.arrow")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n"), "a damaged table" in done.stderr) == (2, 1, True)


@pytest.mark.parametrize("name", ["values", "answered", "low"])
def test_columns_of_scores_that_do_not_fit_are_refused(tmp_path, name):
    scores = weir.evaluate({"q1": {"d1": 1}}, {"q1": {"d1": 1.0}}, ["AP"])
    write_scores_value(scores, tmp_path / "s")
    value = json.loads((tmp_path / "s").read_text())
    (tmp_path / "s").write_text(json.dumps(value | {name: 1}))
    with pytest.raises(FormatError, match="another number of measures or queries"):
        read_scores_value(tmp_path / "s")


@pytest.mark.parametrize("engine", ["numpy", "numba"])
def test_the_first_bad_line_is_named_although_quoting_ends_behind_it(tmp_path, engine):
    (tmp_path / "r.csv").write_text('qid,docno,score\nq1,d1,1\nq1,d\nq1,"a\nb",1\nq1,"c"d,1\n')
    with pytest.raises(FormatError, match="line 3: found 2 cells"):
        read_run(tmp_path / "r.csv", engine=engine)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (RUN.encode(), "this looks like a run, and judgments come first"),
        (b"q1 0 d1 1\nq1 0 " + b"d" * 5000 + b" 1\n", "line 2: found an identifier of 5,000 bytes"),
        (
            b"q1 0 d1 1\nq1 0 d" + b" " * (1 << 21) + b" 1\n",
            "line 2: found a line of more than 1,048,576 bytes",
        ),
        (b"q1 0 d1 99999999999999999999\n", "the grade '99999999999999999999'"),
        (b"q1 0 d1 1e999\n", "line 1"),
        (b'{"q1": {"d1": 99999999999999999999999}}', "the grade is beyond"),
        (b'{"q1": {"d1": 1e999}}', "q: found"),
        (pickle.dumps({"q1": {"d1": print}}), "the name builtins.print, which is not allowed"),
    ],
)
def test_a_file_that_holds_no_judgments_is_named_for_what_it_is(tmp_path, capsys, data, said):
    (tmp_path / "q").write_bytes(data)
    (tmp_path / "r").write_text(RUN)
    assert said in one_line(capsys, "eval", str(tmp_path / "q"), str(tmp_path / "r"))


def test_a_json_run_is_one_by_its_name_in_every_command(tmp_path, capsys, qrels):
    (tmp_path / "r.trec").write_text(RUN)
    (tmp_path / "r.json").write_text('[{"q1": {"d1": 1.5}}]')
    for command in (["eval", qrels], ["diff", qrels, str(tmp_path / "r.trec")]):
        assert "r.json: found a JSON list" in one_line(capsys, *command, str(tmp_path / "r.json"))


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null", "/dev/urandom"])
def test_a_device_is_no_file(qrels, device, capsys):
    assert f"{device}: found a device; expected a file" in one_line(capsys, "eval", qrels, device)
    assert "a device" in one_line(capsys, "eval", device, qrels)
    assert "a device" in one_line(capsys, "data", "convert", device, "out.csv")


@pytest.mark.parametrize("engine", ["numpy", "numba"])
@pytest.mark.parametrize("size", [lines.LINE_BYTES - 1, lines.LINE_BYTES, lines.LINE_BYTES + 1])
@pytest.mark.filterwarnings("ignore:.*which do not overlap")
@pytest.mark.parametrize("before", [0, 1, 100_000])
def test_the_bound_of_a_line_is_exact_wherever_it_stands(tmp_path, engine, size, before):
    row = b"q1 Q0 d1 1 2.5 "
    data = (
        b"q0 Q0 d1 1 2.5 x\n" * min(before, 1)
        + b"# note\n" * before
        + row
        + b"t" * (size - len(row))
        + b"\nq2 Q0 d 1 1 x\n"
    )
    (tmp_path / "r").write_bytes(data)
    if size <= lines.LINE_BYTES:
        assert read_run(tmp_path / "r", engine=engine).queries.tolist()[-1] == "q2"
    else:
        with pytest.raises(
            FormatError, match=f"line {before + min(before, 1) + 1}: found a line of more than"
        ):
            read_run(tmp_path / "r", engine=engine)


def packed_zeros(path: Path, size: int, begin: bytes = b"") -> Path:
    """A packed file of one line: a beginning, and so many equal bytes."""
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(begin)
        for _ in range(size >> 20):
            file.write(b"0" * (1 << 20))
    return path


LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
from weir.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize(
    ("name", "begin"), [("r.trec.gz", b"q1 Q0 "), ("r.json.gz", b'{"q1": {"'), ("r.csv.gz", b"")]
)
def test_a_packed_bomb_of_one_line_takes_little(tmp_path, qrels, name, begin):
    bomb = packed_zeros(tmp_path / name, 400 << 20, begin)
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, "eval", qrels, str(bomb)], check=False, capture_output=True, text=True
    )
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before < 60
    assert (done.returncode, len(done.stderr.strip().split("\n"))) == (2, 1)
    assert name in done.stderr


def sparse(path: Path, begin: bytes = b"") -> Path:
    """A file of 1.5 GB of zero bytes, behind some others, that takes no room."""
    with path.open("wb") as file:
        file.write(begin)
        file.truncate(1536 << 20)
    return path


def same_rows(path: Path, rows: int, document: str) -> Path:
    """A Parquet file of equal rows."""
    columns = {"query_id": ["q1"], "doc_id": [document], "score": [1.0], "grade": [1]}
    column = {
        name: pa.array(value).take(pa.array(np.zeros(rows, np.int64))) for name, value in columns.items()
    }
    parquet.write_table(pa.table(column), path, compression="zstd")
    return path


BOMBS = {
    "zero bytes": (lambda folder: sparse(folder / "nul.txt"), "nul.txt: found zero bytes; expected text, or a table"),
    "zero bytes as JSON": (lambda folder: sparse(folder / "nul.json"), "nul.json: found zero bytes"),
    "long texts in Parquet": (
        lambda folder: same_rows(folder / "r.parquet", 40_000, "d" * 4000),
        "r.parquet: found more than 134,217,728 bytes packed into it; expected at most 200 times its size",
    ),
    "one identifier in Parquet": (
        lambda folder: same_rows(folder / "r.parquet", 1, "d" * (140 << 20)),
        "r.parquet: found more than 134,217,728 bytes packed into it",
    ),
}  # fmt: skip


@pytest.mark.parametrize("bomb", BOMBS)
@pytest.mark.parametrize("role", ["judgments", "run"])
@pytest.mark.filterwarnings("ignore::weir.errors.LossWarning")
def test_a_bomb_is_refused_before_it_takes_memory_or_time(tmp_path, capsys, qrels, bomb, role):
    make, said = BOMBS[bomb]
    path, began = str(make(tmp_path)), time.process_time()
    files = [path, qrels] if role == "judgments" else [qrels, path]
    assert said in one_line(capsys, "eval", *files)
    assert time.process_time() - began < 30.0


CODED = """
import sys
import weir
from weir.errors import WeirError
for path in sys.argv[1:]:
    try:
        weir.import_files(path, path + "-out") if "import" in path else weir.Qrels.load(path)
    except WeirError as error:
        print(error)
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


def test_a_text_that_many_rows_share_is_counted_as_often_before_it_is_copied(tmp_path):
    def shared(rows: int) -> pa.Array:
        return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), ["d" * (1 << 20)])

    rows = [f"q{n}" for n in range(1000)]
    lists = pa.ListArray.from_arrays(pa.array(range(0, 2001, 2), pa.int32()), shared(2000))
    plain = pa.ListArray.from_arrays(pa.array(range(1001), pa.int32()), shared(1000).cast(pa.string()))
    tables = {
        "import-texts": pa.table({"_id": rows, "text": shared(1000)}),
        "import-lists": pa.table({"question": rows, "contexts": lists}),
        "ids": pa.table({"query_id": rows, "doc_id": shared(1000), "grade": [1] * 1000}),
    }
    for name, table in tables.items():
        feather.write_feather(table, tmp_path / f"{name}.arrow", compression="zstd")
        whole = table if name != "import-lists" else table.set_column(1, "contexts", plain)
        parquet.write_table(whole, tmp_path / f"{name}.parquet", compression="zstd")
    zeros = pa.array(np.zeros(5_000_000, np.int64))
    rows_alike = pa.table({"query_id": zeros, "doc_id": zeros, "grade": zeros})
    parquet.write_table(rows_alike, tmp_path / "rows.parquet", compression="zstd")
    done = subprocess.run(
        [sys.executable, "-c", CODED, *map(str, sorted(tmp_path.iterdir()))],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "WEIR_MAX_RAM": "200M"},
    )
    *said, peak = done.stdout.split("\n")[:-1]
    assert len(said) == 7
    assert sum("packed into it; expected at most 200 times" in line for line in said) == 6
    assert "rows.parquet whole needs about 0.2 GB of memory" in said[-1]
    assert int(peak) < 400_000  # kB


@pytest.mark.parametrize("text", [b'{"q1": {"d1": 1', b"q1 0 d1 1\n" * (1 << 20)], ids=["JSON", "TREC"])
@pytest.mark.parametrize("ending", [".gz", ".zst"])
def test_a_packed_file_is_counted_before_it_is_held(tmp_path, monkeypatch, text, ending):
    monkeypatch.setattr(lines, "HARMLESS_BYTES", 1 << 20)
    path = tmp_path / f"q{'.json' if text[:1] == b'{' else '.qrels'}{ending}"
    with path.open("wb") as file, lines.packing(path, file) as out:
        out.write(text.ljust(8 << 20, b"0"))
    tracemalloc.start()
    with pytest.raises(FormatError, match="packed into it; expected at most 200 times its size"):
        read_qrels(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6 << 20 or (ending, text[:1]) != (".gz", b"{"), (
        "zstd unpacks a piece at once, and lines are held"
    )


def test_how_much_a_file_may_unpack_to_can_be_raised(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "HARMLESS_BYTES", 1 << 20)
    path = tmp_path / "q.json.gz"
    path.write_bytes(gzip.compress(b'{"q1": {"d1": 1}}' + b" " * (8 << 20)))
    with pytest.raises(FormatError, match=r"at most 200 times its size \(WEIR_MAX_UNPACKED raises that\)"):
        read_qrels(path)
    monkeypatch.setenv("WEIR_MAX_UNPACKED", "2000")
    assert read_qrels(path).to_dict() == {"q1": {"d1": 1}}
    monkeypatch.setenv("WEIR_MAX_UNPACKED", "much")
    with pytest.raises(BadValue, match="WEIR_MAX_UNPACKED is 'much'; expected a whole number from 1"):
        read_qrels(path)


def test_a_file_that_memory_cannot_hold_says_what_it_takes(tmp_path, monkeypatch):
    monkeypatch.setenv("WEIR_MAX_RAM", "100M")
    with pytest.raises(
        BadValue, match=r"reading .*q.json whole needs about 4.8 GB of memory; 0.1 GB may be taken"
    ):
        read_qrels(sparse(tmp_path / "q.json", b"{\n"))


# Collections


def test_a_zip_of_very_many_files_is_no_collection(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(lines, "ARCHIVE_MEMBERS", 100)
    with zipfile.ZipFile(tmp_path / "many.zip", "w") as archive:
        for number in range(101):
            archive.writestr(f"file{number}", "")
    line = one_line(capsys, "data", "stats", str(tmp_path / "many.zip"))
    assert "many.zip: found 101 files in a zip; expected at most 100; nothing was unpacked" in line


@pytest.mark.parametrize("packing", ["gz", "zip"])
def test_documents_that_unpack_to_very_much_are_refused(tmp_path, capsys, monkeypatch, packing):
    monkeypatch.setattr(lines, "HARMLESS_BYTES", 1 << 20)
    collection = write_collection(tmp_path / "brooklet")
    line = json.dumps({"_id": "x", "text": "a" * (4 << 20)}).encode() + b"\n"
    (collection / "corpus.jsonl").unlink()
    if packing == "gz":
        (collection / "corpus.jsonl.gz").write_bytes(gzip.compress(line))
    else:
        with zipfile.ZipFile(tmp_path / "brooklet.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(collection.rglob("*.*")):
                archive.writestr(f"b/{path.relative_to(collection)}", path.read_bytes())
            archive.writestr("b/corpus.jsonl", line)
        collection = tmp_path / "brooklet.zip"
    assert "packed into it; expected at most 200 times its size" in one_line(
        capsys, "data", "stats", str(collection)
    )


def test_a_long_line_of_documents_is_read_once_and_bounded(tmp_path, monkeypatch):
    text = "x" * 30_000_000
    (tmp_path / "corpus.jsonl").write_text(json.dumps({"_id": "a", "text": text}) + "\n")
    began = time.process_time()
    with (tmp_path / "corpus.jsonl").open("rb") as stream:
        (block,) = jsonl.read_blocks(stream)
    assert len(block) > len(text)
    assert time.process_time() - began < 10.0  # joined once, in a tenth of a second
    monkeypatch.setattr(jsonl, "RECORD_BYTES", 1 << 20)
    write_collection(tmp_path / "c")
    with (tmp_path / "c" / "corpus.jsonl").open("a") as file:
        file.write(json.dumps({"_id": "a", "text": text[: 2 << 20]}) + "\n")
    with pytest.raises(FormatError, match=r"corpus.jsonl, line 7: found a line of more than 1,048,576 bytes"):
        _ = [
            *__import__("weir.files.records", fromlist=["x"]).read_documents(
                CollectionPart(tmp_path / "c" / "corpus.jsonl")
            )
        ]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b'{"_id": "x", "text": "a", "metadata": ' + b'{"a":' * 100_000 + b"1" + b"}" * 100_001, "line 7"),
        pytest.param(
            b'{"_id": "x", "text": "a", "metadata": ' + b"[" * 1010 + b"]" * 1010 + b"}",
            "line 7",
            marks=pytest.mark.skipif(sys.version_info >= (3, 12), reason="Python's json reads 1,010 levels"),
        ),
        (b'{"_id": "x", "text": "a", "metadata": ' + b"9" * 5000 + b"}", "line 7"),
        (b'{"_id": "' + b"x" * 5000 + b'", "text": "a"}', "an identifier of 5,000 bytes, 'xxxx"),
        (b'{"_id": "x", "text": ' + b"[" * 100_000, "line 7"),
    ],
)
def test_a_document_that_means_harm_is_one_line(tmp_path, capsys, line, said):
    collection = write_collection(tmp_path / "brooklet")
    with (collection / "corpus.jsonl").open("ab") as file:
        file.write(line + b"\n")
    found = one_line(capsys, "data", "stats", str(collection))
    assert said in found
    assert "corpus.jsonl" in found


def test_an_empty_corpus_is_refused(tmp_path, capsys):
    collection = write_collection(tmp_path / "brooklet", {})
    line = one_line(capsys, "run", "-d", str(collection), "-s", "bm25", "-o", str(tmp_path / "results"), "-q")
    assert "corpus.jsonl: found an empty file; expected at least one record" in line


@pytest.mark.parametrize(
    "text", ["a = " + "[" * 50_000, "a = " + "9" * 5000, "a = \udcff", "= 1", "a = 1" + " " * (1 << 24)]
)
def test_toml_of_any_depth_is_one_line(tmp_path, text):
    path = tmp_path / "c.toml"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    for read in (lambda: read_toml(path, "keys"), lambda: find_layout(path)):
        with pytest.raises(FormatError, match=r"c\.toml: found"):
            read()


# Identifiers


def test_long_identifiers_are_put_in_order_as_bytes():
    texts = [b"a" * 300 + bytes([65 + i % 7]) * (i % 5) for i in range(200)] + [b"b", b"a"]
    distinct = list(dict.fromkeys(texts))
    ranks = Ids(Strings.packed(distinct)).tie_ranks
    assert [distinct[i] for i in np.argsort(ranks)] == sorted(distinct, reverse=True)
    with pytest.raises(
        BadValue, match=f"an identifier of 4,097 bytes; expected at most {IDENTIFIER_BYTES:,}"
    ):
        Ids.of(["x" * 4097])


@pytest.mark.parametrize("column", ["query_id", "doc_id"])
def test_a_long_identifier_of_a_large_parquet_file_is_refused_before_a_batch_repeats_it(
    tmp_path, monkeypatch, column
):
    from weir.files import tables

    monkeypatch.setattr(tables, "_CODED_BYTES", 0)
    monkeypatch.setattr(tables, "_batches", lambda *_, **__: pytest.fail("a batch was read"))
    rows = {"query_id": ["q1"] * 3, "doc_id": ["d1", "d2", "d3"], "score": [3.0, 2.0, 1.0]}
    rows[column] = [*rows[column][:2], "d" * 5000]
    table, path = pa.table(rows), tmp_path / "r.parquet"
    parquet.write_table(table, path, row_group_size=2)
    with pytest.raises(FormatError, match="an identifier of 5,000 bytes"):
        weir.Run.load(path)
