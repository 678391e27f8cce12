"""weir audit --fit invents nothing on real collections, and finds what was done to one."""

from __future__ import annotations

import pytest

import weir


@pytest.mark.real
@pytest.mark.parametrize("name", ["scifact", "nfcorpus", "cranfield"])
def test_no_fault_is_invented(shared, name):
    [found] = weir.fitness(shared / "data" / name, change=0.05, systems=["bm25", "bm25(b=0.0)", "rm3"])
    assert found.faults == ()
    assert found.verdict == "fit"
    [strict] = weir.fitness(shared / "data" / name, change=0.005)
    assert [fault.kind for fault in strict.faults] == ["few queries"]


@pytest.mark.real
def test_judgments_of_a_systems_own_top_are_found(shared, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    dataset = weir.load(shared / "data" / "scifact")
    runs = {
        name: weir.parse_system(name).index(dataset.corpus).search(dataset.queries, 100)
        for name in ("bm25", "bm25(k1=1.2, b=0.75)", "rm3")
    }
    own = {query: dict.fromkeys(list(docs)[:10], 1) for query, docs in runs["bm25"].to_dict().items()}
    weir.Qrels.of(own).save("own.tsv")
    for number, run in enumerate(runs.values()):
        run.save(f"{number}.trec")
    [found] = weir.fitness("own.tsv", "0.trec", "1.trec", "2.trec", change=0.05)
    chosen = {fault.kind: fault.statement for fault in found.faults}["chosen by a system"]
    assert "100.0% of the relevant documents are among the first 10 documents of 0" in chosen
