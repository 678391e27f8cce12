"""A cut at k that equal scores cross is seen, said, and undone where the index is there."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weir
from weir.core.judged import Judged
from weir.experiment.experiment import Experiment
from weir.experiment.results import cell_notes, finished_cells
from weir.experiment.ties_at_cut import with_ties_beyond
from weir.files.runs import read_run
from weir.stats.score_rows import system_notes
from weir.systems import BM25

WORDS = ("weir", "dam", "river")
texts = st.lists(st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join), min_size=4, max_size=30)


def collection(at: Path, documents: list[str]) -> Path:
    at.mkdir(exist_ok=True)
    corpus = [{"_id": f"d{n}", "text": text} for n, text in enumerate(documents)]
    queries = [{"_id": f"q{n}", "text": word} for n, word in enumerate(WORDS)]
    for name, lines in (("corpus", corpus), ("queries", queries)):
        (at / f"{name}.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    judged = "".join(f"q{n} 0 d{d} 1\n" for n in range(len(WORDS)) for d in range(0, len(documents), 3))
    (at / "qrels.txt").write_text(judged, encoding="utf-8")
    return at


@given(texts, st.integers(1, 12))
@settings(max_examples=8)
def test_the_record_counts_what_a_deeper_search_shows_and_finds_it(documents, k):
    with tempfile.TemporaryDirectory() as name:
        data = collection(Path(name) / "c", documents)
        dataset = weir.load(data)
        Experiment((data,), ("bm25", "rrf(bm25, rm3)"), ("R@10",), k).execute(Path(name) / "r")
        cells = {cell.system: cell for cell in finished_cells(Path(name) / "r")}
        for system, cell in cells.items():
            whole = weir.parse_system(system).index(dataset.corpus).search(dataset.queries, len(documents))
            assert cell.tied_beyond == int(whole.tied_beyond(k).sum())
            said = f"at rank {k}, is tied in {cell.tied_beyond} quer"
            assert any(said in note.text for note in cell_notes([cell])) == (cell.tied_beyond > 0 and k <= 10)
            assert read_run(cell.run).to_dict() == {q: r for q, r in whole.top(k).to_dict().items() if r}
        whole = BM25().index(dataset.corpus).search(dataset.queries, len(documents))
        found = with_ties_beyond(cells["bm25"], dataset, read_run(cells["bm25"].run))
        assert found is not None
        for query, ranking in found.to_dict().items():
            scores = whole.to_dict()[query]
            last = sorted(scores.values(), reverse=True)[:k][-1]
            assert ranking == {d: s for d, s in scores.items() if s >= last}


rankings = st.lists(st.lists(st.integers(0, 3), max_size=5), min_size=1, max_size=6)


@given(rankings)
@settings(max_examples=100)
def test_whatever_holds_the_rankings_sees_ties_at_their_end(given_scores):
    run = {
        f"q{n}": {f"d{d}": float(s) for d, s in enumerate(scores)}
        for n, scores in enumerate(given_scores)
        if scores
    }
    qrels = {f"q{n}": {"d0": 1} for n in range(len(given_scores))}
    longest = max(map(len, given_scores))
    full = [sorted(scores) for scores in given_scores if len(scores) == longest]
    answered = sum(map(bool, given_scores))
    known = longest and len(full) >= max(2, answered / 2)
    expected = sum(len(s) > 1 and s[0] == s[1] for s in full) if known else 0
    judged = Judged.of(weir.Run.of(run), weir.Qrels.of(qrels))
    assert judged.cut_in_ties()[1] == expected
    if not run:
        return
    said = [note for note in weir.evaluate(qrels, run, ["AP"]).notes() if "the last document" in note.text]
    assert [f"tied in {expected} quer" in note.text for note in said] == [True] * bool(expected)
    with tempfile.TemporaryDirectory() as name:
        lines = [f"{q} Q0 {d} 1 {s} t\n" for q, docs in run.items() for d, s in docs.items()]
        (Path(name) / "r.trec").write_text("".join(lines), encoding="utf-8")
        of_file = weir.evaluate(qrels, Path(name) / "r.trec", ["AP"])
        assert [n for n in of_file.notes() if "the last document" in n.text] == said


@pytest.mark.parametrize(
    ("measure", "said"), [("P@2", False), ("P@3", True), ("AP", True), ("nDCG@10", True)]
)
def test_only_measures_that_look_as_deep_as_the_cut_are_noted(measure, said):
    run = {q: {"d1": 3.0, "d2": 2.0, "d3": 2.0} for q in ("q1", "q2")}
    notes = weir.evaluate({"q1": {"d1": 1}, "q2": {"d1": 1}}, run, [measure]).notes()
    assert any("at rank 3, is tied in 2 queries" in note.text for note in notes) == said


@pytest.mark.parametrize(("k", "seen"), [(2, 3), (3, None), (9, None)])
def test_what_follows_a_file_that_was_cut_is_not_seen(tmp_path, k, seen):
    data = collection(tmp_path / "c", ["weir dam river"] * 5)
    lines = [f"q{q} Q0 d{d} {d} {float(d < 1)} t\n" for q in range(3) for d in range(3)]
    (tmp_path / "r.trec").write_text("".join(lines), encoding="utf-8")
    systems = (f'run("{(tmp_path / "r.trec").as_posix()}")', "bm25")
    Experiment((data,), systems, ("R@10",), k).execute(tmp_path / "r")
    stored, other = finished_cells(tmp_path / "r")
    assert stored.tied_beyond == seen
    (why,) = weir.why(stored.folder, other.folder)
    where = f"at rank {min(k, 3)}, is tied in 3 queries, and others beyond it " + ("are" if seen else "may")
    assert any(where in note for note in why.notes)


def test_why_names_the_cut_of_cells_and_of_rankings(tmp_path):
    data = collection(tmp_path / "c", ["weir"] * 8 + ["dam"] * 5)
    Experiment((data,), ("bm25", "bm25(k1=1.2)"), ("R@5",), 5).execute(tmp_path / "r")
    cells = finished_cells(tmp_path / "r")
    (why,) = weir.why(*(cell.folder for cell in cells))
    assert any("at rank 5, is tied in 1 query, and so are others beyond it" in note for note in why.notes)
    judged = {f"q{n}": {"d0": 1, "d9": 1} for n in range(3)}
    tied = {f"q{n}": {"d0": 2.0, "d1": 1.0, "d2": 1.0} for n in range(3)}
    (why,) = weir.why(judged, tied, {q: {"d0": 1.0} for q in tied}, measure="R@5")
    assert any("at rank 3, is tied in 3 queries, and others beyond it may" in note for note in why.notes)


@given(rankings, rankings)
@settings(max_examples=60)
def test_ties_are_told_once_for_a_system_with_the_means_that_they_change_in_print(one, other):
    names = ["nDCG@1", "nDCG@3", "AP", "P@2", "R@100"]
    qrels = {f"q{n}": {"d0": 1, "d2": 1} for n in range(6)}
    both = {}
    for name, given_scores in (("one", one), ("other", other)):
        ranked = {
            f"q{n}": {f"d{d}": float(v) for d, v in enumerate(s)} for n, s in enumerate(given_scores) if s
        }
        both[name] = weir.evaluate(qrels, ranked or {"q0": {"d9": 1.0}}, names)
    for scores in both.values():
        printed = {
            m: f"{low:.4f} to {high:.4f}"
            for m, (low, high) in zip(names, scores.tie_bounds(), strict=True)
            if f"{low:.4f}" != f"{high:.4f}"
        }
        told = [note.text for note in scores.notes() if "by the order of ties" in note.text]
        assert len(told) == bool(printed)
        assert all(f"{m} {ends}" in text for text in told for m, ends in printed.items())
        assert all((f" {m} " in told[0]) == (m in printed) for m in names if told)
    of_one = [text for note in system_notes(both) if (text := note.text).startswith(("one: ", "other: "))]
    assert len({text.partition(": ")[2] for text in of_one}) == len(of_one)
