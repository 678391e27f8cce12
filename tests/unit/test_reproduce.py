from __future__ import annotations

import json
import re
import shlex
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import weir
from tests.unit.cells import MANIFEST, noted, write_cell, write_qrels_file
from tests.unit.test_cli import refused
from weir.cli import main
from weir.datasets import catalogue
from weir.datasets.load import load
from weir.errors import WeirError
from weir.experiment.published import PublishedNames, published
from weir.experiment.reproduce import _Rescored, _scored_again, reproduce
from weir.experiment.reproductions import reproduction_tables, run_words
from weir.experiment.results import finished_cells, open_cell, whereabouts
from weir.experiment.stages import records_in, write_record
from weir.settings import settings

SYSTEM = MANIFEST["system"]


def cell(root: Path, name: str, means: dict[str, float], queries: int = 300, system: str = "bm25") -> Path:
    """A finished cell on SciFact whose means are set."""
    manifest = MANIFEST | {"dataset": "scifact", "system": SYSTEM | {"system": system}}
    folder = write_cell(root / "scifact" / name, manifest=manifest)
    one = open_cell(folder).rows[0]
    rows = [replace(one, measure=m, mean=v, queries=queries).to_dict() for m, v in means.items()]
    return noted(folder, queries=queries, rows=rows)


def test_what_agrees_to_the_printed_digits_is_reproduced(tmp_path):
    cell(tmp_path, "a", {"nDCG@10": 0.67894, "R@100": 0.9254, "AP": 0.6})
    found = {(c.measure, c.published and c.published.model): c for c in reproduce(tmp_path)}
    assert found["nDCG@10", "BM25 flat [Anserini]"].outcome == "reproduced"
    assert found["nDCG@10", "BM25 flat [Pyserini 2CR]"].outcome == "reproduced"
    off = found["R@100", "BM25 flat [Anserini]"]
    assert (off.outcome, off.decimals) == ("off", 4), "no ranking of these has ties"
    assert off.difference == pytest.approx(0.9254 - 0.9253)
    assert found["AP", None].outcome == "not published"


def test_what_others_published_is_told_from_what_nobody_did(tmp_path, capsys):
    cell(tmp_path, "a", {"nDCG@10": 0.6789, "AP": 0.6, "R@10": 0.7}, system="bm25(k1=7.0)")
    outcomes = {c.measure: c.outcome for c in reproduce(tmp_path)}
    assert outcomes == {"nDCG@10": "not claimed", "R@10": "not claimed", "AP": "not published"}
    assert main(["study", "reproduce", str(tmp_path)]) == 0
    told = "0 off, 2 published, not claimed (--all lists the nearest, --published MODEL says what a system is), 1 with nothing published"
    assert told in capsys.readouterr().out


@pytest.mark.parametrize(
    ("dataset", "split", "queries", "model"),
    [("hf:mteb/scifact", "test", 300, "bm25"), ("msmarco", "test", 43, "bm25-default [Pyserini 2CR]")],
)
def test_a_copy_or_a_split_is_compared_with_the_scores_of_what_it_is(
    tmp_path, dataset, split, queries, model
):
    manifest = MANIFEST | {"dataset": dataset, "split": split, "system": SYSTEM | {"system": "bm25"}}
    folder = write_cell(tmp_path / "here" / "a", manifest=manifest)
    row = replace(open_cell(folder).rows[0], measure="nDCG@10", mean=0.5058, queries=queries)
    noted(folder, queries=queries, rows=[row.to_dict()])
    found = {c.published and c.published.model: c.outcome for c in reproduce(tmp_path)}
    assert found
    assert any(name is not None and model.lower() in name.lower() for name in found)
    assert set(found.values()) <= {"reproduced", "off"}


def test_the_checkpoint_of_a_published_score_is_compared_whatever_names_it(tmp_path):
    for number, system in enumerate(('dense("mpnet")', 'dense("sentence-transformers/all-mpnet-base-v2")')):
        cell(tmp_path, f"{number}", {"nDCG@10": 0.6557}, system=system)
    cell(tmp_path, "other", {"nDCG@10": 0.6557}, system='dense("mpnet", dtype="int8")')
    assert [c.outcome for c in reproduce(tmp_path)] == ["reproduced", "reproduced", "not claimed"]


