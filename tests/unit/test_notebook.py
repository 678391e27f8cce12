"""What a notebook shows, in a real kernel: progress, and results as tables."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest

import weir
from tests.unit.brooklet import write_collection
from weir.api import progress
from weir.core.strings import Ids
from weir.stats.compare import compared, table

nbformat = pytest.importorskip("nbformat", reason="needs the `slow` extra (nbclient)")
nbclient = pytest.importorskip("nbclient", reason="needs the `slow` extra (nbclient)")


@pytest.fixture(scope="module")
def outputs(tmp_path_factory) -> list[list[Any]]:
    """The outputs of each cell of a notebook: a benchmark of two systems, and results of several kinds."""
    folder = tmp_path_factory.mktemp("notebook")
    write_collection(folder / "c")
    cells = [
        "import weir\ndone = weir.benchmark('c', ['bm25', 'rm3'], ['nDCG@10', 'RR'], out='results')",
        "done",
        "weir.efficiency('results')",
        "done.compare()",
        "weir.audits('results')",
        "ds = weir.load('c')\nfirst, second = (weir.Run.load(p) for p in sorted(__import__('pathlib').Path('results').rglob('run.trec')))\n"
        "weir.power(ds.qrels, first, second)",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(one) for one in cells])
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(folder)}}).execute()
    return [cell.outputs for cell in notebook.cells]


def html(outputs: list[Any]) -> str:
    return next(one.data["text/html"] for one in outputs if one.output_type == "execute_result")


def test_a_benchmark_shows_its_progress_as_a_bar(outputs):
    assert "index" not in "".join(one.text for one in outputs[0] if one.output_type == "stream")
    shown = [one.data["text/html"] for one in outputs[0] if one.output_type == "display_data"]
    assert shown == [""]  # one bar, cleared at the end


def test_a_bar_is_drawn_in_its_place(monkeypatch):
    shown = []
    monkeypatch.setattr(progress, "_in_notebook", lambda: True)
    display = SimpleNamespace(update=lambda text: shown.append(text.data))
    monkeypatch.setattr(
        "IPython.display.display", lambda text, display_id: shown.append(text.data) or display
    )
    bar = progress.Progress()
    bar("search <b>", 1, 4)
    bar("search <b>", 4, 4)
    bar.close()
    assert shown[0].startswith('<progress max="4" value="1"></progress>')
    assert "search &lt;b&gt;  1/4" in shown[0]
    assert 'value="4"' in shown[1]
    assert shown[2:] == [""]


def test_results_are_tables(outputs):
    assert "<table" in html(outputs[1])
    efficiency = html(outputs[2])
    assert efficiency.count("<tr>") == 3
    assert "queries/s" in efficiency
    comparison, audit, power = (html(one) for one in outputs[3:])
    for column in ("difference", "adjusted", "won/lost/tied", "verdict"):
        assert f"<bdi>{column}</bdi>" in comparison
    assert "<bdi>severity</bdi>" in audit
    assert audit.count("<tr>") > 3
    assert "it takes 6 queries at least" in power
    assert all("<pre" not in one for one in (efficiency, comparison, audit, power))


def test_a_comparison_of_many_collections_is_a_grid_and_its_pairs_are_folded():
    grid = {
        (dataset, system): weir.evaluate(
            {f"q{n}": {"d": 1} for n in range(8)},
            {f"q{n}": {"d": 1.0} if n % step else {"x": 1.0} for n in range(8)},
            ["RR"],
        )
        for dataset in ("one", "two", "three")
        for system, step in (("a", 2), ("b", 3))
    }
    tables = [table(d, "RR", {s: grid[d, s] for s in ("a", "b")}) for d in ("one", "two", "three")]
    shown = weir.ResultSet("compare", tuple(map(compared, tables)))._repr_html_()
    above, folded = shown.split("<details>")
    assert above.count("<table") == 1
    assert above.count("<tr>") == 4  # the head, and each dataset
    assert "<summary>3 pairs, each with its verdict</summary>" in folded
    assert folded.count("<tr>") == 4
    assert "<details>" not in weir.ResultSet("compare", (compared(tables[0]),))._repr_html_()


def test_large_values_print_ten_lines_at_most():
    scores = weir.published("scifact")
    assert len(scores) > 200
    assert len(repr(scores).splitlines()) <= 10
    assert f"and {len(scores) - 6:,} more" in repr(scores)
    assert scores._repr_html_().count("<tr>") == 7
    assert len(scores.to_csv().splitlines()) == len(scores) + 1
    ids = Ids.of(f"document-{n}" for n in range(10_000))
    assert repr(ids).startswith("<Ids: 10,000: 'document-0', 'document-1', ")
    assert max(len(repr(ids)), len(repr(ids.column)), len(repr(Ids.of(["x" * 400])))) < 200


def test_a_ranking_shows_four_digits():
    run = weir.Run.of({"q": {"d": 0.4564799368, "e": 12.0}})
    assert re.findall(r"<bdi>([\d.]+)</bdi>", run._repr_html_()) == ["1", "12.0000", "2", "0.4565"]
