"""Which settings the names of systems differ in, and what of a grid is analysed."""

from __future__ import annotations

import itertools

import pytest

from weir.errors import BadValue, UnknownName
from weir.experiment.factors import chosen_factors, factorial_grid
from weir.stats.factors import Factor, FactorialDesign
from weir.systems.expression import parse_systems, single_names

MODEL = 'model="http://127.0.0.1:1/v1#m"'


def factors(*systems):
    return {f.name: f.levels for f in factorial_grid(systems)[0].factors}


def printed(text):
    return [str(one) for one in parse_systems(text)]


@pytest.mark.parametrize(
    ("grid", "levels"),
    [
        ("bm25(k1={1.2, 0.6}, b={0.4, 0.75})", {"k1": ("0.6", "1.2"), "b": ("0.4", "0.75")}),
        (
            f'bm25 >> llm({{"score", "listwise"}}, {MODEL}, depth={{20, 10}}, objective={{True, False}})',
            {"method": ("score", "listwise"), "depth": ("10", "20"), "objective": ("False", "True")},
        ),
        ("{rm3, bm25} >> score(rm3, depth={100, 10})", {"first": ("rm3", "bm25"), "depth": ("10", "100")}),
        ("{bm25, rm3(docs={5, 10})}", {"system": ("bm25", "rm3(docs=5)", "rm3")}),
        ("bm25(k1={0.9, 2}) >> score(bm25(k1={0.9, 3}))",
         {"first.bm25.k1": ("0.9", "2.0"), "system.bm25.k1": ("0.9", "3.0")}),
        ("wsum({bm25, rm3}, bm25(b=0.1), weights={[1, 2], [2, 1]})",
         {"system 1": ("bm25", "rm3"), "weights": ("[1.0, 2.0]", "[2.0, 1.0]")}),
        (f'bm25 >> llm("score", {MODEL}, max_length={{None, 99}})', {"max_length": ("None", "99")}),
        ('bm25({"lucene", "elastic"})', {"preset": ("lucene", "elastic")}),
    ],
)  # fmt: skip
def test_names_differ_in_settings(grid, levels):
    assert factors(*printed(grid)) == levels
    design = factorial_grid(printed(grid)[::-1])[0]
    assert sorted(design.systems) == sorted(printed(grid))


def test_systems_stand_in_the_order_of_their_levels():
    names = printed("bm25(k1={1.2, 0.6}, b={0.75, 0.4})")
    assert factorial_grid(names)[0].systems == (
        "bm25(k1=0.6)",
        "bm25(k1=0.6, b=0.75)",
        "bm25(k1=1.2)",
        "bm25(k1=1.2, b=0.75)",
    )


def test_names_that_are_no_systems_of_this_machine_have_factors_too():
    names = single_names("mine(rate={1e-3, 1e-5}, drop={0.1, 0.2}, seed=3)")
    assert factors(*names) == {"rate": ("1e-05", "0.001"), "drop": ("0.1", "0.2")}
    assert factors("mine", "mine(deep=True)") == {"deep": ("default", "True")}
    assert factors("a", "b") == {"system": ("a", "b")}


def test_a_reranker_may_be_there_or_not():
    names = ["bm25", "rm3", "bm25 >> score(rm3)", "rm3 >> score(rm3)"]
    assert factors(*names) == {"first": ("bm25", "rm3"), "reranker": ("none", "score(rm3)")}


def test_systems_of_other_parts_are_left_out():
    grid = printed("bm25 >> score({rm3, bm25(b=0.1)}, depth={10, 20})")
    found, notes = factorial_grid(["bm25", *grid, "some-run.trec"])
    assert found.systems == tuple(grid)
    assert notes == ("left out, as the grid is of systems in other parts: bm25, some-run.trec",)
    assert factors("bm25", "bm25 >> score(rm3)") == {"reranker": ("none", "score(rm3)")}


@pytest.mark.parametrize(
    ("other", "grid", "names"),
    [
        (["bm25 >> score(bm25)"], 'bm25 >> cross({"a", "b"}, depth={10, 20})', ["depth", "model"]),
        (['dense("minilm")', "splade"], "bm25(k1={0.9, 1.2}, b={0.4, 0.7})", ["b", "k1"]),
        (["rm3(bm25)"], "bm25(k1={0.9, 1.2}, b={0.4, 0.7})", ["b", "k1"]),
    ],
)
def test_a_baseline_of_another_kind_stands_beside_the_grid(other, grid, names):
    systems = printed(grid)
    for order in ([*other, *systems], [*systems, *other]):
        found, notes = factorial_grid(order)
        assert sorted(factor.name for factor in found.factors) == names
        assert sorted(found.systems) == sorted(systems)
        assert all(name in notes[0] for name in other)


def test_what_changes_together_is_one_factor():
    names = [f'm(x="{x}", p={p}, d={d})' for (x, p), d in itertools.product((("a", 1), ("b", 2)), (1, 2))]
    assert factors(*names) == {"x & p": ("a, 1", "b, 2"), "d": ("1", "2")}


def test_an_incomplete_grid_is_analysed_where_it_is_complete():
    whole = [f"m(a={a}, b={b})" for a, b in itertools.product((1, 2, 3), (1, 2))]
    found, notes = factorial_grid([name for name in whole if name != "m(a=3, b=1)"])
    assert {f.name: f.levels for f in found.factors} == {"a": ("1", "2"), "b": ("1", "2")}
    assert notes == (
        "1 of 6 combinations has no system, such as a=3, b=1; analysed on 4 of 5 systems, without a=3",
    )
    one, _ = factorial_grid(["m(a=1, b=1)", "m(a=2, b=1)", "m(a=2, b=2)"])
    assert [f.name for f in one.factors] == ["a"]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["bm25", "bm25(k1=0.9)", "bm25(k1=2)"], "have the same levels"),
        (["m(a=1, b=1)", "m(a=1, b=1)"], "no factors"),
        (["bm25"], "no factors"),
        (["one.trec", "two.trec", "3"], "no factors"),
        (["m(a=3, b=2, c=2)", "m(a=3, b=1, c=1)", "m(a=2, b=2, c=1)"], "nothing differs"),
    ],
)
def test_names_without_a_grid_are_refused(names, message):
    with pytest.raises(BadValue, match=message):
        factorial_grid(names)


def test_factors_are_asked_for_by_name():
    known = (Factor("objective", ("False", "True")), Factor("depth", ("10", "20")))
    assert chosen_factors(["depth"], known) == ("depth",)
    with pytest.raises(UnknownName, match="did you mean objective"):
        chosen_factors(["objectiv"], known)


def test_a_design_has_a_system_for_each_cell():
    with pytest.raises(BadValue, match="do not fill the 2 cells"):
        FactorialDesign((Factor("a", ("1", "2")),), ("x",))
    with pytest.raises(BadValue, match="two levels"):
        FactorialDesign((Factor("a", ("1",)),), ("x",))
