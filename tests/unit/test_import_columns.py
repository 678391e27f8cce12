"""A column that the user names holds for the files that have it; others keep their own."""

import pytest

import weir
from tests.unit.imports import lines
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
