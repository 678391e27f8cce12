"""weir audit --fit: each defect is found and none is invented; noise, and gates and comparisons that allow for it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import weir
from tests.unit.fit_sets import CHANGE, DEFECTS, FitSet, fit_set
from tests.unit.remote_place import DOCUMENTS, answer
from tests.unit.search_servers import searching
from tests.unit.test_http_system import described
from weir.cli import main
from weir.core.strings import Ids
from weir.core.subject import Subject
from weir.errors import BadValue, FormatError
from weir.plugins.questions.fitness import fitness_of, power_at_ceiling
from weir.plugins.questions.noise import system_noise, variance_components
from weir.stats.compare import ComparisonMethod, ScoreTable, compared
from weir.stats.gate import GateRules, gates
from weir.stats.run_noise import RunNoise


def faults(found):
    return [fault.kind for fault in found.faults]


@pytest.mark.parametrize("defect", [None, *DEFECTS], ids=lambda one: one.__name__ if one else "none")
def test_each_defect_is_found_and_no_other(tmp_path, defect):
    made = fit_set()
    if defect is not None:
        defect(made)
    [found] = weir.fitness(*made.write(tmp_path), change=CHANGE, collection=tmp_path / "mine")
    assert set(faults(found)) == ({DEFECTS[defect]} if defect else set())
    assert found.verdict == ("unfit" if defect else "fit")


def test_the_last_word_is_fit_or_unfit_and_the_exit_code_says_it(tmp_path, capsys):
    made = fit_set()
    paths = [str(path) for path in made.write(tmp_path)]
    asked = ["audit", *paths, "--collection", str(tmp_path / "mine"), "--fit", "--change"]
    assert main([*asked, "0.05"]) == 0
    assert capsys.readouterr().out.rstrip().endswith("mine: fit")
    assert main([*asked, "0.001", "-m", "nDCG@10", "-m", "P@5"]) == 1
    shown = capsys.readouterr().out.rstrip()
    assert shown.endswith("mine: unfit (few queries)")
    assert "700 queries show a difference of 0.0" in shown
    assert main([*asked, "0.001", "--json"]) == 1
    [record] = map(json.loads, capsys.readouterr().out.splitlines())
    assert record["faults"][0]["kind"] == "few queries"
    assert main(["audit", *paths, "--change", "0.1"]) == 2
    assert "go with --fit" in capsys.readouterr().err
    assert main([*asked, "0.1", "--encoder", "minilm"]) == 2
    assert "leave out --encoder" in capsys.readouterr().err
    assert main([*asked, "-1"]) == 2
    assert main(["audit", *paths, "--only", "holes"]) == 0  # an audit is what it was


def test_one_system_is_measured_beside_lexical_ones(tmp_path):
    fit_set().write(tmp_path)
    [found] = weir.fitness(tmp_path / "mine", change=0.05, measures=["nDCG@10"], systems=["bm25"], repeats=5)
    [row] = found.measures
    assert (row.queries, row.systems) == (700, 3)
    assert row.detectable > 0
    assert {one.system for one in found.noise} == {"bm25"}


def test_results_are_saved_and_read(tmp_path):
    made = fit_set()
    found = weir.fitness(*made.write(tmp_path), change=0.001, collection=tmp_path / "mine")
    found.save(tmp_path / "found.json")
    assert weir.ResultSet.load(tmp_path / "found.json")[0].faults == found[0].faults


def test_a_measure_that_shows_the_change_is_offered(tmp_path):
    paths, asked = fit_set().write(tmp_path), ["R@10", "nDCG@10", "Success@10"]
    [found] = weir.fitness(*paths, change=0.018, collection=tmp_path / "mine", measures=asked)
    assert [one.shows_change for one in found.measures] == [False, True, False]
    assert found.faults[0].remedy == f"take nDCG@10 (shows {found.measures[1].detectable:.4f})"


def test_systems_that_are_equal_say_nothing_of_how_differences_vary(tmp_path):
    made = fit_set()
    made.runs = {name: made.runs["alpha"] for name in ("alpha", "beta")}
    found = weir.fitness(*made.write(tmp_path), change=0.05, collection=tmp_path / "mine")
    assert faults(found[0]) == ["equal systems"]
    assert "10,000,000" not in str(found)


@pytest.mark.filterwarnings("ignore::weir.errors.RankingWarning")
def test_rankings_by_several_versions_of_the_documents_are_told(tmp_path):
    made, out = small(tmp_path), tmp_path / "out"
    weir.benchmark([tmp_path / "mine"], ["bm25"], ["nDCG@10"], out)
    made.documents["later"] = "words of a later document"
    made.write(tmp_path)
    weir.benchmark([tmp_path / "mine"], ["bm25(b=0.0)", "rm3"], ["nDCG@10"], out)
    [found] = weir.fitness(out, change=0.2)
    [fault] = [one for one in found.faults if one.kind == "other documents"]
    assert "by 2 versions of the documents or judgments of mine" in fault.statement


def test_without_rankings_lexical_systems_say_how_differences_vary(tmp_path):
    fit_set().write(tmp_path)
    [found] = weir.fitness(tmp_path / "mine", change=0.2)
    assert {one.best for one in found.measures} <= {"bm25", "bm25(b=0.0)", "rm3"}
    assert found.measures[0].systems == 3
    with pytest.raises(BadValue, match="name two rankings, or the collection"):
        weir.fitness(tmp_path / "mine" / "qrels" / "test.tsv", tmp_path / "alpha.trec")


@pytest.mark.parametrize("values", [{0.0: 95, 1.0: 5}, {0.0: 90, 0.5: 10}, {0.0: 0, 0.1: 40}, {0.0: 50}])
def test_power_at_the_ceiling_is_that_of_a_simulation(values):
    gaps = np.repeat(list(values), list(values.values()))
    drawn = np.random.default_rng(0).choice(gaps, (4000, len(gaps)))
    # Of differences of one sign the sum of all is the largest of 2**n: the test of all signs has p 2 / 2**n.
    p = 2.0 / 2.0 ** np.count_nonzero(drawn, axis=1)
    assert power_at_ceiling(gaps) == pytest.approx(np.mean(p < 0.05), abs=0.02)


class Shop:
    """An engine without some documents, whose scores move by themselves."""

    def __init__(self, without=(), jitter=0.0):
        self.without, self.jitter, self.draw = set(without), jitter, np.random.default_rng(5)

    def index(self, documents):
        self.words = {name: set(text.split()) for name, text in documents.items() if name not in self.without}

    def search(self, queries, k):
        names = list(self.words)
        found = {}
        for query, text in queries.items():
            asked = set(text.split())
            shared = np.array([len(asked & self.words[name]) for name in names]) / len(asked)
            score = shared + self.draw.random(len(names)) * (self.jitter or 1e-6)
            found[query] = [names[i] for i in np.argsort(-score)[:k].tolist()]
        return found


def small(tmp_path):
    made = fit_set()
    for name in list(made.queries)[120:]:
        del made.queries[name], made.gold[name]
    made.runs.clear()
    made.write(tmp_path)
    return made


def test_an_engine_that_lacks_relevant_documents_is_found(tmp_path):
    made = small(tmp_path)
    gold = sorted({doc for docs in made.gold.values() for doc in docs})
    whole = weir.system(Shop(), name="whole", version="1")
    part = weir.system(Shop(gold[::5]), name="part", version="1")
    [found] = weir.fitness(tmp_path / "mine", change=0.1, systems=[whole, part])
    assert faults(found) == ["not in the index"]
    [fault] = found.faults
    assert "of 100 relevant documents are not found by part" in fault.statement
    assert set(fault.examples) <= set(gold[::5])


def test_an_engine_that_answers_otherwise_each_time_is_noisy(tmp_path, capsys):
    small(tmp_path)
    engine = weir.system(Shop(jitter=0.5), name="engine", version="1")
    [found] = weir.fitness(
        tmp_path / "mine", change=0.01, measures=["R@10"], systems=[engine, "bm25"], repeats=6
    )
    assert "noisy" in faults(found)
    noise = {one.system: one for one in found.noise}
    assert noise["bm25"].deviation == pytest.approx(0, abs=1e-12)
    assert noise["bm25"].changed == 0
    assert noise["engine"].deviation > 0.003
    assert noise["engine"].changed > 20
    with pytest.raises(BadValue, match="from 5 runs on"):
        weir.fitness(tmp_path / "mine", systems=["bm25"], repeats=3)
    given = [tmp_path / "a.trec", tmp_path / "b.trec"]
    for path in given:
        path.write_text("q1 Q0 d1 1 1.0 x\n")
    with pytest.raises(BadValue, match=r"`repeats=5`: the rankings of .* are there, and no system is run"):
        weir.fitness(tmp_path / "mine" / "qrels" / "test.tsv", *given, repeats=5)


def test_a_server_is_asked_anew_each_time_and_for_what_it_may_lack(tmp_path):
    names = [f"q{n}" for n in range(12)]
    texts = {name: f"rivers of {name}" for name in names}
    gold = {name: list(answer(text, 10))[1] for name, text in texts.items()}
    returned = {doc for text in texts.values() for doc in answer(text, 10)}
    lost = next(doc for doc in DOCUMENTS if doc not in returned)
    made = FitSet({doc: f"words of {doc} alone" for doc in DOCUMENTS}, {n: {"text": t} for n, t in texts.items()},
                  {n: [doc] for n, doc in gold.items()}, {})  # fmt: skip
    made.gold["q0"].append(lost)
    made.write(tmp_path)
    with searching("elasticsearch") as (url, manners):
        engine = f'http("{described(tmp_path, "elasticsearch", url)}", version="1")'
        [found] = weir.fitness(tmp_path / "mine", change=0.2, systems=[engine, "bm25"], repeats=5)
        assert {manners.asked[text] for text in texts.values()} == {5}
        assert not manners.wrong
    [fault] = [one for one in found.faults if one.kind == "not in the index"]
    assert fault.examples == (lost,)
    assert {one.deviation for one in found.noise} == {0.0}


# Variance components, in closed form.


def test_components_are_those_of_the_model():
    draw = np.random.default_rng(1)
    true = {"system": 0.3, "judge": 0.5, "query": 1.0, "system x judge": 0.2, "system x query": 0.4,
            "judge x query": 0.6, "system x judge x query": 0.7}  # fmt: skip
    found: dict[str, list[float]] = {name: [] for name in true}
    for _ in range(400):
        values = np.zeros((5, 4, 30))
        for name, sd in true.items():
            shape = [size if factor in name.split(" x ") else 1 for factor, size in
                     zip(("system", "judge", "query"), values.shape, strict=True)]  # fmt: skip
            values = values + draw.normal(0, sd, shape)
        for one in variance_components(values):
            found[" x ".join(one.factors)].append(one.variance)
    for name, sd in true.items():
        mean, error = np.mean(found[name]), np.std(found[name]) / 20
        assert abs(mean - sd**2) < 4 * error + 1e-12, name


def test_components_of_two_factors_are_the_textbooks():
    y = np.random.default_rng(2).normal(0, 1, (4, 6))
    n, k = y.shape
    of_rows, of_columns, whole = y.mean(axis=1), y.mean(axis=0), y.mean()
    rows = k * np.sum((of_rows - whole) ** 2) / (n - 1)
    columns = n * np.sum((of_columns - whole) ** 2) / (k - 1)
    rest = np.sum((y - of_rows[:, None] - of_columns + whole) ** 2) / (n - 1) / (k - 1)
    found = {one.factors: one.variance for one in variance_components(y[:, None, :])}
    assert found[("system",)] == pytest.approx((rows - rest) / k)
    assert found[("query",)] == pytest.approx((columns - rest) / n)
    assert found[("system", "query")] == pytest.approx(rest)
    one = {c.factors: c.variance for c in variance_components(y[:1, None, :])}
    assert one == {("query",): pytest.approx(y[0].var(ddof=1))}
    for values in (np.zeros((1, 1, 1)), np.full((2, 1, 3), np.nan), np.zeros((2, 2))):
        with pytest.raises(BadValue, match="expected a finite number"):
            variance_components(values)


def test_noise_of_rankings_that_are_one_system_asked_again(tmp_path):
    draw, names = np.random.default_rng(3), [f"q{n}" for n in range(50)]
    qrels = weir.Qrels.of({name: {"x": 1} for name in names})
    runs = [
        weir.Run.of({name: ["x", "y"] if draw.random() < chance else ["y", "x"] for name in names})
        for chance in (0.9, 0.8, 0.7, 0.6, 0.5, 0.4)
    ]
    [one] = system_noise("s", "e", runs, [qrels], [weir.parse_measure("RR@10")])
    means = [weir.evaluate(qrels, run, ["RR@10"]).means()["RR@10"] for run in runs]
    assert one.deviation == pytest.approx(np.std(means, ddof=1))
    assert one.between == pytest.approx(2.570582 * 2**0.5 * one.deviation, rel=1e-5)
    noise = one.of_mean
    assert (noise.measure, noise.variance, noise.degrees) == ("RR@10", pytest.approx(one.deviation**2), 5)
    assert 0 < one.changed <= 50
    other = weir.Qrels.of({name: {"y": 1} for name in names[:40]})
    [two] = system_noise("s", "e", runs, [qrels, other], [weir.parse_measure("RR@10")])
    assert (two.judges, two.queries) == (2, 40)
    assert {part.factors for part in two.components} >= {("judge",), ("judge", "query")}


# Gates and comparisons that allow for noise.


def table(d):
    values = np.stack([np.full(len(d), 0.5), 0.5 + np.asarray(d)])
    return ScoreTable(
        "d", "nDCG@10", ("old", "new"), values, span=1.0, queries=Ids.of(f"q{n}" for n in range(len(d)))
    )


def test_a_gate_and_a_comparison_allow_for_noise():
    d = np.random.default_rng(0).normal(-0.04, 0.1, 100).clip(-0.5, 0.5)
    [without] = gates([("", table(d))], GateRules())
    noise = RunNoise("nDCG@10", 0.02**2, 4)
    [one] = gates([("", table(d))], GateRules(noise=(noise,)))
    assert (without.verdict, one.verdict) == ("fail", "undecided")
    assert one.low < without.low
    assert one.p > without.p
    assert (one.noise, one.needed) == (pytest.approx(0.02), None)
    v = d.var(ddof=1) / 100 + 2 * 0.02**2
    assert noise.error(d)[0] == pytest.approx(v**0.5)
    assert noise.error(d)[1] == pytest.approx(
        v**2 / ((d.var(ddof=1) / 100) ** 2 / 99 + (2 * 0.02**2) ** 2 / 4)
    )
    [quiet] = gates([("", table(d))], GateRules(noise=(RunNoise("nDCG@10", 0.0, 4),)))
    assert (quiet.low, quiet.p) == (pytest.approx(without.low), pytest.approx(without.p))
    plain = compared(table(d), None, ComparisonMethod())
    noisy = compared(table(d), None, ComparisonMethod(noise=(noise,)))
    assert (plain.pairs[0].verdict, noisy.pairs[0].verdict) == ("worse", "not separable")
    assert noisy.pairs[0].low < plain.pairs[0].low < plain.pairs[0].high < noisy.pairs[0].high
    assert noisy.pairs[0].detectable > plain.pairs[0].detectable


def test_a_gate_of_noisy_systems_holds_its_level():
    draw, failed, without = np.random.default_rng(6), 0, 0
    for _ in range(600):
        again = draw.normal(0, 0.02, 5)[:, None] + draw.normal(0, 0.05, (5, 60))
        noise = RunNoise("nDCG@10", float(again.mean(axis=1).var(ddof=1)), 4)
        d = draw.normal(0, 0.1, 60) + draw.normal(0, 0.02 * 2**0.5)
        failed += gates([("", table(d))], GateRules(0, noise=(noise,)))[0].verdict == "fail"
        without += gates([("", table(d))], GateRules(0))[0].verdict == "fail"
    assert failed <= 0.05 * 600 + 12
    assert without > 0.1 * 600


def test_noise_is_saved_and_taken_by_gate_and_compare(tmp_path, capsys):
    made = fit_set()
    draw = np.random.default_rng(8)
    for n in range(5):
        made.runs[f"again{n}"] = {
            query: docs if draw.random() < 0.8 else docs[::-1] for query, docs in made.runs["alpha"].items()
        }
    judged, *paths = [str(path) for path in made.write(tmp_path)]
    again = [path for path in paths if "again" in Path(path).name]
    saved = str(tmp_path / "noise.json")
    assert main(["audit", judged, *again, "--fit", "--same", "--change", "0.2", "--save-noise", saved]) == 0
    assert "how the system moves; weir gate ... --noise" in capsys.readouterr().err
    sides = [judged, paths[0], paths[1]]
    assert main(["gate", *sides, "--noise", saved]) == 3
    shown = capsys.readouterr()
    assert "asked again, a system's mean moves by 0.0" in shown.out
    assert main(["compare", *sides, "--noise", saved, "-m", "nDCG@10"]) == 0
    whose = "the noise allowed for is that of the system on "  # whatever systems are compared
    assert whose in shown.err
    assert whose in capsys.readouterr().out
    assert main(["gate", *sides, "--noise", saved, "-m", "P@5"]) == 2
    assert "not of P@5" in capsys.readouterr().err
    assert main(["audit", *sides, "--fit", "--save-noise", saved, "--change", "0.2"]) == 2
    weir.fitness(*sides, change=0.2).save(tmp_path / "other.json")
    with pytest.raises(FormatError, match="what weir audit --save-noise wrote"):
        weir.gate(*sides, noise=tmp_path / "other.json")


def test_a_measure_without_a_direction_is_refused_wherever_the_rankings_are_from():
    for ask in (
        lambda: weir.fitness("brook-facts", measures=["Judged@10"]),
        lambda: fitness_of(Subject("x"), ["Judged@10"]),
    ):
        with pytest.raises(BadValue, match="Judged@10"):
            ask()
