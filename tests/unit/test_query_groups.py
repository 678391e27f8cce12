"""Groups of queries: what names them, their means and intervals, and comparisons of systems on each."""

from __future__ import annotations

import json

import numpy as np
import pytest

import weir
from weir.cli import main
from weir.core.query_metadata import QueryGroups
from weir.core.scores import Scores
from weir.core.strings import Ids
from weir.errors import BadValue, FormatError, UnknownName
from weir.stats.compare import (
    BY_GROUP,
    compare_scores,
    compared,
    compared_together,
    table,
)
from weir.stats.resampling import intervals
from weir.stats.score_rows import rows_by_group
from weir.stats.significance import adjusted

NAMES = [f"{topic}_{n}-{form}" for topic in ("pay", "ship", "tax") for n in range(4) for form in ("a", "b")]


def scores(seed: int, shift: float = 0.0) -> Scores:
    """Two measures on 24 queries in three topics, or twelve pairs of forms; the second is a logarithm, with a gap."""
    draw = np.random.default_rng(seed)
    values = np.clip(draw.normal(0.5 + shift, 0.2, (2, len(NAMES))), 0, 1)
    values[1] = np.log(values[1] + 0.01)
    values[1, -8:] = np.nan
    return Scores(
        ("nDCG@10", "gmAP"), Ids.of(NAMES), values, np.ones(len(NAMES), np.bool_), geometric=("gmAP",)
    )


def test_rules_on_identifiers_and_what_has_no_group():
    ids = Ids.of(["a_1-x", "a_1-y", "b", "c_2_3-x"])
    first = QueryGroups.by_identifier(ids, "prefix:_")
    assert {g: rows.tolist() for g, rows in first.rows(ids).items()} == {"a": [0, 1], "c": [3]}
    stem = QueryGroups.by_identifier(ids, "stem:_")
    assert stem.labels == ("a", "c_2")
    others = Ids.of(["b", "c_2_3-x", "new"])
    assert {g: rows.tolist() for g, rows in first.rows(others).items()} == {"c": [1]}
    assert repr(first) == "<QueryGroups by prefix:_: 4 queries in 2 groups>"
    for rule in ("prefix:", "suffix:-"):
        with pytest.raises(BadValue, match="expected a sign after it"):
            QueryGroups.by_identifier(ids, rule)


def test_macro_and_micro_means_and_their_intervals():
    found = scores(1)
    groups = {q: q.partition("_")[0] for q in NAMES[2:]}
    by = found.by(groups)
    assert list(by) == ["pay", "ship", "tax"]
    assert by.ungrouped == 2
    assert by.lacking == ("2 queries have no group and count among all queries alone",)
    assert by["ship"].of("nDCG@10").tolist() == found.of("nDCG@10")[8:16].tolist()
    assert by.micro() == found.means()
    means = [by[g].means() for g in by]
    assert by.macro()["nDCG@10"] == pytest.approx(np.mean([m["nDCG@10"] for m in means]), rel=1e-15)
    assert by.macro()["gmAP"] == pytest.approx((means[0]["gmAP"] + means[1]["gmAP"]) / 2, rel=1e-15)
    rows = {(row.group, row.groups, row.measure): row for row in rows_by_group(by, "d", "s")}
    assert rows["", 3, "nDCG@10"].mean == by.macro()["nDCG@10"]
    assert rows["", 2, "gmAP"].mean == by.macro()["gmAP"]
    assert (rows["", None, "gmAP"].low, rows["", None, "gmAP"].high) == (
        intervals(found)[1].low,
        intervals(found)[1].high,
    )
    assert np.isnan(rows["tax", None, "gmAP"].mean)
    assert rows["ship", None, "nDCG@10"].queries == 8
    macro = rows["", 3, "nDCG@10"]
    assert macro.low < macro.mean < macro.high
    text = repr(by)
    assert "macro mean of 3 groups" in text
    assert text.endswith("note: 2 queries have no group and count among all queries alone")
    with pytest.raises(BadValue, match="none of the 24 queries has a group"):
        found.by({"x": "y"})


