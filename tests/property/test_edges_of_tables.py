"""Eval and import hold one rule for identifiers, whatever is around them; folders name columns as tables do."""

from __future__ import annotations

import csv
import io
import json
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.imports import imported, lines, written

import weir
from weir.core.qrels import Qrels
from weir.errors import FormatError, LossWarning, WeirError
from weir.files.label_files import read_raters
from weir.files.runs import read_run
from weir.plugins.importing import import_files

EACH = settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
# Spellings that a careless reader would trim, count or fold.
NAMES = st.sampled_from(
    [
        "a",
        " a",
        "a ",
        "\ta",
        "\xa0a",
        "007",
        "7",
        "1.10",
        "1.1",
        "1e5",
        "1_000",
        "é",
        "e\u0301",
        "a,b",
        'a"',
        "-0",
    ]
)
ROWS = st.lists(
    st.tuples(NAMES, NAMES, st.integers(0, 3)), min_size=1, max_size=8, unique_by=lambda row: row[:2]
)


def write(path, text):
    path.write_text(text)
    return path


def refused(tmp_path, name, text, said, **options):
    """Nothing is written of a file that loses this."""
    with pytest.raises(WeirError, match=said):
        import_files(write(tmp_path / name, text), tmp_path / "strict", **options)
    assert not (tmp_path / "strict").exists()


@EACH
@given(
    rows=ROWS, head=st.sampled_from([("query_id", "doc_id", "grade"), ("Query ID", "Doc-Id", "Relevance")])
)
@pytest.mark.parametrize("name", ["j.csv", "j.tsv", "j.jsonl", "qrels.json"])
def test_identifiers_are_kept_byte_for_byte_by_eval_and_import(name, rows, head, tmp_path):
    said: dict[str, dict[str, int]] = {}
    for query, doc, grade in rows:
        said.setdefault(query, {})[doc] = grade
    path, table = tmp_path / name, io.StringIO()
    mark = "\t" if name == "j.tsv" else ","
    csv.writer(table, delimiter=mark, lineterminator="\n").writerows([head, *rows])
    objects = lines(*(dict(zip(head, row, strict=True)) for row in rows))
    path.write_text({"j.jsonl": objects, "qrels.json": json.dumps(said)}.get(name, table.getvalue()))
    report = imported(tmp_path, name, path.read_text())
    assert "not imported" not in report.lines()[0]
    assert Qrels.load(path).to_dict() == said == written(tmp_path / "out")[1]


OPEN = {
    "words without a number": ["relevant", "not relevant", "partially"],
    "levels": ["high", "low", "medium"],
    "a decimal comma": ["1,0", "0,0", "2,0"],
}


@pytest.mark.parametrize("words", OPEN)
def test_grades_in_words_beside_documents_are_never_documents(words, tmp_path):
    table = "".join(f'q{n},d{n},"{word}"\n' for n, word in enumerate(OPEN[words]))
    refused(tmp_path, "g.csv", f"query_id,doc_id,relevant\n{table}", "doc=doc_id,grade=relevant")


JUDGED = "query_id,doc_id,relevant\n" + "".join(f"q{n},d{n},{n % 2}\n" for n in range(8))


def test_a_grade_that_is_no_number_is_refused_with_its_line(tmp_path):
    refused(tmp_path, "g.csv", f"{JUDGED}q8,d8,-\n", "line 10: the grade '-' is no finite number")


@pytest.mark.parametrize("blank", ["None", "NaN", "n/a", ""])
def test_a_word_for_nothing_as_a_grade_is_unjudged_and_counted(blank, tmp_path):
    report = imported(tmp_path, "g.csv", f"{JUDGED}q8,d8,{blank}\n")
    assert "q8" not in written(tmp_path / "out")[1]
    assert "rows without a grade, which are unjudged: 1" in "\n".join(report.lines())


