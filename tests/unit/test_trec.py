"""Run files: what is read, what is refused, and what is written reads back."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from weir.core.judged import Judged
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.core.strings import Ids
from weir.errors import BadRanking, BadValue, FormatError
from weir.files.runs import join_run_file, read_run, read_run_against
from weir.files.write import write_qrels, write_run

ENGINES = pytest.mark.parametrize("engine", ["numpy", "numba"])


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.fixture
def run_path(tmp_path: Path) -> Path:
    return write(
        tmp_path / "bm25.trec",
        "q2 Q0 a 3 1.5 t\nq2 Q0 b 1 2.5 t\nq2\tQ0  c\t2 1.5 t\r\n\n# remark\nq1 Q0 a 0 -3e-1\nq2 Q0 d 9 .5 t",
    )


@ENGINES
def test_odd_lines_and_a_query_that_comes_back(run_path: Path, engine: str) -> None:
    run = read_run(run_path, engine=engine)
    assert run.to_dict() == {"q2": {"b": 2.5, "c": 1.5, "a": 1.5, "d": 0.5}, "q1": {"a": -0.3}}
    assert list(run.to_dict()["q2"]) == ["b", "c", "a", "d"]  # tie: the larger identifier first
    assert run.name == "bm25"


@ENGINES
def test_known_tables(run_path: Path, engine: str) -> None:
    queries, docs = Ids.of(["q0", "q2"]), Ids.of(["d", "x", "c"])
    run, ignored = read_run_against(run_path, queries, docs, engine=engine)
    assert ignored == 1
    assert run.ptr.tolist() == [0, 0, 4]
    assert run.doc.tolist() == [-1, 2, -1, 0]
    assert run.queries is queries
    with pytest.raises(BadValue, match="read the whole run"):
        write_run(run, run_path.with_name("copy.trec"))


@ENGINES
@pytest.mark.parametrize(("ties", "first"), [("trec", "a"), ("trec9", "b")])
def test_trec9_compares_as_floats(tmp_path: Path, engine: str, ties: str, first: str) -> None:
    path = write(tmp_path / "r", "q Q0 b 1 1.00000001 t\nq Q0 a 2 1.00000002 t\n")
    run = read_run(path, ties, engine)
    assert next(iter(run.to_dict()["q"])) == first
    assert sorted(run.score.tolist()) == [1.00000001, 1.00000002]


@ENGINES
@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("q1 Q0 d3 3", "found 4 columns in 'q1 Q0 d3 3'; expected 6 columns"),
        (
            "q1 d3 3",
            "q1 d3 3'; expected 6 columns: query Q0 document rank score tag; 3 columns without names are imported",
        ),
        ("q1", "found 1 column in 'q1'"),
        ("q1 Q0 my d3 3 1.0 t", "found 7 columns"),
        ("q1 Q0 d 3 3 1.0 t", "found 7 columns"),
        ("q1 Q0 d3 3 1 tq1 Q0 d4 3 1 t", "found 11 columns"),
        ("q1 Q0 d3 3 0.1q1 Q0 d4 3 0.1", "found 9 columns"),
        ("q1 Q0 d3 3 1 t\rq1 Q0 d4 3 1 t", "found a carriage return without a line feed"),
        ("q1 0 d3 1 5", "found 5 columns in 'q1 0 d3 1 5'; expected 6 columns"),
        (
            "q1 d3 3 30.5 1",
            "ColBERT's query, document, rank and score: weir data import FILE -o DIR --as colbert",
        ),
        ("q1 Q0 my d3 3 1", "found 'd3' as the rank"),
        ("q1 Q0 d3 3 nan t", "found 'q1 Q0 d3 3 nan t'; expected a finite number as the score"),
        ("q1 Q0 d3 3 -inf t", "expected a finite number"),
        ("q1 Q0 d3 3 1e400 t", "expected a finite number"),
        ("q1 Q0 d3 3 high t", "expected a finite number"),
        ("q1 Q0 d3 3 1_0 t", "expected a finite number"),
    ],
)
def test_bad_lines_are_named(tmp_path: Path, engine: str, line: str, said: str) -> None:
    path = write(tmp_path / "r.trec", f"q1 Q0 d1 1 2 t\n\nq1 Q0 d2 2 1 t\n{line}\nq1 Q0 d4 4 x t\n")
    with pytest.raises(FormatError) as caught:
        read_run(path, engine=engine)
    assert str(caught.value).startswith(f"{path}, line 4: found")
    assert said in str(caught.value)


@ENGINES
def test_a_remark_or_text_may_follow_the_tag_and_no_second_row(tmp_path: Path, engine: str) -> None:
    path = write(tmp_path / "r.trec", "q Q0 a 1 2 t # more 1 2\nq Q0 b 2 1 t #more\nq q0 c 3 0.5\n")
    assert read_run(path, engine=engine).to_dict() == {"q": {"a": 2.0, "b": 1.0, "c": 0.5}}
    path.write_text(path.read_text() + "q Q0 my c 3 0.5 t # more junk\n")
    with pytest.raises(FormatError, match=r"line 4: found 10 columns"):
        read_run(path, engine=engine)
    # trec_eval's own tests have text after the tag.
    path.write_text("# Q0 Q0\nq Q0 a 1 2 BM25 more junk at the end\nq Q0 b 2 1 BM25 k1=0.9\n")
    assert read_run(path, engine=engine).to_dict() == {"q": {"a": 2.0, "b": 1.0}}
    path.write_text("q Q0 a 1 2 x\n  # a remark\n\n \t\nq Q0 b 2 1 x  \n")
    assert read_run(path, engine=engine).to_dict() == {"q": {"a": 2.0, "b": 1.0}}
    for line in (
        "q 0 b 2 1 t more",
        "q Q0 my 3 3 1.0 t",
        "q Q0 b 2 1 tr Q0 c 1 2 t",
        "q Q0 b 2 1 t r Q0",
        "q Q0 b 2 1 t q0 #",
    ):
        path.write_text(f"q Q0 a 1 2 t\n{line}\n")
        with pytest.raises(FormatError, match=r"line 2: found \d+ columns .* a remark that begins with #"):
            read_run(path, engine=engine)


@ENGINES
@pytest.mark.parametrize("docs", [["d9"], []])
def test_a_document_twice_is_refused_even_outside_the_table(
    tmp_path: Path, engine: str, docs: list[str]
) -> None:
    path = write(tmp_path / "r.trec", "q1 Q0 dd 1 3 t\nq2 Q0 dd 1 3 t\nq2 Q0 d2 2 2 t\nq2 Q0 dd 3 1 t\n")
    said = r"line 4: query 'q2' ranks document 'dd' twice; remove"
    with pytest.raises(BadRanking, match=said):
        read_run(path, engine=engine)
    with pytest.raises(BadRanking, match=said):
        read_run_against(path, Ids.of(["q1", "q2"]), Ids.of(docs), engine=engine)


@ENGINES
def test_documents_with_equal_hashes_are_told_apart(
    tmp_path: Path, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Equal hashes cannot be made at will, so the hash is made a bad one."""
    from dataclasses import replace

    from weir.files import runs as runfile

    made = runfile.choose_engine(engine, 0)

    def colliding(buffer, stop, layout):
        found = made.scan(buffer, stop, layout)
        found.hashes[:] = 7
        return found

    monkeypatch.setattr(runfile, "choose_engine", lambda *_: replace(made, scan=colliding))
    path = write(tmp_path / "r.trec", "".join(f"q Q0 d{i} 1 {i} t\n" for i in reversed(range(40))))
    assert list(read_run(path, engine=engine).to_dict()["q"]) == [f"d{i}" for i in reversed(range(40))]
    path.write_text(path.read_text() + "q Q0 d7 1 99 t\n")
    with pytest.raises(BadRanking, match="line 41: query 'q' ranks document 'd7' twice"):
        read_run(path, engine=engine)


