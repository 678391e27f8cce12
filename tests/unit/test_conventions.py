"""Conventions: what ties, missing and empty queries and self-matches do to a score, and that it is said."""

from __future__ import annotations

import inspect
import json
import math
from fractions import Fraction
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

import weir
from tests.unit.test_values import example, shuffled
from weir.cli import main
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.core.scores import Row
from weir.errors import BadRanking, BadValue, UnknownName
from weir.files.runs import join_run_file, read_qrels
from weir.files.write import write_qrels, write_run
from weir.measures import MEASURES, measures_of, score_run, scores_of
from weir.measures.evaluate import CHOICES, Conventions, parse_conventions
from weir.measures.ties.tie_groups import TIED
from weir.stats.score_rows import result_rows

RUN = {"1": {"1": 9.0, "a": 3.0, "b": 3.0, "c": 1.0}, "2": {"a": 2.0, "2": 1.0}, "4": {"d": 1.0}}
QRELS = {"1": {"1": 1, "a": 1, "c": 2}, "2": {"b": 1}, "3": {"a": 1}, "4": {"d": 0}}


@pytest.fixture
def invoke(capsys):
    """A command's exit code, output and notes."""

    def run(*arguments):
        code = main(list(map(str, arguments)))
        return SimpleNamespace(exit_code=code, **capsys.readouterr()._asdict())

    return run


@pytest.fixture
def files(tmp_path):
    """RUN and QRELS as files."""
    write_run(Run.of(RUN), tmp_path / "run.trec")
    write_qrels(Qrels.of(QRELS), tmp_path / "qrels.trec")
    return tmp_path / "qrels.trec", tmp_path / "run.trec"


# The value that prints


@pytest.mark.parametrize("words", list(product(*CHOICES.values())))
def test_conventions_print_and_parse_back(words):
    made = Conventions(*words)
    assert parse_conventions(str(made)) == made
    assert len(made.sentences()) == sum(word not in ("trec", "zero", "keep") for word in words)


def test_what_is_usual_is_not_printed():
    assert str(Conventions()) == "default"
    assert str(Conventions("expected", empty="left-out")) == "ties=expected, empty=left-out"
    assert parse_conventions(" missing = answered-only ,ties=trec") == Conventions(missing="answered-only")


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("ties=expcted", UnknownName, "expected"),
        ("tie=expected", UnknownName, "ties"),
        ("expected", BadValue, "names no conventions"),
        ("", BadValue, "names no conventions"),
        ("ties=trec, ties=trec9", BadValue, "names no conventions"),
    ],
)
def test_other_texts_are_refused(text, error, message):
    with pytest.raises(error, match=message):
        parse_conventions(text)


# Which queries count


def test_a_query_without_an_answer_scores_zero_or_leaves_the_mean():
    """E3: two of three answered perfectly is 0.667 and says so; on request the mean of the answered ones."""
    run, qrels = {"1": {"a": 1.0}, "2": {"b": 1.0}}, {"1": {"a": 1}, "2": {"b": 1}, "3": {"c": 1}}
    usual = weir.evaluate(qrels, run, ["AP"])
    assert usual.mean_values().tolist() == [2 / 3]
    answered = weir.evaluate(qrels, run, ["AP", "nDCG@10"], "missing=answered-only")
    assert answered.mean_values().tolist() == [1.0, 1.0]
    assert np.isnan(answered.values[:, 2]).all()
    assert answered.counted().tolist() == [2, 2]
    assert answered.conventions == "missing=answered-only"
    row = result_rows(answered, "three", "two")[0]
    assert (row.mean, row.queries, row.answered, row.counted) == (1.0, 3, 2, 2)


def test_a_share_of_nothing_returned_is_said_to_be_0_by_convention():
    qrels, run = Qrels.of({"q": {"a": 1}, "r": {"b": 1}}), Run.of({"q": {"a": 1.0}})
    said = [note.text for note in weir.evaluate(qrels, run, ["SetP", "R"]).remarks if "a share" in note.text]
    assert said == [
        "SetP of 1 query with nothing returned: a share of nothing, taken as 0, as trec_eval does"
    ]
    left = weir.evaluate(qrels, run, ["SetP"], conventions="missing=answered-only")
    assert not [note for note in left.remarks if "a share" in note.text]


