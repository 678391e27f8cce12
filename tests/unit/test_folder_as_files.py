"""A results folder of stored rankings says what the files say, of every depth and under every name; on TREC's runs too."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

import weir
from weir.cli.main import main
from weir.core.short_names import systems_called

QUERIES = [f"q{n}" for n in range(6)]


def stored(place: Path, depths: dict[str, int]) -> tuple[Path, list[Path]]:
    """A collection of judgments alone, and a run file of each depth."""
    (place / "mine" / "qrels").mkdir(parents=True)
    rows = [f"{q}\t{doc}\t1" for q in QUERIES for doc in ("d0", "never-returned")]
    text = "\n".join(["query-id\tcorpus-id\tscore", *rows]) + "\n"
    (place / "mine" / "qrels" / "test.tsv").write_text(text, encoding="utf-8")
    for name, depth in depths.items():
        lines = [f"{q} Q0 d{n} {n + 1} {1 / (n + 1)} x" for q in QUERIES for n in range(depth)]
        (place / f"{name}.trec").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return place / "mine", [place / f"{name}.trec" for name in depths]


def whole_rankings(notes) -> set[str]:
    """What notes say of whole rankings, after the name of a dataset."""
    return {text[text.index("AP looks") :] for text in map(str, notes) if "AP looks" in text}


@pytest.mark.parametrize("depths", [(3, 5), (3, 6), (9, 40, 2)])
def test_rankings_of_another_depth_are_said_of_a_folder_as_of_files(tmp_path, depths):
    place = tmp_path
    mine, runs = stored(place, {f"run{n}": depth for n, depth in enumerate(depths)})
    weir.benchmark(mine, [f'run("{run}")' for run in runs], ["AP", "P@1"], out=place / "results")
    said = whole_rankings(weir.compare(mine / "qrels" / "test.tsv", *runs, measures="AP").notes())
    assert bool(said) == (max(depths) >= 2 * min(depths))
    folder, report = place / "results", weir.report(place / "results", audit=False)
    assert whole_rankings(weir.results(folder).notes()) == said
    assert whole_rankings(weir.compare(folder).notes()) == said
    assert whole_rankings(report.notes()) == said
    assert any("cut at the same depth" in one.question for one in report.questions) == bool(said)
    report.save_tables(place / "tables")
    for table in ("scores.tex", "scores.md"):
        assert ("AP looks" in (place / "tables" / table).read_text(encoding="utf-8")) == bool(said)
    latex = weir.compare(folder).to_latex()
    assert any("AP looks" in line for line in latex.splitlines() if line.startswith("% note: ")) == bool(said)
    board = report.to_html().partition('<section id="leaderboard"')[2].partition("</section>")[0]
    for measure, inside in re.findall(r'(?s)data-measure="([^"]*)">(.*?)(?=data-measure|$)', board):
        assert ("AP looks" in inside.partition("weir-paper")[0]) == (measure == "AP" and bool(said))
    assert not whole_rankings(
        weir.compare(folder, measures="P@1").notes()
    )  # of measures that were asked for alone


def test_a_system_is_chosen_by_every_name_that_it_goes_by(tmp_path):
    mine, runs = stored(tmp_path, {"one": 3, "two": 4})
    systems = [f'run("{run}")' for run in runs]
    weir.benchmark(mine, systems, "P@1", out=tmp_path / "results")
    for run, name in zip(runs, systems, strict=True):
        for text in (name, run.stem, run.name, str(run)):
            assert {row.system for row in weir.results(tmp_path / "results", systems=[text])} == {name}, text
            assert systems_called(text, dict.fromkeys(systems, "")) == {name}
            compared = weir.compare(tmp_path / "results", baseline=text)
            assert {one.baseline for one in compared} == {run.stem}
            assert weir.report(tmp_path / "results", baseline=text, audit=False).study.baseline == name
            assert name not in str(weir.audits(tmp_path / "results"))
            shown = weir.compare(tmp_path / "results", labels=[f"mine={text}"])
            assert "mine" in {standing.system for one in shown for standing in one.standings}
    assert not systems_called("e", dict.fromkeys(systems, ""))
    weir.benchmark(mine, systems[:1], "P@1", out=tmp_path / "old")
    assert "two is new and not gated" in [
        note.text for note in weir.gate(tmp_path / "old", tmp_path / "results", measures="P@1").notes()
    ]


@pytest.fixture
def deep_learning(tmp_path, shared):
    """TREC's judgments of 2019 in a folder of another name, with a stored ranking of BM25."""
    data = shared / "data" / "trec-dl"
    if not data.is_dir():
        pytest.skip("no TREC Deep Learning beside the checkout")
    (tmp_path / "dl19" / "qrels").mkdir(parents=True)
    shutil.copy(data / "judged-pool/dl19/qrels/test.tsv", tmp_path / "dl19/qrels/test.tsv")
    for name in ("BM25", "D_BERT_KD_TASB"):
        shutil.copy(data / f"runs/dl19/{name}.trec.gz", tmp_path)
    runs = [f'run("{tmp_path}/{name}.trec.gz")' for name in ("BM25", "D_BERT_KD_TASB")]
    weir.benchmark(tmp_path / "dl19", runs, "nDCG@10", out=tmp_path / "results")
    return tmp_path / "results"


