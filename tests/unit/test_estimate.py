"""weir labels estimate: the corrected score is that of people where the model is one of them, and what is refused."""

from __future__ import annotations

import json
from itertools import product

import numpy as np
import pytest

import weir
from tests.shown import shown
from weir.cli import main
from weir.core.judged import Judged
from weir.core.qrels import Qrels
from weir.core.query_metadata import QueryGroups, QueryWeights
from weir.core.run import Run
from weir.errors import BadValue, FormatError
from weir.files.query_files import read_weights
from weir.measures import MEASURES, parse_measure
from weir.plugins.labels.estimates import (
    ESTIMABLE,
    SUMS,
    QueryVariances,
    allocated,
    corrected_scores,
    estimated_scores,
    next_queries,
)
from weir.plugins.labels.sampling import SampleDesign

RNG = np.random.default_rng(2)
NAMES = [f"q{i}" for i in range(200)]
TRUTH = {
    n: {f"d{j}": int(RNG.random() < 0.2 + 0.5 * (i % 2)) for j in range(10)} for i, n in enumerate(NAMES)
}
LENIENT = {n: {d: max(g, int(RNG.random() < 0.3)) for d, g in of.items()} for n, of in TRUTH.items()}
RUN = Run.of({n: [f"d{j}" for j in range(10)] for n in NAMES})
OTHER = Run.of({n: sorted(of, key=lambda d: -of[d] - 0.3 * (d < "d4"))[:8] for n, of in TRUTH.items()})
FEW = Qrels.of({n: TRUTH[n] for n in NAMES[:50]})
PART = {n: {d: g for d, g in of.items() if RNG.random() < 0.4} for n, of in TRUTH.items()}
P10 = parse_measure("P@10")


def corrected_score(name, run, *others):
    """The corrected score of one run."""
    return corrected_scores({name: run}, *others)[0]


@pytest.mark.parametrize("name", ESTIMABLE)
def test_a_lenient_model_is_corrected_towards_people(name):
    measure = parse_measure(f"{name}@10")
    found = corrected_score("one", RUN, FEW, Qrels.of(LENIENT), measure)
    truth = weir.evaluate(TRUTH, RUN, [measure]).means()[str(measure)]
    assert found.human.value == pytest.approx(
        weir.evaluate(FEW, RUN, [measure]).means()[str(measure)], abs=1e-12
    )
    assert found.model == pytest.approx(
        weir.evaluate(LENIENT, RUN, [measure]).means()[str(measure)], abs=1e-12
    )
    above = found.corrected.high < found.model or name in ("RR", "Success", "ERR")
    assert found.corrected.low <= truth <= found.corrected.high
    assert above
    assert found.corrected.high - found.corrected.low <= 1.05 * (found.human.high - found.human.low)
    assert (found.human_queries, found.model_queries, found.judged) == (50, 200, 1)


def test_a_model_that_is_people_gives_their_mean_over_all():
    found = corrected_score("one", RUN, FEW, Qrels.of(TRUTH), P10)
    truth = weir.evaluate(TRUTH, RUN, [P10]).means()["P@10"]
    assert found.corrected.low <= truth <= found.corrected.high
    assert found.corrected.weight == pytest.approx(1 / (1 + 50 / 150), abs=0.15)


@pytest.mark.parametrize(
    "name", ["nDCG@10", "AP", "R@10", "RR", "condensed(P@10)", "RBP(gain='scaled')@10", "Q@10"]
)
def test_measures_whose_ideal_depends_on_the_labels_are_refused(name):
    with pytest.raises(BadValue, match="cannot be estimated"):
        corrected_score("one", RUN, FEW, Qrels.of(LENIENT), parse_measure(name))


@pytest.mark.parametrize("name", [*ESTIMABLE, "nDCG", "AP", "R", "RBP(gain='scaled')"])
def test_what_can_be_estimated_does_not_depend_on_documents_that_are_not_returned(name):
    measure, run = parse_measure(f"{name}@2"), Run.of({"q": ["a", "b"]})
    one, other = (
        measure.per_query(Judged.of(run, Qrels.of({"q": {"a": 1, "b": 2, "c": grade}}))) for grade in (0, 3)
    )
    assert (one == other).all() == (name in ESTIMABLE)