@pytest.mark.parametrize("field", ["label", "relevance", "is_relevant", "rating"])
@pytest.mark.parametrize("value", ["partially", None, ""])
def test_a_document_of_a_list_with_an_unknown_grade_does_not_get_grade_1(field, value, tmp_path):
    rows = {"query": "a b", "relevant": [{"id": "d1", field: value}, {"id": "d2", field: 1}]}
    refused(tmp_path, "g.jsonl", lines(rows), "is no finite number")


def test_a_row_with_a_blank_grade_does_not_get_grade_1(tmp_path):
    rows = lines(
        {"query": "a b", "relevant": ["d1"], "grade": None}, {"query": "b c", "relevant": ["d1"], "grade": 2}
    )
    refused(tmp_path, "g.jsonl", rows, "line 1: the grade '' is no finite number")


@pytest.mark.parametrize(
    ("cell", "ids"),
    [
        ("[np.str_('a'), np.str_('b')]", ["a", "b"]),
        ("[np.int64(3), np.int64(17)]", ["3", "17"]),
        ("tensor([3, 17])", ["3", "17"]),
        ("deque(['a', 'b'])", ["a", "b"]),
        ("dict_keys(['a'])", ["a"]),
        ("[1_000, 1.10]", ["1_000", "1.10"]),
        ("['a ', ' b']", ["a ", " b"]),
        ("set()", []),
        ("[b'a']", None),
        ("d1+d2", None),
        ("Counter({'a': 1})", ["a"]),
        ("OrderedDict([('a', 1)])", None),
        ("defaultdict(<class 'int'>, {'a': 1})", None),
        ("doc-a doc-b", None),
        ("a.pdf b.pdf", None),
        ("https://a.b/c, https://a.b/d", None),
        ("d1<br>d2", None),
        ("user-guide/user-manual.md", ["user-guide/user-manual.md"]),
        ("The Art of War", ["The Art of War"]),
        ("d1；d2", None),
        ("d1 • d2", None),
    ],
)
def test_a_cell_that_spells_a_list_is_the_list_or_refused(cell, ids, tmp_path):
    text = f'query_id,question,relevant_ids\nq,red shoes,"{cell}"\np,blue shoes,z\n'
    if ids is None:
        refused(tmp_path, "g.csv", text, "line 2")
    else:
        imported(tmp_path, "g.csv", text)
        assert written(tmp_path / "out")[1] == {"p": {"z": 1}} | ({"q": dict.fromkeys(ids, 1)} if ids else {})


@pytest.mark.parametrize("columns", [None, {"score": "distance"}])
def test_distances_are_ranked_with_the_least_first_and_it_is_said(columns, tmp_path):
    text = "query_id,doc_id,distance\nq,far,0.9\nq,near,0.1\n"
    report = import_files(write(tmp_path / "r.csv", text), tmp_path / "out", columns=columns)
    assert "of which less is better" in report.lines()[0]
    assert read_run(tmp_path / "out" / "runs" / "r.trec").to_dict() == {"q": {"near": -0.1, "far": -0.9}}
    with pytest.raises(FormatError, match="of 'distance' less is better: weir data import"):
        read_run(tmp_path / "r.csv")


@pytest.mark.parametrize(
    ("head", "read", "remedy"),
    [
        ("query_id,doc_id,rank", read_run, "--as run-ranks"),
        ("query_id,doc_id", read_run, "--columns retrieved=doc_id"),
    ],
)
def test_a_table_without_numbers_is_refused_with_the_command_that_reads_it(head, read, remedy, tmp_path):
    path = write(tmp_path / "t.csv", f"{head}\nq,a,1\n" if head.endswith("rank") else f"{head}\nq,a\n")
    with pytest.raises(FormatError, match=f"weir data import FILE -o DIR {remedy}"):
        read(path)
    role, _, column = remedy.removeprefix("--columns ").partition("=")
    choice = {"columns": {role: column}} if column else {"as_kind": "run-ranks"}
    import_files(path, tmp_path / "out", **choice)