@ENGINES
@pytest.mark.parametrize("text", ["", "\n\n", "# nothing\n", "\ufeff"])
def test_an_empty_file_is_an_empty_run(tmp_path: Path, engine: str, text: str) -> None:
    run = read_run(write(tmp_path / "r.trec", text), engine=engine)
    assert (len(run), len(run.docs), run.ptr.tolist()) == (0, 0, [0])


@ENGINES
def test_long_unsorted_and_constant_rankings(tmp_path: Path, engine: str) -> None:
    rng = np.random.default_rng(5)
    lines, expected = [], {}
    for q in range(3):
        docs = [f"doc-number-{i:05d}" for i in rng.permutation(3000).tolist()]
        scores = [0.0] * 3000 if q == 0 else np.round(rng.normal(size=3000), q).tolist()
        lines += [f"{q} Q0 {d} 1 {s!r} t\n" for d, s in zip(docs, scores, strict=True)]
        pairs = sorted(zip(scores, docs, strict=True), reverse=True)
        expected[str(q)] = [d for _, d in pairs]
    run = read_run(write(tmp_path / "r.trec", "".join(lines)), engine=engine)
    assert {q: list(r) for q, r in run.to_dict().items()} == expected


@ENGINES
def test_judging_a_file_equals_judging_the_run(run_path: Path, engine: str) -> None:
    qrels = Qrels.of({"q1": {"z": 1, "a": 0}, "q3": {"a": 1}, "q2": {"c": 2, "d": 1, "n": -1}})
    got, want = join_run_file(run_path, qrels, engine=engine), Judged.of(read_run(run_path), qrels)
    for name in ("retrieved", "tied", "query", "rank", "grade", "ideal_ptr", "ideal"):
        assert getattr(got, name).tolist() == getattr(want, name).tolist(), name
        assert getattr(got, name).dtype == getattr(want, name).dtype, name
    assert join_run_file(run_path, Qrels.of({"q1": {"a": 1}}), engine=engine).ignored == 1


