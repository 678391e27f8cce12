"""weir data import at its edges: shifted rows, lists that text spells, roles by values, texts under other names, losses."""

from __future__ import annotations

import datetime
import json
import tarfile
import warnings

import pytest

import weir
from tests.unit.imports import Q, R, imported, lines, written
from weir.cli.main import main
from weir.errors import BadValue, FormatError, LossWarning, WeirError
from weir.files.runs import read_run
from weir.plugins.importing import Choices, import_files
from weir.plugins.importing.importer import split_of
from weir.plugins.importing.merge import made_id

REFUSED = {
    "an unquoted comma shifts a query": ("question,relevant_docs\nhow, then, to boil,egg.pdf\n" + "wool socks,b\n" * 20, {R: {"b": 1}}, "line 2: more cells than columns"),
    "an unquoted comma cuts a text": ("doc_id,title,text\na,Eggs,Boil water, then add\n", None, "line 2: more cells than columns"),
    "several in one cell": ("question,relevant_docs\nred shoes,\"d3, d4\"\nwool socks,d7 d8\nx y,d11 / d12\nz y,\"d9\nd10\"\nz z,d13 and d14\n", None, "line 2: 'd3, d4' looks like several documents"),
    "a list cut off": ("question,relevant_ids\nred shoes,\"[\"\"a\"\", \"\"b\"\n", None, "begins a list that does not end"),
    "members left out": ("question,relevant_ids\nred shoes,['d0' 'd1' ... 'd9']\n", None, "some members are left out"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_rows_that_cannot_be_read_write_nothing_and_are_named_by_their_line(tmp_path, case):
    table, judged, said = REFUSED[case]
    (tmp_path / "g.csv").write_text(table)
    if judged is None:
        with pytest.raises(WeirError, match=said):
            import_files(tmp_path / "g.csv", tmp_path / "out")
        assert not (tmp_path / "out").exists()
    else:
        report = import_files(tmp_path / "g.csv", tmp_path / "out")
        assert said in report.lines()[0]
        assert written(tmp_path / "out")[:2] == ({R: "wool socks"}, judged)


READ = {
    "numpy": "['a' 'b']", "Python": "['a', 'b']", "JSON": '["a", "b"]', "a set": "{'a', 'b'}", "bare": "[a, b]",
    "an array": "array(['a', 'b'], dtype=object)", "over lines": "['a'\n 'b']",
}  # fmt: skip


@pytest.mark.parametrize("spelling", READ)
def test_lists_in_cells_are_read_however_they_are_spelled(tmp_path, spelling):
    cell = READ[spelling].replace('"', '""')
    imported(tmp_path, "g.csv", f'question,relevant_ids\nred shoes,"{cell}"\n')
    assert written(tmp_path / "out")[1] == {Q: {"a": 1, "b": 1}}


def test_identifiers_keep_the_spelling_of_numbers(tmp_path):
    imported(tmp_path, "g.jsonl", '{"query": "red shoes", "relevant": [1.10, 1e5, 7, 1.0, "007"]}\n')
    assert set(written(tmp_path / "out")[1][Q]) == {"1.10", "1e5", "7", "1.0", "007"}


TEXTS = {
    "body": {"doc_id": "a", "body": "a dam"},
    "page_content, as LangChain dumps": {"id": "a", "page_content": "a dam", "metadata": {"source": "x.pdf"}, "type": "Document"},
    "another case": {"_id": "a", "Text": "a dam"},
    "paragraphs": {"_id": "a", "text": ["a", "dam"]},
    "LangChain's constructor": {"lc": 1, "type": "constructor", "id": ["Document"], "kwargs": {"id": "a", "page_content": "a dam"}},
    "LlamaIndex's nodes": {"id_": "a", "text": "a dam", "embedding": [0.5], "class_name": "TextNode"},
}  # fmt: skip


@pytest.mark.parametrize("case", TEXTS)
@pytest.mark.filterwarnings("ignore::weir.errors.LossWarning")
def test_texts_are_read_under_every_usual_name(tmp_path, case):
    imported(
        tmp_path,
        "rows.jsonl",
        json.dumps(TEXTS[case]) + "\n",
        as_kind="" if "kwargs" in TEXTS[case] else "corpus",
    )
    corpus = weir.load(tmp_path / "out").corpus
    assert (corpus.ids.tolist(), corpus.text[0].split()) == (["a"], ["a", "dam"])


def test_a_document_store_of_llama_index_is_read(tmp_path):
    node = {"__data__": {"id_": "a", "text": "a dam", "metadata": {"file": "x.md"}}, "__type__": "1"}
    imported(
        tmp_path,
        "docstore.json",
        json.dumps(
            {"docstore/data": {"a": node, "b": {**node, "__data__": json.dumps({"id_": "b", "text": "mud"})}}}
        ),
    )
    assert weir.load(tmp_path / "out").corpus.text.tolist() == ["a dam", "mud"]


@pytest.mark.parametrize(
    "row",
    [{"_id": "a", "caption": "a dam"}, {"_id": "a", "text": ""}, {"_id": "a", "text": {"en": "a dam"}}],
)
def test_a_corpus_without_texts_is_refused(tmp_path, row):
    (tmp_path / "corpus.jsonl").write_text(json.dumps(row) + "\n")
    with pytest.raises(WeirError, match=r"text"):
        import_files(tmp_path / "corpus.jsonl", tmp_path / "out", as_kind="corpus")
    assert not (tmp_path / "out").exists()


def test_a_folder_knows_the_same_names_of_texts(tmp_path):
    (tmp_path / "corpus.jsonl").write_text(lines({"_id": "a", "body": "a dam", "year": 1999}))
    store = weir.load(tmp_path).store
    assert (store.corpus.text.tolist(), json.loads(store.metadata[0])) == (["a dam"], {"year": 1999})
    for row, said in (
        ({"_id": "a", "headline": "x"}, "no document with a 'text'"),
        ({"_id": "a", "body": "x", "content": "y"}, "body and content, which could each be the text"),
    ):
        (tmp_path / "corpus.jsonl").write_text(lines(row))
        with pytest.raises(FormatError, match=said):
            weir.load(tmp_path).corpus  # noqa: B018  the first use reads it


def documents_of(folder):
    return [json.loads(line)["_id"] for line in (folder / "corpus.jsonl").read_text().splitlines()]


def test_chunks_are_the_documents_where_their_identifiers_alone_tell_rows_apart(tmp_path):
    rows = [{"chunk_id": f"c{n}", "doc_id": f"d{n // 3}", "text": f"text {n}"} for n in range(9)]
    for fields in (rows, [dict(reversed(row.items())) for row in rows]):
        report = imported(tmp_path, "chunks.jsonl", lines(*fields))
        assert documents_of(tmp_path / "out") == [f"c{n}" for n in range(9)]
        assert (
            "chunk_id identifies the documents; kept as metadata, since values repeat: doc_id"
            in report.lines()[0]
        )
    with pytest.raises(BadValue, match="chunk_id and doc_id could each be the doc"):
        imported(tmp_path, "chunks.jsonl", lines(*rows[::3]))
    imported(tmp_path, "chunks.jsonl", lines(*rows[::3]), columns={"doc": "chunk_id"})
    assert documents_of(tmp_path / "out") == ["c0", "c3", "c6"]


def test_a_query_beside_the_text_of_its_document(tmp_path):
    imported(
        tmp_path,
        "pairs.csv",
        "query,passage,label\nred shoes,a weir is a low dam,1\nred shoes,boil it for six minutes,0\n",
    )
    documents = {
        made_id(text, "document"): grade
        for text, grade in (("a weir is a low dam", 1), ("boil it for six minutes", 0))
    }
    assert written(tmp_path / "out")[1] == {Q: documents}
    assert set(weir.load(tmp_path / "out").corpus.ids.tolist()) == set(documents)


@pytest.mark.parametrize("flip", [False, True])
def test_of_a_text_and_an_identifier_the_identifier_names_the_document(tmp_path, flip):
    member = {"document": "a weir is a low dam", "id": "c1"}
    imported(
        tmp_path,
        "g.json",
        json.dumps(
            [{"query": "red shoes", "relevant": [dict(reversed(member.items())) if flip else member]}]
        ),
    )
    assert written(tmp_path / "out")[1] == {Q: {"c1": 1}}
    assert weir.load(tmp_path / "out").corpus.text.tolist() == ["a weir is a low dam"]


def test_flags_beside_what_was_returned_are_judgments(tmp_path):
    imported(
        tmp_path,
        "r.json",
        json.dumps(
            [
                {
                    "query": "red shoes",
                    "results": [{"id": "b", "relevant": False}, {"id": "a", "relevant": True}],
                }
            ]
        ),
    )
    assert written(tmp_path / "out")[1:] == ({Q: {"a": 1, "b": 0}}, {"r": {Q: {"b": 2.0, "a": 1.0}}})


def test_scores_of_retrieval_are_not_taken_for_grades(tmp_path):
    ranked = {"query": "red shoes", "ctxs": [{"id": "a", "score": 82.1}]}
    imported(tmp_path, "dpr.json", json.dumps([ranked]))
    assert written(tmp_path / "out")[1] == {}
    with pytest.raises(WeirError, match=r"the score 82.1 beside a relevant document is no grade"):
        imported(
            tmp_path,
            "dpr.json",
            json.dumps([ranked]),
            columns={"relevant": "ctxs"},
            choices=Choices(strict=True),
        )


def test_an_import_that_loses_more_than_a_tenth_writes_nothing_and_a_smaller_loss_is_said_each_time(
    tmp_path, capsys
):
    table = "query,doc_id,grade\n" + "".join(f"red shoes,d{n},{'x' if n < 2 else 1}\n" for n in range(15))
    path, out = tmp_path / "g.csv", tmp_path / "out"
    path.write_text(table)
    assert main(["data", "import", str(path), "-o", str(out)]) == 2
    assert (
        "2 of 15 rows cannot be imported, the first: line 2: the grade 'x' is no finite number"
        in capsys.readouterr().err
    )
    assert not out.exists()
    assert main(["data", "import", str(path), "-o", str(out), "--allow-loss"]) == 0
    path.write_text(table + "".join(f"wool socks,d{n},1\n" for n in range(15)))
    said = r"g.csv: rows left out: 2, the first: line 2: the grade 'x'"
    for _ in range(2):
        for place in (path, out):
            with pytest.warns(LossWarning, match=said):
                weir.load(place)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        assert main(["data", "stats", str(out)]) == 0
    assert capsys.readouterr().err.count("warning: ") == 1


def test_an_identifier_beside_a_query_and_the_text_of_a_document_is_asked_about(tmp_path):
    table = "query,document,id,label\nred shoes,a weir is a low dam,c1,1\nred shoes,boil it for six minutes,c2,0\n"
    said = "id could be the identifier of the query or of the document; choose one, as in `columns='query_id=id'` or"
    with pytest.raises(BadValue, match=said):
        imported(tmp_path, "pairs.csv", table)
    imported(tmp_path, "pairs.csv", table, columns={"doc": "id", "text": "document"})
    assert written(tmp_path / "out")[1] == {Q: {"c1": 1, "c2": 0}}
    assert weir.load(tmp_path / "out").corpus.text[0] == "a weir is a low dam"


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("corpus.jsonl", {"_id": {"$oid": "5f"}, "text": "a b"}),
        ("corpus.jsonl", {"_id": True, "text": "a b"}),
        ("queries.jsonl", {"_id": ["1"], "text": "a b"}),
        ("g.jsonl", {"query_id": ["1"], "doc_id": "a", "relevance": 1}),
        ("g.jsonl", {"query_id": "1", "doc_id": False, "relevance": 1}),
        ("g.jsonl", {"query": "red", "relevant_ids": [True]}),
        ("g.jsonl", {"query_id": '["1", "2"]', "doc_id": "a", "relevance": 1}),
        ("g.jsonl", {"query_id": '{"$oid": "5f"}', "doc_id": "a", "relevance": 1}),
    ],
)
def test_what_is_no_identifier_is_refused(tmp_path, name, row):
    (tmp_path / name).write_text(json.dumps(row) + "\n")
    with pytest.raises(WeirError, match=r"(line 1|the object): .* as '.*'; expected an identifier"):
        weir.import_files(tmp_path / name, tmp_path / "out")


