"""Columns of judgments and rankings that stand in each other's place."""

import json
import random
import subprocess
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import pandas
import polars
import pyarrow as pa
import pytest
from pyarrow import parquet

import weir
from weir.cli.main import main
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.errors import BadValue, FormatError, RankingWarning, WeirError, held_warnings, warn_of_ranking

RUN = ("queries", "second", "documents", "ranks", "scores", "tags")
QRELS = ("queries", "second", "documents", "grades")
SHAPES = {
    "large": (lambda n: str(3 * n + 1), lambda n: str(7_000_000 + 131 * n)),
    "words": (lambda n: f"PLAIN-{n}", lambda n: f"MED-{n}"),
    "small": (lambda n: str(n + 1), lambda n: str(n + 1)),
}


def rows(shape, seed=0, queries=30, depth=20, documents=1400):
    query, doc = SHAPES[shape]
    draw = random.Random(seed)
    judged, ranked = [], []
    for q in range(queries):
        found = draw.sample(range(documents), depth)
        relevant = {found[draw.randrange(5)], draw.randrange(documents)}
        judged += [(query(q), "0", doc(d), "1") for d in sorted(relevant)]
        scores = sorted((round(draw.random(), 6) for _ in found), reverse=True)
        ranked += [
            (query(q), "Q0", doc(d), str(rank), str(score), "tag")
            for rank, (d, score) in enumerate(zip(found, scores, strict=True), 1)
        ]
    return judged, ranked


def exchanged(table, a, b):
    order = list(range(len(table[0])))
    order[a], order[b] = order[b], order[a]
    return [[row[at] for at in order] for row in table]


def written(path, table):
    path.write_text("".join(" ".join(row) + "\n" for row in table), encoding="utf-8")
    return path


def refusal(capsys, *arguments):
    code = main(list(map(str, arguments)))
    said = capsys.readouterr()
    return code, said.err + said.out


def check_refused(capsys, judged, run, words):
    other = run.with_name("other.trec")
    other.write_bytes(run.read_bytes())
    for arguments in (
        ("eval", judged, run),
        ("compare", judged, run, other),
        ("gate", judged, run, other),
        ("audit", judged, run),
    ):
        code, text = refusal(capsys, *arguments)
        assert code == 2, text
        assert "warning" not in text
        assert "exchanged" in text
        assert all(word in text for word in words), text
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(WeirError, match="exchanged"):
            weir.evaluate(judged, run, "nDCG@10")


@pytest.mark.parametrize("shape", ["large", "words"])
def test_queries_and_documents_of_either_file(tmp_path, capsys, shape):
    judged, run = rows(shape)
    right_judged, right_run = written(tmp_path / "q.txt", judged), written(tmp_path / "run.trec", run)
    crossed = written(tmp_path / "crossed.txt", exchanged(judged, 0, 2))
    check_refused(capsys, crossed, right_run, ["the judgments' columns of queries and documents"])
    crossed = written(tmp_path / "crossed.trec", exchanged(run, 0, 2))
    check_refused(capsys, right_judged, crossed, ["crossed.trec: its columns of queries and documents"])


@pytest.mark.parametrize("shape", ["large", "small"])
def test_documents_and_ranks(tmp_path, capsys, shape):
    judged, run = rows(shape)
    crossed = written(tmp_path / "crossed.trec", exchanged(run, 2, 3))
    check_refused(capsys, written(tmp_path / "q.txt", judged), crossed, ["documents", "ranks"])


@pytest.mark.parametrize("shape", list(SHAPES))
def test_queries_and_the_second_column(tmp_path, capsys, shape):
    judged, run = rows(shape)
    crossed = written(tmp_path / "crossed.trec", exchanged(run, 0, 1))
    check_refused(capsys, written(tmp_path / "q.txt", judged), crossed, ["the query 'Q0'", "second column"])
    top = [row for row in run if row[3] == "1"]  # no document twice
    crossed = written(tmp_path / "crossed.trec", exchanged(top, 0, 1))
    check_refused(capsys, tmp_path / "q.txt", crossed, ["the query 'Q0'"])


def test_queries_and_ranks(tmp_path, capsys):
    judged, run = rows("large")
    crossed = written(tmp_path / "crossed.trec", exchanged(run, 0, 3))
    check_refused(capsys, written(tmp_path / "q.txt", judged), crossed, ["queries that count up", "ranks"])


