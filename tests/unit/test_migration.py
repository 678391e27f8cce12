"""weir study migrate and canary: what changes is named, and a verdict from few labels keeps its error rate."""

from __future__ import annotations

import csv
import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weir
from tests.unit.brooklet import QRELS, write_collection
from weir.cli import main
from weir.errors import BadValue, FormatError
from weir.plugins.questions.migration import contested_pairs, label_verdict, mapped_threshold

OLD = {"q1": ["d1", "d2", "d3"], "q2": ["d1", "d2"], "q3": ["d5"], "q4": ["d1", "d2"]}
NEW = {"q1": ["d1", "d4", "d3"], "q2": ["d2", "d1"], "q3": ["d5"], "q5": ["d1"]}


def ranked(orders):
    return {query: {doc: float(-n) for n, doc in enumerate(docs)} for query, docs in orders.items()}


def test_what_changes_is_counted_and_named():
    [found] = weir.migrate(ranked(OLD), ranked(NEW), weir.MigrationRules("DCG@3"))
    assert (found.queries, found.other_documents, found.other_order, found.other_first) == (5, 3, 1, 3)
    assert found.kept == pytest.approx((2 / 3 + 1 + 1 + 0 + 0) / 5)
    changed = {one.query: one for one in found.changed}
    assert (changed["q1"].gone, changed["q1"].came) == (("d2",), ("d4",))
    assert [one.query for one in found.changed][-1] == "q2"
    # q1: d2, d4; q2: d1, d2; q4: d1, d2; q5: d1
    assert (found.labels.contested, found.labels.verdict, found.labels.risk) == (7, "undecided", 1.0)


@pytest.mark.parametrize("by", ["prefix:_", {"a_1": "a", "a_5": "b"}], ids=str)
def test_groups_hold_the_queries_of_either_ranking_or_it_is_said(by):
    shown = weir.migrate(
        *(ranked({f"a_{q[1:]}": docs for q, docs in orders.items()}) for orders in (OLD, NEW)), by=by
    )
    [found], notes = shown, " ".join(map(str, shown.notes()))
    grouped = sum(one.queries for one in found.groups)
    assert grouped == (5 if isinstance(by, str) else 2)
    assert ("3 queries have no group" in notes) == (grouped < 5)


orders = st.lists(st.permutations([f"d{n}" for n in range(8)]), min_size=3, max_size=3)
grades = st.lists(st.integers(0, 2), min_size=24, max_size=24)


@given(orders, orders, grades, st.integers(0, 20), st.sampled_from(["DCG@5", "P@3", "RBP@4"]))
def test_all_labels_give_the_difference_of_the_scores_and_part_of_them_bounds_around_it(
    old, new, grade, known, measure
):
    queries = ["q1", "q2", "q3"]
    qrels = {
        q: {f"d{n}": g for n, g in enumerate(grade[8 * at : 8 * at + 8])} for at, q in enumerate(queries)
    }
    runs = [ranked(dict(zip(queries, one, strict=True))) for one in (old, new)]
    binary = {q: {d: int(g >= 2) for d, g in of.items()} for q, of in qrels.items()}
    before, after = (weir.evaluate(binary, run, measure).mean_values()[0] for run in runs)
    rules = weir.MigrationRules(measure, rel=2)
    [whole] = weir.migrate(*runs, rules, labelled=[qrels])
    assert whole.labels.low == pytest.approx(after - before, abs=1e-12) == whole.labels.high
    assert whole.labels.verdict == (
        "equal" if abs(after - before) < 1e-9 else "better" if after > before else "worse"
    )
    pairs = contested_pairs(*map(weir.Run.of, runs), rules)
    labels = pairs.labels(weir.Qrels.of(qrels), 2)
    labels[known:] = np.nan
    part = label_verdict(pairs, labels, 3)
    least, most = part.low - 1e-9, part.high + 1e-9
    if part.risk == 0:
        assert part.verdict == whole.labels.verdict
    assert part.labels == min(known, len(pairs))
    assert part.risks == whole.labels.risks[: part.labels]
    assert least <= most


def two_systems(rng, queries=60, better=0.0):
    """Two rankings of relevant documents by chance, the new one with a little more; and the judgments."""
    orders = [{f"q{n}": rng.permutation(20).astype(str).tolist() for n in range(queries)} for _ in range(2)]
    qrels = {}
    for query in orders[0]:
        relevant = rng.random(20) < 0.2
        qrels[query] = {str(doc): int(relevant[doc]) for doc in range(20)}
        if rng.random() < better:
            orders[1][query].sort(key=lambda doc: -qrels[query][doc])
    return (*(weir.Run.of(ranked(one)) for one in orders), weir.Qrels.of(qrels))


