"""weir data import: files joined, choices, the report, the command, and a folder that is whole or not there."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import weir
from tests.kills import killed_later_each_time
from tests.unit.imports import Q, R, imported, lines, report_of, written
from weir.cli.main import main
from weir.errors import BadValue, LossWarning, MissingExtra, StoreError, UnknownName, WeirError
from weir.plugins.importing import Choices, import_files, merge
from weir.plugins.importing.contents import parse_columns
from weir.plugins.importing.readers import READERS

GOLDEN = lines(
    {"id": "q1", "query": "red shoes", "relevant_ids": ["a"], "category": "x"},
    {"id": "q2", "query": "wool socks", "relevant_ids": [], "answerable": False},
)
DOCUMENTS = lines({"_id": "a", "title": "Shoes", "text": "Red  SHOES"}, {"_id": "b", "text": "Wool socks"})


def files(tmp_path, **contents):
    """Paths of files made of their contents, by name with _ for the last dot."""
    paths = []
    for name, content in contents.items():
        path = tmp_path / ".".join(name.rsplit("_", 1))
        path.write_text(content)
        paths.append(path)
    return paths


def test_the_folder_is_a_collection_that_weir_loads_and_scores(tmp_path):
    ranked = "red shoes,a,1\nred shoes,b,2\n"
    paths = files(
        tmp_path, golden_jsonl=GOLDEN, corpus_jsonl=DOCUMENTS, run_csv="query,doc_id,rank\n" + ranked
    )
    report = weir.import_files(paths, tmp_path / "out")
    ds = weir.load(tmp_path / "out")
    assert (len(ds.corpus), ds.all_queries.ids.tolist(), ds.qrels.to_dict()) == (
        2,
        ["q1", "q2"],
        {"q1": {"a": 1}},
    )
    scores = weir.evaluate(ds.qrels, tmp_path / "out" / "runs" / "run.trec", ["RR"])
    assert list(scores.means().values()) == [1.0]
    counts = "2 queries, 1 of them without an answer, 1 judgment (test), 2 documents, 1 run"
    assert report.lines()[3] == f"{tmp_path / 'out'}: {counts}"
    assert sorted(report_of(tmp_path)["written"]) == [
        "corpus.jsonl",
        "import.json",
        "qrels/test.tsv",
        "queries.jsonl",
        "runs/run.trec",
    ]


EMPTY_LISTS = {
    "golden.jsonl": lambda one, docs: {"query": one, "relevant_ids": docs},
    "ids.jsonl": lambda one, docs: {"user_input": one, "reference_context_ids": docs},
    "texts.jsonl": lambda one, docs: {"user_input": one, "reference_contexts": docs},
    "deepeval.json": lambda one, docs: {"input": one, "expected_output": "-", "context": docs},
    "rag.json": lambda one, docs: {"query": one, "reference_answer": "", "reference_contexts": docs},
    "pairs.json": lambda one, docs: {"id": one, "docs": docs},
}


@pytest.mark.parametrize("name", EMPTY_LISTS)
def test_an_empty_list_of_references_says_in_every_reader_that_nothing_answers(tmp_path, name):
    given = {"red shoes": ["a"], "wool socks": [], "hat": None}
    rows = [EMPTY_LISTS[name](one, docs) for one, docs in given.items()]
    if name == "rag.json":
        rows = {"examples": [*rows[:2], {**rows[2], "reference_contexts": ""}]}
    if name == "pairs.json":
        docs = {row["id"]: row["docs"] for row in rows if row["docs"] is not None}
        queries = {row["id"]: row["id"] for row in rows}
        rows = {"queries": queries, "corpus": {"a": "shoe"}, "relevant_docs": docs}
    imported(tmp_path, name, lines(*rows) if name.endswith("l") else json.dumps(rows))
    written = [json.loads(line) for line in (tmp_path / "out" / "queries.jsonl").read_text().splitlines()]
    assert [row["text"] for row in written if "unanswerable" in row.get("metadata", {})] == ["wool socks"]


def test_lists_of_references_that_are_empty_throughout_were_never_filled(tmp_path):
    rows = [{"user_input": one, "retrieved_context_ids": ["a"], "reference_context_ids": []} for one in "xy"]
    imported(tmp_path, "ids.jsonl", lines(*rows))
    assert "unanswerable" not in (tmp_path / "out" / "queries.jsonl").read_text()


def test_metadata_unanswerable_queries_and_evidence_are_kept(tmp_path):
    report = imported(tmp_path, "g.jsonl", GOLDEN)
    rows = [json.loads(line) for line in (tmp_path / "out" / "queries.jsonl").read_text().splitlines()]
    assert rows[0]["metadata"] == {"category": "x"}
    assert rows[1]["metadata"] == {"answerable": False, "unanswerable": True}
    told = report_of(tmp_path)["files"][0]
    assert told["kind"] == "records"
    assert told["evidence"] == "query_id=id, query=query, relevant=relevant_ids"
    assert told["columns"] == {"query": "query", "relevant": "relevant_ids", "query_id": "id"}
    assert told["counts"] == {"queries": 2, "judgments": 1}
    assert report.files[0] == told


def test_texts_and_identifiers_of_several_files_meet(tmp_path):
    paths = files(
        tmp_path,
        a_json=json.dumps(
            {"judgmentRatings": [{"query": "red shoes", "ratings": [{"docId": "a", "rating": "2"}]}]}
        ),
        queries_tsv="7\tred shoes\n",
        d_jsonl=lines({"input": "red shoes", "expected_output": "x", "retrieval_context": ["Red  SHOES"]}),
        corpus_jsonl=DOCUMENTS,
    )
    report = import_files(paths, tmp_path / "out")
    assert written(tmp_path / "out") == ({"7": "red shoes"}, {"7": {"a": 2}}, {"d": {"7": {"a": 1.0}}})
    assert (
        "queries known by their text, which got the identifier of the same text: 1" in report.whole["notes"]
    )


def test_one_identifier_with_two_texts_is_refused(tmp_path):
    paths = files(tmp_path, queries_a_tsv="7\tred shoes\n", queries_b_tsv="7\twool socks\n")
    paths = [path.rename(path.with_name(path.name.replace("_", "."))) for path in paths]
    with pytest.raises(
        BadValue, match=r"query '7' is 'red shoes' in .*, line 1 and 'wool socks' in .*, line 1"
    ):
        import_files(paths, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_rows_that_are_none_are_refused_by_their_line(tmp_path):
    table = "query_id,doc_id,grade\nq1,a,1\nq1,,1\n,b,1\nq1,c,nan\nq1,d,x\nq1,e,1,2\nq1,a,1\n"
    report = imported(tmp_path, "j.csv", table)
    assert written(tmp_path / "out")[1] == {"q1": {"a": 1}}
    reasons = {row["where"]: row["reason"] for row in report.files[0]["refused_rows"]}
    assert reasons == {
        "line 3": "no document",
        "line 4": "neither an identifier nor a text of the query",
        "line 6": "the grade 'x' is no finite number; `choices={'grades': 'x=?'}` gives each word its number",
        "line 7": "more cells than columns ('2')",
    }
    assert report.files[0]["counts"] == {"queries": 1, "repeated judgments": 1, "judgments": 1}


def test_many_refused_rows_are_counted_and_some_told(tmp_path):
    report = imported(tmp_path, "j.csv", "query_id,doc_id,grade\nq,a,1\n" + "q,b,x\n" * 300)
    assert report.files[0]["rows_refused"] == 300
    assert len(report.files[0]["refused_rows"]) == 100
    assert "300 rows refused, the first: line 3: the grade 'x'" in report.lines()[0]


def test_judgments_by_words_take_documents(tmp_path):
    golden = lines(
        {"query": "red shoes", "relevant_keywords": ["red shoes"]},
        {"query": "wool socks", "relevant_keywords": ["wool", "silk"]},
    )
    report = imported(tmp_path, "g.jsonl", golden)
    assert (
        "judged by words (relevant_keywords), which needs documents"
        in report.files[0]["refused_rows"][0]["reason"]
    )
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "corpus.jsonl").write_text(DOCUMENTS)
    report = imported(tmp_path, "g.jsonl", golden, corpus=tmp_path / "mine")
    assert written(tmp_path / "out")[1] == {Q: {"a": 1}}
    assert "add `choices={'words': 'all'}`, or 'any'" in report.files[0]["refused_rows"][0]["reason"]
    imported(tmp_path, "g.jsonl", golden, corpus=tmp_path / "mine", choices=Choices(words="any"))
    assert written(tmp_path / "out")[1] == {Q: {"a": 1}, R: {"b": 1}}
    report = imported(tmp_path, "g.jsonl", golden, corpus=tmp_path / "mine", choices=Choices(words="all"))
    assert "no document holds the words" in report.files[0]["refused_rows"][0]["reason"]


def test_placeholders_and_cells_of_several_documents_are_refused(tmp_path):
    rows = [
        {"query": "red shoes", "relevant_ids": ["REPLACE_DOC_ID", "a"]},
        {"query": "wool socks", "relevant_ids": "a;b"},
    ]
    report = imported(tmp_path, "g.jsonl", lines(*rows))
    reasons = [row["reason"] for row in report.files[0]["refused_rows"]]
    assert "'REPLACE_DOC_ID' is a placeholder that nobody filled" in reasons
    named = "name the mark between them, as in `choices={'between': ';'}`, or write them as a JSON list"
    assert f"'a;b' looks like several documents in one cell; {named}" in reasons
    assert written(tmp_path / "out")[1] == {Q: {"a": 1}}


def test_splits_have_their_own_judgments(tmp_path):
    imported(tmp_path, "j.csv", "query_id,doc_id,grade,split\nq1,a,1,dev\nq2,a,1,test\nq3,a,1,../x\n")
    assert sorted(path.name for path in (tmp_path / "out" / "qrels").iterdir()) == ["dev.tsv", "test.tsv"]
    with pytest.warns(LossWarning, match=r"j\.csv: rows left out: 1, the first: line 4: the split '\.\./x'"):
        assert weir.load(tmp_path / "out", "dev").qrels.to_dict() == {"q1": {"a": 1}}


def test_a_file_named_by_a_split_holds_that_split(tmp_path):
    paths = [tmp_path / "dev.tsv", tmp_path / "test.tsv"]
    for path in paths:
        path.write_text(f"query-id\tcorpus-id\tscore\n{path.stem}\ta\t1\n")
    report = import_files(paths, tmp_path / "out")
    assert weir.load(tmp_path / "out", "dev").qrels.to_dict() == {"dev": {"a": 1}}
    assert weir.load(tmp_path / "out", "test").qrels.to_dict() == {"test": {"a": 1}}
    assert report.files[0]["notes"] == ["the split dev, by its name"]


def test_fields_that_nobody_knows_are_named(tmp_path):
    report = imported(tmp_path, "g.jsonl", lines({"query": "red shoes", "must_cite": ["a"]}))
    assert report.files[0]["notes"] == [
        "queries alone; if one of must_cite names documents, say so: `columns='relevant=NAME'`, or "
        "`columns='retrieved=NAME'` where a system returned them"
    ]
    imported(
        tmp_path,
        "g.jsonl",
        lines({"query": "red shoes", "must_cite": ["a"]}),
        columns={"relevant": "must_cite"},
    )
    assert written(tmp_path / "out")[1] == {Q: {"a": 1}}


def test_texts_and_answers_are_no_documents(tmp_path):
    long = " ".join(["word"] * 30)
    report = imported(
        tmp_path, "g.jsonl", lines({"query": "red shoes", "relevant": [long, "a"], "expected": "Paris"})
    )
    assert "is a text, not the identifier" in report.files[0]["refused_rows"][0]["reason"]
    assert written(tmp_path / "out")[1] == {Q: {"a": 1}}


def test_runs_of_one_name_stay_apart_and_names_are_safe(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "run.txt").write_text(f"q1 Q0 {folder} 1 2.5 t\n")
    predictions = json.dumps(
        {"mteb_model_meta": {"model_name": "../../etc"}, "default": {"test": {"q": {"a": 1.5}}}}
    )
    paths = [tmp_path / "a" / "run.txt", tmp_path / "b" / "run.txt", *files(tmp_path, p_json=predictions)]
    import_files(paths, tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out" / "runs").iterdir()) == [
        "__..__etc.trec",
        "run-2.trec",
        "run.trec",
    ]


def test_a_document_twice_in_a_ranking(tmp_path):
    report = imported(tmp_path, "run.txt", "q1 Q0 a 1 2.5 t\nq1 Q0 a 2 1.5 t\nq1 Q0 b 3\n", as_kind="run")
    assert written(tmp_path / "out")[2] == {"run": {"q1": {"a": 2.5}}}
    reasons = [row["reason"] for row in report.files[0]["refused_rows"]]
    assert reasons == [
        "found 4 columns; expected query Q0 document rank score tag",
        "document 'a' twice in the ranking; the first is kept",
    ]


def test_refused_files_are_told_and_the_others_written_unless_strict(tmp_path, capsys):
    paths = files(tmp_path, clicks_csv="a,b\n1,2\n", golden_jsonl=GOLDEN)
    assert main(["data", "import", *map(str, paths), "-o", str(tmp_path / "out")]) == 2
    shown = capsys.readouterr()
    assert shown.out.startswith(
        f"refused: {paths[0]}: found 'a,b', 2 columns without usual names; say which is which"
    )
    assert written(tmp_path / "out")[1] == {"q1": {"a": 1}}
    assert main(["data", "import", *map(str, paths), "-o", str(tmp_path / "new"), "--strict"]) == 2
    assert "1 of 2 files are refused; nothing is written" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


SHOP = {
    "articles_csv": "\ufeffArticle No;Headline;Body\nA1;Shoes, red;of leather\nA2;Socks;of wool\n",
    "terms_csv": "\ufeffSearch term;Searches\nred shoes;9\nsocks;4\n",
    "judged_csv": "Search term;Article No;Verdict, all\nred shoes;A1;Very good\nred shoes;A2;no\nsocks;A2;ok\n",
}


@pytest.mark.parametrize(
    "names", [("Search term", "Article No", "Headline", "Body"), ("q, said", "nr", "head", "copy")]
)
def test_columns_that_one_option_names_stand_in_several_files(tmp_path, names):
    shop = dict(SHOP)
    for usual, own in zip(("Search term", "Article No", "Headline", "Body"), names, strict=True):
        shop = {file: table.replace(usual, own) for file, table in shop.items()}
    columns = {**dict(zip(("query", "doc", "title", "text"), names, strict=True)), "grade": "Verdict, all"}
    choices = Choices(grades="very_good=3, OK=1")
    import_files(files(tmp_path, **shop), tmp_path / "out", columns, choices=choices)
    queries, qrels, _ = written(tmp_path / "out")
    assert sorted(queries.values()) == ["red shoes", "socks"]
    judged = {queries[query]: row for query, row in qrels.items()}
    assert judged == {"red shoes": {"A1": 3, "A2": 0}, "socks": {"A2": 1}}
    rows = map(json.loads, (tmp_path / "out" / "corpus.jsonl").read_text().splitlines())
    assert [(one["_id"], one["title"], one["text"]) for one in rows] == [
        ("A1", "Shoes, red", "of leather"),
        ("A2", "Socks", "of wool"),
    ]
    with pytest.raises(BadValue, match="grade=Rating: no file has such a column"):
        import_files(
            files(tmp_path, **shop), tmp_path / "out", {**columns, "grade": "Rating"}, choices=choices
        )


def test_words_of_grades_have_the_numbers_given(tmp_path):
    table = "query_id,doc_id,relevance\nq,a,Relevant\nq,b,irrelevant\nq,c,2\nq,d,partly\n"
    report = imported(tmp_path, "j.csv", table, choices=Choices(grades="relevant=2,Partly=0.5,never=9"))
    assert written(tmp_path / "out")[1] == {"q": {"a": 2, "b": 0, "c": 2, "d": 0.5}}
    assert "grades: no judgment has the grade 'never'" in report.whole["notes"]
    nested = lines(
        {"query": "red shoes", "relevant_docs": [{"id": "a", "rating": "high"}, {"id": "b", "rating": "low"}]}
    )
    imported(tmp_path, "g.jsonl", nested, choices=Choices(grades="high=2,low=1"))
    assert list(written(tmp_path / "out")[1].values()) == [{"a": 2, "b": 1}]
    for grades in ("good", "good=x", "a=1,A=2", "=1", "scale=0"):
        with pytest.raises(BadValue, match="`grades`: found"):
            Choices(grades=grades)


def test_the_command_takes_columns_kinds_and_choices(tmp_path, capsys):
    paths = files(tmp_path, j_csv="q,url,ctr\nred shoes,a,0.6\n", r_tsv="1\ta\t0\n")
    said = [
        "--columns",
        "query=q,doc=url,grade=ctr",
        "--as",
        "r.tsv=run-ranks",
        "--grades",
        "threshold=0.5",
        "--allow-disjoint",
    ]
    assert main(["data", "import", *map(str, paths), "-o", str(tmp_path / "out"), *said]) == 0
    assert written(tmp_path / "out") == ({Q: "red shoes"}, {Q: {"a": 1}}, {"r": {"1": {"a": 1.0}}})
    line = "j.csv: rows with named fields (--columns, query=q, doc=url, grade=ctr): 1 query, 1 judgment"
    assert line in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "content", "taken"),
    [
        ("golden.jsonl", GOLDEN, "(query_id=id, query=query, relevant=relevant_ids)"),
        ("long.csv", "qid,question,doc_id,grade,body,split\n1,red shoes,a,1,Red,dev\n",
         "(query_id=qid, query=question, doc=doc_id, grade=grade, text=body, split=split)"),
        ("corpus.csv", "doc_id,title,text,body\na,Shoes,Red,x\n",
         "(corpus: 'corpus' in its name, doc=doc_id, text=text, title=title)"),
        ("queries.jsonl", lines({"_id": "1", "text": "red shoes"}),
         "(queries: 'queries' in its name, query_id=_id, query=text)"),
        ("qrels.csv", "query-id,corpus-id,score\n1,a,1\n",
         "(query-id and corpus-id, query_id=query-id, doc=corpus-id, grade=score)"),
    ],
)  # fmt: skip
def test_the_report_says_which_column_was_taken_for_what(tmp_path, name, content, taken):
    (tmp_path / name).write_text(content)
    assert taken in import_files(tmp_path / name, tmp_path / "out").lines()[0]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--columns", "qery=a"], "no role of a column named 'qery'; did you mean query"),
        (["--columns", "query"], "expected role=column"),
        (["--columns", "=url"], "found '=url'; expected role=column"),
        (["--columns", "query=elsewhere"], "no file has such a column"),
        (["--as", "nothing"], "no import reader named 'nothing'"),
        (["--as", "x.csv=qrels"], "--as names 'x.csv', which is not among the files"),
        (["--grades", "double"], "or the number of each word, as in"),
        (["--grades", "scale=-1"], "expected round, scale=N or threshold=X"),
        (["--corpus", "nowhere"], "nowhere: found no such file or folder"),
    ],
)  # fmt: skip
def test_mistakes_are_one_line(tmp_path, capsys, arguments, said):
    path = files(tmp_path, g_jsonl=GOLDEN)[0]
    assert main(["data", "import", str(path), "-o", str(tmp_path / "out"), *arguments]) == 2
    shown = capsys.readouterr().err
    assert said in shown
    assert shown.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_every_kind_stands_in_the_page():
    page = (Path(__file__).resolve().parents[2] / "docs" / "import.md").read_text(encoding="utf-8")
    assert [name for name in READERS.names() if f"`{name}`" not in page] == []


def test_choices_are_checked():
    with pytest.raises(UnknownName):
        Choices(judges="median")
    with pytest.raises(UnknownName):
        Choices(words="some")
    assert parse_columns(" query = q , doc=2 ") == {"query": "q", "doc": "2"}


TWICE = {
    "judgments of test": ("qrels.tsv", "query-id\tcorpus-id\tscore\nq1\ta\t1\n"),
    "documents": ("corpus.jsonl", lines({"_id": "a", "text": "a weir"})),
    "queries": ("queries.jsonl", lines({"_id": "q1", "text": "what is a weir"})),
}


@pytest.mark.parametrize("part", TWICE)
def test_files_of_one_name_in_two_folders_are_one_collection_only_where_the_user_says_so(part, tmp_path):
    name, content = TWICE[part]
    paths = [tmp_path / folder / name for folder in ("fr", "en")]
    for path in paths:
        path.parent.mkdir()
        path.write_text(content)
    said = f"{paths[0]} and {paths[1]} both hold {part} under one name, as two collections do"
    with pytest.raises(BadValue, match=re.escape(said)):
        import_files(paths, tmp_path / "out")
    import_files(paths, tmp_path / "out", choices=Choices(allow_disjoint=True))
    other = paths[1].rename(paths[1].with_name(f"more-{name}"))
    import_files([paths[0], other], tmp_path / "out")


def test_an_import_that_was_used_is_replaced(tmp_path):
    for text in ("a dam", "a weir"):
        path = files(tmp_path, corpus_jsonl=lines({"_id": "a", "text": text}))[0]
        import_files(path, tmp_path / "out")
        assert weir.load(tmp_path / "out").corpus.text.tolist() == [
            text
        ]  # makes a store beside the documents


def test_the_report_says_that_an_older_import_was_replaced(tmp_path, capsys):
    path = files(tmp_path, corpus_jsonl=lines({"_id": "a", "text": "a dam"}))[0]
    for said in (False, True):
        assert main(["data", "import", str(path), "-o", str(tmp_path / "out")]) == 0
        assert ("in place of an older import" in capsys.readouterr().out) == said


@pytest.mark.parametrize(
    ("given", "refusal"),
    [
        (["--columns", "query=q", "--columns", "doc=url", "--grades", "good=2", "--grades", "bad=1"], ""),
        (["--columns", "query=q,doc=url", "--columns", "query=q", "--grades", "good=2,bad=1"], ""),
        (["--columns", "query=q", "--columns", "query=url"], "--columns: found query as q and as url"),
        (["--grades", "good=2", "--grades", "good=1"], "--grades: found two numbers for 'good'"),
        (["--grades", "round", "--grades", "good=1"], "--grades: found 'round'"),
    ],
)
def test_lists_of_an_option_add_up_unless_they_contradict(tmp_path, capsys, given, refusal):
    path = files(tmp_path, j_csv="q,url,grade\nred shoes,a,good\nred shoes,b,bad\n")[0]
    assert main(["data", "import", str(path), "-o", str(tmp_path / "out"), *given]) == (2 if refusal else 0)
    assert refusal in capsys.readouterr().err
    if not refusal:
        assert written(tmp_path / "out")[1] == {Q: {"a": 2, "b": 1}}


def test_a_folder_of_something_else_is_never_replaced(tmp_path):
    path = files(tmp_path, g_jsonl=GOLDEN)[0]
    with pytest.raises(BadValue, match=r"holds 'g.jsonl', which weir data import did not write"):
        import_files([path], tmp_path)
    import_files(path, tmp_path / "out")
    import_files([str(path)], tmp_path / "out")
    (tmp_path / "out" / "notes.txt").write_text("mine")
    with pytest.raises(BadValue, match=r"holds 'notes.txt'"):
        import_files([path], tmp_path / "out")
    with pytest.raises(BadValue, match="is a file"):
        import_files([path], path)
    with pytest.raises(BadValue, match="no file to import"):
        import_files([], tmp_path / "new")


def test_yaml_and_parquet_without_their_packages_name_the_extra(tmp_path, monkeypatch):
    path = files(tmp_path, g_yaml="- {query: red shoes, relevant: [a]}\n")[0]
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(
        WeirError, match=r"needs 'yaml', which is not installed; pip install .*\[import-sources\]'"
    ) as caught:
        import_files([path], tmp_path / "out")
    assert isinstance(caught.value, (MissingExtra, BadValue))


def test_importing_needs_numpy_alone(tmp_path):
    path = files(tmp_path, g_jsonl=GOLDEN)[0]
    program = f"""