@pytest.mark.parametrize("at", [1, 3])
def test_exchanged_columns_of_standard_input_whose_blocks_are_small(tmp_path, at):
    judged, run = rows("large", queries=8)
    files = written(tmp_path / "q.txt", judged), written(tmp_path / "run.trec", exchanged(run, 0, at))
    command = [sys.executable, "-m", "weir", "eval", str(files[0]), "/dev/stdin"]
    with (
        files[1].open("rb") as run_file,
        subprocess.Popen(["cat"], stdin=run_file, stdout=subprocess.PIPE) as cat,
    ):
        done = subprocess.run(command, stdin=cat.stdout, capture_output=True, timeout=300, check=False)
    assert done.returncode == 2
    assert b"two columns look exchanged" in done.stderr


@pytest.mark.parametrize("shape", list(SHAPES))
def test_rankings_by_rank_pass(tmp_path, capsys, shape):
    judged, run = rows(shape)
    queries = list(dict.fromkeys(row[0] for row in run))
    mixed = sorted(run, key=lambda row: (int(row[3]), queries.index(row[0])))
    files = written(tmp_path / "q.txt", judged), written(tmp_path / "run.trec", mixed)
    assert refusal(capsys, "eval", *files)[0] == 0
    assert refusal(capsys, "eval", files[0], written(tmp_path / "top.trec", mixed[: len(queries)]))[0] == 0


@pytest.mark.parametrize(("at", "kind"), [(0, "queries"), (2, "documents")])
def test_identifiers_and_scores(tmp_path, capsys, at, kind):
    judged, run = rows("large")
    crossed = written(tmp_path / "crossed.trec", exchanged(run, at, 4))
    check_refused(capsys, written(tmp_path / "q.txt", judged), crossed, [kind, "scores"])


@pytest.mark.parametrize("shape", list(SHAPES))
def test_documents_and_grades(tmp_path, capsys, shape):
    judged, run = rows(shape)
    crossed = written(tmp_path / "crossed.txt", exchanged(judged, 2, 3))
    check_refused(capsys, crossed, written(tmp_path / "run.trec", run), ["documents", "grades"])


@pytest.mark.parametrize("shape", list(SHAPES))
def test_grades_and_the_second_column(tmp_path, capsys, shape):
    judged, run = rows(shape)
    crossed = written(tmp_path / "crossed.txt", exchanged(judged, 1, 3))
    check_refused(capsys, crossed, written(tmp_path / "run.trec", run), ["second column of grades"])


@pytest.mark.parametrize("shape", list(SHAPES))
def test_right_columns_pass_whatever_the_identifiers(tmp_path, capsys, shape):
    for seed in range(3):
        judged, run = rows(shape, seed)
        files = written(tmp_path / "q.txt", judged), written(tmp_path / "run.trec", run)
        assert refusal(capsys, "eval", *files)[0] == 0
        assert refusal(capsys, "audit", *files)[0] == 0


@pytest.mark.parametrize("shape", list(SHAPES))
def test_documents_and_grades_of_frames(shape):
    judged, run = rows(shape)
    rankings = {}
    for query, _, doc, _, score, _ in run:
        rankings.setdefault(query, {})[doc] = float(score)
    query, _, doc, grade = map(list, zip(*judged, strict=True))
    number = doc if shape == "words" else list(map(int, doc))
    for made in (pandas.DataFrame, polars.DataFrame, pa.table):
        frame = made({"query_id": query, "doc_id": list(map(int, grade)), "relevance": number})
        with pytest.raises(BadValue, match=r"documents that are all grades.*look exchanged"):
            weir.evaluate(frame, rankings, "nDCG@10")


def test_values_in_memory():
    judged, run = rows("large")
    qrels, rankings = {}, {}
    for query, _, doc, grade in judged:
        qrels.setdefault(doc, {})[query] = int(grade)
    for query, _, doc, _, score, _ in run:
        rankings.setdefault(query, {})[doc] = float(score)
    with pytest.raises(BadValue, match="the judgments' columns of queries and documents are exchanged"):
        weir.evaluate(qrels, rankings, "nDCG@10")
    ranks = {query: {str(n): s for n, s in enumerate(row.values(), 1)} for query, row in rankings.items()}
    own = {query: {"7000000": 1} for query in rankings}
    with pytest.raises(BadValue, match="documents and ranks are exchanged"):
        weir.evaluate(own, ranks, "nDCG@10")


