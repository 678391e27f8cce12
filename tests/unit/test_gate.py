"""The gate: baselines that are committed, sides of different judgments, groups, reports, and a story of three changes."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import weir
from weir.cli import main
from weir.core.scores import JudgedScores, Scores, SystemScores
from weir.core.strings import Ids
from weir.errors import BadValue, FormatError, RankingWarning
from weir.files.score_files import read_baseline, write_baseline
from weir.stats.compare import ScoreTable, on_same_queries
from weir.stats.distributions import student_quantile
from weir.stats.gate import GATES, GateRules, gate_junit, gates

QUERIES = [f"{topic}_{n}" for topic in ("pay", "ship") for n in range(6)]


def qrels(tmp_path: Path, name: str = "qrels.tsv", **grades: int) -> str:
    path = tmp_path / name
    path.write_text("".join(f"{q} 0 x {grades.get(q, 1)}\n" for q in QUERIES))
    return str(path)


def run(tmp_path: Path, name: str, *lost: str) -> str:
    """A run that answers each query with its document, those in `lost` with another before it."""
    path = tmp_path / name
    path.write_text(
        "".join(f"{q} Q0 x 1 1 r\n" + (f"{q} Q0 y 0 2 r\n" if q in lost else "") for q in QUERIES)
    )
    return str(path)


def gate(*arguments: str) -> int:
    return main(["gate", *arguments])


def test_a_baseline_is_a_small_text_that_reads_back_whatever_stands_in_it(tmp_path):
    names = ["plain", "tab\there", '"quoted"', "#hash", "line\u2028end", "ünï"]
    values = np.array([[0.1 + 0.2, 1.0, 0.0, np.nan, 1e-17, 2 / 3], [-np.log(3), 0, 1, 2, 3, 4]])
    scores = Scores(
        ("nDCG@10", "gmAP"),
        Ids.of(names),
        values,
        np.ones(6, np.bool_),
        geometric=("gmAP",),
        conventions="ties=expected",
    )
    marks = {name: f"{n:08x}" for n, name in enumerate(names)}
    given = SystemScores("bm25(k1=1)\n", {d: JudgedScores(scores, marks) for d in ("one", '"two')})
    path = tmp_path / "baseline.tsv"
    write_baseline(given, path)
    found = read_baseline(path)
    assert (found.system, sorted(found.datasets)) == ("bm25(k1=1)\n", ['"two', "one"])
    again = found.datasets["one"]
    assert again.marks == marks
    assert (again.scores.measures, again.scores.geometric) == (scores.measures, ("gmAP",))
    assert again.scores.conventions == "ties=expected"
    back = again.scores.values[:, again.scores.queries.codes(names)]
    assert back.tobytes() == values.tobytes()
    lines = path.read_text().split("\n")
    assert lines[-1] == ""
    assert lines[7:-1] == sorted(lines[7:-1], key=lambda line: line.split("\t")[0].strip('"\\') == "one")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("# weir baseline\t1", "# weir baseline\t2", "line 1"),
        ("pay_0\t", "pay_1\t", "line 9: found query 'pay_1' a second time"),
        ("\t1\nqrels", "\tone\nqrels", "line 8"),
        ("\t1\nqrels", "\nqrels", "line 8"),
        ("# depth\tqrels.tsv\t1", "# depth\tqrels.tsv\tx", "a header that is damaged"),
        ("pay_0\t", "pay_9\t", "queries of qrels.tsv that differ from those its header lists"),
        ("dataset\tquery", "dataset\tq", "no header of columns"),
    ],
)
def test_a_damaged_baseline_is_one_line(tmp_path, capsys, old, new, said):
    judged, one = qrels(tmp_path), run(tmp_path, "a.trec")
    saved = tmp_path / "baseline.tsv"
    assert gate("--save", str(saved), judged, one) == 0
    saved.write_text(saved.read_text().replace(old, new, 1))
    capsys.readouterr()
    assert gate(judged, str(saved), one) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert err.count("\n") == 1


def test_every_kind_of_side_gives_the_same_gate(tmp_path, capsys):
    judged, a, b = qrels(tmp_path), run(tmp_path, "a.trec"), run(tmp_path, "b.trec", "pay_0")
    saved, other = str(tmp_path / "baseline.tsv"), str(tmp_path / "other.tsv")
    assert gate("--save", saved, judged, a, "-m", "nDCG@10", "-m", "RR") == 0
    assert gate("--save", other, judged, b, "-m", "RR") == 0
    assert "a on 1 dataset, 12 queries" in capsys.readouterr().err
    found = []
    for sides in ((judged, a, b), (judged, saved, b), (saved, other), (judged, a, other)):
        assert gate(*sides, "-m", "RR:0.2", "--json") == 0
        found.append(json.loads(capsys.readouterr().out) | {"dataset": ""})
    assert found[1:] == found[:1] * 3
    assert gate(judged, saved, b) == 3
    assert [line.split(":")[0] for line in capsys.readouterr().out.split("\n") if line.startswith("UND")] == [
        "UNDECIDED  nDCG@10",
        "UNDECIDED  RR",
        "UNDECIDED",
    ]
    assert weir.gate(judged, a, b, "gmAP")[0].difference == np.log(0.5) / 12
    assert "-0.0578 of logarithms, lower bound" in (
        page := repr(weir.gate(judged, a, b, "gmAP", max_drop=0.2))
    )
    assert "allowed drop 0.2000 of logarithms, about 18.1%" in page
    assert repr(weir.gate(judged, saved, weir.Run.load(b))) == repr(weir.gate(judged, saved, b))
    weir.save_baseline(tmp_path / "third.tsv", judged, weir.Run.load(a), ["nDCG@10", "RR"])
    assert weir.gate(saved, tmp_path / "third.tsv")


def test_results_folders_are_gated_system_by_system_and_dataset_by_dataset(tmp_path, capsys):
    for name, systems in (("old", ["bm25", "rm3"]), ("new", ["bm25", "rm3", "bm25(k1=3)"])):
        weir.benchmark(["brook-news", "brook-facts"], systems, "nDCG@10", out=tmp_path / name, k=10)
    old, new = str(tmp_path / "old"), str(tmp_path / "new")
    assert gate(old, new, "--json") == 0
    out, err = capsys.readouterr()
    assert [(g["dataset"], g["difference"]) for g in map(json.loads, out.splitlines())] == [
        (f"{s}, brook-{d}", 0) for s in ("bm25", "rm3") for d in ("news", "facts")
    ]
    assert "note: bm25(k1=3.0) is new and not gated" in err
    saved = str(tmp_path / "baseline.tsv")
    assert gate("--save", saved, old) == 2
    assert "holds 2 systems (bm25, rm3); name one by -s" in capsys.readouterr().err
    assert gate("--save", saved, old, "-s", "bm25") == 0
    assert gate(saved, new, "-s", "bm25") == 0
    assert gate(saved, new, "-s", "bm25(k1=3)", "--max-drop", "0.2") == 0
    assert "nDCG@10 on brook-news" in capsys.readouterr().out
    assert gate(new, old) == 2
    assert "the candidate has no bm25(k1=3.0); it has bm25, rm3" in capsys.readouterr().err
    assert gate(old, new, "-m", "AP") == 2
    assert "weir run with -m 'AP' adds it" in capsys.readouterr().err
    weir.save_baseline(tmp_path / "one.tsv", tmp_path / "old" / "brook-news" / _cell(tmp_path, "bm25"))
    assert gate(str(tmp_path / "one.tsv"), new, "-s", "bm25") == 0  # the dataset that both have
    assert "brook-facts is new and not gated" in capsys.readouterr().err


def _cell(tmp_path: Path, system: str) -> str:
    return next(
        p.name for p in (tmp_path / "old" / "brook-news").iterdir() if p.name.startswith(f"{system}-")
    )


def test_sides_of_other_judgments_are_refused_or_compared_on_common_queries(tmp_path, capsys):
    judged, a = qrels(tmp_path), run(tmp_path, "a.trec")
    saved = str(tmp_path / "baseline.tsv")
    assert gate("--save", saved, judged, a) == 0
    shuffled = tmp_path / "shuffled.tsv"
    shuffled.write_text("".join(sorted(Path(judged).read_text().splitlines(keepends=True), reverse=True)))
    assert gate(str(shuffled), saved, a) == 0
    more = tmp_path / "more.tsv"
    more.write_text(Path(judged).read_text().replace("pay_0 0 x 1", "pay_0 0 x 2") + "new_1 0 x 1\n")
    capsys.readouterr()
    assert gate(str(more), saved, a) == 2
    assert (
        "not of the same judgments: 1 query is only in the candidate (new_1); 1 query is judged otherwise since (pay_0); "
        "save the baseline anew, or compare on the queries that both have (--common)"
    ) in capsys.readouterr().err
    assert gate(str(more), saved, a, "--common") == 0
    out, err = capsys.readouterr()
    assert "over 11 queries" in out
    assert "note: qrels.tsv: 11 queries are compared; 1 query is only in the candidate" in err
    none = tmp_path / "none.tsv"
    none.write_text("".join(f"{q} 0 x 2\n" for q in QUERIES))
    assert gate(str(none), saved, a, "--common") == 2
    err = capsys.readouterr().err
    assert "share no query with the same judgments" in err
    assert "--common" not in err  # which would not help
    other = tmp_path / "other.tsv"
    other.write_text("z 0 x 1\ny 0 x 1\n")
    (tmp_path / "z.trec").write_text("z Q0 x 1 2.0 t\n")
    assert gate(str(other), saved, str(tmp_path / "z.trec")) == 2
    assert "--common" not in capsys.readouterr().err
    assert gate("--save", saved, judged, a, "--drop-self") == 0
    assert gate(judged, saved, a) == 0  # under the conventions of the baseline
    assert gate(judged, a, saved, "-m", "nDCG@10") == 0
    before = read_baseline(Path(saved)).datasets["qrels.tsv"]
    after = JudgedScores(replace(before.scores, conventions="default"), before.marks)
    with pytest.raises(BadValue, match="self_matches=drop, the candidate with default"):
        on_same_queries("d", before, after, common=True)
    folders = [replace(before, marks={}, judgments=mark) for mark in ("one", "other")]
    for common in (False, True):  # --common is no remedy where the records say that judgments differ
        with pytest.raises(BadValue, match=r"scores by different judgments.*same weir run"):
            on_same_queries("d", *folders, common=common)


@pytest.mark.parametrize(
    ("sides", "said"),
    [
        (("Q", "A"), "is neither a results folder nor a saved baseline; expected [QRELS] BASELINE CANDIDATE"),
        (("Q",), "found 1 path"),
        (("Q", "S", "S"), "are no run files, so there is nothing to judge by"),
        (("S", "absent"), "absent: found no such file or folder"),
        (("Q", "A", "A", "-m", "nDCG@10:much"), "the drop is 'much'; expected such as nDCG@10:0.01"),
        (("Q", "A", "A", "-m", "nDCG@10:-1"), "the allowed drop is -1.0"),
        (("Q", "S", "A", "-m", "AP"), "no measure in"),
        (("Q", "A", "A", "--by", "topic"), "--by topic: no such file, and no collection with such a column"),
        (
            ("Q", "A", "A", "--by", "prefix:+"),
            "--by prefix:+: no query identifier has '+' in it; one is 'pay_0'",
        ),
        (("--save", "b.tsv", "A"), "a baseline is of judgments and a run, or of one results folder"),
    ],
)
def test_a_mistake_is_one_line(tmp_path, monkeypatch, capsys, sides, said):
    monkeypatch.chdir(tmp_path)
    named = {"Q": qrels(tmp_path), "A": run(tmp_path, "a.trec"), "S": str(tmp_path / "saved.tsv")}
    assert gate("--save", named["S"], named["Q"], named["A"]) == 0
    capsys.readouterr()
    assert gate(*(named.get(one, one) for one in sides)) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("weir: ")
    assert said in err
    assert err.count("\n") == 1


def test_a_group_can_fail_the_gate_and_need_not_pass_it(tmp_path, capsys):
    judged, a = qrels(tmp_path), run(tmp_path, "a.trec")
    b = run(tmp_path, "b.trec", *(q for q in QUERIES if q.startswith("ship") and q != "ship_0"))
    assert gate(judged, a, b, "--max-drop", "0.3") == 0
    junit = tmp_path / "gate.xml"
    arguments = (judged, a, b, "--max-drop", "0.3", "--by", "prefix:_", "--junit", str(junit))
    assert gate(*arguments) == 1
    out = capsys.readouterr().out
    assert "FAIL  nDCG@10, ship: candidate - baseline -0.3076" in out
    assert "ship   FAIL " in out
    suite = ElementTree.parse(junit).getroot().find("testsuite")
    assert suite is not None
    assert suite.get("failures") == "1"
    assert [(case.get("name"), [e.tag for e in case]) for case in suite] == [
        ("nDCG@10", []),
        ("nDCG@10 of pay", []),
        ("nDCG@10 of ship", ["failure"]),
    ]
    c = run(tmp_path, "c.trec", "pay_0")
    groups = tmp_path / "groups.tsv"
    groups.write_text("query\tgroup\n" + "".join(f"{q}\t{q[:3]}\n" for q in QUERIES[:-1]))
    assert gate(judged, a, c, "--max-drop", "0.3", "--by", str(groups), "--junit", str(junit)) == 0
    assert "of shi" in junit.read_text()
    groups.write_text("a\tx\na\ty\n")
    with pytest.raises(FormatError, match="line 2: found query 'a' in 'x' and 'y'"):
        weir.gate(judged, a, c, by=str(groups))


def test_reports_hold_what_ids_hold(tmp_path):
    names = [f"<q&{n}>\x1b|" for n in range(4)]
    judged = {q: {"x": 1} for q in names}
    found = weir.gate(judged, {q: {"x": 1.0} for q in names}, {q: {"y": 2.0, "x": 1.0} for q in names}, "RR")
    text = ElementTree.fromstring(gate_junit(found.items)).find(".//failure")
    assert text is not None
    assert "<q&0>\\x1b|" in str(text.text)
    assert "\\<q\\&0\\>\\\\x1b\\|" in found.to_markdown()
    assert not found


def gated(differences, max_drop, confidence=0.95, group=""):
    """The gate of one measure whose values differ so."""
    values = np.stack([np.zeros(len(differences)), differences])
    queries = Ids.of(f"q{n}" for n in range(len(differences)))
    found = ScoreTable("d", "m", ("baseline", "candidate"), values, queries=queries)
    return gates([(group, found)], GateRules(max_drop, confidence=confidence))[0]


def test_a_gate_passes_when_the_drop_is_certainly_small():
    d = np.random.default_rng(22).normal(0, 0.05, 400)
    d -= d.mean()
    reach = student_quantile(0.95, 399) * d.std(ddof=1) / 20
    assert gated(d, reach * 1.001).passed
    assert gated(d, reach * 0.999).verdict == "undecided"
    assert gated(d, 0.01).low == pytest.approx(-reach)
    assert gated(np.zeros(9), 0).passed
    assert gated(np.full(9, -0.01), 0.01).passed
    assert gated(np.full(9, -0.02), 0.01).verdict == "fail"
    assert not gated(d[:1], 0.1, group="a").passed
    for wrong in ((d, -0.1, 0.95), (d, 0.1, 0.5), (d, 0.1, 1.0), (d, math.nan, 0.95), (d[:1], 0.1, 0.95)):
        with pytest.raises(BadValue):
            gated(*wrong)


@pytest.mark.parametrize("change", [0.0, 0.3, -0.005])
def test_equal_changes_pass_where_so_many_queries_would_seldom_agree_by_chance(capsys, change):
    """Of queries of which half lose, four are alike in one sample of 16; five in fewer than one of 20."""
    found = [gated(np.full(n, change), 0.01) for n in (2, 4, 5, 100)]
    assert [one.verdict for one in found] == ["undecided", "undecided", "pass", "pass"]
    assert [one.needed for one in found] == [5, 5, None, None]
    few, _, _, many = ("\n".join(part.text() for part in GATES.tables([one])) for one in found)
    assert "2 queries may change alike by chance; a gate over 5 that do passes" in few
    alike = "which all changed equally" if change else "of which none changed"
    assert f"{alike}; up to 3.0% of other queries may change otherwise" in many  # 0 of 100
    assert gated(np.full(7, change), 0.01, confidence=0.99).passed
    assert not gated(np.full(6, change), 0.01, confidence=0.99).passed


def test_sides_that_look_swapped_and_drops_that_nothing_exceeds_are_told(tmp_path, capsys):
    judged, before, after = qrels(tmp_path, a=1, b=1), run(tmp_path, "before"), run(tmp_path, "after", "a")
    saved = str(tmp_path / "saved.tsv")
    assert gate(judged, before, "--save", saved) == 0
    gate(judged, saved, after)
    assert "order" not in capsys.readouterr().err
    gate(judged, after, saved)
    assert "the candidate is a saved baseline, the baseline is not" in capsys.readouterr().err
    assert gate(judged, before, after, "--max-drop", "1") == 2
    assert "every candidate passes" in capsys.readouterr().err


def test_an_undecided_gate_says_how_many_queries_would_decide():
    """Drawn as it looks, so many queries pass, or fail, four times in five."""
    generator = np.random.default_rng(29)
    for mean, verdict in ((0.0, "pass"), (-0.05, "fail")):
        seen = generator.normal(0, 0.2, 20)
        seen += mean - seen.mean()
        found = gated(seen, 0.02)
        assert found.verdict == "undecided"
        rows = generator.normal(mean, seen.std(ddof=1), (400, found.needed))
        assert np.mean([gated(row, 0.02).verdict == verdict for row in rows]) == pytest.approx(0.8, abs=0.06)


def test_a_gate_lets_too_large_a_drop_pass_one_time_in_twenty():
    """800 samples of 50 whose true drop is just the allowed one."""
    rows = np.random.default_rng(23).normal(-0.02, 0.1, (800, 50))
    assert np.mean([gated(row, 0.02).passed for row in rows]) == pytest.approx(0.05, abs=0.02)


def test_gates_of_several_measures_and_groups_fail_where_nothing_dropped_at_most_one_time_in_twenty():
    """250 candidates, each with gates of three measures and six groups of 30 queries that only vary."""
    generator, rules = np.random.default_rng(24), GateRules(0)
    names, failed = Ids.of(f"q{n}" for n in range(30)), 0
    for _ in range(250):
        cases = []
        for group in ("", "", "", *"abcdef"):
            values = np.stack([np.zeros(30), generator.normal(0, 0.1, 30)])
            cases.append((group, ScoreTable("d", "m", ("baseline", "candidate"), values, queries=names)))
        found = gates(cases, rules)
        failed += any(g.verdict == "fail" for g in found)
    assert 0.015 < failed / 250 < 0.08


@pytest.mark.slow
def test_small_groups_of_equal_changes_fail_at_most_one_time_in_twenty():
    """300 candidates of twenty groups of two queries, 0 or 1, of which nothing dropped; the signs of two may be alike."""
    generator, names, failed = np.random.default_rng(25), Ids.of(f"q{n}" for n in range(40)), 0
    for _ in range(300):
        values = generator.integers(0, 2, (2, 40)).astype(float)
        whole = ScoreTable("d", "m", ("baseline", "candidate"), values, queries=names)
        parts = [(f"g{n}", whole.take(np.array([n, n + 1]))) for n in range(0, 40, 2)]
        failed += any(g.verdict == "fail" for g in gates([("", whole), *parts], GateRules()))
    assert failed / 300 < 0.05
    alike = [gated(np.full(n, -0.3), 0.01) for n in (2, 4, 5, 9)]
    assert [one.verdict for one in alike] == ["undecided", "undecided", "fail", "fail"]
    assert [one.p for one in alike] == [0.5**one.queries for one in alike]
    assert alike[0].needed == 5


STORY = {"bm25(k1=1.0)": ("pass", 0), 'bm25(analyzer="whitespace")': ("fail", 1), "rm3": ("undecided", 3)}


def test_a_story_of_35_golden_queries(tmp_path, capsys):
    """A harmless change, a harmful one and one that 35 queries cannot tell, from ranking to exit code."""
    script = Path(__file__).resolve().parents[2] / "scripts" / "golden_story.py"
    subprocess.run([sys.executable, str(script), str(tmp_path / "golden")], check=True)
    golden, saved = str(tmp_path / "golden"), str(tmp_path / "baseline.tsv")
    weir.benchmark(golden, "bm25", "nDCG@10", out=tmp_path / "main")
    assert gate("--save", saved, str(tmp_path / "main")) == 0
    assert Path(saved).stat().st_size < 2_500
    for n, (system, (verdict, code)) in enumerate(STORY.items()):
        folder = tmp_path / f"change{n}"
        weir.benchmark(golden, system, "nDCG@10", out=folder)
        capsys.readouterr()
        assert gate(saved, str(folder), "--json") == code
        [found] = map(json.loads, capsys.readouterr().out.splitlines())
        assert (found["verdict"], found["queries"]) == (verdict, 35)
        assert (found["needed"] or 35) >= 35
        assert [q["second"] < q["first"] for q in found["broken"]] == [True] * len(found["broken"])


def test_what_is_odd_about_a_baseline_is_said_when_it_is_saved(tmp_path, capsys):
    """Its file keeps scores alone: queries without an answer, and rankings shorter than the measure."""
    qrels, run = tmp_path / "q.txt", tmp_path / "r.trec"
    qrels.write_text("".join(f"q{n} 0 d1 1\nq{n} 0 d2 0\n" for n in range(12)))
    run.write_text("".join(f"q{n} Q0 d{d} {d} {9 - d} t\n" for n in range(9) for d in (1, 2)))
    assert main(["gate", str(qrels), str(run), "-m", "R@10", "--save", str(tmp_path / "b.tsv")]) == 0
    said = capsys.readouterr().err
    assert "3 of 12 judged queries are not answered" in said
    assert "rankings have at most 2 documents, and R@10 looks no deeper" in said


def test_measures_that_are_scored_and_not_gated_are_named(tmp_path, capsys):
    """Where they were chosen by default alone; without the default among them, they are there to choose."""
    saved, out = str(tmp_path / "b.tsv"), str(tmp_path / "results")
    weir.benchmark("brook-facts", "bm25", ["nDCG@10", "R@100", "NumRet"], out=out)
    said = "R@100: scored, too, and not gated; -m names more"
    lacks = "R@100: scored, too, and not gated, as the baseline was saved without; weir gate --save with -m"
    for arguments, code, sentence in (
        (("--save", saved, out), 0, said),
        ((saved, out), 0, lacks),
        ((out, out), 0, said),
    ):
        assert gate(*arguments) == code
        assert sentence in capsys.readouterr().err
        assert gate(*arguments, "-m", "nDCG@10") == code
        assert "not gated" not in capsys.readouterr().err
    assert gate(saved, out, "-m", "R@100") == 2
    capsys.readouterr()
    for arguments in (("--save", saved, out), (saved, out)):
        assert gate(*arguments, "-m", "nDCG@10", "-m", "R@100") == 0
    weir.benchmark("brook-facts", "bm25", ["R@100", "RR"], out=tmp_path / "others")
    assert gate("--save", saved, str(tmp_path / "others")) == 2
    assert "its measures are R@100, RR: name one by -m" in capsys.readouterr().err


def test_a_folder_of_two_depths_says_which_is_taken(tmp_path):
    for k in (3, 50):
        weir.benchmark("brook-facts", "bm25", "RR", k=k, out=tmp_path)
    result = weir.gate(tmp_path, tmp_path, measures="RR")
    said = "baseline and candidate: bm25 on brook-facts is compared with k=50 alone, not 3"
    assert said in [note.text for note in result.notes()]
    with pytest.warns(RankingWarning, match="is compared with k=50 alone, not 3"):
        weir.compare(
            "brook-facts",
            tmp_path,
            {"q": ["d"]} | weir.Run.load(next(tmp_path.glob("*/*/run.trec"))).to_dict(),
        )


@pytest.mark.parametrize(
    ("interval", "queries", "said"), [("percentile", 4, "needs 5"), ("two-level", 9, "datasets")]
)
def test_an_interval_that_cannot_hold_is_refused(interval, queries, said):
    judged = {f"q{n}": {"a": 1} for n in range(queries)}
    one, other = ({q: {"b": 2.0 * (n % 2), "a": 1.0} for n, q in enumerate(judged)} for _ in range(2))
    with pytest.raises(BadValue, match=said):
        weir.gate(judged, one, other, "RR", interval=interval)


@pytest.fixture(scope="module")
def solo_and_duo(tmp_path_factory):
    """Results folders of two systems on a collection of one query and on one of six."""
    place = tmp_path_factory.mktemp("sizes")
    for system, out in (("bm25", "old"), ('bm25(analyzer="whitespace")', "new")):
        for name, count in (("solo", 1), ("duo", 6)):
            asked = {f"{name}{n}": f"Apples {n}" for n in range(count)}
            documents = {"d1": "apples", "d2": "pie"}
            collection = weir.Dataset.of(documents, asked, {q: {"d1": 1} for q in asked}, name=name)
            weir.benchmark(collection, system, "nDCG@10", out=place / out)
    return place


def test_a_collection_of_one_query_is_left_out_of_a_gate_by_name(solo_and_duo, capsys):
    old, new = solo_and_duo / "old", solo_and_duo / "new"
    [duo] = found = weir.gate(old, new)
    assert (duo.dataset, duo.queries, duo.verdict) == ("duo", 6, "fail")
    [said] = [note.text for note in found.notes() if note.text.startswith("not gated")]
    assert "solo has one query with a value of nDCG@10 (solo0)" in said
    solo = next((old / "solo").glob("bm25-*"))
    assert gate(str(solo), str(solo)) == 2
    assert "a gate needs two queries, and weir diff shows what changed" in capsys.readouterr().err
    looked_at = weir.gate_sequentially(solo_and_duo / "seen.json", old, new)
    assert {one.dataset: one.queries for one in looked_at} == {"solo": 1, "duo": 6}


def test_queries_that_lost_have_their_texts_wherever_the_collection_is_known(tmp_path, capsys):
    for system, out in (("bm25", "old"), ('bm25(analyzer="whitespace")', "new")):
        weir.benchmark("brook-news", system, "nDCG@10", out=tmp_path / out)
    old, new = map(str, (tmp_path / "old", tmp_path / "new"))
    runs = [str(next(Path(one).glob("*/bm25*/run.trec"))) for one in (old, new)]
    saved = str(tmp_path / "saved.tsv")
    assert gate("--save", saved, old) == 0
    capsys.readouterr()
    text = "school phone ban"
    for sides in ((old, new), (saved, new), ("brook-news", *runs)):
        for form in ((), ("--markdown",), ("--json",), ("--junit", str(tmp_path / "junit.xml"))):
            assert gate(*sides, *form) == 1
            assert text in capsys.readouterr().out
    assert text in (tmp_path / "junit.xml").read_text()
    without = weir.gate(weir.load("brook-news").qrels, *runs)
    assert text not in str(without)
    assert "text" not in str(without)


def test_a_split_is_gated_whatever_stands_beside_it(tmp_path, capsys):
    """A split alone is called as its collection, beside another with its own name."""
    qrels = {split: {f"{split}{n}": {"d1": 1} for n in range(6)} for split in ("dev", "test")}
    root = tmp_path / "kb"
    (root / "qrels").mkdir(parents=True)
    (root / "corpus.jsonl").write_text('{"_id": "d1", "text": "egg"}\n{"_id": "d2", "text": "ham"}\n')
    lines = [json.dumps({"_id": q, "text": "egg"}) for judged in qrels.values() for q in judged]
    (root / "queries.jsonl").write_text("\n".join(lines) + "\n")
    for split, judged in qrels.items():
        rows = [f"{q}\td1\t1" for q in judged]
        (root / "qrels" / f"{split}.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *rows]) + "\n")
    weir.benchmark(f"{root}:dev", "bm25", "RR", out=tmp_path / "one")
    for split in qrels:
        weir.benchmark(f"{root}:{split}", "bm25", "RR", out=tmp_path / "both")
    one, both, saved = str(tmp_path / "one"), str(tmp_path / "both"), str(tmp_path / "saved.tsv")
    assert gate("--save", saved, one, "-m", "RR") == 0
    for baseline in (one, saved):
        assert [found.dataset for found in weir.gate(baseline, both, measures="RR")] == ["kb"]
    capsys.readouterr()
    assert gate(both, one, "-m", "RR") == 2
    assert "gated by the folders of single results" in capsys.readouterr().err


def test_systems_are_chosen_in_folders_alone(tmp_path):
    judged, one = qrels(tmp_path), run(tmp_path, "a.trec")
    for ask in (
        lambda: weir.gate(judged, one, one, systems=["a"]),
        lambda: weir.save_baseline(tmp_path / "saved.tsv", judged, one, systems=["a"]),
    ):
        with pytest.raises(BadValue, match="`systems` chooses in a results folder"):
            ask()


def test_results_by_judgments_that_no_longer_count_are_gated_by_none(tmp_path):
    """As `weir compare` leaves them out: a gate would compare what was true before."""
    documents, asked = {"d1": "egg", "d2": "ham"}, {f"q{n}": "egg ham" for n in range(6)}
    for relevant, systems in (("d1", ["bm25", "rm3"]), ("d2", ["bm25"])):
        collection = weir.Dataset.of(documents, asked, {q: {relevant: 1} for q in asked}, name="kb")
        weir.benchmark(collection, systems, "RR", out=tmp_path)
    with pytest.raises(
        BadValue, match=r"rm3 on kb was scored by other judgments .* the same weir run scores it again"
    ):
        weir.gate(tmp_path, tmp_path, measures="RR")
    with pytest.raises(BadValue, match="rm3 on kb was scored by other judgments"):
        weir.gate(tmp_path, tmp_path, measures="RR", systems=["rm3"])
    assert weir.gate(tmp_path, tmp_path, measures="RR", systems=["bm25"])
    weir.benchmark(
        collection, "rm3", "RR", k=1, out=tmp_path
    )  # by the judgments that count, to another depth
    found = weir.gate(tmp_path, tmp_path, measures="RR")
    assert len(found) == 2
    assert "was scored by other judgments" in "; ".join(note.text for note in found.notes())


@pytest.mark.parametrize("seed", range(24))
def test_folders_of_run_files_are_gated_file_by_file_of_one_name_or_refused(tmp_path, seed):
    draw = np.random.default_rng(seed)
    judged = qrels(tmp_path)
    names = [list(draw.permutation(["bm25.trec", "dense.run", "rm3"])[: draw.integers(1, 4)]) for _ in "ab"]
    sides = [tmp_path / "old", tmp_path / "new"]
    for side, files in zip(sides, names, strict=True):
        side.mkdir()
        for name in files:
            run(side, name, *draw.choice(QUERIES, draw.integers(0, 9)))
    if not set(names[0]) <= set(names[1]):
        with pytest.raises(BadValue, match=r"have no run file of one name|the candidate has no "):
            weir.gate(judged, *sides)
        return
    together = weir.gate(judged, *sides)
    alone = {Path(name).stem: weir.gate(judged, *(side / name for side in sides))[0] for name in names[0]}
    assert len(together) == len(alone)
    for one in together:
        own = next(
            own for name, own in alone.items() if len(alone) == 1 or one.dataset.startswith(f"{name},")
        )
        assert (one.before, one.after, one.lost) == (own.before, own.after, own.lost)
    [chosen] = weir.gate(judged, *sides, systems=[Path(names[0][0]).stem])
    assert chosen.after == alone[Path(names[0][0]).stem].after


def test_a_folder_of_run_files_needs_judgments_and_a_file_of_each_name(tmp_path):
    judged, folder = qrels(tmp_path), tmp_path / "old"
    folder.mkdir()
    run(folder, "bm25.trec")
    with pytest.raises(BadValue, match="judgments first where one of them is a run file"):
        weir.gate(folder, folder)
    with pytest.raises(weir.errors.UnknownName, match=r"run file in .*dense"):
        weir.gate(judged, folder, folder, systems=["dense"])
    run(folder, "bm25.run")
    with pytest.raises(BadValue, match=r"bm25\.run and .*bm25\.trec are both called bm25"):
        weir.gate(judged, folder, folder)