def test_a_verdict_is_wrong_at_most_as_often_as_it_says_and_finds_what_is_there():
    old, new, qrels = two_systems(np.random.default_rng(5))
    rules = weir.MigrationRules()
    pairs = contested_pairs(old, new, rules)
    # labels turned so that the true difference is none: what is gained by one half is lost by the other
    gain, wrong, outside = pairs.gain * pairs.labels(qrels, 1), 0, 0
    for seed in range(300):
        drawn = contested_pairs(old, new, replace(rules, seed=seed))
        found = label_verdict(drawn, drawn.labels(qrels, 1), len(old.queries))
        first = next((n for n, risk in enumerate(found.risks) if risk <= 0.025), len(pairs))
        labels = drawn.labels(qrels, 1)
        labels[min(first + 1, len(pairs)) :] = np.nan
        stopped = label_verdict(drawn, labels, len(old.queries))
        truth = "better" if gain.sum() > 0 else "worse"
        wrong += stopped.verdict not in {truth, "undecided"}
        outside += not stopped.low - 1e-9 <= gain.sum() / len(old.queries) <= stopped.high + 1e-9
    assert wrong <= 7  # 2.5%
    assert outside <= 15  # 5%
    old, new, qrels = two_systems(np.random.default_rng(6), better=0.3)
    pairs = contested_pairs(old, new, rules)
    found = label_verdict(pairs, pairs.labels(qrels, 1), len(old.queries))
    assert found.verdict == "better"
    assert found.after < len(pairs) / 2


def test_a_sheet_is_filled_in_turns_and_ends_when_it_is_decided(tmp_path, capsys):
    folder = write_collection(tmp_path / "mine")
    runs = tmp_path / "old.trec", tmp_path / "new.trec"
    for path, docs in zip(runs, (["d6", "d2", "d5"], ["d1", "d4", "d3"]), strict=True):
        weir.Run.of({q: {d: 3.0 - n for n, d in enumerate(docs)} for q in ("q1", "q2")}).save(path)
    asked = [*map(str, runs), "-d", str(folder), "-m", "DCG@3"]
    sheets = []
    pool = tmp_path / "pool"
    while (
        main(["study", "migrate", *asked, *sheets, "--labels", "3", "-o", str(pool)]) == 0 and pool.exists()
    ):
        sheet = pool.rename(tmp_path / f"pool{len(sheets)}") / "to_judge.tsv"
        with sheet.open(encoding="utf-8") as file:
            lines = list(csv.reader(file, delimiter="\t"))
        assert 2 <= len(lines) <= 4
        for line in lines[1:]:
            line[2] = str(QRELS.get(line[0], {}).get(line[1], 0))
        sheet.write_text("\n".join("\t".join(line) for line in lines) + "\n")
        sheets += ["--labelled", str(sheet)]
    assert len(sheets) > 2
    shown = capsys.readouterr()
    assert "new is better" in shown.out
    assert f"nothing is left to label: {pool} is not written" in shown.err
    assert shown.err.count("documents to label") == len(sheets) // 2


def test_a_threshold_is_carried_to_other_scores():
    rng = np.random.default_rng(3)
    scores = {f"q{n}": {f"d{m}": float(rng.normal()) for m in range(30)} for n in range(20)}
    doubled = {query: {doc: 2 * value + 1 for doc, value in of.items()} for query, of in scores.items()}
    old, new = weir.Run.of(scores), weir.Run.of(doubled)
    found = mapped_threshold(old, new, 0.5)
    least = min(value for of in scores.values() for value in of.values() if value >= 0.5)
    assert found.new == pytest.approx(2 * least + 1)
    assert (found.same, found.reason) == (1.0, "")
    assert found.low <= found.new <= found.high
    assert "every returned document" in mapped_threshold(old, new, -100).reason
    assert "no document" in mapped_threshold(old, new, 100).reason


