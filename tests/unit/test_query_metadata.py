"""What a collection says of its queries: read, taken with the queries, and refused where it is of another kind."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from weir import load
from weir.datasets.load import Dataset
from weir.errors import BadValue, FormatError

GIVEN = {
    "q1": {
        "candidates": ["d2", "d1", "d2"],
        "excluded": ["d1"],
        "lang": "en",
        "year": 2020,
        "by": {"deep": 1},
    },
    "q2": {"instruction": "only recent ones", "unanswerable": True, "lang": "de", "year": 0.5, "ok": False},
    "q3": {},
}


def folder_with(path: Path, metadata: dict[str, object]) -> Path:
    """A collection of two documents whose queries are all judged."""
    path.mkdir(exist_ok=True)
    (path / "corpus.jsonl").write_text("".join(f'{{"_id": "d{n}", "text": "weir {n}"}}\n' for n in (1, 2)))
    rows = [{"_id": name, "text": "weir", "metadata": more} for name, more in metadata.items()]
    (path / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (path / "qrels.txt").write_text("".join(f"{name} 0 d1 1\n" for name in metadata))
    return path


def labels(dataset: Dataset) -> dict[str, list[str]]:
    """The groups of a collection, as lists."""
    return {name: column.tolist() for name, column in dataset.groups.items()}


def test_metadata_is_read_in_columns_and_goes_with_its_queries(tmp_path: Path) -> None:
    dataset = load(folder_with(tmp_path / "mine", GIVEN))
    groups = {"lang": ["en", "de", ""], "year": ["2020", "0.5", ""], "ok": ["", "false", ""]}
    assert labels(dataset) == groups
    found = dataset.all_queries.take(np.array([1, 0])).metadata
    assert found is not None
    assert found.candidates is not None
    assert found.excluded is not None
    assert found.instruction is not None
    assert found.unanswerable is not None
    assert found.candidates.tolist() == [[], ["d2", "d1"]]
    assert found.excluded.tolist() == [[], ["d1"]]
    assert found.instruction.tolist() == ["only recent ones", ""]
    assert found.unanswerable.tolist() == [True, False]
    assert found.groups["lang"].tolist() == ["de", "en"]


def test_queries_without_metadata_say_nothing(tmp_path: Path) -> None:
    dataset = load(folder_with(tmp_path / "mine", {"q1": {}, "q2": {"deep": {"url": "x"}}}))
    assert dataset.queries.metadata is None
    assert dataset.groups == {}


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        ({"candidates": "d1"}, 'the candidates "d1" of a query; expected a list of identifiers'),
        ({"excluded": [1.5]}, "the excluded [1.5] of a query; expected a list of identifiers"),
        ({"unanswerable": "no"}, 'the unanswerable "no" of a query; expected true or false'),
        ({"instruction": 7}, "the instruction 7 of a query; expected a text"),
    ],
)
def test_metadata_of_another_kind_is_refused_with_its_line(
    tmp_path: Path, metadata: dict[str, object], said: str
) -> None:
    with pytest.raises(FormatError, match=r"queries\.jsonl, line 2: found ") as refused:
        _ = load(folder_with(tmp_path / "mine", {"q1": {"lang": "en"}, "q2": metadata})).queries
    assert said in str(refused.value)


def test_python_gives_the_same_metadata() -> None:
    queries = {"q1": {"text": "a", "lang": "en", "candidates": ["d2"]}, "q2": {"text": "b"}, "q3": "c"}
    judged = {name: ["d1"] for name in queries}
    dataset = Dataset.of({"d1": "x", "d2": "y"}, queries, judged, excluded={"q2": ["d1"]})
    found = dataset.queries.metadata
    assert found is not None
    assert found.rows() == [{"candidates": ["d2"], "lang": "en"}, {"excluded": ["d1"]}, {}]
    assert labels(dataset) == {"lang": ["en", "", ""]}
    with pytest.raises(BadValue, match="excluded of query 'q9', which is not among the queries"):
        Dataset.of({"d1": "x"}, {"q1": "a"}, {"q1": ["d1"]}, excluded={"q9": ["d1"]})
    with pytest.raises(BadValue, match="query 'q1': the candidates 7 of a query; expected a list"):
        Dataset.of({"d1": "x"}, {"q1": {"text": "a", "candidates": 7}}, {"q1": ["d1"]})
