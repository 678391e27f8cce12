"""The tables of BEIR's paper from its published scores: averages and counts as they were recomputed from its cells.

The ratios of means stand in ../shared/facts/README.md ("Errors and traps"), with the counts of its text; the row that the
paper prints differs from both ways to compute it.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weir.datasets.load import load
from weir.errors import BadValue
from weir.experiment.published import published
from weir.plugins.report.paper import (
    CollectionFacts,
    PaperScore,
    collection_table,
    paper_table,
    published_table,
    published_tables,
)

RATIOS = {"DeepCT": -27.5, "SPARTA": -19.9, "docT5query": 2.5, "DPR": -44.0, "ANCE": -8.2, "TAS-B": -2.0, "GenQ": -3.1,
          "ColBERT": 1.7, "BM25+CE": 12.5}  # fmt: skip
HIGHER = {"BM25+CE": 16, "ColBERT": 9, "docT5query": 12}


@pytest.fixture(scope="module")
def second():
    return published_table("BEIR paper")


def test_averages_against_bm25_and_counts_are_those_of_the_cells(second):
    *rows, averages, against, above, below = second.rows
    assert len(rows) == 19
    shown = dict(zip(second.header[1:], (cell.text for cell in against[1:]), strict=True))
    assert {name: float(text.rstrip("%")) for name, text in shown.items() if text} == RATIOS
    counts = dict(zip(second.header[1:], (cell.text for cell in above[1:]), strict=True))
    assert {name: int(counts[name]) for name in HIGHER} == HIGHER
    lower = dict(zip(second.header[1:], (cell.text for cell in below[1:]), strict=True))
    compared = {
        name: sum(1 for row in rows if row[second.header.index(name)].text not in ("", "–"))
        for name in HIGHER
    }
    assert all(HIGHER[name] + int(lower[name]) <= compared[name] for name in HIGHER)
    assert dict(zip(second.header, (cell.text for cell in averages), strict=True))["BM25"] == "0.423"


def test_marks_are_those_of_the_paper(second):
    by_dataset = {row[0].text: dict(zip(second.header, row, strict=True)) for row in second.rows}
    assert by_dataset["trec-covid"]["BM25+CE"].best
    assert by_dataset["nq"]["DPR"].text.endswith("‡")
    assert by_dataset["msmarco"]["BM25"].text == "0.228"
    latex = second.latex()
    assert r"\textbf{0.757}" in latex
    assert r"\underline{" in latex
    assert "averages leave out msmarco" in latex


def test_table_nine_is_recall(second):
    ninth = published_table("BEIR paper", "R@100")
    assert ninth.title == "R@100"
    average = ninth.rows[-4]
    columns = [n for n, cell in enumerate(average[1:], 1) if cell.value is not None]
    rows = [row for row in ninth.rows[:-4] if row[0].text != "msmarco"]
    shared = [row for row in rows if all(row[n].value is not None for n in columns)]
    assert len(columns) > 4
    for n in columns:  # every system over the same datasets
        assert average[n].value == pytest.approx(sum(row[n].value for row in shared) / len(shared))
    assert any("that both systems have" in note for note in ninth.notes)


def test_a_mean_over_other_datasets_is_never_compared():
    scores = {("a", "x"): PaperScore(0.5), ("b", "x"): PaperScore(0.1), ("a", "y"): PaperScore(0.6)}
    table = paper_table(scores, "nDCG@10", "x")
    assert not any(row[0].text.startswith("average") for row in table.rows)
    assert [(cell.text, cell.more) for cell in table.rows[-3]] == [
        ("against x", ""),
        ("", ""),
        ("+20.0%", "(1)"),
    ]
    assert any("their number in brackets" in note for note in table.notes)
    assert [[cell.text for cell in row] for row in table.rows[-2:]] == [
        ["datasets higher", "", "1"],
        ["datasets lower", "", "0"],
    ]


@given(st.sampled_from(published("scifact", measure="nDCG@10")), st.floats(-0.002, 0.002))
def test_a_dataset_counts_as_higher_or_lower_only_beyond_the_printed_digits(score, gap):
    ours, theirs = PaperScore(score.value + gap), PaperScore(score.value, published=score)
    away = PaperScore(0.5, published=None)
    scores = {("a", "x"): theirs, ("b", "x"): away, ("a", "y"): ours, ("b", "y"): away}
    for baseline, other in (("x", "y"), ("y", "x")):  # whichever of the two is the baseline
        higher, lower = paper_table(scores, "nDCG@10", baseline).rows[-2:]
        column = 1 + ["x", "y"].index(other)
        counted = int(higher[column].text) + int(lower[column].text)
        assert counted == (not score.agrees(ours.value))


def test_one_dataset_has_no_average_of_itself():
    scores = {("a", "x"): PaperScore(0.5), ("a", "y"): PaperScore(0.6)}
    assert [[cell.text for cell in row] for row in paper_table(scores, "nDCG@10", "x").rows] == [
        ["a", "0.500", "0.600"],
        ["against x", "", "+20.0%"],
    ]


def test_a_whole_group_counts_as_one_in_averages():
    scores = {(d, s): PaperScore(v) for d, s, v in (("a", "x", 0.2), ("b", "x", 0.4), ("c", "x", 0.9),
                                                     ("a", "y", 0.4), ("b", "y", 0.6), ("c", "y", 0.9))}  # fmt: skip
    table = paper_table(scores, "nDCG@10", "x", units={"a": "g", "b": "g", "c": "c"})
    assert [cell.text for cell in table.rows[-4]] == ["average of 2", "0.600", "0.700"]
    assert [cell.text for cell in table.rows[-3]] == ["against x", "", "+16.7%"]
    assert any("count as one" in note for note in table.notes)


def test_tables_of_cells_are_printed_as_they_are():
    cells = {(row[0].text, name): cell.text for table in ("BEIR table 3", "BEIR table 4", "Elastic table 2")
             for shown in [published_table(table)] for row in shown.rows
             for name, cell in zip(shown.header[1:], row[1:], strict=True)}  # fmt: skip
    assert cells["BM25+CE", "CPU, ms"] == "6100"
    assert cells["ColBERT", "CPU, ms"] == "–"
    assert cells["ANCE", "nDCG@10 annotated"] == "0.735"
    assert cells["trec-covid", "MiniLM-L-6-v2"] == "97.4"
    with pytest.raises(BadValue, match="BEIR table 4"):
        published_table("BEIR table 5")


@pytest.mark.parametrize("name", ["labels", "published_as"])
def test_names_of_results_need_a_results_folder(name):
    with pytest.raises(BadValue, match=f"`{name}` names .*no results folder is given"):
        published_tables("BEIR paper", **{name: ["tuned=bm25"]})


def test_collections_are_counted_from_their_judgments():
    """Facts: ../shared/facts/datasets.csv; TREC-NEWS has 53.35 relevant documents a query, where the paper prints 19.6."""
    table = published_table("BEIR table 1")
    shown = {
        row[0].text: dict(zip(table.header, (cell.text for cell in row), strict=True)) for row in table.rows
    }
    assert len(shown) == 19
    assert shown["trec-news"]["relevant a query"] == "53.35"
    assert shown["cqadupstack"]["documents"] == "457,199"
    assert shown["trec-covid"]["positive"] == "24,673"
    assert shown["robust04"]["relevant a query"] == "–"
    assert published_table("Elastic table 1").rows == table.rows


def test_one_s_own_collections_make_the_same_table():
    own = collection_table([CollectionFacts.of_card(load("brook-facts").card)])
    assert own.header == published_table("BEIR table 1").header
    assert [cell.text for cell in own.rows[0][4:6]] == ["97", "21"]
