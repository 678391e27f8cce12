"""Scores of different origin meet in no statement: other judgments, other collections of one name, splits as datasets."""

from __future__ import annotations

import copy
import json
import re
import shutil
import tempfile
import warnings
from contextlib import suppress
from dataclasses import replace
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weir
from tests.unit.cells import MANIFEST, changed, noted, write_cell
from weir.api.rows import grid_tables
from weir.cli.main import main
from weir.core.origin import MARKED, Origin, query_marks, shared_notes
from weir.core.scores import Note
from weir.errors import BadValue, FormatError, LossWarning, RankingWarning
from weir.experiment.results import by_split, finished_cells
from weir.experiment.stages import read_record, records_in, write_record
from weir.plugins.bridges.export import write_annotated_runs, write_mteb_results
from weir.plugins.report.study import Study
from weir.stats.score_rows import system_notes

QUERIES = [f"q{n}" for n in range(8)]
FIRST = {q: {"a": 2.0, "b": 1.0} for q in QUERIES}
SECOND = {q: {"b": 2.0, "a": 1.0} for q in QUERIES}


def judged(grades):
    return {q: {"a": int(g), "b": 1} for q, g in zip(QUERIES, grades, strict=True)}


@settings(max_examples=60)
@given(st.lists(st.booleans(), min_size=8, max_size=8), st.lists(st.booleans(), min_size=8, max_size=8),
       st.sampled_from(["dict", "qrels", "mutated"]))  # fmt: skip
def test_scores_compare_only_where_every_judgment_is_the_same(one, other, kind):
    """Whatever the judgments came in, and whichever function is asked."""
    before, after = judged(one), judged(other)
    first = weir.evaluate(weir.Qrels.of(before) if kind == "qrels" else before, FIRST, "nDCG@10")
    if kind == "mutated":
        for query in QUERIES:
            before[query]["a"] = after[query]["a"]
        after = before
    second = weir.evaluate(after, SECOND, "nDCG@10")
    asked = [
        lambda: weir.compare(first, second),
        lambda: weir.compare({"a": first, "b": second}),
        lambda: weir.power(after, first, second),
        lambda: weir.power(after, first, SECOND, "nDCG@10"),
        lambda: weir.gate(after, first, second),
        lambda: weir.gate(after, first, SECOND),
    ]
    for ask in asked:
        if one == other:
            ask()
        else:
            with pytest.raises(BadValue, match="judg"):
                ask()


def test_saved_scores_remember_their_judgments(tmp_path):
    by_one, by_other = judged([0] * 8), judged([1] * 8)
    weir.evaluate(by_one, FIRST).save(tmp_path / "one.json")
    loaded = weir.Scores.load(tmp_path / "one.json")
    weir.compare(loaded, weir.evaluate(copy.deepcopy(by_one), SECOND))
    with pytest.raises(BadValue, match="8 queries"):
        weir.compare(loaded, weir.evaluate(by_other, SECOND))


KNOWN = ("evaluated", "saved", "stored", "cell")


@pytest.fixture(scope="module")
def known_ways(tmp_path_factory):
    """{(judgments, way): scores} of one ranking: just made, saved and loaded, of a stored file, of a cell."""
    place = tmp_path_factory.mktemp("ways")
    found = {}
    for name, grades in (("one", [1] * 8), ("other", [0, 1] * 4)):
        qrels = judged(grades)
        documents = {"a": "water", "b": "stone", "c": "grass"}
        collection = weir.Dataset.of(documents, dict.fromkeys(QUERIES, "water stone"), qrels, name="kb")
        weir.benchmark(collection, "bm25", "nDCG@10", out=place / name)
        [values] = (place / name).glob("kb/bm25-*/scores-*.jsonl")
        made = weir.evaluate(qrels, values.parent, "nDCG@10")
        made.save(place / f"{name}.json")
        [cell] = finished_cells(place / name)
        ways = made, weir.Scores.load(place / f"{name}.json"), weir.Scores.load(values), cell.values()
        found |= {(name, way): scores for way, scores in zip(KNOWN, ways, strict=True)}
    return found


@pytest.mark.parametrize("first", KNOWN)
@pytest.mark.parametrize("second", KNOWN)
@pytest.mark.parametrize("same", [True, False])
def test_judgments_are_told_apart_however_scores_know_them(known_ways, first, second, same):
    pair = known_ways["one", first], known_ways["one" if same else "other", second]
    for ask in (lambda: weir.compare(*pair), lambda: weir.gate({}, *pair), lambda: weir.power({}, *pair)):
        if same:
            ask()
        else:
            with pytest.raises(BadValue, match="judg"):
                ask()


def test_saved_scores_remember_algorithms_and_depth(known_ways):
    evaluated, saved, stored, cell = (known_ways["one", way].origin for way in KNOWN)
    assert stored.algorithms == cell.algorithms != {}
    assert {(one.depth, one.whole) for one in (evaluated, saved, stored, cell)} == {(2, True)}


def test_scores_by_two_conventions_do_not_compare():
    qrels = judged([1] * 8)
    with pytest.raises(BadValue, match="conventions default and"):
        weir.compare(weir.evaluate(qrels, FIRST), weir.evaluate(qrels, SECOND, conventions="ties=expected"))


def test_p_mrr_knows_who_answered():
    qrels = {
        f"q{n}{sign}": {"a": int(sign == "-og"), "b": 1} for n in range(3) for sign in ("-og", "-changed")
    }
    scores = weir.p_mrr(qrels, {q: {"a": 2.0, "b": 1.0} for q in qrels})
    assert scores.answered.dtype == np.bool_
    assert scores.answered.all()
    assert not any("not answered" in note.text for note in scores.notes())


# ----------
# Results folders whose cells are of mixed origin.

PLACES = [(c, d, s) for c in ("x", "y") for d in ("aa", "bb") for s in ("dev", "test")]
one_cell = st.tuples(
    st.sampled_from(PLACES),
    st.sampled_from(("old", "new")),
    st.sampled_from(("s1", "s2", "s3")),
    st.sampled_from((10, 1000)),
    st.lists(st.integers(1, 4), min_size=6, max_size=6),
)


def write_folder(root, cells):
    """The cells that are written: of one system on a collection, split and k there is one, as weir run leaves it."""
    there = {}
    for number, (place, judgments, system, k, ranks) in enumerate(cells):
        there[place, system, k] = (place, judgments, system, k, ranks, number)
    for (collection, documents, split), judgments, system, k, ranks, number in there.values():
        # The place of the relevant document; by the new judgments the second is relevant too.
        qrels = {f"{split}{n}": {"d1": 1, "d2": int(judgments == "new")} for n in range(len(ranks))}
        docs = [
            ["d1" if at == rank else "d2" if at == rank + 1 else f"n{at}" for at in range(1, 6)]
            for rank in ranks
        ]
        run = {q: {d: 9.0 - n for n, d in enumerate(of)} for q, of in zip(qrels, docs, strict=True)}
        manifest = copy.deepcopy(MANIFEST) | {
            "dataset": collection,
            "split": split,
            "fingerprint": documents,
            "queries": f"{collection}-{documents}",
            "k": k,
        }
        manifest["system"]["system"] = system
        manifest["environment"]["when"] = f"2026-01-{1 + number:02}"
        folder = write_cell(
            root / collection / f"{system}-{number:010x}", run, manifest, ("AP", "Hole@3"), qrels
        )
        [(path, record)] = records_in(folder, "scores-*.json")
        write_record(path, replace(record, declared={**record.declared, "qrels": f"{split}-{judgments}"}))
    return list(there.values())


def belonging(cells):
    """The cells whose judgments count: the last made of each collection and split. And the longest of each system."""
    last = {}
    for place, judgments, *_, number in cells:
        last[place] = max(last.get(place, (-1, "")), (number, judgments))
    current = [cell for cell in cells if cell[1] == last[cell[0]][1]]
    deepest = {}
    for place, _, system, k, *_ in current:
        deepest[place, system] = max(k, deepest.get((place, system), 0))
    return current, [cell for cell in current if cell[3] == deepest[cell[0], cell[2]]]


def hits(ranks, judgments):
    """AP of the run as it is: documents beyond rank 5 are not returned."""
    return [1 / r if judgments == "old" else (1 / r + (2 / (r + 1) if r < 5 else 0)) / 2 for r in ranks]