def test_systems_run_on_a_collection_without_judgments(tmp_path, capsys):
    folder = write_collection(tmp_path / "mine")
    (folder / "qrels" / "test.tsv").unlink()
    (folder / "qrels").rmdir()
    asked = ["study", "migrate", "-q", "-s", "bm25", "-s", "bm25(b=0)", "-d", str(folder)]
    assert main([*asked, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["old"], found["new"], found["queries"]) == ("bm25", "bm25(b=0.0)", 3)


TREC = "1 Q0 d1 1 2.0 x\n1 Q0 {second} 2 1.0 x\n3 Q0 d5 1 1.0 x\n"
QUERY_FILES = {
    "queries.txt": "a wing\n\nheat\n",
    "queries.tsv": "1\ta wing\n3\theat\n",
    "queries.jsonl": '{"_id": "1", "text": "a wing"}\n{"_id": "3", "text": "heat"}\n',
}


@pytest.mark.parametrize("name", QUERY_FILES)
def test_systems_with_documents_of_their_own_take_a_file_of_queries(name, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text(QUERY_FILES[name])
    for system, second in (("old", "d2"), ("new", "d3")):
        (tmp_path / f"{system}.trec").write_text(TREC.format(second=second))
    both = [word for system in ("old", "new") for word in ("-s", f'run("{system}.trec")')]
    assert main(["study", "migrate", "-q", *both, name, "-o", "pool"]) == 0
    assert "on queries: of 2 queries 1 (50.0%) have other documents" in capsys.readouterr().out
    with (tmp_path / "pool" / "to_judge.tsv").open(newline="") as sheet:
        rows = list(csv.DictReader(sheet, delimiter="\t"))
    assert {(row["corpus-id"], row["query"]) for row in rows} == {("d2", "a wing"), ("d3", "a wing")}


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("q.txt", "a wing\n2\theat\n", "q.txt, line 2: found a tab"),
        ("q.txt", "\n", "q.txt: found no query"),
        ("q.jsonl", '{"text": "a wing"}\n', "q.jsonl, line 1"),
        ("q.tsv", "1\ta\n1\tb\n", "q.tsv, line 2"),
    ],
)
def test_a_file_of_no_queries_is_refused_by_its_name(name, text, said, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text(text)
    assert main(["study", "migrate", "-s", 'run("a.trec")', "-s", 'run("b.trec")', name]) == 2
    assert f"weir: {said}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["one.trec"], "give two rankings"),
        (["a", "b", "-s", "bm25"], "give two rankings"),
        (["queries.txt", "-s", "bm25", "-s", "rm3", "-d", "mine"], "give two rankings"),
        (["-s", "bm25", "-s", "rm3"], "give two rankings"),
        (["a", "b", "-m", "nDCG@10"], "no sum over the first k documents"),
        (["a", "b", "-m", "P(rel=2)@10"], "gives nothing to a document of grade 1"),
        (["a", "b", "--level", "1"], "a level within 0 and 1"),
    ],
)
def test_what_cannot_be_compared_is_one_line(words, said, capsys):
    assert main(["study", "migrate", *words]) == 2
    assert said in capsys.readouterr().err


def test_rankings_of_other_queries_are_refused():
    with pytest.raises(BadValue, match="no query in common"):
        weir.migrate({"q1": {"d1": 1.0}}, {"q2": {"d1": 1.0}})


def test_a_canary_sings_until_the_system_changes(tmp_path, capsys):
    folder, canary = write_collection(tmp_path / "mine"), tmp_path / "canary.json"
    made = ["study", "canary", "-s", "bm25", "-d", str(folder), "-o", str(canary), "--documents", "4"]
    assert main(made) == 0
    assert len(json.loads(canary.read_text())["documents"]) == 4
    assert main(["study", "canary", str(canary)]) == 0
    assert "pass: bm25 answers 4 queries as before" in capsys.readouterr().out
    record = json.loads(canary.read_text())
    canary.write_text(json.dumps(record | {"system": "bm25(b=0)"}))
    assert main(["study", "canary", str(canary)]) == 1
    assert "has changed" in capsys.readouterr().out
    [check] = weir.check_canary(canary, allowed=10)
    assert check.outcome == ("fail" if check.reordered else "pass")


def test_a_missing_canary_is_refused_in_one_line(tmp_path):
    with pytest.raises(FormatError, match="no such file"):
        weir.check_canary(tmp_path / "absent.json")


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"system": "bm25"}', '{"answers": {"q": 1}}', "[" * 10_000], ids=range(6)
)
def test_another_file_is_no_canary(tmp_path, text):
    path = tmp_path / "canary.json"
    path.write_text(text)
    with pytest.raises(FormatError, match="expected a canary file"):
        weir.check_canary(path)
    whole = {"documents": {"d1": {"text": "a"}}, "queries": {"q9": "a"}}
    path.write_text(
        json.dumps({"system": "bm25", "k": 3, "weir": "0", **whole, "answers": {"q9": {"d1": "x"}}})
    )
    with pytest.raises(FormatError, match="answers without scores"):
        weir.check_canary(path)
