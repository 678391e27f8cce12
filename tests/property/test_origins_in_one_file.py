"""Rows of several systems, collections or records in one file are told apart by their values, or refused."""

from __future__ import annotations

import csv
import io
import json
import warnings
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import weir
from weir.errors import FormatError, LossWarning, WeirError
from weir.files.column_names import field_names
from weir.files.runs import read_qrels, read_run
from weir.plugins.importing.importer import import_files

FEW = settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
SYSTEMS, COLLECTIONS = (sorted(field_names().parts[part]) for part in ("system", "collection"))
QUERIES, DOCS, PARTS = ["q1", "q2"], ["d1", "d2", "d3", "d4"], ["x", "y"]


@st.composite
def _parted(draw: st.DrawFn, column: str, number: str) -> list[dict[str, object]]:
    """Rows whose number differs for each, of two parts that share a query or do not."""
    pairs = draw(
        st.lists(
            st.tuples(st.sampled_from(QUERIES), st.sampled_from(DOCS)), min_size=2, max_size=8, unique=True
        )
    )
    rows = [
        {"query_id": query, "doc_id": doc, number: 10 - n + (0.5 if number == "score" else 0)}
        for n, (query, doc) in enumerate(sorted(pairs))
    ]
    return [row | {column: draw(st.sampled_from(PARTS))} for row in rows]


def _mixed(rows: list[dict[str, object]], column: str) -> bool:
    return len({(row["query_id"], row[column]) for row in rows}) > len({row["query_id"] for row in rows})


def _written(folder: Path, rows: list[dict[str, object]], suffix: str) -> Path:
    path = folder / f"t.{suffix}"
    if suffix == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        out = io.StringIO()
        writer = csv.DictWriter(out, list(rows[0]), delimiter="\t" if suffix == "tsv" else ",")
        writer.writeheader()
        writer.writerows(rows)
        path.write_text(out.getvalue())
    return path


@FEW
@pytest.mark.filterwarnings("ignore")
@given(
    data=st.data(), suffix=st.sampled_from(["csv", "tsv", "jsonl"]), kind=st.sampled_from(["run", "qrels"])
)
def test_a_query_of_several_systems_or_collections_is_never_read_as_one(data, suffix, kind, tmp_path):
    column = data.draw(st.sampled_from(COLLECTIONS + SYSTEMS * (kind == "run")))
    rows = data.draw(_parted(column, "score" if kind == "run" else "relevance"))
    path = _written(tmp_path, rows, suffix)
    read = read_run if kind == "run" else read_qrels
    frame = {name: [row[name] for row in rows] for name in rows[0]}
    if not _mixed(rows, column):
        assert read(path).to_dict()
        return
    with pytest.raises(WeirError, match=r"'[xy]' for query 'q\d', which began with"):
        read(path)
    with pytest.raises(WeirError, match="for query"):
        weir.evaluate(*((frame, {"q1": ["d1"]}) if kind == "qrels" else ({"q1": ["d1"]}, frame)), ["RR"])


@FEW
@pytest.mark.filterwarnings("ignore")
@given(data=st.data(), suffix=st.sampled_from(["csv", "jsonl"]))
def test_an_import_makes_a_run_of_each_system_with_its_own_rows(data, suffix, tmp_path):
    column = data.draw(st.sampled_from(SYSTEMS))
    rows = data.draw(_parted(column, "score"))
    import_files([_written(tmp_path, rows, suffix)], tmp_path / "out")
    found = {
        (query, doc, score)
        for path in (tmp_path / "out" / "runs").iterdir()
        for query, row in read_run(path).to_dict().items()
        for doc, score in row.items()
        if len({row[column] for row in rows}) == 1 or path.stem in PARTS
    }
    assert found == {(row["query_id"], row["doc_id"], row["score"]) for row in rows}
    for path in (tmp_path / "out" / "runs").iterdir():
        of_run = [row for row in rows if path.stem not in PARTS or row[column] == path.stem]
        assert sum(map(len, read_run(path).to_dict().values())) == len(of_run)


@FEW
@given(
    pairs=st.lists(
        st.tuples(st.sampled_from(["red shoes", "blue hats"]), st.sampled_from(DOCS), st.integers(0, 3)),
        min_size=2, max_size=8, unique_by=lambda pair: pair[:2],
    )
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::weir.errors.LossWarning")
def test_an_id_that_numbers_the_rows_does_not_split_a_query(pairs, tmp_path):
    rows = [
        {"id": n, "query": query, "document_id": doc, "relevance": grade}
        for n, (query, doc, grade) in enumerate(pairs)
    ]
    import_files([_written(tmp_path, rows, "jsonl")], tmp_path / "out")
    queries = (tmp_path / "out" / "queries.jsonl").read_text().splitlines()
    text = {query["_id"]: query["text"] for query in map(json.loads, queries)}
    found = {
        (text[query], doc, grade)
        for query, row in weir.load(tmp_path / "out").qrels.to_dict().items()
        for doc, grade in row.items()
    }
    assert found == set(pairs)
    once = len({query for query, *_ in pairs}) == len(pairs)
    assert len(text) == len({query for query, *_ in pairs}) or once


@FEW
@given(data=st.data(), kind=st.sampled_from(["run", "qrels"]))
def test_a_field_that_only_later_rows_have_is_refused_or_told(data, kind, tmp_path):
    number = "score" if kind == "run" else "relevance"
    later = data.draw(
        st.sampled_from(["note", "k2", "rank", "origin", "qid", "grade", "distance", *SYSTEMS, *COLLECTIONS])
    )
    at = data.draw(st.integers(1, 3))
    rows = [{"query_id": "q1", "doc_id": doc, number: 4 - n} for n, doc in enumerate(DOCS)]
    rows[at][later] = "z" if later != "rank" else 1
    path = _written(tmp_path, rows, "jsonl")
    read, refused = None, ""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            read = (read_run(path) if kind == "run" else read_qrels(path)).to_dict()
        except FormatError as error:
            refused = str(error)
    if read is None:
        assert f"line {at + 1}" in refused
        assert later in refused
    else:
        assert read == {"q1": {doc: 4 - n for n, doc in enumerate(DOCS)}}
        assert any(later in str(one.message) for one in caught if issubclass(one.category, LossWarning))


@pytest.mark.parametrize(
    ("cells", "read"),
    [
        (["1.000", "999"], None),
        (["1.000", "2.500"], [1.0, 2.5]),
        (["0.125", "1.250", "1"], [0.125, 1.25, 1.0]),
        (["1.5", "1.250", "1"], [1.5, 1.25, 1.0]),
        (["1,000", "999"], None),
        (["1,000", "2,5"], [1.0, 2.5]),
        (["-2.000", "7", "8"], None),
    ],
)
def test_marks_that_may_group_thousands_between_semicolons_are_refused(tmp_path, cells, read):
    rows = "".join(f"q1;d{n};{cell}\n" for n, cell in enumerate(cells))
    path = tmp_path / "r.csv"
    path.write_text(f"query_id;doc_id;score\n{rows}")
    if read is None:
        with pytest.raises(FormatError, match="may group thousands"):
            read_run(path)
    else:
        assert read_run(path).to_dict() == {"q1": {f"d{n}": value for n, value in enumerate(read)}}