def test_fewer_decimals_may_be_compared(tmp_path):
    cell(tmp_path, "a", {"R@100": 0.9257})
    assert {c.outcome for c in reproduce(tmp_path, decimals=3)} == {"reproduced"}
    assert {c.outcome for c in reproduce(tmp_path)} == {"off"}
    assert {c.decimals for c in reproduce(tmp_path, decimals=9)} == {4}


def test_a_system_that_claims_nothing_may_be_taken_for_a_model(tmp_path):
    cell(tmp_path, "a", {"nDCG@10": 0.64508}, system="bm25(k1=7.0)")
    assert [c.outcome for c in reproduce(tmp_path)] == ["not claimed"]
    found = reproduce(tmp_path, "minilm-l6 v2")
    assert [(c.outcome, c.decimals) for c in found] == [("reproduced", 5)]


def test_one_model_is_compared_with_one_system(tmp_path, capsys):
    cell(tmp_path, "a", {"nDCG@10": 0.6789}, system="bm25(k1=7.0)")
    cell(tmp_path, "b", {"nDCG@10": 0.6789}, system="bm25(k1=8.0)")
    assert main(["study", "reproduce", str(tmp_path), "--published", "minilm-l6 v2"]) == 2
    told = capsys.readouterr().err
    assert "would be compared with 2 systems (bm25(k1=7.0), bm25(k1=8.0))" in told
    assert told.endswith("choose one, as by -s 'bm25(k1=7.0)'\n")
    assert len(reproduce(tmp_path, "minilm-l6 v2", systems=["bm25(k1=7.0)"])) == 1


def test_a_published_measure_of_other_settings_is_named(tmp_path, capsys):
    cell(tmp_path, "a", {"R": 0.9}, system="bm25(k1=7.0)")
    assert main(["study", "reproduce", str(tmp_path)]) == 0
    assert "scifact: R is not among the published scores that Weir has; R@100" in capsys.readouterr().out


def test_a_collection_of_another_size_is_not_the_published_one(tmp_path, capsys):
    cell(tmp_path, "a", {"nDCG@10": 0.6789}, queries=299)
    assert {c.outcome for c in reproduce(tmp_path)} == {"other data"}
    assert not weir.reproduce(tmp_path)
    assert main(["study", "reproduce", str(tmp_path)]) == 3
    assert "2 on other data" in capsys.readouterr().out


def test_the_nearest_of_others_are_shown_for_context(tmp_path, capsys):
    cell(tmp_path, "a", {"nDCG@10": 0.6789})
    found = reproduce(tmp_path, nearest=True)[0].nearest
    assert len(found) == 3
    names = {n.model for n in found}
    assert names.isdisjoint({"BM25 flat [Anserini]", "BM25 flat [Pyserini 2CR]"})
    others = [s for s in published("scifact", measure="nDCG@10") if not s.model.startswith("BM25 flat [")]
    assert min(abs(s.value - 0.6789) for s in others) == abs(float(found[0].printed) - 0.6789)
    main(["study", "reproduce", str(tmp_path), "--all"])
    assert "nearby" in capsys.readouterr().out


def test_a_group_counts_once_all_of_it_is_there(tmp_path):
    from weir.datasets import catalogue

    for member in catalogue.group("cqadupstack").members:
        manifest = MANIFEST | {"dataset": member, "system": SYSTEM | {"system": "bm25"}}
        write_cell(tmp_path / member / "cell", manifest=manifest)
    found = [c for c in reproduce(tmp_path, "BM25 [BEIR paper]") if c.dataset == "cqadupstack"]
    assert [(c.measure, c.outcome, c.split) for c in found] == [
        ("nDCG@10", "other data", "test"),
        ("AP", "not published", "test"),
    ]
    *_, page = reproduction_tables(tmp_path, found)
    assert page.commands[0] == "weir run --fetch -d cqadupstack -s bm25 -m nDCG@10 -m AP -o results/"
    assert sum(note.startswith("made ") for note in page.notes) == 12


