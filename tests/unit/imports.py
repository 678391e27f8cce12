"""What the tests of weir data import share: small files, and what was written of them."""

from __future__ import annotations

import json
from dataclasses import replace

from weir.files.runs import read_qrels_counted, read_run
from weir.plugins.importing import Choices, import_files
from weir.plugins.importing.merge import made_id

Q = made_id("red shoes", "query")
R = made_id("wool socks", "query")
RANKED = {"a": 2.0, "b": 1.0}


def lines(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def written(folder):
    """Queries, judgments (test) and runs of a folder, as dictionaries."""
    queries = folder / "queries.jsonl"
    rows = [json.loads(line) for line in queries.read_text().splitlines()] if queries.exists() else []
    qrels = folder / "qrels" / "test.tsv"
    return (
        {row["_id"]: row["text"] for row in rows},
        read_qrels_counted(qrels)[0].to_dict() if qrels.exists() else {},
        {path.stem: read_run(path).to_dict() for path in sorted((folder / "runs").glob("*"))},
    )


def imported(tmp_path, name, content, **options):
    """The report of importing one file, whose folder is tmp_path / "out", whatever it loses."""
    options["choices"] = replace(options.get("choices", Choices()), allow_loss=True)
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return import_files([path], tmp_path / "out", **options)


def report_of(tmp_path):
    """The report that stands in the folder written."""
    return json.loads((tmp_path / "out" / "import.json").read_text())
