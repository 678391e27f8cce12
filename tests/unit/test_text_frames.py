"""Documents and queries from frames: whatever shape they have, they are the same texts."""

import pytest

import weir

pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
DOCUMENTS = {
    "1": {"title": "", "text": "red wine", "year": 2020},
    "b": {"title": "Bread", "text": "of France"},
}
QUERIES = {"7": "red", "q": "bread"}
CORPUS = [{"doc_id": name, **fields} for name, fields in DOCUMENTS.items()]
ASKED = [{"query_id": name, "text": text} for name, text in QUERIES.items()]


def frames(rows, key, **names):
    made = pd.DataFrame(rows)
    yield from (rows, made, made.set_index(key), pl.DataFrame(rows), pl.DataFrame(rows).to_arrow())
    for other in ({}, names):
        yield made.rename(columns={key: "id", **other})


def test_every_form_of_documents_and_queries_holds_the_same_texts():
    expected, texts = weir.Corpus.of(DOCUMENTS), weir.Queries.of(QUERIES).to_dict()
    for table in frames(CORPUS, "doc_id", text="contents"):
        made = weir.Corpus.of(table)
        assert list(made.items()) == list(expected.items())
        assert made.field_names == expected.field_names
    for table in [*frames(ASKED, "query_id", text="query"), pd.Series(QUERIES)]:
        assert weir.Queries.of(table).to_dict() == texts
    own = weir.Corpus.of(expected.to_frame()), weir.Queries.of(weir.Queries.of(QUERIES).to_frame())
    assert (own[0]["b"], own[1].to_dict()) == (expected["b"], texts)


def test_a_collection_and_a_search_take_frames_as_they_take_dicts():
    queries, corpus = pd.DataFrame(ASKED), pd.DataFrame(CORPUS)
    judged = pd.DataFrame({"query_id": ["7", "q"], "doc_id": ["1", "b"], "relevance": [1, 2]})
    mine = weir.Dataset.of(corpus, queries, judged, "mine")
    by_dicts = weir.Dataset.of(DOCUMENTS, QUERIES, {"7": {"1": 1}, "q": {"b": 2}}, "mine")
    assert mine.corpus.fingerprint == by_dicts.corpus.fingerprint
    assert (
        weir.BM25().index(corpus).search(queries).to_dict()
        == weir.BM25().index(DOCUMENTS).search(QUERIES).to_dict()
    )


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            lambda f: f.rename(columns={"doc_id": "key"}),
            "none of them is the identifier of documents; expected one called",
        ),
        (
            lambda f: f.drop(columns="text"),
            "none of them is the text of documents; expected one called 'text'",
        ),
        (
            lambda f: f.assign(docno=f.doc_id),
            "doc_id and docno could each be the identifier of documents; call one",
        ),
        (lambda f: pd.concat([f, f]), "row 3 has the identifier '1' again; remove the duplicates first"),
        (
            lambda f: f.assign(doc_id=[1.5, 2.5]),
            "row 1 has the identifier 1.5; expected a text or a whole number",
        ),
        (
            lambda f: f.assign(doc_id=["a", None]),
            "row 2 has the identifier (None|nan); expected a text or a whole number",
        ),
    ],
)
def test_a_table_that_leaves_a_text_open_is_one_line(change, says):
    with pytest.raises(weir.WeirError, match=says):
        weir.BM25().index(change(pd.DataFrame(CORPUS)))


def test_a_missing_text_is_empty():
    corpus = weir.Corpus.of(pd.DataFrame(CORPUS).assign(text=["red wine", None]))
    assert corpus["b"] == {"title": "Bread", "text": ""}
