from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weir
from tests.shown import shown
from tests.unit.brooklet import write_collection
from tests.unit.cells import MANIFEST, QRELS, RUN, changed, noted, write_cell, write_qrels_file
from tests.unit.test_cli import refused
from weir.cli import main
from weir.core.corpus import Corpus
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.errors import BadValue, FormatError
from weir.experiment.experiment import Experiment
from weir.experiment.results import open_cell
from weir.experiment.stages import flattened
from weir.experiment.why import (
    Effect,
    Judgments,
    Scoring,
    defined_mean,
    differences,
    explain_cells,
    explain_published,
    other_measures,
    other_rules,
    rescored,
    without_copies,
)
from weir.files.write import write_run
from weir.measures import parse_measure
from weir.systems import parse_system

AP = parse_measure("AP")

# One setting changed, and what the change is called.
SINGLE = [
    ("dataset", "other", "dataset"),
    ("split", "dev", "split"),
    ("fingerprint", "bb", "fingerprint"),
    ("self_match", "drop", "self_match"),
    ("k", 100, "k"),
    ("system.idf", "robertson", "system.idf"),
    ("system.analyzer", "bm25s-english", "system.analyzer"),
    ("system.analysis.tokenizer", "words", "system.analysis.tokenizer"),
    ("system.analysis.stemmer", "english", "system.analysis.stemmer"),
    ("system.k1", 1.2, "system.k1"),
    ("system.b", 0.75, "system.b"),
    ("system.lengths", "exact", "system.lengths"),
    ("system.fields", ["text", "title"], "system.fields"),
    ("system.tie_breaker", 0.5, "system.tie_breaker"),
    ("environment.packages.numpy", "2.1", "environment.packages.numpy"),
    ("environment.packages.weir-ir", "0.2.0", "environment.packages.weir-ir"),
    ("environment.python", "3.14", "environment.python"),
    ("environment.system", "Darwin arm64", "environment.system"),
    ("environment.processor", "another", "environment.processor"),
    ("environment.cores", 64, "environment.cores"),
    ("environment.interval.seed", 2, "environment.interval.seed"),
]


@pytest.mark.parametrize(("name", "value", "named"), SINGLE)
def test_the_one_setting_that_differs_is_named_first_and_alone(name, value, named):
    found = differences(flattened("", MANIFEST), flattened("", changed(name, value)))
    assert [d.setting for d in found] == [named]
    back = differences(flattened("", changed(name, value)), flattened("", MANIFEST))
    assert [(d.first, d.second) for d in back] == [(d.second, d.first) for d in found]


@pytest.mark.parametrize(
    ("first", "second", "named"),
    [
        ("bm25", "bm25(k1=1.2)", "system.k1"),
        ("bm25", "bm25(b=0.75)", "system.b"),
        ("bm25", 'bm25(lengths="exact")', "system.lengths"),
        ("bm25", 'bm25(analyzer="snowball-english")', "system.analyzer"),
        ("bm25", 'bm25("lucene-multifield")', "system.fields"),
        ("bm25", "rm3", "system"),
        ("rm3", "rm3(terms=20)", "system.expansion.terms"),
        ("rm3", "rm3(docs=5)", "system.expansion.docs"),
        ("rm3", "rm3(weight=0.3)", "system.expansion.weight"),
        ("rm3", "rm3(bm25(k1=1.2))", "system.first.k1"),
        ("rm3", 'rm3(bm25(analyzer="snowball-english"))', "system.first.analyzer"),
    ],
)
def test_systems_that_differ_in_one_setting(first, second, named):
    one, other = (flattened("system", parse_system(s).describe()) for s in (first, second))
    found = differences(one, other)
    assert found[0].setting == named
    if named != "system":
        assert len(found) == 1


