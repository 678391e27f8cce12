"""Large files are imported in batches: what is written is what reading them whole writes, in bounded memory."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys

import pytest

import weir
from weir.errors import FormatError, LossWarning, WeirError
from weir.plugins.importing import contents as row_batches
from weir.plugins.importing import import_files

DOCUMENTS = [
    {
        "_id": f"d{n}",
        "title": f"Weir {n}",
        "text": f"a weir of {n} metres",
        "year": 1900 + n,
        "tags": ["a", "b"],
        "vector": [0.5],
    }
    for n in range(50)
]
QUERIES = [{"_id": f"q{n}", "text": f"weir {n}", "lang": "en"} for n in range(20)]
QRELS = [{"query-id": f"q{n}", "corpus-id": f"d{n}", "score": n % 3} for n in range(20)]
ROWS = {"corpus": DOCUMENTS, "queries": QUERIES, "qrels": QRELS}


def jsonl(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def packed(path, rows):
    with gzip.open(path.with_name(path.name + ".gz"), "wt") as out:
        out.writelines(json.dumps(row) + "\n" for row in rows)


def parquet(path, rows):
    arrow = pytest.importorskip("pyarrow", reason="Parquet files take pyarrow")
    import pyarrow.parquet as pq

    pq.write_table(arrow.Table.from_pylist(rows), path.with_suffix(".parquet"))


@pytest.fixture
def small_batches(monkeypatch):
    """Every file is a large one, read some rows at a time."""
    for name, value in (("HELD_BYTES", 0), ("_PACKED_BYTES", 0), ("_BLOCK_BYTES", 300)):
        monkeypatch.setattr(row_batches, name, value)
    monkeypatch.setattr("weir.plugins.importing.contents._BATCH_ROWS", 7)


def written(folder):
    files = {
        path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()
    }
    return files | {"import.json": json.loads(files["import.json"])["files"]}


@pytest.mark.parametrize("write", [jsonl, packed, parquet])
@pytest.mark.filterwarnings("ignore::weir.errors.LossWarning")
def test_batches_write_what_the_whole_writes(tmp_path, write, request):
    (tmp_path / "in").mkdir()
    for name, rows in ROWS.items():
        write(tmp_path / "in" / f"{name}.jsonl", rows)
    paths = sorted((tmp_path / "in").iterdir())
    import_files(paths, tmp_path / "whole")
    request.getfixturevalue("small_batches")
    assert row_batches.row_batches(paths[0], {}) is not None
    import_files(paths, tmp_path / "parts")
    assert written(tmp_path / "parts") == written(tmp_path / "whole")
    dataset = weir.load(tmp_path / "parts")
    assert (len(dataset.corpus), dataset.store.metadata[3]) == (50, '{"year": 1903, "tags": ["a", "b"]}')


DAMAGE = {
    "no JSON": ("{", r"corpus.jsonl, line 31: found no valid JSON"),
    "no object": ("[1]", r"line 31: found a JSON list"),
    "a name twice": ('{"_id": "x", "_id": "y", "text": "z"}', "'_id' twice in one JSON object"),
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.filterwarnings("ignore:.*not imported:weir.errors.LossWarning")
def test_a_file_that_breaks_off_leaves_none_of_its_documents(tmp_path, small_batches, damage):
    line, said = DAMAGE[damage]
    jsonl(tmp_path / "corpus.jsonl", DOCUMENTS[:30])
    with (tmp_path / "corpus.jsonl").open("a") as out:
        out.write(line + "\n" + json.dumps(DOCUMENTS[30]) + "\n")
    jsonl(tmp_path / "docs.jsonl", DOCUMENTS[40:])
    report = import_files([tmp_path / "corpus.jsonl", tmp_path / "docs.jsonl"], tmp_path / "out")
    assert len(report.refused) == 1
    with pytest.warns(LossWarning, match=f"left out by the import: .*{said}"):
        assert weir.load(tmp_path / "out").corpus.ids.tolist() == [row["_id"] for row in DOCUMENTS[40:]]
    with pytest.raises(FormatError, match=said):
        import_files(tmp_path / "corpus.jsonl", tmp_path / "none")


def test_documents_twice_are_counted_and_others_of_their_name_refused(tmp_path, small_batches):
    jsonl(tmp_path / "corpus.jsonl", [*DOCUMENTS, DOCUMENTS[3], {"_id": "d4", "text": "another"}])
    (told,) = import_files(tmp_path / "corpus.jsonl", tmp_path / "out").files
    assert (told["counts"], told["rows_refused"]) == ({"documents": 50, "repeated documents": 1}, 1)
    assert "document 'd4' has another text elsewhere" in told["refused_rows"][0]["reason"]


@pytest.mark.parametrize("golden_first", [True, False])
def test_fields_that_one_of_two_equal_documents_lacks_come_from_the_other(tmp_path, golden_first):
    returned = [
        {"id": "d1", "text": "one", "score": 2.0},
        {"id": "d2", "text": "two", "score": 1.0, "title": "Own"},
    ]
    jsonl(tmp_path / "golden.jsonl", [{"question": "q", "relevant": ["d1"], "retrieved": returned}])
    store = [
        {"_id": "d1", "text": "one", "title": "T1", "page": 3},
        {"_id": "d2", "text": "two", "title": "T2"},
    ]
    jsonl(tmp_path / "corpus.jsonl", store)
    files = [tmp_path / "golden.jsonl", tmp_path / "corpus.jsonl"]
    report = import_files(files if golden_first else files[::-1], tmp_path / "out")
    (rows,) = [(tmp_path / "out" / "corpus.jsonl").read_text().splitlines()]
    rows = {row["_id"]: row for row in map(json.loads, rows)}
    assert rows["d1"] == {"_id": "d1", "title": "T1", "text": "one", "metadata": {"page": 3}}
    assert rows["d2"]["title"] == ("Own" if golden_first else "T2")
    assert [one["left_out"] for one in report.files if one["left_out"]] == [{"title": 1}]


def test_rows_that_only_make_sense_together_are_read_whole(tmp_path, small_batches):
    jsonl(tmp_path / "golden.jsonl", [{"query": f"weir {n}", "relevant": [f"d{n}"]} for n in range(40)])
    assert import_files(tmp_path / "golden.jsonl", tmp_path / "out").whole["queries"] == 40


MEMORY = """
import resource, sys
from weir.plugins.importing import import_files
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
import_files(sys.argv[1], sys.argv[2])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_memory_does_not_grow_with_the_corpus(tmp_path):
    text = "a weir of many metres " * 130
    with (tmp_path / "corpus.jsonl").open("w") as out:
        out.writelines(f'{{"_id": "d{n}", "text": "{n} {text}"}}\n' for n in range(45_000))  # 130 MB
    command = [sys.executable, "-c", MEMORY, str(tmp_path / "corpus.jsonl"), str(tmp_path / "out")]
    grown = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert grown < 110_000  # KiB; 64 MiB of them are the cache of documents
    with pytest.raises(WeirError):
        weir.load(tmp_path / "out", "dev").qrels  # noqa: B018  (a corpus alone)