def test_a_query_without_a_relevant_document_scores_zero_or_leaves_the_mean():
    assert weir.evaluate(QRELS, RUN, ["P@1"]).mean_values().tolist() == [0.25]
    left = weir.evaluate(QRELS, RUN, ["P@1", "P(rel=0)@1"], Conventions(empty="left-out"))
    assert left.mean_values().tolist() == [1 / 3, 1 / 3]
    assert left.counted().tolist() == [3, 3]


def test_both_together_and_that_something_must_be_left():
    both = "missing=answered-only, empty=left-out"
    assert weir.evaluate(QRELS, RUN, ["P@1"], both).mean_values().tolist() == [0.5]
    with pytest.raises(BadValue, match="no query counts: none of 2 is left by missing=answered-only"):
        weir.evaluate({"q": {"a": 0}, "r": {"a": 1}}, {"q": {"a": 1.0}}, ["P@1"], both)


def test_self_matches_leave_before_ranks_are_counted(files, invoke):
    """E11: the documents that are the query leave, others move up, the caller's dict is unchanged."""
    before = json.dumps(RUN)
    kept, dropped = (
        weir.evaluate(QRELS, RUN, ["RR", "P@1", "NumRet"], c) for c in ("default", "self_matches=drop")
    )
    assert kept.of("P@1").tolist() == [1.0, 0.0, 0.0, 0.0]
    assert dropped.of("P@1").tolist() == [0.0, 0.0, 0.0, 0.0]
    assert dropped.of("RR").tolist() == [0.5, 0.0, 0.0, 0.0]
    assert dropped.of("NumRet").tolist() == [3.0, 1.0, 0.0, 1.0]
    assert json.dumps(RUN) == before
    shown = invoke("eval", *files, "-m", "RR", "--drop-self", "--per-query")
    assert shown.out.startswith("RR\t1\t0.5\n")


def test_floats_on_request_and_what_a_run_was_read_with():
    run = {"q": {"a": 1.0 + 1e-9, "b": 1.0}}
    qrels = {"q": {"a": 1}}
    values = [
        weir.evaluate(qrels, run, ["RR"], ties).mean_values()[0] for ties in ("ties=trec", "ties=trec9")
    ]
    assert values == [1.0, 0.5]
    read = score_run(Qrels.of(qrels), Run.of(run, ties="trec9"), ["RR"])
    assert (read.mean_values()[0], read.conventions) == (0.5, "ties=trec9")
    expected = score_run(Qrels.of(qrels), Run.of(run, ties="trec9"), ["RR"], Conventions("expected"))
    assert expected.mean_values()[0] == 0.75  # they tie as floats, by which this run was ordered


# Means and extremes over orders


def constant(count, relevant):
    """A thousand documents of one score, some of them relevant."""
    names = [f"d{n}" for n in range(count)]
    return {"q": dict.fromkeys(names, 1.0)}, {"q": dict.fromkeys(names[:relevant], 1)}


