"""Labels of judges, Weir's own and foreign: one way in, and one line for what cannot be read."""

from __future__ import annotations

import gzip
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weir.core.qrels import Qrels
from weir.errors import BadValue, FormatError, LossWarning
from weir.files.label_files import labels_from, parse_words, rater_name, read_labels, read_raters

HELD = {"q1": {"d1": 1, "d2": 0}, "q2": {"d1": 0}}
ROWS = [("q1", "d1", 1), ("q1", "d2", 0), ("q2", "d1", 0)]


def written(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def table(path, head, rows, separator="\t"):
    return written(path, "\n".join(separator.join(map(str, row)) for row in [head, *rows]) + "\n")


def test_a_folder_of_labels_keeps_its_origins_and_is_called_as_it_is(tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    with pytest.raises(FormatError, match=r"no labels\.tsv; expected a folder that weir judge wrote"):
        read_labels(folder)
    head = ("query-id", "corpus-id", "score", "origin")
    table(folder / "labels.tsv", head, [(*row, "llm:small:umbrela-1a2b") for row in ROWS])
    found = labels_from(folder)
    assert found.to_dict() == HELD
    assert found.origin.counts() == {"llm:small:umbrela-1a2b": 3}
    assert rater_name(folder) == "mine"


@pytest.mark.parametrize("head", [("qid", "docno", "label"), ("question_id", "passage_id", "llm_label"),
                                  ("query", "chunk_id", "verdict"), ("topic", "pid", "by_hand")])  # fmt: skip
@pytest.mark.parametrize("form", ["tsv", "csv", "jsonl", "json", "csv.gz"])
def test_tables_of_other_judges_are_read_by_the_names_of_their_columns(tmp_path, head, form):
    path = tmp_path / f"labels.{form}"
    objects = [dict(zip(head, row, strict=True)) for row in ROWS]
    if form == "json":
        written(path, json.dumps(objects))
    elif form == "jsonl":
        written(path, "\n".join(map(json.dumps, objects)))
    else:
        table(tmp_path / "plain.csv", head, ROWS, "\t" if form == "tsv" else ",")
        data = (tmp_path / "plain.csv").read_bytes()
        path.write_bytes(gzip.compress(data) if form.endswith("gz") else data)
    assert read_labels(path).to_dict() == HELD


def test_words_are_labels_where_everybody_means_the_same_and_else_are_told(tmp_path):
    rows = [
        ("q1", "d1", "Relevant."),
        ("q1", "d2", "NOT_RELEVANT"),
        ("q2", "d1", "non-relevant"),
        ("q2", "d3", ""),
    ]
    path = table(tmp_path / "words.tsv", ("qid", "docid", "verdict"), rows)
    assert read_labels(path).to_dict() == HELD
    path = table(tmp_path / "more.tsv", ("qid", "docid", "verdict"), [*rows, ("q2", "d4", "Partly relevant")])
    with pytest.raises(FormatError, match=r"line 6: found 'Partly relevant' .* `words='Partly relevant=1'`"):
        read_labels(path)
    told = parse_words(["partly relevant=0.5"])
    assert read_labels(path, told).to_dict()["q2"] == {"d1": 0, "d4": 0.5}
    for wrong in ("partly", "partly=", "=1", "partly=much", "partly=nan", "partly=1e9"):
        with pytest.raises(BadValue, match="expected a label and its grade"):
            parse_words([wrong])


@pytest.mark.parametrize("who", ["assessor", "Annotator ID", "rater", "judged_by", "Bewerter", "origin"])
@pytest.mark.parametrize("form", ["tsv", "csv", "jsonl", "json", "parquet"])
@pytest.mark.parametrize("names", [("anna", "ben", "cyd"), (1, 2, 3)])
def test_rows_of_several_raters_are_told_apart_by_any_usual_name_and_any_values(tmp_path, who, form, names):
    rows = [(name, "q", doc, n * (doc == "a"), "fine") for n, name in enumerate(names) for doc in "ab"]
    head = (who, "qid", "docno", "by_hand", "note")
    path = tmp_path / f"raters.{form}"
    objects = [dict(zip(head, row, strict=True)) for row in rows]
    if form == "parquet":
        arrow = pytest.importorskip("pyarrow")
        pytest.importorskip("pyarrow.parquet").write_table(arrow.Table.from_pylist(objects), path)
    elif form.startswith("json"):
        lines = map(json.dumps, objects)
        written(path, json.dumps(objects) if form == "json" else "\n".join(lines))
    else:
        table(path, head, rows)
    with pytest.warns(LossWarning, match=r"not read: 1 column, note$"):
        raters = read_raters(path)
    expected = {str(name): {"q": {"a": n, "b": 0}} for n, name in enumerate(names)}
    assert {name: labels.to_dict() for name, labels in raters.items()} == expected
    assert read_labels(f"{path}#{names[1]}").to_dict() == expected[str(names[1])]
    with pytest.raises(FormatError, match=r"no column 'dora'; expected one of .*, or a rater in"):
        read_labels(f"{path}#dora")


def test_a_column_of_labels_may_be_called_as_its_rater(tmp_path):
    path = table(
        tmp_path / "two.csv", ("qid", "docid", "human", "judge"), [("q", "a", 1, 0), ("q", "b", 0, 1)]
    )
    assert {name: one.to_dict()["q"] for name, one in read_raters(path).items()} == {
        "human": {"a": 1, "b": 0},
        "judge": {"a": 0, "b": 1},
    }


def test_several_raters_of_one_file_are_told_apart(tmp_path):
    path = table(tmp_path / "both.tsv", ("qid", "docid", "human", "gpt", "rank", "note"),
                 [("q", "a", 1, 0, 1, "x"), ("q", "b", 0, "", 2, "y")])  # fmt: skip
    with pytest.raises(FormatError, match=r"2 columns that may be labels \(human, gpt\); .* both\.tsv#human"):
        read_labels(path)
    assert read_labels(f"{path}#human").to_dict() == {"q": {"a": 1, "b": 0}}
    assert rater_name(f"{path}#gpt") == "gpt"
    with pytest.raises(FormatError, match="no column 'claude'"):
        read_labels(f"{path}#claude")
    with pytest.warns(LossWarning, match="not read: 2 columns, rank, note"):
        raters = read_raters(path)
    assert {name: one.to_dict()["q"] for name, one in raters.items()} == {
        "human": {"a": 1, "b": 0},
        "gpt": {"a": 0},
    }
    beside = table(tmp_path / "beside.tsv", ("qid", "docid", "human", "llm_label", "seconds", "note"),
                   [("q", "a", 1, 0, 3, "x"), ("q", "b", 0, 1, 2, "y")])  # fmt: skip
    with pytest.warns(LossWarning, match="not read: 2 columns, seconds, note"):
        raters = read_raters(beside)
    assert {name: one.to_dict()["q"] for name, one in raters.items()} == {
        "human": {"a": 1, "b": 0},
        "llm_label": {"a": 0, "b": 1},
    }
    mixed = table(tmp_path / "mixed.tsv", ("query-id", "corpus-id", "score", "origin"),
                  [("q", "a", 1, "human"), ("q", "a", 0, "llm:small"), ("q", "b", 1, "llm:small")])  # fmt: skip
    with pytest.raises(FormatError, match="line 3: found label 0 for a pair that line 2 gives label 1"):
        read_labels(mixed)
    assert {name: one.to_dict()["q"] for name, one in read_raters(mixed).items()} == {
        "human": {"a": 1},
        "llm:small": {"a": 0, "b": 1},
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("qid\tdocid\tnote\nq\ta\tfine words\n", "none holds labels"),
        ("qid\tdocid\tverdict\nq\ta\n", "line 2: found 2 cells"),
        ("qid\tdocid\tverdict\nq\t\t1\n", "line 2: found an empty cell"),
        ("qid\tdocid\tverdict\nq\ta\t\n", "no label in the column"),
        ("qid\tdocid\tverdict\nq\ta\t99999\n", "'99999' in the column 'verdict'"),
        ('[{"qid": "q", "docid": "a", "label": 1}, 7]', "'7' as entry 2"),
        ("only words here\n", "4 columns"),
    ],
)
def test_what_cannot_be_read_ends_in_one_line(tmp_path, text, said):
    path = written(tmp_path / "labels.txt", text)
    with pytest.raises(FormatError, match=said) as error:
        read_labels(path)
    assert "\n" not in str(error.value)
    assert str(path) in str(error.value)


def test_what_spreadsheets_write_is_read(tmp_path):
    text = '\ufeff"qid","passage_id","verdict","why, if at all"\r\n"q1","d1","Yes","a, b"\r\n"q1","d2","no",""\r\n'
    path = tmp_path / "sheet.csv"
    path.write_bytes(text.encode())
    with pytest.warns(LossWarning, match="not read: 1 column, why, if at all"):
        assert read_labels(path).to_dict() == {"q1": {"d1": 1, "d2": 0}}


def test_labels_of_one_query_from_two_collections_are_refused(tmp_path):
    path = table(tmp_path / "l.tsv", ("qid", "docid", "verdict", "dataset"),
                 [("q", "a", "yes", "x"), ("q", "b", "no", "y")])  # fmt: skip
    with pytest.raises(FormatError, match="line 3: found a row of dataset 'y' for query 'q'"):
        read_labels(path)


IDS = st.text("abc#,\"' é", min_size=1, max_size=4).filter(lambda text: text.strip() == text)


@settings(max_examples=40)
@given(st.dictionaries(st.tuples(IDS, IDS), st.sampled_from(["yes", "No", 0, 2, 0.5, None]), min_size=1))
def test_objects_on_lines_are_plainly_counted(tmp_path_factory, pairs):
    path = tmp_path_factory.mktemp("labels") / "labels.jsonl"
    rows = [{"qid": q, "passage_id": d, "rating": label} for (q, d), label in pairs.items()]
    written(path, "\n".join(map(json.dumps, rows)))
    expected: dict[str, dict[str, float]] = {}
    for (query, doc), label in pairs.items():
        if label is not None:
            expected.setdefault(query, {})[doc] = {"yes": 1, "No": 0}.get(label, label)
    if not expected:
        with pytest.raises(FormatError):
            read_labels(path)
        return
    assert read_labels(path).to_dict() == expected


def test_judgments_of_any_format_are_labels_too(tmp_path):
    for name in ("a.qrels", "a.tsv", "a.csv", "a.jsonl", "a.json"):
        Qrels.of(HELD).save(tmp_path / name)
        assert read_labels(tmp_path / name).to_dict() == HELD
    assert labels_from(HELD).to_dict() == HELD
