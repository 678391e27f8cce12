"""How often a command opens a file and enters a module: a record once, a file's beginning once, numbers by arrays."""

from __future__ import annotations

import gzip
import json
import os
import sys
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import pytest

import weir
from weir.cli import main
from weir.experiment.experiment import Experiment
from weir.stats import distributions
from weir.stats.power import detectable

_HEARD: list[Counter[str]] = []
"""Counters that listen now; an audit hook stays for as long as the process lives."""


def _hear(event: str, arguments: tuple[object, ...]) -> None:
    if (
        _HEARD
        and event in ("open", "os.scandir", "os.listdir")
        and isinstance(arguments[0], (str, os.PathLike))
    ):
        _HEARD[-1][os.fspath(arguments[0])] += 1


@contextmanager
def opened(below: Path):
    """Count how often each file is opened, and each folder listed, below a folder."""
    if not _HEARD:
        sys.addaudithook(_hear)
    counter: Counter[str] = Counter()
    _HEARD.append(counter)
    yield (found := Counter[str]())
    _HEARD[-1:] = [Counter()]  # a hook is never removed: it goes on to count, for nobody
    found.update({name: n for name, n in counter.items() if Path(name).is_relative_to(below)})


ROWS = [("q1", "d1", 3.0), ("q1", "d2", 2.0), ("q2", "d3", 1.0)]
FORMS = {
    "run.trec": "".join(f"{q} Q0 {d} 1 {score} x\n" for q, d, score in ROWS),
    "run.csv": "query_id,doc_id,score\n" + "".join(f"{q},{d},{score}\n" for q, d, score in ROWS),
    "run.tsv": "query_id\tdoc_id\tscore\n" + "".join(f"{q}\t{d}\t{score}\n" for q, d, score in ROWS),
    "run.jsonl": "".join(
        json.dumps({"query_id": q, "doc_id": d, "score": score}) + "\n" for q, d, score in ROWS
    ),
    "run.json": json.dumps({"q1": {"d1": 3.0, "d2": 2.0}, "q2": {"d3": 1.0}}),
    "run.trec.gz": "",
}
JUDGMENTS = {
    "qrels.txt": "q1 0 d1 1\nq2 0 d4 1\n",
    "qrels.csv": "query_id,doc_id,grade\nq1,d1,1\nq2,d4,1\n",
    "qrels.json": json.dumps({"q1": {"d1": 1}, "q2": {"d4": 1}}),
}


@pytest.mark.parametrize("judgments", JUDGMENTS)
@pytest.mark.parametrize("run", FORMS)
def test_eval_opens_a_file_for_its_beginning_and_for_its_rows(tmp_path, run, judgments):
    (tmp_path / run).write_text(FORMS[run])
    (tmp_path / judgments).write_text(JUDGMENTS[judgments])
    if run.endswith(".gz"):
        (tmp_path / run).write_bytes(gzip.compress(FORMS["run.trec"].encode()))
    with opened(tmp_path) as found:
        assert main(["eval", str(tmp_path / judgments), str(tmp_path / run), "-m", "nDCG@10"]) == 0
    most = {".json": 3, ".jsonl": 3}  # a pickle is told from JSON, and a first row names the columns
    assert {Path(name).name for name in found} == {run, judgments}
    assert all(count <= most.get(Path(name).suffix, 2) for name, count in found.items()), found


def test_compare_reads_each_record_of_a_folder_once(tmp_path):
    Experiment(("brook-facts", "brook-news"), ("bm25", "rm3", "rrf(bm25, rm3)"), ("RR",), k=5).execute(
        tmp_path
    )
    with opened(tmp_path) as found:
        assert main(["compare", str(tmp_path), "-m", "RR"]) == 0
    records = {name: count for name, count in found.items() if name.endswith(".json")}
    there = [
        str(tmp_path / "grid.json"),
        *map(str, [*tmp_path.rglob("stage.json"), *tmp_path.rglob("scores-*.json")]),
    ]
    assert sorted(records) == sorted(there)
    assert set(records.values()) == {1}
    values = [count for name, count in found.items() if name.endswith(".jsonl")]
    assert len(values) == 6
    assert max(values) <= 2  # its checksum, and its values
    folders = [count for name, count in found.items() if Path(name).parent.parent == tmp_path]
    assert set(folders) == {1}


def test_power_enters_the_distributions_for_all_numbers_at_once():
    entered = Counter[str]()

    def seen(frame, event, _):
        if event == "call" and frame.f_code.co_filename == distributions.__file__:
            entered[frame.f_code.co_name] += 1

    sys.setprofile(seen)
    try:
        assert detectable(1.0, 37, 0.81, 0.0437) > 0
    finally:
        sys.setprofile(None)
    assert 0 < sum(entered.values()) < 500, entered


def test_a_cell_knows_the_stages_that_made_it(tmp_path):
    """Inputs first, each once; what a fusion is made of is among them."""
    Experiment(("brook-facts",), ("rrf(bm25, rm3)",), ("RR",), k=5).execute(tmp_path)
    [cell] = weir.experiment.results.finished_cells(tmp_path)
    kinds = [record.kind for _, record in cell.stages]
    folders = [folder for folder, _ in cell.stages]
    assert cell.stages[-1] == (cell.folder, cell.ranked)
    assert len(set(folders)) == len(folders)
    assert Counter(kinds)["index"] >= 1
    assert all((folder / "stage.json").is_file() for folder in folders)
