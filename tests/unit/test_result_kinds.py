"""Kinds of results: every one has tables, and every writer takes them."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints
from xml.etree import ElementTree

import numpy as np
import pytest

import weir
from tests.shown import drawings
from weir.api.charts import CHARTS
from weir.api.result_set import KINDS, ResultSet
from weir.core.charts import svg
from weir.core.frames import json_value
from weir.core.strings import Ids
from weir.core.tables import Table
from weir.errors import BadValue, CallError
from weir.plugins.llm.reordering import MEANS, MeanOverQueries

# Where a field depends on another one or names what must exist.
FIELDS: dict[tuple[str, str], Any] = {
    ("Abstention", "rates"): (0.1,) * 10,
    ("Abstention", "curve"): (0.25,) * 10,
    ("ComparisonMethod", "test"): "t",
    ("ComparisonMethod", "correct"): "holm",
    ("ComparisonMethod", "interval"): "t",
    ("ComparisonMethod", "power"): 0.8,
    ("Reordering", "means"): tuple(MeanOverQueries(name, 0.5, 0.25, 0.75, 3) for name in MEANS),
    ("PowerPlan", "measure"): "nDCG@10",
    ("BircoScore", "measure"): "NDCG@10",
    ("OrderAgreement", "intervals"): (("tau", 0.25, 0.75), ("top", 0.25, 0.75)),
    ("Agreement", "labels"): (0.0, 1.0),
    ("Agreement", "confusion"): ((3, 1), (2, 5)),
    ("FactorEffect", "verdict"): "better",
    ("Finding", "severity"): "wrong",
    ("PublishedScore", "decimals"): 4,
    ("JudgingPool", "queries"): Ids.of(["q1", "q2"]),
    ("JudgingPool", "docs"): Ids.of(["d1"]),
    ("JudgingPool", "query"): np.array([0, 1], np.int32),
    ("JudgingPool", "doc"): np.zeros(2, np.int32),
    ("JudgingPool", "weight"): np.array([1.0, 0.5]),
    ("Provenance", "stages"): (
        {"stage": "scores", "folder": "bm25", "name": "bm25", "declared": {}, "made": {}, "cost": {}},
    ),
}


def example(hint: Any, of: str = "", name: str = "") -> Any:
    """A value of a type, the same for every call."""
    if (of, name) in FIELDS:
        return FIELDS[of, name]
    origin, inner = get_origin(hint), get_args(hint)
    if is_dataclass(hint):
        hints = get_type_hints(hint)
        return hint(**{f.name: example(hints[f.name], hint.__name__, f.name) for f in fields(hint) if f.init})
    if origin in (Union, types.UnionType):
        return example(inner[0], of, name)
    if origin is Literal:
        return inner[0]
    if origin is tuple:
        return tuple(example(one) for one in (inner[:1] * 2 if inner[-1] is ... else inner))
    if origin is not None and issubclass(origin, Mapping):
        return {example(inner[0]): example(inner[1])}
    return {str: "text", int: 3, float: 0.5, bool: True}.get(hint)


@pytest.mark.parametrize("name", KINDS.names())
def test_every_writer_takes_the_tables_of_a_kind(name, tmp_path):
    kind = KINDS.get(name)
    one = example(kind.of)
    assert kind.name == name
    several = ResultSet(kind, (one, one))
    assert all(
        isinstance(table, Table) for form in ("text", "html", "latex") for table in several.tables(form)
    )
    for form in ("text", "latex", "markdown", "html", "csv", "json"):
        assert len(several.shown(form, 60)) > 10
    assert several.tables()[0].text() in repr(several)
    assert "<div" in several._repr_html_() or "<p" in several._repr_html_()
    several.save(tmp_path / "results.json")
    again = ResultSet.load(tmp_path / "results.json")
    assert (repr(again), json_value(again.items)) == (repr(several), json_value(several.items))
    several.save(tmp_path / "results.csv")
    assert (tmp_path / "results.csv").read_text().rstrip("\n") == several.to_csv().rstrip("\n")
    with pytest.raises(BadValue, match=r"saved as \.json, \.csv, \.tex, \.md, \.html"):
        several.save(tmp_path / "results.xlsx")
    assert not list(ResultSet(kind, ()))
    repr(ResultSet(kind, ()))


@pytest.mark.parametrize("name", sorted(CHARTS))
def test_every_kind_with_charts_draws_its_example(name):
    kind = KINDS.get(name)
    results = ResultSet(kind, (example(kind.of),))
    for chart in results.charts():
        root = ElementTree.fromstring(svg(chart))
        assert root.find("{http://www.w3.org/2000/svg}desc") is not None
    assert drawings(results.plot()._repr_html_())


@pytest.mark.parametrize("name", ["compare", "diff", "gate", "power", "why", "audit", "factors", "agree"])
def test_one_result_alone_prints_as_its_tables(name):
    kind = KINDS.get(name)
    one = example(kind.of)
    assert repr(one) == repr(ResultSet(kind, (one,)))
    assert "</" in one._repr_html_()
    assert "(" + next(iter(fields(kind.of))).name + "=" not in repr(one)


def test_a_text_form_takes_no_path():
    table = weir.benchmark("brook-news", "bm25", "RR")
    for form in (table.to_csv, table.to_latex, table.rows.to_csv, table.rows.to_markdown):
        with pytest.raises(CallError, match=r"by place.*'x.csv' \(str\) has none"):
            form("x.csv")