@pytest.mark.parametrize(("name", "mark"), [("t.csv", "\t"), ("t.tsv", ","), ("t.tsv", ";"), ("t.csv", ";")])
def test_the_separator_is_the_one_in_the_header_whatever_the_file_is_called(name, mark, tmp_path):
    text = "query_id,doc_id,{}\nq,a,2\nq,b,1\n".replace(",", mark)
    assert Qrels.load(write(tmp_path / name, text.format("grade"))).to_dict() == {"q": {"a": 2, "b": 1}}
    assert read_run(write(tmp_path / name, text.format("score"))).to_dict() == {"q": {"a": 2.0, "b": 1.0}}


@pytest.mark.parametrize("name", ["_id", "id", "ID", "Doc ID", "doc_id", "passageId"])
def test_folders_know_the_identifiers_and_texts_of_tables(name, tmp_path):
    rows = {name: "a", "Body": "a dam", "title": "Weirs", "lang": "en"}
    for file, text in (
        ("corpus.jsonl", json.dumps(rows)),
        ("corpus.tsv", "\t".join(rows) + "\n" + "\t".join(rows.values())),
    ):
        folder = tmp_path / file.removeprefix("corpus.")
        folder.mkdir()
        (folder / "queries.jsonl").write_text('{"_id": "q", "text": "dam"}\n')
        (folder / "qrels").mkdir()
        (folder / "qrels" / "test.tsv").write_text("Query ID\tDoc ID\tRating\nq\ta\t1\n")
        (folder / file).write_text(text + "\n")
        store = weir.load(folder).store
        assert (store.corpus.ids.tolist(), store.corpus.text.tolist()) == (["a"], ["a dam"])
        assert (store.corpus.title.tolist(), json.loads(store.metadata[0])) == (["Weirs"], {"lang": "en"})


def test_two_identifiers_in_a_folder_and_a_text_that_stands_elsewhere_are_refused(tmp_path):
    (tmp_path / "corpus.jsonl").write_text(lines({"chunk_id": "c", "doc_id": "d", "text": "x"}))
    with pytest.raises(FormatError, match="chunk_id and doc_id, which could each be the identifier"):
        weir.load(tmp_path).corpus  # noqa: B018  the first use reads it
    rows = lines({"id": "a", "text": None, "body": "a dam"}, {"id": "b", "text": "b", "body": "c"})
    refused(tmp_path, "c.jsonl", rows, "line 1: no 'text', but 'body'", as_kind="corpus")


GRADED = {
    "a document as an object beside the grade": {"doc": {"id": "a", "text": "x"}, "relevance": 0},
    "a list of documents as objects": {"relevant": [{"id": "a"}], "grade": 0},
    "grades by document beside objects": {"relevant": [{"id": "a"}], "grades": {"a": 0}},
    "grades in a list of the same length": {"doc_ids": ["a"], "grades": [0]},
    "a list of another length": {"doc_ids": ["a"], "grades": [0, 1]},
}


@pytest.mark.parametrize("case", GRADED)
def test_a_grade_beside_documents_is_theirs(case, tmp_path):
    row = lines({"query_id": "q", "query": "a b", **GRADED[case]})
    if case == "a list of another length":
        refused(tmp_path, "g.jsonl", row, r"the grade '\[0, 1\]' is no finite number")
    else:
        imported(tmp_path, "g.jsonl", row)
        assert written(tmp_path / "out")[1] == {"q": {"a": 0}}


def test_scores_in_a_list_are_held_against_the_order_of_the_documents(tmp_path):
    row = {"query": "red shoes", "retrieved_ids": ["a", "b"], "scores": [0.2, 0.9]}
    report = imported(tmp_path, "g.jsonl", lines(row))
    assert "scores rise from rank to rank" in report.lines()[2]


@pytest.mark.parametrize("column", ["label", "rank", "score"])
def test_what_stands_beside_queries_alone_is_kept(column, tmp_path):
    imported(tmp_path, "g.jsonl", lines({"query": "red shoes", column: 3}))
    (row,) = (tmp_path / "out" / "queries.jsonl").read_text().splitlines()
    assert json.loads(row)["metadata"] == {column: 3}


def test_members_of_a_list_that_name_nothing_are_told(tmp_path):
    report = imported(tmp_path, "g.jsonl", lines({"query": "red shoes", "relevant": ["a", "NA", None]}))
    assert "not imported: 'NA' in relevant (1), '' in relevant (1)" in report.lines()[0]