def test_real_cells_that_differ_in_one_setting_name_it_and_nothing_else(tmp_path):
    data = str(write_collection(tmp_path / "brooklet"))
    grid = Experiment((data,), ("bm25", "bm25(b=0.75)"), ("nDCG@10",))
    grid.execute(tmp_path / "r")
    Experiment((data,), ("bm25",), ("nDCG@10",), k=1).execute(tmp_path / "deep")
    folders = sorted((tmp_path / "r" / "brooklet").glob("bm25-*"))
    found = explain_cells(folders[0], folders[1], judgments=Judgments(collection=data))
    assert {d.setting for d in found.settings} == {"system.b"}
    shallow = next((tmp_path / "deep" / "brooklet").glob("bm25-*"))
    deep = next(f for f in folders if "0.75" not in f.name)
    found = explain_cells(deep, shallow, "R@100", Judgments(collection=data))
    assert found.gap < 0
    assert [d.setting for d in found.settings] == ["k"]
    assert found.settings[0].why == "scored again: it closes the gap"
    assert found.effects[0].change == "rankings cut at 1"
    assert found.effects[0].closes
    assert found.unexplained == 0


def test_several_differences_come_by_their_likely_effect():
    other = changed("system.k1", 1.2)
    other["k"] = 10
    other["dataset"] = "other"
    other["environment"] = MANIFEST["environment"] | {"cores": 1}
    found = differences(flattened("", MANIFEST), flattened("", other))
    assert [d.setting for d in found] == ["dataset", "system.k1", "k", "environment.cores"]
    weights = [d.weight for d in found]
    assert weights == sorted(weights, reverse=True)


def test_what_only_follows_is_left_out_and_what_one_side_lacks_is_not():
    other = changed("dataset", "other") | {"fingerprint": "bb"}
    assert [d.setting for d in differences(flattened("", MANIFEST), flattened("", other))] == ["dataset"]
    more = MANIFEST | {"prompt": "query: "}
    found = differences(flattened("", MANIFEST), flattened("", more))
    assert [(d.setting, d.first, d.second) for d in found] == [("prompt", "-", "query: ")]


def test_tie_rules_give_what_their_order_gives():
    run = Run.of({"q": {"a": 1.0, "b": 1.0, "c": 1.0}})
    qrels = Qrels.of({"q": {"a": 1, "b": 0}})
    rr = parse_measure("RR")
    rules = ("trec", "ascending", "best", "worst", "expected")
    found = {t: rescored(run, qrels, Scoring(rr, ties=t))[0] for t in rules}
    mean_of_all = (1 + 1 / 2 + 1 / 3) / 3
    assert found == pytest.approx(
        {"trec": 1 / 3, "ascending": 1.0, "best": 1.0, "worst": 1 / 3, "expected": mean_of_all}
    )
    near = Run.of({"q": {"a": 0.1234567891, "b": 0.123456789}})
    assert rescored(near, qrels, Scoring(rr)).tolist() == [1.0]
    assert rescored(near, qrels, Scoring(rr, ties="trec9")).tolist() == [0.5]


def test_rules_other_than_ties_give_what_they_say():
    run, qrels = Run.of(RUN), Qrels.of(QRELS)
    rr = parse_measure("RR")
    usual = rescored(run, qrels, Scoring(rr))
    assert usual.tolist() == [1.0, 0.5, 0.0, 0.5]  # q3 is not answered; q4 finds itself first
    assert rescored(run, qrels, Scoring(rr, self_match="drop")).tolist() == [1.0, 0.5, 0.0, 1.0]
    only = rescored(run, qrels, Scoring(rr, missing="answered-only"))
    assert np.isnan(only).tolist() == [False, False, True, False]
    assert defined_mean(only, rr) == pytest.approx(2 / 3)
    assert rescored(run, qrels, Scoring(rr, depth=1)).tolist() == [1.0, 0.0, 0.0, 0.0]
    nothing = Qrels.of({"q1": {"d1": 0}, "q2": {"d4": 1}})
    assert np.isnan(rescored(run, nothing, Scoring(rr, missing="relevant-only"))).tolist() == [True, False]
    graded = parse_measure("nDCG@10")
    binary = Qrels.of({q: {d: min(g, 1) for d, g in grades.items()} for q, grades in QRELS.items()})
    assert (
        rescored(run, qrels, Scoring(graded, binary=True)).tolist()
        == rescored(run, binary, Scoring(graded)).tolist()
    )
    assert math.isnan(defined_mean(np.array([np.nan]), rr))