@pytest.mark.parametrize("name", ["copy.trec", "copy.trec.gz", "copy.json", "copy.json.gz"])
def test_written_runs_read_back_bit_for_bit(tmp_path: Path, name: str) -> None:
    rng = np.random.default_rng(1)
    scores = np.concatenate([rng.normal(size=50), [1e-320, 1.7e308, 5e-324, 0.1, -0.0, 1 / 3, 1e22]])
    run = Run.of({"q 1"[:: 2 if "trec" in name else 1]: {f"d{i}": s for i, s in enumerate(scores.tolist())}})
    write_run(run, tmp_path / name)
    again = read_run(tmp_path / name)
    assert again.to_dict() == run.to_dict()
    assert again.score.tobytes() == run.score.tobytes()
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_what_trec_format_cannot_hold_is_refused(tmp_path: Path) -> None:
    for run, said in (
        (Run.of({"q": {"my doc": 1.0}}), "document identifier 'my doc' has white space"),
        (Run.of({"q\t1": {"d": 1.0}}), "query identifier"),
        (Run.of({"#1": {"d": 1.0}}), "starts with '#'"),
    ):
        with pytest.raises(BadValue, match=said):
            write_run(run, tmp_path / "r.trec")
        write_run(run, tmp_path / "r.json")
        assert read_run(tmp_path / "r.json").to_dict() == run.to_dict()
        (tmp_path / "r.json").unlink()
        assert not list(tmp_path.iterdir())


def test_writing_is_fast(tmp_path: Path) -> None:
    docs = [f"document{i}" for i in range(1000)]
    run = Run.of(
        {str(q): dict(zip(docs, np.linspace(20, 1, 1000).tolist(), strict=True)) for q in range(100)}
    )
    began = time.process_time()
    write_run(run, tmp_path / "r.trec")
    assert time.process_time() - began < 10.0  # 100,000 lines; a third of a second is usual