PARQUET = {
    "maps": pa.array([[("a", 1), ("b", 0)]], pa.map_(pa.string(), pa.int64())),
    "structs with absent fields": pa.array([{"a": 1, "b": 0}, {"c": 1}])[:1],
    "objects": pa.array([[{"id": "a", "grade": 1}, {"id": "b", "grade": 0}]]),
    "bytes": pa.array([{"a": 1, "b": 0}]),
}


@pytest.mark.parametrize("case", PARQUET)
def test_nested_and_binary_values_of_parquet_are_those_of_json(case, tmp_path):
    query = pa.array([b"q" if case == "bytes" else "q"])
    pq.write_table(pa.table({"query_id": query, "relevant": PARQUET[case]}), tmp_path / "g.parquet")
    import_files(tmp_path / "g.parquet", tmp_path / "out")
    assert written(tmp_path / "out")[1] == {"q": {"a": 1, "b": 0}}


def test_decimals_of_parquet_are_numbers(tmp_path):
    table = {"query_id": ["q", "q"], "doc_id": ["a", "b"], "score": [Decimal("0.10"), Decimal("0.30")]}
    pq.write_table(pa.table(table), tmp_path / "r.parquet")
    import_files(tmp_path / "r.parquet", tmp_path / "out")
    assert written(tmp_path / "out")[2] == {"r": {"q": {"b": 0.3, "a": 0.1}}}


@pytest.mark.parametrize("number", ["1_0", "٣", "１", "0x1", "inf"])
def test_eval_and_import_know_the_same_numbers(number, tmp_path):
    text = f"query_id,doc_id,grade\nq,a,{number}\n"
    refused(tmp_path, "g.csv", text, "is no finite number")
    with pytest.raises(FormatError, match="expected a finite number"):
        Qrels.load(tmp_path / "g.csv")


@pytest.mark.parametrize("name", ["a\u00a0b", "東京\u3000駅", "a\x1cb"])
@pytest.mark.parametrize("mark", [" ", "\t"])
def test_other_white_space_is_part_of_identifiers_in_lines(name, mark, tmp_path):
    text = mark.join(["q", "0", name, "1"]) + "\n"
    imported(tmp_path, "g.txt", text)
    assert written(tmp_path / "out")[1] == Qrels.load(tmp_path / "g.txt").to_dict() == {"q": {name: 1}}


@pytest.mark.parametrize(("name", "kind"), [("r.csv", "run-scores"), ("r.txt", "run")])
def test_the_way_that_a_refusal_names_reads_the_file(name, kind, tmp_path):
    head = "query_id,doc_id,score\n" if name == "r.txt" else ""
    imported(tmp_path, name, f'{head}q,"a,b",0.5\nq,c,0.7\n', as_kind=kind)
    assert written(tmp_path / "out")[2] == {"r": {"q": {"c": 0.7, "a,b": 0.5}}}


def test_counts_of_clicks_are_whole_and_clicks_are_yes_or_no(tmp_path):
    refused(
        tmp_path, "c.csv", "query;url;clicks;impressions\nred;a;1.200;3.000\n", "no. a whole number|whole"
    )
    table = "query,url,clicked\n" + "".join(f"red,a,{word}\n" for word in ["yes", "no"] * 10)
    imported(tmp_path, "c.csv", table)
    assert "10 clicks of 20 impressions" in (tmp_path / "out" / "import.json").read_text()


def test_raters_whose_labels_cannot_be_read_are_named(tmp_path):
    table = 'query_id,doc_id,Ann,Bob,Cat\nq,a,"1,0,0",1,1\nq,b,"0,0,1",0,1\n'
    with pytest.warns(LossWarning, match="no labels are read from Ann"):
        assert read_raters(write(tmp_path / "t.csv", table)).keys() == {"Bob", "Cat"}


