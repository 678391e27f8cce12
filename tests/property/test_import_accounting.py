"""Every cell that an import reads is used, kept as metadata, or named with a count; tables and objects agree."""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
import warnings
from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.imports import imported, report_of, written

from weir.errors import BadValue, WeirError
from weir.files.column_names import field_names
from weir.files.layouts import find_layout, left_out
from weir.files.runs import read_qrels
from weir.plugins.importing.cells import listed, plain_text
from weir.plugins.importing.importer import import_files

EACH = settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
TEXT = (
    st.text("ab ,;'\"\n\té[", min_size=1, max_size=9)
    .map(str.strip)
    .filter(lambda t: t[:1] not in ("", "[", "#"))
)
SENTENCE = TEXT.map(lambda text: f"what {text}")
EXTRA = st.sampled_from(["", "x", "why, then", 'say "it"', "two\nlines", "1.10", "007"])
ROW = st.tuples(
    st.sampled_from(["what is, a weir", "how\nlong"]) | SENTENCE,
    st.sampled_from("abcdef"),
    st.integers(0, 3),
    EXTRA,
    EXTRA,
)


def queries_of(out):
    """Text -> metadata of the queries written."""
    path = out / "queries.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return {row["text"]: row.get("metadata", {}) for row in rows}


def judged(out):
    """(text of the query, document) -> grade."""
    texts, qrels, _ = written(out)
    return {(texts[query], doc): grade for query, row in qrels.items() for doc, grade in row.items()}


def told_again(out):
    """What is said of losses each time that the folder, or its file of judgments alone, is used."""
    sentences = list(left_out(find_layout(out)))
    if (judgments := out / "qrels" / "test.tsv").exists():
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            read_qrels(judgments)
        assert [str(one.message) for one in said] == sentences
    return " ".join(sentences)


def expected(rows):
    """Judgments, metadata and what is left out of sound rows (query, document, grade, note, remark)."""
    by_query = {}
    for row in rows:
        by_query.setdefault(row[0], []).append(row)
    metadata, left = {query: {} for query in by_query}, Counter()
    for at, name in ((3, "note"), (4, "remark")):
        of_rows = any(len({row[at] for row in several} - {""}) > 1 for several in by_query.values())
        for query, several in by_query.items():
            values = [row[at] for row in several]
            if len(set(values)) == 1 and not of_rows:
                metadata[query] |= {name: values[0]} if values[0] else {}
            else:
                left[name] += sum(map(bool, values))
    return {(row[0], row[1]): row[2] for row in rows}, metadata, dict(+left)


@EACH
@given(
    rows=st.lists(ROW, min_size=1, max_size=8, unique_by=lambda row: row[:2]),
    order=st.permutations(range(5)),
    odd=st.lists(st.sampled_from(["", "more", "fewer"]), min_size=8, max_size=8),
    separator=st.sampled_from(",\t;"),
    ends=st.sampled_from(["\n", "\r\n"]),
)
def test_tables_of_any_shape_and_the_same_objects_give_what_the_csv_module_reads(
    tmp_path, rows, order, odd, separator, ends
):
    names = ["query", "doc_id", "grade", "note", "remark"]
    header = [names[at] for at in order]
    file, sound, lost = io.StringIO(newline=""), [], []
    out = csv.writer(file, delimiter=separator, lineterminator=ends, quoting=csv.QUOTE_ALL)
    out.writerow(header)
    for row, kind in zip(rows, odd, strict=False):
        cells = [row[at] for at in order]
        if kind == "fewer" and names[order[-1]] in ("note", "remark"):
            cells = cells[:-1]
            read = (*row[: order[-1]], "", *row[order[-1] + 1 :])
        else:
            read = row
        (lost if kind == "more" else sound).append(read)
        out.writerow([*cells, "then"] if kind == "more" else cells)
    grades, metadata, left = expected(sound)
    name = "golden.tsv" if separator == "\t" else "golden.csv"
    if not sound:
        with pytest.raises(WeirError, match="more cells than columns"):
            imported(tmp_path, name, file.getvalue())
        return
    report = imported(tmp_path, name, file.getvalue())
    assert judged(tmp_path / "out") == grades
    assert queries_of(tmp_path / "out") == metadata
    told = report.files[0]
    assert (told["left_out"], told["rows_refused"]) == (left, len(lost))
    assert all(f"{name} ({count})" in told_again(tmp_path / "out") for name, count in left.items())
    objects = [dict(zip(header, (row[at] for at in order), strict=True)) for row in sound]
    again = imported(tmp_path, "golden.jsonl", "".join(json.dumps(one) + "\n" for one in objects))
    assert (judged(tmp_path / "out"), queries_of(tmp_path / "out")) == (grades, metadata)
    assert again.files[0]["left_out"] == left


