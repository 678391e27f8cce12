from __future__ import annotations

import json
from dataclasses import dataclass

import pytest

import weir
from weir.api import listings
from weir.api.results_folder import run_grid
from weir.cli.main import main
from weir.experiment.experiment import Experiment
from weir.files.write import convert
from weir.registry import described
from weir.systems.rerank.scorers import Score


@pytest.mark.parametrize(
    ("words", "function", "arguments"),
    [
        (["list", "systems"], listings.systems, []),
        (["list", "systems", "bm25"], listings.systems, ["bm25"]),
        (["list", "systems", "bm25(k1=1.2)"], listings.systems, ["bm25(k1=1.2)"]),
        (["list", "measures"], listings.measures, []),
        (["list", "measures", "ndcg_cut_10"], listings.measures, ["ndcg_cut_10"]),
        (["list", "datasets"], listings.datasets, []),
        (["list", "models"], listings.models, []),
        (["doctor"], listings.installation, []),
    ],
)
def test_commands_print_what_the_functions_return(words, function, arguments, capsys):
    known = function(*arguments)
    assert main(words) == 0
    assert capsys.readouterr().out == repr(known) + "\n"
    if words[:2] != ["list", "systems"]:  # the one without --json
        assert main([*words, "--json"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert [json.loads(line) for line in lines] == json.loads(json.dumps(known.items))


@pytest.mark.parametrize(
    "function", [listings.systems, listings.measures, listings.models, listings.datasets]
)
def test_a_notebook_shows_each_record_of_a_listing_as_a_line_of_a_table(function):
    known = function()
    lines = [row[0].text for table in known.tables("html") for row in table.rows]
    names = [str(next(iter(record.values()))).partition("(")[0] for record in known]
    assert len(names) > 10
    assert [line.partition("@")[0].partition("[")[0] for line in lines][: len(names)] == names


def test_the_systems_of_a_listing_are_in_its_records():
    assert listings.systems("bm25(k1=1.2)")[0]["k1"] == 1.2


@dataclass(frozen=True)
class Documented:
    """Find nothing.

    Raises BadValue.
    """

    words: int = 150
    """Words of a passage
    at most."""
    plain: int = 1
    overlap: int = 50
    """Words shared with the passage before."""
    __repr__ = object.__repr__
    """Text below no field."""


def test_fields_are_described_from_the_text_below_them():
    assert described(Documented).split("\n") == [
        "Find nothing.",
        "",
        "Raises BadValue.",
        "",
        "words: Words of a passage at most.",
        "overlap: Words shared with the passage before.",
    ]
    assert described(test_fields_are_described_from_the_text_below_them) == ""
    assert described(type("Made", (), {"__doc__": "Of no source."})) == "Of no source."


def test_systems_are_listed_with_the_description_of_their_fields():
    assert listings.systems("score")[0]["about"] == described(Score)
    assert "\ndepth: " in described(Score)


def test_compiling_returns_the_lines_that_it_tells():
    lines = []
    compiled = listings.compile_kernels(["run reading"], lines.append)
    assert repr(compiled) == "\n".join(lines)
    assert lines[0].startswith("run reading: ")


def test_a_grid_says_what_the_command_says(tmp_path, capsys):
    assert main(["run", "-d", "brook-news", "-s", "bm25", "-o", str(tmp_path / "r"), "-q"]) == 0
    out, err = capsys.readouterr()
    _, rows = run_grid(Experiment(("brook-news",), ("bm25",)), tmp_path / "r")
    notes = rows.notes()
    assert out == rows.shown() + "\n"
    assert err.splitlines() == [*map(str, notes), f"results: {tmp_path / 'r'}"]
    assert any(
        "R@100 is 1 by construction for whatever returns all 80 documents on brook-news" in note.text
        for note in notes
    )


def test_a_conversion_says_what_the_command_says(tmp_path, capsys):
    source = tmp_path / "a.trec"
    source.write_text("q Q0 d 1 2.5 x\n")
    assert main(["data", "convert", str(source), str(tmp_path / "a.json"), "-q"]) == 0
    assert capsys.readouterr().out == repr(convert(source, tmp_path / "a.json")) + "\n"


def test_weir_says_its_version_and_lists_systems_without_numba(monkeypatch, capsys):
    assert weir.__version__[0].isdigit()
    monkeypatch.setitem(__import__("sys").modules, "numba", None)
    assert main(["list", "systems"]) == 0
    assert "bm25(" in capsys.readouterr().out


def test_a_measure_is_described_by_its_name(capsys):
    assert main(["list", "measures", "nDCG"]) == 0
    assert "Discounted cumulative gain" in capsys.readouterr().out


def test_models_takes_an_expression(capsys):
    assert main(["list", "models", 'dense("minilm")']) == 0
    assert capsys.readouterr().out.startswith("model ")