@pytest.mark.parametrize("comment", ["d1", "docno=d1", "docid = d1 inc = 0.01 prob = 0.2", "docid:d1"])
def test_the_document_of_a_line_of_letor_is_the_one_that_its_comment_names(comment, tmp_path):
    report = imported(tmp_path, "l.txt", f"2 qid:q 1:0.5 # {comment}\n")
    assert written(tmp_path / "out")[1] == {"q": {"d1": 2}}
    assert ("what follows the document" in report.lines()[0]) == ("inc" in comment)


def test_marks_within_the_fields_of_topics_are_kept(tmp_path):
    imported(tmp_path, "t.txt", "<top>\n<num> Number: 1\n<title> a <b>dam</b>\n\n<narr> x < y\n</top>\n")
    (row,) = (tmp_path / "out" / "queries.jsonl").read_text().splitlines()
    assert json.loads(row) == {"_id": "1", "text": "a <b>dam</b>", "metadata": {"narr": "x < y"}}


TOLD = {
    "responses": (
        {"took": 1, "hits": {"hits": [{"_id": "a", "_score": 1.0}]}},
        "not imported: took (1)",
    ),
    "lists": ({"q": [["a", 0.5]]}, ""),
    "spans": (
        {
            "attributes": {
                "openinference.span.kind": "RETRIEVER",
                "input.value": "x y",
                "retrieval.documents.0.document.id": "a",
            }
        },
        "",
    ),
}


@pytest.mark.parametrize("case", TOLD)
def test_what_was_imported_is_not_told_as_left_out(case, tmp_path):
    value, said = TOLD[case]
    line = imported(tmp_path, "r.json", json.dumps(value)).lines()[0]
    assert line.partition("not imported")[2] == said.partition("not imported")[2]


def test_a_column_that_begins_late_in_a_large_file_is_known(tmp_path):
    rows = [
        *({"_id": f"d{n}", "text": "x" * 1000} for n in range(17_000)),
        {"_id": "e", "text": "y", "title": "T"},
    ]
    imported(tmp_path, "corpus.jsonl", lines(*rows))
    assert '"_id": "e", "title": "T"' in (tmp_path / "out" / "corpus.jsonl").read_text().splitlines()[-1]


POOLS = {
    "one document in a cell": ("d", ["d"]),
    "a list": ("[d, e]", ["d", "e"]),
    "objects": ([{"id": "d", "text": "a dam"}, {"id": "e"}], ["d", "e"]),
    "nothing": ("", None),
    "several without brackets": ("d; e", "no list"),
    "numbers by document": ({"d": 1}, "no list"),
    "the same in a cell": ('{"d": 1}', "no list"),
    "a text alone": ([{"text": "a dam"}], "no list"),
}


@pytest.mark.parametrize("role", ["excluded", "candidates"])
@pytest.mark.parametrize("case", POOLS)
def test_documents_that_a_query_may_be_answered_with_are_read_or_refused(case, role, tmp_path):
    cell, read = POOLS[case]
    text = lines({"query_id": "q", "query": "a b", "relevant": ["d"], role: cell})
    if read == "no list":
        refused(tmp_path, "g.jsonl", text, f"in '{role}' is no list of documents")
        return
    imported(tmp_path, "g.jsonl", text)
    (row,) = (tmp_path / "out" / "queries.jsonl").read_text().splitlines()
    assert json.loads(row).get("metadata") == ({role: read} if read else None)
    assert (tmp_path / "out" / "corpus.jsonl").exists() == (case == "objects")


RETURNED = {
    "objects": lines(
        {"query_id": "q", "results": [{"id": "a", "relevance": 0.9}, {"id": "b", "relevance": 0.5}]}
    ),
    "rows with ranks": lines(
        *(
            {"query_id": "q", "doc_id": d, "rank": n, "relevance": s}
            for n, (d, s) in enumerate([("a", 0.9), ("b", 0.5)])
        )
    ),
}