@pytest.mark.parametrize("name", sorted(set(ESTIMABLE)))
def test_what_counts_as_a_sum_is_one(name):
    measure, run = parse_measure(f"{name}@3"), Run.of({"q": ["a", "b", "c"]})

    def value(grades):
        return float(measure.per_query(Judged.of(run, Qrels.of({"q": grades})))[0])

    grades = {"a": 0, "b": 2, "c": 1}
    alone = sum(value({d: grade if d == one else 0 for d, grade in grades.items()}) for one in grades)
    assert (alone == pytest.approx(value(grades), abs=1e-12)) == (name in SUMS)
    assert name in MEASURES.names()


@pytest.mark.parametrize(("missing", "alone"), [(range(60, 199), True), (range(40, 199), False)])
def test_unanswered_queries_are_named_and_leave_the_corrected_score_within_certain_bounds(missing, alone):
    run = {n: list(TRUTH[n]) for i, n in enumerate(NAMES) if i not in missing}
    people = {n: dict.fromkeys(TRUTH[n], n == "q1") for n in NAMES[:60]}
    lenient = {n: dict.fromkeys(of, 1) for n, of in TRUTH.items()}
    found = weir.labels.estimate(people, lenient, Run.of(run))
    [one] = found
    [free] = corrected_scores({"one": Run.of(run)}, Qrels.of(people), Qrels.of(lenient), P10)
    assert not one.least <= free.corrected.value <= one.most
    assert one.least <= one.corrected.low <= one.corrected.value <= one.corrected.high <= one.most
    [note] = map(str, found.notes())
    assert f"run 1: {len(missing)} of 200 judged queries are not answered and score 0" in note
    assert ("people judged none of them" in note) == alone


@pytest.mark.parametrize("design", ["at random", "strata", "weights", "weights of the judged", "pairs"])
@pytest.mark.parametrize(("missing", "left_out"), [(range(60, 200), True), (range(199, 200), False)])
def test_a_difference_is_left_out_if_people_judged_only_what_the_system_answers(missing, left_out, design):
    part = {n: list(TRUTH[n]) for i, n in enumerate(NAMES) if i not in missing}
    people = {n: TRUTH[n] for n in NAMES[:60]}
    how = {
        "at random": {},
        "strata": {"strata": QueryGroups.of(dict.fromkeys(NAMES, "one"), "all")},
        "weights": {"weights": {n: 1 + (i % 3) for i, n in enumerate(NAMES)}},
        "weights of the judged": {"weights": {n: 1 + (i % 3) for i, n in enumerate(NAMES[:60])}},
        "pairs": {"pairs": True},
    }[design]
    whole = Run.of({n: list(TRUTH[n]) for n in NAMES})
    found = weir.labels.estimate(people, LENIENT, whole, Run.of(part), **how)
    assert [len(one.differences) for one in found] == [not left_out, 0]
    assert any("its differences to others are left out" in str(note) for note in found.notes()) == left_out
    assert found[1].corrected.high <= 1 - len(missing) / 200


