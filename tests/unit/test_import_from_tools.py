"""weir data import of files that the tools themselves wrote (scripts/make_tool_files.py): one set of judgments, one run."""

from __future__ import annotations

from pathlib import Path

import pytest

import weir
from weir.errors import WeirError
from weir.files.runs import read_qrels_counted, read_run
from weir.plugins.importing import import_files

HOME = Path(__file__).resolve().parents[1] / "tool_files"
TEXTS = {"q1": "what measures flow", "q2": "who keeps the weir"}
DOCUMENTS = {"d1": "a weir measures flow", "d2": "the keeper of the weir", "d3": "a dam"}
JUDGED = {"q1": {"d1": 2, "d3": 0}, "q2": {"d2": 1}}
RELEVANT = {"q1": {"d1": 1}, "q2": {"d2": 1}}
RANKED = {"q1": ["d1", "d3"], "q2": ["d3", "d2"]}

QRELS = {
    "ranx/qrels.json": JUDGED,
    "ranx/qrels.trec": JUDGED,
    "pandas/qrels.csv": JUDGED,
    "pandas/qrels.jsonl": JUDGED,
    "pandas/qrels.records.json": JUDGED,
    "pandas/qrels.parquet": JUDGED,
    "ragas/evaluation.jsonl": RELEVANT,
    "ragas/evaluation.csv": RELEVANT,
    "deepeval/goldens.json": RELEVANT,
    "deepeval/goldens.csv": RELEVANT,
    "llama_index/pairs.json": RELEVANT,
}
RUNS = {
    "ranx/run.json": "",
    "ranx/run.trec": "",
    "ranx/run.parquet": "",
    "pandas/run.tsv": "",
    "pyterrier/run.trec": "",
    "pyterrier/run.minimal": "run-ranks",
    "opentelemetry/genai.jsonl": "",
    "opentelemetry/openinference.jsonl": "",
    "ragas/evaluation.jsonl": "",
    "ragas/evaluation.csv": "",
    "deepeval/goldens.json": "",
    "deepeval/goldens.csv": "",
}


def imported(name, tmp_path, kind=""):
    """The folder that a file becomes, and its queries and documents by identifier."""
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow", reason="Parquet files take pyarrow")
    out = tmp_path / "out"
    import_files(HOME / name, out, as_kind=kind)
    queries = weir.load(out).all_queries.to_dict() if (out / "queries.jsonl").exists() else {}
    corpus = weir.load(out).corpus if (out / "corpus.jsonl").exists() else None
    return out, queries, dict(zip(corpus.ids.tolist(), corpus.text.tolist(), strict=True)) if corpus else {}


def by_text(rows, queries, documents):
    """Rows of a file that knows queries and documents by text, by the identifiers of the tests."""
    query_of = {text: name for name, text in TEXTS.items()}
    document_of = {text: name for name, text in DOCUMENTS.items()}

    def named(row):
        return {document_of.get(documents.get(name, ""), name): value for name, value in row.items()}

    return {query_of.get(queries.get(name, ""), name): named(row) for name, row in rows.items()}


@pytest.mark.parametrize("name", QRELS)
@pytest.mark.filterwarnings("ignore::weir.errors.LossWarning")
def test_judgments_are_those_that_the_tool_was_given(name, tmp_path):
    out, queries, documents = imported(name, tmp_path)
    assert (
        by_text(read_qrels_counted(out / "qrels" / "test.tsv")[0].to_dict(), queries, documents)
        == QRELS[name]
    )
    assert set(queries.values()) <= set(TEXTS.values())


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.filterwarnings("ignore::weir.errors.LossWarning")
def test_rankings_are_those_that_the_tool_was_given(name, tmp_path):
    out, queries, documents = imported(name, tmp_path, RUNS[name])
    (run,) = (out / "runs").iterdir()
    found = by_text(read_run(run).to_dict(), queries, documents)
    assert {query: sorted(row, key=row.get, reverse=True) for query, row in found.items()} == RANKED


def test_values_of_measures_are_known_and_refused():
    with pytest.raises(WeirError, match=r"per_query.txt: .*measure"):
        import_files(HOME / "ir_measures" / "per_query.txt", HOME / "none")
