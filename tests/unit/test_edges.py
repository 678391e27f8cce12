"""Small foreign files that were once read wrongly in silence: each is read right, asked about or refused by its line.

A row is (commands, exit code of the last, what it says); the files lie in tests/edges.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

import weir
from weir.cli import main

FILES = Path(__file__).resolve().parents[1] / "edges"
CONTRARY = r"interleaved.txt: ranks and scores say different orders in 8 of 8 rankings"
DISTANCES = r"d8.txt: scores rise from rank to rank, as distances do, in 8 of 8 rankings"
TWO = ("t05/interleaved.txt", "t05/d8.txt")
EDGES = [
    # Lines of runs.
    ("eval t15/q.txt t15/cat.txt -m RR", 2, "cat.txt, line 2: found 11 columns"),
    ("eval t14/q.txt t14/r_cr.txt -m RR", 2, "r_cr.txt, line 1: found a carriage return"),
    ("eval t23/qcb_int.txt t23/cb_int.tsv -m RR", 2, "line 1: found 5 columns .* --as colbert"),
    ("data import t23/cb_int.tsv --as colbert -o o; eval t23/qcb_int.txt o/runs/cb_int.trec -m RR -m nDCG@10", 0,
     "cb_int +1.0000 .* 0.9197"),
    ("eval t23/qcb_int.txt t23/swap10.txt -m RR", 2, "found scores in the place of ranks"),
    ("eval t23/qcb_int.txt t23/qrels5.txt -m RR", 2, "line 1: found 5 columns"),
    ("eval t02/q.txt t06/sci.txt -m RR", 2, r"line 3: found 'q2 Q0 c 1 1.5D\+01 t'"),
    ("data import t06/sci.txt -o o", 2, r"line 3: found '1.5D\+01' as the score"),
    ("data convert t06/withjson.trec o.json", 0, "a run of 2 queries"),
    ("data import t06/withjson.trec -o o", 0, "2 rankings, 1 run; the run .* its tag .indri.; not imported: remarks after the tag .3."),
    *((f"eval t02/q.txt t08/cand.{ending} -m RR", 2, "found 3 columns .*--as run-scores, or --as run-ranks")
      for ending in ("tsv", "txt")),
    *((f"data import t08/cand.{ending} -o o", 2, "may be a rank, a grade or a score") for ending in ("tsv", "txt")),
    # Ranks against scores.
    *((f"{command} {' '.join(TWO)}{rest}", 0, f"(?s){CONTRARY}.*{DISTANCES}") for command, rest in
      (("diff t05/q8.txt", ""), ("why t05/q8.txt", ""), ("fuse rrf", " -o o.trec"), ("compare t05/q8.txt", ""))),
    ("eval t05/q8.txt t05/interleaved.txt -m RR", 0, CONTRARY),
    ("data convert t05/d8.txt o.json", 0, DISTANCES),
    ("eval t05/q.txt t05/dist.txt", 0, "scores rise from rank to rank"),
    ("data import t05/interleaved.txt -o o", 0, "different orders in 8 of 8 rankings; its scores are kept"),
    ("data import t05/interleaved.txt --as run-ranks -o o; eval t05/q8.txt o/runs/interleaved.trec -m RR", 0,
     "interleaved +1.0000"),
    ("audit t05/q8.txt t05/interleaved.txt", 0, "order and scores: .*different orders in 8 of 8"),
    *((f"eval ev/q50.txt ev/d50.{ending}", 0, "scores rise from rank to rank, as distances do, in 50 of 50")
      for ending in ("csv", "trec")),
    *((f"data import t29/{name} --as run-ranks -o o", 0, "the ranks of the file are kept, equal ones as ties")
      for name in ("num.tsv", "contra.txt")),
    # Results of other tools.
    *((f"data import t23/{name} -o o", 0, "2 rankings, 1 run") for name in
      ("atlas.json", "pyserini_dpr.json", "rankgpt.json", "flag.json", "patapsco.jsonl")),
    ("data import t23/vespa.json -o o", 0, "1 ranking, 1 run"),
    # Several collections in one folder.
    ("run -d collections/cqadupstack#android -s bm25 -m nDCG@10 -o r", 0, r"bm25 +1.0000 \[-\] +1.0000 +2/2"),
    ("eval collections/cqadupstack collections/ds3-run.txt", 2, r"2 collections \(android, english\)"),
    ("eval collections/ds3 collections/ds3-run.txt -m RR", 2, r"2 collections \(a, b\)"),
    # Columns by evidence, and lists that cells spell.
    ("data import lab/j/clean/l.csv lab/j/clean/corpus.jsonl lab/j/clean/queries.jsonl -o o; run -d o -s bm25 -o r", 0,
     r"bm25 +1.0000 \[-\]"),
    ("data import lab/j/a1.jsonl -o o", 0, "2 queries, 3 judgments"),
    ("data import lab/j/a2.json -o o", 0, "2 queries, 3 judgments, 2 rankings"),
    ("data import csv/g9.csv -o o", 2, "line 2: more cells than columns"),
    ("data import csv/cut/corpus.csv csv/cut/queries.csv csv/cut/qrels.csv -o o", 2, "line 2: more cells than columns"),
    ("data import csv/g8.csv -o o", 2, "line 2: 'd1;d2' looks like several documents"),
    ("data import np/hf.csv -o o", 2, "line 4: .* some members are left out"),
    ("data import np/ragas.csv -o o", 0, "3 documents, 4 repeated documents, 2 queries, 3 judgments, 2 rankings"),
    ("data import corp/body/documents.csv corp/body/queries.csv corp/body/qrels.csv -o o; run -d o -s bm25 -m RR -o r",
     0, r"bm25 +1.0000 \[-\]"),
    *((f"data import gold/{name}.json -o o", 2, "chunk_id and doc_id could each be the doc") for name in ("p1", "p2")),
    # Collections.
    ("run -d cand/c -s bm25 -m R@10 -o r", 0, r"bm25 +0.3333 \[-\]"),
    ("run -d thai/c -s bm25 -m R@10 -o r", 0, 'looks like Thai .*bm25.analyzer="thai-bigrams"'),
    ("run -d thai/c -s 'bm25(analyzer=\"thai-bigrams\")' -m R@10 -o r", 0, r"bm25.* +1.0000 \[-\]"),
    ("audit a/zw", 0, "(?s)not composed.*soft hyphens.*full-width"),
]  # fmt: skip


@pytest.mark.filterwarnings("default::weir.errors.RankingWarning")
@pytest.mark.parametrize(("commands", "code", "said"), EDGES, ids=[commands for commands, *_ in EDGES])
def test_foreign_files(commands, code, said, tmp_path, monkeypatch, capsys):
    shutil.copytree(FILES, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    *before, last = commands.split("; ")
    for command in before:
        assert main(shlex.split(command)) == 0
    capsys.readouterr()
    assert main(shlex.split(last)) == code
    out, err = capsys.readouterr()
    assert re.search(said, out + err), out + err
    if code:
        assert err.count("\n") == 1
        assert not Path("o").exists()


def test_lists_in_cells_are_the_same_rankings_as_lists(tmp_path):
    weir.import_files(FILES / "np" / "ragas.csv", tmp_path / "o")
    scores = weir.evaluate(tmp_path / "o", tmp_path / "o" / "runs" / "ragas.trec", ["RR"])
    assert scores.means()["RR"] == 0.75


def test_nested_fields_are_kept(tmp_path):
    weir.import_files(FILES / "pq" / "m.jsonl", tmp_path / "o", as_kind="queries")
    one = json.loads((tmp_path / "o" / "queries.jsonl").read_text())
    assert one["metadata"] == {"meta": {"k": 1, "lang": "en"}, "author": {"name": "x"}, "year": 1999}


def test_nothing_is_by_construction_where_candidates_decide(tmp_path, monkeypatch, capsys):
    shutil.copytree(FILES / "cand", tmp_path / "cand")
    monkeypatch.chdir(tmp_path)
    assert main(["run", "-d", "cand/c", "-s", "bm25", "-m", "R@10", "-o", "r"]) == 0
    assert "by construction" not in capsys.readouterr().out
