from __future__ import annotations

import json

import pytest

from weir.api import listings
from weir.api.results_folder import run_shown
from weir.api.rows import Display
from weir.cli.main import main
from weir.experiment.experiment import Experiment
from weir.files.write import convert


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
        assert [json.loads(line) for line in lines] == json.loads(json.dumps(known.records))


def test_the_systems_of_a_listing_are_in_its_records():
    assert listings.systems("bm25(k1=1.2)").records[0]["k1"] == 1.2


def test_compiling_returns_the_lines_that_it_tells():
    lines = []
    compiled = listings.compile_kernels(["run reading"], lines.append)
    assert repr(compiled) == "\n".join(lines)
    assert lines[0].startswith("run reading: ")


def test_a_grid_says_what_the_command_says(tmp_path, capsys):
    assert main(["run", "-d", "brook-news", "-s", "bm25", "-o", str(tmp_path / "r"), "-q"]) == 0
    out, err = capsys.readouterr()
    shown = run_shown(Experiment(("brook-news",), ("bm25",)), tmp_path / "r")
    text, notes = shown.shown(Display("text", False, None, False, {}))
    assert out == text + "\n"
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
