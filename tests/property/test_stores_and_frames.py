"""Responses of vector stores and tables as pandas writes them are read whole, whatever shape they come in."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.imports import imported, report_of, written

import weir
from weir.errors import BadValue, FormatError, LossWarning, WeirError
from weir.files.column_names import fold
from weir.files.layouts import DOCUMENTS, QRELS, QUERIES, find_layout, left_out
from weir.files.runs import read_qrels
from weir.plugins.importing import Choices
from weir.plugins.importing.merge import made_id

EASY = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def oriented(rows, how, start):
    """A table as pandas writes it."""
    columns = list(rows[0])
    index = [str(n + start) for n in range(len(rows))]
    cells = [list(row.values()) for row in rows]
    split = {"columns": columns, "index": [n + start for n in range(len(rows))], "data": cells}
    return {
        "split": split,
        "tight": {**split, "index_names": [None], "column_names": [None]},
        "columns": {name: dict(zip(index, (row[name] for row in rows), strict=True)) for name in columns},
        "index": dict(zip(index, rows, strict=True)),
        "list": {name: [row[name] for row in rows] for name in columns},
        "table": {"schema": {"pandas_version": "1.4.0"}, "data": rows},
    }[how]


@EASY
@given(
    pairs=st.lists(
        st.tuples(st.sampled_from(["red shoes", "wool socks", "hat"]), st.sampled_from("abcdef")),
        min_size=1,
        max_size=7,
        unique=True,
    ),
    values=st.lists(st.sampled_from([0, 1, 2, 3]), min_size=7, max_size=7),
    notes=st.lists(st.sampled_from(["", "x", "y, z", None]), min_size=7, max_size=7),
    how=st.sampled_from(["split", "tight", "columns", "index", "list", "table"]),
    start=st.sampled_from([0, 0, 5]),
    by_id=st.booleans(),
)
def test_every_orientation_of_a_table_is_the_table(pairs, values, notes, how, start, by_id, tmp_path):
    rows = [
        {"query_id" if by_id else "query": query, "doc_id": doc, "grade": grade, "note": note}
        for (query, doc), grade, note in zip(pairs, values, notes, strict=False)
    ]
    imported(tmp_path, "rows.json", json.dumps(rows))
    plain = written(tmp_path / "out")
    report = imported(tmp_path, "frame.json", json.dumps(oriented(rows, how, start)))
    known, judged, _ = written(tmp_path / "out")
    if how == "index" and not by_id and len({query for query, _ in pairs}) == len(pairs):
        names = {name: made_id(text, "query") for name, text in known.items()}
        known = {names[name]: text for name, text in known.items()}  # where numbers may name queries, they do
        judged = {names[name]: row for name, row in judged.items()}
    assert (known, judged) == plain[:2]
    said: dict[str, int] = {name: 0 for name in ("note", "index")} | report.files[0]["left_out"]
    queries = [json.loads(line) for line in _lines(tmp_path / "out" / "queries.jsonl")]
    kept = [one["metadata"]["note"] for one in queries if "note" in one.get("metadata", {})]
    given_notes = [note for note in notes[: len(rows)] if note]
    assert said["note"] or set(kept) == set(given_notes)
    if start and how in ("split", "tight", "columns"):
        assert said["index"] or any("index" in one.get("metadata", {}) for one in queries)


def _lines(path):
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def test_a_row_of_a_frame_with_other_cells_than_columns_is_refused(tmp_path):
    table = {
        "columns": ["query", "doc_id", "grade"],
        "index": [0, 1],
        "data": [["a b", "d", 1], ["c d", "e"]],
    }
    with pytest.raises(WeirError, match=r"2 cells in row 2 of data; expected 3"):
        imported(tmp_path, "frame.json", json.dumps(table))
    table["columns"] = ["query", "query", "grade"]
    with pytest.raises(WeirError, match=r"two columns named 'query'"):
        imported(tmp_path, "frame.json", json.dumps(table))


@st.composite
def _answers(draw):
    """Documents with payload, and for each query its (document, score), the best first."""
    ids = draw(st.lists(st.sampled_from(["a", "b", "7", "x/y", "5c56-79", "é"]), min_size=1, unique=True))
    texts = {one: draw(st.sampled_from([None, f"text of {one}", f"  {one}\nmore"])) for one in ids}
    fields = st.dictionaries(
        st.sampled_from(["city", "n", "tags", "score", "id"]), st.sampled_from([1, "B", 2.5])
    )
    payloads = {one: draw(st.one_of(st.none(), fields)) for one in ids}
    answers = []
    for _ in range(draw(st.integers(1, 4))):
        docs = draw(st.lists(st.sampled_from(ids), min_size=1, unique=True))
        scores = sorted(
            draw(
                st.lists(
                    st.sampled_from([0.1, 0.25, 0.5, 1.5, 3, 12]), min_size=len(docs), max_size=len(docs)
                )
            )
        )
        answers.append(list(zip(docs, scores, strict=True)))  # distances: the least first
    return texts, payloads, answers


@EASY
@given(answered=_answers(), with_distances=st.booleans())
def test_answers_of_chroma_are_rankings_by_distance_and_documents(answered, with_distances, tmp_path):
    texts, payloads, answers = answered
    response = {
        "ids": [[doc for doc, _ in answer] for answer in answers],
        "documents": [[texts[doc] for doc, _ in answer] for answer in answers],
        "metadatas": [[payloads[doc] for doc, _ in answer] for answer in answers],
        "distances": [[far for _, far in answer] for answer in answers] if with_distances else None,
        "embeddings": None,
    }
    report = imported(tmp_path, "chroma.json", json.dumps(response))
    [run] = written(tmp_path / "out")[2].values()
    assert list(run) == (["chroma"] if len(answers) == 1 else [str(n) for n in range(1, len(answers) + 1)])
    for ranking, answer in zip(run.values(), answers, strict=True):
        given_order = sorted(answer, key=lambda one: one[1]) if with_distances else answer
        assert set(ranking) == {doc for doc, _ in answer}
        if with_distances and all(-far == ranking[doc] for doc, far in answer):
            continue  # the scores are the distances' negatives
        places = sorted(ranking.values(), reverse=True)
        assert [ranking[doc] for doc, _ in given_order] == places  # of ties the order is kept
    _documents_are_whole(tmp_path, {d for answer in answers for d, _ in answer}, texts, payloads, report)


@EASY
@given(answered=_answers(), shape=st.sampled_from(["search", "query", "batch", "list"]), near=st.booleans())
def test_answers_of_qdrant_are_rankings_whatever_its_scores_are(answered, shape, near, tmp_path):
    texts, payloads, answers = answered
    answers = answers if shape == "batch" else answers[:1]
    points = [
        [
            {
                "id": doc,
                "version": 3,
                "score": -far if near else far,
                "payload": {**(payloads[doc] or {}), **({"text": texts[doc]} if texts[doc] else {})} or None,
            }
            for doc, far in answer
        ]
        for answer in answers
    ]
    result = {"search": points[0], "query": {"points": points[0]}, "batch": points, "list": None}[shape]
    value = points[0] if shape == "list" else {"result": result, "status": "ok", "time": 0.1}
    report = imported(tmp_path, "qdrant.json", json.dumps(value))
    [run] = written(tmp_path / "out")[2].values()
    for ranking, answer in zip(run.values(), answers, strict=True):
        scores = [ranking[doc] for doc, _ in answer]
        assert set(ranking) == {doc for doc, _ in answer}
        assert scores == sorted(scores, reverse=True)
    assert report.files[0]["left_out"]["version"] == sum(map(len, answers))
    _documents_are_whole(tmp_path, {d for answer in answers for d, _ in answer}, texts, payloads, report)


def _documents_are_whole(tmp_path, docs, texts, payloads, report):
    """Each document with a text is written with its payload; fields of the others are told."""
    corpus = {one["_id"]: one for one in map(json.loads, _lines(tmp_path / "out" / "corpus.jsonl"))}
    assert {name: one["text"] for name, one in corpus.items()} == {
        doc: texts[doc].strip() for doc in docs if texts[doc]
    }
    for doc in docs:
        for name, value in (payloads[doc] or {}).items():
            if doc in corpus:
                kept = corpus[doc]["metadata"]
                assert kept.get(f"payload.{name}", kept.get(name)) == value
            else:
                assert any(said.rpartition(".")[2] == name for said in report.files[0]["left_out"])


def test_two_identifiers_of_a_point_are_asked_about_and_pages_that_go_on_are_told(tmp_path):
    points = [{"id": n, "payload": {"doc_id": f"D{n}", "text": f"t{n}"}} for n in (1, 2)]
    with pytest.raises(BadValue, match="doc_id and id could each be the doc"):
        imported(tmp_path, "scroll.json", json.dumps({"result": {"points": points}}))
    page = {"result": {"points": points, "next_page_offset": 3}}
    report = imported(tmp_path, "scroll.json", json.dumps(page), columns={"doc": "doc_id"})
    assert any("these are the first points of more" in one for one in report.files[0]["notes"])
    chunks = [{"id": n, "payload": {"doc_id": "D", "text": f"t{n}"}} for n in (1, 2)]
    imported(tmp_path, "scroll.json", json.dumps({"result": {"points": chunks, "next_page_offset": None}}))
    assert "these are" not in str(report_of(tmp_path))
    with pytest.raises(BadValue, match="2 ids and 1 distances"):
        imported(tmp_path, "c.json", json.dumps({"ids": [["a", "b"]], "distances": [[0.1]]}))
    with pytest.raises(BadValue, match="search without groups"):
        imported(tmp_path, "g.json", json.dumps({"result": {"groups": []}}))


@pytest.mark.parametrize("lines", [True, False])
def test_answers_are_of_the_queries_that_whoever_kept_them_names(lines, tmp_path):
    points = {
        "what is x": [{"id": 1, "score": 0.5, "payload": None}],
        "what is y": [{"id": 2, "score": 0.5, "payload": None}],
    }
    rows = [{"query": text, "result": {"points": of}} for text, of in points.items()]
    by_name = {text: {"result": of} for text, of in points.items()}
    content = "".join(json.dumps(row) + "\n" for row in rows) if lines else json.dumps(by_name)
    imported(tmp_path, "kept.jsonl" if lines else "kept.json", content)
    queries, _, runs = written(tmp_path / "out")
    named = {queries.get(name, name): row for name, row in runs["kept"].items()}
    assert named == {"what is x": {"1": 0.5}, "what is y": {"2": 0.5}}


NAMES = ["id", "doc_id", "chunk_id", "source", "page"]


@EASY
@given(
    rows=st.lists(
        st.dictionaries(st.sampled_from(NAMES), st.integers(0, 5), max_size=4), min_size=1, max_size=4
    ),
    own=st.booleans(),
    dumped=st.booleans(),
)
def test_documents_are_called_as_their_own_field_or_their_metadata_says_if_one_name_tells_them_apart(
    rows, own, dumped, tmp_path
):
    texts = [f"text {n}" for n in range(len(rows))]
    values = [
        {"id": f"own{n}" if own else None, "page_content": text, "metadata": row}
        for n, (text, row) in enumerate(zip(texts, rows, strict=True))
    ]
    whole = [{"lc": 1, "type": "constructor", "kwargs": one} for one in values]

    def ids(name):
        return [str(row[name]) for row in rows if name in row]

    apart = [name for name in NAMES[:3] if len(set(ids(name))) == len(rows)]
    several = sum(bool(ids(name)) for name in NAMES[:3]) > 1
    try:
        imported(tmp_path, "chunks.json", json.dumps(whole if dumped else values))
        asked = ""
    except BadValue as error:
        asked = str(error)
    if asked:
        assert re.search("(id|doc_id|chunk_id) could each be the doc", asked)
        assert (own, several, len(apart) == 1) == (False, True, False)
        return
    lines = (tmp_path / "out" / "corpus.jsonl").read_text().splitlines()
    found = {one["text"]: one["_id"] for one in map(json.loads, lines)}
    expected = {text: f"own{n}" if own else "" for n, text in enumerate(texts)}
    if not own and (apart or not several):
        name = apart[0] if apart else next((name for name in NAMES[:3] if ids(name)), "")
        if len(set(ids(name))) == len(ids(name)):
            expected = {text: str(row.get(name, "")) for text, row in zip(texts, rows, strict=True)}
    assert {text: "" if name.startswith("text-") else name for text, name in found.items()} == expected


def test_groups_of_examples_are_fields_of_the_query_also_as_text(tmp_path):
    rows = [{"inputs": {"question": f"question {n}?"}, "outputs": {"relevant_ids": [f"d{n}"]}} for n in "ab"]
    imported(tmp_path, "examples.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    as_objects = written(tmp_path / "out")
    assert list(as_objects[1].values()) == [{"da": 1}, {"db": 1}]
    cells = [{name: json.dumps(group) for name, group in row.items()} for row in rows]
    imported(tmp_path, "examples.json", json.dumps(cells))
    assert written(tmp_path / "out") == as_objects


def test_records_of_trulens_say_how_their_questions_are_read(tmp_path):
    table = "record_id,app_id,input,output,Groundedness\nr1,a,what is x?,y,1.0\n"
    with pytest.raises(BadValue, match=r"records of TruLens .* `columns='query=input'`"):
        imported(tmp_path, "t.csv", table)
    imported(tmp_path, "t.csv", table, columns="query=input")
    assert list(written(tmp_path / "out")[0].values()) == ["what is x?"]


@pytest.mark.parametrize(
    "name", ["corpus.csv", "docs.parquet", "queries.csv", "documents.jsonl", "qrels/dev.csv", "qrels/x.json"]
)
def test_a_part_of_a_folder_in_a_format_that_it_may_not_have_is_told(name, tmp_path):
    assert name not in (*DOCUMENTS, *QUERIES, *QRELS)
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\td\t1\n")
    (tmp_path / name).write_text("_id,text\nd,one\n")
    for other in ("README.md", "qrels/notes.md", "corpus.jsonl.fields.weir", "corpus.jsonl.weir"):
        (tmp_path / other).write_text("words")
    with pytest.warns(LossWarning) as said:
        weir.load(tmp_path)
    assert [str(one.message) for one in said] == [f"{tmp_path / name} is not read; weir data import reads it"]


@pytest.mark.parametrize("blank", ["", "\n"])
@pytest.mark.parametrize("name", ["corpus.tsv", "queries.tsv"])
def test_a_header_is_no_record_wherever_it_stands_in_a_folder(blank, name, tmp_path):
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n1\t1\t1\n")
    rows = ["_id\ttext", "1\tone", "_id\ttext", "2\ttwo"]
    (tmp_path / name).write_text(blank + "\n".join(rows[:2]) + "\n")
    held = weir.load(tmp_path)
    assert list(held.corpus if name == "corpus.tsv" else held.all_queries) == ["1"]
    (tmp_path / name).write_text(blank + "\n".join(rows) + "\n")
    with pytest.raises(WeirError, match=rf"line {3 + len(blank)}: found the header again"):
        list(getattr(weir.load(tmp_path), "corpus" if name == "corpus.tsv" else "all_queries"))


@EASY
@given(
    columns=st.permutations(["query", "relevant_id", "note"]),
    separator=st.sampled_from([",", "\t", ";"]),
    at=st.integers(1, 3),
)
def test_a_header_again_is_refused_with_its_line(columns, separator, at, tmp_path):
    rows = [separator.join(f"{column} {n}" for column in columns) for n in range(3)]
    rows.insert(at, separator.join(columns))
    with pytest.raises(WeirError, match=rf"line {at + 2}: found the header again"):
        imported(tmp_path, "joined.csv", "\n".join([separator.join(columns), *rows]) + "\n")


def test_names_of_files_that_differ_in_capitals_are_told(tmp_path):
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels" / "dev.tsv").write_text("query-id\tcorpus-id\tscore\nq\td\t1\n")
    others = [tmp_path / "Corpus.jsonl", tmp_path / "qrels" / "test.TSV"]
    for path in others:
        path.write_text("{}\n")
    with pytest.warns(LossWarning) as said:
        weir.load(tmp_path)
    assert [str(one.message).partition(" is not read")[0] for one in said] == list(map(str, others))


PARTS = {
    "corpus": '{"_id": "d", "text": "x"}\n',
    "queries": '{"_id": "q", "text": "x"}\n',
    "qrels": "query-id\tcorpus-id\tscore\nq\td\t1\n",
    "README": "",
}
CALLED = [
    *(
        "corpus.jsonl",
        "Corpus.jsonl",
        "corpus.CSV",
        "corpus.jsonl.gz",
        "queries.tsv",
        "queries.jsonl",
        "QUERIES.jsonl",
    ),
    *(
        "qrels.tsv",
        "qrels/test.tsv",
        "qrels/dev.csv",
        "Qrels/Dev.tsv",
        "qrels/dev.TSV",
        "README.md",
        "qrels/notes.md",
    ),
]


@EASY
@given(st.sets(st.sampled_from(CALLED), min_size=1), st.sampled_from(["", "x/"]))
def test_a_zip_is_read_and_told_of_as_the_folder_in_it(names, top):
    """Each file that is called as a part is read or told by name."""
    with TemporaryDirectory() as place:
        folder, packed = Path(place) / "c", Path(place) / "c.zip"
        with zipfile.ZipFile(packed, "w") as archive:
            for name in names:
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                text = PARTS[re.split("[./]", name if "README" in name else name.lower())[0]]
                (folder / name).write_text(text)
                archive.writestr(top + name, text)
        found = []
        for at, inside in ((folder, f"{folder}/"), (packed, f"{packed}/{top}")):
            try:
                layout = find_layout(at)
                read = [layout.documents, layout.queries, *layout.qrels.values()]
                told = [one.replace("unpacked, ", "") for one in left_out(layout)]
                found.append([re.sub(re.escape(inside), "", str(one)) for one in [*read, *told]])
            except FormatError as error:
                found.append(sorted(name for name in names if Path(name).name in str(error)))
        assert found[0] == found[1]
        assert all(any(name in one for one in found[0]) for name in names if not name.endswith(".md"))


@pytest.mark.parametrize(
    "names",
    [("query-id", "corpus-id", "score"), ("query_id", "doc_id", "grade"), ("query_id", "doc_id", "clicks")],
)
@pytest.mark.parametrize("at", [0, 1])
@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ([7.0, 8.0], ""),
        ([7.0, 2.0**53], "9007199254740992 as '.*' is a float, whose last digits are lost"),
        ([np.float32(7), np.float32(2**24)], "16777216 as '.*' is a float, whose last digits are lost"),
        ([True, False], "a Boolean as"),
        ([["a", "b"], ["c"]], "a list as"),
        ([2**53 + 1, 18446744073709551615], ""),
    ],
)
def test_cells_that_can_be_no_identifier_are_refused_by_every_reader_of_tables(
    names, at, cells, said, tmp_path
):
    if at and isinstance(cells[0], list) and names[2] == "grade":
        return  # documents of one grade
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {names[0]: ["x", "y"], names[1]: ["a", "b"], names[2]: [1, 1], "impressions": [60, 60]}
    columns[names[at]] = pa.array(cells, pa.uint64()) if cells[0] == 2**53 + 1 else cells
    if names[2] != "clicks":
        del columns["impressions"]
    parquet.write_table(pa.table(columns), tmp_path / "t.parquet")
    choices = Choices(allow_loss=True)
    if not said:
        weir.import_files(tmp_path / "t.parquet", tmp_path / "out", choices=choices)
        [judged] = map(read_qrels, (tmp_path / "out" / "qrels").iterdir())
        held = [q for q in judged] if at == 0 else [d for row in judged.to_dict().values() for d in row]
        assert held == [str(int(one)) for one in cells]
        return
    try:
        told = str(
            weir.import_files(tmp_path / "t.parquet", tmp_path / "out", choices=choices).files[0][
                "refused_rows"
            ]
        )
    except WeirError as error:
        told = str(error)
    assert re.search(said, told)


@EASY
@given(
    ids=st.lists(st.sampled_from("abcdefg"), min_size=1, max_size=6, unique=True),
    name=st.sampled_from(["rank", "Rank", "position", "doc_position", "ordinal"]),
    start=st.sampled_from([0, 1]),
    text=st.booleans(),
    scored=st.booleans(),
    data=st.data(),
)
def test_members_of_a_list_stand_at_their_ranks_in_whatever_order_they_are_listed(
    ids, name, start, text, scored, data, tmp_path
):
    members = [
        {"id": one, name: n + start}
        | ({"text": f"text {one}"} if text else {})
        | ({"score": -n} if scored else {})
        for n, one in enumerate(ids)
    ]
    shuffled = data.draw(st.permutations(members))
    report = imported(tmp_path, "r.json", json.dumps([{"query": "red shoes", "results": shuffled}]))
    [[ranking]] = [list(run.values()) for run in written(tmp_path / "out")[2].values()]
    assert list(ranking) == ids
    assert not [one for one in report.files[0]["left_out"] if one.endswith(name)]
    odd = [one | {name: 7 * n + 3} for n, one in enumerate(shuffled)]  # as of chunks within documents
    if fold(name) != "rank":
        report = imported(tmp_path, "r.json", json.dumps([{"query": "red shoes", "results": odd}]))
        [[ranking]] = [list(run.values()) for run in written(tmp_path / "out")[2].values()]
        assert list(ranking) == [one["id"] for one in (members if scored else odd)] or scored


@pytest.mark.parametrize("names", [("Train", "TEST"), ("dev", "Dev"), ("Mine", "mine")])
def test_usual_splits_are_the_same_in_any_case(names, tmp_path):
    rows = [
        {"query": f"question {n}", "relevant_ids": [n], "split": name}
        for n, name in zip("ab", names, strict=True)
    ]
    imported(tmp_path, "g.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    held = {path.stem for path in (tmp_path / "out" / "qrels").iterdir()}
    assert held == ({name.lower() for name in names} if "Mine" not in names else set(names))


@EASY
@given(
    scores=st.lists(st.sampled_from([None, 0.1, 0.5, -2, "0.3", "x", float("nan")]), min_size=1, max_size=6),
    within=st.booleans(),
)
def test_scores_that_a_ranking_does_not_use_are_counted(scores, within, tmp_path):
    ids = [f"d{n}" for n in range(len(scores))]
    row: dict[str, object] = {"query": "red shoes", "retrieved_ids": ids, "scores": scores}
    if within:
        members = [{"id": one, "score": score} for one, score in zip(ids, scores, strict=True)]
        row = {"query": "red shoes", "results": members}
    try:
        report = imported(tmp_path, "r.json", json.dumps([row]))
    except WeirError:
        return
    [[ranking]] = [list(run.values()) for run in written(tmp_path / "out")[2].values()]
    numbers = [float(one) for one in scores if one is not None and one != "x" and float(one) == float(one)]
    assert sorted(ranking) == ids
    kept = len(numbers) == len(ids) and list(ranking.values()) == sorted(numbers, reverse=True)
    said = " ".join([*report.whole["notes"], *report.files[0]["left_out"]])
    assert kept or "order of the file is kept" in said
    if len(numbers) < len(ids):
        unused = "scores in rankings of which documents have none"
        assert report.files[0]["left_out"].get(unused, 0) == len(numbers)


@pytest.mark.parametrize("found", [[], ["a"], [{"id": "a", "score": 0.5}]])
@pytest.mark.parametrize(
    ("error", "failed"),
    [
        ("timeout", True),
        ({"code": 500}, True),
        (True, True),
        (None, False),
        ("", False),
        (False, False),
        ("none", False),
        (0, False),
        (0.25, False),
    ],
)
def test_a_search_that_failed_is_no_empty_ranking(found, error, failed, tmp_path):
    rows = [
        {"query": "red shoes", "results": found, "Error": error},
        {"query": "wool socks", "results": ["b"]},
    ]
    rows[1]["results"] = [{"id": "b", "score": 0.5}] if found and found != ["a"] else ["b"]
    report = imported(tmp_path, "r.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    [run] = written(tmp_path / "out")[2].values()
    assert len(run) == 2 - failed
    assert ("the search failed" in str(report.files[0]["refused_rows"])) == failed


LISTED = {
    "ragas": lambda members: {"user_input": "q", "retrieved_contexts": members, "reference_contexts": ["c"]},
    "ragas ids": lambda members: {
        "user_input": "q",
        "retrieved_context_ids": members,
        "reference_context_ids": ["c"],
    },
    "deepeval": lambda members: {
        "input": "q",
        "expected_output": "x",
        "retrieval_context": members,
        "context": ["c"],
    },
    "llama": lambda members: {"examples": [{"query": "q", "reference_contexts": members}]},
    "pairs": lambda members: {
        "queries": {"q": "text"},
        "corpus": {"c": "x"},
        "relevant_docs": {"q": members},
    },
    "records": lambda members: {"query": "q", "retrieved": members, "relevant": ["c"]},
    "lists": lambda members: {"q": members},
}


@EASY
@given(
    kind=st.sampled_from(list(LISTED)),
    members=st.lists(st.sampled_from(["c", "d", "e"]), min_size=1, max_size=3, unique=True),
    odd=st.sampled_from([None, True, False, "", " ", [], ["f", "g", "h"], {}]),
    at=st.integers(0, 3),
)
def test_a_member_of_a_list_that_is_no_document_is_refused(kind, members, odd, at, tmp_path):
    """Left out in silence, it would move those after it to better ranks."""
    path, as_kind = tmp_path / "x.json", "list-run" if kind == "lists" else ""

    def read(listed):
        path.write_text(json.dumps(LISTED[kind](listed)))
        choices = Choices(allow_disjoint=True)
        weir.import_files([path], tmp_path / "out", as_kind=as_kind, choices=choices)

    read(members)
    with pytest.raises(WeirError, match=r"no text|no document|no lists|found nothing|Boolean"):
        read([*members[:at], odd, *members[at:]])


@given(count=st.integers(1, 4), here=st.sets(st.integers(0, 3), min_size=1), known=st.booleans())
def test_a_file_in_shards_is_read_whole_or_refused(count, here, known):
    """Also as a folder in the hub's layout, of which only some shards were fetched."""
    here = {number % count for number in here}
    with TemporaryDirectory() as place:
        folder = Path(place) / "data"
        texts = {
            "queries/queries-00000-of-00001.jsonl": {"_id": "q", "text": "x"},
            "default/test-00000-of-00001.jsonl": {"query-id": "q", "corpus-id": f"d{min(here)}", "score": 1},
        }
        shards = {
            f"corpus/corpus-{n:05}-of-{count:05}.jsonl": {"_id": f"d{n}", "text": f"x{n}"} for n in here
        }
        for name, row in {**texts, **shards}.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(json.dumps(row))

        def documents() -> int:
            if known:
                return len(weir.load(folder).corpus)
            weir.import_files([folder / name for name in shards], Path(place) / "out")
            return len((Path(place) / "out" / "corpus.jsonl").read_text().splitlines())

        if len(here) < count:
            with pytest.raises(WeirError, match=rf"found {len(here)} of {count} shards"):
                documents()
        else:
            assert documents() == count


