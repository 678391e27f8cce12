"""BIRCO's own files: test set and rank pickles read as data, and the traps that ../shared/data/birco/NOTES.md names."""

from __future__ import annotations

import ast
import csv
import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import weir
from weir.cli import main
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.datasets import catalogue
from weir.errors import BadValue
from weir.experiment.published import published, publisher_of
from weir.files.pickles import read_pickle
from weir.files.runs import read_qrels, read_run
from weir.plugins.importing import import_files
from weir.stats.birco import birco_scores

pytestmark = pytest.mark.real
MEASURES = ("R@5", "R@10", "R@20", "R@100", "nDCG@10", "MRR@10", "MAP")


@pytest.fixture
def birco(shared: Path) -> Path:
    if not (shared / "data" / "birco" / "pickles").is_dir():
        pytest.skip("../shared/data/birco/pickles is not there: BIRCO's files are not part of the project")
    return shared / "data" / "birco"


@pytest.mark.parametrize("name", ["relic", "wtb"])
def test_every_rank_pickle_is_the_json_beside_it_and_scores_as_the_official_program_does(birco, name):
    expected = json.loads((birco / "expected_metrics.json").read_text())[name]
    qrels = read_qrels(birco / "beir" / name / "qrels" / "test.tsv")
    files = sorted((birco / "pickles" / "ranks" / name).glob("*.pickle"))
    assert {path.stem for path in files} == set(expected)
    for path in files:
        run = read_run(path)
        ranked = {query: list(row) for query, row in run.to_dict().items()}
        assert ranked == json.loads((birco / "ranks" / name / f"{path.stem}.json").read_text())
        for one in birco_scores(qrels, run):
            figure = expected[path.stem][one.measure]
            assert (one.printed, one.deviation) == (
                pytest.approx(figure["boot_mean"], abs=1e-15),
                pytest.approx(figure["boot_std"], abs=1e-15),
            )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["relic", "wtb"])
def test_every_rank_file_reproduces_its_published_row(birco, home, tmp_path, name):
    entry = catalogue.get(f"birco-{name}")
    shutil.copytree(birco / "beir" / name, entry.path)
    files = sorted((birco / "pickles" / "ranks" / name).glob("*.pickle"))
    measures = [{"MRR@10": "RR@10", "MAP": "AP"}.get(measure, measure) for measure in MEASURES]
    systems = [f'run("{path}")' for path in files]
    weir.benchmark(entry.name, systems, measures, out=tmp_path / "results")
    checks = weir.reproduce(tmp_path / "results")
    assert {check.outcome for check in checks} == {"reproduced"}
    assert len(checks) == len(published(entry.name)) == len(MEASURES) * len(files)


def test_the_test_set_is_a_collection_with_pools_of_candidates(birco, tmp_path, monkeypatch):
    monkeypatch.setenv("WEIR_HOME", str(tmp_path / "home"))
    path = birco / "pickles" / "datasets" / "relic" / "test_set.pickle"
    report = import_files([path], tmp_path / "relic")
    assert (report.whole["queries"], report.whole["documents"], report.whole["judgments"]) == (
        100,
        5023,
        {"test": 5062},
    )
    folder = birco / "beir" / "relic"
    for dataset in (weir.load(tmp_path / "relic"), weir.load(path)):
        given = read_pickle(path)
        assert dataset.qrels.to_dict() == given["qrel"] == read_qrels(folder / "qrels" / "test.tsv").to_dict()
        lists = dataset.queries.metadata.candidates
        pools = {q: lists.docs.take(lists.doc[lists.ptr[i] : lists.ptr[i + 1]]).tolist()
                 for i, q in enumerate(dataset.queries.ids)}  # fmt: skip
        assert pools == {query: sorted(row, reverse=True) for query, row in given["qrel"].items()}
        assert (
            sum(list(row.values())[-1] for row in given["qrel"].values()) == 63
        )  # the relevant one is last in the file
        assert dataset.queries.text.tolist() == [
            given["query"][query].strip() for query in dataset.queries.ids
        ]


@pytest.mark.parametrize("name", ["arguana", "clinical-trial", "doris-mae", "relic", "wtb"])
def test_the_catalogue_repeats_the_facts(shared, name):
    with (shared / "facts" / "birco-datasets.csv").open(encoding="utf-8") as file:
        [row] = [one for one in csv.DictReader(file) if (one["dataset"], one["split"]) == (name, "test")]
    entry = catalogue.get(f"birco-{name}")
    assert (entry.documents, entry.queries) == (int(row["corpus"]), int(row["queries"]))
    if row["levels"].startswith("{"):
        levels = {float(grade): count for grade, count in ast.literal_eval(row["levels"]).items()}
        assert entry.grades == levels
        assert (entry.words_per_query, entry.words_per_document) == (
            float(row["avg_query_words"]),
            float(row["avg_doc_words"]),
        )


