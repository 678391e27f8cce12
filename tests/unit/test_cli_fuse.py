from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest

import weir
from tests.unit.test_cli import refused
from tests.unit.test_imports import HEAVY, modules_after
from weir.cli import main
from weir.files.runs import read_run

A = {f"q{i}": {"good": 3.0, "bad": 2.0, "fair": 1.5} for i in range(1, 7)}
B = {f"q{i}": {"bad": 9.0, "good": 8.0, "fair": 7.0} for i in range(2, 8)}
QRELS = "".join(f"q{i} 0 good 2\nq{i} 0 fair 1\n" for i in range(1, 7))


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a.json").write_text(json.dumps(A))
    Path("b.trec").write_text(
        "".join(f"{q} Q0 {d} {i} {s} b\n" for q, r in B.items() for i, (d, s) in enumerate(r.items(), 1))
    )
    Path("qrels").write_text(QRELS)


@pytest.mark.usefixtures("files")
class TestFuse:
    def test_files_are_fused_as_values_are(self, capsys):
        assert main(["fuse", "rrf(k=10)", "a.json", "b.trec", "-o", "out.trec", "-k", "2"]) == 0
        out, err = capsys.readouterr()
        assert out == ""
        assert err.split("\n")[:-1] == [
            "note: a.json does not answer 1 of the 7 queries; others decide there",
            "note: b.trec does not answer 1 of the 7 queries; others decide there",
        ]
        expected = weir.fuse([A, B], "rrf(k=10)", 2).to_dict()
        assert read_run("out.trec").to_dict() == expected
        assert read_run("out.trec").to_dict()["q1"] == {"good": 1 / 11, "bad": 1 / 12}

    @pytest.mark.parametrize(
        ("method", "k", "said"),
        [("rrf", "2", True), ("rrf", "3", False), ("rrf(k=10)", "2", False), ("combsum", "2", False)],
    )
    def test_a_depth_that_may_be_meant_as_the_constant_is_said(self, capsys, method, k, said):
        assert main(["fuse", method, "a.json", "b.trec", "-o", "out.trec", "-k", k]) == 0
        note = "k=2 cuts each fused ranking to 2 documents; the constant of rrf is set as rrf(k=2)"
        assert (note in capsys.readouterr().err) == said
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            weir.fuse([A, B], method, k=int(k))
        assert [str(one.message) for one in caught] == [note] * said

    @pytest.mark.parametrize("name", ["out.json", "out.trec.gz"])
    def test_the_ending_says_the_format(self, name):
        assert main(["fuse", "wsum(weights=[0.7, 0.3])", "a.json", "b.trec", "-o", name]) == 0
        assert (
            read_run(name).to_dict() == weir.fuse(["a.json", "b.trec"], "wsum(weights=[0.7, 0.3])").to_dict()
        )

    def test_a_file_that_is_read_is_not_written(self, capsys):
        before = Path("a.json").read_text()
        line = refused(capsys, "fuse", "rrf", "a.json", "b.trec", "-o", "./a.json")
        assert "a.json is one of the files that are read" in line
        assert Path("a.json").read_text() == before

    def test_a_run_given_twice_counts_twice_and_is_said(self, capsys):
        assert main(["fuse", "combsum", "a.json", "a.json", "b.trec", "-o", "out.json"]) == 0
        assert "a.json is given 2 times" in capsys.readouterr().err
        assert read_run("out.json").to_dict() == weir.fuse([A, A, B], "combsum").to_dict()

    def test_a_fit_reports_held_out_scores_and_writes_what_they_are_of(self, capsys):
        fit = [
            "fuse",
            "wsum",
            "a.json",
            "b.trec",
            "--fit",
            "qrels",
            "-m",
            "nDCG@3",
            "--folds",
            "3",
            "-o",
            "out.trec",
        ]
        assert main(fit) == 0
        out, err = capsys.readouterr()
        assert "66 settings tried" in out
        assert "held out" in out
        assert "verdict" in out
        assert "picked on these queries" in out
        assert "WARNING" not in err
        assert "1 queries without judgments are fused with wsum" in err
        mean = float(weir.evaluate("qrels", "out.trec", ["nDCG@3"]).mean_values()[0])
        assert out.split("fused, held out")[1].split()[0] == f"{mean:.4f}"
        first = Path("out.trec").read_bytes()
        assert main(fit) == 0
        assert Path("out.trec").read_bytes() == first

    def test_scoring_on_the_training_queries_is_warned_of(self, capsys):
        fit = [
            "fuse",
            "rrf",
            "a.json",
            "b.trec",
            "--fit",
            "qrels",
            "--folds",
            "2",
            "-o",
            "out.trec",
            "--train-queries",
        ]
        assert main(fit) == 0
        out, err = capsys.readouterr()
        assert "WARNING: every query is fused with rrf" in err
        assert "do not score the result" in err
        assert read_run("out.trec").to_dict() == weir.fuse([A, B], "rrf").to_dict()
        assert "held out" in out

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["rrf", "a.json"], "two or more rankings; found 1"),
            (["rff", "a.json", "b.trec"], "did you mean rrf"),
            (["rrf", "a.json", "none.trec"], "none.trec"),
            (["rrf", "a.json", "other.json"], "no query is answered by two"),
            (["rrf", "a.json", "qrels"], "qrels"),
            (["wsum(weights=[1])", "a.json", "b.trec"], "weights has 1 for 2"),
            (["rrf", "a.json", "b.trec", "-k", "0"], "k is 0"),
            (["rrf", "a.json", "b.trec", "-m", "AP"], "go with --fit"),
            (["rrf", "a.json", "b.trec", "--train-queries"], "go with --fit"),
            (["borda", "a.json", "b.trec", "--fit", "qrels"], "no setting is left to fit"),
            (["rrf", "a.json", "b.trec", "--fit", "qrels", "--folds", "7"], "7 folds of 6"),
            (["rrf", "a.json", "b.trec", "--fit", "none"], "none"),
            (["wsum", "a.json", "b.trec", "--fit", "qrels", "--step", "0.3"], "divides 1"),
        ],
    )
    def test_bad_input_is_one_line_and_writes_nothing(self, capsys, arguments, message):
        Path("other.json").write_text(json.dumps({"z": {"a": 1.0}}))
        assert message in refused(capsys, "fuse", *arguments, "-o", "out.trec")
        assert not Path("out.trec").exists()

    def test_it_needs_numpy_alone(self):
        assert main(["fuse", "rrf", "a.json", "b.trec", "-o", "a.trec"]) == 0
        code = """
from weir.cli import main
assert main(["fuse", "rrf", "a.trec", "b.trec", "-o", "out.trec"]) == 0
assert main(["fuse", "rrf", "a.trec", "b.trec", "-o", "out.trec", "--fit", "qrels", "--folds", "2"]) == 0
"""
        assert not modules_after(code) & (HEAVY - {"orjson"})  # which writes numbers faster where it is there