import sys, weir
weir.import_files([{str(path)!r}], {str(tmp_path / "out")!r})
print(sorted({{"pyarrow", "pandas", "yaml", "numba", "orjson"}} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_full_disk_leaves_nothing(tmp_path, monkeypatch):
    path = files(tmp_path, g_jsonl=GOLDEN)[0]
    (tmp_path / "locked").write_text("a file where a folder should be")
    with pytest.raises(StoreError):
        import_files([path], tmp_path / "locked" / "out")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["g.jsonl", "locked"]


@pytest.mark.skipif(os.name != "posix", reason="kill -9 is of POSIX")
def test_a_kill_leaves_the_folder_whole_or_as_it_was(tmp_path):
    rows = "".join(f"q{n % 500},d{n},{n % 3}\n" for n in range(8_000))
    path = files(tmp_path, j_csv="query_id,doc_id,grade\n" + rows)[0]
    out = tmp_path / "out"
    import_files([path], out)
    before = {one.name for one in out.iterdir()}
    command = [sys.executable, "-m", "weir", "data", "import", str(path), "-o", str(out)]
    for _ in killed_later_each_time(command, tmp_path):
        if out.exists():  # between the two renames it may be aside; the next import is whole again
            assert {one.name for one in out.iterdir()} == before
            assert len(weir.load(out).qrels.doc) == 8_000
    assert [one.name for one in tmp_path.iterdir() if one.name.startswith(".")] == []


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ("", {"a": 0.5, "b": 0.4, "c": 2.55}),
        ("round", {"a": 1, "b": 0, "c": 3}),
        ("scale=10", {"a": 5, "b": 4, "c": 26}),
        ("threshold=0.5", {"a": 1, "b": 0, "c": 1}),
    ],
)
def test_fractions_are_kept_or_become_whole_numbers_as_the_user_says(tmp_path, choice, expected):
    table = "query,doc_id,grade\nred shoes,a,0.5\nred shoes,b,0.4\nred shoes,c,2.55\n"
    imported(tmp_path, "j.csv", table, choices=Choices(grades=choice))
    assert written(tmp_path / "out")[1] == {Q: expected}
    said = f"{choice}, which changed 3 of 3" if choice else "3 of 3 have fractions and are kept"
    assert any(note.startswith(f"grades: {said}") for note in report_of(tmp_path)["notes"])


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("qrels.json", '{"q1": {"a": 0.5, "b": 1}}'),
        ("qrels.csv", "query_id,doc_id,score\nq1,a,0.5\nq1,b,1\n"),
        ("judged.txt", "q1 0 a 0.5\nq1 0 b 1\n"),
    ],
)
def test_judgments_by_name_or_layout_may_have_fractions(tmp_path, name, content):
    imported(tmp_path, name, content)
    assert written(tmp_path / "out")[1] == {"q1": {"a": 0.5, "b": 1}}


