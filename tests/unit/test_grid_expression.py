"""Grids of systems in one text: what braces stand for, and what they may not."""

from __future__ import annotations

import itertools

import pytest

import weir
from tests.unit.brooklet import write_collection
from weir.cli import main
from weir.errors import BadValue, UnknownName
from weir.experiment.experiment import Experiment
from weir.systems import BM25, parse_system
from weir.systems.expression import MOST_SYSTEMS, factorial, parse_systems, single_names

MODEL = '"http://127.0.0.1:1/v1#m"'


def names(text):
    return [str(one) for one in parse_systems(text)]


def test_braces_stand_for_each_value_the_last_varying_fastest():
    assert names("bm25(k1={0.6, 1.2}, b={0.4, 0.75})") == [
        "bm25(k1=0.6)",
        "bm25(k1=0.6, b=0.75)",
        "bm25(k1=1.2)",
        "bm25(k1=1.2, b=0.75)",
    ]
    assert names("bm25(k1=1.2)") == ["bm25(k1=1.2)"]
    found = names(
        f'bm25 >> llm({{"score", "listwise"}}, {MODEL}, objective={{True, False}}, depth={{10, 20}})'
    )
    assert found == [
        f'bm25 >> llm("{method}", model={MODEL}, depth={depth}{"" if told else ", objective=False"})'
        for method, told, depth in itertools.product(("score", "listwise"), (True, False), (10, 20))
    ]
    assert [str(parse_system(one)) for one in found] == found


def test_braces_stand_for_systems_too_and_within_one_another():
    assert names("{bm25, rm3} >> score({rm3, bm25(k1={1.2, 2})})") == [
        f"{first} >> score({second})"
        for first in ("bm25", "rm3")
        for second in ("rm3", "bm25(k1=1.2)", "bm25(k1=2.0)")
    ]
    assert names("wsum(bm25, rm3, weights={[1, 2], [2, 1]})") == [
        "wsum(bm25, rm3, weights=[1.0, 2.0])",
        "wsum(bm25, rm3, weights=[2.0, 1.0])",
    ]
    assert names("rrf({bm25, rm3}, bm25(b={0.1}))") == ["rrf(bm25, bm25(b=0.1))", "rrf(rm3, bm25(b=0.1))"]
    assert single_names("program(\"say {'dataset'} {1, 2}\")") == ("program(\"say {'dataset'} {1, 2}\")",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bm25(k1={1, 1})", "{1, 1} has 1 twice"),
        ("bm25(k1={0.9, 1.2, None})", "the grid has bm25 twice"),
        ("bm25(k1={1, -1})", "from 0 to 1e+06; it is one of the grid: bm25(k1=-1)"),
        ("bm25(k1={*{1, 2}})", "is not a system"),
        ("bm25(k1={x for x in (1, 2)})", "is not a system"),
        ("bm25(k1={1, 2)", "is not a system"),
        ("bm25(fields={'title': {1, 2}, 'title': 3})", "each name once"),
        (f"bm25(k1={set(range(40))}, b={{{', '.join(f'0.{n}' for n in range(10, 40))}}})", "1,200 systems"),
    ],
)
def test_a_bad_grid_says_what_is_wrong(text, message):
    with pytest.raises(BadValue) as caught:
        parse_systems(text)
    assert message in str(caught.value)
    assert MOST_SYSTEMS == 1024


def test_many_braces_are_counted_before_anything_is_made():
    deep = "bm25(b=0.1)"
    for n in range(50):
        deep = f"{{{deep}, bm25(b=0.2{n:02})}}"
    assert len(single_names(deep)) == 51
    with pytest.raises(BadValue, match="1,152,921,504,606,846,976 systems"):
        single_names(f"rrf({', '.join(['{bm25, rm3}'] * 60)})")
    with pytest.raises(BadValue, match="levels"):
        single_names("bm25(k1=" + "{" * 80 + "1" + "}" * 80 + ")")


def test_one_system_is_not_a_grid():
    with pytest.raises(BadValue, match="is a grid of systems"):
        parse_system("bm25(k1={1, 2})")
    with pytest.raises(UnknownName, match="did you mean bm25"):
        parse_systems("bm52(k1={1, 2})")


def test_settings_in_python_make_the_same_grid():
    grid = factorial(BM25, {"k1": [0.6, 1.2], "b": (0.4, 0.75)})
    assert (
        grid
        == parse_systems("bm25(k1={0.6, 1.2}, b={0.4, 0.75})")
        == weir.factorial("bm25(k1={0.6, 1.2}, b={0.4, 0.75})")
    )
    assert factorial(BM25, {}) == (BM25(),)
    with pytest.raises(BadValue, match="k1 has no value"):
        factorial(BM25, {"k1": ()})
    with pytest.raises(BadValue, match="combinations"):
        factorial(BM25, {"k1": range(100), "b": range(100)})


def test_settings_beside_a_text_are_refused():
    with pytest.raises(BadValue, match="is a text, which has its settings in braces"):
        factorial("bm25(k1={0.9, 1.2})", {"b": [0.4]})


def test_a_grid_runs_from_the_command_a_file_and_python(tmp_path, capsys):
    pytest.importorskip("numba", reason="needs the `run` extra (numba)")
    data = write_collection(tmp_path / "mine")
    grid = "bm25(k1={0.6, 1.2}, b={0.4, 0.75})"
    main(["run", "-d", str(data), "-s", grid, "-m", "nDCG@10", "-o", str(tmp_path / "r"), "-q", "--json"])
    said = capsys.readouterr().out
    assert [f'"{name}"' in said for name in names(grid)] == [True] * 4
    file = tmp_path / "grid.toml"
    file.write_text(f'datasets = ["{data}"]\nsystems = ["{grid}"]\nmeasures = ["nDCG@10"]\n')
    assert [str(one) for one in Experiment.read(file).parsed_systems()] == names(grid)
    table = weir.benchmark(data, grid, ["nDCG@10"])
    assert table.systems == tuple(names(grid))
    main(["results", str(tmp_path / "r"), "-s", "bm25(k1={0.6, 1.2}, b=0.75)", "--json"])
    said = capsys.readouterr().out
    assert ("bm25(k1=0.6, b=0.75)" in said, '"bm25(k1=0.6)"' in said) == (True, False)
    assert "one system" not in said
