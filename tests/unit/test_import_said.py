"""An import says of what it read only what is true, and asks where a cell or column leaves open what it names."""

import ast
import json
import re

import pytest

import weir
from weir.errors import WeirError


def imported(tmp_path, name, text, **options):
    (tmp_path / name).write_text(text, encoding="utf-8")
    report = weir.import_files([str(tmp_path / name)], str(tmp_path / "out"), **options)
    return "\n".join(report.lines())


@pytest.mark.parametrize("name", ["g.json", "g.csv"])
def test_a_map_of_grades_is_not_said_to_be_left_out(tmp_path, name):
    grades = {"egg.pdf": 1, "pan.md": 2}
    text = json.dumps([{"query_id": "q1", "query": "how to boil", "relevance_grades": grades}])
    if name == "g.csv":
        cell = json.dumps(grades).replace('"', '""')
        text = f'query_id,query,relevance_grades\nq1,how to boil,"{cell}"\n'
    assert "not imported" not in imported(tmp_path, name, text)
    assert dict(weir.Qrels.load(tmp_path / "out" / "qrels" / "test.tsv")["q1"]) == grades


@pytest.mark.parametrize("between", [" and ", " & ", "+", ",", "; "])
def test_names_of_files_in_one_cell_are_asked_about(tmp_path, between):
    rows = "".join(f'q{n},how {n},"a.pdf{between}b.md"\n' for n in range(3))
    with pytest.raises(WeirError, match="looks like several documents"):
        imported(tmp_path, "g.csv", f"query_id,query,relevant_doc\n{rows}")


@pytest.mark.parametrize(
    "one", ["Terms and conditions.pdf", "v1.2/intro.md", "C++.md", "AT&T.html", "1.5.txt"]
)
def test_a_name_with_such_marks_is_one_document(tmp_path, one):
    imported(tmp_path, "g.csv", f"query_id,query,relevant_doc\nq1,how,{one}\nq2,why,x.md\n")
    assert dict(weir.Qrels.load(tmp_path / "out" / "qrels" / "test.tsv")["q1"]) == {one: 1}


def test_documents_without_an_identifier_name_the_columns_that_may_hold_it(tmp_path):
    rows = [{"page_content": f"text {n}", "uuid": f"u{n}", "source": "a.pdf"} for n in range(3)]
    said = imported(tmp_path, "corpus.json", json.dumps(rows))
    assert "'uuid' may identify the documents" in said
    assert "'source' may" not in said


@pytest.mark.parametrize("mark", ["|", ";", ",", " and ", "&"])
def test_the_mark_advised_is_the_one_in_the_cell_and_serves(tmp_path, mark):
    (tmp_path / "g.csv").write_text(f'query_id,query,relevant_doc\nq1,how,"d1{mark}d2"\nq2,why,d3\n')
    with pytest.raises(WeirError) as error:
        weir.import_files([str(tmp_path / "g.csv")], str(tmp_path / "out"))
    advised = re.search(r"`choices=({.*?})`", str(error.value))[1]
    weir.import_files([str(tmp_path / "g.csv")], str(tmp_path / "out"), choices=ast.literal_eval(advised))
    assert dict(weir.Qrels.load(tmp_path / "out" / "qrels" / "test.tsv")["q1"]) == {"d1": 1, "d2": 1}


@pytest.mark.parametrize(
    ("right", "others"),
    [
        ("source_document", {"page": [1, 2, 1, 3]}),
        ("handbook_file", {"page": ["1", "2", "1", "3"]}),
        ("references", {"corpus_id": ["one"] * 4}),
        ("source", {"corpus_id": ["one", "one", "two", "two"], "topic": ["x", "y", "z", "w"]}),
    ],
)
@pytest.mark.parametrize("graded", [False, True])
@pytest.mark.filterwarnings("ignore::weir.errors.LossWarning")
def test_the_column_advised_names_documents_not_pages_or_the_corpus(tmp_path, right, others, graded):
    rows = [
        {"question": f"what is {n}", right: f"d{n}", **{name: told[n] for name, told in others.items()}}
        | ({"mine": n % 2} if graded else {})
        for n in range(4)
    ]
    (tmp_path / "g.json").write_text(json.dumps(rows))
    with pytest.raises(WeirError) as error:
        weir.import_files([str(tmp_path / "g.json")], str(tmp_path / "out"))
    advised = re.search(r"`columns='(.*?)'`", str(error.value))[1]
    weir.import_files([str(tmp_path / "g.json")], str(tmp_path / "out"), columns=advised)
    judged = weir.Qrels.load(tmp_path / "out" / "qrels" / "test.tsv").to_dict()
    assert sorted(doc for row in judged.values() for doc in row) == [f"d{n}" for n in range(4)]


def test_of_two_columns_of_documents_the_one_advised_is_not_that_of_pages(tmp_path):
    (tmp_path / "g.csv").write_text("question,page,source\nhow,1,a\nwhy,2,b\n")
    with pytest.raises(WeirError, match=r"source and page could each be the doc.*{'doc': 'source'}"):
        weir.import_files([str(tmp_path / "g.csv")], str(tmp_path / "out"))


PARTS = [("d0#0", "d0"), ("d0#1", "d0"), ("d1#0", "d1"), ("d2#0", "d2")]
APART = [(f"t{n}", f"d{n}") for n in range(3)]


@pytest.mark.parametrize(
    ("store", "said"),
    [
        (PARTS, r"3 of them are values of 'of', of which they are parts.* --collapse '#'"),
        ([(name.replace("#", "x"), of) for name, of in PARTS], r"are parts.*`weir.Run.collapsed`"),
        (APART, r"3 of them are values of 'of': say `columns='doc=of'`"),
        ([(name, "other") for name, _ in PARTS], r"so they do not belong together"),
    ],
)
def test_judged_documents_that_the_store_names_elsewhere_are_said_so(tmp_path, store, said):
    gold = [{"question": f"what is {n}", "relevant_ids": [f"d{n}"]} for n in range(3)]
    (tmp_path / "gold.json").write_text(json.dumps(gold))
    chunks = [{"chunk_id": name, "of": of, "text": f"Text of {name}"} for name, of in store]
    (tmp_path / "chunks.json").write_text(json.dumps(chunks))
    files = [str(tmp_path / "gold.json"), str(tmp_path / "chunks.json")]
    with pytest.raises(WeirError, match=said):
        weir.import_files(files, str(tmp_path / "out"))
    if store == APART:
        weir.import_files(files, str(tmp_path / "out"), columns="doc=of")
        assert sorted(weir.load(tmp_path / "out").corpus.ids.tolist()) == ["d0", "d1", "d2"]


def test_lists_of_documents_that_stay_metadata_are_named_with_the_option_that_ranks_them(tmp_path):
    rows = [
        {
            "inputs": {"question": f"what is {n}"},
            "outputs": {"answer": "r", "documents": [{"id": "a", "page_content": "t"}, {"id": "b"}]},
            "reference_outputs": {"relevant_chunk_ids": ["a"]},
        }
        for n in range(3)
    ]
    said = imported(tmp_path, "e.json", json.dumps(rows))
    assert "kept as metadata of queries: documents; if a system returned" in said
    said = imported(tmp_path, "e.json", json.dumps(rows), columns=re.search(r"`columns='(.*?)'`", said)[1])
    assert "kept as metadata" not in said
    assert [path.name for path in (tmp_path / "out" / "runs").iterdir()] == ["e.trec"]