def test_copies_of_a_text_are_counted_once_per_query():
    corpus = Corpus.of(
        {"a": {"title": "t", "text": "same"}, "b": {"title": "t", "text": "same"}, "c": "same"}
    )
    run = Run.of({"q": {"b": 3.0, "a": 2.0, "c": 1.0, "x": 0.5, "y": 0.4}, "p": {"a": 1.0}, "o": {}})
    assert without_copies(run, corpus).to_dict() == {
        "q": {
            "b": 3.0,
            "c": 1.0,
            "x": 0.5,
            "y": 0.4,
        },  # another title is another document; x and y are not there
        "p": {"a": 1.0},
        "o": {},
    }


def test_the_other_ways_to_score_differ_in_one_respect():
    qrels, measure = Qrels.of(QRELS), parse_measure("R@100")
    for one in (*other_rules(measure), *other_measures(measure, qrels)):
        usual = Scoring(measure)
        fields = ("measure", "ties", "self_match", "missing", "depth", "binary")
        assert sum(getattr(one.scoring, f) != getattr(usual, f) for f in fields) == 1, one
    changes = {one.change for one in other_measures(measure, qrels)}
    assert {"R@10", "R@1000", "R", "R_cap@100", "R(rel=2)@100", "relevant or not"} <= changes
    gains = {one.change for one in other_measures(parse_measure("nDCG@10"), qrels)}
    assert "nDCG(gain='exp')@10" in gains


def test_a_gap_that_self_matches_make_is_found(tmp_path):
    without = {q: {d: s for d, s in ranking.items() if d != q} for q, ranking in RUN.items()}
    one = write_cell(tmp_path / "a")
    other = write_cell(tmp_path / "b", without, changed("self_match", "drop"))
    found = explain_cells(one, other, "AP", Judgments(write_qrels_file(tmp_path / "q")))
    assert found.gap == pytest.approx(0.125)
    assert found.effects[0].kind == "self-match"
    assert (found.effects[0].closes, found.effects[0].explains) == (True, 1.0)
    assert found.unexplained == 0
    assert [d.setting for d in found.settings] == ["self_match"]
    text = shown("why", [found])
    assert "explained: self-match: with dropped, the gap is" in text
    assert "rankings: 2 of 3 queries that both answer begin with the same ten documents in one order" in text


def assert_words_are_true(effect, gap):
    """Words of an effect: of the sign and size of the gap that it leaves, to a whole per cent."""
    rounded = gap * (1 - round(effect.explains, 2))
    assert ("widens" in effect.in_words) == (abs(rounded) > abs(gap))
    assert ("reverses" in effect.in_words) == (rounded * gap < 0)
    if "%" in effect.in_words:
        assert gap * (1 - float(effect.in_words[:-1]) / 100) == pytest.approx(rounded)


@given(st.floats(-1, 1).filter(lambda gap: abs(gap) > 1e-6), st.floats(-1, 1))
def test_an_effect_says_in_words_what_it_does_to_the_gap(gap, left):
    effect = Effect("ties", "trec", 0.0, left, left, (gap - left) / gap, False)
    assert_words_are_true(effect, gap)
    assert replace(effect, explains=math.nan).in_words == "-"


def test_shares_are_of_the_gap_and_each_change_is_made_alone(tmp_path):
    one, other = (
        write_cell(tmp_path / "a"),
        write_cell(tmp_path / "b", {"q1": {"d1": 1.0}, "q2": {"d2": 1.0}}),
    )
    found = explain_cells(one, other, "AP", Judgments(write_qrels_file(tmp_path / "q")))
    for effect in found.effects:
        assert effect.gap == pytest.approx(effect.second - effect.first)
        assert effect.explains == pytest.approx((found.gap - effect.gap) / found.gap)
        assert_words_are_true(effect, found.gap)
    kinds = {e.kind for e in found.effects}
    assert "missing queries" in kinds
    assert "cut-off" not in kinds  # both have one measure: only rules are changed
    assert abs(found.unexplained) <= abs(found.gap)