def test_judgments_keep_where_they_come_from(tmp_path):
    table = "query,doc_id,grade,origin\nred shoes,a,1,human\nred shoes,b,0.5,llm:judge\nred shoes,c,0,\n"
    imported(tmp_path, "j.csv", table)
    kept = weir.Qrels.load(tmp_path / "out" / "qrels" / "test.tsv")
    assert kept.to_frame("arrow")["origin"].to_pylist() == ["human", "llm:judge", ""]
    golden = "".join(
        f'{{"query": "red shoes", "relevant": ["{doc}"], "origin": "{of}"}}\n'
        for doc, of in (("a", "x"), ("b", "y"))
    )
    imported(tmp_path, "golden.jsonl", golden, columns={"origin": "origin"})
    assert weir.Qrels.load(tmp_path / "out" / "qrels" / "test.tsv").origin.counts() == {"x": 1, "y": 1}


@pytest.mark.parametrize(("judges", "grade"), [("max", 3), ("min", 0), ("mean", 1), ("majority", 0)])
def test_judges_who_disagree(tmp_path, judges, grade):
    table = "query,doc_id,grade\nred shoes,a,0\nred shoes,a,3\nred shoes,a,0\nred shoes,b,1\n"
    report = imported(tmp_path, "j.csv", table)
    assert written(tmp_path / "out")[1] == {Q: {"b": 1}}
    assert report.files[0]["refused_rows"] == [
        {
            "where": f"line {line}",
            "reason": f"grades 0, 3, 0 for query '{Q[:40]}', document 'a'; `choices={{'judges': 'max'}}`, min, mean or majority",
        }
        for line in (2, 3, 4)
    ]
    imported(tmp_path, "j.csv", table, choices=Choices(judges=judges))
    assert written(tmp_path / "out")[1] == {Q: {"a": grade, "b": 1}}