@EASY
@given(
    query=st.sampled_from(["query_id", "qid", "topic_id", "topic", "term"]),
    doc=st.sampled_from(["doc_id", "docno", "chunk_id", "url", "document"]),
    text=st.sampled_from(["text", "contents", "page_content", "passage_text"]),
    grade=st.sampled_from(["relevance", "label", "rating", "judgment", "is_relevant", "relevant"]),
    order=st.permutations(range(4)),
)
def test_judgments_beside_texts_are_never_taken_for_documents_alone(query, doc, text, grade, order, tmp_path):
    columns = [query, doc, text, grade]
    rows = [
        ["q1", "d1", "some words", "1"],
        ["q2", "d1", "some words", "0"],
        ["q2", "d2", "other words", "1"],
    ]
    table = "\n".join(",".join(row[at] for at in order) for row in [columns, *rows]) + "\n"
    try:
        imported(tmp_path, "table.csv", table)
    except BadValue as error:
        asked = str(error)
    else:
        asked = ""
    if asked:
        assert re.search("as_kind|columns", asked)
        return
    judged = {
        line.partition("\t")[0] for line in (tmp_path / "out/qrels/test.tsv").read_text().splitlines()[1:]
    }
    assert len(judged) == 2
    assert len((tmp_path / "out" / "corpus.jsonl").read_text().splitlines()) == 2


@EASY
@given(rows=st.integers(2, 40), other=st.integers(0, 4), ranked=st.booleans())
def test_the_share_of_rows_lost_counts_rows_whatever_else_a_row_holds(rows, other, ranked, tmp_path):
    """A document with its judgment and its score is one row, as a document alone is."""
    other = min(other, rows - 1)
    table = ["query_id,doc_id,text,relevance" + ",score" * ranked]
    for n in range(rows):
        doc, text = ("d0", f"another {n}") if 0 < n <= other else (f"d{n}", f"text {n}")
        table.append(f"q{n},{doc},{text},1" + f",{n}.5" * ranked)
    path = tmp_path / "table.csv"
    path.write_text("\n".join(table) + "\n")
    try:
        weir.import_files([path], tmp_path / "out")
        said = ""
    except BadValue as error:
        said = str(error)
    assert (f"{other} of {rows} rows cannot be imported" in said) == (10 * other > rows)
    assert bool(said) == (10 * other > rows)