@settings(max_examples=25)
@given(cells=st.lists(one_cell, min_size=2, max_size=12))
def test_every_statement_of_a_folder_is_of_parts_that_belong_together(tmp_path_factory, cells):
    root = tmp_path_factory.mktemp("mixed")
    written = write_folder(root, cells)
    current, deepest = belonging(written)

    # Each row is a cell that counts, and no two of different origin stand under one dataset.
    rows = [row for row in weir.results(root, "AP") if not row.group]
    expected = sorted(float(np.mean(hits(cell[4], cell[1]))) for cell in current)
    assert sorted(row.mean for row in rows) == pytest.approx(expected, abs=1e-12)
    assert len({row.dataset for row in rows}) == len({cell[0] for cell in current})

    # What is left out is named.
    notes = " ".join(str(note) for note in weir.results(root).notes())
    assert notes.count("other judgments than the last") == len(written) - len(current)

    # A mean over datasets is over collections, the splits of each averaged first.
    places = {cell[0] for cell in current}
    units = {place[:2] for place in places}
    values = {(cell[0], cell[2]): hits(cell[4], cell[1]) for cell in deepest}
    whole = {
        system: np.mean(
            [np.mean([np.mean(values[p, system]) for p in places if p[:2] == unit]) for unit in units]
        )
        for system in ("s1", "s2", "s3")
        if all((place, system) in values for place in places)
    }
    [grid] = [g for g in grid_tables(rows) if g.measure == "AP"]
    if len(units) > 1:
        assert grid.datasets[-1] == f"mean of {len(units)} datasets"
        shown = {
            s: line[-1].mean
            for s, line in zip(grid.systems, grid.cells, strict=True)
            if line[-1] and "#" not in s
        }
        for system, mean in shown.items():
            assert system not in whole or mean == pytest.approx(whole[system], abs=1e-12)
    else:
        assert not grid.datasets[-1].startswith("mean")

    # Costs stand beside the same means, and a report compares what `weir.compare` compares.
    means = {(row.dataset, row.system): row.mean for row in rows}
    costs = {
        (one.quality.dataset, one.quality.system): one.quality.mean for one in weir.efficiency(root, "AP")
    }
    assert costs == means
    study = Study.of(root, measures=["AP"])
    with suppress(BadValue):
        compared = weir.compare(root, measures="AP")
        pairs = [[(p.first, p.second, p.difference, p.verdict) for p in one.pairs] for one in compared]
        assert [
            [(p.first, p.second, p.difference, p.verdict) for p in one.pairs] for one in study.comparisons
        ] == pairs
        assert [one.count for one in study.comparisons] == [one.count for one in compared]
    assert len(study.units) == len(units)

    # Verdicts are of two systems on one dataset, or on so many collections.
    try:
        comparisons = list(weir.compare(root, measures="AP"))
    except BadValue:
        per_place = [{cell[2] for cell in deepest if cell[0] == place} for place in places]
        assert max(map(len, per_place)) < 2
        return
    for one in comparisons:
        for pair in one.pairs:
            if one.unit == "queries":
                fits = [
                    p for p in places if (p, pair.first) in values and (p, pair.second) in values
                    and np.mean(values[p, pair.second]) - np.mean(values[p, pair.first])
                    == pytest.approx(pair.difference, abs=1e-12)
                ]  # fmt: skip
                assert fits, pair
            else:
                paired = [p for p in places if sum((p, s) in values for s in ("s1", "s2", "s3")) > 1]
                kept = {p[:2] for p in paired}
                assert one.count == len(kept)
                means = [
                    np.mean(
                        [np.mean([np.mean(values[p, s]) for p in paired if p[:2] == unit]) for unit in kept]
                    )
                    for s in (pair.first, pair.second)
                ]
                assert pair.difference == pytest.approx(means[1] - means[0], abs=1e-12)