def test_a_comparison_by_group_bounds_false_findings_over_all_groups():
    given = {"old": scores(2), "new": scores(3, 0.1)}
    groups = QueryGroups.by_identifier(Ids.of(NAMES), "prefix:_")
    found = compare_scores(given, "d", groups=groups)
    ndcg = [c for c in found if c.measure == "nDCG@10"]
    assert [c.group for c in ndcg] == ["", "macro mean of 3 groups", "pay", "ship", "tax"]
    assert [c.group for c in found if c.measure == "gmAP"] == ["", "macro mean of 2 groups", "pay", "ship"]
    p = np.array([c.pairs[0].p for c in ndcg[2:]])
    assert [c.pairs[0].adjusted for c in ndcg[2:]] == adjusted(p, "bh").tolist()
    assert [c.pairs[0].comparisons for c in ndcg] == [1, 1, 3, 3, 3]
    macro = {s.system: s.mean for s in ndcg[1].standings}
    assert macro["new"] == pytest.approx(given["new"].by(groups).macro()["nDCG@10"], rel=1e-14)
    shown = [  # the macro mean and its interval are those of weir eval and weir results
        (row.measure, name, row.mean, row.low, row.high)
        for name, one in given.items()
        for row in rows_by_group(one.by(groups), "d", name)
        if row.groups
    ]
    macros = [c for c in found if c.group.startswith("macro")]
    assert sorted(
        (c.measure, s.system, s.mean, s.low, s.high) for c in macros for s in c.standings
    ) == sorted(shown)
    whole = table("d", "nDCG@10", given)
    assert ndcg[0].pairs == compared(whole, method=BY_GROUP).pairs
    alone = compare_scores({n: s.by(groups)["ship"] for n, s in given.items()}, "d", method=BY_GROUP)
    assert ndcg[3].pairs[0].p == alone[0].pairs[0].p
    assert compared_together([whole]) == [compared(whole)]
    with pytest.raises(BadValue, match="tukey holds for the pairs of one group alone"):
        compare_scores(given, "d", None, weir.stats.ComparisonMethod("tukey"), groups)
    with pytest.raises(BadValue, match="no group has two queries"):
        compare_scores(given, "d", groups=QueryGroups.of({q: q for q in NAMES}))


@pytest.fixture(scope="module")
def golden(tmp_path_factory):
    """A collection of 24 queries with a column, and results of two systems on it."""
    root = tmp_path_factory.mktemp("groups")
    folder = root / "mine"
    (folder / "qrels").mkdir(parents=True)
    texts = {q: f"about {q.partition('_')[0]} number{i}" for i, q in enumerate(NAMES)}
    (folder / "corpus.jsonl").write_text(
        "".join(
            json.dumps({"_id": f"d{i}", "text": f"{t} more words"}) + "\n"
            for i, t in enumerate(texts.values())
        )
    )
    (folder / "queries.jsonl").write_text(
        "".join(
            json.dumps({"_id": q, "text": t, "metadata": {"topic": q.partition("_")[0]}}) + "\n"
            for q, t in texts.items()
        )
    )
    lines = [f"{q}\td{i}\t1" for i, q in enumerate(NAMES)]
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "\n".join(lines) + "\n")
    weir.benchmark(str(folder), ["bm25", "rm3"], ["nDCG@10", "RR"], out=root / "results", k=10)
    return root