def test_published_scores_are_found_by_judgments_whatever_the_folder_is_called(deep_learning, capsys):
    folder, model = str(deep_learning), "bm25-default [Pyserini 2CR]"
    [check] = weir.reproduce(folder, model, systems=["BM25"])
    assert (check.outcome, check.published.dataset) == ("reproduced", "trec-dl-2019")
    assert weir.reproduce(folder, model, systems=["BM25"], datasets=["dl19"]).items == (check,)
    with pytest.raises(weir.errors.UnknownName, match="dataset among these results"):
        weir.reproduce(folder, datasets=["dl20"])
    assert main(["results", folder, "--published", "pyserini bm25"]) == 0
    assert "dl19 is trec-dl-2019" in capsys.readouterr().out
    cited = weir.cite(folder)
    assert {"craswell2019dl", "bajaj2016msmarco"} <= {one.key for one in cited.works}
    assert not cited.uncited
    assert "dl19 is trec-dl-2019" in str(cited.notes()[0])
    there = weir.published(deep_learning.parent / "dl19")
    assert there.items == weir.published("trec-dl-2019").items
    assert "dl19 is trec-dl-2019" in str(there.notes()[0])
    [cell, _] = sorted((deep_learning / "dl19").iterdir())
    assert main(["why", str(cell), "--published", model]) == 0
    assert "0.5058" in capsys.readouterr().out


def test_a_name_without_published_scores_is_said(tmp_path, capsys):
    mine, [run, _] = stored(tmp_path, {"one": 3, "two": 4})
    weir.benchmark(mine, f'run("{run}")', "nDCG@10", out=tmp_path / "results")
    assert main(["results", str(tmp_path / "results"), "--published", "MTEB"]) == 2
    assert main(["study", "reproduce", str(tmp_path / "results")]) == 0
    out, err = capsys.readouterr()
    assert out.count("no score is published under the name mine") == err.count("under the name mine") == 1


def test_a_colleague_verifies_where_the_collection_lies_elsewhere(tmp_path, capsys):
    mine, [run, _] = stored(tmp_path, {"one": 3, "two": 4})
    folder = tmp_path / "results"
    weir.benchmark(mine, f'run("{run}")', "nDCG@10", out=folder)
    mine.rename(tmp_path / "there")
    assert main(["verify", str(folder), "-q"]) == 3
    assert main(["verify", str(folder), "-q", "--collection", f"mine={tmp_path / 'there'}"]) == 0
    other = stored(tmp_path / "other", {"x": 1})[0]
    qrels = other / "qrels" / "test.tsv"
    qrels.write_text(qrels.read_text(encoding="utf-8").replace("d0", "d1"), encoding="utf-8")
    assert main(["verify", str(folder), "-q", "--collection", f"mine={other}"]) == 1
    assert main(["verify", str(folder), "-q", "--collection", f"yours={other}"]) == 2


def test_what_is_said_beside_a_comparison_is_of_what_was_asked(tmp_path, capsys):
    mine, runs = stored(tmp_path, {f"run{n:02}": n + 1 for n in range(12)})
    judgments, asked = str(mine / "qrels" / "test.tsv"), ["-m", "P@1"]
    assert main(["compare", judgments, *map(str, runs), *asked, "--margin", "0.02", "--latex"]) == 0
    text = capsys.readouterr().out
    assert "no pair is equivalent" in text or "equivalent:" in text
    assert text.count("% packages: booktabs") == text.count(r"\begin{tabular}") > 0
    assert main(["compare", judgments, *map(str, runs), *asked]) == 0
    assert "pairs are listed, those with the best system (--long lists all)" in capsys.readouterr().out


@pytest.mark.parametrize(("split", "name"), [("test", "mine"), ("dev", "mine:dev")])
def test_a_collection_has_one_name_whether_its_folder_or_its_judgments_are_given(
    tmp_path, split, name, monkeypatch
):
    mine, [run, other] = stored(tmp_path, {"one": 3, "two": 3})
    judgments = (mine / "qrels" / "test.tsv").rename(mine / "qrels" / f"{split}.tsv")
    weir.benchmark(f"{mine}:{split}", [f'run("{run}")'], "P@1", out=tmp_path / "results")
    assert {row.dataset.partition(":")[0] for row in weir.results(tmp_path / "results")} == {"mine"}
    monkeypatch.chdir(mine)
    for given in (judgments, Path("qrels") / judgments.name):
        assert {one.dataset for one in weir.compare(given, run, other, measures="P@1")} == {name}
        assert {one.subject for one in weir.audits(given, run)} == {name}
