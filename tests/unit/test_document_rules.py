"""What must not be found: rules beside judgments, their measures, bound and gate, and the stage that lets them through."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weir
from tests.unit.brooklet import write_collection
from weir.cli import main
from weir.errors import BadValue, FormatError
from weir.stats.resampling import share_below

HEAD = "rule\tdocument\tfor\tvalue\n"
QRELS = {"q1": {"d1": 1}, "q2": {"d1": 1}, "q3": {"d1": 1}}


def rules_file(folder, *rows: str):
    path = folder / "document-rules.tsv"
    path.write_text(HEAD + "".join(row.replace(" ", "\t") + "\n" for row in rows))
    return path


def scored(folder, run: dict, *rows: str, measures=("Leak", "Stale", "Superseded"), qrels=QRELS) -> dict:
    """Values by measure of the queries in order."""
    scores = weir.evaluate(weir.with_document_rules(qrels, rules_file(folder, *rows)), run, measures)
    return {str(m): [scores[m].to_dict()[q] for q in sorted(qrels)] for m in measures}


def test_planted_failures_are_found_and_no_others(tmp_path):
    rows = (
        "forbidden d3 query:q1", "forbidden d4 group:sales", "forbidden d5 *", "forbidden d6 user:ann",
        "is  query:q2 group:sales", "is  query:q2 group:all", "is  query:q3 user:ann",
        "asked  * 2026-06-01", "asked  query:q3 2025-01-31T12:00", "valid-until d7  2025-01-31", "valid-from d8  2026-01-01",
        "superseded d1  d9", "superseded d9  d10",
    )  # fmt: skip
    ranked = {"q1": ["d4", "d6", "d2", "d3"], "q2": ["d3", "d6", "d4"], "q3": ["d3", "d4", "d6"]}
    found = scored(tmp_path, ranked, *rows, measures=("Leak@2", "Leak@3", "Leak"))
    assert found == {"Leak@2": [0, 0, 0], "Leak@3": [0, 1, 1], "Leak": [1, 1, 1]}
    assert scored(tmp_path, {"q1": ["d5"]}, *rows, measures=("Leak",))["Leak"] == [1, 0, 0]
    when = {"q1": ["d8", "d7"], "q2": ["d8"], "q3": ["d7", "d8"]}
    assert scored(tmp_path, when, *rows, measures=("Stale@1", "Stale@2")) == {
        "Stale@1": [0, 0, 0], "Stale@2": [1, 0, 1],  # the last day counts; d8 is not valid yet for q3
    }  # fmt: skip
    orders = {"q1": ["d1", "d9", "d2"], "q2": ["d10", "d1", "d9"], "q3": ["d2", "d9"]}
    assert scored(tmp_path, orders, *rows, measures=("Superseded@1", "Superseded@3")) == {
        "Superseded@1": [1, 0, 0], "Superseded@3": [1, 0, 1],  # the newest above both excuses both
    }  # fmt: skip


def test_rules_of_what_a_collection_lacks_are_told(tmp_path, capsys):
    folder, run = write_collection(tmp_path / "mine"), tmp_path / "a.trec"
    weir.Run.of({"q1": ["d1"]}).save(run)
    rules_file(
        folder, "forbidden d99 *", "forbidden d1 query:q99", "superseded d1  d98", "is  query:q98 group:all"
    )
    assert main(["eval", str(folder), str(run), "-m", "Leak@1"]) == 0
    shown = capsys.readouterr().err
    assert (
        "2 of 3 documents of document rules are not in it, and such rules never fail: 'd99', 'd98'" in shown
    )
    assert "2 of 2 queries of document rules are not in it, and such rules never fail: 'q99', 'q98'" in shown


documents = st.lists(st.sampled_from([f"d{n}" for n in range(8)]), unique=True, max_size=8)


@given(st.fixed_dictionaries({q: documents for q in QRELS}), st.sets(st.tuples(st.sampled_from([*QRELS, "*"]), st.integers(0, 7))),
       st.dictionaries(st.integers(0, 6), st.integers(1, 7)), st.sampled_from([None, 1, 3]))  # fmt: skip
def test_measures_are_those_of_a_plain_loop(tmp_path_factory, run, barred, newer, k):
    newer = {old: new for old, new in newer.items() if new > old}  # no circles
    rows = [f"forbidden d{d} {'*' if q == '*' else f'query:{q}'}" for q, d in sorted(barred)]
    rows += [f"superseded d{old}  d{new}" for old, new in sorted(newer.items())]
    if not rows:
        return
    cut = "" if k is None else f"@{k}"
    found = scored(tmp_path_factory.mktemp("m"), run, *rows, measures=(f"Leak{cut}", f"Superseded{cut}"))

    def above(ranking: list[str], old: int) -> bool:
        seen, at = ranking[: ranking.index(f"d{old}")], newer.get(old)
        while at is not None:
            if f"d{at}" in seen:
                return True
            at = newer.get(at)
        return False

    for n, (query, ranking) in enumerate(sorted(run.items())):
        top = [int(d[1:]) for d in ranking[:k]]
        assert found[f"Leak{cut}"][n] == any((query, d) in barred or ("*", d) in barred for d in top)
        assert found[f"Superseded{cut}"][n] == any(d in newer and not above(ranking, d) for d in top)


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        (("allowed d1 *",), "line 2: found the rule 'allowed'; expected one of forbidden"),
        (("forbidden d1",), "line 2: found 'forbidden\td1'; expected forbidden with a document, and for"),
        (("forbidden d1 sales",), "line 2: found 'forbidden\td1\tsales'"),
        (("forbidden d1 * x",), "line 2: found"),
        (("forbidden d1 * x y",), "line 2: found 'forbidden\td1\t*\tx\ty'; expected 4 columns"),
        (("forbidden d1 group:sales",), "line 2: found 'group:sales', of which no query is; expected a row 'is'"),
        (("asked  * 2026-06-01", "valid-until d1  june"), "line 3: found 'june'; expected a date such as 2026-11-30"),
        (("valid-until d1  2026-06-01",), "line 2: found valid-until, and query 'q1' without a time"),
        (("asked  query:q1 2026-06-01", "valid-from d1  2026-06-01"), "line 3: found valid-from, and query 'q2'"),
        (("asked  * 2026-06-01", "asked  * 2026-06-02"), "line 3: found asked of '*' again; expected it once (line 2)"),
        (("asked  * 2026-06-01", "valid-from d1  2026-06-02", "valid-until d1  2026-06-01"), "line 3: found 'd1' valid from"),
        (("superseded d1  d2", "superseded d1  d3"), "line 3: found superseded of 'd1' again"),
        (("superseded d1  d1",), "line 2: found 'd1' superseded by itself"),
        (("superseded d1  d2", "superseded d2  d3", "superseded d3  d1"), "line 2: found 'd1' superseded by itself"),
        (("is  group:x user:y",), "line 2: found"),
        ((), "found no rule; expected the header rule document for value"),
    ],
)  # fmt: skip
def test_hostile_rules_are_refused_with_their_line(tmp_path, rows, found):
    with pytest.raises(FormatError) as error:
        weir.with_document_rules(QRELS, rules_file(tmp_path, *rows))
    assert found.replace("\t", "\\t") in str(error.value)


@pytest.mark.parametrize(
    ("content", "found"),
    [(b"\xff", "not UTF-8"), (b"query doc\n", "line 1: found 'query doc'"), (b"", "no rule")],
)
def test_files_that_are_no_rules_are_refused(tmp_path, content, found):
    (tmp_path / "document-rules.tsv").write_bytes(content)
    with pytest.raises(FormatError, match=found):
        weir.with_document_rules(QRELS, tmp_path / "document-rules.tsv")


def test_without_rules_there_is_no_measure():
    with pytest.raises(BadValue, match=r"expected document-rules\.tsv in their folder"):
        weir.evaluate(QRELS, {"q1": ["d1"]}, ["Leak@10"])


@pytest.fixture
def mine(tmp_path):
    """A collection whose rules forbid one document that bm25 finds, and one that nothing finds."""
    folder = write_collection(tmp_path / "mine")
    rules_file(folder, "forbidden d2 query:q1", "forbidden d5 *", "superseded d4  d1")
    return folder


def test_the_file_beside_a_collection_is_found_wherever_a_measure_is_named(mine, tmp_path, capsys):
    out, run = tmp_path / "out", tmp_path / "bm25.trec"
    weir.benchmark([mine], ["bm25"], ["nDCG@10", "Leak@10", "Superseded@10"], out=out)
    dataset = weir.load(mine)
    weir.BM25().index(dataset.corpus).search(dataset.queries, 10).save(run)
    table = {row.measure: row.mean for row in weir.results(out)}
    assert table["Leak@10"] == 0.25  # one of four queries
    for judgments in (mine, mine / "qrels" / "test.tsv"):
        scores = weir.evaluate(judgments, run, list(table))
        assert scores.means() == table
    assert weir.evaluate(weir.load(mine), weir.Run.load(run), ["Leak@10"]).mean("Leak@10") == 0.25
    assert main(["eval", str(mine), str(run), "-m", "Leak@10"]) == 0
    assert "Leak@10: 1 of 4 queries, 25.0%: below 75.1% at 95%" in capsys.readouterr().err
    assert main(["results", str(out)]) == 0
    assert "Leak@10: 1 of 4 queries, 25.0%: below 75.1% at 95%" in capsys.readouterr().err
    assert main(["verify", str(out)]) == 0
    rules_file(mine, "forbidden d3 query:q3")
    weir.benchmark([mine], ["bm25"], ["Leak@10"], out=out)  # other rules: scored again
    assert {row.measure: row.mean for row in weir.results(out)}["Leak@10"] == 0.0


def test_one_leak_fails_a_gate_and_none_passes(tmp_path, capsys):
    qrels = {f"q{n}": {"d1": 1} for n in range(300)}
    (tmp_path / "qrels.tsv").write_text("".join(f"{q}\td1\t1\n" for q in qrels))
    rules_file(tmp_path, "forbidden d9 *")
    baseline = tmp_path / "baseline.trec"
    weir.Run.of({q: ["d1", "d2"] for q in qrels}).save(baseline)
    good = weir.gate(tmp_path / "qrels.tsv", baseline, baseline, measures=["Leak@10", "nDCG@10"])
    assert good
    assert "0 of 300 queries: below 1.0% at 95%" in repr(good)
    for bad in ({"q7": ["d1", "d9"]}, {q: ["d9", "d1"] for q in qrels}):
        candidate = tmp_path / "candidate.trec"
        weir.Run.of({q: ["d1", "d2"] for q in qrels} | bad).save(candidate)
        made = weir.gate(tmp_path / "qrels.tsv", baseline, candidate, measures=["Leak@10"])
        assert not made
        assert (made[0].verdict, made[0].lost) == ("fail", len(bad))
        # also where the baseline leaks as much
        assert (
            weir.gate(tmp_path / "qrels.tsv", candidate, candidate, measures=["Leak@10"])[0].verdict == "fail"
        )
        paths = [str(tmp_path / name) for name in ("qrels.tsv", "baseline.trec", "candidate.trec")]
        assert main(["gate", *paths, "-m", "Leak@10"]) == 1
        assert f"{len(bad)} of 300 queries" in capsys.readouterr().out


@pytest.mark.parametrize("count", [1, 5, 30, 300, 7000])
def test_the_bound_is_scipys(count):
    scipy_stats = pytest.importorskip("scipy.stats")
    for successes in sorted({0, 1, count // 3, count - 1, count}):
        exact = scipy_stats.beta.ppf(0.95, successes + 1, count - successes) if successes < count else 1.0
        assert share_below(successes, count) == pytest.approx(exact, rel=1e-9)
    assert share_below(0, 300) < 0.01 < share_below(1, 300)


def test_a_funnel_tells_which_stage_lets_a_forbidden_document_through(mine, capsys):
    system = "rrf(bm25, rm3) >> score(bm25, depth=3)"
    [funnel] = weir.funnel(mine, system, weir.FunnelRules(k=2))
    run = weir.systems.parse_system(system).index(weir.load(mine).corpus).search(weir.load(mine).queries, 2)
    leaked = "d2" in run.to_dict()["q1"]
    assert funnel.stages[0].forbidden >= 1
    assert [(one.query, one.document) for one in funnel.leaks] == [("q1", "d2")] * leaked
    assert funnel.whole[-1].forbidden == len(funnel.leaks)
    assert main(["study", "funnel", "-q", "-d", str(mine), "-s", system, "-k", "5"]) == 0
    assert "let through" in capsys.readouterr().out
    assert json.dumps(weir.funnel(mine, system).to_dict())
    assert np.isfinite(funnel.whole[-1].ceiling)