@pytest.mark.parametrize("case", RETURNED)
def test_fractions_beside_what_was_returned_are_no_grades_unless_somebody_says_so(case, tmp_path):
    refused(tmp_path, "r.jsonl", RETURNED[case], "may be scores or grades; add `columns='score=")
    imported(tmp_path, "r.jsonl", RETURNED[case], columns={"score": "relevance"})
    assert written(tmp_path / "out")[1:] == ({}, {"r": {"q": {"a": 0.9, "b": 0.5}}})
    imported(tmp_path, "r.jsonl", RETURNED[case], columns={"grade": "relevance"})
    assert written(tmp_path / "out")[1:] == ({"q": {"a": 0.9, "b": 0.5}}, {"r": {"q": {"a": 2.0, "b": 1.0}}})


def test_grades_beside_scores_of_what_was_returned_are_judgments(tmp_path):
    results = [{"id": "a", "relevance": 0, "score": 0.9}, {"id": "b", "relevance": 2, "score": 0.5}]
    imported(tmp_path, "r.jsonl", lines({"query_id": "q", "results": results}))
    assert written(tmp_path / "out")[1:] == ({"q": {"a": 0, "b": 2}}, {"r": {"q": {"a": 0.9, "b": 0.5}}})


def test_relevant_documents_that_are_no_list_are_refused(tmp_path):
    pairs = {"queries": {"q": "x"}, "corpus": {"d": "y"}, "relevant_docs": {"q": "d"}}
    refused(tmp_path, "p.json", json.dumps(pairs), "query q: no list in relevant_docs")


def test_a_null_rating_of_a_request_is_no_judgment(tmp_path):
    ratings = [{"_index": "i", "_id": "a", "rating": None}, {"_index": "i", "_id": "b", "rating": 1}]
    imported(tmp_path, "r.json", json.dumps({"requests": [{"id": "q", "request": {}, "ratings": ratings}]}))
    assert written(tmp_path / "out")[1] == {"q": {"b": 1}}


REPEATED = {
    "a name twice": "- query: red shoes\n  relevant: [a]\n  relevant: [b]\n",
    "a query twice": "q: [a]\nq: [b]\n",
    "merged": "- &a\n  query: red shoes\n  relevant: [a]\n- <<: *a\n  query: blue\n",
}


@pytest.mark.parametrize("case", REPEATED)
def test_what_a_reader_of_yaml_would_overwrite_is_refused_with_its_line(case, tmp_path):
    said = {"a name twice": "line 1: found 'relevant' twice", "a query twice": "line 1: found 'q' twice"}
    refused(tmp_path, "g.yaml", REPEATED[case], said.get(case, "line 4: found a merge of mappings"))


def test_two_columns_of_one_name_are_refused_in_parquet_as_in_text(tmp_path):
    columns = [pa.array(["q"]), pa.array(["a"]), pa.array(["b"])]
    pq.write_table(
        pa.Table.from_arrays(columns, names=["query", "relevant", "relevant"]), tmp_path / "g.parquet"
    )
    (tmp_path / "g.csv").write_text("query,relevant,relevant\nq,a,b\n")
    for name in ("g.parquet", "g.csv"):
        with pytest.raises(FormatError, match="two columns named 'relevant'"):
            import_files(tmp_path / name, tmp_path / "out")


SYSTEMS = {
    "scores": (
        "query_id,doc_id,score,system\nq,a,0.5,x\nq,b,0.4,x\nq,a,0.9,y\n",
        {"x": {"a": 0.5, "b": 0.4}, "y": {"a": 0.9}},
    ),
    "ranks": ("query_id,doc_id,rank,run_id\nq,a,1,x\nq,b,1,y\n", {"x": {"a": 1.0}, "y": {"b": 1.0}}),
    "ranks of all": ("query_id,doc_id,rank,system\nq,a,1,x\nq,b,2,y\n", {"r": {"a": 2.0, "b": 1.0}}),
    "one system": ("query_id,doc_id,score,system\nq,a,0.5,x\nq,b,0.4,x\n", {"r": {"a": 0.5, "b": 0.4}}),
}


@pytest.mark.parametrize("case", SYSTEMS)
def test_rows_of_several_systems_are_a_run_of_each(case, tmp_path):
    table, runs = SYSTEMS[case]
    imported(tmp_path, "r.csv", table)
    assert written(tmp_path / "out")[2] == {name: {"q": row} for name, row in runs.items()}


