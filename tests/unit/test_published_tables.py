"""Tables of published scores: of every publisher, of the datasets and systems asked for, with one's own beside."""

from __future__ import annotations

import pytest

import weir
from tests.unit.cells import MANIFEST, QRELS, RUN, write_cell
from weir.cli import main
from weir.datasets import catalogue
from weir.errors import BadValue, UnknownName
from weir.experiment.published import published
from weir.plugins.report.paper import beside_tables, published_table
from weir.plugins.report.study import Study

PUBLISHERS = sorted({one.model.rpartition("[")[2].rstrip("]") for one in published()})


@pytest.mark.parametrize("publisher", PUBLISHERS)
def test_every_publisher_has_a_table_with_each_of_its_scores(publisher):
    table = published_table(publisher)
    own = [one for one in published(measure="nDCG@10") if one.model.endswith(f"[{publisher}]")]
    places = {(one.dataset, one.split) for one in own}
    # The average, unless too few places are shared; against the baseline, and counts.
    lone = any("averages need two datasets" in note for note in table.notes)
    assert len(table.rows) == len(places) + 4 - lone
    shown = [cell.text for line in table.rows[: len(places)] for cell in line[1:] if cell.text != "–"]
    assert len(shown) == len({(one.dataset, one.split, one.model) for one in own})


def test_datasets_and_systems_are_those_asked_for():
    table = published_table("BEIR paper", datasets=["scifact", "cqadupstack"], systems=["BM25", "ance"])
    assert table.header == ("dataset", "BM25", "ANCE")
    assert {line[0].text for line in table.rows[:-4]} == {"scifact", "cqadupstack"}
    for wrong in ({"datasets": ["nosuch"]}, {"systems": ["nosuch"]}):
        with pytest.raises(UnknownName):
            published_table("BEIR paper", **wrong)


def test_ones_own_scores_stand_beside_published_ones_with_both_conventions(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "weir.experiment.published.not_as_published", lambda cell, called: ""
    )  # these are cells of two documents
    for name, split in (("scifact", "test"), ("nfcorpus", "dev")):
        write_cell(
            tmp_path / name / "bm25-1111111111",
            RUN,
            MANIFEST | {"dataset": name, "split": split},
            ("nDCG@10",),
            QRELS,
        )
    table = published_table("BEIR paper", datasets=["scifact", "nfcorpus"], study=Study.of(tmp_path))
    assert table.header[-1] == "bm25 (here)"
    own = {line[0].text: line[-1].text for line in table.rows}
    assert own["nfcorpus"] == "–"  # of another split
    assert own["scifact"] not in ("", "–")
    assert any("scored by Weir" in note for note in table.notes)
    assert any("pytrec_eval" in note for note in table.notes)


def test_a_score_of_other_data_is_shown_and_counts_nowhere(tmp_path, monkeypatch):
    for name in ("scifact", "nfcorpus"):
        write_cell(
            tmp_path / name / "bm25-1111111111", RUN, MANIFEST | {"dataset": name}, ("nDCG@10",), QRELS
        )
    monkeypatch.setattr(
        "weir.experiment.published.not_as_published",
        lambda cell, called: "this is not scifact" if cell.collection == "scifact" else "",
    )
    study = Study.of(tmp_path)
    for name, turned in (("BEIR paper", False), ("BEIR paper", True)):
        table = beside_tables(study, name)[0] if turned else published_table(name, study=study)
        lines = list(zip(*table.rows, strict=True)) if turned else table.rows
        names = [line[0].text for line in table.rows] if turned else table.header
        own = next(n for n, called in enumerate(names) if called == "bm25 (here)")
        by_name = (
            dict(zip(table.header, lines, strict=True)) if turned else {row[0].text: row for row in lines}
        )
        assert (by_name["scifact"][own].more, by_name["nfcorpus"][own].more) == ("other data", "")
        assert not by_name["scifact"][own].best
        assert all(not key.startswith("average") or not line[own].value for key, line in by_name.items())
        assert "other data: this is not scifact" in table.notes


def test_a_page_lays_published_scores_of_its_collections_beside_one_by_one(tmp_path, monkeypatch):
    monkeypatch.setattr("weir.experiment.published.not_as_published", lambda cell, called: "")
    for name in ("scifact", "nfcorpus", "shop"):
        for system in ("bm25", "rm3"):
            about = {"dataset": name, "system": {"system": system}}
            write_cell(tmp_path / name / f"{system}-1", RUN, MANIFEST | about, ("nDCG@10", "AP"), QRELS)
    made = weir.report(tmp_path, audit=False, published="BEIR paper")
    assert "weir report results/ --published 'BEIR paper' -o report.html" in made.sections[-1].notes[0]
    [section] = [one for one in made.sections if one.name == "published"]
    [table] = section.tables  # nobody published AP
    assert table.header[:4] == ("system", "nfcorpus", "scifact", "average of 2")
    own, others = [r for r in table.rows if r[0].text.endswith("(here)")], table.rows[2:]
    assert [row[0].text for row in own] == ["bm25 (here)", "rm3 (here)"]
    there = {(one.model, one.dataset): one.value for one in published(measure="nDCG@10")}
    for row in others:
        for cell, dataset in zip(row[1:3], table.header[1:3], strict=True):
            assert cell.value == there.get((row[0].text, dataset))
    assert {row[0].text for row in others} == {
        model for model, dataset in there if dataset in table.header and model.endswith("[BEIR paper]")
    }
    assert any(note.startswith("source: BEIR paper (arXiv") for note in table.notes)
    assert "Beside published scores" in made.to_html()
    assert "Beside published scores" in made._repr_html_()
    page = tmp_path / "page.html"
    assert main(["report", str(tmp_path), "-o", str(page), "--no-audit", "--published", "BEIR paper"]) == 0
    assert "BM25+CE [BEIR paper]" in page.read_text()
    with pytest.raises(BadValue, match="nothing of 'Anserini' is published for"):
        weir.report(tmp_path, audit=False, published="Anserini", measures=["AP"])
    with pytest.raises(UnknownName, match="publisher"):
        weir.report(tmp_path, audit=False, published="nobody")


def test_with_a_folder_only_its_collections_are_shown_unless_others_are_named(tmp_path, monkeypatch):
    monkeypatch.setattr("weir.experiment.published.not_as_published", lambda cell, called: "")
    write_cell(tmp_path / "scifact" / "bm25-1", RUN, MANIFEST | {"dataset": "scifact"}, ("nDCG@10",), QRELS)
    study = Study.of(tmp_path)
    table, named = (
        published_table("BEIR paper", study=study, datasets=datasets)
        for datasets in ((), ["scifact", "nfcorpus"])
    )
    assert [row[0].text for row in table.rows if row[0].text in catalogue.collection_names()] == ["scifact"]
    assert any("collections of BEIR paper not in" in note for note in table.notes)
    assert {"scifact", "nfcorpus"} <= {row[0].text for row in named.rows}
