"""Finished cells of a results folder, written by hand so that a test decides every setting and ranking."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path

from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.experiment.stages import Record, records_in, write_record
from weir.files.integrity import Checksum
from weir.files.score_files import write_scores
from weir.files.write import write_run
from weir.measures import score_run
from weir.stats.score_rows import result_rows

__all__ = ["MANIFEST", "QRELS", "RUN", "changed", "noted", "write_cell", "write_qrels_file"]

QRELS = {
    "q1": {"d1": 1, "d2": 0, "d3": 2},
    "q2": {"d2": 2, "d4": 1},
    "q3": {"d5": 1},
    "q4": {"d1": 1, "q4": 0},
}
RUN = {
    "q1": {"d1": 3.0, "d2": 2.0, "d3": 2.0, "d9": 1.0},
    "q2": {"d9": 5.0, "d4": 4.0, "d2": 4.0},
    "q4": {"q4": 9.0, "d1": 8.0},
}
MANIFEST: dict[str, object] = {
    "dataset": "mine",
    "split": "test",
    "fingerprint": "aa",
    "self_match": "keep",
    "system": {
        "system": "bm25",
        "idf": "lucene",
        "reproduces": "Anserini",
        "analyzer": "lucene-english",
        "k1": 0.9,
        "b": 0.4,
        "lengths": "byte",
        "fields": ["title text"],
        "tie_breaker": None,
        "analysis": {"tokenizer": "uax29", "stemmer": "lucene-porter"},
    },
    "k": 1000,
    "environment": {
        "packages": {"weir-ir": "0.1.0", "numpy": "2.0"},
        "python": "3.11.7",
        "system": "Linux x86_64",
        "processor": "some",
        "cores": 2,
        "threads": 2,
        "interval": {"level": 0.95, "seed": 1},
    },
}


def changed(name: str, value: object) -> dict[str, object]:
    """The manifest with one dotted setting changed."""
    found = copy.deepcopy(MANIFEST)
    at: dict = found
    *parents, leaf = name.split(".")
    for parent in parents:
        at = at[parent]
    assert leaf in at, name
    at[leaf] = value
    return found


def write_cell(
    folder: Path,
    run: dict[str, dict[str, float]] = RUN,
    manifest: dict[str, object] = MANIFEST,
    measures: tuple[str, ...] = ("nDCG@10", "AP"),
    qrels: dict[str, dict[str, int]] = QRELS,
) -> Path:
    """A finished cell of this run, with the scores that Weir gives it.

    manifest: settings as `weir why` shows them, and a cost of "search" and, if there is one, of "index".
    """
    folder.mkdir(parents=True)
    ranked, judged = Run.of(run), Qrels.of(qrels)
    write_run(ranked, folder / "run.trec")
    scores = score_run(judged, ranked, measures)
    system, made = str(manifest["system"]["system"]), dict(manifest["environment"])
    interval, cost = made.pop("interval"), manifest.get("cost") or {}
    declared = {
        "corpus": manifest["fingerprint"],
        "queries": manifest.get("queries", f"of-{manifest['dataset']}"),
    }
    inputs = ()
    if cost.get("index"):
        index = folder.parent / "indexes" / folder.name
        facts = {"bytes": cost["index"].get("bytes"), **cost["index"]}
        write_record(
            index / "stage.json", Record("index", system, declared, {}, (), made, cost["index"], facts)
        )
        inputs = (("index", f"indexes/{folder.name}"),)
    search = {"seconds": 1.0, "peak_mb": 1.0, "queries": 4} | (cost.get("search") or {})
    declared |= {"k": manifest["k"], "system": manifest["system"]}
    files = {"run.trec": Checksum.of(folder / "run.trec")}
    ran = Record("run", system, declared, files, inputs, made, search, search)
    write_record(folder / "stage.json", ran)
    write_scores(scores, folder / "scores-1.jsonl")
    outcome = {name: manifest[name] for name in ("dataset", "split", "fingerprint", "self_match", "k")}
    outcome |= {
        "queries": len(judged),
        "answered": int(scores.answered.sum()),
        "rows": [r.to_dict() for r in result_rows(scores, str(manifest["dataset"]), system)],
    }
    declared = {"run": ran.stage.key, "qrels": "cc", "interval": interval}
    declared |= {"measures": dict.fromkeys(scores.measures, 1)}
    files = {"scores-1.jsonl": Checksum.of(folder / "scores-1.jsonl")}
    write_record(
        folder / "scores-1.json",
        Record("scores", system, declared, files, (("run", folder.name),), made, {}, outcome),
    )
    return folder


def noted(folder: Path, **facts: object) -> Path:
    """A finished cell whose scores came with other facts: rows, numbers of queries, data."""
    [(path, record)] = records_in(folder, "scores-*.json")
    write_record(path, replace(record, facts={**record.facts, **facts}))
    return folder


def write_qrels_file(path: Path, qrels: dict[str, dict[str, int]] = QRELS) -> Path:
    """The judgments as a TREC file."""
    lines = [f"{q} 0 {d} {g}\n" for q, grades in qrels.items() for d, g in grades.items()]
    path.write_text("".join(lines), encoding="utf-8")
    return path
