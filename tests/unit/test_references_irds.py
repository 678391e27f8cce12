"""irds:... by the real package, with a data set that is registered there by the test."""

from __future__ import annotations

import subprocess
import sys
from typing import NamedTuple

import pytest

import weir
from weir.errors import BadValue, DownloadError, UnknownName

package = pytest.importorskip("ir_datasets", reason="ir_datasets is not installed (the extra irds)")


class Doc(NamedTuple):
    doc_id: str
    title: str
    body: str
    year: int
    authors: tuple

    def default_text(self):
        return self.body


class Topic(NamedTuple):
    query_id: str
    title: str
    description: str

    def default_text(self):
        return self.title


class Qrel(NamedTuple):
    query_id: str
    doc_id: str
    relevance: int
    iteration: str


class Subtopic(NamedTuple):
    query_id: str
    doc_id: str
    relevance: int
    subtopic_id: str


def handler(base, name, rows):
    """A handler of the package over rows, or one that fails."""

    def give(self):
        if isinstance(rows, Exception):
            raise rows
        return iter(rows)

    return type("Own", (base,), {f"{name}_iter": give, f"{name}_cls": lambda self: type(rows[0])})()


DOCS = [Doc(f"d{n}", f"Weir {n}", f"a weir of {n} metres", 1900 + n, ("Q", "R")) for n in range(5)]
TOPICS = [Topic("1", "weir of 2 metres", "How high is it?"), Topic("2", "weir of 3 metres", "And that?")]
QRELS = [Qrel("1", "d2", 2, "0"), Qrel("2", "d3", 1, "0"), Qrel("2", "d1", -1, "0")]


@pytest.fixture(scope="module", autouse=True)
def registered():
    """The data sets weirs (documents), weirs/dev and weirs/diverse."""
    formats = package.formats
    docs = handler(formats.BaseDocs, "docs", DOCS)
    topics = handler(formats.BaseQueries, "queries", TOPICS)
    sets = {
        "weirs": [docs],
        "weirs/dev": [docs, topics, handler(formats.BaseQrels, "qrels", QRELS)],
        "weirs/diverse": [docs, topics, handler(formats.BaseQrels, "qrels", [Subtopic("1", "d2", 1, "a")])],
        "weirs/broken": [
            docs,
            topics,
            handler(formats.BaseQrels, "qrels", RuntimeError("All download\nsources failed")),
        ],
    }
    for name, parts in sets.items():
        package.registry.register(name, package.Dataset(*parts))
    yield
    for name in sets:
        del package.registry._registered[name]


def test_documents_queries_judgments_and_their_fields(home):
    said = []
    dataset = weir.load("irds:weirs/dev", watch=lambda what, done, total: said.append(what))
    assert dataset.corpus.view("title text").tolist()[2] == "Weir 2 a weir of 2 metres"
    assert dataset.store.metadata[2] == '{"year": 1902, "authors": ["Q", "R"]}'
    assert dataset.queries.to_dict() == {"1": "weir of 2 metres", "2": "weir of 3 metres"}
    assert dataset.qrels.to_dict() == {"1": {"d2": 2}, "2": {"d3": 1, "d1": -1}}
    assert (dataset.name, dataset.split, dataset.source) == ("irds:weirs/dev", "test", "irds:weirs/dev")
    assert said == [
        "irds:weirs/dev: the text of queries is title; other fields: description (irds:weirs/dev#description takes the first of them)"
    ]


def test_another_field_is_the_text_of_queries():
    assert weir.load("irds:weirs/dev#description").queries.to_dict()["1"] == "How high is it?"
    assert (
        weir.load("irds:weirs/dev#title+description").queries.to_dict()["2"] == "weir of 3 metres And that?"
    )
    with pytest.raises(UnknownName, match="field of queries of irds:weirs/dev named 'narrative'"):
        weir.load("irds:weirs/dev#narrative")


def test_documents_are_brought_once_and_read_without_the_package(home):
    first = weir.load("irds:weirs/dev")
    assert len(first.corpus) == 5
    code = "import sys; sys.modules['ir_datasets'] = None; import weir; print(len(weir.load('irds:weirs/dev').corpus))"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        == "5\n"
    )
    other = weir.load("irds:weirs/dev#description")
    assert other.layout.need_documents().path.read_bytes() == first.layout.need_documents().path.read_bytes()


def test_what_is_missing_is_one_line():
    with pytest.raises(
        BadValue, match=r"^irds:weirs has no queries and no judgments; weirs/dev, weirs/diverse"
    ):
        weir.load("irds:weirs")
    with pytest.raises(
        UnknownName, match="no data set of ir_datasets named 'weirs/def'; did you mean weirs/dev"
    ):
        weir.load("irds:weirs/def")
    with pytest.raises(BadValue, match="by subtopic; weir eval takes them as a file"):
        weir.load("irds:weirs/diverse")
    with pytest.raises(
        DownloadError,
        match=r"irds:weirs/broken: ir_datasets cannot give its qrels \(RuntimeError: All download sources",
    ):
        weir.load("irds:weirs/broken")
    with pytest.raises(BadValue, match="expected irds:identifier"):
        weir.load("irds:weirs dev")