@pytest.mark.parametrize("design", ["at random", "strata", "weights", "weights of the judged"])
def test_the_chance_that_a_draw_holds_none_of_a_part_is_that_of_drawing(design):
    draw, count, trials = np.random.default_rng(3), 40, 4000
    queries, part = weir.Queries.of(dict.fromkeys(map(str, range(count)), "")).ids, np.arange(count) % 13 == 0
    weights = {str(n): 1.0 + n % 4 for n in range(count)}
    strata = QueryGroups.of({str(n): "ab"[n % 5 == 0] for n in range(count)}, "two")
    odds = np.array([1 / one for one in weights.values()]) if "weights" in design else np.ones(count)
    none, told = 0, list[float]()
    for _ in range(trials):
        if design == "strata":
            groups = [np.flatnonzero(np.arange(count) % 5 != 0), np.arange(0, count, 5)]
            chosen = np.concatenate([draw.choice(of, len(of) // 4, replace=False) for of in groups])
        else:
            chosen = draw.choice(count, 10, replace=False, p=odds / odds.sum())
        drawn = np.isin(np.arange(count), chosen)
        none += not (drawn & part).any()
        known = {n: w for n, w in weights.items() if design == "weights" or drawn[int(n)]}
        how = SampleDesign(
            strata=strata if design == "strata" else None,
            weights=QueryWeights.of(known) if "weights" in design else None,
        )
        told.append(how.chance_of_none(queries, drawn, part, np.ones(count, np.bool_)))
    least = np.mean(told) - 0.03
    assert none / trials < np.mean(told) + 0.02
    assert (
        design == "weights of the judged" or least < none / trials
    )  # where weights are not known, it is careful


def test_differences_are_estimated_by_query_and_corrected_by_holm():
    runs = {"one": RUN, "other": OTHER, "third": Run.of({n: ["d3", "d9"] for n in NAMES})}
    one, other, third = corrected_scores(runs, FEW, Qrels.of(LENIENT), P10)
    assert [d.other for d in one.differences] == ["other", "third"]
    assert [d.other for d in other.differences] == ["third"]
    assert third.differences == ()
    found = one.differences[0]
    truth = {name: weir.evaluate(TRUTH, run, [P10]).means()["P@10"] for name, run in runs.items()}
    assert found.corrected.low <= truth["other"] - truth["one"] <= found.corrected.high
    assert found.model == pytest.approx(other.model - one.model, abs=1e-12)
    assert found.human.value == pytest.approx(other.human.value - one.human.value, abs=1e-12)
    assert found.corrected.high - found.corrected.low < one.corrected.high - one.corrected.low
    p = sorted((d.p, d.adjusted) for system in (one, other) for d in system.differences)
    assert [a for _, a in p] == pytest.approx(
        np.maximum.accumulate([min(1.0, (3 - i) * v) for i, (v, _) in enumerate(p)])
    )
    many = {f"run {i}": RUN for i in range(10)}
    first, *rest = corrected_scores(many, FEW, Qrels.of(LENIENT), P10)
    assert len(first.differences) == 9
    assert not any(one.differences for one in rest)
    assert {d.p for d in first.differences} == {1.0}


def test_parts_of_queries_count_by_their_share():
    """Horvitz and Thompson's sums by plain loops over the pairs among the first ten of both runs."""
    [one, _] = corrected_scores(
        {"one": OTHER, "other": RUN}, Qrels.of(PART), Qrels.of(LENIENT), P10, SampleDesign(pairs=True)
    )
    values = []
    for name, judged in PART.items():
        if judged:
            rest = {d: g - LENIENT[name][d] for d, g in judged.items()}
            top = list(OTHER.to_dict()[name])[:10]
            labels = sum(LENIENT[name][d] for d in top)
            by_people = sum(g for d, g in judged.items() if d in top) * 10 / len(judged)
            errors = sum(r for d, r in rest.items() if d in top) * 10 / len(judged)
            values.append((by_people / 10, (errors + labels) / 10))
    assert one.human.value == pytest.approx(np.mean([v for v, _ in values]), abs=1e-12)
    assert one.human_queries == len(values)
    # By the tuned weight the estimate lies between that of people and the one with all of the model's labels.
    mixed = [(1 - one.corrected.weight) * v + one.corrected.weight * w for v, w in values]
    alone = 200 - len(values)
    if not alone:
        assert one.corrected.value == pytest.approx(np.mean(mixed), abs=1e-12)
    truth = weir.evaluate(TRUTH, OTHER, [P10]).means()["P@10"]
    assert one.corrected.low <= truth <= one.corrected.high


def test_all_documents_of_queries_are_a_part_too():
    whole = corrected_score("one", RUN, FEW, Qrels.of(LENIENT), P10)
    parts = corrected_score("one", RUN, FEW, Qrels.of(LENIENT), P10, SampleDesign(pairs=True))
    assert parts.human.value == pytest.approx(whole.human.value, abs=1e-12)
    assert parts.corrected.value == pytest.approx(whole.corrected.value, abs=0.003)
    assert parts.corrected.weight * 150 / 200 == pytest.approx(min(whole.corrected.weight, 0.75), abs=0.02)
    with pytest.raises(BadValue, match="no sum over documents"):
        corrected_score("one", RUN, FEW, Qrels.of(LENIENT), parse_measure("RR@5"), SampleDesign(pairs=True))


def test_precision_by_the_models_errors_is_plain_counting():
    found = corrected_score("one", OTHER, FEW, Qrels.of(LENIENT), P10).rogan_gladen
    top = {n: list(docs)[:10] for n, docs in OTHER.to_dict().items()}
    pairs = [(TRUTH[n][d], LENIENT[n][d]) for n in NAMES[:50] for d in top[n]]
    right = [m for h, m in pairs if h]
    wrong = [m for h, m in pairs if not h]
    sensitivity, specificity = sum(right) / len(right), 1 - sum(wrong) / len(wrong)
    labels = [LENIENT[n][d] for n in NAMES for d in top[n]]
    share = (sum(labels) / len(labels) + specificity - 1) / (sensitivity + specificity - 1)
    assert found.value == pytest.approx(share * len(labels) / 2000, abs=1e-12)
    assert corrected_score("one", OTHER, FEW, Qrels.of(LENIENT), parse_measure("RBP@10")).rogan_gladen is None


def test_a_judge_near_chance_is_refused_with_the_reason_and_estimates_keep_to_the_measure():
    rng = np.random.default_rng(8)
    guessed = Qrels.of({n: {d: int(rng.random() < 0.5) for d in of} for n, of in TRUTH.items()})
    found = corrected_score("one", OTHER, FEW, guessed, P10)
    assert found.rogan_gladen is None
    assert "cannot be told from chance" in found.rogan_gladen_refused
    assert "note: no Rogan-Gladen for one: the model's labels cannot be told" in shown("estimate", [found])
    poor = {n: dict.fromkeys(of, 0) for n, of in TRUTH.items()}
    poor[NAMES[0]] = TRUTH[NAMES[0]]
    few = Qrels.of({n: poor[n] for n in NAMES[:5]})
    for name in ("P@10", "RR@10", "DCG@10"):
        one = corrected_score("one", RUN, few, Qrels.of(poor), parse_measure(name))
        assert one.human.low == 0 <= one.corrected.low
        assert name == "DCG@10" or one.human.high <= 1


@pytest.mark.parametrize("name", ["P", "Success", "RR", "DCG", "RBP", "SDCG", "ERR"])
def test_what_is_certain_is_the_least_and_the_most_of_all_fillings(name):
    runs = {"one": Run.of({"a": ["x", "y"], "b": ["y", "z"], "c": ["x"], "d": ["z", "x"]})}
    human = Qrels.of({"a": {"x": 1}, "b": {"y": 0, "z": 1}})
    model = Qrels.of({n: {"x": 1, "y": 0, "z": i % 2} for i, n in enumerate("abcd")})
    measure = parse_measure(f"{name}@2")
    [found] = estimated_scores(runs, human, model, measure)
    known = {"a": {"x": 1}, "b": {"y": 0, "z": 1}, "c": {}, "d": {}}
    open_pairs = [("a", "y"), ("c", "x"), ("d", "z"), ("d", "x")]
    means = []
    for grades in product((0, 1), repeat=4):
        filled = {n: dict(of) for n, of in known.items()}
        for (query, doc), grade in zip(open_pairs, grades, strict=True):
            filled[query][doc] = grade
        means.append(weir.evaluate(filled, runs["one"], [measure]).means()[str(measure)])
    assert (found.least, found.most) == pytest.approx((min(means), max(means)), abs=1e-12)


def test_strata_and_weights_take_a_skewed_draw_out_and_say_what_is_missing():
    """People judged half of the rich queries and a tenth of the poor ones."""
    rich, poor = NAMES[1::2], NAMES[0::2]
    human = Qrels.of({n: TRUTH[n] for n in [*rich[:50], *poor[:10]]})
    strata = QueryGroups.of({n: "rich" if n in rich else "poor" for n in NAMES}, "wealth")
    weights = QueryWeights.of({**dict.fromkeys(rich, 2), **dict.fromkeys(poor, 10)})
    truth = weir.evaluate(TRUTH, RUN, [P10]).means()["P@10"]
    plain = corrected_score("one", RUN, human, Qrels.of(LENIENT), P10)
    assert plain.human.low > truth
    for design in (SampleDesign(strata=strata), SampleDesign(weights=weights)):
        found = corrected_score("one", RUN, human, Qrels.of(LENIENT), P10, design)
        assert found.human.low <= truth <= found.human.high, str(design)
        assert found.corrected.low <= truth <= found.corrected.high
        assert found.rogan_gladen is None
    short = Qrels.of({n: TRUTH[n] for n in [*rich[:50], poor[0]]})
    with pytest.raises(BadValue, match="stratum 'poor' has 1 queries"):
        corrected_score("one", RUN, short, Qrels.of(LENIENT), P10, SampleDesign(strata=strata))
    part = SampleDesign(strata=QueryGroups.of(dict.fromkeys(rich, "rich"), "wealth"))
    with pytest.raises(BadValue, match="'q0' is in no stratum"):
        corrected_score("one", RUN, human, Qrels.of(LENIENT), P10, part)
    part = SampleDesign(weights=QueryWeights.of(dict.fromkeys(poor, 2.0)))
    with pytest.raises(BadValue, match="'q1' is judged by people and has no weight"):
        corrected_score("one", RUN, human, Qrels.of(LENIENT), P10, part)
    with pytest.raises(BadValue, match="give one of them"):
        SampleDesign(strata=strata, pairs=True)


@pytest.mark.parametrize("text", ["q1\tmany\n", "q1\t0\n", "q1\tnan\n", "q1 2\n", ""])
def test_bad_weights_are_one_line(tmp_path, text):
    (tmp_path / "weights.tsv").write_text(text)
    with pytest.raises(FormatError):
        read_weights(tmp_path / "weights.tsv")


def test_weights_read_back(tmp_path):
    (tmp_path / "weights.tsv").write_text("query-id\tweight\nq1\t2.5\nq2\t2.5\n")
    found = read_weights(tmp_path / "weights.tsv")
    assert dict(zip(found.queries.tolist(), found.weight.tolist(), strict=True)) == {"q1": 2.5, "q2": 2.5}


def test_allocation_is_the_best_of_all_of_its_size():
    found = QueryVariances(
        np.array([30, 40, 50]),
        np.array([3, 2, 4]),
        np.array([[0.01, 0.09, 0.04]]),
        np.full((1, 3), 0.02),
        np.array([0.01]),
    )
    more = allocated(found, np.ones(3), 9)
    every = [np.array(m) for m in product(range(10), repeat=3) if sum(m) == 9]
    best = min(every, key=lambda m: found.half_width(found.judged + m))
    assert more.tolist() == best.tolist()
    width = found.half_width(found.judged + more)
    assert allocated(found, np.ones(3), None, width).sum() == 9
    assert allocated(found, np.ones(3), None, 1e-9).tolist() == [27, 38, 46]
    assert allocated(found, np.array([1, 100.0, 1]), 9)[1] < more[1]


def drawn_population(seed):
    """Labels of 200 queries, whose model errs most where it is pleased, and 24 of them judged at random."""
    rng = np.random.default_rng(seed)
    chance = rng.beta(1.2, 1.8, 200)
    truth = rng.random((200, 5)) < chance[:, None]
    model = np.where(rng.random((200, 5)) < 0.9 - 0.4 * (chance[:, None] > 0.5), truth, ~truth)
    docs = [f"d{j}" for j in range(5)]
    both = [
        {n: dict(zip(docs, row.tolist(), strict=True)) for n, row in zip(NAMES, of.astype(int), strict=True)}
        for of in (truth, model)
    ]
    return *both, rng.permutation(NAMES)[:24].tolist()


def test_what_is_judged_next_leaves_the_estimate_unbiased_and_narrows_it_as_expected():
    run, measure = {"one": Run.of({n: [f"d{j}" for j in range(5)] for n in NAMES})}, parse_measure("P@5")
    errors, widths, expected = [], [], []
    for seed in range(60):
        truth, model, first = drawn_population(seed)
        few = Qrels.of({n: truth[n] for n in first})
        plan, _, strata, _ = next_queries(run, (few, Qrels.of(model)), measure, 40)
        assert not set(plan.queries) & set(first)
        assert len(set(plan.queries)) == 40
        more = Qrels.of({n: truth[n] for n in [*first, *plan.queries]})
        found = corrected_score(
            "one", run["one"], more, Qrels.of(model), measure, SampleDesign(strata=strata)
        ).corrected
        errors.append(found.value - np.mean([list(of.values()) for of in truth.values()]))
        widths.append((found.high - found.low) / 2)
        expected.append(plan.then)
        judged = np.array([one.judged + one.more for one in plan.strata])
        assert judged @ [one.weight for one in plan.strata] == pytest.approx(200)
    assert abs(np.mean(errors)) < 3 * np.std(errors) / np.sqrt(len(errors))
    assert np.mean(widths) == pytest.approx(np.mean(expected), rel=0.1)


def test_the_sheet_is_blind_and_says_how_queries_were_drawn(tmp_path, capsys):
    paths = [str(tmp_path / name) for name in ("people.tsv", "model.tsv", "one.trec", "two.trec")]
    for value, path in zip((FEW, Qrels.of(LENIENT), RUN, OTHER), paths, strict=True):
        value.save(path)
    sheet = tmp_path / "sheet"
    assert (
        main(["labels", "estimate", *paths, "--next", "20", "--width", "0.03", "-o", str(sheet), "--json"])
        == 0
    )
    *systems, plan = map(json.loads, capsys.readouterr().out.splitlines())
    assert len(systems) == 2
    assert len(plan["queries"]) == 20
    assert plan["pairs"] == 200
    assert plan["then"] < plan["now"]
    assert (plan["needed"] > 0) == (plan["best"] <= 0.03)
    lines = [line.split("\t") for line in (sheet / "to_judge.tsv").read_text().splitlines()]
    assert lines[0][:3] == ["query-id", "corpus-id", "grade"]
    assert len(lines) == 201
    assert [q for q in dict.fromkeys(line[0] for line in lines[1:])] == plan["queries"]
    assert main(["labels", "estimate", *paths, "--strata", str(sheet / "strata.tsv")]) == 0
    assert main(["labels", "estimate", *paths, "-o", str(sheet)]) == 2
    assert main(["labels", "estimate", *paths, "--next", "5", "-o", str(sheet)]) == 2
    assert main(["labels", "estimate", *paths, "--next", "0"]) == 2
    assert main(["labels", "estimate", *paths, "--next", "5", "--pairs"]) == 2
    weights = read_weights(sheet / "weights.tsv")
    assert weights.weight.sum() == pytest.approx(200)
    answered = {line[0] for line in lines[1:]} | set(NAMES[:50])
    assert set(weights.queries.tolist()) == answered


def test_the_command_and_its_equal_say_the_same(tmp_path, capsys):
    paths = [str(tmp_path / name) for name in ("people.tsv", "model.tsv", "one.trec")]
    for value, path in zip((FEW, Qrels.of(LENIENT), RUN), paths, strict=True):
        value.save(path)
    assert main(["labels", "estimate", *paths]) == 0
    assert capsys.readouterr().out.strip() == repr(weir.labels.estimate(*paths))
    assert main(["labels", "estimate", *paths, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["system"] == "one"
    assert main(["labels", "estimate", *paths, "-m", "nDCG@10"]) == 2
    assert "its ideal ranking is another" in capsys.readouterr().err
    assert main(["labels", "estimate", *paths, "--pairs", "--width", "0.01"]) == 2
    assert main(["labels", "estimate", *paths, "--width", "0.0001"]) == 0
    out = capsys.readouterr().out
    assert "out of reach" in out
    assert out.strip().endswith(repr(weir.labels.next_queries(*paths, width=0.0001)))
    assert main(["labels", "estimate", *paths, "--next", "1", "-o", str(tmp_path / "sheet")]) == 0
    assert "identifiers and no texts, as it is not known which collection it is of; --collection NAME" in (
        capsys.readouterr().err
    )
    (tmp_path / "labels").mkdir()
    Qrels.of(LENIENT).save(tmp_path / "labels" / "labels.tsv")
    judged = weir.labels.estimate(paths[0], tmp_path / "labels", paths[2])
    assert repr(judged) == repr(weir.labels.estimate(*paths))
    saved = weir.labels.estimate(*paths)

    saved.save(tmp_path / "saved.json")
    assert repr(type(saved).load(tmp_path / "saved.json")) == repr(saved)