def test_json_runs(tmp_path: Path) -> None:
    path = write(tmp_path / "r.json", '\n {"q:1": {"a:b": 1, "c": 2.5}, "q2": {}}')
    assert read_run(path).to_dict() == {"q:1": {"c": 2.5, "a:b": 1.0}, "q2": {}}
    write(tmp_path / "p.json.gz", gzip.compress(json.dumps({"q": {"é": 1.0}}).encode()))
    assert read_run(tmp_path / "p.json.gz").to_dict() == {"q": {"é": 1.0}}
    qrels = Qrels.of({"q2": {"a": 1}})
    assert join_run_file(path, qrels).ignored == 1


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ('{"q": {"a": 1, "b": 2, "a": 3}}', BadRanking, "'a' occurs twice in one object"),
        ('{"q": {"\\u003a": 1, "\\u003a": 3}}', BadRanking, "':' occurs twice"),
        ('{"q": {"a": 1}, "q": {"b": 1}}', BadRanking, "'q' occurs twice"),
        ('{"q": {"a": NaN}}', FormatError, "found NaN; expected finite numbers"),
        ('{"q": {"a": 1e999}}', BadRanking, "inf"),
        ('{"q": {"a": "1"}}', FormatError, "found \"1\" for query 'q', document 'a'"),
        ('{"q": {"a": true}}', FormatError, "found true for query 'q'"),
        ('{"q": [1.5]}', FormatError, "query 'q'"),
        ('{"q": {"a": 1}', FormatError, "no valid JSON"),
    ],
)
def test_bad_json_is_refused(tmp_path: Path, text: str, error: type[Exception], said: str) -> None:
    with pytest.raises(error) as caught:
        read_run(write(tmp_path / "r.json", text))
    assert str(caught.value).startswith(str(tmp_path / "r.json"))
    assert said in str(caught.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="found no such file"):
        read_run(tmp_path / "absent.trec")
    with pytest.raises(FormatError, match="found a folder"):
        read_run(tmp_path)
    whole = gzip.compress(b"q Q0 d 1 2 t\n" * 1000)
    with pytest.raises(FormatError, match="damaged"):
        read_run(write(tmp_path / "cut.trec.gz", whole[:-20]))
    with pytest.raises(FormatError, match="damaged"):
        read_run(write(tmp_path / "no.trec.gz", "q Q0 d 1 2 t\n"))
    with pytest.raises(BadValue, match="engine is 'fast'"):
        read_run(write(tmp_path / "r.trec", ""), engine="fast")


def test_the_base_install_reads_without_numba(run_path: Path) -> None:
    """A large file too: the engine is chosen by what is installed, and nothing fails without numba."""
    code = (
        "import sys; sys.modules['numba'] = None\n"
        "import importlib.util as u; real = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'numba' else real(name, *a)\n"
        "from weir.files.parsers import choose_engine; assert choose_engine('auto', 1 << 30).name == 'numpy'\n"
        "from weir.files.runs import read_run; print(len(read_run(sys.argv[1])))\n"
        "from weir.errors import MissingExtra\n"
        "try: read_run(sys.argv[1], engine='numba')\n"
        "except MissingExtra as e: print(e)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(run_path)], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("2\nthis needs 'numba'")


def test_written_qrels_read_back(tmp_path: Path) -> None:
    from weir.files.runs import read_qrels

    qrels = Qrels.of({"q 1": {"d 1": 2, "d2": 0}, "q2": {"d 1": -1}})
    write_qrels(qrels, tmp_path / "q.tsv")
    assert read_qrels(tmp_path / "q.tsv").to_dict() == qrels.to_dict()
    with pytest.raises(BadValue, match="white space"):
        write_qrels(qrels, tmp_path / "q.trec")
    plain = Qrels.of({"q1": {"d1": 2, "d2": 0}})
    write_qrels(plain, tmp_path / "q.trec.gz")
    assert read_qrels(tmp_path / "q.trec.gz").to_dict() == plain.to_dict()


@pytest.mark.parametrize("block", [1, 2, 3, 7])
def test_a_run_is_written_alike_in_blocks_of_any_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
):
    rankings = {f"q{q}": {f"d{d}": 1.0 / (d + 1) for d in range(q % 5)} for q in range(9)}
    run = Run.of(rankings)
    write_run(run, tmp_path / "whole.trec")
    monkeypatch.setattr("weir.files.write._BLOCK_ROWS", block)
    write_run(run, tmp_path / "blocks.trec")
    assert (tmp_path / "blocks.trec").read_bytes() == (tmp_path / "whole.trec").read_bytes()
    assert (tmp_path / "whole.trec").read_text().count("\n") == sum(map(len, rankings.values()))
