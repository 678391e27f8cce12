"""The report of SciFact and NFCorpus: every number of the page is the store's."""

from __future__ import annotations

import pytest
from tests.unit import test_report as page_tests

import weir

pytestmark = pytest.mark.real


def test_every_number_of_the_page_is_that_of_the_store(shared, tmp_path):
    datasets = [str(shared / "data" / name) for name in ("scifact", "nfcorpus")]
    systems = ("bm25", 'bm25("lucene-multifield")', 'rrf(bm25, bm25("lucene-multifield"))')
    weir.benchmark([*datasets, "brook-facts"], systems, ["nDCG@10", "R@100"], out=tmp_path / "results")
    made = weir.report(tmp_path / "results", audit=False)
    text = made.to_html()
    page = page_tests.Page(text)
    page_tests.test_every_mean_of_the_grid_is_that_of_the_store(made, page, tmp_path / "results")
    page_tests.test_every_value_of_every_query_is_packed(made, page, tmp_path / "results")
    page_tests.test_verdicts_and_ranks_are_those_of_compare(made, tmp_path / "results")
    page_tests.test_the_page_asks_for_nothing_and_runs_nothing_of_the_data(page)
    assert len(text) < 3_000_000
