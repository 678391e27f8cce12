"""An engine without a version, anywhere in a grid: every cell is there, and the engine is asked once, deep enough."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weir
from weir.experiment.experiment import Experiment
from weir.experiment.results import finished_cells
from weir.systems.compose import Pipeline
from weir.systems.fused import Fused
from weir.systems.protocol import Retriever

DOCUMENTS, QUERIES = 40, ("q1", "q2", "d7")


def collection(at: Path) -> Path:
    """A collection whose last query has the identifier of a document."""
    at.mkdir()
    documents = [{"_id": f"d{n}", "text": f"weir {n}"} for n in range(DOCUMENTS)]
    for name, lines in (("corpus", documents), ("queries", [{"_id": q, "text": "weir"} for q in QUERIES])):
        (at / f"{name}.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    judged = "".join(f"{query} 0 d{n} 1\n" for query in QUERIES for n in (3, 30))
    (at / "qrels.txt").write_text(judged, encoding="utf-8")
    return at


class Engine:
    """Ranks documents by number and writes down what it was asked, in a list that its copies share."""

    def __init__(self) -> None:
        self.log: tuple[list[tuple[str, int]]] = ([],)

    @property
    def asked(self) -> list[tuple[str, int]]:
        return self.log[0]

    def search(self, queries: dict[str, str], k: int) -> dict[str, list[str]]:
        self.log[0].extend((query, k) for query in queries)
        return {query: [f"d{n}" for n in range(min(k, DOCUMENTS))] for query in queries}


def last_digit(queries: list[str], documents: list[str]) -> np.ndarray:
    return np.array([float(text.split()[1][-1]) for text in documents])


depths = st.one_of(st.none(), st.integers(1, 60))


@st.composite
def grids(draw: st.DrawFn) -> tuple[Engine, list[Retriever]]:
    """An engine, alone and within other systems, each once."""
    engine = Engine()
    own = weir.system(engine, name="engine")
    reranker = weir.reranker(last_digit, version="1")

    def fusions(first: Retriever) -> Retriever:
        return weir.rrf(first, weir.BM25(), depth=draw(depths))

    def reranked(first: Retriever) -> Retriever:
        return first >> weir.reranker(last_digit, depth=draw(depths), version="1")

    made = [own]
    for _ in range(draw(st.integers(1, 4))):
        first = draw(st.sampled_from([own, own, fusions(own), own >> reranker]))
        made.append(draw(st.sampled_from([fusions, reranked]))(first))
    order = draw(st.permutations(range(len(made))))
    return engine, list({str(made[n]): made[n] for n in order}.values())


def needed(system: Retriever, k: int) -> int:
    """How deep the engine is asked for k results of a system; a re-ranker leaves room for the query's own document."""
    if isinstance(system, Fused):
        return needed(system.parts[0], max(1000, k) if system.depth is None else system.depth)
    if isinstance(system, Pipeline):
        depth, first = system.reranker.depth, system.first
        if depth is None and isinstance(first, Fused):
            return needed(first, first.pool_depth(k, DOCUMENTS))
        return needed(first, max(k, 1 + (100 if depth is None else depth)))
    return k


@pytest.mark.filterwarnings("ignore:.*scores all candidates")  # as two documents of one last digit have
@given(grids(), st.sampled_from([1, 5, 100, 2000]), st.booleans(), st.booleans())
@settings(max_examples=25)
def test_every_cell_is_made_and_the_engine_is_asked_once(made, k, drop, apart):
    engine, systems = made
    with tempfile.TemporaryDirectory() as name:
        data, results, stages = collection(Path(name) / "c"), Path(name) / "results", Path(name) / "stages"
        options = {"stages": stages if apart else None, "drop_self": drop}
        grid = Experiment((data,), tuple(systems), ("R@10",), k, **options)
        rows = grid.execute(results)
        assert [row.system for row in rows] == [str(one) for one in systems]
        assert len(finished_cells(results)) == len(systems)
        assert engine.asked == [(query, max(needed(one, k + drop) for one in systems)) for query in QUERIES]
        answers = {q: {f"d{n}": -n for n in range(min(k, DOCUMENTS))} for q in QUERIES}
        alone = weir.evaluate(data / "qrels.txt", answers, ["R@10"])["R@10"].mean
        assert {row.system: row.mean for row in rows}["engine"] == alone
        grid.execute(results)
        assert len(engine.asked) == len(QUERIES), "what is finished is not asked again"