def test_the_exit_code_says_whether_all_that_is_claimed_is_reproduced(tmp_path, capsys):
    cell(tmp_path / "good", "a", {"nDCG@10": 0.6789, "AP": 0.1})
    assert main(["study", "reproduce", str(tmp_path / "good")]) == 0
    out = capsys.readouterr().out
    assert "2 reproduced, 0 off, 1 with nothing published" in out
    assert "[1] castorini/anserini" in out
    cell(tmp_path / "bad", "a", {"nDCG@10": 0.6})
    assert main(["study", "reproduce", str(tmp_path / "bad")]) == 1
    out = capsys.readouterr().out
    assert "off by 0.0789" in out
    assert (
        "scifact, bm25: the collection is not at scifact, or not as it was measured; neither ties nor the publisher's rules could explain"
        in out
    )
    assert main(["study", "reproduce", str(tmp_path / "bad"), "--json"]) == 1
    found = [json.loads(line) for line in capsys.readouterr().out.rstrip("\n").split("\n")]
    assert {(f["outcome"], f["ours"]) for f in found} == {("off", 0.6)}
    cell(tmp_path / "none", "a", {"AP": 0.6})
    assert main(["study", "reproduce", str(tmp_path / "none"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["difference"] is None


def test_mistakes_are_refused_in_one_line(tmp_path, capsys):
    cell(tmp_path / "r", "a", {"nDCG@10": 0.6})
    assert "no such folder" in refused(capsys, "study", "reproduce", str(tmp_path / "nothing"))
    assert "no published model named 'BM52'" in refused(
        capsys, "study", "reproduce", str(tmp_path / "r"), "--published", "BM52"
    )
    assert "fits several" in refused(capsys, "study", "reproduce", str(tmp_path / "r"), "--published", "bm25")
    assert "-1 decimals" in refused(capsys, "study", "reproduce", str(tmp_path / "r"), "--tolerance", "-1")


@pytest.fixture
def tied(tmp_path, monkeypatch) -> Path:
    """A cell on a SciFact of 300 queries whose recall is the published 0.9253 under Anserini's order of ties alone."""
    monkeypatch.setenv("WEIR_HOME", str(tmp_path / "home"))
    settings.cache_clear()
    ranked = {f"q{n:03}": {"good": 1.0} if n < 277 else {"bad": 1.0} for n in range(300)}
    judged = {q: {"good": 1} for q in ranked}
    ranked["q000"] = {f"other{n}": 3.0 for n in range(99)} | {"good": 2.0, "z": 2.0}
    ranked["q299"] = {f"d{n}": 1.0 for n in range(10)}
    judged["q299"] = {f"d{n}": 1 for n in range(17)}
    home = tmp_path / "home" / "datasets" / "scifact"
    (home / "qrels").mkdir(parents=True)
    named = sorted({d for row in (*ranked.values(), *judged.values()) for d in row})
    (home / "corpus.jsonl").write_text("".join(json.dumps({"_id": d, "text": d}) + "\n" for d in named))
    (home / "queries.jsonl").write_text("".join(json.dumps({"_id": q, "text": q}) + "\n" for q in ranked))
    write_qrels_file(home / "qrels" / "test.tsv", judged)
    manifest = MANIFEST | {"dataset": "scifact", "system": SYSTEM | {"system": "bm25"}}
    manifest |= {"fingerprint": load("scifact").fingerprint}
    folder = write_cell(tmp_path / "results" / "scifact" / "a", ranked, manifest, ("R@100",), judged)
    [(path, record)] = records_in(folder, "scores-*.json")
    by = record.declared | {"qrels": load("scifact").qrels_fingerprint}
    write_record(path, replace(record, declared=by))
    yield tmp_path / "results"
    settings.cache_clear()


def test_a_difference_that_a_documented_rule_explains_is_no_miss(tied, capsys):
    found = reproduce(tied)
    assert {(c.outcome, c.because) for c in found} == {("explained", "ties")}
    assert {c.published.printed for c in found} == {"0.9253"}
    assert main(["study", "reproduce", str(tied)]) == 0
    out = capsys.readouterr().out
    assert "explained: ties" in out
    assert "0 off" in out
    assert "2 explained (equal once scored by the rules that the publisher documents)" in out
    assert main(["study", "reproduce", str(tied), "--latex"]) == 0
    out = capsys.readouterr().out
    assert "explained: ties & BM25 flat [Anserini] [1]" in out
    assert "\n[1] castorini/anserini" in out
    assert "nearest" not in out, "advice is of the command, not of a paper"
    settings().home.rename(tied / "elsewhere")  # without the judgments nothing can be scored again
    assert {c.outcome for c in reproduce(tied)} == {"not scored again"}
    assert main(["study", "reproduce", str(tied)]) == 3
    here = tied / "elsewhere" / "datasets" / "scifact"
    assert {c.outcome for c in weir.reproduce(tied, collection={"scifact": here})} == {"explained"}
    assert main(["study", "reproduce", str(tied), "--collection", f"scifact={here}"]) == 0
    capsys.readouterr()
    assert "no collection of these results named 'x'" in refused(
        capsys, "study", "reproduce", str(tied), "--collection", f"x={here}"
    )
    (here / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq000\tgood\t1\n")
    said = refused(capsys, "study", "reproduce", str(tied), "--collection", f"scifact={here}")
    assert f"{here}: its judgments are not those by which scifact was scored" in said
    one = open_cell(tied / "scifact" / "a")
    far = replace(one.rows[0], mean=0.5, lowest=0.4, highest=0.6)
    noted(one.folder, rows=[far.to_dict()])
    assert {c.outcome for c in reproduce(tied)} == {"off"}, "no order of equal scores gives so much"


def test_a_page_has_two_commands_for_each_result_that_make_it_again(tied, capsys, monkeypatch, tmp_path):
    """The commands of a page, run in an empty folder, end in the same page but for the time."""

    def page_of(folder: Path, name: str) -> str:
        main(["study", "reproduce", str(folder), "--page", str(tmp_path / name)])
        return re.sub(r"20\d\d-\d\d-\d\d \d\d:\d\d", "TIME", (tmp_path / name).read_text())

    text = page_of(tied, "page.md")
    assert "0 reproduced, 0 off, 0 with nothing published, 2 explained (" in capsys.readouterr().out
    assert "| collection | system | scores | reproduced | explained | off |" in text
    assert "| scifact | bm25 | 2 | 0 | 2 | 0 |" in text
    assert "| R@100 | 0.9220 | 0.9253 | -0.0033 | explained: ties | BM25 flat" in text
    pages = []
    for again in ("once", "twice"):
        commands = [line.strip() for line in text.split("\n") if line.startswith("    weir ")]
        assert commands == [
            "weir run --fetch -d scifact -s bm25 -m R@100 -o results/",
            "weir study reproduce results/",
        ]
        (tmp_path / again).mkdir()
        monkeypatch.chdir(tmp_path / again)
        for command in commands:
            capsys.readouterr()
            main(shlex.split(command)[1:])
        assert "scifact  bm25    R@100" in capsys.readouterr().out
        pages.append(page_of(tmp_path / again / "results", f"{again}.md"))
    assert pages[0] == pages[1]
    assert "made TIME by weir " in pages[0]
    assert '<pre class="weir-frame">weir run --fetch -d scifact -s bm25 -m R@100 -o results/\n' in page_of(
        tmp_path / "once" / "results", "page.html"
    )


def test_a_page_says_depth_split_and_model_where_they_are_not_the_usual_ones(tmp_path):
    manifest = MANIFEST | {"dataset": "mine", "split": "dev", "self_match": "drop", "k": 10}
    write_cell(tmp_path / "mine" / "a", manifest=manifest, measures=("nDCG@10",))
    (cell_,) = finished_cells(tmp_path)
    words = run_words("mine", [cell_])
    assert words == [
        "weir",
        "run",
        "-d",
        "mine:dev",
        "-s",
        "bm25",
        "-m",
        "nDCG@10",
        "-k",
        "10",
        "--drop-self",
        "-o",
        "results/",
    ]
    cell(tmp_path / "other", "a", {"nDCG@10": 0.64508}, system="bm25(k1=7.0)")
    (empty,) = reproduction_tables(tmp_path / "other", reproduce(tmp_path / "other"))
    assert empty.notes == ("no result of this folder claims a published score",)
    checks = reproduce(tmp_path / "other", "minilm-l6 v2")
    first, page = reproduction_tables(tmp_path / "other", checks, "minilm-l6 v2")
    assert page.commands[1] == "weir study reproduce results/ --published 'minilm-l6 v2'"
    assert [cell_.text for cell_ in first.rows[0]][:5] == ["scifact", "bm25(k1=7.0)", "1", "1", "0"]
    cell(tmp_path / "third", "a", {"nDCG@10": 0.64508}, system="Mine")
    _, page = reproduction_tables(tmp_path / "third", reproduce(tmp_path / "third", "minilm-l6 v2"))
    assert page.commands == ("weir study reproduce results/",)
    assert page.notes[0] == (
        "no command here makes it again: Mine (no system named 'Mine'; a package that brings it is not installed here)"
    )


def test_a_page_names_a_known_collection_by_its_name_wherever_it_lay(tmp_path):
    known = catalogue.get("brook-facts").path
    shutil.copytree(known, tmp_path / "brook-facts")
    (tmp_path / "other").mkdir()
    shutil.copytree(known, tmp_path / "other" / "brook-facts")
    judged = next((tmp_path / "other" / "brook-facts" / "qrels").iterdir())
    judged.write_text("\n".join(judged.read_text().splitlines()[:-1]) + "\n")
    for place, named in (
        (tmp_path / "brook-facts", "brook-facts"),
        (tmp_path / "other" / "brook-facts", "PATH/brook-facts"),
    ):
        out = tmp_path / f"results-{place.parent.name}"
        weir.benchmark([place], ["bm25"], ["nDCG@10"], out=out)
        (cell_,) = finished_cells(out)
        words = run_words("brook-facts", [cell_])
        assert words[words.index("-d") + 1] == named
        assert ("--fetch" in words) == (named == "brook-facts")


def test_published_as_takes_every_name_by_which_results_are_shown(tmp_path):
    cell(tmp_path, "a", {"nDCG@10": 0.5}, system='dense("minilm")')
    cells = finished_cells(tmp_path)
    assert {*PublishedNames.of(["minilm=all-MiniLM-L6-v2"], cells).models} == {'dense("minilm")'}
    for name in ("scifact", "scifact:test"):
        assert PublishedNames.of([f"{name}=nfcorpus"], cells).collections == {"scifact": "nfcorpus"}
    several = [replace(one, dataset=f"scifact:{one.split}", split=one.split) for one in cells]
    several.append(replace(several[0], dataset="scifact:dev", split="dev"))
    named = PublishedNames.of(["scifact=nfcorpus"], several).collections
    assert named == {"scifact:test": "nfcorpus", "scifact:dev": "nfcorpus"}


def test_a_mean_over_a_group_is_scored_again_by_all_its_members(tied):
    check = reproduce(tied)[0]
    off, member = replace(check, outcome="off", because=""), open_cell(tied / "scifact" / "a")
    assert _scored_again(off, [_Rescored(member)] * 2, None, False) == check
    absent = _Rescored(member, place=tied / "nowhere")
    with pytest.raises(WeirError):
        _scored_again(off, [_Rescored(member), absent], None, False)
    settings().home.rename(tied / "elsewhere")
    assert _scored_again(off, [_Rescored(member)] * 2, None, False).outcome == "not scored again"


def test_a_difference_that_another_order_of_ties_closes_is_inside_what_ties_allow(tied, capsys, monkeypatch):
    """Where no rule that the publisher documents gives the published score, and the best order of ties does."""
    monkeypatch.setattr("weir.experiment.reproduce.documented", lambda *_: iter(()))
    assert {c.outcome for c in reproduce(tied)} == {"within ties"}
    main(["study", "reproduce", str(tied)])
    out = capsys.readouterr().out
    assert "inside what ties allow (by 0.00" in out
    assert "0 off" in out


def test_the_multifield_figures_of_arguana_are_there(tmp_path, capsys):
    """One paper's number is another index's; Anserini's and Pyserini's are not."""
    manifest = MANIFEST | {"dataset": "arguana", "system": SYSTEM | {"system": 'bm25("lucene-multifield")'}}
    folder = write_cell(tmp_path / "arguana" / "a", manifest=manifest)
    row = open_cell(folder).rows[0].to_dict() | {"measure": "nDCG@10", "mean": 0.41418, "queries": 1406}
    noted(folder, queries=1406, rows=[row])
    checks = reproduce(tmp_path)
    assert {c.published.model: c.outcome for c in checks} == {
        "BM25 multifield [Anserini]": "reproduced",
        "BM25 multifield [Pyserini 2CR]": "reproduced",
    }
    assert main(["study", "reproduce", str(tmp_path)]) == 0
    assert "nothing published" not in capsys.readouterr().out.splitlines()[2]


def test_a_collection_that_was_in_memory_is_said_so_and_not_by_its_folder(tied):
    kept = load("scifact")
    values = kept.corpus, kept.queries, kept.qrels, "scifact"
    weir.benchmark(weir.Dataset.of(*values), "bm25", "nDCG@10", out=tied / "own")
    [cell] = finished_cells(tied / "own")
    assert whereabouts(cell) == "was in memory"
    assert whereabouts(open_cell(tied / "scifact" / "a")).startswith("is not at scifact")