def test_every_command_that_shows_scores_takes_groups(golden, capsys):
    results, qrels = str(golden / "results"), str(golden / "mine" / "qrels" / "test.tsv")
    runs = [str(p) for p in sorted((golden / "results" / "mine").glob("*/run.trec"))]
    groups = golden / "groups.tsv"
    groups.write_text("# by hand\nqid\ttopic\n" + "".join(f"{q}\t{q.partition('_')[0]}\n" for q in NAMES))
    said = []
    for by in (["topic", "--collection", str(golden / "mine")], ["prefix:_"], [str(groups)]):
        assert main(["eval", qrels, *runs, "-m", "RR", "--json", "--by", *by]) == 0
        said.append(capsys.readouterr().out)
    assert said[1:] == said[:1] * 2
    rows = [json.loads(line) for line in said[0].splitlines()]
    assert [(r.get("group"), r.get("groups")) for r in rows[:5]] == [
        ("pay", None), ("ship", None), ("tax", None), (None, 3), (None, None)
    ]  # fmt: skip
    assert main(["results", results, "--by", "topic", "-m", "RR", "--json"]) == 0
    again = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [r["mean"] for r in again] == [r["mean"] for r in rows]
    assert main(["compare", results, "--by", "topic", "-m", "RR"]) == 0
    folder = capsys.readouterr().out
    assert "RR on mine, by group; verdicts on groups: bh, adjusted over 3 comparisons" in folder
    assert main(["compare", qrels, *runs, "--by", "prefix:_", "-m", "RR", "--csv", "--correct", "none"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(",")[1] for line in lines] == [
        "group",
        "",
        "macro mean of 3 groups",
        "pay",
        "ship",
        "tax",
    ]
    assert main(["gate", results, results, "-s", "bm25", "--by", "topic"]) == 0
    assert "nDCG@10  ship   pass" in capsys.readouterr().out
    assert repr(weir.compare(results, by="topic", measures="RR")).split("\n\n")[1] == folder.split("\n\n")[1]
    by = weir.compare(qrels, {"a": weir.Run.load(runs[0]), "b": weir.Run.load(runs[1])}, "RR", by="prefix:_")
    assert [c.group for c in by][2:] == ["pay", "ship", "tax"]
    elsewhere = ["--by", "topic", "--collection", str(golden / "mine"), "-m", "RR"]
    assert main(["compare", results, *elsewhere]) == 0
    assert capsys.readouterr().out == folder
    assert main(["results", results, *elsewhere, "--csv"]) == 0
    assert "group" in capsys.readouterr().out.splitlines()[0]
    assert main(["results", results, "--by", "topics"]) == 2
    assert "no column of the queries named 'topics'; did you mean topic" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("q1\ta\nq1\tb\n", "line 2: found query 'q1' in 'a' and 'b'"),
        ("q1 a\n", "line 1: found 'q1 a'; expected a query, a tab and its group"),
        ("q1\ta\tb\n", "line 1"),
        ("# nothing\n", "no query"),
        (b"\xff", "not UTF-8"),
    ],
)
def test_files_of_groups_are_refused_in_one_line(tmp_path, text, said):
    path = tmp_path / "groups.tsv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(FormatError, match=said):
        scores(1).by(path)


def test_a_column_needs_a_collection_that_has_it():
    with pytest.raises(BadValue, match="no such file, and no collection with such a column"):
        scores(1).by("topic")
    from weir.datasets.load import query_groups

    with pytest.raises(UnknownName, match="no column of the queries named 'topic'"):
        query_groups("topic", Ids.of(["1"]), weir.load("brook-news"))


def test_the_macro_mean_of_a_comparison_names_groups_of_one_query():
    given = {"old": scores(2), "new": scores(3, 0.1)}
    groups = QueryGroups.of({name: "one" if name == NAMES[0] else name.split("_")[0] for name in NAMES})
    macro = next(c for c in compare_scores(given, "d", groups=groups) if c.group.startswith("macro"))
    assert macro.group == "macro mean of 3 groups (1 of one query left out)"


def test_each_dataset_has_a_macro_mean_of_its_own_also_over_one_group():
    """Of one usable group, too: tables of two datasets by the same group must not meet under the group's name."""
    given = {"old": scores(2), "new": scores(3, 0.1)}
    one = QueryGroups.of({name: "tax" if n < 4 else name for n, name in enumerate(NAMES)})
    found = [c for dataset in ("d", "e") for c in compare_scores(given, dataset, groups=one)]
    assert {c.dataset for c in found if not c.group or c.group.startswith("macro")} == {"d", "e"}
    assert any(c.group.startswith("macro mean of 1 group (") for c in found)
    assert not {c.dataset for c in found} - {"d", "e"}


def test_queries_without_a_group_and_groups_of_other_queries_are_told_by_whatever_takes_groups(tmp_path):
    qrels = {f"q{n}": {"d1": 1} for n in range(12)}
    first, second = ({q: {"d1": 1.0 * (n % m), "d2": 0.5} for n, q in enumerate(qrels)} for m in (2, 3))
    by = {f"q{n}": "even" if n % 2 == 0 else "odd" for n in range(2, 14)}
    told = "2 queries have no group and count among all queries alone"
    for m, run in ((2, first), (3, second)):
        weir.Run.of(run).save(tmp_path / f"{m}.trec")
    for shown in (
        weir.evaluate(qrels, first, "RR").by(by),
        weir.compare(qrels, first, second, measures="RR", by=by),
        weir.gate(qrels, first, second, measures="RR", by=by),
        weir.migrate(first, second, by=by),
    ):
        notes = " ".join(map(str, shown.notes()))
        assert told in notes
        assert "2 queries with a group are not among them" in notes