@pytest.mark.parametrize("names", [("query", "question"), ("question", "query")])
def test_two_texts_of_a_query_are_asked_about_in_any_order(tmp_path, names):
    (tmp_path / "queries.jsonl").write_text(
        json.dumps({"_id": "1", **{name: f"a {name}" for name in names}}) + "\n"
    )
    with pytest.raises(BadValue, match="query and question could each be the query"):
        weir.import_files(tmp_path / "queries.jsonl", tmp_path / "out")


def test_metadata_of_one_name_at_two_places_are_both_kept(tmp_path):
    row = {"_id": "1", "text": "a b", "source": "x", "metadata": {"source": "y", "lang": "en"}}
    (tmp_path / "corpus.jsonl").write_text(json.dumps(row) + "\n")
    weir.import_files(tmp_path / "corpus.jsonl", tmp_path / "out")
    (line,) = (tmp_path / "out" / "corpus.jsonl").read_text().splitlines()
    assert json.loads(line)["metadata"] == {"source": "x", "metadata.source": "y", "lang": "en"}


def test_times_and_bytes_of_parquet_are_kept_or_told(tmp_path):
    pa = pytest.importorskip("pyarrow", reason="Parquet files take pyarrow")
    from pyarrow import parquet

    table = {
        "query": ["red"],
        "relevant_ids": [["a"]],
        "when": [datetime.datetime(2024, 1, 1)],
        "icon": [b"\xff\xd8"],
    }
    parquet.write_table(pa.table(table), tmp_path / "g.parquet")
    report = weir.import_files(tmp_path / "g.parquet", tmp_path / "out")
    (line,) = (tmp_path / "out" / "queries.jsonl").read_text().splitlines()
    assert json.loads(line)["metadata"] == {"when": "2024-01-01 00:00:00"}
    assert "not imported: icon (1)" in " ".join(report.lines())
    parquet.write_table(
        pa.table({"query_id": ["1"], "doc_id": [b"\xff"], "relevance": [1]}), tmp_path / "b.parquet"
    )
    with pytest.raises(WeirError, match="bytes, no UTF-8, as 'doc_id'"):
        weir.import_files(tmp_path / "b.parquet", tmp_path / "out2")


