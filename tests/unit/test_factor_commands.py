"""Factorial studies from the command line and in Python: folders, files, scores, and what has no factors."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace

import pytest

import weir
from tests.shown import shown
from weir.cli import main
from weir.errors import BadValue, UnknownName
from weir.experiment.factors import factor_names, study_factors

GRID = "bm25(k1={0.6, 2}, b={0.1, 0.9})"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    pytest.importorskip("numba", reason="needs the `run` extra (numba)")
    at = tmp_path_factory.mktemp("factors") / "results"
    return at, weir.benchmark(["brook-news", "brook-facts"], GRID, ["nDCG@10", "RR"], out=at, k=20)


def printed(capsys, *arguments):
    main(list(map(str, arguments)))
    return capsys.readouterr().out.strip()


def test_the_command_and_python_say_the_same(folder, capsys):
    at, grid = folder
    found = weir.compare(at, factors=True)
    assert main(["compare", str(at), "--factors"]) == 0
    out, notes = capsys.readouterr()
    assert f"{out.strip()}\n\n{notes}".strip() == repr(found)
    assert [(one.dataset, one.measure) for one in found] == [
        (dataset, measure)
        for measure in ("nDCG@10", "RR")
        for dataset in ("brook-news", "brook-facts", "2 collections")
    ]
    assert found.items == grid.factors().items == tuple(study_factors(grid.scores))
    lines = [json.loads(line) for line in printed(capsys, "compare", at, "--factors", "--json").splitlines()]
    assert [(one["dataset"], one["effects"][0]["difference"]) for one in lines] == [
        (one.dataset, one.effects[0].difference) for one in found
    ]
    for form in ("markdown", "latex", "csv"):
        assert (
            printed(capsys, "compare", at, "--factors", f"--{form}") == getattr(found, f"to_{form}")().strip()
        )
    assert "<table" in printed(capsys, "compare", at, "--factors", "--html")
    long = printed(capsys, "compare", at, "--factors", "--long", "-m", "RR")
    assert long.count("won/lost/tied") == 3
    assert "too few queries" not in long
    of_few = [one for one in found.items if one.measure == "RR"]
    few = [replace(one, count=6, geometric=True) for one in of_few]
    assert "too few queries for a verdict on so many effects: brook-news; name fewer factors" in shown(
        "factors", few
    )
    assert "differences are those of logarithms" in shown("factors", few)
    assert "too few queries or collections" in shown(
        "factors", [replace(one, effects=tuple(replace(e, low=None) for e in one.effects)) for one in of_few]
    )


def test_factors_are_chosen_and_results_saved(folder, tmp_path, capsys):
    at, grid = folder
    one = weir.compare(at, measures="RR", factors="k1")[-1]
    assert [e.factors for e in one.effects] == [("k1",)]
    assert [s.source for s in one.sources][:5] == ["collections", "queries", "k1", "b", "k1 × b"]
    assert weir.compare(at, measures="RR", factors=["k1"])[-1] == one == grid.factors("k1", "RR")[-1]
    assert "0.9 - 0.1" not in printed(capsys, "compare", at, "--factors", "k1", "-m", "RR")
    found = weir.compare(at, factors=True)
    found.save(tmp_path / "factors.json")
    assert weir.ResultSet.load(tmp_path / "factors.json").items == found.items
    assert len(found.to_frame()) == 6 * 3
    assert factor_names(" k1, b ,") == factor_names(["k1", "b"]) == ("k1", "b")
    assert factor_names(True) == factor_names("") == ()


def test_files_and_scores_by_name_have_factors_too(folder, tmp_path, capsys):
    _, grid = folder
    scores = {system: of for (dataset, system), of in grid.scores.items() if dataset == "brook-news"}
    found = weir.compare(scores, factors=True)
    assert found[0].effects == weir.compare(folder[0], measures="nDCG@10", factors=True)[0].effects
    qrels = {f"q{n}": {"a": 1} for n in range(8)}
    for left, top in itertools.product((1, 2), (3, 4)):
        ranked = ["b"] * (left == 2) + ["c"] * (top == 4) + ["a"]
        weir.Run.of({q: ranked for q in qrels}, "m").save(tmp_path / f"m(left={left}, top={top}).trec")
    weir.Qrels.of(qrels).save(tmp_path / "qrels.json")
    files = [tmp_path / "qrels.json", *sorted(tmp_path.glob("*.trec"))]
    said = json.loads(printed(capsys, "compare", *files, "-m", "RR", "--factors", "--json"))
    assert [e["difference"] for e in said["effects"]] == pytest.approx([-1 / 3, -1 / 3, 1 / 3])
    assert said["effects"][0]["low"] == said["effects"][0]["high"] == said["effects"][0]["difference"]


def test_what_has_no_factors_says_so(folder, capsys):
    at, grid = folder
    assert main(["compare", "--factors", str(at)]) == 2
    assert "write what is compared before --factors" in capsys.readouterr().err
    with pytest.raises(UnknownName, match="did you mean k1"):
        weir.compare(at, factors="k2")
    with pytest.raises(BadValue, match="no baseline"):
        weir.compare(at, baseline="bm25", factors=True)
    with pytest.raises(BadValue, match="not by groups"):
        weir.compare(at, by="prefix:-", factors=True)
    one = {key: of for key, of in grid.scores.items() if "0.1" in key[1]}
    assert [f.name for f in study_factors(one)[0].factors] == ["k1"]
    uneven = {key: of for key, of in grid.scores.items() if key != ("brook-news", "bm25(k1=0.6, b=0.1)")}
    found = study_factors(uneven, (), ["RR"])[0]
    assert [f.name for f in found.factors] == ["k1"]
    assert found.notes == (
        "1 of 4 combinations has no system, such as k1=0.6, b=0.1; analysed on 2 of 3 systems, without b=0.1",
        "left out, not being there for each dataset: bm25(k1=0.6, b=0.1)",
    )
    apart = {("x", "bm25"): grid.scores["brook-news", "bm25(k1=0.6, b=0.1)"],
             ("y", "rm3"): grid.scores["brook-news", "bm25(k1=0.6, b=0.1)"]}  # fmt: skip
    with pytest.raises(BadValue, match="no system in common"):
        study_factors(apart)
