"""Tables of published scores: of every publisher, of the datasets and systems asked for, with one's own beside."""

from __future__ import annotations

import pytest

from tests.unit.cells import MANIFEST, QRELS, RUN, write_cell
from weir.errors import UnknownName
from weir.experiment.published import published
from weir.plugins.report.paper import published_table
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
        "weir.plugins.report.paper.not_as_published", lambda cell: ""
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