def test_a_published_score_is_explained_by_the_rule_of_its_publisher(tmp_path, monkeypatch):
    from weir.experiment import why as explain
    from weir.experiment.published import PublishedScore

    cell = write_cell(tmp_path / "cell", measures=("AP",))
    answered = defined_mean(rescored(Run.of(RUN), Qrels.of(QRELS), Scoring(AP, missing="answered-only")), AP)
    score = PublishedScore("some [MTEB]", "lexical", "mine", "test", "AP", f"{answered:.5f}", "somewhere", "")
    monkeypatch.setattr(explain, "claimed", lambda *_: (score.model,))
    monkeypatch.setattr(explain, "published", lambda *_: (score,))
    found = explain_published(cell, judgments=Judgments(write_qrels_file(tmp_path / "q")))
    assert not found.agree
    assert found.effects[0].kind == "missing queries"
    assert found.effects[0].closes
    assert found.effects[0].documented
    assert found.settings[0].setting == "missing"
    assert abs(found.unexplained) < 1e-5
    assert found.effects[0].explains == pytest.approx(1, abs=1e-3)


def test_without_judgments_the_settings_are_compared_and_it_is_said(tmp_path):
    one, other = write_cell(tmp_path / "a"), write_cell(tmp_path / "b", manifest=changed("system.k1", 1.2))
    found = explain_cells(one, other)
    assert found.measure == "nDCG@10"
    assert found.effects == ()
    assert [d.setting for d in found.settings] == ["system.k1"]
    assert "not on this machine" in found.notes[0]
    with pytest.raises(BadValue, match="has no R@10 but nDCG@10, AP, and the judgments of mine are not here"):
        explain_cells(one, other, "R@10")


def test_other_judgments_than_the_cells_are_refused(tmp_path):
    wrong = write_qrels_file(tmp_path / "q", {"q1": {"d2": 1}})
    cell = write_cell(tmp_path / "a")
    with pytest.raises(BadValue, match=r"these are not the judgments of .*: AP is 0\.3333 with them"):
        explain_cells(cell, cell, "AP", Judgments(wrong))


def test_run_files_are_explained_by_what_can_be_seen_of_them(tmp_path):
    qrels = write_qrels_file(tmp_path / "q")
    write_run(Run.of(RUN), tmp_path / "a.trec")
    write_run(Run.of(RUN).top(1), tmp_path / "b.trec")
    [found] = weir.why(qrels, tmp_path / "a.trec", tmp_path / "b.trec", measure="AP")
    assert found.settings[0].setting == "k"
    assert (found.settings[0].first, found.settings[0].second) == ("4", "1")
    assert found.effects[0].change == "rankings cut at 1"
    assert found.effects[0].closes
    write_run(Run.of({"other": {"d1": 1.0}}), tmp_path / "c.trec")
    with pytest.raises(BadValue, match="c answers none of the 4 judged queries"):
        weir.why(qrels, tmp_path / "a.trec", tmp_path / "c.trec")


def test_judgments_come_first_as_in_every_command(tmp_path, capsys):
    qrels = write_qrels_file(tmp_path / "q")
    write_run(Run.of(RUN), tmp_path / "a.trec")
    write_run(Run.of(RUN).top(1), tmp_path / "b.trec")
    files = [str(path) for path in (qrels, tmp_path / "a.trec", tmp_path / "b.trec")]
    assert main(["why", *files, "-m", "AP"]) == 0
    [found] = weir.why(qrels, tmp_path / "a.trec", tmp_path / "b.trec", measure="AP")
    assert capsys.readouterr().out.startswith(
        f"AP: {found.first_mean:.4f} a, {found.second_mean:.4f} b: gap -"
    )


def test_json_holds_everything_and_no_nan(tmp_path, capsys):
    one, other = write_cell(tmp_path / "a"), write_cell(tmp_path / "b")
    arguments = ["why", str(one), str(other), "--qrels", str(write_qrels_file(tmp_path / "q")), "--json"]
    assert main(arguments) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["gap"] == 0
    assert found["agree"]
    assert found["settings"] == []
    assert {e["explains"] for e in found["effects"]} == {None}


