"""Ranks and scores that contradict each other are said of every ranking from outside; swapped ones are refused."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import pickle
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weir
from tests.unit.brooklet import written_files
from weir.cli.main import main
from weir.core.rank_order import OrderCounts, counts_of_block, order_counts
from weir.errors import FormatError, RankingWarning
from weir.files.runs import read_run

DISTANCES = [(f"q{q}", f"d{d}", d, 0.25 * d) for q in range(1, 5) for d in range(1, 4)]
BOTH = [(q, d, rank, 10.0 - rank if rank < 3 else 9.5) for q, d, rank, _ in DISTANCES]
RISE = "scores rise from rank to rank, as distances do, in 4 of 4 rankings"
DIFFER = "ranks and scores say different orders in 4 of 4 rankings"
ROWS_RISE = "scores rise from row to row, as distances do, in 4 of 4 rankings"
NAMES = ("query_id", "doc_id", "rank", "score")


def written(folder: Path, suffix: str, rows: list[tuple[str, str, int, float]]) -> Path:
    """The rows in the format of an ending."""
    path = folder / f"r{suffix}"
    objects = [dict(zip(NAMES, row, strict=True)) for row in rows]
    if suffix in (".csv", ".tsv"):
        out = io.StringIO()
        writer = csv.writer(out, delimiter="," if suffix == ".csv" else "\t")
        writer.writerows([NAMES, *rows])
        path.write_text(out.getvalue(), newline="")
    elif suffix == ".jsonl":
        path.write_text("".join(json.dumps(one) + "\n" for one in objects))
    elif suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(objects), path)
    elif suffix == ".arrow":
        table = pa.Table.from_pylist(objects)
        with pa.ipc.new_file(path, table.schema) as file:
            file.write_table(table)
    elif suffix in (".json", ".pickle"):
        nested: dict[str, dict[str, float]] = {}
        for query, doc, _, score in rows:
            nested.setdefault(query, {})[doc] = score
        path.write_bytes(json.dumps(nested).encode() if suffix == ".json" else pickle.dumps(nested))
    else:
        path.write_text("".join(f"{q} Q0 {d} {rank} {score} t\n" for q, d, rank, score in rows))
    return path


@pytest.mark.parametrize("suffix", [".trec", ".csv", ".tsv", ".jsonl", ".parquet", ".arrow"])
@pytest.mark.parametrize(("rows", "said"), [(DISTANCES, RISE), (BOTH, DIFFER)], ids=["distances", "differ"])
def test_every_format_says_that_ranks_contradict_scores(tmp_path, suffix, rows, said):
    path = written(tmp_path, suffix, rows)
    with pytest.warns(RankingWarning, match=f"r{suffix}: {said}; the highest score counts as the best"):
        assert read_run(path).doubts == (said,)
    with pytest.warns(RankingWarning, match=said):
        weir.evaluate({"q1": {"d1": 1}}, path, ["RR"])
    shuffled = [rows[n] for n in np.random.default_rng(1).permutation(len(rows))]
    with pytest.warns(RankingWarning, match=said):
        read_run(written(tmp_path, suffix, shuffled))


@pytest.mark.parametrize("suffix", [".json", ".pickle", ".trec"])
def test_rows_that_only_rise_are_said_where_there_are_no_ranks(tmp_path, suffix):
    rows = [(q, d, 0, score) for q, d, _, score in DISTANCES]
    with pytest.warns(RankingWarning, match=ROWS_RISE):
        read_run(written(tmp_path, suffix, rows))
    assert (
        read_run(written(tmp_path, suffix, rows[:3])).doubts == ()
    )  # three rows rise once in six times by chance


@pytest.mark.parametrize("begin", [0, 1])
def test_numbers_that_count_up_as_ranks_do_are_said_of_few_rows(tmp_path, begin):
    few = [
        (f"q{q}", f"d{d}", 0, float(d + begin)) for q, size in ((1, 2), (2, 3), (3, 3)) for d in range(size)
    ]
    for suffix in (".json", ".trec"):
        with pytest.warns(
            RankingWarning, match="scores count up from row to row, as ranks do, in 3 of 3 rankings"
        ):
            read_run(written(tmp_path, suffix, few))
    for gap in (0.5, 2.0):  # few rows rise so by chance
        rows = [(q, d, 0, score * gap) for q, d, _, score in few]
        assert read_run(written(tmp_path, ".json", rows)).doubts == ()


def test_what_python_holds_is_looked_at_too():
    nested: dict[str, dict[str, float]] = {}
    for query, doc, _, score in DISTANCES:
        nested.setdefault(query, {})[doc] = score
    pairs = {query: list(row.items()) for query, row in nested.items()}
    frame = pd.DataFrame(DISTANCES, columns=list(NAMES))
    for run, said in ((nested, ROWS_RISE), (pairs, ROWS_RISE), (frame, RISE), (frame.to_dict("list"), RISE)):
        with pytest.warns(RankingWarning, match=said):
            weir.evaluate({"q1": {"d1": 1}}, run, ["RR"])
    lists = {query: list(row) for query, row in nested.items()}
    weir.evaluate({"q1": {"d1": 1}}, lists, ["RR"])  # documents in order say all there is


@pytest.mark.filterwarnings("default")
def test_the_result_says_it_in_every_form(tmp_path, capsys):
    """Also of a run that was read before, and put in another order of ties."""
    paths = [written(tmp_path, ending, DISTANCES) for ending in (".csv", ".trec")]
    paths.append(written(tmp_path, ".json", [(q, d, 0, score) for q, d, _, score in DISTANCES]))
    falls = {f"q{q}": {f"d{d}": 1 / d for d in range(1, 4)} for q in range(1, 5)}
    qrels = {f"q{q}": {"d1": 1} for q in range(1, 5)}
    judged = tmp_path / "q.txt"
    judged.write_text("".join(f"{query} 0 d1 1\n" for query in qrels))
    for path in paths:
        for run in (path, read_run(path), pd.DataFrame(DISTANCES, columns=list(NAMES))):
            for rules in ("default", "ties=trec9", "self_matches=drop"):
                scores = weir.evaluate(qrels, run, "RR", rules)
                [note] = (note for note in scores.notes() if "scores rise from r" in note.text)
                assert note.decisive
            pair = {"one": run, "other": falls}
            results = weir.compare(qrels, pair), weir.gate(qrels, falls, run), weir.diff(qrels, pair)
            for one in (scores, *results):
                assert "scores rise from r" in str(one)
            for one in results:
                assert "scores rise from r" in one.to_markdown()
                assert "scores rise from r" in str(one.to_dict())
        assert main(["eval", str(judged), str(path), "--markdown"]) == 0
        assert "note: scores rise from r" in capsys.readouterr().out


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    "command", ["eval", "compare", "diff", "why", "gate", "fuse", "convert", "import", "audit"]
)
def test_every_command_says_it(tmp_path, capsys, command):
    run = str(written(tmp_path, ".csv", DISTANCES))
    other = str(written(tmp_path, ".trec", [(q, d, rank, 1 / rank) for q, d, rank, _ in DISTANCES]))
    qrels = tmp_path / "q.txt"
    qrels.write_text("".join(f"q{n} 0 d1 1\n" for n in range(1, 5)))
    out = str(tmp_path / "out")
    arguments = {
        "eval": ["eval", str(qrels), run, "-m", "RR"],
        "compare": ["compare", str(qrels), run, other, "-m", "RR"],
        "diff": ["diff", str(qrels), run, other, "-m", "RR"],
        "why": ["why", str(qrels), run, other, "-m", "RR"],
        "gate": ["gate", str(qrels), other, run, "-m", "RR"],
        "fuse": ["fuse", "rrf", run, other, "-o", f"{out}.trec"],
        "convert": ["data", "convert", run, f"{out}.json", "--kind", "run"],
        "import": ["data", "import", run, "-o", out],
        "audit": ["audit", str(qrels), run],
    }[command]
    main(arguments)
    shown = capsys.readouterr()
    assert RISE in " ".join((shown.out + shown.err).split())


@pytest.mark.parametrize(
    "rows",
    [
        ["q Q0 a 0.99 1 t", "q Q0 b 0.94 2 t", "p Q0 a 0.5 1 t"],
        ["q Q0 a 0.1 1 t", "q Q0 b 0.2 2 t"],
        ["q Q0 a 30 1 t", "q Q0 b 20 2 t"],
        ["q Q0 a 12.5 0 t", "q Q0 b 10 1 t"],
    ],
)
def test_swapped_ranks_and_scores_are_refused(tmp_path, rows):
    path = tmp_path / "r.txt"
    path.write_text("\n".join(rows))
    with pytest.raises(
        FormatError, match="found scores in the place of ranks, and ranks in the place of scores"
    ):
        read_run(path)
    with pytest.raises(FormatError, match="the rank before the score"):
        weir.import_files(path, tmp_path / "out")


@pytest.mark.parametrize("begins", [0, 1])
@pytest.mark.parametrize("ranks", [True, False], ids=["beside", "alone"])
@pytest.mark.parametrize("suffix", [".trec", ".csv", ".tsv", ".jsonl", ".parquet"])
def test_ranks_in_the_place_of_scores_are_refused_and_imported_as_advised(tmp_path, suffix, ranks, begins):
    rows = [(f"q{q}", f"d{n}", n + begins) for q in range(3) for n in range(4)]
    path = tmp_path / f"r{suffix}"
    if suffix == ".trec":
        if not ranks:
            pytest.skip("TREC's form has a rank")
        path.write_text("".join(f"{q} Q0 {d} {n} {n} t\n" for q, d, n in rows))
    else:
        names = ["query_id", "doc_id", *["rank"] * ranks, "score"]
        table = [dict(zip(names, (q, d, *[n] * ranks, n), strict=True)) for q, d, n in rows]
        frame = pd.DataFrame(table)
        match suffix:
            case ".jsonl":
                path.write_text("".join(json.dumps(row) + "\n" for row in table))
            case ".parquet":
                frame.to_parquet(path)
            case _:
                frame.to_csv(path, index=False, sep="," if suffix == ".csv" else "\t")
    advice = "--as run-ranks ranks by rank, with --columns rank=NAME"
    with pytest.raises(FormatError, match=f"found ranks in the place of scores.*{advice}"):
        read_run(path)
    qrels = {"q0": {"d0": 1}}
    with pytest.raises(FormatError, match="found ranks in the place of scores"):
        weir.evaluate(qrels, path)
    out = tmp_path / "out"
    weir.import_files(
        path, out, as_kind="run-ranks", columns={} if suffix == ".trec" or ranks else {"rank": "score"}
    )
    (made,) = (out / "runs").glob("*")
    assert list(read_run(made).to_dict()["q0"]) == ["d0", "d1", "d2", "d3"]


def test_ranks_as_scores_of_objects_are_refused_too():
    ranked = {f"q{q}": {f"d{n}": n + 1 for n in range(4)} for q in range(3)}
    with pytest.raises(FormatError, match=r"ranks in the place of scores.*such as negated ranks"):
        weir.evaluate({"q0": {"d0": 1}}, ranked)


@pytest.mark.parametrize("rows", [["q Q0 a 1 1 t", "p Q0 b 1 1 t"], ["q Q0 a 1 2 t", "q Q0 b 2 1 t"]])
def test_scores_that_may_equal_a_rank_are_read(tmp_path, rows):
    path = tmp_path / "r.txt"
    path.write_text("\n".join(rows))
    assert read_run(path).doubts == ()


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet"])
def test_swapped_columns_of_tables_are_refused_by_eval_and_import(tmp_path, suffix):
    path = written(tmp_path, suffix, [(q, d, 9.5 - rank, rank) for q, d, rank, _ in DISTANCES])
    for read in (read_run, lambda run: weir.import_files(run, tmp_path / "out")):
        with pytest.raises(FormatError, match="scores in the place of ranks"):
            read(path)


@pytest.mark.parametrize(
    "rows",
    [
        ["q Q0 a 1 0.9 t", "q Q0 b 2 0.9 t", "q Q0 c 3 0.8 t"],  # ties
        ["q Q0 a 1 1.00000001 t", "q Q0 b 2 1.00000002 t"],  # ties to trec_eval
        ["q Q0 a 1 0.1 t", "q Q0 b 1 0.9 t"],  # one rank for all
        ["q Q0 b 2 1 t", "q Q0 a 1 2 t"],  # the last rank first
        ["q Q0 c 3 1 t", "q Q0 b 2 2 t", "q Q0 a 1 3 t"],
        ["q Q0 a 0 9 t", "q Q0 b 5 8 t", "p Q0 a 0 1 t"],
    ],
)
def test_what_agrees_or_says_nothing_is_passed_over(tmp_path, rows):
    path = tmp_path / "r.txt"
    path.write_text("\n".join(rows))
    assert read_run(path).doubts == ()


_rankings = st.lists(
    st.lists(st.tuples(st.integers(0, 4), st.sampled_from([-1.0, 0.0, 0.5, 2.0])), min_size=1, max_size=6),
    min_size=1,
    max_size=5,
)


@settings(max_examples=200)
@given(rankings=_rankings)
def test_counts_are_those_of_all_pairs_of_rows(rankings):
    cuts = np.cumsum([0, *map(len, rankings)])
    rank, score = (np.array(column) for column in zip(*(row for one in rankings for row in one), strict=True))
    counts = order_counts(cuts, score, rank.astype(np.float64))
    ranked = contrary = backward = listed = rising = 0
    for one in rankings:
        given = len({place for place, _ in one}) > 1
        signs = {
            (b[0] - a[0] > 0) == (b[1] > a[1]) for a in one for b in one if a[0] != b[0] and a[1] != b[1]
        }
        values = [value for _, value in one]
        ranked += given and bool(signs)
        contrary += given and True in signs
        backward += given and signs == {True}
        listed += not given and len(set(values)) > 1
        rising += not given and len(set(values)) > 1 and values == sorted(values)
    assert (counts.ranked, counts.contrary) == (ranked, contrary)
    assert (counts.listed, counts.rising) == (listed, rising)
    assert backward <= counts.reversed <= contrary  # of equal scores between, neighbours alone are compared


def test_a_file_that_falls_has_the_ranks_of_its_beginning_alone_read():
    cuts, score = np.arange(0, 30_001, 3), np.tile([3.0, 2.0, 1.0], 10_000)
    asked: list[int] = []
    counts = counts_of_block(cuts, score, lambda n: asked.append(n) or np.tile([1.0, 2.0, 3.0], n // 3), None)
    assert (counts.ranked, counts.contrary) == (10_000, 0)
    assert asked == [4095]
    assert OrderCounts().doubts() == ()


def test_equal_ranks_stay_equal_and_imports_say_what_ranked(tmp_path):
    ties, contrary = tmp_path / "ties.tsv", tmp_path / "contrary.txt"
    ties.write_text("q1\tb\t2\nq1\ta\t1\nq1\tc\t10\nq1\td\t2\n")
    contrary.write_text("q1 Q0 a 2 3 t\nq1 Q0 b 1 2 t\nq1 Q0 c 3 1 t\n")
    report = weir.import_files([ties, contrary], tmp_path / "by-rank", as_kind="run-ranks")
    assert (
        sum("the ranks of the file are kept, equal ones as ties" in note for note in report.whole["notes"])
        == 2
    )
    runs = tmp_path / "by-rank" / "runs"
    assert read_run(runs / "ties.trec").to_dict() == {"q1": {"a": 4.0, "d": 3.0, "b": 3.0, "c": 1.0}}
    assert list(read_run(runs / "contrary.trec").to_dict()["q1"]) == ["b", "a", "c"]
    report = weir.import_files(contrary, tmp_path / "by-score")
    assert "ranks and scores say different orders in 1 of 1 ranking; its scores are kept" in str(
        report.whole["notes"]
    )
    assert list(read_run(tmp_path / "by-score" / "runs" / "contrary.trec").to_dict()["q1"]) == ["a", "b", "c"]


def test_a_check_says_nothing_of_scores_that_fall(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_run(written(tmp_path, ".csv", [(q, d, r, -s) for q, d, r, s in DISTANCES])).doubts == ()


@pytest.mark.filterwarnings("default")
def test_scores_that_rise_with_the_rank_are_warned_of(tmp_path, capsys):
    rows = [(f"d{n}", n) for n in range(1, 7)]
    qrels, near, far = written_files(
        tmp_path,
        qrels="q1 0 d1 1\n",
        distances__trec="".join(f"q1 Q0 {doc} {n} {0.25 * n} x\n" for doc, n in rows),
        scores__trec="".join(f"q1 Q0 {doc} {n} {2 - 0.25 * n} x\n" for doc, n in rows),
    )
    assert main(["eval", str(qrels), str(near), "-m", "RR"]) == 0
    assert "warning: " in (err := capsys.readouterr().err)
    assert "distances.trec: scores rise from rank to rank" in err
    assert main(["eval", str(qrels), str(far), "-m", "RR"]) == 0
    assert "warning" not in capsys.readouterr().err
    assert main(["data", "import", str(near), "-o", str(tmp_path / "mine"), "--as", "run-ranks"]) == 0
    assert next(iter(read_run(tmp_path / "mine" / "runs" / "distances.trec").to_dict()["q1"])) == "d1"


@pytest.mark.parametrize(
    ("command", "numbers"),
    [("eval", "nDCG@10"), ("compare", "nDCG@10"), ("diff", "lost:"), ("gate", "FAIL")],
)
def test_notes_without_which_numbers_say_little_come_before_them(tmp_path, command, numbers):
    """As of a ranking that names documents of another collection: it looks like a bad one, and is none."""
    (tmp_path / "qrels.txt").write_text("".join(f"q{n} 0 d{n} 1\n" for n in range(20)))
    for name, begin in (("good", "d"), ("foreign", "x")):
        rows = [f"q{n} Q0 {begin}{n} 1 1.0 {name}\n" for n in range(20)]
        (tmp_path / f"{name}.trec").write_text("".join(rows))
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        main([command, *(str(tmp_path / name) for name in ("qrels.txt", "good.trec", "foreign.trec"))])
    text = said.getvalue()
    assert "no document that was returned is judged" in text.partition(numbers)[0]
    assert text.count("no document that was returned is judged") == 1