def test_a_constant_scorer_scores_what_a_shuffle_would_on_average():
    """E2: a constant scorer has the mean of all orders, all agree that all is tied, and bounds are perfect and worst."""
    n, r = 1000, 30
    run, qrels = constant(n, r)
    names = ["P@10", "R@100", "AP", "RR", "Success@10", "nDCG@10", "Rprec", "bpref", "SetAP@10"]
    found = weir.evaluate(qrels, run, names, "ties=expected")
    values = dict(zip(names, found.values[:, 0].tolist(), strict=True))
    none = Fraction(math.comb(n - r, 10), math.comb(n, 10))
    first = sum(Fraction(math.comb(n - i, r - 1), math.comb(n, r)) / i for i in range(1, n - r + 2))
    pairs = sum(Fraction(r, n) * (1 + Fraction((i - 1) * (r - 1), n - 1)) / i for i in range(1, n + 1)) / r
    assert values["P@10"] == pytest.approx(r / n) == pytest.approx(values["Rprec"])
    assert values["R@100"] == 0.1
    assert values["Success@10"] == pytest.approx(1 - float(none), rel=1e-12)
    assert values["RR"] == pytest.approx(float(first), rel=1e-12)
    assert values["AP"] == pytest.approx(float(pairs), rel=1e-12)
    assert values["nDCG@10"] == pytest.approx(r / n, rel=1e-12)  # the ten best are relevant
    assert values["bpref"] == 1.0  # nothing is judged not relevant
    square = Fraction(10 * 9 * r * (r - 1), n * (n - 1)) + Fraction(10 * r, n)
    assert values["SetAP@10"] == pytest.approx(float(square) / (10 * r), rel=1e-12)
    assert found.tied == 1.0
    assert found.movable().tolist() == [1] * 7 + [0, 1]
    corridor = dict(zip(names, found.tie_bounds().tolist(), strict=True))
    assert corridor["P@10"] == corridor["nDCG@10"] == [0.0, 1.0]
    assert corridor["AP"] == pytest.approx([sum(i / (n - r + i) for i in range(1, r + 1)) / r, 1.0])
    assert corridor["RR"] == [1 / (n - r + 1), 1.0]


def test_a_constant_scorer_with_grades_is_within_its_bounds_for_every_measure():
    rng = np.random.default_rng(5)
    names = [f"d{n}" for n in range(1000)]
    run = {"q": dict.fromkeys(names, 1.0)}
    qrels = {
        "q": {
            d: int(g)
            for d, g in zip(rng.choice(names, 60, replace=False), rng.integers(-1, 4, 60), strict=True)
        }
    }
    closed = [name for name in MEASURES.names() if name in TIED and TIED.get(name).mean is not None]
    closed = [
        name
        for name in closed
        if MEASURES.get(name).of not in ("intents", "rules") and name not in ("IAP", "IPrec")
    ]
    for name in closed:
        for measure in measures_of([f"{name}@20", f"condensed({name}@20)"]):
            try:
                found = weir.evaluate(qrels, run, [measure], "ties=expected")
            except BadValue as error:
                assert "Accuracy" in str(error)  # noqa: PT017 - it has a formula for the whole list only
                continue
            low, high = found.tie_bounds()[0]
            assert low - 1e-12 <= found.mean_values()[0] <= high + 1e-12, measure
            assert low < high or name in ("IDCG", "NumRel", "NumRet") or measure.condensed, measure


def test_what_cannot_be_told_is_refused_by_name_never_guessed():
    run, qrels = constant(1000, 30)
    with pytest.raises(BadValue, match=r"gmAP: query 'q' has more than 20,000 orders"):
        weir.evaluate(qrels, run, ["gmAP"], "ties=expected")
    with pytest.raises(BadValue, match=r"G: query 'q' has more than 20,000 orders"):
        weir.evaluate(qrels, run, ["G"], "ties=bounds")
    with pytest.raises(BadValue, match="query 'q' has too many relevant documents"):
        weir.evaluate(qrels, run, ["IPrec"], "ties=expected")
    unknown = weir.evaluate(qrels, run, ["G"])  # by default it is said, and no corridor is made up
    assert unknown.movable().tolist() == [1]
    assert np.isnan(unknown.tie_bounds()).all()


def test_without_ties_nothing_moves_and_all_rules_agree_in_every_bit():
    run = {f"q{i}": {f"d{d}": float(-d * (i + 1)) for d in range(20)} for i in range(5)}
    qrels = {f"q{i}": {f"d{d}": (d * i) % 4 - 1 for d in range(0, 20, 2)} for i in range(5)}
    names = [n + "@7" for n in MEASURES.names() if MEASURES.get(n).of not in ("intents", "rules")]
    plain = weir.evaluate(qrels, run, names)
    assert not plain.movable().any()
    assert plain.tied == 0.0
    for rule in ("expected", "bounds"):
        assert weir.evaluate(qrels, run, names, f"ties={rule}").values.tolist() == plain.values.tolist()


