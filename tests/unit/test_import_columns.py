"""A column that the user names holds for the files that have it; others keep their own."""

import pandas as pd
import pytest

import weir
from tests.unit.imports import lines, written
from weir.errors import WeirError
from weir.plugins.importing import Choices
from weir.plugins.importing.contents import ROLES
from weir.plugins.importing.importer import InputFile, _read_file
from weir.plugins.importing.merge import document_spill

N = range(4)
STORE = lines(*({"chunk_id": f"d{n}#0", "title": "T", "content": f"Text of {n}."} for n in N))
GOLD = lines(*({"question": f"what is {n}", "gold_doc": f"d{n}", "gold_ids": [f"d{n}#0"]} for n in N))
RETURNED = [{"id": "a", "score": 0.5, "rating": 2}, {"id": "b", "score": 0.25, "rating": 0}]
OTHERS = {
    "store": STORE,
    "queries": lines(*({"query_id": f"q{n}", "text": f"what is {n}"} for n in N)),
    "searched": lines(*({"qid": f"q{n}", "query": f"what is {n}", "retrieved": RETURNED} for n in N)),
    "graded": lines(*({"qid": f"q{n}", "query": f"what is {n}", "relevant_docs": RETURNED} for n in N)),
    "pairs": lines(*({"query_id": f"q{n}", "doc_id": f"d{n}", "grade": 2} for n in N)),
    "run": lines(*({"query_id": f"q{n}", "doc_id": f"d{n}", "rank": 1, "score": 0.5} for n in N)),
}


@pytest.mark.parametrize("role", ["doc", "relevant"])
@pytest.mark.parametrize("first", ["gold", "chunks"])
def test_a_column_of_the_golden_set_leaves_the_documents_their_identifiers(tmp_path, role, first):
    (tmp_path / "gold.jsonl").write_text(GOLD)
    (tmp_path / "chunks.jsonl").write_text(STORE)
    files = sorted(tmp_path.iterdir(), key=lambda path: path.stem != first)
    weir.import_files(files, tmp_path / "out", columns=f"{role}=gold_ids")
    loaded = weir.load(tmp_path / "out")
    assert sorted(loaded.corpus.ids.tolist()) == [f"d{n}#0" for n in N]
    assert sorted(map(dict, loaded.qrels.to_dict().values()), key=str) == [{f"d{n}#0": 1} for n in N]


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("name", OTHERS)
def test_a_column_that_a_file_lacks_changes_nothing_of_it(tmp_path, name, role):
    path = tmp_path / f"{name}.jsonl"
    path.write_text(OTHERS[name])

    def read(**columns):
        with document_spill() as spill:
            found = _read_file(InputFile(path, columns), spill, Choices())
            return found.items, found.counts, list(spill.items())

    assert read(**{role: "column_elsewhere"}) == read()


GRADES = ["relevance", "grades", "relevant", "labels of mine"]
LISTS = ["chunk_ids", "doc_ids", "relevant_ids", "retrieved_ids", "ids_of_mine"]


@pytest.mark.parametrize("spelled", [False, True], ids=["jsonl", "csv"])
@pytest.mark.parametrize("documents", LISTS)
@pytest.mark.parametrize("grades", GRADES)
def test_lists_of_numbers_beside_as_many_identifiers_are_their_grades(tmp_path, grades, documents, spelled):
    rows = [("what is one", ["a", "b"], [2, 0]), ("what is two", ["c"], [1])]
    path = tmp_path / f"gold.{'csv' if spelled else 'jsonl'}"
    table = [{"query": text, documents: ids, grades: told} for text, ids, told in rows]
    path.write_text(pd.DataFrame(table).to_csv(index=False) if spelled else lines(*table))
    columns = {"grade": grades} if grades == GRADES[-1] else {}
    weir.import_files(path, tmp_path / "out", columns=columns)
    _, judged, runs = written(tmp_path / "out")
    assert list(judged.values()) == [{"a": 2, "b": 0}, {"c": 1}]
    assert len(runs) == (documents == "retrieved_ids")


@pytest.mark.parametrize("grades", [[1, 0], [2, 2]])
@pytest.mark.parametrize("beside", [{}, {"tags": ["x"]}, {"tags": ["x", "y", "z"]}])
def test_lists_of_grades_without_documents_are_asked_about(tmp_path, grades, beside):
    path = tmp_path / "gold.jsonl"
    path.write_text(lines(*({"query": f"what is {n}", "relevance": grades, **beside} for n in N)))
    with pytest.raises(WeirError, match=r"'relevance' holds lists of grades.*relevant=NAME,grade=relevance"):
        weir.import_files(path, tmp_path / "out")


def test_grades_beside_two_lists_of_documents_are_asked_about(tmp_path):
    path = tmp_path / "gold.jsonl"
    path.write_text(
        lines({"query": "what is it", "ones": ["a", "b"], "others": ["c", "d"], "relevance": [2, 0]})
    )
    with pytest.raises(WeirError, match="ones and others could each be the doc"):
        weir.import_files(path, tmp_path / "out")
    weir.import_files(path, tmp_path / "out", columns="doc=others")
    assert list(written(tmp_path / "out")[1].values()) == [{"c": 2, "d": 0}]