CELL = st.sampled_from(["", "x", "y", "7"])


@EACH
@given(
    rows=st.lists(st.tuples(st.sampled_from("pq"), st.sampled_from("abcdef"), CELL, CELL, CELL), min_size=2, max_size=8,
                  unique_by=lambda row: row[:2]),
    names=st.permutations(["note", "anna", "Nr", "assessor", "chunk_id", "rank_of_it"]),
    texts=st.booleans(),
)  # fmt: skip
def test_each_cell_beside_judgments_is_kept_or_counted_also_where_queries_have_no_text(
    tmp_path, rows, names, texts
):
    head = ["query_id", *["query"] * texts, "doc_id", "grade", *names[:3]]
    table = [head] + [[row[0], *[f"what {row[0]}"] * texts, row[1], "1", *row[2:]] for row in rows]
    columns = {"grade": "grade", "doc": "doc_id"}
    text = "".join(",".join(line) + "\n" for line in table)
    told = imported(tmp_path, "g.csv", text, columns=columns).files[0]["left_out"]
    kept = queries_of(tmp_path / "out")
    assert bool(kept) == texts
    for at, name in enumerate(names[:3], 2):
        written_cells = sum(
            bool(row[at]) and kept.get(f"what {row[0]}", {}).get(name) == row[at] for row in rows
        )
        assert written_cells + told.get(name, 0) == sum(bool(row[at]) for row in rows)
        if name in ("assessor", "chunk_id"):  # of the judgment
            assert not written_cells


SCALAR = st.sampled_from([None, True, 7, 1.5, "", "x y", "1.10"])
NESTED = st.recursive(
    SCALAR, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=3), max_leaves=6
)  # fmt: skip
MORE = st.dictionaries(st.sampled_from(["year", "author", "meta", "tags", "Page No"]), NESTED, max_size=4)


def given_fields(fields):
    return {name: value for name, value in fields.items() if value not in (None, "", [], {})}