@pytest.mark.parametrize("seed", range(3))
def test_shuffled_rows_give_the_same_bits_under_every_rule(seed):
    """E1: shuffle rows of run and qrels: means over orders and extremes are bit-identical too."""
    run, qrels = example()
    names = ["nDCG@10", "AP", "RR", "P@3", "ERR@5", "Q", "bpref", "infAP", "condensed(AP)", "Judged@5", "IAP"]
    for rule in ("expected", "bounds"):
        first = weir.evaluate(qrels, run, names, f"ties={rule}")
        again = weir.evaluate(shuffled(qrels, seed + 50), shuffled(run, seed), names, f"ties={rule}")
        order = first.queries.codes(again.queries.strings)
        for one, other in zip(
            (first.values, first.low, first.high), (again.values, again.low, again.high), strict=True
        ):
            assert other.tolist() == one[:, order].tolist()
        assert result_rows(again, "d", "s") == result_rows(first, "d", "s")


def test_formulas_take_the_settings_of_their_measures():
    for name in TIED.names():
        definition = MEASURES.get(name)
        for function in (TIED.get(name).mean, TIED.get(name).ends):
            if function is not None:
                parameters = inspect.signature(function).parameters.values()
                given = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY and p.name != "k"}
                assert given == definition.defaults(), name


def test_the_measures_that_people_report_have_a_formula():
    names = (
        "AP DCG ERR F Hole IAP IPrec Judged NCG NRBP P Q R RBP RR R_cap Rprec SDCG SetAP SetF SetP SetR Success "
        "alpha_nDCG binG bpref infAP nDCG nERR AP_IA ERR_IA P_IA StRecall INSQ NumRelRet"
    )
    assert [name for name in names.split() if TIED.get(name).mean is None] == []


# What is said


def test_eval_says_what_ties_could_change(files, invoke):
    shown = invoke("eval", *files, "-m", "nDCG@10", "-m", "P@1")
    assert "and 1 of 4 queries could score otherwise by the order of ties: nDCG@10 0." in shown.err
    assert "P@1 " not in shown.err
    assert (
        "ties=expected is the mean over all orders"
        in invoke("eval", *files, "-m", "P@5", "-m", "nDCG@10", "--notes").err
    )


def test_eval_with_bounds_shows_the_corridor(files, invoke):
    shown = invoke("eval", *files, "-m", "RR(of='best')", "-m", "AP", "--ties", "bounds")
    low, high = (1 + 2 / 3 + 3 / 4) / 3 / 4, (1 + 1 + 3 / 4) / 3 / 4
    assert f"ties {low:.4f}..{high:.4f}" in shown.out
    assert "ties=bounds: as trec, with the values of the worst and the best order" in shown.err
    lines = invoke("eval", *files, "-m", "AP", "--ties", "bounds", "--per-query").out.split("\n")
    query, *values = lines[0].split("\t")[1:]
    assert (query, [float(v) for v in values]) == ("1", pytest.approx([low * 4, low * 4, high * 4]))
    one = json.loads(
        invoke("eval", *files, "-m", "AP", "--ties", "bounds", "--per-query", "--json").out.split("\n")[0]
    )
    assert [one["value"], one["lowest"], one["highest"]] == [float(v) for v in values]


def test_eval_carries_conventions_and_movable_queries_in_json(files, invoke):
    options = ("--ties", "expected", "--missing", "answered-only", "--empty", "left-out", "--json")
    shown = invoke("eval", *files, "-m", "AP", *options)
    row = json.loads(shown.out)
    assert row["conventions"] == "ties=expected, missing=answered-only, empty=left-out"
    assert (row["queries"], row["answered"], row["counted"], row["movable"]) == (4, 3, 2, 1)
    assert row["lowest"] < row["mean"] < row["highest"]
    assert Row.of(row).to_dict() == row
    assert "1 of 4 judged queries are not answered and leave the mean (missing=answered-only)" in shown.err
    assert shown.err.count("missing=") == 1  # and not what the convention means once more
    for sentence in ("ties=expected: ", "empty=left-out: "):
        assert f"note: {sentence}" in shown.err


