"""Registered kinds of results: every one has tables and notes, and every writer takes its tables."""

from __future__ import annotations

import pytest

from weir.api.result_set import KINDS, ResultSet
from weir.core.frames import plain
from weir.core.results import RESULTS, result
from weir.core.tables import Table
from weir.errors import BadValue
from weir.stats.threshold import Abstention

EXAMPLES = {
    "abstention": Abstention("nDCG@10", "max", (0.1,) * 10, (0.25,) * 10, (0.5,) * 10, 0.125),
}


def test_every_registered_kind_has_an_example_and_no_other_home():
    assert set(EXAMPLES) == set(RESULTS)
    assert not set(RESULTS) & set(KINDS)


@pytest.mark.parametrize("kind", EXAMPLES)
def test_every_writer_takes_the_tables_of_a_kind(kind, tmp_path):
    one = EXAMPLES[kind]
    assert all(isinstance(table, Table) for table in one.tables())
    assert isinstance(one.notes(), tuple)
    several = ResultSet(kind, (one, one))
    for table in several.tables():
        for text in (table.text(60), table.csv(), table.markdown(), table.latex(), table.html()):
            assert table.rows[0][0].text in text
    for text in (several.to_latex(), several.to_markdown(), several.to_csv(), several._repr_html_()):
        assert several.tables()[0].rows[0][0].text in text
    several.save(tmp_path / "results.json")
    again = ResultSet.load(tmp_path / "results.json")
    assert (repr(again), plain(again.items)) == (repr(several), plain(several.items))
    assert not ResultSet(kind, ())
    repr(ResultSet(kind, ()))


def test_a_kind_is_registered_once():
    with pytest.raises(BadValue, match="two classes are results of the kind 'abstention'"):
        result("abstention")(Abstention)