@EACH
@given(
    documents=st.lists(MORE, min_size=1, max_size=5),
    first=st.booleans(),
    name=st.sampled_from(["text", "body", "page_content", "Passage"]),
)
def test_every_field_of_a_document_is_kept_however_deep(tmp_path, documents, first, name):
    rows = []
    for n, more in enumerate(documents):
        own = {"id": f"d{n}", name: f"text {n}"}
        rows.append({**own, **more} if first else {**more, **own})
    imported(tmp_path, "corpus.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    found = [json.loads(line) for line in (tmp_path / "out" / "corpus.jsonl").read_text().splitlines()]
    assert [(one["_id"], one["text"], one.get("metadata", {})) for one in found] == [
        (f"d{n}", f"text {n}", given_fields(more)) for n, more in enumerate(documents)
    ]


@EACH
@given(
    members=st.lists(
        st.tuples(st.sampled_from("abc"), MORE), min_size=1, max_size=3, unique_by=lambda one: one[0]
    ),
    more=MORE,
    shuffle=st.randoms(),
)
def test_every_field_of_a_golden_row_is_kept_or_named_with_a_count(tmp_path, members, more, shuffle):
    relevant = [{"id": doc, **fields} for doc, fields in members]
    for one in relevant:
        items = list(one.items())
        shuffle.shuffle(items)
        one.clear()
        one.update(items)
    row = {"query": "what is it", "relevant": relevant, **more}
    told = imported(tmp_path, "g.jsonl", json.dumps(row) + "\n").files[0]
    assert judged(tmp_path / "out") == {("what is it", doc): 1 for doc, _ in members}
    assert queries_of(tmp_path / "out")["what is it"] == given_fields(more)
    named = Counter(f"relevant.{name}" for _, fields in members for name in given_fields(fields))
    assert set(told["left_out"]) == set(named)


IDENTIFIER = st.sampled_from(["d1", "egg.pdf", "007", "1.10", "it's", 'a"b', "a b", "x,y", "é", "...", "-1"])


def bare(ids):
    return f"[{', '.join(ids)}]" if not set("".join(ids)) & set("'\",. ") else json.dumps(ids)


SPELLINGS = {
    "json": json.dumps,
    "python": repr,
    "tuple": lambda ids: repr(tuple(ids)),
    "numpy": lambda ids: str(np.array(ids, dtype=object)),
    "numpy text": lambda ids: str(np.array(ids)),
    "array": lambda ids: repr(np.array(ids, dtype=object)),
    "index": lambda ids: f"Index({ids!r}, dtype='object')",
    "bare": bare,
}


@pytest.mark.parametrize("spelling", SPELLINGS)
@EACH
@given(ids=st.lists(IDENTIFIER, min_size=2, max_size=40), cut=st.floats(0.05, 0.95))
def test_a_list_is_read_as_it_was_or_refused_however_a_text_spells_it(spelling, ids, cut):
    text = SPELLINGS[spelling](ids)
    assert list(map(plain_text, listed(text))) == ids
    shorter = text[: max(2, int(len(text) * cut))]
    if spelling not in ("tuple", "array", "index"):
        with pytest.raises(ValueError, match="list"):
            listed(shorter)


@pytest.mark.parametrize(
    "text", [str(np.arange(2000)), str(np.array(["d"] * 2000)), "[d1, ..., d9]", "['a', ...]"]
)
def test_a_list_of_which_members_are_left_out_is_refused(text):
    with pytest.raises(ValueError, match="left out"):
        listed(text)


@pytest.mark.parametrize("numbers", [[3, 17], [1.5, 2.25], [1e5, 2.0]])
def test_numbers_keep_their_spelling(numbers):
    assert list(map(plain_text, listed(str(np.array(numbers))))) == str(np.array(numbers))[1:-1].split()
    assert list(map(plain_text, listed("[1.10, 1e5, 7, 1.0]"))) == ["1.10", "1e5", "7", "1.0"]


TWO = ["chunk_id", "doc_id", "id", "source", "url", "passage_id"]


@pytest.mark.parametrize(("one", "other"), list(itertools.combinations(TWO, 2)))
def test_two_identifiers_of_a_document_are_asked_about_the_same_in_any_order(tmp_path, one, other):
    said = []
    for names in ([one, other], [other, one]):
        member = {name: f"x-{name}" for name in names}
        with pytest.raises(BadValue) as caught:
            imported(tmp_path, "g.json", json.dumps([{"query": "what is it", "relevant": [member]}]))
        said.append(str(caught.value))
        chosen = imported(
            tmp_path,
            "g.json",
            json.dumps([{"query": "what is it", "relevant": [member]}]),
            columns={"doc": one},
        )
        assert judged(tmp_path / "out") == {("what is it", f"x-{one}"): 1}
        assert chosen.files[0]["left_out"] == {f"relevant.{other}": 1}
    assert said[0] == said[1]
    assert (
        f"{min(one, other)} and {max(one, other)} could each be the doc; choose one, as in `columns={{'doc': "
        in said[0]
    )


FLAGS = {
    "yes": 1,
    "no": 0,
    "irrelevant": 0,
    "Not relevant": 0,
    "true": 1,
    "False": 0,
    "0": 0,
    "1": 1,
    "2": 2,
    "3": 3,
}


@pytest.mark.parametrize("name", ["relevant", "is_relevant", "label", "Relevance"])
@pytest.mark.parametrize("doc", ["doc_id", "source", "document"])
@EACH
@given(flags=st.lists(st.sampled_from(sorted(FLAGS)), min_size=2, max_size=6), ahead=st.booleans())
def test_flags_and_few_numbers_beside_documents_are_grades(tmp_path, name, doc, flags, ahead):
    header = ["query", name, doc] if ahead else [doc, name, "query"]
    rows = [{"query": "what is it", name: flag, doc: f"d{n}.pdf"} for n, flag in enumerate(flags)]
    table = "\n".join(",".join(row[column] for column in header) for row in rows)
    grades = {("what is it", f"d{n}.pdf"): FLAGS[flag] for n, flag in enumerate(flags)}
    imported(tmp_path, "j.csv", ",".join(header) + "\n" + table + "\n")
    assert judged(tmp_path / "out") == grades
    members = [
        {
            "id": row[doc],
            name: json.loads(row[name].lower()) if row[name].lower() in ("true", "false") else row[name],
        }
        for row in rows
    ]
    imported(tmp_path, "g.json", json.dumps([{"query": "what is it", "results": members}]))
    assert judged(tmp_path / "out") == grades


ROLES = sorted({name for role in field_names().roles for tier in field_names().roles[role] for name in tier})
TOKENS = st.integers(10**6, 10**9).map("t{}x".format)
VALUES = st.recursive(
    TOKENS,
    lambda inner: (
        st.lists(inner, min_size=1, max_size=2)
        | st.dictionaries(st.sampled_from([*ROLES, "note"]), inner, min_size=1, max_size=2)
    ),
    max_leaves=4,
)


@settings(EACH, max_examples=150)
@given(
    core=st.sampled_from(
        [
            ("query", "relevant_ids"),
            ("query_id", "doc_id", "relevance"),
            ("query", "docs", "score"),
            ("query",),
        ]
    ),
    others=st.dictionaries(st.sampled_from([*ROLES, "note", "lang"]), VALUES, min_size=1, max_size=3),
    form=st.sampled_from(["jsonl", "csv"]),
)
def test_a_value_of_any_shape_under_any_name_is_kept_or_its_field_is_named(core, others, form, tmp_path):
    plain = {"relevance": 1, "score": 0.5, "relevant_ids": ["d1"]}
    row = {name: plain.get(name, f"a {name}") for name in core} | {
        k: v for k, v in others.items() if k not in core
    }
    path = tmp_path / f"g.{form}"
    if form == "jsonl":
        path.write_text(json.dumps(row) + "\n")
    else:
        out = io.StringIO()
        csv.writer(out).writerows(
            [row, [v if isinstance(v, str | int | float) else json.dumps(v) for v in row.values()]]
        )
        path.write_text(out.getvalue())
    try:
        report = import_files(path, tmp_path / "out")
    except WeirError:
        return
    files = [one for one in (tmp_path / "out").rglob("*") if one.is_file() and one.name != "import.json"]
    written_text, said = "".join(one.read_text() for one in files), " ".join(report.lines())
    told = told_again(tmp_path / "out")
    for name, value in others.items():
        called = [
            name,
            *(role for role, tiers in field_names().roles.items() if name in frozenset().union(*tiers)),
        ]
        lost = [
            token for token in re.findall(r"t\d+x", json.dumps(value)) if token not in written_text + said
        ]
        assert name in core or not lost or any(one in told for one in (*called, "without")), (lost, said)


HIT = {"_index": "i", "_id": "d1", "_score": 1.5, "_source": {"body": "a text"}}
MEMBER = {"id": "d1", "explain": {"match": True}, "rated_only": False}
OBJECTS = {
    "search": {"took": 1, "_shards": {"failed": 0}, "hits": {"total": {"value": 1}, "hits": [HIT]}},
    "searches": {"red cats": {"hits": {"hits": [HIT]}}, "blue dogs": {"hits": {"hits": [HIT]}}},
    "rank-eval": {
        "metric_score": 0.5,
        "details": {"q1": {"hits": [{"hit": HIT, "rating": 1}], "metric_details": {"recall": {"n": 1}}}},
        "failures": {},
    },
    "rank-eval-request": {
        "requests": [
            {
                "id": "q1",
                "request": {"size": 10, "query": {"bool": {"must": {"match": {"body": "red cats"}}}}},
                "ratings": [{"_index": "i", "_id": "d1", "rating": 1}],
            }
        ],
        "metric": {"recall": {"k": 5}},
    },
    "vespa": {
        "root": {
            "id": "toplevel",
            "relevance": 1.0,
            "fields": {"totalCount": 1},
            "children": [{"id": "id:a:b::d1", "relevance": 0.5, "fields": {"documentid": "id:a:b::d1"}}],
        }
    },
    "quepid": {
        "id": 1,
        "name": "snap",
        "scores": [{"query_id": 7, "score": 0.5}],
        "docs": {"7": [MEMBER]},
        "queries": [{"query_id": 7, "query_text": "red cats", "ratings": {"d1": 1}}],
    },
    "rre": {
        "topics": [
            {
                "description": "pets",
                "query_groups": [
                    {
                        "name": "cats",
                        "queries": [{"template": "t", "placeholders": {"$query": "red cats"}}],
                        "relevant_documents": {"d1": {"gain": 2}},
                    }
                ],
            }
        ]
    },
    "workbench": {"judgmentRatings": [{"query": "red cats", "ratings": [{"docId": "d1", "rating": "1"}]}]},
    "pairs": {"queries": {"q1": "red cats"}, "corpus": {"d1": "a text"}, "relevant_docs": {"q1": ["d1"]}},
    "mteb": {
        "mteb_model_meta": {"model_name": "a/b", "revision": "x"},
        "default": {"test": {"q1": {"d1": 0.5}}},
    },
    "by name": {
        "a": {"question": "what is it", "relevant_ids": ["d1"], "meta": {"by": "me"}},
        "b": {"question": "what is it", "relevant_ids": ["d2"], "meta": {"by": "you"}},
    },
    "named twice": {"x1": {"qid": "q1", "question": "what is", "relevant_ids": ["d1"]}},
    "judged": [
        {"query_id": "q1", "doc_id": "d1", "grade": 1},
        {"query_id": "q1", "doc_id": "d2", "grade": 0},
    ],
    "ragas": [{"user_input": "what is it", "reference_contexts": ["a text"], "reference": "an answer"}],
    "ragas by id": [
        {"user_input": "what is it", "reference_context_ids": ["d1"], "retrieved_context_ids": ["d2", "d1"]}
    ],
    "phoenix": [
        {"context.span_id": "s", "document_position": 0, "input": "what is it", "document_id": "d1"},
        {"context.span_id": "s", "document_position": 1, "input": "what is it", "document_id": "d2"},
    ],
    "goldens": [{"input": "what is it", "context": ["a text"], "expected_output": "an answer"}],
}
MARK = "unheardof"


def places(value, path=()):
    """The path of each object, and of each value within objects, with a number for each member of a list."""
    yield path
    for name, inner in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(inner, (dict, list)):
            yield from places(inner, (*path, name))
        else:
            yield (*path, name)


def changed(value, path, new):
    """A copy in which `new` stands at a path, or, if an object does, beside its fields."""
    copy = json.loads(json.dumps(value))
    if not path:
        return copy | {MARK: new} if isinstance(copy, dict) else [*copy, new]
    inner = copy
    for name in path[:-1]:
        inner = inner[name]
    if isinstance(inner[path[-1]], dict):
        inner[path[-1]][MARK] = new
    else:
        inner[path[-1]] = new
    return copy


@pytest.mark.parametrize("name", list(OBJECTS))
@pytest.mark.parametrize("new", [MARK, {MARK: 1}, [MARK, "other"]], ids=["text", "object", "list"])
def test_whatever_stands_anywhere_in_an_object_is_written_refused_or_told(tmp_path, name, new):
    imported(tmp_path, f"{name}.json", json.dumps(OBJECTS[name]))
    before = set(report_of(tmp_path)["files"][0]["left_out"])
    for path in dict.fromkeys(places(OBJECTS[name])):
        out = tmp_path / "out"
        try:
            imported(tmp_path, f"{name}.json", json.dumps(changed(OBJECTS[name], path, new)))
        except WeirError:
            continue
        [file] = report_of(tmp_path)["files"]
        rest = "".join(
            one.read_text() for one in out.rglob("*") if one.is_file() and one.name != "import.json"
        )
        names = [one for one in path if isinstance(one, str)]
        parts = [".".join(names[:n]) for n in range(1, len(names) + 1)]
        if path[-1:] == ("_index",) or any("no query text found" in note for note in file["notes"]):
            continue  # one index needs no name
        told = MARK in rest + json.dumps([file["left_out"], file["notes"], file["refused_rows"]])
        left = set(file["left_out"])  # with * for names that are data
        known = any(
            re.fullmatch(re.escape(one).replace(r"\*", "[^.]*"), part) for one in left for part in parts
        )
        assert told or known or left - before or file["refused_rows"], (path, file)