def test_rows_of_earlier_manifests_are_still_read():
    old = dict(dataset="d", system="s", measure="AP", mean=0.5, low=0.4, high=None, queries=3, answered=2)
    row = Row.of(old)
    assert (row.conventions, row.counted, row.movable, row.lowest) == ("default", None, 0, None)
    assert row.to_dict() == old


@pytest.mark.parametrize("option", [("--ties", "sampled"), ("--missing", "no"), ("--empty", "no")])
def test_words_that_do_not_exist_are_refused(files, option, invoke):
    shown = invoke("eval", *files, *option)
    assert shown.exit_code == 2
    assert "Traceback" not in shown.out + shown.err


def test_compare_takes_ties_and_missing_and_says_so(files, tmp_path, invoke):
    qrels, run = files
    other = {q: {d: -s for d, s in row.items()} for q, row in RUN.items()}
    write_run(Run.of(other), tmp_path / "other.trec")
    shown = invoke("compare", qrels, run, tmp_path / "other.trec", "-m", "AP", "--ties", "expected",
                   "--missing", "answered-only", "--json")  # fmt: skip
    found = json.loads(shown.out)
    means = {s["system"]: s["mean"] for s in found["standings"]}
    wanted = weir.evaluate(QRELS, RUN, ["AP"], "ties=expected, missing=answered-only")
    assert means["run"] == wanted.mean_values()[0]
    assert found["count"] == 3
    assert shown.err.count("ties=expected: ") == 1
    refused = invoke("compare", tmp_path, "--ties", "expected")
    assert refused.exit_code == 2
    assert "holds scores already" in refused.err


def test_bounded_measures_are_held_within_0_and_1_under_every_rule(monkeypatch):
    run, qrels = Run.of({"q": {"a": 1.0, "b": 1.0}}), Qrels.of({"q": {"a": 1}})
    broken = TIED.get("P")
    monkeypatch.setitem(TIED._known, "P", type(broken)(lambda j, **_: np.full(len(j), 1.5), broken.worth))
    with pytest.raises(weir.WeirError, match=r"P@1 lies outside 0\.\.1"):
        score_run(qrels, run, ["P@1"], Conventions("expected"))


def test_a_nameless_run_cannot_be_put_in_another_order(files):
    qrels = read_qrels(files[0])
    judged = join_run_file(files[1], qrels)
    assert scores_of(judged, measures_of("AP")).conventions == "default"
    nameless = Run(qrels.queries, qrels.docs, np.array([0, 1, 1, 1, 1]), np.array([-1], np.int32), np.ones(1))
    with pytest.raises((BadValue, BadRanking), match="read the whole run"):
        score_run(qrels, nameless, ["AP"], Conventions("trec9"))


def test_measures_at_many_cutoffs_have_one_note_of_each_kind():
    names = [f"{name}@{k}" for name in ("Hole", "Accuracy", "nDCG", "P", "R") for k in (1, 2, 3)]
    run = {"q": dict.fromkeys("abcd", 1.0)}
    notes = [note.text for note in weir.evaluate({"q": {"a": 1, "b": 0, "c": 2}}, run, names).notes()]
    [hole] = [note for note in notes if "documents that their query has no judgment for" in note]
    [accuracy] = [note for note in notes if "compares pairs" in note]
    assert hole.startswith("each of Hole@1, Hole@2, Hole@3 counts ")
    assert accuracy.endswith("is Success@k")
    [tied] = [note for note in notes if "by the order of ties" in note]
    assert tied.endswith(", and 9 more measures")
    assert tied.partition("order of ties: ")[2].count(", ") == 6