def test_why_explains_no_two_splits_by_a_rule_of_scoring(tmp_path):
    """The judgments of each split are here and rankings differ in depth: still other queries are no rule."""
    qrels = {split: {f"{split}{n}": {"d": 1, "e": 0} for n in range(6)} for split in ("dev", "test")}
    root = tmp_path / "kb"
    (root / "qrels").mkdir(parents=True)
    (root / "corpus.jsonl").write_text(
        '{"_id": "d", "text": "egg"}\n{"_id": "e", "text": "ham"}\n', encoding="utf-8"
    )
    names = [q for of in qrels.values() for q in of]
    lines = [json.dumps({"_id": q, "text": "egg" if n % 2 else "ham"}) for n, q in enumerate(names)]
    (root / "queries.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for split, of in qrels.items():
        rows = [f"{q}\t{d}\t{g}" for q, grades in of.items() for d, g in grades.items()]
        (root / "qrels" / f"{split}.tsv").write_text(
            "\n".join(["query-id\tcorpus-id\tscore", *rows]) + "\n", "utf-8"
        )
    for split in qrels:
        weir.benchmark(f"{root}:{split}", "bm25", "RR", out=tmp_path / "results")
    cells = sorted((tmp_path / "results").glob("*/bm25-*"))
    assert len(cells) == 2
    [why] = weir.why(*cells)
    assert not why.effects
    assert any("no rule of scoring" in note for note in why.notes)


def test_rankings_of_another_depth_are_said_beside_measures_of_whole_rankings():
    qrels = {q: {**grades, "n8": 1} for q, grades in judged([1] * 8).items()}
    deep = {q: {**row, **{f"n{n}": -n for n in range(1, 9)}} for q, row in SECOND.items()}
    notes = [note.text for note in weir.compare(qrels, FIRST, deep, measures=["AP", "nDCG@10"]).notes()]
    assert any(text.startswith("AP looks at whole rankings") for text in notes)
    assert any(text.startswith("nDCG@10 looks deeper than the ") for text in notes)
    kept = weir.compare(qrels, FIRST, deep, measures=["P@1"]).notes()
    assert not any("deeper than" in note.text for note in kept)
    assert not any(
        "whole rankings" in note.text for note in weir.compare(qrels, FIRST, SECOND, measures="AP").notes()
    )


@given(st.lists(st.integers(0, 9), min_size=2, max_size=4, unique=True), st.integers(1, 4), st.integers(0, 9))
def test_a_ranking_with_every_relevant_document_is_never_too_short(relevant, least, missed):
    """Whoever returned more gained nothing; one relevant document that is missing, and it is said."""
    qrels = {"q": dict.fromkeys(map(str, relevant), 1)}
    short = {"q": {str(doc): -float(n) for n, doc in enumerate(dict.fromkeys([*relevant, *range(least)]))}}
    deep = {"q": {str(doc): -float(doc) for doc in range(40)}}
    assert depths_said(qrels, short, deep) == depths_said(qrels, deep, short) == []
    short["q"].pop(str(relevant[missed % len(relevant)]))
    assert depths_said(qrels, short, deep) != []


def test_a_measure_is_said_to_look_deeper_than_rankings_that_have_it_alone(tmp_path):
    weir.benchmark("brook-facts", ["bm25", "rm3"], ["AP", "nDCG@10"], out=tmp_path)
    weir.benchmark("brook-facts", ["bm25(b=0.0)"], ["RR"], k=3, out=tmp_path)
    assert not any("documents of bm25(b=0.0)" in note.text for note in weir.compare(tmp_path).notes())
    weir.benchmark("brook-facts", ["bm25(b=0.0)"], ["AP"], k=3, out=tmp_path)
    [said] = [n.text for n in weir.compare(tmp_path).notes() if "documents of bm25(b=0.0)" in n.text]
    assert said.startswith("brook-facts: AP looks at whole rankings")


@pytest.mark.parametrize("saved", [True, False])
def test_a_gate_says_that_the_depth_changed(tmp_path, saved):
    qrels = {q: {**grades, "n8": 1} for q, grades in judged([1] * 8).items()}
    deep = {q: {**row, **{f"n{n}": -n for n in range(1, 9)}} for q, row in SECOND.items()}
    weir.save_baseline(tmp_path / "b.tsv", qrels, FIRST, ["AP"])
    result = weir.gate(qrels, tmp_path / "b.tsv" if saved else FIRST, deep, "AP")
    assert [note.text for note in result.notes() if "whole rankings" in note.text] == [
        "AP looks at whole rankings, which hold at most 2 documents of baseline and 10 documents of candidate"
    ]


@pytest.mark.parametrize("name", ["kb", "kb2"])
@pytest.mark.parametrize("saved", [True, False])
def test_a_gate_says_that_the_documents_changed(tmp_path, name, saved):
    queries, qrels = {f"q{n}": "egg" for n in range(6)}, {f"q{n}": {"d1": 1} for n in range(6)}
    for folder, collection, texts in (("one", "kb", "egg"), ("other", name, "egg ham")):
        root = tmp_path / folder / collection
        (root / "qrels").mkdir(parents=True)
        (root / "corpus.jsonl").write_text(json.dumps({"_id": "d1", "text": texts}) + "\n")
        (root / "queries.jsonl").write_text(
            "".join(json.dumps({"_id": q, "text": t}) + "\n" for q, t in queries.items())
        )
        rows = "".join(f"{q}\td1\t1\n" for q in qrels)
        (root / "qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\n" + rows)
        weir.benchmark(str(root), "bm25", "RR", out=tmp_path / f"{folder}-results")
    baseline = tmp_path / "one-results"
    if saved:
        weir.save_baseline(tmp_path / "b.tsv", baseline, measures="RR")
        baseline = tmp_path / "b.tsv"
    result = weir.gate(baseline, tmp_path / "other-results", measures="RR")
    said = [note.text for note in result.notes() if "other documents" in note.text]
    assert len(said) == 1
    assert said[0].startswith("baseline and candidate ranked other documents, or other queries or candidates")
    again = weir.gate(baseline, tmp_path / "one-results", measures="RR")
    assert not any("other documents" in note.text for note in again.notes())


def test_a_gate_says_on_how_many_queries_a_side_has_no_value():
    qrels = judged([1] * 8)
    part = {q: FIRST[q] for q in QUERIES[:6]}
    shown = str(weir.gate(qrels, FIRST, part, "AP", conventions="missing=answered-only"))
    assert "over 6 queries (2 left out that not both sides have)" in shown


def depths_said(qrels, first, second):
    scores = {name: weir.evaluate(qrels, run, ["AP", "R@30"]) for name, run in (("a", first), ("b", second))}
    return [
        note.text
        for note in system_notes(scores)
        if "whole rankings" in note.text or "deeper than" in note.text
    ]


def test_a_note_that_begins_with_a_name_does_not_say_it_twice():
    note = Note("before: 3 of 3 queries are known by their texts")
    assert note.about("before") == note
    assert note.about("baseline").text == f"baseline: {note.text}"


def test_a_cell_records_whether_it_found_every_relevant_document(tmp_path):
    weir.benchmark("brook-facts", "bm25", ["AP"], out=tmp_path / "deep")
    weir.benchmark("brook-facts", "bm25", ["AP", "R@2"], k=2, out=tmp_path / "cut")
    [deep], [cut] = (list(finished_cells(tmp_path / name)) for name in ("deep", "cut"))
    assert cut.whole is cut.origin.whole is False
    assert deep.whole is (weir.evaluate("brook-facts", deep.run, "R@1000").mean("R@1000") == 1)


RULES = [(own, depth, listed) for own in ("keep", "drop") for depth in (3, 20) for listed in (False, True)]


@pytest.fixture(scope="module")
def ruled(tmp_path_factory):
    """{rule: {system: its cell}} of a collection whose queries are documents, and the folder of each rule."""
    place = tmp_path_factory.mktemp("ruled")
    documents = {f"d{n}": f"word{n} word{n + 1} word{n % 4}" for n in range(16)}
    queries = {f"d{n}": documents[f"d{n}"] for n in range(8)}
    qrels = {q: {q: 1, f"d{n + 1}": 1, f"d{n + 4}": 1, f"d{n + 2}": 0} for n, q in enumerate(queries)}
    candidates = {q: [q, *(f"d{m}" for m in range(n + 3, n + 8))] for n, q in enumerate(queries)}
    cells = {}
    for own, depth, listed in RULES:
        collection = weir.Dataset.of(
            documents, queries, qrels, name="kb", candidates=candidates if listed else None
        )
        out = place / f"{own}{depth}{listed}"
        systems = ["bm25", "bm25(b=0.0)"]
        weir.benchmark(collection, systems, ["R@10", "nDCG@10"], k=depth, drop_self=own == "drop", out=out)
        for folder in out.glob("kb/bm25-*"):
            if list(folder.glob("scores-*.json")):
                record = read_record(folder / "stage.json")
                cells.setdefault((own, depth, listed), {})[record.name] = folder
    return cells


@settings(max_examples=25)
@given(chosen=st.lists(st.tuples(st.sampled_from(RULES), st.sampled_from(("bm25", "bm25(b=0.0)"))),
                       min_size=2, max_size=5, unique=True))  # fmt: skip
def test_cells_by_other_rules_of_a_collection_meet_in_no_statement_unsaid(ruled, tmp_path_factory, chosen):
    """Self-matches kept or left out, few or many documents, candidates or none: refused, apart, or said."""
    (one, name), (other, second) = chosen[:2]
    pair = ruled[one][name], ruled[other][second]
    for ask in (lambda: weir.gate(*pair, measures="R@10"), lambda: weir.diff(*pair, measure="R@10")):
        if one[0] != other[0]:
            with pytest.raises(BadValue, match="self_matches=drop"):
                ask()
            continue
        result = ask()
        notes = " ".join(map(str, (*result.notes(), result)))
        assert ("ranked other documents, or other queries or candidates" in notes) == (one[2] != other[2])
        assert ("looks no deeper" in notes) == (3 in (one[1], other[1]))

    runs = [folder / "run.trec" for folder in pair]
    for ask in (lambda: weir.fuse(runs, "rrf"), lambda: weir.migrate(*runs)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            ask()
        said = " ".join(str(one.message) for one in caught)
        assert ("self-matches were left out" in said) == (one[0] != other[0])
        assert ("ranked the same documents for other queries" in said) == (one[2] != other[2])

    with pytest.raises(
        FormatError, match=r"found rankings of a system; .* compared by naming that folder alone"
    ):
        weir.compare(*pair)

    root = tmp_path_factory.mktemp("joined")
    for rule, system in chosen:
        folder = ruled[rule][system]
        (root / "kb").mkdir(exist_ok=True)
        for part in folder.parent.glob(f"{folder.name.split('-')[0]}*"):
            if not (root / "kb" / part.name).exists():
                shutil.copytree(part, root / "kb" / part.name)
    rows = list(weir.results(root, "R@10"))
    places = {row.dataset for row in rows}
    assert len(places) == len({(own, listed) for (own, _, listed), _ in chosen})
    for listed in (False, True):
        kinds = {own for (own, _, of), _ in chosen if of == listed}
        assert len(kinds) < 2 or sum("self-matches" in place for place in places) >= 2

    # No result is exported over another one.
    cells = by_split(finished_cells(root))
    runs = write_annotated_runs(cells, root / "runs")
    assert len(set(runs)) == len(cells)
    try:
        exported = write_mteb_results(cells, root / "mteb")
    except BadValue:
        assert len({own for (own, *_), _ in chosen}) == 2
    else:
        assert len(set(exported)) == len(cells)


def test_rankings_of_unknown_depth_have_no_note_of_it():
    qrels = judged([1] * 8)
    scores = replace(weir.evaluate(qrels, FIRST, "AP"), origin=Origin())
    assert not weir.compare({"a": scores, "b": scores}).notes()


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """A folder of cells by old and by new judgments, of two splits, and of another collection of the same name."""
    place = tmp_path_factory.mktemp("mixed")
    for root, shift in ((place / "kb", 0), (place / "other" / "kb", 1)):
        (root / "qrels").mkdir(parents=True)
        texts = [(f"d{n}", f"word{n} word{n + 1 + shift} word{n % 4}") for n in range(16)]
        lines = [json.dumps({"_id": name, "text": text}) for name, text in texts]
        (root / "corpus.jsonl").write_text("\n".join(lines) + "\n")
        queries = [(f"q{n}", f"word{n} word{(n + shift) % 4}") for n in range(16)]
        lines = [json.dumps({"_id": name, "text": text}) for name, text in queries]
        (root / "queries.jsonl").write_text("\n".join(lines) + "\n")
        for split, first in (("test", 0), ("dev", 8)):
            rows = [f"q{n}\td{n}\t1" for n in range(first, first + 8)]
            (root / "qrels" / f"{split}.tsv").write_text(
                "\n".join(["query-id\tcorpus-id\tscore", *rows]) + "\n"
            )
    results, kb = place / "results", str(place / "kb")
    weir.benchmark(kb, ["bm25", "rm3"], "nDCG@10", out=results)
    judgments = place / "kb" / "qrels" / "test.tsv"
    judgments.write_text(judgments.read_text().replace("q1\td1", "q1\td2"))
    weir.benchmark(kb, ["bm25(b=0.0)", "bm25(k1=0.0)"], "nDCG@10", out=results)
    weir.benchmark(f"{kb}:dev", ["bm25(b=0.0)", "bm25(k1=0.0)"], "nDCG@10", out=results)
    weir.benchmark(str(place / "other" / "kb"), ["bm25(b=0.0)"], "nDCG@10", out=results)
    weir.benchmark(str(place / "other" / "kb"), ["bm25(k1=0.0)"], "nDCG@10", out=results)
    return results


def test_costs_and_packs_leave_out_by_name_what_old_judgments_have_scored(mixed):
    costs = weir.efficiency(mixed)
    assert {row.quality.system for row in costs} == {"bm25(b=0.0)", "bm25(k1=0.0)"}
    pack = weir.pack_results(mixed, mixed.parent / "pack.zip")
    assert not any(label in ("bm25", "rm3") for _, label in pack.cells)
    for notes in (costs.notes(), pack.notes()):
        left_out = [note.text for note in notes if "other judgments" in note.text]
        assert [text.split(" on kb")[0] for text in left_out] == ["bm25", "rm3"]


def test_rankings_of_two_collections_of_one_name_are_not_told_apart_by_query(mixed):
    runs = mixed.glob("kb/bm25-b=0.0-*/run.trec")
    one, other = sorted(run.parent for run in runs if run.read_text().startswith("q0 "))  # of the split test
    with pytest.raises(BadValue, match="two collections of one name: other documents and other queries"):
        weir.diff(one, other)
    qrels = mixed.parent / "kb" / "qrels" / "test.tsv"
    for ask in (weir.compare, weir.gate, weir.power, weir.diff, weir.why):
        with pytest.raises(BadValue, match="two collections: other documents and other queries"):
            ask(qrels, one, other)
    for command in (["eval", str(qrels)], ["audit", str(qrels)], ["fuse", "rrf", "-o", str(one / "f.trec")]):
        assert main([*command, str(one), str(other)]) == 2
    assert main(["eval", str(qrels), str(mixed / "kb")]) == 2
    record = read_record(one / "stage.json")
    _, queries = (read_record(cell / "stage.json").declared["queries"] for cell in (one, other))
    write_record(one / "stage.json", replace(record, declared={**record.declared, "queries": queries}))
    for path, scored in records_in(one, "scores-*.json"):
        run = read_record(one / "stage.json").stage.key
        write_record(path, replace(scored, declared={**scored.declared, "run": run}))
    with pytest.raises(BadValue, match="two collections of one name: other documents and other judgments"):
        weir.diff(one, other)


def test_effects_on_splits_of_one_collection_each_have_a_p_value_of_their_own(mixed):
    splits = list(dict.fromkeys(row.dataset for row in weir.results(mixed) if ":" in row.dataset))
    shown = str(weir.compare(mixed, datasets=splits, factors=True))
    assert "collections" not in shown.split("shares of the variance", maxsplit=1)[0]
    assert shown.count("verdict") == 2


def test_rankings_that_old_judgments_scored_are_audited_beside_the_others(mixed, recwarn):
    audit = weir.audits(mixed)
    assert not [str(one.message) for one in recwarn if "left out" in str(one.message)]
    assert "rm3" in str(audit)


def test_a_report_of_splits_that_other_measures_scored_ranks_by_those_that_can_be(mixed, tmp_path):
    kb = mixed.parent / "kb"
    for part, measures in ((str(kb), ["nDCG@10", "RR"]), (f"{kb}:dev", ["nDCG@10"])):
        weir.benchmark(part, ["bm25(b=0.0)", "bm25(k1=0.0)"], measures, out=tmp_path)
    page = weir.report(tmp_path, audit=False).to_html()
    assert "RR on kb:test" in page


@pytest.mark.filterwarnings("always::weir.errors.RankingWarning")
def test_scores_by_old_judgments_are_exported_nowhere(mixed, tmp_path, capsys):
    assert main(["data", "export", str(mixed), "--to", "mteb", "-o", str(tmp_path)]) == 0
    said = [line for line in capsys.readouterr().err.splitlines() if "left out" in line]
    assert [line.split(" on kb")[0] for line in said] == ["warning: bm25", "warning: rm3"]
    assert {path.parts[-3] for path in tmp_path.rglob("kb-*.json")} == {
        "weir__bm25-b=0.0",
        "weir__bm25-k1=0.0",
    }


def test_two_collections_of_one_name_are_exported_into_files_of_their_own(mixed, tmp_path):
    assert main(["data", "export", str(mixed), "--to", "mteb", "-o", str(tmp_path), "-s", "bm25(b=0.0)"]) == 0
    names = [path.name for path in tmp_path.rglob("kb*.json")]
    assert len(set(names)) == 2


def collection_of(folder, words):
    """A collection in a folder, whose documents and queries bear the names that those of every other one bear."""
    texts = [f"{word} {extra}" for word in words for extra in ("hill", "river")]
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_text(
        "".join(json.dumps({"_id": f"d{n}", "text": text}) + "\n" for n, text in enumerate(texts))
    )
    (folder / "queries.jsonl").write_text(
        "".join(json.dumps({"_id": f"q{n}", "text": word}) + "\n" for n, word in enumerate(words))
    )
    rows = "".join(f"q{n}\td{2 * n}\t1\n" for n in range(len(words)))
    (folder / "qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\n" + rows)
    return folder


def test_a_cell_of_another_collection_is_no_ranking_of_this_one(tmp_path, capsys):
    """Whichever command or function meets both: names of queries and documents are the same, texts are not."""
    mine = collection_of(tmp_path / "mine", ["stone", "water", "cloud", "grass", "birch", "otter"])
    other = collection_of(tmp_path / "other", ["piano", "flute", "drums", "viola", "organ", "banjo"])
    weir.benchmark([mine, other], ["bm25", "bm25(k1=2)"], "nDCG@10", out=tmp_path / "out")
    first, second = (sorted((tmp_path / "out" / name).glob("*")) for name in ("mine", "other"))
    own, cell = first[0], second[0]
    weir.evaluate(mine, own)
    for run in (cell, cell / "run.trec"):
        asked = [
            lambda run=run: weir.evaluate(mine, run),
            lambda run=run: weir.evaluate(mine / "qrels/test.tsv", run, collection=mine),
            lambda run=run: weir.compare(mine, run, second[1]),
            lambda run=run: weir.power(mine, run, second[1]),
            lambda run=run: weir.diff(mine, run, second[1]),
            lambda run=run: weir.why(mine, run, second[1]),
            lambda run=run: weir.gate(
                mine, run / "run.trec" if run.is_dir() else run, second[1] / "run.trec"
            ),
            lambda run=run: weir.fit_fusion(mine, [run, second[1]], "wsum"),
            lambda run=run: weir.threshold(mine, run),
            lambda run=run: weir.labels.holes(mine, run, human=mine),
            lambda run=run: weir.audits(mine, run),
            lambda run=run: weir.save_baseline(tmp_path / "baseline.tsv", mine, run),
        ]
        for ask in asked:
            with pytest.raises(BadValue, match="another collection than mine"):
                ask()
    assert main(["eval", str(mine), str(own), str(cell)]) == 2
    assert "two collections" in capsys.readouterr().err


ANSWERED = {q: {"a": 2.0, "b": 1.0} for q in QUERIES}
TOGETHER = {
    "compare": lambda run: weir.compare(judged([1] * 8), ANSWERED, run, measures="RR"),
    "diff": lambda run: weir.diff(judged([1] * 8), ANSWERED, run, measure="RR"),
    "funnel": lambda run: weir.funnel_of_rankings(judged([1] * 8), ANSWERED, run),
    "migrate": lambda run: weir.migrate(ANSWERED, run),
    "orders": lambda run: weir.labels.rank_agreement(
        judged([1] * 8), judged([0] * 8), runs={"a": ANSWERED, "b": run}, measure="RR"
    ),
    "abstention": lambda run: weir.abstention(run, weir.evaluate(judged([1] * 8), ANSWERED, "RR")),
}


@pytest.mark.parametrize("ask", TOGETHER.values(), ids=TOGETHER)
def test_rankings_of_other_queries_meet_in_no_statement(ask):
    with pytest.raises(BadValue):
        ask({f"other {q}": ranking for q, ranking in ANSWERED.items()})
    ask(dict(reversed(ANSWERED.items())))


def test_a_migration_says_how_many_queries_each_side_answers():
    few = {q: ANSWERED[q] for q in QUERIES[:3]}
    said = [note.text for note in weir.migrate(ANSWERED, few).notes()]
    assert said == ["new: 3 of 8 queries are answered, and all documents of the others count as gone or new"]
    assert not weir.migrate(ANSWERED, ANSWERED).notes()
    others = {"another": {"a": 1, "b": 0}, "q0": {"z": 1}}
    said = [note.text for note in weir.migrate(ANSWERED, SECOND, labelled=[others]).notes()]
    assert said[0] == "2 of 3 labels are of queries that neither ranking answers"
    assert said[1].startswith("1 of 3 labels is of documents that weigh the same")


@settings(max_examples=10)
@given(numbers=st.lists(st.integers(0, 1), min_size=2, max_size=2))
def test_scores_that_different_algorithms_computed_are_told_wherever_they_meet(
    ruled, tmp_path_factory, numbers
):
    root = tmp_path_factory.mktemp("algorithms") / "kb"
    root.mkdir()
    pair = []
    for number, (_, folder) in zip(numbers, sorted(ruled["keep", 20, False].items()), strict=True):
        pair.append(shutil.copytree(folder, root / folder.name))
        for path, record in records_in(pair[-1], "scores-*.json"):
            made = {**record.declared, "measures": dict.fromkeys(record.declared["measures"], number)}
            write_record(path, replace(record, declared=made))
    for ask in (
        lambda: weir.gate(*pair, measures="R@10"),
        lambda: weir.compare(root.parent, measures="R@10"),
        lambda: weir.results(root.parent),
    ):
        told = [note.text for note in ask().notes() if "different algorithms" in note.text]
        assert any("measure R@10" in text for text in told) == (numbers[0] != numbers[1])


def test_a_report_says_that_systems_were_asked_for_fewer_documents_than_a_measure_looks_at(ruled, tmp_path):
    for rule, system in ((("keep", 20, False), "bm25"), (("keep", 3, False), "bm25(b=0.0)")):
        folder = ruled[rule][system]
        shutil.copytree(folder, tmp_path / "results" / "kb" / folder.name)
    page, tables = tmp_path / "page.html", tmp_path / "tables"
    wanted = ["report", tmp_path / "results", "-m", "R@10", "--no-audit", "-o", page, "--tables", tables]
    assert main(list(map(str, wanted))) == 0
    said = "k=3: rankings have at most 3 documents, and R@10 looks no deeper"
    assert said in page.read_text(encoding="utf-8")
    assert said in (tables / "scores.tex").read_text(encoding="utf-8")


def test_datasets_that_groups_or_effects_cannot_use_are_left_out_by_name(tmp_path):
    qrels = {"one": {"q1": {"d1": 1}}, "two": {f"q{n}": {"d1": 1} for n in range(6)}}
    qrels["other"] = {f"p{n}": {"d2": 1} for n in range(6)}
    for name, judgments in qrels.items():
        documents = {"d1": "egg ham", "d2": "ham rice ham"}
        collection = weir.Dataset.of(documents, dict.fromkeys(judgments, "egg ham"), judgments, name=name)
        weir.benchmark(collection, ["bm25(b=0.0)", "bm25(b=1.0)"], "RR", out=tmp_path)
    groups = {f"q{n}": "even" if n % 2 == 0 else "odd" for n in range(6)}
    by = weir.compare(tmp_path, measures="RR", by=groups)
    assert {one.dataset for one in by} == {"two"}
    left = [note.text for note in by.notes() if "no group has two of its queries" in note.text]
    assert [text.partition(" is")[0] for text in left] == ["one", "other"]
    studies = weir.compare(tmp_path, measures="RR", factors=True)
    assert "left out, having one query: one" in str(studies)
    with pytest.raises(BadValue, match="no group has two of its queries"):
        weir.compare(tmp_path, measures="RR", by=groups, datasets=["other"])


def test_a_report_calls_nobody_the_fastest_beside_one_of_another_measure_or_depth(tmp_path):
    for k, measure, system in ((9, "nDCG@10", "bm25"), (9, "nDCG@10", "rm3"), (9, "RR", "bm25(k1=3.0)")):
        weir.benchmark("brook-facts", system, measure, k=k, out=tmp_path)
    for path in tmp_path.glob("*/*/stage.json"):
        record = read_record(path)
        if record.kind == "run" and "bm25(k1=3.0)" not in record.name:
            times = {"p50": 9.0, "p95": 9.0, "p99": 9.0, "mean": 9.0, "queries": 20}
            write_record(path, replace(record, facts={**record.facts, "single_query_ms": times}))
    said = [
        line for line in weir.report(tmp_path, audit=False).to_markdown().splitlines() if "fastest" in line
    ]
    assert said
    assert all("bm25(k1=3.0) is the fastest" in line for line in said)
    weir.benchmark("brook-facts", "bm25(k1=3.0)", "nDCG@10", k=3, out=tmp_path)
    weir.benchmark("brook-facts", "bm25(b=0.0)", "nDCG@10", k=3, out=tmp_path)
    assert "the fastest" not in weir.report(tmp_path, audit=False).to_html()


@pytest.mark.parametrize("measure", ["gmAP", "Hole@3", "Judged@10"])
def test_a_threshold_takes_no_measure_by_which_silence_would_be_best(measure):
    qrels = {f"q{n}": {"a": int(n < 6)} for n in range(12)}
    with pytest.raises(BadValue, match="is not the worst of it"):
        weir.threshold(qrels, {q: {"a": float(n)} for n, q in enumerate(qrels)}, measure)


def test_a_plan_says_that_differences_of_gmap_are_of_logarithms():
    qrels = judged([1] * 8)
    assert "of logarithms, as are all effects" in str(weir.power(qrels, FIRST, SECOND, "gmAP"))
    assert "logarithms" not in str(weir.power(qrels, FIRST, SECOND, "AP"))


def test_costs_of_other_depths_make_no_system_the_worse(tmp_path):
    for k in (3, 50):
        weir.benchmark("brook-facts", ["bm25", "bm25(b=0.0)"], "RR", k=k, out=tmp_path)
    costs = weir.efficiency(tmp_path, "RR")
    assert {one.depth for one in costs} == {3, 50}
    for depth in (3, 50):
        assert any(one.best for one in costs if one.depth == depth)
    assert "on the collection, to the same depth, is as good" in str(costs.notes()[0])


def test_a_report_counts_splits_of_a_collection_once(mixed, tmp_path):
    kb = mixed.parent / "kb"
    for place in (str(kb), f"{kb}:dev", "brook-facts"):
        weir.benchmark(place, ["bm25(b=0.0)", "bm25(k1=0.0)"], "nDCG@10", out=tmp_path / "results")
    page = weir.report(tmp_path / "results", audit=False).to_html()
    assert "Two systems on two collections" in page
    assert "Mean over 2 collections, where splits of one, and members of one group, count together" in page
    assert "3 collections" not in page


def test_collections_whose_names_make_one_folder_are_two(tmp_path):
    """As "KB" and "kb" do where case does not count."""
    documents, asked = {"d1": "egg ham", "d2": "ham rice"}, dict.fromkeys(QUERIES, "egg ham")
    for name, relevant in (("k b", "d1"), ("k-b", "d2")):
        collection = weir.Dataset.of(documents, asked, {q: {relevant: 1} for q in QUERIES}, name=name)
        weir.benchmark(collection, ["bm25(b=0.0)", "bm25(k1=3.0)"], "RR", out=tmp_path)
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == ["k-b"]
    means = {(row.dataset, row.system): row.mean for row in weir.results(tmp_path, "RR")}
    assert means == {
        (d, s): m for d, m in (("k b", 1.0), ("k-b", 0.5)) for s in ("bm25(b=0.0)", "bm25(k1=3.0)")
    }
    assert {one.dataset for one in weir.compare(tmp_path)} == {"k b", "k-b", "2 datasets"}
    with pytest.raises(BadValue, match=r"splits k.b:test, k.b:test"):
        weir.why(next(tmp_path.glob("k-b/bm25-b*")), next(tmp_path.glob("k-b/bm25-k1*")))


def told(result):
    return "; ".join(note.text for note in result.notes())


LOOKS = (("caf\u00e9", "cafe\u0301"), ("shop", "shop "), ("sh op", "sh  op"))


@pytest.mark.parametrize(("first", "second"), LOOKS)
def test_systems_whose_names_only_look_alike_are_told(tmp_path, first, second):
    said = f"{first!a}, {second!a} look alike"
    ranked = {first: FIRST, second: SECOND}
    assert said in told(weir.compare(judged([1] * 8), ranked, measures="RR"))
    for name, run in ranked.items():
        (tmp_path / f"{name}.trec").write_text(
            "".join(f"{q} Q0 {d} 0 {s} x\n" for q, row in run.items() for d, s in row.items()),
            encoding="utf-8",
        )
    files = [tmp_path / f"{name}.trec" for name in ranked]
    assert said in told(weir.compare(judged([1] * 8), *files, measures="RR"))
    collection = weir.Dataset.of({"a": "egg"}, dict.fromkeys(QUERIES, "egg"), judged([1] * 8))
    for name in ranked:
        weir.benchmark(
            collection, {name: lambda queries, k: {q: ["a"] for q in queries}}, "RR", out=tmp_path / "r"
        )
    for shown in (weir.results(tmp_path / "r"), weir.compare(tmp_path / "r")):
        assert said in told(shown)
    assert "look alike" not in str(
        weir.compare(judged([1] * 8), {"Shop": FIRST, "shop": SECOND}, measures="RR").notes()
    )


LONG = {q: {f"n{n}": 30.0 - n for n in range(20)} | {"a": 40.0, "b": 5.0} for q in QUERIES}
SHORT = {q: dict(sorted(row.items(), key=lambda pair: -pair[1])[:3]) for q, row in LONG.items()}
FEW = {q: LONG[q] for q in QUERIES[:3]}
MIXED = {
    "compare": lambda qrels, run: weir.compare(qrels, LONG, run, measures="P@20"),
    "fitness": lambda qrels, run: weir.fitness(*filed(qrels, LONG, run), measures=["P@20"]),
    "order": lambda qrels, run: weir.labels.rank_agreement(qrels, qrels, runs={"a": LONG, "b": run}, measure="P@20"),
    "holes": lambda qrels, run: weir.labels.holes(qrels, LONG, run, human={q: {"n3": 1} for q in QUERIES}, measure="P@20"),
    "relabel": lambda qrels, run: weir.labels.relabel(
        weir.Qrels.of({q: {"n3": 1} for q in QUERIES}), *filed(qrels, LONG, run), measure="P@20"
    ),
    "estimate": lambda qrels, run: weir.labels.estimate(
        {q: qrels[q] for q in QUERIES[:4]}, qrels, LONG, run, measure="P@20"
    ),
    "migrate": lambda qrels, run: weir.migrate(LONG, run, weir.MigrationRules("P@20")),
}  # fmt: skip


def filed(qrels, *runs):
    """Paths of judgments and runs, as files of a folder of their own."""
    place = Path(tempfile.mkdtemp())
    weir.Qrels.of(qrels).save(place / "qrels.tsv")
    for n, run in enumerate(runs):
        weir.Run.of(run).save(place / f"run{n}.trec")
    return place / "qrels.tsv", *(place / f"run{n}.trec" for n in range(len(runs)))


@pytest.mark.parametrize("ask", MIXED.values(), ids=MIXED)
def test_rankings_of_few_queries_and_of_other_depths_are_told_wherever_they_meet(ask):
    qrels = judged([1] * 8)
    assert "answered" in told(ask(qrels, FEW))
    assert "P@20 looks deeper than the 3 documents" in told(ask(qrels, SHORT))
    same = told(ask(qrels, {q: {**row, "a": 1.0} for q, row in LONG.items()}))
    assert "deeper" not in same
    assert "answered" not in same


def test_a_stage_that_leaves_queries_unanswered_is_told():
    qrels = judged([1] * 8)
    assert "3 of 8 judged queries are answered" in told(weir.funnel_of_rankings(qrels, LONG, FEW))
    assert not weir.funnel_of_rankings(qrels, LONG, SHORT).notes()


def test_a_migration_between_identifiers_of_two_collections_is_told():
    others = {q: {f"x{doc}": score for doc, score in row.items()} for q, row in LONG.items()}
    assert "share no document" in told(weir.migrate(LONG, others))


def test_a_fusion_of_identifiers_of_two_collections_is_told(tmp_path, capsys):
    others = {q: {f"x{doc}": score for doc, score in row.items()} for q, row in LONG.items()}
    files = [str(path) for path in filed(judged([1] * 8), LONG, SHORT, others)[1:]]
    assert main(["fuse", "rrf", *files, "-o", str(tmp_path / "fused.trec")]) == 0
    said = capsys.readouterr().err
    assert said.count("shares no document with the others") == 1
    assert "run2.trec shares" in said
    with pytest.warns(RankingWarning, match="ranking 3 .* shares no document with the others"):
        weir.fuse([LONG, SHORT, others])


def test_labels_of_other_queries_are_told(tmp_path):
    qrels = judged([1] * 8)
    human = {q: {"n3": 1} for q in [*QUERIES, "elsewhere"]}
    said = told(weir.labels.holes(qrels, LONG, SHORT, human=human, measure="P@20"))
    assert "1 of 9 labels is of queries without judgments here" in said
    with pytest.raises(BadValue, match="`labels` add to what varies between runs"):
        weir.fitness(*filed(qrels, LONG, SHORT), labels=[filed(qrels)[0]])


def test_rankings_of_other_queries_or_documents_than_the_collection_named_are_told(mixed, tmp_path):
    """The same documents asked for another split, and another version of the documents asked the same."""
    one = {f"d{n}": f"egg {n}" for n in range(5)}
    asked = {q: f"egg {n}" for n, q in enumerate(QUERIES)}
    qrels = {q: {"d1": 1} for q in QUERIES}
    kinds = {
        "other queries": weir.Dataset.of(
            one, {q: f"{text} ham" for q, text in asked.items()}, qrels, name="kb"
        ),
        "other documents": weir.Dataset.of({**one, "d9": "ham"}, asked, qrels, name="kb"),
    }
    own = weir.Dataset.of(one, asked, qrels, name="kb")
    weir.benchmark(own, "bm25", "RR", out=tmp_path)
    [run] = tmp_path.glob("kb/bm25-*/run.trec")
    for said, collection in kinds.items():
        with pytest.warns(RankingWarning, match=said):
            weir.evaluate(collection, run, "RR")
    weir.evaluate(own, run, "RR")


def test_a_split_that_is_judged_as_another_one_keeps_its_own_results(tmp_path):
    """Judgments that were replaced, and kept as a split of their own."""
    root = tmp_path / "kb"
    (root / "qrels").mkdir(parents=True)
    for name, rows in (("corpus", {"d1": "egg", "d2": "ham"}), ("queries", dict.fromkeys(QUERIES, "egg"))):
        lines = [json.dumps({"_id": one, "text": text}) for one, text in rows.items()]
        (root / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")

    def judge(split, relevant):
        rows = [f"{q}\t{relevant}\t1" for q in QUERIES]
        (root / "qrels" / f"{split}.tsv").write_text(
            "\n".join(["query-id\tcorpus-id\tscore", *rows]) + "\n", "utf-8"
        )
        weir.benchmark(f"{root}:{split}", ["bm25(b=0.0)", "bm25(k1=3.0)"], "RR", out=tmp_path / "results")

    judge("test", "d1")
    judge("old", "d1")
    judge("test", "d2")
    found = {(row.dataset, row.mean) for row in weir.results(tmp_path / "results", "RR")}
    assert found == {("kb:old", 1.0), ("kb:test", 0.0)}
    assert {one.dataset for one in weir.compare(tmp_path / "results")} == {"kb:old", "kb:test"}
    assert weir.verify(tmp_path / "results").outcome == "pass"


@settings(max_examples=25)
@given(
    copies=st.lists(st.lists(st.booleans(), min_size=1, max_size=3).filter(any), min_size=1, max_size=3),
    measured=st.data(),
)
def test_a_collection_under_several_names_counts_once(tmp_path_factory, copies, measured):
    """What is said over datasets is the same with and without the copies, of which some lack a system; a note names
    them."""
    root, single = tmp_path_factory.mktemp("copied"), tmp_path_factory.mktemp("single")
    names = [
        {f"c{n}{letter}": whole for letter, whole in zip("abc", of, strict=False)}
        for n, of in enumerate(copies)
    ]
    counts = [next(name for name, whole in of.items() if whole) for of in names]
    ranks = st.lists(st.integers(1, 4), min_size=4, max_size=4)
    for n, of in enumerate(names):
        qrels = {f"c{n}q{m}": {"d1": 1} for m in range(4)}
        for system in ("s1", "s2"):
            places = zip(qrels, measured.draw(ranks), strict=True)
            run = {
                q: {"d1" if at == rank else f"n{at}": 9.0 - at for at in range(1, 5)} for q, rank in places
            }
            for name in (name for name, whole in of.items() if whole or system == "s1"):
                manifest = copy.deepcopy(MANIFEST) | {"dataset": name, "queries": f"of-{n}"}
                manifest["system"]["system"] = system
                for folder in (root, *[single] * (name in counts)):
                    write_cell(folder / name / f"{system}-{n:010x}", run, manifest, ("AP",), qrels)

    whole, alone = (
        [c for c in weir.compare(folder, baseline="s1") if c.unit == "datasets"] for folder in (root, single)
    )
    assert len(whole) == len(alone) == (len(names) > 1)
    for one, other in zip(whole, alone, strict=True):
        assert (one.dataset, one.count, one.pairs) == (other.dataset, other.count, other.pairs)
        assert (one.standings, one.tallies) == (other.standings, other.tallies)
    means = [
        [(cell.mean, cell.letters) for line in grid.cells for cell in line[-1:]] * grid.averaged
        for folder in (root, single)
        for grid in grid_tables(weir.results(folder, "AP"))[:1]
    ]
    assert means[0] == means[1]
    reports = [Study.of(folder) for folder in (root, single)]
    assert [sorted(one.units) for one in reports] == [counts] * 2

    said = [note for note in map(str, weir.compare(root).notes()) if "the same queries and judgments" in note]
    assert len(said) == sum(sum(of) > 1 for of in copies)


def test_which_of_equal_datasets_counts_is_one_choice_for_every_measure_and_statement(tmp_path):
    """The choice that the note names, also where it lacks a measure; scores by former judgments make no equals."""

    def cell(name, system, number, measures, first, queries, grades=None):
        manifest = copy.deepcopy(MANIFEST) | {"dataset": name, "queries": queries}
        manifest["system"]["system"] = system
        manifest["environment"]["when"] = f"2026-01-{10 + number:02}"
        qrels = grades or {f"{queries}{n}": {"d1": 1} for n in range(3)}
        run = {q: {d: 3.0 - n for n, d in enumerate([*["x"] * (not first), "d1"])} for q in qrels}
        folder = write_cell(tmp_path / name / f"{system}-{number:010x}", run, manifest, measures, qrels)
        for path, record in records_in(folder, "scores-*.json"):
            write_record(path, replace(record, declared={**record.declared, "qrels": str(qrels)}))

    number = 0
    for name, systems, queries in (("one", 3, "a"), ("two", 2, "a"), ("third", 3, "c"), ("fourth", 3, "d")):
        for system in range(systems):
            number += 1
            measures = ("AP",) if name == "one" else ("AP", "R@1")
            cell(name, f"s{system}", number, measures, name in ("one", "third"), queries)
    # What "third" was scored by at first is what "fifth" is scored by: these are no equals any more.
    cell("third", "s9", 0, ("AP",), True, "c", {f"c{n}": {"d1": 1, "x": 1} for n in range(3)})
    cell("fifth", "s0", 90, ("AP", "R@1"), False, "c", {f"c{n}": {"d1": 1, "x": 1} for n in range(3)})

    for measures in ((), ("AP",), ("R@1",)):
        shown = weir.results(tmp_path, measures)
        [note] = [str(note) for note in shown.notes() if "same queries and judgments" in str(note)]
        assert "one and two have" in note
        assert "one alone counts" in note
        grids = {grid.measure: grid for grid in grid_tables(shown.items)}
        for measure, names in (
            ("AP", ["one", "third", "fourth", "fifth"]),
            ("R@1", ["third", "fourth", "fifth"]),
        ):
            if measure in (measures or (measure,)):
                of = {row.dataset: row.mean for row in shown if (row.system, row.measure) == ("s0", measure)}
                assert grids[measure].datasets[-1] == f"mean of {len(names)} datasets"
                assert grids[measure].cells[0][-1].mean == pytest.approx(
                    np.mean([of[name] for name in names])
                )
    counts = {"AP": 3, "R@1": 2}  # "fifth" has one system
    for comparisons in (weir.compare(tmp_path), Study.of(tmp_path).comparisons):
        assert {one.measure: one.count for one in comparisons if one.unit == "datasets"} == counts


def test_copies_of_a_run_file_in_one_folder_are_said(tmp_path, recwarn):
    """Of the same bytes, one result stands for both, whoever was first and in which run; of other bytes and the same
    rankings, both are there and a note says so."""
    root, at = collection_of(tmp_path / "kb", ["egg", "ham", "salt", "egg ham"]), tmp_path / "results"
    rows = [f"q{q} Q0 d{d} {n} {9 - n} x" for q in range(2) for n, d in enumerate((3, 1 + q), 1)]
    first, copied, other = (tmp_path / f"{name}.trec" for name in ("first", "copied", "other"))
    for path, tag in ((first, "x"), (copied, "x"), (other, "y")):
        path.write_text("\n".join(row[:-1] + tag for row in rows) + "\n")

    def run(*files, measures="RR"):
        recwarn.clear()
        shown = weir.benchmark(root, [f'run("{file}")' for file in files], measures, out=at)
        said = [str(one.message) for one in recwarn if "one result stands for both" in str(one.message)]
        return {row.system for row in shown.rows}, said

    name = f'run("{first}")'
    assert run(first, copied)[0] == {name}
    systems, [said] = run(copied, measures="AP")
    assert systems == {name}
    assert said.endswith(f"as {name}")
    assert run(first)[1] == []
    assert {row.called for row in weir.results(at)} == {"first"}
    assert not [note for note in map(str, weir.results(at).notes()) if "missing" in note or "exactly" in note]
    run(other)
    for shown in (weir.results(at), weir.compare(at)):
        [note] = [note for note in map(str, shown.notes()) if "score by score" in note]
        assert note == "note: other has the rankings of first, score by score: one system counts as two on kb"


@pytest.mark.parametrize(
    "how", ["whole", "a member was changed", "a member has two splits", "two members are equal"]
)
def test_a_group_stands_for_its_members_in_every_statement_or_in_none(tmp_path, how):
    """Where each member is one dataset that counts; splits of a member count once in either case."""
    group = weir.datasets.catalogue.group("birco").members
    cells = [(name, "test", n) for n, name in enumerate((*group, "extra"))]
    cells += [(group[1], "dev", 9)] * (how == "a member has two splits")
    older = [(group[1], "test", 9)] * (how == "a member was changed")
    for name, split, n in cells + older:
        equal = how == "two members are equal" and n == 1
        queries = f"{group[0] if equal else name}-{split}"
        qrels = {f"{split}{m}": {"d1": 1} for m in range(4)}
        documents = "before" if (name, split, n) in older else "aa"
        for system in range(2):
            manifest = copy.deepcopy(MANIFEST) | {"dataset": name, "split": split, "queries": queries}
            manifest |= {"fingerprint": documents}
            manifest["environment"]["when"] = "2025-12-01" if documents == "before" else "2026-01-01"
            manifest["system"]["system"] = f"s{system}"
            run = {q: {"d1": 1.0} | {f"n{at}": 9.0 for at in range(n + system)} for q in qrels}
            folder = write_cell(tmp_path / name / f"s{system}-{n:09x}{system}", run, manifest, ("AP",), qrels)
            [(path, record)] = records_in(noted(folder, collection=f"../{name}"), "scores-*.json")
            write_record(path, replace(record, declared={**record.declared, "qrels": split}))
    values = {(name, split): 1 / (1 + n) for name, split, n in cells}
    splits = {name: [values[of] for of in values if of[0] == name] for name, *_ in cells}
    if how == "two members are equal":
        del splits[group[1]]
    means = {name: float(np.mean(of)) for name, of in splits.items()}
    whole = how in ("whole", "a member was changed")
    if whole:
        means = {"birco": float(np.mean([means[name] for name in group])), "extra": means["extra"]}
    [grid] = [grid for grid in grid_tables(weir.results(tmp_path, "AP").items) if grid.measure == "AP"]
    assert grid.datasets[-1] == f"mean of {len(means)} datasets"
    assert ("birco" in grid.datasets) == whole
    assert grid.cells[0][-1].mean == pytest.approx(np.mean(list(means.values())), abs=1e-12)
    for comparisons in (weir.compare(tmp_path), Study.of(tmp_path).comparisons):
        [across] = [one for one in comparisons if one.unit == "datasets"]
        assert across.count == len(means)
        [first] = [one.mean for one in across.standings if one.system == "s0"]
        assert first == pytest.approx(grid.cells[0][-1].mean, abs=1e-12)


def test_a_dataset_that_lacks_the_baseline_by_a_measure_is_said_to_be_left_out(tmp_path, capsys):
    """Also in a report, which compares many systems with one: its mean is over fewer splits than that of the others."""
    systems = ["bm25", *(f"s{n}" for n in range(6))]
    places = [(name, split) for name in ("kb", "shop") for split in ("test", "dev")]
    for n, ((name, split), system) in enumerate(product(places, systems)):
        manifest = copy.deepcopy(MANIFEST) | {"dataset": name, "split": split, "queries": f"{name}-{split}"}
        manifest["system"]["system"] = system
        qrels = {f"{split}{m}": {"d1": 1} for m in range(4)}
        without = (name, split, system) == ("kb", "dev", "bm25") or system == "s5"
        run, measures = {q: {"d1": 1.0} for q in qrels}, ("R@1",) if without else ("AP", "R@1")
        folder = write_cell(tmp_path / name / f"{system}-{n:010x}", run, manifest, measures, qrels)
        for path, record in records_in(folder, "scores-*.json"):
            write_record(path, replace(record, declared={**record.declared, "qrels": split}))
    said = "kb:dev is left out of AP: it has no bm25, the baseline"
    assert said in [note.text for note in weir.compare(tmp_path, baseline="bm25").notes()]
    assert said in Study.of(tmp_path).remarks
    assert main(["report", str(tmp_path), "-q", "--markdown", "--no-audit", "-m", "AP"]) == 0
    text = capsys.readouterr().out
    assert said.replace(" of AP", "") in text
    assert "s5 has no score by AP; bm25 was asked only those of kb:test, shop:test and shop:dev" in text


def test_rankings_of_another_size_than_recorded_are_told(tmp_path, capsys):
    folder = write_cell(tmp_path / "mine" / "bm25-0000000000")
    write_cell(tmp_path / "mine" / "rm3-0000000001", manifest=changed("system.system", "rm3"))
    shown = weir.results, weir.compare
    assert not [note for show in shown for note in show(tmp_path).notes() if "recorded" in str(note)]
    with (folder / "run.trec").open("a") as file:
        file.write("q1 Q0 d7 9 0.5 x\n")
    for show in shown:
        [note] = [note for note in map(str, show(tmp_path).notes()) if "recorded" in note]
        assert "run.trec: changed since it was scored" in note
    other, qrels = tmp_path / "mine" / "rm3-0000000001", tmp_path / "j.qrels"
    qrels.write_text("q1 0 d1 1\nq2 0 d2 1\n")
    for words in (
        ["eval", qrels, folder],
        ["diff", qrels, folder, other],
        ["why", folder, other, "-m", "nDCG@10", "--qrels", qrels],
        ["audit", qrels, folder, other],
        ["fuse", "rrf", folder, other, "-o", tmp_path / "fused.trec"],
        ["report", tmp_path],
    ):
        main([*map(str, words)])
        assert capsys.readouterr().err.count("run.trec: changed since it was scored") == 1, words


def test_a_note_on_repeated_datasets_is_of_compared_ones(tmp_path):
    for n, (name, systems) in enumerate({"mine": ("bm25",), "same": ("bm25", "rm3")}.items()):
        for m, system in enumerate(systems):
            manifest = changed("system.system", system) | {"dataset": name, "queries": "of-mine"}
            write_cell(tmp_path / name / f"{system}-00000000{n}{m}", manifest=manifest)
    notes = [str(note) for note in weir.compare(tmp_path).notes()]
    assert any("mine is left out" in note for note in notes)
    assert not any("have the same queries and judgments" in note for note in notes)
    shown = [str(note) for note in weir.results(tmp_path).notes()]
    assert any("mine and same have the same queries and judgments" in note for note in shown)


@pytest.mark.parametrize("changed_run", [False, True])
def test_a_folder_copied_within_results_counts_once_and_other_rankings_of_one_key_stand_apart(
    tmp_path, changed_run
):
    run = {"q1": {"d2": 2.0, "d1": 1.0}, "q2": {"d2": 1.0}}
    write_cell(tmp_path / "mine" / "bm25-0000000000", run)
    write_cell(tmp_path / "copy" / "bm25-0000000000", run | {"q2": {"d3": 1.0}} if changed_run else run)
    if not changed_run:
        with pytest.warns(LossWarning, match="copy/bm25-0000000000: a copy of"):
            assert [row.system for row in weir.results(tmp_path, "AP")] == ["bm25"]
        return
    results = weir.results(tmp_path, "AP")
    assert {row.system for row in results} == {"bm25 #mine", "bm25 #copy"}
    assert any("bm25 #mine differ in rankings, of equal settings" in str(note) for note in results.notes())


@settings(max_examples=60)
@given(st.lists(st.sets(st.integers(0, 12)), min_size=1, max_size=7))
def test_queries_that_datasets_share_are_counted_for_each_pair(members):
    """Whichever queries the datasets have, the sentence tells the pairs and how many they share."""
    marks = {f"d{n}": sorted(f"{q:012x}" for q in of) for n, of in enumerate(members)}
    pairs = {(a, b): len(set(marks[a]) & set(marks[b])) for a, b in combinations(marks, 2)}
    shared = {pair: count for pair, count in pairs.items() if count}
    said = shared_notes(marks)
    assert len(said) == bool(shared)
    for sentence in said:
        named = sentence.count(" are in ")
        assert named == min(3, len(shared))
        assert (f"and {len(shared) - 3} more pairs" in sentence) == (len(shared) > 3)
        most = max(shared.values())
        assert f"all {most} of " in sentence or f": {most} of " in sentence


@settings(max_examples=10)
@given(st.integers(MARKED, 3 * MARKED), st.integers(100, 3 * MARKED))
def test_of_many_queries_some_hashes_are_kept_and_the_count_is_a_lower_bound(whole, part):
    """Datasets with more queries than hashes are kept of keep the same ones of queries that they share."""
    judged = [(f"query {n}", {"d": 1}) for n in range(whole)]
    marks = {"whole": query_marks(judged), "part": query_marks(judged[:part])}
    (said,) = shared_notes(marks)
    count = int(re.search(r"at least ([\d,]+) of ", said)[1].replace(",", ""))
    kept = min(part, whole, MARKED)
    assert 0 < count <= kept == len(marks["part"])
    assert len(marks["whole"]) == MARKED


@pytest.mark.parametrize("judged_alike", [True, False])
def test_a_mean_over_collections_that_hold_each_other_says_so_wherever_it_stands(tmp_path, judged_alike):
    docs = {f"d{n}": f"word{n} and word{n + 1}" for n in range(12)}
    queries = {f"q{n}": f"word{n}" for n in range(8)}
    grades = {q: {f"d{n}": 1} for n, q in enumerate(queries)}
    part = {f"p{n}": queries[f"q{n}"] for n in range(5)}  # by other ids: the texts are the queries
    of_part = {p: grades[f"q{n}"] if judged_alike else {f"d{n + 2}": 1} for n, p in enumerate(part)}
    collections = {"whole": (docs, queries, grades), "part": (docs, part, of_part)}
    table = weir.benchmark(collections, ["bm25", "bm25(b=0.1)"], ["nDCG@10"], out=tmp_path / "res")
    said = "a mean over datasets counts queries of equal text and judgments twice: all 5 of part are in whole"
    for shown in (weir.results(tmp_path / "res"), weir.compare(tmp_path / "res"), table):
        assert [note.text for note in shown.notes()].count(said) == judged_alike
    assert weir.report(tmp_path / "res", audit=False).to_html().count(said) == judged_alike
    one = weir.results(tmp_path / "res", datasets=["part"])
    assert said not in [note.text for note in one.notes()]