def test_zeros_alone_are_said_first(tmp_path, capsys):
    judged, run = rows("words")
    nothing = [(*row[:3], "0") for row in judged]
    files = written(tmp_path / "q.txt", nothing), written(tmp_path / "run.trec", run)
    warnings.simplefilter("always")
    for command in ("eval", "gate"):
        code, text = refusal(capsys, command, *files, *files[1:] * (command == "gate"))
        assert code == (3 if command == "gate" else 0)
        assert text.startswith("warning: none of 30 judged queries has a relevant document"), text
    with pytest.warns(RankingWarning, match="do the grades stand in another column"):
        weir.evaluate(*files, "nDCG@10")
    assert "wrong: labels: 30 of 30 judged queries" in refusal(capsys, "audit", *files)[1]
    few = [row for row in nothing if row[0] in ("PLAIN-0", "PLAIN-1")]
    few = [(row[0], "1", *row[2:]) for row in few]
    code, text = refusal(capsys, "eval", written(tmp_path / "few.txt", few), files[1])
    assert code == 0
    assert "none of" not in text


def test_stored_rankings_in_a_collection(tmp_path, capsys):
    judged, run = rows("large")
    docs = {row[2]: f"text {row[2]}" for row in judged + run}
    queries = {row[0]: f"query {row[0]}" for row in judged}
    qrels = {}
    for query, _, doc, grade in judged:
        qrels.setdefault(query, {})[doc] = int(grade)
    made = weir.Dataset.of(docs, queries, qrels)
    for a, b, words in ((0, 2, "queries and documents"), (2, 3, "documents and ranks look exchanged")):
        path = written(tmp_path / f"{a}{b}.trec", exchanged(run, a, b))
        with pytest.raises(WeirError, match=words):
            weir.benchmark(made, [f'run("{path}")'], out=tmp_path / f"{a}{b}")


def test_threads_that_read_at_once_leave_each_other_their_warnings():
    """A held warning belongs to its own reading, and the filters of the process stay as they were."""
    qrels = Qrels.of({f"q{n}": {"d1": 0} for n in range(9)})
    run = {f"q{n}": {"d1": 1.0} for n in range(9)}
    filters = list(warnings.filters)
    both = threading.Barrier(4)

    def read(_):
        both.wait(60)
        for _ in range(20):
            with held_warnings():
                warn_of_ranking("said")
                weir.evaluate(qrels, Run.of(run), "nDCG@10")

    with pytest.warns(RankingWarning) as told, ThreadPoolExecutor(4) as threads:
        list(threads.map(read, range(4)))
    assert sum(str(one.message) == "said" for one in told) == 80
    assert warnings.filters == filters


@pytest.mark.parametrize("form", ["json", "csv", "tsv", "semicolons.csv", "qrels", "parquet"])
def test_texts_in_the_column_of_grades_are_named_as_the_documents_in_every_table(tmp_path, form):
    rows = [(f"q{n // 3}", str(n % 3), f"d{n}") for n in range(30)]
    path = tmp_path / f"x.{form}"
    if form == "parquet":
        columns = zip(("query_id", "doc_id", "grade"), zip(*rows, strict=True), strict=True)
        parquet.write_table(pa.table({name: list(cells) for name, cells in columns}), path)
    elif form == "json":
        path.write_text(json.dumps({q: {d: g for one, d, g in rows if one == q} for q, _, _ in rows}))
    else:
        mark = {"csv": ",", "tsv": "\t", "semicolons.csv": ";", "qrels": " "}[form]
        head = [] if form == "qrels" else [("query_id", "doc_id", "grade")]
        rows = [(q, "0", d, g) for q, d, g in rows] if form == "qrels" else rows
        path.write_text("".join(mark.join(row) + "\n" for row in [*head, *rows]))
    with pytest.raises(FormatError, match="documents before grades; the two columns look exchanged"):
        weir.Qrels.load(path)


def test_texts_under_an_unknown_name_are_asked_for(tmp_path):
    text = "bread is made of flour and water " * 4
    rows = [{"_id": f"d{n}", "title": "bread", "text": "" if n else "x", "raw": text} for n in range(20)]
    (tmp_path / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "queries.jsonl").write_text(json.dumps({"_id": "q", "text": "bread"}) + "\n")
    with pytest.raises(FormatError, match="no text in 19 of 20 records, and texts in their field 'raw'"):
        len(weir.load(tmp_path).corpus)
    with pytest.raises(BadValue, match="19 of 20 documents have no text, and 'raw' holds texts"):
        weir.import_files(tmp_path / "corpus.jsonl", tmp_path / "out")
    weir.import_files(tmp_path / "corpus.jsonl", tmp_path / "out", {"doc": "_id", "text": "raw"}, "corpus")
    assert weir.load(tmp_path / "out").corpus["d1"]["text"].split() == text.split()