def test_the_header_of_a_tar_is_known(tmp_path):
    (tmp_path / "r.trec").write_text("q Q0 d 1 2.5 t\n")
    with tarfile.open(tmp_path / "r.tar.gz", "w:gz") as file:
        file.add(tmp_path / "r.trec", "r.trec")
    for read in (read_run, lambda path: weir.import_files(path, tmp_path / "out")):
        with pytest.raises(FormatError, match="a tar archive; expected one file out of it"):
            read(tmp_path / "r.tar.gz")


@pytest.mark.parametrize(
    ("name", "split"),
    [
        ("qrels.dev", "dev"), ("qrels.dev.small", "dev"), ("train-qrels", "train"), ("dev", "dev"), ("dev.queries", "test"),
        ("train-00000-of-00001", "train"), ("golden-dev", "test"), ("qrels", "test"), ("qrels.train-dev", "test"),
    ],
)  # fmt: skip
def test_the_split_of_judgments_is_read_from_the_name_of_their_file(name, split):
    assert split_of(name) == split


NAMELESS_ROWS = {
    "judgments": {"query_id": "q1", "doc_id": "d1", "relevance": 1},
    "golden": {"query": "red boots", "relevant_ids": ["d1", "d2"]},
    "members": {"query": "red boots", "relevant": [{"id": "d1"}, {"id": "d2"}]},
    "retrieved": {"query": "red boots", "results": [{"id": "d1", "score": 2.0}, {"id": "d2", "score": 1.0}]},
    "clicks": {"query": "red boots", "doc_id": "d1", "position": 1, "clicks": 1, "impressions": 4},
}