def test_cells_that_are_none_are_refused_in_one_line(tmp_path, capsys):
    good = str(write_cell(tmp_path / "good"))
    assert "no such folder" in refused(capsys, "why", str(tmp_path / "no"), good)
    (tmp_path / "empty").mkdir()
    assert "no stage.json" in refused(capsys, "why", str(tmp_path / "empty"), good)
    begun = write_cell(tmp_path / "begun")
    noted(begun, k=None, queries=None)
    assert "expected a record of weir run" in refused(capsys, "why", good, str(begun))
    (begun / "scores-1.json").write_text('{"rows": []}')
    assert "rankings without scores" in refused(capsys, "why", good, str(begun))
    (tmp_path / "empty" / "manifest.json").write_text("{}")
    assert "written by Weir 0.1" in refused(capsys, "why", str(tmp_path / "empty"), good)
    with pytest.raises(FormatError, match="found a file"):
        open_cell(tmp_path / "good" / "run.trec")


def test_mistakes_are_refused_in_one_line(tmp_path, capsys):
    good = str(write_cell(tmp_path / "good"))
    for pair in ([f"{good}/run.trec", good], [good, f"{good}/run.trec"], [f"{good}/run.trec"] * 2):
        assert "result's folder, need their judgments before them: weir why" in refused(capsys, "why", *pair)
    assert "claims no published model" in refused(capsys, "why", str(other_system(tmp_path)))
    assert "no published model named" in refused(capsys, "why", good, "--published", "BM52 flat")
    assert "published takes one result" in refused(capsys, "why", good, good, "--published", "x")
    assert "found 3 results" in refused(capsys, "why", good, good, good)
    run = f"{good}/run.trec"
    assert "need their judgments before them: weir why QRELS RUN RUN" in refused(capsys, "why", run, run)
    elsewhere = str(write_cell(tmp_path / "ap", measures=("AP",)))
    recall = str(write_cell(tmp_path / "r", measures=("R@10",)))
    assert "no measure in common" in refused(capsys, "why", elsewhere, recall)
    neither = refused(capsys, "why", "bm25", "bm25(b=0.5)", "--collection", "brook-medical")
    assert "neither bm25 nor bm25(b=0.5) is an engine that explains its scores" in neither
    assert "name it with --collection" in refused(capsys, "why", "bm25", "bm25(b=0.5)")


def other_system(folder):
    system = MANIFEST["system"] | {"system": "bm25(k1=7.0)"}
    return write_cell(folder / "other", manifest=MANIFEST | {"system": system})


def test_rankings_without_records_do_not_point_at_settings(tmp_path):
    news = weir.load("brook-news")
    runs = [
        weir.systems.parse_system(name).index(news.corpus).search(news.queries, 50)
        for name in ("bm25", "rm3")
    ]
    assert "run files do not say how they were made" in str(weir.why(news.qrels, *runs))
    weir.benchmark(news, ["bm25", "rm3"], ["nDCG@10"], tmp_path / "out")
    cells = [next((tmp_path / "out" / "brook-news").glob(f"{name}-*")) for name in ("bm25", "rm3")]
    assert "so the rankings differ: see the settings" in str(weir.why(*cells, collection="brook-news"))


@pytest.mark.parametrize(
    "other", [{"q1": {"D1": 1.0}, "q2": {"D3": 1.0}}, {"q1": {"d1": 1.0}}, {"q1": {"q1": 2.0, "d1": 1.0}}]
)
def test_what_scores_of_a_ranking_are_noted_with_is_said_of_the_reasons_too(other):
    """Such as of another collection, of some queries, of the query's own document."""
    judged = {"q1": {"d1": 1}, "q2": {"d3": 1}}
    given = (judged, {"q1": {"d1": 2.0, "d2": 1.0}, "q2": {"d3": 1.0}}, other)
    noted = [line for line in str(weir.diff(*given)).splitlines() if line.startswith("note: ")]
    assert noted
    assert set(noted) <= set(str(weir.why(*given)).splitlines())
