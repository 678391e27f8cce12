"""weir data convert --collapse: rankings of passages become rankings of documents."""

from __future__ import annotations

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weir.cli import main
from weir.core.run import Run
from weir.errors import BadValue
from weir.files.runs import read_run

PASSAGES = "q1 Q0 d1#2 1 9 t\nq1 Q0 d2#1 2 8 t\nq1 Q0 d1#1 3 7 t\nq2 Q0 d3 1 5 t\nq2 Q0 d#4#1 2 4 t\n"
DOCUMENTS = {"q1": {"d1": 9.0, "d2": 8.0}, "q2": {"d3": 5.0, "d#4": 4.0}}
TABLE = [("d1#2", "d1"), ("d2#1", "d2"), ("d1#1", "d1"), ("d3", "d3"), ("d#4#1", "d#4"), ("other", "d9")]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.trec").write_text(PASSAGES)
    return tmp_path


def table(here, name, separator, head=""):
    text = head + "".join(f"{passage}{separator}{document}\n" for passage, document in TABLE)
    data = text.encode()
    (here / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return name


@pytest.mark.parametrize(
    "made",
    [
        lambda here: "#",
        lambda here: table(here, "t.tsv", "\t"),
        lambda here: table(here, "t.csv", ",", "chunk_id,doc_id\n"),
        lambda here: table(here, "t.tsv.gz", "\t", "Passage ID\tDocument\n"),
        lambda here: "./" + table(here, "parents", "\t"),
    ],
)
def test_the_best_passage_stands_for_its_document(here, capsys, made):
    assert main(["data", "convert", "p.trec", "d.json", "--collapse", made(here), "-q"]) == 0
    assert read_run("d.json").to_dict() == DOCUMENTS
    assert "2 queries and 4 documents returned, the best of 5 passages" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("collapse", "content", "said"),
    [
        ("::", None, "'::' stands in no identifier of a passage, such as 'd"),
        ("", None, "stands in no identifier"),
        ("missing.tsv", None, "missing.tsv"),
        ("t.tsv", "d1#2\td1\n", "no document of passage 'd2#1'"),
        ("t.tsv", "d1#2\td1\nd1#2\td2\n", "line 2: found passage 'd1#2' of 'd1' and of 'd2'"),
        ("t.tsv", "a\tb\tc\n", "line 1: found ['a', 'b', 'c']"),
        ("t.csv", "a,\n", "line 1: found ['a', '']"),
        ("t.tsv", "", "no passage"),
    ],
)
def test_what_names_no_documents_is_refused_and_writes_nothing(here, capsys, collapse, content, said):
    if content is not None:
        (here / collapse).write_text(content)
    assert main(["data", "convert", "p.trec", "d.trec", "--collapse", collapse, "-q"]) == 2
    assert said in capsys.readouterr().err
    assert not (here / "d.trec").exists()


def test_judgments_are_not_collapsed(here, capsys):
    (here / "q.trec").write_text("q1 0 d1#2 1\n")
    assert main(["data", "convert", "q.trec", "x.trec", "--kind", "qrels", "--collapse", "#", "-q"]) == 2
    assert "--collapse is about runs" in capsys.readouterr().err


@given(
    st.dictionaries(
        st.tuples(st.sampled_from(["q", "r"]), st.sampled_from("abc"), st.integers(0, 4)),
        st.integers(0, 9),
        min_size=1,
    )
)
def test_a_document_has_the_score_of_its_best_passage(scores):
    rankings: dict[str, dict[str, float]] = {}
    best: dict[str, dict[str, float]] = {}
    for (query, document, number), score in scores.items():
        rankings.setdefault(query, {})[f"{document}-{number}"] = float(score)
        own = best.setdefault(query, {})
        own[document] = max(own.get(document, 0.0), float(score))
    run = Run.of(rankings)
    assert run.collapsed("-").to_dict() == best
    assert run.collapsed({name: name[0] for name in run.docs}).to_dict() == best
    with pytest.raises(BadValue, match="no document of passage"):
        run.collapsed({})
