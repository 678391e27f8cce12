"""BIRCO's figures against a program written from its description: every trap of it, and what Weir says there."""

from __future__ import annotations

import json
import math
import random

import numpy as np
import pytest

import weir
from tests.unit import birco_program
from tests.unit.brooklet import write_collection
from weir.cli import main
from weir.core.frames import json_value
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.errors import BadValue, RankingWarning, UnknownName
from weir.experiment.experiment import Experiment
from weir.stats.birco import BIRCO_MEASURES, birco_remarks, birco_scores

CALLED = {"nDCG@10": "NDCG@10"}
POOL = [f"d{n}" for n in range(12)]


def sets(seed: int, fractions: bool) -> tuple[dict, dict]:
    """Pools of 10 to 14 documents with some grade above 0 and one that differs, and rankings of them."""
    draw = random.Random(seed)
    qrel, ranks = {}, {}
    for query in draw.sample(range(1000), 9):
        pool = [f"d{n}" for n in draw.sample(range(50), draw.randint(10, 14))]
        worth = [0.25, 0.5, 1.0, 1.6] if fractions else [1, 2]
        qrel[f"q{query}"] = {d: draw.choice([0, 0, *worth]) for d in pool} | {
            pool[0]: 0,
            pool[1]: draw.choice(worth),
        }
        ranks[f"q{query}"] = draw.sample(pool, len(pool))
    return qrel, ranks


