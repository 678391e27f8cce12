"""Collections whose query identifiers are those of unrelated documents: nothing is dropped or said for them."""

from __future__ import annotations

import pytest

from weir.api.collection_notes import collection_notes
from weir.datasets.load import load, self_matches

pytestmark = pytest.mark.real


@pytest.mark.parametrize("name", ["cranfield", "vaswani"])
def test_identifiers_that_coincide_are_not_enough(shared, tmp_path, monkeypatch, name):
    monkeypatch.setenv("WEIR_HOME", str(tmp_path))
    dataset = load(shared / "data" / name)
    assert (dataset.corpus.ids.codes(dataset.queries.ids.strings) >= 0).all()
    assert self_matches(dataset) == 0.0
    assert collection_notes(dataset, ["R@100"]) == []