def test_a_field_within_a_group_that_stands_beside_it_too_is_kept(tmp_path):
    imported(tmp_path, "g.jsonl", lines({"query": "a b", "relevant": ["x"], "expected": {"relevant": ["y"]}}))
    (row,) = (tmp_path / "out" / "queries.jsonl").read_text().splitlines()
    assert json.loads(row)["metadata"] == {"expected.relevant": ["y"]}


FLAGS = {"true and false": (True, False), "yes and no": ("yes", "no"), "0 and 1": (1, 0)}


@pytest.mark.parametrize("flags", FLAGS)
def test_flags_without_a_column_of_documents_are_no_documents(flags, tmp_path):
    rows = [{"question": f"what is {flag}", "relevant": flag} for flag in FLAGS[flags]]
    refused(tmp_path, "g.jsonl", lines(*rows), "'relevant' holds grades, and no known column names documents")


QUERY_TEXTS = {
    "a list": (["a dam", "or two"], "a dam\n\nor two"),
    "an object": ({"en": "a dam"}, None),
    "nothing": (None, None),
    "blanks": (" ", None),
}


@pytest.mark.parametrize("text", QUERY_TEXTS)
def test_no_query_is_dropped_in_silence(text, tmp_path):
    value, read = QUERY_TEXTS[text]
    rows = lines({"_id": "q1", "text": value}, {"_id": "q2", "text": "weirs"})
    if read is None:
        refused(tmp_path, "queries.jsonl", rows, "1 of 2 rows cannot be imported, the first: line 1")
    else:
        imported(tmp_path, "queries.jsonl", rows)
        assert written(tmp_path / "out")[0] == {"q1": read, "q2": "weirs"}


@pytest.mark.filterwarnings("ignore::weir.errors.LossWarning")
def test_a_separator_named_for_a_spreadsheet_is_known_to_import(tmp_path):
    text = "\ufeffsep=;\r\nquery_id;query;doc_id;relevance\r\nq;red shoes;a;1\r\nq;red shoes;b;2\r\n"
    imported(tmp_path, "g.csv", text)
    assert written(tmp_path / "out")[1] == Qrels.load(tmp_path / "g.csv").to_dict() == {"q": {"a": 1, "b": 2}}


def test_labels_with_one_unknown_word_are_refused_with_their_line_and_no_rater_is_dropped(tmp_path):
    path = write(tmp_path / "t.csv", "Query ID,Doc-Id,Ann,Bob\nq,a,yes,no\nq,b,no,no\np,c,partially,yes\n")
    with pytest.raises(FormatError, match="line 4: found 'partially' in the column 'Ann'"):
        read_raters(path)


def test_a_list_of_returned_documents_in_rows_is_a_ranking(tmp_path):
    text = "query_id,doc_id\nq,b\nq,a\n"
    import_files(write(tmp_path / "r.csv", text), tmp_path / "out", columns={"retrieved": "doc_id"})
    assert read_run(tmp_path / "out" / "runs" / "r.trec").to_dict() == {"q": {"b": 2.0, "a": 1.0}}


def test_a_judged_query_whose_text_is_blank_is_said(tmp_path):
    text = "query_id,query,doc_id,relevance\nq1,red shoes,a,1\nq2,,b,1\n"
    report = imported(tmp_path, "g.csv", text)
    assert "queries without a text, which are not written: 1" in report.lines()[0]


def test_words_beside_returned_documents_are_grades_only_where_one_is(tmp_path):
    rows = {"query": "a b", "results": [{"id": "d1", "label": "cat"}, {"id": "d2", "label": "dog"}]}
    report = imported(tmp_path, "g.jsonl", lines(rows))
    assert "not imported: words beside documents in results, which are no grades (2)" in report.lines()[0]
    assert written(tmp_path / "out")[1] == {}
    rows["results"][0]["label"] = "relevant"
    refused(tmp_path, "h.jsonl", lines(rows), "the grade 'dog' is no finite number")