@pytest.mark.parametrize("value", [7, "d7", ["d7", "d8"], [3.0, 2.0]], ids=str)
@pytest.mark.parametrize("row", NAMELESS_ROWS)
def test_a_field_without_a_name_plays_no_role(tmp_path, row, value):
    """It was read wherever a role had no field: as excluded documents, candidates, ranks, grades."""
    rows, found = NAMELESS_ROWS[row], []
    inner = {
        n: [one | {"": value} for one in v]
        for n, v in rows.items()
        if isinstance(v, list) and isinstance(v[0], dict)
    }
    for name, given in (("plain", rows), ("more", rows | {"": value}), ("inner", rows | inner)):
        path = tmp_path / "rows.jsonl"
        path.write_text(json.dumps(given) + "\n")
        report = weir.import_files(
            path, tmp_path / name, {"retrieved": "results"} if row == "retrieved" else None
        )
        files = sorted(
            one for one in (tmp_path / name).rglob("*") if one.is_file() and one.name != "import.json"
        )
        found.append([(one.name, one.read_text()) for one in files])
        assert ("(no name)" in "\n".join(report.lines())) == (given != rows)
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        ({"user_input": "red boots", "reference": "a"}, "ragas"),
        ({"input": "red boots", "expected_output": "a"}, "deepeval-goldens"),
        ({"question": "red boots", "contexts": ["a b"], "answer": "a"}, "ragas"),
    ],
    ids=str,
)
def test_judged_documents_beside_the_columns_of_another_tool_are_asked_about(tmp_path, row, kind):
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(row | {"doc_id": "d1", "relevance": 1}) + "\n")
    with pytest.raises(BadValue, match=r"'doc_id' names judged documents.*`columns='doc=doc_id'`"):
        weir.import_files(path, tmp_path / "out")
    path.write_text(json.dumps(row | {"gold_ids": ["d1", "d2"]}) + "\n")
    with pytest.raises(BadValue, match=r"'gold_ids' names judged documents.*`columns='relevant=gold_ids'`"):
        weir.import_files(path, tmp_path / "out")
    columns = {"relevant": "gold_ids", "query": next(iter(row))}
    assert weir.import_files(path, tmp_path / "out", columns).whole["judgments"] == {"test": 2}
    assert weir.import_files(path, tmp_path / "out", as_kind=kind).whole["queries"] == 1
    assert '"gold_ids": ["d1", "d2"]' in (tmp_path / "out" / "queries.jsonl").read_text()