def test_the_catalogue_expects_the_official_file(birco):
    path = birco / "pickles" / "datasets" / "relic" / "test_set.pickle"
    entry = catalogue.get("birco-relic")
    assert (hashlib.md5(path.read_bytes()).hexdigest(), path.stat().st_size) == (entry.md5, entry.bytes)


def test_every_published_row_is_what_its_rank_file_scores(birco):
    rows = [score for name in ("relic", "wtb") for score in published(f"birco-{name}")]
    assert len(rows) == 62 * len(MEASURES) == 434
    sets = {name: read_qrels(birco / "beir" / name / "qrels" / "test.tsv") for name in ("relic", "wtb")}
    measures = sorted({row.measure for row in rows})
    assert measures == ["AP", "R@10", "R@100", "R@20", "R@5", "RR@10", "nDCG@10"]
    found: dict[tuple[str, str], dict[str, float]] = {}
    for row in rows:
        name, file = row.dataset.removeprefix("birco-"), row.source.rpartition("/")[2]
        if (name, file) not in found:
            run = read_run(birco / "pickles" / "ranks" / name / file)
            found[name, file] = weir.evaluate(sets[name], run, measures).means()
        assert row.decimals == 5
        assert row.agrees(found[name, file][row.measure]), row
        assert publisher_of(row.model).name == "BIRCO"


def test_the_command_scores_the_official_files_as_they_are(birco, tmp_path, capsys):
    files = ["datasets/relic/test_set.pickle", "ranks/relic/GPT-4_reason_O.pickle"]
    assert main(["eval", *(str(birco / "pickles" / file) for file in files), "--scorer", "birco"]) == 0
    assert "50.975 ± 4.998" in capsys.readouterr().out
    assert main(["data", "convert", str(birco / "pickles" / files[1]), str(tmp_path / "a.trec")]) == 0
    assert main(["data", "convert", str(tmp_path / "a.trec"), str(tmp_path / "b.pickle"), "--lists"]) == 0
    assert read_pickle(tmp_path / "b.pickle") == read_pickle(birco / "pickles" / files[1])


def printed(
    grades: dict[str, dict[str, float]], ranked: dict[str, list[str]]
) -> dict[str, tuple[int, float]]:
    return {s.measure: (s.queries, s.mean) for s in birco_scores(Qrels.of(grades), Run.of(ranked, "mine"))}


POOL = [f"d{n}" for n in range(12)]
FRACTIONS = {
    "q": dict.fromkeys(POOL, 0.0) | {"d3": 0.9, "d7": 0.4},
    "p": dict.fromkeys(POOL, 0.0) | {"d1": 1.4, "d2": 1},
}


@pytest.mark.parametrize(
    ("measure", "queries", "mean"),
    [
        ("R@5", 1, 1.0),  # grade 1 and more is relevant: q has none, and is left out
        ("MAP", 1, (1 / 2 + 2 / 3) / 2),  # of p alone
        ("nDCG@10", 2, None),  # fractions below 1 are gains, and no query is left out
        ("MRR@10", 2, (1 / 4 + 1 / 2) / 2),  # only the highest grade of a query counts: d3 and d1
    ],
)
def test_grades_with_fractions(measure, queries, mean):
    found = printed(FRACTIONS, dict.fromkeys(FRACTIONS, POOL))[measure]
    if mean is None:
        q = (0.9 / np.log2(5) + 0.4 / np.log2(9)) / (0.9 + 0.4 / np.log2(3))
        p = (1.4 / np.log2(3) + 1 / np.log2(4)) / (1.4 + 1 / np.log2(3))
        mean = (q + p) / 2
    assert found == (queries, pytest.approx(mean, abs=1e-15))


def test_a_candidate_of_grade_0_belongs_to_the_pool():
    with pytest.raises(BadValue, match="leaves out 'd0'"):
        printed(FRACTIONS, {"q": POOL[1:], "p": POOL})
    with pytest.raises(BadValue, match="holds 'x', which is no candidate"):
        printed(FRACTIONS, {"q": [*POOL, "x"], "p": POOL})
    with pytest.raises(BadValue, match="no ranking of query 'p'"):
        printed(FRACTIONS, {"q": POOL})


def test_each_measure_is_resampled_from_the_same_seed():
    """NOTES' worked case: values 1, 0, 1, 1 in the order of the queries."""
    grades = {f"q{n}": dict.fromkeys(POOL, 0) | {"d0": 1} for n in range(4)}
    ranked = {query: POOL if query != "q1" else POOL[::-1] for query in grades}
    found = {s.measure: s for s in birco_scores(Qrels.of(grades), Run.of(ranked, "mine"))}
    assert found["R@5"].printed == pytest.approx(0.74775, abs=1e-12)
    assert found["R@5"].deviation == pytest.approx(0.2242932, abs=5e-8)
    assert found["R@10"].printed == found["R@5"].printed
    assert set(found) == set(MEASURES)