@pytest.mark.parametrize("fractions", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_every_figure_is_that_of_loops_over_lists(seed, fractions):
    qrel, ranks = sets(seed, fractions)
    found = birco_scores(Qrels.of(qrel), Run.of(ranks, "mine"), "pools")
    values = birco_program.per_query(qrel, ranks)
    for one in found:
        expected = values[CALLED.get(one.measure, one.measure)]
        printed = birco_program.resampled(expected)
        assert one.queries == len(expected)
        assert (one.mean, one.printed, one.deviation) == pytest.approx(
            (np.mean(expected), *printed), abs=1e-14
        )
        assert one.printed - one.score == pytest.approx(
            one.resampling + one.left_out + one.best_grade, abs=1e-14
        )
    scores = weir.evaluate(qrel, ranks, [one.plain for one in found])
    for one, (row, mean) in zip(
        found,
        zip(weir.stats.result_rows(scores, "pools", "mine"), scores.means().values(), strict=True),
        strict=True,
    ):
        assert (one.score, one.low, one.high) == (mean, row.low, row.high)
    by_name = {one.measure: one for one in found}
    assert by_name["nDCG@10"].left_out == by_name["MRR@10"].left_out == by_name["MAP"].best_grade == 0
    assert by_name["R@5"].left_out == pytest.approx(by_name["R@5"].score * (9 / by_name["R@5"].queries - 1))


def test_measures_of_as_many_queries_share_their_resamples():
    qrel, _ = sets(1, False)
    ranked = {query: sorted(row, key=lambda d: -row[d]) for query, row in qrel.items()}
    by_name = {one.measure: one for one in birco_scores(Qrels.of(qrel), Run.of(ranked, "mine"))}
    assert by_name["R@20"].printed == by_name["R@100"].printed == 1
    one, other = (np.arange(5.0), np.arange(5.0) ** 2)
    first, second = birco_program.resampled(one), birco_program.resampled(2 * one + 1)
    assert second == pytest.approx((2 * first[0] + 1, 2 * first[1]))  # the same draws, measure after measure
    assert birco_program.resampled(other)[0] != pytest.approx(np.mean(other), abs=1e-3)  # no plain mean


def test_the_name_of_the_second_line_is_a_slip():
    assert [one.line for one in BIRCO_MEASURES.values()].count("R@100") == 2
    assert BIRCO_MEASURES["R@10"].line == "R@100" != str(BIRCO_MEASURES["R@10"].plain)


def test_gains_are_grades_and_the_other_gains_of_its_files_are_not_used():
    qrel = {"q": dict.fromkeys(POOL, 0) | {"d0": 2, "d1": 1}}
    [found] = [
        one
        for one in birco_scores(Qrels.of(qrel), Run.of({"q": ["d1", "d0", *POOL[2:]]}))
        if one.measure == "nDCG@10"
    ]
    discount = 1 / math.log2(3)
    assert found.mean == pytest.approx((1 + 2 * discount) / (2 + discount))
    exponential = [
        (2**a + 2**b * discount + sum(1 / math.log2(n + 2) for n in range(2, 10)))
        for a, b in ((1, 2), (2, 1))
    ]
    assert found.mean != pytest.approx(exponential[0] / exponential[1], abs=1e-3)


TRAPS = {
    "short": (dict.fromkeys(POOL[:9], 0) | {"d0": 1}, IndexError, "fewer than 10 candidates.*IndexError"),
    "nothing": (dict.fromkeys(POOL, 0), ZeroDivisionError, "no grade above 0.*divides by zero.*here it is 0"),
    "equal": (dict.fromkeys(POOL, 1), None, "all grades are equal.*leaves out the last candidate"),
}


@pytest.mark.parametrize("name", TRAPS)
def test_judgments_that_its_program_does_not_take_are_named_and_scored(name):
    grades, raised, said = TRAPS[name]
    qrel = {"fine": dict.fromkeys(POOL, 0) | {"d0": 1}, name: grades}
    ranked = {query: [d for d in reversed(POOL) if d in row] for query, row in qrel.items()}
    if raised:
        with pytest.raises(raised):
            birco_program.per_query(qrel, ranked)
    with pytest.warns(RankingWarning, match=f"^query '{name}': {said}") as warned:
        found = {one.measure: one for one in weir.official_scores(qrel, ranked)}
    assert len(warned) == 1
    of_trap = {"short": 1 / 9, "nothing": 0.0, "equal": 1.0}[name]
    assert found["MRR@10"].mean == pytest.approx((0 + of_trap) / 2)
    if name == "equal":  # the one slip that is not repeated: its list is not kept
        assert birco_program.per_query(qrel, ranked)["MRR@10"] == [0, 1 / 2]
    assert found["nDCG@10"].queries == 2
    assert found["MAP"].queries == (1 if name == "nothing" else 2)
    assert birco_remarks(Qrels.of({"fine": qrel["fine"]})) == []


def test_several_such_queries_are_one_line():
    [said] = birco_remarks(Qrels.of({f"q{n}": {"a": 1, "b": 0} for n in range(4)}))
    assert said.startswith("query 'q0' and 3 others: fewer than 10 candidates")


@pytest.mark.parametrize(
    ("ranked", "raised", "said"),
    [
        ({}, KeyError, "mine: no ranking of query 'q'; BIRCO scores rankings of whole candidate pools"),
        (
            {"q": [*POOL[:5], "x", *POOL[5:]]},
            KeyError,
            "mine: the ranking of query 'q' holds 'x', which is no candidate",
        ),
        ({"q": POOL[:9]}, IndexError, "mine: the ranking of query 'q' leaves out 'd10'"),
    ],
)
def test_rankings_that_end_its_program_are_one_line(tmp_path, capsys, ranked, raised, said):
    qrel = {"q": dict.fromkeys(POOL, 0) | {"d0": 1}, "p": dict.fromkeys(POOL, 0) | {"d1": 1}}
    ranked = {"p": POOL, **ranked}
    with pytest.raises(raised):
        birco_program.per_query(qrel, ranked)
    Qrels.of(qrel).save(tmp_path / "qrels.tsv")
    (tmp_path / "mine.json").write_text(json.dumps(ranked))
    assert main(["eval", str(tmp_path / "qrels.tsv"), str(tmp_path / "mine.json"), "--scorer", "birco"]) == 2
    out = capsys.readouterr()
    assert (out.out, out.err.count("\n")) == ("", 1)
    assert said in out.err


def test_without_a_relevant_document_there_is_nothing_to_average():
    with pytest.raises(BadValue, match="no query has a document of grade 1 or more"):
        birco_scores(Qrels.of({"q": dict.fromkeys(POOL, 0) | {"d0": 0.5}}), Run.of({"q": POOL}))


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """A collection of pools with a grade 2, a query without grade 1, and three systems on it."""
    folder = write_collection(
        tmp_path_factory.mktemp("pools") / "mine", {d: ("", f"river weir {d}") for d in POOL}
    )
    asked = {"q1": "river d3", "q2": "weir d6"}
    lines = [json.dumps({"_id": query, "text": text}) for query, text in asked.items()]
    (folder / "queries.jsonl").write_text("\n".join(lines) + "\n")
    grades = {"q1": dict.fromkeys(POOL, 0) | {"d3": 1, "d5": 2}, "q2": dict.fromkeys(POOL, 0) | {"d4": 0.5}}
    rows = [f"{q}\t{d}\t{grade}" for q, row in grades.items() for d, grade in row.items()]
    (folder / "qrels" / "test.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *rows]) + "\n")
    toml = folder.parent / "mine.toml"
    toml.write_text(
        f'documents = "{folder}/corpus.jsonl"\nqueries = "{folder}/queries.jsonl"\n'
        f'qrels = "{folder}/qrels/test.tsv"\ncandidates = "judged"\n'
    )
    at = folder.parent / "results"
    Experiment([toml], ["pool", "pool >> score(bm25)"], ["nDCG@10"]).execute(at)
    with pytest.warns(RankingWarning, match="2 of 2 queries have more than 5 candidates, up to 12"):
        Experiment([toml], ["pool"], ["nDCG@10"], k=5).execute(at)
    return at


def test_results_show_the_official_figures_and_what_makes_them_differ(results, capsys):
    assert main(["results", str(results), "--scorer", "birco", "-s", "pool >> score(bm25)"]) == 0
    lines = {line.partition(")")[2].split()[0]: line for line in capsys.readouterr().out.splitlines()[2:9]}
    assert "queries left out, 1 count; named R@100" in lines["R@10"]
    assert "the highest grade alone, RR(of='best', rel=0.001)@10" in lines["MRR@10"]
    assert main(["results", str(results), "--scorer", "birco", "--json"]) == 0
    out = capsys.readouterr()
    found = [json.loads(line) for line in out.out.splitlines()]
    assert {(one["system"], one["dataset"]) for one in found} == {
        ("pool", "mine"),
        ("pool >> score(bm25)", "mine"),
    }
    assert "note: mine: pool #k=5: the ranking of query 'q1' leaves out 'd" in out.err
    with pytest.warns(RankingWarning, match="pool #k=5"):
        assert [json_value(one) for one in weir.official_scores(results)] == found
    chosen = [one for one in found if (one["system"], one["measure"]) == ("pool >> score(bm25)", "MRR@10")]
    assert chosen[0]["best_grade"] == pytest.approx(chosen[0]["mean"] - chosen[0]["score"])


def test_a_scorer_has_measures_of_its_own_and_needs_judgments(results, tmp_path, capsys, monkeypatch):
    for more in (["-m", "AP"], ["--by", "length"], ["--provenance"], ["--latex"]):
        assert main(["results", str(results), "--scorer", "birco", *more]) == 2
        assert "--scorer birco has measures of its own" in capsys.readouterr().err
    with pytest.raises(UnknownName, match="no scorer named 'birko'; did you mean birco"):
        weir.official_scores(results, scorer="birko")
    moved = results.parent / "moved.toml"
    (results.parent / "mine.toml").rename(moved)
    try:
        assert main(["results", str(results), "--scorer", "birco"]) == 2
        assert "its judgments are not on this machine as they were used" in capsys.readouterr().err
        assert main(["results", str(results), "--scorer", "birco", "--collection", str(moved)]) == 0
    finally:
        moved.rename(results.parent / "mine.toml")


@pytest.mark.parametrize("options", [["--scorer", "birco"], ["-m", "nDCG@10"], ["-m", "nDCG@10", "--json"]])
def test_one_bad_rank_file_of_many_is_named_and_the_others_are_scored(tmp_path, capsys, options):
    qrel = {"q": dict.fromkeys(POOL, 0) | {"d0": 1}}
    Qrels.of(qrel).save(tmp_path / "qrels.tsv")
    for name, text in {
        "good": json.dumps({"q": POOL}),
        "bad": '{"q": ["d0", ',
        "fine": json.dumps({"q": POOL[::-1]}),
        "twice": json.dumps({"q": ["d0", *POOL]}),
    }.items():
        (tmp_path / f"{name}.json").write_text(text)
    paths = [str(tmp_path / f"{name}.json") for name in ("good", "bad", "fine", "twice", "gone")]
    assert main(["eval", str(tmp_path / "qrels.tsv"), *paths, *options]) == 2
    out = capsys.readouterr()
    assert main(["eval", str(tmp_path / "qrels.tsv"), paths[0], paths[2], *options]) == 0
    assert out.out == capsys.readouterr().out
    left = [line for line in out.err.splitlines() if line.startswith("weir: left out: ")]
    assert [name for line in left for name in ("bad", "twice", "gone") if f"{name}.json" in line] == [
        "bad",
        "twice",
        "gone",
    ]
    assert main(["eval", str(tmp_path / "qrels.tsv"), paths[1], paths[3], *options]) == 2
    out = capsys.readouterr()
    assert (out.out, out.err.count("\n")) == ("", 1)
    assert "bad.json" in out.err
    runs = [{"q": POOL}, {"q": POOL[:3]}]
    with pytest.warns(RankingWarning, match="left out: run: the ranking of query 'q' leaves out"):
        assert len(weir.official_scores(qrel, *runs)) == 7
