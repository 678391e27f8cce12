"""How systems are called: a name on the screen is the name in every form and note."""

from __future__ import annotations

import re

import pytest

import weir
from tests.unit.brooklet import write_collection
from weir.cli import main
from weir.core.run import Run
from weir.errors import RankingWarning
from weir.experiment.experiment import Experiment

FORMS = ("text", "latex", "markdown", "html", "csv", "json")
NAMED = re.compile(r"run\((\\?[\"']|&quot;)")  # as any form escapes it


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two run files that answer one query each, so that there are notes on both."""
    at = tmp_path_factory.mktemp("called")
    data = [str(write_collection(at / name)) for name in ("one", "other")]
    Run.of({"q1": {"d1": 1.0, "x1": 1.0}}).save(at / "first.trec")
    Run.of({"q2": {"d3": 1.0}, "q1": {"d2": 1.0}}).save(at / "second.trec")
    systems = [f'run("{at.as_posix()}/{name}.trec", unknown="drop")' for name in ("first", "second")]
    with pytest.warns(RankingWarning):
        Experiment(data, [*systems, "bm25"], ("nDCG@10", "RR")).execute(at / "results")
    return at / "results"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("datasets", [[], ["-d", "one"]], ids=["several", "one"])
def test_a_run_file_goes_by_its_name_in_every_form_and_note(folder, datasets, form, capsys):
    options = [] if form == "text" else [f"--{form}"]
    assert main(["compare", str(folder), *datasets, *options, "--notes"]) == 0
    out, err = capsys.readouterr()
    shown = "\n".join(
        line for line in out.splitlines() if not re.match(r"(% |<p[^>]*>)?(first|second): ", line)
    )
    assert "first" in shown
    assert "second" in shown
    assert not NAMED.search(shown)
    assert "first on one" in err
    assert not NAMED.search(err)


def test_the_other_commands_call_it_so_too(folder, capsys):
    cells = sorted(map(str, (folder / "one").glob("run-*")))
    for command in (["diff", *cells], ["why", *cells], ["results", str(folder), "-d", "one"]):
        assert main(command) == 0
        out, err = capsys.readouterr()
        legend = re.compile(r"^(first|second): run\(.*$", re.MULTILINE)
        assert "first" in out
        assert not NAMED.search(legend.sub("", out + err))
    assert {"first", "second"} <= set(weir.results(folder).columns()["title"])


def test_names_that_are_shortened_are_explained_in_papers_too(folder, tmp_path, capsys):
    """LaTeX and Markdown have the names of the screen, and the whole name of each below."""
    data = str(write_collection(tmp_path / "mine"))
    Experiment([data], ["bm25(k1=1.2)", "bm25(k1=1.2, b=0.1)"], ["RR"]).execute(tmp_path / "r")
    for form in ("--latex", "--markdown", "--html"):
        assert main(["compare", str(tmp_path / "r"), form]) == 0
        lines = capsys.readouterr().out.splitlines()
        text = "\n".join(line for line in lines if not line.startswith(("% note: ", "note: ")))
        assert re.search(r"bm25\(b=0.1\)[:\w\s]*bm25\(k1=1.2, b=0.1\)", text.replace("\\_", "_"))
        assert len(re.findall(r"bm25\(k1=1.2, b=0.1\)", text)) == 1


def test_two_files_of_one_name_keep_their_paths(tmp_path, capsys):
    data = str(write_collection(tmp_path / "mine"))
    for number, place in enumerate("ab", 1):
        (tmp_path / place).mkdir()
        Run.of({f"q{n}": {f"d{number}": 1.0} for n in range(1, 4)} | {"d4": {}}).save(
            tmp_path / place / "run.trec"
        )
    systems = [f'run("{(tmp_path / place / "run.trec").as_posix()}")' for place in "ab"]
    with pytest.warns(RankingWarning):
        Experiment([data], systems, ["RR"]).execute(tmp_path / "r")
    assert main(["compare", str(tmp_path / "r"), "--csv"]) == 0
    out = capsys.readouterr().out
    assert "/a/run.trec" in out
    assert "/b/run.trec" in out


def test_a_benchmark_in_memory_calls_them_so(tmp_path):
    Run.of({f"q{n}": {"d1": 1.0} for n in range(1, 4)} | {"d4": {"d1": 1.0}}).save(tmp_path / "mine.trec")
    data = str(write_collection(tmp_path / "c"))
    table = weir.benchmark(data, [f'run("{(tmp_path / "mine.trec").as_posix()}")', "bm25"], ["RR"])
    [pair] = table.compare("mine")[0].pairs
    assert (pair.first, pair.second) == ("mine", "bm25")
