"""A record that was edited or cut is named by whatever reads its folder, and its system replaced by no other."""

from __future__ import annotations

import shutil
import warnings

import pytest

import weir
from weir.errors import StoreError

ASKED = {
    "results": weir.results,
    "compare": weir.compare,
    "efficiency": weir.efficiency,
    "report": lambda folder: weir.report(folder, audit=False),
    "pack": lambda folder: weir.pack_results(folder, folder.parent / "p.zip"),
    "reproduce": weir.reproduce,
    "audits": weir.audits,
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole") / "results"
    weir.benchmark("brook-facts", ["bm25", "rm3", "bm25(b=0.0)"], "RR", out=folder)
    return folder


@pytest.mark.parametrize("part", ["scores-*.json", "stage.json"])
@pytest.mark.parametrize("name", ASKED)
def test_a_damaged_record_is_named_by_each_command(whole, tmp_path, name, part):
    folder = tmp_path / "results"
    shutil.copytree(whole, folder)
    [path] = folder.glob(f"*/bm25-b=0.0-*/{part}")
    path.write_text(path.read_text().replace("0.", "1.", 1))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = ASKED[name](folder)
    said = [str(one.message) for one in caught] + [str(note) for note in result.notes()]
    assert any(path.name in text and "left out" in text for text in said), said


def test_a_gate_puts_no_other_system_in_the_place_of_a_damaged_one(tmp_path):
    """One system remains on each side, so that names would not be asked."""
    for name, system in (("before", "bm25-b=0.0"), ("after", "rm3")):
        folder = tmp_path / name
        weir.benchmark("brook-facts", ["bm25(b=0.0)", "rm3"], "RR", out=folder)
        [path] = folder.glob(f"*/{system}-*/scores-*.json")
        path.write_text("{}")
    with pytest.raises(
        StoreError, match=r"before/brook-facts/bm25-b=0.0.*; the same weir run makes it again"
    ):
        weir.gate(tmp_path / "before", tmp_path / "after", measures="RR")