def test_a_tied_majority_is_the_lowest_grade_as_in_a_journal_of_judges(tmp_path):
    table = "query,doc_id,grade\nred shoes,a,0\nred shoes,a,3\nred shoes,b,1\nred shoes,b,1\nred shoes,c,2\n"
    report = imported(tmp_path, "j.csv", table, choices=Choices(judges="majority"))
    assert written(tmp_path / "out")[1] == {Q: {"a": 0, "b": 1, "c": 2}}
    assert any(
        "the majority of the grades of 1 pair whose grades differ" in note for note in report.whole["notes"]
    )


@pytest.mark.parametrize("judges", [2, 3, 10, 20])
@pytest.mark.parametrize("differ", [0, 1, 2, 5])
def test_pairs_on_which_judges_differ_are_lost_with_all_their_grades(tmp_path, judges, differ):
    """However many judges there are, and however they agree on the others."""
    rows = [f"q{n},d,{int(n < differ and judge % 2)}" for n in range(10) for judge in range(judges)]
    (tmp_path / "j.csv").write_text("\n".join(["query_id,doc_id,grade", *rows, ""]))
    if differ < 2:
        import_files([tmp_path / "j.csv"], tmp_path / "out")
        assert len(written(tmp_path / "out")[1]) == 10 - differ
        return
    with pytest.raises(BadValue, match=rf"{differ * judges} of {10 * judges} judgments cannot be imported"):
        import_files([tmp_path / "j.csv"], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_answers_are_matched_as_whole_tokens_and_words_as_characters(tmp_path):
    """DPR's topics: NFD and lower case, the text alone; keywords: parts of words count, and the title."""
    topics = "who sings\t['Beyonce\u0301', 'AC/DC']\nwhat flows\t['the art']\nwhat is it\t['...']\n"
    rows = [
        {"_id": "d1", "title": "AC/DC", "text": "Songs of BEYONC\u00c9, live."},
        {"_id": "d2", "title": "", "text": "An ac / dc adapter; the  Art."},
        {"_id": "d3", "title": "the art", "text": "the artist"},
    ]
    (tmp_path / "docs.corpus.jsonl").write_text(lines(*rows))
    (tmp_path / "t.dpr").write_text(topics)
    report = import_files([tmp_path / "t.dpr", tmp_path / "docs.corpus.jsonl"], tmp_path / "out")
    judged = {query.rpartition("-")[0]: row for query, row in written(tmp_path / "out")[1].items()}
    assert judged == {"who-sings": {"d1": 1, "d2": 1}, "what-flows": {"d2": 1}}
    assert report.whole["notes"][0] == (
        "words: 2 documents match 2 of 3 judgments by words, as whole tokens of the text, after Unicode's NFD "
        "and in lower case, as DPR does"
    )
    golden = lines({"query": "fine art", "relevant_keywords": ["The  art"]})
    report = imported(tmp_path, "g.jsonl", golden, corpus=tmp_path / "out")
    assert list(written(tmp_path / "out")[1].values()) == [{"d2": 1, "d3": 1}]
    assert "as characters, whatever their case" in report.whole["notes"][0]


def test_a_search_for_words_that_would_take_hours_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(merge, "LARGEST_SEARCH", 30)
    (tmp_path / "corpus.jsonl").write_text(lines({"_id": "d1", "text": "a long text about a weir"}))
    golden = lines({"query": "a b", "relevant_keywords": ["weir", "dam"]})
    with pytest.raises(BadValue, match="looking for 2 words in 24 characters of documents takes hours"):
        imported(tmp_path, "g.jsonl", golden, corpus=tmp_path)


def test_lists_of_documents_for_a_query_are_joined_over_files(tmp_path):
    golden = lines({"id": "1", "query": "a b", "relevant_ids": ["d1"], "excluded_ids": ["d2", "d3"]})
    (tmp_path / "g.jsonl").write_text(golden)
    (tmp_path / "exclude.txt").write_text("1 d3\n1 d4\n")
    import_files([tmp_path / "g.jsonl", tmp_path / "exclude.txt"], tmp_path / "out")
    [query] = map(json.loads, (tmp_path / "out" / "queries.jsonl").read_text().splitlines())
    assert query["metadata"]["excluded"] == ["d2", "d3", "d4"]


def test_values_that_are_identifiers_of_another_file_are_identifiers(tmp_path):
    """Roles by evidence; a blank grade among others is unjudged, said with a count and no loss."""
    queries, judged = tmp_path / "queries.csv", tmp_path / "judged.csv"
    queries.write_text("id,query\n1,boots\n2,red dress\n3,usb c\n")
    judged.write_text("query,document,relevant\n1,p1,1\n2,p4,\n3,p9,0\n")
    for number, files in enumerate(([queries, judged], [judged, queries])):
        report = import_files(files, tmp_path / f"mine{number}")
        assert "rows without a grade, which are unjudged: 1" in str(report)
        mine = weir.load(tmp_path / f"mine{number}")
        assert mine.qrels.to_dict() == {"1": {"p1": 1}, "3": {"p9": 0}}
        assert dict(zip(mine.all_queries.ids, mine.all_queries.text, strict=True))["2"] == "red dress"


@pytest.mark.parametrize(
    ("flag", "counts"), [("false", 0), ("No", 0), ("0", 0), ("TRUE", 1), ("yes", 1), (1, 1)]
)
def test_metadata_with_a_meaning_is_of_its_type_whatever_the_file_says(tmp_path, flag, counts):
    rows = [
        {"query": "red shoes", "relevant_id": "d1"},
        {"query": "wool", "relevant_id": "", "unanswerable": flag, "instruction": 5, "filter": "year > 2000"},
    ]
    report = imported(tmp_path, "golden.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    assert "1 query has a filter: only documents whose fields fit it may be ranked" in str(report)
    said = weir.load(tmp_path / "out").all_queries.metadata
    assert said.instruction.tolist()[1] == "5"
    assert (0 if said.unanswerable is None else said.unanswerable.sum()) == counts


def test_metadata_that_no_collection_may_have_are_refused_and_nothing_is_written(tmp_path):
    row = {"query": "wool", "relevant_id": "d1"}
    for name, value in (("unanswerable", "maybe"), ("filter", "year >")):
        with pytest.raises(BadValue, match="query 'wool"):
            imported(tmp_path, "golden.jsonl", json.dumps(row | {name: value}) + "\n")
    assert not (tmp_path / "out").exists()


def test_documents_of_queries_that_are_called_unanswerable_are_kept(tmp_path):
    imported(tmp_path, "golden.csv", "query,relevant_id,answerable\nred shoes,d1,no\nwool,d3,no\n")
    assert sorted(doc for row in written(tmp_path / "out")[1].values() for doc in row) == ["d1", "d3"]
